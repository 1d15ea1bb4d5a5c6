/* The arguments of calls: addresses by name, numbers, what moves from one iteration of a loop to
 * the next.
 *
 * A value is called as the model calls it, without ordinals that tell nothing apart. In a loop what
 * moves evenly is computed from the number of the layer; what does not is a column of a table. */
#include "codegen/program.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEAST_AFTER_FIRST = 4, /* iterations, of which the first may lie elsewhere */
    MANY_LAYERS = 4095,    /* numbers of layers that an address must take, whoever names it */
};

static const char *value_name(const Writer *w, const Address *a)
{
    return a->value == NONE ? "work" : w->values[a->value];
}

/* d.attention/matmul#4/matmul, which is named by the op that made it, is d.attention/matmul#4. */
static const char *without_gradient(Arena *arena, const char *name)
{
    const char *last = strrchr(name, '/');
    if (strncmp(name, "d.", 2) != 0 || !last || last == strchr(name, '/'))
        return name;
    return arena_printf(arena, "%.*s%s", (int)(last - name), name,
                        strrchr(last, '.') ? strrchr(last, '.') : "");
}

/* What values are called, by value; a gradient of a parameter is called after that. */
static const char **whole_names(const Emission *e)
{
    const Graph *g = e->plan->graph;
    const char **name = ARENA_ARRAY(e->arena, const char *, g->value.count + 1);
    for (size_t v = 0; v < g->value.count; v++)
        name[v] = g->value.at[v].name;
    for (size_t n = 0; n < g->node.count; n++) {
        const Node *node = &g->node.at[n];
        if (node->phase != PHASE_UPDATE || node->uses < 2 || node_updates(g, node, 0) != 0)
            continue;
        const Id parameter = node_use(g, node, 0).value, gradient = node_use(g, node, 1).value;
        if (gradient != NONE && strcmp(node->op->args[1].name, "g") == 0)
            name[gradient] = arena_printf(e->arena, "d.%s", g->value.at[parameter].name);
    }
    for (size_t v = 0; v < g->value.count; v++)
        name[v] = without_gradient(e->arena, name[v]);
    return name;
}

/* Names of values, by value, without ordinals that tell nothing apart: attention.0.wq is
 * attention.wq where there is no attention.1. */
const char *const *argument_names(const Emission *e)
{
    const Graph *g = e->plan->graph;
    const char **name = whole_names(e);
    NameTable *second =
        names_new(e->arena); /* names up to the ordinal 1 of what there are two of */
    for (size_t v = 0; v < g->value.count; v++) {
        const char *whole = name[v];
        for (const char *at = whole; (at = strstr(at, ".1")); at++)
            if (strchr("./", at[2]))
                *names_at(second, arena_copy(e->arena, whole, (size_t)(at - whole))) = 1;
    }
    for (size_t v = 0; v < g->value.count; v++) {
        const char *whole = name[v], *from = whole;
        Out o = out_new(e->arena);
        for (const char *at = whole; (at = strstr(at, ".0")); at++) {
            const char *stem = arena_copy(e->arena, whole, (size_t)(at - whole));
            if (!strchr("./", at[2]) || names_find(second, stem) != UINT32_MAX)
                continue;
            out_text(&o, from, (size_t)(at - from));
            from = at + 2;
        }
        out(&o, "%s", from);
        name[v] = o.at;
    }
    return name;
}

/* Which of the micro-batches that are here. */
static const char *window_text(const Writer *w)
{
    return w->e->plan->graph->ranks.here ? "(size_t)run->part" : "(size_t)run->micro";
}

static const char *plus(const Writer *w, const char *base, const char *offset, const Address *a)
{
    const char *sum =
        strcmp(offset, "0") == 0 ? base : arena_printf(w->e->arena, "%s + %s", base, offset);
    return a->micro_stride ? arena_printf(w->e->arena, "%s + %s * %llu", sum,
                                          a->ring ? "m->place" : window_text(w),
                                          (unsigned long long)a->micro_stride)
                           : sum;
}

/* The address as an expression, of an offset and a slot as text. */
static const char *address_text(const Writer *w, const Address *a, const char *offset,
                                const char *slot)
{
    if (a->kind == AT_ARENA)
        return plus(w, "m->arena", offset, a);
    return plus(w, arena_printf(w->e->arena, "(unsigned char *)m->external[%s]", slot), offset, a);
}

static const char *number_text(const Writer *w, uint64_t number)
{
    return arena_printf(w->e->arena, number > INT32_MAX ? "UINT64_C(0x%llx)" : "%llu",
                        (unsigned long long)number);
}

static const char *decimal(const Writer *w, uint64_t number)
{
    return arena_printf(w->e->arena, "%llu", (unsigned long long)number);
}

/* The name without the layer whose number stands at `at`: d.layer.3.x is d.x. */
static const char *without_layer(Arena *arena, const char *name, size_t at)
{
    size_t end = at + strspn(name + at, "0123456789"), begin = at > 1 ? at - 1 : at;
    while (begin && name[begin - 1] != '.' && name[begin - 1] != '/')
        begin--;
    end += name[end] == '.' || name[end] == '/';
    return name[end] || begin ? arena_printf(arena, "%.*s%s", (int)begin, name, name + end) : name;
}

static const char *argument_text(const Writer *w, const Address *a, const char *name)
{
    Arena *arena = w->e->arena;
    if (a->kind == AT_NOWHERE)
        return "NULL";
    if (a->kind == AT_WHOLE_ARENA)
        return "m->arena";
    if (a->kind == AT_NUMBER)
        return number_text(w, a->offset);
    size_t at = strcspn(name, "0123456789");
    if (a->kind == AT_ARENA && !a->micro_stride && name[at]) {
        const char *moved =
            place_of_layer(&w->e->places, place_word(arena, without_layer(arena, name, at)),
                           a->offset, strtoll(name + at, NULL, 10));
        if (moved)
            return moved;
    }
    Place place = {.address = address_text(w, a, decimal(w, a->offset), decimal(w, a->slot))};
    return arena_printf(arena, "AT(%s)", place_name(&w->e->places, place_word(arena, name), place));
}

const char *argument_single(const Writer *w, const Address *a)
{
    return argument_text(w, a, value_name(w, a));
}

/* ---- Arguments in a loop -------------------------------------------------------------------- */

static const Address *address_at(const Writer *w, Id call, Id argument, Id time)
{
    const EmitCall *c = &w->e->call.at[w->repeat.begin + time * w->repeat.period + call];
    return &w->e->address.at[c->address + argument];
}

/* first + by * the iteration, in the loop's variable. */
const char *iteration_text(const Writer *w, int64_t first, int64_t by)
{
    const int64_t last = (int64_t)w->repeat.times - 1;
    return w->down ? even_text(w->e->arena, first + by * last, -by, "i", 0)
                   : even_text(w->e->arena, first, by, "i", 0);
}

/* Where the first number that differs begins in both names; 0 where all else is not equal too, or
 * no number differs. */
static size_t difference(const char *a, const char *b)
{
    size_t i = 0;
    while (a[i] && a[i] == b[i])
        i++;
    while (i && isdigit((unsigned char)a[i - 1]))
        i--;
    size_t m = strspn(a + i, "0123456789"), n = strspn(b + i, "0123456789");
    return m && n && strcmp(a + i + m, b + i + n) == 0 ? i : 0;
}

/* How an argument is numbered: by layer where the names of what it is have one, or by iteration. */
typedef struct {
    const char *name;  /* without the layer */
    int64_t first, by; /* the number in the first iteration, and from one to the next */
} Numbering;

static Numbering find_numbering(const Writer *w, Id call, Id argument)
{
    const int64_t top = (int64_t)w->repeat.times - 1;
    const char *name = value_name(w, address_at(w, call, argument, 0));
    const char *role = address_at(w, call, argument, 0)->role;
    Numbering plain = {name, w->down ? top : 0, w->down ? -1 : 1}, layers = plain;
    size_t at = 0;
    if (role && w->repeat.times > 2) { /* values of several names, not the first of a chain */
        const char *next = value_name(w, address_at(w, call, argument, 1));
        const char *last = value_name(w, address_at(w, call, argument, 2));
        if (strcmp(name, next) != 0 && strcmp(next, last) != 0 && difference(next, last) == 0)
            plain.name = role;
    }
    for (Id t = 1; t < w->repeat.times; t++) {
        const char *other = value_name(w, address_at(w, call, argument, t));
        size_t here = difference(name, other);
        if (here == 0 || (at && here != at))
            return plain;
        at = here;
        int64_t first = strtoll(name + at, NULL, 10), number = strtoll(other + at, NULL, 10);
        if (t == 1)
            layers = (Numbering){name, first, number - first};
        if (number != layers.first + (int64_t)t * layers.by)
            return plain;
    }
    if (layers.by != 1 && layers.by != -1)
        return plain;
    layers.name = without_layer(w->e->arena, name, at);
    return layers;
}

/* first + step * (i) of a layer's number; NULL: it does not move evenly. */
static const char *even(const Writer *w, const uint64_t *number, Numbering n, Place *place)
{
    int64_t step = ((int64_t)number[1] - (int64_t)number[0]) * n.by;
    int64_t first = (int64_t)number[0] - step * n.first, last = MANY_LAYERS;
    for (Id t = 0; t < w->repeat.times; t++) {
        int64_t layer = n.first + n.by * (int64_t)t;
        last = layer > last ? layer : last;
        if ((int64_t)number[t] != first + step * layer)
            return NULL;
    }
    if (first < 0)
        return NULL;
    *place = (Place){.moves = true, .first = first, .step = step};
    return even_text(w->e->arena, first, step, "(i)", last);
}

/* The same but for the first iteration, which lies elsewhere: i == 11 ? other : first + step * i.
 */
static const char *even_after_first(const Writer *w, const uint64_t *number, Numbering n)
{
    if (w->repeat.times < LEAST_AFTER_FIRST)
        return NULL;
    uint64_t *moved = ARENA_ARRAY(w->e->arena, uint64_t, w->repeat.times);
    memcpy(moved, number, w->repeat.times * sizeof *moved);
    moved[0] = 2 * number[1] - number[2];
    Place place;
    const char *rest = number[1] == number[2] ? decimal(w, number[1]) : even(w, moved, n, &place);
    for (Id t = 1; t < w->repeat.times && number[1] == number[2]; t++)
        if (number[t] != number[1])
            return NULL;
    return rest ? arena_printf(w->e->arena, "((i) == %lld ? %llu : %s)", (long long)n.first,
                               (unsigned long long)number[0], rest)
                : NULL;
}

static bool is_constant(const Writer *w, const uint64_t *number)
{
    for (Id t = 1; t < w->repeat.times; t++)
        if (number[t] != number[0])
            return false;
    return true;
}

/* Whether two arguments are the same place in every iteration. */
static bool is_same(const Writer *w, Id call, Id one, Id other)
{
    for (Id t = 0; t < w->repeat.times; t++) {
        const Address *a = address_at(w, call, one, t), *b = address_at(w, call, other, t);
        if (a->kind != b->kind || a->kind == AT_NUMBER || a->offset != b->offset ||
            a->slot != b->slot || a->micro_stride != b->micro_stride)
            return false;
    }
    return true;
}

const char *argument_in_loop(Writer *w, Id call, Id argument)
{
    Arena *arena = w->e->arena;
    const Address *a = address_at(w, call, argument, 0);
    const char *tensor = w->tensors ? tensor_loop_argument(w->e, w->repeat, argument) : NULL;
    if (tensor)
        return tensor;
    uint64_t *offset = ARENA_ARRAY(arena, uint64_t, w->repeat.times);
    uint64_t *slot = ARENA_ARRAY(arena, uint64_t, w->repeat.times);
    for (Id t = 0; t < w->repeat.times; t++) {
        offset[t] = address_at(w, call, argument, t)->offset;
        slot[t] = address_at(w, call, argument, t)->slot;
    }
    const bool fixed = is_constant(w, offset), fixed_slot = is_constant(w, slot);
    if (a->kind == AT_NUMBER)
        return fixed
                   ? number_text(w, a->offset)
                   : arena_printf(arena, "row->%s", loop_column(&w->table, offset, false, a->role));
    Numbering n = find_numbering(w, call, argument);
    if (fixed && fixed_slot)
        return argument_text(w, a, n.name);
    for (Id k = 0; k < argument; k++) /* in place */
        if (is_same(w, call, k, argument))
            return argument_in_loop(w, call, k);
    Place place = {.moves = true};
    const char *at = fixed ? decimal(w, a->offset) : even(w, offset, n, &place);
    const char *in = fixed_slot ? decimal(w, a->slot) : even(w, slot, n, &place);
    if (at && in) {
        place.address = address_text(w, a, at, in);
        place.step = fixed_slot && a->kind == AT_ARENA && !a->micro_stride ? place.step : 0;
        return arena_printf(arena, "AT(%s(%s))",
                            place_name(&w->e->places, place_word(arena, n.name), place),
                            iteration_text(w, n.first, n.by));
    }
    if (!at && fixed_slot && a->kind == AT_ARENA && !a->micro_stride &&
        (at = even_after_first(w, offset, n)) != NULL) {
        place.address = address_text(w, a, at, "");
        return arena_printf(arena, "AT(%s(%s))",
                            place_name(&w->e->places, place_word(arena, n.name), place),
                            iteration_text(w, n.first, n.by));
    }
    const char *column = fixed ? NULL : loop_column(&w->table, offset, true, n.name);
    if (fixed_slot && a->kind == AT_ARENA && !a->micro_stride)
        return arena_printf(arena, "ROW(%s)", column);
    at = fixed ? at : arena_printf(arena, "row->%s", column);
    if (!fixed_slot)
        in = arena_printf(
            arena, "row->%s",
            loop_column(&w->table, slot, false, arena_printf(arena, "%s_slot", n.name)));
    return arena_printf(arena, "PLACE(%s)", address_text(w, a, at, in));
}

/* Whether most of what moves with the layers goes from the last one to the first. */
bool loop_goes_down(const Writer *w)
{
    int64_t sum = 0;
    for (Id call = 0; call < w->repeat.period; call++)
        for (Id k = 0; k < w->e->call.at[w->repeat.begin + call].addresses; k++) {
            const Address *a = address_at(w, call, k, 0), *b = address_at(w, call, k, 1);
            if (a->kind != AT_NUMBER && a->value != NONE && a->offset != b->offset)
                sum += find_numbering(w, call, k).by;
        }
    return sum < 0;
}
