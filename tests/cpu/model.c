/* Times an emitted model: the best of a few runs of the forward pass or, with -DSTEP, of the
 * training step. Compiled with -DMODEL=name -DMODEL_UPPER=NAME -DHEADER='"name.h"'; with
 * -DGPLAN_PROFILE it also prints what each kind of op takes, in percent.
 * With -DEXPECTED='an expression of x, y and b in double' the output z is compared with it first;
 * where it is another, the program prints WRONG and ends with status 1.
 * usage: model [threads] [runs]; prints seconds, arena bytes and resident bytes. */
#include HEADER

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define OF(name) JOIN(MODEL, name)
#define UPPER(name) JOIN(MODEL_UPPER, name)

/* One thread: seconds of the CPU, so that a busy machine disturbs little. */
static clockid_t measure = CLOCK_MONOTONIC;

static double now(void)
{
    struct timespec t;
    clock_gettime(measure, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Reals between -1 and 1, other ones in each tensor; ids that every table has. */
static void fill_inputs(MODEL *m)
{
    size_t count;
    const OF(tensor) *t = OF(tensors)(&count);
    for (size_t i = 0; i < count; i++) {
        if (t[i].kind != UPPER(INPUT))
            continue;
        unsigned char *at = m->arena + t[i].offset;
        for (size_t k = 0; k < t[i].bytes / 4; k++) {
            const float real = (float)((k + 31 * i) * 2654435761u % 2001) / 1000 - 1;
            const int32_t id = (int32_t)(k % 10);
            memcpy(at + 4 * k, t[i].dtype == UPPER(F32) ? (const void *)&real : &id, 4);
        }
    }
}

#ifdef EXPECTED
/* Whether z is what x, y and b, repeated along the rows, should give. */
static int is_right(MODEL *m)
{
    double off = 0, largest = 0;
    for (size_t i = 0; i < UPPER(Z_COUNT); i++) {
        const double x = X(m, i), y = Y(m, i), b = BIAS(m, i), want = EXPECTED;
        (void)x, (void)y, (void)b;
        const double now_off = fabs(want - (double)OF(z)(m)[i]);
        off = now_off <= off ? off : now_off;
        largest = fabs(want) > largest ? fabs(want) : largest;
    }
    return off <= 2e-6 * largest;
}
#endif

#ifdef GPLAN_PROFILE
/* The first word of an op's name is its kind. */
static void print_profile(const double *seconds)
{
    double total = 0;
    for (int i = 0; i < UPPER(OPS); i++)
        total += seconds[i];
    for (int i = 0; i < UPPER(OPS); i++) {
        const size_t length = strcspn(OF(op_name)(i), " ");
        double sum = 0;
        int first = 1;
        for (int k = 0; k < UPPER(OPS); k++)
            if (strncmp(OF(op_name)(i), OF(op_name)(k), length + 1) == 0) {
                sum += seconds[k];
                first = first && k >= i;
            }
        if (first && sum > 0.005 * total)
            printf("  %5.1f%%  %.*s\n", 100 * sum / total, (int)length, OF(op_name)(i));
    }
}
#endif

int main(int argc, char **argv)
{
    static MODEL m;
    const int threads = argc > 1 ? atoi(argv[1]) : 1, runs = argc > 2 ? atoi(argv[2]) : 3;
    if (threads == 1)
        measure = CLOCK_PROCESS_CPUTIME_ID;
    const size_t bytes = (UPPER(ARENA_BYTES) + 2097151) / 2097152 * 2097152;
    void *arena = aligned_alloc(2097152, bytes);
    if (!arena || OF(init)(&m, arena, bytes) != 0)
        return 2;
    OF(threads)(&m, threads);
    OF(reset)(&m, 1);
    double best = 1e30;
    for (int i = 0; i < runs + 1; i++) { /* the first run warms up */
#ifdef GPLAN_PROFILE
        static double seconds[UPPER(OPS)];
        memset(seconds, 0, sizeof seconds);
        OF(profile)(&m, seconds);
#endif
        fill_inputs(&m);
        const double start = now();
#ifdef STEP
        const int code = OF(step)(&m, NULL);
#else
        const int code = OF(forward)(&m);
#endif
        const double time = now() - start;
        if (code != 0) {
            printf("%s\n", OF(strerror)(code));
            return 1;
        }
        best = i > 0 && time < best ? time : best;
#ifdef EXPECTED
        if (i == 0 && !is_right(&m)) {
            printf("WRONG\n");
            return 1;
        }
#endif
#ifdef GPLAN_PROFILE
        if (i == runs)
            print_profile(seconds);
#endif
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("%.6f %llu %llu\n", best, (unsigned long long)UPPER(ARENA_BYTES),
           (unsigned long long)usage.ru_maxrss * 1024);
    free(arena);
    return 0;
}
