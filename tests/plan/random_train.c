#include "tests/plan/random_train.h"
#include "tests/plan/random_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_INPUTS = 8, MAX_OPERANDS = 4, LOSSES = 12 };

typedef struct {
    Maker m;
    uint32_t times;
    Use input[MAX_INPUTS];
    int inputs;
} Training;

/* ---- Calls that chance alone would hardly get right ------------------------------------------ */

/* Operands: f (real), i (index) or b (bool) and the dims. Settings as numbers, words by their
 * place. */
typedef struct {
    const char *op, *operands, *settings;
} Recipe;

static const Recipe recipes[] = {
    {"conv2d", "f2x4x6x5", "channels=6 kernel=3 pad=1"},
    {"conv2d", "f2x4x6x5", "channels=4 kernel=3 groups=4"},
    {"conv_transpose2d", "f2x4x5x6", "channels=3 kernel=3 stride=2"},
    {"conv_transpose2d", "f2x4x3x3", "channels=2 kernel=3"},
    {"cross_entropy", "f6x8 i6", ""},
    {"cross_entropy", "f2x5x8 i2x5", "label_smoothing=0.1"},
    {"nll", "f6x8 i6", ""},
    {"mse", "f6x8 f6x8", ""},
    {"huber", "f6x8 f6x8", "delta=0.5"},
    {"bce_with_logits", "f6x8 f6x8", ""},
    {"dropout", "f6x8", "rate=0.3"},
    {"dropout", "f2x4x6x5", "rate=0.5"},
    {"batchnorm", "f2x4x6x5", ""},
    {"batchnorm", "f6x8", "over=1"},
    {"groupnorm", "f2x4x6x5", "groups=2"},
    {"instancenorm", "f2x4x6x5", ""},
    {"layernorm", "f2x5x8", ""},
    {"rmsnorm", "f2x5x8", ""},
    {"gelu", "f6x8", "form=0"},
    {"gelu", "f6x8", "form=1"},
    {"maximum", "f6x8 f6x8", ""},
    {"clip", "f6x8", "low=-0.5 high=0.5"},
    {"where", "b6x8 f6x8 f6x8", ""},
    {"minimum", "f6x8 f6x8", ""},
    {"gather", "f6x8 i5", "axis=0"},
    {"gather", "f2x5x8 i3", "axis=1"},
    {"scatter_add", "f6x8 i3 f3x8", ""},
    {"embedding", "i6", "count=7 size=8"},
    {"log_softmax", "f6x8", ""},
    {"softmax", "f2x5x8", "axis=1"},
    {"cumsum", "f6x8", "axis=0"},
    {"sum", "f2x5x8", "axis=1"},
    {"mean", "f2x5x8", "axis=0"},
    {"var", "f2x5x8", "axis=2"},
    {"prod", "f6x8", "axis=1"},
    {"max", "f6x8", "axis=1"},
    {"min", "f6x8", "axis=0"},
    {"pad", "f6x8", "before=1"},
    {"upsample2d", "f2x4x3x3", "scale=2"},
    {"upsample2d", "f2x4x3x3", "scale=2 mode=1"},
    {"pixel_shuffle", "f2x4x3x5", "factor=2"},
    {"maxpool2d", "f2x4x6x5", "kernel=2"},
    {"avgpool2d", "f2x4x6x5", "kernel=2"},
    {"global_avgpool", "f2x4x6x5", ""},
    {"global_maxpool", "f2x4x6x5", ""},
    {"attention", "f2x5x8", "heads=2 causal=1"},
    {"sdpa", "f1x2x4x4 f1x2x5x4 f1x2x5x4", ""},
    {"rope", "f2x5x8", ""},
};
enum { RECIPES = sizeof recipes / sizeof *recipes };

static int read_dims(const char *text, int64_t *dim)
{
    int rank = 0;
    for (char *end; *text && *text != ' '; text = *end == 'x' ? end + 1 : end)
        dim[rank++] = strtoll(text, &end, 10);
    return rank;
}

static int64_t count_of(int rank, const int64_t *dim)
{
    int64_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= dim[i];
    return count;
}

static Use reshape(Maker *m, Use use, int rank, const int64_t *dim)
{
    Call c = maker_begin(m, "reshape");
    call_use(m->g, &c, use);
    call_set_list(&c, "shape", rank, dim);
    return call_finish(m->g, &c) ? c.result.at[0] : (Use){NONE, NONE};
}

/* A persistent value of the name, made or found again. */
static Use persistent(Maker *m, ValueKind kind, const char *name, Dtype dtype, int rank,
                      const int64_t *dim)
{
    Id id = graph_find(m->g, name);
    return use_of(id == NONE ? graph_value(m->g, kind, name, dtype, rank, dim, (Span){0}) : id);
}

/* Some real value in these dims: a part of one that is large enough, else a parameter. */
static Use shaped(Maker *m, int rank, const int64_t *dim)
{
    int64_t need = count_of(rank, dim);
    for (int tries = 0; tries < 12; tries++) {
        Use use = maker_pick(m);
        View view = use_view(m->g, use);
        int64_t count = view_count(&view), first = 0;
        if (m->g->value.at[use.value].dtype != F32 || count < need)
            continue;
        use = reshape(m, use, 1, &count);
        if (use.value == NONE)
            continue;
        Call c = maker_begin(m, "slice");
        call_use(m->g, &c, use);
        call_set_list(&c, "start", 1, &first);
        call_set_list(&c, "stop", 1, &need);
        if (count > need && call_finish(m->g, &c))
            use = c.result.at[0];
        use = reshape(m, use, rank, dim);
        if (use.value != NONE)
            return use;
    }
    return persistent(m, VALUE_PARAM, arena_printf(m->g->arena, "p%d", m->calls++), F32, rank, dim);
}

static Use operand(Maker *m, const char *text)
{
    int64_t dim[MAX_RANK];
    int rank = read_dims(text + 1, dim);
    if (*text == 'f')
        return shaped(m, rank, dim);
    const char *name = arena_printf(m->g->arena, "%.*s", (int)strcspn(text, " "), text);
    return persistent(m, VALUE_INPUT, name, *text == 'i' ? I32 : BOOL, rank, dim);
}

static void set_all(Call *c, const char *text, Arena *arena)
{
    for (; *text; text += strspn(text, " ")) {
        size_t length = strcspn(text, "=");
        char *name = arena_copy(arena, text, length), *end;
        double number = strtod(text + length + 1, &end);
        int arg = op_arg(c->op, name);
        if (arg >= 0 && c->op->args[arg].kind == ARG_INTS)
            call_set_list(c, name, 1, (int64_t[]){(int64_t)number});
        else if (arg >= 0)
            call_set(c, name, number);
        text = end;
    }
}

static void follow(Maker *m, const Recipe *recipe)
{
    Use use[MAX_OPERANDS];
    int count = 0;
    for (const char *at = recipe->operands; *at; at += strcspn(at, " "), at += *at == ' ')
        use[count++] = operand(m, at);
    Call c = maker_begin(m, recipe->op);
    for (int i = 0; i < count; i++)
        call_use(m->g, &c, use[i]);
    set_all(&c, recipe->settings, m->g->arena);
    maker_finish(m, &c);
}

/* A product that nobody but a loss reads: it can run in chunks. */
static void linear_cross_entropy(Maker *m)
{
    Call from = {.name = arena_printf(m->g->arena, "n%d", m->calls++)};
    Use x = shaped(m, 2, (int64_t[]){6, 8});
    Use w = persistent(m, VALUE_PARAM, "head", F32, 2, (int64_t[]){8, 9});
    Use ids = operand(m, "i6");
    Use logits = call_op(m->g, &from, "matmul", 2, (Use[]){x, w});
    if (logits.value != NONE)
        maker_keep(m, call_op(m->g, &from, "cross_entropy", 2, (Use[]){logits, ids}));
}

/* ---- Inputs and parameters ------------------------------------------------------------------- */

static void add_input(Training *t, int i)
{
    static const struct {
        int rank;
        int64_t dim[4];
    } shapes[] = {{4, {2, 4, 6, 5}}, {2, {6, 8}}, {3, {2, 5, 8}}, {2, {8, 6}}, {4, {2, 4, 12, 10}}};
    Maker *m = &t->m;
    size_t k = random_below(&m->random, sizeof shapes / sizeof *shapes);
    const char *name = arena_printf(m->g->arena, "x%d", i);
    int64_t dim[4];
    memcpy(dim, shapes[k].dim, sizeof dim);
    if (i > 0 && random_chance(&m->random, 40)) {
        t->input[t->inputs++] = persistent(m, VALUE_PARAM, name, F32, shapes[k].rank, dim);
        return;
    }
    dim[0] *= t->times;
    Use whole = persistent(m, VALUE_INPUT, name, F32, shapes[k].rank, dim);
    t->input[t->inputs++] = whole;
    if (t->times == 1)
        return;
    Use part = persistent(m, VALUE_INPUT, arena_printf(m->g->arena, "%s/micro", name), F32,
                          shapes[k].rank, shapes[k].dim);
    m->g->value.at[part.value].whole = whole.value;
    t->input[t->inputs - 1] = part;
}

/* The same calls in each program, as far as their rules let them: random numbers begin anew. */
static void make_calls(Training *t, uint64_t seed)
{
    Maker *m = &t->m;
    m->random = random_new(seed + 1000003);
    m->count = m->calls = 0;
    for (int i = 0; i < t->inputs; i++)
        m->pool[m->count++] = t->input[i];
    int calls = 12 + (int)random_below(&m->random, 40);
    for (int i = 0; i < calls; i++) {
        uint64_t kind = random_below(&m->random, 100);
        if (kind < 45)
            follow(m, &recipes[random_below(&m->random, RECIPES)]);
        else if (kind < 50)
            linear_cross_entropy(m);
        else
            maker_call(m);
    }
}

/* ---- Programs -------------------------------------------------------------------------------- */

/* What a micro-batch makes of an output may be collected to that of all of them. */
static void collect(Training *t)
{
    Graph *g = t->m.g;
    for (size_t i = 0; i < g->output.count && t->times > 1; i++) {
        Output *output = &g->output.at[i];
        View view = use_view(g, output->use);
        if (view.rank == 0 || random_chance(&t->m.random, 30))
            continue;
        view.dim[0] *= t->times;
        Call c = call_begin(g, &(Call){.name = output->name}, "collect");
        call_use(g, &c,
                 use_of(graph_value(g, VALUE_OUTPUT, output->name,
                                    (Dtype)g->value.at[output->use.value].dtype, view.rank,
                                    view.dim, (Span){0})));
        call_use(g, &c, output->use);
        call_set(&c, "axis", 0);
        if (call_finish(g, &c))
            output->use = c.result.at[0];
    }
}

/* The sum of the means of many values, so that most of what was made is needed. */
static Use add_loss(Training *t)
{
    Maker *m = &t->m;
    Call at = {.name = "loss"};
    Use loss = {NONE, NONE};
    for (int i = 0; i < LOSSES; i++) {
        Use use = i < m->count ? m->pool[m->count - 1 - i] : maker_pick(m);
        if (m->g->value.at[use.value].dtype != F32)
            continue;
        Use part = call_op(m->g, &at, "mean", 1, &use);
        loss = loss.value == NONE ? part : call_op(m->g, &at, "add", 2, (Use[]){loss, part});
    }
    return loss;
}

static void set_train(Training *t, Use loss)
{
    static const char *const optimizers[] = {"sgd", "adam", "adamw", "rmsprop", "adagrad", "lion"};
    Graph *g = t->m.g;
    Random *r = &t->m.random;
    g->train = (Train){.present = true, .loss = loss, .lr = 0.01, .times = t->times};
    g->train.optimizer = optimizers[random_below(r, 6)];
    if (random_chance(r, 40))
        ARRAY_PUSH(g->arena, &g->train.setting,
                   (TrainSetting){.name = "clip", .value.number = 0.7});
    if (random_chance(r, 60))
        ARRAY_PUSH(g->arena, &g->train.setting,
                   (TrainSetting){.name = "momentum", .value.number = 0.9});
    if (random_chance(r, 30))
        ARRAY_PUSH(g->arena, &g->train.setting,
                   (TrainSetting){.name = "weight_decay", .value.number = 0.1});
}

Graph *random_training(Arena *arena, uint64_t seed)
{
    Training t = {.m = maker_new(arena, seed)};
    Graph *g = t.m.g;
    t.m.tame = true;
    t.times = 1 + (uint32_t)random_below(&t.m.random, 3);
    int inputs = 2 + (int)random_below(&t.m.random, 4);
    bool chunked_loss = random_chance(&t.m.random, 50);
    for (int i = 0; i < inputs; i++)
        add_input(&t, i);
    make_calls(&t, seed);
    maker_outputs(&t.m);
    collect(&t);
    Random after = t.m.random;
    graph_program(g, PROGRAM_STEP, true);
    make_calls(&t, seed);
    t.m.random = after;
    Use loss = add_loss(&t), *gradient;
    if (loss.value == NONE)
        return NULL;
    g->times[PROGRAM_FORWARD] = g->times[PROGRAM_STEP] = t.times;
    set_train(&t, loss);
    if (chunked_loss)
        chunk_losses(g);
    if (!gradients(g, loss, &gradient) || !updates(g, gradient))
        return NULL;
    ARRAY_PUSH(arena, &g->output, (Output){.use = loss, .name = "loss", .loss = true});
    return g;
}
