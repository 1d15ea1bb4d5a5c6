/* CSV in and out: see pack_csv.h. */
#include "planner/pack/csv.h"

#include <stdlib.h>
#include <string.h>

typedef enum { ID, LOWER, UPPER, SIZE, ALIGN, OFFSET, COLUMNS } Column;

/* `end` is the last moment of a life, `upper` the first one after it. */
static const struct {
    const char *name;
    Column column;
    int64_t add;
} names[] = {
    {"id", ID, 0},           {"buffer", ID, 0},   {"buffer_id", ID, 0},  {"lower", LOWER, 0},
    {"start", LOWER, 0},     {"upper", UPPER, 0}, {"end", UPPER, 1},     {"size", SIZE, 0},
    {"alignment", ALIGN, 0}, {"align", ALIGN, 0}, {"offset", OFFSET, 0},
};

typedef struct {
    Arena *arena;
    const char *at, *end;
    size_t line;     /* of `at` */
    size_t row_line; /* where the row at hand began */
    PackCsvError *error;
    size_t place[COLUMNS]; /* of the header; == columns: absent */
    int64_t add;           /* to the upper end */
    PackCsv *csv;
    ARRAY(PackField) fields;
    ARRAY(PackBuffer) buffers;
    ARRAY(const char *) ids;
    ARRAY(size_t) lines;
} Reader;

static bool fail(Reader *reader, size_t line, const char *message)
{
    *reader->error = (PackCsvError){line, message};
    return false;
}

static bool at_line_end(const Reader *reader)
{
    return reader->at == reader->end || *reader->at == '\n' ||
           (*reader->at == '\r' && (reader->at + 1 == reader->end || reader->at[1] == '\n'));
}

static void skip_line_end(Reader *reader)
{
    if (reader->at < reader->end && *reader->at == '\r')
        reader->at++;
    if (reader->at < reader->end && *reader->at == '\n') {
        reader->at++;
        reader->line++;
    }
}

/* A quoted field, up to what follows its closing quote. */
static bool skip_quoted(Reader *reader)
{
    size_t line = reader->line;
    for (reader->at++; reader->at < reader->end; reader->at++) {
        reader->line += *reader->at == '\n';
        if (*reader->at != '"')
            continue;
        if (++reader->at == reader->end || *reader->at != '"')
            return true;
    }
    return fail(reader, line, "a quote is never closed");
}

static bool read_field(Reader *reader)
{
    const char *from = reader->at;
    if (from < reader->end && *from == '"') {
        if (!skip_quoted(reader))
            return false;
        if (!at_line_end(reader) && *reader->at != ',')
            return fail(reader, reader->line, "text after a closing quote: expected a comma");
    }
    while (!at_line_end(reader) && *reader->at != ',') {
        if (!*reader->at)
            return fail(reader, reader->line, "a zero byte: this is not text");
        reader->at++;
    }
    PackField field = {from, (size_t)(reader->at - from)};
    ARRAY_PUSH(reader->arena, &reader->fields, field);
    return true;
}

/* One row of fields; `count` 0 at the end of the file. */
static bool read_row(Reader *reader, size_t *count)
{
    while (reader->at < reader->end && at_line_end(reader))
        skip_line_end(reader);
    *count = 0;
    reader->row_line = reader->line;
    if (reader->at == reader->end)
        return true;
    size_t before = reader->fields.count;
    while (read_field(reader)) {
        if (at_line_end(reader)) {
            skip_line_end(reader);
            *count = reader->fields.count - before;
            return true;
        }
        reader->at++; /* the comma */
    }
    return false;
}

/* The text of a field: no blanks round it, quotes resolved. */
static const char *plain(Arena *arena, PackField field)
{
    const char *from = field.text, *end = from + field.length;
    while (from < end && (*from == ' ' || *from == '\t'))
        from++;
    while (end > from && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    if (from == end || *from != '"')
        return arena_copy(arena, from, (size_t)(end - from));
    char *text = arena_alloc(arena, (size_t)(end - from)), *to = text;
    for (from++; from < end - 1; from++) {
        *to++ = *from;
        from += *from == '"'; /* doubled within quotes */
    }
    return text;
}

static bool read_header(Reader *reader)
{
    static const char *const needed[] = {"id", "lower", "upper", "size"};
    PackCsv *csv = reader->csv;
    if (!read_row(reader, &csv->columns))
        return false;
    if (!csv->columns)
        return fail(reader, 0, "the file is empty: expected a header like id,lower,upper,size");
    for (int c = 0; c < COLUMNS; c++)
        reader->place[c] = csv->columns;
    for (size_t i = 0; i < csv->columns; i++) {
        const char *name = plain(reader->arena, reader->fields.at[i]);
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            if (strcmp(name, names[k].name) != 0)
                continue;
            if (reader->place[names[k].column] < csv->columns)
                return fail(reader, reader->row_line,
                            arena_printf(reader->arena, "a second column for '%s'", name));
            reader->place[names[k].column] = i;
            reader->add += names[k].add;
        }
    }
    for (int c = ID; c <= SIZE; c++)
        if (reader->place[c] == csv->columns)
            return fail(reader, reader->row_line,
                        arena_printf(reader->arena, "no column '%s' in the header", needed[c]));
    csv->offset_column = reader->place[OFFSET];
    return true;
}

/* An integer of at most 64 bits with a sign; says what is wrong with any other text. */
static bool read_number(Reader *reader, const char *column, const char *text, int64_t least,
                        uint64_t most, int64_t *number)
{
    const char *digit = text + (*text == '-' || *text == '+');
    uint64_t value = 0;
    const char *why = *digit ? NULL : "is missing";
    for (; *digit && !why; digit++) {
        if (*digit < '0' || *digit > '9')
            why = "is not an integer";
        else if (value > (most - (uint64_t)(*digit - '0')) / 10)
            why = "is too large";
        else
            value = 10 * value + (uint64_t)(*digit - '0');
    }
    if (!why && *text == '-' && value && least == 0)
        why = "is negative";
    if (why)
        return fail(reader, reader->row_line,
                    *text ? arena_printf(reader->arena, "%s '%s' %s", column, text, why)
                          : arena_printf(reader->arena, "%s %s", column, why));
    *number = *text == '-' ? -(int64_t)value : (int64_t)value;
    return true;
}

static bool read_buffer(Reader *reader, const char *const *text)
{
    int64_t lower, upper, size, align = 1, fixed = PACK_FREE;
    uint64_t times = INT64_MAX / 2;
    if (!read_number(reader, "lower", text[LOWER], -1, times, &lower) ||
        !read_number(reader, "upper", text[UPPER], -1, times, &upper) ||
        !read_number(reader, "size", text[SIZE], 0, PACK_MAX_BYTES, &size))
        return false;
    if (*text[ALIGN] && !read_number(reader, "alignment", text[ALIGN], 0, PACK_MAX_BYTES, &align))
        return false;
    if (*text[OFFSET] && !read_number(reader, "offset", text[OFFSET], 0, PACK_MAX_BYTES, &fixed))
        return false;
    if (align == 0)
        return fail(reader, reader->row_line, "alignment 0: the least is 1");
    upper += reader->add;
    if (lower >= upper)
        return fail(reader, reader->row_line,
                    arena_printf(reader->arena,
                                 "buffer '%s' is never alive: lower %lld, upper %lld", text[ID],
                                 (long long)lower, (long long)upper));
    PackBuffer buffer = {lower, upper, (uint64_t)size, (uint64_t)align, fixed};
    ARRAY_PUSH(reader->arena, &reader->buffers, buffer);
    ARRAY_PUSH(reader->arena, &reader->ids, text[ID]);
    ARRAY_PUSH(reader->arena, &reader->lines, reader->row_line);
    return true;
}

static bool read_rows(Reader *reader)
{
    size_t columns = reader->csv->columns;
    for (size_t count;;) {
        size_t begin = reader->fields.count;
        if (!read_row(reader, &count))
            return false;
        if (!count)
            return true;
        if (count != columns)
            return fail(
                reader, reader->row_line,
                arena_printf(reader->arena, "%zu fields, but the header has %zu", count, columns));
        const char *text[COLUMNS];
        for (int c = 0; c < COLUMNS; c++) {
            size_t place = reader->place[c];
            text[c] = place < columns ? plain(reader->arena, reader->fields.at[begin + place]) : "";
        }
        if (!read_buffer(reader, text))
            return false;
    }
}

typedef struct {
    const char *id;
    size_t line;
} Named;

static int by_id(const void *a, const void *b)
{
    const Named *x = a, *y = b;
    int order = strcmp(x->id, y->id);
    return order ? order : x->line < y->line ? -1 : x->line > y->line;
}

static bool ids_differ(Reader *reader)
{
    size_t count = reader->ids.count;
    Named *named = ARENA_ARRAY(reader->arena, Named, count);
    for (size_t i = 0; i < count; i++)
        named[i] = (Named){reader->ids.at[i], reader->lines.at[i]};
    if (count)
        qsort(named, count, sizeof *named, by_id);
    for (size_t i = 1; i < count; i++)
        if (!strcmp(named[i - 1].id, named[i].id))
            return fail(reader, named[i].line,
                        arena_printf(reader->arena, "id '%s' was used in line %zu already",
                                     named[i].id, named[i - 1].line));
    return true;
}

PackCsv *pack_csv_read(Arena *arena, const char *text, size_t length, PackCsvError *error)
{
    PackCsv *csv = ARENA_NEW(arena, PackCsv);
    Reader reader = {.arena = arena, .at = text, .end = text + length, .line = 1};
    reader.error = error;
    reader.csv = csv;
    if (length >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) /* a byte order mark */
        reader.at += 3;
    if (!read_header(&reader) || !read_rows(&reader) || !ids_differ(&reader))
        return NULL;
    csv->field = reader.fields.at;
    csv->id = reader.ids.at;
    csv->line = reader.lines.at;
    csv->problem.buffer = reader.buffers.at;
    csv->problem.count = reader.buffers.count;
    return csv;
}

static void write_row(FILE *out, const PackCsv *csv, size_t row, const char *offset)
{
    const PackField *field = csv->field + row * csv->columns;
    for (size_t c = 0; c < csv->columns; c++) {
        if (c)
            fputc(',', out);
        if (c == csv->offset_column && row)
            fputs(offset, out);
        else
            fwrite(field[c].text, 1, field[c].length, out);
    }
    if (csv->offset_column == csv->columns)
        fprintf(out, ",%s", offset);
    fputc('\n', out);
}

void pack_csv_write(FILE *out, const PackCsv *csv, const uint64_t *offset)
{
    write_row(out, csv, 0, "offset");
    for (size_t i = 0; i < csv->problem.count; i++) {
        char text[24];
        snprintf(text, sizeof text, "%llu", (unsigned long long)offset[i]);
        write_row(out, csv, i + 1, text);
    }
}
