/* Numbers of bytes, as people write and read them. */
#ifndef GPLAN_SIZE_H
#define GPLAN_SIZE_H

#include "frontend/base/arena.h"

#include <stdbool.h>
#include <stdint.h>

/* 8G, 512M, 1.5GiB, 4096: K, M, G, T are powers of 1024. False where the text is none, or 2^62 and
 * more. */
bool size_parse(const char *text, uint64_t *bytes);
char *size_text(Arena *arena, uint64_t bytes); /* 1.50 GiB */
/* 2.95G: the least in hundredths of a unit that is not below, as size_parse reads it. */
char *size_enough(Arena *arena, uint64_t bytes);

#endif
