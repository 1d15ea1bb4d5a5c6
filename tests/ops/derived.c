/* See derived.h. */
#include "tests/ops/derived.h"

#include <stdlib.h>
#include <string.h>

static bool is_real(const Graph *g, Use use)
{
    return use.value != NONE && dtype_is_real((Dtype)g->value.at[use.value].dtype);
}

/* loss = sum over results of sum(result * weights); NONE where no result is real. What a kernel
 * gives beside its result is for its gradient alone. */
static Use add_loss(Graph *g, const Call *call)
{
    Call at = {.name = "loss"};
    Use loss = {NONE, NONE};
    for (size_t i = 0; i < (call->op->build ? call->result.count : 1); i++) {
        Use result = call->result.at[i];
        if (!is_real(g, result))
            continue;
        View view = use_view(g, result);
        const char *name = arena_printf(g->arena, "weights%zu", i);
        Id weights = graph_value(g, VALUE_CONST, name, F32, view.rank, view.dim, (Span){0});
        Use part = call_op(g, &at, "mul", 2, (Use[]){result, use_of(weights)});
        part = call_op(g, &at, "sum", 1, &part);
        loss = loss.value == NONE ? part : call_op(g, &at, "add", 2, (Use[]){loss, part});
    }
    return loss;
}

bool case_derive(Arena *arena, const OpCase *row, Derived *d, const char **wrong)
{
    d->built = case_build(arena, row, PLAIN, -1, true);
    Graph *g = d->built.graph;
    bool any = false;
    if (d->built.refused)
        return false;
    for (int i = 0; i < d->built.operands; i++)
        if (is_real(g, d->built.use[i])) {
            g->value.at[d->built.use[i].value].kind = VALUE_PARAM;
            any = true;
        }
    d->loss = any ? add_loss(g, &d->built.call) : (Use){NONE, NONE};
    if (d->loss.value == NONE)
        return false;
    char *message = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&message, &length);
    g->diag = diag_new(arena, to, false);
    bool good = gradients(g, d->loss, &d->gradient);
    fclose(to);
    if (!good)
        *wrong = arena_copy(arena, message, length);
    free(message);
    return true;
}

Built case_with_gradients(Arena *arena, const OpCase *row)
{
    Derived d;
    const char *wrong = NULL;
    if (!(op_find(row->op)->flags & OP_EFFECT)) {
        if (case_derive(arena, row, &d, &wrong) && !wrong)
            return d.built;
        free(d.built.message);
    }
    return case_build(arena, row, PLAIN, -1, row->training);
}
