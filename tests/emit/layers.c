/* The checks that can be compiled in; progress; threads; errors of ops. Prints a sum of the
 * outputs' bits, so that builds can be compared. */
#include "layers.h"
#include "expect.h"

static int seen, stop_at;

static int see(void *user, uint64_t step, int op, int ops)
{
    EXPECT(user == &seen && step == 0 && op == seen + 1 && ops == LAYERS_OPS);
    seen = op;
    return op == stop_at;
}

static uint32_t bits(const layers *m)
{
    uint32_t sum = 0, word;
    for (int i = 0; i < LAYERS_H_COUNT; i++) {
        memcpy(&word, layers_h(m) + i, 4);
        sum = sum * 31 + word;
    }
    for (int i = 0; i < LAYERS_TOTAL_COUNT; i++) {
        memcpy(&word, layers_total(m) + i, 4);
        sum = sum * 31 + word;
    }
    return sum;
}

static void reports_progress(layers *m)
{
    layers_progress(m, see, &seen);
    EXPECT(layers_forward(m) == LAYERS_OK && seen == LAYERS_OPS);
    seen = 0;
    stop_at = 3;
    EXPECT(layers_forward(m) == LAYERS_ECANCEL && seen == 3);
    layers_progress(m, NULL, NULL);
}

static void names_the_op_of_a_wrong_index(layers *m)
{
    static const int32_t wrong[] = {50, -51, 2147483647, -2147483647 - 1};
    for (int i = 0; i < 4; i++) {
        layers_tokens(m)[7] = wrong[i];
        int code = layers_forward(m);
        EXPECT(LAYERS_ERROR_KIND(code) == LAYERS_EINDEX && LAYERS_ERROR_OP(code) == 0);
        EXPECT_TEXT(layers_strerror(code), "index out of range");
        EXPECT_TEXT(layers_error(m), "index out of range: gather");
        EXPECT_TEXT(layers_error(m), "layers.g:12");
        EXPECT_TEXT(layers_op_name(LAYERS_ERROR_OP(code)), "gather");
    }
    layers_tokens(m)[7] = 7;
}

#ifdef GPLAN_CHECK_NAN
static void stops_at_the_first_nan(layers *m)
{
    size_t count;
    const layers_tensor *t = layers_tensors(&count);
    while (strcmp(t->name, "layer.3.dense.0.b") != 0)
        t++;
    float *b = (float *)(void *)(m->arena + t->offset), kept = b[5];
    b[5] = NAN;
    int code = layers_forward(m);
    EXPECT(LAYERS_ERROR_KIND(code) == LAYERS_ENAN);
    EXPECT_TEXT(layers_error(m), "an op made a NaN: matmul+add+relu layer.3.b (layers.g:7)");
    b[5] = kept;
}
#endif

#ifdef GPLAN_PROFILE
static void measures_each_op(layers *m)
{
    static double seconds[LAYERS_OPS];
    layers_profile(m, seconds);
    EXPECT(layers_forward(m) == LAYERS_OK);
    for (int i = 0; i < LAYERS_OPS; i++)
        EXPECT(seconds[i] > 0 && seconds[i] < 60 && strlen(layers_op_name(i)) > 3);
    EXPECT_TEXT(layers_op_name(0), "gather");
    layers_profile(m, NULL);
}
#endif

int main(void)
{
    START(layers, m, LAYERS_ARENA_BYTES)
    layers_reset(&m, 11);
    for (int i = 0; i < LAYERS_TOKENS_COUNT; i++)
        layers_tokens(&m)[i] = (i * 7) % 50;
    layers_tokens(&m)[7] = 7;
    EXPECT(layers_forward(&m) == LAYERS_OK);
    uint32_t sum = bits(&m);
    EXPECT(LAYERS_THREADS_MAX == 4);
    for (int threads = 0; threads < 7; threads++) {
        layers_threads(&m, threads);
        EXPECT(m.threads >= 1 && m.threads <= 4);
        EXPECT(layers_forward(&m) == LAYERS_OK);
        EXPECT(bits(&m) == sum); /* the number of threads changes no bit */
    }
    reports_progress(&m);
    names_the_op_of_a_wrong_index(&m);
#ifdef GPLAN_CHECK_NAN
    stops_at_the_first_nan(&m);
#endif
#ifdef GPLAN_PROFILE
    measures_each_op(&m);
#endif
    EXPECT(layers_forward(&m) == LAYERS_OK && bits(&m) == sum);
    for (int i = 0; i < LAYERS_TOTAL_COUNT; i++) {
        double total = layers_total(&m)[i];
        EXPECT(total == total);
    }
    printf("bits %08x\n", (unsigned)sum);
    free(m_arena);
    FINISH();
}
