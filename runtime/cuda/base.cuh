/* The types and macros of every emitted CUDA program, on top of those of C.
 *
 * A kernel is `GP_KERNEL(name) { ... }` as in C: host code that reads dims, strides and settings
 * from the call, launches __global__ functions on the call's stream with GP_LAUNCH and returns at
 * once. Data pointers are device pointers. No launch has arguments that change from step to step
 * (its number, the learning rate, the micro-batch): kernels read them from the gp_run in device
 * memory, so that a captured graph can be replayed for the next step.
 *
 * Results are the same bits in every run: sums have one order, and reals are never added
 * atomically. Counts and indices are int64_t; grids are clamped to their limit, and kernels loop
 * over the rest. */
#ifndef GP_BASE_CUH
#define GP_BASE_CUH

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include "../c/base.h"
#include "../c/narrow.h"
#include "work.h"

#define GP_DEVICE __device__ static inline GP_UNUSED

/* Before a loop over an array that should stay in registers. */
#ifdef __CUDACC__
#define GP_UNROLL _Pragma("unroll")
#else
#define GP_UNROLL
#endif

/* gp_run.device points to one, in host memory. */
typedef struct {
    cudaStream_t stream;
    cublasHandle_t blas;
    const gp_run *run; /* in device memory */
    int32_t *error; /* in device memory: 1 + the first op that saw an index out of range; 0: none */
    double *power;  /* in device memory: two powers shared by adam's updates of a step, */
    int32_t has_power; /* whether this run has computed them, */
    double beta[2];    /* and from which betas */
    void *ranks;       /* of a program for several: the gp_nccl of ranks.cuh, */
    int32_t rank;      /* and which of them this one is */
    int32_t op;        /* the op being called: set before each call */
    int32_t why;       /* where a kernel returned GP_EDEVICE: what CUDA said, or minus what cuBLAS
                          said */
} gp_device;

GP_UNUSED static inline gp_device *gp_device_of(const gp_call *c)
{
    return (gp_device *)c->run->device;
}

/* In a GP_KERNEL: a call of the CUDA runtime or cuBLAS; its failure ends the kernel. */
#define GP_CHECKED(c, sign, ...)                        \
    do {                                                \
        const int gp_why = (int)(__VA_ARGS__);          \
        if (gp_why != 0) { /* success is 0 with both */ \
            gp_device_of(c)->why = sign gp_why;         \
            return GP_EDEVICE;                          \
        }                                               \
    } while (0)
#define GP_CUDA_CALL(c, ...) GP_CHECKED(c, +, __VA_ARGS__)
#define GP_BLAS_CALL(c, ...) GP_CHECKED(c, -, __VA_ARGS__)

/* Shared memory: GP_SHARED(gp_real, tile, [16][17]); of the size given at launch:
 * GP_SHARED_DYNAMIC(gp_real, row). */
#ifdef GP_CUDA_ON_CPU
#define GP_SHARED(type, name, dims) CUDA_ON_CPU_SHARED(type, name, dims)
#define GP_SHARED_DYNAMIC(type, name) type *const name = (type *)cuda_on_cpu_dynamic()
#define GP_START(kernel, grid, block, bytes, stream, ...) \
    cuda_on_cpu_launch(#kernel, grid, block, bytes, stream, kernel, __VA_ARGS__)
#else
extern __shared__ double gp_shared_bytes[];
#define GP_SHARED(type, name, dims) __shared__ type name dims
#define GP_SHARED_DYNAMIC(type, name) type *const name = (type *)gp_shared_bytes
#define GP_START(kernel, grid, block, bytes, stream, ...) \
    gp_start(kernel, grid, block, bytes, stream, __VA_ARGS__)

template <class T> struct gp_same {
    typedef T type;
};

/* kernel<<<grid, block, bytes, stream>>>(argument...) with its own status: cudaGetLastError would
 * return and clear errors of earlier calls by others. */
template <class... P>
static inline cudaError_t gp_start(void (*kernel)(P...), dim3 grid, dim3 block, size_t bytes,
                                   cudaStream_t stream, typename gp_same<P>::type... argument)
{
    void *at[] = {(void *)&argument...};
    return cudaLaunchKernel((const void *)kernel, grid, block, at, bytes, stream);
}
#endif

/* GP_LAUNCH(c, kernel, grid, block, bytes of dynamic shared memory, arguments) in a GP_KERNEL. */
#define GP_LAUNCH(c, kernel, grid, block, bytes, ...) \
    GP_CUDA_CALL(c, GP_START(kernel, grid, block, bytes, gp_device_of(c)->stream, __VA_ARGS__))

/* Records an index out of range: the first op to see one is kept. */
GP_DEVICE void gp_bad_index(int32_t *error, int32_t op)
{
    atomicCAS(error, 0, op + 1);
}

enum { GP_WARP = 32, GP_BLOCK = 256 };
#define GP_ALL_LANES 0xffffffffu
#ifndef GP_MAX_GRID
#define GP_MAX_GRID 0x7fffffff
#endif

/* Blocks for `count` threads, within the limit of a grid. */
GP_UNUSED static inline dim3 gp_blocks(int64_t count, int64_t block)
{
    const int64_t blocks = count > 0 ? (count + block - 1) / block : 1;
    return dim3((unsigned)(blocks < GP_MAX_GRID ? blocks : GP_MAX_GRID));
}

/* A block of `count` cooperating threads: whole warps, GP_BLOCK at most. */
GP_UNUSED static inline unsigned gp_block_of(int64_t count)
{
    unsigned block = GP_WARP;
    while (block < count && block < GP_BLOCK)
        block *= 2;
    return block;
}

/* for (GP_EACH(i, count)): grid-stride loop over `count` elements. */
#define GP_EACH(i, count)                                       \
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; \
    i < (count);                                                \
    i += (int64_t)gridDim.x * blockDim.x
/* for (GP_EACH_BLOCK(row, rows)): the same, one block per row. */
#define GP_EACH_BLOCK(i, count)      \
    int64_t i = (int64_t)blockIdx.x; \
    i < (count);                     \
    i += (int64_t)gridDim.x

/* Reduces over the threads of a block in one order: a tree over the lanes of a warp, then over
 * warps. Every thread gets the result; called by all threads of the block. */
struct gp_add {
    template <class T> __device__ T operator()(T a, T b) const
    {
        return a + b;
    }
};

struct gp_larger {
    template <class T> __device__ T operator()(T a, T b) const
    {
        return b > a ? b : a;
    }
};

template <class T, class Join> __device__ inline T gp_warp_join(T x, Join join)
{
    for (int step = GP_WARP / 2; step > 0; step /= 2)
        x = join(x, __shfl_xor_sync(GP_ALL_LANES, x, step));
    return x;
}

template <class T, class Join> __device__ inline T gp_block_join(T x, Join join)
{
    GP_SHARED(T, part, [GP_WARP]);
    x = gp_warp_join(x, join);
    const unsigned warps = blockDim.x / GP_WARP;
    if (warps == 1)
        return x;
    if (threadIdx.x % GP_WARP == 0)
        part[threadIdx.x / GP_WARP] = x;
    __syncthreads();
    x = part[0];
    for (unsigned i = 1; i < warps; i++)
        x = join(x, part[i]);
    __syncthreads(); /* all have read: the next call may write */
    return x;
}

/* Reals of a dtype that the launch decides. Each is loaded as a gp_real, and rounded where it is
 * stored; `at` is NULL where they are not given or not wanted. */
typedef struct gp_reals {
    void *at;
    int32_t dtype;
    __device__ gp_real operator[](int64_t i) const
    {
        return gp_get_real(at, i, dtype);
    }
    __device__ void put(int64_t i, gp_real x) const
    {
        gp_set_real(at, i, dtype, x);
    }
} gp_reals;

GP_FUNCTION gp_reals gp_reals_of(const gp_tensor *t)
{
    const gp_reals x = {t->data, t->dtype};
    return x;
}

/* Of operand or output i of a call, which may be missing. */
GP_UNUSED static inline gp_reals gp_reals_in(const gp_call *c, int i)
{
    const gp_reals none = {NULL, GP_F32};
    return i < c->ins ? gp_reals_of(&c->in[i]) : none;
}

GP_UNUSED static inline gp_reals gp_reals_out(const gp_call *c, int i)
{
    const gp_reals none = {NULL, GP_F32};
    return i < c->outs ? gp_reals_of(&c->out[i]) : none;
}

/* Those from element i on. */
GP_FUNCTION gp_reals gp_reals_from(gp_reals x, int64_t i)
{
    x.at = (char *)x.at + i * (int64_t)gp_size(x.dtype);
    return x;
}

/* Element i as a product takes it: `half` (or GP_F32) is what it multiplies, and parameters, which
 * stay f32, are rounded to that. */
GP_DEVICE gp_real gp_factor(const gp_reals &x, int64_t i, int32_t half)
{
    const gp_real factor = x[i];
    return x.dtype == GP_F32 ? gp_round_to(factor, half) : factor;
}

/* The square of a real, even if it overflows a real. */
GP_DEVICE double gp_square(gp_real x)
{
    const gp_real square = x * x;
    return square <= (gp_real)3.402823466e38 ? (double)square : (double)x * (double)x;
}

template <class T> __device__ inline T gp_block_sum(T x)
{
    return gp_block_join(x, gp_add());
}

#endif
