/* The node at hand: its operands, its attributes, its results, and the translation that it gets. */
#include "frontend/onnx/import.h"

#include <stdarg.h>
#include <string.h>

#define ONNX(family) extern const Translation onnx_##family[];
#include "onnx.inc"
#undef ONNX

#define ONNX(family) onnx_##family,
static const Translation *const families[] = {
#include "onnx.inc"
};
#undef ONNX

enum { MAX_OPERANDS = 4096 }; /* of a node: an expression of all of them is walked by recursion */

bool refuse(Import *m, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(m->arena, format, args);
    va_end(args);
    if (m->failed)
        return false;
    m->failed = true;
    if (!m->node)
        return diag_error(m->diag, (Span){0}, "%s", text);
    const char *name = m->node->name;
    if (!*name && m->node->output.count)
        name = m->node->output.at[0];
    return diag_error(m->diag, (Span){0}, "node \"%s\" (%s): %s", name, m->node->op, text);
}

static int version_of(const Import *m, const char *domain)
{
    for (size_t i = 0; i < m->model.opset.count; i++)
        if (strcmp(m->model.opset.at[i].domain, domain) == 0)
            return (int)m->model.opset.at[i].version;
    return 0;
}

int opset(const Import *m)
{
    return version_of(m, m->node->domain);
}

const char *row(const Import *m)
{
    return m->translation->row;
}

/* ---- Operands ------------------------------------------------------------------------------- */

int inputs(const Import *m)
{
    return (int)m->node->input.count;
}

int outputs(const Import *m)
{
    return (int)m->node->output.count;
}

bool wanted(const Import *m, int i)
{
    return i < outputs(m) && *m->node->output.at[i];
}

const Tensor *given(Import *m, int i)
{
    bool named = i < inputs(m) && *m->node->input.at[i];
    return named ? find_tensor(m, m->node->input.at[i]) : NULL;
}

/* A constant of one number, of no dimension: it is written where it is used. */
static const Expr *literal(Import *m, const Tensor *tensor)
{
    if (tensor->rank || (!tensor->data && !tensor->number))
        return NULL;
    const Number *number = numbers(m, tensor);
    if (!number || number->real != number->real) /* NaN */
        return NULL;
    return number_expr(m, number, tensor->dtype);
}

const Expr *use_tensor(Import *m, const Tensor *tensor)
{
    Tensor *own = (Tensor *)(uintptr_t)tensor;
    if (own->expr)
        return own->expr;
    const Expr *expr = literal(m, tensor);
    if (expr)
        return expr;
    const Tensor *stated = declare(m, tensor);
    if (!stated)
        return word(m, "none");
    *own = *stated;
    return own->expr;
}

const Expr *use(Import *m, int i)
{
    const Tensor *tensor = given(m, i);
    return tensor ? use_tensor(m, tensor) : NULL;
}

static const Expr *mark(Import *m, int i, const char *role, WeightKind kind)
{
    const Tensor *tensor = given(m, i);
    const Expr *expr = tensor ? use_tensor(m, tensor) : NULL;
    Id at = tensor && tensor->value != NONE && !m->failed ? m->declared_as.at[tensor->value] : 0;
    Declared *declared = at ? &m->declared.at[at - 1] : NULL;
    if (declared && declared->stmt->kind == STMT_PARAM && !declared->role) {
        declared->role = arena_printf(m->kept, "%s of %s", role, m->node->op);
        declared->kind = kind;
        declared->stmt->frozen = kind != WEIGHT_TRAINED;
    }
    return expr;
}

const Expr *weight(Import *m, int i, const char *role)
{
    return mark(m, i, role, WEIGHT_TRAINED);
}

const Expr *running(Import *m, int i, const char *role)
{
    return mark(m, i, role, WEIGHT_STATE);
}

/* ---- Attributes ----------------------------------------------------------------------------- */

static const OnnxAttribute *find_attr(const Import *m, const char *name)
{
    for (size_t i = 0; i < m->node->attribute.count; i++)
        if (strcmp(m->node->attribute.at[i].name, name) == 0)
            return &m->node->attribute.at[i];
    return NULL;
}

bool has_attr(const Import *m, const char *name)
{
    return find_attr(m, name) != NULL;
}

int64_t attr_int(const Import *m, const char *name, int64_t fallback)
{
    const OnnxAttribute *a = find_attr(m, name);
    return a ? a->i : fallback;
}

double attr_float(const Import *m, const char *name, double fallback)
{
    const OnnxAttribute *a = find_attr(m, name);
    return a ? a->f : fallback;
}

const char *attr_word(Import *m, const char *name, const char *fallback)
{
    const OnnxAttribute *a = find_attr(m, name);
    size_t length = a ? wire_length(a->s) : 0;
    bool text = a && a->s.at && length <= MAX_ONNX_NAME;
    return text ? arena_copy(m->arena, (const char *)a->s.at, length) : fallback;
}

const int64_t *attr_ints(const Import *m, const char *name, size_t *count)
{
    static const int64_t none;
    const OnnxAttribute *a = find_attr(m, name);
    *count = a ? a->int_count : 0;
    return !a ? NULL : a->ints ? a->ints : &none;
}

const double *attr_floats(const Import *m, const char *name, size_t *count)
{
    static const double none;
    const OnnxAttribute *a = find_attr(m, name);
    *count = a ? a->float_count : 0;
    return !a ? NULL : a->floats ? a->floats : &none;
}

const char *const *attr_words(Import *m, const char *name, size_t *count)
{
    const OnnxAttribute *a = find_attr(m, name);
    *count = a ? a->string_count : 0;
    if (!a)
        return NULL;
    const char **words = ARENA_ARRAY(m->arena, const char *, *count + 1);
    for (size_t i = 0; i < *count; i++) {
        size_t length = wire_length(a->strings[i]);
        words[i] = length > MAX_ONNX_NAME
                       ? ""
                       : arena_copy(m->arena, (const char *)a->strings[i].at, length);
    }
    return words;
}

const OnnxTensor *attr_tensor(Import *m, const char *name)
{
    const OnnxAttribute *a = find_attr(m, name);
    if (!a || !a->t.at)
        return NULL;
    OnnxTensor *tensor = ARENA_NEW(m->arena, OnnxTensor);
    if (!onnx_read_tensor(&m->read, a->t, tensor)) {
        refuse(m, "%s: %s", name, m->read.fault);
        return NULL;
    }
    const char *fault = tensor->location ? onnx_external(m->files, tensor) : NULL;
    if (fault)
        refuse(m, "%s: %s", name, fault);
    return fault ? NULL : tensor;
}

const OnnxGraph *attr_graph(Import *m, const char *name)
{
    const OnnxAttribute *a = find_attr(m, name);
    OnnxGraph *graph = ARENA_NEW(m->arena, OnnxGraph);
    if (!a || !a->g.at)
        refuse(m, "the attribute %s is missing", name);
    else if (!onnx_read_graph(&m->read, a->g, m->depth + 1, graph))
        refuse(m, "%s: %s", name, m->read.fault);
    else
        return graph;
    return NULL;
}

bool take_axis(Import *m, int64_t axis, int rank, int *taken)
{
    if (axis < -rank || axis >= rank)
        return refuse(m, "axis %lld is outside a tensor of %d dimensions", (long long)axis, rank);
    *taken = (int)(axis < 0 ? axis + rank : axis);
    return true;
}

/* An input that a value is made from, the nearest; NULL. */
static const char *made_from(Import *m, const Tensor *tensor)
{
    const Graph *g = m->scratch[0].graph;
    ARRAY(Id) open = {0};
    bool *seen = ARENA_ARRAY(m->arena, bool, g->value.count + 1);
    if (tensor->value != NONE)
        ARRAY_PUSH(m->arena, &open, tensor->value);
    for (size_t k = 0; k < open.count; k++) {
        const Value *value = &g->value.at[open.at[k]];
        if (value->kind == VALUE_INPUT)
            return value->name;
        if (value->node == NONE || seen[open.at[k]])
            continue;
        seen[open.at[k]] = true;
        const Node *node = &g->node.at[value->node];
        for (Id i = 0; i < node->uses; i++)
            if (node_use(g, node, i).value != NONE)
                ARRAY_PUSH(m->arena, &open, node_use(g, node, i).value);
    }
    return NULL;
}

const Number *known(Import *m, int i, const char *what, int64_t *count)
{
    const Tensor *tensor = given(m, i);
    *count = 0;
    if (!tensor) {
        refuse(m, "%s is not given", what);
        return NULL;
    }
    const Number *number = numbers(m, tensor);
    if (!number) {
        refuse(m, "%s must be known: \"%s\" is computed while the model runs", what, tensor->name);
        const char *input = made_from(m, tensor);
        if (input)
            diag_hint(m->diag, "--bind \"%s\"=FILE.pb makes that input a constant", input);
        return NULL;
    }
    *count = 1;
    for (int k = 0; k < tensor->rank; k++)
        *count *= tensor->dim[k];
    return number;
}

const int64_t *known_ints(Import *m, int i, const char *what, int64_t *count)
{
    const Number *number = known(m, i, what, count);
    if (!number)
        return NULL;
    int64_t *ints = ARENA_ARRAY(m->arena, int64_t, (size_t)*count + 1);
    for (int64_t k = 0; k < *count; k++) {
        ints[k] = number[k].integer;
        if (number[k].expr) {
            refuse(m, "%s follows from a free dimension, and must not", what);
            return NULL;
        }
    }
    return ints;
}

bool ints_of(Import *m, const char *name, int i, const int64_t **ints, int64_t *count)
{
    size_t length;
    *ints = attr_ints(m, name, &length);
    *count = *ints ? (int64_t)length : -1;
    if (*ints || i < 0 || !given(m, i))
        return true;
    *ints = known_ints(m, i, name, count);
    return *ints != NULL;
}

/* ---- Results -------------------------------------------------------------------------------- */

/* ONNX's type for what gplan holds in a dtype. */
static const int canonical[DTYPES] = {
    [F32] = ELEM_FLOAT,  [F16] = ELEM_FLOAT16, [BF16] = ELEM_BFLOAT16, [I32] = ELEM_INT32,
    [I64] = ELEM_INT64,  [U8] = ELEM_UINT8,    [BOOL] = ELEM_BOOL,     [I8] = ELEM_INT8,
    [U16] = ELEM_UINT16, [U32] = ELEM_UINT32,  [F64] = ELEM_DOUBLE};

/* An expression of numbers alone is a number: known, as its operands were. */
static const Tensor *take_number(Import *m, const char *name, int elem, Tensor *tensor)
{
    const Binding *binding = frame_find(m->scratch[0].frame, name);
    Number *number = ARENA_NEW(m->arena, Number);
    if (!binding || !val_is_number(binding->val)) {
        refuse(m, "the result is no tensor");
        return NULL;
    }
    bool is_real = binding->val.kind == VAL_FLOAT;
    number->real = val_number(binding->val);
    number->integer = is_real ? whole_number(number->real) : binding->val.integer;
    tensor->elem = elem != ELEM_NONE              ? elem
                   : is_real                      ? ELEM_FLOAT
                   : binding->val.kind == VAL_INT ? ELEM_INT64
                                                  : ELEM_BOOL;
    tensor->dtype = elem_dtype(tensor->elem);
    tensor->number = number;
    tensor->value = NONE;
    return tensor;
}

static const Tensor *state_as(Import *m, StmtKind kind, const char *name, const Expr *value,
                              int elem)
{
    Stmt *stmt = stmt_make(m, kind, name);
    Tensor *tensor = ARENA_NEW(m->arena, Tensor);
    stmt->value = value;
    tensor->name = name;
    if (!add_stmt(m, stmt))
        return NULL;
    if (!look_up(m, name, tensor))
        return take_number(m, name, elem, tensor);
    tensor->expr = word(m, name);
    tensor->elem = elem_dtype(elem) == tensor->dtype ? elem : canonical[tensor->dtype];
    return tensor;
}

const Tensor *state(Import *m, const Expr *value)
{
    const char *hint = wanted(m, 0) ? m->node->output.at[0] : m->node->op;
    Tensor *named = ARENA_NEW(m->arena, Tensor);
    if (value->kind == EXPR_NAME && look_up(m, value->text, named)) { /* it is one already */
        named->name = value->text;
        named->expr = value;
        named->elem = canonical[named->dtype];
        return named;
    }
    return m->failed ? NULL : state_as(m, STMT_ASSIGN, claim(m, hint), value, ELEM_NONE);
}

bool state_several(Import *m, const Expr *value, size_t count, const Tensor **out)
{
    Stmt *stmt = stmt_make(m, STMT_ASSIGN, NULL);
    stmt->target.count = 0;
    stmt->value = value;
    for (size_t i = 0; i < count; i++) {
        const char *hint = wanted(m, (int)i) ? m->node->output.at[i] : m->node->op;
        ARRAY_PUSH(m->arena, &stmt->target, (Name){claim(m, hint), {0}});
    }
    if (!add_stmt(m, stmt))
        return false;
    for (size_t i = 0; i < count; i++) {
        Tensor *tensor = ARENA_NEW(m->arena, Tensor);
        const char *name = stmt->target.at[i].text;
        if (!look_up(m, name, tensor))
            return refuse(m, "a result is no tensor");
        tensor->name = name;
        tensor->expr = word(m, name);
        tensor->elem = canonical[tensor->dtype];
        out[i] = tensor;
    }
    return true;
}

static bool bind_result(Import *m, int i, const Tensor *tensor)
{
    Tensor *named = ARENA_NEW(m->arena, Tensor);
    *named = *tensor;
    named->name = m->node->output.at[i];
    bind_tensor(m, named->name, named);
    return true;
}

bool result_as(Import *m, int i, const Expr *value, int elem)
{
    if (m->failed || !wanted(m, i))
        return !m->failed;
    const char *name = m->node->output.at[i];
    Dtype dtype = elem_dtype(elem);
    if (dtype == DTYPES)
        return refuse(m, "gplan does not compute in %s", elem_name(elem));
    const Tensor *tensor = state_as(m, STMT_ASSIGN, claim(m, name), value, elem);
    if (tensor && tensor->expr && tensor->dtype != dtype)
        tensor = state_as(m, STMT_ASSIGN, claim(m, name), cast(m, tensor->expr, dtype), elem);
    return tensor && bind_result(m, i, tensor);
}

bool result(Import *m, int i, const Expr *value)
{
    if (m->failed || !wanted(m, i))
        return !m->failed;
    const Tensor *first = given(m, 0);
    int elem = first ? first->elem : ELEM_NONE;
    const char *name = claim(m, m->node->output.at[i]);
    const Tensor *tensor = state_as(m, STMT_ASSIGN, name, value, elem);
    return tensor && bind_result(m, i, tensor);
}

bool result_same(Import *m, int i, const Tensor *tensor)
{
    return !wanted(m, i) || bind_result(m, i, tensor);
}

bool result_data(Import *m, int i, const OnnxTensor *data)
{
    if (!wanted(m, i))
        return true;
    if (elem_dtype(data->elem) == DTYPES)
        return refuse(m, "gplan does not compute in %s", elem_name(data->elem));
    if (data->rank > MAX_RANK)
        return refuse(m, "a tensor has at most %d dimensions, not %d", MAX_RANK, data->rank);
    Tensor tensor = {.elem = data->elem,
                     .dtype = elem_dtype(data->elem),
                     .rank = data->rank,
                     .data = data,
                     .value = NONE};
    memcpy(tensor.dim, data->dim, sizeof tensor.dim);
    return bind_result(m, i, &tensor);
}

bool result_numbers(Import *m, int i, int elem, int rank, const int64_t *dim, const Number *number)
{
    if (!wanted(m, i))
        return true;
    Tensor tensor = {
        .elem = elem, .dtype = elem_dtype(elem), .rank = rank, .number = number, .value = NONE};
    for (int k = 0; k < rank; k++)
        tensor.dim[k] = dim[k];
    return bind_result(m, i, &tensor);
}

/* ---- Translating ---------------------------------------------------------------------------- */

static const Translation *find_translation(const OnnxNode *node, int version)
{
    const Translation *best = NULL;
    for (size_t f = 0; f < sizeof families / sizeof *families; f++)
        for (const Translation *at = families[f]; at->op; at++)
            if (strcmp(at->op, node->op) == 0 && at->since <= version &&
                strcmp(at->domain ? at->domain : "", node->domain) == 0 &&
                (!best || at->since > best->since))
                best = at;
    return best;
}

static bool operands_stand(Import *m)
{
    for (int i = 0; i < inputs(m); i++)
        if (*m->node->input.at[i] && !given(m, i))
            return refuse(m, "it reads \"%s\", which nothing before it makes",
                          m->node->input.at[i]);
    return true;
}

/* All ops read their first operand, but these. */
static bool stands_alone(const char *op)
{
    static const char *const ops[] = {"Constant", "RandomNormal", "RandomUniform", "Loop", "Scan"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(op, ops[i]) == 0)
            return true;
    return false;
}

static bool translate_node(Import *m, const OnnxNode *node)
{
    m->node = node;
    if (++m->nodes > MAX_NODES)
        return refuse(m, "more than %d nodes, with those of functions and loops", MAX_NODES);
    const int version = version_of(m, node->domain);
    const Translation *found = m->translation = find_translation(node, version);
    if (node->input.count > MAX_OPERANDS || node->output.count > MAX_OPERANDS)
        return refuse(m, "it has more than %d operands or results", MAX_OPERANDS);
    if (!operands_stand(m))
        return false;
    const OnnxFunction *function = find_function(m, node);
    if (function)
        return call_function(m, function);
    if (!found && *node->domain)
        return refuse(m, "gplan has no op of that name in the domain %s", node->domain);
    if (!found)
        return refuse(m, "gplan has no such op, or not as of opset %d", version);
    if (!given(m, 0) && !stands_alone(node->op))
        return refuse(m, "it has no operand");
    bool done = false;
    if (!follow(m, &done))
        return false;
    if (!done && (!found->translate(m) || m->failed))
        return m->failed ? false : refuse(m, "it cannot be translated");
    for (int i = 0; i < outputs(m); i++)
        if (wanted(m, i) && !find_tensor(m, node->output.at[i]))
            return refuse(m, "its output %d is not supported", i);
    return true;
}

bool translate_nodes(Import *m, const OnnxGraph *graph)
{
    const OnnxNode *outer = m->node;
    for (size_t i = 0; i < graph->node.count; i++) {
        const OnnxNode *node = &graph->node.at[i];
        for (size_t k = 0; k < node->output.count && !m->depth; k++)
            if (*node->output.at[k] && find_tensor(m, node->output.at[k])) {
                m->node = node;
                return refuse(m, "\"%s\" is made twice", node->output.at[k]);
            }
        if (!translate_node(m, node))
            return false;
    }
    m->node = outer;
    return true;
}

bool translate_body(Import *m, const OnnxGraph *graph, const Tensor *const *in, const Tensor **out)
{
    for (size_t i = 0; i < graph->input.count; i++)
        if (in[i])
            bind_tensor(m, graph->input.at[i].name, in[i]);
    m->depth++;
    bool good = import_initializers(m, graph) && translate_nodes(m, graph);
    m->depth--;
    for (size_t i = 0; good && i < graph->output.count; i++) {
        out[i] = find_tensor(m, graph->output.at[i].name);
        if (!out[i])
            return refuse(m, "\"%s\", a result of its graph, is made by nothing",
                          graph->output.at[i].name);
    }
    return good;
}
