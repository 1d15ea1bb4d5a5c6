/* Layers as the textbook has them: loops in double, nothing clever. */
#ifndef TESTS_LAYERS_H
#define TESTS_LAYERS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

static double *zeros(size_t n)
{
    return need(calloc(n, sizeof(double)));
}

/* y[rows, units] = x[rows, inputs] @ w[inputs, units] + b[units] */
static double *ref_dense(const double *x, size_t rows, size_t inputs, size_t units, const double *w,
                         const double *b)
{
    double *y = zeros(rows * units);
    for (size_t r = 0; r < rows; r++)
        for (size_t u = 0; u < units; u++) {
            double sum = b[u];
            for (size_t i = 0; i < inputs; i++)
                sum += x[r * inputs + i] * w[i * units + u];
            y[r * units + u] = sum;
        }
    return y;
}

static inline void ref_softmax(double *x, size_t rows, size_t n)
{
    for (size_t r = 0; r < rows; r++, x += n) {
        double most = x[0], sum = 0;
        for (size_t i = 1; i < n; i++)
            most = x[i] > most ? x[i] : most;
        for (size_t i = 0; i < n; i++)
            sum += x[i] = exp(x[i] - most);
        for (size_t i = 0; i < n; i++)
            x[i] /= sum;
    }
}

#endif
