/* The lines of a map: what of the model comes from where.
 *
 *     layer.{i}.attention.0.wq = h.{i}.attn.c_attn.weight[:, 0:C] transposed
 *     layer.{i}.norm.* = encoder.layer.{i+1}.LayerNorm.*
 *     ignore *.attn.bias
 *
 * {i} is a number, the same on both sides; names with other characters are quoted. Slices are
 * computed with the model's own parameters. */
#include "frontend/command/weights.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_VARIABLES = 4 };

typedef struct {
    const char *text;
    Span span;
} Token;

typedef struct {
    struct {
        const char *name;
        size_t length;
        uint64_t number;
    } at[MAX_VARIABLES];
    int count;
} Variables;

/* A line on its way: where the reader is. */
typedef struct {
    Weights *w;
    const char *at;
    uint32_t line, column;
    Token to, from;    /* MODEL = FOREIGN */
    const char *slice; /* after FOREIGN, from its bracket on; NULL: none */
    uint32_t slice_column;
    bool transposed;
    bool failed;
} Line;

static Span span_here(const Line *l, uint32_t columns)
{
    return (Span){l->line, l->column, l->line, l->column + columns};
}

__attribute__((format(printf, 3, 4))) static bool complain(Line *l, Span span, const char *format,
                                                           ...)
{
    va_list args;
    va_start(args, format);
    if (!l->failed)
        diag_error(l->w->diag, span, "%s", arena_vprintf(l->w->arena, format, args));
    va_end(args);
    l->failed = true;
    return false;
}

/* ---- Tokens ---------------------------------------------------------------------------------- */

static void advance(Line *l)
{
    l->column += (*l->at & 0xc0) != 0x80; /* of a character of UTF-8 the first byte counts */
    l->at++;
}

static void skip_space(Line *l)
{
    while (*l->at == ' ' || *l->at == '\t' || *l->at == '\r')
        advance(l);
}

static bool at_end(Line *l)
{
    skip_space(l);
    return !*l->at || *l->at == '\n' || *l->at == '#';
}

static Token read_name(Line *l, const char *what)
{
    if (at_end(l) || *l->at == '=' || *l->at == '[') {
        complain(l, span_here(l, 1), "expected %s", what);
        return (Token){.text = ""};
    }
    Span span = span_here(l, 0);
    bool quoted = *l->at == '"';
    if (quoted)
        advance(l);
    const char *begin = l->at;
    while (*l->at && *l->at != '\n' && (quoted ? *l->at != '"' : !strchr(" \t\r=[#", *l->at)))
        advance(l);
    size_t length = (size_t)(l->at - begin);
    if (quoted && *l->at != '"')
        complain(l, span, "the name is not closed");
    else if (quoted)
        advance(l);
    span.end = l->column;
    return (Token){arena_copy(l->w->arena, begin, length), span};
}

static bool accept_word(Line *l, const char *word)
{
    size_t length = strlen(word);
    skip_space(l);
    if (strncmp(l->at, word, length) != 0 || (l->at[length] && !strchr(" \t\r\n#", l->at[length])))
        return false;
    while (length--)
        advance(l);
    return true;
}

static bool expect(Line *l, char wanted)
{
    skip_space(l);
    if (*l->at != wanted)
        return complain(l, span_here(l, 1), "expected '%c'", wanted);
    advance(l);
    return true;
}

/* ---- Patterns -------------------------------------------------------------------------------- */

static uint64_t *variable(Variables *v, const char *name, size_t length)
{
    for (int i = 0; i < v->count; i++)
        if (v->at[i].length == length && memcmp(v->at[i].name, name, length) == 0)
            return &v->at[i].number;
    return NULL;
}

/* Whether a name is of the pattern, and what its {i} are. */
static bool match(const char *pattern, const char *name, Variables *v)
{
    v->count = 0;
    while (*pattern) {
        size_t length = strcspn(pattern, "}");
        if (*pattern != '{' || !pattern[length]) {
            if (*pattern++ != *name++)
                return false;
            continue;
        }
        size_t digits = strspn(name, "0123456789");
        if (digits == 0 || digits > 18)
            return false;
        uint64_t number = strtoull(name, NULL, 10);
        uint64_t *known = variable(v, pattern + 1, length - 1);
        if (known && *known != number)
            return false;
        if (!known && v->count == MAX_VARIABLES)
            return false;
        if (!known) {
            v->at[v->count].name = pattern + 1;
            v->at[v->count].length = length - 1;
            v->at[v->count++].number = number;
        }
        name += digits;
        pattern += length + 1;
    }
    return !*name;
}

/* A pattern with its {i}, {i+1}, {i-1} filled in; NULL with a message where one is not known. */
static const char *fill(Line *l, const Token *pattern, Variables *v)
{
    const char *text = "";
    for (const char *at = pattern->text; *at;) {
        size_t plain = strcspn(at, "{"), length = strcspn(at + plain, "}");
        text = arena_printf(l->w->arena, "%s%.*s", text, (int)plain, at);
        at += plain;
        if (!*at)
            break;
        size_t name = strcspn(at + 1, "+-}");
        const uint64_t *number = at[length] ? variable(v, at + 1, name) : NULL;
        if (!number) {
            complain(l, pattern->span, "%.*s is not in the name before the =", (int)length + 1, at);
            return NULL;
        }
        long long add = name + 1 < length ? strtoll(at + 1 + name, NULL, 10) : 0;
        text = arena_printf(l->w->arena, "%s%lld", text, (long long)*number + add);
        at += length + 1;
    }
    return text;
}

/* ---- Slices ---------------------------------------------------------------------------------- */

static int64_t read_sum(Line *l);

static int64_t read_factor(Line *l)
{
    skip_space(l);
    Span span = span_here(l, 1);
    const char *begin = l->at;
    if (isdigit((unsigned char)*begin)) {
        while (isdigit((unsigned char)*l->at))
            advance(l);
        if (l->at - begin > 15)
            complain(l, span, "the number is too large");
        return strtoll(begin, NULL, 10);
    }
    while (isalnum((unsigned char)*l->at) || *l->at == '_')
        advance(l);
    const Graph *g = l->w->g;
    const char *name = arena_copy(l->w->arena, begin, (size_t)(l->at - begin));
    for (size_t i = 0; i < g->dimension.count; i++)
        if (strcmp(g->dimension.at[i].name, name) == 0)
            return g->dimension.at[i].value;
    span.end = span.column + (*name ? (uint32_t)strlen(name) : 1);
    if (*name)
        complain(l, span, "%s is no parameter of the model", name);
    else
        complain(l, span, "expected a number or a parameter of the model");
    return 0;
}

static int64_t read_product(Line *l)
{
    int64_t number = read_factor(l);
    for (;;) {
        skip_space(l);
        char op = *l->at;
        Span span = span_here(l, 1);
        if ((op != '*' && op != '/') || l->failed)
            return number;
        advance(l);
        int64_t other = read_factor(l);
        if (op == '/' && (other == 0 || number % other != 0))
            complain(l, span, "%lld / %lld is no whole number", (long long)number,
                     (long long)other);
        else if (op == '*' && __builtin_mul_overflow(number, other, &number))
            complain(l, span, "the number is too large");
        else if (op == '/')
            number /= other;
    }
}

static int64_t read_sum(Line *l)
{
    int64_t number = read_product(l);
    for (;;) {
        skip_space(l);
        char op = *l->at;
        Span span = span_here(l, 1);
        if ((op != '+' && op != '-') || l->failed)
            return number;
        advance(l);
        int64_t other = read_product(l);
        if (op == '+' ? __builtin_add_overflow(number, other, &number)
                      : __builtin_sub_overflow(number, other, &number))
            complain(l, span, "the number is too large");
    }
}

/* One axis: a range stays, a number goes. */
static bool read_axis(Line *l, const StoredTensor *t, int axis, View *view)
{
    skip_space(l);
    Span span = span_here(l, 1);
    if (axis >= view->rank)
        return complain(l, span, "%s is %s: it has no axis %d", t->name,
                        stored_text(l->w->arena, t), axis);
    int64_t size = view->dim[axis];
    int64_t begin = *l->at == ':' ? 0 : read_sum(l), end = begin + 1;
    skip_space(l);
    bool range = *l->at == ':';
    if (range) {
        advance(l);
        skip_space(l);
        end = *l->at == ',' || *l->at == ']' ? size : read_sum(l);
    }
    span.end = l->column;
    if (l->failed)
        return false;
    if (begin < 0 || end <= begin || end > size)
        return complain(l, span, "%s is %s: axis %d has no %lld:%lld", t->name,
                        stored_text(l->w->arena, t), axis, (long long)begin, (long long)end);
    view->offset += begin * view->stride[axis];
    view->dim[axis] = range ? end - begin : 0; /* 0: to be taken out */
    return true;
}

static bool read_slice(Line *l, const StoredTensor *t, View *view)
{
    int rank = 0;
    advance(l);
    for (int axis = 0;; axis++) {
        if (!read_axis(l, t, axis, view))
            return false;
        skip_space(l);
        if (*l->at != ',')
            break;
        advance(l);
    }
    for (int d = 0; d < view->rank; d++)
        if (view->dim[d] > 0) {
            view->dim[rank] = view->dim[d];
            view->stride[rank++] = view->stride[d];
        }
    view->rank = (uint8_t)rank;
    return expect(l, ']');
}

/* ---- A line for what it stands for ----------------------------------------------------------- */

/* The tensor of the name or, if there is none, the only one whose name ends so after a dot; how
 * many there are. */
static size_t find_ending(const Weights *w, const char *name, Foreign **found)
{
    size_t length = strlen(name), count = 0;
    if ((*found = weights_find(w, name)))
        return 1;
    for (size_t i = 0; i < w->foreign.count; i++) {
        const char *whole = w->foreign.at[i].tensor->name;
        size_t size = strlen(whole);
        if (size > length && whole[size - length - 1] == '.' &&
            strcmp(whole + size - length, name) == 0) {
            count++;
            *found = &w->foreign.at[i];
        }
    }
    return count;
}

static Foreign *find_foreign(Line *l, const char *name)
{
    Foreign *found;
    size_t count = find_ending(l->w, name, &found);
    if (count == 1)
        return found;
    if (count > 1)
        complain(l, l->from.span, "%zu tensors of the file have names that end in %s", count, name);
    else
        complain(l, l->from.span, "the file has no tensor %s", name);
    return NULL;
}

/* A line that gave the parameter something already. */
static bool check_free(Line *l, const Want *want)
{
    if (!want->origin.mapped)
        return true;
    complain(l, l->to.span, "%s has its line already", want->value->name);
    diag_note(l->w->diag, (Span){want->origin.line, 1, want->origin.line, 1}, "it is this one");
    return false;
}

static bool map_tensor(Line *l, Want *want, Variables *v)
{
    const char *name = fill(l, &l->from, v);
    Foreign *from = name && check_free(l, want) ? find_foreign(l, name) : NULL;
    if (!from || l->failed)
        return false;
    View view = stored_view(from->tensor);
    Line at = *l;
    if (from->tensor->rank > MAX_RANK)
        return complain(l, l->from.span, "%s has more than %d dimensions", name, MAX_RANK);
    if (l->slice) {
        at.at = l->slice;
        at.column = l->slice_column;
        if (!read_slice(&at, from->tensor, &view))
            return !(l->failed = true);
    }
    view = l->transposed ? view_transposed(view) : view;
    if (!view_fits(&view, want->value)) {
        const Value *value = want->value;
        complain(l, l->from.span, "%s is %s in the model, but this is %s, from %s %s", value->name,
                 shape_text(l->w->arena, (Dtype)value->dtype, value->rank, value->dim),
                 shape_text(l->w->arena, DTYPES, view.rank, view.dim), from->tensor->name,
                 stored_text(l->w->arena, from->tensor));
        view = view_transposed(view);
        if (view_fits(&view, value))
            diag_hint(l->w->diag, l->transposed ? "it fits without transposed"
                                                : "it would fit with transposed after it");
        return false;
    }
    origin_set(want, from, view);
    want->origin.mapped = true;
    want->origin.line = l->line;
    return true;
}

/* The module's whole name: of which a tensor is there that the layer wants; NULL: none is. */
static const char *find_module(const Weights *w, const Layer *layer, const char *name, int way)
{
    for (int i = 0; i < MAX_ARGS && layer->op->args[i].name; i++) {
        ForeignArg arg = foreign_arg(w->arena, &layer->op->args[i], way);
        Foreign *found;
        if (!layer->want[i] || !arg.leaf)
            continue;
        const char *wanted = arena_printf(w->arena, "%s.%s", name, arg.leaf);
        if (find_ending(w, wanted, &found) != 1)
            return NULL;
        const char *whole = found->tensor->name;
        return arena_copy(w->arena, whole, strlen(whole) - strlen(arg.leaf) - 1);
    }
    return NULL;
}

/* MODULE.*: by the names that the layer's row has. */
static bool map_layer(Line *l, Layer *layer, Variables *v)
{
    Token module = l->from;
    module.text = arena_copy(l->w->arena, module.text, strlen(module.text) - 2);
    const char *name = fill(l, &module, v);
    bool found = false;
    for (int i = 0; i < MAX_ARGS && !l->failed; i++)
        if (layer->want[i])
            check_free(l, layer->want[i]);
    for (int way = 0; !l->failed && !found && way < MAX_WAYS; way++) {
        const char *whole = find_module(l->w, layer, name, way);
        found = whole && layer_fits(l->w, layer, whole, way, true);
    }
    if (!found && !l->failed)
        complain(l, l->from.span, "%s of the file does not have the tensors and shapes of %s, %s",
                 name, layer->path, layer->op->name);
    for (int i = 0; found && i < MAX_ARGS; i++)
        if (layer->want[i]) {
            layer->want[i]->origin.mapped = true;
            layer->want[i]->origin.line = l->line;
        }
    return found;
}

static bool ends_in_star(const char *text)
{
    size_t length = strlen(text);
    return length > 2 && strcmp(text + length - 2, ".*") == 0;
}

static bool apply(Line *l)
{
    Variables v;
    bool any = false, star = ends_in_star(l->to.text);
    if (star != ends_in_star(l->from.text))
        return complain(l, star ? l->from.span : l->to.span,
                        ".* must be on both sides or on neither");
    if (star && (l->slice || l->transposed))
        return complain(l, l->from.span, "a whole layer takes no slice and no transposed");
    const char *path = arena_copy(l->w->arena, l->to.text, strlen(l->to.text) - (star ? 2 : 0));
    for (size_t i = 0; star && !l->failed && i < l->w->layer.count; i++)
        if (!l->w->layer.at[i].declared && match(path, l->w->layer.at[i].path, &v)) {
            any = true;
            map_layer(l, &l->w->layer.at[i], &v);
        }
    for (size_t i = 0; !star && !l->failed && i < l->w->want.count; i++)
        if (match(path, l->w->want.at[i].value->name, &v)) {
            any = true;
            map_tensor(l, &l->w->want.at[i], &v);
        }
    if (!any && !l->failed) {
        const char **names = ARENA_ARRAY(l->w->arena, const char *, l->w->want.count + 1);
        for (size_t i = 0; i < l->w->want.count; i++)
            names[i] = l->w->want.at[i].value->name;
        const char *meant = star ? NULL : suggest(path, names, l->w->want.count);
        complain(l, l->to.span, "the model has no %s %s", star ? "layer" : "parameter", path);
        if (meant)
            diag_hint(l->w->diag, "did you mean %s?", meant);
        else
            diag_hint(l->w->diag, "gplan params lists them");
    }
    return !l->failed;
}

static bool ignore(Line *l)
{
    Token name = read_name(l, "the name of a tensor of the file");
    /* a file without it is fine: the map is for all files of a kind */
    for (size_t i = 0; !l->failed && i < l->w->foreign.count; i++)
        if (l->w->foreign.at[i].fate == UNUSED &&
            name_matches(name.text, l->w->foreign.at[i].tensor->name))
            l->w->foreign.at[i].fate = IGNORED;
    if (!l->failed && !at_end(l))
        complain(l, span_here(l, 1), "expected the end of the line");
    return !l->failed;
}

static bool read_line(Line *l)
{
    if (at_end(l))
        return true;
    Line start = *l;
    if (accept_word(l, "ignore") && (skip_space(l), *l->at != '='))
        return ignore(l);
    *l = start;
    l->to = read_name(l, "a parameter of the model");
    if (l->failed || !expect(l, '='))
        return false;
    l->from = read_name(l, "the name of a tensor of the file");
    skip_space(l);
    if (!l->failed && *l->at == '[') {
        l->slice = l->at;
        l->slice_column = l->column;
        while (*l->at && *l->at != '\n' && *l->at != ']')
            advance(l);
        expect(l, ']');
    }
    l->transposed = !l->failed && accept_word(l, "transposed");
    if (!l->failed && !at_end(l))
        complain(l, span_here(l, 1), "expected transposed or the end of the line");
    return !l->failed && apply(l);
}

bool weights_map(Weights *w, const Source *map)
{
    bool good = true;
    uint32_t line = 1;
    diag_source(w->diag, map);
    if (strlen(map->text) != map->length)
        return diag_error(w->diag, (Span){0}, "it contains a zero byte: not a text file");
    for (const char *at = map->text; *at && !diag_full(w->diag); line++) {
        Line l = {.w = w, .at = at, .line = line, .column = 1};
        good &= read_line(&l);
        at += strcspn(at, "\n");
        at += *at == '\n';
    }
    return good;
}
