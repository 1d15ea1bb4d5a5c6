/* attend: softmax(q k^T * scale + mask) v, with at most one tile of the scores in memory.
 *
 * Keys are streamed past a tile of queries with a running maximum and a running sum (Milakov and
 * Gimelshein 2018, Dao et al. 2022), so workspace depends on the head size alone. Operands have any
 * strides: heads may be slices of one projection. The output has layout [B, T, H, D], so that the
 * heads of a token are contiguous for the projection that follows; output 1, [B, H, T, 2], is the
 * maximum score and the sum of exp(score - maximum), saved for the backward pass: kept as two
 * numbers, since log-sum-exp would lose the digits of the sum beside a large score.
 *
 * Causal: query i attends to keys up to i + S - T, so the last query attends to all. A query
 * without any key gives zeros. */
#ifndef GP_ATTEND_H
#define GP_ATTEND_H

#include "gemm_half.h"
#include "row.h"
#include "settings.h"

enum {
    GP_ATTEND_ROWS = GP_BLOCK(96, 10),   /* queries of a tile */
    GP_ATTEND_KEYS = GP_BLOCK(64, GP_NR) /* keys of a tile: a multiple of the panel width */
};

/* A tile of queries and its running state. */
typedef struct {
    int64_t rows, keys;  /* of the tile; keys changes from step to step */
    int64_t size, width; /* head size of q and k; of v */
    gp_real *score;      /* [rows][GP_ATTEND_KEYS] */
    gp_real *sum;        /* [rows][width]: sum of exp(score - most) * v */
    gp_real *most;       /* [rows]: running maximum of the scores */
    gp_real *total;      /* [rows]: sum of exp(score - most) */
    gp_real *k;          /* packed, [size][keys] */
    gp_real *work;       /* workspace of the products */
#ifndef GP_NO_HALF
    int half; /* what is multiplied, where that has 16 bits */
#endif
} gp_attend_tile;

/* Workspace of a product with a tile on one side. */
GP_FUNCTION int64_t gp_attend_work(int64_t size, int64_t width)
{
    const int64_t depth = size > GP_ATTEND_ROWS ? size : GP_ATTEND_ROWS;
    return gp_gemm_work(size > width ? size : width, depth);
}

GP_FUNCTION int64_t gp_attend_reals(int64_t size, int64_t width)
{
    const int64_t n = (int64_t)GP_ATTEND_ROWS * (GP_ATTEND_KEYS + width + 2) +
                      (int64_t)GP_ATTEND_KEYS * size + gp_attend_work(size, width);
    return gp_round_up(n, 16);
}

GP_FUNCTION gp_attend_tile gp_attend_lay(gp_real *work, int64_t size, int64_t width)
{
    gp_attend_tile t = {.size = size, .width = width};
    t.score = work;
    t.k = t.score + GP_ATTEND_ROWS * GP_ATTEND_KEYS;
    t.most = t.k + size * GP_ATTEND_KEYS;
    t.total = t.most + GP_ATTEND_ROWS;
    t.sum = t.total + GP_ATTEND_ROWS;
    t.work = t.sum + width * GP_ATTEND_ROWS;
    return t;
}

/* Head (b, h) of a [B, H, T, D] operand from row `row` on: [T, D], of whatever type it is. */
GP_FUNCTION gp_matrix gp_attend_head(const gp_tensor *t, int64_t b, int64_t h, int64_t row)
{
    const int64_t at = b * t->stride[0] + h * t->stride[1] + row * t->stride[2];
    return (gp_matrix){gp_element(t, at), t->stride[2], t->stride[3]};
}

/* The same for a contiguous [B, T, H, D] operand. */
GP_FUNCTION gp_matrix gp_attend_token(const gp_tensor *t, int64_t b, int64_t h, int64_t row)
{
    const int64_t at = ((b * t->dim[1] + row) * t->dim[2] + h) * t->dim[3];
    return (gp_matrix){gp_element(t, at), t->dim[2] * t->dim[3], 1};
}

/* A real mask is added; a bool mask says which keys are attended to. The scores are those of row
 * `row` of head (b, h), against the keys from `key` on. */
GP_FUNCTION void gp_attend_mask(const gp_tensor *mask, int64_t b, int64_t h, int64_t row,
                                int64_t key, int64_t keys, gp_real *score)
{
    const int64_t *stride = mask->stride;
    int64_t at = b * stride[0] + h * stride[1] + row * stride[2] + key * stride[3];
    for (int64_t j = 0; j < keys; j++, at += stride[3])
        if (mask->dtype == GP_F32)
            score[j] += ((const gp_real *)mask->data)[at];
        else if (!((const uint8_t *)mask->data)[at])
            score[j] = -(gp_real)INFINITY;
}

/* Updates the running maximum and sum of row i with its first n scores, which become weights of the
 * values; the remaining keys get weight 0. */
GP_FUNCTION void gp_attend_update(gp_attend_tile *t, int64_t i, gp_real *score, int64_t n)
{
    gp_real *sum = t->sum + i * t->width;
    gp_real most = n > 0 ? gp_row_max(score, n) : -(gp_real)INFINITY;
    if (most == -(gp_real)INFINITY) {
        memset(score, 0, (size_t)t->keys * sizeof *score);
        return;
    }
    if (most > t->most[i]) {
        gp_real shrink = gp_exp(t->most[i] - most); /* 0 the first time */
        t->most[i] = most;
        t->total[i] *= shrink;
        for (int64_t d = 0; d < t->width; d++)
            sum[d] *= shrink;
    }
    most = t->most[i];
    const gp_real low = gp_exp_low(most);
    for (int64_t j = 0; j < n; j++)
        score[j] = gp_exp_below(score[j] - most, low);
    for (int64_t j = n; j < t->keys; j++)
        score[j] = 0;
    t->total[i] += gp_row_sum(score, n);
}

/* A row of sums times a number, as 16 bits. */
GP_FUNCTION void gp_attend_round(void *to, gp_real *sum, int64_t n, gp_real scale, int32_t dtype)
{
    for (int64_t d = 0; d < n; d++)
        sum[d] *= scale;
    gp_set_row(to, sum, n, dtype);
}

GP_FUNCTION void gp_attend_store(const gp_attend_tile *t, const gp_tensor *out,
                                 const gp_tensor *totals, int64_t b, int64_t h, int64_t first)
{
    for (int64_t i = 0; i < t->rows; i++) {
        gp_real *to = gp_attend_token(out, b, h, first + i).at;
        gp_real scale = t->total[i] > 0 ? 1 / t->total[i] : t->total[i]; /* NaN stays */
        if (GP_WAY(attend_half, t->half != GP_F32))
            gp_attend_round(to, t->sum + i * t->width, t->width, scale, out->dtype);
        else
            for (int64_t d = 0; d < t->width; d++)
                to[d] = t->sum[i * t->width + d] * scale;
        if (totals && totals->data) {
            gp_real *saved = (gp_real *)totals->data;
            saved += 2 * ((b * totals->dim[1] + h) * totals->dim[2] + first + i);
            saved[0] = t->most[i];
            saved[1] = t->total[i];
        }
    }
}

#ifdef GP_NO_HALF
/* Packs n rows of head (b, h) of k or v as columns. */
#define gp_attend_pack(to, t, b, h, row, n, half) \
    gp_pack_b(to, gp_transposed(gp_attend_head(t, b, h, row)), (t)->dim[3], n)

/* C = rows of q or dout times packed columns. */
#define gp_attend_times(c, rows, type, columns, m, n, k, work, half)         \
    gp_block_product((gp_matrix){c, GP_ATTEND_KEYS, 1}, rows, m, n, k, work, \
                     (gp_columns){.packed = columns}, 0, (gp_ending){0})
#else
/* Packs n rows of head (b, h) of k or v as columns. */
GP_FUNCTION void gp_attend_pack(gp_real *to, const gp_tensor *t, int64_t b, int64_t h, int64_t row,
                                int64_t n, int half)
{
    const gp_matrix columns = gp_transposed(gp_attend_head(t, b, h, row));
    if (half != GP_F32)
        gp_half_pack_columns(to, gp_reals_of(columns, t->dtype), t->dim[3], n, half);
    else
        gp_pack_b(to, columns, t->dim[3], n);
}

/* C = rows of q or dout, of this type, times packed columns. Scores and sums are f32; weights are
 * rounded where they are multiplied with the values. */
GP_FUNCTION void gp_attend_times(gp_real *c, gp_matrix rows, int32_t type, const gp_real *columns,
                                 int64_t m, int64_t n, int64_t k, gp_real *work, int half)
{
    const gp_matrix to = {c, GP_ATTEND_KEYS, 1};
    if (half != GP_F32)
        gp_half_columns(to, gp_reals_of(rows, type), columns, m, n, k, half, work);
    else
        gp_block_product(to, rows, m, n, k, work, (gp_columns){.packed = columns}, 0,
                         (gp_ending){0});
}
#endif

/* Queries first to first + t->rows of head h of sample b. */
GP_FUNCTION void gp_attend_run(const gp_call *c, gp_attend_tile *t, int64_t b, int64_t h,
                               int64_t first)
{
    const gp_attend_attr *a = c->attr;
    const gp_tensor *q = &c->in[0], *k = &c->in[1], *v = &c->in[2];
    const int64_t length = k->dim[2], kv = h / (q->dim[1] / k->dim[1]);
    const int64_t ahead = length - q->dim[2]; /* causal: query i attends to keys up to i + ahead */
    const int64_t seen = a->causal ? first + t->rows + ahead : length;
    for (int64_t i = 0; i < t->rows; i++) {
        t->most[i] = -(gp_real)INFINITY;
        t->total[i] = 0;
    }
    memset(t->sum, 0, (size_t)(t->rows * t->width) * sizeof *t->sum);
    for (int64_t at = 0; at < seen; at += GP_ATTEND_KEYS) {
        const int64_t skip = a->causal && at > first + ahead ? at - first - ahead : 0;
        t->keys = gp_least(seen - at, GP_ATTEND_KEYS);
        gp_attend_pack(t->k, k, b, kv, at, t->keys, t->half);
        gp_attend_times(t->score + skip * GP_ATTEND_KEYS, gp_attend_head(q, b, h, first + skip),
                        q->dtype, t->k, t->rows - skip, t->keys, t->size, t->work, t->half);
        for (int64_t i = skip; i < t->rows; i++) {
            gp_real *score = t->score + i * GP_ATTEND_KEYS;
            const int64_t row = first + i;
            const int64_t n = a->causal ? gp_least(t->keys, row + ahead + 1 - at) : t->keys;
            for (int64_t j = 0; j < n; j++)
                score[j] *= (gp_real)a->scale;
            if (GP_WAY(attend_masks, c->ins > 3 && c->in[3].data))
                gp_attend_mask(&c->in[3], b, h, row, at, n, score);
            gp_attend_update(t, i, score, n);
        }
        const gp_matrix sum = {t->sum + skip * t->width, t->width, 1};
        const gp_matrix p = {t->score + skip * GP_ATTEND_KEYS, GP_ATTEND_KEYS, 1};
        const gp_matrix values = gp_attend_head(v, b, kv, at);
        if (GP_WAY(attend_half, t->half != GP_F32))
            gp_half_gemm(sum, gp_reals_of(p, GP_F32), gp_reals_of(values, v->dtype), t->rows - skip,
                         t->width, t->keys, t->half, 1, t->work, (gp_ending){0});
        else
            gp_gemm(sum, p, values, t->rows - skip, t->width, t->keys, 1, t->work, (gp_ending){0});
    }
    gp_attend_store(t, &c->out[0], c->outs > 1 ? &c->out[1] : NULL, b, h, first);
}

GP_WORKSPACE(attend)
{
    return (size_t)c->run->threads * (size_t)gp_attend_reals(c->in[0].dim[3], c->in[2].dim[3]) *
           sizeof(gp_real);
}

/* Rows of heads that are contiguous, as they are after a projection. */
GP_FUNCTION void gp_attend_strides(const gp_call *c, gp_ways *ways)
{
    const gp_matrix rows = {NULL, 2, 1};
    int known = !gp_is_half(c);
    for (int i = 0; i < 3; i++)
        known &= c->in[i].stride[3] == 1;
    gp_gemm_ways(ways, known ? &rows : NULL, &rows, &rows, 1);
}

GP_WAYS(attend)
{
    gp_attend_strides(c, ways);
    gp_way(ways, "attend_half", gp_is_half(c));
    gp_way(ways, "attend_masks", c->ins > 3 && c->in[3].data);
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
        if (GP_WAY(attend_half, gp_is_half(c)))
            tile.half = gp_half_of(c);
        int64_t first = task % tiles * GP_ATTEND_ROWS, head = task / tiles;
        tile.rows = queries - first < GP_ATTEND_ROWS ? queries - first : GP_ATTEND_ROWS;
        gp_attend_run(c, &tile, head / heads, head % heads, first);
    }
    return GP_OK;
}

#endif
