/* Products of matrices. The kernel sees both operands with the same batch dims: the rule turns
 * vectors into matrices and broadcasts by views, so nothing is copied. */
#include "frontend/ops/rules.h"

/* A vector as a matrix of one row or, on the right, of one column. */
static View as_matrix(View v, bool right)
{
    if (v.rank != 1)
        return v;
    v.rank = 2;
    int one = right ? 1 : 0;
    v.dim[1 - one] = v.dim[0];
    v.stride[1 - one] = v.stride[0];
    v.dim[one] = 1;
    v.stride[one] = 1;
    return v;
}

/* Operands that were vectors, as a setting: the matrices that they become do not show it to whoever
 * asks the rule again. */
enum { VECTOR_LEFT = 1, VECTOR_RIGHT = 2 };

static int find_vectors(Call *c, const View given[2])
{
    int vectors = (int)call_int(c, "vectors");
    vectors |= given[0].rank == 1 ? VECTOR_LEFT : 0;
    vectors |= given[1].rank == 1 ? VECTOR_RIGHT : 0;
    if (vectors)
        call_set(c, "vectors", vectors);
    return vectors;
}

static bool matmul_shape(Graph *g, Call *c)
{
    if (!want_f32(g, c, 0) || !want_f32(g, c, 1))
        return false;
    View given[2] = {call_view(g, c, 0), call_view(g, c, 1)};
    for (int i = 0; i < 2; i++)
        if (given[i].rank == 0)
            return call_error_at(g, c, i,
                                 "operands need at least one dimension; use * for a scalar");
    View a = as_matrix(given[0], false), b = as_matrix(given[1], true);
    if (a.dim[a.rank - 1] != b.dim[b.rank - 2])
        return call_error_at(g, c, 1, "inner sizes differ: %s @ %s", dims_text(g, c, 0),
                             dims_text(g, c, 1));

    int64_t dim[MAX_RANK];
    int batch = dims_broadcast(a.rank - 2, a.dim, b.rank - 2, b.dim, dim);
    if (batch < 0)
        return call_error_at(g, c, 1, "batch sizes differ: %s @ %s", dims_text(g, c, 0),
                             dims_text(g, c, 1));
    View *operand[2] = {&a, &b};
    for (int i = 0; i < 2; i++) {
        int64_t full[MAX_RANK];
        for (int d = 0; d < batch; d++)
            full[d] = dim[d];
        full[batch] = operand[i]->dim[operand[i]->rank - 2];
        full[batch + 1] = operand[i]->dim[operand[i]->rank - 1];
        View view = view_broadcast(operand[i], batch + 2, full);
        c->use.at[i] = use_make(g, c->use.at[i].value, view);
    }
    int rank = batch, vectors = find_vectors(c, given);
    if ((vectors & VECTOR_LEFT && a.dim[a.rank - 2] != 1) ||
        (vectors & VECTOR_RIGHT && b.dim[b.rank - 1] != 1))
        return call_error(g, c, "a vector operand must have a single row or column");
    if (!(vectors & VECTOR_LEFT))
        dim[rank++] = a.dim[a.rank - 2];
    if (!(vectors & VECTOR_RIGHT))
        dim[rank++] = b.dim[b.rank - 1];
    return call_output(g, c, F32, rank, dim);
}

static Use transposed(Graph *g, Use use)
{
    View v = use_view(g, use);
    int m = v.rank - 2, n = v.rank - 1;
    int64_t dim = v.dim[m], stride = v.stride[m];
    v.dim[m] = v.dim[n];
    v.stride[m] = v.stride[n];
    v.dim[n] = dim;
    v.stride[n] = stride;
    return use_make(g, use.value, v);
}

/* The batch as more rows: [B, T, C] -> [B * T, C]; value NONE where that would take a copy. */
static Use as_rows(Graph *g, Use use)
{
    View v = use_view(g, use), rows;
    int64_t dim[2] = {view_count(&v) / v.dim[v.rank - 1], v.dim[v.rank - 1]};
    return view_reshape(&v, 2, dim, &rows) ? use_make(g, use.value, rows) : (Use){NONE, NONE};
}

/* db = a' dy; where b is transposed (a tied table) as dy' a, so that db has the layout of b. */
static Use right_gradient(Grad *grad, Use a, Use dout, const View *b)
{
    Graph *g = grad->g;
    int m = b->rank - 2, n = b->rank - 1;
    if (b->dim[m] == 1 || b->dim[n] == 1 || b->stride[m] == 0 || b->stride[m] >= b->stride[n])
        return grad_op(grad, "matmul", 2, (Use[]){transposed(g, a), dout});
    Use swapped = grad_op(grad, "matmul", 2, (Use[]){transposed(g, dout), a});
    return swapped.value == NONE ? swapped : transposed(g, swapped);
}

/* A weight that the whole batch shares: one product over all rows, and no sum after it. */
static Use shared_gradient(Grad *grad, Use a, Use dout, const View *b)
{
    Graph *g = grad->g;
    for (int i = 0; i < b->rank - 2; i++)
        if (b->dim[i] > 1 && b->stride[i] != 0)
            return (Use){NONE, NONE};
    Use rows = as_rows(g, a), drows = as_rows(g, dout);
    if (rows.value == NONE || drows.value == NONE)
        return (Use){NONE, NONE};
    Use db = right_gradient(grad, rows, drows, b);
    if (db.value == NONE)
        return db;
    View v = use_view(g, db), wide = {.rank = b->rank};
    for (int i = 0; i < b->rank; i++) {
        int from = i - (b->rank - 2);
        wide.dim[i] = from < 0 ? 1 : v.dim[from];
        wide.stride[i] = from < 0 ? 0 : v.stride[from];
    }
    return use_make(g, db.value, wide);
}

/* da = dy b', db = a' dy, on the matrices the rule made of the operands. */
static bool matmul_grad(Grad *grad)
{
    Graph *g = grad->g;
    Use a = grad_operand(grad, 0), b = grad_operand(grad, 1);
    View av = use_view(g, a), bv = use_view(g, b), dy = use_view(g, grad->dout[0]), full;
    int64_t dim[MAX_RANK];
    for (int i = 0; i < av.rank - 1; i++)
        dim[i] = av.dim[i];
    dim[av.rank - 1] = bv.dim[bv.rank - 1];
    Use dout = grad->dout[0];
    if (!view_reshape(&dy, av.rank, dim, &full)) {
        dout = grad_op(grad, "copy", 1, &dout);
        if (dout.value == NONE)
            return false;
        dy = use_view(g, dout);
        view_reshape(&dy, av.rank, dim, &full);
    }
    dout = use_make(g, dout.value, full);
    if (grad->wanted[0]) {
        grad_wide(grad, 0);
        grad->din[0] = grad_op(grad, "matmul", 2, (Use[]){dout, transposed(g, b)});
        if (grad->din[0].value == NONE)
            return false;
    }
    if (!grad->wanted[1])
        return true;
    grad_wide(grad, 1);
    grad->din[1] = bv.rank > 2 ? shared_gradient(grad, a, dout, &bv) : (Use){NONE, NONE};
    if (grad->din[1].value == NONE)
        grad->din[1] = right_gradient(grad, a, dout, &bv);
    return grad->din[1].value != NONE;
}

static double matmul_flops(const Graph *g, Id node)
{
    const Node *n = &g->node.at[node];
    View a = use_view(g, node_use(g, n, 0));
    return 2.0 * (double)value_count(&g->value.at[n->value]) * (double)a.dim[a.rank - 1];
}

/* Both operands are matrices with the same batch dims. Where the result has dropped rows or
 * columns there was one of them, and no batch. */
static int batch_matmul(const Graph *g, const Node *n, int operand, int axis, int output)
{
    (void)output;
    int inner = use_view(g, node_use(g, n, 0)).rank - (operand == 0 ? 1 : 2);
    bool columns = operand == 1 && axis > inner;
    return axis == inner ? BATCH_MIXED : columns ? g->value.at[n->value].rank - 1 : axis;
}

static bool dense_params(Graph *g, Call *c)
{
    View x = call_view(g, c, 0);
    if (call_has(c, 1))
        return true;
    int64_t units = call_int(c, "units");
    if (units <= 0)
        return call_error(g, c,
                          call_attr(c, "units")->given
                              ? "units must be positive"
                              : "needs units, as in dense(x, 10), or a weight");
    if (x.rank == 0)
        return call_error_at(g, c, 0, "x needs at least one dimension, not a scalar");
    int64_t inputs = x.dim[x.rank - 1];
    return call_param(g, c, "w", init_xavier(inputs, units), 2, (int64_t[]){inputs, units}) &&
           (!call_int(c, "bias") || call_has(c, 2) ||
            call_param(g, c, "b", init_const(0), 1, &units));
}

static bool dense_build(Graph *g, Call *c)
{
    Use operand[2] = {call_operand(c, 0), call_operand(c, 1)};
    View x = call_view(g, c, 0), w = call_view(g, c, 1);
    if (w.rank != 2)
        return call_error_at(g, c, 1, "w must be [inputs, units], not %s", use_text(g, operand[1]));
    if (x.rank == 0 || x.dim[x.rank - 1] != w.dim[0])
        return call_error_at(g, c, 1, "inner sizes differ: x %s, w %s", dims_text(g, c, 0),
                             dims_text(g, c, 1));
    Use y = call_op(g, c, "matmul", 2, operand);
    if (y.value != NONE && call_has(c, 2)) {
        View b = call_view(g, c, 2);
        if (b.rank != 1 || b.dim[0] != w.dim[1])
            return call_error_at(g, c, 2, "b must be [%lld], one for each unit, not %s",
                                 (long long)w.dim[1], use_text(g, call_operand(c, 2)));
        y = call_op(g, c, "add", 2, (Use[]){y, call_operand(c, 2)});
    }
    call_result(g, c, y);
    return y.value != NONE;
}

const OpRow ops_matmul[] = {
    {.name = "matmul",
     .args =
         {{.name = "a"},
          {.name = "b"},
          {.name = "vectors", .kind = ARG_INT, .flags = ARG_FRONT | ARG_HIDDEN, .fallback = "0"}},
     .shape = matmul_shape,
     .grad = matmul_grad,
     .flops = matmul_flops,
     .flags = OP_EPILOGUE | OP_ASIDE | OP_PRODUCT | OP_HALF,
     .precision = PRECISION_NARROW,
     .strided = 3,
     .out_strided = 1,
     .batch = batch_matmul,
     .help = "a @ b: [..., M, K] @ [..., K, N] -> [..., M, N]; batch dims broadcast; a vector "
             "on the left is a row, on the right a column"},
    {.name = "dense",
     .args =
         {{.name = "x"},
          {.name = "w",
           .flags = ARG_PARAM | ARG_TRANSPOSED,
           .help = "[inputs, units]",
           .foreign = "weight"},
          {.name = "b", .flags = ARG_PARAM | ARG_OPTIONAL, .help = "[units]", .foreign = "bias"},
          {.name = "units", .kind = ARG_INT, .flags = ARG_FRONT, .fallback = "none"},
          {.name = "bias", .kind = ARG_BOOL, .flags = ARG_FRONT, .fallback = "true"}},
     .params = dense_params,
     .build = dense_build,
     .help = "x @ w + b on the last axis: [..., inputs] -> [..., units]"},
    {0},
};
