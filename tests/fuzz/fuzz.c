/* Models that nobody would write, for as long as is asked: an example is cut to words, some of
 * them are changed, and gplan must compile what is left or say what is wrong with it.
 *
 * usage: fuzz GPLAN SECONDS FIRST_SEED WORDS MODEL...
 * WORDS is a file with words to put in, e.g. the names of the ops. A model that makes gplan crash,
 * hang or blame itself is left as fuzz_SEED.g, and the command is shown. */
#define _DEFAULT_SOURCE
#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_TOKENS = 20000, MAX_TEXT = 1 << 20, MOST_SECONDS = 60 };

typedef struct {
    const char *at;
    int length;
} Token;

typedef struct {
    Token token[MAX_TOKENS];
    int count;
} Model;

static uint64_t state;

static unsigned below(unsigned n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % n;
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, MAX_TEXT);
    if (!file || !text) {
        perror(path);
        exit(2);
    }
    text[fread(text, 1, MAX_TEXT - 1, file)] = 0;
    fclose(file);
    return text;
}

/* Words, numbers, blanks, and every other character for itself. */
static void split(Model *m, const char *text)
{
    m->count = 0;
    while (*text && m->count < MAX_TOKENS / 2) {
        int length = 1;
        if (isalnum((unsigned char)*text) || *text == '_')
            while (isalnum((unsigned char)text[length]) || text[length] == '_')
                length++;
        else if (*text == ' ')
            length = (int)strspn(text, " ");
        else if (*text == '#')
            length = (int)strcspn(text, "\n");
        m->token[m->count++] = (Token){text, length};
        text += length;
    }
}

static Token any_word(const Model *words)
{
    static const char *const odd[] = {
        "0",
        "1",
        "2",
        "3",
        "7",
        "-1",
        "9223372036854775807",
        "1e30",
        "1e-9",
        "0.5",
        "..",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        "=",
        ":",
        "\n",
        "@",
        "+",
        "*",
        "/",
        "-",
        "==",
        "\"a*\"",
        "\"b\"",
        "i64",
        "u8",
        "bool",
        "f16",
        "true",
        "[1, 2, 3]",
        "same",
        "all",
        "batch",
        "micro",
        "repeat",
        "block",
        "shared block",
        "keep",
        "const",
        "frozen param",
        "return",
        "x[0]",
        "[::-1]",
        "recompute",
        "\xc3\xa9",
        "\x01",
        "checkpoint block",
        "65536",
        "name = \"n\"",
        "axis = 0",
    };
    unsigned count = sizeof odd / sizeof *odd;
    unsigned i = below(count * 2);
    if (i < count)
        return (Token){odd[i], (int)strlen(odd[i])};
    return words->token[below((unsigned)words->count)];
}

static void insert(Model *m, int at, Token token)
{
    if (m->count == MAX_TOKENS)
        return;
    memmove(m->token + at + 1, m->token + at, (size_t)(m->count - at) * sizeof *m->token);
    m->token[at] = token;
    m->count++;
}

static void erase(Model *m, int at, int count)
{
    if (count > m->count - at)
        count = m->count - at;
    m->count -= count;
    memmove(m->token + at, m->token + at + count, (size_t)(m->count - at) * sizeof *m->token);
}

static int line_start(const Model *m, int at)
{
    while (at > 0 && *m->token[at - 1].at != '\n')
        at--;
    return at;
}

/* One line again, somewhere else. */
static void copy_line(Model *m, int from, int to)
{
    Token line[200];
    int count = 0;
    for (int i = line_start(m, from); i < m->count && count < 200; i++) {
        line[count++] = m->token[i];
        if (*m->token[i].at == '\n')
            break;
    }
    to = line_start(m, to);
    while (count > 0)
        insert(m, to, line[--count]);
}

static bool is_number(Token token)
{
    return isdigit((unsigned char)*token.at);
}

static bool is_word(Token token)
{
    return isalnum((unsigned char)*token.at);
}

/* A number for a number, a word for a word: the grammar stays, so this goes deepest. */
static void exchange(Model *m, const Model *words, int at)
{
    static const char *const numbers[] = {"0", "1", "2", "3", "4", "5", "8", "12", "64", "1000000"};
    while (at < m->count - 1 && !is_word(m->token[at]))
        at++;
    if (is_number(m->token[at])) {
        const char *number = numbers[below(sizeof numbers / sizeof *numbers)];
        m->token[at] = (Token){number, (int)strlen(number)};
        return;
    }
    const Model *source = below(3) ? m : words;
    for (int tries = 0; tries < 50; tries++) {
        Token token = source->token[below((unsigned)source->count)];
        if (is_word(token) && !is_number(token)) {
            m->token[at] = token;
            return;
        }
    }
}

static void change(Model *m, const Model *words)
{
    if (m->count < 2)
        return;
    int a = (int)below((unsigned)m->count), b = (int)below((unsigned)m->count);
    Token swapped = m->token[a];
    switch (below(16)) {
    case 0:
        erase(m, a, 1);
        break;
    case 1:
        erase(m, a, 1 + (int)below(30));
        break;
    case 2:
        insert(m, a, any_word(words));
        break;
    case 3:
        copy_line(m, a, b);
        break;
    case 4:
        m->token[a] = m->token[b];
        m->token[b] = swapped;
        break;
    case 5:
        m->token[a] = m->token[b];
        break;
    default:
        exchange(m, words, a);
    }
}

static void write_model(const Model *m, const char *path)
{
    FILE *file = fopen(path, "wb");
    if (!file) {
        perror(path);
        exit(2);
    }
    for (int i = 0; i < m->count; i++)
        fwrite(m->token[i].at, 1, (size_t)m->token[i].length, file);
    fclose(file);
}

static const char *const ways[][5] = {
    {"--emit", "c"},
    {"--infer", "--emit", "c"},
    {"--emit", "json"},
    {"--train", "--budget", "3M", "--emit", "c"},
    {"--infer", "--io", "external", "--emit", "html"},
    {"--min-budget", "--infer"},
    {"--emit", "graph"},
    {"--accumulate", "2", "--report"},
    {"--accumulate", "auto", "--budget", "300K", "--report"},
};

/* The status as the shell has it; output goes nowhere, messages to fuzz.err. */
static int run(const char *gplan, const char *model, const char *const *way)
{
    const char *argv[12] = {gplan, model, "--effort", "1000", "--color", "never"};
    for (int i = 0; i < 5 && way[i]; i++)
        argv[6 + i] = way[i];
    pid_t child = fork();
    if (child == 0) {
        struct rlimit time = {MOST_SECONDS, MOST_SECONDS};
        setrlimit(RLIMIT_CPU, &time);
        int nowhere = open("/dev/null", O_RDWR);
        int messages = open("fuzz.err", O_WRONLY | O_CREAT | O_TRUNC, 0666);
        dup2(nowhere, 0);
        dup2(nowhere, 1);
        dup2(messages, 2);
        execv(gplan, (char *const *)argv);
        _exit(127);
    }
    int status;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Done, or a message about the model. */
static bool is_good(int status)
{
    char *messages = read_file("fuzz.err");
    bool good = (status == 0 || (status == 1 && strstr(messages, "error: "))) &&
                !strstr(messages, "Sanitizer") && !strstr(messages, "runtime error");
    free(messages);
    return good;
}

static void blame(uint64_t seed, int status, const char *const *way)
{
    char path[64];
    snprintf(path, sizeof path, "fuzz_%llu.g", (unsigned long long)seed);
    rename("fuzz.g", path);
    printf("seed %llu: exit status %d: gplan %s --effort 1000", (unsigned long long)seed, status,
           path);
    for (int i = 0; i < 5 && way[i]; i++)
        printf(" %s", way[i]);
    char *messages = read_file("fuzz.err");
    printf("\n%.600s\n", messages);
    free(messages);
}

int main(int argc, char **argv)
{
    static Model model, words;
    if (argc < 6) {
        fprintf(stderr, "usage: fuzz GPLAN SECONDS FIRST_SEED WORDS MODEL...\n");
        return 2;
    }
    time_t end = time(NULL) + atoi(argv[2]);
    uint64_t first = strtoull(argv[3], NULL, 10), seed = first;
    int compiled = 0, failed = 0;
    split(&words, read_file(argv[4]));
    while (time(NULL) < end && failed < 10) {
        state = seed * 2654435761u + 12345;
        char *text = read_file(argv[5 + below((unsigned)argc - 5)]);
        split(&model, text);
        for (unsigned changes = 1 + below(3); changes > 0; changes--)
            change(&model, &words);
        write_model(&model, "fuzz.g");
        const char *const *way = ways[below(sizeof ways / sizeof *ways)];
        int status = run(argv[1], "fuzz.g", way);
        if (!is_good(status)) {
            blame(seed, status, way);
            failed++;
        }
        compiled += status == 0;
        free(text);
        seed++;
    }
    printf("seeds %llu to %llu: %llu models, %d compiled, %d failed\n", (unsigned long long)first,
           (unsigned long long)seed - 1, (unsigned long long)(seed - first), compiled, failed);
    return failed ? 1 : 0;
}
