/* Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random
 * numbers: as easy as 1, 2, 3", 2011).
 *
 * A number is a function of the seed, the step, the key of its op or tensor (a hash of a stable
 * name) and the index of the element. Drawing again gives the same number; neither the order nor
 * the number of threads matters. */
#ifndef GP_RNG_H
#define GP_RNG_H

#include "math.h"

/* Ten rounds on a counter of four words, in place. */
GP_FUNCTION void gp_philox(uint32_t counter[4], uint32_t key0, uint32_t key1)
{
    for (int round = 0; round < 10; round++) {
        uint64_t a = UINT64_C(0xD2511F53) * counter[0], b = UINT64_C(0xCD9E8D57) * counter[2];
        uint32_t high_b = (uint32_t)(b >> 32) ^ counter[1] ^ key0;
        uint32_t high_a = (uint32_t)(a >> 32) ^ counter[3] ^ key1;
        counter[0] = high_b;
        counter[1] = (uint32_t)b;
        counter[2] = high_a;
        counter[3] = (uint32_t)a;
        key0 += UINT32_C(0x9E3779B9);
        key1 += UINT32_C(0xBB67AE85);
    }
}

/* Mixes seed and key so that every bit of both affects every bit of the result (the finalizer of
 * MurmurHash3, over the seed and then over the key). */
GP_FUNCTION uint64_t gp_random_mix(uint64_t seed, uint64_t key)
{
    uint64_t x = seed;
    for (int i = 0; i < 2; i++) {
        x ^= x >> 33;
        x *= UINT64_C(0xFF51AFD7ED558CCD);
        x ^= x >> 33;
        x *= UINT64_C(0xC4CEB9FE1A85EC53);
        x ^= x >> 33;
        x += i ? 0 : key + UINT64_C(0x9E3779B97F4A7C15);
    }
    return x;
}

/* Words 4 * block to 4 * block + 3 of the stream of `key` in this step. */
GP_FUNCTION void gp_random_block(const gp_run *run, uint64_t key, uint64_t block, uint32_t word[4])
{
    uint64_t mixed = gp_random_mix(run->seed, key);
    word[0] = (uint32_t)block;
    word[1] = (uint32_t)(block >> 32);
    word[2] = (uint32_t)run->step;
    word[3] = (uint32_t)(run->step >> 32);
    gp_philox(word, (uint32_t)mixed, (uint32_t)(mixed >> 32));
}

/* A single word for element i, for loops over elements: the first of block i. */
GP_FUNCTION uint32_t gp_random_word(const gp_run *run, uint64_t key, int64_t i)
{
    uint32_t word[4];
    gp_random_block(run, key, (uint64_t)i, word);
    return word[0];
}

#ifndef GP_ONE_BATCH
/* The index in the whole batch of element i of a micro-batch, so that both draw the same numbers.
 * `span` elements are contiguous, from the batch axis on, `parts` times; parts is 0 where there is
 * no batch to divide. */
GP_FUNCTION int64_t gp_random_place(const gp_run *run, int64_t i, int64_t parts, int64_t span)
{
    if (parts == 0)
        return i;
    if (parts == 1)
        return i + GP_PART(run) * span;
    return (i / span * GP_PARTS(run) + GP_PART(run)) * span + i % span;
}
#else
/* The index of an element in the batch. */
#define gp_random_place(run, i, parts, span) (i)
#endif

/* The factor of dropout for element i: 0, or 1 / (1 - rate). */
GP_FUNCTION gp_real gp_random_keep(const gp_run *run, uint64_t key, int64_t i, double rate)
{
    uint32_t least = (uint32_t)(rate * 0x1p32);
    return gp_random_word(run, key, i) < least ? 0 : (gp_real)(1 / (1 - rate));
}

/* Uniform in [low, high), element i on its own. */
GP_FUNCTION gp_real gp_random_uniform_at(const gp_run *run, uint64_t key, int64_t i, double low,
                                         double high)
{
    return (gp_real)(low + (high - low) * ((double)(gp_random_word(run, key, i) >> 8) * 0x1p-24));
}

/* Normal, element i on its own: one of Box and Muller's two. */
GP_FUNCTION gp_real gp_random_normal_at(const gp_run *run, uint64_t key, int64_t i, double mean,
                                        double deviation)
{
    uint32_t word[4];
    gp_random_block(run, key, (uint64_t)i, word);
    const double radius = sqrt(-2 * log(((double)word[0] + 1) * 0x1p-32));
    const double angle = 6.283185307179586 * ((double)word[1] * 0x1p-32);
    return (gp_real)(mean + deviation * radius * cos(angle));
}

/* Uniform in [low, high), with 24 bits. The first is number `from` of the stream, a multiple of
 * 4. */
GP_FUNCTION void gp_random_uniform(const gp_run *run, uint64_t key, double low, double high,
                                   gp_real *to, int64_t from, int64_t count)
{
    GP_PARALLEL(run, count > 4096)
    for (int64_t block = 0; block < (count + 3) / 4; block++) {
        uint32_t word[4];
        gp_random_block(run, key, (uint64_t)(from / 4 + block), word);
        for (int64_t i = 4 * block; i < count && i < 4 * block + 4; i++)
            to[i] = (gp_real)(low + (high - low) * ((double)(word[i % 4] >> 8) * 0x1p-24));
    }
}

/* Box and Muller: two words make two numbers. The largest magnitude drawn is 6.66. */
GP_FUNCTION void gp_random_normal(const gp_run *run, uint64_t key, double mean, double deviation,
                                  gp_real *to, int64_t from, int64_t count)
{
    GP_PARALLEL(run, count > 4096)
    for (int64_t block = 0; block < (count + 3) / 4; block++) {
        uint32_t word[4];
        gp_random_block(run, key, (uint64_t)(from / 4 + block), word);
        for (int64_t i = 4 * block; i < count && i < 4 * block + 4; i++) {
            const uint32_t *pair = word + (i % 4) / 2 * 2;
            double radius = sqrt(-2 * log(((double)pair[0] + 1) * 0x1p-32));
            double angle = 6.283185307179586 * ((double)pair[1] * 0x1p-32);
            to[i] = (gp_real)(mean + deviation * radius * (i % 2 ? sin(angle) : cos(angle)));
        }
    }
}

#endif
