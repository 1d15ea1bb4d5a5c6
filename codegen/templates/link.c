/* Measures the link between ranks, and prints a profile for gplan --profile: with the rates of the
 * machine that gplan --calibrate ran on, and those of the link between the ranks that run this.
 *
 *   mpicc -O2 MODEL_HEADER_NAME -o link && mpirun -n 2 ./link >cluster.json
 *
 * It sends as programs for several ranks do: all ranks at once, a few pieces at a time, from and to
 * more memory than caches hold.
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include <stdio.h>
#include <stdlib.h>
MODEL_INCLUDES

#include "runtime/c/types.h"
MODEL_TYPES

#include "runtime/c/ranks_mpi.h"
MODEL_KERNELS

enum {
    WINDOW = GP_RANKS_OWN, /* messages that are under way */
    PIECE = GP_RANKS_PIECE * (int)sizeof(gp_real),
    SLOTS = (64 << 20) / PIECE, /* pieces that lie side by side, as in a large gradient */
    LINE = 8192,                /* numbers that are added between two looks at the link */
};

static double seconds = 0.3; /* for each measurement */
static _Alignas(64) unsigned char state[1 << 16];
static _Alignas(64) unsigned char piece[2][SLOTS][PIECE];
static volatile gp_real line[LINE];

/* Messages to the next rank, and from the one before. */
typedef struct {
    gp_ranks *r;
    size_t bytes; /* of one */
    int count, begun[2];
    gp_message under_way[2][WINDOW];
} exchange;

/* Whether all are done, after moving what can move; -1: the link failed. */
static int move(exchange *x)
{
    gp_ranks *r = x->r;
    int idle = 0;
    for (int in = 0; in < 2; in++)
        for (int i = 0; i < WINDOW; i++) {
            gp_message *m = &x->under_way[in][i];
            int code = gp_ranks_test(r, m);
            if (code > 0 && x->begun[in] < x->count) {
                const int slot = x->begun[in] % SLOTS;
                const int tag = GP_TAG_PART + x->begun[in]++ % GP_TAGS;
                const int to = (r->rank + 1) % r->ranks;
                const int from = (r->rank + r->ranks - 1) % r->ranks;
                code = in ? r->link.receive(r, piece[1][slot], x->bytes, from, tag, m)
                          : r->link.send(r, piece[0][slot], x->bytes, to, tag, m);
            }
            if (code < 0)
                return -1;
            idle += code > 0 && !*m;
        }
    return idle == 2 * WINDOW;
}

static void work(void)
{
    for (int i = 0; i < LINE; i++)
        line[i] = line[i] + 1;
}

/* The mean of all ranks; it makes them begin together, too. */
static double of_all(gp_ranks *r, double number)
{
    if (gp_ranks_total(r, &number, 0, "link") != GP_OK) {
        fprintf(stderr, "rank %d: %s\n", r->rank, r->text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return number / r->ranks;
}

/* Seconds until so many messages are sent and here; with `works` not NULL the cores compute in
 * between, so often. */
static double run(gp_ranks *r, size_t bytes, int count, int64_t *works)
{
    exchange x = {.r = r, .bytes = bytes, .count = count};
    of_all(r, 0);
    const double begin = gp_ranks_clock();
    int64_t looks = 0, changes = r->changes;
    int done;
    while ((done = move(&x)) == 0) {
        looks = r->changes == changes ? looks + 1 : 0;
        changes = r->changes;
        if (works) {
            work();
            ++*works;
        } else {
            gp_ranks_pause(looks); /* as who waits for a sum does */
        }
    }
    if (done < 0)
        gp_ranks_alarm(r, "a message failed");
    return of_all(r, gp_ranks_clock() - begin);
}

/* As many messages as take long enough. */
static double enough(gp_ranks *r, size_t bytes, int *count)
{
    double took = run(r, bytes, *count, NULL);
    while (took < seconds && *count < 1 << 24) {
        *count *= took < seconds / 16 ? 8 : 2;
        took = run(r, bytes, *count, NULL);
    }
    return took;
}

static double work_alone(gp_ranks *r)
{
    int64_t works = 0;
    of_all(r, 0);
    const double begin = gp_ranks_clock();
    for (; gp_ranks_clock() - begin < seconds; works++)
        work();
    return of_all(r, (gp_ranks_clock() - begin) / (double)works);
}

int main(int argc, char **argv)
{
    MPI_Comm world = MPI_COMM_WORLD;
    gp_ranks *r = (gp_ranks *)(void *)state;
    int size, large = 64, small = 1024;
    int64_t works = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(world, &size);
    if (argc > 1)
        seconds = atof(argv[1]);
    if (size < 2 || !(seconds > 0)) {
        fprintf(stderr, "mpirun -n 2 %s [SECONDS]: measures the link between ranks\n", argv[0]);
        return 2;
    }
    if (gp_mpi_begin(r, sizeof state, 1, size, 1, &world) != GP_OK) {
        fprintf(stderr, "%s\n", r->text);
        MPI_Abort(world, 1);
    }
    const double many = enough(r, 8, &small), start = many / small;
    const double moved = enough(r, PIECE, &large);
    const double bytes = PIECE / (moved / large > 2 * start ? moved / large - start : start);
    const double alone = work_alone(r), both = run(r, PIECE, large, &works);
    const double taken = (both - of_all(r, (double)works) * alone) / moved;
    if (r->rank == 0)
        printf("%s,\n  \"link_bytes\": %.4g,\n  \"link_start\": %.4g,\n  \"link_core\": %.4g\n}\n",
               MODEL_PROFILE, bytes, start,
               taken < 0.01 ? 0.01
               : taken > 1  ? 1
                            : taken);
    gp_mpi_end(r);
    MPI_Finalize();
    return 0;
}
