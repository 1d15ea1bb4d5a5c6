/* When values stop being drawn: as soon as another is written over or around them.
 *
 * The values that lie in one root are taken by birth. Those that are still drawn stand by where
 * they begin, so one that is born finds those within it at once: near-linear, however many windows
 * a concat has.
 */
#include "codegen/picture.h"

#include <stdlib.h>

typedef struct {
    Id root, buffer;
    uint32_t birth;
    Id next; /* in its slot */
} Tenant;

/* What is drawn of one root: by slot, tenants that begin at one place. */
typedef struct {
    uint64_t *begin; /* by slot, ascending */
    Id slots;
    Id *first; /* by slot: a tenant, or NONE */
    Id *count; /* a tree over slots: node 1 has all, n is halved by 2n and 2n + 1 */
    Id leaves; /* a power of two */
} Drawn;

static int by_root(const void *a, const void *b)
{
    const Tenant *m = a, *n = b;
    if (m->root != n->root)
        return m->root < n->root ? -1 : 1;
    if (m->birth != n->birth)
        return m->birth < n->birth ? -1 : 1;
    return (m->buffer > n->buffer) - (m->buffer < n->buffer);
}

static int by_begin(const void *a, const void *b)
{
    uint64_t m = *(const uint64_t *)a, n = *(const uint64_t *)b;
    return (m > n) - (m < n);
}

static Drawn drawn_new(const Picture *p, Arena *arena, const Tenant *tenant, Id count)
{
    Drawn d = {.begin = ARENA_ARRAY(arena, uint64_t, count), .leaves = 1};
    for (Id i = 0; i < count; i++)
        d.begin[i] = p->life[tenant[i].buffer].begin;
    qsort(d.begin, count, sizeof *d.begin, by_begin);
    for (Id i = 0; i < count; i++)
        if (!d.slots || d.begin[d.slots - 1] != d.begin[i])
            d.begin[d.slots++] = d.begin[i];
    while (d.leaves < d.slots)
        d.leaves *= 2;
    d.first = ARENA_ARRAY(arena, Id, d.slots);
    d.count = ARENA_ARRAY(arena, Id, 2 * (size_t)d.leaves);
    for (Id i = 0; i < d.slots; i++)
        d.first[i] = NONE;
    return d;
}

/* The first slot that begins there or later. */
static Id find_slot(const Drawn *d, uint64_t begin)
{
    Id low = 0, high = d->slots;
    while (low < high) {
        Id middle = low + (high - low) / 2;
        *(d->begin[middle] < begin ? &low : &high) = d->begin[middle] < begin ? middle + 1 : middle;
    }
    return low;
}

static void change_count(Drawn *d, Id slot, Id by)
{
    for (Id n = d->leaves + slot; n; n /= 2)
        d->count[n] += by; /* wraps around for one less */
}

/* The first slot from there on that has a tenant; d->leaves: no slot. */
static Id next_slot(const Drawn *d, Id slot)
{
    if (slot >= d->leaves)
        return d->leaves;
    Id n = d->leaves + slot;
    if (d->count[n])
        return slot;
    for (;; n /= 2) {
        if (n == 1)
            return d->leaves;
        if (n % 2 == 0 && d->count[n + 1])
            break;
    }
    for (n++; n < d->leaves;)
        n = d->count[2 * n] ? 2 * n : 2 * n + 1;
    return n - d->leaves;
}

/* Ends every tenant within the one that is born, and removes those that have ended. */
static void end_within(Picture *p, Drawn *d, Tenant *tenant, Id born)
{
    const Life *later = &p->life[tenant[born].buffer];
    Id end = find_slot(d, later->begin + later->height);
    for (Id s = next_slot(d, find_slot(d, later->begin)); s < end; s = next_slot(d, s + 1))
        for (Id *link = &d->first[s]; *link != NONE;) {
            Life *life = &p->life[tenant[*link].buffer];
            bool within = later->birth > life->birth &&
                          life->begin + life->height <= later->begin + later->height;
            if (within && later->birth < life->end)
                life->end = later->birth;
            if (within || life->end <= later->birth) {
                *link = tenant[*link].next;
                change_count(d, s, (Id)-1);
            } else {
                link = &tenant[*link].next;
            }
        }
}

static void end_tenants(Picture *p, Tenant *tenant, Id count)
{
    Arena *arena = arena_new();
    Drawn d = drawn_new(p, arena, tenant, count);
    for (Id i = 0; i < count; i++) {
        if (is_drawn(p->plan, tenant[i].buffer))
            end_within(p, &d, tenant, i);
        Id slot = find_slot(&d, p->life[tenant[i].buffer].begin);
        tenant[i].next = d.first[slot];
        d.first[slot] = i;
        change_count(&d, slot, 1);
    }
    arena_free(arena);
}

void picture_ends(Picture *p)
{
    Id count = p->plan->buffers;
    Tenant *tenant = ARENA_ARRAY(p->arena, Tenant, count + 1);
    for (Id i = 0; i < count; i++) {
        tenant[i] = (Tenant){p->plan->buffer[i].root, i, p->life[i].birth, NONE};
        p->life[i].end = p->life[i].death;
        p->life[p->plan->buffer[i].root].shared |= p->plan->buffer[i].root != i;
    }
    qsort(tenant, count, sizeof *tenant, by_root);
    for (Id i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && tenant[end].root == tenant[i].root; end++)
            ;
        if (end - i > 1)
            end_tenants(p, &tenant[i], end - i);
    }
}
