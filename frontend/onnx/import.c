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

/* ---- Constants ------------------------------------------------------------------------------ */

static bool take_data(Import *m, OnnxTensor *data, bool initializer)
{
    Tensor *tensor = ARENA_NEW(m->arena, Tensor);
    if (elem_dtype(data->elem) == DTYPES)
        return refuse(m, "tensor \"%s\": gplan does not compute in %s", data->name,
                      elem_name(data->elem));
    if (data->rank > MAX_RANK)
        return refuse(m, "tensor \"%s\": it has %d dimensions, and gplan takes up to %d",
                      data->name, data->rank, MAX_RANK);
    const char *fault = data->location ? onnx_external(m->files, data) : NULL;
    if (fault)
        return refuse(m, "tensor \"%s\": %s", data->name, fault);
    *tensor = (Tensor){.name = data->name,
                       .elem = data->elem,
                       .dtype = elem_dtype(data->elem),
                       .rank = data->rank,
                       .data = data,
                       .value = NONE,
                       .initializer = initializer};
    memcpy(tensor->dim, data->dim, sizeof tensor->dim);
    bind_tensor(m, data->name, tensor);
    return true;
}

bool import_initializers(Import *m, const OnnxGraph *graph)
{
    for (size_t i = 0; i < graph->initializer.count; i++) {
        OnnxTensor *data = &graph->initializer.at[i];
        if (!m->depth && find_tensor(m, data->name))
            return refuse(m, "the initializer \"%s\" stands there twice", data->name);
        if (!take_data(m, data, !m->depth))
            return false;
        *names_at(m->taken, data->name) = 1;
    }
    return true;
}

/* ---- Inputs --------------------------------------------------------------------------------- */

static const char *bound_path(const Import *m, const char *name)
{
    for (size_t i = 0; i < m->options->binds; i++)
        if (strcmp(m->options->bind[i].name, name) == 0)
            return m->options->bind[i].path;
    return NULL;
}

static bool take_bound(Import *m, const OnnxInfo *info, const char *path)
{
    Wire wire;
    const char *fault;
    OnnxTensor *data = ARENA_NEW(m->arena, OnnxTensor);
    OnnxFiles *files = onnx_open(m->arena, path, &wire, &fault);
    if (!files)
        return refuse(m, "--bind %s: %s: %s", info->name, path, fault);
    OnnxRead read = {.arena = m->arena};
    bool good = onnx_read_tensor(&read, wire, data) && !data->location;
    if (good && elem_size(data->elem)) {
        size_t bytes = (size_t)data->count * elem_size(data->elem);
        data->data = (const unsigned char *)arena_copy(m->arena, (const char *)data->data, bytes);
    }
    onnx_close(files);
    if (!good)
        return refuse(m, "--bind %s: %s: %s", info->name, path,
                      read.fault ? read.fault : "it must hold its data itself");
    data->name = info->name;
    data->owned = true;
    return take_data(m, data, false);
}

/* An input without elements has nothing to give: it is a constant. */
static bool is_empty(const OnnxInfo *info)
{
    for (int k = 0; info->tensor && info->shaped && k < info->rank; k++)
        if (info->dim[k] == 0)
            return elem_size(info->elem) > 0 && *info->name;
    return false;
}

static bool take_empty(Import *m, const OnnxInfo *info)
{
    OnnxTensor *data = ARENA_NEW(m->arena, OnnxTensor);
    *data = (OnnxTensor){.name = info->name,
                         .elem = info->elem,
                         .rank = info->rank,
                         .data = (const unsigned char *)"",
                         .owned = true};
    for (int k = 0; k < info->rank; k++)
        data->dim[k] = info->dim[k] > 0 ? info->dim[k] : 0;
    return take_data(m, data, false);
}

static const Define *find_define(const Import *m, const char *name)
{
    for (size_t i = m->options->defines; i-- > 0;)
        if (strcmp(m->options->define[i].name, name) == 0)
            return &m->options->define[i];
    return NULL;
}

/* The parameter of the model that a free dimension is. */
static const Argument *free_dim(Import *m, Stmt *model, const OnnxInfo *info, int axis,
                                NameTable *symbols)
{
    const char *symbol = info->symbol[axis];
    if (!symbol)
        symbol = arena_printf(m->arena, "%s_%d", info->name, axis);
    uint32_t *at = names_at(symbols, symbol);
    if (*at != UINT32_MAX)
        return &model->arg.at[*at];
    *at = (uint32_t)model->arg.count;
    const char *name = claim(m, symbol);
    const Define *define = find_define(m, name);
    bool first = axis == 0 && !model->arg.count;
    Argument arg = {.name = {name, {0}}};
    if (first)
        arg.mark.text = intern(m, "batch");
    if (define || first)
        arg.value = integer(m, define ? define->value : 1);
    ARRAY_PUSH(m->arena, &model->arg, arg);
    return &model->arg.at[model->arg.count - 1];
}

static const Expr *size_expr(Import *m, Stmt *model, const OnnxInfo *info, int axis,
                             NameTable *symbols)
{
    if (info->dim[axis] > 0)
        return integer(m, info->dim[axis]);
    const Argument *dim = free_dim(m, model, info, axis, symbols);
    return m->fixed && dim->value ? dim->value : word(m, dim->name.text);
}

/* Those that need a size, and where each stands; the batch has one, which is said beside them. */
static bool list_missing(Import *m, const Stmt *model, const char *const *place)
{
    const char *missing = "", *hint = "", *batch = "";
    for (size_t i = 0; i < model->arg.count; i++)
        if (model->arg.at[i].value) {
            if (!find_define(m, model->arg.at[i].name.text))
                batch = arena_printf(m->arena, "; %s (%s) is 1 where nothing else is given",
                                     model->arg.at[i].name.text, place[i]);
        } else {
            const char *name = model->arg.at[i].name.text;
            missing = arena_printf(m->arena, "%s%s%s (%s)", missing, *missing ? ", " : "", name,
                                   place[i]);
            hint = arena_printf(m->arena, "%s -D %s=N", hint, name);
        }
    if (!*missing)
        return true;
    refuse(m, "these dimensions are free, and need a size: %s%s", missing, batch);
    diag_hint(m->diag, "give%s", hint);
    return false;
}

static bool is_constant(const Import *m, const OnnxInfo *info)
{
    return find_tensor(m, info->name) != NULL;
}

static bool check_input(Import *m, const OnnxInfo *info)
{
    if (!*info->name)
        return refuse(m, "an input has no name");
    if (!info->tensor)
        return refuse(m, "input \"%s\" is %s, and gplan takes tensors", info->name, info->kind);
    if (elem_stored(info->elem) == DTYPES)
        return refuse(m, "input \"%s\" is %s, which gplan does not have", info->name,
                      elem_name(info->elem));
    if (!info->shaped)
        return refuse(m, "input \"%s\": the file does not say how many dimensions it has",
                      info->name);
    if (info->rank > MAX_RANK)
        return refuse(m, "input \"%s\" has %d dimensions, and gplan takes up to %d", info->name,
                      info->rank, MAX_RANK);
    for (int k = 0; k < info->rank; k++)
        if (info->dim[k] == 0 || info->dim[k] < -1)
            return refuse(m, "input \"%s\": dimension %d is %lld", info->name, k,
                          (long long)info->dim[k]);
    return true;
}

/* The statements of the inputs, and of the model with its free dimensions. */
static bool make_inputs(Import *m, Stmt *model, Stmts *declared)
{
    const OnnxGraph *graph = &m->model.graph;
    NameTable *symbols = names_new(m->arena);
    ARRAY(const char *) place = {0}; /* of free dimensions: the first that has it */
    for (size_t i = 0; i < graph->input.count; i++) {
        const OnnxInfo *info = &graph->input.at[i];
        if (is_constant(m, info))
            continue;
        const char *path = bound_path(m, info->name);
        if (path && !take_bound(m, info, path))
            return false;
        if (path || is_empty(info)) {
            if (!path && !take_empty(m, info))
                return false;
            continue;
        }
        if (!check_input(m, info))
            return false;
        Stmt *stmt = stmt_make(m, STMT_INPUT, intern(m, info->name));
        stmt->type = (Type){.given = true};
        stmt->type.dtype.text = intern(m, dtype_name(elem_stored(info->elem)));
        for (int k = 0; k < info->rank; k++) {
            ARRAY_PUSH(m->arena, &stmt->type.dim,
                       (Argument){.value = size_expr(m, model, info, k, symbols)});
            while (place.count < model->arg.count)
                ARRAY_PUSH(m->arena, &place,
                           arena_printf(m->arena, "axis %d of %s", k, info->name));
        }
        ARRAY_PUSH(m->arena, declared, stmt);
    }
    if (!list_missing(m, model, place.at))
        return false;
    if (m->fixed)
        model->arg.count = 0;
    return true;
}

/* Another size for a free dimension: a multiple, so that what must divide it still does, and for
 * each size a factor of its own, so that products of them are told apart. Equal sizes stay equal:
 * they may have to be. */
static int64_t other_size(const Stmt *model, size_t i)
{
    static const int64_t factor[] = {2, 3, 5, 7, 11, 13, 17, 19};
    int64_t size = model->arg.at[i].value->integer;
    size_t distinct = 0;
    for (size_t k = 0; k < i; k++) {
        bool first = true;
        for (size_t j = 0; j < k; j++)
            first &= model->arg.at[j].value->integer != model->arg.at[k].value->integer;
        if (model->arg.at[k].value->integer == size)
            return other_size(model, k);
        distinct += first;
    }
    return size * factor[distinct < 8 ? distinct : 7];
}

/* The sizes of free dimensions in each scratch graph: those given, and others. */
static bool begin_scratch(Import *m, const Stmt *model)
{
    m->defines = model->arg.count;
    for (int s = 0; s < SCRATCHES; s++) {
        Scratch *scratch = &m->scratch[s];
        if (s && !m->defines)
            break;
        m->define[s] = ARENA_ARRAY(m->arena, Define, m->defines + 1);
        for (size_t i = 0; i < m->defines; i++) {
            int64_t size = model->arg.at[i].value->integer;
            m->define[s][i] = (Define){model->arg.at[i].name.text, s ? other_size(model, i) : size};
        }
        Model *from = ARENA_NEW(m->arena, Model);
        *from = (Model){NULL, m->ast, m->define[s], m->defines, true};
        scratch->diag = diag_new(m->arena, NULL, false);
        scratch->graph = graph_new(m->arena, scratch->diag, NULL);
        scratch->lower = lower_begin(scratch->graph, from, &scratch->frame);
        if (!scratch->lower || diag_errors(scratch->diag))
            return refuse(m, "%s", diag_first(scratch->diag)->text);
    }
    return true;
}

static bool take_inputs(Import *m, const Stmts *declared)
{
    for (size_t i = 0; i < declared->count; i++) {
        Stmt *stmt = declared->at[i];
        const char *name = stmt->name.text;
        Tensor *tensor = ARENA_NEW(m->arena, Tensor);
        const OnnxInfo *info = m->model.graph.input.at;
        while (strcmp(info->name, name) != 0)
            info++;
        if (find_tensor(m, name))
            return refuse(m, "the input \"%s\" stands there twice", name);
        *tensor = (Tensor){.name = name, .elem = info->elem};
        if (!add_stmt(m, stmt) || !look_up(m, name, tensor))
            return false;
        tensor->expr = word(m, name);
        Dtype computed = elem_dtype(info->elem);
        if (tensor->dtype != computed) {
            Stmt *widen = stmt_make(m, STMT_ASSIGN, claim(m, name));
            widen->value = cast(m, tensor->expr, computed);
            if (!add_stmt(m, widen) || !look_up(m, widen->target.at[0].text, tensor))
                return false;
            tensor->expr = word(m, widen->target.at[0].text);
        }
        bind_tensor(m, name, tensor);
    }
    return true;
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
    bool any = false; /* else all constants stand in the text */
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

/* What a user should know of the numbers: where they are held in fewer bits than the file has. */
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
