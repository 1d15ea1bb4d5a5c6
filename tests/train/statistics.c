/* Running statistics beside plain loops in double: a norm that is applied twice moves them twice,
 * in order; a step that fails moves nothing that is saved. MICROS: micro-batches in a step. */
#include "emitted.h"

#include <math.h>

enum { B = 4, C = 3, S = 4, EACH = B / MICROS };

typedef struct {
    double mean[C], var[C];
} Running;

/* One application on some samples: x becomes what it makes of it. */
static void norm(double x[EACH][C][S], Running *running)
{
    const float *scale = floats("norm.batchnorm.0.scale"), *bias = floats("norm.batchnorm.0.bias");
    const double count = EACH * S;
    for (int c = 0; c < C; c++) {
        double mean = 0, var = 0;
        for (int i = 0; i < EACH * S; i++)
            mean += x[i / S][c][i % S] / count;
        for (int i = 0; i < EACH * S; i++)
            var += pow(x[i / S][c][i % S] - mean, 2) / count;
        for (int i = 0; i < EACH * S; i++)
            x[i / S][c][i % S] =
                (x[i / S][c][i % S] - mean) / sqrt(var + 1e-5) * (double)scale[c] + (double)bias[c];
        running->mean[c] += 0.1 * (mean - running->mean[c]);
        running->var[c] += 0.1 * (var * count / (count - 1) - running->var[c]);
    }
}

static Running running_now(void)
{
    Running now;
    for (int c = 0; c < C; c++) {
        now.mean[c] = (double)floats("norm.batchnorm.0.mean")[c];
        now.var[c] = (double)floats("norm.batchnorm.0.var")[c];
    }
    return now;
}

static void by_hand(Running *running)
{
    const float *x = floats("x");
    for (int micro = 0; micro < MICROS; micro++) {
        double h[EACH][C][S];
        for (int i = 0; i < EACH * C * S; i++)
            h[i / (C * S)][i / S % C][i % S] = (double)x[micro * EACH * C * S + i];
        norm(h, running);
        for (int i = 0; i < EACH * C * S; i++) {
            double *at = &h[i / (C * S)][i / S % C][i % S];
            *at = (*at > 0 ? *at : 0) * 2 + 1;
        }
        norm(h, running);
    }
}

/* The bytes of everything that is saved. */
static size_t saved(unsigned char *to)
{
    size_t count, bytes = 0;
    const M(_tensor) *t = M(_tensors)(&count);
    for (size_t i = 0; i < count; i++)
        if (t[i].kind == KIND_PARAM || t[i].kind == KIND_STATE) {
            memcpy(to + bytes, data(&t[i]), t[i].bytes);
            bytes += t[i].bytes;
        }
    return bytes;
}

/* An id that is none, of any sample and in either input. */
static void fails_without_a_trace(int32_t *ids, int32_t wrong)
{
    static unsigned char before[1 << 16], after[1 << 16];
    float loss;
    for (int i = 0; i < B; i++) {
        const int32_t kept = ids[i];
        const size_t bytes = saved(before);
        check(bytes < sizeof before, "room for all that is saved");
        ids[i] = wrong;
        check(M(_step)(&model, &loss) != 0, "an id that is none is an error");
        saved(after);
        check(memcmp(before, after, bytes) == 0, "a step that fails changes nothing that is saved");
        ids[i] = kept;
    }
}

int main(void)
{
    float loss;
    model_begin(3);
    for (uint64_t step = 0; step < 3; step++) {
        draw_inputs(step + 1, 5);
        fails_without_a_trace(M(_labels)(&model), 5);
        fails_without_a_trace(M(_words)(&model), 6);
        Running want = running_now();
        by_hand(&want);
        expect_ok(M(_step)(&model, &loss), "step");
        const Running got = running_now();
        for (int c = 0; c < C; c++)
            check(fabs(got.mean[c] - want.mean[c]) < 1e-5 && fabs(got.var[c] - want.var[c]) < 1e-5,
                  "the running statistics");
    }
    return 0;
}
