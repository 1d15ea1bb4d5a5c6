/* Equal layers that follow each other become a repeat.
 *
 * A run of statements is a repeat of c iterations of p statements where each iteration has the same
 * shape, reads what the iteration itself makes, what the iteration before made at the same place
 * (carried), or what stood before the run; and where the names of what it declares differ by
 * numbers that grow evenly: h.0.w, h.1.w. The repeat is kept if it lowers to the same graph, node
 * by node. */
#include "frontend/onnx/import.h"
#include "frontend/print.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEAST_ITERATIONS = 2,
    LEAST_SAVED = 6, /* statements that a repeat must do without */
    MOST_PERIODS = 12,
    MOST_FIELDS = 16, /* numbers in a name */
    MOST_ROLLS = 32,
};

typedef struct {
    Import *m;
    Arena *arena; /* for as long as a repeat is looked for */
    Stmt **at;
    size_t count;
    uint64_t *shape; /* of each statement, names left out */
    NameTable *made; /* name -> place of the statement that makes it */
    size_t start, period, iterations;
    size_t *
        carried; /* by place in an iteration: 1 + place of its first value's reader; 0: it is not */
    const char *
        *first; /* by place in an iteration: what a carried one is before the first iteration */
    const char **local; /* by place in an iteration: its name in the repeat */
    const char *index;
} Roll;

static const Span here = {0, 0, 0, 0};

/* ---- Shapes --------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, uint64_t more)
{
    return hash_bytes(&more, sizeof more, hash);
}

static uint64_t shape_of(const Expr *expr, uint64_t hash)
{
    if (!expr)
        return mix(hash, 7);
    hash = mix(hash, (uint64_t)expr->kind);
    switch (expr->kind) {
    case EXPR_NAME:
        return hash;
    case EXPR_STRING:
        return hash_bytes(expr->text, strlen(expr->text), hash);
    case EXPR_INT:
    case EXPR_BOOL:
    case EXPR_FLOAT:
        return mix(hash, (uint64_t)expr->integer);
    case EXPR_CALL:
    case EXPR_LIST:
        hash = expr->kind == EXPR_CALL ? hash_bytes(expr->text, strlen(expr->text), hash) : hash;
        for (size_t i = 0; i < expr->arg.count; i++) {
            const char *name = expr->arg.at[i].name.text ? expr->arg.at[i].name.text : "";
            hash = shape_of(expr->arg.at[i].value, hash_bytes(name, strlen(name), hash));
        }
        return mix(hash, expr->arg.count);
    case EXPR_BINARY:
        hash = hash_bytes(expr->text, strlen(expr->text), hash);
        return shape_of(expr->right, shape_of(expr->left, hash));
    case EXPR_NEG:
        return shape_of(expr->left, hash);
    case EXPR_SLICE:
        hash = shape_of(expr->left, hash);
        for (size_t i = 0; i < expr->subscript.count; i++) {
            const Subscript *s = &expr->subscript.at[i];
            hash = mix(hash, (uint64_t)s->kind);
            hash = shape_of(s->step, shape_of(s->stop, shape_of(s->start, hash)));
        }
        return mix(hash, expr->subscript.count);
    }
    return hash;
}

static uint64_t shape_of_stmt(const Stmt *stmt, size_t place)
{
    bool plain = stmt->kind == STMT_PARAM || stmt->kind == STMT_CONST ||
                 (stmt->kind == STMT_ASSIGN && stmt->target.count == 1);
    if (!plain) /* like no other */
        return mix(99, place);
    uint64_t hash = mix(mix(1, (uint64_t)stmt->kind), stmt->frozen);
    if (stmt->type.dtype.text)
        hash = hash_bytes(stmt->type.dtype.text, strlen(stmt->type.dtype.text), hash);
    for (size_t i = 0; i < stmt->type.dim.count; i++)
        hash = shape_of(stmt->type.dim.at[i].value, hash);
    return shape_of(stmt->value, mix(hash, stmt->type.dim.count));
}

/* ---- Periods -------------------------------------------------------------------------------- */

static const char *made_name(const Stmt *stmt)
{
    return stmt->kind == STMT_ASSIGN ? stmt->target.at[0].text : stmt->name.text;
}

static void survey(Roll *r, const Stmts *body)
{
    r->at = body->at;
    r->count = body->count;
    r->shape = ARENA_ARRAY(r->arena, uint64_t, r->count + 1);
    r->made = names_new(r->arena);
    for (size_t i = 0; i < r->count; i++) {
        const Stmt *stmt = r->at[i];
        r->shape[i] = shape_of_stmt(stmt, i);
        if (stmt->kind == STMT_ASSIGN)
            for (size_t k = 0; k < stmt->target.count; k++)
                *names_at(r->made, stmt->target.at[k].text) = (uint32_t)i;
        else if (stmt->kind != STMT_MODEL && stmt->kind != STMT_REPEAT)
            *names_at(r->made, stmt->name.text) = (uint32_t)i;
    }
}

/* The distances at which equal shapes occur most often. */
static size_t find_periods(Roll *r, size_t *period)
{
    uint32_t *votes = ARENA_ARRAY(r->arena, uint32_t, r->count + 1);
    NameTable *last = names_new(r->arena);
    for (size_t i = 0; i < r->count; i++) {
        uint32_t *at =
            names_at(last, arena_printf(r->arena, "%llx", (unsigned long long)r->shape[i]));
        if (*at != UINT32_MAX)
            votes[i - *at]++;
        *at = (uint32_t)i;
    }
    size_t found = 0;
    for (; found < MOST_PERIODS; found++) {
        size_t best = 0;
        for (size_t p = 1; p < r->count; p++)
            if (votes[p] * p > votes[best] * best)
                best = p;
        if (!best || !votes[best])
            break;
        period[found] = best;
        votes[best] = 0;
    }
    return found;
}

/* ---- Names ---------------------------------------------------------------------------------- */

/* Place of what a name is made by; SIZE_MAX: before all of it. */
static size_t place_of(const Roll *r, const char *name)
{
    uint32_t at = names_find(r->made, name);
    return at == UINT32_MAX || at < r->start ? SIZE_MAX : at;
}

/* Compares the names of an iteration with those of the one before it. `iteration` counts from 1. */
static bool same_name(Roll *r, size_t j, size_t iteration, const char *before, const char *name)
{
    size_t begin = r->start + iteration * r->period;
    size_t was = place_of(r, before), is = place_of(r, name);
    if (is == SIZE_MAX)
        return was == SIZE_MAX && before == name;
    if (is >= begin) /* its own */
        return was == is - r->period;
    if (is + r->period < begin)
        return false; /* two iterations back */
    size_t q = is - (begin - r->period);
    if (r->at[is]->kind != STMT_ASSIGN || q < j)
        return false; /* read when it is bound again already */
    if (iteration > 1)
        return was == is - r->period;
    if (was != SIZE_MAX || (r->first[q] && r->first[q] != before))
        return false;
    r->first[q] = before;
    return true;
}

static bool same_names(Roll *r, size_t j, size_t iteration, const Expr *a, const Expr *b)
{
    if (!a || !b)
        return a == b;
    if (a->kind == EXPR_NAME)
        return same_name(r, j, iteration, a->text, b->text);
    if (a->kind == EXPR_CALL || a->kind == EXPR_LIST)
        for (size_t i = 0; i < a->arg.count; i++)
            if (!same_names(r, j, iteration, a->arg.at[i].value, b->arg.at[i].value))
                return false;
    if (a->kind == EXPR_SLICE)
        for (size_t i = 0; i < a->subscript.count; i++) {
            const Subscript *s = &a->subscript.at[i], *t = &b->subscript.at[i];
            if (!same_names(r, j, iteration, s->start, t->start) ||
                !same_names(r, j, iteration, s->stop, t->stop) ||
                !same_names(r, j, iteration, s->step, t->step))
                return false;
        }
    if (a->kind == EXPR_BINARY && !same_names(r, j, iteration, a->right, b->right))
        return false;
    return !a->left || same_names(r, j, iteration, a->left, b->left);
}

/* The name with each number that grows from iteration to iteration written as that; NULL: it does
 * not grow evenly. */
static const char *pattern(Roll *r, size_t j, bool drop)
{
    const char *a = made_name(r->at[r->start + j]);
    const char *b = made_name(r->at[r->start + r->period + j]);
    char text[MAX_QUOTED + MOST_FIELDS * 40 + 1];
    size_t length = 0;
    int fields = 0;
    bool grows = false;
    while (*a || *b) {
        if (!isdigit((unsigned char)*a) || !isdigit((unsigned char)*b)) {
            text[length++] = *a;
            if (*a++ != *b++ || length > MAX_QUOTED)
                return NULL;
            continue;
        }
        char *end_a, *end_b, *to = text + length;
        long from = strtol(a, &end_a, 10), step = strtol(b, &end_b, 10) - from;
        bool padded = (*a == '0' && end_a > a + 1) || (*b == '0' && end_b > b + 1);
        if (end_a - a > 8 || end_b - b > 8 || step < 0 || (padded && step) ||
            ++fields > MOST_FIELDS || length > MAX_QUOTED)
            return NULL;
        if (step == 0) {
            length += (size_t)sprintf(to, "%.*s", (int)(end_a - a), a);
        } else if (!drop) {
            length += (size_t)sprintf(text + length, "%c", SPELL_OPEN);
            if (step > 1)
                length += (size_t)sprintf(text + length, "%ld*", step);
            length += (size_t)sprintf(text + length, "%s", r->index);
            if (from)
                length += (size_t)sprintf(text + length, "+%ld", from);
            length += (size_t)sprintf(text + length, "%c", SPELL_CLOSE);
        }
        grows |= step != 0;
        a = end_a;
        b = end_b;
    }
    return grows ? arena_copy(r->arena, text, length) : NULL;
}

static const char *spelt_at(Roll *r, const char *pattern_text, size_t iteration)
{
    const char *text = "";
    for (const char *at = pattern_text; *at;) {
        size_t plain = strcspn(at, (char[]){SPELL_OPEN, 0});
        text = arena_printf(r->arena, "%s%.*s", text, (int)plain, at);
        at += plain;
        if (!*at)
            break;
        at++;
        long factor = 1, more = 0;
        char *end;
        if (isdigit((unsigned char)*at)) {
            factor = strtol(at, &end, 10);
            at = end + 1;
        }
        at += strlen(r->index);
        if (*at == '+') {
            more = strtol(at + 1, &end, 10);
            at = end;
        }
        at++;
        text = arena_printf(r->arena, "%s%ld", text, factor * (long)iteration + more);
    }
    return text;
}

/* What the repeat declares is called as in each iteration of the file. */
static bool name_declared(Roll *r, size_t j)
{
    const char *text = pattern(r, j, false);
    if (!text)
        return false;
    for (size_t iteration = 0; iteration < r->iterations; iteration++)
        if (strcmp(spelt_at(r, text, iteration),
                   made_name(r->at[r->start + iteration * r->period + j])) != 0)
            return false;
    r->local[j] = text;
    return true;
}

/* ---- Whether it is one ---------------------------------------------------------------------- */

static bool read_after(Roll *r, const Expr *expr)
{
    if (!expr)
        return true;
    if (expr->kind == EXPR_NAME) {
        size_t at = place_of(r, expr->text), end = r->start + r->iterations * r->period;
        return at == SIZE_MAX || at >= end ||
               (at >= end - r->period && r->first[at - (end - r->period)]);
    }
    bool good = read_after(r, expr->left);
    if (expr->kind == EXPR_CALL || expr->kind == EXPR_LIST)
        for (size_t i = 0; i < expr->arg.count; i++)
            good = good && read_after(r, expr->arg.at[i].value);
    if (expr->kind == EXPR_SLICE)
        for (size_t i = 0; i < expr->subscript.count; i++)
            good = good && read_after(r, expr->subscript.at[i].start) &&
                   read_after(r, expr->subscript.at[i].stop) &&
                   read_after(r, expr->subscript.at[i].step);
    if (expr->kind == EXPR_BINARY)
        good = good && read_after(r, expr->right);
    return good;
}

/* How many values are carried from iteration to iteration; SIZE_MAX: it is no repeat. */
static size_t examine(Roll *r)
{
    size_t carried = 0;
    r->first = ARENA_ARRAY(r->arena, const char *, r->period);
    r->local = ARENA_ARRAY(r->arena, const char *, r->period);
    for (size_t iteration = 1; iteration < r->iterations; iteration++)
        for (size_t j = 0; j < r->period; j++) {
            const Stmt *a = r->at[r->start + (iteration - 1) * r->period + j],
                       *b = r->at[r->start + iteration * r->period + j];
            if (!same_names(r, j, iteration, a->value, b->value))
                return SIZE_MAX;
        }
    for (size_t j = 0; j < r->period; j++) {
        carried += r->first[j] != NULL;
        if (r->at[r->start + j]->kind != STMT_ASSIGN && !name_declared(r, j))
            return SIZE_MAX;
    }
    for (size_t i = r->start + r->iterations * r->period; i < r->count; i++)
        if (!read_after(r, r->at[i]->value))
            return SIZE_MAX;
    return carried;
}

/* The longest run of a period, and where an iteration begins so that least is carried. */
static bool find_run(Roll *r, size_t period, size_t *start, size_t *iterations, size_t *carried)
{
    size_t best = 0;
    *carried = SIZE_MAX;
    for (size_t i = 0; i + period < r->count;) {
        size_t end = i;
        while (end + period < r->count && r->shape[end] == r->shape[end + period])
            end++;
        size_t length = end - i + period;
        if (end > i && length / period >= LEAST_ITERATIONS && length > best + period) {
            for (size_t s = i; s < i + period && s + LEAST_ITERATIONS * period <= i + length; s++) {
                r->start = s;
                r->period = period;
                size_t most = (i + length - s) / period;
                for (r->iterations = most; r->iterations >= LEAST_ITERATIONS; r->iterations--) {
                    size_t needs = examine(r);
                    if (needs == SIZE_MAX && r->iterations + 2 > most)
                        continue; /* the last may be the start of something else */
                    bool better =
                        needs < *carried || (needs == *carried && r->iterations > *iterations);
                    if (needs != SIZE_MAX && better) {
                        *start = s;
                        *iterations = r->iterations;
                        *carried = needs;
                        best = length;
                    }
                    break;
                }
            }
        }
        i = end > i ? end : i + 1;
    }
    return *carried != SIZE_MAX;
}

/* ---- Making it ------------------------------------------------------------------------------ */

/* The name of a value in the repeat: without the iteration's number, where that leaves one. */
static const char *local_name(Roll *r, size_t j)
{
    const char *plain = pattern(r, j, true);
    return claim(r->m, plain && *plain ? plain : made_name(r->at[r->start + j]));
}

static const Expr *renamed(Roll *r, const Expr *expr, bool inside)
{
    Import *m = r->m;
    if (!expr)
        return NULL;
    Expr *copy = expr_new(m->parse, expr->kind, here);
    *copy = *expr;
    if (expr->kind == EXPR_NAME) {
        size_t at = place_of(r, expr->text), end = r->start + r->iterations * r->period;
        const char *name = NULL;
        if (inside && at != SIZE_MAX) /* of iteration 1: its own, or carried from iteration 0 */
            name = r->local[(at - r->start) % r->period];
        else if (!inside && at != SIZE_MAX && at < end)
            name = r->local[(at - r->start) % r->period];
        if (name) {
            copy->text = name;
            copy->kind = is_spelt(name) ? EXPR_STRING : EXPR_NAME;
        }
        return copy;
    }
    copy->left = renamed(r, expr->left, inside);
    if (expr->kind == EXPR_BINARY)
        copy->right = renamed(r, expr->right, inside);
    if (expr->kind == EXPR_CALL || expr->kind == EXPR_LIST) {
        copy->arg = (Arguments){0};
        for (size_t i = 0; i < expr->arg.count; i++) {
            Argument arg = expr->arg.at[i];
            arg.value = renamed(r, arg.value, inside);
            ARRAY_PUSH(m->arena, &copy->arg, arg);
        }
    }
    if (expr->kind == EXPR_SLICE) {
        copy->subscript = (Subscripts){0};
        for (size_t i = 0; i < expr->subscript.count; i++) {
            Subscript s = expr->subscript.at[i];
            s.start = renamed(r, s.start, inside);
            s.stop = renamed(r, s.stop, inside);
            s.step = renamed(r, s.step, inside);
            ARRAY_PUSH(m->arena, &copy->subscript, s);
        }
    }
    return copy;
}

static Stmt *renamed_stmt(Roll *r, const Stmt *stmt, bool inside)
{
    Stmt *copy = stmt_new(r->m->parse, stmt->kind, here);
    *copy = *stmt;
    copy->value = renamed(r, stmt->value, inside);
    return copy;
}

static Stmts build(Roll *r)
{
    Import *m = r->m;
    Stmts body = {0};
    for (size_t i = 0; i < r->start; i++)
        ARRAY_PUSH(m->arena, &body, r->at[i]);
    for (size_t j = 0; j < r->period; j++)
        r->local[j] = r->local[j] ? intern(m, r->local[j]) : local_name(r, j);
    for (size_t j = 0; j < r->period; j++)
        if (r->first[j]) { /* what the first iteration begins with */
            Stmt *begin = stmt_make(m, STMT_ASSIGN, r->local[j]);
            begin->value = word(m, r->first[j]);
            ARRAY_PUSH(m->arena, &body, begin);
        }
    Stmt *repeat = stmt_make(m, STMT_REPEAT, intern(m, r->index));
    repeat->value = integer(m, 0);
    repeat->stop = integer(m, (int64_t)r->iterations);
    repeat->template = (uint32_t)r->start;
    for (size_t j = 0; j < r->period; j++) {
        Stmt *stmt = renamed_stmt(r, r->at[r->start + r->period + j], true);
        stmt->name.text = r->local[j];
        if (stmt->kind == STMT_ASSIGN) {
            stmt->target = (Names){0};
            ARRAY_PUSH(m->arena, &stmt->target, stmt->name);
        }
        ARRAY_PUSH(m->arena, &repeat->body, stmt);
    }
    ARRAY_PUSH(m->arena, &body, repeat);
    for (size_t i = r->start + r->iterations * r->period; i < r->count; i++)
        ARRAY_PUSH(m->arena, &body, renamed_stmt(r, r->at[i], false));
    return body;
}

/* ---- Proof ---------------------------------------------------------------------------------- */

static const Graph *lowered(Arena *arena, const Import *m, const Stmts *body)
{
    Ast ast = {.body = *body};
    Diag *quiet = diag_new(arena, NULL, false);
    Model model = {NULL, &ast, m->define[0], m->fixed ? 0 : m->defines, true};
    return lower(arena, quiet, &model);
}

/* Node by node and value by value: names of results alone may differ. */
static bool same_graph(const Graph *a, const Graph *b)
{
    if (!a || !b || a->node.count != b->node.count || a->value.count != b->value.count ||
        a->output.count != b->output.count || a->attr.count != b->attr.count)
        return false;
    for (size_t i = 0; i < a->value.count; i++) {
        const Value *v = &a->value.at[i], *w = &b->value.at[i];
        bool named = v->kind != VALUE_RESULT && v->kind != VALUE_LITERAL;
        if (v->kind != w->kind || v->dtype != w->dtype || v->rank != w->rank ||
            v->node != w->node || v->frozen != w->frozen || v->literal != w->literal ||
            memcmp(v->dim, w->dim, sizeof v->dim) != 0 || (named && strcmp(v->name, w->name) != 0))
            return false;
    }
    for (size_t i = 0; i < a->node.count; i++) {
        const Node *n = &a->node.at[i], *o = &b->node.at[i];
        if (n->op != o->op || n->uses != o->uses || n->value != o->value || n->attr != o->attr)
            return false;
        for (Id k = 0; k < n->uses; k++) {
            Use u = node_use(a, n, k), v = node_use(b, o, k);
            if (u.value != v.value)
                return false;
            if (u.value == NONE)
                continue;
            View x = use_view(a, u), y = use_view(b, v);
            if (memcmp(&x, &y, sizeof x) != 0)
                return false;
        }
    }
    for (size_t i = 0; i < a->attr.count; i++)
        if (a->attr.at[i].number != b->attr.at[i].number ||
            memcmp(a->attr.at[i].list, b->attr.at[i].list, sizeof a->attr.at[i].list) != 0)
            return false;
    for (size_t i = 0; i < a->output.count; i++)
        if (a->output.at[i].use.value != b->output.at[i].use.value ||
            strcmp(a->output.at[i].name, b->output.at[i].name) != 0)
            return false;
    return true;
}

/* The repeat that does without the most statements; false: none. */
static bool find_best(Roll *r)
{
    size_t period[MOST_PERIODS], best = 0, start = 0, iterations = 0, length = 0;
    size_t periods = find_periods(r, period);
    for (size_t k = 0; k < periods; k++) {
        size_t from = 0, count = 0, carried;
        if (!find_run(r, period[k], &from, &count, &carried))
            continue;
        size_t saved = (count - 1) * period[k] - carried;
        if (carried < period[k] && saved >= LEAST_SAVED && saved > best) {
            best = saved;
            start = from;
            iterations = count;
            length = period[k];
        }
    }
    r->start = start;
    r->period = length;
    r->iterations = iterations;
    return best > 0 && examine(r) != SIZE_MAX;
}

static bool roll_once(Import *m, const Graph *plain, Arena *arena)
{
    Roll r = {.m = m, .arena = arena};
    r.index = names_find(m->taken, "i") == UINT32_MAX ? "i" : "layer";
    if (names_find(m->taken, r.index) != UINT32_MAX)
        return false;
    survey(&r, &m->ast->body);
    if (!find_best(&r))
        return false;
    Stmts body = build(&r);
    if (!same_graph(plain, lowered(arena, m, &body)))
        return false;
    m->ast->body = body;
    return true;
}

void roll(Import *m)
{
    Arena *arena = arena_new();
    const Graph *plain = lowered(arena, m, &m->ast->body);
    bool more = plain != NULL;
    for (int i = 0; more && i < MOST_ROLLS; i++) {
        Arena *once = arena_new();
        more = roll_once(m, plain, once);
        arena_free(once);
    }
    arena_free(arena);
}
