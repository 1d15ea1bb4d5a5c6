/* The door of the runtime: kernels as code that runs here and as text that is emitted.
 *
 * The runtime is plain C that knows no other folder. The build makes two tables out of it: the
 * text of every file in c/ and cuda/, and a list of the kernels they define with an adapter
 * that turns a list of settings into the kernel's own struct.
 */
#ifndef GPLAN_RUNTIME_H
#define GPLAN_RUNTIME_H

#include "runtime/c/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    double number;
    int64_t list[GP_MAX_RANK];
} gp_setting;

typedef struct {
    const char *op; /* name of the row */
    int (*run)(gp_call *c, const gp_setting *setting);
    size_t (*workspace)(gp_call *c, const gp_setting *setting);         /* NULL: none */
    void (*ways)(gp_call *c, const gp_setting *setting, gp_ways *ways); /* NULL: it has one */
    int half; /* it takes and makes f16 and bf16 where its row has OP_HALF */
} gp_kernel;

/* NULL where the op has none; elementwise ops have one that loops over a single expression. */
const gp_kernel *runtime_kernel(const char *op);

/* What a CUDA kernel wants as workspace, and whether it takes 16 bits: its `run` is NULL, and so is
 * the answer where it has neither. For planning, where no CUDA is; the kernels themselves are
 * behind runtime_kernel() of a program that is linked with CUDA's table. */
const gp_kernel *runtime_cuda_work(const char *op);

/* Text of a file, e.g. "c/softmax.h"; NULL where there is none. */
const char *runtime_text(const char *path);

#ifdef __cplusplus
}
#endif

#endif
