/* The nest of a loop in C: threads share the outermost axis, or chunks of the only one. */
#include "codegen/loop.h"

enum {
    PARALLEL = 1 << 14, /* elements from which threads pay */
    CHUNK = 1 << 13,    /* elements that a thread takes at a time */
};

static void write_for(Loop *l, int d, int depth)
{
    loop_indent(l, depth);
    out(l->text, "for (int64_t %c = 0; %c < %lld; %c++)", LOOP_INDEX[d], LOOP_INDEX[d],
        (long long)l->dim[d], LOOP_INDEX[d]);
}

void loop_nest_c(Loop *l)
{
    int depth = 1;
    bool parallel = loop_total(l) >= PARALLEL;
    if (!l->random) /* without OpenMP nobody else names it */
        out(l->text, "    (void)run;\n");
    loop_literals(l, depth);
    if (l->rank == 1 && parallel) {
        loop_loads(l, true, depth);
        out(l->text,
            "    GP_PARALLEL(run, 1)\n"
            "    for (int64_t from = 0; from < %lld; from += %d) {\n"
            "        const int64_t to = from + %d < %lld ? from + %d : %lld;\n"
            "        GP_IVDEP\n"
            "        for (int64_t i = from; i < to; i++) {\n",
            (long long)l->dim[0], CHUNK, CHUNK, (long long)l->dim[0], CHUNK, (long long)l->dim[0]);
        loop_element(l, 3);
        out(l->text, "        }\n    }\n    return GP_OK;\n");
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
