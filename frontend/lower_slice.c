/* Slices: x[0], x[:, 1:-1], x[..., ::2]. A slice is a view, so it makes no node. */
#include "frontend/lower.h"

static bool slice_error(Lower *l, const Frame *frame, const Expr *expr, Use use, Span span,
                        const char *text)
{
    lower_error(l, frame, span, "%s", text);
    const Value *value = &l->g->value.at[use.value];
    if (value->span.line && value->span.line != expr->span.line)
        diag_note(l->diag, value->span, "%s is %s", value->name, use_text(l->g, use));
    return false;
}

/* A bound of a range, counted from 0; `missing` where it is not written. */
static bool limit(Lower *l, Frame *frame, const Expr *expr, int64_t size, int64_t missing,
                  int64_t *at)
{
    *at = missing;
    if (!expr)
        return true;
    if (!eval_int(l, frame, expr, "a bound of a slice", at))
        return false;
    if (*at < 0)
        *at += size;
    return true;
}

static bool take_range(Lower *l, Frame *frame, const Expr *expr, Use use, const Subscript *s,
                       int axis, View *view)
{
    int64_t size = view->dim[axis], start, stop, step = 1;
    if (s->step && !eval_int(l, frame, s->step, "the step of a slice", &step))
        return false;
    if (step == 0)
        return slice_error(l, frame, expr, use, s->step->span, "a slice cannot have a step of 0");
    if (!limit(l, frame, s->start, size, step > 0 ? 0 : size - 1, &start) ||
        !limit(l, frame, s->stop, size, step > 0 ? size : -1, &stop))
        return false;
    bool inside = step > 0 ? start >= 0 && stop <= size : start < size && stop >= -1;
    if (!inside)
        return slice_error(l, frame, expr, use, s->span,
                           arena_printf(l->arena,
                                        "the slice is out of range for axis %d of size %lld", axis,
                                        (long long)size));
    if (step > 0 ? stop <= start : stop >= start)
        return slice_error(l, frame, expr, use, s->span, "the slice is empty");
    /* Both are within the size, so the differences do not overflow; nor does a step cut to it. */
    int64_t span = step > 0 ? stop - start : start - stop;
    int64_t stride = step > size ? size : step < -size ? -size : step;
    view->offset += start * view->stride[axis];
    view->dim[axis] = (span - 1) / (stride > 0 ? stride : -stride) + 1;
    view->stride[axis] *= stride;
    return true;
}

static bool take_index(Lower *l, Frame *frame, const Expr *expr, Use use, const Subscript *s,
                       int axis, View *view)
{
    int64_t at, size = view->dim[axis];
    Val val = eval(l, frame, s->start, NULL);
    if (val.kind == VAL_POISON)
        return false;
    if (val.kind != VAL_INT) {
        lower_error(l, frame, s->span, "an index must be an integer, not %s", val_text(l, val));
        if (val.kind == VAL_TENSOR)
            diag_hint(l->diag, "to index with a tensor, use gather(x, index, axis = %d)", axis);
        return false;
    }
    at = val.integer < 0 ? val.integer + size : val.integer;
    if (at < 0 || at >= size)
        return slice_error(l, frame, expr, use, s->span,
                           arena_printf(l->arena,
                                        "index %lld is out of range for axis %d of size %lld",
                                        (long long)val.integer, axis, (long long)size));
    view->offset += at * view->stride[axis];
    view->dim[axis] = 0; /* dropped below */
    return true;
}

static void drop_indexed(View *view)
{
    int rank = 0;
    for (int i = 0; i < view->rank; i++)
        if (view->dim[i]) {
            view->dim[rank] = view->dim[i];
            view->stride[rank++] = view->stride[i];
        }
    for (int i = rank; i < view->rank; i++)
        view->dim[i] = view->stride[i] = 0;
    view->rank = (uint8_t)rank;
}

static bool count_axes(Lower *l, Frame *frame, const Expr *expr, Use use, int rank)
{
    int axes = 0, ellipses = 0;
    for (size_t i = 0; i < expr->subscript.count; i++) {
        bool ellipsis = expr->subscript.at[i].kind == SUBSCRIPT_ELLIPSIS;
        ellipses += ellipsis;
        axes += !ellipsis;
        if (ellipses > 1)
            return slice_error(l, frame, expr, use, expr->subscript.at[i].span,
                               "a slice can have only one ...");
    }
    if (axes > rank)
        return slice_error(l, frame, expr, use, expr->span,
                           arena_printf(l->arena, "%d subscripts, but the tensor %s has %d", axes,
                                        use_text(l->g, use), rank));
    return true;
}

Val eval_slice(Lower *l, Frame *frame, const Expr *expr)
{
    Val base = eval(l, frame, expr->left, NULL);
    if (base.kind == VAL_POISON)
        return POISON;
    if ((base.kind == VAL_LIST || base.kind == VAL_TUPLE) && expr->subscript.count == 1 &&
        expr->subscript.at[0].kind == SUBSCRIPT_INDEX) {
        int64_t at;
        if (!eval_int(l, frame, expr->subscript.at[0].start, "an index", &at))
            return POISON;
        if (at < (int64_t)base.count && at >= -(int64_t)base.count)
            return base.item[at < 0 ? at + base.count : at];
        lower_error(l, frame, expr->subscript.at[0].span,
                    "index %lld is out of range for a list of %u", (long long)at, base.count);
        return POISON;
    }
    if (base.kind != VAL_TENSOR) {
        lower_error(l, frame, expr->left->span, "only a tensor can be sliced, not %s",
                    val_text(l, base));
        return POISON;
    }
    View view = use_view(l->g, base.use);
    int rank = view.rank, axis = 0;
    if (!count_axes(l, frame, expr, base.use, rank))
        return POISON;
    for (size_t i = 0; i < expr->subscript.count; i++) {
        const Subscript *s = &expr->subscript.at[i];
        bool done;
        if (s->kind == SUBSCRIPT_ELLIPSIS) {
            axis = rank - (int)(expr->subscript.count - i - 1);
            continue;
        }
        if (s->kind == SUBSCRIPT_INDEX)
            done = take_index(l, frame, expr, base.use, s, axis++, &view);
        else
            done = take_range(l, frame, expr, base.use, s, axis++, &view);
        if (!done)
            return POISON;
    }
    drop_indexed(&view);
    return val_tensor(use_make(l->g, base.use.value, view));
}
