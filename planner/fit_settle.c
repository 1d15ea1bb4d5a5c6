/* The plan that was chosen, with its occurrences moved back towards the given order.
 *
 * Requires: a trial. Leaves: its plan in an order where equal layers are equal again, so that they
 * are emitted as loops; with the arena and the cost of the trial, since --min-budget and --budget
 * speak of those. Where the new lifetimes do not pack within that arena, less is moved: live bytes
 * stay within those of the trial; and if they still do not, the packer tries harder before the
 * order stays as it was found.
 */
#include "planner/fit.h"

Order settle_order(Fit *f, const Order *order, uint64_t limit)
{
    Order settled = *order;
    Id *number = ARENA_ARRAY(f->arena, Id, f->task.clusters->count); /* by cluster: its node */
    for (int p = 0; p < PROGRAMS; p++) {
        const RematProblem *problem = &f->program[p].problem;
        RematSchedule found = {ARENA_ARRAY(f->arena, RematId, order->count[p]), order->count[p]};
        for (RematId n = 0; n < problem->nodes; n++)
            number[f->program[p].cluster[n]] = n;
        for (Id i = 0; i < order->count[p]; i++)
            found.node[i] = number[order->cluster[p][i]];
        RematSchedule moved = remat_settle(problem, &found, (int64_t)limit, f->arena);
        adopt(f, &settled, p, &moved);
    }
    return settled;
}

static bool is_same(const Order *a, const Order *b)
{
    for (int p = 0; p < PROGRAMS; p++)
        for (Id i = 0; i < a->count[p]; i++)
            if (a->cluster[p][i] != b->cluster[p][i])
                return false;
    return true;
}

static Plan *pack_settled(Fit *f, const Trial *trial, const Order *order, uint64_t steps)
{
    const Worth worth = {trial->arena, trial->cost, trial->rest};
    PlanOptions options = options_now(f);
    Task now = f->task;
    now.options = &options;
    return plan_moved(f->arena, &now, order, pack_effort(f, steps), &worth);
}

Plan *settle(Fit *f, const Trial *trial)
{
    const Order order = settle_order(f, &trial->order, trial->arena);
    Plan *plan = NULL;
    if (!is_same(&order, &trial->order))
        plan = pack_settled(f, trial, &order, PACK_STEPS);
    if (!plan && trial->peak < trial->arena) {
        const Order less = settle_order(f, &trial->order, trial->peak);
        if (!is_same(&less, &trial->order))
            plan = pack_settled(f, trial, &less, PACK_STEPS);
    }
    if (!plan && !is_same(&order, &trial->order))
        plan = pack_settled(f, trial, &order, PACK_SETTLED);
    return plan ? plan : plan_order(f->arena, &f->task, &trial->order, 0, 0, &trial->packing);
}
