/* The peak of resident memory, from before init to after the runs, against the arena. */
#include "memory.h"
#include "expect.h"

static long peak_kib(void)
{
    char line[256];
    long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        sscanf(line, "VmHWM: %ld", &kib);
    if (file)
        fclose(file);
    return kib;
}

int main(void)
{
    memory m;
    long before = peak_kib();
    void *arena = aligned_alloc(64, MEMORY_ARENA_BYTES);
    EXPECT(memory_init(&m, arena, MEMORY_ARENA_BYTES) == MEMORY_OK);
    memory_reset(&m, 1);
    for (int i = 0; i < MEMORY_X_COUNT; i++)
        memory_x(&m)[i] = (float)(i % 17) / 17;
    EXPECT(memory_forward(&m) == MEMORY_OK && memory_forward(&m) == MEMORY_OK);
    long grown = peak_kib() - before, planned = (long)(MEMORY_ARENA_BYTES / 1024);
    printf("arena %ld KiB, resident %ld KiB\n", planned, grown);
    EXPECT(grown <= planned + 1024); /* stack, code and libc beside it */
    free(arena);
    FINISH();
}
