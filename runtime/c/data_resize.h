/* A part of an image, resized with antialiasing: rows of u8 come from a decoder one by one, and
 * only those that an output row is made of are kept.
 *
 * A triangle as wide as the output's pixel, in each direction (what Pillow calls BILINEAR).
 * Weights have 14 bits and add up to 1 exactly; sums are exact; between the directions there are 7
 * bits after the point, so that a result is the nearest level but for a few hundredths. */
#ifndef GP_DATA_RESIZE_H
#define GP_DATA_RESIZE_H

#include "data_state.h"

/* ---- Memory of a decoder -------------------------------------------------------------------- */

typedef struct {
    unsigned char *at;
    size_t size, used;
} gp_slab;

/* NULL where it has no more. From a multiple of 64 on; libraries read a vector beyond the end. */
GP_HOST_FAST void *gp_slab_take(gp_slab *slab, uint64_t bytes)
{
    const uint64_t rounded = bytes / 64 * 64 + 128;
    if (bytes > slab->size || rounded > slab->size - slab->used)
        return NULL;
    void *at = slab->at + slab->used;
    slab->used += (size_t)rounded;
    return at;
}

/* ---- Weights -------------------------------------------------------------------------------- */

enum { GP_TAP_BITS = 14, GP_TAP_ONE = 1 << GP_TAP_BITS, GP_ROW_BITS = 7 };

/* One direction: output i is the sum of inputs from first[i] on by `taps` weights. */
typedef struct {
    int32_t in, out, taps;
    int32_t *first;
    int16_t *weight; /* [out, taps] */
} gp_image_taps;

/* How many inputs an output is made of. */
GP_FUNCTION int64_t gp_image_taps_most(int64_t in, int64_t out, double length)
{
    const double scale = length / (double)out, reach = scale > 1 ? scale : 1;
    const int64_t most = 2 * (int64_t)(reach + 1) + 1;
    return most < in ? most : in;
}

/* Weights of output i: a triangle around its middle, cut at the edges. Each is the difference of
 * two rounded sums, so that they add up to one. */
GP_FUNCTION void gp_image_taps_fill(gp_image_taps *t, int i, double from, double scale)
{
    const double reach = scale > 1 ? scale : 1, middle = from + ((double)i + 0.5) * scale;
    int low = (int)(middle - reach + 0.5), high = (int)(middle + reach + 0.5);
    low = low < 0 ? 0 : low;
    high = high > t->in ? t->in : high;
    double sum = 0, so_far = 0;
    for (int x = low; x < high; x++) {
        const double away = fabs((double)x + 0.5 - middle) / reach;
        sum += away < 1 ? 1 - away : 0;
    }
    const int first = low < t->in - t->taps ? low : t->in - t->taps;
    int16_t *weight = t->weight + (size_t)i * (size_t)t->taps;
    memset(weight, 0, (size_t)t->taps * sizeof *weight);
    t->first[i] = first;
    int before = 0;
    for (int x = low; x < high && x < first + t->taps; x++) {
        const double away = fabs((double)x + 0.5 - middle) / reach;
        so_far += away < 1 ? 1 - away : 0;
        const int now = (int)(so_far / sum * GP_TAP_ONE + 0.5);
        weight[x - first] = (int16_t)(now - before);
        before = now;
    }
}

/* Of `length` inputs from `from` on. False where the slab has no room. */
GP_HOST_FAST int gp_image_taps_make(gp_image_taps *t, gp_slab *slab, int in, int out, double from,
                                    double length)
{
    t->in = in;
    t->out = out;
    t->taps = (int32_t)gp_image_taps_most(in, out, length);
    t->first = (int32_t *)gp_slab_take(slab, sizeof *t->first * (uint64_t)out);
    t->weight =
        (int16_t *)gp_slab_take(slab, sizeof *t->weight * (uint64_t)out * (uint64_t)t->taps);
    if (!t->first || !t->weight)
        return 0;
    for (int i = 0; i < out; i++)
        gp_image_taps_fill(t, i, from, length / (double)out);
    return 1;
}

/* ---- Rows ----------------------------------------------------------------------------------- */

/* Which part of the image goes where. */
typedef struct {
    double x, y, width, height; /* in pixels of the decoder */
} gp_box;

typedef struct {
    gp_image_taps across, down;
    int32_t channels, flip;
    int32_t row;   /* the next that comes */
    int32_t made;  /* output rows so far */
    int16_t *kept; /* [down.taps, out width, 4] */
    unsigned char *to;
    int64_t to_row, to_pixel, to_channel; /* strides in bytes */
} gp_image_resize;

/* Rows have four bytes a pixel. */
GP_HOST_FAST int gp_image_resize_begin(gp_image_resize *r, gp_slab *slab, int width, int height,
                                       gp_box box, const gp_data_field *field, unsigned char *to,
                                       int flip)
{
    const int chw = field->layout == GP_DATA_CHW, hwc = field->layout == GP_DATA_HWC;
    const int64_t h = field->dim[chw], w = field->dim[chw + 1];
    r->channels = chw ? (int32_t)field->dim[0] : hwc ? (int32_t)field->dim[2] : 1;
    r->flip = flip;
    r->row = r->made = 0;
    r->to = to;
    r->to_pixel = hwc ? r->channels : 1;
    r->to_row = w * r->to_pixel;
    r->to_channel = hwc ? 1 : h * w;
    if (!gp_image_taps_make(&r->across, slab, width, (int)w, box.x, box.width) ||
        !gp_image_taps_make(&r->down, slab, height, (int)h, box.y, box.height))
        return 0;
    r->kept = (int16_t *)gp_slab_take(slab, 8 * (uint64_t)w * (uint64_t)r->down.taps);
    return r->kept != NULL;
}

/* The last input row that is asked for, and one more. */
GP_FUNCTION int gp_image_resize_end(const gp_image_resize *r)
{
    return r->down.first[r->down.out - 1] + r->down.taps;
}

GP_HOST_LOOP void gp_image_resize_across(const gp_image_taps *t, const unsigned char *row,
                                         int16_t *to)
{
    const int taps = t->taps;
    for (int i = 0; i < t->out; i++) {
        const unsigned char *at = row + 4 * (size_t)t->first[i];
        const int16_t *weight = t->weight + (size_t)i * (size_t)taps;
        int32_t sum[4] = {
            1 << (GP_TAP_BITS - GP_ROW_BITS - 1), 1 << (GP_TAP_BITS - GP_ROW_BITS - 1),
            1 << (GP_TAP_BITS - GP_ROW_BITS - 1), 1 << (GP_TAP_BITS - GP_ROW_BITS - 1)};
        for (int k = 0; k < taps; k++)
            for (int c = 0; c < 4; c++)
                sum[c] += weight[k] * at[4 * k + c];
        for (int c = 0; c < 4; c++)
            to[4 * i + c] = (int16_t)(sum[c] >> (GP_TAP_BITS - GP_ROW_BITS));
    }
}

enum { GP_RESIZE_BLOCK = 64 };

/* One output row, a block of columns at a time. */
GP_HOST_LOOP void gp_image_resize_down(const gp_image_resize *r, int i)
{
    const int64_t n = 4 * (int64_t)r->across.out;
    const int16_t *weight = r->down.weight + (size_t)i * (size_t)r->down.taps;
    unsigned char *to = r->to + i * r->to_row;
    for (int64_t from = 0; from < n; from += GP_RESIZE_BLOCK) {
        int32_t sum[GP_RESIZE_BLOCK];
        const int64_t most = GP_RESIZE_BLOCK, count = n - from < most ? n - from : most;
        for (int64_t x = 0; x < count; x++)
            sum[x] = 1 << (GP_TAP_BITS + GP_ROW_BITS - 1);
        for (int k = 0; k < r->down.taps; k++) {
            const int16_t *row = r->kept + (r->down.first[i] + k) % r->down.taps * n + from;
            const int32_t w = weight[k];
            if (w)
                for (int64_t x = 0; x < count; x++)
                    sum[x] += w * row[x];
        }
        for (int64_t x = 0; x < count / 4; x++) {
            const int64_t column = from / 4 + x;
            unsigned char *at = to + (r->flip ? r->across.out - 1 - column : column) * r->to_pixel;
            for (int c = 0; c < r->channels; c++)
                at[c * r->to_channel] =
                    (unsigned char)(sum[4 * x + c] >> (GP_TAP_BITS + GP_ROW_BITS));
        }
    }
}

/* Takes the next row of the image. */
GP_HOST_LOOP void gp_image_resize_row(gp_image_resize *r, const unsigned char *row)
{
    const int y = r->row++;
    if (r->made < r->down.out && y >= r->down.first[r->made])
        gp_image_resize_across(&r->across, row,
                               r->kept + (size_t)(y % r->down.taps) * 4 * (size_t)r->across.out);
    while (r->made < r->down.out && r->down.first[r->made] + r->down.taps <= r->row)
        gp_image_resize_down(r, r->made++);
}

#endif
