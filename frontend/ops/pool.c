/* Pools: the largest or the mean of each window, and of whole planes. */
#include "frontend/ops/window.h"

static bool pool_shape(Graph *g, Call *c)
{
    Attr *stride = &c->attr[op_arg(c->op, "stride")];
    if (!window_operand(g, c, 0, 4, "[N, C, H, W]") || !window_setting(g, c, "kernel", 2, 1))
        return false;
    if (!stride->given)
        *stride = *call_attr(c, "kernel");
    if (!window_setting(g, c, "stride", 2, 1))
        return false;
    View x = call_view(g, c, 0);
    int64_t dim[4] = {x.dim[0], x.dim[1]};
    WindowAxis axis[2];
    for (int i = 0; i < 2; i++)
        axis[i] = (WindowAxis){
            .kernel = call_attr(c, "kernel")->list[i], .stride = stride->list[i], .dilation = 1};
    if (!window_pad(g, c, axis, 2, x.dim + 2))
        return false;
    for (int i = 0; i < 2; i++) {
        if (axis[i].begin >= axis[i].kernel || axis[i].end >= axis[i].kernel)
            return call_error(g, c,
                              "pad must be less than kernel = %lld: a window of padding alone "
                              "has no value",
                              (long long)axis[i].kernel);
        dim[2 + i] = window_count(&axis[i], x.dim[2 + i], call_int(c, "ceil"));
        if (dim[2 + i] == 0)
            return call_error_at(g, c, 0, "the window [%lld, %lld] does not fit into x %s",
                                 (long long)axis[0].kernel, (long long)axis[1].kernel,
                                 use_text(g, call_operand(c, 0)));
    }
    return call_output(g, c, F32, 4, dim);
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

/* clang-format off */
#define WINDOW                                                                                 \
    {.name = "x"},                                                                             \
    {.name = "kernel", .kind = ARG_INTS, .count = 2, .help = "size of the window"},            \
    {.name = "stride", .kind = ARG_INTS, .count = 2, .fallback = "none",                       \
     .help = "the kernel, where none is given"},                                               \
    {.name = "pad", .kind = ARG_INTS, .count = 4, .fallback = "0", .words = "same valid",      \
     .help = "one number, one for each axis, or begins and ends"},                             \
    {.name = "ceil", .kind = ARG_BOOL, .flags = ARG_FRONT, .fallback = "false",                \
     .help = "let a last window hang over the end"}
/* clang-format on */

const OpRow ops_pool[] = {
    {.name = "maxpool2d",
     .kernel = "pool",
     .args = {WINDOW},
     .shape = pool_shape,
     .flops = pool_flops,
     .strided = 1,
     .out_strided = 1,
     .help = "largest of each window: [N, C, H, W] -> [N, C, (H + pads - KH) / stride + 1, ...]"},
    {.name = "avgpool2d",
     .kernel = "pool",
     .args = {WINDOW,
              {.name = "count_include_pad",
               .kind = ARG_BOOL,
               .fallback = "false",
               .help = "padding counts as zeros"}},
     .shape = pool_shape,
     .flops = pool_flops,
     .strided = 1,
     .out_strided = 1,
     .help = "mean of each window: [N, C, H, W] -> [N, C, (H + pads - KH) / stride + 1, ...]"},
    {.name = "global_avgpool",
     .kernel = "pool",
     .args = {{.name = "x"}},
     .shape = global_shape,
     .flops = global_flops,
     .strided = 1,
     .out_strided = 1,
     .help = "mean of each channel: [N, C, ...] -> [N, C]"},
    {.name = "global_maxpool",
     .kernel = "pool",
     .args = {{.name = "x"}},
     .shape = global_shape,
     .flops = global_flops,
     .strided = 1,
     .out_strided = 1,
     .help = "largest of each channel: [N, C, ...] -> [N, C]"},
    {0},
};
