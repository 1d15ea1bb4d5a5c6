/* Pools: the largest or the mean of each window, and of whole planes. */
#include "frontend/ops/window.h"

/* Whether each window has a place inside the image: a window of padding alone has no value. */
static bool check_padding(Graph *g, const Call *c, const WindowAxis *axis, int64_t in)
{
    int64_t reach = axis->dilation * (axis->kernel - 1) + 1;
    bool skips = axis->dilation > in && axis->begin > 0; /* gaps that the image may fall into */
    if (axis->begin < reach && axis->end < reach && !skips)
        return true;
    call_error(g, c,
               axis->dilation > 1 ? "pad must be less than %lld, the reach of a window%s"
                                  : "pad must be less than kernel = %lld%s",
               (long long)reach, skips ? ", and dilation no more than the image" : "");
    diag_hint(g->diag, "a window of padding alone has no value");
    return false;
}

/* Resolves settings of windows over `axes` axes; the size of the result into dim. */
static bool pool_windows(Graph *g, Call *c, WindowAxis *axis, int axes, int64_t *dim)
{
    Attr *stride = &c->attr[op_arg(c->op, "stride")];
    if (!window_operand(g, c, 0, 2 + axes, axes == 2 ? "[N, C, H, W]" : "[N, C, D, H, W]") ||
        !window_setting(g, c, "kernel", axes, 1))
        return false;
    if (!stride->given)
        *stride = *call_attr(c, "kernel");
    if (!window_setting(g, c, "stride", axes, 1) || !window_setting(g, c, "dilation", axes, 1))
        return false;
    View x = call_view(g, c, 0);
    const int64_t *kernel = call_attr(c, "kernel")->list;
    for (int i = 0; i < axes; i++)
        axis[i] = (WindowAxis){.kernel = kernel[i],
                               .stride = stride->list[i],
                               .dilation = call_attr(c, "dilation")->list[i]};
    if (!window_pad(g, c, axis, axes, x.dim + 2))
        return false;
    for (int i = 0; i < axes; i++) {
        if (!check_padding(g, c, &axis[i], x.dim[2 + i]))
            return false;
        dim[i] = window_count(&axis[i], x.dim[2 + i], call_int(c, "ceil"));
        if (dim[i] == 0)
            return call_error_at(g, c, 0, "the kernel %s%s is larger than x %s with its padding",
                                 shape_text(g->arena, DTYPES, axes, kernel),
                                 axis[i].dilation > 1 ? " with its dilation" : "",
                                 use_text(g, call_operand(c, 0)));
    }
    return true;
}

static bool pool_result(Graph *g, Call *c, Dtype dtype)
{
    int64_t dim[4];
    WindowAxis axis[2];
    View x = call_view(g, c, 0);
    if (!pool_windows(g, c, axis, 2, dim + 2))
        return false;
    dim[0] = x.dim[0];
    dim[1] = x.dim[1];
    return call_output(g, c, dtype, 4, dim);
}

static bool pool_shape(Graph *g, Call *c)
{
    return pool_result(g, c, F32);
}

/* The largest, and which place of its window that was: a byte, with one left for none, where the
 * window is no larger. It is what the gradient needs. */
static bool maxpool_shape(Graph *g, Call *c)
{
    if (!pool_result(g, c, F32))
        return false;
    const int64_t *kernel = call_attr(c, "kernel")->list;
    const bool small = kernel[0] <= 255 && kernel[1] <= 255 / kernel[0];
    return call_output(g, c, small ? U8 : I32, 4, c->out[0].dim);
}

static bool indices_shape(Graph *g, Call *c)
{
    return pool_result(g, c, I64);
}

static double pool_flops(const Graph *g, Id node)
{
    const int64_t *kernel = node_attr(g, node, "kernel")->list;
    return (double)value_count(&g->value.at[g->node.at[node].value]) * (double)kernel[0] *
           (double)kernel[1];
}

static bool global_shape(Graph *g, Call *c)
{
    View x = call_view(g, c, 0);
    if (x.rank < 2)
        return call_error_at(g, c, 0, "x must be [N, C, ...], not %s",
                             use_text(g, call_operand(c, 0)));
    return want_f32(g, c, 0) && call_output(g, c, F32, 2, x.dim);
}

static double global_flops(const Graph *g, Id node)
{
    View x = use_view(g, node_use(g, &g->node.at[node], 0));
    return (double)view_count(&x);
}

/* ---- Volumes -------------------------------------------------------------------------------- */

/* `op` over two of the axes of a volume: H and W, or D and one that is left as it is. */
static Use pool_two(Graph *g, const Call *c, const char *op, Use x, const WindowAxis *two)
{
    Call pool = call_begin(g, c, op);
    call_set_list(&pool, "kernel", 2, (int64_t[]){two[0].kernel, two[1].kernel});
    call_set_list(&pool, "stride", 2, (int64_t[]){two[0].stride, two[1].stride});
    call_set_list(&pool, "dilation", 2, (int64_t[]){two[0].dilation, two[1].dilation});
    call_set_list(&pool, "pad", 4, (int64_t[]){two[0].begin, two[1].begin, two[0].end, two[1].end});
    pool.attr[op_arg(pool.op, "stride")].given = true;
    call_set(&pool, "ceil", (double)call_int(c, "ceil"));
    if (op_arg(c->op, "count_include_pad") >= 0)
        call_set(&pool, "count_include_pad", (double)call_int(c, "count_include_pad"));
    call_use(g, &pool, x);
    return x.value != NONE && call_finish(g, &pool) ? pool.result.at[0] : (Use){NONE, NONE};
}

/* Planes first, then their depth: the first of the largest is the same, and the number of places in
 * a mean is the product of both. */
static bool pool_volume(Graph *g, Call *c, const char *op)
{
    WindowAxis axis[3];
    int64_t out[3];
    if (!pool_windows(g, c, axis, 3, out))
        return false;
    View x = call_view(g, c, 0), merged;
    int64_t n = x.dim[0], channels = x.dim[1], depth = x.dim[2];
    Use use = call_operand(c, 0);
    bool turned =
        !view_reshape(&x, 4, (int64_t[]){n, channels * depth, x.dim[3], x.dim[4]}, &merged);
    if (turned)
        use = window_slices(g, c, use_permute(g, use, (int[]){0, 2, 1, 3, 4}));
    else
        use = use_make(g, use.value, merged);
    use = pool_two(g, c, op, use, axis + 1);
    use = use_reshape(g, c, use, 4,
                      turned ? (int64_t[]){n, depth, channels, out[1] * out[2]}
                             : (int64_t[]){n, channels, depth, out[1] * out[2]});
    if (turned)
        use = use_permute(g, use, (int[]){0, 2, 1, 3});
    const WindowAxis down[2] = {axis[0], {.kernel = 1, .stride = 1, .dilation = 1}};
    use = pool_two(g, c, op, use, down);
    use = use_reshape(g, c, use, 5, (int64_t[]){n, channels, out[0], out[1], out[2]});
    call_result(g, c, use);
    return use.value != NONE;
}

static bool maxpool3d_build(Graph *g, Call *c)
{
    return pool_volume(g, c, "maxpool2d");
}

static bool avgpool3d_build(Graph *g, Call *c)
{
    return pool_volume(g, c, "avgpool2d");
}

/* ---- Gradients ------------------------------------------------------------------------------ */

static void copy_settings(const Grad *grad, Call *c, int count, const char *const *setting)
{
    for (int i = 0; i < count; i++)
        c->attr[op_arg(c->op, setting[i])] = *node_attr(grad->g, grad->node, setting[i]);
}

static bool finish_grad(Grad *grad, Call *c)
{
    grad->din[0] = call_finish(grad->g, c) ? c->result.at[0] : (Use){NONE, NONE};
    return grad->din[0].value != NONE;
}

static bool maxpool_grad(Grad *grad)
{
    View x = use_view(grad->g, grad_operand(grad, 0));
    Call c = call_begin(grad->g, &grad->at, "maxpool2d_grad");
    copy_settings(grad, &c, 4, (const char *const[]){"kernel", "stride", "pad", "dilation"});
    call_set_list(&c, "size", 2, x.dim + 2);
    call_use(grad->g, &c, grad_result(grad, 1));
    call_use(grad->g, &c, grad->dout[0]);
    return finish_grad(grad, &c);
}

static bool avgpool_grad(Grad *grad)
{
    View x = use_view(grad->g, grad_operand(grad, 0));
    Call c = call_begin(grad->g, &grad->at, "avgpool2d_grad");
    copy_settings(
        grad, &c, 5,
        (const char *const[]){"kernel", "stride", "pad", "count_include_pad", "dilation"});
    call_set_list(&c, "size", 2, x.dim + 2);
    call_use(grad->g, &c, grad->dout[0]);
    return finish_grad(grad, &c);
}

/* One number for each plane, under the dims of x: a view. */
static Use over_plane(const Grad *grad, Use use)
{
    View x = use_view(grad->g, grad_operand(grad, 0)), from = use_view(grad->g, use);
    x.offset = from.offset;
    for (int i = 0; i < x.rank; i++)
        x.stride[i] = i < 2 ? from.stride[i] : 0;
    return use_make(grad->g, use.value, x);
}

static double plane_size(const Grad *grad)
{
    View x = use_view(grad->g, grad_operand(grad, 0));
    return (double)(view_count(&x) / x.dim[0] / x.dim[1]);
}

static bool global_avg_grad(Grad *grad)
{
    Use share = graph_literal(grad->g, 1 / plane_size(grad), F32);
    Use dy = grad_op(grad, "mul", 2, (Use[]){grad->dout[0], share});
    grad->din[0] = dy.value == NONE ? dy : over_plane(grad, dy);
    return dy.value != NONE;
}

/* Those that are equal to the largest share its gradient. */
static bool global_max_grad(Grad *grad)
{
    Graph *g = grad->g;
    Use x = grad_operand(grad, 0), size = graph_literal(g, plane_size(grad), F32);
    Use same = grad_op(grad, "equal", 2, (Use[]){x, over_plane(grad, grad_result(grad, 0))});
    if (same.value == NONE)
        return false;
    Use count = same;
    for (int axis = use_view(g, x).rank - 1; axis >= 2; axis--) {
        Call mean = call_begin(g, &grad->at, "mean");
        call_set_list(&mean, "axis", 1, &(int64_t){axis});
        call_use(g, &mean, count);
        if (!call_finish(g, &mean))
            return false;
        count = mean.result.at[0];
    }
    Use number = grad_op(grad, "mul", 2, (Use[]){count, size});
    Use share = grad_op(grad, "div", 2, (Use[]){grad->dout[0], number});
    if (share.value == NONE)
        return false;
    Use operand[3] = {same, over_plane(grad, share), graph_literal(g, 0, F32)};
    grad->din[0] = grad_op(grad, "where", 3, operand);
    return grad->din[0].value != NONE;
}

static bool pool_grad_shape(Graph *g, Call *c)
{
    View dy = call_view(g, c, 0); /* or what has its dims */
    const int64_t *size = call_attr(c, "size")->list;
    return call_output(g, c, F32, 4, (int64_t[]){dy.dim[0], dy.dim[1], size[0], size[1]});
}

/* clang-format off */
#define WINDOW(axes)                                                                                 \
    {.name = "x"},                                                                             \
    {.name = "kernel", .kind = ARG_INTS, .count = axes, .help = "size of the window"},            \
    {.name = "stride", .kind = ARG_INTS, .count = axes, .fallback = "none",                       \
     .help = "the kernel, where none is given"},                                               \
    {.name = "pad", .kind = ARG_INTS, .count = 2 * axes, .fallback = "0", .words = "same valid",      \
     .help = "one number, one for each axis, or begins and ends"},                             \
    {.name = "ceil", .kind = ARG_BOOL, .flags = ARG_FRONT, .fallback = "false",                \
     .help = "let a last window hang over the end"}
#define DILATION(axes)                                                                               \
    {.name = "dilation", .kind = ARG_INTS, .count = axes, .fallback = "1",                        \
     .help = "from one place of the window to the next"}
#define COUNT_PAD                                                                              \
    {.name = "count_include_pad", .kind = ARG_BOOL, .fallback = "false",                       \
     .help = "padding counts as zeros"}
/* clang-format on */

const OpRow ops_pool[] = {
    {.name = "maxpool2d",
     .kernel = "pool",
     .args = {WINDOW(2), DILATION(2)},
     .shape = maxpool_shape,
     .grad = maxpool_grad,
     .flops = pool_flops,
     .flags = OP_LARGEST | OP_HALF,
     .strided = 1,
     .out_strided = 1,
     .batch = batch_planes,
     .help = "largest of each window: [N, C, H, W] -> [N, C, (H + pads - KH) / stride + 1, ...]"},
    {.name = "avgpool2d",
     .kernel = "pool",
     .args = {WINDOW(2), COUNT_PAD, DILATION(2)},
     .flags = OP_HALF,
     .shape = pool_shape,
     .grad = avgpool_grad,
     .flops = pool_flops,
     .strided = 1,
     .out_strided = 1,
     .batch = batch_planes,
     .help = "mean of each window: [N, C, H, W] -> [N, C, (H + pads - KH) / stride + 1, ...]"},
    {.name = "maxpool3d",
     .args = {WINDOW(3), DILATION(3)},
     .build = maxpool3d_build,
     .help =
         "largest of each window: [N, C, D, H, W] -> [N, C, (D + pads - KD) / stride + 1, ...]"},
    {.name = "avgpool3d",
     .args = {WINDOW(3), COUNT_PAD, DILATION(3)},
     .build = avgpool3d_build,
     .help = "mean of each window: [N, C, D, H, W] -> [N, C, (D + pads - KD) / stride + 1, ...]"},
    {.name = "maxpool2d_indices",
     .kernel = "pool",
     .args = {WINDOW(2), DILATION(2)},
     .flags = OP_HALF,
     .shape = indices_shape,
     .flops = pool_flops,
     .strided = 1,
     .batch = batch_planes,
     .help = "i64 place h * W + w of the first largest of each window, in its own plane of x"},
    {.name = "global_avgpool",
     .kernel = "pool",
     .args = {{.name = "x"}},
     .flags = OP_HALF,
     .shape = global_shape,
     .grad = global_avg_grad,
     .flops = global_flops,
     .strided = 1,
     .out_strided = 1,
     .batch = batch_planes,
     .help = "mean of each channel: [N, C, ...] -> [N, C]"},
    {.name = "global_maxpool",
     .kernel = "pool",
     .args = {{.name = "x"}},
     .flags = OP_HALF,
     .shape = global_shape,
     .grad = global_max_grad,
     .flops = global_flops,
     .strided = 1,
     .out_strided = 1,
     .batch = batch_planes,
     .help = "largest of each channel: [N, C, ...] -> [N, C]"},
    {.name = "maxpool2d_grad",
     .kernel = "pool_grad",
     .args = {{.name = "place"},
              {.name = "dy"},
              {.name = "kernel", .kind = ARG_INTS, .count = 2},
              {.name = "stride", .kind = ARG_INTS, .count = 2},
              {.name = "pad", .kind = ARG_INTS, .count = 4},
              {.name = "dilation", .kind = ARG_INTS, .count = 2},
              {.name = "size", .kind = ARG_INTS, .count = 2, .flags = ARG_FRONT}},
     .shape = pool_grad_shape,
     .flags = OP_HIDDEN | OP_HALF,
     .batch = batch_planes},
    {.name = "avgpool2d_grad",
     .kernel = "pool_grad",
     .args = {{.name = "dy"},
              {.name = "kernel", .kind = ARG_INTS, .count = 2},
              {.name = "stride", .kind = ARG_INTS, .count = 2},
              {.name = "pad", .kind = ARG_INTS, .count = 4},
              {.name = "count_include_pad", .kind = ARG_BOOL},
              {.name = "dilation", .kind = ARG_INTS, .count = 2},
              {.name = "size", .kind = ARG_INTS, .count = 2, .flags = ARG_FRONT}},
     .shape = pool_grad_shape,
     .flags = OP_HIDDEN | OP_HALF,
     .batch = batch_planes},
    {0},
};
