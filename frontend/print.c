/* See print.h. */
#include "frontend/print.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool name_is_plain(const char *name)
{
    if (!isalpha((unsigned char)*name) && *name != '_')
        return false;
    size_t length = strlen(name);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)name[i] >= 0x80 || (!isalnum((unsigned char)name[i]) && name[i] != '_'))
            return false;
    return length <= MAX_NAME && strcmp(name, "true") != 0 && strcmp(name, "false") != 0;
}

static void put_quoted(const char *text, FILE *to)
{
    fputc('"', to);
    for (; *text; text++) {
        if (strchr("\"\\{}", *text))
            fputc('\\', to);
        fputc(*text == SPELL_OPEN ? '{' : *text == SPELL_CLOSE ? '}' : *text, to);
    }
    fputc('"', to);
}

static void put_name(const char *name, FILE *to)
{
    if (name_is_plain(name))
        fputs(name, to);
    else
        put_quoted(name, to);
}

/* The shortest digits that read back as the same number, with a digit on both sides of a point. */
static void put_real(double number, FILE *to)
{
    char text[40];
    int digits = 6;
    do
        snprintf(text, sizeof text, "%.*g", digits++, number);
    while (strtod(text, NULL) != number && digits <= 17);
    fputs(text, to);
    if (!strpbrk(text, ".e"))
        fputs(".0", to);
}

/* ---- Expressions ---------------------------------------------------------------------------- */

enum { LOOSE, COMPARE, SUM, PRODUCT, UNARY, TIGHT };

static const struct {
    const char *op, *sign;
    int level;
} signs[] = {
    {"equal", "==", COMPARE},  {"not_equal", "!=", COMPARE},
    {"less", "<", COMPARE},    {"less_equal", "<=", COMPARE},
    {"greater", ">", COMPARE}, {"greater_equal", ">=", COMPARE},
    {"add", "+", SUM},         {"sub", "-", SUM},
    {"mul", "*", PRODUCT},     {"div", "/", PRODUCT},
    {"matmul", "@", PRODUCT},
};
enum { SIGNS = sizeof signs / sizeof *signs };

static size_t find_sign(const char *op)
{
    size_t i = 0;
    while (i + 1 < SIGNS && strcmp(signs[i].op, op) != 0)
        i++;
    return i;
}

static int level_of(const Expr *expr)
{
    if (expr->kind == EXPR_BINARY)
        return signs[find_sign(expr->text)].level;
    bool negative = (expr->kind == EXPR_INT && expr->integer < 0) ||
                    (expr->kind == EXPR_FLOAT && signbit(expr->number));
    return expr->kind == EXPR_NEG || negative ? UNARY : TIGHT;
}

static void put(const Expr *expr, int level, FILE *to);

static void put_arguments(const Arguments *args, FILE *to)
{
    for (size_t i = 0; i < args->count; i++) {
        fputs(i ? ", " : "", to);
        if (args->at[i].name.text)
            fprintf(to, "%s = ", args->at[i].name.text);
        put(args->at[i].value, LOOSE, to);
    }
}

static void put_subscripts(const Subscripts *subscripts, FILE *to)
{
    for (size_t i = 0; i < subscripts->count; i++) {
        const Subscript *s = &subscripts->at[i];
        fputs(i ? ", " : "", to);
        if (s->kind == SUBSCRIPT_ELLIPSIS)
            fputs("...", to);
        if (s->start)
            put(s->start, LOOSE, to);
        if (s->kind == SUBSCRIPT_RANGE)
            fputc(':', to);
        if (s->stop)
            put(s->stop, LOOSE, to);
        if (s->step) {
            fputc(':', to);
            put(s->step, LOOSE, to);
        }
    }
}

/* A chain to the left may be long: a loop, from the innermost out. */
static void put_chain(const Expr *expr, FILE *to)
{
    size_t length = 0;
    int level = level_of(expr);
    const Expr *first = expr;
    while (first->kind == EXPR_BINARY && level_of(first) == level) {
        first = first->left;
        length++;
        if (level == COMPARE)
            break;
    }
    const Expr **chain = memory_take(length * sizeof *chain);
    for (size_t i = length; i-- > 0; expr = expr->left)
        chain[i] = expr;
    put(first, level == COMPARE ? SUM : level, to);
    for (size_t i = 0; i < length; i++) {
        const Expr *at = chain[i];
        fprintf(to, " %s ", signs[find_sign(at->text)].sign);
        put(at->right, level + 1, to);
    }
    free(chain);
}

static void put_inner(const Expr *expr, FILE *to)
{
    switch (expr->kind) {
    case EXPR_NAME:
        if (strcmp(expr->text, "8bit") == 0) /* the one word that begins with a digit */
            fputs(expr->text, to);
        else
            put_name(expr->text, to);
        break;
    case EXPR_INT:
        fprintf(to, "%" PRId64, expr->integer);
        break;
    case EXPR_FLOAT:
        put_real(expr->number, to);
        break;
    case EXPR_BOOL:
        fputs(expr->integer ? "true" : "false", to);
        break;
    case EXPR_STRING:
        put_quoted(expr->text, to);
        break;
    case EXPR_LIST:
        fputc('[', to);
        put_arguments(&expr->arg, to);
        fputc(']', to);
        break;
    case EXPR_CALL:
        fprintf(to, "%s(", expr->text);
        put_arguments(&expr->arg, to);
        fputc(')', to);
        break;
    case EXPR_BINARY:
        put_chain(expr, to);
        break;
    case EXPR_NEG:
        fputc('-', to);
        put(expr->left, UNARY, to);
        break;
    case EXPR_SLICE:
        put(expr->left, TIGHT, to);
        fputc('[', to);
        put_subscripts(&expr->subscript, to);
        fputc(']', to);
        break;
    }
}

static void put(const Expr *expr, int level, FILE *to)
{
    bool bracket = level_of(expr) < level;
    fputs(bracket ? "(" : "", to);
    put_inner(expr, to);
    fputs(bracket ? ")" : "", to);
}

/* ---- Statements ----------------------------------------------------------------------------- */

static void put_type(const Type *type, FILE *to)
{
    if (!type->given)
        return;
    fputs(" : ", to);
    if (type->dtype.text)
        fputs(type->dtype.text, to);
    if (type->dim.count || !type->dtype.text) {
        fputc('[', to);
        put_arguments(&type->dim, to);
        fputc(']', to);
    }
}

static void put_value(const Expr *value, FILE *to)
{
    if (value) {
        fputs(" = ", to);
        put(value, LOOSE, to);
    }
}

static void put_parameters(const Stmt *stmt, bool always, FILE *to)
{
    if (!stmt->arg.count && !always)
        return;
    fputc('(', to);
    for (size_t i = 0; i < stmt->arg.count; i++) {
        const Argument *arg = &stmt->arg.at[i];
        fprintf(to, "%s%s%s%s", i ? ", " : "", arg->mark.text ? arg->mark.text : "",
                arg->mark.text ? " " : "", arg->name.text);
        put_value(arg->value, to);
    }
    fputc(')', to);
}

static void put_names(const Names *names, FILE *to)
{
    for (size_t i = 0; i < names->count; i++) {
        fputs(i ? ", " : "", to);
        put_name(names->at[i].text, to);
    }
}

static void put_body(const Stmts *body, int depth, FILE *to);

static void put_declared(const char *keyword, const Stmt *stmt, FILE *to)
{
    fputs(keyword, to);
    put_name(stmt->name.text, to);
    put_type(&stmt->type, to);
    put_value(stmt->value, to);
}

static void put_stmt(const Stmt *stmt, int depth, FILE *to)
{
    switch (stmt->kind) {
    case STMT_MODEL:
        fprintf(to, "model %s", stmt->name.text);
        put_parameters(stmt, false, to);
        break;
    case STMT_INPUT:
        put_declared("input ", stmt, to);
        break;
    case STMT_PARAM:
        put_declared(stmt->frozen ? "frozen param " : "param ", stmt, to);
        break;
    case STMT_CONST:
        put_declared("const ", stmt, to);
        break;
    case STMT_OUTPUT:
        put_declared("output ", stmt, to);
        break;
    case STMT_METRIC:
        put_declared("metric ", stmt, to);
        break;
    case STMT_DATA:
        fprintf(to, "data %s = %s(", stmt->name.text, stmt->format.text);
        put_arguments(&stmt->arg, to);
        fputs(") -> ", to);
        put_names(&stmt->target, to);
        break;
    case STMT_ASSIGN:
        put_names(&stmt->target, to);
        put_value(stmt->value, to);
        break;
    case STMT_BLOCK:
        fprintf(to, "%s%sblock %s", stmt->shared ? "shared " : "",
                stmt->hint == HINT_CHECKPOINT ? "checkpoint " : "", stmt->name.text);
        put_parameters(stmt, true, to);
        put_body(&stmt->body, depth, to);
        break;
    case STMT_REPEAT:
        fprintf(to, "repeat %s in ", stmt->name.text);
        put(stmt->value, LOOSE, to);
        fputs("..", to);
        put(stmt->stop, LOOSE, to);
        put_body(&stmt->body, depth, to);
        break;
    case STMT_TRAIN:
        fputs("train ", to);
        put(stmt->value, LOOSE, to);
        fprintf(to, " using %s", stmt->name.text);
        fputs("(", to);
        put_arguments(&stmt->arg, to);
        fputs(")", to);
        if (stmt->body.count)
            put_body(&stmt->body, depth, to);
        break;
    case STMT_RETURN:
        fputs("return ", to);
        put_arguments(&stmt->arg, to);
        break;
    case STMT_HINT:
        fputs(stmt->hint == HINT_KEEP ? "keep " : "recompute ", to);
        put_names(&stmt->target, to);
        break;
    case STMT_GROUP:
        fputs("group ", to);
        put_quoted(stmt->name.text, to);
        put_body(&stmt->body, depth, to);
        break;
    case STMT_PRECISION:
        fputs("precision ", to);
        put_quoted(stmt->name.text, to);
        fputs(" = ", to);
        put(stmt->value, LOOSE, to);
        break;
    case STMT_EXPR:
        put(stmt->value, LOOSE, to);
        break;
    }
}

/* Statements of one section are kept together. */
static int section(const Stmt *stmt)
{
    bool inner = stmt->kind == STMT_PARAM || stmt->kind == STMT_CONST || stmt->kind == STMT_HINT;
    return inner ? STMT_ASSIGN : (int)stmt->kind;
}

static void put_statements(const Stmts *body, int depth, FILE *to)
{
    for (size_t i = 0; i < body->count; i++) {
        bool apart = i && !depth && section(body->at[i]) != section(body->at[i - 1]);
        fprintf(to, "%s%*s", apart ? "\n" : "", 2 * depth, "");
        put_stmt(body->at[i], depth, to);
        fputc('\n', to);
    }
}

static void put_body(const Stmts *body, int depth, FILE *to)
{
    fputs(" {\n", to);
    put_statements(body, depth + 1, to);
    fprintf(to, "%*s}", 2 * depth, "");
}

void ast_print(const Ast *ast, FILE *to)
{
    put_statements(&ast->body, 0, to);
}
