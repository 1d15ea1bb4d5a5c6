/* Convolutions forward: packed, with images as they lie, by Winograd's way where it is chosen. */
#include "runtime/c/conv2d.h"

#include "conv.h"

static void convolve(Conv v)
{
    const Operands p = conv_operands(&v, FORWARD);
    const gp_conv2d_attr a = {{v.stride[0], v.stride[1]},
                              {v.pad[0], v.pad[1], v.pad[2], v.pad[3]},
                              {v.dilation[0], v.dilation[1]},
                              v.groups};
    const int64_t high = conv_outputs(&v, 0), wide = conv_outputs(&v, 1),
                  places = v.n * high * wide;
    const int64_t depth = v.c / v.groups * v.kernel[0] * v.kernel[1], rows = v.o / v.groups;
    const int plain = v.kernel[0] * v.kernel[1] * v.stride[0] * v.stride[1] == 1 &&
                      v.pad[0] + v.pad[1] + v.pad[2] + v.pad[3] == 0;
    CROSS(GP_KC, depth);
    CROSS(GP_NC, places);
    CROSS(GP_NC_LARGEST, places);
    CROSS(GP_NR, places);
    CROSS(GP_LANES, places);
    CROSS(GP_MR, rows);
    CROSS(GP_FEW, places % GP_LANES);
    if (plain && v.groups == 1 && !v.bias)
        CROSS_TOTAL(GP_SAMPLES_REALS, high * wide * (v.c + v.o));
    if (plain && v.x == DENSE)
        CROSS(GP_CONV_IN_PLACE, gp_ceil_div(rows, GP_MR));
    if (gp_ceil_div(v.size[1], v.stride[1]) > wide)
        CROSS(GP_PATCH_COLUMNS, v.kernel[1]);
    const Case t = {.kernel = gp_conv2d,
                    .space = gp_conv2d_workspace,
                    .attr = &a,
                    .ins = 3,
                    .outs = 1,
                    .in = {p.x, p.w, p.b},
                    .want = {p.y},
                    .in_as = {v.x},
                    .out_as = {v.y},
                    .follows = 1,
                    .half_in = v.stride[1] > 1 || plain || cases % 2 ? 7 : 0,
                    .half_out = 1};
    try(&t, "conv2d %s", conv_name(&v));
}

/* Images of 16 bits are multiplied in pairs of the inner dimension, the second first, each sum
 * rounded to f32, block after block: whatever the instruction set, to the bit. */
static void order(int64_t c, int32_t half)
{
    const int64_t deep = 9 * c, depth = gp_round_up(gp_even(deep, GP_KC), 2), wide = 33;
    const gp_conv2d_attr a = {{1, 2}, {0}, {1, 1}, 1};
    Array x = reals(DIMS(1, c, 3, 2 * wide + 1)), w = reals(DIMS(5, c, 3, 3));
    Array y = zeros(DIMS(1, 5, 1, wide));
    for (int64_t i = 0; i < x.count; i++)
        x.at[i] = held(x.at[i] * 1.37, half);
    for (int64_t i = 0; i < w.count; i++)
        w.at[i] = held(w.at[i] / 1.37, half);
    for (int64_t e = 0; e < y.count; e++) {
        volatile float total = 0, sum;
        for (int64_t from = 0; from < deep; from += depth) {
            const int64_t to = from + depth < deep ? from + depth : deep;
            sum = 0;
            for (int64_t p = from; p < to; p++) {
                const int64_t other = from + ((p - from) ^ 1), k = other < to ? other : p;
                const int64_t seen = (k / 9 * 3 + k / 3 % 3) * x.dim[3] + e % wide * 2 + k % 3;
                const volatile double product = x.at[seen] * w.at[e / wide * deep + k];
                sum = (float)((double)sum + product);
            }
            total = from ? total + sum : sum;
        }
        y.at[e] = held((double)total, half);
    }
    const Case t = {.kernel = gp_conv2d,
                    .space = gp_conv2d_workspace,
                    .attr = &a,
                    .ins = 3,
                    .outs = 1,
                    .in = {x, w, {0}},
                    .want = {y},
                    .in_type = {half, GP_F32},
                    .out_type = {half}};
    try(&t, "order of %d products of %d", (int)deep, half);
}

/* Windows of one place: whole panels of an image are used as they lie, the rest is packed. */
static void as_it_lies(void)
{
    int as = 0;
    for (int64_t c = GP_KC - 1; c <= 2 * GP_KC + 1; c += c == GP_KC + 1 ? GP_KC - 1 : 1)
        for (int64_t n = 1; n <= 2; n++, as++) {
            Conv v = conv_of(n, c, 6, GP_NR / 4 + 3, GP_MR + 3, 1, 0);
            v.bias = as % 2;
            convolve(v);
            v.y = as % 3;
            v.x = as % 2 ? GAPS : DENSE;
            convolve(v);
            v.groups = 2;
            v.c *= 2;
            v.o = 2 * 3;
            convolve(v);
            v = conv_of(n, c, 1, 2 * GP_NR + 5, 5, 1, 0); /* of one dimension */
            convolve(v);
        }
    for (int64_t panels = GP_CONV_IN_PLACE - 1; panels <= GP_CONV_IN_PLACE + 1; panels++)
        convolve(conv_of(1, GP_KC + 1, 5, GP_NR / 2 + 1, panels * GP_MR, 1, 0));
}

/* Windows that have to be packed, as deep as a block. */
static void packed(void)
{
    for (int64_t c = GP_KC - 1; c <= GP_KC + 1; c++) {
        Conv v = conv_of(2, c, 5, 2 * GP_LANES + 1, 5, 1, 0);
        v.stride[0] = v.stride[1] = 2;
        convolve(v);
        v.x = GAPS;
        convolve(v);
    }
    for (int64_t c = GP_KC / 9; c <= GP_KC / 9 + 1; c++)
        for (int64_t pad = 0; pad <= 2; pad++) {
            Conv v = conv_of(2, 2 * c, 7, GP_NR + 1, 7, 3, pad);
            convolve(v);
            v.bias = 1;
            v.stride[0] = 2;
            convolve(v);
            v.stride[1] = 2;
            v.y = GAPS;
            convolve(v);
            v.dilation[0] = v.dilation[1] = 2;
            convolve(v);
            v.stride[1] = 3;
            convolve(v);
        }
    for (int64_t wide = GP_PATCH_COLUMNS - 1; wide <= GP_PATCH_COLUMNS + 1; wide++)
        for (int64_t stride = 1; stride <= 3; stride++) {
            Conv v = conv_of(1, 3, 9, wide + 2 * GP_NR, 4, 3, 0);
            v.kernel[1] = wide;
            v.stride[1] = stride;
            convolve(v);
        }
}

/* As many places as there are up to two panels, as in a block, in one image or in many. */
static void places(void)
{
    for (int64_t wide = 1; wide <= 2 * GP_NR + 1; wide++)
        convolve(conv_of(1, 3, 1, wide, 2, wide % 2 ? 1 : 3, 1 - wide % 2));
    const int64_t block[] = {GP_NC, GP_NC_LARGEST, 2 * GP_NC};
    for (int i = 0; i < 3; i++)
        for (int64_t off = -1; off <= 1; off++) {
            Conv v = conv_of(1, 3, 1, block[i] + off, GP_MR + off, 1, 0);
            convolve(v);
            v = conv_of(1, 3, 1, block[i] + off, GP_MR + off, 3, 1);
            convolve(v);
            convolve(conv_of(block[i] + off, 2, 1, 1, 3, 1, 0));
        }
    for (int64_t n = 3; n <= 7; n += 2)
        for (int64_t size = 2; size <= 7; size++) {
            convolve(conv_of(n, 5, size, size, 4, 1, 0));
            convolve(conv_of(n, 5, size, size + 1, 4, 3, 1));
        }
}

/* Enough channels for Winograd's way. */
static void winograd(void)
{
    for (int64_t size = 14; size <= 17; size++) {
        Conv v = conv_of(size % 2 + 1, 32, size, size - 1, 64, 3, size % 3);
        v.bias = (int)(size % 2);
        v.y = (Layout)(size % 3);
        convolve(v);
    }
}

int main(void)
{
    NOT_HERE(GP_HALF_STRIP);
    NOT_HERE(GP_STREAM_LEAST);
    NOT_HERE(GP_STREAM_PIECE);
    NOT_HERE(GP_BAND);
    NOT_HERE(GP_TAPS);
    NOT_HERE(GP_DEPTHWISE_WIDTH);
    NOT_HERE(GP_SPREAD_PHASES);
    NOT_HERE(GP_GEMM_IN_PLACE);
    NOT_HERE(GP_CONV_GATHERED); /* weights that do not lie side by side: conv_transpose2d */
    NOT_HERE(GP_WINO_RUN);
    NOT_HERE(GP_WINO_BLOCK);
    NOT_HERE(GP_WINO_TILES);
    NOT_HERE(GP_WINO_STEP);
    NOT_HERE(GP_WINO_DEEP);
    for (int64_t c = 1; c <= 2 * GP_KC / 9 + 1; c += c < 4 ? 1 : GP_KC / 9 - 1)
        for (int32_t half = GP_F16; half <= GP_BF16; half++)
            order(c, half);
    as_it_lies();
    packed();
    places();
    conv_large_points(GP_SAMPLES_REALS, convolve);
    winograd();
    if (LAYERS) { /* of networks: ResNet-50's narrowing and widening, VGG's last ones */
        convolve(conv_of(1, 2048, 7, 7, 512, 1, 0));
        convolve(conv_of(1, 512, 7, 7, 2048, 1, 0));
        convolve(conv_of(1, 512, 7, 7, 512, 3, 1));
        Conv first = conv_of(1, 3, 64, 64, 64, 7, 3);
        first.stride[0] = first.stride[1] = 2;
        convolve(first);
    }
    same_everywhere();
    for (int i = 0; i < (GP_TINY ? 120 : 60); i++)
        convolve(conv_any(draw(0, 3) ? 5 : 40, draw(0, 2) ? 9 : 30));
    return finish();
}
