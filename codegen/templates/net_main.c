/* Trains, evaluates and runs the model MODEL_NAME of MODEL_HEADER_NAME. gplan wrote it; it is yours
 * to change.
 *
#if MODEL_RANKS
 * mpirun -n MODEL_RANKS_COUNT starts it, as so many ranks: each reads and computes its part of
 * every batch.
 *
#endif
 * A run is its file: parameters, optimizer state, step, seed and what is below in `note`, saved as
 * a whole or not at all. One that is killed and resumed ends with the same file, bit for bit, as
 * one that was not.
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include MODEL_HEADER

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#if MODEL_RANKS
#include <mpi.h>
#endif
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define NAME "net"
enum { TRAIN = 1, EVAL = 2, PREDICT = 4 }; /* commands */

static const struct {
    const char *name;
    const float *(*of)(const net *m);
} metric[] = {
    MODEL_METRICS{NULL, NULL},
};
enum { METRICS = sizeof metric / sizeof *metric - 1 };

/* ---- Options ---- */

typedef struct {
    const char *data, *eval_data, *save, *load, *best, *log, *schedule;
    uint64_t epochs, steps, every, keep, eval_every, report, patience, warmup, seed, threads;
    double lr, floor;
#if MODEL_RANKS
    double timeout;
#endif
    int resume;
    char **file; /* of predict */
    size_t files;
} settings;

typedef enum { FLAG, TEXT, COUNT, NUMBER } option_kind;
#define FIELD(name) offsetof(settings, name)
static const struct option {
    unsigned commands; /* that take it */
    const char *name, *argument;
    option_kind kind;
    size_t field;
    const char *help;
} option[] = {
    {TRAIN | EVAL, "data", "PATH", TEXT, FIELD(data), "of the samples, instead of the model's own"},
    {TRAIN, "eval-data", "PATH", TEXT, FIELD(eval_data), "the same for those it is evaluated on"},
    {TRAIN, "epochs", "N", COUNT, FIELD(epochs), "passes over the samples in all (1)"},
    {TRAIN, "steps", "N", COUNT, FIELD(steps), "or so many steps in all"},
    {TRAIN, "save", "FILE", TEXT, FIELD(save), "where the run is saved (" NAME ".safetensors)"},
    {TRAIN, "every", "N", COUNT, FIELD(every), "save after every N steps too (an epoch)"},
    {TRAIN, "keep", "K", COUNT, FIELD(keep), "keep the last K of these as FILE.STEP.safetensors"},
    {TRAIN, "resume", NULL, FLAG, FIELD(resume), "go on from FILE, where there is one"},
    {TRAIN, "load", "FILE", TEXT, FIELD(load), "begin with another run, or with parameters alone"},
    {EVAL | PREDICT, "load", "FILE", TEXT, FIELD(load), "what to run (" NAME ".safetensors)"},
    {TRAIN, "eval", "N", COUNT, FIELD(eval_every), "evaluate after every N steps (an epoch)"},
    {TRAIN, "patience", "N", COUNT, FIELD(patience), "stop after N evaluations without a better"},
    {TRAIN, "best", "FILE", TEXT, FIELD(best), "save the run there when its loss is the best yet"},
    {TRAIN, "log", "FILE", TEXT, FIELD(log),
     "numbers of the run: CSV, or lines of JSON for .jsonl"},
    {TRAIN, "report", "N", COUNT, FIELD(report), "a line after every N steps (100)"},
    {TRAIN, "lr", "X", NUMBER, FIELD(lr), "learning rate, instead of the model's own"},
    {TRAIN, "schedule", "KIND", TEXT, FIELD(schedule), "of it: constant, linear or cosine"},
    {TRAIN, "warmup", "N", COUNT, FIELD(warmup), "steps in which it rises"},
    {TRAIN, "floor", "X", NUMBER, FIELD(floor), "the share of it that linear and cosine end with"},
    {TRAIN, "seed", "N", COUNT, FIELD(seed), "of parameters, order and dropout (1)"},
#if MODEL_RANKS
    {TRAIN | EVAL, "timeout", "SECONDS", NUMBER, FIELD(timeout),
     "in which a rank must answer, or all of them end (300)"},
#endif
    {TRAIN | EVAL | PREDICT, "threads", "N", COUNT, FIELD(threads), "that compute"},
};
enum { OPTIONS = sizeof option / sizeof *option };

static const struct {
    unsigned bit;
    const char *name, *arguments, *help;
} command[] = {
    {TRAIN, "train", "", "learn from the samples, and save"},
#if MODEL_HAS_EVAL
    {EVAL, "eval", "", "loss and metrics of samples that were held out"},
#endif
#if MODEL_HAS_FORWARD
#if MODEL_READS_IMAGES
    {PREDICT, "predict", " FILE...", "outputs for each image"},
#else
    {PREDICT, "predict", " PATH", "outputs for each of the samples there"},
#endif
#endif
};
enum { COMMANDS = sizeof command / sizeof *command };

#if MODEL_RANKS
#include "main_ranks.c"

#endif
static int say(const char *format, ...)
{
    char text[1024]; /* a line at once, so that it stays one */
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
#if MODEL_RANKS
    if (is_running)
        fprintf(stderr, NAME ": rank %d: %s\n", rank, text);
    else if (rank == 0)
        fprintf(stderr, NAME ": %s\n", text);
#else
    fprintf(stderr, NAME ": %s\n", text);
#endif
    return 1;
}

static int help(void)
{
    for (size_t c = 0; c < COMMANDS; c++) {
        printf("%s" NAME " %s [options]%s\n  %s\n", c ? "\n" : "usage: ", command[c].name,
               command[c].arguments, command[c].help);
        for (size_t i = 0; i < OPTIONS; i++)
            if (option[i].commands & command[c].bit) {
                const char *word = option[i].argument ? option[i].argument : "";
                printf("    --%s %-*s  %s\n", option[i].name, 16 - (int)strlen(option[i].name),
                       word, option[i].help);
            }
    }
    printf("\nctrl-C ends a training run after its step, and saves it: --resume goes on.\n");
    return 0;
}

/* False where the text is not what the option takes. */
static int read_value(const struct option *o, const char *text, settings *s)
{
    void *field = (char *)s + o->field;
    char *end = NULL;
    errno = 0;
    switch (o->kind) {
    case FLAG:
        *(int *)field = 1;
        return 1;
    case TEXT:
        *(const char **)field = text;
        return *text != 0;
    case COUNT:
        *(uint64_t *)field = strtoull(text, &end, 10);
        return *text >= '0' && *text <= '9' && !*end && !errno && *(uint64_t *)field > 0;
    default:
        *(double *)field = strtod(text, &end);
        return end > text && !*end && *(double *)field >= 0 && isfinite(*(double *)field);
    }
}

/* --name VALUE, --name=VALUE, and files. 0, or the exit status: 2. */
static int read_arguments(unsigned bit, char **argument, settings *s)
{
    s->file = argument; /* files move to the front */
    for (char **at = argument; *at; at++) {
        const char *text = *at;
        if (strncmp(text, "--", 2) != 0) {
            s->file[s->files++] = *at;
            continue;
        }
        size_t length = strcspn(text + 2, "="), i = 0;
        while (i < OPTIONS && (!(option[i].commands & bit) || strlen(option[i].name) != length ||
                               memcmp(option[i].name, text + 2, length) != 0))
            i++;
        const char *value = text[2 + length] ? text + 3 + length : NULL;
        if (i == OPTIONS)
            return 1 + say("unknown option %s; --help lists what there is", text);
        if (option[i].argument && !value && !(value = *++at))
            return 1 + say("%s needs a value: %s %s", text, text, option[i].argument);
        if ((!option[i].argument && value) || !read_value(&option[i], value, s))
            return 1 + say("--%s '%s': expected %s", option[i].name, value,
                           option[i].argument ? option[i].argument : "no value");
    }
    if (s->files && bit != PREDICT)
        return 1 + say("what is %s? --help lists what there is", s->file[0]);
    return 0;
}

/* ---- A run ---- */

typedef struct {
    double loss, metric[METRICS + 1];
    double samples; /* that these sums are of */
} sums;

typedef struct {
    net m;
    settings s;
    void *arena;
    uint64_t total, epoch; /* steps: of the run, of an epoch */
    double begin, shown;   /* seconds */
    uint64_t first;        /* step that this process began with */
    sums sum;              /* since the last line */
    double sum_begin;
    FILE *log;
    int is_json, line_open;
} run;

/* Of m->note, which is saved with the parameters. */
enum { BEST, SINCE, EVALUATED }; /* bits of the best loss, evaluations since, step of the last */

#if MODEL_RANKS
static volatile sig_atomic_t caught; /* the signal that came to this rank, */
static int stopped;                  /* and one that came to any of them: see agree */

static void stop(int signal)
{
    caught = signal;
}
#else
static volatile sig_atomic_t stopped; /* the signal */

static void stop(int signal)
{
    stopped = signal;
}
#endif

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int model_failed(run *r)
{
    if (r->line_open)
        putchar('\n');
    r->line_open = 0;
    fflush(stdout);
#if MODEL_RANKS
    is_told = net_heard(&r->m);
    if (is_told)
        return 1;
#endif
    return say("%s", net_error(&r->m));
}

#if MODEL_RANKS
/* A signal that came to one rank stops all of them, after the same step. */
static int agree(run *r)
{
    int64_t signal = caught;
    if (net_agree(&r->m, &signal) != NET_OK)
        return model_failed(r);
    stopped = (int)signal;
    return 0;
}

#endif

static void add(sums *sum, const net *m, float loss, int64_t samples)
{
    const double weight = (double)samples;
    sum->loss += weight * (double)loss;
    for (int i = 0; i < METRICS; i++)
        sum->metric[i] += weight * (double)*metric[i].of(m);
    sum->samples += weight;
}

static void print_sums(const sums *sum)
{
    const double share = sum->samples > 0 ? 1 / sum->samples : 0;
    printf("loss %.4f", sum->loss * share);
    for (int i = 0; i < METRICS; i++)
        printf("  %s %.4f", metric[i].name, sum->metric[i] * share);
}

#include "main_log.c"
#include "main_save.c"
#include "main_train.c"

/* ---- Other commands ---- */

#if MODEL_HAS_EVAL
static int eval(run *r)
{
    sums sum = {0};
    if (net_data(&r->m, NET_EVAL, r->s.data) != NET_OK || net_load(&r->m, r->s.load) != NET_OK)
        return model_failed(r);
    int status = evaluate(r, &sum);
    if (status == 0) {
        print_sums(&sum);
        putchar('\n');
    }
    return status;
}

#endif
#if MODEL_HAS_FORWARD
/* An element of an output, whatever it holds. */
static double element(const net_tensor *t, const unsigned char *data, size_t i)
{
    switch (t->dtype) {
    case NET_F32:
        return (double)((const float *)(const void *)data)[i];
    case NET_I32:
        return (double)((const int32_t *)(const void *)data)[i];
    case NET_I64:
        return (double)((const int64_t *)(const void *)data)[i];
    default:
        return (double)data[i];
    }
}

/* A sample's part of an output: the index of its largest element, and all of them, or the first. */
static void print_output(const net_tensor *t, const unsigned char *data, int64_t sample)
{
    enum { SHOWN = 16 };
    size_t count = 1, largest = 0;
    for (int d = 1; d < t->rank; d++)
        count *= (size_t)t->dim[d];
    const size_t begin = count * (size_t)sample;
    for (size_t i = 1; i < count; i++)
        largest = element(t, data, begin + i) > element(t, data, begin + largest) ? i : largest;
    printf("  %s", t->name);
    if (count > 1)
        printf(" %zu:", largest);
    for (size_t i = 0; i < count && i < SHOWN; i++)
        printf(" %.4g", element(t, data, begin + i));
    printf(count > SHOWN ? " ..." : "");
}

#if MODEL_RANKS
enum { FORWARD_BATCH = NET_BATCH / NET_RANKS };
#else
enum { FORWARD_BATCH = NET_BATCH };
#endif

/* What there is of samples in the data that the last run took; `first` is the number of the first.
 */
static void print_samples(const run *r, uint64_t first)
{
    size_t tensors;
    const net_tensor *t = net_tensors(&tensors);
    for (int64_t i = 0; i < net_taken(&r->m); i++) {
#if MODEL_READS_IMAGES
        printf("%s:", r->s.file[first + (uint64_t)i]);
#else
        printf("%" PRIu64 ":", first + (uint64_t)i);
#endif
        for (size_t k = 0; k < tensors; k++)
            if (t[k].kind == NET_OUTPUT && t[k].rank > 0 && t[k].dim[0] == FORWARD_BATCH)
                print_output(&t[k], r->m.arena + t[k].offset, i);
        putchar('\n');
    }
}

static int predict(run *r)
{
    uint64_t first = 0;
    int code;
#if MODEL_RANKS
    if (rank > 0) /* needs nobody's help */
        return 0;
#endif
#if MODEL_READS_IMAGES
    if (!r->s.files)
        return 1 + say("predict: which images?");
    code = net_files(&r->m, (const char *const *)r->s.file, (int64_t)r->s.files);
#else
    if (r->s.files != 1)
        return 1 + say("predict: %s PATH", r->s.files ? "one" : "which samples? Give");
    code = net_data(&r->m, NET_PREDICT, r->s.file[0]);
#endif
    if (code != NET_OK || net_load(&r->m, r->s.load) != NET_OK)
        return model_failed(r);
    while ((code = net_forward(&r->m)) == NET_OK && !stopped) {
        print_samples(r, first);
        first += (uint64_t)net_taken(&r->m);
    }
    return code == NET_OK || NET_ERROR_KIND(code) == NET_EEND ? 0 : model_failed(r);
}

#endif
/* ---- The program ---- */

static int run_command(unsigned bit, run *r)
{
#if MODEL_HAS_EVAL
    if (bit == EVAL)
        return eval(r);
#endif
#if MODEL_HAS_FORWARD
    if (bit == PREDICT)
        return predict(r);
#endif
    return bit == TRAIN ? train(r) : 2;
}

/* Ends as the signal would have ended it, so that whoever waits knows. */
static int end(int status)
{
    if (fflush(stdout) != 0 && status == 0)
        status = say("standard output cannot be written: %s", strerror(errno));
#if MODEL_RANKS
    return leave_ranks(status, stopped);
#else
    if (stopped) {
        signal(stopped, SIG_DFL);
        raise(stopped);
    }
    return status;
#endif
}

/* OpenMP's threads spin while they wait, unless they are told otherwise before the program begins:
 * then whoever reads samples, or any other program, waits for a core that does nothing. So it is
 * told, and begins again. */
static void wait_asleep(char **argv)
{
#ifdef _OPENMP
    if (!getenv("OMP_WAIT_POLICY") && setenv("OMP_WAIT_POLICY", "passive", 1) == 0)
        execv("/proc/self/exe", argv);
#else
    (void)argv;
#endif
}

int main(int argc, char **argv)
{
    wait_asleep(argv); /* where the system has no such path, they spin */
#if MODEL_RANKS
    join_ranks(&argc, &argv);
#endif
    static run r = {.s = {.epochs = 1, .report = 100, .seed = 1}};
    size_t c = 0;
    const char *word = argc > 1 ? argv[1] : "";
    if (strcmp(word, "--help") == 0 || (argc > 2 && strcmp(argv[2], "--help") == 0))
        return end(help());
    while (c < COMMANDS && strcmp(command[c].name, word) != 0)
        c++;
    if (c == COMMANDS)
        return end(1 + say("%s%swhat is there to do? --help lists it", word, *word ? ": " : ""));
    if (read_arguments(command[c].bit, argv + 2, &r.s) != 0)
        return end(2);
    if (!r.s.save)
        r.s.save = NAME ".safetensors";
    if (!r.s.load && command[c].bit != TRAIN)
        r.s.load = NAME ".safetensors";

    struct sigaction action = {.sa_handler = stop, .sa_flags = SA_RESTART | (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (command[c].bit == TRAIN)
        sigaction(SIGPIPE, &action, NULL); /* nobody reads what it says */
    signal(SIGXFSZ, SIG_IGN);              /* a file that may not grow is an error of its own */

    r.arena = aligned_alloc(NET_ARENA_ALIGN, NET_ARENA_BYTES);
#if MODEL_RANKS
    is_running = 1;
    if (!r.arena)
        return end(say("there is no memory for %llu bytes", (unsigned long long)NET_ARENA_BYTES));
    MPI_Comm world = MPI_COMM_WORLD;
    if (net_init(&r.m, r.arena, NET_ARENA_BYTES, &world) != NET_OK)
        return end(model_failed(&r));
    if (r.s.timeout > 0)
        net_timeout(&r.m, r.s.timeout);
    if (rank > 0)
        r.s.log = NULL;
#else
    if (!r.arena || net_init(&r.m, r.arena, NET_ARENA_BYTES) != NET_OK)
        return say("there is no memory for %llu bytes", (unsigned long long)NET_ARENA_BYTES);
#endif
    if (r.s.threads)
        net_threads(&r.m, (int)(r.s.threads < 1024 ? r.s.threads : 1024));
    int status = run_command(command[c].bit, &r);
#if MODEL_RANKS
    if (status != 0) /* nobody waits for the others */
        return end(status);
#endif
    net_close(&r.m);
    free(r.arena);
    return end(status);
}
