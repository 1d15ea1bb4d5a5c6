/* The tables of an emitted file: its tensors and how they begin, the names of its ops, and what
 * the checks that can be compiled in need to know of each op. */
#include "codegen/internal.h"

#include <stdlib.h>
#include <string.h>

static void write_dims(Out *o, int rank, const int64_t *dim)
{
    out(o, "{");
    for (int i = 0; i < rank; i++)
        out(o, "%s%lld", i ? ", " : "", (long long)dim[i]);
    out(o, rank ? "}" : "0}");
}

void tables_tensors(const Emission *e, Out *o)
{
    const Api *api = e->api;
    const Graph *g = e->plan->graph;
    for (size_t i = 0; i < api->tensors; i++) {
        const ApiTensor *t = &api->tensor[i];
        const Value *value = &g->value.at[t->value];
        out(o, "    {");
        out_string(o, t->name);
        out(o, ", %s_%s, %s_%s, %d, ", api->capitals, t->kind, api->capitals,
            dtype_row((Dtype)value->dtype)->id, t->view.rank);
        write_dims(o, t->view.rank, t->view.dim);
        if (t->slot == NONE)
            out(o, ", %llu, ", (unsigned long long)t->offset);
        else
            out(o, ", %s_EXTERNAL, ", api->capitals);
        out(o, "%llu},\n",
            (unsigned long long)((uint64_t)view_count(&t->view) * dtype_size((Dtype)value->dtype)));
    }
}

void tables_slots(const Emission *e, Out *o)
{
    const Api *api = e->api;
    for (size_t i = 0; i < api->tensors; i++)
        out(o, "%s%d%s",
            i % 20 ? " "
            : i    ? "\n    "
                   : "    ",
            api->tensor[i].slot == NONE ? -1 : (int)api->tensor[i].slot,
            i + 1 < api->tensors ? "," : "\n");
}

/* ---- How parameters begin ------------------------------------------------------------------- */

static const Init *init_of(const Emission *e, size_t tensor)
{
    return &e->plan->graph->value.at[e->api->tensor[tensor].value].init;
}

/* As gp_set takes it. */
static double number_of(const Emission *e, size_t tensor, double number)
{
    const Value *value = &e->plan->graph->value.at[e->api->tensor[tensor].value];
    return constant_number((Dtype)value->dtype, number);
}

static bool has_list(const Emission *e, size_t tensor)
{
    return init_of(e, tensor)->kind == INIT_LIST && !constant_is_long(e->api, tensor);
}

void tables_init_lists(const Emission *e, Out *o)
{
    for (size_t i = e->api->saved_begin; i < e->api->saved_end; i++) {
        const Init *init = init_of(e, i);
        if (!has_list(e, i))
            continue;
        out(o, "static const double list_%zu[] = {", i);
        for (size_t k = 0; k < init->count; k++) {
            out(o, k % 8 ? " " : "\n    ");
            out_number(o, number_of(e, i, init->list[k]));
            out(o, k + 1 < init->count ? "," : "\n};\n");
        }
    }
}

void tables_init(const Emission *e, Out *o)
{
    static const char *const kind[] = {
        [INIT_ZEROS] = "GP_INIT_CONST",   [INIT_ONES] = "GP_INIT_CONST",
        [INIT_CONST] = "GP_INIT_CONST",   [INIT_UNIFORM] = "GP_INIT_UNIFORM",
        [INIT_NORMAL] = "GP_INIT_NORMAL", [INIT_LIST] = "GP_INIT_LIST",
    };
    const Api *api = e->api;
    for (size_t i = api->saved_begin; i < api->saved_end; i++) {
        const Init *init = init_of(e, i);
        double a = init->kind == INIT_ONES ? 1 : init->kind == INIT_ZEROS ? 0 : init->a;
        out(o, "    {%s, ", constant_is_long(api, i) ? "GP_INIT_FILE" : kind[init->kind]);
        out_number(o, number_of(e, i, a));
        out(o, ", ");
        out_number(o, init->b);
        out(o, has_list(e, i) ? ", list_%zu, %zu}, /* " : ", NULL, 0}, /* ", i, init->count);
        out_comment(o, api->tensor[i].name);
        out(o, " */\n");
    }
}

void tables_constants(const Emission *e, Out *o)
{
    for (size_t i = e->api->saved_begin; i < e->api->saved_end; i++)
        if (constant_is_long(e->api, i)) {
            out(o, "    %zu, /* ", i - e->api->saved_begin);
            out_comment(o, e->api->tensor[i].name);
            out(o, " */\n");
        }
}

/* ---- Names of ops --------------------------------------------------------------------------- */

void tables_ops(const Emission *e, Out *o)
{
    for (size_t i = 0; i < e->call.count; i++) {
        out(o, "    ");
        out_string(o, emission_label(e, &e->call.at[i]));
        out(o, ",\n");
    }
    if (e->call.count == 0)
        out(o, "    NULL,\n");
}

/* ---- Results, for the search for NaN -------------------------------------------------------- */

/* Rows of `count` numbers, `rows` of them, `stride` apart. */
static void write_result(const Emission *e, Out *o, size_t op, const Buffer *b, View view)
{
    const Api *api = e->api;
    while (view.rank > 2 && view.stride[0] != view.stride[1] * view.dim[1]) {
        View part = view; /* a window in a window: one entry for each part */
        memmove(part.dim, part.dim + 1, (size_t)(view.rank - 1) * sizeof *part.dim);
        memmove(part.stride, part.stride + 1, (size_t)(view.rank - 1) * sizeof *part.stride);
        part.rank--;
        for (int64_t i = 0; i < view.dim[0]; i++) {
            write_result(e, o, op, b, part);
            part.offset += view.stride[0];
        }
        return;
    }
    int64_t count = 1, rows = 1, stride = 0;
    for (int d = view.rank; d-- > 0;) {
        if (view.dim[d] == 1)
            continue;
        if (rows == 1 && view.stride[d] == count) {
            count *= view.dim[d];
        } else {
            stride = rows == 1 ? view.stride[d] : stride;
            rows *= view.dim[d];
        }
    }
    Id id = (Id)(b - e->plan->buffer);
    Address a = access_address(api, id, &view);
    out(o, "    {%zu, %d, %llu, %lld, %lld, %lld},\n", op, a.kind == AT_EXTERNAL ? (int)a.slot : -1,
        (unsigned long long)a.offset, (long long)rows, (long long)count, (long long)stride);
}

/* Of an output that is collected from micro-batches only a part is there after each. */
static bool is_collected(const Graph *g, Id value)
{
    return g->value.at[value_first(g, value)].kind == VALUE_OUTPUT;
}

void tables_results(const Emission *e, Out *o)
{
    const Plan *plan = e->plan;
    for (size_t i = 0; i < e->call.count; i++) {
        const Occurrence *occurrence = e->call.at[i].occurrence;
        const Cluster *c = &plan->clusters->at[occurrence->cluster];
        for (Id k = 0; k < c->results; k++) {
            const Buffer *b = &plan->buffer[plan->arg[occurrence->arg + c->operands + k]];
            if (plan->graph->value.at[b->value].dtype != F32 || is_collected(plan->graph, b->value))
                continue;
            write_result(e, o, i, b, b->layout);
        }
    }
    out(o, "    {%d, -1, 0, 0, 0, 0},\n", (int)e->call.count);
}

/* ---- Buffers that die, for poisoning -------------------------------------------------------- */

typedef struct {
    size_t op;
    uint64_t offset, bytes;
} Death;

static int by_op(const void *a, const void *b)
{
    const Death *m = a, *n = b;
    if (m->op != n->op)
        return m->op < n->op ? -1 : 1;
    return (m->offset > n->offset) - (m->offset < n->offset);
}

static bool is_packed(const Plan *plan, Id i)
{
    return plan->buffer[i].root == i && plan->buffer[i].space == SPACE_ARENA;
}

/* After which call nobody reads the buffer any more; the count of calls where it lives on. */
static size_t last_call(const Emission *e, const Buffer *b)
{
    size_t low = 0, high = e->call.count; /* the first call at or after the death */
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (e->call.at[middle].time < b->death)
            low = middle + 1;
        else
            high = middle;
    }
    return low && e->call.at[low - 1].time >= b->birth ? low - 1 : e->call.count;
}

static int by_offset(const void *a, const void *b)
{
    const Death *m = a, *n = b;
    return (m->offset > n->offset) - (m->offset < n->offset);
}

/* Bytes of the arena that hold nothing between two programs: poisoned when one begins. */
static void write_free(const Emission *e, Out *o)
{
    const Plan *plan = e->plan;
    Death *kept = ARENA_ARRAY(e->arena, Death, plan->buffers);
    size_t count = 0;
    for (Id i = 0; i < plan->buffers; i++)
        if (is_packed(plan, i) && plan->buffer[i].kind <= BUFFER_INPUT)
            kept[count++] = (Death){0, plan->buffer[i].offset, plan->buffer[i].bytes};
    qsort(kept, count, sizeof *kept, by_offset);
    uint64_t from = 0;
    for (size_t i = 0; i <= count; i++) {
        uint64_t to = i < count ? kept[i].offset : plan->arena;
        if (to > from)
            out(o, "    {-1, %llu, %llu},\n", (unsigned long long)from,
                (unsigned long long)(to - from));
        from = i < count ? kept[i].offset + kept[i].bytes : from;
    }
}

void tables_deaths(const Emission *e, Out *o)
{
    const Plan *plan = e->plan;
    Death *death = ARENA_ARRAY(e->arena, Death, plan->buffers);
    size_t count = 0;
    for (Id i = 0; i < plan->buffers; i++) {
        const Buffer *b = &plan->buffer[i];
        if (is_packed(plan, i) && b->kind >= BUFFER_ACTIVATION && last_call(e, b) < e->call.count)
            death[count++] = (Death){last_call(e, b), b->offset, b->bytes};
    }
    qsort(death, count, sizeof *death, by_op);
    write_free(e, o);
    for (size_t i = 0; i < count; i++)
        out(o, "    {%zu, %llu, %llu},\n", death[i].op, (unsigned long long)death[i].offset,
            (unsigned long long)death[i].bytes);
    out(o, "    {%zu, 0, 0},\n", e->call.count);
}
