/* Compares emitted programs with the interpreter.
 *
 *     interpreter MODEL.g [-D NAME=N]... [--steps N] [--seed N] [--table] PROGRAM.so...
 *
 * The model is lowered for inference and for training, without gradients or updates: those are the
 * interpreter's own. Inputs and parameters are drawn here and written into each program, which then
 * runs forward, eval and steps. Compared are the outputs, both losses, the running statistics, and
 * for each parameter the state of its optimizer, which holds the gradient, and how it moved. An
 * error is a share of the largest number of its tensor, or of the largest change where the tensor
 * was there before, and is at most 1e-5. Probabilities are asked for what logits within 1e-5 of the
 * largest can make them: compare.c derives how much that is.
 *
 * What a tensor cannot resolve in float is measured: where an error is larger, the interpreter runs
 * once more in float (every result, every term of a product's sum, and the sums of batchnorm, in
 * pairs, are rounded), and an error of up to four times what that changes, and up to 2e-3, is
 * taken, and said: `coarse`. Deep models with batchnorm over few samples have such tensors. A
 * parameter is compared with what its optimizer's formula makes of the program's own state, which
 * was compared before: Adam's first step is the sign of the gradient, so that an element whose
 * gradient is all but 0 goes either way.
 */
#include "frontend/lower.h"
#include "tests/interpreter/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct {
    const char *path;
    Define define[16];
    size_t defines;
    int steps;
    uint64_t seed;
    bool table;
    char **subject;
} options = {.steps = 1, .seed = 1};

/* ---- The model ------------------------------------------------------------------------------- */

static Graph *lower_for(Arena *arena, Diag *diag, const Model *model, bool training)
{
    Graph *g = graph_new(arena, diag, model->source);
    graph_program(g, training ? PROGRAM_STEP : PROGRAM_FORWARD, training);
    if (!lower_into(g, model))
        exit(1);
    if (!g->train.present)
        stop("%s has no train statement", options.path);
    for (size_t i = 0; i < g->staged.count; i++) /* running statistics: each of its own here */
        if (!call_finish(g, g->staged.at[i]))
            exit(1);
    return g;
}

static bool is_given(const Value *value)
{
    return value->kind == VALUE_INPUT || value->kind == VALUE_PARAM || value->kind == VALUE_CONST ||
           value->kind == VALUE_STATE;
}

/* Numbers from -1 to 1. */
static double draw(uint64_t *seed)
{
    *seed += 0x9e3779b97f4a7c15u;
    uint64_t x = *seed;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (double)((x ^ x >> 31) >> 11) * 0x1p-52 - 1;
}

/* What an input of integers may be: less than the size of every table that it picks from. */
static int64_t index_limit(const Graph *g, Id value)
{
    int64_t limit = INT64_MAX;
    for (size_t n = 0; n < g->node.count; n++) {
        const Node *node = &g->node.at[n];
        if (node->uses < 2 || node_use(g, node, 1).value != value)
            continue;
        View from = use_view(g, node_use(g, node, 0));
        int axis = from.rank - 1;
        if (strcmp(node->op->name, "gather") == 0)
            axis = (int)node_attr(g, (Id)n, "axis")->list[0];
        limit = from.dim[axis] < limit ? from.dim[axis] : limit;
    }
    return limit;
}

/* Parameters are spread as they are at first, but no bias is 0 and no scale 1. */
static double draw_element(const Value *value, int64_t i, int64_t limit, uint64_t *seed)
{
    const Init *init = &value->init;
    double x = draw(seed);
    if (value->dtype == BOOL) /* one element of each row is true */
        return x > -0.6 || (value->rank && i % value->dim[value->rank - 1] == 0);
    if (value->dtype != F32)
        return floor((x + 1) / 2 * (double)limit);
    if (value->kind == VALUE_INPUT)
        return x;
    switch (init->kind) {
    case INIT_UNIFORM:
        return init->a + (x + 1) / 2 * (init->b - init->a);
    case INIT_NORMAL:
        return init->a + init->b * sqrt(3) * x;
    case INIT_LIST:
        return init->list[i];
    case INIT_ZEROS:
        return 0.1 * x;
    case INIT_ONES:
        return 1 + 0.25 * x;
    default:
        return init->a * (1 + 0.1 * x);
    }
}

static void draw_all(Machine *m)
{
    for (Id v = 0; v < m->g->value.count; v++) {
        const Value *value = &m->g->value.at[v];
        if (!is_given(value))
            continue;
        uint64_t seed = options.seed * 1000003 + v;
        int64_t limit = index_limit(m->g, v);
        m->value[v] = need_doubles(value_count(value));
        for (int64_t i = 0; i < value_count(value); i++)
            m->value[v][i] = (float)draw_element(value, i, limit, &seed);
    }
}

/* Running statistics that are near those of the batch: inference then sees activations of the same
 * size as training, neither saturated nor lost. */
static void draw_statistics(Machine *m)
{
    uint64_t seed = options.seed;
    for (Id n = 0; n < m->g->node.count; n++) {
        const Node *node = &m->g->node.at[n];
        if (strcmp(node->op->name, "running_stats") != 0)
            continue;
        Id value[4];
        for (Id i = 0; i < 4; i++)
            value[i] = node_use(m->g, node, i).value;
        for (int64_t c = 0; c < value_count(&m->g->value.at[value[0]]); c++) {
            double deviation = 1 / m->value[value[3]][c];
            m->value[value[0]][c] = (float)(m->value[value[2]][c] + 0.1 * draw(&seed) * deviation);
            m->value[value[1]][c] = (float)(deviation * deviation * (1 + 0.25 * draw(&seed)));
        }
        machine_node(m, n);
    }
}

static void copy_given(Machine *to, const Machine *from)
{
    for (Id v = 0; v < to->g->value.count; v++) {
        const Value *value = &to->g->value.at[v];
        Id other = is_given(value) ? graph_find(from->g, value->name) : NONE;
        if (other != NONE && from->value[other])
            machine_set(to, v, from->value[other]);
        else if (is_given(value))
            stop("%s is in one graph only", value->name);
    }
}

static double train_gradients(Machine *m)
{
    machine_backward(m, m->g->train.loss.value);
    machine_trim(m);
    return clip_gradients(m);
}

static Machine *rounded_machine(const Machine *like, bool backward, double *clip)
{
    Machine *m = machine_new(like->g);
    m->rounded = true;
    m->seed = like->seed;
    m->step = like->step;
    copy_given(m, like);
    machine_forward(m);
    if (backward)
        *clip = train_gradients(m);
    else
        machine_trim(m);
    return m;
}

static void round_model(Reference *model)
{
    if (model->rounded_infer)
        return;
    model->rounded_infer = rounded_machine(model->infer, false, NULL);
    model->rounded_train = rounded_machine(model->train, true, &model->rounded_clip);
}

/* ---- The run --------------------------------------------------------------------------------- */

static void run_step(Reference *model, uint64_t step)
{
    machine_drop(model->train);
    model->train->step = step;
    machine_forward(model->train);
    model->clip = train_gradients(model->train);
    if (model->rounded_train)
        machine_free(model->rounded_train);
    if (model->rounded_infer)
        machine_free(model->rounded_infer);
    model->rounded_train = model->rounded_infer = NULL;
}

/* Takes parameters and state from the program, so that each step is compared by itself. */
static void follow(Reference *model, const Subject *s, int step)
{
    Machine *m = model->train;
    for (Id v = 0; v < m->g->value.count; v++) {
        SubjectTensor t;
        size_t at;
        if (!is_given(&m->g->value.at[v]) || !subject_find(s, m->g->value.at[v].name, &t, &at))
            continue;
        double *now = subject_read(s, &t);
        machine_set(m, v, now);
        free(now);
    }
    run_step(model, (uint64_t)step);
}

static bool compare_subject(Reference *model, const char *path)
{
    Subject s = subject_load(path);
    bool good = true;
    if (model->train->step > 0) { /* of the program before */
        copy_given(model->train, model->infer);
        run_step(model, 0);
    }
    subject_infer(&s, model->infer);
    for (int step = 0; step < options.steps; step++) {
        if (step > 0)
            follow(model, &s, step);
        subject_train(&s);
        Verdict v = compare(&s, model, step, false, options.table);
        if (v.wrong) {
            round_model(model);
            v = compare(&s, model, step, true, options.table);
        }
        const char *file = strrchr(path, '/');
        printf("%s, step %d: %d tensors, %.1e at most (%s)", file ? file + 1 : path, step,
               v.compared, v.worst, v.where);
        if (v.coarse + v.wrong)
            printf("; %d coarse, %d WRONG, %.1e at most (%s)", v.coarse, v.wrong, v.coarsest,
                   v.coarse_where);
        printf("\n");
        good &= !v.wrong;
    }
    subject_free(&s);
    return good;
}

static void read_options(int argc, char **argv)
{
    int i = 1;
    options.path = argc > 1 ? argv[i++] : NULL;
    for (; i < argc && argv[i][0] == '-'; i++) {
        char *equals = i + 1 < argc ? strchr(argv[i + 1], '=') : NULL;
        if (strcmp(argv[i], "--table") == 0) {
            options.table = true;
        } else if (strcmp(argv[i], "--steps") == 0 && i + 1 < argc) {
            options.steps = atoi(argv[++i]);
        } else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
            options.seed = (uint64_t)atoll(argv[++i]);
        } else if (strcmp(argv[i], "-D") == 0 && equals && options.defines < 16) {
            *equals = 0;
            options.define[options.defines++] =
                (Define){.name = argv[++i], .value = atoll(equals + 1)};
        } else {
            stop("what is %s?", argv[i]);
        }
    }
    options.subject = argv + i;
    if (i >= argc)
        stop("usage: interpreter MODEL.g [-D NAME=N]... [--steps N] [--table] PROGRAM.so...");
}

int main(int argc, char **argv)
{
    read_options(argc, argv);
    Arena *arena = arena_new();
    Diag *diag = diag_new(arena, stderr, false);
    const Source *source = source_read(arena, diag, options.path, SOURCE_LIMIT);
    const Ast *ast = source ? parse(arena, diag, source) : NULL;
    if (!ast)
        return 1;
    const Model text = {
        .source = source, .ast = ast, .define = options.define, .defines = options.defines};
    Graph *infer = lower_for(arena, diag, &text, false);
    Graph *train = lower_for(arena, diag, &text, true);
    Reference model = {.infer = machine_new(infer), .train = machine_new(train)};
    model.train->seed = SEED;

    Decisions decisions;
    draw_all(model.train);
    machine_decide(model.train, &decisions);
    draw_statistics(model.train);
    model.clip = train_gradients(model.train);
    copy_given(model.infer, model.train);
    machine_forward(model.infer);
    machine_trim(model.infer);
    printf("loss %.6g, gradients times %.3g; %lld biases and %lld filters moved, kinks %.1e away"
           " (%s), %lld maxpools with near ties\n",
           *model.train->value[train->train.loss.value], model.clip, (long long)decisions.moved,
           (long long)decisions.redrawn, decisions.least, decisions.where,
           (long long)decisions.tied);

    bool good = true;
    for (char **subject = options.subject; *subject; subject++)
        good &= compare_subject(&model, *subject);
    machine_free(model.infer);
    machine_free(model.train);
    if (model.rounded_infer)
        machine_free(model.rounded_infer);
    if (model.rounded_train)
        machine_free(model.rounded_train);
    arena_free(arena);
    return good ? 0 : 1;
}
