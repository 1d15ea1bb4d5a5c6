/* Text that grows in the compile's arena, and the few forms of it that emitted C needs. */
#include "codegen/internal.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    enum { WIDTH = 99 };
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

/* The fewest digits that read back as the number, or as the float. */
static const char *shortest(Arena *arena, double number, bool single)
{
    char *text = arena_alloc(arena, 40);
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, 40, "%.*g", digits, number);
        double back = strtod(text, NULL);
        if (single ? strtof(text, NULL) == (float)number : back == number)
            break;
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
    } else if (isinf(number)) {
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

Text out_done(const Out *o)
{
    return (Text){o->at, o->length};
}
