/* Optimizers, the factor that clips gradients, and sums over micro-batches. */
#include "runtime/c/update.h"
#include "runtime/c/clip_factor.h"

#include "check.h"

typedef struct {
    Array w, g, m, v, factor, to, next_m, next_v;
} State;

static State state_of(int64_t n, int clipped)
{
    State s = {.w = reals(DIMS(n)),
               .g = reals(DIMS(n)),
               .m = reals(DIMS(n)),
               .v = reals(DIMS(n)),
               .to = zeros(DIMS(n)),
               .next_m = zeros(DIMS(n)),
               .next_v = zeros(DIMS(n))};
    for (int64_t i = 0; i < n; i++)
        s.v.at[i] = fabs(s.v.at[i]);
    if (clipped) {
        s.factor = zeros(0, NULL);
        s.factor.at[0] = 0.25;
    }
    return s;
}

enum { STEP = 4 };
static const double LR = 0.125;

static void run_case(const char *name, int (*kernel)(const gp_call *), const void *attr,
                     const State *s, int states, const Array *first, const Array *second)
{
    Case t = {.kernel = kernel,
              .attr = attr,
              .ins = 3 + states,
              .outs = 1 + states,
              .in = {s->w, s->g, s->factor},
              .want = {s->to},
              .over = {1},
              .slack = 20,
              .terms = 2,
              .run = {.step = STEP, .lr = LR}};
    if (states > 0)
        t.in[3] = *first, t.over[1] = 4, t.want[1] = first == &s->m ? s->next_m : s->next_v;
    if (states > 1)
        t.in[4] = *second, t.over[2] = 5, t.want[2] = second == &s->m ? s->next_m : s->next_v;
    CROSS(GP_UPDATE_CHUNK, s->w.count);
    try(&t, "%s of %d", name, (int)s->w.count);
}

static void sgd(int64_t n, double momentum, int nesterov, double decay)
{
    const gp_sgd_attr a = {
        .momentum = momentum, .nesterov = nesterov, .weight_decay = decay, .lr_scale = 0.5};
    const State s = state_of(n, nesterov);
    for (int64_t i = 0; i < n; i++) {
        const double g = (nesterov ? 0.25 : 1) * s.g.at[i] + decay * s.w.at[i];
        const double v = momentum * s.m.at[i] + g;
        s.next_m.at[i] = v;
        s.to.at[i] = s.w.at[i] - LR * 0.5 * (momentum == 0 ? g : nesterov ? g + momentum * v : v);
    }
    run_case("sgd", gp_sgd, &a, &s, momentum != 0, &s.m, NULL);
}

static void adam(int64_t n, int decoupled, double decay)
{
    const gp_adam_attr a = {
        .beta1 = 0.875, .beta2 = 0.96875, .eps = 1e-3, .weight_decay = decay, .lr_scale = 0.5};
    const State s = state_of(n, decoupled);
    const double lr = LR * 0.5, first = 1 - pow(a.beta1, STEP + 1);
    const double second = 1 - pow(a.beta2, STEP + 1);
    for (int64_t i = 0; i < n; i++) {
        const double g = (decoupled ? 0.25 : 1) * s.g.at[i] + (decoupled ? 0 : decay * s.w.at[i]);
        const double m = a.beta1 * s.m.at[i] + (1 - a.beta1) * g;
        const double v = a.beta2 * s.v.at[i] + (1 - a.beta2) * g * g;
        s.next_m.at[i] = m;
        s.next_v.at[i] = v;
        s.to.at[i] = s.w.at[i] * (decoupled ? 1 - lr * decay : 1) -
                     lr * (m / first) / (sqrt(v / second) + a.eps);
    }
    run_case(decoupled ? "adamw" : "adam", decoupled ? gp_adamw : gp_adam, &a, &s, 2, &s.m, &s.v);
}

static void others(int64_t n, int with)
{
    const gp_rmsprop_attr r = {.alpha = 0.875,
                               .eps = 1e-3,
                               .momentum = with ? 0.5 : 0,
                               .weight_decay = 0.25,
                               .lr_scale = 0.5};
    const gp_adagrad_attr d = {.eps = 1e-3, .weight_decay = 0.25, .lr_scale = 0.5};
    const gp_lion_attr l = {.beta1 = 0.875, .beta2 = 0.75, .weight_decay = 0.25, .lr_scale = 0.5};
    const double lr = LR * 0.5;
    State s = state_of(n, with);
    for (int64_t i = 0; i < n; i++) {
        const double g = (with ? 0.25 : 1) * s.g.at[i] + 0.25 * s.w.at[i];
        s.next_v.at[i] = r.alpha * s.v.at[i] + (1 - r.alpha) * g * g;
        s.next_m.at[i] = r.momentum * s.m.at[i] + g / (sqrt(s.next_v.at[i]) + r.eps);
        s.to.at[i] = s.w.at[i] - lr * (with ? s.next_m.at[i] : g / (sqrt(s.next_v.at[i]) + r.eps));
    }
    run_case("rmsprop", gp_rmsprop, &r, &s, 1 + with, &s.v, &s.m);
    s = state_of(n, with);
    for (int64_t i = 0; i < n; i++) {
        const double g = (with ? 0.25 : 1) * s.g.at[i] + 0.25 * s.w.at[i];
        s.next_v.at[i] = s.v.at[i] + g * g;
        s.to.at[i] = s.w.at[i] - lr * g / (sqrt(s.next_v.at[i]) + d.eps);
    }
    run_case("adagrad", gp_adagrad, &d, &s, 1, &s.v, NULL);
    s = state_of(n, with);
    for (int64_t i = 0; i < n; i++) {
        const double g = (with ? 0.25 : 1) * s.g.at[i];
        const double mix = l.beta1 * s.m.at[i] + (1 - l.beta1) * g;
        s.next_m.at[i] = l.beta2 * s.m.at[i] + (1 - l.beta2) * g;
        s.to.at[i] = s.w.at[i] * (1 - lr * l.weight_decay) - lr * (mix > 0 ? 1 : mix < 0 ? -1 : 0);
    }
    run_case("lion", gp_lion, &l, &s, 1, &s.m, NULL);
}

static void clip(int64_t n, int64_t m, double limit)
{
    const gp_clip_factor_attr a = {limit};
    Array x = integers(DIMS(n), -3, 3), y = integers(DIMS(m), -3, 3), f = zeros(0, NULL);
    double squares = 0;
    for (int64_t i = 0; i < n + m; i++)
        squares += i < n ? x.at[i] * x.at[i] : y.at[i - n] * y.at[i - n];
    f.at[0] = sqrt(squares) > limit ? limit / sqrt(squares) : 1;
    CROSS(GP_CLIP_CHUNK, n);
    CROSS(GP_CLIP_LANES, n);
    const Case t = {.kernel = gp_clip_factor,
                    .space = gp_clip_factor_workspace,
                    .attr = &a,
                    .ins = 2,
                    .outs = 1,
                    .in = {x, y},
                    .want = {f},
                    .slack = 2};
    try(&t, "clip_factor of %d and %d", (int)n, (int)m);
}

int main(void)
{
    for (int64_t off = -1; off <= 1; off++) {
        const int64_t count[] = {GP_UPDATE_CHUNK + off, 2 * GP_UPDATE_CHUNK + off, 5,
                                 GP_TINY ? 77 : (1 << 15) + 1 + off};
        for (int i = 0; i < 4; i++) {
            sgd(count[i], 0, 0, 0.25);
            sgd(count[i], 0.5, 0, 0);
            sgd(count[i], 0.5, 1, 0.25);
            for (int decoupled = 0; decoupled <= 1; decoupled++) {
                adam(count[i], decoupled, 0.25);
                others(count[i], decoupled);
            }
        }
        clip(GP_CLIP_CHUNK + off, 7, 2);
        clip(GP_CLIP_LANES + off, 3 * GP_CLIP_CHUNK + off, 3);
        clip(5, 9, 1e9);
    }
    return finish();
}
