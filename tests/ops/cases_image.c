/* Convolutions, pools and resizing against their definitions, element by element. */
#include "tests/ops/cases.h"

#include <math.h>

/* Element (n, c, h, w) of images, 0 outside. */
static double pixel(const Tensor *t, int64_t n, int64_t c, int64_t h, int64_t w)
{
    if (h < 0 || h >= t->dim[2] || w < 0 || w >= t->dim[3])
        return 0;
    return t->at[((n * t->dim[1] + c) * t->dim[2] + h) * t->dim[3] + w];
}

/* One axis of a window: sizes and padding as the settings say. */
typedef struct {
    int64_t kernel, stride, dilation, before, after, count;
} Axis;

/* Setting `pad` for axis i of two. */
static void pad_axis(const Case *c, Axis *x, int i, int64_t in)
{
    if (case_is_word(c, "pad", "same")) {
        int64_t reach = x->dilation * (x->kernel - 1) + 1, need = 0;
        for (int64_t o = 0; o * x->stride < in; o++) /* the last window that starts inside */
            need = o * x->stride + reach > in ? o * x->stride + reach - in : 0;
        x->before = need / 2;
        x->after = need - need / 2;
    } else if (!case_is_word(c, "pad", "valid")) {
        int given = case_count(c, "pad");
        x->before = case_at(c, "pad", given == 1 ? 0 : i);
        x->after = case_at(c, "pad", given == 4 ? 2 + i : given == 1 ? 0 : i);
    }
}

static void count_windows(Axis *x, int64_t in)
{
    int64_t reach = x->dilation * (x->kernel - 1) + 1;
    x->count = 0;
    for (int64_t at = -x->before; at + reach <= in + x->after; at += x->stride)
        x->count++;
}

/* ---- Convolutions --------------------------------------------------------------------------- */

static Tensor correlate(const Case *c, const Tensor *x, const Tensor *w, const double *bias,
                        int64_t groups, const Axis *v, const Axis *h)
{
    int64_t outputs = w->dim[0], inputs = w->dim[1];
    Tensor y = case_new(c, F32, 4, (int64_t[]){x->dim[0], outputs, v->count, h->count});
    double *to = y.at;
    for (int64_t n = 0; n < x->dim[0]; n++)
        for (int64_t o = 0; o < outputs; o++)
            for (int64_t i = 0; i < v->count; i++)
                for (int64_t j = 0; j < h->count; j++, to++) {
                    *to = bias ? bias[o] : 0;
                    for (int64_t k = 0; k < inputs; k++)
                        for (int64_t a = 0; a < v->kernel; a++)
                            for (int64_t b = 0; b < h->kernel; b++)
                                *to += pixel(w, o, k, a, b) *
                                       pixel(x, n, o / (outputs / groups) * inputs + k,
                                             i * v->stride - v->before + a * v->dilation,
                                             j * h->stride - h->before + b * h->dilation);
                }
    return y;
}

static Tensor conv2d(const Case *c)
{
    Axis axis[2];
    for (int i = 0; i < 2; i++) {
        axis[i] = (Axis){c->in[1].dim[2 + i], case_at(c, "stride", i), case_at(c, "dilation", i)};
        pad_axis(c, &axis[i], i, c->in[0].dim[2 + i]);
        count_windows(&axis[i], c->in[0].dim[2 + i]);
    }
    return correlate(c, &c->in[0], &c->in[1], c->in[2].at, case_int(c, "groups"), &axis[0],
                     &axis[1]);
}

static Tensor conv1d(const Case *c)
{
    Axis one = {1, 1, 1, 0, 0, 1};
    Axis axis = {c->in[1].dim[2], case_int(c, "stride"), case_int(c, "dilation")};
    if (case_count(c, "pad") == 2) {
        axis.before = case_at(c, "pad", 0);
        axis.after = case_at(c, "pad", 1);
    } else {
        pad_axis(c, &axis, 0, c->in[0].dim[2]);
    }
    count_windows(&axis, c->in[0].dim[2]);
    Tensor x = c->in[0], w = c->in[1];
    x.rank = w.rank = 4;
    x.dim[3] = x.dim[2];
    w.dim[3] = w.dim[2];
    x.dim[2] = w.dim[2] = 1;
    Tensor y = correlate(c, &x, &w, c->in[2].at, case_int(c, "groups"), &one, &axis);
    y.rank = 3;
    y.dim[2] = y.dim[3];
    return y;
}

/* From the other side: an output gathers what each input sends it. */
static Tensor conv_transpose2d(const Case *c)
{
    const Tensor *x = &c->in[0], *w = &c->in[1];
    int64_t groups = case_int(c, "groups"), inputs = x->dim[1] / groups, outputs = w->dim[1];
    int64_t dim[4] = {x->dim[0], outputs * groups}, before[2];
    int given = case_count(c, "pad");
    for (int i = 0; i < 2; i++) {
        before[i] = case_at(c, "pad", given == 1 ? 0 : i);
        int64_t after = case_at(c, "pad", given == 4 ? 2 + i : given == 1 ? 0 : i);
        dim[2 + i] = (x->dim[2 + i] - 1) * case_at(c, "stride", i) +
                     case_at(c, "dilation", i) * (w->dim[2 + i] - 1) + 1 - before[i] - after +
                     case_at(c, "output_pad", i);
    }
    Tensor y = case_new(c, F32, 4, dim);
    double *to = y.at;
    for (int64_t n = 0; n < dim[0]; n++)
        for (int64_t o = 0; o < dim[1]; o++)
            for (int64_t i = 0; i < dim[2]; i++)
                for (int64_t j = 0; j < dim[3]; j++, to++) {
                    *to = c->in[2].at ? c->in[2].at[o] : 0;
                    for (int64_t a = 0; a < w->dim[2]; a++)
                        for (int64_t b = 0; b < w->dim[3]; b++) {
                            int64_t p = i + before[0] - a * case_at(c, "dilation", 0);
                            int64_t q = j + before[1] - b * case_at(c, "dilation", 1);
                            if (p < 0 || q < 0 || p % case_at(c, "stride", 0) ||
                                q % case_at(c, "stride", 1))
                                continue;
                            for (int64_t k = 0; k < inputs; k++)
                                *to += pixel(x, n, o / outputs * inputs + k,
                                             p / case_at(c, "stride", 0),
                                             q / case_at(c, "stride", 1)) *
                                       pixel(w, o / outputs * inputs + k, o % outputs, a, b);
                        }
                }
    return y;
}

/* ---- Pools ---------------------------------------------------------------------------------- */

static Axis pool_axis(const Case *c, int i, int64_t in)
{
    Axis x = {case_at(c, "kernel", i), case_at(c, "kernel", i), case_at(c, "dilation", i)};
    int64_t reach = x.dilation * (x.kernel - 1) + 1;
    if (case_count(c, "stride"))
        x.stride = case_at(c, "stride", i);
    pad_axis(c, &x, i, in);
    count_windows(&x, in);
    int64_t last = (x.count - 1) * x.stride - x.before; /* where the last window begins */
    if (case_number(c, "ceil") != 0 && last + reach < in + x.after && last + x.stride < in)
        x.count++;
    return x;
}

enum { MEAN, MOST, PLACE };

static Tensor pool(const Case *c, int what)
{
    const Tensor *x = &c->in[0];
    Axis v = pool_axis(c, 0, x->dim[2]), h = pool_axis(c, 1, x->dim[3]);
    bool whole = what == MEAN && case_number(c, "count_include_pad") != 0;
    int64_t dim[4] = {x->dim[0], x->dim[1], v.count, h.count};
    Tensor y = case_new(c, what == PLACE ? I64 : F32, 4, dim);
    for (int64_t k = 0; k < y.count; k++) {
        int64_t j = k % h.count, i = k / h.count % v.count, plane = k / h.count / v.count;
        double sum = 0, best = -INFINITY, count = 0, place = -1;
        for (int64_t t = 0; t < v.kernel * h.kernel; t++) {
            int64_t a = i * v.stride - v.before + t / h.kernel * v.dilation;
            int64_t b = j * h.stride - h.before + t % h.kernel * h.dilation;
            bool inside = a >= 0 && a < x->dim[2] && b >= 0 && b < x->dim[3];
            bool padded = a < x->dim[2] + v.after && b < x->dim[3] + h.after;
            count += inside || (whole && padded);
            if (!inside)
                continue;
            double p = pixel(x, plane / x->dim[1], plane % x->dim[1], a, b);
            bool more = place < 0 || p > best || (isnan(p) && !isnan(best));
            sum += p;
            best = more ? p : best;
            place = more ? (double)(a * x->dim[3] + b) : place;
        }
        y.at[k] = what == MEAN ? sum / count : what == MOST ? best : place;
    }
    return y;
}

static Tensor maxpool2d(const Case *c)
{
    return pool(c, MOST);
}

static Tensor maxpool2d_indices(const Case *c)
{
    return pool(c, PLACE);
}

static Tensor avgpool2d(const Case *c)
{
    return pool(c, MEAN);
}

static Tensor global(const Case *c, bool mean)
{
    const Tensor *x = &c->in[0];
    Tensor y = case_new(c, F32, 2, x->dim);
    int64_t size = x->count / y.count;
    for (int64_t i = 0; i < y.count; i++) {
        double sum = 0, best = x->at[i * size];
        for (int64_t k = 0; k < size; k++) {
            sum += x->at[i * size + k];
            best = fmax(best, x->at[i * size + k]);
        }
        y.at[i] = mean ? sum / (double)size : best;
    }
    return y;
}

static Tensor global_avgpool(const Case *c)
{
    return global(c, true);
}

static Tensor global_maxpool(const Case *c)
{
    return global(c, false);
}

/* ---- Resizing ------------------------------------------------------------------------------- */

static double source_place(const Case *c, int64_t i, int64_t in, int64_t out)
{
    if (case_is_word(c, "mode", "nearest"))
        return floor((double)(i * in) / (double)out);
    if (case_number(c, "align_corners") != 0)
        return out == 1 ? 0 : (double)i / (double)(out - 1) * (double)(in - 1);
    double at = ((double)i + 0.5) / (double)out * (double)in - 0.5;
    return fmin(fmax(at, 0), (double)in - 1);
}

static Tensor upsample2d(const Case *c)
{
    const Tensor *x = &c->in[0];
    int64_t dim[4] = {x->dim[0], x->dim[1]};
    for (int i = 0; i < 2; i++) {
        double scale =
            case_count(c, "scale") ? (double)case_at(c, "scale", i) : case_number(c, "scale");
        dim[2 + i] = scale > 0 ? (int64_t)((double)x->dim[2 + i] * scale) : case_at(c, "size", i);
    }
    Tensor y = case_new(c, F32, 4, dim);
    for (int64_t k = 0; k < y.count; k++) {
        int64_t plane = k / dim[2] / dim[3], n = plane / dim[1], channel = plane % dim[1];
        double h = source_place(c, k / dim[3] % dim[2], x->dim[2], dim[2]);
        double w = source_place(c, k % dim[3], x->dim[3], dim[3]);
        for (int corner = 0; corner < 4; corner++) {
            double a = floor(h) + corner / 2, b = floor(w) + corner % 2;
            double share = (1 - fabs(h - a)) * (1 - fabs(w - b));
            y.at[k] += share * pixel(x, n, channel, (int64_t)a, (int64_t)b);
        }
    }
    return y;
}

static Tensor pixel_shuffle(const Case *c)
{
    const Tensor *x = &c->in[0];
    int64_t r = case_int(c, "factor");
    int64_t dim[4] = {x->dim[0], x->dim[1] / r / r, x->dim[2] * r, x->dim[3] * r};
    Tensor y = case_new(c, x->dtype, 4, dim);
    for (int64_t k = 0; k < y.count; k++) {
        int64_t j = k % dim[3], i = k / dim[3] % dim[2], plane = k / dim[3] / dim[2];
        y.at[k] =
            pixel(x, plane / dim[1], plane % dim[1] * r * r + i % r * r + j % r, i / r, j / r);
    }
    return y;
}

OP_CASES(image) = {
    {"conv2d", "f32[1, 1, 1, 1] f32[1, 1, 1, 1] f32[1]", "", conv2d},
    {"conv2d", "f32[2, 3, 5, 7] f32[4, 3, 3, 3] f32[4]", "", conv2d},
    {"conv2d", "f32[2, 3, 5, 7] f32[4, 3, 3, 3] -", "pad = 1", conv2d},
    {"conv2d", "f32[2, 3, 5, 7] f32[4, 3, 1, 1] -", "", conv2d},
    {"conv2d", "f32[2, 3, 8, 7] f32[4, 3, 3, 3] f32[4]", "pad = same, stride = 2", conv2d},
    {"conv2d", "f32[2, 3, 8, 7] f32[4, 3, 4, 2] f32[4]", "pad = same, stride = [3, 2]", conv2d},
    {"conv2d", "f32[1, 2, 9, 8] f32[5, 2, 2, 3] -", "pad = valid, stride = [2, 3]", conv2d},
    {"conv2d", "f32[1, 2, 9, 8] f32[5, 2, 3, 2] -", "pad = [2, 1], dilation = [1, 2]", conv2d},
    {"conv2d", "f32[1, 2, 9, 8] f32[5, 2, 3, 2] -", "pad = [0, 1, 2, 3], dilation = 2", conv2d},
    {"conv2d", "f32[1, 2, 1, 1] f32[3, 2, 3, 3] -", "pad = 5", conv2d},
    {"conv2d", "f32[1, 2, 3, 3] f32[3, 2, 5, 5] -", "pad = same", conv2d},
    {"conv2d", "f32[2, 6, 5, 5] f32[9, 2, 3, 3] f32[9]", "groups = 3, pad = 1", conv2d},
    {"conv2d", "f32[2, 5, 6, 9] f32[5, 1, 3, 3] f32[5]", "groups = 5, pad = 1", conv2d},
    {"conv2d", "f32[2, 5, 9, 9] f32[10, 1, 3, 3] -", "groups = 5, stride = 2, pad = same", conv2d},
    {"conv2d", "f32[1, 3, 9, 9] f32[3, 1, 5, 3] -", "groups = 3, dilation = [1, 3], pad = 3",
     conv2d},
    {"conv2d", "f32[1, 1, 9, 9] f32[7, 1, 3, 3] f32[7]", "", conv2d},
    {"conv2d", "f32[1, 33, 6, 6] f32[101, 33, 3, 3] f32[101]", "pad = 1", conv2d},
    {"conv2d", "f32[1, 3, 21, 27] f32[5, 3, 3, 3] f32[5]", "pad = same", conv2d},
    {"conv2d", "f32[1, 2, 3, 300] f32[2, 2, 2, 2] -", "pad = same", conv2d},
    {"conv2d", "f32[17, 2, 4, 4] f32[100, 2, 2, 2] f32[100]", "", conv2d},
    {"conv2d", "f32[2, 16, 20, 21] f32[16, 1, 3, 3] -", "groups = 16, pad = same", conv2d},
    {"conv2d", "f32[2, 3, 8, 8] - -", "channels = 4, kernel = 3, pad = same", conv2d},
    {"conv2d", "f32[2, 4, 8, 8] - -", "channels = 4, kernel = [3, 1], groups = 2, bias = false",
     conv2d},
    {"conv1d", "f32[2, 3, 11] f32[4, 3, 3] f32[4]", "", conv1d},
    {"conv1d", "f32[2, 3, 11] f32[4, 3, 4] f32[4]", "pad = same, stride = 2", conv1d},
    {"conv1d", "f32[2, 4, 11] f32[4, 1, 3] -", "groups = 4, pad = [2, 0], dilation = 2", conv1d},
    {"conv1d", "f32[1, 2, 6] f32[3, 2, 3] -", "pad = 2", conv1d},
    {"conv1d", "f32[2, 3, 11] - -", "channels = 5, kernel = 3", conv1d},
    {"conv_transpose2d", "f32[1, 1, 1, 1] f32[1, 1, 1, 1] -", "", conv_transpose2d},
    {"conv_transpose2d", "f32[2, 3, 4, 5] f32[3, 2, 3, 3] f32[2]", "", conv_transpose2d},
    {"conv_transpose2d", "f32[2, 3, 4, 5] f32[3, 2, 3, 3] -", "stride = 2, pad = 1, output_pad = 1",
     conv_transpose2d},
    {"conv_transpose2d", "f32[2, 3, 4, 5] f32[3, 4, 2, 2] f32[4]", "stride = 2", conv_transpose2d},
    {"conv_transpose2d", "f32[1, 3, 4, 5] f32[3, 4, 2, 3] f32[4]",
     "stride = [1, 3], dilation = [2, 1], pad = [1, 0, 0, 2]", conv_transpose2d},
    {"conv_transpose2d", "f32[1, 6, 4, 5] f32[6, 2, 3, 3] f32[6]", "groups = 3, pad = [1, 2]",
     conv_transpose2d},
    {"conv_transpose2d", "f32[1, 3, 30, 31] f32[3, 40, 2, 2] f32[40]", "stride = 2",
     conv_transpose2d},
    {"conv_transpose2d", "f32[1, 2, 3, 300] f32[2, 1, 11, 10] -", "", conv_transpose2d},
    {"conv_transpose2d", "f32[2, 4, 3, 3] - -", "channels = 6, kernel = 2, stride = 2, groups = 2",
     conv_transpose2d},
    {"maxpool2d", "f32[2, 3, 6, 8]", "kernel = 2", maxpool2d},
    {"maxpool2d", "f32[2, 3, 7, 9]", "kernel = 2", maxpool2d},
    {"maxpool2d", "f32[2, 3, 7, 9]", "kernel = 2, ceil = true", maxpool2d},
    {"maxpool2d", "f32[2, 3, 7, 9]", "kernel = 3, stride = 2, pad = 1", maxpool2d},
    {"maxpool2d", "f32[1, 1, 7, 10]", "kernel = [3, 2], stride = [1, 3], pad = same", maxpool2d},
    {"maxpool2d", "f32[1, 2, 5, 5]", "kernel = 3, stride = 2, pad = [0, 1, 2, 0], ceil = true",
     maxpool2d},
    {"maxpool2d", "f32[1, 1, 1, 1]", "kernel = 1", maxpool2d},
    {"maxpool2d", "f32[2, 8, 48, 49]", "kernel = 3, stride = 2, pad = same", maxpool2d},
    {"maxpool2d", "f32[1, 1, 4, 4]:nan..nan", "kernel = 2", maxpool2d},
    {"maxpool2d", "f32[2, 3, 8, 9]", "kernel = 2, dilation = 2", maxpool2d},
    {"maxpool2d", "f32[2, 3, 8, 9]", "kernel = [3, 2], stride = 2, pad = 1, dilation = [1, 3]",
     maxpool2d},
    {"maxpool2d", "f32[1, 2, 9, 8]",
     "kernel = 3, stride = [2, 3], pad = [3, 0, 1, 4], dilation = [2, 2], ceil = true", maxpool2d},
    {"maxpool2d", "f32[1, 2, 9, 8]", "kernel = 3, stride = 1, pad = same, dilation = 2", maxpool2d},
    {"maxpool2d", "f32[1, 1, 5, 5]:nan..nan", "kernel = 2, dilation = 2", maxpool2d},
    {"maxpool2d_indices", "f32[2, 3, 6, 8]", "kernel = 2", maxpool2d_indices},
    {"maxpool2d_indices", "f32[2, 3, 7, 9]:0..0", "kernel = 3, stride = 2, pad = 1",
     maxpool2d_indices},
    {"maxpool2d_indices", "f32[1, 1, 5, 5]:nan..nan", "kernel = 2, ceil = true", maxpool2d_indices},
    {"maxpool2d_indices", "f32[1, 2, 9, 8]",
     "kernel = 3, stride = [2, 3], pad = [3, 0, 1, 4], dilation = 2, ceil = true",
     maxpool2d_indices},
    {"maxpool2d_indices", "f32[2, 5, 60, 61]", "kernel = 3, stride = 1, pad = same",
     maxpool2d_indices},
    {"avgpool2d", "f32[2, 3, 8, 9]", "kernel = 2, dilation = 2", avgpool2d},
    {"avgpool2d", "f32[2, 3, 8, 9]", "kernel = [3, 2], stride = 2, pad = 1, dilation = [1, 3]",
     avgpool2d},
    {"avgpool2d", "f32[1, 2, 9, 8]",
     "kernel = 3, stride = [2, 3], pad = [3, 0, 1, 4], dilation = 2, ceil = true", avgpool2d},
    {"avgpool2d", "f32[1, 2, 9, 8]",
     "kernel = 3, stride = [2, 3], pad = [3, 0, 1, 4], dilation = 2, ceil = true, "
     "count_include_pad = true",
     avgpool2d},
    {"avgpool2d", "f32[2, 3, 6, 8]", "kernel = 2", avgpool2d},
    {"avgpool2d", "f32[2, 3, 7, 9]", "kernel = 3, stride = 2, pad = 1", avgpool2d},
    {"avgpool2d", "f32[2, 3, 7, 9]", "kernel = 3, stride = 2, pad = 1, count_include_pad = true",
     avgpool2d},
    {"avgpool2d", "f32[2, 3, 7, 10]", "kernel = 3, stride = 2, pad = 1, ceil = true", avgpool2d},
    {"avgpool2d", "f32[2, 3, 7, 10]",
     "kernel = 3, stride = 2, pad = 1, ceil = true, count_include_pad = true", avgpool2d},
    {"avgpool2d", "f32[1, 2, 6, 5]", "kernel = [2, 3], stride = 1, pad = same", avgpool2d},
    {"avgpool2d", "f32[1, 1, 6, 6]", "kernel = 6", avgpool2d},
    {"avgpool2d", "f32[2, 8, 48, 49]", "kernel = 2", avgpool2d},
    {"global_avgpool", "f32[2, 3, 4, 5]", "", global_avgpool},
    {"global_avgpool", "f32[2, 3, 37]", "", global_avgpool},
    {"global_avgpool", "f32[2, 3]", "", global_avgpool},
    {"global_avgpool", "f32[1, 2, 3, 2, 9]", "", global_avgpool},
    {"global_avgpool", "f32[3, 1, 1, 1]", "", global_avgpool},
    {"global_avgpool", "f32[3, 11, 32, 33]", "", global_avgpool},
    {"global_maxpool", "f32[2, 3, 4, 5]", "", global_maxpool},
    {"global_maxpool", "f32[2, 3]:-3..-1", "", global_maxpool},
    {"global_maxpool", "f32[1, 2, 3, 2, 9]:-3..-1", "", global_maxpool},
    {"upsample2d", "f32[2, 3, 4, 5]", "scale = 2", upsample2d},
    {"upsample2d", "f32[2, 3, 4, 5]", "scale = [3, 1]", upsample2d},
    {"upsample2d", "f32[2, 3, 4, 6]", "scale = 1.5", upsample2d},
    {"upsample2d", "f32[2, 3, 4, 6]", "scale = 0.5", upsample2d},
    {"upsample2d", "f32[2, 3, 4, 6]", "scale = 2.5, mode = bilinear", upsample2d},
    {"upsample2d", "f32[2, 3, 5, 7]", "scale = 1.5, mode = bilinear, align_corners = true",
     upsample2d},
    {"upsample2d", "f32[1, 2, 4, 5]", "size = [7, 3]", upsample2d},
    {"upsample2d", "f32[2, 3, 4, 5]", "scale = 2, mode = bilinear", upsample2d},
    {"upsample2d", "f32[2, 3, 4, 5]", "scale = 3, mode = bilinear, align_corners = true",
     upsample2d},
    {"upsample2d", "f32[1, 1, 1, 1]", "scale = 3, mode = bilinear", upsample2d},
    {"upsample2d", "f32[2, 3, 37, 41]", "scale = 2, mode = bilinear", upsample2d},
    {"upsample2d", "f32[1, 2, 5, 7]", "size = [3, 11], mode = bilinear", upsample2d},
    {"upsample2d", "f32[1, 2, 5, 7]", "size = [1, 11], mode = bilinear, align_corners = true",
     upsample2d},
    {"pixel_shuffle", "f32[2, 12, 3, 5]", "factor = 2", pixel_shuffle},
    {"pixel_shuffle", "f32[1, 9, 1, 2]", "factor = 3", pixel_shuffle},
    {"pixel_shuffle", "f32[1, 2, 3, 4]", "factor = 1", pixel_shuffle},
    {0},
};

OP_ERRORS(image) = {
    {"conv2d", "f32[2, 3, 8] f32[4, 3, 3, 3]", "", "conv2d: x must be [N, C, H, W]"},
    {"conv2d", "f32[2, 3, 8, 8] f32[4, 2, 3, 3]", "",
     "conv2d: w [4, 2, 3, 3] expects 2 input channels, but x [2, 3, 8, 8] has 3"},
    {"conv2d", "f32[2, 3, 8, 8] f32[4, 3, 3, 3]", "groups = 2",
     "conv2d: groups = 2 does not divide the 3 input channels"},
    {"conv2d", "f32[2, 3, 2, 8] f32[4, 3, 3, 3]", "",
     "is larger than x [2, 3, 2, 8] with its padding"},
    {"conv2d", "f32[2, 3, 8, 8] f32[4, 3, 3, 3]", "stride = 0", "conv2d: stride = 0"},
    {"conv2d", "f32[2, 3, 8, 8] f32[4, 3, 3, 3]", "stride = [1, 2, 3]",
     "conv2d: stride takes 1 or 2 numbers, not 3"},
    {"conv2d", "f32[2, 3, 8, 8] f32[4, 3, 3, 3]", "pad = -1", "conv2d: pad must be in [0, 2^31]"},
    {"conv2d", "f32[2, 3, 8, 8] f32[4, 3, 3, 3]", "dilation = 4000000000", "conv2d: dilation"},
    {"conv2d", "f32[2, 3, 8, 8] f32[4, 3, 3, 3] f32[3]", "", "conv2d: b must be [4]"},
    {"conv2d", "f32[2, 3, 8, 8] - -", "channels = 4", "conv2d: needs channels and kernel"},
    {"conv2d", "f32[2, 3, 8, 8] - -", "channels = 0, kernel = 1",
     "conv2d: channels must be positive"},
    {"conv2d", "i32[2, 3, 8, 8] f32[4, 3, 3, 3]", "", "conv2d: takes f32, not i32[2, 3, 8, 8]"},
    {"conv1d", "f32[2, 3, 8] f32[4, 3, 9]", "", "conv1d: the kernel of w [4, 3, 9]"},
    {"conv_transpose2d", "f32[2, 3, 8, 8] f32[4, 3, 3, 3]", "", "expects 4 input channels"},
    {"conv_transpose2d", "f32[2, 3, 8, 8] f32[3, 3, 3, 3]", "output_pad = 1",
     "output_pad = 1 must be less than"},
    {"conv_transpose2d", "f32[2, 3, 2, 2] f32[3, 3, 1, 1]", "pad = 1",
     "pad leaves the output empty"},
    {"maxpool2d", "f32[2, 3, 8, 8]", "kernel = 2, pad = 2", "pad must be less than kernel = 2"},
    {"maxpool2d", "f32[2, 3, 2, 8]", "kernel = 3", "maxpool2d: the kernel [3, 3] is larger than x"},
    {"maxpool2d", "f32[2, 3, 4, 8]", "kernel = 3, dilation = 2",
     "the kernel [3, 3] with its dilation is larger"},
    {"maxpool2d", "f32[2, 3, 8, 8]", "kernel = 2, dilation = 0", "maxpool2d: dilation = 0"},
    {"maxpool2d", "f32[2, 3, 8, 8]", "kernel = 2, pad = 4, dilation = 3",
     "pad must be less than 4, the reach of a window"},
    {"avgpool2d", "f32[1, 1, 1, 1]", "kernel = 2, pad = 1, dilation = 2",
     "and dilation no more than the image"},
    {"maxpool2d_indices", "i32[2, 3, 8, 8]", "kernel = 2", "maxpool2d_indices: takes f32"},
    {"global_avgpool", "f32[3]", "", "global_avgpool: x must be [N, C, ...]"},
    {"upsample2d", "f32[1, 1, 2, 2]", "", "upsample2d: needs either scale"},
    {"upsample2d", "f32[1, 1, 2, 2]", "scale = 2, align_corners = true", "has no effect"},
    {"upsample2d", "f32[1, 1, 2, 2]", "scale = 2147483648", "too large"},
    {"upsample2d", "f32[1, 1, 2, 2]", "scale = 0.25", "nothing left"},
    {"upsample2d", "f32[1, 1, 2, 2]", "scale = -1.5", "must be positive"},
    {"pixel_shuffle", "f32[1, 6, 2, 2]", "factor = 2", "must divide the 6 channels"},
    {0},
};
