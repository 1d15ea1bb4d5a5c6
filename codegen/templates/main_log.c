/* ---- What is seen of a run: a line, and a log ---- */

static double epochs_done(const run *r)
{
    return r->epoch ? (double)r->m.step / (double)r->epoch : 0;
}

/* h:mm:ss */
static void print_time(double seconds)
{
    const unsigned long whole = (unsigned long)(seconds + 0.5);
    printf("%lu:%02lu:%02lu", whole / 3600, whole / 60 % 60, whole % 60);
}

#if MODEL_RANKS
/* mpirun stands in between. */
static int is_terminal(void)
{
    return 0;
}
#else
static int is_terminal(void)
{
    return isatty(STDOUT_FILENO);
}
#endif

/* On a terminal one line that changes, elsewhere a line each. */
static void show(run *r, double time)
{
    const int terminal = is_terminal();
    const double seconds = time - r->begin;
    const uint64_t done = r->m.step - r->first;
    printf("%sepoch %.2f  step %" PRIu64 "/%" PRIu64 "  ", terminal ? "\r" : "", epochs_done(r),
           r->m.step, r->total);
    print_sums(&r->sum);
    printf("  %.0f samples/s  left ", r->sum.samples / (time - r->sum_begin + 1e-9));
    print_time(done ? seconds / (double)done * (double)(r->total - r->m.step) : 0);
    printf(terminal ? "\033[K" : "\n");
    fflush(stdout);
    r->line_open = terminal;
    r->shown = time;
}

static void end_line(run *r)
{
    if (r->line_open)
        putchar('\n');
    r->line_open = 0;
    fflush(stdout);
}

/* A number that JSON and CSV know. */
static void log_number(run *r, const char *name, double number)
{
    fprintf(r->log, r->is_json ? ", \"%s\": " : ",", name);
    if (isfinite(number))
        fprintf(r->log, "%.9g", number);
    else
        fputs(r->is_json ? "null" : "nan", r->log);
}

/* A row of the log; what is in it is on its way to the disk when the next step begins. */
static void log_row(run *r, const char *part, const sums *sum, double seconds)
{
    const double share = sum->samples > 0 ? 1 / sum->samples : 0;
    if (!r->log)
        return;
    fprintf(r->log, r->is_json ? "{\"step\": %" PRIu64 ", \"part\": \"%s\"" : "%" PRIu64 ",%s",
            r->m.step, part);
    log_number(r, "epoch", epochs_done(r));
    log_number(r, "loss", sum->loss * share);
    for (int i = 0; i < METRICS; i++)
        log_number(r, metric[i].name, sum->metric[i] * share);
    log_number(r, "lr", net_lr(&r->m));
    log_number(r, "samples_per_second", sum->samples / (seconds + 1e-9));
    log_number(r, "seconds", now() - r->begin);
    fputs(r->is_json ? "}\n" : "\n", r->log);
    fflush(r->log);
}

/* Where the rows end that are of the run as it was loaded: what a run that was killed logged after
 * its last save comes again. */
static long find_end(const run *r)
{
    char line[4096];
    long end = 0;
    while (fgets(line, sizeof line, r->log) && strchr(line, '\n')) {
        const uint64_t step = strtoull(line + strcspn(line, "0123456789\n"), NULL, 10);
        const uint64_t last = strstr(line, "eval") ? r->m.note[EVALUATED] : r->m.step;
        if (step > last)
            break;
        end = ftell(r->log);
    }
    return end;
}

static int log_open(run *r)
{
    const char *dot = r->s.log ? strrchr(r->s.log, '.') : NULL;
    if (!r->s.log)
        return 0;
    r->is_json = dot && (strcmp(dot, ".jsonl") == 0 || strcmp(dot, ".json") == 0);
    r->log = r->m.step ? fopen(r->s.log, "r+") : NULL;
    if (!r->log)
        r->log = fopen(r->s.log, "w+");
    if (!r->log)
        return say("%s: %s", r->s.log, strerror(errno));
    const long end = find_end(r);
    if (ftruncate(fileno(r->log), end) != 0 && errno != EINVAL) /* a pipe has no end */
        return say("%s: %s", r->s.log, strerror(errno));
    fseek(r->log, end, SEEK_SET);
    if (end == 0 && !r->is_json) {
        fputs("step,part,epoch,loss", r->log);
        for (int i = 0; i < METRICS; i++)
            fprintf(r->log, ",%s", metric[i].name);
        fputs(",lr,samples_per_second,seconds\n", r->log);
    }
    return 0;
}

static int log_failed(const run *r)
{
    return r->log && ferror(r->log) ? say("%s: cannot be written", r->s.log) : 0;
}
