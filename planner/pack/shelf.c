/* Placing items one by one anywhere they fit, holes included.
 *
 * Placed items lie in chains of blocks, in order of offset; a scan for a gap reads the chain from
 * the bottom. One chain holds everything. Where most lives are short, time is cut into windows
 * too, each with a chain of its own, and an item within one window scans only that one.
 */
#include "planner/pack/internal.h"

#include <string.h>

enum {
    BLOCK = 64,
    WINDOWS = 4, /* each level has so many times the windows of the one before */
    LEVELS = 6,
    COPIES = 4, /* a level must not hold the average item more often */
};

typedef struct {
    uint64_t offset, top;
    uint32_t first, last;
} Placed;

/* Apart from what it holds, so that a walk along the chain stays within the cache. */
typedef struct {
    uint64_t lowest;      /* offset of its first item */
    uint32_t next, count; /* next 0: the end */
    uint32_t first, last; /* sections that its items touch, at most */
} Block;

typedef struct {
    uint32_t width; /* sections in a window */
    uint32_t chain; /* the block that begins the chain of the first window */
} Level;

struct Shelf {
    const Model *model;
    Level level[LEVELS];
    uint32_t levels, chains;
    Block *block;
    Placed (*placed)[BLOCK]; /* by block */
    uint32_t blocks;
    uint64_t effort;
};

/* How many chains of a level the items are in, all together. */
static uint64_t copies(const Model *model, uint32_t width)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < model->count; i++)
        sum += model->item[i].last / width - model->item[i].first / width + 1;
    return sum;
}

Shelf *shelf_new(Arena *arena, const Model *model)
{
    Shelf *shelf = ARENA_NEW(arena, Shelf);
    shelf->model = model;
    uint32_t width = model->sections ? model->sections : 1;
    size_t blocks = 0;
    while (shelf->levels < LEVELS) {
        uint64_t sum = copies(model, width);
        if (shelf->levels && (sum > COPIES * (uint64_t)model->count || model->count < 1000))
            break;
        shelf->level[shelf->levels++] = (Level){width, shelf->chains};
        shelf->chains += (model->sections + width - 1) / width + 1;
        /* A block splits when full: each but the first of a chain took half a block of items. */
        blocks += sum / (BLOCK / 2);
        if (width <= 2 * WINDOWS)
            break;
        width = (width + WINDOWS - 1) / WINDOWS;
    }
    shelf->block = ARENA_ARRAY(arena, Block, blocks + shelf->chains + 1);
    shelf->placed = arena_array(arena, blocks + shelf->chains + 1, sizeof *shelf->placed);
    shelf_clear(shelf);
    return shelf;
}

void shelf_clear(Shelf *shelf)
{
    shelf->blocks = shelf->chains;
    for (uint32_t i = 0; i < shelf->chains; i++) {
        shelf->block[i].next = shelf->block[i].count = shelf->block[i].last = 0;
        shelf->block[i].first = UINT32_MAX;
    }
}

uint64_t shelf_work(const Shelf *shelf)
{
    return shelf->effort;
}

static void touch(Block *block, const Placed *placed)
{
    if (placed->first < block->first)
        block->first = placed->first;
    if (placed->last > block->last)
        block->last = placed->last;
}

static void split(Shelf *shelf, uint32_t full)
{
    uint32_t fresh = shelf->blocks++;
    Block *low = &shelf->block[full], *high = &shelf->block[fresh];
    memcpy(shelf->placed[fresh], shelf->placed[full] + BLOCK / 2,
           BLOCK / 2 * sizeof *shelf->placed[fresh]);
    *high = (Block){shelf->placed[fresh][0].offset, low->next, BLOCK / 2, UINT32_MAX, 0};
    *low = (Block){low->lowest, fresh, BLOCK / 2, UINT32_MAX, 0};
    for (uint32_t i = 0; i < BLOCK / 2; i++) {
        touch(low, &shelf->placed[full][i]);
        touch(high, &shelf->placed[fresh][i]);
    }
}

static void insert(Shelf *shelf, uint32_t chain, const Placed *placed)
{
    uint32_t b = chain, steps = BLOCK / 2;
    for (uint32_t next; (next = shelf->block[b].next) != 0; b = next, steps++)
        if (shelf->block[next].lowest > placed->offset)
            break;
    if (shelf->block[b].count == BLOCK) {
        split(shelf, b);
        if (shelf->block[shelf->block[b].next].lowest <= placed->offset)
            b = shelf->block[b].next;
    }
    Block *block = &shelf->block[b];
    Placed *list = shelf->placed[b];
    uint32_t at = block->count++;
    for (; at && list[at - 1].offset > placed->offset; at--)
        list[at] = list[at - 1];
    list[at] = *placed;
    block->lowest = list[0].offset;
    touch(block, placed);
    shelf->effort += steps;
}

void shelf_add(Shelf *shelf, uint32_t item, uint64_t offset)
{
    const Item *it = &shelf->model->item[item];
    Placed placed = {offset, offset + it->size, it->first, it->last};
    for (uint32_t l = 0; l < shelf->levels; l++) {
        const Level *level = &shelf->level[l];
        for (uint32_t w = it->first / level->width; w <= it->last / level->width; w++)
            insert(shelf, level->chain + w, &placed);
    }
}

/* The shortest chain that holds everything the item can meet. */
static uint32_t chain_for(const Shelf *shelf, const Item *item)
{
    uint32_t l = shelf->levels - 1;
    while (item->first / shelf->level[l].width != item->last / shelf->level[l].width)
        l--;
    return shelf->level[l].chain + item->first / shelf->level[l].width;
}

typedef struct {
    uint64_t cursor;          /* the lowest offset not yet ruled out */
    uint64_t tightest, found; /* the best gap so far */
} Gap;

/* Goes through one block; true when the first gap will do and was found. */
static bool scan(const Placed *placed, uint32_t count, const Item *item, bool best, Gap *gap)
{
    for (const Placed *end = placed + count; placed < end; placed++) {
        if (placed->first > item->last || placed->last < item->first)
            continue;
        if (placed->offset >= gap->cursor + item->size &&
            placed->offset - gap->cursor < gap->tightest) {
            gap->tightest = placed->offset - gap->cursor;
            gap->found = gap->cursor;
            if (!best)
                return true;
        }
        if (placed->top > gap->cursor)
            gap->cursor = round_up(placed->top, item->align);
    }
    return false;
}

static uint64_t fit(Shelf *shelf, const Item *item, bool best)
{
    Gap gap = {0, UINT64_MAX, NOWHERE};
    for (uint32_t b = chain_for(shelf, item);; b = shelf->block[b].next) {
        const Block *block = &shelf->block[b];
        shelf->effort += 2;
        if (block->first <= item->last && block->last >= item->first) {
            shelf->effort += block->count;
            if (scan(shelf->placed[b], block->count, item, best, &gap))
                break;
        }
        if (!block->next)
            break;
    }
    uint64_t found = gap.found == NOWHERE ? gap.cursor : gap.found;
    return found > PACK_MAX_BYTES - (item->size - item->trim) ? NOWHERE : found;
}

uint64_t shelf_first_fit(Shelf *shelf, uint32_t item)
{
    return fit(shelf, &shelf->model->item[item], false);
}

uint64_t shelf_best_fit(Shelf *shelf, uint32_t item)
{
    return fit(shelf, &shelf->model->item[item], true);
}
