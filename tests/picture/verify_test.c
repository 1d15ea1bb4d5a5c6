/* gplan verify against spoilt plans: whatever it accepts, the oracle must find right too. */
#include "tests/picture/oracle.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* ---- Plans to spoil ------------------------------------------------------------------------- */

static const char perceptron[] = "model mlp(batch B = 2, H = 6)\n"
                                 "input x : f32[B, 5]\n"
                                 "input labels : i32[B]\n"
                                 "h = relu(dense(x, H))\n"
                                 "logits = dense(h, 3)\n"
                                 "output probs = softmax(logits)\n"
                                 "train cross_entropy(logits, labels) using sgd(lr = 0.1, "
                                 "momentum = 0.9)\n";

static const char halves[] = "model halves(batch B = 4)\n"
                             "input x : f32[B, 5]\n"
                             "input labels : i32[B]\n"
                             "logits = dense(x, 3)\n"
                             "output probs = softmax(logits)\n"
                             "train cross_entropy(logits, labels) using sgd() { accumulate = 2 }\n";

static const char vectors[] = "model vectors\n"
                              "input x : f32[4]\n"
                              "param w : [4, 5]\n"
                              "h = x @ w\n"
                              "output y = w @ h\n"
                              "output z = h @ h\n";

static const char joined[] = "model joined(batch B = 2)\n"
                             "input x : f32[B, 3, 6, 6]\n"
                             "const some : [54, 4] = ones\n"
                             "a = relu(conv2d(x, 4, kernel = 3, pad = same))\n"
                             "b = conv2d(a, 2, kernel = 1)\n"
                             "c = concat(a, b, axis = 1)\n"
                             "d = maxpool2d(c, 2)\n"
                             "output e = flatten(d) @ some\n";

static const char attends[] = "model attends(batch B = 1, T = 4, C = 8)\n"
                              "input x : f32[B, T, C]\n"
                              "block layer(x) {\n"
                              "  x = x + attention(layernorm(x), heads = 2, causal = true)\n"
                              "  return x + dense(gelu(dense(x, 2*C)), C)\n"
                              "}\n"
                              "repeat i in 0..2 { x = layer(x) }\n"
                              "output y = x[:, 0:2] * 2\n";

static const char twice[] = "model twice(batch B = 2)\n"
                            "input x : f32[B, 8]\n"
                            "param v : [8, 8]\n"
                            "param w : [8, 8]\n"
                            "h = x @ v\n"
                            "output y = (h @ w) @ transpose(w) + h\n";

static const char recomputed[] = "model recomputed(batch B = 4)\n"
                                 "input x : f32[B, 4]\n"
                                 "v = softmax(x)\n"
                                 "logits = dense(concat([v], axis = -1), 11)\n"
                                 "output mid = v\n"
                                 "output best = argmax(logits, axis = -1)\n";

typedef struct {
    Arena *arena;
    json_t *json;
    Target target;
} Case;

static Case plan_how(const char *text, bool train, PlanOptions how)
{
    Case c = {.arena = arena_new(), .target = target_make(target_find("c"), 1)};
    Diag *diag = diag_new(c.arena, stderr, false);
    Source *source = ARENA_NEW(c.arena, Source);
    *source = (Source){.file = "test.g", .text = text, .length = strlen(text)};
    diag_source(diag, source);
    Ast *ast = parse(c.arena, diag, source);
    cr_assert(ast);
    Model model = {.source = source, .ast = ast, .infer = !train};
    Choice choice = {.epilogues = true};
    Built built = build(&model, &c.target, &choice, diag);
    cr_assert(built.graph);
    arena_adopt(c.arena, built.arena);
    EmitOptions emit = {.target = &c.target};
    Plan *plan = plan_make(c.arena, built.graph, built.clusters, &c.target, &how, &emit.search);
    cr_assert_null(plan_check(plan, &c.target, &emit.live_peak));
    Text file = emit_json(plan, &emit);
    json_error_t error;
    c.json = json_loadb(file.text, file.length, 0, &error);
    cr_assert(c.json, "%s", error.text);
    return c;
}

static Case plan_case(const char *text, bool train)
{
    return plan_how(text, train, (PlanOptions){0});
}

static Case plan_least(const char *text)
{
    return plan_how(text, false, (PlanOptions){.smallest = true});
}

static void case_free(Case *c)
{
    json_decref(c->json);
    arena_free(c->arena);
}

/* What verify says; *sound: where it accepts, what the oracle says. */
static const char *verdict(const Case *c, const json_t *json, const char **sound, Arena *arena)
{
    char *text = json_dumps(json, JSON_COMPACT);
    Plan *plan;
    const char *fault = plan_verify(arena, (Text){text, strlen(text)}, &plan);
    *sound = fault ? NULL : oracle_run(plan, c->target.align);
    free(text);
    return fault;
}

static void expect(const Case *c, const json_t *json, const char *words)
{
    Arena *arena = arena_new();
    const char *sound, *fault = verdict(c, json, &sound, arena);
    if (!words)
        cr_expect_null(fault, "refused: %s", fault);
    else
        cr_expect(fault && strstr(fault, words), "expected '%s', saw '%s'", words,
                  fault ? fault : "no fault");
    cr_expect_null(sound, "accepted, but: %s", sound);
    arena_free(arena);
}

static json_t *row(const json_t *json, const char *table, size_t i)
{
    return json_array_get(json_object_get(json, table), i);
}

static json_t *steps(const json_t *json, size_t program)
{
    return json_object_get(row(json, "programs", program), "steps");
}

static json_int_t number(const json_t *row, const char *key)
{
    return json_integer_value(json_object_get(row, key));
}

static void set_number(json_t *row, const char *key, json_int_t to)
{
    json_object_set_new(row, key, json_integer(to));
}

/* ---- One spoilt thing at a time ------------------------------------------------------------- */

static json_t *find_buffer(const json_t *json, const char *kind)
{
    json_t *b;
    for (size_t i = 0; (b = row(json, "buffers", i)); i++)
        if (strcmp(json_string_value(json_object_get(b, "kind")), kind) == 0 &&
            !json_object_get(b, "root"))
            return b;
    return NULL;
}

Test(verify, accepts_what_gplan_writes)
{
    static const struct {
        const char *text;
        bool train;
    } models[] = {{vectors, false}, {perceptron, false}, {perceptron, true},
                  {joined, false},  {attends, false},    {twice, false}};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        Case c = plan_case(models[i].text, models[i].train);
        expect(&c, c.json, NULL);
        case_free(&c);
    }
}

Test(verify, refuses_a_shifted_offset)
{
    Case c = plan_case(twice, false);
    json_t *b = find_buffer(c.json, "param");
    json_int_t kept = number(b, "offset");
    set_number(b, "offset", kept + 4);
    expect(&c, c.json, "");
    set_number(b, "offset", number(find_buffer(c.json, "input"), "offset"));
    expect(&c, c.json, "share bytes");
    set_number(b, "offset", number(c.json, "arena"));
    expect(&c, c.json, "outside the arena");
    case_free(&c);
}

Test(verify, refuses_a_swapped_order)
{
    Case c = plan_case(attends, false);
    json_t *list = steps(c.json, PROGRAM_FORWARD), *first = json_incref(json_array_get(list, 0));
    json_array_set(list, 0, json_array_get(list, 1));
    json_array_set_new(list, 1, first);
    expect(&c, c.json, "step 0");
    case_free(&c);
}

Test(verify, refuses_a_wrong_size)
{
    Case c = plan_case(perceptron, true);
    json_t *b = find_buffer(c.json, "param");
    set_number(b, "bytes", number(b, "bytes") - 1);
    expect(&c, c.json, "ends outside");
    case_free(&c);
    c = plan_case(attends, false);
    b = find_buffer(c.json, "workspace");
    cr_assert(b);
    set_number(b, "bytes", number(b, "bytes") - 1);
    expect(&c, c.json, "less workspace");
    case_free(&c);
}

Test(verify, refuses_a_missing_step)
{
    Case c = plan_case(perceptron, false);
    json_array_remove(steps(c.json, PROGRAM_FORWARD), 1);
    expect(&c, c.json, "");
    case_free(&c);
}

Test(verify, refuses_other_shapes_than_the_ops_make)
{
    Case c = plan_case(perceptron, false);
    json_t *value;
    for (size_t i = 0; (value = row(c.json, "values", i)); i++)
        if (strcmp(json_string_value(json_object_get(value, "name")), "x") == 0)
            json_array_set_new(json_object_get(value, "dims"), 1, json_integer(4));
    expect(&c, c.json, "inner");
    case_free(&c);
}

/* How often a program runs follows from what it reads of the inputs. */
Test(verify, refuses_times_that_the_graph_does_not_have)
{
    static const json_int_t wrong[] = {2, 1000000};
    Case c = plan_case(perceptron, true);
    for (size_t p = 0; p < PROGRAMS; p++)
        for (size_t i = 0; i < 2; i++) {
            json_int_t kept = number(row(c.json, "programs", p), "times");
            set_number(row(c.json, "programs", p), "times", wrong[i]);
            expect(&c, c.json, "times");
            set_number(row(c.json, "programs", p), "times", kept);
        }
    expect(&c, c.json, NULL);
    case_free(&c);
    c = plan_case(halves, true); /* the oracle knows no windows: verify alone */
    const char *sound;
    cr_expect(number(row(c.json, "programs", PROGRAM_STEP), "times") == 2);
    for (size_t p = 0; p < PROGRAMS; p++)
        for (json_int_t times = 1; times < 5; times++) {
            json_int_t kept = number(row(c.json, "programs", p), "times");
            set_number(row(c.json, "programs", p), "times", times);
            const char *fault = verdict(&c, c.json, &sound, c.arena);
            cr_expect(times == kept ? !fault : fault && strstr(fault, "times"), "%zu, %d: %s", p,
                      (int)times, fault);
            set_number(row(c.json, "programs", p), "times", kept);
        }
    case_free(&c);
}

/* The output was computed again: its first buffer is dead when the program ends. */
Test(verify, refuses_an_output_in_a_dead_buffer)
{
    Case c = plan_least(recomputed);
    json_t *output = row(c.json, "outputs", 0), *b;
    json_int_t value = number(output, "use"), others = 0;
    expect(&c, c.json, NULL);
    for (size_t i = 0; (b = row(c.json, "buffers", i)); i++)
        if (number(b, "value") == value && number(output, "buffer") != (json_int_t)i) {
            json_int_t kept = number(output, "buffer");
            set_number(output, "buffer", (json_int_t)i);
            expect(&c, c.json, "");
            set_number(output, "buffer", kept);
            others++;
        }
    cr_expect(others > 0, "the output is computed once");
    case_free(&c);
}

Test(verify, refuses_a_cluster_that_hides_an_operand)
{
    Case c = plan_case(twice, false);
    json_t *cluster = row(c.json, "clusters", 0);
    json_array_remove(json_object_get(cluster, "operands"), 0);
    json_array_remove(
        json_object_get(json_array_get(steps(c.json, PROGRAM_FORWARD), 0), "operands"), 0);
    expect(&c, c.json, "which is not an operand");
    case_free(&c);
}

Test(verify, refuses_a_summary_that_flatters)
{
    Case c = plan_case(perceptron, true);
    json_t *summary = json_object_get(c.json, "summary");
    set_number(json_object_get(summary, "peak"), "bytes", 64);
    expect(&c, c.json, "summary: peak");
    json_object_del(c.json, "summary"); /* one that says nothing is fine */
    expect(&c, c.json, NULL);
    case_free(&c);
}

Test(verify, refuses_an_arena_over_the_budget)
{
    Case c = plan_case(perceptron, false);
    set_number(c.json, "budget", number(c.json, "arena") - 1);
    expect(&c, c.json, "budget");
    case_free(&c);
}

Test(verify, refuses_what_is_no_plan)
{
    static const char *const texts[] = {
        "",         "[]",
        "{}",       "{\"format\": \"gplan.plan\"}",
        "nonsense", "{\"format\": \"gplan.plan\", \"version\": 99}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        Arena *arena = arena_new();
        Plan *plan;
        cr_expect(plan_verify(arena, (Text){texts[i], strlen(texts[i])}, &plan), "%s", texts[i]);
        arena_free(arena);
    }
}

/* ---- Recomputation -------------------------------------------------------------------------- */

/* A step comes in at the time, or goes out: what is later moves by one. */
static void shift_times(json_t *json, json_int_t time, int by)
{
    json_t *b, *p;
    json_int_t from = by > 0 ? time : time + 1;
    for (size_t i = 0; (b = row(json, "buffers", i)); i++) {
        if (number(b, "birth") >= from)
            set_number(b, "birth", number(b, "birth") + by);
        if (number(b, "death") > from)
            set_number(b, "death", number(b, "death") + by);
    }
    for (size_t i = PROGRAM_FORWARD + 1; (p = row(json, "programs", i)); i++)
        set_number(p, "begin", number(p, "begin") + by);
}

/* h is computed again just before its last reader, in a buffer of its own at the arena's end. */
static void recompute(json_t *json)
{
    json_t *list = steps(json, PROGRAM_FORWARD), *buffers = json_object_get(json, "buffers");
    json_int_t last = (json_int_t)json_array_size(list) - 1, arena = number(json, "arena");
    json_t *first = json_array_get(list, 0), *again = json_deep_copy(first);
    json_int_t old = json_integer_value(json_array_get(json_object_get(first, "results"), 0));
    json_int_t made = (json_int_t)json_array_size(buffers);
    json_t *buffer = json_deep_copy(json_array_get(buffers, (size_t)old));
    shift_times(json, last, 1);
    set_number(json_array_get(buffers, (size_t)old), "death", 2);
    set_number(buffer, "birth", last);
    set_number(buffer, "death", last + 2);
    set_number(buffer, "offset", arena);
    json_array_append_new(buffers, buffer);
    set_number(json, "arena", arena + (number(buffer, "bytes") + 63) / 64 * 64);
    json_array_set_new(json_object_get(again, "results"), 0, json_integer(made));
    json_t *operands = json_object_get(json_array_get(list, (size_t)last), "operands"), *operand;
    for (size_t i = 0; (operand = json_array_get(operands, i)); i++)
        if (json_integer_value(operand) == old)
            json_array_set_new(operands, i, json_integer(made));
    json_object_del(again, "workspace");
    if (json_object_get(first, "workspace")) {
        json_t *work = json_deep_copy(json_array_get(buffers, (size_t)number(first, "workspace")));
        set_number(work, "birth", last);
        set_number(work, "death", last + 1);
        set_number(work, "offset", number(json, "arena"));
        set_number(json, "arena", number(json, "arena") + (number(work, "bytes") + 63) / 64 * 64);
        set_number(again, "workspace", (json_int_t)json_array_size(buffers));
        json_array_append_new(buffers, work);
    }
    json_array_insert_new(list, (size_t)last, again);
    json_object_del(json, "summary");
}

Test(verify, refuses_a_missing_recompute)
{
    Case c = plan_case(twice, false);
    recompute(c.json);
    json_t *list = steps(c.json, PROGRAM_FORWARD);
    size_t last = json_array_size(list) - 2;
    expect(&c, c.json, NULL);
    json_array_remove(list, last);
    shift_times(c.json, (json_int_t)last, -1);
    expect(&c, c.json, "before it is written");
    case_free(&c);
}

Test(pictures, show_what_is_computed_again)
{
    static const struct {
        Text (*emit)(const Plan *plan, const EmitOptions *options);
        const char *words;
    } kinds[] = {
        {emit_dot, "computed again"},  {emit_svg, "recomputed (1)"},
        {emit_html, "recomputed: 1,"}, {emit_report, "1  of 4 steps compute again"},
        {emit_trace, "\"again\":0"},   {emit_json, "\"recompute\":{\"steps\":1"},
    };
    Case c = plan_case(twice, false);
    recompute(c.json);
    char *text = json_dumps(c.json, JSON_COMPACT);
    Plan *plan;
    const char *fault = plan_verify(c.arena, (Text){text, strlen(text)}, &plan);
    cr_assert_null(fault, "%s", fault);
    EmitOptions options = {.target = &c.target, .width = 80};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        cr_expect(strstr(kinds[i].emit(plan, &options).text, kinds[i].words), "%s", kinds[i].words);
    free(text);
    case_free(&c);
}

/* ---- Thousands of them ---------------------------------------------------------------------- */

static uint64_t state;

static size_t pick(size_t count) /* xorshift: the same on every machine */
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return count ? (size_t)(state % count) : 0;
}

/* A part of the file, by chance: deeper parts as likely as there are many of them. */
static json_t *wander(json_t *json, json_t **parent, const char **key, size_t *place)
{
    for (;;) {
        size_t count = json_is_object(json) ? json_object_size(json) : json_array_size(json);
        if (!count || (*parent && pick(12) == 0))
            return json;
        size_t at = pick(count);
        *parent = json;
        if (json_is_array(json)) {
            *key = NULL;
            *place = at;
            json = json_array_get(json, at);
        } else {
            void *member = json_object_iter(json);
            while (at--)
                member = json_object_iter_next(json, member);
            *key = json_object_iter_key(member);
            json = json_object_iter_value(member);
        }
    }
}

static json_t *spoil_value(const json_t *json)
{
    static const json_int_t steps[] = {1, -1, 2, 3, 64, -64, 128, 1000, -1000, 1 << 20};
    static const char *const words[] = {"f32", "i32",    "relu",    "add",  "param",  "activation",
                                        "",    "result", "forward", "eval", "concat", "input"};
    if (json_is_integer(json) && pick(4))
        return json_integer(json_integer_value(json) + steps[pick(10)]);
    if (json_is_integer(json))
        return json_integer((json_int_t)pick(40) - 2);
    if (json_is_string(json))
        return json_string(words[pick(12)]);
    if (json_is_real(json))
        return json_real(json_real_value(json) * 2);
    static json_t *(*const others[])(void) = {json_array, json_object, json_null, json_true};
    return others[pick(4)]();
}

static void spoil_anything(json_t *json)
{
    json_t *parent = NULL;
    const char *key = NULL;
    size_t place = 0;
    json_t *found = wander(json, &parent, &key, &place);
    bool remove = pick(6) == 0;
    if (key && remove)
        json_object_del(parent, key);
    else if (key)
        json_object_set_new(parent, key, spoil_value(found));
    else if (remove)
        json_array_remove(parent, place);
    else
        json_array_set_new(parent, place, spoil_value(found));
}

/* Of the plan alone: offsets, sizes, times, order, arguments. */
static void spoil_plan(json_t *json)
{
    json_t *buffers = json_object_get(json, "buffers"), *list;
    size_t program = 0;
    do
        program = pick(PROGRAMS);
    while (!json_array_size(steps(json, program)));
    list = steps(json, program);
    size_t count = json_array_size(list), i = pick(count), k = pick(count);
    json_t *b = json_array_get(buffers, pick(json_array_size(buffers)));
    json_t *other = json_array_get(buffers, pick(json_array_size(buffers)));
    json_t *args = json_object_get(json_array_get(list, i), pick(2) ? "operands" : "results");
    json_int_t kept;
    json_object_del(json, "summary"); /* or it would give everything away */
    switch (pick(9)) {
    case 0:
        set_number(b, "offset", number(b, "offset") + ((json_int_t)pick(9) - 4) * 64);
        break;
    case 1:
        kept = number(b, "offset");
        set_number(b, "offset", number(other, "offset"));
        set_number(other, "offset", kept);
        break;
    case 2:
        set_number(b, "bytes", number(b, "bytes") + ((json_int_t)pick(9) - 4) * 8);
        break;
    case 3:
        set_number(b, pick(2) ? "birth" : "death", (json_int_t)pick(count + 1));
        break;
    case 4: {
        json_t *first = json_incref(json_array_get(list, i));
        json_array_set(list, i, json_array_get(list, k));
        json_array_set_new(list, k, first);
        break;
    }
    case 5:
        json_array_set(list, i, json_array_get(list, k));
        break;
    case 6:
        if (json_array_size(args))
            json_array_set_new(args, pick(json_array_size(args)),
                               json_integer((json_int_t)pick(json_array_size(buffers))));
        break;
    case 7:
        set_number(json, "arena", number(json, "arena") - 64 * (json_int_t)(1 + pick(3)));
        break;
    default:
        set_number(b, "root", (json_int_t)pick(json_array_size(buffers)));
    }
}

static void spoil(const char *text, bool train, int rounds, void (*how)(json_t *))
{
    Case c = plan_case(text, train);
    int refused = 0, same = 0, harmless = 0;
    state = 0x9e3779b97f4a7c15u + (uint64_t)rounds;
    for (int i = 0; i < rounds; i++) {
        json_t *copy = json_deep_copy(c.json);
        how(copy);
        json_object_del(copy, "generator");
        Arena *arena = arena_new();
        const char *sound, *fault = verdict(&c, copy, &sound, arena);
        json_t *whole = json_deep_copy(c.json);
        json_object_del(whole, "generator");
        if (!json_object_get(copy, "summary"))
            json_object_del(whole, "summary");
        refused += fault != NULL;
        same += !fault && json_equal(copy, whole);
        harmless += !fault && !json_equal(copy, whole);
        if (sound) {
            char *shown = json_dumps(copy, 0);
            cr_expect_null(sound, "round %d was accepted, but: %s\n%.4000s", i, sound, shown);
            free(shown);
        }
        arena_free(arena);
        json_decref(whole);
        json_decref(copy);
    }
    cr_log_info("%d refused, %d unchanged, %d harmless", refused, same, harmless);
    cr_expect(refused > rounds / 3, "only %d of %d refused", refused, rounds);
    case_free(&c);
}

Test(mutations, of_the_plan_are_refused_or_harmless)
{
    spoil(perceptron, true, 800, spoil_plan);
    spoil(joined, false, 600, spoil_plan);
    spoil(attends, false, 400, spoil_plan);
}

Test(mutations, of_anything_are_refused_or_harmless)
{
    spoil(perceptron, true, 800, spoil_anything);
    spoil(joined, false, 600, spoil_anything);
    spoil(attends, false, 400, spoil_anything);
}
