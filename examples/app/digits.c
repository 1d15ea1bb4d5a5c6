/* A program that ships a model: reads images of digits and says what they show.
 *
 *     digits PARAMETERS.safetensors IMAGE.pgm ...     classifies 28x28 images
 *     digits --new PARAMETERS.safetensors             writes parameters nobody has trained
 *
 * mlp.c and mlp.h are made by gplan from examples/mlp.g; see the Makefile beside this file. The
 * arena is a static array, so all the memory that the model takes is known when this is linked. */
#include "mlp.h"

#include <stdio.h>
#include <string.h>

static _Alignas(MLP_ARENA_ALIGN) unsigned char arena[MLP_ARENA_BYTES];

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "digits: %s: %s\n", what, why);
    return 1;
}

/* A binary PGM of the model's size, from 0 (black) to 1. NULL, or what is wrong with it. */
static const char *read_image(const char *path, float *pixel)
{
    int width, height, most;
    const char *wrong = NULL;
    FILE *file = fopen(path, "rb");
    if (!file)
        return "cannot be opened";
    if (fscanf(file, "P5 %d %d %d", &width, &height, &most) != 3 || getc(file) == EOF)
        wrong = "is no binary PGM";
    else if (width != 28 || height != 28 || most < 1 || most > 255)
        wrong = "is not of 28x28 bytes";
    for (int i = 0; !wrong && i < MLP_IMAGES_COUNT; i++) {
        int byte = getc(file);
        if (byte == EOF)
            wrong = "is cut short";
        pixel[i] = (float)byte / (float)most;
    }
    fclose(file);
    return wrong;
}

static void print_answer(const char *path, const float *probability)
{
    int best = 0;
    for (int digit = 1; digit < MLP_PROBS_COUNT; digit++)
        if (probability[digit] > probability[best])
            best = digit;
    printf("%s: %d (%.1f%%)\n", path, best, 100 * (double)probability[best]);
}

int main(int argc, char **argv)
{
    mlp m;
    int code = mlp_init(&m, arena, sizeof arena);
    if (code)
        return fail("arena", mlp_strerror(code));
    if (argc == 3 && strcmp(argv[1], "--new") == 0) {
        mlp_reset(&m, 1);
        code = mlp_save(&m, argv[2]);
        return code ? fail(argv[2], mlp_strerror(code)) : 0;
    }
    if (argc < 3) {
        fputs("usage: digits PARAMETERS IMAGE...\n       digits --new PARAMETERS\n", stderr);
        return 2;
    }
    if (mlp_load(&m, argv[1]))
        return fail("parameters", mlp_error(&m));
    for (int i = 2; i < argc; i++) {
        const char *wrong = read_image(argv[i], mlp_images(&m));
        if (wrong)
            return fail(argv[i], wrong);
        code = mlp_forward(&m);
        if (code)
            return fail(argv[i], mlp_strerror(code));
        print_answer(argv[i], mlp_probs(&m));
    }
    return 0;
}
