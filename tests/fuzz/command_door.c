/* A command line: an argument on each line of the input. It runs in a folder of its own, with one
 * small file of each kind; what a command line writes there is gone before the next. */
#define _DEFAULT_SOURCE
#include "tests/fuzz/door.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_ARGUMENTS = 24, MOST_BYTES = 1000 };

static const struct {
    const char *name, *text;
} files[] = {
    {"m.g", "model m(batch B = 4, C = 4)\ninput x : f32[B, C]\ninput y : i32[B]\n"
            "h = relu(dense(x, 2*C))\noutput o = softmax(h)\n"
            "train cross_entropy(dense(h, 3), y) using sgd(lr = 0.1)\n"},
    {"p.csv", "id,lower,upper,size\na,0,3,4\nb,1,2,8\nc,2,4,6\n"},
    {"r.txt", "3 3\n10 1.5\n20 0\n5 2e3\n0 1\n0 2\n1 2\n"},
    {"p.json", "{\"gplan_profile\": 1, \"product_flops\": 1e10, \"conv_flops\": 1e10, "
               "\"loop_flops\": 1e9, \"bytes\": 1e10, \"start\": 1e-7}"},
};
enum { FILES = sizeof files / sizeof *files };

static bool is_ours(const char *name)
{
    for (int i = 0; i < FILES; i++)
        if (strcmp(files[i].name, name) == 0)
            return true;
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Only our files are there, as they were at first. */
static void tidy(void)
{
    DIR *folder = opendir(".");
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (!is_ours(entry->d_name))
            remove(entry->d_name);
    if (folder)
        closedir(folder);
    for (int i = 0; i < FILES; i++) {
        FILE *file = fopen(files[i].name, "w");
        if (!file || fputs(files[i].text, file) < 0 || fclose(file) != 0)
            door_fail("the files cannot be written");
    }
}

static void enter(void)
{
    static char folder[] = "/tmp/gplan_fuzz.XXXXXX";
    if (!mkdtemp(folder) || chdir(folder) != 0)
        door_fail("no folder to run in");
    tidy();
}

/* Whether the line may run: nothing is written elsewhere, and --calibrate, which measures for
 * seconds, is left out under all its short forms. */
static bool may_run(const char *text)
{
    return !strchr(text, '/') && !strstr(text, "--cal") && !strstr(text, "..");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool entered;
    char text[MOST_BYTES + 1];
    const char *argument[MOST_ARGUMENTS + 4] = {NULL};
    int count = 0;
    if (size > MOST_BYTES || memchr(data, 0, size))
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    if (!may_run(text))
        return 0;
    if (!entered)
        enter();
    entered = true;
    for (char *at = text; *at && count < MOST_ARGUMENTS;) {
        char *end = at + strcspn(at, "\n");
        bool last = !*end;
        *end = 0;
        argument[count++] = at;
        at = last ? end : end + 1;
    }
    if (count > 0 && strcmp(argument[0], "verify") != 0) { /* little effort, unless it is given */
        argument[count++] = "--effort";
        argument[count++] = "1";
    }
    if (door_run(argument) == 0)
        door_accept(data, size);
    if (strstr((const char *)text, "-o") || count > 0)
        tidy();
    return 0;
}
