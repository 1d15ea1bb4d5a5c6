/* A model, compiled in one of several ways. */
#include "frontend/frontend.h"
#include "tests/fuzz/door.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Little effort, so that there is time for many models. */
#define LITTLE "--effort", "1", "--color", "never", "--quiet"
static const char *const ways[][12] = {
    {LITTLE, "--emit", "c"},
    {LITTLE, "--infer", "--emit", "c"},
    {LITTLE, "--emit", "json"},
    {LITTLE, "--train", "--budget", "300K", "--emit", "c"},
    {LITTLE, "--infer", "--io", "external", "--emit", "html"},
    {LITTLE, "--emit", "graph"},
    {LITTLE, "--emit", "dot", "--depth", "1"},
    {LITTLE, "--accumulate", "2", "--report"},
    {LITTLE, "--chunked-loss", "always", "--epilogues", "never", "--emit", "trace"},
    {LITTLE, "--emit", "cu"},
    {LITTLE, "--emit", "svg", "--recompute", "none"},
    {LITTLE, "-d", "lower,train,simplify,fuse,plan"},
};
/* Each of these makes many plans, up to thousands: more than half of the time went to one of them
 * while all had the same share. */
static const char *const searches[][12] = {
    {LITTLE, "--min-budget", "--params", "external"},
    {LITTLE, "--accumulate", "auto", "--budget", "30K", "--report"},
    {LITTLE, "--budget", "100K", "--max", "B"},
    {LITTLE, "--pareto", "--infer"},
};
enum { WAYS = sizeof ways / sizeof *ways, SEARCHES = sizeof searches / sizeof *searches };
enum { RARE = 32 }; /* one model in so many is searched for */

static const char *const *way_of(const uint8_t *data, size_t size)
{
    uint64_t hash = door_hash(data, size);
    return hash % RARE ? ways[hash / RARE % WAYS] : searches[hash / RARE % SEARCHES];
}

/* Models that were taken. Left alone, a fuzzer goes from one error to the next, each of which it
 * has not seen yet, and hardly ever comes to the planner: so most changes are made to one of these.
 * A model of the corpus has a line of its own: what comes of it takes no other's place, and now and
 * then the line begins anew. Else the easiest to change right would soon be all there are, which
 * are long sums and products that train nothing.
 * They are in no memory that is taken here: the fuzzer would see it as a leak. */
enum { LINES = 64, MOST_KEPT = 2048, ANEW = 32 };
typedef struct {
    uint8_t data[MOST_KEPT];
    size_t size;
} Kept;
static struct {
    Kept first, last;
} lines[LINES];
static unsigned begun;   /* lines, or how many could have been */
static int changed = -1; /* the line whose model was changed last; -1: none */
static bool fuzzing;     /* something was changed: what came before is the corpus */
static Dice pick;

static void keep(Kept *in, const uint8_t *data, size_t size)
{
    memcpy(in->data, data, in->size = size);
}

/* A model was taken. */
static void follow(const uint8_t *data, size_t size)
{
    if (size > MOST_KEPT)
        return;
    if (changed >= 0) {
        keep(&lines[changed].last, data, size);
        if (dice_below(&pick, ANEW) == 0)
            lines[changed].last = lines[changed].first;
    } else if (!fuzzing) {
        unsigned at = begun < LINES ? begun : dice_below(&pick, begun + 1);
        begun++;
        if (at >= LINES)
            return;
        keep(&lines[at].first, data, size);
        keep(&lines[at].last, data, size);
    }
}

static size_t take_line(Dice *dice, uint8_t *data, size_t size, size_t most)
{
    changed = -1;
    fuzzing = true;
    if (!begun || dice_below(dice, 4) == 0)
        return size;
    unsigned at = dice_below(dice, begun < LINES ? begun : LINES);
    const Kept *from = dice_below(dice, 2) ? &lines[at].first : &lines[at].last;
    if (from->size > most)
        return size;
    changed = (int)at;
    memcpy(data, from->data, from->size);
    return from->size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *argument[16] = {door_file(data, size)};
    const char *const *way = way_of(data, size);
    for (int i = 0; i < 12 && way[i]; i++)
        argument[1 + i] = way[i];
    if (door_run(argument) == 0) {
        door_accept(data, size);
        follow(data, size);
    }
    return 0;
}

/* ---- Changes of words -------------------------------------------------------------------------
 */

enum { MOST_TOKENS = 20000 };

typedef struct {
    const char *at;
    size_t length;
} Token;

typedef struct {
    Token token[MOST_TOKENS];
    int count;
} Words;

/* Words, numbers, blanks, and every other character for itself. */
static void split(Words *m, const char *text, size_t size)
{
    const char *end = text + size;
    m->count = 0;
    while (text < end && m->count < MOST_TOKENS / 2) {
        size_t left = (size_t)(end - text), length = 1;
        if (isalnum((unsigned char)*text) || *text == '_')
            while (length < left && (isalnum((unsigned char)text[length]) || text[length] == '_'))
                length++;
        else if (*text == ' ')
            while (length < left && text[length] == ' ')
                length++;
        else if (*text == '#')
            while (length < left && text[length] != '\n')
                length++;
        m->token[m->count++] = (Token){text, length};
        text += length;
    }
}

static Token token_of(const char *text)
{
    return (Token){text, strlen(text)};
}

/* The name of an op, or of an argument of it. */
static Token any_name(Dice *dice)
{
    static size_t rows;
    while (op_at(rows))
        rows++;
    const OpRow *op = op_at(dice_below(dice, (unsigned)rows));
    const Arg *arg = &op->args[dice_below(dice, MAX_ARGS)];
    return token_of(arg->name && dice_below(dice, 3) == 0 ? arg->name : op->name);
}

static Token any_word(Dice *dice)
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
        "accumulate = auto",
        "clip = 0.5",
        "over = micro",
        "reduction = none",
        "-9223372036854775808",
    };
    enum { ODD = sizeof odd / sizeof *odd };
    unsigned i = dice_below(dice, 2 * ODD);
    return i < ODD ? token_of(odd[i]) : any_name(dice);
}

static void insert(Words *m, int at, Token token)
{
    if (m->count == MOST_TOKENS)
        return;
    memmove(m->token + at + 1, m->token + at, (size_t)(m->count - at) * sizeof *m->token);
    m->token[at] = token;
    m->count++;
}

static void erase(Words *m, int at, int count)
{
    if (count > m->count - at)
        count = m->count - at;
    m->count -= count;
    memmove(m->token + at, m->token + at + count, (size_t)(m->count - at) * sizeof *m->token);
}

static int line_start(const Words *m, int at)
{
    while (at > 0 && *m->token[at - 1].at != '\n')
        at--;
    return at;
}

/* One line again, somewhere else. */
static void copy_line(Words *m, int from, int to)
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

static bool is_called(const Words *m, int at)
{
    return at + 1 < m->count && *m->token[at + 1].at == '(';
}

/* A number for a number, an op for an op, a name for a name: the grammar stays, so this goes
 * deepest. */
static void exchange(Words *m, Dice *dice, int at)
{
    static const char *const numbers[] = {"1", "2", "2", "3", "4", "4", "8", "0", "12", "1000000"};
    while (at < m->count - 1 && !is_word(m->token[at]))
        at++;
    if (is_number(m->token[at])) {
        m->token[at] = token_of(numbers[dice_below(dice, sizeof numbers / sizeof *numbers)]);
        return;
    }
    if (is_called(m, at) && dice_below(dice, 2)) {
        m->token[at] = any_name(dice);
        return;
    }
    for (int tries = 0; tries < 50; tries++) {
        int from = (int)dice_below(dice, (unsigned)m->count);
        Token token = m->token[from];
        if (is_word(token) && !is_number(token) && is_called(m, from) == is_called(m, at)) {
            m->token[at] = token;
            return;
        }
    }
}

static void change(Words *m, Dice *dice)
{
    if (m->count < 2)
        return;
    int a = (int)dice_below(dice, (unsigned)m->count),
        b = (int)dice_below(dice, (unsigned)m->count);
    Token swapped = m->token[a];
    switch (dice_below(dice, 24)) {
    case 0:
        erase(m, a, 1);
        break;
    case 1:
        erase(m, a, 1 + (int)dice_below(dice, 30));
        break;
    case 2:
        insert(m, a, any_word(dice));
        break;
    case 3:
    case 4:
        copy_line(m, a, b);
        break;
    case 5:
        m->token[a] = m->token[b];
        m->token[b] = swapped;
        break;
    case 6:
        m->token[a] = m->token[b];
        break;
    default:
        exchange(m, dice, a);
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    static Words words;
    Dice dice = {seed};
    size = take_line(&dice, data, size, most);
    if (size < 2 || dice_below(&dice, 12) == 0)
        return LLVMFuzzerMutate(data, size, most);
    char *text = malloc(size);
    memcpy(text, data, size);
    split(&words, text, size);
    for (unsigned changes = dice_below(&dice, 4) ? 1 : 3; changes > 0; changes--)
        change(&words, &dice);
    size_t length = 0;
    for (int i = 0; i < words.count && length + words.token[i].length <= most; i++) {
        memcpy(data + length, words.token[i].at, words.token[i].length);
        length += words.token[i].length;
    }
    free(text);
    return length;
}
