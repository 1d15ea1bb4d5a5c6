/* The messages of an ONNX file as small structs. Names are copied; the data of tensors stays where
 * it is in the file, or in a file beside it. */
#ifndef GPLAN_ONNX_PROTO_H
#define GPLAN_ONNX_PROTO_H

#include "frontend/frontend.h"
#include "frontend/onnx/wire.h"

enum {
    MAX_GRAPHS = 16,       /* within each other */
    MAX_NUMBERS = 1 << 20, /* in a list of an attribute */
    MAX_ONNX_NAME = 1000,  /* bytes */
    MAX_ONNX_RANK = 16,    /* of what is read; gplan itself has MAX_RANK */
};

/* The types of TensorProto, with their numbers there. */
typedef enum {
    ELEM_NONE,
    ELEM_FLOAT,
    ELEM_UINT8,
    ELEM_INT8,
    ELEM_UINT16,
    ELEM_INT16,
    ELEM_INT32,
    ELEM_INT64,
    ELEM_STRING,
    ELEM_BOOL,
    ELEM_FLOAT16,
    ELEM_DOUBLE,
    ELEM_UINT32,
    ELEM_UINT64,
    ELEM_COMPLEX64,
    ELEM_COMPLEX128,
    ELEM_BFLOAT16,
    ELEMS
} Elem;

const char *elem_name(int elem); /* float, uint8, ...; never NULL */
size_t elem_size(int elem);      /* bytes; 0: not a type that gplan reads */
bool elem_is_float(int elem);
Dtype elem_dtype(int elem);  /* what gplan computes it in; DTYPES: it cannot */
Dtype elem_stored(int elem); /* what inputs and outputs have; DTYPES: none */

typedef struct {
    const char *name; /* never NULL */
    int elem;
    int rank;
    int64_t dim[MAX_ONNX_RANK];
    int64_t count;             /* of elements */
    const unsigned char *data; /* count * elem_size bytes, lowest first, at any address; NULL where
                                  they are external and the file was not opened yet */
    bool owned;                /* data is in the reader's own memory, not in a file */
    const char *location;      /* external: the file, and where in it */
    uint64_t offset, length;   /* length 0: not said */
} OnnxTensor;

typedef struct {
    const char *name;
    Wire body; /* of the message */
    int64_t i;
    double f;
    Wire s, t, g; /* at NULL: not there */
    bool has_i, has_f;
    const char *reference; /* it is that attribute of the function's call; NULL */
    const int64_t *ints;
    const double *floats;
    const Wire *strings;
    size_t int_count, float_count, string_count;
} OnnxAttribute;

typedef struct {
    const char *name, *op, *domain; /* domain "" is ONNX's own */
    const char *overload;           /* which of the functions of that name; "" */
    ARRAY(const char *) input;      /* "": left out */
    ARRAY(const char *) output;
    ARRAY(OnnxAttribute) attribute;
} OnnxNode;

typedef struct {
    const char *name;
    bool tensor; /* else a sequence, a map, an optional: `kind` says which */
    const char *kind;
    int elem;
    bool shaped;
    int rank;
    int64_t dim[MAX_ONNX_RANK];        /* -1: not known */
    const char *symbol[MAX_ONNX_RANK]; /* its name, or NULL */
} OnnxInfo;

typedef struct {
    const char *name;
    ARRAY(OnnxNode) node;
    ARRAY(OnnxTensor) initializer;
    ARRAY(OnnxInfo) input, output; /* what is between is shaped by gplan's own rules */
} OnnxGraph;

typedef struct {
    const char *domain;
    int64_t version;
} OnnxOpset;

typedef ARRAY(OnnxOpset) OnnxOpsets;

/* An op that the model defines itself, by nodes. */
typedef struct {
    const char *name, *domain, *overload;
    ARRAY(const char *) input, output;
    ARRAY(OnnxAttribute) attribute; /* with what it is where a call does not say */
    ARRAY(OnnxNode) node;
    OnnxOpsets opset;
} OnnxFunction;

typedef struct {
    OnnxGraph graph;
    const char *producer;
    OnnxOpsets opset;
    ARRAY(OnnxFunction) function;
} OnnxModel;

typedef struct {
    Arena *arena;
    const char *fault; /* the first, in words; NULL: none */
} OnnxRead;

/* False where the message is broken: r->fault says how. */
bool onnx_read_model(OnnxRead *r, Wire wire, OnnxModel *model);
bool onnx_read_graph(OnnxRead *r, Wire wire, int depth, OnnxGraph *graph);
bool onnx_read_tensor(OnnxRead *r, Wire wire, OnnxTensor *tensor);

/* Element i as a double, and as an integer. */
double onnx_number(const OnnxTensor *tensor, int64_t i);
int64_t onnx_integer(const OnnxTensor *tensor, int64_t i);

/* A real as an integer: the nearest that there is towards 0, of a NaN 0. */
static inline int64_t whole_number(double real)
{
    return real >= 0x1p63    ? INT64_MAX
           : real <= -0x1p63 ? INT64_MIN
           : real == real    ? (int64_t)real
                             : 0;
}

/* Elements as a dtype that gplan computes in has them. */
void onnx_convert(const OnnxTensor *tensor, Dtype dtype, int64_t from, int64_t count, void *to);

/* ---- Files (files.c) ------------------------------------------------------------------------ */

typedef struct OnnxFiles OnnxFiles; /* mapped, for as long as the import runs */

/* Maps a file; NULL with *fault. `folder` of external data is the one the file is in. */
OnnxFiles *onnx_open(Arena *arena, const char *path, Wire *wire, const char **fault);
/* Finds the data of an external tensor, in the model's own folder; NULL: all is well. */
const char *onnx_external(OnnxFiles *files, OnnxTensor *tensor);
void onnx_close(OnnxFiles *files);

#endif
