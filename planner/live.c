/* Occurrences, buffers and their lifetimes, for clusters in an order.
 *
 * Requires: clusters, their order, and which values lie in windows. Leaves: a Plan without offsets.
 * A result takes the bytes of an operand that dies with it where the row allows it; that is decided
 * here, since deaths follow from the order. A cluster that runs again makes its values again, in
 * buffers of their own; a reader takes the latest. Linear in operands.
 */
#include "planner/internal.h"

#include <assert.h>
#include <string.h>

typedef struct {
    Arena *arena;
    const Graph *g;
    const Clusters *clusters;
    const Order *order;
    const Windows *windows;
    const Target *target;
    const PlanOptions *options;
    const uint64_t *workspace; /* by cluster, in bytes */
    Plan *plan;
    ARRAY(Buffer) buffer;
    uint32_t *last;  /* by value, of what was made of it last: time of the last reader, plus 1; the
                        end for outputs */
    uint32_t *death; /* by argument that is a result: what `last` becomes with it */
    uint32_t *ends;  /* by value that is made once: the same, before it is made */
    Id *buffer_of;   /* by value; NONE before it has one */
    bool *opened;    /* by value: it has a buffer before it is made, since windows lie in it */
    bool *is_output; /* by value */
    bool *is_user;   /* by value: an output of the user's, as against a loss */
} Live;

uint64_t round_up(uint64_t bytes, uint64_t align)
{
    return (bytes + align - 1) / align * align;
}

/* ---- Time ----------------------------------------------------------------------------------- */

static void list_occurrences(Live *l)
{
    Plan *plan = l->plan;
    const Clusters *c = l->clusters;
    uint32_t time = 0;
    Id args = 0;
    for (int p = 0; p < PROGRAMS; p++) {
        Program *program = &plan->program[p];
        program->begin = time;
        program->times = program_times(l->g, p);
        program->count = l->order->count[p];
        program->at = ARENA_ARRAY(l->arena, Occurrence, program->count);
        for (Id i = 0; i < program->count; i++) {
            Id cluster = l->order->cluster[p][i];
            program->at[i] = (Occurrence){.cluster = cluster, .arg = args, .workspace = NONE};
            args += c->at[cluster].operands + c->at[cluster].results;
        }
        time += program->count;
    }
    plan->end = time;
    plan->arg = ARENA_ARRAY(l->arena, Id, args);
    l->death = ARENA_ARRAY(l->arena, uint32_t, args);
}

/* Outputs stay until the next call. */
static void find_outputs(Live *l)
{
    for (size_t i = 0; i < l->g->output.count; i++) {
        Id value = l->g->output.at[i].use.value;
        Id node = l->g->value.at[value].node;
        const Program *program =
            &l->plan->program[node == NONE ? PROGRAM_FORWARD : l->g->node.at[node].program];
        l->last[value] = program->begin + program->count;
        l->is_output[value] = true;
        l->is_user[value] |= !l->g->output.at[i].loss;
    }
}

/* From the end to the beginning: readers seen so far belong to the next maker. */
static void find_deaths(Live *l, const Program *program)
{
    for (Id i = program->count; i-- > 0;) {
        const Occurrence *o = &program->at[i];
        const Cluster *c = &l->clusters->at[o->cluster];
        for (Id k = 0; k < c->results; k++) {
            Id value = l->clusters->result[c->result + k];
            l->death[o->arg + c->operands + k] = l->ends[value] = l->last[value];
            if (!value_is_version(l->g, value))
                l->last[value] = 0;
        }
        for (Id k = 0; k < c->operands; k++) {
            Id value = l->clusters->operand[c->operand + k];
            if (!l->last[value])
                l->last[value] = program->begin + i + 1;
        }
    }
}

static void find_last_readers(Live *l)
{
    find_outputs(l);
    for (int p = PROGRAMS; p-- > 0;)
        find_deaths(l, &l->plan->program[p]);
    for (Id v = 0; v < l->g->value.count; v++) /* a window keeps the whole */
        if (l->last[v] && l->g->value.at[v].whole != NONE && !l->g->value.at[v].fed)
            l->last[l->g->value.at[v].whole] = l->last[v];
}

/* ---- Buffers -------------------------------------------------------------------------------- */

static Id add_buffer(Live *l, Buffer buffer)
{
    Id id = (Id)l->buffer.count;
    if (buffer.root == NONE)
        buffer.root = id;
    ARRAY_PUSH(l->arena, &l->buffer, buffer);
    Buffer *root = &l->buffer.at[buffer.root];
    if (root->death < buffer.death)
        root->death = buffer.death;
    return id;
}

/* What is there before a program runs: persistent, or as long as the program that fills it. */
static void add_present(Live *l)
{
    static const uint8_t kinds[] = {
        [VALUE_INPUT] = BUFFER_INPUT,       [VALUE_PARAM] = BUFFER_PARAM,
        [VALUE_CONST] = BUFFER_PARAM,       [VALUE_STATE] = BUFFER_STATE,
        [VALUE_GRADIENT] = BUFFER_STATE,    [VALUE_OUTPUT] = BUFFER_OUTPUT,
        [VALUE_PREPARED] = BUFFER_PREPARED,
    };
    for (Id v = 0; v < l->g->value.count; v++) {
        const Value *value = &l->g->value.at[v];
        if (value->kind == VALUE_RESULT || value->kind == VALUE_LITERAL || value->fed ||
            (!l->last[v] && !l->ends[v] && !l->is_output[v]))
            continue;
        bool prepared = value->kind == VALUE_PREPARED;
        bool io = value->kind == VALUE_INPUT || value->kind == VALUE_OUTPUT;
        bool callers = io                                          ? l->options->io_external
                       : prepared || value->kind == VALUE_GRADIENT ? false
                                                                   : l->options->params_external;
        Buffer buffer = {.value = v,
                         .root = value->whole == NONE ? NONE : l->buffer_of[value->whole],
                         .layout = value_view(value),
                         .death = l->plan->end ? l->plan->end : 1,
                         .bytes = value_bytes(value),
                         .kind = kinds[value->kind],
                         .program = prepared ? PROGRAM_PREPARE : PROGRAM_FORWARD,
                         .space = callers ? SPACE_CALLER : SPACE_ARENA};
        l->opened[v] = prepared; /* what prepare makes goes there */
        if (!value_is_persistent(l->g, v)) {
            const Program *program = &l->plan->program[value->program];
            buffer.birth = program->begin;
            buffer.death = program->begin + program->count;
            buffer.program = value->program;
        }
        l->buffer_of[v] = add_buffer(l, buffer);
    }
}

static Id add_ring_buffer(Live *l, uint64_t bytes)
{
    return add_buffer(l, (Buffer){.value = NONE,
                                  .root = NONE,
                                  .death = l->plan->end ? l->plan->end : 1,
                                  .bytes = bytes,
                                  .program = PROGRAM_FORWARD,
                                  .kind = BUFFER_DATA});
}

/* The slots that data is read into, what fills them, and the inputs: each has its place in the
 * first slot, and moves from slot to slot with the micro-batches. */
static void add_ring(Live *l)
{
    Plan *plan = l->plan;
    plan->slots = plan->work = NONE;
    if (!l->g->data.count)
        return;
    const DataStmt *data = &l->g->data.at[0];
    plan->ring = l->options->ring;
    if (!plan->ring.depth)
        plan->ring.depth = 1;
    RingBytes bytes = l->target->ring(l->target, l->g, plan->ring);
    plan->slots = add_ring_buffer(l, bytes.slot * bytes.slots);
    if (bytes.work)
        plan->work = add_ring_buffer(l, bytes.work);
    for (Id v = 0; v < l->g->value.count; v++) {
        const Value *value = &l->g->value.at[v];
        if (!value->fed || !l->last[v])
            continue;
        Id whole = value->whole == NONE ? v : value->whole;
        Buffer buffer = l->buffer.at[plan->slots];
        for (int i = 0; i < data->inputs; i++)
            if (data->input[i] == whole) {
                buffer.value = v;
                buffer.root = plan->slots;
                buffer.layout = value_view(value);
                buffer.layout.offset = (int64_t)(bytes.offset[i] / dtype_size((Dtype)value->dtype));
                buffer.bytes = value_bytes(value);
                l->buffer_of[v] = add_buffer(l, buffer);
            }
    }
}

/* What the target's programs keep for themselves. */
static void add_state(Live *l)
{
    l->plan->state = NONE;
    if (l->target->state)
        l->plan->state = add_buffer(l, (Buffer){.value = NONE,
                                                .root = NONE,
                                                .death = l->plan->end ? l->plan->end : 1,
                                                .bytes = l->target->state,
                                                .program = PROGRAM_FORWARD,
                                                .kind = BUFFER_STATE});
}

static Buffer result_buffer(const Live *l, Id value, uint32_t time, int program)
{
    const Program *runs = &l->plan->program[program];
    uint32_t death = l->last[value] > time ? l->last[value] : time + 1;
    /* a recomputed output is an output only the last time */
    bool output = l->is_output[value] && death == runs->begin + runs->count;
    bool callers = output && l->is_user[value] && l->options->io_external;
    return (Buffer){.value = value,
                    .root = NONE,
                    .layout = value_view(&l->g->value.at[value]),
                    .birth = time,
                    .death = death,
                    .bytes = value_bytes(&l->g->value.at[value]),
                    .kind = output ? BUFFER_OUTPUT : BUFFER_ACTIVATION,
                    .program = (uint8_t)program,
                    .space = callers ? SPACE_CALLER : SPACE_ARENA};
}

/* The buffer of a value that others may lie in before it is complete: made when the first of
 * them is written. */
static Id open_buffer(Live *l, Id value, uint32_t time, int program)
{
    if (l->buffer_of[value] != NONE)
        return l->buffer_of[value];
    if (!l->last[value])
        l->last[value] = l->ends[value];
    Buffer buffer = result_buffer(l, value, time, program);
    Id host = l->windows->host[value], whole = l->g->value.at[value].whole;
    if (whole != NONE) { /* an output's, which is there */
        buffer.root = l->buffer_of[whole];
        buffer.space = l->buffer.at[buffer.root].space;
    } else if (host != NONE) {
        Id host_buffer = open_buffer(l, host, time, program);
        l->opened[host] = true;
        const View *outer = &l->buffer.at[host_buffer].layout;
        int axis = concat_axis(l->g, l->g->value.at[host].node);
        buffer.root = l->buffer.at[host_buffer].root;
        buffer.layout.offset = outer->offset + l->windows->begin[value] * outer->stride[axis];
        memcpy(buffer.layout.stride, outer->stride, sizeof outer->stride);
        buffer.space = l->buffer.at[host_buffer].space;
    }
    return l->buffer_of[value] = add_buffer(l, buffer);
}

/* ---- In place ------------------------------------------------------------------------------- */

/* Every node of the cluster reads the value only where the loop writes the same element. */
static bool read_plainly(const Graph *g, const Clusters *clusters, const Cluster *c, Id value)
{
    for (Id k = 0; k < c->nodes; k++) {
        const Node *node = &g->node.at[clusters->node[c->node + k]];
        Id reads = 0;
        for (Id u = 0; u < node->uses; u++) {
            Use use = node_use(g, node, u);
            if (use.value != value)
                continue;
            bool elementwise = node->op->flags & OP_ELEMENTWISE;
            bool allowed = elementwise || (u < 32 && node->op->inplace >> u & 1);
            if (use.view != NONE || !allowed || (++reads > 1 && !elementwise))
                return false;
        }
    }
    return true;
}

bool may_overwrite(const Graph *g, const Clusters *clusters, Id cluster, Id operand, Id result)
{
    const Value *read = &g->value.at[operand], *made = &g->value.at[result];
    return read->kind == VALUE_RESULT && made->kind == VALUE_RESULT && made->output == 0 &&
           read->dtype == made->dtype && value_bytes(read) == value_bytes(made) &&
           read->whole == NONE && made->whole == NONE &&
           !cluster_has_epilogue(g, clusters,
                                 &clusters->at[cluster]) && /* sums lie there on the way */
           read_plainly(g, clusters, &clusters->at[cluster], operand);
}

/* Another result of the occurrence is there already: the first `results` of them have buffers. */
static bool is_taken(const Live *l, const Cluster *c, const Occurrence *o, Id results, Id root)
{
    for (Id k = 0; k < results; k++)
        if (l->buffer.at[l->plan->arg[o->arg + c->operands + k]].root == root)
            return true;
    return false;
}

/* The operand whose bytes result k may take over, as a buffer; NONE: no operand. */
static Id find_victim(const Live *l, const Occurrence *o, Id k, uint32_t time)
{
    const Cluster *c = &l->clusters->at[o->cluster];
    Id result = l->clusters->result[c->result + k];
    if (l->windows->host[result] != NONE || l->is_output[result])
        return NONE;
    for (Id i = 0; i < c->operands; i++) {
        Id value = l->clusters->operand[c->operand + i], id = l->buffer_of[value];
        const Buffer *buffer = &l->buffer.at[id], *root = &l->buffer.at[buffer->root];
        if (!l->is_output[value] && l->last[value] == time + 1 && root->death == time + 1 &&
            root->space == SPACE_ARENA && root->bytes == buffer->bytes &&
            !is_taken(l, c, o, k, buffer->root) &&
            may_overwrite(l->g, l->clusters, o->cluster, value, result))
            return id;
    }
    return NONE;
}

/* A new version, in the bytes of the one before. */
static Id update_buffer(Live *l, Id value, uint32_t time, int program)
{
    Buffer buffer = l->buffer.at[l->buffer_of[l->g->value.at[value].previous]];
    buffer.value = value;
    buffer.birth = time;
    buffer.program = (uint8_t)program;
    return l->buffer_of[value] = add_buffer(l, buffer);
}

static void add_results(Live *l, const Cluster *c, const Occurrence *o, uint32_t time, int program)
{
    for (Id k = 0; k < c->results; k++) {
        Id value = l->clusters->result[c->result + k];
        uint32_t death = l->death[o->arg + c->operands + k];
        l->last[value] = death;
        if (!l->opened[value])
            l->buffer_of[value] = NONE;
        if (value_is_version(l->g, value)) {
            l->plan->arg[o->arg + c->operands + k] = update_buffer(l, value, time, program);
            continue;
        }
        Id victim = l->buffer_of[value] == NONE ? find_victim(l, o, k, time) : NONE;
        if (victim != NONE) {
            Buffer buffer = result_buffer(l, value, time, program);
            buffer.root = l->buffer.at[victim].root;
            l->buffer_of[value] = add_buffer(l, buffer);
        } else {
            open_buffer(l, value, time, program);
        }
        l->plan->arg[o->arg + c->operands + k] = l->buffer_of[value];
    }
}

static void add_workspace(Live *l, Occurrence *o, uint32_t time, int program)
{
    uint64_t bytes = l->workspace[o->cluster];
    if (bytes)
        o->workspace = add_buffer(l, (Buffer){.value = NONE,
                                              .root = NONE,
                                              .birth = time,
                                              .death = time + 1,
                                              .bytes = bytes,
                                              .kind = BUFFER_WORKSPACE,
                                              .program = (uint8_t)program});
}

static void walk(Live *l)
{
    for (int p = 0; p < PROGRAMS; p++)
        for (Id i = 0; i < l->plan->program[p].count; i++) {
            Occurrence *o = &l->plan->program[p].at[i];
            const Cluster *c = &l->clusters->at[o->cluster];
            uint32_t time = l->plan->program[p].begin + i;
            for (Id k = 0; k < c->operands; k++) {
                l->plan->arg[o->arg + k] = l->buffer_of[l->clusters->operand[c->operand + k]];
                assert(l->plan->arg[o->arg + k] != NONE);
            }
            add_results(l, c, o, time, p);
            add_workspace(l, o, time, p);
        }
}

/* The buffers that the caller sees. A value that is made several times is the last one's at the
 * end. */
static void name_buffers(Live *l)
{
    const Graph *g = l->g;
    l->plan->output = ARENA_ARRAY(l->arena, Id, g->output.count);
    l->plan->home = ARENA_ARRAY(l->arena, Id, g->value.count);
    for (size_t i = 0; i < g->output.count; i++)
        l->plan->output[i] = l->buffer_of[g->output.at[i].use.value];
    for (Id v = 0; v < g->value.count; v++)
        l->plan->home[v] = g->value.at[v].kind == VALUE_RESULT ? NONE : l->buffer_of[v];
}

Plan *live(Arena *arena, const Task *task, const Order *order, const Windows *windows)
{
    const Graph *g = task->g;
    Live l = {.arena = arena,
              .g = g,
              .clusters = task->clusters,
              .order = order,
              .windows = windows,
              .target = task->target,
              .options = task->options,
              .workspace = task->workspace,
              .plan = ARENA_NEW(arena, Plan),
              .last = ARENA_ARRAY(arena, uint32_t, g->value.count),
              .ends = ARENA_ARRAY(arena, uint32_t, g->value.count),
              .opened = ARENA_ARRAY(arena, bool, g->value.count),
              .buffer_of = ARENA_ARRAY(arena, Id, g->value.count),
              .is_output = ARENA_ARRAY(arena, bool, g->value.count),
              .is_user = ARENA_ARRAY(arena, bool, g->value.count)};
    memset(l.buffer_of, 0xff, g->value.count * sizeof *l.buffer_of);
    l.plan->graph = g;
    l.plan->clusters = task->clusters;
    list_occurrences(&l);
    find_last_readers(&l);
    add_present(&l);
    add_ring(&l);
    add_state(&l);
    walk(&l);
    name_buffers(&l);
    l.plan->buffer = l.buffer.at;
    l.plan->buffers = (Id)l.buffer.count;
    return l.plan;
}

/* The largest sum of bytes alive together, and when. */
uint64_t live_peak(Arena *arena, const Plan *plan, uint32_t align, uint32_t *time)
{
    int64_t *change = ARENA_ARRAY(arena, int64_t, plan->end + 2);
    for (Id i = 0; i < plan->buffers; i++) {
        const Buffer *b = &plan->buffer[i];
        if (b->root != i || b->space != SPACE_ARENA)
            continue;
        change[b->birth] += (int64_t)round_up(b->bytes, align);
        change[b->death] -= (int64_t)round_up(b->bytes, align);
    }
    int64_t sum = 0, peak = 0;
    for (uint32_t t = 0; t <= plan->end; t++) {
        sum += change[t];
        if (sum > peak) {
            peak = sum;
            *time = t;
        }
    }
    return (uint64_t)peak;
}
