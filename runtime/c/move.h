/* Copying tensors of any dtype and strides. */
#ifndef GP_MOVE_H
#define GP_MOVE_H

#include "base.h"

/* n elements, `from_stride` and `to_stride` apart. */
GP_FUNCTION void gp_move_line(size_t size, int64_t n, const unsigned char *from,
                              int64_t from_stride, unsigned char *to, int64_t to_stride)
{
    if (from_stride == 1 && to_stride == 1)
        memcpy(to, from, (size_t)n * size);
    else if (size == 4)
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * to_stride * 4, from + i * from_stride * 4, 4);
    else
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * to_stride * (int64_t)size, from + i * from_stride * (int64_t)size,
                   size);
}

/* Copies all elements of `from` to the same dims with other strides, without overlap. Axes that are
 * contiguous on both sides are merged. */
GP_FUNCTION void gp_move(const gp_run *run, const gp_tensor *from, void *to,
                         const int64_t *to_stride)
{
    (void)run; /* unused without threads */
    int64_t dim[GP_MAX_RANK] = {1}, a[GP_MAX_RANK] = {1}, b[GP_MAX_RANK] = {1}, lines = 1;
    size_t size = gp_size(from->dtype);
    int rank = 0;
    for (int i = 0; i < from->rank; i++) {
        int64_t n = from->dim[i], s = from->stride[i], t = to_stride[i];
        if (n == 1)
            continue;
        if (rank && a[rank - 1] == s * n && b[rank - 1] == t * n) {
            dim[rank - 1] *= n;
            a[rank - 1] = s;
            b[rank - 1] = t;
            continue;
        }
        dim[rank] = n;
        a[rank] = s;
        b[rank++] = t;
    }
    int inner = rank ? rank - 1 : 0;
    for (int i = 0; i < inner; i++)
        lines *= dim[i];
    GP_PARALLEL(run, lines > 1 && lines * dim[inner] > 16384)
    for (int64_t line = 0; line < lines; line++) {
        int64_t from_at = 0, to_at = 0, left = line;
        for (int d = inner; d-- > 0; left /= dim[d]) {
            from_at += left % dim[d] * a[d];
            to_at += left % dim[d] * b[d];
        }
        gp_move_line(size, dim[inner], (const unsigned char *)from->data + from_at * (int64_t)size,
                     a[inner], (unsigned char *)to + to_at * (int64_t)size, b[inner]);
    }
}

#endif
