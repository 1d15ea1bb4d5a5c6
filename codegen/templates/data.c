/* clang-format off */
/* What the data statements of MODEL_SOURCE say; predict is what a function of the caller's fills. */
MODEL_DATA_FIELDS
static const gp_data_set data_set[] = {
    MODEL_DATA_SETS
};
/* clang-format on */

/* The slots, and what fills them: one source at a time. */
#if MODEL_CUDA
#define SLOTS m->ring
#define LOADER ((gp_data *)(void *)(m->ring + MODEL_DATA_WORK))
static int data_memory(net *m);
static void slot_recall(net *m);
#else
#define SLOTS (m->arena + MODEL_DATA_SLOTS)
#define LOADER ((gp_data *)(void *)(m->arena + MODEL_DATA_WORK))
#endif

static const char *const data_name[] = {"train", "eval", "predict"};

/* Ends the workers; the next run opens its source again. */
static void data_stop(net *m)
{
#if MODEL_CUDA
    slot_recall(m);
#endif
    if (m->open)
        gp_data_close(LOADER);
    m->open = 0;
}

static int data_failed(net *m, int code)
{
    snprintf(m->detail, sizeof m->detail, "%s", gp_data_error(LOADER));
#if MODEL_RANKS
    give_up(m, code);
#endif
    return code;
}

/* The ring is of this source from now on. */
static int data_open(net *m, int which)
{
    gp_data *loader;
    int code;
    if (m->open == which + 1)
        return NET_OK;
    data_stop(m);
#if MODEL_CUDA
    if ((code = data_memory(m)) != NET_OK)
        return code;
#endif
    const gp_data_start start = {
        .path = m->source[which].path,
        .ring = SLOTS,
        .work = LOADER,
        .seed = m->seed,
        .step = which == NET_TRAIN ? (int64_t)m->step : m->source[which].at,
#if MODEL_RANKS
        .rank = which == NET_PREDICT ? 0 : net_rank(m),
        .ranks = which == NET_PREDICT ? 1 : NET_RANKS,
#endif
#if MODEL_AS_RANKS
        .as_ranks = MODEL_RANKS_COUNT,
#endif
        .fill = m->source[which].fill,
        .user = m->source[which].user,
        .samples = m->source[which].given
    };
    const int row = which != NET_PREDICT ? which
                    : start.fill         ? NET_PREDICT + 1
                    : start.user         ? NET_PREDICT + 2
                                         : NET_PREDICT;
    code = gp_data_open(&loader, &data_set[row], &start);
    if (code != GP_OK) {
        data_failed(m, NET_EDATA);
        gp_data_close(loader);
        return NET_EDATA;
    }
    m->open = which + 1;
    m->head = start.step;
    m->source[which].samples = gp_data_samples(loader);
    m->source[which].batches = gp_data_steps(loader);
#if MODEL_RANKS
    if (which != NET_PREDICT)
        return same_on_all(m, (uint64_t)gp_data_samples(loader), "another number of samples");
#endif
    return NET_OK;
}

/* The next batch of a source: its slots are next, and so many of its samples count. */
static int batch_begin(net *m, int which)
{
    const int code = data_open(m, which);
    if (code != NET_OK)
        return code;
    const int64_t at = which == NET_TRAIN ? (int64_t)m->step : m->source[which].at;
    if (m->head != at) {
#if MODEL_CUDA
        slot_recall(m);
#endif
        gp_data_seek(LOADER, at);
    }
    m->head = -1; /* until it is over */
#if MODEL_RANKS
    const int64_t batch = which == NET_PREDICT ? NET_BATCH / NET_RANKS : NET_BATCH;
#else
    const int64_t batch = NET_BATCH;
#endif
    const int64_t left = m->source[which].samples - at % m->source[which].batches * batch;
    m->taken = left < batch ? left : batch;
#if MODEL_WEIGHS_SAMPLES
    m->valid = m->taken == batch ? 0 : m->taken;
#endif
    return NET_OK;
}

static void batch_end(net *m, int which)
{
    m->head = which == NET_TRAIN ? (int64_t)m->step : ++m->source[which].at;
}

/* The next slot of the ring, which is ours until it is done. */
static int slot_next(net *m, int which, gp_data_slot *slot)
{
    const int code = gp_data_next(LOADER, slot);
    if (code == GP_DATA_END) {
        m->source[which].at = 0;
        m->taken = 0;
        snprintf(m->detail, sizeof m->detail, "data %s: there is no further batch",
                 data_name[which]);
        return NET_EEND;
    }
    if (code != GP_OK)
        return data_failed(m, NET_EDATA);
    m->slot = slot->number;
    return NET_OK;
}

static void slot_done(net *m)
{
    gp_data_slot slot;
    memset(&slot, 0, sizeof slot);
    slot.number = m->slot;
    gp_data_done(LOADER, &slot);
}

#if MODEL_CUDA
#include "data_device.c"
#else
/* The model reads the next slot where it lies, until it gives it back. */
static int slot_take(net *m, int which)
{
    gp_data_slot slot;
    const int code = slot_next(m, which, &slot);
    if (code == NET_OK)
        m->place = (size_t)slot.place;
    return code;
}

static void slot_give(net *m)
{
    slot_done(m);
}
#endif

static int is_source(net *m, int which)
{
    m->detail[0] = 0;
    if (which >= NET_TRAIN && which <= NET_PREDICT)
        return 1;
    snprintf(m->detail, sizeof m->detail, "there is no data source %d", which);
    return 0;
}

int net_data(net *m, int which, const char *path)
{
    if (!is_source(m, which))
        return NET_EDATA;
    data_stop(m);
    m->source[which].path = path;
    m->source[which].fill = NULL;
    m->source[which].user = NULL;
    m->source[which].at = 0;
    return data_open(m, which);
}

int net_feed(net *m, int which, net_fill *fill, void *user, int64_t samples)
{
    if (!is_source(m, which))
        return NET_EDATA;
    if (data_set[which].path) {
        snprintf(m->detail, sizeof m->detail, "data %s is read from files", data_name[which]);
        return NET_EDATA;
    }
    data_stop(m);
    m->source[which].fill = fill;
    m->source[which].user = user;
    m->source[which].given = samples;
    m->source[which].at = 0;
    return data_open(m, which);
}

#if MODEL_READS_IMAGES
int net_files(net *m, const char *const *file, int64_t count)
{
    return net_feed(m, NET_PREDICT, NULL, (void *)(uintptr_t)file, count);
}

#endif
int64_t net_samples(const net *m, int which)
{
    return which >= NET_TRAIN && which <= NET_PREDICT ? m->source[which].samples : 0;
}

int64_t net_batches(const net *m, int which)
{
    return which >= NET_TRAIN && which <= NET_PREDICT ? m->source[which].batches : 0;
}

int64_t net_taken(const net *m)
{
    return m->taken;
}

int64_t net_skipped(const net *m)
{
    return m->open ? gp_data_skipped(LOADER) : 0;
}

int net_seek(net *m, int which, int64_t batch)
{
    if (!is_source(m, which))
        return NET_EDATA;
    if (which == NET_TRAIN || batch < 0) {
        snprintf(m->detail, sizeof m->detail, "data %s cannot begin at batch %lld: %s",
                 data_name[which], (long long)batch,
                 batch < 0 ? "they count from 0" : "its batch is the step");
        return NET_EDATA;
    }
    m->source[which].at = batch;
    return NET_OK;
}

void net_close(net *m)
{
    data_stop(m);
#if MODEL_RANKS && !MODEL_CUDA
    gp_mpi_end(RANKS);
#endif
}
