/* Schedules moved back towards the given order. */
#include <criterion/criterion.h>
#include <string.h>

#include "remat_check.h"
#include "remat_generate.h"

static Arena *arena;

static void setup(void)
{
    arena = arena_new();
}

static void teardown(void)
{
    arena_free(arena);
}

TestSuite(settle, .init = setup, .fini = teardown);

static RematResult solve(const RematProblem *problem, int64_t budget)
{
    RematOptions options = {.budget = budget, .effort = 60, .seed = 1, .no_bound = true};
    return remat_solve(problem, &options, arena);
}

static int64_t between(const RematProblem *problem, int part)
{
    RematSchedule given = remat_baseline(problem, arena);
    int64_t floor = remat_floor(problem), peak = remat_evaluate(problem, &given).peak;
    return floor + (peak - floor) * part / 4;
}

/* How often each node runs. */
static RematId *count_runs(const RematProblem *problem, const RematSchedule *schedule)
{
    RematId *runs = ARENA_ARRAY(arena, RematId, problem->nodes);
    for (size_t i = 0; i < schedule->count; i++)
        runs[schedule->node[i]]++;
    return runs;
}

/* Neighbours that run for the first time and are not in the given order. */
static int count_disorder(const RematProblem *problem, const RematSchedule *schedule)
{
    bool *ran = ARENA_ARRAY(arena, bool, problem->nodes);
    int disorder = 0;
    RematId last = 0;
    for (size_t i = 0; i < schedule->count; i++) {
        RematId n = schedule->node[i];
        if (ran[n])
            continue;
        disorder += n < last;
        last = n;
        ran[n] = true;
    }
    return disorder;
}

Test(settle, keeps_occurrences_rules_and_limit)
{
    int before = 0, after = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        RematProblem problem = generate_random(arena, 60, 8, seed);
        RematResult found = solve(&problem, between(&problem, 1 + (int)(seed % 3)));
        int64_t limit = found.peak + (int64_t)(seed % 4);
        RematSchedule settled = remat_settle(&problem, &found.schedule, limit, arena);
        int64_t peak = check_peak(&problem, &settled);
        cr_expect_geq(peak, 0, "a rule is broken, seed %d", (int)seed);
        cr_expect_leq(peak, limit);
        cr_assert_eq(settled.count, found.schedule.count);
        cr_expect_arr_eq(count_runs(&problem, &settled), count_runs(&problem, &found.schedule),
                         problem.nodes * sizeof(RematId));
        before += count_disorder(&problem, &found.schedule);
        after += count_disorder(&problem, &settled);
    }
    cr_expect_lt(2 * after, before, "%d were out of order, %d still are", before, after);
}

Test(settle, gives_the_given_order_back_where_nothing_limits_it)
{
    RematProblem problem = generate_decoder(arena, 300);
    RematSchedule given = remat_baseline(&problem, arena);
    for (RematId n = 0; n < problem.nodes; n++)
        problem.node[n].flags |= REMAT_ONCE;
    RematResult found = solve(&problem, between(&problem, 3));
    cr_assert_gt(count_disorder(&problem, &found.schedule), 0);
    RematSchedule settled = remat_settle(&problem, &found.schedule, INT64_MAX / 4, arena);
    cr_assert_eq(settled.count, given.count);
    cr_expect_arr_eq(settled.node, given.node, given.count * sizeof *given.node);
}

/* Of equal layers each is run again in the same way, and just before it is needed. */
Test(settle, runs_again_just_before_the_reader)
{
    Generator g = generate_begin(arena);
    RematId in = generate_source(&g), value[4];
    value[0] = generate_node(&g, 1, 4, &in, 1);
    value[1] = generate_node(&g, 1, 4, &value[0], 1);
    value[2] = generate_node(&g, 1, 4, &value[1], 1);
    RematId both[] = {value[2], value[0]};
    value[3] = generate_node(&g, 1, 4, both, 2);
    RematProblem problem = generate_end(&g);
    RematId early[] = {0, 1, 0, 2, 3}, late[] = {0, 1, 2, 0, 3};
    RematSchedule found = {early, 5};
    RematSchedule settled = remat_settle(&problem, &found, 1000, arena);
    cr_assert_eq(settled.count, 5);
    cr_expect_arr_eq(settled.node, late, sizeof late);
}

/* Layers of a wide node, then one that ends the life of a stored value; the first layer, where most
 * is stored, can only run them the other way round. */
static RematProblem generate_layers(int layers)
{
    Generator g = generate_begin(arena);
    RematId in = generate_source(&g), *stored = ARENA_ARRAY(arena, RematId, (size_t)layers);
    for (int i = 0; i < layers; i++)
        stored[i] = generate_node(&g, 1, 10, &in, 1);
    RematId x = generate_node(&g, 1, 1, &in, 1);
    for (int i = 0; i < layers; i++) {
        RematId wide = generate_node(&g, 1, 12, &x, 1);
        RematId last = generate_node(&g, 1, 4, (RematId[]){stored[i], x}, 2);
        x = generate_node(&g, 1, 1, (RematId[]){wide, last}, 2);
    }
    return generate_end(&g);
}

Test(settle, equal_layers_follow_one_that_cannot_go_back)
{
    RematProblem problem = generate_layers(4);
    RematId one[] = {0, 1, 2, 3, 4, 6, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    RematId all[] = {0, 1, 2, 3, 4, 6, 5, 7, 9, 8, 10, 12, 11, 13, 15, 14, 16};
    RematSchedule found = {one, problem.nodes}, given = remat_baseline(&problem, arena);
    cr_assert_eq(remat_evaluate(&problem, &given).peak, 57);
    cr_assert_eq(remat_evaluate(&problem, &found).peak, 47);
    RematSchedule settled = remat_settle(&problem, &found, 50, arena);
    cr_expect_arr_eq(settled.node, all, sizeof all);
    settled = remat_settle(&problem, &found, 57, arena);
    cr_expect_arr_eq(settled.node, given.node, sizeof all);
}

/* What the check is there for: an occurrence that goes one too far. */
Test(settle, one_step_too_far_breaks_a_rule)
{
    int broken = 0;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        RematProblem problem = generate_random(arena, 40, 4, seed);
        RematResult found = solve(&problem, between(&problem, 2));
        RematSchedule settled = remat_settle(&problem, &found.schedule, found.peak, arena);
        RematId *runs = count_runs(&problem, &settled);
        for (size_t i = 1; i < settled.count; i++) {
            RematId n = settled.node[i], before = settled.node[i - 1];
            const RematNode *node = &problem.node[n];
            bool needs = false;
            for (RematId k = 0; k < node->reads; k++)
                needs |= problem.value[problem.read[node->read + k]].node == before;
            if (!needs || runs[before] > 1)
                continue;
            settled.node[i - 1] = n;
            settled.node[i] = before;
            cr_expect_lt(check_peak(&problem, &settled), 0);
            cr_expect_not(remat_evaluate(&problem, &settled).valid);
            settled.node[i - 1] = before;
            settled.node[i] = n;
            broken++;
        }
    }
    cr_expect_gt(broken, 20);
}
