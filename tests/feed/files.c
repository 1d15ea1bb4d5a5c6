/* Writes small data sets whose classes can be learned: files.c FOLDER. Each holds the same samples:
 * an image of 8 x 8 whose bright row is its class. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 203, SIDE = 8 };

static uint32_t state = 1;

static unsigned draw(unsigned below)
{
    state = state * 1664525 + 1013904223;
    return (state >> 16) % below;
}

static FILE *create(const char *folder, const char *name)
{
    char path[1000];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (!file) {
        perror(path);
        exit(1);
    }
    return file;
}

static void word(FILE *file, uint32_t number) /* big-endian */
{
    for (int i = 3; i >= 0; i--)
        putc((int)(number >> 8 * i & 255), file);
}

static void npy(FILE *file, const char *shape)
{
    char text[128];
    snprintf(text, sizeof text, "{'descr': '|u1', 'fortran_order': False, 'shape': (%s), }", shape);
    const size_t length = 118;
    fputs("\x93NUMPY\1", file);
    putc(0, file);
    putc((int)length, file);
    putc(0, file);
    fprintf(file, "%-*s\n", (int)length - 1, text);
}

/* The header of a safetensors file with both. */
static void safetensors(FILE *file)
{
    char text[256];
    const int images = SAMPLES * SIDE * SIDE;
    const int length =
        snprintf(text, sizeof text,
                 "{\"classes\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[%d,%d]},"
                 "\"pixels\":{\"dtype\":\"U8\",\"shape\":[%d,1,%d,%d],\"data_offsets\":[0,%d]}}",
                 SAMPLES, images, images + SAMPLES, SAMPLES, SIDE, SIDE, images);
    for (int i = 0; i < 8; i++)
        putc(i < 2 ? length >> 8 * i & 255 : 0, file);
    fputs(text, file);
}

int main(int argc, char **argv)
{
    const char *to = argc > 1 ? argv[1] : ".";
    FILE *idx[2] = {create(to, "x-idx3"), create(to, "y-idx1")};
    FILE *array[2] = {create(to, "x.npy"), create(to, "y.npy")};
    FILE *records = create(to, "xy.bin"), *tokens = create(to, "tokens.bin");
    FILE *tensors = create(to, "xy.safetensors"), *table = create(to, "xy.csv");
    unsigned char classes[SAMPLES];
    safetensors(tensors);
    fputs("class,note", table); /* names, one of which nobody reads */
    for (int i = 0; i < SIDE * SIDE; i++)
        fprintf(table, ",p%d", i);
    word(idx[0], 0x803), word(idx[0], SAMPLES), word(idx[0], SIDE), word(idx[0], SIDE);
    word(idx[1], 0x801), word(idx[1], SAMPLES);
    npy(array[0], "203, 1, 8, 8");
    npy(array[1], "203,");
    for (int i = 0; i < SAMPLES; i++) {
        const unsigned class = draw(SIDE);
        unsigned char image[SIDE * SIDE];
        for (unsigned k = 0; k < sizeof image; k++)
            image[k] = (unsigned char)(draw(30) + (k / SIDE == class ? 200 : 0));
        fwrite(image, 1, sizeof image, idx[0]);
        fwrite(image, 1, sizeof image, array[0]);
        putc((int)class, records); /* the label first, as CIFAR has it */
        fwrite(image, 1, sizeof image, records);
        putc((int)class, idx[1]);
        putc((int)class, array[1]);
        classes[i] = (unsigned char)class;
        fwrite(image, 1, sizeof image, tensors);
        fprintf(table, "\n%u,\"row, %d\"", class, i);
        for (unsigned k = 0; k < sizeof image; k++)
            fprintf(table, ",%d", image[k]);
    }
    fwrite(classes, 1, sizeof classes, tensors);
    for (unsigned i = 0; i < 5000; i++)
        putc((int)(i * i % 31), tokens), putc(0, tokens);
    fclose(tensors), fclose(table);
    fclose(idx[0]), fclose(idx[1]), fclose(array[0]), fclose(array[1]), fclose(records);
    return fclose(tokens) != 0;
}
