/* Which dtype a call computes and stores in: f32, or one of 16 bits.
 *
 * A narrow op (a product) has the precision that is asked for; one that follows has that of the
 * activations it reads, and where one of them is f32 it is f32; a wide one makes f32. Parameters
 * and constants stay f32 and go along: products round them while they pack them, so there is no
 * second copy. All compute in f32 and round what they make, whether that is stored or read at once,
 * so that it does not matter for a bit who stores what.
 *
 * A kernel without OP_HALF sees f32 alone: its operands are cast, or rounded where they are f32,
 * and so are its results. The backward pass follows what the forward pass has: the gradient of a
 * value has its dtype, so those of parameters are f32.
 */
#include "frontend/base/names.h"
#include "frontend/frontend.h"

#include <string.h>

static bool is_wide_operand(const OpRow *op, size_t i)
{
    return i < 32 && op->statistics >> i & 1;
}

static bool is_activation(const Value *value)
{
    return value->kind != VALUE_PARAM && value->kind != VALUE_CONST && value->kind != VALUE_STATE &&
           value->kind != VALUE_LITERAL;
}

/* The real that operand i is and that counts; NULL: none. */
static const Value *counted(const Graph *g, const Call *c, size_t i)
{
    const Use use = c->use.at[i];
    const Value *value = use.value == NONE ? NULL : &g->value.at[use.value];
    return value && dtype_is_real((Dtype)value->dtype) && value->kind != VALUE_LITERAL &&
                   !is_wide_operand(c->op, i)
               ? value
               : NULL;
}

/* What those that count have in common, activations before parameters; F32 where they differ. */
static Dtype follow(const Graph *g, const Call *c)
{
    Dtype common[2] = {DTYPES, DTYPES};
    for (size_t i = 0; i < c->use.count; i++) {
        const Value *value = counted(g, c, i);
        if (!value)
            continue;
        Dtype *of = &common[is_activation(value)];
        *of = *of == DTYPES || *of == value->dtype ? (Dtype)value->dtype : F32;
    }
    Dtype dtype = common[1] != DTYPES ? common[1] : common[0];
    return dtype == DTYPES ? F32 : dtype;
}

/* Whether a pattern keeps the layer wide: "head.*" the layer head, and all in the block head. */
static bool is_kept_wide(const Graph *g, const Call *c)
{
    bool kept = c->wide;
    if (!g->wide.count || c->phase != PHASE_FORWARD || !c->name)
        return kept;
    const char *layer = arena_copy(g->arena, c->name, strcspn(c->name, "/"));
    const char *inside = arena_printf(g->arena, "%s.", layer);
    for (size_t i = 0; i < g->wide.count; i++) {
        WideLayers *wide = &g->wide.at[i];
        const bool fits = name_matches(wide->pattern, layer) || name_matches(wide->pattern, inside);
        wide->met |= fits;
        kept |= fits;
    }
    return kept;
}

Dtype precision_asked(const Graph *g, const Call *c)
{
    return is_kept_wide(g, c) ? F32 : (Dtype)g->precision;
}

Dtype precision_of(const Graph *g, const Call *c)
{
    if (is_kept_wide(g, c) || c->op->precision == PRECISION_WIDE)
        return F32;
    if (c->op->precision == PRECISION_NARROW && c->phase == PHASE_FORWARD && g->precision != F32)
        return (Dtype)g->precision;
    return follow(g, c);
}

Use precision_cast(Graph *g, const Call *from, Use use, Dtype dtype)
{
    if (use.value == NONE || g->value.at[use.value].dtype == dtype)
        return use;
    Call cast = call_begin(g, from, "cast");
    call_set(&cast, "dtype", dtype);
    call_use(g, &cast, use);
    return call_finish(g, &cast) ? cast.result.at[0] : (Use){NONE, NONE};
}

/* f32 with the values that a narrow dtype has. */
static Use rounded(Graph *g, const Call *from, Use use, Dtype dtype)
{
    Call c = call_begin(g, from, "rounded");
    call_set(&c, "dtype", dtype);
    call_use(g, &c, use);
    return call_finish(g, &c) ? c.result.at[0] : (Use){NONE, NONE};
}

bool precision_takes_half(const Graph *g, const OpRow *op)
{
    return op->flags & OP_HALF && (!g->has_half || g->has_half(op));
}

/* A kernel sees by its operands what it computes in: of parameters alone, the first is cast. What
 * is no real is left for the shape rule to refuse. */
static bool show_precision(Graph *g, Call *c, Dtype dtype)
{
    size_t first = c->use.count;
    if (dtype == F32 || c->op->precision != PRECISION_NARROW || !precision_takes_half(g, c->op))
        return true;
    for (size_t i = c->use.count; i-- > 0;) {
        if (!counted(g, c, i))
            continue;
        if (counted(g, c, i)->dtype == dtype)
            return true;
        first = i;
    }
    if (first == c->use.count)
        return true;
    c->use.at[first] = precision_cast(g, c, c->use.at[first], dtype);
    return c->use.at[first].value != NONE;
}

/* Operands that are f32 whatever the others are. */
static bool widen_statistics(Graph *g, Call *c)
{
    for (size_t i = 0; i < c->use.count; i++) {
        const Id value = c->use.at[i].value;
        if (value == NONE || !is_wide_operand(c->op, i) ||
            !dtype_is_narrow((Dtype)g->value.at[value].dtype))
            continue;
        c->use.at[i] = precision_cast(g, c, c->use.at[i], F32);
        if (c->use.at[i].value == NONE)
            return false;
    }
    return true;
}

bool precision_operands(Graph *g, Call *c, Dtype dtype)
{
    const bool half = precision_takes_half(g, c->op),
               product = c->op->precision == PRECISION_NARROW;
    if (!widen_statistics(g, c))
        return false;
    for (size_t i = 0; i < c->use.count; i++) {
        const Value *value = counted(g, c, i);
        if (!value)
            continue;
        const bool narrow = dtype_is_narrow((Dtype)value->dtype);
        const bool wide = half ? dtype == F32 && c->op->precision != PRECISION_WIDE : true;
        if (narrow && wide)
            c->use.at[i] = precision_cast(g, c, c->use.at[i], F32);
        else if (narrow && dtype != F32 && value->dtype != dtype) /* the other 16 bits */
            c->use.at[i] = precision_cast(g, c, c->use.at[i], dtype);
        else if (!narrow && product && dtype != F32 && !half) /* as its kernel would */
            c->use.at[i] = rounded(g, c, c->use.at[i], dtype);
        else if (!narrow && dtype != F32 &&
                 (product ? is_activation(value) : (c->op->flags & OP_JOINS) != 0))
            c->use.at[i] = precision_cast(g, c, c->use.at[i], dtype);
        if (c->use.at[i].value == NONE)
            return false;
    }
    return show_precision(g, c, dtype);
}

static bool is_narrow_output(const Call *c, int i)
{
    return c->out[i].dtype == F32 && !(c->op->wide_out >> i & 1) && !c->wide_result;
}

void precision_outputs(const Graph *g, Call *c, Dtype dtype)
{
    const bool may = c->op->flags & OP_ELEMENTWISE || precision_takes_half(g, c->op);
    for (int i = 0; i < c->outs && may; i++)
        if (is_narrow_output(c, i))
            c->out[i].dtype = (uint8_t)dtype;
}

bool precision_results(Graph *g, Call *c, Dtype dtype)
{
    for (int i = 0; i < c->outs && dtype != F32 && !precision_takes_half(g, c->op); i++) {
        if (!is_narrow_output(c, i))
            continue;
        c->result.at[i] = precision_cast(g, c, c->result.at[i], dtype);
        if (c->result.at[i].value == NONE)
            return false;
    }
    return true;
}
