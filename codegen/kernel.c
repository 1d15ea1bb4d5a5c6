/* A cluster of one kernel, or of one with an epilogue: a function that describes the operands and
 * calls it. */
#include "codegen/internal.h"

#include <assert.h>
#include <string.h>

static void write_numbers(Out *o, int count, const int64_t *number)
{
    out(o, "{");
    for (int i = 0; i < count; i++)
        out(o, "%s%lld", i ? ", " : "", (long long)number[i]);
    out(o, count ? "}" : "0}");
}

static void write_setting(Out *o, const Arg *arg, const Attr *attr)
{
    out(o, " = ");
    if (arg->kind == ARG_FLOAT)
        out_number(o, attr->number);
    else if (arg->kind == ARG_INTS)
        write_numbers(o, arg->count, attr->list);
    else
        out(o, "%lld", (long long)attr->number);
}

void kernel_settings(const Graph *g, const Node *node, const KernelSyntax *syntax, Out *o)
{
    bool first = true;
    for (int i = 0; i < MAX_ARGS && node->op->args[i].name; i++) {
        const Arg *arg = &node->op->args[i];
        const Attr *attr = &g->attr.at[node->attr + (Id)i];
        if (!arg_is_setting(arg))
            continue;
        if (first)
            out(o, syntax->open, node->op->name);
        int numbers = arg->kind == ARG_INTS && !syntax->lists ? arg->count : 1;
        for (int k = 0; k < numbers; k++) {
            out(o, "%s%s%s", first ? "" : syntax->between, syntax->before, arg->name);
            first = false;
            if (arg->kind == ARG_INTS && !syntax->lists)
                out(o, "[%d] = %lld", k, (long long)attr->list[k]);
            else
                write_setting(o, arg, attr);
        }
    }
    if (!first)
        out(o, "%s", syntax->close);
}

static void write_tensor(Out *o, const char *name, Dtype dtype, const View *view)
{
    out(o, "        {(void *)%s, GP_%s, %d, ", name, dtype_row(dtype)->id, view->rank);
    write_numbers(o, view->rank, view->dim);
    out(o, ", ");
    write_numbers(o, view->rank, view->stride);
    out(o, "},\n");
}

/* Names of parameters: those of the row's arguments, where C and this file leave them free. */
typedef struct {
    Names names;
    Out parameters, tensors;
} Parts;

static const char *operand_name(Parts *p, const Node *node, Id i)
{
    Id operand = 0;
    for (int k = 0; k < MAX_ARGS && node->op->args[k].name; k++) {
        const Arg *arg = &node->op->args[k];
        if (arg->kind != ARG_TENSOR)
            continue;
        if (arg->flags & ARG_VARIADIC)
            return name_claim(&p->names, arena_printf(p->names.arena, "%s%u", arg->name, i));
        if (operand++ == i)
            return name_claim(&p->names, arg->name);
    }
    return name_claim(&p->names, "x");
}

static void write_operand(Emission *e, const Occurrence *o, const Node *node, Id i, Parts *p)
{
    const Graph *g = e->plan->graph;
    Use use = node_use(g, node, i);
    if (use.value == NONE) {
        out(&p->tensors, "        {0},\n");
        return;
    }
    const Value *value = &g->value.at[use.value];
    const char *name = operand_name(p, node, i);
    assert(value->kind != VALUE_LITERAL); /* kernels get a copy of one */
    Id buffer = access_buffer(e->plan, o, use.value, i);
    View view = access_view(e->plan, use, buffer);
    out(&p->parameters, ", const %s *%s", dtype_row((Dtype)value->dtype)->type, name);
    emission_address(e, access_address(e->api, buffer, &view));
    write_tensor(&p->tensors, name, (Dtype)value->dtype, &view);
}

static void write_output(Emission *e, const Occurrence *o, const Node *node, Id i, Parts *p)
{
    const Clusters *clusters = e->plan->clusters;
    const Cluster *c = &clusters->at[o->cluster];
    const bool epilogue =
        cluster_has_epilogue(e->plan->graph, clusters, c); /* what that makes lies there */
    Id id = epilogue ? clusters->result[c->result] : node_value(node, i),
       buffer = access_buffer(e->plan, o, id, 0);
    const Value *value = &e->plan->graph->value.at[id];
    if (buffer == NONE) { /* nobody reads it */
        View view = value_view(value);
        write_tensor(&p->tensors, "0", (Dtype)value->dtype, &view);
        return;
    }
    View view = access_view(e->plan, use_of(id), buffer);
    const char *name = name_claim(&p->names, i == 0 ? "y" : arena_printf(e->arena, "y_%u", i));
    out(&p->parameters, ", %s *%s", dtype_row((Dtype)value->dtype)->type, name);
    emission_address(e, access_address(e->api, buffer, &view));
    write_tensor(&p->tensors, name, (Dtype)value->dtype, &view);
}

const char *kernel_file(const Emission *e, const OpRow *op)
{
    return arena_printf(e->arena, e->dialect->kernel, op->kernel ? op->kernel : op->name);
}

void kernel_write(Emission *e, const Occurrence *o, Out *text)
{
    const Graph *g = e->plan->graph;
    const Cluster *c = &e->plan->clusters->at[o->cluster];
    const Node *node = &g->node.at[e->plan->clusters->node[c->node]];
    Parts p = {.names = {.arena = e->arena},
               .parameters = out_new(e->arena),
               .tensors = out_new(e->arena)};
    static const char *const ours[] = {"run", "work", "key", "in", "out", "attr", "call", "args"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        name_claim(&p.names, ours[i]);
    emission_need(e, kernel_file(e, node->op));
    if (node->uses)
        out(&p.tensors, "    const gp_tensor in[] = {\n");
    for (Id i = 0; i < node->uses; i++)
        write_operand(e, o, node, i, &p);
    out(&p.tensors, "%s    const gp_tensor out[] = {\n", node->uses ? "    };\n" : "");
    for (Id i = 0; i < node->values; i++)
        write_output(e, o, node, i, &p);
    if (o->workspace != NONE) {
        out(&p.parameters, ", void *work");
        emission_address(e, access_address(e->api, o->workspace, NULL));
    }
    if (node->op->flags & OP_RANDOM) {
        out(&p.parameters, ", uint64_t key");
        emission_address(e, (Address){AT_NUMBER, NONE, key_of(node->stream), 0});
    }
    out(&p.tensors, "    };\n");
    const char *epilogue = NULL;
    if (cluster_has_epilogue(g, e->plan->clusters, c))
        epilogue = loop_epilogue(e, o, &p.parameters, &p.tensors);
    out(text, "(const gp_run *run%s)\n{\n%s", p.parameters.at, p.tensors.at);
    e->dialect->call(e, o, node, epilogue, text);
    out(text, "}\n");
}
