/* Boxes and arrows as DOT, through libcgraph.
 *
 * Blocks are clusters, forward and backward apart. The backward pass runs upward beside the
 * forward pass: its arrows are stated from head to tail and drawn the other way round, so that
 * each block stands next to its gradient.
 * With a depth, what lies deeper is one box; arrows between the same two boxes are one arrow.
 */
#include "codegen/dot.h"

#include <graphviz/cgraph.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What is drawn as one box: an item, or all of a block that is not opened. */
typedef struct {
    Agnode_t *node;
    Id scope; /* of a shut block; NONE: one item */
    Id item;  /* the first of its items */
    Id items;
    uint64_t params, leaving; /* bytes read as parameters; bytes others read */
    uint8_t phase, program;
    bool again, live, peak;
} Box;

typedef struct {
    const Drawing *d;
    Levels levels;
    Agraph_t *root;
    ARRAY(Box) box;
    Id *of; /* item -> its box */
    struct {
        Agraph_t *at;
        Id scope;
        uint8_t phase, program;
    } * cluster; /* open blocks, as they come */
    size_t clusters;
    bool programs; /* more than one: each has a frame */
} Boxes;

/* Writing takes cgraph nodes times frames. With more blocks than this, only programs have frames:
 * nobody can read such a picture whole, and --depth is the way to make it smaller. */
enum { MAX_FRAMED = 1500 };

/* cgraph's calls take char * where they mean const. */
static char *loose(const char *text)
{
    return (char *)(uintptr_t)text;
}

static void set(void *object, const char *key, const char *value)
{
    agsafeset(object, loose(key), loose(value), loose(""));
}

static void set_html(Boxes *b, void *object, const char *key, const char *html)
{
    char *text = agstrdup_html(b->root, loose(html));
    agsafeset(object, loose(key), text, loose(""));
    agstrfree(b->root, text);
}

/* ---- Which items are one box ---------------------------------------------------------------- */

/* The block that hides the item, or NONE: it is drawn itself. Updates hide behind the model. */
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

/* ---- Clusters ------------------------------------------------------------------------------- */

static const char *program_label(const Boxes *b, int program)
{
    uint32_t times = b->d->plan ? b->d->plan->program[program].times : 1;
    return times > 1 ? arena_printf(b->d->arena, "%s, %u times", program_titles[program], times)
                     : program_titles[program];
}

/* The frame of an open block, inside that of the block around it, inside its program's. */
static Agraph_t *frame(Boxes *b, Id scope, uint8_t phase, uint8_t program)
{
    if (b->d->g->scope.count > MAX_FRAMED)
        scope = NONE;
    if (scope == NONE && !b->programs)
        return b->root;
    for (size_t i = 0; i < b->clusters; i++)
        if (b->cluster[i].scope == scope && b->cluster[i].program == program &&
            (scope == NONE || b->cluster[i].phase == phase))
            return b->cluster[i].at;
    Agraph_t *around = b->root;
    if (scope != NONE) {
        Id parent = b->levels.parent[scope];
        around = frame(b, parent == NONE || parent == 0 ? NONE : parent, phase, program);
    }
    char *name = arena_printf(b->d->arena, "cluster_%zu", b->clusters);
    Agraph_t *made = agsubg(around, name, 1);
    set(made, "label", scope == NONE ? program_label(b, program) : scope_title(b->d->g, scope));
    set(made, "style", "rounded,filled");
    set(made, "fillcolor", scope == NONE ? "#fbfbfa" : "#00000008");
    set(made, "color", scope == NONE ? "#b9bec5" : "#cfd3d8");
    set(made, "labeljust", "l");
    set(made, "fontsize", scope == NONE ? "15" : "11");
    set(made, "fontcolor", scope == NONE ? "#1c1f24" : soft);
    b->cluster[b->clusters].at = made;
    b->cluster[b->clusters].scope = scope;
    b->cluster[b->clusters].phase = phase;
    b->cluster[b->clusters].program = program;
    b->clusters++;
    return made;
}

static void draw_box(Boxes *b, Id id)
{
    Box *box = &b->box.at[id];
    const Item *item = &b->d->item.at[box->item];
    Id inside = NONE; /* the frame around it */
    if (item->kind == ITEM_OP && box->scope != 0) {
        Id scope = box->scope == NONE ? b->levels.shown[item->scope] : b->levels.parent[box->scope];
        inside = scope == 0 ? NONE : scope;
    }
    Agraph_t *around = frame(b, inside, box->phase, box->program);
    box->node = agnode(around, arena_printf(b->d->arena, "n%u", id), 1);
    set_html(b, box->node, "label", box_label(b, id));
    set(box->node, "tooltip", item->tip);
    static const char *const end_color[] = {[ITEM_INPUT] = "#d5efdf", [ITEM_OUTPUT] = "#f7d7e7"};
    if (item->kind != ITEM_OP) {
        set(box->node, "shape", "ellipse");
        set(box->node, "fillcolor", end_color[item->kind]);
        return;
    }
    set(box->node, "fillcolor", box->again ? "#fbd3cd" : phases[box->phase].light);
    set(box->node, "style", box->again ? "rounded,filled,dashed" : "rounded,filled");
    if (box->scope != NONE)
        set(box->node, "peripheries", "2");
    if (box->live || box->peak) {
        set(box->node, "color", "#c62f22");
        set(box->node, "penwidth", box->peak ? "3.5" : "1.8");
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
    for (size_t i = 0; i < count; i++) {
        const Box *from = &b->box.at[link[i].from], *to = &b->box.at[link[i].to];
        bool up = from->phase == PHASE_BACKWARD && to->phase == PHASE_BACKWARD;
        Agedge_t *edge =
            agedge(b->root, up ? to->node : from->node, up ? from->node : to->node, NULL, 1);
        double width = 0.6 + 4.4 * sqrt((double)link[i].bytes / (double)most);
        set(edge, "penwidth", arena_printf(b->d->arena, "%.2f", width));
        set(edge, "tooltip", size_text(b->d->arena, link[i].bytes));
        if (up)
            set(edge, "dir", "back");
        if (from->phase == to->phase)
            set(edge, "weight", "12"); /* each pass is a straight line */
    }
    for (Id i = 0; i < b->box.count; i++) {
        const Item *item = &b->d->item.at[b->box.at[i].item];
        if (!b->box.at[i].again)
            continue;
        Agedge_t *edge =
            agedge(b->root, b->box.at[b->of[item->first]].node, b->box.at[i].node, NULL, 1);
        set(edge, "style", "dashed");
        set(edge, "color", "#c62f22");
        set(edge, "arrowhead", "none");
        set(edge, "constraint", "false");
        set(edge, "tooltip", "computed again");
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
        out(&o, "%u steps, arena %s, peak %s", d->plan->end, size_text(d->arena, d->plan->arena),
            size_text(d->arena, d->peak));
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

static void set_defaults(Boxes *b)
{
    static const struct {
        int kind;
        const char *key, *value;
    } defaults[] = {
        {AGRAPH, "rankdir", "TB"},           {AGRAPH, "bgcolor", "#fefefd"},
        {AGRAPH, "fontname", "Helvetica"},   {AGRAPH, "labelloc", "t"},
        {AGRAPH, "labeljust", "l"},          {AGRAPH, "nodesep", "0.25"},
        {AGRAPH, "ranksep", "0.35"},         {AGNODE, "shape", "box"},
        {AGNODE, "style", "rounded,filled"}, {AGNODE, "fillcolor", "#ffffff"},
        {AGNODE, "color", "#9aa3ad"},        {AGNODE, "fontname", "Helvetica"},
        {AGNODE, "fontsize", "11"},          {AGNODE, "margin", "0.1,0.07"},
        {AGNODE, "height", "0.3"},           {AGEDGE, "color", "#6b7580"},
        {AGEDGE, "arrowsize", "0.6"},
    };
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++)
        agattr(b->root, defaults[i].kind, loose(defaults[i].key), loose(defaults[i].value));
}

static Text take_text(Boxes *b)
{
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    if (to) {
        agwrite(b->root, to);
        fclose(to);
    }
    Text taken = {arena_copy(b->d->arena, text ? text : "", length), length};
    free(text);
    return taken;
}

Text drawing_write(const Drawing *d)
{
    Boxes b = {
        .d = d, .levels = levels_make(d->g), .of = ARENA_ARRAY(d->arena, Id, d->item.count + 1)};
    uint8_t last = d->item.count ? d->item.at[0].program : 0;
    for (size_t i = 0; i < d->item.count; i++)
        b.programs |= d->item.at[i].program != last;
    b.cluster = arena_array(d->arena, d->g->scope.count * 3 + PROGRAMS, sizeof *b.cluster);
    b.root = agopen(loose(d->g->name), Agstrictdirected, NULL);
    set_defaults(&b);
    make_boxes(&b);
    Link *link = ARENA_ARRAY(d->arena, Link, d->link.count + 1);
    size_t links = merge_links(&b, link);
    for (Id i = 0; i < b.box.count; i++)
        draw_box(&b, i);
    draw_links(&b, link, links);
    set_html(&b, b.root, "label", heading(&b));
    Text text = take_text(&b);
    agclose(b.root);
    return text;
}
