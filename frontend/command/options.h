/* The command line, as values. */
#ifndef GPLAN_OPTIONS_H
#define GPLAN_OPTIONS_H

#include "frontend/base/size.h"
#include "frontend/onnx/onnx.h"
#include "planner/planner.h"

enum { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

/* What one command learns of a model that another compiled. */
typedef struct {
    const char *libraries; /* for the linker */
} Learned;

/* A word that an option takes is stored as its place in the list that the table has for it. */
enum { PRECISION_AUTO = 4 };
typedef struct {
    const struct Command *command;
    ARRAY(const char *) input; /* paths, or "-": the model and what is appended to it, a problem */
    const char *output;        /* -o; NULL: standard output */
    const char *prefix;        /* of emitted symbols; NULL: the model's name */
    const char *emit;          /* a kind, see --help; NULL: by the extension of output */
    const char *dump;          /* passes whose result to print, as a comma list; NULL */
    uint64_t budget;           /* 0: none */
    const char *limit;         /* --budget of remat: bytes, a share or "min" */
    uint64_t capacity;         /* 0: as small as possible */
    uint64_t seed;             /* of a search */
    uint64_t reserve;          /* taken off the budget */
    uint64_t effort;
    double seconds;
    uint32_t threads;         /* 0: as many as the target has by itself */
    uint32_t target;          /* 1 + its row in the table; 0: by what is written */
    uint32_t depth;           /* levels of blocks that a drawing of the graph opens; 0: all */
    uint32_t accumulate;      /* micro-batches; 0: as the model says */
    uint32_t accumulate_auto; /* 1: as many as the budget asks for */
    uint32_t ranks;           /* that divide the batch; 0: one */
    uint32_t as_ranks;        /* one does the work of so many; 0 */
    uint32_t shard;           /* 1 + a Shard; 0: what the budget asks for */
    uint32_t precision;       /* 1 + a dtype; 0: as the model says; PRECISION_AUTO */
    uint32_t chunked_loss;    /* WHEN_AUTO: where the budget asks for it */
    uint32_t epilogues;  /* elementwise ops inside products; WHEN_AUTO: unless the budget is met
                            better without */
    const char *max;     /* a parameter of the model whose largest value to print; NULL */
    const char *profile; /* a file that --calibrate wrote; NULL */
    bool calibrate;
    bool pareto, min_budget, report, quiet, verbose;
    bool infer, train;    /* what to plan; neither: what the model has */
    const char *programs; /* or these, with commas between them; NULL */
    uint32_t no_recompute, no_prepared, io_external;
    uint32_t params_external; /* 1: the caller's, 2: in the emitted file */
    const char *params_file;  /* then: where they are from */
    uint32_t color;
    ARRAY(Define) define;
    ARRAY(OnnxBind) bind;         /* inputs that are known */
    const char *map;              /* of names to names; NULL */
    bool partial;                 /* a parameter may get nothing */
    bool main;                    /* write the program around the model too */
    Learned *learned;             /* filled in by a compile; NULL: nobody asks */
    const char *keep;             /* a folder for what a run writes; NULL: none of it stays */
    ARRAY(const char *) argument; /* after --, of a command that hands them on */
} Options;

/* The command that the arguments ask for, run; argv[0] is the program. The exit status. */
int command_main(int argc, char **argv);

/* Fills the options or, when the program is done after reading them (--help) or cannot go on
 * (wrong usage: 2), returns the exit status; -1 means go on. argv[0] is not looked at. */
int options_read(Arena *arena, const struct Command *command, int argc, char **argv,
                 Options *options);

/* The programs of a list as bits, by ProgramKind; 0: it has something else. */
uint8_t programs_read(const char *list);

/* The commands; each returns the exit status. */
int compile_main(Arena *arena, const Options *o);
int pack_main(Arena *arena, const Options *o);
int remat_main(Arena *arena, const Options *o);
int verify_main(Arena *arena, const Options *o);
int params_main(Arena *arena, const Options *o);
int weights_main(Arena *arena, const Options *o);
int run_main(Arena *arena, const Options *o);

/* What the files hold together, read for whichever command; false with a message. */
bool model_read(Arena *arena, Diag *diag, const Options *o, const char *const *path, size_t count,
                Model *model, OnnxImport **import);

/* ---- The tables (table.c), for what is printed of them (manual.c) ---------------------------- */

typedef enum {
    OPTION_FLAG,    /* bool */
    OPTION_TEXT,    /* const char * */
    OPTION_FILE,    /* const char *: completed as the name of a file */
    OPTION_WORD,    /* uint32_t: one of the words */
    OPTION_COUNT,   /* uint32_t, from 1 to `most` */
    OPTION_LARGE,   /* uint64_t, from 1; 1e9 too */
    OPTION_SIZE,    /* uint64_t: 8G */
    OPTION_SECONDS, /* double */
    OPTION_DEFINE,  /* one more of an array */
    OPTION_BIND,    /* likewise: NAME=FILE */
    OPTION_SHOW,    /* prints something and ends */
} OptionKind;

enum {
    COMPILE = 1,
    PACK = 2,
    REMAT = 4,
    VERIFY = 8,
    PARAMS = 16,
    WEIGHTS = 32,
    RUN = 64,
    ALL = 127
};

typedef struct Command {
    const char *name;      /* "" for the one that has none: gplan MODEL */
    const char *title;     /* gplan pack: that messages begin with */
    const char *input;     /* what it reads */
    const char *arguments; /* that stand before the options, as usage shows them */
    const char *summary;   /* a line */
    const char *about;     /* more, in lines; those that begin with four spaces are to be typed or
                              printed as they are. NULL: nothing */
    unsigned bit;
    size_t most; /* inputs that it takes; at least one */
    int (*run)(Arena *arena, const Options *o);
    const char *rest; /* after --, as usage shows it: arguments of what it runs. NULL: inputs */
} Command;

extern const Command command_table[]; /* the first is the one without a name */
extern const size_t command_count;

typedef struct {
    unsigned commands;                  /* that take it */
    char letter;                        /* 0: none */
    const char *name, *argument, *help; /* no help: for the build alone */
    OptionKind kind;
    size_t field;              /* of Options */
    const char *words;         /* that it takes, with spaces between them */
    const char *(*list)(void); /* or the function that knows them */
    size_t word_field;         /* where a count may be a word as well: the field of that; where a
                                  word has a value, embedded=FILE: the field of the value */
    uint32_t most;
    bool positive; /* a size that may not be 0 */
    bool zero;     /* a number that may be 0 */
    void (*show)(const Command *command);
} Option;

extern const Option option_table[];
extern const size_t option_count;
const char *option_words(const Option *option); /* NULL: it takes others than words */

void manual_help(const Command *command);
void manual_page(const Command *command);       /* of all of them, in roff */
void manual_completion(const Command *command); /* of all of them, for bash */

#endif
