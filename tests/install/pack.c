/* A program of somebody else's that packs two buffers with the installed library. */
#include <gplan/pack.h>
#include <gplan/remat.h>

#include <stdio.h>

int main(void)
{
    const PackBuffer buffer[] = {
        {.lower = 0, .upper = 3, .size = 64, .fixed = PACK_FREE},
        {.lower = 2, .upper = 4, .size = 32, .fixed = PACK_FREE},
    };
    uint64_t offset[2];
    PackProblem problem = {.buffer = buffer, .count = 2};
    PackSolution solution = {.offset = offset};
    if (pack_solve(&problem, NULL, &solution) != PACK_OK || solution.height != 96) {
        puts("two buffers that meet in time must lie beside each other");
        return 1;
    }
    return 0;
}
