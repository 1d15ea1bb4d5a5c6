/* Memory that the host and the device both reach, so that the tests of ops run as they are. */
#include "tests/selftest/device.h"

#include <cuda_runtime.h>
#include <stdio.h>

extern "C" void *run_memory(size_t bytes)
{
    void *at = NULL;
    return cudaMallocManaged(&at, bytes ? bytes : 1) == cudaSuccess ? at : NULL;
}

extern "C" void run_memory_free(void *at)
{
    cudaFree(at);
}

const char *selftest_device(const char **why)
{
    static char name[64];
    int count = 0, major = 0, minor = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    *why = error == cudaSuccess ? "there is none" : cudaGetErrorString(error);
    if (error != cudaSuccess || count == 0)
        return NULL;
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
    cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0);
    snprintf(name, sizeof name, "sm_%d%d", major, minor);
    return name;
}
