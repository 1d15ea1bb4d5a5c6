/* What the files of codegen share. */
#ifndef GPLAN_CODEGEN_INTERNAL_H
#define GPLAN_CODEGEN_INTERNAL_H

#include "codegen/codegen.h"
#include "frontend/base/names.h"
#include "frontend/base/size.h"
#include "runtime/runtime.h"

/* ---- Text that grows (text.c) --------------------------------------------------------------- */

typedef struct {
    Arena *arena;
    char *at; /* ends with a 0 that length does not count */
    size_t length, capacity;
} Out;

Out out_new(Arena *arena);
void out(Out *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
void out_text(Out *o, const char *text, size_t length);
void out_comment(Out *o, const char *text); /* whatever would end or open a comment is changed */
void out_block(Out *o, const char *indent, const char *text); /* a whole comment, wrapped */
void out_string(Out *o, const char *text);                    /* a C string literal */
void out_number(Out *o, double number); /* the shortest text that is the same double */
void out_real(Out *o, double number);   /* a constant that is exact for any gp_real */
typedef ARRAY(const char *) Items;
/* Items between commas, as many on a line as it takes; the others stand `indent` columns from the
 * left, or where that is 0 below the first. */
void out_list(Out *o, const char *head, const Items *item, const char *tail, size_t indent);
/* Items on lines of their own, as many on each as there is room for, with a comma after each. */
void out_items(Out *o, const char *indent, const Items *items, const char *line_end,
               bool last_comma);
/* Breaks the line that begins there, where it is too long for one. */
void out_fold(Out *o, size_t from);
Text out_done(const Out *o);

/* ---- Names that a C compiler takes (names.c) ------------------------------------------------ */

typedef struct {
    Arena *arena;
    NameTable *taken; /* NULL: nothing yet */
    bool macros;      /* in capitals, and longer than what is claimed: few words clash */
} Names;

/* `wanted` made an identifier that is no keyword, nothing of the C library, and not taken yet;
 * it is taken then. */
const char *name_claim(Names *names, const char *wanted);
const char *name_capitals(Arena *arena, const char *name);

/* ---- What repeats itself -------------------------------------------------------------------- */

/* Items [begin, begin + period * times) are `times` times alike. */
typedef struct {
    Id begin, period, times;
} Repeat;
typedef ARRAY(Repeat) Repeats;

typedef struct {
    const uint64_t *kind; /* by item */
    const Id *group;      /* by item: the layer it is of; NULL: not known */
    Id count;
    Id least; /* items that a repeat must save */
} RepeatItems;
Repeats repeats_find(Arena *arena, const RepeatItems *items); /* repeats.c */

/* TableRows of a table, written together so that equal layers can be macros (rows.c). */
typedef struct {
    Arena *arena;
    const char *macro;  /* what the macros are called, before a number */
    const char *indent; /* of rows; NULL: four blanks */
    Items row;
} TableRows;
#define ROW_NUMBER "\1" /* before a number that may differ between equal rows */
void rows_add(TableRows *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
void rows_write(const TableRows *r, Out *o, const char *head, const char *tail);
/* "4096 + 64 * i" for an i from 0 to `last`. */
const char *even_text(Arena *arena, int64_t first, int64_t step, const char *index, int64_t last);

/* ---- What the caller sees (api.c) ----------------------------------------------------------- */

/* What the caller can run; what a model ran last is in its field `ran`, 1 + one of these. */
typedef enum { RUN_FORWARD, RUN_EVAL, RUN_STEP, RUNS } RunKind;

/* An input, output, parameter, constant or state, in the order of the emitted table. */
typedef struct {
    Id value;
    const char *name;     /* as the model has it */
    const char *accessor; /* inputs and outputs: the function; else NULL */
    const char *count;    /* and its macro */
    const char *bind;     /* where it is the caller's memory: the function that takes it */
    const char *copy;     /* on a device: the function that copies it from or to the host */
    const char *kind;     /* INPUT, OUTPUT, PARAM, STATE */
    const Buffer *buffer;
    Id slot;         /* in external[], or NONE */
    uint64_t offset; /* bytes in the arena, or from the caller's pointer; of an output: where the
                        first run that computes it leaves it */
    View view;
    bool made[RUNS];   /* an output: by which runs */
    uint64_t at[RUNS]; /* and the offset after each */
} ApiTensor;

typedef struct Dialect Dialect;

typedef struct {
    const Plan *plan;
    const EmitOptions *options;
    const TargetRow *target; /* of the options */
    const Dialect *dialect;  /* and what it writes */
    const char *prefix, *capitals;
    ApiTensor *tensor;
    size_t tensors;
    size_t saved_begin, saved_end; /* those that a parameter file holds */
    size_t needed_end;             /* and must hold: after them stands the optimizer's state */
    bool trains;                   /* has a program that steps */
    bool runs[RUNS];               /* functions that there are */
    int64_t batch;                 /* of the batch dimension; 0: none */
    const char **unused;           /* inputs that nothing reads: without bytes */
    size_t unuseds;
    Id *slot; /* by buffer: place in external[] of a root that is the caller's, else NONE */
    Id slots;
    Names names; /* of functions and types in the C file */
} Api;

Api *api_make(const Plan *plan, const EmitOptions *options);

/* ---- Weights as data (embedded.c) ----------------------------------------------------------- */

uint64_t embedded_rows(const Api *api);      /* of the array; 0: there is none */
void embedded_write(const Api *api, Out *o); /* the array, for the end of the file */
/* Constants that the model lists, as a file has them (constants.c). */
const char *constant_bytes(Arena *arena, const Value *value);

/* ---- Where operands lie (access.c) ---------------------------------------------------------- */

typedef enum { AT_ARENA, AT_EXTERNAL, AT_NUMBER, AT_WHOLE_ARENA, AT_NOWHERE } AddressKind;

/* An argument of an emitted call: a place in memory, or a number: the key of random ones, the count
 * of a loop, or nothing: an output that this call need not store. */
typedef struct {
    uint8_t kind;
    Id slot;               /* AT_EXTERNAL */
    uint64_t offset;       /* bytes; AT_NUMBER: the number */
    uint64_t micro_stride; /* bytes from one micro-batch to the next */
    Id value;              /* that lies there; NONE: none, or a number */
    const char *role;      /* of it in the call: the parameter's name; NULL: none */
    bool ring;             /* it lies in a slot: micro_stride is from one to the next */
} Address;

/* Dims and strides of an operand as it lies in its buffer; the offset in elements from the root.
 */
View access_view(const Plan *plan, Use use, Id buffer);
Address access_address(const Api *api, Id buffer, const View *view);
/* The buffer of an operand or result of an occurrence. The operand of a node's use i is its i-th,
 * or stands a little before that: it is looked for from there. */
Id access_buffer(const Plan *plan, const Occurrence *o, Id value, Id i);
/* All operands of a concat, or what is collected of a micro-batch, were written in their place by
 * those who made them. */
bool access_is_done(const Plan *plan, const Occurrence *o);
/* It collects an output from micro-batches: a part of the result is there after each. */
bool access_is_part(const Plan *plan, const Occurrence *o);

/* ---- Names of places (places.c) ------------------------------------------------------------- */

typedef struct {
    const char *name, *address; /* address: an expression */
    bool moves;                 /* with the number of a layer, `i` in the expression: */
    int64_t first, step;        /* byte first + step * i of the arena; step 0: otherwise */
    bool used, written;
    Id next; /* with the same wanted name, in the order they were made; NONE: none */
} Place;

typedef struct {
    Arena *arena;
    ARRAY(Place) place;
    NameTable *known, *taken, *wanted; /* NULL: nothing yet */
} Places;

/* A value's name as a word of C. */
const char *place_word(Arena *arena, const char *name);
/* The name of this address: `wanted`, or with a number where that is another's. */
const char *place_name(Places *p, const char *wanted, Place place);
/* AT(wq(11)): what moves from layer to layer and lies there in this one; NULL: nothing does. */
const char *place_of_layer(Places *p, const char *wanted, uint64_t offset, int64_t layer);
/* Those that are used and not written yet. */
void places_write(Places *p, Out *o);

/* ---- Tables of loops (loop_table.c) --------------------------------------------------------- */

typedef struct {
    const char *name;
    uint64_t *number; /* by iteration */
    bool moves;       /* it is an offset */
} LoopColumn;

typedef struct {
    Id id, times; /* times: iterations, a row each */
    bool many;    /* rows of tensors: those of equal layers are alike */
    ARRAY(LoopColumn) column;
    Places names; /* of columns */
} LoopTable;
typedef ARRAY(LoopTable) LoopTables;

/* The name of the column with these numbers, made where there is none yet; moves: offsets. */
const char *loop_column(LoopTable *t, uint64_t *number, bool moves, const char *wanted);
/* Whether a table has these columns, called as they may be. */
bool loop_table_has(const LoopTable *table, const LoopTable *wanted);
/* What begins the body of a loop that reads the table, which is written and added to `tables`
 * unless one of those has the same rows; down: it passes over the layers from the last one on. */
const char *loop_table_use(LoopTables *tables, const LoopTable *t, bool down, Out *o);

/* ---- Functions and calls -------------------------------------------------------------------- */

typedef struct {
    const char *name;
    const char *text;       /* from the parameters on: what makes it the function it is */
    uint64_t hash;          /* of text */
    const Cluster *cluster; /* the first that calls it */
    int64_t count;          /* elements of a loop; 0: a kernel */
    bool epilogue;          /* what a kernel runs on what it has made */
    const char *table;      /* in the text: of operands that are lists of numbers; NULL: none */
    LoopTable list;         /* and its numbers */
} Function;

typedef struct {
    Id function;
    Id address, addresses; /* emission->address[...] */
    const Occurrence *occurrence;
    uint32_t time;
    Id before; /* one that is not run where it stands: the call that it runs before; else NONE */
} EmitCall;

typedef struct ShapeGroup ShapeGroup; /* shapes.c */

typedef struct {
    Api *api;
    const Dialect *dialect;
    const Plan *plan;
    Arena *arena;
    bool notes;        /* the first pass over the calls, which notes their shapes */
    NameTable *shapes; /* by the text of a function: its group */
    ARRAY(ShapeGroup *) shape_group;
    uint64_t epilogue; /* of the call at hand: the hash of its text */
    ARRAY(Function) function;
    Id *by_hash; /* open addressing; NONE: free */
    size_t slots;
    ARRAY(Address) address;
    ARRAY(EmitCall) call; /* in the order of time but for guests and strays (guests.c) */
    ARRAY(Id) guest;      /* those calls, in the order of time */
    NameTable *stored;    /* "op 1": an output of it that some call stores */
    struct {
        Id call, calls;   /* emission->call[...] */
        Id functions;     /* forward_0, forward_1, ...: left by program_write */
        Id shared;        /* calls that are those of the forward program, which it begins with:
                             left by calls_make */
        const char *loss; /* the place where the program leaves it: likewise */
    } program[PROGRAMS];
    Places places;
    LoopTables list_table; /* of loops over the table of tensors */
    const char *table;     /* of the function at hand: Function.table */
    LoopTable list;
    bool loops_tensors;       /* a loop over the table of tensors was written */
    Id tables;                /* of loops that were written */
    ARRAY(const char *) file; /* of the runtime that are needed, each once */
} Emission;

/* ---- Shapes of kernels' operands (shapes.c) ------------------------------------------------- */

#define SHAPE_NUMBER "\2" /* a number that may become an argument */

/* The numbers of one call. */
typedef struct {
    ARRAY(int64_t) number;
    const char **text; /* what stands in their place */
    int64_t *argument; /* of those that are n1, n2 there */
    size_t arguments;
} CallShape;

/* The number as text, or a mark where a shape is given, which takes it. */
const char *shape_number(Arena *arena, CallShape *shape, int64_t number);
void shapes_note(Emission *e, const char *key, const CallShape *shape);
/* Whether numbers are arguments follows from all calls that were noted under the key. */
void shapes_choose(const Emission *e, const char *key, CallShape *shape);
/* The text with numbers or arguments for marks; next: how many came before. */
const char *shape_fill(Arena *arena, const CallShape *shape, size_t *next, const char *text);

/* A view as kernels see it, without data (target.c). */
gp_tensor tensor_describe(Dtype dtype, const View *view);

/* ---- What a target writes its own way (dialect_c.c, dialect_cuda.c) -------------------------- */

typedef struct Loop Loop; /* loop.h */

struct Dialect {
    const char *file;         /* in codegen/templates */
    const char *kernel;       /* the file of a kernel in the runtime: "c/%s.h" */
    const char *const *words; /* functions of the header beside those of every target, to a NULL */
    const char *const *own;   /* names in its files that no model may have, likewise */
    const char *set, *get;    /* names of functions that copy inputs and outputs; NULL: none */
    bool device;              /* runs are put on a stream, and their results are waited for */
    bool counts;              /* a loop over one axis takes its count as an argument */
    void (*nest)(Loop *l);    /* the body of a loop */
    void (*launch)(const Emission *e, const Function *f, Out *o); /* a loop as a function; NULL:
                                                                     it is one already */
    /* epilogue: what its kernel runs after it, or NULL */
    void (*call)(const Emission *e, const Occurrence *o, const Node *node, const char *epilogue,
                 Out *o_);
};
extern const Dialect dialect_c, dialect_cuda;

/* Writes the function of one occurrence (parameters and body) and its arguments. */
void loop_write(Emission *e, const Occurrence *o, Out *text);   /* elementwise: loop.c */
void kernel_write(Emission *e, const Occurrence *o, Out *text); /* one kernel: kernel.c */
/* Notes which outputs of its op an occurrence stores: before the first is written (kernel.c). */
void kernel_stores(Emission *e, const Occurrence *o);
/* The function that a kernel runs on what it has made, as a setting of the kernel's call; adds what
 * it needs to the parameters of the kernel's own function (loop.c). */
const char *loop_epilogue(Emission *e, const Occurrence *o, Out *parameters, CallShape *shape);
/* The initializer of a gp_tensor, of macros in call.h where it is contiguous. */
const char *tensor_initializer(
    Arena *arena, const char *name, Dtype dtype, const View *view,
    CallShape *shape); /* shape: takes its numbers; NULL: they stand there */
const char *kernel_file(const Emission *e, const OpRow *op);
/* The settings of a kernel as a struct: what opens it (with the op's name), stands before each
 * field, between two, and closes it; lists: whether a list can be written in one piece. */
typedef struct {
    const char *open, *before, *between, *close;
    bool lists;
} KernelSyntax;
void kernel_settings(const Graph *g, const Node *node, const KernelSyntax *syntax, Out *o);
/* The structs gp_NAME_attr that the texts of a program and its kernels name; NULL, NULL: all of
 * them (settings.c). */
void settings_write(Out *o, const char *program, const char *kernels);
/* All functions, in the order of their first call, and before the program what they take. */
void functions_declare(const Emission *e, Out *o);
void functions_write(const Emission *e, Out *o);
/* One of them: its type and name before the text from its parameters on. */
void function_write(const Emission *e, const char *type, const char *name, const char *text,
                    Out *o);
void emission_need(Emission *e, const char *file); /* "c/math.h" */
void emission_address(Emission *e, Address address);
/* The name of a function that kernels run on what they have made: equal ones are shared. */
const char *emission_epilogue(Emission *e, const Cluster *c, const Out *text);

/* Fills functions and calls of a program (calls.c). */
void calls_make(Emission *e);
/* What an op is called in messages: conv2d h (model.g:7). */
const char *emission_label(const Emission *e, const EmitCall *call);
/* Equal where calls differ in where things lie only; not `exact`: or in counts (program.c). */
uint64_t call_kind(const Emission *e, const EmitCall *call, bool exact);
Id call_group(const Emission *e, const EmitCall *call); /* the outermost block it came from */
/* The first run of calls between two that is a loop over the table of tensors; times 0: there is
 * none. And what stands for an argument of it; NULL: no such tensors (tensor_loops.c). */
Repeat tensor_loop_find(const Emission *e, Id begin, Id end);
const char *tensor_loop_argument(const Emission *e, Repeat repeat, Id argument);
/* Takes what keeps equal layers from being a loop out of the way (guests.c). */
enum { LEAST_CALLS_SAVED = 6 }; /* that a loop must save */
void guests_move(Emission *e, Id begin, Id count);
/* The functions that run the calls: lists, and loops over equal runs (program.c). */
void program_write(Emission *e, Out *o);
const char *program_name(ProgramKind program); /* forward, eval, step, update */
/* The functions of each input and output: their counts and declarations in the header, and
 * themselves (accessors.c). */
void accessors_counts(const Api *api, Out *o);
void accessors_declare(const Api *api, Out *o);
void accessors_write(const Api *api, Out *o);
/* TableRows of the tables of templates/tables.c (tables.c). */
void tables_tensors(const Emission *e, Out *o);
/* Whether two states of a parameter are one row, and how the names of both end. */
bool tables_pair(const Emission *e, const char **one, const char **other);
void tables_slots(const Emission *e, Out *o);
void tables_init_lists(const Emission *e, Out *o); /* what rows of init point to */
void tables_init(const Emission *e, Out *o);
void tables_ops(const Emission *e, Out *o);
void tables_results(const Emission *e, Out *o);
void tables_deaths(const Emission *e, Out *o);
bool tables_has_shards(const Api *api); /* each rank has parts of some */
void tables_shards(const Emission *e, Out *o);
void tables_constants(const Emission *e, Out *o);
/* Whether the same bytes die after two calls, and `count` that follow. */
bool deaths_are_equal(const Emission *e, Id one, Id other, Id count);
/* Constants that stand in a file beside the text: which tensors, how many, and the file's name
 * (constants.c). */
bool constant_is_long(const Api *api, size_t tensor);
size_t constants_count(const Api *api);
double constant_number(Dtype dtype, double number); /* as gp_set takes it: f16, bf16 as bits */
const char *constants_name(const Api *api);
/* What `rest` reaches of runtime files, each definition once (inline.c). */
typedef struct {
    const char *system;  /* the includes of the C library */
    const char *types;   /* of the first file */
    const char *kernels; /* of the others, after the settings of kernels */
} Inlined;
Inlined inline_files(const Emission *e, const char *const *file, size_t count, const char *rest);
/* The same of a C program that has no model, but ranks. */
Inlined inline_alone(Arena *arena, const char *const *file, size_t count, const char *rest);
/* Whether that text has a certain file in it. */
bool inline_reaches(Arena *arena, const char *const *file, size_t count, const char *wanted);

/* "forward and eval": the runs that compute an output. */
const char *api_runs(const Api *api, const ApiTensor *t);

/* Data statements (data.c): what a ring takes; their text; the inputs that they fill. */
RingBytes data_ring(const Target *target, const Graph *g, Ring ring);
uint64_t data_work_offset(const Plan *plan, RingBytes bytes); /* in the arena, or on the host */
void data_write(Emission *e, Out *fields, Out *sets);
const char *data_inputs(const Plan *plan);
bool data_reads_images(const Graph *g); /* to evaluate and to predict */

uint64_t key_of(const char *name); /* of random numbers: a hash of a stable name */

#endif
