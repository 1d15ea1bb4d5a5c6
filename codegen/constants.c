/* Constants that are too long for the C text: a safetensors file beside it. */
#include "codegen/internal.h"
#include "frontend/safetensors.h"
#include "runtime/c/stored.h"

#include <string.h>

enum { MOST_IN_TEXT = 64 }; /* numbers of a list that the C text holds */

/* The file says what it is, so that it never takes the place of trained parameters. */
static const char mark[] = "{\"__metadata__\":{\"gplan\":\"constants\"}";

bool constant_is_long(const Api *api, size_t tensor)
{
    const Init *init = &api->plan->graph->value.at[api->tensor[tensor].value].init;
    return init->kind == INIT_LIST && init->count > MOST_IN_TEXT;
}

size_t constants_count(const Api *api)
{
    size_t count = 0;
    if (api->options->embedded)
        return 0;
    for (size_t i = api->saved_begin; i < api->saved_end; i++)
        count += constant_is_long(api, i);
    return count;
}

const char *constants_name(const Api *api)
{
    const char *header = api->options->header;
    return arena_printf(api->plan->graph->arena, "%.*s.safetensors", (int)strlen(header) - 2,
                        header);
}

/* The lowest `bytes` bytes, lowest first. */
static void put_bits(Out *o, uint64_t bits, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        out_text(o, &(char){(char)(bits >> 8 * i)}, 1);
}

double constant_number(Dtype dtype, double number)
{
    return dtype == F16 ? gp_to_f16(number) : dtype == BF16 ? gp_to_bf16(number) : number;
}

static void put_number(Out *o, Dtype dtype, double number)
{
    if (dtype == F64) {
        uint64_t bits;
        memcpy(&bits, &number, sizeof bits);
        put_bits(o, bits, sizeof bits);
    } else if (dtype == F32) {
        float real = (float)number;
        uint32_t bits;
        memcpy(&bits, &real, sizeof bits);
        put_bits(o, bits, sizeof bits);
    } else {
        put_bits(o, (uint64_t)(int64_t)constant_number(dtype, number), dtype_size(dtype));
    }
}

const char *constant_bytes(Arena *arena, const Value *value)
{
    Out o = out_new(arena);
    for (size_t k = 0; k < value->init.count; k++)
        put_number(&o, (Dtype)value->dtype, value->init.list[k]);
    return o.at;
}

static void put_entry(const Api *api, Out *o, const ApiTensor *t, uint64_t offset, uint64_t bytes)
{
    out(o, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", t->name,
        dtype_row((Dtype)api->plan->graph->value.at[t->value].dtype)->id);
    for (int d = 0; d < t->view.rank; d++)
        out(o, "%s%lld", d ? "," : "", (long long)t->view.dim[d]);
    out(o, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)offset,
        (unsigned long long)(offset + bytes));
}

Text emit_constants(const Plan *plan, const EmitOptions *options)
{
    const Graph *g = plan->graph;
    Api *api = api_make(plan, options);
    Out header = out_new(g->arena), data = out_new(g->arena), o = out_new(g->arena);
    if (constants_count(api) == 0)
        return (Text){"", 0};
    out(&header, "%s", mark);
    for (size_t i = api->saved_begin; i < api->saved_end; i++) {
        const Value *value = &g->value.at[api->tensor[i].value];
        size_t offset = data.length;
        for (size_t k = 0; constant_is_long(api, i) && k < value->init.count; k++)
            put_number(&data, (Dtype)value->dtype, value->init.list[k]);
        if (data.length > offset)
            put_entry(api, &header, &api->tensor[i], offset, data.length - offset);
    }
    out(&header, "}");
    while (header.length % 8)
        out(&header, " ");
    put_bits(&o, header.length, 8);
    out_text(&o, header.at, header.length);
    out_text(&o, data.at, data.length);
    return out_done(&o);
}

bool constants_may_replace(const char *path)
{
    return safetensors_may_replace(path, mark);
}
