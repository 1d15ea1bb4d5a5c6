/* Measures this machine: how fast a product, a convolution, a loop and a copy run, and what a call
 * costs that does nothing. Products and convolutions are run by the kernels that would be emitted;
 * the rates are those of the instruction set that gplan itself was compiled for, on one thread. */
#include "codegen/internal.h"
#include "runtime/c/math.h"
#include "runtime/runtime.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static const double SECONDS = 0.4; /* for each */

typedef struct {
    Arena *arena;
    Graph *g;
    gp_tensor in[4], out[MAX_OUTPUTS];
    gp_setting setting[MAX_ARGS];
    gp_call call;
    const gp_kernel *kernel;
    double work; /* operations of a run */
} Bench;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* what others run does not count */
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A tensor of small numbers, on pages that have been touched. */
static gp_tensor tensor_new(Arena *arena, const Value *value)
{
    View view = value_view(value);
    gp_tensor t = tensor_describe((Dtype)value->dtype, &view);
    float *at = arena_alloc(arena, value_bytes(value) + 64);
    at += (64 - (uintptr_t)at % 64) / sizeof *at;
    for (int64_t i = 0; i < value_count(value); i++)
        at[i] = (float)(i % 17) / 17;
    t.data = at;
    return t;
}

static Use input(Graph *g, const char *name, int rank, const int64_t *dim)
{
    return use_of(graph_value(g, VALUE_INPUT, name, F32, rank, dim, (Span){0}));
}

/* The call as a node of a graph, and its operands and results in memory. */
static void bench_begin(Bench *b, const char *op, int count, const Use *operand, int64_t pad)
{
    static const gp_run run = {.threads = 1};
    Graph *g = b->g;
    Call c = call_begin(g, &(Call){.name = op}, op);
    for (int i = 0; i < count; i++)
        call_use(g, &c, operand[i]);
    if (pad)
        call_set_list(&c, "pad", 1, &pad);
    call_finish(g, &c);
    Id id = (Id)g->node.count - 1;
    const Node *node = &g->node.at[id];
    for (Id i = 0; i < node->uses && i < 4; i++)
        if (node_use(g, node, i).value != NONE)
            b->in[i] = tensor_new(b->arena, &g->value.at[node_use(g, node, i).value]);
    for (Id i = 0; i < node->values; i++)
        b->out[i] = tensor_new(b->arena, &g->value.at[node_value(node, i)]);
    for (int i = 0; i < MAX_ARGS && node->op->args[i].name; i++) {
        const Attr *attr = &g->attr.at[node->attr + (Id)i];
        b->setting[i].number = attr->number;
        memcpy(b->setting[i].list, attr->list, sizeof b->setting[i].list);
    }
    b->kernel = runtime_kernel(node->op->name);
    b->call = (gp_call){.in = b->in,
                        .out = b->out,
                        .ins = (int32_t)node->uses,
                        .outs = (int32_t)node->values,
                        .run = &run};
    size_t bytes = b->kernel->workspace ? b->kernel->workspace(&b->call, b->setting) : 0;
    unsigned char *work = arena_alloc(b->arena, bytes + 64);
    b->call.work = work + (64 - (uintptr_t)work % 64);
    b->work =
        node->op->flops ? node->op->flops(g, id) : (double)value_count(&g->value.at[node->value]);
}

static void run_kernel(void *data)
{
    Bench *b = data;
    b->kernel->run(&b->call, b->setting);
}

/* Seconds of one run: the best of several rounds. */
static double time_of(void (*run)(void *data), void *data)
{
    double best = 0, end = now() + SECONDS;
    for (int64_t runs = 1; now() < end || best == 0;) {
        double begin = now();
        for (int64_t i = 0; i < runs; i++)
            run(data);
        double seconds = (now() - begin) / (double)runs;
        if (seconds * (double)runs < SECONDS / 20)
            runs *= 2;
        if (best == 0 || seconds < best)
            best = seconds;
    }
    return best;
}

typedef struct {
    int rank;
    int64_t dim[4];
} Shape;

/* Seconds of an op on tensors of these shapes; *work: its operations. */
static double measure(const char *op, int count, const Shape *shape, int64_t pad, double *work)
{
    static const char *const name[] = {"a", "b"};
    Bench b = {.arena = arena_new()};
    Use operand[2];
    b.g = graph_new(b.arena, diag_new(b.arena, NULL, false), NULL);
    for (int i = 0; i < count; i++)
        operand[i] = input(b.g, name[i], shape[i].rank, shape[i].dim);
    bench_begin(&b, op, count, operand, pad);
    double seconds = time_of(run_kernel, &b);
    *work = b.work;
    arena_free(b.arena);
    return seconds;
}

/* ---- What is emitted as loops, not as calls of kernels --------------------------------------- */

enum { LINE = 4096, LARGE = 1 << 24 };

typedef struct {
    gp_real *from, *to;
} Lines;

#if defined(__GNUC__) && !defined(__clang__)
#define AS_EMITTED __attribute__((optimize("O3")))
#else
#define AS_EMITTED
#endif

/* A chain as models have them, gelu as loops have it: LOOP operations when written out, a function
 * counted as one. */
enum { LOOP = 8 };
static AS_EMITTED void run_loop(void *data)
{
    const Lines *l = data;
    const gp_real *restrict from = l->from;
    gp_real *restrict to = l->to;
    for (int i = 0; i < LINE; i++) {
        gp_real x = from[i];
        to[i] = x / gp_gelu_tanh_divisor(x);
    }
}

static void run_copy(void *data)
{
    const Lines *l = data;
    memcpy(l->to, l->from, LARGE * sizeof *l->to);
}

static double measure_lines(void (*run)(void *data))
{
    Arena *arena = arena_new();
    Lines lines = {ARENA_ARRAY(arena, gp_real, LARGE), ARENA_ARRAY(arena, gp_real, LARGE)};
    for (int i = 0; i < LARGE; i++)
        lines.from[i] = lines.to[i] = (gp_real)(i % 17) / 17;
    double seconds = time_of(run, &lines);
    arena_free(arena);
    return seconds;
}

Profile profile_measure(void)
{
    static const Shape product[] = {{2, {512, 512}}, {2, {512, 512}}};
    static const Shape conv[] = {{4, {2, 64, 56, 56}}, {4, {64, 64, 3, 3}}};
    static const Shape one[] = {{1, {1}}};
    double work, seconds;
    Profile p = {0}; /* of the link nothing: another program measures that */
    seconds = measure("matmul", 2, product, 0, &work);
    p.product_flops = work / seconds;
    seconds = measure("conv2d", 2, conv, 1, &work);
    p.conv_flops = work / seconds;
    p.loop_flops = (double)LOOP * LINE / measure_lines(run_loop);
    p.bytes = 2.0 * LARGE * sizeof(gp_real) / measure_lines(run_copy);
    p.start = measure("relu", 1, one, 0, &work);
    return p;
}
