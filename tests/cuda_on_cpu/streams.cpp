/* See cuda_runtime.h: streams, events and graphs, and when the work on them is done.
 *
 * Work of a stream is done in its order; beyond that it waits for what CUDA promises and nothing
 * else. Work on the default stream comes after all that was put on the blocking streams of its
 * device before, and they go on after it; a stream that was created as non-blocking keeps to
 * itself. An event orders two streams where one waits for it. */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>

#include <chrono>
#include <deque>
#include <memory>
#include <vector>

typedef std::vector<Work> Works;

/* How far a stream must have come. */
struct Mark {
    std::shared_ptr<CUstream_st> stream;
    uint64_t count;
};

struct Queued {
    Work work;
    std::vector<Mark> after;
};

struct CUstream_st {
    int device;
    bool blocking;
    std::deque<Queued> queue;
    uint64_t put, done; /* pieces of work */
    Works captured;
    bool capturing, spoiled;
};
struct CUgraph_st {
    int device;
    Works works;
};
struct CUgraphExec_st {
    int device;
    Works works;
};
struct CUevent_st {
    int device;
    Mark mark; /* where it was recorded; no stream: nowhere yet */
    std::shared_ptr<std::chrono::steady_clock::time_point> when;
};

typedef std::vector<std::shared_ptr<CUstream_st>> Streams;

/* The first one of each device is its default stream. Those that were destroyed stay until their
 * work is done. */
static Streams &streams()
{
    static Streams all;
    for (int i = (int)all.size(); i < CUDA_ON_CPU_DEVICES; i++)
        all.push_back(
            std::make_shared<CUstream_st>(CUstream_st{i, true, {}, 0, 0, {}, false, false}));
    return all;
}

/* NULL: there is no such stream. */
static std::shared_ptr<CUstream_st> find(cudaStream_t stream)
{
    if (!stream)
        return streams()[(size_t)device_current()];
    for (const auto &one : streams())
        if (one.get() == stream)
            return one;
    return NULL;
}

static bool is_default(const CUstream_st *stream)
{
    return streams()[(size_t)stream->device].get() == stream;
}

/* ---- When work is done ---------------------------------------------------------------------- */

static void reach(CUstream_st *stream, uint64_t count)
{
    while (stream->done < count) {
        const Queued next = std::move(stream->queue.front());
        stream->queue.pop_front();
        for (const Mark &mark : next.after)
            reach(mark.stream.get(), mark.count);
        if (!cuda_on_cpu_fault())
            device_run(stream->device, next.work);
        stream->done++;
    }
}

/* With CUDA_ON_CPU_STREAMS=shuffled some of what waits is done whenever somebody calls; otherwise
 * nothing is before it must. */
static void let_some_run()
{
    static const char *const how = getenv("CUDA_ON_CPU_STREAMS");
    static uint64_t state = 1;
    if (!how || strcmp(how, "late") == 0)
        return;
    if (strcmp(how, "shuffled") != 0) {
        fprintf(stderr, "CUDA_ON_CPU_STREAMS=%s: late or shuffled\n", how);
        exit(2);
    }
    for (;;) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const Streams now = streams();
        CUstream_st *stream = now[(state >> 33) % now.size()].get();
        if (state >> 62 == 0)
            return;
        if (!stream->queue.empty())
            reach(stream, stream->done + 1);
    }
}

static void put(const std::shared_ptr<CUstream_st> &stream, const Work &work)
{
    Queued queued = {work, {}};
    if (is_default(stream.get())) {
        for (const auto &other : streams())
            if (other != stream && other->blocking && other->device == stream->device)
                queued.after.push_back(Mark{other, other->put});
    } else if (stream->blocking) {
        const auto &first = streams()[(size_t)stream->device];
        queued.after.push_back(Mark{first, first->put});
    }
    stream->queue.push_back(queued);
    stream->put++;
}

void streams_put(cudaStream_t stream, const Work &work)
{
    const auto on = find(stream);
    if (on->capturing)
        on->captured.push_back(work);
    else
        put(on, work);
    let_some_run();
}

void cuda_on_cpu_enqueue(cudaStream_t stream, std::function<void()> work)
{
    streams_put(stream, Work{work, true});
}

bool streams_spoil_captures()
{
    bool any = false;
    for (const auto &stream : streams())
        if (stream->capturing)
            any = stream->spoiled = true;
    return any;
}

void streams_finish(int device)
{
    const Streams now = streams();
    for (const auto &stream : now)
        if (stream->device == device)
            reach(stream.get(), stream->put);
}

int streams_device(cudaStream_t stream)
{
    const auto on = find(stream);
    return on ? on->device : -1;
}

/* ---- Streams -------------------------------------------------------------------------------- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    const bool blocking = !(flags & cudaStreamNonBlocking);
    streams().push_back(std::make_shared<CUstream_st>(
        CUstream_st{device_current(), blocking, {}, 0, 0, {}, false, false}));
    *stream = streams().back().get();
    return device_answer(cudaSuccess);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    const auto on = find(stream);
    if (!stream || !on)
        return device_answer(cudaErrorInvalidResourceHandle);
    reach(on.get(), on->put);
    for (size_t i = 0; i < streams().size(); i++)
        if (streams()[i] == on)
            streams().erase(streams().begin() + (long)i);
    return device_answer(cudaSuccess);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    const auto on = find(stream);
    if (!on)
        return device_answer(cudaErrorInvalidResourceHandle);
    if (on->capturing) {
        on->spoiled = true;
        return device_answer(cudaErrorStreamCaptureUnsupported);
    }
    let_some_run();
    reach(on.get(), on->put);
    return device_answer(cudaSuccess);
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    const auto on = find(stream);
    if (!on)
        return device_answer(cudaErrorInvalidResourceHandle);
    if (on->capturing) {
        on->spoiled = true;
        return device_answer(cudaErrorStreamCaptureUnsupported);
    }
    const cudaError_t error = device_answer(cudaSuccess);
    return error == cudaSuccess && !on->queue.empty() ? cudaErrorNotReady : error;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    const auto on = find(stream);
    if (!on)
        return device_answer(cudaErrorInvalidResourceHandle);
    put(on, Work{[] {}, false});
    if (event->mark.stream)
        on->queue.back().after.push_back(event->mark);
    return device_answer(cudaSuccess);
}

/* ---- Graphs --------------------------------------------------------------------------------- */

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status)
{
    const auto on = find(stream);
    if (!on)
        return device_answer(cudaErrorInvalidResourceHandle);
    *status = !on->capturing ? cudaStreamCaptureStatusNone
              : on->spoiled  ? cudaStreamCaptureStatusInvalidated
                             : cudaStreamCaptureStatusActive;
    return device_answer(cudaSuccess);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode)
{
    if (!stream || stream->capturing)
        return device_answer(cudaErrorStreamCaptureUnsupported);
    stream->capturing = true;
    stream->spoiled = false;
    return device_answer(cudaSuccess);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    *graph = NULL;
    if (!stream || !stream->capturing)
        return device_answer(cudaErrorInvalidValue);
    stream->capturing = false;
    Works works;
    works.swap(stream->captured);
    if (stream->spoiled)
        return device_answer(cudaErrorStreamCaptureUnsupported);
    *graph = new CUgraph_st{stream->device, works};
    return device_answer(cudaSuccess);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long)
{
    *exec = new CUgraphExec_st{graph->device, graph->works};
    return device_answer(cudaSuccess);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    const auto on = find(stream);
    if (!on || on->device != exec->device)
        return device_answer(cudaErrorInvalidResourceHandle);
    for (const Work &work : exec->works)
        put(on, work);
    let_some_run();
    return device_answer(cudaSuccess);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    delete graph;
    return device_answer(cudaSuccess);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    delete exec;
    return device_answer(cudaSuccess);
}

/* ---- Events --------------------------------------------------------------------------------- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
    *event = new CUevent_st{
        device_current(), {NULL, 0}, std::make_shared<std::chrono::steady_clock::time_point>()};
    return device_answer(cudaSuccess);
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    const auto on = find(stream);
    if (!on || on->device != event->device)
        return device_answer(cudaErrorInvalidResourceHandle);
    const auto when = event->when;
    put(on, Work{[=] { *when = std::chrono::steady_clock::now(); }, false});
    event->mark = Mark{on, on->put};
    return device_answer(cudaSuccess);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    if (event->mark.stream)
        reach(event->mark.stream.get(), event->mark.count);
    return device_answer(cudaSuccess);
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to)
{
    if (from->device != to->device)
        return device_answer(cudaErrorInvalidResourceHandle);
    *milliseconds = std::chrono::duration<float, std::milli>(*to->when - *from->when).count();
    return device_answer(cudaSuccess);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete event;
    return device_answer(cudaSuccess);
}
