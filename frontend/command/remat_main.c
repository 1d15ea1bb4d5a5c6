/* `gplan remat`: a schedule for a raw cost graph. */
#include "frontend/base/clock.h"
#include "frontend/base/size.h"
#include "frontend/command/options.h"
#include "frontend/command/output.h"
#include "planner/remat/remat.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bytes, or a share of the peak of the given order. */
static bool parse_budget(const char *text, int64_t peak, int64_t *result)
{
    char *end;
    uint64_t bytes;
    double percent = strtod(text, &end);
    if (end != text && strcmp(end, "%") == 0 && percent >= 0 &&
        percent / 100 * (double)peak < 0x1p62) {
        *result = (int64_t)(percent / 100 * (double)peak);
        return true;
    }
    if (!size_parse(text, &bytes))
        return false;
    *result = (int64_t)bytes;
    return true;
}

/* A schedule, and what it is of. */
typedef struct {
    const RematProblem *problem;
    const RematSchedule *schedule;
} Written;

static void write_schedule(FILE *to, const void *what)
{
    const Written *written = what;
    remat_write(to, written->problem, written->schedule);
}

static int cannot(const char *verb, const char *path)
{
    if (errno == ENOMEM)
        out_of_memory(0);
    fprintf(stderr, "gplan remat: cannot %s %s: %s\n", verb, path, strerror(errno));
    return 1;
}

static const char *stop_text(const RematResult *result)
{
    switch (result->stop) {
    case REMAT_PROVED:
        return "nothing better exists";
    case REMAT_TIMED_OUT:
        return "cut by --seconds";
    case REMAT_CANCELLED:
        return "cancelled";
    case REMAT_HOPELESS:
        return "the budget is below the floor";
    case REMAT_DONE:
        break;
    }
    return "effort spent";
}

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

static void report(FILE *out, const RematProblem *problem, const RematResult *result,
                   int64_t baseline, int64_t budget, double seconds)
{
    double extra = percent(result->cost - result->base_cost, result->base_cost);
    double bound = percent(result->bound - result->base_cost, result->base_cost);
    fprintf(out, "nodes        %u, run %zu times\n", (unsigned)problem->nodes,
            result->schedule.count);
    fprintf(out, "extra cost   %.4f%%\n", extra);
    if (budget >= 0) {
        if (result->fits)
            fprintf(out, "lower bound  %.4f%%, gap %.4f points\n", bound, extra - bound);
        fprintf(out, "budget       %lld bytes, %.2f%% of the given order\n", (long long)budget,
                percent((double)budget, (double)baseline));
    }
    fprintf(out, "peak         %lld bytes, %.2f%% of the given order\n", (long long)result->peak,
            percent((double)result->peak, (double)baseline));
    fprintf(out, "floor        %lld bytes, %.2f%%\n", (long long)result->floor,
            percent((double)result->floor, (double)baseline));
    fprintf(out, "search       effort %llu, %.2f s, %s\n", (unsigned long long)result->effort,
            seconds, stop_text(result));
}

/* ---- while it runs: ctrl-C ends the search, not the program; a line shows how far it is ---- */

static volatile sig_atomic_t interrupted;

static void interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

typedef struct {
    double base_cost, shown; /* shown: seconds when the line was last written */
} Line;

static bool show_progress(const RematProgress *progress, void *data)
{
    Line *line = data;
    if (progress->seconds - line->shown < 0.2)
        return true;
    line->shown = progress->seconds;
    double done = (double)progress->effort / (double)(progress->total ? progress->total : 1);
    if (progress->fits)
        fprintf(stderr, "\r%3.0f%%  extra cost %.4f%%, bound %.4f%%, %.0f s ", 100 * done,
                percent(progress->cost - line->base_cost, line->base_cost),
                percent(progress->bound - line->base_cost, line->base_cost), progress->seconds);
    else
        fprintf(stderr, "\r%3.0f%%  nothing fits yet, %.0f s ", 100 * done, progress->seconds);
    return true;
}

static RematResult search(const Options *o, const RematProblem *problem, int64_t budget,
                          Arena *arena)
{
    RematOptions options = {.budget = budget,
                            .effort = o->effort,
                            .seconds = o->seconds,
                            .seed = o->seed ? o->seed : 1};
    struct sigaction action = {.sa_handler = interrupt}, before;
    Line line = {0};
    for (RematId x = 0; x < problem->nodes; x++)
        line.base_cost += problem->node[x].cost;
    bool terminal = !o->quiet && isatty(STDERR_FILENO);
    options.cancel = &interrupted;
    options.progress = terminal ? show_progress : NULL;
    options.data = &line;
    sigaction(SIGINT, &action, &before);
    RematResult result = budget < 0 ? remat_minimize(problem, &options, arena)
                                    : remat_solve(problem, &options, arena);
    sigaction(SIGINT, &before, NULL);
    if (terminal && line.shown > 0)
        fprintf(stderr, "\r%60s\r", "");
    return result;
}

static int solve(const Options *o, const RematProblem *problem, Arena *arena)
{
    RematSchedule given = remat_baseline(problem, arena);
    int64_t baseline = remat_evaluate(problem, &given).peak, budget = -1;
    if (strcmp(o->limit, "min") != 0 && !parse_budget(o->limit, baseline, &budget)) {
        fprintf(stderr,
                "gplan remat: --budget '%s': expected bytes (8G, 4096), a share (60%%) or min\n",
                o->limit);
        return 2;
    }
    bool standard = o->output && strcmp(o->output, "-") == 0;
    double begin = clock_seconds();
    RematResult result = search(o, problem, budget, arena);
    if (!o->quiet)
        report(standard ? stderr : stdout, problem, &result, baseline, budget,
               clock_seconds() - begin);
    if (!result.fits) {
        fprintf(stderr, "gplan remat: no schedule within %lld bytes: %s %lld bytes\n",
                (long long)budget,
                result.stop == REMAT_HOPELESS ? "one node alone needs" : "the smallest met needs",
                (long long)(result.stop == REMAT_HOPELESS ? result.floor : result.peak));
        return 1;
    }
    Written written = {problem, &result.schedule};
    if (standard)
        remat_write(stdout, problem, &result.schedule);
    else if (o->output && !file_write(o->output, write_schedule, &written))
        return cannot("write", o->output);
    return 0;
}

int remat_main(Arena *arena, const Options *o)
{
    if (!o->limit) {
        fprintf(stderr, "gplan remat: within which --budget? Give bytes, a share, or min\n");
        return 2;
    }
    bool standard = !strcmp(o->input.at[0], "-");
    FILE *file = standard ? stdin : fopen(o->input.at[0], "r");
    if (!file)
        return cannot("read", o->input.at[0]);
    RematProblem problem;
    bool ok = remat_read(file, standard ? "<stdin>" : o->input.at[0], arena, &problem, stderr);
    if (!standard)
        fclose(file);
    return ok ? solve(o, &problem, arena) : 1;
}
