/* The ring: order, workers, errors, and an end at any moment. */
#include "tests/data/sets.h"

#include "runtime/c/data_callback.h"

#include "runtime/c/file_load.h"

#include <sched.h>
#include <stdlib.h>

enum { PIXELS = 12, STACK = 1 << 20 }; /* sanitizers want more of it */

static const gp_data_field fields[] = {
    {.name = "x", .dtype = GP_U8, .layout = GP_DATA_HW, .rank = 2, .dim = {3, 4}},
    {.name = "y", .dtype = GP_I64},
};

static gp_data_set base_set(void)
{
    return (gp_data_set){.name = "train",
                         .source = &gp_data_callback,
                         .field = fields,
                         .fields = 2,
                         .batch = 8,
                         .slot = 8,
                         .depth = 1,
                         .shuffle = 1,
                         .stack = STACK};
}

typedef struct {
    int64_t broken; /* this sample fails; -1: none does */
    int pause;      /* of some samples, so that workers overtake each other */
} Source;

static int fill(void *user, int64_t sample, void *const *field, char *why, size_t size)
{
    const Source *source = user;
    for (int i = 0; source && i < source->pause * (int)(sample % 7); i++)
        sched_yield();
    if (source && sample == source->broken) {
        snprintf(why, size, "broken as asked");
        return 1;
    }
    memset(field[0], (int)(sample % 251), PIXELS);
    *(unsigned char *)field[0] = 255; /* which corner is the first */
    memcpy(field[1], &sample, sizeof sample);
    return 0;
}

/* All bytes of the first slots, hashed. */
static uint64_t hash_slots(const gp_data_set *set, gp_data_start start, int slots)
{
    uint64_t hash = GP_HASH_START;
    start.fill = fill;
    Opened o = open_set(set, start);
    cr_assert_eq(o.code, GP_OK, "%s", gp_data_error(o.data));
    for (int i = 0; i < slots; i++) {
        gp_data_slot slot;
        cr_assert_eq(gp_data_next(o.data, &slot), GP_OK, "%s", gp_data_error(o.data));
        for (int f = 0; f < 2; f++)
            hash = gp_hash_bytes(hash, slot.at + gp_data_offset(set, f),
                                 gp_data_sample(&fields[f]) * (size_t)set->slot);
        hash = gp_hash_bytes(hash, &slot.valid, sizeof slot.valid);
        gp_data_done(o.data, &slot);
    }
    close_set(&o);
    return hash;
}

Test(ring, neither_workers_nor_depth_change_a_byte)
{
    Source source = {.broken = -1, .pause = 3};
    const gp_data_start start = {.seed = 3, .samples = 61, .user = &source};
    gp_data_set set = base_set();
    set.flip = set.shift = 1;
    const uint64_t expected = hash_slots(&set, start, 50);
    for (set.workers = 0; set.workers <= 3; set.workers++)
        for (set.depth = 1; set.depth <= 4; set.depth++)
            cr_assert_eq(hash_slots(&set, start, 50), expected, "%d workers, depth %d", set.workers,
                         set.depth);
    gp_data_start other = start;
    other.seed = 4;
    cr_assert_neq(hash_slots(&set, other, 50), expected);
}

Test(ring, micro_batches_and_ranks_share_a_batch)
{
    gp_data_set whole = base_set(), part = base_set();
    part.slot = 2;
    part.workers = 2;
    part.depth = 3;
    Opened all = open_set(&whole, (gp_data_start){.seed = 5, .samples = 50, .fill = fill});
    Opened rank[2];
    for (int r = 0; r < 2; r++)
        rank[r] = open_set(
            &part, (gp_data_start){
                       .seed = 5, .samples = 50, .fill = fill, .rank = r, .ranks = 2, .step = 0});
    for (int step = 0; step < 20; step++) {
        gp_data_slot batch, slot;
        cr_assert_eq(gp_data_next(all.data, &batch), GP_OK);
        const unsigned char *label = batch.at + gp_data_offset(&whole, 1);
        for (int r = 0; r < 2; r++)
            for (int micro = 0; micro < 2; micro++, label += 2 * 8) {
                cr_assert_eq(gp_data_next(rank[r].data, &slot), GP_OK);
                cr_assert_eq(slot.step, step);
                cr_assert_arr_eq(slot.at + gp_data_offset(&part, 1), label, 2 * 8);
                gp_data_done(rank[r].data, &slot);
            }
        gp_data_done(all.data, &batch);
    }
    close_set(&all);
    close_set(&rank[0]);
    close_set(&rank[1]);
}

Test(ring, a_run_is_resumed_at_any_step)
{
    gp_data_set set = base_set();
    set.workers = 2;
    set.depth = 3;
    const gp_data_start start = {.seed = 9, .samples = 100, .fill = fill};
    for (int from = 0; from < 40; from += 7) {
        Opened one = open_set(&set, start), two = open_set(&set, start);
        gp_data_slot a, b;
        for (int i = 0; i < from; i++) {
            cr_assert_eq(gp_data_next(one.data, &a), GP_OK);
            gp_data_done(one.data, &a);
        }
        gp_data_next(two.data, &b);
        gp_data_seek(two.data, from);
        for (int i = 0; i < 5; i++) {
            cr_assert_eq(gp_data_next(one.data, &a), GP_OK);
            cr_assert_eq(gp_data_next(two.data, &b), GP_OK);
            cr_assert_eq(a.number, b.number);
            cr_assert_eq(a.epoch, from + i >= 12 ? (from + i) / 12 : 0);
            cr_assert_arr_eq(a.at, b.at, gp_data_plan(&set).slot - 48);
            gp_data_done(one.data, &a);
            gp_data_done(two.data, &b);
        }
        close_set(&one);
        close_set(&two);
    }
}

Test(ring, parts_are_disjoint_and_whole_for_any_seed_of_the_run)
{
    gp_data_set set = base_set();
    int seen[50] = {0};
    set.held_out = 0.3;
    set.last = GP_DATA_PAD;
    for (set.part = GP_DATA_TRAIN; set.part <= GP_DATA_HELD_OUT; set.part++) {
        Opened o = open_set(
            &set, (gp_data_start){.seed = (uint64_t)set.part, .samples = 50, .fill = fill});
        cr_assert_eq(gp_data_samples(o.data), set.part == GP_DATA_TRAIN ? 35 : 15);
        for (int64_t step = 0; step < gp_data_steps(o.data); step++) {
            gp_data_slot slot;
            cr_assert_eq(gp_data_next(o.data, &slot), GP_OK);
            for (int64_t i = 0; i < slot.valid; i++) {
                int64_t label;
                memcpy(&label, slot.at + gp_data_offset(&set, 1) + 8 * i, 8);
                seen[label]++;
            }
            gp_data_done(o.data, &slot);
        }
        close_set(&o);
    }
    for (int i = 0; i < 50; i++)
        cr_assert_eq(seen[i], 1, "sample %d was seen %d times", i, seen[i]);
}

Test(ring, a_last_batch_is_dropped_or_padded_with_zeros)
{
    gp_data_set set = base_set();
    gp_data_slot slot;
    set.slot = 4;
    set.epochs = 1;
    for (set.last = GP_DATA_DROP; set.last <= GP_DATA_PAD; set.last++) {
        Opened o = open_set(&set, (gp_data_start){.samples = 18, .fill = fill});
        cr_assert_eq(gp_data_steps(o.data), set.last == GP_DATA_PAD ? 3 : 2);
        int64_t valid = 0, slots = 0;
        for (int code; (code = gp_data_next(o.data, &slot)) != GP_DATA_END; slots++) {
            cr_assert_eq(code, GP_OK);
            for (int64_t i = slot.valid; i < 4; i++) {
                int64_t label;
                memcpy(&label, slot.at + gp_data_offset(&set, 1) + 8 * i, 8);
                cr_assert_eq(label, 0);
            }
            valid += slot.valid;
            gp_data_done(o.data, &slot);
        }
        cr_assert_eq(valid, set.last == GP_DATA_PAD ? 18 : 16);
        cr_assert_eq(slots, set.last == GP_DATA_PAD ? 6 : 4);
        close_set(&o);
    }
}

Test(ring, an_error_is_met_where_its_sample_is_and_not_before)
{
    for (int workers = 0; workers <= 3; workers++) {
        gp_data_set set = base_set();
        Source source = {.broken = 37, .pause = 2};
        gp_data_slot slot;
        set.workers = workers;
        set.depth = 4;
        set.shuffle = 0;
        Opened o = open_set(&set, (gp_data_start){.samples = 64, .fill = fill, .user = &source});
        for (int i = 0; i < 4; i++) {
            cr_assert_eq(gp_data_next(o.data, &slot), GP_OK);
            gp_data_done(o.data, &slot);
        }
        for (int i = 0; i < 2; i++) { /* as often as it is asked for */
            cr_assert_eq(gp_data_next(o.data, &slot), GP_EDATA);
            cr_assert_str_eq(gp_data_error(o.data), "data train: sample 37: broken as asked");
        }
        close_set(&o);
    }
}

Test(ring, a_damaged_sample_is_replaced_by_the_same_one_for_any_workers)
{
    Source source = {.broken = 5};
    gp_data_set set = base_set();
    const gp_data_start start = {.seed = 1, .samples = 16, .fill = fill, .user = &source};
    set.corrupt = GP_DATA_SKIP;
    const uint64_t expected = hash_slots(&set, start, 10);
    set.workers = 3;
    set.depth = 2;
    cr_assert_eq(hash_slots(&set, start, 10), expected);
    Opened o = open_set(&set, start);
    for (int i = 0; i < 4; i++) {
        gp_data_slot slot;
        cr_assert_eq(gp_data_next(o.data, &slot), GP_OK);
        gp_data_done(o.data, &slot);
    }
    cr_assert_geq(gp_data_skipped(o.data), 2); /* once an epoch, and what was read ahead */
    close_set(&o);
}

Test(ring, it_ends_at_any_moment)
{
    Source source = {.broken = -1, .pause = 5};
    gp_data_set set = base_set();
    set.workers = 3;
    for (int i = 0; i < 60; i++) {
        gp_data_slot slot;
        set.depth = 1 + i % 4;
        Opened o = open_set(&set, (gp_data_start){.samples = 80, .fill = fill, .user = &source});
        for (int k = 0; k < i % 5; k++) {
            cr_assert_eq(gp_data_next(o.data, &slot), GP_OK);
            if (k + 1 < i % 5 || i % 2) /* with a slot that is still out, or without */
                gp_data_done(o.data, &slot);
        }
        close_set(&o);
    }
}

Test(ring, too_few_samples_are_an_error)
{
    gp_data_set set = base_set();
    Opened o = open_set(&set, (gp_data_start){.samples = 7, .fill = fill});
    cr_assert_eq(o.code, GP_EDATA);
    cr_assert_str_eq(gp_data_error(o.data),
                     "callback: data train has 7 samples, which do not fill a batch of 8");
    close_set(&o);
    refuses(&set, "data train: no path is given");
    set.path = "x";
    refuses(&set, "no function was given that fills samples");
}
