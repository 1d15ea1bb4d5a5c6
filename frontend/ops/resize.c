/* Images of another size. */
#include "frontend/ops/window.h"

#include <assert.h>

static bool upsample2d_shape(Graph *g, Call *c)
{
    bool scaled = call_attr(c, "scale")->given, sized = call_attr(c, "size")->given;
    if (!window_operand(g, c, 0, 4, "[N, C, H, W]"))
        return false;
    if (scaled == sized)
        return call_error(g, c, "needs either scale, as in upsample2d(x, 2), or size = [H, W]");
    if (!window_setting(g, c, scaled ? "scale" : "size", 2, 1))
        return false;
    if (call_int(c, "align_corners") && call_int(c, "mode") == 0)
        return call_error(g, c, "align_corners has no effect with mode = nearest");
    View x = call_view(g, c, 0);
    for (int i = 0; i < 2; i++) {
        int64_t number = call_attr(c, scaled ? "scale" : "size")->list[i];
        if (scaled && x.dim[2 + i] > INT64_MAX / number)
            return call_error(g, c, "scale = %lld makes the output too large", (long long)number);
        x.dim[2 + i] = scaled ? x.dim[2 + i] * number : number;
    }
    return call_output(g, c, F32, 4, x.dim);
}

static bool upsample2d_grad(Grad *grad)
{
    Graph *g = grad->g;
    View x = use_view(g, grad_operand(grad, 0));
    Call c = call_begin(g, &grad->at, "upsample2d_grad");
    call_set(&c, "mode", node_attr(g, grad->node, "mode")->number);
    call_set(&c, "align_corners", node_attr(g, grad->node, "align_corners")->number);
    call_set_list(&c, "size", 2, x.dim + 2);
    call_use(g, &c, grad->dout[0]);
    grad->din[0] = call_finish(g, &c) ? c.result.at[0] : (Use){NONE, NONE};
    return grad->din[0].value != NONE;
}

static bool upsample2d_grad_shape(Graph *g, Call *c)
{
    View dy = call_view(g, c, 0);
    const int64_t *size = call_attr(c, "size")->list;
    return call_output(g, c, F32, 4, (int64_t[]){dy.dim[0], dy.dim[1], size[0], size[1]});
}

static double upsample2d_flops(const Graph *g, Id node)
{
    double count = (double)value_count(&g->value.at[g->node.at[node].value]);
    return node_attr(g, node, "mode")->number == 0 ? count : 8 * count;
}

/* Block (i, j) of channel c stands in channel (c * factor + i) * factor + j: the channels are split
 * and the blocks moved next to the pixels by a view; one copy then makes the image. */
static bool pixel_shuffle_build(Graph *g, Call *c)
{
    if (!window_operand(g, c, 0, 4, "[N, C, H, W]") || !window_setting(g, c, "factor", 1, 1))
        return false;
    View x = call_view(g, c, 0);
    int64_t r = call_int(c, "factor");
    if (r > x.dim[1] || x.dim[1] % (r * r) != 0)
        return call_error_at(g, c, 0, "factor * factor must divide the %lld channels of %s",
                             (long long)x.dim[1], use_text(g, call_operand(c, 0)));
    int64_t channels = x.dim[1] / r / r, step = x.stride[1];
    View blocks = {.rank = 6,
                   .offset = x.offset,
                   .dim = {x.dim[0], channels, x.dim[2], r, x.dim[3], r},
                   .stride = {x.stride[0], step * r * r, x.stride[2], step * r, x.stride[3], step}};
    Use image = use_make(g, call_operand(c, 0).value, blocks);
    image = call_op(g, c, "copy", 1, &image);
    if (image.value == NONE)
        return false;
    int64_t dim[4] = {x.dim[0], channels, x.dim[2] * r, x.dim[3] * r};
    View copied = use_view(g, image), y;
    bool dense = view_reshape(&copied, 4, dim, &y);
    assert(dense); /* a copy is */
    (void)dense;
    call_result(g, c, use_make(g, image.value, y));
    return true;
}

const OpRow ops_resize[] = {
    {.name = "upsample2d",
     .args =
         {{.name = "x"},
          {.name = "scale",
           .kind = ARG_INTS,
           .count = 2,
           .flags = ARG_FRONT,
           .fallback = "none",
           .help = "times as large, whole numbers; resize takes any"},
          {.name = "size",
           .kind = ARG_INTS,
           .count = 2,
           .flags = ARG_FRONT,
           .fallback = "none",
           .help = "instead of scale"},
          {.name = "mode", .kind = ARG_WORD, .fallback = "nearest", .words = "nearest bilinear"},
          {.name = "align_corners",
           .kind = ARG_BOOL,
           .fallback = "false",
           .help = "corners of x and of the result are the same points"}},
     .shape = upsample2d_shape,
     .grad = upsample2d_grad,
     .flops = upsample2d_flops,
     .strided = 1,
     .out_strided = 1,
     .batch = batch_planes,
     .help = "[N, C, H, W] -> [N, C, H * scale, W * scale]"},
    {.name = "pixel_shuffle",
     .args = {{.name = "x"}, {.name = "factor", .kind = ARG_INT, .flags = ARG_FRONT}},
     .build = pixel_shuffle_build,
     .help = "[N, C * factor * factor, H, W] -> [N, C, H * factor, W * factor]"},
    {.name = "upsample2d_grad",
     .kernel = "upsample2d",
     .args = {{.name = "dy"},
              {.name = "mode", .kind = ARG_WORD, .words = "nearest bilinear"},
              {.name = "align_corners", .kind = ARG_BOOL},
              {.name = "size", .kind = ARG_INTS, .count = 2, .flags = ARG_FRONT}},
     .shape = upsample2d_grad_shape,
     .flags = OP_HIDDEN,
     .batch = batch_planes},
    {0},
};
