/* Images: which part of one is taken, and what its decoder needs. data_jpeg.h and data_png.h decode
 * them row by row into data_resize.h. */
#ifndef GP_DATA_IMAGE_H
#define GP_DATA_IMAGE_H

#include "data_resize.h"

#include <setjmp.h>

/* A file that is being decoded, with the memory that was planned for it. */
typedef struct {
    gp_slab slab;
    int file;
    const char *name; /* for messages */
    char *text;
    jmp_buf broken; /* where an error of a library ends */
    int width, height;
    const gp_data_set *set;
    uint64_t seed, number; /* what random choices hang on */
    int32_t augment;
    unsigned char *to;
    gp_image_resize resize;
} gp_image;

/* Says what is wrong and leaves the decoder. */
#if defined(__GNUC__)
__attribute__((noreturn))
#endif
GP_HOST void
gp_image_break(gp_image *image, const char *what)
{
    gp_data_fail(image->text, "%s: %s", gp_data_brief(image->name), what);
    longjmp(image->broken, 1);
}

/* Memory for a library's object. */
GP_HOST_FAST void *gp_image_take(gp_image *image, uint64_t bytes)
{
    void *at = gp_slab_take(&image->slab, bytes);
    if (!at) {
        char what[GP_DATA_TEXT / 2];
        snprintf(what, sizeof what,
                 "%d x %d pixels need more than the %lld bytes that were planned for decoding",
                 image->width, image->height, (long long)image->set->decoder);
        gp_image_break(image, what);
    }
    return at;
}

/* ---- Which part ----------------------------------------------------------------------------- */

/* In [0, 1). */
GP_FUNCTION double gp_image_draw(const gp_image *image, int what)
{
    return (double)gp_data_random(image->seed, image->number, (uint64_t)what) * 0x1p-32;
}

/* The largest part of proportions `aspect`, around the middle. */
GP_FUNCTION gp_box gp_box_cover(double width, double height, double aspect)
{
    gp_box box;
    box.width = width > height * aspect ? height * aspect : width;
    box.height = width > height * aspect ? height : width / aspect;
    box.x = (width - box.width) / 2;
    box.y = (height - box.height) / 2;
    return box;
}

enum { GP_CROP_TRIES = 10 };

/* A random part: of an area from `crop` on and proportions near those of the output, or of the
 * largest one where none was found (as torchvision's RandomResizedCrop). */
GP_HOST_FAST gp_box gp_box_random(const gp_image *image, double aspect)
{
    const double width = image->width, height = image->height, least = image->set->crop;
    const double most = log(image->set->crop_aspect > 0 ? image->set->crop_aspect : 4.0 / 3);
    gp_box box = gp_box_cover(width, height, aspect);
    for (int i = 0; i < GP_CROP_TRIES && least < 1; i++) {
        const double area =
            width * height * (least + (1 - least) * gp_image_draw(image, GP_DRAW_AREA + i));
        const double ratio =
            aspect * exp(most * (2 * gp_image_draw(image, GP_DRAW_ASPECT + i) - 1));
        const double w = floor(sqrt(area * ratio) + 0.5), h = floor(sqrt(area / ratio) + 0.5);
        if (w >= 1 && h >= 1 && w <= width && h <= height) {
            box.width = w;
            box.height = h;
            break;
        }
    }
    box.x = floor(gp_image_draw(image, GP_DRAW_ACROSS) * (width - box.width + 1));
    box.y = floor(gp_image_draw(image, GP_DRAW_DOWN) * (height - box.height + 1));
    box.x = box.x + box.width > width ? width - box.width : box.x;
    box.y = box.y + box.height > height ? height - box.height : box.y;
    return box;
}

/* The part that is taken, in pixels of the file. */
GP_HOST_FAST gp_box gp_image_box(const gp_image *image)
{
    const gp_data_field *field = &image->set->field[0];
    const int chw = field->layout == GP_DATA_CHW;
    const double aspect = (double)field->dim[chw + 1] / (double)field->dim[chw];
    gp_box box;
    if (image->augment && image->set->crop > 0)
        return gp_box_random(image, aspect);
    if (image->set->fit == GP_DATA_COVER)
        return gp_box_cover(image->width, image->height, aspect);
    box.x = box.y = 0;
    box.width = image->width;
    box.height = image->height;
    return box;
}

/* Begins to resize what a decoder gives as width x height. */
GP_HOST_FAST void gp_image_begin(gp_image *image, int width, int height)
{
    gp_box box = gp_image_box(image);
    const double across = (double)width / image->width, down = (double)height / image->height;
    const int flip =
        image->augment && image->set->flip && gp_image_draw(image, GP_DRAW_FLIP) >= 0.5;
    box.x *= across;
    box.width *= across;
    box.y *= down;
    box.height *= down;
    if (!gp_image_resize_begin(&image->resize, &image->slab, width, height, box,
                               &image->set->field[0], image->to, flip))
        gp_image_take(image, image->slab.size); /* says that there is no room */
}

/* Whether colours are wanted, or grey. */
GP_FUNCTION int gp_image_is_grey(const gp_image *image)
{
    const gp_data_field *field = &image->set->field[0];
    return field->layout == GP_DATA_HW || (field->layout == GP_DATA_CHW && field->dim[0] == 1) ||
           (field->layout == GP_DATA_HWC && field->dim[2] == 1);
}

/* Brightness as television has it (ITU-R 601), rounded. */
GP_FUNCTION unsigned char gp_image_luma(const unsigned char *rgb)
{
    return (unsigned char)((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
}

#endif
