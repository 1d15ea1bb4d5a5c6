/* dropout: nothing at all when inferring; when training an elementwise op that draws its mask from
 * a counter (runtime/c/rng.h), so that a mask is never stored and a recomputed one is the same. */
#include "frontend/ops/rules.h"

static bool build_dropout(Graph *g, Call *c)
{
    double rate = call_attr(c, "rate")->number;
    if (!want_f32(g, c, 0))
        return false;
    if (!(rate >= 0 && rate < 1))
        return call_error(g, c, "rate = %g must be in [0, 1)", rate);
    if (!g->training || rate == 0) {
        call_result(g, c, call_operand(c, 0));
        return true;
    }
    Call drop = call_begin(g, c, "drop");
    call_set(&drop, "rate", rate);
    call_use(g, &drop, call_operand(c, 0));
    if (!call_finish(g, &drop))
        return false;
    call_result(g, c, drop.result.at[0]);
    return true;
}

const OpRow ops_dropout[] = {
    {.name = "dropout",
     .help = "when training, zero with probability rate, and x / (1 - rate) otherwise; else x",
     .args = {{.name = "x", .help = "f32"},
              {.name = "rate",
               .kind = ARG_FLOAT,
               .flags = ARG_FRONT,
               .fallback = "0.5",
               .help = "from 0 to less than 1"}},
     .build = build_dropout,
     .flags = OP_RANDOM},
    {.name = "drop",
     .kernel = "rng",
     .expr = "a * gp_random_keep(run, key, gp_random_place(run, i, parts, span), rate)",
     .dexpr = {"dy * gp_random_keep(run, key, gp_random_place(run, i, parts, span), rate)"},
     .help = "dropout when training",
     .args = {{.name = "x"},
              {.name = "rate", .kind = ARG_FLOAT, .fallback = "0.5"},
              {.name = "parts", .kind = ARG_INT, .flags = ARG_HIDDEN, .fallback = "0"},
              {.name = "span", .kind = ARG_INT, .flags = ARG_HIDDEN, .fallback = "0"}},
     .flags = OP_ELEMENTWISE | OP_RANDOM | OP_FLOAT | OP_HIDDEN,
     .batch = batch_each},
    {0},
};
