/* What every row says of the batch, against what its kernel computes.
 *
 * Where a row says that the samples along an axis are each computed by themselves, its kernel is
 * run on both halves of that axis, and what it gives must be the halves of what it gives for the
 * whole; where it says that they are summed, the sum. Cases are run with their gradients, so that
 * hidden rows are met too. What a row forbids is not asked here: see tests/plan/batch_test.c. */
#include "tests/ops/derived.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ELEMENTS = 20000, MAX_ROWS = 1024, MAX_USES = 16, PARTS = 2 };

/* ---- One kernel on parts of its operands ---------------------------------------------------- */

/* A dense block of its own for each operand and output. */
typedef struct {
    const Graph *g;
    const Node *node;
    gp_tensor in[MAX_USES], out[MAX_OUTPUTS];
} Bench;

/* Elements from `begin`, before `end`, of an axis; axis -1: all of it. */
typedef struct {
    int axis;
    int64_t begin, end;
} Part;

static void lay_out(gp_tensor *t, Dtype dtype, int rank, const int64_t *dim)
{
    int64_t stride = 1;
    *t = (gp_tensor){.dtype = (int32_t)dtype, .rank = rank};
    for (int i = rank; i-- > 0; stride *= dim[i]) {
        t->dim[i] = dim[i];
        t->stride[i] = stride;
    }
    t->data = run_memory((size_t)stride * gp_size(t->dtype));
}

/* Where element i lies, counted through the dims. */
static int64_t place_of(const gp_tensor *t, int64_t i)
{
    int64_t at = 0;
    for (int d = t->rank; d-- > 0; i /= t->dim[d])
        at += i % t->dim[d] * t->stride[d];
    return at;
}

static void copy_elements(const gp_tensor *to, const gp_tensor *from)
{
    size_t size = gp_size(to->dtype);
    for (int64_t i = 0; i < gp_count(to); i++)
        memcpy((char *)to->data + (size_t)place_of(to, i) * size,
               (const char *)from->data + place_of(from, i) * (int64_t)size, size);
}

/* A window of it, in place. */
static gp_tensor window_of(gp_tensor t, Part part)
{
    if (part.axis < 0)
        return t;
    t.data = (char *)t.data + part.begin * t.stride[part.axis] * (int64_t)gp_size(t.dtype);
    t.dim[part.axis] = part.end - part.begin;
    return t;
}

static Bench bench_new(const Run *run, const Node *node, const Part *in, const Part *out)
{
    const Graph *g = run->graph;
    Bench b = {.g = g, .node = node};
    for (Id i = 0; i < node->uses; i++) {
        Use use = node_use(g, node, i);
        if (use.value == NONE)
            continue;
        View view = use_view(g, use);
        gp_tensor whole = {.dtype = g->value.at[use.value].dtype, .rank = view.rank};
        whole.data = (char *)run->data[use.value] + view.offset * (int64_t)gp_size(whole.dtype);
        memcpy(whole.dim, view.dim, sizeof whole.dim);
        memcpy(whole.stride, view.stride, sizeof whole.stride);
        whole = window_of(whole, in[i]);
        lay_out(&b.in[i], (Dtype)whole.dtype, whole.rank, whole.dim);
        copy_elements(&b.in[i], &whole);
    }
    for (Id i = 0; i < node->values; i++) {
        const Value *value = &g->value.at[node_value(node, i)];
        int64_t dim[MAX_RANK];
        memcpy(dim, value->dim, sizeof dim);
        if (out[i].axis >= 0)
            dim[out[i].axis] = out[i].end - out[i].begin;
        if (node->op->updates[i])
            b.out[i] = b.in[node->op->updates[i] - 1];
        else
            lay_out(&b.out[i], (Dtype)value->dtype, value->rank, dim);
    }
    return b;
}

static void bench_free(Bench *b)
{
    for (Id i = 0; i < b->node->uses; i++)
        run_memory_free(b->in[i].data);
    for (Id i = 0; i < b->node->values; i++)
        if (!b->node->op->updates[i])
            run_memory_free(b->out[i].data);
}

static int bench_run(const Bench *b)
{
    const gp_kernel *kernel = runtime_kernel(b->node->op->name);
    gp_setting setting[MAX_ARGS] = {{0}};
    for (Id i = 0; i < MAX_ARGS && b->node->op->args[i].name; i++) {
        const Attr *attr = &b->g->attr.at[b->node->attr + i];
        setting[i].number = attr->number;
        memcpy(setting[i].list, attr->list, sizeof setting[i].list);
    }
    gp_run run = {.lr = 0.1, .seed = 3, .threads = 1};
    gp_call call = {.in = b->in,
                    .out = b->out,
                    .ins = (int32_t)b->node->uses,
                    .outs = (int32_t)b->node->values,
                    .run = &run};
    size_t bytes = kernel->workspace ? kernel->workspace(&call, setting) : 0;
    call.work = bytes ? run_memory(bytes) : NULL;
    int status = kernel->run(&call, setting);
    run_memory_free(call.work);
    return status;
}

/* ---- What the row says ---------------------------------------------------------------------- */

typedef struct {
    int in[MAX_USES], out[MAX_OUTPUTS]; /* the axis of the batch, or what becomes of it */
    int64_t length;                     /* of that axis */
} Split;

static bool passes(const Graph *g, const Node *n, int operand, int axis, int *to)
{
    bool all = true;
    for (int i = 0; i < (int)n->values; i++) {
        to[i] = n->op->batch(g, n, operand, axis, i);
        all &= to[i] != BATCH_MIXED && to[i] != BATCH_ONE && to[i] != BATCH_OWN;
    }
    return all;
}

/* The batch on `axis` of `operand`, and on the axes of the others that come out where it does. */
static bool find_split(const Graph *g, const Node *n, int operand, int axis, Split *s)
{
    if (!passes(g, n, operand, axis, s->out))
        return false;
    s->length = use_view(g, node_use(g, n, (Id)operand)).dim[axis];
    for (int i = 0; i < (int)n->uses; i++) {
        s->in[i] = i == operand ? axis : -1;
        Use use = node_use(g, n, (Id)i);
        int rank = use.value == NONE ? 0 : use_view(g, use).rank, to[MAX_OUTPUTS];
        for (int k = 0; k < rank && i != operand && s->in[i] < 0; k++)
            if (passes(g, n, i, k, to) && use_view(g, use).dim[k] == s->length &&
                memcmp(to, s->out, n->values * sizeof *to) == 0)
                s->in[i] = k;
    }
    return s->length >= PARTS;
}

static double element(const gp_tensor *t, int64_t i)
{
    const char *at = (const char *)t->data + place_of(t, i) * (int64_t)gp_size(t->dtype);
    switch (t->dtype) {
    case GP_F32:
        return (double)*(const gp_real *)at;
    case GP_I32:
        return *(const int32_t *)at;
    case GP_I64:
        return (double)*(const int64_t *)at;
    default:
        return *(const uint8_t *)at;
    }
}

static bool is_near(double got, double want, double scale)
{
    return got == want || (isnan(got) && isnan(want)) || fabs(got - want) <= 1e-5 * (1 + scale);
}

static double largest(const gp_tensor *t)
{
    double most = 0;
    for (int64_t i = 0; t->data && i < gp_count(t); i++)
        most = fmax(most, isfinite(element(t, i)) ? fabs(element(t, i)) : 0);
    return most;
}

/* What errors are relative to: sums may cancel out. */
static double scale_of(const Bench *b)
{
    double scale = 0;
    for (Id i = 0; i < b->node->uses; i++)
        scale = fmax(scale, largest(&b->in[i]));
    for (Id i = 0; i < b->node->values; i++)
        scale = fmax(scale, largest(&b->out[i]));
    return scale;
}

static bool agrees(const gp_tensor *whole, const gp_tensor *part, double scale)
{
    for (int64_t i = 0; i < gp_count(part); i++)
        if (!is_near(element(part, i), element(whole, i), scale))
            return false;
    return true;
}

static bool agrees_summed(const gp_tensor *whole, const gp_tensor *one, const gp_tensor *other,
                          double scale)
{
    for (int64_t i = 0; i < gp_count(whole); i++)
        if (!is_near(element(one, i) + element(other, i), element(whole, i), scale))
            return false;
    return true;
}

/* NULL, or which output is not what the row says. */
static const char *check_split(Arena *arena, const Run *run, const Node *n, const Split *s)
{
    Part in[PARTS + 1][MAX_USES], out[PARTS + 1][MAX_OUTPUTS];
    Bench bench[PARTS + 1];
    int64_t at[PARTS + 1] = {0, s->length / 2, s->length};
    const char *wrong = NULL;
    for (int k = 0; k <= PARTS; k++) { /* the parts, then the whole */
        for (Id i = 0; i < n->uses; i++)
            in[k][i] = (Part){k < PARTS ? s->in[i] : -1, at[k], at[(k + 1) % (PARTS + 1)]};
        for (Id i = 0; i < n->values; i++)
            out[k][i] = (Part){k < PARTS && s->out[i] >= 0 ? s->out[i] : -1, at[k],
                               at[(k + 1) % (PARTS + 1)]};
        bench[k] = bench_new(run, n, in[k], out[k]);
        if (bench_run(&bench[k]) != GP_OK)
            wrong = "its kernel failed";
    }
    double scale = scale_of(&bench[PARTS]);
    for (Id i = 0; i < n->values && !wrong; i++) {
        gp_tensor whole = bench[PARTS].out[i], first = window_of(whole, out[0][i]),
                  second = window_of(whole, out[1][i]);
        bool good = s->out[i] >= 0
                        ? agrees(&first, &bench[0].out[i], scale) &&
                              agrees(&second, &bench[1].out[i], scale)
                        : agrees_summed(&whole, &bench[0].out[i], &bench[1].out[i], scale);
        if (!good)
            wrong = arena_printf(arena, "output %u is another one", i);
    }
    for (int k = 0; k <= PARTS; k++)
        bench_free(&bench[k]);
    return wrong;
}

/* ---- Every row ------------------------------------------------------------------------------ */

static size_t row_number(const OpRow *op)
{
    size_t i = 0;
    while (op_at(i) != op)
        i++;
    return i;
}

static void check_node(Arena *arena, const OpCase *row, const Run *run, const Node *n, bool *passed)
{
    const Graph *g = run->graph;
    if (n->op->flags & OP_RANDOM || n->uses > MAX_USES)
        return; /* hang on the place in the batch, which is not a kernel's to know */
    for (int i = 0; i < (int)n->uses; i++) {
        Use use = node_use(g, n, (Id)i);
        int rank = use.value == NONE ? 0 : use_view(g, use).rank;
        for (int axis = 0; axis < rank; axis++) {
            Split split;
            if (!find_split(g, n, i, axis, &split))
                continue;
            const char *wrong = check_split(arena, run, n, &split);
            cr_expect(!wrong, "%s(%s; %s): %s, the batch on axis %d of operand %d: %s", row->op,
                      row->operands, row->settings, n->op->name, axis, i, wrong);
            passed[row_number(n->op)] = true;
        }
    }
}

static void check_case(const OpCase *row, bool *passed)
{
    Arena *arena = arena_new();
    Built built = case_with_gradients(arena, row);
    int64_t elements = 0;
    for (size_t i = 0; i < built.graph->value.count; i++)
        elements += value_count(&built.graph->value.at[i]);
    if (!built.refused && elements < MAX_ELEMENTS) {
        Run *run = run_new(arena, built.graph);
        RunOptions options = {.seed = 3};
        case_write(run, &built);
        if (run_graph(run, &options) == GP_OK)
            for (size_t i = 0; i < built.graph->node.count; i++)
                check_node(arena, row, run, &built.graph->node.at[i], passed);
        run_free(run);
    }
    free(built.message);
    arena_free(arena);
}

/* Of what these compute, nothing is a sample's; or it takes ranks to see it (tests/ranks). */
static bool is_of_no_sample(const OpRow *op)
{
    static const char *const names[] = {"accumulate",
                                        "accumulate_more",
                                        "accumulate_ranks",
                                        "add_window",
                                        "batchnorm_given",
                                        "batchnorm_given_grad",
                                        "batchnorm_merge",
                                        "batchnorm_part",
                                        "batchnorm_sums",
                                        "clip_factor",
                                        "clip_factor_shards",
                                        "clip_scaled",
                                        "collect",
                                        "commit",
                                        "gather_begin",
                                        "gather_end",
                                        "gather_ranks",
                                        "linear_cross_entropy_accumulate",
                                        "loss_scale",
                                        "reduce_begin",
                                        "reduce_begin_kept",
                                        "reduce_end",
                                        "reduce_end_kept",
                                        "running_stats",
                                        "scatter_accumulate",
                                        "scatter_begin",
                                        "scatter_end",
                                        "shard_squares",
                                        "stage",
                                        "stage_part",
                                        "sum_begin",
                                        "sum_end",
                                        "unscale",
                                        "unscale_shards"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(op->name, names[i]) == 0)
            return true;
    return op->flags & (OP_OPTIMIZER | OP_RANDOM);
}

Test(batch, passes_through_each_row_as_the_row_says)
{
    static bool passed[MAX_ROWS];
    for (size_t table = 0; cases_at(table); table++)
        for (const OpCase *row = cases_at(table); row->op; row++)
            check_case(row, passed);
    for (size_t i = 0; op_at(i); i++)
        if (!op_at(i)->build && !op_at(i)->reads && !is_of_no_sample(op_at(i)))
            cr_expect(passed[i], "no batch passes through %s", op_at(i)->name);
}
