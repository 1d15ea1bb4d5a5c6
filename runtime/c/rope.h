/* rope: rotates pairs of a head by angles that grow with the position (Su et al. 2021).
 *
 * The pairs are element i and element i + D/2: halves, not neighbours. Position t rotates pair i by
 * t / base^(2i/D). May run in place. */
#ifndef GP_ROPE_H
#define GP_ROPE_H

#include "line.h"
#include "settings.h"

GP_FUNCTION void gp_rope_row(const gp_real *x, int64_t stride, gp_real *to, int64_t half,
                             const gp_real *cosine, const gp_real *sine)
{
    for (int64_t i = 0; i < half; i++) {
        gp_real a = x[i * stride], b = x[(i + half) * stride];
        to[i] = a * cosine[i] - b * sine[i];
        to[i + half] = b * cosine[i] + a * sine[i];
    }
}

/* Cosines and sines of one position, for each thread; of 16 bits, a row and its result. */
GP_FUNCTION int64_t gp_rope_room(const gp_call *c)
{
    return (gp_is_half(c) ? 3 : 1) * c->in[0].dim[c->in[0].rank - 1];
}

GP_WORKSPACE(rope)
{
    return (size_t)(c->run->threads * gp_rope_room(c)) * sizeof(gp_real);
}

GP_WAYS(rope)
{
    gp_way(ways, "rope_half", gp_is_half(c));
}

GP_KERNEL(rope)
{
    const gp_rope_attr *a = c->attr;
    const gp_tensor *x = &c->in[0];
    int time = x->rank - 2;
    int64_t length = x->dim[time], size = x->dim[time + 1], half = size / 2;
    gp_line outer = {.rank = 0};
    for (int i = 0; i < time; i++)
        gp_line_add(&outer, x->dim[i], x->stride[i]);
    int64_t rows = gp_line_count(&outer);
    const int64_t room = gp_rope_room(c);
    GP_PARALLEL(c->run, length > 1 && rows * length * size > 1024)
    for (int64_t t = 0; t < length; t++) {
        gp_real *cosine = (gp_real *)c->work + gp_thread() * room, *sine = cosine + half;
        for (int64_t i = 0; i < half; i++) {
            double frequency = pow(a->base, -2.0 * (double)i / (double)size);
            double angle = (double)(t + a->offset) * frequency;
            cosine[i] = (gp_real)cos(angle);
            sine[i] = (gp_real)(a->back ? -sin(angle) : sin(angle));
        }
        for (int64_t row = 0; row < rows; row++) {
            int64_t at = gp_line_at(&outer, row) + t * x->stride[time];
            if (GP_WAY(rope_half, gp_is_half(c))) {
                gp_real *own = cosine + size;
                gp_get_run(own, gp_element(x, at), x->stride[time + 1], size, x->dtype);
                gp_rope_row(own, 1, own + size, half, cosine, sine);
                gp_store_row(&c->out[0], row * length + t, own + size, size);
                continue;
            }
            gp_rope_row((const gp_real *)x->data + at, x->stride[time + 1],
                        (gp_real *)c->out[0].data + (row * length + t) * size, half, cosine, sine);
        }
    }
    return GP_OK;
}

#endif
