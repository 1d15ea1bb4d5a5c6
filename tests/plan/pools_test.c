/* What pools keep for their gradients, and where a relu beside them runs. */
#include "tests/plan/planned.h"

#include <criterion/criterion.h>
#include <string.h>

/* The pool of a training step, and whether it reads what a relu made. */
static const Node *pool_of(const Graph *g, bool *behind_relu)
{
    for (size_t n = 0; n < g->node.count; n++) {
        const Node *node = &g->node.at[n];
        if (node->program != PROGRAM_STEP || strcmp(node->op->name, "maxpool2d") != 0)
            continue;
        Id made = g->value.at[node_use(g, node, 0).value].node;
        *behind_relu = made != NONE && strcmp(g->node.at[made].op->name, "relu") == 0;
        return node;
    }
    return NULL;
}

static Planned train(const char *middle)
{
    static const PlanOptions how = {.no_recompute = true};
    static char text[1000];
    snprintf(text, sizeof text,
             "model m(batch B = 2)\ninput x : f32[B, 3, 8, 8]\ninput y : i32[B]\n"
             "h = relu(conv2d(x, 4, kernel = 3, pad = same))\n%s\n"
             "train cross_entropy(dense(flatten(p), 10), y) using sgd\n",
             middle);
    return planned_training(text, &how);
}

Test(pools, a_relu_runs_behind_its_pool_where_it_has_fewer_elements)
{
    bool behind = true;
    Planned p = train("p = maxpool2d(h, 2)");
    cr_assert_not_null(pool_of(p.graph, &behind));
    cr_expect_not(behind);
    cr_expect_null(plan_check(p.plan, &p.target, NULL));
    planned_free(&p);
}

Test(pools, a_relu_runs_behind_all_the_pools_that_follow_it)
{
    bool behind = true;
    Planned p = train("p = maxpool2d(maxpool2d(h, 2), 2) + random_normal([2, 4, 2, 2])");
    const Node *pool = pool_of(p.graph, &behind);
    cr_assert_not_null(pool);
    cr_expect_not(behind);
    const Value *first = &p.graph->value.at[pool->value];
    for (size_t n = 0; n < p.graph->node.count; n++) {
        const Node *node = &p.graph->node.at[n];
        if (node->program == PROGRAM_STEP && strcmp(node->op->name, "relu") == 0)
            cr_expect_eq(p.graph->value.at[node->value].dim[3], first->dim[3] / 2);
    }
    cr_expect_null(plan_check(p.plan, &p.target, NULL));
    planned_free(&p);
}

Test(pools, a_relu_stays_where_somebody_else_reads_it_or_it_is_kept)
{
    static const char *const middle[] = {"p = maxpool2d(h, 2) + avgpool2d(h, 2)",
                                         "p = maxpool2d(h, 2)\nkeep h",
                                         "p = maxpool2d(h, 2)\nkeep p"};
    for (int i = 0; i < 3; i++) {
        bool behind = false;
        Planned p = train(middle[i]);
        cr_assert_not_null(pool_of(p.graph, &behind));
        cr_expect(behind, "%s", middle[i]);
        planned_free(&p);
    }
}

Test(pools, the_backward_pass_needs_a_byte_of_each_window)
{
    bool behind;
    Planned p = train("p = maxpool2d(h, 2)");
    const Node *pool = pool_of(p.graph, &behind);
    const Id x = node_use(p.graph, pool, 0).value;
    cr_assert_eq(pool->values, 2);
    cr_expect_eq(p.graph->value.at[node_value(pool, 1)].dtype, U8);
    for (size_t n = 0; n < p.graph->node.count; n++)
        for (Id i = 0; i < p.graph->node.at[n].uses; i++)
            if (p.graph->node.at[n].phase == PHASE_BACKWARD)
                cr_expect_neq(node_use(p.graph, &p.graph->node.at[n], i).value, x);
    planned_free(&p);
}

Test(pools, a_window_of_more_places_than_a_byte_counts_has_integers)
{
    bool behind;
    Planned p = train("p = maxpool2d(conv_transpose2d(h, 4, kernel = 4, stride = 4), 16)");
    const Node *pool = pool_of(p.graph, &behind);
    cr_expect_eq(p.graph->value.at[node_value(pool, 1)].dtype, I32);
    planned_free(&p);
}
