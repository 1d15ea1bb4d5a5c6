/* Parameters whose names are longer than any buffer are saved and loaded, and named in messages. */
#include "long_names.h"
#include "expect.h"

/* Changes the last character of a name in the file: the `place`th that is `from`. */
static void spoil(char from, char to, int place)
{
    static char text[1 << 20];
    FILE *file = fopen("long.safetensors", "rb");
    const size_t length = fread(text, 1, sizeof text, file);
    fclose(file);
    for (size_t i = 8; i + 1 < length && place > 0; i++)
        if (text[i] == from && text[i + 1] == '"' && text[i - 1] == '.' && --place == 0)
            text[i] = to;
    EXPECT(place == 0);
    file = fopen("long.safetensors", "wb");
    fwrite(text, 1, length, file);
    fclose(file);
}

int main(void)
{
    START(long_names, m, LONG_NAMES_ARENA_BYTES)
    size_t count, longest = 0;
    const long_names_tensor *t = long_names_tensors(&count);
    static unsigned char kept[LONG_NAMES_ARENA_BYTES];
    for (size_t i = 0; i < count; i++)
        longest = strlen(t[i].name) > longest ? strlen(t[i].name) : longest;
    EXPECT(longest > 600);
    long_names_reset(&m, 1);
    memcpy(kept, m_arena, sizeof kept);
    EXPECT(long_names_save(&m, "long.safetensors") == LONG_NAMES_OK);
    long_names_reset(&m, 2);
    EXPECT(long_names_load(&m, "long.safetensors") == LONG_NAMES_OK);
    for (size_t i = 0; i < count; i++)
        if (t[i].kind == LONG_NAMES_PARAM)
            EXPECT(memcmp(kept + t[i].offset, m.arena + t[i].offset, t[i].bytes) == 0);
    spoil('w', 'v', 2);
    EXPECT(long_names_load(&m, "long.safetensors") == LONG_NAMES_ETENSOR);
    EXPECT_TEXT(long_names_error(&m), "dense.0.w: is not in long.safetensors");
    spoil('v', 'b', 1);
    EXPECT(long_names_load(&m, "long.safetensors") == LONG_NAMES_ETENSOR);
    EXPECT_TEXT(long_names_error(&m), "dense.0.b: is F32[3, 3] in the file, F32[3] in the model");
    free(m_arena);
    FINISH();
}
