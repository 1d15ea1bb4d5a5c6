/* The checker's index of spans against a list of all of them. */
#include "planner/check_spans.h"

#include <criterion/criterion.h>

enum { ITEMS = 400, PLACES = 97, QUESTIONS = 2000 };

typedef struct {
    uint64_t begin, end;
    bool there, met;
} Span;

static uint32_t draw(uint32_t *state, uint32_t below)
{
    *state = *state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(*state >> 8) * below >> 24);
}

/* Every third item leaves when it is met. */
static bool stays(uint32_t item, void *data)
{
    Span *span = (Span *)data + item;
    span->met = true;
    return item % 3;
}

static void ask(Spans *spans, Span *span, uint64_t begin, uint64_t end)
{
    for (int i = 0; i < ITEMS; i++)
        span[i].met = false;
    spans_visit(spans, begin, end, stays, span);
    for (int i = 0; i < ITEMS; i++) {
        bool meets = span[i].there && span[i].begin < end && begin < span[i].end;
        if (i % 3 || meets) /* what left may still lie in other parts of its span */
            cr_assert_eq(span[i].met, meets, "item %d", i);
        if (meets && i % 3 == 0)
            span[i].there = false;
    }
}

Test(spans, meets_what_a_list_of_all_meets)
{
    Arena *arena = arena_new();
    uint64_t *place = ARENA_ARRAY(arena, uint64_t, PLACES);
    Span span[ITEMS] = {0};
    uint32_t seed = 7;
    for (int i = 0; i < PLACES; i++)
        place[i] = (uint64_t)(PLACES - i) * 64;
    Spans spans = spans_new(arena, place, PLACES);
    for (uint32_t round = 0; round < QUESTIONS; round++) {
        uint32_t from = draw(&seed, PLACES - 1), to = from + 1 + draw(&seed, PLACES - 1 - from);
        uint64_t begin = place[from], end = place[to];
        if (round < ITEMS) {
            spans_add(&spans, begin, end, round);
            span[round] = (Span){begin, end, true, false};
        } else {
            ask(&spans, span, begin, end);
        }
    }
    spans_clear(&spans);
    for (int i = 0; i < ITEMS; i++)
        span[i].there = false;
    ask(&spans, span, place[0], place[PLACES - 1]);
    arena_free(arena);
}
