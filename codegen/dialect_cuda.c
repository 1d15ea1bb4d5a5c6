/* What CUDA writes its own way: a call of a kernel, launches instead of loops. */
#include "codegen/internal.h"
#include "codegen/loop.h"

#include <assert.h>

/* ---- Functions of clusters ------------------------------------------------------------------ */

static void write_call(const Emission *e, const Occurrence *o, const Node *node,
                       const char *epilogue, Out *to)
{
    assert(!epilogue); /* its kernels run nothing after them: see target.c */
    (void)epilogue;
    static const KernelSyntax settings = {.open = "    gp_%s_attr attr = {};\n",
                                          .before = "    attr.",
                                          .between = ";\n",
                                          .close = ";\n    call.attr = &attr;\n"};
    out(to, "    gp_call call = {};\n");
    if (node->uses)
        out(to, "    call.in = in;\n    call.ins = %u;\n", node->uses);
    out(to, "    call.out = out;\n    call.outs = %u;\n    call.run = run;\n", node->values);
    if (o->workspace != NONE)
        out(to, "    call.work = work;\n");
    if (node->op->flags & OP_RANDOM)
        out(to, "    call.key = key;\n");
    kernel_settings(e->plan->graph, node, &settings, to);
    out(to, "    return gp_%s(&call);\n", node->op->name);
}

static const char *const words[] = {"create", "free", "sync", "capture", "replay", NULL};
static const char *const own[] = {"checked",
                                  "op_begin",
                                  "device_failed",
                                  "WAIT",
                                  "tell",
                                  "finish",
                                  "stepped",
                                  "put_forward",
                                  "put_eval",
                                  "put_step",
                                  "state_of",
                                  "device_of",
                                  "clock_op",
                                  "use_stream",
                                  "capture_on",
                                  "op_failed",
                                  "place",
                                  "dim3",
                                  "char2",
                                  "char4",
                                  "int2",
                                  "int4",
                                  "float2",
                                  "float4",
                                  "threadIdx",
                                  "blockIdx",
                                  "blockDim",
                                  "gridDim",
                                  "warpSize",
                                  "CHECK",
                                  "START",
                                  "STATE",
                                  "STREAM",
                                  "HERE",
                                  "here",
                                  "await",
                                  "share",
                                  "heard",
                                  "now",
                                  "link_of",
                                  "give_up",
                                  "LINK",
                                  "MOVES",
                                  "link_failed",
                                  "link_begin",
                                  "link_end",
                                  "rank_failed",
                                  "is_connected",
                                  "nccl_checked",
                                  "total_loss",
                                  "same_program",
                                  "COMMUNICATOR",
                                  "initialize_model",
                                  NULL};

const Dialect dialect_cuda = {
    .file = "net.cu",
    .kernel = "cuda/%s.cuh",
    .words = words,
    .own = own,
    .set = "%s_set_%s",
    .get = "%s_get_%s",
    .device = true,
    .counts = true,
    .nest = loop_nest_cuda,
    .launch = loop_launch_cuda,
    .call = write_call,
};
