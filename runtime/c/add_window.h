/* Adds a tensor to a window of another: x, and x[offset + i stride] += dy[i]. */
#ifndef GP_ADD_WINDOW_H
#define GP_ADD_WINDOW_H

#include "line.h"
#include "settings.h"

GP_KERNEL(add_window)
{
    const gp_add_window_attr *a = c->attr;
    const gp_tensor *dy = &c->in[1];
    gp_real *to = c->out[0].data;
    if (to != c->in[0].data)
        memcpy(to, c->in[0].data, (size_t)gp_count(&c->in[0]) * sizeof *to);
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
        const gp_real *x = (const gp_real *)dy->data + from_at;
        for (int64_t i = 0; i < width; i++)
            to[to_at + i * to_step] += x[i * from_step];
    }
    return GP_OK;
}

#endif
