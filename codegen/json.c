/* The plan and its graph as JSON: everything needed to check or draw the plan elsewhere.
 *
 * Requires: a plan. Leaves: a text with one table a line group and one row a line, so that two
 * plans can be compared with diff. Ids are places in the tables; the schema is in PLAN.md.
 */
#include "codegen/plan_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const Plan *plan;
    const Graph *g;
    Out o;
    Id *value; /* graph value -> its place in the file; NONE: not in it */
} Writer;

void json_begin(void)
{
    json_set_alloc_funcs(memory_take, free);
}

/* ---- Small pieces --------------------------------------------------------------------------- */

static json_t *number_json(double number)
{
    bool whole = number == floor(number) && fabs(number) < 0x1p53;
    if (isfinite(number))
        return whole && !(number == 0 && signbit(number)) ? json_integer((json_int_t)number)
                                                          : json_real(number);
    return json_string(isnan(number) ? "nan" : number < 0 ? "-inf" : "inf");
}

/* A file's name need not be UTF-8, JSON must. */
static json_t *text_json(const char *text)
{
    json_t *json = json_string(text);
    return json ? json : json_string("?");
}

static json_t *list_json(int count, const int64_t *list)
{
    json_t *array = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(array, json_integer(list[i]));
    return array;
}

static json_t *view_json(const View *view)
{
    return json_pack("{s:I, s:o, s:o}", "offset", (json_int_t)view->offset, "dims",
                     list_json(view->rank, view->dim), "strides",
                     list_json(view->rank, view->stride));
}

static json_t *id_json(Id id)
{
    return id == NONE ? json_null() : json_integer(id);
}

static json_t *use_json(const Writer *w, Use use)
{
    if (use.value == NONE)
        return json_null();
    json_t *value = json_integer(w->value[use.value]);
    if (use.view == NONE)
        return value;
    return json_pack("{s:o, s:o}", "value", value, "view", view_json(&w->g->view.at[use.view]));
}

/* The file too, where it is not the first that was given. */
static void set_span(json_t *row, const Source *source, Span span)
{
    if (!span.line)
        return;
    uint32_t line = span.line;
    const char *file = source ? source_line(source, span.line, &line) : NULL;
    if (file && strcmp(file, source->file) != 0)
        json_object_set_new(row, "file", text_json(file));
    json_object_set_new(row, "line", json_integer(line));
    json_object_set_new(row, "column", json_integer(span.column));
}

/* ---- Rows of the tables --------------------------------------------------------------------- */

static json_t *value_json(const Writer *w, Id id)
{
    const Value *value = &w->g->value.at[id];
    json_t *row = json_pack("{s:o, s:s, s:s, s:o}", "name", text_json(value->name), "kind",
                            value_kinds[value->kind], "dtype", dtype_name((Dtype)value->dtype),
                            "dims", list_json(value->rank, value->dim));
    if (value->previous != NONE)
        json_object_set_new(row, "previous", json_integer(w->value[value->previous]));
    if (value->whole != NONE)
        json_object_set_new(row, "whole", json_integer(w->value[value->whole]));
    if (value->kind == VALUE_LITERAL)
        json_object_set_new(row, "literal", number_json(value->literal));
    if (w->plan->home[id] != NONE)
        json_object_set_new(row, "buffer", json_integer(w->plan->home[id]));
    set_span(row, w->g->source, value->span);
    return row;
}

static json_t *setting_json(const Arg *arg, const Attr *attr)
{
    if (attr->is_word && arg->words) {
        const char *word = arg->words;
        for (int i = 0; i < (int)attr->number && *word; i++) {
            word += strcspn(word, " ");
            word += *word == ' ';
        }
        return json_stringn(word, strcspn(word, " "));
    }
    if (arg->kind == ARG_INTS)
        return list_json(attr->count, attr->list);
    return number_json(attr->number);
}

static json_t *node_json(const Writer *w, Id id)
{
    const Node *node = &w->g->node.at[id];
    json_t *operands = json_array(), *results = json_array(), *settings = json_object(),
           *defaults = json_object();
    for (Id i = 0; i < node->uses; i++)
        json_array_append_new(operands, use_json(w, node_use(w->g, node, i)));
    for (Id i = 0; i < node->values; i++)
        json_array_append_new(results, json_integer(w->value[node_value(node, i)]));
    for (int i = 0; i < MAX_ARGS && node->op->args[i].name; i++) {
        const Attr *attr = &w->g->attr.at[node->attr + (Id)i];
        if (node->op->args[i].kind != ARG_TENSOR)
            json_object_set_new(attr->given ? settings : defaults, node->op->args[i].name,
                                setting_json(&node->op->args[i], attr));
    }
    json_t *row =
        json_pack("{s:s, s:s, s:s, s:s, s:I, s:o, s:o, s:o, s:o}", "op", node->op->name, "name",
                  node->name, "program", program_names[node->program], "phase",
                  phases[node->phase].name, "scope", (json_int_t)node->scope, "operands", operands,
                  "results", results, "settings", settings, "defaults", defaults);
    set_span(row, w->g->source, node->span);
    return row;
}

static json_t *cluster_json(const Writer *w, Id id)
{
    const Clusters *clusters = w->plan->clusters;
    const Cluster *c = &clusters->at[id];
    json_t *nodes = json_array(), *operands = json_array(), *results = json_array();
    for (Id i = 0; i < c->nodes; i++)
        json_array_append_new(nodes, json_integer(clusters->node[c->node + i]));
    for (Id i = 0; i < c->operands; i++)
        json_array_append_new(operands, json_integer(w->value[clusters->operand[c->operand + i]]));
    for (Id i = 0; i < c->results; i++)
        json_array_append_new(results, json_integer(w->value[clusters->result[c->result + i]]));
    return json_pack("{s:o, s:o, s:o}", "nodes", nodes, "operands", operands, "results", results);
}

/* Dense, from the root's first byte on. */
static bool lies_plainly(const Buffer *b, const Value *value)
{
    View plain = value_view(value);
    return !b->layout.offset &&
           memcmp(b->layout.stride, plain.stride, value->rank * sizeof *plain.stride) == 0;
}

static json_t *buffer_json(const Writer *w, Id id)
{
    const Buffer *b = &w->plan->buffer[id];
    json_t *row = json_pack("{s:o, s:s, s:s, s:I, s:I, s:I, s:I}", "value",
                            id_json(b->value == NONE ? NONE : w->value[b->value]), "kind",
                            buffer_kinds[b->kind], "program", program_names[b->program], "offset",
                            (json_int_t)b->offset, "bytes", (json_int_t)b->bytes, "birth",
                            (json_int_t)b->birth, "death", (json_int_t)b->death);
    if (b->root != id)
        json_object_set_new(row, "root", json_integer(b->root));
    if (b->value != NONE && !lies_plainly(b, &w->g->value.at[b->value]))
        json_object_set_new(row, "layout", view_json(&b->layout));
    if (b->space != SPACE_ARENA)
        json_object_set_new(row, "space", json_string(space_names[b->space]));
    return row;
}

static json_t *step_json(const Writer *w, const Occurrence *o)
{
    const Cluster *c = &w->plan->clusters->at[o->cluster];
    json_t *operands = json_array(), *results = json_array();
    for (Id k = 0; k < c->operands; k++)
        json_array_append_new(operands, json_integer(w->plan->arg[o->arg + k]));
    for (Id k = c->operands; k < c->operands + c->results; k++)
        json_array_append_new(results, json_integer(w->plan->arg[o->arg + k]));
    json_t *row = json_pack("{s:I, s:o, s:o}", "cluster", (json_int_t)o->cluster, "operands",
                            operands, "results", results);
    if (o->workspace != NONE)
        json_object_set_new(row, "workspace", json_integer(o->workspace));
    return row;
}

/* ---- The summary ---------------------------------------------------------------------------- */

static void put_sum(json_t *sums, const char *of, Id count, uint64_t bytes)
{
    if (count)
        json_object_set_new(
            sums, of,
            json_pack("{s:I, s:I}", "buffers", (json_int_t)count, "bytes", (json_int_t)bytes));
}

static json_t *kinds_json(const Picture *p)
{
    json_t *kinds = json_object();
    for (int t = 0; t < TONES; t++)
        put_sum(kinds, tones[t].name, p->count[t], p->bytes[t]);
    return kinds;
}

static json_t *dtypes_json(const Picture *p)
{
    json_t *dtypes = json_object();
    for (int d = 0; d < DTYPES; d++)
        put_sum(dtypes, dtype_name((Dtype)d), p->dtype_count[d], p->dtype_bytes[d]);
    return dtypes;
}

static json_t *peak_json(const Picture *p)
{
    enum { TOP = 10 };
    Id count;
    Id *list = largest_at(p, p->peak_time, &count);
    json_t *largest = json_array();
    for (Id i = 0; i < count && i < TOP; i++)
        json_array_append_new(largest, json_integer(list[i]));
    json_t *peak = json_pack("{s:I, s:I, s:I, s:o}", "time", (json_int_t)p->peak_time, "bytes",
                             (json_int_t)p->peak, "buffers", (json_int_t)count, "largest", largest);
    if (p->peak_time < p->plan->end) {
        const Node *node = p->step[p->peak_time].node;
        json_object_set_new(peak, "op", json_string(node->op->name));
        json_object_set_new(peak, "name", text_json(node->name));
        set_span(peak, p->g->source, node->span);
    }
    return peak;
}

json_t *summary_json(const Picture *p)
{
    const Plan *plan = p->plan;
    json_t *live = json_array();
    for (uint32_t t = 0; t < plan->end; t++)
        json_array_append_new(live, json_integer((json_int_t)p->live[t]));
    json_t *recompute = json_pack("{s:I, s:o, s:o}", "steps", (json_int_t)p->recomputed, "flops",
                                  number_json(p->again), "of", number_json(p->work - p->again));
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "steps",
        (json_int_t)plan->end, "arena", (json_int_t)plan->arena[SPACE_ARENA], "bound",
        (json_int_t)plan->bound, "floor", (json_int_t)plan->floor, "persistent",
        (json_int_t)plan->persistent, "live_peak", (json_int_t)p->options->live_peak.bytes,
        "live_peak_time", (json_int_t)p->options->live_peak.time, "fragmented",
        (json_int_t)(plan->arena[SPACE_ARENA] > p->peak ? plan->arena[SPACE_ARENA] - p->peak : 0),
        "recompute", recompute, "kinds", kinds_json(p), "dtypes", dtypes_json(p), "peak",
        peak_json(p), "live", live);
}

/* ---- The file ------------------------------------------------------------------------------- */

static void put(Writer *w, json_t *json)
{
    char *text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(17) | JSON_ENCODE_ANY);
    out(&w->o, "%s", text);
    json_free_t release;
    json_get_alloc_funcs(NULL, &release);
    release(text);
    json_decref(json);
}

static void put_member(Writer *w, const char *key, json_t *json)
{
    out(&w->o, ",\n\"%s\": ", key);
    put(w, json);
}

static void put_table(Writer *w, const char *key, size_t count, json_t *(*row)(const Writer *, Id))
{
    bool first = true;
    out(&w->o, ",\n\"%s\": [", key);
    for (Id i = 0; i < count; i++) {
        json_t *json = row(w, i);
        if (!json)
            continue;
        out(&w->o, first ? "\n" : ",\n");
        put(w, json);
        first = false;
    }
    out(&w->o, "]");
}

static json_t *kept_value_json(const Writer *w, Id id)
{
    return w->value[id] == NONE ? NULL : value_json(w, id);
}

static json_t *scope_json(const Writer *w, Id id)
{
    const Scope *s = &w->g->scope.at[id];
    return json_pack("{s:o, s:o, s:o, s:I}", "path", text_json(s->path), "parent",
                     id_json(s->parent), "template", id_json(s->template), "iteration",
                     (json_int_t)s->iteration);
}

static json_t *output_json(const Writer *w, Id id)
{
    const Output *o = &w->g->output.at[id];
    return json_pack("{s:o, s:o, s:I}", "name", text_json(o->name), "use", use_json(w, o->use),
                     "buffer", (json_int_t)w->plan->output[id]);
}

/* A data statement, as far as memory hangs on it. */
static json_t *statement_json(const Writer *w, const DataStmt *data)
{
    json_t *inputs = json_array();
    for (int i = 0; i < data->inputs; i++)
        json_array_append_new(inputs, json_integer(w->value[data->input[i]]));
    return json_pack("{s:s, s:s, s:o, s:I, s:I}", "name", data->name, "format",
                     data_format_name((DataFormat)data->format), "inputs", inputs, "width",
                     (json_int_t)data->setting[DATA_WIDTH].number, "progressive",
                     (json_int_t)data->setting[DATA_PROGRESSIVE].number);
}

static json_t *data_json(const Writer *w)
{
    const Plan *plan = w->plan;
    json_t *statements = json_array();
    for (size_t i = 0; i < w->g->data.count; i++)
        json_array_append_new(statements, statement_json(w, &w->g->data.at[i]));
    return json_pack("{s:I, s:I, s:I, s:o, s:o}", "depth", (json_int_t)plan->ring.depth, "workers",
                     (json_int_t)plan->ring.workers, "slots", (json_int_t)plan->slots, "work",
                     id_json(plan->work), "statements", statements);
}

static void put_programs(Writer *w)
{
    out(&w->o, ",\n\"programs\": [");
    for (int p = 0; p < PROGRAMS; p++) {
        const Program *program = &w->plan->program[p];
        out(&w->o, "%s\n{\"name\": \"%s\", \"begin\": %u, \"times\": %u, \"steps\": [",
            p ? "," : "", program_names[p], program->begin, program->times);
        for (Id i = 0; i < program->count; i++) {
            out(&w->o, i ? ",\n" : "\n");
            put(w, step_json(w, &program->at[i]));
        }
        out(&w->o, "]}");
    }
    out(&w->o, "]\n}\n");
}

/* Values of nodes that were dropped stay behind. */
static void number_values(Writer *w)
{
    Id next = 0;
    w->value = ARENA_ARRAY(w->g->arena, Id, w->g->value.count + 1);
    for (Id i = 0; i < w->g->value.count; i++) {
        const Value *value = &w->g->value.at[i];
        w->value[i] = value->kind != VALUE_RESULT || value->node != NONE ? next++ : NONE;
    }
}

static json_t *model_json(const Graph *g)
{
    json_t *dimensions = json_array();
    for (size_t i = 0; i < g->dimension.count; i++) {
        const Dimension *d = &g->dimension.at[i];
        json_array_append_new(dimensions, json_pack("{s:s, s:I, s:b}", "name", d->name, "value",
                                                    (json_int_t)d->value, "batch", d->batch));
    }
    return json_pack("{s:o, s:o, s:o}", "name", text_json(g->name), "file",
                     text_json(g->source ? g->source->file : ""), "dimensions", dimensions);
}

/* Estimated, with a profile that the file does not have: for people. */
static json_t *time_json(const Plan *plan, const Search *search)
{
    return json_pack("{s:s, s:o, s:o, s:o, s:o}", "of",
                     plan_trains_step(plan->clusters) ? "training step" : "forward pass", "seconds",
                     number_json(plan->cost), "least", number_json(search->least_cost),
                     "extra_percent", number_json(plan_extra(plan->cost, search->least_cost)),
                     "bound_percent",
                     number_json(plan_extra(search->cost_bound, search->least_cost)));
}

/* Of a plan for several ranks: likewise. */
static json_t *ranks_json(const Plan *plan, const Target *target)
{
    const Communication c = plan_communication(plan, target);
    return json_pack("{s:I, s:I, s:I, s:o, s:o, s:o}", "sent", (json_int_t)c.sent, "messages",
                     (json_int_t)c.messages, "grown", (json_int_t)c.grown, "link_seconds",
                     number_json(c.link), "lost_seconds", number_json(c.lost), "step_seconds",
                     number_json(c.step));
}

static void put_reason(json_t *why, const char *of, const char *text)
{
    if (text)
        json_object_set_new(why, of, text_json(text));
}

/* What was decided before planning, and why: for people. */
static json_t *choice_json(const Plan *plan, const EmitOptions *o)
{
    uint32_t times = plan->program[PROGRAM_STEP].times;
    json_t *why = json_object();
    put_reason(why, "accumulate", o->why.micro);
    put_reason(why, "chunked_loss", o->why.chunked_loss);
    put_reason(why, "epilogues", o->why.epilogues);
    put_reason(why, "data", o->why.ring);
    put_reason(why, "precision", o->why.precision);
    put_reason(why, "shard", o->why.shard);
    put_reason(why, "prepared", o->why.prepared);
    const Ranks *ranks = &plan->graph->ranks;
    return json_pack(
        "{s:I, s:I, s:b, s:s, s:b, s:b, s:s, s:o}", "accumulate", (json_int_t)(times ? times : 1),
        "ranks", (json_int_t)(ranks->count ? ranks->count : 1), "as_ranks", ranks->here, "shard",
        shard_name((Shard)ranks->shard), "chunked_loss", o->choice.chunked_loss, "epilogues",
        o->choice.epilogues, "precision", dtype_name((Dtype)o->choice.precision), "why", why);
}

Text emit_json(const Plan *plan, const EmitOptions *options)
{
    Writer w = {.plan = plan, .g = plan->graph, .o = out_new(plan->graph->arena)};
    json_begin();
    number_values(&w);
    out(&w.o, "{\"format\": \"%s\", \"version\": %d, \"generator\": \"gplan %s\"", PLAN_FORMAT,
        PLAN_VERSION, GPLAN_VERSION);
    put_member(&w, "model", model_json(w.g));
    put_member(&w, "target",
               json_pack("{s:s, s:I, s:I}", "name", options->target->name, "align",
                         (json_int_t)options->target->align, "threads",
                         (json_int_t)options->target->threads));
    put_member(&w, "budget",
               options->budget ? json_integer((json_int_t)options->budget) : json_null());
    for (Space space = 0; space < SPACES; space++)
        if (space_planned[space])
            put_member(&w, space_names[space], json_integer((json_int_t)plan->arena[space]));
    put_member(&w, "time", time_json(plan, &options->search));
    if (plan->graph->ranks.state != NONE)
        put_member(&w, "communication", ranks_json(plan, options->target));
    put_member(&w, "choice", choice_json(plan, options));
    put_member(&w, "summary", summary_json(picture_make(plan, options)));
    put_member(&w, "state", id_json(plan->state));
    if (plan->slots != NONE)
        put_member(&w, "data", data_json(&w));
    put_table(&w, "scopes", w.g->scope.count, scope_json);
    put_table(&w, "values", w.g->value.count, kept_value_json);
    put_table(&w, "nodes", w.g->node.count, node_json);
    put_table(&w, "outputs", w.g->output.count, output_json);
    put_table(&w, "clusters", plan->clusters->count, cluster_json);
    put_table(&w, "buffers", plan->buffers, buffer_json);
    put_programs(&w);
    return out_done(&w.o);
}
