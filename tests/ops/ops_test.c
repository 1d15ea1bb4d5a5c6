/* Every op, from its row: the cases of all tables, in every way the row allows. */
#include "tests/ops/derived.h"

#include "runtime/runtime.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static void check_all_of(const OpRow *op)
{
    for (size_t table = 0; cases_at(table); table++)
        for (const OpCase *row = cases_at(table); row->op; row++) {
            if (strcmp(row->op, op->name) != 0)
                continue;
            Arena *arena = arena_new();
            const char *wrong = case_check(arena, row);
            cr_expect(!wrong, "%s", wrong);
            arena_free(arena);
        }
}

Test(ops, give_what_their_references_give)
{
    for (size_t i = 0; op_at(i); i++)
        check_all_of(op_at(i));
}

/* In 16 bits, by the kernels that take them. */
static void check_narrow(const OpRow *op, Dtype dtype, size_t *cases)
{
    for (size_t table = 0; cases_at(table); table++)
        for (const OpCase *row = cases_at(table); row->op; row++) {
            if (strcmp(row->op, op->name) != 0)
                continue;
            Arena *arena = arena_new();
            const OpCase narrow = case_narrowed(arena, row, dtype);
            const char *wrong = narrow.op ? case_check(arena, &narrow) : NULL;
            cr_expect(!wrong, "%s", wrong);
            *cases += narrow.op != NULL;
            arena_free(arena);
        }
}

Test(ops, give_the_same_in_16_bits_up_to_rounding)
{
    size_t cases = 0;
    for (size_t i = 0; op_at(i); i++) {
        check_narrow(op_at(i), F16, &cases);
        check_narrow(op_at(i), BF16, &cases);
    }
    printf("%zu cases in 16 bits\n", cases);
    cr_expect_gt(cases, 50);
}

Test(ops, refuse_wrong_calls_with_a_reason)
{
    for (size_t table = 0; errors_at(table); table++)
        for (const OpError *row = errors_at(table); row->op; row++) {
            Arena *arena = arena_new();
            const char *wrong = case_refused(arena, row);
            cr_expect(!wrong, "%s", wrong);
            arena_free(arena);
        }
}

static void note(void *to, const OpRow *op)
{
    bool *reached = to;
    for (size_t i = 0; op_at(i); i++)
        reached[i] |= op_at(i) == op;
}

/* Hidden rows of gradients are run by the same cases: see tests/gradients. */
static void note_gradient(Arena *arena, const OpCase *row, bool *reached)
{
    Derived d;
    const char *wrong = NULL;
    if (op_find(row->op)->flags & OP_EFFECT)
        return;
    if (case_derive(arena, row, &d, &wrong) && !wrong)
        for (size_t i = 0; i < d.built.graph->node.count; i++)
            note(reached, d.built.graph->node.at[i].op);
    free(d.built.message);
}

Test(ops, all_have_a_case)
{
    enum { MANY = 1024 };
    static bool reached[MANY];
    for (size_t table = 0; cases_at(table); table++)
        for (const OpCase *row = cases_at(table); row->op; row++) {
            Arena *arena = arena_new();
            case_ops(arena, row, note, reached);
            note_gradient(arena, row, reached);
            arena_free(arena);
        }
    for (size_t i = 0; op_at(i) && i < MANY; i++)
        if (!op_at(i)->reads &&           /* a derivative, made from another row's expression */
            !(op_at(i)->flags & OP_HOST)) /* tests/ranks */
            cr_expect(reached[i], "no case reaches the op %s", op_at(i)->name);
}
