/* What the planner's passes hand to each other, between fuse and the finished Plan. */
#ifndef GPLAN_PLANNER_INTERNAL_H
#define GPLAN_PLANNER_INTERNAL_H

#include "planner/planner.h"
#include "planner/remat/remat.h"

/* What is planned, for whom and how. Passed to the passes after fuse, beside the arena that takes
 * what they make. */
typedef struct {
    const Graph *g;
    const Clusters *clusters;
    const Target *target;
    const PlanOptions *options;
    const uint64_t *workspace; /* by cluster, in bytes: asked of the target once */
} Task;

/* The clusters of each program in the order in which they run; one that occurs again is
 * computed again. */
typedef struct {
    Id *cluster[PROGRAMS];
    Id count[PROGRAMS];
} Order;

/* Values that their producers write straight into a concat's result. */
typedef struct {
    Id *host;       /* by value: the result it is a window of, or NONE */
    int64_t *begin; /* by value: where the window begins along the concat's axis */
} Windows;

/* How much of a concat is written in place. */
typedef enum { WINDOW_ALL, WINDOW_LAST, WINDOW_NONE, WINDOW_MODES } WindowMode;

/* The concat nodes of the graph, in order. */
typedef struct {
    Id *node;
    Id count;
    uint8_t *mode; /* WindowMode of each */
} Concats;

/* fuse.c: the first update of something that the node reads, in its program; NONE: no update.
 * update: by value, the node that makes its next version in its bytes. */
Id fuse_limit(const Graph *g, const Node *node, const Id *update);
enum { FUSE_MAX_NODES = 32 }; /* of a loop: emitted ones stay readable */
/* epilogues.c: the epilogues of products. home: by node, where its group runs: the place of
 * one of its nodes. */
void fuse_epilogues(Arena *arena, const Graph *g, const Id *update, Id *home);

/* concat_windows.c: the concats, each in mode WINDOW_ALL; and the windows that the modes allow
 * among clusters that the order runs once. */
Concats concats_find(Arena *arena, const Graph *g, const Clusters *clusters);
void windows_set(Arena *arena, const Graph *g, const Clusters *clusters, const Order *order,
                 const Concats *concats, Windows *windows);
int concat_axis(const Graph *g, Id node);

/* live.c: occurrences, buffers and lifetimes for this order and these windows; offsets are still to
 * come. */
Plan *live(Arena *arena, const Task *task, const Order *order, const Windows *windows);
/* Whether result 0 of the cluster may take the bytes of this operand, if that dies with it. */
bool may_overwrite(const Graph *g, const Clusters *clusters, Id cluster, Id operand, Id result);
uint64_t live_peak(Arena *arena, const Plan *plan, uint32_t align, uint32_t *time);
uint64_t round_up(uint64_t bytes, uint64_t align);

/* Where the buffers of an order lie. */
typedef struct {
    uint64_t *offset;               /* by buffer */
    uint64_t height[SPACES], bound; /* bound: of the first space */
} Packing;

/* plan.c: the plan of an order, packed in at most so many steps of the packer: within the capacity,
 * or as small as can be (0); or as it was packed before (NULL: it was not). */
Plan *plan_order(Arena *arena, const Task *task, const Order *order, uint64_t pack_effort,
                 uint64_t capacity, const Packing *packed);
/* What the plan of an order is worth. */
typedef struct {
    uint64_t arena;
    double cost, rest; /* as of a Plan */
} Worth;
/* The plan of an order that has the occurrences of another, within its arena; NULL: the packer
 * finds none. It is worth the same. */
Plan *plan_moved(Arena *arena, const Task *task, const Order *order, uint64_t pack_effort,
                 const Worth *was);

/* even_layers.c: the buffers that equal layers have in common at a constant stride, where there is
 * room; the arena stays as large. */
void even_layers(Plan *plan, uint32_t align);

/* remat_build.c: a program as what planner/remat/remat.h searches on; `relaxed`: with sizes that no
 * plan can be below, however buffers overlap. */
enum { BLOCK_DEPTHS = 3 };
typedef struct {
    RematProblem problem;
    const Id *cluster;   /* by node of the problem */
    RematSchedule start; /* the given order, with what the hints ask to be computed again */
    bool hinted;         /* something is */
    int64_t collected;   /* bytes that are live in every step, beside what is persistent */
    Id broken;           /* a value whose hint cannot be kept, or NONE */
    RematId back;        /* the first node of the backward pass, or REMAT_NONE */
    const Id *block[BLOCK_DEPTHS]; /* by node: its block at depth 1, 2, ..., in the order in which
                                      they begin, or NONE; where there is a backward pass */
} RematProgram;
RematProgram remat_build(Arena *arena, const Task *task, const Order *order, int program,
                         bool relaxed);

/* fit.c: what is planned, with its workspace; and the current order. */
Task task_new(Arena *arena, const Graph *g, const Clusters *clusters, const Target *target,
              const PlanOptions *options);
Order order_given(Arena *arena, const Clusters *clusters);

/* cost.c: whether the program is of what a plan's cost is of. */
bool program_counts(const Clusters *clusters, int program);
/* Estimated seconds of one run of a cluster. */
double cluster_cost(const Graph *g, const Clusters *clusters, const Target *target, Id cluster);

/* ring.c: seconds that a step waits for its data: reading ahead hides it as far as there are
 * threads. */
double ring_wait(const Graph *g, const Clusters *clusters, const Target *target, Ring ring);
/* communication.c: seconds that a training step loses to other ranks, in the given order. */
double ranks_wait(const Graph *g, const Clusters *clusters, const Target *target);

/* Whether the target has kernels for every node; says where not (supports.c). */
bool supports(const Graph *g, const Target *target);

#endif
