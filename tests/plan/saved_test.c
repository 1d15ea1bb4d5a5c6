/* What the forward pass keeps for the backward pass: what formulas need, once. */
#include "tests/plan/planned.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static Planned train(const char *middle)
{
    static const PlanOptions how = {.no_recompute = true};
    static char text[1000];
    snprintf(text, sizeof text,
             "model m(batch B = 2)\ninput x : f32[B, 4, 6, 6]\ninput y : i32[B]\n%s\n"
             "train cross_entropy(dense(flatten(h), 10), y) using sgd\n",
             middle);
    return planned_training(text, &how);
}

static bool has_op(const Node *node, const char *op, Phase phase)
{
    return node->program == PROGRAM_STEP && node->phase == phase && strcmp(node->op->name, op) == 0;
}

static const Node *find(const Graph *g, const char *op, Phase phase)
{
    for (size_t n = 0; n < g->node.count; n++)
        if (has_op(&g->node.at[n], op, phase))
            return &g->node.at[n];
    return NULL;
}

/* How many nodes of the phase read the value. */
static int readers(const Graph *g, Id value, Phase phase)
{
    int count = 0;
    for (size_t n = 0; n < g->node.count; n++)
        for (Id i = 0; i < g->node.at[n].uses; i++)
            count += g->node.at[n].phase == phase && node_use(g, &g->node.at[n], i).value == value;
    return count;
}

/* The op's result is kept, and read, or it is made again of what is kept. */
static void expect_again(const char *op, const char *middle)
{
    Planned p = train(middle);
    const Node *made = find(p.graph, op, PHASE_FORWARD), *again = find(p.graph, op, PHASE_BACKWARD);
    cr_assert_not_null(made, "%s", middle);
    cr_expect_eq(readers(p.graph, made->value, PHASE_BACKWARD), 0, "%s", middle);
    cr_assert_not_null(again, "%s", middle);
    cr_expect_gt(readers(p.graph, again->value, PHASE_BACKWARD), 0, "%s", middle);
    for (Id i = 0; i < made->uses; i++)
        cr_expect_eq(node_use(p.graph, made, i).value, node_use(p.graph, again, i).value);
    planned_free(&p);
}

Test(saved, a_norm_of_rows_is_made_again_of_what_its_gradient_keeps)
{
    expect_again("layernorm", "h = dense(layernorm(dense(x, 8)), 8)");
    expect_again("rmsnorm", "h = dense(rmsnorm(dense(x, 8)), 8)");
}

Test(saved, what_is_made_again_is_made_once_for_all_who_read_it)
{
    Planned p = train("n = layernorm(dense(x, 8))\nh = dense(n, 8) + dense(n, 8) * dense(n, 8)");
    int count = 0;
    for (size_t n = 0; n < p.graph->node.count; n++)
        count += has_op(&p.graph->node.at[n], "layernorm", PHASE_BACKWARD);
    cr_expect_eq(count, 1);
    planned_free(&p);
}

Test(saved, a_hint_keeps_what_would_be_made_again)
{
    Planned p = train("n = layernorm(dense(x, 8))\nkeep n\nh = dense(n, 8)");
    cr_expect_null(find(p.graph, "layernorm", PHASE_BACKWARD));
    planned_free(&p);
}

Test(saved, norms_of_groups_keep_their_result_and_not_what_it_is_of)
{
    static const char *const middle[] = {"h = groupnorm(conv2d(x, 8, kernel = 3), groups = 2)",
                                         "h = instancenorm(conv2d(x, 8, kernel = 3))"};
    for (int i = 0; i < 2; i++) {
        Planned p = train(middle[i]);
        const Node *norm = find(p.graph, "normalize", PHASE_FORWARD);
        cr_assert_not_null(norm);
        cr_expect_eq(readers(p.graph, node_use(p.graph, norm, 0).value, PHASE_BACKWARD), 0);
        planned_free(&p);
    }
}

Test(saved, activations_are_known_by_their_result_or_made_again_of_their_operand)
{
    static const char *const by_result[] = {"relu", "leaky_relu", "softplus", "tanh"};
    static const char *const again[] = {"elu", "selu", "celu", "gelu", "hardswish", "prelu"};
    static char text[200];
    for (int i = 0; i < 10; i++) {
        const char *name = i < 4 ? by_result[i] : again[i - 4];
        snprintf(text, sizeof text, "p = dense(x, 8)\nh = dense(%s(p), 8)", name);
        Planned p = train(text);
        int read = 0; /* tensors as large, of the forward pass, that the backward pass reads */
        for (Id v = 0; v < p.graph->value.count; v++) {
            const Value *value = &p.graph->value.at[v];
            read += value->node != NONE && value->program == PROGRAM_STEP &&
                    p.graph->node.at[value->node].phase == PHASE_FORWARD &&
                    value_count(value) == 2 * 4 * 6 * 8 && readers(p.graph, v, PHASE_BACKWARD) > 0;
        }
        cr_expect_eq(read, 2, "%s: %d", name, read); /* it, and what the last product reads */
        planned_free(&p);
    }
}

/* In the loop that reads it, of what its gradient keeps. */
Test(saved, an_activation_after_a_batchnorm_is_made_again_of_what_that_keeps)
{
    Planned p = train("c = conv2d(x, 8, kernel = 3)\nn = batchnorm(c)\n"
                      "h = conv2d(hardswish(n), 8, kernel = 3)");
    for (Id v = 0; v < p.graph->value.count; v++) {
        const Value *value = &p.graph->value.at[v];
        const Node *made = value->node == NONE ? NULL : &p.graph->node.at[value->node];
        if (made && value->program == PROGRAM_STEP && made->phase == PHASE_FORWARD &&
            value_count(value) == 2 * 8 * 4 * 4 && readers(p.graph, v, PHASE_BACKWARD) > 0)
            cr_expect_str_eq(made->op->name, "conv2d");
    }
    cr_expect_null(plan_check(p.plan, &p.target, NULL));
    planned_free(&p);
}

/* Statistics by the norm, all else in one loop with what follows. */
Test(saved, a_batchnorm_leaves_its_statistics_and_fuses_with_what_follows)
{
    Planned p = train("h = relu(batchnorm(conv2d(x, 8, kernel = 3)) + 1.0)");
    const Node *norm = find(p.graph, "batchnorm_train", PHASE_FORWARD);
    const Node *relu = find(p.graph, "relu", PHASE_FORWARD);
    cr_assert(norm && relu);
    cr_expect_eq(readers(p.graph, norm->value, PHASE_FORWARD), 0);
    cr_expect_eq(readers(p.graph, norm->value, PHASE_BACKWARD), 0);
    const Cluster *loop = &p.clusters->at[p.clusters->of[p.graph->value.at[relu->value].node]];
    cr_expect_eq(loop->nodes, 3);
    cr_expect_null(plan_check(p.plan, &p.target, NULL));
    planned_free(&p);
}

Test(saved, a_hint_on_a_batchnorm_is_for_what_is_made_of_its_statistics)
{
    Planned p = train("n = batchnorm(conv2d(x, 8, kernel = 3))\nkeep n\nh = relu(n)");
    const Node *relu = find(p.graph, "relu", PHASE_FORWARD);
    cr_assert_not_null(relu);
    cr_expect(p.graph->value.at[node_use(p.graph, relu, 0).value].hint & HINT_KEEP);
    planned_free(&p);
}
