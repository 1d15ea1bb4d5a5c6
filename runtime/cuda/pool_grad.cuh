/* The gradients of pooling. Windows may overlap, so each element of the image gathers the gradients
 * of the windows that contain it, in order: maxpool2d_grad is told which place each window took,
 * avgpool2d_grad needs the sizes alone. */
#ifndef GP_POOL_GRAD_CUH
#define GP_POOL_GRAD_CUH

#include "pool.cuh"

/* The windows of an axis that may see place `at`: all of them do where windows have no gaps. */
template <class Attr>
__device__ inline gp_range gp_pool_windows(const Attr &a, int axis, int64_t at, int64_t outputs)
{
    const int64_t stride = a.stride[axis], place = at + a.pad[axis];
    const int64_t reach = place - a.dilation[axis] * (a.kernel[axis] - 1);
    const int64_t last = place / stride + 1;
    const gp_range r = {reach > 0 ? (reach + stride - 1) / stride : 0,
                        last < outputs ? last : outputs};
    return r;
}

/* Whether place `at` is none of the gaps of window o. */
template <class Attr>
__device__ inline int gp_pool_sees(const Attr &a, int axis, int64_t o, int64_t at)
{
    return (at + a.pad[axis] - o * a.stride[axis]) % a.dilation[axis] == 0;
}

static __global__ void gp_maxpool_places(gp_maxpool2d_grad_attr a, gp_tensor places, gp_tensor dy,
                                         gp_tensor dx)
{
    const int64_t width = dx.dim[3], size = dx.dim[2] * width, outputs = dy.dim[2] * dy.dim[3];
    for (GP_EACH(i, dx.dim[0] * dx.dim[1] * size)) {
        const int64_t h = i % size / width, w = i % width;
        const gp_range down = gp_pool_windows(a, 0, h, dy.dim[2]);
        const gp_range across = gp_pool_windows(a, 1, w, dy.dim[3]);
        gp_real sum = 0;
        for (int64_t oh = down.from; oh < down.to; oh++)
            for (int64_t ow = across.from; ow < across.to; ow++) {
                const int64_t o = i / size * outputs + oh * dy.dim[3] + ow;
                const int64_t row = (h + a.pad[0] - oh * a.stride[0]) / a.dilation[0];
                const int64_t column = (w + a.pad[1] - ow * a.stride[1]) / a.dilation[1];
                if (gp_pool_sees(a, 0, oh, h) && gp_pool_sees(a, 1, ow, w) &&
                    gp_place_load(places, o) == row * a.kernel[1] + column)
                    sum += gp_reals_of(&dy)[o];
            }
        gp_reals_of(&dx).put(i, sum);
    }
}

static __global__ void gp_avgpool_places(gp_avgpool2d_attr a, gp_tensor dy, gp_tensor dx)
{
    const int64_t width = dx.dim[3], size = dx.dim[2] * width;
    for (GP_EACH(i, dx.dim[0] * dx.dim[1] * size)) {
        const int64_t h = i % size / width, w = i % width;
        const gp_range down = gp_pool_windows(a, 0, h, dy.dim[2]);
        const gp_range across = gp_pool_windows(a, 1, w, dy.dim[3]);
        gp_real sum = 0;
        for (int64_t oh = down.from; oh < down.to; oh++)
            for (int64_t ow = across.from; ow < across.to; ow++)
                if (gp_pool_sees(a, 0, oh, h) && gp_pool_sees(a, 1, ow, w))
                    sum += gp_plane(dy, i / size)[oh * dy.dim[3] + ow] /
                           (gp_real)(gp_pool_count(a, 0, oh, dx.dim[2]) *
                                     gp_pool_count(a, 1, ow, dx.dim[3]));
        gp_reals_of(&dx).put(i, sum);
    }
}

GP_KERNEL(maxpool2d_grad)
{
    GP_LAUNCH(c, gp_maxpool_places, gp_blocks(gp_count(&c->out[0]), GP_BLOCK), GP_BLOCK, 0,
              *(const gp_maxpool2d_grad_attr *)c->attr, c->in[0], c->in[1], c->out[0]);
    return GP_OK;
}

GP_KERNEL(avgpool2d_grad)
{
    GP_LAUNCH(c, gp_avgpool_places, gp_blocks(gp_count(&c->out[0]), GP_BLOCK), GP_BLOCK, 0,
              *(const gp_avgpool2d_attr *)c->attr, c->in[0], c->out[0]);
    return GP_OK;
}

GP_TAKES_HALF(maxpool2d_grad)
GP_TAKES_HALF(avgpool2d_grad)

#endif
