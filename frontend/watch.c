/* A long search, watched. The first ctrl-C ends the search with the best plan it has; the second
 * ends the program, as ever. */
#include "frontend/watch.h"

#include <unistd.h>

static volatile sig_atomic_t interrupted;

static struct {
    struct sigaction before;
    bool terminal;
    double shown; /* seconds when the line was last written */
} watching;

static void interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

static void show(const PlanProgress *p, void *data)
{
    (void)data;
    if (p->seconds - watching.shown < 0.2 && p->seconds >= watching.shown)
        return;
    watching.shown = p->seconds;
    if (p->fits && p->least_cost > 0 && p->bound > 0)
        fprintf(stderr, "\rbudget %u of %u: %+.2f%% work, %.2f points above the bound, %.0f s   ",
                p->done, p->most, 100 * (p->cost / p->least_cost - 1),
                100 * (p->cost - p->bound) / p->least_cost, p->seconds);
    else
        fprintf(stderr, "\rsmallest so far: %.2f MiB, %.0f s   ", (double)p->arena / (1 << 20),
                p->seconds);
    fflush(stderr);
}

void watch_begin(const Options *options)
{
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND};
    watching.terminal = !options->quiet && isatty(STDERR_FILENO);
    watching.shown = -1;
    sigaction(SIGINT, &action, &watching.before);
}

void watch_end(void)
{
    sigaction(SIGINT, &watching.before, NULL);
    if (watching.terminal && watching.shown >= 0)
        fprintf(stderr, "\r%70s\r", "");
    watching.shown = -1;
}

bool watch_stopped(void)
{
    return interrupted;
}

void watch(PlanOptions *plan)
{
    plan->cancel = &interrupted;
    plan->progress = watching.terminal ? show : NULL;
}
