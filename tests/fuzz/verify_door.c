/* A plan as JSON, to be checked: of gplan's own, and of whoever else. */
#include "tests/fuzz/door.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (door_run((const char *[]){"verify", door_file(data, size), NULL}) == 0)
        door_accept(data, size);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    return json_change(data, size, most, seed);
}
