/* sum, mean, prod, max, min, var over any axes of a tensor of any strides.
 *
 * Elements are added in vectors of up to GP_FOLD_LANES: columns of the output where the last axis
 * is kept, neighbours in memory where it is reduced. These are added up in blocks of GP_FOLD_BLOCK,
 * blocks pairwise within a chunk, chunks pairwise, and lanes pairwise at the end, so the error
 * grows with the logarithm of the count. Chunks follow from the shape: any number of threads gives
 * the same bits. */
#ifndef GP_REDUCE_H
#define GP_REDUCE_H

#include "epilogue.h"
#include "fold.h"
#include "settings.h"

enum { GP_FOLD_SUM, GP_FOLD_SQUARES, GP_FOLD_PROD, GP_FOLD_MAX, GP_FOLD_MIN };
enum {
    GP_FOLD_LANES = GP_BLOCK(64, 4),
    GP_FOLD_BLOCK = GP_BLOCK(16, 2),
    GP_FOLD_LEVELS = GP_BLOCK(7, 3) /* 2^6 blocks in a chunk */
};
#define GP_FOLD_CHUNK ((int64_t)GP_FOLD_BLOCK << (GP_FOLD_LEVELS - 1))

GP_FUNCTION gp_real gp_fold_start(int how)
{
    return how == GP_FOLD_PROD  ? 1
           : how == GP_FOLD_MAX ? -(gp_real)INFINITY
           : how == GP_FOLD_MIN ? (gp_real)INFINITY
                                : 0;
}

/* to[i] op= x[i]; squares are added once they are there. A NaN wins over every number. */
GP_FUNCTION void gp_fold_join(int how, gp_real *to, const gp_real *x, int64_t n)
{
    if (GP_WAY(fold_prod, how == GP_FOLD_PROD))
        for (int64_t i = 0; i < n; i++)
            to[i] *= x[i];
    else if (GP_WAY(fold_max, how == GP_FOLD_MAX))
        for (int64_t i = 0; i < n; i++)
            to[i] = x[i] > to[i] || x[i] != x[i] ? x[i] : to[i];
    else if (GP_WAY(fold_min, how == GP_FOLD_MIN))
        for (int64_t i = 0; i < n; i++)
            to[i] = x[i] < to[i] || x[i] != x[i] ? x[i] : to[i];
    else
        for (int64_t i = 0; i < n; i++)
            to[i] += x[i];
}

/* The same for many rows, not inlined: one copy for all callers. */
static GP_NOINLINE void gp_fold_carry(int how, gp_real *to, const gp_real *x, int64_t n)
{
    gp_fold_join(how, to, x, n);
}

GP_FUNCTION void gp_fold_squares(gp_real *to, const gp_real *x, const gp_real *mean, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += (x[i] - mean[i]) * (x[i] - mean[i]);
}

/* One chunk: rows [from, to) of `lanes` numbers, into sum[0 .. lanes). A row is columns [column,
 * column + lanes) of one reduced index, or a block of the reduced line. */
GP_FUNCTION void gp_fold_chunk(const gp_tensor *t, const gp_fold *fold, int how, int64_t base,
                               int64_t column, int64_t lanes, int64_t from, int64_t to,
                               const gp_real *mean, gp_real *sum)
{
    gp_real level[GP_FOLD_LEVELS][GP_FOLD_LANES], buffer[GP_FOLD_LANES];
    int64_t blocks = 0, depth = 0;
    (void)mean; /* for squares alone */
    for (int64_t row = from; row < to; row++) {
        gp_real *top = level[depth];
        if ((row - from) % GP_FOLD_BLOCK == 0)
            for (int64_t i = 0; i < lanes; i++)
                top[i] = gp_fold_start(how);
        const gp_real *x;
        int64_t n = lanes;
        if (fold->width > 1) {
            int64_t at = base + gp_line_at(&fold->in, row);
            x = gp_line_read(t, &fold->wide, at, column, n, buffer);
        } else {
            n = fold->count - row * lanes < lanes ? fold->count - row * lanes : lanes;
            x = gp_line_read(t, &fold->in, base, row * lanes, n, buffer);
        }
        if (GP_WAY(fold_squares, how == GP_FOLD_SQUARES))
            gp_fold_squares(top, x, mean, n);
        else
            gp_fold_join(how, top, x, n);
        if ((row - from + 1) % GP_FOLD_BLOCK && row + 1 < to)
            continue;
        blocks++; /* a block is full: as in a binary counter, equal levels are combined */
        for (int64_t carry = blocks; carry % 2 == 0; carry /= 2, depth--)
            gp_fold_carry(how, level[depth - 1], level[depth], lanes);
        depth++;
    }
    while (--depth > 0)
        gp_fold_carry(how, level[depth - 1], level[depth], lanes);
    memcpy(sum, level[0], (size_t)lanes * sizeof *sum);
}

/* Reduces the lanes to one, pairwise. */
GP_FUNCTION gp_real gp_fold_lanes(int how, gp_real *lane, int64_t lanes)
{
    for (; lanes > 1; lanes = (lanes + 1) / 2)
        gp_fold_carry(how, lane, lane + (lanes + 1) / 2, lanes / 2);
    return lane[0];
}

typedef struct {
    int64_t lanes, tiles, chunks, outputs;
} gp_fold_grid;

GP_FUNCTION gp_fold_grid gp_fold_cut(const gp_fold *fold)
{
    gp_fold_grid grid;
    int64_t across = fold->width > 1 ? fold->width : fold->count;
    grid.lanes = across < GP_FOLD_LANES ? across : GP_FOLD_LANES;
    grid.tiles = fold->width > 1 ? (fold->width + grid.lanes - 1) / grid.lanes : 1;
    int64_t rows = fold->width > 1 ? fold->count : (fold->count + grid.lanes - 1) / grid.lanes;
    grid.chunks = (rows + GP_FOLD_CHUNK - 1) / GP_FOLD_CHUNK;
    grid.outputs = fold->outers * fold->width;
    return grid;
}

/* Chunk `chunk` of the outputs in tile `tile` of row `outer`: into part[...], where they are final
 * with the epilogue of `end`. */
GP_FUNCTION void gp_fold_task(const gp_tensor *t, const gp_fold *fold, const gp_fold_grid *grid,
                              int how, int64_t outer, int64_t tile, int64_t chunk,
                              const gp_real *mean, gp_real *part, const gp_call *end)
{
    gp_real shift[GP_FOLD_LANES], lane[GP_FOLD_LANES];
    int64_t base = gp_line_at(&fold->outer, outer);
    int64_t column = tile * grid->lanes, lanes = grid->lanes, at = outer * fold->width + column;
    int64_t rows = fold->count;
    if (fold->width > 1)
        lanes = fold->width - column < lanes ? fold->width - column : lanes;
    else
        rows = (fold->count + lanes - 1) / lanes;
    for (int64_t i = 0; mean && i < lanes; i++)
        shift[i] = mean[fold->width > 1 ? at + i : at];
    int64_t from = chunk * GP_FOLD_CHUNK;
    int64_t to = from + GP_FOLD_CHUNK < rows ? from + GP_FOLD_CHUNK : rows;
    gp_fold_chunk(t, fold, how, base, column, lanes, from, to, mean ? shift : NULL, lane);
    if (fold->width == 1) {
        lane[0] = gp_fold_lanes(how, lane, lanes);
        lanes = 1;
    }
    if (GP_WAY(reduce_aside, end && end->aside))
        gp_epilogue_run(end, lane, 1, at, lanes);
    memcpy(part + at, lane, (size_t)lanes * sizeof *lane);
}

/* All outputs, into `to`; `parts` holds one set of outputs for each chunk. Nothing lies in `to`
 * before it is final, so an epilogue may add to what is there. */
GP_FUNCTION void gp_fold_all(const gp_call *c, const gp_fold *fold, int how, const gp_real *mean,
                             gp_real *parts, gp_real *to)
{
    const gp_tensor *t = &c->in[0];
    gp_fold_grid grid = gp_fold_cut(fold);
    gp_real *part = grid.chunks > 1 ? parts : to;
    const gp_call *end = grid.chunks == 1 ? c : NULL;
    int64_t tasks = fold->outers * grid.tiles * grid.chunks;
    GP_PARALLEL(c->run, grid.outputs * fold->count > 8192)
    for (int64_t task = 0; task < tasks; task++) {
        int64_t chunk = task % grid.chunks, tile = task / grid.chunks % grid.tiles;
        gp_fold_task(t, fold, &grid, how, task / grid.chunks / grid.tiles, tile, chunk, mean,
                     part + chunk * grid.outputs, end);
    }
    if (grid.chunks == 1)
        return;
    for (int64_t step = 1; step < grid.chunks; step *= 2)
        for (int64_t i = 0; i + step < grid.chunks; i += 2 * step)
            gp_fold_carry(how, part + i * grid.outputs, part + (i + step) * grid.outputs,
                          grid.outputs);
    if (GP_WAY(reduce_aside, c->aside))
        gp_epilogue_run(c, part, 1, 0, grid.outputs);
    memcpy(to, part, (size_t)grid.outputs * sizeof *to);
}

/* Integer sums do not depend on the order; they wrap around like unsigned ones. */
GP_FUNCTION int64_t gp_fold_int(int how, int64_t a, int64_t b)
{
    switch (how) {
    case GP_FOLD_PROD:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case GP_FOLD_MAX:
        return b > a ? b : a;
    case GP_FOLD_MIN:
        return b < a ? b : a;
    default:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    }
}

GP_FUNCTION void gp_fold_ints(const gp_call *c, const gp_fold *fold, int how)
{
    const gp_tensor *t = &c->in[0];
    GP_PARALLEL(c->run, fold->outers * fold->width * fold->count > 8192)
    for (int64_t i = 0; i < fold->outers * fold->width; i++) {
        int64_t base =
            gp_line_at(&fold->outer, i / fold->width) + gp_line_at(&fold->wide, i % fold->width);
        int64_t sum = gp_load_int(t, base);
        for (int64_t k = 1; k < fold->count; k++)
            sum = gp_fold_int(how, sum, gp_load_int(t, base + gp_line_at(&fold->in, k)));
        gp_store_int(&c->out[0], i, sum);
    }
}

GP_FUNCTION int gp_reduces_to_half(const gp_call *c)
{
    return c->out[0].dtype == GP_F16 || c->out[0].dtype == GP_BF16;
}

GP_FUNCTION void gp_reduce_ways(const gp_call *c, int how, gp_ways *ways)
{
    gp_way(ways, "reduce_reals", gp_is_real(c->out[0].dtype));
    gp_way(ways, "reduce_half", gp_reduces_to_half(c));
    gp_way(ways, "line_reals", c->in[0].dtype == GP_F32);
    const gp_fold fold = gp_fold_of(&c->in[0], ((const gp_sum_attr *)c->attr)->axes);
    gp_way(ways, "line_copies",
           c->in[0].dtype != GP_F32 || gp_line_has_gaps(fold.width > 1 ? &fold.wide : &fold.in, 2));
    if (c->in[0].dtype != GP_F32)
        gp_way(ways, "line_half", gp_is_real(c->in[0].dtype));
    gp_way(ways, "fold_prod", how == GP_FOLD_PROD);
    gp_way(ways, "fold_max", how == GP_FOLD_MAX);
    gp_way(ways, "fold_min", how == GP_FOLD_MIN);
    gp_way(ways, "fold_squares", how == GP_FOLD_SQUARES);
    gp_way(ways, "reduce_aside", c->aside);
    gp_way(ways, "epilogue_apart", 0);
}

GP_FUNCTION int gp_reduce(const gp_call *c, int how)
{
    const gp_sum_attr *a = c->attr;
    gp_fold fold = gp_fold_of(&c->in[0], a->axes);
    if (GP_WAY(reduce_half, gp_reduces_to_half(c))) {
        gp_real *const wide = c->work;
        const int64_t n = fold.outers * fold.width;
        gp_fold_all(c, &fold, how, NULL, wide + n, wide);
        gp_set_row(c->out[0].data, wide, n, c->out[0].dtype);
    } else if (GP_WAY(reduce_reals, gp_is_real(c->out[0].dtype)))
        gp_fold_all(c, &fold, how, NULL, c->work, c->out[0].data);
    else
        gp_fold_ints(c, &fold, how);
    return GP_OK;
}

/* Partial results of a reduction with more than one chunk; results that are rounded at the end. */
GP_FUNCTION size_t gp_reduce_workspace(const gp_call *c, int64_t axes)
{
    gp_fold fold = gp_fold_of(&c->in[0], axes);
    gp_fold_grid grid = gp_fold_cut(&fold);
    const int64_t parts = (grid.chunks > 1 ? grid.chunks : 0) + gp_reduces_to_half(c);
    return gp_is_real(c->out[0].dtype) ? (size_t)(parts * grid.outputs) * sizeof(gp_real) : 0;
}

GP_WORKSPACE(sum)
{
    return gp_reduce_workspace(c, ((const gp_sum_attr *)c->attr)->axes);
}

GP_WAYS(sum)
{
    gp_reduce_ways(c, GP_FOLD_SUM, ways);
}

GP_KERNEL(sum)
{
    return gp_reduce(c, GP_FOLD_SUM);
}

GP_WORKSPACE(prod)
{
    return gp_reduce_workspace(c, ((const gp_prod_attr *)c->attr)->axes);
}

GP_WAYS(prod)
{
    gp_reduce_ways(c, GP_FOLD_PROD, ways);
}

GP_KERNEL(prod)
{
    return gp_reduce(c, GP_FOLD_PROD);
}

GP_WORKSPACE(max)
{
    return gp_reduce_workspace(c, ((const gp_max_attr *)c->attr)->axes);
}

GP_WAYS(max)
{
    gp_reduce_ways(c, GP_FOLD_MAX, ways);
}

GP_KERNEL(max)
{
    return gp_reduce(c, GP_FOLD_MAX);
}

GP_WORKSPACE(min)
{
    return gp_reduce_workspace(c, ((const gp_min_attr *)c->attr)->axes);
}

GP_WAYS(min)
{
    gp_reduce_ways(c, GP_FOLD_MIN, ways);
}

GP_KERNEL(min)
{
    return gp_reduce(c, GP_FOLD_MIN);
}

GP_FUNCTION void gp_reduce_divide(const gp_tensor *t, int64_t by)
{
    gp_real *to = t->data;
    for (int64_t i = 0; i < gp_count(t); i++)
        to[i] /= (gp_real)by;
}

GP_WORKSPACE(mean)
{
    return gp_reduce_workspace(c, ((const gp_mean_attr *)c->attr)->axes);
}

GP_WAYS(mean)
{
    gp_reduce_ways(c, GP_FOLD_SUM, ways);
}

GP_KERNEL(mean)
{
    const gp_mean_attr *a = c->attr;
    gp_reduce(c, GP_FOLD_SUM);
    gp_reduce_divide(&c->out[0], gp_fold_of(&c->in[0], a->axes).count);
    return GP_OK;
}

/* Also holds the means. */
GP_WORKSPACE(var)
{
    const gp_var_attr *a = c->attr;
    return gp_reduce_workspace(c, a->axes) + (size_t)gp_count(&c->out[0]) * sizeof(gp_real);
}

GP_WAYS(var)
{
    gp_reduce_ways(c, GP_FOLD_SUM, ways);
    gp_reduce_ways(c, GP_FOLD_SQUARES, ways);
}

GP_KERNEL(var)
{
    const gp_var_attr *a = c->attr;
    gp_fold fold = gp_fold_of(&c->in[0], a->axes);
    gp_tensor mean = c->out[0];
    mean.data = c->work;
    gp_real *parts = (gp_real *)c->work + gp_count(&mean);
    gp_fold_all(c, &fold, GP_FOLD_SUM, NULL, parts, mean.data);
    gp_reduce_divide(&mean, fold.count);
    gp_fold_all(c, &fold, GP_FOLD_SQUARES, mean.data, parts, c->out[0].data);
    gp_reduce_divide(&c->out[0], fold.count - a->correction);
    return GP_OK;
}

#endif
