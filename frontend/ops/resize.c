/* Images of another size. */
#include "frontend/ops/window.h"

#include <assert.h>
#include <math.h>

static void choose(Call *c, const char *setting, const char *word)
{
    call_set(c, setting, word_place(c->op->args[op_arg(c->op, setting)].words, word));
}

/* By a fraction: resize, at the places where PyTorch's interpolate has them. */
static bool upsample_by_fraction(Graph *g, Call *c, double scale, bool bilinear, bool corners)
{
    View x = call_view(g, c, 0);
    Call resize = call_begin(g, c, "resize");
    choose(&resize, "mode", bilinear ? "linear" : "nearest");
    choose(&resize, "coordinates",
           corners    ? "align_corners"
           : bilinear ? "half_pixel"
                      : "asymmetric");
    choose(&resize, "round", "floor");
    if (corners) { /* the corners of what is there: sizes, which are whole */
        int64_t size[2];
        for (int i = 0; i < 2; i++) {
            double to = floor(scale * (double)x.dim[2 + i]);
            size[i] = to > (double)MAX_WINDOW ? MAX_WINDOW : (int64_t)to;
            if (size[i] < 1)
                return call_error(g, c, "an axis of %lld would have nothing left",
                                  (long long)x.dim[2 + i]);
        }
        call_set_list(&resize, "size", 2, size);
    } else
        call_set(&resize, "scale", scale);
    call_use(g, &resize, call_operand(c, 0));
    if (!call_finish(g, &resize))
        return false;
    call_result(g, c, resize.result.at[0]);
    return true;
}

static bool upsample2d_build(Graph *g, Call *c)
{
    const Attr *scale = call_attr(c, "scale");
    bool sized = call_attr(c, "size")->given, corners = call_int(c, "align_corners") != 0;
    bool fraction = scale->given && !scale->count, bilinear = call_int(c, "mode") != 0;
    if (!window_operand(g, c, 0, 4, "[N, C, H, W]"))
        return false;
    if (scale->given == sized)
        return call_error(g, c, "needs either scale, as in upsample2d(x, 2), or size = [H, W]");
    if (corners && !bilinear)
        return call_error(g, c, "align_corners has no effect with mode = nearest");
    if (fraction && !(scale->number > 0 && scale->number < 1e9))
        return call_error(g, c, "scale = %g must be positive and less than 1e9", scale->number);
    if (fraction)
        return upsample_by_fraction(g, c, scale->number, bilinear, corners);
    if (!window_setting(g, c, sized ? "size" : "scale", 2, 1))
        return false;
    View x = call_view(g, c, 0);
    int64_t size[2];
    for (int i = 0; i < 2; i++) {
        int64_t number = call_attr(c, sized ? "size" : "scale")->list[i];
        if (!sized && x.dim[2 + i] > INT64_MAX / number)
            return call_error(g, c, "scale = %lld makes the output too large", (long long)number);
        size[i] = sized ? number : x.dim[2 + i] * number;
    }
    Call up = call_begin(g, c, "upsample");
    call_set(&up, "mode", bilinear);
    call_set(&up, "align_corners", corners);
    call_set_list(&up, "size", 2, size);
    call_use(g, &up, call_operand(c, 0));
    if (!call_finish(g, &up))
        return false;
    call_result(g, c, up.result.at[0]);
    return true;
}

static bool upsample_shape(Graph *g, Call *c)
{
    View x = call_view(g, c, 0);
    const int64_t *size = call_attr(c, "size")->list;
    return call_output(g, c, F32, 4, (int64_t[]){x.dim[0], x.dim[1], size[0], size[1]});
}

static bool upsample_grad(Grad *grad)
{
    Graph *g = grad->g;
    View x = use_view(g, grad_operand(grad, 0));
    Call c = call_begin(g, &grad->at, "upsample_grad");
    call_set(&c, "mode", node_attr(g, grad->node, "mode")->number);
    call_set(&c, "align_corners", node_attr(g, grad->node, "align_corners")->number);
    call_set_list(&c, "size", 2, x.dim + 2);
    call_use(g, &c, grad->dout[0]);
    grad->din[0] = call_finish(g, &c) ? c.result.at[0] : (Use){NONE, NONE};
    return grad->din[0].value != NONE;
}

static double upsample_flops(const Graph *g, Id node)
{
    double count = (double)value_count(&g->value.at[g->node.at[node].value]);
    return node_attr(g, node, "mode")->number == 0 ? count : 8 * count;
}

/* Block (i, j) of channel c is in channel (c * factor + i) * factor + j: the channels are split
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
           .flags = ARG_FRONT | ARG_FRACTION,
           .fallback = "none",
           .help = "times as large; one number, or one for each axis, which are whole then"},
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
     .build = upsample2d_build,
     .help = "[N, C, H, W] -> [N, C, H * scale, W * scale]"},
    {.name = "upsample",
     .args = {{.name = "x"},
              {.name = "mode", .kind = ARG_WORD, .words = "nearest bilinear"},
              {.name = "align_corners", .kind = ARG_BOOL},
              {.name = "size", .kind = ARG_INTS, .count = 2, .flags = ARG_FRONT}},
     .shape = upsample_shape,
     .grad = upsample_grad,
     .flops = upsample_flops,
     .strided = 1,
     .out_strided = 1,
     .flags = OP_HIDDEN | OP_HALF,
     .batch = batch_planes},
    {.name = "pixel_shuffle",
     .args = {{.name = "x"}, {.name = "factor", .kind = ARG_INT, .flags = ARG_FRONT}},
     .build = pixel_shuffle_build,
     .help = "[N, C * factor * factor, H, W] -> [N, C, H * factor, W * factor]"},
    {.name = "upsample_grad",
     .kernel = "upsample",
     .args = {{.name = "dy"},
              {.name = "mode", .kind = ARG_WORD, .words = "nearest bilinear"},
              {.name = "align_corners", .kind = ARG_BOOL},
              {.name = "size", .kind = ARG_INTS, .count = 2, .flags = ARG_FRONT}},
     .shape = upsample_shape,
     .flags = OP_HIDDEN | OP_HALF,
     .batch = batch_planes},
    {0},
};
