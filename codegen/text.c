/* Text that grows in the compile's arena, and the few forms of it that emitted C needs. */
#include "codegen/internal.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 99 }; /* columns of a line */

Out out_new(Arena *arena)
{
    Out o = {.arena = arena, .capacity = 256};
    o.at = arena_alloc(arena, o.capacity);
    return o;
}

static void reserve(Out *o, size_t more)
{
    if (o->length + more < o->capacity)
        return;
    size_t capacity = o->capacity;
    while (o->length + more >= capacity)
        capacity *= 2;
    char *at = arena_alloc(o->arena, capacity);
    memcpy(at, o->at, o->length + 1);
    o->at = at;
    o->capacity = capacity;
}

void out_text(Out *o, const char *text, size_t length)
{
    reserve(o, length);
    memcpy(o->at + o->length, text, length);
    o->length += length;
    o->at[o->length] = 0;
}

void out(Out *o, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(o->at + o->length, o->capacity - o->length, format, args);
    if ((size_t)length >= o->capacity - o->length) {
        reserve(o, (size_t)length);
        vsnprintf(o->at + o->length, o->capacity - o->length, format, again);
    }
    o->length += (size_t)length;
    va_end(again);
    va_end(args);
}

void out_comment(Out *o, const char *text)
{
    for (const char *at = text; *at; at++) {
        bool bad = (at[0] == '*' && at[1] == '/') || (at[0] == '/' && at[1] == '*') ||
                   *at == '\\' || (at[0] == '?' && at[1] == '?');
        char c = bad ? '_' : iscntrl((unsigned char)*at) ? ' ' : *at;
        out_text(o, &c, 1);
    }
}

void out_block(Out *o, const char *indent, const char *text)
{
    size_t margin = strlen(indent) + 3, column = margin;
    out(o, "%s/*", indent);
    while (*text) {
        size_t length = strcspn(text, " ");
        bool last = !text[length + strspn(text + length, " ")];
        if (column > margin && column + length + (last ? 3 : 0) > WIDTH) {
            out(o, "\n%s *", indent);
            column = margin;
        }
        out(o, " ");
        out_comment(o, arena_copy(o->arena, text, length));
        column += length + 1;
        text += length + strspn(text + length, " ");
    }
    out(o, " */\n");
}

void out_string(Out *o, const char *text)
{
    out(o, "\"");
    for (; *text; text++)
        if (*text == '"' || *text == '\\' || *text == '?') /* \? : no trigraphs */
            out(o, "\\%c", *text);
        else if (iscntrl((unsigned char)*text))
            out(o, "\\%03o", (unsigned char)*text);
        else
            out_text(o, text, 1);
    out(o, "\"");
}

/* The shortest text that reads back as the number, or as the float: 0.9, 1e-05, 10. */
static const char *shortest(Arena *arena, double number, bool single)
{
    char *text = arena_alloc(arena, 40), longer[40];
    *text = 0;
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(longer, sizeof longer, "%.*g", digits, number);
        bool same = single ? strtof(longer, NULL) == (float)number : strtod(longer, NULL) == number;
        if (same && (!*text || strlen(longer) <= strlen(text)))
            memcpy(text, longer, sizeof longer);
    }
    return text;
}

void out_number(Out *o, double number)
{
    if (isfinite(number))
        out(o, "%s", shortest(o->arena, number, false));
    else
        out(o, isnan(number) ? "NAN" : number < 0 ? "-INFINITY" : "INFINITY");
}

void out_real(Out *o, double number)
{
    if (isnan(number)) {
        out(o, "NAN");
    } else if (isinf((float)number)) { /* -1e39 is written for it */
        out(o, number < 0 ? "(-INFINITY)" : "INFINITY");
    } else {
        bool single = (double)(float)number == number;
        const char *text = shortest(o->arena, number, single);
        const char *point = strpbrk(text, ".e") ? "" : ".0";
        if (!single)
            out(o, "(gp_real)%s%s", text, point);
        else
            out(o, signbit(number) ? "(%s%sf)" : "%s%sf", text, point);
    }
}

void out_list(Out *o, const char *head, const Items *item, const char *tail, size_t indent)
{
    const char *line = strrchr(head, '\n');
    size_t column = strlen(line ? line + 1 : head), begin = column;
    indent = indent ? indent : column;
    out(o, "%s", head);
    for (size_t i = 0; i < item->count; i++) {
        size_t length = strlen(item->at[i]), after = i + 1 < item->count ? 1 : strlen(tail) - 1;
        if (column > begin && column + 1 + length + after > WIDTH) {
            out(o, "\n%*s", (int)indent, "");
            begin = column = indent;
        } else if (i) {
            out(o, " ");
            column++;
        }
        out(o, "%s%s", item->at[i], i + 1 < item->count ? "," : "");
        column += length + 1;
    }
    out(o, "%s", tail);
}

/* Where a row that is too long goes on in the next line: after a comma within the width, or
 * after a blank of a string, which is then two, or between two strings. */
static size_t break_at(const char *text, size_t width, bool *in_string)
{
    size_t best = 0, blank = 0, gap = 0;
    bool quoted = false;
    for (size_t i = 0; text[i]; i++) {
        quoted ^= text[i] == '"' && (i == 0 || text[i - 1] != '\\');
        if (!quoted && text[i] == ',' && text[i + 1] == ' ' && (i < width || !best))
            best = i + 1;
        if (text[i] == ' ' && i + 1 < width)
            *(quoted ? &blank : &gap) = quoted ? i + 1 : i;
    }
    *in_string = false;
    if (best && best <= width)
        return best;
    *in_string = blank > 0;
    return blank ? blank : gap ? gap : best;
}

void out_items(Out *o, const char *indent, const Items *items, const char *line_end,
               bool last_comma)
{
    const size_t most = WIDTH - strlen(line_end), margin = strlen(indent);
    size_t column = 0;
    for (size_t i = 0; i < items->count; i++) {
        const char *text = items->at[i];
        const bool comma = i + 1 < items->count || last_comma;
        size_t length = strlen(text) + comma;
        if (column && column + 1 + length > most) {
            out(o, "%s\n", line_end);
            column = 0;
        }
        out(o, "%s", column ? " " : indent);
        column += column ? 1 : margin;
        bool string;
        for (size_t cut; column == margin && column + length > most &&
                         (cut = break_at(text, most - column, &string)) > 0;) {
            out_text(o, text, cut);
            out(o, string ? "\"%s\n%s" : "%s\n%s ", line_end, indent);
            text = string ? arena_printf(o->arena, "\"%s", text + cut) : text + cut + 1;
            length = strlen(text) + comma;
        }
        out(o, "%s%s", text, comma ? "," : "");
        column = text == items->at[i] ? column + length : most; /* what was cut stands alone */
    }
    out(o, "\n");
}

void out_fold(Out *o, size_t from)
{
    const char *line = arena_copy(o->arena, o->at + from, o->length - from);
    size_t indent = strspn(line, " ") + 4;
    if (strcspn(line, "\n") <= WIDTH)
        return;
    o->length = from;
    while (strcspn(line, "\n") > WIDTH) {
        size_t cut = WIDTH;
        while (cut > indent && line[cut] != ' ')
            cut--;
        if (cut == indent)
            break;
        out_text(o, line, cut);
        out(o, "\n");
        line = arena_printf(o->arena, "%*s%s", (int)indent, "", line + cut + 1);
    }
    out(o, "%s", line);
}

Text out_done(const Out *o)
{
    return (Text){o->at, o->length};
}
