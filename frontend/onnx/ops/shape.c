/* Dims: what gives a tensor another shape, cuts it or joins it. */
#include "frontend/onnx/translate.h"

#include <string.h>

static const Tensor *first(Import *m)
{
    const Tensor *x = given(m, 0);
    if (!x)
        refuse(m, "it has no operand");
    return x;
}

static bool constant(Import *m)
{
    const OnnxTensor *value = attr_tensor(m, "value");
    size_t count;
    if (value)
        return result_data(m, 0, value);
    const double *reals = attr_floats(m, has_attr(m, "value_floats") ? "value_floats" : "", &count);
    const int64_t *whole = attr_ints(m, "value_ints", &count);
    bool one = has_attr(m, "value_float") || has_attr(m, "value_int");
    bool is_real = reals || has_attr(m, "value_float");
    if (reals)
        attr_floats(m, "value_floats", &count);
    if (!reals && !whole && !one)
        return refuse(m, "its value is a string or a sparse tensor");
    int64_t dim = one ? 1 : (int64_t)count;
    Number *number = number_array(m, dim);
    for (int64_t i = 0; i < dim; i++) {
        number[i].real = reals ? reals[i] : one && is_real ? attr_float(m, "value_float", 0) : 0;
        if (!is_real)
            number[i].integer = whole ? whole[i] : attr_int(m, "value_int", 0);
        if (!is_real)
            number[i].real = (double)number[i].integer;
    }
    return result_numbers(m, 0, is_real ? ELEM_FLOAT : ELEM_INT64, !one, &dim, number);
}

static bool shape(Import *m)
{
    const Tensor *x = first(m);
    if (!x)
        return false;
    int64_t start = attr_int(m, "start", 0), end = attr_int(m, "end", x->rank);
    start = start < 0 ? start + x->rank : start;
    end = end < 0 ? end + x->rank : end;
    start = start < 0 ? 0 : start > x->rank ? x->rank : start;
    end = end > x->rank ? x->rank : end;
    int64_t count = end > start ? end - start : 0;
    Number *number = number_array(m, count);
    for (int64_t i = 0; i < count; i++)
        number[i] = size_number(m, x, (int)(start + i));
    return result_numbers(m, 0, ELEM_INT64, 1, &count, number);
}

static bool size(Import *m)
{
    const Tensor *x = first(m);
    if (!x)
        return false;
    Number *all = number_array(m, 1);
    *all = (Number){.real = 1, .integer = 1, .positive = true};
    for (int i = 0; i < x->rank; i++) {
        Number one = size_number(m, x, i);
        if (one.expr || all->expr)
            all->expr = binary(m, "mul", number_expr(m, all, I64), number_expr(m, &one, I64));
        all->integer *= one.integer;
        all->real = (double)all->integer;
    }
    return result_numbers(m, 0, ELEM_INT64, 0, NULL, all);
}

/* ---- The same elements ---------------------------------------------------------------------- */

static bool reshape_older(Import *m)
{
    size_t count;
    const Tensor *x = first(m);
    const int64_t *dims = attr_ints(m, "shape", &count);
    if (!x || !dims || count > MAX_RANK)
        return refuse(m, "shape is missing, or too long");
    const Expr *dim[MAX_RANK];
    for (size_t i = 0; i < count; i++)
        dim[i] = dims[i] == 0 && (int)i < x->rank ? size_of(m, x, (int)i) : integer(m, dims[i]);
    return result(m, 0, reshape(m, use(m, 0), count, dim));
}

static bool reshape_node(Import *m)
{
    int64_t count;
    const Tensor *x = first(m);
    const Number *dims = x ? known(m, 1, "shape", &count) : NULL;
    if (!dims)
        return false;
    if (count > MAX_RANK)
        return refuse(m, "shape has %lld sizes, and gplan takes up to %d", (long long)count,
                      MAX_RANK);
    const Expr *dim[MAX_RANK];
    bool keeps = !attr_int(m, "allowzero", 0);
    for (int64_t i = 0; i < count; i++) {
        bool same = keeps && !dims[i].expr && dims[i].integer == 0 && i < x->rank;
        dim[i] = same ? size_of(m, x, (int)i) : number_expr(m, &dims[i], I64);
    }
    return result(m, 0, reshape(m, use(m, 0), (size_t)count, dim));
}

static bool flatten(Import *m)
{
    const Tensor *x = first(m);
    int64_t axis = attr_int(m, "axis", 1);
    if (!x || axis < -x->rank || axis > x->rank)
        return refuse(m, "axis %lld is outside of the tensor", (long long)axis);
    axis = axis < 0 ? axis + x->rank : axis;
    const Expr *dim[2] = {integer(m, -1), integer(m, 1)};
    Number rows = {.real = 1, .integer = 1};
    for (int i = 0; i < axis; i++) {
        Number one = size_number(m, x, i);
        if (one.expr || rows.expr)
            rows.expr =
                rows.integer == 1 && !rows.expr
                    ? number_expr(m, &one, I64)
                    : binary(m, "mul", number_expr(m, &rows, I64), number_expr(m, &one, I64));
        rows.integer *= one.integer;
    }
    dim[0] = number_expr(m, &rows, I64);
    if (axis < x->rank)
        dim[1] = integer(m, -1);
    return result(m, 0, reshape(m, use(m, 0), 2, dim));
}

static bool transpose(Import *m)
{
    const Tensor *x = first(m);
    size_t count;
    int64_t turned[MAX_RANK];
    if (!x)
        return false;
    const int64_t *perm = attr_ints(m, "perm", &count);
    for (int i = 0; i < x->rank; i++)
        turned[i] = x->rank - 1 - i;
    if (x->rank < 2)
        return result_same(m, 0, x);
    return result(m, 0,
                  CALL(m, "transpose", {use(m, 0)},
                       {ints(m, perm ? count : (size_t)x->rank, perm ? perm : turned), "perm"}));
}

static bool squeeze(Import *m)
{
    const int64_t *axes;
    int64_t count;
    if (!first(m) || !ints_of(m, "axes", 1, &axes, &count))
        return false;
    if (count == 0)
        return result_same(m, 0, given(m, 0));
    return result(
        m, 0,
        CALL(m, "squeeze", {use(m, 0)}, {count > 0 ? ints(m, (size_t)count, axes) : NULL, "axis"}));
}

static bool unsqueeze(Import *m)
{
    const int64_t *axes;
    int64_t count;
    const Tensor *x = first(m);
    const Expr *dim[MAX_RANK];
    bool fresh[MAX_RANK] = {0};
    if (!x || !ints_of(m, "axes", 1, &axes, &count))
        return false;
    if (count < 0 || x->rank + count > MAX_RANK)
        return refuse(m, "axes is missing, or the result has too many dimensions");
    int rank = x->rank + (int)count, own = 0;
    for (int64_t i = 0; i < count; i++) {
        int axis;
        if (!take_axis(m, axes[i], rank, &axis))
            return false;
        if (fresh[axis])
            return refuse(m, "axes has %d twice", axis);
        fresh[axis] = true;
    }
    if (x->rank)
        return result(m, 0,
                      CALL(m, "unsqueeze", {use(m, 0)}, {ints(m, (size_t)count, axes), "axis"}));
    for (int i = 0; i < rank; i++)
        dim[i] = fresh[i] ? integer(m, 1) : size_of(m, x, own++);
    return result(m, 0, reshape(m, use_declared(m, 0), (size_t)rank, dim));
}

static bool expand(Import *m)
{
    int64_t count;
    const Tensor *x = first(m);
    const Number *dims = x ? known(m, 1, "shape", &count) : NULL;
    if (!dims)
        return false;
    if (count > MAX_RANK)
        return refuse(m, "shape has too many sizes");
    int rank = x->rank > count ? x->rank : (int)count;
    const Expr *dim[MAX_RANK];
    for (int i = 0; i < rank; i++) { /* a 1 keeps what is there */
        int own = i - (rank - x->rank), other = i - (rank - (int)count);
        bool one = other < 0 || (!dims[other].expr && dims[other].integer == 1);
        dim[i] = one && own >= 0 ? size_of(m, x, own)
                 : one           ? integer(m, 1)
                                 : number_expr(m, &dims[other], I64);
    }
    return result(m, 0,
                  CALL(m, "expand", {use_declared(m, 0)}, {list(m, (size_t)rank, dim), "shape"}));
}

static bool constant_of_shape(Import *m)
{
    int64_t count;
    const Number *dims = known(m, 0, "shape", &count);
    const OnnxTensor *value = attr_tensor(m, "value");
    if (!dims)
        return false;
    if (count > MAX_RANK || (value && (value->count != 1 || elem_dtype(value->elem) == DTYPES)))
        return refuse(m, "its value or its shape cannot be");
    int elem = value ? value->elem : ELEM_FLOAT;
    Number number = {.real = value ? onnx_number(value, 0) : 0};
    if (value && !elem_is_float(elem))
        number.integer = onnx_integer(value, 0);
    const Expr *dim[MAX_RANK];
    for (int i = 0; i < count; i++)
        dim[i] = number_expr(m, &dims[i], I64);
    const Expr *one = constant_expr(m, elem, &number);
    return one &&
           result_as(m, 0, CALL(m, "expand", {one}, {list(m, (size_t)count, dim), "shape"}), elem);
}

static bool tile(Import *m)
{
    const Tensor *x = first(m);
    int64_t count;
    const Number *times = x ? known(m, 1, "repeats", &count) : NULL;
    if (!times)
        return false;
    if (count != x->rank)
        return refuse(m, "repeats has %lld numbers for %d dimensions", (long long)count, x->rank);
    const Expr *item[MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        item[i] = number_expr(m, &times[i], I64);
    return result(m, 0, CALL(m, "tile", {use(m, 0)}, {list(m, (size_t)count, item), "times"}));
}

/* ---- Parts ---------------------------------------------------------------------------------- */

static bool concat(Import *m)
{
    Item item[66];
    int axis;
    const Tensor *x = first(m);
    if (!x || inputs(m) > 64)
        return refuse(m, "it has no operand, or more than 64");
    if (!take_axis(m, attr_int(m, "axis", opset(m) < 4 ? 1 : 0), x->rank, &axis))
        return false;
    if (inputs(m) == 1)
        return result_same(m, 0, x);
    for (int i = 0; i < inputs(m); i++)
        item[i] = (Item){use(m, i)};
    item[inputs(m)] = (Item){integer(m, axis), "axis"};
    return result(m, 0, call(m, "concat", (size_t)inputs(m) + 1, item));
}

static bool split(Import *m)
{
    const Tensor *x = first(m);
    const int64_t *sizes;
    int64_t count, at = 0;
    int axis, parts = outputs(m);
    if (!x || !take_axis(m, attr_int(m, "axis", 0), x->rank, &axis) ||
        !ints_of(m, "split", opset(m) >= 13 ? 1 : -1, &sizes, &count))
        return false;
    if (count >= 0 && count != parts)
        return refuse(m, "split has %lld sizes for %d outputs", (long long)count, parts);
    if (x->open[axis] && count < 0)
        return refuse(m, "the axis it splits is a free dimension");
    int64_t each = (x->dim[axis] + parts - 1) / parts;
    for (int i = 0; i < parts; i++) {
        int64_t to = count >= 0 ? at + sizes[i] : at + each;
        to = to > x->dim[axis] ? x->dim[axis] : to;
        if (!result(m, i, slice_axis(m, use(m, 0), axis, integer(m, at), integer(m, to))))
            return false;
        at = to;
    }
    return true;
}

/* Bounds as ONNX has them: cut to the size, where gplan's are exact. */
static int64_t bound(int64_t at, int64_t size, int64_t step)
{
    if (at < 0)
        at = at < -size ? (step > 0 ? 0 : -1) : at + size;
    int64_t least = step > 0 ? 0 : -1, most = step > 0 ? size : size - 1;
    return at < least ? least : at > most ? most : at;
}

static Subscript range(Import *m, const Tensor *x, int axis, const Number *from, const Number *to,
                       int64_t step)
{
    Subscript s = {.kind = SUBSCRIPT_RANGE};
    int64_t size = x->dim[axis];
    int64_t start = bound(from->integer, size, step), stop = bound(to->integer, size, step);
    bool whole_start = start == (step > 0 ? 0 : size - 1) && !from->expr;
    bool whole_stop =
        !to->expr &&
        (step > 0 ? to->integer >= INT32_MAX || (stop == size && !x->open[axis]) : stop == -1);
    if (!whole_start)
        s.start = from->expr                           ? number_expr(m, from, I64)
                  : x->open[axis] && from->integer < 0 ? integer(m, from->integer)
                                                       : integer(m, start);
    if (!whole_stop)
        s.stop = to->expr                           ? number_expr(m, to, I64)
                 : x->open[axis] && to->integer < 0 ? integer(m, to->integer)
                                                    : integer(m, stop);
    if (step != 1)
        s.step = integer(m, step);
    return s;
}

static const Number *attr_numbers(Import *m, const char *name, int64_t *count)
{
    size_t length;
    const int64_t *ints = attr_ints(m, name, &length);
    *count = (int64_t)length;
    if (!ints) {
        refuse(m, "the attribute %s is missing", name);
        return NULL;
    }
    Number *number = number_array(m, *count);
    for (size_t i = 0; i < length; i++)
        number[i] = (Number){.integer = ints[i], .real = (double)ints[i]};
    return number;
}

static bool slice(Import *m)
{
    const Tensor *x = first(m);
    int64_t count[4];
    const int64_t *axes, *steps;
    if (!x)
        return false;
    bool older = opset(m) < 10;
    const Number *starts =
        older ? attr_numbers(m, "starts", &count[0]) : known(m, 1, "starts", &count[0]);
    const Number *ends = !starts ? NULL
                         : older ? attr_numbers(m, "ends", &count[1])
                                 : known(m, 2, "ends", &count[1]);
    if (!ends || !ints_of(m, "axes", older ? -1 : 3, &axes, &count[2]) ||
        !ints_of(m, "steps", older ? -1 : 4, &steps, &count[3]))
        return false;
    if (count[0] != count[1] || count[0] > x->rank || (count[2] >= 0 && count[2] != count[0]) ||
        (count[3] >= 0 && count[3] != count[0]))
        return refuse(m, "starts, ends, axes and steps differ in length");
    Subscript s[MAX_RANK];
    int last = -1;
    for (int i = 0; i < x->rank; i++)
        s[i] = (Subscript){.kind = SUBSCRIPT_RANGE};
    for (int i = 0; i < count[0]; i++) {
        int axis;
        int64_t step = count[3] >= 0 ? steps[i] : 1;
        if (!take_axis(m, count[2] >= 0 ? axes[i] : i, x->rank, &axis))
            return false;
        if (step == 0)
            return refuse(m, "a step is 0");
        if (starts[i].expr == NULL && ends[i].expr == NULL) {
            int64_t from = bound(starts[i].integer, x->dim[axis], step);
            int64_t to = bound(ends[i].integer, x->dim[axis], step);
            if (step > 0 ? to <= from : to >= from)
                return refuse(m, "the slice is empty, and gplan has no tensors without elements");
        }
        s[axis] = range(m, x, axis, &starts[i], &ends[i], step);
        last = axis > last ? axis : last;
    }
    if (last < 0)
        return result_same(m, 0, x);
    return result(m, 0, subscripts(m, use(m, 0), (size_t)last + 1, s));
}

/* Elements of an axis, from one place to before another, by a step. */
static const Expr *piece(Import *m, const Expr *x, int axis, int64_t from, int64_t to, int64_t step)
{
    Subscript s[MAX_RANK];
    for (int i = 0; i <= axis; i++)
        s[i] = (Subscript){.kind = SUBSCRIPT_RANGE};
    s[axis].start = integer(m, from);
    s[axis].stop = step < 0 && to < 0 ? NULL : integer(m, to);
    s[axis].step = step == 1 ? NULL : integer(m, step);
    return subscripts(m, x, (size_t)axis + 1, s);
}

/* What comes before or after an axis, in order. */
static const Expr *margin(Import *m, const Tensor *x, const char *mode, int axis, int64_t count,
                          bool after)
{
    int64_t size = x->dim[axis];
    if (strcmp(mode, "wrap") == 0)
        return after ? piece(m, x->expr, axis, 0, count, 1)
                     : piece(m, x->expr, axis, size - count, size, 1);
    if (strcmp(mode, "reflect") == 0)
        return after ? piece(m, x->expr, axis, size - 2, size - 2 - count, -1)
                     : piece(m, x->expr, axis, count, 0, -1);
    const Expr *dim[MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        dim[i] = i == axis ? integer(m, count) : size_of(m, x, i);
    const Expr *edge =
        after ? piece(m, x->expr, axis, size - 1, size, 1) : piece(m, x->expr, axis, 0, 1, 1);
    return CALL(m, "expand", {edge}, {list(m, (size_t)x->rank, dim), "shape"});
}

static const Tensor *pad_axis(Import *m, const Tensor *x, const char *mode, int axis,
                              int64_t before, int64_t after)
{
    int64_t size = x->dim[axis], most = strcmp(mode, "reflect") == 0 ? size - 1 : size;
    if (x->open[axis])
        refuse(m, "mode %s along a free dimension", mode);
    else if (strcmp(mode, "edge") != 0 && (before > most || after > most))
        refuse(m, "mode %s has no more than %lld elements to take", mode, (long long)most);
    else
        return state(m, CALL(m, "concat", {before ? margin(m, x, mode, axis, before, false) : NULL},
                             {x->expr}, {after ? margin(m, x, mode, axis, after, true) : NULL},
                             {integer(m, axis), "axis"}));
    return NULL;
}

/* Negative ones cut. */
static const Tensor *cut_margins(Import *m, const Tensor *x, int64_t *before, int64_t *after)
{
    for (int i = 0; i < x->rank && x; i++) {
        if (before[i] >= 0 && after[i] >= 0)
            continue;
        int64_t from = before[i] < 0 ? -before[i] : 0, to = after[i] < 0 ? after[i] : 0;
        x = state(m, slice_axis(m, x->expr, i, integer(m, from), to ? integer(m, to) : NULL));
        if (!x)
            return NULL;
        before[i] = before[i] < 0 ? 0 : before[i];
        after[i] = after[i] < 0 ? 0 : after[i];
    }
    return x;
}

static bool pad_by(Import *m, const Tensor *given_x, const char *mode, int64_t *before,
                   int64_t *after)
{
    double value = attr_float(m, "value", 0);
    int64_t count;
    if (opset(m) >= 11 && given(m, 2)) {
        const Number *number = known(m, 2, "constant_value", &count);
        if (!number)
            return false;
        value = number->real;
    }
    Tensor *x = tensor_copy(m, given_x);
    x->expr = use(m, 0);
    const Tensor *cut = cut_margins(m, x, before, after);
    if (!cut)
        return false;
    if (strcmp(mode, "constant") == 0)
        return result(m, 0,
                      CALL(m, "pad", {cut->expr}, {ints(m, (size_t)x->rank, before), "before"},
                           {ints(m, (size_t)x->rank, after), "after"},
                           {value != 0 ? real(m, value) : NULL, "value"}));
    for (int i = 0; i < x->rank; i++)
        if ((before[i] || after[i]) && !(cut = pad_axis(m, cut, mode, i, before[i], after[i])))
            return false;
    return result(m, 0, cut->expr);
}

static bool pad(Import *m)
{
    const Tensor *x = first(m);
    const char *mode = attr_word(m, "mode", "constant");
    const int64_t *pads, *axes;
    int64_t count, some, before[MAX_RANK] = {0}, after[MAX_RANK] = {0};
    if (!x || !ints_of(m, opset(m) < 2 ? "paddings" : "pads", 1, &pads, &count) ||
        !ints_of(m, "axes", opset(m) >= 18 ? 3 : -1, &axes, &some))
        return false;
    if (some < 0)
        some = x->rank;
    if (count != 2 * some || some > x->rank)
        return refuse(m, "pads has %lld numbers for %lld axes", (long long)count, (long long)some);
    for (int i = 0; i < some; i++) {
        int axis = i;
        if (axes && !take_axis(m, axes[i], x->rank, &axis))
            return false;
        before[axis] = pads[i];
        after[axis] = pads[some + i];
    }
    return pad_by(m, x, mode, before, after);
}

/* [N, C, H, W] with blocks of space moved to channels, or back. */
static bool depth_to_space(Import *m)
{
    const Tensor *x = first(m);
    int64_t block = attr_int(m, "blocksize", 0);
    bool columns = strcmp(attr_word(m, "mode", "DCR"), "CRD") == 0;
    if (!x || x->rank != 4 || block < 1 || block > 1024 || x->dim[1] % (block * block))
        return refuse(m, "blocksize %lld does not go with its operand", (long long)block);
    const Expr *b = integer(m, block), *c = integer(m, x->dim[1] / (block * block));
    const Expr *n = size_of(m, x, 0), *h = size_of(m, x, 2), *w = size_of(m, x, 3);
    const Expr *apart[] = {n, columns ? c : b, b, columns ? b : c, h, w};
    static const int64_t by_depth[] = {0, 3, 4, 1, 5, 2}, by_column[] = {0, 1, 4, 2, 5, 3};
    const Expr *turned = CALL(m, "transpose", {reshape(m, use(m, 0), 6, apart)},
                              {ints(m, 6, columns ? by_column : by_depth), "perm"});
    const Expr *joined[] = {n, c, binary(m, "mul", h, b), binary(m, "mul", w, b)};
    return result(m, 0, reshape(m, turned, 4, joined));
}

static bool space_to_depth(Import *m)
{
    const Tensor *x = first(m);
    int64_t block = attr_int(m, "blocksize", 0);
    if (!x || x->rank != 4 || block < 1 || block > 1024)
        return refuse(m, "blocksize %lld does not go with its operand", (long long)block);
    bool columns = strcmp(attr_word(m, "mode", "DCR"), "CRD") == 0;
    static const int64_t by_depth[] = {0, 3, 5, 1, 2, 4}, by_column[] = {0, 1, 3, 5, 2, 4};
    const Expr *b = integer(m, block), *n = size_of(m, x, 0), *c = size_of(m, x, 1);
    const Expr *h = binary(m, "div", size_of(m, x, 2), b),
               *w = binary(m, "div", size_of(m, x, 3), b);
    const Expr *apart[] = {n, c, h, b, w, b};
    const Expr *turned = CALL(m, "transpose", {reshape(m, use(m, 0), 6, apart)},
                              {ints(m, 6, columns ? by_column : by_depth), "perm"});
    const Expr *joined[] = {n, binary(m, "mul", c, integer(m, block * block)), h, w};
    return result(m, 0, reshape(m, turned, 4, joined));
}

const Translation onnx_shape[] = {
    {"DepthToSpace", 1, depth_to_space},
    {"SpaceToDepth", 1, space_to_depth},
    {"Constant", 1, constant},
    {"Shape", 1, shape},
    {"Size", 1, size},
    {"Reshape", 1, reshape_older},
    {"Reshape", 5, reshape_node},
    {"Flatten", 1, flatten},
    {"Transpose", 1, transpose},
    {"Squeeze", 1, squeeze},
    {"Unsqueeze", 1, unsqueeze},
    {"Expand", 8, expand},
    {"ConstantOfShape", 9, constant_of_shape},
    {"Tile", 6, tile},
    {"Concat", 1, concat},
    {"Split", 1, split},
    {"Slice", 1, slice},
    {"Pad", 1, pad},
    {0},
};
