/* The gradients of pooling: maxpool2d_grad finds the maximum of each window again, avgpool2d_grad
 * needs the sizes alone. Windows may overlap, so a plane is the task of one thread, which adds in
 * the order of the outputs. */
#ifndef GP_POOL_GRAD_H
#define GP_POOL_GRAD_H

#include "pool.h"

enum {
    GP_POOL_OUTPUTS = GP_BLOCK(128, 6), /* outputs compared at a time */
    GP_POOL_PLANE = GP_BLOCK(4096, 150) /* elements of a plane that is buffered and then streamed */
};

/* The geometry that the gradients of a plane need. */
typedef struct {
    const gp_tensor *x, *dy;
    int64_t kernel[2], stride[2], pad[2];
    gp_range whole; /* outputs of a row whose windows are inside in all columns */
    int pairs;      /* windows are two columns wide, adjacent, and inside the image */
    int covered;    /* and they cover all elements */
    int threes;     /* windows are those of gp_maxpool_back_3x3 */
} gp_pool_grad;

GP_FUNCTION gp_range gp_pool_whole(int64_t outputs, int64_t stride, int64_t pad, int64_t kernel,
                                   int64_t size)
{
    return size < kernel ? (gp_range){outputs, outputs}
                         : gp_inside(0, outputs, stride, -pad, size - kernel + 1);
}

GP_FUNCTION gp_pool_grad gp_pool_grad_plan(const gp_tensor *x, const gp_tensor *dy,
                                           const int64_t *kernel, const int64_t *stride,
                                           const int64_t *pad)
{
    gp_pool_grad v = {.x = x, .dy = dy};
    for (int i = 0; i < 2; i++) {
        v.kernel[i] = kernel[i];
        v.stride[i] = stride[i];
        v.pad[i] = pad[i];
    }
    const int64_t rows = (dy->dim[2] - 1) * stride[0] + kernel[0];
    v.whole = gp_pool_whole(dy->dim[3], stride[1], pad[1], kernel[1], x->dim[3]);
    v.pairs = kernel[1] == 2 && stride[1] == 2 && stride[0] >= kernel[0] && pad[0] == 0 &&
              pad[1] == 0 && 2 * dy->dim[3] <= x->dim[3] && rows <= x->dim[2];
    v.covered =
        v.pairs && 2 * dy->dim[3] == x->dim[3] && rows == x->dim[2] && stride[0] == kernel[0];
    v.threes = 1;
    for (int i = 0; i < 2; i++)
        v.threes &=
            kernel[i] == 3 && stride[i] == 2 && pad[i] == 1 && 2 * dy->dim[i + 2] == x->dim[i + 2];
    return v;
}

/* The index in its window of one output's maximum, or -1 where the window is all padding. The first
 * of equal maxima, or the first NaN: as in the forward pass. */
GP_FUNCTION gp_real gp_maxpool_found(const gp_pool_grad *v, const gp_real *plane, gp_range rows,
                                     int64_t top, int64_t at)
{
    const int64_t left = at * v->stride[1] - v->pad[1];
    const gp_range in = gp_pool_inside(left, v->kernel[1], v->x->dim[3]);
    gp_real best = 0, found = -1;
    for (int64_t i = rows.from; i < rows.to; i++)
        for (int64_t j = in.from; j < in.to; j++) {
            const gp_real x = plane[i * v->x->stride[2] + j * v->x->stride[3]];
            const int better = (found < 0) | (x > best) | ((x != x) & (best == best));
            best = better ? x : best;
            found = better ? (gp_real)((i - top) * v->kernel[1] + j - left) : found;
        }
    return found;
}

#if defined(GP_SHUFFLES)
#define GP_POOL_LOOK(v, place)                                                                \
    do {                                                                                      \
        const __typeof__((v) > best) better = ((v) > best) | (((v) != (v)) & (best == best)); \
        const gp_zip_lanes here = (gp_zip_lanes){0} + (gp_real)(place);                       \
        GP_POOL_CHOOSE(gp_zip_lanes, best, v, better);                                        \
        GP_POOL_CHOOSE(gp_zip_lanes, found, here, better);                                    \
    } while (0)

/* The same for n outputs whose windows are inside in all columns and two apart: the first starts at
 * `from`. Indices are counted from `place`. The last vector may overlap the one before. */
GP_FUNCTION void gp_maxpool_found_pairs(gp_real *restrict to, int64_t n,
                                        const gp_real *restrict from, int64_t rows, int64_t row,
                                        int64_t kernel, int64_t place)
{
    for (int64_t i = 0; i < n; i += GP_ZIP_LANES) {
        const int64_t at = i + GP_ZIP_LANES <= n ? i : n - GP_ZIP_LANES;
        gp_zip_lanes best = {0}, found = {0};
        for (int64_t ki = 0; ki < rows; ki++)
            for (int64_t k = 0; k < kernel; k += 2) {
                const int both =
                    k + 1 < kernel; /* otherwise the one before is included, and skipped */
                const gp_real *two = from + 2 * at + ki * row + k - !both;
                const gp_zip_lanes a = *(const gp_zip_lanes *)two;
                const gp_zip_lanes b = *(const gp_zip_lanes *)(two + GP_ZIP_LANES);
                const gp_zip_lanes even = __builtin_shufflevector(a, b, GP_EVENS);
                const gp_zip_lanes odd = __builtin_shufflevector(a, b, GP_ODDS);
                if (ki + k == 0) {
                    best = even;
                    found = (gp_zip_lanes){0} + (gp_real)place;
                }
                if (both && ki + k > 0)
                    GP_POOL_LOOK(even, place + ki * kernel + k);
                GP_POOL_LOOK(odd, place + ki * kernel + k + both);
                gp_pool_ask(two);
                gp_pool_ask(two + GP_ZIP_LANES);
            }
        *(gp_zip_lanes *)(to + at) = found;
    }
}
#undef GP_POOL_LOOK

/* Both at once for the most frequent case, adjacent windows of two by two: given n outputs that
 * read the rows `from` and from + row, the gradients of these rows. */
GP_FUNCTION void gp_maxpool_back_2x2(gp_real *restrict to, int64_t width, int64_t n,
                                     const gp_real *restrict from, int64_t row,
                                     const gp_real *restrict up)
{
    for (int64_t i = 0; i < n; i += GP_ZIP_LANES) {
        const int64_t at = i + GP_ZIP_LANES <= n ? i : n - GP_ZIP_LANES;
        const gp_zip_lanes *above = (const gp_zip_lanes *)(from + 2 * at), p = above[0],
                           q = above[1];
        const gp_zip_lanes *below = (const gp_zip_lanes *)(from + row + 2 * at), r = below[0],
                           s = below[1];
        const gp_zip_lanes a = __builtin_shufflevector(p, q, GP_EVENS);
        const gp_zip_lanes b = __builtin_shufflevector(p, q, GP_ODDS);
        const gp_zip_lanes c = __builtin_shufflevector(r, s, GP_EVENS);
        const gp_zip_lanes d = __builtin_shufflevector(r, s, GP_ODDS);
        typedef __typeof__(a > b) mask;
        const mask second = (b > a) | ((b != b) & (a == a));
        gp_zip_lanes most = a;
        GP_POOL_CHOOSE(gp_zip_lanes, most, b, second);
        const mask third = (c > most) | ((c != c) & (most == most));
        GP_POOL_CHOOSE(gp_zip_lanes, most, c, third);
        const mask fourth = (d > most) | ((d != d) & (most == most));
        const gp_zip_lanes given = *(const gp_zip_lanes *)(up + at);
        const mask dy = (mask)given, ab_up = dy & ~fourth & ~third;
        const gp_zip_lanes da = (gp_zip_lanes)(ab_up & ~second),
                           db = (gp_zip_lanes)(ab_up & second);
        const gp_zip_lanes dc = (gp_zip_lanes)(dy & ~fourth & third),
                           dd = (gp_zip_lanes)(dy & fourth);
        gp_zip_lanes *high = (gp_zip_lanes *)(to + 2 * at);
        gp_zip_lanes *low = (gp_zip_lanes *)(to + width + 2 * at);
        high[0] = __builtin_shufflevector(da, db, GP_LOW_PAIRS);
        high[1] = __builtin_shufflevector(da, db, GP_HIGH_PAIRS);
        low[0] = __builtin_shufflevector(dc, dd, GP_LOW_PAIRS);
        low[1] = __builtin_shufflevector(dc, dd, GP_HIGH_PAIRS);
        gp_pool_ask(from + 2 * at);
        gp_pool_ask(from + 2 * at + GP_ZIP_LANES);
        gp_pool_ask(from + row + 2 * at);
        gp_pool_ask(from + row + 2 * at + GP_ZIP_LANES);
    }
}

/* Windows of three columns in a row of x: their columns, the maximum, and their gradients. */
typedef struct {
    gp_zip_lanes left, middle, right, most, give;
} gp_pool_three;

/* The windows whose columns `middle` and `right` start at `from`; `before`: whether there is a
 * column before. Non-finite elements make `check` NaN. */
GP_FUNCTION void gp_pool_three_look(gp_pool_three *t, const gp_real *from, int before,
                                    gp_zip_lanes *check)
{
    const gp_zip_lanes p = ((const gp_zip_lanes *)from)[0], q = ((const gp_zip_lanes *)from)[1];
    const gp_zip_lanes b = (gp_zip_lanes){0} + (before ? from[-1] : -(gp_real)INFINITY);
    t->middle = __builtin_shufflevector(p, q, GP_EVENS);
    t->right = __builtin_shufflevector(p, q, GP_ODDS);
    t->left = __builtin_shufflevector(b, t->right, GP_BEFORE);
    t->most = t->left;
    GP_POOL_TAKE(gp_zip_lanes, t->most, t->middle);
    GP_POOL_TAKE(gp_zip_lanes, t->most, t->right);
    *check += (p + q) * 0;
    gp_pool_ask(from);
    gp_pool_ask(from + GP_ZIP_LANES);
}

/* Adds to a row of x the gradients of its windows, each at the first maximum. */
GP_FUNCTION void gp_pool_three_give(const gp_pool_three *t, gp_real *to)
{
    typedef __typeof__(t->give > t->give) mask;
    const mask first = t->left == t->most, second = t->middle == t->most, give = (mask)t->give;
    const gp_zip_lanes left = (gp_zip_lanes)(give & first), none = {0};
    const gp_zip_lanes even = (gp_zip_lanes)(give & ~first & second);
    const gp_zip_lanes odd =
        (gp_zip_lanes)(give & ~first & ~second) + __builtin_shufflevector(left, none, GP_AFTER);
    ((gp_zip_lanes *)to)[0] = __builtin_shufflevector(even, odd, GP_LOW_PAIRS);
    ((gp_zip_lanes *)to)[1] = __builtin_shufflevector(even, odd, GP_HIGH_PAIRS);
}

/* All at once for windows of three by three, two apart, with a padding of one at the top and left
 * and none elsewhere: vectors of windows go down the plane, and a row shared by two of them gets
 * both gradients. The last of a vector lacks the gradient of the next window, so the next vector
 * starts with it. Returns 0, with the output partly written, where not everything is finite. */
GP_FUNCTION int gp_maxpool_back_3x3(const gp_pool_grad *v, const gp_real *restrict plane,
                                    const gp_real *restrict up, gp_real *restrict to)
{
    const int64_t n = v->dy->dim[3], rows = v->dy->dim[2], row = v->x->stride[2], width = 2 * n;
    gp_zip_lanes check = {0};
    for (int64_t at = 0, end = 0; end < n; at = end - 1) {
        at = at + GP_ZIP_LANES <= n ? at : n - GP_ZIP_LANES;
        end = at + GP_ZIP_LANES;
        gp_pool_three above = {.most = (gp_zip_lanes){0} - (gp_real)INFINITY}, here, below;
        for (int64_t i = 0; i < rows; i++) {
            const gp_real *from = plane + 2 * i * row + 2 * at;
            gp_real *into = to + 2 * i * width + 2 * at;
            const gp_zip_lanes given = *(const gp_zip_lanes *)(up + i * n + at);
            gp_pool_three_look(&here, from, at > 0, &check);
            gp_pool_three_look(&below, from + row, at > 0, &check);
            gp_zip_lanes most = above.most;
            GP_POOL_TAKE(gp_zip_lanes, most, here.most);
            GP_POOL_TAKE(gp_zip_lanes, most, below.most);
            typedef __typeof__(most > most) mask;
            const mask first = above.most == most, second = here.most == most;
            above.give += (gp_zip_lanes)((mask)given & first);
            here.give = (gp_zip_lanes)((mask)given & ~first & second);
            below.give = (gp_zip_lanes)((mask)given & ~first & ~second);
            if (i > 0)
                gp_pool_three_give(&above, into - width);
            gp_pool_three_give(&here, into);
            above = below;
        }
        gp_pool_three_give(&above, to + (2 * rows - 1) * width + 2 * at);
    }
    for (int k = 0; k < GP_ZIP_LANES; k++)
        if (check[k] != 0)
            return 0;
    return 1;
}
#endif

/* Outputs at .. at + n - 1 of a row whose window starts in row `top`: the indices of their
 * maxima. */
GP_FUNCTION void gp_maxpool_find(const gp_pool_grad *v, const gp_real *plane, int64_t top,
                                 int64_t at, int64_t n, gp_real *found)
{
    const gp_range rows = gp_pool_inside(top, v->kernel[0], v->x->dim[2]);
    const int64_t from = v->whole.from > at ? v->whole.from : at;
    int64_t done = 0; /* from there, vectors */
#if defined(GP_SHUFFLES)
    const int64_t end = v->whole.to < at + n ? v->whole.to : at + n;
    if (v->stride[1] == 2 && v->kernel[1] > 1 && v->x->stride[3] == 1 && rows.from < rows.to &&
        end - from >= GP_ZIP_LANES) {
        done = end - from;
        gp_maxpool_found_pairs(found + (from - at), end - from,
                               plane + rows.from * v->x->stride[2] + 2 * from - v->pad[1],
                               rows.to - rows.from, v->x->stride[2], v->kernel[1],
                               (rows.from - top) * v->kernel[1]);
    }
#endif
    for (int64_t j = at; j < at + n; j++) {
        j += j == from ? done : 0;
        if (j < at + n)
            found[j - at] = gp_maxpool_found(v, plane, rows, top, j);
    }
}

/* Scatters the gradients of these outputs to their maxima. */
GP_FUNCTION void gp_maxpool_give(const gp_pool_grad *v, const gp_real *restrict found,
                                 const gp_real *restrict up, int64_t top, int64_t at, int64_t n,
                                 gp_real *restrict to)
{
    const int64_t width = v->x->dim[3], kernel = v->kernel[1], step = v->stride[1];
    to += top * width + at * step - v->pad[1];
    for (int64_t ki = 0; v->pairs && ki < v->kernel[0]; ki++)
        for (int64_t j = 0; j < 2 * n; j++)
            to[ki * width + j] = found[j / 2] == (gp_real)(2 * ki + j % 2) ? up[j / 2] : 0;
    for (int64_t j = 0; j < n && !v->pairs; j++) {
        const int64_t place = (int64_t)found[j];
        if (place >= 0)
            to[place / kernel * width + j * step + place % kernel] += up[j];
    }
}

/* Special cases for usual sizes. Returns whether one applied. */
GP_FUNCTION int gp_maxpool_back_at_once(const gp_pool_grad *v, const gp_real *plane,
                                        const gp_real *up, gp_real *to)
{
#if defined(GP_SHUFFLES)
    const int64_t width = v->dy->dim[3], height = v->dy->dim[2];
    if (v->x->stride[3] != 1 || width < GP_ZIP_LANES)
        return 0;
    if (GP_WAY(pool_threes, v->threes))
        return gp_maxpool_back_3x3(v, plane, up, to);
    if (!v->pairs || v->kernel[0] != 2)
        return 0;
    if (!v->covered)
        memset(to, 0, (size_t)(v->x->dim[2] * v->x->dim[3]) * sizeof *to);
    for (int64_t i = 0; i < height; i++)
        gp_maxpool_back_2x2(to + i * v->stride[0] * v->x->dim[3], v->x->dim[3], width,
                            plane + i * v->stride[0] * v->x->stride[2], v->x->stride[2],
                            up + i * width);
    return 1;
#else
    (void)v, (void)plane, (void)up, (void)to;
    return 0;
#endif
}

GP_FUNCTION void gp_maxpool_back(const gp_pool_grad *v, const gp_real *plane, const gp_real *up,
                                 gp_real *to)
{
    const int64_t width = v->dy->dim[3];
    gp_real found[GP_POOL_OUTPUTS];
    if (gp_maxpool_back_at_once(v, plane, up, to))
        return;
    if (!v->covered)
        memset(to, 0, (size_t)(v->x->dim[2] * v->x->dim[3]) * sizeof *to);
    for (int64_t i = 0; i < v->dy->dim[2]; i++)
        for (int64_t at = 0; at < width; at += GP_POOL_OUTPUTS) {
            const int64_t n = width - at < GP_POOL_OUTPUTS ? width - at : GP_POOL_OUTPUTS;
            const int64_t top = i * v->stride[0] - v->pad[0];
            gp_maxpool_find(v, plane, top, at, n, found);
            gp_maxpool_give(v, found, up + i * width + at, top, at, n, to);
        }
}

GP_WAYS(maxpool2d_grad)
{
    const gp_maxpool2d_grad_attr *a = c->attr;
    const gp_pool_grad v = gp_pool_grad_plan(&c->in[0], &c->in[1], a->kernel, a->stride, a->pad);
    gp_way(ways, "pool_dilated", gp_pool_has_gaps(a->dilation));
    gp_way(ways, "pool_threes", v.threes);
    gp_stream_ways(ways, "pool_grad_streams", 1, gp_count(&c->out[0]));
}

GP_KERNEL(maxpool2d_grad)
{
    const gp_maxpool2d_grad_attr *a = c->attr;
    const gp_tensor *x = &c->in[0], *dy = &c->in[1];
    if (GP_WAY(pool_dilated, gp_pool_has_gaps(a->dilation)))
        return gp_dilated_back(c, (gp_dilated){x, a->kernel, a->stride, a->pad, a->dilation}, dy,
                               NULL);
    const gp_pool_grad v = gp_pool_grad_plan(x, dy, a->kernel, a->stride, a->pad);
    const int64_t planes = x->dim[0] * x->dim[1], size = x->dim[2] * x->dim[3];
    gp_real *dx = c->out[0].data;
    const int streams = size <= GP_POOL_PLANE && gp_streams(dx, x->data, NULL, planes * size);
    GP_PARALLEL(c->run, planes * size > 8192)
    for (int64_t i = 0; i < planes; i++) {
        gp_real aside[GP_POOL_PLANE], *to = streams ? aside : dx + i * size;
        gp_maxpool_back(&v, gp_plane(x, i), gp_plane(dy, i), to);
        if (GP_WAY(pool_grad_streams, streams))
            gp_stream(dx + i * size, aside, size, NULL);
        gp_stream_end();
    }
    return GP_OK;
}

/* Adds a row of gradients to the columns of their windows that are inside. */
GP_FUNCTION void gp_avgpool_give(const gp_pool_grad *v, const gp_real *restrict share, int64_t at,
                                 int64_t n, gp_real *restrict to)
{
    const int64_t step = v->stride[1];
    if (v->pairs) {
        gp_zip(to + 2 * at, share, share, n);
        return;
    }
    for (int64_t k = 0; k < v->kernel[1]; k++) {
        const int64_t first = at * step - v->pad[1] + k;
        const gp_range in = gp_inside(0, n, step, first, v->x->dim[3]);
        if (step == 1)
            for (int64_t j = in.from; j < in.to; j++)
                to[first + j] += share[j];
        else
            for (int64_t j = in.from; j < in.to; j++)
                to[first + j * step] += share[j];
    }
}

#if defined(GP_SHUFFLES)
/* The same where windows are adjacent pairs, for all rows of a plane. */
GP_FUNCTION void gp_avgpool_back_pairs(const gp_pool_grad *v, const gp_real *restrict up,
                                       gp_real *restrict to)
{
    const int64_t n = v->dy->dim[3], width = v->x->dim[3];
    const gp_real places = 1 / (gp_real)(2 * v->kernel[0]);
    for (int64_t i = 0; i < v->dy->dim[2]; i++, up += n, to += v->stride[0] * width)
        for (int64_t j = 0; j < n; j += GP_ZIP_LANES) {
            const int64_t at = j + GP_ZIP_LANES <= n ? j : n - GP_ZIP_LANES;
            const gp_zip_lanes share = *(const gp_zip_lanes *)(up + at) * places;
            const gp_zip_lanes low = __builtin_shufflevector(share, share, GP_LOW_PAIRS);
            const gp_zip_lanes high = __builtin_shufflevector(share, share, GP_HIGH_PAIRS);
            gp_pool_ask(up + at);
            for (int64_t k = 0; k < v->kernel[0]; k++) {
                gp_zip_lanes *two = (gp_zip_lanes *)(to + k * width + 2 * at);
                two[0] = low;
                two[1] = high;
            }
        }
}
#endif

GP_FUNCTION void gp_avgpool_back(const gp_pool_grad *v, const gp_avgpool2d_attr *a,
                                 const gp_real *up, gp_real *to)
{
    const int64_t width = v->dy->dim[3], size[2] = {v->x->dim[2], v->x->dim[3]};
    gp_real share[GP_POOL_OUTPUTS];
    if (!v->covered)
        memset(to, 0, (size_t)(size[0] * size[1]) * sizeof *to);
#if defined(GP_SHUFFLES)
    if (v->pairs && width >= GP_ZIP_LANES) {
        gp_avgpool_back_pairs(v, up, to);
        return;
    }
#endif
    for (int64_t i = 0; i < v->dy->dim[2]; i++)
        for (int64_t at = 0; at < width; at += GP_POOL_OUTPUTS) {
            const int64_t n = width - at < GP_POOL_OUTPUTS ? width - at : GP_POOL_OUTPUTS;
            const gp_range rows =
                gp_pool_inside(i * v->stride[0] - v->pad[0], v->kernel[0], size[0]);
            memcpy(share, up + i * width + at, (size_t)n * sizeof *share);
            gp_pool_divide(a, size, i, at, share, 1, n);
            for (int64_t row = rows.from; row < rows.to; row++)
                gp_avgpool_give(v, share, at, n, to + row * size[1]);
        }
}

GP_WAYS(avgpool2d_grad)
{
    gp_way(ways, "pool_dilated",
           gp_pool_has_gaps(((const gp_avgpool2d_grad_attr *)c->attr)->dilation));
}

GP_KERNEL(avgpool2d_grad)
{
    const gp_avgpool2d_grad_attr *a = c->attr;
    const gp_tensor *dy = &c->in[0], *dx = &c->out[0];
    if (GP_WAY(pool_dilated, gp_pool_has_gaps(a->dilation)))
        return gp_dilated_back(c, (gp_dilated){dx, a->kernel, a->stride, a->pad, a->dilation}, dy,
                               a);
    const gp_pool_grad v = gp_pool_grad_plan(dx, dy, a->kernel, a->stride, a->pad);
    const int64_t planes = dx->dim[0] * dx->dim[1], size = dx->dim[2] * dx->dim[3];
    GP_PARALLEL(c->run, planes * size > 8192)
    for (int64_t i = 0; i < planes; i++)
        gp_avgpool_back(&v, a, gp_plane(dy, i), (gp_real *)dx->data + i * size);
    return GP_OK;
}

#endif
