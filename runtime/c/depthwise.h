/* Depthwise convolution: each output channel reads one input channel; and its gradient with respect
 * to the input.
 *
 * There is too little to multiply for a matrix product. Instead a band of rows of one channel is
 * copied with its padding, columns a stride apart made contiguous (a phase); then all that a row of
 * outputs needs is contiguous, one run for each tap of the window. */
#ifndef GP_DEPTHWISE_H
#define GP_DEPTHWISE_H

#include "epilogue.h"
#include "vector.h"
#include "window.h"

enum {
    GP_BAND = GP_BLOCK(8192, 160), /* elements of a band */
    GP_TAPS = GP_BLOCK(64, 12)     /* the most taps of a window */
};

typedef struct {
    const gp_call *call;
    const gp_tensor *x, *y, *b;
    const gp_real *w; /* of output channel o: from w + o * KH * KW */
    int64_t kernel[2], stride[2], pad[2], dilation[2];
    int64_t rows; /* output channels that read one input channel */
    int flipped;  /* the last weight belongs to the first tap */
} gp_depthwise;

/* Layout of a band: input row r, column q * stride + p is at r * pitch + p * phase + q, counted
 * from the first that the window reads. */
typedef struct {
    int64_t phase, pitch, phases;
    int64_t outputs; /* output rows whose input rows fit; 0: not even one */
} gp_band;

GP_FUNCTION gp_band gp_band_of(const gp_depthwise *v, int64_t width)
{
    const int64_t reach = (v->kernel[0] - 1) * v->dilation[0] + 1, step = v->stride[1];
    gp_band b = {.phases = step};
    b.phase = width + (v->kernel[1] - 1) * v->dilation[1] / step;
    b.pitch = b.phase * step;
    if (GP_BAND / b.pitch >= reach && v->kernel[0] * v->kernel[1] <= GP_TAPS)
        b.outputs = (GP_BAND / b.pitch - reach) / v->stride[0] + 1;
    return b;
}

/* One row of a band: columns from `left` of the row `from`, which is NULL outside of the image. */
GP_FUNCTION void gp_band_row(const gp_band *b, gp_real *restrict to, const gp_real *from,
                             int64_t stride, int64_t width, int64_t left)
{
    int64_t done = 0; /* of both phases, where there are two */
    gp_range in[2] = {{0, 0}, {0, 0}};
    if (!from) {
        memset(to, 0, (size_t)b->pitch * sizeof *to);
        return;
    }
    for (int64_t p = 0; p < b->phases; p++, to += b->phase) {
        const gp_range here = gp_inside(0, b->phase, b->phases, left + p, width);
        const gp_real *at = from + (left + p) * stride;
        if (p == 0 && b->phases == 2 && stride == 1) {
            in[1] = gp_inside(0, b->phase, 2, left + 1, width);
            in[0].from = here.from > in[1].from ? here.from : in[1].from;
            in[0].to = here.to < in[1].to ? here.to : in[1].to;
            done = in[0].to - in[0].from;
            if (done > 0)
                gp_unzip(to + in[0].from, to + b->phase + in[0].from, at + 2 * in[0].from, done);
        }
        for (int64_t i = 0; i < here.from; i++)
            to[i] = 0;
        if (done > 0) {
            for (int64_t i = here.from; i < in[0].from; i++)
                to[i] = at[2 * i];
            for (int64_t i = in[0].to; i < here.to; i++)
                to[i] = at[2 * i];
        } else if (b->phases * stride == 1) {
            for (int64_t i = here.from; i < here.to; i++)
                to[i] = at[i];
        } else {
            for (int64_t i = here.from; i < here.to; i++)
                to[i] = at[i * b->phases * stride];
        }
        for (int64_t i = here.to; i < b->phase; i++)
            to[i] = 0;
    }
}

/* The inputs of outputs from row `row` and column `at`: as many of `left` rows as a band holds. */
static GP_NOINLINE void gp_band_fill(const gp_depthwise *v, const gp_band *b, gp_real *to,
                                     const gp_real *plane, int64_t row, int64_t left, int64_t at)
{
    const gp_tensor *x = v->x;
    const int64_t top = row * v->stride[0] - v->pad[0];
    const int64_t outputs = left < b->outputs ? left : b->outputs;
    const int64_t end =
        top + (outputs - 1) * v->stride[0] + (v->kernel[0] - 1) * v->dilation[0] + 1;
    for (int64_t i = top; i < end; i++, to += b->pitch)
        gp_band_row(b, to, i < 0 || i >= x->dim[2] ? NULL : plane + i * x->stride[2], x->stride[3],
                    x->dim[3], at * v->stride[1] - v->pad[1]);
}

/* ---- Rows of outputs
 * -------------------------------------------------------------------------- */

typedef struct {
    int64_t at[GP_TAPS];    /* offset in the band from the start of the row */
    int32_t place[GP_TAPS]; /* index in the window */
    gp_real w[GP_TAPS];
    int count;
} gp_taps;

/* to[i] = bias + the sum of w * from[at + i], two vectors at a time. The last vector may overlap
 * the one before. */
#define GP_TAPS_ROW(name, type)                                                          \
    GP_FUNCTION void name(gp_real *restrict to, int64_t n, const gp_real *restrict from, \
                          const gp_taps *t, gp_real bias)                                \
    {                                                                                    \
        const int64_t lanes = sizeof(type) / sizeof(gp_real), last = n - lanes;          \
        for (int64_t i = 0; i < n; i += 2 * lanes) {                                     \
            const int64_t at = i < last ? i : last;                                      \
            const int64_t then = at + lanes < last ? at + lanes : last;                  \
            type a = (type){0} + bias, b = a;                                            \
            for (int k = 0; k < t->count; k++) {                                         \
                const gp_real *next = from + t->at[k];                                   \
                a += t->w[k] * *(const type *)(next + at);                               \
                b += t->w[k] * *(const type *)(next + then);                             \
            }                                                                            \
            *(type *)(to + at) = a;                                                      \
            *(type *)(to + then) = b;                                                    \
        }                                                                                \
    }
#if defined(__GNUC__)
GP_TAPS_ROW(gp_taps_lanes, gp_lanes)
GP_TAPS_ROW(gp_taps_four, gp_four)
#endif
#undef GP_TAPS_ROW

GP_FUNCTION void gp_taps_row(gp_real *restrict to, int64_t n, const gp_real *restrict from,
                             const gp_taps *t, gp_real bias)
{
    int64_t i = 0;
#if defined(__GNUC__)
    if (n >= GP_LANES)
        gp_taps_lanes(to, i = n, from, t, bias);
    else if (n >= 4)
        gp_taps_four(to, i = n, from, t, bias);
#endif
    for (; i < n; i++) {
        gp_real sum = bias;
        for (int k = 0; k < t->count; k++)
            sum += t->w[k] * from[t->at[k] + i];
        to[i] = sum;
    }
}

GP_FUNCTION gp_real gp_depthwise_weight(const gp_depthwise *v, int64_t out, int64_t k)
{
    const int64_t window = v->kernel[0] * v->kernel[1];
    return v->w[out * window + (v->flipped ? window - 1 - k : k)];
}

GP_FUNCTION void gp_taps_weigh(const gp_depthwise *v, int64_t out, gp_taps *t)
{
    for (int k = 0; k < t->count; k++)
        t->w[k] = gp_depthwise_weight(v, out, t->place[k]);
}

/* The offsets of the taps in a band. */
GP_FUNCTION void gp_depthwise_taps(const gp_depthwise *v, const gp_band *b, gp_taps *t)
{
    t->count = (int)(v->kernel[0] * v->kernel[1]);
    for (int k = 0; k < t->count; k++) {
        const int64_t row = k / v->kernel[1] * v->dilation[0];
        const int64_t column = k % v->kernel[1] * v->dilation[1];
        t->place[k] = k;
        t->at[k] = row * b->pitch + column % b->phases * b->phase + column / b->phases;
    }
}

/* One output, where its inputs do not fit a band. */
GP_FUNCTION gp_real gp_depthwise_one(const gp_depthwise *v, const gp_real *plane, int64_t out,
                                     int64_t row, int64_t column, gp_real sum)
{
    for (int64_t k = 0; k < v->kernel[0] * v->kernel[1]; k++) {
        const int64_t i = row * v->stride[0] - v->pad[0] + k / v->kernel[1] * v->dilation[0];
        const int64_t j = column * v->stride[1] - v->pad[1] + k % v->kernel[1] * v->dilation[1];
        if (i >= 0 && i < v->x->dim[2] && j >= 0 && j < v->x->dim[3])
            sum +=
                gp_depthwise_weight(v, out, k) * plane[i * v->x->stride[2] + j * v->x->stride[3]];
    }
    return sum;
}

enum { GP_DEPTHWISE_WIDTH = GP_BLOCK(512, 24) }; /* outputs of a row computed at once */

/* Whether the inputs of any outputs computed at once fit a band. */
GP_FUNCTION int gp_depthwise_fits(const gp_depthwise *v)
{
    const int64_t width = v->y->dim[3];
    return gp_band_of(v, width < GP_DEPTHWISE_WIDTH ? width : GP_DEPTHWISE_WIDTH).outputs > 0;
}

/* A narrow last block may fit where others do not. NULL: a call that is not depthwise. */
GP_FUNCTION void gp_depthwise_ways(const gp_depthwise *v, gp_ways *ways)
{
    const int both = v && !gp_depthwise_fits(v);
    gp_way_can(ways, "depthwise_fits", both ? GP_TAKEN | GP_PASSED : v ? GP_TAKEN : 0);
}

/* One output channel of one image, columns at .. at + n - 1. */
GP_FUNCTION void gp_depthwise_columns(const gp_depthwise *v, const gp_real *plane, int64_t out,
                                      gp_real *to, int64_t at, int64_t n)
{
    const gp_tensor *y = v->y;
    const gp_band b = gp_band_of(v, n);
    const gp_real bias = v->b->data ? ((const gp_real *)v->b->data)[out] : 0;
    gp_real band[GP_BAND], line[GP_DEPTHWISE_WIDTH];
    gp_taps t = {.count = 0};
    if (b.outputs > 0)
        gp_depthwise_taps(v, &b, &t);
    gp_taps_weigh(v, out, &t);
    for (int64_t row = 0; row < y->dim[2]; row++) {
        gp_real *some = y->stride[3] == 1 ? to + row * y->stride[2] + at : line;
        if (GP_WAY(depthwise_fits, b.outputs > 0)) {
            if (row % b.outputs == 0)
                gp_band_fill(v, &b, band, plane, row, y->dim[2] - row, at);
            gp_taps_row(some, n, band + row % b.outputs * v->stride[0] * b.pitch, &t, bias);
        } else {
            for (int64_t j = 0; j < n; j++)
                some[j] = gp_depthwise_one(v, plane, out, row, at + j, bias);
        }
        for (int64_t j = 0; j < n && some == line; j++)
            to[row * y->stride[2] + (at + j) * y->stride[3]] = some[j];
    }
}

GP_FUNCTION void gp_depthwise_run(const gp_run *run, const gp_depthwise *v)
{
    const gp_tensor *x = v->x, *y = v->y;
    const int64_t channels = y->dim[1], width = y->dim[3];
    (void)run; /* unused without threads */
    GP_PARALLEL(run, gp_count(y) * v->kernel[0] * v->kernel[1] > 32768)
    for (int64_t i = 0; i < y->dim[0] * channels; i++) {
        const int64_t n = i / channels, out = i % channels;
        const gp_real *plane =
            (const gp_real *)x->data + n * x->stride[0] + out / v->rows * x->stride[1];
        gp_real *to = (gp_real *)y->data + n * y->stride[0] + out * y->stride[1];
        for (int64_t at = 0; at < width; at += GP_DEPTHWISE_WIDTH)
            gp_depthwise_columns(v, plane, out, to, at,
                                 width - at < GP_DEPTHWISE_WIDTH ? width - at : GP_DEPTHWISE_WIDTH);
        gp_epilogue_plane(v->call, n, out);
    }
}

/* ---- Transposed, with a stride ----------------------------------------------------------------
 */

enum { GP_SPREAD_PHASES = GP_BLOCK(4, 2) }; /* columns of a stride, at most */

/* One output, where its inputs do not fit a band. */
GP_FUNCTION gp_real gp_spread_one(const gp_depthwise *v, const gp_real *plane, int64_t out,
                                  int64_t row, int64_t column, gp_real sum)
{
    for (int64_t k = 0; k < v->kernel[0] * v->kernel[1]; k++) {
        const int64_t r = row + v->pad[0] - k / v->kernel[1] * v->dilation[0];
        const int64_t c = column + v->pad[1] - k % v->kernel[1] * v->dilation[1];
        const int64_t i = r / v->stride[0], j = c / v->stride[1];
        if (r >= 0 && c >= 0 && i < v->x->dim[2] && j < v->x->dim[3] && i * v->stride[0] == r &&
            j * v->stride[1] == c)
            sum +=
                gp_depthwise_weight(v, out, k) * plane[i * v->x->stride[2] + j * v->x->stride[3]];
    }
    return sum;
}

/* Interleaves a row of n outputs from its phases, which are `line` apart. */
GP_FUNCTION void gp_spread_join(gp_real *restrict to, int64_t stride, const gp_real *restrict from,
                                int64_t phases, int64_t line, int64_t n)
{
    int64_t i = 0;
    if (phases == 2 && stride == 1) {
        gp_zip(to, from, from + line, n / 2);
        i = n / 2 * 2;
    }
    for (; i < n; i++)
        to[i * stride] = from[i % phases * line + i / phases];
}

/* How a block of columns is split. */
typedef struct {
    gp_band band;
    int64_t at, n;                  /* columns; the first is a multiple of the stride */
    int64_t each;                   /* outputs of a phase */
    int64_t above, before, outputs; /* output rows whose input rows fit a band; 0: not even one */
    gp_taps taps[GP_SPREAD_PHASES][GP_SPREAD_PHASES]; /* of rows and columns, without weights */
} gp_spread_cut;

/* Output (i, j) of a transposed convolution sums x[r, c] * w[ki, kj] where r = (i + pad - ki *
 * dilation) / stride is an integer, and c alike: so outputs a stride apart use the same taps. Here
 * for those with (i + pad) % stride == row and j % stride == column, in a band whose rows start
 * `above` before (i + pad) / stride, and its columns `before` before j / stride. */
GP_FUNCTION void gp_spread_taps(const gp_depthwise *v, int64_t row, int64_t column,
                                const gp_spread_cut *s, gp_taps *t)
{
    t->count = 0;
    for (int64_t k = 0; k < v->kernel[0] * v->kernel[1]; k++) {
        const int64_t r = row - k / v->kernel[1] * v->dilation[0];
        const int64_t c = column + v->pad[1] - k % v->kernel[1] * v->dilation[1];
        if (r % v->stride[0] != 0 || c % v->stride[1] != 0)
            continue;
        t->place[t->count] = (int32_t)k;
        t->at[t->count++] =
            (r / v->stride[0] + s->above) * s->band.pitch + c / v->stride[1] + s->before;
    }
}

GP_FUNCTION void gp_spread_cut_of(gp_spread_cut *s, const gp_depthwise *v, int64_t at, int64_t n)
{
    const int64_t step = v->stride[1];
    s->at = at;
    s->n = n;
    s->each = (n + step - 1) / step;
    s->above = (v->kernel[0] - 1) * v->dilation[0] / v->stride[0];
    s->before = (v->kernel[1] - 1) * v->dilation[1] / step;
    s->band.phase = s->band.pitch = s->each + s->before + (v->pad[1] + step - 1) / step;
    s->band.phases = 1;
    s->outputs = (GP_BAND / s->band.pitch - s->above - 1) * v->stride[0];
    if (step > GP_SPREAD_PHASES || v->stride[0] > GP_SPREAD_PHASES ||
        v->kernel[0] * v->kernel[1] > GP_TAPS || s->outputs < 1) {
        s->outputs = 0;
        return;
    }
    for (int64_t row = 0; row < v->stride[0]; row++)
        for (int64_t column = 0; column < step; column++)
            gp_spread_taps(v, row, column, s, &s->taps[row][column]);
}

/* Rows first .. end - 1 of one channel of one image. */
GP_FUNCTION void gp_spread_rows(const gp_depthwise *v, const gp_spread_cut *s, const gp_real *plane,
                                int64_t out, gp_real *to, int64_t first, int64_t end)
{
    const gp_tensor *x = v->x, *y = v->y;
    const gp_real bias = v->b->data ? ((const gp_real *)v->b->data)[out] : 0;
    const int64_t base = (first + v->pad[0]) / v->stride[0], top = base - s->above;
    const int64_t bottom = (end - 1 + v->pad[0]) / v->stride[0], pitch = s->band.pitch;
    gp_real band[GP_BAND], line[GP_DEPTHWISE_WIDTH + GP_SPREAD_PHASES];
    for (int64_t i = top; i <= bottom; i++)
        gp_band_row(&s->band, band + (i - top) * pitch,
                    i < 0 || i >= x->dim[2] ? NULL : plane + i * x->stride[2], x->stride[3],
                    x->dim[3], s->at / v->stride[1] - s->before);
    for (int64_t phase = 0; phase < v->stride[0]; phase++) { /* rows that use the same taps */
        gp_taps t[GP_SPREAD_PHASES];
        int64_t i = first + phase, row = (i + v->pad[0]) % v->stride[0];
        for (int64_t p = 0; p < v->stride[1]; p++) {
            t[p] = s->taps[row][p];
            gp_taps_weigh(v, out, &t[p]);
        }
        for (; i < end; i += v->stride[0]) {
            const gp_real *from = band + ((i + v->pad[0]) / v->stride[0] - base) * pitch;
            for (int64_t p = 0; p < v->stride[1]; p++)
                gp_taps_row(line + p * s->each, s->each, from, &t[p], bias);
            gp_spread_join(to + i * y->stride[2] + s->at * y->stride[3], y->stride[3], line,
                           v->stride[1], s->each, s->n);
        }
    }
}

GP_FUNCTION void gp_spread_cut_run(const gp_run *run, const gp_depthwise *v, const gp_spread_cut *s)
{
    const gp_tensor *x = v->x, *y = v->y;
    const int64_t channels = y->dim[1];
    (void)run; /* unused without threads */
    GP_PARALLEL(run, gp_count(x) * v->kernel[0] * v->kernel[1] > 32768)
    for (int64_t i = 0; i < y->dim[0] * channels; i++) {
        const int64_t n = i / channels, out = i % channels, height = y->dim[2];
        const gp_real *plane = (const gp_real *)x->data + n * x->stride[0] + out * x->stride[1];
        gp_real *to = (gp_real *)y->data + n * y->stride[0] + out * y->stride[1];
        const gp_real bias = v->b->data ? ((const gp_real *)v->b->data)[out] : 0;
        for (int64_t row = 0; s->outputs > 0 && row < height; row += s->outputs)
            gp_spread_rows(v, s, plane, out, to, row,
                           height - row < s->outputs ? height : row + s->outputs);
        for (int64_t k = 0; s->outputs == 0 && k < height * s->n; k++)
            to[k / s->n * y->stride[2] + (s->at + k % s->n) * y->stride[3]] =
                gp_spread_one(v, plane, out, k / s->n, s->at + k % s->n, bias);
        if (s->at + s->n == y->dim[3])
            gp_epilogue_plane(v->call, n, out);
    }
}

/* A depthwise transposed convolution. */
GP_FUNCTION void gp_depthwise_spread(const gp_run *run, const gp_depthwise *v)
{
    const int64_t width = v->y->dim[3], most = GP_DEPTHWISE_WIDTH / v->stride[1] * v->stride[1];
    const int64_t some = most > 0 ? most : v->stride[1];
    gp_spread_cut s;
    for (int64_t at = 0; at < width; at += some) {
        gp_spread_cut_of(&s, v, at, width - at < some ? width - at : some);
        gp_spread_cut_run(run, v, &s);
    }
}

#endif
