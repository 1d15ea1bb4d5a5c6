/* The libraries that the benchmark compares with. They are asked for while it runs, and a row
 * without one says so; nothing else uses them. */
#ifndef PEERS_H
#define PEERS_H

#include <stdbool.h>
#include <stdint.h>

/* C [m, n] = A [m, k] B [k, n], single precision, dense rows. */
const char *blas_open(void); /* which library; NULL: none */
void blas_threads(int threads);
void blas_product(int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c);

typedef enum { CONV_FORWARD, CONV_BY_INPUT, CONV_BY_WEIGHTS } ConvKind;

/* Images n x c x size x size to o channels with a square window. */
typedef struct {
    const char *name;
    int64_t n, c, size, o, kernel, stride, pad, groups;
} ConvShape;

/* Plain tensors in and out: turning them into the library's own order and back counts. half: images
 * are bf16, and weights f32, which are rounded, as are those of a model in bf16. */
const char *conv_open(void);
bool conv_prepare(const ConvShape *shape, ConvKind kind, bool half, void *x, void *w, void *y);
void conv_run(void);
void conv_end(void);

#endif
