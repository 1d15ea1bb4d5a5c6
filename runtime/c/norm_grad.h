/* The gradient of layernorm, normalize and rmsnorm: of x (output 0), scale (1) and bias (2).
 *
 * With n = (x - mean) * inverse and g = dy * scale: dx = inverse * (g - mean(g) - n * mean(g n)),
 * without mean(g) for rmsnorm. Scale and bias sum over rows: in at most GP_NORM_CHUNKS chunks that
 * follow from the shape, then chunk by chunk. Where x was not kept, n stands in its place. May run
 * in place of x or dy. */
#ifndef GP_NORM_GRAD_H
#define GP_NORM_GRAD_H

#include "narrow.h"
#include "row.h"
#include "settings.h"
#include "vector.h"

enum {
    GP_NORM_CHUNKS = GP_BLOCK(32, 3),
    GP_NORM_ROWS = GP_BLOCK(2, 2) /* rows summed together */
};

GP_FUNCTION int64_t gp_norm_chunks(int64_t rows)
{
    return rows < GP_NORM_CHUNKS ? rows : GP_NORM_CHUNKS;
}

GP_WORKSPACE(norm_grad)
{
    const gp_norm_grad_attr *a = c->attr;
    const gp_tensor *x = &c->in[0];
    int64_t rows = gp_span(x, 0, x->rank - (int)a->axes), n = gp_count(x) / rows;
    /* of 16 bits: x and dy of the rows that a thread sums together, and scale */
    const int64_t wide = gp_is_half(c) ? (2 * GP_NORM_ROWS * c->run->threads + 1) * n : 0;
    return (size_t)(2 * gp_norm_chunks(rows) * n + wide) * sizeof(gp_real);
}

/* What all rows of a chunk share. */
typedef struct {
    const gp_real *scale;
    gp_real *dscale, *dbias;
    int64_t n;
    int centre, streams;
} gp_norm_shared;

/* A row, and the sums of g and of g * n along it: lanes of a block, then all. n is
 * (x - mean) * inverse, dx goes by factor. */
typedef struct {
    const gp_real *x, *dy;
    gp_real mean, inverse, factor, sum[GP_ROW_LANES], along[GP_ROW_LANES];
    double whole_sum, whole_along;
} gp_norm_slope;

/* Elements from i, at most one for each lane. */
GP_FUNCTION void gp_norm_grad_some(const gp_norm_shared *v, gp_norm_slope *r, int64_t i, int some)
{
    for (int k = 0; k < some; k++) {
        const gp_real dy = r->dy[i + k], unit = (r->x[i + k] - r->mean) * r->inverse;
        const gp_real g = v->scale ? dy * v->scale[i + k] : dy;
        r->sum[k] += g;
        r->along[k] += g * unit;
        v->dscale[i + k] += dy * unit;
        v->dbias[i + k] += dy;
    }
}

/* The same for full vectors, from .. to - 1, of GP_NORM_ROWS rows: dscale and dbias are read and
 * written once for all of them, and sums stay in registers. Returns how far it came. */
GP_FUNCTION int64_t gp_norm_grad_lanes(const gp_norm_shared *v, gp_norm_slope *r, int rows,
                                       int64_t from, int64_t to)
{
    int64_t i = from;
#if defined(__GNUC__)
    enum { PARTS = GP_ROW_LANES / GP_LANES };
    gp_lanes sum[GP_NORM_ROWS][PARTS] = {{{0}}}, along[GP_NORM_ROWS][PARTS] = {{{0}}};
    for (; rows == GP_NORM_ROWS && i + GP_ROW_LANES <= to; i += GP_ROW_LANES)
        for (int k = 0; k < PARTS; k++) {
            const int64_t at = i + k * GP_LANES;
            gp_lanes *dscale = (gp_lanes *)(v->dscale + at), *dbias = (gp_lanes *)(v->dbias + at);
            gp_lanes scale_sum = *dscale, bias_sum = *dbias;
            for (int j = 0; j < GP_NORM_ROWS; j++) {
                const gp_lanes dy = *(const gp_lanes *)(r[j].dy + at);
                const gp_lanes x = *(const gp_lanes *)(r[j].x + at);
                const gp_lanes unit = (x - r[j].mean) * r[j].inverse;
                gp_lanes g = dy;
                if (v->scale)
                    g *= *(const gp_lanes *)(v->scale + at);
                sum[j][k] += g;
                along[j][k] += g * unit;
                scale_sum += dy * unit;
                bias_sum += dy;
            }
            *dscale = scale_sum;
            *dbias = bias_sum;
        }
    for (int j = 0; j < GP_NORM_ROWS && i > from; j++) {
        memcpy(r[j].sum, sum[j], sizeof sum[j]);
        memcpy(r[j].along, along[j], sizeof along[j]);
    }
#endif
    return i;
}

/* The sums of some rows. */
GP_FUNCTION void gp_norm_grad_sums(const gp_norm_shared *v, gp_norm_slope *r, int rows)
{
    for (int64_t from = 0; from < v->n; from += GP_ROW_CHUNK) {
        const int64_t to = from + GP_ROW_CHUNK < v->n ? from + GP_ROW_CHUNK : v->n;
        for (int j = 0; j < rows; j++) {
            memset(r[j].sum, 0, sizeof r[j].sum);
            memset(r[j].along, 0, sizeof r[j].along);
        }
        const int64_t begin = gp_norm_grad_lanes(v, r, rows, from, to);
        for (int j = 0; j < rows; j++) {
            int64_t i = begin;
            for (; i + GP_ROW_LANES <= to; i += GP_ROW_LANES)
                gp_norm_grad_some(v, &r[j], i, GP_ROW_LANES);
            gp_norm_grad_some(v, &r[j], i, (int)(to - i));
            r[j].whole_sum += (double)gp_row_lanes(r[j].sum);
            r[j].whole_along += (double)gp_row_lanes(r[j].along);
        }
    }
}

/* dx of a row whose sums are known. What is read next is `ahead` elements further. */
GP_FUNCTION void gp_norm_grad_row(const gp_norm_shared *v, const gp_norm_slope *r, gp_real *dx,
                                  int64_t ahead)
{
    const gp_real shift = v->centre ? (gp_real)(r->whole_sum / (double)v->n) : 0;
    const gp_real slope = (gp_real)(r->whole_along / (double)v->n);
    const gp_real mean = r->mean, inverse = r->inverse, factor = r->factor;
    gp_real piece[GP_STREAM_PIECE];
    for (int64_t i = 0; i < v->n; i += GP_STREAM_PIECE) {
        const int64_t some = gp_stream_piece(v->n - i);
        const gp_real *x = r->x + i, *dy = r->dy + i, *scale = v->scale ? v->scale + i : NULL;
        gp_real *at = v->streams ? piece : dx + i;
        GP_IVDEP
        for (int64_t k = 0; k < some; k++) {
            const gp_real unit = (x[k] - mean) * inverse, g = scale ? dy[k] * scale[k] : dy[k];
            at[k] = factor * (g - shift - unit * slope);
        }
        gp_stream_ask(dy + ahead, some);
        if (GP_WAY(norm_grad_streams, v->streams))
            gp_stream(dx + i, piece, some, x + ahead);
    }
}

GP_FUNCTION void gp_norm_join(gp_real *to, const gp_real *part, int64_t chunks, int64_t n)
{
    memset(to, 0, (size_t)n * sizeof *to);
    for (int64_t k = 0; k < chunks; k++)
        for (int64_t i = 0; i < n; i++)
            to[i] += part[2 * k * n + i];
}

GP_WAYS(norm_grad)
{
    gp_way(ways, "norm_grad_half", gp_is_half(c));
    gp_stream_ways(ways, "norm_grad_streams", !gp_is_half(c), gp_count(&c->in[0]));
}

/* Operands: x, dy, scale (or none), mean (none for rmsnorm), inverse standard deviation. */
GP_KERNEL(norm_grad)
{
    const gp_norm_grad_attr *a = c->attr;
    const gp_real *x = c->in[0].data, *dy = c->in[1].data, *scale = c->in[2].data;
    const gp_real *mean = c->in[3].data, *inverse = c->in[4].data;
    gp_real *dx = c->out[0].data, *work = c->work;
    const int64_t rows = gp_span(&c->in[0], 0, c->in[0].rank - (int)a->axes);
    const int64_t n = gp_count(&c->in[0]) / rows, chunks = gp_norm_chunks(rows);
    const int centre = (int)a->centre, half = gp_is_half(c);
    const int streams = !half && gp_streams(dx, x, dy, rows * n);
#ifndef GP_NO_HALF
    gp_real *const wide = work + 2 * chunks * n;
    (void)wide; /* of 16 bits */
#endif
    if (GP_WAY(norm_grad_half, half)) {
        if (scale)
            gp_load_row(wide, &c->in[2], 0, n);
        scale = scale ? wide : NULL;
    }
    GP_PARALLEL(c->run, rows * n > 8192)
    for (int64_t k = 0; k < chunks; k++) {
        gp_real *dscale = work + 2 * k * n;
        const gp_norm_shared v = {scale, dscale, dscale + n, n, centre, streams};
        const int64_t end = (k + 1) * rows / chunks;
        memset(dscale, 0, (size_t)(2 * n) * sizeof *dscale);
        for (int64_t row = k * rows / chunks, some; row < end; row += some) {
            gp_norm_slope r[GP_NORM_ROWS];
            some = end - row < GP_NORM_ROWS ? end - row : GP_NORM_ROWS;
            for (int64_t j = 0; j < some; j++) {
                const int64_t at = row + j;
                r[j] = (gp_norm_slope){.x = x + at * n, .dy = dy + at * n, .factor = inverse[at]};
                r[j].inverse = a->made ? 1 : inverse[at];
                r[j].mean = mean ? mean[at] : 0;
                if (GP_WAY(norm_grad_half, half)) {
                    gp_real *own = wide + n * (1 + 2 * (gp_thread() * GP_NORM_ROWS + j));
                    gp_load_row(own, &c->in[0], at, n);
                    gp_load_row(own + n, &c->in[1], at, n);
                    r[j].x = own;
                    r[j].dy = own + n;
                }
            }
            gp_norm_grad_sums(&v, r, (int)some);
            for (int64_t j = 0; j < some && dx; j++) {
                if (GP_WAY(norm_grad_half, half)) {
                    gp_real *own = wide + n * (1 + 2 * (gp_thread() * GP_NORM_ROWS + j));
                    gp_norm_grad_row(&v, &r[j], own, 0);
                    gp_store_row(&c->out[0], row + j, own, n);
                } else {
                    gp_norm_grad_row(&v, &r[j], dx + (row + j) * n, some * n);
                }
            }
        }
        gp_stream_end();
    }
    if (c->out[1].data)
        gp_norm_join(c->out[1].data, work, chunks, n);
    if (c->out[2].data)
        gp_norm_join(c->out[2].data, work + n, chunks, n);
    return GP_OK;
}

#endif
