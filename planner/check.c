/* Replays a plan on abstract memory: the proof that a plan is right, whoever made it.
 *
 * Requires: a plan. Leaves: the largest sum of bytes that hold something still to be
 * read. Shares no code with the planner and believes nothing it says about lifetimes: it follows
 * what is written and what is read.
 *
 *  - every operand is read from bytes that hold its value, whole and untouched;
 *  - a result or workspace covers nothing that this occurrence or a later one still reads, save
 *    where the row lets a result take its operand's bytes;
 *  - parameters, state and inputs are never written, and each is in the one buffer that the plan
 *    names; so does every output, whole, when its program ends; those that micro-batches fill are
 *    shared with nothing else while it runs;
 *  - what is saved changes only after all that can fail;
 *  - what belongs to a micro-batch is in its window of the input or output of all of them;
 *  - what data fills is in a slot of the ring, which is read between two changes of slots and
 *    by nothing else (check_ring.c);
 *  - everything is inside the arena, aligned; every cluster runs, effects exactly once; a program
 *    runs as often as its micro-batches make up the whole;
 *  - nodes that share a cluster can share a loop: elementwise, of one shape, in order.
 *
 * Before the replay, the graph and its clusters are checked against the rows (check_graph.c), and
 * what the plan says of its buffers against its steps (check_lives.c).
 *
 * A write looks only at the bytes it overlaps, so this is near-linear in the occurrences.
 */
#include "planner/check_replay.h"

#include <string.h>

bool check_fail(Check *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!c->error)
        c->error = arena_vprintf(c->arena, format, args);
    va_end(args);
    return false;
}

const char *check_name(const Check *c, Id buffer)
{
    return extents_name(&c->extents, buffer);
}

/* It is there before the program runs: a later version is put there by its step, and what is
 * prepared before any other program. */
static bool is_present(const Check *c, Id buffer, int program)
{
    Id value = c->plan->buffer[buffer].value;
    if (value == NONE)
        return c->plan->buffer[buffer].kind == BUFFER_STATE ||
               c->plan->buffer[buffer].kind == BUFFER_DATA;
    if (c->g->value.at[value].kind == VALUE_PREPARED && program == PROGRAM_PREPARE)
        return false; /* it makes them */
    return !check_is_version(c->g, value) && check_is_persistent(c->g, value);
}

/* Of no more use after its last reader; outputs are read by the caller. */
static void find_reads(Check *c, const Program *program)
{
    memset(c->read, 0, c->plan->buffers * sizeof *c->read);
    for (Id i = 0; i < program->count; i++) {
        if (program->at[i].cluster >= c->plan->clusters->count)
            continue;
        const Cluster *cluster = &c->plan->clusters->at[program->at[i].cluster];
        for (Id k = 0; k < cluster->operands; k++) {
            Id buffer = c->plan->arg[program->at[i].arg + k];
            if (buffer < c->plan->buffers)
                c->read[buffer] = program->begin + i;
        }
    }
    for (size_t i = 0; i < c->g->output.count; i++)
        c->read[c->plan->output[i]] = END;
}

/* The plan names a buffer for each value that is there before a program begins, and those are the
 * only ones: the caller writes and reads there, and nowhere else. */
static bool check_homes(Check *c)
{
    for (Id v = 0; v < c->g->value.count; v++) {
        Id home = c->plan->home[v];
        if (home != NONE && (home >= c->plan->buffers || c->plan->buffer[home].value != v))
            return check_fail(c, "the buffer of %s holds another value", c->g->value.at[v].name);
    }
    for (Id i = 0; i < c->plan->buffers; i++) {
        Id value = c->plan->buffer[i].value;
        bool home = value != NONE && c->g->value.at[value].kind != VALUE_RESULT;
        if (home && c->plan->home[value] != i)
            return check_fail(c, "%s has a second buffer", check_name(c, i));
    }
    for (size_t i = 0; i < c->g->output.count; i++) {
        Id buffer = c->plan->output[i];
        if (buffer >= c->plan->buffers ||
            c->plan->buffer[buffer].value != c->g->output.at[i].use.value)
            return check_fail(c, "the buffer of the output %s holds another value",
                              c->g->output.at[i].name);
    }
    return true;
}

/* What is of a micro-batch moves over the whole input or output, and nowhere else; nothing else
 * is there, since it would have to move too. */
static bool check_micro(Check *c, Id id)
{
    const Buffer *b = &c->plan->buffer[id];
    const Buffer *root = b->root < c->plan->buffers ? &c->plan->buffer[b->root] : b;
    if (b->value == NONE || root->value == NONE)
        return true;
    const Value *value = &c->g->value.at[b->value];
    if (value->fed)
        return true; /* check_ring */
    if (value->whole == NONE)
        return c->g->value.at[root->value].kind != VALUE_OUTPUT ||
               check_first(c->g, b->value) == root->value ||
               check_fail(c, "%s overlaps the output %s of all micro-batches", check_name(c, id),
                          check_name(c, b->root));
    if (root->value != value->whole ||
        c->g->value.at[root->value].kind !=
            (value->kind == VALUE_INPUT ? VALUE_INPUT : VALUE_OUTPUT) ||
        root->offset != b->offset || b->layout.offset != 0 || !view_is_dense(&b->layout) ||
        root->space != b->space)
        return check_fail(c, "%s is not a window of the whole %s", check_name(c, id),
                          value->kind == VALUE_INPUT ? "input" : "output");
    return true;
}

static bool check_micros(Check *c)
{
    for (Id i = 0; i < c->plan->buffers; i++)
        if (!check_micro(c, i))
            return false;
    return true;
}

/* Programs run in any order: each finds only what persists. */
static bool begin_program(Check *c, const Program *program)
{
    uint32_t time = program->begin;
    find_reads(c, program);
    lanes_clear(&c->lanes);
    memset(c->latest, 0xff, c->plan->buffers * sizeof *c->latest);
    for (Id i = 0; i < c->plan->buffers; i++) {
        Id value = c->plan->buffer[i].value;
        bool output = value != NONE && c->g->value.at[value].kind == VALUE_OUTPUT &&
                      c->g->value.at[value].program == program - c->plan->program;
        if (!output && !is_present(c, i, (int)(program - c->plan->program)))
            continue;
        bool whole = value == NONE || (c->g->value.at[value].whole == NONE &&
                                       !c->g->value.at[value].fed); /* otherwise it is in one */
        if (whole && !memory_cover(c, i, time, false))
            return false;
        memory_put(c, i, time, !output);
    }
    return true;
}

/* All that the other programs find prepared is there when prepare ends, in the one buffer that the
 * plan names for it: nothing in that program has written over it, and the others cannot. */
static bool end_prepare(Check *c)
{
    for (Id v = 0; v < c->g->value.count; v++) {
        const Value *value = &c->g->value.at[v];
        const Id home = c->plan->home[v], last = home == NONE ? NONE : c->latest[home];
        if (value->kind != VALUE_PREPARED)
            continue;
        if (last == NONE || c->content.at[last].value != v || c->content.at[last].covered != END)
            return check_fail(c, "%s is not there when it was prepared", value->name);
    }
    return true;
}

/* Outputs are there when the program ends: read once more, by the caller. */
static bool end_program(Check *c, int program, uint32_t time)
{
    if (program == PROGRAM_PREPARE && !end_prepare(c))
        return false;
    for (size_t i = 0; i < c->g->output.count; i++) {
        const Output *output = &c->g->output.at[i];
        Id node = c->g->value.at[output->use.value].node, last = c->latest[c->plan->output[i]];
        if (node == NONE)
            return check_fail(c, "no program makes the output %s", output->name);
        if (c->g->node.at[node].program != program)
            continue;
        if (last == NONE || c->content.at[last].value != output->use.value)
            return check_fail(c, "the output %s is never written to its buffer", output->name);
        if (c->content.at[last].covered != END)
            return check_fail(c, "the output %s is overwritten by step %u before its program ends",
                              output->name, c->content.at[last].covered);
        c->content.at[last].last_read = time;
    }
    return true;
}

/* f32, or what a kernel that says so rounds it to. */
static bool leaves_reals(const Check *c, const Node *kernel, Id value)
{
    const Dtype dtype = (Dtype)c->g->value.at[value].dtype;
    return dtype == F32 || ((dtype == F16 || dtype == BF16) && kernel->op->flags & OP_HALF);
}

/* A kernel with an epilogue leaves one float for each that it made, where that was. */
static bool check_epilogue(Check *c, const Cluster *cluster, const Node *kernel)
{
    const Clusters *clusters = c->plan->clusters;
    const Node *last = &c->g->node.at[clusters->node[cluster->node + cluster->nodes - 1]];
    const bool adds = c->g->value.at[last->value].previous != NONE;
    if (!c->target->epilogues || !(kernel->op->flags & (adds ? OP_ASIDE : OP_EPILOGUE)) ||
        kernel->values != 1 || cluster->results != 1 ||
        clusters->result[cluster->result] != last->value ||
        !leaves_reals(c, kernel, kernel->value) || !leaves_reals(c, kernel, last->value))
        return check_fail(c, "%s takes no epilogue", kernel->name);
    return true;
}

/* A loop has each element of what it computes only while it is there. */
static bool check_loop(Check *c, const Cluster *cluster)
{
    const Clusters *clusters = c->plan->clusters;
    const Id *node = &clusters->node[cluster->node];
    const Value *first = &c->g->value.at[c->g->node.at[node[0]].value];
    const Node *kernel = step_kernel(c, cluster);
    if (kernel && !check_epilogue(c, cluster, kernel))
        return false;
    for (Id k = kernel ? 1 : 0; k < cluster->nodes && cluster->nodes > 1; k++) {
        const Node *n = &c->g->node.at[node[k]];
        const Value *value = &c->g->value.at[n->value];
        bool fits = n->op->flags & OP_ELEMENTWISE && value->rank == first->rank &&
                    memcmp(value->dim, first->dim, first->rank * sizeof *first->dim) == 0;
        for (Id i = 0; i < n->uses && fits; i++) {
            Use use = node_use(c->g, n, i);
            Id from = use.value == NONE ? NONE : c->g->value.at[use.value].node;
            for (Id m = 0; m < cluster->nodes; m++)
                fits &= node[m] != from || (m < k && use.view == NONE);
        }
        if (!fits)
            return check_fail(c, "%s cannot run in the loop it was put in", n->name);
    }
    return true;
}

static bool check_runs(Check *c, const Program *program, int kind)
{
    const Clusters *clusters = c->plan->clusters;
    Id *runs = ARENA_ARRAY(c->arena, Id, clusters->count);
    for (Id i = 0; i < program->count; i++)
        if (program->at[i].cluster < clusters->count)
            runs[program->at[i].cluster]++;
    for (Id i = 0; i < clusters->count; i++) {
        if (clusters->at[i].program != kind)
            continue;
        const Node *node = &c->g->node.at[clusters->node[clusters->at[i].node]];
        if (!check_loop(c, &clusters->at[i]))
            return false;
        if (!runs[i])
            return check_fail(c, "%s never runs", node->name);
        for (Id k = 0; k < clusters->at[i].nodes && runs[i] > 1; k++) {
            node = &c->g->node.at[clusters->node[clusters->at[i].node + k]];
            if (node->op->flags & OP_EFFECT)
                return check_fail(c, "%s has an effect and runs more than once", node->name);
        }
    }
    return true;
}

/* What is saved changes only when nothing can fail any more. */
static bool check_commits(Check *c, const Program *program)
{
    const Clusters *clusters = c->plan->clusters;
    bool *ran = ARENA_ARRAY(c->arena, bool, clusters->count);
    Id left = 0;
    for (Id i = 0; i < program->count; i++) {
        Id id = program->at[i].cluster;
        left += !ran[id] && node_may_fail(&c->g->node.at[clusters->node[clusters->at[id].node]]);
        ran[id] = true;
    }
    memset(ran, 0, clusters->count * sizeof *ran);
    for (Id i = 0; i < program->count; i++) {
        Id id = program->at[i].cluster;
        const Node *node = &c->g->node.at[clusters->node[clusters->at[id].node]];
        left -= !ran[id] && node_may_fail(node);
        ran[id] = true;
        const Node *last =
            &c->g->node.at[clusters->node[clusters->at[id].node + clusters->at[id].nodes - 1]];
        if (left && (node_commits(c->g, node) || node_commits(c->g, last)))
            return check_fail(c, "step %u: %s updates state before all ops that can fail have run",
                              program->begin + i, last->name);
    }
    return true;
}

/* Whether the program runs so often that its micro-batches make up `whole` of `part`. */
static bool makes_whole(Check *c, int program, int64_t part, int64_t whole, const char *name)
{
    uint32_t times = c->plan->program[program].times;
    if (times != 0 && whole % times == 0 && whole / times == part)
        return true;
    return check_fail(c, "a program runs %u times, which does not cover %s", times, name);
}

/* What shows of how often a program runs. */
typedef struct {
    bool cut;    /* windows of inputs, parts of outputs */
    bool inputs; /* that it reads, whole or not */
} Shown;

static bool check_cuts(Check *c, const Node *node, Shown *shown)
{
    for (Id i = 0; i < node->uses; i++) {
        Id value = node_use(c->g, node, i).value;
        if (value == NONE || c->g->value.at[value].kind != VALUE_INPUT)
            continue;
        Id whole = c->g->value.at[value].whole;
        shown->inputs = true;
        shown->cut |= whole != NONE;
        if (whole != NONE &&
            !makes_whole(c, node->program, value_count(&c->g->value.at[value]),
                         value_count(&c->g->value.at[whole]), c->g->value.at[whole].name))
            return false;
    }
    Id all = node_collects(c->g, node);
    if (all == NONE)
        return true;
    shown->cut = true;
    View part = use_view(c->g, node_use(c->g, node, 1));
    return makes_whole(c, node->program, view_count(&part), value_count(&c->g->value.at[all]),
                       c->g->value.at[all].name);
}

/* A part that is written in its place is one run of bytes there, as long as any other's. */
static bool is_in_place(const Check *c, Id id)
{
    Use use = node_use(c->g, &c->g->node.at[id], 1);
    View part = use_view(c->g, use);
    const int64_t axis = node_attr(c->g, id, "axis")->list[0];
    int64_t outside = 1;
    for (int64_t i = 0; i < axis; i++)
        outside *= part.dim[i];
    return outside == 1 && part.offset == 0 && view_is_dense(&part) &&
           view_count(&part) == value_count(&c->g->value.at[use.value]);
}

/* What is made in a window of an output is collected there, once, and its only version. */
static bool check_parts(Check *c)
{
    Id *collects = ARENA_ARRAY(c->arena, Id, c->g->value.count + 1); /* by part: how many */
    bool *output = ARENA_ARRAY(c->arena, bool, c->g->value.count + 1);
    for (size_t i = 0; i < c->g->output.count; i++)
        output[c->g->output.at[i].use.value] = true;
    for (Id n = 0; n < c->g->node.count; n++) {
        const Node *node = &c->g->node.at[n];
        Id all = node_collects(c->g, node);
        Id part = all == NONE ? NONE : node_use(c->g, node, 1).value;
        if (part == NONE || c->g->value.at[part].whole != all)
            continue;
        if (!is_in_place(c, n) || !output[node->value])
            return check_fail(c, "%s is no window of the output %s", c->g->value.at[part].name,
                              c->g->value.at[all].name);
        collects[part]++;
    }
    for (Id v = 0; v < c->g->value.count; v++) {
        const Value *value = &c->g->value.at[v];
        if (value->whole == NONE || (value->kind == VALUE_INPUT && value->node == NONE))
            continue;
        if (collects[v] != 1 || value->node == NONE || value->previous != NONE || output[v])
            return check_fail(c, "%s is of a micro-batch, but is not collected", value->name);
    }
    return true;
}

static bool divides_batch(const Graph *g, uint32_t times)
{
    for (size_t i = 0; i < g->dimension.count && times; i++)
        if (g->dimension.at[i].batch)
            return g->dimension.at[i].value % times == 0;
    return false;
}

/* How often a program runs follows from the graph. Updates are for all micro-batches at once. */
static bool check_times(Check *c)
{
    Shown shown[PROGRAMS] = {{false, false}};
    for (size_t n = 0; n < c->g->node.count; n++)
        if (!check_cuts(c, &c->g->node.at[n], &shown[c->g->node.at[n].program]))
            return false;
    for (int p = 0; p < PROGRAMS; p++) {
        uint32_t times = c->plan->program[p].times;
        bool good = shown[p].cut || times == program_times(c->g, p) ||
                    (!shown[p].inputs && divides_batch(c->g, times));
        if (!good || ((p == PROGRAM_UPDATE || p == PROGRAM_PREPARE) && times != 1))
            return check_fail(c, "a program runs %u times, but nothing in it is of a micro-batch",
                              times);
    }
    return true;
}

static bool has_state(Check *c)
{
    Id id = c->plan->state;
    if (c->target->state == 0 && id == NONE)
        return true;
    const Buffer *b = id < c->plan->buffers ? &c->plan->buffer[id] : NULL;
    bool good = b && b->value == NONE && b->kind == BUFFER_STATE && b->space == SPACE_ARENA &&
                b->bytes >= c->target->state;
    return good || check_fail(c, "there is no buffer for the target's state");
}

static bool replay(Check *c)
{
    c->extents.plan = c->plan;
    c->error = check_graph(c->arena, c->g, c->plan->clusters);
    if (!c->error)
        c->error = check_ranks(c->arena, c->g);
    if (c->error || !check_homes(c) || !has_state(c) || !check_times(c) || !check_parts(c) ||
        !check_micros(c))
        return false;
    c->error = check_ring(c->arena, c->plan, c->target);
    if (c->error)
        return false;
    c->error = check_lives(c->arena, c->plan, c->target);
    if (!c->error)
        c->error = extents_find(&c->extents, c->plan, c->target, c->arena);
    if (c->error)
        return false;
    c->lanes = lanes_new(c->arena, &c->extents);
    for (int p = 0; p < PROGRAMS; p++) {
        const Program *program = &c->plan->program[p];
        if (!begin_program(c, program) || !check_runs(c, program, p) || !check_commits(c, program))
            return false;
        for (Id i = 0; i < program->count; i++)
            if (!step_replay(c, &program->at[i], program->begin + i))
                return false;
        if (!end_program(c, p, program->begin + program->count))
            return false;
    }
    return true;
}

const char *plan_check(const Plan *plan, const Target *target, LivePeak *live_peak)
{
    Arena *arena = arena_new();
    Check *c = ARENA_NEW(arena, Check);
    c->plan = plan;
    c->g = plan->graph;
    c->target = target;
    c->arena = arena;
    c->latest = ARENA_ARRAY(arena, Id, plan->buffers);
    c->read = ARENA_ARRAY(arena, uint32_t, plan->buffers);
    c->windowed = ARENA_ARRAY(arena, uint32_t, plan->buffers);
    c->argument = ARENA_ARRAY(arena, Argument, plan->graph->value.count);
    if (replay(c) && live_peak)
        *live_peak = memory_live_peak(c);
    const char *error = NULL;
    if (c->error)
        error = arena_copy(plan->graph->arena, c->error, strlen(c->error));
    arena_free(arena);
    return error;
}
