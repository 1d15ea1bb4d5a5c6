/* Trains a model called net from its data: prints the losses of its steps and evaluations, all
 * their bits. train STEPS [LOAD] [SAVE]; without steps it evaluates. With CALLBACK samples are made
 * by a function, of the records that it reads; with MEMORY it says how large the process became. */
#define _POSIX_C_SOURCE 200809L
#include "net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef CALLBACK
#include <fcntl.h>
#include <unistd.h>

enum { SAMPLES = 203, PIXELS = 64 };

static int fill(void *user, int64_t sample, void *const *field, char *why, size_t why_size)
{
    unsigned char record[1 + PIXELS];
    if (pread(*(int *)user, record, sizeof record, sample * (off_t)sizeof record) !=
        (ssize_t)sizeof record) {
        snprintf(why, why_size, "xy.bin is too short");
        return 1;
    }
    memcpy(field[0], record + 1, PIXELS);
    memcpy(field[1], record, 1);
    return 0;
}

static int open_source(net *m, int which)
{
    static int file;
    if (!file)
        file = open("xy.bin", O_RDONLY);
    return net_feed(m, which, fill, &file, SAMPLES);
}
#else
static int open_source(net *m, int which)
{
    return net_data(m, which, NULL);
}
#endif

#ifdef MEMORY
static void print_memory(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[200];
    long peak = 0;
    while (status && fgets(line, sizeof line, status))
        sscanf(line, "VmHWM: %ld", &peak);
    if (status)
        fclose(status);
    fprintf(stderr, "memory %ld of %ld\n", peak, (long)(NET_ARENA_BYTES / 1024));
}
#else
static void print_memory(void)
{
}
#endif

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
        code = open_source(&m, NET_EVAL);
    if (code == NET_OK)
        code = open_source(&m, NET_TRAIN);
    if (code != NET_OK)
        return fail(&m, code);
    while ((int)m.step < steps) {
        if ((code = net_step(&m, &loss)) != NET_OK)
            return fail(&m, code);
        printf("step %d %08x\n", (int)m.step, bits(loss));
        if (m.step % 20 == 0 && evaluate(&m))
            return 1;
    }
    if (steps == 0 && evaluate(&m))
        return 1;
    if (net_skipped(&m))
        printf("skipped some\n");
    print_memory();
    if (save && (code = net_save(&m, save)) != NET_OK)
        return fail(&m, code);
    net_close(&m);
    free(arena);
    return 0;
}
