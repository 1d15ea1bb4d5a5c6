/* How good and how fast: the published recomputation graphs, and generated ones of growing size.
 *
 *     remat_bench [EFFORT]
 *
 * The graphs are looked for in $GPLAN_DATA/remat, or ../shared/data/remat. Figures of others, in
 * percent of extra cost: Checkmate (Jain et al. 2020), Moccasin (Bartan et al. 2023), FastSA.
 * "best" is the lowest seen before. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "remat_check.h"
#include "remat_generate.h"

enum { EFFORT = 20000, SECONDS = 30 }; /* of processor time: the machine may be shared */

static const struct {
    const char *graph;
    int percent;
    const char *checkmate, *moccasin, *fastsa;
    double best;
} rows[] = {
    {"rl1", 80, "2.3", "2.3", "0.3", 0},
    {"rl1", 70, "-", "-", "2.2", 2.14},
    {"rl2", 80, "-", "4.9", "0.0", 0},
    {"rl2", 70, "-", "-", "2.6", 1.03},
    {"rl4", 90, "-", "0.7", "0.4", 0.076},
    {"rl4", 80, "-", "3.4", "2.5", 1.59},
    {"rl4", 70, "-", "-", "7.4", 5.13},
    {"cm1_fcn8", 80, "0.1", "0.1", "0.1", 0.136},
    {"cm1_fcn8", 70, "-", "-", "3.0", 0.89},
    {"cm2_resnet50", 90, "0.1", "0.2", "0.2", 0.108},
    {"cm2_resnet50", 80, "0.3", "0.3", "0.4", 0.279},
    {"cm2_resnet50", 70, "-", "-", "0.8", 0.564},
    {"cm2_resnet50", 50, "-", "-", "-", 1.516},
    {"cm2_resnet50", 30, "-", "-", "-", 3.790},
};

static double cpu_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static bool within_time(const RematProgress *progress, void *begin)
{
    (void)progress;
    return cpu_seconds() - *(double *)begin < SECONDS;
}

static double percent_above(double cost, double base)
{
    return base > 0 ? 100 * (cost / base - 1) : 0;
}

static int64_t given_peak(const RematProblem *problem, Arena *arena)
{
    RematSchedule given = remat_baseline(problem, arena);
    return remat_evaluate(problem, &given).peak;
}

static bool run_row(size_t row, const char *folder, uint64_t effort)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/remat/%s.txt", folder, rows[row].graph);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    Arena *arena = arena_new();
    RematProblem problem;
    bool ok = remat_read(file, path, arena, &problem, stderr);
    fclose(file);
    if (ok) {
        int64_t peak = given_peak(&problem, arena);
        RematOptions options = {.effort = effort, .progress = within_time, .seed = 1};
        options.budget = peak * rows[row].percent / 100;
        double begin = cpu_seconds();
        options.data = &begin;
        RematResult result = remat_solve(&problem, &options, arena);
        double seconds = cpu_seconds() - begin;
        double extra = percent_above(result.cost, result.base_cost);
        bool sound = result.fits && check_peak(&problem, &result.schedule) <= options.budget;
        bool met = sound && (extra <= 1.1 * rows[row].best || extra <= rows[row].best + 0.05);
        printf("%-13s %3d  %9s %8s %6s %7.3f  %8.4f %8.4f  %5.1f s%s%s\n", rows[row].graph,
               rows[row].percent, rows[row].checkmate, rows[row].moccasin, rows[row].fastsa,
               rows[row].best, extra, percent_above(result.bound, result.base_cost), seconds,
               result.stop == REMAT_CANCELLED ? " (cut)" : "",
               met     ? ""
               : sound ? "  above best + 10%"
                       : "  DOES NOT FIT");
        fflush(stdout);
    }
    arena_free(arena);
    return ok;
}

static void run_published(uint64_t effort)
{
    const char *folder = getenv("GPLAN_DATA");
    folder = folder ? folder : "../shared/data";
    printf("extra cost in percent; budget in percent of the given order's peak\n");
    printf("graph         budget Checkmate Moccasin FastSA    best      here    bound   cpu\n");
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++)
        if (!run_row(row, folder, effort)) {
            printf("(no graphs in %s/remat: set GPLAN_DATA to the folder above remat/)\n", folder);
            return;
        }
}

static void run_decoder(RematId nodes, uint64_t effort)
{
    Arena *arena = arena_new();
    RematProblem problem = generate_decoder(arena, nodes);
    RematOptions options = {.effort = effort, .seed = 1};
    options.budget = given_peak(&problem, arena) / 2;
    double begin = cpu_seconds();
    RematResult result = remat_solve(&problem, &options, arena);
    printf("%7u  %8.4f %8.4f  %6.1f s%s\n", (unsigned)problem.nodes,
           percent_above(result.cost, result.base_cost),
           percent_above(result.bound, result.base_cost), cpu_seconds() - begin,
           result.fits ? "" : "  DOES NOT FIT");
    fflush(stdout);
    arena_free(arena);
}

int main(int argc, char **argv)
{
    uint64_t effort = argc > 1 ? strtoull(argv[1], NULL, 10) : EFFORT;
    run_published(effort);
    printf("\ntraining step of a decoder at half of its memory, effort 1/2 of its nodes\n");
    printf("  nodes      here    bound     cpu\n");
    for (RematId nodes = 1000; nodes <= 100000; nodes *= 10)
        run_decoder(nodes, nodes / 2);
    return 0;
}
