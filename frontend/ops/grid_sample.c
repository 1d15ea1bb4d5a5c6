/* Samples of images at the points of a grid. */
#include "frontend/ops/window.h"

#define MODES "bilinear nearest bicubic"
enum { BILINEAR, NEAREST, BICUBIC };

static bool grid_shape(Graph *g, Call *c)
{
    View x = call_view(g, c, 0), grid = call_view(g, c, 1);
    int axes = x.rank - 2;
    if (axes != 2 && axes != 3)
        return call_error_at(g, c, 0, "x must be [N, C, H, W] or [N, C, D, H, W], not %s",
                             use_text(g, call_operand(c, 0)));
    if (!want_f32(g, c, 0) || !want_f32(g, c, 1))
        return false;
    if (grid.rank != axes + 2 || grid.dim[0] != x.dim[0] || grid.dim[axes + 1] != axes)
        return call_error_at(g, c, 1, "grid must be [%lld, %s, %d] for x %s, not %s",
                             (long long)x.dim[0], axes == 2 ? "H, W" : "D, H, W", axes,
                             dims_text(g, c, 0), dims_text(g, c, 1));
    if (axes == 3 && call_int(c, "mode") == BICUBIC)
        return call_error(g, c, "mode = bicubic is for images [N, C, H, W]");
    for (int i = 0; i < axes; i++)
        x.dim[2 + i] = grid.dim[1 + i];
    return call_output(g, c, F32, x.rank, x.dim);
}

static double grid_flops(const Graph *g, Id node)
{
    const Node *n = &g->node.at[node];
    View grid = use_view(g, node_use(g, n, 1));
    double taps = node_attr(g, node, "mode")->number == BICUBIC ? 16 : 4;
    return 2 * taps * (double)value_count(&g->value.at[n->value]) + 20 * (double)view_count(&grid);
}

/* ---- Gradients ------------------------------------------------------------------------------ */

static Use gradient(const Grad *grad, const char *op, int count, const Use *operands)
{
    static const char *const settings[] = {"mode", "padding", "align_corners"};
    View x = use_view(grad->g, grad_operand(grad, 0));
    Call c = call_begin(grad->g, &grad->at, op);
    for (int i = 0; i < 3; i++)
        c.attr[op_arg(c.op, settings[i])] = *node_attr(grad->g, grad->node, settings[i]);
    if (op_arg(c.op, "size") >= 0)
        call_set_list(&c, "size", x.rank - 2, x.dim + 2);
    for (int i = 0; i < count; i++)
        call_use(grad->g, &c, operands[i]);
    return call_finish(grad->g, &c) ? c.result.at[0] : (Use){NONE, NONE};
}

/* The nearest element stays the same where a point moves a little: nothing flows to the grid. */
static bool grid_grad(Grad *grad)
{
    Use x = grad_operand(grad, 0), grid = grad_operand(grad, 1), dy = grad->dout[0];
    if (grad->wanted[0] &&
        (grad->din[0] = gradient(grad, "grid_sample_grad", 2, (Use[]){grid, dy})).value == NONE)
        return false;
    if (!grad->wanted[1] || node_attr(grad->g, grad->node, "mode")->number == NEAREST)
        return true;
    grad->din[1] = gradient(grad, "grid_sample_grid_grad", 3, (Use[]){x, grid, dy});
    return grad->din[1].value != NONE;
}

static bool grid_grad_shape(Graph *g, Call *c)
{
    View dy = call_view(g, c, 1);
    const Attr *size = call_attr(c, "size");
    for (int i = 0; i < size->count; i++)
        dy.dim[2 + i] = size->list[i];
    return call_output(g, c, F32, dy.rank, dy.dim);
}

static bool grid_grid_shape(Graph *g, Call *c)
{
    View grid = call_view(g, c, 1);
    return call_output(g, c, F32, grid.rank, grid.dim);
}

/* clang-format off */
#define SAMPLING                                                                              \
    {.name = "mode", .kind = ARG_WORD, .fallback = "bilinear", .words = MODES,                \
     .help = "bilinear of volumes: trilinear; bicubic is for images"},                        \
    {.name = "padding", .kind = ARG_WORD, .fallback = "zeros",                                \
     .words = "zeros border reflection", .help = "what is outside of x"},                     \
    {.name = "align_corners", .kind = ARG_BOOL, .fallback = "false",                          \
     .help = "-1 and 1 are the outermost elements, not the edges of x"}
/* clang-format on */

const OpRow ops_grid_sample[] = {
    {.name = "grid_sample",
     .args =
         {{.name = "x", .help = "f32[N, C, H, W] or [N, C, D, H, W]"},
          {.name = "grid",
           .help =
               "f32[N, H', W', 2]: the position in x of each element of the result, x then y, each "
               "from -1 to 1; of volumes [N, D', H', W', 3]"},
          SAMPLING},
     .statistics = 2,
     .shape = grid_shape,
     .grad = grid_grad,
     .flops = grid_flops,
     .flags = OP_HALF,
     .strided = 1,
     .batch = batch_first,
     .help = "x at the points of a grid: [N, C, H, W] -> [N, C, H', W']"},
    {.name = "grid_sample_grad",
     .kernel = "grid_sample",
     .args = {{.name = "grid"},
              {.name = "dy"},
              SAMPLING,
              {.name = "size", .kind = ARG_INTS, .count = 3, .flags = ARG_FRONT}},
     .statistics = 1,
     .shape = grid_grad_shape,
     .flags = OP_HIDDEN | OP_HALF,
     .batch = batch_first},
    {.name = "grid_sample_grid_grad",
     .kernel = "grid_sample",
     .args = {{.name = "x"}, {.name = "grid"}, {.name = "dy"}, SAMPLING},
     .statistics = 2,
     .wide_out = 1,
     .shape = grid_grid_shape,
     .strided = 1,
     .flags = OP_HIDDEN | OP_HALF,
     .batch = batch_first},
    {0},
};
