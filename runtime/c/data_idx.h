/* The idx files of MNIST and its kin: two zeros, a dtype, a rank, the dims as big-endian words,
 * then the numbers. Packed with gzip they are unpacked once. */
#ifndef GP_DATA_IDX_H
#define GP_DATA_IDX_H

#include "data_array.h"
#include "data_inflate.h"

GP_HOST int gp_idx_header(gp_data *d, int f, const char *path, gp_data_header *h)
{
    const int file = d->array[f].file;
    const char *name = gp_data_brief(path);
    unsigned char start[4], dim[4];
    if (!gp_read_at(file, start, sizeof start, 0) || start[0] || start[1])
        return gp_data_fail(d->text, "%s: no idx file", name);
    h->dtype = start[2] == 8 ? GP_U8 : start[2] == 9 ? GP_I8 : -1;
    if (h->dtype < 0)
        return gp_data_fail(d->text, "%s: idx of type 0x%02x: only bytes (0x08, 0x09) are read",
                            name, start[2]);
    if (start[3] < 1 || start[3] > GP_MAX_RANK + 1)
        return gp_data_fail(d->text, "%s: idx of %d dimensions", name, start[3]);
    for (h->rank = 0; h->rank < start[3]; h->rank++) {
        if (!gp_read_at(file, dim, sizeof dim, 4 + 4 * (uint64_t)h->rank))
            return gp_data_fail(d->text, "%s: the file is cut short within its header", name);
        h->dim[h->rank] =
            (int64_t)dim[0] << 24 | (int64_t)dim[1] << 16 | (int64_t)dim[2] << 8 | dim[3];
    }
    h->base = 4 + 4 * (uint64_t)h->rank;
    return GP_OK;
}

/* ---- Packed ones ---------------------------------------------------------------------------- */

GP_HOST int gp_idx_is_current(const gp_preparation *p, int file)
{
    (void)p, (void)file;
    return 1; /* beside: as the user wants it; in the cache folder its name has the stamp */
}

GP_HOST int gp_idx_unpack(gp_data *d, const gp_preparation *p, gp_writer *to)
{
    size_t room;
    gp_inflater *z = (gp_inflater *)gp_prepare_memory(d, &room);
    const int file = open(p->original, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return gp_data_errno(d->text, p->original);
    const int whole = sizeof *z <= room && gp_gunzip(file, z, to);
    close(file);
    return whole || to->failed ? GP_OK
                               : gp_data_fail(d->text, "%s: damaged, or cut short: gzip -t agrees",
                                              gp_data_brief(p->original));
}

/* The unpacked file of a path that ends in .gz. */
GP_HOST int gp_idx_open_packed(gp_data *d, int f, const char *packed)
{
    char beside[GP_DATA_PATH];
    struct stat info;
    gp_preparation p;
    memset(&p, 0, sizeof p);
    if (stat(packed, &info) != 0)
        return gp_data_errno(d->text, packed);
    snprintf(beside, sizeof beside, "%.*s", (int)(strlen(packed) - 3), packed);
    p.original = packed;
    p.beside = beside;
    p.stamp = gp_stamp_of(&info, GP_HASH_START);
    p.is_current = gp_idx_is_current;
    p.make = gp_idx_unpack;
    return gp_prepare(d, &p, &d->array[f].file);
}

/* The file itself, or the packed one of its name. */
GP_HOST int gp_idx_find(gp_data *d, int f, char *path)
{
    const size_t length = strlen(path);
    const int packed = length > 3 && strcmp(path + length - 3, ".gz") == 0;
    if (packed)
        return gp_idx_open_packed(d, f, path);
    d->array[f].file = open(path, O_RDONLY | O_CLOEXEC);
    if (d->array[f].file >= 0)
        return GP_OK;
    const int why = errno;
    if (length + 4 > GP_DATA_PATH)
        return gp_data_errno(d->text, path);
    memcpy(path + length, ".gz", 4);
    if (access(path, R_OK) == 0)
        return gp_idx_open_packed(d, f, path);
    path[length] = 0;
    errno = why;
    return gp_data_errno(d->text, path);
}

GP_HOST int gp_idx_open(gp_data *d)
{
    return gp_data_open_arrays(d, gp_idx_find, gp_idx_header);
}

static const gp_data_source gp_data_idx = {gp_idx_open, gp_data_array_read};

#endif
