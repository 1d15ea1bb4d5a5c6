/* Sums over ranks that NCCL connects: the buffers and the order of C's (ranks.h), on a stream of
 * their own.
 *
 * NCCL's reductions add in an order of their own, so it moves bytes and nothing else. A tensor is
 * cut into pieces, one for each rank in turn. In a group of sends and receives all parts of a
 * piece go to its owner at once; a kernel adds them in rank order: ((r0 + r1) + r2) + ...; and a
 * second group takes the sum to all others. Begin and end are events: the link's stream waits for
 * the gradient, and whoever reads the sum for the link's stream. All of that can be captured. */
#ifndef GP_RANKS_CUH
#define GP_RANKS_CUH

#include "base.cuh"
#include "state.h"

#include "../c/rng.h"

#include <nccl.h>

enum {
    GP_NCCL_HEAD = 4096, /* bytes that ranks share, before what each says of a step */
    GP_NCCL_SHARE = 1024 /* of them, at most at a time */
};

/* What a rank says of a step. */
typedef struct {
    double sum;    /* of its losses */
    uint64_t same; /* that must be equal on all */
    int64_t error; /* as in gp_state */
    int64_t unused;
} gp_nccl_said;
static_assert(sizeof(gp_nccl_said) == 32, "the state was planned smaller");

typedef struct {
    ncclComm_t comm;
    cudaStream_t stream; /* that bytes move on */
    cudaEvent_t ready;   /* what is to be moved is there */
    void *const *summed; /* by sum: a cudaEvent_t */
    int rank, ranks, most, begun, ended;
    unsigned char *memory;
    int64_t length; /* numbers of a piece, at most */
} gp_nccl;

GP_UNUSED static inline gp_nccl_said *gp_nccl_all_said(const gp_nccl *n)
{
    return (gp_nccl_said *)(void *)(n->memory + GP_NCCL_HEAD);
}

/* Where the parts of other ranks arrive, those of the k-th from k * length on. */
GP_UNUSED static inline gp_real *gp_nccl_parts(const gp_nccl *n)
{
    const size_t said = ((size_t)n->ranks * sizeof(gp_nccl_said) + 255) / 256 * 256;
    return (gp_real *)(void *)(n->memory + GP_NCCL_HEAD + said);
}

/* In the memory of `bytes` that was planned. */
GP_HOST void gp_nccl_begin(gp_nccl *n, unsigned char *memory, size_t bytes)
{
    n->memory = memory;
    const size_t taken = (size_t)((unsigned char *)gp_nccl_parts(n) - memory);
    n->length = (int64_t)((bytes - taken) / sizeof(gp_real)) / (n->ranks > 1 ? n->ranks - 1 : 1);
}

/* Returns what NCCL said where it failed. */
#define GP_NCCL(call)                    \
    do {                                 \
        const ncclResult_t why = (call); \
        if (why != ncclSuccess)          \
            return why;                  \
    } while (0)
#define GP_NCCL_CUDA(call) GP_NCCL((call) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError)

/* The link's stream goes on where the other one is now. */
GP_HOST ncclResult_t gp_nccl_follow(const gp_nccl *n, cudaStream_t stream)
{
    GP_NCCL_CUDA(cudaEventRecord(n->ready, stream));
    GP_NCCL_CUDA(cudaStreamWaitEvent(n->stream, n->ready, 0));
    return ncclSuccess;
}

/* And the other way. */
GP_HOST ncclResult_t gp_nccl_join(const gp_nccl *n, cudaStream_t stream)
{
    GP_NCCL_CUDA(cudaEventRecord(n->ready, n->stream));
    GP_NCCL_CUDA(cudaStreamWaitEvent(stream, n->ready, 0));
    return ncclSuccess;
}

/* ---- One sum -------------------------------------------------------------------------------- */

/* Adds the parts of all ranks in their order, `on` to what is there; the sum may be in the place of
 * this rank's part. */
static __global__ GP_UNUSED void gp_add_ranks(gp_real *to, const gp_real *own, const gp_real *parts,
                                              int64_t stride, int64_t count, int rank, int ranks,
                                              int on)
{
    for (GP_EACH(i, count)) {
        const gp_real first = rank == 0 ? own[i] : parts[i];
        gp_real sum = on ? to[i] + first : first;
        for (int k = 1; k < ranks; k++)
            sum += k == rank ? own[i] : parts[(k - (k > rank)) * stride + i];
        to[i] = sum;
    }
}

/* The piece of rank `owner` among the next ones of a tensor. */
typedef struct {
    gp_real *at;
    int64_t count; /* 0: none is left for it */
} gp_nccl_piece;

GP_UNUSED static inline gp_nccl_piece gp_nccl_piece_of(gp_real *x, int64_t left, int64_t length,
                                                       int owner)
{
    const int64_t rest = left - owner * length;
    gp_nccl_piece p;
    p.at = x + owner * length;
    p.count = rest < 0 ? 0 : rest < length ? rest : length;
    return p;
}

/* Parts go to the owners of pieces. */
GP_HOST ncclResult_t gp_nccl_gather(const gp_nccl *n, gp_real *x, int64_t left, int64_t length)
{
    const gp_nccl_piece own = gp_nccl_piece_of(x, left, length, n->rank);
    GP_NCCL(ncclGroupStart());
    for (int k = 0; k < n->ranks; k++) {
        const gp_nccl_piece p = gp_nccl_piece_of(x, left, length, k);
        gp_real *part = gp_nccl_parts(n) + (k - (k > n->rank)) * n->length;
        if (k == n->rank)
            continue;
        if (p.count > 0)
            GP_NCCL(ncclSend(p.at, (size_t)p.count, ncclFloat, k, n->comm, n->stream));
        if (own.count > 0)
            GP_NCCL(ncclRecv(part, (size_t)own.count, ncclFloat, k, n->comm, n->stream));
    }
    return ncclGroupEnd();
}

/* What owners have goes to all. */
GP_HOST ncclResult_t gp_nccl_spread(const gp_nccl *n, gp_real *x, int64_t left, int64_t length)
{
    const gp_nccl_piece own = gp_nccl_piece_of(x, left, length, n->rank);
    GP_NCCL(ncclGroupStart());
    for (int k = 0; k < n->ranks; k++) {
        const gp_nccl_piece p = gp_nccl_piece_of(x, left, length, k);
        if (k == n->rank)
            continue;
        if (own.count > 0)
            GP_NCCL(ncclSend(own.at, (size_t)own.count, ncclFloat, k, n->comm, n->stream));
        if (p.count > 0)
            GP_NCCL(ncclRecv(p.at, (size_t)p.count, ncclFloat, k, n->comm, n->stream));
    }
    return ncclGroupEnd();
}

/* Numbers of a piece: a short tensor is divided too. */
GP_UNUSED static inline int64_t gp_nccl_length(const gp_nccl *n, int64_t count)
{
    const int64_t even = (count + n->ranks - 1) / n->ranks, whole = (even + 63) / 64 * 64;
    return whole < n->length ? whole : n->length;
}

/* What is summed, and where: in its place or apart from it. */
typedef struct {
    gp_real *of, *to;
    int64_t count;
    int on, spreads; /* added to what is there; sent to all, and not left with its owners */
} gp_nccl_what;

/* One rank adds its own part alone. */
GP_HOST ncclResult_t gp_nccl_add(const gp_nccl *n, const gp_nccl_what *w, int64_t at,
                                 int64_t length)
{
    const gp_nccl_piece own = gp_nccl_piece_of(w->of + at, w->count - at, length, n->rank);
    const gp_nccl_piece to = gp_nccl_piece_of(w->to + at, w->count - at, length, n->rank);
    if (own.count > 0 && (n->ranks > 1 || w->of != w->to))
        GP_NCCL_CUDA(GP_START(gp_add_ranks, gp_blocks(own.count, GP_BLOCK), GP_BLOCK, 0, n->stream,
                              to.at, own.at, gp_nccl_parts(n), n->length, own.count, n->rank,
                              n->ranks, w->on));
    return ncclSuccess;
}

/* The tensor is summed when the link's stream comes to it, after what `stream` has done so far. */
GP_HOST ncclResult_t gp_nccl_sum(gp_nccl *n, gp_nccl_what w, cudaStream_t stream)
{
    const int64_t length = gp_nccl_length(n, w.count);
    if (n->begun == n->ended) /* their events are free again */
        n->begun = n->ended = 0;
    if (n->begun == n->most)
        return ncclInvalidUsage;
    GP_NCCL(gp_nccl_follow(n, stream));
    for (int64_t at = 0; at < w.count; at += n->ranks * length) {
        if (n->ranks > 1)
            GP_NCCL(gp_nccl_gather(n, w.of + at, w.count - at, length));
        GP_NCCL(gp_nccl_add(n, &w, at, length));
        if (n->ranks > 1 && w.spreads)
            GP_NCCL(gp_nccl_spread(n, w.to + at, w.count - at, length));
    }
    GP_NCCL_CUDA(cudaEventRecord((cudaEvent_t)n->summed[n->begun++], n->stream));
    return ncclSuccess;
}

/* The stream waits for the tensor that began first of those that did not end. */
GP_HOST ncclResult_t gp_nccl_end(gp_nccl *n, cudaStream_t stream)
{
    if (n->ended == n->begun)
        return ncclInvalidUsage;
    GP_NCCL_CUDA(cudaStreamWaitEvent(stream, (cudaEvent_t)n->summed[n->ended++], 0));
    return ncclSuccess;
}

/* ---- What all ranks say --------------------------------------------------------------------- */

/* Bytes at `from` of rank 0 go to all others. */
GP_HOST ncclResult_t gp_nccl_share(const gp_nccl *n, size_t bytes)
{
    GP_NCCL(ncclGroupStart());
    for (int k = 1; k < n->ranks && n->rank == 0; k++)
        GP_NCCL(ncclSend(n->memory, bytes, ncclChar, k, n->comm, n->stream));
    if (n->rank > 0)
        GP_NCCL(ncclRecv(n->memory, bytes, ncclChar, 0, n->comm, n->stream));
    return ncclGroupEnd();
}

/* What each rank says goes to all others. */
GP_HOST ncclResult_t gp_nccl_exchange(const gp_nccl *n)
{
    gp_nccl_said *said = gp_nccl_all_said(n);
    GP_NCCL(ncclGroupStart());
    for (int k = 0; k < n->ranks; k++) {
        if (k == n->rank)
            continue;
        GP_NCCL(ncclSend(said + n->rank, sizeof *said, ncclChar, k, n->comm, n->stream));
        GP_NCCL(ncclRecv(said + k, sizeof *said, ncclChar, k, n->comm, n->stream));
    }
    return ncclGroupEnd();
}

static __global__ GP_UNUSED void gp_nccl_say(gp_nccl_said *said, const gp_state *s)
{
    said->sum = s->sum;
    said->same = gp_random_mix(s->run.seed, s->run.step);
    said->error = s->error;
    said->unused = 0;
}

/* The loss of all ranks, added in their order; and the first rank that has something else to say.
 */
static __global__ GP_UNUSED void gp_nccl_hear(gp_state *s, const gp_nccl_said *said, int ranks)
{
    double sum = said[0].sum;
    for (int k = 1; k < ranks; k++)
        sum += said[k].sum;
    s->sum = sum;
    for (int k = 0; k < ranks && s->heard == 0; k++)
        if (said[k].error != 0 || said[k].same != said[0].same) {
            s->heard = 1 + k;
            s->reason = (int32_t)said[k].error;
        }
}

/* The loss of all ranks, where `stream` has that of this one. */
GP_HOST ncclResult_t gp_nccl_total(const gp_nccl *n, gp_state *s, cudaStream_t stream)
{
    gp_nccl_said *said = gp_nccl_all_said(n);
    GP_NCCL(gp_nccl_follow(n, stream));
    GP_NCCL_CUDA(GP_START(gp_nccl_say, 1, 1, 0, n->stream, said + n->rank, s));
    GP_NCCL(gp_nccl_exchange(n));
    GP_NCCL_CUDA(GP_START(gp_nccl_hear, 1, 1, 0, n->stream, s, said, n->ranks));
    return gp_nccl_join(n, stream);
}

/* ---- Ops ------------------------------------------------------------------------------------- */

/* All that is done here waits for the last micro-batch of this rank. */
GP_UNUSED static inline int gp_ranks_is_last(const gp_call *c)
{
    return c->run->micro + 1 >= c->run->micros;
}

/* What NCCL said of a kernel's call. */
GP_UNUSED static inline int gp_ranks_code(const gp_call *c, ncclResult_t why)
{
    gp_device_of(c)->why = (int)why;
    return why == ncclSuccess ? GP_OK : GP_ERANK;
}

/* In its place. */
GP_UNUSED static inline int gp_ranks_begin_sum(const gp_call *c, const gp_tensor *x)
{
    const gp_device *d = gp_device_of(c);
    const gp_nccl_what all = {(gp_real *)x->data, (gp_real *)x->data, gp_count(x), 0, 1};
    return gp_ranks_code(c, gp_nccl_sum((gp_nccl *)d->ranks, all, d->stream));
}

GP_UNUSED static inline int gp_ranks_end_sum(const gp_call *c)
{
    const gp_device *d = gp_device_of(c);
    return gp_ranks_code(c, gp_nccl_end((gp_nccl *)d->ranks, d->stream));
}

GP_UNUSED static inline int gp_ranks_move(const gp_call *c)
{
    const gp_tensor *x = &c->in[0];
    if (x->data != c->out[0].data)
        GP_CUDA_CALL(c,
                     cudaMemcpyAsync(c->out[0].data, x->data, (size_t)gp_count(x) * sizeof(gp_real),
                                     cudaMemcpyDeviceToDevice, gp_device_of(c)->stream));
    return GP_OK;
}

/* Operands: a tensor, the state. */
GP_KERNEL(reduce_begin)
{
    const int code = gp_ranks_move(c);
    return code == GP_OK ? gp_ranks_begin_sum(c, &c->out[0]) : code;
}

/* Operands: the tensor that began first of those that did not end, the state. */
GP_KERNEL(reduce_end)
{
    const int code = gp_ranks_end_sum(c);
    return code == GP_OK ? gp_ranks_move(c) : code;
}

/* Operands: a tensor, what micro-batches before have come to, the state. The first begins it, the
 * last sends it to all. */
GP_KERNEL(sum_begin)
{
    const gp_device *d = gp_device_of(c);
    const gp_nccl_what sum = {(gp_real *)c->out[0].data, (gp_real *)c->in[1].data,
                              gp_count(&c->in[0]), c->run->micro > 0, gp_ranks_is_last(c)};
    const int code = gp_ranks_move(c);
    return code == GP_OK ? gp_ranks_code(c, gp_nccl_sum((gp_nccl *)d->ranks, sum, d->stream))
                         : code;
}

GP_KERNEL(sum_end)
{
    return gp_ranks_end_sum(c);
}

/* The sum over ranks of what all micro-batches of each have filled in, where it lies. */
GP_KERNEL(reduce_begin_kept)
{
    return gp_ranks_is_last(c) ? gp_ranks_begin_sum(c, &c->in[0]) : GP_OK;
}

GP_KERNEL(reduce_end_kept)
{
    return gp_ranks_is_last(c) ? gp_ranks_end_sum(c) : GP_OK;
}

static __global__ GP_UNUSED void gp_set_part(gp_real *table, const gp_real *part, int64_t rows,
                                             int64_t width, const gp_run *run)
{
    const int64_t micros = run->micros > 0 ? run->micros : 1, ranks = GP_PARTS(run) / micros;
    const int64_t first = (run->micro * ranks + GP_PART(run) / micros) * width;
    for (GP_EACH(i, rows * width))
        if (i >= first && i < first + width)
            table[i] = part[i - first];
        else if (run->micro == 0)
            table[i] = 0;
}

/* Operands: a table with a row for each micro-batch of all ranks, the row of this one. Summed over
 * ranks it has all rows, since the others have zeros where this rank has its own. */
GP_KERNEL(stage_part)
{
    const gp_tensor *all = &c->in[0], *part = &c->in[1];
    GP_LAUNCH(c, gp_set_part, gp_blocks(gp_count(all), GP_BLOCK), GP_BLOCK, 0,
              (gp_real *)c->out[0].data, (const gp_real *)part->data, all->dim[0], all->dim[1],
              gp_device_of(c)->run);
    return GP_OK;
}

#endif
