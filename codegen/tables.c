/* The tables of an emitted file: its tensors and how they begin, the names of its ops, and what
 * the checks that can be compiled in need to know of each op. */
#include "codegen/internal.h"

#include <stdlib.h>
#include <string.h>

static const char *string_text(Arena *arena, const char *text)
{
    Out o = out_new(arena);
    out_string(&o, text);
    return o.at;
}

/* Up to its last point: what two states of one parameter have in common. */
static size_t stem_of(const char *name)
{
    const char *last = strrchr(name, '.');
    return last ? (size_t)(last - name) : 0;
}

/* Whether tensor i and the next are two states of a parameter, side by side. */
static bool are_beside(const Api *api, const Graph *g, size_t i)
{
    if (i + 1 >= api->tensors)
        return false;
    const ApiTensor *a = &api->tensor[i], *b = a + 1;
    const Value *m = &g->value.at[a->value], *n = &g->value.at[b->value];
    const size_t stem = stem_of(a->name), bytes = dtype_size((Dtype)m->dtype);
    return strcmp(a->kind, "STATE") == 0 && strcmp(b->kind, "STATE") == 0 && a->slot == NONE &&
           b->slot == NONE && stem && stem == stem_of(b->name) &&
           strncmp(a->name, b->name, stem) == 0 && m->dtype == n->dtype &&
           a->view.rank == b->view.rank &&
           memcmp(a->view.dim, b->view.dim, (size_t)a->view.rank * sizeof *a->view.dim) == 0 &&
           b->offset == a->offset + (uint64_t)view_count(&a->view) * bytes;
}

bool tables_pair(const Emission *e, const char **one, const char **other)
{
    const Api *api = e->api;
    size_t i = 0;
    while (i < api->tensors && !are_beside(api, e->plan->graph, i))
        i++;
    if (i == api->tensors)
        return false;
    *one = api->tensor[i].name + stem_of(api->tensor[i].name);
    *other = api->tensor[i + 1].name + stem_of(api->tensor[i + 1].name);
    return true;
}

void tables_tensors(const Emission *e, Out *o)
{
    const Api *api = e->api;
    const Graph *g = e->plan->graph;
    const char *one, *other;
    const bool pairs = tables_pair(e, &one, &other);
    TableRows rows = {.arena = e->arena, .macro = "TENSORS"};
    for (size_t i = 0; i < api->tensors; i++) {
        const ApiTensor *t = &api->tensor[i];
        const size_t stem = stem_of(t->name);
        Dtype dtype = (Dtype)g->value.at[t->value].dtype;
        Out dims = out_new(e->arena);
        for (int d = 0; d < t->view.rank; d++)
            out(&dims, ", %lld", (long long)t->view.dim[d]);
        const char *offset = t->slot != NONE ? arena_printf(e->arena, "%s_EXTERNAL", api->capitals)
                                             : arena_printf(e->arena, ROW_NUMBER "%llu",
                                                            (unsigned long long)t->offset);
        if (pairs && are_beside(api, g, i) && strcmp(t->name + stem, one) == 0 &&
            strcmp(t[1].name + stem, other) == 0) {
            rows_add(&rows, "T2(%s, %s, %s, %d%s)",
                     string_text(e->arena, arena_copy(e->arena, t->name, stem)),
                     dtype_row(dtype)->id, offset, t->view.rank, t->view.rank ? dims.at : ", 1");
            i++;
            continue;
        }
        rows_add(&rows, "T(%s, %s, %s, %s, %d%s)", string_text(e->arena, t->name), t->kind,
                 dtype_row(dtype)->id, offset, t->view.rank, t->view.rank ? dims.at : ", 1");
    }
    rows_write(&rows, o, "", "");
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

/* As gp_set takes it. */
static double init_number(const Emission *e, size_t tensor, double number)
{
    const Value *value = &e->plan->graph->value.at[e->api->tensor[tensor].value];
    return constant_number((Dtype)value->dtype, number);
}

static bool is_zero(const Emission *e, size_t tensor)
{
    const Init *init = &e->plan->graph->value.at[e->api->tensor[tensor].value].init;
    return init->kind == INIT_ZEROS || (init->kind == INIT_CONST && init->a == 0);
}

void tables_init_lists(const Emission *e, Out *o)
{
    const Api *api = e->api;
    for (size_t i = api->saved_begin; i < api->saved_end; i++) {
        const Init *init = &e->plan->graph->value.at[api->tensor[i].value].init;
        if (init->kind != INIT_LIST || constant_is_long(api, i))
            continue;
        TableRows numbers = {.arena = e->arena, .macro = "NUMBERS"};
        for (size_t k = 0; k < init->count; k++) {
            Out number = out_new(e->arena);
            out_number(&number, init_number(e, i, init->list[k]));
            rows_add(&numbers, "%s", number.at);
        }
        rows_write(&numbers, o, arena_printf(e->arena, "static const double list_%zu[] = {\n", i),
                   "};\n");
    }
}

void tables_init(const Emission *e, Out *o)
{
    static const char *const kind[] = {
        [INIT_ZEROS] = "CONST",     [INIT_ONES] = "CONST",    [INIT_CONST] = "CONST",
        [INIT_UNIFORM] = "UNIFORM", [INIT_NORMAL] = "NORMAL", [INIT_LIST] = NULL,
    };
    const Api *api = e->api;
    size_t last = api->saved_end; /* what begins with zeros at the end needs no entry */
    while (last > api->saved_begin + 1 && is_zero(e, last - 1))
        last--;
    TableRows rows = {.arena = e->arena, .macro = "INITS"};
    for (size_t i = api->saved_begin; i < last; i++) {
        const Init *init = &e->plan->graph->value.at[api->tensor[i].value].init;
        Out a = out_new(e->arena), b = out_new(e->arena);
        out_number(&a, init_number(e, i,
                                   init->kind == INIT_ONES    ? 1
                                   : init->kind == INIT_ZEROS ? 0
                                                              : init->a));
        out_number(&b, init->b);
        if (constant_is_long(api, i))
            rows_add(&rows, "{GP_INIT_FILE, 0, 0, NULL, 0}");
        else if (init->kind == INIT_LIST)
            rows_add(&rows, "{GP_INIT_LIST, 0, 0, list_%zu, %zu}", i, init->count);
        else
            rows_add(&rows, "INIT(%s, %s, %s)", kind[init->kind], a.at, b.at);
    }
    rows_write(&rows, o, "", "");
}

bool tables_has_shards(const Api *api)
{
    for (size_t i = api->saved_begin; i < api->saved_end; i++)
        if (api->plan->graph->value.at[api->tensor[i].value].all)
            return true;
    return false;
}

void tables_shards(const Emission *e, Out *o)
{
    const Api *api = e->api;
    TableRows rows = {.arena = e->arena, .macro = "SHARDS"};
    for (size_t i = api->saved_begin; i < api->saved_end; i++) {
        const View *all = e->plan->graph->value.at[api->tensor[i].value].all;
        if (!all)
            continue;
        Out dims = out_new(e->arena);
        for (int d = 0; d < all->rank; d++)
            out(&dims, "%s%lld", d ? ", " : "", (long long)all->dim[d]);
        rows_add(&rows, "{" ROW_NUMBER "%zu, %d, {%s}}", i - api->saved_begin, all->rank, dims.at);
    }
    if (tables_has_shards(api))
        rows_write(&rows, o, "", "");
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
    TableRows rows = {.arena = e->arena, .macro = "NAMES"};
    for (size_t i = 0; i < e->call.count; i++)
        rows_add(&rows, "%s", string_text(e->arena, emission_label(e, &e->call.at[i])));
    if (e->call.count == 0)
        rows_add(&rows, "NULL");
    rows_write(&rows, o, "", "");
}

/* ---- Results, for the search for NaN -------------------------------------------------------- */

/* TableRows of `count` numbers, `rows` of them, `stride` apart. */
static void add_result(const Emission *e, TableRows *rows, size_t op, const Buffer *b, View view)
{
    const Api *api = e->api;
    while (view.rank > 2 && view.stride[0] != view.stride[1] * view.dim[1]) {
        View part = view; /* a window in a window: one entry for each part */
        memmove(part.dim, part.dim + 1, (size_t)(view.rank - 1) * sizeof *part.dim);
        memmove(part.stride, part.stride + 1, (size_t)(view.rank - 1) * sizeof *part.stride);
        part.rank--;
        for (int64_t i = 0; i < view.dim[0]; i++) {
            add_result(e, rows, op, b, part);
            part.offset += view.stride[0];
        }
        return;
    }
    int64_t count = 1, row_count = 1, stride = 0;
    for (int d = view.rank; d-- > 0;) {
        if (view.dim[d] == 1)
            continue;
        if (row_count == 1 && view.stride[d] == count) {
            count *= view.dim[d];
        } else {
            stride = row_count == 1 ? view.stride[d] : stride;
            row_count *= view.dim[d];
        }
    }
    Id id = (Id)(b - e->plan->buffer);
    Address a = access_address(api, id, &view);
    rows_add(rows, "{" ROW_NUMBER "%zu, %s%d, " ROW_NUMBER "%llu, %llu, %lld, %lld, %lld}", op,
             a.kind == AT_EXTERNAL ? ROW_NUMBER : "", a.kind == AT_EXTERNAL ? (int)a.slot : -1,
             (unsigned long long)a.offset, (unsigned long long)a.micro_stride, (long long)row_count,
             (long long)count, (long long)stride);
}

void tables_results(const Emission *e, Out *o)
{
    const Plan *plan = e->plan;
    TableRows rows = {.arena = e->arena, .macro = "RESULTS"};
    for (size_t i = 0; i < e->call.count; i++) {
        const Occurrence *occurrence = e->call.at[i].occurrence;
        const Cluster *c = &plan->clusters->at[occurrence->cluster];
        for (Id k = 0; k < c->results; k++) {
            const Buffer *b = &plan->buffer[plan->arg[occurrence->arg + c->operands + k]];
            if (plan->graph->value.at[b->value].dtype == F32 && !access_is_part(plan, occurrence))
                add_result(e, &rows, i, b, b->layout);
        }
    }
    rows_add(&rows, "{%d, -1, 0, 0, 0, 0, 0}", (int)e->call.count);
    rows_write(&rows, o, "", "");
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
    if (m->bytes != n->bytes) /* so that layers are alike */
        return m->bytes < n->bytes ? -1 : 1;
    return (m->offset > n->offset) - (m->offset < n->offset);
}

static int by_place(const void *a, const void *b)
{
    const Death *m = a, *n = b;
    if (m->op != n->op)
        return m->op < n->op ? -1 : 1;
    return (m->offset > n->offset) - (m->offset < n->offset);
}

/* What dies with an op and lies side by side is one. */
static size_t join_deaths(Death *death, size_t count)
{
    size_t made = 0;
    qsort(death, count, sizeof *death, by_place);
    for (size_t i = 0; i < count; i++) {
        Death *last = made ? &death[made - 1] : NULL;
        if (last && last->op == death[i].op && last->offset + last->bytes == death[i].offset)
            last->bytes += death[i].bytes;
        else
            death[made++] = death[i];
    }
    return made;
}

static bool is_packed(const Plan *plan, Id i)
{
    return plan->buffer[i].root == i && plan->buffer[i].space == SPACE_ARENA;
}

static int by_time(const void *a, const void *b)
{
    const EmitCall *m = *(const EmitCall *const *)a, *n = *(const EmitCall *const *)b;
    return (m->time > n->time) - (m->time < n->time);
}

/* After which call nobody reads the buffer any more; the count of calls where it lives on. */
static size_t last_call(const Emission *e, const EmitCall *const *timed, const Buffer *b)
{
    size_t low = 0, high = e->call.count; /* the first call at or after the death */
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (timed[middle]->time < b->death)
            low = middle + 1;
        else
            high = middle;
    }
    const bool runs = low && timed[low - 1]->time >= b->birth;
    return runs ? (size_t)(timed[low - 1] - e->call.at) : e->call.count;
}

static int by_offset(const void *a, const void *b)
{
    const Death *m = a, *n = b;
    return (m->offset > n->offset) - (m->offset < n->offset);
}

/* Bytes of the arena that hold nothing between two programs: poisoned when one begins. */
static void add_free(const Emission *e, TableRows *rows)
{
    const Plan *plan = e->plan;
    Death *kept = ARENA_ARRAY(e->arena, Death, plan->buffers);
    size_t count = 0;
    for (Id i = 0; i < plan->buffers; i++)
        if (is_packed(plan, i) && plan->buffer[i].kind <= BUFFER_DATA)
            kept[count++] = (Death){0, plan->buffer[i].offset, plan->buffer[i].bytes};
    qsort(kept, count, sizeof *kept, by_offset);
    uint64_t from = 0;
    for (size_t i = 0; i <= count; i++) {
        uint64_t to = i < count ? kept[i].offset : plan->arena[SPACE_ARENA];
        if (to > from)
            rows_add(rows, "{-1, %llu, %llu}", (unsigned long long)from,
                     (unsigned long long)(to - from));
        from = i < count ? kept[i].offset + kept[i].bytes : from;
    }
}

/* In the order of ops. */
static Death *list_deaths(const Emission *e, size_t *count)
{
    const Plan *plan = e->plan;
    Death *death = ARENA_ARRAY(e->arena, Death, plan->buffers);
    const EmitCall **timed = ARENA_ARRAY(e->arena, const EmitCall *, e->call.count + 1);
    for (size_t i = 0; i < e->call.count; i++)
        timed[i] = &e->call.at[i];
    qsort(timed, e->call.count, sizeof *timed, by_time);
    *count = 0;
    for (Id i = 0; i < plan->buffers; i++) {
        const Buffer *b = &plan->buffer[i];
        const size_t last = last_call(e, timed, b);
        if (is_packed(plan, i) && b->kind >= BUFFER_ACTIVATION && last < e->call.count)
            death[(*count)++] = (Death){last, b->offset, b->bytes};
    }
    *count = join_deaths(death, *count);
    qsort(death, *count, sizeof *death, by_op);
    return death;
}

bool deaths_are_equal(const Emission *e, Id one, Id other, Id count)
{
    size_t deaths, a = 0, b = 0;
    const Death *death = list_deaths(e, &deaths);
    while (a < deaths && death[a].op < one)
        a++;
    while (b < deaths && death[b].op < other)
        b++;
    for (; a < deaths && death[a].op < one + count; a++, b++)
        if (b == deaths || death[b].op - other != death[a].op - one ||
            death[b].offset != death[a].offset || death[b].bytes != death[a].bytes)
            return false;
    return b == deaths || death[b].op >= other + count;
}

void tables_deaths(const Emission *e, Out *o)
{
    size_t count;
    const Death *death = list_deaths(e, &count);
    const Id shared = e->program[PROGRAM_EVAL].call;
    TableRows rows = {.arena = e->arena, .macro = "DEATHS"};
    add_free(e, &rows);
    for (size_t i = 0; i < count; i++) {
        if (death[i].op >= shared && death[i].op < shared + e->program[PROGRAM_EVAL].shared)
            continue; /* which runs under the numbers of the forward program */
        rows_add(&rows, "{" ROW_NUMBER "%zu, " ROW_NUMBER "%llu, %llu}", death[i].op,
                 (unsigned long long)death[i].offset, (unsigned long long)death[i].bytes);
    }
    rows_add(&rows, "{%zu, 0, 0}", e->call.count);
    rows_write(&rows, o, "", "");
}
