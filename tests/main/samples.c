/* Writes idx files of small images: each class has a bright corner of its own, in noise.
 * usage: samples IMAGES LABELS COUNT SEED */
#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 8, CLASSES = 4 };

static void put(FILE *file, unsigned number)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        fputc((int)(number >> shift & 255), file);
}

int main(int argc, char **argv)
{
    FILE *images = argc == 5 ? fopen(argv[1], "wb") : NULL;
    FILE *labels = argc == 5 ? fopen(argv[2], "wb") : NULL;
    if (!images || !labels)
        return 1;
    unsigned count = (unsigned)atoi(argv[3]), state = (unsigned)atoi(argv[4]);
    put(images, 0x803), put(images, count), put(images, SIDE), put(images, SIDE);
    put(labels, 0x801), put(labels, count);
    for (unsigned i = 0; i < count; i++) {
        unsigned class = i % CLASSES;
        fputc((int)class, labels);
        for (unsigned k = 0; k < SIDE * SIDE; k++) {
            unsigned bright =
                (k / SIDE >= SIDE / 2) == class / 2 && (k % SIDE >= SIDE / 2) == class % 2;
            state = state * 1103515245u + 12345u;
            fputc((int)((state >> 16) % 160 + 60 * bright), images);
        }
    }
    return fclose(images) != 0 || fclose(labels) != 0;
}
