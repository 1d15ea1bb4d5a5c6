/* Packing problems and solutions as CSV, in MiniMalloc's format.
 *
 * The first line names the columns, in any order: id (or buffer, buffer_id), lower (or start),
 * upper, or end for the last moment itself, size, and where wanted alignment (or align) and
 * offset, an offset that must be kept where it is not empty. Other columns are kept as they are.
 * Fields may be quoted, lines may end in CRLF, empty lines count for nothing.
 */
#ifndef GPLAN_PACK_CSV_H
#define GPLAN_PACK_CSV_H

#include "frontend/base/arena.h"
#include "planner/pack/pack.h"

#include <stdio.h>

typedef struct {
    const char *text; /* as written, quotes included */
    size_t length;
} PackField;

typedef struct {
    PackProblem problem;
    const char **id;  /* by buffer, without quotes */
    size_t *line;     /* by buffer: the line of its row */
    PackField *field; /* columns of the header, then those of each row */
    size_t columns;
    size_t offset_column; /* == columns: there was none */
} PackCsv;

typedef struct {
    size_t line; /* 0: about the whole file */
    const char *message;
} PackCsvError;

/* NULL when the text is wrong: the error says where and why. */
PackCsv *pack_csv_read(Arena *arena, const char *text, size_t length, PackCsvError *error);

/* The same rows, with the offsets. */
void pack_csv_write(FILE *out, const PackCsv *csv, const uint64_t *offset);

/* Time to the right, bytes upwards; ids may be NULL. */
void pack_svg_write(FILE *out, const PackProblem *problem, const PackSolution *solution,
                    const char *const *id);

#endif
