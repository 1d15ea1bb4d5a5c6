/* Whether the graph of a plan is one that the ops allow, and its clusters are of that graph.
 *
 * Requires: tables in which every id names a row. Shapes, versions and what each cluster reads and
 * leaves follow from the nodes, so they are found again here from the ops' rows and compared.
 * Linear in operands.
 */
#include "planner/check_parts.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    Arena *arena;
    Graph *g; /* a copy, whose messages and scratch memory are the check's */
    const Clusters *clusters;
    const char *error;
} GraphCheck;

static bool fail(GraphCheck *v, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(GraphCheck *v, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!v->error)
        v->error = arena_vprintf(v->arena, format, args);
    va_end(args);
    return false;
}

/* ---- One node ------------------------------------------------------------------------------- */

static bool check_operands(GraphCheck *v, Id id)
{
    const Node *node = &v->g->node.at[id];
    Id tensors = 0;
    bool variadic = false;
    for (int i = 0; i < MAX_ARGS && node->op->args[i].name; i++) {
        const Arg *arg = &node->op->args[i];
        if (arg->kind != ARG_TENSOR)
            continue;
        variadic |= (arg->flags & ARG_VARIADIC) != 0;
        bool needed = !(arg->flags & (ARG_OPTIONAL | ARG_PARAM | ARG_VARIADIC));
        if (needed && (tensors >= node->uses || node_use(v->g, node, tensors).value == NONE))
            return fail(v, "%s: the operand %s of %s is missing", node->name, arg->name,
                        node->op->name);
        tensors++;
    }
    if (variadic ? node->uses == 0 : node->uses != tensors)
        return fail(v, "%s: %s does not take %u operands", node->name, node->op->name, node->uses);
    for (Id i = 0; i < node->uses; i++) {
        Id value = node_use(v->g, node, i).value;
        if (value == NONE && variadic)
            return fail(v, "%s: an operand of %s is missing", node->name, node->op->name);
        if (value == NONE)
            continue;
        const Value *read = &v->g->value.at[value];
        if ((read->kind == VALUE_RESULT || read->kind == VALUE_PREPARED) && read->node >= id)
            return fail(v, "%s reads %s, which is made later or never", node->name, read->name);
        if (read->node != NONE && read->previous == NONE && read->kind != VALUE_PREPARED &&
            v->g->node.at[read->node].program != node->program)
            return fail(v, "%s reads %s, which another program makes", node->name, read->name);
    }
    return true;
}

static bool same_dims(const View *view, const Value *value)
{
    return view->rank == value->rank &&
           memcmp(view->dim, value->dim, value->rank * sizeof *value->dim) == 0;
}

/* Operands lie as the row takes them. */
static bool check_views(GraphCheck *v, const Node *node)
{
    bool elementwise = node->op->flags & OP_ELEMENTWISE;
    for (Id i = 0; i < node->uses; i++) {
        Use use = node_use(v->g, node, i);
        if (use.value == NONE)
            continue;
        View view = use_view(v->g, use);
        if (elementwise && !same_dims(&view, &v->g->value.at[node->value]))
            return fail(v, "%s: an operand has other dims than the output", node->name);
        if (!elementwise && v->g->value.at[use.value].kind == VALUE_LITERAL)
            return fail(v, "%s: %s does not take a literal", node->name, node->op->name);
        if (!op_takes(node->op, (Dtype)v->g->value.at[use.value].dtype))
            return fail(v, "%s: %s does not take %s, a storage-only dtype", node->name,
                        node->op->name, use_text(v->g, use));
        if (!op_takes_view(node->op, i, &view))
            return fail(v, "%s: %s needs its operand %u contiguous", node->name, node->op->name, i);
    }
    return true;
}

/* What prepare makes is right until parameters are written again: it reads nothing that a program
 * changes or that a call is given, draws nothing, and cannot fail. Nobody else makes such values.
 */
static bool check_prepared(GraphCheck *v)
{
    bool *changed = ARENA_ARRAY(v->arena, bool, v->g->value.count + 1);
    for (Id i = 0; i < v->g->value.count; i++)
        if (v->g->value.at[i].previous != NONE)
            changed[check_first(v->g, i)] = changed[i] = true;
    for (Id i = 0; i < v->g->value.count; i++) {
        const Value *value = &v->g->value.at[i];
        if (value->kind == VALUE_PREPARED &&
            (value->node == NONE || changed[i] ||
             v->g->node.at[value->node].program != PROGRAM_PREPARE))
            return fail(v, "%s is not made by the program that prepares it", value->name);
    }
    for (Id i = 0; i < v->g->node.count; i++) {
        const Node *node = &v->g->node.at[i];
        const uint32_t acts = OP_RANDOM | OP_EFFECT | OP_LOOKS_UP | OP_HOST;
        if (node->program != PROGRAM_PREPARE)
            continue;
        if (node->op->flags & acts || node->op->ranks)
            return fail(v, "%s cannot be prepared", node->name);
        for (Id k = 0; k < node->uses; k++) {
            const Id id = node_use(v->g, node, k).value;
            const uint8_t kind = id == NONE ? VALUE_LITERAL : v->g->value.at[id].kind;
            if (kind == VALUE_INPUT || kind == VALUE_GRADIENT || kind == VALUE_OUTPUT ||
                (id != NONE && changed[id]))
                return fail(v, "%s is prepared from %s, which changes", node->name,
                            v->g->value.at[id].name);
        }
    }
    return true;
}

/* What the row's rule had to say. */
static const char *rule_message(const GraphCheck *v)
{
    const Message *message = diag_first(v->g->diag);
    return message ? message->text : "its rule refuses it";
}

/* A rule speaks of f32 where a result may be rounded to 16 bits: to those of an operand that is
 * so, or of an op that is itself narrow. */
static bool fits_dtype(const GraphCheck *v, const Node *node, int i, Dtype said)
{
    const OpRow *op = node->op;
    const Dtype is = (Dtype)v->g->value.at[node_value(node, (Id)i)].dtype;
    if (said == is)
        return true;
    if (said != F32 || (is != F16 && is != BF16) || !(op->flags & (OP_HALF | OP_ELEMENTWISE)) ||
        op->precision == PRECISION_WIDE || op->wide_out >> i & 1)
        return false;
    bool found = op->precision == PRECISION_NARROW;
    for (Id k = 0; k < node->uses; k++) {
        const Id value = node_use(v->g, node, k).value;
        const Dtype dtype = value == NONE ? F32 : (Dtype)v->g->value.at[value].dtype;
        found |= dtype == is;
        if ((dtype == F16 || dtype == BF16) && dtype != is)
            return false;
    }
    return found;
}

/* Kernels read lists as the rule leaves them: with a number for each axis. */
static bool check_lists(GraphCheck *v, const Node *node, const Call *c)
{
    for (int i = 0; i < MAX_ARGS && node->op->args[i].name; i++) {
        const Attr *own = &v->g->attr.at[node->attr + (Id)i];
        if (node->op->args[i].kind == ARG_INTS && own->count != c->attr[i].count)
            return fail(v, "%s: %s has %u numbers, not %u", node->name, node->op->args[i].name,
                        own->count, c->attr[i].count);
    }
    return true;
}

/* The row's own rule, asked again, declares the outputs that the file has. */
static bool check_shape(GraphCheck *v, const Node *node)
{
    Call c = {.op = node->op, .scope = node->scope, .name = node->name, .phase = node->phase};
    for (Id i = 0; i < node->uses; i++)
        call_use(v->g, &c, node_use(v->g, node, i));
    for (int i = 0; i < MAX_ARGS && node->op->args[i].name; i++)
        c.attr[i] = v->g->attr.at[node->attr + (Id)i];
    if (!node->op->shape) { /* elementwise: dims were compared */
        const Value *out = &v->g->value.at[node->value];
        c.outs = 1;
        c.out[0].rank = out->rank;
        memcpy(c.out[0].dim, out->dim, sizeof out->dim);
        c.out[0].dtype = out->dtype;
    } else if (!node->op->shape(v->g, &c)) {
        return fail(v, "%s: %s", node->name, rule_message(v));
    }
    if ((Id)c.outs != node->values)
        return fail(v, "%s: %s has %d outputs, not %u", node->name, node->op->name, c.outs,
                    node->values);
    for (Id i = 0; i < node->values; i++) {
        const Value *out = &v->g->value.at[node_value(node, i)];
        if (!fits_dtype(v, node, (int)i, (Dtype)c.out[i].dtype) || c.out[i].rank != out->rank ||
            memcmp(c.out[i].dim, out->dim, out->rank * sizeof *out->dim) != 0)
            return fail(v, "%s: %s makes %s here, not %s", node->name, node->op->name,
                        shape_text(v->arena, (Dtype)c.out[i].dtype, c.out[i].rank, c.out[i].dim),
                        shape_text(v->arena, (Dtype)out->dtype, out->rank, out->dim));
    }
    return check_lists(v, node, &c);
}

/* Elementwise rows have one dtype for all operands and the result, save where they say so. */
static bool check_dtypes(GraphCheck *v, const Node *node)
{
    Dtype common = DTYPES;
    if (!(node->op->flags & OP_ELEMENTWISE) || node->op->shape)
        return true;
    for (Id i = 0; i < node->uses; i++) {
        Use use = node_use(v->g, node, i);
        if (use.value == NONE)
            continue;
        Dtype dtype = (Dtype)v->g->value.at[use.value].dtype;
        if (dtype_is_narrow(dtype) && !(node->op->flags & OP_STORED))
            dtype = F32; /* as what it is computed */
        const char *fixed = node->op->args[i].words;
        if (fixed ? dtype_find(fixed) != dtype : common != DTYPES && common != dtype)
            return fail(v, "%s: operand %u of %s is %s", node->name, i, node->op->name,
                        dtype_name(dtype));
        if (!fixed)
            common = dtype;
    }
    Dtype wanted = node->op->flags & OP_TO_BOOL ? BOOL : common;
    const Value *out = &v->g->value.at[node->value];
    if (wanted != DTYPES && !fits_dtype(v, node, 0, wanted))
        return fail(v, "%s: %s makes %s here, not %s", node->name, node->op->name,
                    dtype_name(wanted), dtype_name((Dtype)out->dtype));
    return true;
}

/* Versions are the row's: an update makes w@1 from w@0. */
static bool check_versions(GraphCheck *v, const Node *node)
{
    for (Id i = 0; i < node->values; i++) {
        Value *out = &v->g->value.at[node_value(node, i)];
        Id updated = node_updates(v->g, node, i);
        Id previous = updated != NONE ? node_use(v->g, node, updated).value : NONE;
        if (out->previous != previous)
            return fail(v, "%s is not the next version of what the file says", out->name);
        if (previous != NONE && node_use(v->g, node, updated).view != NONE)
            return fail(v, "%s is the next version of what it reads as a view", out->name);
    }
    return true;
}

static bool check_nodes(GraphCheck *v)
{
    for (Id i = 0; i < v->g->value.count; i++) {
        const Value *value = &v->g->value.at[i];
        if (value->kind != VALUE_RESULT && value->previous != NONE)
            return fail(v, "%s is not computed by any node", value->name);
    }
    for (Id i = 0; i < v->g->node.count; i++) {
        const Node *node = &v->g->node.at[i];
        if (!check_operands(v, i) || !check_views(v, node) || !check_dtypes(v, node) ||
            !check_shape(v, node) || !check_versions(v, node))
            return false;
    }
    return true;
}

/* Where the step decides whether it counts, whoever commits something reads what was decided. */
static bool check_decided(GraphCheck *v)
{
    Id decision = NONE;
    for (Id i = 0; i < v->g->node.count; i++)
        if (v->g->node.at[i].op->flags & OP_DECIDES) {
            if (decision != NONE)
                return fail(v, "%s decides once more whether the step counts",
                            v->g->node.at[i].name);
            decision = v->g->node.at[i].value;
        }
    bool *reads_it = ARENA_ARRAY(v->arena, bool, v->g->node.count + 1);
    for (Id i = 0; i < v->g->node.count && decision != NONE; i++) {
        const Node *node = &v->g->node.at[i];
        for (Id k = 0; k < node->uses; k++)
            reads_it[i] |= node_use(v->g, node, k).value == decision;
        if (node->op->ranks) /* what it sends was made by one that reads it */
            reads_it[i] = v->g->value.at[node_use(v->g, node, 0).value].node != NONE &&
                          reads_it[v->g->value.at[node_use(v->g, node, 0).value].node];
        const bool reads = reads_it[i] || !node_commits(v->g, node);
        if (!reads)
            return fail(v, "%s updates state, whether or not the step counts", node->name);
    }
    return true;
}

/* ---- Clusters ------------------------------------------------------------------------------- */

/* Whether the node may stand in a cluster with others: in a loop, or before one. */
static bool may_join(const GraphCheck *v, const Cluster *cluster, Id k)
{
    const Id *id = &v->clusters->node[cluster->node];
    const Node *node = &v->g->node.at[id[k]], *first = &v->g->node.at[id[0]];
    const bool is_first = k == 0, is_last = k + 1 == cluster->nodes;
    if (node->op->flags & OP_EFFECT) /* a new version after a kernel that keeps sums aside */
        return is_last && node->op->flags & OP_ELEMENTWISE && first->op->flags & OP_ASIDE &&
               v->g->value.at[node->value].previous != NONE;
    return node->op->flags & OP_ELEMENTWISE ||
           (is_first && node->op->flags & (OP_EPILOGUE | OP_ASIDE));
}

/* Every node in one cluster; several only where they run as one loop, or as an epilogue. */
static bool check_members(GraphCheck *v)
{
    const Clusters *c = v->clusters;
    bool *seen = ARENA_ARRAY(v->arena, bool, v->g->node.count + 1);
    for (Id i = 0; i < c->count; i++)
        for (Id k = 0; k < c->at[i].nodes; k++) {
            Id id = c->node[c->at[i].node + k];
            const Node *node = &v->g->node.at[id];
            if (seen[id] || c->of[id] != i)
                return fail(v, "%s is in two clusters", node->name);
            seen[id] = true;
            const bool behind = k == 1 && cluster_has_epilogue(v->g, c, &c->at[i]);
            if (k && !behind && id <= c->node[c->at[i].node + k - 1])
                return fail(v, "the nodes of cluster %u are out of order", i);
            const Node *first = &v->g->node.at[c->node[c->at[i].node]];
            View view = value_view(&v->g->value.at[first->value]);
            if (c->at[i].nodes > 1 &&
                (!may_join(v, &c->at[i], k) || node->program != first->program ||
                 !same_dims(&view, &v->g->value.at[node->value])))
                return fail(v, "%s cannot run in one loop with the others of cluster %u",
                            node->name, i);
        }
    for (Id i = 0; i < v->g->node.count; i++)
        if (!seen[i])
            return fail(v, "%s is in no cluster", v->g->node.at[i].name);
    return true;
}

/* The operands are what the nodes read from outside, each once; a value made inside is read as it
 * is, since there is no memory to look at through a view. */
static bool check_reads(GraphCheck *v, Id *seen, bool *read)
{
    const Clusters *c = v->clusters;
    for (Id i = 0; i < c->count; i++) {
        Id found = 0;
        for (Id k = 0; k < c->at[i].operands; k++) {
            if (seen[c->operand[c->at[i].operand + k]] == i + 1)
                return fail(v, "cluster %u has an operand twice", i);
            seen[c->operand[c->at[i].operand + k]] = i + 1;
        }
        for (Id k = 0; k < c->at[i].nodes; k++) {
            const Node *node = &v->g->node.at[c->node[c->at[i].node + k]];
            for (Id u = 0; u < node->uses; u++) {
                Use use = node_use(v->g, node, u);
                if (use.value == NONE || v->g->value.at[use.value].kind == VALUE_LITERAL)
                    continue;
                Id maker = v->g->value.at[use.value].node;
                bool inside = maker != NONE && c->of[maker] == i;
                if (inside && use.view != NONE)
                    return fail(v, "%s takes a view of a value that its own loop makes",
                                node->name);
                if (inside)
                    continue;
                if (seen[use.value] != i + 1 && !read[use.value])
                    return fail(v, "%s reads %s, which is not an operand of cluster %u", node->name,
                                v->g->value.at[use.value].name, i);
                found += seen[use.value] == i + 1;
                seen[use.value] = 0;
                read[use.value] = true;
            }
        }
        for (Id k = 0; k < c->at[i].operands; k++)
            read[c->operand[c->at[i].operand + k]] = false;
        if (found != c->at[i].operands)
            return fail(v, "cluster %u has an operand that it does not read", i);
    }
    return true;
}

/* The results are what others read, outputs, and new versions: no more, no less. */
static bool check_results(GraphCheck *v)
{
    const Clusters *c = v->clusters;
    bool *wanted = ARENA_ARRAY(v->arena, bool, v->g->value.count + 1);
    for (Id i = 0; i < c->count; i++)
        for (Id k = 0; k < c->at[i].operands; k++)
            wanted[c->operand[c->at[i].operand + k]] = true;
    for (size_t i = 0; i < v->g->output.count; i++)
        wanted[v->g->output.at[i].use.value] = true;
    for (size_t i = 0; i < v->g->output.count; i++)
        if (v->g->value.at[v->g->output.at[i].use.value].node == NONE)
            return fail(v, "no program makes the output %s", v->g->output.at[i].name);
    for (Id i = 0; i < v->g->value.count; i++)
        wanted[i] =
            (wanted[i] || v->g->value.at[i].previous != NONE) && v->g->value.at[i].node != NONE;
    for (Id i = 0; i < c->count; i++)
        for (Id k = 0; k < c->at[i].results; k++) {
            Id value = c->result[c->at[i].result + k];
            if (v->g->value.at[value].node == NONE || c->of[v->g->value.at[value].node] != i)
                return fail(v, "cluster %u does not make %s", i, v->g->value.at[value].name);
            if (!wanted[value])
                return fail(v, "cluster %u has the output %s twice, or nothing reads it", i,
                            v->g->value.at[value].name);
            wanted[value] = false;
        }
    for (Id i = 0; i < v->g->value.count; i++)
        if (wanted[i])
            return fail(v, "%s is read, but is not an output of any cluster",
                        v->g->value.at[i].name);
    return true;
}

const char *check_graph(Arena *arena, const Graph *g, const Clusters *clusters)
{
    Graph copy = *g;
    GraphCheck v = {.arena = arena, .g = &copy, .clusters = clusters};
    copy.arena = arena;
    copy.diag = diag_new(arena, NULL, false);
    Id *seen = ARENA_ARRAY(arena, Id, copy.value.count + 1);
    bool *read = ARENA_ARRAY(arena, bool, copy.value.count + 1);
    (void)(check_nodes(&v) && check_prepared(&v) && check_decided(&v) && check_members(&v) &&
           check_reads(&v, seen, read) && check_results(&v));
    return v.error;
}
