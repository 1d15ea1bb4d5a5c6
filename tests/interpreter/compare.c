/* How far an emitted program is from the interpreter, tensor by tensor. */
#include "tests/interpreter/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double TOLERANCE = 1e-5, ULP = 0x1p-23;
/* An error may be so many times what float loops are off by, in this tensor or in the median one of
 * the model, but is never taken above the other. One run of float loops is one draw of what
 * rounding does: where sums cancel it may be lucky, and then says nothing of what float resolves
 * there. */
static const double ROUNDED_TIMES = 4, COARSEST = 2e-3;

typedef struct {
    double error, rounded, scale; /* largest so far */
} Gap;

/* One element: what it should be, what it is, what it is with rounded results. `least`: what is
 * not an error, since the number itself has no more digits. */
static void gap_add(Gap *gap, double want, double is, double rounded, double size, double least)
{
    double error = fabs(is - want) - least;
    if (isnan(error) || error > gap->error) /* nothing is larger than NaN: it stays */
        gap->error = error;
    gap->rounded = fmax(gap->rounded, fabs(rounded - want));
    gap->scale = fmax(gap->scale, fabs(size));
}

static void judge(Verdict *v, const char *name, const char *part, Gap gap)
{
    double error = gap.error <= 0 ? 0 : gap.error / gap.scale;
    double off = gap.rounded / gap.scale;
    if (v->seeking) {
        if (off > 0)
            ARRAY_PUSH(v->arena, &v->off, off);
        return;
    }
    double limit = v->final ? fmin(ROUNDED_TIMES * fmax(off, v->typical), COARSEST) : 0;
    bool good = error <= TOLERANCE, coarse = !good && error <= limit;
    v->compared++;
    v->wrong += !good && !coarse;
    v->coarse += coarse;
    if (v->table || (!good && !coarse && v->final))
        printf("  %-60s %9.2e, float loops %9.2e%s\n", name, error, off,
               good     ? ""
               : coarse ? "  (resolves no more)"
                        : "  WRONG");
    if (good && error >= v->worst) {
        v->worst = error;
        snprintf(v->where, sizeof v->where, "%s%s", name, part);
    }
    if (!good && !(error <= v->coarsest)) {
        v->coarsest = error;
        snprintf(v->coarse_where, sizeof v->coarse_where, "%s%s", name, part);
    }
}

static void compare_loss(const Machine *m, const Machine *rounded, float loss, const char *name,
                         Verdict *v)
{
    Id value = m->g->train.loss.value;
    double want = *m->value[value];
    Gap gap = {0};
    gap_add(&gap, want, loss, rounded ? *rounded->value[value] : want, want, 0);
    judge(v, name, "", gap);
}

static double largest_of(const double *x, int64_t count)
{
    double most = 0;
    for (int64_t i = 0; i < count; i++)
        most = fmax(most, fabs(x[i]));
    return most;
}

/* The largest logit, where the output is their softmax; else 0. */
static double largest_logit(const Machine *m, const Output *output)
{
    Use use = output_logits(m->g, output);
    if (use.value == NONE)
        return 0;
    View view = use_view(m->g, use);
    double *x = machine_read(m, use), most = largest_of(x, view_count(&view));
    free(x);
    return most;
}

/* What an error is multiplied by: 1, so that it is judged by the largest element of its tensor, and
 * less where it is that of a probability whose logits resolve no more. Where logits x are wrong by
 * dx, dp_i = p_i (dx_i - sum of p_j dx_j), which is at most 2 p_i (1 - p_i) d where all |dx| <= d;
 * and d is TOLERANCE times the largest logit. Logits of 12 that are right within 1e-5 of 12 may
 * make p = 0.5 wrong by 6e-5. */
static double share_of(double largest, double p, double logit)
{
    return fmin(1, largest / (2 * p * fabs(1 - p) * logit));
}

static void compare_outputs(const Subject *s, const Machine *m, const Machine *rounded, Verdict *v)
{
    for (size_t i = 0; i < m->g->output.count; i++) {
        const Output *output = &m->g->output.at[i];
        size_t at;
        SubjectTensor t = subject_tensor_named(s, output->name, &at);
        double *want = machine_read(m, output->use);
        double *coarse = machine_read(rounded ? rounded : m, output->use);
        double largest = largest_of(want, subject_count(&t)), logit = largest_logit(m, output);
        Gap gap = {0};
        for (int64_t k = 0; k < subject_count(&t); k++) {
            double share = logit > 0 ? share_of(largest, want[k], logit) : 1;
            gap_add(&gap, share * want[k], share * s->output[at][k], share * coarse[k], want[k], 0);
        }
        judge(v, output->name, "", gap);
        free(want);
        free(coarse);
    }
}

/* Running statistics, by the share that the batch has in them. */
static void compare_statistics(const Subject *s, const Machine *m, const Machine *rounded,
                               Verdict *v)
{
    for (Id n = 0; n < m->g->node.count; n++) {
        const Node *node = &m->g->node.at[n];
        for (Id k = 0; k < 2 && strcmp(node->op->name, "running_stats") == 0; k++) {
            const char *name = m->g->value.at[node_use(m->g, node, k).value].name;
            size_t at;
            SubjectTensor t = subject_tensor_named(s, name, &at);
            const double *want = m->value[node_value(node, k)];
            const double *coarse = (rounded ? rounded : m)->value[node_value(node, k)];
            double kept = 1 - node_attr(m->g, n, "momentum")->number;
            Gap gap = {0};
            for (int64_t i = 0; i < subject_count(&t); i++)
                gap_add(&gap, want[i], subject_element(s, &t, i), coarse[i],
                        want[i] - kept * s->before[at][i], ULP * fabs(want[i]));
            judge(v, name, "", gap);
        }
    }
}

/* The largest gradient of all: what one that is 0 by symmetry is measured by. */
static double largest_gradient(const Machine *m)
{
    double most = 0;
    for (Id p = 0; p < m->g->value.count; p++)
        if (m->gradient[p])
            most = fmax(most, largest_of(m->gradient[p], value_count(&m->g->value.at[p])));
    return most;
}

typedef struct {
    const Subject *s;
    const Reference *model;
    Optimizer optimizer;
    Id parameter;
    const double *w; /* before */
    SubjectTensor tensor, state[MAX_STATES];
    const double *before[MAX_STATES];
    double floor; /* of a gradient's size */
} Update;

/* The gradient of a key's bias is 0 whatever the model: all scores of a query move alike. */
static double gradient_floor(const Machine *m, Id parameter, double most)
{
    double here = largest_of(m->gradient[parameter], value_count(&m->g->value.at[parameter]));
    return here < 1e-9 * most ? most : 0;
}

static void state_after(const Update *u, const Machine *m, double clip, int64_t i, double w,
                        double *after)
{
    double before[MAX_STATES] = {0};
    for (int k = 0; k < MAX_STATES; k++)
        before[k] = u->before[k] ? u->before[k][i] : 0;
    optimizer_state(&u->optimizer, w, clip * m->gradient[u->parameter][i], before, after);
}

static void compare_state(const Update *u, int k, Verdict *v)
{
    const Reference *model = u->model;
    Gap gap = {0};
    double least[MAX_STATES] = {0};
    optimizer_state(&u->optimizer, 0, u->floor, (double[MAX_STATES]){0}, least);
    gap.scale = least[k];
    for (int64_t i = 0; i < subject_count(&u->tensor); i++) {
        double want[MAX_STATES], coarse[MAX_STATES] = {0}, alone[MAX_STATES];
        state_after(u, model->train, model->clip, i, u->w[i], want);
        state_after(u, model->train, model->clip, i, 0, alone); /* without the decay of weights */
        memcpy(coarse, want, sizeof want);
        if (model->rounded_train)
            state_after(u, model->rounded_train, model->rounded_clip, i, u->w[i], coarse);
        gap_add(&gap, want[k], subject_element(u->s, &u->state[k], i), coarse[k],
                alone[k] - u->before[k][i], ULP * fabs(want[k]));
    }
    judge(v, u->state[k].name, "", gap);
}

static void compare_parameter(const Update *u, Verdict *v)
{
    const Reference *model = u->model;
    Gap gap = {0};
    bool stateless = !u->optimizer.state[0];
    for (int64_t i = 0; i < subject_count(&u->tensor); i++) {
        double before[MAX_STATES] = {0}, after[MAX_STATES] = {0};
        for (int k = 0; k < MAX_STATES; k++)
            if (u->optimizer.state[k]) {
                before[k] = u->before[k][i];
                after[k] = subject_element(u->s, &u->state[k], i);
            }
        double g = model->clip * model->train->gradient[u->parameter][i];
        double want =
            optimizer_parameter(&u->optimizer, u->w[i], g, before, after, model->train->step);
        double coarse = want;
        if (stateless && model->rounded_train)
            coarse = optimizer_parameter(&u->optimizer, u->w[i],
                                         model->rounded_clip *
                                             model->rounded_train->gradient[u->parameter][i],
                                         before, after, model->train->step);
        /* two roundings: of what is subtracted from, and of the result */
        gap_add(&gap, want, subject_element(u->s, &u->tensor, i), coarse, want - u->w[i],
                2 * ULP * fmax(fabs(want), fabs(u->w[i])));
    }
    judge(v, u->tensor.name, " (update)", gap);
}

static void compare_updates(const Subject *s, const Reference *model, Verdict *v)
{
    const Machine *m = model->train;
    double most = largest_gradient(m);
    for (Id p = 0; p < m->g->value.count; p++) {
        const Value *value = &m->g->value.at[p];
        size_t at;
        if (value->kind != VALUE_PARAM)
            continue;
        if (!m->gradient[p] && m->wanted[p])
            continue; /* nothing that counts reads it */
        Update u = {.s = s, .model = model, .parameter = p};
        u.tensor = subject_tensor_named(s, value->name, &at);
        u.w = s->before[at];
        if (!m->wanted[p]) { /* frozen */
            Gap gap = {.scale = 1};
            for (int64_t i = 0; i < subject_count(&u.tensor); i++)
                gap_add(&gap, u.w[i], subject_element(s, &u.tensor, i), u.w[i], 0, 0);
            judge(v, value->name, "", gap);
            continue;
        }
        u.optimizer = optimizer_of(m->g, value->name);
        u.floor = model->clip * gradient_floor(m, p, most);
        for (int k = 0; k < MAX_STATES && u.optimizer.state[k]; k++) {
            char name[512];
            snprintf(name, sizeof name, "%s.%s.%s", value->name, u.optimizer.name,
                     u.optimizer.state[k]);
            u.state[k] = subject_tensor_named(s, name, &at);
            u.before[k] = s->before[at];
        }
        for (int k = 0; k < MAX_STATES && u.optimizer.state[k]; k++)
            compare_state(&u, k, v);
        compare_parameter(&u, v);
    }
}

static void compare_all(const Subject *s, const Reference *model, int step, Verdict *v)
{
    if (step == 0) {
        compare_outputs(s, model->infer, model->rounded_infer, v);
        compare_loss(model->infer, model->rounded_infer, s->eval_loss, "loss of eval", v);
    }
    compare_loss(model->train, model->rounded_train, s->step_loss, "loss of step", v);
    compare_statistics(s, model->train, model->rounded_train, v);
    compare_updates(s, model, v);
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* What float loops are off by in the median of the tensors that they are off in. */
static double find_typical(const Subject *s, const Reference *model, int step)
{
    Verdict v = {.seeking = true, .arena = arena_new()};
    compare_all(s, model, step, &v);
    if (v.off.count)
        qsort(v.off.at, v.off.count, sizeof *v.off.at, by_size);
    double typical = v.off.count ? v.off.at[v.off.count / 2] : 0;
    arena_free(v.arena);
    return typical;
}

Verdict compare(const Subject *s, const Reference *model, int step, bool final, bool table)
{
    Verdict v = {.final = final, .table = table};
    if (final)
        v.typical = find_typical(s, model, step);
    compare_all(s, model, step, &v);
    return v;
}
