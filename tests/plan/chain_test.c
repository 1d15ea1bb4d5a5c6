/* Chains of blocks: what each block stores, stamped onto all that are like it. */
#include "planner/chain.h"
#include "planner/internal.h"
#include "tests/plan/planned.h"

#include <criterion/criterion.h>
#include <string.h>

enum { LAYERS = 12 };

/* Layers of one structure between two that are not; %s: a hint before the layer, one in it. */
static const char deep[] = "model deep(batch B = 4, C = 16, L = 12)\n"
                           "input x : f32[B, 64, C]\ninput target : f32[B, 64, C]\n"
                           "%sblock layer(x) {\n  a = dense(layernorm(x), 4*C)\n  h = gelu(a)\n%s"
                           "  return x + dense(h, C)\n}\n"
                           "h = dense(x, C)\nrepeat i in 0..L { h = layer(h) }\ny = dense(h, C)\n"
                           "output y\ntrain mse(y, target) using adam(lr = 1e-3)\n";

static Planned plan_deep(const char *before, const char *inside, const PlanOptions *how)
{
    static char text[1024]; /* messages point into it */
    snprintf(text, sizeof text, deep, before, inside);
    return planned_training(text, how);
}

static RematProgram training_step(const Planned *p)
{
    static const PlanOptions plain = {0};
    Order order = order_given(p->arena, p->clusters);
    Task task = task_new(p->arena, p->graph, p->clusters, &p->target, &plain);
    return remat_build(p->arena, &task, &order, PROGRAM_STEP, false);
}

/* How often each node runs. */
static Id *count_runs(Arena *arena, const RematProblem *problem, const RematSchedule *schedule)
{
    Id *runs = ARENA_ARRAY(arena, Id, problem->nodes);
    for (size_t i = 0; i < schedule->count; i++)
        runs[schedule->node[i]]++;
    return runs;
}

Test(chain, goes_from_storing_all_to_storing_inputs)
{
    Planned p = plan_deep("", "", NULL);
    RematProgram a = training_step(&p);
    Chain *chain = chain_new(&a.problem, a.block[0], a.back, p.arena);
    cr_assert_not_null(chain);
    size_t count;
    const ChainPoint *point = chain_points(chain, &count);
    cr_assert_geq(count, LAYERS);
    RematSchedule first = chain_schedule(chain, 0);
    cr_assert_eq(first.count, a.problem.nodes);
    for (size_t i = 0; i < count; i++) {
        RematSchedule schedule = chain_schedule(chain, i);
        RematValuation is = remat_evaluate(&a.problem, &schedule);
        cr_assert(is.valid, "point %zu: %s", i, is.why);
        cr_assert_eq(is.peak, point[i].peak);
        cr_assert(is.cost == point[i].cost);
        cr_assert(!i || point[i].cost > point[i - 1].cost, "point %zu", i);
    }
    cr_assert_lt(point[count - 1].peak, point[0].peak / 2);
    planned_free(&p);
}

Test(chain, stamps_one_policy_onto_equal_blocks)
{
    Planned p = plan_deep("", "", NULL);
    RematProgram a = training_step(&p);
    Chain *chain = chain_new(&a.problem, a.block[0], a.back, p.arena);
    size_t count;
    chain_points(chain, &count);
    RematSchedule last = chain_schedule(chain, count - 1);
    const Id *runs = count_runs(p.arena, &a.problem, &last);
    Id again[LAYERS] = {0};
    for (RematId n = 0; n < a.problem.nodes; n++)
        if (a.block[0][n] != NONE)
            again[a.block[0][n]] += runs[n] - 1;
    cr_assert_gt(again[0], 0);
    for (int b = 1; b < LAYERS; b++)
        cr_assert_eq(again[b], again[0], "block %d", b);
    planned_free(&p);
}

Test(chain, never_runs_again_what_is_kept)
{
    Planned p = plan_deep("", "  keep h\n", NULL);
    RematProgram a = training_step(&p);
    Chain *chain = chain_new(&a.problem, a.block[0], a.back, p.arena);
    size_t count;
    chain_points(chain, &count);
    RematSchedule last = chain_schedule(chain, count - 1);
    const Id *runs = count_runs(p.arena, &a.problem, &last);
    Id kept = 0;
    for (RematId n = 0; n < a.problem.nodes; n++)
        if (a.problem.node[n].flags & REMAT_ONCE && n < a.back) {
            cr_assert_eq(runs[n], 1);
            kept++;
        }
    cr_assert_eq(kept, LAYERS);
    cr_assert_gt(last.count, a.problem.nodes);
    planned_free(&p);
}

Test(chain, drops_at_every_point_what_is_to_be_recomputed)
{
    Planned p = plan_deep("checkpoint ", "", NULL);
    RematProgram a = training_step(&p);
    Chain *chain = chain_new(&a.problem, a.block[0], a.back, p.arena);
    if (chain) { /* a hint on all there is leaves no choice */
        size_t count;
        chain_points(chain, &count);
        for (size_t i = 0; i < count; i++) {
            RematSchedule schedule = chain_schedule(chain, i);
            cr_assert(remat_evaluate(&a.problem, &schedule).valid, "point %zu", i);
        }
    }
    cr_assert(a.hinted);
    planned_free(&p);
}

static char *dumped(const Planned *p)
{
    char *text;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    plan_dump(p->plan, to);
    fclose(to);
    return text;
}

Test(chain, makes_the_same_plan_twice_within_the_budget)
{
    Planned whole = plan_deep("", "", NULL);
    PlanOptions how = {.budget = whole.plan->arena[SPACE_ARENA] / 2, .effort = 20};
    Planned one = plan_deep("", "", &how), two = plan_deep("", "", &how);
    char *first = dumped(&one), *second = dumped(&two);
    cr_assert_leq(one.plan->arena[SPACE_ARENA], how.budget);
    cr_assert_str_eq(first, second);
    free(first);
    free(second);
    planned_free(&whole);
    planned_free(&one);
    planned_free(&two);
}

/* Whatever else is searched, the chain alone bounds what a plan costs. */
Test(chain, bounds_what_a_plan_costs)
{
    Planned whole = plan_deep("", "", NULL);
    RematProgram a = training_step(&whole);
    Chain *chain = chain_new(&a.problem, a.block[0], a.back, whole.arena);
    size_t count;
    const ChainPoint *point = chain_points(chain, &count);
    for (size_t i = 0; i < count; i += count / 4) {
        uint64_t bytes = (uint64_t)point[i].peak + whole.plan->persistent;
        PlanOptions how = {.budget = bytes + bytes / 8, .effort = 20};
        Planned p = plan_deep("", "", &how);
        cr_assert_leq(p.plan->arena[SPACE_ARENA], how.budget);
        cr_assert(p.plan->cost - p.search.least_cost <=
                      1.0001 * (point[i].cost - point[0].cost) + 1e-12,
                  "point %zu", i);
        planned_free(&p);
    }
    planned_free(&whole);
}

Test(chain, is_there_when_the_search_is_cut_short)
{
    static const volatile sig_atomic_t stopped = 1;
    Planned whole = plan_deep("", "", NULL);
    /* a chain alone, each layer of which stores its input, takes half of the arena and 544 bytes */
    PlanOptions how = {.budget = whole.plan->arena[SPACE_ARENA] / 20 * 11, .effort = 20}, cut = how;
    cut.cancel = &stopped;
    Planned p = plan_deep("", "", &cut), full = plan_deep("", "", &how);
    cr_assert(p.search.cut);
    cr_assert_leq(p.plan->arena[SPACE_ARENA], how.budget);
    cr_assert(p.plan->cost <= 1.02 * full.plan->cost, "%g %g", p.plan->cost, full.plan->cost);
    planned_free(&whole);
    planned_free(&p);
    planned_free(&full);
}
