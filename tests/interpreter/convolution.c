/* Convolutions: every place of the result sees a patch of the image, as a row of numbers that is
 * written out; what is left is a product. A transposed convolution is the same the other way round:
 * every place of the operand leaves a patch in the result. */
#include "tests/interpreter/interpreter.h"

#include <stdlib.h>

enum { PLACES = 64 }; /* of the smaller image, taken at a time */

typedef struct {
    int64_t images, groups;
    int64_t channels, height, width; /* of the image that has patches; channels of a group */
    int64_t others, rows, columns;   /* of the other one, likewise */
    int64_t kernel[2], stride[2], pad[2], dilation[2];
    int64_t patch; /* numbers in one */
} Window;

static Window window_of(const Run *r, const Array *image, const Array *other)
{
    const Array *w = &r->in[1];
    Window v = {.images = image->dim[0], .groups = run_int(r, "groups")};
    v.channels = image->dim[1] / v.groups;
    v.others = other->dim[1] / v.groups;
    v.height = image->dim[2];
    v.width = image->dim[3];
    v.rows = other->dim[2];
    v.columns = other->dim[3];
    for (int i = 0; i < 2; i++) {
        v.kernel[i] = w->dim[2 + i];
        v.stride[i] = run_list(r, "stride")[i];
        v.pad[i] = run_list(r, "pad")[i]; /* begins stand first */
        v.dilation[i] = run_list(r, "dilation")[i];
    }
    v.patch = v.channels * v.kernel[0] * v.kernel[1];
    return v;
}

/* The element of the channel that window (row, column) has at (p, q); -1: padding. */
static int64_t element(const Window *v, int64_t row, int64_t column, int64_t p, int64_t q)
{
    int64_t y = row * v->stride[0] + p * v->dilation[0] - v->pad[0];
    int64_t x = column * v->stride[1] + q * v->dilation[1] - v->pad[1];
    return y < 0 || y >= v->height || x < 0 || x >= v->width ? -1 : y * v->width + x;
}

/* Places are counted through all images. Where the group's channels of a place's image begin: */
static int64_t image_begin(const Window *v, int64_t group, int64_t place)
{
    int64_t image = place / (v->rows * v->columns);
    return (image * v->groups + group) * v->channels * v->height * v->width;
}

static int64_t other_begin(const Window *v, int64_t group, int64_t place)
{
    int64_t plane = v->rows * v->columns;
    return (place / plane * v->groups + group) * v->others * plane + place % plane;
}

/* patch[place, channel, p, q], for some places from `first` on. */
static void read_patches(const Window *v, const double *images, int64_t group, int64_t first,
                         int64_t some, double *patch)
{
    for (int64_t i = first; i < first + some; i++) {
        const double *image = images + image_begin(v, group, i);
        int64_t row = i / v->columns % v->rows, column = i % v->columns;
        for (int64_t c = 0; c < v->channels; c++, image += v->height * v->width)
            for (int64_t p = 0; p < v->kernel[0]; p++)
                for (int64_t q = 0; q < v->kernel[1]; q++) {
                    int64_t at = element(v, row, column, p, q);
                    *patch++ = at < 0 ? 0 : image[at];
                }
    }
}

static void add_patches(const Window *v, const double *patch, int64_t group, int64_t first,
                        int64_t some, double *images)
{
    for (int64_t i = first; i < first + some; i++) {
        double *image = images + image_begin(v, group, i);
        int64_t row = i / v->columns % v->rows, column = i % v->columns;
        for (int64_t c = 0; c < v->channels; c++, image += v->height * v->width)
            for (int64_t p = 0; p < v->kernel[0]; p++)
                for (int64_t q = 0; q < v->kernel[1]; q++, patch++) {
                    int64_t at = element(v, row, column, p, q);
                    if (at >= 0)
                        image[at] += *patch;
                }
    }
}

/* Places of the other image lie as [channel, place]; here as [place, channel]. */
static void read_places(const Window *v, const double *others, int64_t group, int64_t first,
                        int64_t some, double *to)
{
    for (int64_t i = first; i < first + some; i++)
        for (int64_t c = 0; c < v->others; c++)
            *to++ = others[other_begin(v, group, i) + c * v->rows * v->columns];
}

static void add_places(const Window *v, const double *from, int64_t group, int64_t first,
                       int64_t some, double *others)
{
    for (int64_t i = first; i < first + some; i++)
        for (int64_t c = 0; c < v->others; c++)
            others[other_begin(v, group, i) + c * v->rows * v->columns] += *from++;
}

/* Weights of a group are a matrix of others by patch: they lie as [others, channels, p, q]. What
 * is wanted of the three is not NULL, and is added to. */
typedef struct {
    const double *image, *other, *w;
    double *to_image, *to_other, *to_w;
} Data;

static void some_places(const Window *v, const Data *d, int64_t group, int64_t first,
                        const double *w, const double *transposed, double *to_w)
{
    int64_t all = v->images * v->rows * v->columns;
    int64_t some = first + PLACES < all ? PLACES : all - first;
    double *patch = need_doubles(some * v->patch), *place = need_doubles(some * v->others);
    if (d->image)
        read_patches(v, d->image, group, first, some, patch);
    if (d->to_other) { /* places = patches @ w' */
        product(some, v->others, v->patch, patch, transposed, place);
        add_places(v, place, group, first, some, d->to_other);
    }
    if (d->other)
        read_places(v, d->other, group, first, some, place);
    if (to_w) { /* dw = places' @ patches */
        double *across = need_doubles(some * v->others);
        transpose(some, v->others, place, across);
        product(v->others, v->patch, some, across, patch, to_w);
        free(across);
    }
    if (d->to_image) { /* patches = places @ w */
        double *back = need_doubles(some * v->patch);
        product(some, v->patch, v->others, place, w, back);
#pragma omp critical
        add_patches(v, back, group, first, some, d->to_image);
        free(back);
    }
    free(patch);
    free(place);
}

/* Threads take places, each with a sum of its own for the weights. */
static void every_place(const Window *v, const Data *d)
{
    int64_t all = v->images * v->rows * v->columns, size = v->others * v->patch;
    for (int64_t group = 0; group < v->groups; group++) {
        const double *w = d->w + group * size;
        double *transposed = need_doubles(size), *to_w = d->to_w ? d->to_w + group * size : NULL;
        transpose(v->others, v->patch, w, transposed);
        if (all <= PLACES || v->groups > 1) {
            for (int64_t first = 0; first < all; first += PLACES)
                some_places(v, d, group, first, w, transposed, to_w);
            free(transposed);
            continue;
        }
#pragma omp parallel
        {
            double *own = to_w ? need_doubles(size) : NULL;
#pragma omp for schedule(dynamic)
            for (int64_t first = 0; first < all; first += PLACES)
                some_places(v, d, group, first, w, transposed, own);
#pragma omp critical
            for (int64_t i = 0; own && i < size; i++)
                to_w[i] += own[i];
            free(own);
        }
        free(transposed);
    }
}

static void add_bias(const Run *r)
{
    const Array *y = &r->out[0];
    int64_t plane = y->dim[2] * y->dim[3];
    for (int64_t i = 0; r->ins > 2 && r->in[2].at && i < y->count; i++)
        y->at[i] += r->in[2].at[i / plane % y->dim[1]];
}

static void add_bias_gradient(const Run *r)
{
    const Array *dy = &r->dout[0];
    int64_t plane = dy->dim[2] * dy->dim[3];
    for (int64_t i = 0; r->ins > 2 && r->din[2].at && i < dy->count; i++)
        r->din[2].at[i / plane % dy->dim[1]] += dy->at[i];
}

static void conv2d(const Run *r)
{
    Window v = window_of(r, &r->in[0], &r->out[0]);
    every_place(&v, &(Data){.image = r->in[0].at, .w = r->in[1].at, .to_other = r->out[0].at});
    add_bias(r);
}

static void conv2d_back(const Run *r)
{
    Window v = window_of(r, &r->in[0], &r->out[0]);
    every_place(&v, &(Data){.image = r->in[0].at,
                            .other = r->dout[0].at,
                            .w = r->in[1].at,
                            .to_image = r->din[0].at,
                            .to_w = r->din[1].at});
    add_bias_gradient(r);
}

static void conv_transpose2d(const Run *r)
{
    Window v = window_of(r, &r->out[0], &r->in[0]);
    every_place(&v, &(Data){.other = r->in[0].at, .w = r->in[1].at, .to_image = r->out[0].at});
    add_bias(r);
}

/* Two passes: the first needs patches of dy and adds places to dx, the second has both. */
static void conv_transpose2d_back(const Run *r)
{
    Window v = window_of(r, &r->out[0], &r->in[0]);
    every_place(&v, &(Data){.image = r->dout[0].at, .w = r->in[1].at, .to_other = r->din[0].at});
    every_place(&v, &(Data){.image = r->dout[0].at,
                            .other = r->in[0].at,
                            .w = r->in[1].at,
                            .to_w = r->din[1].at});
    add_bias_gradient(r);
}

const Op naive_convolution[] = {{"conv2d", conv2d, conv2d_back},
                                {"conv_transpose2d", conv_transpose2d, conv_transpose2d_back},
                                {0}};
