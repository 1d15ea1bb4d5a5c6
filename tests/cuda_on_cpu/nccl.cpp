/* See nccl.h. */
#include "nccl.h"

#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <atomic>
#include <memory>
#include <vector>

enum { RANKS = 8, PIPE = 1 << 14 };

/* From one rank to another: bytes [done, put) of a stream of messages, each behind its size. */
struct Pipe {
    std::atomic<uint64_t> put, done;
    unsigned char bytes[PIPE];
};

struct Shared {
    std::atomic<int> aborted;
    Pipe pipe[RANKS][RANKS];
};

struct ncclComm {
    Shared *shared;
    int ranks, rank, device;
    bool over; /* aborted by this rank: its work ends */
};

/* A send or a receive; `at` counts its bytes and those of its size. */
struct Message {
    bool sends;
    unsigned char *bytes;
    uint64_t count, at;
    int peer;
    union {
        uint64_t size;
        unsigned char header[8];
    };
};

struct Group {
    ncclComm_t comm;
    std::vector<Message> messages;
};

static int depth;
static std::vector<Message> pending;
static ncclComm_t pending_comm;
static cudaStream_t pending_stream;

static ncclResult_t answer(ncclResult_t result)
{
    return result == ncclSuccess && cuda_on_cpu_refuses() ? ncclUnhandledCudaError : result;
}

/* ---- Moving --------------------------------------------------------------------------------- */

static unsigned char *byte_of(Message &m, uint64_t i)
{
    return i < sizeof m.size ? m.header + i : m.bytes + (i - sizeof m.size);
}

static void check_size(const Message &m, const ncclComm *comm)
{
    if (m.size == m.count)
        return;
    fprintf(stderr, "ncclRecv on rank %d: %llu bytes from rank %d, which sent %llu\n", comm->rank,
            (unsigned long long)m.count, m.peer, (unsigned long long)m.size);
    abort();
}

/* Whether it is done. */
static bool move(ncclComm *comm, Message &m)
{
    const uint64_t all = m.count + sizeof m.size;
    Pipe &pipe =
        m.sends ? comm->shared->pipe[comm->rank][m.peer] : comm->shared->pipe[m.peer][comm->rank];
    for (; m.at < all; m.at++) {
        const uint64_t put = pipe.put.load(), done = pipe.done.load();
        if (m.sends ? put - done == PIPE : put == done)
            return false;
        if (m.sends) {
            pipe.bytes[put % PIPE] = *byte_of(m, m.at);
            pipe.put.store(put + 1);
        } else {
            *byte_of(m, m.at) = pipe.bytes[done % PIPE];
            pipe.done.store(done + 1);
            if (m.at + 1 == sizeof m.size)
                check_size(m, comm);
        }
    }
    return true;
}

/* Messages of a pair go one behind the other, in each direction. A group that is done can begin
 * anew: in a graph it runs often. */
static bool move_all(Group &group)
{
    bool waits[2][RANKS] = {}, all = true;
    for (Message &m : group.messages) {
        bool &wait = waits[m.sends][m.peer];
        if (!group.comm->over && (wait || !move(group.comm, m)))
            wait = true, all = false;
    }
    for (Message &m : group.messages)
        if (all) {
            m.at = 0;
            m.size = m.count;
        }
    return all;
}

static ncclResult_t finish()
{
    if (pending.empty())
        return answer(ncclSuccess);
    if (streams_device(pending_stream) != pending_comm->device)
        return answer(ncclInvalidUsage);
    const auto group = std::make_shared<Group>(Group{pending_comm, pending});
    pending.clear();
    const ncclResult_t result = answer(ncclSuccess);
    if (result == ncclSuccess)
        streams_put(pending_stream, Work{nullptr, false, [=] { return move_all(*group); }});
    return result;
}

static ncclResult_t add(bool sends, void *bytes, size_t count, ncclDataType_t type, int peer,
                        ncclComm_t comm, cudaStream_t stream)
{
    if (peer < 0 || peer >= comm->ranks || peer == comm->rank || comm->over)
        return ncclInvalidArgument;
    if (!pending.empty() && (stream != pending_stream || comm != pending_comm))
        return ncclInvalidUsage;
    Message m = {sends, (unsigned char *)bytes, count * (type == ncclFloat ? 4 : 1), 0, peer, {0}};
    m.size = m.count;
    pending_stream = stream;
    pending_comm = comm;
    pending.push_back(m);
    return depth > 0 ? answer(ncclSuccess) : finish();
}

/* ---- The library ---------------------------------------------------------------------------- */

const char *ncclGetErrorString(ncclResult_t result)
{
    return result == ncclSuccess              ? "no error"
           : result == ncclUnhandledCudaError ? "unhandled cuda error"
           : result == ncclRemoteError        ? "remote process exited or there was a network error"
                                              : "invalid usage";
}

const char *ncclGetLastError(ncclComm_t)
{
    return "a call was refused";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    void *shared =
        mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return ncclInvalidArgument;
    memcpy(id->internal, &shared, sizeof shared);
    return answer(ncclSuccess);
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank)
{
    Shared *shared;
    memcpy(&shared, id.internal, sizeof shared);
    if (ranks < 1 || ranks > RANKS || rank < 0 || rank >= ranks)
        return ncclInvalidArgument;
    *comm = new ncclComm{shared, ranks, rank, device_current(), false};
    return answer(ncclSuccess);
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    delete comm;
    return answer(ncclSuccess);
}

/* Kept, for work on streams still names it. */
ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    const char *how = getenv("CUDA_ON_CPU_ABORT");
    comm->over = true;
    if (!how || strcmp(how, "silent") != 0)
        comm->shared->aborted.store(1 + comm->rank);
    return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
    *error = comm->shared->aborted.load() ? ncclRemoteError : ncclSuccess;
    return ncclSuccess;
}

ncclResult_t ncclCommCount(ncclComm_t comm, int *count)
{
    *count = comm->ranks;
    return answer(ncclSuccess);
}

ncclResult_t ncclCommUserRank(ncclComm_t comm, int *rank)
{
    *rank = comm->rank;
    return answer(ncclSuccess);
}

ncclResult_t ncclCommCuDevice(ncclComm_t comm, int *device)
{
    *device = comm->device;
    return answer(ncclSuccess);
}

ncclResult_t ncclGroupStart()
{
    depth++;
    return answer(ncclSuccess);
}

ncclResult_t ncclGroupEnd()
{
    return --depth > 0 ? answer(ncclSuccess) : finish();
}

ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream)
{
    return add(true, (void *)(uintptr_t)from, count, type, peer, comm, stream);
}

ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    return add(false, to, count, type, peer, comm, stream);
}
