/* The packer in somebody else's compiler: only planner/pack/pack.h and libgplan.a are needed.
 *
 *     cc -I. examples/pack/pack_example.c libgplan.a -lm -o pack_example && ./pack_example
 */
#include "planner/pack/pack.h"

#include <inttypes.h>
#include <stdio.h>

int main(void)
{
    /* Five tensors of a small network; moments are the positions of the ops that use them. */
    static const char *const name[] = {"input", "weights", "hidden", "scratch", "output"};
    static const PackBuffer buffer[] = {
        {.lower = 0, .upper = 2, .size = 3000, .align = 64, .fixed = PACK_FREE},
        {.lower = 0,
         .upper = 5,
         .size = 8192,
         .align = 64,
         .fixed = 0}, /* the caller wants it at 0 */
        {.lower = 1, .upper = 4, .size = 1024, .align = 64, .fixed = PACK_FREE},
        {.lower = 2, .upper = 3, .size = 2500, .align = 64, .fixed = PACK_FREE},
        {.lower = 3, .upper = 5, .size = 40, .align = 64, .fixed = PACK_FREE},
    };
    enum { COUNT = sizeof buffer / sizeof *buffer };
    uint64_t offset[COUNT];
    PackProblem problem = {.buffer = buffer, .count = COUNT};
    PackSolution solution = {.offset = offset};

    if (pack_solve(&problem, NULL, &solution) == PACK_INVALID) {
        fprintf(stderr, "buffer %zu: %s\n", solution.bad, solution.why);
        return 1;
    }
    for (size_t i = 0; i < COUNT; i++)
        printf("%-8s %6" PRIu64 " bytes at %6" PRIu64 "\n", name[i], buffer[i].size, offset[i]);
    printf("arena    %6" PRIu64 " bytes, lower bound %" PRIu64 " (%s)\n", solution.height,
           solution.bound, pack_stop_name(solution.stop));

    /* A checker that shares no code with the solver, for those who trust nobody. */
    PackVerdict verdict = pack_check(&problem, &solution);
    if (verdict.fault)
        fprintf(stderr, "%s\n", pack_fault_name(verdict.fault));
    return verdict.fault != PACK_FAULT_NONE;
}
