/* See kinds.h. */
#include "frontend/command/kinds.h"
#include "frontend/print.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const Kind source = {.emit = emit_source};
static const Kind kinds[] = {
    {.name = "h", .emit = emit_header},    {.name = "report", .emit = emit_report},
    {.name = "dot", .emit = emit_dot},     {.name = "svg", .emit = emit_svg},
    {.name = "html", .emit = emit_html},   {.name = "json", .emit = emit_json},
    {.name = "trace", .emit = emit_trace}, {.name = "graph", .draw = emit_graph},
    {.name = "g", .is_text = true},
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

/* A file of constants or weights takes no other's place: parameters that were trained. */
static bool may_replace(Diag *diag, const Options *o, const char *path)
{
    if (constants_may_replace(path) || import_may_replace(path))
        return true;
    diag_error(diag, (Span){0}, "%s: it exists, and is not a file that gplan wrote for a model",
               path);
    diag_hint(diag, "move it away, or write another file than %s", o->output);
    return false;
}

static OutFile weights_file(Arena *arena, const char *path, const OnnxImport *import)
{
    return (OutFile){.path = path, .stream = import_stream, .what = import_weights(arena, import)};
}

bool write_model(Arena *arena, Diag *diag, const Options *o, const OnnxImport *import,
                 const Ast *ast)
{
    char *text = NULL;
    OutFile file[2] = {{.path = o->output}};
    FILE *to = open_memstream(&text, &file[0].text.length);
    if (!to)
        out_of_memory(0);
    ast_print(ast, to);
    if (fclose(to) != 0)
        out_of_memory(0);
    file[0].text.text = text;
    bool weights = import && import->weight.count && o->output;
    if (weights)
        file[1] = weights_file(arena, beside(arena, o->output, "safetensors"), import);
    bool good = (!weights || may_replace(diag, o, file[1].path)) &&
                output_write(diag, file, weights ? 2 : 1);
    free(text);
    return good;
}

/* dir/model.c -> dir/model_main.c */
static const char *main_name(Arena *arena, const char *output)
{
    const char *dot = extension(output) - 1;
    return arena_printf(arena, "%.*s_main%s", (int)(dot - output), output, dot);
}

/* Numbers that go beside the text: constants, or the weights of an import. False with a message. */
static bool push_numbers(Arena *arena, Diag *diag, const Options *o, const OnnxImport *import,
                         Text constants, OutFile *file, size_t *count)
{
    bool weights = import && import->weight.count;
    const char *path = beside(arena, o->output, "safetensors");
    if (constants.length > 0 && weights)
        return diag_error(diag, (Span){0},
                          "a const with so many numbers cannot be appended to an imported model: "
                          "its file is that of the weights");
    if (constants.length == 0 && !weights)
        return true;
    file[(*count)++] =
        weights ? weights_file(arena, path, import) : (OutFile){.path = path, .text = constants};
    return may_replace(diag, o, path);
}

bool write_output(Arena *arena, Diag *diag, const Options *o, const OnnxImport *import,
                  const Plan *plan, const EmitOptions *emit)
{
    const Kind *kind = find_kind(o);
    OutFile file[MAX_OUT_FILES] = {{.path = o->output, .text = kind->emit(plan, emit)}};
    size_t count = 1;
    if (!kind_is_source(kind))
        return output_write(diag, file, count);
    Text constants = emit_constants(plan, emit);
    if (!o->output) {
        if (constants.length > 0)
            return diag_error(diag, (Span){0},
                              "%s has constants that go to a file beside the text: give -o "
                              "FILE.%s",
                              plan->graph->name, written_target(o)->extension);
        return output_write(diag, file, count);
    }
    file[count++] =
        (OutFile){.path = beside(arena, o->output, "h"), .text = emit_header(plan, emit)};
    if (o->main)
        file[count++] =
            (OutFile){.path = main_name(arena, o->output), .text = emit_main(plan, emit)};
    return push_numbers(arena, diag, o, import, constants, file, &count) &&
           output_write(diag, file, count);
}
