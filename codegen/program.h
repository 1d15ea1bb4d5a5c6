/* The functions of a program while they are written (program.c), and the arguments of its calls
 * (arguments.c). */
#ifndef GPLAN_CODEGEN_PROGRAM_H
#define GPLAN_CODEGEN_PROGRAM_H

#include "codegen/internal.h"

typedef struct {
    Emission *e;
    Out *o;
    ProgramKind program;
    Id functions; /* that were begun */
    Id written;   /* calls in the one at hand */
    bool open;
    const uint64_t *kind;      /* by call: equal where calls differ in where things lie only */
    const uint64_t *like;      /* and where they may differ in counts too */
    const Id *group;           /* by call: the layer it is of */
    const char *const *lines;  /* of the source; NULL: none */
    const char *const *values; /* what values are called, by value */
    uint32_t line;             /* that was shown last, */
    uint8_t phase;             /* and for which pass */
    Repeat repeat;             /* the loop at hand, */
    bool down;                 /* which counts from the last layer to the first, */
    bool tensors;              /* or over the table of tensors */
    LoopTable table;           /* and its table */
    LoopTables tables;         /* of the loops before it */
    Out rows;                  /* those as text */
} Writer;

/* What values are called, by value. */
const char *const *argument_names(const Emission *e);
const char *argument_single(const Writer *w, const Address *a);
const char *argument_in_loop(Writer *w, Id call, Id argument);
/* first + by * the iteration, in the loop's variable. */
const char *iteration_text(const Writer *w, int64_t first, int64_t by);
/* Whether most of what moves with the layers goes from the last one to the first. */
bool loop_goes_down(const Writer *w);

#endif
