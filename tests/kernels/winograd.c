/* Convolutions of 3 x 3 by Winograd's way, of any size: whether it pays is not asked here. */
#include "runtime/c/winograd.h"

#include "conv.h"

typedef struct {
    Conv v;
    int flipped; /* by the input: weights [O, C] flipped */
} How;

static gp_winograd plan(const gp_call *c)
{
    const How *how = c->attr;
    const gp_tensor *x = &c->in[0], *w = &c->in[1], *y = &c->out[0];
    gp_winograd g = {.call = c, .x = x, .b = &c->in[2], .y = y};
    g.inputs = x->dim[1];
    g.outputs = y->dim[1];
    for (int i = 0; i < 2; i++)
        g.pad[i] = how->flipped ? 2 - how->v.pad[i] : how->v.pad[i];
    g.at = w->data ? (const gp_real *)w->data + (how->flipped ? 8 : 0) : NULL;
    g.row = 9 * (how->flipped ? 1 : g.inputs);
    g.channel = 9 * (how->flipped ? g.outputs : 1);
    g.place = how->flipped ? -1 : 1;
    gp_wino_cut(&g, c->run->threads);
    return g;
}

static size_t space(const gp_call *c)
{
    const gp_winograd g = plan(c);
    return (size_t)(gp_wino_work(&g) * c->run->threads) * sizeof(gp_real);
}

static int kernel(const gp_call *c)
{
    const gp_winograd g = plan(c);
    gp_wino_conv(&g, c->work);
    return GP_OK;
}

static void both(Conv v)
{
    const int64_t high = (conv_outputs(&v, 0) + 1) / 2, wide = (conv_outputs(&v, 1) + 1) / 2;
    const int64_t tiles = v.n * high * wide;
    CROSS(GP_KC, v.c);
    CROSS(GP_MR, v.o);
    CROSS(GP_WINO_RUN, wide);
    CROSS(GP_WINO_STEP, wide);
    CROSS(GP_WINO_DEEP, high);
    CROSS(GP_WINO_TILES, tiles);
    CROSS_TOTAL(GP_WINO_BLOCK, v.c * tiles);
    CROSS(GP_NR, tiles);
    CROSS(GP_LANES, tiles);
    CROSS(GP_FEW, tiles % GP_LANES);
    for (int flipped = 0; flipped <= 1; flipped++) {
        const How how = {v, flipped};
        const Operands p = conv_operands(&v, flipped ? BY_INPUT : FORWARD);
        const Case t = {.kernel = kernel,
                        .space = space,
                        .attr = &how,
                        .ins = 3,
                        .outs = 1,
                        .in = {flipped ? p.y : p.x, p.w, p.b},
                        .want = {flipped ? p.x : p.y},
                        .in_as = {v.x},
                        .out_as = {v.y},
                        .follows = 1};
        try(&t, "winograd%s %s", flipped ? " by input" : "", conv_name(&v));
    }
}

static Conv of(int64_t n, int64_t c, int64_t high, int64_t wide, int64_t o)
{
    Conv v = conv_of(n, c, high, wide, o, 3, 1);
    v.kernel[0] = 3;
    v.pad[0] = v.pad[2] = 1;
    return v;
}

int main(void)
{
    NOT_HERE(GP_NC);
    NOT_HERE(GP_NC_LARGEST);
    NOT_HERE(GP_GEMM_IN_PLACE);
    NOT_HERE(GP_STREAM_LEAST);
    NOT_HERE(GP_STREAM_PIECE);
    for (int64_t off = -1; off <= 1; off++) {
        both(of(1, GP_KC + off, 7, 9, GP_MR + off));
        both(of(1, 2 * GP_KC + off, 4, 7, 3));
        both(of(1, 5, 8, 2 * (GP_WINO_RUN + off), 3));
        both(of(1, 5, 2 * (GP_WINO_RUN + off), 6, 3));
        both(of(1, 5, 2 * (GP_WINO_DEEP + off), 5, 2 * GP_MR));
        both(of(1, 4, 8, 2 * (GP_WINO_STEP + off), 3));
        both(of(1, 4, 1, 2 * (GP_WINO_TILES + off), 3));
        both(of(1, 3, 2 * (GP_WINO_TILES / 8 + off), 16, 3));
        both(of(1, GP_WINO_BLOCK / GP_WINO_TILES + off, 16, GP_WINO_TILES / 4, 3));
    }
    for (int64_t tiles = 1; tiles <= 2 * GP_NR + 1;
         tiles++) { /* in one row, or of as many images */
        both(of(1, 3, 2, 2 * tiles, 2));
        both(of(tiles, 2, 1 + tiles % 2, 1, 3));
    }
    if (LAYERS) /* of VGG */
        both(of(1, 256, 14, 14, 256));
    for (int i = 0; i < (GP_TINY ? 60 : 30); i++) {
        Conv v = of(draw(1, 2), draw(1, 20), draw(1, 20), draw(1, 20), draw(1, 20));
        v.pad[0] = draw(1, 2);
        v.pad[1] = draw(0, 2);
        v.pad[2] = draw(1, 2);
        v.pad[3] = draw(v.size[1] == 1 ? 2 : 1, 2);
        v.x = (Layout)draw(0, 2);
        v.y = (Layout)draw(0, 2);
        v.bias = (int)draw(0, 1);
        both(v);
    }
    return finish();
}
