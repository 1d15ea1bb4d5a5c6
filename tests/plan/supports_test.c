/* A target that lacks a kernel or a dtype: an error at the op's place in the source. */
#include "codegen/codegen.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char text[] = "model m(batch B = 4)\n"
                           "input x : f32[B, 3]\n"
                           "h = tanh(x)\n"
                           "output y = softmax(h)\n"
                           "output z = cast(h, f64)\n";

static bool no_softmax(const OpRow *op)
{
    return strcmp(op->name, "softmax") != 0;
}

/* What is said where the target is a row that lacks something; NULL: there is a plan. */
static char *said(const Target *target)
{
    Arena *arena = arena_new();
    char *out = NULL;
    size_t length;
    FILE *to = open_memstream(&out, &length);
    Diag *diag = diag_new(arena, to, false);
    Source source = {.file = "m.g", .text = text, .length = strlen(text)};
    diag_source(diag, &source);
    Model model = {.source = &source, .ast = parse(arena, diag, &source)};
    Built built = choose(&model, target, &(PlanOptions){0}, diag);
    const bool planned = built.plan;
    built_free(&built);
    arena_free(arena);
    fclose(to);
    if (planned) {
        free(out);
        return NULL;
    }
    return out;
}

Test(supports, a_missing_kernel_is_an_error_at_the_op)
{
    Target target = target_make(target_find("c"), 1);
    target.name = "small";
    target.has_op = no_softmax;
    char *got = said(&target);
    cr_expect_str_eq(got ? got : "a plan",
                     "m.g:4:12: error: softmax: the target small has no kernel for it\n"
                     "    output y = softmax(h)\n"
                     "               ^~~~~~~~~~\n"
                     "    hint: write it with other ops, or choose another target\n");
    free(got);
}

Test(supports, a_missing_dtype_is_one_too)
{
    Target target = target_make(target_find("c"), 1);
    target.name = "small";
    target.dtypes &= ~(1u << F64);
    char *got = said(&target);
    cr_expect_str_eq(got ? got : "a plan",
                     "m.g:5:12: error: cast: the target small has no f64\n"
                     "    output z = cast(h, f64)\n"
                     "               ^~~~~~~~~~~~\n"
                     "    hint: cast to a dtype that it has, or choose another target\n");
    free(got);
}

/* Ops of all kinds, trained in bf16. */
static const char narrow_text[] =
    "model m(batch B = 4)\n"
    "input x : f32[B, 4, 6, 6]\n"
    "input y : i32[B]\n"
    "h = maxpool2d(relu(batchnorm(conv2d(x, 4, kernel = 3, pad = same))), 2)\n"
    "h = grid_sample(h, h[:, 0:2, :, 0:2])\n"
    "h = softmax(h, axis = 1) + scatter(h, cast(h > 0, i32), h, axis = 1, reduction = add)\n"
    "h = layernorm(dense(flatten(pad(h, [0, 0, 1, 1])), 8))\n"
    "h = h * cast(prod(sigmoid(h), axis = 1, keepdims = true), bf16)\n"
    "train nll(cast(log_softmax(dense(h, 4)), bf16), y) using sgd(lr = 0.1) { precision = bf16 }\n";

static bool none(const OpRow *op)
{
    (void)op;
    return false;
}

static bool is_narrow(const Graph *g, Id value)
{
    return value != NONE && dtype_is_narrow((Dtype)g->value.at[value].dtype);
}

/* Kernels of the plan that take or make 16 bits; -1: there is no plan. */
static int narrow_kernels(const Target *target)
{
    Arena *arena = arena_new();
    Diag *diag = diag_new(arena, stderr, false);
    Source source = {.file = "m.g", .text = narrow_text, .length = strlen(narrow_text)};
    diag_source(diag, &source);
    Model model = {.source = &source, .ast = parse(arena, diag, &source)};
    model.has_half = target->has_half;
    Built built = choose(&model, target, &(PlanOptions){0}, diag);
    int count = built.plan ? 0 : -1;
    for (size_t n = 0; built.plan && n < built.plan->graph->node.count; n++) {
        const Graph *g = built.plan->graph;
        const Node *node = &g->node.at[n];
        bool any = false;
        for (Id i = 0; i < node->uses; i++)
            any |= is_narrow(g, node_use(g, node, i).value);
        for (Id i = 0; i < node->values; i++)
            any |= is_narrow(g, node_value(node, i));
        count += any && op_has_kernel(node->op);
    }
    built_free(&built);
    arena_free(arena);
    return count;
}

Test(supports, kernels_that_take_f32_alone_are_cast_around)
{
    for (size_t t = 0; t < target_count; t++) {
        Target target = target_make(&target_table[t], 1);
        cr_expect_gt(narrow_kernels(&target), 20, "%s", target.name);
        target.has_half = none;
        cr_expect_eq(narrow_kernels(&target), 0, "%s", target.name);
    }
}

Test(supports, every_target_has_a_kernel_for_every_row_that_is_no_matter_of_the_host)
{
    const TargetRow *host = target_find("c");
    for (size_t t = 0; t < target_count; t++)
        for (size_t i = 0; op_at(i); i++)
            cr_expect(target_table[t].plan.has_op(op_at(i)) ||
                          (op_at(i)->flags & OP_HOST && &target_table[t] != host),
                      "%s: %s", target_table[t].plan.name, op_at(i)->name);
    const Target whole = target_make(host, 1);
    cr_expect_null(said(&whole));
}
