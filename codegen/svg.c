/* The memory map as a picture: address by time, a rectangle for each buffer; under it what each
 * step belongs to, and the bytes alive, by kind.
 *
 * Requires: a plan. Leaves: a self-contained SVG, light or dark as the viewer's theme is.
 */
#include "codegen/picture.h"

#include <math.h>
#include <string.h>

enum {
    WIDTH = 1280,
    LEFT = 84,
    RIGHT = 28,
    TOP = 104,
    MAP = 500,
    STRIP = 18, /* what the steps belong to */
    BELOW = 34,
    PROFILE = 130,
};

typedef struct {
    const Picture *p;
    const Plan *plan;
    Out o;
    double top_bytes;  /* at the upper edge of the map */
    double step_width; /* pixels of one step */
} Svg;

static double x_of(const Svg *s, double time)
{
    return LEFT + time * s->step_width;
}

static double y_of(const Svg *s, double bytes)
{
    return TOP + MAP - bytes / s->top_bytes * MAP;
}

static double profile_bottom(void)
{
    return TOP + MAP + STRIP + BELOW + PROFILE;
}

static double profile_y(const Svg *s, double bytes)
{
    return profile_bottom() - bytes / s->top_bytes * PROFILE;
}

void out_xml(Out *o, const char *text)
{
    for (; *text; text++) {
        const char *entity = *text == '&'   ? "&amp;"
                             : *text == '<' ? "&lt;"
                             : *text == '>' ? "&gt;"
                             : *text == '"' ? "&quot;"
                                            : NULL;
        if (entity)
            out(o, "%s", entity);
        else if ((unsigned char)*text >= 0x20)
            out_text(o, text, 1);
    }
}

/* The end of a long name says more than its beginning. */
static const char *fitting(Arena *arena, const char *name, double width, double letter)
{
    size_t length = strlen(name), most = width > 2 * letter ? (size_t)(width / letter) : 0;
    if (length <= most)
        return name;
    const char *epilogue = name + length - (most ? most - 1 : 0);
    while ((*epilogue & 0xc0) == 0x80) /* not inside a character */
        epilogue++;
    const char *part = strpbrk(epilogue, "./"); /* better whole parts of it */
    if (part && strlen(part) > 5)
        epilogue = part + 1;
    if (strlen(epilogue) < (part ? 5 : 9))
        return NULL;
    return arena_printf(arena, "\u2026%s", epilogue);
}

/* ---- Style ---------------------------------------------------------------------------------- */

static void put_theme(Svg *s, bool dark)
{
    out(&s->o, ".bg{fill:%s}.ink{fill:%s}.soft{fill:%s}.grid{stroke:%s}",
        dark ? "#15171b" : "#fdfdfc", dark ? "#e9eaec" : "#1c1f24", dark ? "#9aa0a8" : "#676d75",
        dark ? "#2b2f36" : "#e4e5e7");
    out(&s->o, ".plot{fill:%s}.box{stroke:%s}.held{fill:%s}.in{fill:%s}",
        dark ? "#1b1e23" : "#f5f5f3", dark ? "#15171b" : "#fdfdfc", dark ? "#2a2d33" : "#e6e6e2",
        dark ? "#f4f5f6" : "#15181c");
    out(&s->o, ".peak{stroke:%s}.peaktext{fill:%s}.limit{stroke:%s}.limittext{fill:%s}",
        dark ? "#ff6b5e" : "#c62f22", dark ? "#ff8a80" : "#b3271b", dark ? "#e9eaec" : "#1c1f24",
        dark ? "#e9eaec" : "#1c1f24");
    for (int t = 0; t < TONES; t++)
        out(&s->o, ".t%d{fill:%s}", t, dark ? tones[t].dark : tones[t].light);
    for (int k = PHASE_FORWARD; k <= PHASE_UPDATE; k++)
        out(&s->o, ".f%d{fill:%s}", k, dark ? phases[k].dark : phases[k].light);
}

static void put_style(Svg *s)
{
    out(&s->o, "<style>text{font-family:system-ui,-apple-system,'Segoe UI',Inter,Roboto,"
               "'DejaVu Sans',sans-serif;font-size:11px}.title{font-size:19px;font-weight:600}"
               ".in{font-size:10px;pointer-events:none}.box{stroke-width:.7}"
               ".thin{stroke:none}.end{text-anchor:end}.middle{text-anchor:middle}"
               ".grid{stroke-width:1}.peak{stroke-width:1.2;stroke-dasharray:3 2}"
               ".limit{stroke-width:1.2;stroke-dasharray:7 4}.bound{stroke-dasharray:1.5 3}"
               "rect.box:hover{stroke-width:2}\n");
    put_theme(s, false);
    out(&s->o, "\n@media (prefers-color-scheme:dark){");
    put_theme(s, true);
    out(&s->o, "rect.box:hover{stroke:#fff}}</style>\n");
}

/* ---- Text round the map --------------------------------------------------------------------- */

static void put_text(Svg *s, double x, double y, const char *class, const char *text)
{
    out(&s->o, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, class);
    out_xml(&s->o, text);
    out(&s->o, "</text>\n");
}

/* What takes how much, without sharing: bf16 1.2 GiB, f32 800 MiB. */
static const char *dtypes_text(const Picture *p)
{
    Out o = out_new(p->arena);
    for (int d = 0; d < DTYPES; d++)
        if (p->dtype_count[d])
            out(&o, "%s%s %s", o.length ? ", " : "", dtype_name((Dtype)d),
                size_text(p->arena, p->dtype_bytes[d]));
    return o.at;
}

static void put_heading(Svg *s)
{
    const Plan *plan = s->plan;
    Arena *arena = s->p->arena;
    put_text(s, LEFT, 32, "ink title", arena_printf(arena, "%s: memory map", s->p->g->name));
    Out o = out_new(arena);
    out(&o, "%u steps, %u buffers  \u00b7  arena %s", plan->end, plan->buffers,
        size_text(arena, plan->arena[SPACE_ARENA]));
    if (s->p->options->budget)
        out(&o, "  \u00b7  budget %s", size_text(arena, s->p->options->budget));
    if (plan->floor)
        out(&o, "  \u00b7  no order needs less than %s", size_text(arena, plan->floor));
    double extra = plan_extra(plan->cost, s->p->options->search.least_cost);
    if (extra > 0)
        out(&o, "  \u00b7  %.2f%% extra time in a %s", extra,
            plan_trains_step(plan->clusters) ? "training step" : "forward pass");
    put_text(s, LEFT, 52, "soft", o.at);
    double x = LEFT;
    for (int t = 0; t < TONES; t++) {
        if (!s->p->count[t])
            continue;
        out(&s->o, "<rect x=\"%.1f\" y=\"68\" width=\"12\" height=\"12\" rx=\"2\" class=\"t%d\"/>",
            x, t);
        const char *label = arena_printf(arena, "%s (%u)", tones[t].plural, s->p->count[t]);
        put_text(s, x + 17, 78, "ink", label);
        x += 34 + 6.3 * (double)strlen(label);
    }
    if (s->p->narrow)
        put_text(s, x + 4, 78, "soft", dtypes_text(s->p));
}

/* A step of 1, 2 or 5 times a power of ten, or a power of two, so that about `count` fit. */
static double nice_step(double range, double count, bool binary)
{
    double raw = range / count;
    if (binary)
        return exp2(ceil(log2(raw)));
    double power = pow(10, floor(log10(raw))), lead = raw / power;
    return fmax(1, (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10) * power);
}

static void put_grid(Svg *s)
{
    double right = WIDTH - RIGHT, step = nice_step(s->top_bytes, 9, true);
    out(&s->o, "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" class=\"plot\"/>\n", LEFT, TOP,
        right - LEFT, MAP);
    out(&s->o, "<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" class=\"plot\"/>\n", LEFT,
        profile_bottom() - PROFILE, right - LEFT, PROFILE);
    for (double at = 0; at <= s->top_bytes; at += step) {
        double y = y_of(s, at);
        out(&s->o, "<path d=\"M%d %.1fH%.1f\" class=\"grid\"/>", LEFT - 4, y, right);
        put_text(s, LEFT - 8, y + 4, "soft end", size_text(s->p->arena, (uint64_t)at));
    }
    step = nice_step(s->top_bytes, 3, true);
    for (double at = 0; at <= s->top_bytes; at += step) {
        double y = profile_y(s, at);
        out(&s->o, "<path d=\"M%d %.1fH%.1f\" class=\"grid\"/>", LEFT - 4, y, right);
        put_text(s, LEFT - 8, y + 4, "soft end", size_text(s->p->arena, (uint64_t)at));
    }
    step = nice_step(s->plan->end, 12, false);
    for (double at = 0; at < s->plan->end; at += step)
        put_text(s, x_of(s, at), profile_bottom() + 15, "soft middle",
                 arena_printf(s->p->arena, "%.0f", at));
    put_text(s, LEFT - 8, profile_bottom() + 15, "soft end", "step");
}

/* ---- The map -------------------------------------------------------------------------------- */

/* The name, and of what has 16 bits its dtype. */
static const char *box_label(const Picture *p, Id buffer)
{
    const Id value = p->plan->buffer[buffer].value;
    const Dtype dtype = value == NONE ? F32 : (Dtype)p->g->value.at[value].dtype;
    const char *name = buffer_name(p, buffer);
    return dtype_is_narrow(dtype) ? arena_printf(p->arena, "%s \u00b7 %s", name, dtype_name(dtype))
                                  : name;
}

static void put_box(Svg *s, double birth, double death, uint64_t begin, uint64_t height,
                    const char *class, Id buffer)
{
    double x = x_of(s, birth), y = y_of(s, (double)(begin + height));
    double w = x_of(s, death) - x, h = y_of(s, (double)begin) - y;
    bool thin = h < 2.5 || w < 2.5;
    out(&s->o, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" class=\"%s %s\">", x, y,
        w, h, class, thin ? "thin" : "box");
    if (buffer != NONE) {
        out(&s->o, "<title>");
        out_xml(&s->o, buffer_name(s->p, buffer));
        const char *shape = buffer_shape(s->p, buffer);
        out(&s->o, "%s%s\n%s at %s\nsteps %.0f to %.0f", *shape ? "\n" : "", shape,
            size_text(s->p->arena, s->plan->buffer[buffer].bytes),
            offset_text(s->p->arena, s->plan->buffer[buffer].offset), birth,
            s->p->life[buffer].death - 1.0);
        if (buffer_line(s->p, buffer))
            out(&s->o, "\nline %u", buffer_line(s->p, buffer));
        out(&s->o, "</title>");
    }
    out(&s->o, "</rect>\n");
    const char *label =
        buffer != NONE && h > 12 ? fitting(s->p->arena, box_label(s->p, buffer), w - 8, 5.8) : NULL;
    if (label)
        put_text(s, x + 4, y + fmin(h / 2 + 3.5, 14), "in", label);
}

static void put_buffers(Svg *s)
{
    const Plan *plan = s->plan;
    for (Id i = 0; i < plan->buffers; i++) { /* what is reserved for several, under them */
        const Buffer *b = &plan->buffer[i];
        if (s->p->life[i].shared && is_drawn(plan, i) && b->kind > BUFFER_DATA)
            put_box(s, b->birth, b->death, b->offset, b->bytes, "held", NONE);
    }
    for (Id i = 0; i < plan->buffers; i++) {
        const Life *life = &s->p->life[i];
        if (is_drawn(plan, i))
            put_box(s, life->birth, life->end, life->begin, life->height,
                    arena_printf(s->p->arena, "t%u", life->tone), i);
    }
}

/* ---- What the steps belong to --------------------------------------------------------------- */

static void put_strip(Svg *s)
{
    double y = TOP + MAP;
    size_t count;
    const Group *group = groups_make(s->p, &count);
    for (size_t i = 0; i < count; i++) {
        double x = x_of(s, group[i].from), w = x_of(s, group[i].to) - x;
        out(&s->o,
            "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\" class=\"f%u box\">"
            "<title>%s ",
            x, y + 2, w, STRIP - 4, group[i].phase, phases[group[i].phase].name);
        out_xml(&s->o, group[i].title);
        out(&s->o, "</title></rect>\n");
        const char *label = *group[i].title ? fitting(s->p->arena, group[i].title, w - 6, 6) : NULL;
        if (label)
            put_text(s, x + w / 2, y + 13, "in middle", label);
    }
    for (int p = 0, shown = 0; p < PROGRAMS; p++) {
        const Program *program = &s->plan->program[p];
        if (!program->count)
            continue;
        double x = x_of(s, program->begin), w = x_of(s, program->begin + program->count) - x;
        if (shown++)
            out(&s->o, "<path d=\"M%.1f %dV%.1f\" class=\"limit bound\"/>", x, TOP,
                profile_bottom());
        const char *title = program_titles[p];
        if (program->times > 1)
            title = arena_printf(s->p->arena, "%s, %u times", title, program->times);
        title = fitting(s->p->arena, title, w, 6.2);
        if (title)
            put_text(s, x + w / 2, y + STRIP + 14, "ink middle", title);
    }
}

/* ---- Live bytes ----------------------------------------------------------------------------- */

static void put_profile(Svg *s)
{
    uint32_t end = s->plan->end;
    uint64_t *low = ARENA_ARRAY(s->p->arena, uint64_t, end + 2);
    for (int t = 0; t < TONES; t++) {
        uint64_t *high = ARENA_ARRAY(s->p->arena, uint64_t, end + 2);
        for (Id i = 0; i < s->plan->buffers; i++) {
            const Buffer *b = &s->plan->buffer[i];
            if (b->root != i || b->space != SPACE_ARENA || s->p->life[i].tone != t)
                continue;
            high[b->birth] += b->bytes;
            high[b->death] -= b->bytes;
        }
        for (uint32_t i = 1; i < end; i++)
            high[i] += high[i - 1];
        for (uint32_t i = 0; i < end; i++)
            high[i] += low[i];
        if (s->p->count[t]) {
            out(&s->o, "<path class=\"t%d\" d=\"M%.2f %.2f", t, x_of(s, 0),
                profile_y(s, (double)high[0]));
            for (uint32_t i = 0; i < end; i++)
                out(&s->o, "V%.2fH%.2f", profile_y(s, (double)high[i]), x_of(s, i + 1));
            for (uint32_t i = end; i-- > 0;)
                out(&s->o, "V%.2fH%.2f", profile_y(s, (double)low[i]), x_of(s, i));
            out(&s->o, "Z\"/>\n");
        }
        low = high;
    }
    put_text(s, LEFT + 6, profile_bottom() - PROFILE - 6, "soft", "live bytes");
}

/* ---- Lines over it -------------------------------------------------------------------------- */

static void put_limit(Svg *s, uint64_t bytes, const char *class, const char *name, bool above)
{
    double y = y_of(s, (double)bytes), right = WIDTH - RIGHT;
    if (!bytes || (double)bytes > s->top_bytes)
        return;
    out(&s->o, "<path d=\"M%d %.1fH%.1f\" class=\"%s\"/>", LEFT, y, right, class);
    out(&s->o, "<path d=\"M%d %.1fH%.1f\" class=\"%s\"/>\n", LEFT, profile_y(s, (double)bytes),
        right, class);
    put_text(s, right - 4, y + (above ? -5 : 13), "limittext end",
             arena_printf(s->p->arena, "%s %s", name, size_text(s->p->arena, bytes)));
}

static void put_peak(Svg *s)
{
    if (!s->plan->end)
        return;
    uint32_t time = s->p->peak_time;
    double x = x_of(s, time + 0.5);
    const Node *node = s->p->step[time].node;
    out(&s->o, "<path d=\"M%.1f %dV%.1f\" class=\"peak\"/>", x, TOP - 4, profile_bottom());
    const char *text = arena_printf(
        s->p->arena, "peak %s at step %u, %s%s", size_text(s->p->arena, s->p->peak), time,
        node->op->name,
        node->span.line ? arena_printf(s->p->arena, ", line %u", node->span.line) : "");
    put_text(s, x, TOP - 8,
             x < LEFT + 160            ? "peaktext"
             : x > WIDTH - RIGHT - 160 ? "peaktext end"
                                       : "peaktext middle",
             text);
}

Text emit_svg(const Plan *plan, const EmitOptions *options)
{
    Picture *p = picture_make(plan, options);
    Svg s = {.p = p, .plan = plan, .o = out_new(p->arena)};
    uint64_t budget = options->budget;
    bool near = budget &&
                (double)budget < 1.6 * (double)plan->arena[SPACE_ARENA]; /* otherwise it is above */
    s.top_bytes =
        1.06 * (double)(near && budget > plan->arena[SPACE_ARENA] ? budget
                                                                  : plan->arena[SPACE_ARENA]) +
        1;
    s.step_width = (double)(WIDTH - LEFT - RIGHT) / (plan->end ? plan->end : 1);
    double height = profile_bottom() + 28;
    out(&s.o,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" width=\"%d\" "
        "height=\"%.0f\">\n",
        WIDTH, height, WIDTH, height);
    put_style(&s);
    out(&s.o, "<rect width=\"100%%\" height=\"100%%\" class=\"bg\"/>\n");
    put_heading(&s);
    put_grid(&s);
    put_buffers(&s);
    put_strip(&s);
    put_profile(&s);
    put_limit(&s, plan->floor, "limit bound", "floor", false);
    if (near)
        put_limit(&s, budget, "limit", "budget", true);
    else if (budget)
        put_text(&s, WIDTH - RIGHT - 4, TOP + 14, "limittext end",
                 arena_printf(p->arena, "\u2191 budget %s", size_text(p->arena, budget)));
    put_peak(&s);
    out(&s.o, "</svg>\n");
    return out_done(&s.o);
}
