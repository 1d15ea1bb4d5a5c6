/* The weight of each loss of a batch in their mean. Only the first `valid` samples count; the
 * partial means of micro-batches add up to the mean over the whole batch. */
#ifndef GP_LOSS_H
#define GP_LOSS_H

#include "base.h"

/* The weight of loss i of `rows` rows with `each` of them; the rows are those of one
 * micro-batch. */
GP_FUNCTION gp_real gp_loss_weight(const gp_run *run, int64_t i, int64_t rows, int64_t each)
{
    const int64_t all = rows * (run->micros > 1 ? run->micros : 1);
    int64_t valid = all;
    if (run->batch > 0 && run->valid > 0 && all % run->batch == 0)
        valid = all / run->batch * run->valid;
    const int64_t row = run->micro * rows + i / each;
    return row < valid ? (gp_real)(1 / ((double)valid * (double)each)) : 0;
}

#endif
