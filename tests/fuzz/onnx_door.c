/* An ONNX file, compiled in one of several ways. Beside it lies a file of external data.
 *
 * The mutator changes fields of the messages and sets the lengths around them right. */
#define _GNU_SOURCE
#include "frontend/onnx/wire.h"
#include "tests/fuzz/door.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LITTLE "--effort", "1", "--color", "never", "--quiet", "--infer"
static const char *const ways[][12] = {
    {LITTLE, "--emit", "g"},
    {LITTLE, "--emit", "g", "-D", "N=3"},
    {LITTLE, "--emit", "c"},
    {LITTLE, "--emit", "json"},
    {LITTLE, "--emit", "graph"},
    {LITTLE, "--emit", "g", "-D", "N=1"},
    {LITTLE, "--bind", "c=c", "--emit", "g"},
    {LITTLE, "-o", "out.g"},
};
enum { WAYS = sizeof ways / sizeof *ways };

static char model[100];

/* A folder with model.onnx, which is the input, and a tensor's data as a file and as a message. */
static void begin(const char *input)
{
    static char folder[] = "/tmp/gplan_fuzz.XXXXXX";
    static const unsigned char shape[] = {0x08, 3, 0x10, 7, 0x4a, 24, 1, 0, 0, 0, 0, 0, 0, 0, 2,
                                          0,    0, 0,    0, 0,    0,  0, 2, 0, 0, 0, 0, 0, 0, 0};
    static const unsigned char data[64] = {0, 0, 128, 63, 0, 0, 0, 64, 1, 2, 3};
    FILE *file = NULL;
    if (!mkdtemp(folder) || chdir(folder) != 0 || symlink(input, "model.onnx") != 0 ||
        !(file = fopen("data", "wb")) || fwrite(data, 1, sizeof data, file) != sizeof data ||
        fclose(file) != 0 || !(file = fopen("c", "wb")) ||
        fwrite(shape, 1, sizeof shape, file) != sizeof shape || fclose(file) != 0)
        door_fail("the folder cannot be set up");
    snprintf(model, sizeof model, "%s/model.onnx", folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *argument[16] = {model};
    const char *const *way = ways[door_hash(data, size) % WAYS];
    const char *input = door_file(data, size);
    if (!*model)
        begin(input);
    for (int i = 0; i < 12 && way[i]; i++)
        argument[1 + i] = way[i];
    if (door_run(argument) == 0)
        door_accept(data, size);
    else if (access("out.g", F_OK) == 0)
        door_fail("a file that was refused has left something");
    unlink("out.g");
    unlink("out.safetensors");
    return 0;
}

/* ---- Changes of fields ------------------------------------------------------------------------
 */

enum { MOST_FIELDS = 512, DEEPEST = 12, MOST_POOL = 256, MOST_CHUNK = 1 << 16 };

typedef struct {
    uint64_t tag, integer;
    const uint8_t *at; /* the bytes of its value, without their length */
    size_t length;
} Field;

typedef struct {
    Field field[MOST_FIELDS];
    size_t count;
} Message;

typedef struct {
    uint8_t *at;
    size_t length, room;
    bool full;
} Out;

static void put(Out *out, const void *data, size_t length)
{
    if (length > out->room - out->length) {
        out->full = true;
        return;
    }
    if (length)
        memcpy(out->at + out->length, data, length);
    out->length += length;
}

static void put_varint(Out *out, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        put(out, &(uint8_t){(uint8_t)(number | 0x80)}, 1);
    put(out, &(uint8_t){(uint8_t)number}, 1);
}

static void put_field(Out *out, const Field *field)
{
    put_varint(out, field->tag);
    if ((field->tag & 7) == WIRE_VARINT) {
        put_varint(out, field->integer);
        return;
    }
    if ((field->tag & 7) == WIRE_BYTES)
        put_varint(out, field->length);
    put(out, field->at, field->length);
}

/* False: it is no message. */
static bool split(Message *message, const uint8_t *data, size_t size)
{
    Wire wire = {data, data + size};
    WireField field;
    WireState state;
    message->count = 0;
    while ((state = wire_next(&wire, &field)) == WIRE_FIELD && message->count < MOST_FIELDS)
        message->field[message->count++] =
            (Field){(uint64_t)field.number << 3 | (unsigned)field.type, field.integer,
                    field.bytes.at, wire_length(field.bytes)};
    return state == WIRE_END && message->count > 0;
}

static bool is_text(const Field *field)
{
    for (size_t i = 0; i < field->length; i++)
        if (field->at[i] < 32 || field->at[i] > 126)
            return false;
    return (field->tag & 7) == WIRE_BYTES && field->length > 0;
}

/* Names of the whole file, for one to take another's place. */
static struct {
    Field text[MOST_POOL];
    size_t count;
} pool;

static void gather(const uint8_t *data, size_t size, int depth)
{
    Message *message = malloc(sizeof *message);
    bool whole = split(message, data, size);
    for (size_t i = 0; whole && i < message->count; i++) {
        const Field *field = &message->field[i];
        if (is_text(field)) {
            if (pool.count < MOST_POOL)
                pool.text[pool.count++] = *field;
        } else if ((field->tag & 7) == WIRE_BYTES && depth < DEEPEST) {
            gather(field->at, field->length, depth + 1);
        }
    }
    free(message);
}

static uint64_t odd_integer(Dice *dice)
{
    static const int64_t odd[] = {0,
                                  1,
                                  2,
                                  3,
                                  4,
                                  7,
                                  8,
                                  16,
                                  64,
                                  1000,
                                  -1,
                                  -2,
                                  INT32_MAX,
                                  INT32_MIN,
                                  INT64_MAX,
                                  INT64_MIN,
                                  INT64_C(1) << 40};
    return (uint64_t)odd[dice_below(dice, sizeof odd / sizeof *odd)];
}

/* Takes a field's place; `room` is for bytes of its own. */
static void change_value(Dice *dice, Field *field, uint8_t *room)
{
    static const char *const ops[] = {"Add",         "MatMul",
                                      "Conv",        "Reshape",
                                      "Shape",       "Gather",
                                      "Concat",      "Slice",
                                      "Cast",        "Loop",
                                      "If",          "Scan",
                                      "LSTM",        "Einsum",
                                      "Resize",      "Range",
                                      "TopK",        "ConvTranspose",
                                      "Pad",         "Expand",
                                      "Tile",        "Where",
                                      "NonZero",     "Unsqueeze",
                                      "AveragePool", "Constant",
                                      "Split",       "GRU",
                                      "MaxPool",     "CumSum",
                                      "OneHot",      "ReduceSum",
                                      "ScatterND",   "ConstantOfShape",
                                      "QLinearConv", "DequantizeLinear",
                                      "Attention",   "GroupNormalization",
                                      "Bernoulli",   "RandomUniformLike",
                                      "Multinomial", "RotaryEmbedding",
                                      "../data",     "data"};
    if ((field->tag & 7) == WIRE_VARINT) {
        field->integer =
            dice_below(dice, 3) ? odd_integer(dice) : field->integer + dice_below(dice, 5) - 2;
        return;
    }
    if ((field->tag & 7) == WIRE_BYTES && is_text(field) && dice_below(dice, 4)) {
        unsigned pick = dice_below(dice, 3);
        if (pick == 0) {
            const char *op = ops[dice_below(dice, sizeof ops / sizeof *ops)];
            *field = (Field){field->tag, 0, (const uint8_t *)op, strlen(op)};
        } else if (pool.count) {
            const Field *other = &pool.text[dice_below(dice, (unsigned)pool.count)];
            *field = (Field){field->tag, 0, other->at, other->length};
        }
        return;
    }
    if (field->length > MOST_CHUNK / 2)
        return;
    memcpy(room, field->at, field->length);
    if (field->length && field->length % 8 == 0 && dice_below(dice, 2)) { /* of integers, likely */
        uint64_t number = odd_integer(dice);
        memcpy(room + 8 * dice_below(dice, (unsigned)(field->length / 8)), &number, 8);
    } else if ((field->tag & 7) == WIRE_BYTES) {
        field->length = LLVMFuzzerMutate(room, field->length, field->length + 16);
    } else {
        room[dice_below(dice, (unsigned)field->length)] = (uint8_t)dice_below(dice, 256);
    }
    field->at = room;
}

/* The message with one field of it, or within it, changed. */
static void rewrite(Dice *dice, Out *out, const uint8_t *data, size_t size, int depth)
{
    Message *m = malloc(sizeof *m), *inner = malloc(sizeof *inner);
    uint8_t *room = malloc(MOST_CHUNK);
    if (!split(m, data, size)) {
        put(out, data, size);
    } else {
        size_t at = dice_below(dice, (unsigned)m->count);
        Field *field = &m->field[at];
        Out within = {room, 0, MOST_CHUNK, false};
        bool message = (field->tag & 7) == WIRE_BYTES && !is_text(field) && depth < DEEPEST &&
                       split(inner, field->at, field->length);
        unsigned what = dice_below(dice, 12), erased = m->count;
        if (message && what < 10) {
            rewrite(dice, &within, field->at, field->length, depth + 1);
            field->at = room;
            field->length = within.length;
        } else if (what == 0 || what == 10) {
            erased = (unsigned)at;
        } else if (what == 1 && m->count < MOST_FIELDS) {
            m->field[m->count++] = *field;
        } else if (what == 2) {
            Field other = m->field[dice_below(dice, (unsigned)m->count)];
            other.tag = (field->tag & ~UINT64_C(7)) | (other.tag & 7);
            *field = other;
        } else {
            change_value(dice, field, room);
        }
        for (size_t i = 0; i < m->count; i++)
            if (i != erased)
                put_field(out, &m->field[i]);
    }
    free(room);
    free(inner);
    free(m);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    Dice dice = {seed};
    if (size < 2 || dice_below(&dice, 10) == 0)
        return LLVMFuzzerMutate(data, size, most);
    uint8_t *from = malloc(size);
    Out out = {.at = data, .room = most};
    memcpy(from, data, size);
    pool.count = 0;
    gather(from, size, 0);
    rewrite(&dice, &out, from, size, 0);
    if (out.full || !out.length) { /* as it was */
        memcpy(data, from, size);
        out.length = size;
    }
    free(from);
    return out.length;
}
