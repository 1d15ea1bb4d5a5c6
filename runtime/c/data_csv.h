/* Tables of numbers as text, with commas between them (RFC 4180). They are parsed once, into a file
 * of records of fixed size, so that every mistake is found before the first step, with its line.
 *
 * A field names its first column, and takes as many as it has numbers. Where all of them say a
 * number instead, counted from 0, a first line that has no numbers there is skipped. */
#ifndef GP_DATA_CSV_H
#define GP_DATA_CSV_H

#include "data_array.h"
#include "data_prepare.h"

enum { GP_CSV_CELL = 256, GP_CSV_READ = 8192, GP_CSV_ROW = 65536 };
#define GP_CSV_MAGIC UINT64_C(0x317673636e616c70) /* "plancsv1" */

typedef struct {
    gp_data *data;
    const char *path;
    int file, ended;
    uint64_t at;
    size_t used, filled;
    int64_t line;                   /* that is being read, from 1 on */
    int64_t column[GP_DATA_FIELDS]; /* the first of each field; -1: not found */
    size_t offset[GP_DATA_FIELDS];  /* in a record */
    size_t bytes;                   /* of a record */
    int by_number;                  /* fields name their columns by number */
    char cell[GP_CSV_CELL];
    unsigned char buffer[GP_CSV_READ];
    unsigned char row[GP_CSV_ROW];
} gp_csv;
typedef char gp_csv_fits[GP_PREPARED_FITS(gp_csv)];

/* ---- Cells ---------------------------------------------------------------------------------- */

/* The next byte; -1 at the end. */
GP_HOST_FAST int gp_csv_peek(gp_csv *c)
{
    if (c->used == c->filled) {
        ssize_t n;
        do
            n = c->ended ? 0 : pread(c->file, c->buffer, sizeof c->buffer, (off_t)c->at);
        while (n < 0 && errno == EINTR);
        c->used = 0;
        c->filled = n > 0 ? (size_t)n : 0;
        c->at += c->filled;
        c->ended = n <= 0;
        if (c->ended)
            return -1;
    }
    return c->buffer[c->used];
}

GP_HOST_FAST void gp_csv_keep(gp_csv *c, size_t *length, int byte)
{
    if (*length + 1 < sizeof c->cell)
        c->cell[(*length)++] = (char)byte;
}

/* Reads one cell and what stands after it: ',', a newline, or -1 at the end. Spaces around it go.
 */
GP_HOST_FAST int gp_csv_cell(gp_csv *c)
{
    size_t length = 0;
    int byte = gp_csv_peek(c);
    for (; byte == ' ' || byte == '\t'; byte = gp_csv_peek(c))
        c->used++;
    if (byte == '"') {
        for (c->used++; (byte = gp_csv_peek(c)) >= 0; c->used++) {
            c->line += byte == '\n';
            if (byte == '"') {
                c->used++;
                if (gp_csv_peek(c) != '"')
                    break;
            }
            gp_csv_keep(c, &length, byte);
        }
    }
    for (byte = gp_csv_peek(c); byte >= 0 && byte != ',' && byte != '\n'; byte = gp_csv_peek(c)) {
        gp_csv_keep(c, &length, byte);
        c->used++;
    }
    c->used += byte >= 0;
    while (length > 0 && strchr(" \t\r", c->cell[length - 1]))
        length--;
    c->cell[length] = 0;
    return byte;
}

/* ---- Numbers -------------------------------------------------------------------------------- */

/* The cell as an element of this type. False where it is not a number of it. */
GP_HOST int gp_csv_number(const char *cell, int32_t dtype, unsigned char *to)
{
    char *end;
    errno = 0;
    if (dtype == GP_F32 || dtype == GP_F64) {
        const double f64 = strtod(cell, &end);
        const gp_real f32 = (gp_real)f64;
        memcpy(to, dtype == GP_F64 ? (const void *)&f64 : (const void *)&f32, gp_size(dtype));
        return end != cell && *end == 0;
    }
    const long long number = strtoll(cell, &end, 10);
    const size_t bytes = gp_size(dtype);
    const int is_signed = dtype == GP_I8 || dtype == GP_I32 || dtype == GP_I64;
    const int bits = (int)(8 * bytes) - is_signed;
    const long long most = bits >= 63 ? INT64_MAX : ((long long)1 << bits) - 1;
    if (end == cell || *end || errno || number > most || number < (is_signed ? -most - 1 : 0))
        return 0;
    for (size_t i = 0; i < bytes; i++)
        to[i] = (unsigned char)((unsigned long long)number >> 8 * i);
    return dtype != GP_F16 && dtype != GP_BF16;
}

GP_HOST int64_t gp_csv_count(const gp_data_field *field)
{
    return (int64_t)(gp_data_sample(field) / gp_size(field->dtype));
}

GP_HOST int gp_csv_put(gp_csv *c, int f, int64_t i)
{
    const gp_data_field *field = &c->data->set->field[f];
    unsigned char *to = c->row + c->offset[f] + (size_t)i * gp_size(field->dtype);
    char *text = c->data->text;
    if (!gp_csv_number(c->cell, field->dtype, to))
        return gp_data_fail(text, "%s:%lld: column %lld (%s): \"%.40s\" is not a number of type %s",
                            gp_data_brief(c->path), (long long)c->line,
                            (long long)(c->column[f] + i), field->key ? field->key : field->name,
                            c->cell, gp_dtype_name(field->dtype));
    const int64_t number = field->classes ? gp_data_integer(to, field->dtype, 0) : 0;
    if (field->classes && (number < 0 || number >= field->classes))
        return gp_data_fail(text, "%s:%lld: %s has %lld, but the model has %lld classes",
                            gp_data_brief(c->path), (long long)c->line, field->name,
                            (long long)number, (long long)field->classes);
    return GP_OK;
}

/* ---- Rows ----------------------------------------------------------------------------------- */

/* The first line: where the columns of the fields stand. */
GP_HOST int gp_csv_names(gp_csv *c)
{
    const gp_data_set *set = c->data->set;
    int behind = ',';
    for (int64_t column = 0; behind == ','; column++) {
        behind = gp_csv_cell(c);
        for (int f = 0; f < set->fields; f++)
            if (strcmp(c->cell, set->field[f].key ? set->field[f].key : set->field[f].name) == 0 &&
                c->column[f] < 0)
                c->column[f] = column;
    }
    c->line++;
    for (int f = 0; f < set->fields; f++)
        if (c->column[f] < 0)
            return gp_data_fail(c->data->text, "%s:1: has no column %s", gp_data_brief(c->path),
                                set->field[f].key ? set->field[f].key : set->field[f].name);
    return GP_OK;
}

/* One line. *cells: how many it has; 0: it is empty, and then maybe the last. */
GP_HOST int gp_csv_row(gp_csv *c, int64_t *cells, int *behind)
{
    const gp_data_set *set = c->data->set;
    const int64_t line = c->line;
    int64_t column = 0;
    do {
        *behind = gp_csv_cell(c);
        if (column == 0 && *behind != ',' && c->cell[0] == 0)
            break;
        for (int f = 0; f < set->fields; f++) {
            const int64_t i = column - c->column[f];
            if (i >= 0 && i < gp_csv_count(&set->field[f])) {
                const int code = gp_csv_put(c, f, i);
                if (code != GP_OK)
                    return code;
            }
        }
        column++;
    } while (*behind == ',');
    *cells = column;
    c->line++;
    for (int f = 0; f < set->fields && column > 0; f++)
        if (column < c->column[f] + gp_csv_count(&set->field[f]))
            return gp_data_fail(
                c->data->text, "%s:%lld: has %lld cells, but %s is read from columns up to %lld",
                gp_data_brief(c->path), (long long)line, (long long)column, set->field[f].name,
                (long long)(c->column[f] + gp_csv_count(&set->field[f]) - 1));
    return GP_OK;
}

/* Where the fields stand in a record, and in the file if they say so by number. */
GP_HOST int gp_csv_layout(gp_csv *c)
{
    const gp_data_set *set = c->data->set;
    uint64_t bytes = 0;
    c->by_number = 1;
    for (int f = 0; f < set->fields; f++) {
        const char *key = set->field[f].key ? set->field[f].key : "";
        const int number = key[0] && strspn(key, "0123456789") == strlen(key) && strlen(key) < 9;
        c->column[f] = number ? strtoll(key, NULL, 10) : -1;
        c->by_number &= number;
        c->offset[f] = (size_t)bytes;
        bytes += gp_data_sample(&set->field[f]);
        if (bytes > GP_CSV_ROW)
            return gp_data_fail(c->data->text, "%s: a row is read as more than %d bytes",
                                gp_data_brief(c->path), GP_CSV_ROW);
    }
    for (int f = 0; f < set->fields && !c->by_number; f++)
        c->column[f] = -1;
    c->bytes = (size_t)bytes;
    c->line = 1;
    return GP_OK;
}

GP_HOST int gp_csv_make(gp_data *d, const gp_preparation *p, gp_writer *to)
{
    size_t room;
    gp_csv *c = (gp_csv *)gp_prepare_memory(d, &room);
    const uint64_t header[2] = {GP_CSV_MAGIC, p->stamp};
    memset(c, 0, sizeof *c);
    c->data = d;
    c->path = p->original;
    int code = gp_csv_layout(c), behind = '\n';
    if (code != GP_OK)
        return code;
    c->file = open(c->path, O_RDONLY | O_CLOEXEC);
    if (c->file < 0)
        return gp_data_errno(d->text, c->path);
    gp_writer_put(to, header, sizeof header);
    if (!c->by_number)
        code = gp_csv_names(c);
    while (code == GP_OK && behind >= 0 && !to->failed) {
        const int first = c->line == 1;
        int64_t cells = 0;
        code = gp_csv_row(c, &cells, &behind);
        if (code != GP_OK && first && c->by_number) { /* names */
            for (; behind == ','; behind = gp_csv_cell(c))
                ;
            c->line = 2;
            code = GP_OK;
        } else if (code == GP_OK && cells > 0) {
            gp_writer_put(to, c->row, c->bytes);
        }
    }
    close(c->file);
    return code;
}

/* ---- Opening -------------------------------------------------------------------------------- */

GP_HOST int gp_csv_is_current(const gp_preparation *p, int file)
{
    uint64_t header[2];
    return gp_read_at(file, header, sizeof header, 0) && header[0] == GP_CSV_MAGIC &&
           header[1] == p->stamp;
}

/* Of the file and of what is read from it. */
GP_HOST uint64_t gp_csv_stamp(const gp_data *d, const struct stat *info)
{
    uint64_t stamp = gp_stamp_of(info, GP_HASH_START);
    for (int f = 0; f < d->set->fields; f++) {
        const gp_data_field *field = &d->set->field[f];
        const char *key = field->key ? field->key : field->name;
        const int64_t facts[3] = {field->dtype, gp_csv_count(field), field->classes};
        stamp = gp_hash_bytes(stamp, key, strlen(key) + 1);
        stamp = gp_hash_bytes(stamp, facts, sizeof facts);
    }
    return stamp;
}

GP_HOST int gp_csv_open(gp_data *d)
{
    char beside[GP_DATA_PATH];
    struct stat info;
    gp_preparation p;
    uint64_t size = 0, bytes = 0;
    memset(&p, 0, sizeof p);
    if (stat(d->path, &info) != 0)
        return gp_data_errno(d->text, d->path);
    snprintf(beside, sizeof beside, "%.*s.gplan-rows", GP_DATA_PATH - 100, d->path);
    p.original = d->path;
    p.beside = beside;
    p.stamp = gp_csv_stamp(d, &info);
    p.is_current = gp_csv_is_current;
    p.make = gp_csv_make;
    int code = gp_prepare(d, &p, &d->array[0].file);
    if (code == GP_OK)
        code = gp_data_size(d->array[0].file, beside, &size, d->text);
    for (int f = 0; f < d->set->fields && code == GP_OK; f++) {
        if (f > 0 && (d->array[f].file = fcntl(d->array[0].file, F_DUPFD_CLOEXEC, 0)) < 0)
            return gp_data_errno(d->text, d->path);
        d->array[f].base = 16 + bytes;
        bytes += gp_data_sample(&d->set->field[f]);
    }
    for (int f = 0; f < d->set->fields; f++)
        d->array[f].stride = bytes;
    d->total = bytes ? (int64_t)((size - 16) / bytes) : 0;
    return code;
}

static const gp_data_source gp_data_csv = {gp_csv_open, gp_data_array_read};

#endif
