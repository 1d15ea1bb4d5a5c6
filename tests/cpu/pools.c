/* Pools and their gradients of random shapes against plain sums in double, with one, two and three
 * threads, which must agree to the bit; NaN and infinities among the elements now and then.
 *
 * run.sh compiles this for several instruction sets, with a limit so low that results are
 * streamed. */
#define GP_STREAM_FROM 2000
#include "runtime/c/pool_grad.h"

#include <stdio.h>
#include <stdlib.h>

static uint64_t state = 54321;
static int failures;

static int64_t draw(int64_t low, int64_t high)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return low + (int64_t)((state >> 33) % (uint64_t)(high - low + 1));
}

/* Dense, or with gaps within and between planes. Few numbers, so that many are equal. */
static gp_tensor tensor(const int64_t *dim, int strided, int odd)
{
    gp_tensor t = {.rank = 4};
    int64_t size = strided ? draw(1, 2) : 1;
    for (int d = 4; d-- > 0;) {
        t.dim[d] = dim[d];
        t.stride[d] = size;
        size *= dim[d] + (strided ? draw(0, 2) : 0);
    }
    gp_real *data = malloc((size_t)size * sizeof *data);
    if (!data)
        exit(2);
    for (int64_t i = 0; i < size; i++)
        data[i] = (gp_real)draw(-9, 9) / 4;
    for (int64_t i = 0; i < size / 20 && odd; i++)
        data[draw(0, size - 1)] = draw(0, 2) ? (gp_real)NAN : draw(0, 1) ? INFINITY : -INFINITY;
    t.data = data;
    return t;
}

static gp_real *place(const gp_tensor *t, int64_t plane, int64_t i, int64_t j)
{
    return gp_plane(t, plane) + i * t->stride[2] + j * t->stride[3];
}

static int same(double want, gp_real got)
{
    if (want != want || isinf(want))
        return want != want ? got != got : (double)got == want;
    return fabs((double)got - want) <= 1e-5 * (1 + fabs(want));
}

/* `want` in the order of the output's dims. */
static void check(const char *what, int (*kernel)(const gp_call *), gp_call c, const double *want)
{
    const int64_t width = c.out->dim[3], size = c.out->dim[2] * width, count = gp_count(c.out);
    gp_real *first = malloc((size_t)count * sizeof *first);
    int wrong = 0;
    if (!first)
        exit(2);
    for (int threads = 1; threads <= 3; threads++) {
        const gp_run run = {.threads = threads};
        c.run = &run;
        kernel(&c);
        for (int64_t i = 0; i < count; i++) {
            const gp_real got = *place(c.out, i / size, i % size / width, i % width);
            wrong |= !same(want[i], got);
            wrong |= threads > 1 && memcmp(&got, first + i, sizeof got) != 0;
            first[i] = got;
        }
    }
    free(first);
    failures += wrong;
    if (wrong)
        printf("wrong: %s\n", what);
}

typedef struct {
    gp_tensor x, dy;
    gp_avgpool2d_attr a;
    double *most, *mean, *dmost, *dmean; /* what outputs and gradients should be */
    uint8_t *took;                       /* which place of its window each output takes */
} Case;

/* One output, and what it gives back. */
static void one(Case *c, int64_t plane, int64_t row, int64_t col)
{
    const int64_t height = c->x.dim[2], width = c->x.dim[3], *pad = c->a.pad;
    const int64_t top = row * c->a.stride[0] - pad[0], left = col * c->a.stride[1] - pad[1];
    const int64_t at = (plane * c->dy.dim[2] + row) * c->dy.dim[3] + col;
    const double up = (double)*place(&c->dy, plane, row, col);
    double best = -INFINITY, sum = 0, places = 0;
    int64_t found = -1;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = top; i < top + c->a.kernel[0]; i++)
            for (int64_t j = left; j < left + c->a.kernel[1]; j++) {
                const int inside = i >= 0 && j >= 0 && i < height && j < width;
                if (pass == 0 && c->a.count_include_pad)
                    places += i < height + pad[2] && j < width + pad[3];
                else if (pass == 0)
                    places += inside;
                if (!inside)
                    continue;
                const double v = (double)*place(&c->x, plane, i, j);
                const int64_t here = (plane * height + i) * width + j;
                if (pass > 0) {
                    c->dmean[here] += up / places;
                    continue;
                }
                sum += v;
                if (found < 0 || v > best || (v != v && best == best)) {
                    best = v;
                    found = here;
                    c->took[at] = (uint8_t)((i - top) * c->a.kernel[1] + j - left);
                }
            }
    c->most[at] = best;
    c->mean[at] = sum / places;
    if (found >= 0)
        c->dmost[found] += up;
}

static double *numbers(const gp_tensor *t)
{
    double *at = calloc((size_t)gp_count(t), sizeof *at);
    if (!at)
        exit(2);
    return at;
}

/* Half of the time of the sizes that networks have. */
static Case draw_case(char *what, size_t size)
{
    Case c = {.a = {.count_include_pad = draw(0, 1), .dilation = {1, 1}}};
    int64_t in[4] = {draw(1, 2), draw(1, 3)}, out[4] = {in[0], in[1]};
    const int64_t usual = draw(0, 1) ? draw(2, 3) : 0;
    for (int i = 0; i < 2; i++) {
        c.a.kernel[i] = usual ? usual : draw(1, 5);
        c.a.stride[i] = usual ? 2 : draw(1, 3);
        c.a.pad[i] = usual ? draw(0, usual - 2) : draw(0, c.a.kernel[i] / 2);
        c.a.pad[2 + i] = draw(0, 1) ? c.a.pad[i] : draw(0, c.a.kernel[i] / 2);
        in[2 + i] = c.a.kernel[i] + draw(0, draw(0, 2) ? 80 : 12);
        out[2 + i] = (in[2 + i] + c.a.pad[i] + c.a.pad[2 + i] - c.a.kernel[i]) / c.a.stride[i] + 1;
    }
    c.x = tensor(in, draw(0, 3) == 0, draw(0, 3) == 0);
    c.dy = tensor(out, 0, 0);
    snprintf(what, size, "%d x %d of %d x %d, stride %d, %d, padding %d, %d, %d, %d",
             (int)c.a.kernel[0], (int)c.a.kernel[1], (int)in[2], (int)in[3], (int)c.a.stride[0],
             (int)c.a.stride[1], (int)c.a.pad[0], (int)c.a.pad[1], (int)c.a.pad[2],
             (int)c.a.pad[3]);
    c.took = calloc((size_t)gp_count(&c.dy), 1);
    if (!c.took)
        exit(2);
    c.most = numbers(&c.dy);
    c.mean = numbers(&c.dy);
    c.dmost = numbers(&c.x);
    c.dmean = numbers(&c.x);
    return c;
}

static void try_case(void)
{
    char what[160], name[200];
    Case c = draw_case(what, sizeof what);
    const int64_t width = c.dy.dim[3], size = c.dy.dim[2] * width;
    for (int64_t i = 0; i < gp_count(&c.dy); i++)
        one(&c, i / size, i % size / width, i % width);
    gp_maxpool2d_attr m = {.dilation = {1, 1}};
    memcpy(m.kernel, c.a.kernel, sizeof m.kernel);
    memcpy(m.stride, c.a.stride, sizeof m.stride);
    memcpy(m.pad, c.a.pad, sizeof m.pad);
    gp_tensor y = tensor(c.dy.dim, draw(0, 3) == 0, 0), dx = tensor(c.x.dim, 0, 0);
    uint8_t *took = calloc((size_t)gp_count(&c.dy), 1);
    if (!took)
        exit(2);
    gp_tensor both[] = {c.dy, c.dy}, outs[] = {y, c.dy};
    both[0].data = outs[1].data = took;
    both[0].dtype = outs[1].dtype = GP_U8;
    snprintf(name, sizeof name, "maxpool2d %s", what);
    check(name, gp_maxpool2d, (gp_call){.in = &c.x, .ins = 1, .out = outs, .outs = 2, .attr = &m},
          c.most);
    if (memcmp(took, c.took, (size_t)gp_count(&c.dy)) != 0) {
        printf("wrong: places of %s\n", name);
        failures++;
    }
    snprintf(name, sizeof name, "maxpool2d_grad %s", what);
    check(name, gp_maxpool2d_grad,
          (gp_call){.in = both, .ins = 2, .out = &dx, .outs = 1, .attr = &m}, c.dmost);
    snprintf(name, sizeof name, "avgpool2d %s", what);
    check(name, gp_avgpool2d, (gp_call){.in = &c.x, .ins = 1, .out = &y, .outs = 1, .attr = &c.a},
          c.mean);
    snprintf(name, sizeof name, "avgpool2d_grad %s", what);
    check(name, gp_avgpool2d_grad,
          (gp_call){.in = &c.dy, .ins = 1, .out = &dx, .outs = 1, .attr = &c.a}, c.dmean);
    void *const all[] = {c.x.data, c.dy.data, y.data,  dx.data, c.most,
                         c.mean,   c.dmost,   c.dmean, c.took,  took};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* The largest and the mean of whole planes. */
static void try_global(void)
{
    const int64_t dim[] = {draw(1, 3), draw(1, 3), draw(1, 40), draw(1, 40)};
    const int64_t planes = dim[0] * dim[1], size = dim[2] * dim[3], one[] = {dim[0], dim[1], 1, 1};
    gp_tensor x = tensor(dim, (int)draw(0, 1), draw(0, 3) == 0), y = tensor(one, 0, 0);
    double most[9], mean[9];
    for (int64_t p = 0; p < planes; p++) {
        most[p] = -INFINITY;
        mean[p] = 0;
        for (int64_t i = 0; i < size; i++) {
            const double v = (double)*place(&x, p, i / dim[3], i % dim[3]);
            mean[p] += v / (double)size;
            most[p] = v > most[p] || v != v ? v : most[p];
        }
    }
    check("global_avgpool", gp_global_avgpool, (gp_call){.in = &x, .ins = 1, .out = &y, .outs = 1},
          mean);
    check("global_maxpool", gp_global_maxpool, (gp_call){.in = &x, .ins = 1, .out = &y, .outs = 1},
          most);
    free(x.data);
    free(y.data);
}

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 150;
    for (int i = 0; i < rounds; i++) {
        try_case();
        try_global();
    }
    puts("pools");
    return failures > 0;
}
