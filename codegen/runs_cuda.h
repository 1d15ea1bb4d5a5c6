/* The functions of a CUDA program that run its programs, as text (runs_cuda.c). */
#ifndef GPLAN_CODEGEN_RUNS_CUDA_H
#define GPLAN_CODEGEN_RUNS_CUDA_H

#include "codegen/internal.h"

void runs_cuda_begin(const Emission *e, Out *o); /* what they share, and sync */
void runs_cuda_forward(const Emission *e, Out *o);
void runs_cuda_eval(const Emission *e, Out *o);
void runs_cuda_step(const Emission *e, Out *o); /* and its capture */

#endif
