/* Which branches of kernels the calls of a program take. */
#ifndef GPLAN_WAYS_H
#define GPLAN_WAYS_H

#include "codegen/units.h"

typedef struct {
    Arena *arena;
    bool halves;      /* the model has f16 or bf16: else no branch named NAME_half is taken */
    NameTable *taken; /* by the name of a branch: GP_TAKEN, GP_PASSED or both */
    NameTable *said;  /* "op name": what the ops have said something of */
    WordList op;      /* those that have kernels */
} Ways;

Ways *ways_of_calls(const Emission *e);
/* The kernel of an op reaches this text: branches of which it has said nothing stay as they are. */
void ways_need(Ways *ways, const char *op, const Unit *unit);
/* Leaves out the sides that no call takes. */
void ways_cut(const Ways *ways, Unit *unit);

#endif
