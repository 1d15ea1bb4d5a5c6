/* From a model to a plan: what choose takes for granted, and what it leaves. */
#include "tests/plan/planned.h"

#include <criterion/criterion.h>
#include <string.h>

static const char decoder[] =
    "model decoder(batch B = 8, T = 16, C = 32, L = 3, H = 4, V = 300)\n"
    "input tokens : i32[B, T]\ninput next : i32[B, T]\n"
    "block layer(x) {\n  x = x + attention(layernorm(x), heads = H, causal = true)\n"
    "  return x + dense(gelu(dense(layernorm(x), 4*C)), C)\n}\n"
    "param wte : [V, C] = normal(0.02)\n"
    "h = embedding(tokens, wte)\nrepeat i in 0..L { h = layer(h) }\n"
    "logits = layernorm(h) @ transpose(wte)\n"
    "train cross_entropy(logits, next) using adamw(lr = 3e-4) { clip = 1.0 }\n";

static const char images[] =
    "model images(batch B = 8, S = 16)\n"
    "input x : f32[B, 3, S, S]\ninput y : i32[B]\n"
    "h = relu(conv2d(x, 8, kernel = 3, pad = same))\nh = maxpool2d(h, 2)\n"
    "h = relu(groupnorm(conv2d(h, 16, kernel = 3, pad = same), groups = 4))\n"
    "logits = dense(dropout(global_avgpool(h), 0.1), 10)\noutput logits\n"
    "train cross_entropy(logits, y) using sgd(lr = 0.1, momentum = 0.9)\n";

static const char perceptron[] = "model perceptron(batch B = 8)\n"
                                 "input x : f32[B, 4]\ninput y : f32[B, 2]\n"
                                 "train mse(dense(tanh(dense(x, 5)), 2), y) using adam()\n";

static const char *const models[] = {decoder, images, perceptron};
enum { MODELS = sizeof models / sizeof *models };

static Model read_model(Arena *arena, const char *text, Diag **diag)
{
    Source *source = ARENA_NEW(arena, Source);
    *source = (Source){.file = "test.g", .text = text, .length = strlen(text)};
    *diag = diag_new(arena, stderr, false);
    const Ast *ast = parse(arena, *diag, source);
    cr_assert(ast);
    return (Model){.source = source, .ast = ast};
}

/* Choices that were not lowered yet are ordered by this. */
Test(choose, more_micro_batches_cost_no_less)
{
    const Target target = target_make(target_find("c"), 1);
    for (int i = 0; i < MODELS; i++)
        for (int kind = 0; kind < 4; kind++) {
            double before = 0;
            Arena *arena = arena_new();
            Diag *diag;
            Model model = read_model(arena, models[i], &diag);
            for (uint32_t micro = 1; micro <= 8; micro *= 2) {
                Choice choice = {.micro = micro, .chunked_loss = kind & 1, .epilogues = kind & 2};
                Built built = build(&model, &target, &choice, diag);
                cr_assert(built.graph);
                double cost = plan_cost(built.graph, built.clusters, &target);
                cr_expect(cost >= before, "model %d, %u micro-batches: %g after %g", i, micro, cost,
                          before);
                before = cost;
                built_free(&built);
            }
            arena_free(arena);
        }
}

/* A choice that cannot cost less than what is known is not searched; one that may, is, and comes to
 * the same plan. */
Test(choose, searches_only_for_what_may_cost_less)
{
    const Target target = target_make(target_find("c"), 1);
    Arena *arena = arena_new();
    Diag *diag;
    Model model = read_model(arena, decoder, &diag);
    Choice choice = {.micro = 1};
    Built built = build(&model, &target, &choice, diag);
    cr_assert(built.graph);
    PlanOptions how = {.effort = 20, .smallest = true};
    Search search, again;
    Plan *small = plan_make(arena, built.graph, built.clusters, &target, &how, &search);
    how = (PlanOptions){.effort = 20, .budget = small->arena[SPACE_ARENA]};
    Plan *plan = plan_make(arena, built.graph, built.clusters, &target, &how, &search);
    cr_assert(!search.hopeless);
    cr_assert_gt(search.cost_bound, search.least_cost);
    how.enough = plan->cost;
    Plan *same = plan_make(arena, built.graph, built.clusters, &target, &how, &again);
    cr_expect(!again.hopeless);
    cr_expect_eq(same->cost, plan->cost);
    cr_expect_eq(again.effort, search.effort);
    how.enough = search.cost_bound;
    plan_make(arena, built.graph, built.clusters, &target, &how, &again);
    cr_expect(again.hopeless);
    cr_expect_lt(again.effort, search.effort);
    cr_expect_eq(again.cost_bound, search.cost_bound);
    built_free(&built);
    arena_free(arena);
}

/* What --min-budget finds, --budget meets: by the same choice or one that costs less. */
Test(choose, meets_the_smallest_budget_that_it_finds)
{
    const Target target = target_make(target_find("c"), 1);
    for (int i = 0; i < MODELS; i++) {
        Arena *arena = arena_new();
        Diag *diag;
        Model model = read_model(arena, models[i], &diag);
        PlanOptions how = {.smallest = true, .micro_auto = true, .effort = 50};
        Built smallest = choose(&model, &target, &how, diag);
        cr_assert(smallest.plan);
        how = (PlanOptions){
            .budget = smallest.plan->arena[SPACE_ARENA], .micro_auto = true, .effort = 50};
        Built met = choose(&model, &target, &how, diag);
        cr_expect_leq(met.plan->arena[SPACE_ARENA], how.budget, "model %d", i);
        cr_expect_leq(met.plan->cost, smallest.plan->cost * (1 + 1e-9), "model %d", i);
        cr_expect_null(plan_check(met.plan, &target, NULL));
        how.budget--;
        Built missed = choose(&model, &target, &how, diag);
        cr_expect_eq(missed.plan->arena[SPACE_ARENA], smallest.plan->arena[SPACE_ARENA], "model %d",
                     i);
        built_free(&smallest);
        built_free(&met);
        built_free(&missed);
        arena_free(arena);
    }
}

/* The graph that was planned is the one that is there, with as many micro-batches as were chosen.
 */
Test(choose, returns_what_it_built)
{
    const Target target = target_make(target_find("c"), 1);
    Arena *arena = arena_new();
    Diag *diag;
    Model model = read_model(arena, decoder, &diag);
    PlanOptions how = {.smallest = true, .micro = 2, .micro_auto = true, .effort = 20};
    Built built = choose(&model, &target, &how, diag);
    cr_assert_eq(built.plan->graph, built.graph);
    cr_assert_eq(built.plan->clusters, built.clusters);
    cr_expect_geq(built.choice.micro, 2);
    cr_expect_eq(built.graph->train.times, built.choice.micro);
    cr_expect_gt(built.search.least_cost, 0);
    cr_expect_leq(built.search.least_cost, built.plan->cost);
    built_free(&built);
    arena_free(arena);
}
