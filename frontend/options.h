/* The command line, as values. */
#ifndef GPLAN_OPTIONS_H
#define GPLAN_OPTIONS_H

#include "frontend/frontend.h"
#include "frontend/size.h"

typedef enum { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER } ColorWhen;

typedef struct {
    const char *model;  /* a path, or "-" */
    const char *output; /* -o; NULL: standard output */
    const char *emit;   /* a kind, see --help; NULL: by the extension of output */
    const char *dump;   /* passes whose result to print, as a comma list; NULL */
    uint64_t budget;    /* 0: none */
    uint64_t reserve;   /* taken off the budget */
    uint64_t effort;
    double seconds;
    uint32_t threads;
    uint32_t depth;      /* levels of blocks that a drawing of the graph opens; 0: all */
    uint32_t accumulate; /* micro-batches; 0: as the model says */
    bool accumulate_auto;
    const char *max; /* a parameter of the model whose largest value to print; NULL */
    bool pareto;
    bool infer, train; /* what to plan; neither: what the model has */
    bool min_budget, no_recompute, sliced, report, quiet, verbose, io_external, params_external;
    ColorWhen color;
    ARRAY(Define) define;
} Options;

/* Fills the options or, when the program is done after reading them (--help) or cannot go on
 * (wrong usage: 2), returns the exit status; -1 means go on. */
int options_read(Arena *arena, int argc, char **argv, Options *options);

#endif
