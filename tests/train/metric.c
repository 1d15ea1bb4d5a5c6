/* Metrics of eval and of a step beside what follows from the outputs: for a full batch and for one
 * that is not, over micro-batches, and where the step never stores the logits whole. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { B = 6, T = 5, V = 40 };

static int fails;

static void expect(const char *what, double got, double want)
{
    if (!(fabs(got - want) <= 1e-5 * (1 + fabs(want)))) {
        printf("%s is %.9g and should be %.9g\n", what, got, want);
        fails++;
    }
}

/* Of the first `valid` samples. */
static int count_misses(const float *logits, const int *next, int valid)
{
    int misses = 0;
    for (int i = 0; i < valid * T; i++) {
        int best = 0;
        for (int k = 1; k < V; k++)
            best = logits[i * V + k] > logits[i * V + best] ? k : best;
        misses += best != next[i];
    }
    return misses;
}

static void try_batch(metric *m, int valid)
{
    float loss, after;
    const int count = valid ? valid : B;
    if (metric_valid(m, valid) || metric_eval(m, &loss)) {
        printf("%s\n", metric_error(m));
        exit(1);
    }
    const int misses = count_misses(metric_shown(m), metric_next(m), count);
    const double distance = *metric_distance(m);
    expect("accuracy after eval", *metric_accuracy(m), 1 - (double)misses / (count * T));
    expect("misses after eval", *metric_misses(m), misses);
    metric_step(m, &after);
    expect("the loss of the step", after, loss);
    expect("accuracy after the step", *metric_accuracy(m), 1 - (double)misses / (count * T));
    expect("misses after the step", *metric_misses(m), misses);
    expect("distance after the step", *metric_distance(m), distance);
}

int main(void)
{
    metric m;
    void *arena = aligned_alloc(METRIC_ARENA_ALIGN, (METRIC_ARENA_BYTES + 63) / 64 * 64);
    if (metric_init(&m, arena, METRIC_ARENA_BYTES))
        return 1;
    metric_reset(&m, 7);
    double distinct = 0;
    for (int step = 0; step < 12; step++) {
        for (int i = 0; i < B * T; i++) {
            metric_tokens(&m)[i] = (i * 11 + step * 5) % V;
            metric_next(&m)[i] = (metric_tokens(&m)[i] + 3) % V;
        }
        try_batch(&m, step % 3 == 2 ? 4 : 0);
        distinct += *metric_accuracy(&m) > 0 && *metric_accuracy(&m) < 1;
    }
    metric_forward(&m);
    if (metric_accuracy(&m) != NULL || distinct == 0) {
        printf("forward left a metric, or none was between 0 and 1\n");
        fails++;
    }
    free(arena);
    return fails != 0;
}
