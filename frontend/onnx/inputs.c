/* Constants, inputs, and the free dimensions of an ONNX graph. */
#include "frontend/onnx/import.h"

#include <string.h>

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
            return refuse(m, "the initializer \"%s\" occurs twice", data->name);
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

/* A list of whole numbers without elements has nothing to give, and is a constant: axes. */
static bool is_empty(const OnnxInfo *info)
{
    return info->tensor && info->shaped && info->rank == 1 && info->dim[0] == 0 && *info->name &&
           (info->elem == ELEM_INT64 || info->elem == ELEM_INT32);
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

/* Those that need a size, and where each occurs; the batch has one, which is said beside them. */
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

bool make_inputs(Import *m, Stmt *model, Stmts *declared)
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

bool begin_scratch(Import *m, const Stmt *model)
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

bool take_inputs(Import *m, const Stmts *declared)
{
    for (size_t i = 0; i < declared->count; i++) {
        Stmt *stmt = declared->at[i];
        const char *name = stmt->name.text;
        Tensor *tensor = ARENA_NEW(m->arena, Tensor);
        const OnnxInfo *info = m->model.graph.input.at;
        while (strcmp(info->name, name) != 0)
            info++;
        if (find_tensor(m, name))
            return refuse(m, "the input \"%s\" occurs twice", name);
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
