/* The checker against plans that were spoilt on purpose.
 *
 * Some ways to spoil a plan are always wrong: every one of them must be refused. Others are wrong
 * mostly (a buffer moved to a random place may still be harmless): there the plan is run, and what
 * the checker let pass must compute the right bits.
 */
#include "tests/plan/planned.h"
#include "tests/plan/random_graph.h"
#include "tests/plan/random_train.h"
#include "tests/plan/run_plan.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static const char *const models[] = {
    "model mlp\ninput x : f32[6, 20]\nh = relu(dense(x, 30))\nh = relu(dense(h, 30))\n"
    "output y = softmax(dense(h, 7))\n",

    "model densenet\ninput x : f32[2, 3, 6, 6]\n"
    "block layer(x) {\n  h = conv2d(relu(batchnorm(x)), 4, kernel = 3, pad = same)\n"
    "  return concat(x, h, axis = 1)\n}\n"
    "h = conv2d(x, 4, kernel = 1)\nrepeat i in 0..4 { h = layer(h) }\n"
    "output y = dense(global_avgpool(h), 5)\n",

    "model unet\ninput x : f32[2, 3, 8, 8]\na = relu(conv2d(x, 4, kernel = 3, pad = same))\n"
    "b = relu(conv2d(maxpool2d(a, 2), 8, kernel = 3, pad = same))\n"
    "u = conv_transpose2d(b, 4, kernel = 2, stride = 2)\n"
    "c = conv2d(concat(a, u, axis = 1), 4, kernel = 3, pad = same)\n"
    "output y = sigmoid(conv2d(c, 1, kernel = 1))\noutput z = b\n",

    "model decoder\ninput x : f32[2, 5, 16]\nh = x\nrepeat i in 0..2 {\n"
    "  h = h + attention(layernorm(h), heads = 4, causal = true)\n"
    "  h = h + dense(gelu(dense(layernorm(h), 32)), 16)\n}\noutput y = layernorm(h)\n",

    "model recurrent\ninput x : f32[3, 4, 8]\ninput h0 : f32[3, 8]\n"
    "shared block cell(x, h) { return tanh(dense(x, 8) + dense(h, 8)) }\n"
    "h = cell(x[:, 0], h0)\nall = h\nrepeat t in 1..4 {\n  h = cell(x[:, t], h)\n"
    "  all = concat(all, h, axis = 1)\n}\noutput y = all\noutput last = h + 1.0\n",
};
enum { MODELS = sizeof models / sizeof *models };

/* ---- A plan to spoil ------------------------------------------------------------------------- */

typedef struct {
    Planned right;
    Plan plan;   /* a copy whose arrays are its own */
    bool micros; /* the forward program runs in micro-batches */
    int refused, passed;
} Victim;

static void *copy(const void *from, size_t bytes)
{
    void *to = malloc(bytes ? bytes : 1);
    memcpy(to, from, bytes);
    return to;
}

static Id arg_count(const Plan *plan)
{
    Id count = 0;
    for (int p = 0; p < PROGRAMS; p++)
        for (Id i = 0; i < plan->program[p].count; i++) {
            const Cluster *c = &plan->clusters->at[plan->program[p].at[i].cluster];
            count += c->operands + c->results;
        }
    return count;
}

static void begin(Victim *v)
{
    const Plan *plan = v->right.plan;
    const Program *program = &plan->program[PROGRAM_FORWARD];
    v->plan = *plan;
    v->plan.buffer = copy(plan->buffer, plan->buffers * sizeof *plan->buffer);
    v->plan.arg = copy(plan->arg, arg_count(plan) * sizeof *plan->arg);
    v->plan.program[PROGRAM_FORWARD].at = copy(program->at, program->count * sizeof *program->at);
}

static void end(Victim *v)
{
    free(v->plan.buffer);
    free(v->plan.arg);
    free(v->plan.program[PROGRAM_FORWARD].at);
}

/* What was spoilt is always wrong. */
static void refuse(Victim *v, const char *how, Id where)
{
    cr_expect_not_null(plan_check(&v->plan, &v->right.target, NULL), "%s: %s %u passed",
                       v->right.graph->name, how, where);
    v->refused++;
    end(v);
}

static Program *forward(Victim *v)
{
    return &v->plan.program[PROGRAM_FORWARD];
}

static bool is_root(const Victim *v, Id i)
{
    return v->plan.buffer[i].root == i && v->plan.buffer[i].space == SPACE_ARENA;
}

static void move_root(Victim *v, Id root, uint64_t offset)
{
    for (Id i = 0; i < v->plan.buffers; i++)
        if (v->plan.buffer[i].root == root)
            v->plan.buffer[i].offset = offset;
}

/* ---- Always wrong ---------------------------------------------------------------------------- */

static void misalign(Victim *v)
{
    for (Id i = 0; i < v->right.plan->buffers; i++)
        if (is_root(&(Victim){.plan = *v->right.plan}, i)) {
            begin(v);
            v->plan.arena[SPACE_ARENA] += 64;
            move_root(v, i, v->plan.buffer[i].offset + 4);
            refuse(v, "misaligned buffer", i);
        }
}

static void shrink_buffers(Victim *v)
{
    for (Id i = 0; i < v->right.plan->buffers; i++) {
        begin(v);
        v->plan.buffer[i].bytes--;
        refuse(v, "too small buffer", i);
    }
}

static void shrink_arena(Victim *v)
{
    uint64_t end_of_all = 0;
    for (Id i = 0; i < v->right.plan->buffers; i++) {
        const Buffer *b = &v->right.plan->buffer[i];
        if (b->root == i && b->offset + b->bytes > end_of_all)
            end_of_all = b->offset + b->bytes;
    }
    begin(v);
    v->plan.arena[SPACE_ARENA] = end_of_all - 1;
    refuse(v, "smaller arena", 0);
}

static void redirect_arguments(Victim *v)
{
    Id args = arg_count(v->right.plan);
    for (Id k = 0; k < args; k++)
        for (Id i = 0; i < v->right.plan->buffers; i++) {
            const Buffer *from = &v->right.plan->buffer[v->right.plan->arg[k]];
            bool same = v->right.plan->buffer[i].value == from->value;
            if (same || (k * 31 + i) % 9 != 0) /* not all of them: there are many */
                continue;
            begin(v);
            v->plan.arg[k] = i;
            refuse(v, "redirected argument", k);
        }
}

static void drop_occurrences(Victim *v)
{
    for (Id k = 0; k < v->right.plan->program[PROGRAM_FORWARD].count; k++) {
        begin(v);
        Program *program = forward(v);
        memmove(&program->at[k], &program->at[k + 1],
                (program->count - k - 1) * sizeof *program->at);
        program->count--;
        refuse(v, "dropped occurrence", k);
    }
}

static bool feeds(const Plan *plan, const Occurrence *from, const Occurrence *to)
{
    const Cluster *a = &plan->clusters->at[from->cluster], *b = &plan->clusters->at[to->cluster];
    for (Id i = 0; i < a->results; i++)
        for (Id k = 0; k < b->operands; k++)
            if (plan->clusters->result[a->result + i] == plan->clusters->operand[b->operand + k])
                return true;
    return false;
}

static void swap(Program *program, Id a, Id b)
{
    Occurrence kept = program->at[a];
    program->at[a] = program->at[b];
    program->at[b] = kept;
}

static void swap_dependent(Victim *v)
{
    const Program *right = &v->right.plan->program[PROGRAM_FORWARD];
    for (Id a = 0; a < right->count; a++)
        for (Id b = a + 1; b < right->count; b++) {
            if (!feeds(v->right.plan, &right->at[a], &right->at[b]))
                continue;
            begin(v);
            swap(forward(v), a, b);
            refuse(v, "swapped occurrence", a);
        }
}

static void spoil_workspace(Victim *v)
{
    const Program *right = &v->right.plan->program[PROGRAM_FORWARD];
    for (Id k = 0; k < right->count; k++) {
        const Cluster *c = &v->right.plan->clusters->at[right->at[k].cluster];
        if (right->at[k].workspace == NONE)
            continue;
        begin(v);
        forward(v)->at[k].workspace = NONE;
        refuse(v, "missing workspace", k);
        for (Id i = 0; i < c->operands + c->results; i++) {
            begin(v);
            const Buffer *arg = &v->plan.buffer[v->plan.arg[right->at[k].arg + i]];
            v->plan.arena[SPACE_ARENA] +=
                v->plan.buffer[right->at[k].workspace].bytes; /* it is not that */
            move_root(v, right->at[k].workspace, arg->offset);
            if (arg->layout.offset * 4 < (int64_t)v->plan.buffer[right->at[k].workspace].bytes)
                refuse(v, "workspace over an argument", k);
            else
                end(v);
        }
    }
}

static void cover_persistent(Victim *v)
{
    for (Id i = 0; i < v->right.plan->buffers; i++)
        for (Id k = 0; k < v->right.plan->buffers; k++) {
            const Buffer *to = &v->right.plan->buffer[i], *from = &v->right.plan->buffer[k];
            bool wanted = i != k && to->kind <= BUFFER_INPUT && from->root == k;
            if (!wanted || (k * 31 + i) % 3 != 0)
                continue;
            begin(v);
            v->plan.arena[SPACE_ARENA] += from->bytes;
            move_root(v, k, to->offset);
            refuse(v, "buffer over one that persists", k);
        }
}

/* Windows that are not where the concat reads them, or lie in each other. */
static void shift_windows(Victim *v)
{
    for (Id i = 0; i < v->right.plan->buffers; i++) {
        const Buffer *b = &v->right.plan->buffer[i];
        if (b->value == NONE || view_is_plain(&b->layout, &v->right.graph->value.at[b->value]))
            continue;
        begin(v);
        v->plan.buffer[i].layout.offset += b->layout.offset ? -1 : 1;
        refuse(v, "shifted window", i);
        begin(v);
        v->plan.buffer[i].layout.stride[0] = 1;
        if (b->layout.dim[0] > 1)
            refuse(v, "folded window", i);
        else
            end(v);
    }
}

/* Every output in every other buffer, those that held it before it was computed again too. */
static void redirect_outputs(Victim *v)
{
    Id *right = v->right.plan->output;
    for (size_t k = 0; k < v->right.graph->output.count; k++)
        for (Id i = 0; i < v->right.plan->buffers; i++) {
            if (i == right[k])
                continue;
            begin(v);
            v->plan.output = copy(right, v->right.graph->output.count * sizeof *right);
            v->plan.output[k] = i;
            Id *own = v->plan.output;
            refuse(v, "redirected output", i);
            free(own);
        }
}

/* A second place for an input, parameter or state, where the caller does not write it. */
static void duplicate_homes(Victim *v)
{
    for (Id i = 0; i < v->right.plan->buffers; i++) {
        const Buffer *b = &v->right.plan->buffer[i];
        if (b->value == NONE || b->kind > BUFFER_INPUT)
            continue;
        begin(v);
        free(v->plan.buffer);
        v->plan.buffer = malloc((v->plan.buffers + 1) * sizeof *v->plan.buffer);
        memcpy(v->plan.buffer, v->right.plan->buffer, v->plan.buffers * sizeof *v->plan.buffer);
        Buffer *second = &v->plan.buffer[v->plan.buffers];
        *second = *b;
        second->root = v->plan.buffers++;
        second->offset = v->plan.arena[SPACE_ARENA];
        v->plan.arena[SPACE_ARENA] += (b->bytes + 63) / 64 * 64;
        refuse(v, "second buffer", i);
    }
}

static void each_model(void (*spoil)(Victim *v), int at_least)
{
    int refused = 0;
    for (int k = 0; k < MODELS; k++) {
        Victim v = {.right = planned_text(models[k], NULL, NULL)};
        spoil(&v);
        refused += v.refused;
        planned_free(&v.right);
    }
    cr_expect_geq(refused, at_least, "only %d plans were spoilt", refused);
}

Test(check, refuses_a_misaligned_buffer)
{
    each_model(misalign, 100);
}
Test(check, refuses_a_buffer_that_is_too_small)
{
    each_model(shrink_buffers, 100);
}
Test(check, refuses_an_arena_that_is_too_small)
{
    each_model(shrink_arena, MODELS);
}
Test(check, refuses_an_argument_in_the_wrong_buffer)
{
    each_model(redirect_arguments, 500);
}
Test(check, refuses_a_plan_without_one_of_its_steps)
{
    each_model(drop_occurrences, 40);
}
Test(check, refuses_a_step_before_what_it_needs)
{
    each_model(swap_dependent, 40);
}
Test(check, refuses_workspace_that_is_missing_or_covers_something)
{
    each_model(spoil_workspace, 40);
}
Test(check, refuses_a_write_over_parameters_and_inputs)
{
    each_model(cover_persistent, 500);
}
Test(check, refuses_windows_out_of_place)
{
    each_model(shift_windows, 20);
}

/* Softmax is computed again for the caller, since the product between needs its bytes. */
static const char recomputed[] = "model recomputed\ninput x : f32[4, 4]\nv = softmax(x)\n"
                                 "logits = dense(concat([v], axis = -1), 11)\noutput mid = v\n"
                                 "output best = argmax(logits, axis = -1)\n";

Test(check, refuses_an_output_that_is_looked_for_elsewhere)
{
    each_model(redirect_outputs, 100);
    Victim v = {.right = planned_text(recomputed, &(PlanOptions){.smallest = true}, NULL)};
    const Plan *plan = v.right.plan;
    Id places = 0;
    for (Id i = 0; i < plan->buffers; i++)
        places += plan->buffer[i].value == plan->buffer[plan->output[0]].value;
    cr_expect(places > 1, "the output is computed once");
    redirect_outputs(&v);
    planned_free(&v.right);
}
/* Two that lie in one root, where all else is as it was. */
Test(check, refuses_a_buffer_in_one_that_is_no_root)
{
    int tried = 0;
    for (int k = 0; k < MODELS; k++) {
        Victim v = {.right = planned_text(models[k], NULL, NULL)};
        const Plan *plan = v.right.plan;
        for (Id i = 0; i < plan->buffers; i++)
            for (Id j = 0; j < plan->buffers; j++) {
                Id root = plan->buffer[i].root;
                if (i == j || root == i || root == j || plan->buffer[j].root != root)
                    continue;
                begin(&v);
                v.plan.buffer[j].root = i;
                refuse(&v, "a root that is none", j);
                tried++;
            }
        begin(&v);
        v.plan.buffer[plan->buffers - 1].root = plan->buffers; /* a sanitizer sees it read */
        refuse(&v, "a root after the last buffer", plan->buffers - 1);
        planned_free(&v.right);
    }
    cr_assert_gt(tried, 0);
}

Test(check, refuses_a_second_buffer_for_what_persists)
{
    each_model(duplicate_homes, 20);
}

/* ---- Mostly wrong ---------------------------------------------------------------------------- */

static Id any(Random *random, Id count)
{
    return (Id)random_below(random, count);
}

static void spoil_at_random(Victim *v, Random *random)
{
    Plan *plan = &v->plan;
    Program *program = forward(v);
    Id buffer = any(random, plan->buffers), other = any(random, plan->buffers);
    uint64_t places = plan->arena[SPACE_ARENA] / 64 + 1;
    switch (random_below(random, 7)) {
    case 0: /* anywhere */
        move_root(v, plan->buffer[buffer].root, 64 * random_below(random, places));
        break;
    case 1: /* onto another */
        move_root(v, plan->buffer[buffer].root, plan->buffer[other].offset);
        break;
    case 2: /* a part of a buffer leaves it */
        plan->buffer[buffer].offset = 64 * random_below(random, places);
        break;
    case 3:
        if (program->count)
            swap(program, any(random, program->count), any(random, program->count));
        break;
    case 4: /* to another time */
        if (program->count) {
            Id a = any(random, program->count), b = any(random, program->count);
            for (; a < b; a++)
                swap(program, a, a + 1);
        }
        break;
    case 5:
        plan->buffer[buffer].layout.offset += (int64_t)random_below(random, 9) - 4;
        break;
    default:
        if (plan->buffer[buffer].layout.rank)
            plan->buffer[buffer].layout.stride[any(random, plan->buffer[buffer].layout.rank)] +=
                (int64_t)random_below(random, 5) - 2;
    }
}

static void spoil_often(Victim *v, uint64_t seed, int times)
{
    PlainRun plain = plain_run(v->right.graph, seed);
    Random random = random_new(seed);
    for (int i = 0; i < times && plain.status == 0; i++) {
        begin(v);
        for (uint64_t n = 1 + random_below(&random, 2); n > 0; n--)
            spoil_at_random(v, &random);
        const char *fault = plan_check(&v->plan, &v->right.target, NULL);
        const char *wrong = fault ? NULL
                            : v->micros
                                ? plan_trains(v->right.arena, &v->plan, seed, 0).wrong
                                : plan_differs(v->right.arena, &v->plan, &plain, seed, false);
        cr_expect_null(wrong, "seed %llu, %d: passed, but %s", (unsigned long long)seed, i, wrong);
        v->refused += fault != NULL;
        v->passed += fault == NULL;
        end(v);
    }
    plain_free(&plain);
}

/* The program for outputs is empty then, and the next begins at the same time. */
Test(check, counts_what_persists_once_where_there_is_no_output)
{
    Planned p =
        planned_training("model fit(batch B = 4)\ninput x : f32[B, 32]\n"
                         "input y : f32[B, 8]\n"
                         "train mse(dense(relu(dense(x, 64)), 8), y) using adam(lr = 0.1)\n",
                         NULL);
    cr_assert_null(p.fault, "%s", p.fault);
    cr_assert_leq(p.live_peak.bytes, p.plan->arena[SPACE_ARENA]);
    cr_assert_geq(p.live_peak.bytes, p.plan->arena[SPACE_ARENA] / 2);
    planned_free(&p);
}

/* The caller reads outputs of one program before the next begins. */
Test(check, counts_outputs_until_their_program_ends)
{
    Planned p = planned_training("model fit(batch B = 100)\ninput x : f32[B, 50]\n"
                                 "input y : f32[B, 10]\noutput o = dense(x, 10)\n"
                                 "train mse(o, y) using adam(lr = 0.1)\n",
                                 NULL);
    cr_assert_null(p.fault, "%s", p.fault);
    cr_assert_leq(p.live_peak.bytes, p.plan->arena[SPACE_ARENA]);
    planned_free(&p);
}

/* ---- Parts of outputs ------------------------------------------------------------------------ */

/* Micro-batches make y in its window of the whole batch's; z is copied, since its batch is second;
 * h is read by both. */
static const char parts[] =
    "model parts(batch B = 8)\ninput x : f32[B, 6]\ninput t : f32[B, 5]\n"
    "h = tanh(dense(x, 5))\ny = dense(h, 5)\noutput o = y\noutput z = transpose(h)\n"
    "output e = exp(softmax(y))\ntrain mse(y, t) using sgd(lr = 0.1) { accumulate = 4 }\n";

/* What the forward program collects to an output, as a value. */
static Id part_of(const Graph *g, const char *output)
{
    for (size_t n = 0; n < g->node.count; n++) {
        const Node *node = &g->node.at[n];
        Id all = node->program == PROGRAM_FORWARD ? node_collects(g, node) : NONE;
        if (all != NONE && strcmp(g->value.at[all].name, output) == 0)
            return node_use(g, node, 1).value;
    }
    cr_assert_fail("there is no output %s", output);
    return NONE;
}

static Id buffer_of(const Plan *plan, Id value)
{
    for (Id i = 0; i < plan->buffers; i++)
        if (plan->buffer[i].value == value)
            return i;
    cr_assert_fail("the value has no buffer");
    return NONE;
}

static void refuse_as(Victim *v, const char *why)
{
    const char *fault = plan_check(&v->plan, &v->right.target, NULL);
    cr_expect(fault && strstr(fault, why), "%s: %s", why, fault ? fault : "passed");
    end(v);
}

Test(check, takes_parts_of_outputs_in_their_place)
{
    Planned p = planned_training(parts, NULL);
    const Graph *g = p.graph;
    const Id y = part_of(g, "o"), h = part_of(g, "z");
    cr_assert_null(p.fault, "%s", p.fault);
    cr_assert_eq(g->value.at[g->value.at[y].whole].kind, VALUE_OUTPUT);
    cr_assert_eq(g->value.at[h].whole, NONE);
    const Buffer *b = &p.plan->buffer[buffer_of(p.plan, y)];
    cr_assert_eq(p.plan->buffer[b->root].value, g->value.at[y].whole);
    planned_free(&p);
}

Test(check, refuses_parts_of_outputs_out_of_their_place)
{
    Victim v = {.right = planned_training(parts, NULL)};
    Graph *g = v.right.graph;
    const Id y = part_of(g, "o"), h = part_of(g, "z"), e = part_of(g, "e");
    const Id part = buffer_of(v.right.plan, y);
    const Id all = g->value.at[y].whole, other = g->value.at[e].whole;

    begin(&v); /* the next micro-batch's window */
    v.plan.buffer[part].layout.offset = value_count(&g->value.at[y]);
    refuse_as(&v, "is not a window of the whole output");

    begin(&v); /* another output's */
    v.plan.buffer[part].root = buffer_of(v.right.plan, other);
    v.plan.buffer[part].offset = v.plan.buffer[v.plan.buffer[part].root].offset;
    refuse_as(&v, "is not a window of the whole output");

    begin(&v); /* what is no part of it */
    const Id stranger = buffer_of(v.right.plan, h), root = buffer_of(v.right.plan, all);
    v.plan.buffer[stranger].root = root;
    v.plan.buffer[stranger].offset = v.plan.buffer[root].offset;
    refuse_as(&v, "overlaps the output");
    planned_free(&v.right);
}

/* A graph that says so of what is none: its batch is second, or nobody collects it there. */
Test(check, refuses_parts_that_are_no_windows)
{
    static const char *const output[] = {"z", "o", "o"};
    for (int i = 0; i < 3; i++) {
        Victim v = {.right = planned_training(parts, NULL)};
        Graph *g = v.right.graph;
        Value *value = &g->value.at[part_of(g, output[i])];
        begin(&v);
        if (i == 0)
            for (size_t n = 0; n < g->node.count; n++)
                if (node_collects(g, &g->node.at[n]) != NONE &&
                    node_use(g, &g->node.at[n], 1).value == (Id)(value - g->value.at))
                    value->whole = node_collects(g, &g->node.at[n]);
        if (i == 1)
            value->whole = g->value.at[part_of(g, "e")].whole;
        if (i == 2) /* a copy after all: it lies where the copy goes */
            value->whole = NONE;
        refuse_as(&v, i == 0   ? "is no window of the output"
                      : i == 1 ? "but is not collected"
                               : "overlaps the output");
        planned_free(&v.right);
    }
}

/* What is written to an output's bytes before all of it is collected is lost with the next
 * micro-batch. */
Test(check, refuses_another_write_into_an_output_that_is_filled)
{
    Victim v = {.right = planned_training(parts, NULL)};
    const Graph *g = v.right.graph;
    const Id y = part_of(g, "o"), h = part_of(g, "z");
    const Buffer *all = &v.right.plan->buffer[buffer_of(v.right.plan, g->value.at[y].whole)];
    const uint64_t window = value_bytes(&g->value.at[y]);
    for (uint64_t at = 0; at < all->bytes; at += window) {
        begin(&v);
        const Id root = v.plan.buffer[buffer_of(v.right.plan, h)].root;
        move_root(&v, root, all->offset + at / 64 * 64);
        refuse(&v, "a buffer in an output's window", (Id)(at / window));
    }
    cr_assert_eq(v.refused, 4);
    planned_free(&v.right);
}

/* Every buffer gets bytes of its own for the whole of its program, so that only what is read and
 * written can be wrong. */
static void lay_apart(Victim *v)
{
    uint64_t at = v->plan.arena[SPACE_ARENA];
    for (Id i = 0; i < v->plan.buffers; i++) {
        Buffer *b = &v->plan.buffer[i];
        if (b->death - b->birth == v->plan.end)
            continue;
        for (int p = 0; p < PROGRAMS; p++) {
            const Program *program = &v->plan.program[p];
            if (b->birth >= program->begin && b->birth < program->begin + program->count) {
                b->birth = program->begin;
                b->death = program->begin + program->count;
                break;
            }
        }
        if (is_root(v, i)) {
            move_root(v, i, at);
            at += (b->bytes + 255) / 256 * 256;
        }
    }
    v->plan.arena[SPACE_ARENA] = at;
}

/* As a pass that settles orders could get it wrong: a step moves before one that it reads from. */
Test(check, refuses_a_training_step_moved_before_what_it_needs)
{
    Victim v = {.right = planned_training("model fit(batch B = 4)\ninput x : f32[B, 32]\n"
                                          "input y : f32[B, 8]\nh = relu(dense(x, 64))\n"
                                          "recompute h\ng = tanh(dense(h, 16))\n"
                                          "train mse(dense(g, 8), y) using adam(lr = 0.1)\n",
                                          NULL)};
    const Plan *right = v.right.plan;
    const Program *step = &right->program[PROGRAM_STEP];
    cr_assert_null(v.right.fault, "%s", v.right.fault);
    for (Id a = 0; a < step->count; a++)
        for (Id b = a + 1; b < step->count; b++) {
            begin(&v);
            lay_apart(&v);
            const char *apart = plan_check(&v.plan, &v.right.target, NULL);
            cr_assert_null(apart, "%s", apart);
            Program *moved = &v.plan.program[PROGRAM_STEP];
            moved->at = copy(step->at, step->count * sizeof *step->at);
            memmove(moved->at + a + 1, moved->at + a, (b - a) * sizeof *moved->at);
            moved->at[a] = step->at[b];
            const char *fault = plan_check(&v.plan, &v.right.target, NULL);
            if (feeds(right, &step->at[a], &step->at[b])) {
                cr_expect(fault && strstr(fault, "before it is written"), "%u to %u: %s", b, a,
                          fault ? fault : "passed");
                v.refused++;
            }
            free(moved->at);
            end(&v);
        }
    cr_assert_gt(v.refused, 10);
    planned_free(&v.right);
}

/* What a step that overflows must leave alone reads whether it did. */
Test(check, refuses_an_update_that_does_not_read_whether_the_step_counts)
{
    static const char text[] =
        "model fit(batch B = 4)\ninput x : f32[B, 32]\ninput y : f32[B, 8]\n"
        "h = relu(batchnorm(dense(x, 16)))\n"
        "train mse(dense(h, 8), y) using adam(lr = 0.1) { precision = f16 }\n";
    Victim v = {.right = planned_training(text, NULL)};
    Graph *g = v.right.graph;
    cr_assert_null(v.right.fault, "%s", v.right.fault);
    for (Id n = 0; n < g->node.count; n++) {
        const Node *node = &g->node.at[n];
        for (Id i = 0; i < node->uses; i++) {
            const Use use = node_use(g, node, i);
            const Id made = use.value == NONE ? NONE : g->value.at[use.value].node;
            if (made == NONE || !(g->node.at[made].op->flags & OP_DECIDES))
                continue;
            begin(&v);
            g->use.at[node->use + i] = (Use){NONE, NONE};
            const char *fault = plan_check(&v.plan, &v.right.target, NULL);
            cr_expect(fault && (strstr(fault, "whether or not the step counts") ||
                                strstr(fault, "is missing")),
                      "%s: %s", node->name, fault ? fault : "passed");
            g->use.at[node->use + i] = use;
            v.refused++;
            end(&v);
        }
    }
    cr_assert_eq(v.refused, 6 + 2 + 1, "%d", v.refused); /* parameters, statistics, the scale */
    planned_free(&v.right);
}

Test(check, what_passes_computes_the_right_bits_on_models)
{
    int refused = 0, passed = 0;
    for (int k = 0; k < MODELS; k++) {
        Victim v = {.right = planned_text(models[k], NULL, NULL)};
        spoil_often(&v, (uint64_t)k, 300);
        refused += v.refused;
        passed += v.passed;
        planned_free(&v.right);
    }
    cr_log_info("%d refused, %d passed", refused, passed);
    cr_expect(refused > 100 && passed > 10);
}

Test(check, what_passes_computes_the_right_bits_on_random_graphs)
{
    const char *soak = getenv("GPLAN_SOAK");
    uint64_t graphs = soak ? strtoull(soak, NULL, 10) : 60;
    int refused = 0, passed = 0;
    for (uint64_t seed = 0; seed < graphs; seed++) {
        Arena *arena = arena_new();
        PlanOptions how = {.io_external = seed % 5 == 1};
        Victim v = {.right = planned_graph(arena, random_graph(arena, seed), &how, NULL)};
        spoil_often(&v, seed, 50);
        refused += v.refused;
        passed += v.passed;
        planned_free(&v.right);
    }
    cr_log_info("%d refused, %d passed", refused, passed);
    cr_expect(refused > 100 && passed > 10);
}

static bool has_parts(const Graph *g)
{
    for (size_t v = 0; v < g->value.count; v++)
        if (g->value.at[v].kind == VALUE_RESULT && g->value.at[v].whole != NONE)
            return true;
    return false;
}

Test(check, what_passes_computes_the_right_bits_in_micro_batches)
{
    int refused = 0, passed = 0, graphs = 0;
    for (uint64_t seed = 0; graphs < 15 && seed < 300; seed++) {
        Arena *arena = arena_new();
        Graph *g = random_training(arena, seed);
        PlanOptions how = {.io_external = seed % 4 == 1, .smallest = seed % 3 == 0, .effort = 1};
        Victim v = {.micros = true};
        if (g)
            v.right = planned_graph(arena, g, &how, NULL);
        if (g && has_parts(g)) {
            cr_expect_null(v.right.fault, "seed %llu: %s", (unsigned long long)seed, v.right.fault);
            spoil_often(&v, seed, 60);
            graphs++;
        }
        refused += v.refused;
        passed += v.passed;
        arena_free(arena);
    }
    cr_log_info("%d refused, %d passed", refused, passed);
    cr_expect(graphs == 15 && refused > 100 && passed > 10);
}
