/* Which of the plans that were tried a budget gets. */
#include "planner/fit.h"

#include <criterion/criterion.h>

static Trial trial(double cost, double rest, uint64_t arena)
{
    return (Trial){.cost = cost, .rest = rest, .arena = arena, .budget = arena};
}

static const Trial *best_of_two(Trial a, Trial b, uint64_t budget)
{
    static Trial both[2];
    both[0] = a;
    both[1] = b;
    Fit f = {.trial = {.at = both, .count = 2}};
    return cheapest(&f, budget);
}

Test(trials, a_budget_gets_the_cheapest_that_fits)
{
    cr_expect_eq(best_of_two(trial(2, 1, 10), trial(1, 9, 20), 30)->cost, 1);
    cr_expect_eq(best_of_two(trial(1, 9, 20), trial(2, 1, 10), 30)->cost, 1);
    cr_expect_eq(best_of_two(trial(2, 1, 10), trial(1, 9, 20), 15)->cost, 2);
    cr_expect_null(best_of_two(trial(2, 1, 10), trial(1, 9, 20), 5));
}

Test(trials, of_equal_cost_the_other_programs_decide_then_the_arena)
{
    cr_expect_eq(best_of_two(trial(1, 2, 10), trial(1, 1, 20), 30)->rest, 1);
    cr_expect_eq(best_of_two(trial(1, 1, 20), trial(1, 2, 10), 30)->rest, 1);
    cr_expect_eq(best_of_two(trial(1, 1, 20), trial(1, 1, 10), 30)->arena, 10);
    cr_expect_eq(best_of_two(trial(1, 1, 10), trial(1, 1, 20), 30)->arena, 10);
}
