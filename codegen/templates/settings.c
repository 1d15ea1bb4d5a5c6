#if MODEL_TRAINS
void net_set_lr(net *m, double lr)
{
    m->lr = lr;
}

void net_schedule(net *m, int kind, uint64_t warmup, uint64_t steps, double share)
{
    m->schedule = kind;
    m->warmup = warmup;
    m->steps = steps;
    m->share = share;
}

double net_lr(const net *m)
{
    return m->lr * gp_schedule(m->schedule, m->warmup, m->steps, m->share, m->step);
}

void net_seed(net *m, uint64_t seed)
{
    m->seed = seed;
}

#endif
#if MODEL_HAS_LOSS_SCALE
int net_loss_scale(net *m, double *scale, uint64_t *skipped)
{
    gp_real state[3];
    m->detail[0] = 0;
#if MODEL_CUDA
    int code;
    HERE;
    CHECK(
        gp_copy(state, data(m, MODEL_LOSS_SCALE), sizeof state, cudaMemcpyDeviceToHost, m->stream));
#else
    memcpy(state, data(m, MODEL_LOSS_SCALE), sizeof state);
#endif
    *scale = (double)state[GP_SCALE];
    *skipped = (uint64_t)state[GP_SCALE_SKIPPED];
    return NET_OK;
}

#endif
#if MODEL_WEIGHS_SAMPLES
int net_valid(net *m, int64_t samples)
{
    if (samples < 0 || samples > NET_BATCH)
        return failed(m, NET_ESAMPLES);
    m->detail[0] = 0;
    m->valid = samples;
    return NET_OK;
}

#endif
void net_progress(net *m, int (*see)(void *user, uint64_t step, int op, int ops), void *user)
{
    m->progress = see;
    m->user = user;
}

const char *net_error(const net *m)
{
    return m->detail;
}

const char *net_op_name(int op)
{
    return op >= 0 && op < NET_OPS ? op_name[op] : "no op";
}

const net_tensor *net_tensors(size_t *count)
{
    *count = sizeof tensor / sizeof *tensor;
    return tensor;
}

size_t net_sizeof(void)
{
    return sizeof(net);
}

#ifdef GPLAN_PROFILE
void net_profile(net *m, double *seconds)
{
    m->seconds = seconds;
}

void net_profile_print(const net *m)
{
    double all = 0, last = HUGE_VAL;
    for (int op = 0; m->seconds && op < NET_OPS; op++)
        all += m->seconds[op];
    printf("%10.3f ms in %d ops\n", 1e3 * all, NET_OPS);
    for (int shown = 0; m->seconds && shown < NET_OPS && shown < 100;) {
        double next = -1; /* the longest that is shorter than those shown */
        for (int op = 0; op < NET_OPS; op++)
            if (m->seconds[op] < last && m->seconds[op] > next)
                next = m->seconds[op];
        for (int op = 0; op < NET_OPS; op++)
            if (m->seconds[op] == next && ++shown)
                printf("%10.3f ms %5.1f%%  %4d %s\n", 1e3 * next, 100 * next / all, op,
                       op_name[op]);
        last = next;
    }
}
#endif
