#include "planner/chain.h"
#include "planner/rematerialize.h"

#include <stdlib.h>
#include <string.h>

/* Visits of nodes for the policies of all classes; a block that would take more than is left stores
 * everything or its inputs alone. */
static const double MAX_VISITS = 2e8;

enum { MAX_POINTS = 128 };
static const double HUGE_COST = 1e300;

/* What a block drops, and the totals: bytes stored for the backward pass, seconds to make
 * the rest again. */
typedef struct {
    int64_t kept;
    double cost;
    const bool *dropped; /* by member of the block */
} Policy;

/* Blocks of one structure; each policy costs more by the byte saved than the one before it. */
typedef struct {
    RematId block; /* one of them */
    Policy *policy;
    size_t policies;
} Class;

/* A block goes on to the next of its policies. */
typedef struct {
    double price; /* seconds by the byte */
    RematId block, policy;
} Step;

struct Chain {
    const RematProblem *problem;
    Arena *arena;
    const RematId *block; /* by node */
    RematId blocks, back;
    RematId *member, *start; /* of block b: member[start[b] ... start[b + 1]), in order */
    bool *droppable, *free;  /* by value */
    bool *asked;             /* by node: the hints want it dropped */
    bool *dropped;           /* by node: of the schedule at hand */
    Again again;
    double visits;     /* that are left */
    RematId *class_of; /* by block */
    ARRAY(Class) class;
    ARRAY(Step) step;
    ARRAY(ChainPoint) point;
};

/* ---- What can be dropped -------------------------------------------------------------------- */

/* Values that are read in the forward pass only within the block that makes them. */
static void find_droppable(Chain *c)
{
    const RematProblem *p = c->problem;
    for (RematId v = 0; v < p->values; v++) {
        RematId n = p->value[v].node;
        c->droppable[v] = n != REMAT_NONE && n < c->back && c->block[n] != REMAT_NONE &&
                          !(p->value[v].flags & (REMAT_OUTPUT | REMAT_PINNED)) &&
                          !(p->node[n].flags & REMAT_ONCE);
    }
    for (RematId n = 0; n < p->nodes; n++)
        for (RematId i = 0; i < p->node[n].reads; i++) {
            RematId v = p->read[p->node[n].read + i];
            if (n > c->back)
                c->free[v] = true;
            else if (c->droppable[v] && c->block[p->value[v].node] != c->block[n])
                c->droppable[v] = false;
        }
    for (RematId v = 0; v < p->values; v++) {
        if (p->value[v].drop_at != REMAT_NONE)
            c->droppable[v] = c->asked[p->value[v].node] = true;
        c->free[v] &= !c->droppable[v];
    }
}

static bool may_drop(const Chain *c, RematId n)
{
    const RematNode *node = &c->problem->node[n];
    for (RematId v = node->value; v < node->value + node->values; v++)
        if (c->droppable[v])
            return true;
    return false;
}

/* ---- Blocks and their structure ------------------------------------------------------------- */

static void list_members(Chain *c)
{
    RematId nodes = c->problem->nodes;
    for (RematId n = 0; n < nodes; n++)
        if (c->block[n] != REMAT_NONE && c->block[n] >= c->blocks)
            c->blocks = c->block[n] + 1;
    c->start = ARENA_ARRAY(c->arena, RematId, c->blocks + 2);
    c->member = ARENA_ARRAY(c->arena, RematId, nodes);
    for (RematId n = 0; n < nodes; n++)
        if (c->block[n] != REMAT_NONE)
            c->start[c->block[n] + 2]++;
    for (RematId b = 0; b < c->blocks; b++)
        c->start[b + 2] += c->start[b + 1];
    for (RematId n = 0; n < nodes; n++)
        if (c->block[n] != REMAT_NONE)
            c->member[c->start[c->block[n] + 1]++] = n;
}

static uint64_t mix(uint64_t hash, uint64_t item)
{
    hash = (hash ^ item) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static uint64_t mix_bits(uint64_t hash, double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return mix(hash, bits);
}

/* Equal for blocks that differ in nothing but where they stand. */
static uint64_t structure(const Chain *c, RematId b, const RematId *place)
{
    const RematProblem *p = c->problem;
    uint64_t hash = c->start[b + 1] - c->start[b];
    for (RematId m = c->start[b]; m < c->start[b + 1]; m++) {
        RematId n = c->member[m];
        const RematNode *node = &p->node[n];
        hash = mix_bits(mix(hash, (uint64_t)node->workspace), node->cost);
        hash = mix(hash, (uint64_t)node->flags << 2 | (n > c->back) << 1 | c->asked[n]);
        for (RematId v = node->value; v < node->value + node->values; v++)
            hash = mix(mix(hash, (uint64_t)p->value[v].size), c->droppable[v]);
        for (RematId i = 0; i < node->reads; i++) {
            RematId v = p->read[node->read + i], from = p->value[v].node;
            if (from == REMAT_NONE || c->block[from] != b)
                hash = mix(mix(hash, (uint64_t)p->value[v].size), c->free[v]);
            else
                hash = mix(mix(hash, place[from]), v - p->node[from].value + 2);
        }
    }
    return hash;
}

typedef struct {
    uint64_t hash;
    RematId block;
} Hashed;

static int by_hash(const void *a, const void *b)
{
    const Hashed *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return (x->block > y->block) - (x->block < y->block);
}

static void find_classes(Chain *c)
{
    Hashed *hashed = ARENA_ARRAY(c->arena, Hashed, c->blocks);
    RematId *place = ARENA_ARRAY(c->arena, RematId, c->problem->nodes); /* within its block */
    c->class_of = ARENA_ARRAY(c->arena, RematId, c->blocks);
    for (RematId b = 0; b < c->blocks; b++)
        for (RematId m = c->start[b]; m < c->start[b + 1]; m++)
            place[c->member[m]] = m - c->start[b];
    for (RematId b = 0; b < c->blocks; b++)
        hashed[b] = (Hashed){structure(c, b, place), b};
    qsort(hashed, c->blocks, sizeof *hashed, by_hash);
    for (RematId i = 0; i < c->blocks; i++) {
        if (!i || hashed[i].hash != hashed[i - 1].hash)
            ARRAY_PUSH(c->arena, &c->class, (Class){.block = hashed[i].block});
        c->class_of[hashed[i].block] = (RematId)c->class.count - 1;
    }
}

/* ---- Policies of one block ------------------------------------------------------------------ */

typedef struct {
    Chain *chain;
    RematId first, members; /* chain->member[first ...] */
    ARRAY(Policy) trial;
    ARRAY(RematId) choice; /* nodes that may be dropped or not */
} Study;

/* The totals of the block for chain->dropped; an infinite cost where that breaks a rule. */
static Policy estimate(Study *s)
{
    Chain *c = s->chain;
    again_begin(&c->again);
    for (RematId m = s->first; m < s->first + s->members; m++)
        if (c->member[m] > c->back)
            again_visit(&c->again, c->member[m]);
    return (Policy){.kept = c->again.kept, .cost = c->again.broken ? HUGE_COST : c->again.cost};
}

static void try_order(Study *s, Policy policy)
{
    Chain *c = s->chain;
    if (policy.cost >= HUGE_COST)
        return;
    bool *dropped = ARENA_ARRAY(c->arena, bool, s->members);
    for (RematId m = 0; m < s->members; m++)
        dropped[m] = c->dropped[c->member[s->first + m]];
    policy.dropped = dropped;
    ARRAY_PUSH(c->arena, &s->trial, policy);
}

static void set_choices(Study *s, bool dropped)
{
    for (size_t i = 0; i < s->choice.count; i++)
        s->chain->dropped[s->choice.at[i]] = dropped;
}

/* From one end to the other, each time with the node that gives most for what it takes. */
static void walk_policies(Study *s, bool drop)
{
    bool *dropped = s->chain->dropped;
    set_choices(s, !drop);
    Policy now = estimate(s);
    try_order(s, now);
    for (RematId found = 0; found != REMAT_NONE;) {
        Policy best = now;
        double most = 0;
        found = REMAT_NONE;
        for (size_t i = 0; i < s->choice.count; i++) {
            RematId n = s->choice.at[i];
            if (dropped[n] == drop)
                continue;
            dropped[n] = drop;
            Policy next = estimate(s);
            dropped[n] = !drop;
            if (next.cost >= HUGE_COST)
                continue;
            double saved = (double)(now.kept - next.kept), dearer = next.cost - now.cost;
            double gain = drop ? saved / (dearer > 0 ? dearer : 1e-12)
                               : -dearer / (saved < 0 ? -saved : 1e-3);
            if (gain > most) {
                most = gain;
                best = next;
                found = n;
            }
        }
        if (found != REMAT_NONE) {
            dropped[found] = drop;
            now = best;
            try_order(s, now);
        }
    }
}

static int by_kept(const void *a, const void *b)
{
    const Policy *x = a, *y = b;
    if (x->kept != y->kept)
        return x->kept > y->kept ? -1 : 1;
    return (x->cost > y->cost) - (x->cost < y->cost);
}

static double price(const Policy *from, const Policy *to)
{
    return (to->cost - from->cost) / (double)(from->kept - to->kept);
}

/* The cheapest policy, and from there on those on the lower hull. */
static void keep_hull(Study *s, Class *class)
{
    Policy *at = s->trial.at;
    size_t count = 0;
    if (s->trial.count)
        qsort(at, s->trial.count, sizeof *at, by_kept);
    for (size_t i = 0; i < s->trial.count; i++) {
        while (count && at[count - 1].cost >= at[i].cost)
            count--;
        if (count && at[count - 1].kept == at[i].kept)
            continue;
        while (count > 1 && price(&at[count - 2], &at[count - 1]) >= price(&at[count - 1], &at[i]))
            count--;
        at[count++] = at[i];
    }
    class->policy = at;
    class->policies = count;
}

static void find_policies(Chain *c, Class *class)
{
    RematId first = c->start[class->block];
    Study s = {c, first, c->start[class->block + 1] - first, {0}, {0}};
    for (RematId m = first; m < first + s.members; m++) {
        RematId n = c->member[m];
        c->dropped[n] = c->asked[n];
        if (n < c->back && !c->asked[n] && may_drop(c, n))
            ARRAY_PUSH(c->arena, &s.choice, n);
    }
    double choices = (double)s.choice.count, visits = choices * choices * s.members;
    if (visits <= c->visits) {
        c->visits -= visits;
        walk_policies(&s, true);
        walk_policies(&s, false);
    }
    for (int all = 0; all < 2; all++) {
        set_choices(&s, all);
        try_order(&s, estimate(&s));
    }
    keep_hull(&s, class);
}

/* ---- Steps ---------------------------------------------------------------------------------- */

static int by_price(const void *a, const void *b)
{
    const Step *x = a, *y = b;
    if (x->price < y->price || x->price > y->price)
        return x->price < y->price ? -1 : 1;
    if (x->block != y->block)
        return x->block < y->block ? -1 : 1;
    return (x->policy > y->policy) - (x->policy < y->policy);
}

/* Of equal steps those of early blocks come first: what they store is stored longest. */
static void list_steps(Chain *c)
{
    for (RematId b = 0; b < c->blocks; b++) {
        const Class *class = &c->class.at[c->class_of[b]];
        for (size_t i = 1; i < class->policies; i++)
            ARRAY_PUSH(c->arena, &c->step,
                       (Step){price(&class->policy[i - 1], &class->policy[i]), b, (RematId)i});
    }
    if (c->step.count)
        qsort(c->step.at, c->step.count, sizeof *c->step.at, by_price);
}

static void stamp(Chain *c, RematId b, const Policy *policy)
{
    for (RematId m = c->start[b]; m < c->start[b + 1]; m++)
        c->dropped[c->member[m]] = policy->dropped[m - c->start[b]];
}

static void take_steps(Chain *c, size_t steps)
{
    memcpy(c->dropped, c->asked, c->problem->nodes * sizeof *c->dropped);
    for (RematId b = 0; b < c->blocks; b++)
        if (c->class.at[c->class_of[b]].policies)
            stamp(c, b, &c->class.at[c->class_of[b]].policy[0]);
    for (size_t i = 0; i < steps; i++) {
        const Step *step = &c->step.at[i];
        stamp(c, step->block, &c->class.at[c->class_of[step->block]].policy[step->policy]);
    }
}

RematSchedule chain_schedule(Chain *c, size_t point)
{
    take_steps(c, c->point.at[point].steps);
    RematSchedule now = again_run(&c->again);
    RematSchedule found = {ARENA_ARRAY(c->arena, RematId, now.count), now.count};
    memcpy(found.node, now.node, now.count * sizeof *now.node);
    return found;
}

/* Those that break no rule: what a block reads may be overwritten before it runs again. */
static void find_points(Chain *c)
{
    size_t steps = c->step.count, points = steps < MAX_POINTS ? steps : MAX_POINTS;
    for (size_t i = 0; i <= points && steps; i++) {
        ChainPoint point = {.steps = steps * i / points};
        take_steps(c, point.steps);
        RematSchedule now = again_run(&c->again);
        RematValuation is = remat_evaluate(c->problem, &now);
        point.peak = is.peak;
        point.cost = is.cost;
        if (is.valid)
            ARRAY_PUSH(c->arena, &c->point, point);
    }
}

const ChainPoint *chain_points(const Chain *c, size_t *count)
{
    *count = c->point.count;
    return c->point.at;
}

Chain *chain_new(const RematProblem *problem, const RematId *block, RematId back, Arena *arena)
{
    Chain *c = ARENA_NEW(arena, Chain);
    *c = (Chain){.problem = problem,
                 .arena = arena,
                 .block = block,
                 .back = back,
                 .visits = MAX_VISITS,
                 .droppable = ARENA_ARRAY(arena, bool, problem->values),
                 .free = ARENA_ARRAY(arena, bool, problem->values),
                 .asked = ARENA_ARRAY(arena, bool, problem->nodes),
                 .dropped = ARENA_ARRAY(arena, bool, problem->nodes),
                 .again = again_new(problem, back, arena)};
    find_droppable(c);
    list_members(c);
    find_classes(c);
    c->again.droppable = c->droppable;
    c->again.dropped = c->dropped;
    c->again.free = c->free;
    for (size_t i = 0; i < c->class.count; i++)
        find_policies(c, &c->class.at[i]);
    list_steps(c);
    find_points(c);
    return c->point.count ? c : NULL;
}
