/* What lowering leaves in the graph beside the nodes that a dump shows. */
#include "frontend/lower.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

static Arena *arena;
static Diag *diag;
static Model model;

static void begin(void)
{
    arena = arena_new();
    diag = diag_new(arena, stderr, false);
}

static void end(void)
{
    arena_free(arena);
}

TestSuite(lower, .init = begin, .fini = end);

static Graph *build(const char *text)
{
    Source *source = ARENA_NEW(arena, Source);
    *source = (Source){.file = "m.g", .text = text, .length = strlen(text)};
    Ast *ast = parse(arena, diag, source);
    cr_assert_not_null(ast);
    model = (Model){.source = source, .ast = ast};
    Graph *g = lower(arena, diag, &model);
    cr_assert_not_null(g);
    return g;
}

static const Value *value(const Graph *g, const char *name)
{
    Id id = graph_find(g, name);
    cr_assert_neq(id, NONE, "%s", name);
    return &g->value.at[id];
}

static const Node *node(const Graph *g, const char *name)
{
    for (size_t i = 0; i < g->node.count; i++)
        if (strcmp(g->node.at[i].name, name) == 0)
            return &g->node.at[i];
    cr_assert_fail("no node %s", name);
    return NULL;
}

static const TrainSetting *setting(const Graph *g, const char *name, const char *pattern)
{
    for (size_t i = 0; i < g->train.setting.count; i++) {
        const TrainSetting *s = &g->train.setting.at[i];
        bool same = pattern ? s->pattern && strcmp(s->pattern, pattern) == 0 : !s->pattern;
        if (strcmp(s->name, name) == 0 && same)
            return s;
    }
    cr_assert_fail("no setting %s", name);
    return NULL;
}

static void check_init(const Graph *g, const char *name, InitKind kind, double a, double b)
{
    const Init *init = &value(g, name)->init;
    cr_assert_eq(init->kind, kind, "%s", name);
    if (kind == INIT_CONST || kind == INIT_UNIFORM || kind == INIT_NORMAL)
        cr_assert_float_eq(init->a, a, 1e-12, "%s", name);
    if (kind == INIT_UNIFORM || kind == INIT_NORMAL)
        cr_assert_float_eq(init->b, b, 1e-12, "%s", name);
}

Test(lower, initializers_reach_the_values)
{
    Graph *g = build("model m\n"
                     "param a : [3] = ones; param b : [3] = const(2.5); param c : [3] = 0.5\n"
                     "param d : [3] = uniform(-1, 2); param e : [3] = normal(0.1)\n"
                     "param f : [3] = normal(4, 0.1); param g : [2, 4] = xavier\n"
                     "param h : [8, 3, 5, 5] = he; param i : [3]; param j : [2, 4]\n"
                     "frozen param k : [2, 2] = [[1, 2], [3, 4]]\n"
                     "const l : i32[2] = [7, -8]\n"
                     "output y = a + b\n");
    check_init(g, "a", INIT_ONES, 0, 0);
    check_init(g, "b", INIT_CONST, 2.5, 0);
    check_init(g, "c", INIT_CONST, 0.5, 0);
    check_init(g, "d", INIT_UNIFORM, -1, 2);
    check_init(g, "e", INIT_NORMAL, 0, 0.1);
    check_init(g, "f", INIT_NORMAL, 4, 0.1);
    check_init(g, "g", INIT_UNIFORM, -1, 1); /* sqrt(6 / (2 + 4)) */
    check_init(g, "h", INIT_NORMAL, 0, sqrt(2.0 / 75));
    check_init(g, "i", INIT_ZEROS, 0, 0);
    check_init(g, "j", INIT_UNIFORM, -1, 1);
    cr_assert(value(g, "k")->frozen);
    cr_assert_not(value(g, "a")->frozen);
    cr_assert_eq(value(g, "k")->init.count, 4);
    cr_assert_eq(value(g, "k")->init.list[2], 3);
    cr_assert_eq(value(g, "l")->kind, VALUE_CONST);
    cr_assert_eq(value(g, "l")->init.list[1], -8);
}

Test(lower, scopes_keep_template_and_iteration)
{
    Graph *g = build("model m(batch B = 2)\n"
                     "input x : f32[B, 4]\n"
                     "block inner(a) { return relu(a) }\n"
                     "checkpoint block layer(a) { return inner(a) + 1 }\n"
                     "h = x\n"
                     "repeat i in 3..6 { h = layer(h) }\n"
                     "output h\n");
    const Scope *in1 = &g->scope.at[node(g, "layer.1.inner.relu.0")->scope];
    const Scope *in2 = &g->scope.at[node(g, "layer.2.inner.relu.0")->scope];
    cr_assert_str_eq(in1->path, "layer.1.inner");
    cr_assert_eq(in1->template, in2->template);
    cr_assert_eq(in1->iteration, 1);
    cr_assert_eq(in2->iteration, 2);
    const Scope *layer = &g->scope.at[in1->parent];
    cr_assert_str_eq(layer->path, "layer.1");
    cr_assert_eq(layer->hint, HINT_CHECKPOINT);
    cr_assert_neq(layer->template, in1->template);
    cr_assert_eq(layer->call.line, 6);
    const Scope *turn = &g->scope.at[layer->parent];
    cr_assert_eq(turn->iteration, 1);
    cr_assert_eq(turn->parent, 0);
}

Test(lower, hints_stand_on_the_values)
{
    Graph *g = build("model m(batch B = 2)\n"
                     "input x : f32[B, 4]\n"
                     "a = relu(x); b = relu(a); c = relu(b)\n"
                     "keep a\nrecompute b\noutput c\n");
    cr_assert_eq(g->value.at[node(g, "a")->value].hint, HINT_KEEP);
    cr_assert_eq(g->value.at[node(g, "b")->value].hint, HINT_RECOMPUTE);
    cr_assert_eq(g->value.at[node(g, "c")->value].hint, 0);
    cr_assert(g->dimension.at[0].batch);
}

Test(lower, train_settings_are_carried)
{
    Graph *g = build("model m(batch B = 2)\n"
                     "input x : f32[B, 4]\n"
                     "y = dense(x, 3); z = dense(y, 3)\n"
                     "train mean(z) using sgd(0.1, momentum = 0.9, nesterov = true) {\n"
                     "  clip = 1; accumulate = auto\n"
                     "  schedule = cosine(100, warmup = 5)\n"
                     "  group \"*.b\" { weight_decay = 0 }\n"
                     "  group \"y.*\" { frozen = true }\n"
                     "}\n");
    cr_assert(g->train.present);
    cr_assert_str_eq(g->train.optimizer, "sgd");
    cr_assert_neq(g->train.loss.value, NONE);
    cr_assert_eq(setting(g, "lr", NULL)->value.number, 0.1);
    cr_assert_eq(setting(g, "momentum", NULL)->value.number, 0.9);
    cr_assert_eq(setting(g, "nesterov", NULL)->value.number, 1);
    cr_assert_eq(setting(g, "clip", NULL)->value.number, 1);
    cr_assert(setting(g, "accumulate", NULL)->value.is_word);
    cr_assert(setting(g, "schedule", NULL)->value.is_word);
    cr_assert_eq(setting(g, "schedule.steps", NULL)->value.list[0], 100);
    cr_assert_eq(setting(g, "schedule.warmup", NULL)->value.list[0], 5);
    cr_assert_eq(setting(g, "weight_decay", "*.b")->value.number, 0);
    cr_assert(value(g, "y.w")->frozen && value(g, "y.b")->frozen);
    cr_assert_not(value(g, "z.w")->frozen);
}

Test(lower, another_program_finds_the_same_parameters)
{
    Graph *g = build("model m(batch B = 2)\n"
                     "input x : f32[B, 4]\n"
                     "param w : [4, 4]\n"
                     "block layer(a) { return dense(a, 4) @ w }\n"
                     "h = x\nrepeat i in 0..2 { h = layer(h) }\noutput h\n");
    size_t parameters = 0, nodes = g->node.count;
    for (size_t i = 0; i < g->value.count; i++)
        parameters += g->value.at[i].kind == VALUE_PARAM;
    graph_program(g, PROGRAM_STEP, true);
    cr_assert(lower_into(g, &model));
    for (size_t i = 0; i < g->value.count; i++)
        parameters -= g->value.at[i].kind == VALUE_PARAM;
    cr_assert_eq(parameters, 0);
    cr_assert_eq(g->node.count, 2 * nodes);
    cr_assert_str_eq(g->node.at[nodes].name, g->node.at[0].name);
}
