/* grid_sample against its definition: every element of x, weighed by how far a point is from it. */
#include "tests/ops/cases.h"

#include <math.h>

/* A whole place mirrored or clamped; the same for places between in bilinear and nearest. */
static double inside(const Case *c, double p, int64_t size)
{
    bool align = case_number(c, "align_corners") != 0;
    double low = align ? 0 : -0.5, high = align ? (double)size - 1 : (double)size - 0.5;
    if (case_is_word(c, "padding", "zeros"))
        return p;
    if (case_is_word(c, "padding", "reflection")) {
        while (high > low && (p < low || p > high))
            p = p < low ? 2 * low - p : 2 * high - p;
        p = high > low ? p : 0;
    }
    return fmin(fmax(p, 0), (double)size - 1);
}

static double cubic(double d)
{
    double a = -0.75, x = fabs(d);
    return x <= 1  ? (a + 2) * x * x * x - (a + 3) * x * x + 1
           : x < 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a
                   : 0;
}

/* How much element i of an axis counts at coordinate `at`. */
static double share(const Case *c, double at, int64_t i, int64_t size)
{
    bool align = case_number(c, "align_corners") != 0;
    double p = align ? (at + 1) / 2 * ((double)size - 1) : ((at + 1) * (double)size - 1) / 2;
    double sum = 0;
    if (case_is_word(c, "mode", "bicubic")) {
        for (double j = floor(p) - 1; j <= floor(p) + 2; j++)
            sum += inside(c, j, size) == (double)i ? cubic(p - j) : 0;
        return sum;
    }
    p = inside(c, p, size);
    if (case_is_word(c, "mode", "nearest"))
        return fabs(p - (double)i) < 0.5;
    return fmax(0, 1 - fabs(p - (double)i));
}

static Tensor grid_sample(const Case *c)
{
    const Tensor *x = &c->in[0], *grid = &c->in[1];
    int axes = x->rank - 2;
    int64_t dim[5] = {x->dim[0], x->dim[1]}, points = 1, size = 1;
    for (int i = 0; i < axes; i++) {
        dim[2 + i] = grid->dim[1 + i];
        points *= dim[2 + i];
        size *= x->dim[2 + i];
    }
    Tensor y = case_new(c, F32, x->rank, dim);
    for (int64_t k = 0; k < y.count; k++) {
        const double *at = grid->at + (k / points / dim[1] * points + k % points) * axes;
        for (int64_t e = 0; e < size; e++) {
            double weight = 1;
            int64_t rest = e;
            for (int i = 0; i < axes; i++) { /* the last axis is the first coordinate */
                int64_t length = x->dim[x->rank - 1 - i];
                weight *= share(c, at[i], rest % length, length);
                rest /= length;
            }
            y.at[k] += weight * x->at[k / points * size + e];
        }
    }
    return y;
}

#define IMAGE "f32[2, 3, 4, 5] f32[2, 3, 6, 2]:-1.7..1.7"
#define VOLUME "f32[2, 2, 3, 4, 2] f32[2, 2, 3, 2, 3]:-1.7..1.7"

OP_CASES(grid) = {
    {"grid_sample", IMAGE, "", grid_sample},
    {"grid_sample", IMAGE, "align_corners = true", grid_sample},
    {"grid_sample", IMAGE, "padding = border", grid_sample},
    {"grid_sample", IMAGE, "padding = border, align_corners = true", grid_sample},
    {"grid_sample", IMAGE, "padding = reflection", grid_sample},
    {"grid_sample", IMAGE, "padding = reflection, align_corners = true", grid_sample},
    {"grid_sample", IMAGE, "mode = nearest", grid_sample},
    {"grid_sample", IMAGE, "mode = nearest, padding = border, align_corners = true", grid_sample},
    {"grid_sample", IMAGE, "mode = nearest, padding = reflection", grid_sample},
    {"grid_sample", IMAGE, "mode = bicubic", grid_sample},
    {"grid_sample", IMAGE, "mode = bicubic, align_corners = true", grid_sample},
    {"grid_sample", IMAGE, "mode = bicubic, padding = border", grid_sample},
    {"grid_sample", IMAGE, "mode = bicubic, padding = reflection", grid_sample},
    {"grid_sample", IMAGE, "mode = bicubic, padding = reflection, align_corners = true",
     grid_sample},
    {"grid_sample", "f32[1, 2, 1, 3] f32[1, 2, 2, 2]:-9..9",
     "padding = reflection, align_corners = true", grid_sample},
    {"grid_sample", "f32[1, 17, 9, 20] f32[1, 16, 17, 2]:-1.1..1.1", "", grid_sample},
    {"grid_sample", VOLUME, "", grid_sample},
    {"grid_sample", VOLUME, "align_corners = true, padding = reflection", grid_sample},
    {"grid_sample", VOLUME, "mode = nearest, padding = border", grid_sample},
    {0},
};

OP_ERRORS(grid) = {
    {"grid_sample", "f32[2, 3, 4] f32[2, 3, 2]", "", "grid_sample: x must be [N, C, H, W] or"},
    {"grid_sample", "f32[2, 3, 4, 5] f32[2, 3, 6, 3]", "", "grid must be [2, H, W, 2]"},
    {"grid_sample", "f32[2, 3, 4, 5] f32[1, 3, 6, 2]", "", "grid must be [2, H, W, 2]"},
    {"grid_sample", "f32[2, 3, 4, 5] i32[2, 3, 6, 2]", "", "grid_sample: takes f32"},
    {"grid_sample", VOLUME, "mode = bicubic", "mode = bicubic is for images"},
    {0},
};
