/* Optimizers: update a parameter and its state in place, given its gradient.
 *
 * Operands: the parameter w, its gradient g, a factor for all gradients (or none), the state. Every
 * output shares the bytes of the operand it is the next version of. */
#ifndef GP_UPDATE_H
#define GP_UPDATE_H

#include "math.h"
#include "settings.h"

enum {
    GP_UPDATE_LARGE = 1 << 15,              /* the fewest elements worth a second thread */
    GP_UPDATE_CHUNK = GP_BLOCK(1 << 12, 10) /* elements of a thread at a time */
};

/* The old and new versions that all optimizers begin with. */
typedef struct {
    const gp_real *w, *g, *old[2]; /* old: the state; NULL where the op has less of it */
    gp_real *to, *state[2];
    gp_real scale; /* of the gradient */
    int64_t count;
} gp_update;

GP_FUNCTION gp_update gp_update_of(const gp_call *c)
{
    gp_update u = {.w = c->in[0].data, .g = c->in[1].data, .to = c->out[0].data, .scale = 1};
    u.count = gp_count(&c->in[0]);
    if (c->in[2].data)
        u.scale = *(const gp_real *)c->in[2].data;
    for (int i = 0; i < 2 && 3 + i < c->ins && c->in[3 + i].data; i++) {
        u.old[i] = c->in[3 + i].data;
        u.state[i] = c->out[1 + i].data;
    }
    return u;
}

/* The end of the chunk that starts at `from`. */
GP_FUNCTION int64_t gp_update_end(const gp_update *u, int64_t from)
{
    return from + GP_UPDATE_CHUNK < u->count ? from + GP_UPDATE_CHUNK : u->count;
}

/* The gradient with weight decay; with a decay of 0, w does not matter even where it is
 * infinite. */
GP_FUNCTION gp_real gp_decayed(gp_real g, gp_real decay, gp_real w)
{
    return decay != 0 ? g + decay * w : g;
}

/* v = momentum v + g; w -= lr v, or lr (g + momentum v) with Nesterov momentum. */
GP_KERNEL(sgd)
{
    const gp_sgd_attr *a = c->attr;
    const gp_update u = gp_update_of(c);
    const gp_real lr = (gp_real)(c->run->lr * a->lr_scale);
    const gp_real decay = (gp_real)a->weight_decay, momentum = (gp_real)a->momentum;
    const int nesterov = a->nesterov != 0;
    gp_real *const v = u.state[0];
    GP_PARALLEL(c->run, u.count > GP_UPDATE_LARGE)
    for (int64_t from = 0; from < u.count; from += GP_UPDATE_CHUNK) {
        const int64_t to = gp_update_end(&u, from);
        if (!v) {
            GP_IVDEP
            for (int64_t i = from; i < to; i++)
                u.to[i] = u.w[i] - lr * gp_decayed(u.scale * u.g[i], decay, u.w[i]);
            continue;
        }
        GP_IVDEP
        for (int64_t i = from; i < to; i++) {
            const gp_real g = gp_decayed(u.scale * u.g[i], decay, u.w[i]);
            const gp_real next = momentum * u.old[0][i] + g;
            v[i] = next;
            u.to[i] = u.w[i] - lr * (nesterov ? g + momentum * next : next);
        }
    }
    return GP_OK;
}

/* Common to the steps of Adam. */
typedef struct {
    gp_real rate, root, shrink, decay, b1, b2, c1, c2, eps;
} gp_adam_rates;

GP_FUNCTION void gp_adam_chunk(const gp_update *u, const gp_adam_rates *a, int64_t from, int64_t to)
{
    const gp_adam_rates k = *a;
    const gp_real *w = u->w, *g = u->g, *m = u->old[0], *v = u->old[1], scale = u->scale;
    gp_real *next = u->to, *next_m = u->state[0], *next_v = u->state[1];
    GP_IVDEP
    for (int64_t i = from; i < to; i++) {
        const gp_real old = w[i], up = gp_decayed(scale * g[i], k.decay, old);
        const gp_real mean = k.b1 * m[i] + k.c1 * up, square = k.b2 * v[i] + k.c2 * up * up;
        next_m[i] = mean;
        next_v[i] = square;
        next[i] = k.shrink * old - k.rate * mean / (gp_sqrt(square) * k.root + k.eps);
    }
}

/* Kingma and Ba 2015; decoupled: Loshchilov and Hutter 2019. Steps count from 1 in the formula. */
GP_FUNCTION int gp_adam_step(const gp_call *c, const gp_adam_attr *a, int decoupled)
{
    const gp_update u = gp_update_of(c);
    const double t = (double)c->run->step + 1, lr = c->run->lr * a->lr_scale;
    const double first = 1 - pow(a->beta1, t), second = 1 - pow(a->beta2, t);
    const gp_adam_rates k = {.rate = (gp_real)(lr / first),
                             .root = (gp_real)(1 / sqrt(second)),
                             .shrink = decoupled ? (gp_real)(1 - lr * a->weight_decay) : 1,
                             .decay = decoupled ? 0 : (gp_real)a->weight_decay,
                             .b1 = (gp_real)a->beta1,
                             .b2 = (gp_real)a->beta2,
                             .c1 = (gp_real)(1 - a->beta1),
                             .c2 = (gp_real)(1 - a->beta2),
                             .eps = (gp_real)a->eps};
    GP_PARALLEL(c->run, u.count > GP_UPDATE_LARGE)
    for (int64_t from = 0; from < u.count; from += GP_UPDATE_CHUNK)
        gp_adam_chunk(&u, &k, from, gp_update_end(&u, from));
    return GP_OK;
}

GP_KERNEL(adam)
{
    return gp_adam_step(c, c->attr, 0);
}

GP_KERNEL(adamw)
{
    return gp_adam_step(c, c->attr, 1);
}

/* Hinton 2012: v = alpha v + (1 - alpha) g g; momentum over the scaled gradient. */
GP_KERNEL(rmsprop)
{
    const gp_rmsprop_attr *a = c->attr;
    const gp_update u = gp_update_of(c);
    const gp_real lr = (gp_real)(c->run->lr * a->lr_scale), decay = (gp_real)a->weight_decay;
    const gp_real alpha = (gp_real)a->alpha, rest = (gp_real)(1 - a->alpha);
    const gp_real eps = (gp_real)a->eps, momentum = (gp_real)a->momentum;
    gp_real *const v = u.state[0], *const b = u.state[1];
    GP_PARALLEL(c->run, u.count > GP_UPDATE_LARGE)
    for (int64_t i = 0; i < u.count; i++) {
        const gp_real g = gp_decayed(u.scale * u.g[i], decay, u.w[i]);
        v[i] = alpha * u.old[0][i] + rest * g * g;
        gp_real step = g / (gp_sqrt(v[i]) + eps);
        if (b)
            step = b[i] = momentum * u.old[1][i] + step;
        u.to[i] = u.w[i] - lr * step;
    }
    return GP_OK;
}

/* Duchi, Hazan and Singer 2011. */
GP_KERNEL(adagrad)
{
    const gp_adagrad_attr *a = c->attr;
    const gp_update u = gp_update_of(c);
    const gp_real lr = (gp_real)(c->run->lr * a->lr_scale), decay = (gp_real)a->weight_decay;
    const gp_real eps = (gp_real)a->eps;
    gp_real *const v = u.state[0];
    GP_PARALLEL(c->run, u.count > GP_UPDATE_LARGE)
    for (int64_t i = 0; i < u.count; i++) {
        const gp_real g = gp_decayed(u.scale * u.g[i], decay, u.w[i]);
        v[i] = u.old[0][i] + g * g;
        u.to[i] = u.w[i] - lr * g / (gp_sqrt(v[i]) + eps);
    }
    return GP_OK;
}

/* Chen et al. 2023: the sign of an interpolation of momentum and gradient. */
GP_KERNEL(lion)
{
    const gp_lion_attr *a = c->attr;
    const gp_update u = gp_update_of(c);
    const double lr = c->run->lr * a->lr_scale;
    const gp_real rate = (gp_real)lr, shrink = (gp_real)(1 - lr * a->weight_decay);
    const gp_real b1 = (gp_real)a->beta1, b2 = (gp_real)a->beta2;
    const gp_real c1 = (gp_real)(1 - a->beta1), c2 = (gp_real)(1 - a->beta2);
    gp_real *const m = u.state[0];
    GP_PARALLEL(c->run, u.count > GP_UPDATE_LARGE)
    for (int64_t i = 0; i < u.count; i++) {
        const gp_real g = u.scale * u.g[i], mix = b1 * u.old[0][i] + c1 * g;
        u.to[i] = shrink * u.w[i] - rate * (mix > 0 ? 1 : mix < 0 ? -1 : mix); /* a NaN stays */
        m[i] = b2 * u.old[0][i] + c2 * g;
    }
    return GP_OK;
}

#endif
