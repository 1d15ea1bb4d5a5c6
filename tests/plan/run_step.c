#include "tests/plan/run_step.h"

#include "codegen/internal.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void set_number(Number *to, const Value *literal)
{
    if (literal->dtype == F32)
        to->f32 = (float)literal->literal;
    else if (literal->dtype == I32)
        to->i32 = (int32_t)literal->literal;
    else if (literal->dtype == I64)
        to->i64 = (int64_t)literal->literal;
    else
        to->u8 = (uint8_t)literal->literal;
}

gp_tensor tensor_at(void *root, Dtype dtype, const View *view)
{
    gp_tensor t = {.dtype = (int32_t)dtype, .rank = view->rank};
    if (root)
        t.data = (unsigned char *)root + view->offset * (int64_t)dtype_size(dtype);
    memcpy(t.dim, view->dim, sizeof t.dim);
    memcpy(t.stride, view->stride, sizeof t.stride);
    return t;
}

Step step_new(const Graph *g, Id node, const gp_run *run)
{
    Step s = {.g = g, .node = &g->node.at[node], .run = run};
    s.in = calloc(s.node->uses + 1, sizeof *s.in);
    s.number = calloc(s.node->uses + 1, sizeof *s.number);
    for (int i = 0; i < MAX_ARGS && s.node->op->args[i].name; i++) {
        const Attr *attr = &g->attr.at[s.node->attr + (Id)i];
        s.setting[i].number = attr->number;
        memcpy(s.setting[i].list, attr->list, sizeof s.setting[i].list);
    }
    for (Id i = 0; i < s.node->uses; i++) {
        Use use = node_use(g, s.node, i);
        if (use.value == NONE || g->value.at[use.value].kind != VALUE_LITERAL)
            continue;
        const Value *value = &g->value.at[use.value];
        View view = use_view(g, use);
        view.offset = 0;
        memset(view.stride, 0, sizeof view.stride);
        set_number(&s.number[i], value);
        s.in[i] = tensor_at(&s.number[i], (Dtype)value->dtype, &view);
    }
    return s;
}

void step_free(Step *s)
{
    free(s->in);
    free(s->number);
}

gp_call step_call(const Step *s)
{
    return (gp_call){.in = s->in,
                     .out = s->out,
                     .ins = (int32_t)s->node->uses,
                     .outs = (int32_t)s->node->values,
                     .key = key_of(s->node->stream),
                     .run = s->run};
}

int step_run(const Step *s, void *work)
{
    const gp_kernel *kernel = runtime_kernel(s->node->op->name);
    assert(kernel);
    gp_call call = step_call(s);
    call.work = work;
    return kernel->run(&call, s->setting);
}

bool same_element(Dtype dtype, const void *a, const void *b)
{
    if (memcmp(a, b, dtype_size(dtype)) == 0)
        return true;
    return dtype == F32 && isnan(*(const float *)a) && isnan(*(const float *)b);
}
