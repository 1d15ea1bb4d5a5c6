/* What the planner decides, seen on small models: which values share bytes, and which do not. */
#include "tests/plan/planned.h"

#include <criterion/criterion.h>
#include <string.h>

#define X "model t\ninput x : f32[32, 64]\n"
#define IMAGE "model t\ninput x : f32[2, 8, 16, 16]\n"

/* A target whose products take 1000 bytes of workspace, and nothing else any. */
static uint64_t thousand(const Target *target, const Graph *g, const Clusters *clusters, Id id)
{
    (void)target;
    const Node *node = &g->node.at[clusters->node[clusters->at[id].node]];
    return strcmp(node->op->name, "matmul") == 0 ? 1000 : 0;
}

static uint64_t nothing(const Target *target, const Graph *g, const Clusters *clusters, Id id)
{
    (void)target, (void)g, (void)clusters, (void)id;
    return 0;
}

static const Target bare = {.name = "bare", .align = 64, .threads = 1, .workspace = nothing};

static Planned planned(const char *text)
{
    return planned_text(text, NULL, &bare);
}

/* ---- Fusion ---------------------------------------------------------------------------------- */

Test(fuse, a_chain_of_elementwise_ops_is_one_cluster)
{
    Planned p = planned(X "output y = tanh(relu(x * 2.0 + 1.0) - x)\n");
    cr_expect_eq(p.clusters->count, 1);
    cr_expect_eq(p.clusters->at[0].nodes, 5);
    cr_expect_eq(planned_roots(&p, BUFFER_ACTIVATION), 0);
    planned_free(&p);
}

Test(fuse, a_value_read_before_the_chain_ends_is_stored_first)
{
    Planned p = planned(X "h = relu(x)\ns = sum(h, axis = 0)\noutput y = exp(h) + s\n");
    cr_expect_neq(planned_cluster(&p, "h"), planned_cluster(&p, "y"));
    cr_expect_not_null(planned_buffer(&p, "h"));
    planned_free(&p);
}

Test(fuse, a_value_read_after_the_chain_is_written_by_it)
{
    Planned p = planned(X "h = relu(x)\ne = exp(h)\noutput y = e @ transpose(h)\n");
    cr_expect_eq(planned_cluster(&p, "h"), planned_cluster(&p, "e"));
    cr_expect_eq(planned_cluster(&p, "h")->results, 2);
    planned_free(&p);
}

Test(fuse, a_broadcast_of_a_value_of_the_loop_waits_for_all_of_it)
{
    Planned p = planned(X "h = relu(x)\ng = exp(h)\noutput y = h * g[0:1]\n");
    cr_expect_eq(planned_cluster(&p, "h"), planned_cluster(&p, "g"));
    cr_expect_neq(planned_cluster(&p, "g"), planned_cluster(&p, "y"));
    planned_free(&p);
}

Test(fuse, other_shapes_and_kernels_end_a_cluster)
{
    Planned p =
        planned(X "h = relu(x)\ns = softmax(h)\noutput y = relu(s)\noutput z = tanh(s[0:1])\n");
    cr_expect_eq(p.clusters->count, 4);
    planned_free(&p);
}

Test(fuse, loops_stay_of_a_readable_size)
{
    Planned p = planned(X "h = x\nrepeat i in 0..100 { h = tanh(h) }\noutput y = h\n");
    cr_expect_gt(p.clusters->count, 1);
    for (Id i = 0; i < p.clusters->count; i++)
        cr_expect_leq(p.clusters->at[i].nodes, 32);
    planned_free(&p);
}

Test(fuse, equal_nodes_are_computed_once)
{
    Planned p = planned(X "a = softmax(x)\nb = softmax(x)\noutput y = a + b\n");
    cr_expect_eq(p.clusters->count, 2);
    planned_free(&p);
}

/* ---- Views and in place ---------------------------------------------------------------------- */

Test(plan, views_take_no_bytes)
{
    Planned p = planned(X "h = softmax(x)\nv = transpose(reshape(h, [8, 4, 64]), [2, 0, 1])\n"
                          "output y = sum(v[:, 1:3], axis = 0)\n");
    cr_expect_eq(planned_roots(&p, BUFFER_ACTIVATION), 1);
    cr_expect_eq(p.clusters->count, 2);
    planned_free(&p);
}

Test(plan, a_result_takes_the_bytes_of_an_operand_that_dies)
{
    Planned p = planned(X "a = dense(x, 48, bias = false)\nb = softmax(a)\nc = relu(b)\n"
                          "output y = dense(c, 8, bias = false)\n");
    cr_expect_eq(planned_root(&p, "b"), planned_root(&p, "a"));
    cr_expect_eq(planned_root(&p, "c"), planned_root(&p, "a"));
    planned_free(&p);
}

Test(plan, a_result_leaves_an_operand_that_is_read_later)
{
    Planned p = planned(X "a = dense(x, 48, bias = false)\nb = softmax(a)\n"
                          "c = dense(b, 48, bias = false)\noutput y = c @ transpose(a)\n");
    cr_expect_neq(planned_root(&p, "b"), planned_root(&p, "a"));
    planned_free(&p);
}

Test(plan, a_result_leaves_inputs_parameters_and_outputs)
{
    Planned p = planned(X "param w : [32, 64]\na = softmax(x)\nb = softmax(w)\noutput s = tanh(x)\n"
                          "c = softmax(s)\noutput y = (a @ transpose(b)) @ c\n");
    cr_expect_neq(planned_root(&p, "a"), planned_root(&p, "x"));
    cr_expect_neq(planned_root(&p, "b"), planned_root(&p, "w"));
    cr_expect_neq(planned_root(&p, "c"), planned_root(&p, "s"));
    planned_free(&p);
}

Test(plan, a_loop_that_reads_other_elements_is_not_in_place)
{
    Planned p = planned("model t\ninput x : f32[32, 32]\na = dense(x, 32, bias = false)\n"
                        "b = a + transpose(a)\noutput y = dense(b, 8, bias = false)\n");
    cr_expect_neq(planned_root(&p, "b"), planned_root(&p, "a"));
    planned_free(&p);
}

Test(plan, a_product_is_not_in_place)
{
    Planned p = planned("model t\ninput x : f32[32, 32]\na = dense(x, 32, bias = false)\n"
                        "b = dense(a, 32, bias = false)\noutput y = tanh(b)\n");
    cr_expect_neq(planned_root(&p, "b"), planned_root(&p, "a"));
    planned_free(&p);
}

Test(plan, a_deep_chain_needs_two_buffers)
{
    Planned p = planned(X "h = x\nrepeat i in 0..20 { h = relu(dense(h, 64)) }\noutput y = h\n");
    uint64_t one = 32 * 64 * sizeof(float);
    cr_expect_eq(p.plan->arena[SPACE_ARENA] - p.plan->persistent, 2 * one);
    planned_free(&p);
}

/* ---- Windows of a concat --------------------------------------------------------------------- */

Test(plan, branches_are_written_into_their_concat)
{
    Planned p = planned(IMAGE "a = conv2d(x, 4, kernel = 3, pad = same)\n"
                              "b = maxpool2d(x, 3, stride = 1, pad = 1)\n"
                              "c = concat(a, b, axis = 1)\noutput y = global_avgpool(c)\n");
    cr_expect_eq(planned_root(&p, "a"), planned_root(&p, "c"));
    cr_expect_eq(planned_root(&p, "b"), planned_root(&p, "c"));
    cr_expect_eq(planned_buffer(&p, "b")->layout.offset, 4 * 16 * 16);
    cr_expect_eq(planned_buffer(&p, "b")->layout.stride[0], 12 * 16 * 16);
    planned_free(&p);
}

Test(plan, a_chain_of_concats_lies_in_one_buffer)
{
    Planned p = planned(IMAGE "a = concat(x, conv2d(x, 4, kernel = 1), axis = 1)\n"
                              "b = concat(a, conv2d(a, 4, kernel = 1), axis = 1)\n"
                              "c = concat(b, conv2d(b, 4, kernel = 1), axis = 1)\n"
                              "output y = global_avgpool(c)\n");
    cr_expect_eq(planned_root(&p, "a"), planned_root(&p, "c"));
    cr_expect_eq(planned_root(&p, "b"), planned_root(&p, "c"));
    uint64_t whole = 2 * 20 * 16 * 16 * sizeof(float);
    cr_expect_leq(p.plan->arena[SPACE_ARENA] - p.plan->persistent, whole + 3 * 4096);
    planned_free(&p);
}

Test(plan, a_chain_of_concats_lies_in_one_buffer_where_batches_are_normalized)
{
    Planned p =
        planned_training("model t\ninput x : f32[2, 8, 40, 40]\n"
                         "a = concat(x, conv2d(relu(batchnorm(x)), 4, kernel = 1), axis = 1)\n"
                         "b = concat(a, conv2d(relu(batchnorm(a)), 4, kernel = 1), axis = 1)\n"
                         "c = concat(b, conv2d(relu(batchnorm(b)), 4, kernel = 1), axis = 1)\n"
                         "train mean(conv2d(relu(batchnorm(c)), 1, kernel = 1)) using sgd()\n",
                         NULL);
    cr_expect_eq(planned_root(&p, "a"), planned_root(&p, "c"));
    cr_expect_eq(planned_root(&p, "b"), planned_root(&p, "c"));
    planned_free(&p);
}

/* A window along another axis has gaps within a sample. */
Test(plan, what_normalizes_batches_reads_no_window_with_gaps_in_a_sample)
{
    Planned p = planned_training(
        IMAGE "a = conv2d(x, 4, kernel = 1)\nb = conv2d(x, 4, kernel = 1)\n"
              "c = concat(a, b, axis = 2)\n"
              "train mean(conv2d(c, 1, kernel = 1)) + mean(batchnorm(a)) using sgd()\n",
        NULL);
    cr_expect_neq(planned_root(&p, "a"), planned_root(&p, "c"));
    planned_free(&p);
}

Test(plan, a_skip_connection_waits_in_the_concat_that_takes_it)
{
    Planned p = planned(IMAGE "a = relu(conv2d(x, 8, kernel = 3, pad = same))\n"
                              "d = conv2d(maxpool2d(a, 2), 8, kernel = 3, pad = same)\n"
                              "u = conv_transpose2d(d, 8, kernel = 2, stride = 2)\n"
                              "c = concat(a, u, axis = 1)\n"
                              "output y = conv2d(c, 1, kernel = 1)\n");
    cr_expect_eq(planned_root(&p, "a"), planned_root(&p, "c"));
    cr_expect_eq(planned_root(&p, "u"), planned_root(&p, "c"));
    planned_free(&p);
}

Test(plan, a_concat_along_the_first_axis_takes_any_producer)
{
    Planned p = planned(X "a = layernorm(x)\nb = rmsnorm(x)\nc = concat(a, b, axis = 0)\n"
                          "output y = sum(c, axis = 0)\n");
    cr_expect_eq(planned_root(&p, "a"), planned_root(&p, "c"));
    cr_expect_eq(planned_root(&p, "b"), planned_root(&p, "c"));
    planned_free(&p);
}

Test(plan, what_two_concats_take_lies_in_neither)
{
    Planned p = planned(X "a = tanh(x)\nb = concat(a, x, axis = 0)\nc = concat(x, a, axis = 0)\n"
                          "output y = b @ transpose(c)\n");
    cr_expect_neq(planned_root(&p, "a"), planned_root(&p, "b"));
    cr_expect_neq(planned_root(&p, "a"), planned_root(&p, "c"));
    planned_free(&p);
}

Test(plan, inputs_are_copied_into_a_concat)
{
    Planned p = planned(X "input z : f32[32, 64]\noutput y = concat(x, z, axis = 1)\n");
    cr_expect_neq(planned_root(&p, "x"), planned_root(&p, "y"));
    planned_free(&p);
}

/* ---- What has bytes, and for how long -------------------------------------------------------- */

Test(plan, outputs_stay_until_the_end)
{
    Planned p = planned(X "output a = tanh(x)\nh = a\nrepeat i in 0..6 { h = relu(dense(h, 64)) }\n"
                          "output y = h\n");
    const Buffer *a = planned_buffer(&p, "a");
    cr_expect_eq(a->death, p.plan->end);
    cr_expect_eq(a->kind, BUFFER_OUTPUT);
    planned_free(&p);
}

Test(plan, results_that_nobody_reads_are_not_stored)
{
    Planned p = planned("model t\ninput q : f32[1, 2, 8, 4]\noutput y = sdpa(q, q, q)\n");
    Id outputs = 0, stored = 0;
    for (size_t n = 0; n < p.graph->node.count; n++)
        outputs += p.graph->node.at[n].values;
    for (Id i = 0; i < p.clusters->count; i++)
        stored += p.clusters->at[i].results;
    cr_expect_gt(outputs, stored, "the saved statistics are for training");
    planned_free(&p);
}

Test(plan, what_only_training_reads_takes_no_bytes)
{
    Planned p = planned(X "input labels : i32[32]\nlogits = dense(x, 10)\n"
                          "output y = softmax(logits)\n"
                          "train cross_entropy(logits, labels) using sgd(lr = 0.1)\n");
    cr_expect_null(planned_buffer(&p, "labels"));
    planned_free(&p);
}

Test(plan, workspace_is_a_buffer_for_one_step)
{
    Target target = bare;
    target.workspace = thousand;
    Planned p = planned_text(X "output y = tanh(dense(x, 8, bias = false))\n", NULL, &target);
    cr_assert_eq(planned_roots(&p, BUFFER_WORKSPACE), 1);
    for (Id i = 0; i < p.plan->buffers; i++)
        if (p.plan->buffer[i].kind == BUFFER_WORKSPACE) {
            cr_expect_eq(p.plan->buffer[i].bytes, 1000);
            cr_expect_eq(p.plan->buffer[i].death, p.plan->buffer[i].birth + 1);
        }
    uint64_t result = 32 * 8 * sizeof(float);
    cr_expect_eq(p.plan->arena[SPACE_ARENA] - p.plan->persistent, result + 1024);
    planned_free(&p);
}

Test(plan, state_of_the_target_is_a_buffer_that_stays)
{
    Target target = bare;
    const char *text = X "output y = tanh(dense(x, 8, bias = false))\n";
    Planned plain = planned_text(text, NULL, &target);
    target.state = 300;
    Planned p = planned_text(text, NULL, &target);
    cr_expect_eq(p.plan->persistent, plain.plan->persistent + 320);
    cr_expect_eq(p.plan->arena[SPACE_ARENA], plain.plan->arena[SPACE_ARENA] + 320);
    cr_expect_null(plan_check(p.plan, &target, NULL));
    target.state = 321; /* more than was planned for */
    cr_expect_not_null(plan_check(p.plan, &target, NULL));
    target.state = 300;
    Id state = NONE, result = NONE;
    for (Id i = 0; i < p.plan->buffers; i++) {
        if (p.plan->buffer[i].kind == BUFFER_STATE)
            state = i;
        if (p.plan->buffer[i].kind == BUFFER_OUTPUT)
            result = i;
    }
    p.plan->buffer[result].offset = p.plan->buffer[state].offset;
    cr_expect_not_null(plan_check(p.plan, &target, NULL));
    planned_free(&plain);
    planned_free(&p);
}

static const char *const several[] = {
    X "h = relu(dense(x, 100))\nh = relu(dense(h, 70))\noutput y = softmax(dense(h, 10))\n",
    IMAGE "a = conv2d(x, 4, kernel = 3)\nb = avgpool2d(a, 2)\noutput y = flatten(b)\n",
    IMAGE "a = concat(x, conv2d(x, 4, kernel = 1), axis = 1)\n"
          "b = concat(a, conv2d(a, 4, kernel = 1), axis = 1)\n"
          "output y = global_avgpool(b)\noutput z = sum(a)\n",
    "model t\ninput x : f32[2, 9, 16]\nh = x + attention(layernorm(x), heads = 4, causal = true)\n"
    "output y = layernorm(h + dense(gelu(dense(h, 64)), 16))\n",
};
enum { SEVERAL = sizeof several / sizeof *several };

Test(plan, bytes_that_persist_are_never_shared)
{
    for (int k = 0; k < SEVERAL; k++) {
        Planned p = planned_text(several[k], NULL, NULL);
        for (Id i = 0; i < p.plan->buffers; i++)
            for (Id j = 0; j < p.plan->buffers; j++) {
                const Buffer *a = &p.plan->buffer[i], *b = &p.plan->buffer[j];
                if (i == j || a->kind > BUFFER_INPUT)
                    continue;
                bool apart = a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset;
                cr_expect(apart, "model %d: buffers %u and %u", k, i, j);
            }
        planned_free(&p);
    }
}

Test(plan, the_bounds_are_below_the_arena)
{
    for (int k = 0; k < SEVERAL; k++) {
        Planned p = planned_text(several[k], NULL, NULL);
        cr_expect_geq(p.plan->arena[SPACE_ARENA], p.plan->bound);
        cr_expect_geq(p.plan->arena[SPACE_ARENA], p.plan->peak);
        cr_expect_geq(p.plan->arena[SPACE_ARENA], p.plan->floor);
        cr_expect_gt(p.plan->floor, p.plan->persistent);
        /* the peak counts bytes, the floor whole aligned buffers */
        cr_expect_geq(p.plan->peak + 64 * p.plan->buffers, p.plan->floor);
        planned_free(&p);
    }
}

Test(plan, the_same_model_gives_the_same_plan)
{
    for (int k = 0; k < SEVERAL; k++) {
        Planned p = planned_text(several[k], NULL, NULL), q = planned_text(several[k], NULL, NULL);
        cr_assert_eq(p.plan->buffers, q.plan->buffers);
        for (Id i = 0; i < p.plan->buffers; i++)
            cr_expect_eq(p.plan->buffer[i].offset, q.plan->buffer[i].offset);
        planned_free(&p);
        planned_free(&q);
    }
}

Test(plan, external_inputs_and_outputs_take_no_arena)
{
    const char *text = X "output y = tanh(dense(x, 16, bias = false))\n";
    uint64_t input = 32 * 64 * sizeof(float), output = 32 * 16 * sizeof(float);
    Planned inside = planned_text(text, NULL, &bare);
    Planned outside = planned_text(text, &(PlanOptions){.io_external = true}, &bare);
    cr_expect_eq(inside.plan->arena[SPACE_ARENA],
                 outside.plan->arena[SPACE_ARENA] + input + output);
    planned_free(&inside);
    planned_free(&outside);
}

Test(plan, external_parameters_take_no_arena)
{
    const char *text = X "output y = tanh(dense(x, 16, bias = false))\n";
    Planned inside = planned_text(text, NULL, &bare);
    Planned outside = planned_text(text, &(PlanOptions){.params_external = true}, &bare);
    cr_expect_eq(inside.plan->arena[SPACE_ARENA],
                 outside.plan->arena[SPACE_ARENA] + 64 * 16 * sizeof(float));
    planned_free(&inside);
    planned_free(&outside);
}

Test(plan, an_external_output_may_be_a_concat)
{
    const char *text = IMAGE "a = conv2d(x, 4, kernel = 1)\nb = relu(conv2d(x, 4, kernel = 1))\n"
                             "output y = concat(a, b, axis = 1)\n";
    Planned p = planned_text(text, &(PlanOptions){.io_external = true}, &bare);
    cr_expect_eq(planned_root(&p, "a"), planned_root(&p, "y"));
    cr_expect(planned_buffer(&p, "a")->space == SPACE_CALLER);
    planned_free(&p);
}

Test(plan, a_long_recurrence_is_planned_in_little_memory)
{
    Planned p = planned("model t\ninput x : f32[2, 8]\nh = tanh(x)\nall = h\n"
                        "repeat t in 0..300 {\n  h = softmax(h)\n"
                        "  all = concat(all, h, axis = 1)\n}\noutput y = all + 1.0\n");
    cr_expect_lt(arena_bytes(p.arena), 16u << 20, "%zu bytes", arena_bytes(p.arena));
    planned_free(&p);
}

/* Where there is room, so that a program computes their addresses from the number of the layer. */
Test(plan, equal_layers_lie_at_even_distances)
{
    static const char text[] = "model t(batch B = 1024, C = 64)\n"
                               "input x : f32[B, C]\ninput next : i32[B]\n"
                               "block layer(x) {\n"
                               "  return x + dense(gelu(dense(layernorm(x), 4*C)), C)\n"
                               "}\n"
                               "h = x\nrepeat i in 0..6 { h = layer(h) }\n"
                               "train cross_entropy(dense(h, 500), next)"
                               " using adamw(lr = 1e-3) { clip = 1.0 }\n";
    static const char *const name[] = {"d.layer.%d.dense.1/matmul/matmul#2",
                                       "d.layer.%d.dense.0/matmul/matmul#2",
                                       "d.layer.%d.gelu.0/gelu_exact/gelu_exact_da"};
    Planned p = planned_training(text, NULL);
    for (size_t k = 0; k < sizeof name / sizeof *name; k++) {
        int64_t offset[6];
        for (int i = 0; i < 6; i++) {
            char own[80];
            snprintf(own, sizeof own, name[k], i);
            cr_assert_not_null(planned_buffer(&p, own), "%s", own);
            offset[i] = (int64_t)planned_buffer(&p, own)->offset;
        }
        for (int i = 2; i < 6; i++)
            cr_expect_eq(offset[i] - offset[i - 1], offset[1] - offset[0], "%s of %d", name[k], i);
    }
    planned_free(&p);
}
