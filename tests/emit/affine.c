/* Everything that the header of an emitted file offers, on a model done by hand. */
#include "affine.h"
#include "expect.h"

static const affine_tensor *find(const char *name)
{
    size_t count;
    const affine_tensor *t = affine_tensors(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(t[i].name, name) == 0)
            return &t[i];
    return NULL;
}

static float *at(affine *m, const char *name)
{
    return (float *)(void *)(m->arena + find(name)->offset);
}

static void by_hand(affine *m, const float *x, float *y)
{
    const float *w = at(m, "w"), *b = at(m, "b"), scale[] = {2.0f, -1.5f};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 2; j++) {
            float sum = b[j];
            for (int k = 0; k < 4; k++)
                sum += x[i * 4 + k] * w[k * 2 + j];
            y[i * 2 + j] = (sum > 0 ? sum : 0) * scale[j];
        }
}

static void refuses_a_bad_arena(void)
{
    affine m;
    static _Alignas(64) unsigned char arena[AFFINE_ARENA_BYTES + 64];
    EXPECT(affine_init(&m, arena, AFFINE_ARENA_BYTES - 1) == AFFINE_EARENA);
    EXPECT_TEXT(affine_error(&m), "bytes");
    EXPECT(affine_init(&m, arena + 4, AFFINE_ARENA_BYTES) == AFFINE_EARENA);
    EXPECT(affine_init(&m, NULL, AFFINE_ARENA_BYTES) == AFFINE_EARENA);
    EXPECT(affine_init(&m, arena, AFFINE_ARENA_BYTES) == AFFINE_OK);
    EXPECT_TEXT(affine_strerror(AFFINE_EARENA), "arena");
}

static void lists_its_tensors(void)
{
    size_t count;
    affine_tensors(&count);
    EXPECT(count == 6);
    EXPECT(find("x")->kind == AFFINE_INPUT && find("y")->kind == AFFINE_OUTPUT);
    EXPECT(find("w")->kind == AFFINE_PARAM && find("scale")->kind == AFFINE_PARAM);
    EXPECT(find("w")->rank == 2 && find("w")->dim[0] == 4 && find("w")->dim[1] == 2);
    EXPECT(find("w")->bytes == 32 && find("w")->dtype == AFFINE_F32);
    EXPECT(find("unused") == NULL);
    EXPECT(AFFINE_X_COUNT == 12 && AFFINE_Y_COUNT == 6 && AFFINE_TWICE_COUNT == 6);
}

int main(void)
{
    float y[6];
    refuses_a_bad_arena();
    lists_its_tensors();
    START(affine, m, AFFINE_ARENA_BYTES)
    affine_reset(&m, 7);
    float first = at(&m, "w")[0];
    EXPECT(at(&m, "b")[1] == 0.25f && at(&m, "scale")[1] == -1.5f);
    affine_reset(&m, 8);
    EXPECT(at(&m, "w")[0] != first); /* another seed, other numbers */
    affine_reset(&m, 7);
    EXPECT(at(&m, "w")[0] == first);
    float *x = affine_x(&m);
    for (int i = 0; i < AFFINE_X_COUNT; i++)
        x[i] = (float)(i % 5) - 1.5f;
    float kept[AFFINE_X_COUNT];
    memcpy(kept, x, sizeof kept);
    for (int run = 0; run < 2; run++) { /* inputs keep their bytes */
        EXPECT(affine_forward(&m) == AFFINE_OK);
        EXPECT(memcmp(kept, x, sizeof kept) == 0);
        by_hand(&m, x, y);
        for (int i = 0; i < AFFINE_Y_COUNT; i++) {
            EXPECT_NEAR(affine_y(&m)[i], y[i]);
            EXPECT_NEAR(affine_twice(&m)[i], 2 * y[i]);
        }
    }
    free(m_arena);
    FINISH();
}
