/* Trains `net` from given parameters on one batch, over and over: ranks PARAMETERS BATCH STEPS.
 * Both files are f32 and i32 as the tensors have them, one behind the other; of an input a rank
 * takes its part. Prints each loss, a hash of the parameters, the shortest step, and what is
 * resident above the arena. */
#include HEADER

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef NET_RANKS
#include <mpi.h>
#endif

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Kilobytes of a line of /proc/self/status. */
static long status(const char *name)
{
    char line[200];
    long found = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            found = atol(line + strlen(name) + 1);
    if (file)
        fclose(file);
    return found;
}

static int fill(const net *m, int kind, const char *path, int rank, int ranks)
{
    size_t count;
    const net_tensor *t = net_tensors(&count);
    FILE *file = fopen(path, "rb");
    int good = file != NULL;
    for (size_t i = 0; i < count && good; i++) {
        if (t[i].kind != kind)
            continue;
        good = fseek(file, (long)((size_t)rank * t[i].bytes), SEEK_CUR) == 0 &&
               fread(m->arena + t[i].offset, t[i].bytes, 1, file) == 1 &&
               fseek(file, (long)((size_t)(ranks - 1 - rank) * t[i].bytes), SEEK_CUR) == 0;
    }
    good = good && (kind == NET_PARAM || fgetc(file) == EOF);
    if (file)
        fclose(file);
    return good;
}

static uint64_t hash(const net *m)
{
    size_t count;
    const net_tensor *t = net_tensors(&count);
    uint64_t sum = 14695981039346656037u;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; t[i].kind == NET_PARAM && k < t[i].bytes; k++)
            sum = (sum ^ m->arena[t[i].offset + k]) * 1099511628211u;
    return sum;
}

int main(int argc, char **argv)
{
    static net m;
    int rank = 0, ranks = 1;
    float loss;
    double shortest = 1e30;
    unsigned char *arena = aligned_alloc(NET_ARENA_ALIGN, NET_ARENA_BYTES);
    if (!arena || argc < 4)
        return 2;
    memset(arena, 0, NET_ARENA_BYTES); /* all of it is resident */
#ifdef NET_RANKS
    MPI_Init(&argc, &argv);
    MPI_Comm world = MPI_COMM_WORLD;
    if (net_init(&m, arena, NET_ARENA_BYTES, &world) != NET_OK)
        return 1;
    rank = net_rank(&m);
    ranks = NET_RANKS;
#else
    if (net_init(&m, arena, NET_ARENA_BYTES) != NET_OK)
        return 1;
#endif
    net_threads(&m, 1);
    net_reset(&m, 1);
    if (!fill(&m, NET_PARAM, argv[1], 0, 1))
        return fprintf(stderr, "%s does not fit\n", argv[1]);
    if (!fill(&m, NET_INPUT, argv[2], rank, ranks))
        return fprintf(stderr, "%s does not fit\n", argv[2]);
    for (int step = 0; step < atoi(argv[3]); step++) {
        const double begin = now();
        if (net_step(&m, &loss) != NET_OK)
            return fprintf(stderr, "%s\n", net_error(&m));
        if (step > 0 && now() - begin < shortest)
            shortest = now() - begin;
        if (rank == 0)
            printf("loss %.9g\n", (double)loss);
    }
    const double arena_kb = (double)NET_ARENA_BYTES / 1024;
    if (rank == 0)
        printf("hash %016llx\nseconds %.4f\narena %.0f\nabove %.0f\n", (unsigned long long)hash(&m),
               shortest, arena_kb, (double)status("VmHWM:") - arena_kb);
#ifdef NET_RANKS
    net_close(&m);
    MPI_Finalize();
#endif
    free(arena);
    return 0;
}
