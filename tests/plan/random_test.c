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

static void try_graph(uint64_t seed, Seen *seen)
{
    Arena *arena = arena_new();
    Graph *g = random_graph(arena, seed);
    PlanOptions how = {.io_external = seed % 5 == 1, .params_external = seed % 7 == 2};
    Target target = target_c(1);
    target.align = 256; /* what CUDA's kernels ask for, where they are linked */
    Planned p = planned_graph(arena, g, &how, &target);
    cr_assert_null(p.fault, "graph %llu: %s", (unsigned long long)seed, p.fault);
    cr_assert(p.plan->arena >= p.plan->peak && p.plan->arena >= p.plan->floor &&
                  p.plan->arena >= p.plan->bound && p.plan->arena >= p.plan->persistent,
              "graph %llu: arena %llu, peak %llu, floor %llu, bound %llu, persistent %llu",
              (unsigned long long)seed, (unsigned long long)p.plan->arena,
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
