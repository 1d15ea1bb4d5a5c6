/* What an emitted program needs besides its kernels: the state of a run on the device, and copies
 * between files and the device. */
#ifndef GP_MODEL_CUH
#define GP_MODEL_CUH

#include "base.cuh"
#include "state.h"

#include "../c/file_load.h"
#include "../c/file_save.h"
#include "../c/schedule.h"

/* The error string of a failed call: of CUDA, or if negative of cuBLAS. */
GP_HOST const char *gp_why(int why)
{
    return why < 0 ? cublasGetStatusString((cublasStatus_t)-why)
                   : cudaGetErrorString((cudaError_t)why);
}

/* Makes a model's device current, and restores the caller's at the end of the function. */
struct gp_on_device {
    int device, before, why;

    explicit gp_on_device(int device_)
        : device(device_), before(device_), why((int)cudaGetDevice(&before))
    {
        if (why == 0 && before != device)
            why = (int)cudaSetDevice(device);
    }
    ~gp_on_device()
    {
        if (before != device)
            (void)cudaSetDevice(before);
    }
};

/* Whether a call failed because of what ran on the device before it: the context is unusable then.
 * A stream that is being captured must not be queried. */
GP_HOST int gp_is_broken(cudaStream_t stream)
{
    cudaStreamCaptureStatus now = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing(stream, &now) == cudaSuccess && now != cudaStreamCaptureStatusNone)
        return 0;
    const cudaError_t error = cudaStreamQuery(stream);
    return error != cudaSuccess && error != cudaErrorNotReady;
}

/* A cluster of elementwise ops over `count` elements, in the function that is called for it. */
#define GP_LAUNCH_EACH(call_run, kernel, count, ...)                         \
    do {                                                                     \
        gp_call gp_each = {};                                                \
        gp_each.run = call_run;                                              \
        GP_LAUNCH(&gp_each, kernel, gp_blocks(count, GP_BLOCK), GP_BLOCK, 0, \
                  gp_device_of(&gp_each)->run, __VA_ARGS__);                 \
    } while (0)

/* ---- The state of a run --------------------------------------------------------------------- */

static __global__ GP_UNUSED void gp_state_set(gp_state *to, gp_state from, int anew)
{
    const int32_t error = anew ? 0 : to->error;
    *to = from;
    to->error = error;
}

/* The micro-batches of a rank stand one after the other among those of all. */
static __global__ GP_UNUSED void gp_state_begin(gp_state *s, int32_t micros, int32_t rank,
                                                int32_t ranks)
{
    const int32_t own = micros > 0 ? micros : 1;
    s->run.micro = 0;
    s->run.micros = ranks > 1 ? own : micros;
    s->run.part = rank * own;
    s->run.parts = ranks * own;
    s->run.lr = s->lr * gp_schedule(s->schedule, s->warmup, s->steps, s->share, s->run.step);
    s->sum = 0;
}

static __global__ GP_UNUSED void gp_state_next(gp_state *s)
{
    s->run.micro++;
    s->run.part++;
}

/* After a micro-batch: adds its partial mean. */
static __global__ GP_UNUSED void gp_state_loss(gp_state *s, const gp_real *loss)
{
    s->sum += (double)*loss;
    s->run.micro++;
    s->run.part++;
}

static __global__ GP_UNUSED void gp_state_end(gp_state *s)
{
    s->run.step++;
}

/* A hash of the bytes that is not 0. */
GP_HOST uint64_t gp_hash(const void *data, size_t bytes)
{
    const uint64_t hash = gp_hash_bytes(GP_HASH_START, data, bytes);
    return hash ? hash : 1;
}

/* -DGPLAN_CHECK_NAN: rows of `count` numbers, `stride` apart. */
static __global__ GP_UNUSED void gp_find_nan(int32_t *found, const gp_real *x, int64_t rows,
                                             int64_t count, int64_t stride)
{
    for (GP_EACH(i, rows * count)) {
        const gp_real number = x[i / count * stride + i % count];
        if (number != number)
            atomicMax(found, 1);
    }
}

/* ---- Files ---------------------------------------------------------------------------------- */

enum { GP_PIECE = 1 << 16 }; /* bytes of the host buffer that copies go through */

/* A copy in order on the model's stream, complete on return. The default stream will not do: the
 * model's stream may be non-blocking, and cudaMemcpy from pageable memory may return before the
 * transfer to the device is complete. */
GP_HOST cudaError_t gp_copy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            void *stream)
{
    const cudaError_t error = cudaMemcpyAsync(to, from, bytes, kind, (cudaStream_t)stream);
    return error != cudaSuccess ? error : cudaStreamSynchronize((cudaStream_t)stream);
}

GP_HOST int gp_write_part(int file, const gp_item *t, size_t from, size_t bytes)
{
    unsigned char piece[GP_PIECE];
    const unsigned char *at = (const unsigned char *)t->data + from;
    for (size_t left = bytes, n; left > 0; at += n, left -= n) {
        n = left < sizeof piece ? left : sizeof piece;
        if (gp_copy(piece, at, n, cudaMemcpyDeviceToHost, t->stream) != cudaSuccess) {
            errno = EIO;
            return 0;
        }
        if (!gp_write_all(file, piece, n))
            return 0;
    }
    return 1;
}

GP_HOST int gp_read_part(int file, const gp_item *t, size_t to, size_t bytes, uint64_t offset)
{
    unsigned char piece[GP_PIECE];
    unsigned char *at = (unsigned char *)t->data + to;
    for (size_t left = bytes, n; left > 0; at += n, offset += n, left -= n) {
        n = left < sizeof piece ? left : sizeof piece;
        if (!gp_read_at(file, piece, n, offset) ||
            gp_copy(at, piece, n, cudaMemcpyHostToDevice, t->stream) != cudaSuccess)
            return 0;
    }
    return 1;
}

#endif
