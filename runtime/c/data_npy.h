/* NumPy's .npy: "\x93NUMPY", a version, the length of a header, and that as the text of a Python
 * dict with descr, fortran_order and shape; then the array. */
#ifndef GP_DATA_NPY_H
#define GP_DATA_NPY_H

#include "data_array.h"

enum { GP_NPY_HEADER = 4096 };

/* What stands after 'key': in the dict; NULL where it does not. */
GP_HOST const char *gp_npy_find(const char *dict, const char *key)
{
    char quoted[32];
    snprintf(quoted, sizeof quoted, "'%s'", key);
    const char *at = strstr(dict, quoted);
    if (!at)
        return NULL;
    at += strlen(quoted);
    at += strspn(at, " ");
    if (*at != ':')
        return NULL;
    return at + 1 + strspn(at + 1, " ");
}

/* A dtype as NumPy names it, in the byte order of this machine; -1: none of ours. */
GP_HOST int32_t gp_npy_dtype(const char *descr)
{
    static const struct {
        const char *name;
        int32_t dtype;
    } rows[] = {{"f4", GP_F32}, {"f2", GP_F16}, {"f8", GP_F64},  {"i4", GP_I32}, {"i8", GP_I64},
                {"u1", GP_U8},  {"i1", GP_I8},  {"b1", GP_BOOL}, {"u2", GP_U16}, {"u4", GP_U32}};
    if (descr[0] != '\'' || !strchr("<|=", descr[1]) || descr[1] == 0)
        return -1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strncmp(descr + 2, rows[i].name, 2) == 0 && descr[4] == '\'')
            return rows[i].dtype;
    return -1;
}

/* (60000, 28, 28) */
GP_HOST int gp_npy_shape(const char *at, gp_data_header *h)
{
    if (*at++ != '(')
        return 0;
    for (at += strspn(at, " "); *at >= '0' && *at <= '9'; at += strspn(at, ", ")) {
        int64_t dim = 0;
        for (; *at >= '0' && *at <= '9'; at++) {
            if (dim > (int64_t)1 << 56)
                return 0;
            dim = dim * 10 + (*at - '0');
        }
        if (h->rank > GP_MAX_RANK)
            return 0;
        h->dim[h->rank++] = dim;
    }
    return *at == ')';
}

GP_HOST int gp_npy_dict(gp_data *d, const char *path, const char *dict, gp_data_header *h)
{
    const char *descr = gp_npy_find(dict, "descr"), *name = gp_data_brief(path);
    const char *fortran = gp_npy_find(dict, "fortran_order"), *shape = gp_npy_find(dict, "shape");
    if (!descr || !fortran || !shape)
        return gp_data_fail(d->text, "%s: no .npy file: its header lacks %s", name,
                            !descr     ? "descr"
                            : !fortran ? "fortran_order"
                                       : "shape");
    if (strncmp(descr, "'|O'", 4) == 0 || strncmp(descr, "'O'", 3) == 0)
        return gp_data_fail(d->text,
                            "%s: holds pickled Python objects, which are not read: save it with "
                            "a dtype of numbers",
                            name);
    if (descr[0] == '\'' && descr[1] == '>')
        return gp_data_fail(d->text,
                            "%s: is big-endian (%.6s): save it with a.astype(a.dtype."
                            "newbyteorder('<'))",
                            name, descr);
    h->dtype = gp_npy_dtype(descr);
    if (h->dtype < 0)
        return gp_data_fail(d->text, "%s: has a dtype that is not read: %.*s", name,
                            (int)strcspn(descr, ","), descr);
    if (strncmp(fortran, "False", 5) != 0)
        return gp_data_fail(d->text,
                            "%s: is in Fortran order: save it with numpy.ascontiguousarray", name);
    if (!gp_npy_shape(shape, h) || h->rank == 0)
        return gp_data_fail(d->text, "%s: no shape with a dimension for samples: %.*s", name,
                            (int)strcspn(shape, ")"), shape);
    return GP_OK;
}

GP_HOST int gp_npy_header(gp_data *d, int f, const char *path, gp_data_header *h)
{
    const int file = d->array[f].file;
    unsigned char start[12];
    char dict[GP_NPY_HEADER];
    if (!gp_read_at(file, start, sizeof start, 0) || memcmp(start, "\x93NUMPY", 6) != 0)
        return gp_data_fail(d->text, "%s: no .npy file", gp_data_brief(path));
    if (start[6] < 1 || start[6] > 3)
        return gp_data_fail(d->text, "%s: .npy of version %d, which is not known",
                            gp_data_brief(path), start[6]);
    const uint64_t from = start[6] == 1 ? 10 : 12;
    uint64_t length = start[8] | (uint64_t)start[9] << 8;
    if (start[6] > 1)
        length |= (uint64_t)start[10] << 16 | (uint64_t)start[11] << 24;
    if (length >= sizeof dict || !gp_read_at(file, dict, (size_t)length, from))
        return gp_data_fail(d->text, "%s: no .npy file: its header is cut short or too long",
                            gp_data_brief(path));
    dict[length] = 0;
    h->base = from + length;
    return gp_npy_dict(d, path, dict, h);
}

GP_HOST int gp_npy_open(gp_data *d)
{
    return gp_data_open_arrays(d, gp_data_find, gp_npy_header);
}

static const gp_data_source gp_data_npy = {gp_npy_open, gp_data_array_read};

#endif
