/* Replays a plan on abstract memory: the proof that a plan is right, whoever made it.
 *
 * Requires: a plan. Leaves: the largest sum of bytes that hold something still to be
 * read. Shares no code with the planner and believes nothing it says about lifetimes: it follows
 * what is written and what is read.
 *
 *  - every operand is read from bytes that hold its value, whole and untouched;
 *  - a result or workspace covers nothing that this occurrence or a later one still reads, save
 *    where the row lets a result take its operand's bytes;
 *  - parameters, state and inputs are never written, and each lies in the one buffer that the plan
 *    names; so does every output, whole, when its program ends; those that micro-batches fill are
 *    nobody else's while it runs;
 *  - what is saved changes only behind all that can fail;
 *  - everything lies inside the arena, aligned; every cluster runs, effects exactly once; a program
 *    runs as often as its micro-batches make up the whole;
 *  - nodes that share a cluster can share a loop: elementwise, of one shape, in order.
 *
 * Before the replay, the graph and its clusters are checked against the rows (check_graph.c), and
 * what the plan says of its buffers against its steps (check_lives.c).
 *
 * A write meets only what lies where it writes, so this is near-linear in the occurrences.
 */
#include "planner/check_lanes.h"
#include "planner/check_parts.h"
#include "planner/planner.h"

#include <string.h>

/* What an occurrence wrote through a buffer, or what was there before the program began. */
typedef struct {
    Id buffer, value;
    uint32_t written, last_read; /* times; last_read counts up while replaying */
    uint32_t covered;            /* when somebody wrote over it: END while it is whole */
    uint32_t absorbed;           /* when it became part of a concat's result around it, or END */
    Id around;                   /* that result as a content, or NONE */
    uint32_t spared;             /* when a concat last left it where it lies, or END */
    bool persistent;
} Content;

/* What stood for a value when it was last an operand or a result. */
typedef struct {
    Id buffer;
    uint32_t time; /* + 1; 0: it never was */
} Argument;

typedef struct {
    const Plan *plan;
    const Graph *g;
    const Target *target;
    Arena *arena;
    ARRAY(Content) content;
    Id *latest;         /* by buffer: the content written through it last, or NONE */
    uint32_t *read;     /* by buffer: when the program at hand reads it for the last time */
    Extents extents;    /* of buffers */
    Lanes lanes;        /* of contents */
    Argument *argument; /* by value */
    uint32_t *windowed; /* by buffer: when a concat last found it in its place, + 1 */
    const char *error;
} Check;

static const uint32_t END = UINT32_MAX;

static bool fail(Check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(Check *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!c->error)
        c->error = arena_vprintf(c->arena, format, args);
    va_end(args);
    return false;
}

static const char *name_of(const Check *c, Id buffer)
{
    return extents_name(&c->extents, buffer);
}

/* ---- Memory --------------------------------------------------------------------------------- */

static void put(Check *c, Id buffer, uint32_t time, bool persistent)
{
    const Buffer *b = &c->plan->buffer[buffer];
    Id id = (Id)c->content.count;
    Content content = {.buffer = buffer,
                       .value = b->value,
                       .written = time,
                       .last_read = time,
                       .covered = END,
                       .absorbed = END,
                       .around = NONE,
                       .spared = END,
                       .persistent = persistent};
    ARRAY_PUSH(c->arena, &c->content, content);
    c->latest[buffer] = id;
    lanes_add(&c->lanes, buffer, id);
}

/* The buffer holds the next version of a persistent value, in the same bytes. */
static bool replaces(const Check *c, Id buffer, const Content *content)
{
    Id value = c->plan->buffer[buffer].value;
    return value != NONE && content->value != NONE &&
           c->g->value.at[value].previous == content->value &&
           extents_same(&c->extents, buffer, content->buffer);
}

/* The outermost of the concat results that a content has become part of, or itself. */
static Id outermost(Check *c, Id id)
{
    Content *content = c->content.at;
    for (; content[id].around != NONE; id = content[id].around)
        if (content[content[id].around].around != NONE)
            content[id].around = content[content[id].around].around;
    return id;
}

/* A write through a buffer. A concat spares operands that lie in their place, with all that lies in
 * them. */
typedef struct {
    Check *c;
    Id buffer;
    uint32_t time;
    bool spares;
} Write;

static bool survives(Id id, void *data)
{
    const Write *w = data;
    Check *c = w->c;
    Content *content = &c->content.at[id];
    bool useless = !content->persistent && c->read[content->buffer] < w->time;
    if (content->covered != END || useless)
        return false;
    if (!extents_overlap(&c->extents, w->buffer, content->buffer) ||
        (w->spares && c->content.at[outermost(c, id)].spared == w->time))
        return true;
    if (content->persistent && !replaces(c, w->buffer, content))
        return !fail(c, "step %u writes %s over %s, which persists", w->time, name_of(c, w->buffer),
                     name_of(c, content->buffer));
    content->covered = w->time;
    return false;
}

/* Whatever the buffer covers is lost from now on, save contents that are spared where it spares
 * any. */
static bool cover(Check *c, Id buffer, uint32_t time, bool spares)
{
    Write write = {c, buffer, time, spares};
    lanes_meet(&c->lanes, buffer, survives, &write);
    return !c->error;
}

static bool holds(Check *c, Id buffer, uint32_t time)
{
    const Buffer *b = &c->plan->buffer[buffer];
    Id id = c->latest[buffer];
    if (id == NONE)
        return fail(c, "step %u reads %s before it is written", time, name_of(c, buffer));
    Content *content = &c->content.at[id];
    if (content->covered != END)
        return fail(c, "step %u reads %s, but step %u wrote over it", time, name_of(c, buffer),
                    content->covered);
    content->last_read = time;
    return content->value == b->value;
}

/* ---- One occurrence ------------------------------------------------------------------------- */

/* A kernel that runs the elementwise nodes behind it on what it has made. */
static const Node *kernel_before_epilogue(const Check *c, const Cluster *cluster)
{
    const Node *first = &c->g->node.at[c->plan->clusters->node[cluster->node]];
    return cluster->nodes > 1 && !(first->op->flags & OP_ELEMENTWISE) ? first : NULL;
}

/* The row lets result 0 of the cluster take the bytes of this operand. */
static bool may_take(const Check *c, const Cluster *cluster, Id operand)
{
    if (kernel_before_epilogue(c, cluster))
        return false; /* sums lie in the result before the epilogue reads its operands */
    for (Id k = 0; k < cluster->nodes; k++) {
        const Node *node = &c->g->node.at[c->plan->clusters->node[cluster->node + k]];
        Id reads = 0;
        for (Id u = 0; u < node->uses; u++) {
            Use use = node_use(c->g, node, u);
            if (use.value != operand)
                continue;
            reads++;
            if (use.view != NONE)
                return false;
            if (!(node->op->flags & OP_ELEMENTWISE) &&
                (u >= 32 || !(node->op->inplace >> u & 1) || reads > 1))
                return false;
        }
    }
    return true;
}

/* The buffer that stands for a value in the occurrence at hand. */
static Id argument(const Check *c, Id value, uint32_t time)
{
    if (value == NONE || c->argument[value].time != time + 1)
        return NONE; /* a literal, or within the loop, or read by nobody */
    return c->argument[value].buffer;
}

static bool has_strides_of(const View *window, const View *result)
{
    for (int k = 0; k < window->rank; k++)
        if (window->dim[k] != 1 && window->stride[k] != result->stride[k])
            return false;
    return window->rank == result->rank;
}

/* Notes the operands of a concat that lie in their own place in the result. */
static void find_windowed(Check *c, const Occurrence *o, uint32_t time)
{
    const Cluster *cluster = &c->plan->clusters->at[o->cluster];
    const Id first = c->plan->clusters->node[cluster->node];
    const Node *node = &c->g->node.at[first];
    if (!(node->op->flags & OP_JOINS) || cluster->results == 0)
        return;
    const Id result = c->plan->arg[o->arg + cluster->operands];
    const View *out = &c->plan->buffer[result].layout;
    const int axis = (int)node_attr(c->g, first, "axis")->list[0];
    int64_t begin = 0;
    for (Id i = 0; i < node->uses; i++) {
        Use use = node_use(c->g, node, i);
        Id buffer = argument(c, use.value, time);
        const View *in = buffer == NONE ? NULL : &c->plan->buffer[buffer].layout;
        if (in && use.view == NONE && c->extents.base[buffer] == c->extents.base[result] &&
            in->offset == out->offset + begin * out->stride[axis] && has_strides_of(in, out))
            c->windowed[buffer] = time + 1;
        begin += use_view(c->g, use).dim[axis];
    }
}

/* Operands stay readable while results are written: each pair is apart, or allowed to meet. */
static bool check_pairs(Check *c, const Occurrence *o, uint32_t time, Id *keep, Id *keeps)
{
    const Cluster *cluster = &c->plan->clusters->at[o->cluster];
    const Id *in = &c->plan->arg[o->arg], *out = in + cluster->operands;
    find_windowed(c, o, time);
    for (Id i = 0; i < cluster->operands; i++) {
        if (o->workspace != NONE && extents_overlap(&c->extents, in[i], o->workspace))
            return fail(c, "step %u: workspace covers its operand %s", time, name_of(c, in[i]));
        for (Id k = 0; k < cluster->results; k++) {
            if (!extents_overlap(&c->extents, in[i], out[k]))
                continue;
            const Value *made = &c->g->value.at[c->plan->buffer[out[k]].value];
            if (made->previous == c->plan->buffer[in[i]].value &&
                extents_same(&c->extents, in[i], out[k]))
                continue;
            if (c->windowed[in[i]] == time + 1)
                keep[(*keeps)++] = in[i];
            else if (!extents_same(&c->extents, in[i], out[k]) || made->output != 0 ||
                     !may_take(c, cluster, c->plan->buffer[in[i]].value))
                return fail(c, "step %u: the result %s covers the operand %s", time,
                            name_of(c, out[k]), name_of(c, in[i]));
        }
    }
    for (Id k = 0; k < cluster->results; k++) {
        if (o->workspace != NONE && extents_overlap(&c->extents, out[k], o->workspace))
            return fail(c, "step %u: workspace covers its result %s", time, name_of(c, out[k]));
        for (Id m = 0; m < k; m++)
            if (extents_overlap(&c->extents, out[k], out[m]))
                return fail(c, "step %u: the results %s and %s overlap", time, name_of(c, out[k]),
                            name_of(c, out[m]));
    }
    return true;
}

static bool check_args(Check *c, const Occurrence *o, uint32_t time)
{
    const Clusters *clusters = c->plan->clusters;
    const Cluster *cluster = &clusters->at[o->cluster];
    uint64_t work = c->target->workspace(c->target, c->g, clusters, o->cluster);
    if (work && (o->workspace == NONE || o->workspace >= c->plan->buffers ||
                 c->plan->buffer[o->workspace].bytes < work))
        return fail(c, "step %u has less workspace than the %llu bytes it needs", time,
                    (unsigned long long)work);
    for (Id k = 0; k < cluster->operands + cluster->results; k++) {
        Id buffer = c->plan->arg[o->arg + k];
        Id value = k < cluster->operands
                       ? clusters->operand[cluster->operand + k]
                       : clusters->result[cluster->result + k - cluster->operands];
        if (buffer >= c->plan->buffers || c->plan->buffer[buffer].value != value)
            return fail(c, "step %u: argument %u is not a buffer of %s", time, k,
                        c->g->value.at[value].name);
        c->argument[value] = (Argument){buffer, time + 1};
    }
    return true;
}

static bool has_gaps(const Check *c, Id buffer)
{
    return buffer != NONE && !view_is_dense(&c->plan->buffer[buffer].layout);
}

/* What lies with gaps is read whole, and only by those who take strides; as for writing. */
static bool check_gaps(Check *c, const Occurrence *o, uint32_t time)
{
    const Cluster *cluster = &c->plan->clusters->at[o->cluster];
    for (Id k = 0; k < cluster->nodes; k++) {
        const Node *node = &c->g->node.at[c->plan->clusters->node[cluster->node + k]];
        bool loop = node->op->flags & OP_ELEMENTWISE;
        for (Id i = 0; i < node->uses; i++) {
            Use use = node_use(c->g, node, i);
            bool takes = loop || node->op->strided >> (i < 31 ? i : 31) & 1;
            if (has_gaps(c, argument(c, use.value, time)) && (!takes || use.view != NONE))
                return fail(c, "step %u: %s reads operand %u with gaps", time, node->name, i);
        }
        for (Id i = 0; i < node->values; i++)
            if (has_gaps(c, argument(c, node_value(node, i), time)) && !loop &&
                !(node->op->out_strided >> i & 1))
                return fail(c, "step %u: %s writes output %u with gaps", time, node->name, i);
    }
    const Node *kernel = kernel_before_epilogue(c, cluster);
    if (kernel && !(kernel->op->out_strided & 1) &&
        has_gaps(c, c->plan->arg[o->arg + cluster->operands]))
        return fail(c, "step %u: %s writes what its epilogue makes with gaps", time, kernel->name);
    return true;
}

static bool replay_one(Check *c, const Occurrence *o, uint32_t time)
{
    if (o->cluster >= c->plan->clusters->count)
        return fail(c, "step %u runs a cluster that does not exist", time);
    const Cluster *cluster = &c->plan->clusters->at[o->cluster];
    if (!check_args(c, o, time) || !check_gaps(c, o, time))
        return false;
    const Id *arg = &c->plan->arg[o->arg];
    for (Id k = 0; k < cluster->operands; k++)
        if (!holds(c, arg[k], time))
            return fail(c, "step %u reads %s from bytes that hold something else", time,
                        name_of(c, arg[k]));
    Id *keep = ARENA_ARRAY(c->arena, Id, cluster->operands * cluster->results + 1), keeps = 0;
    if (!check_pairs(c, o, time, keep, &keeps))
        return false;
    for (Id k = 0; k < keeps; k++)
        c->content.at[c->latest[keep[k]]].spared = time;
    if (o->workspace != NONE && !cover(c, o->workspace, time, false))
        return false;
    for (Id k = cluster->operands; k < cluster->operands + cluster->results; k++)
        if (!cover(c, arg[k], time, keeps > 0))
            return false;
    for (Id k = cluster->operands; k < cluster->operands + cluster->results; k++) {
        Id value = c->plan->buffer[arg[k]].value;
        put(c, arg[k], time, check_is_persistent(c->g, value));
    }
    for (Id k = 0; k < keeps; k++) {
        Content *content = &c->content.at[c->latest[keep[k]]];
        content->absorbed = time;
        content->around = c->latest[arg[cluster->operands]];
    }
    return true;
}

/* ---- Programs ------------------------------------------------------------------------------- */

/* It is there before a program runs: a later version is put there by its step. */
static bool is_present(const Check *c, Id buffer)
{
    Id value = c->plan->buffer[buffer].value;
    if (value == NONE)
        return c->plan->buffer[buffer].kind == BUFFER_STATE;
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
            return fail(c, "the buffer of %s is another's", c->g->value.at[v].name);
    }
    for (Id i = 0; i < c->plan->buffers; i++) {
        Id value = c->plan->buffer[i].value;
        bool home = value != NONE && c->g->value.at[value].kind != VALUE_RESULT;
        if (home && c->plan->home[value] != i)
            return fail(c, "%s has a second buffer", name_of(c, i));
    }
    for (size_t i = 0; i < c->g->output.count; i++) {
        Id buffer = c->plan->output[i];
        if (buffer >= c->plan->buffers ||
            c->plan->buffer[buffer].value != c->g->output.at[i].use.value)
            return fail(c, "the buffer of the output %s is another's", c->g->output.at[i].name);
    }
    return true;
}

/* An input of a micro-batch moves over the whole input, and nowhere else. */
static bool check_micro(Check *c, Id id)
{
    const Buffer *b = &c->plan->buffer[id];
    Id whole = c->g->value.at[b->value].whole;
    const Buffer *root = b->root < c->plan->buffers ? &c->plan->buffer[b->root] : b;
    if (root->value != whole || root->offset != b->offset || b->layout.offset != 0 ||
        !view_is_dense(&b->layout) || root->space != b->space)
        return fail(c, "%s is not a window of the whole input", name_of(c, id));
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
        if (!output && !is_present(c, i))
            continue;
        bool whole = value == NONE || c->g->value.at[value].whole == NONE;
        if (whole ? !cover(c, i, time, false) : !check_micro(c, i))
            return false;
        put(c, i, time, !output);
    }
    return true;
}

/* Outputs are there when the program ends: read once more, by the caller. */
static bool end_program(Check *c, int program, uint32_t time)
{
    for (size_t i = 0; i < c->g->output.count; i++) {
        const Output *output = &c->g->output.at[i];
        Id node = c->g->value.at[output->use.value].node, last = c->latest[c->plan->output[i]];
        if (node == NONE)
            return fail(c, "no program makes the output %s", output->name);
        if (c->g->node.at[node].program != program)
            continue;
        if (last == NONE || c->content.at[last].value != output->use.value)
            return fail(c, "the output %s is never written where it is looked for", output->name);
        if (c->content.at[last].covered != END)
            return fail(c, "the output %s is not there at the end: step %u wrote over it",
                        output->name, c->content.at[last].covered);
        c->content.at[last].last_read = time;
    }
    return true;
}

/* A kernel with an epilogue leaves one float for each that it made, where that was. */
static bool check_epilogue(Check *c, const Cluster *cluster, const Node *kernel)
{
    const Clusters *clusters = c->plan->clusters;
    const Node *last = &c->g->node.at[clusters->node[cluster->node + cluster->nodes - 1]];
    if (!c->target->epilogues || !(kernel->op->flags & OP_EPILOGUE) || kernel->values != 1 ||
        cluster->results != 1 || clusters->result[cluster->result] != last->value ||
        c->g->value.at[kernel->value].dtype != F32 || c->g->value.at[last->value].dtype != F32)
        return fail(c, "%s cannot run what stands behind it", kernel->name);
    return true;
}

/* A loop has each element of what it computes only while it is there. */
static bool check_loop(Check *c, const Cluster *cluster)
{
    const Clusters *clusters = c->plan->clusters;
    const Id *node = &clusters->node[cluster->node];
    const Value *first = &c->g->value.at[c->g->node.at[node[0]].value];
    const Node *kernel = kernel_before_epilogue(c, cluster);
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
            return fail(c, "%s cannot run in the loop it was put in", n->name);
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
            return fail(c, "%s never runs", node->name);
        if (runs[i] > 1 && node->op->flags & OP_EFFECT)
            return fail(c, "%s has an effect and runs more than once", node->name);
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
        if (left && node_commits(c->g, node))
            return fail(c, "step %u: %s changes what is saved before all that can fail has run",
                        program->begin + i, node->name);
    }
    return true;
}

/* Bytes of contents between the step that wrote them and the last that reads them. What a result
 * was written over or around is counted with the result from then on. */
static LivePeak find_live_peak(Check *c)
{
    int64_t *change = ARENA_ARRAY(c->arena, int64_t, c->plan->end + 2);
    bool *counted = ARENA_ARRAY(c->arena, bool, c->plan->buffers); /* every program finds them */
    for (size_t i = 0; i < c->content.count; i++) {
        const Content *content = &c->content.at[i];
        const Buffer *b = &c->plan->buffer[content->buffer];
        if (b->space != SPACE_ARENA)
            continue;
        const Value *value = content->value == NONE ? NULL : &c->g->value.at[content->value];
        if (value && ((check_is_version(c->g, content->value) &&
                       check_is_persistent(c->g, content->value)) ||
                      value->whole != NONE))
            continue; /* the first version, the whole input is counted */
        if (content->persistent && counted[content->buffer])
            continue;
        counted[content->buffer] = content->persistent;
        uint32_t death = content->persistent ? c->plan->end : content->last_read + 1;
        if (death > content->covered && !content->persistent)
            death = content->covered;
        if (death > content->absorbed)
            death = content->absorbed;
        change[content->persistent ? 0 : content->written] += (int64_t)b->bytes;
        change[death] -= (int64_t)b->bytes;
    }
    for (int p = 0; p < PROGRAMS; p++)
        for (Id i = 0; i < c->plan->program[p].count; i++) {
            Id workspace = c->plan->program[p].at[i].workspace;
            if (workspace == NONE)
                continue;
            change[c->plan->program[p].begin + i] += (int64_t)c->plan->buffer[workspace].bytes;
            change[c->plan->program[p].begin + i + 1] -= (int64_t)c->plan->buffer[workspace].bytes;
        }
    int64_t sum = 0, most = -1;
    uint32_t time = 0;
    for (uint32_t t = 0; t <= c->plan->end; t++) {
        sum += change[t];
        if (sum > most) {
            most = sum;
            time = t;
        }
    }
    return (LivePeak){(uint64_t)most, time};
}

/* Whether the program runs so often that its micro-batches make up `whole` of `part`. */
static bool makes_whole(Check *c, int program, int64_t part, int64_t whole, const char *name)
{
    uint32_t times = c->plan->program[program].times;
    if (times != 0 && whole % times == 0 && whole / times == part)
        return true;
    return fail(c, "a program runs %u times, which does not make %s whole", times, name);
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
    Id all = c->g->value.at[node->value].previous;
    if (all == NONE || c->g->value.at[all].kind != VALUE_OUTPUT || node->uses != 2)
        return true;
    shown->cut = true;
    View part = use_view(c->g, node_use(c->g, node, 1));
    return makes_whole(c, node->program, view_count(&part), value_count(&c->g->value.at[all]),
                       c->g->value.at[all].name);
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
        if (!good || (p == PROGRAM_UPDATE && times != 1))
            return fail(c, "a program runs %u times, but nothing in it is of a micro-batch", times);
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
    return good || fail(c, "there is no place for the target's state");
}

static bool replay(Check *c)
{
    c->extents.plan = c->plan;
    c->error = check_graph(c->arena, c->g, c->plan->clusters);
    if (c->error || !check_homes(c) || !has_state(c) || !check_times(c))
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
            if (!replay_one(c, &program->at[i], program->begin + i))
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
        *live_peak = find_live_peak(c);
    const char *error = NULL;
    if (c->error)
        error = arena_copy(plan->graph->arena, c->error, strlen(c->error));
    arena_free(arena);
    return error;
}
