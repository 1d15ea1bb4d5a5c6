/* Resize and Upsample. Where an image grows as upsample2d has it, that; else one axis after the
 * other: the nearest is a gather, and what is interpolated a product with a matrix of weights. */
#include "frontend/onnx/translate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum { NEAREST, LINEAR, CUBIC } Mode;

typedef struct {
    Mode mode;
    const char *where, *nearest; /* coordinate_transformation_mode, nearest_mode */
    double cubic_a, extrapolation;
    bool exclude, antialias;
    double scale[MAX_RANK], begin[MAX_RANK], end[MAX_RANK]; /* the region of interest */
    Number size[MAX_RANK];
    bool resized[MAX_RANK], whole[MAX_RANK]; /* whole: by a whole number, for any size */
} Resize;

enum { MOST_WEIGHTS = 1 << 22 };

static bool is(const char *word, const char *other)
{
    return strcmp(word, other) == 0;
}

/* ---- Where a place of the result lies in x ----------------------------------------------------
 */

/* false: outside of x, where the result is the extrapolation value. In f32, as others have it:
 * where a scale is 1.7, it decides which of two neighbours is the nearest. */
static bool place(const Resize *r, int axis, int64_t in, int64_t i, float *at)
{
    float scale = (float)r->scale[axis], size = (float)in, out = scale * size, x = (float)i;
    float last = size - 1, begin = (float)r->begin[axis];
    if (is(r->where, "asymmetric"))
        *at = x / scale;
    else if (is(r->where, "align_corners"))
        *at = out == 1 ? 0 : x * last / (out - 1);
    else if (is(r->where, "tf_half_pixel_for_nn"))
        *at = (x + 0.5f) / scale;
    else if (is(r->where, "pytorch_half_pixel") && r->size[axis].integer == 1)
        *at = -0.5f;
    else if (is(r->where, "half_pixel_symmetric"))
        *at = size / 2 * (1 - (float)r->size[axis].integer / out) + (x + 0.5f) / scale - 0.5f;
    else if (is(r->where, "tf_crop_and_resize")) {
        float share = (float)r->end[axis] - begin;
        *at = (out == 1 ? share * last / 2 : x * share * last / (out - 1)) + begin * last;
        return *at >= 0 && *at <= last;
    } else
        *at = (x + 0.5f) / scale - 0.5f;
    return true;
}

static int64_t clamp(double at, int64_t in)
{
    return at < 0 ? 0 : at > (double)(in - 1) ? in - 1 : (int64_t)at;
}

static int64_t nearest(const Resize *r, double at, int64_t in)
{
    if (is(r->nearest, "floor"))
        return clamp(floor(at), in);
    if (is(r->nearest, "ceil"))
        return clamp(ceil(at), in);
    return clamp(is(r->nearest, "round_prefer_ceil") ? floor(at + 0.5) : ceil(at - 0.5), in);
}

static double kernel(const Resize *r, double x)
{
    double a = r->cubic_a;
    x = fabs(x);
    if (r->mode == LINEAR)
        return x < 1 ? 1 - x : 0;
    return x <= 1  ? ((a + 2) * x - (a + 3)) * x * x + 1
           : x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
                   : 0;
}

/* The weights of a row of x for a place in it. */
static void weigh(const Resize *r, double at, double scale, int64_t in, double *row)
{
    double shrink = r->antialias && scale < 1 ? scale : 1, reach = r->mode == LINEAR ? 1 : 2;
    int64_t base = (int64_t)floor(at), first = (int64_t)floor(-reach / shrink) + 1;
    double sum = 0;
    for (int64_t k = first; k < 2 - first; k++) {
        int64_t to = base + k;
        double weight = kernel(r, ((double)to - at) * shrink);
        if (r->exclude && (to < 0 || to >= in))
            continue;
        sum += weight;
        row[clamp((double)to, in)] += weight;
    }
    for (int64_t k = 0; (r->exclude || r->antialias) && sum != 0 && k < in; k++)
        row[k] /= sum;
}

/* ---- Settings ---------------------------------------------------------------------------------
 */

static bool read_mode(Import *m, Resize *r)
{
    bool late = opset(m) >= 11 && !row(m);
    const char *mode = attr_word(m, "mode", "nearest");
    r->where = attr_word(m, "coordinate_transformation_mode", late ? "half_pixel" : "asymmetric");
    r->nearest = attr_word(m, "nearest_mode", late ? "round_prefer_floor" : "floor");
    r->cubic_a = attr_float(m, "cubic_coeff_a", -0.75);
    r->extrapolation = attr_float(m, "extrapolation_value", 0);
    r->exclude = attr_int(m, "exclude_outside", 0);
    r->antialias = attr_int(m, "antialias", 0);
    if (!is(mode, "nearest") && !is(mode, "linear") && !is(mode, "bilinear") && !is(mode, "cubic"))
        return refuse(m, "mode is \"%s\"", mode);
    r->mode = is(mode, "nearest") ? NEAREST : is(mode, "cubic") ? CUBIC : LINEAR;
    return true;
}

static bool set_scale(Import *m, Resize *r, const Tensor *x, int axis, double scale)
{
    double out = floor(scale * (double)x->dim[axis]);
    if (!(scale > 0) || out < 1 || out > INT32_MAX)
        return refuse(m, "scale %g of axis %d", scale, axis);
    r->scale[axis] = scale;
    r->whole[axis] = scale == floor(scale);
    r->size[axis] = (Number){.integer = (int64_t)out, .real = out};
    r->resized[axis] = scale != 1;
    return true;
}

static bool set_size(Import *m, Resize *r, const Tensor *x, int axis, Number size)
{
    if (size.integer < 1)
        return refuse(m, "size %lld of axis %d", (long long)size.integer, axis);
    r->size[axis] = size;
    r->scale[axis] = (double)size.integer / (double)x->dim[axis];
    r->resized[axis] = x->open[axis] || size.expr || size.integer != x->dim[axis];
    return true;
}

/* Sizes are bounds, and the image keeps its form. */
static bool keep_form(Import *m, Resize *r, const Tensor *x, const int *axis, int64_t count,
                      bool larger)
{
    double scale = 0;
    for (int64_t i = 0; i < count; i++) {
        double own = r->scale[axis[i]];
        if (x->open[axis[i]] || r->size[axis[i]].expr)
            return refuse(m, "a free dimension keeps no aspect ratio");
        scale = i == 0 || (larger ? own > scale : own < scale) ? own : scale;
    }
    for (int64_t i = 0; i < count; i++) {
        double out = floor(scale * (double)x->dim[axis[i]] + 0.5);
        if (!set_size(m, r, x, axis[i], (Number){.integer = whole_number(out), .real = out}))
            return false;
        r->scale[axis[i]] = scale;
    }
    return true;
}

static bool read_sizes(Import *m, Resize *r, const Tensor *x, const int *axis, int64_t axes)
{
    int64_t count;
    const Number *size = known(m, 3, "sizes", &count);
    const char *policy = attr_word(m, "keep_aspect_ratio_policy", "stretch");
    if (!size)
        return false;
    if (count != axes)
        return refuse(m, "it has %lld sizes for %lld axes", (long long)count, (long long)axes);
    for (int64_t i = 0; i < count; i++)
        if (!set_size(m, r, x, axis[i], size[i]))
            return false;
    return is(policy, "stretch") || keep_form(m, r, x, axis, axes, is(policy, "not_smaller"));
}

static bool read_scales(Import *m, Resize *r, const Tensor *x, int input, const int *axis,
                        int64_t axes)
{
    size_t listed = 0;
    int64_t count;
    const double *attribute = attr_floats(m, "scales", &listed);
    const Number *scale = attribute ? NULL : known(m, input, "scales", &count);
    if (!attribute && !scale)
        return false;
    if (attribute)
        count = (int64_t)listed;
    if (count != axes)
        return refuse(m, "it has %lld scales for %lld axes", (long long)count, (long long)axes);
    for (int64_t i = 0; i < count; i++) {
        if (scale && scale[i].expr)
            return refuse(m, "a scale follows from a free dimension");
        if (!set_scale(m, r, x, axis[i], attribute ? attribute[i] : scale[i].real))
            return false;
    }
    return true;
}

static bool read_region(Import *m, Resize *r, const int *axis, int64_t axes)
{
    int64_t count;
    const Number *region = known(m, 1, "roi", &count);
    if (!region || count != 2 * axes)
        return refuse(m, "the region has not two numbers for each axis");
    for (int64_t i = 0; i < axes; i++) {
        r->begin[axis[i]] = region[i].real;
        r->end[axis[i]] = region[axes + i].real;
        r->resized[axis[i]] |= region[i].real != 0 || region[axes + i].real != 1;
    }
    return true;
}

static bool is_empty(const Tensor *tensor)
{
    return !tensor || (tensor->rank == 1 && tensor->dim[0] == 0);
}

static bool read_settings(Import *m, Resize *r, const Tensor *x)
{
    size_t listed = 0;
    int axis[MAX_RANK];
    const int64_t *axes = attr_ints(m, "axes", &listed);
    int64_t count = axes ? (int64_t)listed : x->rank;
    if (count > x->rank)
        return refuse(m, "it has more axes than its operand");
    for (int64_t i = 0; i < count; i++)
        if (!take_axis(m, axes ? axes[i] : i, x->rank, &axis[i]))
            return false;
    for (int i = 0; i < x->rank; i++) {
        r->scale[i] = r->end[i] = 1;
        r->size[i] = (Number){.integer = x->dim[i], .real = (double)x->dim[i]};
    }
    bool early = opset(m) < 11 || row(m);
    if (!early && is_empty(given(m, 2)) && !is_empty(given(m, 3)))
        return read_sizes(m, r, x, axis, count) &&
               (!is(r->where, "tf_crop_and_resize") || read_region(m, r, axis, count));
    return read_scales(m, r, x, early ? 1 : 2, axis, count) &&
           (!is(r->where, "tf_crop_and_resize") || read_region(m, r, axis, count));
}

/* ---- By upsample2d ----------------------------------------------------------------------------
 */

/* upsample2d takes the same places, at the sizes at hand; where a size is free, at all. */
static bool is_plain_nearest(const Resize *r, const Tensor *x, int axis)
{
    int64_t in = x->dim[axis], out = r->size[axis].integer;
    bool halves = is(r->where, "half_pixel") || is(r->where, "pytorch_half_pixel");
    bool always = (is(r->where, "asymmetric") && is(r->nearest, "floor")) ||
                  (r->whole[axis] && halves && is(r->nearest, "round_prefer_floor"));
    if ((x->open[axis] || r->size[axis].expr) && !always)
        return false;
    for (int64_t i = 0; i < out; i++) {
        float at;
        if (!place(r, axis, in, i, &at) || nearest(r, at, in) != i * in / out)
            return false;
    }
    return true;
}

static bool is_plain(const Resize *r, const Tensor *x, int axis)
{
    int64_t out = r->size[axis].integer;
    if ((double)out != r->scale[axis] * (double)x->dim[axis])
        return false; /* what was cut off counts */
    if (r->mode == NEAREST)
        return is_plain_nearest(r, x, axis);
    return r->mode == LINEAR && !r->exclude && !(r->antialias && r->scale[axis] < 1) &&
           (is(r->where, "half_pixel") || is(r->where, "half_pixel_symmetric") ||
            is(r->where, "align_corners") || (is(r->where, "pytorch_half_pixel") && out > 1));
}

static const Expr *upsample(Import *m, const Resize *r, const Tensor *x)
{
    const Expr *to[2];
    bool scaled = x->open[2] || x->open[3];
    if (x->rank != 4 || x->dtype != F32 || r->resized[0] || r->resized[1] || !is_plain(r, x, 2) ||
        !is_plain(r, x, 3))
        return NULL;
    for (int i = 0; i < 2; i++)
        scaled = scaled && r->whole[2 + i];
    for (int i = 0; i < 2; i++) {
        if (x->open[2 + i] && !scaled && !r->size[2 + i].expr)
            return NULL;
        to[i] =
            scaled ? integer(m, (int64_t)r->scale[2 + i]) : number_expr(m, &r->size[2 + i], I64);
    }
    bool corners = r->mode == LINEAR && is(r->where, "align_corners");
    return CALL(m, "upsample2d", {use(m, 0)}, {list(m, 2, to), scaled ? "scale" : "size"},
                {r->mode == LINEAR ? word(m, "bilinear") : NULL, "mode"},
                {corners ? boolean(m, true) : NULL, "align_corners"});
}

/* ---- Axis by axis -----------------------------------------------------------------------------
 */

static const Expr *gather_axis(Import *m, const Resize *r, const Tensor *x, int axis)
{
    int64_t in = x->dim[axis], out = r->size[axis].integer;
    Number *index = number_array(m, out);
    for (int64_t i = 0; i < out; i++) {
        float at;
        place(r, axis, in, i, &at);
        int64_t from = nearest(r, at, in);
        index[i] = (Number){.integer = from, .real = (double)from};
    }
    const Expr *list = numbers_expr(m, ELEM_INT64, 1, &out, index);
    return list ? CALL(m, "gather", {x->expr, "x"}, {list, "index"}, {integer(m, axis), "axis"})
                : NULL;
}

/* The axis as the last one. */
static const Expr *swap_last(Import *m, const Expr *x, int rank, int axis)
{
    int64_t order[MAX_RANK];
    for (int i = 0; i < rank; i++)
        order[i] = i == axis ? rank - 1 : i == rank - 1 ? axis : i;
    return axis == rank - 1 ? x : CALL(m, "transpose", {x}, {ints(m, (size_t)rank, order), "perm"});
}

static const Expr *multiply_axis(Import *m, const Resize *r, const Tensor *x, int axis)
{
    int64_t in = x->dim[axis], out = r->size[axis].integer, dim[2] = {in, out};
    if (in > MOST_WEIGHTS / out) {
        refuse(m, "axis %d goes from %lld to %lld, which is too large", axis, (long long)in,
               (long long)out);
        return NULL;
    }
    Number *weight = number_array(m, in * out);
    double *row = memory_take((size_t)in * sizeof *row);
    for (int64_t i = 0; i < out; i++) {
        float at;
        memset(row, 0, (size_t)in * sizeof *row);
        if (place(r, axis, in, i, &at))
            weigh(r, at, r->scale[axis], in, row);
        for (int64_t k = 0; k < in; k++)
            weight[k * out + i] = (Number){.real = row[k]};
    }
    free(row);
    const Expr *matrix = numbers_expr(m, ELEM_FLOAT, 2, dim, weight);
    const Expr *last = swap_last(m, x->expr, x->rank, axis);
    return matrix ? swap_last(m, binary(m, "matmul", last, matrix), x->rank, axis) : NULL;
}

/* Outside of x is the extrapolation value. */
static const Expr *fill_outside(Import *m, const Resize *r, const Tensor *x, int64_t in, int axis)
{
    int64_t out = x->dim[axis], dim[MAX_RANK];
    Number *inside = number_array(m, out);
    bool all = true;
    for (int64_t i = 0; i < out; i++) {
        float at;
        inside[i] = (Number){.integer = place(r, axis, in, i, &at)};
        all = all && inside[i].integer;
    }
    for (int i = 0; i < x->rank; i++)
        dim[i] = i == axis ? out : 1;
    if (all)
        return x->expr;
    const Expr *mask = numbers_expr(m, ELEM_BOOL, x->rank, dim, inside);
    return mask ? CALL(m, "where", {mask}, {x->expr, "x"}, {real(m, r->extrapolation), "y"}) : NULL;
}

static const Tensor *resize_axis(Import *m, const Resize *r, const Tensor *x, int axis)
{
    if (x->open[axis] || r->size[axis].expr) {
        refuse(m, "axis %d is free, and is not resized by a whole number", axis);
        return NULL;
    }
    const Expr *y = r->mode == NEAREST ? gather_axis(m, r, x, axis) : multiply_axis(m, r, x, axis);
    const Tensor *made = y ? state(m, y) : NULL;
    const Expr *filled = made ? fill_outside(m, r, made, x->dim[axis], axis) : NULL;
    return !filled || filled == made->expr ? (filled ? made : NULL) : state(m, filled);
}

static bool resize(Import *m)
{
    Resize r = {0};
    const Tensor *x = given(m, 0);
    if (!x)
        return refuse(m, "it has no operand");
    if (!read_mode(m, &r) || !read_settings(m, &r, x))
        return false;
    if (r.mode != NEAREST && x->dtype != F32)
        return refuse(m, "it interpolates %s", elem_name(x->elem));
    bool any = false;
    for (int i = 0; i < x->rank; i++)
        any = any || r.resized[i];
    if (!any)
        return result_same(m, 0, x);
    const Expr *plain = upsample(m, &r, x);
    if (plain)
        return result(m, 0, plain);
    const Tensor *now = state(m, use(m, 0));
    for (int i = 0; now && i < x->rank; i++)
        if (r.resized[i])
            now = resize_axis(m, &r, now, i);
    return now && result(m, 0, now->expr);
}

const Translation onnx_resize[] = {
    {"Resize", 10, resize},
    {"Upsample", 7, resize, "upsample"},
    {0},
};
