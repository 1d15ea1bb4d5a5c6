// Two emitted models in one C++ program, and two of one kind side by side.
#include "affine.h"
#include "double.h"
#include "layers.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

int main()
{
    affine a, b;
    layers c;
    double_ d;
    void *memory[] = {aligned_alloc(64, AFFINE_ARENA_BYTES + 64),
                      aligned_alloc(64, AFFINE_ARENA_BYTES + 64),
                      aligned_alloc(64, LAYERS_ARENA_BYTES + 64)};
    if (affine_init(&a, memory[0], AFFINE_ARENA_BYTES) ||
        affine_init(&b, memory[1], AFFINE_ARENA_BYTES) ||
        layers_init(&c, memory[2], LAYERS_ARENA_BYTES) ||
        double__init(&d, nullptr, 0) != DOUBLE__EARENA)
        return 1;
    affine_reset(&a, 1);
    affine_reset(&b, 2);
    layers_reset(&c, 3);
    memset(layers_tokens(&c), 0, sizeof(int32_t) * LAYERS_TOKENS_COUNT);
    for (int i = 0; i < AFFINE_X_COUNT; i++)
        affine_x(&a)[i] = affine_x(&b)[i] = 1.0f + (float)i;
    if (affine_forward(&a) || layers_forward(&c) || affine_forward(&b))
        return 1;
    float kept[AFFINE_Y_COUNT];
    memcpy(kept, affine_y(&a), sizeof kept);
    if (affine_forward(&b) || memcmp(kept, affine_y(&a), sizeof kept) != 0)
        return 1; // one disturbed the other
    if (memcmp(kept, affine_y(&b), sizeof kept) == 0)
        return 1; // other seeds, other parameters
    for (void *p : memory)
        free(p);
    return 0;
}
