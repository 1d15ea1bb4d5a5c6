/* rope: rotates pairs of a head by angles that grow with the position (Su et al. 2021).
 *
 * The pairs are element i and element i + D/2: halves, not neighbours. Position t rotates pair i by
 * t / base^(2i/D). Cosines and sines are computed once for all rows. May run in place. */
#ifndef GP_ROPE_CUH
#define GP_ROPE_CUH

#include "base.cuh"

/* [position][cosines, then sines of the pairs] */
static __global__ void gp_rope_angles(gp_rope_attr a, int64_t length, int64_t half, gp_real *table)
{
    for (GP_EACH(k, length * half)) {
        const int64_t t = k / half, i = k % half;
        const double frequency = pow(a.base, -2.0 * (double)i / (double)(2 * half));
        const double angle = (double)(t + a.offset) * frequency;
        gp_real *cosine = table + 2 * t * half;
        cosine[i] = (gp_real)cos(angle);
        cosine[half + i] = (gp_real)(a.back ? -sin(angle) : sin(angle));
    }
}

static __global__ void gp_rope_pairs(gp_line outer, gp_tensor x, int64_t length, int64_t half,
                                     const gp_real *table, gp_reals to, int64_t pairs)
{
    const int64_t step = x.stride[x.rank - 1];
    for (GP_EACH(k, pairs)) {
        const int64_t i = k % half, t = k / half % length, row = k / half / length;
        const gp_reals from =
            gp_reals_from(gp_reals_of(&x), gp_line_at(&outer, row) + t * x.stride[x.rank - 2]);
        const gp_real cosine = table[2 * t * half + i], sine = table[(2 * t + 1) * half + i];
        const gp_real a = from[i * step], b = from[(i + half) * step];
        const gp_reals out = gp_reals_from(to, (row * length + t) * 2 * half);
        out.put(i, a * cosine - b * sine);
        out.put(i + half, b * cosine + a * sine);
    }
}

GP_KERNEL(rope)
{
    const gp_rope_attr *a = (const gp_rope_attr *)c->attr;
    const gp_tensor *x = &c->in[0];
    const int time = x->rank - 2;
    const int64_t length = x->dim[time], half = x->dim[time + 1] / 2;
    gp_line outer;
    outer.rank = 0;
    for (int i = 0; i < time; i++)
        gp_line_add(&outer, x->dim[i], x->stride[i]);
    const int64_t angles = length * half, pairs = gp_line_count(&outer) * angles;
    gp_real *table = (gp_real *)c->work;
    const unsigned block = gp_block_of(angles);
    GP_LAUNCH(c, gp_rope_angles, gp_blocks(angles, block), block, 0, *a, length, half, table);
    GP_LAUNCH(c, gp_rope_pairs, gp_blocks(pairs, block), block, 0, outer, *x, length, half,
              (const gp_real *)table, gp_reals_of(&c->out[0]), pairs);
    return GP_OK;
}

GP_TAKES_HALF(rope)

#endif
