/* Numbers that follow from sizes, computed one by one while the file is read: Shape and what
 * follows it up to a Reshape. Where a dimension is free they are expressions of the language, so
 * that the model can be lowered again at another size. */
#include "frontend/onnx/follow.h"

#include <math.h>
#include <string.h>

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

bool give_numbers(Import *m, int i, const Numbers *n)
{
    return result_numbers(m, i, n->elem, n->rank, n->dim, n->at);
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

bool follow_add(Import *m, int elem, const Number *in, Number *out)
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

bool follow_mul(Import *m, int elem, const Number *in, Number *out)
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

static int64_t negative(int64_t number)
{
    return (int64_t)(0 - (uint64_t)number);
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
    out->integer = in[1].integer == -1 ? negative(in[0].integer) : in[0].integer / in[1].integer;
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

bool follow_max(Import *m, int elem, const Number *in, Number *out)
{
    out->real = in[0].real > in[1].real ? in[0].real : in[1].real;
    out->positive = in[0].positive || in[1].positive;
    finish(m, elem, "maximum", in, 2, out);
    out->integer = in[0].integer > in[1].integer ? in[0].integer : in[1].integer;
    return true;
}

bool follow_min(Import *m, int elem, const Number *in, Number *out)
{
    out->real = in[0].real < in[1].real ? in[0].real : in[1].real;
    out->positive = in[0].positive && in[1].positive;
    finish(m, elem, "minimum", in, 2, out);
    out->integer = in[0].integer < in[1].integer ? in[0].integer : in[1].integer;
    return true;
}

static bool f_pow(Import *m, int elem, const Number *in, Number *out)
{
    out->real = pow(in[0].real, in[1].real);
    return finish(m, elem, "pow", in, 2, out);
}

static bool f_neg(Import *m, int elem, const Number *in, Number *out)
{
    out->real = -in[0].real;
    out->integer = negative(in[0].integer);
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
    {"Add", 2, follow_add},
    {"Sub", 2, f_sub},
    {"Mul", 2, follow_mul},
    {"Div", 2, f_div},
    {"Mod", 2, f_mod},
    {"Max", 2, follow_max},
    {"Min", 2, follow_min},
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
int64_t place_in(const Numbers *n, const Numbers *out, int64_t i)
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

bool broadcast_numbers(const Numbers *in, int ins, Numbers *out)
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
    *done = broadcast_numbers(in, row->ins, &out);
    if (!*done)
        return true;
    Number *number = ARENA_ARRAY(m->arena, Number, (size_t)out.count + 1);
    for (int64_t i = 0; i < out.count; i++) {
        Number operand[2] = {in[0].at[place_in(&in[0], &out, i)]};
        if (row->ins == 2)
            operand[1] = in[1].at[place_in(&in[1], &out, i)];
        if (!row->apply(m, in[0].elem, operand, &number[i]))
            return false;
    }
    out.at = number;
    return give_numbers(m, 0, &out);
}

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
    const Mover *mover = mover_find(op);
    if (mover && gather(m, mover->least, mover->most, mover->moved, in))
        return mover->move(m, in, done);
    return true;
}
