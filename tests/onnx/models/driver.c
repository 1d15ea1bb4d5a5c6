/* Runs an emitted model, m.c: driver (lists its tensors), or
 * driver WEIGHTS RUNS THREADS: reads input_I of the current folder, writes output_I, and prints the
 * least time of a run in seconds, the arena's bytes, and the most that was resident. */
#include "m.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(1);
}

/* In kB. What getrusage says is at least what the program had that started this one. */
static long most_resident(void)
{
    char line[200];
    long most = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "VmHWM:", 6) == 0)
            most = strtol(line + 6, NULL, 10);
    if (file)
        fclose(file);
    return most;
}

static void list(void)
{
    size_t count;
    const m_tensor *t = m_tensors(&count);
    for (; count; count--, t++) {
        if (t->kind != M_INPUT && t->kind != M_OUTPUT)
            continue;
        printf("%s\t%s\t%d\t", t->kind == M_INPUT ? "input" : "output", t->name, t->dtype);
        for (int i = 0; i < t->rank; i++)
            printf("%s%lld", i ? "," : "", (long long)t->dim[i]);
        printf("\n");
    }
}

/* All inputs are read, or all outputs written, in the order that list() has them in. */
static void move(m *model, int kind)
{
    size_t count;
    const m_tensor *t = m_tensors(&count);
    char path[40];
    int number = 0;
    for (; count; count--, t++) {
        if (t->kind != kind)
            continue;
        snprintf(path, sizeof path, "%s_%d", kind == M_INPUT ? "input" : "output", number++);
        FILE *file = fopen(path, kind == M_INPUT ? "rb" : "wb");
        unsigned char *at = model->arena + t->offset;
        if (!file || (kind == M_INPUT ? fread(at, 1, t->bytes, file)
                                      : fwrite(at, 1, t->bytes, file)) != t->bytes)
            fail(path);
        fclose(file);
    }
}

int main(int argc, char **argv)
{
    static m model;
    if (argc < 4) {
        list();
        return 0;
    }
    size_t bytes = (M_ARENA_BYTES + M_ARENA_ALIGN - 1) / M_ARENA_ALIGN * M_ARENA_ALIGN;
    void *arena = aligned_alloc(M_ARENA_ALIGN, bytes);
    if (!arena || m_init(&model, arena, bytes) != M_OK)
        fail("no memory");
    m_reset(&model, 1);
    FILE *weights = fopen(argv[1], "rb"); /* a model without any has no file */
    if (weights && (fclose(weights) != 0 || m_load(&model, argv[1]) != M_OK))
        fail(m_error(&model));
    m_threads(&model, atoi(argv[3]));
    double best = 1e30;
    for (int i = atoi(argv[2]); i > 0; i--) {
        move(&model, M_INPUT);
        double start = now();
        if (m_forward(&model) != M_OK)
            fail(m_error(&model));
        double seconds = now() - start;
        best = seconds < best ? seconds : best;
    }
    move(&model, M_OUTPUT);
    printf("%.9g %llu %ld\n", best, (unsigned long long)M_ARENA_BYTES, most_resident());
    return 0;
}
