/* Ops that pick or add by integer indices. An index outside its table is an error of the emitted
 * program, never a read outside it. */
#include "frontend/ops/rules.h"

#include <string.h>

/* The rule of NumPy's take: the axis is replaced by the dims of the indices. */
static bool shape_gather(Graph *g, Call *c)
{
    View x = call_view(g, c, 0), index = call_view(g, c, 1);
    int64_t dim[2 * MAX_RANK];
    int axis, rank = 0;
    if (!want_index(g, c, 1) || !call_axis(g, c, "axis", x.rank, &axis))
        return false;
    call_set(c, "axis", axis);
    for (int i = 0; i < axis; i++)
        dim[rank++] = x.dim[i];
    for (int i = 0; i < index.rank; i++)
        dim[rank++] = index.dim[i];
    for (int i = axis + 1; i < x.rank; i++)
        dim[rank++] = x.dim[i];
    return call_output(g, c, call_dtype(g, c, 0), rank, dim);
}

static bool params_embedding(Graph *g, Call *c)
{
    int64_t dim[2] = {call_int(c, "count"), call_int(c, "size")};
    if (!call_has(c, 0) || call_has(c, 1))
        return true;
    if (dim[0] >= 1 && dim[1] >= 1)
        return call_param(g, c, "table", (Init){.kind = INIT_NORMAL, .b = 0.02}, 2, dim);
    call_error(g, c, "needs a table, or count and size to make one");
    diag_hint(g->diag, "embedding(ids, table) or embedding(ids, count = 1000, size = 64)");
    return false;
}

static bool build_embedding(Graph *g, Call *c)
{
    View table = call_view(g, c, 1);
    if (!want_index(g, c, 0))
        return false;
    if (table.rank < 1)
        return call_error_at(g, c, 1, "table must have at least one dimension, but is %s",
                             use_text(g, call_operand(c, 1)));
    Use out = call_op(g, c, "gather", 2, (Use[]){call_operand(c, 1), call_operand(c, 0)});
    if (precision_asked(g, c) != F32) /* the rows, not the table */
        out = precision_cast(g, c, out, precision_asked(g, c));
    call_result(g, c, out);
    return out.value != NONE;
}

static bool shape_one_hot(Graph *g, Call *c)
{
    View index = call_view(g, c, 0);
    int64_t dim[MAX_RANK + 1], depth = call_int(c, "depth");
    if (!want_index(g, c, 0))
        return false;
    if (depth < 1)
        return call_error(g, c, "depth = %lld must be positive", (long long)depth);
    memcpy(dim, index.dim, sizeof index.dim);
    dim[index.rank] = depth;
    return call_output(g, c, F32, index.rank + 1, dim);
}

static bool shape_scatter_add(Graph *g, Call *c)
{
    View x = call_view(g, c, 0), index = call_view(g, c, 1), updates = call_view(g, c, 2);
    if (!want_f32(g, c, 0) || !want_index(g, c, 1) || !want_f32(g, c, 2))
        return false;
    bool fits = x.rank >= 1 && updates.rank == index.rank + x.rank - 1;
    for (int i = 0; fits && i < updates.rank; i++)
        fits = updates.dim[i] == (i < index.rank ? index.dim[i] : x.dim[i - index.rank + 1]);
    if (!fits)
        return call_error_at(g, c, 2,
                             "updates must be the dims of index, then those of x after axis 0: "
                             "x %s, index %s, updates %s",
                             use_text(g, call_operand(c, 0)), use_text(g, call_operand(c, 1)),
                             use_text(g, call_operand(c, 2)));
    return call_output(g, c, F32, x.rank, x.dim);
}

/* ---- Gradients ------------------------------------------------------------------------------ */

static Use zeros(Grad *grad, int rank, const int64_t *dim)
{
    View view = {.rank = (uint8_t)rank};
    memcpy(view.dim, dim, (size_t)rank * sizeof *dim);
    Use zero = use_make(grad->g, graph_literal(grad->g, 0, F32).value, view);
    return grad_op(grad, "copy", 1, &zero);
}

/* scatter_add of the gradients, with the axis moved to the front. The rows of a table are added to
 * what its gradient has from elsewhere. */
static bool grad_gather(Grad *grad)
{
    Graph *g = grad->g;
    Use x = grad_operand(grad, 0), index = grad_operand(grad, 1);
    View xv = use_view(g, x), iv = use_view(g, index);
    int axis = (int)node_attr(g, grad->node, "axis")->list[0], rank = 0, perm[MAX_RANK];
    int64_t dim[MAX_RANK] = {xv.dim[axis]};
    for (int i = 0; i < iv.rank; i++)
        perm[rank++] = axis + i;
    for (int i = 0; i < axis; i++)
        perm[rank++] = i;
    for (int i = axis + iv.rank; i < xv.rank - 1 + iv.rank; i++)
        perm[rank++] = i;
    for (int i = 0, k = 1; i < xv.rank; i++)
        if (i != axis)
            dim[k++] = xv.dim[i];
    Use updates = use_permute(g, grad->dout[0], perm), sum = {NONE, NONE};
    bool whole = axis == 0 && x.view == NONE;
    if (whole)
        sum = grad_flow(grad, 0);
    Call c = call_begin(g, &grad->at, grad_is_kept(g, sum) ? "scatter_accumulate" : "scatter_add");
    if (grad_is_kept(g, sum))
        call_set(&c, "begins", grad_begins(g, sum));
    call_use(g, &c, sum.value == NONE ? zeros(grad, xv.rank, dim) : sum);
    call_use(g, &c, index);
    call_use(g, &c, updates);
    if (!call_finish(g, &c))
        return false;
    sum = c.result.at[0];
    if (whole) { /* of 16 bits where its value is */
        sum = precision_cast(g, &grad->at, sum, (Dtype)g->value.at[x.value].dtype);
        if (sum.value == NONE)
            return false;
        grad_set_flow(grad, 0, sum);
        return true;
    }
    int back[MAX_RANK];
    for (int i = 0; i < xv.rank; i++)
        back[i] = i == axis ? 0 : i < axis ? i + 1 : i;
    grad->din[0] = use_permute(g, sum, back);
    return true;
}

static bool grad_scatter_add(Grad *grad)
{
    grad->din[0] = grad->dout[0];
    if (grad->wanted[2])
        grad->din[2] = grad_op(grad, "gather", 2, (Use[]){grad->dout[0], grad_operand(grad, 1)});
    return !grad->wanted[2] || grad->din[2].value != NONE;
}

static double flops_scatter(const Graph *g, Id node)
{
    View updates = use_view(g, node_use(g, &g->node.at[node], 2));
    return (double)view_count(&updates);
}

static double flops_none(const Graph *g, Id node)
{
    (void)g, (void)node;
    return 0;
}

/* ---- The batch ------------------------------------------------------------------------------ */

/* The dims of index replace the axis that it points into. */
static int batch_gather(const Graph *g, const Node *n, int operand, int axis, int output)
{
    int picked = (int)g->attr.at[n->attr + (Id)op_arg(n->op, "axis")].list[0];
    (void)output;
    if (operand == 1)
        return picked + axis;
    int more = use_view(g, node_use(g, n, 1)).rank - 1;
    return axis == picked ? BATCH_MIXED : axis < picked ? axis : axis + more;
}

/* Rows are pointed into, and what index has is summed; the axes of a row are independent. */
static int batch_scatter_add(const Graph *g, const Node *n, int operand, int axis, int output)
{
    (void)output;
    int row = operand == 2 ? axis - use_view(g, node_use(g, n, 1)).rank + 1 : axis;
    return operand == 1 || row < 1 ? BATCH_MIXED : row;
}

const OpRow ops_index[] = {
    {.name = "gather",
     .flags = OP_LOOKS_UP | OP_HALF,
     .help =
         "slices of x along an axis, picked by index: the axis is replaced by the dims of index",
     .args = {{.name = "x", .help = "any dtype, one dimension or more"},
              {.name = "index", .help = "i32 or i64; a negative one counts from the end"},
              {.name = "axis", .kind = ARG_INT, .fallback = "0", .help = "which"}},
     .shape = shape_gather,
     .grad = grad_gather,
     .flops = flops_none,
     .batch = batch_gather},
    {.name = "embedding",
     .help = "rows of a table, picked by ids: ids [...] and table [count, size] give [..., size]",
     .args = {{.name = "ids", .help = "i32 or i64; a negative one counts from the end"},
              {.name = "table",
               .flags = ARG_PARAM,
               .help = "normal(0.02) at first",
               .foreign = "weight"},
              {.name = "count",
               .kind = ARG_INT,
               .flags = ARG_FRONT,
               .fallback = "0",
               .help = "rows of the table it makes"},
              {.name = "size",
               .kind = ARG_INT,
               .flags = ARG_FRONT,
               .fallback = "0",
               .help = "of a row"}},
     .params = params_embedding,
     .build = build_embedding},
    {.name = "one_hot",
     .flags = OP_LOOKS_UP,
     .help = "f32[..., depth]: 1 at the id, 0 elsewhere",
     .args = {{.name = "ids", .help = "i32 or i64, from 0 to less than depth"},
              {.name = "depth", .kind = ARG_INT, .flags = ARG_FRONT, .help = "of the new axis"}},
     .shape = shape_one_hot,
     .flops = flops_none,
     .batch = batch_each},
    {.name = "scatter_add",
     .precision = PRECISION_WIDE,
     .flags = OP_LOOKS_UP | OP_HALF,
     .help = "x with rows of updates added to its rows at index; index may repeat a row",
     .args = {{.name = "x", .help = "f32"},
              {.name = "index", .help = "i32 or i64; a negative one counts from the end"},
              {.name = "updates", .help = "dims of index, then those of x after axis 0"}},
     .shape = shape_scatter_add,
     .grad = grad_scatter_add,
     .flops = flops_scatter,
     .inplace = 1,
     .batch = batch_scatter_add},
    {.name = "scatter_accumulate",
     .precision = PRECISION_WIDE,
     .kernel = "scatter_add",
     .help = "scatter_add to the sum of a gradient over micro-batches, which the first may begin",
     .args = {{.name = "x"},
              {.name = "index"},
              {.name = "updates"},
              {.name = "begins", .kind = ARG_BOOL, .fallback = "false"}},
     .shape = shape_scatter_add,
     .flops = flops_scatter,
     .updates = {1},
     .flags = OP_EFFECT | OP_HIDDEN | OP_LOOKS_UP | OP_HALF,
     .batch = batch_never},
    {0},
};
