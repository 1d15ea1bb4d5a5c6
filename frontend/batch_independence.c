/* Whether the samples of a batch are independent, so that a program can run in micro-batches.
 *
 * Requires: a program lowered for one micro-batch. The model is lowered once more for the whole
 * batch, apart, and the two are walked node by node. What is proven of each value is how that of
 * the whole batch is made of those of the micro-batches (Spread): equal, interleaved in blocks, or
 * their sum. An operand is followed through its view by its strides; through an op the batch passes
 * as the op's row says (BatchRule), and nothing else is asked of an op. What cannot be proven is
 * refused. Linear in nodes and operands.
 */
#include "frontend/lower.h"

#include <string.h>

/* A mean that the model wrote out counts as a loss's own: a sum of shares. A loss that nothing
 * computes, a parameter, becomes a node's. */
static bool share_mean(Graph *g)
{
    Id id = g->value.at[g->train.loss.value].node;
    if (id == NONE) {
        Call from = {.span = g->train.span, .name = "loss"};
        g->train.loss = call_op(g, &from, "copy", 1, &g->train.loss);
    } else if (g->node.at[id].op->as_loss) {
        Call at = call_at(g, id);
        Use operand = node_use(g, &g->node.at[id], 0);
        g->train.loss = call_op(g, &at, g->node.at[id].op->as_loss, 1, &operand);
    }
    return g->train.loss.value != NONE;
}

/* Whether a value is summed up from what each sample that counts adds to it, or linear in such
 * sums: then micro-batches may sum it up too. */
static bool is_share(const Graph *g, Id value)
{
    Id id = g->value.at[value].node;
    if (id == NONE)
        return false;
    const Node *node = &g->node.at[id];
    uint8_t linear = node->op->linear;
    bool all = true, some = false;
    for (Id i = 0; i < node->uses; i++) {
        Id operand = node_use(g, node, i).value;
        Id from = operand == NONE ? NONE : g->value.at[operand].node;
        if (from != NONE && g->node.at[from].op->flags & OP_WEIGHS)
            return true;
        bool share = operand != NONE && linear && is_share(g, operand);
        all &= share;
        some |= share && (linear & LINEAR_TOGETHER || linear >> i & 1);
    }
    return linear & LINEAR_TOGETHER ? all : some;
}

/* What a metric is of, without the samples that do not count. */
static bool share_metrics(Graph *g)
{
    for (size_t i = 0; i < g->output.count; i++) {
        Output *o = &g->output.at[i];
        Id id = g->value.at[o->use.value].node;
        if (!o->metric)
            continue;
        if (id != NONE && g->node.at[id].op->as_metric) {
            Call at = call_at(g, id);
            Use operand = node_use(g, &g->node.at[id], 0);
            o->use = call_op(g, &at, g->node.at[id].op->as_metric, 1, &operand);
        }
        if (o->use.value == NONE)
            return false;
        if (is_share(g, o->use.value))
            continue;
        diag_error(g->diag, o->span, "the metric %s is no mean or sum over samples", o->name);
        diag_hint(g->diag,
                  "write metric %s = mean(...), so that it is right for micro-batches and "
                  "for a batch that is not full",
                  o->name);
        return false;
    }
    return true;
}

/* Outputs are there for forward; without it, all that eval leaves beside its loss are metrics. */
static void keep_metrics(Graph *g)
{
    size_t kept = 0;
    for (size_t i = 0; i < g->output.count; i++)
        if (g->output.at[i].metric)
            g->output.at[kept++] = g->output.at[i];
    g->output.count = kept;
}

bool lower_loss_shared(Graph *g, const Model *model)
{
    if (!lower_into(g, model) || !share_mean(g) || !share_metrics(g))
        return false;
    if (!model_plans(model, PROGRAM_FORWARD))
        keep_metrics(g);
    if (g->chunked_loss)
        chunk_losses(g);
    return true;
}

/* How a value of the whole batch is made of those of its micro-batches. */
typedef enum {
    SPREAD_SAME,  /* it is the same in each of them */
    SPREAD_SPLIT, /* they follow each other in blocks of `period` elements: the first block of each
                     in order, then the second of each, ... */
    SPREAD_SHARE, /* it is their sum */
    SPREAD_OWN,   /* each has its own, as the model wants it: read by effects alone */
} SpreadKind;

typedef struct {
    uint8_t kind;
    bool weighed;   /* by the share of each sample in the mean of the batch */
    int64_t period; /* SPREAD_SPLIT */
    Id whole;       /* the value it belongs to */
} Spread;

/* The batch in an operand as the node sees it. */
typedef struct {
    int axis;      /* -1: no axis */
    int64_t block; /* indices along the axis that belong to one micro-batch, side by side; 0: all
                      are equal along it */
} Along;

typedef struct {
    Graph *micro, *whole;
    uint32_t times, here; /* micro-batches; those that run on this rank */
    Spread *spread;       /* by value of micro */
} Samples;

static bool mixes(const Samples *s, const Node *node, const char *why)
{
    diag_error(s->micro->diag, node->span, "%s %s, so a step cannot run in %u micro-batches",
               node->op->name, why, s->times);
    return false;
}

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

/* ---- Operands ------------------------------------------------------------------------------- */

/* Values that no node makes are known by their names. */
static bool is_same_value(const Samples *s, Id micro, Id whole)
{
    const Value *m = &s->micro->value.at[micro], *w = &s->whole->value.at[whole];
    if (m->kind == VALUE_LITERAL || w->kind == VALUE_LITERAL)
        return m->kind == w->kind && m->literal == w->literal;
    if (m->node != NONE)
        return s->spread[micro].whole == whole;
    if (m->whole != NONE)
        m = &s->micro->value.at[m->whole];
    return w->node == NONE && strcmp(m->name, w->name) == 0;
}

/* An input is divided along its first axis. */
static void find_declared(const Samples *s, Id micro, Id whole)
{
    const Value *m = &s->micro->value.at[micro], *w = &s->whole->value.at[whole];
    bool split = m->rank && m->dim[0] != w->dim[0];
    s->spread[micro] = (Spread){
        .kind = split ? SPREAD_SPLIT : SPREAD_SAME, .period = value_count(m), .whole = whole};
}

/* A view of what is the same for all samples reads the same, and may repeat it along the batch. */
static bool along_same(const View *m, const View *w, Along *along)
{
    bool same = m->offset == w->offset;
    for (int i = 0; i < m->rank; i++)
        if (i == along->axis)
            same &= w->stride[i] == 0 && (m->dim[i] == 1 || m->stride[i] == 0);
        else
            same &= m->dim[i] == 1 || m->stride[i] == w->stride[i];
    along->block = 0;
    return same;
}

/* A step that both views take `dim` times: its strides. */
typedef struct {
    int64_t dim, micro, whole;
} Step;

/* The axes of both views; that of the batch is two, within a block and from one to the next. */
static int list_steps(const Samples *s, const View *m, const View *w, const Along *along,
                      Step *step)
{
    int k = along->axis;
    for (int i = 0; i < m->rank; i++)
        step[i] = (Step){m->dim[i], m->stride[i], w->stride[i]};
    step[k].dim = along->block;
    step[m->rank] = (Step){m->dim[k] / along->block, along->block * m->stride[k],
                           s->times * along->block * w->stride[k]};
    return m->rank + 1;
}

/* Element `at` of micro-batch k is at (at / period * times + k) * period + at % period in the
 * whole. The views agree where each step either stays within its block, by as much in both, or goes
 * on by whole blocks, by `times` as many; and k goes along the batch's axis. */
static bool along_split(const Samples *s, const View *m, const View *w, int64_t period,
                        Along *along)
{
    int64_t stride = w->stride[along->axis], times = s->times;
    if (stride <= 0 || period % stride != 0 || m->dim[along->axis] % (period / stride) != 0)
        return false;
    along->block = period / stride;
    int64_t low = m->offset % period, high = low;
    if (m->offset / period * times * period + low != w->offset)
        return false;
    Step step[MAX_RANK + 1];
    int steps = list_steps(s, m, w, along, step);
    for (int i = 0; i < steps; i++) {
        int64_t micro = step[i].micro;
        if (step[i].dim == 1 || (micro % period == 0 && step[i].whole == times * micro))
            continue;
        if (micro != step[i].whole)
            return false;
        *(micro < 0 ? &low : &high) += (step[i].dim - 1) * micro;
    }
    return low >= 0 && high < period;
}

/* Finds the batch in an operand; NULL, or why that is unknown. */
static const char *find_along(const Samples *s, Use micro, Use whole, Along *along)
{
    const Value *value = &s->micro->value.at[micro.value];
    bool literal = value->kind == VALUE_LITERAL;
    if (!is_same_value(s, micro.value, whole.value))
        return literal ? "uses the size of the batch as a number"
                       : "reads another value where the batch is smaller";
    if (value->node == NONE)
        find_declared(s, micro.value, whole.value);
    bool split = s->spread[micro.value].kind == SPREAD_SPLIT;
    View m = use_view(s->micro, micro), w = use_view(s->whole, whole);
    along->axis = batch_axis(s, m.rank, m.dim, w.rank, w.dim);
    if (along->axis >= 0 && split && w.stride[along->axis] < 0)
        return "flips the batch";
    if (along->axis == -2 || (split && along->axis == -1))
        return "treats some samples differently from others";
    if (split)
        return along_split(s, &m, &w, s->spread[micro.value].period, along)
                   ? NULL
                   : "sees samples that a reshape has spread over several axes";
    return literal || along_same(&m, &w, along) ? NULL
                                                : "takes as much of a tensor as there are samples";
}

/* ---- Nodes ---------------------------------------------------------------------------------- */

static bool is_setting(const Arg *arg)
{
    return arg->kind != ARG_TENSOR && arg->kind != ARG_STRING &&
           !(arg->flags & (ARG_FRONT | ARG_BATCH));
}

/* What kernels are told is the same; what shapes follow from is seen in the shapes. */
static bool check_settings(const Samples *s, const Node *micro, const Node *whole)
{
    const Attr *m = &s->micro->attr.at[micro->attr], *w = &s->whole->attr.at[whole->attr];
    for (int i = 0; i < MAX_ARGS && micro->op->args[i].name; i++)
        if (is_setting(&micro->op->args[i]) &&
            (m[i].number != w[i].number || memcmp(m[i].list, w[i].list, sizeof m[i].list) != 0))
            return mixes(s, micro, "has a setting that follows the size of the batch");
    return true;
}

/* Where the batch of an operand comes out, as the row has it for both sizes of the batch. */
static bool pass(const Samples *s, const Node *micro, const Node *whole, Id operand, int axis,
                 int output, int *to)
{
    const OpRow *op = micro->op;
    *to = op->batch(s->micro, micro, (int)operand, axis, output);
    if (*to != BATCH_MIXED && *to == op->batch(s->whole, whole, (int)operand, axis, output))
        return true;
    const Arg *arg = &op->args[op->args[0].flags & ARG_VARIADIC ? 0 : operand];
    mixes(s, micro,
          arena_printf(s->micro->arena, "computes over the whole batch, axis %d of its %s", axis,
                       arg->name));
    if (op->batch_help)
        diag_hint(s->micro->diag, "%s", op->batch_help);
    return false;
}

/* An output whose axis `to` is the batch, in such blocks as the operands have it. */
static bool split_output(const Samples *s, const Node *micro, const Node *whole, int output, int to,
                         int64_t block, Spread *spread)
{
    const Value *m = &s->micro->value.at[node_value(micro, (Id)output)];
    const Value *w = &s->whole->value.at[node_value(whole, (Id)output)];
    if (batch_axis(s, m->rank, m->dim, w->rank, w->dim) != to)
        return mixes(s, micro, "makes a tensor that follows the size of the batch");
    int64_t period = block ? block : m->dim[to];
    for (int i = to + 1; i < m->rank; i++)
        period *= m->dim[i];
    spread->kind = SPREAD_SPLIT;
    spread->period = period;
    spread->weighed = (micro->op->flags & OP_WEIGHS) != 0;
    return !spread->weighed || period == value_count(m) ||
           mixes(s, micro, "weighs samples that are not consecutive");
}

/* All operands that have the batch must have it come out in one place. */
static bool pass_output(const Samples *s, const Node *micro, const Node *whole, const Along *along,
                        int output)
{
    Spread *spread = &s->spread[node_value(micro, (Id)output)];
    int to = -1, passed;
    int64_t block = 0;
    bool weighed = true, first = true;
    for (Id i = 0; i < micro->uses; i++) {
        if (node_use(s->micro, micro, i).value == NONE || along[i].axis < 0)
            continue;
        if (!pass(s, micro, whole, i, along[i].axis, output, &passed))
            return false;
        if (!first && (passed != to || (block && along[i].block && along[i].block != block)))
            return mixes(s, micro, "has the batch on different axes of its operands");
        to = passed;
        block = along[i].block ? along[i].block : block;
        weighed &= s->spread[node_use(s->micro, micro, i).value].weighed;
        first = false;
    }
    if (to >= 0)
        return split_output(s, micro, whole, output, to, block, spread);
    s->micro->train.own |= to == BATCH_OWN;
    if (to == BATCH_OWN)
        spread->kind = SPREAD_OWN;
    else if (to == BATCH_SUMMED && weighed)
        spread->kind = SPREAD_SHARE;
    else
        return mixes(s, micro, "makes one value of all samples");
    return true;
}

/* Shares of a loss stay shares where they are added up or multiplied by what is the same for all
 * micro-batches. Anything else would not be the loss of the whole batch. */
static bool pass_shares(const Samples *s, const Node *node, Id shares, bool batch)
{
    uint8_t linear = node->op->linear;
    Id operands = 0, last = 0;
    for (Id i = 0; i < node->uses; i++) {
        Id value = node_use(s->micro, node, i).value;
        operands += value != NONE;
        if (value != NONE && s->spread[value].kind == SPREAD_SHARE)
            last = i;
    }
    if (linear & LINEAR_TOGETHER && shares < operands) {
        mixes(s, node, "adds a term that is not a loss over samples");
        diag_hint(s->micro->diag, "it would count once for each micro-batch");
        return false;
    }
    if (!(linear & LINEAR_TOGETHER) && (batch || shares > 1 || !(linear >> last & 1)))
        return mixes(s, node, "is not linear in the loss of the samples");
    s->spread[node->value].kind = SPREAD_SHARE;
    return true;
}

/* What no sample reaches is the same in every micro-batch, and as large. */
static bool pass_same(const Samples *s, const Node *micro, const Node *whole)
{
    for (Id i = 0; i < micro->values; i++) {
        const Value *m = &s->micro->value.at[node_value(micro, i)];
        const Value *w = &s->whole->value.at[node_value(whole, i)];
        if (batch_axis(s, m->rank, m->dim, w->rank, w->dim) != -1)
            return mixes(s, micro, "makes a tensor that follows the size of the batch");
    }
    return true;
}

/* Random numbers follow the element's place in the whole batch. */
static void place_draws(const Samples *s, const Node *node)
{
    int parts = op_arg(node->op, "parts"), span = op_arg(node->op, "span");
    const Spread *spread = &s->spread[node->value];
    if (!(node->op->flags & OP_RANDOM) || parts < 0 || span < 0 || spread->kind != SPREAD_SPLIT)
        return;
    Attr *attr = &s->micro->attr.at[node->attr];
    attr[span].list[0] = spread->period;
    attr[span].number = (double)spread->period;
    attr[parts].list[0] = value_count(&s->micro->value.at[node->value]) / spread->period;
    attr[parts].number = (double)attr[parts].list[0];
}

static bool check_node(const Samples *s, const Node *micro, const Node *whole)
{
    bool batch = false, own = false;
    Id shares = 0;
    if (micro->op != whole->op || micro->uses != whole->uses || micro->values != whole->values)
        return mixes(s, micro, "is there for one size of the batch only");
    Along *along = ARENA_ARRAY(s->micro->arena, Along, micro->uses + 1);
    for (Id i = 0; i < micro->uses; i++) {
        Use m = node_use(s->micro, micro, i), w = node_use(s->whole, whole, i);
        if ((m.value == NONE) != (w.value == NONE))
            return mixes(s, micro, "is there for one size of the batch only");
        along[i].axis = -1;
        if (m.value == NONE)
            continue;
        const char *why = find_along(s, m, w, &along[i]);
        if (why)
            return mixes(s, micro, why);
        batch |= along[i].axis >= 0;
        shares += s->spread[m.value].kind == SPREAD_SHARE;
        own |= s->spread[m.value].kind == SPREAD_OWN;
    }
    for (Id i = 0; i < micro->values; i++)
        s->spread[node_value(micro, i)] = (Spread){.whole = node_value(whole, i)};
    if (!check_settings(s, micro, whole))
        return false;
    if (own && !(micro->op->flags & OP_EFFECT))
        return mixes(s, micro, "reads values that differ between micro-batches");
    if (shares)
        return pass_shares(s, micro, shares, batch);
    if (!batch)
        return pass_same(s, micro, whole);
    for (Id i = 0; i < micro->values; i++)
        if (!pass_output(s, micro, whole, along, (int)i))
            return false;
    place_draws(s, micro);
    return true;
}

enum { ALL = -1 };

/* By node: an output of the forward program, the loss of another, or an effect depends on it; or
 * one output alone. */
static bool *find_needed(const Graph *g, size_t first, int output)
{
    bool *needed = ARENA_ARRAY(g->arena, bool, g->node.count);
    for (size_t i = 0; i < g->output.count; i++)
        if ((output == ALL ? g->program == PROGRAM_FORWARD : i == (size_t)output) &&
            g->value.at[g->output.at[i].use.value].node != NONE) /* an input, as it is */
            needed[g->value.at[g->output.at[i].use.value].node] = true;
    if (g->program != PROGRAM_FORWARD && output == ALL)
        needed[g->value.at[g->train.loss.value].node] = true;
    for (size_t i = 0; i < g->output.count && output == ALL; i++)
        if (g->output.at[i].metric)
            needed[g->value.at[g->output.at[i].use.value].node] = true;
    for (size_t i = 0; i < g->staged.count && output == ALL; i++)
        for (size_t k = 0; k < g->staged.at[i]->use.count; k++) {
            Id node = g->value.at[g->staged.at[i]->use.at[k].value].node;
            if (node != NONE)
                needed[node] = true;
        }
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
static bool lower_whole(Samples *s, const Model *model)
{
    const Graph *g = s->micro;
    s->whole = graph_new(g->arena, g->diag, g->source);
    s->whole->precision = g->precision;
    s->whole->has_half = g->has_half;
    s->spread = ARENA_ARRAY(g->arena, Spread, g->value.count);
    s->whole->ranks.count = g->ranks.count;
    s->whole->ranks.here = g->ranks.here;
    s->whole->ranks.turns = g->ranks.turns;
    graph_program(s->whole, g->program, g->training);
    s->whole->chunked_loss = g->chunked_loss;
    return g->program == PROGRAM_FORWARD ? lower_into(s->whole, model)
                                         : lower_loss_shared(s->whole, model);
}

static size_t list_needed(const Graph *g, size_t first, int output, Id *list)
{
    const bool *needed = find_needed(g, first, output);
    size_t count = 0;
    for (size_t n = first; n < g->node.count; n++)
        if (needed[n])
            list[count++] = (Id)n;
    return count;
}

/* What is staged is copied once for each micro-batch, so it may copy only what differs between
 * them. */
static bool check_staged(const Samples *s)
{
    const Graph *g = s->micro;
    for (size_t i = 0; i < g->staged.count; i++) {
        const Call *c = g->staged.at[i];
        bool reached = false;
        for (size_t k = 0; k < c->use.count; k++)
            reached |= s->spread[c->use.at[k].value].kind != SPREAD_SAME;
        if (!reached && !c->alike)
            return diag_error(g->diag, c->span,
                              "%s would move once for each micro-batch, by what no sample reaches, "
                              "so a step cannot run in %u micro-batches",
                              c->op->name, s->times);
    }
    return true;
}

/* What is unused may differ: a copy that a batch of one can do without. */
static bool check_nodes(Samples *s, size_t first, int output)
{
    const Graph *g = s->micro, *w = s->whole;
    Id *micro = ARENA_ARRAY(g->arena, Id, g->node.count);
    Id *whole = ARENA_ARRAY(g->arena, Id, w->node.count);
    size_t count = list_needed(g, first, output, micro);
    if (list_needed(w, 0, output, whole) != count)
        return diag_error(g->diag, g->train.span,
                          "the model changes when its batch is divided by %u", s->times);
    for (size_t i = 0; i < count; i++)
        if (!check_node(s, &g->node.at[micro[i]], &w->node.at[whole[i]]))
            return false;
    return output != ALL || check_staged(s);
}

/* ---- Outputs -------------------------------------------------------------------------------- */

/* The axis of the batch in an output; -1: none, -2: it cannot be collected. */
static int output_axis(const Samples *s, size_t i)
{
    Use micro = s->micro->output.at[i].use, whole = s->whole->output.at[i].use;
    Along along = {.axis = -1};
    if (find_along(s, micro, whole, &along) || s->spread[micro.value].kind > SPREAD_SPLIT)
        return -2;
    bool parted =
        along.axis >= 0 && along.block && along.block != use_view(s->micro, micro).dim[along.axis];
    return parted ? -2 : along.axis;
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
    whole.dim[axis] = whole.dim[axis] / s->times * s->here;
    Call from = {.span = output->span, .name = output->name};
    Call c = call_begin(g, &from, "collect");
    call_use(g, &c,
             use_of(graph_value(g, VALUE_OUTPUT, output->name,
                                (Dtype)g->value.at[output->use.value].dtype, whole.rank, whole.dim,
                                output->span)));
    call_use(g, &c, output->use);
    call_set(&c, "axis", axis);
    call_finish(g, &c);
    output->use = c.result.at[0];
}

/* Each output that micro-batches make is collected; one that they cannot is not computed. What
 * forbids it is no mistake. */
static void collect_some(Samples *s, size_t first)
{
    Graph *g = s->micro;
    Diag *diag = g->diag;
    size_t kept = 0;
    g->diag = diag_new(g->arena, NULL, false);
    bool *good = ARENA_ARRAY(g->arena, bool, g->output.count);
    for (size_t i = 0; i < g->output.count; i++)
        good[i] =
            g->output.at[i].metric || (check_nodes(s, first, (int)i) && output_axis(s, i) >= -1);
    for (size_t i = 0; i < g->output.count; i++)
        if (good[i] && !g->output.at[i].metric)
            collect(s, i);
    for (size_t i = 0; i < g->output.count; i++)
        if (good[i])
            g->output.at[kept++] = g->output.at[i];
    g->output.count = kept;
    g->diag = diag;
}

bool samples_check(Graph *g, const Model *whole, uint32_t times, uint32_t here, size_t first)
{
    Samples s = {.micro = g, .times = times, .here = here};
    if (!lower_whole(&s, whole) || !check_nodes(&s, first, ALL))
        return false;
    const Node *loss = &g->node.at[g->value.at[g->train.loss.value].node];
    if (s.spread[g->train.loss.value].kind != SPREAD_SHARE)
        return mixes(&s, loss, "makes a loss that is no mean of samples");
    for (size_t i = 0; i < g->output.count; i++)
        if (g->output.at[i].metric && s.spread[g->output.at[i].use.value].kind != SPREAD_SHARE)
            return mixes(&s, &g->node.at[g->value.at[g->output.at[i].use.value].node],
                         "makes a metric that is no mean or sum over samples");
    if (g->program == PROGRAM_EVAL && here > 1)
        collect_some(&s, first);
    return true;
}

static void drop_nodes(Graph *g, size_t first)
{
    for (size_t v = 0; v < g->value.count; v++)
        if (g->value.at[v].node != NONE && g->value.at[v].node >= first)
            g->value.at[v].node = NONE;
    g->node.count = first;
}

bool samples_forward(Graph *g, const Model *whole, const Model *micro, uint32_t times)
{
    Samples s = {.micro = g, .times = times, .here = times};
    size_t first = g->node.count;
    Diag *diag = g->diag;
    g->diag = diag_new(g->arena, NULL, false); /* what forbids it is no mistake */
    graph_program(g, PROGRAM_FORWARD, false);
    bool good = lower_into(g, micro) && lower_whole(&s, whole) && check_nodes(&s, first, ALL);
    for (size_t i = 0; i < g->output.count && good; i++)
        good = output_axis(&s, i) >= -1;
    for (size_t i = 0; i < g->output.count && good; i++)
        collect(&s, i);
    g->diag = diag;
    if (!good)
        drop_nodes(g, first);
    return good;
}
