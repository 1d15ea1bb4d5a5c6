/* The order of samples: a permutation that is computed, not stored. Any position of any epoch is
 * found at once in constant memory, for 10^9 samples as for 10.
 *
 * A Feistel network over Z_a x Z_b with a * b >= n (Black and Rogaway, "Ciphers with arbitrary
 * finite domains", 2002): halves are added to each other modulo a and b; what falls after n is
 * permuted again. `a` is even, since rotations of an odd number of elements are even permutations,
 * of which no number of rounds makes an odd one. */
#ifndef GP_DATA_ORDER_H
#define GP_DATA_ORDER_H

#include "data.h"
#include "rng.h"

/* Few rounds on few elements are not yet uniform. */
enum { GP_ORDER_ROUNDS = 8, GP_ORDER_SMALL_ROUNDS = 24, GP_ORDER_SMALL = 65536 };

typedef struct {
    uint64_t count, key;
    uint64_t a, b;
    int rounds;
} gp_order;

/* Of [0, count), 1 <= count <= 2^62. */
GP_FUNCTION gp_order gp_order_make(uint64_t count, uint64_t seed, uint64_t epoch)
{
    gp_order order;
    order.count = count;
    order.key = gp_random_mix(seed, epoch);
    order.a = (uint64_t)sqrt((double)count);
    order.a += order.a * order.a < count; /* more or less the root: which one does not matter */
    order.a += order.a % 2;
    order.b = (count + order.a - 1) / order.a;
    order.rounds = count < GP_ORDER_SMALL ? GP_ORDER_SMALL_ROUNDS : GP_ORDER_ROUNDS;
    return order;
}

/* A number below `below` <= 2^32 for this half in this round. */
GP_FUNCTION uint64_t gp_order_draw(const gp_order *order, int round, uint64_t half, uint64_t below)
{
    const uint64_t mixed = gp_random_mix(order->key + (uint64_t)round, half);
    return ((mixed >> 32) * below) >> 32;
}

/* What stands at this position. */
GP_FUNCTION uint64_t gp_order_at(const gp_order *order, uint64_t position)
{
    uint64_t x = position;
    do {
        uint64_t left = x % order->a, right = x / order->a;
        for (int round = 0; round < order->rounds; round += 2) {
            left = (left + gp_order_draw(order, round, right, order->a)) % order->a;
            right = (right + gp_order_draw(order, round + 1, left, order->b)) % order->b;
        }
        x = right * order->a + left;
    } while (x >= order->count);
    return x;
}

#endif
