/* Every op's gradient against central differences, on the cases of tests/ops, in double.
 *
 * A case becomes a graph whose loss is a weighted sum of all results; the gradient of each element
 * of each real operand is compared with (loss(x + h) - loss(x - h)) / 2h. */
#include "tests/ops/derived.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(gp_real) == sizeof(double), "compiled with GP_REAL=double");

enum { MAX_ELEMENTS = 20000, ELEMENTS = 16, MAX_ROWS = 1024 };
static const double H = 1e-5, TOLERANCE = 1e-6;

/* The larger one; a NaN wins over every number. */
static double worse(double a, double b)
{
    return isnan(a) || a > b ? a : b;
}

static double run_loss(const Derived *d, Run *run, const char **wrong)
{
    RunOptions options = {.seed = 3};
    if (run_graph(run, &options) != GP_OK && !*wrong)
        *wrong = run->wrong ? run->wrong : "a kernel failed";
    return ((const double *)run->data[d->loss.value])[0];
}

/* The largest element of all gradients: what errors are relative to, since some are 0. */
static double largest(const Derived *d, Run *run, Arena *arena, const char **wrong)
{
    double scale = 1e-3;
    run_loss(d, run, wrong);
    for (Id v = 0; v < d->built.graph->value.count; v++) {
        if (d->gradient[v].value == NONE)
            continue;
        Tensor got = run_read(run, arena, d->gradient[v]);
        for (int64_t i = 0; i < got.count; i++)
            scale = worse(scale, fabs(got.at[i]));
    }
    return scale;
}

/* How many elements of a value are changed, at most; GRADIENT_ELEMENTS=2 takes fewer. */
static int64_t elements(void)
{
    const char *wanted = getenv("GRADIENT_ELEMENTS");
    return wanted && atoi(wanted) > 0 ? atoi(wanted) : ELEMENTS;
}

/* The worst relative error over elements of one value. */
static double compare(const Derived *d, Run *run, Arena *arena, Id value, double scale,
                      const char **wrong)
{
    run_loss(d, run, wrong);
    Tensor got = run_read(run, arena, d->gradient[value]);
    double worst = 0, *x = run->data[value];
    int64_t step = got.count > elements() ? got.count / elements() : 1;
    for (int64_t i = 0; i < got.count && !*wrong; i += step) {
        double kept = x[i];
        x[i] = kept + H;
        double above = run_loss(d, run, wrong);
        x[i] = kept - H;
        double below = run_loss(d, run, wrong);
        x[i] = kept;
        double want = (above - below) / (2 * H);
        worst = worse(worst, fabs(want - got.at[i]) / worse(scale, fabs(want)));
    }
    return worst;
}

/* NaN has no neighbours: that it passes through is tested with the values. */
static bool has_nan(const Built *b)
{
    bool any = false;
    for (int i = 0; i < b->operands; i++)
        any |= b->operand[i].at && b->operand[i].dtype == F32 && isnan(b->operand[i].at[0]);
    return any;
}

static const char *check(Arena *arena, const OpCase *row, double *worst, bool *derived)
{
    Derived d;
    const char *wrong = NULL;
    *worst = 0;
    *derived = case_derive(arena, row, &d, &wrong);
    Graph *g = d.built.graph;
    int64_t elements = 0;
    for (size_t i = 0; i < g->value.count; i++)
        elements += value_count(&g->value.at[i]);
    if (*derived && !wrong && elements < MAX_ELEMENTS && !has_nan(&d.built)) {
        Run *run = run_new(arena, g);
        case_write(run, &d.built);
        double scale = largest(&d, run, arena, &wrong);
        for (Id v = 0; v < g->value.count && !wrong; v++)
            if (d.gradient[v].value != NONE)
                *worst = worse(*worst, compare(&d, run, arena, v, scale, &wrong));
        run_free(run);
        if (!wrong && !(*worst <= TOLERANCE))
            wrong = arena_printf(arena, "differs by %.2e of the largest", *worst);
    }
    free(d.built.message);
    return wrong
               ? arena_printf(arena, "%s(%s; %s): %s", row->op, row->operands, row->settings, wrong)
               : NULL;
}

/* GRADIENT_TABLE=1 prints what was checked. */
Test(gradients, agree_with_differences)
{
    double worst_of_all = 0;
    size_t ops = 0;
    for (size_t i = 0; op_at(i); i++) {
        const OpRow *op = op_at(i);
        double worst = 0;
        size_t cases = 0;
        for (size_t table = 0; cases_at(table); table++)
            for (const OpCase *row = cases_at(table); row->op; row++) {
                bool own = !(op->flags & OP_HIDDEN) || op->grad;
                if (strcmp(row->op, op->name) != 0 || op->flags & OP_EFFECT || !own)
                    continue;
                Arena *arena = arena_new();
                double error;
                bool derived;
                const char *wrong = check(arena, row, &error, &derived);
                cr_expect(!wrong, "%s", wrong);
                cases += derived;
                worst = worse(worst, error);
                arena_free(arena);
            }
        if (cases && getenv("GRADIENT_TABLE"))
            printf("%-20s %3zu cases, worst relative error %.1e\n", op->name, cases, worst);
        ops += cases > 0;
        worst_of_all = worse(worst_of_all, worst);
    }
    printf("%zu ops, worst relative error %.1e\n", ops, worst_of_all);
}
