/* Hashes of names: FNV-1a (Fowler, Noll and Vo). */
#ifndef GP_HASH_H
#define GP_HASH_H

#include "base.h"

#include <string.h>

#define GP_HASH_START UINT64_C(0xcbf29ce484222325)

GP_HOST uint64_t gp_hash_bytes(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *byte = (const unsigned char *)data;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* The key of a tensor: of its random numbers, and in a file. */
GP_HOST uint64_t gp_key(const char *name)
{
    return gp_hash_bytes(GP_HASH_START, name, strlen(name));
}

#endif
