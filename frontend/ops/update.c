/* Optimizers, and what stands between gradients and them. The operands of an optimizer are the
 * parameter, its gradient and the factor of clipping; its state is made by the row, one tensor
 * like the parameter for each. */
#include "frontend/ops/rules.h"

#include <string.h>

static bool make_states(Graph *g, Call *c)
{
    View w = call_view(g, c, 0);
    for (int i = 0; i < MAX_ARGS && c->op->args[i].name; i++) {
        const Arg *arg = &c->op->args[i];
        if (!(arg->flags & ARG_PARAM) || call_has(c, i)) /* tensors stand first */
            continue;
        bool unused = arg->flags & ARG_OPTIONAL && call_attr(c, "momentum")->number == 0;
        if (!unused && !call_state(g, c, arg->name, init_const(0), w.rank, w.dim))
            return false;
    }
    return true;
}

static bool shape_update(Graph *g, Call *c)
{
    View w = call_view(g, c, 0);
    for (size_t i = 0; i < MAX_OUTPUTS && c->op->updates[i]; i++)
        if (call_has(c, c->op->updates[i] - 1) && !call_output(g, c, F32, w.rank, w.dim))
            return false;
    return true;
}

static bool shape_first(Graph *g, Call *c)
{
    View x = call_view(g, c, 0);
    return call_output(g, c, F32, x.rank, x.dim);
}

static bool shape_collect(Graph *g, Call *c)
{
    View all = call_view(g, c, 0), part = call_view(g, c, 1);
    int64_t axis = call_int(c, "axis");
    bool fits = all.rank == part.rank && axis >= 0 && axis < all.rank &&
                call_dtype(g, c, 0) == call_dtype(g, c, 1);
    for (int i = 0; i < all.rank && fits; i++)
        fits = i == axis ? all.dim[i] % part.dim[i] == 0 : all.dim[i] == part.dim[i];
    if (!fits)
        return call_error(g, c, "%s is not a part of %s", use_text(g, call_operand(c, 1)),
                          use_text(g, call_operand(c, 0)));
    return call_output(g, c, call_dtype(g, c, 0), all.rank, all.dim);
}

static bool shape_factor(Graph *g, Call *c)
{
    return call_output(g, c, F32, 0, (int64_t[1]){0});
}

#define OPERANDS                               \
    {.name = "w"}, {.name = "g"},              \
    {                                          \
        .name = "scale", .flags = ARG_OPTIONAL \
    }
#define STATE(n)                      \
    {                                 \
        .name = n, .flags = ARG_PARAM \
    }
#define NUMBER(n, default_)                                \
    {                                                      \
        .name = n, .kind = ARG_FLOAT, .fallback = default_ \
    }
#define RATE(default_)                                                                \
    {.name = "lr", .kind = ARG_FLOAT, .flags = ARG_FRONT, .fallback = default_},      \
    {                                                                                 \
        .name = "lr_scale", .kind = ARG_FLOAT, .flags = ARG_HIDDEN, .fallback = "1.0" \
    }
#define OPTIMIZER                                                     \
    .kernel = "update", .params = make_states, .shape = shape_update, \
    .flags = OP_EFFECT | OP_HIDDEN | OP_OPTIMIZER | OP_FLAT, .batch = batch_never

const OpRow ops_update[] = {
    {.name = "sgd",
     .args = {OPERANDS,
              {.name = "v", .flags = ARG_PARAM | ARG_OPTIONAL},
              RATE("0.01"),
              NUMBER("momentum", "0.0"),
              {.name = "nesterov", .kind = ARG_BOOL, .fallback = "false"},
              NUMBER("weight_decay", "0.0")},
     .updates = {1, 4},
     OPTIMIZER},
    {.name = "adam",
     .args = {OPERANDS, STATE("m"), STATE("v"), RATE("0.001"), NUMBER("beta1", "0.9"),
              NUMBER("beta2", "0.999"), NUMBER("eps", "1e-8"), NUMBER("weight_decay", "0.0")},
     .updates = {1, 4, 5},
     OPTIMIZER},
    {.name = "adamw",
     .args = {OPERANDS, STATE("m"), STATE("v"), RATE("0.001"), NUMBER("beta1", "0.9"),
              NUMBER("beta2", "0.999"), NUMBER("eps", "1e-8"), NUMBER("weight_decay", "0.01")},
     .updates = {1, 4, 5},
     OPTIMIZER},
    {.name = "rmsprop",
     .args = {OPERANDS,
              STATE("v"),
              {.name = "b", .flags = ARG_PARAM | ARG_OPTIONAL},
              RATE("0.01"),
              NUMBER("alpha", "0.99"),
              NUMBER("eps", "1e-8"),
              NUMBER("momentum", "0.0"),
              NUMBER("weight_decay", "0.0")},
     .updates = {1, 4, 5},
     OPTIMIZER},
    {.name = "adagrad",
     .args = {OPERANDS, STATE("v"), RATE("0.01"), NUMBER("eps", "1e-10"),
              NUMBER("weight_decay", "0.0")},
     .updates = {1, 4},
     OPTIMIZER},
    {.name = "lion",
     .args = {OPERANDS, STATE("m"), RATE("0.0001"), NUMBER("beta1", "0.9"), NUMBER("beta2", "0.99"),
              NUMBER("weight_decay", "0.0")},
     .updates = {1, 4},
     OPTIMIZER},
    {.name = "accumulate",
     .help = "the sum of a gradient over micro-batches: the first one starts it",
     .expr = "run->micro ? a + b : b",
     .args = {{.name = "sum"}, {.name = "g"}},
     .updates = {1},
     .flags = OP_ELEMENTWISE | OP_FLOAT | OP_EFFECT | OP_HIDDEN,
     .batch = batch_never},
    {.name = "accumulate_more",
     .help = "the same with another gradient of the same micro-batch",
     .expr = "a + b",
     .args = {{.name = "sum"}, {.name = "g"}},
     .updates = {1},
     .flags = OP_ELEMENTWISE | OP_FLOAT | OP_EFFECT | OP_HIDDEN,
     .batch = batch_never},
    {.name = "stage",
     .help = "what a step makes of state, from the first micro-batch on; committed at its end",
     .args = {{.name = "staged"}, {.name = "state"}},
     .shape = shape_first,
     .updates = {1},
     .flags = OP_EFFECT | OP_HIDDEN,
     .batch = batch_never},
    {.name = "commit",
     .kernel = "stage",
     .args = {{.name = "state"}, {.name = "staged"}},
     .shape = shape_first,
     .updates = {1},
     .flags = OP_EFFECT | OP_HIDDEN,
     .batch = batch_never},
    {.name = "collect",
     .args = {{.name = "all"}, {.name = "part"}, {.name = "axis", .kind = ARG_INT}},
     .shape = shape_collect,
     .updates = {1},
     .strided = 1 << 1,
     .flags = OP_EFFECT | OP_HIDDEN | OP_STORED,
     .batch = batch_never},
    {.name = "clip_factor",
     .args = {{.name = "g", .flags = ARG_VARIADIC}, {.name = "limit", .kind = ARG_FLOAT}},
     .shape = shape_factor,
     .flags = OP_HIDDEN | OP_FLAT,
     .batch = batch_never},
    {.name = "add_window",
     .args = {{.name = "x"},
              {.name = "dy"},
              {.name = "offset", .kind = ARG_INT, .help = "of the window, in elements of x"},
              {.name = "stride", .kind = ARG_INTS, .count = MAX_RANK, .help = "likewise"}},
     .shape = shape_first,
     .strided = 1 << 1,
     .inplace = 1 << 0,
     .flags = OP_HIDDEN,
     .batch = batch_never},
    {0},
};
