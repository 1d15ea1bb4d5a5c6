/* See wire.h. */
#include "frontend/onnx/wire.h"

bool wire_varint(Wire *wire, uint64_t *integer)
{
    *integer = 0;
    for (int shift = 0; shift < 64 && wire->at < wire->end; shift += 7) {
        unsigned char byte = *wire->at++;
        *integer |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return shift < 63 || byte < 2;
    }
    return false;
}

static bool take(Wire *wire, uint64_t count, Wire *bytes)
{
    if (count > wire_length(*wire))
        return false;
    *bytes = (Wire){wire->at, wire->at + count};
    wire->at += count;
    return true;
}

static bool take_value(Wire *wire, WireField *field)
{
    uint64_t length;
    switch (field->type) {
    case WIRE_VARINT:
        return wire_varint(wire, &field->integer);
    case WIRE_BYTES:
        return wire_varint(wire, &length) && take(wire, length, &field->bytes);
    case WIRE_FIXED32:
    case WIRE_FIXED64:
        length = field->type == WIRE_FIXED32 ? 4 : 8;
        if (!take(wire, length, &field->bytes))
            return false;
        field->integer = wire_bits(field->bytes.at, (size_t)length);
        return true;
    }
    return false; /* groups, which ONNX does not use */
}

WireState wire_next(Wire *wire, WireField *field)
{
    uint64_t tag;
    if (wire->at == wire->end)
        return WIRE_END;
    if (!wire_varint(wire, &tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff)
        return WIRE_BROKEN;
    *field = (WireField){.number = (uint32_t)(tag >> 3), .type = (WireType)(tag & 7)};
    return take_value(wire, field) ? WIRE_FIELD : WIRE_BROKEN;
}
