/* A table from names to numbers: open addressing, grows by doubling, never forgets. */
#ifndef GPLAN_NAMES_H
#define GPLAN_NAMES_H

#include "frontend/base/arena.h"

#include <stdbool.h>

typedef struct NameTable NameTable;

NameTable *names_new(Arena *arena);
/* The number of a name, made NONE-like (UINT32_MAX) when the name is new. The pointer holds
 * until the next call. */
uint32_t *names_at(NameTable *table, const char *name);
uint32_t names_find(const NameTable *table, const char *name); /* UINT32_MAX: not there */

/* Whether a name is like a pattern: * stands for anything, ? for one character. */
bool name_matches(const char *pattern, const char *name);

/* Whether the bytes are characters in UTF-8, none of them a control character. */
bool is_plain_text(const void *bytes, size_t length);

uint64_t hash_bytes(const void *bytes, size_t count, uint64_t seed); /* FNV-1a, mixed */

#endif
