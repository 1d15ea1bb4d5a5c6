/* Conditions of the preprocessor that are decided when a file is written: whether it is for CUDA,
 * whether there are micro-batches. The others are the C compiler's and stay as they are.
 *
 * A condition is `#ifdef NAME`, `#ifndef NAME`, or terms that && or || join; a term that is known
 * is `defined(NAME)` or `!defined(NAME)`. */
#include "codegen/units.h"

#include <string.h>

enum { MAX_DEPTH = 16 };

typedef enum { NOT_KNOWN, HOLDS, FAILS } Verdict;

/* One #if up to its #endif. */
typedef struct {
    bool open;    /* a line of it was written: it needs an #endif */
    bool decided; /* a branch that holds was seen: what follows is left out */
    bool on;      /* lines of the branch at hand are written */
} Level;

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static Verdict verdict_of(const Condition *known, const char *name, size_t length, bool negated)
{
    for (; known->name; known++)
        if (strlen(known->name) == length && memcmp(known->name, name, length) == 0)
            return known->holds != negated ? HOLDS : FAILS;
    return NOT_KNOWN;
}

static Verdict judge_term(const Condition *known, const char *at, size_t length)
{
    const bool negated = *at == '!';
    static const char word[] = "defined(";
    at += negated;
    length -= negated;
    if (!begins(at, word) || at[length - 1] != ')')
        return NOT_KNOWN;
    return verdict_of(known, at + strlen(word), length - strlen(word) - 1, negated);
}

/* The next operator that joins terms, outside of brackets; the end if there is none. */
static const char *next_operator(const char *at)
{
    for (int depth = 0; *at; at++) {
        depth += (*at == '(') - (*at == ')');
        if (depth == 0 && (begins(at, " && ") || begins(at, " || ")))
            return at;
    }
    return at;
}

/* A condition without the terms that are known; `rest` is what is left where it is not decided. */
static Verdict judge(Arena *arena, const Condition *known, const char *text, const char **rest)
{
    const char *first = next_operator(text);
    const bool any = begins(first, " || ");
    Out left = out_new(arena);
    for (const char *at = text; *at;) {
        const char *end = next_operator(at);
        const Verdict verdict = judge_term(known, at, (size_t)(end - at));
        if (verdict == (any ? HOLDS : FAILS))
            return verdict;
        if (verdict == NOT_KNOWN)
            out(&left, "%s%.*s", left.length ? (any ? " || " : " && ") : "", (int)(end - at), at);
        at = *end ? end + strlen(" && ") : end;
    }
    *rest = left.at;
    return left.length ? NOT_KNOWN : any ? FAILS : HOLDS;
}

/* What #if, #ifdef, #ifndef or #elif ask. */
static Verdict judge_line(Arena *arena, const Condition *known, const char *line, const char **rest)
{
    const char *at = strchr(line, ' ') + 1, *note = strstr(at, " /*");
    if (!begins(line, "#ifdef") && !begins(line, "#ifndef")) {
        const size_t length = note ? (size_t)(note - at) : strlen(at);
        const Verdict verdict = judge(arena, known, arena_copy(arena, at, length), rest);
        if (verdict == NOT_KNOWN && note)
            *rest = arena_printf(arena, "%s%s", *rest, note);
        return verdict;
    }
    *rest = NULL; /* as it is */
    return verdict_of(known, at, strcspn(at, " "), begins(line, "#ifndef"));
}

static void branch(Level *l, const char *line, Verdict verdict, const char *rest, Out *o)
{
    l->on = !l->decided && verdict != FAILS;
    if (!l->on)
        return;
    l->decided = verdict == HOLDS;
    if (verdict == HOLDS && l->open)
        out(o, "#else\n");
    else if (verdict == NOT_KNOWN && !rest)
        out(o, "%s\n", line);
    else if (verdict == NOT_KNOWN)
        out(o, "%s %s\n", l->open ? "#elif" : "#if", rest);
    l->open |= verdict == NOT_KNOWN;
}

const char *conditions_apply(Arena *arena, const Condition *known, const char *text)
{
    Out o = out_new(arena);
    Level level[MAX_DEPTH] = {{.on = true}};
    int depth = 0;
    for (const char *at = text; *at;) {
        const size_t length = strcspn(at, "\n");
        const char *line = arena_copy(arena, at, length), *rest = NULL;
        at += length + (at[length] == '\n');
        Level *l = &level[depth];
        if (begins(line, "#if")) {
            const bool on = l->on;
            l = &level[++depth];
            *l = (Level){.decided = !on};
            const Verdict verdict = judge_line(arena, known, line, &rest);
            branch(l, line, verdict, rest, &o);
        } else if (begins(line, "#elif")) {
            const Verdict verdict = judge_line(arena, known, line, &rest);
            branch(l, line, verdict, rest, &o);
        } else if (begins(line, "#else")) {
            branch(l, line, HOLDS, NULL, &o);
        } else if (begins(line, "#endif")) {
            if (l->open)
                out(&o, "%s\n", line);
            depth--;
        } else if (l->on) {
            out(&o, "%s\n", line);
        }
    }
    return o.at;
}
