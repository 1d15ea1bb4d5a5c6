/* A cluster of one kernel, or of one with an epilogue: a function that describes the operands and
 * calls it. */
#include "codegen/internal.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

enum {
    MAX_DENSE = 4,  /* rank up to which call.h has a macro */
    MAX_NAMED = 16, /* operands that a function takes one by one */
};

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

/* As the macros of call.h have it: also where an axis has one element. */
static bool is_dense(const View *view)
{
    int64_t stride = 1;
    for (int i = view->rank; i-- > 0; stride *= view->dim[i])
        if (view->stride[i] != stride)
            return false;
    return view->rank <= MAX_DENSE;
}

static void write_dims(Out *o, int count, const int64_t *number, CallShape *shape)
{
    out(o, "{");
    for (int i = 0; i < count; i++)
        out(o, "%s%s", i ? ", " : "", shape_number(o->arena, shape, number[i]));
    out(o, count ? "}" : "0}");
}

const char *tensor_initializer(Arena *arena, const char *name, Dtype dtype, const View *view,
                               CallShape *shape)
{
    Out o = out_new(arena);
    if (is_dense(view)) {
        out(&o, "GP_DENSE_%d(%s, GP_%s", view->rank, name, dtype_row(dtype)->id);
        for (int i = 0; i < view->rank; i++)
            out(&o, ", %s", shape_number(arena, shape, view->dim[i]));
        out(&o, ")");
        return o.at;
    }
    out(&o, "{(void *)%s, GP_%s, %d, ", name, dtype_row(dtype)->id, view->rank);
    write_dims(&o, view->rank, view->dim, shape);
    out(&o, ", ");
    write_dims(&o, view->rank, view->stride, shape);
    out(&o, "}");
    return o.at;
}

/* Names of parameters: those of the row's arguments, where C and this file leave them free. */
typedef struct {
    Names names;
    const char *operand[MAX_NAMED]; /* what the first of them are called */
    Address place[MAX_NAMED];       /* and where they lie */
    Out parameters;
    Items in, out;
    CallShape in_shape, out_shape, epilogue_shape;
    int64_t count; /* of operands that are lists of numbers: an argument; 0: their dims matter */
} Parts;

static void add_tensor(Emission *e, Parts *p, Items *to, const char *name, Dtype dtype,
                       const View *view)
{
    CallShape *shape = to == &p->in ? &p->in_shape : &p->out_shape;
    bool list = p->count && dtype == F32 && view->rank && view_is_dense(view) &&
                view_count(view) == p->count;
    ARRAY_PUSH(e->arena, to,
               list ? arena_printf(e->arena, "GP_DENSE_1(%s, GP_F32, count)", name)
                    : tensor_initializer(e->arena, name, dtype, view, shape));
}

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
        ARRAY_PUSH(e->arena, &p->in, "{0}");
        return;
    }
    const Value *value = &g->value.at[use.value];
    const char *name = operand_name(p, node, i);
    assert(value->kind != VALUE_LITERAL); /* kernels get a copy of one */
    Id buffer = access_buffer(e->plan, o, use.value, i);
    View view = access_view(e->plan, use, buffer);
    out(&p->parameters, ", const %s *%s", dtype_row((Dtype)value->dtype)->type, name);
    Address address = access_address(e->api, buffer, &view);
    address.role = name;
    emission_address(e, address);
    if (i < MAX_NAMED) {
        p->operand[i] = name;
        p->place[i] = address;
    }
    add_tensor(e, p, &p->in, name, (Dtype)value->dtype, &view);
}

/* The operand whose next version an output is, where it lies in the same place; else NULL. */
static const char *updated_operand(const Emission *e, const Node *node, Id i, Id buffer,
                                   const View *view, const Parts *p)
{
    const Id operand = node_updates(e->plan->graph, node, i);
    if (operand >= MAX_NAMED || !p->operand[operand]) /* NONE too */
        return NULL;
    const Address to = access_address(e->api, buffer, view), *from = &p->place[operand];
    return to.kind == from->kind && to.slot == from->slot && to.offset == from->offset &&
                   to.micro_stride == from->micro_stride
               ? p->operand[operand]
               : NULL;
}

static const char *output_key(Arena *arena, const Node *node, Id i)
{
    return arena_printf(arena, "%s %u", node->op->name, i);
}

/* An output that nobody reads: NULL, for this call where others store theirs. */
static void write_unread(Emission *e, const Node *node, Id i, const char *name, Parts *p)
{
    const Value *value = &e->plan->graph->value.at[node_value(node, i)];
    const View view = value_view(value);
    const bool given = names_find(e->stored, output_key(e->arena, node, i)) != NONE;
    add_tensor(e, p, &p->out, given ? name : "NULL", (Dtype)value->dtype, &view);
    if (!given)
        return;
    out(&p->parameters, ", %s *%s", dtype_row((Dtype)value->dtype)->type, name);
    emission_address(e, (Address){AT_NOWHERE, NONE, 0, 0, NONE, name, false});
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
    const char *name = i == 0 ? "y" : arena_printf(e->arena, "y_%u", i);
    if (buffer == NONE) {
        write_unread(e, node, i, name_claim(&p->names, name), p);
        return;
    }
    View view = access_view(e->plan, use_of(id), buffer);
    const char *updated = updated_operand(e, node, i, buffer, &view, p);
    if (updated) { /* in place: that is the parameter */
        add_tensor(e, p, &p->out, updated, (Dtype)value->dtype, &view);
        return;
    }
    name = name_claim(&p->names, name);
    out(&p->parameters, ", %s *%s", dtype_row((Dtype)value->dtype)->type, name);
    Address address = access_address(e->api, buffer, &view);
    address.role = name;
    emission_address(e, address);
    add_tensor(e, p, &p->out, name, (Dtype)value->dtype, &view);
}

const char *kernel_file(const Emission *e, const OpRow *op)
{
    return arena_printf(e->arena, e->dialect->kernel, op->kernel ? op->kernel : op->name);
}

/* Many lists of numbers are read from a table, so that the function need not name each. */
static bool has_list(const Emission *e, const Occurrence *o, const Node *node)
{
    if (!(node->op->flags & OP_FLAT) || node->uses <= MAX_NAMED)
        return false;
    for (Id i = 0; i < node->uses; i++) {
        Use use = node_use(e->plan->graph, node, i);
        Id buffer = access_buffer(e->plan, o, use.value, i);
        View view = access_view(e->plan, use, buffer);
        Address a = access_address(e->api, buffer, &view);
        const uint8_t dtype = e->plan->graph->value.at[use.value].dtype;
        if (!view_is_dense(&view) || a.kind != AT_ARENA || a.micro_stride ||
            (dtype != F32 && dtype != I32))
            return false;
    }
    return true;
}

static void write_list(Emission *e, const Occurrence *o, const Node *node, Out *text)
{
    TableRows rows = {.arena = e->arena, .macro = "OPERANDS", .indent = "        "};
    uint64_t *offset = ARENA_ARRAY(e->arena, uint64_t, node->uses);
    uint64_t *count = ARENA_ARRAY(e->arena, uint64_t, node->uses);
    Out table = out_new(e->arena);
    for (Id i = 0; i < node->uses; i++) {
        Use use = node_use(e->plan->graph, node, i);
        Id buffer = access_buffer(e->plan, o, use.value, i);
        View view = access_view(e->plan, use, buffer);
        offset[i] = access_address(e->api, buffer, &view).offset;
        count[i] = (uint64_t)view_count(&view);
        rows_add(&rows, "{" ROW_NUMBER "%llu, %llu}", (unsigned long long)offset[i],
                 (unsigned long long)count[i]);
    }
    rows_write(&rows, &table,
               arena_printf(e->arena,
                            "    static const struct {\n"
                            "        uint64_t at;\n"
                            "        int64_t count;\n"
                            "    } operand[%u] = {\n",
                            node->uses),
               "    };\n");
    out(text,
        "%s    gp_tensor in[%u];\n"
        "    for (int i = 0; i < %u; i++)\n"
        "        in[i] = gp_list(arena + operand[i].at, operand[i].count);\n",
        table.at, node->uses, node->uses);
    e->table = table.at;
    e->list = (LoopTable){.times = node->uses};
    ARRAY_PUSH(e->arena, &e->list.column, ((LoopColumn){"at", offset, true}));
    ARRAY_PUSH(e->arena, &e->list.column, ((LoopColumn){"count", count, false}));
}

void kernel_stores(Emission *e, const Occurrence *o)
{
    const Clusters *clusters = e->plan->clusters;
    const Cluster *c = &clusters->at[o->cluster];
    const Node *node = &e->plan->graph->node.at[clusters->node[c->node]];
    if (!e->stored)
        e->stored = names_new(e->arena);
    for (Id i = 1; i < node->values; i++) /* the first one is what an op is for */
        if (access_buffer(e->plan, o, node_value(node, i), 0) != NONE)
            *names_at(e->stored, output_key(e->arena, node, i)) = 1;
}

/* Numbers of the operands that differ from call to call become arguments. */
static const char *take_numbers(Emission *e, const Occurrence *o, const Node *node, Parts *p,
                                const char *epilogue)
{
    Out key = out_new(e->arena);
    CallShape shape = p->in_shape;
    size_t next = 0;
    out(&key, "%s %llx", p->parameters.at ? p->parameters.at : "", (unsigned long long)e->epilogue);
    for (size_t i = 0; i < p->in.count; i++)
        out(&key, "\n%s", p->in.at[i]);
    out(&key, "\n");
    for (size_t i = 0; i < p->out.count; i++)
        out(&key, "\n%s", p->out.at[i]);
    e->dialect->call(e, o, node, NULL, &key);
    for (size_t i = 0; i < p->out_shape.number.count; i++)
        ARRAY_PUSH(e->arena, &shape.number, p->out_shape.number.at[i]);
    for (size_t i = 0; i < p->epilogue_shape.number.count; i++)
        ARRAY_PUSH(e->arena, &shape.number, p->epilogue_shape.number.at[i]);
    if (e->notes)
        shapes_note(e, key.at, &shape);
    shapes_choose(e, key.at, &shape);
    for (size_t i = 0; i < p->in.count; i++)
        p->in.at[i] = shape_fill(e->arena, &shape, &next, p->in.at[i]);
    for (size_t i = 0; i < p->out.count; i++)
        p->out.at[i] = shape_fill(e->arena, &shape, &next, p->out.at[i]);
    for (size_t i = 0; i < shape.arguments; i++) {
        const char *name = arena_printf(e->arena, "n%zu", i + 1);
        out(&p->parameters, ", int64_t %s", name);
        emission_address(
            e, (Address){AT_NUMBER, NONE, (uint64_t)shape.argument[i], 0, NONE, name, false});
    }
    for (size_t i = next; i < shape.number.count; i++)
        if (isdigit((unsigned char)shape.text[i][0])) /* the epilogue wants its address */
            shape.text[i] = arena_printf(e->arena, "(const int64_t){%s}", shape.text[i]);
    return epilogue ? shape_fill(e->arena, &shape, &next, epilogue) : NULL;
}

void kernel_write(Emission *e, const Occurrence *o, Out *text)
{
    const Graph *g = e->plan->graph;
    const Cluster *c = &e->plan->clusters->at[o->cluster];
    const Node *node = &g->node.at[e->plan->clusters->node[c->node]];
    Parts p = {.names = {.arena = e->arena}, .parameters = out_new(e->arena)};
    static const char *const ours[] = {"run",  "work", "key",  "in",    "out",
                                       "attr", "call", "args", "count", "arena"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        name_claim(&p.names, ours[i]);
    emission_need(e, kernel_file(e, node->op));
    emission_need(e, "c/call.h");
    const bool list = has_list(e, o, node);
    if (list) {
        out(&p.parameters, ", unsigned char *arena");
        emission_address(e, (Address){AT_WHOLE_ARENA, NONE, 0, 0, NONE, NULL, false});
    } else if (node->op->flags & OP_FLAT) {
        const View first = use_view(g, node_use(g, node, 0));
        const bool real = g->value.at[node_use(g, node, 0).value].dtype == F32;
        if (first.rank && real) /* one number is no list */
            p.count = view_count(&first);
    }
    for (Id i = 0; i < node->uses && !list; i++)
        write_operand(e, o, node, i, &p);
    const char *epilogue = NULL;
    e->epilogue = 0;
    e->table = NULL;
    if (cluster_has_epilogue(g, e->plan->clusters, c))
        epilogue = loop_epilogue(e, o, &p.parameters, &p.epilogue_shape);
    for (Id i = 0; i < node->values; i++)
        write_output(e, o, node, i, &p);
    if (o->workspace != NONE) {
        out(&p.parameters, ", void *work");
        emission_address(e, access_address(e->api, o->workspace, NULL));
    }
    if (node->op->flags & OP_RANDOM) {
        out(&p.parameters, ", uint64_t key");
        emission_address(e,
                         (Address){AT_NUMBER, NONE, key_of(node->stream), 0, NONE, "key", false});
    }
    if (p.count) {
        out(&p.parameters, ", int64_t count");
        emission_address(e, (Address){AT_NUMBER, NONE, (uint64_t)p.count, 0, NONE, "count", false});
    }
    epilogue = take_numbers(e, o, node, &p, epilogue);
    out(text, "(const gp_run *run%s)\n{\n", p.parameters.at);
    if (list)
        write_list(e, o, node, text);
    else if (node->uses)
        out_list(text, "    const gp_tensor in[] = {", &p.in, "};\n", 0);
    out_list(text, "    const gp_tensor out[] = {", &p.out, "};\n", 0);
    e->dialect->call(e, o, node, epilogue, text);
    out(text, "}\n");
}
