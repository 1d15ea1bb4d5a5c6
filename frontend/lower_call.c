/* Calls: of an op, which becomes nodes, and of a block, which is lowered afresh each time. */
#include "frontend/lower.h"

#include <string.h>

/* ---- Ops ------------------------------------------------------------------------------------ */

static bool makes_parameters(const OpRow *op)
{
    if (op->params)
        return true;
    for (int i = 0; i < MAX_ARGS && op->args[i].name; i++)
        if (op->args[i].flags & ARG_PARAM)
            return true;
    return false;
}

static Val finish_call(Lower *l, Frame *frame, Call *c, const Bound *bound, const char *given)
{
    bool keyed = makes_parameters(c->op) || c->op->flags & OP_RANDOM;
    c->name = layer_name(l, frame, c->op->name, keyed, bound, given, c->span);
    if (!c->name)
        return POISON;
    int errors = diag_errors(l->diag);
    if (!call_finish(l->g, c) || diag_errors(l->diag) > errors) {
        explain_iteration(l, frame);
        return POISON;
    }
    if (!c->op->build || c->result.count == 1) /* further outputs are statistics for gradients */
        return val_tensor(c->result.at[0]);
    Val *item = ARENA_ARRAY(l->arena, Val, c->result.count + 1);
    for (size_t i = 0; i < c->result.count; i++)
        item[i] = val_tensor(c->result.at[i]);
    return (Val){.kind = VAL_TUPLE, .count = (uint32_t)c->result.count, .item = item};
}

static Call begin(Lower *l, const Frame *frame, const char *op, Span span)
{
    Call from = {.span = span, .scope = frame->scope, .name = ""};
    return call_begin(l->g, &from, op);
}

Val call_operator(Lower *l, Frame *frame, const Expr *expr, const char *op, int count,
                  const Val *operands, const Span *spans, const Bound *bound)
{
    Call made = begin(l, frame, op, expr->span), *c = &made;
    c->use_span = ARENA_ARRAY(l->arena, Span, (size_t)count);
    memcpy(c->use_span, spans, (size_t)count * sizeof *spans);
    for (int i = 0; i < count; i++)
        call_use(l->g, c,
                 operands[i].kind == VAL_TENSOR ? operands[i].use : literal_of(l, operands[i]));
    return finish_call(l, frame, c, bound, NULL);
}

static bool has_words(const OpRow *op)
{
    for (int i = 0; i < MAX_ARGS && op->args[i].name; i++)
        if (op->args[i].kind != ARG_TENSOR && op->args[i].words)
            return true;
    return false;
}

/* Whether a bare name is a word here, and not the value that it may be bound to. */
static bool is_word(const Frame *frame, const OpRow *op, const Argument *argument)
{
    if (argument->value->kind != EXPR_NAME)
        return false;
    const char *text = argument->value->text;
    bool bound = frame_find(frame, text) != NULL;
    int i = argument->name.text ? op_arg(op, argument->name.text) : -1;
    if (i < 0)
        return !bound && (has_words(op) || strcmp(text, "none") == 0);
    const Arg *arg = &op->args[i];
    if (arg->kind == ARG_TENSOR)
        return !bound && strcmp(text, "none") == 0;
    if (word_place(arg->words, text) >= 0 || (arg->fallback && strcmp(arg->fallback, text) == 0))
        return true;
    return !bound && arg->words;
}

static Given evaluate(Lower *l, Frame *frame, const Argument *argument, bool word)
{
    Given given = {.span = argument->value->span, .name = argument->name};
    const Expr *value = argument->value;
    bool named = argument->name.text && strcmp(argument->name.text, "name") == 0;
    if (word)
        given.val = (Val){.kind = VAL_WORD, .text = value->text};
    else if (named &&
             value->kind == EXPR_STRING) /* what it will be called, not what has the name */
        given.val = (Val){.kind = VAL_STRING, .text = value->text};
    else
        given.val = eval(l, frame, value, NULL);
    return given;
}

/* Takes name = "..." out of the arguments; NULL if it is not given. */
static const char *take_name(Lower *l, Frame *frame, Given *given, size_t *count, bool *good)
{
    for (size_t i = 0; i < *count; i++) {
        if (!given[i].name.text || strcmp(given[i].name.text, "name") != 0)
            continue;
        Val val = given[i].val;
        bool plain = val.kind == VAL_STRING && *val.text && !strpbrk(val.text, "*?");
        if (!plain && val.kind != VAL_POISON)
            lower_error(l, frame, given[i].span, "name must be a string, as in name = \"fc1\"");
        *good = plain;
        memmove(&given[i], &given[i + 1], (*count - i - 1) * sizeof *given);
        --*count;
        return plain ? val.text : NULL;
    }
    return NULL;
}

static bool any_poison(const Given *given, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (given[i].val.kind == VAL_POISON)
            return true;
    return false;
}

static bool fold_call(Lower *l, Frame *frame, const Expr *expr, const Given *given, size_t count,
                      Val *result)
{
    Val val[2];
    if (count < 1 || count > 2)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (given[i].name.text)
            return false;
        val[i] = given[i].val;
    }
    return fold(l, frame, expr, expr->text, (int)count, val, result);
}

static Val call_row(Lower *l, Frame *frame, const Expr *expr, const OpRow *op, const Bound *bound)
{
    size_t count = expr->arg.count;
    Given *given = ARENA_ARRAY(l->arena, Given, count + 1);
    for (size_t i = 0; i < count; i++)
        given[i] = evaluate(l, frame, &expr->arg.at[i], is_word(frame, op, &expr->arg.at[i]));
    bool good = true;
    const char *name = NULL;
    if (op_arg(op, "name") < 0)
        name = take_name(l, frame, given, &count, &good);
    if (!good || any_poison(given, count))
        return POISON;
    Val result;
    if (!name && fold_call(l, frame, expr, given, count, &result))
        return result;
    Call made = begin(l, frame, op->name, expr->span), *c = &made;
    if (!bind_arguments(l, frame, c, given, count))
        return POISON;
    return finish_call(l, frame, c, bound, name);
}

/* dim(x, axis): a size of a tensor, as a number. */
static Val call_dim(Lower *l, Frame *frame, const Expr *expr)
{
    Val val[2] = {POISON, POISON};
    for (size_t i = 0; i < expr->arg.count && i < 2; i++)
        val[i] = eval(l, frame, expr->arg.at[i].value, NULL);
    if (expr->arg.count != 2 || expr->arg.at[0].name.text) {
        lower_error(l, frame, expr->span, "dim needs a tensor and an axis: dim(x, 0)");
        return POISON;
    }
    if (val[0].kind == VAL_POISON || val[1].kind == VAL_POISON)
        return POISON;
    if (val[0].kind != VAL_TENSOR || val[1].kind != VAL_INT) {
        lower_error(l, frame, expr->span, "dim needs a tensor and an axis, not %s and %s",
                    val_text(l, val[0]), val_text(l, val[1]));
        return POISON;
    }
    View view = use_view(l->g, val[0].use);
    int64_t axis = val[1].integer;
    if (axis < -view.rank || axis >= view.rank) {
        lower_error(l, frame, expr->arg.at[1].value->span, "dim: axis %lld is out of range for %s",
                    (long long)axis, use_text(l->g, val[0].use));
        return POISON;
    }
    return val_int(view.dim[axis < 0 ? axis + view.rank : axis]);
}

/* ---- Blocks --------------------------------------------------------------------------------- */

static const char *block_signature(Lower *l, const Stmt *stmt)
{
    const char *text = arena_printf(l->arena, "%s(", stmt->name.text);
    for (size_t i = 0; i < stmt->arg.count; i++)
        text = arena_printf(l->arena, "%s%s%s%s", text, i ? ", " : "", stmt->arg.at[i].name.text,
                            stmt->arg.at[i].value ? " = ..." : "");
    return arena_printf(l->arena, "%s)", text);
}

static bool explain_block(Lower *l, const Stmt *stmt)
{
    diag_note(l->diag, stmt->name.span, "the block is %s", block_signature(l, stmt));
    return false;
}

static int find_parameter(const Stmt *stmt, const char *name)
{
    for (size_t i = 0; i < stmt->arg.count; i++)
        if (strcmp(stmt->arg.at[i].name.text, name) == 0)
            return (int)i;
    return -1;
}

static bool unknown_parameter(Lower *l, Frame *frame, const Stmt *stmt, const Given *given)
{
    const char **name = ARENA_ARRAY(l->arena, const char *, stmt->arg.count + 1);
    for (size_t i = 0; i < stmt->arg.count; i++)
        name[i] = stmt->arg.at[i].name.text;
    lower_error(l, frame, given->name.span, "block %s has no argument %s", stmt->name.text,
                given->name.text);
    const char *meant = suggest(given->name.text, name, stmt->arg.count);
    if (meant)
        diag_hint(l->diag, "did you mean %s?", meant);
    return explain_block(l, stmt);
}

/* Which parameter of the block each argument goes to, into slot. */
static bool match(Lower *l, Frame *frame, const Expr *expr, const Stmt *stmt, const Given *given,
                  size_t count, const Given **slot)
{
    size_t next = 0;
    for (size_t i = 0; i < count; i++) {
        int at = given[i].name.text ? find_parameter(stmt, given[i].name.text) : -1;
        if (given[i].name.text && at < 0)
            return unknown_parameter(l, frame, stmt, &given[i]);
        if (!given[i].name.text)
            at = (int)next++;
        if ((size_t)at >= stmt->arg.count) {
            lower_error(l, frame, given[i].span, "block %s takes %zu argument%s, not %zu",
                        stmt->name.text, stmt->arg.count, stmt->arg.count == 1 ? "" : "s", count);
            return explain_block(l, stmt);
        }
        if (slot[at]) {
            lower_error(l, frame, given[i].span, "%s is given twice", stmt->arg.at[at].name.text);
            diag_note(l->diag, slot[at]->span, "first here");
            return false;
        }
        slot[at] = &given[i];
    }
    for (size_t i = 0; i < stmt->arg.count; i++)
        if (!slot[i] && !stmt->arg.at[i].value) {
            lower_error(l, frame, expr->span, "block %s needs %s", stmt->name.text,
                        stmt->arg.at[i].name.text);
            return explain_block(l, stmt);
        }
    return true;
}

static bool names_word(const Frame *frame, const Expr *expr)
{
    return expr->kind == EXPR_NAME && !frame_find(frame, expr->text) && word_known(expr->text);
}

/* A shared block has one path for its parameters, wherever it is called from. */
static const char *shared_path(Lower *l, Block *block)
{
    if (!block->owner) {
        const char *path = block->frame->home->path, *name = block->stmt->name.text;
        block->owner = *path ? arena_printf(l->arena, "%s.%s", path, name) : name;
        while (!block->frame->again && !reserve_name(l, block->owner, block->stmt->name.span))
            block->owner = arena_printf(l->arena, "%s_", block->owner);
    }
    return block->owner;
}

static Frame *enter(Lower *l, Frame *frame, const Expr *expr, Block *block, const Bound *bound,
                    const char *name)
{
    const Stmt *stmt = block->stmt;
    Frame *inner = frame_new(l, block->frame, stmt, false);
    inner->time = block->time - 1;
    inner->depth = frame->depth + 1;
    inner->again = stmt->shared || frame->again;
    if (stmt->shared)
        shared_path(l, block);
    const char *path = block_path(l, frame, stmt->name.text, bound, name, expr->span);
    if (!path)
        return NULL;
    inner->path = stmt->shared ? block->owner : path;
    inner->scope = (Id)l->g->scope.count;
    Scope scope = {.path = path,
                   .parent = frame->scope,
                   .template = stmt->template,
                   .iteration = l->g->scope.at[frame->scope].iteration,
                   .hint = stmt->hint,
                   .call = expr->span};
    ARRAY_PUSH(l->arena, &l->g->scope, scope);
    return inner;
}

static Val call_block(Lower *l, Frame *frame, const Expr *expr, Block *block, const Bound *bound)
{
    const Stmt *stmt = block->stmt;
    size_t count = expr->arg.count;
    Given *given = ARENA_ARRAY(l->arena, Given, count + 1);
    for (size_t i = 0; i < count; i++)
        given[i] = evaluate(l, frame, &expr->arg.at[i], names_word(frame, expr->arg.at[i].value));
    bool good = true;
    const char *name = NULL;
    if (find_parameter(stmt, "name") < 0)
        name = take_name(l, frame, given, &count, &good);
    const Given **slot = ARENA_ARRAY(l->arena, const Given *, stmt->arg.count + 1);
    if (!good || !match(l, frame, expr, stmt, given, count, slot))
        return POISON;
    if (frame->depth >= MAX_CALLS) {
        lower_error(l, frame, expr->span, "blocks call each other more than %d deep", MAX_CALLS);
        return POISON;
    }
    Frame *inner = enter(l, frame, expr, block, bound, name);
    if (!inner)
        return POISON;
    for (size_t i = 0; i < stmt->arg.count; i++) {
        const Argument *parameter = &stmt->arg.at[i];
        Given value = slot[i] ? *slot[i]
                              : evaluate(l, inner, &(Argument){.value = parameter->value},
                                         names_word(inner, parameter->value));
        frame_bind(l, inner, parameter->name, BOUND_ARGUMENT, value.val);
    }
    lower_body(l, inner, &stmt->body);
    return inner->result;
}

Val eval_call(Lower *l, Frame *frame, const Expr *expr, const Bound *bound)
{
    Block *block = frame_block(frame, expr->text);
    if (block)
        return call_block(l, frame, expr, block, bound);
    const OpRow *op = op_find(expr->text);
    if (op && !(op->flags & OP_HIDDEN))
        return call_row(l, frame, expr, op, bound);
    if (strcmp(expr->text, "dim") == 0)
        return call_dim(l, frame, expr);
    unknown_op(l, frame, expr->text, expr->text_span);
    for (size_t i = 0; i < expr->arg.count; i++) /* for what else is wrong */
        if (expr->arg.at[i].value->kind != EXPR_NAME)
            eval(l, frame, expr->arg.at[i].value, NULL);
    return POISON;
}
