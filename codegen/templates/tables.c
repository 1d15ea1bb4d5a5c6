/* clang-format off */
/* Inputs and outputs, then what files hold: parameters and state. */
#define T(name, kind, dtype, offset, rank, ...)           \
    {name, NET_##kind, NET_##dtype, rank, {__VA_ARGS__}, \
     offset, BYTES_##dtype * COUNT(__VA_ARGS__, 1, 1, 1, 1, 1, 1, 1, 1)}
#if MODEL_PAIRS
/* Two states of a parameter, side by side. */
#define T2(stem, dtype, offset, rank, ...)                         \
    T(stem MODEL_PAIR_ONE, STATE, dtype, offset, rank, __VA_ARGS__), \
    T(stem MODEL_PAIR_OTHER, STATE, dtype,                           \
      (offset) + BYTES_##dtype * COUNT(__VA_ARGS__, 1, 1, 1, 1, 1, 1, 1, 1), rank, __VA_ARGS__)
#endif
#define COUNT(a, b, c, d, e, f, g, h, ...) ((size_t)(a) * (b) * (c) * (d) * (e) * (f) * (g) * (h))
enum { BYTES_BOOL = 1, BYTES_U8 = 1, BYTES_I8 = 1, BYTES_U16 = 2, BYTES_F16 = 2, BYTES_BF16 = 2,
       BYTES_I32 = 4, BYTES_U32 = 4, BYTES_F32 = 4, BYTES_I64 = 8, BYTES_F64 = 8 };
static const net_tensor tensor[] = {
    MODEL_TENSORS
};
#undef T
#if MODEL_PAIRS
#undef T2
#endif
#undef COUNT
enum {
    SAVED = MODEL_SAVED, /* the first that files hold */
#if MODEL_TRAINS
    NEEDED_COUNT = MODEL_NEEDED_COUNT, /* without the state of the optimizer */
#endif
    SAVED_COUNT = MODEL_SAVED_COUNT
};

#if MODEL_BINDS
/* The index of a tensor in external[]; -1: it is in the arena. */
static const int slot[] = {
    MODEL_TENSOR_SLOTS
};

#if !MODEL_EMBEDS
static void *data(const net *m, size_t i)
{
    return slot[i] < 0 ? m->arena + tensor[i].offset : m->external[slot[i]];
}

#endif
static int is_bound(net *m)
{
    for (size_t i = 0; i < sizeof tensor / sizeof *tensor; i++)
        if (slot[i] >= 0 && !m->external[slot[i]]) {
            snprintf(m->detail, sizeof m->detail, "%s: no memory is bound to it", tensor[i].name);
            return 0;
        }
    return 1;
}
#else
static void *data(const net *m, size_t i)
{
    return m->arena + tensor[i].offset;
}
#endif

#if MODEL_HAS_PARAMS
MODEL_INIT_LISTS
/* Initial values of parameters and state, in the order of the tensors; the rest begins with 0. */
#define INIT(kind, a, b) {GP_INIT_##kind, a, b, NULL, 0}
static const gp_init init[SAVED_COUNT] = {
    MODEL_INITS
};
#undef INIT

#endif
static const char *const op_name[] = {
    MODEL_OP_NAMES
};

#ifdef GPLAN_POISON
/* What is dead after an op; -1: free before the first. */
static const struct {
    int op;
    uint64_t offset, bytes;
} death[] = {
    MODEL_DEATHS
};

#endif
/* clang-format on */
