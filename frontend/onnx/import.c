/* An ONNX file -> a text in the language. See onnx.h. */
#include "frontend/onnx/import.h"
#include "frontend/print.h"

#include <stdlib.h>
#include <string.h>

bool onnx_is_path(const char *path)
{
    size_t length = strlen(path);
    return length > 5 && strcmp(path + length - 5, ".onnx") == 0;
}

/* ---- Outputs -------------------------------------------------------------------------------- */

static bool make_output(Import *m, const OnnxInfo *info)
{
    const Tensor *tensor = find_tensor(m, info->name);
    if (!tensor)
        return refuse(m, "the output \"%s\" is made by nothing", info->name);
    const Expr *value = use_tensor(m, tensor);
    if (m->failed)
        return false;
    int elem = info->elem ? info->elem : tensor->elem;
    if (info->elem && !info->tensor)
        return refuse(m, "output \"%s\" is %s, and gplan makes tensors", info->name, info->kind);
    if (elem != tensor->elem && elem_dtype(elem) != tensor->dtype)
        return refuse(m, "output \"%s\" is %s, but its node makes %s", info->name,
                      elem_name(info->elem), elem_name(tensor->elem));
    Dtype stored = elem_stored(elem);
    const Tensor *input = find_tensor(m, info->name);
    bool is_input = input->value != NONE &&
                    m->scratch[0].graph->value.at[input->value].kind == VALUE_INPUT &&
                    strcmp(m->scratch[0].graph->value.at[input->value].name, info->name) == 0;
    if (is_input)
        return refuse(m, "\"%s\" is an input and an output at once", info->name);
    if (value->kind != EXPR_NAME) { /* one number, known here */
        Stmt *stmt = stmt_make(m, STMT_CONST, claim(m, info->name));
        stmt->type = (Type){.given = true};
        stmt->type.dtype.text = intern(m, dtype_name(tensor->dtype));
        stmt->value = value;
        if (!add_stmt(m, stmt))
            return false;
        value = word(m, stmt->name.text);
    }
    Stmt *stmt = stmt_make(m, STMT_OUTPUT, intern(m, info->name));
    stmt->value = stored == tensor->dtype ? value : cast(m, value, stored);
    return add_stmt(m, stmt);
}

/* What is only there to be an output is called so: y = relu(x), output z = y. */
static void name_outputs(Import *m)
{
    Stmts *body = &m->ast->body;
    NameTable *made = names_new(m->arena);
    size_t left = 0;
    for (size_t i = 0; i < body->count; i++) {
        Stmt *stmt = body->at[i];
        if (stmt->kind == STMT_ASSIGN && stmt->target.count == 1)
            *names_at(made, stmt->name.text) = (uint32_t)left;
        uint32_t at = UINT32_MAX;
        if (stmt->kind == STMT_OUTPUT && stmt->value->kind == EXPR_NAME)
            at = names_find(made, stmt->value->text);
        if (at != UINT32_MAX && body->at[at]->kind == STMT_ASSIGN) {
            body->at[at]->kind = STMT_OUTPUT;
            body->at[at]->name = stmt->name;
            ((Expr *)(uintptr_t)stmt->value)->text =
                stmt->name.text; /* whoever reads it shares it */
        } else {
            body->at[left++] = stmt;
        }
    }
    body->count = left;
}

/* ---- The whole ------------------------------------------------------------------------------ */

static Import *begin(Arena *arena, Arena *kept, Diag *diag, const OnnxOptions *options)
{
    Import *m = ARENA_NEW(arena, Import);
    m->arena = arena;
    m->kept = kept;
    m->diag = diag;
    m->options = options;
    m->read.arena = arena;
    m->names = names_new(arena);
    m->taken = names_new(arena);
    m->output = names_new(arena);
    m->small = names_new(arena);
    m->ast = ARENA_NEW(arena, Ast);
    m->parse = ARENA_NEW(arena, Parse);
    m->parse->arena = arena;
    m->parse->diag = diag_new(arena, NULL, false);
    m->parse->symbols = names_new(arena);
    return m;
}

static const char *stem(Import *m, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return arena_copy(m->arena, name, strlen(name) - 5);
}

static bool translate(Import *m, const char *path)
{
    const OnnxGraph *graph = &m->model.graph;
    Stmt *model = stmt_make(m, STMT_MODEL, NULL);
    Stmts declared = {0};
    for (size_t i = 0; i < graph->input.count; i++)
        *names_at(m->taken, graph->input.at[i].name) = 1;
    for (size_t i = 0; i < graph->output.count; i++) {
        *names_at(m->taken, graph->output.at[i].name) = 1;
        *names_at(m->output, graph->output.at[i].name) = (uint32_t)i;
    }
    NameTable *names = m->taken;
    m->taken = names_new(m->arena); /* the model's own name is apart */
    model->name.text = claim(m, stem(m, path));
    m->taken = names;
    ARRAY_PUSH(m->arena, &m->ast->body, model);
    if (!import_initializers(m, graph) || !make_inputs(m, model, &declared) ||
        !begin_scratch(m, model) || !take_inputs(m, &declared) || !translate_nodes(m, graph))
        return false;
    m->node = NULL;
    for (size_t i = 0; i < graph->output.count; i++)
        if (!make_output(m, &graph->output.at[i]))
            return false;
    if (!graph->output.count)
        return refuse(m, "the model has no output");
    find_attention(m);
    drop_unused(m);
    name_outputs(m);
    roll(m);
    return true;
}

static void keep_weights(Import *m, OnnxImport *import)
{
    bool any = false; /* otherwise all constants are in the text */
    for (size_t i = 0; i < m->declared.count; i++)
        any |= !m->declared.at[i].stmt->value;
    for (size_t i = 0; any && i < m->declared.count; i++) {
        const Declared *d = &m->declared.at[i];
        const OnnxTensor *data = d->tensor->data;
        const unsigned char *bytes = data->data;
        if (data->owned)
            bytes = (const unsigned char *)arena_copy(m->kept, (const char *)bytes,
                                                      (size_t)data->count * elem_size(data->elem));
        OnnxWeight weight = {.name = arena_printf(m->kept, "%s", d->stmt->name.text),
                             .kind = d->kind,
                             .role = d->role,
                             .dtype = d->tensor->dtype,
                             .rank = data->rank,
                             .elem = data->elem,
                             .count = data->count,
                             .data = bytes};
        memcpy(weight.dim, data->dim, sizeof weight.dim);
        ARRAY_PUSH(m->kept, &import->weight, weight);
    }
}

static Source *print(Import *m, Arena *arena, const char *path)
{
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    if (!to)
        out_of_memory(0);
    ast_print(m->ast, to);
    if (fclose(to) != 0)
        out_of_memory(0);
    Source *source = ARENA_NEW(arena, Source);
    *source = (Source){.file = path, .text = arena_copy(arena, text, length), .length = length};
    free(text);
    return source;
}

/* What a user should know of the numbers: where they are stored in fewer bits than the file has. */
static void say_notes(Import *m)
{
    bool seen[ELEMS] = {0};
    if (m->options->quiet)
        return;
    for (size_t i = 0; i < m->tensor.count; i++)
        if (m->tensor.at[i]->elem > 0 && m->tensor.at[i]->elem < ELEMS)
            seen[m->tensor.at[i]->elem] = true;
    if (seen[ELEM_DOUBLE])
        diag_note(m->diag, (Span){0}, "double is computed in f32");
    if (seen[ELEM_UINT64])
        diag_note(m->diag, (Span){0}, "uint64 is computed in i64");
    if (m->fixed)
        diag_note(m->diag, (Span){0},
                  "the free dimensions are fixed at these sizes: what is computed hangs on them");
}

/* One go at it, with errors to `diag` and notes to `notes`. *free: there are free dimensions, and
 * either it failed or an answer hangs on them. */
static bool attempt(OnnxImport *import, Arena *arena, Diag *diag, Diag *notes, const char *path,
                    Wire wire, const OnnxOptions *options, bool *free)
{
    Arena *scratch = arena_new();
    Import *m = begin(scratch, arena, diag, options);
    m->files = import->files;
    m->fixed = import->fixed;
    bool good = onnx_read_model(&m->read, wire, &m->model);
    if (!good)
        diag_error(diag, (Span){0}, "%s", m->read.fault);
    good = good && translate(m, path);
    *free = m->defines && !m->fixed && (!good || m->pinned);
    if (good && !*free) {
        keep_weights(m, import);
        import->source = print(m, arena, path);
        m->diag = notes;
        say_notes(m);
    }
    arena_free(scratch);
    return good && !*free;
}

/* With free dimensions first, and where that cannot be, with the sizes that they have. */
OnnxImport *onnx_import(Arena *arena, Diag *diag, const char *path, const OnnxOptions *options)
{
    OnnxImport *import = ARENA_NEW(arena, OnnxImport);
    Source *file = ARENA_NEW(arena, Source);
    *file = (Source){.file = path, .text = ""};
    diag_source(diag, file);
    Wire wire;
    const char *fault = NULL;
    import->files = onnx_open(arena, path, &wire, &fault);
    if (!import->files) {
        diag_error(diag, (Span){0}, "cannot open the file: %s", fault);
        return NULL;
    }
    Diag *unsaid = diag_new(arena, NULL, false);
    diag_source(unsaid, file);
    bool good = attempt(import, arena, unsaid, diag, path, wire, options, &import->fixed);
    if (!good)
        good = attempt(import, arena, diag, diag, path, wire, options, &(bool){false});
    if (!good)
        onnx_close(import->files);
    return good ? import : NULL;
}

void onnx_end(OnnxImport *import)
{
    onnx_close(import->files);
}

bool onnx_weight_is_plain(const OnnxWeight *weight)
{
    return elem_stored(weight->elem) == weight->dtype &&
           elem_size(weight->elem) == dtype_size(weight->dtype);
}

void onnx_weight_read(const OnnxWeight *weight, int64_t from, int64_t count, void *to)
{
    OnnxTensor tensor = {.elem = weight->elem, .count = weight->count, .data = weight->data};
    onnx_convert(&tensor, weight->dtype, from, count, to);
}
