/* Ops that the model defines itself: a call is its nodes, with names of their own.
 *
 * A name within a function is that of its own operands or results, never one of the graph around
 * the call. Attributes that the function passes on are those of the call, or what the function
 * says. */
#include "frontend/onnx/import.h"

#include <string.h>

const OnnxFunction *find_function(const Import *m, const OnnxNode *node)
{
    for (size_t i = 0; i < m->model.function.count; i++) {
        const OnnxFunction *f = &m->model.function.at[i];
        if (strcmp(f->name, node->op) == 0 && strcmp(f->domain, node->domain) == 0 &&
            strcmp(f->overload, node->overload) == 0)
            return f;
    }
    return NULL;
}

static const OnnxAttribute *attribute_of(const OnnxFunction *f, const OnnxNode *call,
                                         const char *name)
{
    for (size_t i = 0; i < call->attribute.count; i++)
        if (strcmp(call->attribute.at[i].name, name) == 0)
            return &call->attribute.at[i];
    for (size_t i = 0; i < f->attribute.count; i++)
        if (strcmp(f->attribute.at[i].name, name) == 0)
            return &f->attribute.at[i];
    return NULL;
}

/* An operand that the call leaves out is left out by the nodes that would read it. */
static bool is_left_out(const OnnxFunction *f, const OnnxNode *call, const char *name)
{
    for (size_t i = 0; i < f->input.count; i++)
        if (strcmp(f->input.at[i], name) == 0)
            return i >= call->input.count || !*call->input.at[i];
    return false;
}

/* A node as it is in this call. */
static OnnxNode in_call(Import *m, const OnnxFunction *f, const OnnxNode *call, const OnnxNode *at)
{
    OnnxNode node = *at;
    node.input.at = NULL;
    node.input.count = node.input.capacity = 0;
    for (size_t i = 0; i < at->input.count; i++)
        ARRAY_PUSH(m->arena, &node.input,
                   is_left_out(f, call, at->input.at[i]) ? "" : at->input.at[i]);
    node.attribute.at = NULL;
    node.attribute.count = node.attribute.capacity = 0;
    for (size_t i = 0; i < at->attribute.count; i++) {
        OnnxAttribute a = at->attribute.at[i];
        if (a.reference) {
            const OnnxAttribute *given = attribute_of(f, call, a.reference);
            if (!given) /* unknown */
                continue;
            const char *name = a.name;
            a = *given;
            a.name = name;
        }
        ARRAY_PUSH(m->arena, &node.attribute, a);
    }
    return node;
}

static bool bind_inputs(Import *m, const OnnxFunction *f, NameTable *outer, const OnnxNode *call)
{
    if (call->input.count > f->input.count || call->output.count > f->output.count)
        return refuse(m, "the function has %zu operands and %zu results", f->input.count,
                      f->output.count);
    for (size_t i = 0; i < call->input.count; i++) {
        uint32_t at = *call->input.at[i] ? names_find(outer, call->input.at[i]) : UINT32_MAX;
        if (at != UINT32_MAX)
            bind_tensor(m, f->input.at[i], m->tensor.at[at]);
    }
    return true;
}

bool call_function(Import *m, const OnnxFunction *f)
{
    const OnnxNode *call = m->node;
    NameTable *outer = m->names;
    OnnxOpsets opset = m->model.opset;
    OnnxGraph body = {.name = f->name};
    if (m->depth >= MAX_GRAPHS)
        return refuse(m, "functions call each other more than %d deep", MAX_GRAPHS);
    for (size_t i = 0; i < f->node.count; i++)
        ARRAY_PUSH(m->arena, &body.node, in_call(m, f, call, &f->node.at[i]));
    m->names = names_new(m->arena);
    if (f->opset.count)
        m->model.opset = f->opset;
    m->depth++;
    bool good = bind_inputs(m, f, outer, call) && translate_nodes(m, &body);
    m->depth--;
    NameTable *inner = m->names;
    m->model.opset = opset;
    m->names = outer;
    m->node = call;
    for (size_t i = 0; good && i < call->output.count; i++) {
        uint32_t at = names_find(inner, f->output.at[i]);
        if (*call->output.at[i] && at == UINT32_MAX)
            return refuse(m, "\"%s\", a result of the function, is made by nothing",
                          f->output.at[i]);
        if (!result_same(m, (int)i, at == UINT32_MAX ? NULL : m->tensor.at[at]))
            return false;
    }
    return good;
}
