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
