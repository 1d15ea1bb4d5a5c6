/* See cases.h. A case's text becomes a graph with one input for each operand and one call; the
 * graph is run in every way and each result is compared with the reference. */
#include "tests/ops/cases.h"

#include "runtime/c/narrow.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TABLES = 64 };
static const OpCase *case_tables[MAX_TABLES];
static const OpError *error_tables[MAX_TABLES];

void cases_register(const OpCase *table)
{
    size_t i = 0;
    while (case_tables[i])
        i++;
    assert(i + 1 < MAX_TABLES);
    case_tables[i] = table;
}

void errors_register(const OpError *table)
{
    size_t i = 0;
    while (error_tables[i])
        i++;
    assert(i + 1 < MAX_TABLES);
    error_tables[i] = table;
}

const OpCase *cases_at(size_t table)
{
    return case_tables[table];
}

const OpError *errors_at(size_t table)
{
    return error_tables[table];
}

/* ---- What references ask -------------------------------------------------------------------- */

double case_number(const Case *c, const char *setting)
{
    return c->setting[op_arg(c->call->op, setting)].number;
}

int64_t case_int(const Case *c, const char *setting)
{
    return case_at(c, setting, 0);
}

int64_t case_at(const Case *c, const char *setting, int i)
{
    const Attr *attr = &c->setting[op_arg(c->call->op, setting)];
    return attr->list[attr->count == 1 ? 0 : i];
}

int case_count(const Case *c, const char *setting)
{
    return c->setting[op_arg(c->call->op, setting)].count;
}

/* Whether word number `place` of the words is `word`. */
static int word_number(const char *words, const char *word, size_t length)
{
    for (int place = 0; words && *words; place++) {
        size_t span = strcspn(words, " ");
        if (span == length && memcmp(words, word, span) == 0)
            return place;
        words += span + strspn(words + span, " ");
    }
    return -1;
}

bool case_is_word(const Case *c, const char *setting, const char *word)
{
    int i = op_arg(c->call->op, setting);
    int place = word_number(c->call->op->args[i].words, word, strlen(word));
    assert(place >= 0);
    return c->setting[i].is_word && (int)c->setting[i].number == place;
}

Tensor case_like(const Case *c, int operand)
{
    return case_new(c, c->in[operand].dtype, c->in[operand].rank, c->in[operand].dim);
}

Tensor case_new(const Case *c, Dtype dtype, int rank, const int64_t *dim)
{
    return tensor_new(c->arena, dtype, rank, dim);
}

/* ---- Text to call --------------------------------------------------------------------------- */

/* `f32[2, 3]:0..1`; leaves what follows it. The tensor is filled. */
static Tensor read_operand(Arena *arena, const char **text, uint64_t seed)
{
    size_t length = strcspn(*text, "[");
    char *name = arena_copy(arena, *text, length);
    int64_t dim[MAX_RANK];
    int rank = 0;
    const char *at = *text + length + 1;
    while (*at != ']') {
        char *end;
        dim[rank++] = strtoll(at, &end, 10);
        assert(end != at && rank <= MAX_RANK);
        at = end + strspn(end, ", ");
    }
    at++;
    Tensor t = tensor_new(arena, dtype_find(name), rank, dim);
    assert(t.dtype != DTYPES);
    const bool real = dtype_is_real(t.dtype);
    double low = real ? -2 : t.dtype == U8 ? 0 : -9, high = real ? 2 : 9;
    if (*at == ':') {
        char *end;
        low = strtod(at + 1, &end); /* "0..1" reads as "0." */
        at = strstr(at, "..") + 2;
        high = strtod(at, &end);
        at = end;
    }
    tensor_fill(&t, seed, low, high);
    *text = at;
    return t;
}

static int read_operands(Arena *arena, const char *text, Tensor *t)
{
    int count = 0;
    for (text += strspn(text, " "); *text; text += strspn(text, " "), count++) {
        assert(count < MAX_ARGS);
        if (*text == '-') {
            t[count] = (Tensor){0};
            text++;
        } else {
            t[count] = read_operand(arena, &text, (uint64_t)count + 1);
        }
    }
    return count;
}

static void read_number(Attr *attr, const char **text)
{
    char *end;
    double number = strtod(*text, &end);
    assert(end != *text);
    if (attr->count == 0)
        attr->number = number;
    if (attr->count < MAX_RANK)
        attr->list[attr->count++] = fabs(number) < 9e18 ? (int64_t)number : 0;
    *text = end;
}

static Attr read_setting(const Arg *arg, const char **text)
{
    Attr attr = {.given = true};
    size_t length = strcspn(*text, ", ");
    int word = word_number(arg->words, *text, length);
    if (word >= 0 || strncmp(*text, "true", 4) == 0 || strncmp(*text, "false", 5) == 0) {
        attr.is_word = word >= 0;
        attr.number = word >= 0 ? word : **text == 't';
        attr.list[0] = (int64_t)attr.number;
        attr.count = arg->kind == ARG_INTS ? 0 : 1;
        *text += length;
    } else if (**text == '[') {
        for (++*text; **text != ']'; *text += strspn(*text, ", "))
            read_number(&attr, text);
        ++*text;
    } else {
        read_number(&attr, text);
        if (arg->flags & ARG_FRACTION && attr.number != floor(attr.number))
            attr.count = 0;
    }
    return attr;
}

static void read_settings(Call *call, const char *text)
{
    for (text += strspn(text, " "); *text; text += strspn(text, ", ")) {
        size_t length = strcspn(text, " =");
        int arg = 0;
        while (call->op->args[arg].name && (strlen(call->op->args[arg].name) != length ||
                                            memcmp(call->op->args[arg].name, text, length) != 0))
            arg++;
        if (!call->op->args[arg].name) {
            fprintf(stderr, "%s has no setting like '%s'\n", call->op->name, text);
            abort();
        }
        text += length;
        text += strspn(text, " =");
        call->attr[arg] = read_setting(&call->op->args[arg], &text);
    }
}

/* ---- A call's graph ------------------------------------------------------------------------- */

static const char *const way_name[WAYS] = {"plain", "transposed", "spaced", "flipped",
                                           "in a window"};

/* An input that holds the operand in this way, and the view that shows it. */
static Use add_input(Graph *g, const Tensor *t, int number, Way way)
{
    View view = {.rank = (uint8_t)t->rank};
    int64_t dim[MAX_RANK], stride[MAX_RANK], step = 1;
    for (int d = 0; d < t->rank; d++) {
        dim[d] = way == REVERSED_AXES ? t->dim[t->rank - 1 - d] : t->dim[d];
        dim[d] = way == SPACED ? 2 * dim[d] + 1 : dim[d];
        dim[d] += way == WINDOW && d == 1 ? 2 : 0; /* along axis 1, as of a concat of channels */
        view.dim[d] = t->dim[d];
    }
    for (int d = t->rank; d-- > 0; step *= dim[d])
        stride[d] = step;
    for (int d = 0; d < t->rank; d++) {
        view.stride[d] = way == REVERSED_AXES ? stride[t->rank - 1 - d] : stride[d];
        if (way == SPACED) {
            view.offset += stride[d];
            view.stride[d] *= 2;
        } else if (way == FLIPPED) {
            view.offset += (dim[d] - 1) * stride[d];
            view.stride[d] *= -1;
        } else if (way == WINDOW && d == 1) {
            view.offset += stride[d];
        }
    }
    const char *name = arena_printf(g->arena, "x%d", number);
    Id id = graph_value(g, VALUE_INPUT, name, t->dtype, t->rank, dim, (Span){0});
    return use_make(g, id, view);
}

/* Whichever table of kernels is linked. */
static bool has_half(const OpRow *op)
{
    const gp_kernel *kernel = runtime_kernel(op->name);
    return kernel && kernel->half;
}

/* Its numbers in 16 bits. */
static void narrow_operand(Tensor *t, Dtype dtype)
{
    t->dtype = dtype;
    for (int64_t i = 0; i < t->count; i++)
        t->at[i] = (double)gp_round_to((gp_real)t->at[i], (int)dtype);
}

/* Statistics stay wide, and so does what the op makes the next version of: sums and state. */
static bool stays_wide(const OpRow *op, int operand)
{
    bool wide = op->statistics >> operand & 1;
    for (int i = 0; i < MAX_OUTPUTS; i++)
        wide |= op->updates[i] == operand + 1;
    return wide;
}

Built case_build(Arena *arena, const OpCase *row, Way way, int only, bool training)
{
    Built b = {.arena = arena};
    FILE *to = open_memstream(&b.message, &b.message_length);
    assert(to);
    static const Source source = {.file = "case", .text = "", .length = 0};
    Diag *diag = diag_new(arena, to, false);
    diag_source(diag, &source);
    b.graph = graph_new(arena, diag, &source);
    b.graph->training = training;
    b.graph->has_half = has_half;
    Call from = {.op = op_find(row->op), .name = "case"};
    if (!from.op) {
        fprintf(stderr, "there is no op %s\n", row->op);
        abort();
    }
    b.call = call_begin(b.graph, &from, row->op);
    b.operands = read_operands(arena, row->operands, b.operand);
    for (int i = 0; i < b.operands; i++) {
        if (row->narrow != F32 && b.operand[i].at && b.operand[i].dtype == F32 &&
            !stays_wide(from.op, i))
            narrow_operand(&b.operand[i], row->narrow);
        b.use[i] = (Use){NONE, NONE};
        if (b.operand[i].at)
            b.use[i] = add_input(b.graph, &b.operand[i], i, only < 0 || only == i ? way : PLAIN);
        call_use(b.graph, &b.call, b.use[i]);
    }
    read_settings(&b.call, row->settings);
    memcpy(b.setting, b.call.attr, sizeof b.setting);
    b.refused = !call_finish(b.graph, &b.call);
    fclose(to);
    return b;
}

/* The parts of a value that a view does not show hold what no kernel may depend on. */
static void write_operand(Run *run, const Built *b, int i)
{
    const Value *value = &b->graph->value.at[b->use[i].value];
    View view = use_view(b->graph, b->use[i]);
    Tensor all = tensor_new(b->arena, (Dtype)value->dtype, value->rank, value->dim);
    for (int64_t k = 0; k < all.count; k++)
        all.at[k] = dtype_is_real((Dtype)value->dtype) ? NAN : value->dtype == BOOL ? 1 : 77;
    for (int64_t k = 0; k < b->operand[i].count; k++) {
        int64_t at = view.offset, rest = k;
        for (int d = view.rank; d-- > 0; rest /= view.dim[d])
            at += rest % view.dim[d] * view.stride[d];
        all.at[at] = b->operand[i].at[k];
    }
    run_write(run, b->use[i].value, &all);
}

/* Parameters and state that the row made hold numbers of their own. */
static void write_others(Run *run, const Built *b)
{
    for (size_t i = 0; i < b->graph->value.count; i++) {
        const Value *value = &b->graph->value.at[i];
        if (value->previous != NONE || (value->kind != VALUE_PARAM && value->kind != VALUE_CONST &&
                                        value->kind != VALUE_STATE))
            continue;
        Tensor t = tensor_new(b->arena, (Dtype)value->dtype, value->rank, value->dim);
        tensor_fill(&t, 100 + i, 0.25, 1.5);
        run_write(run, (Id)i, &t);
    }
}

void case_write(Run *run, const Built *b)
{
    write_others(run, b);
    for (int i = 0; i < b->operands; i++) /* also those that are parameters, for their gradients */
        if (b->operand[i].at)
            write_operand(run, b, i);
}

/* A parameter that the row made. Products round it as they read it. */
static Tensor seen_parameter(const Run *run, const Built *b, Use use, Dtype narrow)
{
    Tensor t = run_read(run, b->arena, use);
    if (narrow != F32 && t.dtype == F32) {
        narrow_operand(&t, narrow);
        t.dtype = F32;
    }
    return t;
}

/* Runs the call; result `output` into *got. NULL where all is well. */
static const char *run_built(const Built *b, int output, const RunOptions *options, Tensor *got,
                             Case *seen)
{
    Run *run = run_new(b->arena, b->graph);
    case_write(run, b);
    for (int i = 0; i < (int)b->call.use.count && i < MAX_ARGS && seen; i++) {
        if (i < b->operands && b->operand[i].at)
            seen->in[i] = b->operand[i];
        else if (b->call.use.at[i].value != NONE)
            seen->in[i] = seen_parameter(run, b, b->call.use.at[i], seen->row->narrow);
        seen->ins = i + 1;
    }
    int status = run_graph(run, options);
    const char *wrong = run->wrong;
    if (status == GP_OK)
        *got = run_read(run, b->arena, b->call.result.at[output]);
    else if (!wrong)
        wrong =
            arena_printf(b->arena, "%s returned %d", b->graph->node.at[run->failed].name, status);
    run_free(run);
    return wrong;
}

/* ---- Checks --------------------------------------------------------------------------------- */

static double default_tolerance(void)
{
    return sizeof(gp_real) == sizeof(double) ? 1e-10 : 2e-5;
}

/* A call whose operands lie in another way gives the same numbers; where the kernel reads them as
 * they are, in the same order, so nearly the same bits. */
static const char *check_way(Arena *arena, const OpCase *row, Way way, int only, const Tensor *want,
                             double tolerance)
{
    Built b = case_build(arena, row, way, only, row->training);
    Tensor got = {0};
    const char *wrong = b.refused ? arena_printf(arena, "refused: %s", b.message)
                                  : run_built(&b, row->output, &(RunOptions){0}, &got, NULL);
    if (!wrong)
        wrong = tensor_differs(arena, &got, want, tolerance);
    free(b.message);
    return wrong ? arena_printf(arena, "operands %s: %s", way_name[way], wrong) : NULL;
}

static const char *check_ways(Arena *arena, const OpCase *row, int operands, const Tensor *want,
                              double tolerance)
{
    const char *wrong = NULL;
    for (Way way = REVERSED_AXES; way < WAYS && !wrong; way++)
        wrong = check_way(arena, row, way, -1, want, tolerance);
    for (int i = 0; i < operands && operands > 1 && !wrong; i++)
        wrong = check_way(arena, row, REVERSED_AXES, i, want, tolerance);
    return wrong;
}

/* Running the same graph otherwise gives the same bits. */
static const char *check_options(const Built *b, int output, const Tensor *want)
{
    static const struct {
        const char *name;
        RunOptions options;
    } other[] = {
        {"3 threads", {.threads = 3}},
        {"in place", {.in_place = true}},
        {"outputs in windows", {.strided_outputs = true}},
        {"threads in descending order", {.order = "descending"}},
        {"threads in shuffled order", {.order = "shuffled"}},
    };
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        Tensor got = {0};
        const char *wrong = run_built(b, output, &other[i].options, &got, NULL);
        if (!wrong)
            wrong = tensor_differs(b->arena, &got, want, 0);
        if (wrong)
            return arena_printf(b->arena, "%s: %s", other[i].name, wrong);
    }
    return NULL;
}

static bool reaches_half(const Graph *g)
{
    for (size_t i = 0; i < g->node.count; i++) {
        const Node *node = &g->node.at[i];
        bool narrow = false;
        for (Id k = 0; k < node->uses; k++) {
            const Id value = node_use(g, node, k).value;
            narrow |= value != NONE && dtype_is_narrow((Dtype)g->value.at[value].dtype);
        }
        if (narrow && node->op->flags & OP_HALF && has_half(node->op))
            return true;
    }
    return false;
}

OpCase case_narrowed(Arena *arena, const OpCase *row, Dtype dtype)
{
    OpCase narrow = *row;
    narrow.narrow = dtype;
    const double unit = dtype == BF16 ? 1. / 256 : 1. / 2048;
    narrow.tolerance = fmax(row->tolerance, (op_find(row->op)->build ? 16 : 4) * unit);
    Built b = case_build(arena, &narrow, PLAIN, -1, row->training);
    if (b.refused || row->steep || !reaches_half(b.graph) || strstr(row->operands, "f16["))
        narrow.op = NULL;
    free(b.message);
    return narrow;
}

const char *case_check(Arena *arena, const OpCase *row)
{
    Built b = case_build(arena, row, PLAIN, -1, row->training);
    double tolerance = row->tolerance > 0 ? row->tolerance : default_tolerance();
    Case seen = {.row = row, .arena = arena, .call = &b.call};
    memcpy(seen.setting, b.setting, sizeof seen.setting);
    Tensor got = {0};
    const char *wrong = b.refused ? arena_printf(arena, "refused: %s", b.message)
                                  : run_built(&b, row->output, &(RunOptions){0}, &got, &seen);
    if (!wrong && row->reference) {
        Tensor want = row->reference(&seen);
        if (row->narrow != F32 && dtype_is_real(want.dtype)) /* as the row decides */
            want.dtype = got.dtype;
        wrong = tensor_differs(arena, &got, &want, tolerance);
    }
    if (!wrong)
        wrong = check_options(&b, row->output, &got);
    if (!wrong)
        wrong = check_ways(arena, row, b.operands, &got, tolerance);
    free(b.message);
    return wrong ? arena_printf(arena, "%s(%s; %s) of %s: %s", row->op, row->operands,
                                row->settings, dtype_name(row->narrow), wrong)
                 : NULL;
}

const char *case_refused(Arena *arena, const OpError *row)
{
    const OpCase call = {.op = row->op, .operands = row->operands, .settings = row->settings};
    Built b = case_build(arena, &call, PLAIN, -1, false);
    const char *wrong = NULL;
    if (!b.refused)
        wrong = "was accepted";
    else if (!strstr(b.message, row->message))
        wrong = arena_printf(arena, "said: %s", b.message);
    free(b.message);
    return wrong ? arena_printf(arena, "%s(%s; %s): expected '%s', but it %s", row->op,
                                row->operands, row->settings, row->message, wrong)
                 : NULL;
}

void case_ops(Arena *arena, const OpCase *row, void (*visit)(void *to, const OpRow *op), void *to)
{
    Built b = case_build(arena, row, PLAIN, -1, row->training);
    visit(to, b.call.op);
    for (size_t i = 0; i < b.graph->node.count; i++)
        visit(to, b.graph->node.at[i].op);
    free(b.message);
}
