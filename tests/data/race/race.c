/* The ring in every state it has, for the thread sanitizer (`make race-data`): many workers, slots
 * given back late, seeks while slots are filled, errors, and ends at any moment. */
#define _GNU_SOURCE
#include "runtime/c/data_callback.h"
#include "runtime/c/data_ring.h"

#include <sched.h>
#include <stdlib.h>

static int fill(void *user, int64_t sample, void *const *field, char *why, size_t size)
{
    const int64_t broken = *(const int64_t *)user;
    for (int64_t i = 0; i < sample % 5; i++)
        sched_yield();
    memset(field[0], (int)sample, 64);
    if (sample == broken)
        snprintf(why, size, "broken");
    return sample == broken;
}

static long run(int workers, int depth, int round)
{
    static const gp_data_field field[] = {{.name = "x", .dtype = GP_U8, .rank = 1, .dim = {64}}};
    int64_t broken = round % 3 == 0 ? 11 : -1;
    const gp_data_set set = {.name = "train",
                             .source = &gp_data_callback,
                             .field = field,
                             .fields = 1,
                             .batch = 16,
                             .slot = 8,
                             .depth = depth,
                             .workers = workers,
                             .shuffle = 1,
                             .corrupt = round % 2 ? GP_DATA_SKIP : GP_DATA_STOP,
                             .stack = 4 << 20};
    const gp_data_bytes bytes = gp_data_plan(&set);
    gp_data_start start = {.fill = fill, .user = &broken, .samples = 100, .seed = (uint64_t)round};
    gp_data *data;
    gp_data_slot slot[8];
    long sum = 0;
    if (posix_memalign(&start.ring, 64, bytes.ring) ||
        posix_memalign(&start.work, 4096, bytes.work))
        abort();
    if (gp_data_open(&data, &set, &start) != GP_OK) {
        fprintf(stderr, "%s\n", gp_data_error(data));
        exit(1);
    }
    for (int i = 0; i < 40 + round; i++) {
        int out = 0;
        while (out < 1 + i % depth && gp_data_next(data, &slot[out]) == GP_OK)
            out++;
        for (int k = 0; k < out; k++) {
            for (int b = 0; b < 512; b++)
                sum += slot[k].at[b];
            gp_data_done(data, &slot[k]);
        }
        if (i % 7 == 0)
            gp_data_seek(data, i);
        sum += gp_data_skipped(data);
    }
    gp_data_close(data);
    free(start.ring);
    free(start.work);
    return sum;
}

int main(void)
{
    long sum = 0;
    for (int round = 0; round < 6; round++)
        for (int workers = 0; workers <= 4; workers++)
            for (int depth = 1; depth <= 4; depth++)
                sum += run(workers, depth, round);
    printf("no races (%ld)\n", sum);
    return 0;
}
