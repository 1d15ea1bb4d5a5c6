/* What C writes its own way: a call of a kernel, loops over threads. */
#include "codegen/internal.h"
#include "codegen/loop.h"

/* ---- Functions of clusters ------------------------------------------------------------------ */

static void write_call(const Emission *e, const Occurrence *o, const Node *node,
                       const char *epilogue, Out *to)
{
    static const KernelSyntax settings = {.open = "        .attr = &(const gp_%s_attr){",
                                          .before = ".",
                                          .between = ", ",
                                          .close = "},\n",
                                          .lists = true};
    out(to, "    return gp_%s(&(const gp_call){\n", node->op->name);
    if (node->uses)
        out(to, "        .in = in, .ins = %u, ", node->uses);
    out(to, "%s.out = out, .outs = %u, .run = run,\n", node->uses ? "" : "        ", node->values);
    if (o->workspace != NONE)
        out(to, "        .work = work,\n");
    if (node->op->flags & OP_RANDOM)
        out(to, "        .key = key,\n");
    if (epilogue)
        out(to, "        .epilogue = %s, .epilogue_args = args,\n", epilogue);
    kernel_settings(e->plan->graph, node, &settings, to);
    out(to, "    });\n");
}

static const char *const none[] = {NULL};

const Dialect dialect_c = {
    .file = "net.c",
    .kernel = "c/%s.h",
    .words = none,
    .own = none,
    .nest = loop_nest_c,
    .call = write_call,
};
