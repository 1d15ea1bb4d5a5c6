/* What each rank updates of a parameter, and the norm of gradients that are sharded, in one
 * process: all ranks together have the bits of one that has all of it. With state of 32 and 8 bits,
 * without state, with whole gradients and shards of them; at the edges of shards and of blocks. */
#include "runtime/c/norm_shards.h"
#include "runtime/c/unscale.h"
#include "runtime/c/update.h"

#include <stdio.h>

enum { MOST = 50000, RANKS = 9, CHUNKS = RANKS * 16 };

static gp_real w[MOST], g[MOST], m[MOST], v[MOST], next_w[MOST], next_m[MOST], next_v[MOST];
static uint8_t code_m[MOST], code_v[MOST], next_code_m[MOST], next_code_v[MOST];
static gp_real scales[2 * MOST / 256 + 2], next_scales[2 * MOST / 256 + 2];
static double table[CHUNKS], work[CHUNKS];
static uint64_t chance = 7;

static gp_real number(void)
{
    chance = chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (gp_real)((double)(chance >> 40) / (1 << 20) - 8) * (chance >> 33 & 1 ? 1e-3F : 1);
}

static gp_tensor list(void *data, int dtype, int64_t rows, int64_t count)
{
    gp_tensor t = {
        .data = data, .dtype = dtype, .rank = rows ? 2 : 1, .dim = {count}, .stride = {1}};
    if (rows)
        t.dim[0] = rows, t.dim[1] = count, t.stride[0] = count, t.stride[1] = 1;
    return t;
}

/* As rank `rank`, which is alone with its only micro-batch. */
static int run(int (*kernel)(const gp_call *), const void *attr, const gp_tensor *in, int ins,
               const gp_tensor *out, int outs, int rank)
{
    const gp_run at = {.threads = 1, .lr = 0.01, .step = 3, .micro = rank, .micros = 1};
    const gp_call c = {
        .in = in, .out = out, .ins = ins, .outs = outs, .attr = attr, .run = &at, .work = work};
    return kernel(&c);
}

/* The same optimizer on all of it, and on each shard: bits of what it makes. */
static int update(int64_t n, int ranks, int coded, int apart)
{
    static const gp_adamw_attr a = {1, 0.9, 0.99, 1e-8, 0.1};
    const int64_t part = gp_shard(n, ranks), blocks = (n + 255) / 256, own_blocks = part / 256;
    gp_real factor = 0.5F;
    const gp_tensor none = {0}, scale = {.data = &factor};
    gp_real *const wide[] = {m, v}, *const next_wide[] = {next_m, next_v};
    uint8_t *const code[] = {code_m, code_v}, *const next_code[] = {next_code_m, next_code_v};
    for (int64_t i = 0; i < n; i++) {
        w[i] = number(), g[i] = number(), m[i] = number(), v[i] = number() * number();
        v[i] = v[i] < 0 ? -v[i] : v[i];
        code_m[i] = (uint8_t)(m[i] * 99), code_v[i] = (uint8_t)(v[i] * 99);
    }
    for (int64_t i = 0; i < 2 * blocks; i++)
        scales[i] = 1 + (gp_real)(i % 7);
    gp_tensor in[6] = {list(w, GP_F32, 0, n), list(g, GP_F32, 0, n), scale, none, none, none};
    gp_tensor out[4] = {list(next_w, GP_F32, 0, n), none, none, none};
    for (int s = 0; s < 2; s++) {
        in[3 + s] = coded ? list(code[s], GP_U8, 0, n) : list(wide[s], GP_F32, 0, n);
        out[1 + s] = coded ? list(next_code[s], GP_U8, 0, n) : list(next_wide[s], GP_F32, 0, n);
    }
    in[5] = list(scales, GP_F32, 2, blocks);
    out[3] = list(next_scales, GP_F32, 2, blocks);
    if (run(gp_adamw, &a, in, coded ? 6 : 5, out, coded ? 4 : 3, 0) != GP_OK)
        return 1;
    for (int rank = 0; rank < ranks && part > 0; rank++) {
        static gp_real shard[6][MOST], to[MOST], own[2 * MOST / 256 + 2],
            own_to[2 * MOST / 256 + 2];
        static uint8_t bytes[4][MOST];
        const int64_t begin = rank * part < n ? rank * part : n;
        const int64_t count = n - begin < part ? n - begin : part;
        memcpy(to, w, sizeof to);
        memcpy(shard[0], g + begin, (size_t)count * sizeof **shard);
        for (int s = 0; s < 2; s++) {
            memcpy(shard[1 + s], wide[s] + begin, (size_t)count * sizeof **shard);
            memcpy(bytes[s], code[s] + begin, (size_t)count);
            for (int64_t b = 0; b < (count + 255) / 256; b++)
                own[s * own_blocks + b] = scales[s * blocks + begin / 256 + b];
            in[3 + s] =
                coded ? list(bytes[s], GP_U8, 0, part) : list(shard[1 + s], GP_F32, 0, part);
            out[1 + s] =
                coded ? list(bytes[2 + s], GP_U8, 0, part) : list(shard[3 + s], GP_F32, 0, part);
        }
        in[1] = apart ? list(shard[0], GP_F32, 0, part) : list(g, GP_F32, 0, n);
        in[5] = list(own, GP_F32, 2, own_blocks);
        out[0] = list(to, GP_F32, 0, n);
        out[3] = list(own_to, GP_F32, 2, own_blocks);
        if (run(gp_adamw, &a, in, coded ? 6 : 5, out, coded ? 4 : 3, rank) != GP_OK)
            return 1;
        int same = memcmp(to + begin, next_w + begin, (size_t)count * sizeof *to) == 0 &&
                   memcmp(to, w, (size_t)begin * sizeof *to) == 0 &&
                   memcmp(to + begin + count, w + begin + count,
                          (size_t)(n - begin - count) * sizeof *to) == 0;
        for (int s = 0; s < 2; s++) {
            same &= coded ? memcmp(bytes[2 + s], next_code[s] + begin, (size_t)count) == 0
                          : memcmp(shard[3 + s], next_wide[s] + begin,
                                   (size_t)count * sizeof **shard) == 0;
            for (int64_t b = 0; coded && b < (count + 255) / 256; b++)
                same &= memcmp(&own_to[s * own_blocks + b],
                               &next_scales[s * blocks + begin / 256 + b], sizeof *own_to) == 0;
        }
        if (!same)
            return fprintf(stderr, "%lld numbers, rank %d of %d, coded %d, apart %d\n",
                           (long long)n, rank, ranks, coded, apart);
    }
    return 0;
}

/* Gradients of two parameters, one of which stays whole; with a loss scale, and without. */
static int norm(int64_t n, int ranks, int apart)
{
    static gp_real shard[MOST], state[] = {1024, 3, 1};
    const gp_clip_factor_attr limit = {0.7};
    const gp_unscale_attr scaled = {0.7};
    const gp_shard_squares_attr squares = {ranks};
    const gp_clip_factor_shards_attr shards = {0.7, ranks};
    const gp_unscale_shards_attr scaled_shards = {0.7, ranks};
    const int64_t part = gp_shard(n, ranks), row = part / GP_CLIP_CHUNK;
    static double all[CHUNKS];
    gp_real want[4] = {0}, has[4] = {0};
    const gp_tensor whole[] = {list(state, GP_F32, 0, 3), list(g, GP_F32, 0, n),
                               list(m, GP_F32, 0, 777)};
    const gp_tensor one = list(want, GP_F32, 0, 1), three = list(want + 1, GP_F32, 0, 3);
    if (run(gp_clip_factor, &limit, whole + 1, 2, &one, 1, 0) != GP_OK ||
        run(gp_unscale, &scaled, whole, 3, &three, 1, 0) != GP_OK)
        return 1;
    if (part == 0)
        return 0;
    for (int rank = 0; rank < ranks; rank++) {
        const int64_t begin = rank * part < n ? rank * part : n;
        const int64_t count = n - begin < part ? n - begin : part;
        memcpy(shard, g + begin, (size_t)count * sizeof *shard);
        const gp_tensor in[] = {list(w, GP_F32, 0, n),
                                apart ? list(shard, GP_F32, 0, part) : list(g, GP_F32, 0, n)};
        const gp_tensor out = list(table, GP_I32, ranks, 2 * row);
        if (run(gp_shard_squares, &squares, in, 2, &out, 1, rank) != GP_OK)
            return 1;
        memcpy(all + rank * row, table + rank * row, (size_t)row * sizeof *all);
    }
    const gp_tensor in[] = {
        list(state, GP_F32, 0, 3), list(all, GP_I32, ranks, 2 * row),
        list(w, GP_F32, 0, n),     apart ? list(shard, GP_F32, 0, part) : list(g, GP_F32, 0, n),
        list(v, GP_F32, 0, 777),   list(m, GP_F32, 0, 777)};
    const gp_tensor factor = list(has, GP_F32, 0, 1), facts = list(has + 1, GP_F32, 0, 3);
    if (run(gp_clip_factor_shards, &shards, in + 1, 5, &factor, 1, 0) != GP_OK ||
        run(gp_unscale_shards, &scaled_shards, in, 6, &facts, 1, 0) != GP_OK ||
        memcmp(want, has, sizeof want) != 0)
        return fprintf(stderr, "the norm of %lld numbers on %d ranks: %a, not %a\n", (long long)n,
                       ranks, (double)has[0], (double)want[0]);
    return 0;
}

int main(void)
{
    static const int64_t counts[] = {1, 4096, 4097, 8191, 8192, 8193, 12288, 30001, 49152, MOST};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int ranks = 2; ranks <= RANKS; ranks++)
            for (int apart = 0; apart < 2; apart++)
                if (update(counts[i], ranks, 0, apart) || update(counts[i], ranks, 1, apart) ||
                    norm(counts[i], ranks, apart))
                    return 1;
    puts("shards of all sizes");
    return 0;
}
