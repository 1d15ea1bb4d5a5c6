/* Cases for ops: one line each, run by ops_test.c in every way that the row allows.
 *
 * A file tests/ops/cases_FAMILY.c holds a table and, beside or in ref_FAMILY.c, the references:
 * plain loops in double, written from the definition and not from the kernel.
 *
 *     static Tensor square(const Case *c)
 *     {
 *         Tensor y = case_like(c, 0);
 *         for (int64_t i = 0; i < y.count; i++)
 *             y.at[i] = c->in[0].at[i] * c->in[0].at[i];
 *         return y;
 *     }
 *     OP_CASES(family) = {
 *         {"square", "f32[2, 3]", "", square},
 *         {"conv2d", "f32[1, 3, 8, 8] - -", "channels = 4, kernel = 3, pad = same", ref_conv2d},
 *         {0},
 *     };
 *     OP_ERRORS(family) = {
 *         {"matmul", "f32[2, 3] f32[4, 5]", "", "inner sizes differ: [2, 3] @ [4, 5]"},
 *         {0},
 *     };
 *
 * Each table registers itself. Every row of the registry must be reached by a case, by name or
 * as a node of the graph that a case makes (hidden rows).
 */
#ifndef TESTS_CASES_H
#define TESTS_CASES_H

#include "tests/ops/run_graph.h"

/* A row of a table says what it needs to; the rest is zero. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

typedef struct Case Case;
typedef Tensor (*Reference)(const Case *c);

typedef struct {
    const char *op;
    /* Operands, with spaces between: dtype and dims, `f32[2, 3]`; a range that its numbers are
     * drawn from, `i32[4]:0..9` (f32: -2..2, integers: -9..9); `-` one that is not given. */
    const char *operands;
    const char *settings; /* "stride = 2, pad = [1, 0], mode = bilinear" */
    Reference reference;  /* NULL: values are tested elsewhere; here the ways agree */
    double tolerance;     /* 0: 2e-5, or 1e-10 where gp_real is double */
    int output;           /* which result the reference gives */
    bool training;        /* called as part of a training step */
    bool steep;           /* magnifies what 16 bits round: not compared in them */
    Dtype narrow; /* what f32 operands are instead, as activations would be; F32: as written */
} OpCase;

/* What must be refused: the message must hold the text. */
typedef struct {
    const char *op, *operands, *settings, *message;
} OpError;

/* A case as its reference sees it. */
struct Case {
    const OpCase *row;
    Arena *arena;
    Tensor in[MAX_ARGS]; /* one for each tensor argument of the row, parameters included */
    int ins;
    const Call *call;
    Attr setting[MAX_ARGS]; /* as given: the row's rule resolves those of the call */
};

/* A setting as the user would give it, or its default; element i of a list of which one number
 * stands for all. A word gives its place in the row's words. */
double case_number(const Case *c, const char *setting);
int64_t case_int(const Case *c, const char *setting);
int64_t case_at(const Case *c, const char *setting, int i);
int case_count(const Case *c, const char *setting); /* of a list, as given */
bool case_is_word(const Case *c, const char *setting, const char *word);
Tensor case_like(const Case *c, int operand); /* zeros of its dtype and dims */
Tensor case_new(const Case *c, Dtype dtype, int rank, const int64_t *dim);

/* Runs a case plain, with strided operands, in place, into windows, with several threads and, where
 * CUDA is emulated, with a block's threads in other orders. NULL where all is well. */
const char *case_check(Arena *arena, const OpCase *row);
/* The same in 16 bits, where a kernel that takes them is reached: else `op` is NULL. Parameters are
 * rounded for the reference, as products round them; the result may be off by 4 units of the last
 * place, and by 16 where the op is made of several that round. */
OpCase case_narrowed(Arena *arena, const OpCase *row, Dtype dtype);
/* NULL where the call is refused with the message. */
const char *case_refused(Arena *arena, const OpError *row);
/* Calls visit for every op that the case reaches: its own and those of the nodes it makes. */
void case_ops(Arena *arena, const OpCase *row, void (*visit)(void *to, const OpRow *op), void *to);

/* ---- A case's graph, for other checks of the same cases ------------------------------------- */

/* How an operand lies in the input that holds it. */
typedef enum { PLAIN, REVERSED_AXES, SPACED, FLIPPED, WINDOW, WAYS } Way;
typedef struct {
    Arena *arena;
    Graph *graph;
    Call call;
    Tensor operand[MAX_ARGS];
    Use use[MAX_ARGS]; /* of the operands */
    int operands;
    Attr setting[MAX_ARGS]; /* as given, before the row's rule resolves them */
    char *message;          /* what was said */
    size_t message_length;
    bool refused;
} Built;

/* Operand `only` (or all, where it is -1) lies in this way, the others plain. The caller frees
 * the message. */
Built case_build(Arena *arena, const OpCase *row, Way way, int only, bool training);
/* Numbers for operands and parameters. */
void case_write(Run *run, const Built *b);

/* The registered tables, for ops_test.c; NULL past the end. */
const OpCase *cases_at(size_t table);
const OpError *errors_at(size_t table);

void cases_register(const OpCase *table);
void errors_register(const OpError *table);

#define OP_CASES(family)                                                   \
    extern const OpCase cases_##family[];                                  \
    __attribute__((constructor)) static void register_cases_##family(void) \
    {                                                                      \
        cases_register(cases_##family);                                    \
    }                                                                      \
    const OpCase cases_##family[]
#define OP_ERRORS(family)                                                   \
    extern const OpError errors_##family[];                                 \
    __attribute__((constructor)) static void register_errors_##family(void) \
    {                                                                       \
        errors_register(errors_##family);                                   \
    }                                                                       \
    const OpError errors_##family[]

#endif
