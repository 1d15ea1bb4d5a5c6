/* `gplan MODEL`: the driver. Reads as the data flow; each call is a pass, explained where it lives.
 */
#include "frontend/command/dump.h"
#include "frontend/command/import.h"
#include "frontend/command/kinds.h"
#include "frontend/command/question.h"
#include "frontend/command/watch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Columns of the terminal that the report goes to; 0: it is none, or will not say. */
static uint32_t terminal_width(void)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    if (columns && atoi(columns) > 0)
        return (uint32_t)atoi(columns);
    if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
        return 0;
    return size.ws_col;
}

/* What the estimates are made of; false with a message. */
static bool load_profile(Arena *arena, Diag *diag, const char *path, Profile *profile)
{
    const Source *file = source_read(arena, diag, path, SOURCE_LIMIT);
    const char *fault =
        file ? profile_read(arena, (Text){file->text, file->length}, profile) : NULL;
    if (fault)
        fprintf(stderr, "%s: error: %s\n", path, fault);
    return file && !fault;
}

static EmitOptions emit_options(Arena *arena, const Options *o, const Target *target,
                                const Built *built, const LivePeak *live_peak)
{
    return (EmitOptions){.header = header_name(arena, o->output, built->graph->name),
                         .prefix = o->prefix ? o->prefix : c_prefix(arena, built->graph->name),
                         .target = target,
                         .budget = o->budget,
                         .programs = o->programs,
                         .choice = built->choice,
                         .why = built->why,
                         .search = built->search,
                         .live_peak = *live_peak,
                         .depth = o->depth,
                         .width = terminal_width(),
                         .color = o->color == COLOR_ALWAYS && isatty(STDOUT_FILENO),
                         .main = o->main};
}

/* The weights that are to be data of the C file; false with a message. */
static bool embed(const Question *q, const Plan *plan, EmitOptions *emit)
{
    const char *fault = NULL;
    const Source *file = source_read(q->arena, q->diag, q->options->params_file, WEIGHTS_LIMIT);
    if (file)
        emit->embedded = embedded_read(plan, emit, (Text){file->text, file->length}, &fault);
    if (fault)
        fprintf(stderr, "%s: error: %s\n", q->options->params_file, fault);
    return emit->embedded != NULL;
}

/* Nobody asked for micro-batches. */
static void note_micro(const Question *q, const Built *built)
{
    diag_note(q->diag, (Span){0},
              "a step runs in %u micro-batches, since nothing else fits the budget: the result is "
              "%sequal up to rounding; --accumulate 1 forbids them",
              built->choice.micro,
              built->graph->train.own ? "that of statistics of each micro-batch, and otherwise "
                                      : "");
}

/* What is printed of a plan that was checked, and what becomes of it. */
static int deliver(const Question *q, const Built *built, const LivePeak *live_peak)
{
    const Options *o = q->options;
    const Plan *plan = built->plan;
    uint64_t budget = o->budget ? o->budget - o->reserve : UINT64_MAX;
    if (o->dump)
        dump(o->dump, q->model, built);
    if (built->search.broken_hint != NONE) { /* hints are constraints */
        const Value *value = &built->graph->value.at[built->search.broken_hint];
        diag_error(q->diag, value->span, "recompute: %s cannot be recomputed", value->name);
        diag_hint(q->diag, "it, or something it is computed from, is kept or has side effects");
        return 1;
    }
    if (o->min_budget)
        return answer_min_budget(q, built);
    if (plan->arena[SPACE_ARENA] > budget) {
        explain_misfit(q, built, live_peak);
        return 1;
    }

    if (built->micro_open && built->choice.micro > 1 && !o->quiet)
        note_micro(q, built);

    /* text, in memory, written when complete */
    EmitOptions emit = emit_options(q->arena, o, q->target, built, live_peak);
    if (o->params_file && !embed(q, plan, &emit))
        return 1;
    const bool reports = o->report || (!o->output && !o->emit && !o->dump && !o->quiet);
    if (reports && o->ranks > 1) {
        const PlanOptions how = plan_options(o);
        choose_stages(q->model, q->target, &how, &built->choice, emit.stage);
    }
    if (reports)
        if (!output_write(q->diag, &(OutFile){.text = emit_report(plan, &emit)}, 1))
            return 1;
    if ((o->output || o->emit) && !write_output(q->arena, q->diag, o, q->import, plan, &emit))
        return 1;
    if (o->learned)
        o->learned->libraries = emit_libraries(plan);
    return 0;
}

/* ---- The passes in order -------------------------------------------------------------------- */

static int compile(Arena *arena, Diag *diag, const Options *o)
{
    Profile profile = default_profile;
    if (o->profile && !load_profile(arena, diag, o->profile, &profile))
        return 1;
    Target target = target_make(find_target(o), o->threads);
    target.profile = &profile;

    /* the files -> syntax tree */
    Model model;
    OnnxImport *import;
    if (!model_read(arena, diag, o, o->input.at, o->input.count, &model, &import))
        return 1;
    model.has_half = target.has_half;
    if (find_kind(o) && find_kind(o)->is_text)
        return write_model(arena, diag, o, import, model.ast) ? 0 : 1;
    if (!model_suits(diag, &model, o))
        return 1;

    /* questions that are answered instead */
    Question question = {arena, diag, o, &model, &target, import};
    if (o->max)
        return answer_max(&question);
    if (o->pareto)
        return answer_pareto(&question);
    if (find_kind(o) && find_kind(o)->draw)
        return answer_graph(&question);

    /* syntax tree -> graph -> clusters -> order, what is computed again, offsets: for the choice of
     * micro-batches, chunks and epilogues that serves the budget best */
    PlanOptions how = plan_options(o);
    Built built = choose(&model, &target, &how, diag);
    watch_end();
    if (!built.graph)
        return 1;
    watch_say("chosen   effort %llu%s", (unsigned long long)built.search.effort,
              built.search.cut ? ", cut before it was spent" : "");

    /* an independent proof, always */
    LivePeak live_peak;
    const char *fault = plan_check(built.plan, &target, &live_peak);
    watch_say("checked  %u occurrences, %u buffers, an arena of %s", built.plan->end,
              built.plan->buffers, size_text(arena, built.plan->arena[SPACE_ARENA]));
    if (fault)
        fprintf(stderr, "gplan: internal error: the plan is wrong: %s\nPlease report this.\n",
                fault);

    /* the plan -> text */
    int status = fault ? 3 : deliver(&question, &built, &live_peak);
    built_free(&built);
    return status;
}

/* ---- Profiles ------------------------------------------------------------------------------- */

static int calibrate(Arena *arena, Diag *diag, const Options *o)
{
    const Profile profile = profile_measure();
    const bool link = o->output && strcmp(extension(o->output), "c") == 0;
    const Text text =
        link ? profile_link_program(arena, &profile, o->output) : profile_text(arena, &profile);
    return output_write(diag, &(OutFile){.path = o->output, .text = text}, 1) ? 0 : 1;
}

/* ---- The command ---------------------------------------------------------------------------- */

int compile_main(Arena *arena, const Options *given)
{
    Options o = *given;
    if (o.output && strcmp(o.output, "-") == 0) {
        o.output = NULL;
        if (!o.emit && !o.calibrate) {
            fprintf(stderr, "gplan: -o -: give --emit KIND to say what to write\n");
            return 2;
        }
    }
    int status = check_usage(&o);
    if (status >= 0)
        return status;
    if (o.color == COLOR_AUTO)
        o.color = isatty(STDERR_FILENO) ? COLOR_ALWAYS : COLOR_NEVER;
    Diag *diag = diag_new(arena, stderr, o.color == COLOR_ALWAYS);
    watch_begin(&o);
    status = o.calibrate ? calibrate(arena, diag, &o) : compile(arena, diag, &o);
    watch_end();
    return status;
}
