/* Convolution with a 3 x 3 window and stride 1, in 16 products of channels for 4 outputs instead of
 * 36: F(2x2, 3x3) of Lavin and Gray, Fast Algorithms for Convolutional Neural Networks (2016).
 *
 * Outputs are computed in tiles of 2 x 2. The input of a tile, 4 x 4 elements of a channel, is
 * transformed to 16 values; so are the 9 weights of a pair of channels; the products of both are
 * summed over the channels, as 16 matrix products; and the 16 sums are transformed to the 4
 * outputs. All of that happens for a block of tiles and a panel of output channels at a time, so
 * workspace is small.
 *
 * The sums of an output have one order, however the work is split. */
#ifndef GP_WINOGRAD_H
#define GP_WINOGRAD_H

#include "epilogue.h"
#include "gemm.h"

/* Weight (o, c, k), with k a tap of the window, is at[o * row + c * channel + k * place]; place is
 * 1 or, where the window is flipped, -1. */
typedef struct {
    const gp_call *call;
    const gp_tensor *x, *b, *y;
    int64_t pad[2]; /* top, left */
    const gp_real *at;
    int64_t row, channel, place;
    int64_t inputs, outputs; /* channels */
    int64_t high, wide;      /* tiles of an image */
    int64_t tiles, block;    /* of all images; the most of a block */
    int64_t few;             /* the last of them, multiplied along the channels */
    int64_t down, across;    /* tasks: by output channels, by tiles */
} gp_winograd;

enum {
    GP_WINO = 16,                          /* transformed values of a tile */
    GP_WINO_RUN = GP_BLOCK(64, 5),         /* tiles of a row that are transformed at once */
    GP_WINO_BLOCK = GP_BLOCK(32768, 2048), /* the most of a block: tiles times input channels */
    GP_WINO_TILES = GP_BLOCK(256, 64),     /* the most tiles of a block */
    GP_WINO_STEP = GP_BLOCK(16, 4),        /* values computed at a time; the excess is not read */
    GP_WINO_GAP = 16 /* padding of rows: avoids cache set conflicts, room for one step */
};
/* For loops of constant length: values are never computed one by one. */
#define GP_WINO_EACH(i, n)                                      \
    for (int64_t step_ = 0; step_ < (n); step_ += GP_WINO_STEP) \
        GP_IVDEP                                                \
    for (int64_t i = step_; i < step_ + GP_WINO_STEP; i++)

/* The number of tiles of a block. */
GP_FUNCTION int64_t gp_wino_block(int64_t inputs, int64_t tiles)
{
    const int64_t most = gp_least(GP_WINO_BLOCK / inputs, GP_WINO_TILES);
    return gp_least(most < GP_NR_LARGEST ? GP_NR_LARGEST : most / GP_NR_LARGEST * GP_NR_LARGEST,
                    gp_round_up(tiles, GP_NR_LARGEST));
}

/* Whether Winograd is faster, in moderate workspace: by the shape alone, since the sums differ.
 * Counted in multiplications for each pair of channels; transforming weights and tiles costs about
 * so many. */
GP_FUNCTION int gp_wino_pays(int64_t images, int64_t inputs, int64_t outputs, int64_t height,
                             int64_t width)
{
    const int64_t tiles = images * ((height + 1) / 2) * ((width + 1) / 2);
    const int64_t blocks = gp_ceil_div(tiles, gp_wino_block(inputs, tiles));
    const int64_t plain = 9 * images * height * width;
    const int64_t transform = GP_WINO * gp_round_up(tiles, 16) + 320 * blocks +
                              200 * tiles / outputs + 160 * tiles / inputs;
    return inputs >= 16 && outputs >= 16 && inputs <= GP_WINO_BLOCK / (2 * GP_NR_LARGEST) &&
           6 * transform < 5 * plain;
}

/* Workspace of a thread: the values of a block and of its sums, of a panel of weights, of the last
 * few tiles, and the weights of an output channel. */
GP_FUNCTION int64_t gp_wino_row(const gp_winograd *v)
{
    return v->block + GP_WINO_GAP;
}

/* The stride between the 16 matrices: avoids cache set conflicts. */
GP_FUNCTION int64_t gp_wino_apart(const gp_winograd *v)
{
    return v->inputs * gp_wino_row(v) + GP_WINO_GAP;
}

GP_FUNCTION int64_t gp_wino_work(const gp_winograd *v)
{
    const int64_t panels = gp_ceil_div(v->inputs, GP_KC) * GP_GEMM_ROWS;
    return GP_WINO *
               (gp_wino_apart(v) + GP_MR_LARGEST * gp_wino_row(v) + panels + GP_FEW * GP_LINE) +
           gp_round_up(9 * gp_least(v->inputs, GP_KC) + GP_WINO_STEP, 16);
}

/* ---- Tiles ----------------------------------------------------------------------------------- */

/* A run of tiles in one row of an image. */
typedef struct {
    int64_t image, row, column, count;
} gp_wino_run;

/* The run that starts at tile `at` and ends before `end`. */
GP_FUNCTION gp_wino_run gp_wino_run_at(const gp_winograd *v, int64_t at, int64_t end)
{
    const int64_t column = at % v->wide, most = gp_least(v->wide - column, GP_WINO_RUN);
    return (gp_wino_run){at / v->wide / v->high, at / v->wide % v->high, column,
                         gp_least(most, end - at)};
}

/* The inputs of a channel for a few runs of tiles below each other: even columns, as tiles count
 * them, and odd ones apart. A tile reads four rows, and shares two with the one below it. */
enum { GP_WINO_DEEP = GP_BLOCK(4, 2), GP_WINO_ROWS = 2 * GP_WINO_DEEP + 2 };
typedef struct {
    gp_real even[GP_WINO_ROWS][GP_WINO_RUN + 2 * GP_WINO_STEP];
    gp_real odd[GP_WINO_ROWS][GP_WINO_RUN + 2 * GP_WINO_STEP];
} gp_wino_rows;

GP_FUNCTION void gp_wino_pairs(gp_real *restrict even, gp_real *restrict odd,
                               const gp_real *restrict at, int64_t n)
{
    int64_t j = 0;
#define GP_WINO_APART(step)                   \
    for (; j + step <= n; j += step) {        \
        GP_IVDEP                              \
        for (int k = 0; k < step; k++) {      \
            even[j + k] = at[2 * (j + k)];    \
            odd[j + k] = at[2 * (j + k) + 1]; \
        }                                     \
    }
    GP_WINO_APART(16)
    GP_WINO_APART(4)
    GP_WINO_APART(1)
#undef GP_WINO_APART
}

/* Pair j of columns, from column `first`: zeros where there are none. */
GP_FUNCTION void gp_wino_pair(const gp_winograd *v, const gp_real *at, int64_t first, int64_t j,
                              gp_real *even, gp_real *odd)
{
    const int64_t column = first + 2 * j, step = v->x->stride[3], width = v->x->dim[3];
    even[j] = column >= 0 && column < width ? at[2 * j * step] : 0;
    odd[j] = column >= -1 && column + 1 < width ? at[(2 * j + 1) * step] : 0;
}

/* n pairs of columns of a row, from column `first` of the image: zeros where it has none. */
GP_FUNCTION void gp_wino_split(const gp_winograd *v, const gp_real *plane, int64_t row,
                               int64_t first, int64_t n, gp_real *even, gp_real *odd)
{
    const int64_t step = v->x->stride[3], width = v->x->dim[3];
    int64_t from = first < 0 ? gp_least((1 - first) / 2, n) : 0; /* pairs that exist */
    int64_t to = width > first ? gp_least((width - first) / 2, n) : 0;
    if (row < 0 || row >= v->x->dim[2]) {
        memset(even, 0, (size_t)n * sizeof *even);
        memset(odd, 0, (size_t)n * sizeof *odd);
        return;
    }
    const gp_real *at = plane + row * v->x->stride[2] + first * step;
    if (step != 1 || to < from)
        from = to = n;
    if (from < to)
        gp_wino_pairs(even + from, odd + from, at + 2 * from, to - from);
    for (int64_t j = 0; j < from; j++)
        gp_wino_pair(v, at, first, j, even, odd);
    for (int64_t j = to; j < n; j++)
        gp_wino_pair(v, at, first, j, even, odd);
}

/* Transforms four values of a row or column. */
#define GP_WINO_SEE(a, b, c, d, to) \
    const gp_real to##0 = a - c, to##1 = b + c, to##2 = c - b, to##3 = b - d

/* Transforms the inputs of n tiles from row i of the rows: 16 values, `apart` from each other. */
GP_FUNCTION void gp_wino_see(const gp_wino_rows *rows, int64_t i, int64_t n, gp_real *restrict to,
                             int64_t apart)
{
    GP_WINO_EACH(k, n)
    {
        gp_real *at = to + k;
#define GP_WINO_COLUMN(half, k, to)                                           \
    GP_WINO_SEE(rows->half[i][k], rows->half[i + 1][k], rows->half[i + 2][k], \
                rows->half[i + 3][k], to)
        GP_WINO_COLUMN(even, k, a);
        GP_WINO_COLUMN(odd, k, b);
        GP_WINO_COLUMN(even, k + 1, c);
        GP_WINO_COLUMN(odd, k + 1, d);
#undef GP_WINO_COLUMN
#define GP_WINO_ROW(r)                          \
    {                                           \
        GP_WINO_SEE(a##r, b##r, c##r, d##r, u); \
        at[(4 * r) * apart] = u0;               \
        at[(4 * r + 1) * apart] = u1;           \
        at[(4 * r + 2) * apart] = u2;           \
        at[(4 * r + 3) * apart] = u3;           \
    }
        GP_WINO_ROW(0)
        GP_WINO_ROW(1)
        GP_WINO_ROW(2)
        GP_WINO_ROW(3)
#undef GP_WINO_ROW
    }
}

/* How many runs, the first and those below it, end before tile `end`. */
GP_FUNCTION int64_t gp_wino_deep(const gp_winograd *v, gp_wino_run r, int64_t left)
{
    const int64_t whole = r.count == v->wide ? gp_least(left / v->wide, v->high - r.row) : 1;
    return whole < 1 ? 1 : gp_least(whole, GP_WINO_DEEP);
}

/* The transformed inputs of n tiles of channel c from `at`. All rows are read before any is
 * transformed: loads that overlap recent stores of another width stall on store forwarding. */
GP_FUNCTION void gp_wino_channel(const gp_winograd *v, int64_t c, int64_t at, int64_t n,
                                 gp_wino_rows *rows, gp_real *seen)
{
    const gp_tensor *x = v->x;
    for (int64_t t = 0, deep; t < n;) {
        const gp_wino_run r = gp_wino_run_at(v, at + t, at + n);
        const gp_real *plane = (const gp_real *)x->data + r.image * x->stride[0] + c * x->stride[1];
        deep = gp_wino_deep(v, r, n - t);
        for (int64_t i = 0; i < 2 * deep + 2; i++)
            gp_wino_split(v, plane, 2 * r.row - v->pad[0] + i, 2 * r.column - v->pad[1],
                          r.count + 1, rows->even[i], rows->odd[i]);
        for (int64_t i = 0; i < deep; i++, t += r.count)
            gp_wino_see(rows, 2 * i, r.count, seen + t, gp_wino_apart(v));
    }
}

/* The transformed inputs of n tiles from `at`: [16][inputs][row]. */
GP_FUNCTION void gp_wino_tiles(const gp_winograd *v, int64_t at, int64_t n, gp_real *seen)
{
    const int64_t row = gp_wino_row(v), apart = gp_wino_apart(v);
    gp_wino_rows rows;
    memset(&rows, 0, sizeof rows);
    for (int64_t c = 0; c < v->inputs; c++, seen += row) {
        gp_wino_channel(v, c, at, n, &rows, seen);
        for (int64_t t = n; t < gp_round_up(n, GP_NR); t++) /* panels are padded */
            for (int f = 0; f < GP_WINO; f++)
                seen[f * apart + t] = 0;
    }
}

/* ---- Weights --------------------------------------------------------------------------------- */

/* 1 0 0, the halves of 1 1 1 and of 1 -1 1, 0 0 1: three weights become four. */
#define GP_WINO_FOUR(a, b, c, to)                                                           \
    const gp_real to##0 = a, to##1 = (gp_real)0.5 * ((a + c) + b), /* of a row or column */ \
        to##2 = (gp_real)0.5 * ((a + c) - b), to##3 = c

/* k input channels from c, of output channel o: row i of 16 panels. */
GP_FUNCTION void gp_wino_weights(const gp_winograd *v, int64_t o, int64_t c, int64_t k,
                                 gp_real *restrict w, gp_real *restrict panel)
{
    const gp_real *from = v->at + o * v->row + c * v->channel + (v->place < 0 ? -8 : 0);
    const gp_real *g = v->place < 0 ? w + 8 * k : w;
    const int64_t s = v->place < 0 ? -k : k;
    gp_pack_transposed(w, k, from, k, v->channel, 9);
    GP_WINO_EACH(j, k)
    {
        GP_WINO_FOUR(g[j], g[3 * s + j], g[6 * s + j], a);
        GP_WINO_FOUR(g[s + j], g[4 * s + j], g[7 * s + j], b);
        GP_WINO_FOUR(g[2 * s + j], g[5 * s + j], g[8 * s + j], d);
#define GP_WINO_ROW(r)                              \
    {                                               \
        GP_WINO_FOUR(a##r, b##r, d##r, u);          \
        panel[(4 * r) * GP_GEMM_ROWS + j] = u0;     \
        panel[(4 * r + 1) * GP_GEMM_ROWS + j] = u1; \
        panel[(4 * r + 2) * GP_GEMM_ROWS + j] = u2; \
        panel[(4 * r + 3) * GP_GEMM_ROWS + j] = u3; \
    }
        GP_WINO_ROW(0)
        GP_WINO_ROW(1)
        GP_WINO_ROW(2)
        GP_WINO_ROW(3)
#undef GP_WINO_ROW
    }
}

/* ---- Outputs --------------------------------------------------------------------------------- */

/* Transforms four sums of a row or column to two outputs. */
#define GP_WINO_TWO(a, b, c, d, to) const gp_real to##0 = (a + b) + c, to##1 = (b - c) - d

/* The outputs of n tiles from their sums, which are `apart`: two rows. */
GP_FUNCTION void gp_wino_make(const gp_real *restrict m, int64_t apart, int64_t n, gp_real bias,
                              gp_real *restrict top, gp_real *restrict bottom)
{
    GP_WINO_EACH(j, n)
    {
        const gp_real *at = m + j;
#define GP_WINO_SUM(k, to) \
    GP_WINO_TWO(at[(k)*apart], at[(k + 4) * apart], at[(k + 8) * apart], at[(k + 12) * apart], to)
        GP_WINO_SUM(0, a);
        GP_WINO_SUM(1, b);
        GP_WINO_SUM(2, c);
        GP_WINO_SUM(3, d);
#undef GP_WINO_SUM
        GP_WINO_TWO(a0, b0, c0, d0, t);
        GP_WINO_TWO(a1, b1, c1, d1, u);
        top[2 * j] = t0 + bias;
        top[2 * j + 1] = t1 + bias;
        bottom[2 * j] = u0 + bias;
        bottom[2 * j + 1] = u1 + bias;
    }
}

/* The outputs of a channel for a run of tiles. */
GP_FUNCTION void gp_wino_store(const gp_winograd *v, int64_t o, gp_wino_run r, const gp_real *m,
                               int64_t apart)
{
    const gp_tensor *y = v->y;
    const gp_real bias = v->b->data ? ((const gp_real *)v->b->data)[o] : 0;
    const int64_t column = 2 * r.column, count = gp_least(2 * r.count, y->dim[3] - column);
    gp_real line[2][2 * (GP_WINO_RUN + GP_WINO_STEP)];
    gp_wino_make(m, apart, r.count, bias, line[0], line[1]);
    for (int i = 0; i < 2 && 2 * r.row + i < y->dim[2]; i++) {
        const int64_t step = y->stride[3], row = 2 * r.row + i;
        gp_real *to = (gp_real *)y->data + r.image * y->stride[0] + o * y->stride[1] +
                      row * y->stride[2] + column * step;
        if (step == 1)
            memcpy(to, line[i], (size_t)count * sizeof *to);
        else
            for (int64_t k = 0; k < count; k++)
                to[k * step] = line[i][k];
        if (v->call->epilogue)
            gp_epilogue_run(v->call, to, step,
                            ((r.image * y->dim[1] + o) * y->dim[2] + row) * y->dim[3] + column,
                            count);
    }
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

/* Copies the last few of n tiles out of their rows into lines. */
GP_FUNCTION void gp_wino_take(const gp_winograd *v, const gp_real *seen, int64_t n, gp_real *lines)
{
    for (int f = 0; f < GP_WINO; f++, seen += gp_wino_apart(v), lines += GP_FEW * GP_LINE)
        for (int64_t j = 0; j < v->few; j++)
            gp_copy(lines + j * GP_LINE, seen + n - v->few + j, gp_wino_row(v), v->inputs);
}

/* The sums of m output channels over those. */
GP_FUNCTION void gp_wino_few(const gp_winograd *v, int64_t m, const gp_real *panel,
                             const gp_real *lines, gp_real *sums)
{
    const int64_t row = gp_wino_row(v);
    for (int f = 0; f < GP_WINO; f++, lines += GP_FEW * GP_LINE, panel += GP_GEMM_ROWS)
        for (int64_t j = 0; j < v->few; j++)
            gp_few_product(sums + f * GP_MR_LARGEST * row + j, row, panel, m, lines + j * GP_LINE,
                           v->inputs);
}

/* The sums of m output channels over n tiles: [16][panel][row]. `next`: the weights that are
 * transformed next, as many, to prefetch; or NULL. */
GP_FUNCTION void gp_wino_sums(const gp_winograd *v, int64_t m, int64_t n, const gp_real *panel,
                              const gp_real *seen, gp_real *sums, const gp_real *next)
{
    enum { LINE = 64 / (int)sizeof(gp_real) };
    const int64_t row = gp_wino_row(v);
    const gp_real *end = next ? next + 9 * m * v->inputs : NULL;
    for (int f = 0; f < GP_WINO; f++)
        for (int64_t c = 0; c < v->inputs; c += GP_KC)
            for (int64_t j = 0; j < n; j += GP_NR) {
                const int64_t k = gp_least(GP_KC, v->inputs - c);
                gp_ahead ahead = {panel, 0, 0};
                if (next < end) {
                    ahead = (gp_ahead){next, LINE, GP_AHEAD * LINE};
                    next += k * LINE;
                }
                gp_panel_product(sums + f * GP_MR_LARGEST * row + j, row,
                                 panel + (c / GP_KC * GP_WINO + f) * GP_GEMM_ROWS, m,
                                 seen + f * gp_wino_apart(v) + c * row + j, row,
                                 gp_least(GP_NR, n - j), k, c > 0, &ahead);
            }
}

/* The first tile of block i. */
GP_FUNCTION int64_t gp_wino_begin(const gp_winograd *v, int64_t i)
{
    return gp_least(i * gp_ceil_div(v->tiles, GP_NR) / v->across * GP_NR, v->tiles);
}

GP_FUNCTION void gp_wino_unit(const gp_winograd *v, int64_t unit, gp_real *work)
{
    const int64_t row = gp_wino_row(v), part = unit / v->across;
    const int64_t at = gp_wino_begin(v, unit % v->across);
    const int64_t n = gp_wino_begin(v, unit % v->across + 1) - at;
    const int64_t first = part * v->outputs / v->down;
    const int64_t m = (part + 1) * v->outputs / v->down - first;
    gp_real *seen = work, *sums = seen + GP_WINO * gp_wino_apart(v);
    gp_real *panel = sums + GP_WINO * GP_MR_LARGEST * row;
    gp_real *lines = panel + GP_WINO * gp_ceil_div(v->inputs, GP_KC) * GP_GEMM_ROWS;
    gp_real *weights = lines + GP_WINO * GP_FEW * GP_LINE;
    const int in_order = v->place == 1 && v->channel == 9 && v->row == 9 * v->inputs;
    const int64_t few = at + n == v->tiles ? v->few : 0;
    gp_wino_tiles(v, at, n, seen);
    if (GP_WAY(wino_few, few))
        gp_wino_take(v, seen, n, lines);
    for (int64_t i = 0, from = 0, to; from < m; from = to) {
        to = gp_panel_begin(++i, m);
        for (int64_t c = 0; c < v->inputs; c += GP_KC)
            for (int64_t o = from; o < to; o++)
                gp_wino_weights(v, first + o, c, gp_least(GP_KC, v->inputs - c), weights,
                                panel + c / GP_KC * GP_WINO * GP_GEMM_ROWS + (o - from) * GP_LINE);
        if (GP_WAY(wino_few, few))
            gp_wino_few(v, to - from, panel, lines, sums + n - few);
        gp_wino_sums(v, to - from, n - few, panel, seen, sums,
                     in_order ? v->at + (first + (to < m ? to : 0)) * v->row : NULL);
        for (int64_t o = from; o < to; o++)
            for (int64_t t = 0; t < n;) {
                const gp_wino_run r = gp_wino_run_at(v, at + t, at + n);
                gp_wino_store(v, first + o, r, sums + (o - from) * row + t, GP_MR_LARGEST * row);
                t += r.count;
            }
    }
}

/* Fills in the blocking: blocks of tiles, and where these are too few, of output channels too. The
 * blocking changes no sum. */
GP_FUNCTION void gp_wino_cut(gp_winograd *v, int64_t threads)
{
    v->high = (v->y->dim[2] + 1) / 2;
    v->wide = (v->y->dim[3] + 1) / 2;
    v->tiles = v->y->dim[0] * v->high * v->wide;
    v->block = gp_wino_block(v->inputs, v->tiles);
    v->few = v->inputs <= GP_KC && v->tiles % GP_LANES <= GP_FEW ? v->tiles % GP_LANES : 0;
    v->across = gp_ceil_div(v->tiles, v->block);
    v->down = 1;
    if (v->across % threads == 0 || v->across >= 8 * threads)
        return;
    if (v->tiles / gp_round_up(v->across, threads) >= 3 * GP_NR)
        v->across = gp_round_up(v->across, threads);
    else
        v->down = gp_least(threads, gp_ceil_div(v->outputs, GP_MR));
}

GP_FUNCTION void gp_wino_conv(const gp_winograd *v, gp_real *work)
{
    const int64_t own = gp_wino_work(v);
    GP_PARALLEL(v->call->run, v->down * v->across > 1)
    for (int64_t unit = 0; unit < v->down * v->across; unit++)
        gp_wino_unit(v, unit, work + gp_thread() * own);
}

#endif
