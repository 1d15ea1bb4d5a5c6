/* Small faults in C: finds where a file could have one, and puts one in.
 *
 *     mutate list FILE...               every mutant, a line each
 *     mutate sample COUNT SEED FILE...  COUNT of them, the files in turns
 *     mutate apply ID FILE              FILE with that fault, on standard output
 *
 * A line is: ID, class, file:line, what stands there, what stands there then; tabs between them.
 * The ID hashes class, line and column text and not the line's number, so that it stays the same
 * while other lines change. The text is read as tokens: what clang-format leaves of spaces tells a
 * product from a pointer. */
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *at;
    size_t length;
    uint32_t line;
    char kind;  /* 'a' a name, '0' a number, '.' an operator, '"' a string or character */
    bool apart; /* a space on both sides */
} Token;

typedef struct {
    const char *path;
    char *text;
    size_t length;
    Token *token;
    size_t tokens;
} File;

typedef struct {
    const File *file;
    const char *class;
    const char *from, *to;               /* of the text: what goes */
    const char *second_from, *second_to; /* operands that change places; NULL */
    char with[8];                        /* what comes instead */
    uint32_t line;
    uint64_t id;
} Mutant;

static Mutant *mutants;
static size_t mutant_count, mutant_room;

static void *grow(void *old, size_t bytes)
{
    void *now = realloc(old, bytes);
    if (!now) {
        fprintf(stderr, "mutate: out of memory\n");
        exit(1);
    }
    return now;
}

/* ---- Tokens --------------------------------------------------------------------------------- */

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static size_t operator_length(const char *at)
{
    static const char *const all[] = {"<<=", ">>=", "...", "->", "++", "--", "<<", ">>",
                                      "<=",  ">=",  "==",  "!=", "&&", "||", "+=", "-=",
                                      "*=",  "/=",  "%=",  "&=", "|=", "^=", "##"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strncmp(at, all[i], strlen(all[i])) == 0)
            return strlen(all[i]);
    return 1;
}

/* After a comment, a blank, or a directive that is no macro's. */
static const char *skip(const char *at, bool line_begins, uint32_t *line)
{
    if (at[0] == '/' && at[1] == '*') {
        for (at += 2; *at && !(at[0] == '*' && at[1] == '/'); at++)
            *line += *at == '\n';
        return *at ? at + 2 : at;
    }
    if (at[0] == '/' && at[1] == '/')
        return at + strcspn(at, "\n");
    if (*at == '#' && line_begins) {
        bool macro = strncmp(at, "#define", 7) == 0;
        if (macro) { /* its body is code; its name is none */
            at += 7 + strspn(at + 7, " ");
            while (is_name(*at))
                at++;
            return *at == '(' ? at + strcspn(at, ")\n") + 1 : at;
        }
        for (; *at && *at != '\n'; at++)
            if (at[0] == '\\' && at[1] == '\n') {
                at++;
                ++*line;
            }
        return at;
    }
    if (isspace((unsigned char)*at) || *at == '\\') {
        *line += *at == '\n';
        return at + 1;
    }
    return NULL;
}

static size_t token_length(const char *at, char *kind)
{
    size_t length = 1;
    if (isdigit((unsigned char)*at) || (*at == '.' && isdigit((unsigned char)at[1]))) {
        *kind = '0';
        while (is_name(at[length]) || at[length] == '.' ||
               ((at[length] == '+' || at[length] == '-') && strchr("eEpP", at[length - 1])))
            length++;
    } else if (is_name(*at)) {
        *kind = 'a';
        while (is_name(at[length]))
            length++;
    } else if (*at == '"' || *at == '\'') {
        *kind = '"';
        for (; at[length] && at[length] != *at; length++)
            length += at[length] == '\\';
        length++;
    } else {
        *kind = '.';
        length = operator_length(at);
    }
    return length;
}

static void tokenize(File *file)
{
    uint32_t line = 1;
    size_t room = 0;
    bool line_begins = true;
    for (const char *at = file->text; *at;) {
        const char *next = skip(at, line_begins, &line);
        if (next) {
            line_begins =
                next > at && next[-1] == '\n' ? true : line_begins && isspace((unsigned char)*at);
            at = next;
            continue;
        }
        line_begins = false;
        if (file->tokens == room)
            file->token = grow(file->token, (room = room ? 2 * room : 1024) * sizeof(Token));
        Token *t = &file->token[file->tokens++];
        *t = (Token){.at = at, .line = line};
        t->length = token_length(at, &t->kind);
        at += t->length;
        t->apart =
            t->at > file->text && isspace((unsigned char)t->at[-1]) && isspace((unsigned char)*at);
    }
}

static bool read_file(const char *path, File *file)
{
    *file = (File){.path = path};
    FILE *from = fopen(path, "r");
    if (!from) {
        perror(path);
        return false;
    }
    for (size_t got = 1; got > 0; file->length += got) {
        file->text = grow(file->text, file->length + 65537);
        got = fread(file->text + file->length, 1, 65536, from);
    }
    file->text[file->length] = 0;
    fclose(from);
    tokenize(file);
    return true;
}

static bool is(const File *f, size_t i, const char *text)
{
    return i < f->tokens && f->token[i].length == strlen(text) &&
           memcmp(f->token[i].at, text, f->token[i].length) == 0;
}

static bool is_any(const File *f, size_t i, const char *const *texts)
{
    for (; *texts; texts++)
        if (is(f, i, *texts))
            return true;
    return false;
}

static const char *token_end(const File *f, size_t i)
{
    return f->token[i].at + f->token[i].length;
}

/* The token after the bracket that closes the one at i. */
static size_t behind_bracket(const File *f, size_t i)
{
    int depth = 0;
    for (; i < f->tokens; i++) {
        char c = f->token[i].kind == '.' ? *f->token[i].at : 0;
        depth += c == '(' || c == '[' || c == '{';
        depth -= c == ')' || c == ']' || c == '}';
        if (depth == 0)
            return i + 1;
    }
    return i;
}

/* The token after a name, a number or a bracket with all that is applied to it; i where there is
 * none. */
static size_t behind_operand(const File *f, size_t i)
{
    static const char *const signs[] = {"-", "!", "~", "&", "*", NULL};
    size_t at = i;
    while (is_any(f, at, signs) && !f->token[at].apart)
        at++;
    while (is(f, at, "(") && at + 1 < f->tokens && f->token[at + 1].kind == 'a') { /* a cast? */
        size_t end = behind_bracket(f, at);
        bool cast = end < f->tokens &&
                    (f->token[end].kind == 'a' || f->token[end].kind == '0' || is(f, end, "(")) &&
                    token_end(f, end - 1) == f->token[end].at;
        if (!cast)
            break;
        at = end;
    }
    if (at >= f->tokens || (f->token[at].kind == '.' && !is(f, at, "(")))
        return i;
    at = is(f, at, "(") ? behind_bracket(f, at) : at + 1;
    for (;;) {
        if (is(f, at, "(") || is(f, at, "["))
            at = behind_bracket(f, at);
        else if ((is(f, at, ".") || is(f, at, "->")) && at + 1 < f->tokens)
            at += 2;
        else
            return at;
    }
}

/* ---- Faults --------------------------------------------------------------------------------- */

static uint64_t hash(uint64_t h, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        h = (h ^ (unsigned char)text[i]) * 0x100000001b3u;
    return h;
}

static void add(const File *f, const char *class, size_t token, const char *from, const char *to,
                const char *with)
{
    if (mutant_count == mutant_room)
        mutants =
            grow(mutants, (mutant_room = mutant_room ? 2 * mutant_room : 4096) * sizeof *mutants);
    Mutant *m = &mutants[mutant_count++];
    *m = (Mutant){.file = f, .class = class, .from = from, .to = to, .line = f->token[token].line};
    snprintf(m->with, sizeof m->with, "%s", with);
    const char *begin = from, *end = from;
    while (begin > f->text && begin[-1] != '\n')
        begin--;
    end += strcspn(end, "\n");
    m->id = hash(0xcbf29ce484222325u, class, strlen(class));
    m->id = hash(m->id, f->path, strlen(f->path));
    m->id = hash(m->id, begin, (size_t)(end - begin));
    m->id = hash(m->id, (const char *)&(uint32_t){(uint32_t)(from - begin)}, sizeof(uint32_t));
    for (size_t i = mutant_count - 1; i-- > 0 && mutants[i].file == f;)
        if (mutants[i].id == m->id) /* the same line stands there twice */
            m->id++;
}

static void add_operator(const File *f, const char *class, size_t i, const char *with)
{
    add(f, class, i, f->token[i].at, token_end(f, i), with);
}

static bool is_value(const File *f, size_t i)
{
    return f->token[i].kind != '.' || is(f, i, ")") || is(f, i, "]");
}

/* a + b * c -> a; a * b -> a */
static void drop(const File *f, size_t i)
{
    bool term = is(f, i, "+") || is(f, i, "-");
    if (i == 0 || !f->token[i].apart || !is_value(f, i - 1) || !(term || is(f, i, "*")))
        return;
    size_t end = behind_operand(f, i + 1);
    while (term && end > i + 1 && end < f->tokens && f->token[end].apart &&
           (is(f, end, "*") || is(f, end, "/") || is(f, end, "%"))) {
        size_t next = behind_operand(f, end + 1);
        if (next == end + 1)
            break;
        end = next;
    }
    if (end > i + 1)
        add(f, term ? "term" : "factor", i, f->token[i].at, token_end(f, end - 1), "");
}

static void compare(const File *f, size_t i)
{
    static const struct {
        const char *is, *class, *with;
    } row[] = {{"<", "bound", "<="},   {"<=", "bound", "<"},   {">", "bound", ">="},
               {">=", "bound", ">"},   {"<", "turned", ">="},  {">", "turned", "<="},
               {"==", "turned", "!="}, {"!=", "turned", "=="}, {"&&", "logic", "||"},
               {"||", "logic", "&&"},  {"+", "sign", "-"},     {"-", "sign", "+"},
               {"+=", "assign", "="},  {"-=", "assign", "+="}, {"|=", "assign", "="},
               {"%", "sign", "/"}};
    for (size_t r = 0; r < sizeof row / sizeof *row && f->token[i].apart; r++)
        if (is(f, i, row[r].is) &&
            (*row[r].with == '=' || strcmp(row[r].class, "sign") != 0 || is_value(f, i - 1)))
            add_operator(f, row[r].class, i, row[r].with);
    if (is(f, i, "!") && i + 1 < f->tokens && f->token[i + 1].at == token_end(f, i))
        add_operator(f, "logic", i, "");
}

/* x[0] -> x[1] */
static void subscript(const File *f, size_t i)
{
    if (i < 2 || !is(f, i, "[") || f->token[i - 1].kind != 'a' || i + 2 >= f->tokens ||
        f->token[i + 1].kind != '0' || f->token[i + 1].length != 1 || !is(f, i + 2, "]"))
        return;
    if (f->token[i - 2].kind == 'a') /* a declaration: Item list[8] */
        return;
    add_operator(f, "subscript", i + 1, *f->token[i + 1].at == '0' ? "1" : "0");
}

/* f(a, b) -> f(b, a) */
static void swap(const File *f, size_t i)
{
    if (i < 1 || !is(f, i, "(") || f->token[i - 1].kind != 'a')
        return;
    size_t at = i + 1, end = behind_bracket(f, i);
    size_t last_from = 0, last_to = 0;
    while (at + 1 < end) {
        size_t to = behind_operand(f, at);
        bool whole = to > at && (is(f, to, ",") || to + 1 == end) && f->token[at].kind != '"';
        if (whole && last_to &&
            (token_end(f, to - 1) - f->token[at].at !=
                 token_end(f, last_to - 1) - f->token[last_from].at ||
             memcmp(f->token[at].at, f->token[last_from].at,
                    (size_t)(token_end(f, to - 1) - f->token[at].at)) != 0)) {
            add(f, "operand", last_from, f->token[last_from].at, token_end(f, last_to - 1), "");
            mutants[mutant_count - 1].second_from = f->token[at].at;
            mutants[mutant_count - 1].second_to = token_end(f, to - 1);
        }
        last_from = whole ? at : 0;
        last_to = whole ? to : 0;
        while (to < end && !is(f, to, ","))
            to =
                is(f, to, "(") || is(f, to, "[") || is(f, to, "{") ? behind_bracket(f, to) : to + 1;
        at = to + 1;
    }
}

/* f(x); -> ; and the like: a flush that is missed, a copy that is not made. */
static void omit(const File *f, size_t i)
{
    static const char *const begins[] = {"{", "}", ";", ")", NULL};
    static const char *const words[] = {"if", "for", "while", "switch", "return", "sizeof", NULL};
    if (i == 0 || !is_any(f, i - 1, begins) || f->token[i].kind != 'a')
        return;
    if (is(f, i, "continue") && is(f, i + 1, ";")) {
        add_operator(f, "omitted", i, "");
        return;
    }
    if (is_any(f, i, words) || !is(f, i + 1, "("))
        return;
    size_t end = behind_bracket(f, i + 1);
    if (is(f, end, ";"))
        add(f, "omitted", i, f->token[i].at, token_end(f, end - 1), "");
}

/* What changes no result: hints to the cache and to the compiler, and what says that it holds. */
static bool is_hint(const File *f, size_t i)
{
    const char *begin = f->token[i].at;
    while (begin > f->text && begin[-1] != '\n')
        begin--;
    char line[256];
    snprintf(line, sizeof line, "%.*s", (int)strcspn(begin, "\n"), begin);
    static const char *const hint[] = {"prefetch",      "PREFETCH", "assert",     "_Static",
                                       "__attribute__", "pragma",   "sizeof line"};
    for (size_t h = 0; h < sizeof hint / sizeof *hint; h++)
        if (strstr(line, hint[h]))
            return true;
    return false;
}

static void find_all(const File *f)
{
    for (size_t i = 1; i + 1 < f->tokens; i++) {
        if (is_hint(f, i))
            continue;
        drop(f, i);
        compare(f, i);
        subscript(f, i);
        swap(f, i);
        omit(f, i);
    }
}

/* ---- The command ---------------------------------------------------------------------------- */

static void print_part(const char *from, const char *to)
{
    for (bool blank = false; from < to; from++) {
        if (!isspace((unsigned char)*from) || !blank)
            putchar(isspace((unsigned char)*from) ? ' ' : *from);
        blank = isspace((unsigned char)*from);
    }
}

static void print_mutant(const Mutant *m)
{
    printf("%016llx\t%s\t%s:%u\t", (unsigned long long)m->id, m->class, m->file->path, m->line);
    print_part(m->from, m->second_to ? m->second_to : m->to);
    printf("\t");
    if (m->second_to) {
        print_part(m->second_from, m->second_to);
        printf(", ");
        print_part(m->from, m->to);
    } else {
        printf("%s", m->with);
    }
    printf("\n");
}

static uint64_t draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* One of each file in turn, so that a small file is seen as often as a large one, until there are
 * enough. */
static void sample(const File *file, int files, size_t count, uint64_t seed)
{
    uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
    bool *taken = grow(NULL, mutant_count + 1);
    memset(taken, 0, mutant_count + 1);
    for (size_t done = 0, before = 1; done < count && done != before;) {
        before = done;
        for (int i = 0; i < files && done < count; i++) {
            size_t first = 0, many = 0;
            for (size_t m = 0; m < mutant_count; m++)
                if (mutants[m].file == &file[i] && !many++)
                    first = m;
            for (int tries = 0; many && tries < 20; tries++) {
                size_t m = first + (size_t)(draw(&state) % many);
                if (taken[m])
                    continue;
                taken[m] = true;
                print_mutant(&mutants[m]);
                done++;
                break;
            }
        }
    }
    free(taken);
}

static void write_part(const char *from, const char *to)
{
    fwrite(from, 1, (size_t)(to - from), stdout);
}

static int apply(const File *f, uint64_t id)
{
    for (size_t i = 0; i < mutant_count; i++) {
        const Mutant *m = &mutants[i];
        if (m->id != id)
            continue;
        write_part(f->text, m->from);
        if (m->second_to) {
            write_part(m->second_from, m->second_to);
            write_part(m->to, m->second_from);
            write_part(m->from, m->to);
        } else {
            printf("%s", m->with);
        }
        write_part(m->second_to ? m->second_to : m->to, f->text + f->length);
        return fflush(stdout) ? 1 : 0;
    }
    fprintf(stderr, "mutate: %s has no mutant %016llx\n", f->path, (unsigned long long)id);
    return 1;
}

int main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[1] : "";
    int first = strcmp(what, "list") == 0     ? 2
                : strcmp(what, "sample") == 0 ? 4
                : strcmp(what, "apply") == 0  ? 3
                                              : argc;
    if (first >= argc) {
        fprintf(stderr, "usage: mutate list FILE... | sample COUNT SEED FILE... | apply ID FILE\n");
        return 2;
    }
    int files = argc - first;
    File *file = grow(NULL, (size_t)files * sizeof *file);
    for (int i = 0; i < files; i++)
        if (!read_file(argv[first + i], &file[i]))
            return 1;
    for (int i = 0; i < files; i++)
        find_all(&file[i]);
    if (first == 3)
        return apply(&file[0], strtoull(argv[2], NULL, 16));
    if (first == 4)
        sample(file, files, strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
    for (size_t i = 0; i < mutant_count && first == 2; i++)
        print_mutant(&mutants[i]);
    return 0;
}
