/* The largest value of a parameter with which the model fits the budget.
 *
 * Not every value makes a model: S/4 must divide, a table has its rows, a kernel its width. A value
 * with which the model cannot be lowered says nothing about memory, so the search goes from values
 * that can be lowered to such values only, and passes over what lies between. Values are taken to
 * need more the larger they are; that is not always so (workspace, micro-batches that divide), so
 * it looks a few values past the first that does not fit.
 */
#include "frontend/command/question.h"
#include "frontend/command/watch.h"

#include <string.h>

/* What a search with little effort gets of the one asked for, or of the default. */
enum { LITTLE_PART = 20, LITTLE = 50 };

/* Values in a row that cannot be lowered, after which there are taken to be no others; and values
 * past one that does not fit which are tried with little effort. */
enum { GAP = 512, PAST = 4 };

static const int64_t MOST = INT32_MAX;

typedef struct {
    const Question *q;
    const char *name;
    PlanOptions how;
    uint64_t effort; /* asked for */
    bool cut;        /* a plan was searched for less long than asked for */
    uint32_t micro;  /* micro-batches of the last plan that fits */
    bool floor;      /* what was last needed is a bound: nothing was searched */
} Trial;

/* A value that was planned. */
typedef struct {
    int64_t value; /* 0: none */
    uint64_t need; /* the smallest arena found, or a bound of it */
} Planned;

/* ---- One value ------------------------------------------------------------------------------ */

/* The smallest arena found, or what none is smaller than; UINT64_MAX: it cannot be planned at all.
 */
static uint64_t need(Trial *t, int64_t value)
{
    Arena *scratch = arena_new();
    PlanOptions how = t->how;
    how.seconds = plan_options(t->q->options).seconds; /* that are left */
    Model model = model_define(scratch, t->q->model, t->name, value);
    Built b = choose(&model, t->q->target, &how, diag_new(scratch, NULL, false));
    bool valid = b.plan && b.search.broken_hint == NONE;
    uint64_t bytes = valid ? b.plan->arena[SPACE_ARENA] : b.search.hopeless ? b.floor : UINT64_MAX;
    t->floor = b.search.hopeless;
    t->cut |= valid && b.search.cut && bytes > how.budget;
    if (bytes <= how.budget)
        t->micro = b.plan->program[PROGRAM_STEP].times;
    built_free(&b);
    arena_free(scratch);
    return bytes;
}

/* The first on the way from `from` to `end`, by steps of 1 or -1, that can be planned. */
static Planned first_valid(Trial *t, int64_t from, int64_t end, int64_t step)
{
    for (int64_t v = from, tried = 0; v != end && tried < GAP && !watch_stopped(); v += step) {
        uint64_t bytes = need(t, v);
        tried++;
        if (bytes != UINT64_MAX)
            return (Planned){v, bytes};
    }
    return (Planned){0, UINT64_MAX};
}

static Planned next_valid(Trial *t, int64_t from, int64_t end)
{
    return from < end ? first_valid(t, from, end, 1) : (Planned){0, UINT64_MAX};
}

static Planned valid_before(Trial *t, int64_t end)
{
    return end > 1 ? first_valid(t, end - 1, 0, -1) : (Planned){0, UINT64_MAX};
}

static bool fits(const Trial *t, Planned p)
{
    return p.need <= t->how.budget;
}

/* ---- All of them ---------------------------------------------------------------------------- */

/* low fits, or is 0; nothing that is valid from `high` on does. */
static int64_t bisect(Trial *t, int64_t low, int64_t high)
{
    while (high - low > 1 && !watch_stopped()) {
        int64_t middle = low + (high - low) / 2;
        Planned p = next_valid(t, middle, high);
        if (fits(t, p))
            low = p.value;
        else
            high = middle;
    }
    return low;
}

/* low fits, or is 0; grows from there by steps that double. */
static int64_t search_up(Trial *t, int64_t low)
{
    for (int64_t step = low > 8 ? low : 1; !watch_stopped(); step *= 2) {
        Planned p = low + step < MOST ? next_valid(t, low + step, MOST) : (Planned){0, UINT64_MAX};
        if (!fits(t, p))
            return bisect(t, low, low + step);
        low = p.value;
    }
    return low;
}

/* A larger one among the next few, with little effort. */
static int64_t look_past(Trial *t, int64_t value)
{
    int64_t found = 0;
    t->how.effort = t->effort ? (t->effort + LITTLE_PART - 1) / LITTLE_PART : LITTLE;
    for (int i = 0; i < PAST && !found && value && !watch_stopped(); i++) {
        Planned p = next_valid(t, value + 1, MOST);
        value = p.value;
        if (fits(t, p))
            found = value;
    }
    t->how.effort = t->effort;
    return found;
}

/* How far it is to the value at which the budget ends, on a line through two values. */
static int64_t step_from(const Trial *t, Planned low, Planned other)
{
    double bytes = (double)other.need - (double)low.need;
    double room = (double)t->how.budget - (double)low.need;
    double step = room * (double)(other.value - low.value) / bytes;
    return step >= 1 && step < (double)(MOST - low.value) ? (int64_t)step : 1;
}

/* From a value that fits to one above which nothing near does. Memory grows about as a line, so a
 * few values are enough. */
static void climb(Trial *t, Largest *l, Planned low)
{
    int64_t step = low.need ? step_from(t, low, (Planned){0, 0}) : 1;
    while (!watch_stopped()) {
        Planned p = next_valid(t, low.value + step, MOST);
        if (!fits(t, p) && step == 1) {
            l->next = p.value;
            l->need = p.need;
            l->floor = t->floor;
            p.value = look_past(t, p.value);
            p.need = p.value ? t->how.budget : UINT64_MAX;
        }
        if (fits(t, p)) {
            step = step_from(t, p, low);
            low = p;
            l->value = p.value;
        } else if (step == 1) {
            return;
        } else {
            int64_t nearer = p.value ? step_from(t, low, p) : 1;
            step = nearer < step / 2 ? nearer : step / 2;
        }
    }
}

Largest largest_value(const Question *q, const PlanOptions *how, const char *name, int64_t now,
                      bool sure)
{
    Trial t = {.q = q, .name = name, .how = *how};
    t.effort = t.how.effort;
    t.how.smallest = true;
    t.how.progress = NULL;
    t.how.effort = t.effort ? (t.effort + LITTLE_PART - 1) / LITTLE_PART : LITTLE;
    Planned here = {now, need(&t, now)};
    Largest l = {.least = here.need == UINT64_MAX ? 0 : now};
    if (fits(&t, here)) {
        l.value = search_up(&t, now);
    } else {
        Planned least = next_valid(&t, 1, MOST);
        l.least = least.value ? least.value : l.least;
        if (fits(&t, least))
            l.value = least.value < now ? bisect(&t, least.value, now) : search_up(&t, least.value);
    }
    t.how.effort = t.effort;
    Planned top = {l.value ? l.value : l.least, 0};
    top.need = top.value ? need(&t, top.value) : UINT64_MAX; /* with all of the effort */
    while (top.value && !watch_stopped() && !fits(&t, top))
        top = l.value ? valid_before(&t, top.value - top.value / 16) : (Planned){0, UINT64_MAX};
    l.value = fits(&t, top) || (l.value && watch_stopped()) ? top.value : 0;
    if (sure && l.value)
        climb(&t, &l, top);
    l.micro = t.micro;
    l.cut = t.cut || watch_stopped();
    return l;
}
