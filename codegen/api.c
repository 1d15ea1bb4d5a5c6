/* What the caller of an emitted file sees: its tensors in a fixed order, under safe names. */
#include "codegen/internal.h"

#include <string.h>

/* Functions and types of the header that every model has, or will have when it is trained. */
static const char *const api_words[] = {
    "tensor",         "init",    "reset",       "load",     "save",     "forward",
    "eval",           "step",    "set_lr",      "lr",       "schedule", "seed",
    "valid",          "bind",    "map",         "strerror", "error",    "threads",
    "progress",       "profile", "op_name",     "tensors",  "sizeof",   "profile_print",
    "load_constants", "data",    "feed",        "fill",     "samples",  "batches",
    "taken",          "skipped", "seek",        "close",    "rank",     "timeout",
    "agree",          "heard",   "check_files", "prepare",
};

/* The first output of the name: programs that compute the same output have one each. */
static size_t first_of(const Graph *g, size_t output)
{
    for (size_t i = 0; i < output; i++)
        if (!g->output.at[i].loss && strcmp(g->output.at[i].name, g->output.at[output].name) == 0)
            return i;
    return output;
}

/* The caller gives memory once for all programs that write an output. */
static void number_slots(Api *api)
{
    const Plan *plan = api->plan;
    const Graph *g = plan->graph;
    api->slot = ARENA_ARRAY(g->arena, Id, plan->buffers);
    for (Id i = 0; i < plan->buffers; i++)
        api->slot[i] = NONE;
    for (Id i = 0; i < plan->buffers; i++) {
        const Buffer *b = &plan->buffer[i];
        if (b->root == i && b->space != SPACE_ARENA && b->kind != BUFFER_OUTPUT)
            api->slot[i] = api->slots++;
    }
    for (size_t i = 0; i < g->output.count; i++) {
        const Buffer *b = &plan->buffer[plan->output[i]];
        size_t first = first_of(g, i);
        if (b->space != SPACE_ARENA)
            api->slot[b->root] =
                first == i ? api->slots++ : api->slot[plan->buffer[plan->output[first]].root];
    }
}

static void add(Api *api, Use use, const char *name, const char *kind, Id buffer)
{
    const Graph *g = api->plan->graph;
    const Buffer *b = &api->plan->buffer[buffer];
    View view = access_view(api->plan, use, buffer);
    uint64_t offset = (uint64_t)view.offset * dtype_size((Dtype)g->value.at[use.value].dtype);
    api->tensor[api->tensors++] = (ApiTensor){
        .value = use.value,
        .name = name,
        .kind = kind,
        .buffer = b,
        .slot = api->slot[b->root],
        .offset = b->space != SPACE_ARENA ? offset : offset + b->offset,
        .view = view,
    };
}

static RunKind run_of(const Graph *g, const Output *output)
{
    uint8_t program = g->node.at[g->value.at[output->use.value].node].program;
    return program == PROGRAM_FORWARD ? RUN_FORWARD : program == PROGRAM_EVAL ? RUN_EVAL : RUN_STEP;
}

/* An output of one program, or where another program leaves it. */
static void add_output(Api *api, size_t i, size_t *tensor)
{
    const Graph *g = api->plan->graph;
    const Output *output = &g->output.at[i];
    size_t first = first_of(g, i);
    if (first == i) {
        tensor[i] = api->tensors;
        add(api, output->use, output->name, "OUTPUT", api->plan->output[i]);
    }
    ApiTensor *t = &api->tensor[tensor[first]];
    View view = access_view(api->plan, output->use, api->plan->output[i]);
    t->made[run_of(g, output)] = api->runs[run_of(g, output)] = true;
    t->at[run_of(g, output)] = access_address(api, api->plan->output[i], &view).offset;
}

const char *api_runs(const Api *api, const ApiTensor *t)
{
    static const char *const names[RUNS] = {"forward", "eval", "step"};
    const char *list = "";
    for (int r = 0; r < RUNS; r++)
        if (t->made[r])
            list = arena_printf(api->plan->graph->arena, "%s%s%s", list, *list ? " and " : "",
                                names[r]);
    return list;
}

static void name_tensor(Api *api, Names *macros, ApiTensor *t)
{
    Arena *arena = api->plan->graph->arena;
    bool io = strcmp(t->kind, "INPUT") == 0 || strcmp(t->kind, "OUTPUT") == 0;
    if (io) {
        t->accessor = name_claim(&api->names, arena_printf(arena, "%s_%s", api->prefix, t->name));
        const char *word = t->accessor + strlen(api->prefix) + 1;
        t->count = name_claim(
            macros, arena_printf(arena, "%s_%s_COUNT", api->capitals, name_capitals(arena, word)));
        if (t->slot != NONE)
            t->bind = name_claim(&api->names, arena_printf(arena, "%s_bind_%s", api->prefix, word));
        const char *copy = *t->kind == 'I' ? api->dialect->set : api->dialect->get;
        if (copy && t->slot == NONE)
            t->copy = name_claim(&api->names, arena_printf(arena, copy, api->prefix, word));
    }
}

static void name_all(Api *api)
{
    Arena *arena = api->plan->graph->arena;
    Names macros = {.arena = arena, .macros = true};
    api->names = (Names){.arena = arena};
    for (const char *const *word = api->dialect->own; *word; word++)
        name_claim(&api->names, *word);
    api->prefix = name_claim(&api->names, api->options->prefix);
    api->capitals = name_claim(&macros, name_capitals(arena, api->prefix));
    for (size_t i = 0; i < sizeof api_words / sizeof *api_words; i++)
        name_claim(&api->names, arena_printf(arena, "%s_%s", api->prefix, api_words[i]));
    for (const char *const *word = api->dialect->words; *word; word++)
        name_claim(&api->names, arena_printf(arena, "%s_%s", api->prefix, *word));
    for (size_t i = 0; i < api->tensors; i++)
        name_tensor(api, &macros, &api->tensor[i]);
}

/* By value: state of the optimizer with its loss scale, as against running statistics. */
static bool *find_optimizer_state(const Graph *g)
{
    const uint32_t those = OP_OPTIMIZER | OP_DECIDES;
    bool *is = ARENA_ARRAY(g->arena, bool, g->value.count);
    for (size_t n = 0; n < g->node.count; n++)
        for (Id i = 0; i < g->node.at[n].uses && g->node.at[n].op->flags & those; i++) {
            Id value = node_use(g, &g->node.at[n], i).value;
            if (value != NONE)
                is[value] = g->value.at[value].kind == VALUE_STATE;
        }
    return is;
}

static const char *saved_kind(const Value *value)
{
    switch (value->kind) {
    case VALUE_PARAM:
    case VALUE_CONST:
        return "PARAM";
    case VALUE_STATE:
        return "STATE";
    default:
        return NULL;
    }
}

Api *api_make(const Plan *plan, const EmitOptions *options)
{
    const Graph *g = plan->graph;
    Api *api = ARENA_NEW(g->arena, Api);
    api->plan = plan;
    api->options = options;
    api->target = target_find(options->target->name);
    api->dialect = api->target->dialect;
    api->tensor = ARENA_ARRAY(g->arena, ApiTensor, g->value.count + g->output.count);
    api->unused = ARENA_ARRAY(g->arena, const char *, g->value.count);
    number_slots(api);
    for (size_t i = 0; i < g->dimension.count; i++)
        if (g->dimension.at[i].batch && !api->batch)
            api->batch = g->dimension.at[i].value * (g->ranks.state == NONE ? 1 : g->ranks.count);
    for (Id v = 0; v < g->value.count; v++)
        if (g->value.at[v].kind == VALUE_INPUT && g->value.at[v].whole == NONE &&
            !g->value.at[v].fed) {
            if (plan->home[v] != NONE)
                add(api, use_of(v), g->value.at[v].name, "INPUT", plan->home[v]);
            else
                api->unused[api->unuseds++] = g->value.at[v].name;
        }
    size_t *tensor = ARENA_ARRAY(g->arena, size_t, g->output.count);
    for (size_t i = 0; i < g->output.count; i++)
        if (g->output.at[i].loss)
            api->runs[run_of(g, &g->output.at[i])] = true;
        else
            add_output(api, i, tensor);
    api->trains = api->runs[RUN_STEP];
    api->runs[RUN_FORWARD] |= !api->trains && !api->runs[RUN_EVAL];
    api->saved_begin = api->tensors;
    const bool *last = find_optimizer_state(g);
    for (int pass = 0; pass < 2; pass++) {
        for (Id v = 0; v < g->value.count; v++)
            if (saved_kind(&g->value.at[v]) && plan->home[v] != NONE && !value_is_version(g, v) &&
                last[v] == (pass == 1))
                add(api, use_of(v), g->value.at[v].name, saved_kind(&g->value.at[v]),
                    plan->home[v]);
        if (pass == 0)
            api->needed_end = api->tensors;
    }
    api->saved_end = api->tensors;
    name_all(api);
    return api;
}
