/* Checks a plan file, whoever made it. Draws nothing from the planner: the proof is plan_check's,
 * and what that takes for granted is checked before it; what the file says about itself, after.
 *
 * Requires: JSON text. Leaves: a verdict, and the plan where it could be read.
 */
#include "codegen/verify.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    Arena *arena;
    PlanFile file;
    Plan *plan;
    const Graph *g;
    bool *output; /* by buffer */
    const char *error;
} Verify;

static bool fail(Verify *v, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(Verify *v, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!v->error)
        v->error = arena_vprintf(v->arena, format, args);
    va_end(args);
    return false;
}

static const char *name_of(const Verify *v, Id buffer)
{
    const Buffer *b = &v->plan->buffer[buffer];
    if (b->value != NONE)
        return v->g->value.at[b->value].name;
    return b->kind == BUFFER_STATE ? "the target's state" : "workspace";
}

/* ---- Buffers -------------------------------------------------------------------------------- */

static uint8_t kind_of(const Verify *v, Id buffer)
{
    static const uint8_t kinds[] = {
        [VALUE_INPUT] = BUFFER_INPUT,    [VALUE_PARAM] = BUFFER_PARAM,
        [VALUE_CONST] = BUFFER_PARAM,    [VALUE_STATE] = BUFFER_STATE,
        [VALUE_GRADIENT] = BUFFER_STATE, [VALUE_OUTPUT] = BUFFER_OUTPUT,
    };
    Id value = v->plan->buffer[buffer].value;
    if (value == NONE) {
        bool state = v->file.target.state && v->plan->buffer[buffer].kind == BUFFER_STATE;
        return state ? BUFFER_STATE : BUFFER_WORKSPACE;
    }
    while (v->g->value.at[value].previous != NONE) /* versions end: each is made before the next */
        value = v->g->value.at[value].previous;
    if (v->g->value.at[value].kind != VALUE_RESULT)
        return kinds[v->g->value.at[value].kind];
    return v->output[buffer] ? BUFFER_OUTPUT : BUFFER_ACTIVATION;
}

/* A buffer lies in its root, with every element in a place of its own. */
static bool check_layout(Verify *v, Id id)
{
    const Buffer *b = &v->plan->buffer[id], *root = &v->plan->buffer[b->root];
    if (b->value == NONE)
        return true;
    uint64_t last = (uint64_t)b->layout.offset, inner = 1;
    uint64_t size = dtype_size((Dtype)v->g->value.at[b->value].dtype);
    for (int i = b->layout.rank - 1; i >= 0; i--) {
        uint64_t stride = (uint64_t)b->layout.stride[i], steps = (uint64_t)b->layout.dim[i] - 1;
        if (b->layout.stride[i] < 0 || (steps && stride < inner))
            return fail(v, "buffer %u (%s): elements lie over each other", id, name_of(v, id));
        last += steps * stride;
        if (steps)
            inner = steps * stride + inner;
    }
    if ((last + 1) * size > root->bytes)
        return fail(v, "buffer %u (%s) reaches out of buffer %u, which it lies in", id,
                    name_of(v, id), b->root);
    return true;
}

static bool check_buffer(Verify *v, Id id)
{
    const Buffer *b = &v->plan->buffer[id], *root = &v->plan->buffer[b->root];
    if (b->value != NONE && v->g->value.at[b->value].kind == VALUE_LITERAL)
        return fail(v, "buffer %u holds a literal, which takes no bytes", id);
    if (b->kind != kind_of(v, id))
        return fail(v, "buffer %u (%s) is no %s", id, name_of(v, id), buffer_kinds[b->kind]);
    if (root->root != b->root)
        return fail(v, "buffer %u lies in %u, which lies in another", id, b->root);
    if (b->offset != root->offset)
        return fail(v, "buffer %u has another offset than %u, which it lies in", id, b->root);
    if (b->external != root->external ||
        (root->external && (root->kind == BUFFER_ACTIVATION || root->kind == BUFFER_WORKSPACE)))
        return fail(v, "buffer %u (%s) cannot be the caller's memory", id, name_of(v, id));
    if (b->birth >= b->death || b->birth < root->birth || b->death > root->death ||
        root->death > v->plan->end + (v->plan->end == 0))
        return fail(v, "buffer %u (%s) lives from %u to %u, which cannot be", id, name_of(v, id),
                    b->birth, b->death);
    return check_layout(v, id);
}

/* ---- Lifetimes: the file's, against what the steps do ---------------------------------------- */

static bool touch(Verify *v, Id buffer, uint32_t time, const char *how)
{
    const Buffer *b = &v->plan->buffer[buffer];
    if (time >= b->birth && time < b->death)
        return true;
    return fail(v, "step %u %s %s, which lives from %u to %u", time, how, name_of(v, buffer),
                b->birth, b->death);
}

static bool is_strided(const Node *node, Id operand)
{
    if (node->op->flags & OP_ELEMENTWISE)
        return true;
    return operand < 32 ? node->op->strided >> operand & 1 : node->op->strided == UINT32_MAX;
}

/* A value that lies with gaps is written and read only by those who can. */
static bool check_gaps(Verify *v, const Cluster *c, Id buffer, uint32_t time)
{
    const Buffer *b = &v->plan->buffer[buffer];
    if (view_is_dense(&b->layout))
        return true;
    for (Id k = 0; k < c->nodes; k++) {
        const Node *node = &v->g->node.at[v->plan->clusters->node[c->node + k]];
        for (Id u = 0; u < node->uses; u++) {
            Use use = node_use(v->g, node, u);
            if (use.value != b->value)
                continue;
            if (!is_strided(node, u))
                return fail(v, "step %u: %s takes %s only dense", time, node->op->name,
                            name_of(v, buffer));
            if (use.view != NONE)
                return fail(v, "step %u looks at %s through a view, but it lies with gaps", time,
                            name_of(v, buffer));
        }
        const Value *value = &v->g->value.at[b->value];
        const bool writes = value->node != NONE &&
                            v->plan->clusters->of[value->node] == (Id)(c - v->plan->clusters->at);
        if (writes && !(node->op->flags & OP_ELEMENTWISE) &&
            !(node->op->out_strided >> value->output & 1))
            return fail(v, "step %u: %s writes %s only dense", time, node->op->name,
                        name_of(v, buffer));
    }
    return true;
}

static bool check_step(Verify *v, int program, uint32_t time, const Occurrence *o)
{
    const Cluster *c = &v->plan->clusters->at[o->cluster];
    if (c->program != program)
        return fail(v, "step %u runs a cluster of another program", time);
    for (Id k = 0; k < c->operands + c->results; k++) {
        Id buffer = v->plan->arg[o->arg + k];
        if (!touch(v, buffer, time, k < c->operands ? "reads" : "writes"))
            return false;
        if (v->plan->buffer[buffer].value != NONE && !check_gaps(v, c, buffer, time))
            return false;
        if (k >= c->operands && v->plan->buffer[buffer].program != program)
            return fail(v, "step %u writes %s, which is another program's", time,
                        name_of(v, buffer));
    }
    if (o->workspace == NONE)
        return true;
    if (v->plan->buffer[o->workspace].value != NONE)
        return fail(v, "step %u has %s for its workspace", time, name_of(v, o->workspace));
    return touch(v, o->workspace, time, "uses");
}

/* What persists lives from the first step to the last, outputs until their program ends. */
static bool check_ends(Verify *v)
{
    for (Id i = 0; i < v->plan->buffers; i++) {
        const Buffer *b = &v->plan->buffer[i];
        const Program *program = &v->plan->program[b->program];
        bool first = b->value == NONE || v->g->value.at[b->value].previous == NONE;
        if (b->kind <= BUFFER_INPUT && ((first && b->birth != 0) || b->death < v->plan->end))
            return fail(v, "buffer %u (%s) must live all the time", i, name_of(v, i));
        if (b->kind == BUFFER_OUTPUT && b->death < program->begin + program->count)
            return fail(v, "the output %s dies before its program ends", name_of(v, i));
    }
    return true;
}

static bool check_programs(Verify *v)
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

/* The first of `alive`, which stand by offset, that ends above the offset. */
static size_t find_place(const Root *alive, size_t count, uint64_t offset)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (alive[middle].b->offset + alive[middle].b->bytes > offset)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static bool check_apart(Verify *v)
{
    Root *root = ARENA_ARRAY(v->arena, Root, v->plan->buffers + 1);
    Root *alive = ARENA_ARRAY(v->arena, Root, v->plan->buffers + 1);
    size_t roots = 0, count = 0;
    for (Id i = 0; i < v->plan->buffers; i++)
        if (v->plan->buffer[i].root == i && !v->plan->buffer[i].external)
            root[roots++] = (Root){&v->plan->buffer[i], i};
    qsort(root, roots, sizeof *root, by_birth);
    for (size_t i = 0; i < roots; i++) {
        size_t kept = 0;
        bool new_time = i == 0 || root[i].b->birth != root[i - 1].b->birth;
        for (size_t k = 0; new_time && k < count; k++)
            if (alive[k].b->death > root[i].b->birth)
                alive[kept++] = alive[k];
        count = new_time ? kept : count;
        size_t at = find_place(alive, count, root[i].b->offset);
        if (at < count && alive[at].b->offset < root[i].b->offset + root[i].b->bytes)
            return fail(v, "%s and %s share bytes at step %u", name_of(v, alive[at].id),
                        name_of(v, root[i].id), root[i].b->birth);
        memmove(alive + at + 1, alive + at, (count - at) * sizeof *alive);
        alive[at] = root[i];
        count++;
    }
    return true;
}

/* ---- What the file says about itself --------------------------------------------------------- */

static bool read_claims(Verify *v)
{
    static const char *const keys[] = {"bound", "floor", "persistent"};
    uint64_t *const to[] = {&v->plan->bound, &v->plan->floor, &v->plan->persistent};
    for (int i = 0; i < 3; i++)
        *to[i] = (uint64_t)json_integer_value(json_object_get(v->file.summary, keys[i]));
    return true;
}

static uint64_t round_up(uint64_t bytes, uint64_t align)
{
    return (bytes + align - 1) / align * align;
}

/* Bounds are the planner's word; that they bound this plan can be seen. */
static bool check_bounds(Verify *v, const Picture *p)
{
    uint64_t persistent = 0, end = 0;
    for (Id i = 0; i < v->plan->buffers; i++) {
        const Buffer *b = &v->plan->buffer[i];
        if (b->root != i || b->external)
            continue;
        if (b->kind <= BUFFER_INPUT)
            persistent += round_up(b->bytes, v->file.target.align);
        if (b->offset + b->bytes > end)
            end = b->offset + b->bytes;
    }
    if (v->plan->arena != round_up(end, v->file.target.align))
        return fail(v, "the arena has %llu bytes, but the last buffer ends at %llu",
                    (unsigned long long)v->plan->arena, (unsigned long long)end);
    if (v->file.budget && v->plan->arena > v->file.budget)
        return fail(v, "the arena is larger than the budget");
    if (json_object_get(v->file.summary, "persistent") && v->plan->persistent != persistent)
        return fail(v, "summary: persistent must be %llu", (unsigned long long)persistent);
    if (json_object_get(v->file.summary, "bound") &&
        (v->plan->bound < p->peak || v->plan->bound > v->plan->arena))
        return fail(v, "summary: no bound of this packing is %llu",
                    (unsigned long long)v->plan->bound);
    if (json_object_get(v->file.summary, "floor") &&
        (v->plan->floor < persistent || v->plan->floor > v->plan->arena))
        return fail(v, "summary: no floor of this plan is %llu",
                    (unsigned long long)v->plan->floor);
    return true;
}

/* Whatever stands in the summary is what these tables give. */
static bool check_summary(Verify *v, const Picture *p)
{
    json_t *found = summary_json(p), *summary = v->file.summary;
    for (void *at = json_object_iter(summary); at; at = json_object_iter_next(summary, at)) {
        const char *key = json_object_iter_key(at);
        const json_t *fact = json_object_get(found, key), *claim = json_object_iter_value(at);
        if (fact && !json_equal(fact, claim))
            fail(v, "summary: %s is not what the tables give", key);
        else if (!fact)
            fail(v, "summary: %s means nothing", key);
    }
    json_decref(found);
    return !v->error;
}

/* ---- All of it ------------------------------------------------------------------------------ */

static bool check_all(Verify *v)
{
    if (!graph_verify(v->arena, &v->file, &v->error))
        return false;
    v->output = ARENA_ARRAY(v->arena, bool, v->plan->buffers + 1);
    for (size_t i = 0; i < v->g->output.count; i++)
        v->output[v->plan->output[i]] = true;
    for (Id i = 0; i < v->plan->buffers; i++)
        if (!check_buffer(v, i))
            return false;
    if (!check_programs(v) || !check_apart(v))
        return false;
    v->error = plan_check(v->plan, &v->file.target);
    if (v->error)
        return false;
    read_claims(v);
    EmitOptions options = {.target = &v->file.target, .budget = v->file.budget};
    const Picture *p = picture_make(v->plan, &options);
    return check_bounds(v, p) && check_summary(v, p);
}

const char *plan_verify(Arena *arena, Text text, Plan **plan)
{
    Verify v = {.arena = arena};
    json_error_t where;
    *plan = NULL;
    json_t *json = json_loadb(text.text, text.length, JSON_REJECT_DUPLICATES, &where);
    if (!json)
        return arena_printf(arena, "this is no JSON: %s, line %d, column %d", where.text,
                            where.line, where.column);
    if (plan_read(arena, json, &v.file, &v.error)) {
        v.plan = v.file.plan;
        v.g = v.file.g;
        if (check_all(&v))
            *plan = v.plan;
    }
    json_decref(json);
    return v.error;
}
