/* clang-format off */
static const net *gp_self(const void *gp_model)
{
    return (const net *)gp_model; /* no model has a name that begins so */
}

#if MODEL_SHARDS
/* State of which each rank has a part, with its shape as files have it. */
static const struct {
    size_t saved;
    int rank;
    int64_t dim[8];
} shard[] = {
    MODEL_SHARD_ROWS
};

/* This rank's part of a tensor: the same numbers of each of its rows. */
static void find_shard(const net *m, size_t i, gp_item *t)
{
    size_t k = 0, bytes = gp_size(t->dtype);
    while (k < sizeof shard / sizeof *shard && shard[k].saved != i)
        k++;
    if (k == sizeof shard / sizeof *shard)
        return;
    for (int d = 0; d < shard[k].rank; d++)
        bytes *= (size_t)shard[k].dim[d];
    t->rows = t->rank == 2 ? (size_t)t->dim[0] : 1;
    t->stride = t->bytes / t->rows;
    const size_t row = bytes / t->rows, before = (size_t)net_rank(m) * t->stride;
    t->before = before < row ? before : row;
    t->own = row - t->before < t->stride ? row - t->before : t->stride;
    t->bytes = bytes;
    t->rank = shard[k].rank;
    t->dim = shard[k].dim;
}

#endif
/* A parameter or state as files know it. */
static gp_item item(const void *model, size_t i)
{
    const net_tensor *t = &tensor[SAVED + i];
    void *at = data(gp_self(model), SAVED + i);
#if MODEL_CUDA
#if MODEL_SHARDS
    gp_item saved = {t->name, t->dtype, t->rank, t->dim, at, t->bytes, 0, 0, 0, 0,
                     gp_self(model)->stream};
    find_shard(gp_self(model), i, &saved);
#else
    const gp_item saved = {t->name, t->dtype, t->rank, t->dim, at, t->bytes,
                           gp_self(model)->stream};
#endif
#else
#if MODEL_SHARDS
    gp_item saved = {t->name, t->dtype, t->rank, t->dim, at, t->bytes, 0, 0, 0, 0};
    find_shard(gp_self(model), i, &saved);
#else
    const gp_item saved = {t->name, t->dtype, t->rank, t->dim, at, t->bytes};
#endif
#endif
    return saved;
}

#if MODEL_MAPS
/* items: empty, or the mapped file that is bound instead. */
static int load_from(net *m, const char *path, gp_items items)
{
    int code;
#else
int net_load(net *m, const char *path)
{
    int code;
    gp_items items = {0};
#endif
#if MODEL_CUDA
    WAIT;
#endif
    unsigned char seen[SAVED_COUNT / 8 + 1] = {0};
    items.item = item;
    items.model = m;
    items.count = items.needed = SAVED_COUNT;
    items.seen = seen;
    items.detail = m->detail;
    items.detail_size = sizeof m->detail;
#if MODEL_PREPARES
    m->prepared = 0;
#endif
#if MODEL_KEEPS_STATE
#if MODEL_HAS_MAIN
    gp_note note[] = {{"step", 0}, {"seed", m->seed}, {"best", 0}, {"since", 0}, {"evaluated", 0}};
#else
    gp_note note[] = {{"step", 0}, {"seed", m->seed}};
#endif
    items.needed = NEEDED_COUNT;
    items.note = note;
    items.notes = sizeof note / sizeof *note;
#endif
#if MODEL_MAPS
    code = items.mapped ? gp_map(&items) : gp_load(path, &items);
#else
    code = gp_load(path, &items);
#endif
#if MODEL_KEEPS_STATE
    if (code != GP_OK)
        return code;
#if MODEL_HAS_DATA
    data_stop(m); /* its order is the seed's */
#endif
    m->step = note[0].number;
    m->seed = note[1].number;
#if MODEL_HAS_MAIN
    for (size_t i = 0; i < 3; i++)
        m->note[i] = note[2 + i].number;
#endif
    if (NEEDED_COUNT < SAVED_COUNT && !(seen[NEEDED_COUNT / 8] >> NEEDED_COUNT % 8 & 1)) {
        m->step = 0; /* parameters alone */
#if MODEL_CUDA
        code = initialize(m, NEEDED_COUNT, m->seed);
#else
        initialize(m, NEEDED_COUNT, m->seed);
#endif
    }
#endif
    return code;
}

#if MODEL_MAPS
int net_load(net *m, const char *path)
{
    const gp_items file = {0};
    return load_from(m, path, file);
}
#endif

static net *gp_own(const net *gp_model)
{
    return (net *)(uintptr_t)gp_model; /* init wrote to it, so it is no constant */
}

#if MODEL_RANKS
/* While a rank writes. */
static void look_up(const void *gp_model)
{
#if MODEL_CUDA
    beat(gp_own(gp_self(gp_model)));
#else
    const net *m = gp_self(gp_model);
    gp_ranks_look_up(RANKS);
#endif
}

static int share_of(void *gp_model, void *bytes, size_t count)
{
    net *m = (net *)gp_model;
#if MODEL_CUDA
    return share(m, 0, bytes, count);
#else
    return gp_ranks_share(RANKS, bytes, count);
#endif
}

static int agree_of(void *gp_model, int code, char *text, size_t size)
{
    net *m = (net *)gp_model;
#if MODEL_CUDA
    return agree(m, code, text, size);
#else
    return gp_ranks_agree(RANKS, code, text, size);
#endif
}

static gp_meeting meeting_of(net *m)
{
    const gp_meeting all = {m, net_rank(m), share_of, agree_of};
    return all;
}

/* What all ranks came to; where a rank is gone, why. */
static int met(net *m, int code)
{
#if !MODEL_CUDA
    if (RANKS->failed)
        return rank_failed(m);
    RANKS->heard = code != NET_OK && net_rank(m) > 0;
#else
    (void)m;
#endif
    return code;
}

int net_check_files(net *m, const char *path)
{
    const gp_meeting all = meeting_of(m);
    return met(m, gp_check_shared(&all, path, m->detail, sizeof m->detail));
}

static int save_to(net *m, const char *path)
{
#else
/* Changes what net_error says of the model, and nothing else. */
int net_save(const net *gp_model, const char *path)
{
    net *m = gp_own(gp_model);
#endif
#if MODEL_CUDA
    int code;
    WAIT;
#endif
#if MODEL_BINDS_PARAMS
    for (size_t i = SAVED; i < SAVED + SAVED_COUNT; i++)
        if (!data(m, i)) {
            snprintf(m->detail, sizeof m->detail, "%s: has no memory bound to it", tensor[i].name);
            return NET_ETENSOR;
        }
#endif
#if MODEL_KEEPS_STATE
#if MODEL_HAS_MAIN
    gp_note note[] = {{"step", m->step}, {"seed", m->seed}, {"best", m->note[0]},
                      {"since", m->note[1]}, {"evaluated", m->note[2]}};
#else
    gp_note note[] = {{"step", m->step}, {"seed", m->seed}};
#endif
    const gp_items items = {.item = item, .model = m, .count = SAVED_COUNT, .note = note,
                            .notes = sizeof note / sizeof *note, .detail = m->detail,
#if MODEL_RANKS
                            .detail_size = sizeof m->detail, .look = look_up};
#else
                            .detail_size = sizeof m->detail};
#endif
#else
    const gp_items items = {.item = item, .model = m, .count = SAVED_COUNT, .detail = m->detail,
#if MODEL_RANKS
                            .detail_size = sizeof m->detail, .look = look_up};
#else
                            .detail_size = sizeof m->detail};
#endif
#endif
#if MODEL_SHARDS
    const gp_meeting all = meeting_of(m);
    return gp_save_shards(&all, path, &items);
#else
    return gp_save(path, &items);
#endif
}

#if MODEL_RANKS
int net_save(const net *m, const char *path)
{
    net *own = gp_own(m);
#if MODEL_SHARDS
    return met(own, save_to(own, path));
#else
    char why[sizeof m->detail];
    const int saved = net_rank(m) == 0 ? save_to(own, path) : NET_OK;
    snprintf(why, sizeof why, "%s", net_rank(m) == 0 ? m->detail : "");
    const int code = met(own, agree_of(own, saved, why, sizeof why));
    if (code != NET_ERANK)
        snprintf(own->detail, sizeof own->detail, "%s", why);
    return code;
#endif
}

#endif

#if MODEL_HAS_CONSTANTS
/* Which of the saved tensors are in MODEL_CONSTANTS_NAME. */
static const size_t constants[] = {
    MODEL_CONSTANTS
};

static gp_item constant(const void *model, size_t i)
{
    return item(model, constants[i]);
}

int net_load_constants(net *m, const char *path)
{
    enum { COUNT = sizeof constants / sizeof *constants };
#if MODEL_CUDA
    int code;
    WAIT;
#endif
    unsigned char seen[COUNT / 8 + 1] = {0};
    const gp_items items = {.item = constant, .model = m, .count = COUNT, .needed = COUNT,
                            .seen = seen, .detail = m->detail, .detail_size = sizeof m->detail};
#if MODEL_PREPARES
    m->prepared = 0;
#endif
    return gp_load(path, &items);
}

#endif
#if MODEL_BINDS_PARAMS
int net_bind(net *m, const char *name, void *data_)
{
    for (size_t i = SAVED; i < SAVED + SAVED_COUNT; i++)
        if (strcmp(tensor[i].name, name) == 0 && slot[i] >= 0) {
            m->external[slot[i]] = data_;
            m->detail[0] = 0;
#if MODEL_PREPARES
            m->prepared = 0;
#endif
            return NET_OK;
        }
    snprintf(m->detail, sizeof m->detail, "%s: no parameter has this name", name);
    return NET_ETENSOR;
}

#endif
#if MODEL_MAPS
static void take_mapped(const void *model, size_t i, const unsigned char *at)
{
    net *m = gp_own(gp_self(model));
    if (slot[SAVED + i] >= 0)
        m->external[slot[SAVED + i]] = (void *)(uintptr_t)at;
    else
        memcpy(data(m, SAVED + i), at, tensor[SAVED + i].bytes);
}

int net_map(net *m, const void *file, size_t bytes)
{
    gp_items items = {0};
    if (!file)
        return failed(m, NET_EFILE);
    items.mapped = file;
    items.mapped_bytes = bytes;
    items.bind = take_mapped;
    return load_from(m, NULL, items);
}

#endif
/* clang-format on */
