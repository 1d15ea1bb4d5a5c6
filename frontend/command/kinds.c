/* See kinds.h. */
#include "frontend/command/kinds.h"

#include <errno.h>
#include <string.h>

static const Kind source = {.emit = emit_source};
static const Kind kinds[] = {
    {"h", emit_header, NULL},    {"report", emit_report, NULL}, {"dot", emit_dot, NULL},
    {"svg", emit_svg, NULL},     {"html", emit_html, NULL},     {"json", emit_json, NULL},
    {"trace", emit_trace, NULL}, {"graph", NULL, emit_graph},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

const char *kind_words(void)
{
    static char words[256];
    size_t length = 0;
    for (size_t i = 0; i < target_count + KINDS; i++)
        length += (size_t)snprintf(words + length, sizeof words - length, "%s%s", i ? " " : "",
                                   i < target_count ? target_table[i].extension
                                                    : kinds[i - target_count].name);
    return words;
}

static const char *kind_name(const Options *o)
{
    return o->emit ? o->emit : extension(o->output);
}

const Kind *find_kind(const Options *o)
{
    const char *name = kind_name(o);
    if (written_target(o))
        return &source;
    for (size_t i = 0; name && i < KINDS; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

bool kind_is_source(const Kind *kind)
{
    return kind == &source;
}

const TargetRow *written_target(const Options *o)
{
    const char *name = kind_name(o);
    return name ? target_of_extension(name) : NULL;
}

const TargetRow *find_target(const Options *o)
{
    const TargetRow *written = written_target(o);
    return o->target ? &target_table[o->target - 1] : written ? written : &target_table[0];
}

const char *extension(const char *path)
{
    const char *dot = path ? strrchr(path, '.') : NULL;
    return dot && !strchr(dot, '/') ? dot + 1 : NULL;
}

/* dir/model.c -> dir/model.h */
static char *beside(Arena *arena, const char *output, const char *other)
{
    return arena_printf(arena, "%.*s%s", (int)(extension(output) - output), output, other);
}

const char *header_name(Arena *arena, const char *output, const char *model)
{
    if (!output)
        return arena_printf(arena, "%s.h", model);
    const char *path = beside(arena, output, "h"), *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool output_write(Diag *diag, const OutFile *file, size_t count)
{
    const OutFile *culprit = files_write(file, count);
    return !culprit ||
           diag_error(diag, (Span){0}, "%s: cannot be written: %s",
                      culprit->path ? culprit->path : "standard output", strerror(errno));
}

bool write_output(Arena *arena, Diag *diag, const Options *o, const Plan *plan,
                  const EmitOptions *emit)
{
    const Kind *kind = find_kind(o);
    OutFile file[3] = {{o->output, kind->emit(plan, emit)}};
    if (!kind_is_source(kind))
        return output_write(diag, file, 1);
    file[2].text = emit_constants(plan, emit);
    if (!o->output) {
        if (file[2].text.length > 0)
            return diag_error(diag, (Span){0},
                              "%s has constants that go to a file beside the text: give -o "
                              "FILE.%s",
                              plan->graph->name, written_target(o)->extension);
        return output_write(diag, file, 1);
    }
    file[1].path = beside(arena, o->output, "h");
    file[1].text = emit_header(plan, emit);
    file[2].path = beside(arena, o->output, "safetensors");
    if (file[2].text.length > 0 && !constants_may_replace(file[2].path)) {
        diag_error(diag, (Span){0},
                   "%s: it exists, and is not a file of constants that gplan wrote", file[2].path);
        diag_hint(diag, "move it away, or write another file than %s", o->output);
        return false;
    }
    return output_write(diag, file, file[2].text.length > 0 ? 3 : 2);
}
