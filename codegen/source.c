/* The emitted file: where everything lies, the runtime it uses, a function for each kind of
 * cluster, the program, and the functions of its header. */
#include "codegen/internal.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN = 40 }; /* activations in the table at the top */

static int by_size(const void *a, const void *b)
{
    const Buffer *m = *(const Buffer *const *)a, *n = *(const Buffer *const *)b;
    if (m->bytes != n->bytes)
        return m->bytes > n->bytes ? -1 : 1;
    return (m > n) - (m < n);
}

static int by_offset(const void *a, const void *b)
{
    const Buffer *m = *(const Buffer *const *)a, *n = *(const Buffer *const *)b;
    if (m->offset != n->offset)
        return m->offset < n->offset ? -1 : 1;
    if (m->birth != n->birth)
        return m->birth < n->birth ? -1 : 1;
    return (m > n) - (m < n);
}

static void write_row(const Plan *plan, const Buffer *b, Out *o)
{
    const Graph *g = plan->graph;
    out(o, " * %12llu %12llu  ", (unsigned long long)b->offset, (unsigned long long)b->bytes);
    if (b->value == NONE) {
        out(o, b->kind == BUFFER_STATE ? "(state of the run)" : "(workspace)");
    } else {
        const Value *value = &g->value.at[b->value];
        out_comment(o, value->name);
        out(o, " %s", shape_text(g->arena, (Dtype)value->dtype, value->rank, value->dim));
    }
    if (b->kind >= BUFFER_OUTPUT)
        out(o, ", ops %u to %u", b->birth, b->death - 1);
    out(o, "\n");
}

/* What is persistent, then the largest of the rest, in the order of their places. */
static void write_offsets(const Plan *plan, Out *o)
{
    Arena *arena = plan->graph->arena;
    const Buffer **row = ARENA_ARRAY(arena, const Buffer *, plan->buffers + 1);
    out(o, " *\n *       offset        bytes  tensor\n");
    for (int pass = 0; pass < 2; pass++) {
        size_t count = 0;
        for (Id i = 0; i < plan->buffers; i++) {
            const Buffer *b = &plan->buffer[i];
            if (b->root == i && b->space == SPACE_ARENA && (b->kind > BUFFER_INPUT) == pass)
                row[count++] = b;
        }
        size_t shown = count < SHOWN ? count : SHOWN;
        qsort(row, count, sizeof *row, by_size);
        qsort(row, shown, sizeof *row, by_offset);
        for (size_t i = 0; i < shown; i++)
            write_row(plan, row[i], o);
        if (shown < count)
            out(o, " * and %zu smaller ones%s\n", count - shown,
                pass ? "" : " that stay: see the table of tensors");
    }
}

static void write_top(const Emission *e, Out *o)
{
    const Plan *plan = e->plan;
    const Graph *g = plan->graph;
    out(o, "/* The model ");
    out_comment(o, g->name);
    out(o, ", made by gplan from ");
    out_comment(o, g->source ? g->source->file : "a graph");
    out(o, ". The functions to call are in ");
    out_comment(o, e->api->options->header);
    out(o, ".\n *\n%s", e->dialect->compile);
    out(o, " *\n * The arena: %llu bytes, of which %llu hold parameters and inputs.\n",
        (unsigned long long)plan->arena, (unsigned long long)plan->persistent);
    write_offsets(plan, o);
    out(o, " */\n");
}

Text emit_source(const Plan *plan, const EmitOptions *options)
{
    Arena *arena = plan->graph->arena;
    Emission e = {.api = api_make(plan, options), .plan = plan, .arena = arena};
    e.dialect = e.api->dialect;
    for (const char *const *file = e.dialect->needs; *file; file++)
        emission_need(&e, *file);
    if (e.api->saved_begin < e.api->saved_end)
        emission_need(&e, "c/init.h");
    if (e.api->trains)
        emission_need(&e, "c/schedule.h");
    calls_make(&e);
    Out rest = out_new(arena);
    out(&rest, "%s/* ---- The model: one function for each kind of step ---- */\n\n",
        e.dialect->checks);
    functions_write(&e, &rest);
    frame_before(&e, &rest);
    program_write(&e, &rest);
    frame_after(&e, &rest);
    Out o = out_new(arena);
    write_top(&e, &o);
    out(&o, "%s#include ", e.dialect->includes);
    out_string(&o, options->header);
    out(&o, "\n\n%s", e.dialect->clocks);
    inline_files(plan->graph, e.file.at, e.file.count, rest.at, &o);
    out_text(&o, rest.at, rest.length);
    return out_done(&o);
}
