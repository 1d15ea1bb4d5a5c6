/* What chains of blocks bring to the search: schedules to start from, and plans of their own. */
#include "planner/fit.h"

#include <stdlib.h>
#include <string.h>

/* Of the schedules of a chain those that are packed to show what there is. */
enum { SHOWN_PART = 8 };

/* Those that are packed even when the time is over: a plan that fits is better than a quick one. */
enum { CUT_TRIES = 8 };

/* The training step is the program with a way back. */
void find_chains(Fit *f)
{
    const Abstract *a = &f->program[PROGRAM_MICRO];
    for (int i = 0; i < BLOCK_DEPTHS; i++) {
        size_t bytes = a->problem.nodes * sizeof **a->block;
        if (a->block[i] && (!i || memcmp(a->block[i], a->block[i - 1], bytes) != 0))
            f->chain[i] = chain_new(&a->problem, a->block[i], a->back, f->g->arena);
    }
}

void know_chains(Fit *f, uint64_t budget)
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
        know(f, PROGRAM_MICRO, &found);
    }
}

typedef struct {
    int depth;
    size_t point;
    int64_t peak;
    double cost;
} Link;

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

static void meet_link(Fit *f, const Link *link)
{
    Order order = f->given;
    for (int p = 0; p < PROGRAMS; p++) {
        RematSchedule schedule = best_known(f, p, (uint64_t)link->peak)->schedule;
        if (p == PROGRAM_MICRO)
            schedule = chain_schedule(f->chain[link->depth], link->point);
        adopt(f, &order, p, &schedule);
    }
    meet(f, &order, PACK_STEPS);
}

void meet_chains(Fit *f, uint64_t budget, bool all)
{
    ARRAY(Link) link = {0};
    for (int i = 0; i < BLOCK_DEPTHS; i++) {
        size_t count = 0;
        const ChainPoint *point = f->chain[i] ? chain_points(f->chain[i], &count) : NULL;
        for (size_t k = 0; k < count; k++)
            if (!all || k % SHOWN_PART == 0)
                ARRAY_PUSH(f->g->arena, &link, (Link){i, k, point[k].peak, point[k].cost});
    }
    if (link.count)
        qsort(link.at, link.count, sizeof *link.at, by_cost);
    size_t tries = 0;
    for (size_t i = 0; i < link.count && (tries < CUT_TRIES || !is_cut(f)); i++) {
        if ((uint64_t)link.at[i].peak > budget)
            continue;
        tries++;
        meet_link(f, &link.at[i]);
        if (!all && f->met.at[f->met.count - 1].arena <= budget)
            break;
    }
}
