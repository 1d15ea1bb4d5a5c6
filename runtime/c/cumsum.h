/* cumsum: the running sum along an axis. Reals are summed in double. */
#ifndef GP_CUMSUM_H
#define GP_CUMSUM_H

#include "line.h"
#include "settings.h"

enum { GP_CUMSUM_LANES = GP_BLOCK(32, 4) };

/* n numbers along the axis, `step` apart, for `lanes` neighbours from element `at`. An exclusive
 * sum is stored before the number is added. */
GP_FUNCTION void gp_cumsum_reals(const gp_tensor *t, gp_real *to, int64_t at, int64_t n,
                                 int64_t step, int64_t lanes, int64_t exclusive)
{
    double sum[GP_CUMSUM_LANES] = {0};
    gp_real wide[GP_CUMSUM_LANES];
    (void)wide; /* of 16 bits */
    for (int64_t k = 0; k < n; k++, at += step) {
        const gp_real *x = (const gp_real *)t->data + at;
        if (GP_WAY(cumsum_half, t->dtype != GP_F32)) {
            gp_get_row(wide, gp_element(t, at), lanes, t->dtype);
            x = wide;
        }
        for (int64_t i = 0; i < lanes; i++) {
            const double before = sum[i];
            sum[i] += (double)x[i];
            to[at + i] = (gp_real)(exclusive ? before : sum[i]);
        }
    }
}

GP_FUNCTION void gp_cumsum_ints(const gp_tensor *x, const gp_tensor *to, int64_t at, int64_t n,
                                int64_t step, int64_t lanes, int64_t exclusive)
{
    for (int64_t i = 0; i < lanes; i++) {
        uint64_t sum = 0; /* wraps around */
        for (int64_t k = 0; k < n; k++) {
            const uint64_t before = sum;
            sum += (uint64_t)gp_load_int(x, at + k * step + i);
            gp_store_int(to, at + k * step + i, (int64_t)(exclusive ? before : sum));
        }
    }
}

GP_WAYS(cumsum)
{
    gp_way(ways, "cumsum_half", c->in[0].dtype != GP_F32 && gp_is_real(c->in[0].dtype));
}

GP_KERNEL(cumsum)
{
    const gp_cumsum_attr *a = c->attr;
    const gp_tensor *x = &c->in[0], *to = &c->out[0];
    int axis = (int)a->axis;
    int64_t outer = gp_span(x, 0, axis), n = x->dim[axis];
    int64_t inner = gp_span(x, axis + 1, x->rank);
    int64_t tiles = (inner + GP_CUMSUM_LANES - 1) / GP_CUMSUM_LANES;
    GP_PARALLEL(c->run, outer * n * inner > 8192)
    for (int64_t task = 0; task < outer * tiles; task++) {
        int64_t first = task % tiles * GP_CUMSUM_LANES;
        int64_t at = task / tiles * n * inner + first + (a->reverse ? (n - 1) * inner : 0);
        int64_t step = a->reverse ? -inner : inner;
        int64_t lanes = inner - first < GP_CUMSUM_LANES ? inner - first : GP_CUMSUM_LANES;
        if (gp_is_real(x->dtype))
            gp_cumsum_reals(x, to->data, at, n, step, lanes, a->exclusive);
        else
            gp_cumsum_ints(x, to, at, n, step, lanes, a->exclusive);
    }
    return GP_OK;
}

#endif
