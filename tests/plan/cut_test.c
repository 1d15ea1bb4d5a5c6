/* A search that the time ends: what it has found by then is not lost. */
#include "tests/plan/planned.h"

#include <criterion/criterion.h>

/* Its smallest plan takes the packer longer than the others. */
static const char decoder[] =
    "model decoder(batch B = 4, T = 64, C = 128, L = 6, H = 8, V = 512)\n"
    "input tokens : i32[B, T]\ninput next : i32[B, T]\n"
    "block layer(x) {\n  x = x + attention(layernorm(x), heads = H, causal = true)\n"
    "  return x + dense(gelu(dense(layernorm(x), 4*C)), C)\n}\n"
    "param wte : [V, C] = normal(0.02)\n"
    "h = embedding(tokens, wte)\nrepeat i in 0..L { h = layer(h) }\n"
    "logits = layernorm(h) @ transpose(wte)\noutput logits\n"
    "train cross_entropy(logits, next) using adamw(lr = 3e-4)\n";

/* The time is over as soon as something fits: whatever packs then packs badly. */
static void end_when_fitting(const PlanProgress *now, void *data)
{
    PlanOptions *how = data;
    if (now->fits)
        how->seconds = 1e-9;
}

/* A budget just above the smallest arena, which takes the packer a while. */
Test(cut, keeps_the_plan_that_fitted)
{
    PlanOptions how = {.smallest = true, .effort = 150};
    Planned smallest = planned_training(decoder, &how);
    how = (PlanOptions){.budget = smallest.plan->arena[SPACE_ARENA] +
                                  smallest.plan->arena[SPACE_ARENA] / 50,
                        .effort = how.effort,
                        .seconds = 1e6,
                        .progress = end_when_fitting,
                        .data = &how};
    Planned p = planned_training(decoder, &how);
    cr_assert_null(p.fault, "%s", p.fault);
    cr_assert_lt(how.seconds, 1);
    cr_assert_leq(p.plan->arena[SPACE_ARENA], how.budget);
    planned_free(&smallest);
    planned_free(&p);
}
