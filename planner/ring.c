/* How far ahead data is read: what that hides of the time it takes.
 *
 * Workers share the slot that is waited for, so a second slot keeps all of them busy while the
 * first is read, and a third takes what is uneven. Without workers the step reads its samples
 * itself, when it comes to them.
 */
#include "planner/internal.h"

#include <math.h>

static uint32_t most_readers(const Target *target)
{
    return target->readers ? target->readers : target->threads;
}

Ring ring_wanted(const Graph *g, const Clusters *clusters, const Target *target)
{
    if (!g->data.count || !target->ring)
        return (Ring){0, 0};
    double load = target->ring(target, g, (Ring){1, 0}).seconds;
    double compute = plan_cost(g, clusters, target);
    double workers = compute > 0 ? ceil(load / compute) : 1;
    uint32_t most = most_readers(target);
    return (Ring){workers > 1 ? 3 : 2, workers < 1 ? 1 : workers < most ? (uint32_t)workers : most};
}

double ring_wait(const Graph *g, const Clusters *clusters, const Target *target, Ring ring)
{
    if (!g->data.count || !target->ring)
        return 0;
    double load = target->ring(target, g, (Ring){1, 0}).seconds;
    if (!ring.workers)
        return load;
    double shared =
        load / most_readers(target); /* of all cores, also where it runs beside the step */
    double late = load / ring.workers - plan_cost(g, clusters, target);
    return late > shared ? late : shared;
}
