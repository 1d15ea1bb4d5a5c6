/* Trains net on what each rank has of a batch that is the same everywhere, prints what rank 0 saw
 * to the bit, and saves to FILE: trainer FILE [load=FILE] [steps=N] [timeout=S]
 * [index|kill|stop|cancel=RANK], where the fault comes in the second step, and [full|away=RANK],
 * where it comes when all save: a limit to files, another folder; files=1: that is asked before. */
#include HEADER

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#ifdef NET_RANKS
#include <mpi.h>
#endif

static _Alignas(64) unsigned char arena[NET_ARENA_BYTES];

static const char *argument(char **argv, const char *name, const char *otherwise)
{
    for (; *argv; argv++)
        if (strncmp(*argv, name, strlen(name)) == 0 && (*argv)[strlen(name)] == '=')
            return *argv + strlen(name) + 1;
    return otherwise;
}

static int stop(void *user, uint64_t step, int op, int ops)
{
    (void)user, (void)op, (void)ops;
    return step == 1;
}

static int failed(const net *m, int rank, const char *what)
{
    fprintf(stderr, "rank %d: %s: %s\n", rank, what, net_error(m));
    return 1;
}

int main(int argc, char **argv)
{
    net m;
    int rank = 0, ranks = 1;
#ifdef NET_RANKS
    MPI_Init(&argc, &argv);
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Comm_rank(world, &rank);
    ranks = NET_RANKS;
    if (net_init(&m, arena, sizeof arena, &world) != NET_OK)
        return failed(&m, rank, "init");
    if (net_rank(&m) != rank)
        return failed(&m, rank, "another rank");
    net_timeout(&m, atof(argument(argv, "timeout", "60")));
#else
    if (net_init(&m, arena, sizeof arena) != NET_OK)
        return failed(&m, rank, "init");
#endif
    (void)argc;
    net_reset(&m, 5);
    const char *load = argument(argv, "load", NULL);
    if (load && net_load(&m, load) != NET_OK)
        return failed(&m, rank, "load");
    const int rows = NET_LABELS_COUNT, width = NET_X_COUNT / NET_LABELS_COUNT;
    const int steps = atoi(argument(argv, "steps", "4"));
    for (int s = 0; s < steps; s++) {
        const int t = (int)m.step;
        for (int i = 0; i < rows; i++) {
            const int row = rank * rows + i;
            for (int k = 0; k < width; k++)
                net_x(&m)[i * width + k] = (row * 31 + k * 7 + t * 3) % 17;
            net_labels(&m)[i] = (row * 3 + t) % 10;
        }
        net_valid(&m, t == 2 ? rows * ranks - 3 : 0);
        if (s == 1 && rank == atoi(argument(argv, "index", "-1")))
            net_labels(&m)[0] = 1000;
        if (s == 1 && rank == atoi(argument(argv, "kill", "-1")))
            raise(SIGKILL);
        if (s == 1 && rank == atoi(argument(argv, "stop", "-1")))
            raise(SIGSTOP);
        if (s == 1 && rank == atoi(argument(argv, "cancel", "-1")))
            net_progress(&m, stop, NULL);
        float loss, other;
        if (net_step(&m, &loss) != NET_OK)
            return failed(&m, rank, "step");
        const float share = *net_accuracy(&m);
        if (net_eval(&m, &other) != NET_OK)
            return failed(&m, rank, "eval");
        if (rank == 0)
            printf("%d %a %a %a %a\n", t, loss, other, share, *net_accuracy(&m));
    }
    if (rank == atoi(argument(argv, "full", "-1"))) {
        const struct rlimit most = {4096, 4096};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &most);
    }
    if (rank == atoi(argument(argv, "away", "-1")) && chdir("/") != 0)
        return failed(&m, rank, "chdir");
#ifdef NET_RANKS
    if (*argument(argv, "files", "") && net_check_files(&m, argv[1]) != NET_OK)
        return failed(&m, rank, "files");
#endif
    if (net_save(&m, argv[1]) != NET_OK)
        return failed(&m, rank, "save");
#ifdef NET_RANKS
    net_close(&m);
    MPI_Finalize();
#endif
    return 0;
}
