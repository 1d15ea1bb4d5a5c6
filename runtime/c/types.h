/* The few types that an emitted program begins with. */
#ifndef GP_TYPES_H
#define GP_TYPES_H

#include <stdint.h>

#ifndef GP_REAL
#define GP_REAL float
#endif
typedef GP_REAL gp_real;

#if defined(__GNUC__)
#define GP_UNUSED __attribute__((unused))
#define GP_NOINLINE __attribute__((noinline, unused))
#else
#define GP_UNUSED
#define GP_NOINLINE
#endif

/* What a kernel returns; the caller adds which op it was. */
enum {
    GP_OK = 0,
    GP_EINDEX = 1, /* an index outside its table */
    GP_ENAN = 2,   /* a NaN among what was made: see call.h */
    GP_EDEVICE = 9 /* a device refused a call; the numbers between are the emitted program's */
};

/* What holds for a whole run of a program. */
typedef struct {
    uint64_t seed, step; /* step counts from 0 */
    int32_t threads;
    int32_t micro, micros; /* which micro-batch of how many; 0 of 0 where there is one */
    int64_t batch, valid;  /* samples of the whole batch, and how many of them count; 0: all */
    double lr;             /* learning rate of this step */
    void *device;          /* what the kernels of a target need beside; NULL in C */
} gp_run;

#endif
