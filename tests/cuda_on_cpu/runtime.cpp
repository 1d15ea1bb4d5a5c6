/* See cuda_runtime.h: errors, devices, memory and copies. */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <vector>

static cudaError_t last_error = cudaSuccess;

bool cuda_on_cpu_refuses()
{
    static const char *const number = getenv("CUDA_ON_CPU_FAIL");
    static long calls;
    return number && ++calls == atol(number);
}

/* A kernel that went wrong leaves nothing usable behind, as on a GPU. */
cudaError_t device_answer(cudaError_t error, cudaError_t refused)
{
    if (cuda_on_cpu_fault())
        return cudaErrorLaunchFailure;
    if (error == cudaSuccess && cuda_on_cpu_refuses())
        error = refused;
    if (error != cudaSuccess)
        last_error = error;
    return error;
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
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorLaunchOutOfResources, "cudaErrorLaunchOutOfResources",
     "too many resources requested for launch"},
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

/* ---- Devices -------------------------------------------------------------------------------- */

static int current;

int device_current()
{
    return current;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = CUDA_ON_CPU_DEVICES;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = current;
    return device_answer(cudaSuccess);
}

/* sm_75: the least that kernels are made for. */
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr which, int)
{
    *value = which == cudaDevAttrComputeCapabilityMajor ? 7 : 5;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    if (device < 0 || device >= CUDA_ON_CPU_DEVICES)
        return device_answer(cudaErrorInvalidDevice);
    const cudaError_t error = device_answer(cudaSuccess);
    if (error == cudaSuccess)
        current = device;
    return error;
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
cudaError_t device_starts(const void *kernel, dim3 grid, dim3 block, size_t shared,
                          cudaStream_t stream)
{
    if (streams_device(stream) != current)
        return device_answer(cudaErrorInvalidResourceHandle);
    size_t most = 48 * 1024;
    if (allowed_shared().count(kernel) && allowed_shared()[kernel] > most)
        most = allowed_shared()[kernel];
    const uint64_t threads = (uint64_t)block.x * block.y * block.z;
    const bool fits = grid.x && grid.y && grid.z && grid.x <= 0x7fffffff && grid.y <= 65535 &&
                      grid.z <= 65535 && threads >= 1 && threads <= 1024 && block.z <= 64 &&
                      shared <= most && shared <= 64 * 1024;
    return device_answer(fits ? cudaSuccess : cudaErrorInvalidConfiguration,
                         cudaErrorLaunchOutOfResources);
}

/* ---- Memory --------------------------------------------------------------------------------- */

struct Block {
    char *map;
    size_t mapped;
    char *from; /* what is the caller's, to the guard after it */
    CudaOnCpuMemory kind;
    int device;
};
static std::map<const void *, Block> &blocks()
{
    static std::map<const void *, Block> all;
    return all;
}

static size_t page_bytes()
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static bool protect(const Block &block, int how)
{
    const size_t page = page_bytes();
    return mprotect(block.map + page, block.mapped - 2 * page, how) == 0;
}

/* The bytes end where a page begins that nobody may touch, as far as an alignment of 256 allows. */
cudaError_t cuda_on_cpu_allocate(void **at, size_t bytes, CudaOnCpuMemory kind)
{
    const size_t page = page_bytes();
    const size_t whole = (bytes + 255) / 256 * 256, pages = (whole + page - 1) / page * page;
    char *map = (char *)mmap(NULL, pages + 2 * page, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
        return device_answer(cudaErrorMemoryAllocation);
    const Block block = {map, pages + 2 * page, map + page + pages - whole, kind, current};
    if (!protect(block, PROT_READ | PROT_WRITE)) {
        munmap(map, block.mapped);
        return device_answer(cudaErrorMemoryAllocation);
    }
    memset(map + page, 0xff, pages);
    *at = block.from;
    blocks()[*at] = block;
    return device_answer(cudaSuccess);
}

/* The block that an address lies in; NULL: it is the host's own. */
static const Block *block_of(const void *at)
{
    auto found = blocks().upper_bound(at);
    if (found == blocks().begin())
        return NULL;
    const Block *block = &(--found)->second;
    return (const char *)at < block->map + block->mapped ? block : NULL;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *at)
{
    const Block *block = block_of(at);
    attributes->type = !block                          ? cudaMemoryTypeUnregistered
                       : block->kind == MEMORY_PINNED  ? cudaMemoryTypeHost
                       : block->kind == MEMORY_MANAGED ? cudaMemoryTypeManaged
                                                       : cudaMemoryTypeDevice;
    attributes->device = block ? block->device : -1;
    return device_answer(cudaSuccess);
}

/* A kernel that goes to another device's memory faults. */
void device_run(int device, const Work &work)
{
    std::vector<const Block *> hidden;
    if (work.kernel)
        for (const auto &entry : blocks())
            if (entry.second.kind == MEMORY_DEVICE && entry.second.device != device)
                hidden.push_back(&entry.second);
    for (const Block *block : hidden)
        protect(*block, PROT_NONE);
    work.run();
    for (const Block *block : hidden)
        protect(*block, PROT_READ | PROT_WRITE);
}

cudaError_t cudaFree(void *at)
{
    if (!at)
        return device_answer(cudaSuccess);
    const auto found = blocks().find(at);
    if (found == blocks().end())
        return device_answer(cudaErrorInvalidValue);
    streams_finish(found->second.device);
    munmap(found->second.map, found->second.mapped);
    blocks().erase(found);
    return device_answer(cudaSuccess);
}

cudaError_t cudaFreeHost(void *at)
{
    return cudaFree(at);
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *total)
{
    *left = *total = (size_t)8 << 30;
    return device_answer(cudaSuccess);
}

/* ---- Copies --------------------------------------------------------------------------------- */

/* A call that is refused does nothing, now or later. */
static cudaError_t put(cudaStream_t stream, const std::function<void()> &copy)
{
    const cudaError_t error =
        device_answer(streams_device(stream) < 0 ? cudaErrorInvalidResourceHandle : cudaSuccess);
    if (error == cudaSuccess)
        streams_put(stream, Work{copy, false});
    return error;
}

/* Both ends are used when the copy runs: host memory that is not pinned may be read at once, but
 * does not have to be. */
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream)
{
    return put(stream, [=] { memmove(to, from, bytes); });
}

cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t stream)
{
    return put(stream, [=] { memset(to, byte, bytes); });
}

cudaError_t cudaDeviceSynchronize()
{
    if (streams_spoil_captures())
        return device_answer(cudaErrorStreamCaptureUnsupported);
    streams_finish(current);
    return device_answer(cudaSuccess);
}

/* On the default stream. Of memory that is not pinned the bytes are taken at once, and go to the
 * device later: only copies that end on the host, and those of pinned memory, are waited for. */
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind)
{
    if (streams_spoil_captures())
        return device_answer(cudaErrorStreamCaptureUnsupported);
    const Block *source = block_of(from), *target = block_of(to);
    if (!source && target) {
        const cudaError_t error = cudaStreamSynchronize(NULL);
        if (error != cudaSuccess)
            return error;
        const char *first = (const char *)from;
        const std::vector<char> taken(first, first + bytes);
        streams_put(NULL, Work{[=] { memcpy(to, taken.data(), bytes); }, false});
        return cudaSuccess;
    }
    const bool waits =
        !source || !target || source->kind != MEMORY_DEVICE || target->kind != MEMORY_DEVICE;
    const cudaError_t error = put(NULL, [=] { memmove(to, from, bytes); });
    return error == cudaSuccess && waits ? cudaStreamSynchronize(NULL) : error;
}

cudaError_t cudaMemset(void *to, int byte, size_t bytes)
{
    if (streams_spoil_captures())
        return device_answer(cudaErrorStreamCaptureUnsupported);
    return cudaMemsetAsync(to, byte, bytes, NULL);
}
