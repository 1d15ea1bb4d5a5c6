/* What running a graph without a plan and as planned have in common: one node, run by its kernel.
 */
#ifndef TESTS_RUN_STEP_H
#define TESTS_RUN_STEP_H

#include "tests/plan/run_plan.h"

/* Reads as NaN in f32, as -1 in integers. */
enum { POISON = 0xff };

/* A number where a kernel wants a tensor. */
typedef union {
    float f32;
    int32_t i32;
    int64_t i64;
    uint8_t u8;
} Number;

typedef struct {
    const Graph *g;
    const Node *node;
    gp_tensor *in, out[MAX_OUTPUTS];
    Number *number; /* of literals, by operand */
    gp_setting setting[MAX_ARGS];
    const gp_run *run;
} Step;

Step step_new(const Graph *g, Id node, const gp_run *run); /* with its literals in place */
void step_free(Step *s);
gp_call step_call(const Step *s);
int step_run(const Step *s, void *work);
gp_tensor tensor_at(void *root, Dtype dtype, const View *view);
bool same_element(Dtype dtype, const void *a, const void *b); /* NaN is NaN */
bool persists(const Value *value);

/* ---- Without a plan (run_plain.c) --------------------------------------------------------------
 */

extern const gp_run run_once; /* one thread, one micro-batch, the first step */

PlainRun plain_new(const Graph *g, uint64_t seed);
void plain_program(PlainRun *run, ProgramKind program);
unsigned char *plain_block(const PlainRun *run, Id value);
bool plain_is_finite(const PlainRun *run); /* parameters and state */

#endif
