/* Emitted programs beside the interpreter: what interpreter.c, program.c and compare.c share. */
#ifndef TESTS_COMPARE_H
#define TESTS_COMPARE_H

#include "tests/interpreter/interpreter.h"
#include "tests/interpreter/subject.h"

enum { SEED = 11 }; /* of dropout */

/* The same values in both graphs, and in those whose results are rounded. */
typedef struct {
    Machine *infer, *train, *rounded_infer, *rounded_train;
    double clip, rounded_clip; /* what clipping multiplies gradients by */
} Reference;

/* A program that was loaded. */
typedef struct {
    const char *path;
    unsigned char *arena;
    double **before, **output; /* by tensor: state before the step; outputs after forward */
    size_t (*arena_bytes)(void);
    int (*begin)(void *arena, size_t bytes, uint64_t seed, int threads);
    int (*forward)(void);
    int (*eval)(float *loss);
    int (*step)(float *loss);
    const char *(*error)(int code);
    size_t (*tensor)(size_t i, SubjectTensor *to);
    size_t tensors;
    float eval_loss, step_loss;
} Subject;

Subject subject_load(const char *path);
void subject_free(Subject *s);
/* Writes what the interpreter has, then runs forward and eval. */
void subject_infer(Subject *s, const Machine *m);
void subject_train(Subject *s); /* one step */
int64_t subject_count(const SubjectTensor *t);
double subject_element(const Subject *s, const SubjectTensor *t, int64_t i);
double *subject_read(const Subject *s, const SubjectTensor *t); /* the caller frees it */
bool subject_find(const Subject *s, const char *name, SubjectTensor *t, size_t *at);
SubjectTensor subject_tensor_named(const Subject *s, const char *name, size_t *at);

typedef struct {
    int compared, wrong, coarse; /* coarse: passed by what float can resolve */
    double worst, coarsest;
    char where[256], coarse_where[256];
    bool final, table;
    double typical;    /* what float loops are off by, in the median tensor */
    ARRAY(double) off; /* by tensor, while that is sought; then nothing is judged */
    bool seeking;
    Arena *arena; /* of `off` */
} Verdict;

/* `final`: the rounded results are there, and what they are off by is taken into account. `table`:
 * a line for each tensor. */
Verdict compare(const Subject *s, const Reference *model, int step, bool final, bool table);

#endif
