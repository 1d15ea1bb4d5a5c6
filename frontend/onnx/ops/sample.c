/* Elements picked by position: from a grid, backwards in time, back from a pool. */
#include "frontend/onnx/ops/window.h"

#include <string.h>

static bool grid_sample(Import *m)
{
    static const struct {
        const char *name, *mode;
    } modes[] = {{"bilinear", "bilinear"},
                 {"linear", "bilinear"},
                 {"nearest", "nearest"},
                 {"bicubic", "bicubic"},
                 {"cubic", "bicubic"}};
    const char *asked = attr_word(m, "mode", "bilinear"), *mode = NULL;
    const char *padding = attr_word(m, "padding_mode", "zeros");
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(modes[i].name, asked) == 0)
            mode = modes[i].mode;
    bool known_padding = strcmp(padding, "zeros") == 0 || strcmp(padding, "border") == 0 ||
                         strcmp(padding, "reflection") == 0;
    if (!given(m, 0) || !given(m, 1))
        return refuse(m, "it needs a tensor and a grid");
    if (!mode || !known_padding)
        return refuse(m, "mode %s, padding_mode %s", asked, padding);
    return result(m, 0,
                  CALL(m, "grid_sample", {use(m, 0)}, {use(m, 1)}, {word(m, mode), "mode"},
                       {word(m, padding), "padding"},
                       {boolean(m, attr_int(m, "align_corners", 0)), "align_corners"}));
}

/* Sequence b has its first lens[b] steps backwards, and the others as they are. */
static bool reverse_sequence(Import *m)
{
    const Tensor *x = given(m, 0), *lens = given(m, 1);
    int64_t batch = attr_int(m, "batch_axis", 1), time = attr_int(m, "time_axis", 0);
    if (!x || !lens || x->rank < 2 || batch + time != 1 || batch * time != 0)
        return refuse(m, "batch_axis and time_axis must be 0 and 1");
    const Expr *length =
        reshape(m, use(m, 1), 2,
                (const Expr *[]){integer(m, batch == 0 ? -1 : 1), integer(m, batch == 0 ? 1 : -1)});
    const Expr *step =
        reshape(m, CALL(m, "arange", {size_of(m, x, (int)time)}), 2,
                (const Expr *[]){integer(m, time == 0 ? -1 : 1), integer(m, time == 0 ? 1 : -1)});
    const Tensor *last = state(m, cast(m, length, I64)), *at = state(m, step);
    if (!last || !at)
        return false;
    const Expr *back = binary(m, "sub", binary(m, "sub", last->expr, integer(m, 1)), at->expr);
    const Tensor *index =
        state(m, CALL(m, "where", {binary(m, "less", at->expr, last->expr)}, {back}, {at->expr}));
    if (!index)
        return false;
    const Expr *dim[MAX_RANK], *place = index->expr;
    for (int i = 0; i < x->rank; i++)
        dim[i] = size_of(m, x, i);
    for (int i = 2; i < x->rank; i++)
        place = CALL(m, "unsqueeze", {place}, {integer(m, -1), "axis"});
    if (x->rank > 2)
        place = CALL(m, "expand", {place}, {list(m, (size_t)x->rank, dim), "shape"});
    return result(m, 0,
                  CALL(m, "gather_elements", {use(m, 0)}, {place}, {integer(m, time), "axis"}));
}

/* The dims of the result, as the pool that it undoes had them. */
static bool unpooled_dims(Import *m, const Tensor *x, int64_t *dim)
{
    Window w = {.axes = x->rank - 2};
    size_t count;
    const int64_t *kernel = attr_ints(m, "kernel_shape", &count);
    if (w.axes < 1 || w.axes > MAX_AXES || !kernel || count != (size_t)w.axes)
        return refuse(m, "kernel_shape does not fit %d dimensions", x->rank);
    memcpy(w.kernel, kernel, count * sizeof *kernel);
    if (!read_window(m, x, &w))
        return false;
    for (int i = 0; i < x->rank; i++) {
        if (x->open[i])
            return refuse(m, "its dimensions must be known");
        int k = i - 2;
        dim[i] = i < 2 ? x->dim[i]
                       : (x->dim[i] - 1) * w.stride[k] + w.kernel[k] - w.pad[k] - w.pad[w.axes + k];
    }
    return true;
}

/* With a margin after it, up to the shape that is asked for. */
static const Expr *pad_to_shape(Import *m, const Expr *x, int rank, const int64_t *dim)
{
    int64_t count, behind[MAX_RANK], before[MAX_RANK] = {0};
    if (inputs(m) <= 2 || !given(m, 2))
        return x;
    const int64_t *asked = known_ints(m, 2, "output_shape", &count);
    for (int i = 0; asked && i < rank; i++) {
        if (count != rank || asked[i] < dim[i]) {
            refuse(m, "output_shape does not fit");
            return NULL;
        }
        behind[i] = asked[i] - dim[i];
    }
    return !asked ? NULL
                  : CALL(m, "pad", {x}, {ints(m, (size_t)rank, before), "before"},
                         {ints(m, (size_t)rank, behind), "after"});
}

static bool max_unpool(Import *m)
{
    const Tensor *x = given(m, 0), *index = given(m, 1);
    int64_t dim[MAX_RANK], count = 1;
    if (!x || !index)
        return refuse(m, "it needs a tensor and its indices");
    if (!unpooled_dims(m, x, dim))
        return false;
    for (int i = 0; i < x->rank; i++)
        if (dim[i] < 1 || dim[i] > INT64_MAX / count)
            return refuse(m, "its result has no size");
        else
            count *= dim[i];
    const int64_t flat = -1;
    const Expr *row = ints(m, 1, &flat);
    const Expr *none = cast(m, CALL(m, "arange", {integer(m, count)}), F32);
    const Expr *all =
        CALL(m, "scatter", {binary(m, "mul", none, real(m, 0))},
             {CALL(m, "reshape", {use(m, 1)}, {row, "shape"})},
             {CALL(m, "reshape", {use(m, 0)}, {row, "shape"})}, {integer(m, 0), "axis"});
    all = CALL(m, "reshape", {all}, {ints(m, (size_t)x->rank, dim), "shape"});
    all = pad_to_shape(m, all, x->rank, dim);
    return all && result(m, 0, all);
}

const Translation onnx_sample[] = {
    {"GridSample", 16, grid_sample},
    {"ReverseSequence", 10, reverse_sequence},
    {"MaxUnpool", 9, max_unpool},
    {0},
};
