/* Elements and slices that are picked, set or joined by indices which name a place for each of
 * them: gather_elements and scatter along one axis, gather_nd and scatter_nd by several indices at
 * once. */
#include "frontend/ops/rules.h"

#include <string.h>

enum { SCATTER_SET, SCATTER_ADD, SCATTER_MUL, SCATTER_MAX, SCATTER_MIN }; /* words of reduction */

/* Index has the rank of x, and is no longer than x save along the axis. */
static bool index_along(Graph *g, Call *c)
{
    View x = call_view(g, c, 0), index = call_view(g, c, 1);
    int axis;
    if (!want_index(g, c, 1) || !call_axis(g, c, "axis", x.rank, &axis))
        return false;
    call_set(c, "axis", axis);
    bool fits = index.rank == x.rank;
    for (int i = 0; fits && i < x.rank; i++)
        fits = i == axis || index.dim[i] <= x.dim[i];
    if (!fits)
        return call_error_at(g, c, 1, "index %s must have the dims of %s or smaller, save axis %d",
                             use_text(g, call_operand(c, 1)), use_text(g, call_operand(c, 0)),
                             axis);
    return true;
}

static bool shape_gather_elements(Graph *g, Call *c)
{
    View index = call_view(g, c, 1);
    return index_along(g, c) && call_output(g, c, call_dtype(g, c, 0), index.rank, index.dim);
}

/* Updates are of x's dtype, or both are reals of some width; truth is set, not added. */
static bool check_updates(Graph *g, const Call *c)
{
    const Dtype dtype = call_dtype(g, c, 0), updates = call_dtype(g, c, 2);
    if (updates != dtype && !(dtype_is_real(updates) && dtype_is_real(dtype)))
        return call_error_at(g, c, 2, "updates are %s, but x is %s", dtype_name(updates),
                             dtype_name(dtype));
    if (dtype == BOOL && call_int(c, "reduction") != SCATTER_SET)
        return call_error_at(g, c, 0, "only reduction = none takes bool");
    return true;
}

static bool shape_scatter(Graph *g, Call *c)
{
    View x = call_view(g, c, 0), index = call_view(g, c, 1), updates = call_view(g, c, 2);
    if (!index_along(g, c) || !check_updates(g, c))
        return false;
    bool same = index.rank == updates.rank;
    for (int i = 0; same && i < index.rank; i++)
        same = index.dim[i] == updates.dim[i];
    if (!same)
        return call_error_at(g, c, 2, "updates %s must have the dims of index, %s",
                             use_text(g, call_operand(c, 2)), dims_text(g, c, 1));
    const int64_t how = call_int(c, "reduction");
    const Dtype dtype = call_dtype(g, c, 0);
    c->wide_result |=
        how == SCATTER_ADD || how == SCATTER_MUL; /* sums are not rounded in between */
    return call_output(g, c, dtype_is_real(dtype) ? F32 : dtype, x.rank, x.dim);
}

/* ---- Several indices ------------------------------------------------------------------------ */

static bool shape_flat_index(Graph *g, Call *c)
{
    View index = call_view(g, c, 0);
    return call_output(g, c, I64, index.rank - 1, index.dim);
}

/* The last axis of index names positions on the axes of x that follow those of the batch, which
 * both share. Leaves one number for each of them, x as slices in a row, and how many axes were
 * named. */
static bool flatten_index(Graph *g, Call *c, int batch, Use *slices, Use *flat, int *axes)
{
    View x = call_view(g, c, 0), index = call_view(g, c, 1);
    int64_t size[MAX_RANK] = {0}, rows = 1, batches = 1, dim[MAX_RANK];
    if (!want_index(g, c, 1))
        return false;
    bool fits = index.rank > batch && index.dim[index.rank - 1] <= x.rank - batch;
    for (int i = 0; fits && i < batch; batches *= x.dim[i++])
        fits = x.dim[i] == index.dim[i];
    if (!fits)
        return call_error_at(g, c, 1, "the last axis of index %s names places on axes of %s",
                             use_text(g, call_operand(c, 1)), use_text(g, call_operand(c, 0)));
    *axes = batch + (int)index.dim[index.rank - 1];
    for (int i = 0; i < *axes; i++)
        rows *= x.dim[i];
    memcpy(size, x.dim + batch, (size_t)(*axes - batch) * sizeof *size);
    Call call = call_begin(g, c, "flat_index");
    call_use(g, &call, call_operand(c, 1));
    call_set_list(&call, "size", MAX_RANK, size);
    call_set(&call, "batches", (double)batches);
    if (!call_finish(g, &call))
        return false;
    *flat = call.result.at[0];
    dim[0] = rows;
    memcpy(dim + 1, x.dim + *axes, (size_t)(x.rank - *axes) * sizeof *dim);
    *slices = use_reshape(g, c, call_operand(c, 0), 1 + x.rank - *axes, dim);
    return slices->value != NONE;
}

static bool build_gather_nd(Graph *g, Call *c)
{
    View x = call_view(g, c, 0);
    int64_t batch = call_int(c, "batch_dims");
    Use operand[2];
    int axes;
    if (batch < 0 || batch >= x.rank)
        return call_error(g, c, "batch_dims = %lld must be from 0 to less than %d",
                          (long long)batch, x.rank);
    if (!flatten_index(g, c, (int)batch, &operand[0], &operand[1], &axes))
        return false;
    call_result(g, c, call_op(g, c, "gather", 2, operand));
    return c->result.at[0].value != NONE;
}

/* Slices are rows of x, of which every element has the index of its row. */
static bool build_scatter_nd(Graph *g, Call *c)
{
    View x = call_view(g, c, 0), index = call_view(g, c, 1), updates = call_view(g, c, 2);
    Use slices, flat;
    int axes;
    if (!flatten_index(g, c, 0, &slices, &flat, &axes))
        return false;
    bool fits = updates.rank == index.rank - 1 + x.rank - axes;
    int64_t dim[2] = {1, 1};
    for (int i = 0; fits && i < updates.rank; i++) {
        bool row = i < index.rank - 1;
        fits = updates.dim[i] == (row ? index.dim[i] : x.dim[axes + i - (index.rank - 1)]);
        dim[!row] *= updates.dim[i];
    }
    if (!fits)
        return call_error_at(g, c, 2,
                             "updates must be the dims of index but the last, then those of x "
                             "after the first %d: x %s, index %s, updates %s",
                             axes, use_text(g, call_operand(c, 0)), use_text(g, call_operand(c, 1)),
                             use_text(g, call_operand(c, 2)));
    Call call = call_begin(g, c, "scatter");
    call_set(&call, "reduction", (double)call_int(c, "reduction"));
    call_use(g, &call, use_reshape(g, c, slices, 2, (int64_t[]){view_count(&x) / dim[1], dim[1]}));
    call_use(g, &call,
             use_make(g, flat.value, (View){.rank = 2, .dim = {dim[0], dim[1]}, .stride = {1, 0}}));
    call_use(g, &call, use_reshape(g, c, call_operand(c, 2), 2, dim));
    if (!call_finish(g, &call))
        return false;
    call_result(g, c, use_reshape(g, c, call.result.at[0], x.rank, x.dim));
    return c->result.at[0].value != NONE;
}

/* ---- Gradients ------------------------------------------------------------------------------ */

static Use filled(Grad *grad, Dtype dtype, const View *like)
{
    View view = {.rank = like->rank};
    memcpy(view.dim, like->dim, sizeof view.dim);
    Use zero = use_make(grad->g, graph_literal(grad->g, 0, dtype).value, view);
    return grad_op(grad, "copy", 1, &zero);
}

static Use scattered(Grad *grad, Use x, Use index, Use updates, int reduction)
{
    Call c = call_begin(grad->g, &grad->at, "scatter");
    call_set(&c, "axis", node_attr(grad->g, grad->node, "axis")->number);
    call_set(&c, "reduction", reduction);
    call_use(grad->g, &c, x);
    call_use(grad->g, &c, index);
    call_use(grad->g, &c, updates);
    return call_finish(grad->g, &c) ? c.result.at[0] : (Use){NONE, NONE};
}

static Use gathered(Grad *grad, Use x)
{
    Call c = call_begin(grad->g, &grad->at, "gather_elements");
    call_set(&c, "axis", node_attr(grad->g, grad->node, "axis")->number);
    call_use(grad->g, &c, x);
    call_use(grad->g, &c, grad_operand(grad, 1));
    return call_finish(grad->g, &c) ? c.result.at[0] : (Use){NONE, NONE};
}

static bool grad_gather_elements(Grad *grad)
{
    View x = use_view(grad->g, grad_operand(grad, 0));
    grad->din[0] =
        scattered(grad, filled(grad, F32, &x), grad_operand(grad, 1), grad->dout[0], SCATTER_ADD);
    return grad->din[0].value != NONE;
}

/* Whether an update is the last of its element, the one that was kept: the places of updates along
 * the axis are scattered themselves, and read back. */
static Use is_kept(Grad *grad)
{
    Graph *g = grad->g;
    View x = use_view(g, grad_operand(grad, 0)), index = use_view(g, grad_operand(grad, 1));
    int axis = (int)node_attr(g, grad->node, "axis")->list[0];
    View spread = {.rank = index.rank};
    memcpy(spread.dim, index.dim, sizeof spread.dim);
    spread.stride[axis] = 1;
    Use places = use_places(g, &grad->at, index.dim[axis]);
    if (places.value == NONE)
        return places;
    places = use_make(g, places.value, spread);
    Use last = scattered(grad, filled(grad, I64, &x), grad_operand(grad, 1), places, SCATTER_SET);
    return grad_op(grad, "equal", 2, (Use[]){gathered(grad, last), places});
}

static bool grad_scatter_set(Grad *grad)
{
    Graph *g = grad->g;
    View index = use_view(g, grad_operand(grad, 1));
    if (grad->wanted[0])
        grad->din[0] = scattered(grad, grad->dout[0], grad_operand(grad, 1),
                                 filled(grad, F32, &index), SCATTER_SET);
    if (grad->wanted[2])
        grad->din[2] = grad_op(
            grad, "where", 3,
            (Use[]){is_kept(grad), gathered(grad, grad->dout[0]), graph_literal(g, 0, F32)});
    return !grad->wanted[2] || grad->din[2].value != NONE;
}

/* Those that are equal to the result share its gradient. */
static bool grad_scatter_extreme(Grad *grad)
{
    Use x = grad_operand(grad, 0), y = grad_result(grad, 0), updates = grad_operand(grad, 2);
    Use zero = graph_literal(grad->g, 0, F32), one = graph_literal(grad->g, 1, F32);
    Use own = grad_op(grad, "equal", 2, (Use[]){x, y});
    Use theirs = grad_op(grad, "equal", 2, (Use[]){updates, gathered(grad, y)});
    Use count =
        scattered(grad, grad_op(grad, "where", 3, (Use[]){own, one, zero}), grad_operand(grad, 1),
                  grad_op(grad, "where", 3, (Use[]){theirs, one, zero}), SCATTER_ADD);
    Use share = grad_op(grad, "div", 2, (Use[]){grad->dout[0], count});
    if (share.value == NONE)
        return false;
    grad->din[0] = grad_op(grad, "where", 3, (Use[]){own, share, zero});
    grad->din[2] = grad_op(grad, "where", 3, (Use[]){theirs, gathered(grad, share), zero});
    return grad->din[0].value != NONE && grad->din[2].value != NONE;
}

static bool grad_scatter(Grad *grad)
{
    switch (node_attr(grad->g, grad->node, "reduction")->list[0]) {
    case SCATTER_SET:
        return grad_scatter_set(grad);
    case SCATTER_ADD:
        grad->din[0] = grad->dout[0];
        grad->din[2] = gathered(grad, grad->dout[0]);
        return grad->din[2].value != NONE;
    case SCATTER_MUL:
        return call_error(grad->g, &grad->at, "has no derivative with reduction = mul");
    default:
        return grad_scatter_extreme(grad);
    }
}

/* ---- The batch ------------------------------------------------------------------------------ */

/* Beside the axis that is pointed into, where x and index go together. */
static int batch_picks(const Graph *g, const Node *n, int operand, int axis, int output)
{
    (void)operand, (void)output;
    View x = use_view(g, node_use(g, n, 0)), index = use_view(g, node_use(g, n, 1));
    return x.dim[axis] == index.dim[axis] ? batch_beside(g, n, "axis", axis) : BATCH_MIXED;
}

static int batch_flat(const Graph *g, const Node *n, int operand, int axis, int output)
{
    (void)operand, (void)output;
    bool alone = g->attr.at[n->attr + (Id)op_arg(n->op, "batches")].list[0] == 1;
    return alone && axis < g->value.at[n->value].rank ? axis : BATCH_MIXED;
}

static double flops_updates(const Graph *g, Id node)
{
    View index = use_view(g, node_use(g, &g->node.at[node], 1));
    return (double)view_count(&index);
}

static double flops_none(const Graph *g, Id node)
{
    (void)g, (void)node;
    return 0;
}

#define INDEX_RANGE "i32 or i64; a negative one counts from the end"
#define ONE_AXIS                                                                     \
    {                                                                                \
        .name = "axis", .kind = ARG_INT, .fallback = "0", .help = "that index is of" \
    }
#define REDUCTION                                                  \
    {                                                              \
        .name = "reduction", .kind = ARG_WORD, .fallback = "none", \
        .words = "none add mul max min",                           \
        .help = "none: an update takes the element's place, "      \
                "the last of several"                              \
    }

const OpRow ops_scatter[] = {
    {.name = "gather_elements",
     .flags = OP_LOOKS_UP | OP_HALF,
     .help = "for each index the element of x at its place, with the index on the axis; dims of "
             "index",
     .args = {{.name = "x", .help = "any dtype, one dimension or more"},
              {.name = "index", .help = INDEX_RANGE},
              ONE_AXIS},
     .shape = shape_gather_elements,
     .grad = grad_gather_elements,
     .flops = flops_none,
     .strided = 2,
     .batch = batch_picks},
    {.name = "gather_nd",
     .help = "slices of x at places that the last axis of index names: [..., n] picks by n axes",
     .args = {{.name = "x", .help = "any dtype, one dimension or more"},
              {.name = "index", .help = INDEX_RANGE},
              {.name = "batch_dims",
               .kind = ARG_INT,
               .flags = ARG_FRONT,
               .fallback = "0",
               .help = "axes that x and index share"}},
     .build = build_gather_nd},
    {.name = "flat_index",
     .args = {{.name = "index"},
              {.name = "size", .kind = ARG_INTS, .count = MAX_RANK, .help = "of the axes"},
              {.name = "batches", .kind = ARG_INT, .help = "axes before them, as one"}},
     .flags = OP_HIDDEN | OP_LOOKS_UP,
     .shape = shape_flat_index,
     .flops = flops_none,
     .batch = batch_flat},
    {.name = "scatter",
     .flags = OP_LOOKS_UP | OP_HALF,
     .help = "x with updates in place of its elements, or joined to them, at the index on the axis",
     .args = {{.name = "x", .help = "any dtype, one dimension or more"},
              {.name = "index", .help = INDEX_RANGE},
              {.name = "updates", .help = "dims of index, dtype of x"},
              ONE_AXIS,
              REDUCTION},
     .shape = shape_scatter,
     .grad = grad_scatter,
     .flops = flops_updates,
     .strided = 2,
     .inplace = 1,
     .batch = batch_picks},
    {.name = "scatter_nd",
     .help =
         "x with updates in place of slices, or joined to them, at places that the last axis of "
         "index names",
     .args = {{.name = "x", .help = "any dtype, one dimension or more"},
              {.name = "index", .help = INDEX_RANGE},
              {.name = "updates", .help = "dims of index but the last, then those of a slice"},
              REDUCTION},
     .build = build_scatter_nd},
    {0},
};
