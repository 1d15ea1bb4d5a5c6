/* Building the syntax tree. See ast.h. */
#include "frontend/ast.h"
#include "frontend/base/names.h"

Expr *expr_new(Parse *p, ExprKind kind, Span span)
{
    Expr *expr = ARENA_NEW(p->arena, Expr);
    expr->kind = kind;
    expr->span = span;
    expr->depth = 1;
    return expr;
}

/* The tree stays shallow enough to recurse over. */
static void deepen(Parse *p, Expr *expr, const Expr *child)
{
    if (child && child->depth >= expr->depth)
        expr->depth = (uint16_t)(child->depth + 1);
    if (expr->depth > MAX_DEPTH && !p->fatal) {
        diag_error(p->diag, expr->span, "the expression is nested too deeply");
        diag_hint(p->diag, "bind parts of it to names");
        p->fatal = true;
    }
    if (p->fatal)
        expr->depth = 1;
}

Expr *expr_unary(Parse *p, ExprKind kind, Span span, const Expr *left)
{
    Expr *expr = expr_new(p, kind, span);
    expr->left = left;
    deepen(p, expr, left);
    return expr;
}

static Span span(Span from, Span to)
{
    return (Span){from.line, from.column, to.end_line, to.end};
}

Expr *expr_binary(Parse *p, const char *op, Span op_span, const Expr *left, const Expr *right)
{
    Expr *expr = expr_new(p, EXPR_BINARY, span(left->span, right->span));
    expr->text = op;
    expr->text_span = op_span;
    expr->left = left;
    expr->right = right;
    /* A chain to the left, a + b + c, is walked in a loop and may be of any length. */
    if (left->kind == EXPR_BINARY)
        expr->depth = left->depth;
    else
        deepen(p, expr, left);
    deepen(p, expr, right);
    return expr;
}

static void take_arguments(Parse *p, Expr *expr, Arguments args)
{
    expr->arg = args;
    for (size_t i = 0; i < args.count; i++)
        deepen(p, expr, args.at[i].value);
}

Expr *expr_call(Parse *p, Name callee, Span span, Arguments args)
{
    Expr *expr = expr_new(p, EXPR_CALL, span);
    expr->text = callee.text;
    expr->text_span = callee.span;
    take_arguments(p, expr, args);
    return expr;
}

Expr *expr_list(Parse *p, Span span, Arguments items)
{
    Expr *expr = expr_new(p, EXPR_LIST, span);
    take_arguments(p, expr, items);
    return expr;
}

Expr *expr_slice(Parse *p, Span span, const Expr *left, Subscripts subscripts)
{
    Expr *expr = expr_unary(p, EXPR_SLICE, span, left);
    expr->subscript = subscripts;
    for (size_t i = 0; i < subscripts.count; i++) {
        deepen(p, expr, subscripts.at[i].start);
        deepen(p, expr, subscripts.at[i].stop);
        deepen(p, expr, subscripts.at[i].step);
    }
    return expr;
}

Stmt *stmt_new(Parse *p, StmtKind kind, Span span)
{
    Stmt *stmt = ARENA_NEW(p->arena, Stmt);
    stmt->kind = kind;
    stmt->span = span;
    return stmt;
}

static void count_name(NameTable *table, const char *name)
{
    uint32_t *count = names_at(table, name);
    *count = *count == UINT32_MAX ? 1 : *count + 1;
}

static void count_bindings(NameTable *table, const Stmts *body)
{
    for (size_t i = 0; i < body->count; i++) {
        const Stmt *stmt = body->at[i];
        if (stmt->kind == STMT_ASSIGN)
            for (size_t j = 0; j < stmt->target.count; j++)
                count_name(table, stmt->target.at[j].text);
        bool binds = stmt->kind == STMT_INPUT || stmt->kind == STMT_PARAM ||
                     stmt->kind == STMT_CONST || stmt->kind == STMT_REPEAT ||
                     stmt->kind == STMT_METRIC || (stmt->kind == STMT_OUTPUT && stmt->value);
        if (binds)
            count_name(table, stmt->name.text);
        if (stmt->kind == STMT_REPEAT)
            count_bindings(table, &stmt->body);
    }
}

static void mark(const NameTable *table, const Stmts *body)
{
    for (size_t i = 0; i < body->count; i++) {
        Stmt *stmt = body->at[i];
        if (stmt->kind == STMT_ASSIGN && stmt->target.count == 1)
            stmt->own_name = names_find(table, stmt->target.at[0].text) == 1;
        if (stmt->kind == STMT_METRIC || (stmt->kind == STMT_OUTPUT && stmt->value))
            stmt->own_name = names_find(table, stmt->name.text) == 1;
        if (stmt->kind == STMT_REPEAT)
            mark(table, &stmt->body);
    }
}

/* Says which assignments of a model's or a block's body give a name that is bound there once:
 * such a name can name the layer it is bound to. */
void mark_own_names(Arena *arena, const Arguments *args, const Stmts *body)
{
    NameTable *table = names_new(arena);
    for (size_t i = 0; args && i < args->count; i++)
        count_name(table, args->at[i].name.text);
    count_bindings(table, body);
    mark(table, body);
}
