/* Matrix products: A [B, M, K] @ B [B, K, N], of any strides. */
#include "runtime/c/matmul.h"

#include "check.h"

typedef struct {
    int64_t batch, m, n, k;
    Layout a, b, c;
    int vector; /* the output lacks the axis that is 1 */
} Shape;

/* What operands and result are: cases of all kinds run with one after the other. */
static const int32_t types[][3] = {
    {GP_F32, GP_F32, GP_F32},   {GP_BF16, GP_BF16, GP_BF16}, {GP_BF16, GP_F32, GP_BF16},
    {GP_F32, GP_BF16, GP_F32},  {GP_F16, GP_F16, GP_F16},    {GP_F16, GP_F32, GP_F32},
    {GP_BF16, GP_BF16, GP_F32},
};
static const int32_t *type = types[0];

static void product(Shape s)
{
    Array a = integers(DIMS(s.batch, s.m, s.k), -3, 3);
    Array b = integers(DIMS(s.batch, s.k, s.n), -3, 3), c = zeros(DIMS(s.batch, s.m, s.n));
    for (int64_t i = 0; s.b == SHARED && i < b.count; i++)
        b.at[i] = b.at[i % (s.k * s.n)];
    for (int64_t i = 0; i < s.batch * s.m; i++)
        for (int64_t p = 0; p < s.k; p++)
            for (int64_t j = 0; j < s.n; j++)
                c.at[i * s.n + j] += a.at[i * s.k + p] * b.at[(i / s.m * s.k + p) * s.n + j];
    if (s.vector) {
        c.rank = 2;
        c.dim[1] = s.m * s.n;
    }
    const int64_t rows = s.m * (s.b == SHARED ? s.batch : 1);
    const int thin = s.n <= GP_THIN || rows <= GP_THIN;
    CROSS(GP_THIN, s.n);
    CROSS(GP_KC, s.k);
    if (thin && rows <= GP_THIN)
        CROSS(GP_THIN_COLUMNS, s.n);
    if (!thin) {
        CROSS(GP_MR, s.m);
        CROSS(GP_LANES, s.n);
        CROSS(GP_NR, s.n);
        CROSS(GP_NC, s.n);
        CROSS(GP_NC_LARGEST, s.n);
        if (s.b == DENSE && s.c == DENSE)
            CROSS(GP_GEMM_IN_PLACE, gp_ceil_div(s.m, GP_MR));
        CROSS(GP_ASIDE_PANELS, gp_ceil_div(s.m, GP_MR));
    }
    if (type != types[0] && s.batch == 1)
        CROSS(GP_HALF_STRIP, s.m);
    const Case t = {.kernel = gp_matmul,
                    .space = gp_matmul_workspace,
                    .ins = 2,
                    .outs = 1,
                    .in = {a, b},
                    .want = {c},
                    .in_as = {s.a, s.b},
                    .out_as = {s.c},
                    .in_type = {type[0], type[1]},
                    .out_type = {type[2]},
                    .follows = 1,
                    .aside = type[2] == GP_F32};
    try(&t, "matmul %d times %d x %d x %d, laid %d %d %d, of %d %d %d", (int)s.batch, (int)s.m,
        (int)s.n, (int)s.k, s.a, s.b, s.c, type[0], type[1], type[2]);
}

/* Numbers of 16 bits are multiplied in pairs of the inner dimension, the second first, each sum
 * rounded to f32, block after block: whatever the instruction set, to the bit. */
static void order(int64_t k, int32_t half)
{
    enum { M = 5, N = 37 };
    const int64_t depth = gp_round_up(gp_even(k, GP_KC), 2);
    Array a = reals(DIMS(1, M, k)), b = reals(DIMS(1, k, N)), c = zeros(DIMS(1, M, N));
    for (int64_t i = 0; i < M * k; i++)
        a.at[i] = held(a.at[i] * 1.37, half);
    for (int64_t i = 0; i < k * N; i++)
        b.at[i] = held(b.at[i] / 1.37, half);
    for (int64_t e = 0; e < M * N; e++) {
        volatile float total = 0, sum;
        for (int64_t from = 0; from < k; from += depth) {
            const int64_t to = from + depth < k ? from + depth : k;
            sum = 0;
            for (int64_t p = from; p < to; p++) {
                const int64_t pair = p - from, at = from + (pair ^ 1) < to ? from + (pair ^ 1) : p;
                const volatile double product = a.at[e / N * k + at] * b.at[at * N + e % N];
                sum = (float)((double)sum + product);
            }
            total = from ? total + sum : sum;
        }
        c.at[e] = (double)total;
    }
    const Case t = {.kernel = gp_matmul,
                    .space = gp_matmul_workspace,
                    .ins = 2,
                    .outs = 1,
                    .in = {a, b},
                    .want = {c},
                    .in_type = {half, half}};
    try(&t, "order of %d products of %d", (int)k, half);
}

/* Each size next to each block, the others small, in all layouts in turn. */
static void next_to_blocks(void)
{
    const int64_t block[] = {GP_KC, GP_THIN_COLUMNS, GP_NC, GP_NC_LARGEST, GP_NR, 2 * GP_KC,
                             GP_MR, GP_LANES,        4,     GP_THIN};
    int as = 0;
    for (size_t i = 0; i < sizeof block / sizeof *block; i++)
        for (int64_t off = -1; off <= 1; off++)
            for (int axis = 0; axis < 3; axis++, as++)
                for (int64_t rows = 2; rows < 10; rows += 7) { /* the first are thin */
                    const int64_t at = block[i] + off;
                    product((Shape){1, axis == 0 ? at : rows, axis == 1 ? at : GP_NR + 3,
                                    axis == 2 ? at : 7, as % 3, as / 3 % 3, as / 9 % 3, 0});
                }
    for (int64_t panels = GP_GEMM_IN_PLACE - 1; panels <= GP_GEMM_IN_PLACE + 1; panels++)
        product((Shape){1, panels * GP_MR, GP_NR + GP_LANES, GP_KC + 1, DENSE, DENSE, DENSE, 0});
    for (int64_t panels = 1; panels <= GP_ASIDE_PANELS + 1; panels++)
        for (int64_t off = -1; off <= 1; off++)
            product(
                (Shape){1, panels * GP_MR + 1, GP_NC + off, GP_KC + off, SWAPPED, DENSE, DENSE, 0});
}

/* Few rows or columns: vectors, and what counts as thin. */
static void thin(void)
{
    for (int64_t few = 1; few <= GP_THIN + 1; few++)
        for (int as = 0; as < 9; as++) {
            product((Shape){1, few, 37 + as, 21, as % 3, as / 3, DENSE, few == 1});
            product((Shape){2, 19, few, GP_KC + 5, as % 3, as / 3, DENSE, few == 1});
        }
}

static void batches(void)
{
    for (int as = 0; as < 27; as++) {
        product((Shape){3, 7, 11, 9, as % 3, as / 3 % 3, as / 9, 0});
        product((Shape){4, GP_MR + 1, GP_NR + 1, 5, as % 3, SHARED, as / 9, 0});
        product((Shape){GP_MR + 3, 1, GP_NR + 1, 5, as % 3, SHARED, as / 9, 0});
    }
    product((Shape){25, 3, 5, 4, DENSE, DENSE, DENSE, 0}); /* more than threads want */
}

/* Shapes that no table thinks of. */
static void any(int rounds)
{
    same_everywhere();
    for (int i = 0; i < rounds; i++) {
        const int64_t large = GP_TINY ? 40 : 60;
        product((Shape){draw(1, 3), draw(1, large), draw(1, draw(0, 9) ? large : 900),
                        draw(1, draw(0, 9) ? large : 700), (Layout)draw(0, 2), (Layout)draw(0, 3),
                        (Layout)draw(0, 2), 0});
    }
}

int main(void)
{
    NOT_HERE(GP_STREAM_LEAST);
    NOT_HERE(GP_STREAM_PIECE);
    NOT_HERE(GP_FEW);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        type = types[i];
        next_to_blocks();
        thin();
        batches();
        for (int64_t off = -1; off <= 1; off++)
            product((Shape){1, GP_HALF_STRIP + off, 9, GP_KC + 3, off < 0 ? SWAPPED : DENSE, DENSE,
                            DENSE, 0});
    }
    for (int64_t k = 1; k <= 3 * GP_KC + 1; k += k < 5 ? 1 : GP_KC / 4 - 1) {
        order(k, GP_BF16);
        order(k, GP_F16);
    }
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        type = types[i];
        any(GP_TINY ? 150 : 40);
    }
    type = types[0];
    if (LAYERS) { /* of networks: GPT-2's blocks and vocabulary, ResNet's last layer */
        product((Shape){1, 8, 3072, 768, DENSE, DENSE, DENSE, 0});
        product((Shape){1, 5, 768, 3072, DENSE, SWAPPED, DENSE, 0});
        product((Shape){1, 5, 50257, 64, DENSE, SWAPPED, DENSE, 0});
        product((Shape){1, 2, 1000, 2048, DENSE, DENSE, DENSE, 0});
    }
    return finish();
}
