/* Expressions: numbers are computed here and now, tensors become calls of ops. */
#include "frontend/lower.h"

#include <math.h>
#include <string.h>

const Val POISON = {.kind = VAL_POISON};

Val val_int(int64_t integer)
{
    return (Val){.kind = VAL_INT, .integer = integer};
}

Val val_float(double number)
{
    return (Val){.kind = VAL_FLOAT, .number = number};
}

Val val_bool(bool truth)
{
    return (Val){.kind = VAL_BOOL, .integer = truth};
}

Val val_tensor(Use use)
{
    return use.value == NONE ? POISON : (Val){.kind = VAL_TENSOR, .use = use};
}

bool val_is_number(Val val)
{
    return val.kind == VAL_INT || val.kind == VAL_FLOAT || val.kind == VAL_BOOL;
}

double val_number(Val val)
{
    return val.kind == VAL_FLOAT ? val.number : (double)val.integer;
}

const char *val_text(Lower *l, Val val)
{
    switch (val.kind) {
    case VAL_INT:
        return arena_printf(l->arena, "the number %lld", (long long)val.integer);
    case VAL_FLOAT:
        return arena_printf(l->arena, "the number %g", val.number);
    case VAL_BOOL:
        return val.integer ? "true" : "false";
    case VAL_STRING:
        return arena_printf(l->arena, "the string \"%s\"", val.text);
    case VAL_WORD:
        return arena_printf(l->arena, "the word %s", val.text);
    case VAL_LIST:
        return "a list";
    case VAL_TENSOR:
        return arena_printf(l->arena, "a tensor %s", use_text(l->g, val.use));
    case VAL_TUPLE:
        return arena_printf(l->arena, "%u values", val.count);
    case VAL_POISON:
        break;
    }
    return "nothing";
}

Use literal_of(Lower *l, Val number)
{
    Dtype dtype = number.kind == VAL_FLOAT ? F32 : number.kind == VAL_INT ? I64 : BOOL;
    return graph_literal(l->g, val_number(number), dtype);
}

/* ---- Numbers -------------------------------------------------------------------------------- */

static Val overflow(Lower *l, const Frame *frame, const Expr *expr)
{
    lower_error(l, frame, expr->span, "the number does not fit in 64 bits");
    return POISON;
}

static Val divide(Lower *l, const Frame *frame, const Expr *expr, int64_t a, int64_t b)
{
    if (b == 0) {
        lower_error(l, frame, expr->span, "division by zero");
        return POISON;
    }
    if (a == INT64_MIN && b == -1)
        return overflow(l, frame, expr);
    if (a % b == 0)
        return val_int(a / b);
    lower_error(l, frame, expr->span, "%lld / %lld leaves a remainder of %lld", (long long)a,
                (long long)b, (long long)(a % b));
    diag_hint(l->diag, "integers must divide; for a float write %lld.0/%lld", (long long)a,
              (long long)b);
    return POISON;
}

static Val compute_ints(Lower *l, const Frame *frame, const Expr *expr, const char *op, int64_t a,
                        int64_t b)
{
    int64_t result = 0;
    bool over = false;
    switch (*op) {
    case 'a':
        over = __builtin_add_overflow(a, b, &result);
        break;
    case 's':
        over = __builtin_sub_overflow(a, b, &result);
        break;
    case 'm':
        over = __builtin_mul_overflow(a, b, &result);
        break;
    default:
        return divide(l, frame, expr, a, b);
    }
    return over ? overflow(l, frame, expr) : val_int(result);
}

static double add(double a, double b)
{
    return a + b;
}

static double sub(double a, double b)
{
    return a - b;
}

static double mul(double a, double b)
{
    return a * b;
}

static double quotient(double a, double b)
{
    return a / b;
}

static double less(double a, double b)
{
    return a < b;
}

static double less_equal(double a, double b)
{
    return a <= b;
}

static double equal(double a, double b)
{
    return a == b;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

/* What ops give for numbers; ops that are not here need a tensor. */
static const struct {
    const char *op;
    double (*one)(double);
    double (*two)(double, double);
    enum { KEEPS_INT = 1, GIVES_INT, GIVES_BOOL, SWAPPED_BOOL, UNEQUAL } how;
} folds[] = {
    {"add", NULL, add, KEEPS_INT},
    {"sub", NULL, sub, KEEPS_INT},
    {"mul", NULL, mul, KEEPS_INT},
    {"div", NULL, quotient, KEEPS_INT},
    {"less", NULL, less, GIVES_BOOL},
    {"less_equal", NULL, less_equal, GIVES_BOOL},
    {"greater", NULL, less, SWAPPED_BOOL},
    {"greater_equal", NULL, less_equal, SWAPPED_BOOL},
    {"equal", NULL, equal, GIVES_BOOL},
    {"not_equal", NULL, equal, UNEQUAL},
    {"maximum", NULL, larger, GIVES_INT},
    {"minimum", NULL, smaller, GIVES_INT},
    {"pow", NULL, pow, GIVES_INT},
    {"sqrt", sqrt, NULL, 0},
    {"exp", exp, NULL, 0},
    {"log", log, NULL, 0},
    {"sin", sin, NULL, 0},
    {"cos", cos, NULL, 0},
    {"tanh", tanh, NULL, 0},
    {"erf", erf, NULL, 0},
    {"abs", fabs, NULL, GIVES_INT},
    {"floor", floor, NULL, KEEPS_INT},
    {"ceil", ceil, NULL, KEEPS_INT},
    {"round", rint, NULL, KEEPS_INT},
};

static Val fold_floats(Lower *l, const Frame *frame, const Expr *expr, size_t row, const Val *val)
{
    double a = val_number(val[0]), b = folds[row].two ? val_number(val[1]) : 0, result;
    if (folds[row].how == SWAPPED_BOOL)
        result = folds[row].two(b, a);
    else
        result = folds[row].two ? folds[row].two(a, b) : folds[row].one(a);
    if (folds[row].how >= GIVES_BOOL)
        return val_bool((result != 0) != (folds[row].how == UNEQUAL));
    if (!isfinite(result)) {
        bool zero = folds[row].two == quotient && b == 0;
        lower_error(l, frame, expr->span, zero ? "division by zero" : "the result is not a number");
        return POISON;
    }
    bool whole = folds[row].how == GIVES_INT && val[0].kind == VAL_INT &&
                 (folds[row].one || val[1].kind == VAL_INT);
    whole |= folds[row].one && folds[row].how == KEEPS_INT;
    if (whole && result == floor(result) && fabs(result) < 9007199254740992.0)
        return val_int((int64_t)result);
    return val_float(result);
}

bool fold(Lower *l, Frame *frame, const Expr *expr, const char *op, int count, const Val *val,
          Val *result)
{
    size_t row = 0, rows = sizeof folds / sizeof *folds;
    while (row < rows && strcmp(folds[row].op, op) != 0)
        row++;
    if (row == rows || count != (folds[row].two ? 2 : 1))
        return false;
    bool ints = true;
    for (int i = 0; i < count; i++) {
        if (!val_is_number(val[i]))
            return false;
        ints &= val[i].kind == VAL_INT;
    }
    if (ints && folds[row].two && folds[row].how == KEEPS_INT)
        *result = compute_ints(l, frame, expr, op, val[0].integer, val[1].integer);
    else if (ints && folds[row].one && folds[row].how == KEEPS_INT)
        *result = val[0];
    else
        *result = fold_floats(l, frame, expr, row, val);
    return true;
}

bool eval_int(Lower *l, Frame *frame, const Expr *expr, const char *what, int64_t *value)
{
    Val val = eval(l, frame, expr, NULL);
    if (val.kind == VAL_INT) {
        *value = val.integer;
        return true;
    }
    if (val.kind != VAL_POISON)
        lower_error(l, frame, expr->span, "%s must be an integer, not %s", what, val_text(l, val));
    return false;
}

/* ---- Expressions ---------------------------------------------------------------------------- */

static Val operate(Lower *l, Frame *frame, const Expr *expr, const char *op, int count,
                   const Val *val, const Span *span, const Bound *bound)
{
    bool tensor = false;
    for (int i = 0; i < count; i++)
        if (val[i].kind == VAL_POISON)
            return POISON;
    for (int i = 0; i < count; i++) {
        if (!val_is_number(val[i]) && val[i].kind != VAL_TENSOR) {
            lower_error(l, frame, span[i], "%s takes tensors and numbers, not %s", op,
                        val_text(l, val[i]));
            return POISON;
        }
        tensor |= val[i].kind == VAL_TENSOR;
    }
    Val result;
    if (!tensor && fold(l, frame, expr, op, count, val, &result))
        return result;
    return call_operator(l, frame, expr, op, count, val, span, bound);
}

/* a + b + c + ... leans to the left and may be long: a loop, from the innermost out. */
static Val eval_binary(Lower *l, Frame *frame, const Expr *expr, const Bound *bound)
{
    size_t length = 0;
    for (const Expr *at = expr; at->kind == EXPR_BINARY; at = at->left)
        length++;
    const Expr **chain = ARENA_ARRAY(l->arena, const Expr *, length);
    for (const Expr *at = expr; at->kind == EXPR_BINARY; at = at->left)
        chain[--length] = at;
    Val left = eval(l, frame, chain[0]->left, NULL);
    for (size_t i = 0;; i++) {
        Val val[] = {left, eval(l, frame, chain[i]->right, NULL)};
        Span span[] = {chain[i]->left->span, chain[i]->right->span};
        bool last = chain[i] == expr;
        if (!lower_step(l, chain[i]->span))
            return POISON;
        left = operate(l, frame, chain[i], chain[i]->text, 2, val, span, last ? bound : NULL);
        if (last)
            return left;
    }
}

static Val eval_neg(Lower *l, Frame *frame, const Expr *expr, const Bound *bound)
{
    Val val = eval(l, frame, expr->left, NULL);
    if (val.kind == VAL_INT)
        return val.integer == INT64_MIN ? overflow(l, frame, expr) : val_int(-val.integer);
    if (val.kind == VAL_FLOAT)
        return val_float(-val.number);
    return operate(l, frame, expr, "neg", 1, &val, &expr->left->span, bound);
}

static Val eval_name(Lower *l, Frame *frame, const Expr *expr)
{
    const Binding *binding = frame_find(frame, expr->text);
    if (binding)
        return binding->val;
    unknown_name(l, frame, expr->text, expr->span);
    return POISON;
}

/* A name in quotes; or a string, where nothing has that name. */
static Val eval_string(Lower *l, Frame *frame, const Expr *expr)
{
    const char *text = spell(l, frame, expr->text, expr->span);
    if (!text)
        return POISON;
    const Binding *binding = frame_find(frame, text);
    return binding ? binding->val : (Val){.kind = VAL_STRING, .text = text};
}

static Val eval_list(Lower *l, Frame *frame, const Expr *expr)
{
    Val *item = ARENA_ARRAY(l->arena, Val, expr->arg.count ? expr->arg.count : 1);
    bool poison = false;
    for (size_t i = 0; i < expr->arg.count; i++) {
        item[i] = eval(l, frame, expr->arg.at[i].value, NULL);
        poison |= item[i].kind == VAL_POISON;
    }
    if (poison)
        return POISON;
    return (Val){.kind = VAL_LIST, .count = (uint32_t)expr->arg.count, .item = item};
}

static Val eval_kind(Lower *l, Frame *frame, const Expr *expr, const Bound *bound)
{
    switch (expr->kind) {
    case EXPR_NAME:
        return eval_name(l, frame, expr);
    case EXPR_INT:
        return val_int(expr->integer);
    case EXPR_FLOAT:
        return val_float(expr->number);
    case EXPR_BOOL:
        return val_bool(expr->integer);
    case EXPR_STRING:
        return eval_string(l, frame, expr);
    case EXPR_LIST:
        return eval_list(l, frame, expr);
    case EXPR_CALL:
        return eval_call(l, frame, expr, bound);
    case EXPR_BINARY:
        return eval_binary(l, frame, expr, bound);
    case EXPR_NEG:
        return eval_neg(l, frame, expr, bound);
    case EXPR_SLICE:
        return eval_slice(l, frame, expr);
    }
    return POISON;
}

Val eval(Lower *l, Frame *frame, const Expr *expr, const Bound *bound)
{
    if (!lower_step(l, expr->span))
        return POISON;
    if (l->levels >= MAX_LEVELS) {
        lower_error(l, frame, expr->span, "blocks and expressions are nested too deeply");
        l->stop = true;
        return POISON;
    }
    l->levels++;
    Val val = eval_kind(l, frame, expr, bound);
    l->levels--;
    return val;
}
