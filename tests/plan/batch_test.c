/* The batch put onto every axis of every operand of every op, by transposes and reshapes.
 *
 * Each is a small model that trains. Where micro-batches are accepted, a step in two of them must
 * leave the parameters of a step at once, and the same loss, up to rounding. Which are accepted is
 * listed with each op, so that what forbids everything fails as well. */
#include "tests/plan/run_step.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OPERANDS = 4, MAX_TEXT = 2048, MAX_ACCEPTED = 512 };

/* Operands: f (real), i (index) or b (bool) and the dims, all even. Accepted: for each operand the
 * axis that the batch is on, - for one without; f: the axis holds it twice, as [2, B] joined; r: it
 * was brought there by a reshape, that reads samples in another order but where they stand first.
 * What is not listed is refused. */
typedef struct {
    const char *op, *operands, *settings, *accepted;
} Recipe;

#define ONE_ACCEPTS "0 1 f1 r0"
#define TWO_ACCEPTS "00 11 f11 r00"
#define ONE(name)                     \
    {                                 \
        name, "f4x8", "", ONE_ACCEPTS \
    }
#define TWO(name)                          \
    {                                      \
        name, "f4x8 f4x8", "", TWO_ACCEPTS \
    }

static const Recipe recipes[] = {
    ONE("relu"),
    ONE("leaky_relu"),
    ONE("elu"),
    ONE("selu"),
    ONE("celu"),
    ONE("gelu"),
    ONE("silu"),
    ONE("sigmoid"),
    ONE("tanh"),
    ONE("softplus"),
    ONE("softsign"),
    ONE("hardsigmoid"),
    ONE("hardswish"),
    ONE("mish"),
    ONE("abs"),
    ONE("square"),
    ONE("sign"),
    ONE("exp"),
    ONE("log"),
    ONE("sqrt"),
    ONE("rsqrt"),
    ONE("reciprocal"),
    ONE("floor"),
    ONE("ceil"),
    ONE("round"),
    ONE("sin"),
    ONE("cos"),
    ONE("tan"),
    ONE("asin"),
    ONE("acos"),
    ONE("atan"),
    ONE("erf"),
    ONE("sinh"),
    ONE("cosh"),
    ONE("asinh"),
    ONE("acosh"),
    ONE("atanh"),
    ONE("trunc"),
    ONE("isnan"),
    ONE("isinf"),
    ONE("neg"),
    ONE("stop_gradient"),
    ONE("dropout"),
    TWO("add"),
    TWO("sub"),
    TWO("mul"),
    TWO("div"),
    TWO("pow"),
    TWO("mod"),
    TWO("fmod"),
    TWO("minimum"),
    TWO("maximum"),
    TWO("equal"),
    TWO("not_equal"),
    TWO("less"),
    TWO("less_equal"),
    TWO("greater"),
    TWO("greater_equal"),
    {"cast", "f4x8", "i32", "0 1 f1 r0"},
    {"clip", "f4x8", "low = -0.5, high = 0.5", "0 1 f1 r0"},
    {"and", "b4x8 b4x8", "", "00 11 f11 r00"},
    {"or", "b4x8 b4x8", "", "00 11 f11 r00"},
    {"intdiv", "i4x8 i4x8", "", "00 11 f11 r00"},
    {"bit_and", "i4x8 i4x8", "", "00 11 f11 r00"},
    {"bit_or", "i4x8 i4x8", "", "00 11 f11 r00"},
    {"bit_xor", "i4x8 i4x8", "", "00 11 f11 r00"},
    {"bit_not", "i4x8", "", "0 1 f1 r0"},
    {"shift_left", "i4x8 i4x8", "", "00 11 f11 r00"},
    {"shift_right", "i4x8 i4x8", "", "00 11 f11 r00"},
    {"xor", "b4x8 b4x8", "", "00 11 f11 r00"},
    {"not", "b4x8", "", "0 1 f1 r0"},
    {"where", "b4x8 f4x8 f4x8", "", "000 111 f111 r000"},
    {"prelu", "f4x8", "", "0 r0"},
    {"prelu", "f4x8 f8", "", "0- 10 f10 r0-"},
    {"gelu", "f4x8", "form = tanh", "0 1 f1 r0"},
    {"add", "f4x8 f8", "", "0- 10 f10 r0-"},
    {"mul", "f4x8 f2x4x8", "", "-0 01 12 f12 r-0"},
    {"reshape", "f4x2x6", "[B, 12]", "0 r0"},
    {"reshape", "f4x2x6", "[-1]", "0 r0 r1 r2"},
    {"reshape", "f4x2x6", "[6, 8]", ""},
    {"flatten", "f4x2x6", "", "0 r0"},
    {"transpose", "f4x2x6", "[2, 0, 1]", "0 1 2 r0"},
    {"squeeze", "f4x8", "axis=[]", "0 1 f1 r0"},
    {"unsqueeze", "f4x8", "[1]", "0 1 f1 r0"},
    {"expand", "f4x8", "[2, 4, 8]", ""},
    {"expand", "f4x8", "[2, -1, -1]", "0 1 f1 r0"},
    {"expand", "f4x8", "[B, -1, -1]", ""},
    {"slice", "f4x8", "stop = [2, 8]", ""},
    {"slice", "f4x8", "stop = [4, 8], step = [1, 2]", ""},
    {"slice", "f4x8", "start = [0, 4]", "0 r0"},
    {"flip", "f4x8", "axis = 1", "0 r0"},
    {"flip", "f4x8", "axis = 0", "1 f1"},
    {"tile", "f4x8", "[1, 3]", "0 r0"},
    {"tile", "f4x8", "[3, 1]", "1 f1"},
    {"concat", "f4x8 f4x8", "axis = 0", "11 f11"},
    {"concat", "f4x8 f4x8", "axis = 1", "00 r00"},
    {"stack", "f4x8 f4x8", "axis = 1", "00 11 f11 r00"},
    {"pad", "f4x8", "before = [0, 2]", "0 r0"},
    {"gather", "f4x8 i4", "axis = 0", "-0 1- f1- r-0"},
    {"gather", "f2x4x8 i6", "axis = 1", "-0 0- 2- f2- r-0 r0-"},
    {"embedding", "i4x2", "count = 7, size = 4", "0 r0"},
    {"embedding", "i4 f8x6", "", "-1 0- r0-"},
    {"one_hot", "i4x2", "depth = 4", "0 r0"},
    {"scatter_add", "f4x8 i4 f4x8", "", "1-1 f1-1"},
    {"scatter_add", "f4x8 i2x4 f2x4x8", "", "1-2 f1-2"},
    {"gather_elements", "f4x8 i4x2", "axis = 1", "00 r00"},
    {"gather_elements", "f4x8 i2x8", "axis = 0", "11 f11"},
    {"gather_nd", "f4x8 i6x1", "", "-0 1- f1- r-0"},
    {"gather_nd", "f4x2x8 i4x6x1", "batch_dims = 1", "2- f2-"},
    {"scatter", "f4x8 i4x2 f4x2", "axis = 1", "000 r000"},
    {"scatter", "f4x8 i2x8 f2x8", "reduction = add, axis = 0", "111 f111"},
    {"scatter_nd", "f4x8 i2x1 f2x8", "", "1-1 f1-1"},
    {"topk", "f4x8", "2", "0 r0"},
    {"topk", "f4x8", "2, axis = 0", "1 f1"},
    {"arange", "", "4", ""},
    {"random_normal", "", "[4, 8]", ""},
    {"random_uniform", "", "[4, 8]", ""},
    {"add", "f4x8", "arange(8, dtype = f32)", "0 r0"},
    {"add", "f4x8", "random_normal([B, 8])", "0 r0"},
    {"add", "f4x8", "random_uniform([B, 8])", "0 r0"},
    {"sum", "f4x2x8", "axis = 1", "0 2 f2 r0"},
    {"sum", "f4x8", "", ""},
    {"mean", "f4x2x8", "axis = [0, 2]", "1"},
    {"mean", "f4x8", "", ""},
    {"prod", "f4x8", "axis = 1", "0 r0"},
    {"max", "f4x8", "axis = 1", "0 r0"},
    {"min", "f4x8", "axis = 0, keepdims = true", "1 f1"},
    {"var", "f4x8", "axis = 1", "0 r0"},
    {"argmax", "f4x8", "axis = 1", "0 r0"},
    {"argmin", "f4x8", "axis = 1", "0 r0"},
    {"cumsum", "f4x8", "axis = 1, exclusive = true, reverse = true", "0 r0"},
    {"cumsum", "f4x8", "axis = 0", "1 f1"},
    {"softmax", "f4x8", "", "0 r0"},
    {"softmax", "f4x2x8", "axis = 1", "0 2 f2 r0"},
    {"log_softmax", "f4x8", "", "0 r0"},
    {"matmul", "f4x8 f8x4", "", "-1 0- r0-"},
    {"matmul", "f4x8 f8", "", "0- r0-"},
    {"matmul", "f8 f8x4", "", "-1"},
    {"matmul", "f4x2x8 f8x6", "", "-1 0- 1- r0-"},
    {"matmul", "f4x2x8 f4x8x6", "", "-2 00 1- r00"},
    {"dense", "f4x8", "units = 6", "0 r0"},
    {"dense", "f4x8 f8x6 f6", "", "-10 0-- r0--"},
    {"conv2d", "f4x2x6x8", "channels = 4, kernel = 3, pad = same", "0 r0"},
    {"conv2d", "f4x4x6x8 f4x2x1x1", "groups = 2", "0- r0-"},
    {"conv1d", "f4x2x8", "channels = 4, kernel = 3, pad = same", "0 r0"},
    {"conv_transpose2d", "f4x4x4x6", "channels = 2, kernel = 3, stride = 2", "0 r0"},
    {"conv2d", "f4x4x4x6 f4x4x3x3 f4", "pad = same", "0-- r0--"},
    {"conv3d", "f4x2x4x6x2", "channels = 4, kernel = 3, pad = same", "0 r0"},
    {"conv_transpose3d", "f4x4x2x4x6", "channels = 2, kernel = 2, stride = 2", "0 r0"},
    {"maxpool3d", "f4x4x2x8x6", "2", "0 1 r0"},
    {"avgpool3d", "f4x2x4x8x6", "kernel = 3, stride = 1, pad = 1", "0 r0"},
    {"maxpool2d_indices", "f4x4x8x6", "2", "0 1 r0"},
    {"maxpool2d", "f4x4x8x6", "2", "0 1 r0"},
    {"avgpool2d", "f4x2x8x6", "kernel = 3, stride = 1, pad = 1", "0 1 r0"},
    {"global_avgpool", "f4x8x4x6", "", "0 1 f1 r0"},
    {"global_maxpool", "f4x8x4x6", "", "0 1 f1 r0"},
    {"upsample2d", "f4x2x4x6", "scale = 2", "0 1 r0"},
    {"upsample2d", "f4x2x4x6", "scale = 2, mode = bilinear", "0 1 r0"},
    {"resize", "f4x2x6x2", "scale = 2, mode = linear", "0 r0"},
    {"resize", "f4x2x6x2", "scale = 0.5, axis = [1, 2]", "0 r0"},
    {"grid_sample", "f4x2x6x8 f4x6x8x2", "", "00 r00"},
    {"pixel_shuffle", "f4x8x2x6", "factor = 2", "0 1 2 3 r0"},
    {"layernorm", "f4x2x8", "", "0 r0"},
    {"layernorm", "f4x8x2", "axes = 2", "0 r0"},
    {"rmsnorm", "f4x8", "", "0 r0"},
    {"groupnorm", "f4x4x6", "groups = 2", "0 r0"},
    {"instancenorm", "f4x4x6", "", "0 r0"},
    {"batchnorm", "f4x4x6", "", ""},
    {"attention", "f4x6x8", "heads = 2", "0 r0"},
    {"attention", "f4x6x8 f4x2x8", "heads = 2, causal = false", "00 r00"},
    {"sdpa", "f4x4x6x2 f4x4x6x2 f4x4x6x2", "", "000 r000"},
    {"sdpa", "f4x4x6x2 f4x2x6x2 f4x2x6x2", "causal = true", "000 r000"},
    {"sdpa", "f4x2x6x2 f4x2x6x2 f4x2x6x2 b4x1x1x6", "", "0000 r0000"},
    {"rope", "f4x2x6x8", "", "0 1 r0"},
    {"cross_entropy", "f4x8 i4", "reduction = none", "00 r00"},
    {"cross_entropy", "f4x8 i4", "", "00 r00"},
    {"cross_entropy", "f4x2x8 i4x2", "", "00 r00"},
    {"nll", "f4x8 i4", "", "00 r00"},
    {"mse", "f4x8 f4x8", "", "00 r00"},
    {"l1", "f4x8 f4x8", "", "00 r00"},
    {"huber", "f4x8 f4x8", "", "00 r00"},
    {"bce", "f4x8 f4x8", "", "00 r00"},
    {"bce_with_logits", "f4x8 f4x8", "", "00 r00"},
    {"kl_div", "f4x8 f4x8", "", "00 r00"},
    {"mse", "f4x8 f4x8", "reduction = sum", ""},
    {"matmul", "f8x6 f6x4", "", "-1 0- f0- r0-"},
    {"slice", "f4x8", "step = [1, 2]", "0 1 r0"},
    {"attention", "f1x8x6", "heads = 2", ""},
    {"conv2d", "f1x1x8x6", "channels = 1, kernel = 3, pad = same", ""},
    {"rope", "f1x1x8x6", "", ""},
    {"split", "f4x8", "parts = 2", "0 f1 r0"},
    {"softmax", "f8x2", "axis = 0", ""},
    {"layernorm", "f8x6", "", "0 f0 r0"},
    {0},
};

/* ---- A model with the batch somewhere -------------------------------------------------------- */

typedef enum { MOVED, JOINED, RESHAPED, LAYOUTS } Layout;

typedef struct {
    char dtype;
    int rank, axis; /* axis of the batch; -1: none */
    int dim[MAX_RANK];
} Operand;

typedef struct {
    const Recipe *recipe;
    Layout layout;
    int batch;
    Operand operand[MAX_OPERANDS];
    int operands;
} Mix;

/* Text that grows; what does not fit is a mistake of the table. */
typedef struct {
    char at[MAX_TEXT];
    size_t length;
} Text;

static void say(Text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(Text *t, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    t->length += (size_t)vsnprintf(t->at + t->length, sizeof t->at - t->length, format, list);
    va_end(list);
    cr_assert(t->length < sizeof t->at);
}

static const char *dtype_text(char dtype)
{
    return dtype == 'f' ? "f32" : dtype == 'i' ? "i32" : "bool";
}

/* The dims in order; B, or 2 and B, where the batch is. */
static void say_dims(Text *t, const Mix *m, const Operand *o, bool joined)
{
    for (int i = 0; i < o->rank; i++) {
        say(t, "%s", i ? ", " : "");
        if (i != o->axis)
            say(t, "%d", o->dim[i]);
        else
            say(t, m->layout == JOINED ? joined ? "2*B" : "2, B" : "B");
    }
}

static void declare(Text *t, const Mix *m, int i)
{
    const Operand *o = &m->operand[i];
    if (o->axis < 0) {
        say(t, "%s x%d : %s[", o->dtype == 'f' ? "param" : "input", i, dtype_text(o->dtype));
        say_dims(t, m, o, true);
        say(t, "]\n");
        return;
    }
    say(t, "input b%d : %s[B", i, dtype_text(o->dtype));
    if (m->layout == JOINED)
        say(t, ", 2");
    for (int k = 0; k < o->rank; k++)
        if (k != o->axis)
            say(t, ", %d", o->dim[k]);
    say(t, "]\n");
    const char *scaled = o->dtype == 'f' ? " * s" : "";
    say(t, "x%d = ", i);
    if (m->layout != MOVED)
        say(t, "reshape(");
    if (m->layout == RESHAPED) {
        say(t, "b%d%s", i, scaled);
    } else { /* B, then 2 where joined, then the other axes in order */
        int first = m->layout == JOINED ? 2 : 1;
        say(t, "transpose(b%d%s, [", i, scaled);
        for (int k = 0; k < o->rank; k++)
            if (k == o->axis)
                say(t, "%s%s", k ? ", " : "", first == 2 ? "1, 0" : "0");
            else
                say(t, "%s%d", k ? ", " : "", first + k - (k > o->axis));
        say(t, "])");
    }
    if (m->layout != MOVED) {
        say(t, ", [");
        say_dims(t, m, o, true);
        say(t, "])");
    }
    say(t, "\n");
}

/* y = the op; of several results the first. */
static void say_call(Text *t, const Mix *m)
{
    bool two = strcmp(m->recipe->op, "split") == 0 || strcmp(m->recipe->op, "topk") == 0;
    say(t, "y%s = %s(", two ? ", z" : "", m->recipe->op);
    for (int i = 0; i < m->operands; i++)
        say(t, "%sx%d", i ? ", " : "", i);
    say(t, "%s%s)\n", *m->recipe->settings ? ", " : "", m->recipe->settings);
}

static void say_head(Text *t, const Mix *m)
{
    say(t, "model t(batch B = %d)\nparam s : [1] = ones\n", m->batch);
    for (int i = 0; i < m->operands; i++)
        declare(t, m, i);
}

/* The samples of the result first, then a mean that each element has its own say in. */
static void say_train(Text *t, const Mix *m, int rank, const int64_t *dim, int axis)
{
    say_head(t, m);
    say_call(t, m);
    if (rank == 0) {
        say(t, "train y * sum(s) using sgd(lr = 0.1)\n");
        return;
    }
    bool joined = m->layout == JOINED && dim[axis] == 2 * m->batch;
    if (joined) {
        say(t, "y = reshape(y, [");
        for (int i = 0; i < rank; i++)
            if (i == axis)
                say(t, "%s2, B", i ? ", " : "");
            else
                say(t, "%s%lld", i ? ", " : "", (long long)dim[i]);
        say(t, "])\n");
        axis++;
        rank++;
    }
    say(t, "y = transpose(y, [%d", axis);
    for (int i = 0; i < rank; i++)
        if (i != axis)
            say(t, ", %d", i);
    say(t, "])\ntrain mean(sin(softsign(cast(y, f32)) * 3 * s)) using sgd(lr = 0.1)\n");
}

/* ---- Running it ------------------------------------------------------------------------------ */

/* times 0: as it is, without training. NULL where it is refused. */
static Graph *build_as(Arena *arena, const char *text, int64_t batch, uint32_t times,
                       bool chunked_loss)
{
    Source *source = ARENA_NEW(arena, Source);
    Define *define = ARENA_ARRAY(arena, Define, 1);
    *source = (Source){.file = "m.g", .text = text, .length = strlen(text)};
    *define = (Define){.name = "B", .value = batch};
    Diag *diag = diag_new(arena, getenv("BATCH_SAYS") ? stderr : NULL, false);
    Ast *ast = parse(arena, diag, source);
    Model model = {.source = source, .ast = ast, .define = define, .defines = 1};
    Graph *g = ast ? lower(arena, diag, &model) : NULL;
    if (g)
        g->chunked_loss = chunked_loss;
    if (!g || (times && !train_add(g, &model, times)))
        return NULL;
    return g;
}

static Graph *build_plain(Arena *arena, const char *text, int64_t batch, uint32_t times)
{
    return build_as(arena, text, batch, times, false);
}

static void run_step(PlainRun *run, double *loss)
{
    const Graph *g = run->graph;
    *loss = 0;
    for (int program = PROGRAM_STEP; program <= PROGRAM_UPDATE; program++) {
        uint32_t times = program_times(g, program);
        run->run.micros = times > 1 ? (int32_t)times : 0;
        for (uint32_t k = 0; k < times; k++) {
            run->run.micro = (int32_t)k;
            plain_program(run, (ProgramKind)program);
            if (program == PROGRAM_STEP)
                *loss += (double)*(float *)(void *)plain_block(run, g->train.loss.value);
        }
    }
}

static bool is_near(double a, double b)
{
    return (isnan(a) && isnan(b)) || a == b || fabs(a - b) <= 2e-5 * (1 + fabs(b));
}

/* NULL, or what a step in two micro-batches leaves other than a step at once. */
static const char *compare(Arena *arena, const Graph *at_once, const Graph *cut)
{
    PlainRun one = plain_new(at_once, 7), two = plain_new(cut, 7);
    for (Id v = 0; v < cut->value.count; v++) {
        const Value *value = &cut->value.at[v];
        Id same = persists(value) && value->whole == NONE ? graph_find(at_once, value->name) : NONE;
        if (same != NONE)
            memcpy(two.block[v], one.block[same], value_bytes(value));
    }
    double loss_one, loss_two;
    run_step(&one, &loss_one);
    run_step(&two, &loss_two);
    const char *wrong = one.status || two.status ? "a kernel failed"
                        : is_near(loss_two, loss_one)
                            ? NULL
                            : arena_printf(arena, "the loss is %g, not %g", loss_two, loss_one);
    for (Id v = 0; v < cut->value.count && !wrong; v++) {
        const Value *value = &cut->value.at[v];
        if (value->kind != VALUE_PARAM)
            continue;
        const float *got = (const float *)(void *)two.block[v];
        const float *want = (const float *)(void *)one.block[graph_find(at_once, value->name)];
        for (int64_t i = 0; i < value_count(value) && !wrong; i++)
            if (!is_near((double)got[i], (double)want[i]))
                wrong = arena_printf(arena, "%s[%lld] is %g, not %g", value->name, (long long)i,
                                     (double)got[i], (double)want[i]);
    }
    plain_free(&one);
    plain_free(&two);
    return wrong;
}

/* ---- All axes -------------------------------------------------------------------------------- */

static void read_operands(Mix *m)
{
    for (const char *at = m->recipe->operands; *at; at += strspn(at, " ")) {
        Operand *o = &m->operand[m->operands++];
        *o = (Operand){.dtype = *at++};
        for (char *end; *at && *at != ' '; at = *end == 'x' ? end + 1 : end)
            o->dim[o->rank++] = (int)strtol(at, &end, 10);
    }
}

/* The axes of the result that follow the size of the batch; the first where none does. */
static bool find_results(Arena *arena, const Mix *m, View *whole, bool *follows)
{
    Text text = {.length = 0};
    say_head(&text, m);
    say_call(&text, m);
    say(&text, "output y\n");
    const Graph *g = build_plain(arena, text.at, m->batch, 0);
    const Graph *half = build_plain(arena, text.at, m->batch / 2, 0);
    if (!g || !half)
        return false;
    *whole = use_view(g, g->output.at[0].use);
    View part = use_view(half, half->output.at[0].use);
    bool any = false;
    for (int i = 0; i < whole->rank; i++)
        any |= follows[i] = whole->dim[i] != part.dim[i];
    follows[0] |= !any;
    return true;
}

/* Whether the model is accepted; it is then run. */
static bool is_accepted(Arena *arena, const Mix *m)
{
    View result;
    bool follows[MAX_RANK] = {false}, accepted = false;
    if (!find_results(arena, m, &result, follows))
        return false;
    for (int axis = 0; axis < (result.rank ? result.rank : 1); axis++) {
        Text text = {.length = 0};
        if (!follows[axis])
            continue;
        say_train(&text, m, result.rank, result.dim, axis);
        const Graph *cut = build_plain(arena, text.at, m->batch, 2);
        if (!cut)
            continue;
        const Graph *at_once = build_plain(arena, text.at, m->batch, 1);
        const char *wrong = at_once ? compare(arena, at_once, cut) : "refused at once";
        cr_expect(!wrong, "%s\n%s", wrong, text.at);
        accepted = true;
    }
    return accepted;
}

static void note(const Mix *m, char *accepted)
{
    static const char *const letter[LAYOUTS] = {"", "f", "r"};
    strcat(strcat(accepted, *accepted ? " " : ""), letter[m->layout]);
    for (int i = 0; i < m->operands; i++)
        strcat(accepted,
               m->operand[i].axis < 0 ? "-" : (char[]){(char)('0' + m->operand[i].axis), 0});
}

/* Every choice of an axis, or none, for operand `i` and those after it. */
static void try_axes(Mix *m, int i, char *accepted)
{
    if (i == m->operands) {
        Arena *arena = arena_new();
        if (m->batch && is_accepted(arena, m))
            note(m, accepted);
        arena_free(arena);
        return;
    }
    Operand *o = &m->operand[i];
    int batch = m->batch;
    for (o->axis = -1; o->axis < o->rank; o->axis++) {
        int length = o->axis < 0           ? batch
                     : m->layout == JOINED ? o->dim[o->axis] / 2
                                           : o->dim[o->axis];
        if (length % 2 || (batch && length != batch))
            continue;
        m->batch = length;
        try_axes(m, i + 1, accepted);
        m->batch = batch;
    }
    o->axis = -1;
}

static void check_recipe(const Recipe *recipe)
{
    char accepted[MAX_ACCEPTED] = "";
    for (Layout layout = MOVED; layout < LAYOUTS; layout++) {
        Mix m = {.recipe = recipe, .layout = layout};
        read_operands(&m);
        try_axes(&m, 0, accepted);
    }
    if (getenv("BATCH_TABLE"))
        fprintf(stderr, "%s(%s; %s) %s\n", recipe->op, recipe->operands, recipe->settings,
                accepted);
    cr_expect(strcmp(accepted, recipe->accepted) == 0,
              "%s(%s; %s) accepts the batch on \"%s\", expected \"%s\"", recipe->op,
              recipe->operands, recipe->settings, accepted, recipe->accepted);
}

/* BATCH_TABLE=1 prints what is accepted, BATCH_SAYS=1 why the rest is refused. */
Test(batch, in_micro_batches_computes_what_it_does_at_once)
{
    for (const Recipe *recipe = recipes; recipe->op; recipe++)
        check_recipe(recipe);
}

Test(batch, is_put_through_every_op)
{
    for (size_t i = 0; op_at(i); i++) {
        bool found = op_at(i)->flags & OP_HIDDEN;
        for (const Recipe *recipe = recipes; recipe->op && !found; recipe++)
            found = strcmp(recipe->op, op_at(i)->name) == 0;
        cr_expect(found, "no recipe for %s", op_at(i)->name);
    }
}

/* ---- Losses in chunks ------------------------------------------------------------------------ */

static bool has_op(const Graph *g, const char *op)
{
    for (size_t n = 0; n < g->node.count; n++)
        if (strcmp(g->node.at[n].op->name, op) == 0)
            return true;
    return false;
}

/* Rows that the loss does not read are none of its slices; dims of its own are. */
Test(slices, compute_what_the_whole_product_gives)
{
    static const struct {
        const char *loss;
        bool chunked_loss;
    } table[] = {
        {"cross_entropy(h, y)", true},
        {"cross_entropy(reshape(h, [B/2, 2, 6]), reshape(y, [B/2, 2]))", true},
        {"cross_entropy(h[B/2:], y[B/2:])", false},
        {"cross_entropy(h[:B/2], y[:B/2])", false},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        for (uint32_t times = 1; times <= 2; times++) {
            Arena *arena = arena_new();
            const char *text =
                arena_printf(arena,
                             "model t(batch B = 8)\ninput x : f32[B, 4]\ninput y : i32[B]\n"
                             "h = dense(x, 6, bias = false)\ntrain %s using sgd(lr = 0.1)\n",
                             table[i].loss);
            const Graph *whole = build_as(arena, text, 8, 1, false);
            const Graph *chunked_loss = build_as(arena, text, 8, times, true);
            cr_assert(whole && (chunked_loss || !table[i].chunked_loss), "%s", text);
            if (chunked_loss) {
                const char *wrong = compare(arena, whole, chunked_loss);
                cr_expect(!wrong, "%s\n%s", wrong, text);
                cr_expect_eq(has_op(chunked_loss, "linear_cross_entropy"), table[i].chunked_loss,
                             "%s", text);
            }
            arena_free(arena);
        }
}
