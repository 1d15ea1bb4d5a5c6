/* The workspace of the kernels of the CUDA target, with the settings it depends on. Plain C: gplan
 * calls these functions while it plans, without CUDA. */
#ifndef GP_CUDA_WORK_H
#define GP_CUDA_WORK_H

#include "../c/fold.h"
#include "../c/resize_taps.h"
#include "settings.h"

/* ---- Reductions: sum, mean, prod, max, min, var ---------------------------------------------- */

/* How many parts the elements of an output are split into, so that a few large outputs keep a GPU
 * busy. It follows from the shape, and the bits of a sum from it. */
GP_FUNCTION int64_t gp_reduce_chunks(const gp_fold *fold)
{
    const int64_t outputs = fold->outers * fold->width;
    const int64_t least = fold->width > 1 ? 64 : 4096; /* elements of a part */
    const int64_t wanted = (fold->width > 1 ? 65536 : 1024) / outputs;
    const int64_t chunks = (fold->count + least - 1) / least;
    return wanted <= 1 ? 1 : chunks < wanted ? chunks : wanted;
}

/* Parts are doubles or 64-bit integers. */
GP_FUNCTION size_t gp_reduce_parts(const gp_call *c, int64_t axes)
{
    const gp_fold fold = gp_fold_of(&c->in[0], axes);
    const int64_t chunks = gp_reduce_chunks(&fold);
    return chunks == 1 ? 0 : (size_t)(chunks * fold.outers * fold.width) * sizeof(double);
}

GP_WORKSPACE(sum)
{
    return gp_reduce_parts(c, ((const gp_sum_attr *)c->attr)->axes);
}

GP_WORKSPACE(mean)
{
    return gp_reduce_parts(c, ((const gp_mean_attr *)c->attr)->axes);
}

GP_WORKSPACE(prod)
{
    return gp_reduce_parts(c, ((const gp_prod_attr *)c->attr)->axes);
}

GP_WORKSPACE(max)
{
    return gp_reduce_parts(c, ((const gp_max_attr *)c->attr)->axes);
}

GP_WORKSPACE(min)
{
    return gp_reduce_parts(c, ((const gp_min_attr *)c->attr)->axes);
}

/* Also holds the means. */
GP_WORKSPACE(var)
{
    return gp_reduce_parts(c, ((const gp_var_attr *)c->attr)->axes) +
           (size_t)gp_count(&c->out[0]) * sizeof(double);
}

/* ---- Gradients of layernorm and the like: sums over rows, in parts --------------------------- */

GP_FUNCTION int64_t gp_norm_chunks(int64_t rows)
{
    return rows < 1024 ? (rows + 31) / 32 : 32;
}

GP_WORKSPACE(norm_grad)
{
    const gp_norm_grad_attr *a = (const gp_norm_grad_attr *)c->attr;
    const gp_tensor *x = &c->in[0];
    const int64_t rows = gp_span(x, 0, x->rank - (int)a->axes), n = gp_count(x) / rows;
    return (size_t)(2 * gp_norm_chunks(rows) * n) * sizeof(double);
}

/* ---- Batch normalization: sums over a channel, in parts -------------------------------------- */

typedef struct {
    int64_t samples, channels, width; /* width: elements of a channel in a sample */
    int64_t chunks;                   /* parts that a channel is split into */
    int64_t apart[2];                 /* elements from a sample to the next, of x and of dy */
} gp_channels;

GP_FUNCTION gp_channels gp_channels_of(const gp_tensor *t)
{
    gp_channels s;
    s.samples = t->dim[0];
    s.channels = t->dim[1];
    s.width = gp_span(t, 2, t->rank);
    s.chunks = (s.samples * s.width + 4095) / 4096;
    s.chunks = s.chunks < 64 ? s.chunks : 64;
    s.apart[0] = s.apart[1] = t->stride[0];
    return s;
}

/* Two sums for each part, then two numbers for each channel. */
GP_FUNCTION size_t gp_channels_work(const gp_tensor *t)
{
    const gp_channels s = gp_channels_of(t);
    return (size_t)(2 * s.channels * (s.chunks + 1)) * sizeof(double);
}

GP_WORKSPACE(batchnorm_train)
{
    return gp_channels_work(&c->in[0]);
}

GP_WORKSPACE(batchnorm_grad)
{
    return gp_channels_work(&c->in[0]);
}

GP_WORKSPACE(batchnorm_part)
{
    return gp_channels_work(&c->in[0]);
}

GP_WORKSPACE(batchnorm_given)
{
    return (size_t)(2 * gp_channels_of(&c->in[0]).channels) * sizeof(gp_real);
}

GP_WORKSPACE(batchnorm_sums)
{
    return gp_channels_work(&c->in[0]);
}

GP_WORKSPACE(batchnorm_given_grad)
{
    return gp_batchnorm_given_workspace(c);
}

/* ---- clip_factor: a sum of squares for each chunk of each gradient --------------------------- */

enum { GP_CLIP_CHUNK = 1 << 12 }; /* ranks have whole chunks */

GP_FUNCTION int64_t gp_clip_parts(const gp_tensor *t)
{
    return (gp_count(t) + GP_CLIP_CHUNK - 1) / GP_CLIP_CHUNK;
}

GP_WORKSPACE(clip_factor)
{
    int64_t parts = 0;
    for (int i = 0; i < c->ins; i++)
        parts += gp_clip_parts(&c->in[i]);
    return (size_t)parts * sizeof(double);
}

GP_WORKSPACE(unscale)
{
    return gp_clip_factor_workspace(c); /* and no more: that of the loss scale is counted too */
}

/* Operands in pairs: a parameter, for how long it is, and its gradient or a shard of it. */
GP_FUNCTION size_t gp_norm_work(const gp_call *c, int first)
{
    int64_t parts = 0;
    for (int i = first; i + 1 < c->ins; i += 2)
        parts += gp_clip_parts(&c->in[i]);
    return (size_t)parts * sizeof(double);
}

GP_WORKSPACE(clip_factor_shards)
{
    return gp_norm_work(c, 1);
}

GP_WORKSPACE(unscale_shards)
{
    return gp_norm_work(c, 2);
}

/* ---- rope: cosines and sines of every position ----------------------------------------------- */

GP_WORKSPACE(rope)
{
    const gp_tensor *x = &c->in[0];
    return (size_t)(x->dim[x->rank - 2] * x->dim[x->rank - 1]) * sizeof(gp_real);
}

/* ---- Products ------------------------------------------------------------------------------- */

GP_FUNCTION int64_t gp_ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

GP_FUNCTION int64_t gp_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

GP_FUNCTION int64_t gp_magnitude(int64_t a)
{
    return a < 0 ? -a : a;
}

/* Workspace of cuBLAS: as much as the result, to add up parts of it; below 16 KiB some of its
 * routines fail, and above 4 MiB few get faster. */
GP_FUNCTION size_t gp_blas_bytes(int64_t results)
{
    const int64_t bytes = results * (int64_t)sizeof(gp_real), least = 16 << 10, most = 4 << 20;
    return (size_t)(bytes < least ? least : bytes < most ? gp_ceil_div(bytes, 256) * 256 : most);
}

#ifndef GP_ROUNDED_REALS
#define GP_ROUNDED_REALS (1 << 22)
#define GP_ROUNDED_LEAST 128
#endif
/* Columns of a parameter [depth, columns] that are rounded to 16 bits at once. */
GP_FUNCTION int64_t gp_rounded_columns(int64_t columns, int64_t depth)
{
    const int64_t least = GP_ROUNDED_LEAST, some = GP_ROUNDED_REALS / depth / least * least;
    return gp_least(some > least ? some : least, columns);
}

GP_FUNCTION size_t gp_rounded_bytes(int64_t columns, int64_t depth)
{
    return (size_t)(gp_rounded_columns(columns, depth) * depth * (int64_t)sizeof(uint16_t));
}

/* A parameter is rounded in part; which of both operands is one does not matter for the form. */
GP_WORKSPACE(matmul)
{
    const gp_tensor *a = &c->in[0], *b = &c->in[1];
    const size_t blas = gp_blas_bytes(gp_count(&c->out[0]));
    if (a->dtype == b->dtype)
        return blas;
    return blas + (a->dtype == GP_F32
                       ? gp_rounded_bytes(gp_span(a, 0, a->rank - 1), a->dim[a->rank - 1])
                       : gp_rounded_bytes(b->dim[b->rank - 1], a->dim[a->rank - 1]));
}

enum { GP_TILE = 64, GP_TILES_WANTED = 256 }; /* as many blocks as keep a large device busy */
#ifndef GP_PART_DEPTH
#define GP_PART_DEPTH 256 /* the least depth of a part */
#endif

/* Into how many parts the depth of a product is split, where it has too few tiles. */
GP_FUNCTION int64_t gp_tile_parts(int64_t rows, int64_t columns, int64_t depth, int64_t batches)
{
    const int64_t tiles = gp_ceil_div(rows, GP_TILE) * gp_ceil_div(columns, GP_TILE) * batches;
    const int64_t parts = gp_least(GP_TILES_WANTED / tiles, depth / GP_PART_DEPTH);
    return parts > 1 ? parts : 1;
}

/* One result for each part. */
GP_FUNCTION size_t gp_tile_bytes(const gp_tensor *to, int64_t parts)
{
    return parts > 1 ? (size_t)(parts * gp_count(to)) * sizeof(gp_real) : 0;
}

/* ---- Convolutions --------------------------------------------------------------------------- */

GP_FUNCTION int64_t gp_conv2d_parts(const gp_call *c)
{
    const gp_conv2d_attr *a = (const gp_conv2d_attr *)c->attr;
    const gp_tensor *w = &c->in[1], *y = &c->out[0];
    if (w->dim[1] == 1) /* summed directly */
        return 1;
    return gp_tile_parts(y->dim[1] / a->groups, y->dim[0] * y->dim[2] * y->dim[3], gp_span(w, 1, 4),
                         a->groups);
}

GP_WORKSPACE(conv2d)
{
    return gp_tile_bytes(&c->out[0], gp_conv2d_parts(c));
}

/* Of one phase of the result: see conv_transpose2d.cuh. */
GP_FUNCTION int64_t gp_conv_transpose2d_parts(const gp_call *c)
{
    const gp_conv_transpose2d_attr *a = (const gp_conv_transpose2d_attr *)c->attr;
    const gp_tensor *w = &c->in[1], *y = &c->out[0];
    const int64_t inputs = c->in[0].dim[1] / a->groups, phases = a->stride[0] * a->stride[1];
    if (inputs == 1)
        return 1;
    return gp_tile_parts(w->dim[1], gp_ceil_div(y->dim[0] * y->dim[2] * y->dim[3], phases),
                         inputs * w->dim[2] * w->dim[3] / phases, a->groups);
}

GP_WORKSPACE(conv_transpose2d)
{
    return gp_tile_bytes(&c->out[0], gp_conv_transpose2d_parts(c));
}

GP_FUNCTION int64_t gp_conv2d_weight_grad_parts(const gp_call *c)
{
    const gp_conv2d_weight_grad_attr *a = (const gp_conv2d_weight_grad_attr *)c->attr;
    const gp_tensor *dy = &c->in[1], *dw = &c->out[0];
    if (dw->dim[1] == 1)
        return 1;
    return gp_tile_parts(dw->dim[0] / a->groups, gp_span(dw, 1, 4),
                         dy->dim[0] * dy->dim[2] * dy->dim[3], a->groups);
}

GP_WORKSPACE(conv2d_weight_grad)
{
    return gp_tile_bytes(&c->out[0], gp_conv2d_weight_grad_parts(c));
}

/* ---- Resizing: the rows of a band matrix ----------------------------------------------------- */

GP_WORKSPACE(resize_axis)
{
    const gp_resize v = gp_resize_of((const gp_resize_axis_attr *)c->attr, &c->in[0], &c->out[0]);
    return gp_resize_table(&v);
}

/* Going back: from which element of the result to which each element of the operand is in. */
GP_FUNCTION size_t gp_resize_spans(const gp_resize *v)
{
    return 2 * (size_t)v->in * sizeof(int64_t);
}

GP_WORKSPACE(resize_axis_grad)
{
    const gp_resize v = gp_resize_of((const gp_resize_axis_attr *)c->attr, &c->out[0], &c->in[0]);
    return gp_resize_table(&v) + gp_resize_spans(&v);
}

/* ---- Gradients of 16 bits that are sums or products of their own ------------------------------
 */

#ifndef GP_LINES_AT_ONCE
#define GP_LINES_AT_ONCE (1 << 14)
#define GP_PLANES_AT_ONCE (1 << 12)
#endif

/* Threads of prod_grad, and of grid_sample_grad, each with a line or a plane in f32. */
GP_FUNCTION int64_t gp_prod_threads(int64_t lines)
{
    return gp_least(lines, GP_LINES_AT_ONCE);
}

GP_FUNCTION int64_t gp_grid_threads(int64_t planes)
{
    return gp_least(planes, GP_PLANES_AT_ONCE);
}

GP_WORKSPACE(prod_grad)
{
    const gp_prod_grad_attr *a = (const gp_prod_grad_attr *)c->attr;
    const gp_fold to = gp_fold_of(&c->out[0], a->axes);
    const int64_t lines = to.outers * to.width;
    return gp_is_half(c) ? (size_t)(gp_prod_threads(lines) * to.count) * sizeof(gp_real) : 0;
}

GP_WORKSPACE(grid_sample_grad)
{
    const gp_tensor *dx = &c->out[0];
    const int64_t planes = gp_span(dx, 0, 2), size = gp_span(dx, 2, dx->rank);
    return gp_is_half(c) ? (size_t)(gp_grid_threads(planes) * size) * sizeof(gp_real) : 0;
}

/* ---- Attention ------------------------------------------------------------------------------ */

/* A number for each query. */
GP_WORKSPACE(attend_grad)
{
    return (size_t)gp_span(&c->in[0], 0, 3) * sizeof(gp_real);
}

/* ---- Chunked losses ------------------------------------------------------------------------- */

#ifndef GP_CHUNK_REALS
#define GP_CHUNK_REALS (1 << 22)
#endif

/* Rows of logits in a chunk. */
GP_FUNCTION int64_t gp_slice_rows(const gp_call *c)
{
    const int64_t rows = gp_count(&c->in[2]), classes = c->in[1].dim[1];
    return classes < GP_CHUNK_REALS ? gp_least(GP_CHUNK_REALS / classes, rows) : 1;
}

/* The logits of a chunk. */
GP_FUNCTION size_t gp_slice_bytes(const gp_call *c)
{
    const int64_t logits = gp_slice_rows(c) * c->in[1].dim[1] * (int64_t)sizeof(gp_real);
    return (size_t)(gp_ceil_div(logits, 256) * 256);
}

/* Their gradients in 16 bits, where those are multiplied; else they replace the logits. */
GP_FUNCTION size_t gp_slope_bytes(const gp_call *c)
{
    const int64_t bytes = gp_slice_rows(c) * c->in[1].dim[1] * (int64_t)sizeof(uint16_t);
    const int halves = c->in[0].dtype != GP_F32 && c->ins > 3;
    return halves ? (size_t)(gp_ceil_div(bytes, 256) * 256) : 0;
}

GP_FUNCTION size_t gp_slice_blas_bytes(const gp_call *c)
{
    return gp_blas_bytes(gp_slice_rows(c) * c->in[1].dim[1]);
}

/* Logits and their gradients, followed by what products want: w may be a parameter to round. */
GP_WORKSPACE(linear_cross_entropy)
{
    const gp_tensor *w = &c->in[1];
    const size_t forth = gp_rounded_bytes(w->dim[1], w->dim[0]);
    const size_t back = c->ins < 4 ? 0 : gp_rounded_bytes(w->dim[0], w->dim[1]);
    return gp_slice_bytes(c) + gp_slope_bytes(c) + gp_slice_blas_bytes(c) +
           (c->in[0].dtype == w->dtype ? 0
            : forth > back             ? forth
                                       : back);
}

GP_WORKSPACE(linear_cross_entropy_grad)
{
    return gp_linear_cross_entropy_workspace(c);
}

GP_WORKSPACE(linear_cross_entropy_accumulate)
{
    return gp_linear_cross_entropy_workspace(c);
}

#endif
