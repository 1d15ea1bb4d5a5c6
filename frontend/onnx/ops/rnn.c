/* Recurrent layers, written out step by step.
 *
 * The product of all inputs with W is one product; each step adds that of the state with R. What is
 * not given at first (the state) is left out of the first step, so that no zeros are stored. A
 * sequence that is shorter than the others keeps its state from its end on (backwards: up to it),
 * and its outputs there are 0. */
#include "frontend/onnx/ops/quant.h"

#include <string.h>

enum { MAX_STEPS_OUT = 1024, MAX_GATES = 4, MAX_ACTS = 6 };

typedef struct {
    const char *name;
    double alpha, beta;
} Activation;

/* One direction of a layer. */
typedef struct {
    Import *m;
    int gates;
    int64_t steps, hidden;
    bool batch_first, reverse;
    double clip; /* 0: none */
    Activation act[3];
    const Expr *x;       /* [T, B, I], or [B, T, I] */
    const Expr *w, *r;   /* [I, gates * H], [H, gates * H] */
    const Expr *wb, *rb; /* [gates * H]; NULL: none */
    const Expr *peep;    /* [3 * H]; NULL: none */
    const Expr *h, *c;   /* of the step before; NULL: zeros */
    const Expr *lengths; /* [B, 1]; NULL: all are whole */
    bool quantised;      /* what is multiplied by a weight is rounded to 8 bits before */
    const Tensor *given; /* the products of all inputs */
    const Expr *y[MAX_STEPS_OUT];
} Layer;

/* ---- Settings ------------------------------------------------------------------------------- */

typedef struct {
    const char *name;
    double alpha, beta;
    int takes; /* of alpha and beta */
} Known;

static const Known known_acts[] = {
    {"Sigmoid", 0, 0, 0},
    {"Tanh", 0, 0, 0},
    {"Relu", 0, 0, 0},
    {"Softsign", 0, 0, 0},
    {"Softplus", 0, 0, 0},
    {"Affine", 1, 0, 2},
    {"Elu", 1, 0, 1},
    {"LeakyRelu", 0.01, 0, 1},
    {"ThresholdedRelu", 1, 0, 1},
    {"ScaledTanh", 1, 1, 2},
    {"HardSigmoid", 0.2, 0.5, 2},
};

static const Known *find_act(const char *name)
{
    for (size_t i = 0; i < sizeof known_acts / sizeof *known_acts; i++)
        if (strcmp(known_acts[i].name, name) == 0)
            return &known_acts[i];
    return NULL;
}

/* Those of a direction: `count` from its place in the lists on. */
static bool take_acts(Layer *l, const char *const *fallback, int count, int direction)
{
    Import *m = l->m;
    size_t names, alphas, betas, alpha_at = 0, beta_at = 0;
    const char *const *name = attr_words(m, "activations", &names);
    const double *alpha = attr_floats(m, "activation_alpha", &alphas);
    const double *beta = attr_floats(m, "activation_beta", &betas);
    if (name && names < (size_t)(count * (direction + 1)))
        return refuse(m, "activations: %zu of them, not %d for each direction", names, count);
    for (int i = 0; i < count * (direction + 1); i++) {
        const char *word = name ? name[i] : fallback[i % count];
        const Known *known = find_act(word);
        if (!known)
            return refuse(m, "activations: %s is not known", word);
        Activation act = {known->name, known->alpha, known->beta};
        if (known->takes >= 1 && alpha && alpha_at < alphas)
            act.alpha = alpha[alpha_at++];
        if (known->takes >= 2 && beta && beta_at < betas)
            act.beta = beta[beta_at++];
        if (i >= count * direction)
            l->act[i - count * direction] = act;
    }
    return true;
}

static const Expr *activate(Layer *l, int i, const Expr *x)
{
    static const struct {
        const char *name, *op;
    } plain[] = {{"Sigmoid", "sigmoid"},
                 {"Tanh", "tanh"},
                 {"Relu", "relu"},
                 {"Softsign", "softsign"},
                 {"Softplus", "softplus"}};
    Import *m = l->m;
    const Activation *act = &l->act[i];
    if (l->clip > 0)
        x = CALL(m, "clip", {x}, {real(m, -l->clip), "low"}, {real(m, l->clip), "high"});
    for (size_t k = 0; k < sizeof plain / sizeof *plain; k++)
        if (strcmp(plain[k].name, act->name) == 0)
            return CALL(m, plain[k].op, {x});
    const Expr *alpha = real(m, act->alpha), *beta = real(m, act->beta);
    if (strcmp(act->name, "Elu") == 0)
        return CALL(m, "elu", {x}, {alpha, "alpha"});
    if (strcmp(act->name, "LeakyRelu") == 0)
        return CALL(m, "leaky_relu", {x}, {alpha, "slope"});
    if (strcmp(act->name, "Affine") == 0)
        return binary(m, "add", binary(m, "mul", x, alpha), beta);
    if (strcmp(act->name, "ScaledTanh") == 0)
        return binary(m, "mul", CALL(m, "tanh", {binary(m, "mul", x, beta)}), alpha);
    if (strcmp(act->name, "HardSigmoid") == 0)
        return CALL(m, "clip", {binary(m, "add", binary(m, "mul", x, alpha), beta)},
                    {real(m, 0), "low"}, {real(m, 1), "high"});
    return CALL(m, "where", {binary(m, "greater", x, alpha)}, {x}, {real(m, 0)});
}

/* ---- Pieces --------------------------------------------------------------------------------- */

/* x[i], or x[:, i]. */
static const Expr *pick(Import *m, const Expr *x, int axis, int64_t i)
{
    return CALL(m, "squeeze", {slice_axis(m, x, axis, integer(m, i), integer(m, i + 1))},
                {integer(m, axis), "axis"});
}

/* A part of H columns out of the last axis of a matrix, or of a vector. */
static const Expr *gate(const Layer *l, const Expr *x, int axis, int i)
{
    return slice_axis(l->m, x, axis, integer(l->m, i * l->hidden),
                      integer(l->m, (i + 1) * l->hidden));
}

/* A step on the way, as a name to read; NULL with a message. */
static const Expr *named(Import *m, const Expr *value)
{
    const Tensor *tensor = state(m, value);
    return tensor ? tensor->expr : NULL;
}

/* Input i for a direction; NULL: omitted. */
static const Expr *part(Import *m, int i, const char *role, int direction)
{
    const Tensor *tensor = given(m, i);
    if (!tensor)
        return NULL;
    return pick(m, role ? weight(m, i, role) : use(m, i), 0, direction);
}

static const Expr *sum(Import *m, const Expr *a, const Expr *b)
{
    return a && b ? binary(m, "add", a, b) : a ? a : b;
}

static const Expr *product(Import *m, const Expr *a, const Expr *b)
{
    return a && b ? binary(m, "mul", a, b) : NULL;
}

/* What is multiplied by a weight; NULL with a message. */
static const Expr *times(const Layer *l, const Expr *x, const Expr *weights)
{
    const Expr *left = l->quantised ? quantised_and_back(l->m, x) : x;
    return left ? binary(l->m, "matmul", left, weights) : NULL;
}

/* ---- One step of each kind ------------------------------------------------------------------ */

/* The inputs' share of step t: [B, gates * H]. */
static const Expr *share(const Layer *l, int64_t t)
{
    return pick(l->m, l->given->expr, l->batch_first ? 1 : 0, t);
}

static bool step_rnn(Layer *l, int64_t t)
{
    Import *m = l->m;
    const Expr *x = share(l, t);
    if (l->h)
        x = sum(m, x, times(l, l->h, l->r));
    return (l->h = named(m, activate(l, 0, x))) != NULL;
}

/* Gates in the order of ONNX: input, output, forget, cell. */
static bool step_lstm(Layer *l, int64_t t)
{
    enum { I, O, F, C };
    Import *m = l->m;
    const Expr *all = share(l, t), *peep[3] = {NULL, NULL, NULL};
    if (l->h)
        all = sum(m, all, times(l, l->h, l->r));
    if (!(all = named(m, all)))
        return false;
    for (int i = 0; i < 3 && l->peep; i++)
        peep[i] = gate(l, l->peep, 0, i);
    const Expr *in =
        named(m, activate(l, 0, sum(m, gate(l, all, 1, I), product(m, l->c, peep[I]))));
    if (!in)
        return false;
    const Expr *keep = NULL;
    if (l->c && attr_int(m, "input_forget", 0)) /* the gates are one */
        keep = binary(m, "sub", real(m, 1), in);
    else if (l->c)
        keep = activate(l, 0, sum(m, gate(l, all, 1, F), product(m, l->c, peep[F])));
    const Expr *cell = activate(l, 1, gate(l, all, 1, C));
    cell = sum(m, product(m, keep, l->c), product(m, in, cell));
    if (!(l->c = named(m, cell)))
        return false;
    const Expr *out = activate(l, 0, sum(m, gate(l, all, 1, O), product(m, l->c, peep[O])));
    double clip = l->clip;
    l->clip = 0; /* the cell itself is not clipped */
    l->h = named(m, binary(m, "mul", out, activate(l, 2, l->c)));
    l->clip = clip;
    return l->h != NULL;
}

/* Gates: update, reset, hidden. */
static bool step_gru(Layer *l, int64_t t)
{
    enum { Z, R, H };
    Import *m = l->m;
    bool after = attr_int(m, "linear_before_reset", 0) != 0;
    const Expr *x = named(m, share(l, t)), *back = NULL, *bias = NULL;
    if (!x)
        return false;
    if (l->h && !(back = named(m, binary(m, "matmul", l->h, l->r))))
        return false;
    const Expr *gates[2];
    for (int i = 0; i < 2; i++) {
        const Expr *one = sum(m, gate(l, x, 1, i), back ? gate(l, back, 1, i) : NULL);
        gates[i] = activate(l, 0, sum(m, one, l->rb ? gate(l, l->rb, 0, i) : NULL));
    }
    if (l->rb)
        bias = gate(l, l->rb, 0, H);
    const Expr *hidden;
    if (after)
        hidden = product(m, gates[R], sum(m, back ? gate(l, back, 1, H) : NULL, bias));
    else if (l->h)
        hidden = sum(m, binary(m, "matmul", binary(m, "mul", gates[R], l->h), gate(l, l->r, 1, H)),
                     bias);
    else
        hidden = bias;
    hidden = activate(l, 1, sum(m, gate(l, x, 1, H), hidden));
    const Expr *update = named(m, gates[Z]);
    if (!update)
        return false;
    const Expr *fresh = product(m, binary(m, "sub", real(m, 1), update), hidden);
    return (l->h = named(m, sum(m, fresh, product(m, update, l->h)))) != NULL;
}

/* ---- Layers --------------------------------------------------------------------------------- */

typedef struct {
    int gates, acts;
    const char *fallback[3];
    bool (*step)(Layer *l, int64_t t);
    bool biases_apart; /* the state's is not simply added to the inputs' */
    int state_at;      /* input: the first state; the cell follows it */
    int peep_at;       /* 0: none */
    bool quantised;    /* W and R are whole numbers, with their inputs first */
} Kind;

static const Kind rnn_kind = {1, 1, {"Tanh"}, step_rnn, false, 5, 0};
static const Kind gru_kind = {3, 2, {"Sigmoid", "Tanh"}, step_gru, true, 5, 0};
static const Kind lstm_kind = {4, 3, {"Sigmoid", "Tanh", "Tanh"}, step_lstm, false, 5, 7};
static const Kind quantised_lstm_kind = {4, 3,   {"Sigmoid", "Tanh", "Tanh"}, step_lstm, false, 5,
                                         7, true};

/* The first state of a direction: [B, H]. */
static const Expr *first_state(const Layer *l, int i, int direction)
{
    const Tensor *tensor = i < inputs(l->m) ? given(l->m, i) : NULL;
    return tensor ? pick(l->m, use(l->m, i), l->batch_first ? 1 : 0, direction) : NULL;
}

/* The biases of both products, one after the other in one vector. */
static void take_biases(Layer *l, const Kind *kind, int direction)
{
    Import *m = l->m;
    const Expr *both = part(m, 3, "bias", direction);
    int64_t half = l->gates * l->hidden;
    if (!both)
        return;
    l->wb = slice_axis(m, both, 0, integer(m, 0), integer(m, half));
    l->rb = slice_axis(m, both, 0, integer(m, half), integer(m, 2 * half));
    if (!kind->biases_apart) {
        l->wb = sum(m, l->wb, l->rb);
        l->rb = NULL;
    }
}

/* A step, after which a sequence that has ended is what it was before. */
static bool run_step(Layer *l, const Kind *kind, int64_t t)
{
    Import *m = l->m;
    const Expr *h = l->h ? l->h : real(m, 0), *c = l->c ? l->c : real(m, 0);
    if (!kind->step(l, t))
        return false;
    l->y[t] = l->h;
    if (!l->lengths)
        return true;
    const Expr *goes_on = named(m, binary(m, "greater", l->lengths, integer(m, t)));
    if (!goes_on)
        return false;
    l->y[t] = CALL(m, "where", {goes_on}, {l->h}, {real(m, 0)});
    l->h = named(m, CALL(m, "where", {goes_on}, {l->h}, {h}));
    if (l->c)
        l->c = named(m, CALL(m, "where", {goes_on}, {l->c}, {c}));
    return l->h && (kind->gates != MAX_GATES || l->c);
}

/* A weight of a direction: [I, gates * H]. Of whole numbers: with its scale and zero point, which
 * are at `scale_at` and after it, one for all or one for each column. */
static const Expr *take_weight(const Layer *l, int i, int scale_at, int direction)
{
    Import *m = l->m;
    const Expr *one = part(m, i, "weight", direction);
    if (!l->quantised)
        return CALL(m, "transpose", {one});
    return binary(
        m, "mul",
        binary(m, "sub", cast(m, one, F32), cast(m, part(m, scale_at + 1, NULL, direction), F32)),
        part(m, scale_at, NULL, direction));
}

static bool run_direction(Layer *l, const Kind *kind, int direction)
{
    Import *m = l->m;
    if (!take_acts(l, kind->fallback, kind->acts, direction))
        return false;
    l->w = take_weight(l, 1, 8, direction);
    l->r = take_weight(l, 2, 10, direction);
    take_biases(l, kind, direction);
    if (kind->peep_at && kind->peep_at < inputs(m))
        l->peep = part(m, kind->peep_at, "weight", direction);
    l->h = first_state(l, kind->state_at, direction);
    l->c = kind->gates == MAX_GATES ? first_state(l, kind->state_at + 1, direction) : NULL;
    const Expr *all = times(l, l->x, l->w);
    l->given = all ? state(m, sum(m, all, l->wb)) : NULL;
    for (int64_t i = 0; i < l->steps; i++) {
        int64_t t = l->reverse ? l->steps - 1 - i : i;
        if (!l->given || !run_step(l, kind, t))
            return false;
    }
    return true;
}

/* Lengths that are all those of the whole are no lengths. */
static bool take_lengths(Import *m, Layer *l)
{
    const Tensor *lengths = inputs(m) > 4 ? given(m, 4) : NULL;
    if (!lengths)
        return true;
    if (lengths->rank != 1)
        return refuse(m, "sequence_lens has %d dimensions, not one", lengths->rank);
    const Number *number = numbers(m, lengths);
    bool whole = number != NULL;
    for (int64_t i = 0; whole && i < lengths->dim[0]; i++)
        whole = !number[i].expr && number[i].integer == l->steps;
    const Expr *column[2] = {integer(m, -1), integer(m, 1)};
    if (!whole)
        l->lengths = named(m, reshape(m, use(m, 4), 2, column));
    return whole || l->lengths;
}

static bool begin(Import *m, Layer *l, const Kind *kind, int *directions)
{
    const Tensor *x = given(m, 0), *r = given(m, 2);
    const char *way = attr_word(m, "direction", "forward");
    if (!x || !given(m, 1) || !r || x->rank != 3 || r->rank != 3)
        return refuse(m, "X, W and R must be there, of three dimensions each");
    l->batch_first = attr_int(m, "layout", 0) != 0;
    int time = l->batch_first ? 1 : 0;
    if (x->open[time])
        return refuse(m, "the length of a sequence must be known: give its dimension with -D");
    if (x->dim[time] > MAX_STEPS_OUT)
        return refuse(m, "a sequence of %lld steps; at most %d are written out",
                      (long long)x->dim[time], MAX_STEPS_OUT);
    *directions = strcmp(way, "bidirectional") == 0 ? 2 : 1;
    int columns = kind->quantised ? 2 : 1, rows = kind->quantised ? 1 : 2;
    if (r->dim[0] != *directions || r->dim[columns] != kind->gates * r->dim[rows])
        return refuse(m, "R does not fit to direction = %s", way);
    for (int i = 8; i < 12 && kind->quantised; i++)
        if (i >= inputs(m) || !given(m, i) || given(m, i)->rank < 1 || given(m, i)->rank > 2)
            return refuse(m, "input %d must be there, for each direction", i);
    l->quantised = kind->quantised;
    l->gates = kind->gates;
    l->steps = x->dim[time];
    l->hidden = r->dim[rows];
    l->reverse = strcmp(way, "reverse") == 0;
    l->clip = attr_float(m, "clip", 0);
    return take_lengths(m, l) && (l->x = use(m, 0)) != NULL;
}

/* Of each direction one, along an axis of their own. */
static const Expr *join(Import *m, int directions, const Expr *const *one, int axis)
{
    return CALL(m, "stack", {list(m, (size_t)directions, one)}, {integer(m, axis), "axis"});
}

/* Y: [T, directions, B, H], or [B, T, directions, H]. */
static const Expr *join_steps(const Layer *layer, int directions)
{
    Import *m = layer->m;
    const Expr *one[2];
    for (int d = 0; d < directions; d++)
        one[d] = CALL(m, "stack", {list(m, (size_t)layer[d].steps, layer[d].y)},
                      {integer(m, layer->batch_first ? 1 : 0), "axis"});
    return join(m, directions, one, layer->batch_first ? 2 : 1);
}

static bool layer(Import *m, const Kind *kind)
{
    Layer l[2] = {{.m = m}};
    int directions = 1;
    if (!begin(m, &l[0], kind, &directions))
        return false;
    l[1] = l[0];
    l[1].reverse = true;
    const Expr *last[2], *cell[2];
    for (int d = 0; d < directions; d++) {
        if (!run_direction(&l[d], kind, d))
            return false;
        last[d] = l[d].h;
        cell[d] = l[d].c;
    }
    int axis = l->batch_first ? 1 : 0;
    return (!wanted(m, 0) || result(m, 0, join_steps(l, directions))) &&
           (!wanted(m, 1) || result(m, 1, join(m, directions, last, axis))) &&
           (!wanted(m, 2) || result(m, 2, join(m, directions, cell, axis)));
}

static bool rnn(Import *m)
{
    return layer(m, &rnn_kind);
}

static bool gru(Import *m)
{
    return layer(m, &gru_kind);
}

static bool lstm(Import *m)
{
    return layer(m, &lstm_kind);
}

static bool quantised_lstm(Import *m)
{
    return layer(m, &quantised_lstm_kind);
}

const Translation onnx_rnn[] = {
    {"RNN", 7, rnn},
    {"GRU", 7, gru},
    {"LSTM", 7, lstm},
    {"DynamicQuantizeLSTM", 1, quantised_lstm, .domain = "com.microsoft"},
    {0},
};
