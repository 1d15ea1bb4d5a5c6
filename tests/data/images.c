#include "tests/data/images.h"

#include "runtime/c/rng.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>
#include <png.h>

void write_jpeg(const char *name, const Picture *p, int quality)
{
    struct jpeg_compress_struct info;
    struct jpeg_error_mgr error;
    FILE *file = fopen(name, "wb");
    cr_assert(file);
    info.err = jpeg_std_error(&error);
    jpeg_create_compress(&info);
    jpeg_stdio_dest(&info, file);
    info.image_width = (JDIMENSION)p->width;
    info.image_height = (JDIMENSION)p->height;
    info.input_components = p->channels;
    info.in_color_space = p->channels == 1 ? JCS_GRAYSCALE : p->channels == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, quality, TRUE);
    if (p->whole)
        jpeg_simple_progression(&info);
    jpeg_start_compress(&info, TRUE);
    for (int y = 0; y < p->height; y++) {
        JSAMPROW row = (JSAMPROW)(p->pixel + (size_t)y * (size_t)(p->width * p->channels));
        jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
    fclose(file);
}

void write_png(const char *name, const Picture *p)
{
    static const int type[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                               PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    FILE *file = fopen(name, "wb");
    cr_assert(file);
    png_init_io(png, file);
    png_set_IHDR(png, info, (png_uint_32)p->width, (png_uint_32)p->height, p->bits ? p->bits : 8,
                 p->palette ? PNG_COLOR_TYPE_PALETTE : type[p->channels],
                 p->whole ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, 0, 0);
    png_color palette[256];
    for (int i = 0; i < 256; i++)
        palette[i] = (png_color){(png_byte)i, (png_byte)(255 - i), (png_byte)(i / 2)};
    if (p->palette)
        png_set_PLTE(png, info, palette, 256);
    png_write_info(png, info);
    const size_t row = (size_t)(p->width * p->channels * (p->bits == 16 ? 2 : 1));
    png_bytep *rows = malloc((size_t)p->height * sizeof *rows);
    for (int y = 0; y < p->height; y++)
        rows[y] = (png_bytep)(p->pixel + (size_t)y * row);
    png_write_image(png, rows);
    png_write_end(png, info);
    free(rows);
    png_destroy_write_struct(&png, &info);
    fclose(file);
}

void draw_picture(unsigned char *pixel, int width, int height, int channels, unsigned seed)
{
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < channels; c++, pixel++) {
                const double wave = sin((x + (int)seed) * 0.05 * (c + 1)) * cos(y * 0.07);
                const int noise = (int)(gp_random_mix(seed, (uint64_t)(y * width + x)) % 16);
                *pixel = (unsigned char)(120 + 110 * wave + noise);
            }
}
