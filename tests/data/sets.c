#include "tests/data/sets.h"

#include <stdlib.h>

void enter_folder(void)
{
    char folder[] = "/tmp/gplan_data.XXXXXX";
    cr_assert(mkdtemp(folder) && chdir(folder) == 0);
    setenv("XDG_CACHE_HOME", folder, 1);
}

void write_file(const char *name, const void *data, size_t bytes)
{
    FILE *file = fopen(name, "wb");
    cr_assert(file && fwrite(data, 1, bytes, file) == bytes && fclose(file) == 0);
}
