/* See import.h. Constants are folded with the kernels that gplan itself was compiled with. */
#include "frontend/command/import.h"

#include "codegen/codegen.h"
#include "frontend/safetensors.h"
#include "runtime/c/replace.h"
#include "runtime/runtime.h"

#include <stdlib.h>
#include <string.h>

static gp_tensor tensor_at(void *root, Dtype dtype, const View *view)
{
    gp_tensor t = {.dtype = (int32_t)dtype, .rank = view->rank};
    t.data = (unsigned char *)root + view->offset * (int64_t)dtype_size(dtype);
    memcpy(t.dim, view->dim, sizeof t.dim);
    memcpy(t.stride, view->stride, sizeof t.stride);
    return t;
}

typedef union {
    float f32;
    int32_t i32;
    int64_t i64;
    uint8_t u8;
} Literal;

static gp_tensor literal_at(Literal *to, const Value *value, View view)
{
    if (value->dtype == F32)
        to->f32 = (float)value->literal;
    else if (value->dtype == I32)
        to->i32 = (int32_t)value->literal;
    else if (value->dtype == I64)
        to->i64 = (int64_t)value->literal;
    else
        to->u8 = (uint8_t)value->literal;
    view.offset = 0;
    memset(view.stride, 0, sizeof view.stride);
    return tensor_at(to, (Dtype)value->dtype, &view);
}

static void describe(const Graph *g, const Node *node, void *const *in, void *const *out,
                     gp_tensor *ins, gp_tensor *outs, Literal *literal)
{
    for (Id i = 0; i < node->uses; i++) {
        Use use = node_use(g, node, i);
        if (use.value == NONE)
            continue;
        const Value *value = &g->value.at[use.value];
        View view = use_view(g, use);
        ins[i] = value->kind == VALUE_LITERAL ? literal_at(&literal[i], value, view)
                                              : tensor_at(in[i], (Dtype)value->dtype, &view);
    }
    for (Id i = 0; i < node->values; i++) {
        const Value *value = &g->value.at[node_value(node, i)];
        View view = value_view(value);
        outs[i] = tensor_at(out[i], (Dtype)value->dtype, &view);
    }
}

static bool run_node(const Graph *g, Id id, void *const *in, void *const *out)
{
    static const gp_run run = {.seed = 1, .threads = 1};
    const Node *node = &g->node.at[id];
    const gp_kernel *kernel = runtime_kernel(node->op->name);
    if (!kernel || !kernel->run)
        return false;
    gp_tensor *ins = memory_take((node->uses + 1) * sizeof *ins), outs[MAX_OUTPUTS];
    Literal *literal = memory_take((node->uses + 1) * sizeof *literal);
    memset(ins, 0, (node->uses + 1) * sizeof *ins);
    memset(outs, 0, sizeof outs);
    describe(g, node, in, out, ins, outs, literal);
    gp_setting setting[MAX_ARGS] = {0};
    for (int i = 0; i < MAX_ARGS && node->op->args[i].name; i++) {
        const Attr *attr = &g->attr.at[node->attr + (Id)i];
        setting[i].number = attr->number;
        memcpy(setting[i].list, attr->list, sizeof setting[i].list);
    }
    gp_call call = {.in = ins,
                    .out = outs,
                    .ins = (int32_t)node->uses,
                    .outs = (int32_t)node->values,
                    .run = &run};
    size_t bytes = kernel->workspace ? kernel->workspace(&call, setting) : 0;
    call.work = bytes ? aligned_alloc(256, (bytes + 255) / 256 * 256) : NULL;
    if (bytes && !call.work)
        out_of_memory(bytes);
    bool good = kernel->run(&call, setting) == 0;
    free(call.work);
    free(literal);
    free(ins);
    return good;
}

OnnxImport *import_read(Arena *arena, Diag *diag, const char *path, const Options *o)
{
    OnnxOptions options = {.define = o->define.at,
                           .defines = o->define.count,
                           .bind = o->bind.at,
                           .binds = o->bind.count,
                           .run = run_node,
                           .quiet = o->quiet};
    return onnx_import(arena, diag, path, &options);
}

/* ---- Weights -------------------------------------------------------------------------------- */

/* The file says what it is, so that it never takes the place of trained parameters. */
static const char mark[] = "{\"__metadata__\":{\"gplan\":\"imported\"}";

typedef struct {
    const OnnxImport *import;
    Text header; /* with its length before it */
} Weights;

static void put_key(FILE *to, const char *name)
{
    fputs(",\"", to);
    for (; *name; name++) {
        if (*name == '"' || *name == '\\')
            fputc('\\', to);
        fputc(*name, to);
    }
    fputc('"', to);
}

const void *import_weights(Arena *arena, const OnnxImport *import)
{
    Weights *weights = ARENA_NEW(arena, Weights);
    char *text = NULL;
    size_t length = 0;
    uint64_t offset = 0;
    FILE *to = open_memstream(&text, &length);
    if (!to)
        out_of_memory(0);
    fprintf(to, "........%s", mark);
    for (size_t i = 0; i < import->weight.count; i++) {
        const OnnxWeight *w = &import->weight.at[i];
        uint64_t bytes = (uint64_t)w->count * dtype_size(w->dtype);
        put_key(to, w->name);
        fprintf(to, ":{\"dtype\":\"%s\",\"shape\":[", dtype_row(w->dtype)->id);
        for (int k = 0; k < w->rank; k++)
            fprintf(to, "%s%lld", k ? "," : "", (long long)w->dim[k]);
        fprintf(to, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)offset,
                (unsigned long long)(offset + bytes));
        offset += bytes;
    }
    fputc('}', to);
    for (long at = ftell(to); at % 8; at++)
        fputc(' ', to);
    if (fclose(to) != 0)
        out_of_memory(0);
    char *header = arena_copy(arena, text, length);
    for (int i = 0; i < 8; i++)
        header[i] = (char)((uint64_t)(length - 8) >> 8 * i);
    free(text);
    *weights = (Weights){import, {header, length}};
    return weights;
}

static bool write_weight(int file, const OnnxWeight *w)
{
    enum { PIECE = 1 << 14 };
    static unsigned char piece[PIECE * 8];
    size_t size = dtype_size(w->dtype);
    if (onnx_weight_is_plain(w))
        return gp_write_all(file, w->data, (size_t)w->count * size);
    for (int64_t i = 0; i < w->count; i += PIECE) {
        int64_t count = w->count - i < PIECE ? w->count - i : PIECE;
        onnx_weight_read(w, i, count, piece);
        if (!gp_write_all(file, piece, (size_t)count * size))
            return false;
    }
    return true;
}

bool import_stream(int file, const void *what)
{
    const Weights *weights = what;
    bool good = gp_write_all(file, weights->header.text, weights->header.length);
    for (size_t i = 0; good && i < weights->import->weight.count; i++)
        good = write_weight(file, &weights->import->weight.at[i]);
    return good;
}

bool import_may_replace(const char *path)
{
    return safetensors_may_replace(path, mark);
}
