/* What a training step of several ranks loses to the link between them, and what it hides.
 *
 * A sum over ranks is a piece of work for the link: the bytes that a rank sends at the rate that
 * all ranks have at once, a while for each message, and the additions that it owns. The link does
 * them one after the other, in the order in which they begin. While an op runs it goes on, and
 * takes the share `link_core` of its time from the cores, additions whole; where bytes move between
 * ops alone (LINK_POLLED), by no more than the pieces that are under way. An op that waits stands
 * still until its sum is there. So what is lost is what is waited for and what the cores take part
 * in; the rest overlaps. Each micro-batch sends its parts, and what it began has ended with it; the
 * last one sends the sums. Statistics over ranks are gathered while everybody waits: polled, in
 * as many rounds as the number of ranks doubles; streamed, after what the link has to do. At the
 * end of a step the ranks tell each other their losses.
 *
 * Left out: which ranks share a link, or are far apart; ranks that are late; other jobs. One walk
 * over the occurrences: nothing here hangs on the number of ranks.
 */
#include "planner/internal.h"

enum {
    OWN_PIECES = 4, /* of each rank, that are under way at a time: runtime/c/ranks_state.h */
    POLLS = 3,      /* that a piece takes: parts arrive, the sum leaves, the sum arrives */
};

typedef struct {
    const Graph *g;
    const Clusters *clusters;
    const Target *target;
    const Profile *profile;
    double *due; /* of the sums that began: seconds of the link until they are done */
    Id begun, ended;
    double queued, done; /* seconds of the link */
    double core;         /* of those queued, seconds that cores take part in */
    double pieces;       /* of those queued */
    double compute;
    Communication all;
} Walk;

static Walk walk_begin(const Graph *g, const Clusters *clusters, const Target *target)
{
    return (Walk){.g = g,
                  .clusters = clusters,
                  .target = target,
                  .profile = target->profile ? target->profile : &default_profile,
                  .due = ARENA_ARRAY(g->arena, double, g->node.count + 1)};
}

/* What a rank of so many has to do with each of them, where all do the same: (R - 1) / R. */
static double others(const Graph *g)
{
    return (double)(g->ranks.count - 1) / (double)g->ranks.count;
}

/* A tensor in pieces, and how often somebody waits for a message to come through: polled, messages
 * of a piece are handled one by one; streamed, those of all owners go together. */
typedef struct {
    double pieces, starts;
} Cut;

static Cut cut(const Walk *w, int64_t count)
{
    const int64_t ranks = w->g->ranks.count, even = ((count + ranks - 1) / ranks + 63) / 64 * 64;
    int64_t piece = w->g->ranks.piece;
    if (w->target->link == LINK_STREAMED && even < piece)
        piece = even;
    const int64_t pieces = (count + piece - 1) / piece;
    return (Cut){(double)pieces, w->target->link == LINK_STREAMED
                                     ? (double)((pieces + ranks - 1) / ranks)
                                     : (double)pieces * others(w->g)};
}

static void begin_sum(Walk *w, uint8_t does, int64_t count)
{
    const Profile *p = w->profile;
    const double sends = !!(does & RANKS_PART) + !!(does & RANKS_WHOLE);
    const double bytes = sends * 4.0 * (double)count * others(w->g);
    const Cut in = cut(w, count);
    const double moves = bytes / p->link_bytes + sends * in.starts * p->link_start;
    const double adds = does & RANKS_PART ? 3 * 4.0 * (double)count * others(w->g) / p->bytes : 0;
    w->all.sent += (uint64_t)bytes;
    w->all.messages += (uint64_t)(sends * in.pieces * others(w->g) + 0.5);
    w->queued += moves + adds;
    w->core += moves * p->link_core + adds;
    w->pieces += in.pieces;
    w->due[w->begun++] = w->queued;
}

/* The link goes on while an op takes so many seconds. */
static void overlap(Walk *w, double seconds)
{
    const double share = w->queued > 0 ? w->core / w->queued : 0;
    double moved = w->queued - w->done;
    if (moved <= 0)
        return;
    if (share < 1 && moved > seconds / (1 - share))
        moved = seconds / (1 - share);
    const double poll = w->queued / w->pieces * OWN_PIECES * w->g->ranks.count / POLLS;
    if (w->target->link == LINK_POLLED && moved > poll)
        moved = poll;
    w->done += moved;
    w->all.lost += share * moved;
}

static void end_sum(Walk *w)
{
    const double due = w->ended < w->begun ? w->due[w->ended++] : w->queued;
    if (due > w->done) {
        w->all.lost += due - w->done;
        w->done = due;
    }
}

/* Each rank sends what it has, so many numbers, to all others; nobody goes on before it is there.
 */
static void gather(Walk *w, int64_t count)
{
    const Profile *p = w->profile;
    const bool streamed = w->target->link == LINK_STREAMED;
    uint32_t rounds = 0, messages = w->g->ranks.count - 1;
    while (1u << rounds < w->g->ranks.count)
        rounds++;
    const double bytes = 4.0 * (double)count * messages;
    const double moves = bytes / p->link_bytes + (streamed ? 1 : rounds) * p->link_start;
    w->all.sent += (uint64_t)bytes;
    w->all.messages += streamed ? messages : rounds;
    w->all.link += moves;
    w->all.lost += moves;
    if (streamed && w->queued > w->done) {
        w->all.lost += w->queued - w->done;
        w->done = w->queued;
    }
}

static void visit(Walk *w, Id cluster, bool last)
{
    const Id id = w->clusters->node[w->clusters->at[cluster].node];
    const Node *node = &w->g->node.at[id];
    const double seconds = cluster_cost(w->g, w->clusters, w->target, cluster);
    const uint8_t does = ranks_does(w->g, id, last);
    w->compute += seconds;
    if (does & RANKS_BEGINS)
        begin_sum(w, does, value_count(&w->g->value.at[node_value(node, 0)]));
    else if (does & RANKS_END)
        end_sum(w);
    else if (does & RANKS_ROWS)
        gather(w, value_count(&w->g->value.at[node_use(w->g, node, 0).value]));
    else
        overlap(w, seconds);
}

/* All micro-batches before the last cost what one of them does. */
static void repeat(Walk *w, uint32_t times)
{
    end_sum(w);
    w->compute *= times;
    w->all.link = w->queued * times;
    w->all.lost *= times;
    w->all.sent *= times;
    w->all.messages *= times;
    w->begun = w->ended = 0;
    w->queued = w->done = w->core = w->pieces = 0;
}

/* Polled, rank 0 takes the losses of all and sends the sum back, one after the other. */
static Communication walk_end(Walk *w)
{
    const Ranks *ranks = &w->g->ranks;
    const double messages = w->target->link == LINK_STREAMED ? 1 : 2 * (ranks->count - 1);
    const double said = messages * w->profile->link_start;
    end_sum(w);
    w->all.link += w->queued + said;
    w->all.lost += said;
    w->all.step = w->compute + w->all.lost;
    for (size_t i = 0; i < ranks->begun.count; i++) {
        const Value *value = &w->g->value.at[ranks->begun.at[i]];
        if (value->kind == VALUE_STATE)
            w->all.grown += value_bytes(value) * ranks->count * w->g->train.times;
    }
    return w->all;
}

Communication plan_communication(const Plan *plan, const Target *target)
{
    static const ProgramKind step[] = {PROGRAM_STEP, PROGRAM_UPDATE};
    if (plan->graph->ranks.state == NONE)
        return (Communication){0};
    Walk w = walk_begin(plan->graph, plan->clusters, target);
    const uint32_t times = program_times(plan->graph, PROGRAM_STEP);
    for (int k = times > 1 ? -1 : 0; k < 2; k++) {
        const Program *program = &plan->program[step[k < 0 ? 0 : k]];
        for (Id i = 0; i < program->count; i++)
            visit(&w, program->at[i].cluster, k >= 0);
        if (k < 0)
            repeat(&w, times - 1);
    }
    return walk_end(&w);
}

double ranks_wait(const Graph *g, const Clusters *clusters, const Target *target)
{
    static const ProgramKind step[] = {PROGRAM_STEP, PROGRAM_UPDATE};
    if (g->ranks.state == NONE)
        return 0;
    Walk w = walk_begin(g, clusters, target);
    const uint32_t times = program_times(g, PROGRAM_STEP);
    for (int k = times > 1 ? -1 : 0; k < 2; k++) {
        for (Id i = 0; i < clusters->count; i++)
            if (clusters->at[i].program == step[k < 0 ? 0 : k])
                visit(&w, i, k >= 0);
        if (k < 0)
            repeat(&w, times - 1);
    }
    return walk_end(&w).lost;
}
