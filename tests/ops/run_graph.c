/* See run_graph.h. */
#include "tests/ops/run_graph.h"

#include "runtime/c/narrow.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const unsigned char UNWRITTEN = 0xff; /* a real of such bytes is NaN */
static const unsigned char GUARD = 0x5a;     /* round the window of an output */

/* ---- Tensors -------------------------------------------------------------------------------- */

Tensor tensor_new(Arena *arena, Dtype dtype, int rank, const int64_t *dim)
{
    Tensor t = {.dtype = dtype, .rank = rank, .count = 1};
    for (int i = 0; i < rank; i++)
        t.count *= t.dim[i] = dim[i];
    t.at = ARENA_ARRAY(arena, double, (size_t)t.count);
    return t;
}

static uint64_t mix(uint64_t x) /* splitmix64 */
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

void tensor_fill(Tensor *t, uint64_t seed, double low, double high)
{
    for (int64_t i = 0; i < t->count; i++) {
        double part = (double)(mix(seed * 1000003 + (uint64_t)i) >> 11) / 9007199254740992.0;
        if (t->dtype == BOOL)
            t->at[i] = part < 0.5;
        else if (dtype_is_float(t->dtype)) /* what a float holds, so that references see it too */
            t->at[i] = (double)gp_round_to((gp_real)(low == high ? low : low + part * (high - low)),
                                           (int)t->dtype);
        else
            t->at[i] = floor(low + part * (high - low + 1));
    }
}

static const char *element_text(Arena *arena, const Tensor *t, int64_t i)
{
    int64_t index[MAX_RANK];
    for (int d = t->rank; d-- > 0; i /= t->dim[d])
        index[d] = i % t->dim[d];
    return shape_text(arena, DTYPES, t->rank, index);
}

const char *tensor_differs(Arena *arena, const Tensor *got, const Tensor *want, double tolerance)
{
    if (got->dtype != want->dtype || got->rank != want->rank ||
        memcmp(got->dim, want->dim, (size_t)got->rank * sizeof *got->dim) != 0)
        return arena_printf(arena, "shape %s, expected %s",
                            shape_text(arena, got->dtype, got->rank, got->dim),
                            shape_text(arena, want->dtype, want->rank, want->dim));
    for (int64_t i = 0; i < got->count; i++) {
        double x = got->at[i], y = want->at[i];
        bool same = x == y || (isnan(x) && isnan(y));
        if (!same && !(fabs(x - y) <= tolerance * (1 + fabs(y))))
            return arena_printf(arena, "element %s of %s is %.9g, expected %.9g",
                                element_text(arena, got, i),
                                shape_text(arena, got->dtype, got->rank, got->dim), x, y);
    }
    return NULL;
}

/* ---- Elements in memory --------------------------------------------------------------------- */

static size_t element_bytes(Dtype dtype)
{
    return gp_size((int32_t)dtype);
}

static double load(Dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case F32:
    case F16:
    case BF16:
        return (double)gp_get_real(data, i, (int)dtype);
    case I32:
        return ((const int32_t *)data)[i];
    case I64:
        return (double)((const int64_t *)data)[i];
    case U8:
    case BOOL:
        return ((const uint8_t *)data)[i];
    default:
        assert(!"a dtype that no kernel knows");
        return 0;
    }
}

static void store(Dtype dtype, void *data, int64_t i, double x)
{
    switch (dtype) {
    case F32:
    case F16:
    case BF16:
        gp_set_real(data, i, (int)dtype, (gp_real)x);
        break;
    case I32:
        ((int32_t *)data)[i] = (int32_t)x;
        break;
    case I64:
        ((int64_t *)data)[i] = (int64_t)x;
        break;
    case U8:
    case BOOL:
        ((uint8_t *)data)[i] = (uint8_t)x;
        break;
    default:
        assert(!"a dtype that no kernel knows");
    }
}

/* Where element i (in the order of the dims) lies, from the view's base. */
static int64_t place_of(int rank, const int64_t *dim, const int64_t *stride, int64_t i)
{
    int64_t at = 0;
    for (int d = rank; d-- > 0; i /= dim[d])
        at += i % dim[d] * stride[d];
    return at;
}

/* ---- Runs ----------------------------------------------------------------------------------- */

Run *run_new(Arena *arena, const Graph *g)
{
    Run *run = ARENA_NEW(arena, Run);
    run->graph = g;
    run->failed = NONE;
    run->data = ARENA_ARRAY(arena, void *, g->value.count);
    for (size_t i = 0; i < g->value.count; i++) {
        const Value *value = &g->value.at[i];
        if (value->previous != NONE) { /* a version of state: the same bytes */
            run->data[i] = run->data[value->previous];
            continue;
        }
        size_t bytes = (size_t)value_count(value) * element_bytes((Dtype)value->dtype);
        run->data[i] = run_memory(bytes);
        assert(run->data[i]);
        memset(run->data[i], UNWRITTEN, bytes);
        if (value->kind == VALUE_LITERAL)
            store((Dtype)value->dtype, run->data[i], 0, value->literal);
    }
    return run;
}

void run_free(Run *run)
{
    for (size_t i = 0; i < run->graph->value.count; i++)
        if (run->graph->value.at[i].previous == NONE)
            run_memory_free(run->data[i]);
}

void run_write(Run *run, Id value, const Tensor *tensor)
{
    const Value *v = &run->graph->value.at[value];
    assert(v->dtype == tensor->dtype && value_count(v) == tensor->count);
    for (int64_t i = 0; i < tensor->count; i++)
        store((Dtype)v->dtype, run->data[value], i, tensor->at[i]);
}

Tensor run_read(const Run *run, Arena *arena, Use use)
{
    View view = use_view(run->graph, use);
    Dtype dtype = (Dtype)run->graph->value.at[use.value].dtype;
    Tensor t = tensor_new(arena, dtype, view.rank, view.dim);
    for (int64_t i = 0; i < t.count; i++)
        t.at[i] = load(dtype, run->data[use.value],
                       view.offset + place_of(view.rank, view.dim, view.stride, i));
    return t;
}

/* ---- One node ------------------------------------------------------------------------------- */

static gp_tensor tensor_of(const View *view, Dtype dtype, void *data)
{
    gp_tensor t = {.data = (char *)data + view->offset * (int64_t)element_bytes(dtype),
                   .dtype = (int32_t)dtype,
                   .rank = view->rank};
    memcpy(t.dim, view->dim, sizeof t.dim);
    memcpy(t.stride, view->stride, sizeof t.stride);
    return t;
}

static bool may_be_strided(const OpRow *op, Id output)
{
    return op->flags & OP_ELEMENTWISE || op->out_strided >> output & 1;
}

/* An output as a window of a larger buffer, with a gap after the elements of every axis. */
typedef struct {
    char *block;
    size_t bytes, element;
} Window;

static Window window_open(gp_tensor *t, size_t element)
{
    for (int d = t->rank; d-- > 0;)
        t->stride[d] = d == t->rank - 1 ? 2 : t->stride[d + 1] * (t->dim[d + 1] + 1);
    int64_t last = 1;
    for (int d = 0; d < t->rank; d++)
        last += (t->dim[d] - 1) * t->stride[d];
    Window w = {.bytes = (size_t)last * element, .element = element};
    w.block = run_memory(w.bytes);
    assert(w.block);
    memset(w.block, GUARD, w.bytes);
    t->data = w.block;
    return w;
}

/* Moves the elements to where the value lies. False where something else was written too. */
static bool window_close(Window *w, const gp_tensor *t, char *to)
{
    int64_t count = gp_count(t);
    for (int64_t i = 0; i < count; i++) {
        char *from = w->block + place_of(t->rank, t->dim, t->stride, i) * (int64_t)w->element;
        memcpy(to + i * (int64_t)w->element, from, w->element);
        memset(from, GUARD, w->element);
    }
    bool clean = true;
    for (size_t i = 0; i < w->bytes; i++)
        clean &= (unsigned char)w->block[i] == GUARD;
    run_memory_free(w->block);
    return clean;
}

/* Output 0 takes the bytes of the first operand that the row allows and that fits. The operand
 * is copied there, so that its own block stays as it is for other readers. */
static void share_bytes(const Run *run, const Node *n, gp_tensor *in, const gp_tensor *out)
{
    const Graph *g = run->graph;
    for (Id i = 0; i < n->uses; i++) {
        Use use = node_use(g, n, i);
        bool may = n->op->flags & OP_ELEMENTWISE || (i < 32 && n->op->inplace >> i & 1);
        if (!may || use.value == NONE || g->value.at[use.value].kind == VALUE_LITERAL)
            continue;
        View view = use_view(g, use);
        size_t element = element_bytes((Dtype)g->value.at[use.value].dtype);
        if (!view_is_dense(&view) || view_count(&view) != gp_count(out) ||
            element != element_bytes((Dtype)out->dtype))
            continue;
        memcpy(out->data, in[i].data, (size_t)view_count(&view) * element);
        for (Id k = 0; k < n->uses; k++)
            if (node_use(g, n, k).value == use.value && node_use(g, n, k).view == use.view)
                in[k].data = out->data;
        return;
    }
}

static uint64_t name_key(const char *name)
{
    uint64_t key = 0;
    for (; *name; name++)
        key = mix(key ^ (unsigned char)*name);
    return key;
}

static int call_kernel(Run *run, const Node *n, gp_call *call)
{
    const Graph *g = run->graph;
    const gp_kernel *kernel = runtime_kernel(n->op->name);
    if (!kernel) {
        run->wrong = arena_printf(g->arena, "%s has no kernel", n->op->name);
        return -1;
    }
    gp_setting setting[MAX_ARGS] = {{0}};
    for (Id i = 0; i < MAX_ARGS && n->op->args[i].name; i++) {
        const Attr *attr = &g->attr.at[n->attr + i];
        setting[i].number = attr->number;
        memcpy(setting[i].list, attr->list, sizeof setting[i].list);
    }
    size_t bytes = kernel->workspace ? kernel->workspace(call, setting) : 0;
    if (bytes && !(call->work = run_memory(bytes))) {
        run->wrong = "no memory for a workspace";
        return -1;
    }
    int status = kernel->run(call, setting);
    run_memory_free(call->work);
    return status;
}

static int run_node(Run *run, const Node *n, const RunOptions *options)
{
    const Graph *g = run->graph;
    gp_tensor *in = ARENA_ARRAY(g->arena, gp_tensor, n->uses + 1), out[MAX_OUTPUTS] = {{0}};
    Window window[MAX_OUTPUTS] = {{0}};
    for (Id i = 0; i < n->uses; i++) {
        Use use = node_use(g, n, i);
        if (use.value == NONE)
            continue;
        View view = use_view(g, use);
        in[i] = tensor_of(&view, (Dtype)g->value.at[use.value].dtype, run->data[use.value]);
    }
    for (Id i = 0; i < n->values; i++) {
        const Value *value = &g->value.at[node_value(n, i)];
        View view = value_view(value);
        out[i] = tensor_of(&view, (Dtype)value->dtype, run->data[node_value(n, i)]);
        if (options->strided_outputs && may_be_strided(n->op, i) && value->previous == NONE)
            window[i] = window_open(&out[i], element_bytes((Dtype)value->dtype));
    }
    if (options->in_place && !window[0].block)
        share_bytes(run, n, in, &out[0]);
    gp_run how = {.lr = options->lr != 0 ? options->lr : 0.1,
                  .seed = options->seed,
                  .step = options->step,
                  .threads = options->threads ? options->threads : 1};
    gp_call call = {.in = in,
                    .out = out,
                    .ins = (int32_t)n->uses,
                    .outs = (int32_t)n->values,
                    .key = name_key(n->stream),
                    .run = &how};
    int status = call_kernel(run, n, &call);
    for (Id i = 0; i < n->values; i++)
        if (window[i].block && !window_close(&window[i], &out[i], run->data[node_value(n, i)]) &&
            !run->wrong)
            run->wrong = arena_printf(g->arena, "%s wrote outside its output %u", n->name, i);
    return run->wrong ? -1 : status;
}

static int run_nodes(Run *run, const RunOptions *options)
{
    for (size_t i = 0; i < run->graph->node.count; i++) {
        int status = run_node(run, &run->graph->node.at[i], options);
        if (status != GP_OK) {
            run->failed = (Id)i;
            return status;
        }
    }
    return GP_OK;
}

int run_graph(Run *run, const RunOptions *options)
{
    static const char ORDER[] = "CUDA_ON_CPU_ORDER";
    const char *before = getenv(ORDER);
    char *kept = before ? strdup(before) : NULL;
    if (options->order)
        setenv(ORDER, options->order, 1);
    int status = run_nodes(run, options);
    if (options->order && kept)
        setenv(ORDER, kept, 1);
    else if (options->order)
        unsetenv(ORDER);
    free(kept);
    return status;
}
