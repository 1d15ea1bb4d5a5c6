/* Weights as data of the emitted file, for machines without files: they are read where they lie, as
 * those of --params external would be. String literals compile fastest by far; each row is one,
 * since a compiler need not take more than 4095 characters. */
#include "codegen/internal.h"
#include "frontend/safetensors.h"

#include <string.h>

enum { ROW = 2048, LINE = 24, ALIGN = 64 };

struct Embedded {
    const char **data; /* of the tensors that a parameter file holds, in their order */
};

/* ---- Reading a safetensors file -------------------------------------------------------------- */

static const char *tensor_text(Arena *arena, const Graph *g, const ApiTensor *t)
{
    return arena_printf(arena, "%s%s", dtype_row((Dtype)g->value.at[t->value].dtype)->id,
                        shape_text(arena, DTYPES, t->view.rank, t->view.dim));
}

static uint64_t tensor_bytes(const Graph *g, const ApiTensor *t)
{
    return (uint64_t)view_count(&t->view) * dtype_size((Dtype)g->value.at[t->value].dtype);
}

/* The bytes of a tensor: the file's or, where it has none, those that the model gives. */
static const char *find_data(const Graph *g, const ApiTensor *t, const Safetensors *file,
                             const char **fault)
{
    Arena *arena = g->arena;
    const StoredTensor *stored = safetensors_find(file, t->name);
    const char *want = tensor_text(arena, g, t);
    if (!stored && g->value.at[t->value].init.kind == INIT_LIST)
        return constant_bytes(arena, &g->value.at[t->value]);
    if (!stored)
        *fault =
            arena_printf(arena, "it has no tensor %s, which the model wants as %s", t->name, want);
    else if (strcmp(stored_text(arena, stored), want) != 0)
        *fault = arena_printf(arena, "%s is %s, but the model wants %s", t->name,
                              stored_text(arena, stored), want);
    return *fault ? NULL : stored->data;
}

const Embedded *embedded_read(const Plan *plan, const EmitOptions *options, Text text,
                              const char **fault)
{
    Arena *arena = plan->graph->arena;
    const Api *api = api_make(plan, options);
    Embedded *embedded = ARENA_NEW(arena, Embedded);
    embedded->data = ARENA_ARRAY(arena, const char *, api->saved_end - api->saved_begin + 1);
    const Safetensors *file = safetensors_read(arena, text, fault);
    for (size_t i = api->saved_begin; !*fault && i < api->saved_end; i++)
        embedded->data[i - api->saved_begin] = find_data(plan->graph, &api->tensor[i], file, fault);
    return *fault ? NULL : embedded;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static uint64_t padded(uint64_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

uint64_t embedded_rows(const Api *api)
{
    uint64_t bytes = 0;
    for (size_t i = api->saved_begin; api->options->embedded && i < api->saved_end; i++)
        bytes += padded(tensor_bytes(api->plan->graph, &api->tensor[i]));
    return (bytes + ROW - 1) / ROW;
}

/* Bytes on their way into rows of literals. */
typedef struct {
    Out *o;
    uint64_t done;
    char line[LINE * 4 + 1]; /* \ooo each, at most */
    size_t length;
    bool octal; /* the last one is an escape that a digit would lengthen */
} Rows;

static void end_line(Rows *r)
{
    out_text(r->o, "    \"", 5);
    out_text(r->o, r->line, r->length);
    out_text(r->o, r->done % ROW == 0 ? "\",\n" : "\"\n", r->done % ROW == 0 ? 3 : 2);
    r->length = 0;
    r->octal = false;
}

static void put_byte(Rows *r, unsigned char byte)
{
    char *at = r->line + r->length;
    bool plain = byte >= ' ' && byte < 127 && !strchr("\"\\?", byte);
    if (plain && !(r->octal && byte >= '0' && byte <= '7')) {
        *at++ = (char)byte;
    } else {
        *at++ = '\\';
        if (byte >= 0100)
            *at++ = (char)('0' + (byte >> 6));
        if (byte >= 010)
            *at++ = (char)('0' + (byte >> 3 & 7));
        *at++ = (char)('0' + (byte & 7));
    }
    r->octal = r->line[r->length] == '\\' && at - (r->line + r->length) < 4;
    r->length = (size_t)(at - r->line);
    r->done++;
    if (r->length > sizeof r->line - 5 || r->done % ROW == 0)
        end_line(r);
}

void embedded_write(const Api *api, Out *o)
{
    const Graph *g = api->plan->graph;
    Rows r = {.o = o};
    out(o,
        "\n/* Parameters, constants and state, each from a multiple of %d bytes on. A row is full, "
        "without a\n"
        " * 0 after it. */\n"
        "#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 15\n"
        "#pragma GCC diagnostic ignored \"-Wunterminated-string-initialization\"\n"
        "#elif defined(__clang_major__) && __clang_major__ >= 20\n"
        "#pragma clang diagnostic ignored \"-Wunterminated-string-initialization\"\n"
        "#endif\n",
        ALIGN);
    out(o, "static const _Alignas(%d) unsigned char gp_embedded[%llu][%d] = {\n", ALIGN,
        (unsigned long long)embedded_rows(api), ROW);
    for (size_t i = api->saved_begin; i < api->saved_end; i++) {
        uint64_t bytes = tensor_bytes(g, &api->tensor[i]);
        const char *data = api->options->embedded->data[i - api->saved_begin];
        for (uint64_t k = 0; k < bytes; k++)
            put_byte(&r, (unsigned char)data[k]);
        for (uint64_t k = bytes; k < padded(bytes) && i + 1 < api->saved_end; k++)
            put_byte(&r, 0);
    }
    if (r.length > 0)
        end_line(&r);
    out(o, "};\n");
}
