/* The model MODEL_NAME, compiled by gplan from MODEL_SOURCE. Its API is in MODEL_HEADER_NAME.
 *
 * Compile with nvcc -O3 -arch=native, and link with MODEL_LIBRARIES. -DGPLAN_PROFILE adds a time per op,
 * -DGPLAN_CHECK_NAN stops at the first op that makes a NaN (both wait for the device after each
 * op), -DGPLAN_POISON fills dead buffers with NaN.
 *
 * The arena has MODEL_ARENA_COUNT bytes, MODEL_PERSISTENT of them for parameters, state and inputs.
 * MODEL_LARGEST
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include MODEL_HEADER

#if MODEL_RANKS
#define GP_RANKS
#if MODEL_SHARDS
#define GP_SHARDS
#endif
#ifdef GPLAN_MPI
#include <mpi.h>
#endif
#include <time.h>
#endif
MODEL_INCLUDES

/* A kernel that is here came with those of its kind. */
#ifdef __NVCC__
#pragma nv_diag_suppress 177
#endif

#include "runtime/c/types.h"
MODEL_TYPES

static_assert(sizeof(gp_real) == 4, "the arena was planned for floats");

/* ---- The program ---- */

/* Where operands are in memory: pointers to whatever a function takes. */
struct place {
    void *at;
    template <class T> operator T *() const
    {
        return (T *)at;
    }
};
#define PLACE(address) (place{address})
#define AT(name) PLACE(AT_##name)
#define ROW(name) PLACE(m->arena + row->name)
/* Runs an op; returns from the function where it failed. */
#define OP(number, call)                                     \
    do {                                                     \
        op_begin(run, number);                               \
        if ((code = op_end(m, run, number, call)) != NET_OK) \
            return code;                                     \
    } while (0)
static void op_begin(const gp_run *run, int op);
static int op_end(net *m, const gp_run *run, int op, int code);

#if MODEL_LOOPS_TENSORS
/* Row i of the table of tensors. */
#define TENSOR(i) PLACE(data(m, i))
static void *data(const net *m, size_t i);

#endif
MODEL_FUNCTIONS_DECLARED

MODEL_PROGRAM

/* ---- Kernels ---- */

#include "runtime/cuda/model.cuh"
#if MODEL_HAS_PARAMS
#include "runtime/c/init.h"
#endif
#if MODEL_HAS_LOSS_SCALE
#include "runtime/c/scale.h"
#endif
#if MODEL_HAS_DATA
#include "runtime/c/data_ring.h"
#endif
#if MODEL_RANKS
#include "runtime/cuda/ranks.cuh"
#include "runtime/c/file_meet.h"
#endif
#if MODEL_SHARDS
#include "runtime/c/file_shards.h"
#endif
MODEL_KERNELS

/* ---- Ops: kernels with the shapes of this model, and loops over elements ---- */

MODEL_FUNCTIONS

/* ---- Tables ---- */

#include "tables.c"

/* ---- Calls of CUDA ---- */

#if MODEL_RANKS
static int give_up(net *m, int code);
static int rank_failed(net *m);
#endif
#include "errors.c"

#define STREAM ((cudaStream_t)m->stream)
/* Graphs of a step: where it reads data one for each micro-batch, else one for all. */
enum { STEP_PARTS = MODEL_STEP_PARTS };
/* What is kept of a run on the device. */
#define STATE ((gp_state *)(void *)(m->arena + MODEL_STATE))

/* A call outside of an op. Where it was refused: why, and a code that has no op. */
static int checked(net *m, int why)
{
    if (why == 0)
        return NET_OK;
    snprintf(m->detail, sizeof m->detail, "%s", gp_why(why));
    return NET_EDEVICE | NET_OPS << 4;
}

/* The same, and returns from the function. */
#define CHECK(call)                                    \
    do {                                               \
        if ((code = checked(m, (int)(call))) != NET_OK) \
            return code;                               \
    } while (0)
/* The model's device is the current one until the function ends. */
#define HERE                            \
    const gp_on_device here(m->device); \
    CHECK(here.why)
/* A launch of one thread. */
#define START(kernel, ...) CHECK(GP_START(kernel, 1, 1, 0, STREAM, __VA_ARGS__))

#if MODEL_RANKS
#include "ranks.cu"
#else
static int await(net *m, cudaStream_t stream)
{
    return checked(m, cudaStreamSynchronize(stream));
}

#endif
#define WAIT \
    HERE;    \
    if ((code = await(m, STREAM)) != NET_OK) \
    return code

/* ---- After each op: checks and the progress function ---- */

#ifdef GPLAN_CHECK_NAN
/* What an op writes of floating point; slot: its index in external[], or -1; micro_stride:
 * from one micro-batch to the next, in bytes. */
static const struct {
    int op, slot;
    uint64_t offset, micro_stride;
    int64_t rows, count, stride; /* of rows, numbers in a row, from row to row */
} result[] = {
    MODEL_RESULTS
};
#if MODEL_BINDS
#define RESULT(i)                                                                           \
    ((result[i].slot < 0 ? m->arena : (unsigned char *)m->external[result[i].slot]) + \
     result[i].offset)
#else
#define RESULT(i) (m->arena + result[i].offset)
#endif

/* -1: the device refused to say. */
static int makes_nan(net *m, int op, int32_t micro)
{
    for (size_t i = FIND_OP(result, op); result[i].op == op; i++) {
        const gp_real *at =
            (const gp_real *)(void *)(RESULT(i) + (size_t)micro * result[i].micro_stride);
        const dim3 grid = gp_blocks(result[i].rows * result[i].count, GP_BLOCK);
        if (GP_START(gp_find_nan, grid, GP_BLOCK, 0, STREAM, &STATE->nan, at, result[i].rows,
                     result[i].count, result[i].stride) != cudaSuccess)
            return -1;
    }
    int32_t found = 0;
    if (cudaMemcpyAsync(&found, &STATE->nan, sizeof found, cudaMemcpyDeviceToHost, STREAM) !=
            cudaSuccess ||
        cudaMemsetAsync(&STATE->nan, 0, sizeof found, STREAM) != cudaSuccess ||
        cudaStreamSynchronize(STREAM) != cudaSuccess)
        return -1;
    return found;
}

#endif
/* Fills what is dead after an op; -1: what is free before the first. All bits set is a NaN, and an
 * index out of range. */
static void poison(net *m, int op)
{
#ifdef GPLAN_POISON
    for (size_t i = FIND_OP(death, op); death[i].op == op && death[i].bytes > 0; i++)
        (void)cudaMemsetAsync(m->arena + death[i].offset, 0xff, death[i].bytes, STREAM);
#else
    (void)m;
    (void)op;
#endif
}

#ifdef GPLAN_PROFILE
/* The time of an op on the device, between two events; op -1: from here on. */
static int clock_op(net *m, int op)
{
    int code;
    float took = 0;
    for (int i = 0; i < 2 && !m->mark[i]; i++) {
        cudaEvent_t event;
        CHECK(cudaEventCreate(&event));
        m->mark[i] = event;
    }
    void *const from = m->mark[0], *const to = m->mark[1];
    CHECK(cudaEventRecord((cudaEvent_t)to, STREAM));
    CHECK(cudaEventSynchronize((cudaEvent_t)to));
    if (op >= 0)
        CHECK(cudaEventElapsedTime(&took, (cudaEvent_t)from, (cudaEvent_t)to));
    if (op >= 0 && m->seconds)
        m->seconds[op] += 1e-3 * (double)took;
    m->mark[0] = to;
    m->mark[1] = from;
    return NET_OK;
}

#endif
static GP_UNUSED void op_begin(const gp_run *run, int op)
{
    ((gp_device *)run->device)->op = op;
}

static int device_failed(net *m, const gp_run *run, int op)
{
    const char *const why = gp_why(((const gp_device *)run->device)->why);
    const int broken = gp_is_broken(STREAM);
    snprintf(m->detail, sizeof m->detail,
             broken ? "the device failed before %s: %s" : "a call of CUDA failed in %s: %s",
             op_name[op], why);
#if MODEL_RANKS
    give_up(m, NET_EDEVICE);
#endif
    return NET_EDEVICE | (broken ? NET_OPS : op) << 4;
}

static GP_NOINLINE int op_end(net *m, const gp_run *run, int op, int code)
{
    if (code == GP_EDEVICE)
        return device_failed(m, run, op);
    if (code != GP_OK)
        return op_failed(m, op, code);
#ifdef GPLAN_CHECK_NAN
    const int found = makes_nan(m, op, run->micro);
    if (found)
        return op_failed(m, op, found < 0 ? NET_EDEVICE : NET_ENAN);
#endif
    poison(m, op);
#ifdef GPLAN_PROFILE
    if ((code = clock_op(m, op)) != NET_OK)
        return code;
#endif
#if MODEL_RANKS
    if (m->progress && m->progress(m->user, m->step, ++m->done, m->ops) != 0)
        return give_up(m, failed(m, NET_ECANCEL));
#else
    if (m->progress && m->progress(m->user, m->step, ++m->done, m->ops) != 0)
        return failed(m, NET_ECANCEL);
#endif
    return NET_OK;
}

#if MODEL_HAS_DATA
/* ---- Data ---- */

#include "data.c"

#endif
/* ---- Memory ---- */

static int initialize_model(net *m, void *arena, size_t bytes, void *stream)
{
    int code;
    cudaPointerAttributes where;
    memset(m, 0, sizeof *m);
    if (!arena || bytes < NET_ARENA_BYTES || (uintptr_t)arena % NET_ARENA_ALIGN) {
        snprintf(m->detail, sizeof m->detail, "the arena must have %llu bytes, aligned to %d",
                 NET_ARENA_BYTES, NET_ARENA_ALIGN);
        return NET_EARENA;
    }
    CHECK(cudaGetDevice(&m->device));
    CHECK(cudaPointerGetAttributes(&where, arena));
    if (where.type == cudaMemoryTypeDevice && where.device != m->device) {
        snprintf(m->detail, sizeof m->detail,
                 "the arena is on device %d, but device %d is the current one", where.device,
                 m->device);
        return NET_EARENA;
    }
    m->stream = stream;
#if MODEL_TRAINS
    m->lr = MODEL_LR;
#endif
#if MODEL_HAS_SCHEDULE
    net_schedule(m, MODEL_SCHEDULE);
#endif
#if MODEL_USES_BLAS
    cublasHandle_t blas;
    CHECK(-(int)cublasCreate(&blas));
    m->blas = blas;
    code = checked(m, -(int)cublasSetStream(blas, STREAM));
    if (code != NET_OK) {
        (void)cublasDestroy(blas);
        return code;
    }
#endif
    m->arena = (unsigned char *)arena;
    return NET_OK;
}

#if MODEL_RANKS
int net_init(net *m, void *arena, size_t bytes, void *stream, void *communicator)
{
    int code = initialize_model(m, arena, bytes, stream);
    if (code != NET_OK || (code = link_begin(m, communicator)) == NET_OK)
        return code;
    net_free(m);
    return code;
}

int net_create(net *m, void *stream, void *communicator)
#else
int net_init(net *m, void *arena, size_t bytes, void *stream)
{
    return initialize_model(m, arena, bytes, stream);
}

int net_create(net *m, void *stream)
#endif
{
    int code;
    void *arena = NULL;
    memset(m, 0, sizeof *m);
    CHECK(cudaMalloc(&arena, NET_ARENA_BYTES));
#if MODEL_RANKS
    code = net_init(m, arena, NET_ARENA_BYTES, stream, communicator);
#else
    code = net_init(m, arena, NET_ARENA_BYTES, stream);
#endif
    if (code == NET_OK)
        m->owned = arena;
    else
        (void)cudaFree(arena);
    return code;
}

void net_free(net *m)
{
    if (!m->arena)
        return;
    const gp_on_device here(m->device);
#if MODEL_HAS_DATA
    data_stop(m);
#endif
#if MODEL_RANKS
    link_end(m);
#endif
    (void)cudaStreamSynchronize(STREAM);
#if MODEL_HAS_DATA
    data_free(m);
#endif
    for (int i = 0; i < STEP_PARTS; i++)
        if (m->graph[i])
            (void)cudaGraphExecDestroy((cudaGraphExec_t)m->graph[i]);
    if (m->blas)
        (void)cublasDestroy((cublasHandle_t)m->blas);
    for (int i = 0; i < 2; i++)
        if (m->mark[i])
            (void)cudaEventDestroy((cudaEvent_t)m->mark[i]);
    if (m->owned)
        (void)cudaFree(m->owned);
    m->arena = NULL;
}

enum { RAN_FORWARD = 1, RAN_EVAL, RAN_STEP }; /* in m->ran */

MODEL_ACCESSORS

/* ---- Running it: what changes from step to step is in the state that kernels read ---- */

/* The state as the host would have it; bytes between the fields are 0. */
static gp_state state_of(const net *m)
{
    gp_state now;
    memset(&now, 0, sizeof now);
    now.run.seed = m->seed;
    now.run.step = m->step;
    now.run.threads = 1;
#if MODEL_TRAINS
    now.lr = m->lr;
    now.schedule = m->schedule;
    now.warmup = m->warmup;
    now.steps = m->steps;
    now.share = m->share;
#endif
#if MODEL_WEIGHS_SAMPLES
    now.run.batch = NET_BATCH;
    now.run.valid = m->valid;
#endif
    return now;
}

/* Tells the device what it does not know yet. */
static int tell(net *m)
{
    int code;
    m->detail[0] = 0;
#if MODEL_BINDS
    if (!is_bound(m))
        return NET_EBIND;
#endif
    const gp_state now = state_of(m);
    const uint64_t told = gp_hash(&now, sizeof now);
    if (told == m->told)
        return NET_OK;
    START(gp_state_set, STATE, now, m->told == 0);
    m->told = told;
    return NET_OK;
}

/* Waits; the loss, where it is asked for and nothing went wrong. */
static int finish(net *m, float *loss)
{
    int code;
    gp_state now;
    CHECK(cudaMemcpyAsync(&now, STATE, sizeof now, cudaMemcpyDeviceToHost, STREAM));
    if ((code = await(m, STREAM)) != NET_OK)
        return code;
#if MODEL_RANKS
    if (now.heard != 0)
        return heard(m, &now);
#endif
    if (now.error != 0) {
        m->ran = 0;
        CHECK(cudaMemsetAsync(&STATE->error, 0, sizeof now.error, STREAM));
        return op_failed(m, now.error - 1, NET_EINDEX);
    }
    if (loss)
        *loss = (float)now.sum;
    return NET_OK;
}

int net_sync(net *m)
{
    int code;
    m->detail[0] = 0;
    HERE;
    return m->told ? finish(m, NULL) : await(m, STREAM);
}

/* What kernels are called with on the host. */
static gp_device device_of(const net *m)
{
    gp_device device = {};
    device.stream = STREAM;
    device.blas = (cublasHandle_t)m->blas;
    device.run = &STATE->run;
    device.error = &STATE->error;
    device.power = STATE->power;
    return device;
}

/* What ops are called with; micros: 0 where there are no micro-batches. */
static gp_run run_of(gp_device *device, int micros)
{
    gp_run run = {};
    run.threads = 1;
    run.micros = micros;
    run.device = device;
    return run;
}

/* Puts the beginning of a run on the stream. */
static int run_begin(net *m, int ops, int micros)
{
    int code;
    m->done = 0;
    m->ops = ops;
#ifdef GPLAN_PROFILE
    if ((code = clock_op(m, -1)) != NET_OK)
        return code;
#endif
#if MODEL_RANKS
    if ((code = is_connected(m)) != NET_OK)
        return code;
    START(gp_state_begin, STATE, micros, m->rank, MODEL_RANKS_COUNT);
#else
    START(gp_state_begin, STATE, micros, 0, 1);
#endif
    poison(m, -1);
    return NET_OK;
}

#if MODEL_PREPARES
static int put_prepare(net *m)
{
    gp_device device = device_of(m);
    const gp_run run = run_of(&device, 0);
    int code = run_begin(m, MODEL_PREPARE_OPS, run.micros);
    if (code == NET_OK)
        code = prepare(m, &run);
    m->prepared = code == NET_OK;
    return code;
}

int net_prepare(net *m)
{
    int code;
    HERE;
    m->ran = 0;
    code = tell(m);
    return code == NET_OK ? put_prepare(m) : code;
}

#endif
#if MODEL_HAS_FORWARD
static int put_forward(net *m)
{
    int code;
    gp_device device = device_of(m);
    gp_run run = run_of(&device, MODEL_FORWARD_MICROS);
#if MODEL_PREPARES
    if (!m->prepared && (code = put_prepare(m)) != NET_OK)
        return code;
#endif
    if ((code = run_begin(m, MODEL_FORWARD_OPS, run.micros)) != NET_OK)
        return code;
#if MODEL_FORWARD_IS_SPLIT
    for (; run.micro < run.micros; run.micro++) {
#if MODEL_HAS_DATA
        if ((code = slot_take(m, NET_PREDICT)) != NET_OK)
            return code;
#endif
        if ((code = forward(m, &run)) != NET_OK)
            return code;
#if MODEL_HAS_DATA
        if ((code = slot_give(m, NET_PREDICT)) != NET_OK)
            return code;
#endif
        START(gp_state_next, STATE);
    }
    return NET_OK;
#else
#if MODEL_HAS_DATA
    if ((code = slot_take(m, NET_PREDICT)) != NET_OK || (code = forward(m, &run)) != NET_OK)
        return code;
    return slot_give(m, NET_PREDICT);
#else
    return forward(m, &run);
#endif
#endif
}

int net_forward(net *m)
{
    int code;
    HERE;
#if MODEL_HAS_DATA
    if ((code = batch_begin(m, NET_PREDICT)) != NET_OK)
        return code;
#endif
    code = tell(m);
    if (code == NET_OK)
        code = put_forward(m);
#if MODEL_HAS_DATA
    if (code == NET_OK)
        batch_end(m, NET_PREDICT);
#endif
    m->ran = code == NET_OK ? RAN_FORWARD : 0;
    return code;
}

#endif
#if MODEL_HAS_EVAL
static int put_eval(net *m)
{
    int code;
    gp_device device = device_of(m);
#if MODEL_RANKS
    gp_nccl link = link_of(m);
    device.ranks = &link;
    device.rank = m->rank;
#endif
    gp_run run = run_of(&device, MODEL_EVAL_MICROS);
    if ((code = run_begin(m, MODEL_EVAL_OPS, run.micros)) != NET_OK)
        return code;
#if MODEL_EVAL_IS_SPLIT
    for (; run.micro < run.micros; run.micro++) {
#if MODEL_HAS_DATA
        if ((code = slot_take(m, NET_EVAL)) != NET_OK)
            return code;
#endif
        if ((code = eval(m, &run)) != NET_OK)
            return code;
#if MODEL_HAS_DATA
        if ((code = slot_give(m, NET_EVAL)) != NET_OK)
            return code;
#endif
        START(gp_state_loss, STATE, (const gp_real *)AT(MODEL_EVAL_LOSS));
    }
#else
#if MODEL_HAS_DATA
    if ((code = slot_take(m, NET_EVAL)) != NET_OK)
        return code;
#endif
    if ((code = eval(m, &run)) != NET_OK)
        return code;
#if MODEL_HAS_DATA
    if ((code = slot_give(m, NET_EVAL)) != NET_OK)
        return code;
#endif
    START(gp_state_loss, STATE, (const gp_real *)AT(MODEL_EVAL_LOSS));
#endif
#if MODEL_RANKS
    return total_loss(m);
#else
    return NET_OK;
#endif
}

int net_eval(net *m, float *loss)
{
    int code;
    HERE;
#if MODEL_HAS_DATA
    if ((code = batch_begin(m, NET_EVAL)) != NET_OK)
        return code;
#endif
    code = tell(m);
    if (code == NET_OK)
        code = put_eval(m);
#if MODEL_HAS_DATA
    if (code == NET_OK)
        batch_end(m, NET_EVAL);
#endif
    m->ran = code == NET_OK ? RAN_EVAL : 0;
    return code != NET_OK || !loss ? code : finish(m, loss);
}

#endif
#if MODEL_TRAINS
/* Puts a part of the step on the stream, the last one with the update. */
static int put_step(net *m, int part)
{
    int code;
    gp_device device = device_of(m);
#if MODEL_RANKS
    gp_nccl link = link_of(m);
    device.ranks = &link;
    device.rank = m->rank;
#endif
    gp_run run = run_of(&device, MODEL_STEP_MICROS);
    if (part == 0 && (code = run_begin(m, MODEL_STEP_OPS, run.micros)) != NET_OK)
        return code;
#if MODEL_STEP_IS_SPLIT
    const int end = STEP_PARTS > 1 ? part + 1 : run.micros;
    for (run.micro = part; run.micro < end; run.micro++) {
        if ((code = step(m, &run)) != NET_OK)
            return code;
        START(gp_state_loss, STATE, (const gp_real *)AT(MODEL_STEP_LOSS));
    }
#else
    if ((code = step(m, &run)) != NET_OK)
        return code;
    START(gp_state_loss, STATE, (const gp_real *)AT(MODEL_STEP_LOSS));
#endif
    if (part < STEP_PARTS - 1)
        return NET_OK;
#if MODEL_HAS_UPDATE
    poison(m, -1);
    if ((code = update(m, &run)) != NET_OK)
        return code;
#endif
#if MODEL_RANKS
    if ((code = total_loss(m)) != NET_OK)
        return code;
#endif
    START(gp_state_end, STATE);
    return NET_OK;
}

/* The step, part by part: as it was captured, or not. */
static int run_step(net *m, int replays)
{
    int code;
    for (int part = 0; part < STEP_PARTS; part++) {
#if MODEL_HAS_DATA
        if ((code = slot_take(m, NET_TRAIN)) != NET_OK)
            return code;
#endif
        code = replays ? checked(m, cudaGraphLaunch((cudaGraphExec_t)m->graph[part], STREAM))
                       : put_step(m, part);
        if (code != NET_OK)
            return code;
#if MODEL_HAS_DATA
        if ((code = slot_give(m, NET_TRAIN)) != NET_OK)
            return code;
#endif
    }
    return NET_OK;
}

/* The device counts its steps as the host does. */
static int stepped(net *m, float *loss)
{
    m->step++;
#if MODEL_HAS_DATA
    batch_end(m, NET_TRAIN);
#endif
    m->ran = RAN_STEP;
    const gp_state now = state_of(m);
    m->told = gp_hash(&now, sizeof now);
    return loss ? finish(m, loss) : NET_OK;
}

int net_step(net *m, float *loss)
{
    int code;
    HERE;
#if MODEL_HAS_DATA
    if ((code = batch_begin(m, NET_TRAIN)) != NET_OK)
        return code;
#endif
    code = tell(m);
    if (code == NET_OK)
        code = run_step(m, 0);
    if (code != NET_OK)
        m->ran = 0;
    return code != NET_OK ? code : stepped(m, loss);
}

#if defined(GPLAN_PROFILE) || defined(GPLAN_CHECK_NAN)
/* Each op is watched, so there is no graph. */
int net_capture(net *m)
{
    int code;
    HERE;
    return tell(m);
}

int net_replay(net *m, float *loss)
{
    return net_step(m, loss);
}
#else
/* cuBLAS works where the model does. */
static int use_stream(net *m)
{
    if (!m->blas)
        return NET_OK;
    return checked(m, -(int)cublasSetStream((cublasHandle_t)m->blas, STREAM));
}

/* Puts a part of the step on a stream that captures it, where it does not run. */
static int capture_on(net *m, cudaStream_t stream, int part, cudaGraph_t *graph)
{
    int code;
    void *const kept = m->stream;
    int (*const progress)(void *, uint64_t, int, int) = m->progress;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    m->stream = stream;
    m->progress = NULL;
    code = use_stream(m);
    if (code == NET_OK)
        code = put_step(m, part);
    m->stream = kept;
    m->progress = progress;
    const int ended = checked(m, cudaStreamEndCapture(stream, graph));
    const int back = use_stream(m);
    return code != NET_OK ? code : ended != NET_OK ? ended : back;
}

static int capture_part(net *m, cudaStream_t stream, int part)
{
    int code;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t made;
    code = capture_on(m, stream, part, &graph);
    if (code == NET_OK)
        code = checked(m, cudaGraphInstantiate(&made, graph, 0));
    if (graph)
        (void)cudaGraphDestroy(graph);
    if (code != NET_OK)
        return code;
    if (m->graph[part])
        (void)cudaGraphExecDestroy((cudaGraphExec_t)m->graph[part]);
    m->graph[part] = made;
    return NET_OK;
}

int net_capture(net *m)
{
    int code;
    HERE;
    code = tell(m);
    if (code != NET_OK)
        return code;
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int part = 0; part < STEP_PARTS && code == NET_OK; part++)
        code = capture_part(m, stream, part);
    (void)cudaStreamDestroy(stream);
#if MODEL_BINDS
    if (code == NET_OK)
        m->bound = gp_hash(m->external, sizeof m->external); /* the graphs hold these pointers */
#endif
    return code;
}

int net_replay(net *m, float *loss)
{
    int code;
    HERE;
#if MODEL_HAS_DATA
    if ((code = batch_begin(m, NET_TRAIN)) != NET_OK)
        return code;
#endif
    int captured = m->graph[STEP_PARTS - 1] != NULL;
#if MODEL_BINDS
    captured = captured && m->bound == gp_hash(m->external, sizeof m->external);
#endif
    code = captured ? tell(m) : net_capture(m);
    if (code == NET_OK)
        code = run_step(m, 1);
    if (code != NET_OK)
        m->ran = 0;
    return code != NET_OK ? code : stepped(m, loss);
}
#endif

#endif
/* ---- Parameters and files ---- */

#if MODEL_HAS_PARAMS
/* Parameters and state from `first` on, as they are after a reset: made on the host, so that they
 * are those of the C program bit for bit, and copied in pieces. */
static int initialize(net *m, size_t first, uint64_t seed)
{
    int code;
    HERE;
    gp_run run = {};
    run.seed = seed;
    run.threads = 1;
    for (size_t i = first; i < SAVED_COUNT; i++) {
        const net_tensor *t = &tensor[SAVED + i];
        unsigned char piece[GP_PIECE], *to = (unsigned char *)data(m, SAVED + i);
        int64_t count = 1;
        for (int d = 0; d < t->rank; d++)
            count *= t->dim[d];
        const int64_t size = (int64_t)t->bytes / count, most = GP_PIECE / size;
        if (!to || init[i].kind == GP_INIT_FILE)
            continue;
        for (int64_t from = 0; from < count; from += most) {
            const int64_t n = count - from < most ? count - from : most;
            gp_initialize(&run, &init[i], t->name, piece, t->dtype, from, n);
            CHECK(gp_copy(to + from * size, piece, (size_t)(n * size), cudaMemcpyHostToDevice,
                          STREAM));
        }
    }
    return NET_OK;
}

#endif
int net_reset(net *m, uint64_t seed)
{
    m->detail[0] = 0;
#if MODEL_HAS_DATA
    data_stop(m); /* its order is the seed's */
#endif
    m->seed = seed;
    m->step = 0;
#if MODEL_PREPARES
    m->prepared = 0;
#endif
#if MODEL_HAS_PARAMS
    return initialize(m, 0, seed);
#else
    return NET_OK;
#endif
}

#include "files.c"

/* ---- Settings ---- */

#include "settings.c"
