/* From gradients to the next version of each parameter.
 *
 * Requires: the gradients of the program being built. Leaves: an update for each, standing as
 * early as it may: after the gradient and after the last reader of the old version. So a
 * gradient is freed as soon as it is applied, unless clipping needs all of them at once or
 * micro-batches are summed first. What the step has staged (running statistics) is committed here
 * too, after everything that can fail; over micro-batches it is kept beside the state until then.
 * With a loss scale, what the step changes hangs on `good`, which reads all gradients: whatever is
 * saved changes after it, and reads it.
 * An optimizer is a row like any other: its operands are w, g and the factor that clipping gives;
 * what else it has is state that the row itself makes.
 */
#include "frontend/frontend.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static const Use nothing = {NONE, NONE};

/* The last setting of this name that is for the parameter; groups win over the common ones. */
static const TrainSetting *find_setting(const Graph *g, const char *name, const char *parameter)
{
    const TrainSetting *found = NULL;
    for (size_t i = 0; i < g->train.setting.count; i++) {
        const TrainSetting *s = &g->train.setting.at[i];
        if (strcmp(s->name, name) == 0 &&
            (!s->pattern || (parameter && fnmatch(s->pattern, parameter, 0) == 0)) &&
            (s->pattern || !found || !found->pattern))
            found = s;
    }
    return found;
}

static double number_of(const Graph *g, const char *name, double otherwise)
{
    const TrainSetting *s = find_setting(g, name, NULL);
    return s ? s->value.number : otherwise;
}

static Call begin(Graph *g, Id parameter, const char *op)
{
    Call from = {.span = g->train.span, .phase = PHASE_UPDATE, .name = g->value.at[parameter].name};
    Call c = call_begin(g, &from, op);
    c.name = arena_printf(g->arena, "%s.%s", from.name, op); /* its state: fc.w.adam.m */
    return c;
}

/* ---- Before the update ---------------------------------------------------------------------- */

static bool is_scaled(const Graph *g)
{
    return g->loss_scale != NONE;
}

/* Each gradient within [-limit, limit]. */
static bool clip_values(Graph *g, Use *gradient, size_t values)
{
    double limit = number_of(g, "clip_value", 0);
    for (Id v = 0; v < values && limit > 0; v++) {
        if (gradient[v].value == NONE)
            continue;
        Call c = begin(g, v, is_scaled(g) ? "clip_scaled" : "clip");
        call_use(g, &c, gradient[v]);
        if (is_scaled(g)) {
            call_set(&c, "limit", limit);
            call_use(g, &c, loss_scale_factor(g));
        } else {
            call_set(&c, "low", -limit);
            call_set(&c, "high", limit);
        }
        if (!call_finish(g, &c))
            return false;
        gradient[v] = c.result.at[0];
    }
    return true;
}

/* The factor that brings the norm of all gradients together to the limit, and takes off the loss
 * scale; nothing: there is neither. */
static bool clip_norm(Graph *g, const Use *gradient, const uint8_t *sharded, size_t values,
                      Use *scale)
{
    double limit = number_of(g, "clip", 0);
    *scale = nothing;
    if (!(limit > 0) && !is_scaled(g))
        return true;
    Call from = {.span = g->train.span, .phase = PHASE_UPDATE, .name = "train"};
    const Use squares = ranks_squares(g, gradient, sharded, values); /* of all ranks */
    const bool shards = squares.value != NONE;
    Call c = call_begin(g, &from,
                        is_scaled(g) ? shards ? "unscale_shards" : "unscale"
                        : shards     ? "clip_factor_shards"
                                     : "clip_factor");
    call_set(&c, "limit", limit);
    if (is_scaled(g))
        call_use(g, &c, use_of(g->loss_scale));
    if (shards) {
        call_set(&c, "ranks", g->ranks.count);
        call_use(g, &c, squares);
    }
    for (Id v = 0; v < values; v++) {
        if (gradient[v].value == NONE)
            continue;
        if (shards)
            call_use(g, &c, use_of(v));
        call_use(g, &c, gradient[v]);
    }
    if (!c.use.count)
        return true;
    if (!call_finish(g, &c))
        return false;
    *scale = c.result.at[0];
    return true;
}

/* Goes on with the sums over micro-batches, in the program that runs once. */
static void begin_update(Graph *g, Use *gradient, size_t values)
{
    if (program_times(g, PROGRAM_STEP) <= 1)
        return;
    for (Id v = 0; v < values; v++)
        if (gradient[v].value != NONE)
            gradient[v] = use_of(value_first(g, gradient[v].value));
    graph_program(g, PROGRAM_UPDATE, true);
}

/* ---- What the step has staged ---------------------------------------------------------------- */

/* A statistic that the optimizer would change as well has no one next version. */
static bool check_staged(Graph *g, const Use *gradient)
{
    for (size_t i = 0; i < g->staged.count; i++)
        for (int k = 0; k < 2; k++) {
            const Call *c = g->staged.at[i];
            Id value = c->use.at[k].value;
            if (gradient[value].value == NONE)
                continue;
            diag_error(g->diag, c->span,
                       "batchnorm: %s is trained, so it cannot hold the running %s too",
                       g->value.at[value].name, k ? "var" : "mean");
            diag_note(g->diag, g->value.at[value].span, "it is declared here");
            diag_hint(g->diag, "declare a separate param for the statistics, or leave them out");
            return false;
        }
    return true;
}

/* Appends a call of `op` for a state, in the place of what was staged; the new version. */
static Use append(Graph *g, const Call *from, Id state, const char *op, int count,
                  const Use *operands)
{
    Call c = call_begin(g, from, op);
    c.phase = PHASE_UPDATE;
    c.name = arena_printf(g->arena, "%s.%s", g->value.at[state].name, op);
    for (int i = 0; i < count; i++)
        call_use(g, &c, operands[i]);
    return call_finish(g, &c) ? c.result.at[0] : nothing;
}

/* Whether the step may still come to nothing when they are staged. */
static bool commits_later(const Graph *g)
{
    return is_scaled(g) || (program_times(g, PROGRAM_STEP) > 1 && g->ranks.state == NONE);
}

/* A copy of the state that the step works on. */
static Use begin_staged(Graph *g, const Call *from, Id state)
{
    const Value is = g->value.at[state];
    Id staged = graph_value(g, VALUE_GRADIENT, arena_printf(g->arena, "%s.staged", is.name),
                            (Dtype)is.dtype, is.rank, is.dim, is.span);
    return append(g, from, state, "stage", 2, (Use[]){use_of(staged), use_of(state)});
}

/* By state: its last version so far, or a copy's; each call that shares it goes on from there. */
static bool move_staged(Graph *g, Use *last)
{
    for (size_t i = 0; i < g->staged.count; i++) {
        Call *c = g->staged.at[i];
        Id state[2] = {c->use.at[0].value, c->use.at[1].value};
        for (int k = 0; k < 2; k++) {
            if (last[state[k]].value == NONE)
                last[state[k]] = commits_later(g) ? begin_staged(g, c, state[k]) : use_of(state[k]);
            c->use.at[k] = last[state[k]];
        }
        c->phase = PHASE_UPDATE;
        if (last[state[0]].value == NONE || last[state[1]].value == NONE || !call_finish(g, c))
            return false;
        for (int k = 0; k < 2; k++)
            last[state[k]] = c->result.at[k];
    }
    return true;
}

/* In the program that runs once: the state takes over what the step made of its copy. */
static bool commit_staged(Graph *g, const Use *last, size_t values, Use good)
{
    for (Id v = 0; v < values && commits_later(g); v++) {
        if (last[v].value == NONE)
            continue;
        Use copy =
            program_times(g, PROGRAM_STEP) > 1 ? use_of(value_first(g, last[v].value)) : last[v];
        Call from = {.span = g->train.span};
        if (append(g, &from, v, "commit", 3, (Use[]){use_of(v), copy, good}).value == NONE)
            return false;
    }
    return true;
}

/* ---- The updates ---------------------------------------------------------------------------- */

/* The call with the settings that this parameter has. */
static Call begin_optimizer(Graph *g, Id parameter)
{
    Call c = begin(g, parameter, g->train.optimizer);
    for (int i = 0; i < MAX_ARGS && c.op->args[i].name; i++) {
        const Arg *arg = &c.op->args[i];
        const TrainSetting *s = find_setting(g, arg->name, g->value.at[parameter].name);
        if (arg->kind == ARG_TENSOR || arg->flags & ARG_HIDDEN || !s)
            continue;
        c.attr[i] = s->value;
        if (strcmp(arg->name, "lr") == 0 && g->train.lr != 0)
            call_set(&c, "lr_scale", s->value.number / g->train.lr);
    }
    return c;
}

/* Its next version; value NONE where that cannot be. */
static Use update(Graph *g, Id parameter, Use gradient, Use scale)
{
    Call c = begin_optimizer(g, parameter);
    call_use(g, &c, use_of(parameter));
    call_use(g, &c, gradient);
    call_use(g, &c, scale);
    return call_finish(g, &c) ? c.result.at[0] : nothing;
}

static bool has_state(Graph *g, Id parameter)
{
    const Call c = begin_optimizer(g, parameter);
    for (int i = 0; i < MAX_ARGS && c.op->args[i].name; i++)
        if (optimizer_keeps(&c, i))
            return true;
    return false;
}

/* By value: whether each rank has a shard alone of its state, or of its gradient too. What has no
 * state is sharded with its gradient. A gradient that is applied as it comes is not held: its shard
 * is in its place. */
static uint8_t *find_sharded(Graph *g, const Use *gradient, size_t values)
{
    uint8_t *sharded = ARENA_ARRAY(g->arena, uint8_t, values + 1);
    const bool held = g->train.times > 1 || is_scaled(g) || number_of(g, "clip", 0) > 0;
    for (Id v = 0; v < values; v++)
        if (gradient[v].value != NONE && g->value.at[v].kind == VALUE_PARAM &&
            ranks_part(g, value_count(&g->value.at[v])))
            sharded[v] = !has_state(g, v) ? SHARD_GRADIENTS : held ? g->ranks.shard : SHARD_STATE;
    return sharded;
}

/* All of them; shards are gathered when all are updated. */
static bool update_all(Graph *g, const Use *gradient, const uint8_t *sharded, size_t values,
                       Use scale)
{
    Use *updated = ARENA_ARRAY(g->arena, Use, values + 1);
    size_t count = 0;
    for (Id v = 0; v < values; v++) {
        if (gradient[v].value == NONE)
            continue;
        const Use next = update(g, v, gradient[v], scale);
        if (next.value == NONE)
            return false;
        if (sharded[v])
            updated[count++] = next;
    }
    ranks_gather(g, updated, count);
    return true;
}

/* ---- As early as may be --------------------------------------------------------------------- */

/* By node: the first position it may have: after what it reads, after every reader of what it
 * overwrites, and, if it commits something, after all that can fail. Nodes that are no updates
 * stay. */
static Id *find_earliest(const Graph *g)
{
    Id *earliest = ARENA_ARRAY(g->arena, Id, g->node.count);
    Id *reader = ARENA_ARRAY(g->arena, Id, g->value.count); /* the last one that is no update */
    Id last_lookup = 0; /* of the forward pass; the backward pass looks up the same */
    for (Id n = 0; n < g->node.count; n++) {
        const Node *node = &g->node.at[n];
        earliest[n] = n;
        if (node_may_fail(node))
            last_lookup = n;
        for (Id i = 0; i < node->uses && node->phase != PHASE_UPDATE; i++)
            if (node_use(g, node, i).value != NONE)
                reader[node_use(g, node, i).value] = n;
    }
    for (Id n = 0; n < g->node.count; n++) {
        const Node *node = &g->node.at[n];
        if (node->phase != PHASE_UPDATE || node->program != PROGRAM_STEP)
            continue;
        earliest[n] = node_commits(g, node) ? last_lookup : 0;
        for (Id i = 0; i < node->uses; i++) {
            Id value = node_use(g, node, i).value;
            if (value == NONE)
                continue;
            Id made = g->value.at[value].node;
            if (made != NONE && earliest[made] > earliest[n])
                earliest[n] = earliest[made];
            if (reader[value] > earliest[n])
                earliest[n] = reader[value];
        }
    }
    return earliest;
}

/* A stable sort of the nodes by earliest: counting, since places are node numbers. */
static void move_up(Graph *g)
{
    size_t count = g->node.count;
    Id *earliest = find_earliest(g), *start = ARENA_ARRAY(g->arena, Id, count + 1);
    Node *sorted = ARENA_ARRAY(g->arena, Node, count);
    for (size_t n = 0; n < count; n++)
        start[earliest[n] + 1]++;
    for (size_t n = 0; n < count; n++)
        start[n + 1] += start[n];
    for (size_t n = 0; n < count; n++) {
        Id to = start[earliest[n]]++;
        sorted[to] = g->node.at[n];
        for (Id i = 0; i < sorted[to].values; i++)
            g->value.at[node_value(&sorted[to], i)].node = to;
    }
    memcpy(g->node.at, sorted, count * sizeof *sorted);
}

bool updates(Graph *g, const Use *gradients)
{
    size_t values = g->value.count;
    Use *gradient = ARENA_ARRAY(g->arena, Use, values), scale;
    Use *last = ARENA_ARRAY(g->arena, Use, values);
    memcpy(gradient, gradients, values * sizeof *gradient);
    memset(last, 0xff, values * sizeof *last); /* NONE */
    const size_t staged = g->staged.count;
    const bool alone = g->ranks.state == NONE; /* then each micro-batch moves them as it comes */
    if (!check_staged(g, gradient) || !ranks_stage(g, gradient) || (alone && !move_staged(g, last)))
        return false;
    const uint8_t *sharded = find_sharded(g, gradient, values);
    ranks_reduce(g, gradient, sharded, values);
    begin_update(g, gradient, values);
    g->staged.count = staged;
    ranks_unstage(g, gradient);
    if (!alone && !move_staged(g, last))
        return false;
    if (!clip_values(g, gradient, values) || !clip_norm(g, gradient, sharded, values, &scale) ||
        !update_all(g, gradient, sharded, values, scale))
        return false;
    if (!commit_staged(g, last, values, is_scaled(g) ? scale : nothing) ||
        (is_scaled(g) && !loss_scale_end(g, scale)))
        return false;
    move_up(g);
    return true;
}
