/* The door of the frontend: what the user wrote -> a Graph.
 *
 * The graph is a set of flat tables addressed by Id. Rules that every pass keeps:
 *
 *  - Nodes are in a valid order: a node reads only values made before it.
 *  - A node has one or more outputs, each a Value with its own lifetime.
 *  - Views (slices, transposes, broadcasts, reshapes) sit on operand edges: a Use is a value
 *    and a View of it. They are never nodes, never scheduled and take no bytes.
 *  - The operands of an elementwise node all have the dims of its output (broadcast is a
 *    stride of 0 in the view), so whoever loops over it needs no broadcasting rule.
 *  - An operand has a view that is not plain only where the op's row says `strided`.
 *  - State has versions: an update makes w@1 from w@0 (Value.previous) in the same bytes.
 */
#ifndef GPLAN_FRONTEND_H
#define GPLAN_FRONTEND_H

#include "frontend/base/arena.h"
#include "frontend/dtype.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef uint32_t Id; /* an index into a table of the Graph */
#define NONE UINT32_MAX

enum { MAX_RANK = 8, MAX_OUTPUTS = 4, MAX_ARGS = 16 };

/* ---- Source text and messages (diag.c) ------------------------------------------------------ */

/* A part of the source; lines and columns count from 1, `end` is the first column after it.
 * Line 0: no span; the message is about the file as a whole. */
typedef struct {
    uint32_t line, column, end_line, end;
} Span;

/* A file within a text that several were joined to. */
typedef struct {
    const char *file;
    uint32_t line; /* of the text: its first */
} SourcePart;

typedef struct {
    const char *file; /* as the user named it; "<stdin>" for - */
    const char *text; /* ends with a 0 that length does not count */
    size_t length;
    const SourcePart *part; /* in order; none where it is one file */
    size_t parts;
} Source;

/* The file that a line of the text is of, and its number there. */
const char *source_line(const Source *source, uint32_t line, uint32_t *number);
char *source_where(Arena *arena, const Source *source, uint32_t line); /* mlp.g:7; source or NULL */

typedef struct Diag Diag; /* where messages go, and how many there were */

Diag *diag_new(Arena *arena, FILE *to, bool color); /* to NULL: nothing is said, only counted */
void diag_source(Diag *diag, const Source *source); /* what later spans are of */
int diag_errors(const Diag *diag);                  /* errors so far */
/* The first of them; NULL: there was none. */
typedef struct {
    Span span;
    const char *text;
    const char *hint; /* NULL: it has none */
} Message;
const Message *diag_first(const Diag *diag);
Message message_copy(Arena *arena, const Message *message); /* NULL: without text */
bool diag_full(const Diag *diag);                           /* so many that it is time to give up */

/* `file:line:col: error: text`, the source line, a caret. Always returns false, so that a rule
 * can say `return diag_error(...)`. The first word of the text is the op where there is one. */
bool diag_error(Diag *diag, Span span, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void diag_warning(Diag *diag, Span span, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Both belong to the message before them: another place involved; how to mend it. */
void diag_note(Diag *diag, Span span, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void diag_hint(Diag *diag, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The name in `names` (count of them) that `word` was probably meant to be, or NULL. */
const char *suggest(const char *word, const char *const *names, size_t count);

/* ---- The graph ------------------------------------------------------------------------------ */

typedef enum {
    VALUE_RESULT,   /* of a node */
    VALUE_INPUT,    /* written by the caller */
    VALUE_PARAM,    /* a parameter: initialised, loaded, saved */
    VALUE_CONST,    /* a tensor of constants: as a parameter, but never trained */
    VALUE_STATE,    /* running statistics, optimizer state: saved beside the parameters */
    VALUE_GRADIENT, /* of a parameter, or a metric: summed over micro-batches */
    VALUE_PREPARED, /* made of parameters alone, by the program prepare: persistent */
    VALUE_OUTPUT,   /* of the whole batch, collected from micro-batches: lives with its program */
    VALUE_LITERAL,  /* one number, rank 0: is written into the code, takes no bytes */
} ValueKind;

typedef enum { INIT_ZEROS, INIT_ONES, INIT_CONST, INIT_UNIFORM, INIT_NORMAL, INIT_LIST } InitKind;

/* What a persistent value holds after a reset. xavier and he are INIT_UNIFORM and INIT_NORMAL
 * whose spread was taken from the shape. */
typedef struct {
    uint8_t kind;
    double a, b; /* const: a; uniform: from a to b; normal: mean a, deviation b */
    const double *list;
    size_t count; /* of list */
} Init;

typedef struct {
    int64_t offset; /* elements from the start of the value, as for the strides */
    int64_t dim[MAX_RANK], stride[MAX_RANK];
    uint8_t rank;
} View;

typedef struct {
    Id value, view; /* view: NONE: the operand is the whole value, without a view */
} Use;

typedef struct {
    Id node;          /* who makes it; NONE for inputs, parameters, literals */
    Id previous;      /* the version whose bytes it takes over: w@0 of w@1; NONE */
    Id whole;         /* of a micro-batch: the input, or the output of the whole batch, that it is a
                         window of; NONE */
    const char *name; /* unique; the key in a parameter file, the comment in emitted code */
    Span span;        /* where it was declared, for notes */
    uint8_t output;   /* which output of the node */
    uint8_t dtype, rank, kind;
    uint8_t program; /* that was being lowered when it was made */
    bool frozen;     /* a parameter that takes no gradient */
    bool fed;        /* an input that data fills: it is in a slot of the ring */
    const View *all; /* state of which this rank has a shard: the shape on all of them; NULL */
    uint8_t arg;     /* of `layer`: which of its arguments it is */
    uint8_t hint;    /* HINT_KEEP, HINT_RECOMPUTE */
    int64_t dim[MAX_RANK];
    double literal;            /* VALUE_LITERAL */
    Init init;                 /* VALUE_PARAM, VALUE_CONST, VALUE_STATE */
    const struct OpRow *layer; /* of the same: the first row that takes it as ARG_PARAM; NULL */
    const char *why;           /* a parameter is trainable, frozen or a const; NULL: undecided */
} Value;

enum { HINT_KEEP = 1, HINT_RECOMPUTE = 2, HINT_CHECKPOINT = 4 };

/* The block call or the iteration of a repeat that a node came from. Scope 0 is the model. Scopes
 * with the same template were made from the same text: candidates for being planned once. */
typedef struct {
    const char *path;   /* layer.3.mlp, "" for the model: stable under edits elsewhere */
    Id parent;          /* NONE for the model */
    Id template;        /* which block or repeat of the source, counted from 0 */
    uint32_t iteration; /* of the repeat, from 0 */
    uint8_t hint;       /* HINT_CHECKPOINT on a block */
    Span call;          /* who called: for "in the call of layer here" */
} Scope;

/* A setting of an op, resolved: a number, a list of integers or a word out of the row's choice. */
typedef struct {
    double number;          /* also the value of an integer, a bool (0, 1) or a word (its place) */
    int64_t list[MAX_RANK]; /* an integer is in list[0] too */
    uint8_t count;          /* of list */
    bool given;             /* by the user, as against the row's default */
    bool is_word;           /* number is the place of a word in Arg.words */
} Attr;

typedef enum { PHASE_FORWARD, PHASE_BACKWARD, PHASE_UPDATE } Phase;

/* What the emitted file can be asked to run. A node belongs to one of them: the model is lowered
 * once for each, onto the same parameters. */
typedef enum {
    PROGRAM_PREPARE, /* what hangs on parameters alone, once after they were written */
    PROGRAM_FORWARD, /* the outputs, no dropout */
    PROGRAM_EVAL,    /* the loss and the outputs, likewise */
    PROGRAM_STEP,    /* forward and backward of one micro-batch, and updates that need no more */
    PROGRAM_UPDATE,  /* updates from gradients that were summed over micro-batches */
    PROGRAMS
} ProgramKind;

typedef struct OpRow OpRow;

typedef struct {
    const OpRow *op;
    Id use, uses;     /* operands: graph->use.at[use ...]; value NONE where one was not given */
    Id value, values; /* outputs, likewise */
    Id attr;          /* settings, in the order of the row's arguments; one for each Arg */
    Id scope;
    const char *name;   /* scope path and what it is bound to, or op and ordinal; part of its
                           parameters' names */
    const char *stream; /* key of its random numbers: the name, or that of the op it repeats */
    Span span;
    uint8_t phase, program;
} Node;

typedef struct {
    Use use;
    const char *name;
    Span span;
    bool loss;   /* of the eval or the training program: no output of the user's */
    bool metric; /* one number of all samples, which micro-batches sum up */
} Output;

/* Layers that stay f32 whatever the precision (lower_precision.c). */
typedef struct {
    const char *pattern; /* of their names */
    Span span;
    bool met; /* there is such a layer */
} WideLayers;

/* The train statement, carried for the gradient pass. */
typedef struct {
    const char *name;    /* of an optimizer or of one of its settings */
    const char *pattern; /* settings for a group of parameters: which; NULL for all */
    Attr value;
    Span span;
} TrainSetting;

typedef struct {
    bool present;
    Use loss;
    const char *optimizer;
    double lr;      /* of the optimizer's brackets; the run can set another */
    uint32_t times; /* micro-batches in a step, on each rank */
    bool own;       /* in which each has its own statistics: the result depends on their number */
    bool weighs;    /* samples that fill up a batch add nothing to the loss */
    Span span;
    ARRAY(TrainSetting) setting; /* of the optimizer's brackets and of the statement's body */
} Train;

/* What each rank holds a part of: nothing; the state of the optimizer; gradients, too. */
typedef enum { SHARD_NONE, SHARD_STATE, SHARD_GRADIENTS, SHARDS } Shard;
const char *shard_name(Shard shard);

/* A batch that several ranks divide: see ranks.c. */
typedef struct {
    uint32_t count;            /* of ranks; 0: this program is alone */
    bool here;                 /* one rank does the work of all of them, with the same sums */
    uint8_t shard;             /* Shard */
    Id state;                  /* what the engine keeps, and pieces of messages; NONE */
    Id last;                   /* the version of it that the program being lowered has come to */
    Id gather, gathered;       /* the same of what gathers come after each other by; or NONE */
    uint32_t turns;            /* micro-batches on each rank */
    uint32_t sums;             /* tensors that can be under way at a time */
    int64_t piece;             /* numbers that one rank adds at a time */
    ARRAY(Id) begun;           /* parameters whose gradients are, in that order */
    const struct Model *whole; /* the model with the batch of all ranks */
} Ranks;

/* A data statement: where samples come from, and which inputs they fill (lower_data.c). */
enum { MAX_FED = 8 };
typedef enum {
    DATA_IMAGES,
    DATA_IDX,
    DATA_NPY,
    DATA_CSV,
    DATA_RECORDS,
    DATA_TOKENS,
    DATA_SAFETENSORS,
    DATA_CALLBACK,
    DATA_FORMATS
} DataFormat;

/* Its settings; a fact of each is in the table of lower_data.c. */
typedef enum {
    DATA_SHUFFLE,
    DATA_SPLIT,
    DATA_SPLIT_SEED,
    DATA_REPEAT,
    DATA_LAST,    /* DATA_DROP, DATA_PAD */
    DATA_CORRUPT, /* DATA_STOP, DATA_SKIP */
    DATA_CLASSES,
    DATA_RESIZE, /* DATA_COVER, DATA_STRETCH */
    DATA_CROP,
    DATA_FLIP,
    DATA_SHIFT,
    DATA_WIDTH,
    DATA_PROGRESSIVE,
    DATA_HEADER,
    DATA_STRIDE,
    DATA_SETTINGS
} DataSetting;
enum { DATA_DROP, DATA_PAD };
enum { DATA_STOP, DATA_SKIP };
enum { DATA_COVER, DATA_STRETCH };

typedef struct {
    const char *name;          /* train or eval */
    uint8_t format;            /* DataFormat */
    uint8_t paths, inputs;     /* of path and input */
    const char *path[MAX_FED]; /* as written: one, or one for each input */
    const char *key[MAX_FED];  /* by input: a column, a tensor; NULL: not given */
    Id input[MAX_FED];         /* of the whole batch */
    Attr setting[DATA_SETTINGS];
    Span span;
} DataStmt;

const char *data_format_name(DataFormat format);
const char *data_setting_name(DataSetting setting);
const char *data_setting_words(DataSetting setting); /* NULL: it takes none */

typedef struct {
    const char *name;
    int64_t value;
    bool batch; /* marked `batch` in the model line */
    Span span;
} Dimension;

typedef struct Graph {
    Arena *arena;
    Diag *diag;
    const Source *source;
    const char *name; /* of the model */
    ARRAY(Dimension) dimension;
    ARRAY(Value) value;
    ARRAY(Node) node;
    ARRAY(Use) use;
    ARRAY(View) view;
    ARRAY(Attr) attr;
    ARRAY(Scope) scope;
    ARRAY(Output) output;
    Train train;
    Ranks ranks;
    ARRAY(DataStmt) data; /* none where the model is not trained */
    ARRAY(struct Call *)
    staged;                       /* of the step being lowered: running_stats, to be committed with
                                     the updates */
    struct NameTable *names;      /* of inputs, parameters, consts and state */
    struct NameTable *node_names; /* of the nodes of the program being lowered */
    ProgramKind program;          /* that nodes are being added to */
    uint32_t times[PROGRAMS];     /* how often a call runs each, in micro-batches; 0: once */
    bool chunked_loss;            /* losses of products run in chunks of rows: see chunked_loss.c */
    uint8_t precision;            /* of narrow ops: F32, F16 or BF16 */
    ARRAY(WideLayers) wide;
    Id loss_scale; /* the state that gradients are multiplied with; NONE */
    /* Whether the target has the kernel of a row with OP_HALF for f16 and bf16; NULL: it has all.
     */
    bool (*has_half)(const OpRow *op);
    bool training; /* they are the training step's: dropout drops, batchnorm takes statistics */
} Graph;

/* The data statement of this name; NULL: not declared. */
const DataStmt *data_find(const Graph *g, const char *name);

/* Nodes, outputs and operands of a graph, in short. */
static inline Use node_use(const Graph *g, const Node *n, Id i)
{
    return g->use.at[n->use + i];
}

static inline Id node_value(const Node *n, Id i)
{
    return n->value + i;
}

/* Two facts. Whether it is a new version of another value, in the bytes of that; and whether what
 * is in its bytes is there before a program runs and after it. An output that micro-batches fill
 * has versions but is not persistent. */
bool value_is_version(const Graph *g, Id value);
bool value_is_persistent(const Graph *g, Id value);
Id value_first(const Graph *g, Id value); /* the version that it began as, or itself */

/* The operand that an output is the next version of, or NONE. */
Id node_updates(const Graph *g, const Node *node, Id output);

/* Whether the step can fail in it. What the backward pass looks up, the forward pass has before. */
bool node_may_fail(const Node *node);
/* Whether it changes what is saved, so that a step which fails must not have reached it. */
bool node_commits(const Graph *g, const Node *node);
/* The output of the whole batch that the node puts a micro-batch's part into, or NONE. */
Id node_collects(const Graph *g, const Node *node);

static inline uint32_t program_times(const Graph *g, int program)
{
    return g->times[program] ? g->times[program] : 1;
}

/* ---- Views and shapes (view.c) -------------------------------------------------------------- */

View value_view(const Value *value);         /* the whole value, without a view */
View use_view(const Graph *g, Use use);      /* of an operand, whether or not it has one */
Use use_of(Id value);                        /* the whole value */
Use use_make(Graph *g, Id value, View view); /* keeps no view where it is the plain one */
bool view_is_plain(const View *view, const Value *value);
bool view_is_dense(const View *view); /* elements are contiguous in row-major order */
int64_t view_count(const View *view); /* elements; they fit: see dims_check */
int64_t value_count(const Value *value);
uint64_t value_bytes(const Value *value);
char *shape_text(Arena *arena, Dtype dtype, int rank, const int64_t *dim); /* f32[8, 1024] */
char *use_text(const Graph *g, Use use);                                   /* its shape */
/* Dims are positive and the bytes fit in 62 bits; otherwise says why in *error. */
bool dims_check(Dtype dtype, int rank, const int64_t *dim, const char **error);
/* NumPy's broadcasting: dims of the result into out; -1 where they do not agree. */
int dims_broadcast(int rank_a, const int64_t *a, int rank_b, const int64_t *b, int64_t *out);
View view_broadcast(const View *view, int rank, const int64_t *dim); /* strides of 0 */
/* The same elements under other dims, without a copy; false where the strides forbid it. */
bool view_reshape(const View *view, int rank, const int64_t *dim, View *out);

/* ---- The op's row --------------------------------------------------------------------------- */

typedef enum { ARG_TENSOR, ARG_INT, ARG_INTS, ARG_FLOAT, ARG_BOOL, ARG_WORD, ARG_STRING } ArgKind;

enum {
    ARG_OPTIONAL = 1, /* a tensor that may be left out */
    ARG_PARAM = 2,    /* a tensor that the row's `params` makes where it is left out */
    ARG_VARIADIC = 4, /* any number of tensors, the only ARG_TENSOR of its row */
    ARG_FRONT = 8,    /* a setting the kernel does not get: it only shapes parameters or the view */
    ARG_HIDDEN = 16,  /* a setting that only the row's own rules fill in, for the kernel */
    ARG_BATCH = 32,   /* a setting that follows the size of the batch, as the kernel wants it */
    ARG_TRANSPOSED = 64, /* of `foreign`: the last two axes are swapped there */
    ARG_FRACTION = 128,  /* ARG_INTS: or one number with a fraction, which is no list then */
};

typedef struct {
    const char *name;
    uint8_t kind;
    uint8_t flags;
    uint8_t count;        /* ARG_INTS: length of the kernel's array; fewer numbers that divide it
                             repeat: pad = 1 means [1, 1, 1, 1], pad = [1, 2] means [1, 2, 1, 2] */
    const char *fallback; /* as the user would write it; NULL: must be given (settings) */
    const char *words;    /* "same valid": what a word may be; ARG_INTS may have words too.
                             On a tensor of an elementwise op: the one dtype it has, apart from
                             the others (the condition of `where`) */
    const char *help;     /* for the reference: a few words */
    const char *foreign;  /* ARG_PARAM: what PyTorch's layer calls it. Words in the order of the
                             ways it is written there, which are the same for all arguments of a
                             row; in_proj_weight[1/3]: the second third along the first axis */
} Arg;

enum {
    OP_ELEMENTWISE = 1, /* one C expression, see `expr`; chains fuse */
    OP_RANDOM = 2,    /* draws numbers: keyed by its name, so that running it again repeats them */
    OP_EFFECT = 4,    /* must run exactly once in its program (updates, running statistics) */
    OP_HIDDEN = 8,    /* no name in the language: made by other rows */
    OP_TO_BOOL = 16,  /* elementwise: the result is bool whatever the operands are */
    OP_FLOAT = 32,    /* elementwise: integer operands become f32 */
    OP_NUMBERS = 64,  /* elementwise: not for bool operands */
    OP_LOGICAL = 128, /* elementwise: for bool operands only */
    OP_INTEGERS = 1 << 17, /* elementwise: for integer operands only */
    OP_WEIGHS = 512,       /* elementwise: weighs each sample by its share in the mean of the batch.
                              Samples stand on axis 0; summed over them it is a share of the loss */
    OP_OPTIMIZER = 256,    /* updates a parameter: operands w, g, scale, then its state */
    OP_LOOKS_UP = 2048,    /* its kernel fails on an index outside its table */
    OP_JOINS = 4096,   /* puts its operands side by side along `axis`: each may be written straight
                          into its window of the result, and then there is nothing to do */
    OP_PRODUCT = 8192, /* the matrix product of its two operands */
    OP_STORED = 32768, /* also for dtypes that are only stored */
    OP_HALF = 1 << 19, /* its kernel takes f16 and bf16 in all reals that are no `statistics`, and
                          makes them in all that are not `wide_out`; the others see f32 alone */
    OP_FLAT = 65536,   /* its kernel takes operands for lists of numbers: dims do not matter */
    OP_CONVERTS = 1 << 21, /* elementwise: the same numbers, as kernels take them. The backward pass
                              converts again, so that what is kept is what they were made of */
    OP_AGAIN = 1 << 28,   /* its derivative keeps its operands anyway, and it is quick: the backward
                             pass computes result 0 again rather than keep that too */
    OP_HOST = 1 << 22,    /* its kernel needs what an emitted program keeps on the host: it is in
                             no table of kernels for a device */
    OP_CHUNKED = 16384,   /* a loss of a product, in chunks of rows */
    OP_CLASSES = 1 << 27, /* operand 1 has a class for each row of operand 0, below its last dim */
    OP_LARGEST = 1 << 24, /* takes the first of the largest of each window */
    OP_RECTIFIES = 1 << 25, /* elementwise: what is positive, or else 0 with a derivative of 0 */
    OP_BEST = 1 << 20,    /* the index of the largest along its axes: a chunked loss has that of its
                             rows as its third result */
    OP_DECIDES = 1 << 26, /* whether the step counts: whoever commits reads it and does nothing else
                             where it does not */
    OP_EPILOGUE = 1024,   /* its kernel runs elementwise ops as its epilogue, where the
                         target has such kernels: gp_call.epilogue */
    OP_ASIDE = 1 << 18, /* it can keep what it makes aside until such ops have run: the last of them
                           may write over what it reads, the sum of a gradient. Without OP_EPILOGUE
                           it takes no other epilogue */
};

/* A call of an op with its arguments bound, before there is a node. */
typedef struct Call {
    const OpRow *op;
    Span span;
    Id scope;
    const char *name;   /* see Node.name */
    const char *stream; /* NULL: the node's name */
    uint8_t phase;
    ARRAY(Use) use;      /* one for each ARG_TENSOR of the row, or all of a variadic one */
    Span *use_span;      /* of each operand, where the source has it; else NULL */
    Attr attr[MAX_ARGS]; /* one for each Arg; unused for tensors */
    struct {             /* left by the shape rule */
        uint8_t dtype, rank;
        int64_t dim[MAX_RANK];
    } out[MAX_OUTPUTS];
    int outs;
    bool wide;         /* computes in f32, as what it stands for did */
    bool wide_result;  /* of narrow operands: f32. Gradients of f32 operands; see precision.c */
    bool alike;        /* staged: what it moves by is the same on all ranks */
    ARRAY(Use) result; /* left by call_finish: what the call evaluates to */
} Call;

/* A gradient being built; see frontend/gradients.c. */
typedef struct {
    Graph *g;
    Id node;
    Call at;            /* to begin calls from: span, scope and phase of the node's gradient */
    const bool *wanted; /* by operand: somebody needs its gradient */
    const bool *needs;  /* by value: the same of those that the forward pass made */
    const Use *dout;    /* by output: its gradient; value NONE where nothing flows back */
    Use *din;           /* by operand, to be filled: dims as the operand's (its view's), or 1
                           where it is broadcast and the row has summed already */
    struct Flow *flow;  /* by value: for grad_flow */
    const bool *exact;  /* by value: read as it is, not only rounded; for grad_result */
} Grad;

/* How the samples of a batch pass through an op: the axis of output `output` on which the samples
 * stand along `axis` of operand `operand`, each computed by itself and in the same order.
 * Or one of these. */
enum {
    BATCH_MIXED = -1,  /* the op computes across that axis */
    BATCH_ONE = -2,    /* it makes one value of everything along it */
    BATCH_SUMMED = -3, /* so, and the value is their sum */
    BATCH_OWN = -4,    /* one value of each micro-batch is what the model asks for */
};
typedef int BatchRule(const Graph *g, const Node *node, int operand, int axis, int output);

/* What its flops are counted at; elementwise ops run at the rate of loops. */
enum { RATE_PRODUCT, RATE_CONVOLUTION };

/* What f16 and bf16 are to an op; LANGUAGE.md says it to the user. */
enum {
    PRECISION_FOLLOW, /* the result is as its operands are; parameters and literals go along */
    PRECISION_NARROW, /* so, and where a precision is asked for, both are of that */
    PRECISION_WIDE,   /* the result is f32 */
};

/* How an op takes part in a sum over ranks: what it begins, or that it waits. */
enum {
    RANKS_PART = 1,  /* each rank's part goes to the owner, who adds them */
    RANKS_WHOLE = 2, /* what the owner has goes to all others */
    RANKS_END = 4,   /* waits for what began first of what has not ended */
    RANKS_LAST = 8,  /* all of it in the last micro-batch alone */
    RANKS_ROWS = 16, /* what each has goes to all others, and is waited for at once */
    RANKS_BEGINS = RANKS_PART | RANKS_WHOLE,
};

/* In which operands an op is linear, for losses that are summed up from shares. */
enum { LINEAR_FIRST = 1, LINEAR_SECOND = 2, LINEAR_TOGETHER = 4 };

struct OpRow {
    const char *name;
    const char *kernel; /* file in runtime/c and runtime/cuda; NULL: the row's name */
    const char *expr;   /* elementwise: C over operands a b c d e and the settings' names */
    const char *help;   /* one line for the reference; the shape rule in words */
    Arg args[MAX_ARGS]; /* ends at the first without a name */
    /* Makes the ARG_PARAM operands that were not given: call_param. */
    bool (*params)(Graph *g, Call *c);
    /* Either: expands to other ops or to views of its operands. Leaves c->result. */
    bool (*build)(Graph *g, Call *c);
    /* Or: checks operands and settings, resolves settings, declares outputs: call_output.
     * Elementwise rows need none; if one has it, it runs after dtypes and dims have been made
     * equal and declares the one output (cast). */
    bool (*shape)(Graph *g, Call *c);
    /* Builds the gradients of the operands that want one, from those of the outputs. */
    bool (*grad)(Grad *grad);
    /* Elementwise: the gradient of operand i as an expression over the operands a b c d, the
     * result y, the settings, and the gradient of the result: dy. It keeps alive what it names,
     * no more. "dy" alone costs nothing; "0": nothing flows back; NULL: there is no derivative.
     * The registry makes a hidden row NAME_da, NAME_db, ... of each. */
    const char *dexpr[4];
    const char *reads; /* of such a row: what its operands are, in these letters; g is dy */
    /* Result 0 by elementwise ops from the operands and the other results, with the same bits:
     * split_norms.c. */
    Use (*apply)(Graph *g, const Call *from, Id node);
    double (*flops)(const Graph *g, Id node); /* NULL: one for each element of output 0 */
    uint32_t flags;
    uint8_t rate;     /* RATE_PRODUCT, ...: which of a machine's rates its flops run at */
    uint8_t ranks;    /* RANKS_PART, ...: what goes over the link to other ranks */
    uint32_t strided; /* bit i: operand i may have any view; elementwise rows: all may */
    uint32_t apart; /* bit i: samples (axis 0) of operand i may lie apart, each contiguous: as in a
                       window along axis 1 */
    uint32_t inplace; /* bit i: output 0 may take the bytes of operand i, if it dies here */
    uint8_t updates[MAX_OUTPUTS]; /* outputs are new versions of operands updates[i] - 1, in their
                                     bytes; of those that are given: see node_updates */
    uint32_t out_strided;         /* bit i: output i may be a window of a larger buffer (concat) */
    BatchRule *batch;             /* the build stops at a row that has neither this nor `build` */
    const char *batch_help;       /* where the rule forbids micro-batches: what to write instead */
    uint8_t linear;               /* LINEAR_FIRST, ... */
    uint8_t addend; /* an operand that is added to the result, one number for each channel of axis
                       1; 0: none is */
    uint8_t precision;          /* PRECISION_FOLLOW, ... */
    uint32_t statistics;        /* bit i: operand i is f32 whatever the others are */
    uint32_t wide_out;          /* bit i: output i is f32 whatever the operands are */
    const char *as_loss;        /* the op that replaces it where its result is the loss */
    const char *as_metric;      /* the same of a metric: it leaves out samples that do not count */
    const char *chunked;        /* a loss over rows: the op that takes a product's operands in
                                   place of its result, OP_CHUNKED */
    const char *elementwise;    /* the op that some mean by this one's name: maximum, for max */
    const char *foreign_unused; /* what PyTorch's layer stores and this one has no use for */
};
enum { ALL_OPERANDS = -1 };

/* Rows are found by name; the build makes the table from the files in ops/. */
const OpRow *op_find(const char *name);
const OpRow *op_at(size_t i);                  /* in order of name; NULL past the end */
int op_arg(const OpRow *op, const char *name); /* its place in args, or -1 */
bool op_takes(const OpRow *op, Dtype dtype);   /* as an operand */
bool op_takes_view(const OpRow *op, Id operand, const View *view); /* where its kernel reads it */
bool op_has_kernel(const OpRow *op); /* rather than an expression or other ops */
bool arg_is_setting(const Arg *arg); /* that the kernel or the expression gets */

/* ---- Building: for lowering and for the rows' own functions (graph.c, call.c) ---------------- */

Graph *graph_new(Arena *arena, Diag *diag, const Source *source);
Id graph_value(Graph *g, ValueKind kind, const char *name, Dtype dtype, int rank,
               const int64_t *dim, Span span);
Use graph_literal(Graph *g, double number, Dtype dtype);
Id graph_find(const Graph *g, const char *name); /* an input, parameter, const or state; NONE */
/* Nodes added from now on belong to this program; their names start afresh. */
void graph_program(Graph *g, ProgramKind program, bool training);

/* A call of `op` with the span, scope, phase and name of `from`, with every setting at its default.
 */
Call call_begin(Graph *g, const Call *from, const char *op);
Call call_at(const Graph *g, Id node); /* to begin calls from, in gradients */
void call_use(Graph *g, Call *c, Use use);
int word_place(const char *words, const char *word); /* -1 where it is none of them */
void call_set(Call *c, const char *setting, double number);
void call_set_list(Call *c, const char *setting, int count, const int64_t *list);
/* Makes parameters, checks, broadcasts, copies operands that may not be strided, and adds the
 * node. On failure the message is out and each result has the value NONE. */
bool call_finish(Graph *g, Call *c);
/* All of it for an op whose settings are at their default; the first result. */
Use call_op(Graph *g, const Call *from, const char *op, int count, const Use *operands);

/* How wide a call computes and stores (precision.c). What is asked of narrow ops, where no pattern
 * keeps this layer wide; and the dtype that its real results have: F32, F16 or BF16. */
Dtype precision_asked(const Graph *g, const Call *c);
Dtype precision_of(const Graph *g, const Call *c);
/* Whether the target's kernel takes 16 bits. */
bool precision_takes_half(const Graph *g, const OpRow *op);
/* Brings operands of a kernel to what it takes for such results. */
bool precision_operands(Graph *g, Call *c, Dtype dtype);
/* Declares the results so, after the shape rule. */
void precision_outputs(const Graph *g, Call *c, Dtype dtype);
/* Rounds what a kernel that only knows f32 has made. */
bool precision_results(Graph *g, Call *c, Dtype dtype);
/* An operand in another dtype of reals, or itself. */
Use precision_cast(Graph *g, const Call *from, Use use, Dtype dtype);

/* For the rows' functions. */
Use call_operand(const Call *c, int i); /* value NONE where not given */
bool call_has(const Call *c, int i);    /* operand i was given */
/* What it computes operand i in: of f16 and bf16 that is f32, but for ops that only move it. */
const Attr *call_attr(const Call *c, const char *setting);
int64_t call_int(const Call *c, const char *setting);
const Attr *node_attr(const Graph *g, Id node, const char *setting);
View call_view(const Graph *g, const Call *c, int i); /* dims and strides of operand i */
Dtype call_dtype(const Graph *g, const Call *c, int i);
bool call_error(Graph *g, const Call *c, const char *format, ...)
    __attribute__((format(printf, 3, 4))); /* "op: text" at the call; false */
/* At operand i, with a note where that was declared. */
bool call_error_at(Graph *g, const Call *c, int i, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
bool call_output(Graph *g, Call *c, Dtype dtype, int rank, const int64_t *dim);
void call_result(Graph *g, Call *c, Use use); /* in `build` */
/* An axis setting counted from 0; a negative one counts from the end. False with a message. */
bool call_axis(Graph *g, const Call *c, const char *setting, int rank, int *axis);
/* Operand `arg` becomes a new parameter of these dims: NAME.arg, or the one that has the name
 * already when the same call is lowered again. */
bool call_param(Graph *g, Call *c, const char *arg, Init init, int rank, const int64_t *dim);
/* The same for running statistics and the like: VALUE_STATE. */
bool call_state(Graph *g, Call *c, const char *arg, Init init, Dtype dtype, int rank,
                const int64_t *dim);
/* For gradients: operands and results of the node, and calls of ops on them. */
Use grad_operand(const Grad *grad, int i);
Use grad_result(const Grad *grad, int i);
/* What the next ops make is f32 where operand i is, as the gradient of a parameter. */
void grad_wide(Grad *grad, int i);
Use grad_op(Grad *grad, const char *op, int count, const Use *operands);
/* For an op that adds to a sum in place. What has come of the gradient of the value that
 * operand i is, or is a view of, in the dims of that value; value NONE: nothing. The row leaves the
 * sum with its own share in place of din[i]. Over micro-batches the sum of a parameter's gradient
 * is kept: new versions of it are made, and the first op begins it in the first micro-batch. */
Use grad_flow(Grad *grad, int i);
void grad_set_flow(Grad *grad, int i, Use sum);
bool grad_is_kept(const Graph *g, Use sum);
bool grad_begins(const Graph *g, Use sum);
Init init_xavier(int64_t fan_in, int64_t fan_out); /* uniform */
Init init_he(int64_t fan_in);                      /* normal */
Init init_const(double number);

/* ---- The passes ----------------------------------------------------------------------------- */

typedef struct Ast Ast;

typedef struct {
    const char *name;
    int64_t value;
} Define; /* -D NAME=VALUE; the last of a name counts */

/* What the user gave. It can be lowered as often as asked, each time to a new graph. */
typedef struct Model {
    const Source *source;
    const Ast *ast;
    const Define *define;
    size_t defines;
    bool infer;        /* the forward program alone, also where there is a train statement */
    uint8_t precision; /* of narrow ops, by a Choice: F32, F16 or BF16 */
    bool (*has_half)(const OpRow *op); /* see Graph */
    uint8_t programs; /* of one that trains: forward, eval, step, a bit for each; 0: all of them */
} Model;

/* How data is read ahead of the step: slots, and threads that fill them; 0: as one slot by none. */
typedef struct {
    uint32_t depth, workers;
} Ring;

/* All that is decided of a model before it is planned. */
typedef struct {
    uint32_t micro;    /* micro-batches in a step; 0: as the model says */
    bool chunked_loss; /* losses of products run in chunks of rows: logits are never stored whole */
    bool epilogues;    /* elementwise ops run inside the product before them */
    uint8_t precision; /* of products and what follows them: F32, F16 or BF16 */
    Ring ring;         /* of a model that reads data */
    uint32_t ranks;    /* that divide the batch; 0: one */
    bool as_ranks;     /* one rank does the work of all */
    bool all_at_once;  /* the parts of a sum over ranks arrive together, not two at a time */
    uint8_t shard;     /* of several: Shard */
    uint64_t prepared; /* bytes that what the program prepare makes may take */
} Choice;

bool choice_equals(Choice a, Choice b);
/* The same model with one more definition. */
Model model_define(Arena *arena, const Model *model, const char *name, int64_t value);
bool model_trains(const Model *model);     /* it has a train statement, and that counts */
Dtype model_precision(const Model *model); /* as the train statement has it; F32 */
bool model_reads_data(const Model *model); /* it has a data statement */
bool model_plans(const Model *model, ProgramKind program); /* of those that train */
/* The whole way to a graph that can be planned: lower, train, simplify. NULL where there was an
 * error. */
Graph *model_lower(const Model *model, const Choice *choice, Arena *arena, Diag *diag);
/* The first of it: what train_add goes on with, and the model that it takes. */
Graph *model_lower_first(const Model *model, const Choice *choice, Arena *arena, Diag *diag,
                         Model *part);

/* Reads a file ("-": standard input) of up to `limit` bytes whole; NULL and a message where it
 * cannot. */
enum { SOURCE_LIMIT = 16 << 20 }; /* of a text that somebody wrote */
const Source *source_read(Arena *arena, Diag *diag, const char *path, size_t limit);
/* The texts one after the other, each from a new line; NULL and a message where that is
 * more than `limit`. */
const Source *source_join(Arena *arena, Diag *diag, const Source *const *source, size_t count,
                          size_t limit);
/* Text -> syntax tree; reports every syntax error it can find. NULL where there was one. */
Ast *parse(Arena *arena, Diag *diag, const Source *source);
/* Syntax tree -> graph: blocks and repeats unrolled, names resolved, every value shaped.
 * NULL where there was an error. */
Graph *lower(Arena *arena, Diag *diag, const Model *model);
/* Lowers the model again, onto the same parameters, for the programs that train: eval, and the
 * step in `times` micro-batches (0: as the model says) with its backward pass and its updates. With
 * several, forward and eval run in as many, so that the whole batch is at once nowhere but in
 * inputs and outputs. */
bool train_add(Graph *g, const Model *model, uint32_t times);
/* The model with a rank's part of the batch. False with a message where it cannot be divided. */
bool ranks_divide(const Graph *g, const Model *model, const Choice *choice, Model *part);
/* Before the programs that train: what sums over ranks need. `whole`: the model with the batch of
 * all of them. */
void ranks_begin(Graph *g, const Choice *choice, const Model *whole);
/* A metric of a micro-batch, summed over ranks and micro-batches; where it is kept, it has the
 * name.
 */
Use ranks_metric(Graph *g, const Output *metric, const char *name);
/* What each rank has, in rank order, [ranks, ...]. */
Use ranks_rows(Graph *g, const Call *from, Use part);
/* What the step has staged, of all ranks: until ranks_unstage it stands in the place of gradients,
 * and is summed as they are. False with a message where it cannot be. */
bool ranks_stage(Graph *g, Use *gradient);
void ranks_unstage(Graph *g, Use *gradient);
/* Gradients, by value, become those of all ranks and micro-batches; by `sharded`, a Shard, whole,
 * or this rank's shard in its place or apart. */
void ranks_reduce(Graph *g, Use *gradient, const uint8_t *sharded, size_t values);
/* Whether argument i of an optimizer is state that this call keeps, like the parameter. */
bool optimizer_keeps(const Call *c, int i);
/* The numbers of so many that each of `ranks` owns; 0: they are not divided. And of a parameter of
 * the graph. */
int64_t ranks_cut(int64_t count, int64_t ranks);
int64_t ranks_part(const Graph *g, int64_t count);
/* Parameters of which each rank has updated its shard; then all ranks have all of them. */
void ranks_gather(Graph *g, const Use *updated, size_t count);
/* For the norm of all gradients, what it needs of those that are sharded; value NONE: none is. */
Use ranks_squares(Graph *g, const Use *gradient, const uint8_t *sharded, size_t values);
/* What a node has to do with other ranks, in a micro-batch: RANKS_PART, ...; 0: nothing. */
uint8_t ranks_does(const Graph *g, Id node, bool last);
/* Micro-batches as the train statement has them: accumulate = K, or 1; whether it leaves them open;
 * and whether it says anything of them. */
uint32_t train_stated(const Graph *g);
bool train_is_auto(const Graph *g);
bool train_states(const Graph *g);
/* A product that only a loss over its rows reads is computed in chunks, in the program being
 * lowered: its logits are then never stored whole, and computed once more in the backward pass. */
void chunk_losses(Graph *g);
/* Puts pools of the training program being lowered before the relu that they read: the same bits,
 * and fewer bytes for the backward pass. */
void pools_first(Graph *g);
/* Norms of the training program being lowered whose rows have `apply` leave their statistics, and
 * elementwise ops make their results. Requires the whole of it. False with a message. */
bool norms_split(Graph *g);
/* For these passes. By value: how many operands read it, and outputs where the program makes them.
 */
Id *graph_readers(const Graph *g);
void graph_sort(Graph *g); /* each node that stands after a reader of it goes before that */
void graph_move_added(Graph *g, Id at, Id added); /* nodes from `added` on, moved before `at` */
/* Nodes from added[n] to before added[n + 1] are moved after n, of the first `nodes`. */
void graph_weave(Graph *g, const Id *added, size_t nodes);
void graph_redirect(Graph *g, Id old, Id new); /* whoever reads `old` reads `new` instead */
/* Appends the backward pass of the loss to the program being built, each op by its row. Leaves
 * gradient[value] for each parameter that takes one (value NONE for all others). False with a
 * message where something on the way has no derivative. */
bool gradients(Graph *g, Use loss, Use **gradient);
/* Loss scaling, for f16 (loss_scale.c). The state, where the graph has that precision; the factor
 * of the loss, one number; and the next version of the state, by what a step decided. False with a
 * message. */
bool loss_scale_begin(Graph *g);
Use loss_scale_factor(Graph *g);
bool loss_scale_end(Graph *g, Use good);
/* Appends the optimizer's ops: each parameter becomes its next version; and what the step has
 * staged, so that one which fails changes nothing. False with a message where a parameter would get
 * its next version from both. */
bool updates(Graph *g, const Use *gradient);
/* Removes what no output, loss or effect needs, merges equal nodes; order is kept. */
void simplify(Graph *g);
/* Who computes in f32 reads outputs that are f32, so that nothing narrow is kept beside them.
 * Requires a simplified graph. */
void wide_reads(Graph *g);
/* What micro-batches write straight into their window of an output of the whole batch. Requires a
 * simplified graph. */
void output_windows(Graph *g);
/* Sums and products with numbers for each channel that are made of parameters alone, as those of
 * batchnorm, become one product and one sum. Requires a simplified graph of inference, and leaves
 * nodes that nobody needs any more. */
void join_affine(Graph *g);
/* By value: whether it is a parameter that no program changes, or made of such alone. */
bool *graph_constants(const Graph *g);
/* Puts what hangs on parameters alone into the program prepare, as far as its results take no more
 * than so many bytes. Requires a simplified graph of inference. */
void prepare(Graph *g, uint64_t bytes);
uint64_t prepared_bytes(const Graph *g); /* that its results take */
/* The graph as stable text, for -d. */
void graph_dump(const Graph *g, FILE *to);
/* The table of ops in LANGUAGE.md, from the rows. */
void ops_reference(FILE *to);

#endif
