/* Reductions over axes, and the running sum.
 *
 * The user names axes; the kernel gets them as bits. Sums are blocked and pairwise, in an order
 * that follows from the dims alone (runtime/c/reduce.h). */
#include "frontend/ops/rules.h"

/* Dims without the axes of `bits`, or with 1 in their place. */
static int reduced_dims(const View *view, uint32_t bits, bool keep, int64_t *dim)
{
    int rank = 0;
    for (int i = 0; i < view->rank; i++)
        if (!(bits >> i & 1))
            dim[rank++] = view->dim[i];
        else if (keep)
            dim[rank++] = 1;
    return rank;
}

static bool reduce_to(Graph *g, Call *c, Dtype dtype)
{
    View view = call_view(g, c, 0);
    uint32_t bits;
    if (!axes_bits(g, c, "axis", view.rank, &bits))
        return false;
    call_set(c, "axes", bits);
    int64_t dim[MAX_RANK];
    int rank = reduced_dims(&view, bits, call_int(c, "keepdims"), dim);
    return call_output(g, c, dtype, rank, dim);
}

static bool want_number(Graph *g, const Call *c, Dtype dtype)
{
    if (dtype == F16 || dtype == BF16)
        return want_f32(g, c, 0);
    return true;
}

/* bool and u8 count in i32, so that a sum of comparisons is a count. */
static bool shape_sum(Graph *g, Call *c)
{
    Dtype dtype = call_dtype(g, c, 0);
    return want_number(g, c, dtype) && reduce_to(g, c, dtype == BOOL || dtype == U8 ? I32 : dtype);
}

static bool shape_mean(Graph *g, Call *c)
{
    return want_number(g, c, call_dtype(g, c, 0)) && reduce_to(g, c, F32);
}

static bool shape_extreme(Graph *g, Call *c)
{
    Dtype dtype = call_dtype(g, c, 0);
    return want_number(g, c, dtype) && reduce_to(g, c, dtype);
}

static int64_t reduced_count(const View *view, uint32_t bits)
{
    int64_t count = 1;
    for (int i = 0; i < view->rank; i++)
        count *= bits >> i & 1 ? view->dim[i] : 1;
    return count;
}

static bool shape_var(Graph *g, Call *c)
{
    View view = call_view(g, c, 0);
    if (!want_f32(g, c, 0) || !reduce_to(g, c, F32))
        return false;
    int64_t count = reduced_count(&view, (uint32_t)call_int(c, "axes"));
    int64_t correction = call_int(c, "correction");
    if (correction < 0 || correction >= count)
        return call_error(g, c, "correction = %lld must be from 0 to less than the %lld elements",
                          (long long)correction, (long long)count);
    return true;
}

static bool shape_arg(Graph *g, Call *c)
{
    View view = call_view(g, c, 0);
    if (!want_number(g, c, call_dtype(g, c, 0)) || !reduce_to(g, c, I32))
        return false;
    int64_t count = reduced_count(&view, (uint32_t)call_int(c, "axes"));
    if (count > INT32_MAX)
        return call_error(g, c, "the index of one out of %lld elements does not fit in i32",
                          (long long)count);
    return true;
}

static bool shape_cumsum(Graph *g, Call *c)
{
    View view = call_view(g, c, 0);
    Dtype dtype = call_dtype(g, c, 0);
    int axis;
    if (dtype != F32 && dtype != I32 && dtype != I64)
        return want_f32(g, c, 0);
    if (!call_axis(g, c, "axis", view.rank, &axis))
        return false;
    call_set(c, "axis", axis);
    return call_output(g, c, dtype, view.rank, view.dim);
}

static double flops_one(const Graph *g, Id node)
{
    return flops_of(g, node, 1);
}

static double flops_var(const Graph *g, Id node)
{
    return flops_of(g, node, 4);
}

#define REDUCE_X                                      \
    {                                                 \
        .name = "x", .help = "any shape, any strides" \
    }
#define REDUCE_AXIS                                                              \
    {                                                                            \
        .name = "axis", .kind = ARG_INTS, .flags = ARG_FRONT, .count = MAX_RANK, \
        .fallback = "all", .words = "all",                                       \
        .help = "one axis or a list; negative ones count from the end"           \
    }
#define REDUCE_KEEPDIMS                                                                \
    {                                                                                  \
        .name = "keepdims", .kind = ARG_BOOL, .flags = ARG_FRONT, .fallback = "false", \
        .help = "leave 1 in place of each reduced axis"                                \
    }
#define REDUCE_AXES                                                           \
    {                                                                         \
        .name = "axes", .kind = ARG_INT, .flags = ARG_HIDDEN, .fallback = "0" \
    }
#define REDUCE_ARGS                                         \
    {                                                       \
        REDUCE_X, REDUCE_AXIS, REDUCE_KEEPDIMS, REDUCE_AXES \
    }

const OpRow ops_reduce[] = {
    {.name = "sum",
     .kernel = "reduce",
     .help = "sum over axes; pairwise, in one fixed order. bool and u8 are counted in i32",
     .args = REDUCE_ARGS,
     .shape = shape_sum,
     .flops = flops_one,
     .strided = 1},
    {.name = "mean",
     .kernel = "reduce",
     .help = "mean over axes, f32 for every dtype (of bool: the share that is true)",
     .args = REDUCE_ARGS,
     .shape = shape_mean,
     .flops = flops_one,
     .strided = 1},
    {.name = "prod",
     .kernel = "reduce",
     .help = "product over axes",
     .args = REDUCE_ARGS,
     .shape = shape_sum,
     .flops = flops_one,
     .strided = 1},
    {.name = "max",
     .kernel = "reduce",
     .help = "largest over axes (of bool: any); NaN where there is one. Elementwise: maximum(a, b)",
     .args = REDUCE_ARGS,
     .shape = shape_extreme,
     .flops = flops_one,
     .strided = 1},
    {.name = "min",
     .kernel = "reduce",
     .help = "smallest over axes (of bool: all); NaN where there is one. "
             "Elementwise: minimum(a, b)",
     .args = REDUCE_ARGS,
     .shape = shape_extreme,
     .flops = flops_one,
     .strided = 1},
    {.name = "var",
     .kernel = "reduce",
     .help = "variance over axes, in two passes: squares of x - mean, over count - correction",
     .args = {REDUCE_X,
              REDUCE_AXIS,
              REDUCE_KEEPDIMS,
              {.name = "correction",
               .kind = ARG_INT,
               .fallback = "0",
               .help = "0: of the whole, 1: estimated from a sample"},
              REDUCE_AXES},
     .shape = shape_var,
     .flops = flops_var,
     .strided = 1},
    {.name = "argmax",
     .kernel = "argmax",
     .help = "i32 index of the first largest; over several axes it counts in their order",
     .args = REDUCE_ARGS,
     .shape = shape_arg,
     .flops = flops_one,
     .strided = 1},
    {.name = "argmin",
     .kernel = "argmax",
     .help = "i32 index of the first smallest; over several axes it counts in their order",
     .args = REDUCE_ARGS,
     .shape = shape_arg,
     .flops = flops_one,
     .strided = 1},
    {.name = "cumsum",
     .help = "running sum along an axis, summed in double; same shape",
     .args = {{.name = "x", .help = "f32, i32 or i64"},
              {.name = "axis", .kind = ARG_INT, .fallback = "-1", .help = "which"}},
     .shape = shape_cumsum,
     .flops = flops_one,
     .inplace = 1},
    {0},
};
