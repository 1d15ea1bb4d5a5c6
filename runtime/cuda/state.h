/* The state of runs that an emitted CUDA program keeps in device memory, as a part of the arena: a
 * captured step reads all that changes from step to step here, and advances it. Plain C: gplan
 * plans its bytes. */
#ifndef GP_CUDA_STATE_H
#define GP_CUDA_STATE_H

#include "../c/base.h"

typedef struct {
    gp_run run;       /* what kernels read */
    double lr, share; /* of the schedule, as are the next three */
    uint64_t warmup, steps;
    int32_t schedule;
    int32_t error;   /* 1 + the first op that saw an index out of range; 0: none */
    double sum;      /* sum of the losses of the micro-batches so far */
    double power[2]; /* shared by adam's updates: see update.cuh */
    int32_t nan;     /* an op produced a NaN (-DGPLAN_CHECK_NAN) */
    int32_t heard;   /* 1 + the rank that failed or is at another step; 0: none */
    int32_t reason;  /* of that rank: its error; 0: another seed or step */
} gp_state;

#endif
