/* The factor that clips the global norm of all gradients: min(1, limit / norm).
 *
 * Blocks sum the squares of chunks of fixed length in double; one block sums the chunks. */
#ifndef GP_CLIP_FACTOR_CUH
#define GP_CLIP_FACTOR_CUH

#include "base.cuh"

static __global__ void gp_clip_squares(const gp_real *g, int64_t count, int64_t parts, double *part)
{
    for (GP_EACH_BLOCK(p, parts)) {
        const int64_t from = p * GP_CLIP_CHUNK;
        const int64_t end = from + GP_CLIP_CHUNK < count ? from + GP_CLIP_CHUNK : count;
        double sum = 0;
        for (int64_t i = from + threadIdx.x; i < end; i += blockDim.x)
            sum += (double)g[i] * (double)g[i];
        sum = gp_block_sum(sum);
        if (threadIdx.x == 0)
            part[p] = sum;
    }
}

/* The sums of chunks of all from operand `first` on, and how many there are. */
GP_UNUSED static int gp_clip_sums(const gp_call *c, int first, int64_t *sums)
{
    double *part = (double *)c->work;
    int64_t all = 0;
    for (int i = first; i < c->ins; i++) {
        const int64_t count = gp_count(&c->in[i]), parts = gp_clip_parts(&c->in[i]);
        GP_LAUNCH(c, gp_clip_squares, gp_blocks(parts, 1), gp_block_of(count), 0,
                  (const gp_real *)c->in[i].data, count, parts, part + all);
        all += parts;
    }
    *sums = all;
    return GP_OK;
}

/* Of a block: the norm, of the sums. */
GP_DEVICE double gp_norm_of(const double *part, int64_t parts)
{
    double squares = 0;
    for (int64_t p = threadIdx.x; p < parts; p += blockDim.x)
        squares += part[p];
    return sqrt(gp_block_sum(squares));
}

static __global__ void gp_clip_finish(const double *part, int64_t parts, double limit, gp_real *to)
{
    const double norm = gp_norm_of(part, parts);
    if (threadIdx.x == 0)
        *to = norm <= limit ? 1 : (gp_real)(limit / norm); /* a NaN stays */
}

GP_KERNEL(clip_factor)
{
    const gp_clip_factor_attr *a = (const gp_clip_factor_attr *)c->attr;
    int64_t sums = 0;
    const int code = gp_clip_sums(c, 0, &sums);
    if (code != GP_OK)
        return code;
    GP_LAUNCH(c, gp_clip_finish, 1, gp_block_of(sums), 0, (const double *)c->work, sums, a->limit,
              (gp_real *)c->out[0].data);
    return GP_OK;
}

#endif
