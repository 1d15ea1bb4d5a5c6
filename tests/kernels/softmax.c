/* softmax and log_softmax along any axis; losses of rows against class ids, and their gradients. */
#include "runtime/c/softmax.h"
#include "runtime/c/cross_entropy.h"

#include "check.h"

/* The largest of n numbers, and the sum of exp(x - largest); returns its logarithm. */
static double log_sum(const double *x, int64_t n, int64_t step, double *total)
{
    double high = x[0], sum = 0;
    for (int64_t i = 0; i < n; i++)
        high = x[i * step] > high ? x[i * step] : high;
    for (int64_t i = 0; i < n; i++)
        sum += exp(x[i * step] - high);
    total[0] = high;
    total[1] = sum;
    return high + log(sum);
}

static void note(int64_t n, int64_t rows)
{
    CROSS(GP_ROW_LANES, n);
    CROSS(GP_ROW_CHUNK, n);
    CROSS(GP_ROW_BLOCK, rows);
    CROSS_TOTAL(GP_STREAM_LEAST, rows * n);
    if (rows * n >= GP_STREAM_LEAST)
        CROSS(GP_STREAM_PIECE, n);
}

/* Numbers far enough from each other that their exponentials differ. */
static Array spread(int rank, const int64_t *dim)
{
    Array a = reals(rank, dim);
    for (int64_t i = 0; i < a.count; i++)
        a.at[i] *= 4;
    return a;
}

static void along(int64_t outer, int64_t n, int64_t inner)
{
    const gp_softmax_attr a = {1};
    Array x = spread(DIMS(outer, n, inner)), y = zeros(DIMS(outer, n, inner));
    Array logs = zeros(DIMS(outer, n, inner));
    for (int64_t i = 0; i < outer * inner; i++) {
        const int64_t first = i / inner * n * inner + i % inner;
        double total[2];
        const double sum = log_sum(x.at + first, n, inner, total);
        for (int64_t j = 0; j < n; j++) {
            logs.at[first + j * inner] = x.at[first + j * inner] - sum;
            y.at[first + j * inner] = exp(x.at[first + j * inner] - sum);
        }
    }
    if (inner == 1)
        note(n, outer);
    else
        CROSS(GP_SOFTMAX_LANES, inner);
    const Case t = {.kernel = gp_softmax,
                    .space = gp_softmax_workspace,
                    .half_in = 1,
                    .half_out = 1,
                    .attr = &a,
                    .ins = 1,
                    .outs = 1,
                    .in = {x},
                    .want = {y},
                    .over = {1},
                    .slack = 60};
    Case l = {.kernel = gp_log_softmax,
              .space = gp_log_softmax_workspace,
              .attr = &a,
              .ins = 1,
              .outs = 1,
              .in = {x},
              .want = {logs},
              .over = {1},
              .slack = 20};
    try_more(&t, "softmax %d x %d x %d", (int)outer, (int)n, (int)inner);
    try_more(&l, "log_softmax %d x %d x %d", (int)outer, (int)n, (int)inner);
    l.half_in = 1, l.over[0] = 0; /* the result is f32 */
    try(&l, "log_softmax of 16 bits %d x %d x %d", (int)outer, (int)n, (int)inner);
}

static void losses(int64_t rows, int64_t n, double smooth, int ignore, int32_t type)
{
    const gp_cross_entropy_rows_attr a = {smooth, ignore, -7};
    const gp_nll_rows_attr b = {ignore, -7};
    const gp_nll_rows_grad_attr d = {ignore, -7};
    Array x = spread(DIMS(rows, n)), ids = integers(DIMS(rows), 0, n - 1), dy = reals(DIMS(rows));
    Array loss = zeros(DIMS(rows)), saved = zeros(DIMS(rows, 2)), dx = zeros(DIMS(rows, n));
    Array nll = zeros(DIMS(rows)), dnll = zeros(DIMS(rows, n));
    for (int64_t i = 0; i < rows; i++) {
        const double *row = x.at + i * n, sum = log_sum(row, n, 1, saved.at + 2 * i);
        if (ignore && i % 3 == 1) {
            ids.at[i] = -7;
            continue;
        }
        const int64_t id = (int64_t)ids.at[i];
        nll.at[i] = -row[id];
        dnll.at[i * n + id] = -dy.at[i];
        for (int64_t j = 0; j < n; j++) {
            const double target = (j == id) * (1 - smooth) + smooth / (double)n;
            loss.at[i] -= target * (row[j] - sum);
            dx.at[i * n + j] = dy.at[i] * (exp(row[j] - sum) - target);
        }
    }
    note(n, rows);
    const Case t[] = {{.kernel = gp_cross_entropy_rows,
                       .space = gp_cross_entropy_rows_workspace,
                       .half_in = 1,
                       .attr = &a,
                       .ins = 2,
                       .outs = 2,
                       .in = {x, ids},
                       .want = {loss, saved},
                       .in_type = {0, type},
                       .slack = 100,
                       .terms = 4},
                      {.kernel = gp_nll_rows,
                       .half_in = 1,
                       .attr = &b,
                       .ins = 2,
                       .outs = 1,
                       .in = {x, ids},
                       .want = {nll},
                       .in_type = {0, type}},
                      {.kernel = gp_nll_rows_grad,
                       .half_out = 1,
                       .attr = &d,
                       .ins = 2,
                       .outs = 1,
                       .in = {ids, dy},
                       .want = {dnll},
                       .in_type = {type}},
                      {.kernel = gp_cross_entropy_rows_grad,
                       .space = gp_cross_entropy_rows_grad_workspace,
                       .half_in = 1,
                       .half_out = 1,
                       .attr = &a,
                       .ins = 4,
                       .outs = 1,
                       .in = {x, ids, saved, dy},
                       .want = {dx},
                       .in_type = {0, type},
                       .over = {1},
                       .slack = 100,
                       .terms = 1}};
    for (int i = 0; i < 4; i++)
        try_more(&t[i], "loss %d of %d x %d, smoothing %g, ignoring %d", i, (int)rows, (int)n,
                 smooth, ignore);
    forget();
}

int main(void)
{
    const int64_t block[] = {GP_ROW_LANES, GP_ROW_CHUNK, 2 * GP_ROW_CHUNK, GP_STREAM_PIECE};
    for (int64_t off = -1; off <= 1; off++) {
        for (int i = 0; i < 4; i++) {
            along(3, block[i] + off, 1);
            losses(4, block[i] + off, 0, 0, GP_I32);
            losses(4, block[i] + off, 0.1, 1, GP_I64);
        }
        along(GP_ROW_BLOCK + off, 9, 1);
        along(2 * GP_ROW_BLOCK + off, 70, 1);
        along(2, 5, GP_SOFTMAX_LANES + off);
        along(2, 3, 2 * GP_SOFTMAX_LANES + off);
        along(GP_STREAM_LEAST / (GP_STREAM_PIECE + off) + 1, GP_STREAM_PIECE + off, 1);
    }
    along(2, 1, 1);
    along(1, 1, 5);
    along(GP_STREAM_LEAST / 32, 32, 1); /* as many as are streamed, exactly */
    along(GP_STREAM_LEAST / GP_ROW_CHUNK + 2, GP_ROW_CHUNK, 1);
    if (LAYERS) { /* of GPT-2's vocabulary */
        along(2, 50257, 1);
        losses(3, 50257, 0, 0, GP_I32);
    }
    return finish();
}
