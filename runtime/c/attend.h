/* attend: softmax(q k^T * scale + mask) v, without ever holding more of the scores than one tile.
 *
 * Keys are streamed past a tile of queries with a running maximum and a running sum (Milakov and
 * Gimelshein 2018, Dao et al. 2022), so scratch depends on the head size alone. Operands have any
 * strides: heads may be slices of one projection. The output lies as [B, T, H, D], so that the
 * heads of a token stand side by side for the projection that follows; output 1 is the logarithm
 * of the sum of exponentials, [B, H, T], for a gradient.
 *
 * Causal: query i sees keys up to i + S - T, so the last query sees all. A query that sees none
 * gives zeros. */
#ifndef GP_ATTEND_H
#define GP_ATTEND_H

#include "row.h"

typedef struct {
    int64_t causal;
    double scale;
} gp_attend_attr;

enum { GP_ATTEND_ROWS = 32, GP_ATTEND_KEYS = 64 };

/* A tile of queries and what is known of it so far. */
typedef struct {
    int64_t rows, keys;  /* in the tile; keys change from step to step */
    int64_t size, width; /* of a head of q and k; of v */
    gp_real *q;          /* [rows][size], scaled */
    gp_real *k;          /* [size][GP_ATTEND_KEYS], transposed */
    gp_real *v;          /* [keys][width] */
    gp_real *score;      /* [rows][GP_ATTEND_KEYS] */
    gp_real *sum;        /* [rows][width]: sum of exp(score - most) * v */
    gp_real *most;       /* [rows]: largest score so far */
    gp_real *total;      /* [rows]: sum of exp(score - most) */
} gp_attend_tile;

GP_FUNCTION int64_t gp_attend_reals(int64_t size, int64_t width)
{
    int64_t n = (int64_t)GP_ATTEND_ROWS * (size + GP_ATTEND_KEYS + width + 2) +
                (int64_t)GP_ATTEND_KEYS * (size + width);
    return (n + 15) / 16 * 16;
}

GP_FUNCTION gp_attend_tile gp_attend_lay(gp_real *work, int64_t size, int64_t width)
{
    gp_attend_tile t = {.size = size, .width = width};
    t.score = work;
    t.k = t.score + GP_ATTEND_ROWS * GP_ATTEND_KEYS;
    t.most = t.k + size * GP_ATTEND_KEYS;
    t.total = t.most + GP_ATTEND_ROWS;
    t.q = t.total + GP_ATTEND_ROWS;
    t.sum = t.q + size * GP_ATTEND_ROWS;
    t.v = t.sum + width * GP_ATTEND_ROWS;
    return t;
}

/* Row `row` of head (b, h) of a [B, H, T, D] operand. */
GP_FUNCTION const gp_real *gp_attend_at(const gp_tensor *t, int64_t b, int64_t h, int64_t row)
{
    return (const gp_real *)t->data + b * t->stride[0] + h * t->stride[1] + row * t->stride[2];
}

GP_FUNCTION void gp_attend_load_q(gp_attend_tile *t, const gp_tensor *q, int64_t b, int64_t h,
                                  int64_t first, gp_real scale)
{
    for (int64_t i = 0; i < t->rows; i++) {
        const gp_real *from = gp_attend_at(q, b, h, first + i);
        for (int64_t d = 0; d < t->size; d++)
            t->q[i * t->size + d] = from[d * q->stride[3]] * scale;
        t->most[i] = -(gp_real)INFINITY;
        t->total[i] = 0;
        for (int64_t d = 0; d < t->width; d++)
            t->sum[i * t->width + d] = 0;
    }
}

GP_FUNCTION void gp_attend_load_kv(gp_attend_tile *t, const gp_tensor *k, const gp_tensor *v,
                                   int64_t b, int64_t h, int64_t first)
{
    for (int64_t j = 0; j < t->keys; j++) {
        const gp_real *key = gp_attend_at(k, b, h, first + j);
        const gp_real *value = gp_attend_at(v, b, h, first + j);
        for (int64_t d = 0; d < t->size; d++)
            t->k[d * GP_ATTEND_KEYS + j] = key[d * k->stride[3]];
        for (int64_t d = 0; d < t->width; d++)
            t->v[j * t->width + d] = value[d * v->stride[3]];
    }
    for (int64_t d = 0; d < t->size; d++) /* scores are made for a whole tile of keys */
        for (int64_t j = t->keys; j < GP_ATTEND_KEYS; j++)
            t->k[d * GP_ATTEND_KEYS + j] = 0;
}

/* score = q k^T, four steps of the sum at a time. */
GP_FUNCTION void gp_attend_scores(const gp_attend_tile *t, const gp_real *q, gp_real *score)
{
    int64_t d = 0;
    for (int j = 0; j < GP_ATTEND_KEYS; j++)
        score[j] = 0;
    for (; d + 4 <= t->size; d += 4) {
        const gp_real *k = t->k + d * GP_ATTEND_KEYS;
        for (int j = 0; j < GP_ATTEND_KEYS; j++)
            score[j] +=
                (q[d] * k[j] + q[d + 1] * k[j + GP_ATTEND_KEYS]) +
                (q[d + 2] * k[j + 2 * GP_ATTEND_KEYS] + q[d + 3] * k[j + 3 * GP_ATTEND_KEYS]);
    }
    for (; d < t->size; d++)
        for (int j = 0; j < GP_ATTEND_KEYS; j++)
            score[j] += q[d] * t->k[d * GP_ATTEND_KEYS + j];
}

/* A mask of reals is added; one of bools says which keys are seen. */
GP_FUNCTION void gp_attend_mask(const gp_tensor *mask, int64_t at, int64_t keys, gp_real *score)
{
    for (int64_t j = 0; j < keys; j++, at += mask->stride[3])
        if (mask->dtype == GP_F32)
            score[j] += ((const gp_real *)mask->data)[at];
        else if (!((const uint8_t *)mask->data)[at])
            score[j] = -(gp_real)INFINITY;
}

/* Takes the first n scores of row i into its running maximum, sum and output. */
GP_FUNCTION void gp_attend_update(gp_attend_tile *t, int64_t i, gp_real *score, int64_t n)
{
    gp_real *sum = t->sum + i * t->width;
    gp_real most = gp_row_max(score, n);
    if (most == -(gp_real)INFINITY)
        return;
    if (most > t->most[i]) {
        gp_real shrink = gp_exp(t->most[i] - most); /* 0 at first */
        t->most[i] = most;
        t->total[i] *= shrink;
        for (int64_t d = 0; d < t->width; d++)
            sum[d] *= shrink;
    }
    most = t->most[i];
    for (int64_t j = 0; j < n; j++)
        score[j] = gp_exp(score[j] - most);
    t->total[i] += gp_row_sum(score, n);
    int64_t j = 0;
    for (; j + 4 <= n; j += 4) {
        const gp_real *v = t->v + j * t->width;
        for (int64_t d = 0; d < t->width; d++)
            sum[d] += (score[j] * v[d] + score[j + 1] * v[d + t->width]) +
                      (score[j + 2] * v[d + 2 * t->width] + score[j + 3] * v[d + 3 * t->width]);
    }
    for (; j < n; j++)
        for (int64_t d = 0; d < t->width; d++)
            sum[d] += score[j] * t->v[j * t->width + d];
}

GP_FUNCTION void gp_attend_store(const gp_attend_tile *t, const gp_tensor *out,
                                 const gp_tensor *lse, int64_t b, int64_t h, int64_t first)
{
    for (int64_t i = 0; i < t->rows; i++) {
        gp_real *to =
            (gp_real *)out->data + ((b * out->dim[1] + first + i) * out->dim[2] + h) * t->width;
        gp_real scale = t->total[i] > 0 ? 1 / t->total[i] : t->total[i]; /* NaN stays */
        for (int64_t d = 0; d < t->width; d++)
            to[d] = t->sum[i * t->width + d] * scale;
        if (lse && lse->data)
            ((gp_real *)lse->data)[(b * lse->dim[1] + h) * lse->dim[2] + first + i] =
                t->most[i] + gp_log(t->total[i]);
    }
}

/* Queries first to first + t->rows of head h of sample b. */
GP_FUNCTION void gp_attend_run(const gp_call *c, gp_attend_tile *t, int64_t b, int64_t h,
                               int64_t first)
{
    const gp_attend_attr *a = c->attr;
    const gp_tensor *q = &c->in[0], *k = &c->in[1], *v = &c->in[2];
    const gp_tensor *mask = c->ins > 3 && c->in[3].data ? &c->in[3] : NULL;
    int64_t queries = q->dim[2], length = k->dim[2], kv = h / (q->dim[1] / k->dim[1]);
    int64_t seen = a->causal ? first + t->rows + length - queries : length;
    gp_attend_load_q(t, q, b, h, first, (gp_real)a->scale);
    for (int64_t at = 0; at < seen; at += GP_ATTEND_KEYS) {
        t->keys = seen - at < GP_ATTEND_KEYS ? seen - at : GP_ATTEND_KEYS;
        gp_attend_load_kv(t, k, v, b, kv, at);
        for (int64_t i = 0; i < t->rows; i++) {
            gp_real *score = t->score + i * GP_ATTEND_KEYS;
            int64_t row = first + i, n = t->keys;
            if (a->causal && row + length - queries + 1 - at < n)
                n = row + length - queries + 1 - at;
            if (n <= 0)
                continue;
            gp_attend_scores(t, t->q + i * t->size, score);
            if (mask)
                gp_attend_mask(mask,
                               b * mask->stride[0] + h * mask->stride[1] + row * mask->stride[2] +
                                   at * mask->stride[3],
                               n, score);
            gp_attend_update(t, i, score, n);
        }
    }
    gp_attend_store(t, &c->out[0], c->outs > 1 ? &c->out[1] : NULL, b, h, first);
}

GP_WORKSPACE(attend)
{
    return (size_t)c->run->threads * (size_t)gp_attend_reals(c->in[0].dim[3], c->in[2].dim[3]) *
           sizeof(gp_real);
}

GP_KERNEL(attend)
{
    const gp_tensor *q = &c->in[0];
    int64_t size = q->dim[3], width = c->in[2].dim[3], heads = q->dim[1], queries = q->dim[2];
    int64_t tiles = (queries + GP_ATTEND_ROWS - 1) / GP_ATTEND_ROWS;
    int64_t tasks = q->dim[0] * heads * tiles;
    GP_PARALLEL(c->run, tasks > 1)
    for (int64_t task = 0; task < tasks; task++) {
        gp_real *work = (gp_real *)c->work + gp_thread() * gp_attend_reals(size, width);
        gp_attend_tile tile = gp_attend_lay(work, size, width);
        int64_t first = task % tiles * GP_ATTEND_ROWS, head = task / tiles;
        tile.rows = queries - first < GP_ATTEND_ROWS ? queries - first : GP_ATTEND_ROWS;
        gp_attend_run(c, &tile, head / heads, head % heads, first);
    }
    return GP_OK;
}

#endif
