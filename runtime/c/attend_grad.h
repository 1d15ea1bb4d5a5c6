/* The gradient of attend, tile by tile: scores are computed again from q, k and the saved
 * logarithm of their sum (Dao et al. 2022), so scratch depends on the head size alone.
 *
 * With P the softmax and delta = sum(dout * out) of each row: dV = P' dout,
 * dS = P (dout V' - delta) scale, dQ = dS K, dK = dS' Q. One task is one head of keys of one
 * sample with all heads of queries that read it, so every sum has one order.
 * Operands: q, k, v, mask (or none), out, log-sum-exp, dout; outputs lie as [B, T, H, D]. */
#ifndef GP_ATTEND_GRAD_H
#define GP_ATTEND_GRAD_H

#include "attend.h"

typedef gp_attend_attr gp_attend_grad_attr;

/* A tile of keys with its gradients, transposed, and a tile of queries. */
typedef struct {
    int64_t rows, keys, size, width;
    gp_real *kt, *vt, *dkt, *dvt; /* [size or width][GP_ATTEND_KEYS] */
    gp_real *k;                   /* [GP_ATTEND_KEYS][size] */
    gp_real *q, *dout;            /* [rows][size], [rows][width] */
    gp_real *p, *ds;              /* [GP_ATTEND_KEYS]: one row of each */
} gp_attend_back;

GP_FUNCTION int64_t gp_attend_back_reals(int64_t size, int64_t width)
{
    int64_t n = (int64_t)GP_ATTEND_KEYS * (3 * size + 2 * width + 2) +
                (int64_t)GP_ATTEND_ROWS * (size + width);
    return (n + 15) / 16 * 16;
}

GP_FUNCTION gp_attend_back gp_attend_back_lay(gp_real *work, int64_t size, int64_t width)
{
    gp_attend_back t = {.size = size, .width = width};
    t.p = work;
    t.ds = t.p + GP_ATTEND_KEYS;
    t.kt = t.ds + GP_ATTEND_KEYS;
    t.dkt = t.kt + size * GP_ATTEND_KEYS;
    t.vt = t.dkt + size * GP_ATTEND_KEYS;
    t.dvt = t.vt + width * GP_ATTEND_KEYS;
    t.k = t.dvt + width * GP_ATTEND_KEYS;
    t.q = t.k + size * GP_ATTEND_KEYS;
    t.dout = t.q + size * GP_ATTEND_ROWS;
    return t;
}

GP_FUNCTION void gp_attend_back_keys(gp_attend_back *t, const gp_tensor *k, const gp_tensor *v,
                                     int64_t b, int64_t h, int64_t first)
{
    memset(t->kt, 0, (size_t)(2 * (t->size + t->width) * GP_ATTEND_KEYS) * sizeof *t->kt);
    for (int64_t j = 0; j < t->keys; j++) {
        const gp_real *key = gp_attend_at(k, b, h, first + j);
        const gp_real *value = gp_attend_at(v, b, h, first + j);
        for (int64_t d = 0; d < t->size; d++)
            t->k[j * t->size + d] = t->kt[d * GP_ATTEND_KEYS + j] = key[d * k->stride[3]];
        for (int64_t d = 0; d < t->width; d++)
            t->vt[d * GP_ATTEND_KEYS + j] = value[d * v->stride[3]];
    }
}

/* to[j] = sum of x[d] * m[d][j] */
GP_FUNCTION void gp_attend_dots(const gp_real *x, const gp_real *m, int64_t n, gp_real *to)
{
    for (int j = 0; j < GP_ATTEND_KEYS; j++)
        to[j] = 0;
    for (int64_t d = 0; d < n; d++)
        for (int j = 0; j < GP_ATTEND_KEYS; j++)
            to[j] += x[d] * m[d * GP_ATTEND_KEYS + j];
}

/* m[d][j] += x[d] * y[j] */
GP_FUNCTION void gp_attend_outer(const gp_real *x, const gp_real *y, int64_t n, gp_real *m)
{
    for (int64_t d = 0; d < n; d++)
        for (int j = 0; j < GP_ATTEND_KEYS; j++)
            m[d * GP_ATTEND_KEYS + j] += x[d] * y[j];
}

/* Row i of the tile of queries against the first n keys of the tile of keys. */
GP_FUNCTION void gp_attend_back_row(gp_attend_back *t, int64_t i, int64_t n, gp_real scale,
                                    gp_real log_sum, gp_real delta, const gp_tensor *mask,
                                    int64_t mask_at, gp_real *dq)
{
    const gp_real *q = t->q + i * t->size, *dout = t->dout + i * t->width;
    gp_attend_dots(q, t->kt, t->size, t->p);
    for (int64_t j = 0; j < n; j++)
        t->p[j] *= scale;
    if (mask)
        gp_attend_mask(mask, mask_at, n, t->p);
    for (int64_t j = 0; j < n; j++)
        t->p[j] = gp_exp(t->p[j] - log_sum);
    for (int64_t j = n; j < GP_ATTEND_KEYS; j++)
        t->p[j] = 0;
    gp_attend_dots(dout, t->vt, t->width, t->ds);
    for (int j = 0; j < GP_ATTEND_KEYS; j++)
        t->ds[j] = t->p[j] * (t->ds[j] - delta) * scale;
    gp_attend_outer(dout, t->p, t->width, t->dvt);
    gp_attend_outer(q, t->ds, t->size, t->dkt);
    for (int64_t j = 0; dq && j < n; j++)
        for (int64_t d = 0; d < t->size; d++)
            dq[d] += t->ds[j] * t->k[j * t->size + d];
}

/* Queries first to first + t->rows of head h against the tile of keys that begins at `at`. */
GP_FUNCTION void gp_attend_back_tile(const gp_call *c, gp_attend_back *t, int64_t b, int64_t h,
                                     int64_t first, int64_t at)
{
    const gp_attend_grad_attr *a = c->attr;
    const gp_tensor *q = &c->in[0], *mask = c->in[3].data ? &c->in[3] : NULL;
    const gp_tensor *out = &c->in[4], *lse = &c->in[5], *dout = &c->in[6], *dq = &c->out[0];
    const int64_t queries = q->dim[2], length = c->in[1].dim[2], heads = q->dim[1];
    for (int64_t i = 0; i < t->rows; i++) {
        const int64_t row = first + i, token = (b * queries + row) * heads + h;
        int64_t n = t->keys;
        if (a->causal && row + length - queries + 1 - at < n)
            n = row + length - queries + 1 - at;
        const gp_real log_sum = ((const gp_real *)lse->data)[(b * heads + h) * queries + row];
        if (n <= 0 || log_sum == -(gp_real)INFINITY)
            continue; /* sees none of these keys, or none at all */
        const gp_real *x = gp_attend_at(q, b, h, row);
        const gp_real *o = (const gp_real *)out->data + token * t->width;
        const gp_real *up = (const gp_real *)dout->data + token * t->width;
        gp_real delta = 0;
        for (int64_t d = 0; d < t->size; d++)
            t->q[i * t->size + d] = x[d * q->stride[3]];
        for (int64_t d = 0; d < t->width; d++) {
            t->dout[i * t->width + d] = up[d];
            delta += o[d] * up[d];
        }
        const int64_t mask_at = mask ? b * mask->stride[0] + h * mask->stride[1] +
                                           row * mask->stride[2] + at * mask->stride[3]
                                     : 0;
        gp_attend_back_row(t, i, n, (gp_real)a->scale, log_sum, delta, mask, mask_at,
                           dq->data ? (gp_real *)dq->data + token * t->size : NULL);
    }
}

/* A tile of a gradient of keys or values, turned back: to[B, S, H, n]. */
GP_FUNCTION void gp_attend_back_store(const gp_tensor *to, const gp_real *from, int64_t keys,
                                      int64_t n, int64_t b, int64_t h, int64_t first)
{
    for (int64_t j = 0; to->data && j < keys; j++) {
        gp_real *row = (gp_real *)to->data + ((b * to->dim[1] + first + j) * to->dim[2] + h) * n;
        for (int64_t d = 0; d < n; d++)
            row[d] = from[d * GP_ATTEND_KEYS + j];
    }
}

GP_WORKSPACE(attend_grad)
{
    return (size_t)c->run->threads *
           (size_t)gp_attend_back_reals(c->in[0].dim[3], c->in[2].dim[3]) * sizeof(gp_real);
}

GP_KERNEL(attend_grad)
{
    const gp_attend_grad_attr *a = c->attr;
    const gp_tensor *q = &c->in[0], *k = &c->in[1], *v = &c->in[2];
    const int64_t size = q->dim[3], width = v->dim[3], queries = q->dim[2], length = k->dim[2];
    const int64_t kv_heads = k->dim[1], group = q->dim[1] / kv_heads, tasks = q->dim[0] * kv_heads;
    if (c->out[0].data)
        memset(c->out[0].data, 0, (size_t)gp_count(&c->out[0]) * sizeof(gp_real));
    GP_PARALLEL(c->run, tasks > 1)
    for (int64_t task = 0; task < tasks; task++) {
        const int64_t b = task / kv_heads, kv = task % kv_heads;
        gp_attend_back t = gp_attend_back_lay(
            (gp_real *)c->work + gp_thread() * gp_attend_back_reals(size, width), size, width);
        for (int64_t at = 0; at < length; at += GP_ATTEND_KEYS) {
            t.keys = length - at < GP_ATTEND_KEYS ? length - at : GP_ATTEND_KEYS;
            gp_attend_back_keys(&t, k, v, b, kv, at);
            /* the first query that sees one of these keys */
            int64_t start = a->causal && at > length - queries ? at - (length - queries) : 0;
            for (int64_t h = kv * group; h < (kv + 1) * group; h++)
                for (int64_t first = start; first < queries; first += GP_ATTEND_ROWS) {
                    t.rows = queries - first < GP_ATTEND_ROWS ? queries - first : GP_ATTEND_ROWS;
                    gp_attend_back_tile(c, &t, b, h, first, at);
                }
            gp_attend_back_store(&c->out[1], t.dkt, t.keys, size, b, kv, at);
            gp_attend_back_store(&c->out[2], t.dvt, t.keys, width, b, kv, at);
        }
    }
    return GP_OK;
}

#endif
