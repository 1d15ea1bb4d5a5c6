#include "tests/plan/run_step.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const gp_run run_once = {.seed = 1, .threads = 1, .lr = 0.01};

/* ---- What persistent values hold ------------------------------------------------------------- */

static double drawn(uint64_t seed, Id value, int64_t i)
{
    uint64_t x = seed * 0x9e3779b97f4a7c15u + value * 0xbf58476d1ce4e5b9u + (uint64_t)i;
    x = (x ^ x >> 31) * 0x94d049bb133111ebu;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
    return (double)(x >> 11) * 0x1p-53;
}

/* Integers are 0 or 1, so that they are right as indices; state is positive, as variances are. */
void plain_fill(const Graph *g, Id id, uint64_t seed, void *to)
{
    const Value *value = &g->value.at[id];
    for (int64_t i = 0; i < value_count(value); i++) {
        double x = drawn(seed, id, i);
        switch (value->dtype) {
        case F32:
            ((float *)to)[i] = (float)(value->kind == VALUE_STATE ? 0.5 + x : 2 * x - 1);
            break;
        case I32:
            ((int32_t *)to)[i] = x > 0.5;
            break;
        case I64:
            ((int64_t *)to)[i] = x > 0.5;
            break;
        default:
            ((uint8_t *)to)[i] = x > 0.5;
        }
    }
}

bool persists(const Value *value)
{
    return value->kind == VALUE_INPUT || value->kind == VALUE_PARAM || value->kind == VALUE_CONST ||
           value->kind == VALUE_STATE;
}

/* ---- Runs ------------------------------------------------------------------------------------ */

/* A version of state lies where the first lay; an input of a micro-batch in the whole one. */
unsigned char *plain_block(const PlainRun *run, Id value)
{
    while (run->graph->value.at[value].previous != NONE)
        value = run->graph->value.at[value].previous;
    const Value *v = &run->graph->value.at[value];
    if (v->whole != NONE && v->kind == VALUE_INPUT)
        return run->block[v->whole] + (uint64_t)run->run.micro * value_bytes(v);
    return run->block[value];
}

static int plain_step(PlainRun *run, Id node)
{
    const Graph *g = run->graph;
    Step s = step_new(g, node, &run->run);
    for (Id i = 0; i < s.node->uses; i++) {
        Use use = node_use(g, s.node, i);
        if (use.value == NONE || s.in[i].data)
            continue;
        View view = use_view(g, use);
        s.in[i] =
            tensor_at(plain_block(run, use.value), (Dtype)g->value.at[use.value].dtype, &view);
    }
    for (Id i = 0; i < s.node->values; i++) {
        const Value *value = &g->value.at[node_value(s.node, i)];
        View view = value_view(value);
        s.out[i] = tensor_at(plain_block(run, node_value(s.node, i)), (Dtype)value->dtype, &view);
    }
    const gp_kernel *kernel = runtime_kernel(s.node->op->name);
    gp_call call = step_call(&s);
    size_t bytes = kernel && kernel->workspace ? kernel->workspace(&call, s.setting) : 0;
    void *work = bytes ? aligned_alloc(256, (bytes + 255) / 256 * 256) : NULL;
    int status = step_run(&s, work);
    free(work);
    step_free(&s);
    return status;
}

PlainRun plain_new(const Graph *g, uint64_t seed)
{
    PlainRun run = {
        .graph = g, .block = calloc(g->value.count + 1, sizeof(unsigned char *)), .run = run_once};
    for (Id v = 0; v < g->value.count; v++) {
        const Value *value = &g->value.at[v];
        bool made =
            value->node != NONE || value->kind == VALUE_GRADIENT || value->kind == VALUE_OUTPUT;
        bool window = value->kind == VALUE_INPUT && value->whole != NONE;
        if (value->kind == VALUE_LITERAL || window || (!persists(value) && !made))
            continue;
        run.block[v] = malloc(value_bytes(value));
        memset(run.block[v], POISON, value_bytes(value));
        if (persists(value))
            plain_fill(g, v, seed, run.block[v]);
    }
    return run;
}

void plain_program(PlainRun *run, ProgramKind program)
{
    for (Id n = 0; n < run->graph->node.count && !run->status; n++)
        if (run->graph->node.at[n].program == program)
            run->status = plain_step(run, n);
}

PlainRun plain_run(const Graph *g, uint64_t seed)
{
    PlainRun run = plain_new(g, seed);
    plain_program(&run, PROGRAM_PREPARE);
    plain_program(&run, PROGRAM_FORWARD);
    return run;
}

void plain_free(PlainRun *run)
{
    for (size_t v = 0; v < run->graph->value.count; v++)
        free(run->block[v]);
    free(run->block);
}

PlainRun plain_train(const Graph *g, uint64_t seed, uint64_t steps)
{
    static const ProgramKind order[] = {PROGRAM_STEP, PROGRAM_UPDATE, PROGRAM_FORWARD};
    PlainRun run = plain_new(g, seed);
    for (uint64_t step = 0; step <= steps; step++)
        for (int p = step < steps ? 0 : 2; p < (step < steps ? 2 : 3); p++) {
            uint32_t times = program_times(g, order[p]);
            run.run.step = step;
            run.run.micros = times > 1 ? (int32_t)times : 0;
            for (uint32_t micro = 0; micro < times; micro++) {
                run.run.micro = (int32_t)micro;
                plain_program(&run, order[p]);
            }
        }
    return run;
}

bool plain_same(const PlainRun *run, Id value, const void *got)
{
    Dtype dtype = (Dtype)run->graph->value.at[value].dtype;
    size_t size = dtype_size(dtype);
    const unsigned char *want = plain_block(run, value), *at = got;
    for (int64_t i = 0; i < value_count(&run->graph->value.at[value]); i++)
        if (!same_element(dtype, at + i * (int64_t)size, want + i * (int64_t)size))
            return false;
    return true;
}

bool plain_is_finite(const PlainRun *plain)
{
    for (Id v = 0; v < plain->graph->value.count; v++) {
        const Value *value = &plain->graph->value.at[v];
        if (value->kind != VALUE_PARAM && value->kind != VALUE_STATE)
            continue;
        for (int64_t i = 0; i < value_count(value); i++)
            if (!isfinite(((const float *)plain->block[v])[i]))
                return false;
    }
    return true;
}
