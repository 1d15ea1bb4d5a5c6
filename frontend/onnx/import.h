/* An import under way, shared by the files that make it. */
#ifndef GPLAN_ONNX_IMPORT_H
#define GPLAN_ONNX_IMPORT_H

#include "frontend/base/names.h"
#include "frontend/lower.h"
#include "frontend/onnx/translate.h"

/* A graph that statements are lowered into as they are made. The second has every free dimension
 * at another size: what differs between the two follows from one. */
typedef struct {
    Graph *graph;
    Diag *diag;
    Lower *lower; /* NULL: it went wrong, and says nothing any more */
    Frame *frame;
} Scratch;

enum { SCRATCHES = 2 };

/* What is declared of a constant, and what is known of it by value of the first scratch graph. */
typedef struct {
    Stmt *stmt;
    const Tensor *tensor;
    const char *role; /* of a learned one; NULL */
    WeightKind kind;
} Declared;

struct Import {
    Arena *arena;
    Arena *kept; /* of the caller: for what lives on */
    Diag *diag;
    const OnnxOptions *options;
    Parse *parse; /* for the tree's builders */
    Ast *ast;
    OnnxRead read;
    OnnxFiles *files;
    OnnxModel model;
    Scratch scratch[SCRATCHES];
    Define *define[SCRATCHES]; /* free dimensions and their sizes */
    size_t defines;
    NameTable *names; /* of the file -> place in tensor */
    ARRAY(const Tensor *) tensor;
    NameTable *taken;  /* names of the tree */
    NameTable *output; /* names of the graph's outputs -> their place */
    NameTable *small;  /* constants that are in the text, by what they are -> place in declared */
    ARRAY(Declared) declared;
    ARRAY(Id) declared_as;   /* by value of the first scratch graph: 1 + place in declared, or 0 */
    ARRAY(bool) known_value; /* likewise: all it is made of is known */
    ARRAY(void *) content;   /* likewise: what it holds, once it was computed */
    const OnnxNode *node;
    const Translation *translation;
    int depth;    /* of graphs within graphs, and of functions within functions */
    int nodes;    /* translated so far */
    bool failed;  /* and the message is out */
    bool fixed;   /* sizes of free dimensions are taken as they are: nothing is free */
    bool pinned;  /* the import must be made again so */
    bool tainted; /* the statement being built names a free dimension */
};

/* Names (state.c). */
const char *intern(Import *m, const char *text);
const char *claim(Import *m, const char *wanted);             /* an identifier that is still free */
const Tensor *find_tensor(const Import *m, const char *name); /* NULL */
void bind_tensor(Import *m, const char *name, const Tensor *tensor);
/* Statements (state.c). */
Stmt *stmt_make(Import *m, StmtKind kind, const char *name);
/* Lowers it and adds it to the tree; false with a message. */
bool add_stmt(Import *m, Stmt *stmt);
/* What a name is in the first scratch graph; false: no tensor. */
bool look_up(Import *m, const char *name, Tensor *tensor);
const Tensor *declare(Import *m, const Tensor *constant);
/* Attention that is written out becomes one op (attention.c). */
void find_attention(Import *m);
/* Removes what no output needs, and says which declarations are left. */
void drop_unused(Import *m);

/* What is known (known.c). */
OnnxTensor *folded(Import *m, const Tensor *tensor); /* NULL: not known */
/* Ops on numbers that are followed (follow.c). *done: the node was one. */
bool follow(Import *m, bool *done);

/* Equal layers become a repeat (roll.c). */
void roll(Import *m);
/* Constants of a graph (inputs.c). */
bool import_initializers(Import *m, const OnnxGraph *graph);
/* The statements of the inputs, and of the model with its free dimensions; their sizes in each
 * scratch graph, those given and others; and the inputs as tensors (inputs.c). */
bool make_inputs(Import *m, Stmt *model, Stmts *declared);
bool begin_scratch(Import *m, const Stmt *model);
bool take_inputs(Import *m, const Stmts *declared);
/* Nodes (node.c). */
bool translate_nodes(Import *m, const OnnxGraph *graph);
/* Ops that the model defines (function.c). */
const OnnxFunction *find_function(const Import *m, const OnnxNode *node); /* NULL */
bool call_function(Import *m, const OnnxFunction *function);

#endif
