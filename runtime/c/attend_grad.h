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
    gp_real *work;    /* workspace of the products; sums aside: of keys, values, all queries */
#ifndef GP_NO_HALF
    int half; /* outputs are summed aside, in f32; P and dS are rounded where they are multiplied */
#endif
} gp_attend_back;

GP_FUNCTION int64_t gp_attend_back_reals(const gp_call *c)
{
    const gp_tensor *q = &c->in[0], *k = &c->in[1];
    const int64_t size = q->dim[3], width = c->in[2].dim[3];
    (void)k; /* for 16 bits alone */
    int64_t n = 2 * (int64_t)GP_ATTEND_ROWS * GP_ATTEND_KEYS +
                (int64_t)GP_ATTEND_KEYS * (size + width) + gp_attend_work(size, width);
    if (GP_WAY(attend_half, gp_is_half(c)))
        n += q->dim[1] / k->dim[1] * q->dim[2] * size + GP_ATTEND_KEYS * (size + width);
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

/* The sum of the products of two rows of this type. */
GP_FUNCTION gp_real gp_attend_dot(const void *x, const void *y, int64_t n, int type)
{
    gp_real lane[GP_ROW_LANES] = {0};
    int64_t i = 0;
    for (; i + GP_ROW_LANES <= n; i += GP_ROW_LANES)
        for (int k = 0; k < GP_ROW_LANES; k++)
            lane[k] += gp_get_real(x, i + k, type) * gp_get_real(y, i + k, type);
    for (int k = 0; i + k < n; k++)
        lane[k] += gp_get_real(x, i + k, type) * gp_get_real(y, i + k, type);
    return gp_row_lanes(lane);
}

#ifdef GP_NO_HALF
/* The sum of dout * out of a query. */
#define gp_attend_delta(c, b, h, row, half)                   \
    gp_attend_dot(gp_attend_token(&(c)->in[4], b, h, row).at, \
                  gp_attend_token(&(c)->in[6], b, h, row).at, (c)->in[4].dim[3], GP_F32)
#else
/* The sum of dout * out of a query. */
GP_FUNCTION gp_real gp_attend_delta(const gp_call *c, int64_t b, int64_t h, int64_t row, int half)
{
    const int64_t n = c->in[4].dim[3];
    const gp_real *x = gp_attend_token(&c->in[4], b, h, row).at;
    const gp_real *y = gp_attend_token(&c->in[6], b, h, row).at;
    return half == GP_BF16  ? gp_attend_dot(x, y, n, GP_BF16)
           : half == GP_F16 ? gp_attend_dot(x, y, n, GP_F16)
                            : gp_attend_dot(x, y, n, GP_F32);
}
#endif

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

/* Where the gradients of operand i are summed aside: [n][size], of queries from `row` on of head h,
 * or of the keys of the tile. */
GP_FUNCTION gp_matrix gp_attend_aside(const gp_call *c, const gp_attend_back *t, int i, int64_t h,
                                      int64_t row)
{
    const int64_t group = c->in[0].dim[1] / c->in[1].dim[1];
    gp_real *const keys = t->work + gp_attend_work(t->size, t->width);
    gp_real *const values = keys + GP_ATTEND_KEYS * t->size;
    gp_real *const queries = values + GP_ATTEND_KEYS * t->width;
    gp_real *const at[] = {queries + (h % group * c->in[0].dim[2] + row) * t->size, keys, values};
    return (gp_matrix){at[i], i < 2 ? t->size : t->width, 1};
}

/* Rounds the final sums of n rows. */
GP_FUNCTION void gp_attend_back_store(const gp_call *c, const gp_attend_back *t, int i, int64_t b,
                                      int64_t h, int64_t row, int64_t n)
{
    const gp_matrix sums = gp_attend_aside(c, t, i, h, row);
    for (int64_t j = 0; c->out[i].data && j < n; j++)
        gp_set_row(gp_attend_token(&c->out[i], b, h, row + j).at, sums.at + j * sums.row,
                   c->out[i].dim[3], c->out[i].dtype);
}

/* What a tile adds to the gradients, of 16 bits. */
GP_FUNCTION void gp_attend_back_half(const gp_call *c, const gp_attend_back *t, int64_t b,
                                     int64_t h, int64_t first, int64_t at, int add)
{
    const gp_tensor *q = &c->in[0], *k = &c->in[1], *up = &c->in[6];
    const gp_reals ds = {t->ds, GP_ATTEND_KEYS, 1, GP_F32};
    const gp_reals keys =
        gp_reals_of(gp_attend_head(k, b, h / (q->dim[1] / k->dim[1]), at), k->dtype);
    const gp_reals queries = gp_reals_of(gp_attend_head(q, b, h, first), q->dtype);
    const gp_reals dout = gp_reals_of(gp_attend_token(up, b, h, first), up->dtype);
    const gp_reals to_keys = {t->ds, 1, GP_ATTEND_KEYS, GP_F32};
    const gp_reals to_values = {t->p, 1, GP_ATTEND_KEYS, GP_F32};
    const gp_ending none = {0};
    if (c->out[0].data)
        gp_half_gemm(gp_attend_aside(c, t, 0, h, first), ds, keys, t->rows, t->size, t->keys,
                     t->half, 1, t->work, none);
    if (c->out[1].data)
        gp_half_gemm(gp_attend_aside(c, t, 1, h, 0), to_keys, queries, t->keys, t->size, t->rows,
                     t->half, add, t->work, none);
    if (c->out[2].data)
        gp_half_gemm(gp_attend_aside(c, t, 2, h, 0), to_values, dout, t->keys, t->width, t->rows,
                     t->half, add, t->work, none);
}

/* Queries first to first + t->rows of head h against the tile of keys that starts at `at`; `add`:
 * accumulate into the gradients of these keys and values. */
GP_FUNCTION void gp_attend_back_tile(const gp_call *c, const gp_attend_back *t, int64_t b,
                                     int64_t h, int64_t first, int64_t at, int add)
{
    const gp_attend_grad_attr *a = c->attr;
    const gp_tensor *in = c->in;
    const int64_t queries = in[0].dim[2], heads = in[0].dim[1], kv = h / (heads / in[1].dim[1]);
    const int64_t ahead = in[1].dim[2] - queries;
    const gp_matrix q = gp_attend_head(&in[0], b, h, first), p = {t->p, GP_ATTEND_KEYS, 1};
    const gp_matrix dout = gp_attend_token(&in[6], b, h, first), ds = {t->ds, GP_ATTEND_KEYS, 1};
    const gp_real *totals = (const gp_real *)in[5].data + 2 * ((b * heads + h) * queries + first);
    gp_attend_times(t->p, q, in[0].dtype, t->kt, t->rows, t->keys, t->size, t->work, t->half);
    gp_attend_times(t->ds, dout, in[6].dtype, t->vt, t->rows, t->keys, t->width, t->work, t->half);
    for (int64_t i = 0; i < t->rows; i++) {
        const int64_t row = first + i;
        const int64_t n = a->causal ? gp_least(t->keys, row + ahead + 1 - at) : t->keys;
        gp_real *score = t->p + i * GP_ATTEND_KEYS;
        for (int64_t j = 0; j < n; j++)
            score[j] *= (gp_real)a->scale;
        if (GP_WAY(attend_masks, c->ins > 3 && in[3].data))
            gp_attend_mask(&in[3], b, h, row, at, n, score);
        gp_attend_back_row(t, i, n, (gp_real)a->scale, totals + 2 * i,
                           gp_attend_delta(c, b, h, row, t->half));
    }
    if (GP_WAY(attend_half, t->half != GP_F32)) {
        gp_attend_back_half(c, t, b, h, first, at, add);
        return;
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

GP_WORKSPACE(attend_grad)
{
    return (size_t)(c->run->threads * gp_attend_back_reals(c)) * sizeof(gp_real);
}

GP_WAYS(attend_grad)
{
    gp_attend_strides(c, ways);
    gp_way(ways, "attend_half", gp_is_half(c));
    gp_way(ways, "attend_masks", c->ins > 3 && c->in[3].data);
}

GP_KERNEL(attend_grad)
{
    const gp_attend_grad_attr *a = c->attr;
    const gp_tensor *q = &c->in[0], *k = &c->in[1], *v = &c->in[2];
    const int64_t size = q->dim[3], width = v->dim[3], queries = q->dim[2], length = k->dim[2];
    const int64_t kv_heads = k->dim[1], group = q->dim[1] / kv_heads, tasks = q->dim[0] * kv_heads;
    if (c->out[0].data)
        memset(c->out[0].data, 0, (size_t)gp_count(&c->out[0]) * gp_size(c->out[0].dtype));
    GP_PARALLEL(c->run, tasks > 1)
    for (int64_t task = 0; task < tasks; task++) {
        const int64_t b = task / kv_heads, kv = task % kv_heads;
        gp_attend_back t = gp_attend_back_lay(
            (gp_real *)c->work + gp_thread() * gp_attend_back_reals(c), size, width);
        if (GP_WAY(attend_half, gp_is_half(c))) {
            t.half = gp_half_of(c);
            memset(gp_attend_aside(c, &t, 0, 0, 0).at, 0,
                   (size_t)(group * queries * size) * sizeof(gp_real));
        }
        for (int64_t at = 0; at < length; at += GP_ATTEND_KEYS) {
            t.keys = gp_least(length - at, GP_ATTEND_KEYS);
            gp_attend_pack(t.kt, k, b, kv, at, t.keys, t.half);
            gp_attend_pack(t.vt, v, b, kv, at, t.keys, t.half);
            /* the first query that attends to one of these keys; the last attends to all */
            const int64_t start = a->causal && at > length - queries ? at - (length - queries) : 0;
            for (int64_t h = kv * group; h < (kv + 1) * group; h++)
                for (int64_t first = start; first < queries; first += GP_ATTEND_ROWS) {
                    t.rows = gp_least(queries - first, GP_ATTEND_ROWS);
                    gp_attend_back_tile(c, &t, b, h, first, at, h > kv * group || first > start);
                }
            if (GP_WAY(attend_half, t.half != GP_F32))
                for (int i = 1; i < 3; i++)
                    gp_attend_back_store(c, &t, i, b, kv, at, t.keys);
        }
        if (GP_WAY(attend_half, t.half != GP_F32))
            for (int64_t h = kv * group; h < (kv + 1) * group; h++)
                gp_attend_back_store(c, &t, 0, b, h, 0, queries);
    }
    return GP_OK;
}

#endif
