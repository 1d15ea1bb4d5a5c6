/* Attention as one node, and rotary positions.
 *
 * Attention is the language's sdpa, whose memory does not grow with the square of the length; where
 * scores are capped or wanted as a result, it is written out. */
#include "frontend/onnx/translate.h"

#include <math.h>

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, LENGTHS };            /* inputs */
enum { SCORES_PLAIN, SCORES_CAPPED, SCORES_BIASED, SCORES_SOFT }; /* what output 3 is */

typedef struct {
    Import *m;
    const Tensor *q, *k, *v; /* [B, H, T, D], keys and values with those of before */
    const Tensor *past;      /* keys of before, or NULL */
    const Expr *lengths;     /* of keys, [B, 1, 1, 1]; NULL: all of them */
    int64_t left, right;     /* keys around a query that it sees; -1: all */
    bool causal;
    double scale, cap; /* cap 0: none */
} Attention;

/* ---- Operands -------------------------------------------------------------------------------- */

/* [B, T, H * D], or that already, as [B, H, T, D]. */
static const Tensor *split_heads(Import *m, int i, int64_t heads)
{
    const Tensor *x = given(m, i);
    if (x->rank == 4)
        return state(m, use(m, i));
    if (heads < 1 || x->open[2] || x->dim[2] % heads) {
        refuse(m, "%lld heads do not divide input %d", (long long)heads, i);
        return NULL;
    }
    const Expr *dim[] = {size_of(m, x, 0), size_of(m, x, 1), integer(m, heads),
                         integer(m, x->dim[2] / heads)};
    const int64_t swap[] = {0, 2, 1, 3};
    return state(m,
                 CALL(m, "transpose", {reshape(m, use(m, i), 4, dim)}, {ints(m, 4, swap), "perm"}));
}

static const Tensor *behind_past(Import *m, int past, const Tensor *x)
{
    if (!x || past >= inputs(m) || !given(m, past))
        return x;
    const Expr *both[] = {use(m, past), x->expr};
    return state(m, CALL(m, "concat", {list(m, 2, both)}, {integer(m, 2), "axis"}));
}

static bool take_operands(Attention *a)
{
    Import *m = a->m;
    for (int i = Q; i <= V; i++)
        if (!given(m, i) || given(m, i)->rank != given(m, Q)->rank || given(m, Q)->rank < 3 ||
            given(m, Q)->rank > 4)
            return refuse(m, "Q, K and V must have three dimensions each, or four");
    int64_t heads = attr_int(m, "q_num_heads", 0), kv_heads = attr_int(m, "kv_num_heads", 0);
    a->q = split_heads(m, Q, heads);
    a->k = a->q ? split_heads(m, K, kv_heads) : NULL;
    a->v = a->k ? split_heads(m, V, kv_heads) : NULL;
    a->past = inputs(m) > PAST_KEY ? given(m, PAST_KEY) : NULL;
    a->k = a->v ? behind_past(m, PAST_KEY, a->k) : NULL;
    a->v = a->k ? behind_past(m, PAST_VALUE, a->v) : NULL;
    if (!a->v)
        return false;
    a->scale = attr_float(m, "scale", 1 / sqrt((double)a->q->dim[3]));
    a->cap = attr_float(m, "softcap", 0);
    a->causal = attr_int(m, "is_causal", 0) != 0;
    a->left = attr_int(m, "left_window_size", -1);
    a->right = attr_int(m, "right_window_size", -1);
    if (inputs(m) > LENGTHS && given(m, LENGTHS)) {
        const Expr *dim[] = {integer(m, -1), integer(m, 1), integer(m, 1), integer(m, 1)};
        const Tensor *lengths = state(m, reshape(m, use(m, LENGTHS), 4, dim));
        a->lengths = lengths ? lengths->expr : NULL;
        return lengths != NULL;
    }
    return true;
}

/* ---- What a query sees ----------------------------------------------------------------------- */

static const Expr *both_of(Import *m, const Expr *a, const Expr *b)
{
    return a && b ? CALL(m, "and", {a}, {b}) : a ? a : b;
}

/* Conditions on the key that hang on places alone, as a bool; NULL: none. */
static bool seen_keys(const Attention *a, const Expr **seen)
{
    Import *m = a->m;
    *seen = NULL;
    if (!a->causal && a->left < 0 && a->right < 0 && !a->lengths)
        return true;
    const Tensor *key = state(m, CALL(m, "arange", {size_of(m, a->k, 2), "count"}));
    const Expr *down[] = {integer(m, -1), integer(m, 1)};
    const Expr *at = reshape(m, CALL(m, "arange", {size_of(m, a->q, 2), "count"}), 2, down);
    if (a->past) /* the queries follow it */
        at = binary(m, "add", at, size_of(m, a->past, 2));
    else if (a->lengths) /* the queries are the last */
        at = binary(m, "sub", binary(m, "add", at, a->lengths), size_of(m, a->q, 2));
    const Tensor *query = key ? state(m, at) : NULL;
    if (!query)
        return false;
    if (a->causal)
        *seen = binary(m, "less_equal", key->expr, query->expr);
    if (a->left >= 0)
        *seen = both_of(m, *seen,
                        binary(m, "greater_equal", key->expr,
                               binary(m, "sub", query->expr, integer(m, a->left))));
    if (a->right >= 0)
        *seen = both_of(m, *seen,
                        binary(m, "less_equal", key->expr,
                               binary(m, "add", query->expr, integer(m, a->right))));
    if (a->lengths)
        *seen = both_of(m, *seen, binary(m, "less", key->expr, a->lengths));
    return true;
}

static const Expr *added(Import *m, const Expr *seen)
{
    return CALL(m, "where", {seen}, {real(m, 0)}, {real(m, -INFINITY)});
}

/* The mask that is given, made as wide as there are keys: those beyond it are not seen. */
static bool take_mask(const Attention *a, const Expr **mask, bool *is_bool)
{
    Import *m = a->m;
    const Tensor *x = inputs(m) > MASK ? given(m, MASK) : NULL;
    *mask = x ? use(m, MASK) : NULL;
    *is_bool = x && x->dtype == BOOL;
    if (!x)
        return true;
    if (x->rank < 1 || (x->dtype != BOOL && x->dtype != F32))
        return refuse(m, "attn_mask must be bool or of reals");
    int64_t missing = a->k->dim[2] - x->dim[x->rank - 1];
    if (missing <= 0 || x->dim[x->rank - 1] == 1)
        return true;
    if (a->k->open[2] != x->open[x->rank - 1])
        return refuse(m, "attn_mask is shorter than the keys by a free dimension");
    int64_t before[MAX_RANK] = {0}, after[MAX_RANK] = {0};
    after[x->rank - 1] = missing;
    *mask = CALL(m, "pad", {*is_bool ? added(m, *mask) : *mask},
                 {ints(m, (size_t)x->rank, before), "before"},
                 {ints(m, (size_t)x->rank, after), "after"}, {real(m, -INFINITY), "value"});
    *is_bool = false;
    return true;
}

/* The mask and the places as one; NULL: all keys are seen. */
static bool join_masks(const Attention *a, const Expr **mask, bool *is_bool)
{
    Import *m = a->m;
    const Expr *seen;
    if (!take_mask(a, mask, is_bool) || !seen_keys(a, &seen))
        return false;
    if (seen && *mask && !*is_bool) {
        *mask = CALL(m, "where", {seen}, {*mask}, {real(m, -INFINITY)});
    } else if (seen) {
        *mask = both_of(m, *mask, seen);
        *is_bool = true;
    }
    return true;
}

/* ---- The node -------------------------------------------------------------------------------- */

/* Heads of keys or values, each as often as there are heads of queries for it. */
static const Expr *repeat_heads(const Attention *a, const Tensor *x)
{
    Import *m = a->m;
    int64_t times = x->dim[1] ? a->q->dim[1] / x->dim[1] : 0;
    if (times == 1)
        return x->expr;
    const Expr *wide[] = {size_of(m, x, 0), size_of(m, x, 1), integer(m, times), size_of(m, x, 2),
                          size_of(m, x, 3)};
    const Expr *flat[] = {wide[0], integer(m, -1), wide[3], wide[4]};
    const Expr *apart = CALL(m, "unsqueeze", {x->expr}, {integer(m, 2), "axis"});
    return reshape(m, CALL(m, "expand", {apart}, {list(m, 5, wide), "shape"}), 4, flat);
}

/* Written out: with what output 3 asks for. NULL with a message. */
static const Expr *write_out(const Attention *a)
{
    Import *m = a->m;
    const Expr *mask;
    bool is_bool;
    int64_t mode = attr_int(m, "qk_matmul_output_mode", SCORES_PLAIN);
    if (!join_masks(a, &mask, &is_bool))
        return NULL;
    const Expr *kt = CALL(m, "transpose", {repeat_heads(a, a->k)});
    const Expr *first = binary(m, "mul", binary(m, "matmul", a->q->expr, kt), real(m, a->scale));
    const Tensor *scores = state(m, first);
    if (scores && a->cap > 0) {
        const Expr *part = CALL(m, "tanh", {binary(m, "div", scores->expr, real(m, a->cap))});
        scores = state(m, binary(m, "mul", part, real(m, a->cap)));
    }
    if (!scores || (mode <= SCORES_CAPPED && !result(m, 3, scores->expr)))
        return NULL;
    const Tensor *bias = mask ? state(m, is_bool ? added(m, mask) : mask) : NULL;
    if (bias)
        scores = state(m, binary(m, "add", scores->expr, bias->expr));
    if (!scores || (mode == SCORES_BIASED && !result(m, 3, scores->expr)))
        return NULL;
    const Expr *soft = CALL(m, "softmax", {scores->expr}, {integer(m, -1), "axis"});
    if (bias) { /* a query that sees no key has 0 */
        const Expr *most =
            CALL(m, "max", {bias->expr}, {integer(m, -1), "axis"}, {boolean(m, true), "keepdims"});
        soft = CALL(m, "where", {binary(m, "less", most, real(m, -3.4028234663852886e38))},
                    {real(m, 0)}, {soft});
    }
    const Tensor *weights = state(m, soft);
    if (!weights || (mode == SCORES_SOFT && !result(m, 3, weights->expr)))
        return NULL;
    return binary(m, "matmul", weights->expr, repeat_heads(a, a->v));
}

static bool same_size(const Tensor *a, const Tensor *b, int axis)
{
    return a->dim[axis] == b->dim[axis] && a->open[axis] == b->open[axis] &&
           (!a->open[axis] || a->other[axis] == b->other[axis]);
}

/* As one op, which knows plain causality itself. */
static const Expr *as_one(Attention *a)
{
    Import *m = a->m;
    bool square = same_size(a->q, a->k, 2), is_bool;
    bool plain = a->causal && !a->past && !a->lengths && a->left < 0 && a->right < 0;
    const Expr *mask, *start = plain && !square ? word(m, "start") : NULL;
    if (plain)
        a->causal = false;
    if (!join_masks(a, &mask, &is_bool))
        return NULL;
    return CALL(m, "sdpa", {a->q->expr}, {a->k->expr}, {a->v->expr}, {mask, "mask"},
                {plain ? boolean(m, true) : NULL, "causal"}, {start, "align"},
                {real(m, a->scale), "scale"});
}

static bool attention(Import *m)
{
    Attention a = {.m = m};
    if (!take_operands(&a))
        return false;
    const Expr *y = a.cap > 0 || wanted(m, 3) ? write_out(&a) : as_one(&a);
    if (y && given(m, Q)->rank == 3) {
        const Tensor *heads = state(m, y);
        const int64_t swap[] = {0, 2, 1, 3};
        const Expr *dim[] = {size_of(m, given(m, Q), 0), size_of(m, given(m, Q), 1),
                             integer(m, -1)};
        y = heads ? reshape(m, CALL(m, "transpose", {heads->expr}, {ints(m, 4, swap), "perm"}), 3,
                            dim)
                  : NULL;
    }
    return y && result(m, 0, y) && result(m, 1, a.k->expr) && result(m, 2, a.v->expr);
}

/* ---- Rotary positions ------------------------------------------------------------------------ */

/* A table of the cosines or sines as [B, T, 1, R / 2]. */
static const Expr *take_angles(Import *m, int i)
{
    const Expr *angles = use(m, i);
    if (inputs(m) > 3 && given(m, 3))
        angles = CALL(m, "gather", {angles, "x"}, {use(m, 3), "index"}, {integer(m, 0), "axis"});
    return CALL(m, "unsqueeze", {angles}, {integer(m, 2), "axis"});
}

/* Every second number of the last axis, from `first` on; or half of it. */
static const Expr *take_half(Import *m, const Expr *x, int64_t size, int half, bool apart)
{
    Subscript s[4] = {{.kind = SUBSCRIPT_RANGE},
                      {.kind = SUBSCRIPT_RANGE},
                      {.kind = SUBSCRIPT_RANGE},
                      {.kind = SUBSCRIPT_RANGE}};
    s[3].start = integer(m, apart ? half * size / 2 : half);
    s[3].stop = integer(m, apart ? (half + 1) * size / 2 : size);
    s[3].step = apart ? NULL : integer(m, 2);
    return subscripts(m, x, 4, s);
}

static bool rotary(Import *m)
{
    const Tensor *x = given(m, 0);
    if (!x || !given(m, 1) || !given(m, 2) || x->rank < 3 || x->rank > 4)
        return refuse(m, "it needs X of three or four dimensions, and two tables");
    const int64_t swap[] = {0, 2, 1, 3};
    const Tensor *heads = split_heads(m, 0, attr_int(m, "num_heads", 0));
    const Tensor *at =
        heads ? state(m, CALL(m, "transpose", {heads->expr}, {ints(m, 4, swap), "perm"})) : NULL;
    if (!at)
        return false;
    int64_t size = attr_int(m, "rotary_embedding_dim", 0), whole = at->dim[3];
    size = size ? size : whole;
    if (size < 2 || size % 2 || size > whole)
        return refuse(m, "rotary_embedding_dim is %lld of %lld", (long long)size, (long long)whole);
    bool apart = !attr_int(m, "interleaved", 0);
    const Tensor *c = state(m, take_angles(m, 1)), *s = c ? state(m, take_angles(m, 2)) : NULL;
    const Tensor *a = s ? state(m, take_half(m, at->expr, size, 0, apart)) : NULL;
    const Tensor *b = a ? state(m, take_half(m, at->expr, size, 1, apart)) : NULL;
    if (!b)
        return false;
    const Expr *turned[] = {
        binary(m, "sub", binary(m, "mul", c->expr, a->expr), binary(m, "mul", s->expr, b->expr)),
        binary(m, "add", binary(m, "mul", s->expr, a->expr), binary(m, "mul", c->expr, b->expr))};
    const Expr *dim[] = {size_of(m, at, 0), size_of(m, at, 1), size_of(m, at, 2), integer(m, size)};
    const Expr *y =
        apart ? CALL(m, "concat", {list(m, 2, turned)}, {integer(m, 3), "axis"})
              : reshape(m, CALL(m, "stack", {list(m, 2, turned)}, {integer(m, 4), "axis"}), 4, dim);
    if (size < whole) {
        const Expr *rest = slice_axis(m, at->expr, 3, integer(m, size), integer(m, whole));
        const Expr *both[] = {y, rest};
        y = CALL(m, "concat", {list(m, 2, both)}, {integer(m, 3), "axis"});
    }
    const Expr *flat[] = {size_of(m, at, 0), size_of(m, at, 1), integer(m, -1)};
    return result(m, 0,
                  x->rank == 3 ? reshape(m, y, 3, flat)
                               : CALL(m, "transpose", {y}, {ints(m, 4, swap), "perm"}));
}

const Translation onnx_attention[] = {
    {"Attention", 23, attention},
    {"RotaryEmbedding", 23, rotary},
    {0},
};
