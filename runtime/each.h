/* What the adapters of elementwise rows are made of: one expression, looped over tensors of any
 * strides and dtypes. Slow and plain; emitted programs have loops of their own. */
#ifndef GPLAN_RUNTIME_EACH_H
#define GPLAN_RUNTIME_EACH_H

#include "runtime/c/scalar.h"

/* Where element i of a tensor lies, counted in the order of its dims. */
GP_FUNCTION int64_t each_place(const gp_tensor *t, int64_t i)
{
    int64_t at = 0;
    for (int d = t->rank; d-- > 0; i /= t->dim[d])
        at += i % t->dim[d] * t->stride[d];
    return at;
}

GP_FUNCTION int64_t each_load_int(const gp_tensor *t, int64_t i)
{
    int64_t at = each_place(t, i);
    if (t->dtype == GP_I32)
        return ((const int32_t *)t->data)[at];
    return t->dtype == GP_I64 ? ((const int64_t *)t->data)[at] : ((const uint8_t *)t->data)[at];
}

GP_FUNCTION gp_real each_load_real(const gp_tensor *t, int64_t i)
{
    if (t->dtype == GP_F32)
        return ((const gp_real *)t->data)[each_place(t, i)];
    return (gp_real)each_load_int(t, i);
}

GP_FUNCTION void each_store_int(const gp_tensor *t, int64_t i, int64_t x)
{
    int64_t at = each_place(t, i);
    if (t->dtype == GP_F32)
        ((gp_real *)t->data)[at] = (gp_real)x;
    else if (t->dtype == GP_I32)
        ((int32_t *)t->data)[at] = (int32_t)x;
    else if (t->dtype == GP_I64)
        ((int64_t *)t->data)[at] = x;
    else
        ((uint8_t *)t->data)[at] = t->dtype == GP_BOOL ? x != 0 : (uint8_t)x;
}

GP_FUNCTION void each_store_real(const gp_tensor *t, int64_t i, gp_real x)
{
    int64_t at = each_place(t, i);
    if (t->dtype == GP_F32)
        ((gp_real *)t->data)[at] = x;
    else if (t->dtype == GP_I32)
        ((int32_t *)t->data)[at] = gp_to_i32(x);
    else if (t->dtype == GP_I64)
        ((int64_t *)t->data)[at] = gp_to_i64(x);
    else
        ((uint8_t *)t->data)[at] = t->dtype == GP_BOOL ? x != 0 : gp_to_u8(x);
}

/* The type of the arithmetic, as C's own conversions would have it: GP_F32, GP_I64 or GP_I32. */
GP_FUNCTION int each_type(const gp_call *call)
{
    int type = GP_I32;
    for (int i = 0; i < call->ins; i++)
        if (call->in[i].dtype == GP_F32)
            return GP_F32;
        else if (call->in[i].dtype == GP_I64)
            type = GP_I64;
    return type;
}

/* EACH(type, real or int, expression): all of a function but its settings. An expression may use
 * the operands a, b, c, d and, where the op is random, key, run and the element's number i. */
#define EACH(type, family, ...)                                         \
    do {                                                                \
        const uint64_t key = call->key;                                 \
        const gp_run *const run = call->run;                            \
        const int64_t count = gp_count(&call->out[0]);                  \
        for (int64_t i = 0; i < count; i++) {                           \
            const type a = EACH_OPERAND(type, family, 0);               \
            const type b = EACH_OPERAND(type, family, 1);               \
            const type c = EACH_OPERAND(type, family, 2);               \
            const type d = EACH_OPERAND(type, family, 3);               \
            (void)key, (void)run, (void)a, (void)b, (void)c, (void)d;   \
            each_store_##family(&call->out[0], i, (type)(__VA_ARGS__)); \
        }                                                               \
        return GP_OK;                                                   \
    } while (0)
#define EACH_OPERAND(type, family, n) \
    (call->ins > n ? (type)each_load_##family(&call->in[n], i) : (type)0)

#endif
