/* Races on shared memory: two threads of a block touch the same bytes, one of them writes, and no
 * barrier lies between.
 *
 * Kernels that are compiled with -fsanitize=thread say of every load and store where it goes: the
 * compiler puts the calls there, and race.cpp has the functions that they are to, in place of the
 * sanitizer's own. Kernels compiled otherwise are not watched. */
#ifndef CUDA_ON_CPU_RACE_H
#define CUDA_ON_CPU_RACE_H

#include <stddef.h>

/* What device.cpp tells: a block begins, an array of it is made, all threads met at a barrier, or
 * all of a warp; where a barrier stands that was met. */
void race_block(unsigned threads);
void race_array(const void *at, size_t bytes, const char *name);
void race_barrier();
void race_warp_barrier(unsigned warp);
void race_passed(const char *file, int line);
/* What it is asked: the thread that runs (NOBODY: none), and to report a fault and give up. */
static const unsigned NOBODY = ~0u;
unsigned device_thread();
void device_fault(const char *what);

#endif
