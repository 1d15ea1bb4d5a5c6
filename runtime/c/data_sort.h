/* Sorts names in bounded memory: as many as fit are sorted at a time and written as a run; runs are
 * merged in pairs. */
#ifndef GP_DATA_SORT_H
#define GP_DATA_SORT_H

#include "data_prepare.h"

enum { GP_SORT_BYTES = 65536, GP_SORT_NAMES = 4096, GP_SORT_RUNS = 4096, GP_SORT_READ = 8192 };

/* Reads records of a file, one after the other: two bytes of length, then the name. */
typedef struct {
    int file;
    uint64_t at, end; /* of what is not in the buffer yet */
    size_t used, filled;
    unsigned char buffer[GP_SORT_READ];
    unsigned char name[GP_DATA_PATH];
    size_t length;
} gp_names;

GP_HOST_FAST int gp_names_bytes(gp_names *n, void *to, size_t bytes)
{
    unsigned char *at = (unsigned char *)to;
    while (bytes > 0) {
        if (n->used == n->filled) {
            const uint64_t left = n->end - n->at;
            n->used = 0;
            n->filled = left < sizeof n->buffer ? (size_t)left : sizeof n->buffer;
            if (n->filled == 0 || !gp_read_at(n->file, n->buffer, n->filled, n->at))
                return n->filled = 0;
            n->at += n->filled;
        }
        const size_t have = n->filled - n->used, some = bytes < have ? bytes : have;
        memcpy(at, n->buffer + n->used, some);
        n->used += some;
        at += some;
        bytes -= some;
    }
    return 1;
}

GP_HOST_FAST void gp_names_begin(gp_names *n, int file, uint64_t at, uint64_t end)
{
    n->file = file;
    n->at = at;
    n->end = end;
    n->used = n->filled = 0;
}

/* The next name, with a 0 after it. */
GP_HOST_FAST int gp_names_next(gp_names *n)
{
    unsigned char length[2];
    if (!gp_names_bytes(n, length, 2))
        return 0;
    n->length = length[0] | (size_t)length[1] << 8;
    if (n->length >= sizeof n->name || !gp_names_bytes(n, n->name, n->length))
        return 0;
    n->name[n->length] = 0;
    return 1;
}

GP_HOST_FAST void gp_names_put(gp_writer *w, const void *name, size_t length)
{
    const unsigned char bytes[2] = {(unsigned char)length, (unsigned char)(length >> 8)};
    gp_writer_put(w, bytes, 2);
    gp_writer_put(w, name, length);
}

/* ---- Sorting -------------------------------------------------------------------------------- */

typedef struct {
    int file[2]; /* what is merged, and where it goes */
    int runs;
    uint64_t start[GP_SORT_RUNS + 1]; /* of runs in file[0]; the last is the end */
    uint32_t name[GP_SORT_NAMES];     /* offsets in text */
    int names;
    size_t used;
    unsigned char text[GP_SORT_BYTES]; /* names with a 0 after each */
    gp_writer to;
    gp_names from[2];
} gp_sorter;

GP_HOST_FAST int gp_sort_before(const gp_sorter *s, uint32_t a, uint32_t b)
{
    return strcmp((const char *)s->text + a, (const char *)s->text + b) < 0;
}

GP_HOST_FAST void gp_sort_sift(gp_sorter *s, int at, int count)
{
    for (int child; (child = 2 * at + 1) < count; at = child) {
        child += child + 1 < count && gp_sort_before(s, s->name[child], s->name[child + 1]);
        if (!gp_sort_before(s, s->name[at], s->name[child]))
            return;
        const uint32_t other = s->name[at];
        s->name[at] = s->name[child];
        s->name[child] = other;
    }
}

/* Sorts what is in memory (a heap, which needs no more) and writes it as a run. */
GP_HOST int gp_sort_run(gp_sorter *s)
{
    if (s->names == 0)
        return 1;
    if (s->runs == GP_SORT_RUNS)
        return gp_fail(E2BIG);
    for (int i = s->names / 2; i-- > 0;)
        gp_sort_sift(s, i, s->names);
    for (int i = s->names; i-- > 1;) {
        const uint32_t first = s->name[0];
        s->name[0] = s->name[i];
        s->name[i] = first;
        gp_sort_sift(s, 0, i);
    }
    for (int i = 0; i < s->names; i++) {
        const char *name = (const char *)s->text + s->name[i];
        gp_names_put(&s->to, name, strlen(name));
    }
    gp_writer_flush(&s->to);
    s->start[++s->runs] = s->to.written;
    s->names = 0;
    s->used = 0;
    return !s->to.failed;
}

GP_HOST_FAST int gp_sort_add(gp_sorter *s, const char *name)
{
    const size_t bytes = strlen(name) + 1;
    if ((s->names == GP_SORT_NAMES || s->used + bytes > GP_SORT_BYTES) && !gp_sort_run(s))
        return 0;
    s->name[s->names++] = (uint32_t)s->used;
    memcpy(s->text + s->used, name, bytes);
    s->used += bytes;
    return 1;
}

/* With no names, in two files that nobody else has. */
GP_HOST int gp_sort_begin(gp_sorter *s)
{
    s->runs = s->names = 0;
    s->used = 0;
    s->start[0] = 0;
    memset(&s->to, 0, sizeof s->to);
    s->to.file = s->file[0];
    return ftruncate(s->file[0], 0) == 0 && lseek(s->file[0], 0, SEEK_SET) == 0;
}

/* Two runs as one. */
GP_HOST_FAST void gp_sort_merge(gp_sorter *s, int run)
{
    gp_names *a = &s->from[0], *b = &s->from[1];
    gp_names_begin(a, s->file[0], s->start[run], s->start[run + 1]);
    gp_names_begin(b, s->file[0], s->start[run + 1], s->start[run + 2]);
    int has_a = gp_names_next(a), has_b = gp_names_next(b);
    while (has_a || has_b) {
        gp_names *n = !has_b || (has_a && strcmp((char *)a->name, (char *)b->name) <= 0) ? a : b;
        gp_names_put(&s->to, n->name, n->length);
        *(n == a ? &has_a : &has_b) = gp_names_next(n);
    }
}

/* All runs of file[0] become half as many, in the other file. */
GP_HOST int gp_sort_pass(gp_sorter *s)
{
    int runs = 0;
    const uint64_t end = s->start[s->runs];
    memset(&s->to, 0, sizeof s->to);
    s->to.file = s->file[1];
    if (ftruncate(s->file[1], 0) != 0 || lseek(s->file[1], 0, SEEK_SET) != 0)
        return 0;
    for (int run = 0; run < s->runs; run += 2) {
        if (run + 1 == s->runs) /* the last one is alone: it is merged with nothing */
            s->start[run + 2] = end;
        gp_sort_merge(s, run);
        s->start[++runs] = s->to.written;
    }
    gp_writer_flush(&s->to);
    s->runs = runs;
    const int other = s->file[0];
    s->file[0] = s->file[1];
    s->file[1] = other;
    return !s->to.failed && s->to.written == end;
}

/* Leaves the names in order in file[0]; *end: where they end. */
GP_HOST int gp_sort_end(gp_sorter *s, uint64_t *end)
{
    if (!gp_sort_run(s))
        return 0;
    while (s->runs > 1)
        if (!gp_sort_pass(s))
            return 0;
    *end = s->start[s->runs];
    return 1;
}

#endif
