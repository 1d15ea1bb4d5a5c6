/* Splits a file of the runtime into definitions, comments and lines of the preprocessor. It reads
 * what clang-format leaves: a definition begins at the start of a line and ends at the end of one.
 */
#include "codegen/units.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

static const char *word_of(Arena *arena, Token t)
{
    return arena_copy(arena, t.at, t.length);
}

static bool listed(const WordList *list, const char *word)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->at[i], word) == 0)
            return true;
    return false;
}

static void add_word(Arena *arena, WordList *list, const char *word)
{
    if (!listed(list, word))
        ARRAY_PUSH(arena, list, word);
}

/* ---- What a piece names ---------------------------------------------------------------------- */

void unit_scan(Arena *arena, Unit *unit)
{
    const char *at = unit->text;
    Token before = {0}, t;
    unit->use = unit->use_prefix = (WordList){0};
    for (; (t = token_next(&at)).kind != TOKEN_END; before = t) {
        if (t.kind != TOKEN_NAME || before.kind == TOKEN_MEMBER || before.kind == TOKEN_PASTE)
            continue;
        const char *after = at, *word = word_of(arena, t);
        if (token_next(&after).kind == TOKEN_PASTE)
            add_word(arena, &unit->use_prefix, word);
        else if (!listed(&unit->name, word) && !listed(&unit->parameter, word))
            add_word(arena, &unit->use, word);
    }
}

/* ---- What a piece defines -------------------------------------------------------------------- */

/* Constants of an enum, from after its brace on. */
static void enumerators(Arena *arena, Unit *unit, const char *at)
{
    bool begins = true;
    for (int depth = 0;;) {
        Token t = token_next(&at);
        if (t.kind == TOKEN_END || (t.kind == '}' && depth == 0))
            return;
        if (begins && t.kind == TOKEN_NAME)
            add_word(arena, &unit->name, word_of(arena, t));
        depth += t.kind == '(' || t.kind == '{';
        depth -= t.kind == ')' || t.kind == '}';
        begins = depth == 0 && t.kind == ',';
    }
}

static bool is_attribute(Token t)
{
    return token_is(t, "__attribute__") || token_is(t, "alignas") ||
           token_is(t, "__launch_bounds__") || token_is(t, "_Static_assert") ||
           token_is(t, "__typeof__");
}

/* A function, a variable, a type. */
static void declared(Arena *arena, Unit *unit)
{
    const char *at = unit->text;
    Token name = {0}, before_angle = {0};
    bool is_type = false, is_enum = false, is_struct = false, angle = false;
    for (Token t; (t = token_next(&at)).kind != TOKEN_END;) {
        const bool plain = t.kind == '(' && is_attribute(name);
        if (t.kind == TOKEN_NAME) {
            is_type |= token_is(t, "typedef");
            is_enum |= token_is(t, "enum");
            is_struct |= token_is(t, "struct") || token_is(t, "enum") || token_is(t, "union");
            if (!is_attribute(t) || !is_type) /* the last name of a type is its own */
                name = t;
            angle = false;
        } else if (t.kind == '<') {
            before_angle = name;
        } else if (t.kind == '>') {
            angle = true;
        } else if (plain || (t.kind == '(' && is_type) || (t.kind == '[' && is_type)) {
            at = token_close(at);
        } else if (t.kind == '{' && (is_struct || is_type)) {
            if (is_enum)
                enumerators(arena, unit, at);
            if (!token_is(name, "struct") && !token_is(name, "enum") && !token_is(name, "union"))
                add_word(arena, &unit->name, word_of(arena, name));
            at = token_close(at);
            name = (Token){0};
        } else if (strchr("([={;", t.kind)) {
            name = angle ? before_angle : name; /* gp_load<int64_t>( */
            break;
        }
    }
    if (name.length)
        add_word(arena, &unit->name, word_of(arena, name));
}

static void macro(Arena *arena, Unit *unit)
{
    const char *at = unit->text + strlen("#define");
    const Token name = token_next(&at);
    add_word(arena, &unit->name, word_of(arena, name));
    if (*at != '(')
        return;
    for (Token t; (t = token_next(&at)).kind != ')' && t.kind != TOKEN_END;)
        if (t.kind == TOKEN_NAME)
            add_word(arena, &unit->parameter, word_of(arena, t));
}

/* A line of the preprocessor that is no conditional. */
static void directive(Arena *arena, Unit *unit)
{
    if (strncmp(unit->text, "#define", 7) == 0)
        macro(arena, unit);
    else if (strncmp(unit->text, "#undef", 6) == 0)
        unit->need = NEED_WITH_NAMED;
    else
        unit->need = NEED_ALWAYS; /* #pragma, an #include that not every compiler wants */
}

static void definition(Arena *arena, Unit *unit)
{
    const char *at = unit->text;
    const Token first = token_next(&at);
    if (*unit->text == '#') {
        directive(arena, unit);
    } else if (token_is(first, "_Static_assert")) {
        unit->need = NEED_WITH_NAMED;
    } else if (first.kind == TOKEN_NAME && *at == '(' && !is_attribute(first)) {
        unit->call = word_of(arena, first);
        const char *end = token_close(++at);
        for (Token t; at < end && (t = token_next(&at)).kind != TOKEN_END;)
            if (t.kind == TOKEN_NAME)
                ARRAY_PUSH(arena, &unit->argument, word_of(arena, t));
    } else {
        declared(arena, unit);
    }
}

/* ---- Where pieces end ------------------------------------------------------------------------ */

static const char *line_end(const char *at)
{
    return at + strcspn(at, "\n");
}

static const char *directive_end(const char *at)
{
    const char *end = line_end(at);
    while (*end && end[-1] == '\\')
        end = line_end(end + 1);
    return end;
}

static const char *comment_end(const char *at)
{
    const char *end = at[1] == '*' ? strstr(at, "*/") : at;
    return line_end(end ? end : at);
}

/* A definition ends with a semicolon, with the body of a function, or with the call of a macro that
 * no body follows. */
static const char *code_end(const char *text)
{
    const char *at = text;
    bool opens = false; /* the last bracket that closed was round: a body may follow */
    for (int tokens = 0;; tokens++) {
        const Token t = token_next(&at);
        if (t.kind == TOKEN_END || t.kind == ';')
            return line_end(at);
        if (t.kind == '(' || t.kind == '[' || t.kind == '{') {
            const bool body = t.kind == '{' && opens;
            at = token_close(at);
            if (body)
                return line_end(at);
            const char *after = at;
            const int next = token_next(&after).kind;
            if (t.kind == '(' && tokens == 1 && next != '{' && next != ';')
                return line_end(at); /* MACRO(...) alone */
            opens = t.kind == '(';
        } else if (t.kind == '=' || t.kind == TOKEN_NAME) {
            opens &= t.kind == TOKEN_NAME; /* ) const { */
        }
    }
}

typedef struct {
    Units *units;
    const char *file;
    int depth;
    ARRAY(Id) around;
    bool gap;
} Reader;

static void add(Reader *r, UnitKind kind, const char *from, const char *to)
{
    Arena *arena = r->units->arena;
    Unit unit = {.kind = kind,
                 .file = r->file,
                 .text = arena_copy(arena, from, (size_t)(to - from)),
                 .gap = r->gap,
                 .around = NONE};
    r->gap = false;
    if (kind == UNIT_ELSE || kind == UNIT_ENDIF)
        r->around.count--;
    if (r->around.count)
        unit.around = r->around.at[r->around.count - 1];
    unit.depth = (int)r->around.count;
    if (kind == UNIT_CODE)
        definition(arena, &unit);
    if (kind != UNIT_COMMENT)
        unit_scan(arena, &unit);
    if (kind == UNIT_IF)
        ARRAY_PUSH(arena, &r->around, (Id)r->units->unit.count);
    else if (kind == UNIT_ELSE)
        r->around.count++; /* still within the same #if */
    ARRAY_PUSH(arena, &r->units->unit, unit);
}

static UnitKind kind_of(const char *at)
{
    if (strncmp(at, "#if", 3) == 0)
        return UNIT_IF;
    if (strncmp(at, "#el", 3) == 0)
        return UNIT_ELSE;
    return strncmp(at, "#endif", 6) == 0 ? UNIT_ENDIF : UNIT_CODE;
}

/* `#ifndef NAME` before `#define NAME`. */
static const char *guard_of(Arena *arena, const char *text)
{
    const char *at = strstr(text, "\n#ifndef ");
    if (!at)
        return NULL;
    at += strlen("\n#ifndef ");
    const char *name = word_of(arena, token_next(&at));
    const char *define = arena_printf(arena, "\n#define %s\n", name);
    return strncmp(at, define, strlen(define)) == 0 ? name : NULL;
}

void units_read(Units *units, const char *file, const char *text)
{
    Reader r = {.units = units, .file = file};
    const char *guard = guard_of(units->arena, text), *last = NULL;
    for (const char *at = text; guard && (at = strstr(at, "\n#endif")); at++)
        last = at + 1;
    for (const char *at = text, *end; *at; at = *end ? end + 1 : end) {
        end = line_end(at);
        if (end == at) {
            r.gap = true;
        } else if (at[0] == '/' && (at[1] == '*' || at[1] == '/')) {
            add(&r, UNIT_COMMENT, at, end = comment_end(at));
        } else if (*at != '#') {
            add(&r, UNIT_CODE, at, end = code_end(at));
        } else {
            const char *word = at + strcspn(at, " \n"), *name = word;
            const Token guarded = token_next(&name);
            end = directive_end(at);
            const bool own = guard && token_is(guarded, guard) && r.around.count == 0;
            if (own || at == last || strncmp(at, "#include \"", 10) == 0 ||
                (strncmp(at, "#include <", 10) == 0 && r.around.count == 0))
                continue;
            add(&r, kind_of(at), at, end);
        }
    }
    assert(r.around.count == 0);
}

/* ---- What calls of macros define ------------------------------------------------------------- */

static bool pastes_next(const char *at)
{
    return token_next(&at).kind == TOKEN_PASTE;
}

static void paste_part(Out *name, const Unit *caller, const Unit *macro_, Token part)
{
    for (size_t i = 0; i < macro_->parameter.count && i < caller->argument.count; i++)
        if (token_is(part, macro_->parameter.at[i])) {
            out(name, "%s", caller->argument.at[i]);
            return;
        }
    out_text(name, part.at, part.length);
}

/* The names that a macro pastes together where its parameters are the arguments. */
static void paste(Arena *arena, Unit *caller, const Unit *macro_)
{
    const char *at = macro_->text;
    for (Token t; (t = token_next(&at)).kind != TOKEN_END;) {
        if (t.kind != TOKEN_NAME || !pastes_next(at))
            continue;
        Out name = out_new(arena);
        paste_part(&name, caller, macro_, t);
        while (pastes_next(at)) {
            token_next(&at);
            paste_part(&name, caller, macro_, token_next(&at));
        }
        add_word(arena, &caller->name, name.at);
    }
}

static bool is_macro(const Unit *unit, const char *name)
{
    return unit->parameter.count && strcmp(unit->name.at[0], name) == 0;
}

/* Names that begin so are defined elsewhere: the macro pastes them to use them. */
static bool is_used(const Units *units, const char *prefix)
{
    for (size_t i = 0; i < units->unit.count; i++)
        for (size_t k = 0; k < units->unit.at[i].name.count; k++)
            if (strncmp(units->unit.at[i].name.at[k], prefix, strlen(prefix)) == 0)
                return true;
    return false;
}

/* KERNEL(name) has its name in another; EACH(MACRO) has what MACRO pastes with whatever it is
 * given; MACRO(name, type) has those that nobody else defines. */
static void settle(Units *units, Unit *caller, const NameTable *defined)
{
    Arena *arena = units->arena;
    for (size_t i = 0; i < units->unit.count; i++) {
        Unit *m = &units->unit.at[i];
        if (is_macro(m, caller->call)) {
            paste(arena, caller, m);
            m->use_prefix = (WordList){0};
        }
        for (size_t k = 0; k < caller->argument.count; k++)
            for (size_t p = 0; is_macro(m, caller->argument.at[k]) && p < m->use_prefix.count; p++)
                if (!is_used(units, m->use_prefix.at[p]))
                    add_word(arena, &caller->name_prefix, m->use_prefix.at[p]);
    }
    if (caller->name.count == 0 && caller->name_prefix.count == 0)
        for (size_t k = 0; k < caller->argument.count; k++)
            if (names_find(defined, caller->argument.at[k]) == NONE)
                add_word(arena, &caller->name, caller->argument.at[k]);
}

void units_settle(Units *units)
{
    NameTable *defined = names_new(units->arena);
    for (size_t i = 0; i < units->unit.count; i++)
        for (size_t k = 0; k < units->unit.at[i].name.count; k++)
            *names_at(defined, units->unit.at[i].name.at[k]) = 1;
    for (size_t i = 0; i < units->unit.count; i++)
        if (units->unit.at[i].call) {
            settle(units, &units->unit.at[i], defined);
            unit_scan(units->arena, &units->unit.at[i]);
        }
}
