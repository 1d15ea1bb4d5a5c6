/* An interpreter of the graph by naive loops in double: what emitted programs are compared with.
 *
 * It includes nothing of runtime/ and reads no row's expression, derivative or gradient: each op is
 * written here once more from its formula, forward and backward, by its name. Of the frontend it
 * takes the graph of the forward pass alone: nodes, settings, and views, which are data. */
#ifndef TESTS_INTERPRETER_H
#define TESTS_INTERPRETER_H

#include "frontend/frontend.h"

/* An operand or a result, its elements in order. */
typedef struct {
    double *at; /* NULL: not given, or not wanted */
    int rank;
    int64_t dim[MAX_RANK], count;
} Array;

/* One run of an op. */
typedef struct {
    const Graph *g;
    Id node;
    int ins, outs;
    Array *in, *out;
    Array *din;  /* backward: gradients of operands, to be added to */
    Array *dout; /* backward: gradients of results; zeros where nothing flows back */
    uint64_t seed, step;
} Run;

typedef struct {
    const char *name;
    void (*forward)(const Run *r);
    void (*backward)(const Run *r); /* NULL: nothing flows back */
} Op;

/* Each file ends its list with an op without a name. */
extern const Op naive_attention[], naive_convolution[], naive_elementwise[], naive_losses[],
    naive_norms[], naive_pooling[], naive_products[], naive_shapes[];
const Op *interpreter_op(const char *name); /* stops with a message where there is none */

/* ---- Help for the ops ------------------------------------------------------------------------ */

void *need_memory(size_t bytes); /* zeroed */
double *need_doubles(int64_t count);
_Noreturn void stop(const char *format, ...) __attribute__((format(printf, 1, 2)));

double run_number(const Run *r, const char *setting);
const int64_t *run_list(const Run *r, const char *setting);
int64_t run_int(const Run *r, const char *setting);

/* c[m, n] += a[m, k] @ b[k, n] */
void product(int64_t m, int64_t n, int64_t k, const double *a, const double *b, double *c);
void product_in_float(bool yes);
double stored(double x); /* rounded where products are: a number that is kept for many elements */
/* to[columns, rows] = from[rows, columns] */
void transpose(int64_t rows, int64_t columns, const double *from, double *to);

/* What dropout multiplies element i by. */
double dropout_factor(uint64_t seed, uint64_t step, const char *stream, int64_t i, double rate);

/* ---- The machine ----------------------------------------------------------------------------- */

/* A program of a graph with its values. Values of inputs, parameters and state are the caller's;
 * the others are made here. */
typedef struct {
    const Graph *g;
    double **value, **gradient; /* by value */
    bool *wanted;               /* by value: a trained parameter feeds it */
    Id *readers;                /* by value: how many uses there are */
    uint64_t seed, step;
    bool rounded; /* to float, every result and every sum of a product */
} Machine;

Machine *machine_new(const Graph *g);
void machine_free(Machine *m);
void machine_set(Machine *m, Id value, const double *from); /* copies */
void machine_node(Machine *m, Id node);                     /* runs one forward, perhaps again */
void machine_forward(Machine *m);
void machine_backward(Machine *m, Id loss);
void machine_trim(Machine *m); /* leaves outputs, logits, the loss, and what has an effect */
void machine_drop(Machine *m); /* what was computed; gradients too */
/* What an output is the softmax of; its value is NONE where another op made it. */
Use output_logits(const Graph *g, const Output *output);
/* Of an operand, in the order of its view. The caller frees it. */
double *machine_read(const Machine *m, Use use);

/* ---- Decisions that hang on rounding (decisions.c) ------------------------------------------- */

typedef struct {
    int64_t moved, ties, redrawn; /* biases that were moved; near ties, filters moved for them */
    int64_t tied;                 /* maxpools with near ties that were left */
    double least;                 /* distance to a kink that is left, as a share of the largest */
    const char *where;
} Decisions;

/* Runs forward, and moves parameters on the way so that no element of a relu, a clip or a max is
 * near the place where its derivative jumps. */
void machine_decide(Machine *m, Decisions *d);

/* ---- Optimizers (optimizers.c) --------------------------------------------------------------- */

enum { MAX_STATES = 2 };

typedef struct {
    const char *name;              /* of the optimizer */
    const char *state[MAX_STATES]; /* names of its tensors, as in w.adam.m; NULL: none */
    int kind;
    double lr, setting[8];
} Optimizer;

Optimizer optimizer_of(const Graph *g, const char *parameter);
/* The state after a step, from the gradient; and the parameter, from the state before and after. */
void optimizer_state(const Optimizer *o, double w, double gradient, const double *before,
                     double *after);
double optimizer_parameter(const Optimizer *o, double w, double gradient, const double *before,
                           const double *after, uint64_t step);
bool parameter_frozen(const Graph *g, const char *parameter);
/* What clipping multiplies gradients by, after clip_value. */
double clip_gradients(const Machine *m);

#endif
