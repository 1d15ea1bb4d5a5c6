/* What translations share that work on each element. */
#ifndef GPLAN_ONNX_ELEMENTWISE_H
#define GPLAN_ONNX_ELEMENTWISE_H

#include "frontend/onnx/translate.h"

/* The lowest bits of an integer that is stored in a wider dtype. */
const Expr *cut_to(Import *m, const Expr *x, int elem);

#endif
