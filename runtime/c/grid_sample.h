/* Samples of images [N, C, H, W] or volumes [N, C, D, H, W] at the points of a grid, and the
 * gradients by both. The grid is f32, and so is its gradient. */
#ifndef GP_GRID_SAMPLE_H
#define GP_GRID_SAMPLE_H

#include "grid_taps.h"
#include "settings.h"

typedef struct {
    gp_grid_way way;
    int axes;
    int64_t size[3], stride[3]; /* of x */
    int64_t channels, points;   /* points of a sample */
} gp_grid;

GP_FUNCTION gp_grid gp_grid_of(const gp_grid_sample_attr *a, const gp_tensor *x,
                               const gp_tensor *grid)
{
    gp_grid v = {.way = {a->mode, a->padding, a->align_corners}};
    v.axes = gp_grid_axes(x, v.size, v.stride);
    v.channels = x->dim[1];
    v.points = gp_span(grid, 1, grid->rank - 1);
    return v;
}

GP_KERNEL(grid_sample)
{
    const gp_tensor *x = &c->in[0], *grid = &c->in[1], *y = &c->out[0];
    const gp_grid v = gp_grid_of(c->attr, x, grid);
    const int64_t count = x->dim[0] * v.points;
    GP_PARALLEL(c->run, count * v.channels > 4096)
    for (int64_t i = 0; i < count; i++) {
        const int64_t n = i / v.points, to = n * v.channels * v.points + i % v.points;
        gp_grid_axis taps[3];
        gp_grid_point((const gp_real *)grid->data + i * v.axes, v.axes, v.size, v.way, taps);
        for (int64_t k = 0; k < v.channels; k++)
            gp_set_real(y->data, to + k * v.points, y->dtype,
                        gp_grid_read(x, n * x->stride[0] + k * x->stride[1], v.stride, taps, -1));
    }
    return GP_OK;
}

/* Of 16 bits: a plane for each thread, since its elements are sums. */
GP_WORKSPACE(grid_sample_grad)
{
    const gp_tensor *dx = &c->out[0];
    return gp_is_half(c) ? (size_t)(c->run->threads * gp_span(dx, 2, dx->rank)) * sizeof(gp_real)
                         : 0;
}

GP_WAYS(grid_sample_grad)
{
    gp_way(ways, "grid_half", gp_is_half(c));
}

/* Points may read the same elements, so a plane is the work of one thread. */
GP_KERNEL(grid_sample_grad)
{
    const gp_tensor *grid = &c->in[0], *dy = &c->in[1], *dx = &c->out[0];
    const gp_grid v = gp_grid_of(c->attr, dx, grid);
    const int64_t planes = dx->dim[0] * v.channels, size = v.size[0] * v.size[1] * v.size[2];
    GP_PARALLEL(c->run, planes * v.points > 4096)
    for (int64_t i = 0; i < planes; i++) {
        const gp_real *at = (const gp_real *)grid->data + i / v.channels * v.points * v.axes;
        gp_real *to = (gp_real *)dx->data + i * size;
        if (GP_WAY(grid_half, gp_is_half(c)))
            to = (gp_real *)c->work + gp_thread() * size;
        memset(to, 0, (size_t)size * sizeof *to);
        for (int64_t k = 0; k < v.points; k++) {
            gp_grid_axis taps[3];
            gp_grid_point(at + k * v.axes, v.axes, v.size, v.way, taps);
            gp_grid_give(to, v.size, taps, gp_get_real(dy->data, i * v.points + k, dy->dtype));
        }
        if (GP_WAY(grid_half, gp_is_half(c)))
            gp_store_row(dx, i, to, size);
    }
    return GP_OK;
}

GP_KERNEL(grid_sample_grid_grad)
{
    const gp_tensor *x = &c->in[0], *grid = &c->in[1], *dy = &c->in[2];
    const gp_grid v = gp_grid_of(c->attr, x, grid);
    const int64_t count = x->dim[0] * v.points;
    GP_PARALLEL(c->run, count * v.channels > 4096)
    for (int64_t i = 0; i < count; i++) {
        const int64_t n = i / v.points, up = n * v.channels * v.points + i % v.points;
        gp_grid_axis taps[3];
        gp_grid_point((const gp_real *)grid->data + i * v.axes, v.axes, v.size, v.way, taps);
        for (int axis = 0; axis < v.axes; axis++) {
            gp_real sum = 0;
            for (int64_t k = 0; k < v.channels; k++)
                sum +=
                    gp_get_real(dy->data, up + k * v.points, dy->dtype) *
                    gp_grid_read(x, n * x->stride[0] + k * x->stride[1], v.stride, taps, 2 - axis);
            ((gp_real *)c->out[0].data)[i * v.axes + axis] = sum;
        }
    }
    return GP_OK;
}

#endif
