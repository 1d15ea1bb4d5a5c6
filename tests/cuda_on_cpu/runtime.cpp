/* See cuda_runtime.h: memory, streams, events and graphs. */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <set>
#include <vector>

typedef std::vector<std::function<void()>> Works;

struct CUstream_st {
    Works queue, captured;
    bool capturing, spoiled;
};
struct CUgraph_st {
    Works works;
};
struct CUgraphExec_st {
    Works works;
};
struct CUevent_st {
    cudaStream_t stream;
    std::chrono::steady_clock::time_point when;
};

static CUstream_st first_stream;
static std::set<CUstream_st *> streams;
static cudaError_t last_error = cudaSuccess;

static CUstream_st *stream_of(cudaStream_t stream)
{
    return stream ? stream : &first_stream;
}

bool cuda_on_cpu_refuses()
{
    static const char *const number = getenv("CUDA_ON_CPU_FAIL");
    static long calls;
    return number && ++calls == atol(number);
}

/* A kernel that went wrong leaves nothing usable behind, as on a GPU. */
static cudaError_t answer(cudaError_t error)
{
    if (cuda_on_cpu_fault())
        return cudaErrorLaunchFailure;
    if (error == cudaSuccess && cuda_on_cpu_refuses())
        error = cudaErrorLaunchFailure;
    if (error != cudaSuccess)
        last_error = error;
    return error;
}

static void drain(CUstream_st *stream)
{
    Works works;
    works.swap(stream->queue);
    for (const auto &work : works)
        if (!cuda_on_cpu_fault())
            work();
}

static void drain_all()
{
    drain(&first_stream);
    for (CUstream_st *stream : streams)
        drain(stream);
}

void cuda_on_cpu_enqueue(cudaStream_t stream, std::function<void()> work)
{
    CUstream_st *s = stream_of(stream);
    (s->capturing ? s->captured : s->queue).push_back(work);
}

/* ---- Errors --------------------------------------------------------------------------------- */

cudaError_t cudaPeekAtLastError()
{
    return cuda_on_cpu_fault() ? cudaErrorLaunchFailure : last_error;
}

cudaError_t cudaGetLastError()
{
    const cudaError_t error = cudaPeekAtLastError();
    last_error = cudaSuccess;
    return error;
}

static const struct {
    cudaError_t error;
    const char *name, *text;
} ERRORS[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
};

const char *cudaGetErrorString(cudaError_t error)
{
    for (const auto &row : ERRORS)
        if (row.error == error)
            return row.text;
    return "unrecognized error code";
}

const char *cudaGetErrorName(cudaError_t error)
{
    for (const auto &row : ERRORS)
        if (row.error == error)
            return row.name;
    return "unrecognized error code";
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    return cudaSuccess;
}

/* sm_75: the least that kernels are made for. */
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr which, int)
{
    *value = which == cudaDevAttrComputeCapabilityMajor ? 7 : 5;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    return answer(device == 0 ? cudaSuccess : cudaErrorInvalidValue);
}

/* ---- Launches ------------------------------------------------------------------------------- */

static std::map<const void *, size_t> &allowed_shared()
{
    static std::map<const void *, size_t> allowed;
    return allowed;
}

void cuda_on_cpu_allow_shared(const void *kernel, size_t bytes)
{
    allowed_shared()[kernel] = bytes;
}

/* The limits of every GPU from sm_75 on. */
bool device_starts(const void *kernel, dim3 grid, dim3 block, size_t shared)
{
    size_t most = 48 * 1024;
    if (allowed_shared().count(kernel) && allowed_shared()[kernel] > most)
        most = allowed_shared()[kernel];
    const uint64_t threads = (uint64_t)block.x * block.y * block.z;
    const bool fits = grid.x && grid.y && grid.z && grid.x <= 0x7fffffff && grid.y <= 65535 &&
                      grid.z <= 65535 && threads >= 1 && threads <= 1024 && block.z <= 64 &&
                      shared <= most && shared <= 64 * 1024;
    return answer(fits ? cudaSuccess : cudaErrorInvalidConfiguration) == cudaSuccess;
}

/* ---- Memory --------------------------------------------------------------------------------- */

struct Block {
    char *map;
    size_t mapped;
};
static std::map<void *, Block> &blocks()
{
    static std::map<void *, Block> all;
    return all;
}

/* The bytes end where a page begins that nobody may touch, as far as an alignment of 256 allows. */
cudaError_t cuda_on_cpu_allocate(void **at, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t whole = (bytes + 255) / 256 * 256, pages = (whole + page - 1) / page * page;
    char *map = (char *)mmap(NULL, pages + 2 * page, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
        return answer(cudaErrorMemoryAllocation);
    if (mprotect(map + page, pages, PROT_READ | PROT_WRITE) != 0) {
        munmap(map, pages + 2 * page);
        return answer(cudaErrorMemoryAllocation);
    }
    *at = map + page + pages - whole;
    memset(map + page, 0xff, pages);
    blocks()[*at] = Block{map, pages + 2 * page};
    return answer(cudaSuccess);
}

cudaError_t cudaFree(void *at)
{
    if (!at)
        return answer(cudaSuccess);
    drain_all();
    const auto found = blocks().find(at);
    if (found == blocks().end())
        return answer(cudaErrorInvalidValue);
    munmap(found->second.map, found->second.mapped);
    blocks().erase(found);
    return answer(cudaSuccess);
}

cudaError_t cudaFreeHost(void *at)
{
    return cudaFree(at);
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *total)
{
    *left = *total = (size_t)8 << 30;
    return answer(cudaSuccess);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    const cudaError_t error = answer(cudaSuccess);
    if (error != cudaSuccess)
        return error; /* a call that is refused does nothing, now or later */
    /* bytes of the host's own memory are taken at once, others when the copy runs */
    if (kind == cudaMemcpyHostToDevice && !stream_of(stream)->capturing) {
        const char *bytes_of = (const char *)from;
        const std::vector<char> taken(bytes_of, bytes_of + bytes);
        cuda_on_cpu_enqueue(stream, [=] { memcpy(to, taken.data(), bytes); });
    } else {
        cuda_on_cpu_enqueue(stream, [=] { memmove(to, from, bytes); });
    }
    return error;
}

static bool anyone_captures()
{
    bool yes = false;
    for (CUstream_st *stream : streams)
        if (stream->capturing)
            yes = stream->spoiled = true;
    return yes;
}

cudaError_t cudaDeviceSynchronize()
{
    if (anyone_captures())
        return answer(cudaErrorStreamCaptureUnsupported);
    drain_all();
    return answer(cudaSuccess);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind)
{
    const cudaError_t error = cudaDeviceSynchronize();
    if (error == cudaSuccess)
        memmove(to, from, bytes);
    return error;
}

cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t stream)
{
    const cudaError_t error = answer(cudaSuccess);
    if (error == cudaSuccess)
        cuda_on_cpu_enqueue(stream, [=] { memset(to, byte, bytes); });
    return error;
}

cudaError_t cudaMemset(void *to, int byte, size_t bytes)
{
    const cudaError_t error = cudaDeviceSynchronize();
    if (error == cudaSuccess)
        memset(to, byte, bytes);
    return error;
}

/* ---- Streams, events, graphs ---------------------------------------------------------------- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned)
{
    *stream = new CUstream_st{{}, {}, false, false};
    streams.insert(*stream);
    return answer(cudaSuccess);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    drain(stream);
    streams.erase(stream);
    delete stream;
    return answer(cudaSuccess);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    CUstream_st *s = stream_of(stream);
    if (s->capturing) {
        s->spoiled = true;
        return answer(cudaErrorStreamCaptureUnsupported);
    }
    drain(s);
    return answer(cudaSuccess);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    const cudaStream_t other = event->stream;
    cuda_on_cpu_enqueue(stream, [=] { drain(stream_of(other)); });
    return answer(cudaSuccess);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode)
{
    if (!stream || stream->capturing)
        return answer(cudaErrorStreamCaptureUnsupported);
    stream->capturing = true;
    stream->spoiled = false;
    return answer(cudaSuccess);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    *graph = NULL;
    if (!stream || !stream->capturing)
        return answer(cudaErrorInvalidValue);
    stream->capturing = false;
    Works works;
    works.swap(stream->captured);
    if (stream->spoiled)
        return answer(cudaErrorStreamCaptureUnsupported);
    *graph = new CUgraph_st{works};
    return answer(cudaSuccess);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long)
{
    *exec = new CUgraphExec_st{graph->works};
    return answer(cudaSuccess);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    for (const auto &work : exec->works)
        cuda_on_cpu_enqueue(stream, work);
    return answer(cudaSuccess);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    delete graph;
    return answer(cudaSuccess);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    delete exec;
    return answer(cudaSuccess);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
    *event = new CUevent_st{NULL, {}};
    return answer(cudaSuccess);
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    event->stream = stream;
    cuda_on_cpu_enqueue(stream, [=] { event->when = std::chrono::steady_clock::now(); });
    return answer(cudaSuccess);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    return cudaStreamSynchronize(event->stream);
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to)
{
    *milliseconds = std::chrono::duration<float, std::milli>(to->when - from->when).count();
    return answer(cudaSuccess);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete event;
    return answer(cudaSuccess);
}
