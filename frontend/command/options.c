/* The command line, read by the tables of table.c: `--name value`, `--name=value`, `-o value`,
 * `-ovalue`; what follows `--` are inputs, or the arguments of a program that the command
 * runs; `-` is an input. */
#include "frontend/command/kinds.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *option_words(const Option *option)
{
    return option->list ? option->list() : option->words;
}

/* ---- Reading: each returns -1 to go on, or the exit status ---------------------------------- */

static int wrong(const Options *o, const Option *option, const char *text, const char *wanted)
{
    fprintf(stderr, "%s: --%s '%s': %s\n", o->command->title, option->name, text, wanted);
    return 2;
}

/* The place of a word in a list with spaces; -1: it is not there. A word of the list that has a
 * value, embedded=FILE, is found by the text before the =. */
static int find_word(const char *words, const char *text)
{
    int place = 0;
    for (const char *at = words; at && *at; place++) {
        size_t next = strcspn(at, " "), name = strcspn(at, "= ");
        size_t length = name < next ? strcspn(text, "=") : strlen(text);
        if (name == length && memcmp(at, text, length) == 0)
            return name == next || text[length] == '=' ? place : -1;
        at += next + (at[next] == ' ');
    }
    return -1;
}

static int read_word(const Option *option, const char *text, Options *o, uint32_t *field)
{
    int place = find_word(option_words(option), text);
    if (place < 0) {
        fprintf(stderr, "%s: --%s '%s': expected one of: %s\n", o->command->title, option->name,
                text, option_words(option));
        return 2;
    }
    *field = (uint32_t)place;
    return -1;
}

/* A word, and what it is followed by. */
static int read_where(const Option *option, const char *text, Options *o)
{
    const char *equals = strchr(text, '=');
    *(const char **)((char *)o + option->word_field) = equals ? equals + 1 : NULL;
    if (equals && !equals[1])
        return wrong(o, option, text, "a file is missing after the =");
    return read_word(option, text, o, (uint32_t *)((char *)o + option->field));
}

/* 4096, and 1e9 where it may be large. */
static int read_whole(const Options *o, const Option *option, const char *text, uint64_t *number)
{
    uint64_t most = option->kind == OPTION_COUNT ? option->most : UINT64_C(1) << 62;
    char *end;
    errno = 0;
    unsigned long long read = strtoull(text, &end, 10);
    if (option->kind == OPTION_LARGE && (*end == 'e' || *end == 'E')) {
        double large = strtod(text, &end);
        read = large >= 0 && large <= (double)most ? (uint64_t)large : most + 1;
    }
    if (errno || !isdigit((unsigned char)*text) || *end || read > most ||
        (read == 0 && !option->zero))
        return wrong(o, option, text,
                     option->zero ? "expected an integer" : "expected a positive integer");
    *number = read;
    return -1;
}

static int read_count(const Option *option, const char *text, Options *o)
{
    uint64_t number = 0;
    if (find_word(option_words(option), text) >= 0)
        return read_word(option, text, o, (uint32_t *)((char *)o + option->word_field));
    int status = read_whole(o, option, text, &number);
    *(uint32_t *)((char *)o + option->field) = (uint32_t)number;
    return status;
}

static int read_size(const Options *o, const Option *option, const char *text, uint64_t *field)
{
    if (!size_parse(text, field))
        return wrong(o, option, text, "expected a size, e.g. 8G, 512M, 1.5GiB or 4096");
    if (option->positive && *field == 0)
        return wrong(o, option, text, "nothing fits in no bytes");
    return -1;
}

static int read_seconds(const Options *o, const Option *option, const char *text, double *field)
{
    char *end;
    *field = strtod(text, &end);
    return end == text || *end || !(*field > 0)
               ? wrong(o, option, text, "expected a positive number")
               : -1;
}

static int read_define(Arena *arena, const Option *option, const char *text, Options *o)
{
    const char *equals = strchr(text, '=');
    char *end = NULL;
    errno = 0;
    long long value = equals ? strtoll(equals + 1, &end, 10) : 0;
    if (!equals || equals == text || end == equals + 1 || *end || errno)
        return wrong(o, option, text, "expected NAME=INTEGER, e.g. -D B=64");
    ARRAY_PUSH(arena, &o->define,
               (Define){.name = arena_copy(arena, text, (size_t)(equals - text)), .value = value});
    return -1;
}

static int read_bind(Arena *arena, const Option *option, const char *text, Options *o)
{
    const char *equals = strrchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return wrong(o, option, text, "expected NAME=FILE, e.g. --bind shape=shape.pb");
    ARRAY_PUSH(arena, &o->bind,
               (OnnxBind){arena_copy(arena, text, (size_t)(equals - text)), equals + 1});
    return -1;
}

static int read_option(Arena *arena, const Option *option, const char *text, Options *o)
{
    void *field = (char *)o + option->field;
    switch (option->kind) {
    case OPTION_FLAG:
        *(bool *)field = true;
        return -1;
    case OPTION_TEXT:
    case OPTION_FILE:
        *(const char **)field = text;
        return -1;
    case OPTION_WORD:
        return option->word_field ? read_where(option, text, o) : read_word(option, text, o, field);
    case OPTION_COUNT:
        return read_count(option, text, o);
    case OPTION_LARGE:
        return read_whole(o, option, text, field);
    case OPTION_SIZE:
        return read_size(o, option, text, field);
    case OPTION_SECONDS:
        return read_seconds(o, option, text, field);
    case OPTION_DEFINE:
        return read_define(arena, option, text, o);
    case OPTION_BIND:
        return read_bind(arena, option, text, o);
    case OPTION_SHOW:
        option->show(o->command);
        return 0;
    }
    return 2;
}

/* ---- The arguments -------------------------------------------------------------------------- */

/* The command's option of this name, or of this letter where there is no name. */
static const Option *find(const Command *command, const char *name, size_t length, char letter)
{
    for (size_t i = 0; i < option_count; i++) {
        const Option *option = &option_table[i];
        if (option->commands & command->bit &&
            (name ? strlen(option->name) == length && memcmp(option->name, name, length) == 0
                  : option->letter == letter))
            return option;
    }
    return NULL;
}

static int unknown(Arena *arena, const Command *command, const char *text)
{
    ARRAY(const char *) names = {0};
    for (size_t i = 0; i < option_count; i++)
        if (option_table[i].commands & command->bit && option_table[i].help)
            ARRAY_PUSH(arena, &names, option_table[i].name);
    const char *title = command->title;
    const char *name = text + strspn(text, "-"), *meant = NULL;
    if (text[1] == '-')
        meant = suggest(arena_copy(arena, name, strcspn(name, "=")), names.at, names.count);
    fprintf(stderr, "%s: unknown option %s", title, text);
    if (meant)
        fprintf(stderr, "; did you mean --%s?\n", meant);
    else
        fprintf(stderr, "; %s --help lists what there is\n", title);
    return 2;
}

/* The arguments that are left to be read. */
typedef struct {
    Arena *arena;
    Options *options;
    char **next;
} Arguments;

/* `value`: what is attached to the option; NULL: nothing is. */
static int read_one(Arguments *a, const Option *option, const char *value)
{
    const char *title = a->options->command->title;
    if (!option->argument && value) {
        fprintf(stderr, "%s: --%s takes no value\n", title, option->name);
        return 2;
    }
    if (option->argument && !value) {
        value = *a->next;
        if (!value || strncmp(value, "--", 2) == 0) {
            fprintf(stderr, "%s: --%s needs a value: --%s %s\n", title, option->name, option->name,
                    option->argument);
            return 2;
        }
        a->next++;
    }
    return read_option(a->arena, option, value, a->options);
}

/* --name, --name=value */
static int read_long(Arguments *a, const char *text)
{
    size_t length = strcspn(text + 2, "=");
    const Option *option = find(a->options->command, text + 2, length, 0);
    if (!option)
        return unknown(a->arena, a->options->command, text);
    return read_one(a, option, text[2 + length] ? text + 2 + length + 1 : NULL);
}

/* -v, -vo FILE, -DB=64 */
static int read_letters(Arguments *a, const char *text)
{
    int status = -1;
    for (const char *at = text + 1; *at && status < 0; at++) {
        const Option *option = find(a->options->command, NULL, 0, *at);
        if (!option)
            return unknown(a->arena, a->options->command, text);
        if (option->argument)
            return read_one(a, option, at[1] ? at + 1 + (at[1] == '=') : NULL);
        status = read_one(a, option, NULL);
    }
    return status;
}

/* As many inputs as the command takes. */
static int check_inputs(const Options *o)
{
    const Command *command = o->command;
    const char *title = command->title;
    if (o->calibrate) {
        if (o->input.count > 0)
            fprintf(stderr, "%s: --calibrate takes no model\n", title);
        return o->input.count > 0 ? 2 : -1;
    }
    if (o->input.count == 0) {
        fprintf(stderr, "%s: which %s? Give a file, or - for standard input\n", title,
                command->input);
        return 2;
    }
    if (o->input.count > command->most) {
        fprintf(stderr, "%s: one %s at a time, but there is also %s\n", title, command->input,
                o->input.at[command->most]);
        return 2;
    }
    return -1;
}

int options_read(Arena *arena, const Command *command, int argc, char **argv, Options *o)
{
    *o = (Options){.command = command};
    Arguments a = {arena, o, argv + (argc > 0)};
    bool behind = false; /* -- */
    for (int status = -1; *a.next;) {
        const char *text = *a.next++;
        if (behind && command->rest)
            ARRAY_PUSH(arena, &o->argument, text);
        else if (behind || text[0] != '-' || !text[1])
            ARRAY_PUSH(arena, &o->input, text);
        else if (strcmp(text, "--") == 0)
            behind = true;
        else
            status = text[1] == '-' ? read_long(&a, text) : read_letters(&a, text);
        if (status >= 0)
            return status;
    }
    return check_inputs(o);
}

/* ---- The commands --------------------------------------------------------------------------- */

int command_main(int argc, char **argv)
{
    const Command *command = &command_table[0];
    for (size_t i = 1; i < command_count; i++)
        if (argc > 1 && strcmp(argv[1], command_table[i].name) == 0)
            command = &command_table[i];
    int own = command != &command_table[0]; /* its name is an argument */
    Arena *arena = arena_new();
    Options options;
    int status = options_read(arena, command, argc - own, argv + own, &options);
    if (status < 0)
        status = command->run(arena, &options);
    arena_free(arena);
    return status;
}
