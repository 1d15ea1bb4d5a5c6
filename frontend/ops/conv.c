/* Convolutions. conv2d is the kernel; conv1d is conv2d on images of one row, by views. */
#include "frontend/ops/conv.h"

/* ---- conv2d --------------------------------------------------------------------------------- */

static bool conv2d_params(Graph *g, Call *c)
{
    return conv_params(g, c, 2);
}

static bool conv2d_shape(Graph *g, Call *c)
{
    if (!window_operand(g, c, 0, 4, "[N, C, H, W]") ||
        !window_operand(g, c, 1, 4, "[channels, C / groups, KH, KW]") || !check_weights(g, c) ||
        !window_setting(g, c, "stride", 2, 1) || !window_setting(g, c, "dilation", 2, 1))
        return false;
    View x = call_view(g, c, 0), w = call_view(g, c, 1);
    int64_t dim[4] = {x.dim[0], w.dim[0]};
    WindowAxis axis[2];
    for (int i = 0; i < 2; i++)
        axis[i] = (WindowAxis){.kernel = w.dim[2 + i],
                               .stride = call_attr(c, "stride")->list[i],
                               .dilation = call_attr(c, "dilation")->list[i]};
    if (!window_pad(g, c, axis, 2, x.dim + 2))
        return false;
    for (int i = 0; i < 2; i++)
        if ((dim[2 + i] = window_count(&axis[i], x.dim[2 + i], false)) == 0)
            return too_small(g, c);
    return call_output(g, c, F32, 4, dim);
}

/* Two for each weight that an output element sees. */
static double conv2d_flops(const Graph *g, Id node)
{
    const Node *n = &g->node.at[node];
    View w = use_view(g, node_use(g, n, 1));
    return 2.0 * (double)value_count(&g->value.at[n->value]) * (double)(view_count(&w) / w.dim[0]);
}

/* ---- conv1d --------------------------------------------------------------------------------- */

static bool conv1d_params(Graph *g, Call *c)
{
    return conv_params(g, c, 1);
}

/* [A, B, L] as [A, B, 1, L]. */
static Use with_rows(Graph *g, Use use)
{
    View v = use_view(g, use);
    v.rank = 4;
    v.dim[3] = v.dim[2];
    v.stride[3] = v.stride[2];
    v.dim[2] = 1;
    return use_make(g, use.value, v);
}

static bool conv1d_build(Graph *g, Call *c)
{
    if (!window_operand(g, c, 0, 3, "[N, C, L]") ||
        !window_operand(g, c, 1, 3, "[channels, C / groups, K]") || !check_weights(g, c) ||
        !window_setting(g, c, "stride", 1, 1) || !window_setting(g, c, "dilation", 1, 1))
        return false;
    View x = call_view(g, c, 0), w = call_view(g, c, 1);
    WindowAxis axis = {
        .kernel = w.dim[2], .stride = call_int(c, "stride"), .dilation = call_int(c, "dilation")};
    if (!window_pad(g, c, &axis, 1, x.dim + 2))
        return false;
    if (window_count(&axis, x.dim[2], false) == 0)
        return too_small(g, c);

    Call conv = call_begin(g, c, "conv2d");
    call_use(g, &conv, with_rows(g, call_operand(c, 0)));
    call_use(g, &conv, with_rows(g, call_operand(c, 1)));
    call_use(g, &conv, call_operand(c, 2));
    call_set_list(&conv, "stride", 2, (int64_t[]){1, axis.stride});
    call_set_list(&conv, "dilation", 2, (int64_t[]){1, axis.dilation});
    call_set_list(&conv, "pad", 4, (int64_t[]){0, axis.begin, 0, axis.end});
    call_set(&conv, "groups", (double)call_int(c, "groups"));
    if (!call_finish(g, &conv))
        return false;
    View y = use_view(g, conv.result.at[0]);
    y.rank = 3;
    y.dim[2] = y.dim[3];
    y.stride[2] = y.stride[3];
    call_result(g, c, use_make(g, conv.result.at[0].value, y));
    return true;
}

/* ---- conv_transpose2d ----------------------------------------------------------------------- */

static bool conv_transpose2d_params(Graph *g, Call *c)
{
    return transpose_params(g, c, 2);
}

static bool conv_transpose2d_shape(Graph *g, Call *c)
{
    if (!window_operand(g, c, 0, 4, "[N, C, H, W]") ||
        !window_operand(g, c, 1, 4, "[C, channels / groups, KH, KW]") ||
        !window_setting(g, c, "stride", 2, 1) || !window_setting(g, c, "dilation", 2, 1) ||
        !window_setting(g, c, "output_pad", 2, 0))
        return false;
    WindowAxis axis[2] = {{0}};
    int64_t dim[4];
    if (!transpose_window(g, c, axis, 2, dim))
        return false;
    return call_output(g, c, F32, 4, dim);
}

static double conv_transpose2d_flops(const Graph *g, Id node)
{
    const Node *n = &g->node.at[node];
    View x = use_view(g, node_use(g, n, 0)), w = use_view(g, node_use(g, n, 1));
    return 2.0 * (double)view_count(&x) * (double)(view_count(&w) / w.dim[0]);
}

/* ---- Gradients ------------------------------------------------------------------------------ */

static void copy_window(const Grad *grad, Call *c)
{
    static const char *const settings[] = {"stride", "pad", "dilation", "groups"};
    for (int i = 0; i < 4; i++)
        c->attr[op_arg(c->op, settings[i])] = *node_attr(grad->g, grad->node, settings[i]);
}

/* By the weights of a convolution that slides over `image` and makes `result`. */
static bool weight_gradient(Grad *grad, Use image, Use result)
{
    View w = use_view(grad->g, grad_operand(grad, 1));
    Call c = call_begin(grad->g, &grad->at, "conv2d_weight_grad");
    copy_window(grad, &c);
    call_set_list(&c, "kernel", 2, w.dim + 2);
    call_use(grad->g, &c, image);
    call_use(grad->g, &c, result);
    grad->din[1] = call_finish(grad->g, &c) ? c.result.at[0] : (Use){NONE, NONE};
    return grad->din[1].value != NONE;
}

/* The bias is seen by every place of its channel. */
static bool bias_gradient(Grad *grad)
{
    Call c = call_begin(grad->g, &grad->at, "sum");
    call_set_list(&c, "axis", 3, (int64_t[]){0, 2, 3});
    call_use(grad->g, &c, grad->dout[0]);
    grad->din[2] = call_finish(grad->g, &c) ? c.result.at[0] : (Use){NONE, NONE};
    return grad->din[2].value != NONE;
}

/* The other convolution with the same weights takes the gradient back to the operand; `extra`
 * makes up for what the stride left over. */
static bool operand_gradient(Grad *grad, const char *op)
{
    Graph *g = grad->g;
    View x = use_view(g, grad_operand(grad, 0)), w = use_view(g, grad_operand(grad, 1));
    View dy = use_view(g, grad->dout[0]);
    Call c = call_begin(g, &grad->at, op);
    copy_window(grad, &c);
    if (op_arg(c.op, "output_pad") >= 0) {
        int64_t extra[2];
        for (int i = 0; i < 2; i++)
            extra[i] =
                x.dim[2 + i] - ((dy.dim[2 + i] - 1) * call_attr(&c, "stride")->list[i] -
                                call_attr(&c, "pad")->list[i] - call_attr(&c, "pad")->list[2 + i] +
                                call_attr(&c, "dilation")->list[i] * (w.dim[2 + i] - 1) + 1);
        call_set_list(&c, "output_pad", 2, extra);
    }
    call_set(&c, "bias", 0);
    call_use(g, &c, grad->dout[0]);
    call_use(g, &c, grad_operand(grad, 1));
    grad->din[0] = call_finish(g, &c) ? c.result.at[0] : (Use){NONE, NONE};
    return grad->din[0].value != NONE;
}

static bool conv2d_grad(Grad *grad)
{
    return (!grad->wanted[0] || operand_gradient(grad, "conv_transpose2d")) &&
           (!grad->wanted[1] || weight_gradient(grad, grad_operand(grad, 0), grad->dout[0])) &&
           (!grad->wanted[2] || bias_gradient(grad));
}

/* Image and result change places. */
static bool conv_transpose2d_grad(Grad *grad)
{
    return (!grad->wanted[0] || operand_gradient(grad, "conv2d")) &&
           (!grad->wanted[1] || weight_gradient(grad, grad->dout[0], grad_operand(grad, 0))) &&
           (!grad->wanted[2] || bias_gradient(grad));
}

static bool weight_grad_shape(Graph *g, Call *c)
{
    View x = call_view(g, c, 0), dy = call_view(g, c, 1);
    const int64_t *kernel = call_attr(c, "kernel")->list;
    const int64_t dim[4] = {dy.dim[1], x.dim[1] / call_int(c, "groups"), kernel[0], kernel[1]};
    return call_output(g, c, F32, 4, dim);
}

static double weight_grad_flops(const Graph *g, Id node)
{
    const Node *n = &g->node.at[node];
    View dy = use_view(g, node_use(g, n, 1));
    const Value *dw = &g->value.at[n->value];
    return 2.0 * (double)view_count(&dy) * (double)(value_count(dw) / dw->dim[0]);
}

/* ---- The batch ------------------------------------------------------------------------------ */

/* Each image separately, by weights that all of them share. */
static int batch_images(const Graph *g, const Node *n, int operand, int axis, int output)
{
    (void)g, (void)n, (void)output;
    return operand == 0 && axis == 0 ? 0 : BATCH_MIXED;
}

static int batch_weight_grad(const Graph *g, const Node *n, int operand, int axis, int output)
{
    (void)g, (void)n, (void)operand, (void)output;
    return axis == 0 ? BATCH_SUMMED : BATCH_MIXED;
}

/* ---- Rows ----------------------------------------------------------------------------------- */

const OpRow ops_conv[] = {
    {.name = "conv2d",
     .precision = PRECISION_NARROW,
     .rate = RATE_CONVOLUTION,
     .args = {LAYER("[channels, C / groups, KH, KW]", 2), INTS("stride", 2, "1"), PAD(4),
              INTS("dilation", 2, "1"), GROUPS, BIAS},
     .params = conv2d_params,
     .shape = conv2d_shape,
     .grad = conv2d_grad,
     .flops = conv2d_flops,
     .flags = OP_EPILOGUE | OP_HALF,
     .addend = 2,
     .strided = 1,
     .out_strided = 1,
     .batch = batch_images,
     .help = "[N, C, H, W] -> [N, channels, (H + pads - KH) / stride + 1, ...]"},
    {.name = "conv1d",
     .args = {LAYER("[channels, C / groups, K]", 1), INTS("stride", 1, "1"), PAD(2),
              INTS("dilation", 1, "1"), GROUPS, BIAS},
     .params = conv1d_params,
     .build = conv1d_build,
     .help = "[N, C, L] -> [N, channels, (L + pads - K) / stride + 1]"},
    {.name = "conv_transpose2d",
     .precision = PRECISION_NARROW,
     .rate = RATE_CONVOLUTION,
     .args = {LAYER("[C, channels / groups, KH, KW]", 2), INTS("stride", 2, "1"), CUT(4),
              OUTPUT_PAD(2), INTS("dilation", 2, "1"), GROUPS, BIAS},
     .params = conv_transpose2d_params,
     .shape = conv_transpose2d_shape,
     .grad = conv_transpose2d_grad,
     .flops = conv_transpose2d_flops,
     .flags = OP_EPILOGUE | OP_HALF,
     .addend = 2,
     .strided = 1,
     .out_strided = 1,
     .batch = batch_images,
     .help = "[N, C, H, W] -> [N, channels, (H - 1) * stride + KH - pads + output_pad, ...]"},
    {.name = "conv2d_weight_grad",
     .precision = PRECISION_NARROW,
     .wide_out = 1,
     .rate = RATE_CONVOLUTION,
     .args = {{.name = "x"},
              {.name = "dy"},
              {.name = "kernel", .kind = ARG_INTS, .count = 2, .flags = ARG_FRONT},
              INTS("stride", 2, "1"),
              INTS("pad", 4, "0"),
              INTS("dilation", 2, "1"),
              GROUPS},
     .shape = weight_grad_shape,
     .flops = weight_grad_flops,
     .strided = 1,
     .flags = OP_HIDDEN | OP_ASIDE | OP_HALF,
     .batch = batch_weight_grad,
     .help = "the gradient of a convolution by its weights"},
    {0},
};
