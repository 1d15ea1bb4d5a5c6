/* What the adapters of elementwise rows are made of: one expression, looped over tensors of any
 * strides and dtypes. Slow and plain; emitted programs have loops of their own. */
#ifndef GPLAN_RUNTIME_EACH_H
#define GPLAN_RUNTIME_EACH_H

#include "runtime/c/stored.h"

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
    switch (t->dtype) {
    case GP_I32:
        return ((const int32_t *)t->data)[at];
    case GP_I64:
        return ((const int64_t *)t->data)[at];
    case GP_I8:
        return ((const int8_t *)t->data)[at];
    case GP_U16:
        return ((const uint16_t *)t->data)[at];
    case GP_U32:
        return ((const uint32_t *)t->data)[at];
    default:
        return ((const uint8_t *)t->data)[at];
    }
}

GP_FUNCTION gp_real each_load_real(const gp_tensor *t, int64_t i)
{
    if (gp_is_real(t->dtype))
        return gp_get_real(t->data, each_place(t, i), t->dtype);
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
    if (gp_is_real(t->dtype))
        gp_set_real(t->data, at, t->dtype, x);
    else if (t->dtype == GP_I32)
        ((int32_t *)t->data)[at] = gp_to_i32(x);
    else if (t->dtype == GP_I64)
        ((int64_t *)t->data)[at] = gp_to_i64(x);
    else
        ((uint8_t *)t->data)[at] = t->dtype == GP_BOOL ? x != 0 : gp_to_u8(x);
}

/* ---- Dtypes that are only stored: cast, and copies of them ----------------------------------- */

GP_FUNCTION int each_is_stored(const gp_call *call)
{
    const int from = call->in[0].dtype, to = call->out[0].dtype;
    return from > GP_BOOL || to > GP_BOOL || (to != GP_F32 && gp_is_real(to) && !gp_is_real(from));
}

GP_FUNCTION void each_cast_int(const gp_tensor *t, int64_t i, int64_t x)
{
    int64_t at = each_place(t, i);
    if (t->dtype == GP_F64)
        ((double *)t->data)[at] = (double)x;
    else if (t->dtype == GP_F16)
        ((gp_half *)t->data)[at] = gp_to_f16(gp_odd_f64(x));
    else if (t->dtype == GP_BF16)
        ((gp_half *)t->data)[at] = gp_to_bf16(gp_odd_f64(x));
    else if (t->dtype == GP_U16)
        ((uint16_t *)t->data)[at] = (uint16_t)x;
    else if (t->dtype == GP_U32)
        ((uint32_t *)t->data)[at] = (uint32_t)x;
    else /* i8 in the bits of u8 */
        each_store_int(t, i, x);
}

GP_FUNCTION void each_cast_real(const gp_tensor *t, int64_t i, double x)
{
    const double low[] = {0, 0, 0, INT32_MIN, 0, 0, 0, INT8_MIN, 0, 0};
    const double high[] = {0, 0, 0, INT32_MAX, 0, 255, 1, 127, 65535, 4294967295.0};
    int64_t at = each_place(t, i);
    if (t->dtype == GP_F32)
        ((gp_real *)t->data)[at] = (gp_real)x;
    else if (t->dtype == GP_F64)
        ((double *)t->data)[at] = x;
    else if (t->dtype == GP_F16)
        ((gp_half *)t->data)[at] = gp_to_f16(x);
    else if (t->dtype == GP_BF16)
        ((gp_half *)t->data)[at] = gp_to_bf16(x);
    else if (t->dtype == GP_BOOL)
        ((uint8_t *)t->data)[at] = x != 0;
    else if (t->dtype == GP_I64)
        ((int64_t *)t->data)[at] = gp_f64_to_i64(x);
    else
        each_cast_int(t, i, (int64_t)gp_within(x, low[t->dtype], high[t->dtype]));
}

GP_FUNCTION void each_cast(const gp_tensor *from, const gp_tensor *to, int64_t i)
{
    const int64_t at = each_place(from, i);
    if (from->dtype == to->dtype)
        memcpy((char *)to->data + each_place(to, i) * (int64_t)gp_size(to->dtype),
               (const char *)from->data + at * (int64_t)gp_size(to->dtype), gp_size(to->dtype));
    else if (from->dtype == GP_F32)
        each_cast_real(to, i, ((const gp_real *)from->data)[at]);
    else if (from->dtype == GP_F64)
        each_cast_real(to, i, ((const double *)from->data)[at]);
    else if (from->dtype == GP_F16)
        each_cast_real(to, i, gp_from_f16(((const gp_half *)from->data)[at]));
    else if (from->dtype == GP_BF16)
        each_cast_real(to, i, gp_from_bf16(((const gp_half *)from->data)[at]));
    else
        each_cast_int(to, i, each_load_int(from, i));
}

GP_FUNCTION int each_cast_all(const gp_call *call)
{
    const int64_t count = gp_count(&call->out[0]);
    for (int64_t i = 0; i < count; i++)
        each_cast(&call->in[0], &call->out[0], i);
    return GP_OK;
}

/* The type of the arithmetic, as C's own conversions would have it: GP_F32, GP_I64 or GP_I32. */
GP_FUNCTION int each_type(const gp_call *call)
{
    int type = GP_I32;
    for (int i = 0; i < call->ins; i++)
        if (gp_is_real(call->in[i].dtype))
            return GP_F32;
        else if (call->in[i].dtype == GP_I64)
            type = GP_I64;
    return type;
}

/* EACH(type, real or int, expression): all of a function but its settings. An expression may use
 * the operands a, b, c, d, e and, where the op is random, key, run and the element's number i. */
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
            const type e = EACH_OPERAND(type, family, 4);               \
            (void)key, (void)run, (void)a, (void)b, (void)c;            \
            (void)d, (void)e;                                           \
            each_store_##family(&call->out[0], i, (type)(__VA_ARGS__)); \
        }                                                               \
        return GP_OK;                                                   \
    } while (0)
#define EACH_OPERAND(type, family, n) \
    (call->ins > n ? (type)each_load_##family(&call->in[n], i) : (type)0)

#endif
