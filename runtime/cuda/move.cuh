/* Copying tensors of any dtype and strides. */
#ifndef GP_MOVE_CUH
#define GP_MOVE_CUH

#include "base.cuh"

/* One element of `size` bytes, aligned to its size. */
GP_DEVICE void gp_copy_element(int64_t size, void *to, int64_t to_at, const void *from,
                               int64_t from_at)
{
    switch (size) {
    case 8:
        ((uint64_t *)to)[to_at] = ((const uint64_t *)from)[from_at];
        break;
    case 4:
        ((uint32_t *)to)[to_at] = ((const uint32_t *)from)[from_at];
        break;
    case 2:
        ((uint16_t *)to)[to_at] = ((const uint16_t *)from)[from_at];
        break;
    default:
        ((uint8_t *)to)[to_at] = ((const uint8_t *)from)[from_at];
    }
}

static __global__ void gp_move_elements(gp_line from, const void *data, gp_line to, void *place,
                                        int64_t count, int64_t size)
{
    for (GP_EACH(i, count))
        gp_copy_element(size, place, gp_line_at(&to, i), data, gp_line_at(&from, i));
}

/* Copies all elements of `from` to the same dims with other strides, without overlap. */
GP_HOST int gp_move(const gp_call *c, const gp_tensor *from, void *to, const int64_t *to_stride)
{
    gp_line a, b;
    a.rank = b.rank = 0;
    for (int i = 0; i < from->rank; i++) {
        gp_line_add(&a, from->dim[i], from->stride[i]);
        gp_line_add(&b, from->dim[i], to_stride[i]);
    }
    const int64_t count = gp_count(from), size = (int64_t)gp_size(from->dtype);
    const unsigned block = gp_block_of(count);
    const bool plain = (a.rank == 0 || (a.rank == 1 && a.stride[0] == 1)) &&
                       (b.rank == 0 || (b.rank == 1 && b.stride[0] == 1));
    if (plain)
        GP_CUDA_CALL(c, cudaMemcpyAsync(to, from->data, (size_t)(count * size),
                                        cudaMemcpyDeviceToDevice, gp_device_of(c)->stream));
    else
        GP_LAUNCH(c, gp_move_elements, gp_blocks(count, block), block, 0, a,
                  (const void *)from->data, b, to, count, size);
    return GP_OK;
}

static __global__ void gp_move_each_real(gp_reals from, gp_reals to, int64_t count)
{
    for (GP_EACH(i, count))
        to.put(i, from[i]);
}

/* Copies all elements of a contiguous tensor to another of the same dims, which may be of another
 * width where they are reals. */
GP_HOST int gp_move_reals(const gp_call *c, const gp_tensor *from, const gp_tensor *to)
{
    const int64_t count = gp_count(from);
    const unsigned block = gp_block_of(count);
    if (from->dtype == to->dtype)
        return gp_move(c, from, to->data, to->stride);
    GP_LAUNCH(c, gp_move_each_real, gp_blocks(count, block), block, 0, gp_reals_of(from),
              gp_reals_of(to), count);
    return GP_OK;
}

#endif
