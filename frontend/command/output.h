/* Files that gplan writes appear whole or not at all: every one is written and synced under a name
 * of its own before the first takes its place, and where one cannot, those before it are put back.
 * A mode stays, and so does a symlink. What is no regular file (/dev/stdout, a pipe) is written to
 * at once. */
#ifndef GPLAN_OUTPUT_H
#define GPLAN_OUTPUT_H

#include "frontend/base/text.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct {
    const char *path; /* NULL: standard output */
    Text text;
    bool (*stream)(int file, const void *what); /* or what writes it; NULL: the text */
    const void *what;
} OutFile;

enum { MAX_OUT_FILES = 4 };

/* NULL where all were written; else the one that could not be, and errno. */
const OutFile *files_write(const OutFile *file, size_t count);

/* The same for one file that `write` writes; false: errno says why. */
bool file_write(const char *path, void (*write)(FILE *to, const void *what), const void *what);

#endif
