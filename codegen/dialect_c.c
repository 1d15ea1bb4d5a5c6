/* What C writes its own way: a call of a kernel, loops over threads. */
#include "codegen/internal.h"
#include "codegen/loop.h"

#include <string.h>

/* ---- Functions of clusters ------------------------------------------------------------------ */

static void write_call(const Emission *e, const Occurrence *o, const Node *node,
                       const char *epilogue, Out *to)
{
    static const KernelSyntax syntax = {.open = "GP_ATTR(gp_%s_attr\n",
                                        .before = ".",
                                        .between = "\n",
                                        .close = ")",
                                        .lists = true};
    Items item = {0};
    ARRAY_PUSH(e->arena, &item, ".run = run");
    if (o->workspace != NONE)
        ARRAY_PUSH(e->arena, &item, ".work = work");
    if (node->op->flags & OP_RANDOM)
        ARRAY_PUSH(e->arena, &item, ".key = key");
    if (epilogue)
        ARRAY_PUSH(e->arena, &item, epilogue);
    if (cluster_keeps_aside(e->plan->graph, e->plan->clusters, &e->plan->clusters->at[o->cluster]))
        ARRAY_PUSH(e->arena, &item, ".aside = 1");
    Out settings = out_new(e->arena);
    kernel_settings(e->plan->graph, node, &syntax, &settings);
    for (const char *at = settings.at; at && *at;
         at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
        ARRAY_PUSH(e->arena, &item, arena_copy(e->arena, at, strcspn(at, "\n")));
    const char *macro = node->uses == 0              ? "GP_CALL_NO_IN"
                        : access_is_part(e->plan, o) ? "GP_CALL_PART"
                                                     : "GP_CALL";
    out_list(to, arena_printf(e->arena, "    return %s(gp_%s, ", macro, node->op->name), &item,
             ");\n", 8);
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
