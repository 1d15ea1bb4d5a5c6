/* gplan: the command. Reads as the data flow; each call is a pass, explained where it lives. */
#include "codegen/codegen.h"
#include "frontend/command/attempt.h"
#include "frontend/command/output.h"
#include "frontend/command/watch.h"
#include "planner/remat/remat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ---- Dumps: -d PASS,PASS -------------------------------------------------------------------- */

static const char *const passes[] = {"lower", "train", "simplify", "fuse", "plan"};
enum { PASSES = sizeof passes / sizeof *passes };

/* Whether the comma list names the pass. */
static bool wanted(const char *list, const char *pass)
{
    size_t length = strlen(pass);
    for (const char *at = list; at && (at = strstr(at, pass)); at += length)
        if ((at == list || at[-1] == ',') && (at[length] == ',' || !at[length]))
            return true;
    return false;
}

static bool known(const char *list)
{
    for (const char *at = list; *at;) {
        size_t length = strcspn(at, ",");
        bool found = false;
        for (int i = 0; i < PASSES; i++)
            found |= strlen(passes[i]) == length && memcmp(passes[i], at, length) == 0;
        if (!found)
            return false;
        at += length + (at[length] == ',');
    }
    return true;
}

/* ---- Output --------------------------------------------------------------------------------- */

static const char *extension(const char *path)
{
    const char *dot = path ? strrchr(path, '.') : NULL;
    return dot && !strchr(dot, '/') ? dot + 1 : NULL;
}

/* dir/model.c -> dir/model.h */
static char *beside(Arena *arena, const char *output, const char *other)
{
    return arena_printf(arena, "%.*s%s", (int)(extension(output) - output), output, other);
}

/* What the C file includes: dir/model.c -> model.h */
static const char *header_name(Arena *arena, const char *output, const char *model)
{
    if (!output)
        return arena_printf(arena, "%s.h", model);
    const char *path = beside(arena, output, "h"), *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* What can be written, by name and by the extension of the file. */
static const struct {
    const char *name;
    Text (*emit)(const Plan *plan, const EmitOptions *options);
    Text (*draw)(const Graph *g, const EmitOptions *options); /* needs no plan */
    int target;                                               /* TARGET_AUTO: any */
} kinds[] = {
    {"c", emit_source, NULL, TARGET_C},       {"cu", emit_source, NULL, TARGET_CUDA},
    {"h", emit_header, NULL, TARGET_AUTO},    {"report", emit_report, NULL, TARGET_AUTO},
    {"dot", emit_dot, NULL, TARGET_AUTO},     {"svg", emit_svg, NULL, TARGET_AUTO},
    {"html", emit_html, NULL, TARGET_AUTO},   {"json", emit_json, NULL, TARGET_AUTO},
    {"trace", emit_trace, NULL, TARGET_AUTO}, {"graph", NULL, emit_graph, TARGET_AUTO},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* The place in kinds; -1: there is none of the name. */
static int find_kind(const Options *o)
{
    const char *name = o->emit ? o->emit : extension(o->output);
    for (int i = 0; name && i < KINDS; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return i;
    return -1;
}

static int find_target(const Options *o)
{
    int kind = find_kind(o);
    return o->target ? (int)o->target : kind >= 0 ? kinds[kind].target : TARGET_AUTO;
}

/* False with a message naming the file. */
static bool write_files(Diag *diag, const OutFile *file, size_t count)
{
    const OutFile *culprit = files_write(file, count);
    return !culprit ||
           diag_error(diag, (Place){0}, "%s: cannot be written: %s",
                      culprit->path ? culprit->path : "standard output", strerror(errno));
}

static bool write_output(Arena *arena, Diag *diag, const Options *o, const Plan *plan,
                         const EmitOptions *emit)
{
    int kind = find_kind(o);
    OutFile file[3] = {{o->output, kinds[kind].emit(plan, emit)}};
    if (kinds[kind].emit != emit_source)
        return write_files(diag, file, 1);
    file[2].text = emit_constants(plan, emit);
    if (!o->output) {
        if (file[2].text.length > 0)
            return diag_error(diag, (Place){0},
                              "%s has constants that go to a file beside the text: give -o "
                              "FILE.%s",
                              plan->graph->name, kinds[kind].name);
        return write_files(diag, file, 1);
    }
    file[1].path = beside(arena, o->output, "h");
    file[1].text = emit_header(plan, emit);
    file[2].path = beside(arena, o->output, "safetensors");
    if (file[2].text.length > 0 && !constants_may_replace(file[2].path)) {
        diag_error(diag, (Place){0}, "%s: is not a file of constants, and would be lost",
                   file[2].path);
        diag_hint(diag, "move it away, or write another file than %s", o->output);
        return false;
    }
    return write_files(diag, file, file[2].text.length > 0 ? 3 : 2);
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

/* Wrong usage that only the whole command line shows. -1: all is well. */
static int check_usage(const Options *o)
{
    if (o->output && !extension(o->output)) {
        fprintf(stderr, "gplan: -o %s: give it an extension, e.g. %s.c\n", o->output, o->output);
        return 2;
    }
    if ((o->output || o->emit) && find_kind(o) < 0 && !o->pareto) {
        fprintf(stderr, "gplan: cannot write '%s'; the kinds are", o->emit ? o->emit : o->output);
        for (int i = 0; i < KINDS; i++)
            fprintf(stderr, "%s %s", i ? "," : "", kinds[i].name);
        fprintf(stderr, "\n");
        return 2;
    }
    if (find_kind(o) >= 0 && kinds[find_kind(o)].emit == emit_source && o->output &&
        (strcmp(extension(o->output), "h") == 0 ||
         strcmp(extension(o->output), "safetensors") == 0)) {
        fprintf(stderr, "gplan: -o %s: what goes beside the text would be the same file\n",
                o->output);
        return 2;
    }
    int kind = find_kind(o);
    if (kind >= 0 && kinds[kind].target && kinds[kind].target != find_target(o)) {
        fprintf(stderr, "gplan: --target %s is not written as %s: give FILE.%s\n",
                o->target == TARGET_CUDA ? "cuda" : "c", kinds[kind].name,
                o->target == TARGET_CUDA ? "cu" : "c");
        return 2;
    }
    if (find_target(o) == TARGET_CUDA && o->threads > 1) {
        fprintf(stderr, "gplan: --threads is for C: a GPU has its own\n");
        return 2;
    }
    if (find_target(o) == TARGET_CUDA && o->fuse == WHEN_ALWAYS) {
        fprintf(stderr,
                "gplan: --fuse always is for C: products of a GPU run nothing behind them\n");
        return 2;
    }
    if (o->dump && !known(o->dump)) {
        fprintf(stderr, "gplan: -d %s: the passes are lower,train,simplify,fuse,plan\n", o->dump);
        return 2;
    }
    if (o->calibrate && o->output && strcmp(extension(o->output), "json") != 0) {
        fprintf(stderr, "gplan: -o %s: a profile is JSON, e.g. profile.json\n", o->output);
        return 2;
    }
    if (o->infer && o->train) {
        fprintf(stderr, "gplan: --infer and --train: which of them?\n");
        return 2;
    }
    if (o->budget && o->reserve >= o->budget) {
        fprintf(stderr, "gplan: --reserve leaves nothing of the budget\n");
        return 2;
    }
    return check_questions(o);
}

/* ---- The terminal --------------------------------------------------------------------------- */

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

/* ---- The passes in order -------------------------------------------------------------------- */

static int compile(Arena *arena, Diag *diag, const Options *o)
{
    Profile profile = default_profile;
    if (o->profile && !load_profile(arena, diag, o->profile, &profile))
        return 1;
    const Source *source = source_read(arena, diag, o->model, SOURCE_LIMIT);
    if (!source)
        return 1;
    watch_say("read     %s, %zu bytes", source->file, source->length);

    /* text -> syntax tree */
    Ast *ast = parse(arena, diag, source);
    if (!ast)
        return 1;

    /* syntax tree -> graph: blocks unrolled, names resolved, every value shaped */
    Graph *g = lower(arena, diag, source, ast, o->define.at, o->define.count);
    if (!g)
        return 1;
    watch_say("lowered  %s: %zu nodes, %zu values", g->name, g->node.count, g->value.count);
    if (wanted(o->dump, "lower"))
        graph_dump(g, stdout);

    if (o->train && !g->train.present) {
        diag_error(diag, (Place){0}, "--train: %s has no train statement", g->name);
        return 1;
    }

    /* questions that take plans of their own: the largest value; micro-batches, slices, fusion */
    Target target = find_target(o) == TARGET_CUDA ? target_cuda() : target_c(o->threads);
    target.profile = &profile;
    target.tails = target.tails && o->fuse != WHEN_NEVER;
    Subject subject = {arena, diag, o, source, ast, g, target};
    PlanOptions how = plan_options(o);
    if (o->max)
        return answer_max(&subject);
    Chosen chosen = choose(&subject, &how);
    target.tails = target.tails && !chosen.choice.loops;

    /* the loss, the backward pass and the updates, as programs of their own */
    g->sliced = chosen.choice.sliced;
    if (g->train.present && !o->infer &&
        !train_add(g, ast, o->define.at, o->define.count, chosen.choice.times))
        return 1;
    watch_say("trained  %zu nodes with the programs that train", g->node.count);
    if (wanted(o->dump, "train"))
        graph_dump(g, stdout);

    /* what nobody needs goes, equal nodes merge */
    simplify(g);
    watch_say("simplified  %zu nodes are left", g->node.count);
    if (wanted(o->dump, "simplify"))
        graph_dump(g, stdout);

    /* a drawing of the model asks for no plan */
    if (find_kind(o) >= 0 && kinds[find_kind(o)].draw) {
        Text text = kinds[find_kind(o)].draw(g, &(EmitOptions){.depth = o->depth});
        return write_files(diag, &(OutFile){o->output, text}, 1) ? 0 : 1;
    }

    /* elementwise chains become clusters, alone or behind a product */
    Clusters *clusters = fuse(g, &target);
    watch_say("fused    into %u clusters", clusters->count);
    if (wanted(o->dump, "fuse"))
        clusters_dump(g, clusters, stdout);

    if (o->pareto)
        return answer_pareto(&subject);

    /* order, what is computed again, in place, lifetimes, offsets */
    Plan *plan = chosen.plan ? chosen.plan : plan_make(g, clusters, &target, &how);
    bool plain = choice_is(chosen.choice, (Choice){0, false, false});
    plan->least_cost = plain ? plan_cost(g, clusters, &target) : least_cost(&subject, NULL, 0);
    watch_end();
    watch_say("planned  effort %llu%s", (unsigned long long)plan->effort,
              plan->cut ? ", cut before it was spent" : "");

    /* an independent proof, always */
    const char *fault = plan_check(plan, &target);
    watch_say("checked  %u occurrences, %u buffers, an arena of %s", plan->end, plan->buffers,
              size_text(arena, plan->arena));
    if (wanted(o->dump, "plan"))
        plan_dump(plan, stdout);
    if (fault) {
        fprintf(stderr, "gplan: internal error: the plan is wrong: %s\nPlease report this.\n",
                fault);
        return 3;
    }

    /* hints are constraints */
    if (plan->broken_hint != NONE) {
        const Value *value = &g->value.at[plan->broken_hint];
        diag_error(diag, value->place, "recompute: %s cannot be computed again", value->name);
        diag_hint(diag, "what makes it, or what it is made from, is kept or has an effect");
        return 1;
    }

    if (o->min_budget) {
        printf("%llu\n", (unsigned long long)(plan->arena + o->reserve));
        if (plan->cut && !o->quiet)
            diag_note(diag, (Place){0}, "the search was cut: a smaller budget may do");
        return 0;
    }
    if (how.budget && plan->arena > how.budget) {
        explain_misfit(&subject, plan);
        return 1;
    }

    /* text, in memory, written when complete */
    EmitOptions emit = {.header = header_name(arena, o->output, g->name),
                        .prefix = c_prefix(arena, g->name),
                        .threads = o->threads,
                        .target = &target,
                        .budget = o->budget,
                        .micro = chosen.micro,
                        .slices = chosen.slices,
                        .tails = chosen.tails,
                        .depth = o->depth,
                        .width = terminal_width(),
                        .color = o->color == COLOR_ALWAYS && isatty(STDOUT_FILENO)};
    if (o->report || (!o->output && !o->emit && !o->dump && !o->quiet))
        if (!write_files(diag, &(OutFile){NULL, emit_report(plan, &emit)}, 1))
            return 1;
    if ((o->output || o->emit) && !write_output(arena, diag, o, plan, &emit))
        return 1;
    return 0;
}

/* ---- Profiles ------------------------------------------------------------------------------- */

static int calibrate(Arena *arena, Diag *diag, const Options *o)
{
    Profile profile = profile_measure();
    return write_files(diag, &(OutFile){o->output, profile_text(arena, &profile)}, 1) ? 0 : 1;
}

/* ---- gplan verify --------------------------------------------------------------------------- */

static int verify(Arena *arena, int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: gplan verify PLAN.json\n");
        return 2;
    }
    const Source *file = source_read(arena, diag_new(arena, stderr, false), argv[1], PLAN_LIMIT);
    if (!file)
        return 1;
    Plan *plan;
    const char *fault = plan_verify(arena, (Text){file->text, file->length}, &plan);
    if (fault) {
        fprintf(stderr, "%s: error: %s\n", file->file, fault);
        return 1;
    }
    printf("%s: the plan of %s is right: %u steps, %u buffers, an arena of %s\n", file->file,
           plan->graph->name, plan->end, plan->buffers, size_text(arena, plan->arena));
    return 0;
}

static int verify_main(int argc, char **argv)
{
    Arena *arena = arena_new();
    int status = verify(arena, argc, argv);
    arena_free(arena);
    return status;
}

static int compile_main(int argc, char **argv)
{
    Arena *arena = arena_new();
    Options options;
    int status = options_read(arena, argc, argv, &options);
    if (status < 0)
        status = check_usage(&options);
    if (status < 0) {
        if (options.color == COLOR_AUTO)
            options.color = isatty(STDERR_FILENO) ? COLOR_ALWAYS : COLOR_NEVER;
        Diag *diag = diag_new(arena, stderr, options.color == COLOR_ALWAYS);
        watch_begin(&options);
        status =
            options.calibrate ? calibrate(arena, diag, &options) : compile(arena, diag, &options);
        watch_end();
    }
    arena_free(arena);
    return status;
}

static const struct {
    const char *name;
    int (*run)(int argc, char **argv); /* argv[0] is the name */
} commands[] = {{"pack", pack_main}, {"remat", remat_main}, {"verify", verify_main}};

int main(int argc, char **argv)
{
    int status = -1;
    for (size_t i = 0; i < sizeof commands / sizeof *commands && status < 0; i++)
        if (argc > 1 && strcmp(argv[1], commands[i].name) == 0)
            status = commands[i].run(argc - 1, argv + 1);
    if (status < 0)
        status = compile_main(argc, argv);
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == 0) {
        fprintf(stderr, "gplan: standard output cannot be written\n");
        status = 1;
    }
    return status;
}
