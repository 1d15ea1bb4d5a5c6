/* What stands round the program in an emitted file: the end of an op with the checks that can be
 * compiled in, and the functions of the header. */
#include "codegen/internal.h"
#include "runtime/runtime.h"

#include <string.h>

/* ---- Before the program --------------------------------------------------------------------- */

static const char *const nan_check =
    "#ifdef GPLAN_CHECK_NAN\n"
    "static int makes_nan($ *m, int op)\n"
    "{\n"
    "    size_t low = 0, high = sizeof result / sizeof *result - 1;\n"
    "    while (low < high) {\n"
    "        const size_t middle = (low + high) / 2;\n"
    "        if (result[middle].op < op)\n"
    "            low = middle + 1;\n"
    "        else\n"
    "            high = middle;\n"
    "    }\n"
    "    for (; result[low].op == op; low++) {\n"
    "%s"
    "    }\n"
    "%s"
    "}\n"
    "#endif\n\n";

static const char *const poison =
    "#ifdef GPLAN_POISON\n"
    "/* All bits set is a NaN in every float type, and an index outside any table. */\n"
    "static void poison($ *m, int op)\n"
    "{\n"
    "    size_t low = 0, high = sizeof death / sizeof *death - 1;\n"
    "    while (low < high) {\n"
    "        const size_t middle = (low + high) / 2;\n"
    "        if (death[middle].op < op)\n"
    "            low = middle + 1;\n"
    "        else\n"
    "            high = middle;\n"
    "    }\n"
    "    for (; death[low].op == op && death[low].bytes > 0; low++)\n"
    "        %s;\n"
    "}\n"
    "#endif\n\n";

static const char *const failed = "/* The code, in words for $_error. */\n"
                                  "static GP_UNUSED int failed($ *m, int code)\n"
                                  "{\n"
                                  "    snprintf(m->detail, sizeof m->detail, \"%s\", "
                                  "$_strerror(code));\n"
                                  "    return code;\n"
                                  "}\n\n";

void frame_before(Emission *e, Out *o)
{
    const Dialect *d = e->dialect;
    tables_tensors(e, o);
    if (e->api->slots)
        tables_slots(e, o);
    if (e->api->saved_begin < e->api->saved_end)
        tables_init(e, o);
    api_write(e->api, o, failed);
    if (d->before)
        d->before(e, o);
    if (e->call.count == 0)
        return;
    tables_ops(e, o);
    tables_results(e, o);
    tables_deaths(e, o);
    api_write(e->api, o, d->at);
    api_write(e->api, o, e->api->slots ? d->external : "");
    if (e->api->slots)
        out(o, "#define RESULT(i) \\\n"
               "    (result[i].slot < 0 ? AT(result[i].offset) : EXTERNAL(result[i].slot, "
               "result[i].offset))\n");
    else
        out(o, "#define RESULT(i) AT(result[i].offset)\n");
    api_write(e->api, o, d->op_macro);
    api_write(e->api, o, arena_printf(e->arena, nan_check, d->nan_check, d->nan_found));
    api_write(e->api, o, arena_printf(e->arena, poison, d->poison));
    api_write(e->api, o, d->profile);
    api_write(e->api, o, d->op_end);
}

/* ---- The functions of the header ------------------------------------------------------------ */

static const char *const data_in_arena = "static void *data(const $ *m, size_t i)\n"
                                         "{\n"
                                         "    return m->arena + tensor[i].offset;\n"
                                         "}\n\n";
static const char *const data_anywhere =
    "static void *data(const $ *m, size_t i)\n"
    "{\n"
    "    return slot[i] < 0 ? m->arena + tensor[i].offset : m->external[slot[i]];\n"
    "}\n\n";

static void write_reset(const Emission *e, Out *o, bool saved)
{
    const Dialect *d = e->dialect;
    api_write(e->api, o, saved ? d->begin : "");
    api_write(e->api, o,
              arena_printf(e->arena, "%s $_reset($ *m, uint64_t seed)\n", d->reset_type));
    api_write(e->api, o,
              "{\n"
              "    m->detail[0] = 0;\n"
              "    m->seed = seed;\n"
              "    m->step = 0;\n");
    api_write(e->api, o, saved ? d->reset_saved : d->reset_nothing);
    out(o, "}\n\n");
}

static const char *const file_item =
    "static const $ *gp_self(const void *gp_model)\n"
    "{\n"
    "    return (const $ *)gp_model; /* no model has a name that begins so */\n"
    "}\n"
    "\n"
    "static gp_item item(const void *model, size_t i)\n"
    "{\n"
    "    const $_tensor *t = &tensor[SAVED + i];\n"
    "    void *at = data(gp_self(model), SAVED + i);\n"
    "    return (gp_item){t->name, t->dtype, t->rank, t->dim, at, t->bytes%s};\n"
    "}\n\n";

/* Each begins with what the target has to wait for. */
static const char *const files =
    "int $_load($ *m, const char *path)\n"
    "{\n"
    "%s"
    "    unsigned char seen[SAVED_COUNT / 8 + 1] = {0};\n"
    "    const gp_items items = {.item = item, .model = m, .count = SAVED_COUNT,\n"
    "                            .needed = SAVED_COUNT, .seen = seen, .detail = m->detail,\n"
    "                            .detail_size = sizeof m->detail};\n"
    "    return gp_load(path, &items);\n"
    "}\n"
    "\n"
    "static int save_to($ *m, const char *path)\n"
    "{\n"
    "%s"
    "    const gp_items items = {.item = item, .model = m, .count = SAVED_COUNT,\n"
    "                            .detail = m->detail, .detail_size = sizeof m->detail};\n"
    "    return gp_save(path, &items);\n"
    "}\n\n";

static const char *const trained_files =
    "int $_load($ *m, const char *path)\n"
    "{\n"
    "%s"
    "    unsigned char seen[SAVED_COUNT / 8 + 1] = {0};\n"
    "    gp_note note[] = {{\"step\", 0}, {\"seed\", m->seed}};\n"
    "    const gp_items items = {.item = item, .model = m, .count = SAVED_COUNT,\n"
    "                            .needed = NEEDED_COUNT, .note = note, .notes = 2, .seen = seen,\n"
    "                            .detail = m->detail, .detail_size = sizeof m->detail};\n"
    "    const int code = gp_load(path, &items);\n"
    "    if (code != GP_OK)\n"
    "        return code;\n"
    "    m->step = note[0].number;\n"
    "    m->seed = note[1].number;\n"
    "    if (NEEDED_COUNT < SAVED_COUNT && !(seen[NEEDED_COUNT / 8] >> NEEDED_COUNT %% 8 & 1)) {\n"
    "%s"
    "        m->step = 0;\n"
    "    }\n"
    "    return @_OK;\n"
    "}\n"
    "\n"
    "static int save_to($ *m, const char *path)\n"
    "{\n"
    "%s"
    "    gp_note note[] = {{\"step\", m->step}, {\"seed\", m->seed}};\n"
    "    const gp_items items = {.item = item, .model = m, .count = SAVED_COUNT,\n"
    "                            .note = note, .notes = 2,\n"
    "                            .detail = m->detail, .detail_size = sizeof m->detail};\n"
    "    return gp_save(path, &items);\n"
    "}\n\n";

/* Saving changes what $_error says, and nothing else. */
static const char *const save =
    "static $ *gp_own(const $ *gp_model)\n"
    "{\n"
    "    return ($ *)(uintptr_t)gp_model; /* init wrote to it, so it is no constant */\n"
    "}\n"
    "\n"
    "int $_save(const $ *m, const char *path)\n"
    "{\n"
    "    return save_to(gp_own(m), path);\n"
    "}\n\n";

static const char *const constants =
    "/* Constants that are too long for this text. */\n"
    "static gp_item constant(const void *model, size_t i)\n"
    "{\n"
    "    return item(model, constants[i]);\n"
    "}\n"
    "\n"
    "int $_load_constants($ *m, const char *path)\n"
    "{\n"
    "%s"
    "    enum { COUNT = sizeof constants / sizeof *constants };\n"
    "    unsigned char seen[COUNT / 8 + 1] = {0};\n"
    "    const gp_items items = {.item = constant, .model = m, .count = COUNT, .needed = COUNT,\n"
    "                            .seen = seen, .detail = m->detail,\n"
    "                            .detail_size = sizeof m->detail};\n"
    "    return gp_load(path, &items);\n"
    "}\n\n";

static void write_constants(const Emission *e, Out *o)
{
    const Api *api = e->api;
    if (constants_count(api) == 0)
        return;
    out(o, "/* The constants of ");
    out_comment(o, constants_name(api));
    out(o, ": their places among the parameters. */\nstatic const size_t constants[] = {\n");
    for (size_t i = api->saved_begin; i < api->saved_end; i++)
        if (constant_is_long(api, i)) {
            out(o, "    %zu, /* ", i - api->saved_begin);
            out_comment(o, api->tensor[i].name);
            out(o, " */\n");
        }
    out(o, "};\n\n");
    api_write(e->api, o, arena_printf(e->arena, constants, e->dialect->wait));
}

static void write_parameters(const Emission *e, Out *o)
{
    const Api *api = e->api;
    const Dialect *d = e->dialect;
    size_t saved = api->saved_end - api->saved_begin;
    out(o,
        "/* Parameters and state: the tensors from here on, so many. */\n"
        "enum { SAVED = %zu, SAVED_COUNT = %zu",
        api->saved_begin, saved);
    if (api->trains)
        out(o, ", NEEDED_COUNT = %zu /* the rest is state of the optimizer */",
            api->needed_end - api->saved_begin);
    out(o, " };\n\n");
    api_write(e->api, o, api->slots ? data_anywhere : data_in_arena);
    write_reset(e, o, saved);
    api_write(e->api, o, arena_printf(e->arena, file_item, d->item_more));
    api_write(e->api, o,
              api->trains && saved
                  ? arena_printf(e->arena, trained_files, d->wait, d->begin_state, d->wait)
                  : arena_printf(e->arena, files, d->wait, d->wait));
    api_write(e->api, o, save);
    write_constants(e, o);
}

static const char *const ran[RUNS] = {"RAN_FORWARD", "RAN_EVAL", "RAN_STEP"};

/* An output is there after the runs that compute it, each of which may leave it elsewhere. */
static void write_output(const Api *api, const ApiTensor *t, const char *type, Out *o)
{
    out(o, "const %s *%s(const %s *m)\n{\n    switch (m->ran) {\n", type, t->accessor, api->prefix);
    for (int r = 0; r < RUNS; r++)
        if (t->made[r])
            out(o, "    case %s:\n        return (const %s *)(void *)(m->arena + %llu);\n", ran[r],
                type, (unsigned long long)t->at[r]);
    out(o, "    default:\n        return NULL;\n    }\n}\n\n");
}

static void write_accessors(const Emission *e, Out *o)
{
    const Api *api = e->api;
    for (size_t i = 0; i < api->tensors; i++) {
        const ApiTensor *t = &api->tensor[i];
        const char *type = c_api_type((Dtype)e->plan->graph->value.at[t->value].dtype);
        bool input = strcmp(t->kind, "INPUT") == 0;
        if (!t->accessor)
            continue;
        if (t->slot != NONE)
            out(o, "void %s(%s *m, %s%s *data_)\n{\n    m->external[%u] = (void *)data_;\n}\n\n",
                t->bind, api->prefix, input ? "const " : "", type, t->slot);
        else if (input)
            out(o, "%s *%s(%s *m)\n{\n    return (%s *)(void *)(m->arena + %llu);\n}\n\n", type,
                t->accessor, api->prefix, type, (unsigned long long)t->offset);
        else
            write_output(api, t, type, o);
    }
}

static const char *const bind =
    "int $_bind($ *m, const char *name, void *data_)\n"
    "{\n"
    "    for (size_t i = SAVED; i < SAVED + SAVED_COUNT; i++)\n"
    "        if (strcmp(tensor[i].name, name) == 0 && slot[i] >= 0) {\n"
    "            m->external[slot[i]] = data_;\n"
    "            m->detail[0] = 0;\n"
    "            return @_OK;\n"
    "        }\n"
    "    snprintf(m->detail, sizeof m->detail, \"%s: no parameter has this name\", name);\n"
    "    return @_ETENSOR;\n"
    "}\n\n";

const char *const frame_check_arena =
    "    if (!arena || bytes < @_ARENA_BYTES || (uintptr_t)arena % @_ARENA_ALIGN) {\n"
    "        snprintf(m->detail, sizeof m->detail,\n"
    "                 \"the arena must have %llu bytes and begin on a multiple of %d\",\n"
    "                 @_ARENA_BYTES, @_ARENA_ALIGN);\n"
    "        return @_EARENA;\n"
    "    }\n";

const char *const frame_check_bound =
    "    for (size_t i = 0; i < sizeof tensor / sizeof *tensor; i++)\n"
    "        if (slot[i] >= 0 && !m->external[slot[i]]) {\n"
    "            snprintf(m->detail, sizeof m->detail, \"%s: no memory is bound to it\",\n"
    "                     tensor[i].name);\n"
    "            return @_EBIND;\n"
    "        }\n";

/* Only kernels that look things up can fail. */
static bool can_fail(const Emission *e, const EmitCall *call)
{
    const Cluster *c = &e->plan->clusters->at[call->occurrence->cluster];
    return e->plan->graph->node.at[e->plan->clusters->node[c->node]].op->flags & OP_LOOKS_UP;
}

static const char *const error_texts =
    "    static const char *const text[16] = {\n"
    "        \"no error\",\n"
    "        \"an index outside its table\",\n"
    "        \"a NaN was made\",\n"
    "        \"the arena is too small or not aligned\",\n"
    "        \"a file cannot be opened, read or written\",\n"
    "        \"not a safetensors file, or cut short\",\n"
    "        \"a tensor that is missing, or has another shape or dtype\",\n"
    "        \"stopped by the progress function\",\n"
    "        \"a tensor without memory bound to it\",\n"
    "%s"
    "        \"fewer samples than none, or more than a batch has\",\n"
    "    };\n";

static void write_strerror(const Emission *e, Out *o)
{
    api_write(e->api, o, "const char *$_strerror(int code)\n{\n");
    api_write(e->api, o, arena_printf(e->arena, error_texts, e->dialect->error_texts));
    bool any = false;
    for (size_t i = 0; i < e->call.count; i++) {
        if (!can_fail(e, &e->call.at[i]))
            continue;
        if (!any)
            api_write(e->api, o,
                      "    if (@_ERROR_KIND(code) == @_EINDEX)\n"
                      "        switch (@_ERROR_OP(code)) {\n");
        any = true;
        out(o, "        case %zu:\n            return ", i);
        out_string(o, arena_printf(e->arena, "an index outside the table of %s",
                                   emission_label(e, &e->call.at[i])));
        out(o, ";\n");
    }
    out(o, any ? "        }\n" : "");
    if (e->call.count)
        api_write(e->api, o,
                  "#ifdef GPLAN_CHECK_NAN\n"
                  "    if (@_ERROR_KIND(code) == @_ENAN && (unsigned)@_ERROR_OP(code) < @_OPS)\n"
                  "        return op_nan[@_ERROR_OP(code)];\n"
                  "#endif\n");
    api_write(e->api, o, e->call.count ? e->dialect->errors : "");
    api_write(e->api, o,
              "    return text[code & 15] ? text[code & 15] : \"an unknown error\";\n}\n\n");
}

static const char *const rest =
    "const char *$_error(const $ *m)\n"
    "{\n"
    "    return m->detail;\n"
    "}\n"
    "\n"
    "size_t $_sizeof(void)\n"
    "{\n"
    "    return sizeof($);\n"
    "}\n"
    "\n"
    "const $_tensor *$_tensors(size_t *count)\n"
    "{\n"
    "    *count = sizeof tensor / sizeof *tensor;\n"
    "    return tensor;\n"
    "}\n"
    "\n"
    "%s"
    "void $_progress($ *m, int (*see)(void *user, uint64_t step, int op, int ops), void *user)\n"
    "{\n"
    "    m->progress = see;\n"
    "    m->user = user;\n"
    "}\n";

static const char *const profile_functions =
    "\n"
    "#ifdef GPLAN_PROFILE\n"
    "void $_profile($ *m, double *seconds)\n"
    "{\n"
    "    m->seconds = seconds;\n"
    "}\n"
    "\n"
    "%s"
    "void $_profile_print(const $ *m)\n"
    "{\n"
    "    double all = 0, last = HUGE_VAL;\n"
    "    for (int op = 0; m->seconds && op < @_OPS; op++)\n"
    "        all += m->seconds[op];\n"
    "    printf(\"%%10.3f ms in %%d ops\\n\", 1e3 * all, @_OPS);\n"
    "    for (int shown = 0; m->seconds && shown < @_OPS && shown < 100;) {\n"
    "        double next = -1; /* the longest that is shorter than those shown */\n"
    "        for (int op = 0; op < @_OPS; op++)\n"
    "            if (m->seconds[op] < last && m->seconds[op] > next)\n"
    "                next = m->seconds[op];\n"
    "        for (int op = 0; op < @_OPS; op++)\n"
    "            if (m->seconds[op] == next && ++shown)\n"
    "                printf(\"%%10.3f ms %%5.1f%%%%  %%4d %%s\\n\", 1e3 * next, 100 * next / all, "
    "op,\n"
    "                       $_op_name(op));\n"
    "        last = next;\n"
    "    }\n"
    "}\n"
    "#endif\n";

void frame_after(Emission *e, Out *o)
{
    const Dialect *d = e->dialect;
    bool bound =
        e->api->saved_begin < e->api->saved_end && e->api->tensor[e->api->saved_begin].slot != NONE;
    d->init(e, o);
    write_parameters(e, o);
    out(o, "/* What ran last, in m->ran; 0 where nothing did, or it failed. */\n"
           "enum { RAN_FORWARD = 1, RAN_EVAL, RAN_STEP };\n\n");
    write_accessors(e, o);
    if (d->copies)
        d->copies(e, o);
    api_write(e->api, o, bound ? bind : "");
    runs_write(e, o);
    write_strerror(e, o);
    api_write(e->api, o, arena_printf(e->arena, rest, d->functions));
    if (e->call.count)
        api_write(e->api, o, arena_printf(e->arena, profile_functions, d->profile_op_name));
}
