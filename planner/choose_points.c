/* What each budget gets, over all choices. */
#include "planner/choose.h"

#include <stdlib.h>

typedef ARRAY(ChoicePoint) Points;

static int by_budget(const void *a, const void *b)
{
    const ChoicePoint *x = a, *y = b;
    if (x->budget != y->budget)
        return x->budget < y->budget ? -1 : 1;
    return (x->cost > y->cost) - (x->cost < y->cost);
}

/* From this budget on no plan of the candidate can be cheaper than what is known; 0: anywhere. */
static uint64_t known_from(const Points *all, const Candidate *c)
{
    uint64_t least = 0;
    for (size_t i = 0; i < all->count; i++)
        if (all->at[i].cost <= c->least && (!least || all->at[i].budget < least))
            least = all->at[i].budget;
    return least;
}

/* The plans of one candidate. */
static void add_points(Chooser *s, Id id, Arena *arena, Points *all)
{
    Candidate *c = &s->candidate.at[id];
    PlanPoint *point;
    PlanOptions how = *s->options;
    Arena *scratch = arena_new();
    how.smallest = false;
    how.most = known_from(all, c);
    how.seconds = choose_seconds(s);
    how.ring = c->choice.ring;
    how.rival = trials_rival(s, id);
    size_t found =
        plan_points(scratch, c->lowered->graph, c->clusters, s->target, &how, &point, &c->smallest);
    for (size_t k = 0; k < found; k++)
        ARRAY_PUSH(arena, all, (ChoicePoint){point[k].budget, point[k].cost, c->choice});
    arena_free(scratch);
    candidate_close(c);
}

/* What is narrow is a resort: only below the smallest budget that is met without. */
static size_t leave_resort(ChoicePoint *point, size_t count, uint8_t asked)
{
    uint64_t least = UINT64_MAX;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (point[i].choice.precision == asked && point[i].budget < least)
            least = point[i].budget;
    for (size_t i = 0; i < count; i++)
        if (point[i].choice.precision == asked || point[i].budget < least)
            point[kept++] = point[i];
    return kept;
}

bool choose_points(const Model *model, const Target *target, const PlanOptions *options,
                   Arena *arena, Diag *diag, ChoicePoint **points, size_t *count, Search *search)
{
    Points all = {0};
    PlanOptions how = *options;
    how.budget = 0;
    how.smallest = true; /* all choices are open */
    Chooser s = choose_begin(model, target, &how, diag);
    bool good = !s.candidate.at[0].gone;
    if (good)
        candidates_list(&s);
    for (Id i;
         good && (i = candidates_next(&s, true)) != NONE && !(all.count && choose_stopped(&s));)
        add_points(&s, i, arena, &all);
    *search = (Search){.cut = choose_stopped(&s), .least_cost = good ? choose_least_cost(&s) : 0};
    choose_end(&s);
    all.count = leave_resort(all.at, all.count, choice_asked(model, target, &how).precision);
    if (all.count)
        qsort(all.at, all.count, sizeof *all.at, by_budget);
    *count = 0;
    *points = all.at;
    for (size_t i = 0; i < all.count; i++)
        if (!*count || all.at[i].cost < all.at[*count - 1].cost * (1 - 1e-9) ||
            all.at[i].choice.precision != all.at[*count - 1].choice.precision)
            all.at[(*count)++] = all.at[i];
    return good;
}
