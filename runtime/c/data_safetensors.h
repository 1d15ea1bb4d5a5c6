/* Tensors of a safetensors file whose first dimension is the sample. */
#ifndef GP_DATA_SAFETENSORS_H
#define GP_DATA_SAFETENSORS_H

#include "data_array.h"
#include "file_load.h"

/* The entry of this name. */
GP_HOST int gp_safetensors_find(gp_reader *r, const char *name, gp_entry *found)
{
    int count = 0;
    gp_rewind(r);
    for (int n = 0; gp_more(r, n, '{', '}'); n++) {
        gp_entry e;
        if (gp_read_entry(r, &e, NULL, 0) && e.hash == gp_key(name)) {
            *found = e;
            count++;
        }
    }
    if (count > 1)
        gp_complain(r, GP_EFORMAT, name, "occurs twice in the file");
    return count == 1;
}

/* What the entry says, if its bytes are those of its shape. */
GP_HOST int gp_safetensors_entry(gp_reader *r, const gp_entry *e, gp_data_header *h)
{
    uint64_t bytes = 0;
    h->dtype = -1;
    for (int i = GP_F32; i <= GP_F64; i++)
        if (strcmp(gp_dtype_name(i), e->dtype) == 0)
            h->dtype = i;
    if (e->fields != 7 || h->dtype < 0 || e->rank < 1 || e->rank > GP_MAX_RANK)
        return 0;
    h->rank = e->rank;
    h->base = r->data + e->begin;
    bytes = gp_size(h->dtype);
    for (int i = 0; i < e->rank; i++) {
        h->dim[i] = e->dim[i];
        if (e->dim[i] > 0 && bytes > (uint64_t)INT64_MAX / (uint64_t)e->dim[i])
            return 0;
        bytes *= (uint64_t)e->dim[i];
    }
    return e->begin <= e->end && e->end - e->begin == bytes && e->end <= r->file_end - r->data;
}

GP_HOST int gp_safetensors_header(gp_data *d, int f, const char *path, gp_data_header *h)
{
    const char *key = d->set->field[f].key ? d->set->field[f].key : d->set->field[f].name;
    unsigned char start[8];
    uint64_t length = 0;
    gp_entry e;
    gp_items items;
    gp_reader r;
    memset(&e, 0, sizeof e);
    memset(&items, 0, sizeof items);
    memset(&r, 0, sizeof r);
    items.detail = d->text;
    items.detail_size = sizeof d->text;
    r.items = &items;
    r.file = d->array[f].file;
    r.path = path;
    int code = gp_data_size(r.file, path, &r.file_end, d->text);
    if (code != GP_OK)
        return code;
    if (!gp_read_at(r.file, start, sizeof start, 0))
        return gp_data_fail(d->text, "%s: not a safetensors file: too short", gp_data_brief(path));
    for (int i = 7; i >= 0; i--)
        length = length << 8 | start[i];
    if (length > r.file_end - 8)
        return gp_data_fail(d->text,
                            "%s: not a safetensors file: its header is longer than the file",
                            gp_data_brief(path));
    r.data = 8 + length;
    const int found = gp_safetensors_find(&r, key, &e);
    if (r.code != GP_OK)
        return GP_EDATA; /* the text is there */
    if (!found)
        return gp_data_fail(d->text, "%s: has no tensor %s", gp_data_brief(path), key);
    if (!gp_safetensors_entry(&r, &e, h))
        return gp_data_fail(d->text,
                            "%s: the dtype, shape or place of %s is wrong, or the file is cut "
                            "short",
                            gp_data_brief(path), key);
    return GP_OK;
}

GP_HOST int gp_safetensors_open(gp_data *d)
{
    return gp_data_open_arrays(d, gp_data_find, gp_safetensors_header);
}

static const gp_data_source gp_data_safetensors = {gp_safetensors_open, gp_data_array_read};

#endif
