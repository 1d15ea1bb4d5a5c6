/* attend: softmax(q k^T * scale + mask) v, with at most one tile of the scores in memory.
 *
 * Keys are streamed past a tile of queries with a running maximum and a running sum (Milakov and
 * Gimelshein 2018, Dao et al. 2022), so there is no workspace but shared memory. Operands have any
 * strides: heads may be slices of one projection. The output has layout [B, T, H, D]; output 1, [B,
 * H, T, 2], is the maximum score and the sum of exp(score - maximum), saved for the backward pass.
 *
 * Causal: query i attends to keys up to i + S - T, so the last query attends to all. A query
 * without any key gives zeros.
 *
 * A tile has 64 rows of its own and processes 32 others at a time. A thread has 4 rows, which it
 * shares with 7 others of its warp: each has every eighth of the 32 scores, and of the sums. */
#ifndef GP_ATTEND_CUH
#define GP_ATTEND_CUH

#include "../c/math.h"
#include "base.cuh"

enum {
    GP_ATTEND_ROWS = 64,
    GP_ATTEND_OTHERS = 32,
    GP_ATTEND_DEPTH = 16, /* depth of a step, in both products */
    GP_ATTEND_THREADS = 128,
    GP_ATTEND_MINE = 4,   /* rows of a thread */
    GP_ATTEND_ACROSS = 8, /* threads of a row */
    GP_ATTEND_WIDTH = 64, /* columns of the sums, or twice as many */
    GP_ATTEND_SCORES = GP_ATTEND_OTHERS / GP_ATTEND_ACROSS,
    GP_ATTEND_SUMS = GP_ATTEND_WIDTH / GP_ATTEND_ACROSS
};

typedef gp_real gp_scores[GP_ATTEND_MINE][GP_ATTEND_SCORES];
typedef gp_real gp_weights_tile[GP_ATTEND_ROWS][GP_ATTEND_OTHERS + 1];

/* `count` rows of a head: element (i, d) is at[i * row + d * col]. */
typedef struct {
    gp_reals at;
    int64_t row, col, count;
} gp_rows;

/* Rows of head (b, h) of a [B, H, T, D] operand, from row `first`, at most `most`. */
GP_DEVICE gp_rows gp_head_rows(const gp_tensor &t, int64_t b, int64_t h, int64_t first,
                               int64_t most)
{
    const gp_rows r = {
        gp_reals_from(gp_reals_of(&t), b * t.stride[0] + h * t.stride[1] + first * t.stride[2]),
        t.stride[2], t.stride[3], gp_least(t.dim[2] - first, most)};
    return r;
}

/* The same for a contiguous [B, T, H, D] operand. */
GP_DEVICE gp_rows gp_token_rows(const gp_tensor &t, int64_t b, int64_t h, int64_t first,
                                int64_t most)
{
    const gp_rows r = {
        gp_reals_from(gp_reals_of(&t), ((b * t.dim[1] + first) * t.dim[2] + h) * t.dim[3]),
        t.dim[2] * t.dim[3], 1, gp_least(t.dim[1] - first, most)};
    return r;
}

GP_DEVICE unsigned gp_attend_row(int i)
{
    return threadIdx.x / GP_ATTEND_ACROSS * GP_ATTEND_MINE + (unsigned)i;
}

GP_DEVICE unsigned gp_attend_column(int j)
{
    return threadIdx.x % GP_ATTEND_ACROSS + (unsigned)j * GP_ATTEND_ACROSS;
}

/* score = own rows times the others' transposed; called by all threads of the block. */
GP_DEVICE void gp_attend_scores(gp_scores &score, const gp_rows &own, const gp_rows &others,
                                int64_t size, int32_t half)
{
    GP_SHARED(gp_real, mine, [GP_ATTEND_ROWS][GP_ATTEND_DEPTH + 1]);
    GP_SHARED(gp_real, theirs, [GP_ATTEND_OTHERS][GP_ATTEND_DEPTH + 1]);
    const unsigned d = threadIdx.x % GP_ATTEND_DEPTH, step = GP_ATTEND_THREADS / GP_ATTEND_DEPTH;
    GP_UNROLL
    for (int i = 0; i < GP_ATTEND_MINE; i++)
        GP_UNROLL
    for (int j = 0; j < GP_ATTEND_SCORES; j++)
        score[i][j] = 0;
    for (int64_t at = 0; at < size; at += GP_ATTEND_DEPTH) {
        const int64_t column = (at + d) * own.col, other = (at + d) * others.col;
        for (unsigned i = threadIdx.x / GP_ATTEND_DEPTH; i < GP_ATTEND_ROWS; i += step)
            mine[i][d] = at + d < size && i < own.count
                             ? gp_factor(own.at, i * own.row + column, half)
                             : (gp_real)0;
        for (unsigned i = threadIdx.x / GP_ATTEND_DEPTH; i < GP_ATTEND_OTHERS; i += step)
            theirs[i][d] = at + d < size && i < others.count
                               ? gp_factor(others.at, i * others.row + other, half)
                               : (gp_real)0;
        __syncthreads(); /* the step is loaded */
        GP_UNROLL
        for (int k = 0; k < GP_ATTEND_DEPTH; k++)
            GP_UNROLL
        for (int i = 0; i < GP_ATTEND_MINE; i++)
            GP_UNROLL
        for (int j = 0; j < GP_ATTEND_SCORES; j++)
            score[i][j] += mine[gp_attend_row(i)][k] * theirs[gp_attend_column(j)][k];
        __syncthreads(); /* the step was read */
    }
}

/* sum += weight (written by the threads of the row) times columns `first` and up of the others. */
template <int PARTS>
__device__ inline void gp_attend_add(gp_real (&sum)[GP_ATTEND_MINE][PARTS * GP_ATTEND_SUMS],
                                     const gp_weights_tile &weight, const gp_rows &others,
                                     int64_t first, int64_t width, int32_t half)
{
    enum { COLUMNS = PARTS * GP_ATTEND_WIDTH, STEP = GP_ATTEND_THREADS / COLUMNS };
    GP_SHARED(gp_real, theirs, [GP_ATTEND_DEPTH][PARTS * GP_ATTEND_WIDTH]);
    const unsigned d = threadIdx.x % COLUMNS;
    for (unsigned at = 0; at < GP_ATTEND_OTHERS; at += GP_ATTEND_DEPTH) {
        for (unsigned k = threadIdx.x / COLUMNS; k < GP_ATTEND_DEPTH; k += STEP)
            theirs[k][d] =
                first + d < width && at + k < others.count
                    ? gp_factor(others.at, (at + k) * others.row + (first + d) * others.col, half)
                    : (gp_real)0;
        __syncthreads(); /* the step and the weights are loaded */
        for (unsigned k = 0; k < GP_ATTEND_DEPTH; k++)
            GP_UNROLL
        for (int j = 0; j < PARTS * GP_ATTEND_SUMS; j++)
            GP_UNROLL
        for (int i = 0; i < GP_ATTEND_MINE; i++)
            sum[i][j] += weight[gp_attend_row(i)][at + k] * theirs[k][gp_attend_column(j)];
        __syncthreads(); /* they were read */
    }
}

/* A score with its scale and mask, -inf where the query does not attend to the key. A real mask is
 * added; a bool mask says which keys are attended to. */
GP_DEVICE gp_real gp_attend_masked(gp_real score, const gp_tensor &mask, int64_t b, int64_t h,
                                   int64_t query, int64_t key, gp_real scale)
{
    score *= scale;
    if (!mask.data)
        return score;
    const int64_t at =
        b * mask.stride[0] + h * mask.stride[1] + query * mask.stride[2] + key * mask.stride[3];
    if (mask.dtype == GP_F32)
        return score + ((const gp_real *)mask.data)[at];
    return ((const uint8_t *)mask.data)[at] ? score : -(gp_real)INFINITY;
}

/* Over the threads that share a row. */
template <class Join> __device__ inline gp_real gp_attend_join(gp_real x, Join join)
{
    for (int step = GP_ATTEND_ACROSS / 2; step > 0; step /= 2)
        x = join(x, __shfl_xor_sync(GP_ALL_LANES, x, step));
    return x;
}

typedef struct {
    gp_tensor q, k, v, mask, out, totals; /* data NULL: not given, not wanted */
    int64_t causal;
    gp_real scale;
    int32_t half; /* what is multiplied, where that has 16 bits; else GP_F32 */
} gp_attend_task;

/* The running state of a thread's rows. */
template <int PARTS> struct gp_attend_state {
    gp_real most[GP_ATTEND_MINE];                        /* maximum score */
    gp_real total[GP_ATTEND_MINE];                       /* sum of exp(score - most) */
    gp_real sum[GP_ATTEND_MINE][PARTS * GP_ATTEND_SUMS]; /* weighted sum of v */

    __device__ void begin()
    {
        GP_UNROLL
        for (int i = 0; i < GP_ATTEND_MINE; i++) {
            most[i] = -(gp_real)INFINITY;
            total[i] = 0;
            GP_UNROLL
            for (int j = 0; j < PARTS * GP_ATTEND_SUMS; j++)
                sum[i][j] = 0;
        }
    }

    /* Updates the state with the scores of row i, which become weights of the values. */
    __device__ void take(int i, gp_real (&score)[GP_ATTEND_SCORES], gp_weights_tile &weight,
                         int32_t half)
    {
        gp_real best = score[0], part = 0;
        GP_UNROLL
        for (int j = 1; j < GP_ATTEND_SCORES; j++)
            best = score[j] > best ? score[j] : best;
        best = gp_attend_join(best, gp_larger());
        if (best > most[i]) {
            const gp_real shrink = gp_exp(most[i] - best); /* 0 the first time */
            most[i] = best;
            total[i] *= shrink;
            GP_UNROLL
            for (int j = 0; j < PARTS * GP_ATTEND_SUMS; j++)
                sum[i][j] *= shrink;
        }
        GP_UNROLL
        for (int j = 0; j < GP_ATTEND_SCORES; j++) {
            const gp_real w =
                score[j] == -(gp_real)INFINITY ? (gp_real)0 : gp_exp(score[j] - most[i]);
            weight[gp_attend_row(i)][gp_attend_column(j)] = gp_round_to(w, half);
            part += w;
        }
        total[i] += gp_attend_join(part, gp_add());
    }

    __device__ void store(const gp_attend_task &t, int64_t b, int64_t h, int64_t first,
                          int64_t column) const
    {
        GP_UNROLL
        for (int i = 0; i < GP_ATTEND_MINE; i++) {
            const int64_t row = first + gp_attend_row(i);
            if (row >= t.q.dim[2])
                break;
            const gp_reals to = gp_token_rows(t.out, b, h, row, 1).at;
            const gp_real scale = total[i] > 0 ? 1 / total[i] : total[i]; /* a NaN stays */
            GP_UNROLL
            for (int j = 0; j < PARTS * GP_ATTEND_SUMS; j++)
                if (column + gp_attend_column(j) < t.v.dim[3])
                    to.put(column + gp_attend_column(j), sum[i][j] * scale);
            if (t.totals.data && column == 0 && threadIdx.x % GP_ATTEND_ACROSS == 0) {
                gp_real *saved = (gp_real *)t.totals.data;
                saved += 2 * ((b * t.q.dim[1] + h) * t.q.dim[2] + row);
                saved[0] = most[i];
                saved[1] = total[i];
            }
        }
    }
};

/* One block per tile of queries and PARTS * GP_ATTEND_WIDTH columns of the values. */
template <int PARTS>
static __global__ void __launch_bounds__(GP_ATTEND_THREADS, 2)
    gp_attend_tiles(const gp_attend_task t)
{
    GP_SHARED(gp_real, weight, [GP_ATTEND_ROWS][GP_ATTEND_OTHERS + 1]);
    const int64_t heads = t.q.dim[1], keys = t.k.dim[2], ahead = keys - t.q.dim[2];
    const int64_t tiles = gp_ceil_div(t.q.dim[2], GP_ATTEND_ROWS);
    const int64_t chunks = gp_ceil_div(t.v.dim[3], PARTS * GP_ATTEND_WIDTH);
    for (GP_EACH_BLOCK(task, t.q.dim[0] * heads * tiles * chunks)) {
        const int64_t column = task % chunks * PARTS * GP_ATTEND_WIDTH;
        const int64_t first = task / chunks % tiles * GP_ATTEND_ROWS;
        const int64_t h = task / chunks / tiles % heads, b = task / chunks / tiles / heads;
        const int64_t kv = h / (heads / t.k.dim[1]);
        const gp_rows q = gp_head_rows(t.q, b, h, first, GP_ATTEND_ROWS);
        const int64_t seen = t.causal ? first + q.count + ahead : keys;
        gp_attend_state<PARTS> state;
        state.begin();
        for (int64_t at = 0; at < seen; at += GP_ATTEND_OTHERS) {
            gp_scores score;
            gp_attend_scores(score, q, gp_head_rows(t.k, b, kv, at, GP_ATTEND_OTHERS), t.q.dim[3],
                             t.half);
            GP_UNROLL
            for (int i = 0; i < GP_ATTEND_MINE; i++) {
                const int64_t row = first + gp_attend_row(i);
                const int64_t end = t.causal ? row + ahead + 1 : keys;
                GP_UNROLL
                for (int j = 0; j < GP_ATTEND_SCORES; j++) {
                    const int64_t key = at + gp_attend_column(j);
                    score[i][j] =
                        row < t.q.dim[2] && key < end
                            ? gp_attend_masked(score[i][j], t.mask, b, h, row, key, t.scale)
                            : -(gp_real)INFINITY;
                }
                state.take(i, score[i], weight, t.half);
            }
            gp_attend_add<PARTS>(state.sum, weight, gp_head_rows(t.v, b, kv, at, GP_ATTEND_OTHERS),
                                 column, t.v.dim[3], t.half);
        }
        state.store(t, b, h, first, column);
    }
}

GP_KERNEL(attend)
{
    const gp_attend_attr *a = (const gp_attend_attr *)c->attr;
    gp_attend_task t = {};
    t.q = c->in[0];
    t.k = c->in[1];
    t.v = c->in[2];
    if (c->ins > 3)
        t.mask = c->in[3];
    t.out = c->out[0];
    if (c->outs > 1)
        t.totals = c->out[1];
    t.causal = a->causal;
    t.scale = (gp_real)a->scale;
    t.half = gp_half_of(c);
    const int64_t tiles = t.q.dim[0] * t.q.dim[1] * gp_ceil_div(t.q.dim[2], GP_ATTEND_ROWS);
    const int64_t parts = t.v.dim[3] > GP_ATTEND_WIDTH ? 2 : 1;
    const dim3 grid = gp_blocks(tiles * gp_ceil_div(t.v.dim[3], parts * GP_ATTEND_WIDTH), 1);
    if (parts == 1)
        GP_LAUNCH(c, gp_attend_tiles<1>, grid, GP_ATTEND_THREADS, 0, t);
    else
        GP_LAUNCH(c, gp_attend_tiles<2>, grid, GP_ATTEND_THREADS, 0, t);
    return GP_OK;
}

GP_TAKES_HALF(attend)

#endif
