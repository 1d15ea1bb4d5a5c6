/* What every view of a plan shares: facts that follow from the Plan, found once.
 *
 * Nothing here decides anything. Times are the plan's: occurrences counted over all programs.
 */
#ifndef GPLAN_PICTURE_H
#define GPLAN_PICTURE_H

#include "codegen/internal.h"

/* What bytes are for, as the pictures colour them: finer than the planner's kinds. */
typedef enum {
    TONE_PARAM,
    TONE_STATE,
    TONE_PREPARED,
    TONE_GRADIENT,
    TONE_INPUT,
    TONE_DATA,
    TONE_OUTPUT,
    TONE_ACTIVATION,
    TONE_RECOMPUTED,
    TONE_WORKSPACE,
    TONES
} Tone;

typedef struct {
    const char *name;         /* in files: "parameter" */
    const char *plural;       /* for people: "parameters" */
    const char *light, *dark; /* colours of the two themes */
} ToneRow;
extern const ToneRow tones[TONES];
typedef struct {
    const char *name, *light, *dark;
} PhaseRow;
extern const PhaseRow phases[];
extern const char *const program_names[];  /* forward, eval, step, update */
extern const char *const program_titles[]; /* for people: "training step" */
extern const char *const buffer_kinds[];   /* as files name them */
extern const char *const value_kinds[];    /* likewise */

/* One occurrence. */
typedef struct {
    const Occurrence *occurrence;
    const Node *node; /* the last of its cluster: what the step is named after */
    uint32_t first;   /* time of the first occurrence of the cluster: itself, or recomputed */
    uint8_t program;
} Step;

/* One buffer, by its own value: of a root, less than the root's lifetime where others lie in it. */
typedef struct {
    uint32_t birth, death;  /* from the step that writes it to the last that reads it */
    uint32_t producer;      /* time; NONE for what persists */
    Id reader, readers;     /* picture->reader[...]: times, ascending, each once */
    uint32_t end;           /* until when it is drawn: another value takes its bytes over then */
    uint64_t begin, height; /* bytes where it is drawn: its place in the arena, a window with gaps
                               drawn as if it had none */
    uint8_t tone;
    bool shared; /* a root that others lie in */
} Life;

typedef struct {
    const Plan *plan;
    const Graph *g;
    Arena *arena;
    const EmitOptions *options;
    Step *step; /* by time */
    Life *life; /* by buffer */
    uint32_t *reader;
    uint64_t *live; /* by time: bytes reserved then; one more than there are steps */
    uint64_t peak;  /* the most of them */
    uint32_t peak_time;
    double work, again;    /* operations of a call of each program, and those of recomputation */
    uint32_t recomputed;   /* steps that compute again */
    uint64_t bytes[TONES]; /* were each root to have its own */
    Id count[TONES];
    uint64_t dtype_bytes[DTYPES]; /* the same of those that hold values, by their dtype */
    Id dtype_count[DTYPES];
    bool narrow; /* some have f16 or bf16 */
} Picture;

/* Consecutive steps of one block or phase, for the strip under a map. */
typedef struct {
    const char *title; /* "" where the steps stand in no block */
    uint32_t from, to;
    uint8_t phase;
} Group;
Group *groups_make(const Picture *p, size_t *count);

Picture *picture_make(const Plan *plan, const EmitOptions *options);
void picture_ends(Picture *p); /* ends.c: a part of that */
/* Whether a map draws it: later versions of what persists lie in its rectangle. */
bool is_drawn(const Plan *plan, Id buffer);
bool is_live(const Picture *p, Id buffer, uint32_t time); /* a root in the arena, then */
/* Roots in the arena that are alive then, the largest first. */
Id *largest_at(const Picture *p, uint32_t time, Id *count);
Id tenant_at(const Picture *p, Id root, uint32_t time); /* the buffer whose value is in it then */
double node_work(const Graph *g, const Node *node);     /* operations */
const char *buffer_name(const Picture *p, Id buffer);
const char *buffer_shape(const Picture *p, Id buffer);  /* "" for workspace */
uint32_t buffer_line(const Picture *p, Id buffer);      /* of the source; 0: none */
const char *step_ops(const Picture *p, uint32_t time);  /* add, gelu: the ops of its cluster */
const char *offset_text(Arena *arena, uint64_t offset); /* 0x001c0 */

void out_xml(Out *o, const char *text); /* safe between tags and in quotes */

/* Blocks and iterations of repeats as levels. An iteration that holds one block and nothing else is
 * no level of its own: `repeat i in 0..L { h = layer(h) }` shows layers, not iterations with a
 * layer in each. */
typedef struct {
    uint32_t *level; /* by scope; 0: the model */
    Id *parent;      /* by scope: the next level up; NONE for the model */
    Id *shown;       /* by scope: itself, or the parent where it is no level */
} Levels;

Levels levels_make(const Graph *g);
Id level_at(const Levels *levels, Id scope,
            uint32_t level); /* the one around it; NONE: less deep */
const char *scope_title(const Graph *g, Id scope);

#endif
