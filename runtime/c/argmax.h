/* argmax and argmin: the index of the first largest (smallest) of the reduced elements, counted in
 * row-major order of the reduced axes. A NaN compares before every number. */
#ifndef GP_ARGMAX_H
#define GP_ARGMAX_H

#include "fold.h"
#include "settings.h"

enum { GP_ARG_LANES = GP_BLOCK(64, 4) };

GP_FUNCTION int gp_arg_better(gp_real x, gp_real best, int least)
{
    return (least ? x < best : x > best) || (x != x && best == best);
}

/* Columns [column, column + n) of one outer row. */
GP_FUNCTION void gp_arg_columns(const gp_tensor *t, const gp_fold *fold, int64_t base,
                                int64_t column, int64_t n, int least, int32_t *place)
{
    gp_real best[GP_ARG_LANES], buffer[GP_ARG_LANES];
    for (int64_t row = 0; row < fold->count; row++) {
        int64_t at = base + gp_line_at(&fold->in, row);
        const gp_real *x = gp_line_read(t, &fold->wide, at, column, n, buffer);
        for (int64_t i = 0; i < n; i++)
            if (row == 0 || gp_arg_better(x[i], best[i], least)) {
                best[i] = x[i];
                place[i] = (int32_t)row;
            }
    }
}

GP_FUNCTION int32_t gp_arg_line(const gp_tensor *t, const gp_fold *fold, int64_t base, int least)
{
    gp_real best = 0, buffer[GP_ARG_LANES];
    int64_t place = -1;
    for (int64_t row = 0; row < fold->count; row += GP_ARG_LANES) {
        int64_t n = fold->count - row < GP_ARG_LANES ? fold->count - row : GP_ARG_LANES;
        const gp_real *x = gp_line_read(t, &fold->in, base, row, n, buffer);
        for (int64_t i = 0; i < n; i++)
            if (place < 0 || gp_arg_better(x[i], best, least)) {
                best = x[i];
                place = row + i;
            }
    }
    return (int32_t)place;
}

/* Integers are compared as integers: a real type cannot represent them all. */
GP_FUNCTION int32_t gp_arg_ints(const gp_tensor *t, const gp_fold *fold, int64_t base, int least)
{
    int64_t best = 0, place = -1;
    for (int64_t k = 0; k < fold->count; k++) {
        int64_t x = gp_load_int(t, base + gp_line_at(&fold->in, k));
        if (place < 0 || (least ? x < best : x > best)) {
            best = x;
            place = k;
        }
    }
    return (int32_t)place;
}

GP_FUNCTION int gp_arg(const gp_call *c, int64_t axes, int least)
{
    const gp_tensor *t = &c->in[0];
    gp_fold fold = gp_fold_of(t, axes);
    int64_t lanes = gp_is_real(t->dtype) ? GP_ARG_LANES : 1;
    int64_t tiles = (fold.width + lanes - 1) / lanes;
    int32_t *to = c->out[0].data;
    GP_PARALLEL(c->run, fold.outers * fold.width * fold.count > 8192)
    for (int64_t task = 0; task < fold.outers * tiles; task++) {
        int64_t outer = task / tiles, column = task % tiles * lanes;
        int64_t base = gp_line_at(&fold.outer, outer), at = outer * fold.width + column;
        int64_t n = fold.width - column < lanes ? fold.width - column : lanes;
        if (!gp_is_real(t->dtype))
            to[at] = gp_arg_ints(t, &fold, base + gp_line_at(&fold.wide, column), least);
        else if (fold.width == 1)
            to[at] = gp_arg_line(t, &fold, base, least);
        else
            gp_arg_columns(t, &fold, base, column, n, least, to + at);
    }
    return GP_OK;
}

/* Lines are read of reals alone: integers are compared as such. */
GP_FUNCTION void gp_arg_ways(const gp_call *c, gp_ways *ways)
{
    const int half = gp_is_real(c->in[0].dtype) && c->in[0].dtype != GP_F32;
    gp_way(ways, "line_reals", !half);
    if (half)
        gp_way(ways, "line_half", 1);
}

GP_WAYS(argmax)
{
    gp_arg_ways(c, ways);
}

GP_WAYS(argmin)
{
    gp_arg_ways(c, ways);
}

GP_KERNEL(argmax)
{
    return gp_arg(c, ((const gp_argmax_attr *)c->attr)->axes, 0);
}

GP_KERNEL(argmin)
{
    return gp_arg(c, ((const gp_argmin_attr *)c->attr)->axes, 1);
}

#endif
