/* What an element of a micro-batch is in the whole batch: the random number that it draws, and the
 * weight of its loss. */
#include "runtime/c/init.h"
#include "runtime/c/loss.h"
#include "runtime/c/rng.h"
#include "tests/kernels/check.h"

#define SAME(what, is, want)                                                            \
    do {                                                                                \
        if ((is) != (want)) {                                                           \
            printf(what " is %.9g and should be %.9g\n", (double)(is), (double)(want)); \
            failures++;                                                                 \
        }                                                                               \
        cases++;                                                                        \
    } while (0)

/* A batch of `micros` times `samples` along the middle axis. */
static void places(int64_t outer, int64_t micros, int64_t samples, int64_t inner)
{
    for (gp_run run = {.micros = micros}; run.micro < micros; run.micro++)
        for (int64_t i = 0; i < outer * samples * inner; i++) {
            const int64_t before = i / inner / samples, sample = i / inner % samples;
            const int64_t whole =
                (before * micros * samples + run.micro * samples + sample) * inner + i % inner;
            SAME("the place", gp_random_place(&run, i, outer, samples * inner), whole);
            SAME("the place without a batch", gp_random_place(&run, i, 0, samples * inner), i);
        }
}

/* Of `valid` samples, each with `each` losses in every one of `rows` rows. */
static void weights(int64_t micros, int64_t samples, int64_t rows, int64_t each, int64_t valid)
{
    gp_run run = {.micros = micros, .batch = micros * samples, .valid = valid};
    const int64_t count = valid ? valid : run.batch;
    double sum = 0;
    for (; run.micro < micros; run.micro++)
        for (int64_t i = 0; i < samples * rows * each; i++) {
            const int64_t sample = run.micro * samples + i / each / rows;
            const gp_real is = gp_loss_weight(&run, i, samples * rows, each);
            SAME("a weight", is,
                 (gp_real)(sample < count ? 1.0 / (double)(count * rows * each) : 0));
            sum += is;
        }
    SAME("the sum of weights", sum > 0.99999 && sum < 1.00001, 1);
}

/* In pieces as at once, from what a key draws or from a list; nothing after the last is touched.
 */
static void pieces(void)
{
    enum { COUNT = 50, FIRST = 24 };
    static const double list[COUNT] = {1,  -2, 3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14,
                                       15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27};
    const gp_run run = {.seed = 7, .threads = 1};
    for (int kind = 0; kind <= GP_INIT_FILE; kind++) {
        const gp_init init = {.kind = kind, .a = -2, .b = 3, .list = list};
        gp_real whole[COUNT + 1], cut[COUNT + 1];
        for (int i = 0; i <= COUNT; i++)
            whole[i] = cut[i] = 99;
        gp_initialize(&run, &init, "name", whole, GP_F32, 0, COUNT);
        gp_initialize(&run, &init, "name", cut, GP_F32, 0, FIRST);
        gp_initialize(&run, &init, "name", cut + FIRST, GP_F32, FIRST, COUNT - FIRST);
        SAME("what lies after", whole[COUNT], 99);
        for (int i = 0; i < COUNT; i++) {
            SAME("a number in pieces", cut[i], whole[i]);
            if (kind == GP_INIT_LIST)
                SAME("a number of the list", whole[i], (gp_real)list[i]);
            SAME("a number is made", whole[i] == 99, kind == GP_INIT_FILE);
        }
    }
}

/* Parameters of 16 bits are those of f32, rounded; `count` of them. */
static void rounded_ones(int64_t count)
{
    gp_real *wide = keep((size_t)count * sizeof *wide);
    gp_half *half = keep((size_t)(count + 1) * sizeof *half);
    const gp_run run = {.seed = 7, .threads = 1};
    CROSS(GP_INIT_PIECE, count);
    for (int kind = GP_INIT_UNIFORM; kind <= GP_INIT_NORMAL; kind++)
        for (int32_t dtype = GP_F16; dtype <= GP_BF16; dtype++) {
            const gp_init init = {.kind = kind, .a = -2, .b = 3};
            gp_initialize(&run, &init, "name", wide, GP_F32, 4, count);
            half[count] = 99;
            gp_initialize(&run, &init, "name", half, dtype, 4, count);
            SAME("what lies after", half[count], 99);
            for (int64_t i = 0; i < count; i++)
                SAME("a number of 16 bits", gp_get_real(half, i, dtype),
                     gp_round_to(wide[i], dtype));
        }
    forget();
}

int main(void)
{
    for (int64_t off = -1; off <= 1; off++)
        rounded_ones(GP_INIT_PIECE + off);
    rounded_ones(2 * GP_INIT_PIECE + 3);
    for (int64_t micros = 1; micros <= 3; micros++)
        for (int64_t samples = 1; samples <= 3; samples++) {
            places(1, micros, samples, 5);
            places(4, micros, samples, 1);
            places(3, micros, samples, 4);
            for (int64_t valid = 0; valid <= micros * samples; valid++)
                weights(micros, samples, 1 + valid % 2, 3, valid);
        }
    pieces();
    forget();
    return finish();
}
