/* A cluster of elementwise ops as one loop nest, or those after a kernel as a function for it.
 *
 * Axes that lie evenly in every operand are joined first, so most clusters are one loop. A
 * result may take the bytes of an operand of the same element, so there is no `restrict`; the
 * iterations are independent all the same, and the loop says so. */
#include "codegen/loop.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <string.h>

/* ---- What is read and written --------------------------------------------------------------- */

static Id cluster_node(const Loop *l, Id k)
{
    return l->e->plan->clusters->node[l->c->node + k];
}

static int inside(const Loop *l, Id value)
{
    for (Id k = 0; k < l->c->nodes; k++)
        if (l->g->node.at[cluster_node(l, k)].value == value)
            return (int)k;
    return -1;
}

static Access *find_access(Loop *l, Use use)
{
    for (int i = 0; i < l->accesses; i++)
        if (l->access[i].value == use.value && l->access[i].view == use.view &&
            !l->access[i].result)
            return &l->access[i];
    return NULL;
}

static void add_access(Loop *l, Use use, bool result)
{
    const Plan *plan = l->e->plan;
    Id buffer = access_buffer(plan, l->o, use.value, 0);
    assert(l->accesses < MAX_ACCESSES && buffer != NONE);
    View at = access_view(plan, use, buffer);
    Address address = access_address(l->e->api, buffer, &at);
    Id parameter = (Id)l->e->address.count - l->first_address;
    bool shared = false; /* a place that is read twice in different ways: one pointer */
    for (int i = 0; i < l->accesses && !result; i++)
        if (l->access[i].value == use.value && l->access[i].at.offset == at.offset) {
            parameter = l->access[i].parameter;
            shared = true;
        }
    if (!shared)
        emission_address(l->e, address);
    l->access[l->accesses++] = (Access){
        .value = use.value, .view = use.view, .parameter = parameter, .at = at, .result = result};
}

/* The nodes of the loop: all of the cluster's, but for the kernel that an epilogue stands after.
 */
static Id first_node(const Loop *l)
{
    return l->here ? 1 : 0;
}

static void find_accesses(Loop *l)
{
    for (Id k = first_node(l); k < l->c->nodes; k++) {
        const Node *node = &l->g->node.at[cluster_node(l, k)];
        for (Id u = 0; u < node->uses; u++) {
            Use use = node_use(l->g, node, u);
            if (use.value != NONE && l->g->value.at[use.value].kind != VALUE_LITERAL &&
                inside(l, use.value) < 0 && !find_access(l, use))
                add_access(l, use, false);
        }
    }
    for (Id r = 0; r < l->c->results && !l->here; r++)
        add_access(l, use_of(l->e->plan->clusters->result[l->c->result + r]), true);
}

/* ---- The nest ------------------------------------------------------------------------------- */

static bool lies_evenly(const Loop *l, int axis) /* with the next one, in every access */
{
    for (int i = 0; i < l->accesses; i++) {
        const View *at = &l->access[i].at;
        if (at->stride[axis] != at->stride[axis + 1] * at->dim[axis + 1])
            return false;
    }
    return true;
}

static void drop_axis(Loop *l, int axis)
{
    for (int d = axis; d + 1 < l->rank; d++)
        l->dim[d] = l->dim[d + 1];
    for (int i = 0; i < l->accesses; i++) {
        View *at = &l->access[i].at;
        for (int d = axis; d + 1 < l->rank; d++) {
            at->dim[d] = at->dim[d + 1];
            at->stride[d] = at->stride[d + 1];
        }
        at->rank--;
    }
    l->rank--;
}

static void collapse(Loop *l)
{
    const Value *value = &l->g->value.at[l->g->node.at[cluster_node(l, 0)].value];
    l->rank = value->rank;
    memcpy(l->dim, value->dim, sizeof l->dim);
    for (int d = l->rank; d-- > 0;)
        if (l->dim[d] == 1)
            drop_axis(l, d);
    for (int d = l->rank - 1; d-- > 0;)
        if (lies_evenly(l, d)) {
            l->dim[d + 1] *= l->dim[d];
            for (int i = 0; i < l->accesses; i++)
                l->access[i].at.dim[d + 1] = l->dim[d + 1];
            drop_axis(l, d);
        }
}

int64_t loop_total(const Loop *l)
{
    int64_t count = 1;
    for (int d = 0; d < l->rank; d++)
        count *= l->dim[d];
    return count;
}

/* i * 4096 + j * 64 + k, without what is 0. */
void loop_index(const Loop *l, const View *at, int axes)
{
    bool first = true;
    for (int d = 0; d < axes; d++) {
        int64_t stride = at->stride[d];
        if (stride == 0)
            continue;
        const char *sign = first ? (stride < 0 ? "-" : "") : stride < 0 ? " - " : " + ";
        int64_t size = stride < 0 ? -stride : stride;
        out(l->text, "%s%c", sign, LOOP_INDEX[d]);
        if (size != 1)
            out(l->text, " * %lld", (long long)size);
        first = false;
    }
    if (first)
        out(l->text, "0");
}

void loop_indent(const Loop *l, int depth)
{
    out(l->text, "%*s", 4 * depth, "");
}

/* ---- Expressions ---------------------------------------------------------------------------- */

/* bool and u8 are computed as int: that is what C makes of them, and comparing them with 0 is
 * then no mistake in a compiler's eyes. */
static const char *local_type(Dtype dtype)
{
    return dtype == U8 || dtype == BOOL ? "int32_t"
           : dtype_is_narrow(dtype)     ? dtype_row(F32)->type
                                        : dtype_row(dtype)->type;
}

static void write_literal(Loop *l, const Value *value)
{
    if (dtype_is_float((Dtype)value->dtype))
        out_real(l->text, value->literal);
    else
        out(l->text, fabs(value->literal) < 2e9 ? "%.0f" : "INT64_C(%.0f)", value->literal);
}

static void write_element(Loop *l, const Access *a)
{
    out(l->text, "x%u[", a->parameter);
    loop_index(l, &a->at, l->rank);
    out(l->text, "]");
}

static void write_operand(Loop *l, Use use)
{
    const Value *value = &l->g->value.at[use.value];
    int node = inside(l, use.value);
    int local;
    if (node >= 0) {
        assert(use.view == NONE);
        local = l->local[node];
    } else if (value->kind == VALUE_LITERAL && dtype_is_float((Dtype)value->dtype)) {
        write_literal(l, value);
        return;
    } else if (value->kind == VALUE_LITERAL) {
        int i = 0;
        while (l->literal[i] != use.value)
            i++;
        local = l->first_literal + i;
    } else {
        const Access *a = find_access(l, use);
        if (a->local == NO_LOCAL) {
            write_element(l, a);
            return;
        }
        local = a->local;
    }
    if (local == NO_LOCAL)
        out(l->text, "%s", l->here);
    else
        out(l->text, "v%d", local);
}

static void write_setting(Loop *l, const Arg *arg, const Attr *attr)
{
    if (arg->kind == ARG_FLOAT)
        out_real(l->text, attr->number);
    else
        out(l->text, attr->number < 0 ? "(%lld)" : "%lld", (long long)attr->number);
}

/* How often the expression names it: not every op that asks for its element draws numbers too. */
static int mentions(const char *expr, const char *name)
{
    size_t length = strlen(name);
    int count = 0;
    for (const char *at = expr; (at = strstr(at, name)); at += length)
        count += (at == expr || !(isalnum((unsigned char)at[-1]) || at[-1] == '_')) &&
                 !isalnum((unsigned char)at[length]) && at[length] != '_';
    return count;
}

/* How often the expressions of the loop name an operand. */
static int use_mentions(const Loop *l, Id value, Id view)
{
    int count = 0;
    for (Id k = first_node(l); k < l->c->nodes; k++) {
        const Node *node = &l->g->node.at[cluster_node(l, k)];
        for (Id u = 0; u < node->uses; u++) {
            Use use = node_use(l->g, node, u);
            if (use.value == value && use.view == view)
                count += mentions(node->op->expr, (char[]){(char)('a' + u), 0});
        }
    }
    return count;
}

/* Types that expressions take as they lie in memory. */
static bool needs_no_local(Dtype dtype)
{
    return dtype == F32 || dtype == I32 || dtype == I64;
}

static bool draws(const Node *node)
{
    return node->op->flags & OP_RANDOM && mentions(node->op->expr, "key");
}

/* One name out of a row's expression: an operand, a setting, or what random ops may use. */
static void write_name(Loop *l, const Node *node, const char *name, size_t length)
{
    if (length == 1 && *name >= 'a' && *name <= 'e' && (Id)(*name - 'a') < node->uses) {
        write_operand(l, node_use(l->g, node, (Id)(*name - 'a')));
        return;
    }
    for (int i = 0; i < MAX_ARGS && node->op->args[i].name; i++) {
        const Arg *arg = &node->op->args[i];
        if (arg->kind != ARG_TENSOR && strlen(arg->name) == length &&
            memcmp(arg->name, name, length) == 0) {
            write_setting(l, arg, &l->g->attr.at[node->attr + (Id)i]);
            return;
        }
    }
    if (node->op->flags & OP_RANDOM && length == 3 && memcmp(name, "key", 3) == 0)
        out(l->text, "key%d", l->keys);
    else if (node->op->flags & OP_RANDOM && length == 1 && *name == 'i')
        out(l->text, "at");
    else
        out_text(l->text, name, length);
}

static void write_expr(Loop *l, const Node *node)
{
    const char *at = node->op->expr;
    while (*at) {
        size_t length = 0;
        if (isalpha((unsigned char)*at) || *at == '_') {
            while (isalnum((unsigned char)at[length]) || at[length] == '_')
                length++;
            write_name(l, node, at, length);
        } else if (isdigit((unsigned char)*at) || (*at == '.' && isdigit((unsigned char)at[1]))) {
            while (isalnum((unsigned char)at[length]) || at[length] == '.' ||
                   ((at[length] == '+' || at[length] == '-') && strchr("eE", at[length - 1])))
                length++;
            out_text(l->text, at, length);
        } else {
            out_text(l->text, at, length = 1);
        }
        at += length;
    }
}

/* Whether a cast goes by a number that has more digits than a real: it is rounded once. */
static bool is_wide_cast(Dtype from, Dtype to)
{
    return !(dtype_computes(from) && dtype_computes(to)) ||
           (dtype_is_narrow(to) && !dtype_is_real(from));
}

/* To or from a dtype that is only stored; see each.h in the runtime. */
static void write_cast(Loop *l, const Node *node, Dtype from, Dtype to)
{
    const DtypeRow *row = dtype_row(to);
    const char *open = "(", *close = ")";
    emission_need(l->e, "c/stored.h");
    if (to == BOOL)
        close = ") != 0";
    else if (dtype_is_narrow(to))
        open = arena_printf(l->e->arena, "gp_from_%s(gp_to_%s(%s", row->name, row->name,
                            from == I64 ? "gp_odd_f64(" : ""),
        close = from == I64 ? ")))" : "))";
    else if (row->is_float || !dtype_is_float(from))
        open = arena_printf(l->e->arena, "(%s)(", row->type);
    else if (to == I64)
        open = "gp_f64_to_i64(";
    else
        open = arena_printf(l->e->arena, "(%s)gp_within(", row->type),
        close = arena_printf(l->e->arena, ", %.0f, %.0f)", row->low, row->high);
    out(l->text, "%s", open);
    write_expr(l, node);
    out(l->text, "%s", close);
}

/* Whether a node of the loop reads what another one makes, or the nest takes it as a real. */
static bool is_read_inside(const Loop *l, Id value)
{
    if (l->here)
        return true;
    for (Id k = 0; k < l->c->nodes; k++) {
        const Node *node = &l->g->node.at[cluster_node(l, k)];
        for (Id u = 0; u < node->uses; u++)
            if (node_use(l->g, node, u).value == value)
                return true;
    }
    return false;
}

/* From the type of the expression to the dtype of the result; see each.h in the runtime. */
static void write_converted(Loop *l, const Node *node)
{
    static const char *const to[DTYPES] = {
        [I32] = "gp_to_i32(", [I64] = "gp_to_i64(", [U8] = "gp_to_u8("};
    const char *before = "", *after = "";
    Dtype dtype = (Dtype)l->g->value.at[node->value].dtype;
    Dtype first = node->uses ? (Dtype)l->g->value.at[node_use(l->g, node, 0).value].dtype : dtype;
    if (first != dtype && is_wide_cast(first, dtype)) {
        write_cast(l, node, first, dtype);
        return;
    }
    bool from_float = false, from_number = false;
    for (Id u = 0; u < node->uses; u++) {
        Id value = node_use(l->g, node, u).value;
        Dtype operand = value == NONE ? BOOL : (Dtype)l->g->value.at[value].dtype;
        from_float |= dtype_is_float(operand);
        from_number |= operand != BOOL;
    }
    if (to[dtype] && from_float) {
        emission_need(l->e, "c/scalar.h");
        before = to[dtype];
        after = ")";
    } else if (dtype_is_narrow(dtype) && is_read_inside(l, node->value)) {
        before = "gp_round_to(";
        after = arena_printf(l->e->arena, ", GP_%s)", dtype_row(dtype)->id);
    } else if (dtype == BOOL && from_number && !(node->op->flags & OP_TO_BOOL)) {
        before = "(";
        after = ") != 0";
    } else if (dtype == U8) {
        before = "(uint8_t)(";
        after = ")";
    }
    out(l->text, "%s", before);
    write_expr(l, node);
    out(l->text, "%s", after);
}

/* What does not change along the last axis is read before the loop over it. */
static bool is_fixed(const Loop *l, const Access *a)
{
    return l->rank > 0 && a->at.stride[l->rank - 1] == 0;
}

static void write_load(Loop *l, Access *a, int depth)
{
    Dtype dtype = (Dtype)l->g->value.at[a->value].dtype;
    a->local = NO_LOCAL;
    if (!is_fixed(l, a) && needs_no_local(dtype) && use_mentions(l, a->value, a->view) == 1)
        return;
    a->local = l->locals++;
    loop_indent(l, depth);
    const bool narrow = dtype_is_narrow(dtype);
    out(l->text, "const %s v%d = ", local_type(dtype), a->local);
    out(l->text, narrow ? "gp_from_%s(" : "", dtype_name(dtype));
    write_element(l, a);
    out(l->text, narrow ? ");\n" : ";\n");
}

void loop_loads(Loop *l, bool fixed, int depth)
{
    for (int i = 0; i < l->accesses; i++)
        if (!l->access[i].result && is_fixed(l, &l->access[i]) == fixed)
            write_load(l, &l->access[i], depth);
}

/* Integers as literals get a name, since `v0 && 1` looks like a mistake to a compiler. */
void loop_literals(Loop *l, int depth)
{
    l->first_literal = l->locals;
    for (Id k = first_node(l); k < l->c->nodes; k++) {
        const Node *node = &l->g->node.at[cluster_node(l, k)];
        for (Id u = 0; u < node->uses; u++) {
            Id id = node_use(l->g, node, u).value;
            const Value *value = id == NONE ? NULL : &l->g->value.at[id];
            bool known = !value || value->kind != VALUE_LITERAL ||
                         dtype_is_float((Dtype)value->dtype) ||
                         !mentions(node->op->expr, (char[]){(char)('a' + u), 0});
            for (int i = 0; i < l->literals; i++)
                known |= l->literal[i] == id;
            if (known)
                continue;
            l->literal[l->literals++] = id;
            loop_indent(l, depth);
            out(l->text, "const %s v%d = ", local_type((Dtype)value->dtype), l->locals++);
            write_literal(l, value);
            out(l->text, ";\n");
        }
    }
}

/* The result of a loop that has one, in memory; NULL where an epilogue replaces what is there. */
static const Access *only_result(const Loop *l)
{
    for (int i = 0; i < l->accesses && !l->here; i++)
        if (l->access[i].result)
            return &l->access[i];
    return NULL;
}

/* Whether what the last node computes is all that is stored: then it needs no name. All operands
 * are read before anything is stored, since a result may lie on one of them. */
static bool makes_one(const Loop *l)
{
    const Value *last = &l->g->value.at[l->g->node.at[cluster_node(l, l->c->nodes - 1)].value];
    return l->here || (l->c->results == 1 && needs_no_local((Dtype)last->dtype) &&
                       inside(l, only_result(l)->value) + 1 == (int)l->c->nodes);
}

static void write_result(Loop *l, const Access *a)
{
    if (!a || l->aside)
        out(l->text, "%s", a ? l->aside : l->here);
    else
        write_element(l, a);
}

void loop_element(Loop *l, int depth)
{
    loop_loads(l, false, depth);
    if (l->random) {
        loop_indent(l, depth);
        out(l->text, "const int64_t at = ");
        View dense = {.rank = (uint8_t)l->rank};
        int64_t stride = 1;
        for (int d = l->rank; d-- > 0; stride *= l->dim[d])
            dense.stride[d] = stride;
        if (l->flat)
            out(l->text, "%s", l->flat);
        else
            loop_index(l, &dense, l->rank);
        out(l->text, ";\n");
    }
    const Value *made = &l->g->value.at[l->g->node.at[cluster_node(l, 0)].value];
    const bool narrow = dtype_is_narrow((Dtype)made->dtype);
    if (l->here && use_mentions(l, l->g->node.at[cluster_node(l, 0)].value, NONE) == 1 && !narrow) {
        l->local[0] = NO_LOCAL;
    } else if (l->here) {
        l->local[0] = l->locals++;
        loop_indent(l, depth);
        out(l->text, narrow ? "const %s v%d = gp_round_to(%s, GP_%s);\n" : "const %s v%d = %s;\n",
            dtype_row(F32)->type, l->local[0], l->here, dtype_row((Dtype)made->dtype)->id);
    }
    for (Id k = first_node(l); k < l->c->nodes; k++) {
        const Node *node = &l->g->node.at[cluster_node(l, k)];
        size_t line = l->text->length;
        loop_indent(l, depth);
        if (k + 1 == l->c->nodes && makes_one(l))
            write_result(l, only_result(l));
        else
            out(l->text, "const %s v%d", local_type((Dtype)l->g->value.at[node->value].dtype),
                l->locals);
        out(l->text, " = ");
        write_converted(l, node);
        l->keys += draws(node);
        l->local[k] = l->locals++;
        out(l->text, ";\n");
        out_fold(l->text, line);
    }
    for (int i = 0; i < l->accesses && !makes_one(l); i++) {
        const Access *a = &l->access[i];
        if (!a->result)
            continue;
        Dtype dtype = (Dtype)l->g->value.at[a->value].dtype;
        loop_indent(l, depth);
        write_result(l, a);
        const int local = l->local[inside(l, a->value)];
        if (dtype_is_narrow(dtype))
            out(l->text, " = gp_%s(v%d);\n", dtype_name(dtype), local);
        else
            out(l->text, " = %sv%d;\n", dtype == U8 || dtype == BOOL ? "(uint8_t)" : "", local);
    }
}

void loop_body(Loop *l, int depth)
{
    Out *kept = l->text, body = out_new(l->e->arena);
    l->text = &body;
    loop_element(l, depth);
    l->text = kept;
    bool one = strchr(body.at, ';') == body.at + body.length - 2;
    out(l->text, one ? "\n%s" : " {\n%s", body.at);
    if (!one)
        out(l->text, "%*s}\n", 4 * (depth - 1), "");
}

/* ---- The function --------------------------------------------------------------------------- */

static Loop loop_new(Emission *e, const Occurrence *o, Out *text, const char *here)
{
    Loop l = {.e = e,
              .g = e->plan->graph,
              .o = o,
              .c = &e->plan->clusters->at[o->cluster],
              .text = text,
              .here = here,
              .first_address = (Id)e->address.count};
    Id uses = 0;
    emission_need(e, "c/math.h");
    emission_need(e, "c/narrow.h");
    for (Id k = first_node(&l); k < l.c->nodes; k++) {
        const Node *node = &l.g->node.at[cluster_node(&l, k)];
        uses += node->uses;
        l.random |= (node->op->flags & OP_RANDOM) != 0;
        l.run |= mentions(node->op->expr, "run") > 0;
        if (node->op->kernel) /* what its expressions call */
            emission_need(e, arena_printf(e->arena, "c/%s.h", node->op->kernel));
    }
    l.local = ARENA_ARRAY(e->arena, int, l.c->nodes);
    l.literal = ARENA_ARRAY(e->arena, Id, uses);
    find_accesses(&l);
    collapse(&l);
    return l;
}

/* Pointers, then keys of random numbers. */
static void list_parameters(Loop *l)
{
    Id next = 0;
    int keys = 0;
    for (int i = 0; i < l->accesses; i++) {
        const Access *a = &l->access[i];
        const char *type = dtype_row((Dtype)l->g->value.at[a->value].dtype)->type;
        if (a->parameter != next)
            continue;
        Parameter p = {arena_printf(l->e->arena, "%s%s *", a->result ? "" : "const ", type),
                       arena_printf(l->e->arena, "x%u", next++), true};
        ARRAY_PUSH(l->e->arena, &l->parameter, p);
    }
    for (Id k = first_node(l); k < l->c->nodes; k++) {
        const Node *node = &l->g->node.at[cluster_node(l, k)];
        if (!draws(node))
            continue;
        Parameter p = {"uint64_t ", arena_printf(l->e->arena, "key%d", keys++), false};
        ARRAY_PUSH(l->e->arena, &l->parameter, p);
        emission_address(l->e,
                         (Address){AT_NUMBER, NONE, key_of(node->stream), 0, NONE, "key", false});
    }
}

void loop_write(Emission *e, const Occurrence *o, Out *text)
{
    Loop l = loop_new(e, o, text, NULL);
    list_parameters(&l);
    out(text, "(const gp_run *run");
    for (size_t i = 0; i < l.parameter.count; i++)
        out(text, ", %s%s", l.parameter.at[i].type, l.parameter.at[i].name);
    if (e->dialect->counts && l.rank <= 1) {
        out(text, ", int64_t count");
        emission_address(
            e, (Address){AT_NUMBER, NONE, (uint64_t)loop_total(&l), 0, NONE, "count", false});
    }
    out(text, ")\n{\n");
    e->dialect->nest(&l);
    out(text, "}\n");
}

/* How wide the rows are, where that is all that is said of the shape: a bias for each column. */
static int64_t only_width(const Loop *l)
{
    for (int i = 0; i < l->accesses; i++)
        for (int d = 0; d + 1 < l->rank; d++)
            if (l->access[i].at.stride[d] != 0)
                return 0;
    return l->rank > 1 && !l->run ? (int64_t)l->dim[l->rank - 1] : 0;
}

/* Epilogues that differ in the width of rows alone are one, which is given the width: the address
 * of it among the arguments of the kernel's function. */
static const char *take_width(Emission *e, const Loop *l, int64_t width, CallShape *kernel)
{
    CallShape shape = {0};
    Out marked = out_new(e->arena);
    Loop other = *l;
    other.text = &marked;
    other.width = shape_number(e->arena, &shape, width);
    out(&marked, "%s", l->text->at);
    loop_epilogue_c(&other);
    e->epilogue = key_of(marked.at);
    if (e->notes)
        shapes_note(e, marked.at, &shape);
    shapes_choose(e, marked.at, &shape);
    const char *number = shape_number(e->arena, kernel, width);
    return shape.arguments ? number : NULL;
}

/* The kernel hands on an array: the run, then what the epilogue is given; keys and the width of
 * rows by their address. */
const char *loop_epilogue(Emission *e, const Occurrence *o, Out *parameters, CallShape *shape)
{
    Out given = out_new(e->arena);
    Out body = out_new(e->arena);
    Loop l = loop_new(e, o, &body, "y[i]");
    list_parameters(&l);
    out(&body, "(const void *args, gp_real *y, int64_t first, int64_t count)\n{\n");
    out(&body, l.parameter.count || l.run ? "    const void *const *given = args;\n"
                                          : "    (void)args;\n");
    if (l.run)
        out(&body, "    const gp_run *run = given[0];\n");
    for (size_t i = 0; i < l.parameter.count; i++) {
        const Parameter *p = &l.parameter.at[i];
        out(parameters, ", %s%s", p->type, p->name);
        out(&given, ", %s%s", p->pointer ? "" : "&", p->name);
        if (p->pointer)
            out(&body, "    %s%s = given[%zu];\n", p->type, p->name, i + 1);
        else
            out(&body, "    const %s%s = *(const %s*)given[%zu];\n", p->type, p->name, p->type,
                i + 1);
    }
    const int64_t width = l.parameter.count ? only_width(&l) : 0;
    const char *taken = width > 1 ? take_width(e, &l, width, shape) : NULL;
    if (taken) {
        out(&given, ", &%s", taken);
        out(&body, "    const int64_t n = *(const int64_t *)given[%zu];\n", l.parameter.count + 1);
        l.width = "n";
    }
    loop_epilogue_c(&l);
    out(&body, "}\n");
    if (width <= 1)
        e->epilogue = key_of(body.at);
    return arena_printf(e->arena, "GP_EPILOGUE(%s, run%s)", emission_epilogue(e, l.c, &body),
                        given.at);
}
