/* See dump.h. What comes before simplify is not kept, so those passes run once more for this. */
#include "frontend/command/dump.h"

#include <string.h>

/* Whether the comma list names the pass. */
static bool names(const char *list, const char *pass, size_t length)
{
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == length && memcmp(at, pass, length) == 0)
            return true;
    return false;
}

bool dump_knows(const char *list)
{
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
        if (!names(PASSES, at, strcspn(at, ",")))
            return false;
    return true;
}

static bool wants(const char *list, const char *pass)
{
    return names(list, pass, strlen(pass));
}

static void dump_first(const char *list, const Model *model, const Choice *choice)
{
    Arena *arena = arena_new();
    Model part;
    Graph *g = model_lower_first(model, choice, arena, diag_new(arena, NULL, false), &part);
    if (wants(list, "lower"))
        graph_dump(g, stdout);
    if (wants(list, "train") && (!model_trains(&part) || train_add(g, &part, choice->micro)))
        graph_dump(g, stdout);
    arena_free(arena);
}

void dump(const char *list, const Model *model, const Built *built)
{
    if (wants(list, "lower") || wants(list, "train"))
        dump_first(list, model, &built->choice);
    if (wants(list, "simplify"))
        graph_dump(built->graph, stdout);
    if (wants(list, "fuse"))
        clusters_dump(built->graph, built->clusters, stdout);
    if (wants(list, "plan"))
        plan_dump(built->plan, stdout);
}
