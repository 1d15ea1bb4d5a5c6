/* The facts that the pictures, the report and the JSON file share.
 *
 * Requires: a plan. Leaves: steps, the life of each buffer by itself, live bytes over time.
 * Linear in arguments.
 */
#include "codegen/picture.h"

#include <stdlib.h>
#include <string.h>

/* Pale enough for dark text in the light theme, dark enough for light text in the dark one. */
const ToneRow tones[TONES] = {
    [TONE_PARAM] = {"parameter", "parameters", "#9db7dc", "#2f568c"},
    [TONE_STATE] = {"state", "state", "#c4b5e6", "#5f4b9b"},
    [TONE_GRADIENT] = {"gradient", "gradients", "#f5b57f", "#a8621c"},
    [TONE_PREPARED] = {"prepared", "prepared", "#d9c9a3", "#7a6227"},
    [TONE_INPUT] = {"input", "inputs", "#9ed6b5", "#26774f"},
    [TONE_DATA] = {"data", "data", "#cfdf8a", "#5f7320"},
    [TONE_OUTPUT] = {"output", "outputs", "#eba3c8", "#993f6e"},
    [TONE_ACTIVATION] = {"activation", "activations", "#a6dcf0", "#1f7390"},
    [TONE_RECOMPUTED] = {"recomputed", "recomputed", "#f08f83", "#b03a2e"},
    [TONE_WORKSPACE] = {"workspace", "workspace", "#d3d2c8", "#5d5d58"},
};
const PhaseRow phases[] = {
    [PHASE_FORWARD] = {"forward", "#dcebf7", "#1e3a52"},
    [PHASE_BACKWARD] = {"backward", "#fbe3cc", "#543618"},
    [PHASE_UPDATE] = {"update", "#ddeed8", "#23452a"},
};
const char *const program_names[PROGRAMS] = {"prepare", "forward", "eval", "step", "update"};
const char *const program_titles[PROGRAMS] = {"prepare", "forward", "eval", "training step",
                                              "update"};
const char *const buffer_kinds[BUFFER_KINDS] = {"param", "state",  "prepared",   "input",
                                                "data",  "output", "activation", "workspace"};
const char *const value_kinds[] = {"result",   "input",    "param",  "const",  "state",
                                   "gradient", "prepared", "output", "literal"};

/* ---- Steps ---------------------------------------------------------------------------------- */

double node_work(const Graph *g, const Node *node)
{
    if (node->op->flops)
        return node->op->flops(g, (Id)(node - g->node.at));
    return (double)value_count(&g->value.at[node->value]);
}

static double cluster_work(const Picture *p, Id cluster)
{
    const Cluster *c = &p->plan->clusters->at[cluster];
    double work = 0;
    for (Id k = 0; k < c->nodes; k++)
        work += node_work(p->g, &p->g->node.at[p->plan->clusters->node[c->node + k]]);
    return work;
}

static void list_steps(Picture *p)
{
    const Clusters *clusters = p->plan->clusters;
    uint32_t *first = ARENA_ARRAY(p->arena, uint32_t, clusters->count);
    memset(first, 0xff, clusters->count * sizeof *first);
    for (int program = 0; program < PROGRAMS; program++) {
        const Program *run = &p->plan->program[program];
        for (Id i = 0; i < run->count; i++) {
            const Cluster *c = &clusters->at[run->at[i].cluster];
            uint32_t time = run->begin + i;
            if (first[run->at[i].cluster] == NONE)
                first[run->at[i].cluster] = time;
            p->step[time] = (Step){.occurrence = &run->at[i],
                                   .node = &p->g->node.at[clusters->node[c->node + c->nodes - 1]],
                                   .first = first[run->at[i].cluster],
                                   .program = (uint8_t)program};
            double work = cluster_work(p, run->at[i].cluster) * run->times;
            p->work += work;
            if (p->step[time].first != time) {
                p->again += work;
                p->recomputed++;
            }
        }
    }
}

/* ---- Buffers -------------------------------------------------------------------------------- */

static uint8_t tone_of(const Picture *p, const Buffer *b, const Life *life)
{
    static const uint8_t by_kind[BUFFER_KINDS] = {
        [BUFFER_PARAM] = TONE_PARAM,         [BUFFER_STATE] = TONE_STATE,
        [BUFFER_PREPARED] = TONE_PREPARED,   [BUFFER_INPUT] = TONE_INPUT,
        [BUFFER_OUTPUT] = TONE_OUTPUT,       [BUFFER_ACTIVATION] = TONE_ACTIVATION,
        [BUFFER_WORKSPACE] = TONE_WORKSPACE, [BUFFER_DATA] = TONE_DATA,
    };
    if (b->value != NONE && p->g->value.at[b->value].kind == VALUE_GRADIENT)
        return TONE_GRADIENT;
    if (b->kind != BUFFER_ACTIVATION || life->producer == NONE)
        return by_kind[b->kind];
    if (p->step[life->producer].first != life->producer)
        return TONE_RECOMPUTED;
    return p->step[life->producer].node->phase == PHASE_FORWARD ? TONE_ACTIVATION : TONE_GRADIENT;
}

/* The extent of the value in the arena. A window of a concat with gaps is drawn at the same share
 * of its root, in one piece. */
static void find_extent(const Picture *p, const Buffer *b, Life *life)
{
    life->begin = b->offset;
    life->height = b->bytes;
    if (b->value == NONE)
        return;
    const Value *value = &p->g->value.at[b->value];
    int64_t size = (int64_t)dtype_size((Dtype)value->dtype), inner = 1, outer = 1;
    int gap = b->layout.rank - 1;
    for (; gap >= 0 && (b->layout.dim[gap] == 1 || b->layout.stride[gap] == inner); gap--)
        inner *= b->layout.dim[gap];
    if (gap >= 0 && b->layout.stride[gap] > 0) {
        for (int i = 0; i <= gap; i++)
            outer *= b->layout.dim[i];
        life->begin += (uint64_t)(b->layout.offset % b->layout.stride[gap] * outer * size);
    } else {
        life->begin += (uint64_t)(b->layout.offset * size);
    }
    life->height = value_bytes(value);
}

static void visit(Picture *p, uint32_t time, Id buffer, bool writes, Id *last, bool fill)
{
    Life *life = &p->life[buffer];
    if (writes) {
        if (life->producer == NONE)
            life->producer = time;
    } else if (last[buffer] != time) {
        last[buffer] = time;
        if (fill)
            p->reader[life->reader + life->readers] = time;
        life->readers++;
    }
    if (time < life->birth)
        life->birth = time;
    if (time + 1 > life->death)
        life->death = time + 1;
}

/* Runs over all arguments: once to count readers, once to list them. */
static void visit_all(Picture *p, bool fill)
{
    Id *last = ARENA_ARRAY(p->arena, Id, p->plan->buffers);
    memset(last, 0xff, p->plan->buffers * sizeof *last);
    for (uint32_t time = 0; time < p->plan->end; time++) {
        const Occurrence *o = p->step[time].occurrence;
        const Cluster *c = &p->plan->clusters->at[o->cluster];
        for (Id k = 0; k < c->operands + c->results; k++)
            visit(p, time, p->plan->arg[o->arg + k], k >= c->operands, last, fill);
        if (o->workspace != NONE)
            visit(p, time, o->workspace, true, last, fill);
    }
}

/* Outputs last until their program ends, what persists until the end of time. */
static void find_lives(Picture *p)
{
    for (Id i = 0; i < p->plan->buffers; i++)
        p->life[i] = (Life){.birth = UINT32_MAX, .producer = NONE};
    visit_all(p, false);
    Id next = 0;
    for (Id i = 0; i < p->plan->buffers; i++) {
        p->life[i].reader = next;
        next += p->life[i].readers;
        p->life[i].readers = 0;
    }
    p->reader = ARENA_ARRAY(p->arena, uint32_t, next + 1);
    visit_all(p, true);
    for (Id i = 0; i < p->plan->buffers; i++) {
        const Buffer *b = &p->plan->buffer[i];
        Life *life = &p->life[i];
        if (life->producer == NONE || b->kind <= BUFFER_OUTPUT) {
            life->birth = life->producer == NONE ? b->birth : life->producer;
            life->death = b->death;
        }
        life->tone = tone_of(p, b, life);
        find_extent(p, b, life);
    }
}

static void find_live(Picture *p)
{
    uint64_t align = p->options->target ? p->options->target->align : 1;
    for (Id i = 0; i < p->plan->buffers; i++) {
        const Buffer *b = &p->plan->buffer[i];
        if (b->root != i || b->space != SPACE_ARENA)
            continue;
        uint64_t bytes = (b->bytes + align - 1) / align * align;
        p->live[b->birth] += bytes; /* changes first, sums below: differences wrap round */
        p->live[b->death] -= bytes;
        p->bytes[p->life[i].tone] += b->bytes;
        p->count[p->life[i].tone]++;
        if (b->value == NONE)
            continue;
        const Dtype dtype = (Dtype)p->g->value.at[b->value].dtype;
        p->dtype_bytes[dtype] += b->bytes;
        p->dtype_count[dtype]++;
        p->narrow |= dtype_is_narrow(dtype);
    }
    for (uint32_t t = 0; t <= p->plan->end; t++) {
        if (t)
            p->live[t] += p->live[t - 1];
        if (p->live[t] > p->peak) {
            p->peak = p->live[t];
            p->peak_time = t;
        }
    }
}

Picture *picture_make(const Plan *plan, const EmitOptions *options)
{
    Arena *arena = plan->graph->arena;
    Picture *p = ARENA_NEW(arena, Picture);
    *p = (Picture){.plan = plan,
                   .g = plan->graph,
                   .arena = arena,
                   .options = options,
                   .step = ARENA_ARRAY(arena, Step, plan->end + 1),
                   .life = ARENA_ARRAY(arena, Life, plan->buffers + 1),
                   .live = ARENA_ARRAY(arena, uint64_t, (size_t)plan->end + 2)};
    list_steps(p);
    find_lives(p);
    picture_ends(p);
    find_live(p);
    return p;
}

bool is_drawn(const Plan *plan, Id buffer)
{
    const Buffer *b = &plan->buffer[buffer];
    return b->space == SPACE_ARENA && (b->root == buffer || b->kind > BUFFER_DATA);
}

bool is_live(const Picture *p, Id buffer, uint32_t time)
{
    const Buffer *b = &p->plan->buffer[buffer];
    return b->root == buffer && b->space == SPACE_ARENA && b->birth <= time && b->death > time;
}

typedef struct {
    uint64_t bytes;
    Id buffer;
} Sized;

static int by_size(const void *a, const void *b)
{
    const Sized *m = a, *n = b;
    if (m->bytes != n->bytes)
        return m->bytes > n->bytes ? -1 : 1;
    return (m->buffer > n->buffer) - (m->buffer < n->buffer);
}

Id *largest_at(const Picture *p, uint32_t time, Id *count)
{
    Sized *sized = ARENA_ARRAY(p->arena, Sized, p->plan->buffers + 1);
    Id *list = ARENA_ARRAY(p->arena, Id, p->plan->buffers + 1);
    *count = 0;
    for (Id i = 0; i < p->plan->buffers; i++)
        if (is_live(p, i, time))
            sized[(*count)++] = (Sized){p->plan->buffer[i].bytes, i};
    qsort(sized, *count, sizeof *sized, by_size);
    for (Id i = 0; i < *count; i++)
        list[i] = sized[i].buffer;
    return list;
}

Id tenant_at(const Picture *p, Id root, uint32_t time)
{
    Id found = root;
    for (Id i = 0; i < p->plan->buffers; i++)
        if (p->plan->buffer[i].root == root && is_drawn(p->plan, i) && p->life[i].birth <= time &&
            p->life[i].end > time && p->plan->buffer[i].bytes == p->plan->buffer[root].bytes)
            found = i;
    return found;
}

/* ---- Names ---------------------------------------------------------------------------------- */

const char *buffer_name(const Picture *p, Id buffer)
{
    const Buffer *b = &p->plan->buffer[buffer];
    if (b->value != NONE)
        return p->g->value.at[b->value].name;
    if (b->kind == BUFFER_STATE)
        return "state of the run";
    if (b->kind == BUFFER_DATA)
        return buffer == p->plan->slots ? "slots of the data ring" : "files and workers of data";
    uint32_t time = p->life[buffer].producer;
    return time == NONE ? "workspace"
                        : arena_printf(p->arena, "workspace of %s", p->step[time].node->name);
}

const char *buffer_shape(const Picture *p, Id buffer)
{
    Id id = p->plan->buffer[buffer].value;
    if (id == NONE)
        return "";
    const Value *value = &p->g->value.at[id];
    return shape_text(p->arena, (Dtype)value->dtype, value->rank, value->dim);
}

uint32_t buffer_line(const Picture *p, Id buffer)
{
    Id id = p->plan->buffer[buffer].value;
    if (id != NONE && p->g->value.at[id].span.line)
        return p->g->value.at[id].span.line;
    uint32_t time = p->life[buffer].producer;
    return time == NONE ? 0 : p->step[time].node->span.line;
}

const char *step_ops(const Picture *p, uint32_t time)
{
    const Clusters *clusters = p->plan->clusters;
    const Cluster *c = &clusters->at[p->step[time].occurrence->cluster];
    Out o = out_new(p->arena);
    for (Id k = 0; k < c->nodes; k++)
        out(&o, "%s%s", k ? ", " : "", p->g->node.at[clusters->node[c->node + k]].op->name);
    return o.at;
}

const char *offset_text(Arena *arena, uint64_t offset)
{
    return arena_printf(arena, "0x%llx", (unsigned long long)offset);
}
