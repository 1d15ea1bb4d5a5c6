#define _DEFAULT_SOURCE
#include "tests/random/plans.h"

#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_SECONDS = 120 };
static const double TOLERANCE = 5e-3, LITTLE = 1e-5;

const char *gplan;
bool shrinking;

/* ---- What was seen -----------------------------------------------------------------------------
 */

typedef struct {
    char name[40];
    uint64_t count;
} Tally;
static Tally tallies[200];

void tally(const char *name, uint64_t count)
{
    Tally *t = tallies;
    while (*t->name && strcmp(t->name, name) != 0)
        t++;
    snprintf(t->name, sizeof t->name, "%s", name);
    t->count += count;
}

void print_tallies(void)
{
    for (const Tally *t = tallies; *t->name; t++)
        printf("  %-38s %8llu\n", t->name, (unsigned long long)t->count);
}

/* ---- Files and other programs
 * ---------------------------------------------------------------------------- */

/* Runs a command, given as its words; what it says goes to a file. The status as the shell has it.
 */
static int run(const char *out, const char *const *argv)
{
    pid_t child = fork();
    if (child == 0) {
        struct rlimit time = {MOST_SECONDS, MOST_SECONDS};
        setrlimit(RLIMIT_CPU, &time);
        int to = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0666),
            errors = open("messages", O_WRONLY | O_CREAT | O_TRUNC, 0666);
        dup2(to, 1);
        dup2(errors, 2);
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    int status;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static char *read_text(Arena *arena, const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    fseek(file, 0, SEEK_END);
    *length = (size_t)ftell(file);
    rewind(file);
    char *text = arena_alloc(arena, *length + 1);
    *length = fread(text, 1, *length, file);
    text[*length] = 0;
    fclose(file);
    return text;
}

void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0) {
        perror(path);
        exit(2);
    }
}

static uint64_t number_after(const char *text, const char *mark)
{
    const char *at = text ? strstr(text, mark) : NULL;
    return at ? strtoull(at + strlen(mark), NULL, 10) : 0;
}

/* ---- Comparing ---------------------------------------------------------------------------------
 */

static const Record *find_record(const Records *in, const Record *like)
{
    for (size_t i = 0; i < in->count; i++)
        if (strcmp(in->at[i].when, like->when) == 0 && strcmp(in->at[i].name, like->name) == 0)
            return &in->at[i];
    return NULL;
}

/* What a caller reads; a parameter that no program needs is in no program. */
static bool must_be_there(const Record *r)
{
    return strncmp(r->when, "step", 4) != 0 || strcmp(r->name, "loss") == 0;
}

/* NULL where the program (whose records are counted in bytes) gave every bit that it should. */
static const char *bits_differ(Arena *arena, const Records *got, const Records *want)
{
    size_t due = 0, there = 0;
    for (size_t i = 0; i < want->count; i++)
        due += must_be_there(&want->at[i]);
    for (size_t i = 0; i < got->count; i++) {
        const Record *g = &got->at[i], *r = find_record(want, g);
        if (!r)
            return arena_printf(arena, "%s after %s is no tensor of the model", g->name, g->when);
        size_t size = dtype_size((Dtype)r->dtype);
        if (r->count * size != g->count)
            return arena_printf(arena, "%s after %s has another size", g->name, g->when);
        there += must_be_there(r);
        for (size_t k = 0; k < r->count; k++) {
            const char *x = (const char *)g->data + k * size, *y = (const char *)r->data + k * size;
            if (same_element((Dtype)r->dtype, x, y))
                continue;
            return r->dtype == F32
                       ? arena_printf(arena, "%s after %s, element %zu: %.9g, should be %.9g",
                                      r->name, r->when, k, (double)*(const float *)x,
                                      (double)*(const float *)y)
                       : arena_printf(arena, "%s after %s, element %zu", r->name, r->when, k);
        }
    }
    return there == due ? NULL : "an output is missing";
}

/* The largest element, or of a parameter the largest change. */
static double scale_of(const Record *r)
{
    double most = 0;
    for (size_t i = 0; i < r->count; i++) {
        double x = fabs((double)((const float *)r->data)[i] -
                        (r->before ? (double)((const float *)r->before)[i] : 0));
        most = x > most || isnan(x) ? x : most;
    }
    return most;
}

/* NULL where both are equal up to rounding, up to the first step: later ones may be apart as far as
 * the model lets them. `a` is a plain run. */
const char *rounding_differs(Arena *arena, const Records *a, const Records *b)
{
    for (size_t i = 0; i < a->count; i++) {
        const Record *r = &a->at[i], *s = find_record(b, r);
        if (!strchr(r->when, '0') || !r->linear || r->dtype != F32 || !s)
            continue;
        double scale = scale_of(r);
        for (size_t k = 0; k < r->count && isfinite(scale); k++) {
            double x = (double)((const float *)r->data)[k], y = (double)((const float *)s->data)[k];
            if (!(fabs(x - y) <= TOLERANCE * scale + LITTLE))
                return arena_printf(arena,
                                    "%s after %s, element %zu: %g and %g, where the largest is %g",
                                    r->name, r->when, k, x, y, scale);
        }
    }
    return NULL;
}

/* ---- Plans -------------------------------------------------------------------------------------
 */

char *config_text(Arena *arena, const Config *c, uint64_t budget)
{
    char *text = c->open ? arena_printf(arena, "--accumulate auto")
                         : arena_printf(arena, "--accumulate %u --chunked-loss %s --epilogues %s",
                                        c->how.times, c->how.chunked_loss ? "always" : "never",
                                        c->loops ? "never" : "always");
    if (c->threads)
        text = arena_printf(arena, "%s --threads %d", text, c->threads);
    return budget ? arena_printf(arena, "%s --budget %llu", text, (unsigned long long)budget)
                  : text;
}

/* gplan on net.g with these words more. */
static int run_gplan(Arena *arena, const Config *c, uint64_t budget, const char *more)
{
    const char *argv[40] = {gplan, "net.g", "--effort", "3", "--quiet"};
    int argc = 5;
    char *text = arena_printf(arena, "%s %s", config_text(arena, c, budget), more);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    return run("answer", argv);
}

static const char *failure(Arena *arena, const char *what, int status)
{
    size_t length;
    char *log = read_text(arena, "messages", &length);
    return arena_printf(arena, "%s: exit status %d\n%.600s", what, status, log ? log : "");
}

/* Leaves the plan without a budget as net.c. NULL, or what is wrong: what can be lowered in a way
 * can be planned in it. */
const char *find_sizes(Arena *arena, Config c, Sizes *s)
{
    size_t length;
    *s = (Sizes){0};
    int status = run_gplan(arena, &c, 0, "-o net.c");
    if (status != 0)
        return failure(arena, "gplan", status);
    const char *header = read_text(arena, "net.h", &length);
    s->most = number_after(header, "#define NET_ARENA_BYTES ");
    s->ops = number_after(header, "#define NET_OPS ");
    status = run_gplan(arena, &c, 0, "--min-budget");
    if (status != 0)
        return failure(arena, "gplan --min-budget", status);
    s->least = strtoull(read_text(arena, "answer", &length), NULL, 10);
    return s->least > s->most ? "--min-budget is more than no budget takes" : NULL;
}

uint64_t budget_of(const Config *c, const Sizes *s)
{
    uint64_t part = (s->most - s->least) / (BETWEEN + 1);
    return c->budget == NO_BUDGET ? 0 : s->least + part * (uint64_t)(c->budget - LEAST);
}

static const Records *records_of(const Case *model, Lowering how)
{
    for (int i = 0; i < model->count; i++)
        if (model->at[i].how.times == how.times &&
            model->at[i].how.chunked_loss == how.chunked_loss)
            return &model->at[i].records;
    return NULL;
}

static void count_plan(const Config *c, Lowering how, const char *header, const Sizes *sizes)
{
    tally("plans", 1);
    tally(c->budget == NO_BUDGET ? "plans without a budget"
          : c->budget == LEAST   ? "plans at the smallest budget"
                                 : "plans between",
          1);
    tally(how.times > 1 ? "plans with micro-batches" : "plans of the whole batch", 1);
    tally("plans with losses in chunks", how.chunked_loss);
    tally(c->open    ? "plans whose choice is gplan's"
          : c->loops ? "plans without epilogues of products"
                     : "plans with epilogues of products",
          1);
    tally("plans that compute again",
          !c->open && number_after(header, "#define NET_OPS ") > sizes->ops);
}

static bool is_new(const char *text)
{
    static uint64_t seen[64];
    static unsigned next;
    uint64_t hash = 0xcbf29ce484222325u;
    for (text = strstr(text, "#include"); text && *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    for (int i = 0; i < 64; i++)
        if (seen[i] == hash)
            return false;
    seen[next++ % 64] = hash;
    return true;
}

static const char *run_net(Arena *arena, const char *threads, Records *got)
{
    int status = run("said", (const char *[]){"./net", threads, NULL});
    if (status != 0)
        return failure(arena, "the emitted program", status);
    *got = harness_read(arena);
    return NULL;
}

static const char *try_tcc(Arena *arena, const Records *want)
{
    static unsigned turn;
    Records got;
    int status =
        run("said", (const char *[]){"tcc", turn++ % 2 ? "-DGPLAN_POISON" : "-DPLAIN", "-DSTEPS=2",
                                     "-o", "net", "main.c", "net.c", "-lm", NULL});
    if (status != 0)
        return failure(arena, "tcc", status);
    const char *wrong = run_net(arena, "1", &got);
    tally("runs by tcc", 1);
    return wrong ? wrong : bits_differ(arena, &got, want);
}

/* As users compile. One thread and three give the same bits; against the plain run they are equal
 * up to rounding, since gcc joins products and sums. */
static const char *try_gcc(Arena *arena, const Records *want)
{
    Records one, three, sized = {0};
    int status =
        run("said", (const char *[]){"gcc", "-O3", "-march=native", "-fopenmp", "-w", "-DSTEPS=2",
                                     "main.c", "net.c", "-lm", "-o", "net", NULL});
    if (status != 0)
        return failure(arena, "gcc", status);
    const char *wrong = run_net(arena, "1", &one);
    if (!wrong)
        wrong = run_net(arena, "3", &three);
    if (wrong)
        return wrong;
    tally("runs by gcc, one thread and three", 1);
    for (size_t i = 0; i < one.count; i++) { /* in elements of their dtype, as records are */
        const Record *r = find_record(want, &one.at[i]);
        Record record = one.at[i];
        if (!r || r->count * dtype_size((Dtype)r->dtype) != record.count)
            return arena_printf(arena, "%s after %s is not as it should be", record.name,
                                record.when);
        record.dtype = r->dtype;
        record.count = r->count;
        records_add(arena, &sized, record);
    }
    wrong = bits_differ(arena, &three, &sized);
    if (wrong)
        return arena_printf(arena, "three threads: %s", wrong);
    return rounding_differs(arena, want, &one);
}

/* One plan, emitted, compiled and run. NULL, or what is wrong. */
const char *try_plan(Arena *arena, const Config *c, const Sizes *sizes, const Case *model)
{
    size_t length;
    uint64_t budget = budget_of(c, sizes);
    int status = budget ? run_gplan(arena, c, budget, "-o net.c") : 0; /* find_sizes left it */
    if (status != 0)
        return failure(arena, "gplan", status);
    const char *text = read_text(arena, "net.c", &length),
               *header = read_text(arena, "net.h", &length);
    if (budget && number_after(header, "#define NET_ARENA_BYTES ") > budget)
        return "the arena is larger than the budget";
    Lowering how = c->how;
    if (c->open) {
        uint64_t times = number_after(text, "run.micro < ");
        how = (Lowering){times ? (uint32_t)times : 1,
                         strstr(text, "GP_KERNEL(linear_cross_entropy)") != NULL};
    }
    const Records *want = records_of(model, how);
    if (!want)
        return "gplan lowers the model in a way that it cannot be lowered";
    count_plan(c, how, header, sizes);
    if (c->threads)
        return try_gcc(arena, want);
    if (shrinking || is_new(text))
        return try_tcc(arena, want);
    tally("plans like one before", 1);
    return NULL;
}

/* What a plan is made of, as its JSON has it. */
void count_json(Arena *arena, const Config *c, const Sizes *sizes)
{
    if (run_gplan(arena, c, budget_of(c, sizes), "-o net.json") != 0)
        return;
    json_t *json = json_load_file("net.json", 0, NULL), *row;
    size_t i;
    bool window = false, in_place = false;
    json_array_foreach(json_object_get(json, "buffers"), i, row)
    {
        const char *kind = json_string_value(json_object_get(row, "kind"));
        bool inside = json_object_get(row, "root") && kind && strcmp(kind, "activation") == 0;
        window |= inside && json_object_get(row, "layout");
        in_place |= inside && !json_object_get(row, "layout");
    }
    tally("smallest plans looked into", 1);
    tally("  with windows of a concat", window);
    tally("  with results in place", in_place);
    json_decref(json);
}
