/* How a reduction sees its operand: outputs in rows of `width` columns, and `count` elements
 * reduced into each.
 *
 * Which axis has which role follows from the dims and from which axes are reduced, never from the
 * strides, so that a tensor gives the same bits whatever its layout. */
#ifndef GP_FOLD_H
#define GP_FOLD_H

#include "line.h"

typedef struct {
    gp_line outer; /* kept axes before the last reduced one */
    gp_line wide;  /* kept axes after it: the innermost ones */
    gp_line in;    /* reduced axes */
    int64_t outers, width, count;
} gp_fold;

GP_FUNCTION gp_fold gp_fold_of(const gp_tensor *t, int64_t axes)
{
    gp_fold fold;
    int last = -1;
    memset(&fold, 0, sizeof fold);
    for (int i = 0; i < t->rank; i++)
        if (axes >> i & 1 && t->dim[i] > 1)
            last = i;
    for (int i = 0; i < t->rank; i++)
        gp_line_add(axes >> i & 1 ? &fold.in
                    : i < last    ? &fold.outer
                                  : &fold.wide,
                    t->dim[i], t->stride[i]);
    fold.outers = gp_line_count(&fold.outer);
    fold.width = gp_line_count(&fold.wide);
    fold.count = gp_line_count(&fold.in);
    return fold;
}

#endif
