/* Equal layers at even distances, so that a program computes their addresses from the number of the
 * layer and needs no table of them.
 *
 * Requires: a packed plan. Leaves: the same buffers in the same arena; those that equal layers have
 * in common move to offsets with a constant stride where there is room for all of them. Columns of
 * such buffers are tried from those on that take most bytes for longest; what is in the way stays
 * where it is, so a second round may find room that the first one made. O(buffers) for each buffer
 * of a layer.
 */
#include "frontend/base/names.h"
#include "planner/internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEAST_LAYERS = 3,
    MAX_STRIDES = 8, /* of other columns that one may have as well */
    ROUNDS = 2,
    MOST_PAIRS = 1 << 14,        /* of places that give a stride */
    MOST_WORK = 20 * 1000 * 1000 /* buffers times buffers of layers */
};

/* A buffer of a layer. */
typedef struct {
    Id buffer;
    uint32_t column; /* its layers have the same name but for the number */
    int64_t layer;
} Member;

/* Members of successive layers. */
typedef struct {
    const Member *at;
    Id count;
    uint64_t bytes;
    double area; /* bytes times steps that its members live */
    bool even;
} Column;

typedef struct {
    uint64_t begin, end;
} Extent;

typedef struct {
    Arena *arena;
    Plan *plan;
    uint32_t align;
    const Id *root; /* those in the arena: what persists first */
    Id roots, persistent;
    const Extent *kept; /* the bytes of what persists, in order */
    Id keeps;
    ARRAY(Column) column;
    bool *lifted; /* by buffer: it lies nowhere for now */
    uint64_t step[MAX_STRIDES];
    int steps;
    ARRAY(uint64_t) spot; /* where columns without a stride are: workspaces share them */
    Id top;               /* the buffer that the arena ends with stays there */
} Evener;

static const Buffer *buffer_of(const Evener *e, const Column *c, Id i)
{
    return &e->plan->buffer[c->at[i].buffer];
}

/* ---- Columns -------------------------------------------------------------------------------- */

/* What a buffer is called: its value, or the result that the workspace is for. */
static const char **find_names(Arena *arena, const Plan *plan)
{
    const Graph *g = plan->graph;
    const char **name = ARENA_ARRAY(arena, const char *, plan->buffers);
    for (Id i = 0; i < plan->buffers; i++)
        if (plan->buffer[i].value != NONE)
            name[i] = g->value.at[plan->buffer[i].value].name;
    for (int p = 0; p < PROGRAMS; p++)
        for (Id i = 0; i < plan->program[p].count; i++) {
            const Occurrence *o = &plan->program[p].at[i];
            const Cluster *c = &plan->clusters->at[o->cluster];
            if (o->workspace != NONE && c->results)
                name[o->workspace] = g->value.at[plan->clusters->result[c->result]].name;
        }
    return name;
}

static int by_column(const void *a, const void *b)
{
    const Member *m = a, *n = b;
    if (m->column != n->column)
        return m->column < n->column ? -1 : 1;
    return (m->layer > n->layer) - (m->layer < n->layer);
}

static int by_area(const void *a, const void *b)
{
    const Column *m = a, *n = b;
    if (m->area != n->area)
        return m->area > n->area ? -1 : 1;
    return (m->at[0].buffer > n->at[0].buffer) - (m->at[0].buffer < n->at[0].buffer);
}

/* By the first number of their names, how often a value had a buffer before, and size. */
static Member *find_members(const Evener *e, Id *count)
{
    const Plan *plan = e->plan;
    const char **name = find_names(e->arena, plan);
    Member *member = ARENA_ARRAY(e->arena, Member, plan->buffers);
    NameTable *times = names_new(e->arena), *column = names_new(e->arena);
    *count = 0;
    for (Id k = e->persistent; k < e->roots; k++) {
        const Buffer *b = &plan->buffer[e->root[k]];
        const char *whole = name[e->root[k]];
        if (!whole || b->kind < BUFFER_ACTIVATION || e->root[k] == e->top)
            continue;
        const size_t at = strcspn(whole, "0123456789");
        const size_t digits = strspn(whole + at, "0123456789");
        if (digits == 0 || digits > 9)
            continue;
        uint32_t *seen =
            names_at(times, arena_printf(e->arena, "%s %u %u", whole, b->program, b->kind));
        *seen = *seen == UINT32_MAX ? 0 : *seen + 1;
        uint32_t *id = names_at(column, arena_printf(e->arena, "%.*s#%s %u %u %u %llu", (int)at,
                                                     whole, whole + at + digits, b->program,
                                                     b->kind, *seen, (unsigned long long)b->bytes));
        if (*id == UINT32_MAX)
            *id = *count;
        member[(*count)++] = (Member){e->root[k], *id, strtoll(whole + at, NULL, 10)};
    }
    if (*count)
        qsort(member, *count, sizeof *member, by_column);
    return member;
}

static void find_columns(Evener *e)
{
    Id count;
    const Member *member = find_members(e, &count);
    for (Id i = 0, from = 0; i <= count; i++) {
        if (i < count && i > from && member[i].column == member[i - 1].column &&
            member[i].layer == member[i - 1].layer + 1)
            continue;
        if (i - from >= LEAST_LAYERS) {
            const uint64_t bytes = e->plan->buffer[member[from].buffer].bytes;
            Column c = {.at = member + from, .count = i - from, .bytes = round_up(bytes, e->align)};
            for (Id k = 0; k < c.count; k++)
                c.area +=
                    (double)c.bytes * (buffer_of(e, &c, k)->death - buffer_of(e, &c, k)->birth);
            ARRAY_PUSH(e->arena, &e->column, c);
        }
        from = i;
    }
    if (e->column.count)
        qsort(e->column.at, e->column.count, sizeof *e->column.at, by_area);
}

/* ---- Strides -------------------------------------------------------------------------------- */

static void note_step(Evener *e, uint64_t step)
{
    int i = 0;
    while (i < e->steps && e->step[i] != step)
        i++;
    if (i == e->steps && e->steps < MAX_STRIDES)
        e->step[e->steps++] = step;
}

/* Strides wrap around: one of less than 0 is added as well. */
static bool is_even(Evener *e, const Column *c)
{
    const uint64_t step = buffer_of(e, c, 1)->offset - buffer_of(e, c, 0)->offset;
    for (Id i = 2; i < c->count; i++)
        if (buffer_of(e, c, i)->offset - buffer_of(e, c, i - 1)->offset != step)
            return false;
    if (step)
        note_step(e, step);
    return true;
}

static void find_even(Evener *e)
{
    e->steps = 0;
    e->spot.count = 0;
    for (size_t i = 0; i < e->column.count; i++)
        e->column.at[i].even = is_even(e, &e->column.at[i]);
}

static bool live_together(const Buffer *a, const Buffer *b)
{
    return a->birth < b->death && b->birth < a->death;
}

/* Whether two members live at once. */
static bool overlap_in_time(const Evener *e, const Column *c)
{
    for (Id i = 0; i < c->count; i++)
        for (Id k = 0; k < i; k++)
            if (live_together(buffer_of(e, c, i), buffer_of(e, c, k)))
                return true;
    return false;
}

/* ---- Room ----------------------------------------------------------------------------------- */

static int by_begin(const void *a, const void *b)
{
    const Extent *m = a, *n = b;
    return (m->begin > n->begin) - (m->begin < n->begin);
}

/* Joins extents that touch. */
static Id join(Extent *extent, Id count)
{
    Id made = 0;
    if (count)
        qsort(extent, count, sizeof *extent, by_begin);
    for (Id i = 0; i < count; i++) {
        if (made && extent[i].begin <= extent[made - 1].end) {
            if (extent[i].end > extent[made - 1].end)
                extent[made - 1].end = extent[i].end;
        } else {
            extent[made++] = extent[i];
        }
    }
    return made;
}

static Extent extent_of(const Evener *e, const Buffer *b)
{
    return (Extent){b->offset, b->offset + round_up(b->bytes, e->align)};
}

/* What a member of a column must keep off while it lives. */
typedef struct {
    const Extent *at;
    Id count;
} Room;

static Room find_room(const Evener *e, const Column *c, Id i, Arena *arena)
{
    const Buffer *own = buffer_of(e, c, i);
    Extent *taken = ARENA_ARRAY(arena, Extent, e->keeps + e->roots - e->persistent);
    Id count = e->keeps;
    memcpy(taken, e->kept, e->keeps * sizeof *taken);
    for (Id k = e->persistent; k < e->roots; k++) {
        const Buffer *b = &e->plan->buffer[e->root[k]];
        if (!live_together(own, b) || e->lifted[e->root[k]])
            continue;
        Id m = 0;
        while (m < c->count && c->at[m].buffer != e->root[k])
            m++;
        if (m == c->count) /* not of the column itself */
            taken[count++] = extent_of(e, b);
    }
    return (Room){taken, join(taken, count)};
}

static bool is_free(const Evener *e, Room room, uint64_t offset, uint64_t bytes)
{
    Id low = 0, high = room.count; /* the first extent that ends after the offset */
    while (low < high) {
        const Id middle = (low + high) / 2;
        if (room.at[middle].end <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    const uint64_t arena = e->plan->arena[SPACE_ARENA];
    return bytes <= arena && offset <= arena - bytes &&
           (low == room.count || room.at[low].begin >= offset + bytes);
}

/* ---- Moving --------------------------------------------------------------------------------- */

static bool fits(const Evener *e, const Column *c, const Room *room, uint64_t first, uint64_t step)
{
    for (Id i = 0; i < c->count; i++)
        if (!is_free(e, room[i], first + step * i, c->bytes))
            return false;
    return true;
}

static uint64_t free_bytes(const Evener *e, Room room)
{
    uint64_t bytes = e->plan->arena[SPACE_ARENA];
    for (Id k = 0; k < room.count; k++)
        bytes -= room.at[k].end - room.at[k].begin;
    return bytes;
}

/* Beside what one of the members keeps off. */
static bool find_beside(const Evener *e, const Column *c, const Room *room, Id member,
                        uint64_t step, uint64_t *first)
{
    for (Id k = 0; k <= room[member].count; k++) {
        *first = (k ? room[member].at[k - 1].end : 0) - step * member;
        if (fits(e, c, room, *first, step))
            return true;
    }
    return false;
}

/* Where the column begins with this stride: where one of its members is, or beside what those with
 * the least room keep off. */
static bool find_first(const Evener *e, const Column *c, const Room *room, uint64_t step,
                       uint64_t *first)
{
    Id narrow = 0;
    for (Id i = 0; i < c->count; i++) {
        *first = buffer_of(e, c, i)->offset - step * i;
        if (fits(e, c, room, *first, step))
            return true;
        narrow = free_bytes(e, room[i]) < free_bytes(e, room[narrow]) ? i : narrow;
    }
    return find_beside(e, c, room, narrow, step, first) ||
           find_beside(e, c, room, 0, step, first) ||
           find_beside(e, c, room, c->count - 1, step, first);
}

/* With the stride that is between two places, each beside what a member or the one after it keeps
 * off: of those with the least room. */
static bool find_stride(const Evener *e, const Column *c, const Room *room, uint64_t *first,
                        uint64_t *step)
{
    Id narrow = 0;
    for (Id i = 1; i + 1 < c->count; i++)
        if (free_bytes(e, room[i]) < free_bytes(e, room[narrow]))
            narrow = i;
    const Room own = room[narrow], next = room[narrow + 1];
    if ((uint64_t)own.count * next.count > MOST_PAIRS)
        return false;
    for (Id i = 0; i < own.count; i++)
        for (Id k = 0; k < next.count && is_free(e, own, own.at[i].end, c->bytes); k++) {
            *step = next.at[k].end - own.at[i].end;
            *first = own.at[i].end - *step * narrow;
            if (*step >= c->bytes && -*step >= c->bytes && fits(e, c, room, *first, *step))
                return true;
        }
    return false;
}

static void put_column(Evener *e, const Column *c, uint64_t first, uint64_t step)
{
    for (Id k = 0; k < c->count; k++)
        e->plan->buffer[c->at[k].buffer].offset = first + step * k;
    if (step)
        note_step(e, step);
}

static bool make_even(Evener *e, Column *c)
{
    Arena *arena = arena_new();
    Room *room = ARENA_ARRAY(arena, Room, c->count);
    uint64_t step[MAX_STRIDES + 4], first = 0;
    int steps = 0, i = 0;
    for (Id k = 0; k < c->count; k++)
        room[k] = find_room(e, c, k, arena);
    const bool together = overlap_in_time(e, c);
    for (size_t k = 0; k < e->spot.count && !together; k++)
        if (fits(e, c, room, e->spot.at[k], 0)) {
            put_column(e, c, e->spot.at[k], 0);
            arena_free(arena);
            return true;
        }
    if (!together)
        step[steps++] = 0;
    for (int k = 0; k < e->steps; k++)
        if (e->step[k] >= c->bytes && -e->step[k] >= c->bytes)
            step[steps++] = e->step[k];
    step[steps++] = c->bytes;
    step[steps++] = -c->bytes;
    while (i < steps && !find_first(e, c, room, step[i], &first))
        i++;
    if (i == steps && !find_stride(e, c, room, &first, &step[i]))
        i = -1;
    if (i >= 0)
        put_column(e, c, first, step[i]);
    if (i >= 0 && !step[i])
        ARRAY_PUSH(e->arena, &e->spot, first);
    arena_free(arena);
    return i >= 0;
}

/* A member alone: where it was, or in the first gap. */
static bool put_back(Evener *e, const Column *c, Id i)
{
    Arena *arena = arena_new();
    const Column one = {.at = c->at + i, .count = 1, .bytes = c->bytes};
    const Room room = find_room(e, &one, 0, arena);
    uint64_t offset = 0;
    const bool found = find_first(e, &one, &room, 0, &offset);
    if (found) {
        e->plan->buffer[c->at[i].buffer].offset = offset;
        e->lifted[c->at[i].buffer] = false;
    }
    arena_free(arena);
    return found;
}

/* All columns anew, none in the way of another. False where one does not fit at all. */
static bool lay_anew(Evener *e)
{
    for (size_t i = 0; i < e->column.count; i++)
        for (Id k = 0; k < e->column.at[i].count && !e->column.at[i].even; k++)
            e->lifted[e->column.at[i].at[k].buffer] = true;
    for (size_t i = 0; i < e->column.count; i++) {
        Column *c = &e->column.at[i];
        if (c->even)
            continue;
        if (!(c->even = make_even(e, c)))
            for (Id k = 0; k < c->count; k++)
                if (!put_back(e, c, k))
                    return false;
        for (Id k = 0; k < c->count; k++)
            e->lifted[c->at[k].buffer] = false;
    }
    return true;
}

/* Buffers that lie in others are where those are. */
static void follow_roots(Plan *plan)
{
    for (Id i = 0; i < plan->buffers; i++)
        plan->buffer[i].offset = plan->buffer[plan->buffer[i].root].offset;
}

static void find_roots(Evener *e)
{
    const Plan *plan = e->plan;
    Id *root = ARENA_ARRAY(e->arena, Id, plan->buffers);
    Extent *kept = ARENA_ARRAY(e->arena, Extent, plan->buffers);
    uint64_t end = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (Id i = 0; i < plan->buffers; i++) {
            const Buffer *b = &plan->buffer[i];
            const bool persists = b->birth == 0 && b->death >= plan->end;
            if (b->root != i || b->space != SPACE_ARENA || persists != (pass == 0))
                continue;
            root[e->roots++] = i;
            if (b->offset + b->bytes > end) {
                end = b->offset + b->bytes;
                e->top = i;
            }
        }
        if (pass == 0)
            e->persistent = e->roots;
    }
    for (Id k = 0; k < e->persistent; k++)
        kept[k] = extent_of(e, &plan->buffer[root[k]]);
    e->keeps = join(kept, e->persistent);
    e->kept = kept;
    e->root = root;
}

/* One column after the other, the others where they are. */
static void move_in_turn(Evener *e)
{
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < e->column.count; i++) {
            Column *c = &e->column.at[i];
            c->even = c->even || make_even(e, c);
        }
}

void even_layers(Plan *plan, uint32_t align)
{
    Evener e = {.arena = arena_new(), .plan = plan, .align = align, .top = NONE};
    uint64_t *offset = ARENA_ARRAY(e.arena, uint64_t, plan->buffers), work = 0;
    find_roots(&e);
    find_columns(&e);
    e.lifted = ARENA_ARRAY(e.arena, bool, plan->buffers);
    for (size_t i = 0; i < e.column.count; i++)
        work += (uint64_t)e.column.at[i].count * (e.roots - e.persistent);
    for (Id i = 0; i < plan->buffers; i++)
        offset[i] = plan->buffer[i].offset;
    find_even(&e);
    if (work <= MOST_WORK && !lay_anew(&e)) {
        memset(e.lifted, 0, plan->buffers * sizeof *e.lifted);
        for (Id i = 0; i < plan->buffers; i++)
            plan->buffer[i].offset = offset[i];
        find_even(&e);
        move_in_turn(&e);
    }
    follow_roots(plan);
    arena_free(e.arena);
}
