/* The header of an emitted file: all that its caller needs to know. */
#include "codegen/internal.h"

#include <string.h>

static const char *const head = "#ifndef @_H\n"
                                "#define @_H\n"
                                "\n"
                                "#include <stddef.h>\n"
                                "#include <stdint.h>\n"
                                "\n"
                                "#ifdef __cplusplus\n"
                                "extern \"C\" {\n"
                                "#endif\n"
                                "\n";

static const char *const types =
    "/* Kinds and dtypes of tensors. */\n"
    "enum { @_INPUT, @_OUTPUT, @_PARAM, @_STATE };\n"
    "enum { @_F32, @_F16, @_BF16, @_I32, @_I64, @_U8, @_BOOL };\n"
    "\n"
    "/* What functions return: 0, or one of these; those of an op have the op's number above the\n"
    " * lowest four bits. */\n"
    "enum {\n"
    "    @_OK,\n"
    "    @_EINDEX,  /* an index outside its table, e.g. an invalid token id */\n"
    "    @_ENAN,    /* an op made a NaN (where compiled with -DGPLAN_CHECK_NAN) */\n"
    "    @_EARENA,  /* the arena is too small or not aligned */\n"
    "    @_EFILE,   /* a file cannot be opened, read or written */\n"
    "    @_EFORMAT, /* it is no safetensors file, or cut short */\n"
    "    @_ETENSOR, /* a tensor is missing in it, or has another shape or dtype */\n"
    "    @_ECANCEL, /* the progress function asked to stop */\n"
    "    @_EBIND,   /* a tensor of the caller's memory has no memory yet */\n"
    "%s"
    "    @_ESAMPLES = 10 /* fewer samples than none, or more than a batch has */\n"
    "};\n"
    "#define @_ERROR_KIND(code) ((code) & 15)\n"
    "#define @_ERROR_OP(code) ((code) >> 4)\n"
    "\n"
    "typedef struct {\n"
    "    const char *name;\n"
    "    int kind, dtype, rank;\n"
    "    int64_t dim[8];\n"
    "    size_t offset; /* bytes from the start of the arena; @_EXTERNAL: the caller's memory. Of "
    "an\n"
    "                      output: after the first run it is of; its function knows the others */\n"
    "    size_t bytes;\n"
    "} $_tensor;\n"
    "#define @_EXTERNAL ((size_t)-1)\n"
    "\n";

static const char *const reset_declared = "/* Sets the parameters to their initial values. */\n";

static const char *const trained_reset_declared =
    "/* Sets the parameters to their initial values, the optimizer and the count of steps to "
    "their\n"
    " * beginning. */\n";

static const char *const files_declared =
    "/* Parameters from and to a safetensors file. A file that does not fit changes nothing, but "
    "one\n"
    " * that ends or is changed while it is read leaves a mixture: load or reset then. What is "
    "written\n"
    " * appears whole or not at all, with the mode of the file that it replaces. */\n";

static const char *const trained_files_declared =
    "/* A safetensors file with the parameters, the state of the optimizer, and as metadata the\n"
    " * count of steps and the seed: a run that is saved, ended and loaded goes on bit for bit. "
    "From\n"
    " * a file with parameters alone the optimizer and the steps begin anew. A file that does not "
    "fit\n"
    " * changes nothing, but one that ends or is changed while it is read leaves a mixture: load "
    "or\n"
    " * reset then. What is written appears whole or not at all, with the mode of the file that "
    "it\n"
    " * replaces. */\n";

static void write_functions(const Api *api, Out *o)
{
    api_write(api, o, api->dialect->declared_init);
    api_write(api, o, api->trains ? trained_reset_declared : reset_declared);
    out(o, "%s %s_reset(%s *m, uint64_t seed);\n", api->dialect->reset_type, api->prefix,
        api->prefix);
    api_write(api, o, api->trains ? trained_files_declared : files_declared);
    api_write(api, o,
              "int $_load($ *m, const char *path);\n"
              "int $_save(const $ *m, const char *path);\n");
}

static const char *const more_functions =
    "\n"
    "/* An error code in words. The second one has more to say of the last call that can fail: "
    "the\n"
    " * file, the tensor, the op; nothing where all went well. */\n"
    "const char *$_strerror(int code);\n"
    "const char *$_error(const $ *m);\n"
    "/* Bytes of a $, for those who cannot read this header. */\n"
    "size_t $_sizeof(void);\n"
    "/* Every input, output, parameter and state. */\n"
    "const $_tensor *$_tensors(size_t *count);\n"
    "%s"
    "/* Called after each op of a run with the number of ops done; what is not 0 stops the run. "
    "*/\n"
    "void $_progress($ *m, int (*see)(void *user, uint64_t step, int op, int ops), void *user);\n"
    "#ifdef GPLAN_PROFILE\n"
    "/* Adds the seconds of each op to seconds[@_OPS]; prints them, the longest first. */\n"
    "void $_profile($ *m, double *seconds);\n"
    "void $_profile_print(const $ *m);\n"
    "%s"
    "#endif\n";

static void write_struct(const Api *api, Out *o)
{
    api_write(api, o,
              "/* A model: the caller owns it and its arena. Several can run at once. */\n"
              "typedef struct {\n");
    api_write(api, o, api->dialect->fields);
    api_write(api, o,
              "    int done, ops; /* of the run at hand */\n"
              "    int ran;       /* which run was the last; 0: none, or it failed */\n"
              "    int (*progress)(void *user, uint64_t step, int op, int ops);\n"
              "    void *user;\n");
    api_write(api, o, api->dialect->clock_fields);
    runs_fields(api, o);
    if (api->slots)
        out(o, "    void *external[%u]; /* memory of the caller */\n", api->slots);
    out(o, "    char detail[200]; /* of %s_error */\n} %s;\n\n", api->prefix, api->prefix);
}

static void write_sizes(const Api *api, Out *o, size_t ops)
{
    out(o, "#define %s_ARENA_BYTES %lluull\n", api->capitals, (unsigned long long)api->plan->arena);
    out(o, "#define %s_ARENA_ALIGN %u\n", api->capitals, api->options->target->align);
    if (api->target->threads)
        out(o, "#define %s_THREADS_MAX %u\n", api->capitals, api->options->target->threads);
    out(o, "#define %s_OPS %zu\n\n", api->capitals, ops);
    bool any = false;
    for (size_t i = 0; i < api->tensors; i++) {
        const ApiTensor *t = &api->tensor[i];
        if (!t->count)
            continue;
        out(o, "%s#define %s %lld\n", any ? "" : "/* Elements of inputs and outputs. */\n",
            t->count, (long long)view_count(&t->view));
        any = true;
    }
    out(o, any ? "\n" : "");
}

/* What a name became, where it is not simply behind the prefix. */
static bool is_renamed(const Api *api, const ApiTensor *t)
{
    return strcmp(t->accessor + strlen(api->prefix) + 1, t->name) != 0;
}

static void write_accessor(const Api *api, const ApiTensor *t, Out *o)
{
    const Graph *g = api->plan->graph;
    Dtype dtype = (Dtype)g->value.at[t->value].dtype;
    const char *type = c_api_type(dtype);
    bool input = strcmp(t->kind, "INPUT") == 0;
    if (t->copy)
        out(o, "int %s(%s *m, %s%s *host);\n", t->copy, api->prefix, input ? "const " : "", type);
    if (t->slot == NONE)
        out(o, input ? "%s *%s(%s *m);" : "const %s *%s(const %s *m);", type, t->accessor,
            api->prefix);
    else
        out(o, "void %s(%s *m, %s%s *data);", t->bind, api->prefix, input ? "const " : "", type);
    out(o, " /* ");
    out_comment(o, shape_text(g->arena, dtype, t->view.rank, t->view.dim));
    if (is_renamed(api, t)) {
        out(o, ": ");
        out_comment(o, t->name);
    }
    out(o, input ? " */\n" : ", of %s */\n", api_runs(api, t));
}

static void write_accessors(const Api *api, Out *o)
{
    bool external = false;
    for (size_t i = 0; i < api->tensors; i++)
        external |= api->tensor[i].accessor && api->tensor[i].slot != NONE;
    api_write(
        api, o,
        external
            ? "/* Inputs and outputs are the caller's memory: bind them before the first run. An "
              "output is\n"
              " * written by the runs it is said to be of, and stays as it is in the others. "
              "*/\n"
            : api->dialect->accessors);
    for (size_t i = 0; i < api->tensors; i++)
        if (api->tensor[i].accessor)
            write_accessor(api, &api->tensor[i], o);
    for (size_t i = 0; i < api->unuseds; i++) {
        out(o, "/* ");
        out_comment(o, api->unused[i]);
        out(o, ": no output depends on this input, so it has no place here. */\n");
    }
    out(o, "\n");
    if (api->saved_begin < api->saved_end && api->tensor[api->saved_begin].slot != NONE)
        api_write(api, o,
                  "/* Parameters are the caller's memory: bind each under its name before the "
                  "first run.\n"
                  " * reset and load write to it. */\n"
                  "int $_bind($ *m, const char *name, void *data);\n\n");
}

static void write_constants(const Api *api, Out *o)
{
    const char *name = constants_name(api);
    if (constants_count(api) == 0)
        return;
    out(o, "/* Constants that are too long for the C text lie in ");
    out_comment(o, name);
    out(o, ", which was written with it:\n");
    for (size_t i = api->saved_begin; i < api->saved_end; i++)
        if (constant_is_long(api, i)) {
            out(o, " *   ");
            out_comment(o, api->tensor[i].name);
            out(o, "\n");
        }
    api_write(api, o,
              " * reset leaves them as they are: load them after init, and one that is trained "
              "again after a\n"
              " * reset. A file that save wrote has them too, so load is enough then. */\n"
              "int $_load_constants($ *m, const char *path);\n");
}

static size_t count_ops(const Plan *plan)
{
    size_t ops = 0;
    for (int p = 0; p < PROGRAMS; p++)
        for (Id i = 0; i < plan->program[p].count; i++)
            ops += !access_is_done(plan, &plan->program[p].at[i]);
    return ops;
}

Text emit_header(const Plan *plan, const EmitOptions *options)
{
    const Graph *g = plan->graph;
    Api *api = api_make(plan, options);
    Out o = out_new(g->arena);
    out(&o, "/* ");
    out_comment(&o, options->header);
    out(&o, ": the model ");
    out_comment(&o, g->name);
    out(&o, ", made by gplan from ");
    out_comment(&o, g->source ? g->source->file : "a graph");
    out(&o, ".\n");
    const char *own = c_prefix(g->arena, g->name);
    if (strcmp(api->prefix, g->name) != 0 && strcmp(api->prefix, own) == 0)
        out(&o, " * C would refuse the name %s, so its functions begin with %s_.\n", g->name,
            api->prefix);
    out(&o, api->dialect->memory, size_text(g->arena, plan->arena));
    api_write(api, &o, head);
    write_sizes(api, &o, count_ops(plan));
    api_write(api, &o, arena_printf(g->arena, types, api->dialect->codes));
    runs_types(api, &o);
    write_struct(api, &o);
    write_accessors(api, &o);
    write_functions(api, &o);
    write_constants(api, &o);
    runs_declare(api, &o);
    const Dialect *d = api->dialect;
    api_write(api, &o,
              arena_printf(g->arena, more_functions, d->declared_more, d->declared_profile));
    out(&o, "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    return out_done(&o);
}
