/* Compiler memory: everything of one compile comes from one arena and is freed at once.
 *
 * Nothing here returns NULL: when the system has no memory left the program says so and
 * exits with status 1. Bytes come zeroed.
 */
#ifndef GPLAN_ARENA_H
#define GPLAN_ARENA_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Arena Arena;

Arena *arena_new(void);
void arena_free(Arena *arena);
void arena_adopt(Arena *arena, Arena *child); /* the child lives as long, and is freed with it */
size_t arena_bytes(const Arena *arena);       /* taken from the system so far */

void *arena_alloc(Arena *arena, size_t bytes);
void *arena_array(Arena *arena, size_t count, size_t size); /* count * size, overflow checked */
char *arena_copy(Arena *arena, const char *text, size_t length); /* adds the final 0 */
char *arena_printf(Arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(Arena *arena, const char *format, va_list args);

/* Room for one more element at array[count]: doubles the array, old elements move along. */
void *arena_grow(Arena *arena, void *array, size_t count, size_t *capacity, size_t size);

/* For libraries that want malloc's like. What they take is freed with free(). */
void *memory_take(size_t bytes);
void *memory_resize(void *memory, size_t bytes);

/* The message, and the end. 0: nobody knows how many bytes were asked for. */
_Noreturn void out_of_memory(size_t bytes);

#define ARENA_NEW(arena, type) ((type *)arena_alloc((arena), sizeof(type)))
#define ARENA_ARRAY(arena, type, count) ((type *)arena_array((arena), (count), sizeof(type)))

/* A growing array of T: declare it with ARRAY(T), add with ARRAY_PUSH. */
#define ARRAY(type)             \
    struct {                    \
        type *at;               \
        size_t count, capacity; \
    }
#define ARRAY_PUSH(arena, array, ...)                                                   \
    ((array)->at = arena_grow((arena), (array)->at, (array)->count, &(array)->capacity, \
                              sizeof *(array)->at),                                     \
     (array)->at[(array)->count] = (__VA_ARGS__), (array)->count++)

#endif
