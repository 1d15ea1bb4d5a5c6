/* Long constants: they come from the file that was written with the C text, or from one that was
 * saved; a reset leaves them alone. */
#include "lookup.h"
#include "expect.h"

static const lookup_tensor *find(const char *name)
{
    size_t count;
    const lookup_tensor *t = lookup_tensors(&count);
    while (strcmp(t->name, name) != 0)
        t++;
    return t;
}

static float *param(lookup *m, const char *name)
{
    return (float *)(void *)(m->arena + find(name)->offset);
}

static void fill(lookup *m)
{
    for (int i = 0; i < LOOKUP_X_COUNT; i++)
        lookup_x(m)[i] = (float)i;
}

static void values_are_those_of_the_model(lookup *m)
{
    fill(m);
    EXPECT(lookup_forward(m) == LOOKUP_OK);
    for (int i = 0; i < 144; i++) {
        int k = i % 72;
        EXPECT_NEAR(lookup_y(m)[i],
                    (double)i * (k / 8.0 - 3) - k + (double)param(m, "free")[k % 9]);
    }
    for (int i = 0; i < 140; i++)
        EXPECT_NEAR(lookup_picked(m)[i], i / 70 * 72 + i % 70 * 5 % 72 + 255 + 63);
    for (int i = 0; i < 65; i++)
        EXPECT(lookup_codes(m)[i] == 255 - i);
}

static void a_reset_leaves_them(lookup *m)
{
    float table[72], shift[72];
    EXPECT(lookup_load_constants(m, "lookup.safetensors") == LOOKUP_OK);
    param(m, "shift")[5] = 17;
    memcpy(table, param(m, "table"), sizeof table);
    memcpy(shift, param(m, "shift"), sizeof shift);
    lookup_reset(m, 2);
    EXPECT(memcmp(table, param(m, "table"), sizeof table) == 0);
    EXPECT(memcmp(shift, param(m, "shift"), sizeof shift) == 0);
    EXPECT(lookup_load_constants(m, "lookup.safetensors") == LOOKUP_OK);
    EXPECT(param(m, "shift")[5] == -5);
}

/* The file of constants has no other parameter; a saved one has everything. */
static void files_hold_what_they_should(lookup *m)
{
    EXPECT(lookup_load(m, "lookup.safetensors") == LOOKUP_ETENSOR);
    EXPECT_TEXT(lookup_error(m), "is not in lookup.safetensors");
    EXPECT(lookup_save(m, "all.safetensors") == LOOKUP_OK);
    memset(m->arena, 0xa5, LOOKUP_ARENA_BYTES);
    EXPECT(lookup_load(m, "all.safetensors") == LOOKUP_OK);
    values_are_those_of_the_model(m);
    memset(m->arena, 0xa5, LOOKUP_ARENA_BYTES);
    lookup_reset(m, 3);
    EXPECT(lookup_load_constants(m, "all.safetensors") == LOOKUP_OK);
    values_are_those_of_the_model(m);
    EXPECT(lookup_load_constants(m, "nowhere") == LOOKUP_EFILE);
    EXPECT_TEXT(lookup_error(m), "nowhere");
}

int main(void)
{
    START(lookup, m, LOOKUP_ARENA_BYTES)
    lookup_reset(&m, 1);
    EXPECT(lookup_load_constants(&m, "lookup.safetensors") == LOOKUP_OK);
    values_are_those_of_the_model(&m);
    a_reset_leaves_them(&m);
    files_hold_what_they_should(&m);
    free(m_arena);
    FINISH();
}
