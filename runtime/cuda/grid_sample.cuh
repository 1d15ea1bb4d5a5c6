/* Samples of images [N, C, H, W] or volumes [N, C, D, H, W] at the points of a grid, a thread for
 * each, and the gradients by both: by the grid a thread for each point, by x one for each plane,
 * since points may read the same elements. The grid is f32, and so is its gradient. */
#ifndef GP_GRID_SAMPLE_CUH
#define GP_GRID_SAMPLE_CUH

#include "../c/grid_taps.h"
#include "base.cuh"

typedef struct {
    gp_grid_way way;
    int axes;
    int64_t size[3], stride[3];        /* of x */
    int64_t samples, channels, points; /* points of a sample */
} gp_grid;

GP_UNUSED static inline gp_grid gp_grid_of(const void *attr, const gp_tensor *x,
                                           const gp_tensor *grid)
{
    const gp_grid_sample_attr *a = (const gp_grid_sample_attr *)attr;
    gp_grid v;
    v.way.mode = a->mode;
    v.way.padding = a->padding;
    v.way.align = a->align_corners;
    v.axes = gp_grid_axes(x, v.size, v.stride);
    v.samples = x->dim[0];
    v.channels = x->dim[1];
    v.points = gp_span(grid, 1, grid->rank - 1);
    return v;
}

static __global__ void gp_grid_samples(gp_grid v, gp_tensor x, const gp_real *grid, gp_reals y)
{
    for (GP_EACH(i, v.samples * v.channels * v.points)) {
        const int64_t plane = i / v.points, n = plane / v.channels;
        gp_grid_axis taps[3];
        gp_grid_point(grid + (n * v.points + i % v.points) * v.axes, v.axes, v.size, v.way, taps);
        y.put(i, gp_grid_read(&x, n * x.stride[0] + plane % v.channels * x.stride[1], v.stride,
                              taps, -1));
    }
}

GP_KERNEL(grid_sample)
{
    const gp_grid v = gp_grid_of(c->attr, &c->in[0], &c->in[1]);
    GP_LAUNCH(c, gp_grid_samples, gp_blocks(gp_count(&c->out[0]), GP_BLOCK), GP_BLOCK, 0, v,
              c->in[0], (const gp_real *)c->in[1].data, gp_reals_of(&c->out[0]));
    return GP_OK;
}

/* Of 16 bits a thread sums up in `sums`, where it has a plane. */
static __global__ void gp_grid_planes(gp_grid v, const gp_real *grid, gp_reals dy, gp_reals dx,
                                      gp_real *sums)
{
    const int64_t size = v.size[0] * v.size[1] * v.size[2];
    const int64_t thread = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (GP_EACH(i, v.samples * v.channels)) {
        gp_real *to = sums ? sums + thread * size : (gp_real *)dx.at + i * size;
        for (int64_t k = 0; k < size; k++)
            to[k] = 0;
        for (int64_t k = 0; k < v.points; k++) {
            gp_grid_axis taps[3];
            gp_grid_point(grid + (i / v.channels * v.points + k) * v.axes, v.axes, v.size, v.way,
                          taps);
            gp_grid_give(to, v.size, taps, dy[i * v.points + k]);
        }
        for (int64_t k = 0; sums && k < size; k++)
            dx.put(i * size + k, to[k]);
    }
}

GP_KERNEL(grid_sample_grad)
{
    const gp_grid v = gp_grid_of(c->attr, &c->out[0], &c->in[0]);
    const int64_t planes = v.samples * v.channels;
    const int64_t threads = gp_is_half(c) ? gp_grid_threads(planes) : planes;
    GP_LAUNCH(c, gp_grid_planes, gp_blocks(threads, GP_WARP), GP_WARP, 0, v,
              (const gp_real *)c->in[0].data, gp_reals_of(&c->in[1]), gp_reals_of(&c->out[0]),
              gp_is_half(c) ? (gp_real *)c->work : NULL);
    return GP_OK;
}

static __global__ void gp_grid_slopes(gp_grid v, gp_tensor x, const gp_real *grid, gp_reals dy,
                                      gp_real *to)
{
    for (GP_EACH(i, v.samples * v.points)) {
        const int64_t n = i / v.points, up = n * v.channels * v.points + i % v.points;
        gp_grid_axis taps[3];
        gp_grid_point(grid + i * v.axes, v.axes, v.size, v.way, taps);
        for (int axis = 0; axis < v.axes; axis++) {
            gp_real sum = 0;
            for (int64_t k = 0; k < v.channels; k++)
                sum += dy[up + k * v.points] * gp_grid_read(&x, n * x.stride[0] + k * x.stride[1],
                                                            v.stride, taps, 2 - axis);
            to[i * v.axes + axis] = sum;
        }
    }
}

GP_KERNEL(grid_sample_grid_grad)
{
    const gp_grid v = gp_grid_of(c->attr, &c->in[0], &c->in[1]);
    GP_LAUNCH(c, gp_grid_slopes, gp_blocks(v.samples * v.points, GP_BLOCK), GP_BLOCK, 0, v,
              c->in[0], (const gp_real *)c->in[1].data, gp_reals_of(&c->in[2]),
              (gp_real *)c->out[0].data);
    return GP_OK;
}

GP_TAKES_HALF(grid_sample)
GP_TAKES_HALF(grid_sample_grad)
GP_TAKES_HALF(grid_sample_grid_grad)

#endif
