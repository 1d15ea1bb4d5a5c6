/* Runs the emitted lenet on made-up images and measures time and resident memory. */
#include "lenet.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static long resident_kib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

int main(void)
{
    long before = resident_kib();
    lenet m;
    void *arena = aligned_alloc(LENET_ARENA_ALIGN, LENET_ARENA_BYTES);
    int code = arena ? lenet_init(&m, arena, LENET_ARENA_BYTES) : LENET_EARENA;
    if (code) {
        fprintf(stderr, "demo: %s\n", lenet_strerror(code));
        return 1;
    }
    lenet_reset(&m, 1);
    float *images = lenet_images(&m);
    for (size_t i = 0; i < LENET_IMAGES_COUNT; i++)
        images[i] = (float)(i % 251) / 251;

    enum { CALLS = 20 };
    clock_t start = clock();
    for (int i = 0; i < CALLS && !code; i++)
        code = lenet_forward(&m);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    if (code) {
        fprintf(stderr, "demo: %s\n", lenet_strerror(code));
        return 1;
    }
    printf("%d forward passes, %.2f ms of processor time each\n", CALLS, 1000 * seconds / CALLS);
    printf("arena %.2f MiB, resident memory grew by %.2f MiB\n", LENET_ARENA_BYTES / 1048576.0,
           (double)(resident_kib() - before) / 1024);
    free(arena);
    return 0;
}
