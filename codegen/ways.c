/* Kernels choose among ways by shapes that are known here. A branch `if (GP_WAY(name, condition))`
 * of a kernel's text stays as it is where some calls take it and others do not; where all of them
 * take one side, that side is written, after a check of the condition. The value of a condition
 * is given by the kernel's own GP_WAYS, compiled into gplan. */
#include "codegen/ways.h"

#include <string.h>

/* ---- What calls take ------------------------------------------------------------------------- */

/* A tensor as a kernel sees it. The data is never read; where two are in one place, their
 * pointers are equal. */
static gp_tensor tensor_at(const Api *api, Dtype dtype, View view, Id buffer)
{
    gp_tensor tensor = tensor_describe(dtype, &view);
    if (buffer == NONE)
        return tensor;
    const Address a = access_address(api, buffer, &view);
    const uint64_t space = a.kind == AT_EXTERNAL ? a.slot + 2 : 1;
    tensor.data = (void *)(uintptr_t)(space << 56 | a.offset);
    return tensor;
}

static gp_ways ask(const Api *api, const Occurrence *o, const Node *node)
{
    const Plan *plan = api->plan;
    const Graph *g = plan->graph;
    gp_ways ways = {0};
    const gp_kernel *kernel = runtime_kernel(node->op->name);
    if (!kernel || !kernel->ways)
        return ways;
    gp_tensor *in = ARENA_ARRAY(g->arena, gp_tensor, node->uses + 1), out[MAX_OUTPUTS];
    gp_setting setting[MAX_ARGS] = {0};
    for (Id i = 0; i < node->uses; i++) {
        Use use = node_use(g, node, i);
        in[i] = (gp_tensor){0};
        if (use.value == NONE)
            continue;
        Id buffer = access_buffer(plan, o, use.value, i);
        in[i] = tensor_at(api, (Dtype)g->value.at[use.value].dtype, access_view(plan, use, buffer),
                          buffer);
    }
    for (Id i = 0; i < node->values; i++) {
        const Cluster *c = &plan->clusters->at[o->cluster];
        const bool epilogue = cluster_has_epilogue(g, plan->clusters, c);
        Id id = epilogue ? plan->clusters->result[c->result] : node_value(node, i);
        Id buffer = access_buffer(plan, o, id, 0);
        View view =
            buffer == NONE ? value_view(&g->value.at[id]) : access_view(plan, use_of(id), buffer);
        out[i] = tensor_at(api, (Dtype)g->value.at[id].dtype, view, buffer);
    }
    for (int i = 0; i < MAX_ARGS && node->op->args[i].name; i++) {
        const Attr *attr = &g->attr.at[node->attr + (Id)i];
        setting[i].number = attr->number;
        memcpy(setting[i].list, attr->list, sizeof setting[i].list);
    }
    const gp_run run = {.threads = 1};
    gp_call call = {.in = in,
                    .out = out,
                    .ins = (int32_t)node->uses,
                    .outs = (int32_t)node->values,
                    .aside =
                        cluster_keeps_aside(g, plan->clusters, &plan->clusters->at[o->cluster]),
                    .run = &run};
    kernel->ways(&call, setting, &ways);
    return ways;
}

static void say(const Ways *ways, const char *name, bool taken)
{
    uint32_t *can = names_at(ways->taken, name);
    *can = (*can == NONE ? 0 : *can) | (taken ? GP_TAKEN : GP_PASSED);
}

/* What the functions around the kernels handle: parameters and their files. */
static void say_files(const Ways *ways, const Api *api)
{
    const Graph *g = api->plan->graph;
    for (size_t i = api->saved_begin; i < api->saved_end; i++) {
        const Value *value = &g->value.at[api->tensor[i].value];
        const bool in_file = constant_is_long(api, i);
        say(ways, "init_reals", value->dtype == F32);
        say(ways, "init_file", in_file);
        const bool uniform = !in_file && value->init.kind == INIT_UNIFORM;
        const bool normal = !in_file && value->init.kind == INIT_NORMAL;
        say(ways, "init_uniform", uniform);
        say(ways, "init_normal", normal);
        say(ways, "init_narrow", false); /* what is rounded is drawn as f32 first */
        if ((uniform || normal) && value->dtype != F32)
            say(ways, "init_narrow", true);
    }
}

static bool has_halves(const Graph *g)
{
    bool any = false;
    for (size_t i = 0; i < g->value.count; i++)
        any |= g->value.at[i].dtype == F16 || g->value.at[i].dtype == BF16;
    return any;
}

Ways *ways_of_calls(const Emission *e)
{
    Ways *ways = ARENA_NEW(e->arena, Ways);
    ways->arena = e->arena;
    ways->halves = has_halves(e->plan->graph);
    ways->taken = names_new(e->arena);
    ways->said = names_new(e->arena);
    NameTable *op = names_new(e->arena);
    if (e->dialect->device) /* whose code could not abort; its branches stay as they are */
        return ways;
    say_files(ways, e->api);
    for (size_t i = 0; i < e->call.count; i++) {
        const Occurrence *o = e->call.at[i].occurrence;
        const Cluster *c = &e->plan->clusters->at[o->cluster];
        const Node *node = &e->plan->graph->node.at[e->plan->clusters->node[c->node]];
        if (node->op->flags & OP_ELEMENTWISE)
            continue;
        if (*names_at(op, node->op->name) == NONE) {
            *names_at(op, node->op->name) = 1;
            ARRAY_PUSH(e->arena, &ways->op, node->op->name);
        }
        const gp_ways now = ask(e->api, o, node);
        for (int k = 0; k < now.count; k++) {
            if (now.at[k].can & GP_TAKEN)
                say(ways, now.at[k].name, true);
            if (now.at[k].can & GP_PASSED)
                say(ways, now.at[k].name, false);
            *names_at(ways->said, arena_printf(e->arena, "%s %s", node->op->name, now.at[k].name)) =
                1;
        }
    }
    return ways;
}

void ways_need(Ways *ways, const char *op, const Unit *unit)
{
    for (const char *at = unit->text; (at = strstr(at, "GP_WAY(")); at++) {
        const char *from = at + strlen("GP_WAY(");
        const char *name = arena_copy(ways->arena, from, strcspn(from, ",) "));
        if (names_find(ways->said, arena_printf(ways->arena, "%s %s", op, name)) == NONE)
            *names_at(ways->taken, name) = GP_TAKEN | GP_PASSED;
    }
}

/* ---- The text -------------------------------------------------------------------------------- */

/* After a statement. */
static const char *skip_statement(const char *at)
{
    const char *before = at;
    Token t = token_next(&at);
    if (t.kind == '{')
        return token_close(at);
    if (token_is(t, "GP_IVDEP"))
        return skip_statement(at);
    if (token_is(t, "if") || token_is(t, "for") || token_is(t, "while") ||
        token_is(t, "GP_PARALLEL")) {
        token_next(&at);
        at = skip_statement(token_close(at));
        const char *next = at;
        return token_is(t, "if") && token_is(token_next(&next), "else") ? skip_statement(next) : at;
    }
    for (at = before; (t = token_next(&at)).kind != ';' && t.kind != TOKEN_END;)
        if (t.kind == '(' || t.kind == '{' || t.kind == '[')
            at = token_close(at);
    return at;
}

typedef struct {
    const char *at, *end;
} Side;

static size_t indent_of(const char *text, const char *at)
{
    while (at > text && at[-1] != '\n')
        at--;
    return strspn(at, " ");
}

/* Whether a statement that begins there is on its own: not the body of a loop or branch. */
static bool is_alone(const char *text, const char *at)
{
    while (at > text && (at[-1] == ' ' || at[-1] == '\n'))
        at--;
    if (at - text > 2 && memcmp(at - 2, "*/", 2) == 0) {
        while (memcmp(at, "/*", 2) != 0)
            at--;
        return is_alone(text, at);
    }
    const char *line = at;
    while (line > text && line[-1] != '\n')
        line--;
    return *line == '#' || strchr(";{}", at[-1]);
}

/* A statement without its braces, `indent` columns from the left. */
static void write_side(Out *o, const char *text, Side side, size_t indent)
{
    const char *at = side.at;
    while (*at == ' ' || *at == '\n')
        at++;
    if (*at == '{') {
        at += 1 + strspn(at + 1, " \n");
        side.end--;
    }
    while (side.end > at && (side.end[-1] == ' ' || side.end[-1] == '\n'))
        side.end--;
    const size_t before = indent_of(text, at);
    while (at < side.end) {
        const size_t length = strcspn(at, "\n"), left = (size_t)(side.end - at);
        const size_t margin = *at == '#' || *at == '\n' ? 0 : indent; /* #if within a function */
        out(o, "\n%*s%.*s", (int)margin, "", (int)(length < left ? length : left), at);
        at += length < left ? length + 1 : left;
        const size_t spaces = strspn(at, " ");
        at += spaces < before ? spaces : before;
    }
}

/* Branches of f16 and bf16 where a model has neither: never taken, whoever says so, unchecked. */
static bool is_impossible(const Ways *ways, const char *name)
{
    static const char end[] = "_half";
    const size_t length = strlen(name);
    return !ways->halves && length >= strlen(end) && strcmp(name + length - strlen(end), end) == 0;
}

/* One branch, whose `if` is at `from`. Returns what follows it. */
static const char *cut_branch(const Ways *ways, const char *text, const char *from, Out *o)
{
    const char *at = from + strlen("if (GP_WAY("), *name_end = at + strcspn(at, ",");
    const char *name = arena_copy(ways->arena, at, (size_t)(name_end - at));
    const char *condition = name_end + 1, *close = token_close(at) - 1;
    while (*condition == ' ' || *condition == '\n')
        condition++;
    const char *text_of = arena_copy(ways->arena, condition, (size_t)(close - condition));
    const uint32_t taken = is_impossible(ways, name) ? GP_PASSED : names_find(ways->taken, name);
    const char *after = close + 1;
    token_next(&after); /* the bracket of the if */
    if (taken == NONE || taken == (GP_TAKEN | GP_PASSED)) {
        out(o, "if (%s)", text_of);
        return after;
    }
    Side yes = {after, skip_statement(after)}, no = {0};
    const char *next = yes.end, *end = yes.end;
    if (token_is(token_next(&next), "else")) {
        no = (Side){next, skip_statement(next)};
        end = no.end;
    }
    const bool alone = is_alone(text, from);
    const size_t indent = indent_of(text, from), inner = alone ? indent : indent + 4;
    const bool checked = !alone || !is_impossible(ways, name);
    if (!alone)
        out(o, "{\n%*s", (int)inner, "");
    if (!checked) /* the line of the `if` goes */
        while (o->length && strchr(" \n", o->at[o->length - 1]))
            o->at[--o->length] = 0;
    else
        out(o, taken == GP_TAKEN ? "GP_PLANNED(%s);" : "GP_PLANNED(!(%s));", text_of);
    const Side side = taken == GP_TAKEN ? yes : no;
    if (side.at)
        write_side(o, text, side, inner);
    if (!alone)
        out(o, "\n%*s}", (int)indent, "");
    return end;
}

void ways_cut(const Ways *ways, Unit *unit)
{
    static const char branch[] = "if (GP_WAY(";
    if (unit->kind != UNIT_CODE || !strstr(unit->text, branch))
        return;
    while (strstr(unit->text, branch)) {
        Out o = out_new(ways->arena);
        const char *from = strstr(unit->text, branch);
        out_text(&o, unit->text, (size_t)(from - unit->text));
        const char *rest = cut_branch(ways, unit->text, from, &o);
        out(&o, "%s", rest);
        unit->text = o.at;
    }
    unit_scan(ways->arena, unit);
}
