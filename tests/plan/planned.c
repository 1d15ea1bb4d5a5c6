#include "tests/plan/planned.h"

#include <criterion/criterion.h>
#include <string.h>

Planned planned_graph(Arena *arena, Graph *g, const PlanOptions *how, const Target *target)
{
    Planned p = {
        .arena = arena, .graph = g, .target = target ? *target : target_make(target_find("c"), 1)};
    simplify(g);
    output_windows(g);
    p.clusters = fuse(arena, g, p.target.epilogues);
    p.plan = plan_make(arena, g, p.clusters, &p.target, how ? how : &(PlanOptions){0}, &p.search);
    p.fault = plan_check(p.plan, &p.target, &p.live_peak);
    return p;
}

static Planned plan_text(const char *text, bool train, const PlanOptions *how, const Target *target)
{
    Arena *arena = arena_new();
    Diag *diag = diag_new(arena, stderr, false);
    Source *source = ARENA_NEW(arena, Source);
    *source = (Source){.file = "test.g", .text = text, .length = strlen(text)};
    diag_source(diag, source);
    Ast *ast = parse(arena, diag, source);
    cr_assert(ast, "the text does not parse");
    Model model = {.source = source, .ast = ast};
    model.precision = (uint8_t)model_precision(&model);
    Graph *g = lower(arena, diag, &model);
    cr_assert(g, "the text is no model");
    cr_assert(!train || train_add(g, &model, 0), "the model cannot be trained");
    Planned p = planned_graph(arena, g, how, target);
    cr_expect_null(p.fault, "%s", p.fault);
    return p;
}

Planned planned_text(const char *text, const PlanOptions *how, const Target *target)
{
    return plan_text(text, false, how, target);
}

Planned planned_training(const char *text, const PlanOptions *how)
{
    return plan_text(text, true, how, NULL);
}

void planned_free(Planned *p)
{
    arena_free(p->arena);
}

/* Whether a value was bound to the name: it has it, or is a part of the op that does. */
static bool has_name(const Value *value, const char *name)
{
    size_t length = strlen(name);
    bool gone = value->kind == VALUE_RESULT && value->node == NONE;
    return !gone && value->kind != VALUE_LITERAL && strncmp(value->name, name, length) == 0 &&
           (!value->name[length] || value->name[length] == '/');
}

static Id find_value(const Planned *p, const char *name)
{
    for (Id v = (Id)p->graph->value.count; v-- > 0;)
        if (has_name(&p->graph->value.at[v], name))
            return v;
    for (size_t i = 0; i < p->graph->output.count; i++)
        if (strcmp(p->graph->output.at[i].name, name) == 0)
            return p->graph->output.at[i].use.value;
    cr_assert_fail("the model has no value %s", name);
    return NONE;
}

static Id find_buffer(const Planned *p, const char *name)
{
    Id value = find_value(p, name);
    for (Id i = 0; i < p->plan->buffers; i++)
        if (p->plan->buffer[i].value == value)
            return i;
    return NONE;
}

const Buffer *planned_buffer(const Planned *p, const char *name)
{
    Id buffer = find_buffer(p, name);
    return buffer == NONE ? NULL : &p->plan->buffer[buffer];
}

Id planned_root(const Planned *p, const char *name)
{
    const Buffer *buffer = planned_buffer(p, name);
    cr_assert(buffer, "%s is not stored", name);
    return buffer->root;
}

const Cluster *planned_cluster(const Planned *p, const char *name)
{
    Id node = p->graph->value.at[find_value(p, name)].node;
    cr_assert(node != NONE, "%s is not computed", name);
    return &p->clusters->at[p->clusters->of[node]];
}

Id planned_roots(const Planned *p, BufferKind kind)
{
    Id count = 0;
    for (Id i = 0; i < p->plan->buffers; i++)
        count += p->plan->buffer[i].root == i && p->plan->buffer[i].kind == kind;
    return count;
}
