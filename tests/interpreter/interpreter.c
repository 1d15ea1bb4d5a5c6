/* Compares emitted programs with the interpreter.
 *
 *     interpreter MODEL.g [-D NAME=N]... [--steps N] [--seed N] [--table] PROGRAM.so...
 *
 * The model is lowered for inference and for training, without gradients or updates: those are the
 * interpreter's own. Inputs and parameters are drawn here and written into each program, which then
 * runs forward, eval and steps. Compared are the outputs, both losses, the running statistics, and
 * for each parameter the state of its optimizer, which holds the gradient, and how it moved. An
 * error is a share of the largest number of its tensor, or of the largest change where the tensor
 * was there before, and is at most 1e-5.
 *
 * What a tensor cannot resolve in float is measured: where an error is larger, the interpreter runs
 * once more with every result rounded to float, and an error of up to four times what that changes
 * is taken, and said. A parameter is compared with what its optimizer's formula makes of the
 * program's own state, which was compared before: Adam's first step is the sign of the gradient, so
 * that an element whose gradient is all but 0 goes either way. */
#include "tests/interpreter/interpreter.h"
#include "frontend/lower.h"
#include "tests/interpreter/subject.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double TOLERANCE = 1e-5, ULP = 0x1p-23;
enum { ROUNDED_TIMES = 4, SEED = 11 };

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

/* The same values in both graphs, and in those whose results are rounded. */
typedef struct {
    Machine *infer, *train, *rounded_infer, *rounded_train;
    double clip, rounded_clip; /* what clipping multiplies gradients by */
} Model;

static Graph *lower_for(Arena *arena, Diag *diag, const Source *source, const Ast *ast,
                        bool training)
{
    Graph *g = graph_new(arena, diag, source);
    graph_program(g, training ? PROGRAM_MICRO : PROGRAM_FORWARD, training);
    if (!lower_into(g, ast, options.define, options.defines))
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
    return m;
}

static void round_model(Model *model)
{
    if (model->rounded_infer)
        return;
    model->rounded_infer = rounded_machine(model->infer, false, NULL);
    model->rounded_train = rounded_machine(model->train, true, &model->rounded_clip);
}

/* ---- An emitted program ---------------------------------------------------------------------- */

typedef struct {
    const char *path;
    unsigned char *arena;
    double **before, **output; /* by tensor: state before the step; outputs after forward */
    size_t (*arena_bytes)(void);
    int (*begin)(void *arena, size_t bytes, uint64_t seed, int threads);
    int (*forward)(void);
    int (*eval)(float *loss);
    int (*step)(float *loss);
    const char *(*error)(int code);
    size_t (*tensor)(size_t i, SubjectTensor *to);
    size_t tensors;
    float eval_loss, step_loss;
} Subject;

static void must(const Subject *s, int code, const char *what)
{
    if (code)
        stop("%s: %s: %s", s->path, what, s->error(code));
}

static double element(const Subject *s, const SubjectTensor *t, int64_t i)
{
    const unsigned char *at = s->arena + t->offset;
    switch (t->dtype) {
    case F32:
        return ((const float *)(const void *)at)[i];
    case I32:
        return ((const int32_t *)(const void *)at)[i];
    case I64:
        return (double)((const int64_t *)(const void *)at)[i];
    default:
        return at[i];
    }
}

static int64_t elements(const SubjectTensor *t)
{
    return (int64_t)(t->bytes / dtype_size((Dtype)t->dtype));
}

static double *read_tensor(const Subject *s, const SubjectTensor *t)
{
    double *to = need_doubles(elements(t));
    for (int64_t i = 0; i < elements(t); i++)
        to[i] = element(s, t, i);
    return to;
}

static void write_tensor(const Subject *s, const SubjectTensor *t, const double *from)
{
    unsigned char *at = s->arena + t->offset;
    for (int64_t i = 0; i < elements(t); i++)
        if (t->dtype == F32)
            ((float *)(void *)at)[i] = (float)from[i];
        else if (t->dtype == I32)
            ((int32_t *)(void *)at)[i] = (int32_t)from[i];
        else if (t->dtype == I64)
            ((int64_t *)(void *)at)[i] = (int64_t)from[i];
        else
            at[i] = (unsigned char)from[i];
}

static bool find_tensor(const Subject *s, const char *name, SubjectTensor *t, size_t *at)
{
    for (*at = 0; *at < s->tensors; ++*at) {
        s->tensor(*at, t);
        if (strcmp(t->name, name) == 0)
            return true;
    }
    return false;
}

static SubjectTensor tensor_of(const Subject *s, const char *name, size_t *at)
{
    SubjectTensor t;
    if (!find_tensor(s, name, &t, at))
        stop("%s: there is no tensor %s", s->path, name);
    return t;
}

static void *symbol(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (!found)
        stop("%s", dlerror());
    return found;
}

static Subject subject_load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        stop("%s", dlerror());
    Subject s = {.path = path};
    *(void **)&s.arena_bytes = symbol(library, "subject_arena");
    *(void **)&s.begin = symbol(library, "subject_begin");
    *(void **)&s.forward = symbol(library, "subject_forward");
    *(void **)&s.eval = symbol(library, "subject_eval");
    *(void **)&s.step = symbol(library, "subject_step");
    *(void **)&s.error = symbol(library, "subject_error");
    *(void **)&s.tensor = symbol(library, "subject_tensor");
    SubjectTensor t;
    s.tensors = s.tensor(SIZE_MAX, &t);
    s.before = need_memory(s.tensors * sizeof *s.before);
    s.output = need_memory(s.tensors * sizeof *s.output);
    size_t bytes = (s.arena_bytes() + 63) / 64 * 64;
    s.arena = aligned_alloc(64, bytes);
    if (!s.arena)
        stop("no memory for an arena of %zu bytes", bytes);
    memset(s.arena, 0xff, bytes); /* NaN: what nobody wrote shows */
    must(&s, s.begin(s.arena, bytes, SEED, 2), "begin");
    return s;
}

static void subject_free(Subject *s)
{
    for (size_t i = 0; i < s->tensors; i++) {
        free(s->before[i]);
        free(s->output[i]);
    }
    free(s->before);
    free(s->output);
    free(s->arena);
}

/* Writes what the interpreter has, then runs forward and eval. */
static void subject_infer(Subject *s, const Machine *m)
{
    for (size_t i = 0; i < s->tensors; i++) {
        SubjectTensor t;
        s->tensor(i, &t);
        Id value = t.kind == SUBJECT_OUTPUT ? NONE : graph_find(m->g, t.name);
        if (value != NONE)
            write_tensor(s, &t, m->value[value]);
    }
    must(s, s->forward(), "forward");
    for (size_t i = 0; i < s->tensors; i++) {
        SubjectTensor t;
        s->tensor(i, &t);
        if (t.kind == SUBJECT_OUTPUT)
            s->output[i] = read_tensor(s, &t);
    }
    must(s, s->eval(&s->eval_loss), "eval");
}

static void subject_train(Subject *s)
{
    for (size_t i = 0; i < s->tensors; i++) {
        SubjectTensor t;
        s->tensor(i, &t);
        if (t.kind != SUBJECT_STATE && t.kind != SUBJECT_PARAM)
            continue;
        free(s->before[i]);
        s->before[i] = read_tensor(s, &t);
    }
    must(s, s->step(&s->step_loss), "step");
}

/* ---- Errors ---------------------------------------------------------------------------------- */

typedef struct {
    int compared, wrong, coarse; /* coarse: passed by what float can resolve */
    double worst, coarsest;
    char where[256], coarse_where[256];
    bool final; /* the rounded results are there */
} Verdict;

typedef struct {
    double error, rounded, scale; /* largest so far */
} Gap;

/* One element: what it should be, what it is, what it is with rounded results. `least`: what is
 * not an error, since the number itself has no more digits. */
static void gap_add(Gap *gap, double want, double is, double rounded, double size, double least)
{
    double error = fabs(is - want) - least;
    gap->error = !(error <= gap->error) ? error : gap->error; /* NaN stays */
    gap->rounded = fmax(gap->rounded, fabs(rounded - want));
    gap->scale = fmax(gap->scale, fabs(size));
}

static void judge(Verdict *v, const char *name, const char *part, Gap gap)
{
    double error = gap.error <= 0 ? 0 : gap.error / gap.scale;
    double limit = v->final ? ROUNDED_TIMES * gap.rounded / gap.scale : 0;
    bool good = error <= TOLERANCE, coarse = !good && error <= limit;
    v->compared++;
    v->wrong += !good && !coarse;
    v->coarse += coarse;
    if (options.table || (!good && v->final))
        printf("  %-60s %9.2e%s\n", name, error,
               good     ? ""
               : coarse ? "  (float resolves no more)"
                        : "  WRONG");
    if (good && error >= v->worst) {
        v->worst = error;
        snprintf(v->where, sizeof v->where, "%s%s", name, part);
    }
    if (!good && !(error <= v->coarsest)) {
        v->coarsest = error;
        snprintf(v->coarse_where, sizeof v->coarse_where, "%s%s", name, part);
    }
}

static void compare_loss(const Machine *m, const Machine *rounded, float loss, const char *name,
                         Verdict *v)
{
    Id value = m->g->train.loss.value;
    double want = *m->value[value];
    Gap gap = {0};
    gap_add(&gap, want, loss, rounded ? *rounded->value[value] : want, want, 0);
    judge(v, name, "", gap);
}

static void compare_outputs(const Subject *s, const Machine *m, const Machine *rounded, Verdict *v)
{
    for (size_t i = 0; i < m->g->output.count; i++) {
        const Output *output = &m->g->output.at[i];
        size_t at;
        SubjectTensor t = tensor_of(s, output->name, &at);
        double *want = machine_read(m, output->use);
        double *coarse = machine_read(rounded ? rounded : m, output->use);
        Gap gap = {0};
        for (int64_t k = 0; k < elements(&t); k++)
            gap_add(&gap, want[k], s->output[at][k], coarse[k], want[k], 0);
        judge(v, output->name, "", gap);
        free(want);
        free(coarse);
    }
}

/* Running statistics, by the share that the batch has in them. */
static void compare_statistics(const Subject *s, const Machine *m, const Machine *rounded,
                               Verdict *v)
{
    for (Id n = 0; n < m->g->node.count; n++) {
        const Node *node = &m->g->node.at[n];
        for (Id k = 0; k < 2 && strcmp(node->op->name, "running_stats") == 0; k++) {
            const char *name = m->g->value.at[node_use(m->g, node, k).value].name;
            size_t at;
            SubjectTensor t = tensor_of(s, name, &at);
            const double *want = m->value[node_value(node, k)];
            const double *coarse = (rounded ? rounded : m)->value[node_value(node, k)];
            double kept = 1 - node_attr(m->g, n, "momentum")->number;
            Gap gap = {0};
            for (int64_t i = 0; i < elements(&t); i++)
                gap_add(&gap, want[i], element(s, &t, i), coarse[i],
                        want[i] - kept * s->before[at][i], ULP * fabs(want[i]));
            judge(v, name, "", gap);
        }
    }
}

/* The largest gradient of all: what one that is 0 by symmetry is measured by. */
static double largest_gradient(const Machine *m)
{
    double most = 0;
    for (Id p = 0; p < m->g->value.count; p++)
        for (int64_t i = 0; m->gradient[p] && i < value_count(&m->g->value.at[p]); i++)
            most = fmax(most, fabs(m->gradient[p][i]));
    return most;
}

typedef struct {
    const Subject *s;
    const Model *model;
    Optimizer optimizer;
    Id parameter;
    const double *w; /* before */
    SubjectTensor tensor, state[MAX_STATES];
    const double *before[MAX_STATES];
    double floor; /* of a gradient's size */
} Update;

/* The gradient of a key's bias is 0 whatever the model: all scores of a query move alike. */
static double gradient_floor(const Machine *m, Id parameter, double most)
{
    double here = 0;
    for (int64_t i = 0; i < value_count(&m->g->value.at[parameter]); i++)
        here = fmax(here, fabs(m->gradient[parameter][i]));
    return here < 1e-9 * most ? most : 0;
}

static void state_after(const Update *u, const Machine *m, double clip, int64_t i, double w,
                        double *after)
{
    double before[MAX_STATES] = {0};
    for (int k = 0; k < MAX_STATES; k++)
        before[k] = u->before[k] ? u->before[k][i] : 0;
    optimizer_state(&u->optimizer, w, clip * m->gradient[u->parameter][i], before, after);
}

static void compare_state(const Update *u, int k, Verdict *v)
{
    const Model *model = u->model;
    Gap gap = {0};
    double least[MAX_STATES] = {0};
    optimizer_state(&u->optimizer, 0, u->floor, (double[MAX_STATES]){0}, least);
    gap.scale = least[k];
    for (int64_t i = 0; i < elements(&u->tensor); i++) {
        double want[MAX_STATES], coarse[MAX_STATES] = {0}, alone[MAX_STATES];
        state_after(u, model->train, model->clip, i, u->w[i], want);
        state_after(u, model->train, model->clip, i, 0, alone); /* without the decay of weights */
        memcpy(coarse, want, sizeof want);
        if (model->rounded_train)
            state_after(u, model->rounded_train, model->rounded_clip, i, u->w[i], coarse);
        gap_add(&gap, want[k], element(u->s, &u->state[k], i), coarse[k],
                alone[k] - u->before[k][i], ULP * fabs(want[k]));
    }
    judge(v, u->state[k].name, "", gap);
}

static void compare_parameter(const Update *u, Verdict *v)
{
    const Model *model = u->model;
    Gap gap = {0};
    bool stateless = !u->optimizer.state[0];
    for (int64_t i = 0; i < elements(&u->tensor); i++) {
        double before[MAX_STATES] = {0}, after[MAX_STATES] = {0};
        for (int k = 0; k < MAX_STATES; k++)
            if (u->optimizer.state[k]) {
                before[k] = u->before[k][i];
                after[k] = element(u->s, &u->state[k], i);
            }
        double g = model->clip * model->train->gradient[u->parameter][i];
        double want =
            optimizer_parameter(&u->optimizer, u->w[i], g, before, after, model->train->step);
        double coarse = want;
        if (stateless && model->rounded_train)
            coarse = optimizer_parameter(&u->optimizer, u->w[i],
                                         model->rounded_clip *
                                             model->rounded_train->gradient[u->parameter][i],
                                         before, after, model->train->step);
        /* two roundings: of what is subtracted from, and of the result */
        gap_add(&gap, want, element(u->s, &u->tensor, i), coarse, want - u->w[i],
                2 * ULP * fmax(fabs(want), fabs(u->w[i])));
    }
    judge(v, u->tensor.name, " (update)", gap);
}

static void compare_updates(const Subject *s, const Model *model, Verdict *v)
{
    const Machine *m = model->train;
    double most = largest_gradient(m);
    for (Id p = 0; p < m->g->value.count; p++) {
        const Value *value = &m->g->value.at[p];
        size_t at;
        if (value->kind != VALUE_PARAM)
            continue;
        if (!m->gradient[p] && m->wanted[p])
            continue; /* nothing that counts reads it */
        Update u = {.s = s, .model = model, .parameter = p};
        u.tensor = tensor_of(s, value->name, &at);
        u.w = s->before[at];
        if (!m->wanted[p]) { /* frozen */
            Gap gap = {.scale = 1};
            for (int64_t i = 0; i < elements(&u.tensor); i++)
                gap_add(&gap, u.w[i], element(s, &u.tensor, i), u.w[i], 0, 0);
            judge(v, value->name, "", gap);
            continue;
        }
        u.optimizer = optimizer_of(m->g, value->name);
        u.floor = model->clip * gradient_floor(m, p, most);
        for (int k = 0; k < MAX_STATES && u.optimizer.state[k]; k++) {
            char name[512];
            snprintf(name, sizeof name, "%s.%s.%s", value->name, u.optimizer.name,
                     u.optimizer.state[k]);
            u.state[k] = tensor_of(s, name, &at);
            u.before[k] = s->before[at];
        }
        for (int k = 0; k < MAX_STATES && u.optimizer.state[k]; k++)
            compare_state(&u, k, v);
        compare_parameter(&u, v);
    }
}

static Verdict compare(const Subject *s, const Model *model, int step, bool final)
{
    Verdict v = {.final = final};
    if (step == 0) {
        compare_outputs(s, model->infer, model->rounded_infer, &v);
        compare_loss(model->infer, model->rounded_infer, s->eval_loss, "loss of eval", &v);
    }
    compare_loss(model->train, model->rounded_train, s->step_loss, "loss of step", &v);
    compare_statistics(s, model->train, model->rounded_train, &v);
    compare_updates(s, model, &v);
    return v;
}

/* ---- The run --------------------------------------------------------------------------------- */

static void run_step(Model *model, uint64_t step)
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
static void follow(Model *model, const Subject *s, int step)
{
    Machine *m = model->train;
    for (Id v = 0; v < m->g->value.count; v++) {
        SubjectTensor t;
        size_t at;
        if (!is_given(&m->g->value.at[v]) || !find_tensor(s, m->g->value.at[v].name, &t, &at))
            continue;
        double *now = read_tensor(s, &t);
        machine_set(m, v, now);
        free(now);
    }
    run_step(model, (uint64_t)step);
}

static bool compare_subject(Model *model, const char *path)
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
        Verdict v = compare(&s, model, step, false);
        if (v.wrong) {
            round_model(model);
            v = compare(&s, model, step, true);
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
    Graph *infer = lower_for(arena, diag, source, ast, false);
    Graph *train = lower_for(arena, diag, source, ast, true);
    Model model = {.infer = machine_new(infer), .train = machine_new(train)};
    model.train->seed = SEED;

    Decisions decisions;
    draw_all(model.train);
    machine_decide(model.train, &decisions);
    draw_statistics(model.train);
    model.clip = train_gradients(model.train);
    copy_given(model.infer, model.train);
    machine_forward(model.infer);
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
