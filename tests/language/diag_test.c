/* Messages: what is suggested, what is shown and what is not. */
#include "frontend/frontend.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static Arena *arena;
static Diag *diag;
static char *shown;
static size_t length;
static FILE *to;

static void begin(void)
{
    arena = arena_new();
    to = open_memstream(&shown, &length);
    diag = diag_new(arena, to, false);
}

static void end(void)
{
    fclose(to);
    free(shown);
    arena_free(arena);
}

TestSuite(diag, .init = begin, .fini = end);

static const char *output(void)
{
    fflush(to);
    return shown;
}

static void source(const char *text)
{
    Source *s = ARENA_NEW(arena, Source);
    *s = (Source){.file = "m.g", .text = text, .length = strlen(text)};
    diag_source(diag, s);
}

Test(diag, suggests_the_nearest_name)
{
    const char *const names[] = {"relu", "gelu", "conv2d", "layernorm", "x"};
    cr_assert_str_eq(suggest("relou", names, 5), "relu");
    cr_assert_str_eq(suggest("conv2", names, 5), "conv2d");
    cr_assert_str_eq(suggest("layer_norm", names, 5), "layernorm");
    cr_assert_str_eq(suggest("Relu", names, 5), "relu");
    cr_assert_str_eq(suggest("rleu", names, 5), "relu");
}

Test(diag, suggests_nothing_for_another_word)
{
    const char *const names[] = {"relu", "gelu", "x", ""};
    cr_assert_null(suggest("attention", names, 4));
    cr_assert_null(suggest("y", names, 4));
    cr_assert_null(suggest("", names, 4));
    cr_assert_null(suggest("relu", names, 0));
}

Test(diag, shows_the_line_with_a_caret)
{
    source("a = 1\nb = foo(a)\r\n");
    cr_assert_not(diag_error(diag, (Span){2, 5, 2, 11}, "no %s", "foo"));
    diag_note(diag, (Span){1, 1, 1, 2}, "a is here");
    diag_hint(diag, "try bar");
    cr_assert_str_eq(output(), "m.g:2:5: error: no foo\n"
                               "    b = foo(a)\n"
                               "        ^~~~~~\n"
                               "m.g:1:1: note: a is here\n"
                               "    hint: try bar\n");
    cr_assert_eq(diag_errors(diag), 1);
}

Test(diag, same_message_at_the_same_place_is_shown_once)
{
    source("a\n");
    for (int i = 0; i < 3; i++) {
        diag_error(diag, (Span){1, 1, 1, 2}, "wrong");
        diag_note(diag, (Span){1, 1, 1, 2}, "turn %d", i);
    }
    cr_assert_null(strstr(output(), "turn 1"));
    cr_assert_eq(diag_errors(diag), 3); /* a rule that fails still counts */
}

Test(diag, gives_up_after_twenty_errors)
{
    source("a\n");
    for (int i = 0; i < 30; i++)
        diag_error(diag, (Span){1, 1, 1, 2}, "error <%d>", i);
    cr_assert(diag_full(diag));
    cr_assert_not_null(strstr(output(), "<19>"));
    cr_assert_null(strstr(output(), "<20>"));
}

Test(diag, a_warning_is_no_error)
{
    source("a\n");
    diag_warning(diag, (Span){1, 1, 1, 2}, "odd");
    cr_assert_eq(diag_errors(diag), 0);
    cr_assert_not_null(strstr(output(), "warning: odd"));
}

Test(diag, a_place_beyond_the_text_shows_no_line)
{
    source("a");
    diag_error(diag, (Span){9, 9, 9, 10}, "far");
    cr_assert_str_eq(output(), "m.g:9:9: error: far\n");
    diag_error(diag, (Span){1, 50, 1, 60}, "right");
    cr_assert_not_null(strstr(output(), "right"));
}

Test(diag, nothing_reaches_the_terminal_raw)
{
    source("a\033[31m\x9f\xff\xc2\x9b\n");
    diag_error(diag, (Span){1, 1, 1, 2}, "text \033 too");
    cr_assert_null(strchr(output(), '\033'));
    cr_assert_null(strchr(output(), '\xff'));
    cr_assert_not_null(strstr(output(), "a\\x1b[31m\\x9f\\xff\\u{9b}"));
}

Test(diag, a_long_line_is_cut_round_the_caret)
{
    char *text = arena_alloc(arena, 1 << 20);
    memset(text, 'x', (1 << 20) - 1);
    source(text);
    diag_error(diag, (Span){1, 500000, 1, 900000}, "long");
    cr_assert_lt(strlen(output()), 400);
    cr_assert_not_null(strstr(output(), "...x"));
}
