/* The functions of the header that run programs: forward, and for a model that trains eval, step
 * and what can be set for them. */
#include "codegen/internal.h"

#include <string.h>

static bool has_outputs(const Api *api)
{
    for (size_t i = 0; i < api->tensors; i++)
        if (strcmp(api->tensor[i].kind, "OUTPUT") == 0)
            return true;
    return !api->trains;
}

/* Only the mean of a loss knows of samples that do not count. */
bool runs_valid(const Api *api)
{
    const Graph *g = api->plan->graph;
    for (size_t n = 0; n < g->node.count && api->trains && api->batch; n++)
        if (g->node.at[n].op->flags & OP_WEIGHS)
            return true;
    return false;
}

static const TrainSetting *find_setting(const Graph *g, const char *name)
{
    for (size_t i = 0; i < g->train.setting.count; i++)
        if (strcmp(g->train.setting.at[i].name, name) == 0)
            return &g->train.setting.at[i];
    return NULL;
}

static double setting(const Graph *g, const char *name, double otherwise)
{
    const TrainSetting *s = find_setting(g, name);
    return s ? s->value.number : otherwise;
}

/* ---- The header ----------------------------------------------------------------------------- */

static const char *const train_constants =
    "/* How the learning rate goes on after its warmup; see $_schedule. */\n"
    "enum { @_CONSTANT, @_LINEAR, @_COSINE, @_STEPS };\n\n";

static const char *const train_fields =
    "    double lr;    /* of set_lr */\n"
    "    int schedule; /* of schedule, as are the next three */\n"
    "    uint64_t warmup, steps;\n"
    "    double share;\n"
    "    int64_t valid; /* samples of the batch that count; 0: all */\n";

static const char *const rate_declared =
    "/* The learning rate, and the share of it that each step takes. For the first `warmup` steps\n"
    " * it rises from lr / warmup to lr. Then it stays (@_CONSTANT); falls in a line or as a "
    "cosine\n"
    " * to share * lr at step `steps`, where it stays (@_LINEAR, @_COSINE); or is multiplied by\n"
    " * `share` every `steps` steps (@_STEPS). Both are not saved: set them again after a load "
    "where\n"
    " * they are not those of the model. */\n"
    "void $_set_lr($ *m, double lr);\n"
    "void $_schedule($ *m, int kind, uint64_t warmup, uint64_t steps, double share);\n"
    "double $_lr(const $ *m); /* of the next step */\n"
    "/* What dropout draws from; reset and load set it too. */\n"
    "void $_seed($ *m, uint64_t seed);\n";

static const char *const valid_declared =
    "/* For a last batch that is not full: only its first samples count in the mean that the loss\n"
    " * is, in eval and step. Holds until it is set again; 0 is all of @_BATCH. What is below 0 "
    "or\n"
    " * above @_BATCH is @_ESAMPLES and changes nothing. */\n"
    "int $_valid($ *m, int64_t samples);\n";

void runs_declare(const Api *api, Out *o)
{
    if (has_outputs(api))
        api_write(api, o, api->dialect->declared_forward);
    if (api->trains) {
        api_write(api, o, api->dialect->declared_step);
        api_write(api, o, rate_declared);
    }
    if (runs_valid(api))
        api_write(api, o, valid_declared);
}

void runs_types(const Api *api, Out *o)
{
    if (runs_valid(api))
        out(o, "/* Samples of a batch. */\n#define %s_BATCH %lld\n\n", api->capitals,
            (long long)api->batch);
    if (api->trains)
        api_write(api, o, train_constants);
}

void runs_fields(const Api *api, Out *o)
{
    if (api->trains)
        out(o, "%s", train_fields);
}

/* ---- What a model begins with --------------------------------------------------------------- */

void runs_init(const Api *api, Out *o)
{
    static const char *const kinds[] = {"CONSTANT", "LINEAR", "COSINE", "STEPS"};
    const Graph *g = api->plan->graph;
    if (!api->trains)
        return;
    out(o, "    m->lr = %.17g;\n", g->train.lr);
    const TrainSetting *schedule = find_setting(g, "schedule");
    if (!schedule)
        return;
    bool stairs = find_setting(g, "schedule.every") || find_setting(g, "schedule.factor");
    double share = stairs ? setting(g, "schedule.factor", 0.1) : setting(g, "schedule.floor", 0);
    double steps = setting(g, "schedule.steps", setting(g, "schedule.every", 0));
    out(o, "    %s_schedule(m, %s_%s, %.0f, %.0f, %.17g);\n", api->prefix, api->capitals,
        kinds[(int)schedule->value.number], setting(g, "schedule.warmup", 0), steps, share);
}

/* ---- Programs ------------------------------------------------------------------------------- */

/* Calls the functions of a program; `run` and `code` are there. */
static void write_program(const Emission *e, Out *o, ProgramKind program, const char *indent)
{
    for (Id i = 0; i < e->program[program].functions; i++)
        out(o, "%sif ((code = %s_%u(m, &run)) != %s_OK)\n%s    return code;\n", indent,
            program_name(program), i, e->api->capitals, indent);
}

void runs_times(const Emission *e, Out *o, ProgramKind program, const char *each)
{
    uint32_t times = e->plan->program[program].times;
    if (e->program[program].calls)
        out(o, "#ifdef GPLAN_POISON\n    poison(m, -1);\n#endif\n");
    if (times > 1)
        out(o, "    for (; run.micro < %u; run.micro++) {\n", times);
    write_program(e, o, program, times > 1 ? "        " : "    ");
    if (*each)
        out(o, "%s    %s\n", times > 1 ? "    " : "", each);
    if (times > 1)
        out(o, "    }\n");
}

size_t runs_calls(const Emission *e, ProgramKind program)
{
    return (size_t)e->program[program].calls * e->plan->program[program].times;
}

/* Where the loss of a program lies. */
uint64_t runs_loss(const Emission *e, ProgramKind program)
{
    const Plan *plan = e->plan;
    const Graph *g = plan->graph;
    for (size_t i = 0; i < g->output.count; i++) {
        Use use = g->output.at[i].use;
        Id node = g->value.at[use.value].node;
        if (!g->output.at[i].loss || node == NONE || g->node.at[node].program != program)
            continue;
        View view = access_view(plan, use, plan->output[i]);
        return access_address(e->api, plan->output[i], &view).offset;
    }
    return 0;
}

static const char *const settings =
    "void $_set_lr($ *m, double lr)\n"
    "{\n"
    "    m->lr = lr;\n"
    "}\n"
    "\n"
    "void $_schedule($ *m, int kind, uint64_t warmup, uint64_t steps, double share)\n"
    "{\n"
    "    m->schedule = kind;\n"
    "    m->warmup = warmup;\n"
    "    m->steps = steps;\n"
    "    m->share = share;\n"
    "}\n"
    "\n"
    "double $_lr(const $ *m)\n"
    "{\n"
    "    return m->lr * gp_schedule(m->schedule, m->warmup, m->steps, m->share, m->step);\n"
    "}\n"
    "\n"
    "void $_seed($ *m, uint64_t seed)\n"
    "{\n"
    "    m->seed = seed;\n"
    "}\n\n";

static const char *const valid = "int $_valid($ *m, int64_t samples)\n"
                                 "{\n"
                                 "    if (samples < 0 || samples > @_BATCH)\n"
                                 "        return failed(m, @_ESAMPLES);\n"
                                 "    m->detail[0] = 0;\n"
                                 "    m->valid = samples;\n"
                                 "    return @_OK;\n"
                                 "}\n\n";

void runs_write(const Emission *e, Out *o)
{
    const Dialect *d = e->dialect;
    if (d->runs_begin)
        d->runs_begin(e, o);
    if (has_outputs(e->api))
        d->forward(e, o);
    if (!e->api->trains)
        return;
    api_write(e->api, o, settings);
    if (runs_valid(e->api))
        api_write(e->api, o, valid);
    d->eval(e, o);
    d->step(e, o);
}
