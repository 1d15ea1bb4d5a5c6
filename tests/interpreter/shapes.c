/* Ops that move elements or add them up: sums, concat, gather, pad. */
#include "tests/interpreter/interpreter.h"

/* ---- Reductions ------------------------------------------------------------------------------ */

/* The element of the result that element i of x goes to; the setting has a bit for each axis. */
static int64_t reduced_place(const Array *x, int64_t axes, int64_t i)
{
    int64_t place = 0, size = 1;
    for (int d = x->rank - 1; d >= 0; d--) {
        if (!(axes >> d & 1)) {
            place += i % x->dim[d] * size;
            size *= x->dim[d];
        }
        i /= x->dim[d];
    }
    return place;
}

static void sum_scaled(const Run *r, double factor)
{
    int64_t axes = run_int(r, "axes");
    for (int64_t i = 0; i < r->in[0].count; i++)
        r->out[0].at[reduced_place(&r->in[0], axes, i)] += factor * r->in[0].at[i];
}

static void sum_scaled_back(const Run *r, double factor)
{
    int64_t axes = run_int(r, "axes");
    for (int64_t i = 0; r->din[0].at && i < r->in[0].count; i++)
        r->din[0].at[i] += factor * r->dout[0].at[reduced_place(&r->in[0], axes, i)];
}

static void sum(const Run *r)
{
    sum_scaled(r, 1);
}

static void sum_back(const Run *r)
{
    sum_scaled_back(r, 1);
}

static void mean(const Run *r)
{
    sum_scaled(r, (double)r->out[0].count / (double)r->in[0].count);
}

static void mean_back(const Run *r)
{
    sum_scaled_back(r, (double)r->out[0].count / (double)r->in[0].count);
}

/* ---- concat, gather, pad --------------------------------------------------------------------- */

static int64_t product_of(const Array *a, int from, int to)
{
    int64_t count = 1;
    for (int i = from; i < to; i++)
        count *= a->dim[i];
    return count;
}

/* Each operand has a piece of every stretch of the result that begins at its axis. */
static void concat(const Run *r)
{
    int axis = (int)run_list(r, "axis")[0];
    int64_t outer = product_of(&r->out[0], 0, axis);
    double *to = r->out[0].at;
    for (int64_t o = 0; o < outer; o++)
        for (int k = 0; k < r->ins; k++) {
            int64_t piece = r->in[k].count / outer;
            for (int64_t i = 0; i < piece; i++)
                *to++ = r->in[k].at[o * piece + i];
        }
}

static void concat_back(const Run *r)
{
    int axis = (int)run_list(r, "axis")[0];
    int64_t outer = product_of(&r->out[0], 0, axis);
    const double *from = r->dout[0].at;
    for (int64_t o = 0; o < outer; o++)
        for (int k = 0; k < r->ins; k++) {
            int64_t piece = r->in[k].count / outer;
            for (int64_t i = 0; i < piece; i++, from++)
                if (r->din[k].at)
                    r->din[k].at[o * piece + i] += *from;
        }
}

/* The element of x that element i of the result is. */
static int64_t picked_place(const Run *r, int axis, int64_t i)
{
    const Array *x = &r->in[0], *index = &r->in[1];
    int64_t inner = product_of(x, axis + 1, x->rank), at = i / inner % index->count;
    int64_t outer = i / inner / index->count, row = (int64_t)index->at[at];
    if (row < 0 || row >= x->dim[axis])
        stop("an index outside its table");
    return (outer * x->dim[axis] + row) * inner + i % inner;
}

static void gather(const Run *r)
{
    int axis = (int)run_list(r, "axis")[0];
    for (int64_t i = 0; i < r->out[0].count; i++)
        r->out[0].at[i] = r->in[0].at[picked_place(r, axis, i)];
}

static void gather_back(const Run *r)
{
    int axis = (int)run_list(r, "axis")[0];
    for (int64_t i = 0; r->din[0].at && i < r->out[0].count; i++)
        r->din[0].at[picked_place(r, axis, i)] += r->dout[0].at[i];
}

static int64_t padded_place(const Run *r, int64_t i)
{
    const Array *x = &r->in[0], *y = &r->out[0];
    int64_t place = 0, size = 1;
    for (int d = x->rank - 1; d >= 0; d--) {
        place += (i % x->dim[d] + run_list(r, "low")[d]) * size;
        size *= y->dim[d];
        i /= x->dim[d];
    }
    return place;
}

static void pad(const Run *r)
{
    for (int64_t i = 0; i < r->out[0].count; i++)
        r->out[0].at[i] = run_number(r, "value");
    for (int64_t i = 0; i < r->in[0].count; i++)
        r->out[0].at[padded_place(r, i)] = r->in[0].at[i];
}

static void pad_back(const Run *r)
{
    for (int64_t i = 0; r->din[0].at && i < r->in[0].count; i++)
        r->din[0].at[i] += r->dout[0].at[padded_place(r, i)];
}

const Op naive_shapes[] = {{"sum", sum, sum_back},          {"mean", mean, mean_back},
                           {"concat", concat, concat_back}, {"gather", gather, gather_back},
                           {"pad", pad, pad_back},          {0}};
