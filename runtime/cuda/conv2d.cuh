/* Convolution of images [N, C, H, W] with weights [O, C / groups, KH, KW].
 *
 * An implicit GEMM for each group, weights [O, K] times the patches [K, N * OH * OW], which are
 * read straight from the images (tiles.cuh). Depthwise convolution has too little to multiply for
 * that: there, a thread sums its output directly. */
#ifndef GP_CONV2D_CUH
#define GP_CONV2D_CUH

#include "tiles.cuh"

/* A window along one axis: tap t of output o reads o * step + first + t * tap. Output o is element
 * at + o * apart of the result, tap t element weight + t * weight_step of the weights' window. */
typedef struct {
    int64_t outputs, taps, step, first, tap;
    int64_t at, apart, weight, weight_step;
} gp_slide;

/* Weight (o, c, k) of group g, with k a tap of the window, is at[g * group + o * row + c * channel
 * + k]. */
typedef struct {
    gp_reals at;
    int64_t group, row, channel, width; /* width: of the window */
} gp_weights;

typedef struct {
    gp_tensor x, y;
    gp_reals bias;
    int32_t half; /* what is multiplied, where that has 16 bits; else GP_F32 */
    gp_weights w;
    gp_slide slide[2];
    int64_t groups, inputs, outputs; /* channels of a group */
} gp_conv;

GP_UNUSED static gp_conv gp_conv_of(const gp_call *c, int64_t groups)
{
    gp_conv v = {};
    v.x = c->in[0];
    v.y = c->out[0];
    v.bias = gp_reals_in(c, 2);
    v.half = gp_half_of(c);
    v.w.at = gp_reals_of(&c->in[1]);
    v.w.width = c->in[1].dim[3];
    v.groups = groups;
    v.inputs = v.x.dim[1] / groups;
    v.outputs = v.y.dim[1] / groups;
    return v;
}

/* ---- Depthwise ------------------------------------------------------------------------------ */

GP_DEVICE gp_real gp_direct_sum(const gp_conv &v, const gp_reals &plane, const gp_reals &w,
                                int64_t h, int64_t j, gp_real sum)
{
    for (int64_t i = 0; i < v.slide[0].taps; i++, h += v.slide[0].tap) {
        if (h < 0 || h >= v.x.dim[2])
            continue;
        const int64_t row = (v.slide[0].weight + i * v.slide[0].weight_step) * v.w.width;
        for (int64_t k = 0, at = j; k < v.slide[1].taps; k++, at += v.slide[1].tap)
            if (at >= 0 && at < v.x.dim[3])
                sum += gp_factor(w, row + v.slide[1].weight + k * v.slide[1].weight_step, v.half) *
                       gp_factor(plane, h * v.x.stride[2] + at * v.x.stride[3], v.half);
    }
    return sum;
}

static __global__ void gp_conv_direct(const gp_conv v)
{
    const int64_t width = v.slide[1].outputs, size = v.slide[0].outputs * width;
    for (GP_EACH(i, v.y.dim[0] * v.y.dim[1] * size)) {
        const int64_t n = i / size / v.y.dim[1], out = i / size % v.y.dim[1];
        const int64_t oh = i % size / width, ow = i % width, group = out / v.outputs;
        const gp_reals plane =
            gp_reals_from(gp_reals_of(&v.x), n * v.x.stride[0] + group * v.x.stride[1]);
        const gp_reals w = gp_reals_from(v.w.at, group * v.w.group + out % v.outputs * v.w.row);
        const int64_t to = n * v.y.stride[0] + out * v.y.stride[1] +
                           (v.slide[0].at + oh * v.slide[0].apart) * v.y.stride[2] +
                           (v.slide[1].at + ow * v.slide[1].apart) * v.y.stride[3];
        const gp_real sum = gp_direct_sum(v, plane, w, oh * v.slide[0].step + v.slide[0].first,
                                          ow * v.slide[1].step + v.slide[1].first,
                                          v.bias.at ? gp_factor(v.bias, out, v.half) : (gp_real)0);
        gp_reals_of(&v.y).put(to, sum);
    }
}

/* ---- As a product --------------------------------------------------------------------------- */

GP_UNUSED static gp_tiles gp_conv_tiles(const gp_conv *v)
{
    gp_tiles t = {};
    const gp_tensor *x = &v->x, *y = &v->y;
    t.rows = v->outputs;
    t.depth = v->inputs * v->slide[0].taps * v->slide[1].taps;
    t.columns = y->dim[0] * v->slide[0].outputs * v->slide[1].outputs;
    t.batches = v->groups;
    t.left = gp_reals_from(v->w.at, v->slide[0].weight * v->w.width + v->slide[1].weight);
    t.right = gp_reals_of(x);
    t.to = gp_reals_of(y);
    t.bias = v->bias;
    t.half = v->half;
    t.left_row = v->w.row;
    t.left_batch = v->w.group;
    t.left_depth.stride[0] = v->w.channel;
    t.left_depth.stride[1] = v->slide[0].weight_step * v->w.width;
    t.left_depth.stride[2] = v->slide[1].weight_step;
    t.right_batch = v->inputs * x->stride[1];
    t.right_depth.stride[0] = x->stride[1];
    t.right_column[0] = x->stride[0];
    t.to_row = y->stride[1];
    t.to_batch = v->outputs * y->stride[1];
    t.to_column[0] = y->stride[0];
    for (int i = 0; i < 2; i++) {
        const gp_slide *s = &v->slide[i];
        t.depth_radix[i] = s->taps > 0 ? s->taps : 1;
        t.column_radix[i] = s->outputs;
        t.first[i] = s->first;
        t.depth_step[i] = s->tap;
        t.column_step[i] = s->step;
        t.size[i] = x->dim[2 + i];
        t.right = gp_reals_from(t.right, s->first * x->stride[2 + i]);
        t.right_depth.stride[1 + i] = s->tap * x->stride[2 + i];
        t.right_column[1 + i] = s->step * x->stride[2 + i];
        t.to = gp_reals_from(t.to, s->at * y->stride[2 + i]);
        t.to_column[1 + i] = s->apart * y->stride[2 + i];
    }
    t.parts = 1;
    return t;
}

/* The result in the workspace: one contiguous tensor for each part of the depth. */
GP_UNUSED static gp_conv gp_conv_part(const gp_conv *v, void *work)
{
    gp_conv part = *v;
    part.y.data = work;
    part.y.dtype = GP_F32;
    part.bias.at = NULL;
    for (int i = 4; i-- > 0;)
        part.y.stride[i] = i == 3 ? 1 : part.y.stride[i + 1] * part.y.dim[i + 1];
    return part;
}

/* All outputs of the windows of `v`. */
GP_UNUSED static int gp_conv_run(const gp_call *c, const gp_conv *v, int64_t parts)
{
    const int64_t outputs = v->slide[0].outputs * v->slide[1].outputs;
    if (v->inputs == 1) {
        const int64_t count = v->y.dim[0] * v->y.dim[1] * outputs;
        GP_LAUNCH(c, gp_conv_direct, gp_blocks(count, GP_BLOCK), GP_BLOCK, 0, *v);
        return GP_OK;
    }
    const gp_conv part = gp_conv_part(v, c->work);
    gp_tiles t = gp_conv_tiles(parts > 1 ? &part : v);
    t.parts = parts;
    t.to_part = gp_count(&v->y);
    return gp_tiles_run(c, t);
}

/* After all windows have run. */
GP_UNUSED static int gp_conv_join(const gp_call *c, const gp_conv *v, int64_t parts)
{
    const int64_t count = gp_count(&v->y);
    if (v->inputs > 1 && parts > 1)
        GP_LAUNCH(c, gp_tiles_join, gp_blocks(count, GP_BLOCK), GP_BLOCK, 0,
                  (const gp_real *)c->work, count, parts, v->bias, v->half, v->y);
    return GP_OK;
}

GP_KERNEL(conv2d)
{
    const gp_conv2d_attr *a = (const gp_conv2d_attr *)c->attr;
    const gp_tensor *w = &c->in[1];
    const int64_t parts = gp_conv2d_parts(c);
    gp_conv v = gp_conv_of(c, a->groups);
    v.w.channel = w->dim[2] * w->dim[3];
    v.w.row = v.inputs * v.w.channel;
    v.w.group = v.outputs * v.w.row;
    for (int i = 0; i < 2; i++) {
        gp_slide *s = &v.slide[i];
        s->outputs = v.y.dim[2 + i];
        s->taps = w->dim[2 + i];
        s->step = a->stride[i];
        s->first = -a->pad[i];
        s->tap = a->dilation[i];
        s->apart = s->weight_step = 1;
    }
    const int status = gp_conv_run(c, &v, parts);
    return status != GP_OK ? status : gp_conv_join(c, &v, parts);
}

GP_TAKES_HALF(conv2d)

#endif
