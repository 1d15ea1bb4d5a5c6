/* Orders to start from, each node once: the given one, depth first from the ends, and greedy list
 * scheduling for memory, forwards and backwards. */
#include "planner/remat/internal.h"

/* What must run before what: producers before readers, readers before killers. */
typedef struct {
    const RematModel *model;
    RematTable before, after; /* by node */
    Arena *arena;
} Precedence;

static void each_pair(const RematModel *model, const RematTable *readers,
                      void (*put)(Precedence *, int32_t, int32_t), Precedence *out)
{
    for (int32_t x = 0; x < model->nodes; x++)
        for (int32_t i = model->reads.start[x]; i < model->reads.start[x + 1]; i++)
            if (model->producer[model->reads.item[i]] >= 0)
                put(out, model->producer[model->reads.item[i]], x);
    for (int32_t x = 0; x < model->nodes; x++)
        for (int32_t i = model->kills.start[x]; i < model->kills.start[x + 1]; i++) {
            int32_t value = model->kills.item[i];
            if (model->producer[value] >= 0)
                put(out, model->producer[value], x);
            for (int32_t j = readers->start[value]; j < readers->start[value + 1]; j++)
                put(out, readers->item[j], x);
        }
}

static void count_pair(Precedence *out, int32_t first, int32_t second)
{
    out->after.start[first + 2]++;
    out->before.start[second + 2]++;
}

static void place_pair(Precedence *out, int32_t first, int32_t second)
{
    out->after.item[out->after.start[first + 1]++] = second;
    out->before.item[out->before.start[second + 1]++] = first;
}

RematTable remat_readers(const RematModel *model, Arena *arena)
{
    size_t values = (size_t)model->values;
    size_t reads = (size_t)model->reads.start[model->nodes];
    RematTable table = {ARENA_ARRAY(arena, int32_t, values + 2),
                        ARENA_ARRAY(arena, int32_t, reads)};
    for (size_t i = 0; i < reads; i++)
        table.start[model->reads.item[i] + 2]++;
    for (size_t v = 0; v < values; v++)
        table.start[v + 2] += table.start[v + 1];
    for (int32_t x = 0; x < model->nodes; x++)
        for (int32_t i = model->reads.start[x]; i < model->reads.start[x + 1]; i++)
            table.item[table.start[model->reads.item[i] + 1]++] = x;
    return table;
}

static Precedence precedence(const RematModel *model, const RematTable *readers, Arena *arena)
{
    size_t nodes = (size_t)model->nodes;
    Precedence result = {.model = model, .arena = arena};
    result.before.start = ARENA_ARRAY(arena, int32_t, nodes + 2);
    result.after.start = ARENA_ARRAY(arena, int32_t, nodes + 2);
    each_pair(model, readers, count_pair, &result);
    for (size_t x = 0; x < nodes; x++) {
        result.before.start[x + 2] += result.before.start[x + 1];
        result.after.start[x + 2] += result.after.start[x + 1];
    }
    size_t pairs = (size_t)result.before.start[nodes + 1];
    result.before.item = ARENA_ARRAY(arena, int32_t, pairs);
    result.after.item = ARENA_ARRAY(arena, int32_t, pairs);
    each_pair(model, readers, place_pair, &result);
    return result;
}

/* ---- depth first ---- */

static void depth_first(const Precedence *graph, RematSchedule *order)
{
    const RematModel *model = graph->model;
    size_t nodes = (size_t)model->nodes;
    int32_t *stack = ARENA_ARRAY(graph->arena, int32_t, nodes);
    int32_t *next = ARENA_ARRAY(graph->arena, int32_t, nodes);
    bool *seen = ARENA_ARRAY(graph->arena, bool, nodes);
    for (int32_t root = 0; root < model->nodes; root++) {
        if (graph->after.start[root] < graph->after.start[root + 1])
            continue;
        int32_t depth = 0;
        stack[depth++] = root;
        seen[root] = true;
        while (depth) {
            int32_t x = stack[depth - 1],
                    count = graph->before.start[x + 1] - graph->before.start[x];
            if (next[x] == count) {
                order->node[order->count++] = (RematId)x;
                depth--;
                continue;
            }
            int32_t y = graph->before.item[graph->before.start[x] + next[x]++];
            if (!seen[y]) {
                seen[y] = true;
                stack[depth++] = y;
            }
        }
    }
}

/* ---- list scheduling: of the nodes that can run, the one that adds least to what is live ---- */

typedef struct {
    int64_t growth;
    int32_t node;
} Ready;

typedef struct {
    const Precedence *graph;
    const RematTable *readers;
    bool backward;
    int32_t *waiting; /* by node: neighbours still to come */
    int32_t *uses;    /* by value: readers placed */
    bool *placed;     /* by node */
    ARRAY(Ready) heap;
} Lister;

static bool sooner(Ready a, Ready b)
{
    return a.growth != b.growth ? a.growth < b.growth : a.node < b.node;
}

static void heap_push(Lister *lister, Ready ready)
{
    ARRAY_PUSH(lister->graph->arena, &lister->heap, ready);
    size_t i = lister->heap.count - 1;
    for (; i && sooner(ready, lister->heap.at[(i - 1) / 2]); i = (i - 1) / 2)
        lister->heap.at[i] = lister->heap.at[(i - 1) / 2];
    lister->heap.at[i] = ready;
}

static Ready heap_pop(Lister *lister)
{
    Ready *at = lister->heap.at, result = at[0], last = at[--lister->heap.count];
    size_t i = 0, count = lister->heap.count;
    for (size_t child; (child = 2 * i + 1) < count; i = child) {
        if (child + 1 < count && sooner(at[child + 1], at[child]))
            child++;
        if (!sooner(at[child], last))
            break;
        at[i] = at[child];
    }
    if (count)
        at[i] = last;
    return result;
}

static int32_t readers_left(const Lister *lister, int32_t value)
{
    const RematTable *readers = lister->readers;
    int32_t left = readers->start[value + 1] - readers->start[value] - lister->uses[value];
    return left + lister->graph->model->output[value];
}

/* Forwards, the last reader frees; backwards, the first reader allocates. */
static int64_t growth_of(const Lister *lister, int32_t x)
{
    const RematModel *model = lister->graph->model;
    int64_t growth = 0;
    for (int32_t i = model->writes.start[x]; i < model->writes.start[x + 1]; i++) {
        int32_t value = model->writes.item[i];
        if (lister->backward)
            growth -= model->size[value];
        else if (readers_left(lister, value))
            growth += model->size[value];
    }
    for (int32_t i = model->reads.start[x]; i < model->reads.start[x + 1]; i++) {
        int32_t value = model->reads.item[i];
        if (lister->backward && !lister->uses[value] && !model->output[value])
            growth += model->size[value];
        else if (!lister->backward && readers_left(lister, value) == 1)
            growth -= model->size[value];
    }
    return growth;
}

static void offer(Lister *lister, int32_t x)
{
    if (!lister->waiting[x] && !lister->placed[x])
        heap_push(lister, (Ready){growth_of(lister, x), x});
}

static void place(Lister *lister, int32_t x)
{
    const RematModel *model = lister->graph->model;
    lister->placed[x] = true;
    for (int32_t i = model->reads.start[x]; i < model->reads.start[x + 1]; i++) {
        int32_t value = model->reads.item[i];
        lister->uses[value]++;
        bool changed =
            lister->backward ? lister->uses[value] == 1 : readers_left(lister, value) == 1;
        for (int32_t j = lister->readers->start[value];
             changed && j < lister->readers->start[value + 1]; j++)
            offer(lister, lister->readers->item[j]);
    }
    const RematTable *next = lister->backward ? &lister->graph->before : &lister->graph->after;
    for (int32_t i = next->start[x]; i < next->start[x + 1]; i++) {
        lister->waiting[next->item[i]]--;
        offer(lister, next->item[i]);
    }
}

static void list_for_memory(const Precedence *graph, const RematTable *readers, bool backward,
                            RematSchedule *order)
{
    const RematModel *model = graph->model;
    size_t nodes = (size_t)model->nodes;
    Lister lister = {.graph = graph, .readers = readers, .backward = backward};
    lister.waiting = ARENA_ARRAY(graph->arena, int32_t, nodes);
    lister.uses = ARENA_ARRAY(graph->arena, int32_t, (size_t)model->values);
    lister.placed = ARENA_ARRAY(graph->arena, bool, nodes);
    const RematTable *wait = backward ? &graph->after : &graph->before;
    for (int32_t x = 0; x < model->nodes; x++)
        lister.waiting[x] = wait->start[x + 1] - wait->start[x];
    for (int32_t x = 0; x < model->nodes; x++)
        offer(&lister, x);
    while (lister.heap.count) {
        Ready ready = heap_pop(&lister);
        if (lister.placed[ready.node])
            continue;
        order->node[backward ? nodes - 1 - order->count : order->count] = (RematId)ready.node;
        order->count++;
        place(&lister, ready.node);
    }
}

RematSchedule remat_order(const RematModel *model, int kind, Arena *arena)
{
    RematSchedule order = {ARENA_ARRAY(arena, RematId, (size_t)model->nodes), 0};
    if (kind == 0) {
        for (; order.count < (size_t)model->nodes; order.count++)
            order.node[order.count] = (RematId)order.count;
        return order;
    }
    Arena *scratch = arena_new();
    RematTable readers = remat_readers(model, scratch);
    Precedence graph = precedence(model, &readers, scratch);
    if (kind == 1)
        depth_first(&graph, &order);
    else
        list_for_memory(&graph, &readers, kind == 3, &order);
    arena_free(scratch);
    return order;
}
