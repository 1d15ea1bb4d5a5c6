/* Ops that only look at their operand in another way: all of them are views on the edge, and cost
 * nothing. A reshape that the strides forbid is the one that copies. */
#include "frontend/ops/rules.h"

#include <string.h>

/* ---- Views for composites (rules.h) --------------------------------------------------------- */

Use use_reshape(Graph *g, const Call *from, Use use, int rank, const int64_t *dim)
{
    if (use.value == NONE)
        return use;
    View view = use_view(g, use), out;
    if (view_reshape(&view, rank, dim, &out))
        return use_make(g, use.value, out);
    use = call_op(g, from, "copy", 1, &use);
    if (use.value == NONE)
        return use;
    view = use_view(g, use);
    view_reshape(&view, rank, dim, &out);
    return use_make(g, use.value, out);
}

Use use_permute(Graph *g, Use use, const int *perm)
{
    if (use.value == NONE)
        return use;
    View view = use_view(g, use), out = view;
    for (int i = 0; i < view.rank; i++) {
        out.dim[i] = view.dim[perm[i]];
        out.stride[i] = view.stride[perm[i]];
    }
    return use_make(g, use.value, out);
}

Use use_window(Graph *g, Use use, int axis, int64_t start, int64_t length)
{
    if (use.value == NONE)
        return use;
    View view = use_view(g, use);
    view.offset += start * view.stride[axis];
    view.dim[axis] = length;
    return use_make(g, use.value, view);
}

Use use_along(Graph *g, Use vector, int axis, int rank)
{
    if (vector.value == NONE)
        return vector;
    View view = use_view(g, vector);
    View out = {.rank = (uint8_t)(rank - axis), .offset = view.offset};
    for (int i = 0; i < out.rank; i++) {
        out.dim[i] = i ? 1 : view.dim[0];
        out.stride[i] = i ? 1 : view.stride[0];
    }
    return use_make(g, vector.value, out);
}

static bool result_view(Graph *g, Call *c, View view)
{
    call_result(g, c, use_make(g, call_operand(c, 0).value, view));
    return true;
}

/* ---- Dims ------------------------------------------------------------------------------------ */

static const char *list_text(Graph *g, const Attr *list)
{
    return shape_text(g->arena, DTYPES, list->count, list->list);
}

/* Product of dims, or -1 where it is too large to be that of any tensor. */
static int64_t product(int rank, const int64_t *dim)
{
    int64_t count = 1;
    for (int i = 0; i < rank; i++) {
        if (count > (INT64_C(1) << 56) / dim[i])
            return -1;
        count *= dim[i];
    }
    return count;
}

static bool build_reshape(Graph *g, Call *c)
{
    View view = call_view(g, c, 0);
    Attr shape = *call_attr(c, "shape");
    int rank = shape.count, free_axis = -1;
    int64_t dim[MAX_RANK], count = view_count(&view);
    for (int i = 0; i < rank; i++) {
        dim[i] = shape.list[i];
        if (dim[i] == -1 && free_axis >= 0)
            return call_error(g, c, "shape %s has more than one -1", list_text(g, &shape));
        if (dim[i] == -1)
            dim[free_axis = i] = 1;
        else if (dim[i] < 1)
            return call_error(g, c, "shape %s: sizes must be positive, or -1 to infer one",
                              list_text(g, &shape));
    }
    int64_t given = product(rank, dim);
    if (free_axis >= 0 && given > 0 && count % given == 0)
        dim[free_axis] = count / given;
    else if (given != count)
        return call_error_at(g, c, 0, "cannot reshape %s with %lld elements to %s",
                             use_text(g, call_operand(c, 0)), (long long)count,
                             list_text(g, &shape));
    Use out = use_reshape(g, c, call_operand(c, 0), rank, dim);
    call_result(g, c, out);
    return out.value != NONE;
}

static bool build_flatten(Graph *g, Call *c)
{
    View view = call_view(g, c, 0);
    int64_t from = call_int(c, "axis"), end = call_int(c, "end"), dim[MAX_RANK];
    from = from < 0 ? from + view.rank : from;
    if (from < 0 || from > view.rank || from == MAX_RANK)
        return call_error_at(g, c, 0, "axis = %lld is out of range for %s",
                             (long long)call_int(c, "axis"), use_text(g, call_operand(c, 0)));
    end = end < 0 ? end + view.rank : end;
    if (end >= view.rank || (end < from && from < view.rank))
        return call_error_at(g, c, 0, "end = %lld is out of range for %s, or before axis %lld",
                             (long long)call_int(c, "end"), use_text(g, call_operand(c, 0)),
                             (long long)from);
    int after = from < view.rank ? view.rank - 1 - (int)end : 0;
    memcpy(dim, view.dim, sizeof dim);
    dim[from] = product(view.rank - (int)from - after, view.dim + from);
    memcpy(dim + from + 1, view.dim + view.rank - after, (size_t)after * sizeof *dim);
    Use out = use_reshape(g, c, call_operand(c, 0), (int)from + 1 + after, dim);
    call_result(g, c, out);
    return out.value != NONE;
}

static bool build_transpose(Graph *g, Call *c)
{
    View view = call_view(g, c, 0);
    const Attr *list = call_attr(c, "perm");
    int perm[MAX_RANK];
    for (int i = 0; i < view.rank; i++)
        perm[i] = i;
    if (list->count == 0) {
        if (view.rank < 2)
            return call_error_at(g, c, 0, "%s has fewer than two axes to transpose",
                                 use_text(g, call_operand(c, 0)));
        perm[view.rank - 1] = view.rank - 2;
        perm[view.rank - 2] = view.rank - 1;
    } else {
        uint32_t seen;
        if (list->count != view.rank)
            return call_error_at(g, c, 0, "perm %s has %d of the %d axes of %s", list_text(g, list),
                                 list->count, view.rank, use_text(g, call_operand(c, 0)));
        if (!axes_bits(g, c, "perm", view.rank, &seen))
            return false;
        for (int i = 0; i < view.rank; i++)
            perm[i] = (int)(list->list[i] < 0 ? list->list[i] + view.rank : list->list[i]);
    }
    call_result(g, c, use_permute(g, call_operand(c, 0), perm));
    return true;
}

static bool build_squeeze(Graph *g, Call *c)
{
    View view = call_view(g, c, 0), out = {.offset = view.offset};
    uint32_t bits;
    if (!axes_bits(g, c, "axis", view.rank, &bits))
        return false;
    for (int i = 0; i < view.rank; i++) {
        bool named = call_attr(c, "axis")->count > 0;
        if (bits >> i & 1 && view.dim[i] != 1 && named)
            return call_error_at(g, c, 0, "axis %d of %s does not have size 1", i,
                                 use_text(g, call_operand(c, 0)));
        if (bits >> i & 1 && view.dim[i] == 1)
            continue;
        out.dim[out.rank] = view.dim[i];
        out.stride[out.rank++] = view.stride[i];
    }
    return result_view(g, c, out);
}

static bool build_unsqueeze(Graph *g, Call *c)
{
    View view = call_view(g, c, 0), out = {.offset = view.offset};
    int rank = view.rank + call_attr(c, "axis")->count;
    uint32_t bits;
    if (rank > MAX_RANK)
        return call_error_at(g, c, 0, "%s would have more than %d dimensions",
                             use_text(g, call_operand(c, 0)), MAX_RANK);
    if (!axes_bits(g, c, "axis", rank, &bits))
        return false;
    for (int i = 0, from = 0; i < rank; i++) {
        bool added = bits >> i & 1;
        out.dim[i] = added ? 1 : view.dim[from];
        out.stride[i] = added ? 1 : view.stride[from];
        from += !added;
    }
    out.rank = (uint8_t)rank;
    return result_view(g, c, out);
}

static bool build_expand(Graph *g, Call *c)
{
    View view = call_view(g, c, 0);
    const Attr *shape = call_attr(c, "shape");
    int64_t dim[MAX_RANK];
    const char *error;
    int before = shape->count - view.rank;
    for (int i = 0; i < shape->count; i++)
        dim[i] = shape->list[i] == -1 && i >= before ? view.dim[i - before] : shape->list[i];
    if (!dims_check(call_dtype(g, c, 0), shape->count, dim, &error))
        return call_error(g, c, "shape %s is invalid: %s", list_text(g, shape), error);
    for (int i = 0; i < view.rank; i++)
        if (before < 0 || (view.dim[i] != 1 && view.dim[i] != dim[before + i]))
            return call_error_at(g, c, 0, "%s does not broadcast to %s",
                                 use_text(g, call_operand(c, 0)), list_text(g, shape));
    return result_view(g, c, view_broadcast(&view, shape->count, dim));
}

/* ---- Parts ----------------------------------------------------------------------------------- */

static bool build_split(Graph *g, Call *c)
{
    View view = call_view(g, c, 0);
    const Attr *parts = call_attr(c, "parts");
    int axis;
    if (!call_axis(g, c, "axis", view.rank, &axis))
        return false;
    int64_t length = view.dim[axis], start = 0;
    bool equal = parts->count == 1; /* a number of parts; else their sizes */
    int64_t count = equal ? parts->list[0] : parts->count;
    if (equal && (count < 1 || length % count != 0))
        return call_error_at(g, c, 0, "axis %d of %s cannot be split into %lld equal parts", axis,
                             use_text(g, call_operand(c, 0)), (long long)count);
    for (int64_t i = 0; i < count; i++) {
        int64_t size = equal ? length / count : parts->list[i];
        if (size < 1 || size > length - start)
            break;
        call_result(g, c, use_window(g, call_operand(c, 0), axis, start, size));
        start += size;
    }
    if (start == length && (int64_t)c->result.count == count)
        return true;
    return call_error_at(g, c, 0, "parts %s do not sum to %lld, the size of axis %d of %s",
                         list_text(g, parts), (long long)length, axis,
                         use_text(g, call_operand(c, 0)));
}

/* Elements from start, before stop, every step; a negative step begins at the last of them. */
static bool build_slice(Graph *g, Call *c)
{
    View view = call_view(g, c, 0);
    const Attr *start = call_attr(c, "start"), *stop = call_attr(c, "stop");
    const Attr *step = call_attr(c, "step");
    if (start->count > view.rank || stop->count > view.rank || step->count > view.rank)
        return call_error_at(g, c, 0, "too many indices: %s has %d axes",
                             use_text(g, call_operand(c, 0)), view.rank);
    for (int i = 0; i < view.rank; i++) {
        int64_t from = i < start->count ? start->list[i] : 0;
        int64_t to = i < stop->count ? stop->list[i] : view.dim[i];
        int64_t by = i < step->count ? step->list[i] : 1;
        if (from < 0 || from >= to || to > view.dim[i])
            return call_error_at(g, c, 0, "%lld:%lld is empty or out of range for axis %d of %s",
                                 (long long)from, (long long)to, i,
                                 use_text(g, call_operand(c, 0)));
        if (by == 0 || by == INT64_MIN)
            return call_error(g, c, "the slice step of axis %d must not be 0", i);
        view.offset += (by > 0 ? from : to - 1) * view.stride[i];
        view.dim[i] = (to - from - 1) / (by > 0 ? by : -by) + 1;
        view.stride[i] *= view.dim[i] > 1 ? by : 1;
    }
    return result_view(g, c, view);
}

static bool build_flip(Graph *g, Call *c)
{
    View view = call_view(g, c, 0);
    uint32_t bits;
    if (!axes_bits(g, c, "axis", view.rank, &bits))
        return false;
    for (int i = 0; i < view.rank; i++)
        if (bits >> i & 1) {
            view.offset += (view.dim[i] - 1) * view.stride[i];
            view.stride[i] = -view.stride[i];
        }
    return result_view(g, c, view);
}

/* An axis that is repeated becomes two, of which the outer has a stride of 0. */
static bool build_tile(Graph *g, Call *c)
{
    View view = call_view(g, c, 0), wide = {.offset = view.offset};
    const Attr *times = call_attr(c, "times");
    int64_t dim[MAX_RANK];
    const char *error;
    if (times->count != view.rank)
        return call_error_at(g, c, 0, "times %s must have one number for each axis of %s",
                             list_text(g, times), use_text(g, call_operand(c, 0)));
    for (int i = 0; i < view.rank; i++) {
        int64_t n = times->list[i];
        if (n < 1 || n > (INT64_C(1) << 56) / view.dim[i])
            return call_error(g, c, "times %s: out of range", list_text(g, times));
        dim[i] = n * view.dim[i];
        int axes = n > 1 && view.dim[i] > 1 ? 2 : 1;
        if (wide.rank + axes > MAX_RANK)
            return call_error(g, c, "times %s repeats too many axes in one call",
                              list_text(g, times));
        if (axes == 2)
            wide.dim[wide.rank++] = n; /* stride 0 */
        wide.dim[wide.rank] = axes == 2 ? view.dim[i] : dim[i];
        wide.stride[wide.rank++] = n > 1 && axes == 1 ? 0 : view.stride[i];
    }
    if (!dims_check(call_dtype(g, c, 0), view.rank, dim, &error))
        return call_error(g, c, "times %s: %s", list_text(g, times), error);
    Use out = use_reshape(g, c, use_make(g, call_operand(c, 0).value, wide), view.rank, dim);
    call_result(g, c, out);
    return out.value != NONE;
}

#define X                                          \
    {                                              \
        .name = "x", .help = "any dtype and shape" \
    }
#define LIST(NAME, FALLBACK, HELP)                                               \
    {                                                                            \
        .name = (NAME), .kind = ARG_INTS, .flags = ARG_FRONT, .count = MAX_RANK, \
        .fallback = (FALLBACK), .help = (HELP)                                   \
    }
#define AXIS_LIST(HELP)                                                          \
    {                                                                            \
        .name = "axis", .kind = ARG_INTS, .flags = ARG_FRONT, .count = MAX_RANK, \
        .fallback = "all", .words = "all", .help = (HELP)                        \
    }
#define ONE_AXIS(FALLBACK, HELP)                                                     \
    {                                                                                \
        .name = "axis", .kind = ARG_INT, .flags = ARG_FRONT, .fallback = (FALLBACK), \
        .help = (HELP)                                                               \
    }

const OpRow ops_shape[] = {
    {.name = "reshape",
     .help = "the same elements in order under other dims; a view where the strides allow",
     .args = {X, LIST("shape", NULL, "sizes; one may be -1: what is left")},
     .build = build_reshape},
    {.name = "flatten",
     .help = "joins the axes from `axis` to `end`: [N, C, H, W] becomes [N, C*H*W]",
     .args = {X,
              ONE_AXIS("1", "first of the joined axes"),
              {.name = "end",
               .kind = ARG_INT,
               .flags = ARG_FRONT,
               .fallback = "-1",
               .help = "last of them"}},
     .build = build_flatten},
    {.name = "transpose",
     .help = "axes in another order; a view",
     .args = {X, LIST("perm", "none",
                      "for each axis of the result, which of x it is; without it "
                      "the last two change places")},
     .build = build_transpose},
    {.name = "squeeze",
     .help = "drops axes of size 1; a view",
     .args = {X, AXIS_LIST("which; all: those of size 1")},
     .build = build_squeeze},
    {.name = "unsqueeze",
     .help = "adds axes of size 1; a view",
     .args = {X, LIST("axis", NULL, "their positions in the result")},
     .build = build_unsqueeze},
    {.name = "expand",
     .help = "broadcasts to a shape; a view",
     .args = {X, LIST("shape", NULL, "sizes; -1 keeps that of x")},
     .build = build_expand},
    {.name = "split",
     .help = "several results: parts of an axis; views",
     .args = {X, LIST("parts", NULL, "how many equal parts, or a list of their sizes"),
              ONE_AXIS("-1", "which")},
     .build = build_split},
    {.name = "slice",
     .help = "x[start:stop:step, ...] with one entry for each leading axis; a view",
     .args = {X, LIST("start", "none", "first element"), LIST("stop", "none", "after the last"),
              LIST("step", "none", "negative: from the last to the first")},
     .build = build_slice},
    {.name = "flip",
     .help = "axes from end to start; a view",
     .args = {X, AXIS_LIST("which")},
     .build = build_flip},
    {.name = "tile",
     .help = "repeats x along its axes",
     .args = {X, LIST("times", NULL, "how often, for each axis")},
     .build = build_tile},
    {0},
};
