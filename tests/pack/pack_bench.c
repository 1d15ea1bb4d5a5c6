/* How good and how fast the packer is, as tables. Times are processor time of this thread.
 *
 * The published problems are looked for in GPLAN_DATA/pack, or ../shared/data/pack; without them
 * the made-up ones are measured alone. An argument picks tables: published, large, perfect,
 * variants, random, least.
 */
#include "planner/pack/csv.h"
#include "tests/pack/pack_generate.h"
#include "tests/pack/pack_judge.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CAPACITY ((uint64_t)1048576)
#define SECOND ((uint64_t)300 * 1000 * 1000) /* of effort, about; other programs do not count */

/* The eight hard problems, and the seconds that the best published solver takes for them. */
static const struct {
    const char *name;
    double published;
} hard[] = {{"A", 7.3}, {"B", 5.7}, {"D", 3.4}, {"E", 5.4},
            {"G", 1.6}, {"H", 2.4}, {"J", 1.4}, {"K", 0.9}};
enum { HARD = sizeof hard / sizeof *hard, MOST_TIMES = 2000 };

typedef struct {
    PackStatus status;
    PackSolution solution;
    double seconds;
} Result;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static Result solve(Arena *arena, const PackProblem *problem, PackOptions options)
{
    Result result = {.solution.offset = ARENA_ARRAY(arena, uint64_t, problem->count)};
    double start = now();
    result.status = pack_solve(problem, &options, &result.solution);
    result.seconds = now() - start;
    const char *fault = judge(problem, result.status, &result.solution);
    if (fault) {
        printf("WRONG: %s\n", fault);
        exit(1);
    }
    return result;
}

static double gap(const Result *result)
{
    return 100 * ((double)result->solution.height / (double)result->solution.bound - 1);
}

static const char *data_folder(void)
{
    static char folder[4096];
    const char *data = getenv("GPLAN_DATA");
    snprintf(folder, sizeof folder, "%s/pack", data ? data : "../shared/data");
    return folder;
}

static bool load(Arena *arena, const char *name, PackProblem *problem)
{
    char *path = arena_printf(arena, "%s/%s.csv", data_folder(), name);
    FILE *in = fopen(path, "rb");
    if (!in) {
        printf("%-16s not there: looked for %s\n", name, path);
        return false;
    }
    fseek(in, 0, SEEK_END);
    long length = ftell(in);
    rewind(in);
    char *text = arena_alloc(arena, (size_t)length + 1);
    size_t got = fread(text, 1, (size_t)length, in);
    fclose(in);
    PackCsvError error = {0};
    PackCsv *csv = pack_csv_read(arena, text, got, &error);
    if (!csv) {
        printf("%s:%zu: error: %s\n", path, error.line, error.message);
        return false;
    }
    *problem = csv->problem;
    return true;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Times of many runs: how many succeeded, and the tail. */
typedef struct {
    double time[MOST_TIMES];
    size_t count, solved;
} Times;

static void add(Times *times, const Result *result)
{
    times->time[times->count++] = result->seconds;
    times->solved += result->status == PACK_OK;
}

static double show(const char *name, Times *times)
{
    double sum = 0, *time = times->time;
    size_t n = times->count;
    if (!n)
        return 0;
    qsort(time, n, sizeof *time, by_value);
    for (size_t i = 0; i < n; i++)
        sum += time[i];
    double mean = sum / (double)n;
    printf("%-16s %4zu of %4zu  mean %8.4f  median %8.4f  90%% %8.4f  99%% %8.4f  most %8.4f\n",
           name, times->solved, n, mean, time[n / 2], time[n * 9 / 10], time[n * 99 / 100],
           time[n - 1]);
    fflush(stdout);
    return mean;
}

static void bench_published(void)
{
    enum { SEEDS = 20 };
    double sum = 0, published = 0;
    printf("\nPublished hard problems at capacity %llu, %d seeds each; seconds\n",
           (unsigned long long)CAPACITY, SEEDS);
    for (size_t h = 0; h < HARD; h++) {
        Arena *arena = arena_new();
        PackProblem problem;
        Times times = {.count = 0};
        char name[32];
        snprintf(name, sizeof name, "%s.1048576", hard[h].name);
        bool there = load(arena, name, &problem);
        problem.capacity = CAPACITY;
        for (uint64_t seed = 0; there && seed < SEEDS; seed++) {
            PackOptions options = {.effort = 20 * SECOND, .seed = seed};
            Result result = solve(arena, &problem, options);
            add(&times, &result);
        }
        sum += show(hard[h].name, &times);
        published += there ? hard[h].published : 0;
        arena_free(arena);
    }
    if (published > 0)
        printf("sum of means %.4f s; the published solver %.1f s: %.0f times\n", sum, published,
               published / sum);
}

static void bench_least(void)
{
    static const char *const name[] = {"D.1048576", "J.1048576"};
    printf("\nThe smallest capacity, 20 s each\n");
    for (size_t i = 0; i < 2; i++) {
        Arena *arena = arena_new();
        PackProblem problem;
        if (load(arena, name[i], &problem)) {
            Result result = solve(arena, &problem, (PackOptions){.effort = 20 * SECOND});
            printf("%-16s %llu, bound %llu, %s (%s), %.2f s\n", name[i],
                   (unsigned long long)result.solution.height,
                   (unsigned long long)result.solution.bound,
                   result.solution.optimal ? "proved optimal" : "not proved",
                   pack_stop_name(result.solution.stop), result.seconds);
        }
        arena_free(arena);
    }
}

static void bench_large(void)
{
    static const char *const name[] = {"input.12", "resnet50", "G_1", "pangu_2.6B"};
    printf("\nPublished problems of programs, default effort\n");
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        Arena *arena = arena_new();
        PackProblem problem;
        if (load(arena, name[i], &problem)) {
            Result result = solve(arena, &problem, (PackOptions){0});
            printf("%-16s %6zu buffers  height %llu  gap %.3f%%  %.4f s\n", name[i], problem.count,
                   (unsigned long long)result.solution.height, gap(&result), result.seconds);
        }
        arena_free(arena);
    }
}

static void bench_perfect(void)
{
    static const size_t count[] = {50, 100, 200, 500, 1000, 2000};
    enum { EACH = 10 };
    printf("\nPerfect packings (a rectangle cut at random): solved in 10 s; seconds\n");
    for (size_t c = 0; c < sizeof count / sizeof *count; c++) {
        Times times = {.count = 0};
        for (uint64_t seed = 0; seed < EACH; seed++) {
            Arena *arena = arena_new();
            PackProblem problem = generate_perfect(arena, count[c], CAPACITY, 1024, seed);
            problem.capacity = CAPACITY;
            Result result = solve(arena, &problem, (PackOptions){.effort = 10 * SECOND});
            add(&times, &result);
            arena_free(arena);
        }
        char name[32];
        snprintf(name, sizeof name, "%zu buffers", count[c]);
        show(name, &times);
    }
}

static void bench_variants(void)
{
    static const size_t percent[] = {10, 30, 100};
    enum { EACH = 5 };
    printf("\nVariants of the hard problems, buffers split at random: solved in 5 s; seconds\n");
    for (size_t p = 0; p < sizeof percent / sizeof *percent; p++) {
        Times all = {.count = 0};
        for (size_t h = 0; h < HARD; h++) {
            Arena *arena = arena_new();
            PackProblem problem;
            Times times = {.count = 0};
            char name[32];
            snprintf(name, sizeof name, "%s.1048576", hard[h].name);
            bool there = load(arena, name, &problem);
            problem.capacity = CAPACITY;
            for (uint64_t seed = 0; there && seed < EACH; seed++) {
                PackProblem variant =
                    generate_split(arena, &problem, problem.count * percent[p] / 100, seed);
                Result result = solve(arena, &variant, (PackOptions){.effort = 5 * SECOND});
                add(&times, &result);
                add(&all, &result);
            }
            snprintf(name, sizeof name, "%s +%zu%%", hard[h].name, percent[p]);
            show(name, &times);
            arena_free(arena);
        }
        char name[32];
        snprintf(name, sizeof name, "all +%zu%%", percent[p]);
        show(name, &all);
    }
}

static void bench_random(void)
{
    static const int64_t longest[] = {100, 1000, 10000, 100000};
    static const uint64_t effort[] = {1, 30 * 1000 * 1000};
    printf("\n100,000 random intervals in [0, 100000)\n");
    for (size_t i = 0; i < sizeof longest / sizeof *longest; i++)
        for (size_t e = 0; e < 2; e++) {
            Arena *arena = arena_new();
            PackProblem problem = generate_random(arena, 100000, 100000, longest[i], 100000, 1);
            Result result = solve(arena, &problem, (PackOptions){.effort = effort[e]});
            printf("longest %6lld, effort %9llu: gap %6.3f%%  %.3f s\n", (long long)longest[i],
                   (unsigned long long)effort[e], gap(&result), result.seconds);
            arena_free(arena);
        }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } table[] = {{"published", bench_published}, {"least", bench_least},
                 {"large", bench_large},         {"perfect", bench_perfect},
                 {"variants", bench_variants},   {"random", bench_random}};
    printf("Published problems are looked for in %s (set GPLAN_DATA to change it).\n",
           data_folder());
    for (size_t t = 0; t < sizeof table / sizeof *table; t++) {
        bool wanted = argc < 2;
        for (int i = 1; i < argc; i++)
            wanted |= !strcmp(argv[i], table[t].name);
        if (wanted)
            table[t].run();
    }
    return 0;
}
