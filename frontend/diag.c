/* Messages about what the user wrote, and the text they are about.
 *
 * Nothing of the source reaches the terminal raw: bytes that are no printable UTF-8 are shown as
 * escapes, tabs as spaces, and a long line is cut round the caret. The same message at the same
 * place is shown once, however often a block is unrolled.
 */
#include "frontend/base/names.h"
#include "frontend/frontend.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

enum {
    MAX_ERRORS = 20,
    MAX_NOTES = 8,      /* of one message */
    SHOWN_COLUMNS = 96, /* of a source line */
    SHOWN_BEFORE = 60,  /* of them before the caret, where the line is cut */
    TAB = 4,
};

struct Diag {
    Arena *arena;
    FILE *to;
    bool color;
    const Source *source;
    NameTable *seen; /* messages that are out, with their places */
    int errors;      /* also those that are not shown */
    int shown, notes;
    Message first; /* error; text NULL: none */
    bool muted;    /* the last message was not shown, so its notes are not either */
};

Diag *diag_new(Arena *arena, FILE *to, bool color)
{
    Diag *diag = ARENA_NEW(arena, Diag);
    diag->arena = arena;
    diag->to = to;
    diag->color = color;
    diag->seen = names_new(arena);
    return diag;
}

void diag_source(Diag *diag, const Source *source)
{
    diag->source = source;
}

int diag_errors(const Diag *diag)
{
    return diag->errors;
}

const Message *diag_first(const Diag *diag)
{
    return diag->first.text ? &diag->first : NULL;
}

Message message_copy(Arena *arena, const Message *m)
{
    if (!m || !m->text)
        return (Message){.text = NULL};
    return (Message){.span = m->span,
                     .text = arena_copy(arena, m->text, strlen(m->text)),
                     .hint = m->hint ? arena_copy(arena, m->hint, strlen(m->hint)) : NULL};
}

bool diag_full(const Diag *diag)
{
    return diag->shown >= MAX_ERRORS;
}

/* ---- Characters ----------------------------------------------------------------------------- */

/* Decodes one character of UTF-8; invalid bytes are one character each, *code = -1. */
static size_t decode(const char *text, size_t left, int32_t *code)
{
    const unsigned char *s = (const unsigned char *)text;
    *code = s[0];
    if (s[0] < 0x80)
        return 1;
    size_t length = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    static const int32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    *code = s[0] & (0xff >> (length + 1));
    bool good = s[0] >= 0xc2 && s[0] <= 0xf4 && length <= left;
    for (size_t i = 1; good && i < length; i++) {
        good = (s[i] & 0xc0) == 0x80;
        *code = *code << 6 | (s[i] & 0x3f);
    }
    good =
        good && *code >= least[length] && *code <= 0x10ffff && (*code < 0xd800 || *code > 0xdfff);
    if (good)
        return length;
    *code = -1;
    return 1;
}

/* Characters that a terminal would obey instead of showing. */
static bool is_hidden(int32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x200b && code <= 0x200f) ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f) ||
           code == 0xfeff;
}

static int width(int32_t code)
{
    if (code >= 0x300 && code <= 0x36f) /* combining marks */
        return 0;
    bool wide = (code >= 0x1100 && code <= 0x115f) || (code >= 0x2e80 && code <= 0xa4cf) ||
                (code >= 0xac00 && code <= 0xd7a3) || (code >= 0xf900 && code <= 0xfaff) ||
                (code >= 0xfe30 && code <= 0xfe6f) || (code >= 0xff00 && code <= 0xff60) ||
                (code >= 0x1f300 && code <= 0x1faff) || (code >= 0x20000 && code <= 0x3fffd);
    return wide ? 2 : 1;
}

/* Writes one character so that it is safe to show; returns how many columns it took. */
static int put(FILE *to, const char *text, size_t length, int32_t code)
{
    if (code >= 0 && !is_hidden(code)) {
        fwrite(text, 1, length, to);
        return width(code);
    }
    if (code < 0x80)
        return fprintf(to, "\\x%02x", (unsigned char)*text);
    return fprintf(to, "\\u{%x}", (unsigned)code);
}

static void put_text(FILE *to, const char *text)
{
    size_t left = strlen(text);
    while (left) {
        int32_t code;
        size_t length = decode(text, left, &code);
        put(to, text, length, code);
        text += length;
        left -= length;
    }
}

/* ---- The source line ------------------------------------------------------------------------ */

static const char *find_line(const Source *source, uint32_t line, size_t *length)
{
    const char *at = source->text, *end = source->text + source->length;
    for (; line > 1; line--) {
        const char *next = memchr(at, '\n', (size_t)(end - at));
        if (!next)
            return NULL;
        at = next + 1;
    }
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    *length = (size_t)((stop ? stop : end) - at);
    if (*length && at[*length - 1] == '\r')
        --*length;
    return at;
}

static size_t skip_columns(const char *text, size_t length, uint32_t columns)
{
    size_t at = 0;
    int32_t code;
    while (columns-- && at < length)
        at += decode(text + at, length - at, &code);
    return at;
}

static const char *paint(const Diag *diag, const char *code)
{
    return diag->color ? code : "";
}

/* The source line, and under it a caret at the place and ~ along it. */
static void show_line(const Diag *diag, Span span)
{
    size_t length;
    const char *text = find_line(diag->source, span.line, &length);
    if (!text)
        return;
    uint32_t last = span.end_line > span.line ? UINT32_MAX : span.end;
    uint32_t column = span.column > SHOWN_BEFORE ? span.column - SHOWN_BEFORE / 2 : 1;
    if (skip_columns(text, length, SHOWN_COLUMNS) == length)
        column = 1; /* all of it fits */
    size_t at = skip_columns(text, length, column - 1);
    fprintf(diag->to, column > 1 ? "    ..." : "    ");
    int shown = column > 1 ? 3 : 0, caret = shown, tail = 0;
    int limit = shown + SHOWN_COLUMNS;
    for (; at < length && shown < limit; column++) {
        int32_t code;
        size_t bytes = decode(text + at, length - at, &code);
        int columns;
        if (code == '\t')
            columns = fprintf(diag->to, "%*s", TAB - shown % TAB, "");
        else
            columns = put(diag->to, text + at, bytes, code);
        if (column < span.column)
            caret += columns;
        else if (column < last)
            tail += columns;
        shown += columns;
        at += bytes;
    }
    fprintf(diag->to, "%s\n    %*s%s^", at < length ? "..." : "", caret, "",
            paint(diag, "\033[1;32m"));
    for (int i = 1; i < tail; i++)
        fputc('~', diag->to);
    fprintf(diag->to, "%s\n", paint(diag, "\033[0m"));
}

/* ---- Messages ------------------------------------------------------------------------------- */

static void show(Diag *diag, Span span, const char *kind, const char *color, const char *text)
{
    fprintf(diag->to, "%s", paint(diag, "\033[1m"));
    uint32_t line = 0;
    const char *file = diag->source ? source_line(diag->source, span.line, &line) : "gplan";
    put_text(diag->to, file);
    if (span.line)
        fprintf(diag->to, ":%u:%u", line, span.column);
    fprintf(diag->to, ": %s%s:%s ", paint(diag, color), kind, paint(diag, "\033[0m"));
    put_text(diag->to, text);
    fputc('\n', diag->to);
}

static bool is_new(Diag *diag, Span span, const char *text)
{
    uint32_t *seen =
        names_at(diag->seen, arena_printf(diag->arena, "%u:%u:%s", span.line, span.column, text));
    bool new = *seen == UINT32_MAX;
    *seen = 1;
    return new;
}

static void message(Diag *diag, Span span, bool error, const char *text)
{
    diag->muted = !diag->to || diag_full(diag) || !is_new(diag, span, text);
    diag->notes = 0;
    diag->errors += error;
    if (error && !diag->first.text)
        diag->first = (Message){.span = span, .text = text};
    if (diag->muted)
        return;
    diag->shown += error;
    show(diag, span, error ? "error" : "warning", error ? "\033[31m" : "\033[35m", text);
    if (span.line && diag->source)
        show_line(diag, span);
}

bool diag_error(Diag *diag, Span span, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    message(diag, span, true, arena_vprintf(diag->arena, format, args));
    va_end(args);
    return false;
}

void diag_warning(Diag *diag, Span span, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    message(diag, span, false, arena_vprintf(diag->arena, format, args));
    va_end(args);
}

void diag_note(Diag *diag, Span span, const char *format, ...)
{
    if (diag->muted || diag->notes++ >= MAX_NOTES)
        return;
    va_list args;
    va_start(args, format);
    show(diag, span, "note", "\033[36m", arena_vprintf(diag->arena, format, args));
    va_end(args);
}

void diag_hint(Diag *diag, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(diag->arena, format, args);
    va_end(args);
    if (diag->errors == 1 && !diag->first.hint)
        diag->first.hint = text;
    if (diag->muted)
        return;
    fprintf(diag->to, "    %shint:%s ", paint(diag, "\033[1;36m"), paint(diag, "\033[0m"));
    put_text(diag->to, text);
    fputc('\n', diag->to);
}

/* ---- Misspelt names ------------------------------------------------------------------------- */

enum { LONGEST_WORD = 40 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Edits that turn one word into the other: a letter more, less, changed, or two swapped. */
static int distance(const char *a, const char *b)
{
    int rows[3][LONGEST_WORD + 1];
    int n = (int)strlen(b);
    for (int j = 0; j <= n; j++)
        rows[0][j] = j;
    int i = 0;
    for (; a[i]; i++) {
        int *row = rows[(i + 1) % 3], *above = rows[i % 3], *two = rows[(i + 2) % 3];
        row[0] = i + 1;
        for (int j = 0; j < n; j++) {
            bool same = tolower((unsigned char)a[i]) == tolower((unsigned char)b[j]);
            row[j + 1] = least(least(row[j], above[j + 1]) + 1, above[j] + !same);
            if (i && j && a[i] == b[j - 1] && a[i - 1] == b[j])
                row[j + 1] = least(row[j + 1], two[j - 1] + 1);
        }
    }
    return rows[i % 3][n];
}

const char *suggest(const char *word, const char *const *names, size_t count)
{
    const char *best = NULL;
    size_t length = strlen(word);
    if (!length || length > LONGEST_WORD)
        return NULL;
    int closest = length < 3 ? 1 : (int)(length + 2) / 3; /* no more than this many edits */
    for (size_t i = 0; i < count; i++) {
        size_t other = strlen(names[i]);
        if (other > LONGEST_WORD || !other)
            continue;
        int edits = distance(word, names[i]);
        if (edits > closest || (best && edits == closest))
            continue;
        if (edits >= (int)length || edits >= (int)other)
            continue; /* nothing of the word is left */
        closest = edits;
        best = names[i];
    }
    return best;
}

/* ---- Reading the source --------------------------------------------------------------------- */

const char *source_line(const Source *source, uint32_t line, uint32_t *number)
{
    const char *file = source->file;
    *number = line;
    for (size_t i = 0; i < source->parts && source->part[i].line <= line; i++) {
        file = source->part[i].file;
        *number = line - source->part[i].line + 1;
    }
    return file;
}

char *source_where(Arena *arena, const Source *source, uint32_t line)
{
    uint32_t number = line;
    const char *file = source ? source_line(source, line, &number) : "";
    return arena_printf(arena, "%s:%u", file, number);
}

const Source *source_join(Arena *arena, Diag *diag, const Source *const *source, size_t count,
                          size_t limit)
{
    Source *all = ARENA_NEW(arena, Source);
    SourcePart *part = ARENA_ARRAY(arena, SourcePart, count);
    size_t length = 0;
    uint32_t line = 1;
    for (size_t i = 0; i < count; i++)
        length += source[i]->length + 1;
    char *text = arena_alloc(arena, length + 1);
    *all = (Source){source[0]->file, text, 0, part, count};
    diag_source(diag, all);
    if (length > limit) {
        diag_error(diag, (Span){0}, "the files are larger than %zu MiB together", limit >> 20);
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        part[i] = (SourcePart){source[i]->file, line};
        memcpy(text + all->length, source[i]->text, source[i]->length);
        all->length += source[i]->length;
        if (i + 1 < count)
            text[all->length++] = '\n';
        for (size_t k = 0; k < source[i]->length; k++)
            line += source[i]->text[k] == '\n';
        line++;
    }
    return all;
}

const Source *source_read(Arena *arena, Diag *diag, const char *path, size_t limit)
{
    Source *source = ARENA_NEW(arena, Source);
    bool standard = strcmp(path, "-") == 0;
    source->file = standard ? "<stdin>" : path;
    source->text = "";
    diag_source(diag, source);
    FILE *from = standard ? stdin : fopen(path, "rb");
    if (!from && errno == ENOMEM)
        out_of_memory(0);
    if (!from) {
        diag_error(diag, (Span){0}, "cannot open the file: %s", strerror(errno));
        return NULL;
    }
    size_t capacity = 1 << 16;
    char *text = arena_alloc(arena, capacity);
    size_t got;
    errno = 0;
    while ((got = fread(text + source->length, 1, capacity - source->length - 1, from)) > 0) {
        source->length += got;
        if (source->length + 1 < capacity || source->length > limit)
            continue;
        char *bigger = arena_alloc(arena, 2 * capacity);
        memcpy(bigger, text, source->length);
        text = bigger;
        capacity *= 2;
    }
    bool failed = ferror(from) != 0;
    int why = errno;
    if (!standard)
        fclose(from);
    text[source->length] = 0;
    if (failed)
        diag_error(diag, (Span){0}, "cannot read the file: %s", strerror(why));
    else if (source->length > limit)
        diag_error(diag, (Span){0}, "the file is larger than %zu MiB", limit >> 20);
    source->text = text;
    return failed || source->length > limit ? NULL : source;
}
