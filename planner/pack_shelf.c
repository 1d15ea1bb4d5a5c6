/* Placing items one by one anywhere they fit, holes included.
 *
 * Placed items lie in order of offset in a chain of blocks; a block knows the sections it
 * touches, so that a scan for a gap passes over most blocks that do not meet the item.
 */
#include "planner/pack_internal.h"

#include <string.h>

enum { BLOCK = 64 };

typedef struct {
    uint64_t offset, top;
    uint32_t first, last;
} Placed;

typedef struct {
    uint32_t next, count;
    uint32_t first, last; /* sections that its items touch, at most */
    Placed at[BLOCK];
} Block;

struct Shelf {
    const Model *model;
    Block *block;
    uint32_t blocks;
    uint64_t work;
};

Shelf *shelf_new(Arena *arena, const Model *model)
{
    Shelf *shelf = ARENA_NEW(arena, Shelf);
    shelf->model = model;
    /* A block splits when full, so each but the first was filled by half a block of items. */
    shelf->block = ARENA_ARRAY(arena, Block, (size_t)model->count / (BLOCK / 2) + 2);
    shelf_clear(shelf);
    return shelf;
}

void shelf_clear(Shelf *shelf)
{
    shelf->blocks = 1;
    shelf->block[0].next = 0;
    shelf->block[0].count = 0;
    shelf->block[0].first = UINT32_MAX;
    shelf->block[0].last = 0;
}

uint64_t shelf_work(const Shelf *shelf)
{
    return shelf->work;
}

static void touch(Block *block, const Placed *placed)
{
    if (placed->first < block->first)
        block->first = placed->first;
    if (placed->last > block->last)
        block->last = placed->last;
}

static void split(Shelf *shelf, Block *block)
{
    Block *half = &shelf->block[shelf->blocks];
    *half = (Block){.next = block->next, .count = BLOCK / 2, .first = UINT32_MAX};
    block->next = shelf->blocks++;
    block->count = BLOCK / 2;
    memcpy(half->at, block->at + BLOCK / 2, BLOCK / 2 * sizeof *half->at);
    block->first = UINT32_MAX;
    block->last = 0;
    for (uint32_t i = 0; i < BLOCK / 2; i++) {
        touch(block, &block->at[i]);
        touch(half, &half->at[i]);
    }
}

void shelf_add(Shelf *shelf, uint32_t item, uint64_t offset)
{
    const Item *it = &shelf->model->item[item];
    Placed placed = {offset, offset + it->size, it->first, it->last};
    Block *block = &shelf->block[0];
    while (block->next && shelf->block[block->next].at[0].offset <= offset)
        block = &shelf->block[block->next];
    if (block->count == BLOCK) {
        split(shelf, block);
        if (shelf->block[block->next].at[0].offset <= offset)
            block = &shelf->block[block->next];
    }
    uint32_t at = block->count++;
    for (; at && block->at[at - 1].offset > offset; at--)
        block->at[at] = block->at[at - 1];
    block->at[at] = placed;
    touch(block, &placed);
    shelf->work += BLOCK / 4;
}

/* Walks the gaps that the item could lie in, from the lowest; the first, or the tightest. */
static uint64_t fit(Shelf *shelf, const Item *item, bool best)
{
    uint64_t cursor = 0, tightest = UINT64_MAX, found = NOWHERE;
    const Block *block = &shelf->block[0];
    for (;; block = &shelf->block[block->next]) {
        shelf->work += 4;
        if (block->first <= item->last && block->last >= item->first) {
            shelf->work += block->count;
            for (uint32_t i = 0; i < block->count; i++) {
                const Placed *placed = &block->at[i];
                if (placed->first > item->last || placed->last < item->first)
                    continue;
                if (placed->offset >= cursor + item->size) {
                    if (!best)
                        return cursor;
                    if (placed->offset - cursor < tightest) {
                        tightest = placed->offset - cursor;
                        found = cursor;
                    }
                }
                if (placed->top > cursor)
                    cursor = round_up(placed->top, item->align);
            }
        }
        if (!block->next)
            break;
    }
    if (found == NOWHERE)
        found = cursor;
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
