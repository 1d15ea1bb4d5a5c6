/* resize against its definition: along each axis, every element weighed by a filter around the
 * place that an element of the result stands at. */
#include "tests/ops/cases.h"

#include <math.h>

static double place(const Case *c, double o, double in, double out, double scale)
{
    double width = scale * in;
    if (case_is_word(c, "coordinates", "align_corners"))
        return width == 1 ? 0 : o * (in - 1) / (width - 1);
    if (case_is_word(c, "coordinates", "asymmetric"))
        return o / scale;
    if (case_is_word(c, "coordinates", "tf_crop_and_resize")) {
        double begin = case_number(c, "begin"), end = case_number(c, "end");
        return width > 1 ? begin * (in - 1) + o * (end - begin) * (in - 1) / (width - 1)
                         : 0.5 * (begin + end) * (in - 1);
    }
    if (case_is_word(c, "coordinates", "pytorch_half_pixel") && width <= 1)
        return 0;
    double moved =
        case_is_word(c, "coordinates", "half_pixel_symmetric") ? in / 2 * (1 - out / width) : 0;
    return moved + (o + 0.5) / scale - 0.5;
}

static double filter(const Case *c, double d)
{
    double a = case_number(c, "a"), x = fabs(d);
    if (case_is_word(c, "mode", "linear"))
        return fmax(0, 1 - x);
    return x <= 1  ? (a + 2) * x * x * x - (a + 3) * x * x + 1
           : x < 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a
                   : 0;
}

static double nearest(const Case *c, double p)
{
    double low = floor(p), part = p - low;
    if (case_is_word(c, "round", "floor") || part == 0)
        return low;
    if (case_is_word(c, "round", "ceil"))
        return low + 1;
    return low + (part > 0.5 || (part == 0.5 && case_is_word(c, "round", "round_prefer_ceil")));
}

static double clamped(double p, int64_t size)
{
    return fmin(fmax(p, 0), (double)size - 1);
}

/* How much element i of an axis counts at place p. */
static double share(const Case *c, double p, int64_t i, int64_t in, double scale)
{
    if (case_is_word(c, "mode", "nearest"))
        return clamped(nearest(c, p), in) == (double)i;
    double wide = case_number(c, "antialias") != 0 ? fmin(scale, 1) : 1, own = 0, all = 0;
    for (int64_t j = -4 * in - 9; j < 5 * in + 9; j++) {
        double w = filter(c, ((double)j - p) * wide);
        if (case_number(c, "exclude_outside") != 0 && (j < 0 || j >= in))
            continue;
        all += w;
        own += clamped((double)j, in) == (double)i ? w : 0;
    }
    return own / all;
}

/* [outers, in, inners] along one axis. */
static Tensor along(const Case *c, const Tensor *x, int axis, int64_t out, double scale)
{
    int64_t dim[MAX_RANK], inners = 1, in = x->dim[axis];
    for (int i = 0; i < x->rank; i++)
        dim[i] = i == axis ? out : x->dim[i];
    for (int i = axis + 1; i < x->rank; i++)
        inners *= dim[i];
    Tensor y = case_new(c, F32, x->rank, dim);
    for (int64_t k = 0; k < y.count; k++) {
        double p = place(c, (double)(k / inners % out), (double)in, (double)out, scale);
        bool outside =
            case_is_word(c, "coordinates", "tf_crop_and_resize") && (p < 0 || p > (double)in - 1);
        y.at[k] = outside ? case_number(c, "outside") : 0;
        for (int64_t i = 0; i < in && !outside; i++)
            y.at[k] += share(c, p, i, in, scale) *
                       x->at[(k / inners / out * in + i) * inners + k % inners];
    }
    return y;
}

static Tensor resize(const Case *c)
{
    Tensor y = c->in[0];
    int given = case_count(c, "axis"), rank = y.rank;
    for (int i = 0; i < (given ? given : rank - 2); i++) {
        int64_t axis = given ? case_at(c, "axis", i) : i + 2;
        axis = axis < 0 ? axis + rank : axis;
        double scale = case_number(c, "scale"), in = (double)y.dim[axis];
        int64_t out = case_count(c, "size") ? case_at(c, "size", i) : (int64_t)floor(in * scale);
        y = along(c, &y, (int)axis, out, scale > 0 ? scale : (double)out / in);
    }
    return y;
}

#define IMAGE "f32[2, 3, 5, 6]"
#define CROP "coordinates = tf_crop_and_resize, "

OP_CASES(resize) = {
    {"resize", IMAGE, "size = [9, 4]", resize},
    {"resize", IMAGE, "size = [10, 3], round = floor, coordinates = asymmetric", resize},
    {"resize", IMAGE, "size = 7, round = ceil", resize},
    {"resize", IMAGE, "scale = 3.0, round = floor", resize},
    {"resize", IMAGE, "scale = 2.0, round = round_prefer_ceil, coordinates = align_corners",
     resize},
    {"resize", IMAGE, "scale = 1.5, mode = linear", resize},
    {"resize", IMAGE, "scale = 0.6, mode = linear", resize},
    {"resize", IMAGE, "size = [8, 5], mode = linear, coordinates = align_corners", resize},
    {"resize", IMAGE, "size = [1, 13], mode = linear, coordinates = align_corners", resize},
    {"resize", IMAGE, "size = [1, 13], mode = linear, coordinates = pytorch_half_pixel", resize},
    {"resize", IMAGE, "scale = 1.3, mode = linear, coordinates = half_pixel_symmetric", resize},
    {"resize", IMAGE, "scale = 0.6, mode = linear, antialias = true", resize},
    {"resize", IMAGE, "size = 2, mode = cubic, antialias = true", resize},
    {"resize", IMAGE, "size = 2, mode = cubic, antialias = true, exclude_outside = true, a = -0.5",
     resize},
    {"resize", IMAGE, "scale = 2.0, mode = cubic", resize},
    {"resize", IMAGE, "scale = 0.8, mode = cubic, exclude_outside = true, a = -0.5", resize},
    {"resize", IMAGE, "scale = 1.7, mode = cubic, coordinates = asymmetric", resize},
    {"resize", IMAGE, CROP "size = [3, 4], mode = linear, begin = 0.4, end = 0.6", resize},
    {"resize", IMAGE, CROP "size = [3, 1], mode = linear, begin = 0.6, end = 1.7, outside = 10.0",
     resize},
    {"resize", IMAGE, CROP "size = 5, axis = 2, begin = -0.3, end = 0.6, outside = -1.0", resize},
    {"resize", "f32[4, 5]", "size = [7, 3], axis = [-1, 0], mode = linear", resize},
    {"resize", "f32[1, 2, 3, 4, 2]", "size = [2, 8, 3], mode = linear", resize},
    {"resize", "f32[1, 1, 1, 1]", "scale = 3.5, mode = cubic", resize},
    {"resize", "f32[1, 2, 16, 20]", "size = [37, 9], mode = cubic", resize},
    {"resize", IMAGE, "size = [5, 6]", resize},
    {0},
};

OP_ERRORS(resize) = {
    {"resize", IMAGE, "", "resize: needs size"},
    {"resize", IMAGE, "scale = -1.0", "scale = -1 must be positive"},
    {"resize", IMAGE, "scale = 0.1", "an axis of 5 would have nothing left"},
    {"resize", IMAGE, "scale = 900000000.0", "more than 2^31 elements"},
    {"resize", IMAGE, "size = 0", "would have nothing left"},
    {"resize", IMAGE, "size = [2, 3, 4]", "size takes one number or 2"},
    {"resize", IMAGE, "size = 3, axis = 4", "axis = 4 is out of range"},
    {"resize", IMAGE, "size = 3, antialias = true", "antialias means nothing"},
    {"resize", "f32[4, 5]", "size = 3", "x must be [N, C, ...], or axis given"},
    {"resize", "i32[1, 1, 4, 5]", "size = 3", "resize: takes f32"},
    {0},
};
