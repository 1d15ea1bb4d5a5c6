/* The arguments of a call -> the operands and settings of the op's row.
 *
 * By position, tensors fill the row's tensors in order and numbers its settings in order; where no
 * setting is left a number is an operand: pow(x, 2). A word goes to the setting that knows it.
 */
#include "frontend/lower.h"

#include <math.h>
#include <string.h>

typedef struct {
    Lower *l;
    Frame *frame;
    Call *c;
    Given filled[MAX_ARGS]; /* what each argument of the row was given */
    bool has[MAX_ARGS];
    bool tensor_seen;
    ARRAY(Given) variadic;
} Binder;

int word_place(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (int i = 0; words && *words; i++) {
        size_t span = strcspn(words, " ");
        if (span == length && memcmp(words, word, span) == 0)
            return i;
        words += span + strspn(words + span, " ");
    }
    return -1;
}

bool word_known(const char *word)
{
    if (strcmp(word, "none") == 0)
        return true;
    for (size_t i = 0; op_at(i); i++)
        for (int j = 0; j < MAX_ARGS && op_at(i)->args[j].name; j++)
            if (op_at(i)->args[j].kind != ARG_TENSOR &&
                word_place(op_at(i)->args[j].words, word) >= 0)
                return true;
    return false;
}

/* ---- Messages ------------------------------------------------------------------------------- */

static bool show_signature(Binder *b)
{
    diag_hint(b->l->diag, "%s", op_signature(b->l->arena, b->c->op));
    return false;
}

static const char *wanted(Arena *arena, const Arg *arg)
{
    static const char *const kinds[] = {[ARG_TENSOR] = "a tensor",
                                        [ARG_INT] = "an integer",
                                        [ARG_INTS] = "an integer or a list of them",
                                        [ARG_FLOAT] = "a number",
                                        [ARG_BOOL] = "true or false",
                                        [ARG_WORD] = "one of",
                                        [ARG_STRING] = "a string"};
    if (arg->flags & ARG_FRACTION)
        return "a number or a list of integers";
    if (!arg->words || arg->kind == ARG_TENSOR)
        return kinds[arg->kind];
    const char *text = "";
    int words = 0;
    for (const char *at = arg->words; *at; words++) {
        int span = (int)strcspn(at, " ");
        text = arena_printf(arena, "%s%s%.*s", text, words ? ", " : "", span, at);
        at += span;
        at += strspn(at, " ");
    }
    if (arg->kind == ARG_WORD)
        return arena_printf(arena, "one of %s", text);
    return arena_printf(arena, "%s%s%s", kinds[arg->kind], words > 1 ? ", or one of " : " or ",
                        text);
}

/* The word of the argument that was probably meant, or NULL. */
static const char *suggest_word(Arena *arena, const Arg *arg, const char *text)
{
    const char *word[32];
    size_t words = 0;
    for (const char *at = arg->words; *at && words < 32; at += strspn(at, " ")) {
        size_t span = strcspn(at, " ");
        word[words++] = arena_copy(arena, at, span);
        at += span;
    }
    return suggest(text, word, words);
}

static bool wrong_kind(Binder *b, const Arg *arg, const Given *given)
{
    Lower *l = b->l;
    lower_error(l, b->frame, given->span, "%s: %s must be %s, not %s", b->c->op->name, arg->name,
                wanted(l->arena, arg), val_text(l, given->val));
    if (given->val.kind == VAL_WORD && arg->words) {
        const char *meant = suggest_word(l->arena, arg, given->val.text);
        if (meant)
            diag_hint(l->diag, "did you mean %s?", meant);
    } else if (given->val.kind == VAL_WORD) {
        const Binding *binding = frame_find(b->frame, given->val.text);
        if (!binding)
            diag_hint(l->diag, "%s is not defined here", given->val.text);
    }
    return false;
}

static bool unknown_argument(Binder *b, const Given *given)
{
    const char *name[MAX_ARGS + 1] = {"name"};
    size_t names = 1;
    const OpRow *op = b->c->op;
    for (int i = 0; i < MAX_ARGS && op->args[i].name; i++)
        if (!(op->args[i].flags & ARG_HIDDEN))
            name[names++] = op->args[i].name;
    lower_error(b->l, b->frame, given->name.span, "%s has no argument %s", op->name,
                given->name.text);
    const char *meant = suggest(given->name.text, name, names);
    if (meant)
        diag_hint(b->l->diag, "did you mean %s?", meant);
    return show_signature(b);
}

/* ---- Which argument is meant ---------------------------------------------------------------- */

static bool is_setting(const Arg *arg)
{
    return arg->kind != ARG_TENSOR && !(arg->flags & ARG_HIDDEN);
}

static bool takes(const Arg *arg, Val val)
{
    switch (val.kind) {
    case VAL_INT:
        return arg->kind == ARG_INT || arg->kind == ARG_INTS || arg->kind == ARG_FLOAT;
    case VAL_FLOAT:
        return arg->kind == ARG_INT || arg->kind == ARG_INTS || arg->kind == ARG_FLOAT;
    case VAL_LIST:
        return arg->kind == ARG_INTS;
    case VAL_BOOL:
        return arg->kind == ARG_BOOL;
    case VAL_WORD:
        return word_place(arg->words, val.text) >= 0;
    default:
        return false;
    }
}

static int next_setting(const Binder *b, Val val)
{
    const OpRow *op = b->c->op;
    if (op->args[0].kind == ARG_TENSOR && !b->tensor_seen)
        return -1; /* max(0, x) is no way to name an axis */
    for (int i = 0; i < MAX_ARGS && op->args[i].name; i++)
        if (is_setting(&op->args[i]) && !b->has[i] && takes(&op->args[i], val))
            return i;
    return -1;
}

static int next_tensor(const Binder *b, bool literal)
{
    const OpRow *op = b->c->op;
    bool lone = op->args[1].kind != ARG_TENSOR || !op->args[1].name;
    if (literal && lone)
        return -1; /* the op has one tensor, and a number is not a tensor */
    for (int i = 0; i < MAX_ARGS && op->args[i].name; i++) {
        if (op->args[i].kind != ARG_TENSOR || (literal && op->args[i].flags & ARG_PARAM))
            continue;
        if (!b->has[i] || op->args[i].flags & ARG_VARIADIC)
            return i;
    }
    return -1;
}

static bool is_tensors(Val val)
{
    for (uint32_t i = 0; i < val.count; i++)
        if (val.item[i].kind != VAL_TENSOR)
            return false;
    return val.kind == VAL_TUPLE || (val.kind == VAL_LIST && val.count);
}

static int choose(const Binder *b, Val val)
{
    if (val.kind == VAL_TENSOR || is_tensors(val))
        return next_tensor(b, false);
    int setting = next_setting(b, val);
    if (setting < 0 && val_is_number(val))
        return next_tensor(b, true);
    if (setting < 0 && val.kind == VAL_WORD && strcmp(val.text, "none") == 0)
        return next_tensor(b, false);
    return setting;
}

/* Whether a tensor that the op cannot do without is still to come. */
static bool lacks_tensor(const Binder *b)
{
    const OpRow *op = b->c->op;
    for (int i = 0; i < MAX_ARGS && op->args[i].name; i++)
        if (op->args[i].kind == ARG_TENSOR && !b->has[i] &&
            !(op->args[i].flags & (ARG_OPTIONAL | ARG_PARAM)))
            return true;
    return false;
}

/* A word that no argument takes: a misspelt setting, or a name that nothing is bound to. */
static bool unknown_word(Binder *b, const Given *given)
{
    const OpRow *op = b->c->op;
    const Arg *first = NULL;
    for (int i = 0; i < MAX_ARGS && op->args[i].name; i++) {
        const Arg *arg = &op->args[i];
        if (!is_setting(arg) || !arg->words || b->has[i])
            continue;
        first = first ? first : arg;
        if (suggest_word(b->l->arena, arg, given->val.text))
            return wrong_kind(b, arg, given);
    }
    return first && !lacks_tensor(b) ? wrong_kind(b, first, given)
                                     : unknown_name(b->l, b->frame, given->val.text, given->span);
}

static bool too_many(Binder *b, const Given *given)
{
    const OpRow *op = b->c->op;
    if (given->val.kind == VAL_WORD)
        return unknown_word(b, given);
    bool first = op->args[0].kind == ARG_TENSOR && !b->tensor_seen;
    if (first && given->val.kind != VAL_TENSOR) {
        wrong_kind(b, &op->args[0], given);
        if (op->elementwise && val_is_number(given->val))
            diag_hint(b->l->diag, "%s(a, b) works on each element", op->elementwise);
        return show_signature(b);
    }
    lower_error(b->l, b->frame, given->span, "%s does not take %s", op->name,
                given->val.kind == VAL_TENSOR ? "a further tensor" : val_text(b->l, given->val));
    return show_signature(b);
}

/* ---- Settings ------------------------------------------------------------------------------- */

static bool set_list(Binder *b, const Arg *arg, const Given *given, Attr *attr)
{
    Val val = given->val;
    bool fixed = arg->count > 0 && arg->count < MAX_RANK;
    bool fits = fixed ? val.count && arg->count % val.count == 0 : val.count <= MAX_RANK;
    if (!fits) {
        lower_error(b->l, b->frame, given->span, "%s: %s takes %s%d numbers, not %u",
                    b->c->op->name, arg->name, fixed ? "" : "at most ",
                    fixed ? arg->count : MAX_RANK, val.count);
        return false;
    }
    attr->count = fixed ? arg->count : (uint8_t)val.count;
    for (uint32_t i = 0; i < attr->count; i++) {
        const Val *item = &val.item[i % val.count]; /* pad = [1, 2]: begins, and ends alike */
        if (item->kind != VAL_INT) {
            lower_error(b->l, b->frame, given->span, "%s: %s takes integers, not %s",
                        b->c->op->name, arg->name, val_text(b->l, *item));
            return false;
        }
        attr->list[i] = item->integer;
    }
    attr->number = attr->count ? (double)attr->list[0] : 0;
    return true;
}

static void set_number(Val val, Attr *attr)
{
    attr->number = val_number(val);
    attr->count = 1;
    if (val.kind != VAL_FLOAT)
        attr->list[0] = val.integer;
}

static bool set_word(const Arg *arg, const char *word, Attr *attr)
{
    int span = word_place(arg->words, word);
    if (span < 0)
        return false;
    attr->is_word = true;
    attr->number = span;
    attr->list[0] = span;
    attr->count = arg->kind != ARG_INTS;
    return true;
}

static bool set(Binder *b, int i, const Given *given)
{
    const Arg *arg = &b->c->op->args[i];
    Val val = given->val;
    Attr attr = {.given = true};
    if (val.kind == VAL_WORD && arg->fallback && strcmp(val.text, arg->fallback) == 0) {
        b->c->attr[i].given = true; /* the default, spelt out */
        return true;
    }
    bool good = false;
    if (val.kind == VAL_WORD)
        good = set_word(arg, val.text, &attr);
    else if (arg->kind == ARG_INTS && (val.kind == VAL_INT || val.kind == VAL_LIST)) {
        Given one = *given;
        if (val.kind == VAL_INT)
            one.val = (Val){.kind = VAL_LIST, .count = 1, .item = &given->val};
        if (!set_list(b, arg, &one, &attr))
            return false;
        good = true;
    } else if (arg->flags & ARG_FRACTION && val.kind == VAL_FLOAT) {
        attr.number = val_number(val);
        good = true;
    } else if ((arg->kind == ARG_INT && val.kind == VAL_INT) ||
               (arg->kind == ARG_FLOAT && (val.kind == VAL_INT || val.kind == VAL_FLOAT)) ||
               (arg->kind == ARG_BOOL && val.kind == VAL_BOOL)) {
        set_number(val, &attr);
        good = true;
    }
    if (!good)
        return wrong_kind(b, arg, given);
    b->c->attr[i] = attr;
    return true;
}

/* ---- Operands ------------------------------------------------------------------------------- */

static bool operand(Binder *b, const Arg *arg, const Given *given, Use *use)
{
    Val val = given->val;
    *use = (Use){NONE, NONE};
    bool none = val.kind == VAL_WORD && strcmp(val.text, "none") == 0;
    if (none && arg->flags & ARG_PARAM) { /* left out, it would be made */
        lower_error(b->l, b->frame, given->span, "%s: %s cannot be none", b->c->op->name,
                    arg->name);
        if (op_arg(b->c->op, "bias") >= 0 && arg->flags & ARG_OPTIONAL)
            diag_hint(b->l->diag, "bias = false leaves it out");
        return false;
    }
    if (none && arg->flags & ARG_OPTIONAL)
        return true;
    if (val.kind == VAL_TENSOR)
        *use = val.use;
    else if (val_is_number(val) && !(arg->flags & ARG_PARAM))
        *use = literal_of(b->l, val);
    else
        return wrong_kind(b, arg, given);
    return true;
}

static bool add_operands(Binder *b, int i, const Given *given, size_t count)
{
    Lower *l = b->l;
    for (size_t k = 0; k < count; k++) {
        Val val = given[k].val;
        uint32_t items = is_tensors(val) ? val.count : 1;
        for (uint32_t j = 0; j < items; j++) {
            Given one = given[k];
            one.val = is_tensors(val) ? val.item[j] : val;
            Use use;
            if (!operand(b, &b->c->op->args[i], &one, &use))
                return false;
            call_use(l->g, b->c, use);
        }
    }
    return true;
}

static bool bind_operands(Binder *b)
{
    Call *c = b->c;
    const OpRow *op = c->op;
    c->use_span = ARENA_ARRAY(b->l->arena, Span, MAX_ARGS);
    for (int i = 0; i < MAX_ARGS && op->args[i].name; i++) {
        if (op->args[i].kind != ARG_TENSOR)
            continue;
        if (op->args[i].flags & ARG_VARIADIC) {
            c->use_span = NULL; /* of any number: the call's own place will do */
            return add_operands(b, i, b->variadic.at, b->variadic.count);
        }
        Use use = {NONE, NONE};
        if (b->has[i] && !operand(b, &op->args[i], &b->filled[i], &use))
            return false;
        c->use_span[c->use.count] = b->filled[i].span;
        call_use(b->l->g, c, use);
    }
    return true;
}

static bool check_missing(Binder *b)
{
    const OpRow *op = b->c->op;
    for (int i = 0; i < MAX_ARGS && op->args[i].name; i++) {
        const Arg *arg = &op->args[i];
        bool optional = arg->kind == ARG_TENSOR ? arg->flags & (ARG_OPTIONAL | ARG_PARAM)
                                                : arg->fallback || arg->flags & ARG_HIDDEN;
        if (b->has[i] || optional)
            continue;
        lower_error(b->l, b->frame, b->c->span, "%s needs %s, %s", op->name, arg->name,
                    wanted(b->l->arena, arg));
        return show_signature(b);
    }
    return true;
}

static bool place_argument(Binder *b, const Given *given)
{
    const OpRow *op = b->c->op;
    int i = given->name.text ? op_arg(op, given->name.text) : choose(b, given->val);
    if (given->name.text && (i < 0 || op->args[i].flags & ARG_HIDDEN))
        return unknown_argument(b, given);
    if (i < 0)
        return too_many(b, given);
    if (op->args[i].flags & ARG_VARIADIC) {
        ARRAY_PUSH(b->l->arena, &b->variadic, *given);
    } else if (b->has[i]) {
        lower_error(b->l, b->frame, given->span, "%s: %s is given twice", op->name,
                    op->args[i].name);
        diag_note(b->l->diag, b->filled[i].span, "first here");
        return false;
    }
    b->tensor_seen |= op->args[i].kind == ARG_TENSOR;
    b->has[i] = true;
    b->filled[i] = *given;
    return op->args[i].kind == ARG_TENSOR || set(b, i, given);
}

bool bind_arguments(Lower *l, Frame *frame, Call *c, const Given *given, size_t count)
{
    Binder bound = {.l = l, .frame = frame, .c = c}, *b = &bound;
    /* Names first, so that positional arguments fill the rest. */
    for (size_t i = 0; i < count; i++)
        if (given[i].name.text && !place_argument(b, &given[i]))
            return false;
    b->tensor_seen = b->has[0];
    for (size_t i = 0; i < count; i++)
        if (!given[i].name.text && !place_argument(b, &given[i]))
            return false;
    return check_missing(b) && bind_operands(b);
}
