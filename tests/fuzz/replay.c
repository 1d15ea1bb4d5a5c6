/* A fuzzer for where there is none: tries each file it is given, then CHANGES changes of them, the
 * same ones on every run. What ends the process is left as replay.input.
 * usage: DOOR CHANGES FILE... */
#include "tests/fuzz/door.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 1 << 16 };

void __sanitizer_set_report_fd(void *fd) __attribute__((weak));
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
    __attribute__((weak));

typedef struct {
    uint8_t *data;
    size_t size;
    const char *name;
} Input;

static Dice dice;
static int last; /* a file with the input at hand: what is left where that ends the process */

/* One byte more, less, or other. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most)
{
    size_t at = dice_below(&dice, (unsigned)size + 1);
    switch (dice_below(&dice, 3)) {
    case 0:
        if (size == most)
            return size;
        memmove(data + at + 1, data + at, size - at);
        data[at] = (uint8_t)dice_below(&dice, 256);
        return size + 1;
    case 1:
        if (at == size)
            return size;
        memmove(data + at, data + at + 1, size - at - 1);
        return size - 1;
    default:
        if (at < size)
            data[at] = (uint8_t)dice_below(&dice, 256);
        return size;
    }
}

static Input read_input(const char *path)
{
    Input input = {.data = malloc(MOST), .name = path};
    FILE *file = fopen(path, "rb");
    if (!file || !input.data) {
        perror(path);
        exit(2);
    }
    input.size = fread(input.data, 1, MOST, file);
    fclose(file);
    return input;
}

/* In a buffer of its own size, so that a read beyond the end is seen. */
static void try_input(const Input *input)
{
    uint8_t *copy = malloc(input->size ? input->size : 1);
    memcpy(copy, input->data, input->size);
    if (ftruncate(last, 0) != 0 || pwrite(last, copy, input->size, 0) != (ssize_t)input->size)
        exit(2);
    LLVMFuzzerTestOneInput(copy, input->size);
    free(copy);
}

int main(int argc, char **argv)
{
    int changes = argc > 2 ? atoi(argv[1]) : 0, inputs = argc - 2;
    if (inputs < 1) {
        fprintf(stderr, "usage: %s CHANGES FILE...\n", argv[0]);
        return 2;
    }
    LLVMFuzzerInitialize(&argc, &argv);
    if (__sanitizer_set_report_fd)
        __sanitizer_set_report_fd((void *)(intptr_t)dup(2));
    last = open("replay.input", O_RDWR | O_CREAT | O_TRUNC, 0666);
    Input *input = malloc((size_t)inputs * sizeof *input);
    for (int i = 0; i < inputs; i++) {
        input[i] = read_input(argv[2 + i]);
        try_input(&input[i]);
    }
    Input now = {.data = malloc(MOST)};
    for (int i = 0; i < changes; i++) {
        const Input *from = &input[i % inputs];
        memcpy(now.data, from->data, now.size = from->size);
        for (unsigned times = 1 + dice_below(&dice, 2); times > 0; times--)
            now.size = LLVMFuzzerCustomMutator
                           ? LLVMFuzzerCustomMutator(now.data, now.size, MOST, (unsigned)i)
                           : LLVMFuzzerMutate(now.data, now.size, MOST);
        try_input(&now);
    }
    for (int i = 0; i < inputs; i++)
        free(input[i].data);
    free(input);
    free(now.data);
    return 0; /* what is left now was never freed: a leak of the door, and a fault */
}
