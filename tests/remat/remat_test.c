/* The search on generated problems: against the true optimum, against Revolve, against a second
 * evaluation; its rules, its stops, its texts. */
#include <criterion/criterion.h>
#include <math.h>
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

TestSuite(remat, .init = setup, .fini = teardown);

static int64_t baseline_peak(const RematProblem *problem)
{
    RematSchedule given = remat_baseline(problem, arena);
    return remat_evaluate(problem, &given).peak;
}

static RematResult solve(const RematProblem *problem, int64_t budget, uint64_t effort)
{
    RematOptions options = {.budget = budget, .effort = effort, .seed = 1};
    return remat_solve(problem, &options, arena);
}

static void expect_honest(const RematProblem *problem, const RematResult *result, int64_t budget)
{
    int64_t peak = check_peak(problem, &result->schedule);
    cr_expect_eq(peak, result->peak, "peak %lld, checked %lld", (long long)result->peak,
                 (long long)peak);
    cr_expect_float_eq(check_cost(problem, &result->schedule), result->cost, 1e-6 * result->cost);
    if (result->fits)
        cr_expect_leq(peak, budget);
}

Test(remat, reaches_the_optimum_of_tiny_graphs_and_never_beats_it)
{
    int reached = 0, feasible = 0;
    for (uint64_t seed = 1; seed <= 25; seed++) {
        RematProblem problem = generate_random(arena, 9, 5, seed);
        int64_t floor = remat_floor(&problem), peak = baseline_peak(&problem);
        int64_t budget = floor + (peak - floor) / 4;
        long best = exact_cost(&problem, budget);
        RematResult result = solve(&problem, budget, 100);
        cr_expect_leq(remat_bound(&problem, budget), best < 0 ? 1e9 : (double)best + 1e-6);
        cr_expect(best >= 0 || !result.fits);
        if (best < 0)
            continue;
        feasible++;
        expect_honest(&problem, &result, budget);
        cr_expect(!result.fits || result.cost >= (double)best - 1e-6);
        reached += result.fits && result.cost <= (double)best + 1e-6;
    }
    cr_expect_geq(feasible, 10);
    cr_expect_geq(reached, feasible - 2, "%d of %d", reached, feasible);
}

Test(remat, reverses_a_chain_in_the_fewest_steps)
{
    static const int cases[][2] = {{4, 1}, {6, 2}, {10, 2}, {10, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int steps = cases[i][0], snapshots = cases[i][1];
        RematProblem problem = generate_reversal(arena, steps);
        cr_assert_null(remat_problem_error(&problem));
        RematResult result = solve(&problem, snapshots + 1, 120);
        cr_assert(result.fits);
        expect_honest(&problem, &result, snapshots + 1);
        cr_expect_float_eq(result.cost, (double)revolve_steps(steps, snapshots), 1e-9,
                           "%d steps, %d snapshots: %g", steps, snapshots, result.cost);
    }
}

Test(remat, tells_the_truth_about_random_graphs)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        RematProblem problem = generate_random(arena, 60, 12, seed);
        int64_t peak = baseline_peak(&problem);
        for (int share = 100; share >= 50; share -= 10) {
            RematResult result = solve(&problem, peak * share / 100, 30);
            expect_honest(&problem, &result, peak * share / 100);
            cr_expect_geq(result.peak, result.floor);
            if (result.fits)
                cr_expect_geq(result.cost, result.bound * (1 - 1e-9));
        }
    }
}

Test(remat, needs_nothing_extra_at_the_peak_of_the_given_order)
{
    RematProblem problem = generate_decoder(arena, 300);
    RematResult result = solve(&problem, baseline_peak(&problem), 10);
    cr_expect(result.fits);
    cr_expect_eq(result.stop, REMAT_PROVED);
    cr_expect_float_eq(result.cost, result.base_cost, 1e-9);
}

Test(remat, halves_the_memory_of_a_decoder_close_to_the_bound)
{
    RematProblem problem = generate_decoder(arena, 300);
    int64_t budget = baseline_peak(&problem) / 2;
    RematResult result = solve(&problem, budget, 300);
    cr_assert(result.fits);
    expect_honest(&problem, &result, budget);
    double extra = result.cost - result.base_cost, bound = result.bound - result.base_cost;
    cr_expect_leq(extra, 1.2 * bound, "%g against %g", extra, bound);
}

Test(remat, finds_the_smallest_peak_and_the_budget_accepts_it)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        RematProblem problem = generate_random(arena, 8, 4, seed);
        RematOptions options = {.effort = 40, .seed = 1};
        RematResult least = remat_minimize(&problem, &options, arena);
        cr_assert(least.fits);
        cr_expect_eq(check_peak(&problem, &least.schedule), least.peak);
        cr_expect_lt(exact_cost(&problem, least.peak - 1), 0, "seed %d: %lld is not the least",
                     (int)seed, (long long)least.peak);
        options.budget = least.peak;
        options.start = &least.schedule;
        options.starts = 1;
        cr_expect(remat_solve(&problem, &options, arena).fits);
    }
}

Test(remat, gives_the_same_schedule_for_the_same_seed)
{
    RematProblem problem = generate_random(arena, 80, 10, 5);
    int64_t budget = baseline_peak(&problem) * 7 / 10;
    RematResult a = solve(&problem, budget, 50), b = solve(&problem, budget, 50);
    cr_assert_eq(a.schedule.count, b.schedule.count);
    cr_expect_arr_eq(a.schedule.node, b.schedule.node, a.schedule.count * sizeof(RematId));
}

Test(remat, says_when_the_budget_is_below_the_floor)
{
    RematProblem problem = generate_random(arena, 40, 8, 3);
    RematResult result = solve(&problem, remat_floor(&problem) - 1, 10);
    cr_expect_not(result.fits);
    cr_expect_eq(result.stop, REMAT_HOPELESS);
    cr_expect_geq(check_peak(&problem, &result.schedule), result.floor);
}

static bool stop_at_once(const RematProgress *progress, void *data)
{
    ++*(int *)data;
    return progress->seconds < 0;
}

Test(remat, bounds_the_cost_by_a_number_whatever_the_budget)
{
    RematProblem problem = generate_decoder(arena, 300);
    double total = 0;
    for (RematId x = 0; x < problem.nodes; x++)
        total += problem.node[x].cost;
    for (int64_t budget = baseline_peak(&problem); budget > 0; budget /= 2) {
        double bound = remat_bound(&problem, budget);
        cr_expect(isfinite(bound) && bound >= total, "%g of %g at %lld", bound, total,
                  (long long)budget);
    }
}

Test(remat, stops_when_asked)
{
    RematProblem problem = generate_random(arena, 60, 10, 5);
    int calls = 0;
    volatile sig_atomic_t cancel = 1;
    RematOptions options = {.budget = baseline_peak(&problem) * 6 / 10, .effort = 2000, .seed = 1};
    options.progress = stop_at_once;
    options.data = &calls;
    cr_expect_eq(remat_solve(&problem, &options, arena).stop, REMAT_CANCELLED);
    cr_expect_eq(calls, 1);
    options.progress = NULL;
    options.cancel = &cancel;
    cr_expect_eq(remat_solve(&problem, &options, arena).stop, REMAT_CANCELLED);
    options.cancel = NULL;
    options.seconds = 1e-9;
    cr_expect_eq(remat_solve(&problem, &options, arena).stop, REMAT_TIMED_OUT);
}

/* ---- rules ---- */

/* w (pinned) is read by a; b reads a and c; the update overwrites w. */
static RematProblem update_problem(Generator *g)
{
    *g = generate_begin(arena);
    RematId w = generate_source(g);
    RematId a = generate_node(g, 1, 8, &w, 1);
    RematId b = generate_node(g, 1, 8, &a, 1);
    RematId c = generate_node(g, 1, 8, &b, 1);
    RematId read[2] = {w, c};
    RematId update = generate_node(g, 1, 0, read, 2);
    g->node.at[g->node.count - 1].flags = REMAT_ONCE;
    g->value.at[w].killer = (RematId)g->node.count - 1;
    RematId late[2] = {a, update};
    generate_node(g, 1, 0, late, 2);
    return generate_end(g);
}

Test(remat, never_recomputes_from_what_was_overwritten)
{
    Generator g;
    RematProblem problem = update_problem(&g);
    cr_assert_null(remat_problem_error(&problem));
    /* Dropped over b and c, a must come back before the update, for then w is gone. */
    RematResult result = solve(&problem, 16, 20);
    expect_honest(&problem, &result, 16);
    cr_assert(result.fits);
    cr_expect_float_eq(result.cost, 6, 1e-9);
    cr_expect_eq(result.schedule.node[result.schedule.count - 2], 3u);
}

Test(remat, keeps_hinted_values_out_of_memory)
{
    Generator g = generate_begin(arena);
    RematId a = generate_node(&g, 1, 1, NULL, 0);
    RematId b = generate_node(&g, 5, 4, &a, 1);
    RematId c = generate_node(&g, 1, 1, &b, 1);
    RematId read[3] = {a, b, c};
    generate_node(&g, 1, 1, read, 3);
    g.value.at[b].drop_at = 2;
    RematProblem problem = generate_end(&g);
    RematSchedule given = remat_baseline(&problem, arena);
    cr_expect_not(remat_evaluate(&problem, &given).valid);
    RematResult result = solve(&problem, 100, 50);
    cr_assert(result.fits);
    expect_honest(&problem, &result, 100);
    cr_expect_float_eq(result.cost, 13, 1e-9);
}

Test(remat, counts_workspace_outputs_and_the_base)
{
    Generator g = generate_begin(arena);
    RematId a = generate_node(&g, 1, 10, NULL, 0);
    generate_node(&g, 1, 3, &a, 1);
    generate_node(&g, 1, 2, NULL, 0);
    g.node.at[2].workspace = 7;
    g.value.at[a].flags = REMAT_OUTPUT;
    RematProblem problem = generate_end(&g);
    problem.base = 100;
    RematSchedule given = remat_baseline(&problem, arena);
    RematValuation value = remat_evaluate(&problem, &given);
    cr_expect_eq(value.peak, 119);
    cr_expect_eq(value.at, 2u);
    cr_expect_eq(check_peak(&problem, &given), 119);
    cr_expect_eq(solve(&problem, 113, 10).peak, 113);
}

Test(remat, names_the_rule_a_schedule_breaks)
{
    Generator g;
    RematProblem problem = update_problem(&g);
    RematId late[] = {0, 1, 2, 3, 0, 4}, early[] = {1, 0, 2, 3, 4}, twice[] = {0, 1, 2, 3, 3, 4};
    RematSchedule schedule = {late, 6};
    cr_expect_str_eq(remat_evaluate(&problem, &schedule).why,
                     "a value is read after it is overwritten");
    schedule = (RematSchedule){early, 5};
    cr_expect_str_eq(remat_evaluate(&problem, &schedule).why, "a value is read before it is made");
    schedule = (RematSchedule){twice, 6};
    cr_expect_str_eq(remat_evaluate(&problem, &schedule).why,
                     "a node runs twice that may run only once");
    schedule = (RematSchedule){late, 3};
    cr_expect_str_eq(remat_evaluate(&problem, &schedule).why, "a node never runs");
}

Test(remat, refuses_a_problem_that_is_none)
{
    RematProblem problem = generate_random(arena, 5, 3, 1);
    problem.value[2].size = -1;
    cr_expect_str_eq(remat_problem_error(&problem), "a size is negative");
    problem = generate_random(arena, 5, 3, 1);
    problem.read[0] = 4;
    cr_expect_str_eq(remat_problem_error(&problem), "a node reads a value that is made later");
    problem = generate_random(arena, 5, 3, 1);
    problem.value[1].node = problem.nodes;
    cr_expect_not_null(remat_problem_error(&problem));
}

/* Effort is counted, so that the same problem gives the same schedule on every machine. Numbers
 * that change with a better search belong here too. */
Test(remat, the_search_is_the_same_everywhere)
{
    const struct {
        RematProblem problem;
        int percent; /* of what lies between the floor and the peak of the given order */
        uint64_t effort;
        double cost, bound;
        int64_t peak, floor;
        uint64_t spent, order; /* order: of the schedule, as a hash */
    } row[] = {
        {generate_random(arena, 60, 6, 3), 30, 40, 671, 671, 36, 31, 40, 0x5b37611bd3fbc81f},
        {generate_random(arena, 200, 12, 4), 20, 60, 2382, 2214, 48, 26, 60, 0x5f659f44c0d9985c},
        {generate_random(arena, 40, 5, 5), 0, 40, 459, 432, 29, 26, 40, 0x7829336ef0ba5b6},
        {generate_reversal(arena, 30), 15, 60, 63, 52.99999998, 6, 2, 60, 0xef7ff9c2976f1328},
        {generate_decoder(arena, 400), 25, 60, 7897.6, 7863.599999, 292, 48, 60,
         0x5b48382e82359d22},
        {generate_decoder(arena, 200), 100, 20, 3449.8, 3449.8, 523, 48, 0, 0xb035de609b8ec121},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        int64_t floor = remat_floor(&row[i].problem), peak = baseline_peak(&row[i].problem);
        int64_t budget = floor + (peak - floor) * row[i].percent / 100;
        RematResult is = solve(&row[i].problem, budget, row[i].effort);
        uint64_t order = 0xcbf29ce484222325u;
        for (size_t k = 0; k < is.schedule.count; k++)
            order = (order ^ is.schedule.node[k]) * 0x100000001b3u;
        cr_expect(fabs(is.cost - row[i].cost) < 1e-6 && fabs(is.bound - row[i].bound) < 1e-4 &&
                      is.peak == row[i].peak && is.floor == row[i].floor &&
                      is.effort == row[i].spent && order == row[i].order,
                  "row %zu: %.10g, %.10g, %lld, %lld, %llu, 0x%llx", i, is.cost, is.bound,
                  (long long)is.peak, (long long)is.floor, (unsigned long long)is.effort,
                  (unsigned long long)order);
    }
}
