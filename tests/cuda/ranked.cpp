/* Trains `net` on several ranks, a process each, or on one: ranked FILE [HOW] [OPTION=RANK]
 * [timeout=S] [steps=N] [load=FILE]. Rank 0 prints what it saw to the bit and saves to FILE, as
 * tests/ranks/trainer.c does. HOW: plain, replay. index, cancel, quit, other: that rank sees a bad
 * index, cancels, is gone or counts other steps, in the second step; others: reads other samples
 * (-DREADS: the model reads them); slow, away: when all save, it takes its time, or is in another
 * folder; lone: it is the only one. */
#include HEADER

#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <string>
#include <vector>
#ifdef NET_RANKS
#include <nccl.h>
static const int ranks = NET_RANKS;
#else
static const int ranks = 1;
#endif

static std::vector<std::string> arguments;

static std::string argument(const std::string &name, const char *otherwise)
{
    for (const auto &a : arguments)
        if (a.compare(0, name.size() + 1, name + "=") == 0)
            return a.substr(name.size() + 1);
    return otherwise;
}

static bool is_rank(const char *name, int rank)
{
    return atoi(argument(name, "-1").c_str()) == rank;
}

static bool writes_slowly;

/* In the place of the C library's. */
extern "C" ssize_t write(int file, const void *bytes, size_t count)
{
    const struct timespec a_while = {0, 100000000};
    if (writes_slowly)
        nanosleep(&a_while, NULL);
    return syscall(SYS_write, file, bytes, count);
}

static int stop(void *, uint64_t step, int, int)
{
    return step == 1;
}

static int failed(const net *m, int rank, const char *what, int code)
{
    fprintf(stderr, "on rank %d: %s: %d: %s\n", rank, what, NET_ERROR_KIND(code), net_error(m));
    return 1;
}

/* Its batch of step t, which is the same however many ranks divide it. */
static void set_batch(net *m, int rank, int t, bool wrong)
{
#ifdef READS
    (void)m, (void)rank, (void)t, (void)wrong;
#else
    const int rows = NET_LABELS_COUNT, width = NET_X_COUNT / NET_LABELS_COUNT;
    static std::vector<int32_t> x(NET_X_COUNT), labels(NET_LABELS_COUNT); /* copied later on */
    for (int i = 0; i < rows; i++) {
        const int row = rank * rows + i;
        for (int k = 0; k < width; k++)
            x[i * width + k] = (row * 31 + k * 7 + t * 3) % 17;
        labels[i] = (row * 3 + t) % 10;
    }
    if (wrong)
        labels[0] = 1000;
    net_valid(m, t == 2 ? rows * ranks - 3 : 0);
    net_set_x(m, x.data());
    net_set_labels(m, labels.data());
#endif
}

/* The next batch of those to evaluate on; after the last one, the first. */
static int evaluate(net *m, float *loss)
{
    const int code = net_eval(m, loss);
#ifdef READS
    if (NET_ERROR_KIND(code) == NET_EEND)
        return net_eval(m, loss);
#endif
    return code;
}

static int train(net *m, int rank, bool replays)
{
    const int steps = atoi(argument("steps", "4").c_str());
    int code;
    for (int s = 0; s < steps; s++) {
        const int t = (int)m->step;
        if (s == 1 && is_rank("quit", rank))
            return 1;
        if (s == 1 && is_rank("other", rank))
            m->step += 7;
        if (s == 1 && is_rank("cancel", rank))
            net_progress(m, stop, NULL);
        set_batch(m, rank, t, s == 1 && is_rank("index", rank));
        float loss, other, share, then;
        code = replays && s > 0 ? net_replay(m, &loss) : net_step(m, &loss);
        if (code != NET_OK)
            return failed(m, rank, "step", code);
        if ((code = net_get_accuracy(m, &share)) != NET_OK ||
            (code = evaluate(m, &other)) != NET_OK ||
            (code = net_get_accuracy(m, &then)) != NET_OK || (code = net_sync(m)) != NET_OK)
            return failed(m, rank, "eval", code);
        if (rank == 0)
            printf("%d %a %a %a %a\n", t, loss, other, share, then);
    }
    writes_slowly = is_rank("slow", rank);
    if (is_rank("away", rank) && chdir("/") != 0)
        return 1;
#ifdef NET_RANKS
    if ((code = net_check_files(m, arguments[0].c_str())) != NET_OK)
        return failed(m, rank, "files", code);
#endif
    code = net_save(m, arguments[0].c_str());
    return code == NET_OK ? 0 : failed(m, rank, "save", code);
}

static int run(int rank, void *communicator)
{
    net m;
#ifdef NET_RANKS
    int code = net_create(&m, NULL, communicator);
#else
    (void)communicator;
    int code = net_create(&m, NULL);
#endif
    if (code != NET_OK)
        return failed(&m, rank, "create", code);
#ifdef NET_RANKS
    net_timeout(&m, atof(argument("timeout", "60").c_str()));
    if (net_rank(&m) != rank || !net_is_connected(&m))
        return failed(&m, rank, "another rank", 0);
#endif
    const std::string load = argument("load", "");
    if ((code = net_reset(&m, 5)) != NET_OK ||
        (!load.empty() && (code = net_load(&m, load.c_str())) != NET_OK))
        return failed(&m, rank, "begin", code);
#ifdef READS
    if ((code = net_data(&m, NET_TRAIN, is_rank("others", rank) ? "part" : NULL)) != NET_OK)
        return failed(&m, rank, "data", code);
#endif
    code = train(&m, rank, arguments.size() > 1 && arguments[1] == "replay");
    fflush(stdout);
#ifdef NET_RANKS
    if (code && net_is_connected(&m) && !is_rank("index", -1))
        return code;
#endif
    net_free(&m);
    return code;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        arguments.push_back(argv[i]);
#ifdef NET_RANKS
    ncclUniqueId id;
    ncclGetUniqueId(&id);
    for (int rank = 0; rank < ranks; rank++)
        if (fork() == 0) {
            ncclComm_t communicator = NULL;
            const int world = atoi(argument("world", "0").c_str());
            ncclCommInitRank(&communicator, world ? world : ranks, id, rank);
            _exit(run(rank, communicator));
        }
    int status = 0;
    for (int one; wait(&one) > 0;)
        status |= one != 0;
    return status;
#else
    return run(0, NULL);
#endif
}
