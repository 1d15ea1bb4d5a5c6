/* Attention and its gradient: softmax(q k' scale + mask) v, in tiles of queries and keys. */
#include "runtime/c/attend.h"
#include "runtime/c/attend_grad.h"

#include "check.h"

typedef enum { NO_MASK, REALS, BOOLS } Mask;

/* What q, k, v, out and dout are, and gradients: cases of all kinds run one after the other. */
static int32_t half;

/* What 16 bits hold of them. */
static Array narrow(Array a)
{
    for (int64_t i = 0; i < a.count; i++)
        a.at[i] = held(a.at[i], half);
    return a;
}

typedef struct {
    int64_t b, heads, kv, queries, keys, size, width;
    int causal;
    Mask mask;
    Layout q, k, v;
} Shape;

/* P [B, H, T, S], and of each row the largest score and the sum of exp(score - largest). A query
 * that sees nothing has zeros. */
static void weights(Shape s, double scale, const double *q, const double *k, const Array *mask,
                    double *p, double *totals)
{
    for (int64_t row = 0; row < s.b * s.heads * s.queries; row++) {
        const int64_t i = row % s.queries, h = row / s.queries % s.heads;
        const int64_t b = row / s.queries / s.heads, head = b * s.kv + h / (s.heads / s.kv);
        double most = -INFINITY, sum = 0;
        for (int64_t j = 0; j < s.keys; j++) {
            double dot = 0;
            for (int64_t d = 0; d < s.size; d++)
                dot += q[row * s.size + d] * k[(head * s.keys + j) * s.size + d];
            dot *= scale;
            if (s.mask == REALS)
                dot += mask->at[row * s.keys + j];
            if ((s.mask == BOOLS && mask->at[row * s.keys + j] == 0) ||
                (s.causal && j > i + s.keys - s.queries))
                dot = -INFINITY;
            p[row * s.keys + j] = dot;
            most = dot > most ? dot : most;
        }
        for (int64_t j = 0; j < s.keys; j++) {
            double *at = &p[row * s.keys + j];
            *at = *at == -INFINITY ? 0 : exp(*at - most);
            sum += *at;
        }
        for (int64_t j = 0; j < s.keys && sum > 0; j++)
            p[row * s.keys + j] /= sum;
        totals[2 * row] = most;
        totals[2 * row + 1] = sum;
    }
}

typedef struct {
    Array q, k, v, mask, p, out, totals, dout, dq, dk, dv;
} Sums;

/* What a row of P, of one query of one head, adds to the output, or to the gradients. */
static void add_row(Shape s, double scale, const Sums *t, int64_t row, int gradients)
{
    const int64_t i = row % s.queries, h = row / s.queries % s.heads, b = row / s.queries / s.heads;
    const int64_t kv = h / (s.heads / s.kv), to = (b * s.queries + i) * s.heads + h;
    const double *dout = t->dout.at + to * s.width;
    double *out = t->out.at + to * s.width;
    for (int64_t j = 0; j < s.keys; j++) {
        const int64_t key = (b * s.kv + kv) * s.keys + j, own = (b * s.keys + j) * s.kv + kv;
        const double p = t->p.at[row * s.keys + j], *v = t->v.at + key * s.width;
        double ds = 0;
        for (int64_t d = 0; d < s.width && !gradients; d++)
            out[d] += p * v[d];
        for (int64_t d = 0; d < s.width && gradients; d++) {
            ds += p * dout[d] * (v[d] - out[d]) * scale;
            t->dv.at[own * s.width + d] += p * dout[d];
        }
        for (int64_t d = 0; d < s.size && gradients; d++) {
            t->dq.at[to * s.size + d] += ds * t->k.at[key * s.size + d];
            t->dk.at[own * s.size + d] += ds * t->q.at[row * s.size + d];
        }
    }
}

static Sums sums_of(Shape s, double scale)
{
    Sums t = {.q = narrow(reals(DIMS(s.b, s.heads, s.queries, s.size))),
              .k = narrow(reals(DIMS(s.b, s.kv, s.keys, s.size))),
              .v = narrow(reals(DIMS(s.b, s.kv, s.keys, s.width))),
              .p = zeros(DIMS(s.b, s.heads, s.queries, s.keys)),
              .out = zeros(DIMS(s.b, s.queries, s.heads, s.width)),
              .totals = zeros(DIMS(s.b, s.heads, s.queries, 2)),
              .dout = narrow(reals(DIMS(s.b, s.queries, s.heads, s.width))),
              .dq = zeros(DIMS(s.b, s.queries, s.heads, s.size)),
              .dk = zeros(DIMS(s.b, s.keys, s.kv, s.size)),
              .dv = zeros(DIMS(s.b, s.keys, s.kv, s.width))};
    if (s.mask != NO_MASK)
        t.mask = s.mask == REALS ? reals(t.p.rank, t.p.dim) : integers(t.p.rank, t.p.dim, 0, 1);
    weights(s, scale, t.q.at, t.k.at, &t.mask, t.p.at, t.totals.at);
    for (int gradients = 0; gradients <= 1; gradients++, narrow(t.out))
        for (int64_t row = 0; row < s.b * s.heads * s.queries; row++)
            add_row(s, scale, &t, row, gradients);
    return t;
}

static void attend(Shape s)
{
    const gp_attend_attr a = {s.causal, 0.5};
    const Sums t = sums_of(s, a.scale);
    const int32_t type = s.mask == BOOLS ? GP_BOOL : GP_F32;
    /* weights and their gradients are rounded before they are multiplied */
    const double off = half == GP_BF16 ? 0x1p16 : half == GP_F16 ? 0x1p13 : 0;
    char what[200];
    CROSS(GP_ATTEND_ROWS, s.queries);
    CROSS(GP_ATTEND_KEYS, s.keys);
    CROSS(GP_KC, s.size);
    CROSS(GP_NC, s.width);
    CROSS(GP_NC_LARGEST, s.width);
    CROSS(GP_NR, s.keys);
    CROSS(GP_LANES, s.keys);
    CROSS(GP_ROW_LANES, s.keys);
    CROSS(GP_MR, s.queries);
    snprintf(what, sizeof what,
             "%d x %d heads (%d), %d queries, %d keys, %d and %d wide, causal %d, mask %d, laid %d "
             "%d %d",
             (int)s.b, (int)s.heads, (int)s.kv, (int)s.queries, (int)s.keys, (int)s.size,
             (int)s.width, s.causal, s.mask, s.q, s.k, s.v);
    const Case back = {.kernel = gp_attend_grad,
                       .space = gp_attend_grad_workspace,
                       .attr = &a,
                       .ins = 7,
                       .outs = 3,
                       .in = {t.q, t.k, t.v, t.mask, t.out, t.totals, t.dout},
                       .want = {t.dq, t.dk, t.dv},
                       .in_as = {s.q, s.k, s.v, s.q},
                       .in_type = {half, half, half, type, half, GP_F32, half},
                       .out_type = {half, half, half},
                       .slack = 200 + 2 * off,
                       .terms = 1};
    const Case forth = {.kernel = gp_attend,
                        .space = gp_attend_workspace,
                        .attr = &a,
                        .ins = 4,
                        .outs = 2,
                        .in = {t.q, t.k, t.v, t.mask},
                        .want = {t.out, t.totals},
                        .in_as = {s.q, s.k, s.v, s.q},
                        .in_type = {half, half, half, type},
                        .out_type = {half},
                        .slack = 100 + off,
                        .terms = 1};
    try_more(&back, "attend_grad %s", what);
    try(&forth, "attend %s", what);
}

/* Each size next to each block, the others small, in all layouts in turn. */
static void next_to_blocks(void)
{
    int as = 0;
    for (int64_t off = -1; off <= 1; off++)
        for (int causal = 0; causal <= 1; causal++, as++) {
            const Layout q = as % 3, k = as / 2 % 3, v = (as + 1) % 3;
            attend((Shape){1, 2, 2, GP_ATTEND_ROWS + off, GP_ATTEND_KEYS + off, 5, 7, causal,
                           as % 3, q, k, v});
            attend((Shape){1, 1, 1, 2 * GP_ATTEND_ROWS + off, 3 * GP_ATTEND_KEYS + off, 4, 3,
                           causal, NO_MASK, q, k, v});
            attend((Shape){2, 1, 1, GP_MR + off, 2 * GP_ATTEND_KEYS + off, 9, 5, causal, REALS, q,
                           k, v});
            attend((Shape){1, 4, 2, 2 * GP_ATTEND_ROWS + 3, GP_ATTEND_KEYS + off, 6, 6, causal,
                           BOOLS, q, k, v}); /* more queries than keys */
            attend((Shape){1, 1, 1, 5, 9, GP_KC + off, GP_NC + off, causal, NO_MASK, q, k, v});
            attend((Shape){1, 1, 1, 5, 9, 3, GP_NC_LARGEST + off, causal, NO_MASK, q, k, v});
            attend((Shape){1, 1, 1, 3, GP_NR + off, 3, 2, causal, NO_MASK, q, k, v});
            attend((Shape){1, 1, 1, 3, GP_LANES + off, 3, 2, causal, NO_MASK, q, k, v});
            attend((Shape){1, 1, 1, 3, GP_ROW_LANES + off, 3, 2, causal, REALS, q, k, v});
        }
    if (LAYERS) /* of GPT-2 */
        attend((Shape){1, 2, 2, 256, 256, 64, 64, 1, NO_MASK, DENSE, DENSE, DENSE});
}

int main(void)
{
    NOT_HERE(GP_STREAM_LEAST);
    NOT_HERE(GP_STREAM_PIECE);
    NOT_HERE(GP_GEMM_IN_PLACE);
    NOT_HERE(GP_HALF_STRIP); /* sums lie in f32 */
    NOT_HERE(GP_FEW);
    NOT_HERE(GP_ROW_CHUNK); /* no row is longer than a tile has keys */
    NOT_HERE(GP_ROW_BLOCK);
    next_to_blocks();
    for (half = GP_F16; half <= GP_BF16; half++)
        next_to_blocks();
    same_everywhere();
    for (int i = 0; i < (GP_TINY ? 90 : 45); i++) {
        half = (int32_t[]){GP_F32, GP_BF16, GP_F16}[i % 3];
        const int64_t kv = draw(1, 2);
        attend((Shape){draw(1, 2), kv * draw(1, 3), kv, draw(1, 30), draw(1, 30), draw(1, 9),
                       draw(1, 9), (int)draw(0, 1), (Mask)draw(0, 2), (Layout)draw(0, 2),
                       (Layout)draw(0, 2), (Layout)draw(0, 2)});
    }
    return finish();
}
