#define _GNU_SOURCE
#include "tests/fuzz/door.h"

#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_ARGUMENTS = 64, MOST_TEXT = 4096, SHARE = 1000, FIRST = 20 };

/* The input, the messages about it, and where reports of faults go. */
static int input = -1, messages = -1, report = 2;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    report = dup(2); /* the fuzzer closes what the program writes to */
    return 0;
}

void door_fail(const char *what)
{
    dprintf(report, "FAULT: %s\n", what);
    abort();
}

/* All that is written to standard error from here on is a message about an input. */
static void begin(void)
{
    int nowhere = open("/dev/null", O_RDWR);
    input = memfd_create("input", 0);
    messages = memfd_create("messages", 0);
    if (nowhere < 0 || input < 0 || messages < 0 || dup2(nowhere, 0) < 0 || dup2(nowhere, 1) < 0 ||
        dup2(messages, 2) < 0)
        door_fail("the door cannot be set up");
    setvbuf(stderr, NULL, _IOFBF, 1 << 16);
}

const char *door_file(const uint8_t *data, size_t size)
{
    static char path[40];
    if (input < 0)
        begin();
    if (ftruncate(input, 0) != 0 || pwrite(input, data, size, 0) != (ssize_t)size)
        door_fail("the input cannot be written");
    snprintf(path, sizeof path, "/proc/self/fd/%d", input);
    return path;
}

int door_run(const char *const *argument)
{
    char *argv[MOST_ARGUMENTS] = {(char *)(uintptr_t) "gplan"};
    char text[MOST_TEXT];
    int argc = 1;
    for (; argument[argc - 1] && argc < MOST_ARGUMENTS - 1; argc++)
        argv[argc] = (char *)(uintptr_t)argument[argc - 1];
    if (messages < 0)
        begin();
    fflush(stderr);
    if (ftruncate(messages, 0) != 0 || lseek(2, 0, SEEK_SET) != 0)
        door_fail("messages cannot be forgotten");
    optind = 0; /* glibc's word for: a new command line */
    int status = gplan_main(argc, argv);
    fflush(stderr);
    ssize_t length = pread(messages, text, sizeof text - 1, 0);
    text[length < 0 ? 0 : length] = 0;
    if (status < 0 || status > 2 || (status == 0 ? strstr(text, "error: ") != NULL : length <= 0)) {
        dprintf(report, "exit status %d\n%s\n", status, text);
        door_fail("neither done nor refused with a message");
    }
    return status;
}

uint64_t door_hash(const uint8_t *data, size_t size)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ data[i]) * 0x100000001b3u;
    return hash ^ hash >> 32;
}

static uint64_t accepted;

static void say_accepted(void)
{
    dprintf(report, "accepted: %llu\n", (unsigned long long)accepted);
}

static void keep(const char *name, const uint8_t *data, size_t size)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", getenv("FUZZ_ACCEPTED"), name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0)
        door_fail("what was accepted cannot be written");
}

void door_accept(const uint8_t *data, size_t size)
{
    static Dice dice;
    char name[40];
    if (accepted == 0)
        atexit(say_accepted);
    uint64_t number = accepted++, slot = number;
    if (!getenv("FUZZ_ACCEPTED"))
        return;
    if (number % SHARE == FIRST) {
        snprintf(name, sizeof name, "share_%llu", (unsigned long long)(number / SHARE));
        keep(name, data, size);
    }
    const char *sample = getenv("FUZZ_SAMPLE");
    unsigned slots = sample ? (unsigned)strtoul(sample, NULL, 10) : 0;
    if (number >= slots)
        slot = dice_below(&dice, (unsigned)accepted);
    if (slot < slots) {
        snprintf(name, sizeof name, "sample_%llu", (unsigned long long)slot);
        keep(name, data, size);
    }
}
