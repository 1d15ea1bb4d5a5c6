/* Numbers that follow from sizes, moved about: Gather, Slice, Concat and their like on the results
 * of Shape. A mover leaves *done false where it is not for what it was given. */
#include "frontend/onnx/follow.h"

#include <string.h>

static bool v_where(Import *m, const Numbers *in, bool *done)
{
    Numbers out = {.elem = in[1].elem};
    *done = broadcast_numbers(in, 3, &out);
    if (!*done)
        return true;
    Number *number = ARENA_ARRAY(m->arena, Number, (size_t)out.count + 1);
    for (int64_t i = 0; i < out.count; i++) {
        const Number *condition = &in[0].at[place_in(&in[0], &out, i)];
        const Numbers *from = condition->integer ? &in[1] : &in[2];
        number[i] = from->at[place_in(from, &out, i)];
    }
    out.at = number;
    return give_numbers(m, 0, &out);
}

static bool v_cast(Import *m, const Numbers *in, bool *done)
{
    Numbers out = in[0];
    out.elem = (int)attr_int(m, "to", ELEM_NONE);
    bool reals = elem_is_float(out.elem);
    *done = elem_dtype(out.elem) != DTYPES && (reals || !elem_is_float(in[0].elem) ||
                                               out.elem == ELEM_INT64 || out.elem == ELEM_INT32);
    Number *number = ARENA_ARRAY(m->arena, Number, (size_t)out.count + 1);
    for (int64_t i = 0; *done && i < out.count; i++) {
        number[i] = in[0].at[i];
        if (is_whole(out.elem) && !is_whole(in[0].elem)) {
            number[i].integer = whole_number(number[i].real);
            number[i].real = (double)number[i].integer;
            if (number[i].expr)
                number[i].expr = CALL(m, "floor", {number[i].expr});
        }
        if (out.elem == ELEM_BOOL && number[i].expr && !number[i].positive)
            m->pinned = true;
        if (out.elem == ELEM_BOOL)
            number[i] = known_number(ELEM_BOOL, number[i].real != 0);
    }
    out.at = number;
    return !*done || give_numbers(m, 0, &out);
}

/* Whatever leaves the order as it is. */
static bool v_reshaped(Import *m, const Numbers *in, bool *done, int rank, const int64_t *dim)
{
    Numbers out = in[0];
    int64_t count = 1;
    out.rank = rank;
    for (int k = 0; k < rank; k++) {
        out.dim[k] = dim[k];
        count = dim[k] < 0 || dim[k] > MAX_FOLLOWED || count > MAX_FOLLOWED ? -1 : count * dim[k];
        if (count < 0)
            break;
    }
    if (count != out.count)
        return refuse(m, "its operand has %lld numbers, and its result another count",
                      (long long)out.count);
    *done = true;
    return give_numbers(m, 0, &out);
}

static bool v_identity(Import *m, const Numbers *in, bool *done)
{
    return v_reshaped(m, in, done, in[0].rank, in[0].dim);
}

static bool v_squeeze(Import *m, const Numbers *in, bool *done)
{
    const int64_t *axes;
    int64_t count, dim[MAX_RANK];
    int rank = 0;
    bool gone[MAX_RANK] = {0};
    if (!ints_of(m, "axes", 1, &axes, &count))
        return false;
    for (int64_t i = 0; i < count; i++) {
        int axis;
        if (!take_axis(m, axes[i], in[0].rank, &axis))
            return false;
        gone[axis] = true;
    }
    for (int k = 0; k < in[0].rank; k++)
        if (count < 0 ? in[0].dim[k] != 1 : !gone[k])
            dim[rank++] = in[0].dim[k];
    return v_reshaped(m, in, done, rank, dim);
}

static bool v_unsqueeze(Import *m, const Numbers *in, bool *done)
{
    const int64_t *axes;
    int64_t count, dim[MAX_RANK];
    bool fresh[MAX_RANK] = {0};
    if (!ints_of(m, "axes", 1, &axes, &count))
        return false;
    int rank = in[0].rank + (int)(count < 0 ? 0 : count), own = 0;
    if (rank > MAX_RANK)
        return true;
    for (int64_t i = 0; i < count; i++) {
        int axis;
        if (!take_axis(m, axes[i], rank, &axis))
            return false;
        fresh[axis] = true;
    }
    for (int k = 0; k < rank; k++)
        dim[k] = fresh[k] ? 1 : in[0].dim[own++];
    return v_reshaped(m, in, done, rank, dim);
}

static bool v_reshape(Import *m, const Numbers *in, bool *done)
{
    int64_t dim[MAX_RANK], count = 1;
    int open = -1;
    if (in[1].count > MAX_RANK)
        return true;
    for (int k = 0; k < in[1].count; k++) {
        dim[k] = in[1].at[k].integer;
        if (in[1].at[k].expr)
            return true;
        if (dim[k] == 0 && k < in[0].rank)
            dim[k] = in[0].dim[k];
        if (dim[k] == -1)
            open = k;
        else if (dim[k] < 0 || dim[k] > MAX_FOLLOWED || (count *= dim[k]) > MAX_FOLLOWED)
            return refuse(m, "a size of %lld for %lld numbers", (long long)dim[k],
                          (long long)in[0].count);
    }
    if (open >= 0)
        dim[open] = count ? in[0].count / count : 0;
    return v_reshaped(m, in, done, (int)in[1].count, dim);
}

static bool v_concat(Import *m, const Numbers *in, bool *done)
{
    Numbers out = in[0];
    out.count = 0;
    for (int i = 0; i < inputs(m); i++)
        if (in[i].rank != 1)
            return true;
    size_t all = 0;
    for (int i = 0; i < inputs(m); i++)
        all += (size_t)in[i].count;
    Number *number = ARENA_ARRAY(m->arena, Number, all + 1);
    for (int i = 0; i < inputs(m); i++) {
        memcpy(number + out.count, in[i].at, (size_t)in[i].count * sizeof *number);
        out.count += in[i].count;
    }
    if (out.count > MAX_FOLLOWED)
        return true;
    out.dim[0] = out.count;
    out.at = number;
    *done = true;
    return give_numbers(m, 0, &out);
}

static bool v_gather(Import *m, const Numbers *in, bool *done)
{
    Numbers out = in[1];
    if (in[0].rank != 1 || in[1].rank > MAX_RANK)
        return true;
    Number *number = ARENA_ARRAY(m->arena, Number, (size_t)out.count + 1);
    for (int64_t i = 0; i < out.count; i++) {
        int64_t at = in[1].at[i].integer;
        at += at < 0 ? in[0].count : 0;
        if (at < 0 || at >= in[0].count || in[1].at[i].expr)
            return refuse(m, "index %lld is outside of %lld numbers",
                          (long long)in[1].at[i].integer, (long long)in[0].count);
        number[i] = in[0].at[at];
    }
    out.elem = in[0].elem;
    out.at = number;
    *done = true;
    return give_numbers(m, 0, &out);
}

static int64_t clamp(int64_t at, int64_t least, int64_t most)
{
    return at < least ? least : at > most ? most : at;
}

static bool v_slice(Import *m, const Numbers *in, bool *done)
{
    const int64_t *starts, *ends, *axes, *steps;
    int64_t count[4];
    Numbers out = in[0];
    if (in[0].rank != 1)
        return true;
    if (!ints_of(m, "starts", 1, &starts, &count[0]) || !ints_of(m, "ends", 2, &ends, &count[1]) ||
        !ints_of(m, "axes", 3, &axes, &count[2]) || !ints_of(m, "steps", 4, &steps, &count[3]))
        return false;
    if (count[0] != 1 || count[1] != 1)
        return true;
    int64_t size = in[0].count, step = count[3] == 1 ? clamp(steps[0], -size - 1, size + 1) : 1;
    int64_t from = starts[0] < 0 ? starts[0] + size : starts[0];
    int64_t to = ends[0] < 0 ? (ends[0] < -size ? -1 : ends[0] + size) : ends[0];
    if (step == 0)
        return refuse(m, "a step of 0");
    from = step > 0 ? clamp(from, 0, size) : clamp(from, -1, size - 1);
    to = step > 0 ? clamp(to, 0, size) : clamp(to, -1, size - 1);
    Number *number = ARENA_ARRAY(m->arena, Number, (size_t)size + 1);
    out.count = 0;
    for (int64_t i = from; step > 0 ? i < to : i > to; i += step)
        number[out.count++] = in[0].at[i];
    out.dim[0] = out.count;
    out.at = number;
    *done = true;
    return give_numbers(m, 0, &out);
}

/* The product, sum, ... of a row of them. */
static bool reduce(Import *m, const Numbers *in, bool *done,
                   bool (*apply)(Import *, int, const Number *, Number *))
{
    Numbers out = {.elem = in[0].elem, .rank = 0, .count = 1};
    if (in[0].rank > 1 || !in[0].count)
        return true;
    Number *all = ARENA_NEW(m->arena, Number);
    *all = in[0].at[0];
    for (int64_t i = 1; i < in[0].count; i++) {
        Number pair[2] = {*all, in[0].at[i]}, next = {0};
        if (!apply(m, in[0].elem, pair, &next))
            return false;
        *all = next;
    }
    if (attr_int(m, "keepdims", 1))
        out.dim[out.rank++] = 1;
    out.rank = in[0].rank ? out.rank : 0;
    out.at = all;
    *done = true;
    return give_numbers(m, 0, &out);
}

static bool v_prod(Import *m, const Numbers *in, bool *done)
{
    return reduce(m, in, done, follow_mul);
}

static bool v_sum(Import *m, const Numbers *in, bool *done)
{
    return reduce(m, in, done, follow_add);
}

static bool v_max(Import *m, const Numbers *in, bool *done)
{
    return reduce(m, in, done, follow_max);
}

static bool v_min(Import *m, const Numbers *in, bool *done)
{
    return reduce(m, in, done, follow_min);
}

static bool v_shape(Import *m, const Numbers *in, bool *done)
{
    Numbers out = {.elem = ELEM_INT64, .rank = 1, .dim = {in[0].rank}, .count = in[0].rank};
    Number *number = ARENA_ARRAY(m->arena, Number, MAX_RANK);
    for (int k = 0; k < in[0].rank; k++)
        number[k] = known_number(ELEM_INT64, (double)in[0].dim[k]);
    if (has_attr(m, "start") || has_attr(m, "end"))
        return true;
    out.at = number;
    *done = true;
    return give_numbers(m, 0, &out);
}

static bool v_constant_of_shape(Import *m, const Numbers *in, bool *done)
{
    const OnnxTensor *value = attr_tensor(m, "value");
    Numbers out = {.elem = value ? value->elem : ELEM_FLOAT, .rank = (int)in[0].count, .count = 1};
    if (in[0].count > 1 || elem_dtype(out.elem) == DTYPES)
        return true;
    for (int k = 0; k < out.rank; k++) {
        out.dim[k] = in[0].at[k].integer;
        if (in[0].at[k].expr || out.dim[k] < 0 || out.dim[k] > MAX_FOLLOWED)
            return true;
        out.count *= out.dim[k];
    }
    Number *number = ARENA_ARRAY(m->arena, Number, (size_t)out.count + 1);
    for (int64_t i = 0; i < out.count; i++)
        number[i] = known_number(out.elem, value ? onnx_number(value, 0) : 0);
    out.at = number;
    *done = true;
    return give_numbers(m, 0, &out);
}

static bool v_range(Import *m, const Numbers *in, bool *done)
{
    Numbers out = {.elem = in[0].elem, .rank = 1};
    for (int i = 0; i < 3; i++)
        if (in[i].at[0].expr || !is_whole(in[i].elem) || in[i].at[0].integer > INT32_MAX ||
            in[i].at[0].integer < INT32_MIN)
            return true;
    int64_t from = in[0].at[0].integer, to = in[1].at[0].integer, step = in[2].at[0].integer;
    int64_t span = step > 0 ? to - from : from - to, size = step < 0 ? -step : step;
    out.count = out.dim[0] = span > 0 && size ? (span + size - 1) / size : 0;
    if (!step || out.count > MAX_FOLLOWED)
        return true;
    Number *number = ARENA_ARRAY(m->arena, Number, (size_t)out.count + 1);
    for (int64_t i = 0; i < out.count; i++)
        number[i] = known_number(out.elem, (double)(from + i * step));
    out.at = number;
    *done = true;
    return give_numbers(m, 0, &out);
}

static bool v_expand(Import *m, const Numbers *in, bool *done)
{
    Numbers shape = {.elem = in[0].elem, .rank = (int)in[1].count, .count = 1}, out = {0};
    if (in[1].count > MAX_RANK)
        return true;
    for (int k = 0; k < shape.rank; k++) {
        shape.dim[k] = in[1].at[k].integer;
        if (in[1].at[k].expr || shape.dim[k] < 1)
            return true;
    }
    Numbers both[2] = {in[0], shape};
    if (!broadcast_numbers(both, 2, &out))
        return true;
    Number *number = ARENA_ARRAY(m->arena, Number, (size_t)out.count + 1);
    for (int64_t i = 0; i < out.count; i++)
        number[i] = in[0].at[place_in(&in[0], &out, i)];
    out.elem = in[0].elem;
    out.at = number;
    *done = true;
    return give_numbers(m, 0, &out);
}

static const Mover movers[] = {
    {"Where", 3, 3, 3, v_where},
    {"Cast", 1, 1, 1, v_cast},
    {"Identity", 1, 1, 1, v_identity},
    {"Squeeze", 1, 2, 1, v_squeeze},
    {"Unsqueeze", 1, 2, 1, v_unsqueeze},
    {"Reshape", 2, 2, 2, v_reshape},
    {"Concat", 1, 64, 64, v_concat},
    {"Gather", 2, 2, 2, v_gather},
    {"Slice", 1, 5, 1, v_slice},
    {"ReduceProd", 1, 2, 1, v_prod},
    {"ReduceSum", 1, 2, 1, v_sum},
    {"ReduceMax", 1, 2, 1, v_max},
    {"ReduceMin", 1, 2, 1, v_min},
    {"Shape", 1, 1, 1, v_shape},
    {"ConstantOfShape", 1, 1, 1, v_constant_of_shape},
    {"Range", 3, 3, 3, v_range},
    {"Expand", 2, 2, 2, v_expand},
};

const Mover *mover_find(const char *op)
{
    for (size_t i = 0; i < sizeof movers / sizeof *movers; i++)
        if (strcmp(movers[i].op, op) == 0)
            return &movers[i];
    return NULL;
}
