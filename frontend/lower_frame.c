/* Names in lowering: what a name of the source is bound to, and what a layer is called.
 *
 * Every binding has a time. A block remembers the time of its declaration and sees of the frames
 * around it only what is older, as it was then; so a binding that a block may still look at is
 * kept when its name is bound again.
 */
#include "frontend/lower.h"

#include <ctype.h>
#include <string.h>

Frame *frame_new(Lower *l, Frame *parent, const Stmt *stmt, bool iteration)
{
    Frame *frame = ARENA_NEW(l->arena, Frame);
    frame->parent = parent;
    frame->stmt = stmt;
    frame->iteration = iteration;
    frame->time = UINT32_MAX;
    frame->home = iteration ? parent->home : frame;
    frame->suffix = "";
    if (iteration) {
        frame->again = parent->again;
        frame->depth = parent->depth;
    }
    return frame;
}

/* ---- Bindings ------------------------------------------------------------------------------- */

static Binding *find_in(const Frame *frame, const char *name)
{
    if (frame->table) {
        uint32_t at = names_find(frame->table, name);
        return at == UINT32_MAX ? NULL : &frame->binding.at[at];
    }
    for (size_t i = 0; i < frame->binding.count; i++)
        if (frame->binding.at[i].name == name)
            return &frame->binding.at[i];
    return NULL;
}

static const Binding *as_of(const Binding *binding, uint32_t time)
{
    while (binding && binding->time > time)
        binding = binding->older;
    return binding;
}

const Binding *frame_find(const Frame *frame, const char *name)
{
    uint32_t time = UINT32_MAX;
    for (; frame; frame = frame->parent) {
        const Binding *binding = as_of(find_in(frame, name), time);
        if (binding)
            return binding;
        if (frame->time < time)
            time = frame->time;
    }
    return NULL;
}

const Binding *frame_find_here(const Frame *frame, const char *name)
{
    const Binding *binding = find_in(frame, name);
    while (!binding && frame->iteration) {
        frame = frame->parent;
        binding = find_in(frame, name);
    }
    return binding;
}

static void add_binding(Lower *l, Frame *frame, Binding binding)
{
    size_t at = frame->binding.count;
    ARRAY_PUSH(l->arena, &frame->binding, binding);
    if (at == FEW_BINDINGS) {
        frame->table = names_new(l->arena);
        for (size_t i = 0; i < at; i++)
            *names_at(frame->table, frame->binding.at[i].name) = (uint32_t)i;
    }
    if (frame->table)
        *names_at(frame->table, binding.name) = (uint32_t)at;
}

/* A declaration needs a name that its block or model does not have yet; an assignment takes any
 * that is not fixed. */
static bool may_bind(Lower *l, const Frame *frame, Name name, BoundKind kind, const Binding *old)
{
    static const char *const fixed[] = {[BOUND_CONST] = "a const",
                                        [BOUND_DIM] = "a parameter of the model",
                                        [BOUND_INDEX] = "the index of a repeat"};
    if (kind == BOUND_INDEX || !old)
        return true;
    if (kind != BOUND_VALUE)
        lower_error(l, frame, name.span, "%s is declared twice", name.text);
    else if (old->kind >= BOUND_CONST)
        lower_error(l, frame, name.span, "%s is %s and cannot be bound again", name.text,
                    fixed[old->kind]);
    else
        return true;
    diag_note(l->diag, old->span, "%s is declared here", name.text);
    return false;
}

bool frame_bind(Lower *l, Frame *frame, Name name, BoundKind kind, Val val)
{
    if (is_spelt(name.text))
        return lower_error(l, frame, name.span, "only a param or a const has braces in its name");
    Frame *home = frame;
    while (kind != BOUND_INDEX && home->iteration && !find_in(home, name.text))
        home = home->parent;
    Binding *old = find_in(home, name.text);
    if (!may_bind(l, frame, name, kind, old))
        return false;
    Binding binding = {name.text, val, kind, name.span, ++l->time, NULL};
    if (!old) {
        add_binding(l, frame, binding);
        return true;
    }
    if (old->time < l->block_time) { /* a block may look at it */
        Binding *kept = ARENA_NEW(l->arena, Binding);
        *kept = *old;
        binding.older = kept;
    } else {
        binding.older = old->older;
    }
    *old = binding;
    return true;
}

void frame_end_iteration(Lower *l, Frame *frame)
{
    Frame *home = frame->home;
    if (home->lost.count < 64)
        for (size_t i = 0; i < frame->binding.count; i++)
            ARRAY_PUSH(l->arena, &home->lost, frame->binding.at[i]);
}

Block *frame_block(const Frame *frame, const char *name)
{
    uint32_t time = UINT32_MAX;
    for (; frame; frame = frame->parent) {
        for (size_t i = frame->block.count; i-- > 0;)
            if (frame->block.at[i].stmt->name.text == name && frame->block.at[i].time <= time)
                return &frame->block.at[i];
        if (frame->time < time)
            time = frame->time;
    }
    return NULL;
}

/* ---- Names that are not there --------------------------------------------------------------- */

typedef ARRAY(const char *) NameList;

static void collect(Lower *l, const Frame *frame, NameList *list, bool blocks)
{
    enum { ENOUGH = 2000 };
    for (; frame && list->count < ENOUGH; frame = frame->parent) {
        for (size_t i = 0; !blocks && i < frame->binding.count && list->count < ENOUGH; i++)
            if (frame->binding.at[i].val.kind != VAL_POISON)
                ARRAY_PUSH(l->arena, list, frame->binding.at[i].name);
        for (size_t i = 0; blocks && i < frame->block.count && list->count < ENOUGH; i++)
            ARRAY_PUSH(l->arena, list, frame->block.at[i].stmt->name.text);
    }
}

/* A binding that exists but is not seen: made after the block, or in a repeat that is over. */
static bool explain_unseen(Lower *l, const Frame *frame, const char *name)
{
    for (const Frame *f = frame; f; f = f->parent) {
        const Binding *binding = find_in(f, name);
        if (binding) {
            diag_note(l->diag, binding->span, "%s is bound here, after the block", name);
            diag_hint(l->diag, "a block sees what is defined before it; pass %s as an argument",
                      name);
            return true;
        }
        for (size_t i = 0; i < f->lost.count; i++)
            if (f->lost.at[i].name == name) {
                diag_note(l->diag, f->lost.at[i].span, "%s is bound here, in a repeat", name);
                diag_hint(l->diag, "bind it before the repeat to carry it out");
                return true;
            }
    }
    return false;
}

bool unknown_name(Lower *l, const Frame *frame, const char *name, Span span)
{
    lower_error(l, frame, span, "%s is not defined", name);
    if (explain_unseen(l, frame, name))
        return false;
    NameList list = {0};
    collect(l, frame, &list, false);
    const char *meant = suggest(name, list.at, list.count);
    if (meant) {
        const Binding *binding = frame_find(frame, meant);
        diag_hint(l->diag, "did you mean %s?", meant);
        if (binding)
            diag_note(l->diag, binding->span, "%s is defined here", meant);
    } else if (op_find(name) || frame_block(frame, name)) {
        diag_hint(l->diag, "%s is a function: call it, %s(...)", name, name);
    }
    return false;
}

static bool is_within(const Frame *frame, const char *block, Span *declared)
{
    for (; frame; frame = frame->parent)
        if (!frame->iteration && frame->stmt && frame->stmt->name.text == block) {
            *declared = frame->stmt->name.span;
            return true;
        }
    return false;
}

static const Stmt *find_block(const Stmts *body, const char *name)
{
    for (size_t i = 0; i < body->count; i++)
        if (body->at[i]->kind == STMT_BLOCK && body->at[i]->name.text == name)
            return body->at[i];
    return NULL;
}

bool unknown_op(Lower *l, const Frame *frame, const char *name, Span span)
{
    Span declared;
    if (is_within(frame, name, &declared)) {
        lower_error(l, frame, span, "block %s calls itself", name);
        diag_note(l->diag, declared, "it is declared here");
        diag_hint(l->diag, "repeat i in 0..n { x = %s(x) } calls it n times", name);
        return false;
    }
    const Binding *binding = frame_find(frame, name);
    if (binding) {
        if (binding->val.kind == VAL_POISON)
            return false;
        lower_error(l, frame, span, "%s is a value and cannot be called", name);
        diag_note(l->diag, binding->span, "it is bound here");
        return false;
    }
    lower_error(l, frame, span, "unknown op or block %s", name);
    const Stmt *below = find_block(&l->ast->body, name);
    if (below) {
        diag_note(l->diag, below->name.span, "block %s is declared here, further down", name);
        diag_hint(l->diag, "declare a block before it is called");
        return false;
    }
    NameList list = {0};
    collect(l, frame, &list, true);
    for (size_t i = 0; op_at(i); i++)
        if (!(op_at(i)->flags & OP_HIDDEN))
            ARRAY_PUSH(l->arena, &list, op_at(i)->name);
    const char *meant = suggest(name, list.at, list.count);
    if (meant)
        diag_hint(l->diag, "did you mean %s?", meant);
    return false;
}

/* ---- Names of layers ------------------------------------------------------------------------ */

static uint32_t count_up(Lower *l, Frame *frame, const char *name)
{
    Frame *home = frame->home;
    size_t count = home->counter.count;
    for (size_t i = 0; !home->counted && i < count; i++)
        if (strcmp(home->counter.at[i].name, name) == 0)
            return home->counter.at[i].count++;
    if (count == FEW_BINDINGS) {
        home->counted = names_new(l->arena);
        for (size_t i = 0; i < count; i++)
            *names_at(home->counted, home->counter.at[i].name) = (uint32_t)i;
    }
    if (home->counted) {
        uint32_t *at = names_at(home->counted, name);
        if (*at != UINT32_MAX)
            return home->counter.at[*at].count++;
        *at = (uint32_t)count;
    }
    ARRAY_PUSH(l->arena, &home->counter, (Counter){name, 1});
    return 0;
}

static const char *join(Lower *l, const Frame *frame, const char *name)
{
    const char *path = frame->home->path;
    return *path ? arena_printf(l->arena, "%s.%s", path, name) : name;
}

bool reserve_name(Lower *l, const char *name, Span span)
{
    uint32_t *used = names_at(l->used, name);
    if (*used != UINT32_MAX)
        return false;
    *used = (uint32_t)l->used_span.count;
    ARRAY_PUSH(l->arena, &l->used_span, span);
    return true;
}

static bool take(Lower *l, const Frame *frame, const char *name, Span span)
{
    return frame->again || reserve_name(l, name, span);
}

/* NAME.0, NAME.1, ...: the next that is free. */
static const char *next_of(Lower *l, Frame *frame, const char *name, const char *key,
                           bool bare_first, Span span)
{
    for (;;) {
        uint32_t n = count_up(l, frame, key);
        const char *local = n || !bare_first ? arena_printf(l->arena, "%s.%u", name, n) : name;
        const char *full = join(l, frame, local);
        if (take(l, frame, full, span))
            return full;
    }
}

static const char *take_given(Lower *l, Frame *frame, const char *given, Span span)
{
    const char *full = join(l, frame, arena_printf(l->arena, "%s%s", given, frame->suffix));
    if (take(l, frame, full, span))
        return full;
    lower_error(l, frame, span, "the name \"%s\" is taken", full);
    diag_note(l->diag, l->used_span.at[names_find(l->used, full)], "by this");
    diag_hint(l->diag, "names are the keys of parameters: each layer needs its own");
    return NULL;
}

/* NULL with a message where the name that was given is taken.
 * `keyed`: the name matters beyond reading well, since it makes parameters or random numbers. */
const char *layer_name(Lower *l, Frame *frame, const char *op, bool keyed, const Bound *bound,
                       const char *given, Span span)
{
    if (given)
        return take_given(l, frame, given, span);
    if (bound && bound->own) {
        const char *local = arena_printf(l->arena, "%s%s", bound->name, frame->suffix);
        const char *full = join(l, frame, local);
        if (take(l, frame, full, span))
            return full;
        return next_of(l, frame, local, local, true, span);
    }
    if (bound && !keyed) /* h = relu(h): h, h.1, h.2 */
        return next_of(l, frame, bound->name, arena_printf(l->arena, "=%s", bound->name), true,
                       span);
    return next_of(l, frame, op, op, false, span);
}

const char *block_path(Lower *l, Frame *frame, const char *block, const Bound *bound,
                       const char *given, Span span)
{
    if (given || (bound && bound->own))
        return layer_name(l, frame, block, true, bound, given, span);
    /* The first call has the block's own name, so that a second one changes nothing for it. */
    return next_of(l, frame, block, block, !frame->iteration, span);
}

bool is_spelt(const char *text)
{
    return strchr(text, SPELL_OPEN) != NULL;
}

/* Between braces: NUMBER * NAME + NUMBER, of which the name must be there. */
static bool spell_number(Lower *l, Frame *frame, const char **text, Span span, int64_t *number)
{
    char name[MAX_NAME + 1] = "";
    int length = 0, used = 0;
    long factor = 1, more = 0;
    if (sscanf(*text, "%9ld*%n", &factor, &used) != 1 || !used) {
        factor = 1;
        used = 0;
    }
    *text += used;
    while ((isalnum((unsigned char)**text) || **text == '_') && length < MAX_NAME)
        name[length++] = *(*text)++;
    name[length] = 0;
    used = 0;
    if (**text == '+' && sscanf(*text, "+%9ld%n", &more, &used) == 1)
        *text += used;
    const Binding *binding = NULL;
    for (const Frame *f = frame; f && !binding; f = f->iteration ? f->parent : NULL)
        if (f->iteration && strcmp(f->stmt->name.text, name) == 0)
            binding = frame_find(f, f->stmt->name.text);
    if (**text != SPELL_CLOSE || !binding || binding->val.kind != VAL_INT) {
        lower_error(l, frame, span, "braces in a name are for the index of a repeat around it");
        diag_hint(l->diag, "\"h.{i}.w\", \"{2*i+1}\"; a brace of the name is written \\{");
        return false;
    }
    ++*text;
    *number = factor * binding->val.integer + more;
    return true;
}

const char *spell(Lower *l, Frame *frame, const char *text, Span span)
{
    if (!is_spelt(text))
        return text;
    const char *full = "";
    while (*text) {
        size_t plain = strcspn(text, (char[]){SPELL_OPEN, 0});
        int64_t number = 0;
        full = arena_printf(l->arena, "%s%.*s", full, (int)plain, text);
        text += plain;
        if (!*text)
            break;
        text++;
        if (!spell_number(l, frame, &text, span, &number))
            return NULL;
        full = arena_printf(l->arena, "%s%lld", full, (long long)number);
    }
    uint32_t *at = names_at(l->spelt, full);
    if (*at == UINT32_MAX) {
        *at = (uint32_t)l->spelling.count;
        ARRAY_PUSH(l->arena, &l->spelling, full);
    }
    return l->spelling.at[*at];
}

const char *param_name(Lower *l, Frame *frame, const char *name, Span span)
{
    const char *full = join(l, frame, arena_printf(l->arena, "%s%s", name, frame->suffix));
    if (!take(l, frame, full, span))
        return next_of(l, frame, name, name, true, span);
    return full;
}
