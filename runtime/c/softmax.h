/* softmax and log_softmax along one axis, with the maximum subtracted first. May run in place. */
#ifndef GP_SOFTMAX_H
#define GP_SOFTMAX_H

#include "narrow.h"
#include "row.h"
#include "settings.h"
#include "vector.h"

enum { GP_SOFTMAX_LANES = GP_BLOCK(32, 4) };

GP_FUNCTION void gp_softmax_row(const gp_real *x, gp_real *to, int64_t n, int is_log)
{
    const gp_real most = gp_row_max(x, n), sum = gp_row_exps(x, is_log ? NULL : to, most, n);
    const gp_real shift = gp_log(sum), scale = 1 / sum;
    if (is_log)
        for (int64_t i = 0; i < n; i++)
            to[i] = x[i] - most - shift;
    else
        for (int64_t i = 0; i < n; i++)
            to[i] *= scale;
}

/* softmax of rows that are not read soon, none longer than a chunk. While the exponentials of one
 * row are computed, the row before is stored and the maximum of the row after is found, a piece at
 * a time: so memory and arithmetic overlap. */
GP_FUNCTION void gp_softmax_stream(const gp_real *x, gp_real *to, int64_t rows, int64_t n)
{
    gp_real exps[2][GP_ROW_CHUNK];
    gp_real most = gp_row_max(x, n), by = 0; /* by: the factor of the row before */
    for (int64_t i = 0; i <= rows; i++, x += n) {
        gp_real sum[GP_ROW_LANES] = {0}, high[GP_ROW_LANES];
        for (int k = 0; k < GP_ROW_LANES; k++)
            high[k] = i + 1 < rows ? x[n] : 0;
        for (int64_t at = 0; at < n; at += GP_STREAM_PIECE) {
            const int64_t some = gp_stream_piece(n - at);
            if (i < rows)
                gp_row_add_exps(sum, x + at, exps[i % 2] + at, most, some);
            if (i + 1 < rows)
                gp_row_join_max(high, x + n + at, some);
            if (i > 0)
                gp_stream_times(to + (i - 1) * n + at, exps[(i - 1) % 2] + at, by, some,
                                x + 2 * n + at);
        }
        most = gp_row_lanes_max(high);
        by = 1 / gp_row_lanes(sum);
    }
}

/* The axis is not the last: n numbers are `inner` apart, for `lanes` adjacent columns. */
GP_FUNCTION void gp_softmax_columns(const gp_real *x, gp_real *to, int64_t n, int64_t inner,
                                    int64_t lanes, int is_log)
{
    gp_real most[GP_SOFTMAX_LANES], scale[GP_SOFTMAX_LANES];
    double sum[GP_SOFTMAX_LANES] = {0};
    const gp_real low = gp_exp_low(x[0]);
    for (int64_t i = 0; i < lanes; i++)
        most[i] = x[i];
    for (int64_t k = 1; k < n; k++)
        for (int64_t i = 0; i < lanes; i++)
            most[i] = x[k * inner + i] > most[i] ? x[k * inner + i] : most[i];
    for (int64_t k = 0; k < n; k++)
        for (int64_t i = 0; i < lanes; i++)
            sum[i] += (double)gp_exp_below(x[k * inner + i] - most[i], low);
    for (int64_t i = 0; i < lanes; i++)
        scale[i] = is_log ? (gp_real)log(sum[i]) : (gp_real)(1 / sum[i]);
    for (int64_t k = 0; k < n; k++)
        for (int64_t i = 0; i < lanes; i++) {
            gp_real less = x[k * inner + i] - most[i];
            to[k * inner + i] = is_log ? less - scale[i] : gp_exp_below(less, low) * scale[i];
        }
}

/* Of 16 bits: columns that are widened at once, and reals of a thread that hold them. */
GP_FUNCTION int64_t gp_softmax_lanes(const gp_tensor *t, int axis)
{
    const int64_t inner = gp_span(t, axis + 1, t->rank);
    return inner < GP_SOFTMAX_LANES ? inner : GP_SOFTMAX_LANES;
}

GP_FUNCTION size_t gp_softmax_work(const gp_call *c, int axis)
{
    const gp_tensor *t = &c->in[0];
    const int64_t own = t->dim[axis] * gp_softmax_lanes(t, axis);
    return gp_is_half(c) ? (size_t)(c->run->threads * own) * sizeof(gp_real) : 0;
}

static GP_NOINLINE int gp_softmax_half(const gp_call *c, int axis, int is_log)
{
    const gp_tensor *t = &c->in[0], *to = &c->out[0];
    const int64_t outer = gp_span(t, 0, axis), n = t->dim[axis];
    const int64_t inner = gp_span(t, axis + 1, t->rank), wide = gp_softmax_lanes(t, axis);
    const int64_t tiles = (inner + wide - 1) / wide;
    GP_PARALLEL(c->run, outer * n * inner > 2048)
    for (int64_t task = 0; task < outer * tiles; task++) {
        gp_real *own = (gp_real *)c->work + gp_thread() * n * wide;
        const int64_t first = task % tiles * wide, at = task / tiles * n * inner + first;
        const int64_t lanes = inner - first < wide ? inner - first : wide;
        const int64_t runs = inner == 1 ? 1 : n, run = inner == 1 ? n : lanes;
        for (int64_t k = 0; k < runs; k++)
            gp_get_row(own + k * run, gp_element(t, at + k * inner), run, t->dtype);
        if (inner == 1)
            gp_softmax_row(own, own, n, is_log);
        else
            gp_softmax_columns(own, own, n, lanes, lanes, is_log);
        for (int64_t k = 0; k < runs; k++)
            gp_set_row(gp_element(to, at + k * inner), own + k * run, run, to->dtype);
    }
    return GP_OK;
}

GP_FUNCTION int gp_softmax_any(const gp_call *c, int axis, int is_log)
{
    if (GP_WAY(softmax_half, gp_is_half(c)))
        return gp_softmax_half(c, axis, is_log);
    const gp_tensor *t = &c->in[0];
    const gp_real *x = t->data;
    gp_real *to = c->out[0].data;
    int64_t outer = gp_span(t, 0, axis), n = t->dim[axis], inner = gp_span(t, axis + 1, t->rank);
    const int64_t tiles = (inner + GP_SOFTMAX_LANES - 1) / GP_SOFTMAX_LANES, tasks = outer * tiles;
    const int streams =
        !is_log && inner == 1 && n <= GP_ROW_CHUNK && gp_streams(to, x, NULL, outer * n);
    GP_PARALLEL(c->run, outer * n * inner > 2048)
    for (int64_t from = 0; from < tasks; from += GP_ROW_BLOCK) {
        const int64_t some = tasks - from < GP_ROW_BLOCK ? tasks - from : GP_ROW_BLOCK;
        if (GP_WAY(softmax_streams, streams)) {
            gp_softmax_stream(x + from * n, to + from * n, some, n);
            gp_stream_end();
            continue;
        }
        for (int64_t task = from; task < from + some; task++) {
            const int64_t first = task % tiles * GP_SOFTMAX_LANES;
            const int64_t at = task / tiles * n * inner + first;
            if (GP_WAY(softmax_rows, inner == 1))
                gp_softmax_row(x + at, to + at, n, is_log);
            else
                gp_softmax_columns(
                    x + at, to + at, n, inner,
                    inner - first < GP_SOFTMAX_LANES ? inner - first : GP_SOFTMAX_LANES, is_log);
        }
    }
    return GP_OK;
}

GP_FUNCTION void gp_softmax_any_ways(const gp_call *c, int axis, int is_log, gp_ways *ways)
{
    const gp_tensor *t = &c->in[0];
    const int rows = gp_span(t, axis + 1, t->rank) == 1;
    gp_way(ways, "softmax_half", gp_is_half(c));
    gp_way(ways, "softmax_rows", rows);
    gp_stream_ways(ways, "softmax_streams", !gp_is_half(c) && !is_log && rows, gp_count(t));
}

GP_WORKSPACE(softmax)
{
    return gp_softmax_work(c, (int)((const gp_softmax_attr *)c->attr)->axis);
}

GP_WORKSPACE(log_softmax)
{
    return gp_softmax_work(c, (int)((const gp_log_softmax_attr *)c->attr)->axis);
}

GP_WAYS(softmax)
{
    gp_softmax_any_ways(c, (int)((const gp_softmax_attr *)c->attr)->axis, 0, ways);
}

GP_WAYS(log_softmax)
{
    gp_softmax_any_ways(c, (int)((const gp_log_softmax_attr *)c->attr)->axis, 1, ways);
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
