/* Products and convolutions of random shapes against plain sums in double, with one, two and three
 * threads, which must agree to the bit, in workspace of exactly the planned size. Half of them have
 * something that follows.
 *
 * run.sh compiles this for several instruction sets. Prints a hash of all workspace sizes: it is
 * the same for all of them, since a plan does not know how the emitted file will be compiled. */
#define GP_WEIGHT_LEAST 64 /* small ones take the way of large ones */
#include "runtime/c/conv2d_weight_grad.h"
#include "runtime/c/conv_transpose2d.h"
#include "runtime/c/matmul.h"

#include <stdio.h>
#include <stdlib.h>

static uint64_t state = 12345;

static int64_t draw(int64_t low, int64_t high)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return low + (int64_t)((state >> 33) % (uint64_t)(high - low + 1));
}

static uint64_t sizes = 1469598103934665603u;
static int failures;

/* Dense, or with gaps or axes exchanged; filled with small numbers. */
static gp_tensor tensor(int rank, const int64_t *dim, int strided)
{
    gp_tensor t = {.rank = rank};
    int order[GP_MAX_RANK];
    int64_t size = 1;
    for (int i = 0; i < rank; i++)
        order[i] = rank - 1 - i;
    if (strided && rank > 1) {
        const int a = (int)draw(0, rank - 1), b = (int)draw(0, rank - 1), keep = order[a];
        order[a] = order[b];
        order[b] = keep;
    }
    for (int i = 0; i < rank; i++) {
        const int d = order[i];
        t.dim[d] = dim[d];
        t.stride[d] = size;
        size *= dim[d] + (strided ? draw(0, 1) * draw(0, 3) : 0);
    }
    gp_real *data = malloc((size_t)size * sizeof *data);
    if (!data)
        exit(2);
    for (int64_t i = 0; i < size; i++)
        data[i] = (gp_real)draw(-99, 99) / 64;
    t.data = data;
    return t;
}

static double at(const gp_tensor *t, int64_t a, int64_t b, int64_t c, int64_t d)
{
    const int64_t at[4] = {a, b, c, d};
    int64_t place = 0;
    for (int i = 0; i < t->rank; i++)
        place += at[i] * t->stride[i];
    return (double)((const gp_real *)t->data)[place];
}

/* What follows a product in half of the cases; counts how often each element is met. */
static void follow(const void *args, gp_real *at, int64_t first, int64_t n)
{
    unsigned char *met = *(unsigned char *const *)args;
    for (int64_t i = 0; i < n; i++) {
        at[i] = 2 * at[i] + (gp_real)((first + i) % 7);
        met[first + i]++;
    }
}

/* Runs with 1 to 3 threads and compares with `want`, in the order of the output's dims. */
static void check(const char *what, int (*kernel)(const gp_call *),
                  size_t (*space)(const gp_call *), gp_call c, const double *want, double depth,
                  int follows)
{
    const gp_tensor *out = c.out;
    const int64_t count = gp_count(out);
    gp_real *first = malloc((size_t)count * sizeof *first);
    unsigned char *met = malloc((size_t)count);
    int wrong = 0;
    if (!first || !met)
        exit(2);
    c.epilogue = follows ? follow : NULL;
    c.epilogue_args = &met;
    for (int threads = 1; threads <= 3; threads++) {
        const gp_run run = {.threads = threads};
        c.run = &run;
        const size_t bytes = space(&c);
        sizes = (sizes ^ bytes) * 1099511628211u;
        void *work = aligned_alloc(64, (bytes + 127) / 64 * 64);
        if (!work)
            exit(2);
        unsigned char *end = (unsigned char *)work + bytes;
        memset(end, 77, 64);
        memset(met, 0, (size_t)count);
        c.work = work;
        kernel(&c);
        for (int i = 0; i < 64; i++)
            wrong |= end[i] != 77;
        free(work);
        for (int64_t i = 0; i < count; i++) {
            int64_t place[4] = {0}, left = i;
            for (int d = out->rank; d-- > 0; left /= out->dim[d])
                place[d] = left % out->dim[d];
            const gp_real got = (gp_real)at(out, place[0], place[1], place[2], place[3]);
            const double sum = follows ? 2 * want[i] + (double)(i % 7) : want[i];
            wrong |= !(fabs((double)got - sum) <= 1e-6 * (depth + 8) * (1 + follows));
            wrong |= met[i] != follows;
            wrong |= threads > 1 && got != first[i];
            if (threads == 1)
                first[i] = got;
        }
    }
    free(first);
    free(met);
    failures += wrong;
    if (wrong)
        printf("wrong: %s\n", what);
}

static void try_matmul(void)
{
    const int64_t large = draw(0, 3) ? 40 : 60;
    const int64_t m = draw(1, large), n = draw(1, draw(0, 9) ? large : 900);
    const int64_t k = draw(1, draw(0, 9) ? large : 700), batch = draw(1, 3);
    const int64_t a_dim[] = {batch, m, k}, b_dim[] = {batch, k, n}, c_dim[] = {batch, m, n};
    gp_tensor in[2] = {tensor(3, a_dim, 1), tensor(3, b_dim, 1)}, out = tensor(3, c_dim, 1);
    if (draw(0, 1))
        in[1].stride[0] = 0;
    double *want = calloc((size_t)(batch * m * n), sizeof *want);
    for (int64_t i = 0; want && i < batch * m * n; i++)
        for (int64_t p = 0; p < k; p++)
            want[i] += at(&in[0], i / n / m, i / n % m, p, 0) * at(&in[1], i / n / m, p, i % n, 0);
    char what[120];
    snprintf(what, sizeof what, "matmul %d x %d x %d", (int)m, (int)n, (int)k);
    check(what, gp_matmul, gp_matmul_workspace,
          (gp_call){.in = in, .ins = 2, .out = &out, .outs = 1}, want, (double)k, (int)draw(0, 1));
    free(want);
    free(in[0].data);
    free(in[1].data);
    free(out.data);
}

/* A convolution: x * w gives y. Exact sums of all three directions come from one walk. Of any
 * shape; of 3 x 3 with many channels, as Winograd's are; with a stride over images that several
 * panels see; or with more channels on one side than a block is deep, through a window of one place
 * or one whose phases have such windows. */
typedef enum { ANY, MANY, APART, DEEP } Kind;

static void try_conv(Kind kind)
{
    const int wide = kind == MANY, deep = kind == DEEP;
    const int depthwise = !wide && !deep && draw(0, 3) == 0;
    const int64_t above = deep ? draw(1, 2) : 0; /* 1: x has the many channels, 2: y has */
    const int64_t groups = wide ? 1 : draw(1, 3), n = wide ? 1 : draw(1, 3);
    const int64_t c = deep   ? groups * (above == 1 ? draw(GP_KC - 1, 2 * GP_KC + 2) : draw(2, 20))
                      : wide ? draw(0, 7) ? draw(30, 60) : 260
                      : depthwise ? groups
                                  : groups * draw(1, draw(0, 3) ? 4 : 40);
    const int64_t o = deep   ? groups * (above == 2 ? draw(GP_KC - 1, 2 * GP_KC + 2) : draw(2, 20))
                      : wide ? draw(30, 50)
                      : depthwise ? groups
                                  : groups * draw(1, draw(0, 3) ? 6 : 130);
    gp_conv2d_attr a = {.groups = groups};
    int64_t kernel[2], in_dim[2], out_dim[2];
    const int plain = (kind == ANY && draw(0, 2) == 0) || (deep && draw(0, 1));
    for (int i = 0; i < 2; i++) {
        kernel[i] = wide || (deep && !plain) ? 3 : plain ? 1 : draw(1, 4);
        a.stride[i] = deep && !plain                ? 2
                      : kind == APART               ? draw(2, 3)
                      : wide || plain || draw(0, 1) ? 1
                                                    : draw(1, 3);
        a.dilation[i] = wide || deep ? 1 : draw(1, 2);
        a.pad[i] = plain ? 0 : deep ? 1 : draw(0, kind == APART ? 1 : kernel[i]);
        a.pad[2 + i] = plain ? 0 : deep ? 1 : draw(0, kind == APART ? 1 : kernel[i]);
        const int64_t reach = (kernel[i] - 1) * a.dilation[i] + 1;
        in_dim[i] = reach + draw(kind == ANY ? 0 : 9, wide || deep                ? 16
                                                      : kind == ANY && draw(0, 2) ? 9
                                                                                  : 30);
        out_dim[i] = (in_dim[i] + a.pad[i] + a.pad[2 + i] - reach) / a.stride[i] + 1;
    }
    const int64_t x_dim[] = {n, c, in_dim[0], in_dim[1]}, y_dim[] = {n, o, out_dim[0], out_dim[1]};
    const int64_t w_dim[] = {o, c / groups, kernel[0], kernel[1]};
    gp_tensor x = tensor(4, x_dim, (int)draw(0, 1)), y = tensor(4, y_dim, (int)draw(0, 1));
    gp_tensor w = tensor(4, w_dim, 0), dx = tensor(4, x_dim, (int)draw(0, 1));
    gp_tensor dy = tensor(4, y_dim, 0), dw = tensor(4, w_dim, 0), bias = tensor(1, &o, 0);
    double *yw = calloc((size_t)gp_count(&y), sizeof *yw), *dxw = calloc((size_t)gp_count(&x), 8);
    double *dww = calloc((size_t)gp_count(&w), sizeof *dww);
    if (!yw || !dxw || !dww)
        exit(2);
    const int with_bias = (int)draw(0, 1);
    for (int64_t i = 0; i < gp_count(&y); i++) {
        const int64_t col = i % y_dim[3], row = i / y_dim[3] % y_dim[2];
        const int64_t out = i / y_dim[3] / y_dim[2] % o, image = i / y_dim[3] / y_dim[2] / o;
        yw[i] = with_bias ? at(&bias, out, 0, 0, 0) : 0;
        for (int64_t k = 0; k < w_dim[1] * w_dim[2] * w_dim[3]; k++) {
            const int64_t kj = k % kernel[1], ki = k / kernel[1] % kernel[0];
            const int64_t own = k / kernel[1] / kernel[0], in = out / (o / groups) * w_dim[1] + own;
            const int64_t ih = row * a.stride[0] - a.pad[0] + ki * a.dilation[0];
            const int64_t iw = col * a.stride[1] - a.pad[1] + kj * a.dilation[1];
            if (ih < 0 || iw < 0 || ih >= x_dim[2] || iw >= x_dim[3])
                continue;
            const double up = at(&dy, image, out, row, col);
            yw[i] += at(&x, image, in, ih, iw) * at(&w, out, own, ki, kj);
            dxw[((image * c + in) * x_dim[2] + ih) * x_dim[3] + iw] +=
                up * at(&w, out, own, ki, kj);
            dww[out * w_dim[1] * w_dim[2] * w_dim[3] + k] += up * at(&x, image, in, ih, iw);
        }
    }
    char what[160];
    snprintf(what, sizeof what, "%d x %d x %d x %d to %d, %d x %d, stride %d, %d, groups %d",
             (int)n, (int)c, (int)x_dim[2], (int)x_dim[3], (int)o, (int)kernel[0], (int)kernel[1],
             (int)a.stride[0], (int)a.stride[1], (int)groups);
    const gp_tensor none = {0}, forward[] = {x, w, with_bias ? bias : none}, back[] = {dy, w, none};
    const gp_tensor weights[] = {x, dy};
    const double depth = (double)(c * kernel[0] * kernel[1]);
    check(what, gp_conv2d, gp_conv2d_workspace,
          (gp_call){.in = forward, .ins = 3, .out = &y, .outs = 1, .attr = &a}, yw, depth,
          (int)draw(0, 1));
    check(what, gp_conv_transpose2d, gp_conv_transpose2d_workspace,
          (gp_call){.in = back, .ins = 3, .out = &dx, .outs = 1, .attr = &a}, dxw, 9 * (double)o,
          (int)draw(0, 1));
    check(what, gp_conv2d_weight_grad, gp_conv2d_weight_grad_workspace,
          (gp_call){.in = weights, .ins = 2, .out = &dw, .outs = 1, .attr = &a}, dww,
          (double)(n * y_dim[2] * y_dim[3]), 0);
    free(yw);
    free(dxw);
    free(dww);
    const gp_tensor all[] = {x, y, w, dx, dy, dw, bias};
    for (int i = 0; i < 7; i++)
        free(all[i].data);
}

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 60;
    for (int i = 0; i < rounds; i++) {
        try_matmul();
        try_conv(ANY);
        if (i % 3 == 0)
            try_conv(APART);
        if (i % 10 == 0)
            try_conv(MANY);
        if (i % 5 == 0)
            try_conv(DEEP);
    }
    printf("%016llx\n", (unsigned long long)sizes);
    return failures > 0;
}
