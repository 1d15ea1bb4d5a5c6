/* A long search, watched. The first ctrl-C ends the search with the best plan it has; the second
 * ends the program, as ever. */
#include "frontend/command/watch.h"

#include "frontend/base/clock.h"

#include <stdarg.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;

static struct {
    struct sigaction before;
    bool terminal, verbose;
    double shown; /* seconds when the line was last written */
    double end;   /* when the seconds that the user gave are over; 0: never */
    double begin; /* when watch_begin was called */
} watching;

static void interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

static void show(const PlanProgress *p, void *data)
{
    (void)data;
    const double seconds = clock_seconds() - watching.begin; /* one clock for all choices */
    if (watching.shown >= 0 && seconds - watching.shown < 0.2)
        return;
    watching.shown = seconds;
    if (p->fits && p->least_cost > 0 && p->bound > 0)
        fprintf(stderr, "\rbudget %u of %u: %.2f%% extra time in a %s, at least %.2f%%, %.0f s   ",
                p->done, p->most, plan_extra(p->cost, p->least_cost),
                p->training ? "training step" : "forward pass", plan_extra(p->bound, p->least_cost),
                seconds);
    else
        fprintf(stderr, "\rsmallest so far: %.2f MiB, %.0f s   ", (double)p->arena / (1 << 20),
                seconds);
    fflush(stderr);
}

void watch_begin(const Options *options)
{
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND};
    watching.terminal = !options->quiet && isatty(STDERR_FILENO);
    watching.verbose = options->verbose;
    watching.begin = clock_seconds();
    watching.shown = -1;
    watching.end = options->seconds > 0 ? clock_seconds() + options->seconds : 0;
    sigaction(SIGINT, &action, &watching.before);
}

static void wipe(void)
{
    if (watching.terminal && watching.shown >= 0)
        fprintf(stderr, "\r%79s\r", "");
    watching.shown = -1;
}

void watch_end(void)
{
    sigaction(SIGINT, &watching.before, NULL);
    wipe();
}

void watch_say(const char *format, ...)
{
    if (!watching.verbose)
        return;
    wipe();
    fprintf(stderr, "gplan: %7.3f s  ", clock_seconds() - watching.begin);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

bool watch_stopped(void)
{
    return interrupted || (watching.end > 0 && clock_seconds() >= watching.end);
}

static void say(const char *text)
{
    watch_say("%s", text);
}

static void watch(PlanOptions *plan)
{
    double left = watching.end - clock_seconds();
    plan->cancel = &interrupted;
    plan->seconds = watching.end > 0 ? (left > 0.01 ? left : 0.01) : 0;
    plan->progress = watching.terminal ? show : NULL;
    plan->say = watching.verbose ? say : NULL;
}

PlanOptions plan_options(const Options *o)
{
    PlanOptions how = {.budget = o->budget ? o->budget - o->reserve : 0,
                       .micro = o->accumulate,
                       .micro_auto = o->accumulate_auto && !o->infer,
                       .chunked_loss = o->chunked_loss,
                       .epilogues = o->epilogues,
                       .ranks = o->ranks ? o->ranks : o->as_ranks,
                       .as_ranks = o->as_ranks != 0,
                       .shard = o->shard ? (uint8_t)(o->shard - 1) : SHARD_NONE,
                       .shard_auto = o->ranks > 1 && !o->shard,
                       .precision = o->precision == PRECISION_AUTO ? 0 : (uint8_t)o->precision,
                       .precision_auto = o->precision == PRECISION_AUTO,
                       .no_recompute = o->no_recompute,
                       .no_prepared = o->no_prepared,
                       .smallest = o->min_budget,
                       .io_external = o->io_external,
                       .params_external = o->params_external != 0,
                       .effort = o->effort};
    watch(&how);
    return how;
}
