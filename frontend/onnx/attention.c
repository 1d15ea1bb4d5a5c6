/* Attention, where it is written out: softmax(q @ k^T * scale + mask) @ v becomes one sdpa, whose
 * memory does not grow with the square of the length.
 *
 * Requires: all statements of the nodes, each lowered into the scratch graphs. Leaves: the second
 * product of each such chain as a call of sdpa; what only it read is dropped with the unused. Only
 * values that nothing else reads are passed over. Linear in the statements. */
#include "frontend/onnx/import.h"

#include <float.h>
#include <string.h>

typedef struct {
    Import *m;
    NameTable *made, *read; /* name -> place of its statement; how often it is read */
} Finder;

typedef struct {
    const Expr *q, *kt, *v, *mask; /* mask: NULL, or added to the scores; bool: which keys count */
    double scale;
} Attention;

/* ---- Who reads what ------------------------------------------------------------------------- */

static void count_reads(NameTable *read, const Expr *expr)
{
    for (; expr; expr = expr->kind == EXPR_BINARY ? expr->right : NULL) {
        if (expr->kind == EXPR_NAME) {
            uint32_t *times = names_at(read, expr->text);
            *times = *times == UINT32_MAX ? 1 : *times + 1;
        } else if (expr->kind == EXPR_CALL || expr->kind == EXPR_LIST) {
            for (size_t i = 0; i < expr->arg.count; i++)
                count_reads(read, expr->arg.at[i].value);
        } else if (expr->left) {
            count_reads(read, expr->left);
        }
    }
}

/* The expression bound to a name, where it is read here alone; else the expression itself. */
static const Expr *resolve(const Finder *f, const Expr *expr)
{
    if (expr->kind != EXPR_NAME || names_find(f->read, expr->text) != 1)
        return expr;
    uint32_t at = names_find(f->made, expr->text);
    return at == UINT32_MAX ? expr : f->m->ast->body.at[at]->value;
}

/* ---- Parts of the chain --------------------------------------------------------------------- */

static bool is_binary(const Expr *expr, const char *op)
{
    return expr->kind == EXPR_BINARY && strcmp(expr->text, op) == 0;
}

static bool is_call(const Expr *expr, const char *op)
{
    return expr->kind == EXPR_CALL && strcmp(expr->text, op) == 0;
}

static bool is_number(const Expr *expr, double *number)
{
    if (expr->kind == EXPR_NEG && is_number(expr->left, number)) {
        *number = -*number;
        return true;
    }
    *number = expr->kind == EXPR_INT ? (double)expr->integer : expr->number;
    return expr->kind == EXPR_INT || expr->kind == EXPR_FLOAT;
}

/* q @ k^T, perhaps times or over a number. */
static bool match_scores(const Finder *f, const Expr *expr, Attention *a)
{
    double number;
    expr = resolve(f, expr);
    a->scale = 1;
    if (is_binary(expr, "div") && is_number(expr->right, &number) && number != 0) {
        a->scale = 1 / number;
        expr = resolve(f, expr->left);
    } else if (is_binary(expr, "mul") && is_number(expr->right, &number) && number != 0) {
        a->scale = number;
        expr = resolve(f, expr->left);
    } else if (is_binary(expr, "mul") && is_number(expr->left, &number) && number != 0) {
        a->scale = number;
        expr = resolve(f, expr->right);
    }
    if (!is_binary(expr, "matmul"))
        return false;
    a->q = expr->left;
    a->kt = expr->right;
    return true;
}

/* where(condition, scores, low), or the other way round, as a mask. */
static bool match_where(const Finder *f, const Expr *expr, Attention *a)
{
    Import *m = f->m;
    double low;
    if (!is_call(expr, "where") || expr->arg.count != 3)
        return false;
    const Expr *condition = expr->arg.at[0].value;
    for (int seen = 1; seen <= 2; seen++) {
        if (!is_number(expr->arg.at[3 - seen].value, &low) || low > -1e30 ||
            !match_scores(f, expr->arg.at[seen].value, a))
            continue;
        const Expr *hidden = seen == 1 ? CALL(m, "not", {condition}) : condition;
        if (low < -FLT_MAX) /* infinite in f32 */
            a->mask = seen == 1 ? condition : CALL(m, "not", {condition});
        else
            a->mask = binary(m, "mul", cast(m, hidden, F32), real(m, low));
        return true;
    }
    return false;
}

/* A mask that is 0 where a condition holds and minus infinity elsewhere is the condition. */
static const Expr *condition_of(const Finder *f, const Expr *mask)
{
    double seen, hidden;
    const Expr *expr = resolve(f, mask);
    if (!is_call(expr, "where") || expr->arg.count != 3 ||
        !is_number(expr->arg.at[1].value, &seen) || !is_number(expr->arg.at[2].value, &hidden))
        return mask;
    const Expr *condition = expr->arg.at[0].value;
    if (seen == 0 && hidden < -FLT_MAX)
        return condition;
    return hidden == 0 && seen < -FLT_MAX ? CALL(f->m, "not", {condition}) : mask;
}

static bool match_masked(const Finder *f, const Expr *expr, Attention *a)
{
    expr = resolve(f, expr);
    if (match_where(f, expr, a))
        return true;
    if (is_binary(expr, "add")) {
        a->mask = condition_of(f, expr->right);
        if (match_scores(f, expr->left, a))
            return true;
        a->mask = condition_of(f, expr->left);
        return match_scores(f, expr->right, a);
    }
    return match_scores(f, expr, a);
}

/* softmax along the last of `rank` axes. */
static const Expr *softmax_of(const Expr *expr, int rank)
{
    if (!is_call(expr, "softmax") || expr->arg.count < 1)
        return NULL;
    for (size_t i = 1; i < expr->arg.count; i++) {
        double axis;
        if (!is_number(expr->arg.at[i].value, &axis) || (axis != -1 && axis != rank - 1))
            return NULL;
    }
    return expr->arg.at[0].value;
}

/* What is 0 where it was NaN: rows that see no key. sdpa has 0 there too. */
static const Expr *without_guard(const Finder *f, const Expr *expr)
{
    double zero;
    if (!is_call(expr, "where") || expr->arg.count != 3 ||
        !is_number(expr->arg.at[1].value, &zero) || zero != 0)
        return expr;
    const Expr *is_nan = resolve(f, expr->arg.at[0].value), *kept = expr->arg.at[2].value;
    const Expr *const name[] = {kept, is_nan->left, is_nan->right};
    if (!is_binary(is_nan, "not_equal"))
        return expr;
    for (int i = 0; i < 3; i++)
        if (name[i]->kind != EXPR_NAME || strcmp(name[i]->text, kept->text) != 0)
            return expr;
    uint32_t at = names_find(f->made, kept->text);
    bool alone = at != UINT32_MAX && names_find(f->read, kept->text) == 3;
    return alone ? f->m->ast->body.at[at]->value : expr;
}

/* ---- The call ------------------------------------------------------------------------------- */

/* The dims of the value of a name. */
static bool look(const Finder *f, const Expr *expr, Tensor *tensor)
{
    *tensor = (Tensor){0};
    return expr->kind == EXPR_NAME && look_up(f->m, expr->text, tensor);
}

/* All have the same axes before the last two, and the mask is no larger than the scores. */
static bool fits(const Finder *f, const Attention *a, int rank)
{
    Tensor q, kt, v, mask;
    if (rank < 3 || rank > 4 || !look(f, a->q, &q) || !look(f, a->kt, &kt) || !look(f, a->v, &v))
        return false;
    if (q.rank != rank || kt.rank != rank || v.rank != rank || q.dtype != F32)
        return false;
    for (int i = 0; i < rank - 2; i++)
        if (q.dim[i] != kt.dim[i] || q.dim[i] != v.dim[i])
            return false;
    if (!a->mask || a->mask->kind != EXPR_NAME)
        return true; /* of a condition, which was no larger than its scores */
    if (!look(f, a->mask, &mask) || mask.rank > rank)
        return false;
    const int64_t scores[] = {q.dim[0], q.dim[rank - 3], q.dim[rank - 2], kt.dim[rank - 1]};
    for (int i = 0; i < mask.rank; i++)
        if (mask.dim[i] != 1 && mask.dim[i] != scores[4 - mask.rank + i])
            return false;
    return mask.dtype == F32 || mask.dtype == BOOL;
}

static const Expr *with_heads(Import *m, const Expr *x, int rank)
{
    return rank == 4 ? x : CALL(m, "unsqueeze", {x}, {integer(m, 0), "axis"});
}

static const Expr *sdpa(Import *m, const Attention *a, int rank)
{
    const Expr *k = CALL(m, "transpose", {a->kt});
    const Expr *y =
        CALL(m, "sdpa", {with_heads(m, a->q, rank)}, {with_heads(m, k, rank)},
             {with_heads(m, a->v, rank)}, {a->mask, "mask"}, {real(m, a->scale), "scale"});
    return rank == 4 ? y : CALL(m, "squeeze", {y}, {integer(m, 0), "axis"});
}

void find_attention(Import *m)
{
    Finder f = {m, names_new(m->arena), names_new(m->arena)};
    const Stmts *body = &m->ast->body;
    for (size_t i = 0; i < body->count; i++) {
        if (body->at[i]->kind == STMT_ASSIGN && body->at[i]->target.count == 1)
            *names_at(f.made, body->at[i]->target.at[0].text) = (uint32_t)i;
        count_reads(f.read, body->at[i]->value);
    }
    for (size_t i = 0; i < body->count && !m->failed; i++) {
        Stmt *stmt = body->at[i];
        Tensor result = {0};
        if (stmt->kind != STMT_ASSIGN || !is_binary(stmt->value, "matmul"))
            continue;
        const Expr *weights = without_guard(&f, resolve(&f, stmt->value->left));
        if (!is_call(weights, "softmax") || !look_up(m, stmt->target.at[0].text, &result))
            continue;
        Attention a = {.v = stmt->value->right};
        const Expr *scores = softmax_of(weights, result.rank);
        if (scores && match_masked(&f, scores, &a) && fits(&f, &a, result.rank))
            stmt->value = sdpa(m, &a, result.rank);
    }
}
