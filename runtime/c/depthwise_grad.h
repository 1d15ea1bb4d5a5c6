/* The gradient of a depthwise convolution with respect to its weights: each weight is the dot
 * product of dy with x shifted by its tap. */
#ifndef GP_DEPTHWISE_GRAD_H
#define GP_DEPTHWISE_GRAD_H

#include "depthwise.h"
#include "narrow.h"

/* Rows of dy and a band of x. */
typedef struct {
    const gp_real *up, *from;
    int64_t up_row, from_row; /* row strides */
    int64_t rows, n;
} gp_taps_rows;

/* to[k] += the dot product of dy and x through tap k, of three. Lanes are summed pairwise. The last
 * vector of a row overlaps the one before; its lanes that were counted are masked. */
#define GP_TAPS_DOT(name, type)                                                               \
    GP_FUNCTION void name(double *to, const gp_taps_rows *r, const int64_t *tap)              \
    {                                                                                         \
        enum { LANES = sizeof(type) / sizeof(gp_real) };                                      \
        typedef __typeof__((type){0} > (type){0}) mask;                                       \
        type sum[3] = {{0}, {0}, {0}};                                                        \
        const int64_t rest = r->n % LANES;                                                    \
        mask fresh;                                                                           \
        for (int k = 0; k < LANES; k++)                                                       \
            fresh[k] = k >= LANES - rest ? -1 : 0;                                            \
        for (int64_t row = 0; row < r->rows; row++) {                                         \
            const gp_real *up = r->up + row * r->up_row, *from = r->from + row * r->from_row; \
            int64_t i = 0;                                                                    \
            for (; i + LANES <= r->n; i += LANES) {                                           \
                const type dy = *(const type *)(up + i);                                      \
                for (int k = 0; k < 3; k++)                                                   \
                    sum[k] += dy * *(const type *)(from + tap[k] + i);                        \
            }                                                                                 \
            if (rest == 0)                                                                    \
                continue;                                                                     \
            i = r->n - LANES;                                                                 \
            const type last = *(const type *)(up + i), dy = (type)(fresh & (mask)last);       \
            for (int k = 0; k < 3; k++) {                                                     \
                const type x = *(const type *)(from + tap[k] + i);                            \
                sum[k] += dy * (type)(fresh & (mask)x);                                       \
            }                                                                                 \
        }                                                                                     \
        for (int k = 0; k < 3; k++) {                                                         \
            gp_real lane[LANES];                                                              \
            memcpy(lane, &sum[k], sizeof lane);                                               \
            for (int half = LANES / 2; half > 0; half /= 2)                                   \
                for (int l = 0; l < half; l++)                                                \
                    lane[l] += lane[l + half];                                                \
            to[k] += (double)lane[0];                                                         \
        }                                                                                     \
    }
#if defined(__GNUC__)
GP_TAPS_DOT(gp_taps_dot_lanes, gp_lanes)
GP_TAPS_DOT(gp_taps_dot_four, gp_four)
#endif
#undef GP_TAPS_DOT

/* sum[k] += the dot product of dy and x through each tap. */
GP_FUNCTION void gp_taps_dot(double *sum, const gp_taps_rows *r, const gp_taps *t)
{
    int k = 0;
#if defined(__GNUC__)
    for (; r->n >= 4 && k < t->count; k += 3) {
        double three[3] = {0};
        int64_t tap[3];
        for (int i = 0; i < 3; i++)
            tap[i] = t->at[k + i < t->count ? k + i : k];
        if (r->n >= GP_LANES)
            gp_taps_dot_lanes(three, r, tap);
        else
            gp_taps_dot_four(three, r, tap);
        for (int i = 0; i < 3 && k + i < t->count; i++)
            sum[k + i] += three[i];
    }
#endif
    for (; k < t->count; k++)
        for (int64_t row = 0; row < r->rows; row++)
            for (int64_t i = 0; i < r->n; i++)
                sum[k] += (double)r->up[row * r->up_row + i] *
                          (double)r->from[row * r->from_row + t->at[k] + i];
}

/* Tap k of the window over one image, where the inputs do not fit a band. */
GP_FUNCTION double gp_depthwise_weight_one(const gp_depthwise *v, const gp_real *plane,
                                           const gp_real *up, int64_t k)
{
    double sum = 0;
    const int64_t first = k % v->kernel[1] * v->dilation[1] - v->pad[1];
    const gp_range in = gp_inside(0, v->y->dim[3], v->stride[1], first, v->x->dim[3]);
    for (int64_t row = 0; row < v->y->dim[2]; row++) {
        const int64_t i = row * v->stride[0] - v->pad[0] + k / v->kernel[1] * v->dilation[0];
        const gp_real *from = plane + i * v->x->stride[2] + first * v->x->stride[3];
        for (int64_t j = in.from; j < in.to && i >= 0 && i < v->x->dim[2]; j++)
            sum += (double)up[row * v->y->stride[2] + j] *
                   (double)from[j * v->stride[1] * v->x->stride[3]];
    }
    return sum;
}

/* The contribution of one image to dw of one channel: columns at .. at + n - 1 of dy. */
GP_FUNCTION void gp_depthwise_weight_columns(const gp_depthwise *v, const gp_real *plane,
                                             const gp_real *up, int64_t at, int64_t n, double *sum)
{
    const gp_band b = gp_band_of(v, n);
    const int64_t height = v->y->dim[2];
    gp_real band[GP_BAND];
    gp_taps t;
    gp_depthwise_taps(v, &b, &t);
    for (int64_t row = 0; row < height; row += b.outputs) {
        gp_band_fill(v, &b, band, plane, row, height - row, at);
        const gp_taps_rows r = {.up = up + row * v->y->stride[2] + at,
                                .from = band,
                                .up_row = v->y->stride[2],
                                .from_row = v->stride[0] * b.pitch,
                                .rows = height - row < b.outputs ? height - row : b.outputs,
                                .n = n};
        gp_taps_dot(sum, &r, &t);
    }
}

/* A plane of 16 bits in f32, at `to`; the tensor describes it from then on. */
GP_FUNCTION const gp_real *gp_depthwise_widen(gp_tensor *wide, const gp_tensor *t, int64_t n,
                                              int64_t channel, gp_real *to)
{
    for (int64_t row = 0; row < t->dim[2]; row++)
        gp_get_run(to + row * t->dim[3],
                   gp_element(t, n * t->stride[0] + channel * t->stride[1] + row * t->stride[2]),
                   t->stride[3], t->dim[3], t->dtype);
    *wide = *t;
    wide->stride[2] = t->dim[3];
    wide->stride[3] = 1;
    return to;
}

/* dw of output channel `out`, a block of GP_TAPS weights at a time; y is dy. */
GP_FUNCTION void gp_depthwise_weights(const gp_depthwise *given, int64_t out, const gp_call *c)
{
    gp_depthwise own = *given;
    const gp_depthwise *v = &own;
    const gp_tensor *x = given->x, *dy = given->y;
    const int64_t places = v->kernel[0] * v->kernel[1], width = dy->dim[3];
    const int64_t most = width < GP_DEPTHWISE_WIDTH ? width : GP_DEPTHWISE_WIDTH;
    const int banded = gp_depthwise_fits(v); /* then all of them are one block */
    for (int64_t first = 0, some; first < places; first += some) {
        double sum[GP_TAPS] = {0};
        gp_real one[GP_TAPS] = {0}, *dw = (gp_real *)c->out[0].data + out * places + first;
        some = places - first < GP_TAPS ? places - first : GP_TAPS;
        for (int64_t n = 0; n < x->dim[0]; n++) {
            const gp_real *plane =
                (const gp_real *)x->data + n * x->stride[0] + out / v->rows * x->stride[1];
            const gp_real *up = (const gp_real *)dy->data + n * dy->stride[0] + out * dy->stride[1];
            gp_tensor wide[2]; /* of 16 bits */
            (void)wide;
            if (GP_WAY(weight_half, gp_is_half(c))) {
                const int64_t size = gp_span(x, 2, 4), room = size + gp_span(dy, 2, 4);
                gp_real *const at = (gp_real *)c->work + gp_thread() * room;
                plane = gp_depthwise_widen(&wide[0], x, n, out / v->rows, at);
                up = gp_depthwise_widen(&wide[1], dy, n, out, at + size);
                own.x = &wide[0];
                own.y = &wide[1];
            }
            for (int64_t at = 0; banded && at < width; at += most)
                gp_depthwise_weight_columns(v, plane, up, at, width - at < most ? width - at : most,
                                            sum);
            for (int64_t k = 0; !banded && k < some; k++)
                one[k] += (gp_real)gp_depthwise_weight_one(v, plane, up, first + k);
        }
        for (int64_t k = 0; banded && k < some; k++)
            one[k] = (gp_real)sum[k];
        if (c->epilogue)
            gp_epilogue_run(c, one, 1, out * places + first, some);
        memcpy(dw, one, (size_t)some * sizeof *one);
    }
}

#endif
