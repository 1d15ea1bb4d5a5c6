/* Optimizers against their formulas, and what stands between gradients and them. The rate of a
 * run of the interpreter is 0.1, and it is its first step. */
#include "tests/ops/cases.h"

#include <math.h>

static const double LR = 0.1;

enum { W, G, SCALE, FIRST, SECOND };

static double gradient(const Case *c, int64_t i, bool decay)
{
    double scale =
        c->in[SCALE].at ? c->in[SCALE].at[0] : 1; /* and what a loss scale has after it */
    return scale * c->in[G].at[i] + (decay ? case_number(c, "weight_decay") * c->in[W].at[i] : 0);
}

/* What the row's output is of: the parameter, or a state. */
static Tensor choose(const Case *c, int64_t i, Tensor *y, double w, double first, double second)
{
    y->at[i] = c->row->output == 0 ? w : c->row->output == 1 ? first : second;
    return *y;
}

static Tensor ref_sgd(const Case *c)
{
    Tensor y = case_like(c, W);
    double momentum = case_number(c, "momentum");
    for (int64_t i = 0; i < y.count; i++) {
        double g = gradient(c, i, true), v = 0;
        if (momentum != 0) {
            v = momentum * c->in[FIRST].at[i] + g;
            g = case_number(c, "nesterov") != 0 ? g + momentum * v : v;
        }
        choose(c, i, &y, c->in[W].at[i] - LR * g, v, 0);
    }
    return y;
}

static Tensor adam_of(const Case *c, bool decoupled)
{
    Tensor y = case_like(c, W);
    double b1 = case_number(c, "beta1"), b2 = case_number(c, "beta2");
    double t = c->in[SCALE].rank ? 1 - c->in[SCALE].at[2] : 1; /* without those that were skipped */
    for (int64_t i = 0; i < y.count; i++) {
        double g = gradient(c, i, !decoupled), w = c->in[W].at[i];
        double m = b1 * c->in[FIRST].at[i] + (1 - b1) * g;
        double v = b2 * c->in[SECOND].at[i] + (1 - b2) * g * g;
        if (decoupled)
            w -= LR * case_number(c, "weight_decay") * w;
        w -= LR * (m / (1 - pow(b1, t))) / (sqrt(v / (1 - pow(b2, t))) + case_number(c, "eps"));
        choose(c, i, &y, w, m, v);
    }
    return y;
}

static Tensor ref_adam(const Case *c)
{
    return adam_of(c, false);
}

static Tensor ref_adamw(const Case *c)
{
    return adam_of(c, true);
}

static Tensor ref_rmsprop(const Case *c)
{
    Tensor y = case_like(c, W);
    double alpha = case_number(c, "alpha"), momentum = case_number(c, "momentum");
    for (int64_t i = 0; i < y.count; i++) {
        double g = gradient(c, i, true), b = 0;
        double v = alpha * c->in[FIRST].at[i] + (1 - alpha) * g * g;
        double step = g / (sqrt(v) + case_number(c, "eps"));
        if (momentum != 0)
            step = b = momentum * c->in[SECOND].at[i] + step;
        choose(c, i, &y, c->in[W].at[i] - LR * step, v, b);
    }
    return y;
}

static Tensor ref_adagrad(const Case *c)
{
    Tensor y = case_like(c, W);
    for (int64_t i = 0; i < y.count; i++) {
        double g = gradient(c, i, true), v = c->in[FIRST].at[i] + g * g;
        choose(c, i, &y, c->in[W].at[i] - LR * g / (sqrt(v) + case_number(c, "eps")), v, 0);
    }
    return y;
}

static Tensor ref_lion(const Case *c)
{
    Tensor y = case_like(c, W);
    double b1 = case_number(c, "beta1"), b2 = case_number(c, "beta2");
    for (int64_t i = 0; i < y.count; i++) {
        double g = gradient(c, i, false), m = c->in[FIRST].at[i];
        double mix = b1 * m + (1 - b1) * g, w = c->in[W].at[i];
        w -= LR * ((mix > 0) - (mix < 0) + case_number(c, "weight_decay") * w);
        choose(c, i, &y, w, b2 * m + (1 - b2) * g, 0);
    }
    return y;
}

/* The first micro-batch of a step starts the sum, and what is staged. */
static Tensor ref_accumulate(const Case *c)
{
    return c->in[1];
}

static Tensor ref_accumulate_more(const Case *c)
{
    Tensor y = case_like(c, 0);
    for (int64_t i = 0; i < y.count; i++)
        y.at[i] = c->in[0].at[i] + c->in[1].at[i];
    return y;
}

/* The first micro-batch stands first. */
static Tensor ref_collect(const Case *c)
{
    Tensor y = case_like(c, 0);
    const Tensor *part = &c->in[1];
    int64_t inner = 1;
    for (int d = (int)case_int(c, "axis"); d < y.rank; d++)
        inner *= d == case_int(c, "axis") ? 1 : y.dim[d];
    int64_t step = inner * part->dim[case_int(c, "axis")];
    int64_t all = inner * y.dim[case_int(c, "axis")];
    for (int64_t i = 0; i < y.count; i++)
        y.at[i] = i % all < step ? part->at[i / all * step + i % all] : c->in[0].at[i];
    return y;
}

static Tensor ref_clip_factor(const Case *c)
{
    Tensor y = case_new(c, F32, 0, NULL);
    double squares = 0;
    for (int k = 0; k < c->ins; k++)
        for (int64_t i = 0; i < c->in[k].count; i++)
            squares += c->in[k].at[i] * c->in[k].at[i];
    y.at[0] = fmin(1, case_number(c, "limit") / sqrt(squares));
    return y;
}

/* Of a loss scale, which stands first: its inverse with what clips, good, what was skipped. */
static Tensor ref_unscale(const Case *c)
{
    Tensor y = case_like(c, 0);
    const double scale = c->in[0].at[0], limit = case_number(c, "limit");
    double squares = 0;
    for (int k = 1; k < c->ins; k++)
        for (int64_t i = 0; i < c->in[k].count; i++)
            squares += c->in[k].at[i] * c->in[k].at[i] / scale / scale;
    y.at[0] = (limit > 0 ? fmin(1, limit / sqrt(squares)) : 1) / scale;
    y.at[1] = 1;
    y.at[2] = c->in[0].at[2];
    return y;
}

static Tensor ref_loss_scale(const Case *c)
{
    Tensor y = case_like(c, 0);
    const bool doubles = c->in[0].at[1] + 1 >= case_number(c, "every");
    y.at[0] = c->in[0].at[0] * (doubles ? 2 : 1);
    y.at[1] = doubles ? 0 : c->in[0].at[1] + 1;
    y.at[2] = c->in[0].at[2];
    return y;
}

static Tensor ref_clip_scaled(const Case *c)
{
    Tensor y = case_like(c, 0);
    for (int64_t i = 0; i < y.count; i++) {
        const double most = c->in[1].at[i] * case_number(c, "limit");
        y.at[i] = fmax(-most, fmin(most, c->in[0].at[i]));
    }
    return y;
}

static Tensor ref_add_window(const Case *c)
{
    Tensor y = case_like(c, 0);
    for (int64_t i = 0; i < y.count; i++)
        y.at[i] = c->in[0].at[i];
    for (int64_t k = 0; k < c->in[1].count; k++) {
        int64_t at = case_int(c, "offset"), rest = k;
        for (int d = c->in[1].rank; d-- > 0; rest /= c->in[1].dim[d])
            at += rest % c->in[1].dim[d] * case_at(c, "stride", d);
        y.at[at] += c->in[1].at[k];
    }
    return y;
}

static Tensor ref_loss_mean(const Case *c)
{
    Tensor y = case_new(c, F32, 0, NULL);
    for (int64_t i = 0; i < c->in[0].count; i++)
        y.at[0] += c->in[0].at[i] / (double)c->in[0].count;
    return y;
}

/* The whole batch counts. */
static Tensor ref_valid_sum(const Case *c)
{
    Tensor y = case_new(c, F32, 0, NULL);
    for (int64_t i = 0; i < c->in[0].count; i++)
        y.at[0] += c->in[0].at[i];
    return y;
}

/* State of 8 bits: what it should become is tested in tests/kernels, here that CUDA agrees. */
#define CODES "u8[300]:0..255"
#define ONE_CODED "f32[300] f32[300] - " CODES " f32[1, 2]:0..1"
#define TWO_CODED "f32[300] f32[300] - " CODES " " CODES " f32[2, 2]:0..1"
#define TWO_STATES "f32[7, 3] f32[7, 3] - f32[7, 3] f32[7, 3]:0..2"

OP_CASES(update) = {
    {"sgd", "f32[7, 3] f32[7, 3]", "", ref_sgd},
    {"sgd", "f32[5] f32[5] f32[]:0..1", "weight_decay = 0.3", ref_sgd},
    {"sgd", "f32[5] f32[5] - f32[5]", "momentum = 0.9", ref_sgd},
    {"sgd", "f32[5] f32[5] - f32[5]", "momentum = 0.9, nesterov = true", ref_sgd},
    {"sgd", "f32[5] f32[5] - f32[5]", "momentum = 0.9", ref_sgd, .output = 1},
    {"adam", TWO_STATES, "", ref_adam},
    {"adam", TWO_STATES, "beta1 = 0.5, beta2 = 0.7, eps = 0.1, weight_decay = 0.2", ref_adam},
    {"adam", TWO_STATES, "", ref_adam, .output = 1},
    {"adam", TWO_STATES, "", ref_adam, .output = 2},
    {"adamw", TWO_STATES, "weight_decay = 0.4", ref_adamw},
    {"adamw", "f32[1] f32[1] f32[]:0..1 f32[1] f32[1]:0..2", "", ref_adamw},
    {"adam", "f32[4] f32[4] f32[3]:0.1..0.9 f32[4] f32[4]:0..2", "", ref_adam},
    {"rmsprop", "f32[6] f32[6] - f32[6]:0..2", "", ref_rmsprop},
    {"rmsprop", TWO_STATES, "momentum = 0.9, weight_decay = 0.1", ref_rmsprop},
    {"rmsprop", TWO_STATES, "momentum = 0.9", ref_rmsprop, .output = 2},
    {"adagrad", "f32[6] f32[6] - f32[6]:0..2", "weight_decay = 0.1", ref_adagrad},
    {"adagrad", "f32[6] f32[6] - f32[6]:0..2", "", ref_adagrad, .output = 1},
    {"lion", "f32[6] f32[6] - f32[6]", "weight_decay = 0.1", ref_lion},
    {"lion", "f32[6] f32[6] - f32[6]", "", ref_lion, .output = 1},
    {"sgd", ONE_CODED, "momentum = 0.9, nesterov = true"},
    {"adam", TWO_CODED, "weight_decay = 0.1"},
    {"adam", TWO_CODED, "", .output = 1},
    {"adam", TWO_CODED, "", .output = 2},
    {"adam", TWO_CODED, "", .output = 3},
    {"adamw", "f32[256] f32[256] f32[3]:0.1..9 u8[256]:0..255 u8[256]:0..255 f32[2, 1]:0..1", ""},
    {"rmsprop", TWO_CODED, "momentum = 0.9"},
    {"rmsprop", "f32[300] f32[300] - " CODES " - f32[1, 2]:0..1", "", .output = 1},
    {"adagrad", ONE_CODED, "", .output = 1},
    {"lion", ONE_CODED, "", .output = 1},
    {"accumulate", "f32[2, 5] f32[2, 5]", "", ref_accumulate},
    {"accumulate_more", "f32[2, 5] f32[2, 5]", "", ref_accumulate_more},
    {"stage", "f32[5] f32[5]", "", ref_accumulate},
    {"accumulate_ranks", "f32[2, 5] f32[2, 5]", "", ref_accumulate},
    {"commit", "f32[5] f32[5]", "", ref_accumulate},
    {"collect", "f32[6, 5] f32[2, 5]", "axis = 0", ref_collect},
    {"collect", "f32[2, 6, 3] f32[2, 2, 3]", "axis = 1", ref_collect},
    {"clip_factor", "f32[3, 4] f32[7]", "limit = 2", ref_clip_factor},
    {"clip_factor", "f32[3]", "limit = 1000", ref_clip_factor},
    {"unscale", "f32[3]:0.1..9 f32[3, 4] f32[7]", "limit = 0.1", ref_unscale},
    {"unscale", "f32[3]:0.1..9 f32[5]", "limit = 1000", ref_unscale},
    {"unscale", "f32[3]:0.1..9 f32[3, 4] f32[7]", "limit = 0", ref_unscale},
    {"loss_scale", "f32[3]:1..9 f32[3]:1..2", "", ref_loss_scale},
    {"loss_scale", "f32[3]:1..9 f32[3]:1..2", "every = 2", ref_loss_scale},
    {"clip_scaled", "f32[9] f32[9]:0.1..2", "limit = 0.5", ref_clip_scaled},
    {"add_window", "f32[4, 5] f32[2, 3]", "offset = 6, stride = [5, 1, 0, 0, 0, 0, 0, 0]",
     ref_add_window},
    {"add_window", "f32[6] f32[3]", "offset = 1, stride = [2, 0, 0, 0, 0, 0, 0, 0]",
     ref_add_window},
    {"loss_mean", "f32[6, 2]", "", ref_loss_mean},
    {"valid_sum", "f32[6, 2]", "", ref_valid_sum},
    {0},
};
