/* Pooling of images [N, C, H, W]: the maximum or mean of each window, and of whole planes.
 *
 * First columns are reduced down the rows of a window, for all windows of some rows, into lines
 * that include the padding; then the outputs along the lines, a vector at a time. */
#ifndef GP_POOL_H
#define GP_POOL_H

#include "by_samples.h"
#include "pool_places.h"

enum {
    GP_POOL_BAND = GP_BLOCK(4096, 40), /* outputs of some rows, buffered and then streamed */
    GP_POOL_LINES = GP_BLOCK(512, 24), /* reduced columns of windows */
};

typedef struct {
    const gp_tensor *x, *y;
    const gp_avgpool2d_attr *mean; /* NULL: maximum */
    int64_t kernel[2], stride[2], pad[2];
    int64_t rows, bands;     /* of a band; of a plane */
    int64_t block[2];        /* rows, and outputs of each, whose columns are reduced together */
    int streams, pairs;      /* pairs: gp_pool_pairs applies */
    const gp_tensor *places; /* where to say which place each window took; NULL: nowhere */
    gp_pool_windows windows; /* for that */
} gp_pool;

GP_FUNCTION gp_pool gp_pool_plan(const gp_call *c, const int64_t *kernel, const int64_t *stride,
                                 const int64_t *pad, const gp_avgpool2d_attr *mean)
{
    gp_pool v = {.x = &c->in[0], .y = &c->out[0], .mean = mean};
    for (int i = 0; i < 2; i++) {
        v.kernel[i] = kernel[i];
        v.stride[i] = stride[i];
        v.pad[i] = pad[i];
    }
    const int64_t height = v.y->dim[2], width = v.y->dim[3];
    const int64_t most =
        kernel[1] < GP_POOL_LINES ? (GP_POOL_LINES - kernel[1]) / stride[1] + 1 : 1;
    v.block[1] = width < most ? width : most;
    v.block[0] = GP_POOL_LINES / ((v.block[1] - 1) * stride[1] + kernel[1]);
    v.block[0] = v.block[0] > 1 ? v.block[0] : 1;
    v.rows = width < GP_POOL_BAND ? GP_POOL_BAND / width : 1;
    v.bands = (height + v.rows - 1) / v.rows;
    const int inside =
        pad[0] == 0 && pad[1] == 0 && (height - 1) * stride[0] + kernel[0] <= v.x->dim[2];
    v.pairs = stride[1] == 2 && width >= GP_ZIP_LANES && v.x->stride[3] == 1 &&
              (kernel[1] == 2 || kernel[1] == 3) && pad[1] <= kernel[1] - 2 && pad[0] < kernel[0] &&
              2 * (width - 1) - pad[1] + kernel[1] <= v.x->dim[3] && (!mean || inside);
    v.streams = width <= GP_POOL_BAND && v.y->stride[3] == 1 && v.y->stride[2] == width &&
                gp_streams(v.y->data, v.x->data, NULL, gp_count(v.y));
    return v;
}

/* One output, whose window is longer than a line. */
static GP_NOINLINE gp_real gp_pool_one(const gp_pool *v, const gp_real *plane, int64_t row,
                                       int64_t at, int how)
{
    const gp_range rows =
        gp_pool_inside(row * v->stride[0] - v->pad[0], v->kernel[0], v->x->dim[2]);
    const gp_range in = gp_pool_inside(at * v->stride[1] - v->pad[1], v->kernel[1], v->x->dim[3]);
    gp_real join = gp_pool_none(how);
    for (int64_t j = in.from; j < in.to && rows.from < rows.to; j++) {
        const gp_real *from = plane + rows.from * v->x->stride[2] + j * v->x->stride[3];
        gp_real column = *from;
        for (int64_t i = rows.from + 1; i < rows.to; i++)
            column = gp_pool_join(column, *(from += v->x->stride[2]), how);
        join = gp_pool_join(join, column, how);
    }
    return join;
}

/* How many elements of a window that starts at `first` are in [floor, size). */
GP_FUNCTION int64_t gp_pool_count(int64_t first, int64_t kernel, int64_t floor, int64_t size)
{
    const int64_t from = first > floor ? first : floor;
    return (first + kernel < size ? first + kernel : size) - from;
}

/* Divides sums of windows, or gradients of their means, by the window sizes: outputs at .. at + n -
 * 1 of a row, `out` apart. With count_include_pad the edges are those of the padded image. */
GP_FUNCTION void gp_pool_divide(const gp_avgpool2d_attr *a, const int64_t *size, int64_t row,
                                int64_t at, gp_real *restrict to, int64_t out, int64_t n)
{
    const int64_t all = a->count_include_pad, kernel = a->kernel[1], step = a->stride[1];
    const int64_t low = all ? -a->pad[1] : 0, high = size[1] + (all ? a->pad[3] : 0);
    const int64_t rows = gp_pool_count(row * a->stride[0] - a->pad[0], a->kernel[0],
                                       all ? -a->pad[0] : 0, size[0] + (all ? a->pad[2] : 0));
    const int64_t left = at * step - a->pad[1];
    int64_t from = 0, end = n; /* windows in between are whole */
    for (; from < n && left + from * step < low; from++)
        to[from * out] *=
            1 / (gp_real)(rows * gp_pool_count(left + from * step, kernel, low, high));
    for (; end > from && left + (end - 1) * step + kernel > high; end--)
        to[(end - 1) * out] *=
            1 / (gp_real)(rows * gp_pool_count(left + (end - 1) * step, kernel, low, high));
    const gp_real share = 1 / (gp_real)(rows * kernel); /* off by at most one, and short */
    if (out == 1)
        for (int64_t i = from; i < end; i++)
            to[i] *= share;
    else
        for (int64_t i = from; i < end; i++)
            to[i * out] *= share;
}

/* Reduces some columns of some rows of windows. Returns whether all elements were finite, or
 * finiteness does not matter. */
GP_FUNCTION int gp_pool_lines(const gp_pool *v, const gp_real *plane, int64_t first, int64_t count,
                              int64_t left, int64_t width, gp_real *lines, int how)
{
    const gp_tensor *x = v->x;
    const gp_range in = gp_pool_inside(left, width, x->dim[3]);
    const int64_t begin = in.from < in.to ? in.from - left : width;
    const int64_t end = in.from < in.to ? in.to - left : width;
    gp_real check[GP_LANES] = {0};
    for (int64_t i = 0; i < count; i++, lines += width) {
        const int64_t top = (first + i) * v->stride[0] - v->pad[0];
        for (int64_t j = 0; j < begin; j++)
            lines[j] = gp_pool_none(how);
        for (int64_t j = end; j < width; j++)
            lines[j] = gp_pool_none(how);
        gp_pool_down(lines + begin, end - begin, plane + in.from * x->stride[3], x->stride[3],
                     gp_pool_inside(top, v->kernel[0], x->dim[2]), x->stride[2],
                     i > 0 && top > 0 ? v->kernel[0] - v->stride[0] : 0, check, how);
    }
    for (int k = 1; k < GP_LANES; k++)
        check[0] += check[k];
    return check[0] == 0;
}

/* Outputs at .. at + n - 1 of some rows, `apart` and `out` apart. The columns of all rows come
 * first: reading soon after a store with other alignment stalls on store forwarding. */
GP_FUNCTION void gp_pool_block(const gp_pool *v, const gp_real *plane, int64_t first, int64_t count,
                               int64_t at, int64_t n, gp_real *to, int64_t apart, int64_t out,
                               int how)
{
    const int64_t width = (n - 1) * v->stride[1] + v->kernel[1];
    const int64_t left = at * v->stride[1] - v->pad[1];
    gp_real lines[GP_POOL_LINES];
    if (width > GP_POOL_LINES) { /* n is 1 */
        for (int64_t i = 0; i < count; i++)
            to[i * apart] = gp_pool_one(v, plane, first + i, at, how);
    } else if (gp_pool_lines(v, plane, first, count, left, width, lines, how)) {
        for (int64_t i = 0; i < count; i++)
            gp_pool_along(to + i * apart, out, n, lines + i * width, v->stride[1], v->kernel[1],
                          how);
    } else {
        gp_pool_lines(v, plane, first, count, left, width, lines, GP_POOL_MAX);
        for (int64_t i = 0; i < count; i++)
            gp_pool_along(to + i * apart, out, n, lines + i * width, v->stride[1], v->kernel[1],
                          GP_POOL_MAX);
    }
    for (int64_t i = 0; i < count && how == GP_POOL_SUM; i++)
        gp_pool_divide(v->mean, v->x->dim + 2, first + i, at, to + i * apart, out, n);
}

#if defined(GP_SHUFFLES)
GP_FUNCTION int gp_pool_pair_rows(const gp_pool *v, const gp_real *plane, int64_t first,
                                  int64_t count, gp_real *to, int64_t apart, int how)
{
    const gp_tensor *x = v->x;
    const int64_t n = v->y->dim[3], row = x->stride[2], kernel = v->kernel[1];
    const int64_t base = kernel - 2 - v->pad[1];
    const gp_real share = 1 / (gp_real)(v->kernel[0] * kernel);
    gp_real check[GP_ZIP_LANES] = {0};
    for (int64_t i = 0; i < count; i++, to += apart) {
        const int64_t top = (first + i) * v->stride[0] - v->pad[0];
        const gp_range rows = gp_pool_inside(top, v->kernel[0], x->dim[2]);
        const int64_t many = rows.to - rows.from;
        const int64_t seen = i > 0 && top > 0 ? v->kernel[0] - v->stride[0] : 0;
        const gp_real *from = plane + rows.from * row + base;
        if (GP_WAY(pool_columns_2, kernel == 2))
            gp_pool_pairs(to, n, from, base > 0, many, row, seen, 2, share, check, how);
        else
            gp_pool_pairs(to, n, from, base > 0, many, row, seen, 3, share, check, how);
    }
    for (int k = 1; k < GP_ZIP_LANES; k++)
        check[0] += check[k];
    return check[0] == 0;
}

/* The largest and the places that were taken. Returns whether all elements were finite. */
GP_FUNCTION int gp_maxpool_pair_rows(const gp_pool *v, const gp_real *plane, int64_t first,
                                     int64_t count, gp_real *to, int64_t apart, uint8_t *took)
{
    const gp_tensor *x = v->x;
    const int64_t n = v->y->dim[3], row = x->stride[2], kernel = v->kernel[1];
    const int64_t base = kernel - 2 - v->pad[1];
    gp_real check[GP_ZIP_LANES] = {0};
    for (int64_t i = 0; i < count; i++, to += apart, took += n) {
        const int64_t top = (first + i) * v->stride[0] - v->pad[0];
        const gp_range rows = gp_pool_inside(top, v->kernel[0], x->dim[2]);
        const int64_t many = rows.to - rows.from, place = (rows.from - top) * kernel;
        const gp_real *from = plane + rows.from * row + base;
        if (many != kernel)
            gp_maxpool_pairs(to, took, n, from, base > 0, many, row, kernel, place, check);
        else if (GP_WAY(pool_columns_2, kernel == 2))
            gp_maxpool_pairs(to, took, n, from, base > 0, 2, row, 2, place, check);
        else
            gp_maxpool_pairs(to, took, n, from, base > 0, 3, row, 3, place, check);
    }
    for (int k = 1; k < GP_ZIP_LANES; k++)
        check[0] += check[k];
    return check[0] == 0;
}
#endif

/* Some rows of outputs of a plane. */
GP_FUNCTION void gp_pool_rows(const gp_pool *v, const gp_real *plane, int64_t first, int64_t count,
                              gp_real *to, int64_t apart, int64_t out, int how)
{
#if defined(GP_SHUFFLES)
    if (GP_WAY(pool_pairs, v->pairs && out == 1)) {
        if (!gp_pool_pair_rows(v, plane, first, count, to, apart, how))
            gp_pool_pair_rows(v, plane, first, count, to, apart, GP_POOL_MAX);
        return;
    }
#endif
    for (int64_t i = 0, rows; i < count; i += rows) {
        rows = count - i < v->block[0] ? count - i : v->block[0];
        for (int64_t at = 0; at < v->y->dim[3]; at += v->block[1]) {
            const int64_t n = v->y->dim[3] - at < v->block[1] ? v->y->dim[3] - at : v->block[1];
            gp_pool_block(v, plane, first + i, rows, at, n, to + i * apart + at * out, apart, out,
                          how);
        }
    }
}

/* The same with the places that were taken: at once where windows are pairs of columns, or two and
 * the one before, else one after the other. */
GP_FUNCTION void gp_pool_rows_and_places(const gp_pool *v, int64_t plane, int64_t first,
                                         int64_t count, gp_real *to, int64_t apart, int64_t out)
{
    const gp_real *x = gp_plane(v->x, plane);
    const int64_t n = v->y->dim[3], begin = plane * v->y->dim[2] * n;
#if defined(GP_SHUFFLES)
    if (GP_WAY(pool_pairs, v->pairs && out == 1)) {
        uint8_t *took = (uint8_t *)v->places->data + begin + first * n;
        if (v->kernel[0] <= 3 && gp_maxpool_pair_rows(v, x, first, count, to, apart, took))
            return;
    }
#endif
    gp_pool_rows(v, x, first, count, to, apart, out, GP_POOL_FINITE);
    gp_maxpool_places(&v->windows, x, first, count, n, v->places, begin);
}

GP_FUNCTION void gp_pool_some(const gp_pool *v, int64_t plane, int64_t first, int64_t count,
                              gp_real *to, int64_t apart, int64_t out, int how)
{
    if (GP_WAY(pool_places, v->places != NULL))
        gp_pool_rows_and_places(v, plane, first, count, to, apart, out);
    else
        gp_pool_rows(v, gp_plane(v->x, plane), first, count, to, apart, out, how);
}

/* Straight to y, or buffered and streamed. */
GP_FUNCTION void gp_pool_band(const gp_pool *v, int64_t plane, int64_t first, int64_t count,
                              int how)
{
    gp_real *y = gp_plane(v->y, plane) + first * v->y->stride[2];
    if (GP_WAY(pool_streams, v->streams)) {
        gp_real band[GP_POOL_BAND];
        gp_pool_some(v, plane, first, count, band, v->y->dim[3], 1, how);
        gp_stream(y, band, count * v->y->dim[3], NULL);
    } else {
        gp_pool_some(v, plane, first, count, y, v->y->stride[2], v->y->stride[3], how);
    }
    gp_stream_end();
}

/* `how` is a constant in each kernel, so that unused cases are not compiled. */
GP_FUNCTION int gp_pool_run(const gp_run *run, gp_pool v, int how)
{
    const int64_t units = v.y->dim[0] * v.y->dim[1] * v.bands, height = v.y->dim[2];
    (void)run; /* unused without threads */
    GP_PARALLEL(run, gp_count(v.x) > 32768)
    for (int64_t i = 0; i < units; i++) {
        const int64_t first = i % v.bands * v.rows;
        gp_pool_band(&v, i / v.bands, first, height - first < v.rows ? height - first : v.rows,
                     how);
    }
    return GP_OK;
}

GP_FUNCTION int gp_pool_has_gaps(const int64_t *dilation)
{
    return dilation[0] != 1 || dilation[1] != 1;
}

/* Whether each window has all of its rows inside of the image. */
GP_FUNCTION int gp_pool_is_whole(const gp_pool *v)
{
    return v->pad[0] == 0 && (v->y->dim[2] - 1) * v->stride[0] + v->kernel[0] <= v->x->dim[2];
}

/* A branch for a size that some windows may have less of: taken by others too. */
GP_FUNCTION void gp_pool_size_way(gp_ways *ways, const char *name, int64_t size, int64_t kernel,
                                  int whole)
{
    const int less = !whole && kernel > size;
    gp_way_can(ways, name,
               (kernel == size || less ? GP_TAKEN : 0) |
                   (kernel != size || !whole ? GP_PASSED : 0));
}

GP_FUNCTION void gp_pool_ways(const gp_call *c, gp_pool v, const int64_t *dilation, gp_ways *ways)
{
    const int gaps = gp_pool_has_gaps(dilation), whole = gp_pool_is_whole(&v);
    gp_way(ways, "pool_dilated", gaps);
    gp_stream_ways(ways, "pool_streams", !gaps, gp_count(&c->out[0]));
    /* the width of a vector decides which of these is taken, if any */
    gp_way_can(ways, "pool_pairs", v.stride[1] == 2 ? GP_TAKEN | GP_PASSED : GP_PASSED);
    gp_way_can(ways, "pool_step_1", v.stride[1] == 1 ? GP_TAKEN | GP_PASSED : GP_PASSED);
    gp_way_can(ways, "pool_step_2", v.stride[1] == 2 ? GP_TAKEN | GP_PASSED : GP_PASSED);
    gp_pool_size_way(ways, "pool_rows_2", 2, v.kernel[0], whole);
    gp_pool_size_way(ways, "pool_rows_3", 3, v.kernel[0], whole);
    gp_pool_size_way(ways, "pool_columns_2", 2, v.kernel[1], 1);
    gp_pool_size_way(ways, "pool_columns_3", 3, v.kernel[1], 1);
}

GP_WORKSPACE(maxpool2d)
{
    return gp_is_half(c) ? gp_samples_space(c, 1, NULL) : 0;
}

GP_WAYS(maxpool2d)
{
    gp_way(ways, "by_samples", gp_is_half(c));
    if (gp_is_half(c)) {
        gp_samples_ways(c, 1, ways, gp_maxpool2d_ways);
        return;
    }
    const gp_maxpool2d_attr *a = c->attr;
    gp_pool_ways(c, gp_pool_plan(c, a->kernel, a->stride, a->pad, NULL), a->dilation, ways);
    gp_way(ways, "pool_places", gp_places_of(c) != NULL);
}

GP_WORKSPACE(avgpool2d)
{
    return gp_is_half(c) ? gp_samples_space(c, 1, NULL) : 0;
}

GP_WAYS(avgpool2d)
{
    gp_way(ways, "by_samples", gp_is_half(c));
    if (gp_is_half(c)) {
        gp_samples_ways(c, 1, ways, gp_avgpool2d_ways);
        return;
    }
    const gp_avgpool2d_attr *a = c->attr;
    gp_pool_ways(c, gp_pool_plan(c, a->kernel, a->stride, a->pad, a), a->dilation, ways);
    gp_way(ways, "pool_places", 0);
}

GP_KERNEL(maxpool2d)
{
    if (GP_WAY(by_samples, gp_is_half(c)))
        return gp_by_samples(c, 1, gp_maxpool2d);
    const gp_maxpool2d_attr *a = c->attr;
    if (GP_WAY(pool_dilated, gp_pool_has_gaps(a->dilation)))
        return gp_dilated_run(c, (gp_dilated){&c->in[0], a->kernel, a->stride, a->pad, a->dilation},
                              NULL);
    gp_pool v = gp_pool_plan(c, a->kernel, a->stride, a->pad, NULL);
    v.places = gp_places_of(c);
    v.windows = gp_pool_windows_of(&c->in[0], v.y, a->kernel, a->stride, a->pad);
    return gp_pool_run(c->run, v, GP_POOL_FINITE);
}

GP_KERNEL(avgpool2d)
{
    if (GP_WAY(by_samples, gp_is_half(c)))
        return gp_by_samples(c, 1, gp_avgpool2d);
    const gp_avgpool2d_attr *a = c->attr;
    if (GP_WAY(pool_dilated, gp_pool_has_gaps(a->dilation)))
        return gp_dilated_run(c, (gp_dilated){&c->in[0], a->kernel, a->stride, a->pad, a->dilation},
                              a);
    return gp_pool_run(c->run, gp_pool_plan(c, a->kernel, a->stride, a->pad, a), GP_POOL_SUM);
}

GP_WORKSPACE(maxpool2d_indices)
{
    return gp_is_half(c) ? gp_samples_space(c, 1, NULL) : 0;
}

GP_WAYS(maxpool2d_indices)
{
    gp_way(ways, "by_samples", gp_is_half(c));
    if (gp_is_half(c))
        gp_samples_ways(c, 1, ways, gp_maxpool2d_indices_ways);
}

GP_KERNEL(maxpool2d_indices)
{
    if (GP_WAY(by_samples, gp_is_half(c)))
        return gp_by_samples(c, 1, gp_maxpool2d_indices);
    const gp_maxpool2d_indices_attr *a = c->attr;
    const gp_tensor *y = &c->out[0];
    const gp_dilated v = {&c->in[0], a->kernel, a->stride, a->pad, a->dilation};
    const int64_t width = y->dim[3], height = y->dim[2];
    const int64_t lines = y->dim[0] * y->dim[1] * height;
    GP_PARALLEL(c->run, gp_count(v.x) > 32768)
    for (int64_t i = 0; i < lines; i++)
        for (int64_t j = 0; j < width; j++) {
            int64_t here[2];
            gp_dilated_at(&v, i % height, j,
                          gp_dilated_largest(&v, gp_plane(v.x, i / height), i % height, j), here);
            ((int64_t *)y->data)[i * width + j] = here[0] * v.x->dim[3] + here[1];
        }
    return GP_OK;
}

/* The offset of element i of a plane. */
GP_FUNCTION int64_t gp_plane_place(const gp_tensor *x, int64_t i)
{
    int64_t at = 0;
    for (int d = x->rank; d-- > 2; i /= x->dim[d])
        at += i % x->dim[d] * x->stride[d];
    return at;
}

/* The sum of n elements: in double, since a plane may be large, and in lanes of a fixed order. */
GP_FUNCTION double gp_stepped_sum(const gp_real *x, int64_t stride, int64_t n)
{
    enum { LANES = 32 };
    double lane[LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; stride == 1 && i + LANES <= n; i += LANES) {
        for (int k = 0; k < LANES; k++)
            lane[k] += (double)x[i + k];
        gp_pool_ask(x + i);
        gp_pool_ask(x + i + LANES / 2);
    }
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++)
            lane[k] += (double)x[(i + k) * stride];
    for (; i < n; i++)
        sum += (double)x[i * stride];
    for (int k = 0; k < LANES / 2; k++)
        lane[k] += lane[k + LANES / 2];
    for (int k = 0; k < LANES / 4; k++)
        sum += lane[k] + lane[k + LANES / 4];
    return sum;
}

GP_WORKSPACE(global_avgpool)
{
    return gp_is_half(c) ? gp_samples_space(c, 1, NULL) : 0;
}

GP_WAYS(global_avgpool)
{
    gp_way(ways, "by_samples", gp_is_half(c));
    if (gp_is_half(c))
        gp_samples_ways(c, 1, ways, gp_global_avgpool_ways);
}

GP_KERNEL(global_avgpool)
{
    if (GP_WAY(by_samples, gp_is_half(c)))
        return gp_by_samples(c, 1, gp_global_avgpool);
    const gp_tensor *x = &c->in[0], *y = &c->out[0];
    const int64_t planes = x->dim[0] * x->dim[1], size = gp_span(x, 2, x->rank);
    int64_t stride = x->rank > 2 ? x->stride[x->rank - 1] : 1, length = 1;
    for (int d = x->rank; d-- > 2 && x->stride[d] == stride * length;)
        length *= x->dim[d]; /* contiguous rows are one */
    GP_PARALLEL(c->run, gp_count(x) > 32768)
    for (int64_t i = 0; i < planes; i++) {
        double sum = 0;
        for (int64_t at = 0; at < size; at += length)
            sum += gp_stepped_sum(gp_plane(x, i) + gp_plane_place(x, at), stride, length);
        *gp_plane(y, i) = (gp_real)(sum / (double)size);
    }
    return GP_OK;
}

GP_WORKSPACE(global_maxpool)
{
    return gp_is_half(c) ? gp_samples_space(c, 1, NULL) : 0;
}

GP_WAYS(global_maxpool)
{
    gp_way(ways, "by_samples", gp_is_half(c));
    if (gp_is_half(c))
        gp_samples_ways(c, 1, ways, gp_global_maxpool_ways);
}

GP_KERNEL(global_maxpool)
{
    if (GP_WAY(by_samples, gp_is_half(c)))
        return gp_by_samples(c, 1, gp_global_maxpool);
    const gp_tensor *x = &c->in[0], *y = &c->out[0];
    const int64_t length = x->rank > 2 ? x->dim[x->rank - 1] : 1;
    const int64_t stride = x->rank > 2 ? x->stride[x->rank - 1] : 1;
    const int64_t rows = gp_span(x, 2, x->rank) / length, planes = x->dim[0] * x->dim[1];
    GP_PARALLEL(c->run, gp_count(x) > 32768)
    for (int64_t i = 0; i < planes; i++) {
        gp_real best = -(gp_real)INFINITY;
        for (int64_t row = 0; row < rows; row++) {
            const gp_real *from = gp_plane(x, i) + gp_plane_place(x, row * length);
            for (int64_t j = 0; j < length; j++)
                best = from[j * stride] > best || from[j * stride] != from[j * stride]
                           ? from[j * stride]
                           : best;
        }
        *gp_plane(y, i) = best;
    }
    return GP_OK;
}

#endif
