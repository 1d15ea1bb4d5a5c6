/* Lowering, shared by its files: the values of expressions, frames of names, names of layers. */
#ifndef GPLAN_LOWER_H
#define GPLAN_LOWER_H

#include "frontend/ast.h"
#include "frontend/base/names.h"

/* Fuzzers are built with less, so that reaching a limit takes a moment. */
#ifdef GPLAN_SMALL_LIMITS
enum { LIMITS_PART = 250 };
#else
enum { LIMITS_PART = 1 };
#endif

enum {
    MAX_NODES = 250000 / LIMITS_PART,              /* of the graph */
    MAX_REPEAT_ITERATIONS = 1000000 / LIMITS_PART, /* of one repeat */
    MAX_STEPS = 10000000 / LIMITS_PART, /* expressions and statements lowered: ends what makes no
                                           nodes */
    MAX_CALLS = 64,                     /* of blocks within each other */
    MAX_LEVELS = 1000,                  /* of expressions and block calls within each other */
    MAX_LIST = 1000000,                 /* numbers in a literal list */
    FEW_BINDINGS = 16,                  /* of a frame that is searched without a table */
};

typedef enum {
    VAL_POISON, /* went wrong, and the message is out: what it touches is silent */
    VAL_INT,    /* integer */
    VAL_FLOAT,  /* number */
    VAL_BOOL,   /* integer */
    VAL_STRING, /* text */
    VAL_WORD,   /* text: a word of some op's setting, on its way there */
    VAL_LIST,   /* item */
    VAL_TENSOR, /* use */
    VAL_TUPLE,  /* item: the value of split or of a block with several results */
} ValKind;

typedef struct Val Val;
struct Val {
    ValKind kind;
    uint32_t count; /* of item */
    union {
        int64_t integer;
        double number;
        const char *text;
        Use use;
        const Val *item;
    };
};

typedef enum {
    BOUND_VALUE,
    BOUND_ARGUMENT,
    BOUND_INPUT,
    BOUND_PARAM,
    BOUND_CONST,
    BOUND_DIM,
    BOUND_INDEX
} BoundKind;

typedef struct Binding Binding;
struct Binding {
    const char *name; /* interned */
    Val val;
    BoundKind kind;
    Span span;
    uint32_t time; /* when it was bound: a block sees what is older than itself */
    const Binding *older;
};

typedef struct Frame Frame;

typedef struct {
    const Stmt *stmt;
    Frame *frame; /* where it was declared */
    uint32_t time;
    const char *owner; /* a shared one: the path of its parameters, once there was a call */
} Block;

/* How often a name was given to a layer of a scope. */
typedef struct {
    const char *name;
    uint32_t count;
} Counter;

/* The names within one call of a block, one iteration of a repeat, or the model. */
struct Frame {
    Frame *parent;  /* of a block: where it was declared */
    bool iteration; /* of a repeat: rebinds the names around it */
    uint32_t time;  /* of a block: what was bound later in the parent is not seen */
    ARRAY(Binding) binding;
    NameTable *table; /* name -> place in binding, where there are many */
    ARRAY(Block) block;
    ARRAY(Binding) lost; /* bound in an iteration of a repeat that is over */
    const Stmt *stmt;    /* block or repeat; NULL for the model */
    Id scope;
    int depth;     /* calls of blocks around */
    int64_t index; /* of an iteration: the value of its index */

    const char *path;   /* of the layers made here */
    const char *suffix; /* iterations of the repeats around, ".2" */
    bool again;         /* within a shared block: its names may come up again */
    ARRAY(Counter) counter;
    NameTable *counted; /* name -> place in counter, where there are many */
    Frame *home;        /* the frame of the block or model: path and counters are there */
    Val result;         /* of the block */
};

typedef struct {
    Graph *g;
    Arena *arena;
    Diag *diag;
    const Ast *ast;
    const Model *from; /* what is lowered */
    const Stmt *model;
    size_t earlier;   /* values that were there before: of other lowerings */
    NameTable *spelt; /* names that spell made -> place in spelling */
    ARRAY(const char *) spelling;
    NameTable *used; /* names of layers -> place in used_span */
    ARRAY(Span) used_span;
    NameTable *outputs; /* names of outputs and metrics -> their places in output_span */
    ARRAY(Span) output_span;
    ARRAY(bool) shown;   /* by value: an output has its bytes */
    Span metric;         /* the first; line 0: none */
    uint32_t time;       /* counts bindings */
    uint32_t block_time; /* of the block declared last */
    uint32_t steps;
    int levels;
    bool stop; /* too much went wrong, or too large */
} Lower;

/* What an expression is bound to, for the name of its outermost op. */
typedef struct {
    const char *name;
    bool own; /* bound nowhere else in its block */
} Bound;

/* Frames (lower_frame.c). */
Frame *frame_new(Lower *l, Frame *parent, const Stmt *stmt, bool iteration);
const Binding *frame_find(const Frame *frame, const char *name);
const Binding *frame_find_here(const Frame *frame, const char *name); /* in its block or model */
bool frame_bind(Lower *l, Frame *frame, Name name, BoundKind kind, Val val);
void frame_end_iteration(Lower *l, Frame *frame);
Block *frame_block(const Frame *frame, const char *name);
bool unknown_name(Lower *l, const Frame *frame, const char *name, Span span);
bool unknown_op(Lower *l, const Frame *frame, const char *name, Span span);

/* Names of layers (lower_frame.c): path.name, or path.op.2 where nothing names it. */
const char *layer_name(Lower *l, Frame *frame, const char *op, bool keyed, const Bound *bound,
                       const char *given, Span span);
const char *block_path(Lower *l, Frame *frame, const char *block, const Bound *bound,
                       const char *given, Span span);
/* A name with the index of a repeat put in: "h.{i}.w", "{2*i+1}"; itself where it has no braces.
 * NULL with a message. */
const char *spell(Lower *l, Frame *frame, const char *text, Span span);
bool is_spelt(const char *text); /* it has such braces */
const char *param_name(Lower *l, Frame *frame, const char *name, Span span);
bool reserve_name(Lower *l, const char *name, Span span);

/* An error with the calls that led there; false. */
bool lower_error(Lower *l, const Frame *frame, Span span, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void explain_iteration(Lower *l, const Frame *frame); /* a note, in a repeat */
/* One more step; false when it is time to give up. */
bool lower_step(Lower *l, Span span);

/* Expressions (lower_expr.c). */
extern const Val POISON;
Val eval(Lower *l, Frame *frame, const Expr *expr, const Bound *bound);
Val eval_call(Lower *l, Frame *frame, const Expr *expr, const Bound *bound); /* lower_call.c */
Val eval_slice(Lower *l, Frame *frame, const Expr *expr);                    /* lower_slice.c */
bool eval_int(Lower *l, Frame *frame, const Expr *expr, const char *what, int64_t *value);
Val val_int(int64_t integer);
Val val_float(double number);
Val val_bool(bool truth);
Val val_tensor(Use use);
bool val_is_number(Val val);
double val_number(Val val);
const char *val_text(Lower *l, Val val); /* what it is, for messages */
Use literal_of(Lower *l, Val number);
/* Folds an op over numbers; false where it is no op of numbers. */
bool fold(Lower *l, Frame *frame, const Expr *expr, const char *op, int count, const Val *val,
          Val *result);

/* Calls (lower_call.c, lower_bind.c). */
typedef struct {
    Val val;
    Span span;
    Name name; /* text NULL: by position */
} Given;       /* an argument of a call, evaluated */

/* Operands and settings of a row from the arguments of a call. */
bool bind_arguments(Lower *l, Frame *frame, Call *c, const Given *given, size_t count);
bool word_known(const char *word); /* to any setting of any row */
Val call_operator(Lower *l, Frame *frame, const Expr *expr, const char *op, int count,
                  const Val *operands, const Span *spans, const Bound *bound);

/* Settings of statements (lower_settings.c). */
typedef struct {
    const char *name;
    uint8_t kind;      /* ARG_FLOAT, ARG_INT, ARG_BOOL, ARG_WORD */
    double low, high;  /* low <= value < high */
    const char *words; /* that are allowed instead */
} Setting;
#define SETTING_ANY 1e300 /* no end of a range */
/* The value of a setting; false with a message. */
bool setting_eval(Lower *l, Frame *frame, const Setting *setting, const Expr *expr, Attr *attr);
/* "WHAT NAME", with what was meant and what there is; false. */
bool setting_unknown(Lower *l, Name name, const char *what, const char *names);
size_t split_words(Lower *l, const char *words, const char **word, size_t most);

/* Statements (lower.c, lower_declare.c, lower_train.c, lower_data.c). */
void lower_body(Lower *l, Frame *frame, const Stmts *body);
void lower_input(Lower *l, Frame *frame, const Stmt *stmt);
void lower_param(Lower *l, Frame *frame, const Stmt *stmt);
void lower_const(Lower *l, Frame *frame, const Stmt *stmt);
void lower_train(Lower *l, Frame *frame, const Stmt *stmt);
void lower_metric(Lower *l, Frame *frame, const Stmt *stmt);
void lower_precision(Lower *l); /* of layers by their names, before all others */
void check_precision(Lower *l); /* once every layer stands */
void lower_data(Lower *l, Frame *frame, const Stmt *stmt);
void check_data(Lower *l); /* once every statement is lowered */
/* The name of an output or metric, which no other and no input has; false with a message. */
/* What callers see is f32 whatever the precision: they have one header for all of them. */
Use wide_use(Lower *l, const Stmt *stmt, Use use);
bool claim_output(Lower *l, Frame *frame, const Stmt *stmt);
void lower_groups(Lower *l); /* once every parameter is declared */

/* The model statement alone, for whoever lowers the others one by one with lower_body (onnx/). NULL
 * where it is wrong. */
Lower *lower_begin(Graph *g, const Model *model, Frame **frame);
/* Lowers the model into a graph that may hold it already for another program: inputs and
 * parameters are found again by their names. */
bool lower_into(Graph *g, const Model *model);
/* The same for training: a loss that is a plain mean becomes a sum of shares. */
bool lower_loss_shared(Graph *g, const Model *model);
/* Whether the program at hand can run in micro-batches; the graph holds it for one of them, from
 * node `first` on. So many of them run here, the others on other ranks: where there are several, of
 * eval's outputs those are left that can be collected from them. */
bool samples_check(Graph *g, const Model *whole, uint32_t times, uint32_t here, size_t first);
/* Lowers the forward program once more, for one micro-batch, and has its outputs collected to those
 * of the whole batch. False where the samples are not independent: all is as it was then. */
bool samples_forward(Graph *g, const Model *whole, const Model *micro, uint32_t times);

/* How a row is called: conv2d(x, channels, kernel, [w], [b], stride = 1) (reference.c). */
const char *op_signature(Arena *arena, const OpRow *op);

#endif
