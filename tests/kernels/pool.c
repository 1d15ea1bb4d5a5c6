/* Pooling of images, of whole planes, and the gradients; NaN and infinities now and then. */
#include "runtime/c/pool.h"
#include "runtime/c/pool_grad.h"

#include "check.h"

typedef struct {
    int64_t n, c, size[2], kernel[2], stride[2], pad[4], dilation[2], count_pad;
    int odd; /* has elements that are not finite */
    Layout x, y;
} Pool;

static int64_t outputs(const Pool *p, int axis)
{
    const int64_t reach = p->dilation[axis] * (p->kernel[axis] - 1) + 1;
    return (p->size[axis] + p->pad[axis] + p->pad[2 + axis] - reach) / p->stride[axis] + 1;
}

typedef struct {
    Array x, dy, most, place, took, mean, dmost, dmean; /* took: which place of its window */
} Sums;

/* One output, and what it gives back to the elements of its window. */
static void one(const Pool *p, const Sums *s, int64_t plane, int64_t row, int64_t col)
{
    const int64_t top = row * p->stride[0] - p->pad[0], left = col * p->stride[1] - p->pad[1];
    const int64_t at = (plane * s->dy.dim[2] + row) * s->dy.dim[3] + col;
    int64_t found = -1, took = -1;
    double best = -INFINITY, sum = 0, places = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t k = 0; k < p->kernel[0]; k++)
            for (int64_t l = 0; l < p->kernel[1]; l++) {
                const int64_t i = top + k * p->dilation[0], j = left + l * p->dilation[1];
                const int inside = i >= 0 && j >= 0 && i < p->size[0] && j < p->size[1];
                const int64_t here = (plane * p->size[0] + i) * p->size[1] + j;
                if (pass == 0)
                    places += p->count_pad
                                  ? i < p->size[0] + p->pad[2] && j < p->size[1] + p->pad[3]
                                  : inside;
                if (!inside)
                    continue;
                if (pass == 1) {
                    s->dmean.at[here] += s->dy.at[at] / places;
                    continue;
                }
                const double v = s->x.at[here];
                sum += v;
                if (found < 0 || v > best || (v != v && best == best)) {
                    best = v;
                    found = here;
                    took = k * p->kernel[1] + l;
                }
            }
    s->most.at[at] = best;
    s->mean.at[at] = sum / places;
    s->place.at[at] = (double)(found - plane * p->size[0] * p->size[1]);
    s->took.at[at] = (double)took;
    if (found >= 0)
        s->dmost.at[found] += s->dy.at[at];
}

static Sums sums_of(const Pool *p)
{
    Sums s = {.x = integers(DIMS(p->n, p->c, p->size[0], p->size[1]), -9, 9)};
    s.dy = integers(DIMS(p->n, p->c, outputs(p, 0), outputs(p, 1)), -9, 9);
    s.most = zeros(4, s.dy.dim);
    s.place = zeros(4, s.dy.dim);
    s.took = zeros(4, s.dy.dim);
    s.mean = zeros(4, s.dy.dim);
    s.dmost = zeros(4, s.x.dim);
    s.dmean = zeros(4, s.x.dim);
    for (int64_t i = 0; i < s.x.count / 20 && p->odd; i++)
        s.x.at[draw(0, s.x.count - 1)] = draw(0, 2) ? NAN : draw(0, 1) ? INFINITY : -INFINITY;
    for (int64_t i = 0; i < s.dy.count; i++)
        one(p, &s, i / s.dy.dim[3] / s.dy.dim[2], i / s.dy.dim[3] % s.dy.dim[2], i % s.dy.dim[3]);
    return s;
}

static void pool(Pool p)
{
    gp_maxpool2d_attr m;
    const int32_t places = p.kernel[0] * p.kernel[1] <= 255 ? GP_U8 : GP_I32;
    gp_avgpool2d_attr a = {.count_include_pad = p.count_pad};
    const Sums s = sums_of(&p);
    memcpy(a.kernel, p.kernel, sizeof a.kernel);
    memcpy(a.stride, p.stride, sizeof a.stride);
    memcpy(a.pad, p.pad, sizeof a.pad);
    memcpy(a.dilation, p.dilation, sizeof a.dilation);
    memcpy(m.kernel, p.kernel, sizeof m.kernel);
    memcpy(m.stride, p.stride, sizeof m.stride);
    memcpy(m.pad, p.pad, sizeof m.pad);
    memcpy(m.dilation, p.dilation, sizeof m.dilation);
    CROSS_TOTAL(GP_POOL_BAND, s.dy.dim[2] * s.dy.dim[3]);
    CROSS(GP_POOL_LINES, (s.dy.dim[3] - 1) * p.stride[1] + p.kernel[1]);
    CROSS(GP_POOL_OUTPUTS, s.dy.dim[3]);
    CROSS(GP_LANES, s.dy.dim[3]);
    CROSS_TOTAL(GP_STREAM_LEAST, s.dy.count);
    if (s.x.count >= GP_STREAM_LEAST)
        CROSS_TOTAL(GP_POOL_PLANE, p.size[0] * p.size[1]);
    char what[200];
    snprintf(what, sizeof what,
             "%d x %d x %d x %d, window %d %d, dilation %d %d, stride %d %d, pad %d %d %d %d (%d), "
             "odd %d, laid %d %d",
             (int)p.n, (int)p.c, (int)p.size[0], (int)p.size[1], (int)p.kernel[0], (int)p.kernel[1],
             (int)p.dilation[0], (int)p.dilation[1], (int)p.stride[0], (int)p.stride[1],
             (int)p.pad[0], (int)p.pad[1], (int)p.pad[2], (int)p.pad[3], (int)p.count_pad, p.odd,
             p.x, p.y);
    Case t = {.ins = 1, .outs = 1, .in = {s.x}, .in_as = {p.x}, .out_as = {p.y}};
    t.half_in = t.half_out = cases % 2;
    t.kernel = gp_maxpool2d, t.attr = &m, t.want[0] = s.most, t.space = gp_maxpool2d_workspace;
    try_more(&t, "maxpool2d %s", what);
    t.outs = 2, t.want[1] = s.took, t.out_type[1] = places;
    try_more(&t, "maxpool2d with places %s", what);
    t.outs = 1;
    t.space = gp_avgpool2d_workspace;
    t.kernel = gp_avgpool2d, t.attr = &a, t.want[0] = s.mean, t.slack = 20, t.terms = 9;
    try_more(&t, "avgpool2d %s", what);
    t.space = gp_avgpool2d_grad_workspace;
    t.kernel = gp_avgpool2d_grad, t.in[0] = s.dy, t.want[0] = s.dmean;
    t.in_as[0] = t.out_as[0] = DENSE;
    try_more(&t, "avgpool2d_grad %s", what);
    t.space = gp_maxpool2d_grad_workspace, t.half_in *= 2;
    t.kernel = gp_maxpool2d_grad, t.attr = &m, t.want[0] = s.dmost, t.slack = 0, t.ins = 2;
    t.in[0] = s.took, t.in[1] = s.dy, t.in_type[0] = places;
    try_more(&t, "maxpool2d_grad %s", what);
    t.kernel = gp_maxpool2d_indices, t.want[0] = s.place, t.out_type[0] = GP_I64, t.ins = 1;
    t.in[0] = s.x, t.in_as[0] = p.x, t.in_type[0] = GP_F32;
    t.half_in = t.half_out, t.half_out = 0, t.space = gp_maxpool2d_indices_workspace;
    try(&t, "maxpool2d_indices %s", what);
}

static void whole(int64_t n, int64_t c, int64_t high, int64_t wide, Layout as)
{
    Array x = integers(DIMS(n, c, high, wide), -9, 9), mean = zeros(DIMS(n, c, 1, 1));
    Array top = zeros(DIMS(n, c, 1, 1));
    for (int64_t i = 0; i < n * c; i++) {
        top.at[i] = -INFINITY;
        for (int64_t j = 0; j < high * wide; j++) {
            const double v = x.at[i * high * wide + j];
            mean.at[i] += v / (double)(high * wide);
            top.at[i] = v > top.at[i] ? v : top.at[i];
        }
    }
    CROSS(GP_SAMPLES_REALS, 1 + c * high * wide + c);
    Case t = {.kernel = gp_global_avgpool,
              .space = gp_global_avgpool_workspace,
              .half_in = 1,
              .half_out = 1,
              .ins = 1,
              .outs = 1,
              .in = {x},
              .want = {mean},
              .in_as = {as},
              .slack = 20,
              .terms = 1};
    try_more(&t, "global_avgpool %d x %d x %d x %d", (int)n, (int)c, (int)high, (int)wide);
    t.space = gp_global_maxpool_workspace;
    t.kernel = gp_global_maxpool, t.want[0] = top, t.slack = 0;
    try(&t, "global_maxpool %d x %d x %d x %d", (int)n, (int)c, (int)high, (int)wide);
}

static Pool of(int64_t c, int64_t high, int64_t wide, int64_t kernel, int64_t stride, int64_t pad)
{
    return (Pool){.n = 1,
                  .c = c,
                  .size = {high, wide},
                  .kernel = {kernel < high ? kernel : high, kernel},
                  .stride = {stride, stride},
                  .dilation = {1, 1},
                  .pad = {pad, pad, pad, pad}};
}

/* Half of the time of the sizes that networks have. */
static Pool any(int64_t large)
{
    Pool p = {.n = draw(1, 2), .c = draw(1, 3), .count_pad = draw(0, 1)};
    const int64_t usual = draw(0, 1) ? draw(2, 3) : 0, gaps = draw(0, 3) == 0;
    for (int i = 0; i < 2; i++) {
        p.kernel[i] = usual ? usual : draw(1, 5);
        p.stride[i] = usual ? 2 : draw(1, 3);
        p.dilation[i] = gaps ? draw(1, 3) : 1;
        p.pad[i] = usual ? draw(0, usual - 2) : draw(0, p.kernel[i] / 2);
        p.pad[2 + i] = draw(0, 1) ? p.pad[i] : draw(0, p.kernel[i] / 2);
        p.size[i] = p.dilation[i] * p.kernel[i] + draw(0, draw(0, 2) ? large : 12);
    }
    p.odd = draw(0, 3) == 0;
    p.x = draw(0, 3) ? DENSE : GAPS;
    p.y = draw(0, 3) ? DENSE : GAPS;
    return p;
}

/* So much that it is streamed: planes around what is made aside, and exactly as many elements. */
static void streamed(void)
{
    const int64_t wide = GP_TINY ? 10 : 64, high = GP_POOL_PLANE / wide;
    for (int64_t off = -1; off <= 1; off++) {
        Pool p = of(GP_STREAM_LEAST / wide / (high - 1) + 1, high + off, wide, 3, 2, 1);
        pool(p);
        p.kernel[0] = p.kernel[1] = 2;
        p.pad[0] = p.pad[1] = p.pad[2] = p.pad[3] = 0;
        pool(p);
        pool(of(1 + (off > 0), GP_STREAM_LEAST / 32, 32, 1, 1, 0));
    }
}

int main(void)
{
    for (int64_t off = -1; off <= 1; off++) /* 16-bit samples that are widened at once */
        whole(3, 1, 1, GP_SAMPLES_REALS - 2 + off, DENSE);
    NOT_HERE(GP_STREAM_PIECE); /* a band is stored whole */
    for (int64_t off = -1; off <= 1; off++) {
        for (int64_t stride = 1; stride <= 3; stride++) {
            pool(of(2, 5, (GP_POOL_OUTPUTS + off - 1) * stride + 3, 3, stride, 0));
            pool(of(2, 4, 2 * GP_POOL_OUTPUTS + off, 2, stride, 0));
            pool(of(1, 6, GP_POOL_LINES + off, 3, stride, 0));
            pool(of(1, 6, 2 * GP_POOL_LINES + off, 3, stride, 1));
            pool(of(2, 3, (GP_LANES + off - 1) * stride + 2, 2, stride, 0));
        }
        pool(of(1, 2, GP_POOL_LINES + off, GP_POOL_LINES + off, 1, 0));
        pool(of(1, 3, GP_POOL_LINES + off + 4, GP_POOL_LINES + off, 2, 0));
        pool(of(1, GP_POOL_BAND / (GP_TINY ? 10 : 64) + off, GP_TINY ? 10 : 64, 1, 1, 0));
    }
    if (LAYERS || GP_TINY)
        streamed();
    if (LAYERS) { /* of ResNet and VGG */
        pool(of(3, 112, 112, 3, 2, 1));
        pool(of(3, 112, 112, 2, 2, 0));
    }
    for (int i = 0; i < (GP_TINY ? 200 : 150); i++)
        pool(any(GP_TINY ? 30 : 80));
    for (int as = 0; as < 3; as++)
        for (int64_t size = 1; size <= 40; size += 3)
            whole(2, 3, size, 43 - size, (Layout)as);
    return finish();
}
