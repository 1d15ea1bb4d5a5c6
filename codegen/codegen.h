/* The door of codegen: a Plan -> text. */
#ifndef GPLAN_CODEGEN_H
#define GPLAN_CODEGEN_H

#include "planner/planner.h"

typedef struct {
    const char *text;
    size_t length;
} Text;

typedef struct {
    const char *header; /* name of the header that the C file includes: model.h */
    const char *prefix; /* of functions: the model's name made safe for C */
    uint32_t threads;   /* default of the emitted program */
} EmitOptions;

/* The model's name as an identifier that C and C++ take, for EmitOptions.prefix. */
const char *c_prefix(Arena *arena, const char *model);

/* The targets; `threads` is what workspace is planned for. */
Target target_c(uint32_t threads);

/* The emitted C file and its header. */
Text emit_c(const Plan *plan, const EmitOptions *options);
Text emit_c_header(const Plan *plan, const EmitOptions *options);

/* A terminal page about the plan. */
Text emit_report(const Plan *plan, uint64_t budget, bool color);

/* Writes whole files or none: all texts go to temporary files first, then are renamed. False with
 * a message naming the file. `path` NULL: standard output. */
typedef struct {
    const char *path;
    Text text;
} OutFile;
bool files_write(Diag *diag, const OutFile *file, size_t count);

#endif
