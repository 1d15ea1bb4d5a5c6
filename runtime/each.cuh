/* What the adapters of the CUDA table are made of: a device for one call of a kernel, and a grid
 * over the expression of an elementwise row. Plain, for tests; emitted programs have better. */
#ifndef GPLAN_RUNTIME_EACH_CUH
#define GPLAN_RUNTIME_EACH_CUH

#include "runtime/cuda/base.cuh"
#include "runtime/each.h"

struct each_device {
    gp_device device;
    gp_run *run; /* in device memory */
};

/* Made once, for as long as the program runs. NULL where there is no device. */
GP_UNUSED static each_device *each_device_get()
{
    static each_device one;
    if (one.run)
        return &one;
    if (cublasCreate(&one.device.blas) != CUBLAS_STATUS_SUCCESS ||
        cudaMalloc(&one.device.error, sizeof *one.device.error) != cudaSuccess ||
        cudaMalloc(&one.device.power, 2 * sizeof *one.device.power) != cudaSuccess ||
        cudaMalloc(&one.run, sizeof *one.run) != cudaSuccess)
        return NULL;
    one.device.run = one.run;
    return &one;
}

/* Runs a kernel and waits for it: GP_OK, or what went wrong. */
template <class Kernel> static int each_call_kernel(gp_call *call, Kernel kernel)
{
    each_device *on = each_device_get();
    if (!on)
        return GP_EDEVICE;
    const gp_run *given = call->run;
    gp_run run = *given;
    run.device = &on->device;
    on->device.has_power = 0; /* each call is a run of its own */
    call->run = &run;
    int32_t error = 0;
    int code = GP_EDEVICE;
    if (cudaMemcpy(on->run, &run, sizeof run, cudaMemcpyHostToDevice) == cudaSuccess &&
        cudaMemset(on->device.error, 0, sizeof error) == cudaSuccess)
        code = kernel(call);
    call->run = given;
    if (cudaMemcpy(&error, on->device.error, sizeof error, cudaMemcpyDeviceToHost) != cudaSuccess)
        return GP_EDEVICE;
    return code == GP_OK && error ? GP_EINDEX : code;
}

enum { EACH_OPERANDS = 5 };

struct each_tensors {
    gp_tensor in[EACH_OPERANDS], out;
    int32_t ins;
    uint64_t key;
    int64_t count;
};

template <class T> __device__ T each_load(const gp_tensor *t, int64_t i)
{
    return (T)each_load_int(t, i);
}
template <> __device__ inline gp_real each_load<gp_real>(const gp_tensor *t, int64_t i)
{
    return each_load_real(t, i);
}
template <class T> __device__ void each_store(const gp_tensor *t, int64_t i, T x)
{
    each_store_int(t, i, x);
}
template <> __device__ inline void each_store<gp_real>(const gp_tensor *t, int64_t i, gp_real x)
{
    each_store_real(t, i, x);
}

template <class T, class Body>
static __global__ void each_loop(each_tensors t, Body body, const gp_run *run)
{
    for (GP_EACH(i, t.count)) {
        T operand[EACH_OPERANDS] = {};
        for (int k = 0; k < t.ins; k++)
            operand[k] = each_load<T>(&t.in[k], i);
        each_store<T>(
            &t.out, i,
            body(operand[0], operand[1], operand[2], operand[3], operand[4], t.key, run, i));
    }
}

static __global__ void each_cast_loop(each_tensors t)
{
    for (GP_EACH(i, t.count))
        each_cast(&t.in[0], &t.out, i);
}

/* Body is an expression of the operands; `whole`: of integers where all operands are; `real`: of
 * reals too; `stored`: for dtypes that are only stored, a cast. */
template <bool whole, bool real, bool stored, class Body>
static int each_launch(const gp_call *c, Body body)
{
    each_tensors t = {};
    t.ins = c->ins < EACH_OPERANDS ? c->ins : EACH_OPERANDS;
    for (int i = 0; i < t.ins; i++)
        t.in[i] = c->in[i];
    t.out = c->out[0];
    t.key = c->key;
    t.count = gp_count(&t.out);
    const gp_run *run = gp_device_of(c)->run;
    const unsigned block = gp_block_of(t.count);
    const dim3 grid = gp_blocks(t.count, block);
    if (stored && each_is_stored(c)) {
        GP_LAUNCH(c, each_cast_loop, grid, block, 0, t);
        return GP_OK;
    }
    if constexpr (whole) {
        if (each_type(c) == GP_I32) {
            GP_LAUNCH(c, (each_loop<int32_t, Body>), grid, block, 0, t, body, run);
            return GP_OK;
        }
        if (each_type(c) == GP_I64) {
            GP_LAUNCH(c, (each_loop<int64_t, Body>), grid, block, 0, t, body, run);
            return GP_OK;
        }
    }
    if constexpr (real)
        GP_LAUNCH(c, (each_loop<gp_real, Body>), grid, block, 0, t, body, run);
    return GP_OK;
}

#endif
