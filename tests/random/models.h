/* Random models as text, and what a model computes without a plan. */
#ifndef TESTS_RANDOM_MODELS_H
#define TESTS_RANDOM_MODELS_H

#include "tests/plan/run_step.h"

/* ---- Text (model_text.c) ----------------------------------------------------------------------
 */

/* A model named `net` that lowers, with a train statement that has gradients; NULL where none was
 * found. */
char *random_model(Arena *arena, uint64_t seed, int most_statements);

/* ---- What it computes (model_run.c) -----------------------------------------------------------
 */

/* How a model is lowered. */
typedef struct {
    uint32_t times;    /* micro-batches */
    bool chunked_loss; /* losses of products in slices */
} Lowering;

/* NULL where the model cannot be lowered so. */
Graph *model_graph(Arena *arena, const char *text, Lowering how);

/* What somebody could see of a run, in order: an output after a call, a loss, a parameter or state
 * at the end. */
typedef struct {
    const char *when; /* "forward", "step", ... */
    const char *name;
    uint8_t dtype;
    bool linear; /* rounding stays rounding: not what a sign or a root made of a gradient */
    size_t count;
    const void *data;
    const void *before; /* of a parameter: what it held at first; else NULL */
} Record;

typedef struct {
    Record *at;
    size_t count, room;
    int status; /* of the first call that failed; it is the last record then */
} Records;

enum { STEPS = 2 };

/* The calls that an emitted program makes too: forward, eval, steps, then forward and eval. */
Records model_run(Arena *arena, const Graph *g);
void records_add(Arena *arena, Records *records, Record record);
/* What persistent values hold at first; by name, so that it is the same however it is lowered. */
void model_fill(const Value *value, void *to);
bool model_makes(const Graph *g, const Output *output, ProgramKind program); /* or another does */
bool model_is_saved(const Value *value); /* inputs, parameters, constants, state */

/* ---- The emitted program (harness.c) -----------------------------------------------------------
 */

/* Writes what a net.c is compiled with, and the tensors that it begins with, into this folder. */
void harness_write(Arena *arena, const Graph *g);
/* What it wrote; counts are in bytes. */
Records harness_read(Arena *arena);

#endif
