/* The abstract memory of the replay: what was written where, what has been written over, what is
 * still to be read. */
#include "planner/check_replay.h"

void memory_put(Check *c, Id buffer, uint32_t time, bool persistent)
{
    const Buffer *b = &c->plan->buffer[buffer];
    Id id = (Id)c->content.count;
    Content content = {.buffer = buffer,
                       .value = b->value,
                       .written = time,
                       .last_read = time,
                       .covered = END,
                       .absorbed = END,
                       .around = NONE,
                       .spared = END,
                       .persistent = persistent};
    ARRAY_PUSH(c->arena, &c->content, content);
    c->latest[buffer] = id;
    lanes_add(&c->lanes, buffer, id);
}

/* The buffer holds the next version of a persistent value, in the same bytes. */
static bool replaces(const Check *c, Id buffer, const Content *content)
{
    Id value = c->plan->buffer[buffer].value;
    return value != NONE && content->value != NONE &&
           c->g->value.at[value].previous == content->value &&
           extents_same(&c->extents, buffer, content->buffer);
}

/* The buffer is a micro-batch's part of the output that the content is, before or after the part is
 * collected: all else of it stays, and the part itself is made again as it was. */
static bool is_part(const Check *c, Id buffer, const Content *content)
{
    Id value = c->plan->buffer[buffer].value;
    Id whole = value == NONE ? NONE : c->g->value.at[value].whole;
    return whole != NONE && content->value != NONE && !content->persistent &&
           (content->value == whole || c->g->value.at[content->value].previous == whole);
}

/* The outermost of the concat results that a content has become part of, or itself. */
static Id outermost(Check *c, Id id)
{
    Content *content = c->content.at;
    for (; content[id].around != NONE; id = content[id].around)
        if (content[content[id].around].around != NONE)
            content[id].around = content[content[id].around].around;
    return id;
}

/* A write through a buffer. A concat skips operands that are in their window already, with all that
 * is in them. */
typedef struct {
    Check *c;
    Id buffer;
    uint32_t time;
    bool spares;
} Write;

static bool survives(Id id, void *data)
{
    const Write *w = data;
    Check *c = w->c;
    Content *content = &c->content.at[id];
    bool useless = !content->persistent && c->read[content->buffer] < w->time;
    if (content->covered != END || useless)
        return false;
    if (!extents_overlap(&c->extents, w->buffer, content->buffer) ||
        is_part(c, w->buffer, content) ||
        (w->spares && c->content.at[outermost(c, id)].spared == w->time))
        return true;
    if (content->persistent && !replaces(c, w->buffer, content))
        return !check_fail(c, "step %u writes %s over %s, which is persistent", w->time,
                           check_name(c, w->buffer), check_name(c, content->buffer));
    content->covered = w->time;
    return false;
}

bool memory_cover(Check *c, Id buffer, uint32_t time, bool spares)
{
    Write write = {c, buffer, time, spares};
    lanes_visit(&c->lanes, buffer, survives, &write);
    return !c->error;
}

bool memory_holds(Check *c, Id buffer, uint32_t time)
{
    const Buffer *b = &c->plan->buffer[buffer];
    Id id = c->latest[buffer];
    if (id == NONE)
        return check_fail(c, "step %u reads %s before it is written", time, check_name(c, buffer));
    Content *content = &c->content.at[id];
    if (content->covered != END)
        return check_fail(c, "step %u reads %s, but step %u wrote over it", time,
                          check_name(c, buffer), content->covered);
    content->last_read = time;
    return content->value == b->value;
}

/* ---- How much is live -------------------------------------------------------------------------
 */

/* By step: where its program ends. Callers read outputs then, before another program begins. */
static const uint32_t *program_ends(const Check *c)
{
    uint32_t *end = ARENA_ARRAY(c->arena, uint32_t, c->plan->end + 1);
    for (int p = 0; p < PROGRAMS; p++) {
        const Program *program = &c->plan->program[p];
        for (Id i = 0; i < program->count; i++)
            end[program->begin + i] = program->begin + program->count;
    }
    return end;
}

/* Bytes of contents between the step that wrote them and the last that reads them. What a result
 * was written over or around is counted with the result from then on. */
LivePeak memory_live_peak(Check *c)
{
    int64_t *change = ARENA_ARRAY(c->arena, int64_t, c->plan->end + 2);
    const uint32_t *end = program_ends(c);
    bool *counted = ARENA_ARRAY(c->arena, bool, c->plan->buffers); /* every program finds them */
    for (size_t i = 0; i < c->content.count; i++) {
        const Content *content = &c->content.at[i];
        const Buffer *b = &c->plan->buffer[content->buffer];
        if (b->space != SPACE_ARENA)
            continue;
        const Value *value = content->value == NONE ? NULL : &c->g->value.at[content->value];
        if (value && ((check_is_version(c->g, content->value) &&
                       check_is_persistent(c->g, content->value)) ||
                      value->whole != NONE || value->fed))
            continue; /* the first version, the whole input or output, the ring is counted */
        if (content->persistent && counted[content->buffer])
            continue;
        counted[content->buffer] = content->persistent;
        uint32_t death = content->persistent ? c->plan->end : content->last_read + 1;
        if (death > content->covered && !content->persistent)
            death = content->covered;
        if (death > content->absorbed)
            death = content->absorbed;
        if (!content->persistent && death > end[content->written])
            death = end[content->written];
        change[content->persistent ? 0 : content->written] += (int64_t)b->bytes;
        change[death] -= (int64_t)b->bytes;
    }
    for (int p = 0; p < PROGRAMS; p++)
        for (Id i = 0; i < c->plan->program[p].count; i++) {
            Id workspace = c->plan->program[p].at[i].workspace;
            if (workspace == NONE)
                continue;
            change[c->plan->program[p].begin + i] += (int64_t)c->plan->buffer[workspace].bytes;
            change[c->plan->program[p].begin + i + 1] -= (int64_t)c->plan->buffer[workspace].bytes;
        }
    int64_t sum = 0, most = -1;
    uint32_t time = 0;
    for (uint32_t t = 0; t <= c->plan->end; t++) {
        sum += change[t];
        if (sum > most) {
            most = sum;
            time = t;
        }
    }
    return (LivePeak){(uint64_t)most, time};
}
