/* What C has its own: loops over threads, a run that ends before its function returns. */
#include "codegen/internal.h"
#include "codegen/loop.h"

/* ---- Functions of clusters ------------------------------------------------------------------ */

static void write_call(const Emission *e, const Occurrence *o, const Node *node,
                       const char *epilogue, Out *to)
{
    static const KernelSyntax settings = {.open = "        .attr = &(const gp_%s_attr){",
                                          .before = ".",
                                          .between = ", ",
                                          .close = "},\n",
                                          .lists = true};
    out(to, "    return gp_%s(&(const gp_call){\n", node->op->name);
    if (node->uses)
        out(to, "        .in = in, .ins = %u, ", node->uses);
    out(to, "%s.out = out, .outs = %u, .run = run,\n", node->uses ? "" : "        ", node->values);
    if (o->workspace != NONE)
        out(to, "        .work = work,\n");
    if (node->op->flags & OP_RANDOM)
        out(to, "        .key = key,\n");
    if (epilogue)
        out(to, "        .epilogue = %s, .epilogue_args = args,\n", epilogue);
    kernel_settings(e->plan->graph, node, &settings, to);
    out(to, "    });\n");
}

/* ---- Functions of the header ---------------------------------------------------------------- */

static void write_init(const Emission *e, Out *o)
{
    api_write(e->api, o,
              "int $_init($ *m, void *arena, size_t bytes)\n"
              "{\n"
              "    memset(m, 0, sizeof *m);\n"
              "    m->threads = gp_threads(@_THREADS_MAX);\n");
    if (e->plan->arena > 0)
        api_write(e->api, o, frame_check_arena);
    else
        out(o, "    (void)bytes;\n");
    api_write(e->api, o, "    m->arena = arena;\n");
    runs_init(e->api, o);
    api_write(e->api, o, "    return @_OK;\n}\n\n");
}

static void write_begin(Out *o, size_t ops)
{
    out(o, "    int code;\n    m->ran = m->done = 0;\n    m->ops = %zu;\n", ops);
    out(o, "#ifdef GPLAN_PROFILE\n    m->clock = now();\n#endif\n");
}

/* What holds for a whole run. `losses`: it knows which samples count. */
static void write_run(const Emission *e, Out *o, ProgramKind program, bool losses, const char *more)
{
    uint32_t times = e->plan->program[program].times;
    out(o, "    %sgp_run run = {.seed = m->seed, .step = m->step, .threads = m->threads",
        times > 1 ? "" : "const ");
    if (losses && runs_valid(e->api))
        out(o, ",\n                  .batch = %lld, .valid = m->valid", (long long)e->api->batch);
    if (times > 1)
        out(o, ",\n                  .micros = %u", times);
    out(o, "%s};\n", more);
}

static void write_forward(const Emission *e, Out *o)
{
    api_write(e->api, o, "int $_forward($ *m)\n{\n    m->detail[0] = 0;\n");
    api_write(e->api, o, e->api->slots ? frame_check_bound : "");
    if (e->program[PROGRAM_FORWARD].calls) {
        write_run(e, o, PROGRAM_FORWARD, false, "");
        write_begin(o, runs_calls(e, PROGRAM_FORWARD));
        runs_times(e, o, PROGRAM_FORWARD, "");
    }
    api_write(e->api, o, "    m->ran = RAN_FORWARD;\n    return @_OK;\n}\n\n");
}

/* Runs the program and leaves its loss in `sum`: each micro-batch has its share of the mean. */
static void write_sum(const Emission *e, Out *o, ProgramKind program)
{
    out(o, "    double sum = 0;\n");
    runs_times(e, o, program,
               arena_printf(e->arena, "sum += (double)*(const gp_real *)AT(%llu);",
                            (unsigned long long)runs_loss(e, program)));
}

static void write_eval(const Emission *e, Out *o)
{
    api_write(e->api, o, "int $_eval($ *m, float *loss)\n{\n    m->detail[0] = 0;\n");
    api_write(e->api, o, e->api->slots ? frame_check_bound : "");
    write_run(e, o, PROGRAM_EVAL, true, "");
    write_begin(o, runs_calls(e, PROGRAM_EVAL));
    write_sum(e, o, PROGRAM_EVAL);
    api_write(e->api, o,
              "    *loss = (float)sum;\n"
              "    m->ran = RAN_EVAL;\n"
              "    return @_OK;\n}\n\n");
}

static void write_step(const Emission *e, Out *o)
{
    api_write(e->api, o, "int $_step($ *m, float *loss)\n{\n    m->detail[0] = 0;\n");
    api_write(e->api, o, e->api->slots ? frame_check_bound : "");
    write_run(e, o, PROGRAM_STEP, true,
              arena_printf(e->arena, ",\n                  .lr = %s_lr(m)", e->api->prefix));
    write_begin(o, runs_calls(e, PROGRAM_STEP) + runs_calls(e, PROGRAM_UPDATE));
    write_sum(e, o, PROGRAM_STEP);
    if (e->program[PROGRAM_UPDATE].calls)
        runs_times(e, o, PROGRAM_UPDATE, "");
    api_write(e->api, o,
              "    m->step++;\n"
              "    m->ran = RAN_STEP;\n"
              "    if (loss)\n"
              "        *loss = (float)sum;\n"
              "    return @_OK;\n}\n\n");
}

/* ---- Texts ---------------------------------------------------------------------------------- */

static const char *const needs[] = {"c/base.h", "c/file_save.h", "c/file_load.h", NULL};
static const char *const none[] = {NULL};

const Dialect dialect_c = {
    .kernel = "c/%s.h",
    .needs = needs,
    .words = none,
    .own = none,
    .nest = loop_nest_c,
    .call = write_call,
    .compile =
        " * Compile with -O3 -march=native -fopenmp for speed. -DGPLAN_PROFILE adds a time "
        "per op,\n * -DGPLAN_POISON fills what is dead with NaN, -DGPLAN_CHECK_NAN stops at the "
        "first op that\n * makes one.\n",
    .includes = "#ifndef _POSIX_C_SOURCE\n#define _POSIX_C_SOURCE 200809L\n#endif\n\n",
    .clocks = "#ifdef GPLAN_PROFILE\n#include <time.h>\n#endif\n",
    .checks = "_Static_assert(sizeof(gp_real) == 4, \"the arena was planned for floats\");\n\n",
    .at = "/* Places in memory, as arguments of the functions above. */\n"
          "#define AT(offset) ((void *)(m->arena + (offset)))\n",
    .external = "#define EXTERNAL(slot, offset) ((void *)((unsigned char *)m->external[slot] + "
                "(offset)))\n",
    .op_macro = "/* Runs an op; leaves the function where it failed. */\n"
                "#define OP(number, call)                                  \\\n"
                "    do {                                                  \\\n"
                "        if ((code = op_end(m, number, call)) != @_OK)     \\\n"
                "            return code;                                  \\\n"
                "    } while (0)\n"
                "\n",
    .nan_check =
        "        const gp_real *at = RESULT(low);\n"
        "        for (int64_t row = 0; row < result[low].rows; row++, at += result[low].stride)\n"
        "            for (int64_t i = 0; i < result[low].count; i++)\n"
        "                if (at[i] != at[i])\n"
        "                    return 1;\n",
    .nan_found = "    return 0;\n",
    .poison = "memset(m->arena + death[low].offset, 0xff, death[low].bytes)",
    .profile = "#ifdef GPLAN_PROFILE\n"
               "static double now(void)\n"
               "{\n"
               "    struct timespec t;\n"
               "    clock_gettime(CLOCK_MONOTONIC, &t);\n"
               "    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;\n"
               "}\n"
               "#endif\n\n",
    .op_end = "/* After each op: what it returned, with its number; the checks that were compiled "
              "in. */\n"
              "static GP_NOINLINE int op_end($ *m, int op, int code)\n"
              "{\n"
              "    if (code != GP_OK)\n"
              "        return failed(m, code | op << 4);\n"
              "#ifdef GPLAN_CHECK_NAN\n"
              "    if (makes_nan(m, op))\n"
              "        return failed(m, @_ENAN | op << 4);\n"
              "#endif\n"
              "#ifdef GPLAN_POISON\n"
              "    poison(m, op);\n"
              "#endif\n"
              "#ifdef GPLAN_PROFILE\n"
              "    const double time = now();\n"
              "    if (m->seconds)\n"
              "        m->seconds[op] += time - m->clock;\n"
              "    m->clock = time;\n"
              "#endif\n"
              "    if (m->progress && m->progress(m->user, m->step, ++m->done, m->ops) != 0)\n"
              "        return failed(m, @_ECANCEL);\n"
              "    return @_OK;\n"
              "}\n\n",
    .init = write_init,
    .begin = "/* Tensors of a file from `first` on, as they are after a reset. */\n"
             "static void begin($ *m, size_t first, uint64_t seed)\n"
             "{\n"
             "    const gp_run run = {.seed = seed, .threads = m->threads};\n"
             "    for (size_t i = first; i < SAVED_COUNT; i++) {\n"
             "        const $_tensor *t = &tensor[SAVED + i];\n"
             "        int64_t count = 1;\n"
             "        for (int d = 0; d < t->rank; d++)\n"
             "            count *= t->dim[d];\n"
             "        if (data(m, SAVED + i))\n"
             "            gp_initialize(&run, &init[i], t->name, data(m, SAVED + i), t->dtype, 0, "
             "count);\n"
             "    }\n"
             "}\n"
             "\n",
    .begin_state = "        begin(m, NEEDED_COUNT, m->seed); /* parameters alone */\n",
    .item_more = "",
    .wait = "",
    .reset_type = "void",
    .reset_saved = "    begin(m, 0, seed);\n",
    .reset_nothing = "",
    .forward = write_forward,
    .eval = write_eval,
    .step = write_step,
    .error_texts = "        NULL,\n",
    .errors = "",
    .functions =
        "void $_threads($ *m, int threads)\n"
        "{\n"
        "    m->threads = threads < 1 ? 1 : threads > @_THREADS_MAX ? @_THREADS_MAX : threads;\n"
        "}\n"
        "\n",
    .profile_op_name = "const char *$_op_name(int op)\n"
                       "{\n"
                       "    return op_nan[op] + sizeof \"a NaN was made by\";\n"
                       "}\n"
                       "\n",
    .memory = " *\n * Everything it needs lies in one arena of %s; it allocates nothing. */\n",
    .codes = "",
    .fields = "    unsigned char *arena;\n"
              "    uint64_t seed, step;\n"
              "    int threads;\n",
    .clock_fields = "    double *seconds, clock; /* of $_profile */\n",
    .accessors =
        "/* Inputs keep what the caller wrote. Outputs stand until the next run; NULL where "
        "the last one\n"
        " * is none of those it is said to be of, or failed. */\n",
    .declared_init =
        "/* Takes the memory that everything lives in; it is neither read nor written yet. */\n"
        "int $_init($ *m, void *arena, size_t bytes);\n",
    .declared_forward = "/* Computes the outputs from the inputs. */\n"
                        "int $_forward($ *m);\n",
    .declared_step =
        "/* The loss of the batch in the inputs and the outputs that are said to be of it, "
        "without\n"
        " * dropout; changes nothing that is saved. */\n"
        "int $_eval($ *m, float *loss);\n"
        "/* One step of training on the batch in the inputs; the loss is that before the update, "
        "and\n"
        " * may be NULL. Where it fails with an index outside its table nothing that is saved has "
        "changed; where\n"
        " * the progress function stopped it, some of it may have: load or reset then. */\n"
        "int $_step($ *m, float *loss);\n",
    .declared_more = "/* From 1 to @_THREADS_MAX; it changes no bit of any result. */\n"
                     "void $_threads($ *m, int threads);\n",
    .declared_profile = "const char *$_op_name(int op);\n",
};
