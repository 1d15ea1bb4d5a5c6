/* Stands for code that gplan left out of a file, since no call of its program takes it. */
#ifndef GP_PLANNED_H
#define GP_PLANNED_H

#include "base.h"

#include <stdio.h>
#include <stdlib.h>

/* Aborts rather than compute something else. */
GP_HOST void gp_unplanned(const char *what)
{
    fprintf(stderr, "gplan: internal error: a kernel was not planned for this: %s\n", what);
    abort();
}

#define GP_PLANNED(condition) ((condition) ? (void)0 : gp_unplanned(#condition))

#endif
