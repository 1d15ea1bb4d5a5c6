/* Patches straight into panels, a vector at a time.
 *
 * Where an image is as wide as its outputs, consecutive positions see a shifted run of the image
 * through one tap of the window; masks remove what wraps in from beyond the edges. Otherwise the
 * needed part of a channel is first split into such images: the rows and columns of each remainder
 * modulo the stride, or, where these are wider than the outputs, what each column of the window
 * reads of the rows of a remainder. */
#ifndef GP_PATCH_PANELS_H
#define GP_PATCH_PANELS_H

#include "patches.h"

/* Along one axis, tap i of the window reads the inputs of remainder `phase`, shifted by `by`. */
typedef struct {
    int64_t phase, by;
    int64_t size; /* inputs of that remainder */
} gp_moved;

GP_FUNCTION gp_moved gp_moved_by(const gp_sliding *v, int axis, int64_t i)
{
    const int64_t first = i * v->dilation[axis] - v->pad[axis], step = v->stride[axis];
    const int64_t by = first >= 0 ? first / step : -((-first + step - 1) / step);
    const int64_t phase = first - by * step;
    return (gp_moved){phase, by, gp_ceil_div(v->x->dim[2 + axis] - phase, step)};
}

enum { GP_PATCH_COLUMNS = GP_BLOCK(16, 3) }; /* the most columns of a window that is split so */

/* Whether images are split, and whether into one for each column of the window: by shape alone,
 * since it determines the workspace. */
GP_FUNCTION int gp_patch_wide(const gp_sliding *v)
{
    return gp_ceil_div(v->x->dim[3], v->stride[1]) > v->width;
}

GP_FUNCTION int gp_patch_splits(const gp_sliding *v)
{
    const int equal = v->x->dim[3] == v->width && v->x->dim[2] * v->width == v->outputs;
    return (v->stride[0] != 1 || v->stride[1] != 1 || !equal) &&
           (!gp_patch_wide(v) || v->kernel[1] <= GP_PATCH_COLUMNS);
}

/* Split images for each remainder of rows. */
GP_FUNCTION int64_t gp_patch_images(const gp_sliding *v)
{
    return gp_patch_wide(v) ? v->kernel[1] : v->stride[1];
}

/* Whether panels can be built this way: positions must be exact in a real. */
GP_FUNCTION int gp_patch_fits(const gp_sliding *v)
{
#if defined(__GNUC__)
    const gp_tensor *x = v->x;
    return x->stride[3] == 1 && x->dim[2] < 1 << 20 && x->dim[3] < 1 << 20 &&
           v->outputs < 1 << 20 && (v->same || gp_patch_splits(v));
#else
    (void)v;
    return 0;
#endif
}

/* How far before and after a split image loads may reach; what is read there is masked. */
GP_FUNCTION int64_t gp_patch_margin(const gp_sliding *v)
{
    return gp_round_up(GP_NR_LARGEST + v->kernel[1] * v->dilation[1] +
                           (v->pad[1] < 0 ? -v->pad[1] : v->pad[1]),
                       16);
}

/* Rows of a remainder that the window reads for `rows` rows of outputs. */
GP_FUNCTION int64_t gp_patch_rows(const gp_sliding *v, int64_t rows)
{
    return rows + gp_moved_by(v, 0, v->kernel[0] - 1).by - gp_moved_by(v, 0, 0).by;
}

/* Elements of workspace: the offset of each tap, masks, and split images of one channel. */
GP_FUNCTION int64_t gp_patch_starts(const gp_sliding *v)
{
    const int64_t bytes = v->kernel[0] * v->kernel[1] * (int64_t)sizeof(int64_t);
    return gp_round_up(gp_ceil_div(bytes, (int64_t)sizeof(gp_real)), 16);
}

GP_FUNCTION int64_t gp_patch_work(const gp_sliding *v)
{
    const int64_t masks = (v->kernel[0] + v->kernel[1]) * GP_NC_LARGEST;
    const int64_t rows = gp_patch_rows(v, gp_least(GP_NC_LARGEST, v->outputs) / v->width + 3 +
                                              GP_NR_LARGEST / v->width);
    const int64_t split =
        v->stride[0] * gp_patch_images(v) * rows * v->width + 2 * gp_patch_margin(v);
    return gp_patch_starts(v) + masks + (gp_patch_splits(v) ? gp_round_up(split, 16) : 0);
}

#if defined(__GNUC__)
typedef __typeof__((gp_lanes){0} < (gp_lanes){0}) gp_mask;

/* A block of positions of one image while it is packed. */
typedef struct {
    const gp_sliding *v;
    int64_t at, place; /* its first position: in all images, in its own */
    int64_t panels;    /* count */
    int64_t above;     /* first row of the split images that is stored; may be above them */
    int64_t rows;      /* stored */
    int64_t *start;    /* offset of each tap */
    gp_real *masks;    /* of each panel: for each row of the window, then for each column */
    gp_real *split;    /* margin, then an image for each remainder */
    int64_t low, high; /* range of x that may be read, from its first element */
} gp_patch_block;

GP_FUNCTION gp_patch_block gp_patch_block_of(const gp_sliding *v, int64_t at, int64_t panels,
                                             gp_real *work)
{
    gp_patch_block b = {.v = v, .at = at, .place = at % v->outputs, .panels = panels};
    const int64_t first = b.place / v->width, last = (b.place + panels * GP_NR - 1) / v->width;
    b.start = (int64_t *)(void *)work;
    b.masks = work + gp_patch_starts(v);
    b.split = b.masks + (v->kernel[0] + v->kernel[1]) * GP_NC_LARGEST + gp_patch_margin(v);
    b.above = first + gp_moved_by(v, 0, 0).by;
    b.rows = gp_patch_rows(v, last - first + 1);
    for (int i = 0; i < 4; i++) {
        const int64_t reach = (v->x->dim[i] - 1) * v->x->stride[i];
        b.low += reach < 0 ? reach : 0;
        b.high += reach > 0 ? reach : 0;
    }
    b.high += 1;
    for (int64_t i = 0; i < v->kernel[0] * v->kernel[1]; i++) {
        const gp_moved y = gp_moved_by(v, 0, i / v->kernel[1]);
        const gp_moved x = gp_moved_by(v, 1, i % v->kernel[1]);
        const int64_t image = gp_patch_wide(v) ? i % v->kernel[1] : x.phase;
        b.start[i] = y.by * v->width + (gp_patch_wide(v) ? 0 : x.by);
        if (gp_patch_splits(v))
            b.start[i] += ((y.phase * gp_patch_images(v) + image) * b.rows - b.above) * v->width;
    }
    return b;
}

/* The masks of a panel, given the rows and columns of its positions. */
GP_FUNCTION void gp_patch_mask(const gp_patch_block *b, const gp_lanes *at, int axis,
                               gp_real *masks)
{
    for (int64_t i = 0; i < b->v->kernel[axis]; i++, masks += GP_NR) {
        const gp_moved m = gp_moved_by(b->v, axis, i);
        for (int half = 0; half < 2; half++) {
            const gp_lanes seen = at[half] + (gp_real)m.by;
            *(gp_lanes *)(masks + half * GP_LANES) =
                (gp_lanes)((seen >= 0) & (seen < (gp_real)m.size));
        }
    }
}

GP_FUNCTION void gp_patch_masks(const gp_patch_block *b)
{
    const int64_t width = b->v->width, each = (b->v->kernel[0] + b->v->kernel[1]) * GP_NR;
    int64_t row = b->place / width, column = b->place % width;
    for (int64_t j = 0; j < b->panels; j++) {
        gp_real rows[GP_NR], columns[GP_NR];
        gp_lanes at[2];
        for (int i = 0; i < GP_NR; i++) {
            rows[i] = (gp_real)row;
            columns[i] = (gp_real)column;
            if (++column == width) {
                column = 0;
                row++;
            }
        }
        memcpy(at, rows, sizeof at);
        gp_patch_mask(b, at, 0, b->masks + j * each);
        memcpy(at, columns, sizeof at);
        gp_patch_mask(b, at, 1, b->masks + j * each + b->v->kernel[0] * GP_NR);
    }
}

/* Splits the part of a channel that the block reads. Reads outside of the image are masked
 * later. */
GP_FUNCTION void gp_patch_split(const gp_patch_block *b, const gp_real *plane)
{
    const gp_sliding *v = b->v;
    const int wide = gp_patch_wide(v);
    const int64_t down = gp_least(v->kernel[0], v->stride[0]), step = v->stride[1];
    const int64_t right = wide ? v->kernel[1] : gp_least(v->kernel[1], step);
    for (int64_t i = 0; i < down * right; i++) {
        const gp_moved y = gp_moved_by(v, 0, i / right), x = gp_moved_by(v, 1, i % right);
        const int64_t by = wide ? x.by : 0, first = by < 0 ? -by : 0;
        const int64_t last = gp_least(x.size - by, v->width), line = v->x->stride[2];
        const int64_t from = b->above > 0 ? b->above : 0;
        const int64_t end = gp_least(b->above + b->rows, y.size);
        const int64_t image = y.phase * gp_patch_images(v) + (wide ? i % right : x.phase);
        gp_real *rows = b->split + (image * b->rows - b->above) * v->width;
        for (int64_t row = from; row < end; row++) {
            gp_real *restrict to = rows + row * v->width;
            const gp_real *restrict seen =
                plane + (row * v->stride[0] + y.phase) * line + by * step + x.phase;
            if (step == 1)
                for (int64_t j = first; j < last; j++)
                    to[j] = seen[j];
            else if (step == 2)
                for (int64_t j = first; j < last; j++)
                    to[j] = seen[2 * j];
            else
                for (int64_t j = first; j < last; j++)
                    to[j] = seen[j * step];
        }
    }
}

/* One row of a panel: the vectors at `from`, masked by row and by column. */
GP_FUNCTION void gp_patch_masked(gp_real *to, const gp_real *from, const gp_real *row,
                                 const gp_real *column)
{
    for (int i = 0; i < GP_NR; i += GP_LANES) {
        const gp_mask seen = (gp_mask) * (const gp_lanes *)(row + i);
        *(gp_lanes *)(to + i) = (gp_lanes)((gp_mask) * (const gp_lanes *)(from + i) & seen &
                                           (gp_mask) * (const gp_lanes *)(column + i));
    }
}

/* The same where vectors would reach outside of the images. */
GP_FUNCTION void gp_patch_edge(const gp_patch_block *b, const gp_real *x, int64_t k, int64_t panel,
                               gp_real *to)
{
    const int64_t n = gp_least(GP_NR, b->v->outputs - b->place - panel * GP_NR);
    gp_patch_line(to, b->v, x, k, b->at + panel * GP_NR, n);
    for (int64_t i = n; i < GP_NR; i++)
        to[i] = 0;
}

/* Taps `from` .. `to` - 1 of the window over one channel, which is at `at` in x, into the rows of
 * the panels from `panel`, which are `apart`. `k`: the index of the first. */
GP_FUNCTION void gp_patch_channel(const gp_patch_block *b, const gp_real *x, int64_t at,
                                  int64_t group, int64_t from, int64_t to, int64_t k,
                                  gp_real *panel, int64_t apart)
{
    const gp_sliding *v = b->v;
    const int64_t kh = v->kernel[0], kw = v->kernel[1], splits = gp_patch_splits(v);
    const gp_real *masks = b->masks, *base = splits ? b->split : x + at;
    for (int64_t j = 0; j < b->panels; j++, masks += (kh + kw) * GP_NR, panel += apart) {
        const int64_t place = b->place + j * GP_NR;
        int64_t ki = from / kw, kj = from % kw;
        gp_real *row = panel;
        for (int64_t i = from; i < to; i++, row += GP_NR) {
            const int64_t begin = at + place + b->start[i];
            if (splits || (begin >= b->low && begin + GP_NR <= b->high))
                gp_patch_masked(row, base + (place + b->start[i]), masks + ki * GP_NR,
                                masks + (kh + kj) * GP_NR);
            else
                gp_patch_edge(b, x + group, k + i - from, j, row);
            if (++kj == kw) {
                kj = 0;
                ki++;
            }
        }
    }
}

/* Elements p .. p + k - 1 of the patches of positions at .. of one image: as many panels, which are
 * GP_NR * k apart. `group`: offset of the group's channels in x. */
static GP_NOINLINE void gp_patch_panels(const gp_sliding *v, int64_t group, int64_t p, int64_t k,
                                        int64_t at, int64_t panels, gp_real *to, gp_real *work)
{
    const gp_patch_block b = gp_patch_block_of(v, at, panels, work);
    const int64_t window = v->kernel[0] * v->kernel[1];
    const gp_real *x = v->x->data;
    gp_patch_masks(&b);
    for (int64_t done = 0, count; done < k; done += count) {
        const int64_t first = (p + done) % window;
        const int64_t plane =
            group + at / v->outputs * v->x->stride[0] + (p + done) / window * v->x->stride[1];
        count = gp_least(window - first, k - done);
        if (GP_WAY(patch_splits, gp_patch_splits(v)))
            gp_patch_split(&b, x + plane);
        gp_patch_channel(&b, x, plane, group, first, first + count, p + done, to + done * GP_NR,
                         GP_NR * k);
    }
}
#endif

#endif
