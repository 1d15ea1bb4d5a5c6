/* ---- Other ranks ---- */

#define LINK ((cudaStream_t)m->link)
#define COMMUNICATOR ((ncclComm_t)m->communicator)
/* Planned for what moves, and for what ranks say. */
#define MOVES (m->arena + MODEL_RANKS_AT)

static gp_nccl link_of(const net *m)
{
    gp_nccl n;
    memset(&n, 0, sizeof n);
    n.comm = COMMUNICATOR;
    n.stream = LINK;
    n.ready = (cudaEvent_t)m->ready;
    n.summed = m->summed;
    n.rank = m->rank;
    n.ranks = NET_RANKS;
    n.most = MODEL_RANKS_SUMS;
    gp_nccl_begin(&n, MOVES, MODEL_RANKS_BYTES);
    return n;
}

/* Ends all that moves: others find out, or wait for this rank in vain. */
static int give_up(net *m, int code)
{
    if (m->communicator)
        (void)ncclCommAbort(COMMUNICATOR);
    m->communicator = NULL;
    return code;
}

static int link_failed(net *m, const char *why)
{
    snprintf(m->detail, sizeof m->detail, "rank %d: %s", m->rank, why);
    return give_up(m, NET_ERANK);
}

/* What NCCL said of a call within an op. */
static int rank_failed(net *m)
{
    char why[sizeof m->detail - 40];
    snprintf(why, sizeof why, "NCCL: %s",
             m->communicator ? ncclGetLastError(COMMUNICATOR) : "the communicator was aborted");
    return link_failed(m, why);
}

static int nccl_checked(net *m, ncclResult_t why)
{
    if (why == ncclSuccess)
        return NET_OK;
    snprintf(m->detail, sizeof m->detail, "rank %d: NCCL: %s", m->rank, ncclGetErrorString(why));
    return give_up(m, NET_ERANK);
}

static int is_connected(net *m)
{
    if (m->communicator)
        return NET_OK;
    snprintf(m->detail, sizeof m->detail, "rank %d has given up before", m->rank);
    return NET_ERANK;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Until the stream is done; not for ever, for it may wait for another rank. */
static int await(net *m, cudaStream_t stream)
{
    const struct timespec a_while = {0, 20000};
    const double begin = now();
    ncclResult_t why = ncclSuccess;
    cudaError_t error;
    for (int64_t looks = 0; (error = cudaStreamQuery(stream)) == cudaErrorNotReady; looks++) {
        if (looks < 1000)
            continue;
        if (m->communicator && ncclCommGetAsyncError(COMMUNICATOR, &why) == ncclSuccess &&
            why != ncclSuccess && why != ncclInProgress) {
            char text[100];
            snprintf(text, sizeof text, "another rank failed: %s", ncclGetErrorString(why));
            return link_failed(m, text);
        }
        if (m->communicator && now() - begin > m->timeout) {
            char text[100];
            snprintf(text, sizeof text, "another rank does not answer for %g s", m->timeout);
            return link_failed(m, text);
        }
        nanosleep(&a_while, NULL);
    }
    return checked(m, error);
}

/* Bytes of one rank for all others. */
static int share(net *m, int from, void *bytes, size_t count)
{
    int code = is_connected(m);
    const gp_nccl n = link_of(m);
    if (code != NET_OK)
        return code;
    HERE;
    for (size_t at = 0, some; at < count; at += some) {
        some = count - at < GP_NCCL_SHARE ? count - at : (size_t)GP_NCCL_SHARE;
        unsigned char *piece = (unsigned char *)bytes + at;
        if (m->rank == from)
            CHECK(cudaMemcpyAsync(MOVES, piece, some, cudaMemcpyHostToDevice, LINK));
        if ((code = nccl_checked(m, gp_nccl_share(&n, from, some))) != NET_OK)
            return code;
        if (m->rank != from)
            CHECK(cudaMemcpyAsync(piece, MOVES, some, cudaMemcpyDeviceToHost, LINK));
        if ((code = await(m, LINK)) != NET_OK)
            return code;
    }
    return NET_OK;
}

/* What all ranks have to say. */
static int exchange(net *m, gp_nccl_said own, gp_nccl_said *all)
{
    int code = is_connected(m);
    const gp_nccl n = link_of(m);
    if (code != NET_OK)
        return code;
    HERE;
    CHECK(cudaMemcpyAsync(gp_nccl_all_said(&n) + m->rank, &own, sizeof own, cudaMemcpyHostToDevice,
                          LINK));
    if ((code = await(m, LINK)) != NET_OK ||
        (code = nccl_checked(m, gp_nccl_exchange(&n))) != NET_OK)
        return code;
    CHECK(cudaMemcpyAsync(all, gp_nccl_all_said(&n), NET_RANKS * sizeof *all,
                          cudaMemcpyDeviceToHost, LINK));
    return await(m, LINK);
}

enum { BUSY = -1 }; /* a rank that writes a file, and not an error */

/* A rank that writes tells the others so, before they take it for lost: they are in `agree`, or
 * write too. Where that fails, so does what comes next. */
static void beat(net *m)
{
    gp_nccl_said all[NET_RANKS], own;
    if (now() - m->beat < m->timeout / 4)
        return;
    memset(&own, 0, sizeof own);
    own.error = BUSY;
    (void)exchange(m, own, all);
    m->beat = now();
}

/* What each rank came to, when all have: the first that is not NET_OK is that of all. */
static int agree(net *m, int code, char *text, size_t size)
{
    gp_nccl_said all[NET_RANKS], own;
    int busy = 1, moved;
    memset(&own, 0, sizeof own);
    for (own.error = code; busy;) {
        if ((moved = exchange(m, own, all)) != NET_OK)
            return moved;
        busy = 0;
        for (int k = 0; k < NET_RANKS; k++)
            busy |= all[k].error == BUSY;
    }
    m->beat = now();
    for (int k = 0; k < NET_RANKS; k++)
        if (all[k].error != NET_OK)
            return (moved = share(m, k, text, size)) == NET_OK ? (int)all[k].error : moved;
    return NET_OK;
}

/* The loss of all ranks; and whether one of them failed, or is at another step. */
static int total_loss(net *m)
{
    const gp_nccl n = link_of(m);
    return nccl_checked(m, gp_nccl_total(&n, STATE, STREAM));
}

static int heard(net *m, const gp_state *told)
{
    int code;
    const int rank = told->heard - 1, op = told->reason - 1;
    m->ran = 0;
    CHECK(cudaMemsetAsync(&STATE->error, 0, sizeof told->error, STREAM));
    CHECK(cudaMemsetAsync(&STATE->heard, 0, sizeof told->heard, STREAM));
    if (op < 0)
        snprintf(m->detail, sizeof m->detail, "rank %d has another seed or step than rank 0", rank);
    else
        snprintf(m->detail, sizeof m->detail, "rank %d: %s: %s", rank, net_strerror(NET_EINDEX),
                 op_name[op]);
    return rank == m->rank && op >= 0 ? NET_EINDEX | op << 4 : NET_ERANK;
}

/* All ranks have the same number; else `what` they have differs. */
static int same_on_all(net *m, uint64_t number, const char *what)
{
    gp_nccl_said all[NET_RANKS], own;
    memset(&own, 0, sizeof own);
    own.same = number;
    const int code = exchange(m, own, all);
    if (code != NET_OK)
        return code;
    for (int k = 0; k < NET_RANKS; k++)
        if (all[k].same != all[0].same) {
            snprintf(m->detail, sizeof m->detail, "rank %d has %s than rank 0", k, what);
            return give_up(m, NET_ERANK);
        }
    return NET_OK;
}

static int link_begin(net *m, void *communicator)
{
    int code, ranks = 0, device = -1;
    const ncclComm_t given = (ncclComm_t)communicator;
    m->timeout = 300;
    if (!given || ncclCommCount(given, &ranks) != ncclSuccess ||
        ncclCommUserRank(given, &m->rank) != ncclSuccess ||
        ncclCommCuDevice(given, &device) != ncclSuccess) {
        snprintf(m->detail, sizeof m->detail, "there is no communicator of NCCL");
        return NET_ERANK;
    }
    if (ranks != NET_RANKS || device != m->device) {
        snprintf(m->detail, sizeof m->detail,
                 "the program is for %d ranks and on device %d, but the communicator has %d and is "
                 "on device %d",
                 NET_RANKS, m->device, ranks, device);
        return NET_ERANK;
    }
    cudaStream_t link;
    CHECK(cudaStreamCreateWithFlags(&link, cudaStreamNonBlocking));
    m->link = link;
    for (int i = -1; i < MODEL_RANKS_SUMS; i++) {
        cudaEvent_t event;
        CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
        *(i < 0 ? &m->ready : &m->summed[i]) = event;
    }
    m->communicator = communicator;
    m->beat = now();
    return same_on_all(m, UINT64_C(MODEL_PLAN_HASH), "another program");
}

static void link_end(net *m)
{
    if (m->communicator && m->link)
        (void)await(m, LINK);
    for (int i = -1; i < MODEL_RANKS_SUMS; i++) {
        void **event = i < 0 ? &m->ready : &m->summed[i];
        if (*event)
            (void)cudaEventDestroy((cudaEvent_t)*event);
        *event = NULL;
    }
    if (m->link)
        (void)cudaStreamDestroy(LINK);
    m->link = NULL;
}

int net_rank(const net *m)
{
    return m->rank;
}

void net_timeout(net *m, double seconds)
{
    m->timeout = seconds;
}

int net_is_connected(const net *m)
{
    return m->communicator != NULL;
}

#ifdef GPLAN_MPI
int net_connect(void **communicator, const void *world)
{
    MPI_Comm given;
    ncclUniqueId id;
    ncclComm_t made = NULL;
    int rank = 0, ranks = 0;
    memcpy(&given, world, sizeof given);
    memset(&id, 0, sizeof id);
    MPI_Comm_rank(given, &rank);
    MPI_Comm_size(given, &ranks);
    const ncclResult_t why = rank == 0 ? ncclGetUniqueId(&id) : ncclSuccess;
    MPI_Bcast(&id, (int)sizeof id, MPI_BYTE, 0, given);
    const ncclResult_t begun = ncclCommInitRank(&made, ranks, id, rank);
    *communicator = made;
    return (int)(why != ncclSuccess ? why : begun);
}

#endif
