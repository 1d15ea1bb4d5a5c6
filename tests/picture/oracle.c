#include "tests/picture/oracle.h"

#include <string.h>

typedef struct {
    const Plan *plan;
    const Graph *g;
    Arena *arena;
    uint64_t *memory;    /* by byte of the arena: a tag */
    uint64_t *seen;      /* likewise: an element of the operand in hand, plus 1 */
    uint64_t **external; /* by buffer that is the caller's: the same */
    const char *error;
} Oracle;

static bool fail(Oracle *o, const char *what, uint32_t time, Id buffer)
{
    if (!o->error)
        o->error = arena_printf(o->arena, "step %u: %s, buffer %u", time, what, buffer);
    return false;
}

/* Tags: no two elements of two values share one; 0 is nothing, 1 is rubbish. */
static uint64_t tag(Id value, uint64_t element)
{
    return ((uint64_t)value + 1) << 40 | (element + 2);
}

static uint64_t size_of(const Oracle *o, Id buffer)
{
    return dtype_size((Dtype)o->g->value.at[o->plan->buffer[buffer].value].dtype);
}

/* The first byte of an element, from the start of the root. */
static uint64_t address(const Oracle *o, Id buffer, uint64_t element)
{
    const View *v = &o->plan->buffer[buffer].layout;
    uint64_t at = (uint64_t)v->offset;
    for (int i = v->rank - 1; i >= 0; i--) {
        at += element % (uint64_t)v->dim[i] * (uint64_t)v->stride[i];
        element /= (uint64_t)v->dim[i];
    }
    return at * size_of(o, buffer);
}

static uint64_t *cells(const Oracle *o, Id buffer)
{
    const Buffer *b = &o->plan->buffer[buffer];
    return b->space != SPACE_ARENA ? o->external[b->root] : o->memory + b->offset;
}

static uint64_t count_of(const Oracle *o, Id buffer)
{
    return (uint64_t)value_count(&o->g->value.at[o->plan->buffer[buffer].value]);
}

static bool inside(Oracle *o, Id buffer, uint64_t at, uint64_t size)
{
    const Buffer *b = &o->plan->buffer[buffer];
    uint64_t room = b->space != SPACE_ARENA ? o->plan->buffer[b->root].bytes
                                            : o->plan->arena[SPACE_ARENA] - b->offset;
    return at + size <= room || fail(o, "outside the arena", 0, buffer);
}

static void write_value(Oracle *o, Id buffer)
{
    uint64_t size = size_of(o, buffer);
    for (uint64_t e = 0; e < count_of(o, buffer); e++)
        for (uint64_t k = 0; k < size; k++)
            cells(o, buffer)[address(o, buffer, e) + k] = tag(o->plan->buffer[buffer].value, e);
}

static bool holds(const Oracle *o, Id buffer)
{
    uint64_t size = size_of(o, buffer);
    for (uint64_t e = 0; e < count_of(o, buffer); e++)
        for (uint64_t k = 0; k < size; k++)
            if (cells(o, buffer)[address(o, buffer, e) + k] !=
                tag(o->plan->buffer[buffer].value, e))
                return false;
    return true;
}

/* ---- One step ------------------------------------------------------------------------------- */

/* Every use of the operand lets the first result take its bytes element by element. */
static bool may_take(const Oracle *o, const Cluster *c, Id value)
{
    for (Id k = 0; k < c->nodes; k++) {
        const Node *node = &o->g->node.at[o->plan->clusters->node[c->node + k]];
        Id reads = 0;
        for (Id u = 0; u < node->uses; u++) {
            Use use = node_use(o->g, node, u);
            if (use.value != value)
                continue;
            bool elementwise = node->op->flags & OP_ELEMENTWISE;
            if (use.view != NONE ||
                (!elementwise && (++reads > 1 || u >= 32 || !(node->op->inplace >> u & 1))))
                return false;
        }
    }
    return true;
}

static void mark(Oracle *o, Id buffer, bool set)
{
    for (uint64_t e = 0; e < count_of(o, buffer); e++)
        for (uint64_t k = 0; k < size_of(o, buffer); k++)
            o->seen[o->plan->buffer[buffer].offset + address(o, buffer, e) + k] = set ? e + 1 : 0;
}

/* The operand's bytes are marked; a result may meet them only with leave. */
static bool check_pair(Oracle *o, const Cluster *c, uint32_t time, Id in, Id out)
{
    const Value *made = &o->g->value.at[o->plan->buffer[out].value];
    const Node *node = &o->g->node.at[o->plan->clusters->node[c->node]];
    Id read = o->plan->buffer[in].value;
    bool concat = strcmp(node->op->name, "concat") == 0;
    bool same = made->previous == read || (made->output == 0 && may_take(o, c, read));
    uint64_t n = count_of(o, in), m = count_of(o, out), size = size_of(o, out), *seen = o->seen;
    bool meets = false, aligned = n == m && size == size_of(o, in);
    for (uint64_t e = 0; e < m; e++)
        for (uint64_t k = 0; k < size; k++) {
            uint64_t there = seen[o->plan->buffer[out].offset + address(o, out, e) + k];
            meets |= there != 0;
            aligned &= there == e + 1;
        }
    if (!meets || (same && aligned))
        return true;
    if (!concat)
        return fail(o, "a result covers an operand", time, in);
    int axis = (int)node_attr(o->g, (Id)(node - o->g->node.at), "axis")->list[0];
    int64_t begin = 0; /* of the operand along the axis */
    for (Id u = 0; u < node->uses; u++) {
        View view = use_view(o->g, node_use(o->g, node, u));
        bool fits = node_use(o->g, node, u).value == read && node_use(o->g, node, u).view == NONE;
        int64_t inner = 1, mine, whole;
        for (int i = axis + 1; i < view.rank; i++)
            inner *= view.dim[i];
        mine = view.dim[axis] * inner;
        whole = made->dim[axis] * inner;
        for (uint64_t e = 0; fits && e < m; e++) {
            int64_t row = (int64_t)e / whole, column = (int64_t)e % whole - begin * inner;
            uint64_t there = seen[o->plan->buffer[out].offset + address(o, out, e)];
            bool own = column >= 0 && column < mine;
            fits = own ? there == (uint64_t)(row * mine + column) + 1 : there == 0;
        }
        if (fits)
            return true;
        begin += view.dim[axis];
    }
    return fail(o, "a concat's operand lies elsewhere in its result", time, in);
}

static bool meets_workspace(const Oracle *o, Id buffer, const Buffer *work)
{
    const Buffer *b = &o->plan->buffer[buffer];
    for (uint64_t e = 0; b->space == SPACE_ARENA && e < count_of(o, buffer); e++) {
        uint64_t at = b->offset + address(o, buffer, e);
        if (at + size_of(o, buffer) > work->offset && at < work->offset + work->bytes)
            return true;
    }
    return false;
}

static bool run_step(Oracle *o, const Occurrence *at, uint32_t time)
{
    const Cluster *c = &o->plan->clusters->at[at->cluster];
    const Id *in = o->plan->arg + at->arg, *out = in + c->operands;
    for (Id k = 0; k < c->operands; k++)
        if (!holds(o, in[k]))
            return fail(o, "an operand is not there", time, in[k]);
    for (Id k = 0; k < c->operands; k++) {
        if (o->plan->buffer[in[k]].space != SPACE_ARENA)
            continue;
        mark(o, in[k], true);
        for (Id m = 0; m < c->results; m++)
            if (o->plan->buffer[out[m]].space == SPACE_ARENA &&
                !check_pair(o, c, time, in[k], out[m]))
                return false;
        mark(o, in[k], false);
    }
    if (at->workspace != NONE) {
        const Buffer *work = &o->plan->buffer[at->workspace];
        for (Id k = 0; k < c->operands + c->results; k++)
            if (meets_workspace(o, in[k], work))
                return fail(o, "workspace covers an argument", time, in[k]);
        for (uint64_t i = 0; i < work->bytes; i++)
            o->memory[work->offset + i] = 1;
    }
    for (Id k = 0; k < c->results; k++)
        write_value(o, out[k]);
    for (Id k = 0; k < c->results; k++) /* none over another */
        if (!holds(o, out[k]))
            return fail(o, "results overlap", time, out[k]);
    return true;
}

/* ---- Programs ------------------------------------------------------------------------------- */

static bool is_persistent(const Oracle *o, Id buffer)
{
    Id value = o->plan->buffer[buffer].value;
    uint8_t kind = value == NONE ? VALUE_RESULT : o->g->value.at[value].kind;
    return kind != VALUE_RESULT && kind != VALUE_LITERAL;
}

/* What persists is there at the end, in its last version. */
static bool check_end(Oracle *o, int program, uint32_t time)
{
    Id *latest = ARENA_ARRAY(o->arena, Id, o->g->value.count);
    for (Id v = 0; v < o->g->value.count; v++)
        latest[v] = v;
    for (Id v = 0; v < o->g->value.count; v++) {
        const Value *value = &o->g->value.at[v];
        if (value->previous == NONE || o->g->node.at[value->node].program != program)
            continue;
        for (Id w = 0; w < o->g->value.count; w++)
            if (latest[w] == value->previous && w != v)
                latest[w] = v;
    }
    for (Id i = 0; i < o->plan->buffers; i++) {
        if (!is_persistent(o, i))
            continue;
        Id value = latest[o->plan->buffer[i].value];
        bool found = false;
        for (Id b = 0; b < o->plan->buffers && !found; b++)
            found = o->plan->buffer[b].value == value && holds(o, b);
        if (!found)
            return fail(o, "what persists is gone", time, i);
    }
    for (size_t i = 0; i < o->g->output.count; i++) {
        Id value = o->g->output.at[i].use.value, node = o->g->value.at[value].node;
        bool found = node == NONE || o->g->node.at[node].program != program;
        for (Id b = 0; b < o->plan->buffers && !found; b++)
            found = o->plan->buffer[b].value == value && holds(o, b);
        if (!found)
            return fail(o, "an output is not there", time, (Id)i);
    }
    return true;
}

static bool run_program(Oracle *o, int kind)
{
    const Program *program = &o->plan->program[kind];
    memset(o->memory, 0, (o->plan->arena[SPACE_ARENA] + 1) * sizeof *o->memory);
    for (Id i = 0; i < o->plan->buffers; i++)
        if (is_persistent(o, i))
            write_value(o, i);
    for (Id i = 0; i < o->plan->buffers; i++)
        if (is_persistent(o, i) && !holds(o, i))
            return fail(o, "two that persist overlap", program->begin, i);
    Id *runs = ARENA_ARRAY(o->arena, Id, o->plan->clusters->count + 1);
    for (Id i = 0; i < program->count; i++) {
        runs[program->at[i].cluster]++;
        if (!run_step(o, &program->at[i], program->begin + i))
            return false;
    }
    for (Id i = 0; i < o->plan->clusters->count; i++) {
        const Cluster *c = &o->plan->clusters->at[i];
        const Node *node = &o->g->node.at[o->plan->clusters->node[c->node]];
        if (c->program == kind && (!runs[i] || (runs[i] > 1 && node->op->flags & OP_EFFECT)))
            return fail(o, "a cluster does not run as often as it must", program->begin, i);
    }
    return check_end(o, kind, program->begin + program->count);
}

const char *oracle_run(const Plan *plan, uint32_t align)
{
    Oracle o = {.plan = plan, .g = plan->graph, .arena = plan->graph->arena};
    o.memory = ARENA_ARRAY(o.arena, uint64_t, plan->arena[SPACE_ARENA] + 1);
    o.seen = ARENA_ARRAY(o.arena, uint64_t, plan->arena[SPACE_ARENA] + 1);
    o.external = ARENA_ARRAY(o.arena, uint64_t *, plan->buffers + 1);
    for (Id i = 0; i < plan->buffers; i++) {
        const Buffer *b = &plan->buffer[i];
        if (b->space != SPACE_ARENA && b->root == i)
            o.external[i] = ARENA_ARRAY(o.arena, uint64_t, b->bytes + 1);
        if (b->space == SPACE_ARENA && (b->offset % align || b->offset > plan->arena[SPACE_ARENA]))
            fail(&o, "not aligned", 0, i);
        if (b->value == NONE && b->space == SPACE_ARENA &&
            b->offset + b->bytes > plan->arena[SPACE_ARENA])
            fail(&o, "workspace outside the arena", 0, i);
    }
    for (Id i = 0; i < plan->buffers && !o.error; i++)
        for (uint64_t e = 0; plan->buffer[i].value != NONE && e < count_of(&o, i); e++)
            if (!inside(&o, i, address(&o, i, e), size_of(&o, i)))
                break;
    for (int p = 0; p < PROGRAMS && !o.error; p++)
        run_program(&o, p);
    return o.error;
}
