/* The gradient of attend, tile by tile: scores are recomputed from q and k, with the saved maximum
 * and sum of exponentials (Dao et al. 2022), so workspace depends on the head size alone.
 *
 * With P the softmax and delta = sum(dout * out) of each row: dV = P' dout, dS = P (dout V' -
 * delta) scale, dQ = dS K, dK = dS' Q. A task is one key head of one sample with all query heads
 * that read it, so every sum has one order. Operands: q, k, v, mask (or none), out, totals, dout;
 * outputs have layout [B, T, H, D]. */
#ifndef GP_ATTEND_GRAD_H
#define GP_ATTEND_GRAD_H

#include "attend.h"

/* A tile of queries against a tile of keys. */
typedef struct {
    int64_t rows, keys, size, width;
    gp_real *p, *ds;  /* [GP_ATTEND_ROWS][GP_ATTEND_KEYS] */
    gp_real *kt, *vt; /* keys and values, packed as columns */
    gp_real *work;    /* workspace of the products */
} gp_attend_back;

GP_FUNCTION int64_t gp_attend_back_reals(int64_t size, int64_t width)
{
    const int64_t n = 2 * (int64_t)GP_ATTEND_ROWS * GP_ATTEND_KEYS +
                      (int64_t)GP_ATTEND_KEYS * (size + width) + gp_attend_work(size, width);
    return gp_round_up(n, 16);
}

GP_FUNCTION gp_attend_back gp_attend_back_lay(gp_real *work, int64_t size, int64_t width)
{
    gp_attend_back t = {.size = size, .width = width};
    t.p = work;
    t.ds = t.p + GP_ATTEND_ROWS * GP_ATTEND_KEYS;
    t.kt = t.ds + GP_ATTEND_ROWS * GP_ATTEND_KEYS;
    t.vt = t.kt + size * GP_ATTEND_KEYS;
    t.work = t.vt + width * GP_ATTEND_KEYS;
    return t;
}

GP_FUNCTION gp_real gp_attend_dot(const gp_real *x, const gp_real *y, int64_t n)
{
    gp_real lane[GP_ROW_LANES] = {0};
    int64_t i = 0;
    for (; i + GP_ROW_LANES <= n; i += GP_ROW_LANES)
        for (int k = 0; k < GP_ROW_LANES; k++)
            lane[k] += x[i + k] * y[i + k];
    for (int k = 0; i + k < n; k++)
        lane[k] += x[i + k] * y[i + k];
    return gp_row_lanes(lane);
}

/* Row i of the tile: scores become P, dout V' becomes dS, for the first n keys; 0 for the rest. */
GP_FUNCTION void gp_attend_back_row(const gp_attend_back *t, int64_t i, int64_t n, gp_real scale,
                                    const gp_real *total, gp_real delta)
{
    gp_real *restrict p = t->p + i * GP_ATTEND_KEYS, *restrict ds = t->ds + i * GP_ATTEND_KEYS;
    if (n < 0 || total[1] == 0) /* attends to none of these keys, or to none at all */
        n = 0;
    const gp_real most = total[0], part = 1 / total[1], low = gp_exp_low(most);
    for (int64_t j = 0; j < n; j++) {
        p[j] = gp_exp_below(p[j] - most, low) * part;
        ds[j] = p[j] * (ds[j] - delta) * scale;
    }
    for (int64_t j = n; j < t->keys; j++)
        p[j] = ds[j] = 0;
}

/* Queries first to first + t->rows of head h against the tile of keys that starts at `at`; `add`:
 * accumulate into the gradients of these keys and values. */
GP_FUNCTION void gp_attend_back_tile(const gp_call *c, const gp_attend_back *t, int64_t b,
                                     int64_t h, int64_t first, int64_t at, int add)
{
    const gp_attend_grad_attr *a = c->attr;
    const gp_tensor *in = c->in, *mask = gp_attend_mask_of(c);
    const int64_t queries = in[0].dim[2], heads = in[0].dim[1], kv = h / (heads / in[1].dim[1]);
    const int64_t ahead = in[1].dim[2] - queries;
    const gp_matrix q = gp_attend_head(&in[0], b, h, first), p = {t->p, GP_ATTEND_KEYS, 1};
    const gp_matrix out = gp_attend_token(&in[4], b, h, first), ds = {t->ds, GP_ATTEND_KEYS, 1};
    const gp_matrix dout = gp_attend_token(&in[6], b, h, first);
    const gp_real *totals = (const gp_real *)in[5].data + 2 * ((b * heads + h) * queries + first);
    gp_block_product(p, q, t->rows, t->keys, t->size, t->work, (gp_columns){.packed = t->kt}, 0,
                     (gp_ending){0});
    gp_block_product(ds, dout, t->rows, t->keys, t->width, t->work, (gp_columns){.packed = t->vt},
                     0, (gp_ending){0});
    for (int64_t i = 0; i < t->rows; i++) {
        const int64_t row = first + i;
        const int64_t n = a->causal ? gp_least(t->keys, row + ahead + 1 - at) : t->keys;
        gp_real *score = t->p + i * GP_ATTEND_KEYS;
        for (int64_t j = 0; j < n; j++)
            score[j] *= (gp_real)a->scale;
        if (GP_WAY(attend_masks, mask))
            gp_attend_mask(mask, b, h, row, at, n, score);
        gp_attend_back_row(t, i, n, (gp_real)a->scale, totals + 2 * i,
                           gp_attend_dot(out.at + i * out.row, dout.at + i * dout.row, t->width));
    }
    if (c->out[0].data)
        gp_gemm(gp_attend_token(&c->out[0], b, h, first), ds, gp_attend_head(&in[1], b, kv, at),
                t->rows, t->size, t->keys, 1, t->work, (gp_ending){0});
    if (c->out[1].data)
        gp_gemm(gp_attend_token(&c->out[1], b, kv, at), gp_transposed(ds), q, t->keys, t->size,
                t->rows, add, t->work, (gp_ending){0});
    if (c->out[2].data)
        gp_gemm(gp_attend_token(&c->out[2], b, kv, at), gp_transposed(p), dout, t->keys, t->width,
                t->rows, add, t->work, (gp_ending){0});
}

/* Zero gradients of keys that no query attends to. */
GP_FUNCTION void gp_attend_back_clear(const gp_tensor *to, int64_t b, int64_t h, int64_t first,
                                      int64_t keys)
{
    for (int64_t j = 0; to->data && j < keys; j++)
        memset(gp_attend_token(to, b, h, first + j).at, 0, (size_t)to->dim[3] * sizeof(gp_real));
}

GP_WORKSPACE(attend_grad)
{
    return (size_t)c->run->threads *
           (size_t)gp_attend_back_reals(c->in[0].dim[3], c->in[2].dim[3]) * sizeof(gp_real);
}

GP_WAYS(attend_grad)
{
    gp_way(ways, "attend_masks", gp_attend_mask_of(c) != NULL);
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
            t.keys = gp_least(length - at, GP_ATTEND_KEYS);
            gp_pack_b(t.kt, gp_transposed(gp_attend_head(k, b, kv, at)), size, t.keys);
            gp_pack_b(t.vt, gp_transposed(gp_attend_head(v, b, kv, at)), width, t.keys);
            /* the first query that attends to one of these keys */
            int64_t start = a->causal && at > length - queries ? at - (length - queries) : 0;
            if (start >= queries) {
                gp_attend_back_clear(&c->out[1], b, kv, at, t.keys);
                gp_attend_back_clear(&c->out[2], b, kv, at, t.keys);
            }
            for (int64_t h = kv * group; h < (kv + 1) * group; h++)
                for (int64_t first = start; first < queries; first += GP_ATTEND_ROWS) {
                    t.rows = gp_least(queries - first, GP_ATTEND_ROWS);
                    gp_attend_back_tile(c, &t, b, h, first, at, h > kv * group || first > start);
                }
        }
    }
    return GP_OK;
}

#endif
