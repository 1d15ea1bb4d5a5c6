/* Optimizers, and ops between gradients and them. The operands of an optimizer are the
 * parameter, its gradient and the factor of clipping; its state is made by the row, one tensor
 * like the parameter for each. */
#include "frontend/ops/rules.h"

#include <string.h>

/* State of 8 bits: codes in blocks, each with the largest of its numbers. The state of a parameter
 * that is smaller than this stays f32, as in bitsandbytes: it saves nothing and costs the most. */
enum { CODED_BLOCK = 256, CODED_LEAST = 4096 };

static int64_t coded_blocks(const View *w)
{
    return (view_count(w) + CODED_BLOCK - 1) / CODED_BLOCK;
}

static bool is_absmax(const Arg *arg)
{
    return strcmp(arg->name, "absmax") == 0;
}

bool optimizer_keeps(const Call *c, int i)
{
    const Arg *arg = &c->op->args[i];
    return arg->flags & ARG_PARAM && !is_absmax(arg) &&
           !(arg->flags & ARG_OPTIONAL && call_attr(c, "momentum")->number == 0);
}

/* Begins with zeros. On several ranks each may have a shard of it. */
static bool make_state(Graph *g, Call *c, int i, Dtype dtype, const View *is, const View *all)
{
    if (!call_state(g, c, c->op->args[i].name, init_const(0), dtype, is->rank, is->dim))
        return false;
    if (is != all) {
        View *whole = ARENA_NEW(g->arena, View);
        *whole = *all;
        g->value.at[call_operand(c, i).value].all = whole;
    }
    return true;
}

static bool make_states(Graph *g, Call *c)
{
    const View w = call_view(g, c, 0);
    const int64_t part = ranks_part(g, view_count(&w));
    const View shard = {.rank = 1, .dim = {part}}, *is = part ? &shard : &w;
    const bool coded = call_attr(c, "state")->number == 1 && view_count(&w) >= CODED_LEAST;
    int64_t states = 0;
    for (int i = 0; i < MAX_ARGS && c->op->args[i].name; i++) {
        if (!(c->op->args[i].flags & ARG_PARAM) || call_has(c, i)) /* tensors come first */
            continue;
        if (optimizer_keeps(c, i)) {
            states++;
            if (!make_state(g, c, i, coded ? U8 : F32, is, &w))
                return false;
        } else if (is_absmax(&c->op->args[i]) && coded && states) {
            const View all = {.rank = 2, .dim = {states, coded_blocks(&w)}};
            const View own = {.rank = 2, .dim = {states, coded_blocks(is)}};
            if (!make_state(g, c, i, F32, part ? &own : &all, &all))
                return false;
        }
    }
    return true;
}

/* Shards are lists, and shorter than the parameter. */
static bool is_shard(const View *w, const View *is)
{
    return is->rank == 1 && is->dim[0] > 0 && is->dim[0] < view_count(w);
}

/* State is like the parameter: f32, or codes with the numbers of their blocks. */
static bool check_state(Graph *g, Call *c, int operand, const Arg *arg, int64_t states)
{
    const View w = call_view(g, c, 0), is = call_view(g, c, operand);
    const View first = call_view(g, c, 3); /* all are shards, or none is */
    const View *like = is_shard(&w, &first) ? &first : &w;
    const Dtype dtype = call_dtype(g, c, operand);
    bool good;
    if (is_absmax(arg))
        good =
            dtype == F32 && is.rank == 2 && is.dim[0] == states && is.dim[1] == coded_blocks(like);
    else
        good = (dtype == F32 || dtype == U8) && is.rank == like->rank &&
               memcmp(is.dim, like->dim, (size_t)is.rank * sizeof *is.dim) == 0;
    return good || call_error(g, c, "%s does not fit the parameter", arg->name);
}

static bool shape_update(Graph *g, Call *c)
{
    const View w = call_view(g, c, 0), gradient = call_view(g, c, 1);
    int64_t states = 0, coded = 0;
    bool absmax = false;
    if (view_count(&gradient) != view_count(&w)) {
        const View first = call_has(c, 3) ? call_view(g, c, 3) : gradient;
        if (!is_shard(&w, &gradient) || view_count(&first) != view_count(&gradient))
            return call_error(g, c, "the gradient does not fit the parameter");
    }
    for (size_t i = 0; i < MAX_OUTPUTS && c->op->updates[i]; i++) {
        const int operand = c->op->updates[i] - 1;
        const Arg *arg = &c->op->args[operand]; /* tensors come first */
        if (!call_has(c, operand))
            continue;
        if (i > 0 && !check_state(g, c, operand, arg, states))
            return false;
        absmax |= i > 0 && is_absmax(arg);
        states += i > 0;
        coded += call_dtype(g, c, operand) == U8;
        const View is = call_view(g, c, operand);
        if (!call_output(g, c, call_dtype(g, c, operand), is.rank, is.dim))
            return false;
    }
    if (coded != (absmax ? states - 1 : 0))
        return call_error(g, c, "state is either f32, or 8 bits with absmax");
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

enum { SQUARES_CHUNK = 4096 }; /* numbers whose squares are one sum: runtime/c/clip_factor.h */
enum { SCALE_FACTS = 3 };      /* of the loss scale, and of what a step decides */

static bool shape_unscale(Graph *g, Call *c)
{
    const View state = call_view(g, c, 0);
    if (state.rank != 1 || state.dim[0] != SCALE_FACTS || call_dtype(g, c, 0) != F32)
        return call_error(g, c, "%s is no loss scale", use_text(g, call_operand(c, 0)));
    return call_output(g, c, F32, 1, (int64_t[]){SCALE_FACTS});
}

static int64_t squares_of(const Graph *g, const Call *c, size_t first)
{
    const int64_t ranks = call_int(c, "ranks");
    int64_t chunks = 0;
    for (size_t i = first; i + 1 < c->use.count; i += 2) {
        const View w = call_view(g, c, (int)i);
        chunks += ranks_cut(view_count(&w), ranks) / SQUARES_CHUNK;
    }
    return 2 * chunks; /* two i32 for each number of 64 bits */
}

/* Operands, in pairs: a parameter, and its gradient, or a shard of that. */
static bool check_pairs(Graph *g, Call *c, size_t first)
{
    const int64_t ranks = call_int(c, "ranks");
    bool good = ranks > 0 && c->use.count > first && (c->use.count - first) % 2 == 0;
    for (size_t i = first; good && i < c->use.count; i += 2) {
        const View w = call_view(g, c, (int)i), gradient = call_view(g, c, (int)i + 1);
        const int64_t count = view_count(&gradient);
        good = count == view_count(&w) || count == ranks_cut(view_count(&w), ranks);
    }
    return good || call_error(g, c, "its operands are no parameters with their gradients");
}

static bool shape_squares(Graph *g, Call *c)
{
    return check_pairs(g, c, 0) &&
           call_output(g, c, I32, 2, (int64_t[]){call_int(c, "ranks"), squares_of(g, c, 0)});
}

static bool check_squares(Graph *g, Call *c, int table)
{
    const View is = call_view(g, c, table);
    return check_pairs(g, c, (size_t)table + 1) &&
           ((call_dtype(g, c, table) == I32 && is.rank == 2 && is.dim[0] == call_int(c, "ranks") &&
             is.dim[1] == squares_of(g, c, (size_t)table + 1)) ||
            call_error(g, c, "%s is no table of squares", use_text(g, call_operand(c, table))));
}

static bool shape_factor_shards(Graph *g, Call *c)
{
    return check_squares(g, c, 0) && shape_factor(g, c);
}

static bool shape_unscale_shards(Graph *g, Call *c)
{
    return check_squares(g, c, 1) && shape_unscale(g, c);
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
#define ABSMAX                                              \
    {                                                       \
        .name = "absmax", .flags = ARG_PARAM | ARG_OPTIONAL \
    }
#define BITS                                                                      \
    {                                                                             \
        .name = "state", .kind = ARG_WORD, .flags = ARG_FRONT, .fallback = "f32", \
        .words = "f32 8bit"                                                       \
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
              ABSMAX,
              RATE("0.01"),
              NUMBER("momentum", "0.0"),
              {.name = "nesterov", .kind = ARG_BOOL, .fallback = "false"},
              NUMBER("weight_decay", "0.0"),
              BITS},
     .updates = {1, 4, 5},
     OPTIMIZER},
    {.name = "adam",
     .args = {OPERANDS, STATE("m"), STATE("v"), ABSMAX, RATE("0.001"), NUMBER("beta1", "0.9"),
              NUMBER("beta2", "0.999"), NUMBER("eps", "1e-8"), NUMBER("weight_decay", "0.0"), BITS},
     .updates = {1, 4, 5, 6},
     OPTIMIZER},
    {.name = "adamw",
     .args = {OPERANDS, STATE("m"), STATE("v"), ABSMAX, RATE("0.001"), NUMBER("beta1", "0.9"),
              NUMBER("beta2", "0.999"), NUMBER("eps", "1e-8"), NUMBER("weight_decay", "0.01"),
              BITS},
     .updates = {1, 4, 5, 6},
     OPTIMIZER},
    {.name = "rmsprop",
     .args = {OPERANDS,
              STATE("v"),
              {.name = "b", .flags = ARG_PARAM | ARG_OPTIONAL},
              ABSMAX,
              RATE("0.01"),
              NUMBER("alpha", "0.99"),
              NUMBER("eps", "1e-8"),
              NUMBER("momentum", "0.0"),
              NUMBER("weight_decay", "0.0"),
              BITS},
     .updates = {1, 4, 5, 6},
     OPTIMIZER},
    {.name = "adagrad",
     .args = {OPERANDS, STATE("v"), ABSMAX, RATE("0.01"), NUMBER("eps", "1e-10"),
              NUMBER("weight_decay", "0.0"), BITS},
     .updates = {1, 4, 5},
     OPTIMIZER},
    {.name = "lion",
     .args = {OPERANDS, STATE("m"), ABSMAX, RATE("0.0001"), NUMBER("beta1", "0.9"),
              NUMBER("beta2", "0.99"), NUMBER("weight_decay", "0.0"), BITS},
     .updates = {1, 4, 5},
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
     .args = {{.name = "state"}, {.name = "staged"}, {.name = "good", .flags = ARG_OPTIONAL}},
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
    {.name = "unscale",
     .help = "of the loss scale and all gradients that have it: the factor that takes it off and "
             "clips, whether all are finite, and how many steps were skipped",
     .args = {{.name = "g", .flags = ARG_VARIADIC},
              {.name = "limit", .kind = ARG_FLOAT, .help = "of the norm; 0: none"}},
     .shape = shape_unscale,
     .flags = OP_HIDDEN | OP_FLAT | OP_DECIDES,
     .batch = batch_never},
    {.name = "shard_squares",
     .kernel = "norm_shards",
     .help = "sums of squares of each rank's shards of gradients, a row for each rank",
     .args = {{.name = "g", .flags = ARG_VARIADIC}, {.name = "ranks", .kind = ARG_INT}},
     .shape = shape_squares,
     .flags = OP_HIDDEN | OP_FLAT | OP_HOST,
     .batch = batch_never},
    {.name = "clip_factor_shards",
     .kernel = "norm_shards",
     .help = "clip_factor of gradients that are sharded, by the squares of all ranks",
     .args = {{.name = "g", .flags = ARG_VARIADIC},
              {.name = "limit", .kind = ARG_FLOAT},
              {.name = "ranks", .kind = ARG_INT}},
     .shape = shape_factor_shards,
     .flags = OP_HIDDEN | OP_FLAT | OP_HOST,
     .batch = batch_never},
    {.name = "unscale_shards",
     .kernel = "norm_shards",
     .help = "unscale, likewise",
     .args = {{.name = "g", .flags = ARG_VARIADIC},
              {.name = "limit", .kind = ARG_FLOAT},
              {.name = "ranks", .kind = ARG_INT}},
     .shape = shape_unscale_shards,
     .flags = OP_HIDDEN | OP_FLAT | OP_HOST | OP_DECIDES,
     .batch = batch_never},
    {.name = "loss_scale",
     .kernel = "unscale",
     .help = "the loss scale of the next step, good steps at it, and how many were skipped",
     .args = {{.name = "state"},
              {.name = "good"},
              {.name = "every", .kind = ARG_INT, .fallback = "2000", .help = "good steps"}},
     .shape = shape_first,
     .updates = {1},
     .flags = OP_EFFECT | OP_HIDDEN,
     .batch = batch_never},
    {.name = "clip_scaled",
     .help = "clip_value of a gradient with its loss scale; what overflowed stays to be seen",
     .expr = "a - a != 0 ? a : a < -b * limit ? -b * limit : a > b * limit ? b * limit : a",
     .args = {{.name = "g"}, {.name = "scale"}, {.name = "limit", .kind = ARG_FLOAT}},
     .flags = OP_ELEMENTWISE | OP_FLOAT | OP_HIDDEN,
     .batch = batch_never},
    {.name = "add_window",
     .args = {{.name = "x"},
              {.name = "dy"},
              {.name = "offset", .kind = ARG_INT, .help = "of the window, in elements of x"},
              {.name = "stride", .kind = ARG_INTS, .count = MAX_RANK, .help = "likewise"}},
     .shape = shape_first,
     .strided = 1 << 1,
     .inplace = 1 << 0,
     .flags = OP_HIDDEN | OP_HALF,
     .batch = batch_never},
    {0},
};
