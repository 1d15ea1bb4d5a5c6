/* See cuda_runtime.h: grids, blocks and what threads of a block do together. */
#include "device.h"
#include "fiber.h"
#include "race.h"

#include <stdio.h>
#include <stdlib.h>

#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

enum State { FRESH, READY, AT_BARRIER, IN_WARP, ENDED };
static const unsigned WARP = 32;

struct Thread {
    State state;
    Fiber *fiber;
    unsigned place; /* in the order */
    const char *file;
    int line; /* of the barrier it waits at */
    CudaOnCpuExchange how;
    unsigned mask;
    int by, width;
    uint64_t bits;
};

struct Array {
    const char *name;
    std::vector<unsigned char> bytes; /* with a guard on either side */
};

enum { GUARD = 64, GUARD_BYTE = 0xa5, POISON = 0xff };

static struct {
    const CudaOnCpuKernel *kernel;
    std::vector<Thread> thread;
    std::vector<unsigned> order; /* thread numbers */
    unsigned at;                 /* the thread that runs */
    unsigned next;               /* no thread before this place of the order can run */
    unsigned waiting, ended;
    std::vector<Fiber *> idle;
    std::map<const void *, Array> array;
    bool over; /* a fault: the block is given up */
} block;

static std::string fault_text;
static int64_t only_from, only_to;

const char *cuda_on_cpu_fault()
{
    return fault_text.empty() ? NULL : fault_text.c_str();
}

void cuda_on_cpu_only_blocks(int64_t from, int64_t to)
{
    only_from = from;
    only_to = to;
}

/* ---- Orders --------------------------------------------------------------------------------- */

enum Order { ASCENDING, DESCENDING, SHUFFLED };

static Order order_wanted()
{
    const char *name = getenv("CUDA_ON_CPU_ORDER");
    if (!name || strcmp(name, "ascending") == 0)
        return ASCENDING;
    if (strcmp(name, "descending") == 0)
        return DESCENDING;
    if (strcmp(name, "shuffled") == 0)
        return SHUFFLED;
    fprintf(stderr, "CUDA_ON_CPU_ORDER=%s: ascending, descending or shuffled\n", name);
    exit(2);
}

static uint64_t random_word()
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}

static void order_threads(Order how, unsigned count)
{
    block.order.resize(count);
    for (unsigned i = 0; i < count; i++)
        block.order[i] = how == DESCENDING ? count - 1 - i : i;
    for (unsigned i = count; how == SHUFFLED && i > 1; i--)
        std::swap(block.order[i - 1], block.order[random_word() % i]);
    for (unsigned i = 0; i < count; i++)
        block.thread[block.order[i]].place = i;
}

/* Block i in the order of the grid: shuffled ones step by a number that has no factor in common
 * with their count. */
static int64_t block_number(Order how, int64_t i, int64_t from, int64_t to)
{
    const int64_t count = to - from;
    if (how == DESCENDING)
        return to - 1 - i;
    if (how == ASCENDING || count < 3)
        return from + i;
    int64_t step = (int64_t)(count * 0.618);
    while (std::gcd(step, count) != 1)
        step++;
    return from + i * step % count; /* a grid has fewer than 2^31 blocks */
}

/* ---- Threads -------------------------------------------------------------------------------- */

static void run_threads();

/* Makes `number` the thread that runs. */
static void become(unsigned number)
{
    block.at = number;
    threadIdx.x = number % blockDim.x;
    threadIdx.y = number / blockDim.x % blockDim.y;
    threadIdx.z = number / blockDim.x / blockDim.y;
}

static unsigned choose()
{
    for (; block.next < block.order.size(); block.next++) {
        const unsigned number = block.order[block.next];
        if (block.thread[number].state <= READY)
            return number;
    }
    return NOBODY;
}

static void release(unsigned number)
{
    block.thread[number].state = READY;
    if (block.thread[number].place < block.next)
        block.next = block.thread[number].place;
}

static Fiber *fiber_of(unsigned number)
{
    Thread *t = &block.thread[number];
    if (t->fiber)
        return t->fiber;
    if (block.idle.empty())
        return t->fiber = fiber_new(run_threads);
    t->fiber = block.idle.back();
    block.idle.pop_back();
    return t->fiber;
}

/* What a fiber does: threads that have not begun, one after the other, as long as they are next. */
static void run_threads()
{
    for (;;) {
        Thread *t = &block.thread[block.at];
        block.kernel->thread();
        t->state = ENDED;
        block.ended++;
        const unsigned number = choose();
        if (number != NOBODY && block.thread[number].state == FRESH) {
            block.thread[number].fiber = t->fiber;
            t->fiber = NULL;
            become(number);
            block.thread[number].state = READY;
            continue;
        }
        block.idle.push_back(t->fiber);
        t->fiber = NULL;
        if (number == NOBODY) {
            fiber_switch(NULL);
        } else {
            Fiber *fiber = fiber_of(number);
            become(number);
            fiber_switch(fiber);
        }
    }
}

/* The thread that runs waits; returns when it may go on. */
static void wait_as(State state)
{
    const unsigned self = block.at;
    block.thread[self].state = state;
    const unsigned number = choose();
    if (number == self) {
        return;
    } else if (number == NOBODY) {
        fiber_switch(NULL);
    } else {
        Fiber *fiber = fiber_of(number);
        block.thread[number].state = READY;
        become(number);
        fiber_switch(fiber);
    }
    become(self);
}

/* ---- Faults --------------------------------------------------------------------------------- */

static void report(const std::string &what)
{
    if (fault_text.empty())
        fault_text = std::string(block.kernel->name) + ": " + what;
    fprintf(stderr, "cuda_on_cpu: %s: block %u: %s\n", block.kernel->name, blockIdx.x,
            what.c_str());
    block.over = true;
}

/* The block ends here. */
static void give_up()
{
    fiber_switch(NULL);
    abort();
}

unsigned device_thread()
{
    return block.at;
}

void device_fault(const char *what)
{
    report(what);
    give_up();
}

static std::string place_text(const Thread *t)
{
    const char *name = strrchr(t->file, '/');
    return std::string(name ? name + 1 : t->file) + ":" + std::to_string(t->line);
}

/* Nobody can go on, and not everybody has ended: says who waits for whom. */
static void report_stuck()
{
    for (const Thread &t : block.thread)
        if (t.state == AT_BARRIER) {
            report(std::to_string(block.waiting) + " threads wait at the barrier " +
                   place_text(&t) + ", " + std::to_string(block.ended) +
                   " have ended, the rest wait elsewhere");
            return;
        }
    for (unsigned i = 0; i < block.thread.size(); i++)
        if (block.thread[i].state == IN_WARP) {
            char text[160];
            snprintf(text, sizeof text,
                     "thread %u waits for the lanes %08x of its warp, and some do not come", i,
                     block.thread[i].mask);
            report(text);
            return;
        }
}

/* ---- What threads do together --------------------------------------------------------------- */

/* CUDA_ON_CPU_SKIP=FILE:LINE */
static bool is_skipped(const char *file, int line)
{
    static const char *wanted = getenv("CUDA_ON_CPU_SKIP");
    static const char *colon = wanted ? strrchr(wanted, ':') : NULL;
    static const int wanted_line = colon ? atoi(colon + 1) : 0;
    if (!colon || line != wanted_line)
        return false;
    const size_t length = (size_t)(colon - wanted), whole = strlen(file);
    return whole >= length && memcmp(file + whole - length, wanted, length) == 0;
}

void cuda_on_cpu_barrier(const char *file, int line)
{
    if (is_skipped(file, line))
        return;
    Thread *self = &block.thread[block.at];
    self->file = file;
    self->line = line;
    if (++block.waiting < block.thread.size()) {
        wait_as(AT_BARRIER);
        return;
    }
    block.waiting = 0;
    self->state = AT_BARRIER;
    for (unsigned i = 0; i < block.thread.size(); i++) {
        const Thread *t = &block.thread[i];
        if (t->line != line || strcmp(t->file, file) != 0) {
            report("threads of a block wait at the barriers " + place_text(t) + " and " +
                   place_text(self));
            give_up();
        }
        release(i);
    }
    race_passed(file, line);
    race_barrier();
    wait_as(READY);
}

/* What lane `lane` gets of the values that its group brought. */
static uint64_t exchanged(const Thread *warp, int lane)
{
    const Thread *t = &warp[lane];
    if (t->how == EXCHANGE_BALLOT) {
        uint64_t votes = 0;
        for (unsigned i = 0; i < WARP; i++)
            if (t->mask >> i & 1)
                votes |= (uint64_t)(warp[i].bits != 0) << i;
        return votes;
    }
    const int first = lane / t->width * t->width;
    int from = t->how == EXCHANGE_INDEX  ? first + (t->by & (t->width - 1))
               : t->how == EXCHANGE_UP   ? lane - t->by
               : t->how == EXCHANGE_DOWN ? lane + t->by
                                         : lane ^ t->by;
    if (from < first || from >= first + t->width)
        from = lane;
    return t->mask >> from & 1 ? warp[from].bits : ~(uint64_t)0; /* a lane that brought nothing */
}

/* Whether all lanes of the mask are there with the same in mind. */
static bool is_complete(const Thread *warp, unsigned lanes, const Thread *self)
{
    for (unsigned i = 0; i < WARP; i++)
        if (self->mask >> i & 1 && (i >= lanes || (&warp[i] != self && warp[i].state != IN_WARP) ||
                                    warp[i].mask != self->mask || warp[i].how != self->how))
            return false;
    return true;
}

uint64_t cuda_on_cpu_exchange(CudaOnCpuExchange how, unsigned mask, uint64_t bits, int by,
                              int width)
{
    Thread *self = &block.thread[block.at];
    const unsigned first = block.at / WARP * WARP;
    Thread *warp = &block.thread[first];
    const unsigned left = (unsigned)block.thread.size() - first, lanes = left < WARP ? left : WARP;
    self->how = how;
    self->mask = mask;
    self->by = by;
    self->width = width;
    self->bits = bits;
    if (!(mask >> (block.at - first) & 1)) {
        report("a lane is not in its own mask");
        give_up();
    }
    if (!is_complete(warp, lanes, self)) {
        wait_as(IN_WARP);
        return self->bits;
    }
    uint64_t result[WARP];
    for (unsigned i = 0; i < lanes; i++)
        if (mask >> i & 1)
            result[i] = exchanged(warp, (int)i);
    for (unsigned i = 0; i < lanes; i++)
        if (mask >> i & 1) {
            warp[i].bits = result[i];
            release(first + i);
        }
    if (how == EXCHANGE_NOTHING && mask == ~0u)
        race_warp_barrier(first / WARP);
    wait_as(READY);
    return self->bits;
}

void cuda_on_cpu_warp_barrier(const char *file, int line, unsigned mask)
{
    if (is_skipped(file, line))
        return;
    race_passed(file, line);
    cuda_on_cpu_exchange(EXCHANGE_NOTHING, mask, 0, 0, (int)WARP);
}

/* ---- Shared memory -------------------------------------------------------------------------- */

static const char dynamic_place = 0;

static void array_poison(Array *a, const char *name, size_t bytes)
{
    a->name = name;
    a->bytes.assign(bytes + 2 * GUARD, POISON);
    memset(&a->bytes[0], GUARD_BYTE, GUARD);
    memset(&a->bytes[GUARD + bytes], GUARD_BYTE, GUARD);
    race_array(&a->bytes[GUARD], bytes, name);
}

void *cuda_on_cpu_array(const void *place, const char *name, size_t bytes)
{
    Array *a = &block.array[place];
    if (a->bytes.empty())
        array_poison(a, name, bytes);
    return &a->bytes[GUARD];
}

void *cuda_on_cpu_dynamic()
{
    return cuda_on_cpu_array(&dynamic_place, "dynamic", 0);
}

static void check_arrays()
{
    for (const auto &entry : block.array) {
        const Array *a = &entry.second;
        for (int i = 0; i < GUARD; i++)
            if (a->bytes[(size_t)i] != GUARD_BYTE ||
                a->bytes[a->bytes.size() - 1 - (size_t)i] != GUARD_BYTE) {
                report(std::string("something was written outside the shared array ") + a->name);
                return;
            }
    }
}

/* ---- Grids ---------------------------------------------------------------------------------- */

static void run_block(Order how, size_t shared)
{
    const unsigned count = blockDim.x * blockDim.y * blockDim.z;
    block.thread.assign(count, Thread());
    order_threads(how, count);
    block.array.clear();
    race_block(count);
    if (shared > 0)
        array_poison(&block.array[&dynamic_place], "dynamic", shared);
    block.next = block.waiting = block.ended = 0;
    block.over = false;
    while (block.ended < count && !block.over) {
        const unsigned number = choose();
        if (number == NOBODY) {
            report_stuck();
            break;
        }
        Fiber *fiber = fiber_of(number);
        block.thread[number].state = READY;
        become(number);
        fiber_switch(fiber);
    }
    for (Thread &t : block.thread)
        if (t.fiber) { /* given up in the middle */
            fiber_restart(t.fiber, run_threads);
            block.idle.push_back(t.fiber);
        }
    check_arrays();
    block.at = NOBODY;
}

static void run_grid(const CudaOnCpuKernel *kernel, dim3 grid, dim3 threads, size_t shared)
{
    const Order how = order_wanted();
    const int64_t across = grid.x, planes = (int64_t)grid.y * grid.z;
    const int64_t from = only_to ? only_from : 0,
                  to = only_to && only_to < across ? only_to : across;
    block.kernel = kernel;
    gridDim = grid;
    blockDim = threads;
    for (int64_t i = 0; i < (to - from) * planes && fault_text.empty(); i++) {
        const int64_t number = block_number(how, i / planes, from, to);
        blockIdx.x = (unsigned)number;
        blockIdx.y = (unsigned)(i % planes % grid.y);
        blockIdx.z = (unsigned)(i % planes / grid.y);
        run_block(how, shared);
    }
}

cudaError_t cuda_on_cpu_start(const CudaOnCpuKernel *kernel, dim3 grid, dim3 threads, size_t shared,
                              cudaStream_t stream)
{
    const std::shared_ptr<const CudaOnCpuKernel> kept(kernel);
    const cudaError_t error = device_starts(kernel->address, grid, threads, shared, stream);
    if (error == cudaSuccess)
        cuda_on_cpu_enqueue(stream, [=] { run_grid(kept.get(), grid, threads, shared); });
    return error;
}
