/* Why the choice is as it is, in words for the report. */
#include "planner/choose.h"

typedef bool Other(Choice c, Choice best);

/* What the candidates come to that are otherwise in one respect. */
static const char *otherwise(const Chooser *s, const ChoiceTrial *best, Other *other)
{
    const Candidate *cheapest = NULL;
    bool untried = false, refused = false;
    for (size_t i = 0; i < s->candidate.count; i++) {
        const Candidate *c = &s->candidate.at[i];
        if (c->gone || !other(c->choice, best->choice))
            continue;
        untried |= !c->tried;
        refused |= c->tried && !c->fits;
        if (c->fits && (!cheapest || c->cost < cheapest->cost))
            cheapest = c;
    }
    if (cheapest)
        return arena_printf(best->arena, "would take %.2f%% more time",
                            100 * (cheapest->cost / best->plan->cost - 1));
    if (untried && choose_stopped(s))
        return "was not tried before the search was cut";
    if (untried && refused) /* some of them with other choices beside */
        return "would not fit, or take more time";
    return untried ? "would take more time" : "would not fit";
}

static bool is_stored(Choice c, Choice best)
{
    return best.chunked_loss && !c.chunked_loss;
}

static bool is_chunked(Choice c, Choice best)
{
    return !best.chunked_loss && c.chunked_loss;
}

static bool has_fewer(Choice c, Choice best)
{
    return c.micro < best.micro;
}

static bool has_more(Choice c, Choice best)
{
    return c.micro > best.micro;
}

static bool has_fused(Choice c, Choice best)
{
    return !best.epilogues && c.epilogues;
}

static bool has_apart(Choice c, Choice best)
{
    return best.epilogues && !c.epilogues;
}

static bool reads_ahead(Choice c, Choice best)
{
    return best.ring.workers > c.ring.workers && c.ring.depth;
}

static bool reads_further(Choice c, Choice best)
{
    return best.ring.workers < c.ring.workers;
}

static bool shards_less(Choice c, Choice best)
{
    return c.shard < best.shard;
}

static bool shards_more(Choice c, Choice best)
{
    return c.shard > best.shard;
}

static bool prepares_less(Choice c, Choice best)
{
    return c.prepared < best.prepared;
}

static bool prepares_more(Choice c, Choice best)
{
    return c.prepared > best.prepared;
}

static bool any_other(const Chooser *s, const ChoiceTrial *best, Other *other)
{
    for (size_t i = 0; i < s->candidate.count; i++)
        if (!s->candidate.at[i].gone && other(s->candidate.at[i].choice, best->choice))
            return true;
    return false;
}

/* The first of two statements whose alternatives exist, with what they come to. */
static const char *state(const Chooser *s, const ChoiceTrial *best, Other *one, const char *if_one,
                         Other *two, const char *if_two)
{
    if (any_other(s, best, one))
        return arena_printf(best->arena, "%s %s", if_one, otherwise(s, best, one));
    if (any_other(s, best, two))
        return arena_printf(best->arena, "%s %s", if_two, otherwise(s, best, two));
    return NULL;
}

static bool has_several(Choice c, Choice best)
{
    return c.micro > 1 && c.micro < best.micro;
}

/* A default that the user did not set is marked as one. */
static const char *state_micro(const Chooser *s, const ChoiceTrial *best)
{
    if (!s->micro_open || best->choice.micro < 2)
        return state(s, best, has_fewer, "fewer", has_more, "more");
    const char *others = state(s, best, has_several, "fewer", has_more, "more");
    return arena_printf(best->arena, "without them nothing %s%s%s",
                        s->cut ? "was found that fits" : "fits", others ? "; " : "",
                        others ? others : "");
}

/* One that was asked for needs no reason. */
static const char *state_precision(const Chooser *s, const ChoiceTrial *best)
{
    return best->choice.precision == choice_asked(s->model, s->target, s->options).precision ? NULL
           : s->cut ? "without it nothing was found that fits"
                    : "without it nothing fits";
}

Reasons reasons_state(const Chooser *s, const ChoiceTrial *best)
{
    if (s->candidate.count == 1)
        return (Reasons){0};
    return (Reasons){
        .chunked_loss = state(s, best, is_stored, "logits are never stored: storing them",
                              is_chunked, "logits are stored: chunks"),
        .micro = state_micro(s, best),
        .shard = state(s, best, shards_less, "less", shards_more, "more"),
        .precision = state_precision(s, best),
        .prepared = state(s, best, prepares_more, "more", prepares_less, "less"),
        .ring = state(s, best, reads_further, "more threads", reads_ahead, "fewer threads"),
        .epilogues =
            state(s, best, has_fused, "elementwise ops run on their own: inside products they",
                  has_apart, "elementwise ops run inside products: on their own they")};
}
