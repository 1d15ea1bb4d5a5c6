/* The validator finds what is wrong, and agrees with the comparison of all pairs. */
#include "tests/pack/pack_generate.h"
#include "tests/pack/pack_judge.h"

#include <criterion/criterion.h>

static PackBuffer buffer[] = {{0, 5, 10, 4, PACK_FREE}, {3, 9, 6, 1, PACK_FREE}, {5, 9, 8, 1, 20}};
static PackProblem problem = {buffer, 3, 0};

static PackFault fault_of(uint64_t a, uint64_t b, uint64_t c, uint64_t height)
{
    uint64_t offset[] = {a, b, c};
    PackSolution solution = {.offset = offset, .height = height};
    return pack_check(&problem, &solution).fault;
}

Test(check, accepts_a_packing)
{
    cr_assert_eq(fault_of(0, 10, 20, 28), PACK_FAULT_NONE);
    cr_assert_eq(fault_of(8, 2, 20, 28), PACK_FAULT_NONE);
}

Test(check, finds_each_fault)
{
    cr_assert_eq(fault_of(0, 9, 20, 28), PACK_FAULT_OVERLAP);
    cr_assert_eq(fault_of(0, 15, 20, 28), PACK_FAULT_OVERLAP);
    cr_assert_eq(fault_of(2, 12, 20, 28), PACK_FAULT_ALIGN);
    cr_assert_eq(fault_of(0, 10, 21, 29), PACK_FAULT_FIXED);
    cr_assert_eq(fault_of(0, 10, 20, 30), PACK_FAULT_HEIGHT);
    cr_assert_eq(fault_of(0, UINT64_MAX - 2, 20, 28), PACK_FAULT_CAPACITY);
    problem.capacity = 27;
    cr_assert_eq(fault_of(0, 10, 20, 28), PACK_FAULT_CAPACITY);
    problem.capacity = 0;
    uint64_t offset[] = {0, 10, 20};
    PackSolution solution = {.offset = offset, .height = 28, .bound = 29};
    cr_assert_eq(pack_check(&problem, &solution).fault, PACK_FAULT_BOUND);
}

Test(check, agrees_with_the_comparison_of_all_pairs)
{
    size_t wrong = 0;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        Arena *arena = arena_new();
        uint64_t state = seed + 1, offset[12], height = 0;
        PackProblem random = generate_random(arena, 1 + seed % 12, 20, 6, 8, seed);
        for (size_t i = 0; i < random.count; i++) {
            offset[i] = generate_number(&state) % 60;
            uint64_t top = offset[i] + random.buffer[i].size;
            height = top > height ? top : height;
        }
        PackSolution solution = {.offset = offset, .height = height};
        bool pairs = judge_pairs(&random, &solution) != NULL;
        cr_assert_eq(pack_check(&random, &solution).fault != PACK_FAULT_NONE, pairs);
        wrong += pairs;
        arena_free(arena);
    }
    cr_assert(wrong > 200 && wrong < 1800, "both kinds should occur: %zu of 2000", wrong);
}
