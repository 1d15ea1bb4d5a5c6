/* The barriers of CUDA's kernels: with all of them no case of tests/ops, its gradient included, has
 * a race on shared memory; without any one of them some case has.
 *
 * A kernel that went wrong leaves nothing usable behind, so each attempt is a process of its own.
 * With GPLAN_SOAK every case is run whole; without it those that move few numbers. */
#include "tests/cuda_on_cpu/barriers.h"
#include "tests/ops/derived.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_SITES = 256, MAX_CASES = 4096, SMALL = 3000, TRIES = 400 };

typedef struct {
    char file[64]; /* without folders */
    int line;
} Site;

/* What a child tells. */
typedef struct {
    const char *wrong;                           /* text of a literal, or an op's name */
    unsigned char reached[MAX_SITES][MAX_CASES]; /* by site and case */
} Told;

static Site site[MAX_SITES];
static int sites;
static Told *told;

/* Of all rows, then of all in bf16; false past the last. */
static bool case_number_of(int number, const OpCase **row, Dtype *dtype)
{
    for (int pass = 0; pass < 2; pass++)
        for (size_t table = 0; cases_at(table); table++)
            for (*row = cases_at(table); (*row)->op; ++*row) {
                *dtype = pass ? BF16 : F32;
                if (number-- == 0)
                    return true;
            }
    return false;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Every barrier in the text of the kernels. */
static void find_sites(void)
{
    glob_t files;
    cr_assert_eq(glob("runtime/cuda/*.cuh", 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        char text[256];
        FILE *in = fopen(files.gl_pathv[i], "r");
        cr_assert(in);
        for (int line = 1; fgets(text, sizeof text, in); line++)
            if (strstr(text, "__syncthreads()") || strstr(text, "__syncwarp(")) {
                cr_assert_lt(sites, MAX_SITES);
                snprintf(site[sites].file, sizeof site[sites].file, "%s",
                         base_name(files.gl_pathv[i]));
                site[sites++].line = line;
            }
        fclose(in);
    }
    globfree(&files);
}

static int64_t elements_of(const Graph *g)
{
    int64_t count = 0;
    for (size_t i = 0; i < g->value.count; i++)
        count += value_count(&g->value.at[i]);
    return count;
}

/* Runs the case and its gradient once: GP_OK, or what a kernel returned. */
static int run_case(int number, int64_t most)
{
    Arena *arena = arena_new();
    const OpCase *row;
    Dtype dtype;
    OpCase one = {0};
    if (case_number_of(number, &row, &dtype))
        one = dtype == F32 ? *row : case_narrowed(arena, row, dtype);
    if (!one.op) { /* it has none in 16 bits */
        arena_free(arena);
        return GP_OK;
    }
    Built b = case_with_gradients(arena, &one);
    int status = GP_OK;
    if (!b.refused && elements_of(b.graph) <= most) {
        RunOptions options = {.seed = 3};
        Run *run = run_new(arena, b.graph);
        case_write(run, &b);
        status = run_graph(run, &options);
        run_free(run);
    }
    free(b.message);
    arena_free(arena);
    return status;
}

static int exit_status_of(pid_t child)
{
    int status = 0;
    cr_assert_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static void note_site(void *to, const char *file, int line)
{
    const int number = *(const int *)to;
    for (int i = 0; i < sites; i++)
        if (site[i].line == line && strcmp(site[i].file, base_name(file)) == 0)
            told->reached[i][number] = 1;
}

/* Which cases reach which barrier; stops at a case that does not run. */
static int run_all(int64_t most)
{
    const OpCase *row;
    Dtype dtype;
    for (int i = 0; case_number_of(i, &row, &dtype) && i < MAX_CASES; i++) {
        if (run_case(i, most) != GP_OK) {
            told->wrong = row->op;
            return 1;
        }
        barriers_passed(note_site, &i);
    }
    return 0;
}

/* Whether some case that reaches the barrier goes wrong without it. */
static bool is_missed(int number, int64_t most)
{
    char skipped[96];
    snprintf(skipped, sizeof skipped, "%s:%d", site[number].file, site[number].line);
    for (int i = 0, tries = 0; i < MAX_CASES && tries < TRIES; i++) {
        if (!told->reached[number][i])
            continue;
        tries++;
        fflush(NULL);
        const pid_t child = fork();
        if (child == 0) {
            setenv("CUDA_ON_CPU_SKIP", skipped, 1);
            freopen("/dev/null", "w", stderr);
            _exit(run_case(i, most) != GP_OK);
        }
        if (exit_status_of(child) != 0)
            return true;
    }
    return false;
}

static int64_t size_limit(void)
{
    return getenv("GPLAN_SOAK") ? INT64_MAX : SMALL;
}

Test(barriers, are_enough_and_none_is_idle, .timeout = 3600)
{
    find_sites();
    cr_assert_gt(sites, 0);
    FILE *shared = tmpfile();
    cr_assert(shared && ftruncate(fileno(shared), sizeof *told) == 0);
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(shared), 0);
    cr_assert(told != MAP_FAILED);
    const pid_t child = fork();
    if (child == 0)
        _exit(run_all(size_limit()));
    const int status = exit_status_of(child);
    cr_assert_eq(status, 0, "%s has a race: see above", told->wrong ? told->wrong : "a case");
    for (int i = 0; i < sites; i++)
        cr_expect(is_missed(i, size_limit()), "%s:%d: no case goes wrong without the barrier",
                  site[i].file, site[i].line);
    printf("%d barriers\n", sites);
}
