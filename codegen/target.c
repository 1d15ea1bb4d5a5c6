/* The targets: one table, and what their kernels ask for. */
#include "codegen/internal.h"
#include "runtime/cuda/state.h"
#include "runtime/runtime.h"

#include <string.h>

gp_tensor tensor_describe(Dtype dtype, const View *view)
{
    gp_tensor t = {.dtype = (int32_t)dtype, .rank = view->rank};
    memcpy(t.dim, view->dim, sizeof t.dim);
    memcpy(t.stride, view->stride, sizeof t.stride);
    return t;
}

#define SAME(id, ...) &&(int)id == GP_##id
_Static_assert((int)MAX_RANK == GP_MAX_RANK DTYPE_ROWS(SAME) && (int)DTYPES == GP_F64 + 1,
               "the frontend and the runtime number dtypes alike");
#undef SAME

/* What a kernel wants for this node. */
static uint64_t ask(const gp_kernel *kernel, const Target *target, const Graph *g, const Node *node,
                    bool aside)
{
    if (!kernel || !kernel->workspace)
        return 0;
    gp_tensor *in = ARENA_ARRAY(g->arena, gp_tensor, node->uses + 1);
    gp_tensor out[MAX_OUTPUTS];
    gp_setting setting[MAX_ARGS] = {0};
    for (Id i = 0; i < node->uses; i++) {
        Use use = node_use(g, node, i);
        if (use.value == NONE)
            continue;
        View view = use_view(g, use);
        in[i] = tensor_describe((Dtype)g->value.at[use.value].dtype, &view);
    }
    for (Id i = 0; i < node->values; i++) {
        const Value *value = &g->value.at[node_value(node, i)];
        View view = value_view(value);
        out[i] = tensor_describe((Dtype)value->dtype, &view);
    }
    for (int i = 0; i < MAX_ARGS && node->op->args[i].name; i++) {
        const Attr *attr = &g->attr.at[node->attr + (Id)i];
        setting[i].number = attr->number;
        memcpy(setting[i].list, attr->list, sizeof setting[i].list);
    }
    gp_run run = {.threads = (int32_t)target->threads};
    gp_call call = {.in = in,
                    .out = out,
                    .ins = (int32_t)node->uses,
                    .outs = (int32_t)node->values,
                    .aside = aside,
                    .run = &run};
    return kernel->workspace(&call, setting);
}

static const Node *kernel_node(const Graph *g, const Clusters *clusters, Id id)
{
    const Cluster *c = &clusters->at[id];
    const Node *node = &g->node.at[clusters->node[c->node]];
    return node->op->flags & OP_ELEMENTWISE ? NULL : node;
}

static uint64_t workspace_c(const Target *target, const Graph *g, const Clusters *clusters, Id id)
{
    const Node *node = kernel_node(g, clusters, id);
    return node ? ask(runtime_kernel(node->op->name), target, g, node,
                      cluster_keeps_aside(g, clusters, &clusters->at[id]))
                : 0;
}

static uint64_t workspace_cuda(const Target *target, const Graph *g, const Clusters *clusters,
                               Id id)
{
    const Node *node = kernel_node(g, clusters, id);
    return node ? ask(runtime_cuda_work(node->op->name), target, g, node, false) : 0;
}

/* Whether the file of a kernel defines it. */
static bool has_kernel(const char *format, const OpRow *op)
{
    char file[128], kernel[128];
    if (!op_has_kernel(op))
        return true;
    snprintf(file, sizeof file, format, op->kernel ? op->kernel : op->name);
    snprintf(kernel, sizeof kernel, "GP_KERNEL(%s)", op->name);
    const char *text = runtime_text(file);
    return text && strstr(text, kernel);
}

static bool has_op_c(const OpRow *op)
{
    return has_kernel(dialect_c.kernel, op);
}

static bool has_op_cuda(const OpRow *op)
{
    return has_kernel(dialect_cuda.kernel, op);
}

static bool has_half_cuda(const OpRow *op)
{
    const gp_kernel *kernel = runtime_cuda_work(op->name);
    return kernel && kernel->half;
}

enum { ALL_DTYPES = (1 << DTYPES) - 1 };

/* ---- The table ------------------------------------------------------------------------------ */

/* clang-format off */
const TargetRow target_table[] = {
    /* 8 threads are what most machines have use for; a constant, so that all make the same plan */
    {.plan = {.name = "c", .align = 64, .threads = 8, .epilogues = true, .dtypes = ALL_DTYPES,
              .has_op = has_op_c, .workspace = workspace_c,
              .ring = data_ring, .link = LINK_POLLED},
     .extension = "c", .threads = true, .dialect = &dialect_c},
    /* 256 bytes are what cudaMalloc itself aligns to */
    {.plan = {.name = "cuda", .align = 256, .threads = 1, .dtypes = ALL_DTYPES, .has_op = has_op_cuda,
              .has_half = has_half_cuda,
              .state = sizeof(gp_state), .workspace = workspace_cuda, .ring = data_ring,
              .readers = 8, .stages = true, .link = LINK_STREAMED},
     .extension = "cu", .dialect = &dialect_cuda},
};
/* clang-format on */
const size_t target_count = sizeof target_table / sizeof *target_table;

const TargetRow *target_find(const char *name)
{
    for (size_t i = 0; i < target_count; i++)
        if (strcmp(target_table[i].plan.name, name) == 0)
            return &target_table[i];
    return NULL;
}

const TargetRow *target_of_extension(const char *extension)
{
    for (size_t i = 0; i < target_count; i++)
        if (strcmp(target_table[i].extension, extension) == 0)
            return &target_table[i];
    return NULL;
}

Target target_make(const TargetRow *row, uint32_t threads)
{
    Target target = row->plan;
    target.threads = row->threads && threads ? threads : target.threads;
    return target;
}

uint64_t plan_workspace(const Plan *plan, const Target *target, uint32_t threads)
{
    Target other = *target;
    uint64_t most = 0;
    other.threads = threads;
    for (Id i = 0; i < plan->clusters->count; i++) {
        uint64_t bytes = target->workspace(&other, plan->graph, plan->clusters, i);
        most = bytes > most ? bytes : most;
    }
    return most;
}
