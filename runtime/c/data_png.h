/* PNG by libpng, with its memory from what was planned. */
#ifndef GP_DATA_PNG_H
#define GP_DATA_PNG_H

#include "data_image.h"

#include <png.h>

enum { GP_PNG_MOST = 1000000, GP_PNG_CHUNK = 65536 };

typedef struct {
    gp_image *image;
    png_structp png;
    png_infop info;
    uint64_t at; /* in the file */
    int channels;
    unsigned char *row, *wide; /* as the library gives it, and with four bytes a pixel */
    unsigned char **rows;      /* of an interlaced one: all */
    int done;
} gp_png;

/* ---- What the library asks for -------------------------------------------------------------- */

GP_HOST_FAST png_voidp gp_png_take(png_structp png, png_alloc_size_t bytes)
{
    gp_png *p = (gp_png *)png_get_mem_ptr(png);
    return gp_slab_take(&p->image->slab, bytes); /* NULL: the library says that it has none */
}

GP_HOST_FAST void gp_png_free(png_structp png, png_voidp at)
{
    (void)png, (void)at; /* all of it goes with the image */
}

GP_HOST void gp_png_fail(png_structp png, png_const_charp what)
{
    gp_png *p = (gp_png *)png_get_error_ptr(png);
    if (strstr(what, "emory"))
        gp_image_take(p->image, p->image->slab.size); /* says how much was planned */
    gp_image_break(p->image, what);
}

GP_HOST void gp_png_warn(png_structp png, png_const_charp what)
{
    (void)png, (void)what; /* about colours and comments; damaged pixels are errors */
}

GP_HOST_FAST void gp_png_read(png_structp png, png_bytep to, size_t bytes)
{
    gp_png *p = (gp_png *)png_get_io_ptr(png);
    if (!gp_read_at(p->image->file, to, bytes, p->at))
        gp_image_break(p->image, "the file is cut short");
    p->at += bytes;
}

/* ---- Decoding ------------------------------------------------------------------------------- */

/* Whatever it holds becomes 8 bits of grey or of red, green and blue, with or without alpha. */
GP_HOST void gp_png_transform(gp_png *p)
{
    png_set_expand(p->png);
    png_set_scale_16(p->png);
    png_set_interlace_handling(p->png);
    png_read_update_info(p->png, p->info);
    p->channels = png_get_channels(p->png, p->info);
}

/* One row as four bytes a pixel. What shines through is white. */
GP_HOST_LOOP void gp_png_widen(const gp_png *p, const unsigned char *row)
{
    const int n = p->channels, colours = n > 2 ? 3 : 1, has_alpha = n % 2 == 0;
    const int grey = gp_image_is_grey(p->image);
    for (int x = 0; x < p->image->width; x++, row += n) {
        unsigned char *to = p->wide + 4 * (size_t)x;
        for (int c = 0; c < 3; c++) {
            const int level = row[colours == 3 ? c : 0], alpha = has_alpha ? row[n - 1] : 255;
            to[c] = (unsigned char)((level * alpha + 255 * (255 - alpha) + 127) / 255);
        }
        if (grey)
            to[0] = gp_image_luma(to);
    }
}

GP_HOST void gp_png_whole(gp_png *p, size_t bytes)
{
    gp_image *image = p->image;
    p->rows = (unsigned char **)gp_image_take(image, sizeof *p->rows * (uint64_t)image->height);
    unsigned char *at = (unsigned char *)gp_image_take(image, (uint64_t)bytes * image->height);
    memset(at, 0, bytes * (size_t)image->height);
    for (int y = 0; y < image->height; y++)
        p->rows[y] = at + bytes * (size_t)y;
    png_read_image(p->png, p->rows);
}

GP_HOST_FAST void gp_png_rows(gp_png *p)
{
    gp_image *image = p->image;
    png_set_user_limits(p->png, GP_PNG_MOST, GP_PNG_MOST);
    png_set_chunk_malloc_max(p->png, GP_PNG_CHUNK);
    png_set_read_fn(p->png, p, gp_png_read);
    png_read_info(p->png, p->info);
    image->width = (int)png_get_image_width(p->png, p->info);
    image->height = (int)png_get_image_height(p->png, p->info);
    const int interlaced = png_get_interlace_type(p->png, p->info) != PNG_INTERLACE_NONE;
    gp_png_transform(p);
    const size_t bytes = png_get_rowbytes(p->png, p->info);
    gp_image_begin(image, image->width, image->height);
    p->wide = (unsigned char *)gp_image_take(image, 4 * (uint64_t)image->width);
    memset(p->wide, 0, 4 * (size_t)image->width);
    if (interlaced)
        gp_png_whole(p, bytes);
    else
        p->row = (unsigned char *)gp_image_take(image, bytes);
    for (int y = 0; y < image->height; y++) {
        if (!interlaced)
            png_read_row(p->png, p->row, NULL);
        if (y < gp_image_resize_end(&image->resize)) {
            gp_png_widen(p, interlaced ? p->rows[y] : p->row);
            gp_image_resize_row(&image->resize, p->wide);
        }
    }
    png_read_end(p->png, NULL); /* sees damage at the end too */
    p->done = 1;
}

/* Alone with its setjmp: what a jump might leave stale is in the object. */
GP_HOST_LOOP void gp_png_try(gp_png *p)
{
    if (setjmp(p->image->broken) != 0)
        return;
    p->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, p, gp_png_fail, gp_png_warn, p,
                                      gp_png_take, gp_png_free);
    p->info = p->png ? png_create_info_struct(p->png) : NULL;
    if (!p->info)
        gp_image_take(p->image, p->image->slab.size); /* says how much was planned */
    gp_png_rows(p);
}

/* Decodes the file into image->to. */
GP_HOST_FAST int gp_png_decode(gp_image *image)
{
    gp_png *p = (gp_png *)gp_slab_take(&image->slab, sizeof(gp_png));
    if (!p)
        return gp_data_fail(image->text, "data %s: no memory was planned for decoding",
                            image->set->name);
    memset(p, 0, sizeof *p);
    p->image = image;
    gp_png_try(p);
    if (p->png)
        png_destroy_read_struct(&p->png, &p->info, NULL);
    if (!p->done)
        return GP_EDATA;
    return GP_OK;
}

#endif
