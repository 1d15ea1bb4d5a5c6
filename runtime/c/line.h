/* Several axes of a tensor as one line of elements in row-major order, whatever their strides. Axes
 * that are contiguous with each other are merged, so most lines have one axis or two. */
#ifndef GP_LINE_H
#define GP_LINE_H

#include "narrow.h"

typedef struct {
    int32_t rank;
    int64_t dim[GP_MAX_RANK], stride[GP_MAX_RANK];
} gp_line;

/* Appends an innermost axis. */
GP_FUNCTION void gp_line_add(gp_line *line, int64_t dim, int64_t stride)
{
    int last = line->rank - 1;
    if (dim == 1)
        return;
    if (last >= 0 && line->stride[last] == stride * dim) {
        line->dim[last] *= dim;
        line->stride[last] = stride;
        return;
    }
    line->dim[line->rank] = dim;
    line->stride[line->rank++] = stride;
}

GP_FUNCTION int64_t gp_line_count(const gp_line *line)
{
    int64_t count = 1;
    for (int i = 0; i < line->rank; i++)
        count *= line->dim[i];
    return count;
}

/* The offset of element i, in elements. */
GP_FUNCTION int64_t gp_line_at(const gp_line *line, int64_t i)
{
    int64_t at = 0;
    for (int d = line->rank; d-- > 0; i /= line->dim[d])
        at += i % line->dim[d] * line->stride[d];
    return at;
}

/* One element as a real number, whatever its dtype. */
GP_FUNCTION gp_real gp_load_real(const gp_tensor *t, int64_t at)
{
    switch (t->dtype) {
    case GP_F32:
    case GP_F16:
    case GP_BF16:
        return gp_get_real(t->data, at, t->dtype);
    case GP_I32:
        return (gp_real)((const int32_t *)t->data)[at];
    case GP_I64:
        return (gp_real)((const int64_t *)t->data)[at];
    default:
        return (gp_real)((const uint8_t *)t->data)[at];
    }
}

/* One element of an integer dtype. */
GP_FUNCTION int64_t gp_load_int(const gp_tensor *t, int64_t at)
{
    switch (t->dtype) {
    case GP_I32:
        return ((const int32_t *)t->data)[at];
    case GP_I64:
        return ((const int64_t *)t->data)[at];
    default:
        return ((const uint8_t *)t->data)[at];
    }
}

GP_FUNCTION void gp_store_int(const gp_tensor *t, int64_t at, int64_t x)
{
    if (t->dtype == GP_I32)
        ((int32_t *)t->data)[at] = (int32_t)x;
    else if (t->dtype == GP_I64)
        ((int64_t *)t->data)[at] = x;
    else
        ((uint8_t *)t->data)[at] = (uint8_t)x;
}

/* Whether n elements of it are not contiguous. */
GP_FUNCTION int gp_line_has_gaps(const gp_line *line, int64_t n)
{
    return n > 1 && line->rank > 0 && (line->rank > 1 || line->stride[0] != 1);
}

/* Elements i to i + n of the line at `base`, copied to the buffer as reals. */
GP_FUNCTION const gp_real *gp_line_copy(const gp_tensor *t, const gp_line *line, int64_t base,
                                        int64_t i, int64_t n, gp_real *buffer)
{
    const gp_real *data = (const gp_real *)t->data;
    const int inner = line->rank - 1;
    for (int64_t done = 0; done < n;) {
        int64_t dim = inner < 0 ? 1 : line->dim[inner];
        int64_t stride = inner < 0 ? 0 : line->stride[inner];
        int64_t at = base + gp_line_at(line, i + done);
        int64_t run = dim - (i + done) % dim;
        run = run < n - done ? run : n - done;
        if (GP_WAY(line_reals, t->dtype == GP_F32))
            for (int64_t k = 0; k < run; k++)
                buffer[done + k] = data[at + k * stride];
        else if (GP_WAY(line_half, gp_is_real(t->dtype)))
            gp_get_run(buffer + done, gp_element(t, at), stride, run, t->dtype);
        else
            for (int64_t k = 0; k < run; k++)
                buffer[done + k] = gp_load_real(t, at + k * stride);
        done += run;
    }
    return buffer;
}

/* The same in place where they are contiguous reals. */
GP_FUNCTION const gp_real *gp_line_read(const gp_tensor *t, const gp_line *line, int64_t base,
                                        int64_t i, int64_t n, gp_real *buffer)
{
    (void)buffer; /* for copies */
    if (GP_WAY(line_copies, t->dtype != GP_F32 || gp_line_has_gaps(line, n)))
        return gp_line_copy(t, line, base, i, n, buffer);
    return (const gp_real *)t->data + base + gp_line_at(line, i);
}

#endif
