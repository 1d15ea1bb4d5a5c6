/* Rows as reals, for kernels that pass over a row several times. */
#ifndef GP_WIDE_ROW_H
#define GP_WIDE_ROW_H

#include "narrow.h"

/* Reals of a thread's part. */
GP_FUNCTION int64_t gp_widened_room(int64_t n)
{
    return (n + 15) / 16 * 16;
}

/* Workspace for one row of n in each thread; none where t is f32 already. */
GP_FUNCTION size_t gp_widened_workspace(const gp_call *c, const gp_tensor *t, int64_t n)
{
    return t->dtype == GP_F32 ? 0
                              : (size_t)(c->run->threads * gp_widened_room(n)) * sizeof(gp_real);
}

#ifdef GP_NO_HALF
#define gp_widened_row(c, t, row, n) ((gp_real *)(t)->data + (row) * (n))
#else
/* Row `row` of a contiguous tensor, where it lies; of 16 bits as a copy, in the thread's part of
 * the workspace. */
GP_FUNCTION gp_real *gp_widened_row(const gp_call *c, const gp_tensor *t, int64_t row, int64_t n)
{
    gp_real *wide = (gp_real *)t->data + row * n;
    if (GP_WAY(row_half, t->dtype != GP_F32)) {
        wide = (gp_real *)c->work + gp_thread() * gp_widened_room(n);
        gp_get_row(wide, (const gp_half *)t->data + row * n, n, t->dtype);
    }
    return wide;
}
#endif

GP_FUNCTION void gp_widened_ways(const gp_tensor *t, gp_ways *ways)
{
    gp_way(ways, "row_half", t->dtype != GP_F32);
}

#endif
