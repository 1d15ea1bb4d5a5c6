/* Plans of a random model: gplan is run, and what its program computes is compared. */
#ifndef TESTS_RANDOM_PLANS_H
#define TESTS_RANDOM_PLANS_H

#include "tests/random/models.h"

enum { MOST_LOWERINGS = 6, BETWEEN = 3 };
enum { NO_BUDGET, LEAST, FIRST_BETWEEN, BUDGETS = FIRST_BETWEEN + BETWEEN };

typedef struct {
    Lowering how;
    bool loops;  /* nothing runs after products */
    bool open;   /* gplan chooses all of this, for the budget */
    int budget;  /* NO_BUDGET, LEAST, or which of those between */
    int threads; /* 0: tcc, else gcc */
} Config;

/* What plans of one way to lower a model take. */
typedef struct {
    uint64_t least, most; /* arenas: the smallest, and without a budget */
    uint64_t ops;         /* of the latter */
} Sizes;

/* A way to lower the model, and what it then computes. */
typedef struct {
    Lowering how;
    Graph *graph;
    Records records;
} Lowered;

typedef struct {
    Lowered at[MOST_LOWERINGS]; /* the plain one first */
    int count;
    bool micro_alike; /* micro-batches compute the same: no statistics are taken over each */
    bool narrow;      /* some of it is in 16 bits */
} Case;

extern const char *gplan; /* the path of the program */
extern bool shrinking;    /* the same plan may be tried again */

void tally(const char *name, uint64_t count); /* what was seen, for the report */
void print_tallies(void);
void write_text(const char *path, const char *text);

/* NULL, or where two lowerings of a model differ by more than rounding. */
const char *rounding_differs(Arena *arena, const Records *a, const Records *b);
char *config_text(Arena *arena, const Config *c, uint64_t budget); /* as options of gplan */
/* Leaves the plan without a budget as net.c. NULL, or what is wrong. */
const char *find_sizes(Arena *arena, Config c, Sizes *s);
uint64_t budget_of(const Config *c, const Sizes *s);
/* Plans, compiles, runs and compares. NULL, or what is wrong. */
const char *try_plan(Arena *arena, const Config *c, const Sizes *sizes, const Case *model);
void count_json(Arena *arena, const Config *c, const Sizes *sizes);

#endif
