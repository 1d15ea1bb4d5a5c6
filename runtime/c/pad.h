/* pad: a tensor with a border of one value around it. */
#ifndef GP_PAD_H
#define GP_PAD_H

#include "move.h"
#include "narrow.h"
#include "settings.h"

GP_FUNCTION void gp_pad_fill(const gp_tensor *t, double value)
{
    int64_t n = gp_count(t);
    if (t->dtype == GP_F32)
        for (int64_t i = 0; i < n; i++)
            ((gp_real *)t->data)[i] = (gp_real)value;
    else if (t->dtype == GP_I32)
        for (int64_t i = 0; i < n; i++)
            ((int32_t *)t->data)[i] = (int32_t)value;
    else if (t->dtype == GP_I64)
        for (int64_t i = 0; i < n; i++)
            ((int64_t *)t->data)[i] = (int64_t)value;
    else if (GP_WAY(pad_half, t->dtype == GP_F16 || t->dtype == GP_BF16))
        for (int64_t i = 0; i < n; i++)
            gp_set_real(t->data, i, t->dtype, (gp_real)value);
    else
        memset(t->data, t->dtype == GP_BOOL ? value != 0 : (int)value, (size_t)n);
}

GP_WAYS(pad)
{
    if (c->out[0].dtype != GP_F32 && c->out[0].dtype != GP_I32 && c->out[0].dtype != GP_I64)
        gp_way(ways, "pad_half", gp_is_half(c));
}

GP_KERNEL(pad)
{
    const gp_pad_attr *a = c->attr;
    const gp_tensor *out = &c->out[0];
    int64_t at = 0;
    for (int i = 0; i < out->rank; i++)
        at += a->low[i] * out->stride[i];
    gp_pad_fill(out, a->value);
    gp_move(c->run, &c->in[0], (unsigned char *)out->data + at * (int64_t)gp_size(out->dtype),
            out->stride);
    return GP_OK;
}

#endif
