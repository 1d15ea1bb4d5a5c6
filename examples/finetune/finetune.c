/* Fine-tuning an imported classifier.
 *
 * shapes.onnx tells four shapes apart, drawn bright on dark: a row, a column, a diagonal, a cross.
 * Here they are dark on bright, which it has never seen. Only its last layer is trained.
 *
 *     gplan shapes.onnx last_layer.g -D batch=32 --threads 2 --budget 768K -o shapes.c
 *     cc -O2 -fopenmp shapes.c finetune.c -lm -o finetune
 *     ./finetune shapes.safetensors tuned.safetensors
 */
#include "shapes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = SHAPES_LABELS_COUNT, SIZE = 12, PIXELS = SIZE * SIZE };

static uint64_t draws = 1;

static uint32_t draw(uint32_t below)
{
    draws = draws * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(draws >> 33) % below;
}

static void draw_line(float *image, int down, int right)
{
    const int row = 2 + (int)draw(8), column = 2 + (int)draw(8), half = 2 + (int)draw(2);
    for (int k = -half; k <= half; k++) {
        const int r = row + k * down, c = column + k * right;
        if (r >= 0 && r < SIZE && c >= 0 && c < SIZE)
            image[r * SIZE + c] = 0;
    }
}

static void draw_batch(shapes *m)
{
    for (int i = 0; i < BATCH; i++) {
        float *image = shapes_image(m) + i * PIXELS;
        const int label = (int)draw(4);
        for (int k = 0; k < PIXELS; k++)
            image[k] = 1;
        const uint64_t place = draws; /* both lines of a cross meet */
        if (label != 1)
            draw_line(image, label == 2, 1);
        draws = place;
        if (label == 1 || label == 3)
            draw_line(image, 1, 0);
        for (int k = 0; k < PIXELS; k++)
            image[k] += 0.001f * (float)draw(200) - 0.1f;
        shapes_labels(m)[i] = label;
    }
}

static int fail(const shapes *m, const char *what)
{
    fprintf(stderr, "%s: %s\n", what, shapes_error(m));
    return 1;
}

int main(int argc, char **argv)
{
    static _Alignas(SHAPES_ARENA_ALIGN) unsigned char arena[SHAPES_ARENA_BYTES];
    shapes m;
    float loss;
    if (argc != 3) {
        fprintf(stderr, "usage: finetune IN.safetensors OUT.safetensors\n");
        return 2;
    }
    if (shapes_init(&m, arena, sizeof arena) != SHAPES_OK)
        return fail(&m, "init");
    shapes_reset(&m, 1);
    if (shapes_load(&m, argv[1]) != SHAPES_OK)
        return fail(&m, argv[1]);
    for (int step = 0; step <= 200; step++) {
        draw_batch(&m);
        if (shapes_step(&m, &loss) != SHAPES_OK)
            return fail(&m, "step");
        if (step % 40 == 0)
            printf("step %3d  loss %.4f  accuracy %.4f\n", step, loss, *shapes_accuracy(&m));
    }
    return shapes_save(&m, argv[2]) == SHAPES_OK ? 0 : fail(&m, argv[2]);
}
