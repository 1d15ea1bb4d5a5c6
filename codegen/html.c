/* The memory map as a page to explore: one file, nothing fetched.
 *
 * Requires: a plan. Leaves: HTML with the plan as columns of numbers, and the script of web/ that
 * draws them on a canvas, which 20,000 buffers do not slow down.
 */
#include "codegen/picture.h"
#include "runtime/runtime.h"

#include <stdlib.h>
#include <string.h>

/* A JavaScript string that cannot end the script around it. */
static void put_string(Out *o, const char *text, size_t length)
{
    out(o, "\"");
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\')
            out(o, "\\%c", c);
        else if (c < 0x20 || c == '<' || c == 0x7f)
            out(o, "\\u%04x", c);
        else
            out_text(o, text + i, 1);
    }
    out(o, "\"");
}

static void put_text(Out *o, const char *text)
{
    put_string(o, text, strlen(text));
}

/* ---- Columns -------------------------------------------------------------------------------- */

typedef int64_t (*Number)(const Picture *p, uint32_t i);
typedef const char *(*Name)(const Picture *p, uint32_t i);

static void put_numbers(Out *o, const Picture *p, const char *key, uint32_t count, Number number)
{
    out(o, "\n%s: [", key);
    for (uint32_t i = 0; i < count; i++)
        out(o, "%s%lld", i ? "," : "", (long long)number(p, i));
    out(o, "],");
}

static void put_names(Out *o, const Picture *p, const char *key, uint32_t count, Name name)
{
    out(o, "\n%s: [", key);
    for (uint32_t i = 0; i < count; i++) {
        out(o, i ? "," : "");
        put_text(o, name(p, i));
    }
    out(o, "],");
}

/* clang-format off */
static int64_t bytes_of(const Picture *p, Id i) { return (int64_t)p->plan->buffer[i].bytes; }
static int64_t offset_of(const Picture *p, Id i) { return (int64_t)p->plan->buffer[i].offset; }
static int64_t root_of(const Picture *p, Id i) { return p->plan->buffer[i].root; }
static int64_t from_of(const Picture *p, Id i) { return p->plan->buffer[i].birth; }
static int64_t to_of(const Picture *p, Id i) { return p->plan->buffer[i].death; }
static int64_t birth_of(const Picture *p, Id i) { return p->life[i].birth; }
static int64_t death_of(const Picture *p, Id i) { return p->life[i].death; }
static int64_t end_of(const Picture *p, Id i) { return p->life[i].end; }
static int64_t begin_of(const Picture *p, Id i) { return (int64_t)p->life[i].begin; }
static int64_t height_of(const Picture *p, Id i) { return (int64_t)p->life[i].height; }
static int64_t tone_of(const Picture *p, Id i) { return p->life[i].tone; }
static int64_t shared_of(const Picture *p, Id i) { return p->life[i].shared; }
static int64_t drawn_of(const Picture *p, Id i) { return is_drawn(p->plan, i); }
static int64_t line_of(const Picture *p, Id i) { return buffer_line(p, i); }
static int64_t phase_of(const Picture *p, uint32_t t) { return p->step[t].node->phase; }
static int64_t first_of(const Picture *p, uint32_t t) { return p->step[t].first; }
static int64_t step_line(const Picture *p, uint32_t t) { return p->step[t].node->span.line; }
static const char *step_name(const Picture *p, uint32_t t) { return p->step[t].node->name; }
/* clang-format on */

static int64_t producer_of(const Picture *p, Id i)
{
    return p->life[i].producer == NONE ? -1 : (int64_t)p->life[i].producer;
}

static void put_readers(Out *o, const Picture *p)
{
    out(o, "\nreaders: [");
    for (Id i = 0; i < p->plan->buffers; i++) {
        out(o, i ? ",[" : "[");
        for (Id k = 0; k < p->life[i].readers; k++)
            out(o, "%s%u", k ? "," : "", p->reader[p->life[i].reader + k]);
        out(o, "]");
    }
    out(o, "],");
}

static void put_buffers(Out *o, const Picture *p)
{
    static const struct {
        const char *key;
        Number number;
    } columns[] = {
        {"bytes", bytes_of}, {"offset", offset_of},     {"root", root_of},     {"from", from_of},
        {"to", to_of},       {"birth", birth_of},       {"death", death_of},   {"end", end_of},
        {"begin", begin_of}, {"height", height_of},     {"tone", tone_of},     {"drawn", drawn_of},
        {"line", line_of},   {"producer", producer_of}, {"shared", shared_of},
    };
    Id count = p->plan->buffers;
    out(o, "buffers: {");
    put_names(o, p, "name", count, buffer_name);
    put_names(o, p, "shape", count, buffer_shape);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        put_numbers(o, p, columns[i].key, count, columns[i].number);
    put_readers(o, p);
    out(o, "\n},\n");
}

static void put_steps(Out *o, const Picture *p)
{
    uint32_t count = p->plan->end;
    out(o, "steps: {");
    put_names(o, p, "ops", count, step_ops);
    put_names(o, p, "name", count, step_name);
    put_numbers(o, p, "phase", count, phase_of);
    put_numbers(o, p, "first", count, first_of);
    put_numbers(o, p, "line", count, step_line);
    out(o, "\n},\n");
}

/* ---- The rest of the data ------------------------------------------------------------------- */

typedef struct {
    uint32_t birth;
    Id buffer;
} Born;

static int by_birth(const void *a, const void *b)
{
    const Born *m = a, *n = b;
    if (m->birth != n->birth)
        return m->birth < n->birth ? -1 : 1;
    return (m->buffer > n->buffer) - (m->buffer < n->buffer);
}

/* What is written later is drawn over what was there before. */
static void put_order(Out *o, const Picture *p)
{
    Born *born = ARENA_ARRAY(p->arena, Born, p->plan->buffers + 1);
    for (Id i = 0; i < p->plan->buffers; i++)
        born[i] = (Born){p->life[i].birth, i};
    qsort(born, p->plan->buffers, sizeof *born, by_birth);
    out(o, "order: [");
    for (Id i = 0; i < p->plan->buffers; i++)
        out(o, "%s%u", i ? "," : "", born[i].buffer);
    out(o, "],\n");
}

static void put_tables(Out *o, const Picture *p)
{
    out(o, "tones: [");
    for (int t = 0; t < TONES; t++)
        out(o, "%s{name: \"%s\", plural: \"%s\", light: \"%s\", dark: \"%s\"}", t ? ",\n" : "",
            tones[t].name, tones[t].plural, tones[t].light, tones[t].dark);
    out(o, "],\nphases: [");
    for (int k = PHASE_FORWARD; k <= PHASE_UPDATE; k++)
        out(o, "%s{name: \"%s\", light: \"%s\", dark: \"%s\"}", k ? ", " : "", phases[k].name,
            phases[k].light, phases[k].dark);
    out(o, "],\nprograms: [");
    for (int k = 0; k < PROGRAMS; k++) {
        const Program *program = &p->plan->program[k];
        if (program->count)
            out(o, "{title: \"%s\", begin: %u, count: %u, times: %u},", program_titles[k],
                program->begin, program->count, program->times);
    }
    out(o, "],\ngroups: [");
    size_t count;
    const Group *group = groups_make(p, &count);
    for (size_t i = 0; i < count; i++) {
        out(o, "[");
        put_text(o, group[i].title);
        out(o, ",%u,%u,%u],", group[i].phase, group[i].from, group[i].to);
    }
    out(o, "],\n");
}

static void put_source(Out *o, const Graph *g)
{
    const char *text = g->source ? g->source->text : "";
    out(o, "source: [");
    while (*text) {
        size_t length = strcspn(text, "\n");
        put_string(o, text, length);
        out(o, ",");
        text += length;
        text += *text == '\n';
    }
    out(o, "],\n");
}

/* Files that the text was joined of: the name of each, and the line it begins at. */
static void put_parts(Out *o, const Source *source)
{
    out(o, ", parts: [");
    for (size_t i = 0; source && i < source->parts; i++) {
        out(o, "{line: %u, file: ", source->part[i].line);
        put_text(o, source->part[i].file);
        out(o, "},");
    }
    out(o, "],\n");
}

static const char *data(const Picture *p)
{
    const Plan *plan = p->plan;
    uint64_t budget = p->options->budget;
    bool near = budget > plan->arena[SPACE_ARENA] &&
                (double)budget < 1.6 * (double)plan->arena[SPACE_ARENA];
    Out o = out_new(p->arena);
    out(&o, "{name: ");
    put_text(&o, p->g->name);
    out(&o, ", file: ");
    put_text(&o, p->g->source ? p->g->source->file : "");
    put_parts(&o, p->g->source);
    out(&o, "end: %u, arena: %llu, budget: %llu, floor: %llu, bound: %llu, top: %.0f,\n", plan->end,
        (unsigned long long)plan->arena[SPACE_ARENA], (unsigned long long)budget,
        (unsigned long long)plan->floor, (unsigned long long)plan->bound,
        1.06 * (double)(near ? budget : plan->arena[SPACE_ARENA]) + 1);
    out(&o, "peak: %llu, peakTime: %u, recomputed: %u, extraTime: %.2f, extraOf: \"%s\",\n",
        (unsigned long long)p->peak, p->peak_time, p->recomputed,
        plan_extra(plan->cost, p->options->search.least_cost),
        plan_trains_step(plan->clusters) ? "training step" : "forward pass");
    put_tables(&o, p);
    put_order(&o, p);
    put_source(&o, p->g);
    put_steps(&o, p);
    put_buffers(&o, p);
    out(&o, "}");
    return o.at;
}

Text emit_html(const Plan *plan, const EmitOptions *options)
{
    Picture *p = picture_make(plan, options);
    Out title = out_new(p->arena), o = out_new(p->arena);
    out_xml(&title, plan->graph->name);
    const struct {
        const char *key, *text;
    } parts[] = {
        {"@title@", title.at},
        {"@style@", runtime_text("codegen/web/map.css")},
        {"@data@", data(p)},
        {"@script@", arena_printf(p->arena, "%s\n%s", runtime_text("codegen/web/map_draw.js"),
                                  runtime_text("codegen/web/map_act.js"))},
    };
    const char *template = runtime_text("codegen/web/map.html");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) { /* they stand in this order */
        const char *at = strstr(template, parts[i].key);
        out_text(&o, template, (size_t)(at - template));
        out_text(&o, parts[i].text, strlen(parts[i].text));
        template = at + strlen(parts[i].key);
    }
    out_text(&o, template, strlen(template));
    return out_done(&o);
}
