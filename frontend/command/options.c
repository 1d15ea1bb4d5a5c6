/* The command line. One table says what there is: reading, --help, the man page and the shell's
 * completion all come from it. A new option is a row here and a field of Options. */
#include "frontend/command/kinds.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static void show_version(void)
{
    puts("gplan " GPLAN_VERSION);
}

static void show_ops(void)
{
    ops_reference(stdout);
}

static const char *target_words(void)
{
    static char words[256];
    size_t length = (size_t)snprintf(words, sizeof words, "auto");
    for (size_t i = 0; i < target_count; i++)
        length += (size_t)snprintf(words + length, sizeof words - length, " %s",
                                   target_table[i].plan.name);
    return words;
}

#define FIELD(name) offsetof(Options, name)

/* clang-format off */
const Option option_table[] = {
    {'o', "output", "FILE", "write FILE; .c and .cu also write the header .h beside it",
     .kind = OPTION_FILE, .field = FIELD(output)},
    {0, "emit", "KIND", "what to write (default: by FILE's extension)",
     .kind = OPTION_TEXT, .field = FIELD(emit),
     .list = kind_words},
    {0, "prefix", "NAME",
     "begin emitted symbols with NAME instead of the model's name, so that two plans of one model "
     "link into one program",
     .kind = OPTION_TEXT, .field = FIELD(prefix)},
    {0, "depth", "N", "in dot and graph, draw blocks from level N on as one box",
     .kind = OPTION_COUNT, .field = FIELD(depth), .most = 1024},
    {0, "budget", "SIZE", "bytes the program may use: 8G, 512M, 1.5GiB, 4096",
     .kind = OPTION_SIZE, .field = FIELD(budget), .positive = true},
    {0, "reserve", "SIZE", "taken off the budget for what is not gplan's",
     .kind = OPTION_SIZE, .field = FIELD(reserve)},
    {'D', "define", "NAME=N", "override a parameter of the model, e.g. -D B=64",
     .kind = OPTION_DEFINE, .field = FIELD(define)},
    {0, "infer", NULL, "plan the forward pass only",
     .kind = OPTION_FLAG, .field = FIELD(infer)},
    {0, "train", NULL, "plan the training step too (default where the model has one)",
     .kind = OPTION_FLAG, .field = FIELD(train)},
    {0, "accumulate", "N",
     "run a step as N micro-batches; auto: as many as the budget asks for (default: as the model "
     "says)",
     .kind = OPTION_COUNT, .field = FIELD(accumulate), .most = 1 << 20,
     .words = "model auto", .word_field = FIELD(accumulate_auto)},
    {0, "chunked-loss", "WHEN",
     "compute the loss of a product in chunks of rows, so that logits are never stored; auto: where the budget "
     "asks for it",
     .kind = OPTION_WORD, .field = FIELD(chunked_loss), .words = "auto always never"},
    {0, "recompute", "HOW", "compute values again: auto, where the budget asks for it; none, never",
     .kind = OPTION_WORD, .field = FIELD(no_recompute), .words = "auto none"},
    {0, "epilogues", "WHEN",
     "run elementwise ops inside the product before them, which is then not stored; auto: unless the "
     "budget is met better without",
     .kind = OPTION_WORD, .field = FIELD(epilogues), .words = "auto always never"},
    {0, "min-budget", NULL, "print the smallest budget that fits, and stop",
     .kind = OPTION_FLAG, .field = FIELD(min_budget)},
    {0, "max", "NAME", "print the largest value of a parameter that fits the budget",
     .kind = OPTION_TEXT, .field = FIELD(max)},
    {0, "pareto", NULL,
     "print what budgets cost, from the smallest to one without recomputation; --emit csv or json",
     .kind = OPTION_FLAG, .field = FIELD(pareto)},
    {0, "target", "TARGET", "what the plan is for (default: cuda for a .cu file, else c)",
     .kind = OPTION_WORD, .field = FIELD(target), .list = target_words},
    {0, "calibrate", NULL,
     "measure this machine and write a profile for --profile, to FILE or standard output; takes no "
     "MODEL",
     .kind = OPTION_FLAG, .field = FIELD(calibrate)},
    {0, "profile", "FILE", "estimate times with what --calibrate measured",
     .kind = OPTION_FILE, .field = FIELD(profile)},
    {0, "threads", "N", "threads the emitted code may use: workspace is planned for them (default 8)",
     .kind = OPTION_COUNT, .field = FIELD(threads), .most = 1024},
    {0, "io", "WHERE", "inputs and outputs in the arena or external: the caller's memory",
     .kind = OPTION_WORD, .field = FIELD(io_external), .words = "arena external"},
    {0, "params", "WHERE", "parameters in the arena or external: a mapped file, ROM",
     .kind = OPTION_WORD, .field = FIELD(params_external), .words = "arena external"},
    {0, "effort", "N", "how much the planner searches, in counted steps",
     .kind = OPTION_LARGE, .field = FIELD(effort)},
    {0, "seconds", "N", "a cap on the search, in seconds, on top of the effort",
     .kind = OPTION_SECONDS, .field = FIELD(seconds)},
    {0, "report", NULL, "print what was planned",
     .kind = OPTION_FLAG, .field = FIELD(report)},
    {'d', "dump", "PASS", "print what passes left, a list with commas",
     .kind = OPTION_TEXT, .field = FIELD(dump), .words = "lower train simplify fuse plan"},
    {'v', "verbose", NULL, "say what is being done",
     .kind = OPTION_FLAG, .field = FIELD(verbose)},
    {0, "quiet", NULL, "say nothing but errors",
     .kind = OPTION_FLAG, .field = FIELD(quiet)},
    {0, "color", "WHEN", "whether messages have colours",
     .kind = OPTION_WORD, .field = FIELD(color), .words = "auto always never"},
    {0, "version", NULL, "print the version", .kind = OPTION_SHOW, .show = show_version},
    {'h', "help", NULL, "print this help", .kind = OPTION_SHOW, .show = manual_help},
    {0, "man", NULL, NULL, .kind = OPTION_SHOW, .show = manual_page},
    {0, "completion", NULL, NULL, .kind = OPTION_SHOW, .show = manual_completion},
    {0, "ops", NULL, NULL, .kind = OPTION_SHOW, .show = show_ops},
};
/* clang-format on */
enum { OPTION_TABLE = sizeof option_table / sizeof *option_table };
const size_t option_count = OPTION_TABLE;

const char *option_words(const Option *option)
{
    return option->list ? option->list() : option->words;
}

/* ---- Reading: each returns -1 to go on, or the exit status ---------------------------------- */

static int wrong(const Option *option, const char *text, const char *wanted)
{
    fprintf(stderr, "gplan: --%s '%s': %s\n", option->name, text, wanted);
    return 2;
}

/* The place of a word in a list with spaces; -1: it is not there. */
static int find_word(const char *words, const char *text)
{
    size_t length = strlen(text);
    int place = 0;
    for (const char *at = words; at && *at; place++) {
        size_t next = strcspn(at, " ");
        if (next == length && memcmp(at, text, length) == 0)
            return place;
        at += next + (at[next] == ' ');
    }
    return -1;
}

static int read_word(const Option *option, const char *text, uint32_t *field)
{
    int place = find_word(option_words(option), text);
    if (place < 0) {
        fprintf(stderr, "gplan: --%s '%s': expected one of: %s\n", option->name, text,
                option_words(option));
        return 2;
    }
    *field = (uint32_t)place;
    return -1;
}

static int read_whole(const Option *option, const char *text, uint64_t most, uint64_t *number)
{
    char *end;
    errno = 0;
    unsigned long long read = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || read > most || read == 0)
        return wrong(option, text, "expected a positive whole number");
    *number = read;
    return -1;
}

static int read_count(const Option *option, const char *text, Options *o)
{
    uint64_t number = 0;
    if (find_word(option_words(option), text) >= 0)
        return read_word(option, text, (uint32_t *)((char *)o + option->word_field));
    int status = read_whole(option, text, option->most, &number);
    *(uint32_t *)((char *)o + option->field) = (uint32_t)number;
    return status;
}

static int read_size(const Option *option, const char *text, uint64_t *field)
{
    if (!size_parse(text, field))
        return wrong(option, text, "expected a size, e.g. 8G, 512M, 1.5GiB or 4096");
    if (option->positive && *field == 0)
        return wrong(option, text, "nothing fits in no bytes");
    return -1;
}

static int read_seconds(const Option *option, const char *text, double *field)
{
    char *end;
    *field = strtod(text, &end);
    return end == text || *end || !(*field > 0) ? wrong(option, text, "expected a positive number")
                                                : -1;
}

static int read_define(Arena *arena, const Option *option, const char *text, Options *o)
{
    const char *equals = strchr(text, '=');
    char *end = NULL;
    errno = 0;
    long long value = equals ? strtoll(equals + 1, &end, 10) : 0;
    if (!equals || equals == text || end == equals + 1 || *end || errno)
        return wrong(option, text, "expected NAME=INTEGER, e.g. -D B=64");
    ARRAY_PUSH(arena, &o->define,
               (Define){.name = arena_copy(arena, text, (size_t)(equals - text)), .value = value});
    return -1;
}

static int read_option(Arena *arena, const Option *option, const char *text, Options *o)
{
    void *field = (char *)o + option->field;
    switch (option->kind) {
    case OPTION_FLAG:
        *(bool *)field = true;
        return -1;
    case OPTION_TEXT:
    case OPTION_FILE:
        *(const char **)field = text;
        return -1;
    case OPTION_WORD:
        return read_word(option, text, field);
    case OPTION_COUNT:
        return read_count(option, text, o);
    case OPTION_LARGE:
        return read_whole(option, text, UINT64_MAX / 2, field);
    case OPTION_SIZE:
        return read_size(option, text, field);
    case OPTION_SECONDS:
        return read_seconds(option, text, field);
    case OPTION_DEFINE:
        return read_define(arena, option, text, o);
    case OPTION_SHOW:
        option->show();
        return 0;
    }
    return 2;
}

/* What getopt is told: each option by its place in the table, behind all letters. */
enum { FIRST_LONG = 256 };

static void describe(struct option names[OPTION_TABLE + 1], char letters[2 * OPTION_TABLE + 1])
{
    for (int i = 0; i < OPTION_TABLE; i++) {
        const Option *option = &option_table[i];
        names[i] = (struct option){.name = option->name,
                                   .has_arg = option->argument ? required_argument : no_argument,
                                   .val = FIRST_LONG + i};
        if (option->letter) {
            *letters++ = option->letter;
            if (option->argument)
                *letters++ = ':';
        }
    }
    *letters = 0;
}

static const Option *find(int id)
{
    if (id >= FIRST_LONG)
        return &option_table[id - FIRST_LONG];
    for (int i = 0; i < OPTION_TABLE; i++)
        if (option_table[i].letter == id)
            return &option_table[i];
    return NULL;
}

int options_read(Arena *arena, int argc, char **argv, Options *o)
{
    struct option names[OPTION_TABLE + 1] = {{0}};
    char letters[2 * OPTION_TABLE + 1];
    describe(names, letters);
    *o = (Options){0};
    for (int id; (id = getopt_long(argc, argv, letters, names, NULL)) != -1;) {
        const Option *option = find(id);
        if (!option) { /* getopt has said what is wrong */
            fprintf(stderr, "gplan --help shows what there is\n");
            return 2;
        }
        int status = read_option(arena, option, optarg, o);
        if (status >= 0)
            return status;
    }
    if (o->calibrate) {
        if (optind != argc)
            fprintf(stderr, "gplan: --calibrate takes no model\n");
        return optind == argc ? -1 : 2;
    }
    if (optind == argc) {
        fprintf(stderr, "gplan: which model? Give a .g file, or - for standard input\n");
        return 2;
    }
    for (; optind < argc; optind++)
        ARRAY_PUSH(arena, &o->model, argv[optind]);
    return -1;
}
