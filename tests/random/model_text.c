/* Statements are proposed from recipes, and those stay that gplan itself can lower. So a recipe
 * says only what chance would hardly get right: operands of a rank, of one shape, of one width. */
#include "tests/plan/random_graph.h"
#include "tests/random/models.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 4, MOST_VALUES = 200, MOST_ELEMENTS = 1500, MOST_STATEMENT = 2000 };

/* A name that later statements may use. */
typedef struct {
    char *name;
    Dtype dtype;
    int rank;
    int64_t dim[MAX_RANK], twice[MAX_RANK]; /* and for twice the batch */
} Named;

typedef struct {
    Arena *arena;
    Random random;
    char *text; /* so far */
    Named value[MOST_VALUES];
    int values, names;
    bool micro; /* every value must be one that a step in micro-batches can compute */
} Writer;

/* Operands: {*} any real one, {4} of rank 4, {e} whose last axis has 8, {s} of the shape of the one
 * before. {e2}: of rank 2. {n8}: from 1 to 8; {a}: an axis of the operand before; {d1}: its size
 * there; {p}: its axes in some order. */
static const char *const recipes[] = {
    "relu({*})",
    "tanh({*})",
    "sigmoid({*})",
    "gelu({*})",
    "gelu({*}, tanh)",
    "silu({*})",
    "leaky_relu({*}, slope = 0.1)",
    "elu({*})",
    "softplus({*})",
    "abs({*})",
    "sin({*})",
    "square(tanh({*}))",
    "exp(tanh({*}))",
    "log(sigmoid({*}) + 0.5)",
    "sqrt(sigmoid({*}) + 0.5)",
    "pow(sigmoid({*}) + 0.5, 1.5)",
    "clip({*}, -0.5, 0.5)",
    "prelu({4})",
    "{*} + {s}",
    "{*} * tanh({s})",
    "{*} - {s}",
    "{*} / (sigmoid({s}) + 0.5)",
    "{*} + {*}",
    "tanh({*}) * sigmoid({*})",
    "maximum({*}, {s})",
    "minimum({*}, {s})",
    "where({*} > {s}, {s}, 0.5 * {s})",
    "stop_gradient({*}) * 0.5 + {s}",
    "0.5 * {*} + 0.25",
    "dropout({*}, rate = 0.3)",
    "dropout({*}, rate = 0.5)",
    "dense({*}, {n8})",
    "dense({*}, 8)",
    "dense({*}, 8, bias = false)",
    "relu(dense({*}, {n8}))",
    "{e} + tanh(dense({s}, 8))",
    "tanh(dense({*}, 8)) * {e}",
    "{e} @ w",
    "{e} @ transpose(w)",
    "tanh({e} @ w + b)",
    "{e} * b + b",
    "{2} @ transpose({s})",
    "tie({e})",
    "tie(tie({e}))",
    "mlp({*})",
    "mlp({*}, n = {n8})",
    "ck({e})",
    "ck(mlp({e}))",
    "cc({4})",
    "conv2d({4}, {n6}, kernel = 3, pad = same)",
    "relu(conv2d({4}, {n6}, kernel = 3, pad = 1))",
    "conv2d({4}, {n6}, kernel = 1)",
    "conv2d({4}, 4, kernel = 3, pad = 1, stride = 2)",
    "conv2d({4}, {d1}, kernel = 3, pad = same, groups = {d1})",
    "conv_transpose2d({4}, {n4}, kernel = 2, stride = 2)",
    "conv1d({3}, {n6}, kernel = 3, pad = same)",
    "maxpool2d({4}, 2)",
    "avgpool2d({4}, 2)",
    "maxpool2d({4}, 3, stride = 1, pad = 1)",
    "global_avgpool({4})",
    "global_maxpool({4})",
    "upsample2d({4}, scale = 2)",
    "upsample2d({4}, scale = 2, mode = bilinear)",
    "pixel_shuffle(concat([{4}, {s}, {s}, {s}], axis = 1), 2)",
    "pad({*}, 1)",
    "batchnorm({4})",
    "relu(batchnorm({4}))",
    "batchnorm({2})",
    "batchnorm({4}, over = micro)",
    "batchnorm({3}, momentum = 0.3, over = micro)",
    "layernorm({*})",
    "layernorm({e}, b, b)",
    "rmsnorm({*})",
    "groupnorm({4}, groups = 2)",
    "instancenorm({4})",
    "softmax({*})",
    "log_softmax({*})",
    "softmax({*}, axis = {a})",
    "cumsum({*}, axis = {a})",
    "sum({*}, axis = {a}) * 0.3",
    "mean({*}, axis = {a}, keepdims = true)",
    "max({*}, axis = {a})",
    "min({*}, axis = {a}, keepdims = true)",
    "var({*}, axis = {a})",
    "prod(sigmoid({*}) + 0.5, axis = {a})",
    "attention({3}, heads = 2)",
    "attention({3}, heads = 2, causal = true)",
    "attention({3}, heads = 1, context = {3})",
    "sdpa({4}, {s}, {s}, causal = true)",
    "rope({3})",
    "embedding(i, table)",
    "embedding(i, count = 5, size = {n8})",
    "embedding(i, large)",
    "gather(table, i)",
    "one_hot(i, 5) @ table",
    "scatter_add(table, y, {e2})",
    "transpose({*})",
    "transpose({*}, [{p}])",
    "flip({*}, axis = {a})",
    "{*}[..., ::-1]",
    "{*}[:, 0:1]",
    "{*}[0]",
    "{*}[..., 1:]",
    "{*}[:, ::2]",
    "unsqueeze({*}, axis = {a})",
    "squeeze({*})",
    "flatten({*})",
    "tile({*}, 2)",
    "stack([{*}, {s}], axis = {a})",
    "concat([{*}, {s}], axis = {a})",
    "concat([{*}, relu({s}), {s}], axis = {a})",
    "concat([tanh({*})], axis = {a})",
    "concat([relu({4}), conv2d({s}, 3, kernel = 1)], axis = 1)",
    "concat([{e}, dense({s}, 5), {s} * 0.5], axis = -1)",
    "cast(tanh(cast({*}, bf16)), f32)",
    "cast(cast({*}, f16) * 0.5, f32) + {s}",
};
enum { RECIPES = sizeof recipes / sizeof *recipes };

static const char head[] =
    "model net(batch B = 4)\n"
    "input x : f32[B, 8]\n"
    "input t : f32[B, 5, 8]\n"
    "input m : f32[B, 4, 6, 6]\n"
    "input y : i32[B]\n"
    "input i : i32[B, 5]\n"
    "param w : [8, 8]\n"
    "param b : [8]\n"
    "param table : [5, 8]\n"
    "param large : [512, 8]\n"
    "block mlp(z, n = 12) {\n  h = gelu(dense(z, n))\n  return z + dense(h, dim(z, -1))\n}\n"
    "shared block tie(z) {\n  return tanh(dense(z, 8))\n}\n"
    "checkpoint block ck(z) {\n  h = relu(dense(layernorm(z), 16))\n"
    "  return z + dropout(dense(h, 8), rate = 0.2)\n}\n"
    "checkpoint block cc(z) {\n  h = conv2d(relu(z), dim(z, 1), kernel = 3, pad = same)\n"
    "  return z + tanh(h)\n}\n"
    "block two(z) {\n  p, q = split(z, 2)\n  return p * sigmoid(q), tanh(p)\n}\n";

static unsigned below(Writer *w, unsigned n)
{
    return (unsigned)random_below(&w->random, n);
}

static bool chance(Writer *w, int percent)
{
    return random_chance(&w->random, percent);
}

/* ---- Shapes, as gplan sees them ---------------------------------------------------------------
 */

static Graph *lower_text(Arena *arena, const char *text, int64_t batch)
{
    Source *source = ARENA_NEW(arena, Source);
    *source = (Source){.file = "net.g", .text = text, .length = strlen(text)};
    Diag *diag = diag_new(arena, NULL, false);
    diag_source(diag, source);
    Ast *ast = parse(arena, diag, source);
    Define *define = ARENA_NEW(arena, Define);
    *define = (Define){.name = "B", .value = batch};
    Model model = {.source = source, .ast = ast, .define = define, .defines = 1};
    return ast ? lower(arena, diag, &model) : NULL;
}

/* The shape of a name at the end of the text; false where the text is wrong. */
static bool find_shape(const char *text, const char *name, Named *value)
{
    Arena *arena = arena_new();
    char *probe = arena_printf(arena, "%soutput probe = %s\n", text, name);
    Graph *g = lower_text(arena, probe, BATCH), *h = g ? lower_text(arena, probe, 2 * BATCH) : NULL;
    bool good = false;
    if (h) {
        Use use = g->output.at[g->output.count - 1].use,
            other = h->output.at[h->output.count - 1].use;
        View view = use_view(g, use), twice = use_view(h, other);
        value->dtype = (Dtype)g->value.at[use.value].dtype;
        value->rank = view.rank;
        memcpy(value->dim, view.dim, sizeof view.dim);
        memcpy(value->twice, twice.dim, sizeof twice.dim);
        good = view_count(&view) <= MOST_ELEMENTS;
    }
    arena_free(arena);
    return good;
}

/* ---- Operands ----------------------------------------------------------------------------------
 */

static bool same_shape(const Named *a, const Named *b)
{
    return a->rank == b->rank && memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim) == 0;
}

static bool is_wanted(const Named *value, const char *want, const Named *before)
{
    if (value->dtype != F32 || value->rank == 0)
        return false;
    if (*want == 's')
        return before && same_shape(value, before);
    if (*want == 'e')
        return value->dim[value->rank - 1] == 8 && (want[1] == '}' || value->rank == want[1] - '0');
    return *want == '*' || value->rank == *want - '0';
}

/* Late values more often than early ones, so that models are deep as well as wide. */
static const Named *pick(Writer *w, const char *want, const Named *before)
{
    for (int tries = 0; tries < 60; tries++) {
        unsigned a = below(w, (unsigned)w->values), b = below(w, (unsigned)w->values);
        const Named *value = &w->value[a > b ? a : b];
        if (is_wanted(value, want, before))
            return value;
    }
    return *want == 's' ? before : NULL;
}

static char *axes_in_some_order(Writer *w, int rank)
{
    int axis[MAX_RANK];
    char *text = arena_printf(w->arena, "%s", "");
    for (int i = 0; i < rank; i++)
        axis[i] = i;
    for (int i = 0; i < rank; i++) {
        int k = i + (int)below(w, (unsigned)(rank - i)), other = axis[k];
        axis[k] = axis[i], axis[i] = other;
        text = arena_printf(w->arena, "%s%s%d", text, i ? ", " : "", axis[i]);
    }
    return text;
}

/* A recipe with its operands put in; NULL where there is no value for one. */
static char *fill(Writer *w, const char *recipe)
{
    const Named *last = NULL;
    char *text = arena_printf(w->arena, "%s", "");
    while (*recipe) {
        size_t length = strcspn(recipe, "{");
        text = arena_printf(w->arena, "%s%.*s", text, (int)length, recipe);
        recipe += length;
        if (!*recipe)
            break;
        const char *want = recipe + 1;
        recipe = strchr(recipe, '}') + 1;
        if (*want == 'n') {
            text = arena_printf(w->arena, "%s%u", text, 1 + below(w, (unsigned)atoi(want + 1)));
        } else if (*want == 'a' || *want == 'd' || *want == 'p') {
            if (!last)
                return NULL;
            int axis = *want == 'd' ? atoi(want + 1) : (int)below(w, (unsigned)last->rank);
            if (*want == 'p')
                text = arena_printf(w->arena, "%s%s", text, axes_in_some_order(w, last->rank));
            else
                text = arena_printf(w->arena, "%s%lld", text,
                                    *want == 'a' ? (long long)axis : (long long)last->dim[axis]);
        } else {
            const Named *value = pick(w, want, last);
            if (!value)
                return NULL;
            text = arena_printf(w->arena, "%s%s", text, value->name);
            last = value;
        }
    }
    return text;
}

/* ---- Statements --------------------------------------------------------------------------------
 */

static char *new_name(Writer *w, const char *prefix)
{
    return arena_printf(w->arena, "%s%d", prefix, w->names++);
}

static bool know(Writer *w, const char *text, char *name)
{
    Named value = {.name = name};
    if (w->values == MOST_VALUES || !find_shape(text, name, &value))
        return false;
    w->value[w->values++] = value;
    return true;
}

/* Whether a step with the loss can run in micro-batches. */
static bool may_be_divided(Writer *w, const char *text, const char *loss)
{
    Arena *arena = arena_new();
    text = arena_printf(arena, "%strain %s using sgd(lr = 0.1)\n", text, loss);
    bool may = !w->micro || model_graph(arena, text, (Lowering){2, false});
    arena_free(arena);
    return may;
}

/* Adds the statement where it lowers, and makes its name known. */
static bool state(Writer *w, char *name, const char *statement)
{
    char *text = arena_printf(w->arena, "%s%s\n", w->text, statement);
    const char *loss = arena_printf(w->arena, "mean(square(%s))", name);
    if (!may_be_divided(w, text, loss) || !know(w, text, name))
        return false;
    w->text = text;
    return true;
}

static char *size_text(Writer *w, int64_t size, int64_t twice)
{
    if (size == twice)
        return arena_printf(w->arena, "%lld", (long long)size);
    if (size == BATCH)
        return arena_printf(w->arena, "B");
    return arena_printf(w->arena, "B*%lld", (long long)size / BATCH);
}

/* Axes side by side become one, or one of them two; the batch among them. */
static void reshape(Writer *w)
{
    const Named *from = pick(w, "*", NULL);
    if (!from)
        return;
    char *shape = arena_printf(w->arena, "%s", ""), *name = new_name(w, "r");
    for (int i = 0; i < from->rank; i++) {
        const char *comma = *shape ? ", " : "";
        int64_t size = from->dim[i], twice = from->twice[i];
        if (i + 1 < from->rank && chance(w, 40)) {
            size *= from->dim[i + 1], twice *= from->twice[i + 1];
            i++;
            shape = arena_printf(w->arena, "%s%s%s", shape, comma, size_text(w, size, twice));
        } else if (size % 2 == 0 && chance(w, 30)) {
            shape = arena_printf(w->arena, "%s%s%s, 2", shape, comma,
                                 size_text(w, size / 2, twice / 2));
        } else {
            shape = arena_printf(w->arena, "%s%s%s", shape, comma, size_text(w, size, twice));
        }
    }
    if (chance(w, 15))
        shape = arena_printf(w->arena, "1, %s", shape);
    state(w, name, arena_printf(w->arena, "%s = reshape(%s, [%s])", name, from->name, shape));
}

static void repeat(Writer *w)
{
    static const char *const bodies[] = {
        "mlp(NAME)",
        "ck(NAME)",
        "tie(NAME)",
        "NAME + tanh(dense(NAME, 8))",
        "concat([NAME, relu(dense(NAME, 4))], axis = -1)",
        "dropout(relu(dense(NAME, 8)), rate = 0.25)",
        "NAME * 0.5 + tanh(NAME @ w)",
        "cc(NAME)",
        "relu(batchnorm(conv2d(NAME, 3, kernel = 3, pad = same)))",
        "concat([NAME, conv2d(relu(NAME), 2, kernel = 3, pad = 1)], axis = 1)",
        "layernorm(NAME + attention(NAME, heads = 2))",
    };
    unsigned k = below(w, sizeof bodies / sizeof *bodies);
    const Named *from = pick(w, k < 7 ? "e" : k < 10 ? "4" : "3", NULL);
    if (!from)
        return;
    char *name = new_name(w, "h"), *body = arena_printf(w->arena, "%s", "");
    for (const char *at = bodies[k]; *at;) {
        bool here = strncmp(at, "NAME", 4) == 0;
        body =
            arena_printf(w->arena, "%s%.*s", body, here ? (int)strlen(name) : 1, here ? name : at);
        at += here ? 4 : 1;
    }
    state(w, name,
          arena_printf(w->arena, "%s = %s\nrepeat k in 0..%u {\n  %s = %s\n}", name, from->name,
                       2 + below(w, 2), name, body));
}

/* Several results at once. */
static void several(Writer *w)
{
    char *a = new_name(w, "u"), *b = new_name(w, "u");
    char *call = fill(w, chance(w, 50) ? "two({*})" : "split({*}, 2, axis = {a})");
    if (call && state(w, a, arena_printf(w->arena, "%s, %s = %s", a, b, call)))
        know(w, w->text, b);
}

/* Statistics that the model names: read elsewhere, or given to two layers. */
static void statistics(Writer *w)
{
    const Named *from = pick(w, "4", NULL);
    if (!from)
        return;
    char *name = new_name(w, "st"), *mean = new_name(w, "mu"), *var = new_name(w, "va");
    long long channels = from->dim[1];
    state(w, name,
          arena_printf(w->arena,
                       "param %s : [%lld] = zeros\nparam %s : [%lld] = ones\n"
                       "%s = batchnorm(%s, mean = %s, var = %s, over = micro)",
                       mean, channels, var, channels, name, from->name, mean, var));
}

static void statement(Writer *w)
{
    unsigned kind = below(w, 100);
    if (kind < 8) {
        reshape(w);
    } else if (kind < 14) {
        repeat(w);
    } else if (kind < 18) {
        several(w);
    } else if (kind < 19) {
        statistics(w);
    } else {
        char *call = fill(w, recipes[below(w, RECIPES)]), *name = new_name(w, "v");
        if (call && state(w, name, arena_printf(w->arena, "%s = %s", name, call)) && chance(w, 8)) {
            char *hint = arena_printf(w->arena, "%s%s %s\n", w->text,
                                      chance(w, 50) ? "keep" : "recompute", name);
            Arena *scratch = arena_new();
            if (lower_text(scratch, hint, BATCH))
                w->text = hint;
            arena_free(scratch);
        }
    }
}

/* An output: of a value in the middle, which later statements go on reading; of one that is an
 * output already; of an input or a parameter; of a view; of indices. */
static void output(Writer *w)
{
    const Named *value = pick(w, "*", NULL);
    const char *name = new_name(w, "o");
    unsigned kind = below(w, 12);
    if (!value)
        return;
    const char *of = kind == 0   ? "x"
                     : kind == 1 ? "w"
                     : kind == 2 ? "i"
                     : kind == 3 ? arena_printf(w->arena, "transpose(%s)", value->name)
                     : kind == 4 ? arena_printf(w->arena, "argmax(%s, axis = -1)", value->name)
                     : kind == 5 ? arena_printf(w->arena, "%s[0:1]", value->name)
                                 : value->name;
    char *text = arena_printf(w->arena, "%soutput %s = %s\n", w->text, name, of);
    if (kind == 6)
        text = arena_printf(w->arena, "%soutput %sb = %s\n", text, name, of);
    Arena *scratch = arena_new();
    if (lower_text(scratch, text, BATCH))
        w->text = text;
    arena_free(scratch);
}

/* ---- Training ----------------------------------------------------------------------------------
 */

/* Adds one of the terms to a loss; NULL where it does not fit. */
static char *add_term(Writer *w, char *loss, const char *const *terms, unsigned count)
{
    char *term = fill(w, terms[below(w, count)]);
    Named shape;
    if (term && loss)
        term = arena_printf(w->arena, "%s + %s", loss, term);
    bool good = term && find_shape(w->text, term, &shape) && shape.rank == 0 &&
                may_be_divided(w, w->text, term);
    return good ? term : NULL;
}

static char *loss(Writer *w)
{
    static const char *const chunked_loss[] = {
        "cross_entropy({e2} @ head, y)",
        "cross_entropy(dense({2}, 7, bias = false), y)",
        "cross_entropy({e3} @ transpose(table), i)",
        "cross_entropy(dense({3}, 6, bias = false), i, label_smoothing = 0.1)",
    };
    static const char *const terms[] = {
        "mean(square({*}))",
        "mean(tanh({*}))",
        "mean(tanh({*}))",
        "mse({*}, {s})",
        "huber({*}, {s}, delta = 0.5)",
        "bce_with_logits({*}, sigmoid({s}))",
        "cross_entropy(dense({2}, 7), y)",
        "cross_entropy(dense({3}, 6), i)",
        "cross_entropy(dense({2}, 9), y, label_smoothing = 0.1)",
        "nll(log_softmax(dense({2}, 5)), y)",
        "0.1 * sum(mean(square({*}), axis = 0))",
        "mean(square(w))",
    };
    char *text = NULL;
    for (int tries = chance(w, 45) ? 0 : 15; tries < 15 && !text; tries++)
        text = add_term(w, NULL, chunked_loss, sizeof chunked_loss / sizeof *chunked_loss);
    for (unsigned i = 0, most = 2 + below(w, 5), tries = 0; i < most && tries < 40; tries++) {
        char *longer = add_term(w, text, terms, sizeof terms / sizeof *terms);
        text = longer ? longer : text;
        i += longer != NULL;
    }
    return text ? text : arena_printf(w->arena, "mean(square(x @ w))");
}

static char *train(Writer *w)
{
    static const char *const optimizers[] = {
        "sgd(lr = 0.1)",
        "sgd(lr = 0.05, momentum = 0.9)",
        "sgd(lr = 0.05, momentum = 0.9, nesterov = true, weight_decay = 0.01)",
        "adam(lr = 0.01, eps = 0.01)",
        "adamw(lr = 0.01, eps = 0.01, weight_decay = 0.1)",
        "rmsprop(lr = 0.01, eps = 0.1)",
        "rmsprop(lr = 0.01, eps = 0.1, momentum = 0.9)",
        "adagrad(lr = 0.02, eps = 0.1)",
        "lion(lr = 0.001, weight_decay = 0.1)",
        "adam(lr = 0.01, eps = 0.01, state = 8bit)",
        "adamw(lr = 0.01, eps = 0.01, weight_decay = 0.1, state = 8bit)",
        "sgd(lr = 0.05, momentum = 0.9, state = 8bit)",
        "lion(lr = 0.001, state = 8bit)",
    };
    static const char *const settings[] = {
        "clip = 0.7",
        "clip_value = 0.05",
        "group \"w\" { lr = 0.02 }",
        "group \"*.b\" { frozen = true }",
        "group \"?able\" { lr = 0.03 }",
        "schedule = cosine(steps = 10, warmup = 2)",
    };
    static const char *const kept_wide[] = {"dense*", "conv2d*", "mlp*", "attention*"};
    char *text = arena_printf(w->arena, "%strain %s using %s {\n", w->text, loss(w),
                              optimizers[below(w, sizeof optimizers / sizeof *optimizers)]);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (chance(w, 20))
            text = arena_printf(w->arena, "%s  %s\n", text, settings[i]);
    const unsigned precision = below(w, 4); /* half of them in f32 */
    if (precision < 2)
        text = arena_printf(w->arena, "%s  precision = %s\n", text, precision ? "f16" : "bf16");
    if (precision < 2 && chance(w, 20))
        text = arena_printf(w->arena, "%s  precision \"%s\" = f32\n", text,
                            kept_wide[below(w, sizeof kept_wide / sizeof *kept_wide)]);
    return arena_printf(w->arena, "%s}\n", text);
}

char *random_model(Arena *arena, uint64_t seed, int most_statements)
{
    Writer w = {.arena = arena, .random = random_new(seed + 77)};
    static const char *const known[] = {"x", "t", "m", "w", "b"};
    w.text = arena_printf(arena, "%s%s", head, chance(&w, 50) ? "param head : [8, 11]\n" : "");
    w.micro = chance(&w, 60);
    for (int i = 0; i < (w.micro ? 3 : 5); i++)
        know(&w, w.text, arena_printf(arena, "%s", known[i]));
    int statements = 3 + (int)below(&w, (unsigned)most_statements - 2);
    for (int i = 0; i < statements; i++) {
        statement(&w);
        if (chance(&w, 20))
            output(&w);
    }
    output(&w);
    for (int tries = 0; tries < 20; tries++) {
        char *text = train(&w);
        Arena *scratch = arena_new();
        bool good = model_graph(scratch, text, (Lowering){1, false}) != NULL;
        arena_free(scratch);
        if (good)
            return text;
    }
    return NULL;
}
