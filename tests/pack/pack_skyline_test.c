/* The skyline against an array that is walked. */
#include <criterion/criterion.h>

#include "planner/pack/internal.h"

enum { SECTIONS = 37, STEPS = 2000 };

static uint64_t walk(const uint64_t *top, uint32_t first, uint32_t last)
{
    uint64_t most = 0;
    for (uint32_t i = first; i <= last; i++)
        most = top[i] > most ? top[i] : most;
    return most;
}

Test(pack_skyline, is_as_high_as_what_was_put_on_it)
{
    for (uint32_t sections = 1; sections <= SECTIONS; sections++) {
        Arena *arena = arena_new();
        Skyline *skyline = skyline_new(arena, sections);
        uint64_t top[SECTIONS] = {0}, seed = sections;
        for (int step = 0; step < STEPS / SECTIONS; step++) {
            uint64_t bits[5];
            for (int i = 0; i < 5; i++)
                bits[i] = (seed = seed * 6364136223846793005u + 1442695040888963407u) >> 33;
            uint32_t a = (uint32_t)(bits[0] % sections), b = (uint32_t)(bits[1] % sections);
            uint32_t first = a < b ? a : b, last = a < b ? b : a;
            uint64_t height = bits[2] % 1000;
            skyline_raise(skyline, first, last, height);
            for (uint32_t i = first; i <= last; i++)
                top[i] = top[i] > height ? top[i] : height;
            a = (uint32_t)(bits[3] % sections);
            b = a + (uint32_t)(bits[4] % (sections - a));
            cr_assert_eq(skyline_max(skyline, a, b), walk(top, a, b), "%u sections, step %d",
                         sections, step);
        }
        arena_free(arena);
    }
}
