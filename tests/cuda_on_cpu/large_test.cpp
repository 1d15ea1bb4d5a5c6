/* Tensors of more than 2^31 elements, whose places no int holds: kernels run over a range of
 * addresses that is mostly never touched, and of each grid only the blocks that reach its end.
 * Counts, grids and places are computed as for a tensor of which all is there. */
#include "runtime/runtime.h"

#include <cuda_runtime.h>

#include <criterion/criterion.h>
#include <stdlib.h>
#include <sys/mman.h>

static const int64_t WIDTH = 1024;
static const int64_t ROWS = (int64_t)2 << 20 | 3; /* of WIDTH: 3 * 1024 more than 2^31 */

static float *range(int64_t count)
{
    void *at = mmap(NULL, (size_t)count * sizeof(float), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    cr_assert(at != MAP_FAILED);
    return (float *)at;
}

static gp_tensor matrix(void *data, int64_t rows, int64_t width)
{
    gp_tensor t = {};
    t.data = data;
    t.dtype = GP_F32;
    t.rank = 2;
    t.dim[0] = rows;
    t.dim[1] = t.stride[0] = width;
    t.stride[1] = 1;
    return t;
}

/* Runs an op on blocks [from, ...) of its grids. */
static int run(const char *op, gp_tensor *in, int ins, gp_tensor *out, gp_setting *setting,
               int64_t from)
{
    const gp_kernel *kernel = runtime_kernel(op);
    cr_assert(kernel, "%s has no kernel", op);
    gp_run how = {};
    gp_call call = {};
    call.in = in;
    call.ins = ins;
    call.out = out;
    call.outs = 1;
    call.run = &how;
    const size_t bytes = kernel->workspace ? kernel->workspace(&call, setting) : 0;
    call.work = bytes ? aligned_alloc(256, (bytes + 255) / 256 * 256) : NULL;
    cuda_on_cpu_only_blocks(from, INT64_MAX);
    const int code = kernel->run(&call, setting);
    cuda_on_cpu_only_blocks(0, 0);
    free(call.work);
    return code;
}

Test(large, elementwise_ops_reach_the_end)
{
    const int64_t count = ROWS * WIDTH;
    float *x = range(count), *y = range(count);
    for (int64_t i = count - 300; i < count; i++)
        x[i] = (float)(i % 100);
    gp_tensor in[2] = {matrix(x, ROWS, WIDTH), matrix(x, ROWS, WIDTH)};
    gp_tensor out = matrix(y, ROWS, WIDTH);
    gp_setting none[8] = {};
    cr_assert_eq(run("add", in, 2, &out, none, count / 256 - 2), GP_OK);
    for (int64_t i = count - 300; i < count; i++)
        cr_assert(y[i] == 2 * (float)(i % 100), "element %lld is %g", (long long)i, (double)y[i]);
    cr_expect(y[count - 600] == 0, "a block before the chosen ones has run");
}

Test(large, reductions_reach_the_end)
{
    const int64_t rows = ROWS * WIDTH / 8; /* outputs, each of 8 elements */
    float *x = range(rows * 8), *sums = range(rows);
    for (int64_t i = (rows - 2) * 8; i < rows * 8; i++)
        x[i] = (float)(i % 8);
    gp_tensor in = matrix(x, rows, 8), out = matrix(sums, rows, 1);
    gp_setting setting[8] = {};
    const char *const ops[] = {"sum", "max"};
    for (const char *op : ops) {
        for (gp_setting &one : setting)
            one.number = 2; /* axes: the second; the row has no other setting */
        cr_assert_eq(run(op, &in, 1, &out, setting, rows - 2), GP_OK);
        const float want = op[0] == 's' ? 28 : 7;
        cr_expect(sums[rows - 1] == want && sums[rows - 2] == want, "%s gives %g", op,
                  (double)sums[rows - 1]);
        cr_expect(sums[rows - 3] == 0, "a block before the chosen ones has run");
    }
}

Test(large, rows_are_picked_from_the_end)
{
    float *x = range(ROWS * WIDTH), y[2 * 1024];
    for (int64_t i = 0; i < WIDTH; i++)
        x[(ROWS - 1) * WIDTH + i] = (float)i;
    int32_t index[2] = {(int32_t)(ROWS - 1), 0};
    gp_tensor in[2] = {matrix(x, ROWS, WIDTH), matrix(index, 1, 2)}, out = matrix(y, 2, WIDTH);
    in[1].dtype = GP_I32;
    gp_setting setting[8] = {};
    cr_assert_eq(run("gather", in, 2, &out, setting, 0), GP_OK);
    for (int64_t i = 0; i < WIDTH; i++)
        cr_assert(y[i] == (float)i && y[WIDTH + i] == 0);
    index[1] = (int32_t)ROWS;
    cr_expect_eq(run("gather", in, 2, &out, setting, 0), GP_EINDEX);
}

/* Columns are turned round on the way, so that elements are moved one by one. */
Test(large, copies_reach_the_end)
{
    const int64_t count = ROWS * WIDTH;
    float *x = range(count), *y = range(count);
    for (int64_t i = 0; i < WIDTH; i++)
        x[count - WIDTH + i] = (float)i;
    gp_tensor in = matrix(x + WIDTH - 1, ROWS, WIDTH), out = matrix(y, ROWS, WIDTH);
    in.stride[1] = -1;
    gp_setting setting[8] = {};
    cr_assert_eq(run("concat", &in, 1, &out, setting, count / 256 - 4), GP_OK);
    for (int64_t i = 0; i < WIDTH; i++)
        cr_assert(y[count - WIDTH + i] == (float)(WIDTH - 1 - i));
    cr_expect(y[count - WIDTH - 300] == 0, "a block before the chosen ones has run");
}
