/* What gplan can write, by name and by the extension of the file. */
#ifndef GPLAN_KINDS_H
#define GPLAN_KINDS_H

#include "codegen/codegen.h"
#include "frontend/command/import.h"
#include "frontend/command/options.h"
#include "frontend/command/output.h"

typedef struct {
    const char *name; /* NULL: a source, by the extension of its target */
    Text (*emit)(const Plan *plan, const EmitOptions *options);
    Text (*draw)(const Graph *g, const EmitOptions *options); /* needs no plan */
    bool is_text;                                             /* the model, as it is written */
} Kind;

const char *kind_words(void); /* all of them, with spaces between */

const char *extension(const char *path); /* NULL: it has none */
const Kind *find_kind(const Options *o); /* NULL: none was asked for, or there is none so */
bool kind_is_source(const Kind *kind);   /* C or CUDA, with a header beside it */
/* By --target, else by what is written; the first of the table where nothing says. */
const TargetRow *find_target(const Options *o);
const TargetRow *written_target(const Options *o); /* NULL: what is written is no source */
/* What the C file includes: dir/model.c -> model.h */
const char *header_name(Arena *arena, const char *output, const char *model);
/* Files; false with a message that names the one that could not be written. */
bool output_write(Diag *diag, const OutFile *file, size_t count);
/* The kind that was asked for, with what goes beside it; false with a message. */
bool write_output(Arena *arena, Diag *diag, const Options *o, const OnnxImport *import,
                  const Plan *plan, const EmitOptions *emit);
/* The model as text, with the weights it was imported with beside it. */
bool write_model(Arena *arena, Diag *diag, const Options *o, const OnnxImport *import,
                 const Ast *ast);

/* Wrong usage that only the whole command line shows (usage.c): the exit status. -1: all is well.
 */
int check_usage(const Options *o);

#endif
