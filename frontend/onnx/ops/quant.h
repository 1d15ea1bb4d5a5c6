/* What translations share that work on quantised numbers. */
#ifndef GPLAN_ONNX_QUANT_H
#define GPLAN_ONNX_QUANT_H

#include "frontend/onnx/translate.h"

/* x as it is after DynamicQuantizeLinear: on 256 steps over its own range. NULL with a message. */
const Expr *quantised_and_back(Import *m, const Expr *x);

#endif
