/* Whether the samples of a batch are independent, so that a program can run in micro-batches.
 *
 * Requires: a program lowered for one micro-batch. The model is lowered once more for the
 * whole batch, apart, and the two are compared node by node: an axis that is longer there is the
 * batch. So no row has to say how the batch passes through it; only ops that keep the axis and
 * still mix along it are known by their `axis` or by OP_COUPLES. Linear in nodes and operands.
 */
#include "frontend/lower.h"

#include <string.h>

/* A mean that the model wrote out counts as a loss's own: a sum of shares. A loss that nothing
 * computes, a parameter, becomes a node's. */
static bool share_mean(Graph *g)
{
    Id id = g->value.at[g->train.loss.value].node;
    if (id == NONE) {
        Call from = {.place = g->train.place, .name = "loss"};
        g->train.loss = call_op(g, &from, "copy", 1, &g->train.loss);
    } else if (strcmp(g->node.at[id].op->name, "mean") == 0) {
        Call at = call_at(g, id);
        Use operand = node_use(g, &g->node.at[id], 0);
        g->train.loss = call_op(g, &at, "loss_mean", 1, &operand);
    }
    return g->train.loss.value != NONE;
}

bool lower_loss_shared(Graph *g, const Ast *ast, Define *define, size_t defines)
{
    if (!lower_into(g, ast, define, defines) || !share_mean(g))
        return false;
    if (g->sliced)
        slice_losses(g);
    return true;
}

typedef struct {
    Graph *micro, *whole;
    uint32_t times;
    bool *share; /* by value of micro: part of a sum over all micro-batches */
} Samples;

/* The axis along which the two differ by the number of micro-batches; -1: none, -2: otherwise. */
static int batch_axis(const Samples *s, int rank, const int64_t *micro, int whole_rank,
                      const int64_t *whole)
{
    int axis = -1;
    if (rank != whole_rank)
        return -2;
    for (int i = 0; i < rank; i++) {
        if (micro[i] == whole[i])
            continue;
        if (axis >= 0 || micro[i] * s->times != whole[i])
            return -2;
        axis = i;
    }
    return axis;
}

static int value_axis(const Samples *s, Id micro, Id whole)
{
    const Value *m = &s->micro->value.at[micro], *w = &s->whole->value.at[whole];
    return batch_axis(s, m->rank, m->dim, w->rank, w->dim);
}

static bool mixes(const Samples *s, const Node *node, const char *why)
{
    diag_error(s->micro->diag, node->place, "%s %s, so a step cannot run in %u micro-batches",
               node->op->name, why, s->times);
    if (node->op->flags & OP_COUPLES)
        diag_hint(s->micro->diag, "over = micro takes the statistics of each micro-batch");
    return false;
}

/* The axis of the batch in an operand as the node sees it. */
static bool operand_axis(const Samples *s, const Node *node, Use micro, Use whole, int *axis)
{
    const Value *m = &s->micro->value.at[micro.value], *w = &s->whole->value.at[whole.value];
    if (m->kind == VALUE_LITERAL) {
        *axis = -1;
        return m->literal == w->literal || mixes(s, node, "uses the size of the batch as a number");
    }
    View mv = use_view(s->micro, micro), wv = use_view(s->whole, whole);
    *axis = batch_axis(s, mv.rank, mv.dim, wv.rank, wv.dim);
    if (*axis >= 0 && mv.stride[*axis] < 0)
        return mixes(s, node, "turns the batch round");
    if (*axis == -2 || (*axis == -1 && value_axis(s, micro.value, whole.value) >= 0))
        return mixes(s, node, "takes some samples apart from the others");
    return true;
}

/* The mean of a loss: shares, which know of micro-batches, summed up. */
static bool sums_shares(const Graph *g, const Node *node)
{
    Id from = g->value.at[node_use(g, node, 0).value].node;
    return strcmp(node->op->name, "sum") == 0 && from != NONE &&
           strcmp(g->node.at[from].op->name, "loss_share") == 0;
}

/* Shares of a loss stay shares where they are added up or multiplied by what is the same for all
 * micro-batches. Anything else would not be the loss of the whole batch. */
static bool check_shares(const Samples *s, const Node *node, bool batch)
{
    const char *op = node->op->name;
    Id shares = 0, operands = 0;
    for (Id i = 0; i < node->uses; i++) {
        Id value = node_use(s->micro, node, i).value;
        operands += value != NONE;
        shares += value != NONE && s->share[value];
    }
    if (shares == 0)
        return true;
    bool first = s->share[node_use(s->micro, node, 0).value];
    if (strcmp(op, "add") == 0 || strcmp(op, "sub") == 0) {
        if (shares < operands) {
            mixes(s, node, "adds what is no loss of a sample");
            diag_hint(s->micro->diag, "it would count once for each micro-batch");
            return false;
        }
    } else if (batch || shares > 1 ||
               !(strcmp(op, "mul") == 0 || strcmp(op, "neg") == 0 || strcmp(op, "copy") == 0 ||
                 (strcmp(op, "div") == 0 && first))) {
        return mixes(s, node, "is not linear in the loss of the samples");
    }
    s->share[node->value] = true;
    return true;
}

/* Random numbers follow the element's place in the whole batch. */
static void place_draws(const Samples *s, const Node *node, int axis)
{
    int parts = op_arg(node->op, "parts"), span = op_arg(node->op, "span");
    const Value *value = &s->micro->value.at[node->value];
    int64_t before = 1, from = 1;
    if (!(node->op->flags & OP_RANDOM) || parts < 0 || span < 0 || axis < 0)
        return;
    for (int i = 0; i < value->rank; i++)
        *(i < axis ? &before : &from) *= value->dim[i];
    Attr *attr = &s->micro->attr.at[node->attr];
    attr[parts].number = (double)before;
    attr[parts].list[0] = before;
    attr[span].number = (double)from;
    attr[span].list[0] = from;
}

static bool check_node(const Samples *s, const Node *micro, const Node *whole)
{
    bool batch = false, kept = false;
    int along = op_arg(micro->op, "axis"), over = op_arg(micro->op, "over");
    if (micro->op != whole->op || micro->uses != whole->uses)
        return mixes(s, micro, "is there for one size of the batch only");
    for (Id i = 0; i < micro->uses; i++) {
        Use m = node_use(s->micro, micro, i), w = node_use(s->whole, whole, i);
        int axis = -1;
        if (m.value != NONE && !operand_axis(s, micro, m, w, &axis))
            return false;
        batch |= axis >= 0;
        if (axis >= 0 && along >= 0 && !(micro->op->args[along].flags & ARG_FRONT) &&
            (i == 0 || micro->op->args[0].flags & ARG_VARIADIC) &&
            s->micro->attr.at[micro->attr + (Id)along].list[0] == axis)
            return mixes(s, micro, "works along the batch");
    }
    for (Id i = 0; i < micro->values; i++)
        kept |= value_axis(s, node_value(micro, i), node_value(whole, i)) >= 0;
    if (batch && micro->op->flags & OP_COUPLES &&
        s->micro->attr.at[micro->attr + (Id)over].number == 0)
        return mixes(s, micro, "takes statistics over the whole batch");
    if (batch && !kept && !sums_shares(s->micro, micro))
        return mixes(s, micro, "makes one value of all samples");
    s->share[micro->value] = batch && !kept;
    place_draws(s, micro, value_axis(s, micro->value, whole->value));
    return check_shares(s, micro, batch);
}

/* By node: an output of the forward program, the loss of another, or an effect depends on it. */
static bool *find_needed(const Graph *g, size_t first)
{
    bool *needed = ARENA_ARRAY(g->arena, bool, g->node.count);
    for (size_t i = 0; i < g->output.count && g->program == PROGRAM_FORWARD; i++)
        needed[g->value.at[g->output.at[i].use.value].node] = true;
    if (g->program != PROGRAM_FORWARD)
        needed[g->value.at[g->train.loss.value].node] = true;
    for (size_t n = g->node.count; n-- > first;) {
        const Node *node = &g->node.at[n];
        needed[n] |= (node->op->flags & OP_EFFECT) != 0;
        for (Id i = 0; i < node->uses && needed[n]; i++) {
            Id value = node_use(g, node, i).value;
            if (value != NONE && g->value.at[value].node != NONE)
                needed[g->value.at[value].node] = true;
        }
    }
    return needed;
}

/* The program at hand, for the whole batch, apart. */
static bool lower_whole(Samples *s, const Ast *ast, Define *define, size_t defines)
{
    const Graph *g = s->micro;
    s->whole = graph_new(g->arena, g->diag, g->source);
    s->share = ARENA_ARRAY(g->arena, bool, g->value.count);
    graph_program(s->whole, g->program, g->training);
    s->whole->sliced = g->sliced;
    return g->program == PROGRAM_FORWARD ? lower_into(s->whole, ast, define, defines)
                                         : lower_loss_shared(s->whole, ast, define, defines);
}

static size_t list_needed(const Graph *g, size_t first, Id *list)
{
    const bool *needed = find_needed(g, first);
    size_t count = 0;
    for (size_t n = first; n < g->node.count; n++)
        if (needed[n])
            list[count++] = (Id)n;
    return count;
}

/* What nobody needs may differ: a copy that a batch of one can do without. */
static bool check_nodes(Samples *s, size_t first)
{
    const Graph *g = s->micro, *w = s->whole;
    Id *micro = ARENA_ARRAY(g->arena, Id, g->node.count);
    Id *whole = ARENA_ARRAY(g->arena, Id, w->node.count);
    size_t count = list_needed(g, first, micro);
    if (list_needed(w, 0, whole) != count)
        return diag_error(g->diag, g->train.place,
                          "the model is another one for a batch divided by %u", s->times);
    for (size_t i = 0; i < count; i++)
        if (!check_node(s, &g->node.at[micro[i]], &w->node.at[whole[i]]))
            return false;
    return true;
}

bool samples_check(Graph *g, const Ast *ast, Define *define, size_t defines, uint32_t times,
                   size_t first)
{
    Samples s = {.micro = g, .times = times};
    if (!lower_whole(&s, ast, define, defines) || !check_nodes(&s, first))
        return false;
    const Node *loss = &g->node.at[g->value.at[g->train.loss.value].node];
    return s.share[g->train.loss.value] ||
           mixes(&s, loss, "makes a loss that is no mean of samples");
}

/* ---- Forward -------------------------------------------------------------------------------- */

/* The axis of the batch in an output; -1: none, -2: it cannot be collected. */
static int output_axis(const Samples *s, size_t i)
{
    Use micro = s->micro->output.at[i].use, whole = s->whole->output.at[i].use;
    View m = use_view(s->micro, micro), w = use_view(s->whole, whole);
    return s->share[micro.value] ? -2 : batch_axis(s, m.rank, m.dim, w.rank, w.dim);
}

/* What micro-batches make of an output, in the output of the whole batch. One without a batch is
 * the same in each of them. */
static void collect(const Samples *s, size_t i)
{
    Graph *g = s->micro;
    Output *output = &g->output.at[i];
    View whole = use_view(s->whole, s->whole->output.at[i].use);
    int axis = output_axis(s, i);
    if (axis < 0)
        return;
    Call from = {.place = output->place, .name = output->name};
    Call c = call_begin(g, &from, "collect");
    call_use(g, &c,
             use_of(graph_value(g, VALUE_OUTPUT, output->name,
                                (Dtype)g->value.at[output->use.value].dtype, whole.rank, whole.dim,
                                output->place)));
    call_use(g, &c, output->use);
    call_set(&c, "axis", axis);
    call_finish(g, &c);
    output->use = c.result.at[0];
}

static void drop_nodes(Graph *g, size_t first)
{
    for (size_t v = 0; v < g->value.count; v++)
        if (g->value.at[v].node != NONE && g->value.at[v].node >= first)
            g->value.at[v].node = NONE;
    g->node.count = first;
}

bool samples_forward(Graph *g, const Ast *ast, Define *define, size_t defines, Define *divided,
                     size_t divideds, uint32_t times)
{
    Samples s = {.micro = g, .times = times};
    size_t first = g->node.count;
    Diag *diag = g->diag;
    g->diag = diag_new(g->arena, NULL, false); /* what forbids it is no mistake */
    graph_program(g, PROGRAM_FORWARD, false);
    bool good = lower_into(g, ast, divided, divideds) && lower_whole(&s, ast, define, defines) &&
                check_nodes(&s, first);
    for (size_t i = 0; i < g->output.count && good; i++)
        good = output_axis(&s, i) >= -1;
    for (size_t i = 0; i < g->output.count && good; i++)
        collect(&s, i);
    g->diag = diag;
    if (!good)
        drop_nodes(g, first);
    return good;
}
