/* Boxes and arrows as DOT.
 *
 * Blocks are clusters, forward and backward apart. The backward pass runs upward beside the
 * forward pass: its arrows are stated from head to epilogue and drawn the other way round, so that
 * each block is next to its gradient.
 * With a depth, what is deeper is one box; arrows between the same two boxes are one arrow.
 */
#include "codegen/dot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What is drawn as one box: an item, or all of a block that is not opened. */
typedef struct {
    Id frame; /* around it; NONE: none */
    Id next;  /* box in that frame */
    Id scope; /* of a shut block; NONE: one item */
    Id item;  /* the first of its items */
    Id items;
    uint64_t params, leaving; /* bytes read as parameters; bytes others read */
    uint8_t phase, program;
    bool again, live, peak;
} Box;

/* An open block, or a program. */
typedef struct {
    Id around; /* the frame that it is in; NONE: none */
    Id scope;  /* NONE: a program */
    uint8_t program;
    Id first, last;  /* of its boxes */
    Id inside, next; /* its first frame; the next one in the same frame */
    Id final;        /* the last of its frames */
} Frame;

typedef struct {
    const Drawing *d;
    Levels levels;
    ARRAY(Box) box;
    Id *of; /* item -> its box */
    ARRAY(Frame) frame;
    Id *frame_of;  /* by program, phase and scope, the last for a program itself */
    Frame outside; /* of what is in no frame */
    bool programs; /* more than one: each has a frame */
    Out o;
} Boxes;

static void set(Out *o, const char *key, const char *value)
{
    out(o, " %s=\"", key);
    for (; *value; value++)
        out(o, *value == '"' || *value == '\\' ? "\\%c" : "%c", *value);
    out(o, "\"");
}

static void set_html(Out *o, const char *key, const char *html)
{
    out(o, " %s=<%s>", key, html);
}

/* ---- Which items are one box ---------------------------------------------------------------- */

/* The block that hides the item, or NONE: it is drawn itself. Updates are part of the model's box.
 */
static Id shut_scope(const Boxes *b, const Item *item)
{
    uint32_t depth = b->d->options->depth;
    if (!depth || item->kind != ITEM_OP)
        return NONE;
    if (item->phase == PHASE_UPDATE)
        return 0;
    return level_at(&b->levels, item->scope, depth);
}

static void make_boxes(Boxes *b)
{
    enum { WAYS = 32 }; /* program, phase, and whether it is computed again */
    Id *last = ARENA_ARRAY(b->d->arena, Id, b->d->g->scope.count * WAYS);
    memset(last, 0xff, b->d->g->scope.count * WAYS * sizeof *last);
    for (Id i = 0; i < b->d->item.count; i++) {
        const Item *item = &b->d->item.at[i];
        bool again = item->first != i;
        Id scope = shut_scope(b, item);
        Id way = again * 16u + item->program * 4u + item->phase;
        Id *found = scope == NONE ? NULL : &last[scope * WAYS + way];
        if (found && *found != NONE) {
            b->of[i] = *found;
        } else {
            b->of[i] = (Id)b->box.count;
            ARRAY_PUSH(b->d->arena, &b->box,
                       (Box){.scope = scope,
                             .item = i,
                             .phase = item->phase,
                             .program = item->program,
                             .again = again});
            if (found)
                *found = b->of[i];
        }
        Box *box = &b->box.at[b->of[i]];
        box->items++;
        box->params += item->params;
        box->live |= item->live;
        box->peak |= item->peak;
    }
}

/* ---- Text in a box -------------------------------------------------------------------------- */

static void put_line(Out *o, const char *color, const char *text)
{
    if (!*text)
        return;
    out(o, "<tr><td><font point-size=\"9\" color=\"%s\">", color);
    out_xml(o, text);
    out(o, "</font></td></tr>");
}

static const char soft[] = "#565d66", red[] = "#b3271b";

/* The ops of a shut block, those that occur most first: matmul x4, layernorm x2. */
static const char *ops_text(const Boxes *b, Id box)
{
    enum { KINDS = 64, SHOWN = 3 };
    const char *name[KINDS];
    Id count[KINDS], kinds = 0;
    for (Id i = 0; i < b->d->item.count; i++) {
        if (b->of[i] != box)
            continue;
        Id k = 0;
        while (k < kinds && strcmp(name[k], b->d->item.at[i].title) != 0)
            k++;
        if (k == kinds && kinds < KINDS) {
            name[kinds] = b->d->item.at[i].title;
            count[kinds++] = 0;
        }
        if (k < kinds)
            count[k]++;
    }
    Out o = out_new(b->d->arena);
    for (Id shown = 0; shown < SHOWN && shown < kinds; shown++) {
        Id most = 0;
        for (Id k = 1; k < kinds; k++)
            if (count[k] > count[most])
                most = k;
        if (!count[most])
            break;
        size_t length = strlen(name[most]);
        out(&o, "%s%.*s%s", shown ? ", " : "", 24, name[most], length > 24 ? "\u2026" : "");
        if (count[most] > 1)
            out(&o, " \u00d7%u", count[most]);
        count[most] = 0;
    }
    out(&o, kinds > SHOWN ? ", \u2026" : "");
    return o.at;
}

static const char *box_label(const Boxes *b, Id id)
{
    const Box *box = &b->box.at[id];
    const Item *item = &b->d->item.at[box->item];
    Arena *arena = b->d->arena;
    Out o = out_new(arena);
    out(&o, "<table border=\"0\" cellspacing=\"0\" cellpadding=\"1\"><tr><td><b>");
    if (box->scope == NONE)
        out_xml(&o, item->title);
    else if (box->scope == 0)
        out_xml(&o, "update");
    else
        out_xml(&o, scope_title(b->d->g, box->scope));
    out(&o, "</b></td></tr>");
    if (box->again)
        put_line(&o, red, "computed again");
    if (box->scope == NONE) {
        put_line(&o, soft, item->name);
        put_line(&o, "#1c1f24", item->shape);
        put_line(&o, soft, item->where);
    } else {
        put_line(&o, soft, arena_printf(arena, "%u %s", box->items, b->d->plan ? "steps" : "ops"));
        put_line(&o, soft, ops_text(b, id));
        if (box->leaving)
            put_line(&o, "#1c1f24",
                     arena_printf(arena, "leaves %s", size_text(arena, box->leaving)));
    }
    if (box->params)
        put_line(&o, soft,
                 arena_printf(arena, "reads %s of %s", size_text(arena, box->params),
                              box->phase == PHASE_UPDATE ? "state" : "parameters"));
    if (box->peak)
        put_line(&o, red, arena_printf(arena, "the peak: %s", size_text(arena, b->d->peak)));
    out(&o, "</table>");
    return o.at;
}

/* ---- Frames --------------------------------------------------------------------------------- */

static const char *program_label(const Boxes *b, int program)
{
    uint32_t times = b->d->plan ? b->d->plan->program[program].times : 1;
    return times > 1 ? arena_printf(b->d->arena, "%s, %u times", program_titles[program], times)
                     : program_titles[program];
}

static Frame *frame_at(Boxes *b, Id frame)
{
    return frame == NONE ? &b->outside : &b->frame.at[frame];
}

/* The frame of an open block, inside that of the block around it, inside its program's. */
static Id frame(Boxes *b, Id scope, uint8_t phase, uint8_t program)
{
    size_t scopes = b->d->g->scope.count;
    if (scope == NONE && !b->programs)
        return NONE;
    Id *found = &b->frame_of[(program * 3u + (scope == NONE ? 0 : phase)) * (scopes + 1) +
                             (scope == NONE ? scopes : scope)];
    if (*found != NONE)
        return *found;
    Id around = NONE;
    if (scope != NONE) {
        Id parent = b->levels.parent[scope];
        around = frame(b, parent == NONE || parent == 0 ? NONE : parent, phase, program);
    }
    Id made = *found = (Id)b->frame.count;
    ARRAY_PUSH(b->d->arena, &b->frame,
               (Frame){around, scope, program, NONE, NONE, NONE, NONE, NONE});
    Frame *outer = frame_at(b, around);
    *(outer->inside == NONE ? &outer->inside : &b->frame.at[outer->final].next) = made;
    outer->final = made;
    return made;
}

static void frame_box(Boxes *b, Id id)
{
    Box *box = &b->box.at[id];
    const Item *item = &b->d->item.at[box->item];
    Id inside = NONE; /* the block around it */
    if (item->kind == ITEM_OP && box->scope != 0) {
        Id scope = box->scope == NONE ? b->levels.shown[item->scope] : b->levels.parent[box->scope];
        inside = scope == 0 ? NONE : scope;
    }
    box->frame = frame(b, inside, box->phase, box->program);
    box->next = NONE;
    Frame *around = frame_at(b, box->frame);
    *(around->first == NONE ? &around->first : &b->box.at[around->last].next) = id;
    around->last = id;
}

static void draw_box(Boxes *b, Id id)
{
    const Box *box = &b->box.at[id];
    const Item *item = &b->d->item.at[box->item];
    static const char *const end_color[] = {[ITEM_INPUT] = "#d5efdf", [ITEM_OUTPUT] = "#f7d7e7"};
    Out *o = &b->o;
    out(o, "n%u [", id);
    set_html(o, "label", box_label(b, id));
    set(o, "tooltip", item->tip);
    if (item->kind != ITEM_OP) {
        set(o, "shape", "ellipse");
        set(o, "fillcolor", end_color[item->kind]);
    } else {
        set(o, "fillcolor", box->again ? "#fbd3cd" : phases[box->phase].light);
        set(o, "style", box->again ? "rounded,filled,dashed" : "rounded,filled");
        if (box->scope != NONE)
            set(o, "peripheries", "2");
        if (box->live || box->peak) {
            set(o, "color", "#c62f22");
            set(o, "penwidth", box->peak ? "3.5" : "1.8");
        }
    }
    out(o, " ];\n");
}

/* Frames nest no deeper than blocks are called, which the language bounds. */
static void draw_inside(Boxes *b, const Frame *f)
{
    for (Id i = f->first; i != NONE; i = b->box.at[i].next)
        draw_box(b, i);
    for (Id i = f->inside; i != NONE; i = b->frame.at[i].next) {
        const Frame *inner = &b->frame.at[i];
        bool program = inner->scope == NONE;
        Out *o = &b->o;
        out(o, "subgraph cluster_%u {\ngraph [", i);
        set(o, "label",
            program ? program_label(b, inner->program) : scope_title(b->d->g, inner->scope));
        set(o, "style", "rounded,filled");
        set(o, "fillcolor", program ? "#fbfbfa" : "#00000008");
        set(o, "color", program ? "#b9bec5" : "#cfd3d8");
        set(o, "labeljust", "l");
        set(o, "fontsize", program ? "15" : "11");
        set(o, "fontcolor", program ? "#1c1f24" : soft);
        out(o, " ];\n");
        draw_inside(b, inner);
        out(o, "}\n");
    }
}

/* ---- Arrows --------------------------------------------------------------------------------- */

static int by_ends(const void *a, const void *b)
{
    const Link *m = a, *n = b;
    if (m->from != n->from)
        return m->from < n->from ? -1 : 1;
    return (m->to > n->to) - (m->to < n->to);
}

/* Links between boxes, each pair once with the bytes of all. */
static size_t merge_links(Boxes *b, Link *link)
{
    const Drawing *d = b->d;
    size_t count = 0, kept = 0;
    Id *counted = ARENA_ARRAY(d->arena, Id, d->item.count + 1); /* leaves its box: once */
    for (size_t i = 0; i < d->link.count; i++) {
        Link l = {b->of[d->link.at[i].from], b->of[d->link.at[i].to], d->link.at[i].bytes};
        if (l.from == l.to)
            continue;
        if (!counted[d->link.at[i].from]) {
            counted[d->link.at[i].from] = 1;
            b->box.at[l.from].leaving += l.bytes;
        }
        link[count++] = l;
    }
    qsort(link, count, sizeof *link, by_ends);
    for (size_t i = 0; i < count; i++)
        if (kept && link[kept - 1].from == link[i].from && link[kept - 1].to == link[i].to)
            link[kept - 1].bytes += link[i].bytes;
        else
            link[kept++] = link[i];
    return kept;
}

static void draw_links(Boxes *b, const Link *link, size_t count)
{
    uint64_t most = 1;
    for (size_t i = 0; i < count; i++)
        most = link[i].bytes > most ? link[i].bytes : most;
    Out *o = &b->o;
    for (size_t i = 0; i < count; i++) {
        const Box *from = &b->box.at[link[i].from], *to = &b->box.at[link[i].to];
        bool up = from->phase == PHASE_BACKWARD && to->phase == PHASE_BACKWARD;
        double width = 0.6 + 4.4 * sqrt((double)link[i].bytes / (double)most);
        out(o, "n%u -> n%u [", up ? link[i].to : link[i].from, up ? link[i].from : link[i].to);
        set(o, "penwidth", arena_printf(b->d->arena, "%.2f", width));
        set(o, "tooltip", size_text(b->d->arena, link[i].bytes));
        if (up)
            set(o, "dir", "back");
        if (from->phase == to->phase)
            set(o, "weight", "12"); /* each pass is a straight line */
        out(o, " ];\n");
    }
    for (Id i = 0; i < b->box.count; i++) {
        const Item *item = &b->d->item.at[b->box.at[i].item];
        if (!b->box.at[i].again)
            continue;
        out(o, "n%u -> n%u [", b->of[item->first], i);
        set(o, "style", "dashed");
        set(o, "color", "#c62f22");
        set(o, "arrowhead", "none");
        set(o, "constraint", "false");
        set(o, "tooltip", "computed again");
        out(o, " ];\n");
    }
}

/* ---- The page ------------------------------------------------------------------------------- */

static void put_swatch(Out *o, const char *color, const char *border, const char *text)
{
    out(o,
        "<td bgcolor=\"%s\" border=\"%s\" color=\"#c62f22\" width=\"16\"> </td>"
        "<td align=\"left\"><font point-size=\"10\">%s  </font></td>",
        color, border, text);
}

static const char *heading(const Boxes *b)
{
    const Drawing *d = b->d;
    bool phase[3] = {false}, again = false;
    for (size_t i = 0; i < b->box.count; i++) {
        phase[b->box.at[i].phase] = true;
        again |= b->box.at[i].again;
    }
    Out o = out_new(d->arena);
    out(&o, "<table border=\"0\" cellborder=\"0\" cellspacing=\"3\"><tr><td colspan=\"12\" "
            "align=\"left\"><font point-size=\"17\"><b>");
    out_xml(&o, d->g->name);
    out(&o, "</b></font><font point-size=\"11\" color=\"%s\">   ", soft);
    if (d->plan)
        out(&o, "%u steps, arena %s, peak %s", d->plan->end,
            size_text(d->arena, d->plan->arena[SPACE_ARENA]), size_text(d->arena, d->peak));
    else
        out(&o, "%zu ops", d->g->node.count);
    out(&o, "</font></td></tr><tr>");
    for (int k = PHASE_FORWARD; k <= PHASE_UPDATE; k++)
        if (phase[k])
            put_swatch(&o, phases[k].light, "0", phases[k].name);
    if (again)
        put_swatch(&o, "#fbd3cd", "0", "computed again");
    if (d->plan)
        put_swatch(&o, "#ffffff", "2", "alive at the peak");
    out(&o,
        "<td align=\"left\"><font point-size=\"10\" color=\"%s\">arrows: as wide as they carry "
        "bytes</font></td></tr></table>",
        soft);
    return o.at;
}

static void draw_defaults(Boxes *b)
{
    static const struct {
        const char *kind, *key, *value;
    } defaults[] = {
        {"graph", "rankdir", "TB"},          {"graph", "bgcolor", "#fefefd"},
        {"graph", "fontname", "Helvetica"},  {"graph", "labelloc", "t"},
        {"graph", "labeljust", "l"},         {"graph", "nodesep", "0.25"},
        {"graph", "ranksep", "0.35"},        {"node", "shape", "box"},
        {"node", "style", "rounded,filled"}, {"node", "fillcolor", "#ffffff"},
        {"node", "color", "#9aa3ad"},        {"node", "fontname", "Helvetica"},
        {"node", "fontsize", "11"},          {"node", "margin", "0.1,0.07"},
        {"node", "height", "0.3"},           {"edge", "color", "#6b7580"},
        {"edge", "arrowsize", "0.6"},
    };
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) {
        out(&b->o, "%s [", defaults[i].kind);
        set(&b->o, defaults[i].key, defaults[i].value);
        out(&b->o, " ];\n");
    }
    out(&b->o, "graph [");
    set_html(&b->o, "label", heading(b));
    out(&b->o, " ];\n");
}

/* Strict: two arrows between the same boxes are one, with the settings of both. */
Text drawing_write(const Drawing *d)
{
    size_t scopes = d->g->scope.count;
    Boxes b = {.d = d,
               .levels = levels_make(d->g),
               .of = ARENA_ARRAY(d->arena, Id, d->item.count + 1),
               .frame_of = ARENA_ARRAY(d->arena, Id, PROGRAMS * 3 * (scopes + 1)),
               .outside = {NONE, NONE, 0, NONE, NONE, NONE, NONE, NONE},
               .o = out_new(d->arena)};
    uint8_t last = d->item.count ? d->item.at[0].program : 0;
    for (size_t i = 0; i < d->item.count; i++)
        b.programs |= d->item.at[i].program != last;
    memset(b.frame_of, 0xff, PROGRAMS * 3 * (scopes + 1) * sizeof *b.frame_of);
    make_boxes(&b);
    Link *link = ARENA_ARRAY(d->arena, Link, d->link.count + 1);
    size_t links = merge_links(&b, link);
    for (Id i = 0; i < b.box.count; i++)
        frame_box(&b, i);
    out(&b.o, "strict digraph \"%s\" {\n", d->g->name);
    draw_defaults(&b);
    draw_inside(&b, &b.outside);
    draw_links(&b, link, links);
    out(&b.o, "}\n");
    return out_done(&b.o);
}
