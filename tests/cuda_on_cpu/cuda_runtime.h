/* CUDA on the CPU: enough of the toolkit's names that the kernels and emitted programs of this
 * project compile as C++17 and run here, each mistake that a GPU would answer with silence
 * reported.
 *
 * Threads of a block are fibers. One runs until it waits for others (a barrier, a shuffle) or
 * ends; then the first in the chosen order that can go on does. A kernel that never waits is a
 * plain loop. In the environment:
 *
 *   CUDA_ON_CPU_ORDER   ascending (default), descending or shuffled: of blocks and of threads.
 *                       A kernel whose result depends on it has a race.
 *   CUDA_ON_CPU_STREAMS late (default) or shuffled: what is put on a stream is done when somebody
 *                       waits for it and no sooner, or whenever it may.
 *   CUDA_ON_CPU_SKIP    softmax.cuh:57: the barrier on that line does nothing.
 *   CUDA_ON_CPU_FAIL    12: the twelfth call that can fail, of CUDA or cuBLAS, does.
 *
 * Memory is poisoned (bytes 0xff: NaN) before it is written: shared memory at the start of a
 * block, device memory when it is allocated, between pages that fault. Streams wait for each other
 * and for the host only where CUDA promises it: see streams.cpp. There are two devices; memory,
 * streams, events and handles of cuBLAS belong to the one that was current when they were made. */
#ifndef CUDA_ON_CPU_RUNTIME_H
#define CUDA_ON_CPU_RUNTIME_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <functional>
#include <tuple>

#define __host__
#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
    {
    }
};

/* ---- Errors, memory, streams, events, graphs ------------------------------------------------ */

enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInvalidDevice = 101,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorNotReady = 600,
    cudaErrorLaunchOutOfResources = 701,
    cudaErrorLaunchFailure = 719,
    cudaErrorStreamCaptureUnsupported = 900
};
enum cudaMemcpyKind {
    cudaMemcpyHostToHost,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault
};
enum { cudaStreamDefault = 0, cudaStreamNonBlocking = 1 };
enum { cudaEventDefault = 0, cudaEventDisableTiming = 2 };
enum { cudaMemAttachGlobal = 1 };
enum cudaStreamCaptureMode {
    cudaStreamCaptureModeGlobal,
    cudaStreamCaptureModeThreadLocal,
    cudaStreamCaptureModeRelaxed
};
enum cudaStreamCaptureStatus {
    cudaStreamCaptureStatusNone,
    cudaStreamCaptureStatusActive,
    cudaStreamCaptureStatusInvalidated
};
enum cudaDeviceAttr {
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
enum cudaMemoryType {
    cudaMemoryTypeUnregistered,
    cudaMemoryTypeHost,
    cudaMemoryTypeDevice,
    cudaMemoryTypeManaged
};
struct cudaPointerAttributes {
    cudaMemoryType type;
    int device;
};
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;

cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();
const char *cudaGetErrorString(cudaError_t error);
const char *cudaGetErrorName(cudaError_t error);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr which, int device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaMemGetInfo(size_t *left, size_t *total);

enum CudaOnCpuMemory { MEMORY_DEVICE, MEMORY_PINNED, MEMORY_MANAGED };
cudaError_t cuda_on_cpu_allocate(void **at, size_t bytes, CudaOnCpuMemory kind);
template <class T> cudaError_t cudaMalloc(T **at, size_t bytes)
{
    return cuda_on_cpu_allocate((void **)at, bytes, MEMORY_DEVICE);
}
template <class T> cudaError_t cudaMallocManaged(T **at, size_t bytes, unsigned = 1)
{
    return cuda_on_cpu_allocate((void **)at, bytes, MEMORY_MANAGED);
}
template <class T> cudaError_t cudaMallocHost(T **at, size_t bytes)
{
    return cuda_on_cpu_allocate((void **)at, bytes, MEMORY_PINNED);
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *at);
cudaError_t cudaFree(void *at);
cudaError_t cudaFreeHost(void *at);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream = 0);
cudaError_t cudaMemset(void *to, int byte, size_t bytes);
cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t stream = 0);

cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                 unsigned long long flags = 0);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = 0);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to);
cudaError_t cudaEventDestroy(cudaEvent_t event);

/* ---- Launches ------------------------------------------------------------------------------- */

/* Puts what a kernel does on a stream. */
void cuda_on_cpu_enqueue(cudaStream_t stream, std::function<void()> work);
void cuda_on_cpu_allow_shared(const void *kernel, size_t bytes);

/* A kernel with its arguments. */
struct CudaOnCpuKernel {
    const char *name;
    const void *address;
    virtual void thread() const = 0; /* runs it as the thread that threadIdx says */
    virtual ~CudaOnCpuKernel()
    {
    }
};

/* Puts a grid on a stream, and keeps the kernel as long as needed. What a GPU would not start is
 * refused: cudaGetLastError says so too. */
cudaError_t cuda_on_cpu_start(const CudaOnCpuKernel *kernel, dim3 grid, dim3 block, size_t shared,
                              cudaStream_t stream);

template <class... P> struct CudaOnCpuCall final : CudaOnCpuKernel {
    void (*kernel)(P...);
    std::tuple<P...> arguments;
    CudaOnCpuCall(void (*kernel_)(P...), P... argument) : kernel(kernel_), arguments(argument...)
    {
    }
    void thread() const override
    {
        std::apply(kernel, arguments);
    }
};

template <class... P, class... A>
cudaError_t cuda_on_cpu_launch(const char *name, dim3 grid, dim3 block, size_t shared,
                               cudaStream_t stream, void (*kernel)(P...), A... argument)
{
    CudaOnCpuKernel *call = new CudaOnCpuCall<P...>(kernel, argument...);
    call->name = name;
    call->address = (const void *)kernel;
    return cuda_on_cpu_start(call, grid, block, shared, stream);
}

template <class... P>
cudaError_t cudaFuncSetAttribute(void (*kernel)(P...), cudaFuncAttribute, int bytes)
{
    cuda_on_cpu_allow_shared((const void *)kernel, (size_t)bytes);
    return cudaSuccess;
}

/* Only blocks [from, to) of the next grids are run, in x; all where to is 0. */
void cuda_on_cpu_only_blocks(int64_t from, int64_t to);
/* Counts a call that can fail; whether it is the one that must. */
bool cuda_on_cpu_refuses();
/* What the emulator found wrong with a kernel, in words; NULL: nothing. */
const char *cuda_on_cpu_fault();

/* ---- In a kernel ---------------------------------------------------------------------------- */

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
static const int warpSize = 32;

/* The array of a block, by the place that declares it; `bytes` of it, poisoned. */
void *cuda_on_cpu_array(const void *place, const char *name, size_t bytes);
void *cuda_on_cpu_dynamic();
#define CUDA_ON_CPU_SHARED(type, name, dims) \
    static const char name##_place = 0;      \
    using name##_array = type dims;          \
    auto &name = *(name##_array *)cuda_on_cpu_array(&name##_place, #name, sizeof(name##_array))

void cuda_on_cpu_barrier(const char *file, int line);
void cuda_on_cpu_warp_barrier(const char *file, int line, unsigned mask);
#define __syncthreads() cuda_on_cpu_barrier(__FILE__, __LINE__)
inline unsigned cuda_on_cpu_mask(unsigned mask = 0xffffffffu)
{
    return mask;
}
#define __syncwarp(...) cuda_on_cpu_warp_barrier(__FILE__, __LINE__, cuda_on_cpu_mask(__VA_ARGS__))

enum CudaOnCpuExchange {
    EXCHANGE_INDEX,
    EXCHANGE_UP,
    EXCHANGE_DOWN,
    EXCHANGE_XOR,
    EXCHANGE_BALLOT,
    EXCHANGE_NOTHING /* only wait for each other */
};
uint64_t cuda_on_cpu_exchange(CudaOnCpuExchange how, unsigned mask, uint64_t bits, int by,
                              int width);

template <class T>
T cuda_on_cpu_shuffle(CudaOnCpuExchange how, unsigned mask, T value, int by, int width)
{
    static_assert(sizeof(T) <= sizeof(uint64_t), "lanes exchange eight bytes at most");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = cuda_on_cpu_exchange(how, mask, bits, by, width);
    memcpy(&value, &bits, sizeof value);
    return value;
}
template <class T> T __shfl_sync(unsigned mask, T value, int lane, int width = 32)
{
    return cuda_on_cpu_shuffle(EXCHANGE_INDEX, mask, value, lane, width);
}
template <class T> T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32)
{
    return cuda_on_cpu_shuffle(EXCHANGE_UP, mask, value, (int)by, width);
}
template <class T> T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32)
{
    return cuda_on_cpu_shuffle(EXCHANGE_DOWN, mask, value, (int)by, width);
}
template <class T> T __shfl_xor_sync(unsigned mask, T value, int by, int width = 32)
{
    return cuda_on_cpu_shuffle(EXCHANGE_XOR, mask, value, by, width);
}
inline unsigned __ballot_sync(unsigned mask, int yes)
{
    return (unsigned)cuda_on_cpu_exchange(EXCHANGE_BALLOT, mask, yes != 0, 0, 32);
}
inline int __any_sync(unsigned mask, int yes)
{
    return __ballot_sync(mask, yes) != 0;
}
inline int __all_sync(unsigned mask, int yes)
{
    return __ballot_sync(mask, yes) == mask;
}

/* One thread runs at a time, so these are plain; atomics on reals are not offered: their order,
 * and so the result, would differ from run to run. */
template <class T> T atomicCAS(T *at, T expected, T value)
{
    static_assert(!__is_class(T), "integers");
    const T old = *at;
    if (old == expected)
        *at = value;
    return old;
}
inline int atomicAdd(int *at, int value)
{
    const int old = *at;
    *at += value;
    return old;
}
inline int atomicMax(int *at, int value)
{
    const int old = *at;
    *at = value > old ? value : old;
    return old;
}
template <class T> T __ldg(const T *at)
{
    return *at;
}
inline void __threadfence()
{
}
inline float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}
inline unsigned __clz(int x)
{
    return x ? (unsigned)__builtin_clz((unsigned)x) : 32;
}
inline int __ffs(int x)
{
    return __builtin_ffs(x);
}
inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}

#endif
