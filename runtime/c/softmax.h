/* softmax and log_softmax along one axis, with the largest taken off first. May run in place. */
#ifndef GP_SOFTMAX_H
#define GP_SOFTMAX_H

#include "row.h"

typedef struct {
    int64_t axis;
} gp_softmax_attr;
typedef gp_softmax_attr gp_log_softmax_attr;

enum { GP_SOFTMAX_LANES = 32 };

GP_FUNCTION void gp_softmax_row(const gp_real *x, gp_real *to, int64_t n, int is_log)
{
    gp_real most = gp_row_max(x, n);
    if (is_log) {
        gp_real shift = gp_log(gp_row_exps(x, most, n));
        for (int64_t i = 0; i < n; i++)
            to[i] = x[i] - most - shift;
        return;
    }
    for (int64_t i = 0; i < n; i++)
        to[i] = gp_exp(x[i] - most);
    gp_real scale = 1 / gp_row_sum(to, n);
    for (int64_t i = 0; i < n; i++)
        to[i] *= scale;
}

/* The axis is not the last: n numbers lie `inner` apart, for `lanes` neighbours side by side. */
GP_FUNCTION void gp_softmax_columns(const gp_real *x, gp_real *to, int64_t n, int64_t inner,
                                    int64_t lanes, int is_log)
{
    gp_real most[GP_SOFTMAX_LANES], scale[GP_SOFTMAX_LANES];
    double sum[GP_SOFTMAX_LANES] = {0};
    for (int64_t i = 0; i < lanes; i++)
        most[i] = x[i];
    for (int64_t k = 1; k < n; k++)
        for (int64_t i = 0; i < lanes; i++)
            most[i] = x[k * inner + i] > most[i] ? x[k * inner + i] : most[i];
    for (int64_t k = 0; k < n; k++)
        for (int64_t i = 0; i < lanes; i++)
            sum[i] += (double)gp_exp(x[k * inner + i] - most[i]);
    for (int64_t i = 0; i < lanes; i++)
        scale[i] = is_log ? (gp_real)log(sum[i]) : (gp_real)(1 / sum[i]);
    for (int64_t k = 0; k < n; k++)
        for (int64_t i = 0; i < lanes; i++) {
            gp_real less = x[k * inner + i] - most[i];
            to[k * inner + i] = is_log ? less - scale[i] : gp_exp(less) * scale[i];
        }
}

GP_FUNCTION int gp_softmax_any(const gp_call *c, int axis, int is_log)
{
    const gp_tensor *t = &c->in[0];
    const gp_real *x = t->data;
    gp_real *to = c->out[0].data;
    int64_t outer = gp_span(t, 0, axis), n = t->dim[axis], inner = gp_span(t, axis + 1, t->rank);
    int64_t tiles = (inner + GP_SOFTMAX_LANES - 1) / GP_SOFTMAX_LANES;
    GP_PARALLEL(c->run, outer * n * inner > 2048)
    for (int64_t task = 0; task < outer * tiles; task++) {
        int64_t first = task % tiles * GP_SOFTMAX_LANES;
        int64_t at = task / tiles * n * inner + first;
        int64_t lanes = inner - first < GP_SOFTMAX_LANES ? inner - first : GP_SOFTMAX_LANES;
        if (inner == 1)
            gp_softmax_row(x + at, to + at, n, is_log);
        else
            gp_softmax_columns(x + at, to + at, n, inner, lanes, is_log);
    }
    return GP_OK;
}

GP_KERNEL(softmax)
{
    return gp_softmax_any(c, (int)((const gp_softmax_attr *)c->attr)->axis, 0);
}

GP_KERNEL(log_softmax)
{
    return gp_softmax_any(c, (int)((const gp_log_softmax_attr *)c->attr)->axis, 1);
}

#endif
