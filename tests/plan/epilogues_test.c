/* Which elementwise ops run after a product, and what that leaves stored. */
#include "tests/plan/planned.h"

#include <criterion/criterion.h>
#include <string.h>

#define X "model t\ninput x : f32[32, 64]\n"
#define IMAGE "model t\ninput x : f32[2, 8, 16, 16]\n"
#define TRAIN "input t : f32[32, 64]\n"

static uint64_t nothing(const Target *target, const Graph *g, const Clusters *clusters, Id id)
{
    (void)target, (void)g, (void)clusters, (void)id;
    return 0;
}

/* Nodes of the cluster that makes the value, and whether a product is its first. */
static void expect_cluster(const Planned *p, const char *name, Id nodes, bool product)
{
    const Cluster *c = planned_cluster(p, name);
    cr_expect_eq(c->nodes, nodes, "%s runs in a cluster of %u", name, c->nodes);
    cr_expect_eq(cluster_has_epilogue(p->graph, p->clusters, c), product && nodes > 1);
    if (product)
        cr_expect(p->graph->node.at[p->clusters->node[c->node]].op->flags & OP_EPILOGUE);
}

Test(epilogues, bias_and_activation_run_behind_their_product)
{
    Planned p = planned_text(X "h = gelu(dense(x, 64))\noutput y = softmax(h)\n", NULL, NULL);
    expect_cluster(&p, "h", 3, true);
    cr_expect_eq(planned_roots(&p, BUFFER_ACTIVATION), 1);
    planned_free(&p);
}

Test(epilogues, batchnorm_and_a_shortcut_run_behind_the_convolution_that_comes_last)
{
    Planned p = planned_text(IMAGE "s = batchnorm(conv2d(x, 8, kernel = 1, bias = false))\n"
                                   "b = batchnorm(conv2d(x, 8, kernel = 3, pad = same))\n"
                                   "y = relu(b + s)\noutput z = maxpool2d(y, 2)\n",
                             NULL, NULL);
    expect_cluster(&p, "s", 4, true);
    expect_cluster(&p, "y", 6, true);
    cr_expect_neq(planned_cluster(&p, "s"), planned_cluster(&p, "y"));
    planned_free(&p);
}

Test(epilogues, what_the_backward_pass_reads_ends_an_epilogue)
{
    Planned p = planned_training(X TRAIN "h = dense(x, 64)\ng = gelu(h)\ny = dense(g, 64)\n"
                                         "train mse(y, t) using sgd(lr = 0.1)\n",
                                 NULL);
    bool found = false;
    for (Id i = 0; i < p.clusters->count; i++) {
        const Cluster *c = &p.clusters->at[i];
        const Node *last = &p.graph->node.at[p.clusters->node[c->node + c->nodes - 1]];
        if (c->program != PROGRAM_STEP || strncmp(last->op->name, "gelu", 4) != 0)
            continue;
        if (last->op->flags & OP_AGAIN) { /* from what is stored: cheap to compute again */
            cr_expect_eq(c->nodes, 1);
            found |= last->phase == PHASE_FORWARD;
        } else {
            cr_expect(cluster_has_epilogue(p.graph, p.clusters, c));
        }
    }
    cr_expect(found);
    planned_free(&p);
}

Test(epilogues, a_product_that_others_read_is_stored)
{
    Planned p = planned_text(X "h = dense(x, 64, bias = false)\ny = relu(h)\n"
                               "output z = softmax(h) + y\n",
                             NULL, NULL);
    expect_cluster(&p, "h", 1, true);
    planned_free(&p);
    p = planned_text(X "h = dense(x, 64, bias = false)\nkeep h\noutput y = relu(h)\n", NULL, NULL);
    expect_cluster(&p, "h", 1, true);
    planned_free(&p);
    p = planned_text(X "output h = dense(x, 64, bias = false)\noutput y = relu(h)\n", NULL, NULL);
    expect_cluster(&p, "h", 1, true);
    planned_free(&p);
}

Test(epilogues, a_product_does_not_wait_for_what_is_large)
{
    Planned p = planned_text(X "h = dense(x, 64, bias = false)\ns = softmax(tanh(x))\n"
                               "output y = h * s\n",
                             NULL, NULL);
    expect_cluster(&p, "h", 1, true);
    planned_free(&p);
}

Test(epilogues, a_product_does_not_run_before_a_loop_that_its_tail_reads)
{
    Planned p = planned_text(X "a = tanh(x)\nh = dense(softmax(x), 64, bias = false)\n"
                               "b = sigmoid(a)\noutput z = softmax(b)\noutput y = h + a\n",
                             NULL, NULL);
    cr_expect_eq(planned_cluster(&p, "a"), planned_cluster(&p, "b")); /* which stands after h */
    cr_expect_null(p.fault, "%s", p.fault);
    expect_cluster(&p, "h", 1, true);
    planned_free(&p);
}

Test(epilogues, what_stands_before_the_product_may_be_part_of_it)
{
    Planned p = planned_text(X "g = tanh(x)\noutput y = g * dense(softmax(x), 64)\n", NULL, NULL);
    expect_cluster(&p, "y", 4, true);
    planned_free(&p);
}

Test(epilogues, other_elements_than_its_own_are_not_behind_it)
{
    Planned p =
        planned_text(X "h = dense(x, 64, bias = false)\noutput y = h + h[0:1]\n", NULL, NULL);
    expect_cluster(&p, "h", 1, true);
    planned_free(&p);
    p = planned_text(X "h = dense(x, 64, bias = false)\noutput y = h > 0.0\n", NULL, NULL);
    expect_cluster(&p, "h", 1, true);
    planned_free(&p);
}

Test(epilogues, the_result_takes_no_operand_of_the_tail)
{
    Planned p = planned_text(X "r = log_softmax(x)\nh = dense(softmax(x), 64) + r\n"
                               "output y = softmax(h)\n",
                             NULL, NULL);
    expect_cluster(&p, "h", 3, true);
    cr_expect_neq(planned_root(&p, "h"), planned_root(&p, "r"));
    planned_free(&p);
}

Test(epilogues, a_product_with_one_is_written_into_a_concat)
{
    const Target bare = {
        .name = "bare", .align = 64, .threads = 1, .epilogues = true, .workspace = nothing};
    Planned p = planned_text(IMAGE "a = relu(conv2d(x, 4, kernel = 1))\nb = tanh(x)\n"
                                   "c = concat(a, b, axis = 1)\noutput y = global_avgpool(c)\n",
                             NULL, &bare);
    expect_cluster(&p, "a", 2, true);
    cr_expect_eq(planned_root(&p, "a"), planned_root(&p, "c"));
    planned_free(&p);
}

Test(epilogues, a_target_may_have_none)
{
    const Target cuda = target_make(target_find("cuda"), 1);
    Planned p = planned_text(X "output y = relu(dense(x, 64))\n", NULL, &cuda);
    expect_cluster(&p, "y", 2, false);
    planned_free(&p);
}

Test(epilogues, a_gradient_is_added_where_its_sum_lies)
{
    const PlanOptions how = {.no_recompute = true};
    Planned p = planned_training("model m(batch B = 4)\ninput x : f32[B, 64]\ninput y : i32[B]\n"
                                 "train cross_entropy(dense(x, 10, bias = false), y) using sgd {\n"
                                 "accumulate = 2\n}\n",
                                 &how);
    Id sums = 0;
    for (Id i = 0; i < p.clusters->count; i++) {
        const Cluster *c = &p.clusters->at[i];
        if (!cluster_keeps_aside(p.graph, p.clusters, c))
            continue;
        sums++;
        cr_expect_eq(c->nodes, 2);
        cr_expect_eq(c->results, 1);
        cr_expect(value_is_version(p.graph, p.clusters->result[c->result]));
    }
    cr_expect_eq(sums, 1);
    cr_expect_null(plan_check(p.plan, &p.target, NULL));
    planned_free(&p);
}

Test(epilogues, gradients_of_convolutions_and_biases_are_added_where_their_sums_lie)
{
    const PlanOptions how = {.no_recompute = true};
    Planned p =
        planned_training("model m(batch B = 4)\ninput x : f32[B, 3, 8, 8]\ninput y : i32[B]\n"
                         "h = relu(conv2d(x, 4, kernel = 3))\n"
                         "h = conv2d(h, 4, kernel = 3, groups = 4)\n"
                         "train cross_entropy(dense(flatten(h), 10), y) using sgd {\n"
                         "accumulate = 2\n}\n",
                         &how);
    Id sums = 0;
    for (Id i = 0; i < p.clusters->count; i++) {
        const Cluster *c = &p.clusters->at[i];
        sums += cluster_keeps_aside(p.graph, p.clusters, c);
        const Node *first = &p.graph->node.at[p.clusters->node[c->node]];
        if (!(first->op->flags & OP_EPILOGUE) && c->nodes > 1 && first->op->flags & OP_ASIDE)
            cr_expect(cluster_keeps_aside(p.graph, p.clusters, c));
    }
    cr_expect_eq(sums, 6); /* weights and biases of three layers */
    cr_expect_null(plan_check(p.plan, &p.target, NULL));
    planned_free(&p);
}

/* ---- What the checker refuses ---------------------------------------------------------------- */

Test(epilogues, the_checker_refuses_what_a_kernel_cannot_run)
{
    Planned p =
        planned_text(X "r = log_softmax(x)\noutput y = dense(softmax(x), 64) + r\n", NULL, NULL);
    Cluster *c = &p.clusters->at[p.clusters->count - 1];
    cr_assert(cluster_has_epilogue(p.graph, p.clusters, c));
    Target none = p.target;
    none.epilogues = false;
    cr_expect_not_null(plan_check(p.plan, &none, NULL));
    c->results = 0;
    cr_expect_not_null(plan_check(p.plan, &p.target, NULL));
    c->results = 1;
    cr_expect_null(plan_check(p.plan, &p.target, NULL));
    /* the result over an operand of the epilogue */
    const Occurrence *o =
        &p.plan->program[PROGRAM_FORWARD].at[p.plan->program[PROGRAM_FORWARD].count - 1];
    Buffer *result = &p.plan->buffer[p.plan->arg[o->arg + c->operands]];
    const uint64_t offset = result->offset;
    for (Id i = 0; i < c->operands; i++) {
        const Buffer *operand = &p.plan->buffer[p.plan->arg[o->arg + i]];
        if (operand->bytes != result->bytes)
            continue;
        result->offset = operand->offset;
        cr_expect_not_null(plan_check(p.plan, &p.target, NULL));
        result->offset = offset;
    }
    planned_free(&p);
}
