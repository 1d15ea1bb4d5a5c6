/* Data sets in a folder of their own, with memory of exactly the bytes that were planned. */
#ifndef TESTS_DATA_SETS_H
#define TESTS_DATA_SETS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "runtime/c/data_ring.h"

#include <criterion/criterion.h>
#include <stdbool.h>

typedef struct {
    gp_data *data;
    void *ring, *work;
    int code;
} Opened;

/* A new folder, which becomes the current one. */
void enter_folder(void);
void write_file(const char *name, const void *data, size_t bytes);

static GP_UNUSED Opened open_set(const gp_data_set *set, gp_data_start start)
{
    const gp_data_bytes bytes = gp_data_plan(set);
    Opened o = {0};
    if (bytes.ring)
        cr_assert_eq(posix_memalign(&o.ring, 64, bytes.ring), 0);
    cr_assert_eq(posix_memalign(&o.work, 64, bytes.work), 0);
    start.ring = o.ring;
    start.work = o.work;
    o.code = gp_data_open(&o.data, set, &start);
    return o;
}

static GP_UNUSED void close_set(Opened *o)
{
    gp_data_close(o->data);
    free(o->ring);
    free(o->work);
}

/* Opening fails, and says this. */
static GP_UNUSED void refuses(const gp_data_set *set, const char *says)
{
    Opened o = open_set(set, (gp_data_start){0});
    cr_assert_eq(o.code, GP_EDATA, "was opened, which should say: %s", says);
    cr_assert(strstr(gp_data_error(o.data), says), "says: %s\nnot: %s", gp_data_error(o.data),
              says);
    close_set(&o);
}

#endif
