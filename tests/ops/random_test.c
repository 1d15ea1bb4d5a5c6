/* The generator against its published vectors, and what is drawn from it. */
#include "runtime/c/rng.h"
#include "tests/ops/cases.h"

#include <criterion/criterion.h>
#include <stdlib.h>

/* kat_vectors of the Random123 library, philox4x32 with 10 rounds. */
Test(random, philox_gives_its_published_vectors)
{
    static const struct {
        uint32_t counter[4], key[2], want[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint32_t word[4];
        memcpy(word, known[i].counter, sizeof word);
        gp_philox(word, known[i].key[0], known[i].key[1]);
        cr_expect_arr_eq(word, known[i].want, sizeof word, "vector %zu", i);
    }
}

enum { MANY = 1 << 16 };

/* Mean, deviation, skew and the share beyond two deviations of many numbers. */
typedef struct {
    double mean, deviation, skew, beyond, least, most;
} Moments;

static Moments moments(const gp_real *x)
{
    Moments m = {.least = INFINITY, .most = -INFINITY};
    for (int i = 0; i < MANY; i++) {
        m.mean += (double)x[i] / MANY;
        m.least = fmin(m.least, (double)x[i]);
        m.most = fmax(m.most, (double)x[i]);
    }
    for (int i = 0; i < MANY; i++)
        m.deviation += ((double)x[i] - m.mean) * ((double)x[i] - m.mean) / MANY;
    m.deviation = sqrt(m.deviation);
    for (int i = 0; i < MANY; i++) {
        double z = ((double)x[i] - m.mean) / m.deviation;
        m.skew += z * z * z / MANY;
        m.beyond += fabs(z) > 2 ? 1.0 / MANY : 0;
    }
    return m;
}

Test(random, uniform_numbers_fill_their_range_evenly)
{
    static gp_real x[MANY];
    gp_random_uniform(&(gp_run){.seed = 7, .threads = 1}, 11, -3, 5, x, 0, MANY);
    Moments m = moments(x);
    cr_expect(m.least >= -3 && m.least < -2.99 && m.most < 5 && m.most > 4.99);
    cr_expect(fabs(m.mean - 1) < 0.04, "mean %g", m.mean);
    cr_expect(fabs(m.deviation - 8 / sqrt(12)) < 0.02, "deviation %g", m.deviation);
    int64_t bin[16] = {0};
    for (int i = 0; i < MANY; i++)
        bin[(int)(((double)x[i] + 3) * 2)]++;
    double chi = 0;
    for (int i = 0; i < 16; i++)
        chi += pow((double)bin[i] - MANY / 16.0, 2) / (MANY / 16.0);
    cr_expect(chi < 38, "chi square %g over 15 degrees", chi); /* 0.1 % of good generators */
}

Test(random, normal_numbers_have_the_moments_of_the_normal_distribution)
{
    static gp_real x[MANY];
    gp_random_normal(&(gp_run){.seed = 7, .threads = 1}, 12, 2, 0.5, x, 0, MANY);
    Moments m = moments(x);
    cr_expect(fabs(m.mean - 2) < 0.008, "mean %g", m.mean);
    cr_expect(fabs(m.deviation - 0.5) < 0.006, "deviation %g", m.deviation);
    cr_expect(fabs(m.skew) < 0.04, "skew %g", m.skew);
    cr_expect(fabs(m.beyond - 0.0455) < 0.004, "beyond two deviations %g", m.beyond);
}

Test(random, neighbours_are_not_related)
{
    static gp_real x[MANY];
    gp_random_normal(&(gp_run){.seed = 1, .threads = 1}, 1, 0, 1, x, 0, MANY);
    for (int lag = 1; lag <= 4; lag++) {
        double product = 0;
        for (int i = 0; i + lag < MANY; i++)
            product += (double)x[i] * (double)x[i + lag] / MANY;
        cr_expect(fabs(product) < 0.016, "lag %d: %g", lag, product);
    }
}

static int equal_draws(gp_run a, uint64_t key_a, gp_run b, uint64_t key_b)
{
    int equal = 0;
    for (int64_t i = 0; i < 1000; i++)
        equal += gp_random_word(&a, key_a, i) == gp_random_word(&b, key_b, i);
    return equal;
}

Test(random, seed_step_and_key_each_give_other_numbers)
{
    gp_run base = {.seed = 1, .step = 1}, seed = {.seed = 2, .step = 1},
           step = {.seed = 1, .step = 2};
    cr_expect_eq(equal_draws(base, 5, base, 5), 1000);
    cr_expect_eq(equal_draws(base, 5, seed, 5), 0);
    cr_expect_eq(equal_draws(base, 5, step, 5), 0);
    cr_expect_eq(equal_draws(base, 5, base, 6), 0);
}

Test(random, a_tensor_is_the_start_of_a_longer_one)
{
    static gp_real longer[1003], shorter[501];
    gp_run run = {.seed = 3, .threads = 1};
    gp_random_normal(&run, 9, 0, 1, longer, 0, 1003);
    gp_random_normal(&run, 9, 0, 1, shorter, 0, 501);
    cr_expect_arr_eq(longer, shorter, sizeof shorter);
}

Test(random, a_tensor_can_be_drawn_in_pieces)
{
    static gp_real whole[1003], pieces[1003];
    gp_run run = {.seed = 3, .threads = 1};
    gp_random_normal(&run, 9, 0, 1, whole, 0, 1003);
    gp_random_normal(&run, 9, 0, 1, pieces, 0, 404);
    gp_random_normal(&run, 9, 0, 1, pieces + 404, 404, 599);
    cr_expect_arr_eq(whole, pieces, sizeof whole);
    gp_random_uniform(&run, 9, -1, 1, whole, 0, 1003);
    gp_random_uniform(&run, 9, -1, 1, pieces, 0, 404);
    gp_random_uniform(&run, 9, -1, 1, pieces + 404, 404, 599);
    cr_expect_arr_eq(whole, pieces, sizeof whole);
}

/* ---- dropout --------------------------------------------------------------------------------- */

enum { DROPPED = 20000 };

/* Ones through dropout(rate) as the training step would run it. */
static Tensor drop(Arena *arena, double rate, uint64_t seed, uint64_t step)
{
    Diag *diag = diag_new(arena, stderr, false);
    Graph *g = graph_new(arena, diag, NULL);
    g->training = true;
    int64_t dim = DROPPED;
    Id x = graph_value(g, VALUE_INPUT, "x", F32, 1, &dim, (Span){0});
    Call from = {.op = op_find("dropout"), .name = "layer"};
    Call call = call_begin(g, &from, "dropout");
    call_set(&call, "rate", rate);
    call_use(g, &call, use_of(x));
    cr_assert(call_finish(g, &call));
    Tensor ones = tensor_new(arena, F32, 1, &dim);
    for (int64_t i = 0; i < dim; i++)
        ones.at[i] = 1;
    Run *run = run_new(arena, g);
    run_write(run, x, &ones);
    cr_assert_eq(run_graph(run, &(RunOptions){.seed = seed, .step = step}), GP_OK);
    Tensor y = run_read(run, arena, call.result.at[0]);
    run_free(run);
    return y;
}

Test(random, dropout_drops_its_rate_and_scales_the_rest)
{
    static const double rates[] = {0.1, 0.5, 0.9};
    Arena *arena = arena_new();
    for (size_t k = 0; k < 3; k++) {
        Tensor y = drop(arena, rates[k], 1, 1);
        int64_t zeros = 0;
        for (int64_t i = 0; i < y.count; i++) {
            zeros += y.at[i] == 0;
            cr_assert(y.at[i] == 0 || fabs(y.at[i] * (1 - rates[k]) - 1) < 1e-6);
        }
        cr_expect(fabs((double)zeros / DROPPED - rates[k]) < 0.015, "rate %g", rates[k]);
    }
    arena_free(arena);
}

Test(random, dropout_repeats_within_a_step_and_changes_with_it)
{
    Arena *arena = arena_new();
    Tensor a = drop(arena, 0.5, 1, 1), b = drop(arena, 0.5, 1, 1), c = drop(arena, 0.5, 1, 2);
    int64_t same = 0;
    cr_expect_arr_eq(a.at, b.at, (size_t)a.count * sizeof *a.at);
    for (int64_t i = 0; i < a.count; i++)
        same += a.at[i] == c.at[i];
    cr_expect(llabs(same - DROPPED / 2) < DROPPED / 40, "%lld of %d", (long long)same, DROPPED);
    arena_free(arena);
}

/* ---- random_normal and random_uniform -------------------------------------------------------- */

static Tensor draw(Arena *arena, const char *op, uint64_t step)
{
    const OpCase row = {.op = op, .operands = "", .settings = "shape = [64, 1024]"};
    Built b = case_build(arena, &row, PLAIN, -1, false);
    cr_assert(!b.refused, "%s", b.message);
    Run *run = run_new(arena, b.graph);
    cr_assert_eq(run_graph(run, &(RunOptions){.seed = 5, .step = step}), GP_OK);
    Tensor y = run_read(run, arena, b.call.result.at[0]);
    run_free(run);
    free(b.message);
    return y;
}

Test(random, draws_have_the_moments_of_their_distribution_and_change_with_the_step)
{
    static const struct {
        const char *op;
        double mean, deviation, beyond;
    } drawn[] = {{"random_normal", 0, 1, 0.0455}, {"random_uniform", 0.5, 0.288675, 0}};
    static gp_real x[MANY];
    Arena *arena = arena_new();
    for (size_t k = 0; k < 2; k++) {
        Tensor y = draw(arena, drawn[k].op, 1), again = draw(arena, drawn[k].op, 1),
               next = draw(arena, drawn[k].op, 2);
        int same = 0;
        for (int i = 0; i < MANY; i++) {
            x[i] = (gp_real)y.at[i];
            same += y.at[i] == next.at[i];
        }
        Moments m = moments(x);
        cr_expect_arr_eq(y.at, again.at, sizeof *y.at * MANY);
        cr_expect(same < 10, "%d are the same in the next step", same);
        cr_expect(fabs(m.mean - drawn[k].mean) < 0.016, "mean %g", m.mean);
        cr_expect(fabs(m.deviation - drawn[k].deviation) < 0.012, "deviation %g", m.deviation);
        cr_expect(fabs(m.skew) < 0.04, "skew %g", m.skew);
        cr_expect(fabs(m.beyond - drawn[k].beyond) < 0.004, "beyond two deviations %g", m.beyond);
    }
    arena_free(arena);
}
