/* From clusters to a packed Plan: chooses which concats are written in place, then offsets.
 *
 * Requires: clusters. Leaves: a Plan that plan_check accepts. With n occurrences and c concats,
 * choosing the windows takes O(n c) while that is small; beyond, all windows are taken.
 */
#include "planner/internal.h"

#include <string.h>

/* Occurrences times concats up to which each concat is tried on its own. */
static const uint64_t TRY_CONCATS = 2 * 1000 * 1000;

typedef struct {
    const Task *task;
    const Order *order;
    Windows windows;
    Concats concats;
    bool *at_peak; /* by concat: something of it is there at the peak */
} Planner;

static Plan *lay_out(Arena *arena, Planner *p)
{
    const Task *task = p->task;
    windows_set(arena, task->g, task->clusters, p->order, &p->concats, &p->windows);
    Plan *plan = live(arena, task, p->order, &p->windows);
    plan->peak = live_peak(arena, plan, task->target->align, &plan->peak_time);
    return plan;
}

/* The concats of which the result or an operand is live at the peak: no other lowers it. */
static void find_at_peak(Arena *arena, Planner *p, const Plan *plan)
{
    const Graph *g = p->task->g;
    bool *there = ARENA_ARRAY(arena, bool, g->value.count);
    for (Id i = 0; i < plan->buffers; i++) {
        const Buffer *root = &plan->buffer[plan->buffer[i].root];
        if (plan->buffer[i].value != NONE && root->birth <= plan->peak_time &&
            plan->peak_time < root->death)
            there[plan->buffer[i].value] = true;
    }
    for (Id i = 0; i < p->concats.count; i++) {
        const Node *node = &g->node.at[p->concats.node[i]];
        p->at_peak[i] = there[node->value];
        for (Id k = 0; k < node->uses; k++)
            p->at_peak[i] |= there[node_use(g, node, k).value];
    }
}

/* The peak of the modes at hand, where it is below `best`. There are many tries, so each gives its
 * memory back. */
static bool lower_peak(Planner *p, uint64_t *best)
{
    Arena *scratch = arena_new();
    const Plan *plan = lay_out(scratch, p);
    bool lower = plan->peak < *best;
    if (lower) {
        *best = plan->peak;
        find_at_peak(scratch, p, plan);
    }
    arena_free(scratch);
    return lower;
}

/* One concat after the other, in the mode that gives the lowest peak with the others as they
 * are; on a tie the one that copies least. */
static Plan *choose_windows(Arena *arena, Planner *p)
{
    bool affordable = (uint64_t)p->concats.count * p->task->clusters->count <= TRY_CONCATS;
    uint64_t best = UINT64_MAX;
    if (affordable && p->concats.count)
        lower_peak(p, &best);
    for (Id i = 0; i < p->concats.count && affordable; i++) {
        uint8_t kept = p->concats.mode[i];
        for (uint8_t mode = kept + 1; mode < WINDOW_MODES && p->at_peak[i]; mode++) {
            p->concats.mode[i] = mode;
            if (lower_peak(p, &best))
                kept = mode;
        }
        p->concats.mode[i] = kept;
    }
    return lay_out(arena, p);
}

/* ---- Offsets -------------------------------------------------------------------------------- */

static void place(Plan *plan, const Packing *packed)
{
    for (Id i = 0; i < plan->buffers; i++)
        plan->buffer[i].offset = packed->offset[plan->buffer[i].root];
    memcpy(plan->arena, packed->height, sizeof plan->arena);
    plan->bound = packed->bound;
}

static bool is_packed(const Plan *plan, Id buffer, Space space)
{
    return plan->buffer[buffer].root == buffer && plan->buffer[buffer].space == space;
}

static void sum_persistent(Plan *plan, const Target *target)
{
    for (Id i = 0; i < plan->buffers; i++) {
        const Buffer *b = &plan->buffer[i];
        if (is_packed(plan, i, SPACE_ARENA) && b->birth == 0 && b->death >= plan->end &&
            b->kind <= BUFFER_DATA)
            plan->persistent += round_up(b->bytes, target->align);
    }
}

/* The buffers of a space, as small as can be, or within the capacity where there is one. */
static void pack_space(Arena *arena, const Plan *plan, const Task *task, Space space,
                       uint64_t effort, uint64_t capacity, Packing *packed)
{
    uint32_t align = task->target->align;
    PackBuffer *item = ARENA_ARRAY(arena, PackBuffer, plan->buffers);
    Id *buffer = ARENA_ARRAY(arena, Id, plan->buffers);
    size_t count = 0;
    for (Id i = 0; i < plan->buffers; i++) {
        const Buffer *b = &plan->buffer[i];
        if (!is_packed(plan, i, space))
            continue;
        buffer[count] = i;
        item[count++] = (PackBuffer){.lower = b->birth,
                                     .upper = b->death,
                                     .size = round_up(b->bytes, align),
                                     .align = align,
                                     .fixed = PACK_FREE};
    }
    PackProblem problem = {.buffer = item, .count = count, .capacity = capacity};
    PackOptions how = {.effort = effort, .seconds = task->options->seconds};
    PackSolution solution = {.offset = ARENA_ARRAY(arena, uint64_t, count)};
    pack_solve(&problem, &how, &solution); /* above the capacity, where it finds no other */
    for (size_t k = 0; k < count; k++)
        packed->offset[buffer[k]] = solution.offset[k];
    packed->height[space] = solution.height;
    if (space == SPACE_ARENA)
        packed->bound = solution.bound;
}

/* Every space that is planned; the capacity is the first one's. */
static void pack(Arena *arena, Plan *plan, const Task *task, uint64_t effort, uint64_t capacity)
{
    Packing packed = {.offset = ARENA_ARRAY(arena, uint64_t, plan->buffers)};
    for (Space space = 0; space < SPACES; space++)
        if (space_planned[space])
            pack_space(arena, plan, task, space, effort, space == SPACE_ARENA ? capacity : 0,
                       &packed);
    place(plan, &packed);
}

/* ---- The floor ------------------------------------------------------------------------------ */

static bool in_arena(const Plan *plan, Id buffer)
{
    const Buffer *b = &plan->buffer[buffer];
    bool version = b->value != NONE && value_is_version(plan->graph, b->value);
    return b->space == SPACE_ARENA && b->kind > BUFFER_DATA && !version;
}

/* Values that concats join may lie in each other, and a part of an output in the output: of each
 * such family only the largest counts. */
typedef struct {
    Id *parent;     /* by value: a family is a tree, represented by its root */
    uint64_t *most; /* by value: of a root, what its family has in the sum at hand */
} Families;

static Id family_of(Families *f, Id value)
{
    for (; f->parent[value] != value; value = f->parent[value])
        f->parent[value] = f->parent[f->parent[value]];
    return value;
}

static Families find_families(Arena *arena, const Graph *g)
{
    Families f = {ARENA_ARRAY(arena, Id, g->value.count),
                  ARENA_ARRAY(arena, uint64_t, g->value.count)};
    for (Id v = 0; v < g->value.count; v++)
        f.parent[v] = g->value.at[v].whole == NONE || g->value.at[v].fed ? v : g->value.at[v].whole;
    for (Id n = 0; n < g->node.count; n++)
        for (Id i = 0; g->node.at[n].op->flags & OP_JOINS && i < g->node.at[n].uses; i++)
            f.parent[family_of(&f, node_use(g, &g->node.at[n], i).value)] =
                family_of(&f, g->node.at[n].value);
    return f;
}

/* The bytes of buffers that are alive at once. What alignment adds does not count: windows have
 * none of it. */
static uint64_t sum_bytes(const Plan *plan, Families *f, const Id *buffer, Id count)
{
    uint64_t sum = 0;
    for (Id k = 0; k < count; k++) {
        const Buffer *b = &plan->buffer[buffer[k]];
        uint64_t *most = &f->most[family_of(f, b->value)];
        if (in_arena(plan, buffer[k]) && b->bytes > *most) {
            sum += b->bytes - *most;
            *most = b->bytes;
        }
    }
    for (Id k = 0; k < count; k++)
        f->most[family_of(f, plan->buffer[buffer[k]].value)] = 0;
    return sum;
}

/* What one occurrence needs at once, whatever the order: its operands, its results that cannot
 * take an operand's bytes, its workspace. */
static uint64_t need(const Plan *plan, Families *f, const Occurrence *o)
{
    const Cluster *c = &plan->clusters->at[o->cluster];
    const Id *arg = &plan->arg[o->arg];
    const Node *last = &plan->graph->node.at[plan->clusters->node[c->node + c->nodes - 1]];
    uint64_t bytes = 0;
    if (!cluster_has_epilogue(plan->graph, plan->clusters, c) &&
        (last->op->flags & OP_ELEMENTWISE || last->op->inplace)) {
        uint64_t operands = sum_bytes(plan, f, arg, c->operands);
        uint64_t results = sum_bytes(plan, f, arg + c->operands, c->results);
        bytes = operands > results ? operands : results;
    } else {
        bytes = sum_bytes(plan, f, arg, c->operands + c->results);
    }
    return bytes + (o->workspace == NONE ? 0 : plan->buffer[o->workspace].bytes);
}

static void find_floor(Arena *arena, Plan *plan, uint32_t align)
{
    Families families = find_families(arena, plan->graph);
    for (int p = 0; p < PROGRAMS; p++)
        for (Id i = 0; i < plan->program[p].count; i++) {
            uint64_t bytes = need(plan, &families, &plan->program[p].at[i]);
            if (bytes > plan->floor)
                plan->floor = bytes;
        }
    plan->floor = round_up(plan->floor, align) + plan->persistent;
}

/* With windows and lifetimes; offsets and costs are still to come. */
static Plan *begin(Arena *arena, const Task *task, const Order *order)
{
    const Graph *g = task->g;
    Planner p = {.task = task,
                 .order = order,
                 .windows = {ARENA_ARRAY(arena, Id, g->value.count),
                             ARENA_ARRAY(arena, int64_t, g->value.count)},
                 .concats = concats_find(arena, g, task->clusters)};
    p.at_peak = ARENA_ARRAY(arena, bool, p.concats.count);
    Plan *plan = choose_windows(arena, &p);
    sum_persistent(plan, task->target);
    find_floor(arena, plan, task->target->align);
    return plan;
}

Plan *plan_order(Arena *arena, const Task *task, const Order *order, uint64_t pack_effort,
                 uint64_t capacity, const Packing *packed)
{
    Plan *plan = begin(arena, task, order);
    plan->cost = plan_wait(task->g, task->clusters, task->target, task->options->ring);
    if (packed)
        place(plan, packed);
    else
        pack(arena, plan, task, pack_effort, capacity);
    for (int k = 0; k < PROGRAMS; k++) {
        double *cost = program_counts(task->clusters, k) ? &plan->cost : &plan->rest;
        for (Id i = 0; i < order->count[k]; i++)
            *cost += plan->program[k].times *
                     cluster_cost(task->g, task->clusters, task->target, order->cluster[k][i]);
    }
    return plan;
}

/* An arena that ends where its last buffer does: that one goes up to the end. */
static void fill(Plan *plan, uint64_t arena)
{
    Id last = NONE;
    for (Id i = 0; i < plan->buffers; i++)
        if (is_packed(plan, i, SPACE_ARENA) &&
            (last == NONE || plan->buffer[i].offset + plan->buffer[i].bytes >
                                 plan->buffer[last].offset + plan->buffer[last].bytes))
            last = i;
    for (Id i = 0; i < plan->buffers; i++)
        if (plan->buffer[i].root == last)
            plan->buffer[i].offset += arena - plan->arena[SPACE_ARENA];
    plan->arena[SPACE_ARENA] = arena;
}

Plan *plan_moved(Arena *arena, const Task *task, const Order *order, uint64_t pack_effort,
                 const Worth *was)
{
    Plan *plan = begin(arena, task, order);
    if (plan->peak > was->arena)
        return NULL;
    pack(arena, plan, task, pack_effort, was->arena);
    if (plan->arena[SPACE_ARENA] > was->arena)
        return NULL;
    fill(plan, was->arena); /* what smaller budgets get is planned in its own way */
    plan->cost = was->cost; /* a sum in another order differs in its last bits */
    plan->rest = was->rest;
    return plan;
}

double plan_cost(const Graph *g, const Clusters *clusters, const Target *target)
{
    double cost = 0;
    bool counts[PROGRAMS];
    for (int p = 0; p < PROGRAMS; p++)
        counts[p] = program_counts(clusters, p);
    for (Id i = 0; i < clusters->count; i++)
        if (counts[clusters->at[i].program])
            cost +=
                program_times(g, clusters->at[i].program) * cluster_cost(g, clusters, target, i);
    return cost;
}

/* ---- Text, for -d --------------------------------------------------------------------------- */

const char *const space_names[SPACES] = {"arena", "caller"};
const bool space_planned[SPACES] = {[SPACE_ARENA] = true};

static const char *kind_name(uint8_t kind)
{
    static const char *const name[BUFFER_KINDS] = {"param", "state",  "prepared",   "input",
                                                   "data",  "output", "activation", "workspace"};
    return name[kind];
}

void plan_dump(const Plan *plan, FILE *to)
{
    const Graph *g = plan->graph;
    fprintf(to, "arena %llu, bound %llu, floor %llu, persistent %llu, peak %llu at %u\n",
            (unsigned long long)plan->arena[SPACE_ARENA], (unsigned long long)plan->bound,
            (unsigned long long)plan->floor, (unsigned long long)plan->persistent,
            (unsigned long long)plan->peak, plan->peak_time);
    for (Id i = 0; i < plan->buffers; i++) {
        const Buffer *b = &plan->buffer[i];
        fprintf(to, "  buffer %u: %s [%u, %u) at %llu, %llu bytes", i, kind_name(b->kind), b->birth,
                b->death, (unsigned long long)b->offset, (unsigned long long)b->bytes);
        if (b->root != i)
            fprintf(to, " in %u + %lld", b->root, (long long)b->layout.offset);
        fprintf(to, "%s%s  # %s\n", b->space ? " " : "", b->space ? space_names[b->space] : "",
                b->value == NONE ? "" : g->value.at[b->value].name);
    }
    for (int p = 0; p < PROGRAMS; p++)
        for (Id i = 0; i < plan->program[p].count; i++) {
            const Occurrence *o = &plan->program[p].at[i];
            const Cluster *c = &plan->clusters->at[o->cluster];
            fprintf(to, "  %u: cluster %u (", plan->program[p].begin + i, o->cluster);
            for (Id k = 0; k < c->operands; k++)
                fprintf(to, "%s%u", k ? " " : "", plan->arg[o->arg + k]);
            fprintf(to, ") ->");
            for (Id k = 0; k < c->results; k++)
                fprintf(to, " %u", plan->arg[o->arg + c->operands + k]);
            if (o->workspace != NONE)
                fprintf(to, " using %u", o->workspace);
            fprintf(to, "\n");
        }
}
