/* A text with its length: what is read from a file or goes to one. */
#ifndef GPLAN_TEXT_H
#define GPLAN_TEXT_H

#include <stddef.h>

typedef struct {
    const char *text;
    size_t length;
} Text;

#endif
