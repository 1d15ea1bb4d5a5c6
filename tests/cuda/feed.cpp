/* Trains a model called net from its data, whichever target it is of (-DON_DEVICE: CUDA), and
 * prints its losses, so that two programs can be compared:
 *
 *     feed STEPS plain|silent|replay DUMP [LOAD]
 *
 * plain asks for the loss of each step; silent does not, so that copies of samples run after the
 * steps; replay captures the step after the first one. After 20 steps each the samples that are
 * held out are evaluated. What was learned is saved as DUMP; LOAD goes on with such a file, and
 * with the samples that come next. */
#include "net.h"

#ifdef ON_DEVICE
#include <cuda_runtime.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <string>

static net m;

static void expect_ok(int code, const char *what)
{
    if (code == NET_OK)
        return;
    printf("error %d: %s: %s\n", NET_ERROR_KIND(code), what, net_error(&m));
    exit(1);
}

#ifdef ON_DEVICE
static cudaStream_t stream;

static void begin()
{
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess)
        exit(1);
    expect_ok(net_create(&m, stream), "create");
    expect_ok(net_reset(&m, 7), "reset");
}

static void end()
{
    net_free(&m);
    if (cudaStreamDestroy(stream) != cudaSuccess)
        exit(1);
}

static float read_number(const float *at)
{
    float number;
    if (cudaMemcpyAsync(&number, at, sizeof number, cudaMemcpyDeviceToHost, stream) !=
            cudaSuccess ||
        cudaStreamSynchronize(stream) != cudaSuccess)
        exit(1);
    return number;
}
#else
static void begin()
{
    void *arena = aligned_alloc(64, (NET_ARENA_BYTES + 63) / 64 * 64);
    expect_ok(net_init(&m, arena, NET_ARENA_BYTES), "init");
    net_reset(&m, 7);
}

static void end()
{
    net_close(&m);
    free(m.arena);
}

static float read_number(const float *at)
{
    return *at;
}

static int net_replay(net *m_, float *loss)
{
    return net_step(m_, loss);
}
#endif

static void evaluate()
{
    float loss;
    int code;
    int64_t count = 0;
    double sum = 0, right = 0;
    while ((code = net_eval(&m, &loss)) == NET_OK) {
        count += net_taken(&m);
        sum += (double)loss * (double)net_taken(&m);
        right += (double)read_number(net_accuracy(&m)) * (double)net_taken(&m);
    }
    expect_ok(NET_ERROR_KIND(code) == NET_EEND ? NET_OK : code, "eval");
    printf("count %lld\nevaluated %.9g\naccuracy %.9g\n", (long long)count, sum / (double)count,
           right / (double)count);
}

int main(int argc, char **argv)
{
    const int steps = argc > 3 ? atoi(argv[1]) : 0;
    const std::string how = argc > 3 ? argv[2] : "";
    if (!steps)
        return 2;
    begin();
    if (argc > 4)
        expect_ok(net_load(&m, argv[4]), "load");
    expect_ok(net_data(&m, NET_EVAL, NULL), "data eval");
    expect_ok(net_data(&m, NET_TRAIN, NULL), "data train");
    for (int i = (int)m.step + 1, first = i; i <= steps; i++) {
        float loss = 0;
        expect_ok(how == "silent"                ? net_step(&m, NULL)
                  : how == "replay" && i > first ? net_replay(&m, &loss)
                                                 : net_step(&m, &loss),
                  "step");
        if (how != "silent")
            printf("loss %.9g\n", (double)loss);
        if (i % 20 == 0)
            evaluate();
    }
    expect_ok(net_save(&m, argv[3]), "save");
    end();
    return 0;
}
