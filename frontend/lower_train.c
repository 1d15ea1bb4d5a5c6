/* The train statement: its loss becomes nodes, its settings are checked and carried.
 *
 * Settings are in Train.setting under their names; those of a schedule as schedule.steps and so
 * on. A word is carried as its place in the words listed here.
 */
#include "frontend/lower.h"

#include <string.h>

static const double ANY = SETTING_ANY;

static const Setting settings[] = {
    {"lr", ARG_FLOAT, 0, ANY, NULL},
    {"momentum", ARG_FLOAT, 0, 1, NULL},
    {"nesterov", ARG_BOOL, 0, ANY, NULL},
    {"weight_decay", ARG_FLOAT, 0, ANY, NULL},
    {"beta1", ARG_FLOAT, 0, 1, NULL},
    {"beta2", ARG_FLOAT, 0, 1, NULL},
    {"alpha", ARG_FLOAT, 0, 1, NULL},
    {"eps", ARG_FLOAT, 0, ANY, NULL},
    {"clip", ARG_FLOAT, 0, ANY, NULL},
    {"clip_value", ARG_FLOAT, 0, ANY, NULL},
    {"accumulate", ARG_INT, 1, ANY, "auto"},
    {"steps", ARG_INT, 1, ANY, NULL},
    {"warmup", ARG_INT, 0, ANY, NULL},
    {"floor", ARG_FLOAT, 0, 1, NULL},
    {"every", ARG_INT, 1, ANY, NULL},
    {"factor", ARG_FLOAT, 0, ANY, NULL},
    {"frozen", ARG_BOOL, 0, ANY, NULL},
    {"state", ARG_WORD, 0, ANY, "f32 8bit"},
    {"precision", ARG_WORD, 0, ANY, "f32 f16 bf16"},
};

typedef struct {
    const char *name, *takes; /* its settings, in the order of positional arguments */
    bool needs_first;         /* there is no going without the first of them */
} Kind;

static const Kind schedules[] = {
    {"constant", "warmup", false},
    {"linear", "steps warmup floor", true},
    {"cosine", "steps warmup floor", true},
    {"step", "every factor warmup", true},
};

static const char body_settings[] = "clip clip_value accumulate schedule precision";

static const Setting *find_setting(const char *name)
{
    size_t i = 0;
    while (strcmp(settings[i].name, name) != 0)
        i++; /* only names of the tables above are looked for */
    return &settings[i];
}

/* ---- One setting ---------------------------------------------------------------------------- */

static void carry(Lower *l, const char *prefix, Name name, const char *pattern, Attr value)
{
    Train *train = &l->g->train;
    const char *full = arena_printf(l->arena, "%s%s", prefix, name.text);
    for (size_t i = 0; i < train->setting.count; i++) {
        const TrainSetting *old = &train->setting.at[i];
        bool same = old->pattern && pattern ? strcmp(old->pattern, pattern) == 0
                                            : !old->pattern && !pattern;
        if (strcmp(old->name, full) == 0 && same) {
            diag_error(l->diag, name.span, "%s is set twice", full);
            diag_note(l->diag, old->span, "first here");
            return;
        }
    }
    ARRAY_PUSH(l->arena, &train->setting, (TrainSetting){full, pattern, value, name.span});
}

/* A setting that must be one of `takes`. */
static void lower_setting(Lower *l, Frame *frame, const char *prefix, const char *takes,
                          const char *of, Name name, const Expr *expr, const char *pattern)
{
    if (word_place(takes, name.text) < 0) {
        setting_unknown(l, name, arena_printf(l->arena, "%s has no setting", of), takes);
        return;
    }
    Attr attr;
    if (setting_eval(l, frame, find_setting(name.text), expr, &attr))
        carry(l, prefix, name, pattern, attr);
}

/* ---- Optimizer, schedule, groups ------------------------------------------------------------- */

static const Kind *find_kind(Lower *l, const Kind *kinds, size_t count, Name name, const char *what)
{
    const char *names = "";
    for (size_t i = 0; i < count; i++) {
        if (strcmp(kinds[i].name, name.text) == 0)
            return &kinds[i];
        names = arena_printf(l->arena, "%s%s%s", names, i ? " " : "", kinds[i].name);
    }
    setting_unknown(l, name, arena_printf(l->arena, "unknown %s", what), names);
    return NULL;
}

/* Optimizers are rows: what they take are the settings of theirs that a user can give. */
static const Kind *find_optimizer(Lower *l, Name name)
{
    ARRAY(Kind) kinds = {0};
    for (size_t i = 0; op_at(i); i++) {
        const OpRow *op = op_at(i);
        if (!(op->flags & OP_OPTIMIZER))
            continue;
        const char *takes = "";
        for (int k = 0; k < MAX_ARGS && op->args[k].name; k++)
            if (op->args[k].kind != ARG_TENSOR && !(op->args[k].flags & ARG_HIDDEN))
                takes =
                    arena_printf(l->arena, "%s%s%s", takes, *takes ? " " : "", op->args[k].name);
        ARRAY_PUSH(l->arena, &kinds, (Kind){op->name, takes, false});
    }
    return find_kind(l, kinds.at, kinds.count, name, "optimizer");
}

static void lower_arguments(Lower *l, Frame *frame, const Kind *kind, const char *prefix,
                            const Arguments *args)
{
    const char *word[16];
    size_t words = split_words(l, kind->takes, word, 16), next = 0;
    for (size_t i = 0; i < args->count; i++) {
        const Argument *arg = &args->at[i];
        Name name = arg->name;
        if (!name.text && next == words) {
            diag_error(l->diag, arg->value->span, "%s takes %zu settings", kind->name, words);
            return;
        }
        if (!name.text)
            name = (Name){word[next++], arg->value->span};
        lower_setting(l, frame, prefix, kind->takes, kind->name, name, arg->value, NULL);
    }
}

static void lower_schedule(Lower *l, Frame *frame, Name name, const Expr *expr)
{
    if (expr->kind != EXPR_NAME && expr->kind != EXPR_CALL) {
        diag_error(l->diag, expr->span, "a schedule is a word, such as cosine(steps = 10000)");
        return;
    }
    Name word = {expr->text, expr->span};
    const Kind *kind =
        find_kind(l, schedules, sizeof schedules / sizeof *schedules, word, "schedule");
    if (!kind)
        return;
    Attr attr = {.given = true, .is_word = true, .number = (double)(kind - schedules)};
    carry(l, "", name, NULL, attr);
    if (expr->kind == EXPR_CALL)
        lower_arguments(l, frame, kind, "schedule.", &expr->arg);
    bool found = !kind->needs_first || diag_errors(l->diag);
    const char *first = arena_copy(l->arena, kind->takes, strcspn(kind->takes, " "));
    const char *wanted = arena_printf(l->arena, "schedule.%s", first);
    for (size_t i = 0; i < l->g->train.setting.count; i++)
        found |= strcmp(l->g->train.setting.at[i].name, wanted) == 0;
    if (!found) {
        diag_error(l->diag, expr->span, "%s needs %s", kind->name, first);
        diag_hint(l->diag, "%s(%s = 10000)", kind->name, first);
    }
}

static void lower_group(Lower *l, Frame *frame, const Stmt *group, const Kind *optimizer)
{
    const char *takes = arena_printf(l->arena, "%s frozen", optimizer->takes);
    for (size_t i = 0; i < group->body.count; i++) {
        const Stmt *stmt = group->body.at[i];
        if (stmt->kind != STMT_ASSIGN || stmt->target.count != 1) {
            diag_error(l->diag, stmt->span, "a group may only have settings: name = value");
            continue;
        }
        lower_setting(l, frame, "", takes, "a group", stmt->target.at[0], stmt->value,
                      group->name.text);
    }
    if (!group->body.count)
        diag_error(l->diag, group->span, "the group sets nothing");
}

static void lower_train_body(Lower *l, Frame *frame, const Stmts *body, const Kind *optimizer)
{
    for (size_t i = 0; i < body->count; i++) {
        const Stmt *stmt = body->at[i];
        if (stmt->kind == STMT_PRECISION)
            continue; /* lower_precision has it */
        if (stmt->kind == STMT_GROUP)
            lower_group(l, frame, stmt, optimizer);
        else if (stmt->kind != STMT_ASSIGN || stmt->target.count != 1)
            diag_error(l->diag, stmt->span,
                       "train may only have settings and groups: name = value");
        else if (strcmp(stmt->target.at[0].text, "schedule") == 0)
            lower_schedule(l, frame, stmt->target.at[0], stmt->value);
        else
            lower_setting(l, frame, "", body_settings, "train", stmt->target.at[0], stmt->value,
                          NULL);
    }
}

static void lower_loss(Lower *l, Frame *frame, const Stmt *stmt)
{
    Bound bound = {"loss", false};
    Val loss = eval(l, frame, stmt->value, &bound);
    l->g->train.loss = (Use){NONE, NONE};
    if (loss.kind == VAL_POISON)
        return;
    if (loss.kind == VAL_TENSOR)
        loss.use = wide_use(l, stmt, loss.use);
    bool scalar = loss.kind == VAL_TENSOR && use_view(l->g, loss.use).rank == 0 &&
                  l->g->value.at[loss.use.value].dtype == F32;
    if (scalar) {
        l->g->train.loss = loss.use;
        return;
    }
    diag_error(l->diag, stmt->value->span, "the loss must be one f32, not %s", val_text(l, loss));
    if (loss.kind == VAL_TENSOR && use_view(l->g, loss.use).rank > 0)
        diag_hint(l->diag, "reduce it with mean(x) or sum(x)");
}

/* One number of all samples, for eval and the step. */
void lower_metric(Lower *l, Frame *frame, const Stmt *stmt)
{
    Bound bound = {stmt->name.text, stmt->own_name};
    Val val = eval(l, frame, stmt->value, &bound);
    if (!claim_output(l, frame, stmt) || !frame_bind(l, frame, stmt->name, BOUND_VALUE, val))
        return;
    if (!l->metric.line)
        l->metric = stmt->span;
    if (val.kind == VAL_POISON)
        return;
    if (val.kind != VAL_TENSOR || use_view(l->g, val.use).rank > 0) {
        diag_error(l->diag, stmt->value->span, "a metric must be one number of all samples, not %s",
                   val_text(l, val));
        diag_hint(l->diag, "metric %s = mean(...)", stmt->name.text);
        return;
    }
    val.use = wide_use(l, stmt, val.use);
    if (l->g->program != PROGRAM_FORWARD)
        ARRAY_PUSH(
            l->arena, &l->g->output,
            (Output){
                .use = val.use, .name = stmt->name.text, .span = stmt->name.span, .metric = true});
}

void lower_train(Lower *l, Frame *frame, const Stmt *stmt)
{
    Train *train = &l->g->train;
    if (train->present) {
        diag_error(l->diag, stmt->span, "a model has one train statement");
        diag_note(l->diag, train->span, "the first is here");
        return;
    }
    train->present = true;
    train->span = stmt->span;
    lower_loss(l, frame, stmt);
    const Kind *optimizer = find_optimizer(l, stmt->name);
    if (!optimizer)
        return;
    train->optimizer = optimizer->name;
    lower_arguments(l, frame, optimizer, "", &stmt->arg);
    lower_train_body(l, frame, &stmt->body, optimizer);
}

static void freeze(const Graph *g, Value *value, const TrainSetting *setting)
{
    value->frozen = setting->value.number != 0;
    value->why = arena_printf(g->arena, "frozen = %s for \"%s\" in the train statement",
                              value->frozen ? "true" : "false", setting->pattern);
}

void lower_groups(Lower *l)
{
    const Train *train = &l->g->train;
    if (diag_errors(l->diag))
        return; /* parameters may be missing for another reason */
    for (size_t i = 0; i < train->setting.count; i++) {
        const TrainSetting *setting = &train->setting.at[i];
        bool any = !setting->pattern;
        for (size_t j = 0; setting->pattern && j < l->g->value.count; j++) {
            Value *value = &l->g->value.at[j];
            if (value->kind != VALUE_PARAM || !name_matches(setting->pattern, value->name))
                continue;
            any = true;
            if (strcmp(setting->name, "frozen") == 0)
                freeze(l->g, value, setting);
        }
        if (!any) {
            diag_error(l->diag, setting->span, "no parameter matches \"%s\"", setting->pattern);
            return;
        }
    }
}
