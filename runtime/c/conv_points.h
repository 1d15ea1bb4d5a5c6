/* Convolutions of 16 bits with a window of one place over large images: a product for each image,
 * weights [O, C] by [C, H W], packed as they are. Wide copies of such an image would take more than
 * all else; smaller ones are faster by samples (by_samples.h). */
#ifndef GP_CONV_POINTS_H
#define GP_CONV_POINTS_H

#include "by_samples.h"
#include "gemm_half.h"

/* By dims alone: how tensors lie changes no bit. */
GP_FUNCTION int gp_is_points(const gp_call *c, const int64_t *stride, int64_t groups)
{
    const gp_tensor *x = &c->in[0], *w = &c->in[1], *y = &c->out[0];
    return w->dim[2] == 1 && w->dim[3] == 1 && stride[0] == 1 && stride[1] == 1 && groups == 1 &&
           x->dim[2] == y->dim[2] && x->dim[3] == y->dim[3] && c->in[2].rank == 0 &&
           x->dtype != GP_F32 && gp_span(y, 2, 4) * (x->dim[1] + y->dim[1]) > GP_SAMPLES_REALS;
}

GP_FUNCTION int64_t gp_points_work(const gp_call *c)
{
    const int64_t n = gp_span(&c->out[0], 2, 4), m = c->out[0].dim[1];
    return gp_half_work(m > n ? m : n, c->in[0].dim[1]);
}

/* Output channels from `first` on, m of them, of an image; w: their weights. */
GP_FUNCTION void gp_points_image(const gp_call *c, gp_reals w, int64_t image, int64_t first,
                                 int64_t m, gp_real *work)
{
    const gp_tensor *x = &c->in[0], *y = &c->out[0];
    const int64_t high = x->dim[2], wide = x->dim[3];
    const int even = (x->stride[2] == wide * x->stride[3] && y->stride[2] == wide * y->stride[3]);
    const int64_t rows = even || high == 1 ? 1 : high, n = high * wide / rows;
    for (int64_t row = 0; row < rows; row++) {
        const int64_t from = image * x->stride[0] + row * x->stride[2];
        const int64_t to = image * y->stride[0] + first * y->stride[1] + row * y->stride[2];
        const gp_reals b = {gp_element(x, from), x->stride[1], x->stride[3], x->dtype};
        const gp_reals made = {gp_element(y, to), y->stride[1], y->stride[3], y->dtype};
        const gp_ending end = {c, (image * y->dim[1] + first) * high * wide + row * n, high * wide,
                               1};
        gp_half_product(made, w, b, m, n, x->dim[1], x->dtype, work, end);
    }
}

/* w: weight (o, c) is element o * row + c * col. */
GP_FUNCTION int gp_points(const gp_call *c, int64_t row, int64_t col)
{
    const gp_tensor *y = &c->out[0];
    const int64_t threads = c->run->threads, images = y->dim[0], own = gp_points_work(c);
    const int64_t parts = images % threads == 0 || images >= 8 * threads ? 1 : threads;
    const int64_t most = gp_ceil_div(y->dim[1], parts);
    const gp_reals w = {c->in[1].data, row, col, c->in[1].dtype};
    GP_PARALLEL(c->run, gp_count(y) * c->in[0].dim[1] > 32768)
    for (int64_t i = 0; i < images * parts; i++) {
        const int64_t first = i % parts * most;
        if (first < y->dim[1])
            gp_points_image(c, gp_reals_at(w, first, 0), i / parts, first,
                            gp_least(most, y->dim[1] - first),
                            (gp_real *)c->work + gp_thread() * own);
    }
    return GP_OK;
}

#endif
