/* What is asked of a model that it cannot give: seen when it is read, before anything is planned.
 */
#include "frontend/command/kinds.h"
#include "frontend/command/question.h"

#include <string.h>

/* The program around a model trains it with samples that it reads itself; false with a message. */
static bool may_have_main(Diag *diag, const Model *model)
{
    bool reads = model_reads_data(model);
    if (reads && model_trains(model) && (!model->programs || model->programs & 1u << PROGRAM_STEP))
        return true;
    diag_error(diag, (Span){0},
               reads
                   ? "the program around a model trains it, and there is no training step here"
                   : "the model has no data statement, so there is no program to write around it");
    diag_hint(diag, reads ? "leave --infer away, and have step in --programs"
                          : "say where samples come from: data train = ..., or write a C file with "
                            "main, and gplan run MODEL FILE.c");
    return false;
}

/* Ranks divide the batch of a training step; false with a message. */
static bool may_have_ranks(Diag *diag, const Model *model, const Options *o)
{
    const char *option = o->ranks ? "ranks" : "as-ranks";
    if (o->ranks && o->as_ranks)
        diag_error(diag, (Span){0}, "--ranks and --as-ranks: either several ranks, or one for all");
    else if (!model_trains(model))
        diag_error(diag, (Span){0}, "--%s: the model has no train statement", option);
    else if (o->as_ranks && find_target(o)->plan.link != LINK_POLLED)
        diag_error(diag, (Span){0}, "--as-ranks: the target %s has no program of one rank for all",
                   find_target(o)->plan.name);
    else if (o->ranks && (o->io_external || o->params_external))
        diag_error(diag, (Span){0}, "--ranks: what is summed over ranks lies in the arena");
    else
        return true;
    return false;
}

bool model_suits(Diag *diag, const Model *model, const Options *o)
{
    bool trains = model_trains(model);
    if (!trains && (o->train || (o->programs && !model->infer))) {
        diag_error(diag, (Span){0}, "--%s: the model has no train statement",
                   o->train ? "train" : "programs");
        return false;
    }
    if (trains && o->params_file) {
        diag_error(diag, (Span){0}, "--params embedded: weights in the C file cannot be trained");
        diag_hint(diag, "add --infer to plan the forward pass only");
        return false;
    }
    if (o->shard && !o->ranks) {
        diag_error(diag, (Span){0}, "--shard: there is nothing to divide without --ranks");
        return false;
    }
    if ((o->ranks || o->as_ranks) && !may_have_ranks(diag, model, o))
        return false;
    return !o->main || may_have_main(diag, model);
}
