/* Losses of rows against class ids: cross_entropy_rows of logits (output 1: the maximum of each row
 * and the sum of exp(x - maximum), saved for the backward pass), nll_rows of log-probabilities.
 *
 * The two are kept apart: log-sum-exp would lose the digits of the sum beside a large logit. An id
 * outside the row is an error, unless it is ignore_index: its loss is 0. */
#ifndef GP_CROSS_ENTROPY_H
#define GP_CROSS_ENTROPY_H

#include "row.h"
#include "settings.h"
#include "wide_row.h"

GP_FUNCTION int gp_classes_fit(const gp_tensor *ids, int64_t classes, int64_t ignore,
                               int64_t ignored)
{
    int64_t count = gp_count(ids), wrong = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t id = gp_index(ids, i);
        wrong += (id < 0 || id >= classes) && !(ignore && id == ignored);
    }
    return wrong == 0;
}

/* The loss of one row of logits. total: their maximum, and the sum of exp(x - maximum). */
GP_FUNCTION gp_real gp_class_loss(const gp_real *x, int64_t n, int64_t id,
                                  const gp_cross_entropy_rows_attr *a, gp_real *total)
{
    const gp_real smooth = (gp_real)a->label_smoothing;
    const gp_real most = total[0] = gp_row_max(x, n);
    const gp_real rest = gp_log(total[1] = gp_row_exps(x, NULL, most, n));
    if (a->ignore && id == a->ignored)
        return 0;
    gp_real loss = rest - (1 - smooth) * (x[id] - most);
    if (GP_WAY(loss_smooths, smooth > 0))
        loss -= smooth * (gp_row_offsets(x, most, n) / (gp_real)n);
    return loss;
}

/* Its gradient with respect to the logits, dy * (softmax - target); may run in place. */
GP_FUNCTION void gp_class_slope(const gp_real *x, gp_real *dx, int64_t n, int64_t id,
                                const gp_cross_entropy_rows_attr *a, const gp_real *total,
                                gp_real dy)
{
    const gp_real smooth = (gp_real)a->label_smoothing, up = a->ignore && id == a->ignored ? 0 : dy;
    const gp_real most = total[0], part = up / total[1], each = up * (smooth / (gp_real)n);
    const gp_real low = gp_exp_low(most);
    for (int64_t i = 0; i < n; i++)
        dx[i] = part * gp_exp_below(x[i] - most, low) - each;
    if (up != 0)
        dx[id] -= up * (1 - smooth);
}

GP_WAYS(cross_entropy_rows)
{
    const gp_cross_entropy_rows_attr *a = c->attr;
    gp_way(ways, "loss_smooths", a->label_smoothing > 0);
    gp_widened_ways(&c->in[0], ways);
}

GP_WORKSPACE(cross_entropy_rows)
{
    return gp_widened_workspace(c, &c->in[0], c->in[0].dim[c->in[0].rank - 1]);
}

GP_KERNEL(cross_entropy_rows)
{
    const gp_cross_entropy_rows_attr *a = c->attr;
    const gp_tensor *logits = &c->in[0], *ids = &c->in[1];
    const int64_t n = logits->dim[logits->rank - 1], rows = gp_count(ids);
    gp_real *loss = c->out[0].data, *saved = c->outs > 1 ? c->out[1].data : NULL;
    if (!gp_classes_fit(ids, n, a->ignore, a->ignored))
        return GP_EINDEX;
    GP_PARALLEL(c->run, rows * n > 4096)
    for (int64_t row = 0; row < rows; row++) {
        gp_real total[2];
        const gp_real *x = gp_widened_row(c, logits, row, n);
        const gp_real one = gp_class_loss(x, n, gp_index(ids, row), a, total);
        if (loss)
            loss[row] = one;
        if (saved)
            memcpy(saved + 2 * row, total, sizeof total);
    }
    return GP_OK;
}

GP_KERNEL(nll_rows)
{
    const gp_nll_rows_attr *a = c->attr;
    const gp_tensor *x = &c->in[0], *ids = &c->in[1];
    int64_t n = x->dim[x->rank - 1], rows = gp_count(ids);
    gp_real *loss = c->out[0].data;
    if (!gp_classes_fit(ids, n, a->ignore, a->ignored))
        return GP_EINDEX;
    for (int64_t row = 0; row < rows; row++) {
        int64_t id = gp_index(ids, row);
        int skip = a->ignore && id == a->ignored;
        loss[row] = skip ? 0 : -gp_get_real(x->data, row * n + id, x->dtype);
    }
    return GP_OK;
}

GP_WAYS(cross_entropy_rows_grad)
{
    gp_widened_ways(&c->in[0], ways);
}

GP_WORKSPACE(cross_entropy_rows_grad)
{
    return gp_widened_workspace(c, &c->in[0], c->in[0].dim[c->in[0].rank - 1]);
}

/* Operands: logits, ids, totals, dy of each row. May run in place of the logits. */
GP_KERNEL(cross_entropy_rows_grad)
{
    const gp_cross_entropy_rows_attr *a = c->attr;
    const gp_tensor *logits = &c->in[0], *ids = &c->in[1];
    const gp_real *saved = c->in[2].data, *dy = c->in[3].data;
    const int64_t n = logits->dim[logits->rank - 1], rows = gp_count(ids);
    if (!gp_classes_fit(ids, n, a->ignore, a->ignored))
        return GP_EINDEX;
    GP_PARALLEL(c->run, rows * n > 4096)
    for (int64_t row = 0; row < rows; row++) {
        gp_real *x = gp_widened_row(c, logits, row, n), *dx = (gp_real *)c->out[0].data + row * n;
        if (GP_WAY(row_half, logits->dtype != GP_F32))
            dx = x;
        gp_class_slope(x, dx, n, gp_index(ids, row), a, saved + 2 * row, dy[row]);
        if (GP_WAY(row_half, logits->dtype != GP_F32))
            gp_set_row((gp_half *)c->out[0].data + row * n, dx, n, logits->dtype);
    }
    return GP_OK;
}

/* -dy at the id of each row, 0 elsewhere. Operands: ids, dy of each row. */
GP_KERNEL(nll_rows_grad)
{
    const gp_nll_rows_grad_attr *a = c->attr;
    const gp_tensor *ids = &c->in[0], *out = &c->out[0];
    const gp_real *slope = c->in[1].data;
    const int64_t n = out->dim[out->rank - 1], rows = gp_count(ids);
    if (!gp_classes_fit(ids, n, a->ignore, a->ignored))
        return GP_EINDEX;
    memset(out->data, 0, (size_t)(rows * n) * gp_size(out->dtype));
    for (int64_t row = 0; row < rows; row++) {
        const int64_t id = gp_index(ids, row);
        if (!(a->ignore && id == a->ignored))
            gp_set_real(out->data, row * n + id, out->dtype, -slope[row]);
    }
    return GP_OK;
}

#endif
