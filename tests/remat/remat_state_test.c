/* The edited state against a state laid out afresh from the same sequence. */
#include <criterion/criterion.h>

#include "planner/remat/internal.h"
#include "remat_generate.h"

static RematSchedule sequence(const RematState *state, Arena *arena)
{
    RematSchedule schedule = {ARENA_ARRAY(arena, RematId, (size_t)state->slots), 0};
    for (int32_t i = 0; i < state->slots; i++)
        if (state->at[i] >= 0)
            schedule.node[schedule.count++] = (RematId)state->at[i];
    return schedule;
}

/* In-place pairs, workspace, outputs and an overwritten value on top of a random graph. */
static RematProblem rich_problem(Arena *arena, uint64_t seed)
{
    RematProblem problem = generate_random(arena, 40, 9, seed);
    problem.in_place = ARENA_ARRAY(arena, RematInPlace, problem.reads);
    for (RematId x = 0; x < problem.nodes; x++) {
        problem.node[x].workspace = (int64_t)(generate_bits(&seed) % 4);
        for (RematId i = 0; i < problem.node[x].reads; i++) {
            RematId input = problem.read[problem.node[x].read + i];
            if (problem.value[input].size >= problem.value[x].size)
                problem.in_place[problem.in_places++] = (RematInPlace){x, input, x};
        }
    }
    problem.value[7].flags |= REMAT_OUTPUT;
    problem.value[3].drop_at = 20;
    RematId last = problem.nodes - 1;
    problem.node[last].flags |= REMAT_ONCE;
    problem.value[problem.read[problem.node[last].read]].killer = last;
    return problem;
}

Test(remat_state, agrees_with_a_fresh_layout_after_any_moves)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        Arena *arena = arena_new();
        RematProblem problem = rich_problem(arena, seed);
        cr_assert_null(remat_problem_error(&problem));
        RematModel *model = remat_model(&problem, arena);
        RematState *state = remat_state(model, 30, arena), *fresh = remat_state(model, 30, arena);
        RematSchedule given = remat_order(model, 0, arena);
        remat_layout(state, given.node, given.count);
        RematMover mover = {.state = state, .random = {seed}, .order_share = 50, .limit = 80};
        for (int i = 0; i < 2000; i++) {
            int64_t penalty = state->penalty, extra = state->extra;
            bool keep = remat_move(&mover) && !state->bad && i % 3;
            if (keep)
                remat_commit(state);
            else
                remat_undo(state);
            if (!keep)
                cr_assert(state->penalty == penalty && state->extra == extra && !state->bad);
            if (state->length > state->slots / 8 * 5) {
                RematSchedule now = sequence(state, arena);
                remat_layout(state, now.node, now.count);
            }
            if (i % 50)
                continue;
            RematSchedule now = sequence(state, arena);
            remat_layout(fresh, now.node, now.count);
            cr_assert_eq(remat_state_peak(state), remat_state_peak(fresh));
            cr_assert_eq(state->extra, fresh->extra);
            cr_assert_eq(state->repeats, fresh->repeats);
            RematValuation value = remat_evaluate(&problem, &now);
            if (value.valid)
                cr_assert_eq(value.peak, remat_state_peak(state));
        }
        arena_free(arena);
    }
}

Test(remat_order, every_order_is_valid)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        Arena *arena = arena_new();
        RematProblem problem = rich_problem(arena, seed);
        problem.value[3].drop_at = REMAT_NONE;
        RematModel *model = remat_model(&problem, arena);
        for (int kind = 0; kind < REMAT_ORDERS; kind++) {
            RematSchedule order = remat_order(model, kind, arena);
            RematValuation value = remat_evaluate(&problem, &order);
            cr_expect(value.valid, "order %d of seed %d: %s", kind, (int)seed, value.why);
            cr_expect_eq(order.count, problem.nodes);
        }
        arena_free(arena);
    }
}

/* What can run from the start and only adds runs in the order of what it adds. */
Test(remat_order, lists_what_adds_least_first)
{
    enum { NODES = 40 };
    Arena *arena = arena_new();
    uint64_t seed = 3;
    RematProblem problem = {.nodes = NODES, .values = NODES};
    problem.node = ARENA_ARRAY(arena, RematNode, NODES);
    problem.value = ARENA_ARRAY(arena, RematValue, NODES);
    for (RematId i = 0; i < NODES; i++) {
        problem.node[i] = (RematNode){.cost = 1, .value = i, .values = 1};
        problem.value[i] = (RematValue){.size = 1 + (int64_t)(generate_bits(&seed) % 1000),
                                        .node = i,
                                        .killer = REMAT_NONE,
                                        .drop_at = REMAT_NONE,
                                        .flags = REMAT_OUTPUT};
    }
    cr_assert_null(remat_problem_error(&problem));
    RematSchedule order = remat_order(remat_model(&problem, arena), 2, arena);
    cr_assert_eq(order.count, NODES);
    for (size_t i = 1; i < NODES; i++)
        cr_expect_leq(problem.value[order.node[i - 1]].size, problem.value[order.node[i]].size,
                      "place %zu", i);
    arena_free(arena);
}
