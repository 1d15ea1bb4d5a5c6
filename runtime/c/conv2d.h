/* Convolution of images [N, C, H, W] with weights [O, C / groups, KH, KW].
 *
 * A matrix product for each group: weights [O, K] times the patches [K, N * OH * OW] (im2col, but
 * packed straight into panels, a block of output positions at a time; a block may span images). A
 * 1x1 window mostly reads the image in place. Images that were widened from 16 bits are multiplied
 * as such. Depthwise convolution is in depthwise.h. */
#ifndef GP_CONV2D_H
#define GP_CONV2D_H

#include "conv_points.h"
#include "depthwise.h"
#include "patch_panels.h"
#include "settings.h"
#include "winograd.h"

enum {
    GP_CONV_IN_PLACE = GP_BLOCK(40, 2), /* panels of channels, image read in place */
    GP_CONV_GATHERED = GP_BLOCK(16, 4)  /* weights of a row gathered at a time, while in cache */
};

/* Weight (o, c, i, j) of group g, with (i, j) a tap of the window, is
 * at[g * group + o * row + c * channel + i * place[0] + j * place[1]]. */
typedef struct {
    const gp_real *at;
    int64_t group, row, channel, place[2];
} gp_weights;

/* One convolution and how it is blocked. Positions are those of outputs, numbered through all
 * images. */
typedef struct {
    const gp_call *call;
    gp_sliding in;
    gp_weights w;
    const gp_tensor *b, *y;
    int64_t groups, rows, depth; /* rows: output channels of a group; depth: K */
    int64_t span;                /* contiguous outputs: all of a channel, or one row of it */
    int64_t places;              /* output positions of all images */
    int64_t few;                 /* the last of them, multiplied along the depth */
    int64_t height;              /* output channels of a block */
    int64_t down, across;        /* blocks of a group: by channels, by positions */
    int direct;                  /* patches are read in place */
    int half;                    /* gp_call.half */
} gp_conv;

/* The first position of block i. */
GP_FUNCTION int64_t gp_conv_begin(const gp_conv *v, int64_t i, int64_t across)
{
    return gp_least(i * gp_ceil_div(v->places, GP_NR) / across * GP_NR, v->places);
}

/* Splits into blocks that take threads about equally long; the split changes no sum. Of the ways to
 * divide a group into `parts`, the one whose longest part is least: channels times positions, plus
 * the cost of packing the other operand. */
GP_FUNCTION void gp_conv_cut(gp_conv *v, int64_t threads)
{
    const int64_t least = gp_ceil_div(v->places, GP_NC), patches = v->direct ? 1 : 6, weights = 4;
    const int64_t parts =
        v->groups * least >= 8 * threads || v->groups % threads == 0 ? 1 : threads;
    double best = 0;
    for (int64_t down = 1; down <= parts; down++) {
        if (parts % down != 0 || (down > 1 && (down - 1) * GP_MR >= v->rows))
            continue;
        const int64_t shares = parts / down, across = gp_round_up(least, shares);
        const int64_t last = gp_conv_begin(v, shares - 1, shares);
        const int64_t before = shares > 1 ? last - gp_conv_begin(v, shares - 2, shares) : 0;
        const int64_t longest = before > v->places - last ? before : v->places - last;
        const double cost = (double)(gp_ceil_div(v->rows, down) + patches) *
                            (double)(longest + weights * across / shares);
        if (best > 0 && cost >= best)
            continue;
        best = cost;
        v->down = down;
        v->across = gp_least(across, gp_ceil_div(v->places, GP_NR));
    }
    v->height = gp_ceil_div(v->rows, v->down);
    v->down = gp_ceil_div(v->rows, v->height);
}

/* All but the weights. */
static GP_NOINLINE gp_conv gp_conv_plan(const gp_call *c, gp_sliding in, int64_t groups)
{
    const gp_tensor *y = &c->out[0];
    gp_conv v = {.call = c, .in = in, .b = &c->in[2], .y = y, .groups = groups, .half = c->half};
    const int even = y->dim[2] == 1 || y->stride[2] == y->dim[3] * y->stride[3];
    v.rows = y->dim[1] / groups;
    v.depth = in.x->dim[1] / groups * in.kernel[0] * in.kernel[1];
    v.span = even ? in.outputs : y->dim[3];
    v.places = y->dim[0] * in.outputs;
    v.direct = !v.half && in.plain && in.x->stride[3] == 1 && v.rows <= GP_CONV_IN_PLACE * GP_MR;
    v.few = !v.half && v.places % GP_LANES <= GP_FEW ? v.places % GP_LANES : 0;
    gp_conv_cut(&v, c->run->threads);
    return v;
}

/* Whether Winograd is faster. So it is of 16 bits, with sums of f32: as fast as direct products by
 * vdpbf16ps, and twice as fast where there is none; the choice must not hang on that. */
GP_FUNCTION int gp_conv_is_wino(const gp_conv *v)
{
    const gp_sliding *in = &v->in;
    const int dense =
        v->w.place[0] == 3 * v->w.place[1] && (v->w.place[1] == 1 || v->w.place[1] == -1);
    return dense && v->groups == 1 && in->kernel[0] == 3 && in->kernel[1] == 3 &&
           in->stride[0] == 1 && in->stride[1] == 1 && in->dilation[0] == 1 &&
           in->dilation[1] == 1 &&
           gp_wino_pays(v->y->dim[0], in->x->dim[1], v->rows, v->y->dim[2], v->y->dim[3]);
}

GP_FUNCTION gp_winograd gp_conv_as_wino(const gp_conv *v)
{
    gp_winograd w = {.call = v->call,
                     .x = v->in.x,
                     .b = v->b,
                     .y = v->y,
                     .pad = {v->in.pad[0], v->in.pad[1]},
                     .at = v->w.at,
                     .row = v->w.row,
                     .channel = v->w.channel,
                     .place = v->w.place[1],
                     .inputs = v->in.x->dim[1],
                     .outputs = v->rows};
    gp_wino_cut(&w, v->call->run->threads);
    return w;
}

/* Workspace of a thread, in elements. */
GP_FUNCTION int64_t gp_conv_unit_work(const gp_conv *v)
{
    return gp_gemm_work(v->places, v->depth) + GP_FEW * GP_LINE + GP_NC_LARGEST +
           gp_patch_work(&v->in) + GP_NR_LARGEST * gp_least(v->depth, GP_KC);
}

GP_FUNCTION int64_t gp_conv_work(const gp_conv *v)
{
    if (gp_conv_is_wino(v)) {
        const gp_winograd w = gp_conv_as_wino(v);
        return gp_wino_work(&w);
    }
    return gp_conv_unit_work(v);
}

/* The stride from one weight of a row to the next if it is uniform; else 0. */
GP_FUNCTION int64_t gp_conv_step(const gp_conv *v)
{
    const gp_weights *w = &v->w;
    const int64_t high = v->in.kernel[0], wide = v->in.kernel[1];
    const int64_t step = wide > 1 ? w->place[1] : high > 1 ? w->place[0] : w->channel;
    const int even = (high == 1 || w->place[0] == wide * step) && w->channel == high * wide * step;
    return even ? step : 0;
}

/* Packs the panel of weights from row `from` where few of them have a uniform stride. */
static GP_NOINLINE void gp_conv_gather_weights(gp_real *restrict to, const gp_conv *v,
                                               const gp_real *from, int64_t height, int64_t p,
                                               int64_t k)
{
    const gp_weights *w = &v->w;
    const int64_t high = v->in.kernel[0], wide = v->in.kernel[1];
    int64_t channel = p / wide / high, ki = p / wide % high, kj = p % wide;
    for (int64_t done = 0, count; done < k; done += count) {
        int64_t at[GP_CONV_GATHERED];
        count = gp_least(k - done, GP_CONV_GATHERED);
        for (int64_t j = 0; j < count; j++) {
            at[j] = channel * w->channel + ki * w->place[0] + kj * w->place[1];
            if (++kj < wide)
                continue;
            kj = 0;
            if (++ki < high)
                continue;
            ki = 0;
            channel++;
        }
        for (int64_t row = 0; row < height; row++)
            for (int64_t j = 0; j < count; j++)
                to[row * GP_LINE + done + j] = from[row * w->row + at[j]];
    }
}

/* The same where at least a row of the window has a uniform stride. */
GP_FUNCTION void gp_conv_copy_weights(gp_real *restrict to, const gp_conv *v, const gp_real *from,
                                      int64_t height, int64_t p, int64_t k)
{
    const gp_weights *w = &v->w;
    const int64_t window = v->in.kernel[0] * v->in.kernel[1];
    const int even = w->place[0] == v->in.kernel[1] * w->place[1];
    const int64_t wide = even ? window : v->in.kernel[1];
    if (wide < 4) {
        gp_conv_gather_weights(to, v, from, height, p, k);
        return;
    }
    for (int64_t done = 0, count; done < k; done += count) { /* a run of uniform stride */
        const int64_t place = (p + done) % window;
        const gp_real *at = from + (p + done) / window * w->channel + place / wide * w->place[0] +
                            place % wide * w->place[1];
        count = gp_least(k - done, wide - place % wide);
        for (int64_t j = 0; j < height; j++)
            gp_copy(to + j * GP_LINE + done, at + j * w->row, w->place[1], count);
    }
}

/* The panel of weights: rows i .. i + height - 1, elements p .. p + k - 1 of their depth. */
GP_FUNCTION void gp_conv_pack_weights(gp_real *restrict to, const gp_conv *v, int64_t group,
                                      int64_t i, int64_t height, int64_t p, int64_t k)
{
    const gp_weights *w = &v->w;
    const gp_real *from = w->at + group * w->group + i * w->row;
    const int64_t step = gp_conv_step(v);
    if (GP_WAY(conv_weights_even, step))
        gp_pack_a(to, (gp_matrix){(gp_real *)from + p * step, w->row, step}, height, k);
    else
        gp_conv_copy_weights(to, v, from, height, p, k);
}

/* The weights that are packed after those of rows up to i (of m): the next rows, or the first ones
 * of the next block of the depth. */
GP_FUNCTION gp_coming gp_conv_next(const gp_conv *v, int64_t group, int64_t i0, int64_t i,
                                   int64_t m, int64_t p, int64_t k)
{
    const gp_weights *w = &v->w;
    const int64_t window = v->in.kernel[0] * v->in.kernel[1];
    const gp_real *at = w->at + group * w->group;
    if (i == m) {
        p = p + k < v->depth ? p + k : 0;
        i = 0;
    }
    at += (i0 + i) * w->row;
    const int64_t step = gp_conv_step(v);
    if (step)
        return gp_coming_of((gp_matrix){(gp_real *)at + p * step, w->row, step}, k);
    /* the weights of one channel are contiguous in each row */
    return (gp_coming){at + p / window * w->channel, GP_AHEAD, w->channel, k / window};
}

/* A contiguous run of outputs of a channel. */
typedef struct {
    gp_real *at;
    int64_t count, image, place; /* place: within the image */
} gp_conv_outputs;

/* The run of channel `out` from position `at`, at most n long. */
GP_FUNCTION gp_conv_outputs gp_conv_outputs_at(const gp_conv *v, int64_t out, int64_t at, int64_t n)
{
    const gp_tensor *y = v->y;
    const int64_t image = at / v->in.outputs, place = at % v->in.outputs;
    gp_real *to = (gp_real *)y->data + image * y->stride[0] + out * y->stride[1] +
                  place / y->dim[3] * y->stride[2] + place % y->dim[3] * y->stride[3];
    return (gp_conv_outputs){to, gp_least(n, v->span - place % v->span), image, place};
}

/* Stores or adds a tile to m channels from `out` of the outputs at positions at .. at + n - 1; rows
 * of the tile are `row` apart (1, with columns 0 apart, where it is a bias). */
static GP_NOINLINE void gp_conv_store(const gp_conv *v, int64_t out, int64_t m, int64_t at,
                                      int64_t n, const gp_real *tile, int64_t row, int64_t col,
                                      int add)
{
    const int64_t step = v->y->stride[3];
    for (int64_t j = 0, count; j < n; j += count) {
        const gp_conv_outputs s = gp_conv_outputs_at(v, out, at + j, n - j);
        gp_real *to = s.at;
        count = s.count;
        for (int64_t i = 0; i < m; i++, to += v->y->stride[1]) {
            const gp_real *from = tile + i * row + j * col;
            if (add)
                for (int64_t l = 0; l < count; l++)
                    to[l * step] += from[l * col];
            else
                for (int64_t l = 0; l < count; l++)
                    to[l * step] = from[l * col];
        }
    }
}

/* Prefetches the outputs that gp_conv_store will write, while their sums are computed. */
GP_FUNCTION void gp_conv_fetch(const gp_conv *v, int64_t out, int64_t m, int64_t at, int64_t n)
{
#if defined(__GNUC__)
    enum { LINE = 64 / (int)sizeof(gp_real) };
    for (int64_t j = 0, count; j < n; j += count) {
        const gp_conv_outputs s = gp_conv_outputs_at(v, out, at + j, n - j);
        count = s.count;
        for (int64_t i = 0; i < m; i++)
            for (int64_t l = 0; l < count * v->y->stride[3]; l += LINE)
                __builtin_prefetch(s.at + i * v->y->stride[1] + l, 1);
    }
#else
    (void)v, (void)out, (void)m, (void)at, (void)n;
#endif
}

/* Runs the epilogue on m channels from `out` of the final outputs at positions at .. at + n - 1. */
static GP_NOINLINE void gp_conv_finish(const gp_conv *v, int64_t out, int64_t m, int64_t at,
                                       int64_t n)
{
    const gp_tensor *y = v->y;
    for (int64_t j = 0, count; v->call->epilogue && j < n; j += count) {
        const gp_conv_outputs s = gp_conv_outputs_at(v, out, at + j, n - j);
        count = s.count;
        for (int64_t i = 0; i < m; i++)
            gp_epilogue_run(v->call, s.at + i * y->stride[1], y->stride[3],
                            (s.image * y->dim[1] + out + i) * v->in.outputs + s.place, count);
    }
}

/* Whether the panel of positions at .. at + GP_NR - 1 is within one image, and not past the
 * last. */
GP_FUNCTION int gp_conv_whole(const gp_conv *v, int64_t at)
{
    return at % v->in.outputs + GP_NR <= v->in.outputs && at + GP_NR <= v->places;
}

/* A packed panel of weights, m output channels from `out`, times the block of n positions at `at`;
 * of both the elements p .. p + k - 1 of their depth. `next`: the weights packed next, to prefetch.
 */
GP_FUNCTION void gp_conv_panels(const gp_conv *v, const gp_real *x, int64_t out, int64_t m,
                                const gp_real *rows, gp_coming next, const gp_real *patches,
                                int64_t at, int64_t n, int64_t p, int64_t k, int add)
{
    const gp_tensor *y = v->y;
    const int even = v->span == v->in.outputs && y->stride[3] == 1;
    gp_real tile[GP_MR * GP_NR];
    for (int64_t j = 0; j < n; j += GP_NR, patches += GP_NR * k) {
        const int64_t image = (at + j) / v->in.outputs, place = (at + j) % v->in.outputs;
        const int64_t width = gp_least(GP_NR, n - j);
        const int full = width == GP_NR || width == GP_LANES;
        const gp_real *b = patches;
        int64_t step = GP_NR;
        const gp_ahead ahead = gp_ahead_of(next, k, j, width, n);
        if (v->direct && gp_conv_whole(v, at + j)) {
            b = x + image * v->in.x->stride[0] + p * v->in.x->stride[1] + place;
            step = v->in.x->stride[1];
        }
        if (even && full && place + width <= v->in.outputs) {
            gp_real *to = (gp_real *)y->data + image * y->stride[0] + out * y->stride[1] + place;
            gp_panel_product(to, y->stride[1], rows, m, b, step, width, k, add, &ahead);
            continue;
        }
        gp_conv_fetch(v, out, m, at + j, width);
        gp_panel_product(tile, GP_NR, rows, m, b, step, width, k, 0, &ahead);
        gp_conv_store(v, out, m, at + j, width, tile, GP_NR, 1, add);
    }
}

/* The same of units of 16 bits. */
static GP_NOINLINE void gp_conv_units_panels(const gp_conv *v, int64_t out, int64_t m,
                                             const gp_real *rows, const gp_real *patches,
                                             int64_t at, int64_t n, int64_t k, int add)
{
    const gp_tensor *y = v->y;
    const int even = v->span == v->in.outputs && y->stride[3] == 1;
    const int64_t deep = gp_units(k, v->half);
    gp_real tile[GP_MR * GP_NR];
    for (int64_t j = 0; j < n; j += GP_NR, patches += GP_NR * deep) {
        const int64_t width = gp_least(GP_NR, n - j);
        const gp_conv_outputs s = gp_conv_outputs_at(v, out, at + j, width);
        const gp_ahead none = {rows, 0, 0};
        if (even && width == GP_NR && s.count == width) {
            gp_half_panel(s.at, y->stride[1], rows, m, patches, deep, v->half, add, &none);
            continue;
        }
        gp_conv_fetch(v, out, m, at + j, width);
        gp_half_panel(tile, GP_NR, rows, m, patches, deep, v->half, 0, &none);
        gp_conv_store(v, out, m, at + j, width, tile, GP_NR, 1, add);
    }
}

/* The same for the last few positions, which are packed as lines. */
GP_FUNCTION void gp_conv_few(const gp_conv *v, int64_t out, int64_t m, const gp_real *rows,
                             const gp_real *lines, int64_t k, int add)
{
    gp_real tile[GP_MR * GP_FEW];
    for (int64_t j = 0; j < v->few; j++)
        gp_few_product(tile + j, GP_FEW, rows, m, lines + j * GP_LINE, k);
    gp_conv_store(v, out, m, v->places - v->few, v->few, tile, GP_FEW, 1, add);
}

/* Panels of positions at .. at + n - 1, all of one image: copied, or by vectors. */
GP_FUNCTION void gp_conv_pack_image(const gp_conv *v, const gp_real *x, int64_t p, int64_t k,
                                    int64_t at, int64_t n, gp_real *line, gp_real *patches)
{
    const gp_sliding *in = &v->in;
    if (in->plain && in->same) {
        const gp_real *from = x + at / in->outputs * in->x->stride[0] + at % in->outputs;
        for (int64_t i = 0; i < k; i++)
            gp_pack_row(patches, from + (p + i) * in->x->stride[1], n, i, k);
        return;
    }
#if defined(__GNUC__)
    gp_patch_panels(in, x - (const gp_real *)in->x->data, p, k, at, gp_ceil_div(n, GP_NR), patches,
                    line + GP_NC_LARGEST);
#else
    (void)line;
#endif
}

/* One panel with positions of several images: packed image by image, then joined. */
static GP_NOINLINE void gp_conv_pack_parts(const gp_conv *v, const gp_real *x, int64_t p, int64_t k,
                                           int64_t at, int64_t n, gp_real *line, gp_real *panel)
{
    gp_real *part = line + GP_NC_LARGEST + gp_patch_work(&v->in);
    for (int64_t c = 0, count; c < n; c += count) {
        count = gp_least(n - c, v->in.outputs - (at + c) % v->in.outputs);
        gp_conv_pack_image(v, x, p, k, at + c, count, line, c ? part : panel);
        for (int64_t i = 0; i < k && c; i++)
            for (int64_t j = 0; j < count; j++)
                panel[i * GP_NR + c + j] = part[i * GP_NR + j];
    }
}

/* Packs elements p .. p + k - 1 of the patches of positions at .. at + n - 1. Panels that span many
 * small images are gathered line by line. */
GP_FUNCTION void gp_conv_pack(const gp_conv *v, const gp_real *x, int64_t p, int64_t k, int64_t at,
                              int64_t n, gp_real *line, gp_real *patches)
{
    const int64_t size = v->in.outputs;
    const int fits = (v->in.plain && v->in.same) || gp_patch_fits(&v->in);
    for (int64_t j = 0, some; j < n; j += some, patches += some * k) {
        const int64_t left = size - (at + j) % size;
        const int whole = gp_conv_whole(v, at + j);
        some = gp_least(GP_NR, n - j);
        if (v->direct && whole)
            continue;
        if (fits && left >= some) {
            some = v->direct ? some : left >= n - j ? n - j : left / GP_NR * GP_NR;
            gp_conv_pack_image(v, x, p, k, at + j, some, line, patches);
            continue;
        }
        if (fits && 2 * size >= GP_NR) {
            gp_conv_pack_parts(v, x, p, k, at + j, some, line, patches);
            continue;
        }
        for (int64_t i = 0; i < k; i++) {
            gp_patch_line(line, &v->in, x, p + i, at + j, some);
            gp_pack_row(patches, line, some, i, k);
        }
    }
}

/* Copies the last few of n positions out of their panel into lines. */
GP_FUNCTION void gp_conv_take(const gp_conv *v, const gp_real *patches, int64_t n, int64_t k,
                              gp_real *lines)
{
    const int64_t first = n - v->few;
    const gp_real *column = patches + first / GP_NR * GP_NR * k + first % GP_NR;
    for (int64_t j = 0; j < v->few; j++)
        gp_copy(lines + j * GP_LINE, column + j, GP_NR, k);
}

GP_FUNCTION void gp_conv_unit(const gp_conv *v, int64_t unit, gp_real *work)
{
    const int64_t block = unit % v->across, i0 = unit / v->across % v->down * v->height;
    const int64_t at = gp_conv_begin(v, block, v->across);
    const int64_t n = gp_conv_begin(v, block + 1, v->across) - at;
    const int64_t few = at + n == v->places ? v->few : 0;
    const int64_t group = unit / v->across / v->down;
    const int64_t depth = v->half ? gp_half_depth(v->depth) : gp_even(v->depth, GP_KC);
    const int64_t m = gp_least(v->height, v->rows - i0);
    gp_real *rows = work, *lines = rows + GP_GEMM_ROWS, *patches = lines + GP_FEW * GP_LINE;
    gp_real *line = patches + gp_gemm_columns(v->places, v->depth);
    const gp_real *x =
        (const gp_real *)v->in.x->data + group * (v->in.x->dim[1] / v->groups) * v->in.x->stride[1];
    const gp_real *bias = v->b->data;
    for (int64_t p = 0; p < v->depth; p += depth) {
        const int64_t k = gp_least(depth, v->depth - p);
        gp_conv_pack(v, x, p, k, at, n, line, patches);
        if (GP_WAY(conv_half, v->half))
            gp_half_columns_of(patches, n, k, v->half);
        if (GP_WAY(conv_few, few))
            gp_conv_take(v, patches, n, k, lines);
        for (int64_t i = 0, from = 0, to; from < m; from = to) {
            const int64_t out = group * v->rows + i0 + from;
            to = gp_panel_begin(++i, m);
            gp_conv_pack_weights(rows, v, group, i0 + from, to - from, p, k);
            if (bias && p == 0)
                gp_conv_store(v, out, to - from, at, n, bias + out, 1, 0, 0);
            if (GP_WAY(conv_half, v->half)) {
                gp_half_rows_of(rows, to - from, k, v->half);
                gp_conv_units_panels(v, out, to - from, rows, patches, at, n, k, p > 0 || bias);
            } else {
                gp_conv_panels(v, x, out, to - from, rows, gp_conv_next(v, group, i0, to, m, p, k),
                               patches, at, n - few, p, k, p > 0 || bias);
            }
            if (GP_WAY(conv_few, few))
                gp_conv_few(v, out, to - from, rows, lines, k, p > 0 || bias);
            if (p + k == v->depth)
                gp_conv_finish(v, out, to - from, at, n);
        }
    }
}

/* Whether two convolutions with the same blocks can run interleaved, block by block. */
GP_FUNCTION int gp_conv_alike(const gp_conv *v, const gp_conv *w)
{
    return v->groups == w->groups && v->places == w->places && v->across == w->across &&
           v->down == w->down && v->height == w->height && !gp_conv_is_wino(v) &&
           !gp_conv_is_wino(w);
}

/* One convolution, or several with the same blocks, block by block. */
static GP_NOINLINE void gp_conv_units(const gp_run *run, const gp_conv *v, int count, gp_real *work)
{
    const int64_t units = v->groups * v->down * v->across;
    int64_t own = 0;
    (void)run; /* unused without threads */
    for (int i = 0; i < count; i++)
        own = gp_conv_unit_work(&v[i]) > own ? gp_conv_unit_work(&v[i]) : own;
    if (units == 1) { /* starting threads takes as long as a small convolution */
        for (int i = 0; i < count; i++)
            gp_conv_unit(&v[i], 0, work);
        return;
    }
    GP_PARALLEL(run, v->places * v->rows * v->groups * v->depth > 32768)
    for (int64_t unit = 0; unit < units; unit++)
        for (int i = 0; i < count; i++)
            gp_conv_unit(&v[i], unit, work + gp_thread() * own);
}

GP_FUNCTION void gp_conv_run(const gp_run *run, const gp_conv *v, int count, gp_real *work)
{
    if (GP_WAY(conv_winograd, gp_conv_is_wino(v))) {
        const gp_winograd w = gp_conv_as_wino(v);
        gp_wino_conv(&w, work);
    } else {
        gp_conv_units(run, v, count, work);
    }
}

GP_FUNCTION void gp_conv_ways(const gp_conv *v, gp_ways *ways)
{
    const int wino = gp_conv_is_wino(v);
    gp_way(ways, "conv_winograd", wino);
    if (wino) {
        const gp_winograd w = gp_conv_as_wino(v);
        gp_few_ways(ways, "wino_few", w.tiles);
        return;
    }
    gp_way(ways, "conv_half", v->half);
    if (v->half)
        gp_way(ways, "conv_few", 0);
    else
        gp_few_ways(ways, "conv_few", v->places);
    gp_way(ways, "conv_weights_even", gp_conv_step(v) != 0);
    gp_way(ways, "patch_splits", gp_patch_splits(&v->in));
}

/* As a depthwise convolution: each output channel reads one input channel, `rows` of them the
 * same. */
GP_FUNCTION gp_depthwise gp_sliding_each(const gp_sliding *in, const gp_tensor *y, int64_t rows)
{
    gp_depthwise each = {.x = in->x, .y = y, .rows = rows};
    for (int i = 0; i < 2; i++) {
        each.kernel[i] = in->kernel[i];
        each.stride[i] = in->stride[i];
        each.pad[i] = in->pad[i];
        each.dilation[i] = in->dilation[i];
    }
    return each;
}

GP_FUNCTION gp_depthwise gp_conv_each(const gp_conv *v)
{
    gp_depthwise each = gp_sliding_each(&v->in, v->y, v->rows);
    each.call = v->call;
    each.b = v->b;
    each.w = v->w.at;
    return each;
}

GP_FUNCTION gp_conv gp_conv2d_plan(const gp_call *c)
{
    const gp_conv2d_attr *a = c->attr;
    const gp_tensor *w = &c->in[1], *y = &c->out[0];
    const gp_sliding in = gp_sliding_of(&c->in[0], y, w->dim + 2, a->stride, a->pad, a->dilation);
    gp_conv v = gp_conv_plan(c, in, a->groups);
    v.w = (gp_weights){w->data, v.rows * v.depth, v.depth, w->dim[2] * w->dim[3], {w->dim[3], 1}};
    return v;
}

/* One input channel for each group. */
GP_FUNCTION int gp_conv_is_depthwise(const gp_call *c)
{
    return c->in[1].dim[1] == 1;
}

GP_FUNCTION int gp_conv2d_is_points(const gp_call *c)
{
    const gp_conv2d_attr *a = c->attr;
    return gp_is_points(c, a->stride, a->groups);
}

GP_WORKSPACE(conv2d)
{
    if (GP_WAY(by_samples, gp_is_half(c)))
        return gp_conv2d_is_points(c)
                   ? (size_t)(gp_points_work(c) * c->run->threads) * sizeof(gp_real)
                   : gp_samples_space(c, 1, gp_conv2d_workspace);
    const gp_conv v = gp_conv2d_plan(c);
    return gp_conv_is_depthwise(c) ? 0
                                   : (size_t)(gp_conv_work(&v) * c->run->threads) * sizeof(gp_real);
}

GP_WAYS(conv2d)
{
    gp_way(ways, "by_samples", gp_is_half(c));
    if (gp_is_half(c)) {
        if (!gp_conv2d_is_points(c))
            gp_samples_ways(c, 1, ways, gp_conv2d_ways);
        return;
    }
    const gp_conv v = gp_conv2d_plan(c);
    gp_way(ways, "conv_depthwise", gp_conv_is_depthwise(c));
    const gp_depthwise each = gp_conv_each(&v);
    gp_depthwise_ways(gp_conv_is_depthwise(c) ? &each : NULL, ways);
    if (!gp_conv_is_depthwise(c))
        gp_conv_ways(&v, ways);
}

GP_KERNEL(conv2d)
{
    if (GP_WAY(by_samples, gp_is_half(c)))
        return gp_conv2d_is_points(c) ? gp_points(c, c->in[0].dim[1], 1)
                                      : gp_by_samples(c, 1, gp_conv2d);
    const gp_conv v = gp_conv2d_plan(c);
    if (GP_WAY(conv_depthwise, gp_conv_is_depthwise(c))) {
        const gp_depthwise each = gp_conv_each(&v);
        gp_depthwise_run(c->run, &each);
    } else {
        gp_conv_run(c->run, &v, 1, c->work);
    }
    return GP_OK;
}

#endif
