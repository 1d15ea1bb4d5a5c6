/* The registry: every row of every file in ops/, in order of name. The build writes the list of
 * files into ops.inc, so adding an op touches nothing here. */
#include "frontend/frontend.h"

#include <stdlib.h>
#include <string.h>

#define OPS(family) extern const OpRow ops_##family[];
#include "ops.inc"
#undef OPS

#define OPS(family) ops_##family,
static const OpRow *const families[] = {
#include "ops.inc"
};
#undef OPS

enum { MAX_OPS = 512 };

/* Filled once, on first use; the same ever after. */
static const OpRow *rows[MAX_OPS];
static size_t row_count;

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const OpRow *const *)a)->name, (*(const OpRow *const *)b)->name);
}

static void fill(void)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        for (const OpRow *row = families[i]; row->name; row++) {
            if (row_count == MAX_OPS)
                abort();
            rows[row_count++] = row;
        }
    qsort(rows, row_count, sizeof *rows, by_name);
}

const OpRow *op_at(size_t i)
{
    if (!row_count)
        fill();
    return i < row_count ? rows[i] : NULL;
}

const OpRow *op_find(const char *name)
{
    if (!row_count)
        fill();
    OpRow key = {.name = name};
    const OpRow *wanted = &key;
    const OpRow **found = bsearch(&wanted, rows, row_count, sizeof *rows, by_name);
    return found ? *found : NULL;
}

int op_arg(const OpRow *op, const char *name)
{
    for (int i = 0; i < MAX_ARGS && op->args[i].name; i++)
        if (strcmp(op->args[i].name, name) == 0)
            return i;
    return -1;
}
