/* The programs of a model that trains: the loss with the outputs (eval), and the step.
 *
 * Requires: a graph lowered for inference. Leaves: the same parameters with two more programs, or
 * three where gradients are summed over micro-batches. The model is lowered once for each, since
 * dropout, batch statistics and the size of the batch differ between them. With micro-batches the
 * forward program is lowered again too, and the one for the whole batch left to simplify.
 */
#include "frontend/lower.h"

#include <string.h>

/* The model, and what it is lowered with: for the whole batch and for one of the micro-batches. */
typedef struct {
    Graph *g;
    Model whole, rank, micro; /* a rank has the whole where it is alone */
    uint32_t parts;           /* micro-batches of the whole batch, on all ranks; */
    uint32_t times;           /* that a program runs here; */
    uint32_t turns;           /* and that one rank sums up */
} Lowering;

static const Dimension *batch_dimension(const Graph *g)
{
    for (size_t i = 0; i < g->dimension.count; i++)
        if (g->dimension.at[i].batch)
            return &g->dimension.at[i];
    return NULL;
}

static const TrainSetting *find_setting(const Graph *g, const char *name)
{
    for (size_t i = 0; i < g->train.setting.count; i++)
        if (strcmp(g->train.setting.at[i].name, name) == 0 && !g->train.setting.at[i].pattern)
            return &g->train.setting.at[i];
    return NULL;
}

uint32_t train_stated(const Graph *g)
{
    const TrainSetting *s = find_setting(g, "accumulate");
    return s && !s->value.is_word ? (uint32_t)s->value.number : 1;
}

bool train_is_auto(const Graph *g)
{
    const TrainSetting *s = find_setting(g, "accumulate");
    return s && s->value.is_word;
}

bool train_states(const Graph *g)
{
    return find_setting(g, "accumulate") != NULL;
}

static double stated_lr(const Graph *g, const OpRow *optimizer)
{
    const TrainSetting *s = find_setting(g, "lr");
    if (s)
        return s->value.number;
    Call c = call_begin((Graph *)(uintptr_t)g, &(Call){.name = ""}, optimizer->name);
    return call_attr(&c, "lr")->number;
}

static bool check_times(Graph *g, uint32_t times)
{
    const Dimension *batch = batch_dimension(g);
    if (times == 1)
        return true;
    if (!batch) {
        diag_error(g->diag, g->train.span, "micro-batches need a batch dimension");
        diag_hint(g->diag, "mark it in the model line: model %s(batch B = 32)", g->name);
        return false;
    }
    if (batch->value % times == 0)
        return true;
    return diag_error(g->diag, batch->span,
                      "the batch %s = %lld is not a multiple of %u micro-batches", batch->name,
                      (long long)batch->value, times);
}

typedef ARRAY(Output) Outputs;

/* A metric in bytes that outlive its program, where micro-batches sum it up. */
static void keep_metric(Graph *g, Output *metric)
{
    Call from = {.span = metric->span, .name = metric->name};
    const char *name = arena_printf(g->arena, "%s.%s", metric->name,
                                    g->program == PROGRAM_EVAL ? "of_eval" : "of_step");
    const int64_t *none = g->value.at[metric->use.value].dim; /* it is one number */
    if (g->ranks.count) {
        metric->use = ranks_metric(g, metric, name);
        return;
    }
    const Use operand[] = {use_of(graph_value(g, VALUE_GRADIENT, name, F32, 0, none, metric->span)),
                           metric->use};
    metric->use = call_op(g, &from, "accumulate", 2, operand);
}

/* Lowers the program anew, for one of `times` micro-batches, and lists what it leaves: its loss,
 * and the outputs of eval. A step leaves none: they would take memory from the backward pass. */
static bool lower_loss(const Lowering *l, ProgramKind program, Outputs *list)
{
    Graph *g = l->g;
    size_t first = g->node.count;
    graph_program(g, program, program == PROGRAM_STEP);
    if (!lower_loss_shared(g, &l->micro) ||
        (l->parts > 1 && !samples_check(g, &l->whole, l->parts, l->times, first)))
        return false;
    g->times[program] = l->times;
    g->train.times = l->turns;
    g->train.lr = stated_lr(g, op_find(g->train.optimizer));
    Output loss = {.use = g->train.loss, .name = "loss", .span = g->train.span, .loss = true};
    for (size_t i = 0; i < g->output.count; i++) {
        if (g->output.at[i].metric)
            keep_metric(g, &g->output.at[i]);
        else if (program == PROGRAM_STEP)
            continue;
        else if (g->output.at[i].use.value == loss.use.value) /* that may be the caller's memory */
            loss.use = call_op(g, &(Call){.span = loss.span, .name = loss.name}, "copy", 1,
                               &g->train.loss);
        ARRAY_PUSH(g->arena, list, g->output.at[i]);
    }
    ARRAY_PUSH(g->arena, list, loss);
    return true;
}

/* A slot holds no more than a micro-batch. */
static bool refuse_whole(Graph *g)
{
    diag_error(g->diag, g->output.at[0].span,
               "outputs need the whole batch at once, but data is read in %u micro-batches",
               g->train.times > 1 ? g->train.times : 2);
    diag_hint(g->diag, "leave forward out: --programs step,eval");
    return false;
}

/* The outputs of the whole batch, computed at once or in micro-batches. */
static bool lower_outputs(const Lowering *l, Outputs *list)
{
    Graph *g = l->g;
    Outputs whole = {0};
    for (size_t i = 0; i < g->output.count; i++)
        ARRAY_PUSH(g->arena, &whole, g->output.at[i]);
    bool cut = l->times > 1 && whole.count > 0 && samples_forward(g, &l->rank, &l->micro, l->times);
    for (size_t i = 0; i < whole.count; i++)
        ARRAY_PUSH(g->arena, list, cut ? g->output.at[i] : whole.at[i]);
    if (cut)
        g->times[PROGRAM_FORWARD] = l->times;
    return cut || l->times == 1 || !whole.count || !g->data.count || refuse_whole(g);
}

/* The step, with its backward pass and its updates. */
static bool lower_training(const Lowering *l, Outputs *list)
{
    Use *gradient;
    if (!lower_loss(l, PROGRAM_STEP, list))
        return false;
    pools_first(l->g);
    return loss_scale_begin(l->g) && gradients(l->g, l->g->train.loss, &gradient) &&
           updates(l->g, gradient) && norms_split(l->g);
}

/* Whether some node of the program is such. */
static const Node *find_node(const Graph *g, ProgramKind program, bool (*is)(const Node *node))
{
    for (size_t n = 0; n < g->node.count; n++)
        if (g->node.at[n].program == program && is(&g->node.at[n]))
            return &g->node.at[n];
    return NULL;
}

static bool takes_statistics(const Node *node)
{
    return node->op->batch_help != NULL; /* it couples the samples of a batch */
}

/* Whether all that the loss takes from samples is weighed, so that those that do not count add
 * nothing: on every path back to an input that data fills. */
static bool loss_weighs(const Graph *g)
{
    bool *seen = ARENA_ARRAY(g->arena, bool, g->value.count + 1);
    memset(seen, 0, g->value.count * sizeof *seen);
    seen[g->train.loss.value] = true;
    for (Id v = g->train.loss.value + 1; v-- > 0;) { /* operands come before their users */
        const Value *value = &g->value.at[v];
        if (!seen[v])
            continue;
        if (value->fed)
            return false;
        if (value->node == NONE || g->node.at[value->node].op->flags & OP_WEIGHS)
            continue;
        const Node *node = &g->node.at[value->node];
        for (Id i = 0; i < node->uses; i++)
            if (node_use(g, node, i).value != NONE)
                seen[node_use(g, node, i).value] = true;
    }
    return true;
}

/* Samples that fill up a last batch must not count: where a loss weighs samples, and nothing else
 * sees all of them. */
static bool check_padding(const Graph *g, const DataStmt *data, ProgramKind program)
{
    if (!data || data->setting[DATA_LAST].number != DATA_PAD)
        return true;
    const Node *node = find_node(g, program, takes_statistics);
    if (node) {
        diag_error(g->diag, data->span,
                   "batch statistics would see the samples that fill up a last batch: last = pad");
        diag_note(g->diag, node->span, "they are taken here");
    } else if (!g->train.weighs) {
        diag_error(g->diag, data->span,
                   "the loss is no mean over samples, so those that fill up a last batch count");
        diag_note(g->diag, g->train.span, "it is stated here");
    } else {
        return true;
    }
    diag_hint(g->diag, "last = drop leaves out a last batch that is not full");
    return false;
}

bool train_add(Graph *g, const Model *model, uint32_t times)
{
    Outputs output = {0};
    Dimension *dimension = ARENA_ARRAY(g->arena, Dimension, g->dimension.count + 1);
    for (size_t i = 0; i < g->dimension.count; i++)
        dimension[i] = g->dimension.at[i];
    const uint32_t turns = times ? times : train_stated(g);
    const uint32_t ranks = g->ranks.count ? g->ranks.count : 1;
    Lowering l = {.g = g, .rank = *model, .micro = *model, .turns = turns, .parts = turns * ranks};
    l.whole = g->ranks.whole ? *g->ranks.whole : *model;
    l.times = g->ranks.here ? l.parts : turns;
    g->ranks.turns = turns;
    const Dimension *batch = batch_dimension(g);
    if (!check_times(g, l.times))
        return false;
    if (l.times > 1)
        l.micro = model_define(g->arena, model, batch->name, batch->value / l.times);
    if (model_plans(model, PROGRAM_FORWARD) && !lower_outputs(&l, &output))
        return false;
    if (model_plans(model, PROGRAM_EVAL) && !lower_loss(&l, PROGRAM_EVAL, &output))
        return false;
    if (model_plans(model, PROGRAM_STEP) && !lower_training(&l, &output))
        return false;
    g->train.weighs = (g->times[PROGRAM_EVAL] || g->times[PROGRAM_STEP]) && loss_weighs(g);
    if ((model_plans(model, PROGRAM_STEP) &&
         !check_padding(g, data_find(g, "train"), PROGRAM_STEP)) ||
        (model_plans(model, PROGRAM_EVAL) && !check_padding(g, data_find(g, "eval"), PROGRAM_EVAL)))
        return false;
    g->output.count = 0;
    for (size_t i = 0; i < output.count; i++)
        ARRAY_PUSH(g->arena, &g->output, output.at[i]);
    for (size_t i = 0; i < g->dimension.count; i++)
        g->dimension.at[i] = dimension[i]; /* the batch is whole again */
    return true;
}
