/* See names.h. */
#include "frontend/base/names.h"

#include <string.h>

typedef struct {
    const char *name; /* NULL: free */
    uint64_t hash;
    uint32_t number;
} Slot;

struct NameTable {
    Arena *arena;
    Slot *slot;
    size_t count, capacity; /* capacity: a power of two */
};

bool is_plain_text(const void *bytes, size_t length)
{
    static const uint32_t least[] = {0x20, 0x80, 0x800, 0x10000}; /* that needs so many more */
    const unsigned char *at = bytes;
    for (size_t i = 0; i < length;) {
        unsigned char lead = at[i++];
        size_t more = lead < 0xc0 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
        uint32_t code = lead < 0x80 ? lead : lead & (0x3fu >> more);
        if ((lead >= 0x80 && lead < 0xc0) || lead >= 0xf8 || length - i < more)
            return false;
        for (size_t k = 0; k < more; k++, i++) {
            if ((at[i] & 0xc0) != 0x80)
                return false;
            code = code << 6 | (at[i] & 0x3f);
        }
        if (code < least[more] || code == 0x7f || code > 0x10ffff || (code >> 11) == 0x1b)
            return false;
    }
    return true;
}

uint64_t hash_bytes(const void *bytes, size_t count, uint64_t seed)
{
    const unsigned char *byte = bytes;
    uint64_t hash = 0xcbf29ce484222325u ^ seed;
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ byte[i]) * 0x100000001b3u;
    hash ^= hash >> 32; /* FNV's low bits are weak on short keys */
    hash *= 0xd6e8feb86659fd93u;
    return hash ^ hash >> 32;
}

NameTable *names_new(Arena *arena)
{
    NameTable *table = ARENA_NEW(arena, NameTable);
    table->arena = arena;
    table->capacity = 64;
    table->slot = ARENA_ARRAY(arena, Slot, table->capacity);
    return table;
}

/* The slot that holds the name or where it would go. */
static Slot *probe(const NameTable *table, const char *name, uint64_t hash)
{
    size_t i = hash & (table->capacity - 1);
    while (table->slot[i].name &&
           (table->slot[i].hash != hash || strcmp(table->slot[i].name, name) != 0))
        i = (i + 1) & (table->capacity - 1);
    return &table->slot[i];
}

static void grow(NameTable *table)
{
    Slot *old = table->slot;
    size_t capacity = table->capacity;
    table->capacity *= 2;
    table->slot = ARENA_ARRAY(table->arena, Slot, table->capacity);
    for (size_t i = 0; i < capacity; i++)
        if (old[i].name)
            *probe(table, old[i].name, old[i].hash) = old[i];
}

uint32_t *names_at(NameTable *table, const char *name)
{
    uint64_t hash = hash_bytes(name, strlen(name), 0);
    Slot *slot = probe(table, name, hash);
    if (!slot->name) {
        if (2 * ++table->count > table->capacity) {
            grow(table);
            slot = probe(table, name, hash);
        }
        *slot = (Slot){arena_copy(table->arena, name, strlen(name)), hash, UINT32_MAX};
    }
    return &slot->number;
}

uint32_t names_find(const NameTable *table, const char *name)
{
    const Slot *slot = probe(table, name, hash_bytes(name, strlen(name), 0));
    return slot->name ? slot->number : UINT32_MAX;
}

/* Keeps the last * to come back to: no recursion. */
bool name_matches(const char *pattern, const char *name)
{
    const char *star = NULL, *from = NULL;
    while (*name) {
        if (*pattern == '*') {
            star = pattern++;
            from = name;
        } else if (*pattern == '?' || *pattern == *name) {
            pattern++;
            name++;
        } else if (star) {
            pattern = star + 1;
            name = ++from;
        } else {
            return false;
        }
    }
    return !pattern[strspn(pattern, "*")];
}
