/* Settings of statements: train and data. Each is a row that says which values it takes. */
#include "frontend/lower.h"

#include <string.h>

size_t split_words(Lower *l, const char *words, const char **word, size_t most)
{
    size_t count = 0;
    for (; *words && count < most; words += strspn(words, " ")) {
        size_t span = strcspn(words, " ");
        word[count++] = arena_copy(l->arena, words, span);
        words += span;
    }
    return count;
}

bool setting_unknown(Lower *l, Name name, const char *what, const char *names)
{
    const char *word[32];
    size_t words = split_words(l, names, word, 32);
    diag_error(l->diag, name.span, "%s %s", what, name.text);
    const char *meant = suggest(name.text, word, words);
    if (meant)
        diag_hint(l->diag, "did you mean %s?", meant);
    const char *list = "";
    for (size_t i = 0; i < words; i++)
        list = arena_printf(l->arena, "%s%s%s", list, i ? ", " : "", word[i]);
    diag_hint(l->diag, "available: %s", list);
    return false;
}

/* "a number or auto"; of a word alone: "drop or pad". */
static const char *wanted(Lower *l, const Setting *setting)
{
    static const char *const kinds[] = {
        [ARG_FLOAT] = "a number", [ARG_INT] = "an integer", [ARG_BOOL] = "true or false"};
    const char *word[8], *list = setting->kind == ARG_WORD ? "" : kinds[setting->kind];
    size_t words = split_words(l, setting->words ? setting->words : "", word, 8);
    for (size_t i = 0; i < words; i++)
        list = arena_printf(l->arena, "%s%s%s", list, *list ? " or " : "", word[i]);
    return list;
}

static bool in_range(Lower *l, const Setting *setting, double number, Span span)
{
    if (number >= setting->low && number < setting->high)
        return true;
    diag_error(l->diag, span, "%s = %g is out of range", setting->name, number);
    if (setting->high < SETTING_ANY)
        diag_hint(l->diag, "at least %g and less than %g", setting->low, setting->high);
    else
        diag_hint(l->diag, "at least %g", setting->low);
    return false;
}

bool setting_eval(Lower *l, Frame *frame, const Setting *setting, const Expr *expr, Attr *attr)
{
    *attr = (Attr){.given = true, .count = 1};
    int word = expr->kind == EXPR_NAME ? word_place(setting->words, expr->text) : -1;
    if (word >= 0) {
        attr->is_word = true;
        attr->number = word;
        return true;
    }
    if (setting->kind == ARG_WORD && expr->kind == EXPR_NAME && !frame_find(frame, expr->text))
        return diag_error(l->diag, expr->span, "%s must be %s, not %s", setting->name,
                          wanted(l, setting), expr->text);
    Val val = eval(l, frame, expr, NULL);
    if (val.kind == VAL_POISON)
        return false;
    bool good = setting->kind == ARG_BOOL ? val.kind == VAL_BOOL
                : setting->kind == ARG_WORD
                    ? false
                    : val.kind == VAL_INT || (val.kind == VAL_FLOAT && setting->kind == ARG_FLOAT);
    if (!good)
        return diag_error(l->diag, expr->span, "%s must be %s, not %s", setting->name,
                          wanted(l, setting), val_text(l, val));
    attr->number = val_number(val);
    attr->list[0] = val.kind == VAL_FLOAT ? 0 : val.integer;
    return in_range(l, setting, attr->number, expr->span);
}
