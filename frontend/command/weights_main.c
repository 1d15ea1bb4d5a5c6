/* `gplan weights`: files of other tools in, the model's weights out. The driver, and what it says.
 *
 * Files are mapped, and what is written streams from them: nothing is held twice. */
#include "frontend/command/weights.h"

#include "frontend/command/options.h"
#include "frontend/command/output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Files ----------------------------------------------------------------------------------- */

typedef struct {
    void *bytes;
    size_t length;
} Mapped;

/* NULL where it is mapped; else why not. */
static const char *map_file(Arena *arena, const char *path, Mapped *mapped)
{
    struct stat status;
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    const char *fault = NULL;
    if (file < 0 || fstat(file, &status) != 0)
        fault = arena_printf(arena, "cannot open the file: %s", strerror(errno));
    else if (!S_ISREG(status.st_mode))
        fault = S_ISDIR(status.st_mode) ? "is a folder" : "is no regular file, so it is not mapped";
    else if (status.st_size < 8)
        fault = "not a safetensors file: it has fewer than 8 bytes";
    if (!fault) {
        mapped->length = (size_t)status.st_size;
        mapped->bytes = mmap(NULL, mapped->length, PROT_READ, MAP_PRIVATE, file, 0);
        if (mapped->bytes == MAP_FAILED) {
            mapped->bytes = NULL;
            fault = arena_printf(arena, "cannot map the file: %s", strerror(errno));
        }
    }
    if (file >= 0)
        close(file);
    return fault;
}

/* What the rows have no use for is not looked at. */
static bool is_unused(const char *name)
{
    const char *dot = strrchr(name, '.'), *leaf = dot ? dot + 1 : name;
    for (size_t i = 0; op_at(i); i++)
        if (op_at(i)->foreign_unused && strcmp(op_at(i)->foreign_unused, leaf) == 0)
            return true;
    return false;
}

/* For messages about a file as a whole. */
static const Source *file_source(Arena *arena, const char *path)
{
    Source *source = ARENA_NEW(arena, Source);
    *source = (Source){.file = path, .text = ""};
    return source;
}

static bool add_file(Weights *w, const char *path, Mapped *mapped)
{
    const char *fault = map_file(w->arena, path, mapped);
    const Safetensors *file = NULL;
    diag_source(w->diag, file_source(w->arena, path));
    if (!fault)
        file = safetensors_read(w->arena, (Text){mapped->bytes, mapped->length}, &fault);
    if (!file)
        return diag_error(w->diag, (Span){0}, "%s", fault);
    for (size_t i = 0; i < file->count; i++) {
        const StoredTensor *t = &file->tensor[i];
        uint32_t *place = names_at(w->names, t->name);
        if (*place != UINT32_MAX)
            return diag_error(w->diag, (Span){0}, "%s is also in %s", t->name,
                              w->foreign.at[*place].file);
        *place = (uint32_t)w->foreign.count;
        ARRAY_PUSH(w->arena, &w->foreign,
                   (Foreign){t, path, is_unused(t->name) ? IGNORED : UNUSED});
    }
    return true;
}

/* ---- What the model wants -------------------------------------------------------------------- */

static void add_to_layer(Weights *w, NameTable *paths, Want *want)
{
    const Value *value = want->value;
    const char *arg = arena_printf(w->arena, ".%s", value->layer->args[value->arg].name);
    size_t length = strlen(value->name), tail = strlen(arg);
    bool own = length > tail && strcmp(value->name + length - tail, arg) == 0;
    const char *path = arena_copy(w->arena, value->name, own ? length - tail : length);
    uint32_t *place = names_at(paths, arena_printf(w->arena, "%s %s", path, value->layer->name));
    if (*place == UINT32_MAX) {
        *place = (uint32_t)w->layer.count;
        ARRAY_PUSH(w->arena, &w->layer,
                   (Layer){.path = path, .op = value->layer, .declared = !own});
    }
    w->layer.at[*place].want[value->arg] = want;
}

static void find_wants(Weights *w)
{
    NameTable *paths = names_new(w->arena);
    for (size_t i = 0; i < w->g->value.count; i++) {
        const Value *value = &w->g->value.at[i];
        if (value->kind == VALUE_PARAM || value->kind == VALUE_CONST || value->kind == VALUE_STATE)
            ARRAY_PUSH(w->arena, &w->want, (Want){.value = value});
    }
    for (size_t i = 0; i < w->want.count; i++)
        if (w->want.at[i].value->layer)
            add_to_layer(w, paths, &w->want.at[i]);
}

/* ---- What is left over ----------------------------------------------------------------------- */

/* Names that differ in numbers alone are one line: h.*.attn.bias. */
static const char *starred(Arena *arena, const char *name)
{
    const char *text = "";
    while (*name) {
        size_t plain = strcspn(name, "0123456789");
        text = arena_printf(arena, "%s%.*s", text, (int)plain, name);
        name += plain;
        size_t digits = strspn(name, "0123456789");
        if (digits)
            text = arena_printf(arena, "%s*", text);
        name += digits;
    }
    return text;
}

typedef struct {
    const char *name, *shape, *pattern;
} Left;

typedef ARRAY(Left) Lefts;

static void print_left(Arena *arena, const char *title, const Lefts *left)
{
    NameTable *counts = names_new(arena);
    if (left->count == 0)
        return;
    printf("%s: %zu\n", title, left->count);
    for (size_t i = 0; i < left->count; i++) {
        uint32_t *count = names_at(counts, left->at[i].pattern);
        *count = *count == UINT32_MAX ? 1 : *count + 1;
    }
    for (size_t i = 0; i < left->count; i++) {
        uint32_t *count = names_at(counts, left->at[i].pattern), shown = *count;
        *count = 0;
        if (shown == 1)
            printf("  %s  %s\n", left->at[i].name, left->at[i].shape);
        else if (shown > 1)
            printf("  %.*s  %s, %u of them\n", (int)strcspn(left->at[i].pattern, " "),
                   left->at[i].pattern, left->at[i].shape, shown);
    }
}

static void push_left(Arena *arena, Lefts *left, const char *name, const char *shape)
{
    ARRAY_PUSH(arena, left,
               (Left){name, shape, arena_printf(arena, "%s %s", starred(arena, name), shape)});
}

static Lefts left_in_file(const Weights *w, Fate fate)
{
    Lefts left = {0};
    for (size_t i = 0; i < w->foreign.count; i++)
        if (w->foreign.at[i].fate == fate)
            push_left(w->arena, &left, w->foreign.at[i].tensor->name,
                      stored_text(w->arena, w->foreign.at[i].tensor));
    return left;
}

/* A const has what the model gives it. */
static bool is_missing(const Want *want)
{
    return !want->origin.from && want->value->kind != VALUE_CONST;
}

static Lefts left_in_model(const Weights *w)
{
    Lefts left = {0};
    for (size_t i = 0; i < w->want.count; i++) {
        const Value *v = w->want.at[i].value;
        if (is_missing(&w->want.at[i]))
            push_left(w->arena, &left, v->name,
                      shape_text(w->arena, (Dtype)v->dtype, v->rank, v->dim));
    }
    return left;
}

/* ---- The list -------------------------------------------------------------------------------- */

static void print_origins(const Weights *w)
{
    for (size_t i = 0; i < w->want.count; i++) {
        const Want *want = &w->want.at[i];
        const Value *v = want->value;
        if (!want->origin.from)
            continue;
        View whole = stored_view(want->origin.from->tensor), view = want->origin.view;
        bool part = view_count(&view) < view_count(&whole);
        bool transposed = view.rank > 1 && !view_is_dense(&view) &&
                          view.stride[view.rank - 1] > view.stride[view.rank - 2];
        printf("%s %s = %s %s%s%s\n", v->name,
               shape_text(w->arena, (Dtype)v->dtype, v->rank, v->dim),
               want->origin.from->tensor->name, stored_text(w->arena, want->origin.from->tensor),
               part ? ", a part" : "", transposed ? ", transposed" : "");
    }
}

static void print_conversions(const Weights *w)
{
    size_t count[DTYPES][DTYPES] = {{0}};
    for (size_t i = 0; i < w->want.count; i++)
        if (w->want.at[i].origin.from)
            count[w->want.at[i].origin.from->tensor->dtype][w->want.at[i].value->dtype]++;
    for (Dtype a = F32; a < DTYPES; a++)
        for (Dtype b = F32; b < DTYPES; b++)
            if (a != b && count[a][b])
                printf("converted from %s to %s: %zu\n", dtype_name(a), dtype_name(b), count[a][b]);
}

static void report(const Weights *w, const Options *o)
{
    size_t found = 0, mapped = 0, total = 0;
    for (size_t i = 0; i < w->want.count; i++) {
        total += w->want.at[i].value->kind != VALUE_CONST || w->want.at[i].origin.from;
        found += w->want.at[i].origin.from != NULL;
        mapped += w->want.at[i].origin.mapped;
    }
    if (o->verbose || !o->output)
        print_origins(w);
    printf("%s: %zu of %zu parameters found, %zu of them by the map\n", w->g->name, found, total,
           mapped);
    print_conversions(w);
    Lefts ignored = left_in_file(w, IGNORED), unused = left_in_file(w, UNUSED);
    Lefts missing = left_in_model(w);
    print_left(w->arena, "ignored in the file", &ignored);
    print_left(w->arena, "left over in the file", &unused);
    print_left(w->arena, "left over in the model", &missing);
}

/* ---- What is wrong --------------------------------------------------------------------------- */

/* The tensor that has the layer's name and another shape, if there is one. */
static const StoredTensor *find_namesake(const Weights *w, const Layer *layer, int arg)
{
    for (int way = 0; way < MAX_WAYS; way++) {
        ForeignArg foreign = foreign_arg(w->arena, &layer->op->args[arg], way);
        const Foreign *from =
            foreign.leaf ? weights_find(w, arena_printf(w->arena, "%s%s.%s", weights_prefix(w),
                                                        layer->path, foreign.leaf))
                         : NULL;
        if (from)
            return from->tensor;
    }
    return NULL;
}

static bool check_shapes(const Weights *w)
{
    bool good = true;
    for (size_t i = 0; i < w->layer.count; i++)
        for (int k = 0; k < MAX_ARGS; k++) {
            const Want *want = w->layer.at[i].want[k];
            const StoredTensor *t =
                want && is_missing(want) ? find_namesake(w, &w->layer.at[i], k) : NULL;
            if (!t)
                continue;
            View view = value_view(want->value);
            bool swapped = w->layer.at[i].op->args[k].flags & ARG_TRANSPOSED;
            view = swapped ? view_transposed(view) : view;
            if (t->rank == view.rank &&
                memcmp(t->dim, view.dim, (size_t)view.rank * sizeof *view.dim) == 0)
                continue;
            good = diag_error(w->diag, (Span){0}, "%s is %s, but %s wants %s%s", t->name,
                              stored_text(w->arena, t), want->value->name,
                              shape_text(w->arena, DTYPES, view.rank, view.dim),
                              swapped ? ", transposed" : "");
        }
    return good;
}

static bool check_conversions(const Weights *w)
{
    bool good = true;
    for (size_t i = 0; i < w->want.count; i++) {
        const Want *want = &w->want.at[i];
        const char *fault = want->origin.from ? convert_fault(w->arena, want) : NULL;
        if (fault)
            good = diag_error(w->diag, (Span){0}, "%s: %s", want->value->name, fault);
    }
    return good;
}

static bool check_missing(const Weights *w)
{
    size_t count = 0;
    const char *first = NULL;
    for (size_t i = 0; i < w->want.count; i++)
        if (is_missing(&w->want.at[i])) {
            first = first ? first : w->want.at[i].value->name;
            count++;
        }
    if (count == 0)
        return true;
    diag_error(w->diag, (Span){0}, "%zu parameter%s of the model got nothing: %s%s", count,
               count == 1 ? "" : "s", first, count > 1 ? ", ..." : "");
    diag_hint(w->diag, "a line of a file for --map says where one comes from; --partial lets them "
                       "begin as after a reset");
    return false;
}

/* ---- Writing --------------------------------------------------------------------------------- */

typedef struct {
    const Weights *w;
    const Want **want; /* in the order of the file */
    const Value **value;
    uint64_t seed;
} Written;

static void write_all(FILE *to, const void *what)
{
    const Written *out = what;
    Text header = safetensors_header(out->w->arena, out->value, out->w->want.count);
    fwrite(header.text, 1, header.length, to);
    for (size_t i = 0; i < out->w->want.count && !ferror(to); i++)
        if (out->want[i]->origin.from)
            convert_write(to, out->want[i]);
        else
            convert_reset(to, out->value[i], out->seed);
}

/* Large numbers first, so that each tensor is aligned where the file is mapped. */
static bool write_weights(const Weights *w, const Options *o)
{
    size_t count = 0;
    Written out = {w, ARENA_ARRAY(w->arena, const Want *, w->want.count + 1),
                   ARENA_ARRAY(w->arena, const Value *, w->want.count + 1), o->seed};
    for (size_t size = 8; size > 0; size /= 2)
        for (size_t i = 0; i < w->want.count; i++)
            if (dtype_size((Dtype)w->want.at[i].value->dtype) == size) {
                out.want[count] = &w->want.at[i];
                out.value[count++] = w->want.at[i].value;
            }
    if (file_write(o->output, write_all, &out))
        return true;
    if (errno == ENOMEM)
        out_of_memory(0);
    diag_source(w->diag, file_source(w->arena, o->output));
    return diag_error(w->diag, (Span){0}, "cannot be written: %s", strerror(errno));
}

/* ---- The command ----------------------------------------------------------------------------- */

static bool is_safetensors(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && strcmp(dot, ".safetensors") == 0;
}

/* The passes in order. */
static bool convert(Weights *w, const Options *o, Mapped *mapped)
{
    const Source *map = NULL;
    const char *first = NULL;
    if (o->map && !(map = source_read(w->arena, w->diag, o->map, SOURCE_LIMIT)))
        return false;
    for (size_t i = 0; i < o->input.count; i++)
        if (is_safetensors(o->input.at[i])) {
            first = first ? first : o->input.at[i];
            if (!add_file(w, o->input.at[i], &mapped[i]))
                return false;
        }
    find_wants(w);
    if (map && !weights_map(w, map))
        return false;
    diag_source(w->diag, file_source(w->arena, first));
    weights_match(w);
    if ((!o->partial && !check_shapes(w)) | weights_ambiguous(w) | !check_conversions(w))
        return false;
    if (!o->quiet)
        report(w, o);
    if (!o->partial && !check_missing(w))
        return false;
    return !o->output || write_weights(w, o);
}

int weights_main(Arena *arena, const Options *o)
{
    const char **path = ARENA_ARRAY(arena, const char *, o->input.count + 1);
    size_t models = 0;
    for (size_t i = 0; i < o->input.count; i++)
        if (!is_safetensors(o->input.at[i]))
            path[models++] = o->input.at[i];
    if (models == 0 || models == o->input.count || (o->output && !is_safetensors(o->output))) {
        fprintf(stderr, "gplan weights: usage: gplan weights IN.safetensors MODEL -o "
                        "OUT.safetensors\n");
        return 2;
    }
    bool color = o->color == COLOR_AUTO ? isatty(STDERR_FILENO) : o->color == COLOR_ALWAYS;
    Diag *diag = diag_new(arena, stderr, color);
    Model model;
    OnnxImport *import;
    const Graph *g = NULL;
    if (model_read(arena, diag, o, path, models, &model, &import))
        g = lower(arena, diag, &model);
    if (!g)
        return 1;
    Weights w = {.arena = arena, .diag = diag, .g = g, .names = names_new(arena)};
    Mapped *mapped = ARENA_ARRAY(arena, Mapped, o->input.count);
    bool good = convert(&w, o, mapped);
    for (size_t i = 0; i < o->input.count; i++)
        if (mapped[i].bytes)
            munmap(mapped[i].bytes, mapped[i].length);
    return good ? 0 : 1;
}
