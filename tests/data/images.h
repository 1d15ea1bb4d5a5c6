/* Image files to read, written by the libraries' own means. */
#ifndef TESTS_DATA_IMAGES_H
#define TESTS_DATA_IMAGES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    int width, height;
    int channels;               /* 1: grey, 2: grey and alpha, 3, 4: JPEG: CMYK, PNG: with alpha */
    bool whole;                 /* progressive, or interlaced */
    bool palette;               /* PNG */
    int bits;                   /* PNG: 16; else 8 */
    const unsigned char *pixel; /* [height, width, channels] */
} Picture;

void write_jpeg(const char *name, const Picture *p, int quality);
void write_png(const char *name, const Picture *p);

/* A picture with soft shapes and some noise. */
void draw_picture(unsigned char *pixel, int width, int height, int channels, unsigned seed);

#endif
