/* Text of codegen/templates/ with a model's own names and facts (template.c). */
#ifndef GPLAN_CODEGEN_TEMPLATE_H
#define GPLAN_CODEGEN_TEMPLATE_H

#include "codegen/internal.h"

/* What replaces MODEL_NAME. */
typedef struct {
    const char *name; /* after MODEL_ */
    const char *text; /* NULL: a fact, for #if */
    bool holds;       /* of a fact */
} Mark;

typedef struct {
    Arena *arena;
    const char *prefix, *capitals; /* what net and NET become */
    ARRAY(Mark) mark;
    ARRAY(const char *) need; /* files of the runtime that the text written last includes */
} Template;

Template template_new(Arena *arena, const char *prefix, const char *capitals);
/* A later one replaces an earlier. */
void template_fact(Template *t, const char *name, bool holds);
void template_text(Template *t, const char *name, const char *text);
/* A file of codegen/templates; a mark that was not given ends the program: that is a bug. */
void template_write(Template *t, const char *file, Out *o);

#endif
