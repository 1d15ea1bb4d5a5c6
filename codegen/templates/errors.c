const char *net_strerror(int code)
{
    static const char *const text[16] = {
        "no error",
        "index out of range",
        "an op made a NaN",
        "the arena is too small or misaligned",
        "a file cannot be opened, read or written",
        "not a safetensors file, or truncated",
        "a tensor that is missing, or has another shape or dtype",
        "stopped by the progress function",
#if MODEL_BINDS
        "a tensor without memory bound to it",
#else
        NULL,
#endif
#if MODEL_CUDA
        "CUDA or cuBLAS refused a call",
#else
        NULL,
#endif
        "a negative count of samples, or more than a batch has",
        "an output that the last run did not compute",
#if MODEL_HAS_DATA
        "data that is missing, damaged, or not what the model reads",
        "the data has no further batch",
#endif
#if MODEL_RANKS
#if !MODEL_HAS_DATA
        NULL,
        NULL,
#endif
        "another rank failed, does not answer, or has another program",
#endif
    };
    return text[NET_ERROR_KIND(code)] ? text[NET_ERROR_KIND(code)] : "an unknown error";
}

static GP_UNUSED int failed(net *m, int code)
{
    snprintf(m->detail, sizeof m->detail, "%s", net_strerror(code));
    return code;
}

#if MODEL_RANKS && !MODEL_CUDA
/* What the sums over ranks came to nothing by. */
static int rank_failed(net *m)
{
    snprintf(m->detail, sizeof m->detail, "%s", RANKS->text);
    return NET_ERANK;
}

/* What ends this rank ends all of them. */
static GP_UNUSED int give_up(net *m, int code)
{
    gp_ranks_alarm(RANKS, m->detail);
    return code;
}

#endif
static GP_UNUSED int op_failed(net *m, int op, int kind)
{
#if MODEL_RANKS
    if (kind == NET_ERANK)
        return rank_failed(m);
#endif
    snprintf(m->detail, sizeof m->detail, "%s: %s", net_strerror(kind), op_name[op]);
#if MODEL_RANKS
    give_up(m, kind);
#endif
    return kind | op << 4;
}

#if MODEL_CUDA
#if defined(GPLAN_CHECK_NAN) || defined(GPLAN_POISON)
/* The first row of a table of what ops do that is of this op, or of a later one. The last row of
 * each is of no op. */
#define FIND_OP(table, op) \
    find_op(&(table)[0].op, sizeof *(table), (sizeof(table) / sizeof *(table)) - 1, op)
static size_t find_op(const int *first, size_t row_bytes, size_t high, int op)
{
    size_t low = 0;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (*(const int *)(const void *)((const char *)first + middle * row_bytes) < op)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

#endif
#endif
