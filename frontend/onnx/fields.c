/* See fields.h. */
#include "frontend/onnx/fields.h"

#include "frontend/base/names.h"

#include <string.h>

bool read_fault(OnnxRead *r, const char *text)
{
    if (!r->fault)
        r->fault = text;
    return false;
}

bool read_next(OnnxRead *r, Wire *wire, WireField *field)
{
    WireState state = r->fault ? WIRE_END : wire_next(wire, field);
    if (state == WIRE_BROKEN)
        read_fault(r, "the file is cut short or is no ONNX file");
    return state == WIRE_FIELD;
}

bool read_wants(OnnxRead *r, const WireField *field, WireType type)
{
    return field->type == type || read_fault(r, "a field has the wrong type");
}

const char *read_text(OnnxRead *r, const WireField *field)
{
    if (!read_wants(r, field, WIRE_BYTES))
        return "";
    size_t length = wire_length(field->bytes);
    if (length > MAX_ONNX_NAME) {
        read_fault(r, "a name is longer than 1000 bytes");
        return "";
    }
    if (!is_plain_text(field->bytes.at, length)) {
        read_fault(r, "a name is not UTF-8 text without control characters");
        return "";
    }
    return arena_copy(r->arena, (const char *)field->bytes.at, length);
}

Wire read_message(OnnxRead *r, const WireField *field)
{
    return read_wants(r, field, WIRE_BYTES) ? field->bytes : (Wire){NULL, NULL};
}

int64_t read_integer(OnnxRead *r, const WireField *field)
{
    return read_wants(r, field, WIRE_VARINT) ? (int64_t)field->integer : 0;
}

double read_real(uint64_t bits, size_t size)
{
    if (size == 8) {
        double number;
        memcpy(&number, &bits, sizeof number);
        return number;
    }
    uint32_t low = (uint32_t)bits;
    float number;
    memcpy(&number, &low, sizeof number);
    return number;
}

void read_integers(OnnxRead *r, const WireField *field, Integers *list, size_t most)
{
    uint64_t value = field->integer;
    if (field->type == WIRE_VARINT) {
        ARRAY_PUSH(r->arena, list, (int64_t)value);
    } else if (read_wants(r, field, WIRE_BYTES)) {
        Wire packed = field->bytes;
        while (packed.at < packed.end && list->count <= most) {
            if (!wire_varint(&packed, &value)) {
                read_fault(r, "a list of numbers is cut short");
                return;
            }
            ARRAY_PUSH(r->arena, list, (int64_t)value);
        }
    }
    if (list->count > most)
        read_fault(r, "a list of numbers is too long");
}

void read_reals(OnnxRead *r, const WireField *field, Reals *list)
{
    if (field->type == WIRE_FIXED32) {
        ARRAY_PUSH(r->arena, list, read_real(field->integer, 4));
    } else if (read_wants(r, field, WIRE_BYTES)) {
        size_t length = wire_length(field->bytes);
        if (length % 4)
            read_fault(r, "a list of numbers is cut short");
        for (size_t i = 0; i + 4 <= length && list->count <= MAX_NUMBERS; i += 4)
            ARRAY_PUSH(r->arena, list, read_real(wire_bits(field->bytes.at + i, 4), 4));
    }
    if (list->count > MAX_NUMBERS)
        read_fault(r, "a list of numbers is too long");
}
