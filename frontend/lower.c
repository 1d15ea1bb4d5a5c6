/* Syntax tree -> graph: blocks and repeats unrolled, names resolved, every value shaped.
 *
 * Lowering goes on after an error: what failed is poison, and errors that follow from poison are
 * silent, so each mistake is reported once. Everything that the source can ask for without end
 * (iterations of a repeat, calls of blocks by blocks, nodes) is counted against a limit.
 */
#include "frontend/lower.h"

#include <string.h>

/* ---- Errors and limits ---------------------------------------------------------------------- */

void explain_iteration(Lower *l, const Frame *frame)
{
    if (frame->iteration)
        diag_note(l->diag, frame->stmt->span, "in iteration %s = %lld of this repeat",
                  frame->stmt->name.text, (long long)frame->index);
}

static void explain_frame(Lower *l, const Frame *frame)
{
    explain_iteration(l, frame);
    for (Id scope = frame->scope; scope != NONE && scope; scope = l->g->scope.at[scope].parent)
        if (l->g->scope.at[scope].call.line)
            diag_note(l->diag, l->g->scope.at[scope].call, "in %s, from here",
                      l->g->scope.at[scope].path);
}

bool lower_error(Lower *l, const Frame *frame, Span span, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    diag_error(l->diag, span, "%s", arena_vprintf(l->arena, format, args));
    va_end(args);
    if (frame)
        explain_frame(l, frame);
    return false;
}

bool lower_step(Lower *l, Span span)
{
    if (l->stop || diag_full(l->diag)) {
        l->stop = true;
        return false;
    }
    l->steps++;
    bool nodes = l->g->node.count + l->g->scope.count > MAX_NODES;
    if (l->steps < MAX_STEPS && !nodes)
        return true;
    if (nodes)
        diag_error(l->diag, span, "the model is too large: more than %d ops, calls and iterations",
                   MAX_NODES);
    else
        diag_error(l->diag, span, "the model takes too long to unroll: more than %d steps",
                   MAX_STEPS);
    l->stop = true;
    return false;
}

/* ---- Statements ----------------------------------------------------------------------------- */

static void lower_assign(Lower *l, Frame *frame, const Stmt *stmt)
{
    size_t targets = stmt->target.count;
    Bound bound = {stmt->target.at[0].text, stmt->own_name};
    Val val = eval(l, frame, stmt->value, targets == 1 ? &bound : NULL);
    if (val.kind == VAL_WORD || val.kind == VAL_STRING) {
        lower_error(l, frame, stmt->value->span, "%s cannot be bound to a name", val_text(l, val));
        val = POISON;
    }
    if (targets == 1) {
        if (val.kind == VAL_TUPLE) {
            lower_error(l, frame, stmt->value->span, "this is %s, bound to one name",
                        val_text(l, val));
            diag_hint(l->diag, "write a name for each: a, b = ...");
            val = POISON;
        }
        frame_bind(l, frame, stmt->target.at[0], BOUND_VALUE, val);
        return;
    }
    if (val.kind != VAL_POISON && (val.kind != VAL_TUPLE || val.count != targets)) {
        lower_error(l, frame, stmt->span, "%zu names, but the right side is %s", targets,
                    val_text(l, val));
        val = POISON;
    }
    for (size_t i = 0; i < targets; i++)
        frame_bind(l, frame, stmt->target.at[i], BOUND_VALUE,
                   val.kind == VAL_TUPLE ? val.item[i] : POISON);
}

/* What an output shows: elements in order, in bytes that nothing else shares. */
static Use output_use(Lower *l, const Frame *frame, const Stmt *stmt, Use use)
{
    View view = use_view(l->g, use);
    bool own = l->g->value.at[use.value].node != NONE && view_is_dense(&view) &&
               !(use.value < l->shown.count && l->shown.at[use.value]);
    Call from = {.span = stmt->name.span, .scope = frame->scope, .name = stmt->name.text};
    if (!own)
        use = call_op(l->g, &from, "copy", 1, &use);
    while (use.value != NONE && l->shown.count <= use.value)
        ARRAY_PUSH(l->arena, &l->shown, false);
    if (use.value != NONE)
        l->shown.at[use.value] = true;
    return use;
}

bool claim_output(Lower *l, Frame *frame, const Stmt *stmt)
{
    const char *what = stmt->kind == STMT_METRIC ? "a metric" : "an output";
    uint32_t *taken = names_at(l->outputs, stmt->name.text);
    if (*taken != UINT32_MAX) {
        lower_error(l, frame, stmt->name.span,
                    stmt->kind == STMT_METRIC ? "%s is an output or a metric already"
                                              : "%s is declared as an output twice",
                    stmt->name.text);
        diag_note(l->diag, l->output_span.at[*taken], "first here");
        return false;
    }
    Id input = graph_find(l->g, stmt->name.text);
    if (input != NONE && l->g->value.at[input].kind == VALUE_INPUT) {
        lower_error(l, frame, stmt->name.span, "%s is an input and cannot be %s too",
                    stmt->name.text, what);
        diag_note(l->diag, l->g->value.at[input].span, "the input is declared here");
        diag_hint(l->diag, "give the %s another name: %s y = ...", strchr(what, ' ') + 1,
                  strchr(what, ' ') + 1);
        return false;
    }
    *taken = (uint32_t)l->output_span.count;
    ARRAY_PUSH(l->arena, &l->output_span, stmt->name.span);
    return true;
}

static void lower_output(Lower *l, Frame *frame, const Stmt *stmt)
{
    Bound bound = {stmt->name.text, stmt->own_name};
    Val val;
    if (stmt->value) {
        val = eval(l, frame, stmt->value, &bound);
        if (!frame_bind(l, frame, stmt->name, BOUND_VALUE, val))
            return;
    } else {
        const char *spelt = spell(l, frame, stmt->name.text, stmt->name.span);
        const Binding *binding = spelt ? frame_find(frame, spelt) : NULL;
        if (spelt && !binding)
            unknown_name(l, frame, stmt->name.text, stmt->name.span);
        val = binding ? binding->val : POISON;
    }
    if (!claim_output(l, frame, stmt))
        return;
    if (val.kind != VAL_TENSOR) {
        if (val.kind != VAL_POISON)
            lower_error(l, frame, stmt->span, "an output must be a tensor, not %s",
                        val_text(l, val));
        val.use = (Use){NONE, NONE};
    } else {
        val.use = output_use(l, frame, stmt, wide_use(l, stmt, val.use));
    }
    ARRAY_PUSH(l->arena, &l->g->output,
               (Output){.use = val.use, .name = stmt->name.text, .span = stmt->name.span});
}

Use wide_use(Lower *l, const Stmt *stmt, Use use)
{
    const Call from = {.span = stmt->span, .name = stmt->name.text ? stmt->name.text : "loss"};
    return l->g->precision == F32 || !dtype_is_narrow((Dtype)l->g->value.at[use.value].dtype)
               ? use
               : precision_cast(l->g, &from, use, F32);
}

static void lower_hint(Lower *l, Frame *frame, const Stmt *stmt)
{
    static const char *const words[] = {[HINT_KEEP] = "kept", [HINT_RECOMPUTE] = "recomputed"};
    for (size_t i = 0; i < stmt->target.count; i++) {
        Name name = stmt->target.at[i];
        const Binding *binding = frame_find(frame, name.text);
        if (!binding) {
            unknown_name(l, frame, name.text, name.span);
            continue;
        }
        Val val = binding->val;
        if (val.kind == VAL_POISON)
            continue;
        Value *value = val.kind == VAL_TENSOR ? &l->g->value.at[val.use.value] : NULL;
        if (!value || value->kind != VALUE_RESULT) {
            lower_error(l, frame, name.span, "%s is not computed, so it cannot be %s", name.text,
                        words[stmt->hint]);
            diag_note(l->diag, binding->span, "it is declared here");
        } else if (value->hint && value->hint != stmt->hint) {
            lower_error(l, frame, name.span, "%s cannot be both kept and recomputed", name.text);
        } else {
            value->hint = stmt->hint;
        }
    }
}

static void lower_return(Lower *l, Frame *frame, const Stmt *stmt)
{
    if (frame->iteration)
        return; /* reported by check_inner */
    if (!frame->stmt) {
        lower_error(l, frame, stmt->span, "return is only allowed in a block");
        return;
    }
    size_t count = stmt->arg.count;
    Val *item = ARENA_ARRAY(l->arena, Val, count + 1);
    bool poison = false;
    for (size_t i = 0; i < count; i++) {
        item[i] = eval(l, frame, stmt->arg.at[i].value, NULL);
        poison |= item[i].kind == VAL_POISON || item[i].kind == VAL_TUPLE;
        if (item[i].kind == VAL_TUPLE && count > 1)
            lower_error(l, frame, stmt->arg.at[i].value->span, "this is %s, returned as one",
                        val_text(l, item[i]));
    }
    if (count == 1)
        frame->result = item[0];
    else if (!poison)
        frame->result = (Val){.kind = VAL_TUPLE, .count = (uint32_t)count, .item = item};
}

/* What is not allowed in a block or a repeat is found where it is declared, called or not. */
static void check_inner(Lower *l, const Stmt *outer, const Stmts *body)
{
    static const char *const model_only[] = {
        [STMT_MODEL] = "model",        [STMT_INPUT] = "input", [STMT_OUTPUT] = "output",
        [STMT_METRIC] = "metric",      [STMT_DATA] = "data",   [STMT_TRAIN] = "train",
        [STMT_PRECISION] = "precision"};
    for (size_t i = 0; i < body->count; i++) {
        const Stmt *stmt = body->at[i];
        if (stmt->kind <= STMT_PRECISION && model_only[stmt->kind])
            diag_error(l->diag, stmt->span, "%s is not allowed in a %s", model_only[stmt->kind],
                       outer->kind == STMT_BLOCK ? "block" : "repeat");
        bool last = outer->kind == STMT_BLOCK && i + 1 == body->count;
        if (stmt->kind == STMT_RETURN && !last)
            diag_error(l->diag, stmt->span, "return must be the last statement of a block");
        if (stmt->kind == STMT_REPEAT)
            check_inner(l, stmt, &stmt->body);
    }
}

static void lower_iteration(Lower *l, Frame *frame, const Stmt *stmt, int64_t index,
                            int64_t iteration)
{
    Frame *inner = frame_new(l, frame, stmt, true);
    inner->suffix = arena_printf(l->arena, "%s.%lld", frame->suffix, (long long)iteration);
    inner->index = index;
    inner->scope = (Id)l->g->scope.count;
    Scope scope = {.path = l->g->scope.at[frame->scope].path,
                   .parent = frame->scope,
                   .template = stmt->template,
                   .iteration = (uint32_t)iteration};
    ARRAY_PUSH(l->arena, &l->g->scope, scope);
    frame_bind(l, inner, stmt->name, BOUND_INDEX, val_int(index));
    lower_body(l, inner, &stmt->body);
    frame_end_iteration(l, inner);
}

static void lower_repeat(Lower *l, Frame *frame, const Stmt *stmt)
{
    int64_t start, stop, iterations;
    if (!frame->stmt)
        check_inner(l, stmt, &stmt->body);
    bool good = eval_int(l, frame, stmt->value, "the start of a range", &start);
    good &= eval_int(l, frame, stmt->stop, "the end of a range", &stop);
    if (!good)
        return;
    Span range = stmt->value->span;
    range.end_line = stmt->stop->span.end_line;
    range.end = stmt->stop->span.end;
    if (stop < start) {
        lower_error(l, frame, range, "the range %lld..%lld ends before it starts", (long long)start,
                    (long long)stop);
        return;
    }
    if (__builtin_sub_overflow(stop, start, &iterations) || iterations > MAX_REPEAT_ITERATIONS) {
        lower_error(l, frame, range, "a repeat has at most %d iterations", MAX_REPEAT_ITERATIONS);
        return;
    }
    for (int64_t iteration = 0; iteration < iterations && lower_step(l, stmt->span); iteration++)
        lower_iteration(l, frame, stmt, start + iteration, iteration);
}

static void lower_block(Lower *l, Frame *frame, const Stmt *stmt)
{
    const Stmts *body = &stmt->body;
    check_inner(l, stmt, body);
    if (!body->count || body->at[body->count - 1]->kind != STMT_RETURN) {
        diag_error(l->diag, stmt->end.line ? stmt->end : stmt->span, "block %s returns nothing",
                   stmt->name.text);
        diag_hint(l->diag, "end it with: return x");
    }
    for (size_t i = 0; i < stmt->arg.count; i++) {
        Name mark = stmt->arg.at[i].mark;
        if (mark.text)
            diag_error(l->diag, mark.span, "%s is not allowed here", mark.text);
    }
    for (size_t i = 0; i < frame->block.count; i++)
        if (frame->block.at[i].stmt->name.text == stmt->name.text) {
            lower_error(l, frame, stmt->name.span, "block %s is declared twice", stmt->name.text);
            diag_note(l->diag, frame->block.at[i].stmt->name.span, "first here");
            return;
        }
    l->block_time = ++l->time;
    ARRAY_PUSH(l->arena, &frame->block, (Block){stmt, frame, l->time, NULL});
}

static void refuse(Lower *l, Frame *frame, const Stmt *stmt)
{
    if (stmt->kind == STMT_GROUP) {
        lower_error(l, frame, stmt->span, "a group is only allowed in the { } of train");
        return;
    }
    lower_error(l, frame, stmt->span, "nothing is bound to this value");
    diag_hint(l->diag, "write: name = ...");
}

static void pass_over(Lower *l, Frame *frame, const Stmt *stmt) /* lower_precision has it */
{
    (void)l;
    (void)frame;
    (void)stmt;
}

static void refuse_model(Lower *l, Frame *frame, const Stmt *stmt)
{
    if (stmt == l->model)
        return;
    lower_error(l, frame, stmt->span, "a file holds one model");
    diag_note(l->diag, l->model->span, "the first is here");
}

void lower_body(Lower *l, Frame *frame, const Stmts *body)
{
    static void (*const rules[])(Lower *, Frame *, const Stmt *) = {
        [STMT_MODEL] = refuse_model,  [STMT_INPUT] = lower_input,   [STMT_PARAM] = lower_param,
        [STMT_CONST] = lower_const,   [STMT_ASSIGN] = lower_assign, [STMT_OUTPUT] = lower_output,
        [STMT_BLOCK] = lower_block,   [STMT_REPEAT] = lower_repeat, [STMT_TRAIN] = lower_train,
        [STMT_RETURN] = lower_return, [STMT_HINT] = lower_hint,     [STMT_GROUP] = refuse,
        [STMT_EXPR] = refuse,         [STMT_METRIC] = lower_metric, [STMT_DATA] = lower_data,
        [STMT_PRECISION] = pass_over,
    };
    for (size_t i = 0; i < body->count; i++) {
        const Stmt *stmt = body->at[i];
        if (!lower_step(l, stmt->span))
            return;
        bool outer = stmt->kind == STMT_INPUT || stmt->kind == STMT_OUTPUT ||
                     stmt->kind == STMT_METRIC || stmt->kind == STMT_DATA ||
                     stmt->kind == STMT_TRAIN || stmt->kind == STMT_MODEL;
        if (!outer || !frame->stmt) /* else reported by check_inner */
            rules[stmt->kind](l, frame, stmt);
    }
}

/* ---- The model ------------------------------------------------------------------------------ */

static const Define *find_define(const Model *model, const char *name)
{
    for (size_t i = model->defines; i-- > 0;)
        if (strcmp(model->define[i].name, name) == 0)
            return &model->define[i];
    return NULL;
}

static void lower_dimension(Lower *l, Frame *frame, const Argument *parameter)
{
    Name name = parameter->name;
    const Define *define = find_define(l->from, name.text);
    bool batch = parameter->mark.text != NULL;
    int64_t value = 0;
    Val val = POISON;
    if (batch && strcmp(parameter->mark.text, "batch") != 0) {
        lower_error(l, frame, parameter->mark.span, "expected batch, not %s", parameter->mark.text);
        batch = false;
    }
    if (define)
        val = val_int(value = define->value);
    else if (!parameter->value)
        lower_error(l, frame, name.span, "%s has no value: give it one with -D %s=...", name.text,
                    name.text);
    else if (eval_int(l, frame, parameter->value, "a parameter of the model", &value))
        val = val_int(value);
    for (size_t i = 0; batch && i < l->g->dimension.count; i++)
        if (l->g->dimension.at[i].batch) {
            lower_error(l, frame, parameter->mark.span, "a model has one batch dimension");
            diag_note(l->diag, l->g->dimension.at[i].span, "it is %s", l->g->dimension.at[i].name);
        }
    if (frame_bind(l, frame, name, BOUND_DIM, val))
        ARRAY_PUSH(l->arena, &l->g->dimension, (Dimension){name.text, value, batch, name.span});
}

static void check_defines(Lower *l)
{
    const char **name = ARENA_ARRAY(l->arena, const char *, l->model->arg.count + 1);
    for (size_t i = 0; i < l->model->arg.count; i++)
        name[i] = l->model->arg.at[i].name.text;
    for (size_t i = 0; i < l->from->defines; i++) {
        const char *defined = l->from->define[i].name;
        bool known = false;
        for (size_t k = 0; k < l->model->arg.count; k++)
            known |= strcmp(name[k], defined) == 0;
        if (known)
            continue;
        diag_error(l->diag, (Span){0}, "-D %s: the model has no parameter of that name", defined);
        diag_note(l->diag, l->model->name.span, "model %s is declared here", l->model->name.text);
        const char *meant = suggest(defined, name, l->model->arg.count);
        if (meant)
            diag_hint(l->diag, "did you mean %s?", meant);
    }
}

static bool lower_model(Lower *l, Frame *frame)
{
    const Stmts *body = &l->ast->body;
    if (!body->count) {
        diag_error(l->diag, (Span){0}, "the file is empty");
        diag_hint(l->diag, "a model begins with: model NAME(batch B = 32)");
        return false;
    }
    for (size_t i = 0; i < body->count && !l->model; i++)
        if (body->at[i]->kind == STMT_MODEL)
            l->model = body->at[i];
    if (!l->model || l->model != body->at[0]) {
        diag_error(l->diag, body->at[0]->span, "the file must begin with a model statement");
        if (l->model)
            diag_note(l->diag, l->model->span, "the model statement is here");
        else
            diag_hint(l->diag, "model NAME(batch B = 32)");
        if (!l->model)
            return false;
    }
    l->g->name = l->model->name.text;
    l->g->dimension.count = 0;
    for (size_t i = 0; i < l->model->arg.count; i++)
        lower_dimension(l, frame, &l->model->arg.at[i]);
    check_defines(l);
    return true;
}

Lower *lower_begin(Graph *g, const Model *model, Frame **frame)
{
    Lower *l = ARENA_NEW(g->arena, Lower);
    *l = (Lower){.g = g,
                 .arena = g->arena,
                 .diag = g->diag,
                 .from = model,
                 .ast = model->ast,
                 .earlier = g->value.count,
                 .used = names_new(g->arena),
                 .spelt = names_new(g->arena),
                 .outputs = names_new(g->arena)};
    *frame = frame_new(l, NULL, NULL, false);
    (*frame)->path = "";
    g->output.count = 0;
    g->train = (Train){0};
    g->data.count = 0;
    lower_precision(l);
    return lower_model(l, *frame) ? l : NULL;
}

bool lower_into(Graph *g, const Model *model)
{
    int errors = diag_errors(g->diag);
    Frame *frame;
    Lower *l = lower_begin(g, model, &frame);
    if (!l)
        return false;
    lower_body(l, frame, &model->ast->body);
    lower_groups(l);
    check_precision(l);
    check_data(l);
    if (l->metric.line && !g->train.present)
        diag_error(l->diag, l->metric,
                   "a metric needs a train statement: training and its "
                   "evaluation compute it");
    if (!g->output.count && !g->train.present && diag_errors(l->diag) == errors) {
        diag_error(l->diag, l->model->span, "the model has no output");
        diag_hint(l->diag, "declare one: output NAME");
    }
    return diag_errors(l->diag) == errors;
}

Graph *lower(Arena *arena, Diag *diag, const Model *model)
{
    Graph *g = graph_new(arena, diag, model->source);
    g->precision = model->precision;
    g->has_half = model->has_half;
    return lower_into(g, model) ? g : NULL;
}
