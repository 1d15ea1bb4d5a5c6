/* The factor that clips the global norm of all gradients: min(1, limit / norm).
 *
 * Squares are summed in double, tensor by tensor in chunks of fixed length, chunks in order, so
 * that the number of threads changes nothing. */
#ifndef GP_CLIP_FACTOR_H
#define GP_CLIP_FACTOR_H

#include "base.h"
#include "settings.h"

enum { GP_CLIP_CHUNK = 1 << 12, GP_CLIP_LANES = GP_BLOCK(32, 4) }; /* ranks have whole chunks */

GP_WORKSPACE(clip_factor)
{
    int64_t most = 1;
    for (int i = 0; i < c->ins; i++)
        if (most < gp_count(&c->in[i]) / GP_CLIP_CHUNK + 1)
            most = gp_count(&c->in[i]) / GP_CLIP_CHUNK + 1;
    return (size_t)most * sizeof(double);
}

/* The squares of a chunk. */
GP_FUNCTION double gp_squares(const gp_real *g, int64_t count)
{
    double lane[GP_CLIP_LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + GP_CLIP_LANES <= count; i += GP_CLIP_LANES)
        for (int j = 0; j < GP_CLIP_LANES; j++)
            lane[j] += (double)g[i + j] * (double)g[i + j];
    for (; i < count; i++)
        sum += (double)g[i] * (double)g[i];
    for (int j = 0; j < GP_CLIP_LANES; j++)
        sum += lane[j];
    return sum;
}

/* Those of all chunks of so many numbers; how many chunks there are. */
GP_FUNCTION int64_t gp_squares_of(const gp_call *c, const gp_real *g, int64_t count, double *part)
{
    const int64_t parts = (count + GP_CLIP_CHUNK - 1) / GP_CLIP_CHUNK;
    (void)c;
    GP_PARALLEL(c->run, parts > 16)
    for (int64_t p = 0; p < parts; p++) {
        const int64_t left = count - p * GP_CLIP_CHUNK;
        part[p] = gp_squares(g + p * GP_CLIP_CHUNK, left < GP_CLIP_CHUNK ? left : GP_CLIP_CHUNK);
    }
    return parts;
}

/* The norm of all from operand `first` on. */
GP_FUNCTION double gp_norm_of(const gp_call *c, int first)
{
    double *part = c->work, squares = 0;
    for (int k = first; k < c->ins; k++) {
        const int64_t parts = gp_squares_of(c, c->in[k].data, gp_count(&c->in[k]), part);
        for (int64_t p = 0; p < parts; p++)
            squares += part[p];
    }
    return sqrt(squares);
}

GP_KERNEL(clip_factor)
{
    const gp_clip_factor_attr *a = c->attr;
    const double norm = gp_norm_of(c, 0);
    *(gp_real *)c->out[0].data =
        norm <= a->limit ? 1 : (gp_real)(a->limit / norm); /* a NaN stays */
    return GP_OK;
}

#endif
