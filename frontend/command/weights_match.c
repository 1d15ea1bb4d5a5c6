/* Which module of a foreign file is which layer of the model, where no map says it.
 *
 * A layer wants tensors of certain names and shapes (its row says what PyTorch calls them): that is
 * its key. A module of the file that has just those tensors has the same key. Pairs are made by
 *
 *  1. name: the path of the layer is the module's;
 *  2. group: layers whose paths differ in numbers alone stand in order, and so do modules. Where
 * the keys of a group of layers are, one by one, those of just one group of modules, they are
 * pairs;
 *  3. key: as many layers as modules have it, and both differ in numbers alone;
 *  4. order: all that is left of layers with the same leaves has, one by one, the keys of all that
 *     is left of such modules; those differ in numbers alone, and keys are not all the same.
 *
 * The order of a file means nothing (it is sorted by name), so modules whose names differ in words
 * are never told apart by it: what is left then is ambiguous, and a map must say it. */
#include "frontend/command/weights.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- Names ----------------------------------------------------------------------------------- */

/* A name without its numbers: layer1.0.conv2 -> layer.conv, so is stage.3.conv. */
static const char *words_of(Arena *arena, const char *name)
{
    char *words = arena_copy(arena, name, strlen(name));
    size_t length = 0;
    for (const char *at = name; *at; at++)
        if (!isdigit((unsigned char)*at) && !(*at == '.' && (!length || words[length - 1] == '.')))
            words[length++] = *at;
    while (length && words[length - 1] == '.')
        length--;
    words[length] = 0;
    return words;
}

static const char *last_word(const char *words)
{
    const char *dot = strrchr(words, '.');
    return dot ? dot + 1 : words;
}

/* h.2 before h.10. */
static int natural_order(const char *a, const char *b)
{
    while (*a && *b) {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            a += strspn(a, "0");
            b += strspn(b, "0");
            size_t m = strspn(a, "0123456789"), n = strspn(b, "0123456789");
            int order = m != n ? (m < n ? -1 : 1) : strncmp(a, b, m);
            if (order)
                return order;
            a += m;
            b += n;
        } else if (*a != *b) {
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        } else {
            a++;
            b++;
        }
    }
    return (*a != 0) - (*b != 0);
}

/* ---- Keys ------------------------------------------------------------------------------------ */

/* A layer that wants something, or a module that has it. */
typedef struct {
    const char *name;   /* path, or module */
    const char *words;  /* of its name */
    const char *leaves; /* "weight bias" */
    const char *key;    /* "weight[64, 3] bias[64]": the shapes as the file has them */
    Layer *layer;       /* NULL: a module */
    uint32_t group;     /* number of words and leaves */
    uint32_t key_id;    /* and of the key */
    int way;
    bool done;
} Item;

typedef ARRAY(Item) Items;

static const char *dims_text(Arena *arena, const View *view)
{
    return shape_text(arena, DTYPES, view->rank, view->dim);
}

/* Names and shapes of what a layer wants, as one of its ways has them; false: it has not. */
static bool layer_key(const Weights *w, const Layer *layer, int way, Item *item)
{
    item->leaves = item->key = "";
    for (int i = 0; i < MAX_ARGS && layer->op->args[i].name; i++) {
        const Want *want = layer->want[i];
        if (!want || want->origin.from)
            continue;
        ForeignArg arg = foreign_arg(w->arena, &layer->op->args[i], way);
        if (!arg.leaf)
            return false;
        if (arg.piece > 0)
            continue; /* the first stands for all */
        View view = value_view(want->value);
        view = arg.transposed ? view_transposed(view) : view;
        if (view.rank)
            view.dim[0] *= arg.pieces;
        item->leaves = arena_printf(w->arena, "%s%s ", item->leaves, arg.leaf);
        item->key =
            arena_printf(w->arena, "%s%s%s ", item->key, arg.leaf, dims_text(w->arena, &view));
    }
    return *item->leaves != 0;
}

/* The same of a module, if it has these leaves and nothing else. */
static bool module_key(const Weights *w, const NameTable *direct, const char *leaves, Item *item)
{
    uint32_t own = 0;
    item->key = "";
    for (const char *at = leaves; *at; at += strcspn(at, " ") + 1) {
        const char *leaf = arena_copy(w->arena, at, strcspn(at, " "));
        const Foreign *from = weights_find(w, module_name(w->arena, item->name, leaf));
        if (!from || from->fate != UNUSED || from->tensor->rank > MAX_RANK)
            return false;
        View view = stored_view(from->tensor);
        own += !strchr(leaf, '.');
        item->key = arena_printf(w->arena, "%s%s%s ", item->key, leaf, dims_text(w->arena, &view));
    }
    uint32_t all = names_find(direct, item->name);
    return own == (all == UINT32_MAX ? 0 : all);
}

/* How many tensors each module has of its own, save those that no layer has a use for. */
static NameTable *count_direct(const Weights *w)
{
    NameTable *direct = names_new(w->arena);
    for (size_t i = 0; i < w->foreign.count; i++) {
        const char *name = w->foreign.at[i].tensor->name, *dot = strrchr(name, '.');
        if (w->foreign.at[i].fate == IGNORED)
            continue;
        uint32_t *count =
            names_at(direct, arena_copy(w->arena, name, dot ? (size_t)(dot - name) : 0));
        *count = *count == UINT32_MAX ? 1 : *count + 1;
    }
    return direct;
}

static int by_name(const void *a, const void *b)
{
    return natural_order(((const Item *)a)->name, ((const Item *)b)->name);
}

/* Modules that have the leaves, after those that are found already. */
static void find_modules(const Weights *w, const NameTable *direct, const char *leaves,
                         Items *modules)
{
    size_t begin = modules->count, first = strcspn(leaves, " ");
    for (size_t i = 0; i < w->foreign.count; i++) {
        const char *name = w->foreign.at[i].tensor->name;
        size_t length = strlen(name);
        if (length < first || memcmp(name + length - first, leaves, first) != 0 ||
            (length > first && name[length - first - 1] != '.'))
            continue;
        Item item = {.name = arena_copy(w->arena, name, length > first ? length - first - 1 : 0),
                     .leaves = leaves};
        item.words = words_of(w->arena, item.name);
        if (module_key(w, direct, leaves, &item))
            ARRAY_PUSH(w->arena, modules, item);
    }
    if (modules->count > begin)
        qsort(modules->at + begin, modules->count - begin, sizeof *modules->at, by_name);
}

/* Equal texts get equal numbers. */
static void number(const Weights *w, NameTable *names, Items *items)
{
    for (size_t i = 0; i < items->count; i++) {
        Item *item = &items->at[i];
        const char *group = arena_printf(w->arena, "%s %s", item->words, item->leaves);
        uint32_t *id = names_at(names, group);
        item->group = *id = *id == UINT32_MAX ? (uint32_t)i : *id;
        id = names_at(names, item->key);
        item->key_id = *id = *id == UINT32_MAX ? (uint32_t)i : *id;
    }
}

/* Layers without origins, in order of appearance, by the first way that some module has; and the
 * modules that have what any of them wants. */
static void find_items(Weights *w, Items *layers, Items *modules)
{
    const NameTable *direct = count_direct(w);
    NameTable *seen = names_new(w->arena), *keys = names_new(w->arena);
    for (size_t i = 0; i < w->layer.count; i++)
        for (int way = 0; way < MAX_WAYS; way++) {
            Item item = {0};
            if (!layer_key(w, &w->layer.at[i], way, &item))
                continue;
            uint32_t *known = names_at(seen, item.leaves);
            if (*known == UINT32_MAX)
                find_modules(w, direct, item.leaves, modules);
            *names_at(seen, item.leaves) = 1;
        }
    for (size_t i = 0; i < modules->count; i++)
        *names_at(keys, modules->at[i].key) = 1;
    for (size_t i = 0; i < w->layer.count; i++) {
        Layer *layer = &w->layer.at[i];
        for (int way = 0; way < MAX_WAYS; way++) {
            Item item = {.name = layer->path, .layer = layer, .way = way};
            if (!layer_key(w, layer, way, &item) || names_find(keys, item.key) == UINT32_MAX)
                continue;
            item.words = words_of(w->arena, layer->path);
            ARRAY_PUSH(w->arena, layers, item);
            break;
        }
    }
    NameTable *numbers = names_new(w->arena);
    number(w, numbers, modules);
    number(w, numbers, layers);
}

/* ---- Pairs ----------------------------------------------------------------------------------- */

/* Where a piece of the module does not fit after all, the layer is left without. */
static void pair(const Weights *w, Item *layer, Item *module)
{
    layer_fits(w, layer->layer, module->name, layer->way, true);
    layer->done = module->done = true;
}

static bool same_group(const Item *a, const Item *b)
{
    return a->group == b->group;
}

/* The next of an item's group after `at` that is left; count: there is none. */
static size_t next_of_group(const Items *items, const Item *of, size_t at)
{
    while (at < items->count && (items->at[at].done || !same_group(&items->at[at], of)))
        at++;
    return at;
}

static bool is_first(const Items *items, size_t i)
{
    return !items->at[i].done && next_of_group(items, &items->at[i], 0) == i;
}

/* The groups that two items are of have the same keys, one by one. */
static bool groups_agree(const Items *a, size_t i, const Items *b, size_t k)
{
    const Item *first = &a->at[i], *other = &b->at[k];
    for (;;) {
        if (i == a->count || k == b->count)
            return i == a->count && k == b->count;
        if (a->at[i].key_id != b->at[k].key_id)
            return false;
        i = next_of_group(a, first, i + 1);
        k = next_of_group(b, other, k + 1);
    }
}

/* The first item of the only group that agrees, or of the only one that has the last word too where
 * there are more; count: there is none. */
static size_t only_group(const Items *a, size_t i, const Items *b)
{
    size_t found = b->count, named = b->count, count = 0, names = 0;
    for (size_t k = 0; k < b->count; k++) {
        if (!is_first(b, k) || !groups_agree(a, i, b, k))
            continue;
        count++;
        found = k;
        if (strcmp(last_word(a->at[i].words), last_word(b->at[k].words)) == 0) {
            names++;
            named = k;
        }
    }
    return count == 1 ? found : names == 1 ? named : b->count;
}

static bool pair_groups(const Weights *w, Items *layers, Items *modules)
{
    bool any = false;
    for (size_t i = 0; i < layers->count; i++) {
        if (!is_first(layers, i))
            continue;
        size_t k = only_group(layers, i, modules);
        if (k == modules->count || only_group(modules, k, layers) != i)
            continue;
        Item of = layers->at[i], other = modules->at[k];
        for (size_t a = i, b = k; a < layers->count && b < modules->count;) {
            pair(w, &layers->at[a], &modules->at[b]);
            a = next_of_group(layers, &of, a + 1);
            b = next_of_group(modules, &other, b + 1);
        }
        any = true;
    }
    return any;
}

/* Items that are left with a key: how many, and whether they differ in numbers alone. */
static size_t count_key(const Items *items, uint32_t key, bool *alike)
{
    size_t count = 0;
    const Item *first = NULL;
    *alike = true;
    for (size_t i = 0; i < items->count; i++) {
        if (items->at[i].done || items->at[i].key_id != key)
            continue;
        first = first ? first : &items->at[i];
        *alike &= same_group(first, &items->at[i]);
        count++;
    }
    return count;
}

static bool pair_keys(const Weights *w, Items *layers, Items *modules)
{
    bool any = false, alike, ours;
    for (size_t i = 0; i < layers->count; i++) {
        uint32_t key = layers->at[i].key_id;
        if (layers->at[i].done ||
            count_key(modules, key, &alike) != count_key(layers, key, &ours) || !alike || !ours)
            continue;
        for (size_t a = i, b = 0; a < layers->count; a++) {
            if (layers->at[a].done || layers->at[a].key_id != key)
                continue;
            while (modules->at[b].done || modules->at[b].key_id != key)
                b++;
            pair(w, &layers->at[a], &modules->at[b++]);
        }
        any = true;
    }
    return any;
}

/* The next item with these leaves that is left, from `at` on. */
static size_t next_of_leaves(const Items *items, const char *leaves, size_t at)
{
    while (at < items->count && (items->at[at].done || strcmp(items->at[at].leaves, leaves) != 0))
        at++;
    return at;
}

/* What is left of layers and of modules with these leaves stands in the same order. */
static bool in_order(const Items *layers, const Items *modules, const char *leaves)
{
    size_t a = next_of_leaves(layers, leaves, 0), b = next_of_leaves(modules, leaves, 0);
    const Item *first = b < modules->count ? &modules->at[b] : NULL;
    bool differ = false;
    while (a < layers->count && b < modules->count) {
        if (layers->at[a].key_id != modules->at[b].key_id || !same_group(&modules->at[b], first))
            return false;
        differ |= modules->at[b].key_id != first->key_id;
        a = next_of_leaves(layers, leaves, a + 1);
        b = next_of_leaves(modules, leaves, b + 1);
    }
    return differ && a == layers->count && b == modules->count;
}

static bool pair_rest(const Weights *w, Items *layers, Items *modules)
{
    for (size_t i = 0; i < layers->count; i++) {
        const char *leaves = layers->at[i].leaves;
        if (layers->at[i].done || next_of_leaves(layers, leaves, 0) != i ||
            !in_order(layers, modules, leaves))
            continue;
        size_t a = i, b = next_of_leaves(modules, leaves, 0);
        while (a < layers->count) {
            pair(w, &layers->at[a], &modules->at[b]);
            a = next_of_leaves(layers, leaves, a + 1);
            b = next_of_leaves(modules, leaves, b + 1);
        }
        return true;
    }
    return false;
}

/* ---- Names, and what no layer takes ---------------------------------------------------------- */

static void match_names(Weights *w)
{
    const char *prefix = weights_prefix(w);
    for (size_t i = 0; i < w->want.count; i++) { /* a file of gplan's own */
        Want *want = &w->want.at[i];
        Foreign *from = weights_find(w, want->value->name);
        if (want->origin.from || !from || from->fate == IGNORED)
            continue;
        View view = stored_view(from->tensor);
        if (view_fits(&view, want->value))
            origin_set(want, from, view);
    }
    for (size_t i = 0; i < w->layer.count; i++)
        for (int way = 0; way < MAX_WAYS; way++)
            if (layer_fits(w, &w->layer.at[i], w->layer.at[i].path, way, true) ||
                layer_fits(w, &w->layer.at[i],
                           arena_printf(w->arena, "%s%s", prefix, w->layer.at[i].path), way, true))
                break;
}

/* A parameter that stands alone takes the only tensor that is left with its shape; or one of its
 * name and .weight. */
static void match_alone(Weights *w, Want *want)
{
    Foreign *found = NULL;
    size_t count = 0, rivals = 0;
    const char *name = arena_printf(w->arena, "%s.weight", want->value->name);
    for (size_t i = 0; i < w->foreign.count; i++) {
        Foreign *from = &w->foreign.at[i];
        View view = stored_view(from->tensor);
        if (from->fate != UNUSED || from->tensor->rank > MAX_RANK || !view_fits(&view, want->value))
            continue;
        if (strcmp(from->tensor->name, name) == 0) {
            origin_set(want, from, view);
            return;
        }
        count++;
        found = from;
    }
    for (size_t i = 0; i < w->want.count; i++) {
        View view = value_view(want->value);
        rivals += !w->want.at[i].origin.from && view_fits(&view, w->want.at[i].value);
    }
    if (count == 1 && rivals == 1 && want->value->rank > 0)
        origin_set(want, found, stored_view(found->tensor));
}

void weights_match(Weights *w)
{
    Items layers = {0}, modules = {0};
    match_names(w);
    find_items(w, &layers, &modules);
    while (pair_groups(w, &layers, &modules) || pair_keys(w, &layers, &modules) ||
           pair_rest(w, &layers, &modules))
        ;
    for (size_t i = 0; i < w->want.count; i++)
        if (!w->want.at[i].origin.from && !w->want.at[i].value->layer &&
            w->want.at[i].value->kind != VALUE_CONST)
            match_alone(w, &w->want.at[i]);
}

/* ---- What is left ---------------------------------------------------------------------------- */

static void explain(const Weights *w, const Item *layer, const Items *modules)
{
    size_t count = 0;
    const char *star = layer->layer->declared ? "" : ".*", *example = NULL;
    for (size_t i = 0; i < modules->count; i++) {
        const Item *module = &modules->at[i];
        if (module->key_id != layer->key_id)
            continue;
        if (count++ < 4)
            diag_note(w->diag, (Span){0}, "%s has these",
                      *module->name ? module->name : "the file");
        example = example ? example : module->name;
    }
    if (count > 4)
        diag_note(w->diag, (Span){0}, "and %zu more", count - 4);
    diag_hint(w->diag, "say it in a file for --map, e.g. %s%s = %s.%s", layer->name, star, example,
              *star ? "*" : arena_copy(w->arena, layer->leaves, strcspn(layer->leaves, " ")));
}

bool weights_ambiguous(Weights *w)
{
    Items layers = {0}, modules = {0};
    find_items(w, &layers, &modules);
    bool any = false;
    for (size_t i = 0; i < layers.count; i++) {
        Item *layer = &layers.at[i];
        if (!is_first(&layers, i))
            continue;
        size_t count = 0;
        Item of = *layer;
        for (size_t k = i; k < layers.count; k = next_of_group(&layers, &of, k + 1))
            count++;
        diag_error(w->diag, (Span){0}, "%s%s wants %s, and it is not clear from where", layer->name,
                   count > 1 ? arena_printf(w->arena, " (and %zu like it)", count - 1) : "",
                   arena_copy(w->arena, layer->key, strlen(layer->key) - 1));
        explain(w, layer, &modules);
        for (size_t k = i; k < layers.count; k = next_of_group(&layers, &of, k))
            layers.at[k].done = true;
        any = true;
    }
    return any;
}
