/* The door of codegen: a Plan -> text. */
#ifndef GPLAN_CODEGEN_H
#define GPLAN_CODEGEN_H

#include "frontend/base/text.h"
#include "planner/planner.h"

typedef struct Embedded Embedded; /* weights that become data of the emitted file */

typedef struct {
    const char *header; /* name of the header that the C file includes: model.h */
    const char *prefix; /* of functions: the model's name made safe for C */
    const Target *target;
    const Embedded *embedded; /* NULL: parameters are in memory, or the caller's */
    uint64_t budget;          /* 0: none */
    const char *programs;     /* that were asked for; NULL: all that there are */
    Choice choice;            /* that the plan is of */
    Reasons why;
    uint64_t stage[SHARDS]; /* what each way to shard takes without recomputation; 0: unknown */
    Search search;          /* for the plan; nothing is said of it where least_cost is 0 */
    LivePeak live_peak;     /* that the check saw */
    uint32_t depth;         /* levels of blocks that a drawing of the graph opens; 0: all */
    uint32_t width;         /* columns of the terminal; 0: not known */
    bool color;             /* of the terminal */
    bool main;              /* a program around the model is written beside it */
} EmitOptions;

/* The model's name as an identifier that C and C++ take, for EmitOptions.prefix. */
const char *c_prefix(Arena *arena, const char *model);

/* Measures this machine with the kernels that gplan itself was compiled with: a few seconds. */
Profile profile_measure(void);
/* A profile as JSON, and from JSON. NULL where all is well, otherwise what is wrong with it. */
Text profile_text(Arena *arena, const Profile *profile);
/* A C program, to be written as `name`, that runs as ranks of MPI, measures the link between them
 * and prints the profile with it. */
Text profile_link_program(Arena *arena, const Profile *profile, const char *name);
const char *profile_read(Arena *arena, Text file, Profile *profile);

/* ---- The targets, a row each (target.c) ----------------------------------------------------- */

typedef struct {
    Target plan;                   /* what the planner must know; its name is that of the target */
    const char *extension;         /* of the source it is written as, without the dot */
    bool threads;                  /* the caller says how many; else the target has its own */
    const struct Dialect *dialect; /* what it writes its own way */
} TargetRow;

extern const TargetRow target_table[];
extern const size_t target_count;

/* NULL: there is none of that name, none that is written so. */
const TargetRow *target_find(const char *name);
const TargetRow *target_of_extension(const char *extension);
/* A row's target; `threads` is what workspace is planned for, where the caller says how many; 0: as
 * many as most machines have use for. */
Target target_make(const TargetRow *row, uint32_t threads);
/* Bytes of the largest workspace of a step, were the plan for another number of threads. */
uint64_t plan_workspace(const Plan *plan, const Target *target, uint32_t threads);

/* The emitted source and its header, in the language of the options' target. */
Text emit_source(const Plan *plan, const EmitOptions *options);
Text emit_header(const Plan *plan, const EmitOptions *options);
/* The program around a model that has data: what trains, evaluates, predicts. */
Text emit_main(const Plan *plan, const EmitOptions *options);
const char *emit_libraries(const Plan *plan); /* that an emitted program is linked with */
/* The weights of a plan whose parameters are the caller's, from a safetensors file that stays in
 * memory. NULL where one is missing or is another than the model wants: *fault says which. */
const Embedded *embedded_read(const Plan *plan, const EmitOptions *options, Text file,
                              const char **fault);
enum { WEIGHTS_LIMIT = 1 << 30 }; /* bytes of such a file */
/* The safetensors file with the constants that are too long for the C text; empty where there are
 * none. */
Text emit_constants(const Plan *plan, const EmitOptions *options);
/* False where another file has the name: trained parameters, that are not to be lost. */
bool constants_may_replace(const char *path);

/* Views of the plan: a page for the terminal; the steps and the graph for graphviz; the memory
 * map, address by time, as a picture and as a page to explore; slices for a trace viewer. */
Text emit_report(const Plan *plan, const EmitOptions *options);
Text emit_dot(const Plan *plan, const EmitOptions *options);
Text emit_graph(const Graph *g, const EmitOptions *options); /* the model, without a plan */
Text emit_svg(const Plan *plan, const EmitOptions *options);
Text emit_html(const Plan *plan, const EmitOptions *options);
Text emit_trace(const Plan *plan, const EmitOptions *options);

/* The plan and the graph it is for, as JSON: see PLAN.md. */
Text emit_json(const Plan *plan, const EmitOptions *options);

/* Reads such a file, whoever wrote it, and checks it: by plan_check, as every plan that is emitted,
 * and what the file says about itself. NULL where all
 * is well, otherwise what is wrong; *plan is what was read, where it could be. */
const char *plan_verify(Arena *arena, Text file, Plan **plan);
/* Bytes of the largest file that is read: a plan of as many nodes as a graph may have takes an
 * eighth of it. */
enum { PLAN_LIMIT = 1 << 30 };

#endif
