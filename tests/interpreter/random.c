/* The numbers that dropout draws: Philox4x32-10, written from the paper (Salmon, Moraes, Dror and
 * Shaw, 2011), under a key of the seed and the op's name. */
#include "tests/interpreter/interpreter.h"

static uint64_t fnv1a(const char *text)
{
    uint64_t hash = 14695981039346656037u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    return hash;
}

static uint64_t finish(uint64_t x) /* of MurmurHash3 */
{
    x = (x ^ x >> 33) * 0xff51afd7ed558ccdu;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53u;
    return x ^ x >> 33;
}

/* The first word of what counter (element, step) gives under the key. */
static uint32_t philox(uint64_t element, uint64_t step, uint64_t key)
{
    uint32_t r0 = (uint32_t)element, l0 = (uint32_t)(element >> 32);
    uint32_t r1 = (uint32_t)step, l1 = (uint32_t)(step >> 32);
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)r0 * 0xd2511f53u, p1 = (uint64_t)r1 * 0xcd9e8d57u;
        r0 = (uint32_t)(p1 >> 32) ^ l0 ^ k0;
        l0 = (uint32_t)p1;
        r1 = (uint32_t)(p0 >> 32) ^ l1 ^ k1;
        l1 = (uint32_t)p0;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    return r0;
}

double dropout_factor(uint64_t seed, uint64_t step, const char *stream, int64_t i, double rate)
{
    uint64_t key = finish(finish(seed) + fnv1a(stream) + 0x9e3779b97f4a7c15u);
    return (double)philox((uint64_t)i, step, key) < (double)(uint32_t)(rate * 4294967296.0)
               ? 0
               : 1 / (1 - rate);
}
