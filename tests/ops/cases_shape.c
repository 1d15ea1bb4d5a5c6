/* Views, concat and the like: where each element comes from. */
#include "tests/ops/cases.h"

#include <string.h>

/* Element `at` of a tensor as an index for each axis, and back. */
static void unravel(const Tensor *t, int64_t at, int64_t *index)
{
    for (int i = t->rank - 1; i >= 0; at /= t->dim[i], i--)
        index[i] = at % t->dim[i];
}

static int64_t ravel(const Tensor *t, const int64_t *index)
{
    int64_t at = 0;
    for (int i = 0; i < t->rank; i++)
        at = at * t->dim[i] + index[i];
    return at;
}

static int axis_of(int64_t axis, int rank)
{
    return (int)(axis < 0 ? axis + rank : axis);
}

/* The elements of x in order under other dims. */
static Tensor same_elements(const Case *c, int rank, const int64_t *dim)
{
    Tensor y = case_new(c, c->in[0].dtype, rank, dim);
    memcpy(y.at, c->in[0].at, (size_t)y.count * sizeof *y.at);
    return y;
}

static Tensor reshape(const Case *c)
{
    int64_t dim[MAX_RANK], open = c->in[0].count;
    int rank = case_count(c, "shape");
    for (int i = 0; i < rank; i++)
        open /= case_at(c, "shape", i) > 0 ? case_at(c, "shape", i) : 1;
    for (int i = 0; i < rank; i++)
        dim[i] = case_at(c, "shape", i) > 0 ? case_at(c, "shape", i) : open;
    return same_elements(c, rank, dim);
}

static Tensor flatten(const Case *c)
{
    const Tensor *x = &c->in[0];
    int axis = axis_of(case_int(c, "axis"), x->rank);
    int end = axis_of(case_int(c, "end"), x->rank), rank = 0;
    int64_t dim[MAX_RANK + 1];
    for (int i = 0; i < x->rank; i++)
        if (i > axis && i <= end)
            dim[rank - 1] *= x->dim[i];
        else
            dim[rank++] = x->dim[i];
    if (axis == x->rank)
        dim[rank++] = 1;
    return same_elements(c, rank, dim);
}

static Tensor transpose(const Case *c)
{
    const Tensor *x = &c->in[0];
    int64_t dim[MAX_RANK], to[MAX_RANK], from[MAX_RANK];
    int perm[MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        perm[i] = case_count(c, "perm") ? axis_of(case_at(c, "perm", i), x->rank)
                  : i < x->rank - 2     ? i
                                        : 2 * x->rank - 3 - i;
    for (int i = 0; i < x->rank; i++)
        dim[i] = x->dim[perm[i]];
    Tensor y = case_new(c, x->dtype, x->rank, dim);
    for (int64_t at = 0; at < y.count; at++) {
        unravel(&y, at, to);
        for (int i = 0; i < x->rank; i++)
            from[perm[i]] = to[i];
        y.at[at] = x->at[ravel(x, from)];
    }
    return y;
}

static Tensor squeeze(const Case *c)
{
    const Tensor *x = &c->in[0];
    int64_t dim[MAX_RANK];
    int rank = 0;
    for (int i = 0; i < x->rank; i++) {
        bool named = case_count(c, "axis") == 0;
        for (int k = 0; k < case_count(c, "axis"); k++)
            named |= axis_of(case_at(c, "axis", k), x->rank) == i;
        if (!named || x->dim[i] != 1)
            dim[rank++] = x->dim[i];
    }
    return same_elements(c, rank, dim);
}

static Tensor unsqueeze(const Case *c)
{
    const Tensor *x = &c->in[0];
    int rank = x->rank + case_count(c, "axis");
    int64_t dim[MAX_RANK] = {0};
    for (int k = 0; k < case_count(c, "axis"); k++)
        dim[axis_of(case_at(c, "axis", k), rank)] = 1;
    for (int i = 0, from = 0; i < rank; i++)
        if (!dim[i])
            dim[i] = x->dim[from++];
    return same_elements(c, rank, dim);
}

/* Both read element (index % dim of x) of x, from the last axis on. */
static Tensor wrap_around(const Case *c, int rank, const int64_t *dim)
{
    const Tensor *x = &c->in[0];
    Tensor y = case_new(c, x->dtype, rank, dim);
    int64_t to[MAX_RANK], from[MAX_RANK];
    for (int64_t at = 0; at < y.count; at++) {
        unravel(&y, at, to);
        for (int i = 0; i < x->rank; i++)
            from[i] = to[i + rank - x->rank] % x->dim[i];
        y.at[at] = x->at[ravel(x, from)];
    }
    return y;
}

static Tensor expand(const Case *c)
{
    int64_t dim[MAX_RANK];
    int rank = case_count(c, "shape");
    for (int i = 0; i < rank; i++) {
        dim[i] = case_at(c, "shape", i);
        if (dim[i] < 0)
            dim[i] = c->in[0].dim[i - rank + c->in[0].rank];
    }
    return wrap_around(c, rank, dim);
}

static Tensor tile(const Case *c)
{
    int64_t dim[MAX_RANK];
    for (int i = 0; i < c->in[0].rank; i++)
        dim[i] = c->in[0].dim[i] * case_at(c, "times", i);
    return wrap_around(c, c->in[0].rank, dim);
}

/* Elements start, start + step, ... of one axis, `length` of them. */
static Tensor take(const Case *c, const Tensor *x, int axis, int64_t start, int64_t step,
                   int64_t length)
{
    int64_t dim[MAX_RANK], index[MAX_RANK];
    memcpy(dim, x->dim, sizeof dim);
    dim[axis] = length;
    Tensor y = case_new(c, x->dtype, x->rank, dim);
    for (int64_t at = 0; at < y.count; at++) {
        unravel(&y, at, index);
        index[axis] = start + index[axis] * step;
        y.at[at] = x->at[ravel(x, index)];
    }
    return y;
}

static Tensor split(const Case *c)
{
    const Tensor *x = &c->in[0];
    int axis = axis_of(case_int(c, "axis"), x->rank);
    int64_t start = 0, size = 0;
    for (int i = 0; i <= c->row->output; i++) {
        start += size;
        size = case_count(c, "parts") == 1 ? x->dim[axis] / case_at(c, "parts", 0)
                                           : case_at(c, "parts", i);
    }
    return take(c, x, axis, start, 1, size);
}

static Tensor slice(const Case *c)
{
    Tensor x = c->in[0];
    for (int i = 0; i < case_count(c, "start"); i++) {
        int64_t start = case_at(c, "start", i), stop = case_at(c, "stop", i), count = 0;
        int64_t step = case_count(c, "step") > i ? case_at(c, "step", i) : 1;
        int64_t first = step > 0 ? start : stop - 1;
        while (first + count * step >= start && first + count * step < stop)
            count++;
        x = take(c, &x, i, first, step, count);
    }
    return x;
}

static Tensor flip(const Case *c)
{
    Tensor x = c->in[0];
    int count = case_count(c, "axis");
    for (int i = 0; i < x.rank; i++) {
        bool named = count == 0;
        for (int k = 0; k < count; k++)
            named |= axis_of(case_at(c, "axis", k), x.rank) == i;
        if (named)
            x = take(c, &x, i, x.dim[i] - 1, -1, x.dim[i]);
    }
    return x;
}

static Tensor concat(const Case *c)
{
    const Tensor *x = c->in;
    int axis = axis_of(case_int(c, "axis"), x->rank);
    int64_t dim[MAX_RANK], index[MAX_RANK];
    memcpy(dim, x->dim, sizeof dim);
    for (int i = 1; i < c->ins; i++)
        dim[axis] += x[i].dim[axis];
    Tensor y = case_new(c, x->dtype, x->rank, dim);
    for (int64_t at = 0; at < y.count; at++) {
        int i = 0;
        unravel(&y, at, index);
        while (index[axis] >= x[i].dim[axis])
            index[axis] -= x[i++].dim[axis];
        y.at[at] = x[i].at[ravel(&x[i], index)];
    }
    return y;
}

static Tensor stack(const Case *c)
{
    const Tensor *x = c->in;
    int rank = x->rank + 1, axis = axis_of(case_int(c, "axis"), rank);
    int64_t dim[MAX_RANK], index[MAX_RANK], from[MAX_RANK];
    for (int i = 0; i < rank; i++)
        dim[i] = i == axis ? c->ins : x->dim[i - (i > axis)];
    Tensor y = case_new(c, x->dtype, rank, dim);
    for (int64_t at = 0; at < y.count; at++) {
        unravel(&y, at, index);
        for (int i = 0; i < x->rank; i++)
            from[i] = index[i + (i >= axis)];
        y.at[at] = x[index[axis]].at[ravel(x, from)];
    }
    return y;
}

static Tensor pad(const Case *c)
{
    const Tensor *x = &c->in[0];
    int64_t dim[MAX_RANK], index[MAX_RANK];
    for (int i = 0; i < x->rank; i++) {
        int b = case_count(c, "before") == 1 ? 0 : i, a = case_count(c, "after") == 1 ? 0 : i;
        int64_t before = case_at(c, "before", b);
        dim[i] = before + x->dim[i] +
                 (case_is_word(c, "after", "same") ? before : case_at(c, "after", a));
    }
    Tensor y = case_new(c, x->dtype, x->rank, dim);
    for (int64_t at = 0; at < y.count; at++) {
        bool inside = true;
        unravel(&y, at, index);
        for (int i = 0; i < x->rank; i++) {
            index[i] -= case_at(c, "before", case_count(c, "before") == 1 ? 0 : i);
            inside = inside && index[i] >= 0 && index[i] < x->dim[i];
        }
        y.at[at] = inside ? x->at[ravel(x, index)] : case_number(c, "value");
    }
    return y;
}

OP_CASES(shape) = {
    {"reshape", "f32[6, 4]", "shape = [3, 8]", reshape},
    {"reshape", "f32[6, 4]", "shape = [2, -1, 2]", reshape},
    {"reshape", "i32[6, 4]", "shape = -1", reshape},
    {"reshape", "f32[1, 1]", "shape = [1, 1, 1]", reshape},
    {"flatten", "f32[2, 3, 4, 5]", "", flatten},
    {"flatten", "f32[2, 3, 4]", "axis = 0", flatten},
    {"flatten", "bool[2, 3, 4]", "axis = -1", flatten},
    {"flatten", "f32[2, 3, 4]", "axis = 3", flatten},
    {"flatten", "f32[2, 3, 4, 5]", "axis = 1, end = 2", flatten},
    {"flatten", "f32[2, 3, 4, 5]", "axis = 0, end = -3", flatten},
    {"flatten", "f32[2, 3, 4, 5]", "axis = 1, end = 1", flatten},
    {"transpose", "f32[3, 5]", "", transpose},
    {"transpose", "f32[2, 3, 5]", "", transpose},
    {"transpose", "i64[2, 3, 5]", "perm = [2, 0, 1]", transpose},
    {"transpose", "f32[2, 3, 1, 5]", "perm = [-1, 1, 0, 2]", transpose},
    {"squeeze", "f32[1, 3, 1, 5]", "", squeeze},
    {"squeeze", "f32[1, 3, 1, 5]", "axis = 2", squeeze},
    {"squeeze", "f32[1, 3, 1, 5]", "axis = [0, -2]", squeeze},
    {"unsqueeze", "f32[3, 5]", "axis = 0", unsqueeze},
    {"unsqueeze", "f32[3, 5]", "axis = [1, -1]", unsqueeze},
    {"expand", "f32[3, 1]", "shape = [3, 4]", expand},
    {"expand", "f32[3, 1]", "shape = [2, -1, 4]", expand},
    {"expand", "f32[]", "shape = [2, 3]", expand},
    {"split", "f32[4, 6]", "parts = 3", split, 0, 0},
    {"split", "f32[4, 6]", "parts = 3", split, 0, 2},
    {"split", "f32[4, 6]", "parts = [1, 3], axis = 0", split, 0, 1},
    {"slice", "f32[5, 7]", "start = [1, 2], stop = [4, 7], step = [1, 3]", slice},
    {"slice", "f32[5, 7]", "start = [2], stop = [3]", slice},
    {"slice", "f32[5, 7]", "start = [0, 1], stop = [5, 6], step = [-2, -1]", slice},
    {"slice", "f32[5, 7]", "start = [4], stop = [5], step = [9]", slice},
    {"flip", "f32[3, 5]", "", flip},
    {"flip", "f32[3, 5, 2]", "axis = [0, -1]", flip},
    {"flip", "i32[3, 5]", "axis = 1", flip},
    {"tile", "f32[2, 3]", "times = [2, 3]", tile},
    {"tile", "f32[1, 3, 1]", "times = [4, 1, 2]", tile},
    {"tile", "bool[2, 2]", "times = [1, 2]", tile},
    {"concat", "f32[2, 3] f32[4, 3]", "", concat},
    {"concat", "f32[2, 3] f32[2, 1] f32[2, 5]", "axis = 1", concat},
    {"concat", "f32[2, 3, 2] f32[2, 4, 2]", "axis = -2", concat},
    {"concat", "f32[3]", "", concat},
    {"concat", "i64[2, 3] i64[2, 3]", "axis = 1", concat},
    {"concat", "bool[2, 3] bool[1, 3]", "", concat},
    {"concat", "f32[70, 130] f32[70, 131]", "axis = 1", concat},
    {"stack", "f32[2, 3] f32[2, 3]", "", stack},
    {"stack", "f32[2, 3] f32[2, 3] f32[2, 3]", "axis = -1", stack},
    {"stack", "i32[4] i32[4]", "axis = 1", stack},
    {"pad", "f32[3, 5]", "before = 1", pad},
    {"pad", "f32[3, 5]", "before = [0, 2], after = [3, 0], value = -1.5", pad},
    {"pad", "f32[2, 3, 4]", "before = [0, 1, 2], after = 0", pad},
    {"pad", "i32[3, 5]", "before = 0, after = [1, 1], value = 7", pad},
    {"pad", "i64[3]", "before = 2, value = -1", pad},
    {"pad", "bool[3, 2]", "before = [1, 0], value = 1", pad},
    {"pad", "f32[5, 6]", "before = -1", pad},
    {"pad", "f32[5, 6]", "before = [-2, 1], after = [1, -3], value = 2.5", pad},
    {"pad", "i32[5]", "before = -2, after = -2", pad},
    {0},
};

OP_ERRORS(shape) = {
    {"reshape", "f32[6, 4]", "shape = [5, 5]",
     "cannot reshape f32[6, 4] with 24 elements to [5, 5]"},
    {"reshape", "f32[6, 4]", "shape = [-1, 5]", "elements to [-1, 5]"},
    {"reshape", "f32[6, 4]", "shape = [-1, -1]", "has more than one -1"},
    {"reshape", "f32[6, 4]", "shape = [0, 24]", "sizes must be positive, or -1"},
    {"reshape", "f32[6]", "shape = [4294967296, 4294967296, 4294967296]", "cannot reshape f32[6]"},
    {"transpose", "f32[3, 5]", "perm = [0]", "perm [0] has 1 of the 2 axes"},
    {"transpose", "f32[3, 5]", "perm = [0, 0]", "perm repeats 0"},
    {"transpose", "f32[3]", "", "f32[3] has fewer than two axes to transpose"},
    {"squeeze", "f32[1, 3]", "axis = 1", "axis 1 of f32[1, 3] does not have size 1"},
    {"unsqueeze", "f32[3]", "axis = 3", "axis = 3 is out of range for a tensor of 2 dimensions"},
    {"expand", "f32[3, 2]", "shape = [3, 4]", "f32[3, 2] does not broadcast to [3, 4]"},
    {"expand", "f32[3]", "shape = [0, 3]", "a dimension is not positive"},
    {"split", "f32[4, 6]", "parts = 4", "axis 1 of f32[4, 6] cannot be split into 4 equal parts"},
    {"split", "f32[4, 6]", "parts = [1, 2]", "parts [1, 2] do not sum to 6, the size of axis 1"},
    {"slice", "f32[5]", "start = [3], stop = [3]",
     "3:3 is empty or out of range for axis 0 of f32[5]"},
    {"slice", "f32[5]", "start = [0], stop = [6]", "0:6 is empty or out of range for axis 0"},
    {"tile", "f32[5]", "times = [2, 2]", "times [2, 2] must have one number for each axis"},
    {"concat", "f32[2, 3] f32[3, 4]", "", "shapes differ on more than axis 0: f32[2, 3] and"},
    {"concat", "f32[2, 3] i32[2, 3]", "", "dtypes differ: f32[2, 3] and i32[2, 3]"},
    {"stack", "f32[2, 3] f32[3, 2]", "", "shapes differ: f32[2, 3] and f32[3, 2]"},
    {"pad", "f32[2, 3, 4]", "before = [1, 2]", "before must be one number, or one for each axis"},
    {"pad", "f32[2, 3]", "before = -1", "takes all away of axis 0 of f32[2, 3]"},
    {"pad", "f32[2, 3]", "before = [0, -9e17], after = 0", "takes all away of axis 1"},
    {"pad", "f32[2, 3]", "before = 3e18", "is out of range"},
    {"flatten", "f32[2, 3, 4]", "axis = 2, end = 1",
     "end = 1 is out of range for f32[2, 3, 4], or before"},
    {"flatten", "f32[2, 3, 4]", "end = 3", "end = 3 is out of range for f32[2, 3, 4]"},
    {"flatten", "f32[2, 3, 4]", "end = -4", "end = -4 is out of range for f32[2, 3, 4]"},
    {"pad", "u8[2, 3]", "before = 1, value = 256", "value = 256 does not fit in u8"},
    {0},
};
