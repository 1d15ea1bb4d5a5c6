/* What a translation sees: the node at hand, its operands, and builders for the tree.
 *
 * A translation is a row {op, since, translate} of its family's table, onnx_NAME in a file NAME.c;
 * the build finds the file, as it does those of ops/. README.md walks one. It reads the node,
 * builds expressions of the language and gives each output its own with result(). Every statement
 * is lowered at once into a scratch graph, so that dtypes and dims come from the rows' own rules.
 */
#ifndef GPLAN_ONNX_TRANSLATE_H
#define GPLAN_ONNX_TRANSLATE_H

#include "frontend/ast.h"
#include "frontend/onnx/onnx.h"
#include "frontend/onnx/proto.h"

/* Rows and items name what they have; the rest of their fields is 0. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

typedef struct Import Import; /* an import under way */

typedef struct {
    const char *op;
    int since; /* the first opset version whose meaning this is */
    bool (*translate)(Import *m);
    const char *row;    /* the op of the language, where that is the only difference: row(m) */
    const char *domain; /* NULL: ONNX's own */
} Translation;

/* A number that is known at import, or an expression of free dimensions. */
typedef struct {
    double real;      /* what it is, at the sizes at hand */
    int64_t integer;  /* likewise, where the type is one of integers or bool */
    const Expr *expr; /* NULL: it is always that */
    bool positive;    /* a size, or made of sizes: at least 1 */
} Number;

/* A value of the ONNX graph. */
typedef struct Tensor Tensor;
struct Tensor {
    const char *name; /* as the file has it */
    int elem;         /* ONNX's type */
    Dtype dtype;      /* that it is stored in: elem_dtype(elem) */
    int rank;
    int64_t dim[MAX_RANK];
    bool open[MAX_RANK];     /* the dim changes with a free dimension */
    int64_t other[MAX_RANK]; /* what it is then */
    const Expr *expr;        /* what it is called in the tree; NULL: not stated yet */
    const OnnxTensor *data;  /* a constant; NULL: none, or not at hand yet */
    const Number *number;    /* its elements, where they were followed; NULL */
    Id value;                /* of the scratch graph; NONE: not stated yet */
    bool initializer;        /* of the file, rather than of a Constant node or folded */
};

/* ---- The node ------------------------------------------------------------------------------- */

/* "node NAME (OP): text", and why it is false: for `return refuse(...)`. */
bool refuse(Import *m, const char *format, ...) __attribute__((format(printf, 2, 3)));
int opset(const Import *m);       /* of the node's domain */
const char *row(const Import *m); /* of the translation's own line */

int inputs(const Import *m);           /* given or left out */
int outputs(const Import *m);          /* likewise */
bool wanted(const Import *m, int i);   /* output i has a name */
const Tensor *given(Import *m, int i); /* input i; NULL: left out */
const Expr *use(Import *m, int i);     /* the same as an operand; NULL: left out */
const Expr *use_tensor(Import *m, const Tensor *tensor);
/* The same, where it is a learned one: a parameter that is trained. `role`: "weight", "bias". */
const Expr *weight(Import *m, int i, const char *role);

/* A statistic that training keeps: BatchNormalization's mean and variance. */
const Expr *running(Import *m, int i, const char *role);

bool has_attr(const Import *m, const char *name);
int64_t attr_int(const Import *m, const char *name, int64_t fallback);
double attr_float(const Import *m, const char *name, double fallback);
const char *attr_word(Import *m, const char *name, const char *fallback);
/* NULL where it is not there; *count of them. */
const int64_t *attr_ints(const Import *m, const char *name, size_t *count);
const double *attr_floats(const Import *m, const char *name, size_t *count);
const char *const *attr_words(Import *m, const char *name, size_t *count);
const OnnxTensor *attr_tensor(Import *m, const char *name); /* NULL too */
const OnnxGraph *attr_graph(Import *m, const char *name);   /* NULL too, with a message */

/* An axis counted from 0; false with a message. */
bool take_axis(Import *m, int64_t axis, int rank, int *taken);
/* The elements of input i, which must be known: a setting. NULL with a message. */
const Number *known(Import *m, int i, const char *what, int64_t *count);
/* The same as integers that no free dimension changes. */
const int64_t *known_ints(Import *m, int i, const char *what, int64_t *count);
/* Either an attribute or, in later versions, an input: axes. *count is -1 where it is neither. */
bool ints_of(Import *m, const char *name, int i, const int64_t **ints, int64_t *count);
/* The elements where they are known; NULL without a message. */
const Number *numbers(Import *m, const Tensor *tensor);

/* ---- Building ------------------------------------------------------------------------------- */

typedef struct {
    const Expr *value; /* NULL: not given */
    const char *name;  /* NULL: by position */
} Item;

const Expr *call(Import *m, const char *op, size_t count, const Item *item);
/* CALL(m, "conv2d", {x}, {w, "w"}, {ints(m, 2, stride), "stride"}) */
#define CALL(m, op, ...) \
    call(m, op, sizeof((Item[]){__VA_ARGS__}) / sizeof(Item), (Item[]){__VA_ARGS__})
/* An operator where the language has one for the op, else a call: a + b, maximum(a, b). */
const Expr *binary(Import *m, const char *op, const Expr *left, const Expr *right);
const Expr *negate(Import *m, const Expr *value);
const Expr *integer(Import *m, int64_t number);
const Expr *real(Import *m, double number);
const Expr *boolean(Import *m, bool truth);
const Expr *word(Import *m, const char *text);
const Expr *ints(Import *m, size_t count, const int64_t *number);
const Expr *list(Import *m, size_t count, const Expr *const *item);
const Expr *number_expr(Import *m, const Number *number, Dtype dtype);
/* x[from:to] along an axis; NULL: from the start, to the end. */
const Expr *slice_axis(Import *m, const Expr *x, int axis, const Expr *from, const Expr *to);
/* The size of an axis: a number, or dim(x, axis) where it follows from a free dimension. */
const Expr *size_of(Import *m, const Tensor *tensor, int axis);
Number size_number(Import *m, const Tensor *tensor, int axis);
const Expr *cast(Import *m, const Expr *x, Dtype dtype);
const Expr *zero_like(Import *m, const Tensor *tensor); /* 0, or 0.0 */
Tensor *tensor_copy(Import *m, const Tensor *tensor);   /* to be changed before it is a result */
const Expr *reshape(Import *m, const Expr *x, size_t rank, const Expr *const *dim);

Number *number_array(Import *m, int64_t count);
const Expr *use_declared(Import *m, int i); /* use(), but never as a bare number */
/* One number as a tensor of no dimension, rather than as a literal. NULL with a message. */
const Expr *constant_expr(Import *m, int elem, const Number *number);
const Expr *numbers_expr(Import *m, int elem, int rank, const int64_t *dim, const Number *number);
const Expr *subscripts(Import *m, const Expr *x, size_t count, const Subscript *subscript);

/* An intermediate step: stated under its own name. NULL with a message. */
const Tensor *state(Import *m, const Expr *value);
/* The same for an op with several results: a, b = split(x, 2). */
bool state_several(Import *m, const Expr *value, size_t count, const Tensor **out);

/* ---- Results -------------------------------------------------------------------------------- */

/* Output i is this. Its type is that of input 0 where gplan holds both alike, or as said; a cast is
 * added where the expression has another dtype. */
bool result(Import *m, int i, const Expr *value);
bool result_as(Import *m, int i, const Expr *value, int elem);
bool result_same(Import *m, int i, const Tensor *tensor); /* another name for it */
bool result_data(Import *m, int i, const OnnxTensor *data);
/* Its elements are known: dims that no free dimension changes. */
bool result_numbers(Import *m, int i, int elem, int rank, const int64_t *dim, const Number *number);

/* The nodes of a graph within this one: a branch of If, an iteration of Loop. Names of the graphs
 * around it are seen. */
bool translate_body(Import *m, const OnnxGraph *graph, const Tensor *const *in, const Tensor **out);

#endif
