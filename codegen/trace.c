/* The plan for a trace viewer (chrome://tracing, Perfetto): steps as slices, bytes as counters.
 *
 * Requires: a plan. Leaves: the viewers' JSON. There is no clock here: a step lasts one unit for
 * each thousand operations, at least one, so that the picture has the proportions of the work.
 */
#include "codegen/plan_json.h"

#include <math.h>

static json_int_t duration(const Picture *p, uint32_t time)
{
    const Clusters *clusters = p->plan->clusters;
    const Cluster *c = &clusters->at[p->step[time].occurrence->cluster];
    double work = 0;
    for (Id k = 0; k < c->nodes; k++)
        work += node_work(p->g, &p->g->node.at[clusters->node[c->node + k]]);
    return (json_int_t)fmin(fmax(work / 1000, 1), 1e15);
}

static json_t *name_json(const char *kind, int process, int thread, const char *name)
{
    return json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "ph", "M", "name", kind, "pid", process,
                     "tid", thread, "args", "name", name);
}

static json_t *slice_json(const Picture *p, uint32_t time, json_int_t begin)
{
    const Step *step = &p->step[time];
    json_t *args =
        json_pack("{s:s, s:I, s:s, s:I}", "name", step->node->name, "step", (json_int_t)time,
                  "phase", phases[step->node->phase].name, "live", (json_int_t)p->live[time]);
    if (step->node->span.line)
        json_object_set_new(
            args, "source",
            json_string(source_where(p->arena, p->g->source, step->node->span.line)));
    if (step->first != time)
        json_object_set_new(args, "again", json_integer(step->first));
    return json_pack("{s:s, s:s, s:s, s:i, s:i, s:I, s:I, s:o}", "ph", "X", "name",
                     step_ops(p, time), "cat", phases[step->node->phase].name, "pid", 1, "tid",
                     step->program + 1, "ts", begin, "dur", duration(p, time), "args", args);
}

/* Bytes alive, by kind: viewers stack the members of a counter. */
static json_t *counter_json(const uint64_t *bytes, json_int_t at)
{
    json_t *args = json_object();
    for (int t = 0; t < TONES; t++)
        json_object_set_new(args, tones[t].plural, json_integer((json_int_t)bytes[t]));
    return json_pack("{s:s, s:s, s:i, s:I, s:o}", "ph", "C", "name", "live bytes", "pid", 1, "ts",
                     at, "args", args);
}

/* By time and tone: what is born there less what dies. */
static uint64_t *tone_changes(const Picture *p)
{
    uint64_t *change = ARENA_ARRAY(p->arena, uint64_t, ((size_t)p->plan->end + 2) * TONES);
    for (Id i = 0; i < p->plan->buffers; i++) {
        const Buffer *b = &p->plan->buffer[i];
        if (b->root != i || b->space != SPACE_ARENA)
            continue;
        change[(size_t)b->birth * TONES + p->life[i].tone] += b->bytes;
        change[(size_t)b->death * TONES + p->life[i].tone] -= b->bytes; /* sums do not wrap */
    }
    return change;
}

Text emit_trace(const Plan *plan, const EmitOptions *options)
{
    Picture *p = picture_make(plan, options);
    json_begin();
    json_t *events = json_array();
    uint64_t *change = tone_changes(p), bytes[TONES] = {0};
    json_int_t now = 0;
    json_array_append_new(events, name_json("process_name", 1, 0, plan->graph->name));
    for (int k = 0; k < PROGRAMS; k++)
        if (plan->program[k].count)
            json_array_append_new(events, name_json("thread_name", 1, k + 1, program_titles[k]));
    for (uint32_t time = 0; time < plan->end; time++) {
        for (int t = 0; t < TONES; t++)
            bytes[t] += change[(size_t)time * TONES + t];
        json_array_append_new(events, counter_json(bytes, now));
        json_array_append_new(events, slice_json(p, time, now));
        now += duration(p, time);
    }
    json_t *trace = json_pack("{s:s, s:o}", "displayTimeUnit", "ms", "traceEvents", events);
    char *text = json_dumps(trace, JSON_COMPACT);
    Out o = out_new(p->arena);
    out(&o, "%s\n", text);
    json_free_t release;
    json_get_alloc_funcs(NULL, &release);
    release(text);
    json_decref(trace);
    return out_done(&o);
}
