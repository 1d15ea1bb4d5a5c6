/* The door of the planner: a Graph and a budget -> a Plan.
 *
 * The Plan is a value. Everything downstream (emission, pictures, reports, verification) reads
 * it and decides nothing.
 */
#ifndef GPLAN_PLANNER_H
#define GPLAN_PLANNER_H

#include "frontend/frontend.h"
#include "planner/pack/pack.h"

#include <signal.h>

/* What is scheduled, recomputed and emitted: one op, a chain of elementwise ops that run as one
 * loop, or a product with such a chain as its epilogue. Its nodes are in order; values
 * between them take no bytes. With an epilogue there is one result, that of the last node. */
typedef struct {
    Id node, nodes;       /* clusters->node[node ...] */
    Id operand, operands; /* clusters->operand[...]: values read from outside, each once */
    Id result, results;   /* clusters->result[...]: values that somebody outside reads */
    uint8_t program;
} Cluster;

typedef struct {
    Cluster *at;
    Id count;
    Id *node;    /* graph nodes, cluster by cluster */
    Id *operand; /* values */
    Id *result;  /* values */
    Id *of;      /* graph node -> its cluster */
} Clusters;

/* What the estimates of time are made of: a roofline. `gplan --calibrate` measures them. */
typedef struct {
    double product_flops; /* a second and thread, in products */
    double conv_flops;    /* in convolutions */
    double loop_flops;    /* in elementwise loops, a function counted as one */
    double bytes;         /* a second, read and written */
    double start;         /* seconds for any op at all */
    /* Between ranks, while all of them send and receive; a file may leave these out. */
    double link_bytes; /* a second, that a rank sends while as many arrive */
    double link_start; /* seconds for a message, beside its bytes */
    double link_core;  /* the share of that time which it takes from the ops; the rest overlaps */
} Profile;
extern const Profile default_profile;

/* What a ring takes in memory. */
typedef struct {
    uint64_t slot, work;      /* of one slot; of files, notes, stacks and decoders */
    uint64_t host;            /* of a target that stages: what it has of both on the host */
    uint32_t slots;           /* that lie in the arena */
    uint64_t offset[MAX_FED]; /* of each input that data fills, within a slot */
    double seconds;           /* that one thread takes for the samples of a step, estimated */
} RingBytes;

/* How bytes between ranks move: LINK_POLLED: between two ops, as far as messages have come;
 * LINK_STREAMED: beside them, by a stream of their own. */
enum { LINK_NONE, LINK_POLLED, LINK_STREAMED };

/* What the planner must know of where the code will run. */
typedef struct Target {
    const char *name;
    uint32_t align;   /* of every buffer, in bytes */
    uint32_t threads; /* that workspace is planned for */
    bool epilogues;   /* kernels of rows with OP_EPILOGUE run elementwise ops on what they make */
    uint32_t dtypes;  /* that it has, a bit for each; 0: all */
    /* Whether it has a kernel for a row; NULL: for all. */
    bool (*has_op)(const OpRow *op);
    /* The same of f16 and bf16, for rows with OP_HALF: the others are given f32. */
    bool (*has_half)(const OpRow *op);
    uint64_t state; /* persistent bytes of its programs; 0: none */
    uint64_t (*workspace)(const struct Target *target, const Graph *g, const Clusters *clusters,
                          Id cluster);
    const Profile *profile; /* NULL: default_profile */
    /* Of a graph with data. NULL: the target reads none. */
    RingBytes (*ring)(const struct Target *target, const Graph *g, Ring ring);
    uint32_t readers; /* threads that may read it; 0: as many as compute */
    uint8_t link;     /* LINK_NONE, ...: how it reaches other ranks */
    bool stages; /* the ring is the host's: what is read lies in the first slot of the arena, and a
                    second one, if any, is on its way there */
} Target;

typedef enum {
    BUFFER_PARAM,
    BUFFER_STATE,
    BUFFER_PREPARED, /* made of parameters, once after they were written */
    BUFFER_INPUT,
    BUFFER_DATA, /* slots of the ring, what fills them, and inputs that lie in a slot; up to here
                    they are persistent */
    BUFFER_OUTPUT,
    BUFFER_ACTIVATION,
    BUFFER_WORKSPACE,
    BUFFER_KINDS
} BufferKind;

/* Where bytes are. Spaces that are planned have an arena each, in which buffers have offsets; the
 * budget is for the first. The caller's memory is bound by name. */
typedef enum { SPACE_ARENA, SPACE_CALLER, SPACES } Space;
extern const char *const space_names[SPACES]; /* arena, caller */
extern const bool space_planned[SPACES];

/* Bytes that hold one value (or a kernel's workspace) from birth up to, not including, death.
 * Times count occurrences over all programs, one program after the other; persistent buffers
 * live from 0 to the end. */
typedef struct {
    Id value;    /* NONE for workspace and for the state of the target */
    Id root;     /* the buffer that contains it: itself, or one whose bytes it takes over (in place)
                    or that it is a window of (concat). Only roots are packed. */
    View layout; /* of the value, in elements from the root's first byte */
    uint32_t birth, death; /* of a root: of all that it contains */
    uint64_t offset;       /* of the root in the arena of its space, in bytes */
    uint64_t bytes;        /* of a root: what is reserved */
    uint8_t kind, program;
    uint8_t space; /* where the root's bytes are, and all that it contains */
} Buffer;

/* One run of a cluster: the buffer of each of its operands and results. */
typedef struct {
    Id cluster;
    Id arg;       /* plan->arg[arg ...]: operands in the cluster's order, then results */
    Id workspace; /* a buffer, or NONE */
} Occurrence;

typedef struct {
    Occurrence *at;
    Id count;
    uint32_t begin; /* time of the first occurrence */
    uint32_t times; /* how often a call runs it: micro-batches */
} Program;

typedef struct {
    const Graph *graph;
    const Clusters *clusters;
    Program program[PROGRAMS];
    Buffer *buffer;
    Id buffers;
    Id *arg;
    Id *output;     /* by output of the graph: the buffer that has it when its program ends */
    Id *home;       /* by value: the buffer of an input, parameter, constant, state, gradient or
                       collected output; NONE for all others, and for what nobody reads */
    Id state;       /* the buffer of the target's state, or NONE */
    Id slots, work; /* of a graph with data: `ring.depth` slots one after the other, each with all
                       inputs that data fills; and the memory of what fills them; else NONE */
    Ring ring;
    uint32_t end;           /* time after the last occurrence */
    uint64_t arena[SPACES]; /* by planned space: bytes, all of its buffers packed */
    uint64_t persistent;    /* of them, those that live from 0 to the end */
    uint64_t bound;         /* no packing of these lifetimes is smaller */
    uint64_t floor;         /* no plan of these clusters is smaller, in whatever order */
    uint64_t peak;          /* largest sum of live bytes */
    uint32_t peak_time;     /* where */
    double cost;            /* estimated seconds of a training step, with its micro-batches and its
                               update; of a forward pass where there is no step */
    double rest;            /* of all other programs, each once */
} Plan;

/* What a search came to know beside its plan. */
typedef struct {
    double least_cost; /* without recomputation; of the model as written, where there was a
                          choice */
    double cost_bound; /* no plan within the budget costs less */
    uint64_t least;    /* of the smallest plan, where one was searched for; 0 */
    uint64_t effort;   /* spent, counted */
    bool cut;          /* by --seconds or the user, before the effort was spent */
    bool hopeless;     /* not even the floor is within what was asked for: see PlanOptions.most */
    Id broken_hint;    /* a value that can be neither recomputed nor left out, or NONE */
} Search;

/* What the search knows while it runs. */
typedef struct {
    uint32_t done, most; /* budgets that were searched, of how many at most */
    uint64_t arena;      /* the smallest known */
    bool fits;           /* some plan is within the budget */
    double cost, bound;  /* of the cheapest that fits; no plan within the budget costs less */
    double least_cost;   /* without recomputation */
    bool training;       /* these are of a training step; otherwise of a forward pass */
} PlanProgress;

typedef enum { WHEN_AUTO, WHEN_ALWAYS, WHEN_NEVER } When; /* AUTO: where a budget asks for it */

typedef struct {
    uint64_t budget; /* 0: none */
    uint64_t most;   /* plans above it are of no use: where the floor is, nothing is searched; 0 */
    double enough;   /* plans that cost so much are of no use: where none can cost less, nothing is
                        searched; 0 */
    uint64_t rival;  /* the smallest plan of a choice that differs in epilogues alone: what is not
                        clearly smaller is not searched for larger budgets; 0: none */
    uint32_t micro;  /* micro-batches in a step; 0: as the model says, and where it says nothing,
                        several only where no plan without them is within the budget */
    bool micro_auto; /* as many as cost least, from `micro` on */
    When chunked_loss, epilogues;
    bool no_prepared;    /* what hangs on parameters alone is computed at each call */
    uint8_t precision;   /* 1 + a dtype; 0: as the model says */
    bool precision_auto; /* then bf16 where nothing else is within the budget */
    Ring ring;           /* of a graph with data */
    uint32_t ranks;      /* that divide the batch; 0: one */
    bool as_ranks;       /* one rank does the work of all */
    uint8_t shard;       /* of several: Shard, */
    bool shard_auto;     /* or the least that the budget takes */
    bool io_external;    /* inputs and outputs are the caller's memory */
    bool params_external;
    bool no_recompute; /* order and place only */
    bool smallest;     /* the smallest arena there is, whatever it costs; with a budget: any plan
                          within it will do, and what cannot be is not searched */
    uint64_t effort;   /* of the search; 0: the default */
    double seconds;    /* a cap on top; 0: none */
    const volatile sig_atomic_t *cancel; /* nonzero: ends with the best known; may be NULL */
    void (*progress)(const PlanProgress *progress, void *data); /* may be NULL */
    void *data;
    void (*say)(const char *text); /* a line on what was done, for -v; may be NULL */
} PlanOptions;

/* What the least budget that gets a plan costs. */
typedef struct {
    uint64_t budget;
    double cost;
} PlanPoint;

/* Groups nodes into clusters. Requires a simplified graph. `epilogues`: elementwise ops run inside
 * the product before them. */
Clusters *fuse(Arena *arena, const Graph *g, bool epilogues);
/* Whether the cluster is a kernel with an epilogue of elementwise ops. */
bool cluster_has_epilogue(const Graph *g, const Clusters *clusters, const Cluster *c);
/* Whether the last of these makes a new version of what it reads: the kernel keeps its sums aside.
 */
bool cluster_keeps_aside(const Graph *g, const Clusters *clusters, const Cluster *c);
void clusters_dump(const Graph *g, const Clusters *clusters, FILE *to);

/* ---- From a model to a plan (choose.c) ------------------------------------------------------ */

/* Why the choice is as it is, in words for the report; NULL: there was nothing to choose. */
typedef struct {
    const char *micro, *chunked_loss, *epilogues, *ring, *precision, *shard, *prepared;
} Reasons;

/* A model lowered for a choice, and planned. */
typedef struct {
    Arena *arena; /* of all of it */
    Graph *graph; /* NULL: the model cannot be lowered so, and the message is out; or, with
                     PlanOptions.smallest, no plan is small enough: search.hopeless */
    Clusters *clusters;
    Plan *plan;
    Choice choice;
    Search search;
    Reasons why;
    bool micro_open; /* micro-batches are a last resort: neither asked for nor forbidden */
    Message coupled; /* then: why a step cannot run in several; no text: it can, or no budget asked
                        for them */
    uint64_t floor;  /* search.hopeless: no plan is smaller */
} Built;

/* The choice that the options ask for where nothing is open. */
Choice choice_asked(const Model *model, const Target *target, const PlanOptions *options);
/* Lowers and fuses; leaves no plan. */
Built build(const Model *model, const Target *target, const Choice *choice, Diag *diag);
/* The only way from a model to a plan: the cheapest choice that fits the budget, or without one the
 * smallest where that is asked for; where none fits, the smallest too. Micro-batches that the user
 * did not ask for come last: they are tried if nothing else fits a budget. Messages about the model
 * go to diag. To be freed. */
Built choose(const Model *model, const Target *target, const PlanOptions *options, Diag *diag);
void built_free(Built *built);
/* Bytes of a plan without recomputation for each way to shard, with all else as chosen; 0: none. */
void choose_stages(const Model *model, const Target *target, const PlanOptions *options,
                   const Choice *choice, uint64_t arena[SHARDS]);

/* A plan as a point, and the choice that it takes. */
typedef struct {
    uint64_t budget; /* the least that gets it */
    double cost;
    Choice choice;
} ChoicePoint;

/* The plans that budgets from the smallest to none get, over all choices, by budget; each costs
 * less than the one before it. False where the model cannot be lowered. */
bool choose_points(const Model *model, const Target *target, const PlanOptions *options,
                   Arena *arena, Diag *diag, ChoicePoint **points, size_t *count, Search *search);

/* ---- Of one choice (fit.c) ------------------------------------------------------------------ */

/* Orders, places, packs. Always gives a plan; whether it is within the budget is for the caller
 * to see: plan->arena. */
Plan *plan_make(Arena *arena, const Graph *g, const Clusters *clusters, const Target *target,
                const PlanOptions *options, Search *search);
/* The plans that budgets from the smallest to none get, by budget; each costs less than the one
 * before it. The last computes nothing again. plan_make with one of the budgets costs the same.
 * Leaves what Search.least is. */
size_t plan_points(Arena *arena, const Graph *g, const Clusters *clusters, const Target *target,
                   const PlanOptions *options, PlanPoint **points, uint64_t *least);
/* Estimated seconds with each cluster once: no plan costs less. As Plan.cost, of the training step
 * where there is one. */
double plan_cost(const Graph *g, const Clusters *clusters, const Target *target);
/* What a step waits beside that: for other ranks, and for its data. */
double plan_wait(const Graph *g, const Clusters *clusters, const Target *target, Ring ring);
/* What a training step has to do with other ranks: see communication.c. */
typedef struct {
    uint64_t sent, messages; /* bytes and messages that a rank sends; as many arrive */
    uint64_t grown;          /* bytes of tensors that have rows for each rank */
    double link;             /* seconds that moving and adding take, by themselves */
    double lost;             /* seconds by which they make the step longer */
    double step;             /* seconds of the step, with those */
} Communication;
Communication plan_communication(const Plan *plan, const Target *target);
/* The ring that a budget has to be short for to have a smaller one. */
Ring ring_wanted(const Graph *g, const Clusters *clusters, const Target *target);
/* Whether that is of a training step, and not of a forward pass. */
bool plan_trains_step(const Clusters *clusters);
/* The extra time of a plan, in percent of the least. All that is said of it is said by this. */
double plan_extra(double cost, double least);
void plan_dump(const Plan *plan, FILE *to);

/* The largest sum of live bytes (they hold something still to be read), and when. */
typedef struct {
    uint64_t bytes;
    uint32_t time;
} LivePeak;

/* Replays the plan on abstract memory. NULL where all is well, otherwise what is wrong. Shares no
 * code with the planner. live_peak: what it saw; may be NULL. */
const char *plan_check(const Plan *plan, const Target *target, LivePeak *live_peak);

#endif
