/* --help, the man page and bash's completion name the options of the table, all of them and no
 * others, for each command. */
#include "frontend/command/options.h"

#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAMES = 64 };

/* Names as they were found, in the order of the text. */
typedef struct {
    char name[NAMES][32];
    size_t count;
} Found;

static void add(Found *found, const char *name)
{
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz-");
    cr_assert_lt(found->count, (size_t)NAMES);
    snprintf(found->name[found->count++], sizeof found->name[0], "%.*s", (int)length, name);
}

/* What the function prints, in memory that stays. */
static char *printed(void (*show)(const Command *), const Command *command)
{
    char *text = calloc(1, 1 << 16), path[] = "/tmp/gplan-manual-XXXXXX";
    int file = mkstemp(path), before = dup(STDOUT_FILENO);
    fflush(stdout);
    dup2(file, STDOUT_FILENO);
    show(command);
    fflush(stdout);
    dup2(before, STDOUT_FILENO);
    cr_assert_gt(pread(file, text, (1 << 16) - 1, 0), 0);
    close(file);
    close(before);
    unlink(path);
    return text;
}

static void expect_options(const Command *command, const Found *found)
{
    size_t expected = 0;
    for (size_t i = 0; i < option_count; i++) {
        const Option *option = &option_table[i];
        if (!option->help || !(option->commands & command->bit))
            continue;
        cr_assert_lt(expected, found->count, "%s: --%s is missing", command->title, option->name);
        cr_expect_str_eq(found->name[expected], option->name, "%s: --%s where --%s is expected",
                         command->title, found->name[expected], option->name);
        expected++;
    }
    cr_expect_eq(expected, found->count, "%s: %zu options, not %zu", command->title, found->count,
                 expected);
}

Test(manual, a_name_or_a_letter_is_one_option_of_a_command)
{
    for (size_t i = 0; i < option_count; i++)
        for (size_t k = i + 1; k < option_count; k++) {
            const Option *a = &option_table[i], *b = &option_table[k];
            if (a->commands & b->commands) {
                cr_expect_str_neq(a->name, b->name);
                cr_expect(!a->letter || a->letter != b->letter, "-%c is two options", a->letter);
            }
        }
}

Test(manual, help_names_the_options)
{
    for (size_t i = 0; i < command_count; i++) {
        Found found = {0};
        char *text = printed(manual_help, &command_table[i]);
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
            cr_expect_leq(strlen(line), 100u, "%s", line);
            if (strncmp(line, "      --", 8) == 0)
                add(&found, line + 8);
            else if (strncmp(line, "  -", 3) == 0)
                add(&found, line + 8);
        }
        expect_options(&command_table[i], &found);
        free(text);
    }
}

Test(manual, the_man_page_names_the_options)
{
    char *text = printed(manual_page, NULL), *rest = text;
    for (size_t i = 0; i < command_count; i++) {
        Found found = {0};
        char title[64];
        snprintf(title, sizeof title, i ? ".SH \"%s\"" : ".SH DESCRIPTION", command_table[i].title);
        rest = strstr(rest, title);
        cr_assert_not_null(rest, "%s", title);
        char *end =
            i + 1 < command_count ? strstr(rest + 1, ".SH \"gplan") : strstr(rest + 1, ".SH EXIT");
        cr_assert_not_null(end);
        for (char *at = rest; (at = strstr(at, ".TP\n")) && at < end; at++) {
            char *name = strstr(at, "\\-\\-") + 4, plain[64], *to = plain;
            for (; *name != '\\' || name[1] == '-'; name++)
                if (*name != '\\')
                    *to++ = *name;
            *to = 0;
            add(&found, plain);
        }
        expect_options(&command_table[i], &found);
        rest = end;
    }
    free(text);
}

Test(manual, completion_names_the_options)
{
    char *text = printed(manual_completion, NULL);
    for (size_t i = 0; i < command_count; i++) {
        Found found = {0};
        char head[64];
        snprintf(head, sizeof head, "\n        '%s') COMPREPLY=($(compgen -W '",
                 command_table[i].name);
        char *at = strstr(text, head);
        cr_assert_not_null(at, "%s", command_table[i].title);
        at += strlen(head);
        for (char *end = strchr(at, '\''); at < end; at += strcspn(at, " '") + 1)
            add(&found, at + 2);
        expect_options(&command_table[i], &found);
    }
    free(text);
}

Test(manual, every_command_says_what_it_is_for)
{
    for (size_t i = 0; i < command_count; i++) {
        const Command *c = &command_table[i];
        cr_expect(c->summary && *c->summary && c->about && c->run && c->most > 0);
        for (size_t k = i + 1; k < command_count; k++)
            cr_expect_eq(c->bit & command_table[k].bit, 0u);
    }
}
