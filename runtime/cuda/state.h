/* What an emitted CUDA program keeps of its runs in device memory, as a part of the arena: a
 * captured step finds all that changes from one step to the next here, and moves it on. Plain C:
 * gplan plans its bytes. */
#ifndef GP_CUDA_STATE_H
#define GP_CUDA_STATE_H

#include "../c/base.h"

typedef struct {
    gp_run run;       /* what kernels read */
    double lr, share; /* of the schedule, as are the next three */
    uint64_t warmup, steps;
    int32_t schedule;
    int32_t error;   /* 1 + the first op that met a bad index; 0: none */
    double sum;      /* of the losses of the micro-batches so far */
    double power[2]; /* what adam's updates share: see update.cuh */
    int32_t nan;     /* an op made one (-DGPLAN_CHECK_NAN) */
} gp_state;

#endif
