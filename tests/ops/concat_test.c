/* Operands of concat that their producers wrote into the output already. */
#include "tests/ops/cases.h"

#include <criterion/criterion.h>

static int run_concat(gp_tensor *in, int count, gp_tensor *out, int64_t axis)
{
    gp_run run = {.threads = 1};
    gp_call call = {.in = in, .out = out, .ins = count, .outs = 1, .run = &run};
    gp_setting setting[MAX_ARGS] = {{0}};
    setting[op_arg(op_find("concat"), "axis")].number = (double)axis;
    return runtime_kernel("concat")->run(&call, setting);
}

Test(concat, leaves_operands_in_their_windows)
{
    gp_real to[2][5] = {{1, 2, 0, 0, 5}, {6, 7, 0, 0, 10}}, middle[2][2] = {{3, 4}, {8, 9}};
    gp_tensor out = {.data = to, .dtype = GP_F32, .rank = 2, .dim = {2, 5}, .stride = {5, 1}};
    gp_tensor in[3] = {out, out, out};
    in[0].dim[1] = 2;
    in[1] =
        (gp_tensor){.data = middle, .dtype = GP_F32, .rank = 2, .dim = {2, 2}, .stride = {2, 1}};
    in[2].data = &to[0][4];
    in[2].dim[1] = 1;
    cr_assert_eq(run_concat(in, 3, &out, 1), GP_OK);
    for (int i = 0; i < 10; i++)
        cr_expect_eq(to[i / 5][i % 5], (gp_real)(i + 1));
}
