/* What the program says of itself, from the tables of commands and options: --help, the man page,
 * and the words that a shell completes. */
#include "frontend/command/options.h"

#include <string.h>

static const char exit_status[] =
    "0 done; 1 the input is wrong or does not fit; 2 wrong usage; 3 an internal error.";

enum { TEXT = 512 };

/* The next row that the command's texts show, from *at on; NULL: none. */
static const Option *next_option(const Command *command, size_t *at)
{
    while (*at < option_count) {
        const Option *option = &option_table[(*at)++];
        if (option->help && option->commands & command->bit)
            return option;
    }
    return NULL;
}

/* What an option does, followed by the words that it takes, unless the text lists
 * them itself: "...: auto, always or never". */
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

static void print_options(const Command *command)
{
    size_t at = 0;
    for (const Option *option; (option = next_option(command, &at));) {
        char names[64], letter[8] = "    ", text[TEXT];
        if (option->letter)
            snprintf(letter, sizeof letter, "-%c, ", option->letter);
        snprintf(names, sizeof names, "%s--%s %s", letter, option->name,
                 option->argument ? option->argument : "");
        printf("  %-26s ", names);
        describe(option, text);
        print_wrapped(text);
    }
}

/* A sentence of a summary: with a capital, and a full stop. */
static void print_sentence(const char *text)
{
    printf("%c%s.\n", text[0] - 'a' + 'A', text + 1);
}

static void print_usage(const char *before, const Command *command)
{
    printf("%s %s %s [options]%s%s\n", before, command->title, command->arguments,
           command->rest ? " " : "", command->rest ? command->rest : "");
}

void manual_help(const Command *command)
{
    print_usage("usage:", command);
    if (command == &command_table[0]) {
        for (size_t i = 1; i < command_count; i++)
            print_usage("      ", &command_table[i]);
        printf("       gplan --calibrate [-o PROFILE.json | -o LINK.c]\n");
    }
    puts("");
    print_sentence(command->summary);
    if (command == &command_table[0])
        for (size_t i = 1; i < command_count; i++) {
            printf("%s%-13s ", i == 1 ? "\n" : "", command_table[i].title);
            puts(command_table[i].summary);
        }
    printf("\n%s\n", command->about);
    print_options(command);
    printf("\nExit status: %s\n", exit_status);
}

/* ---- The man page ---------------------------------------------------------------------------- */

/* roff takes a line's leading dot or quote and every backslash and hyphen for its own. */
static void print_roff(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        printf(text[i] == '-' ? "\\-" : text[i] == '\\' ? "\\\\" : "%c", text[i]);
}

static void print_roff_options(const Command *command)
{
    size_t at = 0;
    for (const Option *option; (option = next_option(command, &at));) {
        char text[TEXT];
        printf(".TP\n");
        if (option->letter)
            printf("\\fB\\-%c\\fR, ", option->letter);
        printf("\\fB\\-\\-");
        print_roff(option->name, strlen(option->name));
        printf("\\fR%s%s%s\n", option->argument ? " \\fI" : "",
               option->argument ? option->argument : "", option->argument ? "\\fR" : "");
        describe(option, text);
        print_roff(text, strlen(text));
        puts("");
    }
}

/* Paragraphs, and lines that are kept as they are. */
static void print_roff_about(const char *text)
{
    bool typed = false;
    for (const char *at = text; *at; at += strcspn(at, "\n") + 1) {
        size_t length = strcspn(at, "\n");
        bool now = strncmp(at, "    ", 4) == 0;
        if (now != typed)
            puts(now ? ".PP\n.nf\n.RS 4" : ".RE\n.fi");
        typed = now;
        if (length == 0)
            puts(".PP");
        else
            print_roff(at + (now ? 4 : 0), length - (now ? 4 : 0)), puts("");
    }
    if (typed)
        puts(".RE\n.fi");
}

static void print_roff_usage(const Command *command)
{
    printf(".B %s ", command->title);
    print_roff(command->arguments, strlen(command->arguments));
    printf(" [options] ");
    print_roff(command->rest ? command->rest : "", command->rest ? strlen(command->rest) : 0);
    puts("");
}

void manual_page(const Command *command)
{
    (void)command;
    printf(".TH GPLAN 1 \"\" \"gplan %s\" \"User Commands\"\n.SH NAME\ngplan \\- compile a "
           "neural network to C or CUDA that runs inside a byte budget\n.SH SYNOPSIS\n",
           GPLAN_VERSION);
    for (size_t i = 0; i < command_count; i++) {
        print_roff_usage(&command_table[i]);
        puts(".br");
    }
    puts(".B gplan \\-\\-calibrate [\\-o PROFILE.json | \\-o LINK.c]");
    for (size_t i = 0; i < command_count; i++) {
        const Command *c = &command_table[i];
        if (i == 0)
            puts(".SH DESCRIPTION");
        else
            printf(".SH \"%s\"\n", c->title);
        print_sentence(c->summary);
        puts(".PP");
        print_roff_about(c->about);
        puts(i == 0 ? ".SH OPTIONS" : ".SS Options");
        print_roff_options(c);
    }
    printf(".SH EXIT STATUS\n%s\n.SH EXAMPLE\n.B gplan model.g \\-\\-budget 8G \\-o model.c\n",
           exit_status);
}

/* ---- What bash completes ----------------------------------------------------------------------
 */

/* What may follow an option that takes a value: words, files, or what only the user knows.
 */
static void print_arguments(const Command *command)
{
    size_t at = 0;
    for (const Option *option; (option = next_option(command, &at));) {
        if (!option->argument)
            continue;
        printf("    '%s --%s'", command->name, option->name);
        if (option->letter)
            printf(" | '%s -%c'", command->name, option->letter);
        if (option->kind == OPTION_FILE)
            puts(") COMPREPLY=($(compgen -f -- \"$word\")); return ;;");
        else
            printf(") COMPREPLY=($(compgen -W '%s' -- \"$word\")); return ;;\n",
                   option_words(option) ? option_words(option) : "");
    }
}

static void print_names(const Command *command)
{
    size_t at = 0;
    const char *separator = "";
    printf("        '%s') COMPREPLY=($(compgen -W '", command->name);
    for (const Option *option; (option = next_option(command, &at)); separator = " ")
        printf("%s--%s", separator, option->name);
    puts("' -- \"$word\")) ;;");
}

static void print_commands(const char *separator)
{
    for (size_t i = 1; i < command_count; i++)
        printf("%s%s", i > 1 ? separator : "", command_table[i].name);
}

void manual_completion(const Command *command)
{
    (void)command;
    printf("_gplan()\n{\n    local word=$2 command=''\n    ((COMP_CWORD > 1)) && case "
           "${COMP_WORDS[1]} in\n    ");
    print_commands(" | ");
    puts(") command=${COMP_WORDS[1]} ;;\n    esac\n    case \"$command $3\" in");
    for (size_t i = 0; i < command_count; i++)
        print_arguments(&command_table[i]);
    puts("    esac\n    if [[ $word == -* ]]; then\n        case $command in");
    for (size_t i = 0; i < command_count; i++)
        print_names(&command_table[i]);
    printf("        esac\n        return\n    fi\n    if [[ $command ]]; then\n"
           "        COMPREPLY=($(compgen -f -- \"$word\"))\n        return\n    fi\n"
           "    COMPREPLY=($(compgen -d -- \"$word\") $(compgen -f -X '!*.g' -- \"$word\"))\n"
           "    ((COMP_CWORD == 1)) && COMPREPLY+=($(compgen -W '");
    print_commands(" ");
    puts("' -- \"$word\"))\n}\ncomplete -o filenames -F _gplan gplan");
}
