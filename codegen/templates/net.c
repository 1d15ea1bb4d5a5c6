/* The model MODEL_NAME, compiled by gplan from MODEL_SOURCE. Its API is in MODEL_HEADER_NAME.
 *
 * Compile with -O3 -march=native -fopenmp. -DGPLAN_PROFILE adds a time per op, -DGPLAN_CHECK_NAN
 * stops at the first op that makes a NaN, -DGPLAN_POISON fills dead buffers with NaN.
 *
 * The arena has MODEL_ARENA_COUNT bytes, MODEL_PERSISTENT of them for parameters, state and inputs.
 * MODEL_LARGEST
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include MODEL_HEADER

#ifdef GPLAN_PROFILE
#include <time.h>
#endif
MODEL_INCLUDES

#include "runtime/c/types.h"
MODEL_TYPES

_Static_assert(sizeof(gp_real) == 4, "the arena was planned for floats");

/* ---- The program ---- */

/* Where operands are in memory. */
#define PLACE(at) ((void *)(at))
#define AT(name) PLACE(AT_##name)
#define ROW(name) PLACE(m->arena + row->name)
/* Runs an op; returns from the function where it failed. */
#define OP(number, call)                                \
    do {                                                \
        if ((code = op_end(m, number, call)) != NET_OK) \
            return code;                                \
    } while (0)
static int op_end(net *m, int op, int code);

#if MODEL_LOOPS_TENSORS
/* Row i of the table of tensors. */
#define TENSOR(i) PLACE(data(m, i))
static void *data(const net *m, size_t i);

#endif
MODEL_FUNCTIONS_DECLARED

MODEL_PROGRAM

/* ---- Running it ---- */

enum { RAN_FORWARD = 1, RAN_EVAL, RAN_STEP }; /* in m->ran */
#if MODEL_RANKS

/* What sums over ranks keep. */
#define RANKS ((gp_ranks *)(void *)(m->arena + MODEL_RANKS_AT))
static int total_loss(net *m, double *loss);
#endif

MODEL_ACCESSORS

static void poison(net *m, int op);
#ifdef GPLAN_PROFILE
static double now(void);
#endif
#if MODEL_BINDS
static int is_bound(net *m);
#endif

#if MODEL_HAS_DATA
static int batch_begin(net *m, int which);
static void batch_end(net *m, int which);
static int slot_take(net *m, int which);
static void slot_give(net *m);
#endif

#if MODEL_RANKS || MODEL_AS_RANKS
/* The micro-batch's place among those of all ranks. */
static void find_part(gp_run *run, int rank)
{
    run->micros = run->micros ? run->micros : 1;
    run->parts = MODEL_RANKS_COUNT * run->micros;
    run->part = rank * run->micros + run->micro;
}

#endif
#if MODEL_AS_RANKS
/* After the first micro-batch of all ranks comes the second. */
static void find_rank(gp_run *run, int *rank)
{
    *rank = (*rank + 1) % MODEL_RANKS_COUNT;
    if (*rank > 0)
        run->micro--;
}

#endif
/* What holds for all ops of a run. */
static gp_run run_begin(net *m, int ops)
{
    const gp_run run = {.seed = m->seed, .step = m->step, .threads = m->threads};
    m->detail[0] = 0;
    m->ran = m->done = 0;
    m->ops = ops;
#ifdef GPLAN_PROFILE
    m->clock = now();
#endif
    poison(m, -1);
    return run;
}

#if MODEL_PREPARES
static int prepare_now(net *m, const gp_run *run)
{
    const int code = prepare(m, run);
    m->prepared = code == NET_OK;
    return code;
}

int net_prepare(net *m)
{
    const gp_run run = run_begin(m, MODEL_PREPARE_OPS);
#if MODEL_BINDS
    if (!is_bound(m))
        return NET_EBIND;
#endif
    return prepare_now(m, &run);
}

#endif
#if MODEL_HAS_FORWARD
int net_forward(net *m)
{
    int code;
    gp_run run = run_begin(m, MODEL_FORWARD_OPS);
#if MODEL_RANKS
    const int rank = net_rank(m);
    find_part(&run, rank);
#endif
#if MODEL_AS_RANKS
    int rank = 0;
#endif
#if MODEL_BINDS
    if (!is_bound(m))
        return NET_EBIND;
#endif
#if MODEL_PREPARES
    m->ops += m->prepared ? 0 : MODEL_PREPARE_OPS;
    if (!m->prepared && (code = prepare_now(m, &run)) != NET_OK)
        return code;
#endif
#if MODEL_HAS_DATA
    if ((code = batch_begin(m, NET_PREDICT)) != NET_OK)
        return code;
#endif
#if MODEL_FORWARD_IS_SPLIT
    for (run.micros = MODEL_FORWARD_MICROS; run.micro < run.micros; run.micro++) {
#if MODEL_RANKS || MODEL_AS_RANKS
        find_part(&run, rank);
#endif
#if MODEL_HAS_DATA
        if ((code = slot_take(m, NET_PREDICT)) != NET_OK)
            return code;
#endif
        if ((code = forward(m, &run)) != NET_OK)
            return code;
#if MODEL_HAS_DATA
        slot_give(m);
#endif
#if MODEL_AS_RANKS
        find_rank(&run, &rank);
#endif
    }
#else
#if MODEL_HAS_DATA
    if ((code = slot_take(m, NET_PREDICT)) != NET_OK)
        return code;
#endif
    if ((code = forward(m, &run)) != NET_OK)
        return code;
#if MODEL_HAS_DATA
    slot_give(m);
#endif
#endif
#if MODEL_HAS_DATA
    batch_end(m, NET_PREDICT);
#endif
    m->ran = RAN_FORWARD;
    return NET_OK;
}

#endif
#if MODEL_HAS_EVAL
int net_eval(net *m, float *loss)
{
    int code;
    gp_run run = run_begin(m, MODEL_EVAL_OPS);
#if MODEL_RANKS
    const int rank = net_rank(m);
    find_part(&run, rank);
#endif
#if MODEL_AS_RANKS
    int rank = 0;
#endif
#if MODEL_BINDS
    if (!is_bound(m))
        return NET_EBIND;
#endif
#if MODEL_HAS_DATA
    if ((code = batch_begin(m, NET_EVAL)) != NET_OK)
        return code;
#endif
#if MODEL_WEIGHS_SAMPLES
    run.batch = NET_BATCH;
    run.valid = m->valid;
#endif
#if MODEL_EVAL_IS_SPLIT
    double sum = 0; /* each micro-batch has its share of the mean */
#if MODEL_AS_RANKS
    double share[MODEL_RANKS_COUNT] = {0};
#endif
    for (run.micros = MODEL_EVAL_MICROS; run.micro < run.micros; run.micro++) {
#if MODEL_RANKS || MODEL_AS_RANKS
        find_part(&run, rank);
#endif
#if MODEL_HAS_DATA
        if ((code = slot_take(m, NET_EVAL)) != NET_OK)
            return code;
#endif
        if ((code = eval(m, &run)) != NET_OK)
            return code;
#if MODEL_AS_RANKS
        share[rank] += (double)*(const gp_real *)AT(MODEL_EVAL_LOSS);
        find_rank(&run, &rank);
#else
        sum += (double)*(const gp_real *)AT(MODEL_EVAL_LOSS);
#endif
#if MODEL_HAS_DATA
        slot_give(m);
#endif
    }
#if MODEL_AS_RANKS
    for (rank = 0; rank < MODEL_RANKS_COUNT; rank++)
        sum += share[rank];
#endif
#else
#if MODEL_HAS_DATA
    if ((code = slot_take(m, NET_EVAL)) != NET_OK)
        return code;
#endif
    if ((code = eval(m, &run)) != NET_OK)
        return code;
#if MODEL_HAS_DATA
    slot_give(m);
#endif
#if MODEL_RANKS
    double sum = (double)*(const gp_real *)AT(MODEL_EVAL_LOSS);
#else
    const gp_real sum = *(const gp_real *)AT(MODEL_EVAL_LOSS);
#endif
#endif
#if MODEL_RANKS
    if ((code = total_loss(m, &sum)) != NET_OK)
        return code;
#endif
    *loss = (float)sum;
#if MODEL_HAS_DATA
    batch_end(m, NET_EVAL);
#endif
    m->ran = RAN_EVAL;
    return NET_OK;
}

#endif
#if MODEL_TRAINS
int net_step(net *m, float *loss)
{
    int code;
    gp_run run = run_begin(m, MODEL_STEP_OPS);
#if MODEL_RANKS
    const int rank = net_rank(m);
    find_part(&run, rank);
#endif
#if MODEL_AS_RANKS
    int rank = 0;
#endif
#if MODEL_BINDS
    if (!is_bound(m))
        return NET_EBIND;
#endif
    run.lr = net_lr(m);
#if MODEL_HAS_DATA
    if ((code = batch_begin(m, NET_TRAIN)) != NET_OK)
        return code;
#endif
#if MODEL_WEIGHS_SAMPLES
    run.batch = NET_BATCH;
    run.valid = m->valid;
#endif
#if MODEL_STEP_IS_SPLIT
    double sum = 0; /* each micro-batch has its share of the mean */
#if MODEL_AS_RANKS
    double share[MODEL_RANKS_COUNT] = {0};
#endif
    for (run.micros = MODEL_STEP_MICROS; run.micro < run.micros; run.micro++) {
#if MODEL_RANKS || MODEL_AS_RANKS
        find_part(&run, rank);
#endif
#if MODEL_HAS_DATA
        if ((code = slot_take(m, NET_TRAIN)) != NET_OK)
            return code;
#endif
        if ((code = step(m, &run)) != NET_OK)
            return code;
#if MODEL_AS_RANKS
        share[rank] += (double)*(const gp_real *)AT(MODEL_STEP_LOSS);
        find_rank(&run, &rank);
#else
        sum += (double)*(const gp_real *)AT(MODEL_STEP_LOSS);
#endif
#if MODEL_HAS_DATA
        slot_give(m);
#endif
    }
#if MODEL_AS_RANKS
    for (rank = 0; rank < MODEL_RANKS_COUNT; rank++)
        sum += share[rank];
#endif
#else
#if MODEL_HAS_DATA
    if ((code = slot_take(m, NET_TRAIN)) != NET_OK)
        return code;
#endif
    if ((code = step(m, &run)) != NET_OK)
        return code;
#if MODEL_HAS_DATA
    slot_give(m);
#endif
#if MODEL_RANKS
    double sum = (double)*(const gp_real *)AT(MODEL_STEP_LOSS);
#else
    const gp_real sum = *(const gp_real *)AT(MODEL_STEP_LOSS);
#endif
#endif
#if MODEL_HAS_UPDATE
    poison(m, -1);
    if ((code = update(m, &run)) != NET_OK)
        return code;
#endif
#if MODEL_RANKS
    if ((code = total_loss(m, &sum)) != NET_OK)
        return code;
#endif
    m->step++;
#if MODEL_HAS_DATA
    batch_end(m, NET_TRAIN);
#endif
    m->ran = RAN_STEP;
    if (loss)
        *loss = (float)sum;
    return NET_OK;
}

#endif
/* ---- Kernels ---- */

#include "runtime/c/planned.h"
#if !MODEL_EMBEDS
#include "runtime/c/file_load.h"
#include "runtime/c/file_save.h"
#endif
#if MODEL_HAS_PARAMS
#include "runtime/c/init.h"
#endif
#if MODEL_TRAINS
#include "runtime/c/schedule.h"
#endif
#if MODEL_HAS_LOSS_SCALE
#include "runtime/c/scale.h"
#endif
#if MODEL_HAS_DATA
#include "runtime/c/data_ring.h"
#endif
#if MODEL_RANKS
#include "runtime/c/ranks_mpi.h"
#endif
#if MODEL_RANKS
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

/* ---- After each op: checks and the progress function ---- */

#include "errors.c"

/* Fills what is dead after an op; -1: what is free before the first. All bits set is a NaN, and an
 * index out of range. */
static void poison(net *m, int op)
{
#ifdef GPLAN_POISON
    for (size_t i = 0; death[i].bytes > 0; i++)
        if (death[i].op == op)
            memset(m->arena + death[i].offset, 0xff, death[i].bytes);
#else
    (void)m;
    (void)op;
#endif
}

#ifdef GPLAN_PROFILE
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
static GP_NOINLINE int op_end(net *m, int op, int code)
{
    if (code != GP_OK)
        return op_failed(m, op, code);
    poison(m, op);
#ifdef GPLAN_PROFILE
    const double time = now();
    if (m->seconds)
        m->seconds[op] += time - m->clock;
    m->clock = time;
#endif
#if MODEL_RANKS
    if (gp_ranks_poll(RANKS) != GP_OK)
        return op_failed(m, op, NET_ERANK);
    if (m->progress && m->progress(m->user, m->step, ++m->done, m->ops) != 0)
        return give_up(m, failed(m, NET_ECANCEL));
#else
    if (m->progress && m->progress(m->user, m->step, ++m->done, m->ops) != 0)
        return failed(m, NET_ECANCEL);
#endif
    return NET_OK;
}

#if MODEL_RANKS
/* The loss of all ranks. */
static int total_loss(net *m, double *loss)
{
    const uint64_t same = gp_random_mix(m->seed, m->step);
    return gp_ranks_total(RANKS, loss, same, "another seed or step") == GP_OK ? NET_OK
                                                                              : rank_failed(m);
}

#if MODEL_HAS_DATA
static int same_on_all(net *m, uint64_t number, const char *what)
{
    gp_said all = {.same = number};
    return gp_ranks_say(RANKS, &all, what) == GP_OK ? NET_OK : rank_failed(m);
}

#endif
int net_agree(net *m, int64_t *number)
{
    gp_said all = {.most = *number};
    const int code = gp_ranks_say(RANKS, &all, "");
    m->detail[0] = 0;
    if (code != GP_OK)
        return rank_failed(m);
    *number = all.most;
    return NET_OK;
}

int net_heard(const net *m)
{
    return RANKS->heard;
}

int net_rank(const net *m)
{
    return RANKS->rank;
}

void net_timeout(net *m, double seconds)
{
    RANKS->timeout = seconds;
}

#if !MODEL_HAS_DATA
void net_close(net *m)
{
    gp_mpi_end(RANKS);
}

#endif
#endif

#if MODEL_HAS_DATA
/* ---- Data ---- */

#include "data.c"

#endif
#if MODEL_EMBEDS
/* ---- Memory and parameters ---- */

static const _Alignas(64) unsigned char gp_embedded[MODEL_EMBEDDED_ROWS][2048]; /* see the end */

#else
/* ---- Memory, parameters and files ---- */

#endif
#if MODEL_RANKS
int net_init(net *m, void *arena, size_t bytes, void *communicator)
#else
int net_init(net *m, void *arena, size_t bytes)
#endif
{
    memset(m, 0, sizeof *m);
#if MODEL_HAS_ARENA
    if (!arena || bytes < NET_ARENA_BYTES || (uintptr_t)arena % NET_ARENA_ALIGN) {
        snprintf(m->detail, sizeof m->detail, "the arena must have %llu bytes, aligned to %d",
                 NET_ARENA_BYTES, NET_ARENA_ALIGN);
        return NET_EARENA;
    }
#else
    (void)bytes;
#endif
    m->arena = arena;
    m->threads = gp_threads(NET_THREADS_MAX);
#if MODEL_EMBEDS
    const unsigned char *weights = (const unsigned char *)gp_embedded;
    for (size_t i = SAVED; i < SAVED + SAVED_COUNT; i++) {
        m->external[slot[i]] = (void *)(uintptr_t)weights; /* which nothing writes to */
        weights += (tensor[i].bytes + 63) / 64 * 64;
    }
#endif
#if MODEL_TRAINS
    m->lr = MODEL_LR;
#endif
#if MODEL_HAS_SCHEDULE
    net_schedule(m, MODEL_SCHEDULE);
#endif
#if MODEL_RANKS
    if (gp_mpi_begin(RANKS, MODEL_RANKS_BYTES, MODEL_RANKS_SUMS, NET_RANKS,
                     UINT64_C(MODEL_PLAN_HASH), communicator) != GP_OK)
        return rank_failed(m);
#if MODEL_RANKS_GATHER
    *(gp_ranks **)(void *)(m->arena + MODEL_RANKS_GATHER_AT) = RANKS;
#endif
#endif
    return NET_OK;
}

#if MODEL_HAS_PARAMS
/* Parameters and state from `first` on, as they are after a reset. */
static void initialize(net *m, size_t first, uint64_t seed)
{
    const gp_run run = {.seed = seed, .threads = m->threads};
    for (size_t i = first; i < SAVED_COUNT; i++) {
        const net_tensor *t = &tensor[SAVED + i];
        int64_t count = 1;
        for (int d = 0; d < t->rank; d++)
            count *= t->dim[d];
        if (data(m, SAVED + i))
            gp_initialize(&run, &init[i], t->name, data(m, SAVED + i), t->dtype, 0, count);
    }
}

#endif
void net_reset(net *m, uint64_t seed)
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
    initialize(m, 0, seed);
#endif
}

#if !MODEL_EMBEDS
#include "files.c"

#endif
/* ---- Settings ---- */

void net_threads(net *m, int threads)
{
    m->threads = threads < 1 ? 1 : threads > NET_THREADS_MAX ? NET_THREADS_MAX : threads;
}

#include "settings.c"
