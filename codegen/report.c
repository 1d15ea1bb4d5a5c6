/* A page about a plan for the terminal: how much, where the peak is, what is live there. */
#include "codegen/picture.h"

#include <string.h>

enum { TOP = 10 };

typedef struct {
    const Picture *p;
    const Plan *plan;
    const Graph *g;
    Out o;
    const char *bold, *dim, *plain;
} Report;

static void line(Report *r, const char *what, uint64_t bytes, const char *note)
{
    out(&r->o, "  %-22s %12s  %s%s%s\n", what, size_text(r->g->arena, bytes), r->dim, note,
        r->plain);
}

static const char *percent(Report *r, uint64_t part, uint64_t whole, const char *of)
{
    return whole
               ? arena_printf(r->g->arena, "%.1f%% of %s", 100.0 * (double)part / (double)whole, of)
               : "";
}

/* ---- Numbers -------------------------------------------------------------------------------- */

static void write_sizes(Report *r)
{
    const Plan *plan = r->plan;
    uint64_t budget = r->p->options->budget;
    if (budget)
        line(r, "budget", budget, "");
    line(r, "arena", plan->arena[SPACE_ARENA],
         budget ? percent(r, plan->arena[SPACE_ARENA], budget, "the budget")
                : "all of it, planned");
    for (Space space = SPACE_ARENA + 1; space < SPACES; space++)
        if (space_planned[space])
            line(r, space_names[space], plan->arena[space], "beside the budget");
    line(r, "persistent", plan->persistent,
         plan->slots == NONE ? "parameters, state and inputs"
                             : "parameters, state, inputs and data");
    line(r, "peak of live bytes", r->p->options->live_peak.bytes,
         percent(r, r->p->options->live_peak.bytes, plan->arena[SPACE_ARENA], "the arena"));
    line(r, "packing bound", plan->bound, "no packing of these lifetimes is smaller");
    const Reasons *why = &r->p->options->why;
    bool chosen = why->micro || why->chunked_loss || why->epilogues || why->ring;
    line(r, "floor", plan->floor,
         chosen ? "no order of these steps needs less; steps of another choice may"
                : "no order of these steps needs less");
    uint64_t gaps =
        plan->arena[SPACE_ARENA] > r->p->peak ? plan->arena[SPACE_ARENA] - r->p->peak : 0;
    line(r, "fragmentation", gaps,
         arena_printf(r->g->arena, "%s is in gaps between buffers at the peak",
                      percent(r, gaps, plan->arena[SPACE_ARENA], "the arena")));
}

/* What the numbers mean. */
static void write_legend(Report *r)
{
    out(&r->o,
        "\n%sThe budget holds the arena: parameters, state, gradients, inputs, outputs, "
        "activations "
        "and\nworkspace of every program. A process adds 2 to 3 MiB of its own: code, stack, "
        "libraries.\nSizes are powers of 1024, and can be given back: --budget 1.5GiB.%s\n",
        r->dim, r->plain);
}

/* Estimated time: what the budget costs, and what any plan within it costs at least. */
static void write_cost(Report *r)
{
    const Plan *plan = r->plan;
    const Search *search = &r->p->options->search;
    if (search->least_cost > 0) {
        double extra = plan_extra(plan->cost, search->least_cost);
        double least = plan_extra(search->cost_bound, search->least_cost);
        const char *best =
            extra < least + 0.005 /* as it is printed */
                ? "no plan within the budget takes less"
                : arena_printf(r->g->arena, "no plan within the budget takes less than %.2f%%",
                               least);
        out(&r->o, "  %-22s %11.2f%%  %sof a %s; %s%s\n", "extra time, estimated", extra, r->dim,
            plan_trains_step(plan->clusters) ? "training step" : "forward pass", best, r->plain);
    }
    if (search->cut)
        out(&r->o, "  %-22s %12llu  %sthe search was cut short: --effort spends it all%s\n",
            "effort reached", (unsigned long long)search->effort, r->dim, r->plain);
}

/* How data is read, and what that takes on the host where the arena is on a device. */
static void write_ring(Report *r, const char *why)
{
    const Target *target = r->p->options->target;
    Ring ring = r->plan->ring;
    RingBytes bytes = target->ring(target, r->g, ring);
    const char *by =
        arena_printf(r->g->arena, "%u thread%s", ring.workers, ring.workers == 1 ? "" : "s");
    out(&r->o, "  %-22s %12s  %s%u slot%s of %s each%s%s%s\n", "data read ahead by",
        ring.workers ? by : "none", r->dim, ring.depth, ring.depth == 1 ? "" : "s",
        size_text(r->g->arena, bytes.slot), why ? ": " : "", why ? why : "", r->plain);
    if (bytes.host)
        line(r, "pinned on the host", bytes.host, "the ring and what fills it, beside the budget");
}

/* What each rank has a part of, why, and what the other ways take. */
static void write_shards(Report *r, Shard is)
{
    static const char *const what[SHARDS] = {
        "each rank holds all", "each rank holds its part of the optimizer's state",
        "each rank holds its part of the optimizer's state and gradients"};
    const char *why = r->p->options->why.shard;
    const uint64_t *stage = r->p->options->stage;
    out(&r->o, "  %-22s %12s  %s%s%s%s%s\n", "sharded", shard_name(is), r->dim, what[is],
        why ? "; " : "", why ? why : "", r->plain);
    if (stage[is])
        out(&r->o,
            "  %-22s %12s  %swithout recomputation: %s with none, %s state, %s gradients%s\n",
            "bytes a rank", size_text(r->g->arena, stage[is]), r->dim,
            size_text(r->g->arena, stage[SHARD_NONE]), size_text(r->g->arena, stage[SHARD_STATE]),
            size_text(r->g->arena, stage[SHARD_GRADIENTS]), r->plain);
}

/* What goes over the link, and what it costs; what grows with the number of ranks. */
static void write_ranks(Report *r)
{
    const Ranks *ranks = &r->g->ranks;
    Arena *arena = r->g->arena;
    if (ranks->here) {
        out(&r->o, "  %-22s %12u  %sone after the other, with the same sums%s\n", "as ranks",
            ranks->count, r->dim, r->plain);
        return;
    }
    const Communication c = plan_communication(r->plan, r->p->options->target);
    out(&r->o, "  %-22s %12u  %seach sends %s in a step, in %llu messages; the batch is of all%s\n",
        "ranks", ranks->count, r->dim, size_text(arena, c.sent), (unsigned long long)c.messages,
        r->plain);
    line(r, "on the wire", c.sent * ranks->count, "sent by all of them in a step");
    out(&r->o, "  %-22s %11.2f%%  %sof a step of %.3g s, predicted; of %.3g s %.1f%% overlap%s\n",
        "communication", 100 * c.lost / c.step, r->dim, c.step, c.link,
        c.link > 0 ? 100 * (1 - c.lost / c.link) : 0, r->plain);
    if (r->p->options->target->link == LINK_STREAMED)
        out(&r->o, "  %-22s %12s  %shas buffers for each rank that it talks to: --reserve%s\n",
            "NCCL", "not counted", r->dim, r->plain);
    if (c.grown)
        line(r, "grows with ranks", c.grown,
             "running statistics, of each micro-batch of all ranks");
    if (ranks->count > 1)
        write_shards(r, (Shard)ranks->shard);
}

/* What is kept of what hangs on parameters alone, and why no more. */
static void write_prepared(Report *r, const char *why)
{
    const Plan *plan = r->plan;
    uint32_t count = 0;
    uint64_t bytes = 0;
    for (Id i = 0; i < plan->buffers; i++)
        if (plan->buffer[i].root == i && plan->buffer[i].kind == BUFFER_PREPARED) {
            count++;
            bytes += plan->buffer[i].bytes;
        }
    if (count || why)
        out(&r->o, "  %-22s %12s  %s%u value%s of parameters alone, made once%s%s%s\n", "prepared",
            size_text(r->g->arena, bytes), r->dim, count, count == 1 ? "" : "s", why ? "; " : "",
            why ? why : "", r->plain);
}

/* How the model was cut, and why. */
static void write_choice(Report *r)
{
    const EmitOptions *o = r->p->options;
    const char *run = "";
    uint32_t times = 1;
    for (int k = 0; k < PROGRAMS; k++)
        if (r->plan->program[k].times > 1) {
            times = r->plan->program[k].times;
            run = arena_printf(r->g->arena, "%s%s%s", *run ? run : "in ", *run ? ", " : "",
                               program_titles[k]);
        }
    const Reasons *why = &o->why;
    if (o->programs)
        out(&r->o, "  %-22s %12s  %swhat else the model has is not planned%s\n", "programs",
            o->programs, r->dim, r->plain);
    if (r->g->ranks.count)
        write_ranks(r);
    if (times > 1 || why->micro)
        out(&r->o, "  %-22s %12u  %s%s%s%s%s\n", "micro-batches", times, r->dim, run,
            *run && why->micro ? ": " : "", why->micro ? why->micro : "", r->plain);
    if (r->plan->slots != NONE)
        write_ring(r, why->ring);
    write_prepared(r, why->prepared);
    if (why->precision)
        out(&r->o, "  %-22s %12s  %s%s%s\n", "precision", dtype_name((Dtype)o->choice.precision),
            r->dim, why->precision, r->plain);
    if (why->chunked_loss)
        out(&r->o, "  %-22s %12s  %s%s%s\n", "chunked loss", o->choice.chunked_loss ? "yes" : "no",
            r->dim, why->chunked_loss, r->plain);
    if (why->epilogues)
        out(&r->o, "  %-22s %12s  %s%s%s\n", "epilogues", o->choice.epilogues ? "yes" : "no",
            r->dim, why->epilogues, r->plain);
}

/* What threads cost: each has workspace of its own. */
static void write_threads(Report *r)
{
    const Target *target = r->p->options->target;
    if (target->threads > 1)
        out(&r->o, "  %-22s %12u  %sthe largest workspace is %s, with --threads 1 %s%s\n",
            "threads", target->threads, r->dim,
            size_text(r->g->arena, plan_workspace(r->plan, target, target->threads)),
            size_text(r->g->arena, plan_workspace(r->plan, target, 1)), r->plain);
}

static void write_work(Report *r)
{
    const Picture *p = r->p;
    if (p->recomputed)
        out(&r->o, "  %-22s %12u  %sof %u steps compute again%s\n", "recomputation", p->recomputed,
            r->dim, r->plan->end, r->plain);
    write_cost(r);
    write_choice(r);
    write_threads(r);
}

static void write_kinds(Report *r)
{
    out(&r->o, "\n%sBytes by kind%s, without sharing\n", r->bold, r->plain);
    for (int t = 0; t < TONES; t++)
        if (r->p->count[t])
            line(r, tones[t].plural, r->p->bytes[t],
                 arena_printf(r->g->arena, "%u buffer%s", r->p->count[t],
                              r->p->count[t] == 1 ? "" : "s"));
}

/* Where some values take 16 bits: what each dtype takes. */
static void write_dtypes(Report *r)
{
    const Picture *p = r->p;
    if (!p->narrow && p->options->choice.precision == F32)
        return;
    out(&r->o, "\n%sBytes by dtype%s, without sharing; products compute in %s\n", r->bold, r->plain,
        dtype_name((Dtype)p->options->choice.precision));
    for (int d = 0; d < DTYPES; d++)
        if (p->dtype_count[d])
            line(r, dtype_name((Dtype)d), p->dtype_bytes[d],
                 arena_printf(r->g->arena, "%u buffer%s", p->dtype_count[d],
                              p->dtype_count[d] == 1 ? "" : "s"));
}

/* ---- The peak ------------------------------------------------------------------------------- */

/* The line of the source that the peak is at. */
static void write_source(Report *r, Span span)
{
    const char *text = r->g->source ? r->g->source->text : NULL;
    for (uint32_t i = 1; text && *text && i < span.line; i++) {
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    if (text && *text && span.line)
        out(&r->o, "    %.*s\n", (int)strcspn(text, "\n"), text);
}

static void write_buffer(Report *r, Id id)
{
    uint32_t at = buffer_line(r->p, id);
    out(&r->o, "  %12s  %-28s %s%s", size_text(r->g->arena, r->plan->buffer[id].bytes),
        buffer_name(r->p, id), r->dim, buffer_shape(r->p, id));
    if (at && r->g->source)
        out(&r->o, "  %s", source_where(r->g->arena, r->g->source, at));
    out(&r->o, "%s\n", r->plain);
}

static void write_peak(Report *r)
{
    const Plan *plan = r->plan;
    if (r->p->peak_time >= plan->end)
        return;
    const Step *step = &r->p->step[r->p->peak_time];
    const Node *node = step->node;
    out(&r->o, "\n%sThe peak%s is at step %u of %u, %s", r->bold, r->plain, r->p->peak_time,
        plan->end, node->op->name);
    if (plan->program[step->program].count != plan->end)
        out(&r->o, " in the %s (%s)", program_titles[step->program], phases[node->phase].name);
    if (node->span.line && r->g->source)
        out(&r->o, ", %s", source_where(r->g->arena, r->g->source, node->span.line));
    out(&r->o, "\n");
    write_source(r, node->span);
    Id count;
    const Id *live = largest_at(r->p, r->p->peak_time, &count);
    out(&r->o, "\n%sLargest of the %u live there%s\n", r->bold, count, r->plain);
    for (Id i = 0; i < count && i < TOP; i++)
        write_buffer(r, tenant_at(r->p, live[i], r->p->peak_time));
}

/* ---- A sketch of the map -------------------------------------------------------------------- */

enum { SKETCH_LEAST = 64, SKETCH_MOST = 160, SKETCH_ROWS = 16, SKETCH_LABEL = 13 };

static const struct {
    char letter;
    int color; /* of 256 */
} marks[TONES] = {
    [TONE_PARAM] = {'p', 110},    [TONE_STATE] = {'s', 140},      [TONE_GRADIENT] = {'g', 215},
    [TONE_INPUT] = {'i', 114},    [TONE_OUTPUT] = {'o', 211},     [TONE_ACTIVATION] = {'a', 117},
    [TONE_PREPARED] = {'f', 180}, [TONE_RECOMPUTED] = {'R', 203}, [TONE_WORKSPACE] = {'w', 187},
    [TONE_DATA] = {'d', 150},
};

/* Cells whose middle a buffer covers, later ones over earlier ones. */
static void paint(const Report *r, int columns, uint8_t *cell)
{
    const Plan *plan = r->plan;
    memset(cell, TONES, (size_t)columns * SKETCH_ROWS);
    double wide = (double)plan->end / columns,
           high = (double)plan->arena[SPACE_ARENA] / SKETCH_ROWS;
    for (Id i = 0; i < plan->buffers; i++) {
        const Life *life = &r->p->life[i];
        if (!is_drawn(plan, i))
            continue;
        double begin = (double)life->begin, end = begin + (double)life->height;
        for (int y = (int)(begin / high); y < SKETCH_ROWS && y * high < end; y++)
            for (int x = (int)(life->birth / wide); x < columns && x * wide < life->end; x++)
                if ((y + 0.5) * high >= begin && (y + 0.5) * high < end &&
                    (x + 0.5) * wide >= life->birth && (x + 0.5) * wide < life->end)
                    cell[y * columns + x] = life->tone;
    }
}

static void write_cell(Report *r, uint8_t tone)
{
    if (tone == TONES)
        out(&r->o, ".");
    else if (r->p->options->color)
        out(&r->o, "\033[30;48;5;%dm%c\033[0m", marks[tone].color, marks[tone].letter);
    else
        out(&r->o, "%c", marks[tone].letter);
}

static void write_sketch(Report *r)
{
    uint32_t width = r->p->options->width;
    if (width < SKETCH_LEAST || !r->plan->end || !r->plan->arena[SPACE_ARENA])
        return;
    int columns = (int)(width < SKETCH_MOST ? width : SKETCH_MOST) - SKETCH_LABEL;
    columns = columns < (int)r->plan->end * 4 ? columns : (int)r->plan->end * 4;
    uint8_t *cell = ARENA_ARRAY(r->g->arena, uint8_t, (size_t)columns * SKETCH_ROWS);
    paint(r, columns, cell);
    out(&r->o, "\n%sThe arena over time%s", r->bold, r->plain);
    for (int t = 0; t < TONES; t++)
        if (r->p->count[t])
            out(&r->o, "  %c %s", marks[t].letter, tones[t].plural);
    out(&r->o, "\n");
    for (int y = SKETCH_ROWS - 1; y >= 0; y--) {
        bool labelled = y % 4 == 3 || y == 0;
        uint64_t bytes = y == 0 ? 0 : r->plan->arena[SPACE_ARENA] / SKETCH_ROWS * ((uint64_t)y + 1);
        out(&r->o, "%s%*s%s ", r->dim, SKETCH_LABEL - 2,
            labelled ? size_text(r->g->arena, bytes) : "", r->plain);
        for (int x = 0; x < columns; x++)
            write_cell(r, cell[y * columns + x]);
        out(&r->o, "\n");
    }
    int peak = (int)((r->p->peak_time + 0.5) / r->plan->end * columns);
    out(&r->o, "%*s^ peak\n", SKETCH_LABEL - 1 + peak, "");
}

Text emit_report(const Plan *plan, const EmitOptions *options)
{
    const Graph *g = plan->graph;
    bool color = options->color;
    Report r = {.p = picture_make(plan, options),
                .plan = plan,
                .g = g,
                .o = out_new(g->arena),
                .bold = color ? "\033[1m" : "",
                .dim = color ? "\033[2m" : "",
                .plain = color ? "\033[0m" : ""};
    out(&r.o, "%s%s%s: %zu nodes in %u steps\n", r.bold, g->name, r.plain, g->node.count,
        plan->end);
    write_sizes(&r);
    write_work(&r);
    write_kinds(&r);
    write_dtypes(&r);
    write_peak(&r);
    write_sketch(&r);
    write_legend(&r);
    return out_done(&r.o);
}
