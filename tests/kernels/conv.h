/* Convolutions as their formula has them: y[n, o, i, j] = b[o] + the sum over c, k, l of
 * x[n, g + c, i * stride + k * dilation - pad, ...] * w[o, c, k, l], and what each operand gets of
 * a gradient, which is the same sum the other way round. */
#ifndef CONV_H
#define CONV_H

#include "check.h"

typedef struct {
    int64_t n, c, o, size[2], kernel[2], stride[2], pad[4], dilation[2], groups;
    int bias;
    Layout x, y;
} Conv;

/* Outputs along an axis. */
static int64_t conv_outputs(const Conv *v, int axis)
{
    const int64_t reach = (v->kernel[axis] - 1) * v->dilation[axis] + 1;
    return (v->size[axis] + v->pad[axis] + v->pad[2 + axis] - reach) / v->stride[axis] + 1;
}

typedef enum { FORWARD, BY_INPUT, BY_WEIGHTS } Direction;

static void conv_sums(const Conv *v, double *x, double *w, double *y, Direction to)
{
    const int64_t high = conv_outputs(v, 0), wide = conv_outputs(v, 1), own = v->c / v->groups;
    for (int64_t i = 0; i < v->n * v->o * own * v->kernel[0] * v->kernel[1]; i++) {
        const int64_t kj = i % v->kernel[1], ki = i / v->kernel[1] % v->kernel[0];
        const int64_t c = i / v->kernel[1] / v->kernel[0] % own;
        const int64_t o = i / v->kernel[1] / v->kernel[0] / own % v->o;
        const int64_t n = i / v->kernel[1] / v->kernel[0] / own / v->o;
        const int64_t in = o / (v->o / v->groups) * own + c;
        double *weight = w + ((o * own + c) * v->kernel[0] + ki) * v->kernel[1] + kj;
        for (int64_t row = 0; row < high; row++) {
            const int64_t ih = row * v->stride[0] + ki * v->dilation[0] - v->pad[0];
            double *seen = x + ((n * v->c + in) * v->size[0] + ih) * v->size[1];
            double *made = y + ((n * v->o + o) * high + row) * wide;
            if (ih < 0 || ih >= v->size[0])
                continue;
            for (int64_t col = 0; col < wide; col++) {
                const int64_t iw = col * v->stride[1] + kj * v->dilation[1] - v->pad[1];
                if (iw < 0 || iw >= v->size[1])
                    continue;
                if (to == FORWARD)
                    made[col] += seen[iw] * *weight;
                else if (to == BY_INPUT)
                    seen[iw] += made[col] * *weight;
                else
                    *weight += made[col] * seen[iw];
            }
        }
    }
}

typedef struct {
    Array x, w, b, y;
} Operands;

/* Whole numbers, and the sums of one direction. */
static Operands conv_operands(const Conv *v, Direction to)
{
    Operands p = {.x = integers(DIMS(v->n, v->c, v->size[0], v->size[1]), -3, 3),
                  .w = integers(DIMS(v->o, v->c / v->groups, v->kernel[0], v->kernel[1]), -3, 3),
                  .y = integers(DIMS(v->n, v->o, conv_outputs(v, 0), conv_outputs(v, 1)), -3, 3)};
    Array *sums = to == FORWARD ? &p.y : to == BY_INPUT ? &p.x : &p.w;
    const int64_t size = to == BY_WEIGHTS ? 1 : sums->dim[2] * sums->dim[3];
    memset(sums->at, 0, (size_t)sums->count * sizeof *sums->at);
    if (v->bias)
        p.b = integers(1, &sums->dim[1], -9, 9);
    for (int64_t i = 0; v->bias && i < sums->count; i++)
        sums->at[i] = p.b.at[i / size % sums->dim[1]];
    conv_sums(v, p.x.at, p.w.at, p.y.at, to);
    return p;
}

static UNUSED const char *conv_name(const Conv *v)
{
    static char name[200];
    snprintf(name, sizeof name,
             "%d x %d x %d x %d to %d through %d x %d, stride %d %d, pad %d %d %d %d, dilation %d "
             "%d, groups %d, bias %d, laid %d %d",
             (int)v->n, (int)v->c, (int)v->size[0], (int)v->size[1], (int)v->o, (int)v->kernel[0],
             (int)v->kernel[1], (int)v->stride[0], (int)v->stride[1], (int)v->pad[0],
             (int)v->pad[1], (int)v->pad[2], (int)v->pad[3], (int)v->dilation[0],
             (int)v->dilation[1], (int)v->groups, v->bias, v->x, v->y);
    return name;
}

/* A square window that moves by one over images of one row or more; the rest is filled in. */
static UNUSED Conv conv_of(int64_t n, int64_t c, int64_t high, int64_t wide, int64_t o,
                           int64_t kernel, int64_t pad)
{
    return (Conv){.n = n,
                  .c = c,
                  .o = o,
                  .size = {high, wide},
                  .kernel = {kernel < high ? kernel : high, kernel},
                  .stride = {1, 1},
                  .pad = {high > 1 ? pad : 0, pad, high > 1 ? pad : 0, pad},
                  .dilation = {1, 1},
                  .groups = 1};
}

/* Windows of one place on images about as large as `most`, in numbers read and written. */
static UNUSED void conv_large_points(int64_t most, void (*run)(Conv))
{
    for (int64_t off = -1; off <= 1; off++)
        for (int as = 0; as < 9; as += GP_TINY ? 1 : 4) {
            Conv v = conv_of(1 + (as + 2 + off) % 2, 5, 1, most / 8 + off, 3, 1, 0);
            v.x = as % 3;
            v.y = as / 3;
            run(v);
        }
}

/* Any shape with that many channels and places at most. */
static UNUSED Conv conv_any(int64_t channels, int64_t places)
{
    Conv v = {.n = draw(1, 3), .groups = draw(1, 3)};
    v.c = v.groups * draw(1, channels);
    v.o = v.groups * draw(1, channels);
    const int plain = draw(0, 3) == 0;
    for (int i = 0; i < 2; i++) {
        v.kernel[i] = plain ? 1 : draw(1, 4);
        v.stride[i] = plain || draw(0, 1) ? 1 : draw(1, 3);
        v.dilation[i] = draw(1, 2);
        v.pad[i] = plain ? 0 : draw(0, v.kernel[i]);
        v.pad[2 + i] = plain ? 0 : draw(0, v.kernel[i]);
        v.size[i] = (v.kernel[i] - 1) * v.dilation[i] + 1 + draw(0, places);
    }
    v.bias = (int)draw(0, 1);
    v.x = (Layout)draw(0, 2);
    v.y = (Layout)draw(0, 2);
    return v;
}

#endif
