/* What --calibrate measured, read back for a plan that searches. */
#include "tests/fuzz/door.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char model[] = "model m(batch B = 4)\n"
                            "input x : f32[B, 8]\n"
                            "output y = tanh(dense(relu(dense(x, 16)), 8))\n";

/* The model's file, which is there as long as the process. */
static const char *model_file(void)
{
    static char path[] = "/tmp/gplan_fuzz.XXXXXX";
    static int file = -1;
    if (file >= 0)
        return path;
    file = mkstemp(path);
    if (file < 0 || write(file, model, sizeof model - 1) != (ssize_t)(sizeof model - 1))
        door_fail("the model cannot be written");
    unlink(path);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return path;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *budget = size % 2 ? "2K" : "1G";
    if (door_run((const char *[]){model_file(), "--effort", "1", "--budget", budget, "--profile",
                                  door_file(data, size), NULL}) == 0)
        door_accept(data, size);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    return json_change(data, size, most, seed);
}
