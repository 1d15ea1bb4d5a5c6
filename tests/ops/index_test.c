/* An index outside its table is an error that nothing is read or written for. */
#include "tests/ops/cases.h"

#include <criterion/criterion.h>

typedef struct {
    const char *op, *setting;
    double number; /* of the setting */
    int index;     /* which operand holds indices */
    int64_t size;  /* of their table */
    bool from_end; /* negative indices count from its end */
    int rank[3];   /* of the operands; -1: none */
    int64_t dim[3][2];
} IndexCase;

static const IndexCase cases[] = {
    {"gather", "axis", 1, 1, 5, true, {2, 1, -1}, {{3, 5}, {4}}},
    {"embedding", NULL, 0, 0, 5, true, {1, 2, -1}, {{4}, {5, 3}}},
    {"one_hot", "depth", 5, 0, 5, false, {1, -1, -1}, {{4}}},
    {"scatter_add", NULL, 0, 1, 5, true, {2, 1, 2}, {{5, 3}, {4}, {4, 3}}},
    {"gather_elements", "axis", 1, 1, 5, true, {2, 2, -1}, {{3, 5}, {3, 4}}},
    {"gather_nd", NULL, 0, 1, 5, true, {2, 2, -1}, {{5, 5}, {3, 2}}},
    {"scatter", "axis", 0, 1, 5, true, {2, 2, 2}, {{5, 3}, {4, 3}, {4, 3}}},
    {"scatter_nd", NULL, 0, 1, 5, true, {2, 2, 1}, {{5, 5}, {3, 2}, {3}}},
    {"cross_entropy", NULL, 0, 1, 5, false, {2, 1, -1}, {{4, 5}, {4}}},
    {"nll", NULL, 0, 1, 5, false, {2, 1, -1}, {{4, 5}, {4}}},
};

/* What the graph returns with `number` as the last of the indices, the others being right. */
static int run_with(const IndexCase *test, Dtype dtype, double number)
{
    Arena *arena = arena_new();
    Graph *g = graph_new(arena, diag_new(arena, stderr, false), NULL);
    Call from = {.op = op_find(test->op), .name = "case"};
    Call call = call_begin(g, &from, test->op);
    if (test->setting)
        call_set(&call, test->setting, test->number);
    for (int i = 0; i < 3 && test->rank[i] >= 0; i++)
        call_use(g, &call,
                 use_of(graph_value(g, VALUE_INPUT, arena_printf(arena, "x%d", i),
                                    i == test->index ? dtype : F32, test->rank[i], test->dim[i],
                                    (Span){0})));
    cr_assert(call_finish(g, &call));
    Run *run = run_new(arena, g);
    for (int i = 0; i < 3 && test->rank[i] >= 0; i++) {
        Tensor t = tensor_new(arena, i == test->index ? dtype : F32, test->rank[i], test->dim[i]);
        tensor_fill(&t, 1, 0, 1);
        if (i == test->index)
            t.at[t.count - 1] = number;
        run_write(run, call.use.at[i].value, &t);
    }
    int status = run_graph(run, &(RunOptions){0});
    run_free(run);
    arena_free(arena);
    return status;
}

Test(index, outside_the_table_is_an_error)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const IndexCase *test = &cases[i];
        for (int wide = 0; wide < 2; wide++) {
            Dtype dtype = wide ? I64 : I32;
            cr_expect_eq(run_with(test, dtype, 0), GP_OK, "%s", test->op);
            cr_expect_eq(run_with(test, dtype, (double)test->size - 1), GP_OK, "%s", test->op);
            cr_expect_eq(run_with(test, dtype, (double)test->size), GP_EINDEX, "%s", test->op);
            int below = test->from_end ? GP_OK : GP_EINDEX;
            cr_expect_eq(run_with(test, dtype, -1), below, "%s", test->op);
            cr_expect_eq(run_with(test, dtype, -(double)test->size), below, "%s", test->op);
            cr_expect_eq(run_with(test, dtype, -(double)test->size - 1), GP_EINDEX, "%s", test->op);
            cr_expect_eq(run_with(test, dtype, wide ? -0x1p62 : -0x1p31), GP_EINDEX, "%s",
                         test->op);
            cr_expect_eq(run_with(test, dtype, wide ? 0x1p62 : 0x1p31 - 1), GP_EINDEX, "%s",
                         test->op);
        }
    }
}
