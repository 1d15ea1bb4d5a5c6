/* The largest value of a parameter with which the model fits the budget.
 *
 * Not every value makes a model: S/4 must divide, a table has its rows, a kernel its width. A value
 * with which the model cannot be lowered says nothing about memory, so the search goes from values
 * that can be lowered to such values only, and passes over what lies between. Values are taken to
 * need more the larger they are; that is not always so (workspace, micro-batches that divide), so
 * it looks a few values past the first that does not fit.
 */
#include "frontend/command/attempt.h"
#include "frontend/command/watch.h"

#include <string.h>

/* What a search with little effort gets of the one asked for, or of the default. */
enum { LITTLE_PART = 20, LITTLE = 50 };

/* Values in a row that cannot be lowered, after which there are taken to be no others; and values
 * past one that does not fit which are tried with little effort. */
enum { GAP = 512, PAST = 4 };

static const int64_t MOST = INT32_MAX;

typedef struct {
    const Subject *s;
    const char *name;
    PlanOptions how;
    uint64_t effort; /* asked for */
    bool cut;        /* a plan was searched for less long than asked for */
} Trial;

/* ---- One value ------------------------------------------------------------------------------ */

static bool is_valid(const Trial *t, int64_t value)
{
    const Options *o = t->s->options;
    Lowered model =
        lower_again(t->s, t->name, value, (Choice){o->accumulate, o->slices == WHEN_ALWAYS, false});
    bool valid = model.graph != NULL;
    lowered_free(&model);
    return valid;
}

/* The first from there on, below `end`, that is valid; 0: there is none near. */
static int64_t next_valid(const Trial *t, int64_t from, int64_t end)
{
    for (int64_t v = from; v < end && v - from < GAP && !watch_stopped(); v++)
        if (is_valid(t, v))
            return v;
    return 0;
}

static int64_t valid_before(const Trial *t, int64_t end)
{
    for (int64_t v = end - 1; v > 0 && end - v <= GAP && !watch_stopped(); v--)
        if (is_valid(t, v))
            return v;
    return 0;
}

/* The smallest arena found; UINT64_MAX: it cannot be planned at all. */
static uint64_t need(Trial *t, int64_t value)
{
    PlanOptions how = t->how;
    how.seconds = plan_options(t->s->options).seconds; /* that are left */
    Candidates from = list_candidates(t->s, t->name, value, 1);
    Outcome o = attempt_best(t->s, t->name, value, &from, &how);
    uint64_t bytes = o.valid ? o.arena : UINT64_MAX;
    t->cut |= o.valid && o.plan->cut && bytes > how.budget;
    outcome_drop(&o);
    return bytes;
}

static bool fits(Trial *t, int64_t value)
{
    return need(t, value) <= t->how.budget;
}

/* ---- All of them ---------------------------------------------------------------------------- */

/* low fits, or is 0; nothing that is valid from `high` on does. */
static int64_t bisect(Trial *t, int64_t low, int64_t high)
{
    while (high - low > 1 && !watch_stopped()) {
        int64_t middle = low + (high - low) / 2, value = next_valid(t, middle, high);
        if (value && fits(t, value))
            low = value;
        else
            high = middle;
    }
    return low;
}

/* low fits, or is 0; grows from there by steps that double. */
static int64_t search_up(Trial *t, int64_t low)
{
    for (int64_t step = low > 8 ? low : 1; !watch_stopped(); step *= 2) {
        int64_t value = low + step < MOST ? next_valid(t, low + step, MOST) : 0;
        if (!value || !fits(t, value))
            return bisect(t, low, low + step);
        low = value;
    }
    return low;
}

/* A larger one among the next few, with little effort. */
static int64_t look_past(Trial *t, int64_t value)
{
    int64_t found = 0;
    t->how.effort = t->effort ? (t->effort + LITTLE_PART - 1) / LITTLE_PART : LITTLE;
    for (int i = 0; i < PAST && !found && value && !watch_stopped(); i++) {
        value = next_valid(t, value + 1, MOST);
        if (value && fits(t, value))
            found = value;
    }
    t->how.effort = t->effort;
    return found;
}

/* From a value that fits to one above which nothing near does. */
static void climb(Trial *t, Largest *l)
{
    for (int64_t step = 1; !watch_stopped();) {
        int64_t value = next_valid(t, l->value + step, MOST);
        uint64_t bytes = value ? need(t, value) : UINT64_MAX;
        if (bytes > t->how.budget && step == 1) {
            l->next = bytes == UINT64_MAX ? 0 : value;
            l->need = bytes;
            value = look_past(t, value);
            bytes = value ? 0 : UINT64_MAX;
        }
        if (bytes <= t->how.budget) {
            l->value = value;
            step *= 2;
        } else if (step == 1) {
            return;
        } else {
            step /= 2;
        }
    }
}

static int64_t value_now(const Subject *s, const char *name)
{
    for (size_t i = 0; i < s->graph->dimension.count; i++)
        if (strcmp(s->graph->dimension.at[i].name, name) == 0)
            return s->graph->dimension.at[i].value;
    return 1;
}

Largest largest_value(const Subject *s, const char *name, bool sure)
{
    Trial t = {.s = s, .name = name, .how = plan_options(s->options)};
    int64_t now = value_now(s, name);
    Largest l = {.least = is_valid(&t, now) ? now : 0};
    t.effort = t.how.effort;
    t.how.smallest = true;
    t.how.progress = NULL;
    t.how.effort = t.effort ? (t.effort + LITTLE_PART - 1) / LITTLE_PART : LITTLE;
    if (l.least && fits(&t, now)) {
        l.value = search_up(&t, now);
    } else {
        int64_t least = next_valid(&t, 1, MOST);
        l.least = least ? least : l.least;
        if (least && fits(&t, least))
            l.value = least < now ? bisect(&t, least, now) : search_up(&t, least);
    }
    t.how.effort = t.effort;
    if (!l.value && l.least && fits(&t, l.least)) /* with all of the effort it may */
        l.value = l.least;
    while (l.value && !watch_stopped() && !fits(&t, l.value))
        l.value = valid_before(&t, l.value - l.value / 16);
    if (sure && l.value)
        climb(&t, &l);
    l.cut = t.cut || watch_stopped();
    return l;
}
