/* Trains an emitted model and a reference of it in double for some steps, side by side on the same
 * batches, and compares: the loss of each step, the parameters at the end, running statistics.
 *
 * The program gives `loss_of(samples)`, the loss built on the tape, and CLASSES. The arguments say
 * what the train statement says, in its words:
 *
 *     OPTIMIZER lr=0.1 momentum=0.9 clip=1 group=*.b weight_decay=0 ... steps to take: count=10
 *
 * Settings after group=PATTERN are for the parameters that it fits; schedule=cosine and its
 * settings; valid=N; set_lr=X by the setter. The optimizers are written out here from their papers
 * once more. */
#ifndef TESTS_REFERENCE_H
#define TESTS_REFERENCE_H

#include "emitted.h"
#include "net.h"

#include <fnmatch.h>

static Var loss_of(int64_t samples);

/* ---- Parameters ------------------------------------------------------------------------------ */

typedef struct {
    const M(_tensor) * t;
    size_t count;
    double *value, *first, *state[2];
    Var *var;
} Parameter;

static Parameter *parameters;
static size_t parameter_count;

static double *zeros(size_t count)
{
    return need(calloc(count, sizeof(double)));
}

static void parameters_begin(void)
{
    size_t count;
    const M(_tensor) *t = M(_tensors)(&count);
    parameters = need(calloc(count, sizeof *parameters));
    for (size_t i = 0; i < count; i++) {
        const char *last = strrchr(t[i].name, '.');
        int statistics = last && (strcmp(last, ".mean") == 0 || strcmp(last, ".var") == 0);
        if (t[i].kind != KIND_PARAM && !statistics)
            continue;
        size_t n = t[i].bytes / 4;
        Parameter *p = &parameters[parameter_count++];
        *p = (Parameter){&t[i], n, zeros(n), zeros(n), {zeros(n), zeros(n)}, vars((int64_t)n)};
        for (size_t k = 0; k < n; k++)
            p->value[k] = p->first[k] = ((const float *)data(&t[i]))[k];
    }
}

static Parameter *find_parameter(const char *name)
{
    for (size_t i = 0; i < parameter_count; i++)
        if (strcmp(parameters[i].t->name, name) == 0)
            return &parameters[i];
    fprintf(stderr, "failed: no parameter %s\n", name);
    exit(1);
}

static const Var *param(const char *name)
{
    return find_parameter(name)->var;
}

static double *statistic(const char *layer, const char *which, int64_t channel)
{
    char name[256];
    snprintf(name, sizeof name, "%s.%s", layer, which);
    return &find_parameter(name)->value[channel];
}

static void running(const char *layer, int64_t channel, Moments m, int64_t count)
{
    double *mean = statistic(layer, "mean", channel), *var = statistic(layer, "var", channel);
    *mean += 0.1 * (m.mean - *mean);
    *var += 0.1 * (m.var * (double)count / (double)(count - 1) - *var);
}

static Moments running_of(const char *layer, int64_t channel)
{
    return (Moments){*statistic(layer, "mean", channel), *statistic(layer, "var", channel)};
}

/* ---- Settings -------------------------------------------------------------------------------- */

static int argument_count;
static char **arguments;

/* The last one that is for the parameter; `fallback` where there is none. */
static double setting(const char *name, const char *parameter, double fallback)
{
    const char *group = NULL;
    int from_group = 0;
    for (int i = 2; i < argument_count; i++) {
        const char *equals = strchr(arguments[i], '=');
        if (strncmp(arguments[i], "group=", 6) == 0)
            group = arguments[i] + 6;
        else if (strncmp(arguments[i], name, strlen(name)) == 0 &&
                 equals == arguments[i] + strlen(name) &&
                 (!group || (parameter && fnmatch(group, parameter, 0) == 0)) &&
                 (group || !from_group)) {
            fallback = strtod(equals + 1, NULL);
            from_group = group != NULL;
        }
    }
    return fallback;
}

static int has_word(const char *word)
{
    for (int i = 1; i < argument_count; i++)
        if (strcmp(arguments[i], word) == 0)
            return 1;
    return 0;
}

/* What the step takes of the learning rate, counted from 0. */
static double schedule(double step)
{
    double warmup = setting("warmup", NULL, 0), steps = setting("steps", NULL, 0);
    double least = setting("floor", NULL, 0);
    if (step < warmup)
        return (step + 1) / warmup;
    double part = (step - warmup) / (steps - warmup);
    if (has_word("schedule=linear"))
        return part >= 1 ? least : 1 + (least - 1) * part;
    if (has_word("schedule=cosine"))
        return part >= 1 ? least : least + (1 - least) * (1 + cos(M_PI * part)) / 2;
    if (has_word("schedule=step"))
        return pow(setting("factor", NULL, 1), floor((step - warmup) / setting("every", NULL, 1)));
    return 1;
}

/* ---- Optimizers ------------------------------------------------------------------------------ */

static double sign(double x)
{
    return x > 0 ? 1 : x < 0 ? -1 : 0;
}

static void update(Parameter *p, double factor, double limit, double step)
{
    const char *optimizer = arguments[1], *n = p->t->name;
    double lr = setting("lr", n, NAN) * schedule(step), decay = setting("weight_decay", n, 0);
    double set = setting("set_lr", NULL, 0);
    if (set > 0)
        lr = set * schedule(step);
    double momentum = setting("momentum", n, 0), alpha = setting("alpha", n, 0.99);
    int is_lion = strcmp(optimizer, "lion") == 0, is_adagrad = strcmp(optimizer, "adagrad") == 0;
    double b1 = setting("beta1", n, 0.9), b2 = setting("beta2", n, is_lion ? 0.99 : 0.999);
    double eps = setting("eps", n, is_adagrad ? 1e-10 : 1e-8), t = step + 1;
    if (setting("frozen", n, 0) != 0)
        return;
    for (size_t i = 0; i < p->count; i++) {
        double *w = &p->value[i], *m = &p->state[0][i], *v = &p->state[1][i];
        double g = tape.at[p->var[i]].grad;
        if (limit > 0)
            g = fmax(-limit, fmin(limit, g));
        g *= factor;
        if (strcmp(optimizer, "adamw") != 0 && !is_lion)
            g += decay * *w;
        if (strcmp(optimizer, "sgd") == 0) {
            *m = momentum * *m + g;
            *w -= lr * (setting("nesterov", n, 0) != 0 ? g + momentum * *m : *m);
        } else if (strncmp(optimizer, "adam", 4) == 0) {
            *m = b1 * *m + (1 - b1) * g;
            *v = b2 * *v + (1 - b2) * g * g;
            if (strcmp(optimizer, "adamw") == 0)
                *w -= lr * decay * *w;
            *w -= lr * (*m / (1 - pow(b1, t))) / (sqrt(*v / (1 - pow(b2, t))) + eps);
        } else if (strcmp(optimizer, "rmsprop") == 0) {
            *v = alpha * *v + (1 - alpha) * g * g;
            *m = momentum * *m + g / (sqrt(*v) + eps);
            *w -= lr * *m;
        } else if (is_adagrad) {
            *v += g * g;
            *w -= lr * g / (sqrt(*v) + eps);
        } else if (is_lion) {
            double mix = b1 * *m + (1 - b1) * g;
            *w -= lr * (sign(mix) + decay * *w);
            *m = b2 * *m + (1 - b2) * g;
        } else {
            check(0, "an optimizer that is known");
        }
    }
}

static void update_all(double step)
{
    double clip = setting("clip", NULL, 0), limit = setting("clip_value", NULL, 0), squares = 0;
    for (size_t k = 0; k < parameter_count; k++)
        for (size_t i = 0; i < parameters[k].count; i++) {
            double g = tape.at[parameters[k].var[i]].grad;
            if (limit > 0)
                g = fmax(-limit, fmin(limit, g));
            if (setting("frozen", parameters[k].t->name, 0) == 0)
                squares += g * g;
        }
    double factor = clip > 0 && sqrt(squares) > clip ? clip / sqrt(squares) : 1;
    for (size_t k = 0; k < parameter_count; k++)
        if (parameters[k].t->kind == KIND_PARAM)
            update(&parameters[k], factor, limit, step);
}

/* ---- Side by side ---------------------------------------------------------------------------- */

/* The way that the reference went, and how far the model is from it, as vectors. */
static double compare_parameters(const char **which)
{
    double worst = 0;
    for (size_t k = 0; k < parameter_count; k++) {
        const Parameter *p = &parameters[k];
        double off = 0, way = 0;
        for (size_t i = 0; i < p->count; i++) {
            double x = ((const float *)data(p->t))[i];
            off += (x - p->value[i]) * (x - p->value[i]);
            way += (p->value[i] - p->first[i]) * (p->value[i] - p->first[i]);
        }
        /* Scores do not change when all keys move alike: the gradient of bk is 0, and what is left
         * of it rounding alone. */
        if (strstr(p->t->name, ".bk"))
            continue;
        if (way == 0)
            check(off == 0, "what is frozen does not move");
        else if (sqrt(off / way) > worst) {
            worst = sqrt(off / way);
            *which = p->t->name;
        }
    }
    return worst;
}

/* The loss of the reference on the batch at hand, and how far from it the model's is. */
static double compare_loss(int (*run)(MODEL *, float *), Var *reference)
{
    float loss = -1;
    tape_clear();
    for (size_t k = 0; k < parameter_count; k++)
        for (size_t i = 0; i < parameters[k].count; i++)
            parameters[k].var[i] = number(parameters[k].value[i]);
    *reference = loss_of((int64_t)setting("valid", NULL, 0));
    expect_ok(run(&model, &loss), "run");
    return fabs(val(*reference) - (double)loss) / fabs(val(*reference));
}

int main(int argc, char **argv)
{
    arguments = argv;
    argument_count = argc;
    int count = (int)setting("count", NULL, 10);
    double worst_loss = 0, tolerance = setting("tolerance", NULL, 1e-4);
    const char *which = "none";
    Var loss;
    model_begin(7);
    parameters_begin();
    M(_valid)(&model, (int64_t)setting("valid", NULL, 0));
    if (setting("set_lr", NULL, 0) > 0)
        M(_set_lr)(&model, setting("set_lr", NULL, 0));
    for (int step = 0; step < count; step++) {
        draw_inputs((uint64_t)step + 1, CLASSES);
        worst_loss = fmax(worst_loss, compare_loss(M(_step), &loss));
        tape_back(loss);
        update_all(step);
    }
    double worst = compare_parameters(&which);
    inferring = 1;
    worst_loss = fmax(worst_loss, compare_loss(M(_eval), &loss));
    printf("%d steps: losses agree to %.1e, parameters to %.1e of their way (%s)\n", count,
           worst_loss, worst, which);
    check(worst_loss <= tolerance && worst <= 10 * tolerance, "agreement");
    return 0;
}

#endif
