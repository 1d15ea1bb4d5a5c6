/* Numbers that are followed one by one, shared by follow.c and follow_move.c. */
#ifndef GPLAN_ONNX_FOLLOW_H
#define GPLAN_ONNX_FOLLOW_H

#include "frontend/onnx/import.h"

enum { MAX_FOLLOWED = 256 }; /* numbers of a tensor */

/* A small tensor of them. */
typedef struct {
    int elem, rank;
    int64_t dim[MAX_RANK], count;
    const Number *at;
} Numbers;

static inline bool is_whole(int elem)
{
    return !elem_is_float(elem);
}

/* A number of a type that no size changes. */
static inline Number known_number(int elem, double real)
{
    return (Number){.real = real, .integer = is_whole(elem) ? whole_number(real) : 0};
}

/* follow.c: output i is these; NumPy's broadcasting, and where in an operand element i of the
 * result is from; two numbers as one. */
bool give_numbers(Import *m, int i, const Numbers *n);
bool broadcast_numbers(const Numbers *in, int ins, Numbers *out);
int64_t place_in(const Numbers *n, const Numbers *out, int64_t i);
typedef bool NumberOp(Import *m, int elem, const Number *in, Number *out);
NumberOp follow_add, follow_mul, follow_max, follow_min;

/* Ops that move numbers about (follow_move.c). */
typedef struct {
    const char *op;
    int least, most; /* inputs */
    int moved;       /* of which the first so many are numbers that are moved */
    bool (*move)(Import *m, const Numbers *in, bool *done);
} Mover;
const Mover *mover_find(const char *op); /* NULL */

#endif
