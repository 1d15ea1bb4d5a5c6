/* Reductions, softmax and the running sum. */
#include "tests/ops/cases.h"

#include <math.h>
#include <string.h>

/* Whether axis i of operand 0 is reduced. */
static bool reduced(const Case *c, int i)
{
    int count = case_count(c, "axis"), rank = c->in[0].rank;
    for (int k = 0; k < count; k++)
        if ((case_at(c, "axis", k) + rank) % rank == i)
            return true;
    return count == 0;
}

/* The elements that go into one output, in order: a list for each. */
typedef struct {
    Tensor out;
    int64_t length; /* of each list */
    double *list;
} Lists;

static Lists lists_of(const Case *c, Dtype dtype)
{
    const Tensor *x = &c->in[0];
    int64_t dim[MAX_RANK], length = 1;
    int rank = 0;
    for (int i = 0; i < x->rank; i++) {
        if (reduced(c, i))
            length *= x->dim[i];
        if (!reduced(c, i) || case_int(c, "keepdims"))
            dim[rank++] = reduced(c, i) ? 1 : x->dim[i];
    }
    Lists l = {.out = case_new(c, dtype, rank, dim), .length = length};
    l.list = ARENA_ARRAY(c->arena, double, (size_t)x->count);
    int64_t *filled = ARENA_ARRAY(c->arena, int64_t, (size_t)l.out.count);
    for (int64_t at = 0; at < x->count; at++) {
        int64_t rest = at, to = 0, scale = 1;
        for (int i = x->rank - 1; i >= 0; rest /= x->dim[i], i--)
            if (!reduced(c, i)) {
                to += rest % x->dim[i] * scale;
                scale *= x->dim[i];
            }
        l.list[to * length + filled[to]++] = x->at[at];
    }
    return l;
}

static Tensor reduce_with(const Case *c, Dtype dtype, double (*f)(const double *, int64_t))
{
    Lists l = lists_of(c, dtype);
    for (int64_t i = 0; i < l.out.count; i++)
        l.out.at[i] = f(l.list + i * l.length, l.length);
    return l.out;
}

static Dtype count_dtype(const Case *c)
{
    Dtype dtype = c->in[0].dtype;
    return dtype == BOOL || dtype == U8 ? I32 : dtype;
}

static double add_up(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

static double average(const double *x, int64_t n)
{
    return add_up(x, n) / (double)n;
}

static double multiply(const double *x, int64_t n)
{
    double product = 1;
    for (int64_t i = 0; i < n; i++)
        product *= x[i];
    return product;
}

static double place_of_most(const double *x, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        best = x[i] > x[best] ? i : best;
    return (double)best;
}

static double place_of_least(const double *x, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        best = x[i] < x[best] ? i : best;
    return (double)best;
}

static double most_of(const double *x, int64_t n)
{
    return x[(int64_t)place_of_most(x, n)];
}

static double least_of(const double *x, int64_t n)
{
    return x[(int64_t)place_of_least(x, n)];
}

static Tensor sum(const Case *c)
{
    return reduce_with(c, count_dtype(c), add_up);
}

static Tensor mean(const Case *c)
{
    return reduce_with(c, F32, average);
}

/* Sums, products and logarithms of 16 bits are f32. */
static Tensor wide(Tensor y)
{
    y.dtype = dtype_is_narrow((Dtype)y.dtype) ? F32 : y.dtype;
    return y;
}

static Tensor prod(const Case *c)
{
    return wide(reduce_with(c, count_dtype(c), multiply));
}

static Tensor max(const Case *c)
{
    return reduce_with(c, c->in[0].dtype, most_of);
}

static Tensor min(const Case *c)
{
    return reduce_with(c, c->in[0].dtype, least_of);
}

static Tensor argmax(const Case *c)
{
    return reduce_with(c, I32, place_of_most);
}

static Tensor argmin(const Case *c)
{
    return reduce_with(c, I32, place_of_least);
}

static Tensor var(const Case *c)
{
    Lists l = lists_of(c, F32);
    for (int64_t i = 0; i < l.out.count; i++) {
        const double *x = l.list + i * l.length;
        double middle = average(x, l.length), squares = 0;
        for (int64_t k = 0; k < l.length; k++)
            squares += (x[k] - middle) * (x[k] - middle);
        l.out.at[i] = squares / (double)(l.length - case_int(c, "correction"));
    }
    return l.out;
}

/* ---- Along one axis, same shape -------------------------------------------------------------- */

/* Calls f on each line along the axis, copied out and back. */
static Tensor along_axis(const Case *c, void (*f)(double *, int64_t))
{
    Tensor y = case_like(c, 0);
    int axis = (int)((case_int(c, "axis") + y.rank) % y.rank);
    int64_t inner = 1, n = y.dim[axis];
    for (int i = axis + 1; i < y.rank; i++)
        inner *= y.dim[i];
    double *line = ARENA_ARRAY(c->arena, double, (size_t)n);
    for (int64_t first = 0; first < y.count; first++) {
        if (first / inner % n != 0)
            continue;
        for (int64_t k = 0; k < n; k++)
            line[k] = c->in[0].at[first + k * inner];
        f(line, n);
        for (int64_t k = 0; k < n; k++)
            y.at[first + k * inner] = line[k];
    }
    return y;
}

static void run_up(double *x, int64_t n)
{
    for (int64_t i = 1; i < n; i++)
        x[i] += x[i - 1];
}

static void exp_share(double *x, int64_t n)
{
    double most = most_of(x, n), total = 0;
    for (int64_t i = 0; i < n; i++)
        total += x[i] = exp(x[i] - most);
    for (int64_t i = 0; i < n; i++)
        x[i] /= total;
}

static void log_share(double *x, int64_t n)
{
    exp_share(x, n);
    for (int64_t i = 0; i < n; i++)
        x[i] = log(x[i]);
}

static void run_down(double *x, int64_t n)
{
    for (int64_t i = n - 1; i-- > 0;)
        x[i] += x[i + 1];
}

/* Each gets the sum of its neighbour. */
static void run_up_before(double *x, int64_t n)
{
    run_up(x, n);
    memmove(x + 1, x, (size_t)(n - 1) * sizeof *x);
    x[0] = 0;
}

static void run_down_before(double *x, int64_t n)
{
    run_down(x, n);
    memmove(x, x + 1, (size_t)(n - 1) * sizeof *x);
    x[n - 1] = 0;
}

static Tensor cumsum(const Case *c)
{
    if (case_int(c, "exclusive"))
        return wide(along_axis(c, case_int(c, "reverse") ? run_down_before : run_up_before));
    return wide(along_axis(c, case_int(c, "reverse") ? run_down : run_up));
}

static Tensor softmax(const Case *c)
{
    return along_axis(c, exp_share);
}

static Tensor log_softmax(const Case *c)
{
    return wide(along_axis(c, log_share));
}

OP_CASES(reduce) = {
    {"sum", "f32[7]", "", sum},
    {"sum", "f32[]", "", sum},
    {"sum", "f32[1, 1, 1]", "axis = 1", sum},
    {"sum", "f32[3, 5, 7]", "axis = 0", sum},
    {"sum", "f32[3, 5, 7]", "axis = 1", sum},
    {"sum", "f32[3, 5, 7]", "axis = -1", sum},
    {"sum", "f32[3, 5, 7]", "axis = [0, 2]", sum},
    {"sum", "f32[3, 5, 7]", "axis = [2, 1], keepdims = true", sum},
    {"sum", "f32[2, 3, 2, 3, 2, 3, 2, 3]", "axis = [0, 2, 5, 7]", sum},
    {"sum", "f32[4, 1, 1]", "axis = 0", sum},
    {"sum", "f32[4, 6, 1]", "axis = 2", sum},
    {"sum", "f32[5, 193]", "", sum},
    {"sum", "f32[70, 131]", "axis = 0", sum},
    {"sum", "f32[3, 70001]", "axis = 1", sum},
    {"sum", "f32[3000, 70]", "axis = 0", sum},
    {"sum", "f32[140000]", "", sum},
    {"sum", "i32[3, 5]", "axis = 0", sum},
    {"sum", "i64[3, 5]", "", sum},
    {"sum", "bool[3, 5]", "axis = 1", sum},
    {"sum", "u8[9]:0..255", "", sum},
    {"mean", "f32[3, 5, 7]", "axis = [0, 1]", mean},
    {"mean", "f32[3, 5, 7]", "", mean},
    {"mean", "f32[2, 66000]", "axis = 1", mean},
    {"mean", "bool[3, 5]", "", mean},
    {"mean", "i32[3, 5]", "axis = 1", mean},
    {"prod", "f32[3, 5, 7]", "axis = 1", prod},
    {"prod", "f32[13]:0.9..1.1", "", prod},
    {"prod", "f16[5, 3]", "axis = 0", prod},
    {"prod", "i32[4, 3]:-3..3", "axis = 1", prod},
    {"max", "f32[3, 5, 7]", "axis = 2", max},
    {"max", "f32[3, 5, 7]", "axis = 0", max},
    {"max", "f32[200, 3]", "", max},
    {"max", "f16[3, 5, 7]", "axis = 1", max},
    {"max", "i64[3, 5]", "axis = 1", max},
    {"max", "bool[3, 5]", "axis = 1", max},
    {"min", "f32[3, 5, 7]", "axis = [1, 2], keepdims = true", min},
    {"min", "f32[3, 5, 7]", "axis = 1", min},
    {"min", "i32[3, 5]", "", min},
    {"min", "bool[4, 2]", "axis = 1", min},
    {"var", "f32[3, 5, 7]", "axis = 1", var},
    {"var", "f32[3, 5, 7]", "axis = [0, 2], correction = 1", var},
    {"var", "f32[40, 90]:1000..1001", "", var},
    {"var", "bf16[4, 9]", "axis = 1", var},
    {"var", "f32[2, 66000]:3..4", "axis = 1", var},
    {"argmax", "f32[3, 5, 7]", "axis = 2", argmax},
    {"argmax", "f32[3, 5, 7]", "axis = 0", argmax},
    {"argmax", "f32[3, 5, 7]", "axis = [0, 1]", argmax},
    {"argmax", "f32[300]", "", argmax},
    {"argmax", "bf16[3, 5, 7]", "axis = 1", argmax},
    {"argmax", "i32[8, 9]:0..3", "axis = 1", argmax},
    {"argmin", "f32[3, 5, 7]", "axis = 1, keepdims = true", argmin},
    {"argmin", "f32[130, 2]", "axis = -2", argmin},
    {"argmin", "i64[8, 9]:0..3", "", argmin},
    {"cumsum", "f32[9]", "", cumsum},
    {"cumsum", "f32[260]", "", cumsum},
    {"cumsum", "bf16[3, 20]", "", cumsum},
    {"cumsum", "f32[3, 5, 7]", "axis = 1", cumsum},
    {"cumsum", "f32[2, 4, 33]", "axis = 0", cumsum},
    {"cumsum", "i32[3, 5]", "axis = 1", cumsum},
    {"cumsum", "i64[3, 5]", "axis = 0", cumsum},
    {"cumsum", "f32[260]", "reverse = true", cumsum},
    {"cumsum", "f32[2, 300]", "exclusive = true", cumsum},
    {"cumsum", "f32[2, 300]", "exclusive = true, reverse = true", cumsum},
    {"cumsum", "f32[3, 5, 7]", "axis = 1, exclusive = true", cumsum},
    {"cumsum", "f32[3, 5, 7]", "axis = 1, exclusive = true, reverse = true", cumsum},
    {"cumsum", "i32[3, 5]", "reverse = true", cumsum},
    {"cumsum", "i64[3, 5]", "axis = 0, exclusive = true", cumsum},
    {"cumsum", "f32[1]", "exclusive = true", cumsum},
    {"softmax", "f32[1]", "", softmax},
    {"softmax", "f32[3, 5]", "", softmax},
    {"softmax", "f32[3, 1030]:-30..30", "", softmax},
    {"softmax", "f32[3, 5, 7]", "axis = 0", softmax},
    {"softmax", "bf16[3, 70]", "", softmax, .tolerance = 1. / 128},
    {"softmax", "f16[3, 5, 7]", "axis = 1", softmax, .tolerance = 1. / 1024},
    {"softmax", "f32[2, 5, 37]", "axis = 1", softmax},
    {"softmax", "f32[4, 6]:900..1000", "", softmax},
    {"log_softmax", "f32[3, 17]", "", log_softmax},
    {"log_softmax", "bf16[3, 17]", "", log_softmax},
    {"log_softmax", "f32[3, 5, 40]", "axis = 1", log_softmax},
    {"log_softmax", "f32[4, 6]:-1000..-900", "", log_softmax},
    {0},
};

OP_ERRORS(reduce) = {
    {"sum", "f32[2, 3]", "axis = 2", "axis = 2 is out of range for a tensor of 2 dimensions"},
    {"sum", "f32[2, 3]", "axis = [0, -2]", "axis repeats -2"},
    {"var", "f32[2, 3]", "axis = 0, correction = 2",
     "correction = 2 must be 0 or more, and less than"},
    {"var", "i32[2, 3]", "", "takes f32, not i32[2, 3]"},
    {"cumsum", "f32[2, 3]", "axis = -3", "axis = -3 is out of range"},
    {"softmax", "i32[2, 3]", "", "takes f32, not i32[2, 3]"},
    {"softmax", "f32[]", "", "needs at least one dimension"},
    {0},
};
