/* The ring that data is read into: that no program reads a slot while it is filled.
 *
 * Requires: a graph that check_graph takes. At run time a slot is a program's from the beginning of
 * a micro-batch to its end, and the workers' before and after that. So it is enough that
 *
 *  - inputs that data fills lie in the first of `depth` equal slots, each in its place, apart from
 *    each other and within the slot: then micro-batch by micro-batch they lie in the others alike;
 *  - nothing else is in the slots or in the memory of the workers, which persist: whatever writes
 *    there has been proven to write elsewhere when the replay has found those bytes untouched;
 *  - only programs that run micro-batch by micro-batch read them, all in the same cut: an update,
 *    which runs when its slots are given back, does not;
 *  - workers have a slot to fill while another is read.
 *
 * Where the target stages, the ring and its workers are the host's. The arena has the slot that is
 * read, and a second one where copies arrive meanwhile.
 */
#include "planner/check_parts.h"

typedef struct {
    Arena *arena;
    const Plan *plan;
    const Graph *g;
    RingBytes bytes; /* that the target asks for */
    bool stages;     /* the target does: what is read lies in the first slot, always */
    const char *error;
} RingCheck;

static bool fail(RingCheck *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(RingCheck *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!r->error)
        r->error = arena_vprintf(r->arena, format, args);
    va_end(args);
    return false;
}

static bool is_persistent_root(const RingCheck *r, Id id)
{
    if (id >= r->plan->buffers)
        return false;
    const Buffer *b = &r->plan->buffer[id];
    return b->value == NONE && b->root == id && b->kind == BUFFER_DATA && b->space == SPACE_ARENA &&
           b->birth == 0 && b->death >= r->plan->end;
}

static bool check_sizes(RingCheck *r)
{
    const Plan *plan = r->plan;
    if (!is_persistent_root(r, plan->slots) ||
        (r->bytes.work && (!is_persistent_root(r, plan->work) || plan->slots == plan->work)))
        return fail(r, "there is no buffer for the ring that data is read into");
    if (plan->ring.depth < 1 || (plan->ring.workers && plan->ring.depth < 2))
        return fail(r, "the ring has %u slots, of which %u workers cannot fill one ahead",
                    plan->ring.depth, plan->ring.workers);
    /* Staged: the one that is read, and where one can be filled ahead, the one that comes next. */
    uint64_t slots = !r->stages ? plan->ring.depth : plan->ring.depth > 1 ? 2 : 1;
    if (r->bytes.slot == 0 || plan->buffer[plan->slots].bytes / r->bytes.slot != slots ||
        plan->buffer[plan->slots].bytes % r->bytes.slot != 0)
        return fail(r, "the ring does not have %llu slots of %llu bytes", (unsigned long long)slots,
                    (unsigned long long)r->bytes.slot);
    if (r->bytes.work && plan->buffer[plan->work].bytes < r->bytes.work)
        return fail(r, "what fills the ring needs %llu bytes", (unsigned long long)r->bytes.work);
    return true;
}

/* Which of the inputs of the data it is; -1: none. */
static int input_of(const RingCheck *r, Id value)
{
    const Value *v = &r->g->value.at[value];
    Id whole = v->whole == NONE ? value : v->whole;
    for (int i = 0; i < r->g->data.at[0].inputs; i++)
        if (r->g->data.at[0].input[i] == whole)
            return i;
    return -1;
}

static bool check_input(RingCheck *r, Id id)
{
    const Buffer *b = &r->plan->buffer[id];
    const Value *value = &r->g->value.at[b->value];
    int input = input_of(r, b->value);
    if (input < 0 || b->root != r->plan->slots || !view_is_dense(&b->layout) ||
        (uint64_t)b->layout.offset * dtype_size((Dtype)value->dtype) != r->bytes.offset[input] ||
        r->bytes.offset[input] + value_bytes(value) > r->bytes.slot)
        return fail(r, "%s does not lie in its place in a slot", value->name);
    for (int k = 0; k < r->g->data.at[0].inputs; k++)
        if (k != input && r->bytes.offset[k] > r->bytes.offset[input] &&
            r->bytes.offset[k] < r->bytes.offset[input] + value_bytes(value))
            return fail(r, "%s shares bytes of a slot with another input", value->name);
    return true;
}

static bool check_buffers(RingCheck *r)
{
    for (Id i = 0; i < r->plan->buffers; i++) {
        const Buffer *b = &r->plan->buffer[i];
        bool fed = b->value != NONE && r->g->value.at[b->value].fed;
        if (fed && !check_input(r, i))
            return false;
        if (!fed && i != b->root && (b->root == r->plan->slots || b->root == r->plan->work))
            return fail(r, "buffer %u overlaps the ring that data is read into", i);
    }
    return true;
}

/* All that read a slot run once for each. */
static bool check_readers(RingCheck *r)
{
    Id first = NONE; /* value that is read, of which all others have the cut */
    for (size_t n = 0; n < r->g->node.count; n++) {
        const Node *node = &r->g->node.at[n];
        for (Id i = 0; i < node->uses; i++) {
            Id id = node_use(r->g, node, i).value;
            if (id == NONE || !r->g->value.at[id].fed)
                continue;
            if (node->program == PROGRAM_UPDATE)
                return fail(r, "%s reads a slot after it was given back", node->name);
            first = first == NONE ? id : first;
            if (r->g->value.at[id].dim[0] != r->g->value.at[first].dim[0] ||
                (r->g->value.at[id].whole == NONE && r->plan->program[node->program].times != 1))
                return fail(r, "%s reads more of the batch than a slot holds", node->name);
        }
    }
    return true;
}

const char *check_ring(Arena *arena, const Plan *plan, const Target *target)
{
    RingCheck r = {.arena = arena, .plan = plan, .g = plan->graph, .stages = target->stages};
    if (!plan->graph->data.count)
        return plan->slots == NONE && plan->work == NONE ? NULL : "a ring that nothing fills";
    if (!target->ring)
        return "the target reads no data";
    r.bytes = target->ring(target, plan->graph, plan->ring);
    if (check_sizes(&r) && check_buffers(&r))
        check_readers(&r);
    return r.error;
}
