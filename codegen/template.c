/* Templates: C for a model called `net`, in codegen/templates/.
 *
 * net_init becomes mlp_init, NET_OK becomes MLP_OK. Words that begin with MODEL_ are the model's:
 * `#if MODEL_TRAINS` is decided here, and any other MODEL_LR is replaced by its text, in comments
 * too. A word alone on its line is replaced by whole lines, or none. `#include "files.c"` takes in
 * another template; `#include "runtime/..."` says which part of the runtime the text needs.
 * All other lines are the C compiler's and stay as they are.
 */
#include "codegen/template.h"
#include "runtime/runtime.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 16 };

typedef struct {
    Template *t;
    Out *o;
    const char *file;
    int line;
    int depth;
    struct {
        bool ours; /* an #if on facts */
        bool on;   /* what it covers is written */
    } open[MAX_DEPTH];
} Reader;

Template template_new(Arena *arena, const char *prefix, const char *capitals)
{
    return (Template){.arena = arena, .prefix = prefix, .capitals = capitals};
}

static Mark *mark_at(Template *t, const char *name)
{
    for (size_t i = 0; i < t->mark.count; i++)
        if (strcmp(t->mark.at[i].name, name) == 0)
            return &t->mark.at[i];
    ARRAY_PUSH(t->arena, &t->mark, (Mark){.name = name});
    return &t->mark.at[t->mark.count - 1];
}

void template_fact(Template *t, const char *name, bool holds)
{
    mark_at(t, name)->holds = holds;
}

void template_text(Template *t, const char *name, const char *text)
{
    mark_at(t, name)->text = text;
}

static _Noreturn void fail(const Reader *r, const char *what, const char *word, size_t length)
{
    fprintf(stderr, "gplan: internal error: %s:%d: %s: %.*s\n", r->file, r->line, what, (int)length,
            word);
    exit(3);
}

/* ---- Words ---------------------------------------------------------------------------------- */

static size_t word_length(const char *at)
{
    size_t length = 0;
    if (!isdigit((unsigned char)*at))
        while (isalnum((unsigned char)at[length]) || at[length] == '_')
            length++;
    return length;
}

static bool starts(const char *at, const char *word)
{
    return strncmp(at, word, strlen(word)) == 0;
}

/* The mark at a word that begins with MODEL_. */
static const Mark *find_mark(const Reader *r, const char *word, size_t length, bool fact)
{
    for (size_t i = 0; i < r->t->mark.count; i++) {
        const Mark *mark = &r->t->mark.at[i];
        if (strlen(mark->name) == length - 6 && memcmp(mark->name, word + 6, length - 6) == 0 &&
            fact == !mark->text)
            return mark;
    }
    fail(r, fact ? "a fact that is not known" : "a text that is not known", word, length);
}

/* Replaces the words of a line; where it is not on they are looked up all the same. */
static void write_words(Reader *r, const char *at, const char *end, bool on)
{
    Out none = out_new(r->t->arena), *o = on ? r->o : &none;
    while (at < end) {
        size_t length = word_length(at), digits = strspn(at, "0123456789");
        if (length > 6 && starts(at, "MODEL_"))
            out(o, "%s", find_mark(r, at, length, false)->text);
        else if (starts(at, "net") && (length == 3 || (length > 3 && at[3] == '_')))
            out(o, "%s%.*s", r->t->prefix, (int)length - 3, at + 3);
        else if (starts(at, "NET_") && length >= 4)
            out(o, "%s%.*s", r->t->capitals, (int)length - 3, at + 3);
        else
            out_text(o, at, length ? length : digits ? digits : 1);
        at += length ? length : digits ? digits : 1;
    }
}

/* ---- Lines that a long name has made too long ----------------------------------------------- */

enum { WIDTH = 99 };

/* Where the part of a line before the limit can end: after a space, outside of strings. */
static size_t last_gap(const char *line)
{
    size_t gap = 0;
    bool quoted = false;
    for (size_t i = 0; i < WIDTH && line[i]; i++) {
        quoted ^= line[i] == '"' && (i == 0 || line[i - 1] != '\\');
        if (line[i] == ' ' && !quoted && i > strspn(line, " *"))
            gap = i;
    }
    return gap;
}

/* Breaks what was written from `begin` on; comments go on as comments. */
static void wrap(Out *o, size_t begin, const char *code_indent)
{
    const char *line = arena_copy(o->arena, o->at + begin, o->length - begin);
    size_t gap = last_gap(line), indent = strspn(line, " ");
    if (strlen(line) <= WIDTH || gap == 0 || *line == '#')
        return;
    const char *comment = strstr(line, "/*");
    bool within = line[indent] == '*' || (comment && comment < line + gap);
    if (comment && within)
        indent = (size_t)(comment - line);
    const char *before = !within ? code_indent : comment && indent ? "   " : " * ";
    o->length = begin;
    out(o, "%.*s\n", (int)gap, line);
    begin = o->length;
    out(o, "%*s%s%s", within && *before == ' ' && before[1] == '*' ? 0 : (int)indent, "", before,
        line + gap + 1);
    wrap(o, begin, "");
}

/* ---- Lines ---------------------------------------------------------------------------------- */

static bool is_on(const Reader *r)
{
    for (int i = 0; i < r->depth; i++)
        if (!r->open[i].on)
            return false;
    return true;
}

/* MODEL_A && !MODEL_B || MODEL_C, as C reads it. */
static bool holds(const Reader *r, const char *at, const char *end)
{
    bool any = false, all = true;
    while (at < end) {
        at += strspn(at, " ");
        bool negated = *at == '!';
        at += negated;
        size_t length = word_length(at);
        if (!starts(at, "MODEL_"))
            fail(r, "facts do not go with others in one #if", at, length);
        all &= find_mark(r, at, length, true)->holds != negated;
        at += length;
        at += strspn(at, " ");
        if (starts(at, "||")) {
            any |= all;
            all = true;
        } else if (at < end && !starts(at, "&&")) {
            fail(r, "neither && nor ||", at, 1);
        }
        at += at < end ? 2 : 0;
    }
    return any || all;
}

/* An #if, #else or #endif; whether the line was one on facts. */
static bool take_condition(Reader *r, const char *line, const char *end)
{
    if (starts(line, "#if")) {
        bool ours = starts(line, "#if MODEL_") || starts(line, "#if !MODEL_");
        if (r->depth == MAX_DEPTH)
            fail(r, "too many #if", line, (size_t)(end - line));
        r->open[r->depth].ours = ours;
        r->open[r->depth++].on = !ours || holds(r, line + 4, end);
        return ours;
    }
    bool turns = starts(line, "#else"), ends = starts(line, "#endif");
    if (!turns && !ends && !starts(line, "#elif"))
        return false;
    if (r->depth == 0 || (!turns && !ends && r->open[r->depth - 1].ours))
        fail(r, "without its #if", line, (size_t)(end - line));
    bool ours = r->open[r->depth - 1].ours;
    r->open[r->depth - 1].on ^= turns && ours;
    r->depth -= ends;
    return ours;
}

/* A text that is written as lines: without blank ones at its end. */
static void write_block(Reader *r, const char *text)
{
    size_t length = strlen(text);
    while (length > 0 && text[length - 1] == '\n')
        length--;
    out_text(r->o, text, length);
    if (length)
        out(r->o, "\n");
}

/* The word of a line that has no other: "    MODEL_ROWS", " * MODEL_LINES". */
static const char *lone_word(const char *line, const char *end)
{
    const char *at = line + strspn(line, " *");
    return starts(at, "MODEL_") && at + word_length(at) == end ? at : NULL;
}

static void read_file(Template *t, const char *file, Out *o);

static void take_include(Reader *r, const char *line, const char *end)
{
    const char *name = arena_copy(r->t->arena, line + 10, (size_t)(end - line) - 11);
    if (strncmp(name, "runtime/", 8) != 0)
        read_file(r->t, name, r->o);
    else
        ARRAY_PUSH(r->t->arena, &r->t->need, name + 8);
}

static void write_line(Reader *r, const char *line, const char *end)
{
    bool on = is_on(r);
    const char *word = lone_word(line, end);
    size_t length = r->o->length;
    if (take_condition(r, line, end) || starts(line, "/* clang-format o"))
        return;
    if (on && starts(line, "#include \"")) {
        take_include(r, line, end);
    } else if (word) {
        const Mark *mark = find_mark(r, word, (size_t)(end - word), false);
        if (on)
            write_block(r, mark->text);
    } else if (line < end || length < 2 || memcmp(r->o->at + length - 2, "\n\n", 2) != 0) {
        write_words(r, line, end, on);
        if (on) {
            wrap(r->o, length, "    ");
            out(r->o, "\n");
        }
    }
}

static void read_file(Template *t, const char *file, Out *o)
{
    Reader r = {.t = t, .o = o, .file = file};
    const char *text = runtime_text(arena_printf(t->arena, "codegen/templates/%s", file));
    if (!text)
        fail(&r, "there is no such template", file, strlen(file));
    while (*text) {
        const char *end = text + strcspn(text, "\n");
        r.line++;
        write_line(&r, text, end);
        text = end + (*end == '\n');
    }
    if (r.depth)
        fail(&r, "an #if does not end", "", 0);
}

void template_write(Template *t, const char *file, Out *o)
{
    t->need.count = 0;
    read_file(t, file, o);
}
