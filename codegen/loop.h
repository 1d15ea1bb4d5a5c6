/* A cluster of elementwise ops while its function is written (loop.c), and what the nests of the
 * targets are made of. */
#ifndef GPLAN_CODEGEN_LOOP_H
#define GPLAN_CODEGEN_LOOP_H

#include "codegen/internal.h"

/* An operand as it is read, or a result as it is written. */
typedef struct {
    Id value, view; /* view of a Use; results: NONE */
    Id parameter;   /* of the function */
    View at;
    int local; /* v0, v1, ... that holds the element; NO_LOCAL: it is read where it is used */
    bool result;
} Access;

/* What the function is given beside the run. */
typedef struct {
    const char *type, *name; /* "const float *", "x0" */
    bool pointer;
} Parameter;

enum { MAX_ACCESSES = 128, NO_LOCAL = -1 };

struct Loop {
    Emission *e;
    const Graph *g;
    const Occurrence *o;
    const Cluster *c;
    Out *text;
    const char *width; /* of a row, where an epilogue is given it; NULL: its number */
    Access access[MAX_ACCESSES];
    int accesses;
    ARRAY(Parameter) parameter;
    int *local;  /* by node of the cluster: of its value */
    Id *literal; /* literals with a local: their values, from local first_literal on */
    int literals, first_literal;
    int locals;
    int rank;
    int64_t dim[MAX_RANK];
    Id first_address;
    int keys;          /* parameters that are keys of random numbers */
    bool random;       /* some op asks for its element */
    bool run;          /* some expression reads the run */
    const char *flat;  /* the number of the element, where the nest has it; else NULL */
    const char *aside; /* where the nest wants the one result instead; else NULL */
    const char
        *here; /* of an epilogue: the element that its kernel made and the last node replaces */
};

/* What the variables of the nest are called, by axis. */
#define LOOP_INDEX "ijklmnpq"

void loop_nest_c(Loop *l);
void loop_nest_cuda(Loop *l);
void loop_epilogue_c(Loop *l); /* a run of elements from `first` on, `count` of them */
void loop_launch_cuda(const Emission *e, const Function *f, Out *o);
int64_t loop_total(const Loop *l); /* elements */
void loop_indent(const Loop *l, int depth);
/* Where an element lies, along the first axes. */
void loop_index(const Loop *l, const View *at, int axes);
/* Integers that the expressions have as literals. */
void loop_literals(Loop *l, int depth);
/* Reads the operands that do (not) change along the last axis. */
void loop_loads(Loop *l, bool fixed, int depth);
/* Reads the rest, computes and writes one element. */
void loop_element(Loop *l, int depth);
/* The same after `for (...)`: in braces, where it is more than a statement. */
void loop_body(Loop *l, int depth);

#endif
