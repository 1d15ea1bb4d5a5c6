/* A graph of costs and sizes, to be run within a budget. */
#include "tests/fuzz/door.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const budgets[] = {"min", "50%", "80%", "100", "1G"};
    const char *budget = budgets[door_hash(data, size) % 5];
    if (door_run((const char *[]){"remat", door_file(data, size), "--budget", budget, "--effort",
                                  "5", NULL}) == 0)
        door_accept(data, size);
    return 0;
}
