/* How other tools name and lay out what a layer has: facts of rows, on tensors of a file. */
#include "frontend/command/weights.h"

#include <string.h>

/* ---- Names ----------------------------------------------------------------------------------- */

const char *module_name(Arena *arena, const char *module, const char *leaf)
{
    return *module ? arena_printf(arena, "%s.%s", module, leaf) : leaf;
}

Foreign *weights_find(const Weights *w, const char *name)
{
    uint32_t place = names_find(w->names, name);
    return place == UINT32_MAX ? NULL : &w->foreign.at[place];
}

const char *weights_prefix(const Weights *w)
{
    if (w->foreign.count == 0)
        return "";
    const char *first = w->foreign.at[0].tensor->name;
    size_t length = strlen(first);
    for (size_t i = 1; i < w->foreign.count; i++) {
        size_t same = 0;
        while (same < length && first[same] == w->foreign.at[i].tensor->name[same])
            same++;
        length = same;
    }
    while (length && first[length - 1] != '.')
        length--;
    return arena_copy(w->arena, first, length);
}

/* ---- Views ----------------------------------------------------------------------------------- */

View stored_view(const StoredTensor *t)
{
    View view = {.rank = (uint8_t)(t->rank <= MAX_RANK ? t->rank : 0)};
    int64_t stride = 1;
    for (int d = view.rank - 1; d >= 0; d--) {
        view.dim[d] = t->dim[d];
        view.stride[d] = stride;
        stride *= t->dim[d];
    }
    return view;
}

View view_transposed(View view)
{
    View swapped = view;
    int last = view.rank - 1;
    if (view.rank < 2)
        return view;
    swapped.dim[last] = view.dim[last - 1];
    swapped.stride[last] = view.stride[last - 1];
    swapped.dim[last - 1] = view.dim[last];
    swapped.stride[last - 1] = view.stride[last];
    return swapped;
}

bool view_fits(const View *view, const Value *value)
{
    return view->rank == value->rank &&
           memcmp(view->dim, value->dim, (size_t)value->rank * sizeof *view->dim) == 0;
}

void origin_set(Want *want, Foreign *from, View view)
{
    want->origin = (Origin){.from = from, .view = view};
    from->fate = USED;
}

/* ---- What a row says of other tools ---------------------------------------------------------- */

ForeignArg foreign_arg(Arena *arena, const Arg *arg, int way)
{
    ForeignArg found = {.pieces = 1, .transposed = arg->flags & ARG_TRANSPOSED};
    const char *at = arg->foreign ? arg->foreign : "";
    for (; way > 0 && *at; way--) {
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    size_t length = strcspn(at, " ["), word = strcspn(at, " ");
    if (!*at)
        return found;
    found.leaf = arena_copy(arena, at, length);
    if (length < word)
        sscanf(at + length, "[%d/%d]", &found.piece, &found.pieces);
    return found;
}

bool layer_fits(const Weights *w, const Layer *layer, const char *module, int way, bool set)
{
    for (int pass = 0; pass < 1 + set; pass++)
        for (int i = 0; i < MAX_ARGS && layer->op->args[i].name; i++) {
            ForeignArg arg = foreign_arg(w->arena, &layer->op->args[i], way);
            Want *want = layer->want[i];
            if (!want || want->origin.from)
                continue;
            Foreign *from =
                arg.leaf ? weights_find(w, module_name(w->arena, module, arg.leaf)) : NULL;
            if (!from)
                return false;
            View view = stored_view(from->tensor);
            if (arg.pieces > 1 && view.rank && view.dim[0] % arg.pieces == 0) {
                view.dim[0] /= arg.pieces;
                view.offset = arg.piece * view.dim[0] * view.stride[0];
            }
            view = arg.transposed ? view_transposed(view) : view;
            if (!view_fits(&view, want->value))
                return false;
            if (pass)
                origin_set(want, from, view);
        }
    return true;
}
