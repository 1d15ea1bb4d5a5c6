/* The packer on problems whose answer is known, and on random ones through the checkers. */
#include "tests/pack/pack_generate.h"
#include "tests/pack/pack_judge.h"

#include <criterion/criterion.h>
#include <string.h>

#define FEW_STEPS ((uint64_t)20 * 1000 * 1000)

static Arena *arena;
static uint64_t offset[1 << 17];
static PackSolution solution;

static void setup(void)
{
    arena = arena_new();
    solution = (PackSolution){.offset = offset};
}

static void teardown(void)
{
    arena_free(arena);
}

TestSuite(pack, .init = setup, .fini = teardown);

/* Solves and judges; the status. */
static PackStatus solve_with(const PackProblem *problem, PackOptions options)
{
    PackStatus status = pack_solve(problem, &options, &solution);
    if (status != PACK_INVALID) {
        const char *fault = judge(problem, status, &solution);
        cr_assert_null(fault, "%s", fault);
    }
    return status;
}

static PackStatus solve(const PackProblem *problem)
{
    return solve_with(problem, (PackOptions){.effort = FEW_STEPS});
}

static PackBuffer plain(int64_t lower, int64_t upper, uint64_t size)
{
    return (PackBuffer){lower, upper, size, 1, PACK_FREE};
}

Test(pack, nothing_needs_nothing)
{
    PackProblem problem = {NULL, 0, 0};
    cr_assert_eq(solve(&problem), PACK_OK);
    cr_assert_eq(solution.height, 0);
    cr_assert(solution.optimal);
}

Test(pack, one_buffer_lies_at_zero)
{
    PackBuffer buffer = plain(-5, 5, 100);
    PackProblem problem = {&buffer, 1, 0};
    cr_assert_eq(solve(&problem), PACK_OK);
    cr_assert_eq(offset[0], 0);
    cr_assert_eq(solution.height, 100);
}

Test(pack, lifetimes_are_half_open)
{
    PackBuffer buffer[] = {plain(0, 3, 10), plain(3, 6, 10), plain(6, 9, 10)};
    PackProblem problem = {buffer, 3, 0};
    solve(&problem);
    cr_assert_eq(solution.height, 10);
}

Test(pack, zero_sizes_are_in_nobodys_way)
{
    PackBuffer buffer[] = {plain(0, 9, 0), plain(0, 9, 8), plain(2, 3, 0), plain(0, 9, 8)};
    PackProblem problem = {buffer, 4, 0};
    cr_assert_eq(solve(&problem), PACK_OK);
    cr_assert_eq(solution.height, 16);
    buffer[1].size = buffer[3].size = 0;
    cr_assert_eq(solve(&problem), PACK_OK);
    cr_assert_eq(solution.height, 0);
}

Test(pack, alignment_is_kept_and_the_bound_knows_it)
{
    PackBuffer buffer[] = {plain(0, 9, 65), plain(0, 9, 65), plain(0, 9, 10)};
    for (int i = 0; i < 3; i++)
        buffer[i].align = 64;
    PackProblem problem = {buffer, 3, 0};
    cr_assert_eq(solve(&problem), PACK_OK);
    cr_assert_eq(solution.height, 64 + 128 + 65);
    cr_assert(solution.optimal);
}

Test(pack, the_bound_leaves_the_largest_rest_on_top)
{
    PackBuffer buffer[] = {plain(0, 9, 100), plain(0, 9, 65), plain(2, 4, 120)};
    for (int i = 0; i < 3; i++)
        buffer[i].align = 64;
    PackProblem problem = {buffer, 3, 0};
    cr_assert_eq(pack_bound(&problem), 128 + 128 + 65);
    cr_assert_eq(solve(&problem), PACK_OK);
    cr_assert_eq(solution.height, 128 + 128 + 65);
}

Test(pack, alignments_may_differ_and_need_not_be_powers_of_two)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        PackProblem problem = generate_random(arena, 60, 100, 40, 50, seed);
        PackBuffer *buffer = (PackBuffer *)(uintptr_t)problem.buffer;
        static const uint64_t align[] = {0, 1, 3, 4, 7, 16, 24};
        for (size_t i = 0; i < problem.count; i++)
            buffer[i].align = align[(i * 5 + seed) % 7];
        cr_assert_eq(solve_with(&problem, (PackOptions){.effort = 500000, .seed = seed}), PACK_OK);
    }
}

Test(pack, fixed_buffers_stay_and_others_go_round_them)
{
    PackBuffer buffer[] = {plain(0, 9, 10), plain(0, 9, 10), plain(0, 9, 5)};
    buffer[1].fixed = 5;
    PackProblem problem = {buffer, 3, 0};
    cr_assert_eq(solve(&problem), PACK_OK);
    cr_assert_eq(offset[1], 5);
    cr_assert_eq(offset[2], 0);
    cr_assert_eq(solution.height, 25);
}

Test(pack, random_fixed_buffers_are_honoured)
{
    for (uint64_t seed = 0; seed < 30; seed++) {
        PackProblem problem = generate_random(arena, 80, 200, 60, 100, seed);
        cr_assert_eq(solve(&problem), PACK_OK);
        uint64_t height = solution.height;
        PackBuffer *buffer = (PackBuffer *)(uintptr_t)problem.buffer;
        for (size_t i = 0; i < problem.count; i += 3)
            buffer[i].fixed = (int64_t)offset[i];
        cr_assert_eq(solve(&problem), PACK_OK);
        problem.capacity = height;
        solve(&problem);
        cr_assert_neq(solution.stop, PACK_STOP_PROVED, "it was feasible a moment ago");
    }
}

Test(pack, wrong_problems_are_refused_with_a_reason)
{
    PackBuffer good = plain(0, 9, 8);
    PackBuffer wrong[] = {
        plain(3, 3, 8), plain(4, 3, 8), plain(0, 9, PACK_MAX_BYTES + 1), good, good, good, good};
    wrong[3].fixed = -2;
    wrong[4].fixed = INT64_MAX;
    wrong[5].align = PACK_MAX_BYTES + 1;
    wrong[6].fixed = 3;
    wrong[6].align = 2;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        PackBuffer buffer[] = {good, wrong[i]};
        PackProblem problem = {buffer, 2, 0};
        cr_assert_eq(solve(&problem), PACK_INVALID);
        cr_assert_eq(solution.bad, 1);
        cr_assert_not_null(solution.why);
        cr_assert_eq(pack_bound(&problem), 0);
    }
}

Test(pack, fixed_buffers_that_collide_are_refused)
{
    PackBuffer buffer[] = {plain(0, 9, 8), plain(3, 4, 8), plain(9, 12, 8)};
    buffer[0].fixed = buffer[2].fixed = 0;
    buffer[1].fixed = 7;
    PackProblem problem = {buffer, 3, 0};
    cr_assert_eq(solve(&problem), PACK_INVALID);
    cr_assert_eq(solution.bad, 1);
    buffer[1].fixed = 8;
    cr_assert_eq(solve(&problem), PACK_OK);
}

Test(pack, sums_that_overflow_are_refused)
{
    PackBuffer buffer[100];
    for (int i = 0; i < 100; i++)
        buffer[i] = plain(0, 9, PACK_MAX_BYTES);
    PackProblem problem = {buffer, 100, 0};
    cr_assert_eq(solve(&problem), PACK_INVALID);
    for (int i = 0; i < 100; i++)
        buffer[i] = plain(i, i + 1, PACK_MAX_BYTES);
    cr_assert_eq(solve(&problem), PACK_OK);
    cr_assert_eq(solution.height, PACK_MAX_BYTES);
}

Test(pack, extreme_times_are_fine)
{
    PackBuffer buffer[] = {plain(INT64_MIN, INT64_MAX, 8), plain(INT64_MIN, 0, 4),
                           plain(0, INT64_MAX, 4)};
    PackProblem problem = {buffer, 3, 0};
    cr_assert_eq(solve(&problem), PACK_OK);
    cr_assert_eq(solution.height, 12);
}

Test(pack, whole_program_buffers_cost_their_size_once)
{
    PackProblem problem = generate_random(arena, 200, 300, 50, 100, 4);
    PackBuffer *buffer = (PackBuffer *)(uintptr_t)problem.buffer;
    for (int i = 0; i < 50; i++)
        buffer[i] = plain(0, 1000, 64);
    cr_assert_eq(solve(&problem), PACK_OK);
}

Test(pack, what_lives_all_the_time_is_no_part_of_the_search)
{
    PackProblem alone = generate_random(arena, 200, 300, 50, 100, 4);
    PackBuffer *buffer = ARENA_ARRAY(arena, PackBuffer, alone.count + 50);
    memcpy(buffer, alone.buffer, alone.count * sizeof *buffer);
    for (size_t i = 0; i < 50; i++)
        buffer[alone.count + i] = plain(-10, 1000, 64 + i);
    PackProblem both = {buffer, alone.count + 50, 0};
    uint64_t always = 50 * 64 + 49 * 50 / 2;
    cr_assert_eq(solve(&alone), PACK_OK);
    uint64_t height = solution.height, bound = solution.bound, effort = solution.effort;
    cr_assert_eq(solve(&both), PACK_OK);
    cr_assert_eq(solution.height, height + always);
    cr_assert_eq(solution.bound, bound + always);
    cr_assert_eq(solution.effort, effort);
    both.capacity = bound + always - 1;
    cr_assert_eq(solve(&both), PACK_INFEASIBLE);
    both.capacity = always - 1;
    cr_assert_eq(solve(&both), PACK_INFEASIBLE);
    both.capacity = height + always + 1000;
    cr_assert_eq(solve(&both), PACK_OK);
}

Test(pack, tens_of_thousands_of_equal_buffers)
{
    enum { COUNT = 40000 };
    PackBuffer *buffer = ARENA_ARRAY(arena, PackBuffer, COUNT);
    for (int i = 0; i < COUNT; i++)
        buffer[i] = plain(0, 9, 16);
    PackProblem problem = {buffer, COUNT, 0};
    cr_assert_eq(solve(&problem), PACK_OK);
    cr_assert_eq(solution.height, 16 * COUNT);
    for (int i = 0; i < COUNT; i++)
        buffer[i] = plain(i, i + 100, 16);
    cr_assert_eq(solve(&problem), PACK_OK);
    cr_assert(solution.optimal);
}

Test(pack, perfect_packings_are_found)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        PackProblem problem = generate_perfect(arena, 20 + 8 * seed, 1 << 20, 1024, seed);
        cr_assert_eq(solve_with(&problem, (PackOptions){.seed = seed}), PACK_OK);
        cr_assert_eq(solution.height, 1 << 20, "seed %d", (int)seed);
        cr_assert_eq(solution.stop, PACK_STOP_BOUND);
    }
}

Test(pack, a_capacity_ends_the_search)
{
    PackProblem problem = generate_perfect(arena, 150, 1 << 20, 1024, 7);
    problem.capacity = (1 << 20) + (1 << 16);
    cr_assert_eq(solve(&problem), PACK_OK);
    cr_assert_leq(solution.height, problem.capacity);
    problem.capacity = (1 << 20) - 1;
    cr_assert_eq(solve(&problem), PACK_INFEASIBLE);
    cr_assert_eq(solution.stop, PACK_STOP_PROVED);
}

/* Every placement of few small buffers, by brute force: rests on 0 or on another's top, so all
 * orders with lowest fit contain an optimum. */
static uint64_t best_height;
static void try_all(const PackProblem *problem, uint64_t *at, unsigned done, uint64_t height)
{
    if (height >= best_height)
        return;
    if (done + 1 == 1u << problem->count)
        best_height = height;
    for (size_t i = 0; i < problem->count; i++) {
        if (done >> i & 1)
            continue;
        uint64_t low = 0;
        for (size_t j = 0; j < problem->count; j++)
            if (done >> j & 1 && problem->buffer[j].lower < problem->buffer[i].upper &&
                problem->buffer[i].lower < problem->buffer[j].upper &&
                at[j] + problem->buffer[j].size > low)
                low = at[j] + problem->buffer[j].size;
        if (problem->buffer[i].align > 1)
            low = (low + problem->buffer[i].align - 1) / problem->buffer[i].align *
                  problem->buffer[i].align;
        at[i] = low;
        uint64_t top = low + problem->buffer[i].size;
        try_all(problem, at, done | 1u << i, top > height ? top : height);
    }
}

Test(pack, small_problems_are_solved_to_the_optimum_and_proved)
{
    size_t above_the_load = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        PackProblem problem = generate_random(arena, 7, 8, 4, 9, seed);
        PackBuffer *buffer = (PackBuffer *)(uintptr_t)problem.buffer;
        for (size_t i = 0; seed % 3 == 0 && i < problem.count; i++)
            buffer[i].align = 1 + (seed + i) % 4;
        uint64_t at[8];
        best_height = UINT64_MAX;
        try_all(&problem, at, 0, 0);
        cr_assert_eq(solve(&problem), PACK_OK);
        cr_assert_eq(solution.height, best_height, "seed %d: %llu, not %llu", (int)seed,
                     (unsigned long long)solution.height, (unsigned long long)best_height);
        cr_assert(solution.optimal, "seed %d", (int)seed);
        above_the_load += solution.stop == PACK_STOP_PROVED;
        if (best_height > 1) {
            problem.capacity = best_height - 1;
            cr_assert_eq(solve(&problem), PACK_INFEASIBLE, "seed %d", (int)seed);
        }
    }
    cr_assert_gt(above_the_load, 0, "no problem had an optimum above its bound");
}

Test(pack, the_same_seed_gives_the_same_packing)
{
    PackProblem problem = generate_random(arena, 300, 400, 80, 1000, 11);
    PackOptions options = {.effort = 3000000, .seed = 5};
    cr_assert_eq(solve_with(&problem, options), PACK_OK);
    uint64_t *first = ARENA_ARRAY(arena, uint64_t, problem.count), work = solution.effort;
    memcpy(first, offset, problem.count * sizeof *first);
    memset(offset, 0xff, sizeof offset);
    cr_assert_eq(solve_with(&problem, options), PACK_OK);
    cr_assert_eq(solution.effort, work);
    cr_assert_arr_eq(first, offset, problem.count * sizeof *first);
}

/* Effort is counted, so that the same problem gives the same packing on every machine. Numbers that
 * change with a better search belong here too. */
Test(pack, the_search_is_the_same_everywhere)
{
    PackProblem aligned = generate_random(arena, 150, 200, 60, 500, 4);
    for (size_t i = 0; i < aligned.count; i++)
        ((PackBuffer *)(uintptr_t)aligned.buffer)[i].align = 64 >> i % 3;
    const struct {
        PackProblem problem;
        unsigned skip;
        uint64_t height, work;
    } row[] = {
        {generate_random(arena, 300, 400, 80, 1000, 11), 0, 20505, 1000736},
        {generate_random(arena, 40, 60, 20, 100, 5), 0, 650, 134195},
        {generate_random(arena, 40, 60, 20, 100, 5), PACK_NO_FIT | PACK_NO_SWEEP, 650, 22545},
        {generate_perfect(arena, 60, 4096, 16, 3), 0, 4096, 34998},
        {generate_perfect(arena, 60, 4096, 16, 3), PACK_NO_BISECT, 4096, 34998},
        {generate_perfect(arena, 60, 4096, 16, 3), PACK_NO_RESTART | PACK_NO_WEIGHT, 4096, 34998},
        {generate_random(arena, 2500, 3000, 300, 1000, 3), 0, 83486, 1274706},
        {aligned, 0, 8672, 1010715},
        {aligned, PACK_NO_SPLIT | PACK_NO_NOISE, 8672, 1018248},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        PackOptions options = {.effort = 1000000, .seed = i, .skip = row[i].skip};
        cr_assert_eq(solve_with(&row[i].problem, options), PACK_OK);
        cr_expect(solution.height == row[i].height && solution.effort == row[i].work,
                  "row %zu: %llu bytes after %llu steps", i, (unsigned long long)solution.height,
                  (unsigned long long)solution.effort);
    }
}

Test(pack, every_part_of_the_portfolio_can_be_switched_off)
{
    PackProblem perfect = generate_perfect(arena, 120, 4096, 16, 3);
    PackProblem random = generate_random(arena, 6000, 9000, 300, 1000, 3);
    for (unsigned bit = 0; bit <= 9; bit++) {
        PackOptions options = {.effort = 3000000, .skip = bit == 9 ? 0x1ff : 1u << bit};
        cr_assert_eq(solve_with(&perfect, options), PACK_OK);
        cr_assert_eq(solve_with(&random, options), PACK_OK);
    }
}

Test(pack, little_effort_still_gives_a_packing)
{
    PackProblem problem = generate_random(arena, 2000, 3000, 400, 1000, 8);
    cr_assert_eq(solve_with(&problem, (PackOptions){.effort = 1}), PACK_OK);
    cr_assert_eq(solve_with(&problem, (PackOptions){.effort = PACK_EFFORT_CHEAP}), PACK_OK);
    cr_assert_eq(solve_with(&problem, (PackOptions){.seconds = 1e-9}), PACK_OK);
    cr_assert(solution.optimal || solution.stop == PACK_STOP_SECONDS);
}

Test(pack, more_effort_is_never_worse)
{
    for (uint64_t seed = 0; seed < 5; seed++) {
        PackProblem problem = generate_random(arena, 400, 500, 90, 1000, seed);
        uint64_t before = UINT64_MAX;
        for (uint64_t effort = 1; effort < 10000000; effort *= 30) {
            solve_with(&problem, (PackOptions){.effort = effort});
            cr_assert_leq(solution.height, before);
            before = solution.height;
        }
    }
}

Test(pack, random_problems_of_every_shape_pass_the_checkers)
{
    static const int64_t longest[] = {1, 3, 20, 200, 2000};
    for (size_t shape = 0; shape < 5; shape++)
        for (size_t count = 1; count < 3000; count = 3 * count + 1) {
            PackProblem problem =
                generate_random(arena, count, 2000, longest[shape], 1 << 12, count);
            cr_assert_eq(solve_with(&problem, (PackOptions){.effort = 1000000}), PACK_OK);
        }
}

Test(pack, a_hundred_thousand_buffers_pass_the_checker)
{
    static const int64_t longest[] = {100, 100000};
    for (size_t shape = 0; shape < 2; shape++) {
        PackProblem problem = generate_random(arena, 100000, 100000, longest[shape], 100000, 2);
        cr_assert_eq(solve_with(&problem, (PackOptions){.effort = 1}), PACK_OK);
        cr_assert_lt(solution.height - solution.bound, solution.bound / 5);
    }
}
