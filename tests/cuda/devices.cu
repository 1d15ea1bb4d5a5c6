/* Says what GPUs there are; fails where there are none. */
#include <cuda_runtime.h>
#include <stdio.h>

int main()
{
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess)
        count = 0;
    for (int i = 0; i < count; i++) {
        cudaDeviceProp p;
        if (cudaGetDeviceProperties(&p, i) == cudaSuccess)
            printf("device %d: %s, sm_%d%d\n", i, p.name, p.major, p.minor);
    }
    return count > 0 ? 0 : 1;
}
