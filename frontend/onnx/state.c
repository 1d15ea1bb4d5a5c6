/* Statements of the tree: made, lowered into the scratch graphs, kept where something needs them.
 */
#include "frontend/onnx/import.h"
#include "frontend/print.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

enum { MOST_IN_TEXT = 64 }; /* numbers of a constant that the text holds */

static const Span here = {0, 0, 0, 0};

/* ---- Names ---------------------------------------------------------------------------------- */

const char *intern(Import *m, const char *text)
{
    return parse_intern(m->parse, text, strlen(text));
}

/* What follows a path or a scope reads best: "/encoder/layer.0/MatMul_output_0". */
static char *identifier(Import *m, const char *name)
{
    char *text = arena_alloc(m->arena, strlen(name) + 3);
    size_t length = 0;
    for (; *name; name++) {
        bool good = isalnum((unsigned char)*name) && (unsigned char)*name < 0x80;
        if (good && !length && isdigit((unsigned char)*name))
            text[length++] = 'v';
        if (good)
            text[length++] = *name;
        else if (length && text[length - 1] != '_')
            text[length++] = '_';
    }
    while (length && text[length - 1] == '_')
        length--;
    text[length] = 0;
    char *tail = strstr(text, "_output_0");
    if (tail && !tail[9] && tail > text)
        *tail = 0;
    size_t most = MAX_NAME - 8;
    return !*text ? arena_printf(m->arena, "v")
           : strlen(text) > most
               ? text + strlen(text) - most + strspn(text + strlen(text) - most, "_0123456789")
               : text;
}

const char *claim(Import *m, const char *wanted)
{
    const char *name = identifier(m, wanted);
    if (!*name || !name_is_plain(name))
        name = "v";
    const char *unique = name;
    uint32_t *count = names_at(m->taken, name);
    while (names_find(m->taken, unique) != UINT32_MAX) {
        count = names_at(m->taken, name);
        if (*count == UINT32_MAX)
            break;
        unique = arena_printf(m->arena, "%s_%u", name, ++*count);
    }
    *names_at(m->taken, unique) = 1;
    return intern(m, unique);
}

const Tensor *find_tensor(const Import *m, const char *name)
{
    uint32_t at = names_find(m->names, name);
    return at == UINT32_MAX ? NULL : m->tensor.at[at];
}

void bind_tensor(Import *m, const char *name, const Tensor *tensor)
{
    uint32_t *at = names_at(m->names, name);
    if (*at == UINT32_MAX) {
        *at = (uint32_t)m->tensor.count;
        ARRAY_PUSH(m->arena, &m->tensor, tensor);
    } else {
        m->tensor.at[*at] = tensor;
    }
}

/* ---- Lowering as it grows ------------------------------------------------------------------- */

Stmt *stmt_make(Import *m, StmtKind kind, const char *name)
{
    Stmt *stmt = stmt_new(m->parse, kind, here);
    stmt->name = (Name){name, here};
    if (kind == STMT_ASSIGN)
        ARRAY_PUSH(m->arena, &stmt->target, stmt->name);
    return stmt;
}

static bool lower_one(Scratch *scratch, Stmt *stmt)
{
    int errors = diag_errors(scratch->diag);
    Stmts one = {.at = &stmt, .count = 1, .capacity = 1};
    lower_body(scratch->lower, scratch->frame, &one);
    return diag_errors(scratch->diag) == errors && !scratch->lower->stop;
}

/* Whether a new value of the scratch graph is known, from those that it is made of. */
static void note_known(Import *m)
{
    const Graph *g = m->scratch[0].graph;
    for (size_t v = m->known_value.count; v < g->value.count; v++) {
        const Value *value = &g->value.at[v];
        bool known = value->kind == VALUE_LITERAL;
        if (value->node != NONE && !m->tainted) {
            const Node *node = &g->node.at[value->node];
            known = !(node->op->flags & OP_RANDOM);
            for (Id i = 0; i < node->uses; i++) {
                Id operand = node_use(g, node, i).value;
                known = known && (operand == NONE || m->known_value.at[operand]);
            }
        }
        ARRAY_PUSH(m->arena, &m->known_value, known);
        ARRAY_PUSH(m->arena, &m->declared_as, 0);
        ARRAY_PUSH(m->arena, &m->content, NULL);
    }
}

bool add_stmt(Import *m, Stmt *stmt)
{
    if (m->failed)
        return false;
    if (!lower_one(&m->scratch[0], stmt)) {
        const Message *why = diag_first(m->scratch[0].diag);
        return refuse(m, "%s", why ? why->text : "the model is too large");
    }
    note_known(m);
    m->tainted = false;
    if (m->scratch[1].lower && !lower_one(&m->scratch[1], stmt))
        m->scratch[1].lower = NULL;
    ARRAY_PUSH(m->arena, &m->ast->body, stmt);
    return true;
}

bool look_up(Import *m, const char *name, Tensor *tensor)
{
    const Binding *binding = frame_find(m->scratch[0].frame, name);
    if (!binding || binding->val.kind != VAL_TENSOR)
        return false;
    const Graph *g = m->scratch[0].graph;
    View view = use_view(g, binding->val.use), other = view;
    if (m->scratch[1].lower) {
        const Binding *same = frame_find(m->scratch[1].frame, name);
        if (same && same->val.kind == VAL_TENSOR)
            other = use_view(m->scratch[1].graph, same->val.use);
    }
    tensor->value = binding->val.use.value;
    tensor->dtype = (Dtype)g->value.at[tensor->value].dtype;
    tensor->rank = view.rank;
    for (int i = 0; i < view.rank; i++) {
        tensor->dim[i] = view.dim[i];
        tensor->other[i] = other.dim[i];
        tensor->open[i] = other.rank == view.rank && other.dim[i] != view.dim[i];
    }
    return true;
}

/* ---- Constants ------------------------------------------------------------------------------ */

static bool any_nan(const OnnxTensor *data)
{
    for (int64_t i = 0; i < data->count; i++)
        if (isnan(onnx_number(data, i)))
            return true;
    return false;
}

/* A list of lists, from place *at on. */
static const Expr *nested(Import *m, const OnnxTensor *data, int axis, int64_t *at)
{
    if (axis == data->rank) {
        int64_t i = (*at)++;
        if (elem_is_float(data->elem))
            return real(m, (double)(float)onnx_number(data, i));
        return data->elem == ELEM_BOOL ? boolean(m, onnx_integer(data, i))
                                       : integer(m, onnx_integer(data, i));
    }
    Arguments items = {0};
    for (int64_t i = 0; i < data->dim[axis]; i++)
        ARRAY_PUSH(m->arena, &items, (Argument){.value = nested(m, data, axis + 1, at)});
    return expr_list(m->parse, here, items);
}

static Type type_of(Import *m, Dtype dtype, int rank, const int64_t *dim)
{
    Type type = {.given = true, .dtype = {intern(m, dtype_name(dtype)), here}};
    for (int i = 0; i < rank; i++)
        ARRAY_PUSH(m->arena, &type.dim, (Argument){.value = integer(m, dim[i])});
    return type;
}

/* The numbers as lists of lists, each an expression of its own. */
static const Expr *nested_numbers(Import *m, const Tensor *constant, int axis, int64_t *at)
{
    if (axis == constant->rank)
        return number_expr(m, &constant->number[(*at)++], constant->dtype);
    Arguments items = {0};
    for (int64_t i = 0; i < constant->dim[axis]; i++)
        ARRAY_PUSH(m->arena, &items,
                   (Argument){.value = nested_numbers(m, constant, axis + 1, at)});
    return expr_list(m->parse, here, items);
}

static const Tensor *declare_numbers(Import *m, const Tensor *constant)
{
    const char *name = claim(m, constant->name);
    Stmt *stmt = stmt_make(m, STMT_CONST, name);
    Tensor *tensor = ARENA_NEW(m->arena, Tensor);
    int64_t at = 0;
    stmt->type = type_of(m, constant->dtype, constant->rank, constant->dim);
    stmt->value = nested_numbers(m, constant, 0, &at);
    m->pinned = true; /* a file of weights would hold it as it is at one size */
    *tensor = *constant;
    if (!add_stmt(m, stmt) || !look_up(m, name, tensor))
        return NULL;
    tensor->expr = word(m, name);
    return tensor;
}

/* Numbers that no free dimension changes, as data. */
static const OnnxTensor *data_of(Import *m, const Tensor *constant)
{
    int64_t count = 1;
    for (int i = 0; i < constant->rank; i++)
        count *= constant->dim[i];
    for (int64_t i = 0; i < count; i++)
        if (constant->number[i].expr)
            return NULL;
    static const int elems[DTYPES] = {[F32] = ELEM_FLOAT,
                                      [I32] = ELEM_INT32,
                                      [I64] = ELEM_INT64,
                                      [U8] = ELEM_UINT8,
                                      [BOOL] = ELEM_BOOL};
    OnnxTensor *data = ARENA_NEW(m->arena, OnnxTensor);
    size_t size = dtype_size(constant->dtype);
    unsigned char *bytes = arena_alloc(m->arena, (size_t)count * size + 1);
    for (int64_t i = 0; i < count; i++) {
        float number = (float)constant->number[i].real;
        int64_t whole = constant->number[i].integer;
        if (constant->dtype == F32)
            memcpy(bytes + (size_t)i * size, &number, size);
        else
            for (size_t k = 0; k < size; k++)
                bytes[(size_t)i * size + k] = (unsigned char)((uint64_t)whole >> 8 * k);
    }
    *data = (OnnxTensor){.name = constant->name,
                         .elem = elems[constant->dtype],
                         .rank = constant->rank,
                         .count = count,
                         .data = bytes,
                         .owned = true};
    memcpy(data->dim, constant->dim, sizeof constant->dim);
    return data;
}

/* The entry of a constant with these numbers. */
static uint32_t *find_small(Import *m, const Tensor *constant, const OnnxTensor *data)
{
    const char *key = dtype_name(constant->dtype);
    for (int i = 0; i < data->rank; i++)
        key = arena_printf(m->arena, "%s,%lld", key, (long long)data->dim[i]);
    for (int64_t i = 0; i < data->count; i++)
        key = elem_is_float(data->elem)
                  ? arena_printf(m->arena, "%s %a", key, onnx_number(data, i))
                  : arena_printf(m->arena, "%s %lld", key, (long long)onnx_integer(data, i));
    return names_at(m->small, key);
}

const Tensor *declare(Import *m, const Tensor *constant)
{
    const OnnxTensor *data = constant->data ? constant->data : data_of(m, constant);
    if (!data)
        return declare_numbers(m, constant);
    bool param = constant->initializer && elem_is_float(constant->elem);
    bool inside = data->count <= MOST_IN_TEXT && !param && !any_nan(data);
    uint32_t *same = inside && !constant->initializer ? find_small(m, constant, data) : NULL;
    if (same && *same != UINT32_MAX)
        return m->declared.at[*same].tensor;
    const char *name = constant->initializer ? intern(m, constant->name) : claim(m, constant->name);
    if (same)
        *same = (uint32_t)m->declared.count;
    Stmt *stmt = stmt_make(m, param ? STMT_PARAM : STMT_CONST, name);
    stmt->type = type_of(m, constant->dtype, data->rank, data->dim);
    stmt->frozen = param;
    int64_t at = 0;
    if (inside)
        stmt->value = nested(m, data, 0, &at);
    Tensor *tensor = ARENA_NEW(m->arena, Tensor);
    *tensor = *constant;
    tensor->data = data;
    if (!add_stmt(m, stmt) || !look_up(m, name, tensor))
        return NULL;
    tensor->expr = word(m, name);
    m->known_value.at[tensor->value] = true;
    ARRAY_PUSH(m->arena, &m->declared,
               (Declared){stmt, tensor, NULL, param ? WEIGHT_FROZEN : WEIGHT_CONST});
    m->declared_as.at[tensor->value] = (Id)m->declared.count;
    return tensor;
}

/* ---- What is needed ------------------------------------------------------------------------- */

typedef struct {
    NameTable *table; /* name -> 1: something reads it */
} Needed;

static void need(Needed *needed, const Expr *expr)
{
    while (expr) {
        if (expr->kind == EXPR_NAME)
            *names_at(needed->table, expr->text) = 1;
        if (expr->kind == EXPR_CALL || expr->kind == EXPR_LIST)
            for (size_t i = 0; i < expr->arg.count; i++)
                need(needed, expr->arg.at[i].value);
        if (expr->kind == EXPR_SLICE)
            for (size_t i = 0; i < expr->subscript.count; i++) {
                const Subscript *s = &expr->subscript.at[i];
                need(needed, s->start);
                need(needed, s->stop);
                need(needed, s->step);
            }
        if (expr->kind == EXPR_BINARY)
            need(needed, expr->right);
        expr = expr->left;
    }
}

static bool is_needed(const Needed *needed, const Stmt *stmt)
{
    if (stmt->kind == STMT_MODEL || stmt->kind == STMT_INPUT || stmt->kind == STMT_OUTPUT)
        return true;
    if (stmt->kind != STMT_ASSIGN)
        return names_find(needed->table, stmt->name.text) != UINT32_MAX;
    for (size_t i = 0; i < stmt->target.count; i++)
        if (names_find(needed->table, stmt->target.at[i].text) != UINT32_MAX)
            return true;
    return false;
}

/* Small constants come before all else that is computed: several layers may read one. */
static void hoist_small(Import *m)
{
    Stmts *body = &m->ast->body, sorted = {0};
    for (int pass = 0; pass < 3; pass++)
        for (size_t i = 0; i < body->count; i++) {
            const Stmt *stmt = body->at[i];
            int kind = stmt->kind == STMT_MODEL || stmt->kind == STMT_INPUT    ? 0
                       : stmt->kind == STMT_CONST && stmt->value && !m->pinned ? 1
                                                                               : 2;
            if (kind == pass)
                ARRAY_PUSH(m->arena, &sorted, body->at[i]);
        }
    *body = sorted;
}

void drop_unused(Import *m)
{
    Needed needed = {names_new(m->arena)};
    Stmts *body = &m->ast->body;
    size_t kept = body->count;
    for (size_t i = body->count; i-- > 0;) /* a name is bound once, before it is read */
        if (is_needed(&needed, body->at[i])) {
            need(&needed, body->at[i]->value);
            body->at[--kept] = body->at[i];
        }
    memmove(body->at, body->at + kept, (body->count - kept) * sizeof *body->at);
    body->count -= kept;
    size_t left = 0;
    for (size_t i = 0; i < m->declared.count; i++)
        if (is_needed(&needed, m->declared.at[i].stmt))
            m->declared.at[left++] = m->declared.at[i];
    m->declared.count = left;
    hoist_small(m);
}
