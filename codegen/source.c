/* The emitted source and its header: templates, filled with what is known of the model. */
#include "codegen/template.h"

#include <stdlib.h>
#include <string.h>

/* ---- Facts and numbers that the header and the source share --------------------------------- */

/* Only the mean of a loss knows of samples that do not count. */
static bool weighs_samples(const Api *api)
{
    const Graph *g = api->plan->graph;
    bool loss = api->runs[RUN_EVAL] || api->runs[RUN_STEP];
    for (size_t n = 0; n < g->node.count && loss && api->batch; n++)
        if (g->node.at[n].op->flags & OP_WEIGHS)
            return true;
    return false;
}

/* C would refuse the model's name, and no other prefix was given. */
static bool is_renamed(const Api *api)
{
    const Graph *g = api->plan->graph;
    return strcmp(api->prefix, g->name) != 0 &&
           strcmp(api->prefix, c_prefix(g->arena, g->name)) == 0;
}

static size_t count_ops(const Plan *plan)
{
    size_t ops = 0;
    for (int p = 0; p < PROGRAMS; p++)
        for (Id i = 0; i < plan->program[p].count; i++)
            ops += !access_is_done(plan, &plan->program[p].at[i]);
    return ops;
}

static void fill_number(Template *t, const char *name, uint64_t number)
{
    template_text(t, name, arena_printf(t->arena, "%llu", (unsigned long long)number));
}

static void fill_string(Template *t, const char *name, const char *text)
{
    Out o = out_new(t->arena);
    out_string(&o, text);
    template_text(t, name, o.at);
}

/* A text of the model's within a comment. */
static void fill_comment(Template *t, const char *name, const char *text)
{
    Out o = out_new(t->arena);
    out_comment(&o, text);
    template_text(t, name, o.at);
}

/* The tensor that is the loss scale; as many as there are: there is none. */
static size_t find_loss_scale(const Api *api)
{
    const Graph *g = api->plan->graph;
    size_t at = 0;
    while (at < api->tensors && (g->loss_scale == NONE || api->tensor[at].value != g->loss_scale))
        at++;
    return at;
}

static RingBytes ring_bytes(const Api *api)
{
    const Plan *plan = api->plan;
    const Target *target = api->options->target;
    return plan->slots == NONE ? (RingBytes){0} : target->ring(target, plan->graph, plan->ring);
}

/* Parts that a step is captured in: between two of them the next samples take their place. */
static uint64_t step_parts(const Plan *plan)
{
    return plan->slots == NONE ? 1 : plan->program[PROGRAM_STEP].times;
}

static void fill_ranks(const Plan *plan, Template *t)
{
    const Ranks *ranks = &plan->graph->ranks;
    const Buffer *state = ranks->state == NONE ? NULL : &plan->buffer[plan->home[ranks->state]];
    template_fact(t, "RANKS", state);
    template_fact(t, "AS_RANKS", ranks->here);
    fill_number(t, "RANKS_COUNT", ranks->count);
    fill_number(t, "RANKS_AT", state ? state->offset : 0);
    fill_number(t, "RANKS_BYTES", state ? state->bytes : 0);
    fill_number(t, "RANKS_SUMS", ranks->sums);
    const bool gathers = ranks->gather != NONE && plan->home[ranks->gather] != NONE;
    template_fact(t, "RANKS_GATHER", gathers);
    fill_number(t, "RANKS_GATHER_AT", gathers ? plan->buffer[plan->home[ranks->gather]].offset : 0);
}

static Template fill_shared(const Api *api)
{
    const Plan *plan = api->plan;
    const Graph *g = plan->graph;
    bool params = api->saved_begin < api->saved_end && !api->options->embedded;
    Template t = template_new(g->arena, api->prefix, api->capitals);
    template_fact(&t, "CUDA", api->dialect->device);
    template_fact(&t, "EMBEDS", embedded_rows(api) > 0);
    fill_number(&t, "EMBEDDED_ROWS", embedded_rows(api));
    template_fact(&t, "TRAINS", api->trains);
    template_fact(&t, "HAS_FORWARD", api->runs[RUN_FORWARD]);
    template_fact(&t, "HAS_EVAL", api->runs[RUN_EVAL]);
    template_fact(&t, "PREPARES", plan->program[PROGRAM_PREPARE].count > 0);
    template_fact(&t, "HAS_PARAMS", params);
    template_fact(&t, "HAS_CONSTANTS", constants_count(api) > 0);
    template_fact(&t, "BINDS", api->slots > 0);
    bool bound = params && api->tensor[api->saved_begin].slot != NONE;
    template_fact(&t, "BINDS_PARAMS", bound);
    template_fact(&t, "MAPS", bound && !api->dialect->device);
    template_fact(&t, "WEIGHS_SAMPLES", weighs_samples(api));
    template_fact(&t, "HAS_LOSS_SCALE", find_loss_scale(api) < api->tensors);
    template_fact(&t, "IS_RENAMED", is_renamed(api));
    template_fact(&t, "HAS_DATA", plan->slots != NONE);
    template_fact(&t, "READS_IMAGES", data_reads_images(g));
    fill_number(&t, "STEP_PARTS", step_parts(plan));
    template_text(&t, "HOST_BYTES",
                  arena_printf(g->arena, "%lluull", (unsigned long long)ring_bytes(api).host));
    template_text(&t, "DATA_INPUTS", data_inputs(plan));
    fill_comment(&t, "NAME", g->name);
    fill_comment(&t, "SOURCE", g->source ? g->source->file : "a graph");
    fill_comment(&t, "HEADER_NAME", api->options->header);
    fill_comment(&t, "CONSTANTS_NAME", constants_name(api));
    template_fact(&t, "HAS_MAIN", api->options->main);
    fill_ranks(plan, &t);
    template_text(&t, "LIBRARIES",
                  plan->graph->ranks.state == NONE ? "-lcublas" : "-lcublas -lnccl");
    template_fact(&t, "SHARDS", tables_has_shards(api));
    return t;
}

/* ---- The header ----------------------------------------------------------------------------- */

static const char *constant_names(const Api *api)
{
    Out o = out_new(api->plan->graph->arena);
    for (size_t i = api->saved_begin; i < api->saved_end; i++)
        if (constant_is_long(api, i)) {
            out(&o, " *   ");
            out_comment(&o, api->tensor[i].name);
            out(&o, "\n");
        }
    return o.at;
}

Text emit_header(const Plan *plan, const EmitOptions *options)
{
    Arena *arena = plan->graph->arena;
    Api *api = api_make(plan, options);
    Out o = out_new(arena), counts = out_new(arena), accessors = out_new(arena);
    accessors_counts(api, &counts);
    accessors_declare(api, &accessors);
    Template t = fill_shared(api);
    template_text(&t, "ARENA_SIZE", size_text(arena, plan->arena[SPACE_ARENA]));
    template_text(&t, "ARENA_BYTES",
                  arena_printf(arena, "%lluull", (unsigned long long)plan->arena[SPACE_ARENA]));
    fill_number(&t, "ARENA_ALIGN", options->target->align);
    fill_number(&t, "THREADS_MAX", options->target->threads);
    fill_number(&t, "OPS", count_ops(plan));
    fill_number(&t, "BATCH", (uint64_t)api->batch);
    fill_number(&t, "SLOTS", api->slots);
    template_text(&t, "COUNTS", counts.at);
    template_text(&t, "ACCESSORS_DECLARED", accessors.at);
    template_text(&t, "CONSTANT_NAMES", constant_names(api));
    template_write(&t, "net.h", &o);
    return out_done(&o);
}

/* ---- The program around it ------------------------------------------------------------------ */

/* {"accuracy", net_accuracy}, */
static const char *metrics(const Api *api)
{
    const Graph *g = api->plan->graph;
    Out o = out_new(g->arena);
    for (size_t i = 0; i < api->tensors; i++)
        for (size_t k = 0; k < g->output.count && api->tensor[i].accessor; k++)
            if (g->output.at[k].metric && strcmp(g->output.at[k].name, api->tensor[i].name) == 0) {
                out(&o, "    {");
                out_string(&o, api->tensor[i].name);
                out(&o, ", %s},\n", api->tensor[i].accessor);
                break;
            }
    return o.at;
}

/* Samples that are not trained on. */
static bool has_eval_data(const Graph *g)
{
    const DataStmt *train = data_find(g, "train");
    return data_find(g, "eval") || (train && train->setting[DATA_SPLIT].number > 0);
}

const char *emit_libraries(const Plan *plan)
{
    for (size_t i = 0; i < plan->graph->data.count; i++)
        if (plan->graph->data.at[i].format == DATA_IMAGES)
            return "-ljpeg -lpng -lm";
    return "-lm";
}

Text emit_main(const Plan *plan, const EmitOptions *options)
{
    Arena *arena = plan->graph->arena;
    const Api *api = api_make(plan, options);
    Out o = out_new(arena), header = out_new(arena);
    Template t = fill_shared(api);
    out_string(&header, options->header);
    template_text(&t, "HEADER", header.at);
    template_text(&t, "METRICS", metrics(api));
    template_fact(&t, "HAS_EVAL_DATA", has_eval_data(plan->graph));
    template_write(&t, "net_main.c", &o);
    return out_done(&o);
}

/* ---- The top of the source: the largest tensors --------------------------------------------- */

enum { SHOWN = 6, WIDTH = 99 };

static int by_size(const void *a, const void *b)
{
    const Buffer *m = *(const Buffer *const *)a, *n = *(const Buffer *const *)b;
    if (m->bytes != n->bytes)
        return m->bytes > n->bytes ? -1 : 1;
    return (m > n) - (m < n);
}

static const char *largest(const Plan *plan)
{
    const Graph *g = plan->graph;
    const Buffer **row = ARENA_ARRAY(g->arena, const Buffer *, plan->buffers + 1);
    size_t count = 0;
    Out o = out_new(g->arena);
    for (Id i = 0; i < plan->buffers; i++)
        if (plan->buffer[i].root == i && plan->buffer[i].space == SPACE_ARENA &&
            plan->buffer[i].value != NONE)
            row[count++] = &plan->buffer[i];
    qsort(row, count, sizeof *row, by_size);
    if (count)
        out(&o, " *\n *        bytes       offset  the largest tensors\n");
    for (size_t i = 0; i < count && i < SHOWN; i++) {
        const Buffer *b = row[i];
        size_t line = o.length;
        out(&o, " * %12llu %12llu  ", (unsigned long long)b->bytes, (unsigned long long)b->offset);
        const Value *value = &g->value.at[b->value];
        out_comment(&o, value->name);
        out(&o, " %s", shape_text(g->arena, (Dtype)value->dtype, value->rank, value->dim));
        if (b->kind >= BUFFER_OUTPUT)
            out(&o, ", ops %u to %u", b->birth, b->death - 1);
        if (o.length - line > WIDTH) { /* a name is long */
            o.length = line + WIDTH - 3;
            out(&o, "...");
        }
        out(&o, "\n");
    }
    return o.at;
}

/* ---- Programs ------------------------------------------------------------------------------- */

static void fill_programs(const Emission *e, Template *t)
{
    static const struct {
        ProgramKind program;
        const char *split, *ops, *micros, *loss;
    } rows[] = {
        {PROGRAM_FORWARD, "FORWARD_IS_SPLIT", "FORWARD_OPS", "FORWARD_MICROS", "FORWARD_LOSS"},
        {PROGRAM_EVAL, "EVAL_IS_SPLIT", "EVAL_OPS", "EVAL_MICROS", "EVAL_LOSS"},
        {PROGRAM_STEP, "STEP_IS_SPLIT", "STEP_OPS", "STEP_MICROS", "STEP_LOSS"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const Ranks *ranks = &e->plan->graph->ranks;
        const uint32_t times = e->plan->program[rows[i].program].times;
        const uint32_t turns = ranks->here ? times / ranks->count : times;
        size_t ops = (size_t)e->program[rows[i].program].calls * times;
        ops += rows[i].program == PROGRAM_STEP ? e->program[PROGRAM_UPDATE].calls : 0;
        template_fact(t, rows[i].split, times > 1);
        fill_number(t, rows[i].ops, ops);
        fill_number(t, rows[i].micros, times > 1 ? turns : 0);
        template_text(t, rows[i].loss, e->program[rows[i].program].loss);
    }
    fill_number(t, "PREPARE_OPS", e->program[PROGRAM_PREPARE].calls);
    template_fact(t, "HAS_UPDATE", e->program[PROGRAM_UPDATE].calls > 0);
}

/* ---- Training ------------------------------------------------------------------------------- */

static const TrainSetting *find_setting(const Graph *g, const char *name)
{
    for (size_t i = 0; i < g->train.setting.count; i++)
        if (strcmp(g->train.setting.at[i].name, name) == 0)
            return &g->train.setting.at[i];
    return NULL;
}

static double setting(const Graph *g, const char *name, double otherwise)
{
    const TrainSetting *s = find_setting(g, name);
    return s ? s->value.number : otherwise;
}

static void fill_training(const Api *api, Template *t)
{
    static const char *const kinds[] = {"CONSTANT", "LINEAR", "COSINE", "STEPS"};
    const Graph *g = api->plan->graph;
    const TrainSetting *schedule = api->trains ? find_setting(g, "schedule") : NULL;
    Out lr = out_new(g->arena), o = out_new(g->arena);
    out_number(&lr, g->train.lr);
    template_text(t, "LR", lr.at);
    template_fact(t, "HAS_SCHEDULE", schedule);
    if (schedule) {
        bool stairs = find_setting(g, "schedule.every") || find_setting(g, "schedule.factor");
        double steps = setting(g, "schedule.steps", setting(g, "schedule.every", 0));
        out(&o, "%s_%s, %.0f, %.0f, ", api->capitals, kinds[(int)schedule->value.number],
            setting(g, "schedule.warmup", 0), steps);
        out_number(&o,
                   stairs ? setting(g, "schedule.factor", 0.1) : setting(g, "schedule.floor", 0));
    }
    template_text(t, "SCHEDULE", o.at);
}

/* ---- Data ----------------------------------------------------------------------------------- */

static void fill_data(Emission *e, Template *t)
{
    const Plan *plan = e->plan;
    Out fields = out_new(e->arena), sets = out_new(e->arena);
    bool has = plan->slots != NONE;
    RingBytes bytes = ring_bytes(e->api);
    if (has)
        data_write(e, &fields, &sets);
    template_text(t, "DATA_FIELDS", fields.at);
    template_text(t, "DATA_SETS", sets.at);
    fill_number(t, "DATA_SLOTS", has ? plan->buffer[plan->slots].offset : 0);
    fill_number(t, "DATA_WORK", has ? data_work_offset(plan, bytes) : 0);
    fill_number(t, "DATA_SLOT", bytes.slot);
    template_fact(t, "DATA_AHEAD", bytes.slots > 1);
}

/* ---- The source ----------------------------------------------------------------------------- */

static void fill_table(const Emission *e, Template *t, const char *name,
                       void (*write)(const Emission *e, Out *o))
{
    Out o = out_new(e->arena);
    write(e, &o);
    template_text(t, name, o.at);
}

static void write_accessors(const Emission *e, Out *o)
{
    accessors_write(e->api, o);
}

static void fill_tables(const Emission *e, Template *t)
{
    const Api *api = e->api;
    size_t saved = api->saved_end - api->saved_begin;
    template_fact(t, "KEEPS_STATE", api->trains && saved);
    fill_number(t, "LOSS_SCALE", find_loss_scale(api));
    fill_number(t, "SAVED", api->saved_begin);
    fill_number(t, "SAVED_COUNT", saved);
    fill_number(t, "NEEDED_COUNT", api->needed_end - api->saved_begin);
    const char *one = "", *other = "";
    template_fact(t, "PAIRS", tables_pair(e, &one, &other));
    fill_string(t, "PAIR_ONE", one);
    fill_string(t, "PAIR_OTHER", other);
    fill_table(e, t, "TENSORS", tables_tensors);
    fill_table(e, t, "TENSOR_SLOTS", tables_slots);
    fill_table(e, t, "INIT_LISTS", tables_init_lists);
    fill_table(e, t, "INITS", tables_init);
    fill_table(e, t, "OP_NAMES", tables_ops);
    fill_table(e, t, "RESULTS", tables_results);
    fill_table(e, t, "DEATHS", tables_deaths);
    fill_table(e, t, "CONSTANTS", tables_constants);
    fill_table(e, t, "SHARD_ROWS", tables_shards);
    fill_table(e, t, "ACCESSORS", write_accessors);
}

/* The runtime after what the template includes and what ops call. */
static void fill_runtime(Emission *e, Template *t)
{
    Out body = out_new(e->arena);
    template_fact(t, "USES_BLAS", false);
    template_write(t, e->dialect->file, &body); /* once without it, to see what it needs */
    ARRAY(const char *) file = {0};
    for (size_t i = 0; i < t->need.count; i++)
        ARRAY_PUSH(e->arena, &file, t->need.at[i]);
    for (size_t i = 0; i < e->file.count; i++)
        ARRAY_PUSH(e->arena, &file, e->file.at[i]);
    Inlined text = inline_files(e, file.at, file.count, body.at);
    template_text(t, "INCLUDES", text.system);
    template_text(t, "TYPES", text.types);
    template_text(t, "KERNELS", text.kernels);
    template_fact(t, "USES_BLAS", inline_reaches(e->arena, file.at, file.count, "cuda/blas.cuh"));
}

Text emit_source(const Plan *plan, const EmitOptions *options)
{
    Arena *arena = plan->graph->arena;
    Emission e = {.api = api_make(plan, options), .plan = plan, .arena = arena};
    e.dialect = e.api->dialect;
    calls_make(&e);
    Template t = fill_shared(e.api);
    Out o = out_new(arena), header = out_new(arena), declared = out_new(arena),
        functions = out_new(arena), program = out_new(arena);
    out_string(&header, options->header);
    functions_declare(&e, &declared);
    program_write(&e, &program);
    functions_write(&e, &functions);
    template_text(&t, "HEADER", header.at);
    template_text(&t, "LARGEST", largest(plan));
    template_text(&t, "FUNCTIONS_DECLARED", declared.at);
    template_text(&t, "FUNCTIONS", functions.at);
    template_text(&t, "PROGRAM", program.at);
    template_fact(&t, "LOOPS_TENSORS", e.loops_tensors);
    const uint64_t hash = key_of(program.at) * 31 + key_of(functions.at);
    template_text(&t, "PLAN_HASH", arena_printf(arena, "0x%llx", (unsigned long long)hash));
    template_fact(&t, "HAS_ARENA", plan->arena[SPACE_ARENA] > 0);
    fill_number(&t, "ARENA_COUNT", plan->arena[SPACE_ARENA]);
    fill_number(&t, "PERSISTENT", plan->persistent);
    fill_number(&t, "STATE", plan->state == NONE ? 0 : plan->buffer[plan->state].offset);
    fill_data(&e, &t);
    fill_programs(&e, &t);
    fill_training(e.api, &t);
    fill_tables(&e, &t);
    template_text(&t, "INCLUDES", "");
    template_text(&t, "TYPES", "");
    template_text(&t, "KERNELS", "");
    fill_runtime(&e, &t);
    template_write(&t, e.dialect->file, &o);
    if (embedded_rows(e.api) > 0)
        embedded_write(e.api, &o);
    return out_done(&o);
}
