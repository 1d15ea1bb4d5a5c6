/* Blocks and iterations of repeats as levels that a picture can open or leave shut. */
#include "codegen/picture.h"

#include <string.h>

static bool is_iteration(const Graph *g, Id scope)
{
    const Scope *s = &g->scope.at[scope];
    return s->parent != NONE && strcmp(s->path, g->scope.at[s->parent].path) == 0;
}

Levels levels_make(const Graph *g)
{
    size_t count = g->scope.count;
    Levels l = {ARENA_ARRAY(g->arena, uint32_t, count), ARENA_ARRAY(g->arena, Id, count),
                ARENA_ARRAY(g->arena, Id, count)};
    Id *inside = ARENA_ARRAY(g->arena, Id, count); /* nodes and scopes straight in it */
    bool *nodes = ARENA_ARRAY(g->arena, bool, count);
    for (size_t i = 0; i < g->node.count; i++)
        nodes[g->node.at[i].scope] = true;
    for (Id s = 0; s < count; s++)
        if (g->scope.at[s].parent != NONE)
            inside[g->scope.at[s].parent]++;
    for (Id s = 0; s < count; s++) { /* parents stand before their children */
        Id parent = g->scope.at[s].parent;
        if (parent == NONE) {
            l.parent[s] = NONE;
            l.shown[s] = s;
            continue;
        }
        bool level = !is_iteration(g, s) || nodes[s] || inside[s] != 1;
        l.parent[s] = l.shown[parent];
        l.shown[s] = level ? s : l.shown[parent];
        l.level[s] = l.level[l.shown[parent]] + level;
    }
    return l;
}

Id level_at(const Levels *levels, Id scope, uint32_t level)
{
    scope = levels->shown[scope];
    if (levels->level[scope] < level)
        return NONE;
    while (levels->level[scope] > level)
        scope = levels->parent[scope];
    return scope;
}

const char *scope_title(const Graph *g, Id scope)
{
    const Scope *s = &g->scope.at[scope];
    if (!is_iteration(g, scope))
        return *s->path ? s->path : g->name;
    return arena_printf(g->arena, "%s%siteration %u", s->path, *s->path ? ", " : "", s->iteration);
}

/* ---- Groups of steps ------------------------------------------------------------------------ */

/* The block of the first level that a step belongs to; updates stand together. */
static Id group_of(const Picture *p, const Levels *levels, uint32_t time)
{
    const Node *node = p->step[time].node;
    return node->phase == PHASE_UPDATE ? 0 : level_at(levels, node->scope, 1);
}

Group *groups_make(const Picture *p, size_t *count)
{
    Levels levels = levels_make(p->g);
    Group *group = ARENA_ARRAY(p->arena, Group, p->plan->end + 1);
    *count = 0;
    for (uint32_t from = 0, to; from < p->plan->end; from = to) {
        const Step *step = &p->step[from];
        Id scope = group_of(p, &levels, from);
        for (to = from + 1; to < p->plan->end; to++)
            if (group_of(p, &levels, to) != scope || p->step[to].program != step->program ||
                p->step[to].node->phase != step->node->phase)
                break;
        const char *title = scope == NONE ? "" : scope == 0 ? "update" : scope_title(p->g, scope);
        group[(*count)++] = (Group){title, from, to, step->node->phase};
    }
    return group;
}
