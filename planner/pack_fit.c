/* First fit and best fit over a handful of orders: a good answer in milliseconds, and on most
 * problems that compilers meet the best one. */
#include "planner/pack_internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    uint64_t key[3]; /* larger goes first */
    uint32_t item;
} Rank;

static int by_key(const void *a, const void *b)
{
    const Rank *x = a, *y = b;
    for (int k = 0; k < 3; k++)
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

typedef enum { BY_SIZE, BY_AREA, BY_WIDTH, BY_PEAK, BY_PEAK_SIZE, FORWARD, BACKWARD, ORDERS } By;

static void set_keys(Rank *rank, By by, const Item *item, uint64_t peak)
{
    uint64_t width = item->last - item->first + 1;
    uint64_t keys[ORDERS][3] = {
        [BY_SIZE] = {item->size, width},
        [BY_AREA] = {area(item), item->size},
        [BY_WIDTH] = {width, item->size},
        [BY_PEAK] = {peak, width, item->size},
        [BY_PEAK_SIZE] = {peak, item->size, width},
        [FORWARD] = {UINT64_MAX - item->first, width, item->size},
        [BACKWARD] = {item->last, width, item->size},
    };
    memcpy(rank->key, keys[by], sizeof rank->key);
}

/* The largest load that each item lives through: sparse table over the sections. */
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
        while ((uint32_t)2 << k <= width)
            k++;
        uint64_t a = most[k][item->first], b = most[k][item->last + 1 - (1u << k)];
        peak[i] = a > b ? a : b;
    }
}

/* Places the items by the order given; false when the effort ended or offsets overflow. */
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
                return false;
            before = shelf_work(shelf);
        }
    }
    pack_spend(pack, shelf_work(shelf) - before);
    return true;
}

void pack_fit_orders(Pack *pack)
{
    static const struct {
        By by;
        bool best;
    } plan[] = {{BY_SIZE, true},       {BY_PEAK, false},     {BY_WIDTH, false}, {BY_AREA, true},
                {BY_PEAK_SIZE, false}, {BY_WIDTH, true},     {BY_AREA, false},  {FORWARD, true},
                {BACKWARD, true},      {BY_PEAK_SIZE, true}, {BY_SIZE, false}};
    const Model *model = pack->model;
    Arena *arena = arena_new();
    uint64_t *peak = ARENA_ARRAY(arena, uint64_t, model->count);
    uint64_t *offset = ARENA_ARRAY(arena, uint64_t, model->count);
    uint32_t *order = ARENA_ARRAY(arena, uint32_t, model->count);
    Rank *rank = ARENA_ARRAY(arena, Rank, model->count);
    Shelf *shelf = shelf_new(arena, model);
    pack_peaks(arena, model, peak);
    for (size_t p = 0; p < sizeof plan / sizeof *plan && !pack_done(pack); p++) {
        for (uint32_t i = 0; i < model->count; i++) {
            rank[i].item = i;
            set_keys(&rank[i], plan[p].by, &model->item[i], peak[i]);
        }
        qsort(rank, model->count, sizeof *rank, by_key);
        for (uint32_t i = 0; i < model->count; i++)
            order[i] = rank[i].item;
        if (pack_place(pack, shelf, order, plan[p].best, offset))
            pack_offer(pack, offset);
        else if (!pack_spend(pack, 0) && pack->height != NOWHERE)
            break;
    }
    arena_free(arena);
}
