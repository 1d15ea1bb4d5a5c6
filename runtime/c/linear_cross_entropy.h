/* Cross entropy of a product, x [..., C] @ w [C, V] against ids, in chunks of rows: the logits
 * [..., V] are never stored whole, neither in the forward pass nor in the backward pass, where each
 * chunk recomputes its own.
 *
 * A chunk holds about GP_CHUNK_REALS logits. Its rows follow from the shape, and chunks add to dw
 * in order, so every sum has one order.
 *
 * Where x has 16 bits, so has dx, and products are those of 16-bit numbers: w and the slopes are
 * rounded while they are packed. Logits stay reals, and so does dw. */
#ifndef GP_LINEAR_CROSS_ENTROPY_H
#define GP_LINEAR_CROSS_ENTROPY_H

#include "argmax.h"
#include "cross_entropy.h"
#include "gemm_half.h"

#ifndef GP_CHUNK_REALS
#define GP_CHUNK_REALS GP_BLOCK(1 << 22, 100)
#endif

enum { GP_SLICE_COLUMNS = GP_BLOCK(256, 20) }; /* columns of a tile, the task of one thread */

/* The product of a chunk: [rows, C] @ [C, V]. */
typedef struct {
    const gp_tensor *x, *w, *ids;
    int64_t rows, inner, classes; /* rows of all chunks */
    int64_t slice;                /* the most rows of a chunk */
    int64_t logits, dx;           /* reals of workspace for a chunk of them */
    int64_t own;                  /* reals of workspace for the products of a thread */
    int32_t half;                 /* what is multiplied, where that has 16 bits */
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
    s.half = gp_half_of(c);
    s.logits = gp_round_up(s.slice * s.classes, 16);
    s.dx = gp_is_half(c) && c->outs == 2 ? gp_round_up(s.slice * s.inner, 16) : 0;
    return s;
}

GP_FUNCTION size_t gp_slices_bytes(const gp_call *c)
{
    const gp_slices s = gp_slices_of(c);
    return (size_t)(s.logits + s.dx + s.own * c->run->threads) * sizeof(gp_real);
}

/* c [m, n] = or += a @ b, in tiles of columns. */
GP_FUNCTION void gp_slice_product(const gp_call *c, const gp_slices *s, gp_matrix to, gp_reals a,
                                  gp_reals b, int64_t m, int64_t n, int64_t k, int add)
{
    gp_real *work = (gp_real *)c->work + s->logits + s->dx;
    GP_PARALLEL(c->run, n > GP_SLICE_COLUMNS)
    for (int64_t at = 0; at < n; at += GP_SLICE_COLUMNS) {
        const int64_t width = gp_least(GP_SLICE_COLUMNS, n - at);
        const gp_matrix tile = gp_matrix_at(to, 0, at);
        const gp_reals right = gp_reals_at(b, 0, at);
        gp_real *own = work + gp_thread() * s->own;
        if (GP_WAY(chunk_half, s->half != GP_F32))
            gp_half_gemm(tile, a, right, m, width, k, s->half, add, own, (gp_ending){0});
        else
            gp_gemm(tile, (gp_matrix){(gp_real *)a.at, a.row, a.col},
                    (gp_matrix){(gp_real *)right.at, right.row, right.col}, m, width, k, add, own,
                    (gp_ending){0});
    }
}

/* Rows of x from `first` on. */
GP_FUNCTION gp_reals gp_slice_rows(const gp_slices *s, int64_t first)
{
    return gp_reals_at((gp_reals){s->x->data, s->inner, 1, s->x->dtype}, first, 0);
}

GP_FUNCTION gp_reals gp_reals_transposed(gp_reals a)
{
    return (gp_reals){a.at, a.col, a.row, a.type};
}

/* The logits of `count` rows from `first`, into the workspace. */
GP_FUNCTION gp_real *gp_slice_logits(const gp_call *c, const gp_slices *s, int64_t first,
                                     int64_t count)
{
    gp_real *logits = c->work;
    const gp_reals w = {s->w->data, s->w->stride[0], s->w->stride[1], s->w->dtype};
    gp_slice_product(c, s, (gp_matrix){logits, s->classes, 1}, gp_slice_rows(s, first), w, count,
                     s->classes, s->inner, 0);
    return logits;
}

GP_WORKSPACE(linear_cross_entropy)
{
    return gp_slices_bytes(c);
}

GP_WAYS(linear_cross_entropy)
{
    gp_way(ways, "chunk_half", gp_is_half(c));
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

GP_WAYS(linear_cross_entropy_grad)
{
    gp_way(ways, "chunk_half", gp_is_half(c));
}

/* dw = or += what `count` rows of x from `first` on and their slopes make. */
GP_FUNCTION void gp_slice_weights(const gp_call *c, const gp_slices *s, int64_t first,
                                  int64_t count, gp_real *slope, int turned, int add)
{
    const gp_reals x = gp_slice_rows(s, first), d = {slope, s->classes, 1, GP_F32};
    gp_real *dw = c->out[1].data;
    if (dw && turned)
        gp_slice_product(c, s, (gp_matrix){dw, s->inner, 1}, gp_reals_transposed(d), x, s->classes,
                         s->inner, count, add);
    else if (dw)
        gp_slice_product(c, s, (gp_matrix){dw, s->classes, 1}, gp_reals_transposed(x), d, s->inner,
                         s->classes, count, add);
}

/* The rows of dx that belong to `count` rows from `first` on and their slopes. */
GP_FUNCTION void gp_slice_inputs(const gp_call *c, const gp_slices *s, int64_t first, int64_t count,
                                 gp_real *slope)
{
    const gp_reals d = {slope, s->classes, 1, GP_F32};
    const gp_reals back = {s->w->data, s->w->stride[1], s->w->stride[0], s->w->dtype};
    const int32_t type = c->out[0].dtype;
    char *dx = (char *)c->out[0].data + first * s->inner * (int64_t)gp_size(type);
    gp_real *sums = (gp_real *)dx;
    if (GP_WAY(chunk_half, s->half != GP_F32))
        sums = (gp_real *)c->work + s->logits;
    gp_slice_product(c, s, (gp_matrix){sums, s->inner, 1}, d, back, count, s->inner, s->classes, 0);
    if (GP_WAY(chunk_half, s->half != GP_F32))
        gp_set_row(dx, sums, count * s->inner, type);
}

/* Operands: x, w, ids, totals, dy of each row. Outputs: dx like x, dw. */
GP_FUNCTION void gp_slices_back(const gp_call *c, const gp_cross_entropy_rows_attr *a, int turned,
                                int add)
{
    const gp_slices s = gp_slices_of(c);
    const gp_real *saved = c->in[3].data, *dy = c->in[4].data;
    for (int64_t first = 0; first < s.rows; first += s.slice) {
        const int64_t count = gp_least(s.slice, s.rows - first);
        gp_real *slope = gp_slice_logits(c, &s, first, count);
        GP_PARALLEL(c->run, count * s.classes > 4096)
        for (int64_t i = 0; i < count; i++)
            gp_class_slope(slope + i * s.classes, slope + i * s.classes, s.classes,
                           gp_index(s.ids, first + i), a, saved + 2 * (first + i), dy[first + i]);
        if (c->out[0].data)
            gp_slice_inputs(c, &s, first, count, slope);
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

GP_WAYS(linear_cross_entropy_accumulate)
{
    gp_way(ways, "chunk_half", gp_is_half(c));
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
