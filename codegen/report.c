/* A page about a plan for the terminal: how much, where the peak is, what is live there. */
#include "codegen/internal.h"

#include <stdlib.h>
#include <string.h>

enum { TOP = 10 };

typedef struct {
    const Plan *plan;
    const Graph *g;
    Out o;
    const char *bold, *dim, *plain;
} Report;

static void line(Report *r, const char *what, uint64_t bytes, const char *note)
{
    out(&r->o, "  %-22s %12s  %s%s%s\n", what, bytes_text(r->g->arena, bytes), r->dim, note,
        r->plain);
}

static const char *percent(Report *r, uint64_t part, uint64_t whole, const char *of)
{
    return whole
               ? arena_printf(r->g->arena, "%.1f%% of %s", 100.0 * (double)part / (double)whole, of)
               : "";
}

static void write_sizes(Report *r, uint64_t budget)
{
    const Plan *plan = r->plan;
    if (budget)
        line(r, "budget", budget, "");
    line(r, "arena", plan->arena,
         budget ? percent(r, plan->arena, budget, "the budget") : "all of it, planned");
    line(r, "lives all the time", plan->persistent, "parameters, state and inputs");
    line(r, "peak of live bytes", plan->peak, percent(r, plan->peak, plan->arena, "the arena"));
    line(r, "packing bound", plan->bound, "no packing of these lifetimes is smaller");
    line(r, "floor", plan->floor, "no order of these steps needs less");
}

static void write_kinds(Report *r)
{
    static const char *const name[BUFFER_KINDS] = {
        [BUFFER_PARAM] = "parameters",       [BUFFER_STATE] = "state",
        [BUFFER_INPUT] = "inputs",           [BUFFER_OUTPUT] = "outputs",
        [BUFFER_ACTIVATION] = "activations", [BUFFER_WORKSPACE] = "workspace",
    };
    uint64_t bytes[BUFFER_KINDS] = {0}, count[BUFFER_KINDS] = {0};
    for (Id i = 0; i < r->plan->buffers; i++) {
        const Buffer *b = &r->plan->buffer[i];
        if (b->root == i && !b->external) {
            bytes[b->kind] += b->bytes;
            count[b->kind]++;
        }
    }
    out(&r->o, "\n%sBytes by kind%s, were each to have its own\n", r->bold, r->plain);
    for (int k = 0; k < BUFFER_KINDS; k++)
        if (count[k])
            line(r, name[k], bytes[k],
                 arena_printf(r->g->arena, "%llu buffer%s", (unsigned long long)count[k],
                              count[k] == 1 ? "" : "s"));
}

static const Node *node_at(const Plan *plan, uint32_t time)
{
    for (int p = 0; p < PROGRAMS; p++) {
        const Program *program = &plan->program[p];
        if (time < program->begin || time >= program->begin + program->count)
            continue;
        const Cluster *c = &plan->clusters->at[program->at[time - program->begin].cluster];
        return &plan->graph->node.at[plan->clusters->node[c->node + c->nodes - 1]];
    }
    return NULL;
}

static int by_size(const void *a, const void *b)
{
    const Buffer *m = *(const Buffer *const *)a, *n = *(const Buffer *const *)b;
    if (m->bytes != n->bytes)
        return m->bytes > n->bytes ? -1 : 1;
    return (m > n) - (m < n);
}

static void write_buffer(Report *r, const Buffer *b)
{
    const Graph *g = r->g;
    const char *name = "workspace", *shape = "";
    uint32_t at = 0;
    if (b->value != NONE) {
        const Value *value = &g->value.at[b->value];
        name = value->name;
        shape = shape_text(g->arena, (Dtype)value->dtype, value->rank, value->dim);
        at = value->place.line;
        if (!at && value->node != NONE)
            at = g->node.at[value->node].place.line;
    }
    out(&r->o, "  %12s  %-28s %s%s", bytes_text(g->arena, b->bytes), name, r->dim, shape);
    if (at && g->source)
        out(&r->o, "  %s:%u", g->source->file, at);
    out(&r->o, "%s\n", r->plain);
}

/* The line of the source that the peak is at. */
static void write_source(Report *r, Place place)
{
    const char *text = r->g->source ? r->g->source->text : NULL;
    for (uint32_t i = 1; text && *text && i < place.line; i++) {
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    if (text && place.line)
        out(&r->o, "    %.*s\n", (int)strcspn(text, "\n"), text);
}

static void write_peak(Report *r)
{
    const Plan *plan = r->plan;
    const Node *node = node_at(plan, plan->peak_time);
    if (!node)
        return;
    out(&r->o, "\n%sThe peak%s is at op %u of %u, %s", r->bold, r->plain, plan->peak_time + 1,
        plan->end, node->op->name);
    if (node->place.line && r->g->source)
        out(&r->o, ", %s:%u", r->g->source->file, node->place.line);
    out(&r->o, "\n");
    write_source(r, node->place);
    const Buffer **live = ARENA_ARRAY(r->g->arena, const Buffer *, plan->buffers + 1);
    size_t count = 0;
    for (Id i = 0; i < plan->buffers; i++) {
        const Buffer *b = &plan->buffer[i];
        if (b->root == i && !b->external && b->birth <= plan->peak_time &&
            b->death > plan->peak_time)
            live[count++] = b;
    }
    qsort(live, count, sizeof *live, by_size);
    out(&r->o, "\n%sLargest of the %zu live there%s\n", r->bold, count, r->plain);
    for (size_t i = 0; i < count && i < TOP; i++)
        write_buffer(r, live[i]);
}

Text emit_report(const Plan *plan, const EmitOptions *options)
{
    bool color = options->color;
    const Graph *g = plan->graph;
    Report r = {.plan = plan,
                .g = g,
                .o = out_new(g->arena),
                .bold = color ? "\033[1m" : "",
                .dim = color ? "\033[2m" : "",
                .plain = color ? "\033[0m" : ""};
    out(&r.o, "%s%s%s: %zu nodes in %u steps\n", r.bold, g->name, r.plain, g->node.count,
        plan->end);
    write_sizes(&r, options->budget);
    write_kinds(&r);
    write_peak(&r);
    return out_done(&r.o);
}
