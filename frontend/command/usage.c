/* Wrong usage that only the whole command line shows. */
#include "frontend/command/dump.h"
#include "frontend/command/kinds.h"

#include <string.h>

/* Whether the name is one that C and C++ take, and that nothing else has. */
static bool is_prefix(const char *name)
{
    Arena *arena = arena_new();
    bool good = *name && strcmp(c_prefix(arena, name), name) == 0;
    arena_free(arena);
    return good;
}

/* Questions that are answered instead of writing a program. -1: all is well. */
static int check_questions(const Options *o)
{
    if ((o->max != NULL) + o->pareto + o->min_budget > 1) {
        fprintf(stderr, "gplan: --max, --min-budget and --pareto: one question at a time\n");
        return 2;
    }
    if (o->pareto && o->emit && strcmp(o->emit, "csv") != 0 && strcmp(o->emit, "json") != 0) {
        fprintf(stderr, "gplan: --pareto is written as csv or json, not as '%s'\n", o->emit);
        return 2;
    }
    if (o->pareto && o->output) {
        fprintf(stderr, "gplan: --pareto goes to standard output; -o does not go with it\n");
        return 2;
    }
    if (o->max && !o->budget) {
        fprintf(stderr, "gplan: --max %s: within which --budget?\n", o->max);
        return 2;
    }
    return -1;
}

uint8_t programs_read(const char *list)
{
    static const char *const names[] = {
        [PROGRAM_FORWARD] = "forward", [PROGRAM_EVAL] = "eval", [PROGRAM_STEP] = "step"};
    uint8_t all = 0;
    for (const char *at = list;; at++) {
        size_t length = strcspn(at, ","), p = PROGRAM_FORWARD;
        while (p <= PROGRAM_STEP &&
               (strlen(names[p]) != length || memcmp(at, names[p], length) != 0))
            p++;
        if (p > PROGRAM_STEP)
            return 0;
        all |= (uint8_t)(1u << p);
        at += length;
        if (!*at)
            return all;
    }
}

int check_usage(const Options *o)
{
    if (o->output && !extension(o->output)) {
        fprintf(stderr, "gplan: -o %s: give it an extension, e.g. %s.c\n", o->output, o->output);
        return 2;
    }
    if ((o->output || o->emit) && !find_kind(o) && !o->pareto) {
        fprintf(stderr, "gplan: cannot write '%s'; the kinds are %s\n",
                o->emit ? o->emit : o->output, kind_words());
        return 2;
    }
    if (kind_is_source(find_kind(o)) && o->output &&
        (strcmp(extension(o->output), "h") == 0 ||
         strcmp(extension(o->output), "safetensors") == 0)) {
        fprintf(stderr, "gplan: -o %s: what goes beside the text would be the same file\n",
                o->output);
        return 2;
    }
    const TargetRow *target = find_target(o), *written = written_target(o);
    if (written && written != target) {
        fprintf(stderr, "gplan: --target %s is not written as %s: give FILE.%s\n",
                target->plan.name, written->extension, target->extension);
        return 2;
    }
    if (o->main && (!o->output || !written || !target->threads)) {
        fprintf(stderr, "gplan: --main writes FILE_main.c beside -o FILE.c: give that\n");
        return 2;
    }
    if (!target->threads && o->threads > 1) {
        fprintf(stderr, "gplan: --threads: the target %s has its own\n", target->plan.name);
        return 2;
    }
    if (!target->plan.epilogues && o->epilogues == WHEN_ALWAYS) {
        fprintf(stderr, "gplan: --epilogues always: products of the target %s have none\n",
                target->plan.name);
        return 2;
    }
    if (o->params_file && !target->threads) {
        fprintf(stderr, "gplan: --params embedded: the target %s has memory of its own\n",
                target->plan.name);
        return 2;
    }
    if (o->dump && !dump_knows(o->dump)) {
        fprintf(stderr, "gplan: -d %s: the passes are " PASSES "\n", o->dump);
        return 2;
    }
    if (o->calibrate && o->output && strcmp(extension(o->output), "json") != 0 &&
        strcmp(extension(o->output), "c") != 0) {
        fprintf(stderr,
                "gplan: -o %s: a profile is JSON, e.g. profile.json; or link.c, a program that "
                "measures the link between ranks too\n",
                o->output);
        return 2;
    }
    if (o->prefix && !is_prefix(o->prefix)) {
        fprintf(stderr, "gplan: --prefix '%s': C or C++ would refuse names that begin so\n",
                o->prefix);
        return 2;
    }
    if (o->infer && o->train) {
        fprintf(stderr, "gplan: --infer and --train: which of them?\n");
        return 2;
    }
    if (o->programs && (o->infer || o->train)) {
        fprintf(stderr, "gplan: --programs says what to plan, so --%s does not go with it\n",
                o->infer ? "infer" : "train");
        return 2;
    }
    if (o->programs && !programs_read(o->programs)) {
        fprintf(stderr, "gplan: --programs '%s': expected some of forward,eval,step\n",
                o->programs);
        return 2;
    }
    if (o->budget && o->reserve >= o->budget) {
        fprintf(stderr, "gplan: --reserve leaves nothing of the budget\n");
        return 2;
    }
    return check_questions(o);
}
