/* `gplan pack`: a problem as CSV in, offsets out. */
#include "frontend/base/clock.h"
#include "frontend/base/size.h"
#include "frontend/command/output.h"
#include "planner/pack/csv.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: gplan pack PROBLEM.csv [options]     PROBLEM: a file, or - for standard input\n"
    "\n"
    "Finds an offset for every buffer so that no two that are alive together share a byte.\n"
    "\n"
    "  -o FILE           write the offsets; .svg draws them; - is standard output\n"
    "  --emit csv|svg    the same choice by name, for standard output where -o is not given\n"
    "  --capacity SIZE   stop at a packing of this many bytes (K, M, G, T: powers of 1024);\n"
    "                    without it the packing is made as small as possible\n"
    "  --effort N        how much to search, in counted work (default 1e9, a few seconds)\n"
    "  --seconds S       a cap on top\n"
    "  --seed N          another order of search\n"
    "  --quiet           no report\n"
    "  --help            this text\n"
    "\n"
    "The columns are id, lower, upper, size, in any order, and optionally alignment and offset\n"
    "(an offset that must be kept, where it is not empty). A buffer lives in [lower, upper).\n"
    "Exit status: 0 packed; 1 the input is wrong or does not fit; 2 wrong usage.\n";

typedef struct {
    const char *input, *output, *emit;
    uint64_t capacity;
    PackOptions pack;
    bool quiet;
} Options;

static int usage(const char *what, const char *which)
{
    fprintf(stderr, "gplan pack: %s%s\nTry 'gplan pack --help'.\n", what, which);
    return 2;
}

static bool parse_count(const char *text, uint64_t least, double *number)
{
    char *end;
    *number = strtod(text, &end);
    return end != text && !*end && *number >= (double)least && *number <= 1e18;
}

/* -1: go on; else the exit status. */
static int parse_options(int argc, char **argv, Options *options)
{
    enum { CAPACITY = 256, EFFORT, SECONDS, SEED, EMIT, QUIET, HELP };
    static const struct option known[] = {
        {"capacity", required_argument, NULL, CAPACITY},
        {"effort", required_argument, NULL, EFFORT},
        {"seconds", required_argument, NULL, SECONDS},
        {"seed", required_argument, NULL, SEED},
        {"emit", required_argument, NULL, EMIT},
        {"quiet", no_argument, NULL, QUIET},
        {"help", no_argument, NULL, HELP},
        {NULL, 0, NULL, 0},
    };
    double number;
    optind = 1;
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, ":o:", known, NULL)) != -1;) {
        bool fine = true;
        switch (c) {
        case 'o':
            options->output = optarg;
            break;
        case CAPACITY:
            fine = size_parse(optarg, &options->capacity) && options->capacity > 0;
            break;
        case EFFORT:
            fine = parse_count(optarg, 1, &number);
            options->pack.effort = (uint64_t)number;
            break;
        case SECONDS:
            fine = parse_count(optarg, 0, &number) && number > 0;
            options->pack.seconds = number;
            break;
        case SEED:
            fine = parse_count(optarg, 0, &number);
            options->pack.seed = (uint64_t)number;
            break;
        case EMIT:
            options->emit = optarg;
            fine = !strcmp(optarg, "csv") || !strcmp(optarg, "svg");
            break;
        case QUIET:
            options->quiet = true;
            break;
        case HELP:
            fputs(help, stdout);
            return 0;
        case ':':
            return usage("a value is missing after ", argv[optind - 1]);
        default:
            return usage("unknown option ", argv[optind - 1]);
        }
        if (!fine)
            return usage("not a value that this option takes: ", optarg);
    }
    if (optind + 1 != argc)
        return usage(optind == argc ? "which problem?" : "more than one problem: ",
                     optind == argc ? "" : argv[optind + 1]);
    options->input = argv[optind];
    return -1;
}

static bool complain(const char *path)
{
    if (errno == ENOMEM)
        out_of_memory(0);
    fprintf(stderr, "gplan pack: %s: error: %s\n", path, strerror(errno));
    return false;
}

static char *read_all(Arena *arena, FILE *in, size_t *length)
{
    ARRAY(char) text = {0};
    char part[1 << 14];
    for (size_t got; (got = fread(part, 1, sizeof part, in)) > 0;) {
        while (text.capacity < text.count + got)
            text.at = arena_grow(arena, text.at, text.capacity, &text.capacity, 1);
        memcpy(text.at + text.count, part, got);
        text.count += got;
    }
    *length = text.count;
    return ferror(in) ? NULL : text.at ? text.at : arena_copy(arena, "", 0);
}

static PackCsv *read_problem(Arena *arena, const char *path)
{
    bool standard = !strcmp(path, "-");
    FILE *in = standard ? stdin : fopen(path, "rb");
    size_t length = 0;
    char *text = in ? read_all(arena, in, &length) : NULL;
    if (!text) {
        complain(path);
        if (in && !standard)
            fclose(in);
        return NULL;
    }
    if (!standard)
        fclose(in);
    PackCsvError error = {0};
    PackCsv *csv = pack_csv_read(arena, text, length, &error);
    if (!csv)
        fprintf(stderr, "%s:%zu: error: %s\n", standard ? "<stdin>" : path,
                error.line ? error.line : 1, error.message);
    return csv;
}

typedef struct {
    const PackCsv *csv;
    const PackSolution *solution;
    bool svg;
} Output;

static void emit(FILE *out, const void *what)
{
    const Output *output = what;
    if (output->svg)
        pack_svg_write(out, &output->csv->problem, output->solution, output->csv->id);
    else
        pack_csv_write(out, output->csv, output->solution->offset);
}

static bool has_suffix(const char *text, const char *suffix)
{
    size_t length = strlen(text), tail = strlen(suffix);
    return length >= tail && !strcmp(text + length - tail, suffix);
}

static void report(FILE *out, const PackSolution *solution, double seconds)
{
    double gap = solution->bound
                     ? 100 * (double)(solution->height - solution->bound) / (double)solution->bound
                     : 0;
    fprintf(out, "height       %llu\n", (unsigned long long)solution->height);
    fprintf(out, "lower bound  %llu\n", (unsigned long long)solution->bound);
    fprintf(out, "gap          %.3f%%%s\n", gap, solution->optimal ? " (optimal)" : "");
    fprintf(out, "time         %.3f s\n", seconds);
    fprintf(out, "stopped      %s, effort %llu\n", pack_stop_name(solution->stop),
            (unsigned long long)solution->work);
}

/* Why there is nothing to write; the exit status. */
static int refuse(const Options *options, const PackCsv *csv, PackStatus status,
                  const PackSolution *solution)
{
    if (status == PACK_INVALID) {
        size_t line = solution->bad < csv->problem.count ? csv->line[solution->bad] : 1;
        fprintf(stderr, "%s:%zu: error: buffer '%s': %s\n", options->input, line,
                solution->bad < csv->problem.count ? csv->id[solution->bad] : "", solution->why);
    } else if (status == PACK_INFEASIBLE) {
        fprintf(stderr,
                "%s: error: capacity %llu cannot be reached, this is proved: no packing is "
                "smaller than %llu (found: %llu)\n",
                options->input, (unsigned long long)options->capacity,
                (unsigned long long)solution->bound, (unsigned long long)solution->height);
    } else {
        fprintf(stderr,
                "%s: error: capacity %llu was not reached before the end (%s), which proves "
                "nothing: lower bound %llu, found %llu\n",
                options->input, (unsigned long long)options->capacity,
                pack_stop_name(solution->stop), (unsigned long long)solution->bound,
                (unsigned long long)solution->height);
    }
    return 1;
}

static int run(Arena *arena, const Options *options)
{
    PackCsv *csv = read_problem(arena, options->input);
    if (!csv)
        return 1;
    csv->problem.capacity = options->capacity;
    PackSolution solution = {.offset = ARENA_ARRAY(arena, uint64_t, csv->problem.count)};
    double begin = clock_seconds();
    PackStatus status = pack_solve(&csv->problem, &options->pack, &solution);
    double seconds = clock_seconds() - begin;
    if (status != PACK_OK)
        return refuse(options, csv, status, &solution);
    PackVerdict verdict = pack_check(&csv->problem, &solution);
    if (verdict.fault) {
        fprintf(stderr, "gplan pack: internal error: %s; please report it\n",
                pack_fault_name(verdict.fault));
        return 3;
    }
    const char *path = options->output ? options->output : options->emit ? "-" : NULL;
    bool standard = path && !strcmp(path, "-");
    Output output = {csv, &solution, false};
    output.svg = options->emit ? !strcmp(options->emit, "svg") : path && has_suffix(path, ".svg");
    if (standard)
        emit(stdout, &output);
    else if (path && !file_write(path, emit, &output))
        return complain(path) ? 0 : 1;
    if (!options->quiet)
        report(standard ? stderr : stdout, &solution, seconds);
    if (fflush(stdout) || ferror(stdout))
        return complain("standard output") ? 0 : 1;
    return 0;
}

int pack_main(int argc, char **argv)
{
    Options options = {0};
    int status = parse_options(argc, argv, &options);
    if (status >= 0)
        return status;
    Arena *arena = arena_new();
    status = run(arena, &options);
    arena_free(arena);
    return status;
}
