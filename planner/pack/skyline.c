/* A skyline over the sections: a segment tree of maxima. Each node holds the largest top raised
 * over all of it (`whole`) and the largest anywhere in it (`most`). */
#include "planner/pack/internal.h"

struct Skyline {
    uint32_t leaves; /* a power of two */
    uint64_t *whole, *most;
};

Skyline *skyline_new(Arena *arena, uint32_t sections)
{
    Skyline *skyline = ARENA_NEW(arena, Skyline);
    skyline->leaves = 1;
    while (skyline->leaves < sections)
        skyline->leaves *= 2;
    skyline->whole = ARENA_ARRAY(arena, uint64_t, 2 * (size_t)skyline->leaves);
    skyline->most = ARENA_ARRAY(arena, uint64_t, 2 * (size_t)skyline->leaves);
    return skyline;
}

static inline uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The largest `whole` above a node counts for it too. */
static uint64_t above(const Skyline *skyline, uint32_t node)
{
    uint64_t top = 0;
    while (node /= 2)
        top = larger(top, skyline->whole[node]);
    return top;
}

uint64_t skyline_max(const Skyline *skyline, uint32_t first, uint32_t last)
{
    uint32_t left = first + skyline->leaves, right = last + skyline->leaves;
    uint64_t top = larger(above(skyline, left), above(skyline, right));
    for (; left <= right; left = (left + 1) / 2, right = (right - 1) / 2) {
        if (left % 2)
            top = larger(top, skyline->most[left]);
        if (right % 2 == 0)
            top = larger(top, skyline->most[right]);
    }
    return top;
}

static void lift(Skyline *skyline, uint32_t node)
{
    while (node /= 2) {
        uint64_t below = larger(skyline->most[2 * node], skyline->most[2 * node + 1]);
        skyline->most[node] = larger(skyline->whole[node], below);
    }
}

static void raise_node(Skyline *skyline, uint32_t node, uint64_t top)
{
    skyline->whole[node] = larger(skyline->whole[node], top);
    skyline->most[node] = larger(skyline->most[node], top);
}

void skyline_raise(Skyline *skyline, uint32_t first, uint32_t last, uint64_t top)
{
    uint32_t left = first + skyline->leaves, right = last + skyline->leaves;
    uint32_t start = left, end = right;
    for (; left <= right; left = (left + 1) / 2, right = (right - 1) / 2) {
        if (left % 2)
            raise_node(skyline, left, top);
        if (right % 2 == 0)
            raise_node(skyline, right, top);
    }
    lift(skyline, start);
    lift(skyline, end);
}
