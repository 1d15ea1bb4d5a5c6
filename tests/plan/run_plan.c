#include "tests/plan/run_step.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const Plan *plan;
    const Graph *g;
    unsigned char *arena;
    unsigned char **external; /* by root buffer: the caller's memory */
    const char *wrong;
    Arena *text;
    gp_run run;
} Machine;

static unsigned char *root_of(const Machine *m, Id buffer)
{
    const Buffer *b = &m->plan->buffer[buffer];
    unsigned char *root = b->space != SPACE_ARENA ? m->external[b->root] : m->arena + b->offset;
    const Value *value = b->value == NONE ? NULL : &m->g->value.at[b->value];
    bool window = value && value->whole != NONE;
    return window ? root + (uint64_t)m->run.micro * value_bytes(value) : root;
}

/* Where the element of a value lies whose number is `linear`, as the value's dims count. */
static int64_t place(const View *layout, int64_t linear)
{
    int64_t at = layout->offset;
    for (int d = layout->rank; d-- > 0; linear /= layout->dim[d])
        at += linear % layout->dim[d] * layout->stride[d];
    return at;
}

static int64_t view_place(const View *view, int64_t i)
{
    int64_t at = view->offset;
    for (int d = view->rank; d-- > 0; i /= view->dim[d])
        at += i % view->dim[d] * view->stride[d];
    return at;
}

/* A view of a value through the layout of its buffer: found by following single elements, and only
 * right where all the others lie on the same grid. */
static View through(Machine *m, const View *view, const View *layout)
{
    View out = *view;
    out.offset = place(layout, view->offset);
    for (int d = 0; d < view->rank; d++)
        out.stride[d] =
            view->dim[d] == 1 ? 1 : place(layout, view->offset + view->stride[d]) - out.offset;
    for (int64_t i = 0; i < view_count(view); i++)
        if (view_place(&out, i) != place(layout, view_place(view, i)))
            m->wrong = "a view crosses a gap of its buffer";
    return out;
}

static Id buffer_of(const Machine *m, const Occurrence *o, Id value)
{
    const Clusters *clusters = m->plan->clusters;
    const Cluster *c = &clusters->at[o->cluster];
    for (Id k = 0; k < c->operands; k++)
        if (clusters->operand[c->operand + k] == value)
            return m->plan->arg[o->arg + k];
    for (Id k = 0; k < c->results; k++)
        if (clusters->result[c->result + k] == value)
            return m->plan->arg[o->arg + c->operands + k];
    return NONE;
}

static gp_tensor operand_at(Machine *m, Use use, Id buffer)
{
    View view = use_view(m->g, use);
    View at = through(m, &view, &m->plan->buffer[buffer].layout);
    return tensor_at(root_of(m, buffer), (Dtype)m->g->value.at[use.value].dtype, &at);
}

static void *workspace_of(Machine *m, const Occurrence *o)
{
    void *work = o->workspace == NONE ? NULL : root_of(m, o->workspace);
    if (work)
        memset(work, POISON, m->plan->buffer[o->workspace].bytes);
    return work;
}

/* A kernel: what nobody reads has no bytes. */
static int kernel_step(Machine *m, const Occurrence *o, Id node)
{
    Step s = step_new(m->g, node, &m->run);
    for (Id i = 0; i < s.node->uses; i++) {
        Use use = node_use(m->g, s.node, i);
        if (use.value != NONE && !s.in[i].data)
            s.in[i] = operand_at(m, use, buffer_of(m, o, use.value));
    }
    for (Id i = 0; i < s.node->values; i++) {
        Id value = node_value(s.node, i), buffer = buffer_of(m, o, value);
        View view = value_view(&m->g->value.at[value]);
        s.out[i] = buffer == NONE ? tensor_at(NULL, (Dtype)m->g->value.at[value].dtype, &view)
                                  : operand_at(m, use_of(value), buffer);
    }
    int status = m->wrong ? 0 : step_run(&s, workspace_of(m, o));
    step_free(&s);
    return status;
}

/* One node of an elementwise cluster, ready to run on any element. */
typedef struct {
    Step step;
    gp_tensor *in;   /* operands from outside, whole; data NULL where it comes from inside */
    Id *from;        /* the node of the cluster that an operand comes from, or NONE */
    Number result;   /* of the element at hand */
    gp_tensor store; /* data NULL: stays inside */
} LoopNode;

static void *element(const gp_tensor *t, int64_t i)
{
    int64_t at = 0;
    for (int d = t->rank; d-- > 0; i /= t->dim[d])
        at += i % t->dim[d] * t->stride[d];
    return (unsigned char *)t->data + at * (int64_t)dtype_size((Dtype)t->dtype);
}

static void loop_prepare(Machine *m, const Occurrence *o, LoopNode *nodes, Id k)
{
    const Clusters *clusters = m->plan->clusters;
    const Cluster *c = &clusters->at[o->cluster];
    LoopNode *l = &nodes[k];
    l->step = step_new(m->g, clusters->node[c->node + k], &m->run);
    const Node *node = l->step.node;
    l->in = calloc(node->uses + 1, sizeof *l->in);
    l->from = calloc(node->uses + 1, sizeof *l->from);
    for (Id i = 0; i < node->uses; i++) {
        Use use = node_use(m->g, node, i);
        l->from[i] = NONE;
        if (use.value == NONE || l->step.in[i].data)
            continue;
        for (Id p = 0; p < k; p++)
            if (nodes[p].step.node->value == use.value)
                l->from[i] = p;
        if (l->from[i] == NONE)
            l->in[i] = operand_at(m, use, buffer_of(m, o, use.value));
    }
    Id buffer = buffer_of(m, o, node->value);
    if (buffer != NONE)
        l->store = operand_at(m, use_of(node->value), buffer);
}

static int loop_element(LoopNode *nodes, Id count, int64_t i)
{
    static const View one = {.rank = 0};
    for (Id k = 0; k < count; k++) {
        LoopNode *l = &nodes[k];
        const Node *node = l->step.node;
        for (Id u = 0; u < node->uses; u++) {
            Dtype dtype = (Dtype)l->in[u].dtype;
            if (l->in[u].data)
                l->step.in[u] = tensor_at(element(&l->in[u], i), dtype, &one);
            else if (l->from[u] != NONE) {
                LoopNode *p = &nodes[l->from[u]];
                dtype = (Dtype)p->step.g->value.at[p->step.node->value].dtype;
                l->step.in[u] = tensor_at(&p->result, dtype, &one);
            } else if (l->step.in[u].data) {
                l->step.in[u].rank = 0;
            }
        }
        Dtype dtype = (Dtype)l->step.g->value.at[node->value].dtype;
        l->step.out[0] = tensor_at(&l->result, dtype, &one);
        int status = step_run(&l->step, NULL);
        if (status)
            return status;
    }
    for (Id k = 0; k < count; k++)
        if (nodes[k].store.data)
            memcpy(element(&nodes[k].store, i), &nodes[k].result,
                   dtype_size((Dtype)nodes[k].store.dtype));
    return 0;
}

static int loop_run(Machine *m, const Occurrence *o)
{
    const Cluster *c = &m->plan->clusters->at[o->cluster];
    LoopNode *nodes = calloc(c->nodes, sizeof *nodes);
    for (Id k = 0; k < c->nodes; k++)
        loop_prepare(m, o, nodes, k);
    int64_t count = value_count(&m->g->value.at[nodes[0].step.node->value]);
    int status = 0;
    for (int64_t i = 0; i < count && !status && !m->wrong; i++)
        status = loop_element(nodes, c->nodes, i);
    for (Id k = 0; k < c->nodes; k++) {
        step_free(&nodes[k].step);
        free(nodes[k].in);
        free(nodes[k].from);
    }
    free(nodes);
    return status;
}

/* What a random op draws follows from the number of the element, and a kernel with a tail is one
 * call: such a cluster runs node by node on whole tensors of its own, and is stored when all is
 * there. */
static int whole_run(Machine *m, const Occurrence *o)
{
    const Cluster *c = &m->plan->clusters->at[o->cluster];
    LoopNode *nodes = calloc(c->nodes, sizeof *nodes);
    void **block = calloc(c->nodes, sizeof *block);
    int status = 0;
    for (Id k = 0; k < c->nodes && !status; k++) {
        loop_prepare(m, o, nodes, k);
        Step *s = &nodes[k].step;
        const Value *made = &m->g->value.at[s->node->value];
        View view = value_view(made);
        block[k] = calloc(1, value_bytes(made) + 1);
        for (Id u = 0; u < s->node->uses; u++)
            if (nodes[k].in[u].data)
                s->in[u] = nodes[k].in[u];
            else if (nodes[k].from[u] != NONE)
                s->in[u] =
                    tensor_at(block[nodes[k].from[u]],
                              (Dtype)m->g->value.at[node_use(m->g, s->node, u).value].dtype, &view);
        s->out[0] = tensor_at(block[k], (Dtype)made->dtype, &view);
        status = m->wrong ? 0 : step_run(s, k ? NULL : workspace_of(m, o));
    }
    for (Id k = 0; k < c->nodes; k++) {
        const gp_tensor *store = &nodes[k].store;
        for (int64_t i = 0; store->data && i < gp_count(store) && !status; i++)
            memcpy(element(store, i),
                   (char *)block[k] + i * (int64_t)dtype_size((Dtype)store->dtype),
                   dtype_size((Dtype)store->dtype));
    }
    for (Id k = 0; k < c->nodes; k++) {
        step_free(&nodes[k].step);
        free(nodes[k].in);
        free(nodes[k].from);
        free(block[k]);
    }
    free(nodes);
    free(block);
    return status;
}

static int run_occurrence(Machine *m, const Occurrence *o)
{
    const Cluster *c = &m->plan->clusters->at[o->cluster];
    uint32_t flags = 0;
    for (Id k = 0; k < c->nodes; k++)
        flags |= m->g->node.at[m->plan->clusters->node[c->node + k]].op->flags;
    if (!(flags & OP_ELEMENTWISE))
        return kernel_step(m, o, m->plan->clusters->node[c->node]);
    return flags & OP_RANDOM || cluster_has_epilogue(m->g, m->plan->clusters, c) ? whole_run(m, o)
                                                                                 : loop_run(m, o);
}

/* ---- Before, during, after ------------------------------------------------------------------- */

static Machine machine_new(Arena *text, const Plan *plan, uint64_t seed)
{
    Machine m = {.plan = plan, .g = plan->graph, .text = text, .run = run_once};
    size_t bytes = plan->arena[SPACE_ARENA] ? (plan->arena[SPACE_ARENA] + 63) / 64 * 64 : 64;
    void *arena = NULL; /* so tight that the sanitizer sees what leaves it */
    const int failed = posix_memalign(&arena, 256, bytes);
    assert(!failed);
    (void)failed;
    m.arena = arena;
    memset(m.arena, POISON, bytes);
    m.external = calloc(plan->buffers + 1, sizeof *m.external);
    for (Id i = 0; i < plan->buffers; i++)
        if (plan->buffer[i].space != SPACE_ARENA && plan->buffer[i].root == i)
            m.external[i] = malloc(plan->buffer[i].bytes);
    for (Id i = 0; i < plan->buffers; i++) {
        Id value = plan->buffer[i].value;
        if (value != NONE && persists(&m.g->value.at[value]) &&
            m.g->value.at[value].previous == NONE && m.g->value.at[value].whole == NONE)
            plain_fill(m.g, value, seed, operand_at(&m, use_of(value), i).data);
    }
    return m;
}

static void machine_free(Machine *m)
{
    for (Id i = 0; i < m->plan->buffers; i++)
        free(m->external[i]);
    free(m->external);
    free(m->arena);
}

static void poison(Machine *m, const Buffer *b)
{
    memset(m->arena + b->offset, POISON, b->bytes);
}

/* Outputs are read after the last step. */
static void poison_dead(Machine *m, uint32_t time)
{
    for (Id i = 0; i < m->plan->buffers; i++) {
        const Buffer *b = &m->plan->buffer[i];
        if (b->root == i && b->space == SPACE_ARENA && b->kind >= BUFFER_ACTIVATION &&
            b->death == time + 1)
            poison(m, b);
    }
}

/* What no program leaves to another. */
static void poison_all(Machine *m)
{
    for (Id i = 0; i < m->plan->buffers; i++)
        if (m->plan->buffer[i].root == i && m->plan->buffer[i].space == SPACE_ARENA &&
            m->plan->buffer[i].kind >= BUFFER_OUTPUT)
            poison(m, &m->plan->buffer[i]);
}

static const char *compare_buffer(Machine *m, const PlainRun *plain, Id buffer, const char *name)
{
    Id id = m->plan->buffer[buffer].value;
    const Value *value = &m->g->value.at[id];
    View view = value_view(value);
    gp_tensor got = operand_at(m, use_of(id), buffer);
    gp_tensor want = tensor_at(plain_block(plain, id), (Dtype)value->dtype, &view);
    for (int64_t i = 0; i < value_count(value); i++)
        if (!same_element((Dtype)value->dtype, element(&got, i), element(&want, i)))
            return arena_printf(m->text, "%s differs from element %lld on", name, (long long)i);
    return NULL;
}

static const char *compare_outputs(Machine *m, const PlainRun *plain, int program)
{
    const char *wrong = NULL;
    for (size_t k = 0; k < m->g->output.count && !wrong; k++) {
        Id value = m->g->output.at[k].use.value, node = m->g->value.at[value].node;
        if ((node == NONE ? 0 : m->g->node.at[node].program) == program)
            wrong = compare_buffer(m, plain, m->plan->output[k], m->g->output.at[k].name);
    }
    return wrong;
}

static void run_program(Machine *m, ProgramKind kind, bool poisoned)
{
    const Program *program = &m->plan->program[kind];
    for (Id i = 0; i < program->count && !m->wrong; i++) {
        int status = run_occurrence(m, &program->at[i]);
        if (status)
            m->wrong = arena_printf(m->text, "step %u failed with %d", program->begin + i, status);
        if (poisoned)
            poison_dead(m, program->begin + i);
    }
}

const char *plan_differs(Arena *arena, const Plan *plan, const PlainRun *plain, uint64_t seed,
                         bool poisoned)
{
    Machine m = machine_new(arena, plan, seed);
    run_program(&m, PROGRAM_PREPARE, poisoned);
    run_program(&m, PROGRAM_FORWARD, poisoned);
    const char *wrong = m.wrong ? m.wrong : compare_outputs(&m, plain, PROGRAM_FORWARD);
    machine_free(&m);
    return wrong;
}

/* ---- Training -------------------------------------------------------------------------------- */

/* A call of a program on both: all of its micro-batches. */
static const char *run_both(PlainRun *plain, Machine *m, ProgramKind program)
{
    uint32_t times = program_times(m->g, program);
    const char *wrong = NULL;
    poison_all(m);
    for (uint32_t micro = 0; micro < times && !wrong; micro++) {
        plain->run.micro = m->run.micro = (int32_t)micro;
        plain->run.micros = m->run.micros = times > 1 ? (int32_t)times : 0;
        plain_program(plain, program);
        if (plain->status)
            return NULL;
        run_program(m, program, true);
        bool last = micro + 1 == times || program != PROGRAM_FORWARD;
        wrong = m->wrong;
        if (!wrong && last)
            wrong = compare_outputs(m, plain, program);
    }
    return wrong;
}

/* Parameters, state and inputs. */
static const char *compare_persistent(Machine *m, const PlainRun *plain)
{
    const char *wrong = NULL;
    for (Id i = 0; i < m->plan->buffers && !wrong; i++) {
        Id value = m->plan->buffer[i].value;
        if (value != NONE && persists(&m->g->value.at[value]) &&
            m->g->value.at[value].whole == NONE)
            wrong = compare_buffer(m, plain, i, m->g->value.at[value].name);
    }
    return wrong;
}

Trained plan_trains(Arena *arena, const Plan *plan, uint64_t seed, uint64_t steps)
{
    Machine m = machine_new(arena, plan, seed);
    PlainRun plain = plain_new(plan->graph, seed);
    Trained trained = {.wrong = NULL};
    for (uint64_t step = 0; step < steps && !trained.wrong && !plain.status; step++) {
        plain.run.step = m.run.step = step;
        trained.wrong = run_both(&plain, &m, PROGRAM_STEP);
        if (!trained.wrong && !plain.status)
            trained.wrong = run_both(&plain, &m, PROGRAM_UPDATE);
    }
    if (!trained.wrong && !plain.status)
        trained.wrong = compare_persistent(&m, &plain);
    plain.run.step = m.run.step = steps;
    if (!trained.wrong && !plain.status)
        trained.wrong = run_both(&plain, &m, PROGRAM_FORWARD);
    trained.ran = plain.status == 0;
    trained.finite = plain_is_finite(&plain);
    plain_free(&plain);
    machine_free(&m);
    return trained;
}
