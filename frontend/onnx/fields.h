/* Fields of a message, each checked for its type: what the readers of proto.c and tensor.c share.
 * The first fault is kept, and ends all loops. */
#ifndef GPLAN_ONNX_FIELDS_H
#define GPLAN_ONNX_FIELDS_H

#include "frontend/onnx/proto.h"

typedef ARRAY(int64_t) Integers;
typedef ARRAY(double) Reals;
typedef ARRAY(Wire) Wires;

bool read_fault(OnnxRead *r, const char *text); /* false: for `return read_fault(...)` */
/* Steps through a message; false at its end, and where it is broken (r->fault). */
bool read_next(OnnxRead *r, Wire *wire, WireField *field);
bool read_wants(OnnxRead *r, const WireField *field, WireType type);

const char *read_text(OnnxRead *r, const WireField *field); /* UTF-8; never NULL */
Wire read_message(OnnxRead *r, const WireField *field);
int64_t read_integer(OnnxRead *r, const WireField *field);
double read_real(uint64_t bits, size_t size); /* of 4 or 8 bytes */
/* Repeated numbers: packed, or one by one. */
void read_integers(OnnxRead *r, const WireField *field, Integers *list, size_t most);
void read_reals(OnnxRead *r, const WireField *field, Reals *list);

#endif
