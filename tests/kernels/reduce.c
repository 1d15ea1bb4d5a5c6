/* Reductions over any axes of tensors of any layout: sum, mean, prod, max, min, var, argmax,
 * argmin; the gradient of prod; running sums. */
#include "runtime/c/reduce.h"
#include "runtime/c/argmax.h"
#include "runtime/c/cumsum.h"
#include "runtime/c/prod_grad.h"

#include "check.h"

typedef struct {
    Array want[8]; /* sum, mean, prod, max, min, var, argmax, argmin */
} Folded;

enum { SUM, MEAN, PROD, MAX, MIN, VAR, ARGMAX, ARGMIN, WAYS };

/* Which output element i goes into: its place with the reduced axes left out. */
static int64_t output_of(const Array *x, int64_t axes, int64_t i)
{
    int64_t at = 0, size = 1;
    for (int d = x->rank; d-- > 0; i /= x->dim[d])
        if (!(axes >> d & 1)) {
            at += i % x->dim[d] * size;
            size *= x->dim[d];
        }
    return at;
}

static Folded fold(const Array *x, int64_t axes, int64_t correction)
{
    Folded f;
    int64_t dim[GP_MAX_RANK];
    for (int d = 0; d < x->rank; d++)
        dim[d] = axes >> d & 1 ? 1 : x->dim[d];
    for (int w = 0; w < WAYS; w++)
        f.want[w] = zeros(x->rank, dim);
    const int64_t outputs = f.want[SUM].count, count = x->count / outputs;
    Array met = zeros(x->rank, dim);
    for (int64_t i = 0; i < outputs; i++)
        f.want[PROD].at[i] = 1;
    for (int64_t i = 0; i < x->count; i++) { /* in the order of the axes */
        const int64_t o = output_of(x, axes, i);
        const double v = x->at[i];
        if (met.at[o] == 0)
            f.want[MAX].at[o] = f.want[MIN].at[o] = v;
        if (v > f.want[MAX].at[o] || (v != v && f.want[MAX].at[o] == f.want[MAX].at[o])) {
            f.want[MAX].at[o] = v;
            f.want[ARGMAX].at[o] = met.at[o];
        }
        if (v < f.want[MIN].at[o] || (v != v && f.want[MIN].at[o] == f.want[MIN].at[o])) {
            f.want[MIN].at[o] = v;
            f.want[ARGMIN].at[o] = met.at[o];
        }
        f.want[SUM].at[o] += v;
        f.want[MEAN].at[o] += v / (double)count;
        f.want[PROD].at[o] *= v;
        met.at[o]++;
    }
    for (int64_t i = 0; i < x->count; i++) {
        const int64_t o = output_of(x, axes, i);
        const double off = x->at[i] - f.want[MEAN].at[o];
        f.want[VAR].at[o] += off * off / (double)(count - correction);
    }
    return f;
}

static void note(const Array *x, int64_t axes)
{
    int64_t width = 1, count = 1;
    int last = -1;
    for (int d = 0; d < x->rank; d++)
        if (axes >> d & 1 && x->dim[d] > 1)
            last = d;
    for (int d = 0; d < x->rank; d++) {
        count *= axes >> d & 1 ? x->dim[d] : 1;
        width *= d > last ? x->dim[d] : 1;
    }
    const int64_t rows = width > 1 ? count : (count + GP_FOLD_LANES - 1) / GP_FOLD_LANES;
    CROSS(GP_FOLD_LANES, width);
    CROSS(GP_ARG_LANES, width);
    CROSS(GP_FOLD_BLOCK, rows);
    cross("GP_FOLD_LEVELS", GP_FOLD_CHUNK, rows, JUST_BELOW | AT | JUST_ABOVE);
}

static void reduce(Array x, int64_t axes, Layout as, int32_t type)
{
    static int (*const kernel[])(const gp_call *) = {gp_sum, gp_mean, gp_prod,   gp_max,
                                                     gp_min, gp_var,  gp_argmax, gp_argmin};
    static size_t (*const space[])(const gp_call *) = {gp_sum_workspace,
                                                       gp_mean_workspace,
                                                       gp_prod_workspace,
                                                       gp_max_workspace,
                                                       gp_min_workspace,
                                                       gp_var_workspace,
                                                       NULL,
                                                       NULL};
    const gp_sum_attr a = {axes};
    const Folded one = fold(&x, axes, 0);
    const int64_t count = x.count / one.want[SUM].count, less = count > 1 ? x.count % 2 : 0;
    const Folded f = fold(&x, axes, less);
    const gp_var_attr v = {less, axes};
    note(&x, axes);
    for (int w = 0; w < WAYS; w++) {
        if (type != GP_F32 && (w == MEAN || w == VAR))
            continue;
        Case t = {.kernel = kernel[w],
                  .space = space[w],
                  .attr = w == VAR ? (const void *)&v : &a,
                  .ins = 1,
                  .outs = 1,
                  .in = {x},
                  .want = {f.want[w]},
                  .in_as = {as},
                  .in_type = {type},
                  .out_type = {w >= ARGMAX ? GP_I32 : type},
                  .aside = w == SUM && type == GP_F32,
                  .half_in = type == GP_F32,
                  .half_out = w == MAX || w == MIN,
                  .slack = w == MEAN || w == VAR ? 40 : 0,
                  .terms = 2};
        try_more(&t, "reduction %d of %d x %d x %d x %d over %d, laid %d, type %d", w,
                 (int)x.dim[0], (int)x.dim[1], (int)x.dim[2], (int)x.dim[3], (int)axes, as, type);
    }
    forget();
}

/* Whole numbers, products of which stay small. */
static Array numbers(int64_t a, int64_t b, int64_t c, int64_t d)
{
    Array x = integers(DIMS(a, b, c, d), 0, 99);
    for (int64_t i = 0; i < x.count; i++)
        x.at[i] = x.at[i] == 0 ? 2 : x.at[i] == 1 ? 0.5 : x.at[i] > 60 ? -1 : 1;
    return x;
}

static void products_back(int64_t a, int64_t b, int64_t c, int64_t axes, Layout as)
{
    const gp_prod_grad_attr attr = {axes};
    Array x = integers(DIMS(a, b, c), -2, 2), dx = zeros(DIMS(a, b, c));
    Array dy = integers(DIMS(a, b, c), -3, 3); /* spread over what was reduced */
    for (int64_t i = 0; i < x.count; i++)
        for (int64_t j = 0; j < i; j++)
            if (output_of(&x, axes, i) == output_of(&x, axes, j))
                dy.at[i] = dy.at[j];
    for (int64_t i = 0; i < x.count; i++) {
        dx.at[i] = dy.at[i];
        for (int64_t j = 0; j < x.count; j++)
            if (j != i && output_of(&x, axes, i) == output_of(&x, axes, j))
                dx.at[i] *= x.at[j];
    }
    const Case t = {.kernel = gp_prod_grad,
                    .space = gp_prod_grad_workspace,
                    .half_in = 1,
                    .half_out = 1,
                    .attr = &attr,
                    .ins = 2,
                    .outs = 1,
                    .in = {x, dy},
                    .want = {dx},
                    .in_as = {as, (as + 1) % 3}};
    try(&t, "prod_grad %d x %d x %d over %d, laid %d", (int)a, (int)b, (int)c, (int)axes, as);
}

static void running(int64_t outer, int64_t n, int64_t inner, int32_t type)
{
    const gp_cumsum_attr a = {1, outer % 2, n % 2};
    Array x = integers(DIMS(outer, n, inner), -3, 3), y = zeros(DIMS(outer, n, inner));
    for (int64_t i = 0; i < x.count; i++)
        for (int64_t k = 0; k < n; k++) {
            const int64_t at = i / inner % n, from = i + (k - at) * inner;
            if ((a.reverse ? k > at : k < at) || (k == at && !a.exclusive))
                y.at[i] += x.at[from];
        }
    CROSS(GP_CUMSUM_LANES, inner);
    const Case t = {.kernel = gp_cumsum,
                    .half_in = type == GP_F32,
                    .attr = &a,
                    .ins = 1,
                    .outs = 1,
                    .in = {x},
                    .want = {y},
                    .in_type = {type},
                    .out_type = {type}};
    try(&t, "cumsum %d x %d x %d, type %d", (int)outer, (int)n, (int)inner, type);
}

int main(void)
{
    for (int64_t axes = 1; axes < 16; axes++)
        for (int as = 0; as < 3; as++) {
            reduce(numbers(3, 2, 5, 7), axes, (Layout)as, GP_F32);
            reduce(integers(DIMS(2, 3, 1, 4), -1, 2), axes, (Layout)as, as ? GP_I32 : GP_I64);
        }
    for (int64_t off = -1; off <= 1; off++)
        for (int as = 0; as < 3; as++) {
            reduce(numbers(2, 3, 1, GP_FOLD_LANES + off), 2, (Layout)as, GP_F32);
            reduce(numbers(1, 3, 1, GP_FOLD_LANES + off), 8, (Layout)as, GP_F32);
            reduce(numbers(2, GP_FOLD_BLOCK + off, 1, 3), 2, (Layout)as, GP_F32);
            reduce(numbers(2, 3, 2 * GP_FOLD_BLOCK + off, 2), 4, (Layout)as, GP_F32);
            reduce(numbers(1, 1, GP_FOLD_CHUNK + off, 2), 4, (Layout)as, GP_F32);
            reduce(numbers(1, 1, GP_FOLD_CHUNK + off, GP_FOLD_LANES), 12, (Layout)as, GP_F32);
            reduce(numbers(1, 1, 3 * GP_FOLD_CHUNK + off, 3), 4, (Layout)as, GP_F32);
        }
    for (int64_t off = -1; off <= 1; off++) {
        running(2, 9, GP_CUMSUM_LANES + off, GP_F32);
        running(3, 5, 2 * GP_CUMSUM_LANES + off, off ? GP_I32 : GP_I64);
    }
    running(1, 100, 1, GP_F32);
    running(2, 100, 1, GP_F32);
    running(2, 101, 1, GP_F32);
    running(1, 7, 5, GP_I64);
    Array odd = numbers(2, 3, 4, 5);
    odd.at[7] = NAN, odd.at[40] = INFINITY, odd.at[90] = NAN, odd.at[92] = NAN;
    reduce(odd, 4, DENSE, GP_F32);
    for (int64_t axes = 1; axes < 8; axes++)
        for (int as = 0; as < 3; as++)
            products_back(3, 2, 4, axes, (Layout)as);
    return finish();
}
