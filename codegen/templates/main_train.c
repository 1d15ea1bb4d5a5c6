/* ---- Evaluation ---- */

#if MODEL_HAS_EVAL
/* Over all samples that are held out, from the first. */
static int evaluate(run *r, sums *sum)
{
    float loss;
    int code = net_seek(&r->m, NET_EVAL, 0);
#if MODEL_RANKS
    while (code == NET_OK && !stopped && (code = net_eval(&r->m, &loss)) == NET_OK) {
        add(sum, &r->m, loss, net_taken(&r->m));
        if (agree(r) != 0)
            return 1;
    }
#else
    while (code == NET_OK && !stopped && (code = net_eval(&r->m, &loss)) == NET_OK)
        add(sum, &r->m, loss, net_taken(&r->m));
#endif
    return code == NET_OK || NET_ERROR_KIND(code) == NET_EEND ? 0 : model_failed(r);
}

#if MODEL_HAS_EVAL_DATA
static int is_due(const run *r)
{
    return r->m.step % r->s.eval_every == 0 || r->m.step == r->total;
}

/* Evaluates, and notes what that says of the run. One that ctrl-C ends early comes again. */
static int judge(run *r)
{
    sums sum = {0};
    double best, loss;
    const double begin = now();
    int status = evaluate(r, &sum);
    if (status != 0 || stopped)
        return status;
    memcpy(&best, &r->m.note[BEST], sizeof best);
    loss = sum.loss / sum.samples;
    const int better = !r->m.note[EVALUATED] || loss < best;
    r->m.note[SINCE] = better ? 0 : r->m.note[SINCE] + 1;
    r->m.note[EVALUATED] = r->m.step;
    if (better)
        memcpy(&r->m.note[BEST], &loss, sizeof loss);
    end_line(r);
    printf("evaluation after epoch %.2f: ", epochs_done(r));
    print_sums(&sum);
    printf("%s\n", better ? "  the best" : "");
    fflush(stdout);
    log_row(r, "eval", &sum, now() - begin);
    if (better && r->s.best && net_save(&r->m, r->s.best) != NET_OK)
        return model_failed(r);
    return 0;
}

#endif
#endif
/* ---- Training ---- */

/* One more step, and what is told of it. */
static int advance(run *r)
{
    float loss;
    const int code = net_step(&r->m, &loss);
    if (NET_ERROR_KIND(code) == NET_EEND) { /* of all the epochs that the model allows */
        r->total = r->m.step;
        return 0;
    }
    if (code != NET_OK)
        return model_failed(r);
    add(&r->sum, &r->m, loss, NET_BATCH);
#if MODEL_RANKS
    if (agree(r) != 0)
        return 1;
#endif
    const double time = now();
    const int due = r->m.step % r->s.report == 0;
    if (due || (is_terminal() && time - r->shown > 0.2))
        show(r, time);
    if (due) {
        log_row(r, "train", &r->sum, time - r->sum_begin);
        memset(&r->sum, 0, sizeof r->sum);
        r->sum_begin = time;
    }
    return log_failed(r);
}

static int is_over(const run *r)
{
    return stopped || r->m.step >= r->total || (r->s.patience && r->m.note[SINCE] >= r->s.patience);
}

/* To the end, or to a signal. After a failure the last file that was saved is whole. */
static int loop(run *r)
{
    int status = 0;
    r->begin = r->shown = r->sum_begin = now();
    r->first = r->m.step;
#if MODEL_HAS_EVAL && MODEL_HAS_EVAL_DATA
    if (r->m.step && is_due(r) && r->m.note[EVALUATED] < r->m.step)
        status = judge(r);
#endif
    while (status == 0 && !is_over(r)) {
        status = advance(r);
#if MODEL_HAS_EVAL && MODEL_HAS_EVAL_DATA
        if (status == 0 && !stopped && is_due(r))
            status = judge(r);
#endif
        if (status == 0 && r->m.step % r->s.every == 0 && !is_over(r))
            status = save(r);
    }
    if (status == 0)
        status = save(r);
    end_line(r);
    return status;
}

static int set_schedule(run *r)
{
    static const char *const names[] = {"constant", "linear", "cosine"};
    static const int kinds[] = {NET_CONSTANT, NET_LINEAR, NET_COSINE};
    size_t kind = 0;
    if (r->s.lr > 0)
        net_set_lr(&r->m, r->s.lr);
    if (!r->s.schedule && !r->s.warmup)
        return 0; /* the model's own */
    while (kind < 3 && r->s.schedule && strcmp(names[kind], r->s.schedule) != 0)
        kind++;
    if (kind == 3)
        return 1 + say("--schedule '%s': expected constant, linear or cosine", r->s.schedule);
    net_schedule(&r->m, kinds[kind], r->s.warmup, r->total, r->s.floor);
    return 0;
}

/* Megabytes that were resident at the peak; 0: the system does not say. */
static double resident(void)
{
    char line[256];
    double kilobytes = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "VmHWM:", 6) == 0)
            kilobytes = strtod(line + 6, NULL);
    if (file)
        fclose(file);
    return kilobytes / 1024;
}

#if MODEL_HAS_LOSS_SCALE
/* Steps that overflowed in f16 and changed nothing. */
static void print_skipped(run *r)
{
    double scale;
    uint64_t skipped;
    if (net_loss_scale(&r->m, &scale, &skipped) == NET_OK && skipped)
        printf("%" PRIu64 " steps overflowed in f16 and were skipped; the loss scale is %g\n",
               skipped, scale);
}

#endif
/* New parameters, or those of a file. */
static int begin(run *r)
{
#if MODEL_RANKS
    if (net_check_files(&r->m, r->s.save) != NET_OK)
        return model_failed(r);
    int64_t goes_on = r->s.resume && access(r->s.save, F_OK) == 0;
    if (net_agree(&r->m, &goes_on) != NET_OK)
        return model_failed(r);
    const char *from = goes_on ? r->s.save : r->s.load;
    if (rank == 0)
        remove_remains(r);
#else
    const char *from = r->s.resume && access(r->s.save, F_OK) == 0 ? r->s.save : r->s.load;
    remove_remains(r);
#endif
    net_reset(&r->m, r->s.seed);
    if (from && net_load(&r->m, from) != NET_OK)
        return model_failed(r);
    if (net_data(&r->m, NET_TRAIN, r->s.data) != NET_OK)
        return model_failed(r);
#if MODEL_HAS_EVAL && MODEL_HAS_EVAL_DATA
    if (net_data(&r->m, NET_EVAL, r->s.eval_data ? r->s.eval_data : r->s.data) != NET_OK)
        return model_failed(r);
#else
    if (r->s.patience || r->s.best || r->s.eval_data)
        return 1 + say("there are no samples to evaluate on, so --patience and --best have no use");
#endif
    r->epoch = (uint64_t)net_batches(&r->m, NET_TRAIN);
    if (!r->epoch)
        return say("there are fewer samples than a batch has");
    r->total = r->s.steps ? r->s.steps : r->s.epochs * r->epoch;
    r->s.every = r->s.every ? r->s.every : r->epoch;
    r->s.eval_every = r->s.eval_every ? r->s.eval_every : r->epoch;
    return set_schedule(r);
}

static int train(run *r)
{
    int status = begin(r);
    if (status == 0)
        status = log_open(r);
    if (status == 0)
        status = loop(r);
    if (r->log && fclose(r->log) != 0 && status == 0)
        status = say("%s: %s", r->s.log, strerror(errno));
    if (status != 0)
        return status;
#if MODEL_HAS_LOSS_SCALE
    print_skipped(r);
#endif
#if MODEL_RANKS
    int64_t kilobytes = (int64_t)(resident() * 1024);
    if (net_agree(&r->m, &kilobytes) != NET_OK)
        return model_failed(r);
    printf("%s after step %" PRIu64 " of %" PRIu64
           ", %.1f s, %.2f MiB resident at the peak on a rank, saved as %s\n",
           stopped ? "stopped" : "done", r->m.step, r->total, now() - r->begin,
           (double)kilobytes / 1024, r->s.save);
#else
    printf("%s after step %" PRIu64 " of %" PRIu64
           ", %.1f s, %.2f MiB resident at the peak, saved as %s\n",
           stopped ? "stopped" : "done", r->m.step, r->total, now() - r->begin, resident(),
           r->s.save);
#endif
    return 0;
}
