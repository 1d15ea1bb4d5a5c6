/* Dtypes that are only stored, cast, reset, saved and loaded. */
#include "stored.h"
#include "expect.h"

#include <math.h>
#include <unistd.h>

static _Alignas(64) unsigned char arena[STORED_ARENA_BYTES];

/* Compares an output with what is right, number by number. */
#define SAME(type, output, ...)                                                                   \
    do {                                                                                          \
        static const type want[STORED_REAL_COUNT] = {__VA_ARGS__};                                \
        const type *got = stored_##output(m);                                                     \
        for (int i = 0; i < STORED_REAL_COUNT; i++)                                               \
            if (got[i] != want[i])                                                                \
                printf("%s %d: %.17g, not %.17g\n", #output, i, (double)got[i], (double)want[i]), \
                    failures++;                                                                   \
    } while (0)

static void casts(stored *m)
{
    static const double real[] = {0.5,    -0.5,    127.9,    128,      -128.9,     -129,
                                  255.5,  65535.5, 65519.99, 65520,    2147483648, 4294967296,
                                  0x1p63, -0x1p63, INFINITY, -INFINITY};
    static const int64_t integer[] = {0,
                                      1,
                                      -1,
                                      127,
                                      128,
                                      -129,
                                      255,
                                      65535,
                                      65536,
                                      0x123456789,
                                      INT64_MAX,
                                      INT64_MIN,
                                      (INT64_C(0x101) << 54) + 1,
                                      INT64_C(0x101) << 54,
                                      INT64_C(0x103) << 54,
                                      (INT64_C(1) << 53) + 1};
    memcpy(stored_real(m), real, sizeof real);
    memcpy(stored_long(m), integer, sizeof integer);
    for (int i = 0; i < STORED_REAL_COUNT; i++) {
        stored_half(m)[i] = (uint16_t)(i ? 0x3bff + i : 1); /* the smallest; about 1 */
        stored_brain(m)[i] = (uint16_t)(i ? 0xbf7f + i : 1);
        stored_tiny(m)[i] = (int8_t)(i - 128);
        stored_short(m)[i] = (uint16_t)(65535 - i);
        stored_word(m)[i] = UINT32_MAX - (uint32_t)i;
    }
    EXPECT(stored_forward(m) == STORED_OK);
    const float inf = INFINITY;
    SAME(float, real_f32, 0.5f, -0.5f, 127.9f, 128, -128.9f, -129, 255.5f, 65535.5f, 65519.99f,
         65520, 0x1p31f, 0x1p32f, 0x1p63f, -0x1p63f, INFINITY, -INFINITY);
    SAME(uint16_t, real_f16, 0x3800, 0xb800, 0x57fe, 0x5800, 0xd807, 0xd808, 0x5bfc, 0x7c00, 0x7bff,
         0x7c00, 0x7c00, 0x7c00, 0x7c00, 0xfc00, 0x7c00, 0xfc00);
    SAME(uint16_t, real_bf16, 0x3f00, 0xbf00, 0x4300, 0x4300, 0xc301, 0xc301, 0x4380, 0x4780,
         0x4780, 0x4780, 0x4f00, 0x4f80, 0x5f00, 0xdf00, 0x7f80, 0xff80);
    SAME(int8_t, real_i8, 0, 0, 127, 127, -128, -128, 127, 127, 127, 127, 127, 127, 127, -128, 127,
         -128);
    SAME(uint8_t, real_u8, 0, 0, 127, 128, 0, 0, 255, 255, 255, 255, 255, 255, 255, 0, 255, 0);
    SAME(uint16_t, real_u16, 0, 0, 127, 128, 0, 0, 255, 65535, 65519, 65520, 65535, 65535, 65535, 0,
         65535, 0);
    SAME(int32_t, real_i32, 0, 0, 127, 128, -128, -129, 255, 65535, 65519, 65520, INT32_MAX,
         INT32_MAX, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN);
    SAME(uint32_t, real_u32, 0, 0, 127, 128, 0, 0, 255, 65535, 65519, 65520, 2147483648u,
         UINT32_MAX, UINT32_MAX, 0, UINT32_MAX, 0);
    SAME(int64_t, real_i64, 0, 0, 127, 128, -128, -129, 255, 65535, 65519, 65520, 2147483648,
         4294967296, INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN);
    SAME(uint8_t, real_bool, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1);
    SAME(int8_t, long_i8, 0, 1, -1, 127, -128, 127, -1, -1, 0, -119, -1, 0, 1, 0, 0, 1);
    SAME(uint16_t, long_u16, 0, 1, 65535, 127, 128, 65407, 255, 65535, 0, 0x6789, 65535, 0, 1, 0, 0,
         1);
    SAME(uint32_t, long_u32, 0, 1, UINT32_MAX, 127, 128, UINT32_MAX - 128, 255, 65535, 65536,
         0x23456789, UINT32_MAX, 0, 1, 0, 0, 1);
    /* 0x101 << 54 lies between two: to the even one, and upwards where there is a little more. */
    SAME(uint16_t, long_bf16, 0, 0x3f80, 0xbf80, 0x42fe, 0x4300, 0xc301, 0x437f, 0x4780, 0x4780,
         0x4f92, 0x5f00, 0xdf00, 0x5e81, 0x5e80, 0x5e82, 0x5a00);
    SAME(double, long_f64, 0, 1, -1, 127, 128, -129, 255, 65535, 65536, 0x123456789, 0x1p63,
         -0x1p63, 0x101p54, 0x101p54, 0x103p54, 0x1p53);
    SAME(float, there_and_back, 0.5f, -0.5f, 127.875f, 128, -128.875f, -129, 255.5f, inf, 65504,
         inf, inf, inf, inf, -inf, inf, -inf);
    EXPECT(stored_half_f32(m)[0] == 0x1p-23f && stored_half_f32(m)[1] == 2);
    EXPECT(stored_brain_f32(m)[0] == 0x1p-133f && stored_brain_f32(m)[2] == -1.0078125f);
    for (int i = 0; i < STORED_REAL_COUNT; i++) {
        EXPECT(stored_tiny_i32(m)[i] == i - 129);
        EXPECT(stored_short_i32(m)[i] == 65536 - i);
        EXPECT(stored_word_i64(m)[i] == INT64_C(4294967296) - i);
    }
    stored_real(m)[0] = NAN;
    EXPECT(stored_forward(m) == STORED_OK);
    EXPECT(isnan(stored_real_f32(m)[0]) && isnan(stored_there_and_back(m)[0]));
    EXPECT(stored_real_f16(m)[0] == 0x7e00 && stored_real_bf16(m)[0] == 0x7fc0);
    EXPECT(stored_real_i8(m)[0] == 0 && stored_real_u32(m)[0] == 0 && stored_real_i64(m)[0] == 0);
    EXPECT(stored_real_bool(m)[0] == 1);
}

static const stored_tensor *find(const char *name)
{
    size_t count;
    const stored_tensor *t = stored_tensors(&count);
    while (strcmp(t->name, name) != 0)
        t++;
    return t;
}

/* A parameter's dtype and size in the table, its name in the file, and its bytes after a reset. */
static void parameter(const stored *m, const char *file, const char *name, int dtype,
                      const char *word, const void *bytes, size_t count)
{
    const stored_tensor *t = find(name);
    char entry[100];
    snprintf(entry, sizeof entry, "\"%s\":{\"dtype\":\"%s\"", name, word);
    EXPECT(t->dtype == dtype && t->bytes == count);
    EXPECT(memcmp(m->arena + t->offset, bytes, count) == 0);
    EXPECT_TEXT(file, entry);
}

static void files(stored *m)
{
    static char text[8192];
    static unsigned char before[STORED_ARENA_BYTES];
    EXPECT(stored_save(m, "stored.safetensors") == STORED_OK);
    FILE *file = fopen("stored.safetensors", "rb");
    EXPECT(file && fseek(file, 8, SEEK_SET) == 0);
    EXPECT(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    parameter(m, text, "p_f16", STORED_F16, "F16", (uint16_t[]){0x3c00, 0xae66, 0x7c00}, 6);
    parameter(m, text, "p_bf16", STORED_BF16, "BF16", (uint16_t[]){0x3dcd, 0x3dcd}, 4);
    parameter(m, text, "p_f64", STORED_F64, "F64", (double[]){0.1, 0.1}, 16);
    parameter(m, text, "p_i8", STORED_I8, "I8", (int8_t[]){-128, 127, -1}, 3);
    parameter(m, text, "p_u16", STORED_U16, "U16", (uint16_t[]){65535, 65535}, 4);
    parameter(m, text, "p_u32", STORED_U32, "U32", (uint32_t[]){UINT32_MAX, UINT32_MAX}, 8);
    static const char *const names[] = {"p_f16", "p_bf16", "p_f64", "p_i8", "p_u16", "p_u32"};
    memcpy(before, m->arena, sizeof before);
    for (int i = 0; i < 6; i++)
        memset(m->arena + find(names[i])->offset, 0x11, find(names[i])->bytes);
    EXPECT(stored_load(m, "stored.safetensors") == STORED_OK);
    for (int i = 0; i < 6; i++)
        EXPECT(memcmp(m->arena + find(names[i])->offset, before + find(names[i])->offset,
                      find(names[i])->bytes) == 0);
    EXPECT(stored_forward(m) == STORED_OK);
    EXPECT(stored_same(m)[0] == 0.1 && stored_flipped(m)[2] == 0x3c00 &&
           stored_flipped(m)[0] == 0x7c00);
    EXPECT(stored_all(m)[0] == 1 + 0.10009765625f + 0.1f + (65535 - 128) + 4294967296.0f);
    unlink("stored.safetensors");
}

int main(void)
{
    static stored m;
    EXPECT(stored_init(&m, arena, sizeof arena) == STORED_OK);
    stored_reset(&m, 1);
    casts(&m);
    files(&m);
    return failures != 0;
}
