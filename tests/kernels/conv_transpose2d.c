/* Transposed convolutions, which are gradients by the input: by phases, by spreading, as one
 * convolution where the stride is 1. */
#include "runtime/c/conv_transpose2d.h"

#include "conv.h"

static void transpose(Conv v)
{
    const Operands p = conv_operands(&v, BY_INPUT);
    const gp_conv_transpose2d_attr a = {{v.stride[0], v.stride[1]},
                                        {v.pad[0], v.pad[1], v.pad[2], v.pad[3]},
                                        {v.dilation[0], v.dilation[1]},
                                        v.groups};
    const int64_t high = conv_outputs(&v, 0), wide = conv_outputs(&v, 1),
                  places = v.n * high * wide;
    const int64_t channels = v.c / v.groups, window = v.kernel[0] * v.kernel[1];
    const int apart = v.kernel[0] <= v.stride[0] && v.kernel[1] <= v.stride[1];
    const int strided = v.stride[0] * v.stride[1] > 1;
    const int plain = window == 1 && !strided && v.groups == 1 && !v.bias;
    CROSS(GP_KC, v.o / v.groups);
    CROSS(GP_NC, places);
    CROSS(GP_NC_LARGEST, places);
    CROSS(GP_NR, places);
    CROSS(GP_LANES, places);
    CROSS(GP_MR, channels);
    if (plain)
        CROSS_TOTAL(GP_SAMPLES_REALS, high * wide * (v.c + v.o));
    if (strided && !apart)
        CROSS(GP_PHASE_CHANNELS, channels);
    if (strided && (apart || channels < GP_PHASE_CHANNELS)) {
        CROSS_TOTAL(GP_SPREAD_ROWS, channels * window);
        CROSS(GP_SPREAD_COLUMNS, wide);
    } else {
        CROSS_TOTAL(GP_CONV_GATHERED, v.o / v.groups * 2); /* as deep as a window of two places */
        CROSS(GP_CONV_IN_PLACE, gp_ceil_div(channels, GP_MR));
        CROSS(GP_FEW, places % GP_LANES);
    }
    const Case t = {.kernel = gp_conv_transpose2d,
                    .space = gp_conv_transpose2d_workspace,
                    .attr = &a,
                    .ins = 3,
                    .outs = 1,
                    .in = {p.y, p.w, p.b},
                    .want = {p.x},
                    .in_as = {v.y},
                    .out_as = {v.x},
                    .follows = 1,
                    .half_in = plain || cases % 2 ? 7 : 0,
                    .half_out = 1};
    try(&t, "conv_transpose2d of %s", conv_name(&v));
}

static Conv strided(Conv v, int64_t down, int64_t right)
{
    v.stride[0] = down;
    v.stride[1] = right;
    return v;
}

/* The channels of dy are the depth. */
static void deep(void)
{
    int as = 0;
    for (int64_t o = GP_KC - 1; o <= 2 * GP_KC + 1; o += o == GP_KC + 1 ? GP_KC - 1 : 1, as++) {
        Conv v = conv_of(1 + as % 2, GP_PHASE_CHANNELS + 3, 8, 2 * GP_NR + 6, o, 3, 1);
        v.bias = as % 2;
        v.x = as % 3;
        transpose(v);
        transpose(strided(v, 2, 2));
        v.c = 2 * v.c;
        v.groups = 2;
        v.o *= 2;
        transpose(strided(v, 1, 2));
        v.c = 4; /* few: spread */
        transpose(strided(v, 2, 2));
        v = conv_of(1 + as % 2, GP_MR + 3, 5, GP_NR + 1, o, 1, 0);
        transpose(v);
        transpose(strided(v, 2, 2));
    }
    for (int64_t panels = GP_CONV_IN_PLACE - 1; panels <= GP_CONV_IN_PLACE + 1; panels++)
        transpose(conv_of(1, panels * GP_MR, 2, GP_NR + 1, GP_KC + 1, 1, 0));
}

/* Few channels or windows that do not meet: tiles of rows and of columns. */
static void spread(void)
{
    for (int64_t c = GP_PHASE_CHANNELS - 1; c <= GP_PHASE_CHANNELS + 1; c++)
        for (int64_t kernel = 2; kernel <= 4; kernel++) {
            Conv v = conv_of(2, c, 9, 21, 5, kernel, 1);
            v.bias = (int)c % 2;
            transpose(strided(v, 2, 2));
            v.y = GAPS;
            v.x = c % 3;
            transpose(strided(v, 3, 2));
            v.dilation[0] = v.dilation[1] = 2;
            transpose(strided(v, 2, 3));
        }
    for (int64_t wide = GP_SPREAD_COLUMNS - 1; wide <= GP_SPREAD_COLUMNS + 1; wide++) {
        Conv v = conv_of(1, 2, 5, 2 * wide + 1, 3, 3, 0);
        transpose(strided(v, 2, 2));
        v.size[1] = wide + 1; /* half as wide: tiles of several rows */
        transpose(strided(v, 2, 2));
        v.size[0] = 21;
        transpose(strided(v, 2, 2));
    }
    for (int64_t c = GP_SPREAD_ROWS / 4 - 1; c <= GP_SPREAD_ROWS / 4 + 1; c++)
        transpose(strided(conv_of(2, c, 6, 8, 4, 2, 0), 2, 2));
    transpose(strided(conv_of(1, 3, 13, 26, 4, 12, 0), 2, 2)); /* a window larger than a tile */
}

/* Depths of a few, whose weights are gathered; as many places as up to two panels, and a block. */
static void places(void)
{
    for (int64_t o = GP_CONV_GATHERED / 2 - 1; o <= GP_CONV_GATHERED / 2 + 1; o++)
        for (int64_t kernel = 3; kernel <= 7; kernel++)
            transpose(strided(conv_of(1, GP_PHASE_CHANNELS, 11, 13, o, kernel, 1), 2, 2));
    for (int64_t wide = 3; wide <= 2 * GP_NR + 1; wide++)
        transpose(conv_of(1, GP_MR - 1 + wide % 3, 1, wide, 3, wide % 2 ? 1 : 3, 1 - wide % 2));
    const int64_t block[] = {GP_NC, GP_NC_LARGEST};
    for (int i = 0; i < 2; i++)
        for (int64_t off = -1; off <= 1; off++) {
            const int64_t c = GP_PHASE_CHANNELS + 1;
            transpose(conv_of(1, c, 1, block[i] + off, 3, 3, 1));
            transpose(strided(conv_of(1, c, 3, 2 * (block[i] + off) - 1, 3, 3, 1), 4, 2));
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
    NOT_HERE(GP_PATCH_COLUMNS);
    NOT_HERE(GP_WINO_RUN);
    NOT_HERE(GP_WINO_BLOCK);
    NOT_HERE(GP_WINO_TILES);
    NOT_HERE(GP_WINO_STEP);
    NOT_HERE(GP_WINO_DEEP);
    deep();
    spread();
    places();
    conv_large_points(GP_SAMPLES_REALS, transpose);
    transpose(conv_of(1, 64, 15, 16, 32, 3, 1)); /* by Winograd's way */
    if (LAYERS) { /* of networks: DCGAN's, ResNet-50's by the input */
        transpose(strided(conv_of(1, 40, 15, 15, 300, 3, 1), 2, 2));
        transpose(strided(conv_of(1, 256, 8, 8, 512, 4, 1), 2, 2));
        transpose(conv_of(1, 512, 7, 7, 2048, 1, 0));
        transpose(strided(conv_of(1, 512, 14, 14, 1024, 1, 0), 2, 2));
    }
    same_everywhere();
    for (int i = 0; i < (GP_TINY ? 120 : 60); i++)
        transpose(conv_any(draw(0, 3) ? 5 : 40, draw(0, 2) ? 9 : 30));
    return finish();
}
