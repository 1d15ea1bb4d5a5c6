/* Runs a graph: operands through their views, ops by their names, gradients back through views. */
#include "tests/interpreter/interpreter.h"

#include <stdlib.h>
#include <string.h>

_Noreturn void stop(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "interpreter: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    exit(1);
}

void *need_memory(size_t bytes)
{
    void *memory = calloc(bytes ? bytes : 1, 1);
    if (!memory)
        stop("no memory for %zu bytes", bytes);
    return memory;
}

double *need_doubles(int64_t count)
{
    return need_memory((size_t)count * sizeof(double));
}

double run_number(const Run *r, const char *setting)
{
    return node_attr(r->g, r->node, setting)->number;
}

const int64_t *run_list(const Run *r, const char *setting)
{
    return node_attr(r->g, r->node, setting)->list;
}

int64_t run_int(const Run *r, const char *setting)
{
    return (int64_t)run_number(r, setting);
}

const Op *interpreter_op(const char *name)
{
    const Op *const families[] = {naive_attention, naive_convolution, naive_elementwise,
                                  naive_losses,    naive_norms,       naive_pooling,
                                  naive_products,  naive_shapes};
    for (size_t f = 0; f < sizeof families / sizeof *families; f++)
        for (const Op *op = families[f]; op->name; op++)
            if (strcmp(op->name, name) == 0)
                return op;
    stop("the op %s is not written here yet: add it to tests/interpreter", name);
}

/* ---- Views ----------------------------------------------------------------------------------- */

/* Calls for each row of the last axis: where its first element lies, in order. */
typedef struct {
    int64_t at[MAX_RANK], place;
} Walk;

static int64_t last_dim(const View *view)
{
    return view->rank ? view->dim[view->rank - 1] : 1;
}

static int64_t last_stride(const View *view)
{
    return view->rank ? view->stride[view->rank - 1] : 1;
}

static void next_row(const View *view, Walk *w)
{
    for (int i = view->rank - 2; i >= 0; i--) {
        w->place += view->stride[i];
        if (++w->at[i] < view->dim[i])
            return;
        w->place -= view->dim[i] * view->stride[i];
        w->at[i] = 0;
    }
}

static void gather_view(const View *view, const double *from, double *to)
{
    int64_t row = last_dim(view), stride = last_stride(view), rows = view_count(view) / row;
    Walk w = {.place = view->offset};
    for (int64_t r = 0; r < rows; r++, to += row, next_row(view, &w))
        for (int64_t i = 0; i < row; i++)
            to[i] = from[w.place + i * stride];
}

/* An element that the view shows several times gets the sum. */
static void scatter_view(const View *view, const double *from, double *to)
{
    int64_t row = last_dim(view), stride = last_stride(view), rows = view_count(view) / row;
    Walk w = {.place = view->offset};
    for (int64_t r = 0; r < rows; r++, from += row, next_row(view, &w))
        for (int64_t i = 0; i < row; i++)
            to[w.place + i * stride] += from[i];
}

/* ---- One op ---------------------------------------------------------------------------------- */

static Array array_of(int rank, const int64_t *dim)
{
    Array a = {.rank = rank, .count = 1};
    for (int i = 0; i < rank; i++)
        a.count *= a.dim[i] = dim[i];
    return a;
}

static double *value_of(const Machine *m, Id value)
{
    if (!m->value[value])
        stop("%s is read before it is computed", m->g->value.at[value].name);
    return m->value[value];
}

double *machine_read(const Machine *m, Use use)
{
    View view = use_view(m->g, use);
    double *to = need_doubles(view_count(&view));
    gather_view(&view, value_of(m, use.value), to);
    return to;
}

static bool borrowed(const Machine *m, Use use)
{
    View view = use_view(m->g, use);
    return view_is_plain(&view, &m->g->value.at[use.value]);
}

static Run begin(const Machine *m, Id node)
{
    const Node *n = &m->g->node.at[node];
    Run r = {.g = m->g, .node = node, .ins = (int)n->uses, .outs = (int)n->values};
    r.seed = m->seed;
    r.step = m->step;
    r.in = need_memory(n->uses * sizeof(Array));
    r.out = need_memory(n->values * sizeof(Array));
    for (Id i = 0; i < n->uses; i++) {
        Use use = node_use(m->g, n, i);
        if (use.value == NONE)
            continue;
        View view = use_view(m->g, use);
        r.in[i] = array_of(view.rank, view.dim);
        r.in[i].at = borrowed(m, use) ? value_of(m, use.value) : machine_read(m, use);
    }
    for (Id i = 0; i < n->values; i++) {
        const Value *value = &m->g->value.at[node_value(n, i)];
        r.out[i] = array_of(value->rank, value->dim);
        r.out[i].at = m->value[node_value(n, i)];
    }
    return r;
}

static void end(const Machine *m, Run *r)
{
    const Node *n = &m->g->node.at[r->node];
    for (Id i = 0; i < n->uses; i++)
        if (r->in[i].at && !borrowed(m, node_use(m->g, n, i)))
            free(r->in[i].at);
    free(r->in);
    free(r->out);
}

void machine_node(Machine *m, Id node)
{
    const Node *n = &m->g->node.at[node];
    const Op *op = interpreter_op(n->op->name);
    for (Id i = 0; i < n->values; i++) {
        free(m->value[node_value(n, i)]);
        m->value[node_value(n, i)] = need_doubles(value_count(&m->g->value.at[node_value(n, i)]));
    }
    Run r = begin(m, node);
    product_in_float(m->rounded);
    op->forward(&r);
    for (int i = 0; m->rounded && i < r.outs; i++)
        for (int64_t k = 0; k < r.out[i].count; k++)
            r.out[i].at[k] = (float)r.out[i].at[k];
    end(m, &r);
}

static double *gradient_of(Machine *m, Id value)
{
    if (!m->gradient[value])
        m->gradient[value] = need_doubles(value_count(&m->g->value.at[value]));
    return m->gradient[value];
}

/* Adds what the op gives its operands to the gradients of their values. */
static void spread(Machine *m, const Run *r)
{
    const Node *n = &m->g->node.at[r->node];
    for (Id i = 0; i < n->uses; i++) {
        if (!r->din[i].at)
            continue;
        Use use = node_use(m->g, n, i);
        View view = use_view(m->g, use);
        for (int64_t k = 0; m->rounded && k < r->din[i].count; k++)
            r->din[i].at[k] = (float)r->din[i].at[k];
        scatter_view(&view, r->din[i].at, gradient_of(m, use.value));
        free(r->din[i].at);
    }
}

static void node_backward(Machine *m, Id node)
{
    const Node *n = &m->g->node.at[node];
    const Op *op = interpreter_op(n->op->name);
    bool flows = false;
    for (Id i = 0; i < n->values; i++)
        flows |= m->gradient[node_value(n, i)] != NULL;
    if (!flows || !op->backward)
        return;
    Run r = begin(m, node);
    r.din = need_memory(n->uses * sizeof(Array));
    r.dout = need_memory(n->values * sizeof(Array));
    for (Id i = 0; i < n->values; i++) {
        r.dout[i] = r.out[i];
        r.dout[i].at = gradient_of(m, node_value(n, i));
    }
    for (Id i = 0; i < n->uses; i++) {
        Use use = node_use(m->g, n, i);
        r.din[i] = r.in[i];
        r.din[i].at =
            use.value != NONE && m->wanted[use.value] ? need_doubles(r.in[i].count) : NULL;
    }
    product_in_float(m->rounded);
    op->backward(&r);
    spread(m, &r);
    end(m, &r);
    free(r.din);
    free(r.dout);
}

/* ---- The whole program ----------------------------------------------------------------------- */

Machine *machine_new(const Graph *g)
{
    Machine *m = need_memory(sizeof *m);
    m->g = g;
    m->value = need_memory(g->value.count * sizeof *m->value);
    m->gradient = need_memory(g->value.count * sizeof *m->gradient);
    m->wanted = need_memory(g->value.count * sizeof *m->wanted);
    m->readers = need_memory(g->value.count * sizeof *m->readers);
    for (Id v = 0; v < g->value.count; v++) {
        const Value *value = &g->value.at[v];
        m->wanted[v] = value->kind == VALUE_PARAM && !value->frozen && value->dtype == F32 &&
                       !parameter_frozen(g, value->name);
        if (value->kind == VALUE_LITERAL)
            machine_set(m, v, &value->literal);
    }
    for (size_t n = 0; n < g->node.count; n++)
        for (Id i = 0; i < g->node.at[n].uses; i++) {
            Id value = node_use(g, &g->node.at[n], i).value;
            if (value == NONE)
                continue;
            m->readers[value]++;
            for (Id k = 0; k < g->node.at[n].values; k++)
                m->wanted[node_value(&g->node.at[n], k)] |=
                    m->wanted[value] && interpreter_op(g->node.at[n].op->name)->backward;
        }
    return m;
}

void machine_set(Machine *m, Id value, const double *from)
{
    int64_t count = value_count(&m->g->value.at[value]);
    if (!m->value[value])
        m->value[value] = need_doubles(count);
    memcpy(m->value[value], from, (size_t)count * sizeof *from);
}

void machine_forward(Machine *m)
{
    for (Id n = 0; n < m->g->node.count; n++)
        machine_node(m, n);
}

void machine_backward(Machine *m, Id loss)
{
    *gradient_of(m, loss) = 1;
    for (Id n = (Id)m->g->node.count; n-- > 0;) {
        node_backward(m, n);
        for (Id i = 0; i < m->g->node.at[n].values; i++) { /* all that read it have been here */
            Id value = node_value(&m->g->node.at[n], i);
            free(m->gradient[value]);
            m->gradient[value] = NULL;
        }
    }
}

Use output_logits(const Graph *g, const Output *output)
{
    Id n = g->value.at[output->use.value].node;
    if (n == NONE || strcmp(g->node.at[n].op->name, "softmax") != 0)
        return (Use){.value = NONE};
    return node_use(g, &g->node.at[n], 0);
}

void machine_trim(Machine *m)
{
    const Graph *g = m->g;
    bool *keep = need_memory(g->value.count);
    keep[g->train.loss.value] = true;
    for (size_t i = 0; i < g->output.count; i++) {
        Use logits = output_logits(g, &g->output.at[i]);
        keep[g->output.at[i].use.value] = true;
        if (logits.value != NONE)
            keep[logits.value] = true;
    }
    for (size_t n = 0; n < g->node.count; n++)
        for (Id i = 0; i < g->node.at[n].values && g->node.at[n].op->flags & OP_EFFECT; i++)
            keep[node_value(&g->node.at[n], i)] = true;
    for (Id v = 0; v < g->value.count; v++)
        if (!keep[v] && g->value.at[v].node != NONE) {
            free(m->value[v]);
            m->value[v] = NULL;
        }
    free(keep);
}

void machine_drop(Machine *m)
{
    for (Id v = 0; v < m->g->value.count; v++) {
        free(m->gradient[v]);
        m->gradient[v] = NULL;
        if (m->g->value.at[v].node == NONE)
            continue;
        free(m->value[v]);
        m->value[v] = NULL;
    }
}

void machine_free(Machine *m)
{
    machine_drop(m);
    for (Id v = 0; v < m->g->value.count; v++)
        free(m->value[v]);
    free(m->value);
    free(m->gradient);
    free(m->wanted);
    free(m->readers);
    free(m);
}
