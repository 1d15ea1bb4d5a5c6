/* A JSON plan -> the tables of a Graph, its Clusters and a Plan.
 *
 * Requires: JSON of any origin. Leaves: tables in which every id names a row, every dim, view and
 * layout lies inside what it is a part of, and every op has its row; whether the plan is right is
 * for others to see. Nothing is believed: each number is read through a range.
 */
#include "codegen/plan_json.h"

#include <math.h>
#include <string.h>

typedef struct {
    Arena *arena;
    Graph *g;
    Clusters *clusters;
    Plan *plan;
    const json_t *file;
    size_t values, nodes, scopes, buffers; /* rows of the tables */
    ARRAY(Id) arg;                         /* of the plan */
    const char *table;                     /* being read, and the row of it: for messages */
    size_t row;
    const char *error;
} Reader;

static const json_int_t MAX_BYTES = (json_int_t)1 << 60;

static bool fail(Reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(Reader *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!r->error) {
        const char *text = arena_vprintf(r->arena, format, args);
        r->error = r->table ? arena_printf(r->arena, "%s[%zu]: %s", r->table, r->row, text) : text;
    }
    va_end(args);
    return false;
}

/* ---- Typed access --------------------------------------------------------------------------- */

static bool as_integer(Reader *r, const json_t *json, const char *what, json_int_t least,
                       json_int_t most, json_int_t *number)
{
    if (!json_is_integer(json))
        return fail(r, "%s must be an integer", what);
    json_int_t found = json_integer_value(json);
    if (found < least || found > most)
        return fail(r, "%s is %lld, not in [%lld, %lld]", what, (long long)found, (long long)least,
                    (long long)most);
    *number = found;
    return true;
}

static json_int_t get_integer(Reader *r, const json_t *row, const char *key, json_int_t least,
                              json_int_t most)
{
    json_int_t number = least;
    as_integer(r, json_object_get(row, key), key, least, most, &number);
    return r->error ? least : number;
}

/* A place in a table of `count` rows; NONE where it is left out or null. */
static Id get_id(Reader *r, const json_t *row, const char *key, size_t count)
{
    const json_t *json = json_object_get(row, key);
    json_int_t number = 0;
    if (!json || json_is_null(json))
        return NONE;
    return as_integer(r, json, key, 0, (json_int_t)count - 1, &number) ? (Id)number : NONE;
}

static const char *get_text(Reader *r, const json_t *row, const char *key)
{
    const char *text = json_string_value(json_object_get(row, key));
    if (!text)
        fail(r, "%s must be a string", key);
    return text ? arena_copy(r->arena, text, strlen(text)) : "";
}

/* A word of a list, as its place there. */
static uint8_t get_word(Reader *r, const json_t *row, const char *key, const char *const *words,
                        int count)
{
    const char *text = get_text(r, row, key);
    for (int i = 0; i < count; i++)
        if (strcmp(text, words[i]) == 0)
            return (uint8_t)i;
    fail(r, "unknown %s '%s'", key, text);
    return 0;
}

static const json_t *get_list(Reader *r, const json_t *row, const char *key)
{
    const json_t *list = json_object_get(row, key);
    if (!json_is_array(list))
        fail(r, "%s must be a list", key);
    return list;
}

static int as_numbers(Reader *r, const json_t *list, const char *what, json_int_t least,
                      int64_t *number)
{
    size_t count = json_array_size(list);
    if (!json_is_array(list))
        fail(r, "%s must be a list of numbers", what);
    if (count > MAX_RANK)
        fail(r, "%s has more than %d numbers", what, MAX_RANK);
    for (size_t i = 0; i < count && !r->error; i++) {
        json_int_t n = 0;
        as_integer(r, json_array_get(list, i), what, least, MAX_BYTES, &n);
        number[i] = n;
    }
    return r->error ? 0 : (int)count;
}

static int get_numbers(Reader *r, const json_t *row, const char *key, json_int_t least,
                       int64_t *number)
{
    return as_numbers(r, json_object_get(row, key), key, least, number);
}

/* ---- Views ---------------------------------------------------------------------------------- */

/* From the first to the last element that the view reaches; false where that is no number. */
static bool view_reach(const View *view, int64_t *low, int64_t *high)
{
    *low = *high = view->offset;
    for (int i = 0; i < view->rank; i++) {
        int64_t step;
        if (__builtin_mul_overflow(view->dim[i] - 1, view->stride[i], &step) ||
            __builtin_add_overflow(step < 0 ? *low : *high, step, step < 0 ? low : high))
            return false;
    }
    return true;
}

/* A view of `count` elements, all within. */
static bool read_view(Reader *r, const json_t *json, int64_t count, View *view)
{
    int64_t low, high;
    *view = (View){.offset = get_integer(r, json, "offset", 0, MAX_BYTES)};
    int rank = get_numbers(r, json, "dims", 1, view->dim);
    if (get_numbers(r, json, "strides", -MAX_BYTES, view->stride) != rank)
        fail(r, "there must be as many strides as dims");
    view->rank = (uint8_t)rank;
    const char *why;
    if (!r->error && !dims_check(U8, rank, view->dim, &why))
        return fail(r, "invalid view: %s", why);
    if (!r->error && (!view_reach(view, &low, &high) || low < 0 || high >= count))
        return fail(r, "a view ends outside its value");
    return !r->error;
}

static Use read_use(Reader *r, const json_t *json)
{
    Use use = {NONE, NONE};
    if (!json || json_is_null(json))
        return use;
    json_int_t value = 0;
    const json_t *id = json_is_object(json) ? json_object_get(json, "value") : json;
    if (!as_integer(r, id, "an operand", 0, (json_int_t)r->values - 1, &value))
        return use;
    use.value = (Id)value;
    View view;
    if (json_is_object(json) && read_view(r, json_object_get(json, "view"),
                                          value_count(&r->g->value.at[use.value]), &view)) {
        use.view = (Id)r->g->view.count;
        ARRAY_PUSH(r->arena, &r->g->view, view);
    }
    return use;
}

static Span read_span(Reader *r, const json_t *row)
{
    if (!json_object_get(row, "line"))
        return (Span){0};
    Span span = {.line = (uint32_t)get_integer(r, row, "line", 0, INT32_MAX),
                 .column = (uint32_t)get_integer(r, row, "column", 0, INT32_MAX)};
    span.end_line = span.line;
    span.end = span.column + 1;
    return span;
}

/* ---- The graph ------------------------------------------------------------------------------ */

static double read_number(Reader *r, const json_t *json, const char *what)
{
    const char *text = json_string_value(json);
    if (json_is_number(json))
        return json_number_value(json);
    if (text && strcmp(text, "nan") == 0)
        return NAN;
    if (text && (strcmp(text, "inf") == 0 || strcmp(text, "-inf") == 0))
        return *text == '-' ? -INFINITY : INFINITY;
    fail(r, "%s must be a number", what);
    return 0;
}

static void read_dimension(Reader *r, const json_t *row)
{
    Dimension dimension = {.name = get_text(r, row, "name"),
                           .value = get_integer(r, row, "value", INT64_MIN, INT64_MAX),
                           .batch = json_is_true(json_object_get(row, "batch"))};
    ARRAY_PUSH(r->arena, &r->g->dimension, dimension);
}

static void read_scope(Reader *r, const json_t *row)
{
    Scope scope = {.path = get_text(r, row, "path"),
                   .parent = get_id(r, row, "parent", r->row), /* comes before it */
                   .template = get_id(r, row, "template", UINT32_MAX),
                   .iteration = (uint32_t)get_integer(r, row, "iteration", 0, UINT32_MAX)};
    if ((scope.parent == NONE) != (r->row == 0))
        fail(r, "only the first scope has no parent");
    ARRAY_PUSH(r->arena, &r->g->scope, scope);
}

static void read_value(Reader *r, const json_t *row)
{
    const char *error;
    Value value = {.node = NONE,
                   .previous = get_id(r, row, "previous", r->values),
                   .whole = get_id(r, row, "whole", r->values),
                   .name = get_text(r, row, "name"),
                   .span = read_span(r, row),
                   .kind = get_word(r, row, "kind", value_kinds, VALUE_LITERAL + 1)};
    Dtype dtype = dtype_find(get_text(r, row, "dtype"));
    value.rank = (uint8_t)get_numbers(r, row, "dims", 1, value.dim);
    if (dtype == DTYPES)
        fail(r, "unknown dtype");
    else if (!r->error && !dims_check(dtype, value.rank, value.dim, &error))
        fail(r, "%s has invalid dims: %s", value.name, error);
    value.dtype = (uint8_t)(r->error ? F32 : dtype);
    if (value.kind == VALUE_LITERAL)
        value.literal = read_number(r, json_object_get(row, "literal"), "literal");
    if (value.kind == VALUE_LITERAL && value.rank)
        fail(r, "a literal has no dims");
    ARRAY_PUSH(r->arena, &r->g->value, value);
    r->plan->home[r->row] = get_id(r, row, "buffer", r->buffers);
}

static void read_word_setting(Reader *r, const Arg *arg, const char *text, Attr *attr)
{
    int span = 0;
    for (const char *word = arg->words; word && *word; span++) {
        size_t length = strcspn(word, " ");
        if (strlen(text) == length && memcmp(word, text, length) == 0) {
            attr->number = span;
            attr->is_word = true;
            attr->count = arg->kind != ARG_INTS; /* a word instead of a list */
            if (attr->count)
                attr->list[0] = span;
            return;
        }
        word += length;
        word += *word == ' ';
    }
    fail(r, "%s cannot be '%s'", arg->name, text);
}

static Attr read_setting(Reader *r, const json_t *row, const Arg *arg)
{
    Attr attr = {.count = 1};
    const json_t *json = json_object_get(json_object_get(row, "settings"), arg->name);
    attr.given = json != NULL;
    if (!json)
        json = json_object_get(json_object_get(row, "defaults"), arg->name);
    if (!json) {
        fail(r, "the setting %s is missing", arg->name);
    } else if (json_is_string(json) && arg->words) {
        read_word_setting(r, arg, json_string_value(json), &attr);
    } else if (arg->kind == ARG_INTS) {
        attr.count = (uint8_t)as_numbers(r, json, arg->name, -MAX_BYTES, attr.list);
        attr.number = attr.count ? (double)attr.list[0] : 0;
    } else {
        attr.number = read_number(r, json, arg->name);
        if (arg->kind != ARG_FLOAT && fabs(attr.number) <= (double)MAX_BYTES)
            attr.list[0] = (int64_t)attr.number;
        else if (arg->kind != ARG_FLOAT)
            fail(r, "%s must be an integer", arg->name);
    }
    return attr;
}

static uint8_t get_phase(Reader *r, const json_t *row)
{
    const char *names[] = {phases[0].name, phases[1].name, phases[2].name};
    return get_word(r, row, "phase", names, PHASE_UPDATE + 1);
}

static void read_node(Reader *r, const json_t *row)
{
    Graph *g = r->g;
    const char *name = get_text(r, row, "op");
    const json_t *operands = get_list(r, row, "operands"), *results = get_list(r, row, "results");
    Node node = {.op = op_find(name),
                 .use = (Id)g->use.count,
                 .uses = (Id)json_array_size(operands),
                 .values = (Id)json_array_size(results),
                 .attr = (Id)g->attr.count,
                 .scope = get_id(r, row, "scope", r->scopes),
                 .name = get_text(r, row, "name"),
                 .span = read_span(r, row),
                 .phase = get_phase(r, row),
                 .program = get_word(r, row, "program", program_names, PROGRAMS)};
    node.stream = node.name;
    if (!node.op || node.op->build)
        fail(r, "'%s' is not an op that a plan can have", name);
    else if (node.scope == NONE)
        fail(r, "scope is missing");
    else if (!node.values || node.values > MAX_OUTPUTS)
        fail(r, "%s cannot have %u outputs", name, node.values);
    for (Id i = 0; i < node.uses && !r->error; i++) {
        Use use = read_use(r, json_array_get(operands, i));
        ARRAY_PUSH(r->arena, &g->use, use);
    }
    for (int i = 0; !r->error && i < MAX_ARGS && node.op->args[i].name; i++) {
        Attr attr = {0};
        if (node.op->args[i].kind != ARG_TENSOR)
            attr = read_setting(r, row, &node.op->args[i]);
        ARRAY_PUSH(r->arena, &g->attr, attr);
    }
    for (Id i = 0; i < node.values && !r->error; i++) {
        json_int_t id = 0, most = (json_int_t)r->values - 1;
        if (!as_integer(r, json_array_get(results, i), "a result", 0, most, &id))
            break;
        if (i == 0)
            node.value = (Id)id;
        else if (id != (json_int_t)node.value + i)
            fail(r, "the outputs of a node must be consecutive");
        Value *value = &g->value.at[id];
        if (value->node != NONE || (value->kind != VALUE_RESULT && value->kind != VALUE_PREPARED))
            fail(r, "%s is not an output of this node", value->name);
        value->node = (Id)r->row;
        value->output = (uint8_t)i;
        value->program = node.program;
        if (value->previous != NONE && g->value.at[value->previous].kind == VALUE_OUTPUT)
            g->value.at[value->previous].program = node.program; /* it lives with who fills it */
    }
    ARRAY_PUSH(r->arena, &g->node, node);
}

static void read_output(Reader *r, const json_t *row)
{
    Output output = {.name = get_text(r, row, "name"),
                     .use = read_use(r, json_object_get(row, "use"))};
    if (output.use.value == NONE)
        fail(r, "an output must name a value");
    ARRAY_PUSH(r->arena, &r->g->output, output);
    r->plan->output[r->row] =
        (Id)get_integer(r, row, "buffer", 0, (json_int_t)r->buffers - 1); /* checked elsewhere */
}

/* ---- Clusters and the plan ------------------------------------------------------------------ */

static Id read_ids(Reader *r, const json_t *row, const char *key, size_t rows, Id *to)
{
    const json_t *list = get_list(r, row, key);
    size_t count = json_array_size(list);
    for (size_t i = 0; i < count && !r->error; i++) {
        json_int_t id = 0;
        as_integer(r, json_array_get(list, i), key, 0, (json_int_t)rows - 1, &id);
        to[i] = (Id)id;
    }
    return (Id)count;
}

static void read_cluster(Reader *r, const json_t *row)
{
    Clusters *c = r->clusters;
    Cluster *cluster = &c->at[c->count++];
    const Cluster *last = c->count > 1 ? cluster - 1 : &(Cluster){0};
    cluster->node = last->node + last->nodes;
    cluster->operand = last->operand + last->operands;
    cluster->result = last->result + last->results;
    cluster->nodes = read_ids(r, row, "nodes", r->nodes, c->node + cluster->node);
    cluster->operands = read_ids(r, row, "operands", r->values, c->operand + cluster->operand);
    cluster->results = read_ids(r, row, "results", r->values, c->result + cluster->result);
    if (!r->error && !cluster->nodes)
        fail(r, "a cluster must have a node");
    for (Id i = 0; i < cluster->nodes && !r->error; i++)
        c->of[c->node[cluster->node + i]] = c->count - 1;
    if (!r->error)
        cluster->program = r->g->node.at[c->node[cluster->node]].program;
}

static void read_buffer(Reader *r, const json_t *row)
{
    Buffer *b = &r->plan->buffer[r->row];
    Id root = get_id(r, row, "root", r->buffers);
    *b = (Buffer){.value = get_id(r, row, "value", r->values),
                  .root = root == NONE ? (Id)r->row : root,
                  .birth = (uint32_t)get_integer(r, row, "birth", 0, INT32_MAX),
                  .death = (uint32_t)get_integer(r, row, "death", 0, INT32_MAX),
                  .offset = (uint64_t)get_integer(r, row, "offset", 0, MAX_BYTES),
                  .bytes = (uint64_t)get_integer(r, row, "bytes", 1, MAX_BYTES),
                  .kind = get_word(r, row, "kind", buffer_kinds, BUFFER_KINDS),
                  .program = get_word(r, row, "program", program_names, PROGRAMS),
                  .space = json_object_get(row, "space")
                               ? get_word(r, row, "space", space_names, SPACES)
                               : SPACE_ARENA};
    const json_t *layout = json_object_get(row, "layout");
    if (b->value != NONE)
        b->layout = value_view(&r->g->value.at[b->value]);
    if (layout && b->value == NONE)
        fail(r, "workspace has no layout");
    else if (layout)
        read_view(r, layout, MAX_BYTES, &b->layout);
}

static void read_step(Reader *r, const json_t *row, Occurrence *o)
{
    Id id = get_id(r, row, "cluster", r->clusters->count);
    if (id == NONE) {
        fail(r, "cluster is missing");
        return;
    }
    const Cluster *c = &r->clusters->at[id];
    *o = (Occurrence){.cluster = id,
                      .arg = (Id)r->arg.count,
                      .workspace = get_id(r, row, "workspace", r->buffers)};
    static const char *const keys[] = {"operands", "results"};
    const Id counts[] = {c->operands, c->results};
    for (int k = 0; k < 2; k++) {
        const json_t *list = get_list(r, row, keys[k]);
        if (json_array_size(list) != counts[k])
            fail(r, "cluster %u has %u %s, not %zu", id, counts[k], keys[k], json_array_size(list));
        for (Id i = 0; i < counts[k] && !r->error; i++) {
            json_int_t buffer = 0;
            as_integer(r, json_array_get(list, i), keys[k], 0, (json_int_t)r->buffers - 1, &buffer);
            ARRAY_PUSH(r->arena, &r->arg, (Id)buffer);
        }
    }
}

static void read_program(Reader *r, const json_t *row)
{
    uint8_t kind = get_word(r, row, "name", program_names, PROGRAMS);
    Program *program = &r->plan->program[kind];
    if (program->at)
        fail(r, "the program %s is defined twice", program_names[kind]);
    program->begin = (uint32_t)get_integer(r, row, "begin", 0, INT32_MAX);
    program->times = (uint32_t)get_integer(r, row, "times", 1, INT32_MAX);
    const json_t *steps = get_list(r, row, "steps");
    program->count = (Id)json_array_size(steps);
    program->at = ARENA_ARRAY(r->arena, Occurrence, program->count + 1);
    if (program->begin != r->plan->end)
        fail(r, "begins at %u, but the programs before it end at %u", program->begin, r->plan->end);
    size_t span = r->row;
    r->table = "steps";
    for (Id k = 0; k < program->count && !r->error; k++) {
        r->row = program->begin + k;
        read_step(r, json_array_get(steps, k), &program->at[k]);
    }
    r->table = "programs";
    r->row = span;
    r->plan->end += program->count;
}

/* ---- Data ------------------------------------------------------------------------------------ */

static bool read_statement(Reader *r, const json_t *row, size_t place)
{
    const char *formats[DATA_FORMATS];
    for (int i = 0; i < DATA_FORMATS; i++)
        formats[i] = data_format_name((DataFormat)i);
    DataStmt data = {.name = get_text(r, row, "name"),
                     .format = get_word(r, row, "format", formats, DATA_FORMATS)};
    size_t inputs = json_array_size(get_list(r, row, "inputs"));
    if (strcmp(data.name, place ? "eval" : "train") != 0 || place > 1)
        return fail(r, "data: statements are train and eval, in this order");
    if (inputs < 1 || inputs > MAX_FED)
        return fail(r, "data %s: it fills 1 to %d inputs", data.name, MAX_FED);
    data.inputs = data.paths = (uint8_t)read_ids(r, row, "inputs", r->values, data.input);
    data.setting[DATA_WIDTH].number = (double)get_integer(r, row, "width", 0, 65535);
    data.setting[DATA_PROGRESSIVE].number =
        (double)get_integer(r, row, "progressive", 0, INT32_MAX);
    for (int i = 0; i < data.inputs && !r->error; i++) {
        Value *value = &r->g->value.at[data.input[i]];
        data.path[i] = "";
        if (value->kind != VALUE_INPUT || value->rank < 1 || value->whole != NONE)
            fail(r, "data %s: %s is not an input of the whole batch", data.name, value->name);
        if (place && r->g->data.at[0].input[i] != data.input[i])
            fail(r, "data %s: it fills other inputs than data train", data.name);
        value->fed = true;
    }
    ARRAY_PUSH(r->arena, &r->g->data, data);
    return !r->error;
}

static void read_data(Reader *r)
{
    const json_t *data = json_object_get(r->file, "data");
    r->plan->slots = get_id(r, data, "slots", r->buffers);
    r->plan->work = get_id(r, data, "work", r->buffers);
    if (!data || json_is_null(data) || r->error)
        return;
    r->plan->ring.depth = (uint32_t)get_integer(r, data, "depth", 1, 64);
    r->plan->ring.workers = (uint32_t)get_integer(r, data, "workers", 0, 64);
    const json_t *statements = get_list(r, data, "statements");
    for (size_t i = 0; i < json_array_size(statements) && !r->error; i++)
        read_statement(r, json_array_get(statements, i), i);
    if (!r->error && !r->g->data.count)
        fail(r, "data: it has no statement");
    for (size_t v = 0; v < r->g->value.count && !r->error; v++) { /* those of a micro-batch */
        Value *value = &r->g->value.at[v];
        value->fed |=
            value->kind == VALUE_INPUT && value->whole != NONE && r->g->value.at[value->whole].fed;
    }
}

/* ---- The file ------------------------------------------------------------------------------- */

static size_t rows_of(Reader *r, const char *table)
{
    r->table = NULL;
    return json_array_size(get_list(r, r->file, table));
}

static void read_table(Reader *r, const char *table, void (*read)(Reader *, const json_t *))
{
    size_t count = rows_of(r, table);
    r->table = table;
    for (r->row = 0; r->row < count && !r->error; r->row++)
        read(r, json_array_get(json_object_get(r->file, table), r->row));
    r->table = NULL;
}

/* Of the choice only what shapes depend on: a gather has a row for each rank. */
static void read_ranks(Reader *r)
{
    const json_t *choice = json_object_get(r->file, "choice");
    if (json_object_get(choice, "ranks") && !json_is_true(json_object_get(choice, "as_ranks")))
        r->g->ranks.count = (uint32_t)get_integer(r, choice, "ranks", 1, 1 << 14);
}

/* Rows may refer to rows further down in other tables: sizes first. */
static void read_graph(Reader *r)
{
    const json_t *model = json_object_get(r->file, "model");
    read_ranks(r);
    r->scopes = rows_of(r, "scopes");
    r->values = rows_of(r, "values");
    r->nodes = rows_of(r, "nodes");
    r->buffers = rows_of(r, "buffers");
    r->plan->home = ARENA_ARRAY(r->arena, Id, r->values + 1);
    r->plan->output = ARENA_ARRAY(r->arena, Id, rows_of(r, "outputs") + 1);
    r->plan->state = get_id(r, r->file, "state", r->buffers);
    r->g->name = get_text(r, model, "name");
    const char *file = json_string_value(json_object_get(model, "file"));
    Source *source = ARENA_NEW(r->arena, Source);
    *source = (Source){.file = file ? arena_copy(r->arena, file, strlen(file)) : "", .text = ""};
    r->g->source = source;
    const json_t *dimensions = json_object_get(model, "dimensions");
    r->table = "dimensions";
    for (r->row = 0; r->row < json_array_size(dimensions) && !r->error; r->row++)
        read_dimension(r, json_array_get(dimensions, r->row));
    r->table = NULL;
    r->g->scope.count = 0;
    read_table(r, "scopes", read_scope);
    read_table(r, "values", read_value);
    read_table(r, "nodes", read_node);
    read_table(r, "outputs", read_output);
    read_data(r);
}

static size_t count_ids(const json_t *table, const char *key)
{
    size_t count = 1;
    for (size_t i = 0; i < json_array_size(table); i++)
        count += json_array_size(json_object_get(json_array_get(table, i), key));
    return count;
}

static void read_plan(Reader *r)
{
    const json_t *table = json_object_get(r->file, "clusters");
    Clusters *c = r->clusters;
    c->at = ARENA_ARRAY(r->arena, Cluster, rows_of(r, "clusters") + 1);
    c->node = ARENA_ARRAY(r->arena, Id, count_ids(table, "nodes"));
    c->operand = ARENA_ARRAY(r->arena, Id, count_ids(table, "operands"));
    c->result = ARENA_ARRAY(r->arena, Id, count_ids(table, "results"));
    c->of = ARENA_ARRAY(r->arena, Id, r->nodes + 1);
    r->plan->buffers = (Id)r->buffers;
    r->plan->buffer = ARENA_ARRAY(r->arena, Buffer, r->buffers + 1);
    for (Space space = 0; space < SPACES; space++)
        if (space_planned[space])
            r->plan->arena[space] =
                (uint64_t)get_integer(r, r->file, space_names[space], 0, MAX_BYTES);
    read_table(r, "clusters", read_cluster);
    read_table(r, "buffers", read_buffer);
    read_table(r, "programs", read_program);
    r->plan->arg = r->arg.at;
}

/* The target's workspace depends on its name and threads alone. */
static Target read_target(Reader *r)
{
    const json_t *target = json_object_get(r->file, "target");
    const char *name = get_text(r, target, "name");
    uint32_t threads = (uint32_t)get_integer(r, target, "threads", 1, 1024);
    const TargetRow *row = name ? target_find(name) : NULL;
    if (!r->error && !row)
        fail(r, "unknown target '%s'", name);
    if (!row)
        return (Target){0};
    Target known = target_make(row, threads);
    if (!r->error && threads != known.threads)
        fail(r, "the target %s is planned for %u thread", known.name, known.threads);
    if (!r->error && get_integer(r, target, "align", 1, 1 << 20) != known.align)
        fail(r, "the target %s aligns to %u bytes", known.name, known.align);
    return known;
}

bool plan_read(Arena *arena, const json_t *file, PlanFile *read, const char **error)
{
    Reader r = {.arena = arena,
                .file = file,
                .g = graph_new(arena, NULL, NULL),
                .clusters = ARENA_NEW(arena, Clusters),
                .plan = ARENA_NEW(arena, Plan)};
    const char *format = json_string_value(json_object_get(file, "format"));
    if (!format || strcmp(format, PLAN_FORMAT) != 0)
        fail(&r, "not a plan: \"format\" is not \"" PLAN_FORMAT "\"");
    else if (json_integer_value(json_object_get(file, "version")) != PLAN_VERSION)
        fail(&r, "only version %d of the format is supported", PLAN_VERSION);
    r.plan->graph = r.g;
    r.plan->clusters = r.clusters;
    if (!r.error)
        read_graph(&r);
    if (!r.error)
        read_plan(&r);
    *read = (PlanFile){.g = r.g,
                       .clusters = r.clusters,
                       .plan = r.plan,
                       .summary = json_object_get(file, "summary")};
    if (!r.error)
        read->target = read_target(&r);
    if (!r.error && json_object_get(file, "budget") &&
        !json_is_null(json_object_get(file, "budget")))
        read->budget = (uint64_t)get_integer(&r, file, "budget", 0, MAX_BYTES);
    *error = r.error;
    return !r.error;
}
