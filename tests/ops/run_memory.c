/* See run_graph.h. */
#include "tests/ops/run_graph.h"

#include <stdlib.h>

void *run_memory(size_t bytes)
{
    void *at = NULL;
    return posix_memalign(&at, 256, bytes) == 0 ? at : NULL;
}

void run_memory_free(void *at)
{
    free(at);
}
