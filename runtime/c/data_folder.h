/* Images in folders, a folder a class. What an image is, its first bytes say, not its name. */
#ifndef GP_DATA_FOLDER_H
#define GP_DATA_FOLDER_H

#include "data_index.h"
#include "data_jpeg.h"
#include "data_png.h"

/* Decodes the file at image->name. */
GP_HOST_FAST int gp_folder_decode(gp_image *image)
{
    unsigned char start[4] = {0};
    image->file = open(image->name, O_RDONLY | O_CLOEXEC);
    if (image->file < 0)
        return gp_data_errno(image->text, image->name);
    const int has = gp_read_at(image->file, start, sizeof start, 0);
    const int code =
        has && start[0] == 0xff && start[1] == 0xd8 ? gp_jpeg_decode(image)
        : has && start[0] == 0x89 && memcmp(start + 1, "PNG", 3) == 0
            ? gp_png_decode(image)
            : gp_data_fail(image->text, "%s: neither a JPEG nor a PNG", gp_data_brief(image->name));
    close(image->file);
    return code;
}

GP_HOST_FAST void gp_folder_label(const gp_data_field *field, unsigned char *to, int64_t label)
{
    const uint8_t u8 = (uint8_t)label;
    const uint16_t u16 = (uint16_t)label;
    const int32_t i32 = (int32_t)label;
    const size_t bytes = gp_size(field->dtype);
    memcpy(to,
           bytes == 8   ? (const void *)&label
           : bytes == 4 ? (const void *)&i32
           : bytes == 2 ? (const void *)&u16
                        : (const void *)&u8,
           bytes);
}

/* The file at `path` as the sample of a job, and its class. */
GP_HOST_FAST int gp_folder_take(gp_data_worker *w, const gp_data_job *job, const char *path,
                                int64_t label)
{
    const gp_data *d = w->data;
    gp_image image;
    memset(&image, 0, sizeof image);
    image.slab.at = w->decoder;
    image.slab.size = (size_t)d->set->decoder;
    image.name = path;
    image.text = w->text;
    image.set = d->set;
    image.seed = d->start.seed;
    image.number = job->number;
    image.augment = job->augment;
    image.to = job->field[0];
    const int code = gp_folder_decode(&image);
    if (code == GP_OK && d->set->fields > 1)
        gp_folder_label(&d->set->field[1], job->field[1], label);
    return code;
}

GP_HOST_FAST int gp_folder_read(gp_data_worker *w, const gp_data_job *job)
{
    char path[GP_DATA_PATH];
    int64_t label = 0;
    const int code = gp_index_find(w->data, job->sample, path, &label, w->text);
    return code == GP_OK ? gp_folder_take(w, job, path, label) : code;
}

GP_HOST int gp_folder_open(gp_data *d)
{
    const int code = gp_index_open(d);
    const int64_t classes = d->set->fields > 1 ? d->set->field[1].classes : 0;
    if (code == GP_OK && classes && classes != d->classes)
        return gp_data_fail(d->text, "%s: has folders for %lld classes, but the model has %lld",
                            gp_data_brief(d->path), (long long)d->classes, (long long)classes);
    return code;
}

static const gp_data_source gp_data_folder = {gp_folder_open, gp_folder_read};

/* Image files that the caller names one by one, of no class: start.user is an array of paths, which
 * start.samples counts. */
GP_HOST int gp_files_open(gp_data *d)
{
    if (!d->start.user)
        return gp_data_fail(d->text, "data %s: no files were given", d->set->name);
    d->total = d->start.samples;
    return GP_OK;
}

GP_HOST_FAST int gp_files_read(gp_data_worker *w, const gp_data_job *job)
{
    const char *const *path = (const char *const *)w->data->start.user;
    return gp_folder_take(w, job, path[job->sample], 0);
}

static const gp_data_source gp_data_files = {gp_files_open, gp_files_read};

/* One image file as evaluation would see it, into `to`; `work` is the memory of a set that is not
 * open. `text` has GP_DATA_TEXT bytes. */
GP_HOST int gp_data_image(const gp_data_set *set, void *work, const char *path, void *to,
                          char *text)
{
    gp_image image;
    memset(&image, 0, sizeof image);
    image.slab.at = (unsigned char *)work;
    image.slab.size = (size_t)set->decoder;
    image.name = path;
    image.text = text;
    image.set = set;
    image.to = (unsigned char *)to;
    return gp_folder_decode(&image);
}

#endif
