/* See arena.h. A list of chunks, each at least twice as large as what is asked for. */
#include "arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Under the address sanitizer a gap that must not be touched lies after whatever is given out:
 * without it a step past the end of an array would be a step into the next. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GUARDED 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define GUARDED 1
#endif
#ifdef GUARDED
#include <sanitizer/asan_interface.h>
enum { GAP = 64 };
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes) ((void)0)
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)0)
enum { GAP = 0 };
#endif

enum { ALIGN = 16, FIRST_CHUNK = 1 << 16, LARGEST_CHUNK = 1 << 24 };

typedef struct Chunk {
    struct Chunk *next;
    size_t used, size;
    _Alignas(ALIGN) unsigned char bytes[];
} Chunk;

struct Arena {
    Chunk *top;
    Arena *adopted; /* to be freed with this one; a list by `next` */
    Arena *next;
    size_t total;
};

void out_of_memory(size_t bytes)
{
    if (bytes)
        fprintf(stderr, "gplan: out of memory (%zu bytes more were needed)\n", bytes);
    else
        fprintf(stderr, "gplan: out of memory\n");
    exit(1);
}

void *memory_take(size_t bytes)
{
    void *memory = malloc(bytes);
    if (!memory && bytes)
        out_of_memory(bytes);
    return memory;
}

void *memory_resize(void *memory, size_t bytes)
{
    void *resized = realloc(memory, bytes);
    if (!resized && bytes)
        out_of_memory(bytes);
    return resized;
}

Arena *arena_new(void)
{
    Arena *arena = calloc(1, sizeof *arena);
    if (!arena)
        out_of_memory(sizeof *arena);
    return arena;
}

void arena_free(Arena *arena)
{
    if (!arena)
        return;
    for (Arena *child = arena->adopted, *next; child; child = next) {
        next = child->next;
        arena_free(child);
    }
    for (Chunk *chunk = arena->top, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    free(arena);
}

void arena_adopt(Arena *arena, Arena *child)
{
    child->next = arena->adopted;
    arena->adopted = child;
}

size_t arena_bytes(const Arena *arena)
{
    return arena->total;
}

static Chunk *chunk_new(Arena *arena, size_t bytes)
{
    size_t size = arena->top ? arena->top->size : FIRST_CHUNK / 2;
    size = size < LARGEST_CHUNK ? 2 * size : LARGEST_CHUNK;
    if (size < bytes)
        size = bytes;
    Chunk *chunk = size <= SIZE_MAX - sizeof *chunk ? calloc(1, sizeof *chunk + size) : NULL;
    if (!chunk)
        out_of_memory(bytes);
    ASAN_POISON_MEMORY_REGION(chunk->bytes, size);
    chunk->size = size;
    chunk->next = arena->top;
    arena->top = chunk;
    arena->total += sizeof *chunk + size;
    return chunk;
}

void *arena_alloc(Arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX - ALIGN - GAP)
        out_of_memory(bytes);
    size_t taken = (bytes + ALIGN - 1) / ALIGN * ALIGN + GAP;
    Chunk *chunk = arena->top;
    if (!chunk || chunk->size - chunk->used < taken)
        chunk = chunk_new(arena, taken);
    void *result = chunk->bytes + chunk->used;
    ASAN_UNPOISON_MEMORY_REGION(result, bytes);
    chunk->used += taken;
    return result;
}

void *arena_array(Arena *arena, size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size)
        out_of_memory(SIZE_MAX);
    return arena_alloc(arena, count * size);
}

char *arena_copy(Arena *arena, const char *text, size_t length)
{
    char *copy = arena_alloc(arena, length + 1);
    memcpy(copy, text, length);
    return copy;
}

char *arena_vprintf(Arena *arena, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    if (length < 0)
        out_of_memory(0); /* it takes memory for a few formats */
    char *text = arena_alloc(arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

char *arena_printf(Arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = arena_vprintf(arena, format, args);
    va_end(args);
    return text;
}

void *arena_grow(Arena *arena, void *array, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return array;
    size_t first = 128 / size; /* most arrays stay short: operands of a node, arguments of a call */
    *capacity = *capacity ? 2 * *capacity : first > 16 ? 16 : first < 2 ? 2 : first;
    void *bigger = arena_array(arena, *capacity, size);
    if (count)
        memcpy(bigger, array, count * size);
    return bigger;
}
