/* What chains of blocks bring to the search: schedules to start from, and plans of their own. */
#include "planner/fit.h"

#include <stdlib.h>
#include <string.h>

/* Those that are packed even when the time is over: a plan that fits is better than a quick one. */
enum { CUT_TRIES = 8 };

/* The training step is the program with a backward pass. */
void find_chains(Fit *f)
{
    const RematProgram *a = &f->program[PROGRAM_STEP];
    for (int i = 0; i < BLOCK_DEPTHS; i++) {
        size_t bytes = a->problem.nodes * sizeof **a->block;
        if (a->block[i] && (!i || memcmp(a->block[i], a->block[i - 1], bytes) != 0))
            f->chain[i] = chain_new(&a->problem, a->block[i], a->back, f->arena);
    }
}

void remember_chains(Fit *f, uint64_t budget)
{
    for (int i = 0; i < BLOCK_DEPTHS; i++) {
        size_t count, best = 0;
        const ChainPoint *point = f->chain[i] ? chain_points(f->chain[i], &count) : NULL;
        if (!point)
            continue;
        for (size_t k = 1; k < count && (uint64_t)point[best].peak > budget; k++)
            if (point[k].peak < point[best].peak)
                best = k;
        RematSchedule found = chain_schedule(f->chain[i], best);
        remember(f, PROGRAM_STEP, &found);
    }
}

static int by_cost(const void *a, const void *b)
{
    const Link *x = a, *y = b;
    if (x->cost < y->cost || x->cost > y->cost)
        return x->cost < y->cost ? -1 : 1;
    return x->depth != y->depth ? x->depth - y->depth
                                : (x->point > y->point) - (x->point < y->point);
}

bool has_chain(const Fit *f)
{
    for (int i = 0; i < BLOCK_DEPTHS; i++)
        if (f->chain[i])
            return true;
    return false;
}

static void list_links(Fit *f)
{
    for (int i = 0; i < BLOCK_DEPTHS; i++) {
        size_t count = 0;
        const ChainPoint *point = f->chain[i] ? chain_points(f->chain[i], &count) : NULL;
        for (size_t k = 0; k < count; k++)
            ARRAY_PUSH(f->arena, &f->link, (Link){i, k, point[k].peak, point[k].cost, 0});
    }
    if (f->link.count)
        qsort(f->link.at, f->link.count, sizeof *f->link.at, by_cost);
}

/* With what was known of the other programs before the ladder, so that it does not matter how much
 * of that was climbed. */
static void try_link(Fit *f, Link *link)
{
    Order order = f->given;
    for (int p = 0; p < PROGRAMS; p++) {
        RematSchedule schedule = best_of(f, p, (uint64_t)link->peak, f->early[p])->schedule;
        if (p == PROGRAM_STEP)
            schedule = chain_schedule(f->chain[link->depth], link->point);
        adopt(f, &order, p, &schedule);
    }
    link->arena = try_order(f, &order, PACK_STEPS, 0)->arena;
}

void try_chains(Fit *f, uint64_t budget, bool all)
{
    size_t tries = 0;
    if (!f->link.count)
        list_links(f);
    for (size_t i = 0; i < f->link.count && (tries < CUT_TRIES || !is_cut(f)); i++) {
        Link *link = &f->link.at[i];
        if ((uint64_t)link->peak > budget)
            continue;
        if (!link->arena) {
            tries++;
            try_link(f, link);
        }
        if (!all && link->arena <= budget)
            break;
    }
}
