/* Graphs, nodes, functions. See proto.h. Unknown fields are passed over, as the format asks for. */
#include "frontend/onnx/fields.h"

#include <string.h>

/* ---- Types of inputs and outputs ------------------------------------------------------------ */

static void read_dim(OnnxRead *r, Wire wire, OnnxInfo *info)
{
    WireField field;
    int64_t dim = -1;
    const char *symbol = NULL;
    while (read_next(r, &wire, &field)) {
        if (field.number == 1)
            dim = read_integer(r, &field);
        if (field.number == 2)
            symbol = read_text(r, &field);
    }
    if (info->rank == MAX_ONNX_RANK) {
        read_fault(r, "a tensor has too many dimensions");
        return;
    }
    info->dim[info->rank] = dim;
    bool named = symbol && *symbol && strcmp(symbol, "?") != 0; /* "?" is not a name */
    info->symbol[info->rank++] = named ? symbol : NULL;
}

static void read_tensor_type(OnnxRead *r, Wire wire, OnnxInfo *info)
{
    WireField field, dim;
    info->tensor = true;
    while (read_next(r, &wire, &field)) {
        if (field.number == 1)
            info->elem = (int)read_integer(r, &field);
        if (field.number != 2)
            continue;
        Wire shape = read_message(r, &field);
        info->shaped = true;
        info->rank = 0;
        while (read_next(r, &shape, &dim))
            if (dim.number == 1)
                read_dim(r, read_message(r, &dim), info);
    }
}

static OnnxInfo read_info(OnnxRead *r, Wire wire)
{
    static const char *const kinds[] = {
        [4] = "a sequence", [5] = "a map", [8] = "a sparse tensor", [9] = "an optional"};
    OnnxInfo info = {.name = "", .kind = "of no type"};
    WireField field, type;
    while (read_next(r, &wire, &field)) {
        if (field.number == 1)
            info.name = read_text(r, &field);
        if (field.number != 2)
            continue;
        Wire body = read_message(r, &field);
        while (read_next(r, &body, &type))
            if (type.number == 1)
                read_tensor_type(r, read_message(r, &type), &info);
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
    while (read_next(r, &wire, &field)) {
        switch (field.number) {
        case 1:
            a.name = read_text(r, &field);
            break;
        case 2:
            if (read_wants(r, &field, WIRE_FIXED32))
                a.f = read_real(field.integer, 4);
            a.has_f = true;
            break;
        case 3:
            a.i = read_integer(r, &field);
            a.has_i = true;
            break;
        case 4:
            a.s = read_message(r, &field);
            break;
        case 5:
            a.t = read_message(r, &field);
            break;
        case 6:
            a.g = read_message(r, &field);
            break;
        case 7:
            read_reals(r, &field, &floats);
            break;
        case 8:
            read_integers(r, &field, &ints, MAX_NUMBERS);
            break;
        case 9:
            ARRAY_PUSH(r->arena, &strings, read_message(r, &field));
            break;
        case 21:
            a.reference = read_text(r, &field);
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
    while (read_next(r, &wire, &field)) {
        switch (field.number) {
        case 1:
            ARRAY_PUSH(r->arena, &node.input, read_text(r, &field));
            break;
        case 2:
            ARRAY_PUSH(r->arena, &node.output, read_text(r, &field));
            break;
        case 3:
            node.name = read_text(r, &field);
            break;
        case 4:
            node.op = read_text(r, &field);
            break;
        case 5:
            ARRAY_PUSH(r->arena, &node.attribute, read_attribute(r, read_message(r, &field)));
            break;
        case 7:
            node.domain = own_domain(read_text(r, &field));
            break;
        case 8:
            node.overload = read_text(r, &field);
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
        return read_fault(r, "graphs are nested too deeply");
    while (read_next(r, &wire, &field)) {
        OnnxTensor tensor;
        switch (field.number) {
        case 1:
            ARRAY_PUSH(r->arena, &graph->node, read_node(r, read_message(r, &field)));
            break;
        case 2:
            graph->name = read_text(r, &field);
            break;
        case 5:
            if (onnx_read_tensor(r, read_message(r, &field), &tensor))
                ARRAY_PUSH(r->arena, &graph->initializer, tensor);
            break;
        case 11:
            ARRAY_PUSH(r->arena, &graph->input, read_info(r, read_message(r, &field)));
            break;
        case 12:
            ARRAY_PUSH(r->arena, &graph->output, read_info(r, read_message(r, &field)));
            break;
        case 15:
            read_fault(r, "sparse initializers are not read");
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
    while (read_next(r, &wire, &field)) {
        if (field.number == 1)
            opset.domain = own_domain(read_text(r, &field));
        if (field.number == 2)
            opset.version = read_integer(r, &field);
    }
    return opset;
}

static OnnxFunction read_function(OnnxRead *r, Wire wire)
{
    OnnxFunction f = {.name = "", .domain = "", .overload = ""};
    WireField field;
    while (read_next(r, &wire, &field)) {
        switch (field.number) {
        case 1:
            f.name = read_text(r, &field);
            break;
        case 4:
            ARRAY_PUSH(r->arena, &f.input, read_text(r, &field));
            break;
        case 5:
            ARRAY_PUSH(r->arena, &f.output, read_text(r, &field));
            break;
        case 7:
            ARRAY_PUSH(r->arena, &f.node, read_node(r, read_message(r, &field)));
            break;
        case 9:
            ARRAY_PUSH(r->arena, &f.opset, read_opset(r, read_message(r, &field)));
            break;
        case 10:
            f.domain = own_domain(read_text(r, &field));
            break;
        case 11:
            ARRAY_PUSH(r->arena, &f.attribute, read_attribute(r, read_message(r, &field)));
            break;
        case 13:
            f.overload = read_text(r, &field);
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
    while (read_next(r, &wire, &field)) {
        if (field.number == 2)
            model->producer = read_text(r, &field);
        if (field.number == 7)
            graph = read_message(r, &field);
        if (field.number == 8)
            ARRAY_PUSH(r->arena, &model->opset, read_opset(r, read_message(r, &field)));
        if (field.number == 25)
            ARRAY_PUSH(r->arena, &model->function, read_function(r, read_message(r, &field)));
    }
    if (!r->fault && !graph.at)
        return read_fault(r, "the file is cut short or is no ONNX file: it has no graph");
    return !r->fault && onnx_read_graph(r, graph, 0, &model->graph);
}
