/* NAME_map: a good file, and every way in which one can be wrong. */
#include "mapped.h"
#include "expect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char arena[2][MAPPED_ARENA_BYTES + 64];
static unsigned char file[4096];
static size_t bytes, header; /* where the tensors begin */

static void start(mapped *m, int i)
{
    unsigned char *at = arena[i] + (64 - (uintptr_t)arena[i] % 64) % 64;
    EXPECT(mapped_init(m, at, MAPPED_ARENA_BYTES) == MAPPED_OK);
    for (int k = 0; k < MAPPED_X_COUNT; k++)
        mapped_x(m)[k] = (float)(k - 3) / 4;
}

/* A file of parameters in memory of its own. */
static void write_file(mapped *m)
{
    static float memory[8][64];
    size_t count, next = 0;
    const mapped_tensor *t = mapped_tensors(&count);
    for (size_t i = 0; i < count; i++)
        if (t[i].offset == MAPPED_EXTERNAL)
            EXPECT(mapped_bind(m, t[i].name, memory[next++]) == MAPPED_OK);
    mapped_reset(m, 7);
    EXPECT(mapped_save(m, "mapped.safetensors") == MAPPED_OK);
    FILE *from = fopen("mapped.safetensors", "rb");
    EXPECT(from != NULL);
    bytes = fread(file, 1, sizeof file, from);
    fclose(from);
    for (int i = 0; i < 4; i++)
        header |= (size_t)file[i] << 8 * i;
    header += 8;
    EXPECT(bytes > header && bytes < sizeof file);
}

/* The code for bytes at an offset from memory that is aligned; the model stays without memory. */
static int code_of(const void *data, size_t size, size_t shift, const char *words)
{
    mapped m;
    start(&m, 1);
    unsigned char *copy = malloc(size + shift + 1);
    memcpy(copy + shift, data, size);
    int code = mapped_map(&m, copy + shift, size);
    EXPECT_TEXT(mapped_error(&m), words);
    EXPECT(mapped_forward(&m) == MAPPED_EBIND);
    free(copy);
    return code;
}

/* The file with one text in its header replaced by another as long. */
static int changed(const char *from, const char *to, const char *words)
{
    unsigned char copy[sizeof file];
    memcpy(copy, file, bytes);
    for (size_t i = 8; i + strlen(from) < header; i++)
        if (memcmp(copy + i, from, strlen(from)) == 0) {
            memcpy(copy + i, to, strlen(to));
            return code_of(copy, bytes, 0, words);
        }
    EXPECT(!"the text stands in the header");
    return MAPPED_OK;
}

int main(void)
{
    mapped m, n;
    start(&m, 0);
    write_file(&m);
    EXPECT(mapped_forward(&m) == MAPPED_OK);
    start(&n, 1);
    EXPECT(mapped_map(&n, file, bytes) == MAPPED_OK);
    EXPECT(*mapped_error(&n) == 0);
    EXPECT(mapped_forward(&n) == MAPPED_OK);
    EXPECT(memcmp(mapped_y(&m), mapped_y(&n), MAPPED_Y_COUNT * sizeof(float)) == 0);

    for (size_t size = 0; size < header; size++)
        EXPECT(code_of(file, size, 0, "not a safetensors file") == MAPPED_EFORMAT);
    for (size_t size = header; size < bytes; size++)
        EXPECT(code_of(file, size, 0, "the file is truncated") == MAPPED_EFORMAT);
    EXPECT(code_of(file, bytes, 1, "is misaligned in memory") == MAPPED_ETENSOR);
    EXPECT(changed("\"F32\"", "\"I32\"", "is I32[") == MAPPED_ETENSOR);
    EXPECT(changed("[6,5]", "[5,6]", "is F32[5, 6] in the file") == MAPPED_ETENSOR);
    EXPECT(changed("dense.0.w", "dense.9.w", "dense.0.w: is not in") == MAPPED_ETENSOR);
    start(&n, 1);
    EXPECT(mapped_map(&n, NULL, 0) == MAPPED_EFILE);
    FINISH();
}
