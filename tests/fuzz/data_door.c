/* Files of samples: images, arrays, tables. The first byte says which kind the rest is. */
#define _GNU_SOURCE
#include "tests/fuzz/door.h"

#include "runtime/c/data_csv.h"
#include "runtime/c/data_folder.h"
#include "runtime/c/data_idx.h"
#include "runtime/c/data_npy.h"
#include "runtime/c/data_ring.h"
#include "runtime/c/data_safetensors.h"
#include "runtime/c/data_tokens.h"

#include <stdlib.h>

enum { SIDE = 16, SAMPLE = 3 * SIDE * SIDE };

static const gp_data_field image[] = {
    {.name = "x", .dtype = GP_U8, .layout = GP_DATA_HWC, .rank = 3, .dim = {SIDE, SIDE, 3}}};
static const gp_data_field row[] = {
    {.name = "x", .key = "a", .dtype = GP_F32, .rank = 1, .dim = {2}},
    {.name = "y", .key = "b", .dtype = GP_U8, .classes = 5}};
static const gp_data_field token[] = {{.name = "x", .dtype = GP_U16, .rank = 1, .dim = {4}}};

static gp_data_set set_for(const gp_data_source *source, const gp_data_field *field, int fields)
{
    return (gp_data_set){.name = "fuzz",
                         .source = source,
                         .field = field,
                         .fields = fields,
                         .batch = 2,
                         .slot = 2,
                         .depth = 1,
                         .shuffle = 1,
                         .last = GP_DATA_PAD,
                         .epochs = 1,
                         .window = 5,
                         .dtype = GP_U16,
                         .decoder = (int64_t)gp_data_decoder(SIDE, SIDE, 512, 20000)};
}

/* An error has a text. */
static void expect_text(int code, const char *text)
{
    if (code != GP_OK && code != GP_DATA_END && !text[0])
        door_fail("an error without a text");
}

/* One image, with exactly the memory that was planned. */
static int decode(const char *path, uint64_t hash)
{
    gp_data_set set = set_for(&gp_data_folder, image, 1);
    char text[GP_DATA_TEXT] = "";
    unsigned char *to = malloc(SAMPLE);
    void *work = aligned_alloc(4096, (size_t)set.decoder);
    set.fit = hash % 2 ? GP_DATA_COVER : GP_DATA_STRETCH;
    const int code = gp_data_image(&set, work, path, to, text);
    expect_text(code, text);
    free(to);
    free(work);
    return code == GP_OK;
}

/* A set that is opened and read; a few steps of it, since a header may promise many. */
static int read_set(const gp_data_set *set, const char *path)
{
    const gp_data_bytes bytes = gp_data_plan(set);
    gp_data_start start = {.path = path};
    gp_data *data;
    gp_data_slot slot;
    start.ring = aligned_alloc(64, (size_t)gp_data_round(bytes.ring, 64));
    start.work = aligned_alloc(64, (size_t)gp_data_round(bytes.work, 64));
    int code = gp_data_open(&data, set, &start);
    for (int i = 0; i < 8 && code == GP_OK; i++) {
        code = gp_data_next(data, &slot);
        if (code == GP_OK)
            gp_data_done(data, &slot);
    }
    expect_text(code, gp_data_error(data));
    gp_data_close(data);
    free(start.ring);
    free(start.work);
    return code == GP_OK;
}

/* What is made once from a packed array or a table, written nowhere. */
static int prepare(const char *path, int table)
{
    const gp_data_set set = set_for(table ? &gp_data_csv : &gp_data_idx, row, 2);
    gp_data *data = calloc(1, GP_DATA_STATE + GP_DATA_PREPARE);
    gp_preparation p = {.original = path};
    gp_writer *to = (gp_writer *)((unsigned char *)data + GP_DATA_STATE);
    data->set = &set;
    data->start.work = data;
    to->file = open("/dev/null", O_WRONLY);
    const int code = table ? gp_csv_make(data, &p, to) : gp_idx_unpack(data, &p, to);
    expect_text(code, data->text);
    close(to->file);
    free(data);
    return code == GP_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    const char *path = door_file(data + 1, size - 1);
    const gp_data_set npy = set_for(&gp_data_npy, row, 1), idx = set_for(&gp_data_idx, row + 1, 1),
                      safe = set_for(&gp_data_safetensors, row, 1),
                      tokens = set_for(&gp_data_tokens, token, 1);
    int taken = 0;
    switch (data[0]) {
    case 'n':
        taken = read_set(&npy, path);
        break;
    case 'i':
        taken = read_set(&idx, path);
        break;
    case 's':
        taken = read_set(&safe, path);
        break;
    case 't':
        taken = read_set(&tokens, path);
        break;
    case 'z':
    case 'c':
        taken = prepare(path, data[0] == 'c');
        break;
    default:
        taken = decode(path, door_hash(data, size));
    }
    if (taken)
        door_accept(data, size);
    return 0;
}
