#include "tests/plan/run_plan.h"

#include "codegen/internal.h"
#include "runtime/runtime.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Reads as NaN in f32, as -1 in integers. */
enum { POISON = 0xff };

static const gp_run once = {.seed = 1, .threads = 1, .lr = 0.01};

/* ---- What persistent values hold ------------------------------------------------------------- */

static double drawn(uint64_t seed, Id value, int64_t i)
{
    uint64_t x = seed * 0x9e3779b97f4a7c15u + value * 0xbf58476d1ce4e5b9u + (uint64_t)i;
    x = (x ^ x >> 31) * 0x94d049bb133111ebu;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
    return (double)(x >> 11) * 0x1p-53;
}

/* Integers are 0 or 1, so that they are right as indices; state is positive, as variances are. */
static void fill(const Graph *g, Id id, uint64_t seed, void *to)
{
    const Value *value = &g->value.at[id];
    for (int64_t i = 0; i < value_count(value); i++) {
        double x = drawn(seed, id, i);
        switch (value->dtype) {
        case F32:
            ((float *)to)[i] = (float)(value->kind == VALUE_STATE ? 0.5 + x : 2 * x - 1);
            break;
        case I32:
            ((int32_t *)to)[i] = x > 0.5;
            break;
        case I64:
            ((int64_t *)to)[i] = x > 0.5;
            break;
        default:
            ((uint8_t *)to)[i] = x > 0.5;
        }
    }
}

static bool persists(const Value *value)
{
    return value->kind == VALUE_INPUT || value->kind == VALUE_PARAM || value->kind == VALUE_CONST ||
           value->kind == VALUE_STATE;
}

/* ---- One node -------------------------------------------------------------------------------- */

/* A number where a kernel wants a tensor. */
typedef union {
    float f32;
    int32_t i32;
    int64_t i64;
    uint8_t u8;
} Number;

static void set_number(Number *to, const Value *literal)
{
    if (literal->dtype == F32)
        to->f32 = (float)literal->literal;
    else if (literal->dtype == I32)
        to->i32 = (int32_t)literal->literal;
    else if (literal->dtype == I64)
        to->i64 = (int64_t)literal->literal;
    else
        to->u8 = (uint8_t)literal->literal;
}

static gp_tensor tensor_at(void *root, Dtype dtype, const View *view)
{
    gp_tensor t = {.dtype = (int32_t)dtype, .rank = view->rank};
    if (root)
        t.data = (unsigned char *)root + view->offset * (int64_t)dtype_size(dtype);
    memcpy(t.dim, view->dim, sizeof t.dim);
    memcpy(t.stride, view->stride, sizeof t.stride);
    return t;
}

typedef struct {
    const Graph *g;
    const Node *node;
    gp_tensor *in, out[MAX_OUTPUTS];
    Number *number; /* of literals, by operand */
    gp_setting setting[MAX_ARGS];
    const gp_run *run;
} Step;

static Step step_new(const Graph *g, Id node, const gp_run *run)
{
    Step s = {.g = g, .node = &g->node.at[node], .run = run};
    s.in = calloc(s.node->uses + 1, sizeof *s.in);
    s.number = calloc(s.node->uses + 1, sizeof *s.number);
    for (int i = 0; i < MAX_ARGS && s.node->op->args[i].name; i++) {
        const Attr *attr = &g->attr.at[s.node->attr + (Id)i];
        s.setting[i].number = attr->number;
        memcpy(s.setting[i].list, attr->list, sizeof s.setting[i].list);
    }
    for (Id i = 0; i < s.node->uses; i++) {
        Use use = node_use(g, s.node, i);
        if (use.value == NONE || g->value.at[use.value].kind != VALUE_LITERAL)
            continue;
        const Value *value = &g->value.at[use.value];
        View view = use_view(g, use);
        view.offset = 0;
        memset(view.stride, 0, sizeof view.stride);
        set_number(&s.number[i], value);
        s.in[i] = tensor_at(&s.number[i], (Dtype)value->dtype, &view);
    }
    return s;
}

static void step_free(Step *s)
{
    free(s->in);
    free(s->number);
}

static gp_call step_call(const Step *s)
{
    return (gp_call){.in = s->in,
                     .out = s->out,
                     .ins = (int32_t)s->node->uses,
                     .outs = (int32_t)s->node->values,
                     .key = key_of(s->node->stream),
                     .run = s->run};
}

static int step_run(const Step *s, void *work)
{
    const gp_kernel *kernel = runtime_kernel(s->node->op->name);
    assert(kernel);
    gp_call call = step_call(s);
    call.work = work;
    return kernel->run(&call, s->setting);
}

/* ---- Without a plan -------------------------------------------------------------------------- */

/* A version of state lies where the first lay; an input of a micro-batch in the whole one. */
static unsigned char *block_of(const PlainRun *run, Id value)
{
    while (run->graph->value.at[value].previous != NONE)
        value = run->graph->value.at[value].previous;
    const Value *v = &run->graph->value.at[value];
    if (v->whole != NONE)
        return run->block[v->whole] + (uint64_t)run->run.micro * value_bytes(v);
    return run->block[value];
}

static int plain_step(PlainRun *run, Id node)
{
    const Graph *g = run->graph;
    Step s = step_new(g, node, &run->run);
    for (Id i = 0; i < s.node->uses; i++) {
        Use use = node_use(g, s.node, i);
        if (use.value == NONE || s.in[i].data)
            continue;
        View view = use_view(g, use);
        s.in[i] = tensor_at(block_of(run, use.value), (Dtype)g->value.at[use.value].dtype, &view);
    }
    for (Id i = 0; i < s.node->values; i++) {
        const Value *value = &g->value.at[node_value(s.node, i)];
        View view = value_view(value);
        s.out[i] = tensor_at(block_of(run, node_value(s.node, i)), (Dtype)value->dtype, &view);
    }
    const gp_kernel *kernel = runtime_kernel(s.node->op->name);
    gp_call call = step_call(&s);
    size_t bytes = kernel && kernel->workspace ? kernel->workspace(&call, s.setting) : 0;
    void *work = bytes ? aligned_alloc(64, (bytes + 63) / 64 * 64) : NULL;
    int status = step_run(&s, work);
    free(work);
    step_free(&s);
    return status;
}

static PlainRun plain_new(const Graph *g, uint64_t seed)
{
    PlainRun run = {
        .graph = g, .block = calloc(g->value.count + 1, sizeof(unsigned char *)), .run = once};
    for (Id v = 0; v < g->value.count; v++) {
        const Value *value = &g->value.at[v];
        bool made =
            value->node != NONE || value->kind == VALUE_GRADIENT || value->kind == VALUE_OUTPUT;
        if (value->kind == VALUE_LITERAL || value->whole != NONE || (!persists(value) && !made))
            continue;
        run.block[v] = malloc(value_bytes(value));
        memset(run.block[v], POISON, value_bytes(value));
        if (persists(value))
            fill(g, v, seed, run.block[v]);
    }
    return run;
}

static void plain_program(PlainRun *run, ProgramKind program)
{
    for (Id n = 0; n < run->graph->node.count && !run->status; n++)
        if (run->graph->node.at[n].program == program)
            run->status = plain_step(run, n);
}

PlainRun plain_run(const Graph *g, uint64_t seed)
{
    PlainRun run = plain_new(g, seed);
    plain_program(&run, PROGRAM_FORWARD);
    return run;
}

void plain_free(PlainRun *run)
{
    for (size_t v = 0; v < run->graph->value.count; v++)
        free(run->block[v]);
    free(run->block);
}

/* ---- As planned ------------------------------------------------------------------------------ */

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
    unsigned char *root = b->external ? m->external[b->root] : m->arena + b->offset;
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
    void *work = o->workspace == NONE ? NULL : root_of(m, o->workspace);
    if (work)
        memset(work, POISON, m->plan->buffer[o->workspace].bytes);
    int status = m->wrong ? 0 : step_run(&s, work);
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

/* What a random op draws follows from the number of the element, so its cluster runs node by node
 * on whole tensors of its own, and is stored when all is there. */
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
        status = m->wrong ? 0 : step_run(s, NULL);
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
    return flags & OP_RANDOM ? whole_run(m, o) : loop_run(m, o);
}

/* ---- Before, during, after ------------------------------------------------------------------- */

static Machine machine_new(Arena *text, const Plan *plan, uint64_t seed)
{
    Machine m = {.plan = plan, .g = plan->graph, .text = text, .run = once};
    size_t bytes = plan->arena ? (plan->arena + 63) / 64 * 64 : 64;
    m.arena = aligned_alloc(64, bytes); /* so tight that the sanitizer sees what leaves it */
    memset(m.arena, POISON, bytes);
    m.external = calloc(plan->buffers + 1, sizeof *m.external);
    for (Id i = 0; i < plan->buffers; i++)
        if (plan->buffer[i].external && plan->buffer[i].root == i)
            m.external[i] = malloc(plan->buffer[i].bytes);
    for (Id i = 0; i < plan->buffers; i++) {
        Id value = plan->buffer[i].value;
        if (value != NONE && persists(&m.g->value.at[value]) &&
            m.g->value.at[value].previous == NONE && m.g->value.at[value].whole == NONE)
            fill(m.g, value, seed, operand_at(&m, use_of(value), i).data);
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
        if (b->root == i && !b->external && b->kind >= BUFFER_ACTIVATION && b->death == time + 1)
            poison(m, b);
    }
}

/* What no program leaves to another. */
static void poison_all(Machine *m)
{
    for (Id i = 0; i < m->plan->buffers; i++)
        if (m->plan->buffer[i].root == i && !m->plan->buffer[i].external &&
            m->plan->buffer[i].kind >= BUFFER_OUTPUT)
            poison(m, &m->plan->buffer[i]);
}

static bool same_element(Dtype dtype, const void *a, const void *b)
{
    if (memcmp(a, b, dtype_size(dtype)) == 0)
        return true;
    return dtype == F32 && isnan(*(const float *)a) && isnan(*(const float *)b);
}

static const char *compare_value(Machine *m, const PlainRun *plain, Id id, const char *name)
{
    const Value *value = &m->g->value.at[id];
    Id buffer = NONE;
    for (Id i = 0; i < m->plan->buffers; i++)
        if (m->plan->buffer[i].value == id)
            buffer = i;
    if (buffer == NONE)
        return arena_printf(m->text, "%s has no buffer", name);
    View view = value_view(value);
    gp_tensor got = operand_at(m, use_of(id), buffer);
    gp_tensor want = tensor_at(block_of(plain, id), (Dtype)value->dtype, &view);
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
            wrong = compare_value(m, plain, value, m->g->output.at[k].name);
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
            wrong = compare_value(m, plain, value, m->g->value.at[value].name);
    }
    return wrong;
}

static bool is_finite(const PlainRun *plain)
{
    for (Id v = 0; v < plain->graph->value.count; v++) {
        const Value *value = &plain->graph->value.at[v];
        if (value->kind != VALUE_PARAM && value->kind != VALUE_STATE)
            continue;
        for (int64_t i = 0; i < value_count(value); i++)
            if (!isfinite(((const float *)plain->block[v])[i]))
                return false;
    }
    return true;
}

PlainRun plain_train(const Graph *g, uint64_t seed, uint64_t steps)
{
    static const ProgramKind order[] = {PROGRAM_MICRO, PROGRAM_UPDATE, PROGRAM_FORWARD};
    PlainRun run = plain_new(g, seed);
    for (uint64_t step = 0; step <= steps; step++)
        for (int p = step < steps ? 0 : 2; p < (step < steps ? 2 : 3); p++) {
            uint32_t times = program_times(g, order[p]);
            run.run.step = step;
            run.run.micros = times > 1 ? (int32_t)times : 0;
            for (uint32_t micro = 0; micro < times; micro++) {
                run.run.micro = (int32_t)micro;
                plain_program(&run, order[p]);
            }
        }
    return run;
}

void plain_fill(const Graph *g, Id value, uint64_t seed, void *to)
{
    fill(g, value, seed, to);
}

bool plain_same(const PlainRun *run, Id value, const void *got)
{
    Dtype dtype = (Dtype)run->graph->value.at[value].dtype;
    size_t size = dtype_size(dtype);
    const unsigned char *want = block_of(run, value), *at = got;
    for (int64_t i = 0; i < value_count(&run->graph->value.at[value]); i++)
        if (!same_element(dtype, at + i * (int64_t)size, want + i * (int64_t)size))
            return false;
    return true;
}

Trained plan_trains(Arena *arena, const Plan *plan, uint64_t seed, uint64_t steps)
{
    Machine m = machine_new(arena, plan, seed);
    PlainRun plain = plain_new(plan->graph, seed);
    Trained trained = {.wrong = NULL};
    for (uint64_t step = 0; step < steps && !trained.wrong && !plain.status; step++) {
        plain.run.step = m.run.step = step;
        trained.wrong = run_both(&plain, &m, PROGRAM_MICRO);
        if (!trained.wrong && !plain.status)
            trained.wrong = run_both(&plain, &m, PROGRAM_UPDATE);
    }
    if (!trained.wrong && !plain.status)
        trained.wrong = compare_persistent(&m, &plain);
    plain.run.step = m.run.step = steps;
    if (!trained.wrong && !plain.status)
        trained.wrong = run_both(&plain, &m, PROGRAM_FORWARD);
    trained.ran = plain.status == 0;
    trained.finite = is_finite(&plain);
    plain_free(&plain);
    machine_free(&m);
    return trained;
}
