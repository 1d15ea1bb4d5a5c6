/* Cross entropy of a product in chunks of rows, and its gradients. */
#include "runtime/c/linear_cross_entropy.h"

#include "check.h"

typedef struct {
    int64_t rows, inner, classes;
    Layout w;
    double smooth;
    int ignore;
} Shape;

/* What x has, and w: f32, which is rounded, or the same. */
static int32_t half, weights;

/* The numbers that a product of these types sees. */
static void round_array(Array *a, int32_t type)
{
    for (int64_t i = 0; i < a->count; i++)
        a->at[i] = held(a->at[i], type);
}

/* How far a slope that is rounded to the other side moves a sum, in units of rounding of f32. */
static double slack_of(void)
{
    return half == GP_BF16 ? 0x1p17 : half == GP_F16 ? 0x1p14 : 300;
}

/* Logits, then their loss and its slope, row by row. */
static void reference(Shape s, const Array *x, const Array *wide, Array *ids, const Array *dy,
                      double *loss, double *saved, double *best, double *dx, double *dw)
{
    double *logit = keep((size_t)s.classes * sizeof *logit);
    Array rounded = zeros(wide->rank, wide->dim), *w = &rounded;
    memcpy(w->at, wide->at, (size_t)w->count * sizeof *w->at);
    round_array(w, half);
    for (int64_t i = 0; i < s.rows; i++) {
        double high = -INFINITY, sum = 0;
        for (int64_t j = 0; j < s.classes; j++)
            logit[j] = 0;
        for (int64_t c = 0; c < s.inner; c++)
            for (int64_t j = 0; j < s.classes; j++)
                logit[j] += x->at[i * s.inner + c] * w->at[c * s.classes + j];
        for (int64_t j = 0; j < s.classes; j++)
            if (logit[j] > high) {
                high = logit[j];
                best[i] = (double)j;
            }
        for (int64_t j = 0; j < s.classes; j++)
            sum += exp(logit[j] - high);
        saved[2 * i] = high;
        saved[2 * i + 1] = sum;
        if (s.ignore && i % 3 == 1) {
            ids->at[i] = -1;
            continue;
        }
        for (int64_t j = 0; j < s.classes; j++) {
            const double target =
                ((double)j == ids->at[i]) * (1 - s.smooth) + s.smooth / (double)s.classes;
            loss[i] -= target * (logit[j] - high - log(sum));
            logit[j] = held(dy->at[i] * (exp(logit[j] - high - log(sum)) - target), half);
        }
        for (int64_t c = 0; c < s.inner; c++)
            for (int64_t j = 0; j < s.classes; j++) {
                dx[i * s.inner + c] += logit[j] * w->at[c * s.classes + j];
                dw[c * s.classes + j] += logit[j] * x->at[i * s.inner + c];
            }
    }
}

/* [C, V] becomes [V, C]. */
static void turn(Array *dw)
{
    const int64_t rows = dw->dim[0], columns = dw->dim[1];
    Array to = zeros(DIMS(columns, rows));
    for (int64_t i = 0; i < dw->count; i++)
        to.at[i % columns * rows + i / columns] = dw->at[i];
    *dw = to;
}

/* With dw added to a sum, which the first micro-batch begins where it is the first to add. */
static void sums(Shape s, const Case *back, int turned)
{
    for (int k = 0; k < 4; k++) {
        const gp_linear_cross_entropy_accumulate_attr a = {s.smooth, s.ignore, -1, turned, k / 2};
        Case t = *back;
        Array old = reals(t.want[1].rank, t.want[1].dim), sum = zeros(old.rank, old.dim);
        for (int64_t i = 0; i < old.count; i++)
            sum.at[i] = t.want[1].at[i] + (k == 2 ? 0 : old.at[i]);
        t.kernel = gp_linear_cross_entropy_accumulate;
        t.space = gp_linear_cross_entropy_accumulate_workspace;
        t.attr = &a;
        t.ins = 6;
        t.in[5] = old;
        t.want[1] = sum;
        t.over[1] = 6;
        t.only_over = 1;
        t.run = (gp_run){.micro = k % 2, .micros = 2};
        try_more(&t, "linear_cross_entropy_accumulate %d x %d x %d, micro-batch %d", (int)s.rows,
                 (int)s.inner, (int)s.classes, k % 2);
    }
    forget();
}

static void losses(Shape s)
{
    const gp_linear_cross_entropy_attr a = {s.smooth, s.ignore, -1};
    Array x = reals(DIMS(s.rows, s.inner)), w = reals(DIMS(s.inner, s.classes));
    Array ids = integers(DIMS(s.rows), 0, s.classes - 1), dy = reals(DIMS(s.rows));
    Array loss = zeros(DIMS(s.rows)), saved = zeros(DIMS(s.rows, 2)), best = zeros(DIMS(s.rows));
    round_array(&x, half);
    round_array(&w, weights);
    Array dx = zeros(x.rank, x.dim), dw = zeros(w.rank, w.dim);
    reference(s, &x, &w, &ids, &dy, loss.at, saved.at, best.at, dx.at, dw.at);
    CROSS_TOTAL(GP_CHUNK_REALS, s.rows * s.classes);
    CROSS(GP_SLICE_COLUMNS, s.classes);
    CROSS(GP_KC, s.inner);
    CROSS(GP_MR, s.rows);
    CROSS(GP_NR, s.classes);
    CROSS(GP_LANES, s.classes);
    CROSS(GP_ROW_LANES, s.classes);
    CROSS(GP_ROW_CHUNK, s.classes);
    const Case forth = {.kernel = gp_linear_cross_entropy,
                        .space = gp_linear_cross_entropy_workspace,
                        .attr = &a,
                        .ins = 3,
                        .outs = 3,
                        .in = {x, w, ids},
                        .want = {loss, saved, best},
                        .out_type = {[2] = GP_I32},
                        .in_as = {DENSE, s.w},
                        .in_type = {half, weights, GP_I32},
                        .slack = 100,
                        .terms = 4};
    const int turned = s.w == SWAPPED;
    if (turned)
        turn(&dw);
    const gp_linear_cross_entropy_grad_attr to_w = {s.smooth, s.ignore, -1, turned};
    const Case back = {.kernel = gp_linear_cross_entropy_grad,
                       .space = gp_linear_cross_entropy_grad_workspace,
                       .attr = &to_w,
                       .ins = 5,
                       .outs = 2,
                       .in = {x, w, ids, saved, dy},
                       .want = {dx, dw},
                       .in_as = {DENSE, s.w},
                       .in_type = {half, weights, GP_I32},
                       .out_type = {half},
                       .slack = slack_of(),
                       .terms = 1};
    try_more(&forth, "linear_cross_entropy %d x %d x %d, laid %d, of %d %d", (int)s.rows,
             (int)s.inner, (int)s.classes, s.w, half, weights);
    try_more(&back, "linear_cross_entropy_grad %d x %d x %d, laid %d, of %d %d", (int)s.rows,
             (int)s.inner, (int)s.classes, s.w, half, weights);
    sums(s, &back, turned);
}

/* Of f32, and of 16 bits beside weights of f32 or of the same. */
static void losses_of_all(Shape s)
{
    const int32_t any = (s.classes + s.inner) % 2 ? GP_F16 : GP_BF16;
    const int32_t kind[][2] = {
        {GP_F32, GP_F32}, {any, GP_F32}, {any ^ GP_F16 ^ GP_BF16, any ^ GP_F16 ^ GP_BF16}};
    for (int i = 0; i < 3; i++) {
        half = kind[i][0];
        weights = kind[i][1];
        losses(s);
    }
}

int main(void)
{
    NOT_HERE(GP_NC); /* a tile has fewer columns */
    NOT_HERE(GP_NC_LARGEST);
    NOT_HERE(GP_HALF_STRIP); /* sums lie in what is made */
    NOT_HERE(GP_ARG_LANES);  /* argmax by itself has it */
    NOT_HERE(GP_FEW);
    NOT_HERE(GP_GEMM_IN_PLACE);
    NOT_HERE(GP_STREAM_LEAST);
    NOT_HERE(GP_STREAM_PIECE);
    NOT_HERE(GP_ROW_BLOCK);
    const int64_t block[] = {GP_SLICE_COLUMNS, 2 * GP_SLICE_COLUMNS, GP_NR,
                             GP_LANES,         GP_ROW_LANES,         GP_ROW_CHUNK};
    for (int64_t off = -1; off <= 1; off++) {
        for (int i = 0; i < 6; i++)
            losses_of_all((Shape){7, 5, block[i] + off, (Layout)(i % 3), i % 2 ? 0.1 : 0, i % 2});
        losses_of_all((Shape){3, GP_KC + off, 12, SWAPPED, 0, 0});
        losses_of_all((Shape){3, GP_KC + off, 12, DENSE, 0, 0});
        losses_of_all((Shape){GP_MR + off, 4, 9, DENSE, 0, 1});
    }
    const int64_t classes = GP_TINY ? 20 : 4096, at = GP_CHUNK_REALS / classes;
    for (int64_t off = -1; off <= 1; off++)
        losses_of_all((Shape){at + off, 2, classes, DENSE, 0, 0});
    if (GP_TINY) {
        losses_of_all((Shape){4 * at + 3, 3, classes, DENSE, 0.2, 1});
        losses_of_all(
            (Shape){3, 3, GP_CHUNK_REALS + 1, DENSE, 0, 0}); /* a row is more than a slice */
    } else if (LAYERS) { /* of GPT-2, more rows than a slice has */
        losses_of_all((Shape){GP_CHUNK_REALS / 50257 + 3, 8, 50257, SWAPPED, 0, 0});
    }
    return finish();
}
