/* What a plan says of its buffers and how long they live, against what its steps do.
 *
 * Requires: tables in which every id names a row, a graph that check_graph takes. Whoever packs,
 * draws or poisons by these lifetimes can then rely on them; the replay itself believes none of
 * them.
 */
#include "planner/check_parts.h"
#include "planner/check_spans.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    Arena *arena;
    const Plan *plan;
    const Graph *g;
    const Target *target;
    bool *output; /* by buffer */
    const char *error;
} Lives;

static bool fail(Lives *v, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(Lives *v, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!v->error)
        v->error = arena_vprintf(v->arena, format, args);
    va_end(args);
    return false;
}

static const char *name_of(const Lives *v, Id buffer)
{
    const Buffer *b = &v->plan->buffer[buffer];
    if (b->value != NONE)
        return v->g->value.at[b->value].name;
    return b->kind == BUFFER_STATE  ? "the target's state"
           : b->kind == BUFFER_DATA ? "the ring"
                                    : "workspace";
}

/* ---- Versions and what is persistent --------------------------------------------------------- */

bool check_is_version(const Graph *g, Id value)
{
    return g->value.at[value].previous != NONE;
}

Id check_first(const Graph *g, Id value)
{
    while (check_is_version(g, value)) /* ends: each version is made before the next */
        value = g->value.at[value].previous;
    return value;
}

bool check_is_persistent(const Graph *g, Id value)
{
    uint8_t kind = g->value.at[check_first(g, value)].kind;
    return kind == VALUE_INPUT || kind == VALUE_PARAM || kind == VALUE_CONST ||
           kind == VALUE_STATE || kind == VALUE_GRADIENT || kind == VALUE_PREPARED;
}

/* ---- Buffers -------------------------------------------------------------------------------- */

static uint8_t kind_of(const Lives *v, Id buffer)
{
    static const uint8_t kinds[] = {
        [VALUE_INPUT] = BUFFER_INPUT,       [VALUE_PARAM] = BUFFER_PARAM,
        [VALUE_CONST] = BUFFER_PARAM,       [VALUE_STATE] = BUFFER_STATE,
        [VALUE_GRADIENT] = BUFFER_STATE,    [VALUE_OUTPUT] = BUFFER_OUTPUT,
        [VALUE_PREPARED] = BUFFER_PREPARED,
    };
    Id value = v->plan->buffer[buffer].value;
    if (value == NONE) {
        bool state = v->target->state && v->plan->buffer[buffer].kind == BUFFER_STATE;
        bool ring = buffer == v->plan->slots || buffer == v->plan->work;
        return ring ? BUFFER_DATA : state ? BUFFER_STATE : BUFFER_WORKSPACE;
    }
    value = check_first(v->g, value);
    if (v->g->value.at[value].fed)
        return BUFFER_DATA;
    if (v->g->value.at[value].kind != VALUE_RESULT)
        return kinds[v->g->value.at[value].kind];
    return v->output[buffer] ? BUFFER_OUTPUT : BUFFER_ACTIVATION;
}

/* A buffer is inside its root, and no two of its elements overlap. */
static bool check_layout(Lives *v, Id id)
{
    const Buffer *b = &v->plan->buffer[id], *root = &v->plan->buffer[b->root];
    if (b->value == NONE)
        return true;
    uint64_t last = (uint64_t)b->layout.offset, inner = 1;
    uint64_t size = dtype_size((Dtype)v->g->value.at[b->value].dtype);
    for (int i = b->layout.rank - 1; i >= 0; i--) {
        uint64_t stride = (uint64_t)b->layout.stride[i], steps = (uint64_t)b->layout.dim[i] - 1;
        if (b->layout.stride[i] < 0 || (steps && stride < inner))
            return fail(v, "buffer %u (%s): elements overlap", id, name_of(v, id));
        last += steps * stride;
        if (steps)
            inner = steps * stride + inner;
    }
    if ((last + 1) * size > root->bytes)
        return fail(v, "buffer %u (%s) ends outside buffer %u, its root", id, name_of(v, id),
                    b->root);
    return true;
}

static bool check_buffer(Lives *v, Id id)
{
    const Buffer *b = &v->plan->buffer[id];
    if (b->root >= v->plan->buffers)
        return fail(v, "buffer %u has a root that does not exist", id);
    const Buffer *root = &v->plan->buffer[b->root];
    if (b->value != NONE && v->g->value.at[b->value].kind == VALUE_LITERAL)
        return fail(v, "buffer %u holds a literal, which takes no bytes", id);
    if (b->kind != kind_of(v, id))
        return fail(v, "buffer %u (%s) is of the wrong kind", id, name_of(v, id));
    if (root->root != b->root)
        return fail(v, "buffer %u has the root %u, which has another root", id, b->root);
    if (b->offset != root->offset)
        return fail(v, "buffer %u has another offset than buffer %u, its root", id, b->root);
    if (b->space >= SPACES || b->space != root->space)
        return fail(v, "buffer %u (%s) is in another memory space than buffer %u, its root", id,
                    name_of(v, id), b->root);
    if (root->space == SPACE_CALLER &&
        (root->kind == BUFFER_ACTIVATION || root->kind == BUFFER_WORKSPACE ||
         root->kind == BUFFER_PREPARED))
        return fail(v, "buffer %u (%s) cannot be the caller's memory", id, name_of(v, id));
    if (b->birth >= b->death || b->birth < root->birth || b->death > root->death ||
        root->death > v->plan->end + (v->plan->end == 0))
        return fail(v, "buffer %u (%s) has an invalid live range, %u to %u", id, name_of(v, id),
                    b->birth, b->death);
    return check_layout(v, id);
}

/* ---- Lifetimes: the file's, against what the steps do ---------------------------------------- */

static bool touch(Lives *v, Id buffer, uint32_t time, const char *how)
{
    const Buffer *b = &v->plan->buffer[buffer];
    if (time >= b->birth && time < b->death)
        return true;
    return fail(v, "step %u %s %s, which lives from %u to %u", time, how, name_of(v, buffer),
                b->birth, b->death);
}

static bool check_step(Lives *v, int program, uint32_t time, const Occurrence *o)
{
    if (o->cluster >= v->plan->clusters->count)
        return fail(v, "step %u runs a cluster that does not exist", time);
    const Cluster *c = &v->plan->clusters->at[o->cluster];
    if (c->program != program)
        return fail(v, "step %u runs a cluster of another program", time);
    for (Id k = 0; k < c->operands + c->results; k++) {
        Id buffer = v->plan->arg[o->arg + k];
        if (buffer >= v->plan->buffers)
            return fail(v, "step %u: argument %u is not a buffer", time, k);
        if (!touch(v, buffer, time, k < c->operands ? "reads" : "writes"))
            return false;
        if (k >= c->operands && v->plan->buffer[buffer].program != program)
            return fail(v, "step %u writes %s, which is another program's", time,
                        name_of(v, buffer));
    }
    if (o->workspace == NONE)
        return true;
    if (o->workspace >= v->plan->buffers)
        return fail(v, "step %u has no buffer for its workspace", time);
    if (v->plan->buffer[o->workspace].value != NONE)
        return fail(v, "step %u has %s for its workspace", time, name_of(v, o->workspace));
    return touch(v, o->workspace, time, "uses");
}

/* What persists lives from the first step to the last, outputs until their program ends. */
static bool check_ends(Lives *v)
{
    for (Id i = 0; i < v->plan->buffers; i++) {
        const Buffer *b = &v->plan->buffer[i];
        const Program *program = &v->plan->program[b->program];
        bool first = b->value == NONE || !check_is_version(v->g, b->value);
        if (b->kind <= BUFFER_DATA && ((first && b->birth != 0) || b->death < v->plan->end))
            return fail(v, "buffer %u (%s) must be persistent", i, name_of(v, i));
        if (b->kind == BUFFER_OUTPUT && b->death < program->begin + program->count)
            return fail(v, "the output %s dies before its program ends", name_of(v, i));
    }
    return true;
}

static bool check_programs(Lives *v)
{
    for (int p = 0; p < PROGRAMS; p++)
        for (Id i = 0; i < v->plan->program[p].count; i++)
            if (!check_step(v, p, v->plan->program[p].begin + i, &v->plan->program[p].at[i]))
                return false;
    return check_ends(v);
}

/* ---- No two roots share a byte at one time --------------------------------------------------- */

typedef struct {
    const Buffer *b;
    Id id;
} Root;

static int by_birth(const void *a, const void *b)
{
    const Root *m = a, *n = b;
    if (m->b->birth != n->b->birth)
        return m->b->birth < n->b->birth ? -1 : 1;
    return (m->id > n->id) - (m->id < n->id);
}

/* A root that is born, and another that is alive in its bytes. */
typedef struct {
    const Root *root, *born, *other;
} Birth;

static bool is_alive(uint32_t item, void *data)
{
    Birth *birth = data;
    if (birth->root[item].b->death <= birth->born->b->birth)
        return false;
    birth->other = &birth->root[item];
    return true;
}

static bool check_apart(Lives *v, Space space)
{
    Root *root = ARENA_ARRAY(v->arena, Root, v->plan->buffers + 1);
    uint64_t *place = ARENA_ARRAY(v->arena, uint64_t, 2 * (size_t)v->plan->buffers + 1);
    uint32_t roots = 0;
    for (Id i = 0; i < v->plan->buffers; i++) {
        const Buffer *b = &v->plan->buffer[i];
        if (b->root != i || b->space != space)
            continue;
        place[2 * roots] = b->offset;
        place[2 * roots + 1] = b->offset + b->bytes;
        root[roots++] = (Root){b, i};
    }
    qsort(root, roots, sizeof *root, by_birth);
    Spans spans = spans_new(v->arena, place, 2 * (size_t)roots);
    for (uint32_t i = 0; i < roots; i++) {
        const Buffer *b = root[i].b;
        Birth birth = {.root = root, .born = &root[i]};
        spans_visit(&spans, b->offset, b->offset + b->bytes, is_alive, &birth);
        if (birth.other)
            return fail(v, "%s and %s share bytes at step %u", name_of(v, birth.other->id),
                        name_of(v, root[i].id), b->birth);
        spans_add(&spans, b->offset, b->offset + b->bytes, i);
    }
    return true;
}

/* ---- All of it ------------------------------------------------------------------------------ */

const char *check_lives(Arena *arena, const Plan *plan, const Target *target)
{
    Lives v = {.arena = arena, .plan = plan, .g = plan->graph, .target = target};
    v.output = ARENA_ARRAY(arena, bool, plan->buffers + 1);
    for (size_t i = 0; i < v.g->output.count; i++)
        v.output[plan->output[i]] = true;
    for (Id i = 0; i < plan->buffers && !v.error; i++)
        check_buffer(&v, i);
    if (!v.error && check_programs(&v))
        for (Space space = 0; space < SPACES && !v.error; space++)
            if (space_planned[space])
                check_apart(&v, space);
    return v.error;
}
