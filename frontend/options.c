/* The command line. One table says what there is: reading, --help, the man page and the shell's
 * completion all come from it. */
#include "frontend/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

typedef enum {
    OPT_OUTPUT = 'o',
    OPT_DEFINE = 'D',
    OPT_DUMP = 'd',
    OPT_VERBOSE = 'v',
    OPT_HELP = 'h',
    OPT_EMIT = 256,
    OPT_BUDGET,
    OPT_RESERVE,
    OPT_INFER,
    OPT_TRAIN,
    OPT_ACCUMULATE,
    OPT_MIN_BUDGET,
    OPT_MAX,
    OPT_PARETO,
    OPT_RECOMPUTE,
    OPT_SLICES,
    OPT_EFFORT,
    OPT_SECONDS,
    OPT_THREADS,
    OPT_DEPTH,
    OPT_IO,
    OPT_PARAMS,
    OPT_REPORT,
    OPT_QUIET,
    OPT_COLOR,
    OPT_VERSION,
    OPT_MAN,
    OPT_COMPLETION,
    OPT_OPS,
} OptionId;

typedef struct {
    int id; /* its letter, where it has one */
    const char *name, *argument, *help;
} Option;

/* An option without help is for the build alone. */
static const Option table[] = {
    {OPT_OUTPUT, "output", "FILE", "write FILE; .c also writes the header .h beside it"},
    {OPT_EMIT, "emit", "KIND",
     "what to write: c, h, report, dot, svg, html, json, trace or graph (default: by FILE's "
     "extension)"},
    {OPT_DEPTH, "depth", "N", "in dot and graph, draw blocks from level N on as one box"},
    {OPT_BUDGET, "budget", "SIZE", "bytes the program may use: 8G, 512M, 1.5GiB, 4096"},
    {OPT_RESERVE, "reserve", "SIZE", "taken off the budget for what is not gplan's"},
    {OPT_DEFINE, "define", "NAME=N", "override a parameter of the model, e.g. -D B=64"},
    {OPT_INFER, "infer", NULL, "plan the forward pass only"},
    {OPT_TRAIN, "train", NULL, "plan the training step too (default where the model has one)"},
    {OPT_ACCUMULATE, "accumulate", "N",
     "run a step as N micro-batches; auto: as many as the budget asks for (default: as the model "
     "says)"},
    {OPT_SLICES, "slices", NULL, "run a product and its loss in slices: logits are never stored"},
    {OPT_RECOMPUTE, "recompute", "HOW", "auto: what the budget asks for; none: never"},
    {OPT_MIN_BUDGET, "min-budget", NULL, "print the smallest budget that fits, and stop"},
    {OPT_MAX, "max", "NAME", "print the largest value of a parameter that fits the budget"},
    {OPT_PARETO, "pareto", NULL,
     "print what budgets cost, from the smallest to one without recomputation; --emit csv or json"},
    {OPT_THREADS, "threads", "N", "threads the emitted code will use (default 1)"},
    {OPT_IO, "io", "WHERE", "inputs and outputs in the arena or external: the caller's memory"},
    {OPT_PARAMS, "params", "WHERE", "parameters in the arena or external: a mapped file, ROM"},
    {OPT_EFFORT, "effort", "N", "how much the planner searches, in counted steps"},
    {OPT_SECONDS, "seconds", "N", "a cap on the search, in seconds, on top of the effort"},
    {OPT_REPORT, "report", NULL, "print what was planned"},
    {OPT_DUMP, "dump", "PASS", "print what passes left: lower,train,simplify,fuse,plan"},
    {OPT_VERBOSE, "verbose", NULL, "say what is being done"},
    {OPT_QUIET, "quiet", NULL, "say nothing but errors"},
    {OPT_COLOR, "color", "WHEN", "auto, always or never"},
    {OPT_VERSION, "version", NULL, "print the version"},
    {OPT_HELP, "help", NULL, "print this help"},
    {OPT_MAN, "man", NULL, NULL},
    {OPT_COMPLETION, "completion", NULL, NULL},
    {OPT_OPS, "ops", NULL, NULL},
};
enum { OPTION_COUNT = sizeof table / sizeof *table };

static const char *const usage[] = {
    "gplan MODEL [-o FILE] [options]",
    "gplan pack PROBLEM.csv [options]",
    "gplan remat PROBLEM [options]",
    "gplan verify PLAN.json",
};
enum { USAGE_COUNT = sizeof usage / sizeof *usage };

static const char summary[] =
    "Reads a neural network, plans every byte of its memory, and emits C that runs inside a "
    "budget.";

/* ---- What the table prints ------------------------------------------------------------------ */

static void print_help(void)
{
    for (int i = 0; i < USAGE_COUNT; i++)
        printf("%s%s\n", i ? "       " : "usage: ", usage[i]);
    printf("\n%s\nMODEL is a .g file, or - for standard input.\n\n", summary);
    for (int i = 0; i < OPTION_COUNT; i++) {
        if (!table[i].help)
            continue;
        char text[64], letter[8] = "    ";
        if (table[i].id < 256)
            snprintf(letter, sizeof letter, "-%c, ", table[i].id);
        snprintf(text, sizeof text, "%s--%s %s", letter, table[i].name,
                 table[i].argument ? table[i].argument : "");
        printf("  %-26s %s\n", text, table[i].help);
    }
    puts("\nExit status: 0 done; 1 the input is wrong or does not fit; 2 wrong usage; 3 a bug.");
}

/* roff takes a line's leading dot or quote and every backslash and hyphen for its own. */
static void print_roff(const char *text)
{
    for (; *text; text++)
        printf(*text == '-' ? "\\-" : *text == '\\' ? "\\\\" : "%c", *text);
}

static void print_man(void)
{
    printf(".TH GPLAN 1 \"\" \"gplan %s\" \"User Commands\"\n.SH NAME\ngplan \\- compile a "
           "neural network to C that runs inside a byte budget\n.SH SYNOPSIS\n",
           GPLAN_VERSION);
    for (int i = 0; i < USAGE_COUNT; i++) {
        printf("%s.B ", i ? ".br\n" : "");
        print_roff(usage[i]);
        puts("");
    }
    printf(".SH DESCRIPTION\n%s\n.SH OPTIONS\n", summary);
    for (int i = 0; i < OPTION_COUNT; i++) {
        if (!table[i].help)
            continue;
        printf(".TP\n");
        if (table[i].id < 256)
            printf("\\fB\\-%c\\fR, ", table[i].id);
        printf("\\fB\\-\\-");
        print_roff(table[i].name);
        printf("\\fR%s%s%s\n", table[i].argument ? " \\fI" : "",
               table[i].argument ? table[i].argument : "", table[i].argument ? "\\fR" : "");
        print_roff(table[i].help);
        puts("");
    }
    puts(".SH EXIT STATUS\n0: done. 1: the input is wrong or does not fit the budget. 2: wrong "
         "usage. 3: an internal error.\n.SH EXAMPLE\n.B gplan model.g \\-\\-budget 8G \\-o "
         "model.c");
}

static void print_completion(void)
{
    printf("complete -W '");
    for (int i = 0; i < OPTION_COUNT; i++)
        if (table[i].help)
            printf("--%s ", table[i].name);
    puts("pack remat verify' -o default gplan");
}

/* ---- Reading -------------------------------------------------------------------------------- */

static int wrong(const char *option, const char *text, const char *wanted)
{
    fprintf(stderr, "gplan: %s '%s': %s\n", option, text, wanted);
    return 2;
}

static bool whole(const char *text, uint64_t most, uint64_t *number)
{
    char *end;
    errno = 0;
    unsigned long long read = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || read > most)
        return false;
    *number = read;
    return true;
}

static int read_define(Arena *arena, Options *o, const char *text)
{
    const char *equals = strchr(text, '=');
    char *end = NULL;
    errno = 0;
    long long value = equals ? strtoll(equals + 1, &end, 10) : 0;
    if (!equals || equals == text || end == equals + 1 || *end || errno)
        return wrong("-D", text, "expected NAME=INTEGER, e.g. -D B=64");
    ARRAY_PUSH(arena, &o->define,
               (Define){.name = arena_copy(arena, text, (size_t)(equals - text)), .value = value});
    return -1;
}

static int read_where(const char *option, const char *text, bool *external)
{
    *external = strcmp(text, "external") == 0;
    return *external || strcmp(text, "arena") == 0
               ? -1
               : wrong(option, text, "expected arena or external");
}

static int read_color(const char *text, ColorWhen *color)
{
    static const char *const names[] = {"auto", "always", "never"};
    for (int i = 0; i < 3; i++)
        if (strcmp(text, names[i]) == 0) {
            *color = (ColorWhen)i;
            return -1;
        }
    return wrong("--color", text, "expected auto, always or never");
}

static int read_number(int id, const char *text, Options *o)
{
    uint64_t number;
    if (id == OPT_BUDGET || id == OPT_RESERVE) {
        const char *name = id == OPT_BUDGET ? "--budget" : "--reserve";
        if (!size_parse(text, id == OPT_BUDGET ? &o->budget : &o->reserve))
            return wrong(name, text, "expected a size, e.g. 8G, 512M, 1.5GiB or 4096");
        if (id == OPT_BUDGET && o->budget == 0)
            return wrong(name, text, "nothing fits in no bytes");
        return -1;
    }
    if (id == OPT_SECONDS) {
        char *end;
        o->seconds = strtod(text, &end);
        return end == text || *end || !(o->seconds > 0)
                   ? wrong("--seconds", text, "expected a positive number")
                   : -1;
    }
    if (id == OPT_ACCUMULATE && strcmp(text, "auto") == 0) {
        o->accumulate_auto = true;
        return -1;
    }
    uint64_t most = id == OPT_THREADS || id == OPT_DEPTH ? 1024
                    : id == OPT_ACCUMULATE               ? 1 << 20
                                                         : UINT64_MAX / 2;
    if (!whole(text, most, &number) || number == 0)
        return wrong(id == OPT_THREADS      ? "--threads"
                     : id == OPT_DEPTH      ? "--depth"
                     : id == OPT_ACCUMULATE ? "--accumulate"
                                            : "--effort",
                     text, "expected a positive whole number");
    if (id == OPT_THREADS)
        o->threads = (uint32_t)number;
    else if (id == OPT_DEPTH)
        o->depth = (uint32_t)number;
    else if (id == OPT_ACCUMULATE)
        o->accumulate = (uint32_t)number;
    else
        o->effort = number;
    return -1;
}

/* -1: go on with the next. */
static int read_option(Arena *arena, int id, const char *text, Options *o)
{
    switch (id) {
    case OPT_OUTPUT:
        o->output = text;
        return -1;
    case OPT_EMIT:
        o->emit = text;
        return -1;
    case OPT_DUMP:
        o->dump = text;
        return -1;
    case OPT_DEFINE:
        return read_define(arena, o, text);
    case OPT_BUDGET:
    case OPT_RESERVE:
    case OPT_SECONDS:
    case OPT_EFFORT:
    case OPT_THREADS:
    case OPT_DEPTH:
    case OPT_ACCUMULATE:
        return read_number(id, text, o);
    case OPT_IO:
        return read_where("--io", text, &o->io_external);
    case OPT_PARAMS:
        return read_where("--params", text, &o->params_external);
    case OPT_RECOMPUTE:
        o->no_recompute = strcmp(text, "none") == 0;
        return o->no_recompute || strcmp(text, "auto") == 0
                   ? -1
                   : wrong("--recompute", text, "expected auto or none");
    case OPT_COLOR:
        return read_color(text, &o->color);
    case OPT_INFER:
        o->infer = true;
        return -1;
    case OPT_TRAIN:
        o->train = true;
        return -1;
    case OPT_MAX:
        o->max = text;
        return -1;
    case OPT_PARETO:
        o->pareto = true;
        return -1;
    case OPT_MIN_BUDGET:
        o->min_budget = true;
        return -1;
    case OPT_SLICES:
        o->sliced = true;
        return -1;
    case OPT_REPORT:
        o->report = true;
        return -1;
    case OPT_VERBOSE:
        o->verbose = true;
        return -1;
    case OPT_QUIET:
        o->quiet = true;
        return -1;
    case OPT_VERSION:
        puts("gplan " GPLAN_VERSION);
        return 0;
    case OPT_HELP:
        print_help();
        return 0;
    case OPT_MAN:
        print_man();
        return 0;
    case OPT_COMPLETION:
        print_completion();
        return 0;
    case OPT_OPS:
        ops_reference(stdout);
        return 0;
    default: /* getopt has said what is wrong */
        fprintf(stderr, "gplan --help shows what there is\n");
        return 2;
    }
}

int options_read(Arena *arena, int argc, char **argv, Options *o)
{
    struct option names[OPTION_COUNT + 1] = {{0}};
    char letters[3 * OPTION_COUNT] = "", *letter = letters;
    for (int i = 0; i < OPTION_COUNT; i++) {
        names[i] = (struct option){.name = table[i].name,
                                   .has_arg = table[i].argument ? required_argument : no_argument,
                                   .val = table[i].id};
        if (table[i].id < 256) {
            *letter++ = (char)table[i].id;
            if (table[i].argument)
                *letter++ = ':';
        }
    }
    *o = (Options){.threads = 1};
    for (int id; (id = getopt_long(argc, argv, letters, names, NULL)) != -1;) {
        int status = read_option(arena, id, optarg, o);
        if (status >= 0)
            return status;
    }
    if (optind + 1 != argc) {
        fprintf(stderr, optind == argc ? "gplan: which model? Give a .g file, or - for standard "
                                         "input\n"
                                       : "gplan: one model at a time\n");
        return 2;
    }
    o->model = argv[optind];
    return -1;
}
