/* Sums over ranks that NCCL connects: the buffers and the order of C's (ranks.h), on a stream of
 * their own.
 *
 * NCCL's reductions add in an order of their own, so it moves bytes and nothing else. A tensor is
 * cut into pieces, one for each rank in turn, or one of each rank's shard. In a group of sends and
 * receives all parts of a piece go to its owner at once; a kernel adds them in rank order: ((r0 +
 * r1) + r2) + ...; and a second group takes the sum to all others. Begin and end are events: the
 * link's stream waits for the gradient, and whoever reads the sum for the link's stream. All of
 * that can be captured. */
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

/* What is done with a tensor: as in ranks_state.h. `to` is as long as a shard where that is apart
 * from what it is of. */
enum { GP_NCCL_ADDS = 1, GP_NCCL_ON = 2, GP_NCCL_SPREADS = 4, GP_NCCL_APART = 8 };

typedef struct {
    gp_real *of, *to;
    int64_t count, part; /* numbers; of those, what each rank owns (0: pieces in turn) */
    int how;
} gp_nccl_what;

/* The next pieces of a tensor: each rank owns one, `at` numbers into all that it owns. */
typedef struct {
    int64_t at, length;
} gp_nccl_pieces;

/* The piece of rank `owner` among them. */
typedef struct {
    int64_t begin, count; /* 0: none is left for it */
} gp_nccl_piece;

GP_UNUSED static inline gp_nccl_piece gp_nccl_piece_of(const gp_nccl *n, const gp_nccl_what *w,
                                                       gp_nccl_pieces all, int owner)
{
    gp_nccl_piece p;
    p.begin = w->part ? owner * w->part + all.at : all.at * n->ranks + owner * all.length;
    const int64_t left = w->count - p.begin, own = w->part ? w->part - all.at : left;
    const int64_t rest = left < own ? left : own;
    p.count = rest < 0 ? 0 : rest < all.length ? rest : all.length;
    return p;
}

/* Parts go to the owners of pieces. */
GP_HOST ncclResult_t gp_nccl_gather(const gp_nccl *n, const gp_nccl_what *w, gp_nccl_pieces all)
{
    const gp_nccl_piece own = gp_nccl_piece_of(n, w, all, n->rank);
    GP_NCCL(ncclGroupStart());
    for (int k = 0; k < n->ranks; k++) {
        const gp_nccl_piece p = gp_nccl_piece_of(n, w, all, k);
        gp_real *part = gp_nccl_parts(n) + (k - (k > n->rank)) * n->length;
        if (k == n->rank)
            continue;
        if (p.count > 0)
            GP_NCCL(ncclSend(w->of + p.begin, (size_t)p.count, ncclFloat, k, n->comm, n->stream));
        if (own.count > 0)
            GP_NCCL(ncclRecv(part, (size_t)own.count, ncclFloat, k, n->comm, n->stream));
    }
    return ncclGroupEnd();
}

/* What owners have goes to all. */
GP_HOST ncclResult_t gp_nccl_spread(const gp_nccl *n, const gp_nccl_what *w, gp_nccl_pieces all)
{
    const gp_nccl_piece own = gp_nccl_piece_of(n, w, all, n->rank);
    GP_NCCL(ncclGroupStart());
    for (int k = 0; k < n->ranks; k++) {
        const gp_nccl_piece p = gp_nccl_piece_of(n, w, all, k);
        if (k == n->rank)
            continue;
        if (own.count > 0)
            GP_NCCL(
                ncclSend(w->to + own.begin, (size_t)own.count, ncclFloat, k, n->comm, n->stream));
        if (p.count > 0)
            GP_NCCL(ncclRecv(w->to + p.begin, (size_t)p.count, ncclFloat, k, n->comm, n->stream));
    }
    return ncclGroupEnd();
}

/* Numbers that each rank owns, and those of a piece: a short tensor is divided too. */
GP_UNUSED static inline int64_t gp_nccl_each(const gp_nccl *n, const gp_nccl_what *w)
{
    return w->part ? w->part : (w->count + n->ranks - 1) / n->ranks;
}

GP_UNUSED static inline int64_t gp_nccl_length(const gp_nccl *n, const gp_nccl_what *w)
{
    const int64_t whole = (gp_nccl_each(n, w) + 63) / 64 * 64;
    return whole < n->length ? whole : n->length;
}

/* One rank adds its own part alone. */
GP_HOST ncclResult_t gp_nccl_add(const gp_nccl *n, const gp_nccl_what *w, gp_nccl_pieces all)
{
    const gp_nccl_piece own = gp_nccl_piece_of(n, w, all, n->rank);
    gp_real *to = w->to + (w->how & GP_NCCL_APART ? all.at : own.begin);
    if (own.count > 0 && (n->ranks > 1 || w->of != w->to))
        GP_NCCL_CUDA(GP_START(gp_add_ranks, gp_blocks(own.count, GP_BLOCK), GP_BLOCK, 0, n->stream,
                              to, w->of + own.begin, gp_nccl_parts(n), n->length, own.count,
                              n->rank, n->ranks, w->how & GP_NCCL_ON));
    return ncclSuccess;
}

/* That is done when the link's stream comes to it, after what `stream` has done so far. */
GP_HOST ncclResult_t gp_nccl_sum(gp_nccl *n, gp_nccl_what w, cudaStream_t stream)
{
    const int64_t each = gp_nccl_each(n, &w);
    gp_nccl_pieces all = {0, gp_nccl_length(n, &w)};
    if (n->begun == n->ended) /* their events are free again */
        n->begun = n->ended = 0;
    if (n->begun == n->most)
        return ncclInvalidUsage;
    GP_NCCL(gp_nccl_follow(n, stream));
    for (; all.at < each; all.at += all.length) {
        if (w.how & GP_NCCL_ADDS && n->ranks > 1)
            GP_NCCL(gp_nccl_gather(n, &w, all));
        if (w.how & GP_NCCL_ADDS)
            GP_NCCL(gp_nccl_add(n, &w, all));
        if (w.how & GP_NCCL_SPREADS && n->ranks > 1)
            GP_NCCL(gp_nccl_spread(n, &w, all));
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

/* Each rank has its row of a table; then all have all, and `stream` waits for it. */
GP_HOST ncclResult_t gp_nccl_rows(const gp_nccl *n, gp_real *table, int64_t row,
                                  cudaStream_t stream)
{
    GP_NCCL(gp_nccl_follow(n, stream));
    GP_NCCL(ncclGroupStart());
    for (int k = 0; k < n->ranks; k++) {
        if (k == n->rank)
            continue;
        GP_NCCL(ncclSend(table + n->rank * row, (size_t)row, ncclFloat, k, n->comm, n->stream));
        GP_NCCL(ncclRecv(table + k * row, (size_t)row, ncclFloat, k, n->comm, n->stream));
    }
    GP_NCCL(ncclGroupEnd());
    return gp_nccl_join(n, stream);
}

/* ---- What all ranks say --------------------------------------------------------------------- */

/* Bytes of one rank go to all others. */
GP_HOST ncclResult_t gp_nccl_share(const gp_nccl *n, int from, size_t bytes)
{
    GP_NCCL(ncclGroupStart());
    for (int k = 0; k < n->ranks && n->rank == from; k++)
        if (k != from)
            GP_NCCL(ncclSend(n->memory, bytes, ncclChar, k, n->comm, n->stream));
    if (n->rank != from)
        GP_NCCL(ncclRecv(n->memory, bytes, ncclChar, from, n->comm, n->stream));
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

/* What the call's stream has done so far is there. */
GP_UNUSED static inline int gp_ranks_put(const gp_call *c, gp_nccl_what what)
{
    const gp_device *d = gp_device_of(c);
    return gp_ranks_code(c, gp_nccl_sum((gp_nccl *)d->ranks, what, d->stream));
}

/* In its place. */
GP_UNUSED static inline int gp_ranks_put_all(const gp_call *c, const gp_tensor *x, int64_t part,
                                             int how)
{
    const gp_nccl_what all = {(gp_real *)x->data, (gp_real *)x->data, gp_count(x), part, how};
    return gp_ranks_put(c, all);
}

GP_UNUSED static inline int gp_ranks_end_sum(const gp_call *c)
{
    const gp_device *d = gp_device_of(c);
    return gp_ranks_code(c, gp_nccl_end((gp_nccl *)d->ranks, d->stream));
}

GP_UNUSED static inline int gp_ranks_move(const gp_call *c, const gp_tensor *x)
{
    if (x->data != c->out[0].data)
        GP_CUDA_CALL(c,
                     cudaMemcpyAsync(c->out[0].data, x->data, (size_t)gp_count(x) * sizeof(gp_real),
                                     cudaMemcpyDeviceToDevice, gp_device_of(c)->stream));
    return GP_OK;
}

/* The numbers of a shard that are this rank's: the last ranks may have less, or none. The rest
 * is 0. */
GP_UNUSED static inline int gp_ranks_clear(const gp_call *c, gp_real *shard, int64_t part,
                                           int64_t count)
{
    const int64_t left = count - gp_device_of(c)->rank * part;
    const int64_t own = left < 0 ? 0 : left < part ? left : part;
    if (own < part)
        GP_CUDA_CALL(c, cudaMemsetAsync(shard + own, 0, (size_t)(part - own) * sizeof *shard,
                                        gp_device_of(c)->stream));
    return GP_OK;
}

/* Operands: a tensor, the state. */
GP_KERNEL(reduce_begin)
{
    const gp_reduce_begin_attr *a = (const gp_reduce_begin_attr *)c->attr;
    const int how = (a->adds ? GP_NCCL_ADDS : 0) | (a->spreads ? GP_NCCL_SPREADS : 0);
    const int code = gp_ranks_move(c, &c->in[0]);
    return code == GP_OK ? gp_ranks_put_all(c, &c->out[0], (int64_t)a->part, how) : code;
}

/* Operands: the tensor that began first of those that did not end, the state. */
GP_KERNEL(reduce_end)
{
    const int code = gp_ranks_end_sum(c);
    return code == GP_OK ? gp_ranks_move(c, &c->in[0]) : code;
}

/* Operands: a parameter, of which this rank has made its shard; the state. */
GP_KERNEL(gather_begin)
{
    const gp_gather_begin_attr *a = (const gp_gather_begin_attr *)c->attr;
    return gp_ranks_put_all(c, &c->out[0], (int64_t)a->part, GP_NCCL_SPREADS);
}

GP_KERNEL(gather_end)
{
    return gp_ranks_end_sum(c);
}

/* Operands: a tensor, the state. Results: the tensor, its shard. */
GP_KERNEL(scatter_begin)
{
    const gp_scatter_begin_attr *a = (const gp_scatter_begin_attr *)c->attr;
    const gp_nccl_what sum = {(gp_real *)c->out[0].data, (gp_real *)c->out[1].data,
                              gp_count(&c->in[0]), (int64_t)a->part, GP_NCCL_ADDS | GP_NCCL_APART};
    int code = gp_ranks_move(c, &c->in[0]);
    if (code == GP_OK)
        code = gp_ranks_clear(c, sum.to, sum.part, sum.count);
    return code == GP_OK ? gp_ranks_put(c, sum) : code;
}

/* Operands: the tensor, its shard, the state. */
GP_KERNEL(scatter_end)
{
    const int code = gp_ranks_end_sum(c);
    return code == GP_OK ? gp_ranks_move(c, &c->in[1]) : code;
}

/* Operands: a tensor, what micro-batches before have come to, the state. That is whole, or a shard.
 * The first begins it, the last sends it to all. */
GP_KERNEL(sum_begin)
{
    const gp_sum_begin_attr *a = (const gp_sum_begin_attr *)c->attr;
    const int apart = gp_count(&c->in[1]) < gp_count(&c->in[0]), first = c->run->micro == 0;
    const gp_nccl_what sum = {
        (gp_real *)c->out[0].data, (gp_real *)c->in[1].data, gp_count(&c->in[0]), (int64_t)a->part,
        GP_NCCL_ADDS | (first ? 0 : GP_NCCL_ON) | (apart ? GP_NCCL_APART : 0) |
            (a->spreads && gp_ranks_is_last(c) ? GP_NCCL_SPREADS : 0)};
    int code = gp_ranks_move(c, &c->in[0]);
    if (code == GP_OK && apart && first)
        code = gp_ranks_clear(c, sum.to, sum.part, sum.count);
    return code == GP_OK ? gp_ranks_put(c, sum) : code;
}

GP_KERNEL(sum_end)
{
    return gp_ranks_end_sum(c);
}

/* Operands: what this rank has; where C has its engine. */
GP_KERNEL(gather_ranks)
{
    const gp_device *d = gp_device_of(c);
    gp_real *table = (gp_real *)c->out[0].data;
    const int64_t row = gp_count(&c->in[0]);
    GP_CUDA_CALL(c, cudaMemcpyAsync(table + d->rank * row, c->in[0].data,
                                    (size_t)row * sizeof(gp_real), cudaMemcpyDeviceToDevice,
                                    d->stream));
    return gp_ranks_code(c, gp_nccl_rows((const gp_nccl *)d->ranks, table, row, d->stream));
}

/* The sum over ranks of what all micro-batches of each have filled in, where it lies. */
GP_KERNEL(reduce_begin_kept)
{
    return gp_ranks_is_last(c) ? gp_ranks_put_all(c, &c->in[0], 0, GP_NCCL_ADDS | GP_NCCL_SPREADS)
                               : GP_OK;
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
