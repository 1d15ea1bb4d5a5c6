/* The runtime's text in pieces: what each of them defines, and what it names. */
#ifndef GPLAN_UNITS_H
#define GPLAN_UNITS_H

#include "codegen/internal.h"

/* ---- Tokens of C (tokens.c) ------------------------------------------------------------------ */

typedef enum {
    TOKEN_END,
    TOKEN_NAME = 'a',
    TOKEN_NUMBER = '0',
    TOKEN_STRING = '"',
    TOKEN_MEMBER = '.', /* . and -> */
    TOKEN_PASTE = '#',  /* ## */
    TOKEN_OTHER = '?'   /* ( ) [ ] { } < > , ; = are their own kinds */
} TokenKind;

typedef struct {
    const char *at;
    size_t length;
    int kind;
} Token;

/* The next one; comments and ends of lines are skipped. */
Token token_next(const char **text);
/* The one after the bracket that closes the one that was just read. */
const char *token_close(const char *text);
bool token_is(Token token, const char *word);

/* ---- Conditions of the preprocessor (conditions.c) ------------------------------------------ */

/* A macro of which it is known whether it is defined. */
typedef struct {
    const char *name; /* NULL ends a list */
    bool holds;
} Condition;
/* The text without what they decide. */
const char *conditions_apply(Arena *arena, const Condition *known, const char *text);

/* ---- Units (units.c) ------------------------------------------------------------------------- */

typedef enum {
    UNIT_COMMENT, /* on lines of its own */
    UNIT_CODE,    /* a function, a type, a table, a macro, another line of the preprocessor */
    UNIT_IF,      /* #if and its like, #else and #elif, #endif */
    UNIT_ELSE,
    UNIT_ENDIF
} UnitKind;

/* When a piece of code is needed: where something names what it defines, always, or together with
 * all that it names (an assertion, an #undef). */
typedef enum { NEED_BY_NAME, NEED_ALWAYS, NEED_WITH_NAMED } UnitNeed;

typedef ARRAY(const char *) WordList;

typedef struct {
    UnitKind kind;
    UnitNeed need;
    const char *file;
    const char *text; /* whole lines, without the end of the last */
    bool gap;         /* a blank line stands before it */
    int depth;        /* how many #if are around it; a conditional's own lines are not within it */
    Id around;        /* the innermost UNIT_IF around it, or NONE */
    WordList name, name_prefix; /* what it defines; whatever begins so */
    WordList use, use_prefix;   /* what it names; `gp_wide_##rows` of a macro names many */
    WordList parameter;         /* of a macro */
    const char *call;           /* it begins so: CALL(argument, ...) */
    WordList argument;
} Unit;

typedef struct {
    Arena *arena;
    ARRAY(Unit) unit;
} Units;

/* Appends the pieces of a file. Its include guard and includes stay out. */
void units_read(Units *units, const char *file, const char *text);
/* Finds out what calls of macros define, when all files have been read. */
void units_settle(Units *units);
/* Fills in what the text of a piece names. */
void unit_scan(Arena *arena, Unit *unit);

#endif
