/* A folder that is gone when the program is, however it ends: a separate process waits for that
 * end, and removes the folder with the files in it. */
#ifndef GPLAN_SCRATCH_H
#define GPLAN_SCRATCH_H

#include "frontend/base/arena.h"

#include <sys/types.h>

typedef struct {
    const char *path; /* NULL: it could not be made, and errno says why */
    int open;         /* the end of a pipe: closed, it is the end of the folder */
    pid_t keeper;
} Scratch;

/* In $TMPDIR, or in /tmp. */
Scratch scratch_make(Arena *arena);
void scratch_remove(Scratch *scratch); /* returns when it is gone */

#endif
