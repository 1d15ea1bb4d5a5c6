/* Keeps decisions away from where rounding would make them.
 *
 * The derivative of a relu jumps at 0, that of a maxpool where two elements are equal. An element
 * that is nearer to such a place than the rounding of float is on one side here and on the other in
 * the emitted program: a whole term of the gradient is then there or not, and of millions of
 * elements some always are. Both gradients are right, and they cannot be compared. So parameters
 * are moved, before anything is compared: the bias before a relu, channel by channel, to the widest
 * gap between elements near it; the filter before a maxpool by a hundredth, where two elements of a
 * window are nearly equal. Then 1e-5 holds without exceptions. */
#include "tests/interpreter/interpreter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PATH = 8, TRIES = 30, ROUNDS = 8 };
static const double NEAR_TIE = 2e-6; /* of the largest element */

/* Values from what adds the bias up to the one that is decided on, all of one shape. */
typedef struct {
    Id value[MAX_PATH], bias;
    int count, axis;
} Path;

static bool plain(const Machine *m, Use use)
{
    View view = use_view(m->g, use);
    return view_is_plain(&view, &m->g->value.at[use.value]);
}

static bool own_parameter(const Machine *m, Use use)
{
    return use.value != NONE && m->g->value.at[use.value].kind == VALUE_PARAM &&
           m->readers[use.value] == 1;
}

/* The one axis along which a vector is added; -1: it is added in another way. */
static int added_axis(const Machine *m, Use use)
{
    View view = use_view(m->g, use);
    int axis = -1;
    for (int i = 0; i < view.rank; i++)
        if (view.stride[i] != 0 && view.dim[i] > 1) {
            if (axis >= 0 || view.stride[i] != 1)
                return -1;
            axis = i;
        }
    return axis >= 0 && view.dim[axis] == value_count(&m->g->value.at[use.value]) ? axis : -1;
}

static bool find_bias(const Machine *m, Id value, Path *path)
{
    const Graph *g = m->g;
    if (g->value.at[value].node == NONE || m->readers[value] != 1 || path->count == MAX_PATH)
        return false;
    const Node *n = &g->node.at[g->value.at[value].node];
    path->value[path->count++] = value;
    bool channels = strcmp(n->op->name, "conv2d") == 0 ||
                    strcmp(n->op->name, "conv_transpose2d") == 0 ||
                    strcmp(n->op->name, "batchnorm_train") == 0;
    if (channels && n->uses > 2 && own_parameter(m, node_use(g, n, 2))) {
        path->bias = node_use(g, n, 2).value;
        path->axis = 1;
        return true;
    }
    for (Id i = 0; i < n->uses && strcmp(n->op->name, "add") == 0; i++) {
        Use use = node_use(g, n, i);
        if (own_parameter(m, use) && (path->axis = added_axis(m, use)) >= 0) {
            path->bias = use.value;
            return true;
        }
    }
    int here = path->count;
    for (Id i = 0; i < n->uses && strcmp(n->op->name, "add") == 0; i++) {
        path->count = here;
        if (plain(m, node_use(g, n, i)) && find_bias(m, node_use(g, n, i).value, path))
            return true;
    }
    return false;
}

/* ---- Kinks ----------------------------------------------------------------------------------- */

static int kinks_of(const Graph *g, Id node, double *kink)
{
    const char *op = g->node.at[node].op->name;
    if (strcmp(op, "clip") == 0) {
        kink[0] = node_attr(g, node, "low")->number;
        kink[1] = node_attr(g, node, "high")->number;
        return 2;
    }
    kink[0] = 0;
    return strcmp(op, "relu") == 0 || strncmp(op, "leaky_relu", 10) == 0 || strcmp(op, "abs") == 0;
}

typedef struct {
    int64_t outer, channels, inner;
} Layout;

static Layout layout_of(const Value *value, int axis)
{
    Layout l = {1, value->dim[axis], 1};
    for (int i = 0; i < value->rank; i++)
        *(i < axis ? &l.outer : &l.inner) *= i == axis ? 1 : value->dim[i];
    return l;
}

static double least_gap(const double *near, int64_t count, double shift)
{
    double least = INFINITY;
    for (int64_t i = 0; i < count; i++)
        least = fmin(least, fabs(near[i] + shift));
    return least;
}

/* The shift, within a few hundredths of the deviation, that leaves the channel the widest gap. */
static double best_shift(const double *near, int64_t count, double deviation)
{
    double best = 0, gap = least_gap(near, count, 0);
    for (int i = 1; i <= 2 * TRIES && count; i++) {
        double shift = (i % 2 ? 1 : -1) * (double)((i + 1) / 2) * 0.001 * deviation;
        double wide = least_gap(near, count, shift);
        if (wide > gap) {
            gap = wide;
            best = shift;
        }
    }
    return best;
}

static void shift_channel(Machine *m, const Path *path, int64_t channel, double shift)
{
    double *bias = &m->value[path->bias][channel], moved = (float)(*bias + shift) - *bias;
    for (int k = 0; k < path->count; k++) {
        Layout l = layout_of(&m->g->value.at[path->value[k]], path->axis);
        for (int64_t o = 0; o < l.outer; o++)
            for (int64_t i = 0; i < l.inner; i++)
                m->value[path->value[k]][(o * l.channels + channel) * l.inner + i] += moved;
    }
    *bias += moved;
}

static void settle_channel(Machine *m, const Path *path, Id value, int64_t channel,
                           const double *kink, int kinks, double *near, Decisions *d)
{
    Layout l = layout_of(&m->g->value.at[value], path->axis);
    const double *x = m->value[value];
    double squares = 0;
    int64_t count = 0, size = l.outer * l.inner;
    for (int64_t i = 0; i < size; i++) {
        double e = x[(i / l.inner * l.channels + channel) * l.inner + i % l.inner];
        squares += e * e;
    }
    double deviation = sqrt(squares / (double)size);
    for (int64_t i = 0; i < size; i++)
        for (int k = 0; k < kinks; k++) {
            double off = x[(i / l.inner * l.channels + channel) * l.inner + i % l.inner] - kink[k];
            if (fabs(off) < 0.1 * deviation)
                near[count++] = off;
        }
    double shift = best_shift(near, count, deviation);
    if (shift != 0) {
        shift_channel(m, path, channel, shift);
        d->moved++;
    }
}

static void settle_kinks(Machine *m, Id node, Decisions *d)
{
    const Graph *g = m->g;
    Use use = node_use(g, &g->node.at[node], 0);
    double kink[2], most = 0, least = INFINITY;
    int kinks = kinks_of(g, node, kink);
    if (!kinks || !m->wanted[use.value])
        return;
    Path path = {.count = 0};
    int64_t count = value_count(&g->value.at[use.value]);
    if (plain(m, use) && find_bias(m, use.value, &path)) {
        double *near = need_doubles(2 * count);
        for (int64_t c = 0; c < g->value.at[use.value].dim[path.axis]; c++)
            settle_channel(m, &path, use.value, c, kink, kinks, near, d);
        free(near);
    }
    for (int64_t i = 0; i < count; i++) {
        most = fmax(most, fabs(m->value[use.value][i]));
        for (int k = 0; k < kinks; k++)
            least = fmin(least, fabs(m->value[use.value][i] - kink[k]));
    }
    if (least / most < d->least) {
        d->least = least / most;
        d->where = g->node.at[node].name;
    }
}

/* ---- Ties ------------------------------------------------------------------------------------ */

/* The difference of the two largest of a window. Equal ones are zeros that a relu made: whichever
 * is taken, nothing flows back through it. */
static double tie_gap(const Machine *m, Id node, int64_t i)
{
    const Graph *g = m->g;
    const Value *y = &g->value.at[g->node.at[node].value];
    Use use = node_use(g, &g->node.at[node], 0);
    const Value *x = &g->value.at[use.value];
    const int64_t *kernel = node_attr(g, node, "kernel")->list;
    const int64_t *stride = node_attr(g, node, "stride")->list;
    const int64_t *pad = node_attr(g, node, "pad")->list;
    const double *plane = m->value[use.value] + i / (y->dim[2] * y->dim[3]) * x->dim[2] * x->dim[3];
    int64_t row = i / y->dim[3] % y->dim[2] * stride[0] - pad[0];
    int64_t column = i % y->dim[3] * stride[1] - pad[1];
    double first = -INFINITY, second = -INFINITY;
    for (int64_t h = row < 0 ? 0 : row; h < row + kernel[0] && h < x->dim[2]; h++)
        for (int64_t w = column < 0 ? 0 : column; w < column + kernel[1] && w < x->dim[3]; w++) {
            double e = plane[h * x->dim[3] + w];
            second = fmax(second, fmin(e, first));
            first = fmax(first, e);
        }
    return first == second ? INFINITY : first - second;
}

/* The filter that makes a channel of the value, through what works on each channel by itself. */
static bool find_filter(const Machine *m, Id value, int64_t channel, Id *conv, int64_t *filter)
{
    const Graph *g = m->g;
    while (g->value.at[value].node != NONE) {
        Id node = g->value.at[value].node;
        const Node *n = &g->node.at[node];
        Id next = 0;
        if (strcmp(n->op->name, "conv2d") == 0) {
            *conv = node;
            *filter = channel;
            return own_parameter(m, node_use(g, n, 1));
        }
        if (strcmp(n->op->name, "concat") == 0 && node_attr(g, node, "axis")->list[0] == 1) {
            while (channel >= use_view(g, node_use(g, n, next)).dim[1])
                channel -= use_view(g, node_use(g, n, next++)).dim[1];
        } else if (strcmp(n->op->name, "relu") != 0 && strcmp(n->op->name, "clip") != 0 &&
                   strcmp(n->op->name, "batchnorm_train") != 0) {
            return false;
        }
        if (!plain(m, node_use(g, n, next)))
            return false;
        value = node_use(g, n, next).value;
    }
    return false;
}

/* A hundredth up or down for each weight of the filter. */
static void redraw_filter(Machine *m, Id conv, int64_t filter, int round)
{
    Id w = node_use(m->g, &m->g->node.at[conv], 1).value;
    const Value *value = &m->g->value.at[w];
    int64_t size = value_count(value) / value->dim[0];
    uint64_t seed = (uint64_t)filter * 8191 + (uint64_t)round;
    for (int64_t i = 0; i < size; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        double *x = &m->value[w][filter * size + i];
        *x = (float)(*x * (1 + 0.01 * ((double)(seed >> 40) * 0x1p-23 - 1)));
    }
}

/* Moves the filters of channels with a near tie; the first node to run again, or NONE. */
static Id redraw_ties(Machine *m, Id node, int round, Decisions *d)
{
    const Graph *g = m->g;
    Id value = node_use(g, &g->node.at[node], 0).value, first = NONE;
    const Value *y = &g->value.at[g->node.at[node].value];
    int64_t count = value_count(y), plane = y->dim[2] * y->dim[3];
    bool *tied = need_memory((size_t)y->dim[1]);
    double most = 0;
    for (int64_t i = 0; i < value_count(&g->value.at[value]); i++)
        most = fmax(most, fabs(m->value[value][i]));
    for (int64_t i = 0; i < count; i++)
        if (tie_gap(m, node, i) < NEAR_TIE * most) {
            d->ties += round == 0;
            tied[i / plane % y->dim[1]] = true;
        }
    for (int64_t c = 0; c < y->dim[1]; c++) {
        Id conv;
        int64_t filter;
        if (!tied[c] || !find_filter(m, value, c, &conv, &filter))
            continue;
        redraw_filter(m, conv, filter, round);
        d->redrawn++;
        first = conv < first ? conv : first;
    }
    free(tied);
    return first;
}

static void decide_node(Machine *m, Id node, Decisions *d);

static void settle_ties(Machine *m, Id node, Decisions *d)
{
    const Graph *g = m->g;
    Use use = node_use(g, &g->node.at[node], 0);
    if (strcmp(g->node.at[node].op->name, "maxpool2d") != 0 || !m->wanted[use.value] ||
        !plain(m, use))
        return;
    for (int round = 0; round < ROUNDS; round++) {
        Id first = redraw_ties(m, node, round, d);
        if (first == NONE)
            return;
        for (Id n = first; n < node; n++)
            decide_node(m, n, d);
    }
    d->tied++;
}

static void decide_node(Machine *m, Id node, Decisions *d)
{
    settle_kinks(m, node, d);
    settle_ties(m, node, d);
    machine_node(m, node);
}

void machine_decide(Machine *m, Decisions *d)
{
    *d = (Decisions){.least = INFINITY, .where = "nowhere"};
    for (Id n = 0; n < m->g->node.count; n++)
        decide_node(m, n, d);
}
