/* The emulator itself: each mistake that a kernel can make and a GPU might forgive is seen. */
#include "runtime/cuda/base.cuh"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const ORDERS[] = {"ascending", "descending", "shuffled"};
enum { THREADS = 96, BLOCKS = 5 };

#define LAUNCH(kernel, blocks, ...) \
    cuda_on_cpu_launch(#kernel, blocks, THREADS, 0, (cudaStream_t)NULL, kernel, __VA_ARGS__)

static float *device_floats(size_t count)
{
    float *at = NULL;
    cr_assert_eq(cudaMalloc(&at, count * sizeof *at), cudaSuccess);
    return at;
}

/* ---- Barriers ------------------------------------------------------------------------------- */

static int turn_line; /* where the barrier below stands */

static __global__ void turn(float *to)
{
    GP_SHARED(float, tile, [THREADS]);
    tile[threadIdx.x] = (float)(blockIdx.x * 1000 + threadIdx.x);
    turn_line = __LINE__ + 1;
    __syncthreads();
    to[blockIdx.x * THREADS + threadIdx.x] = tile[THREADS - 1 - threadIdx.x];
}

/* How many elements are wrong in each of the orders. */
static void turn_in_all_orders(int wrong[3])
{
    float *to = device_floats(BLOCKS * THREADS);
    for (int i = 0; i < 3; i++) {
        setenv("CUDA_ON_CPU_ORDER", ORDERS[i], 1);
        LAUNCH(turn, BLOCKS, to);
        cr_assert_eq(cudaDeviceSynchronize(), cudaSuccess);
        wrong[i] = 0;
        for (int k = 0; k < BLOCKS * THREADS; k++)
            wrong[i] += to[k] != (float)(k / THREADS * 1000 + THREADS - 1 - k % THREADS);
    }
    cudaFree(to);
}

Test(emulator, runs_threads_together_in_three_orders)
{
    int wrong[3];
    turn_in_all_orders(wrong);
    cr_expect(wrong[0] == 0 && wrong[1] == 0 && wrong[2] == 0);
}

Test(emulator, shows_that_a_barrier_is_missing)
{
    int wrong[3];
    float *to = device_floats(THREADS);
    char place[64];
    if (fork() == 0) { /* learns the line, without reading the environment in this process */
        LAUNCH(turn, 1, to);
        _exit(cudaDeviceSynchronize() == cudaSuccess && turn_line < 255 ? turn_line : 255);
    }
    int status = 0;
    wait(&status);
    snprintf(place, sizeof place, "emulator_test.cpp:%d", WEXITSTATUS(status));
    setenv("CUDA_ON_CPU_SKIP", place, 1);
    turn_in_all_orders(wrong);
    cr_expect(wrong[0] > 0 && wrong[1] > 0 && wrong[2] > 0);
    cudaFree(to);
}

static __global__ void some_leave(float *to)
{
    if (threadIdx.x == 70)
        return;
    __syncthreads();
    to[threadIdx.x] = 1;
}

static __global__ void some_wait(float *to)
{
    if (threadIdx.x < 32)
        __syncthreads();
    to[threadIdx.x] = 1;
}

static __global__ void some_wait_elsewhere(float *to)
{
    if (threadIdx.x < 32)
        __syncthreads();
    else
        __syncthreads();
    to[threadIdx.x] = 1;
}

static __global__ void lanes_leave(float *to)
{
    float x = 1;
    if (threadIdx.x % 32 != 7)
        x = __shfl_xor_sync(0xffffffffu, x, 1);
    to[threadIdx.x] = x;
}

static __global__ void lane_outside(float *to)
{
    to[threadIdx.x] = __shfl_sync(0xfffffffeu, 1.0f, 1);
}

static __global__ void writes_beside(float *to)
{
    GP_SHARED(float, tile, [THREADS]);
    float *at = tile; /* an address: a compiler could count the elements of the array itself */
    at[threadIdx.x + 1] = 1;
    __syncthreads();
    to[threadIdx.x] = at[threadIdx.x + 1];
}

static void expect_fault(void (*kernel)(float *), const char *name, const char *text)
{
    for (int i = 0; i < 3; i++) {
        fflush(NULL);
        if (fork() == 0) {
            float *to = device_floats(THREADS);
            setenv("CUDA_ON_CPU_ORDER", ORDERS[i], 1);
            if (!freopen("/dev/null", "w", stderr))
                _exit(1);
            cuda_on_cpu_launch(name, 1, THREADS, 0, (cudaStream_t)NULL, kernel, to);
            const bool refused = cudaDeviceSynchronize() == cudaErrorLaunchFailure &&
                                 cudaGetLastError() == cudaErrorLaunchFailure;
            const char *fault = cuda_on_cpu_fault();
            _exit(refused && fault && strstr(fault, name) && strstr(fault, text) ? 0 : 1);
        }
        int status = 1;
        wait(&status);
        cr_expect(status == 0, "%s, %s: no word of '%s'", name, ORDERS[i], text);
    }
}

Test(emulator, reports_a_barrier_that_not_all_threads_reach)
{
    expect_fault(some_leave, "some_leave", "95 threads wait at the barrier");
    expect_fault(some_wait, "some_wait", "32 threads wait at the barrier");
    expect_fault(some_wait_elsewhere, "some_wait_elsewhere", "wait at the barriers");
}

Test(emulator, reports_a_shuffle_that_not_all_lanes_reach)
{
    expect_fault(lanes_leave, "lanes_leave", "some do not come");
    expect_fault(lane_outside, "lane_outside", "not in its own mask");
}

Test(emulator, reports_what_is_written_outside_a_shared_array)
{
    expect_fault(writes_beside, "writes_beside", "outside the shared array tile");
}

/* ---- Memory that nobody wrote, and memory that nobody may write ------------------------------ */

static __global__ void reads_unwritten(float *to)
{
    GP_SHARED(float, tile, [THREADS]);
    to[blockIdx.x * THREADS + threadIdx.x] = tile[threadIdx.x];
    tile[threadIdx.x] = 1; /* the next block must not see it */
}

Test(emulator, poisons_shared_memory_before_each_block)
{
    float *to = device_floats(BLOCKS * THREADS);
    cr_expect(to[0] != to[0] && to[BLOCKS * THREADS - 1] != to[BLOCKS * THREADS - 1]);
    cudaMemset(to, 0, BLOCKS * THREADS * sizeof *to);
    LAUNCH(reads_unwritten, BLOCKS, to);
    cr_assert_eq(cudaDeviceSynchronize(), cudaSuccess);
    for (int i = 0; i < BLOCKS * THREADS; i++)
        cr_assert(to[i] != to[i]);
    cudaFree(to);
}

static __global__ void writes_at(float *to, int64_t at)
{
    if (threadIdx.x == 0)
        to[at] = 1;
}

static bool dies_writing_at(int64_t at)
{
    fflush(NULL);
    if (fork() == 0) {
        float *to = device_floats(1024); /* whole pages, so that the guards lie right beside */
        if (!freopen("/dev/null", "w", stderr))
            _exit(0);
        LAUNCH(writes_at, 1, to, at);
        _exit(cudaDeviceSynchronize() == cudaSuccess && to[at] == 1 ? 0 : 1);
    }
    int status = 0;
    wait(&status);
    return status != 0;
}

Test(emulator, faults_where_device_memory_ends)
{
    cr_expect(!dies_writing_at(0));
    cr_expect(!dies_writing_at(1023));
    cr_expect(dies_writing_at(-1));
    cr_expect(dies_writing_at(1024));
}

/* ---- Launches ------------------------------------------------------------------------------- */

static __global__ void add_one(float *to)
{
    if (threadIdx.x == 0 && blockIdx.x == 0)
        *to += 1;
}

Test(emulator, runs_late)
{
    float *to = device_floats(1);
    *to = 0;
    LAUNCH(add_one, 1, to);
    cr_expect(*to == 0, "ran before anyone waited");
    cudaDeviceSynchronize();
    cr_expect(*to == 1);
    cudaFree(to);
}

static cudaError_t try_launch(dim3 grid, dim3 block, size_t shared)
{
    static float to;
    cuda_on_cpu_launch("add_one", grid, block, shared, (cudaStream_t)NULL, add_one, &to);
    return cudaGetLastError();
}

Test(emulator, refuses_grids_that_no_gpu_starts)
{
    cr_expect_eq(try_launch(1, 1024, 48 * 1024), cudaSuccess);
    cr_expect_eq(try_launch(0, 32, 0), cudaErrorInvalidConfiguration);
    cr_expect_eq(try_launch(1, 1056, 0), cudaErrorInvalidConfiguration);
    cr_expect_eq(try_launch(dim3(1, 65536), 32, 0), cudaErrorInvalidConfiguration);
    cr_expect_eq(try_launch(0x80000000u, 32, 0), cudaErrorInvalidConfiguration);
    cr_expect_eq(try_launch(1, 32, 48 * 1024 + 1), cudaErrorInvalidConfiguration);
    cudaFuncSetAttribute(add_one, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 * 1024);
    cr_expect_eq(try_launch(1, 32, 64 * 1024), cudaSuccess);
}

Test(emulator, replays_what_was_captured)
{
    float *to = device_floats(1);
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStreamCreate(&stream);
    *to = 0;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    cuda_on_cpu_launch("add_one", 3, THREADS, 0, stream, add_one, to);
    cr_expect_eq(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    cudaStreamSynchronize(stream);
    cr_expect(*to == 0, "ran while it was captured");
    cr_assert_eq(cudaGraphInstantiate(&exec, graph), cudaSuccess);
    for (int i = 0; i < 3; i++)
        cudaGraphLaunch(exec, stream);
    cudaStreamSynchronize(stream);
    cr_expect(*to == 3);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    cr_expect_eq(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
    cudaGraph_t spoiled;
    cr_expect_eq(cudaStreamEndCapture(stream, &spoiled), cudaErrorStreamCaptureUnsupported);
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
    cudaFree(to);
}

/* A stream that waits for one that is captured is captured too, until the first waits for it. */
Test(emulator, captures_streams_that_events_join)
{
    float *x = device_floats(3), host[3];
    cudaStream_t first, second;
    cudaEvent_t fork, join;
    cudaGraph_t graph, loose;
    cudaGraphExec_t exec;
    cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
    cudaEventCreate(&fork);
    cudaEventCreate(&join);
    cudaMemsetAsync(x, 0, 12, first);
    cudaStreamSynchronize(first);
    cudaStreamBeginCapture(first, cudaStreamCaptureModeRelaxed);
    cudaMemsetAsync(x, 1, 4, first);
    cudaEventRecord(fork, first);
    cudaStreamWaitEvent(second, fork);
    cudaMemcpyAsync(x + 1, x, 4, cudaMemcpyDeviceToDevice, second);
    cudaEventRecord(join, second);
    cudaStreamWaitEvent(first, join);
    cudaMemcpyAsync(x + 2, x + 1, 4, cudaMemcpyDeviceToDevice, first);
    cr_assert_eq(cudaStreamEndCapture(first, &graph), cudaSuccess);
    cr_assert_eq(cudaGraphInstantiate(&exec, graph), cudaSuccess);
    cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);
    cr_expect_eq(host[0], 0); /* captured, not run */
    cudaGraphLaunch(exec, first);
    cudaMemcpyAsync(host, x, sizeof host, cudaMemcpyDeviceToHost, first);
    cudaStreamSynchronize(first);
    cr_expect(host[0] > 0 && host[1] == host[0] && host[2] == host[0]);
    cudaStreamBeginCapture(first, cudaStreamCaptureModeRelaxed);
    cudaEventRecord(fork, first);
    cudaStreamWaitEvent(second, fork);
    cudaMemsetAsync(x, 1, 4, second); /* nobody waits for it */
    cr_expect_eq(cudaStreamEndCapture(first, &loose), cudaErrorStreamCaptureUnsupported);
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
}

/* ---- Streams -------------------------------------------------------------------------------- */

static cudaStream_t stream_new(unsigned flags)
{
    cudaStream_t stream = NULL;
    cr_assert_eq(cudaStreamCreateWithFlags(&stream, flags), cudaSuccess);
    return stream;
}

static void add_one_on(cudaStream_t stream, float *to)
{
    cr_assert_eq(cuda_on_cpu_launch("add_one", 1, 32, 0, stream, add_one, to), cudaSuccess);
}

Test(emulator, waits_for_one_stream_and_no_other)
{
    float *to = device_floats(2);
    const cudaStream_t one = stream_new(cudaStreamNonBlocking), two = stream_new(cudaStreamDefault);
    to[0] = to[1] = 0;
    add_one_on(one, &to[0]);
    add_one_on(two, &to[1]);
    cr_assert_eq(cudaStreamSynchronize(two), cudaSuccess);
    cr_expect(to[0] == 0 && to[1] == 1);
    cr_assert_eq(cudaStreamSynchronize(one), cudaSuccess);
    cr_expect(to[0] == 1);
    cudaStreamDestroy(one);
    cudaStreamDestroy(two);
    cudaFree(to);
}

static __global__ void copy_one(float *to, const float *from)
{
    if (threadIdx.x == 0)
        *to = *from;
}

/* to[1] is what a stream sees of to[0], which was 0 before the default stream added 1; to[3] is
 * what the default stream sees of to[2], which was 0 before the other stream added 1. */
static void see_each_other(unsigned flags, float *to)
{
    const cudaStream_t stream = stream_new(flags);
    memset(to, 0, 4 * sizeof *to);
    add_one_on(stream, &to[2]);
    cuda_on_cpu_launch("copy_one", 1, 32, 0, (cudaStream_t)NULL, copy_one, &to[3], &to[2]);
    cudaStreamSynchronize(NULL);
    add_one_on(NULL, &to[0]);
    cuda_on_cpu_launch("copy_one", 1, 32, 0, stream, copy_one, &to[1], &to[0]);
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
    cudaDeviceSynchronize();
}

Test(emulator, orders_the_default_stream_with_blocking_streams_alone)
{
    float *to = device_floats(4);
    see_each_other(cudaStreamDefault, to);
    cr_expect(to[1] == 1 && to[3] == 1);
    see_each_other(cudaStreamNonBlocking, to);
    cr_expect(to[1] == 0 && to[3] == 0);
    cudaFree(to);
}

Test(emulator, orders_streams_by_events)
{
    float *to = device_floats(2);
    const cudaStream_t one = stream_new(cudaStreamNonBlocking),
                       two = stream_new(cudaStreamNonBlocking);
    cudaEvent_t event;
    cr_assert_eq(cudaEventCreate(&event), cudaSuccess);
    to[0] = 0;
    add_one_on(one, to);
    cr_assert_eq(cudaEventRecord(event, one), cudaSuccess);
    add_one_on(one, to); /* nobody waits for this one */
    cr_assert_eq(cudaStreamWaitEvent(two, event), cudaSuccess);
    cuda_on_cpu_launch("copy_one", 1, 32, 0, two, copy_one, &to[1], &to[0]);
    cr_assert_eq(cudaStreamSynchronize(two), cudaSuccess);
    cr_expect(to[0] == 1 && to[1] == 1);
    cr_assert_eq(cudaEventSynchronize(event), cudaSuccess);
    cr_expect(to[0] == 1);
    cudaStreamDestroy(one);
    cudaStreamDestroy(two);
    cr_expect(to[0] == 2);
    cudaEventDestroy(event);
    cudaFree(to);
}

Test(emulator, copies_from_memory_that_is_not_pinned_after_the_call)
{
    float *to = device_floats(1), *pinned = NULL, host = 5;
    *to = 0;
    cudaMemcpy(to, &host, sizeof host, cudaMemcpyHostToDevice);
    host = 6; /* it was taken */
    cr_expect(*to == 0, "it is on its way");
    cudaStreamSynchronize(NULL);
    cr_expect(*to == 5);
    cr_assert_eq(cudaMallocHost(&pinned, sizeof *pinned), cudaSuccess);
    *pinned = 7;
    cudaMemcpy(to, pinned, sizeof *pinned, cudaMemcpyHostToDevice);
    cr_expect(*to == 7);
    *to = 8;
    cudaMemcpy(&host, to, sizeof host, cudaMemcpyDeviceToHost);
    cr_expect(host == 8);
    cudaMemcpyAsync(to, &host, sizeof host, cudaMemcpyHostToDevice, NULL);
    host = 9; /* too early */
    cudaStreamSynchronize(NULL);
    cr_expect(*to == 9);
    cudaFreeHost(pinned);
    cudaFree(to);
}

/* Of two streams that add up in turns of their own, every order is seen by somebody. */
Test(emulator, does_work_sooner_in_shuffled_streams)
{
    int sooner = 0, later = 0;
    float *to = device_floats(1);
    const cudaStream_t stream = stream_new(cudaStreamNonBlocking);
    setenv("CUDA_ON_CPU_STREAMS", "shuffled", 1);
    for (int i = 0; i < 40; i++) {
        *to = 0;
        add_one_on(stream, to);
        *(*to == 1 ? &sooner : &later) += 1;
        cudaStreamSynchronize(stream);
        cr_assert(*to == 1);
    }
    cr_expect(sooner > 0 && later > 0, "%d sooner, %d later", sooner, later);
    cudaStreamDestroy(stream);
    cudaFree(to);
}

/* ---- Devices -------------------------------------------------------------------------------- */

Test(emulator, keeps_devices_apart)
{
    float *to = device_floats(1);
    const cudaStream_t stream = stream_new(cudaStreamDefault);
    cudaPointerAttributes where;
    *to = 0;
    cr_assert_eq(cudaSetDevice(1), cudaSuccess);
    cr_expect_eq(cuda_on_cpu_launch("add_one", 1, 32, 0, stream, add_one, to),
                 cudaErrorInvalidResourceHandle);
    cr_expect_eq(cudaGetLastError(), cudaErrorInvalidResourceHandle);
    cr_expect_eq(cudaMemsetAsync(to, 0, sizeof *to, stream), cudaSuccess, "copies go anywhere");
    cr_expect(cudaPointerGetAttributes(&where, to) == cudaSuccess && where.device == 0);
    cr_assert_eq(cudaSetDevice(2), cudaErrorInvalidDevice);
    int current = -1;
    cr_expect(cudaGetDevice(&current) == cudaSuccess && current == 1);
    fflush(NULL);
    if (fork() == 0) { /* a kernel of device 1 in memory of device 0 */
        if (!freopen("/dev/null", "w", stderr))
            _exit(0);
        add_one_on(NULL, to);
        _exit(cudaDeviceSynchronize() == cudaSuccess ? 0 : 1);
    }
    int status = 0;
    wait(&status);
    cr_expect(status != 0, "it did not fault");
    cudaSetDevice(0);
    add_one_on(stream, to);
    cr_expect(cudaStreamSynchronize(stream) == cudaSuccess && *to == 1);
    cudaStreamDestroy(stream);
    cudaFree(to);
}

/* ---- Products of 16 bits -------------------------------------------------------------------- */

enum { PATTERNS = 1 << 16 };

/* Each pattern times `by`, a product of its own, into f32 and into the type of the factors. */
static void multiply_all(int dtype, uint16_t by, float *wide, uint16_t *narrow)
{
    const cudaDataType_t type = dtype == GP_BF16 ? CUDA_R_16BF : CUDA_R_16F;
    const float one = 1, zero = 0;
    uint16_t *a, *b, *to;
    float *sum = device_floats(PATTERNS);
    cublasHandle_t blas;
    cr_assert_eq(cublasCreate(&blas), CUBLAS_STATUS_SUCCESS);
    cr_assert_eq(cublasSetMathMode(blas, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION),
                 CUBLAS_STATUS_SUCCESS);
    for (uint16_t **at : {&a, &b, &to})
        cr_assert_eq(cudaMalloc(at, PATTERNS * sizeof **at), cudaSuccess);
    for (int i = 0; i < PATTERNS; i++) {
        a[i] = (uint16_t)i;
        b[i] = by;
    }
    const auto multiply = [&](void *c, cudaDataType_t c_type) {
        cr_assert_eq(cublasGemmStridedBatchedEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, a,
                                                type, 1, 1, b, type, 1, 1, &zero, c, c_type, 1, 1,
                                                PATTERNS, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                     CUBLAS_STATUS_SUCCESS);
    };
    multiply(sum, CUDA_R_32F);
    multiply(to, type);
    cr_assert_eq(cudaDeviceSynchronize(), cudaSuccess);
    memcpy(wide, sum, PATTERNS * sizeof *wide);
    memcpy(narrow, to, PATTERNS * sizeof *narrow);
    for (void *at : {(void *)a, (void *)b, (void *)to, (void *)sum})
        cudaFree(at);
    cublasDestroy(blas);
}

static float value_of(int dtype, uint16_t bits)
{
    return dtype == GP_BF16 ? gp_from_bf16(bits) : gp_from_f16(bits);
}

/* The kernels' conversions and the emulator's were written apart. */
Test(emulator, multiplies_16_bits_as_the_kernels_read_and_round_them)
{
    static float wide[PATTERNS];
    static uint16_t narrow[PATTERNS];
    for (int dtype : {GP_F16, GP_BF16})
        for (float factor : {1.0f, -0.7f, 3.0e-3f, 500.0f}) {
            const uint16_t by = dtype == GP_BF16 ? gp_bf16(factor) : gp_f16(factor);
            int wrong = 0;
            multiply_all(dtype, by, wide, narrow);
            for (int i = 0; i < PATTERNS; i++) {
                float want = 0; /* sums begin with it: -0 is none */
                want += value_of(dtype, (uint16_t)i) * value_of(dtype, by);
                const float rounded = gp_round_to(want, dtype), got = value_of(dtype, narrow[i]);
                wrong += memcmp(&wide[i], &want, sizeof want) != 0 && want == want;
                wrong += memcmp(&got, &rounded, sizeof got) != 0 && want == want;
                wrong += want != want && (wide[i] == wide[i] || got == got);
            }
            cr_expect_eq(wrong, 0, "%d of dtype %d times %g", wrong, dtype, (double)factor);
        }
}
