/* The gradients of pooling: maxpool2d_grad finds the largest of each window again, avgpool2d_grad
 * needs the sizes alone. Windows may overlap, so a plane is the work of one thread, which adds in
 * the order of the outputs. */
#ifndef GP_POOL_GRAD_H
#define GP_POOL_GRAD_H

#include "pool.h"

typedef gp_maxpool2d_attr gp_maxpool2d_grad_attr;
typedef gp_avgpool2d_attr gp_avgpool2d_grad_attr;

/* The first of the largest gets the gradient, or the first NaN: as the way forward chose. */
GP_FUNCTION void gp_maxpool_back(const gp_tensor *x, const gp_tensor *dy,
                                 const gp_maxpool2d_attr *a, const gp_real *plane,
                                 const gp_real *up, gp_real *to)
{
    for (int64_t i = 0; i < dy->dim[2]; i++)
        for (int64_t j = 0; j < dy->dim[3]; j++) {
            gp_real best = -(gp_real)INFINITY;
            int64_t found = -1;
            for (int64_t k = 0; k < a->kernel[0] * a->kernel[1]; k++) {
                const int64_t ih = i * a->stride[0] - a->pad[0] + k / a->kernel[1];
                const int64_t iw = j * a->stride[1] - a->pad[1] + k % a->kernel[1];
                if (ih < 0 || ih >= x->dim[2] || iw < 0 || iw >= x->dim[3])
                    continue;
                const gp_real v = plane[ih * x->stride[2] + iw * x->stride[3]];
                if (found < 0 || v > best || (v != v && best == best)) {
                    best = v;
                    found = ih * x->dim[3] + iw;
                }
            }
            if (found >= 0)
                to[found] += up[i * dy->dim[3] + j];
        }
}

GP_KERNEL(maxpool2d_grad)
{
    const gp_tensor *x = &c->in[0], *dy = &c->in[1];
    const int64_t planes = x->dim[0] * x->dim[1], size = x->dim[2] * x->dim[3];
    gp_real *dx = c->out[0].data;
    GP_PARALLEL(c->run, planes * size > 8192)
    for (int64_t i = 0; i < planes; i++) {
        memset(dx + i * size, 0, (size_t)size * sizeof *dx);
        gp_maxpool_back(x, dy, c->attr, gp_plane(x, i), gp_plane(dy, i), dx + i * size);
    }
    return GP_OK;
}

GP_FUNCTION void gp_avgpool_back(const gp_tensor *dx, const gp_tensor *dy,
                                 const gp_avgpool2d_attr *a, const gp_real *up, gp_real *to)
{
    const int64_t height = dx->dim[2], width = dx->dim[3], all = a->count_include_pad;
    for (int64_t i = 0; i < dy->dim[2]; i++)
        for (int64_t j = 0; j < dy->dim[3]; j++) {
            const int64_t top = i * a->stride[0] - a->pad[0], left = j * a->stride[1] - a->pad[1];
            const int64_t rows = gp_pool_count(top, a->kernel[0], all ? -a->pad[0] : 0,
                                               height + (all ? a->pad[2] : 0));
            const int64_t columns = gp_pool_count(left, a->kernel[1], all ? -a->pad[1] : 0,
                                                  width + (all ? a->pad[3] : 0));
            const gp_real share = up[i * dy->dim[3] + j] / (gp_real)(rows * columns);
            for (int64_t ih = top < 0 ? 0 : top; ih < top + a->kernel[0] && ih < height; ih++)
                for (int64_t iw = left < 0 ? 0 : left; iw < left + a->kernel[1] && iw < width; iw++)
                    to[ih * width + iw] += share;
        }
}

GP_KERNEL(avgpool2d_grad)
{
    const gp_tensor *dy = &c->in[0], *dx = &c->out[0];
    const int64_t planes = dx->dim[0] * dx->dim[1], size = dx->dim[2] * dx->dim[3];
    GP_PARALLEL(c->run, planes * size > 8192)
    for (int64_t i = 0; i < planes; i++) {
        gp_real *to = (gp_real *)dx->data + i * size;
        memset(to, 0, (size_t)size * sizeof *to);
        gp_avgpool_back(dx, dy, c->attr, gp_plane(dy, i), to);
    }
    return GP_OK;
}

#endif
