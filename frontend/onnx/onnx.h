/* The door of onnx/: an ONNX file -> a text in the language, and the weights that go with it. */
#ifndef GPLAN_ONNX_H
#define GPLAN_ONNX_H

#include "frontend/frontend.h"

/* An input whose value is known at compile time, and so is a constant of the model. */
typedef struct {
    const char *name, *path; /* path: a TensorProto in a file */
} OnnxBind;

typedef struct {
    const Define *define;
    size_t defines;
    const OnnxBind *bind;
    size_t binds;
    /* Runs a node whose operands are known; in[i] is operand i's value, whole. The rows' own
     * kernels, from whoever has them; false where it cannot. */
    bool (*run)(const Graph *g, Id node, void *const *in, void *const *out);
    bool quiet; /* no notes */
} OnnxOptions;

typedef enum { WEIGHT_TRAINED, WEIGHT_FROZEN, WEIGHT_STATE, WEIGHT_CONST } WeightKind;

typedef struct {
    const char *name;
    WeightKind kind;
    const char *role; /* why it is of that kind */
    Dtype dtype;      /* in the parameter file */
    int rank;
    int64_t dim[MAX_RANK];
    int elem;                  /* in the file it is read from */
    int64_t count;             /* of elements */
    const unsigned char *data; /* there */
} OnnxWeight;

typedef struct OnnxImport {
    const Source *source; /* the model as text */
    ARRAY(OnnxWeight) weight;
    bool fixed; /* free dimensions have the sizes that were given, once and for all */
    struct OnnxFiles *files;
} OnnxImport;

bool onnx_is_path(const char *path); /* by its name: model.onnx */
/* NULL with a message. What it returns is in `arena`, and holds until onnx_end. */
OnnxImport *onnx_import(Arena *arena, Diag *diag, const char *path, const OnnxOptions *options);
void onnx_end(OnnxImport *import);

/* Elements of a weight as its dtype has them; plain: the file has them so. */
bool onnx_weight_is_plain(const OnnxWeight *weight);
void onnx_weight_read(const OnnxWeight *weight, int64_t from, int64_t count, void *to);

#endif
