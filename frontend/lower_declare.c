/* Declarations: input, param, const, their types and initializers. */
#include "frontend/lower.h"

#include <string.h>

typedef struct {
    Dtype dtype;
    int rank;
    int64_t dim[MAX_RANK];
} Shape;

/* ---- Types ---------------------------------------------------------------------------------- */

static bool find_dtype(Lower *l, Frame *frame, Name name, Dtype *dtype)
{
    *dtype = name.text ? dtype_find(name.text) : F32;
    if (*dtype != DTYPES)
        return true;
    static const char *const others[][2] = {
        {"float", "f32"},   {"float32", "f32"}, {"int", "i32"},       {"int32", "i32"},
        {"long", "i64"},    {"int64", "i64"},   {"half", "f16"},      {"uint8", "u8"},
        {"byte", "u8"},     {"float16", "f16"}, {"bfloat16", "bf16"}, {"double", "f64"},
        {"float64", "f64"}, {"int8", "i8"},     {"uint16", "u16"},    {"uint32", "u32"}};
    const char *names[DTYPES], *all = "";
    for (int i = 0; i < DTYPES; i++) {
        names[i] = dtype_name((Dtype)i);
        all = arena_printf(l->arena, "%s%s%s", all,
                           i == 0            ? ""
                           : i == DTYPES - 1 ? " and "
                                             : ", ",
                           names[i]);
    }
    const char *meant = suggest(name.text, names, DTYPES);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i][0], name.text) == 0)
            meant = others[i][1];
    lower_error(l, frame, name.span, "unknown type %s", name.text);
    if (meant)
        diag_hint(l->diag, "did you mean %s?", meant);
    else
        diag_hint(l->diag, "the types are %s", all);
    return false;
}

static bool lower_type(Lower *l, Frame *frame, const Type *type, Shape *shape)
{
    bool good = find_dtype(l, frame, type->dtype, &shape->dtype);
    if (type->dim.count > MAX_RANK)
        return lower_error(l, frame, type->span, "a tensor has at most %d dimensions, not %zu",
                           MAX_RANK, type->dim.count);
    shape->rank = (int)type->dim.count;
    for (int i = 0; i < shape->rank; i++) {
        const Expr *expr = type->dim.at[i].value;
        if (!eval_int(l, frame, expr, "a dimension", &shape->dim[i])) {
            good = false;
        } else if (shape->dim[i] <= 0) {
            lower_error(l, frame, expr->span, "a dimension must be at least 1, not %lld",
                        (long long)shape->dim[i]);
            good = false;
        }
    }
    const char *error;
    if (good && !dims_check(shape->dtype, shape->rank, shape->dim, &error))
        return lower_error(l, frame, type->span, "%s is invalid: %s",
                           shape_text(l->arena, shape->dtype, shape->rank, shape->dim), error);
    return good;
}

/* An input of a micro-batch: a window of the whole one, along the first axis. NONE where the dims
 * are not those of one. */
static Id micro_input(Lower *l, const char *name, Id whole, const Shape *shape, Span span)
{
    const Value *value = &l->g->value.at[whole];
    if (value->kind != VALUE_INPUT || shape->rank < 1 || value->rank != shape->rank ||
        value->dtype != shape->dtype || value->dim[0] % shape->dim[0] != 0 ||
        memcmp(value->dim + 1, shape->dim + 1, (size_t)(shape->rank - 1) * sizeof *shape->dim) != 0)
        return NONE;
    const char *own = arena_printf(l->arena, "%s/micro", name);
    Id id = graph_find(l->g, own); /* of another program that runs in micro-batches */
    if (id == NONE)
        id = graph_value(l->g, VALUE_INPUT, own, shape->dtype, shape->rank, shape->dim, span);
    l->g->value.at[id].whole = whole;
    return id;
}

/* A declared value, or the one of that name that an earlier lowering made. */
static Id declare(Lower *l, Frame *frame, ValueKind kind, const char *name, const Shape *shape,
                  Span span)
{
    Id id = graph_find(l->g, name);
    if (id == NONE)
        return graph_value(l->g, kind, name, shape->dtype, shape->rank, shape->dim, span);
    const Value *value = &l->g->value.at[id];
    if (frame->again || id < l->earlier) {
        bool same = value->rank == shape->rank && value->dtype == shape->dtype &&
                    memcmp(value->dim, shape->dim, (size_t)shape->rank * sizeof *shape->dim) == 0;
        if (same)
            return id;
        Id micro = micro_input(l, name, id, shape, span);
        if (micro != NONE)
            return micro;
        lower_error(l, frame, span, "%s would be %s here, but it is %s", name,
                    shape_text(l->arena, shape->dtype, shape->rank, shape->dim),
                    use_text(l->g, use_of(id)));
        return NONE;
    }
    lower_error(l, frame, span, "the name %s is taken", name);
    diag_note(l->diag, value->span, "by this");
    return NONE;
}

static void bind_declared(Lower *l, Frame *frame, Name name, BoundKind kind, Id id)
{
    frame_bind(l, frame, name, kind, id == NONE ? POISON : val_tensor(use_of(id)));
}

void lower_input(Lower *l, Frame *frame, const Stmt *stmt)
{
    Shape shape;
    Id id = NONE;
    bool good = lower_type(l, frame, &stmt->type, &shape) && !is_spelt(stmt->name.text);
    if (good && !frame_find_here(frame, stmt->name.text)) {
        id = declare(l, frame, VALUE_INPUT, stmt->name.text, &shape, stmt->name.span);
        reserve_name(l, stmt->name.text, stmt->name.span);
    }
    bind_declared(l, frame, stmt->name, BOUND_INPUT, id);
}

/* ---- Initializers --------------------------------------------------------------------------- */

static int64_t area(const Shape *shape) /* of a filter, f32[out, in, ...] */
{
    int64_t product = 1;
    for (int i = 2; i < shape->rank; i++)
        product *= shape->dim[i];
    return product;
}

/* A matrix is [in, out], as in x @ w; with more axes it is a filter, [out, in, ...]. */
static int64_t fan_in(const Shape *shape)
{
    if (shape->rank <= 2)
        return shape->rank ? shape->dim[0] : 1;
    return shape->dim[1] * area(shape);
}

static int64_t fan_out(const Shape *shape)
{
    if (shape->rank <= 2)
        return shape->rank ? shape->dim[shape->rank - 1] : 1;
    return shape->dim[0] * area(shape);
}

static const struct {
    const char *name;
    int least, most; /* arguments */
    const char *usage;
} initializers[] = {
    {"zeros", 0, 0, "zeros"},
    {"ones", 0, 0, "ones"},
    {"const", 1, 1, "const(value)"},
    {"uniform", 2, 2, "uniform(from, to)"},
    {"normal", 1, 2, "normal(deviation) or normal(mean, deviation)"},
    {"xavier", 0, 0, "xavier"},
    {"he", 0, 0, "he"},
};
enum { ZEROS, ONES, CONSTANT, UNIFORM, NORMAL, XAVIER, HE, INITIALIZERS };

static Init make_init(int which, int count, const double *number, const Shape *shape)
{
    switch (which) {
    case ZEROS:
    case ONES:
        return init_const(which == ONES);
    case CONSTANT:
        return init_const(number[0]);
    case UNIFORM:
        return (Init){.kind = INIT_UNIFORM, .a = number[0], .b = number[1]};
    case NORMAL:
        return (Init){.kind = INIT_NORMAL,
                      .a = count == 2 ? number[0] : 0,
                      .b = count == 2 ? number[1] : number[0]};
    case XAVIER:
        return init_xavier(fan_in(shape), fan_out(shape));
    default:
        return init_he(fan_in(shape));
    }
}

static bool no_initializer(Lower *l, Frame *frame, const Expr *expr)
{
    const char *name[INITIALIZERS];
    for (int i = 0; i < INITIALIZERS; i++)
        name[i] = initializers[i].name;
    Span span = expr->kind == EXPR_CALL ? expr->text_span : expr->span;
    lower_error(l, frame, span, "unknown initializer %s", expr->text);
    const char *meant = suggest(expr->text, name, INITIALIZERS);
    if (meant)
        diag_hint(l->diag, "did you mean %s?", meant);
    else
        diag_hint(l->diag, "zeros, ones, const(v), uniform(a, b), normal(std), xavier or he");
    return false;
}

/* A number that would not be what was written: a fraction or what is out of range. */
static bool not_held(Lower *l, Frame *frame, const Expr *expr, Val val, Dtype dtype)
{
    lower_error(l, frame, expr->span, "%s is not a valid value for %s", val_text(l, val),
                dtype_name(dtype));
    if (dtype_is_narrow(dtype))
        diag_hint(l->diag, "%s ends at %g; what is too large for f32 is infinite: 1e39",
                  dtype_name(dtype), dtype_row(dtype)->high);
    return false;
}

static bool check_init(Lower *l, Frame *frame, const Expr *expr, int which, const double *number,
                       int count, Dtype dtype)
{
    double deviation = count ? number[count - 1] : 0;
    if (which == NORMAL && deviation < 0)
        return lower_error(l, frame, expr->span, "a standard deviation cannot be negative");
    if (which == UNIFORM && number[0] > number[1])
        return lower_error(l, frame, expr->span, "uniform needs its lower bound first");
    if (which >= UNIFORM && !dtype_is_float(dtype))
        return lower_error(l, frame, expr->span, "%s gives fractions, but the dtype is %s",
                           expr->text, dtype_name(dtype));
    if (which >= UNIFORM && !dtype_computes(dtype))
        return lower_error(l, frame, expr->span,
                           "%s draws f32, but this is %s, a storage-only dtype", expr->text,
                           dtype_name(dtype));
    return true;
}

static bool init_call(Lower *l, Frame *frame, const Expr *expr, const Shape *shape, Init *init)
{
    int which = 0;
    while (which < INITIALIZERS && strcmp(initializers[which].name, expr->text) != 0)
        which++;
    if (which == INITIALIZERS)
        return no_initializer(l, frame, expr);
    size_t count = expr->kind == EXPR_CALL ? expr->arg.count : 0;
    if ((int)count < initializers[which].least || count > (size_t)initializers[which].most) {
        lower_error(l, frame, expr->span, "%s takes %s arguments", expr->text,
                    (int)count < initializers[which].least ? "more" : "fewer");
        diag_hint(l->diag, "%s", initializers[which].usage);
        return false;
    }
    double number[2] = {0};
    for (size_t i = 0; i < count; i++) {
        Val val = eval(l, frame, expr->arg.at[i].value, NULL);
        if (val.kind == VAL_POISON)
            return false;
        if (!val_is_number(val))
            return lower_error(l, frame, expr->arg.at[i].value->span, "%s takes numbers, not %s",
                               expr->text, val_text(l, val));
        number[i] = val_number(val);
        if (dtype_is_float(shape->dtype) && !dtype_holds(shape->dtype, number[i]))
            return not_held(l, frame, expr->arg.at[i].value, val, shape->dtype);
    }
    if (!check_init(l, frame, expr, which, number, (int)count, shape->dtype))
        return false;
    *init = make_init(which, (int)count, number, shape);
    return true;
}

/* ---- Numbers written out -------------------------------------------------------------------- */

typedef ARRAY(double) Numbers;

/* Appends the numbers of a list of lists, whose lengths must be the dims from `axis` on. */
static bool flatten(Lower *l, Frame *frame, const Expr *expr, Val val, const Shape *shape, int axis,
                    Numbers *numbers)
{
    if (axis == shape->rank) {
        if (!val_is_number(val) || !dtype_holds(shape->dtype, val_number(val)))
            return not_held(l, frame, expr, val, shape->dtype);
        ARRAY_PUSH(l->arena, numbers, val_number(val));
        return true;
    }
    if (val.kind != VAL_LIST || val.count != shape->dim[axis])
        return lower_error(l, frame, expr->span, "axis %d of %s needs a list of %lld, not %s of %u",
                           axis, shape_text(l->arena, shape->dtype, shape->rank, shape->dim),
                           (long long)shape->dim[axis],
                           val.kind == VAL_LIST ? "one" : val_text(l, val), val.count);
    if (numbers->count > MAX_LIST)
        return lower_error(l, frame, expr->span, "a list holds at most %d numbers", MAX_LIST);
    for (uint32_t i = 0; i < val.count; i++)
        if (!flatten(l, frame, expr, val.item[i], shape, axis + 1, numbers))
            return false;
    return true;
}

static bool init_value(Lower *l, Frame *frame, const Expr *expr, const Shape *shape, Init *init)
{
    Val val = eval(l, frame, expr, NULL);
    if (val.kind == VAL_POISON)
        return false;
    if (val.kind == VAL_LIST) {
        Numbers numbers = {0};
        if (!flatten(l, frame, expr, val, shape, 0, &numbers))
            return false;
        *init = (Init){.kind = INIT_LIST, .list = numbers.at, .count = numbers.count};
        return true;
    }
    if (!val_is_number(val))
        return lower_error(l, frame, expr->span,
                           "an initializer must be known at compile time, not %s",
                           val_text(l, val));
    if (!dtype_holds(shape->dtype, val_number(val)))
        return not_held(l, frame, expr, val, shape->dtype);
    *init = init_const(val_number(val));
    return true;
}

/* A name or a call is an initializer, unless it is an op of numbers or a name bound to one. */
static bool lower_init(Lower *l, Frame *frame, const Expr *expr, const Shape *shape, Init *init)
{
    bool named = expr->kind == EXPR_NAME || expr->kind == EXPR_CALL;
    bool known = false;
    for (int i = 0; named && i < INITIALIZERS; i++)
        known |= strcmp(initializers[i].name, expr->text) == 0;
    bool elsewhere = named && (expr->kind == EXPR_NAME ? frame_find(frame, expr->text) != NULL
                                                       : op_find(expr->text) != NULL);
    if (known || (named && !elsewhere))
        return init_call(l, frame, expr, shape, init);
    return init_value(l, frame, expr, shape, init);
}

static Id declare_filled(Lower *l, Frame *frame, const Stmt *stmt, const char *spelt,
                         ValueKind kind)
{
    Shape shape;
    if (!spelt || !lower_type(l, frame, &stmt->type, &shape))
        return NONE;
    Init init = shape.rank < 2 || !dtype_is_real(shape.dtype)
                    ? init_const(0)
                    : init_xavier(fan_in(&shape), fan_out(&shape));
    if (stmt->value && !lower_init(l, frame, stmt->value, &shape, &init))
        return NONE;
    if (frame_find_here(frame, spelt))
        return NONE; /* reported when it is bound */
    /* With the index in it, the name is whole: no iteration is added. */
    const char *name =
        is_spelt(stmt->name.text) ? spelt : param_name(l, frame, spelt, stmt->name.span);
    Id id = declare(l, frame, kind, name, &shape, stmt->name.span);
    if (id == NONE)
        return NONE;
    l->g->value.at[id].init = init;
    l->g->value.at[id].frozen = stmt->frozen;
    l->g->value.at[id].why = stmt->frozen ? "declared so" : NULL;
    return id;
}

void lower_param(Lower *l, Frame *frame, const Stmt *stmt)
{
    Name name = {spell(l, frame, stmt->name.text, stmt->name.span), stmt->name.span};
    Id id = declare_filled(l, frame, stmt, name.text, VALUE_PARAM);
    if (name.text)
        bind_declared(l, frame, name, BOUND_PARAM, id);
}

void lower_const(Lower *l, Frame *frame, const Stmt *stmt)
{
    if (stmt->type.given) {
        Name name = {spell(l, frame, stmt->name.text, stmt->name.span), stmt->name.span};
        Id id = declare_filled(l, frame, stmt, name.text, VALUE_CONST);
        if (name.text)
            bind_declared(l, frame, name, BOUND_CONST, id);
        return;
    }
    Val val = eval(l, frame, stmt->value, NULL);
    if (val.kind == VAL_TENSOR || val.kind == VAL_TUPLE) {
        lower_error(l, frame, stmt->value->span,
                    "a const must be known at compile time; this is %s", val_text(l, val));
        diag_hint(l->diag, "without const: %s = ...", stmt->name.text);
        val = POISON;
    }
    frame_bind(l, frame, stmt->name, BOUND_CONST, val);
}
