/* softmax and log_softmax along one axis, with the largest taken off first. May run in place. */
#ifndef GP_SOFTMAX_H
#define GP_SOFTMAX_H

#include "row.h"
#include "vector.h"

typedef struct {
    int64_t axis;
} gp_softmax_attr;
typedef gp_softmax_attr gp_log_softmax_attr;

enum { GP_SOFTMAX_LANES = 32, GP_SOFTMAX_NEAR = 4096 /* of a row that is kept aside */ };

/* `streams`: what is written is not read soon. */
GP_FUNCTION void gp_softmax_row(const gp_real *x, gp_real *to, int64_t n, int is_log, int streams)
{
    const gp_real most = gp_row_max(x, n);
    gp_real row[GP_SOFTMAX_NEAR], piece[GP_STREAM_PIECE];
    gp_real *exps = is_log ? NULL : streams && n <= GP_SOFTMAX_NEAR ? row : to;
    const gp_real sum = gp_row_exps(x, exps, most, n);
    const gp_real shift = gp_log(sum), scale = 1 / sum;
    for (int64_t i = 0; i < n; i += GP_STREAM_PIECE) {
        const int64_t some = gp_stream_piece(n - i);
        gp_real *at = streams ? piece : to + i;
        if (is_log)
            for (int64_t k = 0; k < some; k++)
                at[k] = x[i + k] - most - shift;
        else
            for (int64_t k = 0; k < some; k++)
                at[k] = exps[i + k] * scale;
        if (streams)
            gp_stream(to + i, piece, some, x + n + i);
    }
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
    const int64_t tiles = (inner + GP_SOFTMAX_LANES - 1) / GP_SOFTMAX_LANES, tasks = outer * tiles;
    const int streams = inner == 1 && gp_streams(to, x, NULL, outer * n);
    GP_PARALLEL(c->run, outer * n * inner > 2048)
    for (int64_t from = 0; from < tasks; from += GP_ROW_BLOCK) {
        for (int64_t task = from; task < tasks && task < from + GP_ROW_BLOCK; task++) {
            const int64_t first = task % tiles * GP_SOFTMAX_LANES, left = inner - first;
            const int64_t at = task / tiles * n * inner + first;
            if (inner == 1)
                gp_softmax_row(x + at, to + at, n, is_log, streams);
            else
                gp_softmax_columns(x + at, to + at, n, inner,
                                   left < GP_SOFTMAX_LANES ? left : GP_SOFTMAX_LANES, is_log);
        }
        gp_stream_end();
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
