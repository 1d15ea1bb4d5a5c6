/* Numbers that follow from sizes, computed one by one while the file is read: Shape and what stands
 * behind it up to a Reshape. Where a dimension is free they are expressions of the language, so
 * that the model can be lowered again at another size. */
#include "frontend/onnx/import.h"

#include <math.h>
#include <string.h>

enum { MAX_FOLLOWED = 256 }; /* numbers of a tensor */

/* A small tensor of them. */
typedef struct {
    int elem, rank;
    int64_t dim[MAX_RANK], count;
    const Number *at;
} Numbers;

static bool is_whole(int elem)
{
    return !elem_is_float(elem);
}

static bool take(Import *m, const Tensor *tensor, Numbers *n)
{
    *n = (Numbers){.elem = tensor->elem, .rank = tensor->rank, .count = 1};
    for (int i = 0; i < n->rank; i++) {
        n->dim[i] = tensor->dim[i];
        if (n->dim[i] > MAX_FOLLOWED)
            return false;
        n->count *= n->dim[i];
    }
    if (n->count > MAX_FOLLOWED || (!tensor->number && !tensor->data))
        return false;
    n->at = numbers(m, tensor);
    return n->at != NULL;
}

static bool give(Import *m, int i, const Numbers *n)
{
    return result_numbers(m, i, n->elem, n->rank, n->dim, n->at);
}

static Number known_number(int elem, double real)
{
    return (Number){.real = real, .integer = is_whole(elem) ? (int64_t)real : 0};
}

/* ---- Arithmetic ----------------------------------------------------------------------------- */

typedef struct {
    const char *op;
    int ins;
    bool (*apply)(Import *m, int elem, const Number *in, Number *out);
} Arithmetic;

static const Expr *expr_of(Import *m, const Number *n, int elem)
{
    return n->expr ? n->expr : number_expr(m, n, elem_dtype(elem));
}

/* What is computed, and how it is written where an operand is an expression. */
static bool finish(Import *m, int elem, const char *op, const Number *in, int ins, Number *out)
{
    bool open = in[0].expr || (ins > 1 && in[1].expr);
    if (is_whole(elem) && fabs(out->real) < 0x1p52)
        out->integer = (int64_t)out->real;
    if (open && ins == 1)
        out->expr = CALL(m, op, {expr_of(m, &in[0], elem)});
    else if (open)
        out->expr = binary(m, op, expr_of(m, &in[0], elem), expr_of(m, &in[1], elem));
    return true;
}

static bool f_add(Import *m, int elem, const Number *in, Number *out)
{
    out->real = in[0].real + in[1].real;
    out->positive = in[0].positive && in[1].positive;
    finish(m, elem, "add", in, 2, out);
    out->integer = (int64_t)((uint64_t)in[0].integer + (uint64_t)in[1].integer);
    return true;
}

static bool f_sub(Import *m, int elem, const Number *in, Number *out)
{
    out->real = in[0].real - in[1].real;
    finish(m, elem, "sub", in, 2, out);
    out->integer = (int64_t)((uint64_t)in[0].integer - (uint64_t)in[1].integer);
    return true;
}

static bool f_mul(Import *m, int elem, const Number *in, Number *out)
{
    bool one = !in[0].expr && in[0].real == 1, other = !in[1].expr && in[1].real == 1;
    if (one || other) {
        *out = in[one];
        return true;
    }
    out->real = in[0].real * in[1].real;
    out->positive = in[0].positive && in[1].positive;
    finish(m, elem, "mul", in, 2, out);
    out->integer = (int64_t)((uint64_t)in[0].integer * (uint64_t)in[1].integer);
    return true;
}

/* floor(1.0 * a / b): of sizes, so towards zero is down. */
static const Expr *floored(Import *m, const Number *a, const Number *b)
{
    const Expr *top = binary(m, "mul", expr_of(m, a, ELEM_INT64), real(m, 1));
    return CALL(m, "floor", {binary(m, "div", top, expr_of(m, b, ELEM_INT64))});
}

static bool f_div(Import *m, int elem, const Number *in, Number *out)
{
    if (!is_whole(elem)) {
        out->real = in[0].real / in[1].real;
        return finish(m, elem, "div", in, 2, out);
    }
    if (in[1].integer == 0)
        return refuse(m, "division by zero");
    if (!in[1].expr && in[1].integer == 1) {
        *out = in[0];
        return true;
    }
    out->integer = in[1].integer == -1 ? -in[0].integer : in[0].integer / in[1].integer;
    out->real = (double)out->integer;
    if (in[0].expr || in[1].expr)
        out->expr = floored(m, &in[0], &in[1]);
    return true;
}

static bool f_mod(Import *m, int elem, const Number *in, Number *out)
{
    if (!is_whole(elem) || in[1].integer == 0)
        return refuse(m, "a remainder of numbers that are not whole, or by 0");
    int64_t b = in[1].integer, rest = b == -1 ? 0 : in[0].integer % b;
    if (rest && (rest < 0) != (b < 0) && !attr_int(m, "fmod", 0))
        rest += b;
    out->integer = rest;
    out->real = (double)rest;
    if (in[0].expr || in[1].expr)
        out->expr = binary(m, "sub", expr_of(m, &in[0], elem),
                           binary(m, "mul", floored(m, &in[0], &in[1]), expr_of(m, &in[1], elem)));
    return true;
}

static bool f_max(Import *m, int elem, const Number *in, Number *out)
{
    out->real = in[0].real > in[1].real ? in[0].real : in[1].real;
    out->positive = in[0].positive || in[1].positive;
    return finish(m, elem, "maximum", in, 2, out);
}

static bool f_min(Import *m, int elem, const Number *in, Number *out)
{
    out->real = in[0].real < in[1].real ? in[0].real : in[1].real;
    out->positive = in[0].positive && in[1].positive;
    return finish(m, elem, "minimum", in, 2, out);
}

static bool f_pow(Import *m, int elem, const Number *in, Number *out)
{
    out->real = pow(in[0].real, in[1].real);
    return finish(m, elem, "pow", in, 2, out);
}

static bool f_neg(Import *m, int elem, const Number *in, Number *out)
{
    out->real = -in[0].real;
    out->integer = -in[0].integer;
    if (in[0].expr)
        out->expr = negate(m, in[0].expr);
    (void)elem;
    return true;
}

#define ONE_OPERAND(name, op, compute)                                       \
    static bool f_##name(Import *m, int elem, const Number *in, Number *out) \
    {                                                                        \
        out->real = compute(in[0].real);                                     \
        return finish(m, elem, op, in, 1, out);                              \
    }
ONE_OPERAND(abs, "abs", fabs)
ONE_OPERAND(floor, "floor", floor)
ONE_OPERAND(ceil, "ceil", ceil)
ONE_OPERAND(round, "round", rint)
ONE_OPERAND(sqrt, "sqrt", sqrt)

/* ---- Questions ------------------------------------------------------------------------------ */

/* A question whose answer would change with a free dimension fixes the sizes: see onnx_import. */
static bool decide(Import *m, bool answer, bool open, Number *out)
{
    *out = (Number){.real = answer, .integer = answer};
    if (open)
        m->pinned = true;
    return true;
}

/* A size against a number that no size is: the answer is known. */
static bool is_plain(const Number *in, Number *out, bool below, bool above)
{
    const Number *size = in[0].expr ? &in[0] : &in[1], *other = in[0].expr ? &in[1] : &in[0];
    if (!size->positive || other->expr || other->real > 0)
        return false;
    bool answer = size == &in[0] ? above : below; /* the left one is larger, or smaller */
    *out = (Number){.real = answer, .integer = answer};
    return true;
}

#define QUESTION(name, sign, below, above)                                                  \
    static bool f_##name(Import *m, int elem, const Number *in, Number *out)                \
    {                                                                                       \
        bool open = in[0].expr || in[1].expr;                                               \
        if (open && is_plain(in, out, below, above))                                        \
            return true;                                                                    \
        bool answer =                                                                       \
            is_whole(elem) ? in[0].integer sign in[1].integer : in[0].real sign in[1].real; \
        return decide(m, answer, open, out);                                                \
    }
QUESTION(equal, ==, false, false)
QUESTION(less, <, true, false)
QUESTION(less_equal, <=, true, false)
QUESTION(greater, >, false, true)
QUESTION(greater_equal, >=, false, true)

static bool f_and(Import *m, int elem, const Number *in, Number *out)
{
    (void)elem;
    return decide(m, in[0].integer && in[1].integer, false, out);
}

static bool f_or(Import *m, int elem, const Number *in, Number *out)
{
    (void)elem;
    return decide(m, in[0].integer || in[1].integer, false, out);
}

static bool f_not(Import *m, int elem, const Number *in, Number *out)
{
    (void)elem;
    return decide(m, !in[0].integer, false, out);
}

static const Arithmetic arithmetic[] = {
    {"Add", 2, f_add},
    {"Sub", 2, f_sub},
    {"Mul", 2, f_mul},
    {"Div", 2, f_div},
    {"Mod", 2, f_mod},
    {"Max", 2, f_max},
    {"Min", 2, f_min},
    {"Pow", 2, f_pow},
    {"Neg", 1, f_neg},
    {"Abs", 1, f_abs},
    {"Floor", 1, f_floor},
    {"Ceil", 1, f_ceil},
    {"Round", 1, f_round},
    {"Sqrt", 1, f_sqrt},
    {"Equal", 2, f_equal},
    {"Less", 2, f_less},
    {"LessOrEqual", 2, f_less_equal},
    {"Greater", 2, f_greater},
    {"GreaterOrEqual", 2, f_greater_equal},
    {"And", 2, f_and},
    {"Or", 2, f_or},
    {"Not", 1, f_not},
};

static bool answers_bool(const char *op)
{
    return strstr("Equal Less LessOrEqual Greater GreaterOrEqual And Or Not", op) != NULL;
}

/* The place in an operand of element i of the result, broadcast. */
static int64_t place(const Numbers *n, const Numbers *out, int64_t i)
{
    int64_t at = 0, step = 1;
    for (int k = out->rank - 1; k >= 0; k--) {
        int own = k - (out->rank - n->rank);
        int64_t index = i % out->dim[k];
        i /= out->dim[k];
        if (own < 0)
            continue;
        at += n->dim[own] == 1 ? 0 : index * step;
        step *= n->dim[own];
    }
    return at;
}

static bool broadcast(const Numbers *in, int ins, Numbers *out)
{
    out->rank = 0;
    for (int i = 0; i < ins; i++) {
        int64_t dim[MAX_RANK];
        for (int k = 0; k < in[i].rank; k++)
            if (!in[i].dim[k])
                return false;
        int rank = dims_broadcast(out->rank, out->dim, in[i].rank, in[i].dim, dim);
        if (rank < 0)
            return false;
        out->rank = rank;
        memcpy(out->dim, dim, sizeof dim);
    }
    out->count = 1;
    for (int k = 0; k < out->rank; k++)
        out->count *= out->dim[k];
    return out->count <= MAX_FOLLOWED;
}

static bool compute(Import *m, const Arithmetic *row, const Numbers *in, bool *done)
{
    Numbers out = {.elem = answers_bool(row->op) ? ELEM_BOOL : in[0].elem};
    *done = broadcast(in, row->ins, &out);
    if (!*done)
        return true;
    Number *number = ARENA_ARRAY(m->arena, Number, (size_t)out.count + 1);
    for (int64_t i = 0; i < out.count; i++) {
        Number operand[2] = {in[0].at[place(&in[0], &out, i)]};
        if (row->ins == 2)
            operand[1] = in[1].at[place(&in[1], &out, i)];
        if (!row->apply(m, in[0].elem, operand, &number[i]))
            return false;
    }
    out.at = number;
    return give(m, 0, &out);
}

/* ---- Moving numbers about ------------------------------------------------------------------- */

typedef bool Mover(Import *m, const Numbers *in, bool *done);

static bool v_where(Import *m, const Numbers *in, bool *done)
{
    Numbers out = {.elem = in[1].elem};
    *done = broadcast(in, 3, &out);
    if (!*done)
        return true;
    Number *number = ARENA_ARRAY(m->arena, Number, (size_t)out.count + 1);
    for (int64_t i = 0; i < out.count; i++) {
        const Number *condition = &in[0].at[place(&in[0], &out, i)];
        const Numbers *from = condition->integer ? &in[1] : &in[2];
        number[i] = from->at[place(from, &out, i)];
    }
    out.at = number;
    return give(m, 0, &out);
}

static bool v_cast(Import *m, const Numbers *in, bool *done)
{
    Numbers out = in[0];
    out.elem = (int)attr_int(m, "to", ELEM_NONE);
    bool reals = elem_is_float(out.elem);
    *done = elem_dtype(out.elem) != DTYPES && (reals || !elem_is_float(in[0].elem) ||
                                               out.elem == ELEM_INT64 || out.elem == ELEM_INT32);
    Number *number = ARENA_ARRAY(m->arena, Number, (size_t)out.count + 1);
    for (int64_t i = 0; *done && i < out.count; i++) {
        number[i] = in[0].at[i];
        if (is_whole(out.elem) && !is_whole(in[0].elem)) {
            number[i].integer = (int64_t)number[i].real;
            number[i].real = (double)number[i].integer;
            if (number[i].expr)
                number[i].expr = CALL(m, "floor", {number[i].expr});
        }
        if (out.elem == ELEM_BOOL && number[i].expr && !number[i].positive)
            m->pinned = true;
        if (out.elem == ELEM_BOOL)
            number[i] = known_number(ELEM_BOOL, number[i].real != 0);
    }
    out.at = number;
    return !*done || give(m, 0, &out);
}

/* Whatever leaves the order as it is. */
static bool v_reshaped(Import *m, const Numbers *in, bool *done, int rank, const int64_t *dim)
{
    Numbers out = in[0];
    out.rank = rank;
    for (int k = 0; k < rank; k++)
        out.dim[k] = dim[k];
    *done = true;
    return give(m, 0, &out);
}

static bool v_identity(Import *m, const Numbers *in, bool *done)
{
    return v_reshaped(m, in, done, in[0].rank, in[0].dim);
}

static bool v_squeeze(Import *m, const Numbers *in, bool *done)
{
    const int64_t *axes;
    int64_t count, dim[MAX_RANK];
    int rank = 0;
    bool gone[MAX_RANK] = {0};
    if (!ints_of(m, "axes", 1, &axes, &count))
        return false;
    for (int64_t i = 0; i < count; i++) {
        int axis;
        if (!take_axis(m, axes[i], in[0].rank, &axis))
            return false;
        gone[axis] = true;
    }
    for (int k = 0; k < in[0].rank; k++)
        if (count < 0 ? in[0].dim[k] != 1 : !gone[k])
            dim[rank++] = in[0].dim[k];
    return v_reshaped(m, in, done, rank, dim);
}

static bool v_unsqueeze(Import *m, const Numbers *in, bool *done)
{
    const int64_t *axes;
    int64_t count, dim[MAX_RANK];
    bool fresh[MAX_RANK] = {0};
    if (!ints_of(m, "axes", 1, &axes, &count))
        return false;
    int rank = in[0].rank + (int)(count < 0 ? 0 : count), own = 0;
    if (rank > MAX_RANK)
        return true;
    for (int64_t i = 0; i < count; i++) {
        int axis;
        if (!take_axis(m, axes[i], rank, &axis))
            return false;
        fresh[axis] = true;
    }
    for (int k = 0; k < rank; k++)
        dim[k] = fresh[k] ? 1 : in[0].dim[own++];
    return v_reshaped(m, in, done, rank, dim);
}

static bool v_reshape(Import *m, const Numbers *in, bool *done)
{
    int64_t dim[MAX_RANK], count = 1;
    int open = -1;
    if (in[1].count > MAX_RANK)
        return true;
    for (int k = 0; k < in[1].count; k++) {
        dim[k] = in[1].at[k].integer;
        if (in[1].at[k].expr)
            return true;
        if (dim[k] == 0 && k < in[0].rank)
            dim[k] = in[0].dim[k];
        if (dim[k] == -1)
            open = k;
        else
            count *= dim[k];
    }
    if (open >= 0)
        dim[open] = count ? in[0].count / count : 0;
    return v_reshaped(m, in, done, (int)in[1].count, dim);
}

static bool v_concat(Import *m, const Numbers *in, bool *done)
{
    Numbers out = in[0];
    out.count = 0;
    for (int i = 0; i < inputs(m); i++)
        if (in[i].rank != 1)
            return true;
    Number *number = ARENA_ARRAY(m->arena, Number, (size_t)inputs(m) * MAX_FOLLOWED + 1);
    for (int i = 0; i < inputs(m); i++) {
        memcpy(number + out.count, in[i].at, (size_t)in[i].count * sizeof *number);
        out.count += in[i].count;
    }
    if (out.count > MAX_FOLLOWED)
        return true;
    out.dim[0] = out.count;
    out.at = number;
    *done = true;
    return give(m, 0, &out);
}

static bool v_gather(Import *m, const Numbers *in, bool *done)
{
    Numbers out = in[1];
    if (in[0].rank != 1 || in[1].rank > MAX_RANK)
        return true;
    Number *number = ARENA_ARRAY(m->arena, Number, (size_t)out.count + 1);
    for (int64_t i = 0; i < out.count; i++) {
        int64_t at = in[1].at[i].integer;
        at += at < 0 ? in[0].count : 0;
        if (at < 0 || at >= in[0].count || in[1].at[i].expr)
            return refuse(m, "index %lld is outside of %lld numbers",
                          (long long)in[1].at[i].integer, (long long)in[0].count);
        number[i] = in[0].at[at];
    }
    out.elem = in[0].elem;
    out.at = number;
    *done = true;
    return give(m, 0, &out);
}

static int64_t clamp(int64_t at, int64_t least, int64_t most)
{
    return at < least ? least : at > most ? most : at;
}

static bool v_slice(Import *m, const Numbers *in, bool *done)
{
    const int64_t *starts, *ends, *axes, *steps;
    int64_t count[4];
    Numbers out = in[0];
    if (in[0].rank != 1)
        return true;
    if (!ints_of(m, "starts", 1, &starts, &count[0]) || !ints_of(m, "ends", 2, &ends, &count[1]) ||
        !ints_of(m, "axes", 3, &axes, &count[2]) || !ints_of(m, "steps", 4, &steps, &count[3]))
        return false;
    if (count[0] != 1 || count[1] != 1)
        return true;
    int64_t size = in[0].count, step = count[3] == 1 ? steps[0] : 1;
    int64_t from = starts[0] < 0 ? starts[0] + size : starts[0];
    int64_t to = ends[0] < 0 ? (ends[0] < -size ? -1 : ends[0] + size) : ends[0];
    if (step == 0)
        return refuse(m, "a step of 0");
    from = step > 0 ? clamp(from, 0, size) : clamp(from, -1, size - 1);
    to = step > 0 ? clamp(to, 0, size) : clamp(to, -1, size - 1);
    Number *number = ARENA_ARRAY(m->arena, Number, (size_t)size + 1);
    out.count = 0;
    for (int64_t i = from; step > 0 ? i < to : i > to; i += step)
        number[out.count++] = in[0].at[i];
    out.dim[0] = out.count;
    out.at = number;
    *done = true;
    return give(m, 0, &out);
}

/* The product, sum, ... of a row of them. */
static bool reduce(Import *m, const Numbers *in, bool *done,
                   bool (*apply)(Import *, int, const Number *, Number *))
{
    Numbers out = {.elem = in[0].elem, .rank = 0, .count = 1};
    if (in[0].rank > 1 || !in[0].count)
        return true;
    Number *all = ARENA_NEW(m->arena, Number);
    *all = in[0].at[0];
    for (int64_t i = 1; i < in[0].count; i++) {
        Number pair[2] = {*all, in[0].at[i]}, next = {0};
        if (!apply(m, in[0].elem, pair, &next))
            return false;
        *all = next;
    }
    if (attr_int(m, "keepdims", 1))
        out.dim[out.rank++] = 1;
    out.rank = in[0].rank ? out.rank : 0;
    out.at = all;
    *done = true;
    return give(m, 0, &out);
}

static bool v_prod(Import *m, const Numbers *in, bool *done)
{
    return reduce(m, in, done, f_mul);
}

static bool v_sum(Import *m, const Numbers *in, bool *done)
{
    return reduce(m, in, done, f_add);
}

static bool v_max(Import *m, const Numbers *in, bool *done)
{
    return reduce(m, in, done, f_max);
}

static bool v_min(Import *m, const Numbers *in, bool *done)
{
    return reduce(m, in, done, f_min);
}

static bool v_shape(Import *m, const Numbers *in, bool *done)
{
    Numbers out = {.elem = ELEM_INT64, .rank = 1, .dim = {in[0].rank}, .count = in[0].rank};
    Number *number = ARENA_ARRAY(m->arena, Number, MAX_RANK);
    for (int k = 0; k < in[0].rank; k++)
        number[k] = known_number(ELEM_INT64, (double)in[0].dim[k]);
    if (has_attr(m, "start") || has_attr(m, "end"))
        return true;
    out.at = number;
    *done = true;
    return give(m, 0, &out);
}

static bool v_constant_of_shape(Import *m, const Numbers *in, bool *done)
{
    const OnnxTensor *value = attr_tensor(m, "value");
    Numbers out = {.elem = value ? value->elem : ELEM_FLOAT, .rank = (int)in[0].count, .count = 1};
    if (in[0].count > 1 || elem_dtype(out.elem) == DTYPES)
        return true;
    for (int k = 0; k < out.rank; k++) {
        out.dim[k] = in[0].at[k].integer;
        if (in[0].at[k].expr || out.dim[k] < 0 || out.dim[k] > MAX_FOLLOWED)
            return true;
        out.count *= out.dim[k];
    }
    Number *number = ARENA_ARRAY(m->arena, Number, (size_t)out.count + 1);
    for (int64_t i = 0; i < out.count; i++)
        number[i] = known_number(out.elem, value ? onnx_number(value, 0) : 0);
    out.at = number;
    *done = true;
    return give(m, 0, &out);
}

static bool v_range(Import *m, const Numbers *in, bool *done)
{
    Numbers out = {.elem = in[0].elem, .rank = 1};
    for (int i = 0; i < 3; i++)
        if (in[i].at[0].expr || !is_whole(in[i].elem))
            return true;
    int64_t from = in[0].at[0].integer, to = in[1].at[0].integer, step = in[2].at[0].integer;
    int64_t span = step > 0 ? to - from : from - to, size = step < 0 ? -step : step;
    out.count = out.dim[0] = span > 0 && size ? (span + size - 1) / size : 0;
    if (!step || out.count > MAX_FOLLOWED)
        return true;
    Number *number = ARENA_ARRAY(m->arena, Number, (size_t)out.count + 1);
    for (int64_t i = 0; i < out.count; i++)
        number[i] = known_number(out.elem, (double)(from + i * step));
    out.at = number;
    *done = true;
    return give(m, 0, &out);
}

static bool v_expand(Import *m, const Numbers *in, bool *done)
{
    Numbers shape = {.elem = in[0].elem, .rank = (int)in[1].count, .count = 1}, out = {0};
    if (in[1].count > MAX_RANK)
        return true;
    for (int k = 0; k < shape.rank; k++) {
        shape.dim[k] = in[1].at[k].integer;
        if (in[1].at[k].expr || shape.dim[k] < 1)
            return true;
    }
    Numbers both[2] = {in[0], shape};
    if (!broadcast(both, 2, &out))
        return true;
    Number *number = ARENA_ARRAY(m->arena, Number, (size_t)out.count + 1);
    for (int64_t i = 0; i < out.count; i++)
        number[i] = in[0].at[place(&in[0], &out, i)];
    out.elem = in[0].elem;
    out.at = number;
    *done = true;
    return give(m, 0, &out);
}

static const struct {
    const char *op;
    int least, most; /* inputs */
    int moved;       /* of which the first so many are numbers that are moved */
    Mover *move;
} movers[] = {
    {"Where", 3, 3, 3, v_where},
    {"Cast", 1, 1, 1, v_cast},
    {"Identity", 1, 1, 1, v_identity},
    {"Squeeze", 1, 2, 1, v_squeeze},
    {"Unsqueeze", 1, 2, 1, v_unsqueeze},
    {"Reshape", 2, 2, 2, v_reshape},
    {"Concat", 1, 64, 64, v_concat},
    {"Gather", 2, 2, 2, v_gather},
    {"Slice", 1, 5, 1, v_slice},
    {"ReduceProd", 1, 2, 1, v_prod},
    {"ReduceSum", 1, 2, 1, v_sum},
    {"ReduceMax", 1, 2, 1, v_max},
    {"ReduceMin", 1, 2, 1, v_min},
    {"Shape", 1, 1, 1, v_shape},
    {"ConstantOfShape", 1, 1, 1, v_constant_of_shape},
    {"Range", 3, 3, 3, v_range},
    {"Expand", 2, 2, 2, v_expand},
};

/* Whole numbers are followed wherever they are known; reals where they came from those. */
static bool gather(Import *m, int least, int most, int count, Numbers *in)
{
    bool followed = false, whole = true;
    if (inputs(m) < least || inputs(m) > most)
        return false;
    for (int i = 0; i < inputs(m) && i < count; i++) {
        const Tensor *tensor = given(m, i);
        if (!tensor || !take(m, tensor, &in[i]))
            return false;
        followed |= !tensor->data;
        whole &=
            tensor->elem == ELEM_INT64 || tensor->elem == ELEM_INT32 || tensor->elem == ELEM_BOOL;
    }
    return followed || whole;
}

bool follow(Import *m, bool *done)
{
    Numbers in[64];
    const char *op = m->node->op;
    *done = false;
    if (*m->node->domain)
        return true;
    for (size_t i = 0; i < sizeof arithmetic / sizeof *arithmetic; i++)
        if (strcmp(arithmetic[i].op, op) == 0 &&
            gather(m, arithmetic[i].ins, arithmetic[i].ins, arithmetic[i].ins, in))
            return compute(m, &arithmetic[i], in, done);
    for (size_t i = 0; i < sizeof movers / sizeof *movers; i++)
        if (strcmp(movers[i].op, op) == 0 &&
            gather(m, movers[i].least, movers[i].most, movers[i].moved, in))
            return movers[i].move(m, in, done);
    return true;
}
