/* The backward pass, as nodes of the graph.
 *
 * Requires: a lowered training program. Leaves: its gradient appended. Nodes are walked from the
 * last to the first; by then everyone who reads a value has contributed to its gradient. What no
 * trained parameter feeds gets none. Linear in nodes and operands.
 *
 * A row sees its operands through their views. The backward pass through a view is here: what was
 * broadcast is summed, what was permuted is permuted back, and slices of one value gather in one
 * buffer, so that an unrolled recurrence stays linear.
 */
#include "frontend/frontend.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A gradient of a part of a value: `use` has the dims of the view, summed where it broadcasts. */
typedef struct {
    Use use;
    View view;
} Part;

typedef struct Flow {
    Use sum; /* of what covers the whole value; value NONE: nothing yet */
    ARRAY(Part) part;
} Flow;

typedef struct {
    Graph *g;
    bool *needs; /* by value: a trained parameter feeds it, and it is a float */
    bool *exact; /* by value: someone reads it as it is, not only rounded to 16 bits */
    Flow *flow;  /* by value */
    size_t values;
} Backward;

static bool is_trained(const Value *value)
{
    return value->kind == VALUE_PARAM && !value->frozen && value->dtype == F32;
}

static const Use nothing = {NONE, NONE};

/* ---- For the rows --------------------------------------------------------------------------- */

static Use operand_of(const Grad *grad, int i)
{
    return node_use(grad->g, &grad->g->node.at[grad->node], (Id)i);
}

/* Whether it is f32 made of a narrow value, or of a parameter. */
static bool is_converted(const Graph *g, Id value)
{
    const Id made = value == NONE ? NONE : g->value.at[value].node;
    if (made == NONE || g->value.at[value].dtype != F32 ||
        !(g->node.at[made].op->flags & OP_CONVERTS))
        return false;
    const Value *from = &g->value.at[node_use(g, &g->node.at[made], 0).value];
    return dtype_is_narrow((Dtype)from->dtype) || from->kind == VALUE_PARAM;
}

/* Whether it is made of something that its own gradient keeps: with little work, or, by a norm that
 * is elementwise once it has its statistics, in the loop that reads it. */
static bool is_made_again(const Grad *grad, Id value, bool in_loop)
{
    const Graph *g = grad->g;
    const Value *is = value == NONE ? NULL : &g->value.at[value];
    const Node *made = is && is->node != NONE ? &g->node.at[is->node] : NULL;
    return made && (made->op->flags & OP_AGAIN || (in_loop && made->op->apply)) &&
           made->phase == PHASE_FORWARD && grad->needs[value] && !is->output && !is->hint;
}

/* What a node reads, or the same of the same numbers as a node of the backward pass; what that is
 * made of may be, too. */
static Use as_kept(const Grad *grad, const OpRow *reader, Use use)
{
    Graph *g = grad->g;
    if (!is_converted(g, use.value) &&
        !is_made_again(grad, use.value, reader->flags & OP_ELEMENTWISE))
        return use;
    const Id id = g->value.at[use.value].node;
    const Node made = g->node.at[id];
    Call c = call_begin(g, &grad->at, made.op->name);
    c.wide_result = g->value.at[use.value].dtype == F32;
    if (made.op->apply)
        return (Use){made.op->apply(g, &c, id).value, use.view};
    for (int i = 0; i < MAX_ARGS && made.op->args[i].name; i++)
        c.attr[i] = g->attr.at[made.attr + (Id)i];
    for (Id i = 0; i < made.uses; i++)
        call_use(g, &c, as_kept(grad, made.op, node_use(g, &made, i)));
    return call_finish(g, &c) ? (Use){c.result.at[0].value, use.view} : use;
}

Use grad_operand(const Grad *grad, int i)
{
    return as_kept(grad, grad->g->node.at[grad->node].op, operand_of(grad, i));
}

/* Whether operand i is rounded to 16 bits as it stands. */
static bool is_rounded(const Graph *g, const Node *node, Id i)
{
    return node_use(g, node, i).view == NONE && node->op->flags & OP_CONVERTS &&
           dtype_is_narrow((Dtype)g->value.at[node->value].dtype);
}

/* The narrow value that a result of a kernel was rounded to, where only that is read; or NONE. */
static Id rounded_result(const Grad *grad, Id value)
{
    const Graph *g = grad->g;
    if (grad->exact[value] || g->value.at[value].dtype != F32)
        return NONE;
    for (size_t n = g->value.at[value].node + 1; n < g->node.count; n++) {
        const Node *node = &g->node.at[n];
        for (Id i = 0; i < node->uses; i++)
            if (node_use(g, node, i).value == value && node->phase == PHASE_FORWARD &&
                is_rounded(g, node, i))
                return node->value;
        if (n > g->value.at[value].node + 4u) /* it comes right after the kernel */
            break;
    }
    return NONE;
}

Use grad_result(const Grad *grad, int i)
{
    Graph *g = grad->g;
    const Id value = node_value(&g->node.at[grad->node], (Id)i);
    const Id narrow = rounded_result(grad, value);
    return narrow == NONE ? use_of(value) : precision_cast(g, &grad->at, use_of(narrow), F32);
}

void grad_wide(Grad *grad, int i)
{
    grad->at.wide_result = grad->g->value.at[operand_of(grad, i).value].dtype == F32;
}

Use grad_op(Grad *grad, const char *op, int count, const Use *operands)
{
    return call_op(grad->g, &grad->at, op, count, operands);
}

/* ---- Sums ----------------------------------------------------------------------------------- */

/* Gradients of parameters that micro-batches sum up are added to the sum in place, each as it is
 * made: the first of the first micro-batch starts it. Over ranks those of one micro-batch are
 * summed up first (ranks.c). */
static bool is_kept(const Graph *g, Id value)
{
    return g->train.times > 1 && !g->ranks.count && is_trained(&g->value.at[value]);
}

/* What the next gradient of the value is added to; NONE: nothing has come yet. */
static Use sum_so_far(Graph *g, const Flow *flow, Id value)
{
    const Value is = g->value.at[value];
    if (flow->sum.value != NONE || !is_kept(g, value))
        return flow->sum;
    return use_of(graph_value(g, VALUE_GRADIENT, arena_printf(g->arena, "%s.gradient", is.name),
                              (Dtype)is.dtype, is.rank, is.dim, is.span));
}

static Use add(Graph *g, const Call *at, Use a, Use b)
{
    if (a.value == NONE)
        return b;
    return call_op(g, at, "add", 2, (Use[]){a, b});
}

/* A gradient of the whole value. */
static bool add_to(Graph *g, const Call *at, Flow *flow, Id value, Use use)
{
    if (!is_kept(g, value)) {
        flow->sum = add(g, at, flow->sum, use);
        return flow->sum.value != NONE;
    }
    Use sum = sum_so_far(g, flow, value);
    Call c = call_begin(g, at, grad_begins(g, sum) ? "accumulate" : "accumulate_more");
    c.name = arena_printf(g->arena, "%s.accumulate", g->value.at[value].name);
    call_use(g, &c, sum);
    call_use(g, &c, use);
    call_finish(g, &c);
    flow->sum = c.result.at[0];
    return flow->sum.value != NONE;
}

Use grad_flow(Grad *grad, int i)
{
    Id value = operand_of(grad, i).value;
    return sum_so_far(grad->g, &grad->flow[value], value);
}

void grad_set_flow(Grad *grad, int i, Use sum)
{
    grad->flow[operand_of(grad, i).value].sum = sum;
}

bool grad_begins(const Graph *g, Use sum)
{
    return g->value.at[sum.value].kind == VALUE_GRADIENT;
}

bool grad_is_kept(const Graph *g, Use sum)
{
    return sum.value != NONE && g->value.at[value_first(g, sum.value)].kind == VALUE_GRADIENT;
}

/* ---- The backward pass through a view ------------------------------------------------------- */

/* A row may have summed already: then the gradient has 1 where the operand is broadcast. */
static Use sum_broadcast(Graph *g, const Call *at, Use use, View *view)
{
    int64_t axes[MAX_RANK];
    int count = 0;
    View given = use_view(g, use);
    for (int i = 0; i < view->rank; i++)
        if (view->stride[i] == 0 && view->dim[i] > 1) {
            if (given.dim[i] > 1)
                axes[count++] = i;
            view->dim[i] = 1;
        }
    if (!count)
        return use;
    Call c = call_begin(g, at, "sum");
    call_set_list(&c, "axis", count, axes);
    call_use(g, &c, use);
    if (!call_finish(g, &c))
        return nothing;
    View kept = {.rank = given.rank}; /* of its own dims, so that it may be added without a copy */
    int64_t stride = 1;
    for (int i = given.rank; i-- > 0; stride *= kept.dim[i]) {
        kept.dim[i] = view->stride[i] == 0 && view->dim[i] == 1 ? 1 : given.dim[i];
        kept.stride[i] = stride;
    }
    return use_make(g, c.result.at[0].value, kept);
}

/* Transposes an operand so that the axes of `view` are in order of their strides, none negative:
 * then its elements are in the order of the view's elements in memory. */
static Use transpose_view(Graph *g, Use use, View *view)
{
    View from = use_view(g, use);
    for (int i = 0; i < view->rank; i++)
        if (view->stride[i] < 0) {
            view->offset += (view->dim[i] - 1) * view->stride[i];
            from.offset += (from.dim[i] - 1) * from.stride[i];
            view->stride[i] = -view->stride[i];
            from.stride[i] = -from.stride[i];
        }
    for (int i = 1; i < view->rank; i++) /* axes of one element may be anywhere */
        for (int k = i; k > 0 && view->dim[k] > 1 &&
                        (view->dim[k - 1] == 1 || view->stride[k - 1] < view->stride[k]);
             k--) {
            int64_t dim = view->dim[k], stride = view->stride[k];
            view->dim[k] = view->dim[k - 1];
            view->stride[k] = view->stride[k - 1];
            view->dim[k - 1] = dim;
            view->stride[k - 1] = stride;
            dim = from.dim[k];
            stride = from.stride[k];
            from.dim[k] = from.dim[k - 1];
            from.stride[k] = from.stride[k - 1];
            from.dim[k - 1] = dim;
            from.stride[k - 1] = stride;
        }
    return use_make(g, use.value, from);
}

static Use reshape(Graph *g, const Call *at, Use use, int rank, const int64_t *dim)
{
    View from = use_view(g, use), to;
    if (!view_reshape(&from, rank, dim, &to)) {
        use = call_op(g, at, "copy", 1, &use);
        if (use.value == NONE)
            return use;
        from = use_view(g, use);
        bool dense = view_reshape(&from, rank, dim, &to);
        assert(dense);
        (void)dense;
    }
    return use_make(g, use.value, to);
}

/* `use` is the gradient of `operand`, a view of a value: adds it to what flows to the value. */
static bool contribute(Backward *b, const Call *at, Use operand, Use use)
{
    Graph *g = b->g;
    Flow *flow = &b->flow[operand.value];
    const Value value = g->value.at[operand.value];
    if (operand.view == NONE) {
        use = precision_cast(g, at, use, (Dtype)value.dtype);
        return use.value != NONE && add_to(g, at, flow, operand.value, use);
    }
    View view = use_view(g, operand);
    use = precision_cast(g, at, sum_broadcast(g, at, use, &view), (Dtype)value.dtype);
    if (use.value == NONE)
        return false;
    use = transpose_view(g, use, &view);
    if (view_count(&view) == value_count(&value)) {
        use = reshape(g, at, use, value.rank, value.dim);
        return use.value != NONE && add_to(g, at, flow, operand.value, use);
    }
    ARRAY_PUSH(g->arena, &flow->part, (Part){use, view});
    return true;
}

/* ---- Slices of one value -------------------------------------------------------------------- */

/* The part of the value as a box: its first index and its dims on each axis. */
typedef struct {
    Use use;
    int64_t begin[MAX_RANK], dim[MAX_RANK];
} Box;

/* Only steps of 1 along the value's own axes make a box. */
static bool find_box(const Value *value, const Part *part, Box *box)
{
    View whole = value_view(value);
    int64_t offset = part->view.offset;
    for (int i = 0; i < value->rank; i++) {
        box->begin[i] = offset / whole.stride[i];
        offset %= whole.stride[i];
        box->dim[i] = 1;
    }
    int axis = 0;
    for (int k = 0; k < part->view.rank; k++) {
        if (part->view.dim[k] == 1)
            continue;
        while (axis < value->rank && whole.stride[axis] != part->view.stride[k])
            axis++;
        while (axis + 1 < value->rank && value->dim[axis] == 1 &&
               whole.stride[axis + 1] == part->view.stride[k])
            axis++; /* of axes with one stride the last is longer than 1 */
        if (axis == value->rank || box->begin[axis] + part->view.dim[k] > value->dim[axis])
            return false;
        box->dim[axis++] = part->view.dim[k];
    }
    return true;
}

static int by_begin(const void *a, const void *b)
{
    const Box *m = a, *n = b;
    for (int i = 0; i < MAX_RANK; i++)
        if (m->begin[i] != n->begin[i])
            return m->begin[i] < n->begin[i] ? -1 : 1;
    return 0;
}

/* The axis along which the boxes, in order, fill the value without gap or overlap; -1: none. */
static int tiled_axis(const Value *value, Box *box, size_t count)
{
    qsort(box, count, sizeof *box, by_begin);
    int axis = -1;
    for (int i = 0; i < value->rank; i++)
        if (box[0].dim[i] != value->dim[i]) {
            if (axis >= 0)
                return -1;
            axis = i;
        }
    int64_t next = 0;
    for (size_t k = 0; k < count && axis >= 0; k++) {
        for (int i = 0; i < value->rank; i++)
            if (i != axis && box[k].dim[i] != value->dim[i])
                return -1;
        if (box[k].begin[axis] != next)
            return -1;
        next += box[k].dim[axis];
    }
    return axis >= 0 && next == value->dim[axis] ? axis : -1;
}

/* Parts that fill the value side by side are joined: their producers can then write in place. */
static Use join_parts(Graph *g, const Call *at, Id id, Flow *flow)
{
    const Value value = g->value.at[id];
    Box *box = ARENA_ARRAY(g->arena, Box, flow->part.count);
    for (size_t i = 0; i < flow->part.count; i++) {
        box[i].use = flow->part.at[i].use;
        if (!find_box(&value, &flow->part.at[i], &box[i]))
            return nothing;
    }
    int axis = tiled_axis(&value, box, flow->part.count);
    if (axis < 0)
        return nothing;
    Call c = call_begin(g, at, "concat");
    call_set(&c, "axis", axis);
    for (size_t i = 0; i < flow->part.count; i++)
        call_use(g, &c, reshape(g, at, box[i].use, value.rank, box[i].dim));
    return call_finish(g, &c) ? c.result.at[0] : nothing;
}

/* One after the other into one buffer: each takes over the bytes of the last. */
static Use add_parts(Graph *g, const Call *at, Id id, Use sum, const Flow *flow)
{
    const Value value = g->value.at[id];
    if (sum.value == NONE) {
        View zeros = {.rank = value.rank};
        memcpy(zeros.dim, value.dim, sizeof zeros.dim);
        Use zero = use_make(g, graph_literal(g, 0, F32).value, zeros);
        sum = value.dtype == F32 ? call_op(g, at, "copy", 1, &zero)
                                 : precision_cast(g, at, zero, (Dtype)value.dtype);
    }
    for (size_t i = 0; i < flow->part.count && sum.value != NONE; i++) {
        const Part *part = &flow->part.at[i];
        int64_t stride[MAX_RANK] = {0};
        memcpy(stride, part->view.stride, part->view.rank * sizeof *stride);
        Call c = call_begin(g, at, "add_window");
        call_set(&c, "offset", (double)part->view.offset);
        call_set_list(&c, "stride", MAX_RANK, stride);
        call_use(g, &c, sum);
        call_use(g, &c, part->use);
        sum = call_finish(g, &c) ? c.result.at[0] : nothing;
    }
    return sum;
}

/* The whole gradient of a value, when everyone has contributed. */
static Use collect(Backward *b, const Call *at, Id value)
{
    Flow *flow = &b->flow[value];
    if (!flow->part.count)
        return flow->sum;
    Use parts = flow->part.count > 1 ? join_parts(b->g, at, value, flow) : nothing;
    if (parts.value == NONE && is_kept(b->g, value))
        parts = add_parts(b->g, at, value, nothing, flow);
    if (parts.value == NONE)
        return add_parts(b->g, at, value, flow->sum, flow);
    return add_to(b->g, at, flow, value, parts) ? flow->sum : nothing;
}

/* ---- The walk ------------------------------------------------------------------------------- */

static bool blocks(const OpRow *op)
{
    return op->flags & OP_ELEMENTWISE && op->dexpr[0] && strcmp(op->dexpr[0], "0") == 0 &&
           !op->dexpr[1];
}

static void find_needs(Backward *b, size_t nodes)
{
    const Graph *g = b->g;
    for (size_t v = 0; v < b->values; v++)
        b->needs[v] = is_trained(&g->value.at[v]);
    for (size_t n = 0; n < nodes; n++) {
        const Node *node = &g->node.at[n];
        bool any = false;
        for (Id i = 0; i < node->uses; i++) {
            Id value = node_use(g, node, i).value;
            any |= value != NONE && b->needs[value];
        }
        for (Id i = 0; any && i < node->values && !blocks(node->op); i++)
            b->needs[node_value(node, i)] =
                dtype_is_real((Dtype)g->value.at[node_value(node, i)].dtype);
    }
}

/* What only its rounded numbers are read of need not be kept besides. */
static void find_exact(Backward *b, size_t nodes)
{
    const Graph *g = b->g;
    for (size_t n = 0; n < nodes; n++)
        for (Id i = 0; i < g->node.at[n].uses; i++) {
            const Id value = node_use(g, &g->node.at[n], i).value;
            if (value != NONE && !is_rounded(g, &g->node.at[n], i))
                b->exact[value] = true;
        }
    for (size_t i = 0; i < g->output.count; i++)
        b->exact[g->output.at[i].use.value] = true;
}

/* The operand of a derived row: a letter of `reads`. */
static Use read_letter(const Grad *grad, char what)
{
    return what == 'y'   ? grad_result(grad, 0)
           : what == 'g' ? grad->dout[0]
                         : grad_operand(grad, what - 'a');
}

static bool elementwise_grad(Grad *grad)
{
    Graph *g = grad->g;
    const Node node = g->node.at[grad->node];
    for (Id i = 0; i < node.uses; i++) {
        const char *expr = i < 4 ? node.op->dexpr[i] : NULL;
        if (!grad->wanted[i] || (expr && strcmp(expr, "0") == 0))
            continue;
        if (!expr)
            return call_error(g, &grad->at, "is not differentiable with respect to %s",
                              node.op->args[i].name);
        if (strcmp(expr, "dy") == 0) {
            grad->din[i] = grad->dout[0];
            continue;
        }
        char name[64];
        snprintf(name, sizeof name, "%s_d%c", node.op->name, 'a' + (char)i);
        Call c = call_begin(g, &grad->at, name);
        c.stream = node.stream; /* what was drawn in the forward pass is drawn again */
        for (int k = 0; k < MAX_ARGS && node.op->args[k].name; k++)
            if (node.op->args[k].kind != ARG_TENSOR)
                c.attr[op_arg(c.op, node.op->args[k].name)] = g->attr.at[node.attr + (Id)k];
        for (const char *what = c.op->reads; *what; what++)
            call_use(g, &c, read_letter(grad, *what));
        if (!call_finish(g, &c))
            return false;
        grad->din[i] = c.result.at[0];
    }
    return true;
}

static bool no_derivative(Grad *grad)
{
    return call_error(grad->g, &grad->at,
                      "is not differentiable, but depends on a trained parameter");
}

static bool node_gradient(Backward *b, Id id)
{
    Graph *g = b->g;
    const Node node = g->node.at[id];
    Use dout[MAX_OUTPUTS], *din = ARENA_ARRAY(g->arena, Use, node.uses + 1);
    bool *wanted = ARENA_ARRAY(g->arena, bool, node.uses + 1), flows = false, any = false;
    Grad grad = {.g = g, .node = id, .at = call_at(g, id), .wanted = wanted, .dout = dout};
    grad.din = din;
    grad.needs = b->needs;
    grad.flow = b->flow;
    grad.exact = b->exact;
    grad.at.phase = PHASE_BACKWARD;
    grad.at.name = arena_printf(g->arena, "d.%s", node.name);
    for (Id i = 0; i < node.values; i++) {
        dout[i] =
            b->needs[node_value(&node, i)] ? collect(b, &grad.at, node_value(&node, i)) : nothing;
        flows |= dout[i].value != NONE;
    }
    for (Id i = 0; i < node.uses; i++) {
        Id value = node_use(g, &node, i).value;
        wanted[i] = value != NONE && b->needs[value];
        any |= wanted[i];
        din[i] = nothing;
    }
    if (!flows || !any)
        return true;
    bool good = node.op->grad                     ? node.op->grad(&grad)
                : node.op->flags & OP_ELEMENTWISE ? elementwise_grad(&grad)
                                                  : no_derivative(&grad);
    grad.at.wide_result = false;
    for (Id i = 0; i < node.uses && good; i++)
        if (wanted[i] && din[i].value != NONE)
            good = contribute(b, &grad.at, node_use(g, &node, i), din[i]);
    return good;
}

bool gradients(Graph *g, Use loss, Use **gradient)
{
    size_t nodes = g->node.count;
    Backward b = {.g = g,
                  .values = g->value.count,
                  .needs = ARENA_ARRAY(g->arena, bool, g->value.count),
                  .exact = ARENA_ARRAY(g->arena, bool, g->value.count),
                  .flow = ARENA_ARRAY(g->arena, Flow, g->value.count)};
    for (size_t i = 0; i < b.values; i++)
        b.flow[i].sum = nothing;
    find_needs(&b, nodes);
    find_exact(&b, nodes);
    const Use seed = loss_scale_factor(g);
    View view = use_view(g, loss);
    for (int i = 0; i < view.rank; i++)
        view.stride[i] = 0;
    view.offset = 0;
    Call at = call_at(g, g->value.at[loss.value].node);
    if (!contribute(&b, &at, loss, use_make(g, seed.value, view)))
        return false;
    bool good = true;
    for (size_t n = nodes; n-- > 0 && good;)
        if (g->node.at[n].program == g->program)
            good = node_gradient(&b, (Id)n);
    for (size_t v = 0; v < b.values; v++) {
        Call from = {.span = g->value.at[v].span, .phase = PHASE_BACKWARD};
        from.name = arena_printf(g->arena, "d.%s", g->value.at[v].name);
        b.flow[v].sum = good && is_trained(&g->value.at[v]) ? collect(&b, &from, (Id)v) : nothing;
    }
    *gradient = ARENA_ARRAY(g->arena, Use, g->value.count);
    for (size_t v = 0; v < g->value.count; v++)
        (*gradient)[v] = v < b.values ? b.flow[v].sum : nothing;
    return good;
}
