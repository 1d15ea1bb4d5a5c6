/* How well and how fast models are fitted to budgets.
 *
 *     fit_bench [FOLDER OF THE REPOSITORY]
 *
 * Three tables: examples at parts of the arena they need without recomputation; gpt2 at the budgets
 * that others are known to need, with its logits whole and in chunks; and a GPT of growing depth.
 * "extra" is the estimated time beyond that of every step once, "at least" what no plan within the
 * budget is below, both in percent of that time. Seconds are of processor time, from the text to
 * the checked plan. */
#include "codegen/codegen.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    const char *path;
    Define define[2];
    size_t defines;
    bool chunked_loss;
    PlanOptions how;
} Case;

typedef struct {
    uint64_t arena, floor;
    double cost, least_cost, bound, seconds;
    size_t nodes;
    uint32_t steps;
    long kilobytes; /* of gplan's own memory, at most */
} Result;

static const char *root = ".";

/* ---- One plan, in a process of its own ------------------------------------------------------ */

static void stop(const char *path, const char *why)
{
    fprintf(stderr, "fit_bench: %s: %s\n", path, why);
    exit(1);
}

static Result plan_here(const Case *c)
{
    Arena *arena = arena_new();
    Diag *diag = diag_new(arena, stderr, false);
    const Source *source =
        source_read(arena, diag, arena_printf(arena, "%s/%s", root, c->path), SOURCE_LIMIT);
    const Ast *ast = source ? parse(arena, diag, source) : NULL;
    Model model = {.source = source, .ast = ast, .define = c->define, .defines = c->defines};
    Choice choice = {.micro = 1, .chunked_loss = c->chunked_loss, .epilogues = true};
    Target target = target_make(target_find("c"), 1);
    Built built = ast ? build(&model, &target, &choice, diag) : (Built){0};
    if (!built.graph)
        exit(1);
    const Graph *g = built.graph;
    Search search;
    Plan *plan = plan_make(arena, g, built.clusters, &target, &c->how, &search);
    const char *fault = plan_check(plan, &target, NULL);
    if (fault)
        stop(c->path, fault);
    if (c->how.budget && plan->arena[SPACE_ARENA] > c->how.budget)
        stop(c->path, "no plan was found within the budget");
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (Result){.arena = plan->arena[SPACE_ARENA],
                    .floor = plan->floor,
                    .cost = plan->cost,
                    .least_cost = search.least_cost,
                    .bound = search.cost_bound,
                    .seconds = (double)clock() / CLOCKS_PER_SEC,
                    .nodes = g->node.count,
                    .steps = plan->end,
                    .kilobytes = usage.ru_maxrss};
}

static Result plan_apart(const Case *c)
{
    int end[2];
    Result result;
    fflush(stdout);
    if (pipe(end) != 0)
        stop(c->path, "no pipe");
    pid_t child = fork();
    if (child == 0) {
        result = plan_here(c);
        _exit(write(end[1], &result, sizeof result) != sizeof result);
    }
    close(end[1]);
    bool read_all = child > 0 && read(end[0], &result, sizeof result) == sizeof result;
    close(end[0]);
    int status = 1;
    if (child > 0)
        waitpid(child, &status, 0);
    if (!read_all || status != 0)
        exit(1);
    return result;
}

static Result plan_at(Case c, uint64_t budget)
{
    c.how.budget = budget;
    return plan_apart(&c);
}

static Result plan_smallest(Case c)
{
    c.how.smallest = true;
    return plan_apart(&c);
}

/* ---- Tables --------------------------------------------------------------------------------- */

static double mebibytes(uint64_t bytes)
{
    return (double)bytes / (1 << 20);
}

/* Above every step once; the order of a sum may take it just below. */
static double percent(double cost, const Result *r)
{
    return cost > r->least_cost ? 100 * (cost / r->least_cost - 1) : 0;
}

static void print_costs(const Result *r)
{
    printf(" %7.2f %8.2f %6.2f %8.1f\n", percent(r->cost, r), percent(r->bound, r),
           percent(r->cost, r) - percent(r->bound, r), r->seconds);
}

static void bench_examples(void)
{
    static const char *const models[] = {"resnet50", "unet", "vgg16", "mobilenetv2", "gpt2"};
    static const int parts[] = {80, 60, 40};
    printf("Examples, a training step\n%-12s %7s %9s %9s %7s %8s %6s %8s\n", "model", "budget",
           "arena", "floor", "extra", "at least", "gap", "seconds");
    printf("%-12s %7s %9s %9s %7s %8s %6s\n", "", "", "MiB", "MiB", "%", "%", "points");
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        char path[64];
        snprintf(path, sizeof path, "examples/%s.g", models[i]);
        Case c = {.path = path};
        Result whole = plan_apart(&c), least = plan_smallest(c);
        printf("%-12s %7s %9.1f %9.1f", models[i], "none", mebibytes(whole.arena),
               mebibytes(whole.floor));
        print_costs(&whole);
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
            uint64_t budget = whole.arena / 100 * (uint64_t)parts[k];
            printf("%-12s %6d%%", models[i], parts[k]);
            if (budget < least.arena) {
                printf("   does not fit\n");
                continue;
            }
            Result r = plan_at(c, budget);
            printf(" %9.1f %9.1f", mebibytes(r.arena), mebibytes(r.floor));
            print_costs(&r);
        }
        printf("%-12s %6.1f%% %9.1f %9.1f %7.2f %24.1f\n", models[i],
               100 * (double)least.arena / (double)whole.arena, mebibytes(least.arena),
               mebibytes(least.floor), percent(least.cost, &least), least.seconds);
    }
}

static void bench_gpt2(void)
{
    static const double budgets[] = {4.8, 4.0, 3.5, 3.0};
    printf(
        "\ngpt2 (124M), B = 4, T = 1024, adamw; PyTorch: 6.5 GiB, or 4.8 GiB and 28%% more time\n"
        "%-8s %10s %10s %7s %8s %6s %8s\n",
        "logits", "budget", "arena", "extra", "at least", "gap", "seconds");
    printf("%-8s %10s %10s %7s %8s %6s\n", "", "GiB", "GiB", "%", "%", "points");
    for (int chunked_loss = 0; chunked_loss < 2; chunked_loss++) {
        Case c = {"examples/gpt2.g", {{.name = "B", .value = 4}}, 1, chunked_loss, {0}};
        const char *name = chunked_loss ? "sliced" : "whole";
        Result whole = plan_apart(&c), least = plan_smallest(c);
        printf("%-8s %10s %10.2f", name, "none", mebibytes(whole.arena) / 1024);
        print_costs(&whole);
        for (size_t i = 0; i < sizeof budgets / sizeof *budgets; i++) {
            uint64_t budget = (uint64_t)(budgets[i] * (1 << 30));
            if (budget < least.arena)
                continue;
            Result r = plan_at(c, budget);
            printf("%-8s %10.2f %10.2f", name, budgets[i], mebibytes(r.arena) / 1024);
            print_costs(&r);
        }
        printf("%-8s %10s %10.2f %7.2f %24.1f\n", name, "smallest", mebibytes(least.arena) / 1024,
               percent(least.cost, &least), least.seconds);
    }
}

static void bench_depth(void)
{
    static const int layers[] = {10, 33, 103, 330, 1030};
    printf("\nA GPT of growing depth, at half of the arena without recomputation\n"
           "%8s %8s %10s %7s %8s %10s %8s %8s %10s\n",
           "nodes", "steps", "arena", "extra", "at least", "above", "seconds", "us/node", "memory");
    printf("%8s %8s %10s %7s %8s %10s %8s %8s %10s\n", "", "", "MiB", "%", "%", "bound, %", "", "",
           "MiB");
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        Case c = {"tests/fit/deep.g", {{.name = "L", .value = layers[i]}}, 1, false, {0}};
        Result whole = plan_apart(&c);
        Result r = plan_at(c, whole.arena / 2);
        printf("%8zu %8u %10.1f %7.2f %8.2f %10.2f %8.1f %8.0f %10.1f\n", r.nodes, r.steps,
               mebibytes(r.arena), percent(r.cost, &r), percent(r.bound, &r),
               100 * (r.cost / r.bound - 1), r.seconds, 1e6 * r.seconds / (double)r.nodes,
               (double)r.kilobytes / 1024);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1)
        root = argv[1];
    bench_examples();
    bench_gpt2();
    bench_depth();
    return 0;
}
