/* Local search over orders, for problems near their bound or too large to search completely: pack
 * by first fit, and what ended above the target goes a little earlier in the next round (squeaky
 * wheel optimization: Joslin and Clements, 1999). It starts from orders by peaks, where most
 * large problems are nearly solved already, and gives each of them rounds.
 */
#include "planner/pack/internal.h"

#include <stdlib.h>
#include <string.h>

enum { STARTS = 3, TURN = 12 };
#define EARLIER 0.9 /* of the distance to the front; longer jumps destroy what worked */

typedef struct {
    double place; /* smaller goes first */
    uint32_t item;
} Slot;

typedef struct {
    uint32_t *order, *kept; /* this round's, and the one of the least height */
    uint64_t least, random;
} Wheel;

static int by_place(const void *a, const void *b)
{
    const Slot *x = a, *y = b;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item;
}

/* Those above the target move up; far from it those above the middle, or nearly all would. */
static void complain(const Pack *pack, Wheel *wheel, const uint64_t *offset, Slot *slot, bool lost)
{
    const Model *model = pack->model;
    uint64_t most = pack->target;
    if (!pack_near(pack, wheel->least))
        most += (wheel->least - pack->target) / 2;
    for (uint32_t i = 0; i < model->count; i++) {
        uint32_t index = wheel->order[i];
        const Item *item = &model->item[index];
        slot[i] = (Slot){i, index};
        if (offset[index] + (item->size - item->trim) > most) {
            double dice = 0x1p-53 * (double)(pack_random(&wheel->random) >> 11);
            slot[i].place *= lost ? dice : EARLIER;
        }
    }
    qsort(slot, model->count, sizeof *slot, by_place);
    for (uint32_t i = 0; i < model->count; i++)
        wheel->order[i] = slot[i].item;
}

/* Rounds until TURN of them brought nothing. */
static void run_round(Pack *pack, Shelf *shelf, Wheel *wheel, uint64_t *offset, Slot *slot)
{
    size_t bytes = pack->model->count * sizeof *wheel->order;
    for (uint32_t idle = 0; idle < TURN && !pack_done(pack); idle++) {
        if (!pack_place(pack, shelf, wheel->order, false, offset))
            return;
        uint64_t height = pack_height(pack->model, offset);
        pack_offer(pack, offset);
        bool better = height < wheel->least, lost = idle == TURN - 1 && !better;
        if (better) {
            wheel->least = height;
            idle = 0;
            memcpy(wheel->kept, wheel->order, bytes);
        } else if (lost) {
            memcpy(wheel->order, wheel->kept, bytes);
        }
        complain(pack, wheel, offset, slot, lost);
    }
}

void pack_squeak(Pack *pack, uint32_t rounds)
{
    static const PackOrder start[STARTS] = {BY_PEAK_SIZE, BY_PEAK_WIDTH, BY_SIZE};
    const Model *model = pack->model;
    Arena *arena = arena_new();
    uint64_t *offset = ARENA_ARRAY(arena, uint64_t, model->count);
    Slot *slot = ARENA_ARRAY(arena, Slot, model->count);
    Shelf *shelf = shelf_new(arena, model);
    Wheel wheel[STARTS];
    for (uint32_t w = 0; w < STARTS; w++) {
        wheel[w] =
            (Wheel){ARENA_ARRAY(arena, uint32_t, model->count),
                    ARENA_ARRAY(arena, uint32_t, model->count), NOWHERE, pack->options.seed + w};
        pack_order(model, start[w], wheel[w].order);
    }
    for (uint32_t t = 0; t < rounds && !pack_done(pack) && pack_spend(pack, 0); t++) {
        run_round(pack, shelf, &wheel[t % STARTS], offset, slot);
        if (pack->height == NOWHERE && t + 1 >= STARTS)
            break; /* the offsets overflow, whichever way */
    }
    arena_free(arena);
}
