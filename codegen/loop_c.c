/* The nests of a loop in C: threads share the outermost axis, or chunks of the only one; a tail
 * runs where a thread of its kernel has made a stretch of elements. */
#include "codegen/loop.h"

enum {
    PARALLEL = 1 << 14, /* elements from which threads pay */
    CHUNK = 1 << 13,    /* elements that a thread takes at a time */
    STREAM = 1 << 20,   /* elements of a result that is gone from the caches before it is read */
};

static void write_for(Loop *l, int d, int depth)
{
    loop_indent(l, depth);
    out(l->text, "for (int64_t %c = 0; %c < %lld; %c++)", LOOP_INDEX[d], LOOP_INDEX[d],
        (long long)l->dim[d], LOOP_INDEX[d]);
}

/* The result of one loop that is worth passing by the caches (vector.h): a large one of reals,
 * which no operand lies under. */
static const Access *streamed(const Loop *l)
{
    const Access *result = NULL;
    for (int i = 0; i < l->accesses; i++)
        if (l->access[i].result)
            result = result ? NULL : &l->access[i];
    if (!result || l->c->results != 1 || l->rank != 1 || loop_total(l) < STREAM ||
        l->g->value.at[result->value].dtype != F32 || result->at.stride[0] != 1)
        return NULL;
    const Address *address = l->e->address.at + l->first_address, own = address[result->parameter];
    for (Id i = 0; i < result->parameter; i++)
        if (address[i].kind == own.kind && address[i].slot == own.slot &&
            address[i].offset == own.offset)
            return NULL;
    return result;
}

/* Pieces of a chunk are made aside, then stored. On the way what an operand has next is asked for.
 */
static void write_pieces(Loop *l, const Access *result)
{
    const Access *next = result;
    for (int i = l->accesses; i-- > 0;)
        if (!l->access[i].result && l->g->value.at[l->access[i].value].dtype == F32 &&
            l->access[i].at.stride[0] == 1)
            next = &l->access[i];
    emission_need(l->e, "c/vector.h");
    out(l->text, "        gp_real piece[GP_STREAM_PIECE];\n"
                 "        for (int64_t first = from; first < to; first += GP_STREAM_PIECE) {\n"
                 "            const int64_t some = gp_stream_piece(to - first);\n"
                 "            GP_IVDEP\n"
                 "            for (int64_t i = first; i < first + some; i++) {\n");
    l->aside = "piece[i - first]";
    loop_element(l, 4);
    out(l->text,
        "            }\n"
        "            gp_stream(x%u + first, piece, some, x%u + first + some);\n"
        "        }\n"
        "        gp_stream_end();\n",
        result->parameter, next->parameter);
}

void loop_nest_c(Loop *l)
{
    int depth = 1;
    bool parallel = loop_total(l) >= PARALLEL;
    if (!l->random) /* without OpenMP nobody else names it */
        out(l->text, "    (void)run;\n");
    loop_literals(l, depth);
    if (l->rank == 1 && parallel) {
        const Access *stream = streamed(l);
        loop_loads(l, true, depth);
        out(l->text,
            "    GP_PARALLEL(run, 1)\n"
            "    for (int64_t from = 0; from < %lld; from += %d) {\n"
            "        const int64_t to = from + %d < %lld ? from + %d : %lld;\n"
            "%s",
            (long long)l->dim[0], CHUNK, CHUNK, (long long)l->dim[0], CHUNK, (long long)l->dim[0],
            stream ? ""
                   : "        GP_IVDEP\n"
                     "        for (int64_t i = from; i < to; i++) {\n");
        if (stream)
            write_pieces(l, stream);
        else
            loop_element(l, 3);
        out(l->text, "%s    }\n    return GP_OK;\n", stream ? "" : "        }\n");
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
        write_for(l, l->rank - 1, depth++);
        out(l->text, " {\n");
    }
    loop_element(l, depth);
    while (--depth >= 1) {
        loop_indent(l, depth);
        out(l->text, "}\n");
    }
    out(l->text, "    return GP_OK;\n");
}

/* Over one axis, or none. */
static void write_stretch(Loop *l)
{
    loop_literals(l, 1);
    loop_loads(l, true, 1);
    l->here = "y[i - first]";
    l->flat = "i";
    out(l->text, "    GP_IVDEP\n    for (int64_t i = first; i < first + count; i++) {\n");
    loop_element(l, 2);
    out(l->text, "    }\n");
}

/* The stretch may begin and end within a row of the last axis. */
void loop_tail_c(Loop *l)
{
    if (l->rank <= 1) {
        write_stretch(l);
        return;
    }
    const char last = LOOP_INDEX[l->rank - 1];
    const long long width = (long long)l->dim[l->rank - 1];
    Arena *arena = l->e->arena;
    loop_literals(l, 1);
    out(l->text,
        "    for (int64_t from = first, to; from < first + count; from = to) {\n"
        "        const int64_t row = from / %lld, begin = row * %lld;\n"
        "        to = begin + %lld < first + count ? begin + %lld : first + count;\n",
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
        "        for (int64_t %c = from - begin; %c < to - begin; %c++) {\n",
        last, last, last);
    loop_element(l, 3);
    out(l->text, "        }\n    }\n");
}
