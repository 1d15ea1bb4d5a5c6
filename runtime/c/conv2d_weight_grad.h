/* The gradient of convolution with respect to its weights: dw[o][c, ki, kj] sums dy * x over images
 * and output positions.
 *
 * For each group a product of dy [O, positions] and the patches' [positions, K], with positions
 * numbered through all images. One operand has to be transposed, whichever has fewer rows: a small
 * dw with more columns than rows is computed transposed, in the workspace. Tasks are blocks of
 * columns of dw, so no two threads add to one element. A dw of few columns, which would not balance
 * over threads, is summed over GP_WEIGHT_PARTS chunks of positions instead (split-K), each in the
 * workspace, then added up in order. Depthwise convolution is in depthwise_grad.h. */
#ifndef GP_CONV2D_WEIGHT_GRAD_H
#define GP_CONV2D_WEIGHT_GRAD_H

#include "conv2d.h"
#include "depthwise_grad.h"
#include "gemm_half.h"
#include "settings.h"

#ifndef GP_WEIGHT_LEAST
#define GP_WEIGHT_LEAST GP_BLOCK(8192, 64) /* the fewest positions worth chunks */
#endif

enum {
    GP_WEIGHT_PARTS = 8,
    GP_WEIGHT_FEW = GP_BLOCK(256, 40),      /* the most columns for chunks */
    GP_WEIGHT_MOST = GP_BLOCK(32768, 200),  /* elements of a dw that is summed in chunks */
    GP_WEIGHT_SMALL = GP_BLOCK(163840, 300) /* elements of a dw that is computed transposed */
};

/* Operands: x, dy; the output is dw. */
typedef struct {
    gp_sliding in;
    const gp_tensor *dy;
    int64_t groups, rows, depth; /* rows, depth: of one group's dw */
    int64_t columns, across;     /* columns of a block; blocks */
    int64_t places, parts;       /* positions of all images; chunks of them */
    int transposed;              /* patches are the rows of the product */
    int half;                    /* what is multiplied, where that has 16 bits */
} gp_weight_grad;

GP_FUNCTION gp_weight_grad gp_weight_grad_plan(const gp_call *c)
{
    const gp_conv2d_weight_grad_attr *a = c->attr;
    gp_weight_grad v = {.dy = &c->in[1], .groups = a->groups, .half = gp_half_of(c)};
    v.in = gp_sliding_of(&c->in[0], v.dy, c->out[0].dim + 2, a->stride, a->pad, a->dilation);
    v.rows = v.dy->dim[1] / a->groups;
    v.depth = gp_span(&c->out[0], 1, 4);
    v.places = v.dy->dim[0] * v.in.outputs;
    v.transposed = v.depth >= 2 * v.rows && v.groups * v.rows * v.depth <= GP_WEIGHT_SMALL;
    v.across = v.transposed ? 1 : gp_ceil_div(v.depth, GP_NC);
    v.parts = v.groups == 1 && v.depth < GP_WEIGHT_FEW && v.depth % (2 * GP_NR_LARGEST) != 0 &&
                      v.rows * v.depth <= GP_WEIGHT_MOST && v.places >= GP_WEIGHT_LEAST
                  ? GP_WEIGHT_PARTS
                  : 1;
    if (v.parts == 1 && v.groups * v.across % c->run->threads != 0 &&
        v.groups * v.across < 8 * c->run->threads)
        v.across = gp_round_up(v.across, c->run->threads);
    v.columns = gp_round_up(gp_ceil_div(v.depth, v.across), GP_NR);
    v.across = gp_ceil_div(v.depth, v.columns);
    return v;
}

/* Of a thread: panels, and lines before they are transposed. */
GP_FUNCTION int64_t gp_weight_grad_work(const gp_weight_grad *v)
{
    return gp_gemm_work(v->transposed ? v->rows : v->depth, v->places) + GP_NR_LARGEST * GP_KC;
}

/* Channel `out` of dy at a position, numbered through all images. */
GP_FUNCTION const gp_real *gp_weight_grad_at(const gp_weight_grad *v, int64_t out, int64_t place)
{
    const int64_t size = v->in.outputs, image = place / size;
    return (const gp_real *)v->dy->data + (image * v->dy->dim[1] + out) * size + place % size;
}

/* Lines of positions: n elements of the patches, or channels of dy, of a group from `first`. */
typedef struct {
    int patches;
    int64_t group, first, n;
} gp_weight_lines;

/* Line `line` of them, at positions at .. at + some - 1, of the type that the operand has. */
GP_FUNCTION void gp_weight_grad_line(const gp_weight_grad *v, gp_weight_lines of, int64_t line,
                                     int64_t at, int64_t some, void *to, int type)
{
    const gp_tensor *x = v->in.x;
    const int64_t size = v->in.outputs, bytes = (int64_t)gp_size(type);
    const int64_t channel = of.group * v->rows + line;
    if (of.patches) {
        const int64_t first = of.group * (x->dim[1] / v->groups) * x->stride[1];
        gp_patch_line_of(to, &v->in, gp_element(x, first), line, at, some, type);
        return;
    }
    for (int64_t done = 0, count; done < some; done += count) {
        const int64_t place = at + done, image = place / size;
        const int64_t from = (image * v->dy->dim[1] + channel) * size + place % size;
        count = gp_least(some - done, size - place % size);
        memcpy((char *)to + done * bytes, gp_element(v->dy, from), (size_t)(count * bytes));
    }
}

/* m of them from line i as units of 16-bit numbers. */
static GP_NOINLINE void gp_weight_grad_units_of(const gp_weight_grad *v, gp_weight_lines of,
                                                int64_t i, int64_t m, int64_t at, int64_t some,
                                                gp_real *to, int64_t apart)
{
    const int type = of.patches ? v->in.x->dtype : v->dy->dtype;
    gp_real line[GP_KC];
    for (int64_t k = 0; k < m; k++) {
        if (type == GP_F32)
            gp_weight_grad_line(v, of, of.first + i + k, at, some, line, GP_F32);
        else
            gp_weight_grad_line(v, of, of.first + i + k, at, some, line, v->half);
        gp_unit_line(to + k * apart, (gp_reals){line, 0, 1, type}, 1, some, v->half);
    }
}

/* m of them from line i, at positions at .. at + some - 1, `apart` from each other. */
static GP_NOINLINE void gp_weight_grad_copy(const gp_weight_grad *v, gp_weight_lines of, int64_t i,
                                            int64_t m, int64_t at, int64_t some, gp_real *to,
                                            int64_t apart)
{
    const gp_tensor *x = v->in.x;
    const gp_real *group =
        (const gp_real *)x->data + of.group * (x->dim[1] / v->groups) * x->stride[1];
    const int64_t size = v->in.outputs, first = of.first + i;
    for (int64_t line = 0; of.patches && line < m; line++)
        gp_patch_line(to + line * apart, &v->in, group, first + line, at, some);
    for (int64_t done = 0, count; !of.patches && done < some; done += count) {
        const gp_real *from = gp_weight_grad_at(v, of.group * v->rows + first, at + done);
        count = gp_least(some - done, size - (at + done) % size);
        for (int64_t line = 0; line < m; line++)
            gp_copy(to + line * apart + done, from + line * size, 1, count);
    }
}

/* All of them, transposed, in panels. */
GP_FUNCTION void gp_weight_grad_pack(const gp_weight_grad *v, gp_weight_lines of, int64_t at,
                                     int64_t some, int64_t deep, gp_real *lines, gp_real *panel)
{
    for (int64_t j = 0; j < of.n; j += GP_NR, panel += GP_NR * deep) {
        const int64_t width = gp_least(GP_NR, of.n - j);
        if (GP_WAY(weight_half, v->half != GP_F32))
            gp_weight_grad_units_of(v, of, j, width, at, some, lines, deep);
        else
            gp_weight_grad_copy(v, of, j, width, at, some, lines, some);
        if (width < GP_NR)
            memset(panel, 0, (size_t)(GP_NR * deep) * sizeof *panel);
        gp_pack_transposed(panel, GP_NR, lines, width, deep, deep);
    }
}

/* Roughly where line i has position `at`, to prefetch what follows. */
GP_FUNCTION gp_coming gp_weight_grad_next(const gp_weight_grad *v, gp_weight_lines of, int64_t i,
                                          int64_t at, int64_t some)
{
    const gp_tensor *x = v->in.x;
    const int64_t size = v->in.outputs, window = v->in.kernel[0] * v->in.kernel[1];
    const int64_t channel = of.group * (x->dim[1] / v->groups) + (of.first + i) / window;
    const int64_t row = at % size / v->in.width * v->in.stride[0];
    if (!of.patches)
        return (gp_coming){gp_weight_grad_at(v, of.group * v->rows + of.first + i, at), size, 1,
                           some};
    return (gp_coming){(const gp_real *)x->data + at / size * x->stride[0] +
                           channel * x->stride[1] + row * x->stride[2],
                       x->stride[1], 1, some};
}

/* Where a block lies in dw, which is transposed where the product is. */
GP_FUNCTION gp_matrix gp_weight_grad_block(const gp_weight_grad *v, int64_t unit, gp_real *dw)
{
    const int64_t k0 = unit % v->across * v->columns, group = unit / v->across;
    dw += group * v->rows * v->depth + k0 * (v->transposed ? v->rows : 1);
    return (gp_matrix){dw, v->transposed ? v->rows : v->depth, 1};
}

/* One block of a group: columns k0 .. of dw, or rows if transposed, summed over positions begin ..
 * last - 1. */
GP_FUNCTION void gp_weight_grad_unit(const gp_weight_grad *v, int64_t unit, int64_t begin,
                                     int64_t last, gp_matrix block, gp_real *work)
{
    const int64_t k0 = unit % v->across * v->columns, group = unit / v->across;
    const gp_weight_lines patches = {1, group, k0, gp_least(v->columns, v->depth - k0)};
    const gp_weight_lines dy = {0, group, 0, v->rows};
    const gp_weight_lines a = v->transposed ? patches : dy, b = v->transposed ? dy : patches;
    const int64_t wide = v->transposed ? v->rows : v->depth;
    int64_t depth = gp_even(last - begin, GP_KC);
    if (GP_WAY(weight_half, v->half != GP_F32))
        depth = gp_half_depth(last - begin);
    gp_real *rows = work, *columns = rows + GP_GEMM_ROWS;
    gp_real *lines = columns + gp_gemm_columns(wide, v->places);
    for (int64_t at = begin; at < last; at += depth) {
        const int64_t some = gp_least(depth, last - at);
        int64_t deep = some;
        if (GP_WAY(weight_half, v->half != GP_F32))
            deep = gp_units(some, v->half);
        gp_weight_grad_pack(v, b, at, some, deep, lines, columns);
        for (int64_t i = 0, first = 0, end; first < a.n; first = end) {
            const gp_matrix to = gp_matrix_at(block, first, 0);
            end = gp_panel_begin(++i, a.n);
            if (GP_WAY(weight_half, v->half != GP_F32)) {
                gp_weight_grad_units_of(v, a, first, end - first, at, some, rows, GP_LINE);
                const gp_ahead none = {rows, 0, 0};
                for (int64_t j = 0; j < b.n; j += GP_NR)
                    gp_half_into(gp_matrix_at(to, 0, j), rows, end - first, columns + j * deep,
                                 gp_least(GP_NR, b.n - j), deep, v->half, at > begin, &none);
                continue;
            }
            gp_weight_grad_copy(v, a, first, end - first, at, some, rows, GP_LINE);
            const gp_coming next = gp_weight_grad_next(v, a, end % a.n, at, some);
            for (int64_t j = 0; j < b.n; j += GP_NR) {
                const int64_t width = gp_least(GP_NR, b.n - j);
                const gp_ahead ahead = gp_ahead_of(next, some, j, width, b.n);
                gp_panel_into(gp_matrix_at(to, 0, j), rows, end - first, columns + j * some, GP_NR,
                              width, some, at > begin, &ahead);
            }
        }
    }
}

/* Elements of dw in the workspace, if any: one for each chunk of positions. */
GP_FUNCTION int64_t gp_weight_grad_part(const gp_weight_grad *v)
{
    return v->transposed || v->parts > 1 ? gp_round_up(v->groups * v->rows * v->depth, 16) : 0;
}

/* One input channel for each group. */
GP_FUNCTION int gp_weight_grad_is_depthwise(const gp_call *c)
{
    return c->out[0].dim[1] == 1;
}

/* Elements of a block that a thread keeps aside until it is added to what lies in dw. */
GP_FUNCTION int64_t gp_weight_grad_aside(const gp_call *c, const gp_weight_grad *v)
{
    const int64_t widest = gp_round_up(gp_least(v->depth, GP_NC_LARGEST), GP_NR_LARGEST);
    return c->aside && !gp_weight_grad_part(v) ? gp_round_up(v->rows * widest, 16) : 0;
}

GP_WORKSPACE(conv2d_weight_grad)
{
    const gp_weight_grad v = gp_weight_grad_plan(c);
    const int64_t own = gp_weight_grad_work(&v) + gp_weight_grad_aside(c, &v);
    const gp_tensor *x = v.in.x;
    const int64_t planes = gp_is_half(c) ? gp_span(x, 2, 4) + gp_span(v.dy, 2, 4) : 0;
    return (size_t)(gp_weight_grad_is_depthwise(c)
                        ? planes * c->run->threads
                        : own * c->run->threads + v.parts * gp_weight_grad_part(&v)) *
           sizeof(gp_real);
}

/* Row `row` of dw, of all groups, out of sums that may be transposed: with its epilogue, a part at
 * a time. */
GP_FUNCTION void gp_weight_grad_add(const gp_call *c, const gp_weight_grad *v, const gp_real *sums,
                                    int64_t row)
{
    const int64_t step = v->transposed ? v->rows : 1, group = row / v->rows;
    gp_real part[GP_NC], *dw = (gp_real *)c->out[0].data + row * v->depth;
    sums += group * v->rows * v->depth + row % v->rows * (v->transposed ? 1 : v->depth);
    for (int64_t at = 0; at < v->depth; at += GP_NC) {
        const int64_t some = gp_least(GP_NC, v->depth - at);
        gp_copy(part, sums + at * step, step, some);
        gp_epilogue_run(c, part, 1, row * v->depth + at, some);
        memcpy(dw + at, part, (size_t)some * sizeof *part);
    }
}

/* dw is the sum over its chunks of positions, in order. */
GP_FUNCTION void gp_weight_grad_join(const gp_call *c, const gp_weight_grad *v,
                                     gp_real *restrict sums)
{
    const int64_t size = v->rows * v->depth, part = gp_weight_grad_part(v);
    gp_real *dw = c->out[0].data;
    for (int64_t i = 1; i < v->parts; i++)
        for (int64_t k = 0; k < v->groups * size; k++)
            sums[k] += sums[i * part + k];
    if (GP_WAY(weight_aside, c->aside)) {
        for (int64_t row = 0; row < v->groups * v->rows; row++)
            gp_weight_grad_add(c, v, sums, row);
        return;
    }
    if (!v->transposed)
        memcpy(dw, sums, (size_t)(v->groups * size) * sizeof *dw);
    for (int64_t group = 0; v->transposed && group < v->groups; group++)
        gp_pack_transposed(dw + group * size, v->depth, sums + group * size, v->depth, v->rows,
                           v->rows);
}

/* A block of dw: in place, or aside until it is final and added to what lies in dw. */
GP_FUNCTION void gp_weight_grad_whole(const gp_call *c, const gp_weight_grad *v, int64_t unit,
                                      gp_real *work)
{
    const gp_matrix block = gp_weight_grad_block(v, unit, c->out[0].data);
    if (GP_WAY(weight_aside, c->aside)) {
        const int64_t k0 = unit % v->across * v->columns, n = gp_least(v->columns, v->depth - k0);
        const gp_matrix aside = {work + gp_weight_grad_work(v), n, 1};
        const gp_ending end = {c, block.at - (gp_real *)c->out[0].data, v->depth, 1};
        gp_weight_grad_unit(v, unit, 0, v->places, aside, work);
        gp_finish_aside(end, block, aside, v->rows, n);
    } else {
        gp_weight_grad_unit(v, unit, 0, v->places, block, work);
    }
}

GP_FUNCTION void gp_weight_grad_units(const gp_call *c, const gp_weight_grad *v)
{
    const int64_t own = gp_weight_grad_work(v) + gp_weight_grad_aside(c, v);
    const int64_t units = v->groups * v->across, size = gp_weight_grad_part(v);
    gp_real *work = c->work, *sums = work + own * c->run->threads;
    GP_PARALLEL(c->run, units * v->parts > 1 && gp_count(v->dy) * v->depth > 32768)
    for (int64_t i = 0; i < units * v->parts; i++) {
        const int64_t part = i / units;
        gp_real *mine = work + gp_thread() * own;
        if (size)
            gp_weight_grad_unit(v, i % units, part * v->places / v->parts,
                                (part + 1) * v->places / v->parts,
                                gp_weight_grad_block(v, i % units, sums + part * size), mine);
        else
            gp_weight_grad_whole(c, v, i, mine);
    }
    if (size)
        gp_weight_grad_join(c, v, sums);
}

GP_WAYS(conv2d_weight_grad)
{
    const gp_weight_grad v = gp_weight_grad_plan(c);
    const gp_depthwise each = gp_sliding_each(&v.in, v.dy, v.rows);
    gp_way(ways, "weight_half", gp_is_half(c));
    gp_way(ways, "weight_depthwise", gp_weight_grad_is_depthwise(c));
    if (!gp_weight_grad_is_depthwise(c))
        gp_way(ways, "weight_aside", c->aside);
    gp_depthwise_ways(gp_weight_grad_is_depthwise(c) ? &each : NULL, ways);
}

GP_KERNEL(conv2d_weight_grad)
{
    const gp_weight_grad v = gp_weight_grad_plan(c);
    if (GP_WAY(weight_depthwise, gp_weight_grad_is_depthwise(c))) {
        const gp_depthwise each = gp_sliding_each(&v.in, v.dy, v.rows);
        GP_PARALLEL(c->run, gp_count(v.dy) > 8192)
        for (int64_t out = 0; out < v.dy->dim[1]; out++)
            gp_depthwise_weights(&each, out, c);
    } else {
        gp_weight_grad_units(c, &v);
    }
    return GP_OK;
}

#endif
