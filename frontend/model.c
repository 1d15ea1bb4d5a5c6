/* A model as a value: what can be lowered again, for each Choice. */
#include "frontend/ast.h"
#include "frontend/frontend.h"

#include <string.h>

bool choice_equals(Choice a, Choice b)
{
    return a.micro == b.micro && a.chunked_loss == b.chunked_loss && a.epilogues == b.epilogues &&
           a.precision == b.precision && a.ring.depth == b.ring.depth &&
           a.ring.workers == b.ring.workers && a.ranks == b.ranks && a.as_ranks == b.as_ranks &&
           a.all_at_once == b.all_at_once && a.shard == b.shard && a.prepared == b.prepared;
}

Model model_define(Arena *arena, const Model *model, const char *name, int64_t value)
{
    Model defined = *model;
    Define *define = ARENA_ARRAY(arena, Define, model->defines + 1);
    size_t count = 0;
    for (size_t i = 0; i < model->defines; i++)
        if (strcmp(model->define[i].name, name) != 0)
            define[count++] = model->define[i];
    define[count++] = (Define){name, value};
    defined.define = define;
    defined.defines = count;
    return defined;
}

static bool model_has(const Model *model, StmtKind kind)
{
    const Stmts *body = &model->ast->body;
    for (size_t i = 0; i < body->count; i++)
        if (body->at[i]->kind == kind)
            return true;
    return false;
}

/* Read from the tree: everything before the train statement is lowered by it. What is wrong
 * with it is said when that is. */
Dtype model_precision(const Model *model)
{
    const Stmts *body = &model->ast->body;
    for (size_t i = 0; i < body->count && !model->infer; i++)
        for (size_t k = 0; body->at[i]->kind == STMT_TRAIN && k < body->at[i]->body.count; k++) {
            const Stmt *setting = body->at[i]->body.at[k];
            const bool names = setting->kind == STMT_ASSIGN && setting->target.count == 1 &&
                               strcmp(setting->target.at[0].text, "precision") == 0;
            const Dtype dtype = names && setting->value->kind == EXPR_NAME
                                    ? dtype_find(setting->value->text)
                                    : DTYPES;
            if (dtype != DTYPES && dtype_is_real(dtype))
                return dtype;
        }
    return F32;
}

bool model_trains(const Model *model)
{
    return !model->infer && model_has(model, STMT_TRAIN);
}

bool model_reads_data(const Model *model)
{
    return model_has(model, STMT_DATA);
}

bool model_plans(const Model *model, ProgramKind program)
{
    return !model->programs || model->programs >> program & 1;
}

Graph *model_lower_first(const Model *model, const Choice *choice, Arena *arena, Diag *diag,
                         Model *part)
{
    Model *whole = ARENA_NEW(arena, Model);
    *whole = *model;
    whole->precision = choice->precision;
    *part = *whole;
    Graph *g = lower(arena, diag, whole);
    if (g && choice->ranks && !ranks_divide(g, whole, choice, part))
        return NULL;
    if (g && choice->ranks && !choice->as_ranks) /* again, for a rank's part of the batch */
        g = lower(arena, diag, part);
    if (!g)
        return NULL;
    g->chunked_loss = choice->chunked_loss;
    ranks_begin(g, choice, whole);
    return g;
}

Graph *model_lower(const Model *model, const Choice *choice, Arena *arena, Diag *diag)
{
    Model part;

    /* syntax tree -> graph: blocks unrolled, names resolved, every value shaped */
    Graph *g = model_lower_first(model, choice, arena, diag, &part);
    if (!g)
        return NULL;

    /* the loss, the backward pass and the updates, as programs of their own */
    if (g->train.present && !model->infer && !train_add(g, &part, choice->micro))
        return NULL;

    /* unused nodes are removed, equal nodes merge */
    simplify(g);

    /* parameters change in training alone: otherwise what is made of them is made once */
    if (!g->train.present || model->infer) {
        join_affine(g);
        simplify(g);
        prepare(g, choice->prepared);
    }

    /* what is f32 for an output is read as that */
    wide_reads(g);

    /* what micro-batches make in its place in an output */
    output_windows(g);
    return g;
}
