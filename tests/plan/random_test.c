/* Random graphs: what a plan computes on its arena equals what the graph computes without one.
 * GPLAN_SOAK=100000 in the environment runs so many graphs instead of a few hundred. */
#include "tests/plan/planned.h"
#include "tests/plan/random_graph.h"
#include "tests/plan/run_plan.h"

#include <criterion/criterion.h>
#include <stdlib.h>

enum { PARTS = 4 };

typedef struct {
    int planned, run;
    uint64_t concats, in_place, windows, clusters, views;
} Seen;

static void count(const Planned *p, Seen *seen)
{
    for (Id i = 0; i < p->plan->buffers; i++) {
        const Buffer *b = &p->plan->buffer[i];
        bool window = b->value != NONE && !view_is_plain(&b->layout, &p->graph->value.at[b->value]);
        seen->windows += window;
        seen->in_place += b->root != i && !window;
    }
    for (Id i = 0; i < p->clusters->count; i++)
        seen->clusters += p->clusters->at[i].nodes > 1;
}

static Target any_target(void)
{
    Target target = target_make(target_find("c"), 1);
    target.align = 256; /* what CUDA's kernels ask for, where they are linked */
    return target;
}

static void try_graph(uint64_t seed, Seen *seen)
{
    Arena *arena = arena_new();
    Graph *g = random_graph(arena, seed);
    PlanOptions how = {.io_external = seed % 5 == 1, .params_external = seed % 7 == 2};
    const Target target = any_target();
    Planned p = planned_graph(arena, g, &how, &target);
    cr_assert_null(p.fault, "graph %llu: %s", (unsigned long long)seed, p.fault);
    cr_assert(p.plan->arena[SPACE_ARENA] >= p.plan->peak &&
                  p.plan->arena[SPACE_ARENA] >= p.plan->floor &&
                  p.plan->arena[SPACE_ARENA] >= p.plan->bound &&
                  p.plan->arena[SPACE_ARENA] >= p.plan->persistent,
              "graph %llu: arena %llu, peak %llu, floor %llu, bound %llu, persistent %llu",
              (unsigned long long)seed, (unsigned long long)p.plan->arena[SPACE_ARENA],
              (unsigned long long)p.plan->peak, (unsigned long long)p.plan->floor,
              (unsigned long long)p.plan->bound, (unsigned long long)p.plan->persistent);
    count(&p, seen);
    seen->planned++;
    PlainRun plain = plain_run(g, seed);
    if (plain.status == 0) {
        const char *wrong = plan_differs(arena, p.plan, &plain, seed, true);
        cr_assert_null(wrong, "graph %llu: %s", (unsigned long long)seed, wrong);
        seen->run++;
    }
    plain_free(&plain);
    arena_free(arena);
}

/* ---- Outputs that the graph reads too ---------------------------------------------------------
 */

/* Every fourth value that a node reads, and that no view looks at, becomes an output. */
static void show_what_is_read(Graph *g, uint64_t seed)
{
    bool *read = ARENA_ARRAY(g->arena, bool, g->value.count);
    g->output.count = 0;
    for (size_t n = 0; n < g->node.count; n++)
        for (Id i = 0; i < g->node.at[n].uses; i++)
            if (node_use(g, &g->node.at[n], i).value != NONE)
                read[node_use(g, &g->node.at[n], i).value] = true;
    for (Id v = (Id)(seed % 4); v < g->value.count; v += 4)
        if (read[v] && g->value.at[v].node != NONE && g->value.at[v].previous == NONE)
            ARRAY_PUSH(g->arena, &g->output,
                       (Output){.use = use_of(v), .name = g->value.at[v].name});
}

/* True where an output is computed again. */
static bool try_read_outputs(uint64_t seed)
{
    Arena *arena = arena_new();
    Graph *g = random_graph(arena, seed);
    bool again = false;
    show_what_is_read(g, seed);
    PlanOptions how = {.smallest = true, .effort = 10, .io_external = seed % 5 == 1};
    const Target target = any_target();
    Planned p = planned_graph(arena, g, &how, &target);
    cr_assert_null(p.fault, "graph %llu: %s", (unsigned long long)seed, p.fault);
    for (size_t k = 0; k < g->output.count; k++)
        for (Id i = 0; i < p.plan->buffers; i++)
            again |= i != p.plan->output[k] &&
                     p.plan->buffer[i].value == p.plan->buffer[p.plan->output[k]].value;
    PlainRun plain = plain_run(g, seed);
    if (plain.status == 0) {
        const char *wrong = plan_differs(arena, p.plan, &plain, seed, true);
        cr_assert_null(wrong, "graph %llu: %s", (unsigned long long)seed, wrong);
    }
    again = again && plain.status == 0;
    plain_free(&plain);
    arena_free(arena);
    return again;
}

Test(random, outputs_that_are_read_inside_are_right_in_the_least_memory)
{
    int again = 0;
    for (uint64_t seed = 0; seed < 80; seed++)
        again += try_read_outputs(seed);
    cr_log_info("%d graphs compute an output again", again);
    cr_expect(again >= 5, "only %d graphs compute an output again", again);
}

/* ---- Parts, so that they run side by side -----------------------------------------------------
 */

static void try_part(uint64_t part)
{
    const char *soak = getenv("GPLAN_SOAK");
    uint64_t graphs = soak ? strtoull(soak, NULL, 10) : 400;
    Seen seen = {0};
    for (uint64_t seed = part; seed < graphs; seed += PARTS)
        try_graph(seed, &seen);
    cr_log_info("%d planned, %d run, %llu in place, %llu windows, %llu fused", seen.planned,
                seen.run, (unsigned long long)seen.in_place, (unsigned long long)seen.windows,
                (unsigned long long)seen.clusters);
    cr_expect(seen.run * 4 >= seen.planned * 3, "too many graphs run into an index error");
    cr_expect(seen.in_place && seen.windows && seen.clusters, "the graphs are too tame");
}

Test(random, a_planned_graph_computes_what_the_graph_does_part_1)
{
    try_part(0);
}
Test(random, a_planned_graph_computes_what_the_graph_does_part_2)
{
    try_part(1);
}
Test(random, a_planned_graph_computes_what_the_graph_does_part_3)
{
    try_part(2);
}
Test(random, a_planned_graph_computes_what_the_graph_does_part_4)
{
    try_part(3);
}
