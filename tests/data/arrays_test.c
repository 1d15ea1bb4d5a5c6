/* Samples of fixed size in files of every kind: read as they stand, and refused by name. */
#include "tests/data/sets.h"

#include "runtime/c/data_idx.h"
#include "runtime/c/data_npy.h"
#include "runtime/c/data_records.h"
#include "runtime/c/data_safetensors.h"
#include "runtime/c/data_tokens.h"

#include <stdlib.h>

enum { SAMPLES = 10 };

static gp_data_set set_of(const gp_data_source *source, const gp_data_field *field, int fields)
{
    return (gp_data_set){.name = "train",
                         .source = source,
                         .path = ".",
                         .field = field,
                         .fields = fields,
                         .batch = 5,
                         .slot = 5,
                         .depth = 2};
}

/* Reads all samples in order; those of field f are `expected`. */
static void reads(const gp_data_set *set, int f, const void *expected)
{
    const size_t bytes = gp_data_sample(&set->field[f]) * 5;
    Opened o = open_set(set, (gp_data_start){0});
    cr_assert_eq(o.code, GP_OK, "%s", gp_data_error(o.data));
    cr_assert_eq(gp_data_samples(o.data), SAMPLES);
    for (int i = 0; i < 2; i++) {
        gp_data_slot slot;
        cr_assert_eq(gp_data_next(o.data, &slot), GP_OK, "%s", gp_data_error(o.data));
        cr_assert_arr_eq(slot.at + gp_data_offset(set, f), (const char *)expected + i * bytes,
                         bytes);
        gp_data_done(o.data, &slot);
    }
    close_set(&o);
}

/* The first slot cannot be read, and says so. */
static void fails_to_read(const gp_data_set *set, const char *says)
{
    gp_data_slot slot;
    Opened o = open_set(set, (gp_data_start){0});
    cr_assert_eq(o.code, GP_OK, "%s", gp_data_error(o.data));
    cr_assert_eq(gp_data_next(o.data, &slot), GP_EDATA);
    cr_assert_str_eq(gp_data_error(o.data), says);
    close_set(&o);
}

static unsigned char pattern[SAMPLES * 24];
static void make_pattern(void)
{
    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = (unsigned char)(i * 7 + i / 24);
}

/* ---- .npy ----------------------------------------------------------------------------------- */

static void write_npy(const char *name, int version, const char *dict, size_t bytes)
{
    char text[1024];
    const size_t from = version == 1 ? 10 : 12;
    memcpy(text, "\x93NUMPY\1\0", 8);
    text[6] = (char)version;
    const size_t length = (size_t)snprintf(text + from, 512, "%s%20s\n", dict, "");
    memset(text + 8, 0, from - 8);
    text[8] = (char)length;
    memcpy(text + from + length, pattern, bytes);
    write_file(name, text, from + length + bytes);
}

static const gp_data_field npy_field[] = {
    {.name = "x", .file = "x.npy", .dtype = GP_I32, .rank = 2, .dim = {2, 3}}};

Test(npy, arrays_are_read)
{
    enter_folder();
    make_pattern();
    gp_data_set set = set_of(&gp_data_npy, npy_field, 1);
    for (int version = 1; version <= 3; version++) {
        write_npy("x.npy", version,
                  "{'descr': '<i4', 'fortran_order': False, 'shape': (10, 2, 3), }", 240);
        reads(&set, 0, pattern);
    }
}

Test(npy, what_cannot_be_read_is_refused)
{
    static const struct {
        const char *dict, *says;
    } rows[] = {
        {"{'descr': '|O', 'fortran_order': False, 'shape': (10, 2, 3), }", "pickled"},
        {"{'descr': '>i4', 'fortran_order': False, 'shape': (10, 2, 3), }", "big-endian ('>i4',"},
        {"{'descr': '<i4', 'fortran_order': True, 'shape': (10, 2, 3), }", "Fortran order"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (10, 2, 3), }",
         "x.npy: holds F32[10, 2, 3], but x reads I32[N, 2, 3]"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (10, 6), }",
         "holds I32[10, 6], but x reads I32[N, 2, 3]"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (11, 2, 3), }",
         "x.npy: the file is cut short: it has 334 bytes"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (), }", "no shape"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (1,2,3,4,5,6,7,8,9,10), }", "no shape"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (99999999999999999999, 2, 3), }",
         "no shape"},
        {"{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (10,), }",
         "has a dtype that is not read: [('a'"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (10, 2, 3), }", "not read: '<c8'"},
        {"{'descr': '<i4', 'shape': (10, 2, 3), }", "lacks fortran_order"},
        {"{}", "lacks descr"},
    };
    enter_folder();
    gp_data_set set = set_of(&gp_data_npy, npy_field, 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_npy("x.npy", 1, rows[i].dict, 240);
        refuses(&set, rows[i].says);
    }
    write_npy("x.npy", 9, "{}", 0);
    refuses(&set, "version 9");
    write_file("x.npy", "\x93NUMPY\1\0\xff\xff{", 11);
    refuses(&set, "x.npy: no .npy file");
    write_file("x.npy", "\x93NUMPY\2\0\xff\xff\xff\xff{", 13);
    refuses(&set, "its header is cut short or too long");
    remove("x.npy");
    refuses(&set, "./x.npy: No such file or directory");
    cr_assert_eq(mkdir("x.npy", 0700), 0);
    refuses(&set, "x.npy");
}

/* ---- idx ------------------------------------------------------------------------------------ */

static const gp_data_field idx_field[] = {
    {.name = "x", .file = "img", .dtype = GP_U8, .layout = GP_DATA_HW, .rank = 2, .dim = {4, 6}},
    {.name = "y", .file = "lab", .dtype = GP_U8, .classes = 3}};

static void write_idx(int samples, int label)
{
    unsigned char images[16 + SAMPLES * 24] = {0, 0, 8, 3, 0, 0, 0, SAMPLES,
                                               0, 0, 0, 4, 0, 0, 0, 6};
    unsigned char labels[8 + SAMPLES] = {0, 0, 8, 1, 0, 0, 0, (unsigned char)samples};
    make_pattern();
    memcpy(images + 16, pattern, SAMPLES * 24);
    for (int i = 0; i < SAMPLES; i++)
        labels[8 + i] = (unsigned char)(i % 3);
    labels[8 + 4] = (unsigned char)label;
    write_file("img", images, sizeof images);
    write_file("lab", labels, (size_t)(8 + samples));
}

Test(idx, images_and_labels_are_read_also_packed)
{
    const unsigned char labels[] = {0, 1, 2, 0, 1, 2, 0, 1, 2, 0};
    enter_folder();
    write_idx(SAMPLES, 1);
    gp_data_set set = set_of(&gp_data_idx, idx_field, 2);
    reads(&set, 0, pattern);
    reads(&set, 1, labels);
    cr_assert_eq(system("gzip -9 img && gzip -1n lab"), 0);
    reads(&set, 0, pattern); /* unpacked beside it */
    reads(&set, 1, labels);
    cr_assert_eq(access("img", R_OK), 0);
    cr_assert_eq(system("ls -A | grep -q tmp"), 256); /* and nothing is left */
}

Test(idx, packed_files_in_a_folder_that_cannot_be_written_go_to_the_cache)
{
    enter_folder();
    write_idx(SAMPLES, 1);
    cr_assert_eq(
        system("mkdir data cache && gzip img lab && mv img.gz lab.gz data && chmod 555 data"
               "; [ $(id -u) != 0 ] || { chmod 755 data; mkdir data/img data/lab; }"),
        0); /* root can write everywhere, but not over a folder */
    setenv("XDG_CACHE_HOME", "cache", 1);
    char cache[1024];
    cr_assert(getcwd(cache, 1000));
    setenv("XDG_CACHE_HOME", strcat(cache, "/cache"), 1);
    gp_data_set set = set_of(&gp_data_idx, idx_field, 2);
    static const gp_data_field packed[] = {
        {.name = "x", .file = "img.gz", .dtype = GP_U8, .rank = 2, .dim = {4, 6}},
        {.name = "y", .file = "lab.gz", .dtype = GP_U8, .classes = 3}};
    set.field = packed;
    set.path = "data";
    reads(&set, 0, pattern);
    cr_assert_eq(system("test $(ls cache/gplan | wc -l) = 2"), 0);
    reads(&set, 0, pattern);
}

Test(idx, what_does_not_fit_the_model_is_named)
{
    enter_folder();
    gp_data_set set = set_of(&gp_data_idx, idx_field, 2);
    write_idx(SAMPLES, 7);
    fails_to_read(&set, "lab: sample 4: y has 7 at place 0, but the model has 3 classes");
    write_idx(9, 1);
    refuses(&set, "./lab: has 9 samples, but img has 10");
    write_file("img", "\0\0\015\1\0\0\0\1\0\0\0\0", 12);
    refuses(&set, "./img: idx of type 0x0d");
    write_file("img", "\0\0\010\3\0\0\0\1", 8);
    refuses(&set, "./img: the file is cut short within its header");
    write_file("img", "\0\0\010\377", 4);
    refuses(&set, "./img: idx of 255 dimensions");
    write_file("img", "PK", 2);
    refuses(&set, "./img: no idx file");
}

/* Every cut and many damages of a packed file are found. */
Test(idx, damaged_packed_files_are_refused)
{
    static unsigned char packed[4096];
    enter_folder();
    write_idx(SAMPLES, 1);
    cr_assert_eq(system("cp img was && gzip img"), 0);
    FILE *file = fopen("img.gz", "rb");
    const size_t bytes = fread(packed, 1, sizeof packed, file);
    fclose(file);
    gp_data_set set = set_of(&gp_data_idx, idx_field, 2);
    for (size_t cut = 0; cut < bytes; cut++) {
        write_file("img.gz", packed, cut);
        refuses(&set, "./img.gz: damaged, or cut short");
    }
    for (size_t i = 10; i < bytes; i++) {
        unsigned char was = packed[i];
        packed[i] ^= (unsigned char)(1 << i % 8);
        write_file("img.gz", packed, bytes);
        Opened o = open_set(&set, (gp_data_start){0});
        /* A name in the header and bits between the code and its sum mean nothing. */
        cr_assert(o.code == GP_EDATA || system("cmp -s img was") == 0, "byte %zu", i);
        close_set(&o);
        remove("img");
        packed[i] = was;
    }
}

/* ---- Inflate against gzip ------------------------------------------------------------------- */

Test(inflate, unpacks_what_gzip_packs)
{
    static unsigned char text[300000];
    static gp_inflater z;
    static gp_writer w;
    enter_folder();
    for (int kind = 0; kind < 4; kind++) { /* noise, runs, words, and nothing */
        const size_t bytes = kind < 3 ? sizeof text - (size_t)kind * 1000 : 0;
        for (size_t i = 0; i < bytes; i++) {
            const uint64_t random = gp_random_mix(i, (uint64_t)kind);
            text[i] = (unsigned char)(kind == 0 ? random
                                      : kind == 1
                                          ? i / 5000
                                          : (uint64_t) "the quick brown fox "[random % 16 + i % 4]);
        }
        write_file("text", text, bytes);
        for (int level = 1; level <= 9; level += 4) {
            char command[100];
            snprintf(command, sizeof command, "gzip -k -f -%d text", level);
            cr_assert_eq(system(command), 0);
            memset(&w, 0, sizeof w);
            const int from = open("text.gz", O_RDONLY);
            w.file = open("out", O_WRONLY | O_CREAT | O_TRUNC, 0600);
            cr_assert(gp_gunzip(from, &z, &w), "kind %d, level %d", kind, level);
            gp_writer_flush(&w);
            close(from);
            close(w.file);
            cr_assert_eq(w.written, bytes);
            cr_assert_eq(system("cmp -s text out"), 0);
        }
    }
}

/* ---- Records, tokens, safetensors ----------------------------------------------------------- */

Test(records, fields_are_parts_of_a_record)
{
    static const gp_data_field field[] = {
        {.name = "y", .dtype = GP_U8},
        {.name = "x", .dtype = GP_U8, .rank = 1, .dim = {22}, .at = 2}};
    unsigned char expected[SAMPLES * 22];
    enter_folder();
    make_pattern();
    gp_data_set set = set_of(&gp_data_records, field, 2);
    set.path = "r.bin";
    set.record = 24;
    for (int i = 0; i < SAMPLES; i++)
        memcpy(expected + 22 * i, pattern + 24 * i + 2, 22);
    write_file("r.bin", pattern, sizeof pattern);
    reads(&set, 1, expected);
    set.header = 24;
    set.last = GP_DATA_PAD;
    Opened o = open_set(&set, (gp_data_start){0});
    cr_assert_eq(gp_data_samples(o.data), 9);
    close_set(&o);
    write_file("r.bin", pattern, sizeof pattern - 1);
    refuses(&set, "r.bin: has 239 bytes: no whole number of records of 24 after a header of 24");
}

Test(tokens, windows_overlap_by_one)
{
    static const gp_data_field field[] = {
        {.name = "x", .dtype = GP_U16, .rank = 1, .dim = {4}, .classes = 100},
        {.name = "y", .dtype = GP_U16, .rank = 1, .dim = {4}, .at = 1}};
    uint16_t tokens[512 + 43], x[40], y[40];
    enter_folder();
    for (int i = 0; i < 43; i++)
        tokens[512 + i] = (uint16_t)(2 * i);
    for (int i = 0; i < 40; i++)
        x[i] = (uint16_t)(2 * i), y[i] = (uint16_t)(2 * i + 2);
    gp_data_set set = set_of(&gp_data_tokens, field, 2);
    set.path = "t.bin";
    set.window = 5;
    set.dtype = GP_U16;
    write_file("t.bin", tokens + 512, 2 * 43);
    reads(&set, 0, x);
    reads(&set, 1, y);
    const int32_t header[3] = {20240520, 1, 43};
    memset(tokens, 0, 1024);
    memcpy(tokens, header, sizeof header);
    write_file("t.bin", tokens, sizeof tokens);
    reads(&set, 1, y);
    write_file("t.bin", tokens, sizeof tokens - 2);
    refuses(&set, "t.bin: the file is cut short: 42 tokens of 43");
    set.dtype = GP_U32;
    refuses(&set, "t.bin: holds tokens of 2 bytes, but data train reads U32");
    set.dtype = GP_U16;
    tokens[512 + 6] = 100;
    write_file("t.bin", tokens + 512, 2 * 43);
    fails_to_read(&set, "t.bin: sample 1: x has 100 at place 2, but the model has 100 classes");
    write_file("t.bin", tokens, 8);
    refuses(&set, "t.bin: has 4 tokens, fewer than a window of 5");
    write_file("t.bin", tokens, 85);
    refuses(&set, "t.bin: has 85 bytes: no whole number of tokens of 2");
}

static void write_safetensors(const char *header, size_t bytes)
{
    char text[1024] = {0};
    const size_t length = strlen(header);
    text[0] = (char)length;
    text[1] = (char)(length >> 8);
    memcpy(text + 8, header, length);
    memcpy(text + 8 + length, pattern, bytes);
    write_file("s.safetensors", text, 8 + length + bytes);
}

Test(safetensors, tensors_are_found_by_name)
{
    static const gp_data_field field[] = {{.name = "x", .dtype = GP_U8, .rank = 1, .dim = {20}},
                                          {.name = "y", .key = "label", .dtype = GP_I32}};
    enter_folder();
    make_pattern();
    gp_data_set set = set_of(&gp_data_safetensors, field, 2);
    set.path = "s.safetensors";
    write_safetensors("{\"__metadata__\":{\"a\":\"b\"},\"label\":{\"dtype\":\"I32\",\"shape\":[10],"
                      "\"data_offsets\":[0,40]},\"x\":{\"dtype\":\"U8\",\"shape\":[10,20],"
                      "\"data_offsets\":[40,240]}}",
                      240);
    reads(&set, 0, pattern + 40);
    reads(&set, 1, pattern);
    write_safetensors("{\"x\":{\"dtype\":\"U8\",\"shape\":[10,20],\"data_offsets\":[0,200]}}", 200);
    refuses(&set, "s.safetensors: has no tensor label");
    write_safetensors("{\"x\":{\"dtype\":\"U8\",\"shape\":[10,20],\"data_offsets\":[0,200]}}", 199);
    refuses(&set, "the dtype, shape or place of x is wrong, or the file is cut short");
    write_safetensors("{\"x\":{\"dtype\":\"F32\",\"shape\":[10,5],\"data_offsets\":[0,200]}}", 200);
    refuses(&set, "s.safetensors: holds F32[10, 5], but x reads U8[N, 20]");
    write_safetensors("{\"x\":{\"dtype\":\"U8\",\"shape\":[10,20],\"data_off", 0);
    refuses(&set, "s.safetensors: not a safetensors file");
    write_file("s.safetensors", "abc", 3);
    refuses(&set, "s.safetensors: not a safetensors file: too short");
    write_file("s.safetensors", "\377\377\377\377\377\377\377\377{}", 10);
    refuses(&set, "its header is longer than the file");
}

/* ---- Flips and shifts ----------------------------------------------------------------------- */

/* By plain loops from one picture to another. */
Test(augment, flips_and_shifts_are_those_of_plain_loops)
{
    static const gp_data_field layouts[] = {
        {.dtype = GP_U8, .layout = GP_DATA_HW, .rank = 2, .dim = {5, 7}},
        {.dtype = GP_U8, .layout = GP_DATA_CHW, .rank = 3, .dim = {3, 4, 5}},
        {.dtype = GP_F32, .layout = GP_DATA_HWC, .rank = 3, .dim = {4, 5, 3}}};
    make_pattern();
    for (int l = 0; l < 3; l++)
        for (int down = -3; down <= 3; down++)
            for (int across = -3; across <= 3; across++)
                for (int flip = 0; flip < 2; flip++) {
                    unsigned char got[240], expected[240] = {0};
                    const gp_data_picture p = gp_data_picture_of(&layouts[l]);
                    const int rows = (int)p.rows, columns = (int)p.columns, n = (int)p.bytes;
                    for (int c = 0; c < p.planes; c++)
                        for (int y = 0; y < rows; y++)
                            for (int x = 0; x < columns; x++) {
                                const int from_y = y - down;
                                const int from_x = (flip ? columns - 1 - x : x) - across;
                                if (from_y >= 0 && from_y < rows && from_x >= 0 && from_x < columns)
                                    memcpy(expected + ((c * rows + y) * columns + x) * n,
                                           pattern + ((c * rows + from_y) * columns + from_x) * n,
                                           p.bytes);
                            }
                    memcpy(got, pattern, sizeof got);
                    gp_data_shift(&p, got, down, across);
                    if (flip)
                        gp_data_flip(&p, got);
                    cr_assert_arr_eq(got, expected, (size_t)(p.planes * rows * columns * n));
                }
}
