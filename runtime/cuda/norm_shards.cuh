/* The norm of gradients of which each rank has shards: the same bits as of whole ones
 * (clip_factor.cuh), for each rank sums the squares of its own chunks, and all add those of all in
 * one order. Operands are as in runtime/c/norm_shards.h. */
#ifndef GP_NORM_SHARDS_CUH
#define GP_NORM_SHARDS_CUH

#include "unscale.cuh"

/* The numbers of so many that each rank owns, as gplan cuts them; 0: they are not divided. */
GP_UNUSED static inline int64_t gp_shard(int64_t count, int64_t ranks)
{
    const int64_t each = (count + ranks - 1) / ranks;
    const int64_t part = (each + GP_CLIP_CHUNK - 1) / GP_CLIP_CHUNK * GP_CLIP_CHUNK;
    return part < count ? part : 0;
}

/* Operands: the pairs. */
GP_KERNEL(shard_squares)
{
    const gp_shard_squares_attr *a = (const gp_shard_squares_attr *)c->attr;
    const int64_t ranks = (int64_t)a->ranks, rank = gp_device_of(c)->rank;
    const int64_t row = gp_count(&c->out[0]) / (2 * ranks); /* a double is two numbers */
    double *part = (double *)c->out[0].data + rank * row;
    GP_CUDA_CALL(c, cudaMemsetAsync(c->out[0].data, 0, (size_t)(ranks * row) * sizeof *part,
                                    gp_device_of(c)->stream));
    for (int k = 0; k + 1 < c->ins; k += 2) {
        const int64_t count = gp_count(&c->in[k]), each = gp_shard(count, ranks);
        const int64_t begin = rank * each, left = count - begin, own = left < each ? left : each;
        const int64_t parts = (own + GP_CLIP_CHUNK - 1) / GP_CLIP_CHUNK;
        const gp_real *g = (const gp_real *)c->in[k + 1].data;
        if (own > 0)
            GP_LAUNCH(c, gp_clip_squares, gp_blocks(parts, 1), gp_block_of(count), 0,
                      gp_count(&c->in[k + 1]) == count ? g + begin : g, own, parts, part);
        part += each / GP_CLIP_CHUNK;
    }
    return GP_OK;
}

/* Chunk p of a gradient, from the row of the rank that owns it. */
static __global__ GP_UNUSED void gp_take_squares(const double *table, int64_t row, int64_t each,
                                                 int64_t parts, double *part)
{
    for (GP_EACH(p, parts))
        part[p] = table[p / each * row + p % each];
}

/* The sums of all chunks, where clip_factor has them. Operands from `first` on: the table, the
 * pairs. */
GP_UNUSED static int gp_norm_sums(const gp_call *c, int first, int64_t ranks, int64_t *sums)
{
    const int64_t row = gp_count(&c->in[first]) / (2 * ranks);
    const double *table = (const double *)c->in[first].data;
    double *part = (double *)c->work;
    for (int k = first + 1; k + 1 < c->ins; k += 2) {
        const int64_t count = gp_count(&c->in[k]), each = gp_shard(count, ranks) / GP_CLIP_CHUNK;
        const int64_t parts = gp_clip_parts(&c->in[k]);
        if (each)
            GP_LAUNCH(c, gp_take_squares, gp_blocks(parts, GP_WARP), GP_WARP, 0, table, row, each,
                      parts, part);
        else
            GP_LAUNCH(c, gp_clip_squares, gp_blocks(parts, 1), gp_block_of(count), 0,
                      (const gp_real *)c->in[k + 1].data, count, parts, part);
        table += each;
        part += parts;
    }
    *sums = part - (double *)c->work;
    return GP_OK;
}

GP_KERNEL(clip_factor_shards)
{
    const gp_clip_factor_shards_attr *a = (const gp_clip_factor_shards_attr *)c->attr;
    int64_t sums = 0;
    const int code = gp_norm_sums(c, 0, (int64_t)a->ranks, &sums);
    if (code != GP_OK)
        return code;
    GP_LAUNCH(c, gp_clip_finish, 1, gp_block_of(sums), 0, (const double *)c->work, sums, a->limit,
              (gp_real *)c->out[0].data);
    return GP_OK;
}

/* Operands: the state of the loss scale first. */
GP_KERNEL(unscale_shards)
{
    const gp_unscale_shards_attr *a = (const gp_unscale_shards_attr *)c->attr;
    int64_t sums = 0;
    const int code = gp_norm_sums(c, 1, (int64_t)a->ranks, &sums);
    if (code != GP_OK)
        return code;
    GP_LAUNCH(c, gp_unscale_finish, 1, gp_block_of(sums), 0, (const double *)c->work, sums,
              (const gp_real *)c->in[0].data, a->limit, (gp_real *)c->out[0].data);
    return GP_OK;
}

#endif
