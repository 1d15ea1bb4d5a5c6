/* What the replay of a plan knows while it goes on: check.c runs programs, check_step.c one step of
 * them, check_memory.c knows what is where. Shares no code with the planner. */
#ifndef GPLAN_CHECK_REPLAY_H
#define GPLAN_CHECK_REPLAY_H

#include "planner/check_lanes.h"
#include "planner/check_parts.h"

/* What an occurrence wrote through a buffer, or what was there before the program began. */
typedef struct {
    Id buffer, value;
    uint32_t written, last_read; /* times; last_read counts up while replaying */
    uint32_t covered;            /* when somebody wrote over it: END while it is whole */
    uint32_t absorbed;           /* when it became part of a concat's result around it, or END */
    Id around;                   /* that result as a content, or NONE */
    uint32_t spared;             /* when a concat last left it in place, or END */
    bool persistent;
} Content;

/* What stood for a value when it was last an operand or a result. */
typedef struct {
    Id buffer;
    uint32_t time; /* + 1; 0: it never was */
} Argument;

typedef struct {
    const Plan *plan;
    const Graph *g;
    const Target *target;
    Arena *arena;
    ARRAY(Content) content;
    Id *latest;         /* by buffer: the content written through it last, or NONE */
    uint32_t *read;     /* by buffer: when the program at hand reads it for the last time */
    Extents extents;    /* of buffers */
    Lanes lanes;        /* of contents */
    Argument *argument; /* by value */
    uint32_t *windowed; /* by buffer: when a concat last found it in its place, + 1 */
    const char *error;
} Check;

#define END UINT32_MAX /* a time that never comes */

/* ---- check.c ---- */

/* Keeps the first that is wrong; false. */
bool check_fail(Check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *check_name(const Check *c, Id buffer);

/* ---- check_step.c ---- */

/* One occurrence: what it reads is there, and it may write where it does. */
bool step_replay(Check *c, const Occurrence *o, uint32_t time);

/* The kernel of the cluster that runs elementwise nodes as its epilogue, or NULL. */
const Node *step_kernel(const Check *c, const Cluster *cluster);

/* ---- check_memory.c ---- */

/* The buffer has its value from now on. */
void memory_put(Check *c, Id buffer, uint32_t time, bool persistent);
/* Whatever the buffer covers is lost from now on, save contents that are spared where it spares
 * any. */
bool memory_cover(Check *c, Id buffer, uint32_t time, bool spares);
/* A read: whether the value of the buffer is there, whole. */
bool memory_holds(Check *c, Id buffer, uint32_t time);
LivePeak memory_live_peak(Check *c);

#endif
