/* What the comparison calls in an emitted program; see subject.c. */
#ifndef TESTS_SUBJECT_H
#define TESTS_SUBJECT_H

#include <stddef.h>
#include <stdint.h>

enum { SUBJECT_INPUT, SUBJECT_OUTPUT, SUBJECT_PARAM, SUBJECT_STATE };

typedef struct {
    const char *name;
    int kind, dtype; /* dtype: as the frontend counts them */
    size_t offset, bytes;
} SubjectTensor;

size_t subject_arena(void);
int subject_begin(void *arena, size_t bytes, uint64_t seed, int threads);
int subject_forward(void);
int subject_eval(float *loss);
int subject_step(float *loss);
const char *subject_error(int code);
size_t subject_tensor(size_t i, SubjectTensor *to); /* how many there are */

#endif
