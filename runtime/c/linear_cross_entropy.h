/* Cross entropy of a product, x [..., C] @ w [C, V] against ids, in chunks of rows: the logits
 * [..., V] are never stored whole, neither in the forward pass nor in the backward pass, where each
 * chunk recomputes its own.
 *
 * A chunk holds about GP_CHUNK_REALS logits. Its rows follow from the shape, and chunks add to dw
 * in order, so every sum has one order. */
#ifndef GP_LINEAR_CROSS_ENTROPY_H
#define GP_LINEAR_CROSS_ENTROPY_H

#include "argmax.h"
#include "cross_entropy.h"
#include "gemm.h"

#ifndef GP_CHUNK_REALS
#define GP_CHUNK_REALS GP_BLOCK(1 << 22, 100)
#endif

enum { GP_SLICE_COLUMNS = GP_BLOCK(256, 20) }; /* columns of a tile, the task of one thread */

/* The product of a chunk: [rows, C] @ [C, V]. */
typedef struct {
    const gp_tensor *x, *w, *ids;
    int64_t rows, inner, classes; /* rows of all chunks */
    int64_t slice;                /* the most rows of a chunk */
    int64_t own;                  /* reals of workspace for the products of a thread */
} gp_slices;

GP_FUNCTION gp_slices gp_slices_of(const gp_call *c)
{
    gp_slices s = {.x = &c->in[0], .w = &c->in[1], .ids = &c->in[2]};
    s.rows = gp_count(s.ids);
    s.inner = s.w->dim[0];
    s.classes = s.w->dim[1];
    s.slice = s.classes < GP_CHUNK_REALS ? gp_least(GP_CHUNK_REALS / s.classes, s.rows) : 1;
    const int64_t forth = gp_gemm_work(GP_SLICE_COLUMNS, s.inner);
    const int64_t to_x = gp_gemm_work(GP_SLICE_COLUMNS, s.classes);
    const int64_t to_w = gp_gemm_work(GP_SLICE_COLUMNS, s.slice);
    s.own = forth > to_x ? forth : to_x;
    s.own = gp_round_up(s.own > to_w ? s.own : to_w, 16);
    return s;
}

GP_FUNCTION size_t gp_slices_bytes(const gp_call *c)
{
    const gp_slices s = gp_slices_of(c);
    return (size_t)(gp_round_up(s.slice * s.classes, 16) + s.own * c->run->threads) *
           sizeof(gp_real);
}

/* c [m, n] = or += a @ b, in tiles of columns. */
GP_FUNCTION void gp_slice_product(const gp_call *c, const gp_slices *s, gp_matrix to, gp_matrix a,
                                  gp_matrix b, int64_t m, int64_t n, int64_t k, int add)
{
    gp_real *work = (gp_real *)c->work + gp_round_up(s->slice * s->classes, 16);
    GP_PARALLEL(c->run, n > GP_SLICE_COLUMNS)
    for (int64_t at = 0; at < n; at += GP_SLICE_COLUMNS)
        gp_gemm(gp_matrix_at(to, 0, at), a, gp_matrix_at(b, 0, at), m,
                gp_least(GP_SLICE_COLUMNS, n - at), k, add, work + gp_thread() * s->own,
                (gp_ending){0});
}

/* The logits of `count` rows from `first`, into the workspace. */
GP_FUNCTION gp_real *gp_slice_logits(const gp_call *c, const gp_slices *s, int64_t first,
                                     int64_t count)
{
    gp_real *logits = c->work;
    const gp_matrix x = {(gp_real *)s->x->data + first * s->inner, s->inner, 1};
    const gp_matrix w = {s->w->data, s->w->stride[0], s->w->stride[1]};
    gp_slice_product(c, s, (gp_matrix){logits, s->classes, 1}, x, w, count, s->classes, s->inner,
                     0);
    return logits;
}

GP_WORKSPACE(linear_cross_entropy)
{
    return gp_slices_bytes(c);
}

/* The place of the first largest, as argmax has it. */
GP_FUNCTION int32_t gp_row_best(const gp_real *x, int64_t n)
{
    int64_t place = 0;
    for (int64_t i = 1; i < n; i++)
        place = gp_arg_better(x[i], x[place], 0) ? i : place;
    return (int32_t)place;
}

/* Operands: x, w, ids. Outputs: the loss of each row, and its totals, as of cross_entropy_rows; the
 * class with the largest logit. */
GP_KERNEL(linear_cross_entropy)
{
    const gp_slices s = gp_slices_of(c);
    gp_real *loss = c->out[0].data, *saved = c->out[1].data;
    int32_t *best = c->out[2].data;
    const gp_linear_cross_entropy_attr *a = c->attr;
    if (!gp_classes_fit(s.ids, s.classes, a->ignore, a->ignored))
        return GP_EINDEX;
    for (int64_t first = 0; first < s.rows; first += s.slice) {
        const int64_t count = gp_least(s.slice, s.rows - first);
        const gp_real *logits = gp_slice_logits(c, &s, first, count);
        GP_PARALLEL(c->run, count * s.classes > 4096)
        for (int64_t i = 0; i < count; i++) {
            gp_real total[2];
            const gp_real one = gp_class_loss(logits + i * s.classes, s.classes,
                                              gp_index(s.ids, first + i), a, total);
            if (loss)
                loss[first + i] = one;
            if (saved)
                memcpy(saved + 2 * (first + i), total, sizeof total);
            if (best)
                best[first + i] = gp_row_best(logits + i * s.classes, s.classes);
        }
    }
    return GP_OK;
}

GP_WORKSPACE(linear_cross_entropy_grad)
{
    return gp_slices_bytes(c);
}

/* dw = or += what `count` rows of x from `first` on and their slopes make. */
GP_FUNCTION void gp_slice_weights(const gp_call *c, const gp_slices *s, int64_t first,
                                  int64_t count, gp_real *slope, int turned, int add)
{
    const gp_matrix x = {(gp_real *)s->x->data + first * s->inner, s->inner, 1};
    const gp_matrix d = {slope, s->classes, 1};
    gp_real *dw = c->out[1].data;
    if (dw && turned)
        gp_slice_product(c, s, (gp_matrix){dw, s->inner, 1}, gp_transposed(d), x, s->classes,
                         s->inner, count, add);
    else if (dw)
        gp_slice_product(c, s, (gp_matrix){dw, s->classes, 1}, gp_transposed(x), d, s->inner,
                         s->classes, count, add);
}

/* Operands: x, w, ids, totals, dy of each row. Outputs: dx like x, dw. */
GP_FUNCTION void gp_slices_back(const gp_call *c, const gp_cross_entropy_rows_attr *a, int turned,
                                int add)
{
    const gp_slices s = gp_slices_of(c);
    const gp_real *saved = c->in[3].data, *dy = c->in[4].data;
    gp_real *dx = c->out[0].data;
    for (int64_t first = 0; first < s.rows; first += s.slice) {
        const int64_t count = gp_least(s.slice, s.rows - first);
        gp_real *slope = gp_slice_logits(c, &s, first, count);
        GP_PARALLEL(c->run, count * s.classes > 4096)
        for (int64_t i = 0; i < count; i++)
            gp_class_slope(slope + i * s.classes, slope + i * s.classes, s.classes,
                           gp_index(s.ids, first + i), a, saved + 2 * (first + i), dy[first + i]);
        const gp_matrix d = {slope, s.classes, 1};
        const gp_matrix back = {s.w->data, s.w->stride[1], s.w->stride[0]};
        if (dx)
            gp_slice_product(c, &s, (gp_matrix){dx + first * s.inner, s.inner, 1}, d, back, count,
                             s.inner, s.classes, 0);
        gp_slice_weights(c, &s, first, count, slope, turned, add || first > 0);
    }
}

/* dw is [C, V], or [V, C] if it is turned. */
GP_KERNEL(linear_cross_entropy_grad)
{
    const gp_linear_cross_entropy_grad_attr *a = c->attr;
    const gp_cross_entropy_rows_attr loss = {a->label_smoothing, a->ignore, a->ignored};
    if (!gp_classes_fit(&c->in[2], c->in[1].dim[1], a->ignore, a->ignored))
        return GP_EINDEX;
    gp_slices_back(c, &loss, a->turned != 0, 0);
    return GP_OK;
}

GP_WORKSPACE(linear_cross_entropy_accumulate)
{
    return gp_slices_bytes(c);
}

/* The same with the sum of dw over micro-batches after the operands; dw is its next version. */
GP_KERNEL(linear_cross_entropy_accumulate)
{
    const gp_linear_cross_entropy_accumulate_attr *a = c->attr;
    const gp_cross_entropy_rows_attr loss = {a->label_smoothing, a->ignore, a->ignored};
    if (!gp_classes_fit(&c->in[2], c->in[1].dim[1], a->ignore, a->ignored))
        return GP_EINDEX;
    gp_slices_back(c, &loss, a->turned != 0, !a->begins || c->run->micro > 0);
    return GP_OK;
}

#endif
