/* pad: a tensor with a border of one value around it. */
#ifndef GP_PAD_CUH
#define GP_PAD_CUH

#include "move.cuh"

/* The value as an element of any dtype. */
typedef union {
    gp_real real; /* or of 16 bits, in its first bytes */
    int32_t i32;
    int64_t i64;
    uint8_t u8;
} gp_pad_value;

static __global__ void gp_pad_elements(gp_tensor x, gp_tensor out, gp_pad_attr a,
                                       gp_pad_value value, int64_t count, int64_t size)
{
    for (GP_EACH(i, count)) {
        int64_t from = 0, left = i;
        bool inside = true;
        for (int d = out.rank; d-- > 0; left /= out.dim[d]) {
            const int64_t at = left % out.dim[d] - a.low[d];
            inside = inside && at >= 0 && at < x.dim[d];
            from += at * x.stride[d];
        }
        if (inside)
            gp_copy_element(size, out.data, i, x.data, from);
        else
            gp_copy_element(size, out.data, i, &value, 0);
    }
}

GP_KERNEL(pad)
{
    const gp_pad_attr *a = (const gp_pad_attr *)c->attr;
    const gp_tensor *out = &c->out[0];
    const int64_t count = gp_count(out);
    const unsigned block = gp_block_of(count);
    gp_pad_value value;
    memset(&value, 0, sizeof value);
    if (gp_is_real(out->dtype))
        gp_set_real(&value, 0, out->dtype, (gp_real)a->value);
    else if (out->dtype == GP_I32)
        value.i32 = (int32_t)a->value;
    else if (out->dtype == GP_I64)
        value.i64 = (int64_t)a->value;
    else
        value.u8 = out->dtype == GP_BOOL ? a->value != 0 : (uint8_t)(int)a->value;
    GP_LAUNCH(c, gp_pad_elements, gp_blocks(count, block), block, 0, c->in[0], *out, *a, value,
              count, (int64_t)gp_size(out->dtype));
    return GP_OK;
}

GP_TAKES_HALF(pad)

#endif
