/* The weight of each loss of a batch in their mean: only the first `valid` samples count. */
#ifndef GP_LOSS_H
#define GP_LOSS_H

#include "base.h"

/* The weight of loss i of `rows` rows with `each` of them. */
GP_FUNCTION gp_real gp_loss_weight(const gp_run *run, int64_t i, int64_t rows, int64_t each)
{
    int64_t all = rows, row = i / each;
#ifndef GP_ONE_BATCH /* the partial means of micro-batches add up to the mean of the batch */
    all *= GP_PARTS(run) > 1 ? GP_PARTS(run) : 1;
    row += GP_PART(run) * rows;
#endif
    int64_t valid = all;
    if (run->batch > 0 && run->valid > 0 && all % run->batch == 0)
        valid = all / run->batch * run->valid;
    return row < valid ? (gp_real)(1 / ((double)valid * (double)each)) : 0;
}

#endif
