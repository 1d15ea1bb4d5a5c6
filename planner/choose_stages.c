/* What each way to shard takes, for the report: the same choice otherwise, planned as it comes. */
#include "planner/planner.h"

void choose_stages(const Model *model, const Target *target, const PlanOptions *options,
                   const Choice *choice, uint64_t arena[SHARDS])
{
    PlanOptions how = *options;
    how.budget = how.most = 0;
    how.smallest = false;
    how.no_recompute = true;
    how.ring = choice->ring;
    for (int shard = SHARD_NONE; shard < SHARDS; shard++) {
        Choice other = *choice;
        Search search;
        other.shard = (uint8_t)shard;
        Arena *scratch = arena_new();
        Built built = build(model, target, &other, diag_new(scratch, NULL, false));
        const Plan *plan =
            built.graph ? plan_make(built.arena, built.graph, built.clusters, target, &how, &search)
                        : NULL;
        arena[shard] = plan ? plan->arena[SPACE_ARENA] : 0;
        built_free(&built);
        arena_free(scratch);
    }
}
