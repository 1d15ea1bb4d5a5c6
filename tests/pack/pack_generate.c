#include "tests/pack/pack_generate.h"

#include <string.h>

uint64_t generate_number(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state * 0x2545f4914f6cdd1du;
}

static uint64_t start(uint64_t seed)
{
    uint64_t state = (seed + 1) * 0x9e3779b97f4a7c15u;
    for (int i = 0; i < 8; i++)
        generate_number(&state);
    return state;
}

static uint64_t below(uint64_t *state, uint64_t limit)
{
    return (generate_number(state) >> 11) % limit;
}

/* Cuts buffer i in two, the second at the end; false when it is too small for that. */
static bool cut(PackBuffer *buffer, size_t i, size_t end, uint64_t grain, uint64_t *state)
{
    uint64_t width = (uint64_t)(buffer[i].upper - buffer[i].lower), steps = buffer[i].size / grain;
    bool in_time = below(state, 2);
    if (in_time ? width < 2 : steps < 2)
        in_time = !in_time;
    if (in_time ? width < 2 : steps < 2)
        return false;
    buffer[end] = buffer[i];
    if (in_time) {
        buffer[i].upper = buffer[i].lower + 1 + (int64_t)below(state, width - 1);
        buffer[end].lower = buffer[i].upper;
    } else {
        buffer[i].size = grain * (1 + below(state, steps - 1));
        buffer[end].size -= buffer[i].size;
    }
    return true;
}

static void shuffle(PackBuffer *buffer, size_t count, uint64_t *state)
{
    for (size_t i = count; i > 1; i--) {
        size_t j = below(state, i);
        PackBuffer other = buffer[i - 1];
        buffer[i - 1] = buffer[j];
        buffer[j] = other;
    }
}

/* The larger of a few at random is cut, which keeps the areas from drifting apart too far. */
static size_t pick(const PackBuffer *buffer, size_t count, uint64_t *state)
{
    size_t best = below(state, count);
    for (int i = 0; i < 3; i++) {
        size_t other = below(state, count);
        double a = (double)buffer[best].size * (double)(buffer[best].upper - buffer[best].lower);
        double b = (double)buffer[other].size * (double)(buffer[other].upper - buffer[other].lower);
        if (b > a)
            best = other;
    }
    return best;
}

PackProblem generate_perfect(Arena *arena, size_t count, uint64_t height, uint64_t grain,
                             uint64_t seed)
{
    PackBuffer *buffer = ARENA_ARRAY(arena, PackBuffer, count);
    uint64_t state = start(seed);
    buffer[0] = (PackBuffer){0, (int64_t)(4 * count + 1), height, 1, PACK_FREE};
    for (size_t n = 1; n < count;)
        n += cut(buffer, pick(buffer, n, &state), n, grain, &state);
    shuffle(buffer, count, &state);
    return (PackProblem){buffer, count, 0};
}

PackProblem generate_random(Arena *arena, size_t count, int64_t span, int64_t longest,
                            uint64_t largest, uint64_t seed)
{
    PackBuffer *buffer = ARENA_ARRAY(arena, PackBuffer, count);
    uint64_t state = start(seed);
    for (size_t i = 0; i < count; i++) {
        int64_t lower = (int64_t)below(&state, (uint64_t)span);
        int64_t length = 1 + (int64_t)below(&state, (uint64_t)longest);
        int64_t upper = length < span - lower ? lower + length : span;
        buffer[i] = (PackBuffer){lower, upper, 1 + below(&state, largest), 1, PACK_FREE};
    }
    return (PackProblem){buffer, count, 0};
}

PackProblem generate_split(Arena *arena, const PackProblem *problem, size_t splits, uint64_t seed)
{
    size_t count = problem->count;
    PackBuffer *buffer = ARENA_ARRAY(arena, PackBuffer, count + splits);
    uint64_t state = start(seed);
    memcpy(buffer, problem->buffer, count * sizeof *buffer);
    for (size_t n = 0, tries = 0; n < splits && tries < 100 * splits; tries++)
        if (cut(buffer, below(&state, count), count, 512, &state)) {
            count++;
            n++;
        }
    shuffle(buffer, count, &state);
    return (PackProblem){buffer, count, problem->capacity};
}
