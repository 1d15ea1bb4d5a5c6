/* The computed shuffle: each sample once an epoch, and every order as likely as any other. */
#include "runtime/c/data_order.h"

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdlib.h>

/* How far counts are from equal ones, in standard deviations of a chi square. */
static double unevenness(const uint64_t *count, size_t cells, double expected)
{
    double chi = 0;
    for (size_t i = 0; i < cells; i++)
        chi += ((double)count[i] - expected) * ((double)count[i] - expected) / expected;
    const double freedom = (double)(cells - 1);
    return (chi - freedom) / sqrt(2 * freedom);
}

Test(order, each_epoch_holds_each_sample_once)
{
    static const uint64_t counts[] = {1,  2,   3,   4,   5,    7,     8,     9,     15,    16,
                                      25, 101, 256, 997, 1000, 65535, 65536, 65537, 99991, 200000};
    unsigned char *seen = calloc(200000, 1);
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            const gp_order order = gp_order_make(counts[k], 7 + k, epoch);
            for (uint64_t i = 0; i < counts[k]; i++) {
                const uint64_t x = gp_order_at(&order, i);
                cr_assert(x < counts[k]);
                cr_assert_eq(seen[x], epoch, "%llu of %llu twice", (unsigned long long)x,
                             (unsigned long long)counts[k]);
                seen[x]++;
            }
            if (epoch == 2)
                memset(seen, 0, counts[k]);
        }
    free(seen);
}

Test(order, every_permutation_of_a_few_samples_is_as_likely_as_any_other)
{
    for (uint64_t n = 2; n <= 5; n++) {
        uint64_t count[3125] = {0}, factorial = 1, cells = 0, drawn[120];
        for (uint64_t i = 2; i <= n; i++)
            factorial *= i;
        const uint64_t draws = 400 * factorial;
        for (uint64_t seed = 0; seed < draws; seed++) {
            const gp_order order = gp_order_make(n, seed / 3, seed % 3); /* epochs are seeds too */
            uint64_t code = 0;
            for (uint64_t i = 0; i < n; i++)
                code = code * n + gp_order_at(&order, i);
            count[code]++;
        }
        for (int i = 0; i < 3125; i++)
            if (count[i])
                drawn[cells++] = count[i];
        cr_assert_eq(cells, factorial, "%d of %d orders of %d", (int)cells, (int)factorial, (int)n);
        const double off = unevenness(drawn, cells, 400);
        cr_assert(fabs(off) < 5, "n = %d: %g standard deviations", (int)n, off);
    }
}

/* Which of `cells` parts of the samples stands where; then, which follows which. */
static void look_at(uint64_t n, uint64_t seeds, bool pairs)
{
    enum { CELLS = 16 };
    static uint64_t count[CELLS * CELLS];
    const uint64_t asked = n < 4096 ? n : 4096;
    memset(count, 0, sizeof count);
    for (uint64_t seed = 0; seed < seeds; seed++) {
        const gp_order order = gp_order_make(n, seed, 0);
        uint64_t before = gp_order_at(&order, n - 1);
        for (uint64_t i = 0; i < asked; i++) {
            const uint64_t x = gp_order_at(&order, i);
            const uint64_t where = pairs ? before * CELLS / n : i * CELLS / asked;
            count[where * CELLS + x * CELLS / n]++;
            before = x;
        }
    }
    const double each = (double)(asked * seeds) / (CELLS * CELLS);
    const double off = unevenness(count, CELLS * CELLS, each);
    /* Samples do not stand twice, so that small epochs are a bit more even than chance. */
    cr_assert(off < 5 && off > -8, "n = %llu: %g standard deviations", (unsigned long long)n, off);
}

Test(order, positions_and_neighbours_are_uniform)
{
    static const uint64_t counts[] = {64, 1024, 60000, 65536, 1281167, 1000000000, 1ull << 40};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        look_at(counts[i], counts[i] < 4096 ? 1000 : 40, false);
        if (counts[i] >= 1024) /* below, it shows that none follows itself */
            look_at(counts[i], 40, true);
    }
}

Test(order, orders_of_odd_products_are_odd_as_often_as_even)
{
    enum { N = 9, SEEDS = 2000 }; /* 3 x 3 would know only even ones */
    int odd = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const gp_order order = gp_order_make(N, seed, 0);
        int inversions = 0;
        for (uint64_t i = 0; i < N; i++)
            for (uint64_t k = 0; k < i; k++)
                inversions += gp_order_at(&order, k) > gp_order_at(&order, i);
        odd += inversions % 2;
    }
    const double share = (double)odd / SEEDS;
    cr_assert(share > 0.45 && share < 0.55, "%g of the orders are odd", share);
}

Test(order, epochs_and_seeds_differ)
{
    const uint64_t n = 1000;
    for (uint64_t e = 1; e < 20; e++) {
        const gp_order a = gp_order_make(n, 5, 0), b = gp_order_make(n, 5, e),
                       c = gp_order_make(n, 5 + e, 0);
        int same_epoch = 0, same_seed = 0;
        for (uint64_t i = 0; i < n; i++) {
            same_epoch += gp_order_at(&a, i) == gp_order_at(&b, i);
            same_seed += gp_order_at(&a, i) == gp_order_at(&c, i);
        }
        cr_assert(same_epoch < 12 && same_seed < 12); /* 1 is expected */
    }
}
