/* A graph interpreter for tests: every value in a block of its own, one node after the other.
 *
 * It shares nothing with the planner and emits nothing: what a node computes here is what its
 * kernel computes, and a kernel that leaves its operands is caught by the address sanitizer. The
 * element type of f32 values is gp_real, so the same tests can run with GP_REAL=double.
 */
#ifndef TESTS_RUN_GRAPH_H
#define TESTS_RUN_GRAPH_H

#include "frontend/frontend.h"
#include "runtime/runtime.h"

/* A tensor as references see it: dense, in order, each element a double whatever its dtype. */
typedef struct {
    Dtype dtype;
    int rank;
    int64_t dim[MAX_RANK];
    int64_t count; /* of elements */
    double *at;    /* NULL: an operand that was not given */
} Tensor;

Tensor tensor_new(Arena *arena, Dtype dtype, int rank, const int64_t *dim); /* zeros */
/* Numbers from low to high that depend on the seed alone; whole ones for integer types, 0 and 1
 * for bool. */
void tensor_fill(Tensor *t, uint64_t seed, double low, double high);
/* NULL where both agree in dtype and dims, and in each element within tolerance * (1 + |want|);
 * NaN agrees with NaN. Otherwise what differs first, in words. */
const char *tensor_differs(Arena *arena, const Tensor *got, const Tensor *want, double tolerance);

/* How the nodes are run. All ways give the same bits. */
typedef struct {
    int threads;          /* 0: one */
    bool in_place;        /* output 0 takes the bytes of an operand where the row allows it */
    bool strided_outputs; /* outputs are windows of larger buffers where the row allows it */
    uint64_t seed, step;  /* for random ops and optimizers */
    double lr;            /* for optimizers; 0: 0.1 */
    const char *order;    /* of blocks and threads, where CUDA is emulated: "descending"; NULL:
                             as the environment has it */
} RunOptions;

typedef struct {
    const Graph *graph;
    void **data;       /* of each value: a block of exactly its bytes */
    Id failed;         /* the node that returned an error */
    const char *wrong; /* what the interpreter itself found: a kernel missing, bytes written
                          outside an output; NULL where all is well */
} Run;

/* Memory that kernels can reach, aligned for all of them: run_memory.c has the machine's own, the
 * self-test for a GPU brings another. */
void *run_memory(size_t bytes);
void run_memory_free(void *at);

/* Blocks for every value of a finished graph. Literals hold their number; everything else is
 * filled with bytes that are NaN to a real. */
Run *run_new(Arena *arena, const Graph *g);
void run_free(Run *run);
void run_write(Run *run, Id value, const Tensor *tensor); /* dtype and dims are the value's */
Tensor run_read(const Run *run, Arena *arena, Use use);   /* of a value or a view of it */
/* Runs every node. GP_OK, what a kernel returned (then run->failed says which), or -1 (then
 * run->wrong says why). */
int run_graph(Run *run, const RunOptions *options);

#endif
