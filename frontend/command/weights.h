/* `gplan weights`: tensors of other tools' files, and the model's parameters that want them. */
#ifndef GPLAN_WEIGHTS_H
#define GPLAN_WEIGHTS_H

#include "frontend/safetensors.h"

typedef enum { UNUSED, USED, IGNORED } Fate; /* of a tensor of the file */

typedef struct {
    const StoredTensor *tensor;
    const char *file;
    Fate fate;
} Foreign;

/* Where a parameter comes from. */
typedef struct {
    Foreign *from; /* NULL: nowhere yet */
    View view;     /* of it: has the dims of the parameter */
    bool mapped;   /* the map says so */
    uint32_t line; /* then: which of its lines */
} Origin;

typedef struct {
    const Value *value;
    Origin origin;
} Want;

/* Parameters of one call of an op, which go together. */
typedef struct {
    const char *path; /* their names without the last word */
    const OpRow *op;
    Want *want[MAX_ARGS]; /* by argument; NULL: it has none */
    bool declared;        /* one that the model declares by itself: the path is its whole name */
} Layer;

typedef struct {
    Arena *arena;
    Diag *diag;
    const Graph *g;
    ARRAY(Foreign) foreign;
    NameTable *names; /* of foreign tensors: their place */
    ARRAY(Want) want;
    ARRAY(Layer) layer;
} Weights;

/* The tensor of this name; NULL: there is none. */
Foreign *weights_find(const Weights *w, const char *name);
/* The same, with a prefix that all names of the file begin with and a dot; "": there is none. */
const char *weights_prefix(const Weights *w);

/* MODULE.LEAF */
const char *module_name(Arena *arena, const char *module, const char *leaf);

View stored_view(const StoredTensor *tensor);
View view_transposed(View view); /* the last two axes are swapped */
bool view_fits(const View *view, const Value *value);
void origin_set(Want *want, Foreign *from, View view);

/* What PyTorch calls an argument, by one of the ways that its row has. */
typedef struct {
    const char *leaf;  /* NULL: there is no such way */
    int piece, pieces; /* along the first axis; 0 of 1: the whole */
    bool transposed;
} ForeignArg;
enum { MAX_WAYS = 4 }; /* that a row may have */
ForeignArg foreign_arg(Arena *arena, const Arg *arg, int way);
/* Where the parameters of a layer are, if they all stand in this module; false: they do not. */
bool layer_fits(const Weights *w, const Layer *layer, const char *module, int way, bool set);

/* The passes: each gives parameters their origin, and says what is wrong; false where that is an
 * error. First the lines of a map (weights_map.c), then names, then order (weights_match.c). */
bool weights_map(Weights *w, const Source *map);
void weights_match(Weights *w);
/* Of those that have none, says which could be meant by which; false where there is any. */
bool weights_ambiguous(Weights *w);

/* Whether the tensor's numbers can be the parameter's (weights_convert.c); NULL or why not. */
const char *convert_fault(Arena *arena, const Want *want);
/* Writes them, as the model has them. */
void convert_write(FILE *to, const Want *want);
/* What a parameter holds after NAME_reset with this seed. */
void convert_reset(FILE *to, const Value *value, uint64_t seed);

#endif
