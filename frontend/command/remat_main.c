/* `gplan remat`: a schedule for a raw cost graph. */
#include "frontend/base/clock.h"
#include "frontend/base/size.h"
#include "frontend/command/output.h"
#include "planner/remat/remat.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char HELP[] =
    "usage: gplan remat FILE --budget N|P% [-o SCHEDULE] [options]\n"
    "Finds the cheapest order of running the nodes of a graph, some of them more than once,\n"
    "whose live values fit the budget.\n"
    "\n"
    "  -b, --budget SIZE  bytes (K, M, G, T are powers of 1024), or P% of the peak of the given\n"
    "                     order; 'min' looks for the smallest peak instead\n"
    "  -o FILE            write the schedule, a node a line\n"
    "  --effort N         how much to search, in counted work (default 10000: a few seconds)\n"
    "  --seconds S        stop after this time in any case\n"
    "  --seed N           another seed, another search (default 1)\n"
    "  --quiet            print nothing but errors\n"
    "  --help             this text\n"
    "\n"
    "FILE (- is standard input) holds numbers,\n"
    "    NODES EDGES        then for each node, in a valid order,\n"
    "    SIZE COST          then for each edge, nodes counted from 0,\n"
    "    FROM TO\n"
    "or lines with names, # begins a comment:\n"
    "    node NAME size=BYTES cost=TIME [work=BYTES] [once] [output]\n"
    "    edge FROM TO\n"
    "    NAME: INPUT INPUT ...\n"
    "The inputs of a node and its result are live while it runs, as is its workspace; a result is\n"
    "free after its last use. 'once' nodes never run twice, an 'output' stays to the end.\n"
    "\n"
    "Exit status: 0 done, 1 wrong input or no schedule fits, 2 wrong usage.\n";

typedef struct {
    const char *file, *budget, *output;
    uint64_t effort, seed;
    double seconds;
    bool quiet, help;
} Arguments;

static bool complain(const char *what, const char *word)
{
    fprintf(stderr, "gplan remat: %s: %s (try --help)\n", what, word);
    return false;
}

static bool parse_count(const char *text, const char *option, uint64_t *result)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || errno)
        return complain(option, text);
    *result = number;
    return true;
}

static bool parse_seconds(const char *text, double *result)
{
    char *end;
    *result = strtod(text, &end);
    if (end == text || *end || !(*result > 0 && *result < 1e9))
        return complain("--seconds wants a number above 0, not", text);
    return true;
}

enum { EFFORT = 256, SECONDS, SEED };
static const struct option OPTIONS[] = {
    {"budget", required_argument, NULL, 'b'},
    {"output", required_argument, NULL, 'o'},
    {"effort", required_argument, NULL, EFFORT},
    {"seconds", required_argument, NULL, SECONDS},
    {"seed", required_argument, NULL, SEED},
    {"quiet", no_argument, NULL, 'q'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static bool parse_arguments(int argc, char **argv, Arguments *a)
{
    optind = 1;
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, ":b:o:qh", OPTIONS, NULL)) != -1;) {
        bool ok = true;
        switch (c) {
        case 'b':
            a->budget = optarg;
            break;
        case 'o':
            a->output = optarg;
            break;
        case 'q':
            a->quiet = true;
            break;
        case 'h':
            a->help = true;
            break;
        case EFFORT:
            ok = parse_count(optarg, "--effort wants a number, not", &a->effort);
            break;
        case SECONDS:
            ok = parse_seconds(optarg, &a->seconds);
            break;
        case SEED:
            ok = parse_count(optarg, "--seed wants a number, not", &a->seed);
            break;
        case ':':
            return complain("this option wants a value", argv[optind - 1]);
        default:
            return complain("unknown option", argv[optind - 1]);
        }
        if (!ok)
            return false;
    }
    if (a->help)
        return true;
    if (optind >= argc)
        return complain("missing", "the file");
    a->file = argv[optind];
    if (optind + 1 < argc)
        return complain("one file only, but there is also", argv[optind + 1]);
    return a->budget || complain("missing", "--budget");
}

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
        return complain("--budget wants bytes or a percentage, not", text);
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

static void report(const RematProblem *problem, const RematResult *result, int64_t baseline,
                   int64_t budget, double seconds)
{
    double extra = percent(result->cost - result->base_cost, result->base_cost);
    double bound = percent(result->bound - result->base_cost, result->base_cost);
    printf("nodes        %u, run %zu times\n", (unsigned)problem->nodes, result->schedule.count);
    printf("extra cost   %.4f%%\n", extra);
    if (budget >= 0) {
        if (result->fits)
            printf("lower bound  %.4f%%, gap %.4f points\n", bound, extra - bound);
        printf("budget       %lld bytes, %.2f%% of the given order\n", (long long)budget,
               percent((double)budget, (double)baseline));
    }
    printf("peak         %lld bytes, %.2f%% of the given order\n", (long long)result->peak,
           percent((double)result->peak, (double)baseline));
    printf("floor        %lld bytes, %.2f%%\n", (long long)result->floor,
           percent((double)result->floor, (double)baseline));
    printf("search       effort %llu, %.2f s, %s\n", (unsigned long long)result->effort, seconds,
           stop_text(result));
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

static RematResult search(const Arguments *a, const RematProblem *problem, int64_t budget,
                          Arena *arena)
{
    RematOptions options = {
        .budget = budget, .effort = a->effort, .seconds = a->seconds, .seed = a->seed};
    struct sigaction action = {.sa_handler = interrupt}, before;
    Line line = {0};
    for (RematId x = 0; x < problem->nodes; x++)
        line.base_cost += problem->node[x].cost;
    bool terminal = !a->quiet && isatty(STDERR_FILENO);
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

static int solve(const Arguments *a, const RematProblem *problem, Arena *arena)
{
    RematSchedule given = remat_baseline(problem, arena);
    int64_t baseline = remat_evaluate(problem, &given).peak, budget = -1;
    if (strcmp(a->budget, "min") != 0 && !parse_budget(a->budget, baseline, &budget))
        return 2;
    double begin = clock_seconds();
    RematResult result = search(a, problem, budget, arena);
    if (!a->quiet)
        report(problem, &result, baseline, budget, clock_seconds() - begin);
    if (!result.fits) {
        fprintf(stderr, "gplan remat: no schedule within %lld bytes: %s %lld bytes\n",
                (long long)budget,
                result.stop == REMAT_HOPELESS ? "one node alone needs" : "the smallest met needs",
                (long long)(result.stop == REMAT_HOPELESS ? result.floor : result.peak));
        return 1;
    }
    Written written = {problem, &result.schedule};
    if (a->output && !file_write(a->output, write_schedule, &written))
        return cannot("write", a->output);
    return 0;
}

int remat_main(int argc, char **argv)
{
    Arguments a = {.seed = 1};
    if (!parse_arguments(argc, argv, &a))
        return 2;
    if (a.help)
        return fputs(HELP, stdout) < 0;
    bool standard = !strcmp(a.file, "-");
    FILE *file = standard ? stdin : fopen(a.file, "r");
    if (!file)
        return cannot("read", a.file);
    Arena *arena = arena_new();
    RematProblem problem;
    bool ok = remat_read(file, standard ? "<stdin>" : a.file, arena, &problem, stderr);
    if (!standard)
        fclose(file);
    int status = ok ? solve(&a, &problem, arena) : 1;
    arena_free(arena);
    return status;
}
