/* The norm of gradients of which each rank has shards: the same bits as of whole ones.
 *
 * Each rank sums the squares of its own chunks and writes them to its row of a table; when all rows
 * are there, every rank adds the chunks in the order of clip_factor. Operands come in pairs: a
 * parameter, for how long it is, and its gradient: whole where it is not divided; otherwise a
 * shard, or whole with the shard in its place. */
#ifndef GP_NORM_SHARDS_H
#define GP_NORM_SHARDS_H

#include "clip_factor.h"
#include "scale.h"

/* The numbers of so many that each rank owns, as gplan cuts them; 0: they are not divided. */
GP_FUNCTION int64_t gp_shard(int64_t count, int64_t ranks)
{
    const int64_t each = (count + ranks - 1) / ranks;
    const int64_t part = (each + GP_CLIP_CHUNK - 1) / GP_CLIP_CHUNK * GP_CLIP_CHUNK;
    return part < count ? part : 0;
}

/* Operands: the pairs. */
GP_KERNEL(shard_squares)
{
    const gp_shard_squares_attr *a = c->attr;
    const int64_t rank = GP_PART(c->run) / c->run->micros;
    const int64_t row = gp_count(&c->out[0]) / (2 * a->ranks);
    double *part = (double *)c->out[0].data + rank * row;
    memset(c->out[0].data, 0, (size_t)(a->ranks * row) * sizeof *part);
    for (int k = 0; k + 1 < c->ins; k += 2) {
        const int64_t count = gp_count(&c->in[k]), each = gp_shard(count, a->ranks);
        const int64_t begin = rank * each, left = count - begin, own = left < each ? left : each;
        const gp_real *g = c->in[k + 1].data;
        if (own > 0)
            gp_squares_of(c, gp_count(&c->in[k + 1]) == count ? g + begin : g, own, part);
        part += each / GP_CLIP_CHUNK;
    }
    return GP_OK;
}

/* Operands from `first` on: the table, the pairs. */
GP_FUNCTION double gp_norm_of_shards(const gp_call *c, int first, int64_t ranks)
{
    const int64_t row = gp_count(&c->in[first]) / (2 * ranks);
    const double *table = c->in[first].data;
    double squares = 0, whole; /* what is not divided is one chunk at most */
    for (int k = first + 1; k + 1 < c->ins; k += 2) {
        const int64_t count = gp_count(&c->in[k]), each = gp_shard(count, ranks) / GP_CLIP_CHUNK;
        if (each == 0 && gp_squares_of(c, c->in[k + 1].data, count, &whole) > 0)
            squares += whole;
        for (int64_t rank = 0; rank < ranks; rank++)
            for (int64_t p = 0; p < each; p++)
                squares += table[rank * row + p];
        table += each;
    }
    return sqrt(squares);
}

GP_KERNEL(clip_factor_shards)
{
    const gp_clip_factor_shards_attr *a = c->attr;
    const double norm = gp_norm_of_shards(c, 0, a->ranks);
    *(gp_real *)c->out[0].data = norm <= a->limit ? 1 : (gp_real)(a->limit / norm);
    return GP_OK;
}

/* Operands: the state of the loss scale first. */
GP_KERNEL(unscale_shards)
{
    const gp_unscale_shards_attr *a = c->attr;
    const double norm = gp_norm_of_shards(c, 1, a->ranks);
    gp_unscaled(c->in[0].data, norm, a->limit, c->out[0].data);
    return GP_OK;
}

#endif
