/* What the checker finds in the bytes of a buffer, against all pairs of them. */
#include "planner/check_lanes.h"
#include "tests/plan/planned.h"

#include <criterion/criterion.h>
#include <string.h>

enum { PARTS = 60 };

/* Pairs joined along one axis, then all of them along another. */
static const char *write_model(Arena *arena, int parts, int pairs_axis, int all_axis)
{
    const char *text = "model parts(batch B = 3)\ninput x : f32[B, 4, 2]\n", *list = "";
    for (int i = 0; i < parts; i++) {
        text = arena_printf(arena,
                            "%sa%d = tanh(x * %d.5)\nb%d = relu(x - %d.5)\n"
                            "c%d = concat(a%d, b%d, axis = %d)\n",
                            text, i, i, i, i, i, i, i, pairs_axis);
        list = arena_printf(arena, "%s%sc%d", list, i ? ", " : "", i);
    }
    return arena_printf(arena, "%soutput y = exp(concat(%s, axis = %d))\n", text, list, all_axis);
}

typedef struct {
    uint32_t *asked; /* by buffer: whose question it was met by last, + 1 */
    uint32_t now;
    size_t questions;
} Asked;

static bool stays(uint32_t item, void *data)
{
    Asked *asked = data;
    asked->asked[item] = asked->now + 1;
    asked->questions++;
    return true;
}

/* Every buffer of the plan is written once. Leaves how often another was met. */
static size_t count_questions(const Planned *p)
{
    Extents extents;
    cr_assert_null(extents_find(&extents, p->plan, &p->target, p->arena));
    Lanes lanes = lanes_new(p->arena, &extents);
    Asked asked = {.asked = ARENA_ARRAY(p->arena, uint32_t, p->plan->buffers)};
    for (Id i = 0; i < p->plan->buffers; i++) {
        asked.now = i;
        lanes_visit(&lanes, i, stays, &asked);
        for (Id k = 0; k < i; k++)
            if (extents_overlap(&extents, i, k))
                cr_assert_eq(asked.asked[k], i + 1, "%u does not meet %u", i, k);
        lanes_add(&lanes, i, i);
    }
    return asked.questions;
}

static Planned plan_parts(int parts, int pairs_axis, int all_axis)
{
    Arena *arena = arena_new();
    Planned p = planned_text(write_model(arena, parts, pairs_axis, all_axis), NULL, NULL);
    arena_adopt(p.arena, arena);
    return p;
}

static Id count_windows(const Plan *plan)
{
    Id windows = 0;
    for (Id i = 0; i < plan->buffers; i++)
        windows += plan->buffer[i].root != i && !view_is_dense(&plan->buffer[i].layout);
    return windows;
}

static const int axes[][2] = {{1, 1}, {2, 2}, {1, 2}, {2, 1}};
enum { AXES = sizeof axes / sizeof *axes };

Test(lanes, meet_whatever_shares_a_byte)
{
    for (int i = 0; i < AXES; i++) {
        Planned p = plan_parts(PARTS, axes[i][0], axes[i][1]);
        cr_assert_gt(count_windows(p.plan), PARTS);
        count_questions(&p);
        planned_free(&p);
    }
}

/* From its first byte to its last, each window of the concat meets all the others. */
Test(lanes, windows_do_not_meet_their_neighbours)
{
    for (int i = 0; i < AXES; i++) {
        Planned few = plan_parts(PARTS, axes[i][0], axes[i][1]);
        Planned many = plan_parts(4 * PARTS, axes[i][0], axes[i][1]);
        size_t once = count_questions(&few), four = count_questions(&many);
        cr_assert_leq(four, 5 * once,
                      "axes %d and %d: %zu questions, %zu with four times the parts", axes[i][0],
                      axes[i][1], once, four);
        planned_free(&few);
        planned_free(&many);
    }
}

/* Whoever is not of the lane meets all that it has; a lane that is empty is met no more. */
static bool leaves(uint32_t item, void *data)
{
    (void)item;
    ++*(size_t *)data;
    return false;
}

Test(lanes, are_left_behind_when_they_are_empty)
{
    Planned p = plan_parts(PARTS, 1, 1);
    Extents extents;
    cr_assert_null(extents_find(&extents, p.plan, &p.target, p.arena));
    Lanes lanes = lanes_new(p.arena, &extents);
    Id root = NONE;
    size_t added = 0, met = 0;
    for (Id i = 0; i < p.plan->buffers; i++)
        if (lanes.of[i] != NONE) {
            root = p.plan->buffer[i].root;
            lanes_add(&lanes, i, i);
            added++;
        }
    cr_assert_neq(root, NONE);
    lanes_visit(&lanes, root, leaves, &met);
    cr_assert_geq(met, added);
    met = 0;
    lanes_visit(&lanes, root, leaves, &met);
    cr_assert_eq(met, 0);
    planned_free(&p);
}
