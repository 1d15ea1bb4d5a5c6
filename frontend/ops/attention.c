/* Attention: the kernel on given projections, the layer, and rotary positions.
 *
 * The kernel leaves its result as [B, T, H, D] and sdpa shows it as [B, H, T, D]: the projection
 * that follows joins the heads of a token without a copy. */
#include "frontend/ops/rules.h"

#include <math.h>

enum { ALIGN_END, ALIGN_START }; /* the words of `align`, in order */

static const int swap_heads[] = {0, 2, 1, 3}; /* [B, T, H, D] to [B, H, T, D] and back */

/* ---- sdpa ------------------------------------------------------------------------------------ */

static bool check_qkv(Graph *g, const Call *c)
{
    for (int i = 0; i < 3; i++)
        if (!want_f32(g, c, i))
            return false;
        else if (call_view(g, c, i).rank != 4)
            return call_error_at(g, c, i, "%s must be [batch, heads, length, size], not %s",
                                 c->op->args[i].name, use_text(g, call_operand(c, i)));
    View q = call_view(g, c, 0), k = call_view(g, c, 1), v = call_view(g, c, 2);
    const char *q_text = use_text(g, call_operand(c, 0)), *k_text = use_text(g, call_operand(c, 1));
    if (k.dim[0] != q.dim[0] || k.dim[3] != q.dim[3])
        return call_error_at(g, c, 1, "batch and head size of q and k differ: %s and %s", q_text,
                             k_text);
    if (v.dim[0] != k.dim[0] || v.dim[1] != k.dim[1] || v.dim[2] != k.dim[2])
        return call_error_at(g, c, 2, "batch, heads and length of k and v differ: %s and %s",
                             k_text, use_text(g, call_operand(c, 2)));
    if (q.dim[1] % k.dim[1] != 0)
        return call_error_at(g, c, 1, "the %lld heads of k %s do not divide the %lld heads of q %s",
                             (long long)k.dim[1], k_text, (long long)q.dim[1], q_text);
    if (call_int(c, "causal") && q.dim[2] > k.dim[2] && call_int(c, "align") == ALIGN_END) {
        call_error_at(g, c, 0, "causal needs at least as many keys as queries: q %s, k %s", q_text,
                      k_text);
        diag_hint(g->diag,
                  "align = start: query i sees keys 0 to i, and all keys if there are fewer");
        return false;
    }
    return true;
}

/* bool[T, S]: query t sees keys up to number t + ahead. */
static Use seen_keys(Graph *g, const Call *c, int64_t queries, int64_t keys, int64_t ahead)
{
    Use query = use_places(g, c, queries), key = use_places(g, c, keys);
    if (ahead)
        query = call_op(g, c, "add", 2, (Use[]){query, graph_literal(g, (double)ahead, I64)});
    return call_op(g, c, "less_equal", 2, (Use[]){key, use_along(g, query, 0, 2)});
}

/* What a mask leaves of the keys that a query sees. */
static Use seen_masked(Graph *g, const Call *c, Use seen, Use mask)
{
    if (g->value.at[mask.value].dtype == BOOL)
        return call_op(g, c, "and", 2, (Use[]){mask, seen});
    return call_op(g, c, "where", 3, (Use[]){seen, mask, graph_literal(g, -INFINITY, F32)});
}

static bool check_mask(Graph *g, const Call *c, const int64_t *dim)
{
    View mask = call_view(g, c, 3);
    int64_t joined[MAX_RANK];
    if (call_dtype(g, c, 3) != BOOL && call_dtype(g, c, 3) != F32)
        return call_error_at(
            g, c, 3, "mask must be bool (true: attend) or f32 (added to the scores), not %s",
            use_text(g, call_operand(c, 3)));
    bool fits = mask.rank <= 4 && dims_broadcast(4, dim, mask.rank, mask.dim, joined) == 4;
    for (int i = 0; fits && i < 4; i++)
        fits = joined[i] == dim[i];
    return fits ||
           call_error_at(g, c, 3, "mask %s does not broadcast to the scores %s",
                         use_text(g, call_operand(c, 3)), shape_text(g->arena, DTYPES, 4, dim));
}

static bool build_sdpa(Graph *g, Call *c)
{
    if (!check_qkv(g, c))
        return false;
    View q = call_view(g, c, 0), k = call_view(g, c, 1);
    const int64_t scores[4] = {q.dim[0], q.dim[1], q.dim[2], k.dim[2]};
    double scale = call_attr(c, "scale")->number;
    bool causal = call_int(c, "causal");
    Use mask = call_has(c, 3) ? call_operand(c, 3) : (Use){NONE, NONE};
    if (mask.value != NONE && !check_mask(g, c, scores))
        return false;
    if (causal && q.dim[2] != k.dim[2] && call_int(c, "align") == ALIGN_START) {
        Use seen = seen_keys(g, c, q.dim[2], k.dim[2], 0);
        mask = mask.value == NONE ? seen : seen_masked(g, c, seen, mask);
        if (mask.value == NONE)
            return false;
        causal = false;
    }
    Call attend = call_begin(g, c, "attend");
    call_set(&attend, "causal", causal);
    call_set(&attend, "scale", scale != 0 ? scale : 1 / sqrt((double)q.dim[3]));
    for (int i = 0; i < 3; i++)
        call_use(g, &attend, call_operand(c, i));
    if (mask.value != NONE) {
        View view = use_view(g, mask);
        view = view_broadcast(&view, 4, scores);
        call_use(g, &attend, use_make(g, mask.value, view));
    }
    if (!call_finish(g, &attend))
        return false;
    call_result(g, c, use_permute(g, attend.result.at[0], swap_heads));
    return true;
}

static bool shape_attend(Graph *g, Call *c)
{
    View q = call_view(g, c, 0), v = call_view(g, c, 2);
    return call_output(g, c, F32, 4, (int64_t[]){q.dim[0], q.dim[2], q.dim[1], v.dim[3]}) &&
           call_output(g, c, F32, 4, (int64_t[]){q.dim[0], q.dim[1], q.dim[2], 2});
}

/* [B, H, T, D] with the heads that share a key head on an axis of their own: [B, Hk, H / Hk, T, D],
 * or transposed. */
static Use grouped(Graph *g, Use use, int64_t kv_heads, bool transposed)
{
    View x = use_view(g, use), out = {.rank = 5, .offset = x.offset};
    const int64_t group = x.dim[1] / kv_heads;
    const int rows = transposed ? 4 : 3, columns = transposed ? 3 : 4;
    out.dim[0] = x.dim[0], out.stride[0] = x.stride[0];
    out.dim[1] = kv_heads, out.stride[1] = group * x.stride[1];
    out.dim[2] = group, out.stride[2] = x.stride[1];
    out.dim[rows] = x.dim[2], out.stride[rows] = x.stride[2];
    out.dim[columns] = x.dim[3], out.stride[columns] = x.stride[3];
    return use_make(g, use.value, out);
}

/* x @ y^T of each head: [B, H, T, S]. */
static Use products(Grad *grad, Use x, Use y)
{
    Graph *g = grad->g;
    View xv = use_view(g, x), yv = use_view(g, y);
    Use out = grad_op(grad, "matmul", 2,
                      (Use[]){grouped(g, x, yv.dim[1], false), grouped(g, y, yv.dim[1], true)});
    return use_reshape(g, &grad->at, out, 4,
                       (int64_t[]){xv.dim[0], xv.dim[1], xv.dim[2], yv.dim[2]});
}

/* The softmax again, whole, from the totals that were saved. A query that sees no key has 0. */
static Use softmax_again(Grad *grad)
{
    Graph *g = grad->g;
    Use q = grad_operand(grad, 0), k = grad_operand(grad, 1), totals = grad_result(grad, 1);
    Use zero = graph_literal(g, 0, F32), sum = use_window(g, totals, 3, 1, 1);
    Use scale = graph_literal(g, node_attr(g, grad->node, "scale")->number, F32);
    Use p = grad_op(grad, "mul", 2, (Use[]){products(grad, q, k), scale});
    p = grad_op(grad, "add", 2, (Use[]){p, grad_operand(grad, 3)});
    p = grad_op(grad, "sub", 2, (Use[]){p, use_window(g, totals, 3, 0, 1)});
    p = grad_op(grad, "exp", 1, &p);
    p = grad_op(grad, "div", 2, (Use[]){p, sum});
    Use seen = grad_op(grad, "greater", 2, (Use[]){sum, zero});
    if (node_attr(g, grad->node, "causal")->number != 0) {
        int64_t queries = use_view(g, q).dim[2], keys = use_view(g, k).dim[2];
        Use before = seen_keys(g, &grad->at, queries, keys, keys - queries);
        seen = grad_op(grad, "and", 2, (Use[]){seen, before});
    }
    return grad_op(grad, "where", 3, (Use[]){seen, p, zero});
}

/* P (dout V' - delta) with delta = sum(dout * out) of each query: as large as the scores, which is
 * what a mask that is trained is too, save for what it repeats. */
static Use mask_gradient(Grad *grad)
{
    Graph *g = grad->g;
    Use dp = products(grad, use_permute(g, grad->dout[0], swap_heads), grad_operand(grad, 2));
    Use both = grad_op(grad, "mul", 2, (Use[]){grad->dout[0], grad_result(grad, 0)});
    Call delta = call_begin(g, &grad->at, "sum");
    call_set_list(&delta, "axis", 1, (int64_t[]){3});
    call_set(&delta, "keepdims", 1);
    call_use(g, &delta, both);
    if (dp.value == NONE || both.value == NONE || !call_finish(g, &delta))
        return (Use){NONE, NONE};
    Use off = grad_op(grad, "sub", 2, (Use[]){dp, use_permute(g, delta.result.at[0], swap_heads)});
    return grad_op(grad, "mul", 2, (Use[]){softmax_again(grad), off});
}

/* Gradients have the layout of the result, so their projections need no copy either. */
static bool grad_attend(Grad *grad)
{
    Graph *g = grad->g;
    const Node node = g->node.at[grad->node];
    bool masked = node.uses > 3 && grad_operand(grad, 3).value != NONE;
    if (masked && grad->wanted[3]) {
        grad->din[3] = mask_gradient(grad);
        if (grad->din[3].value == NONE)
            return false;
    }
    Call c = call_begin(g, &grad->at, "attend_grad");
    call_set(&c, "causal", node_attr(g, grad->node, "causal")->number);
    call_set(&c, "scale", node_attr(g, grad->node, "scale")->number);
    for (int i = 0; i < 3; i++)
        call_use(g, &c, grad_operand(grad, i));
    call_use(g, &c, masked ? grad_operand(grad, 3) : (Use){NONE, NONE});
    call_use(g, &c, grad_result(grad, 0));
    call_use(g, &c, grad_result(grad, 1));
    call_use(g, &c, grad->dout[0]);
    if (!call_finish(g, &c))
        return false;
    for (int i = 0; i < 3; i++)
        grad->din[i] = use_permute(g, c.result.at[i], swap_heads);
    return true;
}

static bool shape_attend_grad(Graph *g, Call *c)
{
    bool good = true;
    for (int i = 0; i < 3; i++) {
        View x = call_view(g, c, i);
        const int64_t dim[4] = {x.dim[0], x.dim[2], x.dim[1], x.dim[3]};
        good = good && call_output(g, c, F32, 4, dim);
    }
    return good;
}

static double flops_attend(const Graph *g, Id node)
{
    const Node *n = &g->node.at[node];
    View q = use_view(g, node_use(g, n, 0)), v = use_view(g, node_use(g, n, 2));
    double pairs = (double)q.dim[0] * (double)q.dim[1] * (double)q.dim[2] * (double)v.dim[2];
    return pairs * (double)(2 * (q.dim[3] + v.dim[3]) + 4) *
           (node_attr(g, node, "causal")->number != 0 ? 0.5 : 1);
}

static double flops_attend_grad(const Graph *g, Id node)
{
    return 2.5 * flops_attend(g, node); /* five products where there were two */
}

/* ---- The layer ------------------------------------------------------------------------------- */

enum { X, CONTEXT, MASK, WQ, WK, WV, WO, BQ, BK, BV, BO };

/* Also settles heads and kv_heads. */
static bool check_layer(Graph *g, Call *c)
{
    int64_t heads = call_int(c, "heads"), kv_heads = call_int(c, "kv_heads");
    int source = call_has(c, CONTEXT) ? CONTEXT : X;
    for (int i = X; i <= source; i++)
        if (!want_f32(g, c, i))
            return false;
        else if (call_view(g, c, i).rank != 3)
            return call_error_at(g, c, i, "%s must be [batch, length, size], not %s",
                                 c->op->args[i].name, use_text(g, call_operand(c, i)));
    View x = call_view(g, c, X);
    if (call_view(g, c, source).dim[0] != x.dim[0])
        return call_error_at(g, c, source, "batch sizes differ: x %s, context %s",
                             use_text(g, call_operand(c, X)), use_text(g, call_operand(c, source)));
    if (heads < 1 || x.dim[2] % heads != 0)
        return call_error(g, c, "heads = %lld does not divide the last dimension of x %s",
                          (long long)heads, use_text(g, call_operand(c, X)));
    kv_heads = kv_heads ? kv_heads : heads;
    if (kv_heads < 1 || heads % kv_heads != 0)
        return call_error(g, c, "kv_heads = %lld does not divide heads = %lld", (long long)kv_heads,
                          (long long)heads);
    call_set(c, "kv_heads", (double)kv_heads);
    return true;
}

static bool make_projection(Graph *g, Call *c, int weight, int64_t from, int64_t to)
{
    int bias = weight - WQ + BQ;
    return (call_has(c, weight) || call_param(g, c, c->op->args[weight].name, init_xavier(from, to),
                                              2, (int64_t[]){from, to})) &&
           (call_has(c, bias) || !call_int(c, "bias") ||
            call_param(g, c, c->op->args[bias].name, init_const(0), 1, &to));
}

static bool params_attention(Graph *g, Call *c)
{
    if (!call_has(c, X))
        return true;
    if (!check_layer(g, c))
        return false;
    int64_t size = call_view(g, c, X).dim[2];
    int64_t from = call_view(g, c, call_has(c, CONTEXT) ? CONTEXT : X).dim[2];
    int64_t kv_size = size / call_int(c, "heads") * call_int(c, "kv_heads");
    return make_projection(g, c, WQ, size, size) && make_projection(g, c, WK, from, kv_size) &&
           make_projection(g, c, WV, from, kv_size) && make_projection(g, c, WO, size, size);
}

static Use project(Graph *g, const Call *c, Use x, int weight)
{
    Use bias = call_operand(c, weight - WQ + BQ);
    Use y = call_op(g, c, "matmul", 2, (Use[]){x, call_operand(c, weight)});
    return bias.value == NONE ? y : call_op(g, c, "add", 2, (Use[]){y, bias});
}

/* [B, T, heads * D] as [B, heads, T, D]. */
static Use heads_of(Graph *g, const Call *c, Use x, int64_t heads)
{
    if (x.value == NONE)
        return x;
    View view = use_view(g, x);
    const int64_t dim[4] = {view.dim[0], view.dim[1], heads, view.dim[2] / heads};
    return use_permute(g, use_reshape(g, c, x, 4, dim), swap_heads);
}

/* A weight that was given has the dims of the one that would have been made. */
static bool check_weights(Graph *g, const Call *c)
{
    int64_t size = call_view(g, c, X).dim[2];
    int64_t from = call_view(g, c, call_has(c, CONTEXT) ? CONTEXT : X).dim[2];
    int64_t kv_size = size / call_int(c, "heads") * call_int(c, "kv_heads");
    for (int i = WQ; i <= BO; i++) {
        bool matrix = i <= WO, kv = i == WK || i == WV || i == BK || i == BV;
        int64_t dim[2] = {kv && matrix ? from : size, kv ? kv_size : size};
        if (!call_has(c, i))
            continue;
        View view = call_view(g, c, i);
        bool fits = view.rank == 1 + matrix && view.dim[view.rank - 1] == dim[1] &&
                    (!matrix || view.dim[0] == dim[0]);
        if (!fits)
            return call_error_at(g, c, i, "%s must be %s, but is %s", c->op->args[i].name,
                                 shape_text(g->arena, F32, 1 + matrix, matrix ? dim : dim + 1),
                                 use_text(g, call_operand(c, i)));
        if (!want_f32(g, c, i))
            return false;
    }
    return true;
}

static bool build_attention(Graph *g, Call *c)
{
    if (!check_weights(g, c))
        return false;
    Use x = call_operand(c, X);
    Use source = call_has(c, CONTEXT) ? call_operand(c, CONTEXT) : x;
    int64_t heads = call_int(c, "heads"), kv_heads = call_int(c, "kv_heads");
    Use q = heads_of(g, c, project(g, c, x, WQ), heads);
    Use k = heads_of(g, c, project(g, c, source, WK), kv_heads);
    Use v = heads_of(g, c, project(g, c, source, WV), kv_heads);
    if (q.value == NONE || k.value == NONE || v.value == NONE)
        return false;
    Call sdpa = call_begin(g, c, "sdpa");
    call_set(&sdpa, "causal", (double)call_int(c, "causal"));
    call_use(g, &sdpa, q);
    call_use(g, &sdpa, k);
    call_use(g, &sdpa, v);
    if (call_has(c, MASK))
        call_use(g, &sdpa, call_operand(c, MASK));
    if (!call_finish(g, &sdpa))
        return false;
    Use joined = use_permute(g, sdpa.result.at[0], swap_heads);
    Use out = project(g, c, use_reshape(g, c, joined, 3, use_view(g, x).dim), WO);
    call_result(g, c, out);
    return out.value != NONE;
}

/* ---- rope ------------------------------------------------------------------------------------ */

static bool shape_rope(Graph *g, Call *c)
{
    View view = call_view(g, c, 0);
    if (!want_f32(g, c, 0))
        return false;
    if (view.rank < 2 || view.dim[view.rank - 1] % 2 != 0)
        return call_error_at(g, c, 0, "x must be [..., length, size] with an even size, not %s",
                             use_text(g, call_operand(c, 0)));
    if (call_attr(c, "base")->number <= 0)
        return call_error(g, c, "base = %g must be positive", call_attr(c, "base")->number);
    return call_output(g, c, F32, view.rank, view.dim);
}

/* Turned back by the same angles. */
static bool grad_rope(Grad *grad)
{
    Call c = call_begin(grad->g, &grad->at, "rope");
    call_set(&c, "base", node_attr(grad->g, grad->node, "base")->number);
    call_set(&c, "offset", node_attr(grad->g, grad->node, "offset")->number);
    call_set(&c, "back", 1);
    call_use(grad->g, &c, grad->dout[0]);
    if (!call_finish(grad->g, &c))
        return false;
    grad->din[0] = c.result.at[0];
    return true;
}

static double flops_rope(const Graph *g, Id node)
{
    return flops_of(g, node, 3);
}

/* Rotations depend on the position, and mix pairs of elements of one. */
static int batch_rope(const Graph *g, const Node *n, int operand, int axis, int output)
{
    (void)operand, (void)output;
    return axis < use_view(g, node_use(g, n, 0)).rank - 2 ? axis : BATCH_MIXED;
}

/* Of torch.nn.MultiheadAttention, and of layers that project each separately. */
#define WEIGHT(NAME, FOREIGN)                                                           \
    {                                                                                   \
        .name = (NAME), .flags = ARG_PARAM | ARG_TRANSPOSED, .help = "xavier at first", \
        .foreign = (FOREIGN)                                                            \
    }
#define PROJECTION_BIAS(NAME, FOREIGN)                                                     \
    {                                                                                      \
        .name = (NAME), .flags = ARG_PARAM, .help = "zeros at first", .foreign = (FOREIGN) \
    }
#define CAUSAL(FLAGS)                                                              \
    {                                                                              \
        .name = "causal", .kind = ARG_BOOL, .flags = (FLAGS), .fallback = "false", \
        .help = "a query sees no later key; the last query sees all"               \
    }
#define MASK_ARG                                                                                  \
    {                                                                                             \
        .name = "mask", .flags = ARG_OPTIONAL,                                                    \
        .help = "broadcasts to [B, H, T, S]; bool: which keys are seen, f32: added to the scores" \
    }

const OpRow ops_attention[] = {
    {.name = "sdpa",
     .help = "softmax(q @ k^T * scale) @ v on [B, H, T, D]; k and v may have fewer heads, which "
             "must divide H, and another length; memory does not grow with the square of T",
     .args = {{.name = "q", .help = "f32[B, H, T, D]"},
              {.name = "k", .help = "f32[B, Hk, S, D]"},
              {.name = "v", .help = "f32[B, Hk, S, Dv]; the result is [B, H, T, Dv]"},
              MASK_ARG,
              CAUSAL(ARG_FRONT),
              {.name = "scale",
               .kind = ARG_FLOAT,
               .flags = ARG_FRONT,
               .fallback = "0",
               .help = "0: 1 / sqrt(D)"},
              {.name = "align",
               .kind = ARG_WORD,
               .flags = ARG_FRONT,
               .fallback = "end",
               .words = "end start",
               .help = "of causal, where lengths differ; start: query i sees keys 0 to i, as in "
                       "PyTorch"}},
     .build = build_sdpa},
    {.name = "attend",
     .precision = PRECISION_NARROW,
     .statistics = 8,
     .wide_out = 2,
     .help = "the kernel of sdpa: [B, T, H, Dv]; of each query the largest score and the sum of "
             "exponentials below it, [B, H, T, 2]",
     .args = {{.name = "q"},
              {.name = "k"},
              {.name = "v"},
              {.name = "mask", .flags = ARG_OPTIONAL},
              CAUSAL(0),
              {.name = "scale", .kind = ARG_FLOAT, .fallback = "1"}},
     .shape = shape_attend,
     .grad = grad_attend,
     .flops = flops_attend,
     .flags = OP_HIDDEN | OP_HALF,
     .strided = 15,
     .batch = batch_first},
    {.name = "attend_grad",
     .precision = PRECISION_NARROW,
     .statistics = 8 | 32,
     .help = "the gradient of attend by q, k and v, each as [B, T, H, D]",
     .args = {{.name = "q"},
              {.name = "k"},
              {.name = "v"},
              {.name = "mask", .flags = ARG_OPTIONAL},
              {.name = "out"},
              {.name = "totals"},
              {.name = "dout"},
              CAUSAL(0),
              {.name = "scale", .kind = ARG_FLOAT, .fallback = "1"}},
     .shape = shape_attend_grad,
     .flops = flops_attend_grad,
     .flags = OP_HIDDEN | OP_HALF,
     .strided = 15,
     .batch = batch_first},
    {.name = "attention",
     .help = "multi-head attention on [B, T, C]: projections wq, wk, wv, sdpa, projection wo; same "
             "shape. wq, wo: [C, C]; wk, wv: [C, C / heads * kv_heads]",
     .args = {{.name = "x", .help = "f32[B, T, C]"},
              {.name = "context",
               .flags = ARG_OPTIONAL,
               .help = "f32[B, S, E]: keys and values come from it instead of x"},
              MASK_ARG,
              WEIGHT("wq", "in_proj_weight[0/3] q_proj.weight q_proj.weight"),
              WEIGHT("wk", "in_proj_weight[1/3] k_proj.weight k_proj.weight"),
              WEIGHT("wv", "in_proj_weight[2/3] v_proj.weight v_proj.weight"),
              WEIGHT("wo", "out_proj.weight out_proj.weight o_proj.weight"),
              PROJECTION_BIAS("bq", "in_proj_bias[0/3] q_proj.bias q_proj.bias"),
              PROJECTION_BIAS("bk", "in_proj_bias[1/3] k_proj.bias k_proj.bias"),
              PROJECTION_BIAS("bv", "in_proj_bias[2/3] v_proj.bias v_proj.bias"),
              PROJECTION_BIAS("bo", "out_proj.bias out_proj.bias o_proj.bias"),
              {.name = "heads", .kind = ARG_INT, .flags = ARG_FRONT, .help = "must divide C"},
              {.name = "kv_heads",
               .kind = ARG_INT,
               .flags = ARG_FRONT,
               .fallback = "0",
               .help = "heads of k and v, must divide heads; 0: as many"},
              CAUSAL(ARG_FRONT),
              {.name = "bias",
               .kind = ARG_BOOL,
               .flags = ARG_FRONT,
               .fallback = "true",
               .help = "whether the projections have one"}},
     .params = params_attention,
     .build = build_attention},
    {.name = "rope",
     .help = "rotary positions on [..., T, D]: elements i and i + D/2 of position t are rotated by "
             "t / base^(2i/D); same shape",
     .args = {{.name = "x", .help = "f32, D even"},
              {.name = "base", .kind = ARG_FLOAT, .fallback = "10000", .help = "of the angles"},
              {.name = "offset", .kind = ARG_INT, .fallback = "0", .help = "first position"},
              {.name = "back",
               .kind = ARG_BOOL,
               .flags = ARG_HIDDEN,
               .fallback = "false",
               .help = "rotates the other way: the gradient"}},
     .shape = shape_rope,
     .grad = grad_rope,
     .flops = flops_rope,
     .flags = OP_HALF,
     .strided = 1,
     .inplace = 1,
     .batch = batch_rope},
    {0},
};
