/* What device.cpp asks of runtime.cpp. */
#ifndef CUDA_ON_CPU_DEVICE_H
#define CUDA_ON_CPU_DEVICE_H

#include "cuda_runtime.h"

/* Whether a GPU would start such a grid; if not, cudaGetLastError says so. */
bool device_starts(const void *kernel, dim3 grid, dim3 block, size_t shared);

#endif
