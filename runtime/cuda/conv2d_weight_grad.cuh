/* The gradient of convolution with respect to its weights: dw[o][c, ki, kj] sums dy * x over images
 * and output positions.
 *
 * For each group a product dy [O, positions] times the patches' [positions, K], which are read
 * straight from the images (tiles.cuh); the positions, of which there are many, are split into
 * parts (split-K). Depthwise convolution is summed directly: one block per weight. */
#ifndef GP_CONV2D_WEIGHT_GRAD_CUH
#define GP_CONV2D_WEIGHT_GRAD_CUH

#include "tiles.cuh"

/* Operands: x, dy; the output is dw. */
GP_UNUSED static gp_tiles gp_weight_grad_tiles(const gp_call *c)
{
    const gp_conv2d_weight_grad_attr *a = (const gp_conv2d_weight_grad_attr *)c->attr;
    const gp_tensor *x = &c->in[0], *dy = &c->in[1], *dw = &c->out[0];
    const int64_t size = dy->dim[2] * dy->dim[3];
    gp_tiles t = {};
    t.rows = dy->dim[1] / a->groups;
    t.columns = gp_span(dw, 1, 4);
    t.depth = dy->dim[0] * size;
    t.batches = a->groups;
    t.left = gp_reals_of(dy);
    t.right = gp_reals_of(x);
    t.to = gp_reals_of(dw);
    t.half = gp_half_of(c);
    t.left_row = size;
    t.left_batch = t.rows * size;
    t.left_depth.stride[0] = dy->dim[1] * size;
    t.left_depth.stride[1] = dy->dim[3];
    t.left_depth.stride[2] = 1;
    t.right_batch = dw->dim[1] * x->stride[1];
    t.right_depth.stride[0] = x->stride[0];
    t.right_column[0] = x->stride[1];
    t.to_row = t.columns;
    t.to_batch = t.rows * t.columns;
    t.to_column[0] = dw->dim[2] * dw->dim[3];
    t.to_column[1] = dw->dim[3];
    t.to_column[2] = 1;
    for (int i = 0; i < 2; i++) {
        t.depth_radix[i] = dy->dim[2 + i];
        t.column_radix[i] = dw->dim[2 + i];
        t.first[i] = -a->pad[i];
        t.depth_step[i] = a->stride[i];
        t.column_step[i] = a->dilation[i];
        t.size[i] = x->dim[2 + i];
        t.right = gp_reals_from(t.right, -a->pad[i] * x->stride[2 + i]);
        t.right_depth.stride[1 + i] = a->stride[i] * x->stride[2 + i];
        t.right_column[1 + i] = a->dilation[i] * x->stride[2 + i];
    }
    return t;
}

/* One block per weight of a depthwise convolution. */
static __global__ void gp_depthwise_weight_grad(gp_conv2d_weight_grad_attr a, gp_tensor x,
                                                gp_tensor dy, gp_tensor dw, int32_t half)
{
    const int64_t window = dw.dim[2] * dw.dim[3], size = dy.dim[2] * dy.dim[3];
    const int64_t each = dy.dim[1] / a.groups;
    for (GP_EACH_BLOCK(i, dw.dim[0] * window)) {
        const int64_t out = i / window, ki = i % window / dw.dim[3], kj = i % dw.dim[3];
        double sum = 0;
        for (int64_t k = threadIdx.x; k < dy.dim[0] * size; k += blockDim.x) {
            const int64_t n = k / size, place = k % size;
            const int64_t h = place / dy.dim[3] * a.stride[0] - a.pad[0] + ki * a.dilation[0];
            const int64_t w = place % dy.dim[3] * a.stride[1] - a.pad[1] + kj * a.dilation[1];
            if (h >= 0 && h < x.dim[2] && w >= 0 && w < x.dim[3])
                sum += (double)(gp_factor(gp_reals_of(&dy), (n * dy.dim[1] + out) * size + place,
                                          half) *
                                gp_factor(gp_reals_of(&x),
                                          n * x.stride[0] + out / each * x.stride[1] +
                                              h * x.stride[2] + w * x.stride[3],
                                          half));
        }
        sum = gp_block_sum(sum);
        if (threadIdx.x == 0)
            ((gp_real *)dw.data)[i] = (gp_real)sum;
    }
}

GP_KERNEL(conv2d_weight_grad)
{
    const gp_conv2d_weight_grad_attr *a = (const gp_conv2d_weight_grad_attr *)c->attr;
    const gp_tensor *dy = &c->in[1], *dw = &c->out[0];
    const int64_t count = gp_count(dw);
    if (dw->dim[1] == 1) {
        const unsigned block = gp_block_of(gp_count(dy) / dy->dim[1]);
        GP_LAUNCH(c, gp_depthwise_weight_grad, gp_blocks(count, 1), block, 0, *a, c->in[0], *dy,
                  *dw, (int32_t)gp_half_of(c));
        return GP_OK;
    }
    gp_tiles t = gp_weight_grad_tiles(c);
    t.parts = gp_conv2d_weight_grad_parts(c);
    t.to_part = count;
    t.to.at = t.parts > 1 ? c->work : t.to.at; /* of f32 as well */
    const int status = gp_tiles_run(c, t);
    if (status == GP_OK && t.parts > 1)
        GP_LAUNCH(c, gp_tiles_join, gp_blocks(count, GP_BLOCK), GP_BLOCK, 0,
                  (const gp_real *)c->work, count, t.parts, gp_reals_in(c, c->ins), (int32_t)GP_F32,
                  *dw);
    return status;
}

GP_TAKES_HALF(conv2d_weight_grad)

#endif
