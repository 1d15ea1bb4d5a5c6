/* Gradients of convolutions by their weights: patches or dy transposed, in one sum or in parts. */
#include "runtime/c/conv2d_weight_grad.h"

#include "conv.h"

static void weights(Conv v)
{
    v.bias = 0;
    const Operands p = conv_operands(&v, BY_WEIGHTS);
    const gp_conv2d_weight_grad_attr a = {{v.stride[0], v.stride[1]},
                                          {v.pad[0], v.pad[1], v.pad[2], v.pad[3]},
                                          {v.dilation[0], v.dilation[1]},
                                          v.groups};
    const int64_t places = v.n * conv_outputs(&v, 0) * conv_outputs(&v, 1), rows = v.o / v.groups;
    const int64_t depth = v.c / v.groups * v.kernel[0] * v.kernel[1];
    CROSS(GP_KC, places); /* the inner dimension here */
    CROSS(GP_NC, depth);
    CROSS(GP_NC_LARGEST, depth);
    CROSS(GP_NR, depth);
    CROSS(GP_LANES, depth);
    CROSS(GP_MR, rows);
    CROSS(GP_WEIGHT_FEW, depth);
    CROSS(GP_WEIGHT_LEAST, places);
    if (v.groups == 1 && depth < GP_WEIGHT_FEW && places >= GP_WEIGHT_LEAST)
        CROSS_TOTAL(GP_WEIGHT_MOST, rows * depth);
    if (depth >= 2 * rows)
        CROSS_TOTAL(GP_WEIGHT_SMALL, v.groups * rows * depth);
    const Case t = {.kernel = gp_conv2d_weight_grad,
                    .space = gp_conv2d_weight_grad_workspace,
                    .attr = &a,
                    .ins = 2,
                    .outs = 1,
                    .in = {p.x, p.y},
                    .want = {p.w},
                    .in_as = {v.x},
                    .aside = 1,
                    .half_in = v.groups > 1 || cases % 2 ? 3 : 0};
    try(&t, "conv2d_weight_grad of %s", conv_name(&v));
}

/* A channel of its own for each group, or two: in f32 as in 16 bits. */
static void depthwise(void)
{
    for (int i = 0; i < 24; i++) {
        Conv v = conv_of(1 + i % 3, 4, 5 + i % 4, 7 + i, i % 2 ? 4 : 8, 3, i % 3);
        v.groups = 4;
        v.stride[0] = v.stride[1] = 1 + i / 6 % 2;
        weights(v);
    }
}

/* Depths of dw, with more rows than columns and the other way round. */
static void columns(void)
{
    const int64_t block[] = {GP_NC, GP_NC_LARGEST, GP_WEIGHT_FEW, GP_NR, GP_LANES};
    for (int i = 0; i < 5; i++)
        for (int64_t off = -1; off <= 1; off++) {
            Conv v = conv_of(2, block[i] + off, 3, 5, GP_MR + off, 1, 0);
            weights(v);
            v.groups = 2;
            v.c *= 2;
            v.o *= 2;
            v.x = GAPS;
            weights(v);
            v = conv_of(1, 3, 3, block[i] + off + 4, 2 * GP_MR + 3, 3, 1);
            weights(v);
        }
}

/* Places, which are the inner dimension, in one image or in many. */
static void places(void)
{
    const int64_t block[] = {GP_KC, 2 * GP_KC, GP_WEIGHT_LEAST};
    for (int i = 0; i < 3; i++)
        for (int64_t off = -1; off <= 1; off++) {
            const int64_t at = block[i] + off;
            weights(conv_of(1, 3, 1, at, 5, 3, 1));
            weights(conv_of(1, 2, 1, at, GP_MR + 5, 1, 0));
            weights(conv_of(at, 3, 1, 1, 2, 1, 0));
            Conv v = conv_of(2, 5, 5, 2 * ((at + 8) / 10) + 1, 3, 3, 0);
            v.stride[1] = 2;
            v.dilation[0] = 2;
            weights(v);
        }
}

/* Where dw is summed in parts, and where it is made transposed. */
static void totals(void)
{
    const int64_t deep = GP_TINY ? 8 : 32; /* a factor of GP_WEIGHT_MOST */
    for (int64_t rows = GP_WEIGHT_MOST / deep; rows <= GP_WEIGHT_MOST / deep + 1; rows++)
        weights(conv_of(1, deep, 1, GP_WEIGHT_LEAST + 1, rows, 1, 0));
    for (int64_t off = -1; off <= 1; off++) {
        const int64_t rows = GP_TINY ? 10 : 256; /* a factor of GP_WEIGHT_SMALL */
        weights(conv_of(1, GP_WEIGHT_SMALL / rows + off, 5, 7, rows, 1, 0));
    }
}

int main(void)
{
    NOT_HERE(GP_HALF_STRIP);
    NOT_HERE(GP_SAMPLES_REALS);
    NOT_HERE(GP_STREAM_LEAST);
    NOT_HERE(GP_STREAM_PIECE);
    NOT_HERE(GP_BAND);
    NOT_HERE(GP_TAPS);
    NOT_HERE(GP_DEPTHWISE_WIDTH);
    NOT_HERE(GP_SPREAD_PHASES);
    NOT_HERE(GP_GEMM_IN_PLACE);
    NOT_HERE(GP_CONV_IN_PLACE);
    NOT_HERE(GP_CONV_GATHERED);
    NOT_HERE(GP_FEW);
    NOT_HERE(GP_PATCH_COLUMNS);
    NOT_HERE(GP_WINO_RUN);
    NOT_HERE(GP_WINO_BLOCK);
    NOT_HERE(GP_WINO_TILES);
    NOT_HERE(GP_WINO_STEP);
    NOT_HERE(GP_WINO_DEEP);
    columns();
    places();
    depthwise();
    if (LAYERS || GP_TINY)
        totals();
    if (LAYERS) { /* of networks: ResNet-50's narrowing, VGG's last ones and its first */
        weights(conv_of(1, 2048, 7, 7, 512, 1, 0));
        weights(conv_of(1, 512, 7, 7, 256, 3, 1));
        weights(conv_of(1, 3, 112, 112, 64, 3, 1));
    }
    same_everywhere();
    for (int i = 0; i < (GP_TINY ? 120 : 60); i++)
        weights(conv_any(draw(0, 3) ? 5 : 40, draw(0, 2) ? 9 : 30));
    return finish();
}
