/* Reductions where plain ones go wrong: long sums, NaN, and tensors that lie otherwise. */
#include "tests/ops/cases.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

/* One op over all axes, or one, of x as it lies. */
static gp_real reduce(const char *op, gp_tensor x, int64_t axes, int threads, gp_real *out,
                      int64_t outs)
{
    const gp_kernel *kernel = runtime_kernel(op);
    gp_tensor to = {.data = out, .dtype = GP_F32, .rank = 1, .dim = {outs}, .stride = {1}};
    gp_run run = {.threads = threads};
    gp_call call = {.in = &x, .out = &to, .ins = 1, .outs = 1, .run = &run};
    gp_setting setting[MAX_ARGS] = {{0}};
    setting[op_arg(op_find(op), "axes")].number = (double)axes;
    size_t bytes = kernel->workspace ? kernel->workspace(&call, setting) : 0;
    call.work = bytes ? malloc(bytes) : NULL;
    cr_assert_eq(kernel->run(&call, setting), GP_OK);
    free(call.work);
    return out[0];
}

static gp_tensor vector(gp_real *x, int64_t n)
{
    return (gp_tensor){.data = x, .dtype = GP_F32, .rank = 1, .dim = {n}, .stride = {1}};
}

/* Ten million times 0.1: one after the other a float sum is off by 9 %. */
Test(reduce, long_sums_are_accurate)
{
    int64_t n = 10000000;
    gp_real *x = malloc((size_t)n * sizeof *x), out;
    for (int64_t i = 0; i < n; i++)
        x[i] = (gp_real)0.1;
    double want = (double)(gp_real)0.1 * (double)n;
    double off = (double)reduce("sum", vector(x, n), 1, 1, &out, 1) / want - 1;
    cr_expect(fabs(off) < 3e-7, "off by %g", off);
    cr_expect(fabs((double)reduce("mean", vector(x, n), 1, 1, &out, 1) / 0.1 - 1) < 3e-7);
    free(x);
}

/* The same numbers spaced, backwards in memory or as a window give the same bits. */
Test(reduce, bits_do_not_depend_on_how_the_operand_lies)
{
    enum { ROWS = 70, COLUMNS = 1001 };
    gp_real *dense = malloc(sizeof(gp_real) * ROWS * COLUMNS);
    gp_real *transposed = malloc(sizeof(gp_real) * ROWS * COLUMNS);
    for (int64_t i = 0; i < ROWS * COLUMNS; i++) {
        dense[i] = (gp_real)sin((double)i * 1.7) * (gp_real)1e3;
        transposed[i % COLUMNS * ROWS + i / COLUMNS] = dense[i];
    }
    gp_tensor a = {
        .data = dense, .dtype = GP_F32, .rank = 2, .dim = {ROWS, COLUMNS}, .stride = {COLUMNS, 1}};
    gp_tensor b = {.data = transposed,
                   .dtype = GP_F32,
                   .rank = 2,
                   .dim = {ROWS, COLUMNS},
                   .stride = {1, ROWS}};
    for (int64_t axes = 1; axes <= 3; axes++) {
        static gp_real one[COLUMNS], other[COLUMNS];
        int64_t outs = axes == 1 ? COLUMNS : axes == 2 ? ROWS : 1;
        static const char *const ops[] = {"sum", "var"};
        for (int k = 0; k < 2; k++) {
            reduce(ops[k], a, axes, 1, one, outs);
            reduce(ops[k], b, axes, 3, other, outs);
            cr_expect_arr_eq(one, other, (size_t)outs * sizeof *one, "%s", ops[k]);
        }
    }
    free(dense);
    free(transposed);
}

Test(reduce, nan_is_the_largest_and_the_smallest)
{
    gp_real x[200], out;
    for (int at = 0; at < 200; at += 67) {
        for (int i = 0; i < 200; i++)
            x[i] = i == at ? (gp_real)NAN : (gp_real)(i % 7) - 3;
        cr_expect(isnan(reduce("max", vector(x, 200), 1, 1, &out, 1)));
        cr_expect(isnan(reduce("min", vector(x, 200), 1, 1, &out, 1)));
    }
    for (int i = 0; i < 200; i++)
        x[i] = -(gp_real)INFINITY;
    cr_expect_eq(reduce("max", vector(x, 200), 1, 1, &out, 1), -(gp_real)INFINITY);
}
