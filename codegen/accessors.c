/* The functions that an emitted file has for each input and output: where it is, and on a device
 * those that copy it. */
#include "codegen/internal.h"

#include <string.h>

static bool is_input(const ApiTensor *t)
{
    return strcmp(t->kind, "INPUT") == 0;
}

static Dtype dtype_of(const Api *api, const ApiTensor *t)
{
    return (Dtype)api->plan->graph->value.at[t->value].dtype;
}

/* ---- In the header -------------------------------------------------------------------------- */

void accessors_counts(const Api *api, Out *o)
{
    const char *before = "/* Elements of inputs and outputs. */\n";
    for (size_t i = 0; i < api->tensors; i++)
        if (api->tensor[i].count) {
            out(o, "%s#define %s %lld\n", before, api->tensor[i].count,
                (long long)view_count(&api->tensor[i].view));
            before = "";
        }
}

/* What is said of all of them. */
static const char *about(const Api *api)
{
    bool external = false, copied = false;
    for (size_t i = 0; i < api->tensors; i++) {
        external |= api->tensor[i].accessor && api->tensor[i].slot != NONE;
        copied |= api->tensor[i].copy != NULL;
    }
    if (external)
        return "Inputs and outputs are the caller's memory: bind them before the first run. An "
               "output is written by the runs it names, and stays as it is in others.";
    if (copied)
        return "Inputs keep what was copied to them; outputs are valid until the next run. Copies "
               "are put on the stream: host memory is in use until a sync, or a call that "
               "returned the loss. The other functions are pointers on the device; an output that "
               "the last run did not compute is NULL.";
    return "Inputs keep what the caller wrote. Outputs are valid until the next run; NULL where "
           "the last run did not compute it, or failed.";
}

static void declare(const Api *api, const ApiTensor *t, Out *o)
{
    Arena *arena = api->plan->graph->arena;
    const char *type = dtype_row(dtype_of(api, t))->api_type;
    bool input = is_input(t);
    if (t->copy)
        out(o, "int %s(%s *m, %s%s *host);\n", t->copy, api->prefix, input ? "const " : "", type);
    if (t->slot == NONE)
        out(o, input ? "%s *%s(%s *m);" : "const %s *%s(const %s *m);", type, t->accessor,
            api->prefix);
    else
        out(o, "void %s(%s *m, %s%s *data);", t->bind, api->prefix, input ? "const " : "", type);
    out(o, " /* ");
    out_comment(o, shape_text(arena, dtype_of(api, t), t->view.rank, t->view.dim));
    if (strcmp(t->accessor + strlen(api->prefix) + 1, t->name) != 0) {
        out(o, ": "); /* the name had to be changed */
        out_comment(o, t->name);
    }
    out(o, input ? " */\n" : ", of %s */\n", api_runs(api, t));
}

void accessors_declare(const Api *api, Out *o)
{
    out_block(o, "", about(api));
    for (size_t i = 0; i < api->tensors; i++)
        if (api->tensor[i].accessor)
            declare(api, &api->tensor[i], o);
    for (size_t i = 0; i < api->unuseds; i++) {
        out(o, "/* ");
        out_comment(o, api->unused[i]);
        out(o, ": an input that no output depends on, so it is not there. */\n");
    }
}

/* ---- In the source -------------------------------------------------------------------------- */

/* An output is there after the runs that compute it, each of which may leave it elsewhere. */
static void write_output(const Api *api, const ApiTensor *t, const char *type, Out *o)
{
    static const char *const ran[RUNS] = {"RAN_FORWARD", "RAN_EVAL", "RAN_STEP"};
    out(o, "const %s *%s(const %s *m)\n{\n    switch (m->ran) {\n", type, t->accessor, api->prefix);
    for (int r = 0; r < RUNS; r++)
        if (t->made[r])
            out(o, "    case %s:\n        return (const %s *)(void *)(m->arena + %llu);\n", ran[r],
                type, (unsigned long long)t->at[r]);
    out(o, "    default:\n        return NULL;\n    }\n}\n\n");
}

static void write_copy(const Api *api, const ApiTensor *t, const char *type, Out *o)
{
    unsigned long long bytes = (uint64_t)view_count(&t->view) * dtype_size(dtype_of(api, t));
    bool input = is_input(t);
    out(o, "int %s(%s *m, %s%s *host)\n{\n    int code;\n    m->detail[0] = 0;\n    HERE;\n",
        t->copy, api->prefix, input ? "const " : "", type);
    if (input)
        out(o, "    void *const to = m->arena + %llu;\n", (unsigned long long)t->offset);
    else
        out(o,
            "    const %s *const at = %s(m);\n    if (!at)\n        return failed(m, "
            "%s_EOUTPUT);\n",
            type, t->accessor, api->capitals);
    out(o, "    return checked(m, cudaMemcpyAsync(%s, %llu, %s, STREAM));\n}\n\n",
        input ? "to, host" : "host, at", bytes,
        input ? "cudaMemcpyHostToDevice" : "cudaMemcpyDeviceToHost");
}

void accessors_write(const Api *api, Out *o)
{
    for (size_t i = 0; i < api->tensors; i++) {
        const ApiTensor *t = &api->tensor[i];
        if (!t->accessor)
            continue;
        const char *type = dtype_row(dtype_of(api, t))->api_type;
        if (t->slot != NONE)
            out(o, "void %s(%s *m, %s%s *data_)\n{\n    m->external[%u] = (void *)data_;\n}\n\n",
                t->bind, api->prefix, is_input(t) ? "const " : "", type, t->slot);
        else if (is_input(t))
            out(o, "%s *%s(%s *m)\n{\n    return (%s *)(void *)(m->arena + %llu);\n}\n\n", type,
                t->accessor, api->prefix, type, (unsigned long long)t->offset);
        else
            write_output(api, t, type, o);
        if (t->copy)
            write_copy(api, t, type, o);
    }
}
