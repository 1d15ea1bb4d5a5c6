/* Cross entropy of a product, x [..., C] @ w [C, V] against ids, in chunks of rows: the logits
 * [..., V] are never stored whole, neither in the forward pass nor in the backward pass, where each
 * chunk recomputes its own.
 *
 * A chunk holds about GP_CHUNK_REALS logits. Its rows follow from the shape, and chunks add to dw
 * in order, so every sum has one order. One block per row of logits. */
#ifndef GP_LINEAR_CROSS_ENTROPY_CUH
#define GP_LINEAR_CROSS_ENTROPY_CUH

#include "argmax.cuh"
#include "blas.cuh"
#include "cross_entropy.cuh"

/* to [m, n] = or += a @ b. */
GP_UNUSED static int gp_slice_product(const gp_call *c, gp_matrix to, gp_matrix a, gp_matrix b,
                                      int64_t m, int64_t n, int64_t k, int add)
{
    const gp_product p = {a, b, to, m, n, k, 1, add};
    return gp_product_run(c, p, (char *)c->work + gp_slice_bytes(c) + gp_slope_bytes(c),
                          gp_slice_blas_bytes(c));
}

/* The logits of a chunk. */
GP_UNUSED static gp_reals gp_slice_of(const gp_call *c)
{
    const gp_reals logits = {c->work, GP_F32};
    return logits;
}

/* Their gradients, as they are multiplied. */
GP_UNUSED static gp_reals gp_slope_of(const gp_call *c)
{
    const gp_reals slope = {(char *)c->work + gp_slice_bytes(c), c->in[0].dtype};
    return c->in[0].dtype == GP_F32 ? gp_slice_of(c) : slope;
}

/* The logits of `count` rows from `first`, into the workspace. */
GP_UNUSED static int gp_slice_logits(const gp_call *c, int64_t first, int64_t count)
{
    const gp_tensor *x = &c->in[0], *w = &c->in[1];
    const int64_t inner = w->dim[0], classes = w->dim[1];
    return gp_slice_product(c, gp_matrix_of(gp_slice_of(c), classes, 1, 0),
                            gp_matrix_of(gp_reals_from(gp_reals_of(x), first * inner), inner, 1, 0),
                            gp_matrix_of(gp_reals_of(w), w->stride[0], w->stride[1], 0), count,
                            classes, inner, 0);
}

/* The ids of these rows. */
GP_UNUSED static gp_classes gp_slice_classes(const gp_call *c,
                                             const gp_linear_cross_entropy_attr *a, int64_t first,
                                             int64_t count)
{
    const gp_tensor *ids = &c->in[2];
    gp_classes s = gp_classes_of(c, ids, c->in[1].dim[1], a->ignore, a->ignored);
    s.ids.data = (char *)ids->data + first * (ids->dtype == GP_I64 ? 8 : 4);
    s.rows = count;
    return s;
}

/* The class with the largest logit of each row of a slice, in the workspace. */
GP_UNUSED static int gp_slice_best(const gp_call *c, int64_t count, int32_t *best)
{
    const int64_t classes = c->in[1].dim[1];
    gp_tensor logits = {c->work, GP_F32, 2, {count, classes}, {classes, 1}};
    const gp_fold fold = gp_fold_of(&logits, 2);
    GP_LAUNCH(c, gp_arg_rows<gp_real>, gp_blocks(count, 1), gp_block_of(classes), 0, logits, fold,
              0, best);
    return GP_OK;
}

/* Operands: x, w, ids. Outputs: the loss of each row, and its totals, as of cross_entropy_rows; the
 * class with the largest logit. */
GP_KERNEL(linear_cross_entropy)
{
    const gp_linear_cross_entropy_attr *a = (const gp_linear_cross_entropy_attr *)c->attr;
    const int64_t rows = gp_count(&c->in[2]), slice = gp_slice_rows(c);
    gp_real *loss = (gp_real *)c->out[0].data, *saved = (gp_real *)c->out[1].data;
    int32_t *best = (int32_t *)c->out[2].data;
    for (int64_t first = 0; first < rows; first += slice) {
        const int64_t count = gp_least(slice, rows - first);
        const gp_classes s = gp_slice_classes(c, a, first, count);
        const int status = gp_slice_logits(c, first, count);
        if (status != GP_OK)
            return status;
        GP_LAUNCH(c, gp_cross_entropy_losses, gp_blocks(count, 1), gp_block_of(s.classes), 0,
                  gp_slice_of(c), s, a->label_smoothing, loss ? loss + first : NULL,
                  saved ? saved + 2 * first : NULL);
        if (best)
            gp_slice_best(c, count, best + first);
    }
    return GP_OK;
}

/* dx and dw, stored or added to, from the gradients of the logits of a chunk in the workspace. */
GP_UNUSED static int gp_slice_back(const gp_call *c, int64_t first, int64_t count, bool turned,
                                   int add)
{
    const gp_tensor *x = &c->in[0], *w = &c->in[1];
    const int64_t inner = w->dim[0], classes = w->dim[1];
    const gp_matrix slope = gp_matrix_of(gp_slope_of(c), classes, 1, 0);
    const gp_matrix rows = gp_matrix_of(gp_reals_from(gp_reals_of(x), first * inner), inner, 1, 0);
    const gp_reals dx = gp_reals_of(&c->out[0]), dw = gp_reals_of(&c->out[1]);
    int status = GP_OK;
    if (dx.at)
        status = gp_slice_product(
            c, gp_matrix_of(gp_reals_from(dx, first * inner), inner, 1, 0), slope,
            gp_matrix_of(gp_reals_of(w), w->stride[1], w->stride[0], 0), count, inner, classes, 0);
    if (dw.at && turned && status == GP_OK)
        status = gp_slice_product(c, gp_matrix_of(dw, inner, 1, 0), gp_transposed(slope), rows,
                                  classes, inner, count, add);
    else if (dw.at && status == GP_OK)
        status = gp_slice_product(c, gp_matrix_of(dw, classes, 1, 0), gp_transposed(rows), slope,
                                  inner, classes, count, add);
    return status;
}

/* Operands: x, w, ids, totals, dy of each row. Outputs: dx like x, dw. */
GP_UNUSED static int gp_slices_back(const gp_call *c, const gp_linear_cross_entropy_attr *a,
                                    bool turned, int add)
{
    const gp_real *saved = (const gp_real *)c->in[3].data, *dy = (const gp_real *)c->in[4].data;
    const int64_t rows = gp_count(&c->in[2]), slice = gp_slice_rows(c);
    for (int64_t first = 0; first < rows; first += slice) {
        const int64_t count = gp_least(slice, rows - first);
        const gp_classes s = gp_slice_classes(c, a, first, count);
        int status = gp_slice_logits(c, first, count);
        if (status != GP_OK)
            return status;
        GP_LAUNCH(c, gp_cross_entropy_slopes, gp_blocks(count, 1), gp_block_of(s.classes), 0,
                  gp_slice_of(c), s, a->label_smoothing, saved + 2 * first, dy + first,
                  gp_slope_of(c));
        status = gp_slice_back(c, first, count, turned, add || first > 0);
        if (status != GP_OK)
            return status;
    }
    return GP_OK;
}

/* dw is [C, V], or [V, C] if it is turned. */
GP_KERNEL(linear_cross_entropy_grad)
{
    const gp_linear_cross_entropy_grad_attr *a = (const gp_linear_cross_entropy_grad_attr *)c->attr;
    const gp_linear_cross_entropy_attr loss = {a->label_smoothing, a->ignore, a->ignored};
    return gp_slices_back(c, &loss, a->turned != 0, 0);
}

/* The same with the sum of dw over micro-batches after the operands; dw is its next version. */
GP_KERNEL(linear_cross_entropy_accumulate)
{
    const gp_linear_cross_entropy_accumulate_attr *a =
        (const gp_linear_cross_entropy_accumulate_attr *)c->attr;
    const gp_linear_cross_entropy_attr loss = {a->label_smoothing, a->ignore, a->ignored};
    return gp_slices_back(c, &loss, a->turned != 0, !a->begins || c->run->micro > 0);
}

GP_TAKES_HALF(linear_cross_entropy)
GP_TAKES_HALF(linear_cross_entropy_grad)
GP_TAKES_HALF(linear_cross_entropy_accumulate)

#endif
