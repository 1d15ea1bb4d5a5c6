/* gather_elements, scatter and their kin, and topk. Wrong indices are in index_test.c. */
#include "tests/ops/cases.h"

#include <math.h>
#include <string.h>

static int axis_of(const Case *c, const Tensor *x)
{
    int axis = (int)case_int(c, "axis");
    return axis < 0 ? axis + x->rank : axis;
}

/* Where element i of index points in x: its own place, save along the axis. */
static int64_t target(const Tensor *x, const Tensor *index, int axis, int64_t i)
{
    int64_t place[MAX_RANK], at = 0, rest = i;
    for (int d = index->rank; d-- > 0; rest /= index->dim[d])
        place[d] = rest % index->dim[d];
    place[axis] = (int64_t)index->at[i];
    place[axis] += place[axis] < 0 ? x->dim[axis] : 0;
    for (int d = 0; d < x->rank; d++)
        at = at * x->dim[d] + place[d];
    return at;
}

static Tensor gather_elements(const Case *c)
{
    const Tensor *x = &c->in[0], *index = &c->in[1];
    Tensor y = case_new(c, x->dtype, index->rank, index->dim);
    for (int64_t i = 0; i < y.count; i++)
        y.at[i] = x->at[target(x, index, axis_of(c, x), i)];
    return y;
}

static void join(const Case *c, double *x, double update)
{
    if (case_is_word(c, "reduction", "none"))
        *x = update;
    else if (case_is_word(c, "reduction", "add"))
        *x += update;
    else if (case_is_word(c, "reduction", "mul"))
        *x *= update;
    else if (case_is_word(c, "reduction", "max"))
        *x = fmax(*x, update);
    else
        *x = fmin(*x, update);
}

static Tensor scatter(const Case *c)
{
    Tensor y = case_like(c, 0);
    memcpy(y.at, c->in[0].at, (size_t)y.count * sizeof *y.at);
    for (int64_t i = 0; i < c->in[2].count; i++)
        join(c, &y.at[target(&y, &c->in[1], axis_of(c, &y), i)], c->in[2].at[i]);
    return y;
}

/* The slice of x that row `row` of index names, as its number, after `batch` axes of both; and how
 * many elements it has. */
static int64_t slice(const Tensor *x, const Tensor *index, int batch, int64_t row, int64_t *width)
{
    int64_t axes = index->dim[index->rank - 1], per = index->count / axes, at;
    *width = x->count;
    for (int d = 0; d < batch; d++)
        per /= index->dim[d];
    at = row / per;
    for (int d = 0; d < batch + axes; d++) {
        *width /= x->dim[d];
        if (d >= batch) {
            double one = index->at[row * axes + d - batch];
            at = at * x->dim[d] + (int64_t)one + (one < 0 ? x->dim[d] : 0);
        }
    }
    return at;
}

static Tensor gather_nd(const Case *c)
{
    const Tensor *x = &c->in[0], *index = &c->in[1];
    int batch = (int)case_int(c, "batch_dims"), rank = 0;
    int64_t dim[2 * MAX_RANK], width = 1, axes = index->dim[index->rank - 1];
    for (int d = 0; d + 1 < index->rank; d++)
        dim[rank++] = index->dim[d];
    for (int d = batch + (int)axes; d < x->rank; d++)
        dim[rank++] = x->dim[d];
    Tensor y = case_new(c, x->dtype, rank, dim);
    for (int64_t row = 0; row < index->count / axes; row++) {
        int64_t from = slice(x, index, batch, row, &width);
        for (int64_t i = 0; i < width; i++)
            y.at[row * width + i] = x->at[from * width + i];
    }
    return y;
}

static Tensor scatter_nd(const Case *c)
{
    const Tensor *index = &c->in[1];
    Tensor y = case_like(c, 0);
    int64_t width = 1;
    memcpy(y.at, c->in[0].at, (size_t)y.count * sizeof *y.at);
    for (int64_t row = 0; row < index->count / index->dim[index->rank - 1]; row++) {
        int64_t to = slice(&y, index, 0, row, &width);
        for (int64_t i = 0; i < width; i++)
            join(c, &y.at[to * width + i], c->in[2].at[row * width + i]);
    }
    return y;
}

/* Of what is left, the first that nothing left is ahead of. */
static Tensor top(const Case *c, bool places)
{
    const Tensor *x = &c->in[0];
    int axis = axis_of(c, x);
    int64_t k = case_int(c, "k"), n = x->dim[axis], inner = 1, dim[MAX_RANK];
    double sign = case_number(c, "largest") != 0 ? 1 : -1;
    memcpy(dim, x->dim, sizeof dim);
    dim[axis] = k;
    for (int d = axis + 1; d < x->rank; d++)
        inner *= dim[d];
    Tensor y = case_new(c, places ? I64 : x->dtype, x->rank, dim);
    for (int64_t line = 0; line < x->count / n; line++) {
        const double *from = x->at + line / inner * n * inner + line % inner;
        bool taken[512] = {false};
        for (int64_t j = 0; j < k; j++) {
            int64_t best = -1;
            for (int64_t i = 0; i < n; i++)
                if (!taken[i] && (best < 0 || sign * from[i * inner] > sign * from[best * inner]))
                    best = i;
            taken[best] = true;
            y.at[(line / inner * k + j) * inner + line % inner] =
                places ? (double)best : from[best * inner];
        }
    }
    return y;
}

static Tensor topk(const Case *c)
{
    return top(c, false);
}

static Tensor topk_places(const Case *c)
{
    return top(c, true);
}

static Tensor arange(const Case *c)
{
    static const Dtype dtypes[] = {I64, I32, F32};
    int64_t count = case_int(c, "count");
    Tensor y = case_new(c, dtypes[(int)case_number(c, "dtype")], 1, &count);
    for (int64_t i = 0; i < count; i++)
        y.at[i] = case_number(c, "start") + (double)i * case_number(c, "step");
    return y;
}

OP_CASES(scatter) = {
    {"gather_elements", "f32[7] i32[9]:-7..6", "", gather_elements},
    {"gather_elements", "f32[4, 5] i64[4, 7]:-5..4", "axis = 1", gather_elements},
    {"gather_elements", "f32[4, 5] i32[9, 3]:0..3", "axis = 0", gather_elements},
    {"gather_elements", "i64[3, 4, 5] i32[2, 6, 4]:-4..3", "axis = 1", gather_elements},
    {"gather_elements", "bool[3, 4, 5] i32[3, 4, 8]:0..4", "axis = -1", gather_elements},
    {"gather_elements", "u8[5, 300] i32[40, 290]:0..4", "", gather_elements},
    {"gather_nd", "f32[4, 5] i32[3, 2]:0..3", "", gather_nd},
    {"gather_nd", "f32[4, 5, 3] i64[2, 6, 1]:-4..3", "", gather_nd},
    {"gather_nd", "f32[3, 4, 2, 5] i32[6, 2]:-3..2", "", gather_nd},
    {"gather_nd", "i32[3, 4, 5] i32[3, 7, 1]:0..3", "batch_dims = 1", gather_nd},
    {"gather_nd", "f32[2, 3, 4, 5] i32[2, 3, 2]:0..3", "batch_dims = 2", gather_nd},
    {"scatter", "f32[7] i32[5]:-7..6 f32[5]", "", scatter},
    {"scatter", "f32[4, 5] i32[9, 3]:0..3 f32[9, 3]", "", scatter},
    {"scatter", "f32[4, 5] i32[4, 9]:-5..4 f32[4, 9]", "axis = 1, reduction = add", scatter},
    {"scatter", "f32[3, 4, 5] i64[2, 9, 5]:0..3 f32[2, 9, 5]", "axis = 1, reduction = add",
     scatter},
    {"scatter", "f32[4, 5] i32[6, 5]:0..3 f32[6, 5]", "reduction = max", scatter},
    {"scatter", "f32[4, 5] i32[4, 8]:0..4 f32[4, 8]", "axis = -1, reduction = min", scatter},
    {"scatter", "i32[4, 5] i32[4, 8]:0..4 i32[4, 8]", "axis = 1, reduction = mul", scatter},
    {"scatter", "i64[4, 5] i32[4, 8]:0..4 i64[4, 8]", "axis = 1, reduction = max", scatter},
    {"scatter", "i32[4, 5] i32[4, 8]:0..4 i32[4, 8]", "axis = 1, reduction = min", scatter},
    {"scatter", "i64[6] i32[20]:0..5 i64[20]", "reduction = add", scatter},
    {"scatter", "u8[6, 2] i32[3, 2]:0..5 u8[3, 2]", "", scatter},
    {"scatter", "bool[6, 2] i32[3, 2]:0..5 bool[3, 2]", "", scatter},
    {"scatter", "f32[3, 300] i32[40, 290]:0..2 f32[40, 290]", "reduction = add", scatter},
    {"scatter_nd", "f32[4, 5] i32[3, 1]:0..3 f32[3, 5]", "", scatter_nd},
    {"scatter_nd", "f32[4, 5] i64[2, 7, 2]:-4..3 f32[2, 7]", "reduction = add", scatter_nd},
    {"scatter_nd", "f32[4, 3, 5] i32[9, 2]:-3..2 f32[9, 5]", "reduction = add", scatter_nd},
    {"scatter_nd", "f32[4, 3, 5] i32[9, 2]:0..2 f32[9, 5]", "", scatter_nd},
    {"scatter_nd", "i32[4, 3] i32[9, 1]:0..3 i32[9, 3]", "reduction = mul", scatter_nd},
    {"scatter_nd", "f32[4, 3] i32[9, 1]:0..3 f32[9, 3]", "reduction = max", scatter_nd},
    {"topk", "f32[7]", "k = 3", topk},
    {"topk", "f32[4, 9]", "k = 9", topk},
    {"topk", "f32[3, 9, 4]", "k = 4, axis = 1, largest = false", topk},
    {"topk", "f32[3, 300]", "k = 1", topk},
    {"topk", "i32[5, 40]:0..5", "k = 12", topk},
    {"topk", "i32[5, 40]:0..5", "k = 12", topk_places, .output = 1},
    {"topk", "i64[40, 3]:0..5", "k = 40, axis = 0, largest = false", topk_places, .output = 1},
    {"topk", "bool[3, 30]", "k = 20", topk_places, .output = 1},
    {"topk", "u8[3, 300]:0..9", "k = 200", topk_places, .output = 1},
    {"topk", "f32[6, 70]:-1..1", "k = 33", topk_places, .output = 1},
    {"arange", "", "count = 9", arange},
    {"arange", "", "count = 5, start = -3, step = 7", arange},
    {"arange", "", "count = 5, start = 4e9, step = -2", arange},
    {"arange", "", "count = 5, start = 4, step = -2, dtype = i32", arange},
    {"arange", "", "count = 30, start = 0.5, step = 0.25, dtype = f32", arange},
    {0},
};

OP_ERRORS(scatter) = {
    {"gather_elements", "f32[5, 3] f32[2, 3]", "", "indices must be i32 or i64, not f32[2, 3]"},
    {"gather_elements", "f32[5, 3] i32[2, 4]", "",
     "index i32[2, 4] must have the dims of f32[5, 3] or smaller, save axis 0"},
    {"gather_elements", "f32[5, 3] i32[2]", "", "or smaller, save axis 0"},
    {"gather_elements", "f32[] i32[]", "", "axis = 0 is out of range for a tensor of 0 dimensions"},
    {"gather_nd", "f32[5, 3] i32[2, 3]", "", "the last axis of index i32[2, 3] names places"},
    {"gather_nd", "f32[5, 3] i32[]", "", "the last axis of index i32[] names places"},
    {"gather_nd", "f32[5, 3] i32[4, 1]", "batch_dims = 1", "names places on axes of f32[5, 3]"},
    {"gather_nd", "f32[5, 3] i32[5, 1]", "batch_dims = 2", "batch_dims = 2 must be from 0"},
    {"scatter", "f32[5, 3] i32[2, 3] f32[2, 2]", "",
     "updates f32[2, 2] must have the dims of index"},
    {"scatter", "f32[5, 3] i32[2, 3] i32[2, 3]", "", "updates are i32, but x is f32"},
    {"scatter", "bool[5] i32[2] bool[2]", "reduction = add", "only reduction = none takes bool"},
    {"scatter_nd", "f32[5, 3] i32[2, 1] f32[2, 2]", "",
     "x f32[5, 3], index i32[2, 1], updates f32[2, 2]"},
    {"topk", "f32[5, 3]", "k = 4", "k = 4 must be from 1 to the 3 of axis 1 of f32[5, 3]"},
    {"topk", "f32[5, 3]", "k = 0", "k = 0 must be from 1"},
    {"topk", "f32[]", "k = 1", "axis = -1 is out of range for a tensor of 0 dimensions"},
    {"arange", "", "count = 0", "shape [0] is invalid"},
    {"arange", "", "count = 3, step = 0.5", "start and step of i64 must be whole numbers"},
    {"random_normal", "", "shape = [3, 0]", "shape [3, 0] is invalid"},
    {0},
};
