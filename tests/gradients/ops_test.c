/* Every op's gradient against central differences, on the cases of tests/ops, in double.
 *
 * A case becomes a graph whose loss is a weighted sum of all results; the gradient of each element
 * of each real operand is compared with (loss(x + h) - loss(x - h)) / 2h. */
#include "tests/ops/cases.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(gp_real) == sizeof(double), "compiled with GP_REAL=double");

enum { MAX_ELEMENTS = 20000, ELEMENTS = 16, MAX_ROWS = 1024 };
static const double H = 1e-5, TOLERANCE = 1e-6;

typedef struct {
    Built built;
    Use loss, *gradient;
    size_t values;
} Derived;

/* The larger one; a NaN wins over every number. */
static double worse(double a, double b)
{
    return isnan(a) || a > b ? a : b;
}

static bool is_real(const Graph *g, Use use)
{
    return use.value != NONE && g->value.at[use.value].dtype == F32;
}

/* loss = sum over results of sum(result * weights); NONE where no result is real. What a kernel
 * gives beside its result is for its gradient alone. */
static Use add_loss(Graph *g, const Call *call)
{
    Call at = {.name = "loss"};
    Use loss = {NONE, NONE};
    for (size_t i = 0; i < (call->op->build ? call->result.count : 1); i++) {
        Use result = call->result.at[i];
        if (!is_real(g, result))
            continue;
        View view = use_view(g, result);
        const char *name = arena_printf(g->arena, "weights%zu", i);
        Id weights = graph_value(g, VALUE_CONST, name, F32, view.rank, view.dim, (Place){0});
        Use part = call_op(g, &at, "mul", 2, (Use[]){result, use_of(weights)});
        part = call_op(g, &at, "sum", 1, &part);
        loss = loss.value == NONE ? part : call_op(g, &at, "add", 2, (Use[]){loss, part});
    }
    return loss;
}

/* Scores have no derivative by what is added to them: it would have their size. */
static bool is_mask(const OpCase *row, int i)
{
    return strcmp(row->op, "sdpa") == 0 && i == 3;
}

/* False where the case has nothing to derive; *wrong says why it failed, where it did. */
static bool derive(Arena *arena, const OpCase *row, Derived *d, const char **wrong)
{
    d->built = case_build(arena, row->op, row->operands, row->settings, PLAIN, -1, true);
    Graph *g = d->built.graph;
    bool any = false;
    if (d->built.refused)
        return false;
    for (int i = 0; i < d->built.operands; i++)
        if (is_real(g, d->built.use[i]) && !is_mask(row, i)) {
            g->value.at[d->built.use[i].value].kind = VALUE_PARAM;
            any = true;
        }
    d->loss = any ? add_loss(g, &d->built.call) : (Use){NONE, NONE};
    if (d->loss.value == NONE)
        return false;
    g->diag = diag_new(arena, stderr, false);
    if (!gradients(g, d->loss, &d->gradient))
        *wrong = "has no gradient";
    return true;
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

/* The worst relative error over elements of one value. */
static double compare(const Derived *d, Run *run, Arena *arena, Id value, double scale,
                      const char **wrong)
{
    run_loss(d, run, wrong);
    Tensor got = run_read(run, arena, d->gradient[value]);
    double worst = 0, *x = run->data[value];
    int64_t step = got.count > ELEMENTS ? got.count / ELEMENTS : 1;
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

static const char *check(Arena *arena, const OpCase *row, double *worst, bool *derived)
{
    Derived d;
    const char *wrong = NULL;
    *worst = 0;
    *derived = derive(arena, row, &d, &wrong);
    Graph *g = d.built.graph;
    int64_t elements = 0;
    for (size_t i = 0; i < g->value.count; i++)
        elements += value_count(&g->value.at[i]);
    if (*derived && !wrong && elements < MAX_ELEMENTS) {
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
                if (strcmp(row->op, op->name) != 0 || op->flags & (OP_EFFECT | OP_HIDDEN))
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
