#include "tests/random/models.h"

#include <stdlib.h>
#include <string.h>

Graph *model_graph(Arena *arena, const char *text, Lowering how)
{
    Source *source = ARENA_NEW(arena, Source);
    *source = (Source){.file = "net.g", .text = text, .length = strlen(text)};
    Diag *diag = diag_new(arena, NULL, false);
    diag_source(diag, source);
    Ast *ast = parse(arena, diag, source);
    Model model = {.source = source, .ast = ast};
    if (!ast)
        return NULL;
    Choice choice = {.micro = how.times,
                     .chunked_loss = how.chunked_loss,
                     .precision = (uint8_t)model_precision(&model)};
    return model_trains(&model) ? model_lower(&model, &choice, arena, diag) : NULL;
}

/* ---- What is there at first -------------------------------------------------------------------
 */

static double drawn(const char *name, int64_t i)
{
    uint64_t x = 0xcbf29ce484222325u;
    for (; *name; name++)
        x = (x ^ (unsigned char)*name) * 0x100000001b3u;
    x += (uint64_t)i * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (double)((x ^ x >> 31) >> 11) * 0x1p-53;
}

/* State begins as after a reset, and so do statistics; indices are right for five rows. */
static double first(const Value *value, int64_t i)
{
    bool reset = value->kind == VALUE_STATE || value->init.kind == INIT_ONES;
    if (reset)
        return value->init.kind == INIT_ONES    ? 1
               : value->init.kind == INIT_CONST ? value->init.a
                                                : 0;
    double x = drawn(value->name, i);
    if (value->dtype != F32)
        return (double)(int)(x * (value->dtype == BOOL ? 2 : 5));
    return value->kind == VALUE_INPUT ? 2 * x - 1 : x - 0.5;
}

void model_fill(const Value *value, void *to)
{
    for (int64_t i = 0; i < value_count(value); i++) {
        double x = first(value, i);
        switch (value->dtype) {
        case F32:
            ((float *)to)[i] = (float)x;
            break;
        case I32:
            ((int32_t *)to)[i] = (int32_t)x;
            break;
        case I64:
            ((int64_t *)to)[i] = (int64_t)x;
            break;
        default:
            ((uint8_t *)to)[i] = (uint8_t)x;
        }
    }
}

bool model_is_saved(const Value *value)
{
    return persists(value) && value->whole == NONE && value->previous == NONE;
}

/* ---- Records ----------------------------------------------------------------------------------
 */

void records_add(Arena *arena, Records *records, Record record)
{
    if (records->count == records->room) {
        Record *more = ARENA_ARRAY(arena, Record, 2 * records->room + 16);
        for (size_t i = 0; i < records->count; i++)
            more[i] = records->at[i];
        records->at = more;
        records->room = 2 * records->room + 16;
    }
    records->at[records->count++] = record;
}

static void add_value(Arena *arena, Records *records, const PlainRun *run, const char *when,
                      const char *name, Id id, bool linear)
{
    const Value *value = &run->graph->value.at[id];
    Record record = {.when = when, .name = name, .dtype = value->dtype, .linear = linear};
    record.count = (size_t)value_count(value);
    record.data = arena_copy(arena, (const char *)plain_block(run, id), value_bytes(value));
    if (value->kind == VALUE_PARAM) {
        void *before = arena_alloc(arena, value_bytes(value));
        model_fill(value, before);
        record.before = before;
    }
    records_add(arena, records, record);
}

bool model_makes(const Graph *g, const Output *output, ProgramKind program)
{
    Id node = g->value.at[output->use.value].node;
    return node != NONE && g->node.at[node].program == program;
}

/* What an output shows of its value: a part that lies in one piece, or all. */
static void add_outputs(Arena *arena, Records *records, const PlainRun *run, const char *when,
                        ProgramKind program)
{
    const Graph *g = run->graph;
    for (size_t i = 0; i < g->output.count; i++) {
        const Output *output = &g->output.at[i];
        if (output->loss || !model_makes(g, output, program))
            continue;
        add_value(arena, records, run, when, output->name, output->use.value, true);
        Record *record = &records->at[records->count - 1];
        View view = use_view(g, output->use);
        record->data =
            (const char *)record->data + view.offset * (int64_t)dtype_size((Dtype)record->dtype);
        record->count = (size_t)view_count(&view);
        record->before = NULL;
    }
}

/* ---- The run ----------------------------------------------------------------------------------
 */

static Id loss_of(const Graph *g, ProgramKind program)
{
    Id loss = NONE;
    for (size_t i = 0; i < g->output.count; i++) {
        Id id = g->output.at[i].use.value;
        if (g->output.at[i].loss && g->value.at[id].program == program)
            loss = id;
    }
    return loss;
}

/* All micro-batches of a program; the sum of what they lose. */
static float run_program(PlainRun *run, ProgramKind program)
{
    uint32_t times = program_times(run->graph, program);
    Id loss = loss_of(run->graph, program);
    double sum = 0;
    run->run.micros = times > 1 ? (int32_t)times : 0;
    for (uint32_t micro = 0; micro < times && !run->status; micro++) {
        run->run.micro = (int32_t)micro;
        plain_program(run, program);
        if (loss != NONE && !run->status)
            sum += (double)*(const float *)(const void *)plain_block(run, loss);
    }
    return (float)sum;
}

static void add_loss(Arena *arena, Records *records, const char *when, float loss)
{
    float *copy = ARENA_NEW(arena, float);
    *copy = loss;
    records_add(arena, records, (Record){when, "loss", F32, true, 1, copy, NULL});
}

static void add_persistent(Arena *arena, Records *records, const PlainRun *run, const char *when)
{
    const Graph *g = run->graph;
    bool sign = strcmp(g->train.optimizer, "lion") == 0;
    for (Id v = 0; v < g->value.count; v++) {
        const Value *value = &g->value.at[v];
        if (model_is_saved(value) && value->kind != VALUE_INPUT)
            add_value(arena, records, run, when, value->name, v,
                      !(sign && value->kind == VALUE_PARAM));
    }
}

static const struct {
    const char *forward, *eval, *step;
} calls[STEPS + 1] = {{"forward 0", "eval 0", "step 0"},
                      {"forward 1", "eval 1", "step 1"},
                      {"forward 2", "eval 2", "step 2"}};

Records model_run(Arena *arena, const Graph *g)
{
    Records records = {0};
    PlainRun run = plain_new(g, 1);
    run.run.batch = 4;
    run.run.lr = 0.01;
    for (Id v = 0; v < g->value.count; v++)
        if (model_is_saved(&g->value.at[v]))
            model_fill(&g->value.at[v], run.block[v]);
    for (int step = 0; step <= STEPS && !run.status; step++) {
        run.run.step = (uint64_t)step;
        run_program(&run, PROGRAM_FORWARD);
        add_outputs(arena, &records, &run, calls[step].forward, PROGRAM_FORWARD);
        add_loss(arena, &records, calls[step].eval, run_program(&run, PROGRAM_EVAL));
        add_outputs(arena, &records, &run, calls[step].eval, PROGRAM_EVAL);
        if (step == STEPS)
            break;
        float loss = run_program(&run, PROGRAM_STEP);
        run_program(&run, PROGRAM_UPDATE);
        add_loss(arena, &records, calls[step].step, loss);
        add_persistent(arena, &records, &run, calls[step].step);
    }
    records.status = run.status;
    plain_free(&run);
    return records;
}
