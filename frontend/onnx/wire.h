/* The wire format of protocol buffers, read in place: a span in, fields out. Nothing is allocated,
 * and no length is believed before it was compared with what is left. */
#ifndef GPLAN_ONNX_WIRE_H
#define GPLAN_ONNX_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    const unsigned char *at, *end;
} Wire;

typedef enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 } WireType;

typedef struct {
    uint32_t number; /* of the field */
    WireType type;
    uint64_t integer; /* of a varint or a fixed one, as read */
    Wire bytes;       /* of WIRE_BYTES */
} WireField;

typedef enum { WIRE_END, WIRE_FIELD, WIRE_BROKEN } WireState;

/* The next field; what was read is taken off the span. */
WireState wire_next(Wire *wire, WireField *field);
/* One varint; false where it is cut or longer than 64 bits. */
bool wire_varint(Wire *wire, uint64_t *integer);

static inline size_t wire_length(Wire wire)
{
    return (size_t)(wire.end - wire.at);
}

/* Bytes of a number, lowest first; `size` is at most 8. */
static inline uint64_t wire_bits(const unsigned char *at, size_t size)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < size; i++)
        bits |= (uint64_t)at[i] << 8 * i;
    return bits;
}

#endif
