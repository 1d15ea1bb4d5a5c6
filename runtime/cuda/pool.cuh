/* Pooling of images [N, C, H, W]: the maximum or mean of each window, one thread per window; and of
 * whole planes, one block per plane. */
#ifndef GP_POOL_CUH
#define GP_POOL_CUH

#include "../c/window.h"
#include "base.cuh"

/* Plane i (of N * C) of a tensor. */
GP_DEVICE gp_reals gp_plane(const gp_tensor &t, int64_t i)
{
    return gp_reals_from(gp_reals_of(&t), i / t.dim[1] * t.stride[0] + i % t.dim[1] * t.stride[1]);
}

/* Window o of an axis: its taps inside the image, `step` apart. */
typedef struct {
    int64_t from, to, step;
} gp_pool_places;

template <class Attr>
__device__ inline gp_pool_places gp_pool_window(const Attr &a, int axis, int64_t o, int64_t size)
{
    const int64_t first = o * a.stride[axis] - a.pad[axis], step = a.dilation[axis];
    const gp_range in = gp_inside(0, a.kernel[axis], step, first, size);
    const gp_pool_places places = {first + in.from * step, first + in.to * step, step};
    return places;
}

/* The size of window o that its mean is divided by: with count_include_pad, of the padded image. */
GP_DEVICE int64_t gp_pool_count(const gp_avgpool2d_attr &a, int axis, int64_t o, int64_t size)
{
    const int64_t low = a.count_include_pad ? a.pad[axis] : 0;
    const int64_t high = a.count_include_pad ? a.pad[2 + axis] : 0;
    const gp_range in = gp_inside(0, a.kernel[axis], a.dilation[axis],
                                  o * a.stride[axis] - a.pad[axis] + low, size + low + high);
    return in.to - in.from;
}

/* The larger one; a NaN is kept. */
GP_DEVICE gp_real gp_pool_larger(gp_real old, gp_real v)
{
    return v > old || v != v ? v : old;
}

/* Output i of a pool: its window and where it is stored. */
typedef struct {
    int64_t at[2];
    gp_pool_places rows, columns;
    gp_reals plane, to; /* to: the one element */
} gp_pool_output;

template <class Attr>
__device__ inline gp_pool_output gp_pool_output_of(const Attr &a, const gp_tensor &x,
                                                   const gp_tensor &y, int64_t i)
{
    const int64_t ow = i % y.dim[3], oh = i / y.dim[3] % y.dim[2], plane = i / y.dim[3] / y.dim[2];
    const gp_pool_output o = {
        {oh, ow},
        gp_pool_window(a, 0, oh, x.dim[2]),
        gp_pool_window(a, 1, ow, x.dim[3]),
        gp_plane(x, plane),
        gp_reals_from(gp_plane(y, plane), oh * y.stride[2] + ow * y.stride[3])};
    return o;
}

/* Which place of its window each output took: a byte, or an i32 where a window has more places than
 * a byte can count. */
GP_DEVICE int64_t gp_place_load(const gp_tensor &places, int64_t i)
{
    return places.dtype == GP_U8 ? ((const uint8_t *)places.data)[i]
                                 : ((const int32_t *)places.data)[i];
}

GP_DEVICE void gp_place_store(const gp_tensor &places, int64_t i, int64_t place)
{
    if (places.dtype == GP_U8)
        ((uint8_t *)places.data)[i] = (uint8_t)place;
    else
        ((int32_t *)places.data)[i] = (int32_t)place;
}

/* The largest, and where nobody reads the places, nothing else. */
static __global__ void gp_maxpool_outputs(gp_maxpool2d_attr a, gp_tensor x, gp_tensor y,
                                          gp_tensor places)
{
    for (GP_EACH(i, gp_count(&y))) {
        const gp_pool_output o = gp_pool_output_of(a, x, y, i);
        const int64_t top = o.at[0] * a.stride[0] - a.pad[0];
        const int64_t left = o.at[1] * a.stride[1] - a.pad[1];
        gp_real best = -(gp_real)INFINITY;
        int64_t found = -1;
        for (int64_t h = o.rows.from; h < o.rows.to; h += o.rows.step)
            for (int64_t w = o.columns.from; w < o.columns.to; w += o.columns.step) {
                const gp_real v = o.plane[h * x.stride[2] + w * x.stride[3]];
                if (found < 0 || v > best || (v != v && best == best)) {
                    best = v;
                    found = (h - top) / a.dilation[0] * a.kernel[1] + (w - left) / a.dilation[1];
                }
            }
        o.to.put(0, best);
        if (places.data)
            gp_place_store(places, i, found);
    }
}

static __global__ void gp_avgpool_outputs(gp_avgpool2d_attr a, gp_tensor x, gp_tensor y)
{
    for (GP_EACH(i, gp_count(&y))) {
        const gp_pool_output o = gp_pool_output_of(a, x, y, i);
        gp_real sum = 0;
        for (int64_t h = o.rows.from; h < o.rows.to; h += o.rows.step)
            for (int64_t w = o.columns.from; w < o.columns.to; w += o.columns.step)
                sum += o.plane[h * x.stride[2] + w * x.stride[3]];
        o.to.put(0, sum / (gp_real)(gp_pool_count(a, 0, o.at[0], x.dim[2]) *
                                    gp_pool_count(a, 1, o.at[1], x.dim[3])));
    }
}

GP_KERNEL(maxpool2d)
{
    GP_LAUNCH(c, gp_maxpool_outputs, gp_blocks(gp_count(&c->out[0]), GP_BLOCK), GP_BLOCK, 0,
              *(const gp_maxpool2d_attr *)c->attr, c->in[0], c->out[0], c->out[1]);
    return GP_OK;
}

GP_KERNEL(avgpool2d)
{
    GP_LAUNCH(c, gp_avgpool_outputs, gp_blocks(gp_count(&c->out[0]), GP_BLOCK), GP_BLOCK, 0,
              *(const gp_avgpool2d_attr *)c->attr, c->in[0], c->out[0]);
    return GP_OK;
}

/* The index in the plane of the first maximum, or of the first NaN. */
static __global__ void gp_maxpool_found(gp_maxpool2d_indices_attr a, gp_tensor x, gp_tensor y)
{
    for (GP_EACH(i, gp_count(&y))) {
        const gp_pool_output o = gp_pool_output_of(a, x, y, i);
        int64_t found = -1;
        gp_real best = 0;
        for (int64_t h = o.rows.from; h < o.rows.to; h += o.rows.step)
            for (int64_t w = o.columns.from; w < o.columns.to; w += o.columns.step) {
                const gp_real v = o.plane[h * x.stride[2] + w * x.stride[3]];
                if (found < 0 || v > best || (v != v && best == best)) {
                    best = v;
                    found = h * x.dim[3] + w;
                }
            }
        ((int64_t *)y.data)[i] = found;
    }
}

GP_KERNEL(maxpool2d_indices)
{
    GP_LAUNCH(c, gp_maxpool_found, gp_blocks(gp_count(&c->out[0]), GP_BLOCK), GP_BLOCK, 0,
              *(const gp_maxpool2d_indices_attr *)c->attr, c->in[0], c->out[0]);
    return GP_OK;
}

/* ---- Whole planes --------------------------------------------------------------------------- */

/* Element i of a plane, whose axes are those after the second. */
GP_DEVICE gp_real gp_plane_element(const gp_tensor &x, const gp_reals &plane, int64_t i)
{
    int64_t at = 0;
    for (int d = x.rank; d-- > 2; i /= x.dim[d])
        at += i % x.dim[d] * x.stride[d];
    return plane[at];
}

struct gp_pool_join {
    __device__ gp_real operator()(gp_real a, gp_real b) const
    {
        return gp_pool_larger(a, b);
    }
};

/* In double, since a plane may be large. */
static __global__ void gp_plane_means(gp_tensor x, gp_tensor y)
{
    const int64_t size = gp_span(&x, 2, x.rank);
    for (GP_EACH_BLOCK(i, x.dim[0] * x.dim[1])) {
        double sum = 0;
        for (int64_t k = threadIdx.x; k < size; k += blockDim.x)
            sum += (double)gp_plane_element(x, gp_plane(x, i), k);
        sum = gp_block_sum(sum);
        if (threadIdx.x == 0)
            gp_plane(y, i).put(0, (gp_real)(sum / (double)size));
    }
}

static __global__ void gp_plane_largest(gp_tensor x, gp_tensor y)
{
    const int64_t size = gp_span(&x, 2, x.rank);
    for (GP_EACH_BLOCK(i, x.dim[0] * x.dim[1])) {
        gp_real best = -(gp_real)INFINITY;
        for (int64_t k = threadIdx.x; k < size; k += blockDim.x)
            best = gp_pool_larger(best, gp_plane_element(x, gp_plane(x, i), k));
        best = gp_block_join(best, gp_pool_join());
        if (threadIdx.x == 0)
            gp_plane(y, i).put(0, best);
    }
}

GP_KERNEL(global_avgpool)
{
    const gp_tensor *x = &c->in[0];
    GP_LAUNCH(c, gp_plane_means, gp_blocks(x->dim[0] * x->dim[1], 1),
              gp_block_of(gp_span(x, 2, x->rank)), 0, *x, c->out[0]);
    return GP_OK;
}

GP_KERNEL(global_maxpool)
{
    const gp_tensor *x = &c->in[0];
    GP_LAUNCH(c, gp_plane_largest, gp_blocks(x->dim[0] * x->dim[1], 1),
              gp_block_of(gp_span(x, 2, x->rank)), 0, *x, c->out[0]);
    return GP_OK;
}

GP_TAKES_HALF(maxpool2d)
GP_TAKES_HALF(avgpool2d)
GP_TAKES_HALF(maxpool2d_indices)
GP_TAKES_HALF(global_avgpool)
GP_TAKES_HALF(global_maxpool)

#endif
