/* A loop in CUDA: a __global__ function whose threads share the elements, counted in 64 bits, and
 * the function that launches it. Over one axis the count is an argument, so that loops of all sizes
 * are one kernel: nvcc takes long for each. */
#include "codegen/loop.h"

#include <string.h>

/* i = flat / 4096, j = flat / 64 % 64, k = flat % 64: in 32 bits where they are enough, since
 * dividing takes a GPU longer in 64. */
static void write_axes(Loop *l, bool narrow)
{
    int64_t inner = loop_total(l);
    for (int d = 0; d < l->rank; d++) {
        inner /= l->dim[d];
        out(l->text, "        const int64_t %c = %sflat", LOOP_INDEX[d],
            narrow ? "(uint32_t)" : "");
        if (inner != 1)
            out(l->text, " / %lld%s", (long long)inner, narrow ? "u" : "");
        if (d > 0)
            out(l->text, " %% %lld%s", (long long)l->dim[d], narrow ? "u" : "");
        out(l->text, ";\n");
    }
}

void loop_nest_cuda(Loop *l)
{
    int64_t total = loop_total(l);
    if (!l->run)
        out(l->text, "    (void)run;\n");
    loop_literals(l, 1);
    if (l->rank > 1) {
        out(l->text, "    for (GP_EACH(flat, %lld)) {\n", (long long)total);
        l->flat = "flat";
        write_axes(l, total <= INT32_MAX);
    } else {
        out(l->text, "    for (GP_EACH(i, count)) {\n");
    }
    loop_loads(l, true, 2);
    loop_element(l, 2);
    out(l->text, "    }\n");
}

/* The names out of "(const gp_run *run, const gp_real *x0, uint64_t key0)", after the first. */
static void write_arguments(const char *head, Out *o)
{
    const char *at = strchr(head, ',');
    while (at && at < head + strcspn(head, "\n")) {
        size_t length = strcspn(++at, ",)"), begin = length;
        while (at[begin - 1] != ' ' && at[begin - 1] != '*')
            begin--;
        out(o, ", %.*s", (int)(length - begin), at + begin);
        at = at[length] == ',' ? at + length : NULL;
    }
}

void loop_launch_cuda(const Emission *e, const Function *f, Out *o)
{
    const char *kernel = arena_printf(e->arena, "%s_each", f->name);
    if (strncmp(kernel, e->api->prefix, strlen(e->api->prefix)) == 0)
        kernel = name_claim(&e->api->names, kernel);
    Out host = out_new(e->arena);
    out_text(&host, f->text, strcspn(f->text, "\n"));
    out(&host, "\n{\n    GP_LAUNCH_EACH(run, %s, ", kernel);
    if (strstr(host.at, "int64_t count"))
        out(&host, "count");
    else
        out(&host, "%lld", (long long)f->count);
    write_arguments(f->text, &host);
    out(&host, ");\n    return GP_OK;\n}\n");
    function_write(e, "static __global__ void", kernel, f->text, o);
    function_write(e, "static GP_NOINLINE int", f->name, host.at, o);
}
