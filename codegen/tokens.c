/* The tokens of C, as far as the names in a text are wanted. */
#include "codegen/units.h"

#include <ctype.h>
#include <string.h>

static bool begins_name(char c)
{
    return isalpha((unsigned char)c) || c == '_';
}

static bool in_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static const char *skip_space(const char *at)
{
    for (;;) {
        if (isspace((unsigned char)*at) || (at[0] == '\\' && at[1] == '\n')) {
            at++;
        } else if (at[0] == '/' && at[1] == '*') {
            const char *end = strstr(at + 2, "*/");
            at = end ? end + 2 : at + strlen(at);
        } else if (at[0] == '/' && at[1] == '/') {
            at += strcspn(at, "\n");
        } else {
            return at;
        }
    }
}

static size_t string_length(const char *at)
{
    size_t i = 1;
    while (at[i] && at[i] != at[0])
        i += at[i] == '\\' && at[i + 1] ? 2 : 1;
    return at[i] ? i + 1 : i;
}

Token token_next(const char **text)
{
    const char *at = skip_space(*text);
    Token t = {.at = at, .length = 1, .kind = TOKEN_OTHER};
    if (!*at) {
        t.length = 0;
        t.kind = TOKEN_END;
    } else if (begins_name(*at)) {
        t.kind = TOKEN_NAME;
        while (in_name(at[t.length]))
            t.length++;
    } else if (isdigit((unsigned char)*at)) {
        t.kind = TOKEN_NUMBER;
        while (in_name(at[t.length]) || at[t.length] == '.')
            t.length++;
    } else if (*at == '"' || *at == '\'') {
        t.kind = TOKEN_STRING;
        t.length = string_length(at);
    } else if (at[0] == '-' && at[1] == '>') {
        t.kind = TOKEN_MEMBER;
        t.length = 2;
    } else if (at[0] == '#' && at[1] == '#') {
        t.kind = TOKEN_PASTE;
        t.length = 2;
    } else if (strchr("()[]{}<>,;=.", *at)) {
        t.kind = *at;
    }
    *text = at + t.length;
    return t;
}

const char *token_close(const char *text)
{
    for (int depth = 1; depth > 0;) {
        Token t = token_next(&text);
        if (t.kind == TOKEN_END)
            break;
        depth += t.kind == '(' || t.kind == '[' || t.kind == '{';
        depth -= t.kind == ')' || t.kind == ']' || t.kind == '}';
    }
    return text;
}

bool token_is(Token token, const char *word)
{
    return token.length == strlen(word) && memcmp(token.at, word, token.length) == 0;
}
