/* From a call with bound arguments to nodes of the graph.
 *
 * call_finish is the one way in: parameters are made, the row's rule is applied, operands are
 * brought to a common dtype and to common dims, copied where the row takes no strides, and the
 * node is added after all existing ones.
 */
#include "frontend/base/names.h"
#include "frontend/frontend.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Reading a call ------------------------------------------------------------------------- */

Use call_operand(const Call *c, int i)
{
    return (size_t)i < c->use.count ? c->use.at[i] : (Use){NONE, NONE};
}

bool call_has(const Call *c, int i)
{
    return call_operand(c, i).value != NONE;
}

const Attr *call_attr(const Call *c, const char *setting)
{
    int i = op_arg(c->op, setting);
    assert(i >= 0);
    return &c->attr[i];
}

int64_t call_int(const Call *c, const char *setting)
{
    return call_attr(c, setting)->list[0];
}

const Attr *node_attr(const Graph *g, Id node, const char *setting)
{
    int i = op_arg(g->node.at[node].op, setting);
    assert(i >= 0);
    return &g->attr.at[g->node.at[node].attr + (Id)i];
}

View call_view(const Graph *g, const Call *c, int i)
{
    return use_view(g, call_operand(c, i));
}

Dtype call_dtype(const Graph *g, const Call *c, int i)
{
    const Dtype dtype = (Dtype)g->value.at[call_operand(c, i).value].dtype;
    return dtype_is_narrow(dtype) && !(c->op->flags & OP_STORED) ? F32 : dtype;
}

static void explain_scope(Graph *g, Id scope)
{
    for (; scope != NONE && scope != 0; scope = g->scope.at[scope].parent)
        if (g->scope.at[scope].call.line)
            diag_note(g->diag, g->scope.at[scope].call, "in %s, from here",
                      g->scope.at[scope].path);
}

bool call_error(Graph *g, const Call *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(g->arena, format, args);
    va_end(args);
    diag_error(g->diag, c->span, "%s: %s", c->op->name, text);
    explain_scope(g, c->scope);
    return false;
}

bool call_error_at(Graph *g, const Call *c, int i, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(g->arena, format, args);
    va_end(args);
    Span span = c->use_span && c->use_span[i].line ? c->use_span[i] : c->span;
    diag_error(g->diag, span, "%s: %s", c->op->name, text);
    const Value *value = call_has(c, i) ? &g->value.at[call_operand(c, i).value] : NULL;
    if (value && value->span.line && value->span.line != span.line)
        diag_note(g->diag, value->span, "%s is %s", value->name,
                  shape_text(g->arena, (Dtype)value->dtype, value->rank, value->dim));
    explain_scope(g, c->scope);
    return false;
}

bool call_axis(Graph *g, const Call *c, const char *setting, int rank, int *axis)
{
    int64_t given = call_int(c, setting);
    if (given < -rank || given >= rank)
        return call_error(g, c, "%s = %lld is out of range for a tensor of %d dimension%s", setting,
                          (long long)given, rank, rank == 1 ? "" : "s");
    *axis = (int)(given < 0 ? given + rank : given);
    return true;
}

/* ---- Writing a call ------------------------------------------------------------------------- */

static bool is_operand(const Arg *arg)
{
    return arg->kind == ARG_TENSOR;
}

/* A setting at its default, as the row writes it: a number, a word, true, false or a list. */
static Attr fallback(const Arg *arg)
{
    Attr attr = {0};
    const char *text = arg->fallback;
    if (!text)
        return attr;
    if (*text == '[') {
        for (char *at = (char *)(uintptr_t)text + 1; *at && *at != ']' && attr.count < MAX_RANK;) {
            attr.list[attr.count++] = strtoll(at, &at, 10);
            at += strspn(at, ", ");
        }
        attr.number = attr.count ? (double)attr.list[0] : 0;
        return attr;
    }
    char *end;
    attr.number = strcmp(text, "true") == 0 ? 1 : strtod(text, &end);
    const char *words = arg->words ? arg->words : "";
    size_t length = strlen(text);
    for (int word = 0; *words; word++) {
        size_t span = strcspn(words, " ");
        if (span == length && memcmp(words, text, span) == 0) {
            attr.is_word = true;
            attr.number = word;
        }
        words += span + strspn(words + span, " ");
    }
    int64_t whole = fabs(attr.number) < 9e18 ? (int64_t)attr.number : 0;
    bool all = arg->kind == ARG_INTS && arg->count < MAX_RANK && !attr.is_word;
    attr.count = all ? arg->count : 1;
    if (arg->kind == ARG_INTS && (attr.is_word || strcmp(text, "none") == 0))
        attr.count = 0;
    for (int i = 0; i < attr.count; i++)
        attr.list[i] = whole;
    return attr;
}

Call call_begin(Graph *g, const Call *from, const char *op)
{
    Call c = {.op = op_find(op)};
    if (!c.op) {
        fprintf(stderr, "gplan: internal error: a row uses the op %s, which has no row\n", op);
        exit(3);
    }
    c.span = from->span;
    c.scope = from->scope;
    c.phase = from->phase;
    c.wide_result = from->wide_result;
    c.name = arena_printf(g->arena, "%s/%s", from->name, op);
    for (int i = 0; i < MAX_ARGS && c.op->args[i].name; i++)
        if (!is_operand(&c.op->args[i]))
            c.attr[i] = fallback(&c.op->args[i]);
    return c;
}

Call call_at(const Graph *g, Id node)
{
    const Node *n = &g->node.at[node];
    return (Call){
        .op = n->op, .span = n->span, .scope = n->scope, .name = n->name, .phase = n->phase};
}

void call_use(Graph *g, Call *c, Use use)
{
    ARRAY_PUSH(g->arena, &c->use, use);
}

void call_set(Call *c, const char *setting, double number)
{
    int i = op_arg(c->op, setting);
    assert(i >= 0);
    const Arg *arg = &c->op->args[i];
    c->attr[i] = (Attr){.number = number, .count = 1, .given = true};
    c->attr[i].is_word = arg->kind == ARG_WORD;
    if (arg->kind != ARG_FLOAT)
        c->attr[i].list[0] = (int64_t)number;
}

void call_set_list(Call *c, const char *setting, int count, const int64_t *list)
{
    int i = op_arg(c->op, setting);
    assert(i >= 0 && count <= MAX_RANK);
    c->attr[i] =
        (Attr){.number = count ? (double)list[0] : 0, .count = (uint8_t)count, .given = true};
    for (int k = 0; k < count; k++)
        c->attr[i].list[k] = list[k];
}

void call_result(Graph *g, Call *c, Use use)
{
    ARRAY_PUSH(g->arena, &c->result, use);
}

bool call_output(Graph *g, Call *c, Dtype dtype, int rank, const int64_t *dim)
{
    const char *error;
    if (!dims_check(dtype, rank, dim, &error))
        return call_error(g, c, "the output %s is invalid: %s",
                          rank <= MAX_RANK ? shape_text(g->arena, dtype, rank, dim) : "", error);
    assert(c->outs < MAX_OUTPUTS);
    c->out[c->outs].dtype = (uint8_t)dtype;
    c->out[c->outs].rank = (uint8_t)rank;
    memcpy(c->out[c->outs].dim, dim, (size_t)rank * sizeof *dim);
    c->outs++;
    return true;
}

/* ---- Parameters ----------------------------------------------------------------------------- */

Init init_const(double number)
{
    return (Init){.kind = number == 0   ? INIT_ZEROS
                          : number == 1 ? INIT_ONES
                                        : INIT_CONST,
                  .a = number};
}

Init init_xavier(int64_t fan_in, int64_t fan_out)
{
    double limit = sqrt(6.0 / ((double)fan_in + (double)fan_out)); /* Glorot and Bengio 2010 */
    return (Init){.kind = INIT_UNIFORM, .a = -limit, .b = limit};
}

Init init_he(int64_t fan_in)
{
    return (Init){.kind = INIT_NORMAL, .b = sqrt(2.0 / (double)fan_in)}; /* He et al. 2015 */
}

static bool same_span(Span a, Span b)
{
    return a.line == b.line && a.column == b.column;
}

/* A name that exists already is the same tensor where the model is lowered once more, or where
 * the same text is called again (a shared block); else two layers have one name. */
static bool reuse(Graph *g, const Call *c, Id id, ValueKind kind, int rank, const int64_t *dim)
{
    const Value *value = &g->value.at[id];
    bool again = value->program != g->program || same_span(value->span, c->span);
    if (value->kind != kind || !again) {
        call_error(g, c, "the name %s is taken", value->name);
        diag_note(g->diag, value->span, "by this");
        diag_hint(g->diag, "give one of them another name, e.g. name = \"%s_2\"", c->op->name);
        return false;
    }
    if (value->rank != rank || memcmp(value->dim, dim, (size_t)rank * sizeof *dim) != 0)
        return call_error(g, c, "%s must have shape %s here, but it is %s", value->name,
                          shape_text(g->arena, F32, rank, dim),
                          shape_text(g->arena, F32, value->rank, value->dim));
    return true;
}

static bool make_operand(Graph *g, Call *c, ValueKind kind, const char *arg, Init init, Dtype dtype,
                         int rank, const int64_t *dim)
{
    const char *error, *name = arena_printf(g->arena, "%s.%s", c->name, arg);
    if (!dims_check(dtype, rank, dim, &error))
        return call_error(g, c, "its parameter %s %s is invalid: %s", arg,
                          shape_text(g->arena, dtype, rank, dim), error);
    Id id = graph_find(g, name);
    if (id == NONE) {
        id = graph_value(g, kind, name, dtype, rank, dim, c->span);
        g->value.at[id].init = init;
    } else if (!reuse(g, c, id, kind, rank, dim)) {
        return false;
    }
    size_t operand = 0;
    for (int i = 0; c->op->args[i].name && strcmp(c->op->args[i].name, arg) != 0; i++)
        operand += is_operand(&c->op->args[i]);
    while (c->use.count <= operand)
        call_use(g, c, (Use){NONE, NONE});
    c->use.at[operand] = use_of(id);
    return true;
}

bool call_param(Graph *g, Call *c, const char *arg, Init init, int rank, const int64_t *dim)
{
    return make_operand(g, c, VALUE_PARAM, arg, init, F32, rank, dim);
}

bool call_state(Graph *g, Call *c, const char *arg, Init init, Dtype dtype, int rank,
                const int64_t *dim)
{
    return make_operand(g, c, VALUE_STATE, arg, init, dtype, rank, dim);
}

/* ---- Elementwise: one dtype, one shape ------------------------------------------------------ */

/* The dtype that an operand with a fixed dtype must have (Arg.words), or DTYPES. */
static Dtype fixed_dtype(const OpRow *op, int operand)
{
    return op->args[operand].words ? dtype_find(op->args[operand].words) : DTYPES;
}

static int dtype_order(Dtype dtype) /* the later of two is what both become */
{
    static const int order[DTYPES] = {
        [BOOL] = 0, [U8] = 1, [I32] = 2, [I64] = 3, [F16] = 4, [BF16] = 4, [F32] = 4};
    return order[dtype];
}

static bool is_literal(const Graph *g, Use use)
{
    return g->value.at[use.value].kind == VALUE_LITERAL;
}

/* What the operands become. A literal goes along with the tensors where it can. */
static Dtype common_dtype(const Graph *g, const Call *c)
{
    Dtype common = DTYPES;
    bool fraction = false;
    for (size_t i = 0; i < c->use.count; i++) {
        const Value *value = &g->value.at[c->use.at[i].value];
        if (fixed_dtype(c->op, (int)i) != DTYPES)
            continue;
        if (value->kind == VALUE_LITERAL)
            fraction |= value->literal != floor(value->literal) || value->dtype == F32;
        else if (common == DTYPES || dtype_order((Dtype)value->dtype) > dtype_order(common))
            common = (Dtype)value->dtype;
    }
    if (common == DTYPES || (fraction && !dtype_is_float(common)))
        return common == DTYPES && !fraction ? I64 : F32;
    return (c->op->flags & OP_FLOAT && !dtype_is_float(common)) || dtype_is_narrow(common) ? F32
                                                                                           : common;
}

static bool convert(Graph *g, Call *c, Dtype dtype, Use *use)
{
    const Dtype from = (Dtype)g->value.at[use->value].dtype;
    if (from == dtype || (dtype_is_narrow(from) && dtype_is_real(dtype)))
        return true; /* reals of all widths are computed as f32 */
    if (is_literal(g, *use)) {
        View view = use_view(g, *use);
        *use = use_make(g, graph_literal(g, g->value.at[use->value].literal, dtype).value, view);
        return true;
    }
    Call cast = call_begin(g, c, "cast");
    call_set(&cast, "dtype", dtype);
    call_use(g, &cast, *use);
    if (!call_finish(g, &cast))
        return false;
    *use = cast.result.at[0];
    return true;
}

static bool unify_dtypes(Graph *g, Call *c, Dtype *common)
{
    *common = common_dtype(g, c);
    if (c->op->flags & OP_LOGICAL && *common != BOOL)
        return call_error(g, c, "takes bool, not %s; compare first, e.g. x > 0",
                          dtype_name(*common));
    if (c->op->flags & OP_NUMBERS && *common == BOOL)
        return call_error(g, c, "takes numbers, not bool; cast(x, f32) gives 0 and 1");
    if (c->op->flags & OP_INTEGERS && (*common == BOOL || dtype_is_float(*common)))
        return call_error(g, c, "takes integers, not %s; use cast(x, i32)", dtype_name(*common));
    for (size_t i = 0; i < c->use.count; i++) {
        Dtype fixed = fixed_dtype(c->op, (int)i);
        Use use = c->use.at[i];
        if (fixed != DTYPES && g->value.at[use.value].dtype != fixed && !is_literal(g, use))
            return call_error_at(g, c, (int)i, "%s must be %s, not %s", c->op->args[i].name,
                                 dtype_name(fixed), use_text(g, use));
        if (!c->op->shape && !convert(g, c, fixed != DTYPES ? fixed : *common, &c->use.at[i]))
            return false;
    }
    return true;
}

static bool unify_dims(Graph *g, Call *c, int *rank, int64_t *dim)
{
    *rank = 0;
    for (size_t i = 0; i < c->use.count; i++) {
        View view = use_view(g, c->use.at[i]);
        int64_t joined[MAX_RANK];
        int joined_rank = dims_broadcast(*rank, dim, view.rank, view.dim, joined);
        if (joined_rank < 0)
            return call_error(g, c, "shapes do not broadcast: %s and %s",
                              shape_text(g->arena, DTYPES, *rank, dim),
                              shape_text(g->arena, DTYPES, view.rank, view.dim));
        *rank = joined_rank;
        memcpy(dim, joined, sizeof joined);
    }
    for (size_t i = 0; i < c->use.count; i++) {
        View view = use_view(g, c->use.at[i]);
        view = view_broadcast(&view, *rank, dim);
        c->use.at[i] = use_make(g, c->use.at[i].value, view);
    }
    return true;
}

static bool elementwise(Graph *g, Call *c)
{
    Dtype dtype, narrow = c->op->flags & OP_STORED ? F32 : precision_of(g, c);
    int rank;
    int64_t dim[MAX_RANK];
    if (!unify_dtypes(g, c, &dtype) || !unify_dims(g, c, &rank, dim))
        return false;
    if (c->op->flags & OP_STORED) /* what only moves it leaves it as it is */
        dtype = call_dtype(g, c, 0);
    if (!(c->op->shape ? c->op->shape(g, c)
                       : call_output(g, c, c->op->flags & OP_TO_BOOL ? BOOL : dtype, rank, dim)))
        return false;
    if (!(c->op->flags & OP_STORED))
        precision_outputs(g, c, narrow);
    return true;
}

/* ---- Adding the node ------------------------------------------------------------------------ */

/* Whether an output is the next version of operand i: written with its layout. */
static bool is_updated(const OpRow *op, size_t i)
{
    bool any = false;
    for (int k = 0; k < MAX_OUTPUTS; k++)
        any |= op->updates[k] == i + 1;
    return any;
}

/* Operands that the row takes only dense are copied; one that is a literal becomes a tensor. */
static bool copy_strided(Graph *g, Call *c)
{
    for (size_t i = 0; i < c->use.count; i++) {
        Use use = c->use.at[i];
        if (use.value == NONE || (c->op->flags & OP_ELEMENTWISE && !is_updated(c->op, i)))
            continue;
        View view = use_view(g, use);
        const bool any = !(c->op->flags & OP_ELEMENTWISE) && op_takes_view(c->op, (Id)i, &view);
        if (!is_literal(g, use) && (any || view_is_dense(&view)))
            continue;
        c->use.at[i] = call_op(g, c, "copy", 1, &use);
        if (c->use.at[i].value == NONE)
            return false;
    }
    return true;
}

/* Names are unique within a program: the second of a name is name#2, and so on. */
static const char *unique_name(Graph *g, const char *name)
{
    uint32_t *seen = names_at(g->node_names, name);
    if (*seen == NONE) {
        *seen = 1;
        return name;
    }
    return unique_name(g, arena_printf(g->arena, "%s#%u", name, ++*seen));
}

static void add_node(Graph *g, Call *c)
{
    Node node = {.op = c->op,
                 .use = (Id)g->use.count,
                 .uses = (Id)c->use.count,
                 .value = (Id)g->value.count,
                 .values = (Id)c->outs,
                 .attr = (Id)g->attr.count,
                 .scope = c->scope,
                 .name = unique_name(g, c->name),
                 .stream = c->stream,
                 .span = c->span,
                 .phase = c->phase,
                 .program = (uint8_t)g->program};
    for (size_t i = 0; i < c->use.count; i++)
        ARRAY_PUSH(g->arena, &g->use, c->use.at[i]);
    for (int i = 0; i < MAX_ARGS && c->op->args[i].name; i++)
        ARRAY_PUSH(g->arena, &g->attr, c->attr[i]);
    for (int i = 0; i < c->outs; i++) {
        const char *name = i ? arena_printf(g->arena, "%s:%d", node.name, i) : node.name;
        Id id = graph_value(g, VALUE_RESULT, name, (Dtype)c->out[i].dtype, c->out[i].rank,
                            c->out[i].dim, c->span);
        g->value.at[id].node = (Id)g->node.count;
        g->value.at[id].output = (uint8_t)i;
        const Id updated = node_updates(g, &node, (Id)i);
        if (updated != NONE)
            g->value.at[id].previous = node_use(g, &node, updated).value;
        call_result(g, c, use_of(id));
    }
    if (!node.stream)
        node.stream = node.name;
    ARRAY_PUSH(g->arena, &g->node, node);
}

/* Those that are only stored are for cast, and for what moves tensors. */
static bool check_stored(Graph *g, const Call *c)
{
    for (size_t i = 0; i < c->use.count; i++) {
        const Use use = c->use.at[i];
        const Dtype dtype = use.value == NONE ? F32 : (Dtype)g->value.at[use.value].dtype;
        if (op_takes(c->op, dtype))
            continue;
        call_error_at(g, c, (int)i, "does not take %s: %s is a storage-only dtype",
                      use_text(g, use), dtype_name(dtype));
        diag_hint(g->diag, "cast it first: cast(x, %s)", dtype_computed_as(dtype));
        return false;
    }
    return true;
}

/* A parameter knows the layer that it is of: the first that takes it as one. */
static void note_layer(Graph *g, const Call *c)
{
    int operand = 0;
    for (int i = 0; i < MAX_ARGS && c->op->args[i].name; i++) {
        if (!is_operand(&c->op->args[i]))
            continue;
        Use use = call_operand(c, operand++);
        if (!(c->op->args[i].flags & ARG_PARAM) || use.value == NONE || use.view != NONE ||
            g->value.at[use.value].layer)
            continue;
        g->value.at[use.value].layer = c->op;
        g->value.at[use.value].arg = (uint8_t)i;
    }
}

static bool finish(Graph *g, Call *c)
{
    const OpRow *op = c->op;
    if (op->params && !op->params(g, c))
        return false;
    note_layer(g, c);
    size_t operand = 0;
    for (int i = 0; i < MAX_ARGS && op->args[i].name; i++) {
        if (!is_operand(&op->args[i]) || op->args[i].flags & ARG_VARIADIC)
            continue;
        if (c->use.count <= operand)
            call_use(g, c, (Use){NONE, NONE});
        if (!(op->args[i].flags & (ARG_OPTIONAL | ARG_PARAM)) && !call_has(c, (int)operand))
            return call_error(g, c, "the argument %s is missing", op->args[i].name);
        operand++;
    }
    if (op->build)
        return (op->precision != PRECISION_WIDE || precision_operands(g, c, F32)) &&
               op->build(g, c);
    const bool computes = !(op->flags & (OP_ELEMENTWISE | OP_STORED));
    const Dtype narrow = computes ? precision_of(g, c) : F32;
    if ((computes && !precision_operands(g, c, narrow)) || !check_stored(g, c) ||
        !(op->flags & OP_ELEMENTWISE ? elementwise(g, c) : op->shape(g, c)))
        return false;
    if (computes)
        precision_outputs(g, c, narrow);
    if (!copy_strided(g, c))
        return false;
    add_node(g, c);
    return precision_results(g, c, narrow);
}

bool call_finish(Graph *g, Call *c)
{
    int errors = diag_errors(g->diag);
    if (finish(g, c))
        return true;
    assert(diag_errors(g->diag) > errors); /* a rule that fails says why */
    (void)errors;
    c->result.count = 0;
    for (int i = 0; i < MAX_OUTPUTS; i++)
        call_result(g, c, (Use){NONE, NONE});
    return false;
}

Use call_op(Graph *g, const Call *from, const char *op, int count, const Use *operands)
{
    Call c = call_begin(g, from, op);
    for (int i = 0; i < count; i++) {
        if (operands[i].value == NONE)
            return operands[i];
        call_use(g, &c, operands[i]);
    }
    call_finish(g, &c);
    return c.result.at[0];
}
