/* Convolutions and pools of volumes against their definitions, element by element. */
#include "tests/ops/cases.h"

#include <math.h>

/* One axis of a window. */
typedef struct {
    int64_t kernel, stride, dilation, before, after, in, count;
} Axis;

/* Where place k of window o stands. */
static int64_t place(const Axis *a, int64_t o, int64_t k)
{
    return o * a->stride - a->before + k * a->dilation;
}

static bool inside(const Axis *a, int64_t at)
{
    return at >= 0 && at < a->in;
}

static int64_t reach(const Axis *a)
{
    return a->dilation * (a->kernel - 1) + 1;
}

static void pad_numbers(const Case *c, Axis *a, int i)
{
    int given = case_count(c, "pad");
    a->before = case_at(c, "pad", given == 1 ? 0 : i);
    a->after = case_at(c, "pad", given == 6 ? 3 + i : given == 1 ? 0 : i);
}

static void pad_axis(const Case *c, Axis *a, int i)
{
    if (case_is_word(c, "pad", "same")) {
        int64_t need = ((a->in - 1) / a->stride) * a->stride + reach(a) - a->in;
        a->before = need > 0 ? need / 2 : 0;
        a->after = need > 0 ? need - need / 2 : 0;
    } else if (!case_is_word(c, "pad", "valid")) {
        pad_numbers(c, a, i);
    }
}

static void count_windows(Axis *a, bool ceil)
{
    a->count = 0;
    for (int64_t at = -a->before; at + reach(a) <= a->in + a->after; at += a->stride)
        a->count++;
    int64_t next = a->count * a->stride - a->before;
    if (ceil && next - a->stride + reach(a) < a->in + a->after && next < a->in)
        a->count++;
}

/* Index of (n, c, d, h, w) in a volume. */
static int64_t voxel(const Tensor *t, int64_t n, int64_t c, int64_t d, int64_t h, int64_t w)
{
    return (((n * t->dim[1] + c) * t->dim[2] + d) * t->dim[3] + h) * t->dim[4] + w;
}

static Tensor conv3d(const Case *c)
{
    const Tensor *x = &c->in[0], *w = &c->in[1];
    int64_t dim[5] = {x->dim[0], w->dim[0]}, own = w->dim[1];
    Axis a[3];
    for (int i = 0; i < 3; i++) {
        a[i] = (Axis){w->dim[2 + i], case_at(c, "stride", i), case_at(c, "dilation", i)};
        a[i].in = x->dim[2 + i];
        pad_axis(c, &a[i], i);
        count_windows(&a[i], false);
        dim[2 + i] = a[i].count;
    }
    int64_t taps = a[0].kernel * a[1].kernel * a[2].kernel;
    Tensor y = case_new(c, F32, 5, dim);
    for (int64_t k = 0; k < y.count; k++) {
        int64_t ow = k % dim[4], oh = k / dim[4] % dim[3], od = k / dim[4] / dim[3] % dim[2];
        int64_t o = k / dim[4] / dim[3] / dim[2] % dim[1], n = k / (y.count / dim[0]);
        int64_t first = o / (dim[1] / case_int(c, "groups")) * own;
        y.at[k] = c->in[2].at ? c->in[2].at[o] : 0;
        for (int64_t i = 0; i < own; i++)
            for (int64_t t = 0; t < taps; t++) {
                int64_t kw = t % a[2].kernel, kh = t / a[2].kernel % a[1].kernel;
                int64_t kd = t / a[2].kernel / a[1].kernel;
                int64_t d = place(&a[0], od, kd), h = place(&a[1], oh, kh);
                int64_t s = place(&a[2], ow, kw);
                if (inside(&a[0], d) && inside(&a[1], h) && inside(&a[2], s))
                    y.at[k] +=
                        x->at[voxel(x, n, first + i, d, h, s)] * w->at[voxel(w, o, i, kd, kh, kw)];
            }
    }
    return y;
}

/* From the other side: each input sends its share to what it falls on. */
static Tensor conv_transpose3d(const Case *c)
{
    const Tensor *x = &c->in[0], *w = &c->in[1];
    int64_t groups = case_int(c, "groups"), own = w->dim[1];
    int64_t dim[5] = {x->dim[0], own * groups};
    Axis a[3];
    for (int i = 0; i < 3; i++) {
        a[i] = (Axis){w->dim[2 + i], case_at(c, "stride", i), case_at(c, "dilation", i)};
        pad_numbers(c, &a[i], i);
        dim[2 + i] = a[i].in = (x->dim[2 + i] - 1) * a[i].stride + reach(&a[i]) - a[i].before -
                               a[i].after + case_at(c, "output_pad", i);
    }
    int64_t taps = a[0].kernel * a[1].kernel * a[2].kernel;
    Tensor y = case_new(c, F32, 5, dim);
    for (int64_t k = 0; c->in[2].at && k < y.count; k++)
        y.at[k] = c->in[2].at[k / (dim[2] * dim[3] * dim[4]) % dim[1]];
    for (int64_t k = 0; k < x->count; k++) {
        int64_t iw = k % x->dim[4], ih = k / x->dim[4] % x->dim[3];
        int64_t id = k / x->dim[4] / x->dim[3] % x->dim[2], n = k / (x->count / x->dim[0]);
        int64_t i = k / x->dim[4] / x->dim[3] / x->dim[2] % x->dim[1];
        for (int64_t o = 0; o < own; o++)
            for (int64_t t = 0; t < taps; t++) {
                int64_t kw = t % a[2].kernel, kh = t / a[2].kernel % a[1].kernel;
                int64_t kd = t / a[2].kernel / a[1].kernel;
                int64_t d = place(&a[0], id, kd), h = place(&a[1], ih, kh);
                int64_t s = place(&a[2], iw, kw);
                if (inside(&a[0], d) && inside(&a[1], h) && inside(&a[2], s))
                    y.at[voxel(&y, n, i / (x->dim[1] / groups) * own + o, d, h, s)] +=
                        x->at[k] * w->at[voxel(w, i, o, kd, kh, kw)];
            }
    }
    return y;
}

static Tensor pool(const Case *c, bool mean)
{
    const Tensor *x = &c->in[0];
    bool whole = mean && case_number(c, "count_include_pad") != 0;
    int64_t dim[5] = {x->dim[0], x->dim[1]};
    Axis a[3];
    for (int i = 0; i < 3; i++) {
        int64_t kernel = case_at(c, "kernel", i);
        a[i] = (Axis){kernel, case_count(c, "stride") ? case_at(c, "stride", i) : kernel,
                      case_at(c, "dilation", i)};
        a[i].in = x->dim[2 + i];
        pad_axis(c, &a[i], i);
        count_windows(&a[i], case_number(c, "ceil") != 0);
        dim[2 + i] = a[i].count;
    }
    Tensor y = case_new(c, F32, 5, dim);
    for (int64_t k = 0; k < y.count; k++) {
        int64_t o[3] = {k / dim[4] / dim[3] % dim[2], k / dim[4] % dim[3], k % dim[4]};
        int64_t plane = k / dim[4] / dim[3] / dim[2], n = plane / dim[1];
        double sum = 0, best = -INFINITY, count = 0;
        for (int64_t t = 0; t < a[0].kernel * a[1].kernel * a[2].kernel; t++) {
            int64_t tap[3] = {t / a[2].kernel / a[1].kernel, t / a[2].kernel % a[1].kernel,
                              t % a[2].kernel};
            int64_t at[3];
            bool in = true, padded = true;
            for (int i = 0; i < 3; i++) {
                at[i] = place(&a[i], o[i], tap[i]);
                in = in && inside(&a[i], at[i]);
                padded = padded && at[i] < a[i].in + a[i].after;
            }
            count += in || (whole && padded);
            if (!in)
                continue;
            double v = x->at[voxel(x, n, plane % dim[1], at[0], at[1], at[2])];
            sum += v;
            best = v > best || isnan(v) ? v : best;
        }
        y.at[k] = mean ? sum / count : best;
    }
    return y;
}

static Tensor maxpool3d(const Case *c)
{
    return pool(c, false);
}

static Tensor avgpool3d(const Case *c)
{
    return pool(c, true);
}

OP_CASES(volume) = {
    {"conv3d", "f32[1, 1, 1, 1, 1] f32[1, 1, 1, 1, 1] f32[1]", "", conv3d},
    {"conv3d", "f32[2, 3, 4, 5, 6] f32[4, 3, 3, 2, 3] f32[4]", "", conv3d},
    {"conv3d", "f32[2, 3, 4, 5, 6] f32[4, 3, 3, 3, 3] -", "pad = 1", conv3d},
    {"conv3d", "f32[2, 3, 5, 5, 6] f32[4, 3, 3, 3, 3] f32[4]", "pad = same, stride = 2", conv3d},
    {"conv3d", "f32[2, 3, 4, 5, 6] f32[4, 3, 1, 3, 3] f32[4]", "stride = [2, 1, 1]", conv3d},
    {"conv3d", "f32[2, 4, 7, 6, 5] f32[6, 2, 3, 2, 1] f32[6]",
     "pad = [2, 0, 1, 1, 2, 0], stride = [2, 1, 3], dilation = [2, 3, 1], groups = 2", conv3d},
    {"conv3d", "f32[1, 3, 4, 4, 4] f32[3, 1, 3, 3, 3] -", "groups = 3, pad = 1", conv3d},
    {"conv3d", "f32[2, 3, 4, 4, 4] - -", "channels = 4, kernel = 3, pad = same", conv3d},
    {"conv3d", "f32[2, 3, 4, 4, 4] - -", "channels = 2, kernel = [1, 2, 3], bias = false", conv3d},
    {"conv_transpose3d", "f32[1, 1, 1, 1, 1] f32[1, 1, 1, 1, 1] -", "", conv_transpose3d},
    {"conv_transpose3d", "f32[2, 3, 3, 2, 4] f32[3, 2, 2, 2, 2] f32[2]", "stride = 2",
     conv_transpose3d},
    {"conv_transpose3d", "f32[2, 3, 3, 2, 4] f32[3, 2, 3, 3, 3] f32[2]",
     "stride = 2, pad = 1, output_pad = 1", conv_transpose3d},
    {"conv_transpose3d", "f32[1, 3, 3, 2, 4] f32[3, 2, 3, 2, 3] -", "pad = [1, 0, 2, 0, 1, 0]",
     conv_transpose3d},
    {"conv_transpose3d", "f32[1, 3, 3, 2, 4] f32[3, 2, 2, 2, 3] -", "stride = [4, 1, 2]",
     conv_transpose3d},
    {"conv_transpose3d", "f32[1, 4, 3, 2, 4] f32[4, 3, 3, 2, 3] f32[6]",
     "stride = [2, 1, 3], dilation = [3, 2, 1], groups = 2, output_pad = [1, 0, 2]",
     conv_transpose3d},
    {"conv_transpose3d", "f32[2, 4, 3, 3, 3] - -", "channels = 2, kernel = 2, stride = 2",
     conv_transpose3d},
    {"maxpool3d", "f32[2, 3, 4, 6, 8]", "kernel = 2", maxpool3d},
    {"maxpool3d", "f32[2, 3, 5, 7, 9]", "kernel = 3, stride = 2, pad = 1, ceil = true", maxpool3d},
    {"maxpool3d", "f32[1, 2, 7, 5, 6]",
     "kernel = [3, 2, 1], stride = [1, 2, 3], pad = [2, 1, 0, 1, 0, 0], dilation = [2, 1, 1]",
     maxpool3d},
    {"maxpool3d", "f32[1, 1, 3, 4, 4]:nan..nan", "kernel = 2", maxpool3d},
    {"avgpool3d", "f32[2, 3, 4, 6, 8]", "kernel = 2", avgpool3d},
    {"avgpool3d", "f32[2, 3, 5, 7, 9]", "kernel = 3, stride = 2, pad = 1, ceil = true", avgpool3d},
    {"avgpool3d", "f32[2, 3, 5, 8, 10]",
     "kernel = 3, stride = 2, pad = 1, ceil = true, count_include_pad = true", avgpool3d},
    {"avgpool3d", "f32[1, 2, 7, 5, 6]",
     "kernel = [3, 2, 1], stride = [1, 2, 3], pad = [2, 1, 0, 1, 0, 0], dilation = [2, 1, 1]",
     avgpool3d},
    {0},
};

OP_ERRORS(volume) = {
    {"conv3d", "f32[2, 3, 8, 8] f32[4, 3, 3, 3, 3]", "", "conv3d: x must be [N, C, D, H, W]"},
    {"conv3d", "f32[2, 3, 8, 8] - -", "channels = 2, kernel = 3",
     "conv3d: x must be [N, C, D, H, W]"},
    {"conv3d", "f32[2, 3, 8, 8, 8] f32[4, 2, 3, 3, 3]", "", "expects 2 input channels"},
    {"conv3d", "f32[2, 3, 2, 8, 8] f32[4, 3, 3, 3, 3]", "",
     "is larger than x [2, 3, 2, 8, 8] with its padding"},
    {"conv3d", "f32[2, 3, 8, 8, 8] f32[4, 3, 3, 3, 3]", "pad = [1, 1]", "conv3d: pad takes"},
    {"conv3d", "f32[1, 1, 300, 1, 1] f32[1, 1, 257, 1, 1]", "", "more than 256 slices"},
    {"conv_transpose3d", "f32[1, 1, 3, 1, 1] f32[1, 1, 257, 1, 1]", "", "more than 256 slices"},
    {"conv_transpose3d", "f32[2, 3, 8, 8, 8] f32[4, 3, 3, 3, 3]", "", "expects 4 input channels"},
    {"conv_transpose3d", "f32[2, 3, 2, 2, 2] f32[3, 3, 1, 1, 1]", "pad = 1",
     "pad leaves the output empty"},
    {"maxpool3d", "f32[2, 3, 8, 8]", "kernel = 2", "maxpool3d: x must be [N, C, D, H, W]"},
    {"avgpool3d", "f32[2, 3, 2, 8, 8]", "kernel = 3",
     "avgpool3d: the kernel [3, 3, 3] is larger than x"},
    {"avgpool3d", "f32[2, 3, 8, 8, 8]", "kernel = 2, pad = 2", "pad must be less than kernel = 2"},
    {0},
};
