/* Problems as CSV: what is legal, what is not and where, and what comes out again. */
#include "planner/pack/csv.h"
#include "tests/pack/pack_generate.h"
#include "tests/pack/pack_judge.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static Arena *arena;
static PackCsvError error;

static void setup(void)
{
    arena = arena_new();
    error = (PackCsvError){0};
}

static void teardown(void)
{
    arena_free(arena);
}

TestSuite(csv, .init = setup, .fini = teardown);

static PackCsv *read(const char *text)
{
    return pack_csv_read(arena, text, strlen(text), &error);
}

static void refused(const char *text, size_t line, const char *part)
{
    cr_assert_null(read(text), "accepted: %s", text);
    cr_assert_eq(error.line, line, "line %zu for: %s", error.line, text);
    cr_assert_not_null(strstr(error.message, part), "'%s' for: %s", error.message, text);
}

static char *written(const PackCsv *csv, const uint64_t *offset)
{
    static char text[4096];
    FILE *out = tmpfile();
    pack_csv_write(out, csv, offset);
    rewind(out);
    text[fread(text, 1, sizeof text - 1, out)] = 0;
    fclose(out);
    return text;
}

Test(csv, columns_may_stand_in_any_order)
{
    PackCsv *csv = read("size,upper,id,lower\n7,9,x,-2\n");
    cr_assert_not_null(csv);
    const PackBuffer *buffer = csv->problem.buffer;
    cr_assert_eq(csv->problem.count, 1);
    cr_assert(buffer->size == 7 && buffer->upper == 9 && buffer->lower == -2);
    cr_assert(buffer->align == 1 && buffer->fixed == PACK_FREE);
    cr_assert_str_eq(csv->id[0], "x");
}

Test(csv, lines_may_end_in_crlf_and_the_last_in_nothing)
{
    PackCsv *csv = read("\xef\xbb\xbfid,lower,upper,size\r\n\r\na,0,1,2\r\nb,1,2,3");
    cr_assert_not_null(csv, "%s", error.message);
    cr_assert_eq(csv->problem.count, 2);
    cr_assert_eq(csv->line[1], 4);
}

Test(csv, ids_may_be_quoted)
{
    PackCsv *csv = read("id,lower,upper,size\n\"a,\"\"b\"\"\nc\",0,1,2\n");
    cr_assert_not_null(csv, "%s", error.message);
    cr_assert_str_eq(csv->id[0], "a,\"b\"\nc");
    uint64_t offset[] = {5};
    cr_assert_str_eq(written(csv, offset),
                     "id,lower,upper,size,offset\n\"a,\"\"b\"\"\nc\",0,1,2,5\n");
}

Test(csv, other_columns_are_kept)
{
    PackCsv *csv = read("note,id,lower,upper,size\n hi there,a,0,1,2\n,b,0,1,2\n");
    uint64_t offset[] = {0, 2};
    cr_assert_str_eq(written(csv, offset), "note,id,lower,upper,size,offset\n"
                                           " hi there,a,0,1,2,0\n,b,0,1,2,2\n");
}

Test(csv, an_offset_column_fixes_buffers_and_is_written_in_place)
{
    PackCsv *csv = read("id,offset,lower,upper,size,alignment\na,4,0,1,2,4\nb,,0,1,2,\n");
    cr_assert_not_null(csv, "%s", error.message);
    cr_assert_eq(csv->problem.buffer[0].fixed, 4);
    cr_assert_eq(csv->problem.buffer[0].align, 4);
    cr_assert_eq(csv->problem.buffer[1].fixed, PACK_FREE);
    uint64_t offset[] = {4, 0};
    cr_assert_str_eq(written(csv, offset),
                     "id,offset,lower,upper,size,alignment\na,4,0,1,2,4\nb,0,0,1,2,\n");
}

Test(csv, an_end_is_the_last_moment_alive)
{
    PackCsv *csv = read("buffer,start,end,size\n0,3,3,8\n");
    cr_assert_not_null(csv, "%s", error.message);
    cr_assert_eq(csv->problem.buffer[0].upper, 4);
}

Test(csv, a_header_alone_is_an_empty_problem)
{
    PackCsv *csv = read("id,lower,upper,size\n");
    cr_assert_not_null(csv);
    cr_assert_eq(csv->problem.count, 0);
}

#define HEAD "id,lower,upper,size\n"

Test(csv, what_is_wrong_is_named_with_its_line)
{
    refused("", 0, "empty");
    refused("\r\n\n", 0, "empty");
    refused("id,lower,upper\na,0,1\n", 1, "no column 'size'");
    refused("id,lower,upper,size,size\n", 1, "second column");
    refused(HEAD "a,0,1,2\nb,3,3,4\n", 3, "never alive");
    refused(HEAD "a,4,3,4\n", 2, "never alive");
    refused(HEAD "a,0,1,-4\n", 2, "negative");
    refused(HEAD "a,0,1,99999999999999999999999\n", 2, "too large");
    refused(HEAD "a,0,1,4611686018427387905\n", 2, "too large");
    refused(HEAD "a,0,9223372036854775808,4\n", 2, "too large");
    refused(HEAD "a,0,1,4k\n", 2, "not an integer");
    refused(HEAD "a,0,1,\n", 2, "size is missing");
    refused(HEAD "a,0,-,1\n", 2, "is missing");
    refused(HEAD "a,0,1\n", 2, "3 fields");
    refused(HEAD "a,0,1,2,3\n", 2, "5 fields");
    refused(HEAD "a,0,1,2\n\nb,0,1,2\na,2,3,4\n", 5, "used in line 2");
    refused(HEAD "\"a,0,1,2\n", 2, "never closed");
    refused(HEAD "\"a\"b,0,1,2\n", 2, "closing quote");
    refused("id,lower,upper,size,alignment\na,0,1,2,0\n", 2, "alignment 0");
}

Test(csv, random_damage_never_breaks_the_reader)
{
    static const char sound[] =
        "id,lower,upper,size,offset\n\"a\",0,10,4,\nb,3,12,8,16\nc,1,2,3,\n";
    static const char noise[] = ",\"\n\r-0\t9x ";
    uint64_t state = 99, accepted = 0;
    for (int round = 0; round < 20000; round++) {
        char text[sizeof sound];
        memcpy(text, sound, sizeof sound);
        size_t length = sizeof sound - 1;
        for (uint64_t hits = generate_number(&state) % 4; hits; hits--)
            text[generate_number(&state) % length] = noise[generate_number(&state) % 10];
        length -= generate_number(&state) % 3 ? 0 : generate_number(&state) % length;
        Arena *scratch = arena_new();
        char *exact = malloc(length + 1); /* so that reading beyond the end is seen */
        memcpy(exact, text, length);
        PackCsv *csv = pack_csv_read(scratch, exact, length, &error);
        if (csv) {
            uint64_t offset[64];
            PackSolution solution = {.offset = offset};
            PackStatus status = pack_solve(&csv->problem, NULL, &solution);
            if (status != PACK_INVALID)
                cr_assert_null(judge(&csv->problem, status, &solution));
            accepted++;
        } else {
            cr_assert_not_null(error.message);
        }
        free(exact);
        arena_free(scratch);
    }
    cr_assert_gt(accepted, 1000);
}

Test(csv, a_picture_escapes_its_names)
{
    PackCsv *csv = read("id,lower,upper,size\n<a&b>,0,1,2\n");
    uint64_t offset[] = {0};
    PackSolution solution = {.offset = offset, .height = 2, .bound = 2};
    char text[4096];
    FILE *out = tmpfile();
    pack_svg_write(out, &csv->problem, &solution, csv->id);
    rewind(out);
    text[fread(text, 1, sizeof text - 1, out)] = 0;
    fclose(out);
    cr_assert_not_null(strstr(text, "&lt;a&amp;b&gt;: [0, 1), 2 bytes at 0"));
    cr_assert_not_null(strstr(text, "</svg>"));
}
