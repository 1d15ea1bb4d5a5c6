/* The nests of a loop in C: threads share the outermost axis, or chunks of the only one; an
 * epilogue runs where a thread of its kernel has made a run of elements. */
#include "codegen/loop.h"

enum {
    PARALLEL = 1 << 14, /* elements from which threads pay */
    CHUNK = 1 << 13,    /* elements that a thread takes at a time */
    STREAM = 1 << 20,   /* elements of a result that is gone from the caches before it is read */
    ROW = 256,          /* elements of the last axis from which it is worth streaming */
    ALIGNED = 16,       /* elements that a store past the caches is aligned to */
};

static void write_for(Loop *l, int d, int depth)
{
    loop_indent(l, depth);
    out(l->text, "for (int64_t %c = 0; %c < %lld; %c++)", LOOP_INDEX[d], LOOP_INDEX[d],
        (long long)l->dim[d], LOOP_INDEX[d]);
}

/* Whether the last axis goes in pieces that begin where vectors may be stored. */
static bool has_rows(const Loop *l, const View *at)
{
    if (l->rank < 1 || at->stride[l->rank - 1] != 1 || l->dim[l->rank - 1] < ROW)
        return false;
    for (int d = 0; d + 1 < l->rank; d++)
        if (at->stride[d] % ALIGNED != 0)
            return false;
    return true;
}

/* The result of one loop that is worth passing by the caches (vector.h): a large one of reals,
 * which no operand lies under. */
static const Access *streamed(const Loop *l)
{
    const Access *result = NULL;
    for (int i = 0; i < l->accesses; i++)
        if (l->access[i].result)
            result = result ? NULL : &l->access[i];
    if (!result || l->c->results != 1 || loop_total(l) < STREAM ||
        l->g->value.at[result->value].dtype != F32 || !has_rows(l, &result->at))
        return NULL;
    const Address *address = l->e->address.at + l->first_address, own = address[result->parameter];
    for (Id i = 0; i < result->parameter; i++)
        if (address[i].kind == own.kind && address[i].slot == own.slot &&
            address[i].offset == own.offset)
            return NULL;
    return result;
}

/* What an operand has next is asked for: of one that changes along every axis, if there is. */
static const Access *read_next(const Loop *l, const Access *result)
{
    const Access *next = result;
    for (int i = l->accesses; i-- > 0;) {
        const Access *a = &l->access[i];
        bool all =
            !a->result && l->g->value.at[a->value].dtype == F32 && a->at.stride[l->rank - 1] == 1;
        for (int d = 0; d < l->rank; d++)
            all &= a->at.stride[d] != 0;
        if (all)
            next = a;
    }
    return next;
}

static void write_row(const Loop *l, const Access *a)
{
    out(l->text, "x%u + ", a->parameter);
    if (l->rank > 1) {
        loop_index(l, &a->at, l->rank - 1);
        out(l->text, " + ");
    }
    out(l->text, "first");
}

/* Pieces of the last axis, from .. to - 1, are made aside, then stored. */
static void write_pieces(Loop *l, const Access *result, const char *from, const char *to, int depth)
{
    const char last = LOOP_INDEX[l->rank - 1];
    const int indent = 4 * depth;
    emission_need(l->e, "c/vector.h");
    out(l->text,
        "%*sgp_real piece[GP_STREAM_PIECE];\n"
        "%*sfor (int64_t first = %s; first < %s; first += GP_STREAM_PIECE) {\n"
        "%*s    const int64_t some = gp_stream_piece(%s - first);\n"
        "%*s    GP_IVDEP\n"
        "%*s    for (int64_t %c = first; %c < first + some; %c++)",
        indent, "", indent, "", from, to, indent, "", to, indent, "", indent, "", last, last, last);
    l->aside = arena_printf(l->e->arena, "piece[%c - first]", last);
    loop_body(l, depth + 2);
    size_t line = l->text->length;
    out(l->text, "%*s    gp_stream(", indent, "");
    write_row(l, result);
    out(l->text, ", piece, some, ");
    write_row(l, read_next(l, result));
    out(l->text, " + some);\n");
    out_fold(l->text, line);
    out(l->text, "%*s}\n", indent, "");
}

/* Threads take so many of the first axis at a time. */
static void write_chunks(Loop *l, int64_t each)
{
    const long long size = (long long)l->dim[0], some = (long long)each;
    out(l->text,
        "    GP_PARALLEL(run, 1)\n"
        "    for (int64_t from = 0; from < %lld; from += %lld) {\n"
        "        const int64_t to = from + %lld < %lld ? from + %lld : %lld;\n",
        size, some, some, size, some, size);
}

/* A fence waits for all stores, so there is one for many rows. */
static void write_streamed(Loop *l, const Access *result)
{
    const int64_t below = loop_total(l) / l->dim[0];
    int depth = 2;
    if (l->rank == 1) {
        loop_loads(l, true, 1);
        write_chunks(l, CHUNK);
        write_pieces(l, result, "from", "to", depth);
    } else {
        write_chunks(l, below < CHUNK ? CHUNK / below : 1);
        out(l->text, "        for (int64_t i = from; i < to; i++) {\n");
        depth++;
        for (int d = 1; d + 1 < l->rank; d++) {
            write_for(l, d, depth++);
            out(l->text, " {\n");
        }
        loop_loads(l, true, depth);
        write_pieces(l, result, "0",
                     arena_printf(l->e->arena, "%lld", (long long)l->dim[l->rank - 1]), depth);
    }
    while (--depth > 1) {
        loop_indent(l, depth);
        out(l->text, "}\n");
    }
    out(l->text, "        gp_stream_end();\n    }\n");
}

static void write_nest(Loop *l)
{
    const bool parallel = loop_total(l) >= PARALLEL;
    int depth = 1;
    if (l->rank == 1 && parallel) {
        loop_loads(l, true, depth);
        write_chunks(l, CHUNK);
        out(l->text, "        GP_IVDEP\n"
                     "        for (int64_t i = from; i < to; i++)");
        loop_body(l, 3);
        out(l->text, "    }\n");
        return;
    }
    for (int d = 0; d + 1 < l->rank; d++) {
        if (d == 0 && parallel)
            out(l->text, "    GP_PARALLEL(run, 1)\n");
        write_for(l, d, depth++);
        out(l->text, " {\n");
    }
    loop_loads(l, true, depth);
    if (l->rank > 0) {
        loop_indent(l, depth);
        out(l->text, "GP_IVDEP\n");
        write_for(l, l->rank - 1, depth);
        loop_body(l, depth + 1);
    } else {
        loop_element(l, depth);
    }
    while (--depth >= 1) {
        loop_indent(l, depth);
        out(l->text, "}\n");
    }
}

/* What was made may be searched for a NaN, where that is asked when compiling. */
static void write_return(Loop *l)
{
    Items made = {0};
    for (int i = 0; i < l->accesses && !access_is_part(l->e->plan, l->o); i++) {
        const Access *a = &l->access[i];
        const Dtype dtype = (Dtype)l->g->value.at[a->value].dtype;
        if (!a->result || !dtype_is_real(dtype))
            continue;
        const char *name = arena_printf(l->e->arena, "x%u", a->parameter);
        ARRAY_PUSH(l->e->arena, &made, tensor_initializer(l->e->arena, name, dtype, &a->at, NULL));
    }
    if (made.count) {
        emission_need(l->e, "c/call.h");
        out_list(l->text, "    return GP_MADE(", &made, ");\n", 0);
    } else {
        out(l->text, "    return GP_OK;\n");
    }
}

void loop_nest_c(Loop *l)
{
    const Access *stream = streamed(l);
    if (!l->run) /* without OpenMP nobody else names it */
        out(l->text, "    (void)run;\n");
    loop_literals(l, 1);
    if (stream)
        write_streamed(l, stream);
    else
        write_nest(l);
    write_return(l);
}

/* Over one axis, or none. */
static void write_run(Loop *l)
{
    loop_literals(l, 1);
    loop_loads(l, true, 1);
    l->here = "y[i - first]";
    l->flat = "i";
    out(l->text, "    GP_IVDEP\n    for (int64_t i = first; i < first + count; i++)");
    loop_body(l, 2);
}

/* The run may begin and end within a row of the last axis. */
void loop_epilogue_c(Loop *l)
{
    if (l->rank <= 1) {
        write_run(l);
        return;
    }
    const char last = LOOP_INDEX[l->rank - 1];
    Arena *arena = l->e->arena;
    const char *width =
        l->width ? l->width : arena_printf(arena, "%lld", (long long)l->dim[l->rank - 1]);
    loop_literals(l, 1);
    out(l->text,
        "    for (int64_t from = first, to; from < first + count; from = to) {\n"
        "        const int64_t row = from / %s, begin = row * %s;\n"
        "        to = begin + %s < first + count ? begin + %s : first + count;\n",
        width, width, width, width);
    int64_t below = 1;
    for (int d = l->rank - 1; d-- > 0; below *= l->dim[d]) {
        bool used = false;
        for (int i = 0; i < l->accesses; i++)
            used |= l->access[i].at.stride[d] != 0;
        if (!used)
            continue;
        out(l->text, "        const int64_t %c = row", LOOP_INDEX[d]);
        if (below > 1)
            out(l->text, " / %lld", (long long)below);
        if (d > 0)
            out(l->text, " %% %lld", (long long)l->dim[d]);
        out(l->text, ";\n");
    }
    loop_loads(l, true, 2);
    l->here = arena_printf(arena, "y[begin + %c - first]", last);
    l->flat = arena_printf(arena, "begin + %c", last);
    out(l->text,
        "        GP_IVDEP\n"
        "        for (int64_t %c = from - begin; %c < to - begin; %c++)",
        last, last, last);
    loop_body(l, 3);
    out(l->text, "    }\n");
}
