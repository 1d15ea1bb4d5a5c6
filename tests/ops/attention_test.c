/* Attention over long sequences: what it costs in memory, and that it is still right. */
#include "tests/ops/cases.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

enum { LONG = 16384, SIZE = 2 };

/* sdpa on [1, 1, T, SIZE] as a graph; its one node is last. */
static Graph *graph_of(Arena *arena, int64_t length, Call *call)
{
    Graph *g = graph_new(arena, diag_new(arena, stderr, false), NULL);
    Call from = {.op = op_find("sdpa"), .name = "case"};
    const int64_t dim[4] = {1, 1, length, SIZE};
    *call = call_begin(g, &from, "sdpa");
    call_set(call, "causal", 1);
    for (int i = 0; i < 3; i++)
        call_use(g, call,
                 use_of(graph_value(g, VALUE_INPUT, arena_printf(arena, "x%d", i), F32, 4, dim,
                                    (Span){0})));
    cr_assert(call_finish(g, call));
    return g;
}

static size_t workspace_of(int64_t length, int threads)
{
    gp_tensor t = {.dtype = GP_F32, .rank = 4, .dim = {1, 1, length, 64}};
    gp_tensor in[4] = {t, t, t};
    gp_run run = {.threads = threads};
    gp_call call = {.in = in, .ins = 4, .run = &run};
    gp_setting setting[MAX_ARGS] = {{0}};
    const gp_kernel *kernel = runtime_kernel("attend");
    return kernel->workspace ? kernel->workspace(&call, setting) : 0;
}

Test(attention, scratch_does_not_grow_with_the_length)
{
    cr_expect_eq(workspace_of(64, 1), workspace_of(LONG, 1));
    cr_expect_eq(workspace_of(64, 4), workspace_of(INT64_C(1) << 40, 4));
    cr_expect(workspace_of(LONG, 1) < 128 * 1024, "%zu", workspace_of(LONG, 1));
    cr_expect_eq(workspace_of(64, 4), 4 * workspace_of(64, 1));
}

/* No intermediate is larger than what goes in. */
Test(attention, layer_has_no_value_of_the_size_of_the_scores)
{
    Arena *arena = arena_new();
    Graph *g = graph_new(arena, diag_new(arena, stderr, false), NULL);
    Call from = {.op = op_find("attention"), .name = "case"};
    Call call = call_begin(g, &from, "attention");
    const int64_t dim[3] = {2, LONG, 64};
    call_use(g, &call, use_of(graph_value(g, VALUE_INPUT, "x", F32, 3, dim, (Span){0})));
    call_set(&call, "heads", 8);
    cr_assert(call_finish(g, &call));
    for (size_t i = 0; i < g->value.count; i++)
        cr_expect(value_count(&g->value.at[i]) <= INT64_C(2) * LONG * 64, "%s",
                  g->value.at[i].name);
    for (size_t i = 0; i < g->node.count; i++)
        cr_expect_str_neq(g->node.at[i].op->name, "copy", "heads are views");
    arena_free(arena);
}

/* Rows of a long sequence against the definition, in double. */
Test(attention, long_sequence_is_right_and_does_not_depend_on_threads)
{
    static const int64_t rows[] = {0, 1, 63, 64, 8191, LONG - 1};
    Arena *arena = arena_new();
    Call call;
    Graph *g = graph_of(arena, LONG, &call);
    Run *run = run_new(arena, g);
    Tensor in[3];
    for (int i = 0; i < 3; i++) {
        in[i] = tensor_new(arena, F32, 4, (int64_t[]){1, 1, LONG, SIZE});
        tensor_fill(&in[i], (uint64_t)i + 1, -3, 3);
        run_write(run, call.use.at[i].value, &in[i]);
    }
    cr_assert_eq(run_graph(run, &(RunOptions){.threads = 2}), GP_OK);
    Tensor y = run_read(run, arena, call.result.at[0]);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        double total = 0, want[SIZE] = {0};
        for (int64_t s = 0; s <= rows[k]; s++) {
            double score = 0;
            for (int d = 0; d < SIZE; d++)
                score += in[0].at[rows[k] * SIZE + d] * in[1].at[s * SIZE + d] / sqrt(SIZE);
            total += exp(score);
            for (int d = 0; d < SIZE; d++)
                want[d] += exp(score) * in[2].at[s * SIZE + d];
        }
        for (int d = 0; d < SIZE; d++)
            cr_expect(fabs(y.at[rows[k] * SIZE + d] - want[d] / total) < 2e-5, "row %lld",
                      (long long)rows[k]);
    }
    run_free(run);
    arena_free(arena);
}

/* Output 1 of the kernel, for gradients: the largest score, and the sum below it. */
Test(attention, saves_the_sum_below_the_largest_score)
{
    Arena *arena = arena_new();
    Call call;
    enum { LENGTH = 70 };
    Graph *g = graph_of(arena, LENGTH, &call);
    Run *run = run_new(arena, g);
    Tensor in[3];
    for (int i = 0; i < 3; i++) {
        in[i] = tensor_new(arena, F32, 4, (int64_t[]){1, 1, LENGTH, SIZE});
        tensor_fill(&in[i], (uint64_t)i + 1, -3, 3);
        run_write(run, call.use.at[i].value, &in[i]);
    }
    cr_assert_eq(run_graph(run, &(RunOptions){0}), GP_OK);
    Tensor saved = run_read(run, arena, use_of(node_value(&g->node.at[g->node.count - 1], 1)));
    for (int64_t t = 0; t < LENGTH; t++) {
        double total = 0, most = -INFINITY;
        for (int64_t s = 0; s <= t; s++) {
            double score = 0;
            for (int d = 0; d < SIZE; d++)
                score += in[0].at[t * SIZE + d] * in[1].at[s * SIZE + d] / sqrt(SIZE);
            total += exp(score);
            most = fmax(most, score);
        }
        cr_expect_float_eq(saved.at[2 * t], most, 1e-5 * (1 + fabs(most)));
        cr_expect_float_eq(saved.at[2 * t + 1] / (total / exp(most)), 1, 1e-5);
    }
    run_free(run);
    arena_free(arena);
}
