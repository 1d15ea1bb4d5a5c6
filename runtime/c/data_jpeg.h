/* JPEG by libjpeg, with its memory from what was planned.
 *
 * The library takes a few hundred bytes by itself when an object is created; everything after that
 * comes from a memory manager of ours. Nearly all damage is only a warning to it: here it is an
 * error. */
#ifndef GP_DATA_JPEG_H
#define GP_DATA_JPEG_H

#include "data_image.h"

#include <stdio.h>

#include <jpeglib.h>

enum { GP_JPEG_INPUT = 8192, GP_JPEG_SCANS = 500 };

/* An array that is as a whole in memory: what the library knows by these tags. */
typedef struct jvirt_sarray_control {
    JSAMPARRAY rows;
    JDIMENSION width, height;
    struct jvirt_sarray_control *next;
} gp_jpeg_sarray;
typedef struct jvirt_barray_control {
    JBLOCKARRAY rows;
    JDIMENSION width, height;
    struct jvirt_barray_control *next;
} gp_jpeg_barray;

typedef struct {
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr error;
    struct jpeg_source_mgr source;
    struct jpeg_memory_mgr memory;
    struct jpeg_progress_mgr progress;
    struct jpeg_memory_mgr *own; /* the library's, for its end */
    gp_image *image;
    uint64_t at; /* in the file */
    unsigned char *input;
    gp_jpeg_sarray *samples; /* not yet in memory */
    gp_jpeg_barray *blocks;
    int done;
} gp_jpeg;

GP_HOST_FAST gp_jpeg *gp_jpeg_of(j_common_ptr info)
{
    return (gp_jpeg *)info->client_data;
}

/* ---- Memory --------------------------------------------------------------------------------- */

GP_HOST_FAST void *gp_jpeg_take(j_common_ptr info, int pool, size_t bytes)
{
    (void)pool; /* all of it goes with the image */
    return gp_image_take(gp_jpeg_of(info)->image, bytes);
}

GP_HOST_FAST JSAMPARRAY gp_jpeg_samples(j_common_ptr info, int pool, JDIMENSION width,
                                        JDIMENSION height)
{
    const uint64_t stride = gp_data_round(width, 64); /* vectors write beyond the end of a row */
    JSAMPARRAY rows = (JSAMPARRAY)gp_jpeg_take(info, pool, height * sizeof *rows);
    unsigned char *at = (unsigned char *)gp_jpeg_take(info, pool, stride * height);
    for (JDIMENSION i = 0; i < height; i++)
        rows[i] = at + stride * i;
    return rows;
}

GP_HOST_FAST JBLOCKARRAY gp_jpeg_blocks(j_common_ptr info, int pool, JDIMENSION width,
                                        JDIMENSION height)
{
    JBLOCKARRAY rows = (JBLOCKARRAY)gp_jpeg_take(info, pool, height * sizeof *rows);
    JBLOCKROW at = (JBLOCKROW)gp_jpeg_take(info, pool, (uint64_t)width * height * sizeof(JBLOCK));
    for (JDIMENSION i = 0; i < height; i++)
        rows[i] = at + (size_t)width * i;
    return rows;
}

GP_HOST jvirt_sarray_ptr gp_jpeg_want_samples(j_common_ptr info, int pool, boolean zero,
                                              JDIMENSION width, JDIMENSION height, JDIMENSION most)
{
    jvirt_sarray_ptr a = (jvirt_sarray_ptr)gp_jpeg_take(info, pool, sizeof *a);
    (void)zero, (void)most;
    a->rows = NULL;
    a->width = width;
    a->height = height;
    a->next = gp_jpeg_of(info)->samples;
    return gp_jpeg_of(info)->samples = a;
}

GP_HOST jvirt_barray_ptr gp_jpeg_want_blocks(j_common_ptr info, int pool, boolean zero,
                                             JDIMENSION width, JDIMENSION height, JDIMENSION most)
{
    jvirt_barray_ptr a = (jvirt_barray_ptr)gp_jpeg_take(info, pool, sizeof *a);
    (void)zero, (void)most;
    a->rows = NULL;
    a->width = width;
    a->height = height;
    a->next = gp_jpeg_of(info)->blocks;
    return gp_jpeg_of(info)->blocks = a;
}

/* All that was asked for, as a whole and zero. */
GP_HOST void gp_jpeg_realize(j_common_ptr info)
{
    gp_jpeg *jpeg = gp_jpeg_of(info);
    for (; jpeg->samples; jpeg->samples = jpeg->samples->next) {
        jvirt_sarray_ptr a = jpeg->samples;
        a->rows = gp_jpeg_samples(info, JPOOL_IMAGE, a->width, a->height);
        for (JDIMENSION i = 0; i < a->height; i++)
            memset(a->rows[i], 0, a->width);
    }
    for (; jpeg->blocks; jpeg->blocks = jpeg->blocks->next) {
        jvirt_barray_ptr a = jpeg->blocks;
        a->rows = gp_jpeg_blocks(info, JPOOL_IMAGE, a->width, a->height);
        for (JDIMENSION i = 0; i < a->height; i++)
            memset(a->rows[i], 0, a->width * sizeof(JBLOCK));
    }
}

GP_HOST_FAST JSAMPARRAY gp_jpeg_at_samples(j_common_ptr info, jvirt_sarray_ptr a, JDIMENSION row,
                                           JDIMENSION count, boolean writable)
{
    (void)writable;
    if (row > a->height || count > a->height - row || !a->rows)
        gp_image_break(gp_jpeg_of(info)->image, "a JPEG that asks for rows it does not have");
    return a->rows + row;
}

GP_HOST_FAST JBLOCKARRAY gp_jpeg_at_blocks(j_common_ptr info, jvirt_barray_ptr a, JDIMENSION row,
                                           JDIMENSION count, boolean writable)
{
    (void)writable;
    if (row > a->height || count > a->height - row || !a->rows)
        gp_image_break(gp_jpeg_of(info)->image, "a JPEG that asks for blocks it does not have");
    return a->rows + row;
}

GP_HOST void gp_jpeg_free(j_common_ptr info, int pool)
{
    (void)info, (void)pool;
}

GP_HOST void gp_jpeg_end(j_common_ptr info)
{
    (void)info;
}

GP_HOST void gp_jpeg_memory(gp_jpeg *jpeg)
{
    struct jpeg_memory_mgr *m = &jpeg->memory;
    m->alloc_small = m->alloc_large = gp_jpeg_take;
    m->alloc_sarray = gp_jpeg_samples;
    m->alloc_barray = gp_jpeg_blocks;
    m->request_virt_sarray = gp_jpeg_want_samples;
    m->request_virt_barray = gp_jpeg_want_blocks;
    m->realize_virt_arrays = gp_jpeg_realize;
    m->access_virt_sarray = gp_jpeg_at_samples;
    m->access_virt_barray = gp_jpeg_at_blocks;
    m->free_pool = gp_jpeg_free;
    m->self_destruct = gp_jpeg_end;
    m->max_memory_to_use = 1000000000;
    m->max_alloc_chunk = 1000000000;
    jpeg->own = jpeg->info.mem;
    jpeg->info.mem = m;
}

/* ---- Errors and bytes ----------------------------------------------------------------------- */

GP_HOST void gp_jpeg_fail(j_common_ptr info)
{
    char what[JMSG_LENGTH_MAX];
    info->err->format_message(info, what);
    gp_image_break(gp_jpeg_of(info)->image, what);
}

/* Warnings are below 0. */
GP_HOST void gp_jpeg_message(j_common_ptr info, int level)
{
    if (level < 0)
        gp_jpeg_fail(info);
}

GP_HOST void gp_jpeg_silence(j_common_ptr info)
{
    (void)info;
}

/* A few bytes can ask for thousands of scans of a large image. */
GP_HOST void gp_jpeg_count(j_common_ptr info)
{
    if (((j_decompress_ptr)info)->input_scan_number > GP_JPEG_SCANS)
        gp_image_break(gp_jpeg_of(info)->image, "a JPEG of more scans than anyone makes");
}

GP_HOST boolean gp_jpeg_fill(j_decompress_ptr info)
{
    gp_jpeg *jpeg = gp_jpeg_of((j_common_ptr)info);
    ssize_t n;
    do
        n = pread(jpeg->image->file, jpeg->input, GP_JPEG_INPUT, (off_t)jpeg->at);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        gp_image_break(jpeg->image, strerror(errno));
    if (n == 0)
        gp_image_break(jpeg->image, "the file is cut short");
    jpeg->at += (uint64_t)n;
    jpeg->source.next_input_byte = jpeg->input;
    jpeg->source.bytes_in_buffer = (size_t)n;
    return TRUE;
}

GP_HOST void gp_jpeg_skip(j_decompress_ptr info, long bytes)
{
    gp_jpeg *jpeg = gp_jpeg_of((j_common_ptr)info);
    if (bytes <= 0)
        return;
    const size_t held = jpeg->source.bytes_in_buffer;
    if ((size_t)bytes <= held) {
        jpeg->source.next_input_byte += bytes;
        jpeg->source.bytes_in_buffer -= (size_t)bytes;
        return;
    }
    jpeg->at += (uint64_t)bytes - held;
    gp_jpeg_fill(info);
}

GP_HOST void gp_jpeg_nothing(j_decompress_ptr info)
{
    (void)info;
}

/* ---- Decoding ------------------------------------------------------------------------------- */

/* The library can leave out frequencies: to an eighth, a quarter or a half, as long as the result
 * is no smaller than what is wanted. */
GP_HOST_FAST unsigned gp_jpeg_scale(const gp_image *image)
{
    const gp_data_field *field = &image->set->field[0];
    const int chw = field->layout == GP_DATA_CHW;
    const gp_box box = gp_image_box(image);
    unsigned scale = 8;
    while (scale > 1 && box.height * (scale / 2) >= 8 * (double)field->dim[chw] &&
           box.width * (scale / 2) >= 8 * (double)field->dim[chw + 1])
        scale /= 2;
    return scale;
}

/* One row of the library as four bytes a pixel. Adobe's CMYK is inverted; all others are rare. */
GP_HOST_LOOP void gp_jpeg_widen(const gp_jpeg *jpeg, const unsigned char *row, unsigned char *to)
{
    const int width = (int)jpeg->info.output_width, grey = gp_image_is_grey(jpeg->image);
    if (jpeg->info.out_color_space == JCS_GRAYSCALE)
        for (int x = 0; x < width; x++)
            to[4 * x] = row[x];
    else if (jpeg->info.out_color_space == JCS_CMYK)
        for (int x = 0; x < width; x++) {
            for (int c = 0; c < 3; c++) {
                const int ink = row[4 * x + c], black = row[4 * x + 3];
                to[4 * x + c] = (unsigned char)(jpeg->info.saw_Adobe_marker
                                                    ? (ink * black + 127) / 255
                                                    : ((255 - ink) * (255 - black) + 127) / 255);
            }
            if (grey)
                to[4 * x] = gp_image_luma(to + 4 * x);
        }
}

/* Which colours the library is asked for. */
GP_HOST_FAST void gp_jpeg_colours(gp_jpeg *jpeg)
{
    const J_COLOR_SPACE has = jpeg->info.jpeg_color_space;
    jpeg->info.out_color_space = has == JCS_CMYK || has == JCS_YCCK ? JCS_CMYK
                                 : gp_image_is_grey(jpeg->image)    ? JCS_GRAYSCALE
                                                                    : JCS_EXT_RGBX;
}

GP_HOST_FAST void gp_jpeg_rows(gp_jpeg *jpeg)
{
    gp_image *image = jpeg->image;
    j_decompress_ptr info = &jpeg->info;
    jpeg_read_header(info, TRUE);
    image->width = (int)info->image_width;
    image->height = (int)info->image_height;
    info->scale_num = gp_jpeg_scale(image);
    info->scale_denom = 8;
    gp_jpeg_colours(jpeg);
    jpeg_start_decompress(info);
    gp_image_begin(image, (int)info->output_width, (int)info->output_height);
    const int direct = info->out_color_space == JCS_EXT_RGBX;
    JSAMPROW row = (JSAMPROW)gp_image_take(image, 4 * (uint64_t)info->output_width);
    unsigned char *wide =
        direct ? row : (unsigned char *)gp_image_take(image, 4 * (uint64_t)info->output_width);
    if (!direct)
        memset(wide, 0, 4 * (size_t)info->output_width);
    const JDIMENSION end = (JDIMENSION)gp_image_resize_end(&image->resize);
    while (info->output_scanline < end) {
        jpeg_read_scanlines(info, &row, 1);
        if (!direct)
            gp_jpeg_widen(jpeg, row, wide);
        gp_image_resize_row(&image->resize, wide);
    }
    if (info->output_scanline == info->output_height)
        jpeg_finish_decompress(info); /* sees damage at the end too */
}

/* Alone with its setjmp: what a jump might leave stale is in the object. */
GP_HOST_LOOP void gp_jpeg_try(gp_jpeg *jpeg)
{
    if (setjmp(jpeg->image->broken) != 0)
        return;
    jpeg_create_decompress(&jpeg->info);
    gp_jpeg_memory(jpeg);
    jpeg->source.init_source = gp_jpeg_nothing;
    jpeg->source.fill_input_buffer = gp_jpeg_fill;
    jpeg->source.skip_input_data = gp_jpeg_skip;
    jpeg->source.resync_to_restart = jpeg_resync_to_restart;
    jpeg->source.term_source = gp_jpeg_nothing;
    jpeg->info.src = &jpeg->source;
    jpeg->progress.progress_monitor = gp_jpeg_count;
    jpeg->info.progress = &jpeg->progress;
    gp_jpeg_rows(jpeg);
    jpeg->done = 1;
}

/* Decodes the file into image->to. */
GP_HOST_FAST int gp_jpeg_decode(gp_image *image)
{
    gp_jpeg *jpeg = (gp_jpeg *)gp_slab_take(&image->slab, sizeof(gp_jpeg));
    unsigned char *input = (unsigned char *)gp_slab_take(&image->slab, GP_JPEG_INPUT);
    if (!jpeg || !input)
        return gp_data_fail(image->text, "data %s: no memory was planned for decoding",
                            image->set->name);
    memset(jpeg, 0, sizeof *jpeg);
    jpeg->image = image;
    jpeg->input = input;
    jpeg->info.err = jpeg_std_error(&jpeg->error);
    jpeg->error.error_exit = gp_jpeg_fail;
    jpeg->error.emit_message = gp_jpeg_message;
    jpeg->error.output_message = gp_jpeg_silence;
    jpeg->info.client_data = jpeg;
    gp_jpeg_try(jpeg);
    if (jpeg->own)
        jpeg->info.mem = jpeg->own;
    jpeg_destroy_decompress(&jpeg->info);
    if (!jpeg->done)
        return GP_EDATA;
    return GP_OK;
}

#endif
