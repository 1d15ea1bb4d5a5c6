/* What is known while importing: constants, and numbers that follow from sizes. Ops on known
 * operands are computed by the rows' own kernels; small integers, which may be expressions of free
 * dimensions, are followed one by one (follow.c). */
#include "frontend/onnx/import.h"

#include <math.h>
#include <string.h>

static int64_t count_of(const Tensor *tensor)
{
    int64_t count = 1;
    for (int i = 0; i < tensor->rank; i++)
        count *= tensor->dim[i];
    return count;
}

/* ---- Folding -------------------------------------------------------------------------------- */

enum { MAX_FOLDED = 1 << 24 }; /* elements of a tensor that is computed at import */

/* What a value of the scratch graph holds; NULL: not known. The graph's nodes are in order, so
 * what a value needs is computed before it, in a loop. */
static void *content(Import *m, Id id);

static bool compute(Import *m, Id id)
{
    const Graph *g = m->scratch[0].graph;
    const Node *node = &g->node.at[g->value.at[id].node];
    void **in = ARENA_ARRAY(m->arena, void *, node->uses + 1), *out[MAX_OUTPUTS] = {0};
    for (Id i = 0; i < node->uses; i++) {
        Id operand = node_use(g, node, i).value;
        if (operand == NONE || g->value.at[operand].kind == VALUE_LITERAL)
            continue;
        in[i] = content(m, operand);
        if (!in[i])
            return false;
    }
    for (Id i = 0; i < node->values; i++) {
        const Value *value = &g->value.at[node_value(node, i)];
        if (value_count(value) > MAX_FOLDED)
            return false;
        out[i] = arena_alloc(m->arena, value_bytes(value) + 64);
    }
    if (!m->options->run || !m->options->run(g, g->value.at[id].node, in, out))
        return false;
    for (Id i = 0; i < node->values; i++)
        m->content.at[node_value(node, i)] = out[i];
    return true;
}

static void *content(Import *m, Id id)
{
    const Graph *g = m->scratch[0].graph;
    const Value *value = &g->value.at[id];
    if (m->content.at[id] || !m->known_value.at[id])
        return m->content.at[id];
    if (m->declared_as.at[id]) {
        const OnnxTensor *data = m->declared.at[m->declared_as.at[id] - 1].tensor->data;
        if (!data || data->count > MAX_FOLDED)
            return NULL;
        unsigned char *bytes = arena_alloc(m->arena, value_bytes(value) + 64);
        onnx_convert(data, (Dtype)value->dtype, 0, data->count, bytes);
        return m->content.at[id] = bytes;
    }
    if (value->node == NONE)
        return NULL;
    Id last = value->node, first = last;
    while (first > 0 && last - first < 4096) /* operands first, so that nothing recurses far */
        first--;
    for (Id n = first; n < last; n++) {
        Id made = node_value(&g->node.at[n], 0);
        if (m->known_value.at[made] && !m->content.at[made] && g->node.at[n].phase == 0)
            compute(m, made);
    }
    compute(m, id);
    return m->content.at[id];
}

/* The elements of a view, in order. */
static OnnxTensor *read_view(Import *m, const Tensor *tensor, const unsigned char *from)
{
    static const int elems[DTYPES] = {[F32] = ELEM_FLOAT,
                                      [I32] = ELEM_INT32,
                                      [I64] = ELEM_INT64,
                                      [U8] = ELEM_UINT8,
                                      [BOOL] = ELEM_BOOL};
    const Graph *g = m->scratch[0].graph;
    const Binding *binding = frame_find(m->scratch[0].frame, tensor->expr->text);
    View view = use_view(g, binding->val.use);
    size_t size = dtype_size(tensor->dtype);
    OnnxTensor *data = ARENA_NEW(m->arena, OnnxTensor);
    int64_t count = view_count(&view), at[MAX_RANK] = {0};
    unsigned char *bytes = arena_alloc(m->arena, (size_t)count * size + 1);
    *data = (OnnxTensor){.name = tensor->name,
                         .elem = elems[tensor->dtype],
                         .rank = view.rank,
                         .count = count,
                         .data = bytes,
                         .owned = true};
    memcpy(data->dim, view.dim, sizeof view.dim);
    for (int64_t i = 0; i < count; i++) {
        int64_t place = view.offset;
        for (int k = 0; k < view.rank; k++)
            place += at[k] * view.stride[k];
        memcpy(bytes + (size_t)i * size, from + (size_t)place * size, size);
        for (int k = view.rank - 1; k >= 0 && ++at[k] == view.dim[k]; k--)
            at[k] = 0;
    }
    return elems[tensor->dtype] ? data : NULL;
}

OnnxTensor *folded(Import *m, const Tensor *tensor)
{
    if (!tensor->expr || tensor->value == NONE || !m->known_value.at[tensor->value] ||
        tensor->expr->kind != EXPR_NAME)
        return NULL;
    void *bytes = content(m, tensor->value);
    return bytes ? read_view(m, tensor, bytes) : NULL;
}

/* ---- Numbers -------------------------------------------------------------------------------- */

const Number *numbers(Import *m, const Tensor *tensor)
{
    Tensor *own = (Tensor *)(uintptr_t)tensor;
    if (own->number)
        return own->number;
    if (!own->data)
        own->data = folded(m, tensor);
    if (!own->data || count_of(tensor) > MAX_NUMBERS)
        return NULL;
    Number *number = ARENA_ARRAY(m->arena, Number, (size_t)own->data->count + 1);
    for (int64_t i = 0; i < own->data->count; i++) {
        number[i].real = onnx_number(own->data, i);
        if (!elem_is_float(own->data->elem))
            number[i].integer = onnx_integer(own->data, i);
        else /* a size, in a file that has sizes as reals */
            number[i].integer = whole_number(number[i].real);
    }
    return own->number = number;
}
