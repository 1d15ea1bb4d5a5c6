/* What the kernels reach on this machine, next to the fastest libraries at hand, in one run.
 *
 * Before anything is timed, the result and the peer's are compared with plain loops in double: a
 * wrong one prints WRONG or peer WRONG, and the program ends with status 1.
 *
 * One thread: seconds of the CPU, so that a busy machine disturbs little. More: seconds of the
 * clock. Both sides take turns and the best of several counts.
 * usage: cpu_bench [threads] [op]: only rows of ops whose names begin so; `peak` prints what the
 * faster of both sides reaches on a large product, in GFLOP/s, and `copy` what memcpy reads and
 * writes, in GB/s */
#include "runtime/c/attend_grad.h"
#include "runtime/c/batchnorm.h"
#include "runtime/c/conv2d_weight_grad.h"
#include "runtime/c/conv_transpose2d.h"
#include "runtime/c/layernorm.h"
#include "runtime/c/matmul.h"
#include "runtime/c/norm_grad.h"
#include "runtime/c/pool.h"
#include "runtime/c/pool_grad.h"
#include "runtime/c/softmax.h"
#include "runtime/c/update.h"
#include "tests/cpu/peers.h"
#include "tests/cpu/right.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void omp_set_num_threads(int threads);

enum { TURNS = 7 };
static int threads = 1;
static const char *chosen = "";
static int wrongs; /* rows whose result is wrong */

static int wanted(const char *op)
{
    return strncmp(op, chosen, strlen(chosen)) == 0;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static float *numbers(int64_t count)
{
    const size_t bytes = ((size_t)count * sizeof(float) + 63) / 64 * 64;
    float *x = aligned_alloc(64, bytes);
    if (!x)
        exit(2);
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)(i * 7919 % 1009) / 1009 - 0.5f;
    return x;
}

static gp_tensor dense(int rank, const int64_t *dim)
{
    gp_tensor t = {.rank = rank};
    int64_t size = 1;
    for (int i = rank; i-- > 0; size *= dim[i]) {
        t.dim[i] = dim[i];
        t.stride[i] = size;
    }
    t.data = numbers(size);
    return t;
}
#define DENSE(...) \
    dense((int)(sizeof(int64_t[]){__VA_ARGS__} / sizeof(int64_t)), (const int64_t[]){__VA_ARGS__})

typedef int Kernel(const gp_call *c);
typedef size_t Space(const gp_call *c);

/* Seconds of one call: the best of some turns, taken with the peer's where there is one. */
typedef struct {
    double ours, peer;
    size_t bytes;   /* of workspace */
    int wrong;      /* the result */
    int peer_wrong; /* the peer's */
} Times;

static double seconds_of(Kernel *kernel, const gp_call *c, void (*peer)(void *), void *user,
                         int times)
{
    const double start = now();
    for (int i = 0; i < times; i++)
        if (kernel)
            kernel(c);
        else
            peer(user);
    return (now() - start) / times;
}

static Times measure(Kernel *kernel, Space *space, gp_call c, Right *right, void (*peer)(void *),
                     void *user)
{
    const gp_run run = {.threads = threads, .lr = 0.01};
    c.run = &run;
    Times t = {.ours = 1e30, .peer = 1e30, .bytes = space ? space(&c) : 0};
    c.work = numbers((int64_t)(t.bytes / sizeof(float)) + 16);
    const double once = seconds_of(kernel, &c, NULL, NULL, 1);
    t.wrong = right && !right(&c);
    const int times = once > 0.02 ? 1 : (int)(0.02 / (once + 1e-7)) + 1;
    for (int i = 0; i < TURNS; i++) {
        const double ours = seconds_of(kernel, &c, NULL, NULL, times);
        const double other = peer ? seconds_of(NULL, NULL, peer, user, times) : 0;
        t.ours = ours < t.ours ? ours : t.ours;
        t.peer = other < t.peer ? other : t.peer;
    }
    free(c.work);
    return t;
}

static void release(int count, const gp_tensor *t)
{
    for (int i = 0; i < count; i++)
        free(t[i].data);
}

/* amount: of 1e9 operations or bytes. */
static void row(const char *op, const char *shape, double amount, Times t, int with_peer)
{
    printf("%-14s %-28s %8.1f", op, shape, amount / t.ours);
    if (with_peer)
        printf(" %8.1f   %5.2f", amount / t.peer, t.peer / t.ours);
    else
        printf("        -       -");
    printf(" %10zu%s%s\n", t.bytes, t.wrong ? "  WRONG" : "", t.peer_wrong ? "  peer WRONG" : "");
    fflush(stdout);
    wrongs += t.wrong || t.peer_wrong;
}

/* ---- Products ---------------------------------------------------------------------------------
 */

typedef struct {
    int64_t m, n, k;
    const float *a, *b;
    float *c;
} Product;

static void peer_product(void *user)
{
    const Product *p = user;
    blas_product(p->m, p->n, p->k, p->a, p->b, p->c);
}

static Times product(int64_t m, int64_t n, int64_t k, int with_peer)
{
    const gp_tensor in[2] = {DENSE(m, k), DENSE(k, n)}, out[2] = {DENSE(m, n), DENSE(m, n)};
    Product p = {m, n, k, in[0].data, in[1].data, out[1].data};
    Times t = measure(gp_matmul, gp_matmul_workspace,
                      (gp_call){.in = in, .ins = 2, .out = out, .outs = 1}, right_product,
                      with_peer ? peer_product : NULL, &p);
    if (with_peer)
        t.peer_wrong = !same_as_peer(out[0].data, out[1].data, m * n);
    release(2, in);
    release(2, out);
    return t;
}

static void peer_wide(void *user)
{
    gp_matmul(user);
}

/* Of bf16, summed in f32; the peer is the product of f32 here. */
static Times half_product(int64_t m, int64_t n, int64_t k)
{
    const gp_tensor in[2] = {DENSE(m, k), DENSE(k, n)}, out[2] = {DENSE(m, n), DENSE(m, n)};
    gp_tensor half[2] = {DENSE(m, k), DENSE(k, n)};
    const gp_run run = {.threads = threads};
    gp_call wide = {.in = in, .ins = 2, .out = &out[1], .outs = 1, .run = &run};
    wide.work = numbers((int64_t)(gp_matmul_workspace(&wide) / sizeof(float)) + 16);
    for (int i = 0; i < 2; i++) {
        half[i].dtype = GP_BF16;
        gp_set_row(half[i].data, in[i].data, gp_count(&in[i]), GP_BF16);
    }
    const Times t = measure(gp_matmul, gp_matmul_workspace,
                            (gp_call){.in = half, .ins = 2, .out = out, .outs = 1}, right_product,
                            peer_wide, &wide);
    free(wide.work);
    release(2, in);
    release(2, half);
    release(2, out);
    return t;
}

static void peak(int with_peer)
{
    const Times t = product(1024, 1024, 1024, with_peer);
    printf("%.0f\n", 2e-9 * 1024 * 1024 * 1024 / (with_peer && t.peer < t.ours ? t.peer : t.ours));
}

static void products(int with_peer)
{
    if (!wanted("matmul"))
        return;
    static const struct {
        const char *name;
        int64_t m, n, k;
    } shape[] = {{"square", 256, 256, 256},        {"square", 512, 512, 512},
                 {"square", 1024, 1024, 1024},     {"square", 2048, 2048, 2048},
                 {"gpt2 qkv", 512, 2304, 768},     {"gpt2 projection", 512, 768, 768},
                 {"gpt2 up", 512, 3072, 768},      {"gpt2 down", 512, 768, 3072},
                 {"gpt2 head", 512, 50257, 768},   {"resnet50 1x1", 64, 3136, 64},
                 {"resnet50 1x1", 256, 3136, 64},  {"resnet50 1x1", 64, 3136, 256},
                 {"resnet50 1x1", 128, 784, 512},  {"resnet50 1x1", 512, 784, 128},
                 {"resnet50 1x1", 256, 196, 1024}, {"resnet50 1x1", 1024, 196, 256},
                 {"resnet50 1x1", 512, 49, 2048},  {"resnet50 1x1", 2048, 49, 512},
                 {"skinny", 8, 3072, 768},         {"small", 32, 32, 32},
                 {"vector", 1, 3072, 768}};
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
        const int64_t m = shape[i].m, n = shape[i].n, k = shape[i].k;
        const Times t = product(m, n, k, with_peer);
        char text[64];
        snprintf(text, sizeof text, "%s %dx%dx%d", shape[i].name, (int)m, (int)n, (int)k);
        row("matmul", text, 2e-9 * (double)(m * n * k), t, with_peer);
        row("bf16, f32", text, 2e-9 * (double)(m * n * k), half_product(m, n, k), 1);
    }
}

/* ---- Convolutions -----------------------------------------------------------------------------
 */

static void peer_conv(void *user)
{
    (void)user;
    conv_run();
}

/* As bf16, where it lies. */
static void halve(gp_tensor *t)
{
    float *wide = t->data;
    t->data = numbers(gp_count(t));
    t->dtype = GP_BF16;
    gp_set_row(t->data, wide, gp_count(t), GP_BF16);
    free(wide);
}

/* half: images are bf16, weights f32 that are rounded. */
static void convolution(const ConvShape *s, ConvKind kind, int half, int with_peer)
{
    static const char *const name[2][3] = {{"conv2d", "conv2d by x", "conv2d by w"},
                                           {"bf16 conv2d", "bf16 c by x", "bf16 c by w"}};
    if (!wanted(name[half][kind]))
        return;
    const int64_t to = (s->size + 2 * s->pad - s->kernel) / s->stride + 1;
    gp_tensor x = DENSE(s->n, s->c, s->size, s->size), y = DENSE(s->n, s->o, to, to);
    const gp_tensor w = DENSE(s->o, s->c / s->groups, s->kernel, s->kernel), none = {0};
    if (half) {
        halve(&x);
        halve(&y);
        gp_round_run(w.data, w.data, 1, gp_count(&w), GP_BF16);
    }
    const gp_conv2d_attr a = {
        {s->stride, s->stride}, {s->pad, s->pad, s->pad, s->pad}, {1, 1}, s->groups};
    const gp_tensor forward[] = {x, w, none}, by_x[] = {y, w, none}, by_w[] = {x, y};
    const gp_call call[] = {{.in = forward, .ins = 3, .out = &y, .outs = 1, .attr = &a},
                            {.in = by_x, .ins = 3, .out = &x, .outs = 1, .attr = &a},
                            {.in = by_w, .ins = 2, .out = &w, .outs = 1, .attr = &a}};
    static Kernel *const kernel[] = {gp_conv2d, gp_conv_transpose2d, gp_conv2d_weight_grad};
    static Space *const space[] = {gp_conv2d_workspace, gp_conv_transpose2d_workspace,
                                   gp_conv2d_weight_grad_workspace};
    static Right *const right[] = {right_conv, right_conv_by_x, right_conv_by_w};
    with_peer = with_peer && conv_prepare(s, kind, half, x.data, w.data, y.data);
    /* the peer writes to the same place as ours, last */
    Times t = measure(kernel[kind], space[kind], call[kind], right[kind],
                      with_peer ? peer_conv : NULL, NULL);
    if (with_peer) {
        const gp_run run = {.threads = threads};
        gp_call again = call[kind];
        again.run = &run;
        terms_in_a_row = kind == CONV_BY_WEIGHTS ? s->n * to * to : 0;
        t.peer_wrong = !right[kind](&again);
        terms_in_a_row = 0;
        conv_end();
    }
    const double work = 2e-9 * (double)(gp_count(&y) * (s->c / s->groups) * s->kernel * s->kernel);
    row(name[half][kind], s->name, work, t, with_peer);
    release(3, (const gp_tensor[]){x, w, y});
}

static void convolutions(int with_peer)
{
    static const ConvShape shape[] = {{"resnet50 7x7/2 3>64", 8, 3, 224, 64, 7, 2, 3, 1},
                                      {"resnet50 1x1 64>256, 56", 8, 64, 56, 256, 1, 1, 0, 1},
                                      {"resnet50 1x1 256>64, 56", 8, 256, 56, 64, 1, 1, 0, 1},
                                      {"resnet50 3x3 64, 56", 8, 64, 56, 64, 3, 1, 1, 1},
                                      {"resnet50 3x3/2 128, 56", 8, 128, 56, 128, 3, 2, 1, 1},
                                      {"resnet50 1x1/2 256>512, 56", 8, 256, 56, 512, 1, 2, 0, 1},
                                      {"resnet50 3x3 128, 28", 8, 128, 28, 128, 3, 1, 1, 1},
                                      {"resnet50 3x3 256, 14", 8, 256, 14, 256, 3, 1, 1, 1},
                                      {"resnet50 1x1 1024>256, 14", 8, 1024, 14, 256, 1, 1, 0, 1},
                                      {"resnet50 3x3 512, 7", 8, 512, 7, 512, 3, 1, 1, 1},
                                      {"resnet50 1x1 512>2048, 7", 8, 512, 7, 2048, 1, 1, 0, 1},
                                      {"vgg16 3x3 64, 224", 1, 64, 224, 64, 3, 1, 1, 1},
                                      {"vgg16 3x3 256, 56", 1, 256, 56, 256, 3, 1, 1, 1},
                                      {"depthwise 3x3 96, 56", 8, 96, 56, 96, 3, 1, 1, 96},
                                      {"depthwise 3x3/2 144, 56", 8, 144, 56, 144, 3, 2, 1, 144}};
    for (int kind = CONV_FORWARD; kind <= CONV_BY_WEIGHTS; kind++)
        for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
            for (int half = 0; half < 2; half++)
                convolution(&shape[i], (ConvKind)kind, half, with_peer);
}

/* ---- What moves memory ------------------------------------------------------------------------
 * Tensors of 100 MB: larger than caches, where a copy of a part of them would find it again.
 */

enum { ROWS = 32768, WIDTH = 768, IMAGES = 32 };
#define ROWS_TEXT "32768 x 768"
#define IMAGES_TEXT "32 x 256 x 56 x 56"

typedef struct {
    void *to;
    const void *from;
    size_t bytes;
} Copy;

static void peer_copy(void *user)
{
    const Copy *c = user;
    const size_t part = c->bytes / (size_t)threads;
    const gp_run run = {.threads = threads};
    (void)run; /* has a say only where there are threads */
    GP_PARALLEL(&run, 1)
    for (int i = 0; i < threads; i++)
        memcpy((char *)c->to + (size_t)i * part, (const char *)c->from + (size_t)i * part, part);
}

static void copy(void)
{
    Copy c = {.bytes = 4 * ROWS * WIDTH};
    c.to = numbers((int64_t)(c.bytes / 4));
    c.from = numbers((int64_t)(c.bytes / 4));
    double best = 1e30;
    for (int i = 0; i < 5 * TURNS; i++) {
        const double time = seconds_of(NULL, NULL, peer_copy, &c, 1);
        best = time < best ? time : best;
    }
    printf("%.1f\n", 2e-9 * (double)c.bytes / best);
    free(c.to);
    free((void *)(uintptr_t)c.from);
}

/* Bytes that must move, read and written, next to a copy that moves as many. */
static void memory_row(const char *op, const char *shape, Kernel *kernel, Space *space, gp_call c,
                       Right *right, double bytes)
{
    if (!wanted(op))
        return;
    Copy copy = {.bytes = (size_t)bytes / 2};
    copy.to = numbers((int64_t)(copy.bytes / 4));
    copy.from = numbers((int64_t)(copy.bytes / 4));
    row(op, shape, bytes / 1e9, measure(kernel, space, c, right, peer_copy, &copy), 1);
    free(copy.to);
    free((void *)(uintptr_t)copy.from);
}

/* Images of 56 x 56 to 28 x 28 and back. */
static void pool_rows(gp_tensor x, gp_tensor dx, gp_tensor y)
{
    const gp_tensor mean = DENSE(IMAGES, 256, 1, 1);
    const double bytes = 4.0 * (double)gp_count(&x);
    const gp_maxpool2d_attr two = {{2, 2}, {2, 2}, {0}, {1, 1}};
    const gp_maxpool2d_attr three = {{3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}};
    const gp_avgpool2d_attr even = {{2, 2}, {2, 2}, {0}, 0, {1, 1}};
    const gp_call forward = {.in = &x, .ins = 1, .out = &y, .outs = 1};
    gp_tensor took2 = y, took3 = y; /* which places windows took */
    took2.dtype = took3.dtype = GP_U8;
    took2.data = numbers((gp_count(&y) + 3) / 4);
    took3.data = numbers((gp_count(&y) + 3) / 4);
    const gp_call forward2 = {.in = &x, .ins = 1, .out = (gp_tensor[]){y, took2}, .outs = 2};
    const gp_call forward3 = {.in = &x, .ins = 1, .out = (gp_tensor[]){y, took3}, .outs = 2};
    const gp_call back2 = {.in = (gp_tensor[]){took2, y}, .ins = 2, .out = &dx, .outs = 1};
    const gp_call back3 = {.in = (gp_tensor[]){took3, y}, .ins = 2, .out = &dx, .outs = 1};
    const struct {
        const char *op, *shape;
        Kernel *kernel;
        Right *right;
        gp_call call;
        const void *attr;
        double share; /* of the bytes of x, that move */
    } row[] = {
        {"maxpool2d", "2x2 of " IMAGES_TEXT, gp_maxpool2d, right_maxpool, forward, &two, 1.25},
        {"maxpool2d", "3x3/2 of " IMAGES_TEXT, gp_maxpool2d, right_maxpool, forward, &three, 1.25},
        {"maxpool2d+", "2x2 of " IMAGES_TEXT, gp_maxpool2d, right_maxpool, forward2, &two, 1.3125},
        {"maxpool2d+", "3x3/2 of " IMAGES_TEXT, gp_maxpool2d, right_maxpool, forward3, &three,
         1.3125},
        {"maxpool2d_grad", "2x2 of " IMAGES_TEXT, gp_maxpool2d_grad, right_maxpool_grad, back2,
         &two, 1.3125},
        {"maxpool2d_grad", "3x3/2 of " IMAGES_TEXT, gp_maxpool2d_grad, right_maxpool_grad, back3,
         &three, 1.3125},
        {"avgpool2d", "2x2 of " IMAGES_TEXT, gp_avgpool2d, right_avgpool, forward, &even, 1.25},
        {"avgpool2d_grad", "2x2 of " IMAGES_TEXT, gp_avgpool2d_grad, right_avgpool_grad,
         (gp_call){.in = &y, .ins = 1, .out = &dx, .outs = 1}, &even, 1.25},
        {"global_avgpool", IMAGES_TEXT, gp_global_avgpool, right_global_avgpool,
         (gp_call){.in = &x, .ins = 1, .out = &mean, .outs = 1}, NULL, 1}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        gp_call c = row[i].call;
        c.attr = row[i].attr;
        memory_row(row[i].op, row[i].shape, row[i].kernel, NULL, c, row[i].right,
                   row[i].share * bytes);
    }
    free(mean.data);
    free(took2.data);
    free(took3.data);
}

static void memory_rows(void)
{
    gp_tensor x = DENSE(ROWS, WIDTH), y = DENSE(ROWS, WIDTH),
              row_of[4] = {DENSE(WIDTH), DENSE(WIDTH), DENSE(WIDTH), DENSE(WIDTH)};
    const gp_tensor none = {0}, scale[] = {x, row_of[0], row_of[1]}, norm[] = {y, none, none};
    const gp_tensor mean = DENSE(ROWS), inverse = DENSE(ROWS), dx = DENSE(ROWS, WIDTH);
    const gp_tensor back[] = {x, y, row_of[0], mean, inverse},
                    slopes[] = {dx, row_of[2], row_of[3]};
    const double size = 4.0 * (double)gp_count(&x);
    memory_row("softmax", ROWS_TEXT, gp_softmax, NULL,
               (gp_call){.in = &x, .ins = 1, .out = &y, .outs = 1, .attr = &(gp_softmax_attr){1}},
               right_softmax, 2 * size);
    memory_row(
        "layernorm", ROWS_TEXT, gp_layernorm, NULL,
        (gp_call){
            .in = scale, .ins = 3, .out = norm, .outs = 3, .attr = &(gp_layernorm_attr){1, 1e-5}},
        right_layernorm, 2 * size);
    memory_row(
        "norm_grad", ROWS_TEXT, gp_norm_grad, gp_norm_grad_workspace,
        (gp_call){
            .in = back, .ins = 5, .out = slopes, .outs = 3, .attr = &(gp_norm_grad_attr){1, 1}},
        right_norm_grad, 3 * size);
    release(4, row_of);
    release(5, (const gp_tensor[]){x, y, mean, inverse, dx});

    const gp_tensor image = DENSE(IMAGES, 256, 56, 56), out = DENSE(IMAGES, 256, 56, 56);
    const gp_tensor per[] = {DENSE(256), DENSE(256), DENSE(256), DENSE(256)};
    const gp_tensor slope[] = {DENSE(256), DENSE(256)};
    const gp_tensor up = DENSE(IMAGES, 256, 56, 56), small = DENSE(IMAGES, 256, 28, 28);
    const double plane = 4.0 * (double)gp_count(&image);
    memory_row("batchnorm", IMAGES_TEXT, gp_batchnorm_train, NULL,
               (gp_call){.in = (gp_tensor[]){image, per[0], per[1]},
                         .ins = 3,
                         .out = (gp_tensor[]){out, per[2], per[3]},
                         .outs = 3,
                         .attr = &(gp_batchnorm_train_attr){1e-5}},
               right_batchnorm, 3 * plane); /* twice read, once written */
    memory_row("batchnorm_grad", IMAGES_TEXT, gp_batchnorm_grad, NULL,
               (gp_call){.in = (gp_tensor[]){image, up, per[0], per[2], per[3]},
                         .ins = 5,
                         .out = (gp_tensor[]){out, slope[0], slope[1]},
                         .outs = 3},
               right_batchnorm_grad, 5 * plane);
    pool_rows(image, out, small);
    /* Its two states are one here, which is read before it is written: a right result is one of
     * the first run, out of place. */
    const gp_tensor to = DENSE(IMAGES, 256, 56, 56), state = DENSE(IMAGES, 256, 56, 56);
    const gp_adamw_attr rates = {
        .lr_scale = 1, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.1};
    for (int64_t i = 0; i < gp_count(&out); i++)
        ((float *)out.data)[i] = fabsf(((float *)out.data)[i]);
    Times first = {0};
    if (wanted("adamw")) {
        const gp_tensor old[] = {image, up, none, out, out}, now_at[] = {to, state, state};
        const gp_run run = {.threads = threads, .lr = 0.01};
        const gp_call c = {
            .in = old, .ins = 5, .out = now_at, .outs = 3, .attr = &rates, .run = &run};
        gp_adamw(&c);
        first.wrong = !right_adamw(&c);
        wrongs += first.wrong;
    }
    memory_row(first.wrong ? "adamw WRONG" : "adamw", "25690112", gp_adamw, NULL,
               (gp_call){.in = (gp_tensor[]){image, up, none, out, out},
                         .ins = 5,
                         .out = (gp_tensor[]){image, out, out},
                         .outs = 3,
                         .attr = &rates},
               NULL, 5 * plane);
    release(2, slope);
    release(2, (const gp_tensor[]){to, state});
    release(4, per);
    release(4, (const gp_tensor[]){image, out, up, small});
}

static void attention(void)
{
    if (!wanted("attend"))
        return;
    const int64_t b = 2, h = 12, t = 1024, d = 64;
    const gp_tensor q = DENSE(b, h, t, d), k = DENSE(b, h, t, d), v = DENSE(b, h, t, d);
    const gp_tensor out = DENSE(b, t, h, d), lse = DENSE(b, h, t, 2), none = {0};
    const gp_tensor grad[] = {DENSE(b, t, h, d), DENSE(b, t, h, d), DENSE(b, t, h, d),
                              DENSE(b, t, h, d)};
    const gp_attend_attr a = {1, 0.125};
    const double work = 1e-9 * 2 * (double)(b * h * t * t * d); /* half of all scores */
    row("attend", "2 x 12 x 1024 x 64 causal", work,
        measure(gp_attend, gp_attend_workspace,
                (gp_call){.in = (gp_tensor[]){q, k, v, none},
                          .ins = 4,
                          .out = (gp_tensor[]){out, lse},
                          .outs = 2,
                          .attr = &a},
                right_attend, NULL, NULL),
        0);
    row("attend_grad", "2 x 12 x 1024 x 64 causal", 2.5 * work,
        measure(gp_attend_grad, gp_attend_grad_workspace,
                (gp_call){.in = (gp_tensor[]){q, k, v, none, out, lse, grad[3]},
                          .ins = 7,
                          .out = grad,
                          .outs = 3,
                          .attr = &a},
                right_attend_grad, NULL, NULL),
        0);
    release(4, grad);
    release(5, (const gp_tensor[]){q, k, v, out, lse});
}

int main(int argc, char **argv)
{
    threads = argc > 1 ? atoi(argv[1]) : 1;
    chosen = argc > 2 ? argv[2] : "";
    const char *blas = blas_open(), *conv = conv_open();
    blas_threads(threads);
    omp_set_num_threads(threads);
    if (strcmp(chosen, "peak") == 0 || strcmp(chosen, "copy") == 0) {
        if (*chosen == 'p')
            peak(blas != NULL);
        else
            copy();
        return 0;
    }
    printf("%d thread%s, vectors of %d bytes; products against %s, convolutions against %s,\n"
           "products of bf16 against the same of f32, what moves memory against memcpy\n\n",
           threads, threads > 1 ? "s" : "", GP_VECTOR_BYTES,
           blas ? blas : "nothing (no BLAS found)",
           conv ? conv : "nothing (oneDNN is not installed)");
    printf("%-14s %-28s %8s %8s   %5s %10s\n", "op", "shape", "gplan", "peer", "ratio",
           "workspace");
    printf("%-14s %-28s %8s %8s\n", "", "", "GFLOP/s", "");
    products(blas != NULL);
    convolutions(conv != NULL);
    attention();
    printf("%-14s %-28s %8s\n", "", "", "GB/s");
    memory_rows();
    if (wrongs)
        printf("%d WRONG\n", wrongs);
    return wrongs > 0;
}
