/* Checks a plan file, whoever made it: the proof is plan_check's, as for every plan that gplan
 * makes; what the file says about itself is checked after it.
 *
 * Requires: JSON text. Leaves: a verdict, and the plan where it could be read.
 */
#include "codegen/plan_json.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    Arena *arena;
    PlanFile file;
    Plan *plan;
    const char *error;
} Verify;

static bool fail(Verify *v, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(Verify *v, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!v->error)
        v->error = arena_vprintf(v->arena, format, args);
    va_end(args);
    return false;
}

/* ---- What the file says about itself --------------------------------------------------------- */

static bool read_claims(Verify *v)
{
    static const char *const keys[] = {"bound", "floor", "persistent"};
    uint64_t *const to[] = {&v->plan->bound, &v->plan->floor, &v->plan->persistent};
    for (int i = 0; i < 3; i++)
        *to[i] = (uint64_t)json_integer_value(json_object_get(v->file.summary, keys[i]));
    return true;
}

static uint64_t round_up(uint64_t bytes, uint64_t align)
{
    return (bytes + align - 1) / align * align;
}

/* Bounds are the planner's word; that they bound this plan can be seen. */
static bool check_bounds(Verify *v, const Picture *p)
{
    uint64_t persistent = 0, end[SPACES] = {0};
    for (Id i = 0; i < v->plan->buffers; i++) {
        const Buffer *b = &v->plan->buffer[i];
        if (b->root != i || !space_planned[b->space])
            continue;
        if (b->space == SPACE_ARENA && b->kind <= BUFFER_DATA)
            persistent += round_up(b->bytes, v->file.target.align);
        if (b->offset + b->bytes > end[b->space])
            end[b->space] = b->offset + b->bytes;
    }
    for (Space space = 0; space < SPACES; space++)
        if (v->plan->arena[space] != round_up(end[space], v->file.target.align))
            return fail(v, "the %s has %llu bytes, but the last buffer ends at %llu",
                        space_names[space], (unsigned long long)v->plan->arena[space],
                        (unsigned long long)end[space]);
    if (v->file.budget && v->plan->arena[SPACE_ARENA] > v->file.budget)
        return fail(v, "the arena is larger than the budget");
    if (json_object_get(v->file.summary, "persistent") && v->plan->persistent != persistent)
        return fail(v, "summary: persistent must be %llu", (unsigned long long)persistent);
    if (json_object_get(v->file.summary, "bound") &&
        (v->plan->bound < p->peak || v->plan->bound > v->plan->arena[SPACE_ARENA]))
        return fail(v, "summary: no bound of this packing is %llu",
                    (unsigned long long)v->plan->bound);
    if (json_object_get(v->file.summary, "floor") &&
        (v->plan->floor < persistent || v->plan->floor > v->plan->arena[SPACE_ARENA]))
        return fail(v, "summary: no floor of this plan is %llu",
                    (unsigned long long)v->plan->floor);
    return true;
}

/* Everything in the summary follows from these tables. */
static bool check_summary(Verify *v, const Picture *p)
{
    json_t *found = summary_json(p), *summary = v->file.summary;
    for (void *at = json_object_iter(summary); at; at = json_object_iter_next(summary, at)) {
        const char *key = json_object_iter_key(at);
        const json_t *fact = json_object_get(found, key), *claim = json_object_iter_value(at);
        if (fact && !json_equal(fact, claim))
            fail(v, "summary: %s is not what the tables give", key);
        else if (!fact)
            fail(v, "summary: %s means nothing", key);
    }
    json_decref(found);
    return !v->error;
}

/* ---- All of it ------------------------------------------------------------------------------ */

static bool check_all(Verify *v)
{
    EmitOptions options = {.target = &v->file.target, .budget = v->file.budget};
    v->error = plan_check(v->plan, &v->file.target, &options.live_peak);
    if (v->error)
        return false;
    read_claims(v);
    const Picture *p = picture_make(v->plan, &options);
    return check_bounds(v, p) && check_summary(v, p);
}

const char *plan_verify(Arena *arena, Text text, Plan **plan)
{
    Verify v = {.arena = arena};
    json_error_t where;
    json_begin();
    *plan = NULL;
    json_t *json = json_loadb(text.text, text.length, JSON_REJECT_DUPLICATES, &where);
    if (!json)
        return arena_printf(arena, "this is no JSON: %s, line %d, column %d", where.text,
                            where.line, where.column);
    if (plan_read(arena, json, &v.file, &v.error)) {
        v.plan = v.file.plan;
        if (check_all(&v))
            *plan = v.plan;
    }
    json_decref(json);
    return v.error;
}
