/* The gradient of attend, tile by tile: scores are recomputed from q and k, with the saved maximum
 * and sum of exponentials (Dao et al. 2022).
 *
 * With P the softmax and delta = sum(dout * out) of each row: dV = P' dout, dS = P (dout V' -
 * delta) scale, dQ = dS K, dK = dS' Q. Each of the three is a launch of its own whose blocks own a
 * tile of rows and stream the others past it, so no two blocks write to one element and every sum
 * has one order. The workspace holds delta. Operands: q, k, v, mask (or none), out, totals, dout;
 * outputs have layout [B, T, H, D]. */
#ifndef GP_ATTEND_GRAD_CUH
#define GP_ATTEND_GRAD_CUH

#include "attend.cuh"

typedef struct {
    gp_tensor q, k, v, mask, dout, to;
    const gp_real *totals, *delta; /* [B, H, T, 2], [B, H, T] */
    int64_t causal;
    gp_real scale;
    int32_t half; /* what is multiplied, where that has 16 bits; else GP_F32 */
} gp_attend_back;

enum gp_attend_wanted { GP_ATTEND_DQ, GP_ATTEND_DK, GP_ATTEND_DV };

/* delta of each query: one warp per query. */
static __global__ void gp_attend_deltas(gp_tensor out, gp_tensor dout, gp_real *delta)
{
    const int64_t tokens = out.dim[1], heads = out.dim[2], width = out.dim[3];
    for (GP_EACH_BLOCK(i, out.dim[0] * heads * tokens)) {
        const int64_t t = i % tokens, h = i / tokens % heads, b = i / tokens / heads;
        const int64_t at = ((b * tokens + t) * heads + h) * width;
        gp_real sum = 0;
        for (int64_t d = threadIdx.x; d < width; d += GP_WARP)
            sum += gp_reals_of(&out)[at + d] * gp_reals_of(&dout)[at + d];
        sum = gp_warp_join(sum, gp_add());
        if (threadIdx.x == 0)
            delta[i] = sum;
    }
}

/* The weight of score (query, key) in the gradient. */
template <gp_attend_wanted WANTED>
__device__ inline gp_real gp_attend_weight(const gp_attend_back &t, gp_real score, gp_real up,
                                           int64_t b, int64_t h, int64_t query, int64_t key)
{
    const int64_t queries = t.q.dim[2], keys = t.k.dim[2], row = (b * t.q.dim[1] + h) * queries;
    const int64_t seen = t.causal ? query + keys - queries + 1 : keys;
    if (query >= queries || key >= keys || key >= seen)
        return 0;
    const gp_real most = t.totals[2 * (row + query)], total = t.totals[2 * (row + query) + 1];
    if (total == 0) /* attends to no key at all */
        return 0;
    const gp_real seen_as = gp_attend_masked(score, t.mask, b, h, query, key, t.scale);
    const gp_real p = gp_exp(seen_as - most) / total;
    return WANTED == GP_ATTEND_DV ? p : p * (up - t.delta[row + query]) * t.scale;
}

/* One tile of rows from `first` against others from `at`, of query head h. */
template <gp_attend_wanted WANTED, int PARTS>
__device__ inline void gp_attend_back_tile(const gp_attend_back &t,
                                           gp_real (&sum)[GP_ATTEND_MINE][PARTS * GP_ATTEND_SUMS],
                                           int64_t b, int64_t h, int64_t first, int64_t at,
                                           int64_t column)
{
    GP_SHARED(gp_real, weight, [GP_ATTEND_ROWS][GP_ATTEND_OTHERS + 1]);
    enum { ROWS = GP_ATTEND_ROWS, OTHERS = GP_ATTEND_OTHERS };
    const int by_query = WANTED == GP_ATTEND_DQ;
    const int64_t kv = h / (t.q.dim[1] / t.k.dim[1]);
    const gp_rows q = gp_head_rows(t.q, b, h, by_query ? first : at, by_query ? ROWS : OTHERS);
    const gp_rows up = gp_token_rows(t.dout, b, h, by_query ? first : at, by_query ? ROWS : OTHERS);
    const gp_rows k = gp_head_rows(t.k, b, kv, by_query ? at : first, by_query ? OTHERS : ROWS);
    const gp_rows v = gp_head_rows(t.v, b, kv, by_query ? at : first, by_query ? OTHERS : ROWS);
    gp_scores score, slope;
    gp_attend_scores(score, by_query ? q : k, by_query ? k : q, t.q.dim[3], t.half);
    if (WANTED != GP_ATTEND_DV)
        gp_attend_scores(slope, by_query ? up : v, by_query ? v : up, t.v.dim[3], t.half);
    GP_UNROLL
    for (int i = 0; i < GP_ATTEND_MINE; i++)
        GP_UNROLL
    for (int j = 0; j < GP_ATTEND_SCORES; j++) {
        const int64_t row = first + gp_attend_row(i), other = at + gp_attend_column(j);
        const gp_real own = gp_attend_weight<WANTED>(
            t, score[i][j], WANTED == GP_ATTEND_DV ? (gp_real)0 : slope[i][j], b, h,
            by_query ? row : other, by_query ? other : row);
        weight[gp_attend_row(i)][gp_attend_column(j)] = gp_round_to(own, t.half);
    }
    gp_attend_add<PARTS>(sum, weight,
                         by_query                 ? k
                         : WANTED == GP_ATTEND_DK ? q
                                                  : up,
                         column, t.to.dim[3], t.half);
}

template <int PARTS>
__device__ inline void gp_attend_back_store(
    const gp_tensor &to, const gp_real (&sum)[GP_ATTEND_MINE][PARTS * GP_ATTEND_SUMS], int64_t b,
    int64_t h, int64_t first, int64_t column)
{
    GP_UNROLL
    for (int i = 0; i < GP_ATTEND_MINE; i++) {
        const int64_t row = first + gp_attend_row(i);
        if (row >= to.dim[1])
            break;
        const gp_reals at = gp_token_rows(to, b, h, row, 1).at;
        GP_UNROLL
        for (int j = 0; j < PARTS * GP_ATTEND_SUMS; j++)
            if (column + gp_attend_column(j) < to.dim[3])
                at.put(column + gp_attend_column(j), sum[i][j]);
    }
}

/* One block per tile of queries or, for a key head, of keys: these are processed with the queries
 * of all heads that read them. */
template <gp_attend_wanted WANTED, int PARTS>
static __global__ void __launch_bounds__(GP_ATTEND_THREADS, 2)
    gp_attend_back_tiles(const gp_attend_back t)
{
    const int by_query = WANTED == GP_ATTEND_DQ;
    const int64_t tokens = t.to.dim[1], heads = t.to.dim[2], keys = t.k.dim[2];
    const int64_t ahead = keys - t.q.dim[2], each = by_query ? 1 : t.q.dim[1] / heads;
    const int64_t tiles = gp_ceil_div(tokens, GP_ATTEND_ROWS);
    const int64_t chunks = gp_ceil_div(t.to.dim[3], PARTS * GP_ATTEND_WIDTH);
    for (GP_EACH_BLOCK(task, t.to.dim[0] * heads * tiles * chunks)) {
        const int64_t column = task % chunks * PARTS * GP_ATTEND_WIDTH;
        const int64_t first = task / chunks % tiles * GP_ATTEND_ROWS;
        const int64_t h = task / chunks / tiles % heads, b = task / chunks / tiles / heads;
        const int64_t last = gp_least(first + GP_ATTEND_ROWS, tokens);
        /* causal: the keys up to the last query's; the first query that attends to one of the
         * keys */
        const int64_t end = !by_query ? t.q.dim[2] : t.causal ? last + ahead : keys;
        const int64_t begin = !by_query && t.causal && first > ahead ? first - ahead : 0;
        gp_real sum[GP_ATTEND_MINE][PARTS * GP_ATTEND_SUMS] = {{0}};
        for (int64_t head = h * each; head < (h + 1) * each; head++)
            for (int64_t at = begin; at < end; at += GP_ATTEND_OTHERS)
                gp_attend_back_tile<WANTED, PARTS>(t, sum, b, head, first, at, column);
        gp_attend_back_store<PARTS>(t.to, sum, b, h, first, column);
    }
}

template <gp_attend_wanted WANTED>
static int gp_attend_back_run(const gp_call *c, gp_attend_back t, const gp_tensor *to)
{
    if (!to->data)
        return GP_OK;
    t.to = *to;
    const int64_t tiles = to->dim[0] * to->dim[2] * gp_ceil_div(to->dim[1], GP_ATTEND_ROWS);
    const int64_t parts = to->dim[3] > GP_ATTEND_WIDTH ? 2 : 1;
    const dim3 grid = gp_blocks(tiles * gp_ceil_div(to->dim[3], parts * GP_ATTEND_WIDTH), 1);
    if (parts == 1)
        GP_LAUNCH(c, (gp_attend_back_tiles<WANTED, 1>), grid, GP_ATTEND_THREADS, 0, t);
    else
        GP_LAUNCH(c, (gp_attend_back_tiles<WANTED, 2>), grid, GP_ATTEND_THREADS, 0, t);
    return GP_OK;
}

GP_KERNEL(attend_grad)
{
    const gp_attend_grad_attr *a = (const gp_attend_grad_attr *)c->attr;
    gp_attend_back t = {};
    t.q = c->in[0];
    t.k = c->in[1];
    t.v = c->in[2];
    t.mask = c->in[3];
    t.totals = (const gp_real *)c->in[5].data;
    t.dout = c->in[6];
    t.delta = (const gp_real *)c->work;
    t.causal = a->causal;
    t.scale = (gp_real)a->scale;
    t.half = gp_half_of(c);
    const int64_t rows = gp_span(&t.q, 0, 3);
    GP_LAUNCH(c, gp_attend_deltas, gp_blocks(rows, 1), GP_WARP, 0, c->in[4], t.dout,
              (gp_real *)c->work);
    int status = gp_attend_back_run<GP_ATTEND_DQ>(c, t, &c->out[0]);
    if (status == GP_OK)
        status = gp_attend_back_run<GP_ATTEND_DK>(c, t, &c->out[1]);
    if (status == GP_OK)
        status = gp_attend_back_run<GP_ATTEND_DV>(c, t, &c->out[2]);
    return status;
}

GP_TAKES_HALF(attend_grad)

#endif
