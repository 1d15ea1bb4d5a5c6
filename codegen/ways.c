/* Kernels choose among ways by shapes that are known here. A branch `if (GP_WAY(name, condition))`
 * of a kernel's text stays as it is where some calls take it and others do not; where all of them
 * take one side, that is what is written, behind a check of the condition. What a condition comes
 * to is said by the kernel's own GP_WAYS, compiled into gplan. */
#include "codegen/ways.h"

#include <string.h>

/* ---- What calls take ------------------------------------------------------------------------- */

static gp_ways ask(const Plan *plan, const Occurrence *o, const Node *node)
{
    const Graph *g = plan->graph;
    gp_ways ways = {0};
    const gp_kernel *kernel = runtime_kernel(node->op->name);
    if (!kernel || !kernel->ways)
        return ways;
    gp_tensor *in = ARENA_ARRAY(g->arena, gp_tensor, node->uses + 1), out[MAX_OUTPUTS];
    gp_setting setting[MAX_ARGS] = {0};
    for (Id i = 0; i < node->uses; i++) {
        Use use = node_use(g, node, i);
        if (use.value == NONE)
            continue;
        View view = access_view(plan, use, access_buffer(plan, o, use.value, i));
        in[i] = tensor_describe((Dtype)g->value.at[use.value].dtype, &view);
    }
    for (Id i = 0; i < node->values; i++) {
        const Cluster *c = &plan->clusters->at[o->cluster];
        const bool epilogue = cluster_has_epilogue(g, plan->clusters, c);
        Id id = epilogue ? plan->clusters->result[c->result] : node_value(node, i);
        Id buffer = access_buffer(plan, o, id, 0);
        View view =
            buffer == NONE ? value_view(&g->value.at[id]) : access_view(plan, use_of(id), buffer);
        out[i] = tensor_describe((Dtype)g->value.at[id].dtype, &view);
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
                    .run = &run};
    kernel->ways(&call, setting, &ways);
    return ways;
}

Ways *ways_of_calls(const Emission *e)
{
    Ways *ways = ARENA_NEW(e->arena, Ways);
    ways->arena = e->arena;
    ways->taken = names_new(e->arena);
    ways->said = names_new(e->arena);
    NameTable *op = names_new(e->arena);
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
        const gp_ways now = ask(e->plan, o, node);
        for (int k = 0; k < now.count; k++) {
            uint32_t *taken = names_at(ways->taken, now.at[k].name);
            *taken = (*taken == NONE ? 0 : *taken) | (uint32_t)now.at[k].can;
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

/* Behind a statement. */
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

/* A statement in the place of the branch it was in: without its braces, by one level less. */
static void write_side(Out *o, Side side)
{
    const char *at = side.at;
    while (*at == ' ' || *at == '\n')
        at++;
    if (*at == '{') {
        at++;
        side.end--;
        at += *at == '\n';
    } else {
        while (at[-1] == ' ') /* as it was indented */
            at--;
    }
    while (side.end > at && (side.end[-1] == ' ' || side.end[-1] == '\n'))
        side.end--;
    for (; at < side.end; at++) {
        for (int i = 0; i < 4 && *at == ' '; i++)
            at++;
        const size_t length = strcspn(at, "\n");
        const size_t some = length < (size_t)(side.end - at) ? length : (size_t)(side.end - at);
        out_text(o, at, some);
        out(o, "\n");
        at += some;
    }
    o->at[--o->length] = 0; /* the line goes on */
}

/* One branch, whose `if` is at `from`. Returns what follows it. */
static const char *cut_branch(const Ways *ways, const char *from, Out *o)
{
    const char *at = from + strlen("if (GP_WAY("), *name_end = at + strcspn(at, ",");
    const char *name = arena_copy(ways->arena, at, (size_t)(name_end - at));
    const char *condition = name_end + 1, *close = token_close(at) - 1;
    while (*condition == ' ' || *condition == '\n')
        condition++;
    const char *text_of = arena_copy(ways->arena, condition, (size_t)(close - condition));
    const uint32_t taken = names_find(ways->taken, name);
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
    out(o, taken == GP_TAKEN ? "GP_PLANNED(%s);" : "GP_PLANNED(!(%s));", text_of);
    const Side side = taken == GP_TAKEN ? yes : no;
    if (side.at) {
        out(o, "\n");
        write_side(o, side);
    }
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
        const char *rest = cut_branch(ways, from, &o);
        out(&o, "%s", rest);
        unit->text = o.at;
    }
    unit_scan(ways->arena, unit);
}
