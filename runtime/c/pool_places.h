/* Which place of its window each output of maxpool2d took, as its gradient wants to know: the first
 * of the largest, or the first NaN. */
#ifndef GP_POOL_PLACES_H
#define GP_POOL_PLACES_H

#include "pool_dilated.h"
#include "pool_join.h"

enum { GP_POOL_OUTPUTS = GP_BLOCK(128, 6) }; /* outputs compared at a time */

/* The part inside the image of a window that starts at `first`. */
GP_FUNCTION gp_range gp_pool_inside(int64_t first, int64_t kernel, int64_t size)
{
    return (gp_range){first > 0 ? first : 0, first + kernel < size ? first + kernel : size};
}

GP_FUNCTION gp_range gp_pool_whole(int64_t outputs, int64_t stride, int64_t pad, int64_t kernel,
                                   int64_t size)
{
    return size < kernel ? (gp_range){outputs, outputs}
                         : gp_inside(0, outputs, stride, -pad, size - kernel + 1);
}

/* The windows of a plane of x. */
typedef struct {
    const gp_tensor *x;
    int64_t kernel[2], stride[2], pad[2];
    gp_range whole; /* outputs of a row whose windows are inside in all columns */
} gp_pool_windows;

GP_FUNCTION gp_pool_windows gp_pool_windows_of(const gp_tensor *x, const gp_tensor *y,
                                               const int64_t *kernel, const int64_t *stride,
                                               const int64_t *pad)
{
    gp_pool_windows v = {.x = x};
    for (int i = 0; i < 2; i++) {
        v.kernel[i] = kernel[i];
        v.stride[i] = stride[i];
        v.pad[i] = pad[i];
    }
    v.whole = gp_pool_whole(y->dim[3], stride[1], pad[1], kernel[1], x->dim[3]);
    return v;
}

/* The index in its window of one output's maximum, or -1 where the window is all padding. The first
 * of equal maxima, or the first NaN: as in the forward pass. */
GP_FUNCTION gp_real gp_maxpool_found(const gp_pool_windows *v, const gp_real *plane, gp_range rows,
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
#endif

/* Outputs at .. at + n - 1 of a row whose window starts in row `top`: the indices of their
 * maxima. */
GP_FUNCTION void gp_maxpool_find(const gp_pool_windows *v, const gp_real *plane, int64_t top,
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

#if defined(GP_SHUFFLES)
typedef unsigned char gp_zip_bytes
    __attribute__((vector_size(GP_ZIP_LANES), aligned(1), may_alias));
typedef __typeof__(__builtin_choose_expr(sizeof(gp_real) == 4, (int32_t)0, (int64_t)0)) gp_zip_int;
typedef gp_zip_int gp_zip_mask __attribute__((vector_size(GP_ZIP_LANES * sizeof(gp_zip_int))));

/* What is equal to the largest stands at `place`. */
#define GP_POOL_IS(v, place)                                                       \
    do {                                                                           \
        const gp_zip_mask is_ = (gp_zip_mask)((v) == most);                        \
        found = (is_ & ((gp_zip_mask){0} + (gp_zip_int)(place))) | (~is_ & found); \
    } while (0)

/* gp_pool_pairs for the largest of finite elements of at most three rows, and their places, counted
 * from `place`. The largest is joined in the same order: 0 and -0 are not told apart otherwise. */
GP_FUNCTION void gp_maxpool_pairs(gp_real *restrict to, uint8_t *restrict took, int64_t n,
                                  const gp_real *restrict from, int before, int64_t rows,
                                  int64_t row, int64_t kernel, int64_t place,
                                  gp_real *restrict check)
{
    gp_zip_lanes zero = {0};
    for (int64_t i = 0; i < n; i += GP_ZIP_LANES) {
        const int64_t at = i + GP_ZIP_LANES <= n ? i : n - GP_ZIP_LANES;
        gp_zip_lanes left[3] = {{0}}, even[3] = {{0}}, odd[3] = {{0}};
        for (int k = 0; k < 3; k++) {
            const gp_real *two = from + 2 * at + (k < rows ? k : 0) * row;
            const gp_zip_lanes p = ((const gp_zip_lanes *)two)[0];
            const gp_zip_lanes q = ((const gp_zip_lanes *)two)[1];
            const gp_zip_lanes first =
                (gp_zip_lanes){0} + (at > 0 || before ? two[-1] : -(gp_real)INFINITY);
            even[k] = __builtin_shufflevector(p, q, GP_EVENS);
            odd[k] = __builtin_shufflevector(p, q, GP_ODDS);
            left[k] = __builtin_shufflevector(first, odd[k], GP_BEFORE);
            zero += (p + q) * 0;
            if (kernel == 3 && at == 0 && before)
                zero += first * 0;
            gp_pool_ask(two);
            gp_pool_ask(two + GP_ZIP_LANES);
            if (rows == 2 && k == 1)
                break;
        }
        gp_zip_lanes most = even[0], third = left[0], last = odd[0];
        for (int k = 1; k < 3 && k < rows; k++) {
            GP_POOL_TAKE(gp_zip_lanes, most, even[k]);
            GP_POOL_TAKE(gp_zip_lanes, third, left[k]);
            GP_POOL_TAKE(gp_zip_lanes, last, odd[k]);
        }
        if (kernel == 3)
            GP_POOL_TAKE(gp_zip_lanes, most, third);
        GP_POOL_TAKE(gp_zip_lanes, most, last);
        gp_zip_mask found = {0};
        for (int k = 3; k-- > 0;) {
            if (k >= rows)
                continue;
            GP_POOL_IS(odd[k], place + k * kernel + kernel - 1);
            GP_POOL_IS(even[k], place + k * kernel + kernel - 2);
            if (kernel == 3)
                GP_POOL_IS(left[k], place + k * kernel);
        }
        *(gp_zip_lanes *)(to + at) = most;
        *(gp_zip_bytes *)(took + at) = __builtin_convertvector(found, gp_zip_bytes);
    }
    *(gp_zip_lanes *)check += zero;
}
#undef GP_POOL_IS
#endif

/* Those of some rows of outputs of a plane, into the bytes or integers `to` from element `first`.
 */
GP_FUNCTION void gp_maxpool_places(const gp_pool_windows *v, const gp_real *plane, int64_t row,
                                   int64_t rows, int64_t width, const gp_tensor *to, int64_t first)
{
    gp_real found[GP_POOL_OUTPUTS];
    for (int64_t i = row; i < row + rows; i++)
        for (int64_t at = 0; at < width; at += GP_POOL_OUTPUTS) {
            const int64_t n = width - at < GP_POOL_OUTPUTS ? width - at : GP_POOL_OUTPUTS;
            uint8_t *bytes = (uint8_t *)to->data + first + i * width + at;
            int32_t *integers = (int32_t *)to->data + first + i * width + at;
            gp_maxpool_find(v, plane, i * v->stride[0] - v->pad[0], at, n, found);
            if (to->dtype == GP_U8)
                for (int64_t j = 0; j < n; j++)
                    bytes[j] = (uint8_t)(int32_t)found[j];
            else
                for (int64_t j = 0; j < n; j++)
                    integers[j] = (int32_t)found[j];
        }
}

#endif
