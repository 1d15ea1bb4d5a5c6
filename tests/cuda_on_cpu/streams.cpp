/* See cuda_runtime.h: streams, events and graphs, and when the work on them is done.
 *
 * Work of a stream is done in its order; beyond that it waits for what CUDA promises and nothing
 * else. Work on the default stream comes after all that was put on the blocking streams of its
 * device before, and they go on after it; a stream that was created as non-blocking keeps to
 * itself. An event orders two streams where one waits for it. A graph has a lane for each stream
 * that was captured, ordered by the same events, and each lane runs on a stream of its own. */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <deque>
#include <memory>
#include <vector>

/* How far a stream must have come. */
struct Mark {
    std::shared_ptr<CUstream_st> stream;
    uint64_t count;
};

struct Queued {
    Work work;
    std::vector<Mark> after;
};

/* How far a lane of a graph must have come. */
struct LaneMark {
    size_t lane;
    uint64_t count;
};

/* Work of a graph, in the order in which it was captured; each stream has a lane of its own, the
 * one that the capture began on the first. */
struct Captured {
    Work work;
    size_t lane;
    std::vector<LaneMark> after;
};

struct Capture {
    std::vector<Captured> works;
    std::vector<uint64_t> put, joined; /* by lane: pieces of work; those that the first waits for */
    std::vector<std::shared_ptr<CUstream_st>> streams;
};

struct CUstream_st {
    int device;
    bool blocking;
    std::deque<Queued> queue = {};
    uint64_t put = 0, done = 0; /* pieces of work */
    std::shared_ptr<Capture> capture = nullptr;
    size_t lane = 0;
    bool spoiled = false;
};
struct CUgraph_st {
    int device;
    std::shared_ptr<Capture> capture;
};
struct CUgraphExec_st {
    int device;
    std::shared_ptr<Capture> capture;
    std::vector<std::shared_ptr<CUstream_st>> streams; /* of lanes behind the first */
};
struct CUevent_st {
    int device;
    Mark mark; /* where it was recorded; no stream: nowhere yet */
    std::shared_ptr<std::chrono::steady_clock::time_point> when;
    std::shared_ptr<Capture> capture; /* or in which */
    LaneMark in_capture;
};

typedef std::vector<std::shared_ptr<CUstream_st>> Streams;

/* The first one of each device is its default stream. Those that were destroyed stay until their
 * work is done. */
static Streams &streams()
{
    static Streams all;
    for (int i = (int)all.size(); i < CUDA_ON_CPU_DEVICES; i++)
        all.push_back(std::make_shared<CUstream_st>(CUstream_st{i, true}));
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

/* Whether the stream has come so far; `waits`: it does, however long that takes. */
static bool reach(CUstream_st *stream, uint64_t count, bool waits = true)
{
    while (stream->done < count) {
        Queued &next = stream->queue.front();
        for (const Mark &mark : next.after)
            if (!reach(mark.stream.get(), mark.count, waits))
                return false;
        while (next.work.poll && !cuda_on_cpu_fault() && !next.work.poll()) {
            if (!waits)
                return false;
            usleep(20);
        }
        if (next.work.run && !cuda_on_cpu_fault())
            device_run(stream->device, next.work);
        stream->queue.pop_front();
        stream->done++;
    }
    return true;
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
            reach(stream, stream->done + 1, false);
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

static void capture(const CUstream_st *on, const Work &work, const std::vector<LaneMark> &after)
{
    on->capture->works.push_back(Captured{work, on->lane, after});
    on->capture->put[on->lane]++;
}

/* A stream is captured too when it waits for one that is. */
static void join_capture(const std::shared_ptr<CUstream_st> &on,
                         const std::shared_ptr<Capture> &capture)
{
    on->capture = capture;
    on->lane = capture->streams.size();
    on->spoiled = false;
    capture->streams.push_back(on);
    capture->put.push_back(0);
    capture->joined.push_back(0);
}

void streams_put(cudaStream_t stream, const Work &work)
{
    const auto on = find(stream);
    if (on->capture)
        capture(on.get(), work, {});
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
        if (stream->capture)
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
    streams().push_back(std::make_shared<CUstream_st>(CUstream_st{device_current(), blocking}));
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
    if (on->capture) {
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
    if (on->capture) {
        on->spoiled = true;
        return device_answer(cudaErrorStreamCaptureUnsupported);
    }
    if (!on->queue.empty()) /* who asks again and again waits */
        reach(on.get(), on->done + 1, false);
    const cudaError_t error = device_answer(cudaSuccess);
    return error == cudaSuccess && !on->queue.empty() ? cudaErrorNotReady : error;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    const auto on = find(stream);
    if (!on)
        return device_answer(cudaErrorInvalidResourceHandle);
    if (event->capture) {
        if (event->capture->streams.empty()) /* it is over */
            return device_answer(cudaErrorStreamCaptureUnsupported);
        if (!on->capture)
            join_capture(on, event->capture);
        if (on->capture != event->capture)
            return device_answer(cudaErrorStreamCaptureUnsupported);
        uint64_t &joined = on->capture->joined[event->in_capture.lane];
        if (on->lane == 0 && joined < event->in_capture.count)
            joined = event->in_capture.count;
        capture(on.get(), Work{}, {event->in_capture});
        return device_answer(cudaSuccess);
    }
    if (on->capture) /* what was done before the capture began is no part of the graph */
        return device_answer(event->mark.stream ? cudaErrorStreamCaptureUnsupported : cudaSuccess);
    put(on, Work{});
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
    *status = !on->capture  ? cudaStreamCaptureStatusNone
              : on->spoiled ? cudaStreamCaptureStatusInvalidated
                            : cudaStreamCaptureStatusActive;
    return device_answer(cudaSuccess);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode)
{
    const auto on = stream ? find(stream) : NULL;
    if (!on || on->capture)
        return device_answer(cudaErrorStreamCaptureUnsupported);
    join_capture(on, std::make_shared<Capture>());
    return device_answer(cudaSuccess);
}

/* All streams that joined it must have come back: the first waits for the last work of each. */
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    *graph = NULL;
    const auto on = stream ? find(stream) : NULL;
    if (!on || !on->capture || on->lane != 0)
        return device_answer(cudaErrorInvalidValue);
    const auto capture = on->capture;
    bool good = true;
    for (const auto &one : capture->streams) {
        good = good && !one->spoiled &&
               (one->lane == 0 || capture->joined[one->lane] == capture->put[one->lane]);
        one->capture = nullptr;
    }
    capture->streams.clear();
    if (!good)
        return device_answer(cudaErrorStreamCaptureUnsupported);
    *graph = new CUgraph_st{on->device, capture};
    return device_answer(cudaSuccess);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long)
{
    *exec = new CUgraphExec_st{graph->device, graph->capture, {}};
    for (size_t i = 1; i < graph->capture->put.size(); i++) {
        (*exec)->streams.push_back(
            std::make_shared<CUstream_st>(CUstream_st{graph->device, false}));
        streams().push_back((*exec)->streams.back());
    }
    return device_answer(cudaSuccess);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    const auto on = find(stream);
    if (!on || on->device != exec->device)
        return device_answer(cudaErrorInvalidResourceHandle);
    put(on, Work{});
    std::vector<Mark> begin = {Mark{on, on->put}};
    for (const auto &one : exec->streams) {
        put(one, Work{});
        one->queue.back().after.push_back(begin[0]);
        begin.push_back(Mark{one, one->put});
    }
    for (const Captured &next : exec->capture->works) {
        const auto to = begin[next.lane].stream;
        put(to, next.work);
        for (const LaneMark &mark : next.after)
            to->queue.back().after.push_back(
                Mark{begin[mark.lane].stream, begin[mark.lane].count + mark.count});
    }
    put(on, Work{});
    for (const auto &one : exec->streams)
        on->queue.back().after.push_back(Mark{one, one->put});
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
    for (const auto &one : exec->streams)
        for (size_t i = 0; i < streams().size(); i++)
            if (streams()[i] == one)
                streams().erase(streams().begin() + (long)i);
    delete exec;
    return device_answer(cudaSuccess);
}

/* ---- Events --------------------------------------------------------------------------------- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
    *event = new CUevent_st{device_current(),
                            {NULL, 0},
                            std::make_shared<std::chrono::steady_clock::time_point>(),
                            nullptr,
                            {0, 0}};
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
    event->capture = on->capture;
    if (on->capture) {
        event->in_capture = LaneMark{on->lane, on->capture->put[on->lane]};
        return device_answer(cudaSuccess);
    }
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
