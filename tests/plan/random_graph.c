#include "tests/plan/random_graph.h"

#include "runtime/runtime.h"

#include <stdio.h>
#include <string.h>

enum { MAX_ELEMENTS = 2048 };

Random random_new(uint64_t seed)
{
    return (Random){seed * 0x9e3779b97f4a7c15u + 1};
}

uint64_t random_below(Random *random, uint64_t n)
{
    random->state += 0x9e3779b97f4a7c15u;
    uint64_t x = random->state;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (x ^ x >> 31) % n;
}

bool random_chance(Random *random, int percent)
{
    return random_below(random, 100) < (uint64_t)percent;
}

static uint64_t below(Maker *m, uint64_t n)
{
    return random_below(&m->random, n);
}

static bool chance(Maker *m, int percent)
{
    return random_chance(&m->random, percent);
}

/* Recent values more often than old ones, so that graphs are deep as well as wide. */
Use maker_pick(Maker *m)
{
    uint64_t a = below(m, (uint64_t)m->count), b = below(m, (uint64_t)m->count);
    return m->pool[a > b ? a : b];
}

static bool is_real(const Maker *m, Use use)
{
    return m->g->value.at[use.value].dtype == F32;
}

void maker_keep(Maker *m, Use use)
{
    if (use.value == NONE || m->count == MAX_POOL)
        return;
    View view = use_view(m->g, use);
    if (view_count(&view) > MAX_ELEMENTS)
        return;
    if (m->tame && is_real(m, use) && chance(m, 30)) {
        Call from = {.name = arena_printf(m->g->arena, "n%d", m->calls++)};
        use = call_op(m->g, &from, "tanh", 1, &use);
    }
    m->pool[m->count++] = use;
}

Call maker_begin(Maker *m, const char *op)
{
    Call from = {.name = arena_printf(m->g->arena, "n%d", m->calls++)};
    Call c = call_begin(m->g, &from, op);
    c.name = from.name;
    return c;
}

/* The further outputs of a kernel are for its gradient. */
void maker_finish(Maker *m, Call *c)
{
    if (!call_finish(m->g, c))
        return;
    for (size_t i = 0; i < (c->op->build ? c->result.count : 1); i++)
        maker_keep(m, c->result.at[i]);
}

/* From 0.5 to 1.5, where the op has poles or grows without end. */
static Use tamed(Maker *m, const OpRow *op, Use use)
{
    static const char *const wild[] = {
        "log", "sqrt",   "rsqrt", "reciprocal", "div",  "pow",  "exp", "prod",      "square", "mul",
        "mod", "kl_div", "bce",   "elu",        "selu", "celu", "tan", "floor_div", "cumsum"};
    bool is = false;
    for (size_t i = 0; i < sizeof wild / sizeof *wild; i++)
        is |= strcmp(op->name, wild[i]) == 0;
    if (!m->tame || !is || !is_real(m, use))
        return use;
    Call from = {.name = arena_printf(m->g->arena, "n%d", m->calls++)};
    use = call_op(m->g, &from, "sigmoid", 1, &use);
    return call_op(m->g, &from, "add", 2, (Use[]){use, graph_literal(m->g, 0.5, F32)});
}

/* ---- Any row, with whatever comes ------------------------------------------------------------ */

static int words_count(const char *words)
{
    int count = 0;
    for (; *words; words++)
        count += *words != ' ' && (words[1] == ' ' || !words[1]);
    return count;
}

static void set_anything(Maker *m, Call *c, const Arg *arg, int rank)
{
    int64_t list[MAX_RANK];
    int count = arg->count == MAX_RANK ? 1 + (int)below(m, (uint64_t)(rank ? rank : 1)) : 1;
    for (int i = 0; i < count; i++)
        list[i] = (int64_t)below(m, 4);
    if (arg->kind == ARG_INTS)
        call_set_list(c, arg->name, count, list);
    else if (arg->kind == ARG_INT)
        call_set(c, arg->name, (double)below(m, 5));
    else if (arg->kind == ARG_BOOL)
        call_set(c, arg->name, (double)below(m, 2));
    else if (arg->kind == ARG_WORD)
        call_set(c, arg->name, (double)below(m, (uint64_t)words_count(arg->words)));
    else if (arg->kind == ARG_FLOAT)
        call_set(c, arg->name, (double)below(m, 8) / 8);
}

static bool must_set(const Arg *arg)
{
    return !arg->fallback || strcmp(arg->fallback, "none") == 0 || strcmp(arg->fallback, "0") == 0;
}

static void any_row(Maker *m, const OpRow *op)
{
    Call c = maker_begin(m, op->name);
    int rank = use_view(m->g, m->pool[0]).rank;
    for (int i = 0; i < MAX_ARGS && op->args[i].name; i++) {
        const Arg *arg = &op->args[i];
        if (arg->kind == ARG_TENSOR) {
            bool given = !(arg->flags & (ARG_OPTIONAL | ARG_PARAM)) || chance(m, 10);
            Use use = given ? tamed(m, op, maker_pick(m)) : (Use){NONE, NONE};
            call_use(m->g, &c, use);
            if (given)
                rank = use_view(m->g, use).rank;
        } else if (arg->kind != ARG_STRING && !(arg->flags & ARG_HIDDEN)) {
            if (chance(m, must_set(arg) ? 90 : 25))
                set_anything(m, &c, arg, rank);
        }
    }
    maker_finish(m, &c);
}

static const OpRow *row_with(Maker *m, uint32_t flags)
{
    for (int tries = 0; tries < 1000; tries++) {
        const OpRow *op = op_at((size_t)below(m, m->rows));
        if (!(op->flags & OP_HIDDEN) && (op->flags & flags) == flags)
            return op;
    }
    return op_find("relu");
}

/* ---- Shapes of call that matter to a planner --------------------------------------------------
 */

static bool same_but(const View *a, const View *b, int axis)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (i != axis && a->dim[i] != b->dim[i])
            return false;
    return true;
}

static void join(Maker *m)
{
    Use first = maker_pick(m);
    View view = use_view(m->g, first);
    if (view.rank == 0)
        return;
    int axis = (int)below(m, view.rank), count = 1;
    Call c = maker_begin(m, "concat");
    call_use(m->g, &c, first);
    for (int tries = 0; tries < 40 && count < 4; tries++) {
        Use use = maker_pick(m);
        View other = use_view(m->g, use);
        bool fits = same_but(&view, &other, axis) &&
                    m->g->value.at[use.value].dtype == m->g->value.at[first.value].dtype;
        if (!fits || chance(m, 30))
            continue;
        call_use(m->g, &c, use);
        count++;
    }
    call_set(&c, "axis", axis);
    maker_finish(m, &c);
}

static void look(Maker *m)
{
    static const char *const views[] = {"transpose", "slice",   "flip",   "flatten",
                                        "split",     "squeeze", "expand", "unsqueeze"};
    const char *op = views[below(m, sizeof views / sizeof *views)];
    Use use = maker_pick(m);
    View view = use_view(m->g, use);
    int64_t list[MAX_RANK] = {0}, stop[MAX_RANK];
    int axis = view.rank ? (int)below(m, view.rank) : 0;
    Call c = maker_begin(m, op);
    call_use(m->g, &c, use);
    if (strcmp(op, "slice") == 0) {
        for (int i = 0; i < view.rank; i++) {
            list[i] = (int64_t)below(m, (uint64_t)view.dim[i]);
            stop[i] = list[i] + 1 + (int64_t)below(m, (uint64_t)(view.dim[i] - list[i]));
        }
        call_set_list(&c, "start", view.rank, list);
        call_set_list(&c, "stop", view.rank, stop);
    } else if (strcmp(op, "split") == 0) {
        call_set_list(&c, "parts", 1, (int64_t[]){2});
        call_set(&c, "axis", axis);
    } else if (strcmp(op, "expand") == 0) {
        for (int i = 0; i < view.rank; i++)
            list[i] = view.dim[i] == 1 ? 3 : view.dim[i];
        call_set_list(&c, "shape", view.rank, list);
    } else if (strcmp(op, "flip") == 0 || strcmp(op, "unsqueeze") == 0) {
        call_set_list(&c, "axis", 1, (int64_t[]){axis});
    }
    maker_finish(m, &c);
}

static void layer(Maker *m)
{
    static const char *const layers[] = {"dense", "conv2d",    "batchnorm", "layernorm",
                                         "dense", "maxpool2d", "avgpool2d", "softmax"};
    const char *op = layers[below(m, sizeof layers / sizeof *layers)];
    Call c = maker_begin(m, op);
    call_use(m->g, &c, maker_pick(m));
    if (strcmp(op, "dense") == 0)
        call_set(&c, "units", (double)(1 + below(m, 8)));
    if (strcmp(op, "conv2d") == 0) {
        call_set(&c, "channels", (double)(1 + below(m, 6)));
        call_set_list(&c, "pad", 1, (int64_t[]){1});
    }
    if (strcmp(op, "conv2d") == 0 || strstr(op, "pool2d"))
        call_set_list(&c, "kernel", 1, (int64_t[]){strcmp(op, "conv2d") ? 2 : 3});
    maker_finish(m, &c);
}

/* ---- The graph ------------------------------------------------------------------------------- */

static void add_inputs(Maker *m)
{
    static const struct {
        Dtype dtype;
        int rank;
        int64_t dim[4];
    } shapes[] = {
        {F32, 4, {2, 4, 6, 5}}, {F32, 2, {6, 8}}, {F32, 3, {2, 5, 8}}, {F32, 2, {6, 5}},
        {I32, 2, {2, 3}},       {F32, 1, {8}},    {BOOL, 2, {6, 8}},   {F32, 4, {2, 1, 6, 5}},
    };
    int count = 2 + (int)below(m, 4);
    for (int i = 0; i < count; i++) {
        size_t k = i == 0 ? below(m, 4) : below(m, sizeof shapes / sizeof *shapes);
        const char *name = arena_printf(m->g->arena, "x%d", i);
        maker_keep(m, use_of(graph_value(m->g, VALUE_INPUT, name, shapes[k].dtype, shapes[k].rank,
                                         shapes[k].dim, (Span){0})));
    }
}

void maker_outputs(Maker *m)
{
    int count = 1 + (int)below(m, 3);
    for (int i = 0; i < count; i++) {
        Use use = maker_pick(m);
        Call from = {.name = arena_printf(m->g->arena, "out%d", i)};
        if (use.view != NONE || m->g->value.at[use.value].node == NONE)
            use = call_op(m->g, &from, "copy", 1, &use);
        for (size_t k = 0; k < m->g->output.count; k++)
            if (m->g->output.at[k].use.value == use.value)
                use.value = NONE;
        if (use.value != NONE)
            ARRAY_PUSH(m->g->arena, &m->g->output, (Output){.use = use, .name = from.name});
    }
}

/* Whichever table of kernels is linked. */
static bool has_half(const OpRow *op)
{
    const gp_kernel *kernel = runtime_kernel(op->name);
    return kernel && kernel->half;
}

Maker maker_new(Arena *arena, uint64_t seed)
{
    Source *source = ARENA_NEW(arena, Source);
    *source = (Source){.file = "random.g", .text = ""};
    Diag *diag = diag_new(arena, NULL, false); /* why rules refuse, nobody wants to know */
    diag_source(diag, source);
    Maker m = {.g = graph_new(arena, diag, source), .random = random_new(seed)};
    m.g->has_half = has_half;
    while (op_at(m.rows))
        m.rows++;
    return m;
}

void maker_call(Maker *m)
{
    uint64_t kind = below(m, 100);
    if (kind < 35)
        any_row(m, row_with(m, OP_ELEMENTWISE));
    else if (kind < 50)
        join(m);
    else if (kind < 62)
        look(m);
    else if (kind < 80)
        layer(m);
    else
        any_row(m, row_with(m, 0));
}

Graph *random_graph(Arena *arena, uint64_t seed)
{
    Maker m = maker_new(arena, seed);
    add_inputs(&m);
    int calls = 10 + (int)below(&m, 60);
    for (int i = 0; i < calls; i++)
        maker_call(&m);
    maker_outputs(&m);
    m.g->diag = NULL;
    return m.g;
}
