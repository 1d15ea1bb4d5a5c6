/* See proto.h. Unknown fields are passed over, as the format asks for. */
#include "frontend/onnx/proto.h"

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

/* ---- Fields --------------------------------------------------------------------------------- */

static bool fault(OnnxRead *r, const char *text)
{
    if (!r->fault)
        r->fault = text;
    return false;
}

/* Steps through a message; false at its end, and where it is broken (r->fault). */
static bool next(OnnxRead *r, Wire *wire, WireField *field)
{
    WireState state = r->fault ? WIRE_END : wire_next(wire, field);
    if (state == WIRE_BROKEN)
        fault(r, "the file is cut short or is no ONNX file");
    return state == WIRE_FIELD;
}

static bool wants(OnnxRead *r, const WireField *field, WireType type)
{
    return field->type == type || fault(r, "a field has the wrong type");
}

static bool is_utf8(const unsigned char *at, size_t length)
{
    for (size_t i = 0; i < length;) {
        unsigned char lead = at[i];
        size_t more = lead < 0x80 ? 0 : lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
        if (lead >= 0x80 && (lead < 0xc2 || lead > 0xf4))
            return false;
        if (length - i <= more)
            return false;
        for (size_t k = 1; k <= more; k++)
            if ((at[i + k] & 0xc0) != 0x80)
                return false;
        i += more + 1;
    }
    return true;
}

static const char *text(OnnxRead *r, const WireField *field)
{
    if (!wants(r, field, WIRE_BYTES))
        return "";
    size_t length = wire_length(field->bytes);
    if (length > MAX_ONNX_NAME) {
        fault(r, "a name is longer than 1000 bytes");
        return "";
    }
    if (!is_utf8(field->bytes.at, length) || memchr(field->bytes.at, 0, length)) {
        fault(r, "a name is not UTF-8 text");
        return "";
    }
    return arena_copy(r->arena, (const char *)field->bytes.at, length);
}

static Wire message(OnnxRead *r, const WireField *field)
{
    return wants(r, field, WIRE_BYTES) ? field->bytes : (Wire){NULL, NULL};
}

static int64_t integer(OnnxRead *r, const WireField *field)
{
    return wants(r, field, WIRE_VARINT) ? (int64_t)field->integer : 0;
}

static double real(uint64_t bits, size_t size)
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

typedef ARRAY(int64_t) Integers;
typedef ARRAY(double) Reals;
typedef ARRAY(Wire) Wires;

/* Repeated integers: packed, or one by one. */
static void add_integers(OnnxRead *r, const WireField *field, Integers *list, size_t most)
{
    uint64_t value = field->integer;
    if (field->type == WIRE_VARINT) {
        ARRAY_PUSH(r->arena, list, (int64_t)value);
    } else if (wants(r, field, WIRE_BYTES)) {
        Wire packed = field->bytes;
        while (packed.at < packed.end && list->count <= most) {
            if (!wire_varint(&packed, &value)) {
                fault(r, "a list of numbers is cut short");
                return;
            }
            ARRAY_PUSH(r->arena, list, (int64_t)value);
        }
    }
    if (list->count > most)
        fault(r, "a list of numbers is too long");
}

static void add_reals(OnnxRead *r, const WireField *field, Reals *list)
{
    if (field->type == WIRE_FIXED32) {
        ARRAY_PUSH(r->arena, list, real(field->integer, 4));
    } else if (wants(r, field, WIRE_BYTES)) {
        size_t length = wire_length(field->bytes);
        if (length % 4)
            fault(r, "a list of numbers is cut short");
        for (size_t i = 0; i + 4 <= length && list->count <= MAX_NUMBERS; i += 4)
            ARRAY_PUSH(r->arena, list, real(wire_bits(field->bytes.at + i, 4), 4));
    }
    if (list->count > MAX_NUMBERS)
        fault(r, "a list of numbers is too long");
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
    while (next(r, &entry, &field)) {
        if (field.number == 1)
            key = text(r, &field);
        if (field.number == 2)
            value = text(r, &field);
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
            fault(r, "an offset or a length of external data is no number");
        *(*key == 'o' ? &tensor->offset : &tensor->length) = number;
    }
}

static void tensor_field(OnnxRead *r, const WireField *field, OnnxTensor *tensor,
                         TensorParts *parts, uint64_t most)
{
    switch (field->number) {
    case 1:
        add_integers(r, field, &parts->dims, MAX_ONNX_RANK);
        break;
    case 2:
        tensor->elem = (int)integer(r, field);
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
        add_integers(r, field, &parts->integers, (size_t)most);
        break;
    case 8:
        tensor->name = text(r, field);
        break;
    case 9:
        parts->raw = message(r, field);
        parts->fixed = 0;
        break;
    case 13:
        external_entry(r, message(r, field), tensor);
        break;
    case 14:
        parts->external = integer(r, field) == 1;
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
            return fault(
                r, arena_printf(r->arena, "tensor \"%s\": a dimension is negative", tensor->name));
        if (tensor->dim[i] && tensor->count > (INT64_C(1) << 56) / tensor->dim[i])
            return fault(r, arena_printf(r->arena, "tensor \"%s\" is too large", tensor->name));
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
            fault(r, "a list of numbers is cut short");
    return data;
}

bool onnx_read_tensor(OnnxRead *r, Wire wire, OnnxTensor *tensor)
{
    TensorParts parts = {0};
    WireField field;
    uint64_t most = wire_length(wire); /* a number takes a byte at least */
    *tensor = (OnnxTensor){.name = ""};
    while (next(r, &wire, &field))
        tensor_field(r, &field, tensor, &parts, most);
    if (r->fault || !count_elements(r, tensor, &parts.dims))
        return false;
    size_t size = elem_size(tensor->elem);
    if (!size)
        return true; /* of a type that gplan refuses where it is used */
    uint64_t have = wire_length(parts.raw) / size;
    if (parts.external) {
        if (!tensor->location)
            return fault(r, arena_printf(r->arena, "tensor \"%s\": external data without a file",
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
        return fault(r, arena_printf(r->arena,
                                     "tensor \"%s\": its data are %llu numbers, its dims ask for "
                                     "%lld",
                                     tensor->name, (unsigned long long)have,
                                     (long long)tensor->count));
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
        return real(bits, 4);
    case ELEM_DOUBLE:
        return real(bits, 8);
    case ELEM_FLOAT16:
        return half(bits);
    case ELEM_BFLOAT16:
        return real(bits << 16, 4);
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

/* ---- Types of inputs and outputs ------------------------------------------------------------ */

static void read_dim(OnnxRead *r, Wire wire, OnnxInfo *info)
{
    WireField field;
    int64_t dim = -1;
    const char *symbol = NULL;
    while (next(r, &wire, &field)) {
        if (field.number == 1)
            dim = integer(r, &field);
        if (field.number == 2)
            symbol = text(r, &field);
    }
    if (info->rank == MAX_ONNX_RANK) {
        fault(r, "a tensor has too many dimensions");
        return;
    }
    info->dim[info->rank] = dim;
    bool named = symbol && *symbol && strcmp(symbol, "?") != 0; /* "?" is nobody's name */
    info->symbol[info->rank++] = named ? symbol : NULL;
}

static void read_tensor_type(OnnxRead *r, Wire wire, OnnxInfo *info)
{
    WireField field, dim;
    info->tensor = true;
    while (next(r, &wire, &field)) {
        if (field.number == 1)
            info->elem = (int)integer(r, &field);
        if (field.number != 2)
            continue;
        Wire shape = message(r, &field);
        info->shaped = true;
        info->rank = 0;
        while (next(r, &shape, &dim))
            if (dim.number == 1)
                read_dim(r, message(r, &dim), info);
    }
}

static OnnxInfo read_info(OnnxRead *r, Wire wire)
{
    static const char *const kinds[] = {
        [4] = "a sequence", [5] = "a map", [8] = "a sparse tensor", [9] = "an optional"};
    OnnxInfo info = {.name = "", .kind = "of no type"};
    WireField field, type;
    while (next(r, &wire, &field)) {
        if (field.number == 1)
            info.name = text(r, &field);
        if (field.number != 2)
            continue;
        Wire body = message(r, &field);
        while (next(r, &body, &type))
            if (type.number == 1)
                read_tensor_type(r, message(r, &type), &info);
            else if (type.number < sizeof kinds / sizeof *kinds && kinds[type.number])
                info.kind = kinds[type.number];
    }
    return info;
}

/* ---- Nodes ---------------------------------------------------------------------------------- */

static OnnxAttribute read_attribute(OnnxRead *r, Wire wire)
{
    OnnxAttribute a = {.name = "", .body = wire};
    WireField field;
    Integers ints = {0};
    Reals floats = {0};
    Wires strings = {0};
    while (next(r, &wire, &field)) {
        switch (field.number) {
        case 1:
            a.name = text(r, &field);
            break;
        case 2:
            if (wants(r, &field, WIRE_FIXED32))
                a.f = real(field.integer, 4);
            a.has_f = true;
            break;
        case 3:
            a.i = integer(r, &field);
            a.has_i = true;
            break;
        case 4:
            a.s = message(r, &field);
            break;
        case 5:
            a.t = message(r, &field);
            break;
        case 6:
            a.g = message(r, &field);
            break;
        case 7:
            add_reals(r, &field, &floats);
            break;
        case 8:
            add_integers(r, &field, &ints, MAX_NUMBERS);
            break;
        case 9:
            ARRAY_PUSH(r->arena, &strings, message(r, &field));
            break;
        case 21:
            a.reference = text(r, &field);
            break;
        default:
            break;
        }
    }
    a.ints = ints.at;
    a.int_count = ints.count;
    a.floats = floats.at;
    a.float_count = floats.count;
    a.strings = strings.at;
    a.string_count = strings.count;
    return a;
}

/* ONNX's own domain has two names. */
static const char *own_domain(const char *domain)
{
    return strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

static OnnxNode read_node(OnnxRead *r, Wire wire)
{
    OnnxNode node = {.name = "", .op = "", .domain = "", .overload = ""};
    WireField field;
    while (next(r, &wire, &field)) {
        switch (field.number) {
        case 1:
            ARRAY_PUSH(r->arena, &node.input, text(r, &field));
            break;
        case 2:
            ARRAY_PUSH(r->arena, &node.output, text(r, &field));
            break;
        case 3:
            node.name = text(r, &field);
            break;
        case 4:
            node.op = text(r, &field);
            break;
        case 5:
            ARRAY_PUSH(r->arena, &node.attribute, read_attribute(r, message(r, &field)));
            break;
        case 7:
            node.domain = own_domain(text(r, &field));
            break;
        case 8:
            node.overload = text(r, &field);
            break;
        default:
            break;
        }
    }
    return node;
}

/* ---- Graphs and the model ------------------------------------------------------------------- */

bool onnx_read_graph(OnnxRead *r, Wire wire, int depth, OnnxGraph *graph)
{
    WireField field;
    *graph = (OnnxGraph){.name = ""};
    if (depth >= MAX_GRAPHS)
        return fault(r, "graphs are nested too deeply");
    while (next(r, &wire, &field)) {
        OnnxTensor tensor;
        switch (field.number) {
        case 1:
            ARRAY_PUSH(r->arena, &graph->node, read_node(r, message(r, &field)));
            break;
        case 2:
            graph->name = text(r, &field);
            break;
        case 5:
            if (onnx_read_tensor(r, message(r, &field), &tensor))
                ARRAY_PUSH(r->arena, &graph->initializer, tensor);
            break;
        case 11:
            ARRAY_PUSH(r->arena, &graph->input, read_info(r, message(r, &field)));
            break;
        case 12:
            ARRAY_PUSH(r->arena, &graph->output, read_info(r, message(r, &field)));
            break;
        case 15:
            fault(r, "sparse initializers are not read");
            break;
        default:
            break;
        }
    }
    return !r->fault;
}

static OnnxOpset read_opset(OnnxRead *r, Wire wire)
{
    OnnxOpset opset = {.domain = ""};
    WireField field;
    while (next(r, &wire, &field)) {
        if (field.number == 1)
            opset.domain = own_domain(text(r, &field));
        if (field.number == 2)
            opset.version = integer(r, &field);
    }
    return opset;
}

static OnnxFunction read_function(OnnxRead *r, Wire wire)
{
    OnnxFunction f = {.name = "", .domain = "", .overload = ""};
    WireField field;
    while (next(r, &wire, &field)) {
        switch (field.number) {
        case 1:
            f.name = text(r, &field);
            break;
        case 4:
            ARRAY_PUSH(r->arena, &f.input, text(r, &field));
            break;
        case 5:
            ARRAY_PUSH(r->arena, &f.output, text(r, &field));
            break;
        case 7:
            ARRAY_PUSH(r->arena, &f.node, read_node(r, message(r, &field)));
            break;
        case 9:
            ARRAY_PUSH(r->arena, &f.opset, read_opset(r, message(r, &field)));
            break;
        case 10:
            f.domain = own_domain(text(r, &field));
            break;
        case 11:
            ARRAY_PUSH(r->arena, &f.attribute, read_attribute(r, message(r, &field)));
            break;
        case 13:
            f.overload = text(r, &field);
            break;
        default:
            break;
        }
    }
    return f;
}

bool onnx_read_model(OnnxRead *r, Wire wire, OnnxModel *model)
{
    WireField field;
    Wire graph = {NULL, NULL};
    *model = (OnnxModel){.producer = ""};
    while (next(r, &wire, &field)) {
        if (field.number == 2)
            model->producer = text(r, &field);
        if (field.number == 7)
            graph = message(r, &field);
        if (field.number == 8)
            ARRAY_PUSH(r->arena, &model->opset, read_opset(r, message(r, &field)));
        if (field.number == 25)
            ARRAY_PUSH(r->arena, &model->function, read_function(r, message(r, &field)));
    }
    if (!r->fault && !graph.at)
        return fault(r, "the file is cut short or is no ONNX file: it has no graph");
    return !r->fault && onnx_read_graph(r, graph, 0, &model->graph);
}
