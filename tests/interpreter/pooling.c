/* Pools. A window's largest element is its first where several are equal. */
#include "tests/interpreter/interpreter.h"

typedef struct {
    int64_t plane, size, begin[2], end[2]; /* of the windows's elements inside the plane */
    int64_t counted;                       /* elements that a mean counts */
} Field;

typedef struct {
    const int64_t *kernel, *stride, *pad;
    bool count_pad;
} Settings;

static Settings settings_of(const Run *r)
{
    return (Settings){run_list(r, "kernel"), run_list(r, "stride"), run_list(r, "pad"), false};
}

static Field field_of(const Run *r, const Settings *s, int64_t i)
{
    const Array *x = &r->in[0], *y = &r->out[0];
    int64_t place[2] = {i / y->dim[3] % y->dim[2], i % y->dim[3]};
    Field f = {.plane = i / (y->dim[2] * y->dim[3]) * x->dim[2] * x->dim[3], .counted = 1};
    for (int k = 0; k < 2; k++) {
        int64_t begin = place[k] * s->stride[k] - s->pad[k], end = begin + s->kernel[k];
        int64_t size = x->dim[2 + k], padded = size + s->pad[2 + k];
        f.begin[k] = begin < 0 ? 0 : begin;
        f.end[k] = end > size ? size : end;
        f.counted *= s->count_pad ? (end > padded ? padded : end) - begin : f.end[k] - f.begin[k];
    }
    return f;
}

static int64_t largest(const Run *r, const Field *f)
{
    const Array *x = &r->in[0];
    int64_t best = f->plane + f->begin[0] * x->dim[3] + f->begin[1];
    for (int64_t h = f->begin[0]; h < f->end[0]; h++)
        for (int64_t w = f->begin[1]; w < f->end[1]; w++)
            if (x->at[f->plane + h * x->dim[3] + w] > x->at[best])
                best = f->plane + h * x->dim[3] + w;
    return best;
}

static void maxpool(const Run *r)
{
    Settings s = settings_of(r);
    for (int64_t i = 0; i < r->out[0].count; i++) {
        Field f = field_of(r, &s, i);
        r->out[0].at[i] = r->in[0].at[largest(r, &f)];
    }
}

static void maxpool_back(const Run *r)
{
    Settings s = settings_of(r);
    for (int64_t i = 0; r->din[0].at && i < r->out[0].count; i++) {
        Field f = field_of(r, &s, i);
        r->din[0].at[largest(r, &f)] += r->dout[0].at[i];
    }
}

static void avgpool(const Run *r)
{
    Settings s = settings_of(r);
    s.count_pad = run_int(r, "count_include_pad");
    for (int64_t i = 0; i < r->out[0].count; i++) {
        Field f = field_of(r, &s, i);
        double sum = 0;
        for (int64_t h = f.begin[0]; h < f.end[0]; h++)
            for (int64_t w = f.begin[1]; w < f.end[1]; w++)
                sum += r->in[0].at[f.plane + h * r->in[0].dim[3] + w];
        r->out[0].at[i] = sum / (double)f.counted;
    }
}

static void avgpool_back(const Run *r)
{
    Settings s = settings_of(r);
    s.count_pad = run_int(r, "count_include_pad");
    for (int64_t i = 0; r->din[0].at && i < r->out[0].count; i++) {
        Field f = field_of(r, &s, i);
        for (int64_t h = f.begin[0]; h < f.end[0]; h++)
            for (int64_t w = f.begin[1]; w < f.end[1]; w++)
                r->din[0].at[f.plane + h * r->in[0].dim[3] + w] +=
                    r->dout[0].at[i] / (double)f.counted;
    }
}

static void global_avgpool(const Run *r)
{
    int64_t plane = r->in[0].count / r->out[0].count;
    for (int64_t i = 0; i < r->in[0].count; i++)
        r->out[0].at[i / plane] += r->in[0].at[i] / (double)plane;
}

static void global_avgpool_back(const Run *r)
{
    int64_t plane = r->in[0].count / r->out[0].count;
    for (int64_t i = 0; r->din[0].at && i < r->in[0].count; i++)
        r->din[0].at[i] += r->dout[0].at[i / plane] / (double)plane;
}

const Op naive_pooling[] = {{"maxpool2d", maxpool, maxpool_back},
                            {"avgpool2d", avgpool, avgpool_back},
                            {"global_avgpool", global_avgpool, global_avgpool_back},
                            {0}};
