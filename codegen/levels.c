/* Blocks and turns of repeats as levels that a picture can open or leave shut. */
#include "codegen/picture.h"

#include <string.h>

static bool is_turn(const Graph *g, Id scope)
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
        bool level = !is_turn(g, s) || nodes[s] || inside[s] != 1;
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
    if (!is_turn(g, scope))
        return *s->path ? s->path : g->name;
    return arena_printf(g->arena, "%s%sturn %u", s->path, *s->path ? ", " : "", s->iteration);
}
