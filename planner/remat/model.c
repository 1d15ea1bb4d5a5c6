/* The problem as the search sees it: tracked values only, integer costs, tables by index. */
#include "planner/remat/internal.h"

static RematTable table_new(Arena *arena, size_t rows, size_t items)
{
    return (RematTable){ARENA_ARRAY(arena, int32_t, rows + 2), ARENA_ARRAY(arena, int32_t, items)};
}

/* Tables are filled in two rounds: count into start[row + 2], then place with start[row + 1]. */
static void table_count(RematTable *table, size_t row)
{
    table->start[row + 2]++;
}

static void table_sum(RematTable *table, size_t rows)
{
    for (size_t row = 0; row < rows; row++)
        table->start[row + 2] += table->start[row + 1];
}

static void table_place(RematTable *table, size_t row, int32_t item)
{
    table->item[table->start[row + 1]++] = item;
}

static bool tracked(const RematValue *value)
{
    return !(value->flags & REMAT_PINNED) || value->killer != REMAT_NONE;
}

static void fill_values(RematModel *model)
{
    const RematProblem *problem = model->problem;
    for (int32_t v = 0; v < model->values; v++) {
        const RematValue *value = &problem->value[v];
        bool pinned = value->flags & REMAT_PINNED;
        model->size[v] = pinned ? 0 : value->size;
        model->producer[v] = pinned || value->node == REMAT_NONE ? -1 : (int32_t)value->node;
        model->output[v] = !pinned && value->flags & REMAT_OUTPUT;
        model->watched[v] = value->drop_at != REMAT_NONE;
    }
    for (RematId i = 0; i < problem->in_places; i++)
        model->watched[problem->in_place[i].input] = true;
}

static void fill_costs(RematModel *model)
{
    const RematProblem *problem = model->problem;
    double total = 0;
    for (int32_t x = 0; x < model->nodes; x++)
        total += problem->node[x].cost;
    double scale = total > 0 ? (double)COST_ONE / total : 0;
    for (int32_t x = 0; x < model->nodes; x++) {
        model->cost[x] = (int64_t)(problem->node[x].cost * scale + 0.5);
        model->workspace[x] = problem->node[x].workspace;
        model->once[x] = problem->node[x].flags & REMAT_ONCE;
    }
}

static void each_use(RematModel *model, void (*put)(RematTable *, size_t, int32_t))
{
    const RematProblem *problem = model->problem;
    for (int32_t x = 0; x < model->nodes; x++) {
        const RematNode *node = &problem->node[x];
        for (RematId i = 0; i < node->reads; i++) {
            RematId v = problem->read[node->read + i];
            if (tracked(&problem->value[v]) && problem->value[v].killer != (RematId)x)
                put(&model->reads, (size_t)x, (int32_t)v);
        }
        for (RematId v = node->value; v < node->value + node->values; v++)
            if (!(problem->value[v].flags & REMAT_PINNED))
                put(&model->writes, (size_t)x, (int32_t)v);
    }
    for (int32_t v = 0; v < model->values; v++) {
        const RematValue *value = &problem->value[v];
        if (value->killer != REMAT_NONE)
            put(&model->kills, value->killer, v);
        if (value->drop_at != REMAT_NONE) {
            put(&model->drops, value->drop_at, v);
            put(&model->dropped, (size_t)v, (int32_t)value->drop_at);
        }
    }
    for (RematId i = 0; i < problem->in_places; i++)
        put(&model->overlays, problem->in_place[i].node, (int32_t)i);
}

static void count_item(RematTable *table, size_t row, int32_t item)
{
    (void)item;
    table_count(table, row);
}

static void fill_tables(RematModel *model)
{
    size_t nodes = (size_t)model->nodes, values = (size_t)model->values;
    Arena *arena = model->arena;
    model->reads = table_new(arena, nodes, model->problem->reads);
    model->writes = table_new(arena, nodes, values);
    model->kills = table_new(arena, nodes, values);
    model->drops = table_new(arena, nodes, values);
    model->overlays = table_new(arena, nodes, model->problem->in_places);
    model->dropped = table_new(arena, values, values);
    each_use(model, count_item);
    table_sum(&model->reads, nodes);
    table_sum(&model->writes, nodes);
    table_sum(&model->kills, nodes);
    table_sum(&model->drops, nodes);
    table_sum(&model->overlays, nodes);
    table_sum(&model->dropped, values);
    each_use(model, table_place);
}

RematModel *remat_model(const RematProblem *problem, Arena *arena)
{
    RematModel *model = ARENA_NEW(arena, RematModel);
    model->problem = problem;
    model->arena = arena;
    model->nodes = (int32_t)problem->nodes;
    model->values = (int32_t)problem->values;
    model->cost = ARENA_ARRAY(arena, int64_t, problem->nodes);
    model->workspace = ARENA_ARRAY(arena, int64_t, problem->nodes);
    model->once = ARENA_ARRAY(arena, bool, problem->nodes);
    model->size = ARENA_ARRAY(arena, int64_t, problem->values);
    model->producer = ARENA_ARRAY(arena, int32_t, problem->values);
    model->output = ARENA_ARRAY(arena, bool, problem->values);
    model->watched = ARENA_ARRAY(arena, bool, problem->values);
    fill_values(model);
    fill_costs(model);
    fill_tables(model);
    return model;
}
