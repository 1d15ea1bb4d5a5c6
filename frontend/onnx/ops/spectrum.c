/* Fourier transforms as products with matrices of cosines and sines, and windows.
 *
 * The angle of row i and column k is 2 pi (i k mod N) / N, with the product taken in whole numbers;
 * the matrices are constants, rounded once. */
#include "frontend/onnx/import.h"

#include <math.h>

static const double pi = 3.14159265358979323846;
enum { MAX_WINDOW = 1 << 16, MAX_TABLE = 1 << 24 };

/* ---- Windows -------------------------------------------------------------------------------- */

/* a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N). */
static bool window(Import *m, double a0, double a1, double a2)
{
    int64_t count, elem = attr_int(m, "output_datatype", ELEM_FLOAT);
    const int64_t *size = known_ints(m, 0, "size", &count);
    if (!size)
        return false;
    if (count != 1 || *size < 1 || *size > MAX_WINDOW)
        return refuse(m, "size must be one number from 1 to %d", MAX_WINDOW);
    if (!elem_is_float((int)elem))
        return refuse(m, "output_datatype is %s", elem_name((int)elem));
    double period = (double)(*size - !attr_int(m, "periodic", 1));
    Number *number = ARENA_ARRAY(m->arena, Number, (size_t)*size);
    for (int64_t n = 0; n < *size; n++) {
        double angle = period > 0 ? 2 * pi * (double)n / period : 0;
        number[n].real = a0 - a1 * cos(angle) + a2 * cos(2 * angle);
    }
    return result_numbers(m, 0, (int)elem, 1, size, number);
}

static bool hann(Import *m)
{
    return window(m, 0.5, 0.5, 0);
}

static bool hamming(Import *m)
{
    return window(m, 25.0 / 46, 21.0 / 46, 0);
}

static bool blackman(Import *m)
{
    return window(m, 0.42, 0.5, 0.08);
}

/* ---- Transforms ----------------------------------------------------------------------------- */

/* Real and imaginary part, each with N numbers on the last axis; imag NULL: 0. */
typedef struct {
    const Expr *real, *imag;
} Complex;

/* cos or sin (a quarter before it) of 2 pi (i k mod N) / N for row i and column k. */
static const Expr *table(Import *m, const char *name, int64_t size, int64_t rows, int64_t columns,
                         double quarter)
{
    OnnxTensor *data = ARENA_NEW(m->arena, OnnxTensor);
    float *number = ARENA_ARRAY(m->arena, float, (size_t)(rows * columns));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < columns; k++)
            number[i * columns + k] =
                (float)cos(2 * pi * ((double)(i * k % size) / (double)size - quarter));
    *data = (OnnxTensor){.name = name,
                         .elem = ELEM_FLOAT,
                         .rank = 2,
                         .dim = {rows, columns},
                         .count = rows * columns,
                         .data = (const unsigned char *)number,
                         .owned = true};
    const Tensor *made = declare(m, &(Tensor){.name = name,
                                              .elem = ELEM_FLOAT,
                                              .dtype = F32,
                                              .rank = 2,
                                              .dim = {rows, columns},
                                              .data = data,
                                              .value = NONE});
    return made ? made->expr : NULL;
}

/* A transform of `size` numbers, of which the first `rows` are there and the others 0; it gives
 * the first `columns`. */
typedef struct {
    int64_t size, rows, columns;
    bool inverse;
} Transform;

/* [rows, columns] of cosines and of sines. */
static bool turns(Import *m, const Transform *t, Complex *made)
{
    if (t->size > MAX_TABLE / t->columns)
        return refuse(m, "a transform of %lld numbers", (long long)t->size);
    made->real = table(m, "cosines", t->size, t->rows, t->columns, 0);
    made->imag = made->real ? table(m, "sines", t->size, t->rows, t->columns, 0.25) : NULL;
    return made->imag != NULL;
}

static const Expr *sum_of(Import *m, const Expr *a, const char *op, const Expr *b)
{
    return b ? binary(m, op, a, b) : a;
}

/* The transform of x along its last axis, real and imaginary on a new last axis. */
static const Expr *transform(Import *m, Complex x, const Transform *t)
{
    Complex turn = {0};
    bool inverse = t->inverse;
    if (!turns(m, t, &turn))
        return NULL;
    const Expr *part[4] = {binary(m, "matmul", x.real, turn.real),
                           binary(m, "matmul", x.real, turn.imag), NULL, NULL};
    if (x.imag) {
        part[2] = binary(m, "matmul", x.imag, turn.imag);
        part[3] = binary(m, "matmul", x.imag, turn.real);
    }
    const Expr *both[2];
    both[0] = sum_of(m, part[0], inverse ? "sub" : "add", part[2]);
    both[1] = sum_of(m, inverse ? part[1] : negate(m, part[1]), "add", part[3]);
    const Expr *all = CALL(m, "stack", {list(m, 2, both)}, {integer(m, -1), "axis"});
    return inverse ? binary(m, "mul", all, real(m, 1 / (double)t->size)) : all;
}

/* Axes of x with `axis` and the last one changed places: what makes it the last, and undoes that.
 */
static const Expr *swap_last(Import *m, const Expr *x, int rank, int axis)
{
    int64_t perm[MAX_RANK];
    for (int i = 0; i < rank; i++)
        perm[i] = i == axis ? rank - 1 : i == rank - 1 ? axis : i;
    return axis == rank - 1 ? x : CALL(m, "transpose", {x}, {ints(m, (size_t)rank, perm), "perm"});
}

/* Part i of the last axis, which it loses. */
static const Expr *component(Import *m, const Expr *x, int rank, int64_t i)
{
    return CALL(m, "squeeze", {slice_axis(m, x, rank - 1, integer(m, i), integer(m, i + 1))},
                {integer(m, rank - 1), "axis"});
}

/* The length of the transform, if it is not that of x; 0 with a message. */
static int64_t take_length(Import *m, int i, int64_t size)
{
    int64_t count;
    if (i >= inputs(m) || !given(m, i))
        return size;
    const int64_t *length = known_ints(m, i, "dft_length", &count);
    if (!length || (count == 1 && *length >= 1))
        return length ? *length : 0;
    refuse(m, "dft_length must be one number of at least 1");
    return 0;
}

static bool dft(Import *m)
{
    const Tensor *x = given(m, 0);
    int64_t at = attr_int(m, "axis", 1), count;
    if (opset(m) >= 20) {
        const int64_t *given_axis =
            inputs(m) > 2 && given(m, 2) ? known_ints(m, 2, "axis", &count) : NULL;
        at = given_axis ? *given_axis : -2;
    }
    int axis;
    if (!x || x->rank < 3 || x->rank > MAX_RANK ||
        (x->dim[x->rank - 1] != 1 && x->dim[x->rank - 1] != 2))
        return refuse(m, "its operand must end with an axis of 1 or 2 numbers");
    if (!take_axis(m, at, x->rank, &axis))
        return false;
    if (axis == x->rank - 1 || x->open[axis])
        return refuse(m, "the size of its axis must be known");
    int64_t size = x->dim[axis];
    bool half = attr_int(m, "onesided", 0) != 0;
    if (half && attr_int(m, "inverse", 0))
        return refuse(m, "onesided and inverse at once: a real signal from half of its spectrum");
    int64_t length = take_length(m, 1, size);
    if (!length)
        return false;
    Transform of = {length, size < length ? size : length, half ? length / 2 + 1 : length,
                    attr_int(m, "inverse", 0) != 0};
    const Expr *all = use(m, 0);
    if (length < size)
        all = slice_axis(m, all, axis, NULL, integer(m, length));
    int rank = x->rank - 1;
    Complex in = {swap_last(m, component(m, all, x->rank, 0), rank, axis), NULL};
    if (x->dim[x->rank - 1] == 2)
        in.imag = swap_last(m, component(m, all, x->rank, 1), rank, axis);
    const Expr *y = transform(m, in, &of);
    if (!y)
        return false;
    int64_t perm[MAX_RANK];
    for (int i = 0; i <= rank; i++)
        perm[i] = i == axis ? rank - 1 : i == rank - 1 ? axis : i;
    if (axis != rank - 1)
        y = CALL(m, "transpose", {y}, {ints(m, (size_t)rank + 1, perm), "perm"});
    return result(m, 0, y);
}

/* Inputs: signal [B, L, 1] or, as many files have it, [B, L]; frame_step, window, frame_length. */
static bool stft(Import *m)
{
    const Tensor *x = given(m, 0), *by = inputs(m) > 2 ? given(m, 2) : NULL;
    int64_t count;
    const int64_t *step = x ? known_ints(m, 1, "frame_step", &count) : NULL;
    if (!x || !step)
        return step != NULL;
    int64_t length = by ? by->dim[0] : 0;
    if (inputs(m) > 3 && given(m, 3)) {
        const int64_t *asked = known_ints(m, 3, "frame_length", &count);
        if (!asked)
            return false;
        length = *asked;
    }
    bool flat = x->rank == 2;
    if ((!flat && (x->rank != 3 || x->dim[2] != 1)) || x->open[1] || *step < 1 || length < 1 ||
        length > x->dim[1] || (by && by->dim[0] != length))
        return refuse(m, "a signal that is not [batch, %lld or more, 1], or whose length is free",
                      (long long)length);
    int64_t frames = (x->dim[1] - length) / *step + 1;
    bool half = attr_int(m, "onesided", 1) != 0;
    const Expr *from = CALL(m, "reshape", {CALL(m, "arange", {integer(m, frames)})},
                            {ints(m, 2, (int64_t[]){-1, 1}), "shape"});
    const Expr *place = binary(m, "add", binary(m, "mul", from, integer(m, *step)),
                               CALL(m, "arange", {integer(m, length)}));
    const Tensor *index = state(m, place);
    if (!index)
        return false;
    const Expr *signal = flat ? use(m, 0) : component(m, use(m, 0), 3, 0);
    const Expr *cut = CALL(m, "gather", {signal}, {index->expr}, {integer(m, 1), "axis"});
    if (by)
        cut = binary(m, "mul", cut, use(m, 2));
    const Expr *y = transform(m, (Complex){cut, NULL},
                              &(Transform){length, length, half ? length / 2 + 1 : length, false});
    return y && result(m, 0, y);
}

const Translation onnx_spectrum[] = {
    {"HannWindow", 17, hann},
    {"HammingWindow", 17, hamming},
    {"BlackmanWindow", 17, blackman},
    {"DFT", 17, dft},
    {"STFT", 17, stft},
    {0},
};
