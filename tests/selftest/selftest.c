/* The self-test for a GPU: every case of tests/ops, and its gradient, by C's kernels and by CUDA's,
 * value by value. usage: selftest [OP...]
 *
 * Exit status: 0 all agree, 1 some do not, 77 there is no CUDA device. */
#include "tests/ops/derived.h"
#include "tests/selftest/device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NO_DEVICE = 77 };
/* Of the largest number there: a softmax of scores in the hundreds costs three digits. Of 16 bits:
 * a few units of the last place, since sums whose order differs are rounded apart. */
static double tolerance(Dtype narrow)
{
    return narrow == BF16 ? 1. / 64 : narrow == F16 ? 1. / 512 : 1e-3;
}

/* Both tables of kernels, of which the interpreter asks for one. */
const gp_kernel *runtime_kernel_c(const char *op);
const gp_kernel *runtime_kernel_cuda(const char *op);
static bool on_device;

const gp_kernel *runtime_kernel(const char *op)
{
    return on_device ? runtime_kernel_cuda(op) : runtime_kernel_c(op);
}

/* Cases, values that nodes gave, those of them with the same bits, and the worst difference. */
typedef struct {
    size_t cases, values, equal;
    double worst;
} Tally;

static Run *run_on(Arena *arena, const Built *b, bool device, int *status)
{
    RunOptions options = {.seed = 3};
    Run *run = run_new(arena, b->graph);
    case_write(run, b);
    on_device = device;
    *status = run_graph(run, &options);
    on_device = false;
    return run;
}

static double largest(const Tensor *x)
{
    double most = 0;
    for (int64_t i = 0; i < x->count; i++)
        if (isfinite(x->at[i]))
            most = fmax(most, fabs(x->at[i]));
    return most;
}

/* The largest number of a value or of what it was made from, or 1: terms of a sum that cancel
 * leave their rounding behind. */
static double scale_of(Arena *arena, const Graph *g, const Run *run, Id value, const Tensor *x)
{
    double scale = fmax(1, largest(x));
    const Id id = g->value.at[value].node;
    const Node *node = id == NONE ? NULL : &g->node.at[id];
    for (Id i = 0; node && i < node->uses; i++) {
        const Use use = node_use(g, node, i);
        if (use.value == NONE)
            continue;
        const Tensor from = run_read(run, arena, use);
        scale = fmax(scale, largest(&from));
    }
    return scale;
}

/* The largest difference. A NaN is as far from a number as can be. */
static double distance(const Tensor *x, const Tensor *y)
{
    double worst = 0;
    for (int64_t i = 0; i < x->count; i++) {
        const double off = fabs(x->at[i] - y->at[i]);
        if (x->at[i] != y->at[i] && !(isnan(x->at[i]) && isnan(y->at[i])))
            worst = isnan(off) ? INFINITY : fmax(worst, off);
    }
    return worst;
}

static const char *compare(Arena *arena, const Graph *g, const Run *c, const Run *cuda,
                           Dtype narrow, Tally *t)
{
    const char *wrong = NULL;
    for (Id i = 0; i < g->value.count; i++) {
        const Tensor x = run_read(c, arena, use_of(i)), y = run_read(cuda, arena, use_of(i));
        const double worst = distance(&x, &y) / scale_of(arena, g, c, i, &x);
        t->values++;
        t->equal += worst == 0;
        t->worst = fmax(t->worst, worst);
        if (worst > tolerance(narrow) && !wrong)
            wrong = arena_printf(arena, "%s differs by %.1e", g->value.at[i].name, worst);
    }
    return wrong;
}

/* NULL where all is well. */
static const char *check(Arena *arena, const OpCase *row, Tally *t)
{
    on_device = true; /* its kernels decide what is cast */
    Built b = case_with_gradients(arena, row);
    const char *wrong = NULL;
    int status[2];
    Run *c = run_on(arena, &b, false, &status[0]);
    Run *cuda = run_on(arena, &b, true, &status[1]);
    t->cases++;
    if (status[1] != status[0])
        wrong = arena_printf(arena, "C returns %d, CUDA %d", status[0], status[1]);
    else if (status[0] == GP_OK)
        wrong = compare(arena, b.graph, c, cuda, row->narrow, t);
    run_free(c);
    run_free(cuda);
    free(b.message);
    return wrong;
}

static bool is_wanted(const OpRow *op, int count, char **name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(name[i], op->name) == 0)
            return true;
    return count == 0;
}

/* False where a case of the op differs; all are in the dtype, or F32: as they are written. */
static bool check_in(const OpRow *op, Dtype narrow, Tally *all)
{
    Tally t = {0};
    bool good = true;
    for (size_t table = 0; cases_at(table); table++)
        for (const OpCase *row = cases_at(table); row->op; row++) {
            if (strcmp(row->op, op->name) != 0)
                continue;
            Arena *arena = arena_new();
            on_device = true;
            const OpCase one = narrow == F32 ? *row : case_narrowed(arena, row, narrow);
            const char *wrong = one.op ? check(arena, &one, &t) : NULL;
            if (wrong)
                printf("%s(%s; %s) of %s: %s\n", row->op, row->operands, row->settings,
                       dtype_name(narrow), wrong);
            good = good && !wrong;
            arena_free(arena);
        }
    if (t.cases)
        printf("%-20s %4zu cases of %-4s %5zu values, %5zu bit for bit, worst difference %.1e\n",
               op->name, t.cases, dtype_name(narrow), t.values, t.equal, t.worst);
    all->cases += t.cases;
    all->values += t.values;
    all->equal += t.equal;
    all->worst = fmax(all->worst, t.worst);
    return good;
}

static bool check_op(const OpRow *op, Tally *all)
{
    const bool wide = check_in(op, F32, &all[F32]), half = check_in(op, F16, &all[F16]);
    return check_in(op, BF16, &all[BF16]) && wide && half;
}

int main(int count, char **argument)
{
    const char *why, *device = selftest_device(&why);
    Tally all[BF16 + 1] = {{0}};
    size_t bad = 0;
    if (!device) {
        printf("no CUDA device: %s\n", why);
        return NO_DEVICE;
    }
    printf("device: %s\n", device);
    for (size_t i = 0; op_at(i); i++)
        if (is_wanted(op_at(i), count - 1, argument + 1))
            bad += !check_op(op_at(i), all);
    for (int i = F32; i <= BF16; i++)
        printf("%s: %zu cases, %zu values, %zu bit for bit, worst difference %.1e\n",
               dtype_name((Dtype)i), all[i].cases, all[i].values, all[i].equal, all[i].worst);
    printf("%zu ops differ\n", bad);
    return bad ? 1 : 0;
}
