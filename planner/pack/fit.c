/* First fit and best fit over a handful of orders: a good answer in milliseconds, and on most
 * problems that compilers meet the best one. */
#include "planner/pack/internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    uint64_t key[2]; /* larger goes first, then by index */
    uint32_t item;
} Rank;

static int by_key(const void *a, const void *b)
{
    const Rank *x = a, *y = b;
    for (int k = 0; k < 2; k++)
        if (x->key[k] != y->key[k])
            return x->key[k] > y->key[k] ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item;
}

/* size * width without overflow: close enough for an order. */
static uint64_t area(const Item *item)
{
    double product = (double)item->size * (double)(item->last - item->first + 1);
    return product < 0x1p63 ? (uint64_t)product : (uint64_t)1 << 63;
}

static Rank rank_of(const Item *item, uint64_t peak, PackOrder by)
{
    uint64_t width = item->last - item->first + 1;
    switch (by) {
    case BY_SIZE:
        return (Rank){{item->size, width}, 0};
    case BY_AREA:
        return (Rank){{area(item), item->size}, 0};
    case BY_WIDTH:
        return (Rank){{width, item->size}, 0};
    case BY_PEAK_WIDTH:
        return (Rank){{peak, width}, 0};
    case BY_PEAK_SIZE:
        return (Rank){{peak, item->size}, 0};
    case FORWARD:
        return (Rank){{UINT64_MAX - item->first, width}, 0};
    case BACKWARD:
        return (Rank){{item->last, width}, 0};
    }
    return (Rank){{0, 0}, 0};
}

/* A sparse table of maxima over the sections. */
void pack_peaks(Arena *arena, const Model *model, uint64_t *peak)
{
    uint32_t n = model->sections, levels = 1;
    while (levels < 32 && (uint64_t)1 << levels <= n)
        levels++;
    const uint64_t *row = model->load;
    uint64_t **most = ARENA_ARRAY(arena, uint64_t *, levels);
    for (uint32_t k = 0; k < levels; k++) {
        uint64_t *next = most[k] = ARENA_ARRAY(arena, uint64_t, n);
        uint32_t half = k ? 1u << (k - 1) : 0;
        for (uint32_t s = 0; s + half < n; s++)
            next[s] = row[s] > row[s + half] ? row[s] : row[s + half];
        row = next;
    }
    for (uint32_t i = 0; i < model->count; i++) {
        const Item *item = &model->item[i];
        uint32_t k = 0, width = item->last - item->first + 1;
        while ((uint64_t)2 << k <= width)
            k++;
        uint64_t a = most[k][item->first], b = most[k][item->last + 1 - (1u << k)];
        peak[i] = a > b ? a : b;
    }
}

void pack_order(const Model *model, PackOrder by, uint32_t *order)
{
    Arena *arena = arena_new();
    Rank *rank = ARENA_ARRAY(arena, Rank, model->count);
    uint64_t *peak = ARENA_ARRAY(arena, uint64_t, model->count);
    if (by == BY_PEAK_WIDTH || by == BY_PEAK_SIZE)
        pack_peaks(arena, model, peak);
    for (uint32_t i = 0; i < model->count; i++) {
        rank[i] = rank_of(&model->item[i], peak[i], by);
        rank[i].item = i;
    }
    qsort(rank, model->count, sizeof *rank, by_key);
    for (uint32_t i = 0; i < model->count; i++)
        order[i] = rank[i].item;
    arena_free(arena);
}

bool pack_place(Pack *pack, Shelf *shelf, const uint32_t *order, bool best, uint64_t *offset)
{
    const Model *model = pack->model;
    uint64_t before = shelf_work(shelf);
    shelf_clear(shelf);
    for (uint32_t i = 0; model->any_fixed && i < model->count; i++)
        if (model->item[i].fixed != NOWHERE)
            shelf_add(shelf, i, offset[i] = model->item[i].fixed);
    for (uint32_t i = 0; i < model->count; i++) {
        uint32_t item = order[i];
        if (model->item[item].fixed != NOWHERE)
            continue;
        offset[item] = best ? shelf_best_fit(shelf, item) : shelf_first_fit(shelf, item);
        if (offset[item] == NOWHERE)
            return false;
        shelf_add(shelf, item, offset[item]);
        if (shelf_work(shelf) - before > 10000) {
            if (!pack_spend(pack, shelf_work(shelf) - before) && pack->height != NOWHERE)
                return false; /* the first packing is made whatever it takes */
            before = shelf_work(shelf);
        }
    }
    pack_spend(pack, shelf_work(shelf) - before);
    return true;
}

void pack_fit_orders(Pack *pack)
{
    static const struct {
        PackOrder by;
        bool best;
    } plan[] = {{BY_PEAK_SIZE, false}, {BY_PEAK_WIDTH, false}, {BY_SIZE, true}, {BY_WIDTH, false},
                {BY_AREA, true},       {FORWARD, true},        {BACKWARD, true}};
    const Model *model = pack->model;
    Arena *arena = arena_new();
    uint64_t *offset = ARENA_ARRAY(arena, uint64_t, model->count);
    uint32_t *order = ARENA_ARRAY(arena, uint32_t, model->count);
    Shelf *shelf = shelf_new(arena, model);
    for (size_t p = 0; p < sizeof plan / sizeof *plan && !pack_done(pack); p++) {
        pack_order(model, plan[p].by, order);
        if (pack_place(pack, shelf, order, plan[p].best, offset))
            pack_offer(pack, offset);
        if (!pack_spend(pack, 4 * (uint64_t)model->count) && pack->height != NOWHERE)
            break;
    }
    arena_free(arena);
}
