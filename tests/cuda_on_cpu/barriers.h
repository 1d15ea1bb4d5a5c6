/* For tests of the kernels' barriers, in C: the places that were passed since the last call. */
#ifndef CUDA_ON_CPU_BARRIERS_H
#define CUDA_ON_CPU_BARRIERS_H

#ifdef __cplusplus
extern "C"
#endif
    void
    barriers_passed(void (*visit)(void *to, const char *file, int line), void *to);

#endif
