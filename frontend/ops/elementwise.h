/* What rows of elementwise ops share. */
#ifndef GPLAN_OPS_ELEMENTWISE_H
#define GPLAN_OPS_ELEMENTWISE_H

#include "frontend/ops/batch.h"

/* Their arguments. */
#define ONE             \
    {                   \
        {               \
            .name = "x" \
        }               \
    }
#define TWO             \
    {                   \
        {.name = "x"},  \
        {               \
            .name = "y" \
        }               \
    }
#define REAL OP_ELEMENTWISE | OP_FLOAT /* of reals only */

#endif
