/* The runtime as emitted into a file: of the files that are needed, and of those that they
 * include, each once and in order, the definitions that the rest of the file reaches. What nothing
 * names stays out, and so do comments that speak of nothing else, and conditionals around nothing.
 * System includes are collected at the top. */
#include "codegen/ways.h"
#include "runtime/runtime.h"

#include <stdlib.h>
#include <string.h>

static const char settings[] = "settings.h";

typedef struct {
    const char *name;
    bool needed;
    WordList system; /* <math.h> */
} File;

typedef struct {
    const char *name;
    Id unit;
} Definition;

typedef struct {
    Arena *arena;
    const Condition *known;
    Units units;
    ARRAY(File) file;
    ARRAY(Definition) definition; /* by name */
    ARRAY(Definition) prefix;     /* of names that a macro pastes together */
    NameTable *reached;           /* names */
    bool *keep;                   /* of each unit */
} Inliner;

static void fail(const char *what, const char *name)
{
    fprintf(stderr, "gplan: internal error: the runtime has no %s %s\n", what, name);
    exit(3);
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* ---- Files ----------------------------------------------------------------------------------- */

/* What an include in `file` means: base.h in c/math.h is c/base.h, ../c/math.h in cuda/x.cuh is
 * c/math.h. */
static const char *path_from(Arena *arena, const char *file, const char *include)
{
    if (begins(include, "../"))
        return include + 3;
    return arena_printf(arena, "%.*s/%s", (int)strcspn(file, "/"), file, include);
}

static bool has_file(const Inliner *n, const char *name)
{
    for (size_t i = 0; i < n->file.count; i++)
        if (strcmp(n->file.at[i].name, name) == 0)
            return true;
    return false;
}

static void add_file(Inliner *n, const char *name)
{
    static const char own[] = "\n#include \"", others[] = "\n#include <";
    if (has_file(n, name))
        return;
    const size_t number = n->file.count;
    ARRAY_PUSH(n->arena, &n->file, (File){.name = name});
    const char *text = runtime_text(name);
    if (!text) {
        fail("file", name);
        return;
    }
    for (const char *at = text; (at = strstr(at, own)); at++) {
        const char *from = at + strlen(own),
                   *include = arena_copy(n->arena, from, strcspn(from, "\""));
        if (strcmp(include, settings) != 0) /* written from the rows */
            add_file(n, path_from(n->arena, name, include));
    }
    int depth = 0; /* within the guard it is 1 */
    for (const char *at = text; (at = strstr(at, "\n#")); at++) {
        depth += begins(at, "\n#if") - begins(at, "\n#endif");
        if (begins(at, others) && depth <= 1)
            ARRAY_PUSH(n->arena, &n->file.at[number].system,
                       arena_copy(n->arena, at + strlen("\n#include "),
                                  strcspn(at + strlen("\n#include "), "\n")));
    }
    units_read(&n->units, name, conditions_apply(n->arena, n->known, text));
}

/* ---- What is reached ------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    const Definition *m = a, *n = b;
    const int order = strcmp(m->name, n->name);
    return order ? order : (m->unit > n->unit) - (m->unit < n->unit);
}

static void index_names(Inliner *n)
{
    for (Id i = 0; i < n->units.unit.count; i++) {
        const Unit *u = &n->units.unit.at[i];
        for (size_t k = 0; k < u->name.count; k++)
            ARRAY_PUSH(n->arena, &n->definition, (Definition){u->name.at[k], i});
        for (size_t k = 0; k < u->name_prefix.count; k++)
            ARRAY_PUSH(n->arena, &n->prefix, (Definition){u->name_prefix.at[k], i});
    }
    if (n->definition.count)
        qsort(n->definition.at, n->definition.count, sizeof *n->definition.at, by_name);
}

/* The first definition whose name is not before this. */
static size_t first_of(const Inliner *n, const char *name)
{
    size_t low = 0, high = n->definition.count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (strcmp(n->definition.at[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void reach(Inliner *n, const char *name);

/* Whatever a macro may paste together from this on. */
static void reach_prefix(Inliner *n, const char *prefix)
{
    for (size_t i = first_of(n, prefix);
         i < n->definition.count && begins(n->definition.at[i].name, prefix); i++)
        reach(n, n->definition.at[i].name);
    reach(n, prefix);
}

/* The unit and all that it names; a conditional with all its conditions. */
static void keep(Inliner *n, Id id)
{
    if (n->keep[id])
        return;
    const Unit *u = &n->units.unit.at[id];
    n->keep[id] = true;
    for (size_t i = 0; i < u->use.count; i++)
        reach(n, u->use.at[i]);
    for (size_t i = 0; i < u->use_prefix.count; i++)
        reach_prefix(n, u->use_prefix.at[i]);
    if (u->around != NONE)
        keep(n, u->around);
    for (Id i = id + 1; u->kind == UNIT_IF && n->units.unit.at[i].depth >= u->depth; i++) {
        const Unit *other = &n->units.unit.at[i];
        if (other->depth > u->depth)
            continue;
        keep(n, i);
        if (other->kind == UNIT_ENDIF)
            break;
    }
}

static void reach(Inliner *n, const char *name)
{
    uint32_t *reached = names_at(n->reached, name);
    if (*reached != NONE)
        return;
    *reached = 1;
    for (size_t i = first_of(n, name);
         i < n->definition.count && strcmp(n->definition.at[i].name, name) == 0; i++)
        keep(n, n->definition.at[i].unit);
    for (size_t i = 0; i < n->prefix.count; i++)
        if (begins(name, n->prefix.at[i].name))
            keep(n, n->prefix.at[i].unit);
}

static bool defines(const Inliner *n, const char *name)
{
    const size_t i = first_of(n, name);
    return i < n->definition.count && strcmp(n->definition.at[i].name, name) == 0;
}

/* Definitions that nothing names, but that belong to some that are kept. */
static void keep_rest(Inliner *n)
{
    for (Id i = 0; i < n->units.unit.count; i++) {
        const Unit *u = &n->units.unit.at[i];
        bool all = u->kind == UNIT_CODE && u->need == NEED_WITH_NAMED;
        for (size_t k = 0; all && k < u->use.count; k++)
            all = !defines(n, u->use.at[k]) || names_find(n->reached, u->use.at[k]) != NONE;
        if (all)
            keep(n, i);
    }
}

static void reach_text(Inliner *n, const char *text)
{
    Unit unit = {.text = text};
    unit_scan(n->arena, &unit);
    for (size_t i = 0; i < unit.use.count; i++)
        reach(n, unit.use.at[i]);
}

/* ---- Comments -------------------------------------------------------------------------------- */

/* A comment speaks of what follows up to a blank line. One that a blank line follows is a heading,
 * and speaks of all up to the next; the first of a file of all that is there. */
static bool speaks(const Inliner *n, Id id)
{
    static const char section[] = "/* ----"; /* of the runtime's file: an emitted one has its own */
    const Unit *unit = n->units.unit.at, *u = &unit[id];
    const Id count = (Id)n->units.unit.count;
    const bool first = id == 0 || unit[id - 1].file != u->file;
    const bool heading = first || (id + 1 < count && unit[id + 1].gap);
    for (Id i = id + 1; i < count && unit[i].file == u->file && !begins(u->text, section); i++) {
        const bool next = heading ? !first && unit[i].kind == UNIT_COMMENT && i + 1 < count &&
                                        unit[i + 1].gap && unit[i].depth <= u->depth
                                  : unit[i].gap && unit[i].depth <= u->depth;
        if (next || unit[i].depth < u->depth)
            break;
        if (n->keep[i])
            return true;
    }
    return false;
}

/* ---- The text -------------------------------------------------------------------------------- */

static Inliner read_files(Arena *arena, const Condition *known, const char *const *file,
                          size_t count)
{
    Inliner n = {.arena = arena, .known = known, .units.arena = arena, .reached = names_new(arena)};
    for (size_t i = 0; i < count; i++)
        add_file(&n, file[i]);
    units_settle(&n.units);
    index_names(&n);
    n.keep = ARENA_ARRAY(arena, bool, n.units.unit.count + 1);
    return n;
}

/* libjpeg's header wants <stdio.h> before it. */
static int by_text(const void *a, const void *b)
{
    const char *m = *(const char *const *)a, *n = *(const char *const *)b;
    const int m_last = strcmp(m, "<jpeglib.h>") == 0, n_last = strcmp(n, "<jpeglib.h>") == 0;
    return m_last != n_last ? m_last - n_last : strcmp(m, n);
}

static void write_system(const Inliner *n, Out *o)
{
    WordList all = {0};
    for (size_t i = 0; i < n->file.count; i++)
        for (size_t k = 0; n->file.at[i].needed && k < n->file.at[i].system.count; k++)
            ARRAY_PUSH(n->arena, &all, n->file.at[i].system.at[k]);
    if (all.count)
        qsort(all.at, all.count, sizeof *all.at, by_text);
    for (size_t i = 0; i < all.count; i++)
        if (i == 0 || strcmp(all.at[i - 1], all.at[i]) != 0)
            out(o, "#include %s\n", all.at[i]);
}

/* For each kernel on its own: what it reaches, and which ways of that it decides. */
static void cut_ways(Inliner *n, Ways *ways)
{
    for (size_t i = 0; i < ways->op.count; i++) {
        Inliner one = *n;
        one.reached = names_new(n->arena);
        one.keep = ARENA_ARRAY(n->arena, bool, n->units.unit.count + 1);
        reach(&one, arena_printf(n->arena, "gp_%s", ways->op.at[i]));
        for (Id k = 0; k < n->units.unit.count; k++)
            if (one.keep[k])
                ways_need(ways, ways->op.at[i], &n->units.unit.at[k]);
    }
    for (Id k = 0; k < n->units.unit.count; k++)
        ways_cut(ways, &n->units.unit.at[k]);
}

static bool has_codes(const Graph *g)
{
    bool any = false;
    for (size_t i = 0; i < g->value.count; i++)
        any |= g->value.at[i].kind == VALUE_STATE && g->value.at[i].dtype == U8;
    return any;
}

/* Whether parameters or state are in the caller's memory, and so may be in a mapped file. */
static bool has_bound(const Api *api)
{
    bool any = false;
    for (size_t i = api->saved_begin; i < api->saved_end; i++)
        any |= api->tensor[i].slot != NONE;
    return any;
}

/* What holds in a file. Those for CUDA ask their compiler for the rest, and keep count of
 * micro-batches on the device. */
typedef struct {
    bool device;
    bool one;    /* batch at a time */
    bool halves; /* some numbers have 16 bits */
    bool codes;  /* some state has 8 */
    bool ranks, as_ranks, shards;
    bool loss_scale, maps;
} Facts;

static const Condition *list_conditions(Arena *arena, Facts facts)
{
    Condition *known = ARENA_ARRAY(arena, Condition, 14);
    if (facts.device) {
        known[0] = (Condition){"GP_NO_HALF", !facts.halves};
        known[1] = (Condition){"GP_NO_CODED", !facts.codes};
        return known;
    }
    known[0] = (Condition){"GP_CUDA", false};
    known[1] = (Condition){"GP_CUDA_ON_CPU", false};
    known[2] = (Condition){"__CUDACC__", false};
    known[3] = (Condition){"GP_NO_DEVICE", true};
    known[4] = (Condition){"GP_ONE_BATCH", facts.one};
    known[5] = (Condition){"GP_RANKS", facts.ranks};
    known[6] = (Condition){"GP_AS_RANKS", facts.as_ranks};
    known[7] = (Condition){"GP_NO_HALF", !facts.halves};
    known[8] = (Condition){"GP_NO_RANKS", !facts.ranks};
    known[9] = (Condition){"GP_SHARDS", facts.shards};
    known[10] = (Condition){"GP_NO_LOSS_SCALE", !facts.loss_scale};
    known[11] = (Condition){"GP_NO_CODED", !facts.codes};
    known[12] = (Condition){"GP_NO_MAP", !facts.maps};
    return known;
}

static Inlined inline_known(Arena *arena, const Condition *known, Ways *ways,
                            const char *const *file, size_t count, const char *rest)
{
    Inliner n = read_files(arena, known, file, count);
    Out system = out_new(arena), types = out_new(arena), body = out_new(arena),
        kernels = out_new(arena);
    if (ways)
        cut_ways(&n, ways);
    for (Id i = 0; i < n.units.unit.count; i++)
        if (n.units.unit.at[i].kind == UNIT_CODE && n.units.unit.at[i].need == NEED_ALWAYS)
            keep(&n, i);
    reach_text(&n, rest);
    keep_rest(&n);
    for (Id i = (Id)n.units.unit.count; i-- > 0;)
        if (n.units.unit.at[i].kind == UNIT_COMMENT)
            n.keep[i] = speaks(&n, i);
    for (size_t i = 0; i < n.file.count; i++)
        for (Id k = 0; k < n.units.unit.count; k++)
            n.file.at[i].needed |= n.keep[k] && n.units.unit.at[k].file == n.file.at[i].name;
    write_system(&n, &system);
    bool gap = true;
    for (Id i = 0; i < n.units.unit.count; i++) {
        const Unit *u = &n.units.unit.at[i];
        gap |= u->gap || i == 0 || n.units.unit.at[i - 1].file != u->file;
        if (!n.keep[i])
            continue;
        out(strcmp(u->file, file[0]) == 0 ? &types : &body, "%s%s\n", gap ? "\n" : "", u->text);
        gap = false;
    }
    settings_write(&kernels, rest, body.at);
    out(&kernels, "%s\n", body.at + (body.at[0] == '\n'));
    return (Inlined){system.at, types.at + (types.at[0] == '\n'), kernels.at};
}

static Inlined inline_for(const Emission *e, bool one, const char *const *file, size_t count,
                          const char *rest)
{
    const Ranks *ranks = &e->plan->graph->ranks;
    Ways *ways = ways_of_calls(e);
    const Facts facts = {.device = e->dialect->device,
                         .one = one,
                         .halves = ways->halves,
                         .codes = has_codes(e->plan->graph),
                         .ranks = ranks->count > 0,
                         .as_ranks = ranks->here,
                         .shards = tables_has_shards(e->api),
                         .loss_scale = e->plan->graph->loss_scale != NONE,
                         .maps = has_bound(e->api)};
    return inline_known(e->arena, list_conditions(e->arena, facts), ways, file, count, rest);
}

Inlined inline_alone(Arena *arena, const char *const *file, size_t count, const char *rest)
{
    return inline_known(arena, list_conditions(arena, (Facts){.one = true, .ranks = true}), NULL,
                        file, count, rest);
}

static bool asks_micro(const char *text)
{
    return strstr(text, "run->micro") || strstr(text, "GP_PART(") || strstr(text, "GP_PARTS(");
}

/* A program of one batch may still ask which micro-batch it is: a sum that was begun before. */
Inlined inline_files(const Emission *e, const char *const *file, size_t count, const char *rest)
{
    bool one = !asks_micro(rest) && !e->plan->graph->ranks.count;
    for (int p = 0; p < PROGRAMS; p++)
        one &= e->plan->program[p].times <= 1;
    const Inlined made = inline_for(e, one, file, count, rest);
    return one && asks_micro(made.kernels) ? inline_for(e, false, file, count, rest) : made;
}

bool inline_reaches(Arena *arena, const char *const *file, size_t count, const char *wanted)
{
    const Condition none = {0};
    Inliner n = read_files(arena, &none, file, count);
    return has_file(&n, wanted);
}
