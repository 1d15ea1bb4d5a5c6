/* A table of buffers to pack. */
#include "tests/fuzz/door.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const ways[][3] = {
        {"--quiet"}, {"--capacity", "100"}, {"--emit", "csv"}, {"--emit", "svg"}};
    const char *const *way = ways[door_hash(data, size) % 4];
    if (door_run((const char *[]){"pack", door_file(data, size), "--effort", "1000", way[0], way[1],
                                  NULL}) == 0)
        door_accept(data, size);
    return 0;
}
