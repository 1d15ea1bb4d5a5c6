/* Adds a tensor to a window of another: x, and x[offset + i stride] += dy[i]. */
#ifndef GP_ADD_WINDOW_H
#define GP_ADD_WINDOW_H

#include "line.h"
#include "settings.h"

enum { GP_WINDOW_LANES = GP_BLOCK(256, 4) }; /* elements of 16 bits that are widened at once */

/* n elements of dy from `from`, added to those of `to`, of any real types. */
GP_FUNCTION void gp_add_window_half(const gp_tensor *to, int64_t at, int64_t to_step,
                                    const gp_tensor *dy, int64_t from, int64_t step, int64_t n)
{
    gp_real sum[GP_WINDOW_LANES], add[GP_WINDOW_LANES];
    for (int64_t i = 0, some; i < n; i += some) {
        some = n - i < GP_WINDOW_LANES ? n - i : GP_WINDOW_LANES;
        for (int64_t k = 0; k < some; k++) {
            sum[k] = gp_get_real(to->data, at + (i + k) * to_step, to->dtype);
            add[k] = gp_get_real(dy->data, from + (i + k) * step, dy->dtype);
        }
        for (int64_t k = 0; k < some; k++)
            gp_set_real(to->data, at + (i + k) * to_step, to->dtype, sum[k] + add[k]);
    }
}

GP_WAYS(add_window)
{
    gp_way(ways, "window_half", gp_is_half(c));
}

GP_KERNEL(add_window)
{
    const gp_add_window_attr *a = c->attr;
    const gp_tensor *dy = &c->in[1];
    gp_real *to = c->out[0].data;
    if (to != c->in[0].data)
        memcpy(to, c->in[0].data, (size_t)gp_count(&c->in[0]) * gp_size(c->in[0].dtype));
    /* Axes that are contiguous on both sides are merged; the last axis is the inner loop. */
    const int last = dy->rank - 1;
    const int64_t width = last < 0 ? 1 : dy->dim[last], count = gp_count(dy) / width;
    const int64_t from_step = last < 0 ? 1 : dy->stride[last];
    const int64_t to_step = last < 0 ? 1 : a->stride[last];
    GP_PARALLEL(c->run, count * width > 1 << 15)
    for (int64_t row = 0; row < count; row++) {
        int64_t from_at = 0, to_at = a->offset, rest = row;
        for (int d = last - 1; d >= 0; rest /= dy->dim[d--]) {
            from_at += rest % dy->dim[d] * dy->stride[d];
            to_at += rest % dy->dim[d] * a->stride[d];
        }
        if (GP_WAY(window_half, gp_is_half(c))) {
            gp_add_window_half(&c->out[0], to_at, to_step, dy, from_at, from_step, width);
            continue;
        }
        const gp_real *x = (const gp_real *)dy->data + from_at;
        for (int64_t i = 0; i < width; i++)
            to[to_at + i * to_step] += x[i * from_step];
    }
    return GP_OK;
}

#endif
