/* Matrix products. */
#include "tests/interpreter/interpreter.h"

#include <stdlib.h>

enum { ROWS = 64, COLUMNS = 256, DEPTH = 16 }; /* of what is worked on at a time */

static bool in_float; /* sums are rounded term by term, as a plain loop in float does */

void product_in_float(bool yes)
{
    in_float = yes;
}

double stored(double x)
{
    return in_float ? (float)x : x;
}

/* to[j] += sum of x[p] * from[p, j] over `some` rows of b, four at a time. */
static void add_rows(int64_t n, int64_t stride, int64_t some, const double *restrict x,
                     const double *restrict from, double *restrict to)
{
    int64_t p = 0;
    for (; p + 4 <= some && !in_float; p += 4, from += 4 * stride)
        for (int64_t j = 0; j < n; j++)
            to[j] += x[p] * from[j] + x[p + 1] * from[stride + j] +
                     x[p + 2] * from[2 * stride + j] + x[p + 3] * from[3 * stride + j];
    for (; p < some && !in_float; p++, from += stride)
        for (int64_t j = 0; j < n; j++)
            to[j] += x[p] * from[j];
    for (; p < some; p++, from += stride)
        for (int64_t j = 0; j < n; j++)
            to[j] = (float)(to[j] + x[p] * from[j]);
}

static void product_tile(int64_t m, int64_t n, int64_t k, int64_t row, int64_t column,
                         const double *a, const double *b, double *c)
{
    int64_t last = row + ROWS < m ? row + ROWS : m;
    int64_t width = column + COLUMNS < n ? COLUMNS : n - column;
    for (int64_t p = 0; p < k; p += DEPTH)
        for (int64_t i = row; i < last; i++)
            add_rows(width, n, p + DEPTH < k ? DEPTH : k - p, a + i * k + p, b + p * n + column,
                     c + i * n + column);
}

void product(int64_t m, int64_t n, int64_t k, const double *a, const double *b, double *c)
{
#pragma omp parallel for collapse(2) schedule(dynamic)
    for (int64_t row = 0; row < m; row += ROWS)
        for (int64_t column = 0; column < n; column += COLUMNS)
            product_tile(m, n, k, row, column, a, b, c);
}

void transpose(int64_t rows, int64_t columns, const double *from, double *to)
{
    for (int64_t first = 0; first < columns; first += 8) /* a line of memory at a time */
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = first; j < first + 8 && j < columns; j++)
                to[j * rows + i] = from[i * columns + j];
}

typedef struct {
    int64_t batch, m, n, k;
} Sizes;

static Sizes sizes_of(const Run *r)
{
    const Array *a = &r->in[0], *b = &r->in[1];
    Sizes s = {.m = a->dim[a->rank - 2], .k = a->dim[a->rank - 1], .n = b->dim[b->rank - 1]};
    s.batch = a->count / s.m / s.k;
    return s;
}

static void matmul(const Run *r)
{
    Sizes s = sizes_of(r);
    for (int64_t i = 0; i < s.batch; i++)
        product(s.m, s.n, s.k, r->in[0].at + i * s.m * s.k, r->in[1].at + i * s.k * s.n,
                r->out[0].at + i * s.m * s.n);
}

/* da = dy @ b', db = a' @ dy */
static void matmul_back(const Run *r)
{
    Sizes s = sizes_of(r);
    double *transposed = need_doubles(s.k * (s.m > s.n ? s.m : s.n));
    for (int64_t i = 0; i < s.batch; i++) {
        const double *dy = r->dout[0].at + i * s.m * s.n;
        if (r->din[0].at) {
            transpose(s.k, s.n, r->in[1].at + i * s.k * s.n, transposed);
            product(s.m, s.k, s.n, dy, transposed, r->din[0].at + i * s.m * s.k);
        }
        if (r->din[1].at) {
            transpose(s.m, s.k, r->in[0].at + i * s.m * s.k, transposed);
            product(s.k, s.n, s.m, transposed, dy, r->din[1].at + i * s.k * s.n);
        }
    }
    free(transposed);
}

const Op naive_products[] = {{"matmul", matmul, matmul_back}, {0}};
