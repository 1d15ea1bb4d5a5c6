/* The runtime as it stands in an emitted file: the text of each file that is needed, once, after
 * those that it includes. System includes are collected at the top; include guards and the
 * functions that only gplan calls (GP_WORKSPACE of C) stay out. */
#include "codegen/internal.h"
#include "runtime/runtime.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const char settings[] = "settings.h";

typedef struct {
    const char *at;
    size_t length; /* without the end of the line */
} Line;

typedef struct {
    Arena *arena;
    ARRAY(const char *) done;   /* files */
    ARRAY(const char *) system; /* <math.h> */
    Out body;
} Inliner;

static bool starts(Line line, const char *word)
{
    return line.length >= strlen(word) && memcmp(line.at, word, strlen(word)) == 0;
}

/* The word after `prefix`: a name, "base.h" or <math.h>. */
static const char *word_after(Arena *arena, Line line, const char *prefix)
{
    const char *at = line.at + strlen(prefix);
    size_t left = line.length - strlen(prefix), length = 0;
    while (length < left && !isspace((unsigned char)at[length]))
        length++;
    return arena_copy(arena, at, length);
}

static bool has(const char *const *list, size_t count, const char *word)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i], word) == 0)
            return true;
    return false;
}

static size_t split(Arena *arena, const char *text, Line **lines)
{
    ARRAY(Line) line = {0};
    while (*text) {
        size_t length = strcspn(text, "\n");
        ARRAY_PUSH(arena, &line, (Line){text, length});
        text += length + (text[length] == '\n');
    }
    *lines = line.at;
    return line.count;
}

/* Takes back the comment (and blank line) that was written last: it spoke of what follows. */
static void drop_comment(Out *o)
{
    size_t end = o->length;
    while (end > 0 && isspace((unsigned char)o->at[end - 1]))
        end--;
    if (end < 2 || memcmp(o->at + end - 2, "*/", 2) != 0)
        return;
    while (end > 1 && memcmp(o->at + end - 2, "/*", 2) != 0)
        end--;
    end -= 2;
    if (end > 0 && o->at[end - 1] != '\n')
        return; /* at the end of a line of code */
    o->length = end;
    o->at[end] = 0;
}

static void add_file(Inliner *n, const char *file);

/* What an include in `file` means: base.h in c/math.h is c/base.h, ../c/math.h in cuda/x.cuh is
 * c/math.h. */
static const char *path_from(Arena *arena, const char *file, const char *include)
{
    if (strncmp(include, "../", 3) == 0)
        return include + 3;
    return arena_printf(arena, "%.*s/%s", (int)strcspn(file, "/"), file, include);
}

static void add_line(Inliner *n, Line line)
{
    bool blank = line.length == 0;
    size_t length = n->body.length;
    if (blank && (length < 2 || memcmp(n->body.at + length - 2, "\n\n", 2) == 0))
        return;
    out_text(&n->body, line.at, line.length);
    out(&n->body, "\n");
}

/* Includes are followed or collected, others kept. Only those that no #if but the guard covers. */
static bool add_include(Inliner *n, const char *file, Line line, int depth)
{
    if (starts(line, "#include \"")) {
        const char *word = word_after(n->arena, line, "#include \"");
        word = arena_copy(n->arena, word, strlen(word) - 1);
        if (strcmp(word, settings) != 0) /* written from the rows */
            add_file(n, path_from(n->arena, file, word));
        return true;
    }
    if (starts(line, "#include <") && depth <= 1) {
        const char *word = word_after(n->arena, line, "#include ");
        if (!has(n->system.at, n->system.count, word))
            ARRAY_PUSH(n->arena, &n->system, word);
        return true;
    }
    return false;
}

static void add_file(Inliner *n, const char *file)
{
    if (has(n->done.at, n->done.count, file))
        return;
    ARRAY_PUSH(n->arena, &n->done, file);
    const char *text = runtime_text(file);
    if (!text) {
        fprintf(stderr, "gplan: internal error: the runtime has no file %s\n", file);
        exit(3);
    }
    Line *line;
    size_t count = split(n->arena, text, &line);
    for (size_t i = 0; i < count; i++) /* what it stands on comes before its own comment */
        if (starts(line[i], "#include \""))
            add_include(n, file, line[i], 0);
    const char *guard = NULL;
    int depth = 0;
    for (size_t i = 0; i < count; i++) {
        depth -= starts(line[i], "#endif");
        if (starts(line[i], "#ifndef ") && !guard) {
            guard = word_after(n->arena, line[i], "#ifndef ");
            depth++;
            continue;
        }
        if (guard && starts(line[i], "#define ") &&
            strcmp(word_after(n->arena, line[i], "#define "), guard) == 0)
            continue;
        if (guard && depth == 0 && starts(line[i], "#endif"))
            continue;
        depth += starts(line[i], "#if");
        if (add_include(n, file, line[i], depth))
            continue;
        if (starts(line[i], "GP_WORKSPACE(") && starts((Line){file, strlen(file)}, "c/")) {
            drop_comment(&n->body);
            while (i < count && !starts(line[i], "}"))
                i++;
            continue;
        }
        add_line(n, line[i]);
    }
    add_line(n, (Line){"", 0});
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static Inliner read_files(Arena *arena, const char *const *file, size_t count)
{
    Inliner n = {.arena = arena, .body = out_new(arena)};
    for (size_t i = 0; i < count; i++)
        add_file(&n, file[i]);
    return n;
}

void inline_files(const Graph *g, const char *const *file, size_t count, Out *o)
{
    Inliner n = read_files(g->arena, file, count);
    if (n.system.count)
        qsort(n.system.at, n.system.count, sizeof *n.system.at, by_text);
    for (size_t i = 0; i < n.system.count; i++)
        out(o, "#include %s\n", n.system.at[i]);
    out(o, "\n");
    settings_write(o, g, n.body.at);
    out_text(o, n.body.at, n.body.length);
}

bool inline_reaches(Arena *arena, const char *const *file, size_t count, const char *wanted)
{
    Inliner n = read_files(arena, file, count);
    return has(n.done.at, n.done.count, wanted);
}
