/* Ordering and rematerialization on an abstract graph: the cheapest schedule within a budget.
 *
 * A problem is a list of nodes in a valid order. A node reads values, writes values, costs time
 * and may need workspace. A schedule is a sequence of node occurrences: every node runs at least
 * once, and may run again to make its values again instead of keeping them. A read takes the
 * value from the latest occurrence of its producer; a value is live from that occurrence to the
 * last read before the producer runs again. What is live while a node runs: its workspace, the
 * values it reads, the values it writes, and all values read later. The peak of a schedule is the
 * largest such sum; it must stay within the budget, and the sum of costs should be least.
 *
 * Everything here is a plain value: fill the arrays, call remat_solve, read the result; that needs
 * libgplan.a and this header only. A solve is deterministic: the same problem and options give the
 * same schedule, unless `seconds`, the cancel flag or the progress callback cut it short.
 */
#ifndef GPLAN_REMAT_H
#define GPLAN_REMAT_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Memory of results: all of it is freed with the arena. */
typedef struct Arena Arena;
Arena *arena_new(void);
void arena_free(Arena *arena);

typedef uint32_t RematId;
#define REMAT_NONE UINT32_MAX

enum {                  /* RematNode.flags */
       REMAT_ONCE = 1u, /* has an effect (an update, running statistics) or is kept: never twice */
};
enum {                    /* RematValue.flags */
       REMAT_PINNED = 1u, /* always there and not counted (see base); needs no producer */
       REMAT_OUTPUT = 2u, /* live to the end of the schedule */
};

typedef struct {
    int64_t size;
    RematId node;    /* the producer; REMAT_NONE only when pinned */
    RematId killer;  /* node that overwrites the bytes: no read after it; REMAT_NONE: none */
    RematId drop_at; /* must not be stored across this node (a `recompute` hint); or REMAT_NONE */
    uint32_t flags;
} RematValue;

typedef struct {
    double cost;
    int64_t workspace;     /* bytes, live while the node runs */
    RematId read, reads;   /* RematProblem.read[read .. read + reads), no value twice */
    RematId value, values; /* the outputs: RematProblem.value[value .. value + values) */
    uint32_t flags;
} RematNode;

/* When `input` dies at an occurrence of `node`, `output` takes its bytes (output <= input).
 * Pairs are sorted by node, at most 64 a node; of those that share a half, the first counts. */
typedef struct {
    RematId node, input, output;
} RematInPlace;

typedef struct {
    RematNode *node; /* in a valid order, which is the baseline */
    RematValue *value;
    RematId *read;
    RematInPlace *in_place;
    const char **name; /* of each node, or NULL */
    RematId nodes, values, reads, in_places;
    int64_t base; /* counted at every moment: what is pinned, if the budget covers it */
} RematProblem;

typedef struct {
    RematId *node;
    size_t count;
} RematSchedule;

/* What a schedule is worth. */
typedef struct {
    bool valid;      /* every rule kept; otherwise `why` and `at` say which and where */
    const char *why; /* a constant text */
    size_t at;       /* the occurrence of the peak, or of the first broken rule */
    int64_t peak;
    double cost; /* sum over occurrences */
} RematValuation;

typedef struct {
    double seconds;  /* since the start */
    uint64_t effort; /* done so far, of `total` */
    uint64_t total;
    bool fits;          /* something within the budget is known */
    double cost, bound; /* best known and lower bound, as sums of costs */
    int64_t peak;       /* of the best known */
} RematProgress;

typedef struct {
    int64_t budget;
    uint64_t effort; /* counted, in about 10,000 steps; 0: the default */
    double seconds;  /* caps the effort; 0: no cap */
    uint64_t seed;
    const RematSchedule *start; /* further schedules to start from, all valid; may be NULL */
    size_t starts;
    bool no_bound; /* saves the time for bounds: `bound` is every node once, `floor` one node */
    bool (*progress)(const RematProgress *, void *data); /* may be NULL; false stops */
    void *data;
    const volatile sig_atomic_t *cancel; /* nonzero stops; may be NULL */
} RematOptions;

enum { REMAT_DEFAULT_EFFORT = 10000 };

typedef enum {
    REMAT_DONE,      /* the effort was spent */
    REMAT_PROVED,    /* the lower bound was met */
    REMAT_TIMED_OUT, /* `seconds` ended the search */
    REMAT_CANCELLED, /* by the flag or the callback */
    REMAT_HOPELESS,  /* the budget is below the memory floor */
} RematStop;

typedef struct {
    RematSchedule schedule; /* the best within the budget; when none fits, the smallest found */
    bool fits;
    RematStop stop;
    int64_t peak, floor;    /* floor: no schedule can be smaller */
    double cost, base_cost; /* of the schedule, and of every node once */
    double bound;           /* no schedule within the budget can cost less */
    uint64_t effort;        /* counted, in the unit of RematOptions.effort */
} RematResult;

/* NULL, or what is wrong with the problem, as a constant text. */
const char *remat_problem_error(const RematProblem *problem);

/* Each node once, in the order of the problem. */
RematSchedule remat_baseline(const RematProblem *problem, Arena *arena);

/* Replays the schedule from the definition above, in linear time. */
RematValuation remat_evaluate(const RematProblem *problem, const RematSchedule *schedule);

/* Least cost within the budget. The schedule is allocated in `arena`. */
RematResult remat_solve(const RematProblem *problem, const RematOptions *options, Arena *arena);

/* Least peak, whatever the cost (up to a few occurrences per node); options->budget is ignored. */
RematResult remat_minimize(const RematProblem *problem, const RematOptions *options, Arena *arena);

/* The same occurrences, as close to the order of the problem as a peak of `limit` allows, and equal
 * layers in one order wherever it does; the schedule is valid and within it. */
RematSchedule remat_settle(const RematProblem *problem, const RematSchedule *schedule,
                           int64_t limit, Arena *arena);

/* Bytes below which no schedule exists. */
int64_t remat_floor(const RematProblem *problem);

/* A lower bound on the cost of any schedule within the budget (at least every node once). */
double remat_bound(const RematProblem *problem, int64_t budget);

/* Reads either text format (see remat_text.c). On a mistake prints `file:line: error: ...` to
 * `errors` and returns false. */
bool remat_read(FILE *file, const char *path, Arena *arena, RematProblem *problem, FILE *errors);

/* One occurrence a line: the name of the node, or its number. */
void remat_write(FILE *file, const RematProblem *problem, const RematSchedule *schedule);

#ifdef __cplusplus
}
#endif
#endif
