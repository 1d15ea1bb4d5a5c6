/* Attention: all scores of a head at once, in double. Long sequences are in attention_test.c. */
#include "tests/ops/cases.h"

#include <math.h>

/* The keys that a query sees: all, up to its own number from the end, or from the start. */
typedef enum { ALL, TO_LAST, TO_SAME } Seen;

/* q [B, H, T, D], k [B, Hk, S, D], v [B, Hk, S, Dv]; a mask broadcasts to [B, H, T, S]. Result
 * [B, H, T, Dv]. */
static Tensor attend(const Case *c, const Tensor *q, const Tensor *k, const Tensor *v,
                     const Tensor *mask, Seen seen, double scale)
{
    int64_t heads = q->dim[1], queries = q->dim[2], keys = k->dim[2], size = q->dim[3];
    int64_t width = v->dim[3], share = heads / k->dim[1];
    Tensor y = case_new(c, F32, 4, (int64_t[]){q->dim[0], heads, queries, width});
    double *score = ARENA_ARRAY(c->arena, double, (size_t)keys);
    for (int64_t row = 0; row < q->dim[0] * heads * queries; row++) {
        int64_t b = row / queries / heads, h = row / queries % heads, t = row % queries;
        int64_t kv = b * k->dim[1] + h / share;
        double total = 0;
        for (int64_t s = 0; s < keys; s++) {
            score[s] = 0;
            for (int64_t d = 0; d < size; d++)
                score[s] += q->at[row * size + d] * k->at[(kv * keys + s) * size + d] * scale;
            if (mask->at) {
                const int64_t index[4] = {b, h, t, s};
                int64_t at = 0;
                for (int i = 0; i < mask->rank; i++)
                    at = at * mask->dim[i] + index[i + 4 - mask->rank] % mask->dim[i];
                score[s] = mask->dtype == BOOL ? (mask->at[at] != 0 ? score[s] : -INFINITY)
                                               : score[s] + mask->at[at];
            }
            if ((seen == TO_LAST && s > t + keys - queries) || (seen == TO_SAME && s > t))
                score[s] = -INFINITY;
            total += exp(score[s]);
        }
        for (int64_t s = 0; s < keys && total > 0; s++)
            for (int64_t d = 0; d < width; d++)
                y.at[row * width + d] += exp(score[s]) / total * v->at[(kv * keys + s) * width + d];
    }
    return y;
}

static Tensor sdpa(const Case *c)
{
    double scale = case_number(c, "scale");
    if (scale == 0)
        scale = 1 / sqrt((double)c->in[0].dim[3]);
    Seen seen = !case_int(c, "causal")              ? ALL
                : case_is_word(c, "align", "start") ? TO_SAME
                                                    : TO_LAST;
    return attend(c, &c->in[0], &c->in[1], &c->in[2], &c->in[3], seen, scale);
}

/* x [B, T, E] @ w [E, heads * D] + b, as [B, heads, T, D]. */
static Tensor project(const Case *c, const Tensor *x, const Tensor *w, const Tensor *b,
                      int64_t heads)
{
    int64_t from = x->dim[2], to = w->dim[1], size = to / heads, length = x->dim[1];
    Tensor y = case_new(c, F32, 4, (int64_t[]){x->dim[0], heads, length, size});
    for (int64_t row = 0; row < x->dim[0] * length; row++)
        for (int64_t n = 0; n < to; n++) {
            double sum = b->at ? b->at[n] : 0;
            for (int64_t e = 0; e < from; e++)
                sum += x->at[row * from + e] * w->at[e * to + n];
            int64_t head = row / length * heads + n / size;
            y.at[(head * length + row % length) * size + n % size] = sum;
        }
    return y;
}

static Tensor attention(const Case *c)
{
    enum { X, CONTEXT, MASK, WQ, WK, WV, WO, BQ, BK, BV, BO };
    const Tensor *x = &c->in[X], *source = c->in[CONTEXT].at ? &c->in[CONTEXT] : x;
    int64_t heads = case_int(c, "heads"), size = x->dim[2] / heads;
    int64_t kv_heads = case_int(c, "kv_heads") ? case_int(c, "kv_heads") : heads;
    Tensor q = project(c, x, &c->in[WQ], &c->in[BQ], heads);
    Tensor k = project(c, source, &c->in[WK], &c->in[BK], kv_heads);
    Tensor v = project(c, source, &c->in[WV], &c->in[BV], kv_heads);
    Tensor y = attend(c, &q, &k, &v, &c->in[MASK], case_int(c, "causal") ? TO_LAST : ALL,
                      1 / sqrt((double)size));
    Tensor joined = case_like(c, X);
    for (int64_t i = 0; i < y.count; i++) { /* heads of a token side by side */
        int64_t d = i % size, t = i / size % x->dim[1], head = i / size / x->dim[1];
        joined.at[((head / heads * x->dim[1] + t) * heads + head % heads) * size + d] = y.at[i];
    }
    Tensor out = project(c, &joined, &c->in[WO], &c->in[BO], 1);
    Tensor same = case_like(c, X);
    same.at = out.at;
    return same;
}

/* As complex numbers: (x[i] + i x[i + D/2]) * exp(i angle). */
static Tensor rope(const Case *c)
{
    Tensor y = case_like(c, 0);
    int64_t size = y.dim[y.rank - 1], length = y.dim[y.rank - 2], half = size / 2;
    for (int64_t at = 0; at < y.count; at++) {
        int64_t i = at % size, pair = i % half, t = at / size % length + case_int(c, "offset");
        const double *row = c->in[0].at + (at - i);
        double angle = (double)t / pow(case_number(c, "base"), 2 * (double)pair / (double)size);
        y.at[at] = i < half ? row[pair] * cos(angle) - row[pair + half] * sin(angle)
                            : row[pair] * sin(angle) + row[pair + half] * cos(angle);
    }
    return y;
}

OP_CASES(attention) = {
    {"sdpa", "f32[1, 1, 1, 1] f32[1, 1, 1, 1] f32[1, 1, 1, 1]", "", sdpa},
    {"sdpa", "f32[2, 3, 5, 7] f32[2, 3, 5, 7] f32[2, 3, 5, 7]", "", sdpa},
    {"sdpa", "f32[2, 3, 5, 8] f32[2, 3, 5, 8] f32[2, 3, 5, 8]", "causal = true", sdpa},
    {"sdpa", "f32[2, 6, 9, 4] f32[2, 2, 9, 4] f32[2, 2, 9, 4]", "causal = true", sdpa},
    {"sdpa", "f32[1, 4, 3, 4] f32[1, 1, 11, 4] f32[1, 1, 11, 5]", "", sdpa},
    {"sdpa", "f32[1, 2, 3, 4] f32[1, 2, 11, 4] f32[1, 2, 11, 4]", "causal = true", sdpa},
    {"sdpa", "f32[1, 2, 1, 4] f32[1, 2, 70, 4] f32[1, 2, 70, 4]", "causal = true", sdpa},
    {"sdpa", "f32[1, 2, 67, 6] f32[1, 2, 131, 6] f32[1, 2, 131, 3]", "scale = 0.5", sdpa},
    {"sdpa", "f32[1, 2, 131, 6] f32[1, 2, 131, 6] f32[1, 2, 131, 6]", "causal = true", sdpa},
    {"sdpa", "f32[1, 1, 40, 4]:-9..9 f32[1, 1, 90, 4]:-9..9 f32[1, 1, 90, 4]", "scale = 1", sdpa},
    {"sdpa", "f32[2, 2, 5, 4] f32[2, 2, 7, 4] f32[2, 2, 7, 4] f32[5, 7]", "", sdpa},
    {"sdpa", "f32[2, 2, 5, 4] f32[2, 2, 70, 4] f32[2, 2, 70, 4] bool[2, 1, 1, 70]", "", sdpa},
    {"sdpa", "f32[1, 2, 9, 4] f32[1, 2, 9, 4] f32[1, 2, 9, 4] bool[2, 9, 1]", "", sdpa},
    {"sdpa", "f32[1, 2, 9, 4] f32[1, 2, 9, 4] f32[1, 2, 9, 4] f32[1, 9]", "causal = true", sdpa},
    {"sdpa", "f32[1, 1, 5, 36] f32[1, 1, 37, 36] f32[1, 1, 37, 70]", "causal = true", sdpa},
    {"sdpa", "f32[1, 2, 3, 4] f32[1, 1, 5, 4] f32[1, 1, 5, 132]", "", sdpa},
    {"sdpa", "f32[1, 2, 5, 70] f32[1, 1, 5, 70] f32[1, 1, 5, 8]", "", sdpa},
    {"sdpa", "f32[2, 4, 5, 4] f32[2, 2, 7, 4] f32[2, 2, 7, 3] f32[4, 1, 7]", "", sdpa},
    {"sdpa", "f32[2, 4, 5, 4] f32[2, 2, 7, 4] f32[2, 2, 7, 3] f32[2, 1, 5, 1]", "causal = true",
     sdpa},
    {"sdpa", "f32[2, 2, 5, 4] f32[2, 2, 5, 4] f32[2, 2, 5, 4] f32[1, 2, 5, 5]", "scale = 1", sdpa},
    {"sdpa", "f32[2, 2, 9, 4] f32[2, 1, 5, 4] f32[2, 1, 5, 4]", "causal = true, align = start",
     sdpa},
    {"sdpa", "f32[1, 2, 5, 4] f32[1, 2, 9, 4] f32[1, 2, 9, 4]", "causal = true, align = start",
     sdpa},
    {"sdpa", "f32[1, 2, 5, 4] f32[1, 2, 5, 4] f32[1, 2, 5, 4]", "causal = true, align = start",
     sdpa},
    {"sdpa", "f32[2, 2, 9, 4] f32[2, 2, 5, 4] f32[2, 2, 5, 4] f32[2, 1, 5]",
     "causal = true, align = start", sdpa},
    {"sdpa", "f32[2, 2, 9, 4] f32[2, 2, 5, 4] f32[2, 2, 5, 4] bool[2, 1, 1, 5]",
     "causal = true, align = start", sdpa},
    {"attention", "f32[2, 5, 8]", "heads = 2", attention},
    {"attention", "f32[2, 5, 8]", "heads = 4, kv_heads = 2, causal = true", attention},
    {"attention", "f32[1, 3, 6]", "heads = 1, bias = false", attention},
    {"attention", "f32[2, 5, 6] f32[2, 7, 4]", "heads = 3", attention},
    {"attention", "f32[2, 5, 6] - bool[2, 1, 1, 5]", "heads = 3", attention},
    {"attention", "f32[2, 5, 6] - f32[3, 5, 5]", "heads = 3", attention},
    {"attention", "f32[1, 70, 8] - - f32[8, 8] f32[8, 2] f32[8, 2]",
     "heads = 4, kv_heads = 1, causal = true", attention, .steep = true},
    {"rope", "f32[2, 3, 5, 8]", "", rope},
    {"rope", "f32[7, 2]", "base = 100", rope},
    {"rope", "bf16[2, 5, 8]", "", rope, 1. / 64},
    {"rope", "f32[2, 70, 6]", "offset = 1000", rope, 1e-4},
    {0},
};

OP_ERRORS(attention) = {
    {"sdpa", "f32[2, 5, 7] f32[2, 5, 7] f32[2, 5, 7]", "",
     "q must be [batch, heads, length, size]"},
    {"sdpa", "f32[1, 2, 5, 7] f32[1, 2, 5, 6] f32[1, 2, 5, 7]", "",
     "batch and head size of q and k differ: f32[1, 2, 5, 7] and f32[1, 2, 5, 6]"},
    {"sdpa", "f32[1, 3, 5, 7] f32[1, 2, 5, 7] f32[1, 2, 5, 7]", "", "the 2 heads of k"},
    {"sdpa", "f32[1, 2, 5, 7] f32[1, 2, 5, 7] f32[1, 2, 4, 7]", "", "length of k and v differ"},
    {"sdpa", "f32[1, 2, 5, 7] f32[1, 2, 4, 7] f32[1, 2, 4, 7]", "causal = true",
     "at least as many keys as queries"},
    {"sdpa", "f32[1, 2, 5, 7] f32[1, 2, 5, 7] f32[1, 2, 5, 7] f32[4, 5]", "",
     "mask f32[4, 5] does not broadcast to the scores [1, 2, 5, 5]"},
    {"attention", "f32[5, 8]", "heads = 2", "x must be [batch, length, size], not f32[5, 8]"},
    {"attention", "f32[2, 5, 8]", "heads = 3", "heads = 3 does not divide the last dimension of x"},
    {"attention", "f32[2, 5, 8]", "heads = 4, kv_heads = 3", "kv_heads = 3 does not divide"},
    {"attention", "f32[2, 5, 8] f32[3, 5, 8]", "heads = 4", "batch sizes differ"},
    {"attention", "f32[2, 5, 8] - - f32[8, 6]", "heads = 4",
     "wq must be f32[8, 8], but is f32[8, 6]"},
    {"rope", "f32[5, 7]", "", "x must be [..., length, size] with an even size, not f32[5, 7]"},
    {"rope", "f32[5, 8]", "base = 0", "base = 0 must be positive"},
    {0},
};
