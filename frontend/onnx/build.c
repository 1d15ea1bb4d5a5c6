/* Builders of expressions, for translations. */
#include "frontend/onnx/import.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const Span here = {0, 0, 0, 0};

const Expr *call(Import *m, const char *op, size_t count, const Item *item)
{
    Arguments args = {0};
    for (size_t i = 0; i < count; i++)
        if (item[i].value) {
            Name name = {item[i].name ? intern(m, item[i].name) : NULL, here};
            ARRAY_PUSH(m->arena, &args, (Argument){.name = name, .value = item[i].value});
        }
    return expr_call(m->parse, (Name){intern(m, op), here}, here, args);
}

/* An operand that the node leaves out, where it must not. */
static const Expr *present(Import *m, const Expr *x)
{
    if (x)
        return x;
    refuse(m, "an operand is missing");
    return word(m, "none");
}

const Expr *binary(Import *m, const char *op, const Expr *left, const Expr *right)
{
    left = present(m, left);
    right = present(m, right);
    static const char *const signs[] = {"add",   "sub",        "mul",     "div",
                                        "less",  "less_equal", "greater", "greater_equal",
                                        "equal", "not_equal",  "matmul"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (strcmp(signs[i], op) == 0)
            return expr_binary(m->parse, signs[i], here, left, right);
    return CALL(m, op, {left}, {right});
}

const Expr *negate(Import *m, const Expr *value)
{
    return expr_unary(m->parse, EXPR_NEG, here, present(m, value));
}

const Expr *integer(Import *m, int64_t number)
{
    bool negative = number < 0 && number != INT64_MIN;
    Expr *expr = expr_new(m->parse, EXPR_INT, here);
    expr->integer = negative ? -number : number;
    return negative ? negate(m, expr) : expr;
}

/* The shortest decimal that is the same in f32: 1e-05, which the file has as 9.99999975e-06. */
static double shortest(double number)
{
    char text[40];
    double decimal = number;
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        decimal = strtod(text, NULL);
        if ((float)decimal == (float)number)
            return decimal;
    }
    return number;
}

const Expr *real(Import *m, double number)
{
    Expr *expr = expr_new(m->parse, EXPR_FLOAT, here);
    expr->number = isinf(number)                     ? 1e39
                   : (double)(float)number == number ? shortest(fabs(number))
                                                     : fabs(number);
    return signbit(number) ? negate(m, expr) : expr;
}

const Expr *boolean(Import *m, bool truth)
{
    Expr *expr = expr_new(m->parse, EXPR_BOOL, here);
    expr->integer = truth;
    return expr;
}

const Expr *word(Import *m, const char *text)
{
    Expr *expr = expr_new(m->parse, EXPR_NAME, here);
    expr->text = intern(m, text);
    return expr;
}

const Expr *list(Import *m, size_t count, const Expr *const *item)
{
    Arguments items = {0};
    for (size_t i = 0; i < count; i++)
        ARRAY_PUSH(m->arena, &items, (Argument){.value = item[i]});
    return expr_list(m->parse, here, items);
}

const Expr *ints(Import *m, size_t count, const int64_t *number)
{
    Arguments items = {0};
    for (size_t i = 0; i < count; i++)
        ARRAY_PUSH(m->arena, &items, (Argument){.value = integer(m, number[i])});
    return expr_list(m->parse, here, items);
}

const Expr *number_expr(Import *m, const Number *number, Dtype dtype)
{
    if (number->expr) {
        m->tainted = true;
        return number->expr;
    }
    if (dtype == BOOL)
        return boolean(m, number->integer);
    return dtype_is_float(dtype) ? real(m, number->real) : integer(m, number->integer);
}

const Expr *slice_axis(Import *m, const Expr *x, int axis, const Expr *from, const Expr *to)
{
    Subscripts subscripts = {0};
    for (int i = 0; i <= axis; i++) {
        Subscript s = {.kind = SUBSCRIPT_RANGE};
        if (i == axis) {
            s.start = from;
            s.stop = to;
        }
        ARRAY_PUSH(m->arena, &subscripts, s);
    }
    return expr_slice(m->parse, here, present(m, x), subscripts);
}

/* The one free dimension that has these sizes in the two scratch graphs; NULL. */
static const char *free_size(const Import *m, int64_t size, int64_t other)
{
    const char *name = NULL;
    for (size_t i = 0; i < m->defines; i++)
        if (m->define[0][i].value == size && m->define[1][i].value == other) {
            if (name)
                return NULL;
            name = m->define[0][i].name;
        }
    return name;
}

Number size_number(Import *m, const Tensor *tensor, int axis)
{
    int64_t size = tensor->dim[axis];
    Number number = {.real = (double)size, .integer = size, .positive = true};
    if (tensor->open[axis] && tensor->expr) {
        const char *name = free_size(m, size, tensor->other[axis]);
        number.expr = name ? word(m, name) : CALL(m, "dim", {tensor->expr}, {integer(m, axis)});
    }
    return number;
}

const Expr *size_of(Import *m, const Tensor *tensor, int axis)
{
    Number number = size_number(m, tensor, axis);
    return number_expr(m, &number, I64);
}

const Expr *cast(Import *m, const Expr *x, Dtype dtype)
{
    return CALL(m, "cast", {x}, {word(m, dtype_name(dtype))});
}

const Expr *reshape(Import *m, const Expr *x, size_t rank, const Expr *const *dim)
{
    return CALL(m, "reshape", {x}, {list(m, rank, dim), "shape"});
}

const Expr *zero_like(Import *m, const Tensor *tensor)
{
    return elem_is_float(tensor->elem) ? real(m, 0) : integer(m, 0);
}

Tensor *tensor_copy(Import *m, const Tensor *tensor)
{
    Tensor *copy = ARENA_NEW(m->arena, Tensor);
    *copy = *tensor;
    return copy;
}

Number *number_array(Import *m, int64_t count)
{
    return ARENA_ARRAY(m->arena, Number, (size_t)count + 1);
}

const Expr *use_declared(Import *m, int i)
{
    const Tensor *x = given(m, i);
    if (!x || x->expr || x->rank)
        return use(m, i);
    const Number *number = numbers(m, x);
    return number ? constant_expr(m, x->elem, number) : use(m, i);
}

const Expr *numbers_expr(Import *m, int elem, int rank, const int64_t *dim, const Number *number)
{
    Tensor constant = {.name = m->node->output.count ? m->node->output.at[0] : m->node->op,
                       .elem = elem,
                       .dtype = elem_dtype(elem),
                       .rank = rank,
                       .number = number,
                       .value = NONE};
    for (int i = 0; i < rank; i++)
        constant.dim[i] = dim[i];
    const Tensor *stated = declare(m, &constant);
    return stated ? stated->expr : NULL;
}

const Expr *constant_expr(Import *m, int elem, const Number *number)
{
    Number *kept = number_array(m, 1);
    *kept = *number;
    return numbers_expr(m, elem, 0, NULL, kept);
}

const Expr *subscripts(Import *m, const Expr *x, size_t count, const Subscript *subscript)
{
    Subscripts all = {0};
    for (size_t i = 0; i < count; i++)
        ARRAY_PUSH(m->arena, &all, subscript[i]);
    return expr_slice(m->parse, here, present(m, x), all);
}
