/* Random models through the whole of gplan: text, plan, emitted C, compiled and run, against a run
 * of the same graph without a plan.
 *
 * usage: random_models GPLAN FIRST COUNT [GCC_EVERY]
 *
 * Each model is lowered in every way there is (micro-batches, losses in chunks), and planned with
 * epilogues of products and without, without a budget, at the smallest one and between them. A plan
 * changes no bit of a result; what is lowered in another way is equal up to rounding. tcc compiles
 * in a moment and takes the plain loops through every kernel; each GCC_EVERY-th model is also
 * compiled by gcc as users do, and runs with one thread and with three.
 *
 * A model that fails is made smaller while it still fails, and left as fault_SEED.g in the folder
 * it runs in; with FIRST_FAILURE=1 it is only named, and the program ends. */
#define _DEFAULT_SOURCE
#include "tests/random/plans.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* gcc takes seconds for each kernel that a model has. */
enum { FEW_STATEMENTS = 8, MANY_STATEMENTS = 30 };
enum { MOST_FAULTS = 10 };

/* ---- Models ------------------------------------------------------------------------------------
 */

static bool has_op(const Graph *g, const char *name)
{
    for (size_t i = 0; i < g->node.count; i++)
        if (strcmp(g->node.at[i].op->name, name) == 0)
            return true;
    return false;
}

/* How often nodes of the forward program read the value. */
static int reads_of(const Graph *g, Id value, int program)
{
    int reads = 0;
    for (size_t n = 0; n < g->node.count; n++)
        for (Id i = 0; g->node.at[n].program == program && i < g->node.at[n].uses; i++)
            reads += node_use(g, &g->node.at[n], i).value == value;
    return reads;
}

static void count_model(const char *text, const Case *model)
{
    static const char *const words[] = {
        "reshape(",
        "transpose(",
        "keep ",
        "recompute ",
        "dropout(",
        "ck(",
        "cc(",
        "tie(",
        "repeat k",
        "concat(",
        "batchnorm(",
        "over = micro",
        "attention(",
        "conv2d(",
        "conv_transpose2d(",
        "embedding(",
        "split(",
        "two(",
        "mean = mu",
        "clip =",
        "clip_value",
        "group ",
        "frozen",
        "schedule",
        "precision = bf16",
        "precision = f16",
        "precision \"",
        "cast(",
        "state = 8bit",
        "sgd(",
        "adam(",
        "adamw(",
        "rmsprop(",
        "adagrad(",
        "lion(",
        "cross_entropy(",
        "argmax(",
        "= x\n",
        "= w\n",
        "= i\n",
    };
    const char *body = strstr(text, "block two");
    body = body ? strstr(body, "}\n") : text;
    tally("models", 1);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char name[40];
        snprintf(name, sizeof name, "models with %.*s", (int)strcspn(words[i], "\n"), words[i]);
        tally(name, body && strstr(body, words[i]) != NULL);
    }
    const Graph *g = model->at[0].graph;
    bool inside = false, twice = false, tied = false;
    for (size_t i = 0; i < g->output.count; i++) {
        Id value = g->output.at[i].use.value;
        inside |= !g->output.at[i].loss && model_makes(g, &g->output.at[i], PROGRAM_FORWARD) &&
                  reads_of(g, value, PROGRAM_FORWARD) > 0;
        const char *name = g->output.at[i].name;
        twice |= name[strlen(name) - 1] == 'b'; /* the second of them, as they are written */
    }
    for (Id v = 0; v < g->value.count; v++)
        tied |= g->value.at[v].kind == VALUE_PARAM && reads_of(g, v, PROGRAM_EVAL) > 1;
    tally("models with outputs read inside", inside);
    tally("models with two outputs of a value", twice);
    tally("models with tied weights", tied);
    for (int i = 1; i < model->count; i++)
        tally(model->at[i].how.times == 2   ? model->at[i].how.chunked_loss
                                                  ? "models in 2 micro-batches, sliced"
                                                  : "models in 2 micro-batches"
              : model->at[i].how.times == 4 ? model->at[i].how.chunked_loss
                                                  ? "models in 4 micro-batches, sliced"
                                                  : "models in 4 micro-batches"
                                            : "models with losses in chunks",
              1);
}

/* Every way to lower the text; false where there is none. */
static bool lower_model(Arena *arena, const char *text, Case *model)
{
    model->count = 0;
    for (uint32_t times = 1; times <= 4; times *= 2)
        for (int chunked_loss = 0; chunked_loss < 2; chunked_loss++) {
            Lowering how = {times, chunked_loss};
            Graph *g = model_graph(arena, text, how);
            if (!g || (chunked_loss && !has_op(g, "linear_cross_entropy")))
                continue;
            model->at[model->count++] = (Lowered){how, g, model_run(arena, g)};
        }
    model->narrow = strstr(text, "precision = ") || strstr(text, "cast(") || strstr(text, "= 8bit");
    model->micro_alike = !strstr(text, "over = micro");
    return model->count > 0 && model->at[0].how.times == 1 && !model->at[0].how.chunked_loss;
}

/* Whether all ways to lower it compute the same. */
static const char *lowerings_differ(Arena *arena, const Case *model)
{
    for (int i = 1; i < model->count && !model->narrow; i++) { /* another order rounds elsewhere */
        const Lowered *now = &model->at[i];
        if (now->how.times > 1 && !model->micro_alike)
            continue;
        const char *wrong = rounding_differs(arena, &model->at[0].records, &now->records);
        if (wrong)
            return arena_printf(arena, "--accumulate %u --chunked-loss %s: %s", now->how.times,
                                now->how.chunked_loss ? "always" : "never", wrong);
        tally("lowerings equal up to rounding", 1);
    }
    return NULL;
}

typedef struct {
    Config config;
    const char *wrong; /* NULL: nothing */
    uint64_t budget;
    bool lowering; /* what is wrong is the lowering: no plan was made */
} Fault;

/* Every plan of one way to lower the model; `only` NULL, or the one to try. */
static Fault try_lowering(Arena *arena, const Case *model, Config c, uint64_t seed,
                          const Config *only)
{
    Sizes sizes;
    Fault fault = {.config = c, .wrong = find_sizes(arena, c, &sizes)};
    if (fault.wrong)
        return fault;
    bool plain = c.how.times == 1 && !c.how.chunked_loss && !c.loops && !c.threads;
    for (c.budget = NO_BUDGET; c.budget < BUDGETS && !fault.wrong; c.budget++) {
        bool wanted =
            plain || c.budget == LEAST || (!c.threads && (uint64_t)c.budget == seed % BUDGETS);
        if (only)
            wanted = c.budget == only->budget;
        if (!wanted)
            continue;
        fault = (Fault){c, try_plan(arena, &c, &sizes, model), budget_of(&c, &sizes), false};
    }
    if (plain && !fault.wrong && !only) {
        c.budget = LEAST;
        if (seed % 4 == 0)
            count_json(arena, &c, &sizes);
        c.open = true;
        c.budget = FIRST_BETWEEN;
        fault = (Fault){c, try_plan(arena, &c, &sizes, model), budget_of(&c, &sizes), false};
    }
    return fault;
}

/* The first thing that is wrong with a model; `only`: look there alone. */
static Fault try_model(const char *text, uint64_t seed, bool gcc, const Config *only)
{
    Arena *arena = arena_new();
    static Case model;
    Fault fault = {.wrong = NULL};
    if (lower_model(arena, text, &model)) {
        write_text("net.g", text);
        harness_write(arena, model.at[0].graph);
        if (!only)
            count_model(text, &model);
        fault = (Fault){.wrong = lowerings_differ(arena, &model), .lowering = true};
        for (int i = 0; i < model.count && !fault.wrong; i++)
            for (int loops = 0; loops < 2 && !fault.wrong; loops++) {
                Config c = {.how = model.at[i].how, .loops = loops};
                bool wanted = !only || (only->how.times == c.how.times &&
                                        only->how.chunked_loss == c.how.chunked_loss &&
                                        only->loops == c.loops);
                if (wanted && (!only || !only->threads))
                    fault = try_lowering(arena, &model, c, seed, only && !only->open ? only : NULL);
                c.threads = 3;
                if (wanted && !fault.wrong &&
                    (only
                         ? only->threads
                         : gcc && (seed / 10) % (uint64_t)model.count == (uint64_t)i && loops == 0))
                    fault = try_lowering(arena, &model, c, seed, only);
            }
    }
    if (fault.wrong)
        fault.wrong = strdup(fault.wrong);
    arena_free(arena);
    return fault;
}

/* ---- Making a model smaller --------------------------------------------------------------------
 */

static char *without_lines(const char *text, int from, int count)
{
    char *copy = calloc(1, strlen(text) + 1), *to = copy;
    for (int line = 0; *text; line++) {
        size_t length = strcspn(text, "\n") + 1;
        if (line < from || line >= from + count)
            memcpy(to, text, length), to += length;
        text += length;
    }
    return copy;
}

static int lines_of(const char *text)
{
    int lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

/* Leaves out lines as long as something is wrong in the same place. Takes the text over. */
static char *shrink(char *text, uint64_t seed, const Fault *fault)
{
    for (int part = 8; part > 0; part /= 2)
        for (int from = lines_of(text) - part; from >= 0; from--) {
            char *less = without_lines(text, from, part);
            Fault now = try_model(less, seed, false,
                                  fault->lowering ? &(Config){.how = {99, false}} : &fault->config);
            bool still = now.wrong && now.lowering == fault->lowering;
            free((char *)(uintptr_t)now.wrong);
            if (still) {
                free(text);
                text = less;
            } else {
                free(less);
            }
        }
    return text;
}

static void report(uint64_t seed, char *text, const Fault *fault)
{
    Arena *arena = arena_new();
    printf("seed %llu: %s\n", (unsigned long long)seed, fault->wrong);
    if (!fault->lowering)
        printf("  %s\n", config_text(arena, &fault->config, fault->budget));
    fflush(stdout);
    shrinking = true;
    text = shrink(strdup(text), seed, fault);
    char *path = arena_printf(arena, "fault_%llu.g", (unsigned long long)seed);
    write_text(path, text);
    Fault now = try_model(text, seed, false,
                          fault->lowering ? &(Config){.how = {99, false}} : &fault->config);
    shrinking = false;
    printf("  smaller, in %s: %s\n", path, now.wrong ? now.wrong : "nothing");
    if (now.wrong && !now.lowering)
        printf("  %s\n", config_text(arena, &now.config, now.budget));
    fflush(stdout);
    free(text);
    arena_free(arena);
}

static volatile sig_atomic_t ended;

static void end(int signal)
{
    (void)signal;
    ended = 1;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: random_models GPLAN FIRST COUNT [GCC_EVERY]\n");
        return 2;
    }
    gplan = argv[1];
    uint64_t first = strtoull(argv[2], NULL, 10), count = strtoull(argv[3], NULL, 10);
    uint64_t every = argc > 4 ? strtoull(argv[4], NULL, 10) : 0;
    int faults = 0;
    signal(SIGTERM, end); /* after the model at hand, with the counts so far */
    for (uint64_t seed = first; seed < first + count && faults < MOST_FAULTS && !ended; seed++) {
        Arena *arena = arena_new();
        bool gcc = every && seed % every == 0;
        char *text = random_model(arena, seed, gcc ? FEW_STATEMENTS : MANY_STATEMENTS);
        if (!text)
            tally("seeds without a model", 1);
        Fault fault = text ? try_model(text, seed, gcc, NULL) : (Fault){.wrong = NULL};
        if (fault.wrong && getenv("FIRST_FAILURE")) {
            printf("seed %llu: %s\n", (unsigned long long)seed, fault.wrong);
            return 1;
        }
        if (fault.wrong) {
            faults++;
            report(seed, text, &fault);
        }
        free((char *)(uintptr_t)fault.wrong);
        arena_free(arena);
    }
    print_tallies();
    printf("%d faults\n", faults);
    return faults > 0;
}
