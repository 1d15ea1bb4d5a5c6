/* What the program says of itself, from the table of options: --help, the man page, and the words
 * that a shell completes. */
#include "frontend/command/options.h"

#include <string.h>

static const char *const usage[] = {
    "gplan MODEL [MORE.g ...] [-o FILE] [options]",
    "gplan pack PROBLEM.csv [options]",
    "gplan remat PROBLEM [options]",
    "gplan verify PLAN.json",
    "gplan --calibrate [-o PROFILE.json]",
};
enum { USAGE_COUNT = sizeof usage / sizeof *usage };

static const char summary[] =
    "Reads a neural network, plans every byte of its memory, and emits C or CUDA that runs inside "
    "a budget.";

static const char page_end[] =
    ".SH EXIT STATUS\n0: done. 1: the input is wrong or does not fit the budget. 2: wrong usage. "
    "3: an internal error.\n.SH EXAMPLE\n.B gplan model.g \\-\\-budget 8G \\-o model.c";

enum { TEXT = 512 };

/* What an option does, and behind it the words that it takes, where the text does not go through
 * them by itself: "...: auto, always or never". */
static void describe(const Option *option, char text[TEXT])
{
    int length = snprintf(text, TEXT, "%s", option->help);
    const char *words = option_words(option);
    const char *last = words ? strrchr(words, ' ') + 1 : option->help;
    if (strstr(option->help, last))
        return;
    const char *separator = ": ";
    for (const char *at = words; at < last;) {
        int word = (int)strcspn(at, " ");
        length += snprintf(text + length, TEXT - (size_t)length, "%s%.*s", separator, word, at);
        at += word + 1;
        separator = ", ";
    }
    snprintf(text + length, TEXT - (size_t)length, " or %s", last);
}

/* ---- --help ---------------------------------------------------------------------------------- */

enum { HELP_INDENT = 29, HELP_WIDTH = 96 };

/* From the column of the texts on, in lines that fit. */
static void print_wrapped(const char *text)
{
    int column = HELP_INDENT;
    for (const char *at = text; *at;) {
        int word = (int)strcspn(at, " ");
        if (column > HELP_INDENT && column + 1 + word > HELP_WIDTH) {
            printf("\n%*s", HELP_INDENT, "");
            column = HELP_INDENT;
        }
        column += printf("%s%.*s", column > HELP_INDENT ? " " : "", word, at);
        at += word + (at[word] == ' ');
    }
    puts("");
}

void manual_help(void)
{
    for (int i = 0; i < USAGE_COUNT; i++)
        printf("%s%s\n", i ? "       " : "usage: ", usage[i]);
    printf("\n%s\nMODEL is a .g file, or - for standard input; the statements of MORE.g are "
           "appended to it.\n\n",
           summary);
    for (size_t i = 0; i < option_count; i++) {
        const Option *option = &option_table[i];
        if (!option->help)
            continue;
        char names[64], letter[8] = "    ", text[TEXT];
        if (option->letter)
            snprintf(letter, sizeof letter, "-%c, ", option->letter);
        snprintf(names, sizeof names, "%s--%s %s", letter, option->name,
                 option->argument ? option->argument : "");
        printf("  %-26s ", names);
        describe(option, text);
        print_wrapped(text);
    }
    puts("\nExit status: 0 done; 1 the input is wrong or does not fit; 2 wrong usage; 3 a bug.");
}

/* ---- The man page ---------------------------------------------------------------------------- */

/* roff takes a line's leading dot or quote and every backslash and hyphen for its own. */
static void print_roff(const char *text)
{
    for (; *text; text++)
        printf(*text == '-' ? "\\-" : *text == '\\' ? "\\\\" : "%c", *text);
}

void manual_page(void)
{
    printf(".TH GPLAN 1 \"\" \"gplan %s\" \"User Commands\"\n.SH NAME\ngplan \\- compile a "
           "neural network to C or CUDA that runs inside a byte budget\n.SH SYNOPSIS\n",
           GPLAN_VERSION);
    for (int i = 0; i < USAGE_COUNT; i++) {
        printf("%s.B ", i ? ".br\n" : "");
        print_roff(usage[i]);
        puts("");
    }
    printf(".SH DESCRIPTION\n%s\n.SH OPTIONS\n", summary);
    for (size_t i = 0; i < option_count; i++) {
        const Option *option = &option_table[i];
        if (!option->help)
            continue;
        char text[TEXT];
        printf(".TP\n");
        if (option->letter)
            printf("\\fB\\-%c\\fR, ", option->letter);
        printf("\\fB\\-\\-");
        print_roff(option->name);
        printf("\\fR%s%s%s\n", option->argument ? " \\fI" : "",
               option->argument ? option->argument : "", option->argument ? "\\fR" : "");
        describe(option, text);
        print_roff(text);
        puts("");
    }
    puts(page_end);
}

/* ---- What bash completes ----------------------------------------------------------------------
 */

/* What may stand behind an option that takes something: words, files, or what only the user knows.
 */
static void print_arguments(void)
{
    for (size_t i = 0; i < option_count; i++) {
        const Option *option = &option_table[i];
        if (!option->help || !option->argument)
            continue;
        printf("    --%s", option->name);
        if (option->letter)
            printf(" | -%c", option->letter);
        if (option->kind == OPTION_FILE)
            puts(") COMPREPLY=($(compgen -f -- \"$word\")); return ;;");
        else
            printf(") COMPREPLY=($(compgen -W '%s' -- \"$word\")); return ;;\n",
                   option_words(option) ? option_words(option) : "");
    }
}

void manual_completion(void)
{
    puts("_gplan()\n{\n    local word=$2\n    case $3 in");
    print_arguments();
    puts("    esac\n    if [[ $word == -* ]]; then");
    printf("        COMPREPLY=($(compgen -W '");
    for (size_t i = 0; i < option_count; i++)
        if (option_table[i].help)
            printf("%s--%s", i ? " " : "", option_table[i].name);
    puts("' -- \"$word\"))\n        return\n    fi\n"
         "    COMPREPLY=($(compgen -d -- \"$word\") $(compgen -f -X '!*.g' -- \"$word\"))");
    printf("    ((COMP_CWORD == 1)) && COMPREPLY+=($(compgen -W '");
    for (int i = 1; i < USAGE_COUNT; i++) {
        const char *command = strchr(usage[i], ' ') + 1;
        printf("%s%.*s", i > 1 ? " " : "", (int)strcspn(command, " "), command);
    }
    puts("' -- \"$word\"))\n    case ${COMP_WORDS[1]} in\n"
         "    pack | remat | verify) ((COMP_CWORD > 1)) && COMPREPLY=($(compgen -f -- \"$word\")) "
         ";;\n"
         "    esac\n}\ncomplete -o filenames -F _gplan gplan");
}
