/* Loss scaling, for training in f16: small gradients would round to 0 there.
 *
 * The backward pass begins at the scale in place of 1, so all gradients have it as a factor. When
 * all of them are there, summed over micro-batches, `unscale` decides whether the step counts: it
 * does where no gradient overflowed. Whoever changes what is saved reads that (updates.c), and
 * leaves its bytes alone where it does not. Then the scale moves on (Micikevicius et al. 2018). All
 * scales are powers of two, so none of it rounds.
 *
 * The state is one value of three numbers: the scale, the good steps since it changed, and how many
 * steps were skipped.
 */
#include "frontend/frontend.h"

#include <stddef.h>

static const char name[] = "train.loss_scale";

bool loss_scale_begin(Graph *g)
{
    static const double start[] = {65536, 0, 0};
    static const int64_t dim[] = {sizeof start / sizeof *start};
    g->loss_scale = NONE;
    if (g->precision != F16)
        return true;
    const Id taken = graph_find(g, name);
    if (taken != NONE) {
        diag_error(g->diag, g->value.at[taken].span, "%s is the loss scale's name in f16", name);
        diag_hint(g->diag, "give it another name");
        return false;
    }
    g->loss_scale = graph_value(g, VALUE_STATE, name, F32, 1, dim, g->train.span);
    g->value.at[g->loss_scale].init =
        (Init){.kind = INIT_LIST, .list = start, .count = sizeof start / sizeof *start};
    return true;
}

Use loss_scale_factor(Graph *g)
{
    return g->loss_scale == NONE ? graph_literal(g, 1, F32)
                                 : use_make(g, g->loss_scale, (View){.rank = 0});
}

bool loss_scale_end(Graph *g, Use good)
{
    const Call from = {.span = g->train.span, .phase = PHASE_UPDATE, .name = "train"};
    const Use operand[] = {use_of(g->loss_scale), good};
    return call_op(g, &from, "loss_scale", 2, operand).value != NONE;
}
