/* Windows that move over the last axes: of convolutions and pools. */
#ifndef GPLAN_ONNX_WINDOW_H
#define GPLAN_ONNX_WINDOW_H

#include "frontend/onnx/translate.h"

enum { MAX_AXES = 3 };

typedef struct {
    int axes; /* of space: 1, 2 or 3 */
    int64_t kernel[MAX_AXES], stride[MAX_AXES], dilation[MAX_AXES];
    int64_t pad[2 * MAX_AXES]; /* begins, then ends */
} Window;

/* Reads strides, dilations, pads and auto_pad; `kernel` is set already. False with a message. */
bool read_window(Import *m, const Tensor *x, Window *window);
/* A list of a setting: with a leading axis of size 1 where there is only one, for ops of planes. */
const Expr *window_ints(Import *m, const Window *window, const int64_t *number, int64_t fallback);
const Expr *window_pads(Import *m, const Window *window);

#endif
