/* Random graphs with their gradients, planned at budgets from the smallest arena to the one without
 * recomputation: the arena keeps the budget, and what is computed is the same, bit for bit.
 * GPLAN_SOAK=1000 in the environment runs so many graphs instead of a few dozen. */
#include "tests/plan/planned.h"
#include "tests/plan/random_graph.h"
#include "tests/plan/run_plan.h"

#include <criterion/criterion.h>
#include <stdlib.h>

enum { PARTS = 4, EFFORT = 10 };

typedef struct {
    int graphs, plans, recomputing;
    uint64_t nodes;
} Seen;

static bool is_real(const Graph *g, Use use)
{
    return use.value != NONE && g->value.at[use.value].dtype == F32;
}

/* The gradient of the sum of all outputs by every real input, as further outputs. */
static bool add_gradients(Graph *g)
{
    Call at = {.name = "loss"};
    Use loss = {NONE, NONE}, *gradient;
    for (size_t v = 0; v < g->value.count; v++)
        if (g->value.at[v].kind == VALUE_INPUT && g->value.at[v].dtype == F32)
            g->value.at[v].kind = VALUE_PARAM;
    for (size_t i = 0; i < g->output.count; i++) {
        if (!is_real(g, g->output.at[i].use))
            continue;
        Use part = call_op(g, &at, "sum", 1, &g->output.at[i].use);
        loss = loss.value == NONE ? part : call_op(g, &at, "add", 2, (Use[]){loss, part});
    }
    if (loss.value == NONE || !gradients(g, loss, &gradient))
        return false;
    size_t values = g->value.count, added = 0;
    for (size_t v = 0; v < values; v++) {
        if (gradient[v].value == NONE)
            continue;
        Use own = call_op(g, &at, "copy", 1, &gradient[v]);
        const char *name = arena_printf(g->arena, "gradient%zu", added++);
        ARRAY_PUSH(g->arena, &g->output, (Output){.use = own, .name = name});
    }
    return added > 0;
}

/* The graph of a seed; NULL where it has nothing to derive. */
static Graph *graph_of(Arena *arena, uint64_t seed)
{
    Graph *g = random_graph(arena, seed);
    FILE *nowhere = fopen("/dev/null", "w");
    g->diag = diag_new(arena, nowhere, false);
    bool good = add_gradients(g);
    fclose(nowhere);
    return good ? g : NULL;
}

static bool recomputes(const Plan *plan)
{
    Id clusters = 0, steps = 0;
    for (Id i = 0; i < plan->clusters->count; i++)
        clusters += plan->clusters->at[i].program == PROGRAM_FORWARD;
    steps = plan->program[PROGRAM_FORWARD].count;
    return steps > clusters;
}

/* Plans the seed's graph; returns the arena. */
static uint64_t try_budget(uint64_t seed, PlanOptions how, Seen *seen)
{
    Arena *arena = arena_new();
    Graph *g = graph_of(arena, seed);
    how.effort = EFFORT;
    Planned p = planned_graph(arena, g, &how, NULL);
    cr_assert_null(p.fault, "graph %llu: %s", (unsigned long long)seed, p.fault);
    cr_assert(!how.budget || p.plan->arena <= how.budget, "graph %llu: arena %llu of %llu",
              (unsigned long long)seed, (unsigned long long)p.plan->arena,
              (unsigned long long)how.budget);
    PlainRun plain = plain_run(g, seed);
    if (plain.status == 0) {
        const char *wrong = plan_differs(arena, p.plan, &plain, seed, true);
        cr_assert_null(wrong, "graph %llu: %s", (unsigned long long)seed, wrong);
    }
    plain_free(&plain);
    seen->plans++;
    seen->recomputing += recomputes(p.plan);
    seen->nodes += g->node.count;
    uint64_t bytes = p.plan->arena;
    arena_free(arena);
    return bytes;
}

static void try_graph(uint64_t seed, Seen *seen)
{
    Arena *arena = arena_new();
    bool good = graph_of(arena, seed) != NULL;
    arena_free(arena);
    if (!good)
        return;
    uint64_t most = try_budget(seed, (PlanOptions){.no_recompute = true}, seen);
    uint64_t least = try_budget(seed, (PlanOptions){.smallest = true}, seen);
    for (uint64_t percent = 0; percent < 100 && least < most; percent += 25)
        try_budget(seed, (PlanOptions){.budget = least + (most - least) * percent / 100}, seen);
    seen->graphs++;
}

static void try_part(uint64_t part)
{
    const char *soak = getenv("GPLAN_SOAK");
    uint64_t graphs = soak ? strtoull(soak, NULL, 10) : 60;
    Seen seen = {0};
    for (uint64_t seed = part; seed < graphs; seed += PARTS)
        try_graph(seed, &seen);
    cr_log_info("%d graphs, %llu nodes a plan, %d plans, %d of them recompute", seen.graphs,
                (unsigned long long)(seen.nodes / (uint64_t)(seen.plans ? seen.plans : 1)),
                seen.plans, seen.recomputing);
    cr_expect(seen.graphs && seen.recomputing, "the graphs are too tame");
}

Test(budget, plans_keep_it_and_compute_the_same_part_1)
{
    try_part(0);
}
Test(budget, plans_keep_it_and_compute_the_same_part_2)
{
    try_part(1);
}
Test(budget, plans_keep_it_and_compute_the_same_part_3)
{
    try_part(2);
}
Test(budget, plans_keep_it_and_compute_the_same_part_4)
{
    try_part(3);
}
