/* Tensors and the types of their elements. See proto.h. */
#include "frontend/onnx/fields.h"

#include <math.h>
#include <string.h>

/* ---- Types ---------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    size_t size;
    Dtype computed, stored;
    bool is_float;
} elems[ELEMS] = {
    [ELEM_NONE] = {"undefined", 0, DTYPES, DTYPES, false},
    [ELEM_FLOAT] = {"float", 4, F32, F32, true},
    [ELEM_UINT8] = {"uint8", 1, U8, U8, false},
    [ELEM_INT8] = {"int8", 1, I32, I8, false},
    [ELEM_UINT16] = {"uint16", 2, I32, U16, false},
    [ELEM_INT16] = {"int16", 2, I32, I32, false},
    [ELEM_INT32] = {"int32", 4, I32, I32, false},
    [ELEM_INT64] = {"int64", 8, I64, I64, false},
    [ELEM_STRING] = {"string", 0, DTYPES, DTYPES, false},
    [ELEM_BOOL] = {"bool", 1, BOOL, BOOL, false},
    [ELEM_FLOAT16] = {"float16", 2, F32, F16, true},
    [ELEM_DOUBLE] = {"double", 8, F32, F64, true},
    [ELEM_UINT32] = {"uint32", 4, I64, U32, false},
    [ELEM_UINT64] = {"uint64", 8, I64, I64, false},
    [ELEM_COMPLEX64] = {"complex64", 0, DTYPES, DTYPES, false},
    [ELEM_COMPLEX128] = {"complex128", 0, DTYPES, DTYPES, false},
    [ELEM_BFLOAT16] = {"bfloat16", 2, F32, BF16, true},
};

static bool is_elem(int elem)
{
    return elem > 0 && elem < ELEMS;
}

const char *elem_name(int elem)
{
    static const char *const later[] = {"float8e4m3fn",   "float8e4m3fnuz", "float8e5m2",
                                        "float8e5m2fnuz", "uint4",          "int4",
                                        "float4e2m1",     "float8e8m0"};
    if (is_elem(elem))
        return elems[elem].name;
    return elem >= ELEMS && elem < ELEMS + 8 ? later[elem - ELEMS] : "undefined";
}

size_t elem_size(int elem)
{
    return is_elem(elem) ? elems[elem].size : 0;
}

bool elem_is_float(int elem)
{
    return is_elem(elem) && elems[elem].is_float;
}

Dtype elem_dtype(int elem)
{
    return is_elem(elem) ? elems[elem].computed : DTYPES;
}

Dtype elem_stored(int elem)
{
    return is_elem(elem) ? elems[elem].stored : DTYPES;
}

/* ---- Tensors -------------------------------------------------------------------------------- */

typedef struct {
    Integers dims, integers;
    Wire raw;     /* bytes as they are; floats and doubles are packed that way too */
    size_t fixed; /* bytes of a number in raw; 0: of the type's own size */
    Wires loose;  /* floats that were written one by one */
    bool external;
} TensorParts;

static void external_entry(OnnxRead *r, Wire entry, OnnxTensor *tensor)
{
    WireField field;
    const char *key = "", *value = "";
    while (read_next(r, &entry, &field)) {
        if (field.number == 1)
            key = read_text(r, &field);
        if (field.number == 2)
            value = read_text(r, &field);
    }
    uint64_t number = 0;
    bool whole = *value != 0;
    for (const char *at = value; *at; at++) {
        whole = whole && *at >= '0' && *at <= '9' && number < UINT64_MAX / 20;
        number = number * 10 + (uint64_t)(*at - '0');
    }
    if (strcmp(key, "location") == 0)
        tensor->location = value;
    else if (strcmp(key, "offset") == 0 || strcmp(key, "length") == 0) {
        if (!whole)
            read_fault(r, "an offset or a length of external data is no number");
        *(*key == 'o' ? &tensor->offset : &tensor->length) = number;
    }
}

static void tensor_field(OnnxRead *r, const WireField *field, OnnxTensor *tensor,
                         TensorParts *parts, uint64_t most)
{
    switch (field->number) {
    case 1:
        read_integers(r, field, &parts->dims, MAX_ONNX_RANK);
        break;
    case 2:
        tensor->elem = (int)read_integer(r, field);
        break;
    case 4:  /* float_data */
    case 10: /* double_data */
        parts->fixed = field->number == 4 ? 4 : 8;
        if (field->type == WIRE_BYTES && !parts->raw.at)
            parts->raw = field->bytes;
        else
            ARRAY_PUSH(r->arena, &parts->loose, field->bytes);
        break;
    case 5: /* int32_data, int64_data, uint64_data */
    case 7:
    case 11:
        read_integers(r, field, &parts->integers, (size_t)most);
        break;
    case 8:
        tensor->name = read_text(r, field);
        break;
    case 9:
        parts->raw = read_message(r, field);
        parts->fixed = 0;
        break;
    case 13:
        external_entry(r, read_message(r, field), tensor);
        break;
    case 14:
        parts->external = read_integer(r, field) == 1;
        break;
    default:
        break;
    }
}

static bool count_elements(OnnxRead *r, OnnxTensor *tensor, const Integers *dims)
{
    tensor->rank = (int)dims->count;
    tensor->count = 1;
    for (int i = 0; i < tensor->rank; i++) {
        tensor->dim[i] = dims->at[i];
        if (tensor->dim[i] < 0)
            return read_fault(
                r, arena_printf(r->arena, "tensor \"%s\": a dimension is negative", tensor->name));
        if (tensor->dim[i] && tensor->count > (INT64_C(1) << 56) / tensor->dim[i])
            return read_fault(r,
                              arena_printf(r->arena, "tensor \"%s\" is too large", tensor->name));
        tensor->count *= tensor->dim[i];
    }
    return true;
}

/* Numbers that were written as varints or one by one, as the type lays them out. */
static const unsigned char *lay_out(OnnxRead *r, const TensorParts *parts, size_t size)
{
    size_t count = parts->integers.count;
    unsigned char *data;
    if (count) {
        data = arena_alloc(r->arena, count * size);
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < size; k++)
                data[i * size + k] = (unsigned char)((uint64_t)parts->integers.at[i] >> 8 * k);
        return data;
    }
    data = arena_alloc(r->arena, parts->loose.count * size + 1);
    for (size_t i = 0; i < parts->loose.count; i++)
        if (wire_length(parts->loose.at[i]) == size)
            memcpy(data + i * size, parts->loose.at[i].at, size);
        else
            read_fault(r, "a list of numbers is cut short");
    return data;
}

bool onnx_read_tensor(OnnxRead *r, Wire wire, OnnxTensor *tensor)
{
    TensorParts parts = {0};
    WireField field;
    uint64_t most = wire_length(wire); /* a number takes a byte at least */
    *tensor = (OnnxTensor){.name = ""};
    while (read_next(r, &wire, &field))
        tensor_field(r, &field, tensor, &parts, most);
    if (r->fault || !count_elements(r, tensor, &parts.dims))
        return false;
    size_t size = elem_size(tensor->elem);
    if (!size)
        return true; /* of a type that gplan refuses where it is used */
    uint64_t have = wire_length(parts.raw) / size;
    if (parts.external) {
        if (!tensor->location)
            return read_fault(r,
                              arena_printf(r->arena, "tensor \"%s\": external data without a file",
                                           tensor->name));
        return true;
    }
    tensor->location = NULL;
    if (parts.integers.count)
        have = parts.integers.count;
    else if (parts.loose.count)
        have = parts.loose.count;
    bool whole = parts.integers.count || parts.loose.count || wire_length(parts.raw) % size == 0;
    if (!whole || (parts.fixed && parts.fixed != size) || have != (uint64_t)tensor->count)
        return read_fault(
            r, arena_printf(r->arena,
                            "tensor \"%s\": its data are %llu numbers, its dims ask for "
                            "%lld",
                            tensor->name, (unsigned long long)have, (long long)tensor->count));
    bool as_is = !parts.integers.count && !parts.loose.count;
    tensor->owned = !as_is;
    tensor->data = as_is ? parts.raw.at : lay_out(r, &parts, size);
    if (!tensor->data)
        tensor->data = (const unsigned char *)"";
    return !r->fault;
}

static double half(uint64_t bits)
{
    int exponent = (int)(bits >> 10 & 31);
    double fraction = (double)(bits & 1023);
    double number = exponent == 0    ? ldexp(fraction, -24)
                    : exponent == 31 ? (fraction != 0 ? NAN : INFINITY)
                                     : ldexp(1024 + fraction, exponent - 25);
    return bits >> 15 ? -number : number;
}

double onnx_number(const OnnxTensor *tensor, int64_t i)
{
    size_t size = elem_size(tensor->elem);
    uint64_t bits = wire_bits(tensor->data + (size_t)i * size, size);
    switch (tensor->elem) {
    case ELEM_FLOAT:
        return read_real(bits, 4);
    case ELEM_DOUBLE:
        return read_real(bits, 8);
    case ELEM_FLOAT16:
        return half(bits);
    case ELEM_BFLOAT16:
        return read_real(bits << 16, 4);
    case ELEM_UINT64:
        return (double)bits;
    default:
        return (double)onnx_integer(tensor, i);
    }
}

int64_t onnx_integer(const OnnxTensor *tensor, int64_t i)
{
    size_t size = elem_size(tensor->elem);
    uint64_t bits = wire_bits(tensor->data + (size_t)i * size, size);
    switch (tensor->elem) {
    case ELEM_INT8:
        return (int8_t)bits;
    case ELEM_INT16:
        return (int16_t)bits;
    case ELEM_INT32:
        return (int32_t)bits;
    case ELEM_BOOL:
        return bits != 0;
    default:
        return elem_is_float(tensor->elem) ? whole_number(onnx_number(tensor, i)) : (int64_t)bits;
    }
}

void onnx_convert(const OnnxTensor *tensor, Dtype dtype, int64_t from, int64_t count, void *to)
{
    for (int64_t i = 0; i < count; i++) {
        if (dtype == F32)
            ((float *)to)[i] = (float)onnx_number(tensor, from + i);
        else if (dtype == I64)
            ((int64_t *)to)[i] = onnx_integer(tensor, from + i);
        else if (dtype == I32)
            ((int32_t *)to)[i] = (int32_t)onnx_integer(tensor, from + i);
        else
            ((unsigned char *)to)[i] = (unsigned char)onnx_integer(tensor, from + i);
    }
}
