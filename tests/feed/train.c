/* Trains a model called net from its data: prints the losses of its steps and evaluations, all
 * their bits. train STEPS [LOAD] [SAVE]. */
#include "net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const net *m, int code)
{
    printf("error %d: %s\n", NET_ERROR_KIND(code), net_error(m));
    return 1;
}

static unsigned bits(float number)
{
    unsigned is;
    memcpy(&is, &number, sizeof is);
    return is;
}

static int evaluate(net *m)
{
    float loss;
    int code;
    int64_t count = 0;
    double sum = 0, right = 0;
    while ((code = net_eval(m, &loss)) == NET_OK) {
        count += net_taken(m);
        sum += (double)loss * (double)net_taken(m);
        right += (double)*net_accuracy(m) * (double)net_taken(m);
    }
    if (NET_ERROR_KIND(code) != NET_EEND)
        return fail(m, code);
    printf("eval %lld %.17g %.17g\n", (long long)count, sum / (double)count, right / (double)count);
    return 0;
}

int main(int argc, char **argv)
{
    static net m;
    const int steps = argc > 1 ? atoi(argv[1]) : 0;
    const char *load = argc > 2 && *argv[2] ? argv[2] : NULL, *save = argc > 3 ? argv[3] : NULL;
    void *arena = aligned_alloc(64, (NET_ARENA_BYTES + 63) / 64 * 64);
    int code = arena ? net_init(&m, arena, NET_ARENA_BYTES) : NET_EARENA;
    float loss;
    net_reset(&m, 7);
    if (code == NET_OK && load)
        code = net_load(&m, load);
    if (code == NET_OK)
        code = net_data(&m, NET_EVAL, NULL);
    if (code == NET_OK)
        code = net_data(&m, NET_TRAIN, NULL);
    if (code != NET_OK)
        return fail(&m, code);
    while ((int)m.step < steps) {
        if ((code = net_step(&m, &loss)) != NET_OK)
            return fail(&m, code);
        printf("step %d %08x\n", (int)m.step, bits(loss));
        if (m.step % 20 == 0 && evaluate(&m))
            return 1;
    }
    if (save && (code = net_save(&m, save)) != NET_OK)
        return fail(&m, code);
    net_close(&m);
    free(arena);
    return 0;
}
