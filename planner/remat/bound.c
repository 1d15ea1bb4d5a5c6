/* Bounds that hold for every schedule: bytes (the floor) and cost within a budget.
 *
 * Look at the moment node x first runs. Its inputs, outputs and workspace are live. Every value
 * made by an ancestor of x and read by a descendant of x (or kept to the end) is live too, or is
 * made again later. So with r = 1 for the nodes that run again,
 *
 *     sum of size * r over such values >= what would be live without recomputation - budget
 *
 * for every x: a covering problem. Any prices >= 0 on these rows give a lower bound on the cost
 * (Lagrange); subgradient steps look for good prices (Held and Karp 1971). A size counts at most
 * what its row demands, which is as strong for r in {0, 1} and tighter for fractions. */
#include "planner/remat/internal.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_ENTRIES = 1 << 21, MAX_STEPS = 2000 };
static const double MAX_EXTRA = 0x1p62;  /* of a bound: where no plan exists it has no end */
static const double MAX_EFFORT = 1e8;    /* entries visited by all subgradient steps */
static const double MAX_TRAVERSAL = 1e8; /* edges visited to find the rows */

typedef struct {
    int32_t node;
    double bytes;
} Entry;

typedef struct {
    const RematModel *model;
    RematTable readers;
    int32_t *mark; /* by node: stamp when an ancestor, -stamp when a descendant */
    int32_t *stack;
    int64_t *bytes; /* by node: scratch of the row at hand */
    int32_t stamp;
    int64_t floor;
    int64_t budget; /* above base; negative: no rows wanted */
    double effort;
    ARRAY(Entry) entry;
    ARRAY(size_t) start;  /* of rows, and the end of the last */
    ARRAY(double) demand; /* of rows */
} Rows;

/* ---- rows ---- */

static void mark_ancestors(Rows *rows, int32_t x)
{
    const RematModel *model = rows->model;
    int32_t depth = 0;
    rows->stack[depth++] = x;
    while (depth) {
        int32_t y = rows->stack[--depth];
        for (int32_t i = model->reads.start[y]; i < model->reads.start[y + 1]; i++) {
            int32_t z = model->producer[model->reads.item[i]];
            rows->effort++;
            if (z >= 0 && rows->mark[z] != rows->stamp) {
                rows->mark[z] = rows->stamp;
                rows->stack[depth++] = z;
            }
        }
    }
}

static void mark_descendants(Rows *rows, int32_t x)
{
    const RematModel *model = rows->model;
    int32_t depth = 0;
    rows->stack[depth++] = x;
    while (depth) {
        int32_t y = rows->stack[--depth];
        for (int32_t i = model->writes.start[y]; i < model->writes.start[y + 1]; i++) {
            int32_t value = model->writes.item[i];
            for (int32_t j = rows->readers.start[value]; j < rows->readers.start[value + 1]; j++) {
                int32_t z = rows->readers.item[j];
                rows->effort++;
                if (rows->mark[z] != -rows->stamp) {
                    rows->mark[z] = -rows->stamp;
                    rows->stack[depth++] = z;
                }
            }
        }
    }
}

static bool reads_value(const RematModel *model, int32_t x, int32_t value)
{
    for (int32_t i = model->reads.start[x]; i < model->reads.start[x + 1]; i++)
        if (model->reads.item[i] == value)
            return true;
    return false;
}

/* What x itself holds at the least: an output that may overlay an input does not count. */
static int64_t footprint(const RematModel *model, int32_t x)
{
    const RematInPlace *pairs = model->problem->in_place;
    int64_t bytes = model->workspace[x];
    for (int32_t i = model->reads.start[x]; i < model->reads.start[x + 1]; i++)
        bytes += model->size[model->reads.item[i]];
    for (int32_t i = model->kills.start[x]; i < model->kills.start[x + 1]; i++)
        bytes += model->size[model->kills.item[i]];
    for (int32_t i = model->writes.start[x]; i < model->writes.start[x + 1]; i++) {
        int32_t value = model->writes.item[i];
        bool overlays = false;
        for (int32_t j = model->overlays.start[x]; j < model->overlays.start[x + 1]; j++)
            overlays |= (int32_t)pairs[model->overlays.item[j]].output == value;
        bytes += overlays ? 0 : model->size[value];
    }
    return bytes;
}

static bool needed_below(const Rows *rows, int32_t value)
{
    if (rows->model->output[value])
        return true;
    for (int32_t i = rows->readers.start[value]; i < rows->readers.start[value + 1]; i++)
        if (rows->mark[rows->readers.item[i]] == -rows->stamp)
            return true;
    return false;
}

static void add_row(Rows *rows, int32_t x)
{
    const RematModel *model = rows->model;
    rows->stamp++;
    mark_ancestors(rows, x);
    mark_descendants(rows, x);
    int64_t held = footprint(model, x), live = held;
    size_t first = rows->entry.count;
    for (int32_t u = 0; u < model->nodes; u++) {
        int64_t bytes = 0;
        if (rows->mark[u] != rows->stamp)
            continue;
        for (int32_t i = model->writes.start[u]; i < model->writes.start[u + 1]; i++) {
            int32_t value = model->writes.item[i];
            if (model->size[value] && needed_below(rows, value) && !reads_value(model, x, value))
                bytes += model->size[value];
        }
        live += bytes;
        if (model->once[u])
            held += bytes;
        else if (bytes)
            ARRAY_PUSH(model->arena, &rows->entry, (Entry){u, (double)bytes});
    }
    rows->effort += model->nodes;
    rows->floor = held > rows->floor ? held : rows->floor;
    if (rows->budget < 0 || live <= rows->budget) {
        rows->entry.count = first;
        return;
    }
    double demand = (double)(live - rows->budget);
    for (size_t i = first; i < rows->entry.count; i++)
        if (rows->entry.at[i].bytes > demand)
            rows->entry.at[i].bytes = demand;
    ARRAY_PUSH(model->arena, &rows->demand, demand);
    ARRAY_PUSH(model->arena, &rows->start, rows->entry.count);
}

int64_t remat_largest_step(const RematModel *model)
{
    int64_t most = 0;
    for (int32_t x = 0; x < model->nodes; x++) {
        int64_t bytes = footprint(model, x);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* Nodes are visited in strides that spread evenly, so that a cut leaves an even sample. */
static void find_rows(Rows *rows, const RematModel *model, int64_t budget)
{
    size_t nodes = (size_t)model->nodes;
    rows->model = model;
    rows->budget = budget;
    rows->readers = remat_readers(model, model->arena);
    rows->mark = ARENA_ARRAY(model->arena, int32_t, nodes);
    rows->stack = ARENA_ARRAY(model->arena, int32_t, nodes + 1);
    ARRAY_PUSH(model->arena, &rows->start, (size_t)0);
    rows->floor = remat_largest_step(model);
    size_t stride = 1;
    while (stride < nodes)
        stride *= 2;
    for (size_t step = stride; step >= 1; step /= 2)
        for (size_t x = step == stride ? 0 : step; x < nodes;
             x += step == stride ? nodes : 2 * step) {
            if (rows->effort > MAX_TRAVERSAL || rows->entry.count > MAX_ENTRIES)
                return;
            add_row(rows, (int32_t)x);
        }
}

/* ---- prices ---- */

typedef struct {
    const Rows *rows;
    double *price, *reduced, *slack; /* by row, by node, by row */
    size_t count;
} Dual;

/* The bound that the prices give; slack is the subgradient. */
static double dual_value(Dual *dual)
{
    const Rows *rows = dual->rows;
    const RematModel *model = rows->model;
    double value = 0;
    for (int32_t u = 0; u < model->nodes; u++)
        dual->reduced[u] = (double)model->cost[u];
    for (size_t row = 0; row < dual->count; row++) {
        value += dual->price[row] * rows->demand.at[row];
        if (dual->price[row] > 0)
            for (size_t i = rows->start.at[row]; i < rows->start.at[row + 1]; i++)
                dual->reduced[rows->entry.at[i].node] -= dual->price[row] * rows->entry.at[i].bytes;
    }
    for (int32_t u = 0; u < model->nodes; u++)
        value += dual->reduced[u] < 0 ? dual->reduced[u] : 0;
    for (size_t row = 0; row < dual->count; row++) {
        dual->slack[row] = rows->demand.at[row];
        for (size_t i = rows->start.at[row]; i < rows->start.at[row + 1]; i++)
            if (dual->reduced[rows->entry.at[i].node] < 0)
                dual->slack[row] -= rows->entry.at[i].bytes;
    }
    return value;
}

typedef struct {
    double ratio, bytes;
} Item;

static int by_ratio(const void *a, const void *b)
{
    double x = ((const Item *)a)->ratio, y = ((const Item *)b)->ratio;
    return (x > y) - (x < y);
}

/* One row alone is a fractional knapsack: its best price is the ratio of the last item taken. */
static double row_alone(const Rows *rows, size_t row, Item *item, double *price)
{
    size_t count = 0;
    for (size_t i = rows->start.at[row]; i < rows->start.at[row + 1]; i++) {
        const Entry *entry = &rows->entry.at[i];
        item[count++] = (Item){(double)rows->model->cost[entry->node] / entry->bytes, entry->bytes};
    }
    qsort(item, count, sizeof *item, by_ratio);
    double left = rows->demand.at[row], value = 0;
    *price = 0;
    for (size_t i = 0; i < count && left > 0; i++) {
        double taken = item[i].bytes < left ? item[i].bytes : left;
        value += taken * item[i].ratio;
        left -= taken;
        *price = item[i].ratio;
    }
    return value;
}

static void first_prices(Dual *dual, Arena *arena)
{
    const Rows *rows = dual->rows;
    Item *item = ARENA_ARRAY(arena, Item, (size_t)rows->model->nodes);
    double best = -1, best_price = 0;
    size_t best_row = 0;
    for (size_t row = 0; row < dual->count; row++) {
        double price, value = row_alone(rows, row, item, &price);
        if (value > best) {
            best = value;
            best_row = row;
            best_price = price;
        }
    }
    dual->price[best_row] = best_price;
}

static double raise_prices(Dual *dual)
{
    double best = 0, scale = 0.5;
    double effort = (double)dual->rows->entry.count * 2 + (double)dual->rows->model->nodes + 1;
    int steps = effort * MAX_STEPS > MAX_EFFORT ? (int)(MAX_EFFORT / effort) : MAX_STEPS, stale = 0;
    for (int step = 0; step < steps && scale > 1e-5; step++) {
        double value = dual_value(dual), norm = 0;
        if (!isfinite(value)) /* no plan satisfies the rows, so prices grow without bound */
            break;
        if (value > best * (1 + 1e-7)) {
            best = value;
            stale = 0;
        } else if (++stale == 12) {
            scale *= 0.7;
            stale = 0;
        }
        for (size_t row = 0; row < dual->count; row++)
            if (dual->price[row] > 0 || dual->slack[row] > 0)
                norm += dual->slack[row] * dual->slack[row];
        if (norm <= 0)
            break;
        double length = scale * (best > 0 ? best : 1) / norm;
        for (size_t row = 0; row < dual->count; row++) {
            dual->price[row] += length * dual->slack[row];
            if (dual->price[row] < 0)
                dual->price[row] = 0;
        }
    }
    return best;
}

int64_t remat_find_bounds(const RematModel *model, int64_t budget, int64_t *floor)
{
    Rows rows = {0};
    find_rows(&rows, model, budget);
    if (floor)
        *floor = rows.floor;
    Dual dual = {.rows = &rows, .count = rows.demand.count};
    if (!dual.count)
        return 0;
    dual.price = ARENA_ARRAY(model->arena, double, dual.count);
    dual.slack = ARENA_ARRAY(model->arena, double, dual.count);
    dual.reduced = ARENA_ARRAY(model->arena, double, (size_t)model->nodes);
    first_prices(&dual, model->arena);
    double best = raise_prices(&dual) * (1 - 1e-9) - 1; /* room for rounding */
    if (!(best > 0))
        return 0;
    return best < MAX_EXTRA ? (int64_t)best : (int64_t)MAX_EXTRA;
}

int64_t remat_floor(const RematProblem *problem)
{
    Arena *arena = arena_new();
    int64_t floor;
    remat_find_bounds(remat_model(problem, arena), -1, &floor);
    arena_free(arena);
    return floor + problem->base;
}

double remat_bound(const RematProblem *problem, int64_t budget)
{
    Arena *arena = arena_new();
    budget = budget > problem->base ? budget - problem->base : 0;
    int64_t extra = remat_find_bounds(remat_model(problem, arena), budget, NULL);
    double total = 0;
    for (RematId x = 0; x < problem->nodes; x++)
        total += problem->node[x].cost;
    arena_free(arena);
    return total + total * ((double)extra / (double)COST_ONE);
}
