/* What hangs on parameters alone: what is prepared, that it changes no bit, and that no plan passes
 * in which forward could read anything else. */
#include "tests/plan/planned.h"
#include "tests/plan/run_plan.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static const char convolutions[] =
    "model convolutions(batch B = 2, S = 6)\n"
    "input x : f32[B, 3, S, S]\n"
    "h = relu(batchnorm(conv2d(x, 8, kernel = 3, pad = same)))\n"
    "h = h + batchnorm(conv2d(h, 8, kernel = 3, pad = same, bias = false))\n"
    "output y = batchnorm(dense(global_avgpool(h), 10))\n";

/* Values of several sizes, one of which is made of another that is read too. */
static const char shared[] = "model shared(B = 2)\n"
                             "input x : f32[B, 16]\n"
                             "param w : [16, 16] = normal(1)\nparam v : [16] = normal(1)\n"
                             "s = exp(v)\nu = tanh(w * s)\n"
                             "output y = (x * s) @ u + v\n";

static const char trained[] = "model trained(batch B = 4)\n"
                              "input x : f32[B, 3, 6, 6]\ninput t : f32[B, 4]\n"
                              "h = relu(batchnorm(conv2d(x, 4, kernel = 3), over = micro))\n"
                              "output y = dense(global_avgpool(h), 4)\n"
                              "train mse(y, t) using sgd(lr = 0.1)\n";

static Model read_model(Arena *arena, const char *text, Diag **diag)
{
    Source *source = ARENA_NEW(arena, Source);
    *source = (Source){.file = "test.g", .text = text, .length = strlen(text)};
    *diag = diag_new(arena, stderr, false);
    const Ast *ast = parse(arena, *diag, source);
    cr_assert(ast);
    return (Model){.source = source, .ast = ast};
}

static Built built(Arena *arena, const char *text, const Target *target, uint64_t prepared)
{
    Diag *diag;
    Model model = read_model(arena, text, &diag);
    Choice choice = {.epilogues = true, .prepared = prepared};
    Built b = build(&model, target, &choice, diag);
    cr_assert(b.graph);
    b.plan = plan_make(b.arena, b.graph, b.clusters, target, &(PlanOptions){0}, &b.search);
    const char *fault = plan_check(b.plan, target, NULL);
    cr_assert_null(fault, "%s", fault);
    return b;
}

static size_t nodes_of(const Graph *g, ProgramKind program)
{
    size_t count = 0;
    for (size_t n = 0; n < g->node.count; n++)
        count += g->node.at[n].program == program;
    return count;
}

Test(prepare, batchnorm_leaves_one_product_and_one_sum)
{
    const Target target = target_make(target_find("c"), 1);
    Arena *arena = arena_new();
    Built b = built(arena, convolutions, &target, UINT64_MAX);
    /* three products with a product and a sum each, two of them convolutions without a bias; relu,
     * the shortcut, the mean */
    cr_expect_eq(nodes_of(b.graph, PROGRAM_FORWARD), 3 * 3 + 3);
    for (size_t n = 0; n < b.graph->node.count; n++)
        if (b.graph->node.at[n].op == op_find("conv2d"))
            cr_expect_eq(node_use(b.graph, &b.graph->node.at[n], 2).value, NONE);
    built_free(&b);
    arena_free(arena);
}

/* As much as is allowed, and the same outputs as if nothing were kept. */
static void try_sizes(const char *text)
{
    const Target target = target_make(target_find("c"), 1);
    Arena *arena = arena_new();
    Built none = built(arena, text, &target, 0), all = built(arena, text, &target, UINT64_MAX);
    const PlainRun want = plain_run(none.graph, 7);
    cr_expect_eq(prepared_bytes(none.graph), 0);
    cr_expect_eq(nodes_of(none.graph, PROGRAM_PREPARE), 0);
    const uint64_t most = prepared_bytes(all.graph);
    cr_expect_gt(most, 0);
    uint64_t before = 0;
    for (uint64_t bytes = 0; bytes <= 2 * most; bytes += 64) {
        Built b = built(arena, text, &target, bytes);
        const PlainRun plain = plain_run(b.graph, 7);
        const char *wrong = plan_differs(arena, b.plan, &plain, 7, true);
        cr_expect_null(wrong, "%llu bytes: %s", (unsigned long long)bytes, wrong);
        cr_expect(plain_same(&plain, b.graph->output.at[0].use.value,
                             want.block[none.graph->output.at[0].use.value]));
        cr_expect_leq(prepared_bytes(b.graph), bytes);
        cr_expect_geq(prepared_bytes(b.graph), before, "more bytes keep no less");
        before = prepared_bytes(b.graph);
        plain_free((PlainRun *)&plain);
        built_free(&b);
    }
    cr_expect_eq(before, most);
    plain_free((PlainRun *)&want);
    built_free(&none);
    built_free(&all);
    arena_free(arena);
}

Test(prepare, how_much_is_kept_changes_no_bit_of_convolutions)
{
    try_sizes(convolutions);
}

Test(prepare, how_much_is_kept_changes_no_bit_of_what_others_are_made_of)
{
    try_sizes(shared);
}

Test(prepare, training_prepares_nothing)
{
    const Target target = target_make(target_find("c"), 1);
    Arena *arena = arena_new();
    Built b = built(arena, trained, &target, UINT64_MAX);
    cr_expect_eq(nodes_of(b.graph, PROGRAM_PREPARE), 0);
    cr_expect_eq(prepared_bytes(b.graph), 0);
    built_free(&b);
    arena_free(arena);
}

/* The plan of the budget keeps what there is room for, and says that more would not fit. */
Test(prepare, a_budget_decides_how_much_is_kept)
{
    const Target target = target_make(target_find("c"), 1);
    Arena *arena = arena_new();
    Diag *diag;
    const Model model = read_model(arena, shared, &diag);
    PlanOptions how = {.smallest = true};
    Built least = choose(&model, &target, &how, diag);
    Built most = choose(&model, &target, &(PlanOptions){0}, diag);
    const uint64_t low = least.plan->arena[SPACE_ARENA], high = most.plan->arena[SPACE_ARENA];
    cr_assert_lt(low, high);
    uint64_t kept = 0;
    for (uint64_t budget = low; budget <= high; budget += 64) {
        how = (PlanOptions){.budget = budget};
        Built b = choose(&model, &target, &how, diag);
        cr_expect_leq(b.plan->arena[SPACE_ARENA], budget);
        cr_expect_geq(prepared_bytes(b.graph), kept);
        cr_expect(budget == high || b.why.prepared);
        kept = prepared_bytes(b.graph);
        built_free(&b);
    }
    cr_expect_eq(kept, prepared_bytes(most.graph));
    how = (PlanOptions){.no_prepared = true};
    Built never = choose(&model, &target, &how, diag);
    cr_expect_eq(prepared_bytes(never.graph), 0);
    built_free(&never);
    built_free(&least);
    built_free(&most);
    arena_free(arena);
}

/* ---- Plans that must not pass ---------------------------------------------------------------- */

static Id prepared_buffer(const Plan *plan)
{
    Id last = NONE;
    for (Id i = 0; i < plan->buffers; i++)
        if (plan->buffer[i].kind == BUFFER_PREPARED)
            last = i;
    cr_assert_neq(last, NONE);
    return last;
}

static void refuses(const Plan *plan, const Target *target, const char *words)
{
    const char *fault = plan_check(plan, target, NULL);
    cr_expect(fault && strstr(fault, words), "%s: %s", words, fault ? fault : "passed");
}

Test(prepare, the_checker_refuses_what_forward_could_not_read)
{
    const Target target = target_make(target_find("c"), 1);
    Arena *arena = arena_new();
    Built b = built(arena, shared, &target, UINT64_MAX);
    Plan *plan = b.plan;
    Graph *g = b.graph;
    const Id kept = prepared_buffer(plan);
    Buffer *buffer = &plan->buffer[kept];
    const Buffer right = *buffer;
    Value *value = &g->value.at[right.value];

    plan->program[PROGRAM_PREPARE].count--; /* the last is never made */
    refuses(plan, &target, "");
    plan->program[PROGRAM_PREPARE].count++;

    buffer->birth = plan->program[PROGRAM_FORWARD].begin; /* no longer persistent */
    refuses(plan, &target, "");
    *buffer = right;

    for (Id i = 0; i < plan->buffers; i++) /* in the bytes of anything else */
        if (i != kept && plan->buffer[i].root == i && plan->buffer[i].space == SPACE_ARENA &&
            plan->buffer[i].offset != right.offset) {
            buffer->offset = plan->buffer[i].offset;
            refuses(plan, &target, "");
            *buffer = right;
        }

    value->kind = VALUE_RESULT; /* another program's result */
    refuses(plan, &target, "which another program makes");
    value->kind = VALUE_PREPARED;

    for (Id v = 0; v < g->value.count; v++) /* made of what a call is given */
        if (g->value.at[v].kind == VALUE_PARAM) {
            g->value.at[v].kind = VALUE_INPUT;
            refuses(plan, &target, "which changes");
            g->value.at[v].kind = VALUE_PARAM;
        }

    const uint8_t program = g->node.at[value->node].program;
    g->node.at[value->node].program = PROGRAM_FORWARD;
    refuses(plan, &target, "");
    g->node.at[value->node].program = program;

    const char *fault = plan_check(plan, &target, NULL);
    cr_expect_null(fault, "%s", fault);
    built_free(&b);
    arena_free(arena);
}
