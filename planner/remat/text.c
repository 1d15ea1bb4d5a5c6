/* Problems as text, in two formats told apart by their first word.
 *
 * Numbers: `nodes edges`, then a line `size cost` for each node in a valid order, then a line
 * `from to` for each edge, nodes counted from 0. Line ends do not matter.
 *
 * Names: a line a node or edge, in any order; `#` begins a comment.
 *
 *     node NAME size=BYTES cost=TIME [work=BYTES] [once] [output]
 *     edge FROM TO
 *     NAME: INPUT INPUT ...
 *
 * The order of the node lines is the baseline; where it is not valid, the nearest that is. */
#include "frontend/base/arena.h"
#include "planner/remat/remat.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NODES = 1 << 24, MOST_EDGES = 1 << 27 };

typedef struct {
    RematId from, to;
    unsigned line;
} Edge;

typedef struct {
    const char *path;
    FILE *errors;
    Arena *arena;
    char *text, *at; /* at: the rest of the text, or of the line */
    unsigned line;
    bool failed;
    int64_t bytes; /* of all sizes */
    ARRAY(RematNode) node;
    ARRAY(int64_t) size;
    ARRAY(bool) output;
    ARRAY(const char *) name;
    ARRAY(unsigned) node_line;
    ARRAY(Edge) edge;
    RematId *bucket; /* names by hash: node + 1 */
    size_t buckets;
} Reader;

__attribute__((format(printf, 3, 4))) static bool fail(Reader *reader, unsigned line,
                                                       const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *message = arena_vprintf(reader->arena, format, args);
    va_end(args);
    if (!reader->failed)
        fprintf(reader->errors, "%s:%u: error: %s\n", reader->path, line, message);
    reader->failed = true;
    return false;
}

static bool read_all(Reader *reader, FILE *file)
{
    ARRAY(char) text = {0};
    for (int c; (c = getc(file)) != EOF;) {
        if (!c)
            return fail(reader, 1, "this is not text: it has a zero byte");
        ARRAY_PUSH(reader->arena, &text, (char)c);
    }
    if (ferror(file))
        return fail(reader, 1, "cannot read: %s", strerror(errno));
    ARRAY_PUSH(reader->arena, &text, '\0');
    reader->text = reader->at = text.at;
    reader->line = 1;
    return true;
}

/* ---- words ---- */

/* The next word, cut off with a zero; NULL at the end. Counts the lines it passes. */
static char *next_word(Reader *reader, bool within_line)
{
    char *at = reader->at;
    while (isspace((unsigned char)*at) && !(within_line && *at == '\n'))
        reader->line += *at++ == '\n';
    reader->at = at;
    if (!*at || *at == '\n')
        return NULL;
    size_t length = 0;
    while (at[length] && !isspace((unsigned char)at[length]))
        length++;
    reader->at = at + length;
    return arena_copy(reader->arena, at, length);
}

/* A short form of a word for a message. */
static const char *shown(Reader *reader, const char *word)
{
    if (!word)
        return "the end";
    char *copy = arena_printf(reader->arena, "'%.40s%s'", word, strlen(word) > 40 ? "..." : "");
    for (char *c = copy; *c; c++)
        if (!isprint((unsigned char)*c))
            *c = '?';
    return copy;
}

static bool parse_bytes(Reader *reader, const char *word, const char *what, int64_t *result)
{
    char *end;
    errno = 0;
    long long number = word ? strtoll(word, &end, 10) : 0;
    if (!word || end == word || *end)
        return fail(reader, reader->line, "expected %s, saw %s", what, shown(reader, word));
    if (number < 0)
        return fail(reader, reader->line, "%s is negative: %s", what, word);
    if (errno || number > (int64_t)1 << 56)
        return fail(reader, reader->line, "%s is too large: %s", what, shown(reader, word));
    *result = number;
    return true;
}

static bool parse_cost(Reader *reader, const char *word, double *result)
{
    char *end;
    double number = word ? strtod(word, &end) : 0;
    if (!word || end == word || *end || isalpha((unsigned char)word[word[0] == '-']))
        return fail(reader, reader->line, "expected a cost, saw %s", shown(reader, word));
    if (number < 0)
        return fail(reader, reader->line, "a cost is negative: %s", word);
    if (!(number <= 1e200))
        return fail(reader, reader->line, "a cost is too large: %s", shown(reader, word));
    *result = number;
    return true;
}

static bool add_node(Reader *reader, const char *name, RematNode node, int64_t size, bool output)
{
    reader->bytes += size;
    if (reader->bytes > (int64_t)1 << 57)
        return fail(reader, reader->line, "the sizes together are too large");
    ARRAY_PUSH(reader->arena, &reader->node, node);
    ARRAY_PUSH(reader->arena, &reader->size, size);
    ARRAY_PUSH(reader->arena, &reader->output, output);
    ARRAY_PUSH(reader->arena, &reader->name, name);
    ARRAY_PUSH(reader->arena, &reader->node_line, reader->line);
    return true;
}

/* ---- numbers ---- */

static bool read_count(Reader *reader, const char *what, int64_t most, int64_t *result)
{
    if (!parse_bytes(reader, next_word(reader, false), what, result))
        return false;
    if (*result > most)
        return fail(reader, reader->line, "%s is too large: %lld", what, (long long)*result);
    return true;
}

static bool read_numbers(Reader *reader)
{
    int64_t nodes, edges, size, ends[2];
    if (!read_count(reader, "the number of nodes", MOST_NODES, &nodes) ||
        !read_count(reader, "the number of edges", MOST_EDGES, &edges))
        return false;
    for (int64_t x = 0; x < nodes; x++) {
        RematNode node = {0};
        if (!read_count(reader, "a size", INT64_MAX, &size) ||
            !parse_cost(reader, next_word(reader, false), &node.cost) ||
            !add_node(reader, NULL, node, size, false))
            return false;
    }
    for (int64_t i = 0; i < edges; i++) {
        for (int j = 0; j < 2; j++) {
            if (!read_count(reader, "a node of an edge", INT64_MAX, &ends[j]))
                return false;
            if (ends[j] >= nodes)
                return fail(reader, reader->line, "there is no node %lld: nodes are 0 to %lld",
                            (long long)ends[j], (long long)nodes - 1);
        }
        if (ends[0] >= ends[1])
            return fail(reader, reader->line,
                        "edge %lld %lld goes against the order of the lines, or is a cycle",
                        (long long)ends[0], (long long)ends[1]);
        Edge edge = {(RematId)ends[0], (RematId)ends[1], reader->line};
        ARRAY_PUSH(reader->arena, &reader->edge, edge);
    }
    char *more = next_word(reader, false);
    if (more)
        return fail(reader, reader->line, "expected the end after %lld edges, saw %s",
                    (long long)edges, shown(reader, more));
    return true;
}

/* ---- names ---- */

static RematId *find_bucket(Reader *reader, const char *name)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (const char *c = name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    size_t i = hash % reader->buckets;
    while (reader->bucket[i] && strcmp(reader->name.at[reader->bucket[i] - 1], name) != 0)
        i = (i + 1) % reader->buckets;
    return &reader->bucket[i];
}

static void remember(Reader *reader, RematId node)
{
    if (2 * (size_t)node >= reader->buckets) {
        reader->buckets = reader->buckets ? 4 * reader->buckets : 1024;
        reader->bucket = ARENA_ARRAY(reader->arena, RematId, reader->buckets);
        for (RematId x = 0; x < node; x++)
            *find_bucket(reader, reader->name.at[x]) = x + 1;
    }
    *find_bucket(reader, reader->name.at[node]) = node + 1;
}

static bool read_property(Reader *reader, const char *word, RematNode *node, int64_t *size,
                          bool *output)
{
    if (!strcmp(word, "once"))
        node->flags |= REMAT_ONCE;
    else if (!strcmp(word, "output"))
        *output = true;
    else if (!strncmp(word, "size=", 5))
        return parse_bytes(reader, word + 5, "a size", size);
    else if (!strncmp(word, "work=", 5))
        return parse_bytes(reader, word + 5, "a workspace", &node->workspace);
    else if (!strncmp(word, "cost=", 5))
        return parse_cost(reader, word + 5, &node->cost);
    else
        return fail(reader, reader->line, "expected size=, cost=, work=, once or output, saw %s",
                    shown(reader, word));
    return true;
}

static bool read_node(Reader *reader)
{
    char *name = next_word(reader, true), *word;
    RematNode node = {.cost = -1};
    int64_t size = -1;
    bool output = false;
    if (!name || strchr(name, ':') || strchr(name, '='))
        return fail(reader, reader->line, "expected a name, saw %s", shown(reader, name));
    if (reader->buckets && *find_bucket(reader, name))
        return fail(reader, reader->line, "node %s is on line %u already", shown(reader, name),
                    reader->node_line.at[*find_bucket(reader, name) - 1]);
    while ((word = next_word(reader, true)))
        if (!read_property(reader, word, &node, &size, &output))
            return false;
    if (size < 0 || node.cost < 0)
        return fail(reader, reader->line, "node %s has no %s", shown(reader, name),
                    size < 0 ? "size=" : "cost=");
    if (reader->node.count == MOST_NODES)
        return fail(reader, reader->line, "there are too many nodes");
    if (!add_node(reader, name, node, size, output))
        return false;
    remember(reader, (RematId)reader->node.count - 1);
    return true;
}

static bool find_node(Reader *reader, const char *name, RematId *node)
{
    if (!name)
        return fail(reader, reader->line, "expected the name of a node, saw the end of the line");
    RematId found = reader->buckets ? *find_bucket(reader, name) : 0;
    if (!found)
        return fail(reader, reader->line, "there is no node %s", shown(reader, name));
    *node = found - 1;
    return true;
}

static bool read_edges(Reader *reader, char *word)
{
    size_t length = strlen(word);
    Edge edge = {.line = reader->line};
    if (!strcmp(word, "edge")) {
        if (!find_node(reader, next_word(reader, true), &edge.from) ||
            !find_node(reader, next_word(reader, true), &edge.to))
            return false;
        ARRAY_PUSH(reader->arena, &reader->edge, edge);
        word = next_word(reader, true);
        return !word || fail(reader, reader->line, "expected the end of the line, saw %s",
                             shown(reader, word));
    }
    if (word[length - 1] != ':')
        return fail(reader, reader->line, "expected node, edge or 'NAME:', saw %s",
                    shown(reader, word));
    word[length - 1] = '\0';
    if (!find_node(reader, word, &edge.to))
        return false;
    while ((word = next_word(reader, true))) {
        if (!find_node(reader, word, &edge.from))
            return false;
        ARRAY_PUSH(reader->arena, &reader->edge, edge);
    }
    return true;
}

/* Nodes first, then edges, so that lines may come in any order. */
static bool read_names(Reader *reader)
{
    for (int round = 0; round < 2; round++) {
        reader->at = reader->text;
        reader->line = 1;
        for (char *word; (word = next_word(reader, false));) {
            bool is_node = !strcmp(word, "node");
            if (is_node && !round && !read_node(reader))
                return false;
            if (!is_node && round && !read_edges(reader, word))
                return false;
            reader->at += strcspn(reader->at, "\n");
        }
    }
    return true;
}

static void blank_comments(char *text)
{
    for (bool comment = false; *text; text++) {
        comment = *text == '#' || (comment && *text != '\n');
        if (comment)
            *text = ' ';
    }
}

/* ---- the problem ---- */

static int by_ends(const void *a, const void *b)
{
    const Edge *x = a, *y = b;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    return (x->from > y->from) - (x->from < y->from);
}

/* Nodes in a valid order, each as early as its line allows; false: a cycle. */
static bool sort_nodes(Reader *reader, RematId *order)
{
    size_t nodes = reader->node.count, edges = reader->edge.count, count = 0;
    RematId *waits = ARENA_ARRAY(reader->arena, RematId, nodes);
    RematId *stack = ARENA_ARRAY(reader->arena, RematId, nodes + 1);
    size_t *next = ARENA_ARRAY(reader->arena, size_t, nodes + 1);
    const Edge *edge = reader->edge.at; /* sorted by `to` */
    for (size_t i = 0, x = 0; x < nodes; x++) {
        next[x] = i;
        while (i < edges && edge[i].to == x)
            i++;
    }
    enum { NEW, OPEN, PLACED };
    for (RematId root = 0; root < nodes; root++) {
        size_t depth = 0;
        if (waits[root] == NEW)
            stack[depth++] = root;
        while (depth) {
            RematId x = stack[depth - 1];
            waits[x] = OPEN;
            while (next[x] < edges && edge[next[x]].to == x && waits[edge[next[x]].from] == PLACED)
                next[x]++;
            if (next[x] == edges || edge[next[x]].to != x) {
                waits[x] = PLACED;
                order[count++] = x;
                depth--;
            } else if (waits[edge[next[x]].from] == OPEN) {
                return fail(reader, edge[next[x]].line, "%s and %s are on a cycle",
                            shown(reader, reader->name.at[edge[next[x]].from]),
                            shown(reader, reader->name.at[x]));
            } else {
                stack[depth++] = edge[next[x]].from;
            }
        }
    }
    return true;
}

static bool build(Reader *reader, RematProblem *problem)
{
    size_t nodes = reader->node.count, edges = reader->edge.count, reads = 0;
    if (!nodes)
        return fail(reader, reader->line, "there are no nodes");
    Arena *arena = reader->arena;
    if (edges)
        qsort(reader->edge.at, edges, sizeof *reader->edge.at, by_ends);
    RematId *order = ARENA_ARRAY(arena, RematId, nodes),
            *place = ARENA_ARRAY(arena, RematId, nodes);
    size_t *first = ARENA_ARRAY(arena, size_t, nodes + 1);
    if (!sort_nodes(reader, order))
        return false;
    for (size_t i = 0; i < nodes; i++)
        place[order[i]] = (RematId)i;
    for (size_t i = 0; i < edges; i++)
        first[reader->edge.at[i].to + 1] = i + 1;
    for (size_t x = 0; x < nodes; x++)
        first[x + 1] = first[x + 1] > first[x] ? first[x + 1] : first[x];
    *problem = (RematProblem){.nodes = (RematId)nodes, .values = (RematId)nodes};
    problem->node = ARENA_ARRAY(arena, RematNode, nodes);
    problem->value = ARENA_ARRAY(arena, RematValue, nodes);
    problem->read = ARENA_ARRAY(arena, RematId, edges);
    problem->name = reader->name.at[0] ? ARENA_ARRAY(arena, const char *, nodes) : NULL;
    for (RematId i = 0; i < nodes; i++) {
        RematId x = order[i];
        problem->node[i] = reader->node.at[x];
        problem->node[i].read = (RematId)reads;
        for (size_t e = first[x]; e < first[x + 1]; e++)
            if (e == first[x] || reader->edge.at[e].from != reader->edge.at[e - 1].from)
                problem->read[reads++] = place[reader->edge.at[e].from];
        problem->node[i].reads = (RematId)reads - problem->node[i].read;
        problem->node[i].value = i;
        problem->node[i].values = 1;
        uint32_t flags = reader->output.at[x] ? REMAT_OUTPUT : 0;
        problem->value[i] = (RematValue){reader->size.at[x], i, REMAT_NONE, REMAT_NONE, flags};
        if (problem->name)
            problem->name[i] = reader->name.at[x];
    }
    problem->reads = (RematId)reads;
    return true;
}

bool remat_read(FILE *file, const char *path, Arena *arena, RematProblem *problem, FILE *errors)
{
    Reader reader = {.path = path, .errors = errors, .arena = arena};
    if (!read_all(&reader, file))
        return false;
    blank_comments(reader.text);
    reader.at += strspn(reader.at, " \t\r\n");
    bool numbers = !*reader.at || isdigit((unsigned char)*reader.at) || *reader.at == '-';
    reader.at = reader.text;
    if (!(numbers ? read_numbers(&reader) : read_names(&reader)) || !build(&reader, problem))
        return false;
    const char *error = remat_problem_error(problem);
    return !error || fail(&reader, 1, "%s", error);
}

void remat_write(FILE *file, const RematProblem *problem, const RematSchedule *schedule)
{
    for (size_t i = 0; i < schedule->count; i++) {
        RematId x = schedule->node[i];
        if (problem->name)
            fprintf(file, "%s\n", problem->name[x]);
        else
            fprintf(file, "%u\n", (unsigned)x);
    }
}
