/* The candidates of choose: micro-batches, a chunked loss, epilogues.
 *
 * A model is lowered for a choice when that choice is the next to be looked at: until then, its
 * least cost is bounded by that of fewer micro-batches, since dividing a step saves none of its
 * time.
 */
#include "planner/choose.h"

static bool has_chunked_loss(const Graph *g)
{
    for (size_t n = 0; n < g->node.count; n++)
        if (g->node.at[n].op->flags & OP_CHUNKED)
            return true;
    return false;
}

static bool has_epilogue(const Graph *g, const Clusters *clusters)
{
    for (Id i = 0; i < clusters->count; i++)
        if (cluster_has_epilogue(g, clusters, &clusters->at[i]))
            return true;
    return false;
}

static void add(Chooser *s, Choice choice)
{
    ARRAY_PUSH(s->arena, &s->candidate, (Candidate){.choice = choice});
}

static Choice chunked(Choice choice)
{
    choice.chunked_loss = true;
    return choice;
}

static bool is_open(const Candidate *c)
{
    return !c->gone && !c->tried;
}

/* It cannot be lowered so: then neither with more micro-batches; or nothing is there to be
 * computed in chunks: then nowhere. */
static void drop(Chooser *s, Choice choice, bool unchunked)
{
    bool first = !choice.chunked_loss || s->options->chunked_loss == WHEN_ALWAYS;
    for (size_t i = 0; i < s->candidate.count; i++) {
        Candidate *c = &s->candidate.at[i];
        bool same = choice_equals(c->choice, choice);
        bool more = c->choice.micro >= choice.micro && first;
        if (!c->built && (same || (unchunked ? c->choice.chunked_loss : more)))
            c->gone = true;
    }
}

/* With more micro-batches it costs no less. */
static void raise_bounds(Chooser *s, Choice choice, double least)
{
    for (size_t i = 0; i < s->candidate.count; i++) {
        Candidate *c = &s->candidate.at[i];
        if (!c->built && c->choice.chunked_loss == choice.chunked_loss &&
            c->choice.precision == choice.precision && c->choice.micro > choice.micro &&
            c->choice.shard == choice.shard && c->least < least)
            c->least = least;
    }
}

static bool is_as_it_stands(const Chooser *s, const Graph *g, Choice choice)
{
    const Choice asked = choice_asked(s->model, s->target, s->options);
    return (!choice.micro || choice.micro == train_stated(g)) && !choice.chunked_loss &&
           choice.epilogues == asked.epilogues && choice.precision == asked.precision &&
           choice.shard == asked.shard && choice.prepared == asked.prepared;
}

/* The clusters of a candidate whose graph is there. */
static void cluster(Chooser *s, size_t i, Lowered *lowered)
{
    Candidate *c = &s->candidate.at[i];
    c->built = true;
    c->lowered = lowered;
    lowered->users++;
    c->clusters = fuse(lowered->arena, lowered->graph, c->choice.epilogues);
    c->least = c->once = plan_cost(lowered->graph, c->clusters, s->target) +
                         plan_wait(lowered->graph, c->clusters, s->target, c->choice.ring);
    choose_say(s, "fused    into %u clusters, %.4g s at least", c->clusters->count, c->least);
    if (is_as_it_stands(s, lowered->graph, c->choice) && !s->least_cost)
        s->least_cost = c->least;
}

/* The same with less memory for data: fewer workers ahead of the step, and none. */
static void add_rings(Chooser *s, Choice choice, Lowered *lowered)
{
    static const Ring less[] = {{3, 4}, {3, 2}, {2, 1}, {1, 0}};
    const uint32_t workers = choice.ring.workers;
    for (size_t k = 0; k < sizeof less / sizeof *less && lowered->graph->data.count; k++)
        if (less[k].workers < workers) {
            choice.ring = less[k];
            add(s, choice);
            cluster(s, s->candidate.count - 1, lowered);
        }
}

void candidate_lower(Chooser *s, Id i)
{
    Choice choice = s->candidate.at[i].choice;
    Lowered *lowered = ARENA_NEW(s->arena, Lowered);
    lowered->arena = arena_new();
    Diag *diag = s->diag ? s->diag : diag_new(lowered->arena, NULL, false);
    s->diag = NULL;
    lowered->graph = model_lower(s->model, &choice, lowered->arena, diag);
    if (lowered->graph && !supports(lowered->graph, s->target))
        lowered->graph = NULL;
    const Graph *g = lowered->graph;
    bool unchunked =
        g && choice.chunked_loss && !has_chunked_loss(g) && s->options->chunked_loss != WHEN_ALWAYS;
    if (!g || unchunked) {
        if (!g && s->micro_open && choice.micro > 1 && !s->coupled.text)
            s->coupled = message_copy(s->arena, diag_first(diag));
        drop(s, choice, unchunked);
        arena_free(lowered->arena);
        return;
    }
    choose_say(s, "lowered  %s: %zu nodes, %zu values, micro-batches %u, loss %s", g->name,
               g->node.count, g->value.count, program_times(g, PROGRAM_STEP),
               choice.chunked_loss ? "chunked" : "whole");
    cluster(s, i, lowered);
    if (g->data.count) { /* how long a step takes is known now */
        choice.ring = s->options->ring.depth
                          ? s->options->ring
                          : ring_wanted(g, s->candidate.at[i].clusters, s->target);
        s->candidate.at[i].choice.ring = choice.ring;
        s->candidate.at[i].least = s->candidate.at[i].once =
            plan_cost(g, s->candidate.at[i].clusters, s->target) +
            plan_wait(g, s->candidate.at[i].clusters, s->target, choice.ring);
        if (is_as_it_stands(s, g, choice))
            s->least_cost = s->candidate.at[i].least;
    }
    raise_bounds(s, choice, s->candidate.at[i].least);
    bool open = s->options->budget || s->options->smallest;
    if (open && !s->options->ring.depth)
        add_rings(s, choice, lowered);
    if (open && choice.epilogues && s->options->epilogues == WHEN_AUTO &&
        has_epilogue(g, s->candidate.at[i].clusters)) {
        choice.epilogues = false;
        add(s, choice);
        cluster(s, s->candidate.count - 1, lowered);
        if (!s->options->ring.depth)
            add_rings(s, choice, lowered);
    }
}

static int64_t batch_of(const Graph *g)
{
    for (size_t i = 0; i < g->dimension.count; i++)
        if (g->dimension.at[i].batch)
            return g->dimension.at[i].value;
    return 1;
}

static bool may_shard(const Chooser *s)
{
    return s->options->shard_auto;
}

/* One more choice, and the same with each way to shard that is open. */
static void add_sharded(Chooser *s, Choice choice)
{
    const bool open = may_shard(s);
    for (int shard = open ? SHARD_NONE : choice.shard; shard < (open ? SHARDS : choice.shard + 1);
         shard++) {
        choice.shard = (uint8_t)shard;
        add(s, choice);
    }
}

/* Whether nothing is there to be computed in chunks. */
static bool is_unchunked(const Chooser *s)
{
    for (size_t i = 0; i < s->candidate.count; i++)
        if (s->candidate.at[i].choice.chunked_loss && s->candidate.at[i].gone)
            return true;
    return s->options->chunked_loss != WHEN_AUTO;
}

/* Micro-batches: divisors of the batch, each at least twice the one before it. */
static void list_micro(Chooser *s)
{
    Choice choice = s->candidate.at[0].choice;
    int64_t last = choice.micro ? choice.micro : 1;
    size_t known = s->candidate.count;
    for (size_t i = 0; i < known; i++) /* in so many words */
        s->candidate.at[i].choice.micro = (uint32_t)last;
    for (int64_t times = 2 * last; times <= s->batch && times <= 1 << 20; times++)
        /* cppcheck-suppress zerodiv ; times begins at 2 */
        if (s->batch % times == 0 && times >= 2 * last) {
            last = times;
            choice.micro = (uint32_t)times;
            add_sharded(s, choice);
            if (!is_unchunked(s))
                add_sharded(s, chunked(choice));
        }
    for (size_t i = 0; i < known; i++)
        if (s->candidate.at[i].built && s->candidate.at[i].choice.epilogues == choice.epilogues)
            raise_bounds(s, s->candidate.at[i].choice, s->candidate.at[i].once);
}

/* The same choices in bf16. f16 wants a loss scale, and all gradients held until it is known. */
static bool list_narrow(Chooser *s)
{
    const size_t known = s->candidate.count;
    if (s->narrowed || !s->options->precision_auto || s->candidate.at[0].choice.precision != F32)
        return false;
    s->narrowed = true;
    for (size_t i = 0; i < known; i++) {
        Choice choice = s->candidate.at[i].choice;
        bool first = !s->candidate.at[i].gone;
        for (size_t k = 0; k < i; k++) /* those that differ in what follows once it is lowered */
            first &= s->candidate.at[k].choice.micro != choice.micro ||
                     s->candidate.at[k].choice.shard != choice.shard ||
                     s->candidate.at[k].choice.prepared != choice.prepared ||
                     s->candidate.at[k].choice.chunked_loss != choice.chunked_loss;
        choice.precision = BF16;
        choice.epilogues = s->candidate.at[0].choice.epilogues;
        choice.ring = (Ring){0};
        if (first)
            add(s, choice);
    }
    return s->candidate.count > known;
}

/* Inference with less of what hangs on parameters kept: parts of all there is, where that is much
 * beside the parameters, or nothing. */
static void list_prepared(Chooser *s)
{
    static const int part[] = {0, 1, 2, 4, 6, 8, 12}; /* sixteenths */
    const Graph *g = s->candidate.at[0].lowered->graph;
    const uint64_t all = prepared_bytes(g);
    uint64_t parameters = 0;
    for (Id v = 0; v < g->value.count; v++)
        if (g->value.at[v].kind == VALUE_PARAM)
            parameters += value_bytes(&g->value.at[v]);
    const size_t parts = all == 0 ? 0 : all < parameters / 16 ? 1 : sizeof part / sizeof *part;
    Choice choice = s->candidate.at[0].choice;
    for (size_t i = 0; i < parts; i++) {
        choice.prepared = all / 16 * (uint64_t)part[i];
        add(s, choice);
    }
}

void candidates_list(Chooser *s)
{
    const PlanOptions *o = s->options;
    const Graph *g = s->candidate.at[0].lowered->graph;
    const bool all = o->smallest && !o->budget; /* all that is allowed: there is no resort */
    if (!model_trains(s->model)) {
        list_prepared(s);
        if (all)
            list_narrow(s);
        return;
    }
    s->batch = batch_of(g);
    s->micro_open = !o->micro && !o->micro_auto && !train_states(g);
    if (o->micro_auto || (!o->micro && train_is_auto(g)))
        list_micro(s);
    if (o->chunked_loss == WHEN_AUTO)
        add_sharded(s, chunked(s->candidate.at[0].choice));
    for (int shard = SHARD_NONE + 1; shard < SHARDS && may_shard(s); shard++) {
        Choice choice = s->candidate.at[0].choice;
        choice.shard = (uint8_t)shard;
        add(s, choice);
    }
    if (all)
        list_narrow(s);
}

bool candidates_resort(Chooser *s)
{
    const size_t known = s->candidate.count;
    if (s->micro_open && !s->resorted)
        list_micro(s);
    s->resorted = true;
    return s->candidate.count > known || list_narrow(s);
}

/* Of what may be smallest: once a step is known to run in micro-batches at all, the one in most of
 * them. The rest is then mostly ruled out by its floor. */
static bool is_smaller(const Candidate *x, const Candidate *y)
{
    return x->choice.micro != y->choice.micro   ? x->choice.micro > y->choice.micro
           : x->choice.shard != y->choice.shard ? x->choice.shard > y->choice.shard
           : x->choice.ring.workers != y->choice.ring.workers
               ? x->choice.ring.workers < y->choice.ring.workers
               : x->choice.chunked_loss && !y->choice.chunked_loss;
}

static bool is_cheaper(const Candidate *x, const Candidate *y)
{
    if (x->least != y->least)
        return x->least < y->least;
    if (x->choice.shard != y->choice.shard)
        return x->choice.shard < y->choice.shard;
    if (x->choice.micro != y->choice.micro)
        return x->choice.micro < y->choice.micro;
    if (x->choice.prepared != y->choice.prepared)
        return x->choice.prepared > y->choice.prepared;
    if (x->choice.chunked_loss != y->choice.chunked_loss)
        return y->choice.chunked_loss;
    return x->choice.epilogues && !y->choice.epilogues;
}

Id candidates_next(Chooser *s, bool so)
{
    for (;;) {
        Id best = NONE;
        bool divided = false;
        for (Id i = 0; i < s->candidate.count; i++)
            divided |= s->candidate.at[i].built && s->candidate.at[i].choice.micro > 1;
        bool (*is_before)(const Candidate *x, const Candidate *y) =
            s->by_size && divided ? is_smaller : is_cheaper;
        for (Id i = 0; i < s->candidate.count; i++)
            if (is_open(&s->candidate.at[i]) &&
                (best == NONE || is_before(&s->candidate.at[i], &s->candidate.at[best])))
                best = i;
        if (best == NONE || !so || s->candidate.at[best].built)
            return best;
        candidate_lower(s, best);
    }
}

size_t candidates_open(const Chooser *s)
{
    size_t count = 0;
    for (size_t i = 0; i < s->candidate.count; i++)
        count += is_open(&s->candidate.at[i]);
    return count;
}

void candidates_begin(Chooser *s)
{
    add(s, choice_asked(s->model, s->target, s->options));
    candidate_lower(s, 0);
}

void lowered_release(Lowered *lowered)
{
    if (lowered && --lowered->users == 0)
        arena_free(lowered->arena);
}

void candidate_close(Candidate *c)
{
    c->tried = true;
    lowered_release(c->lowered);
    c->lowered = NULL;
}
