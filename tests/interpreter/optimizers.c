/* Optimizers, from their papers, and what stands between gradients and them. Settings are those of
 * the train statement; what it leaves out has the value that LANGUAGE.md or the paper gives. */
#include "tests/interpreter/interpreter.h"

#include <fnmatch.h>
#include <math.h>
#include <string.h>

/* The last setting of this name for the parameter; a group's wins over the common one. */
static double setting(const Graph *g, const char *name, const char *parameter, double otherwise)
{
    bool grouped = false;
    for (size_t i = 0; i < g->train.setting.count; i++) {
        const TrainSetting *s = &g->train.setting.at[i];
        bool fits = s->pattern ? parameter && fnmatch(s->pattern, parameter, 0) == 0 : !grouped;
        if (strcmp(s->name, name) != 0 || !fits)
            continue;
        otherwise = s->value.number;
        grouped = s->pattern != NULL;
    }
    return otherwise;
}

bool parameter_frozen(const Graph *g, const char *parameter)
{
    return setting(g, "frozen", parameter, 0) != 0;
}

enum { SGD, ADAM, ADAMW, RMSPROP, ADAGRAD, LION };
enum { DECAY, MOMENTUM, NESTEROV, BETA1, BETA2, EPS, ALPHA };

Optimizer optimizer_of(const Graph *g, const char *parameter)
{
    static const struct {
        const char *name, *state[MAX_STATES];
        double lr, beta2, eps, decay;
    } known[] = {
        [SGD] = {"sgd", {"v"}, 0.01, 0, 0, 0},
        [ADAM] = {"adam", {"m", "v"}, 0.001, 0.999, 1e-8, 0},
        [ADAMW] = {"adamw", {"m", "v"}, 0.001, 0.999, 1e-8, 0.01},
        [RMSPROP] = {"rmsprop", {"v", "b"}, 0.01, 0, 1e-8, 0},
        [ADAGRAD] = {"adagrad", {"v"}, 0.01, 0, 1e-10, 0},
        [LION] = {"lion", {"m"}, 0.0001, 0.99, 0, 0},
    };
    Optimizer o = {.name = g->train.optimizer};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, o.name) != 0)
            continue;
        o.kind = (int)i;
        memcpy(o.state, known[i].state, sizeof o.state);
        o.lr = setting(g, "lr", parameter, known[i].lr);
        o.setting[DECAY] = setting(g, "weight_decay", parameter, known[i].decay);
        o.setting[MOMENTUM] = setting(g, "momentum", parameter, 0);
        o.setting[NESTEROV] = setting(g, "nesterov", parameter, 0);
        o.setting[BETA1] = setting(g, "beta1", parameter, 0.9);
        o.setting[BETA2] = setting(g, "beta2", parameter, known[i].beta2);
        o.setting[EPS] = setting(g, "eps", parameter, known[i].eps);
        o.setting[ALPHA] = setting(g, "alpha", parameter, 0.99);
        if (o.kind == SGD && o.setting[MOMENTUM] == 0)
            o.state[0] = NULL;
        if (o.kind == RMSPROP && o.setting[MOMENTUM] == 0)
            o.state[1] = NULL;
        return o;
    }
    stop("the optimizer %s is not written here yet", o.name);
}

/* With the decay of the weights, where that is a part of the gradient. */
static double decayed(const Optimizer *o, double w, double gradient)
{
    bool apart = o->kind == ADAMW || o->kind == LION;
    return apart ? gradient : gradient + o->setting[DECAY] * w;
}

void optimizer_state(const Optimizer *o, double w, double gradient, const double *before,
                     double *after)
{
    const double *k = o->setting, g = decayed(o, w, gradient);
    if (o->kind == SGD) {
        after[0] = k[MOMENTUM] * before[0] + g;
    } else if (o->kind == ADAM || o->kind == ADAMW) { /* Kingma and Ba, 2015 */
        after[0] = k[BETA1] * before[0] + (1 - k[BETA1]) * g;
        after[1] = k[BETA2] * before[1] + (1 - k[BETA2]) * g * g;
    } else if (o->kind == RMSPROP) { /* Hinton, 2012 */
        after[0] = k[ALPHA] * before[0] + (1 - k[ALPHA]) * g * g;
        after[1] = k[MOMENTUM] * before[1] + g / (sqrt(after[0]) + k[EPS]);
    } else if (o->kind == ADAGRAD) { /* Duchi, Hazan and Singer, 2011 */
        after[0] = before[0] + g * g;
    } else { /* lion: Chen et al., 2023 */
        after[0] = k[BETA2] * before[0] + (1 - k[BETA2]) * g;
    }
}

double optimizer_parameter(const Optimizer *o, double w, double gradient, const double *before,
                           const double *after, uint64_t step)
{
    const double *k = o->setting, g = decayed(o, w, gradient), t = (double)step + 1;
    if (o->kind == SGD) {
        double v = o->state[0] ? after[0] : g;
        return w - o->lr * (k[NESTEROV] != 0 ? g + k[MOMENTUM] * v : v);
    }
    if (o->kind == ADAM || o->kind == ADAMW) {
        double mean = after[0] / (1 - pow(k[BETA1], t)), square = after[1] / (1 - pow(k[BETA2], t));
        double decay = o->kind == ADAMW ? k[DECAY] : 0; /* Loshchilov and Hutter */
        return w - o->lr * (mean / (sqrt(square) + k[EPS]) + decay * w);
    }
    if (o->kind == RMSPROP)
        return w - o->lr * (o->state[1] ? after[1] : g / (sqrt(after[0]) + k[EPS]));
    if (o->kind == ADAGRAD)
        return w - o->lr * g / (sqrt(after[0]) + k[EPS]);
    double mix = k[BETA1] * before[0] + (1 - k[BETA1]) * g;
    return w - o->lr * ((double)((mix > 0) - (mix < 0)) + k[DECAY] * w);
}

double clip_gradients(const Machine *m)
{
    const Graph *g = m->g;
    double limit = setting(g, "clip", NULL, 0), most = setting(g, "clip_value", NULL, 0);
    double squares = 0;
    for (Id v = 0; v < g->value.count; v++) {
        if (g->value.at[v].kind != VALUE_PARAM || !m->gradient[v])
            continue;
        for (int64_t i = 0; i < value_count(&g->value.at[v]); i++) {
            double *x = &m->gradient[v][i];
            if (most > 0)
                *x = fmax(-most, fmin(most, *x));
            squares += *x * *x;
        }
    }
    return limit > 0 && sqrt(squares) > limit ? limit / sqrt(squares) : 1;
}
