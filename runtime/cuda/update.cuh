/* Optimizers: update a parameter and its state in place, given its gradient.
 *
 * Operands: the parameter w, its gradient g, a factor for all gradients (or none), the state. Every
 * output shares the bytes of the operand it is the next version of. Step and learning rate are read
 * on the device. With a loss scale the factor has more after it (runtime/c/scale.h): a step that
 * does not count writes nothing. */
#ifndef GP_UPDATE_CUH
#define GP_UPDATE_CUH

#include "base.cuh"

#include "../c/math.h"
#include "../c/scale.h"

/* The old and new versions that all optimizers begin with. */
typedef struct {
    const gp_real *w, *g, *old[2]; /* old: the state; NULL where the op has less of it */
    gp_real *to, *state[2];
    const gp_real *scale; /* of the gradient; NULL: 1 */
    const gp_real *step;  /* what a step with a loss scale has decided; NULL: there is none */
    const gp_run *run;
    int64_t count;
} gp_update;

GP_HOST gp_update gp_update_of(const gp_call *c)
{
    gp_update u;
    memset(&u, 0, sizeof u);
    u.w = (const gp_real *)c->in[0].data;
    u.g = (const gp_real *)c->in[1].data;
    u.to = (gp_real *)c->out[0].data;
    u.scale = (const gp_real *)c->in[2].data;
    u.step = c->in[2].rank > 0 ? u.scale : NULL;
    u.run = gp_device_of(c)->run;
    u.count = gp_count(&c->in[0]);
    for (int i = 0; i < 2 && 3 + i < c->ins && c->in[3 + i].data; i++) {
        u.old[i] = (const gp_real *)c->in[3 + i].data;
        u.state[i] = (gp_real *)c->out[1 + i].data;
    }
    return u;
}

GP_DEVICE gp_real gp_update_scale(const gp_update *u)
{
    return u->scale ? *u->scale : 1;
}

GP_DEVICE int gp_update_skips(const gp_update *u)
{
    return u->step && u->step[GP_STEP_GOOD] == 0;
}

/* The gradient with weight decay; with a decay of 0, w does not matter even where it is
 * infinite. */
GP_DEVICE gp_real gp_decayed(gp_real g, gp_real decay, gp_real w)
{
    return decay != 0 ? g + decay * w : g;
}

/* v = momentum v + g; w -= lr v, or lr (g + momentum v) with Nesterov momentum. */
static __global__ void gp_sgd_elements(gp_update u, gp_sgd_attr a)
{
    if (gp_update_skips(&u))
        return;
    const gp_real lr = (gp_real)(u.run->lr * a.lr_scale), scale = gp_update_scale(&u);
    const gp_real decay = (gp_real)a.weight_decay, momentum = (gp_real)a.momentum;
    for (GP_EACH(i, u.count)) {
        const gp_real g = gp_decayed(scale * u.g[i], decay, u.w[i]);
        if (!u.state[0]) {
            u.to[i] = u.w[i] - lr * g;
            continue;
        }
        const gp_real next = momentum * u.old[0][i] + g;
        u.state[0][i] = next;
        u.to[i] = u.w[i] - lr * (a.nesterov ? g + momentum * next : next);
    }
}

/* The factors of a step of Adam: the same for all elements. */
typedef struct {
    gp_real rate, root, shrink;
} gp_adam_factors;

/* Kingma and Ba 2015; decoupled: Loshchilov and Hutter 2019. Steps count from 1 in the formula, and
 * those that were skipped do not.
 *
 * Two powers in double cost more than the update of a block: one thread computes them, once for all
 * updates of a step that have the same betas. */
static __global__ void gp_adam_powers(double *power, const gp_run *run, const gp_real *step,
                                      double beta1, double beta2)
{
    const double t = (double)run->step + 1 - (step ? (double)step[GP_STEP_SKIPPED] : 0);
    power[0] = 1 - pow(beta1, t);
    power[1] = 1 / sqrt(1 - pow(beta2, t));
}

static __global__ void gp_adam_elements(gp_update u, gp_adam_attr a, const double *power,
                                        int decoupled)
{
    GP_SHARED(gp_adam_factors, factor, [1]);
    if (gp_update_skips(&u)) /* as all threads find */
        return;
    if (threadIdx.x == 0) { /* a division in double is slow too */
        const double lr = u.run->lr * a.lr_scale;
        factor->rate = (gp_real)(lr / power[0]);
        factor->root = (gp_real)power[1];
        factor->shrink = decoupled ? (gp_real)(1 - lr * a.weight_decay) : 1;
    }
    __syncthreads();
    const gp_real rate = factor->rate, root = factor->root, shrink = factor->shrink;
    const gp_real decay = decoupled ? 0 : (gp_real)a.weight_decay, scale = gp_update_scale(&u);
    const gp_real b1 = (gp_real)a.beta1, b2 = (gp_real)a.beta2, eps = (gp_real)a.eps;
    const gp_real c1 = (gp_real)(1 - a.beta1), c2 = (gp_real)(1 - a.beta2);
    for (GP_EACH(i, u.count)) {
        const gp_real g = gp_decayed(scale * u.g[i], decay, u.w[i]);
        const gp_real m = b1 * u.old[0][i] + c1 * g, v = b2 * u.old[1][i] + c2 * g * g;
        u.state[0][i] = m;
        u.state[1][i] = v;
        u.to[i] = shrink * u.w[i] - rate * m / (gp_sqrt(v) * root + eps);
    }
}

/* Hinton 2012: v = alpha v + (1 - alpha) g g; momentum over the scaled gradient. */
static __global__ void gp_rmsprop_elements(gp_update u, gp_rmsprop_attr a)
{
    if (gp_update_skips(&u))
        return;
    const gp_real lr = (gp_real)(u.run->lr * a.lr_scale), decay = (gp_real)a.weight_decay;
    const gp_real alpha = (gp_real)a.alpha, rest = (gp_real)(1 - a.alpha);
    const gp_real eps = (gp_real)a.eps, momentum = (gp_real)a.momentum;
    const gp_real scale = gp_update_scale(&u);
    for (GP_EACH(i, u.count)) {
        const gp_real g = gp_decayed(scale * u.g[i], decay, u.w[i]);
        const gp_real v = alpha * u.old[0][i] + rest * g * g;
        gp_real step = g / (gp_sqrt(v) + eps);
        u.state[0][i] = v;
        if (u.state[1])
            step = u.state[1][i] = momentum * u.old[1][i] + step;
        u.to[i] = u.w[i] - lr * step;
    }
}

/* Duchi, Hazan and Singer 2011. */
static __global__ void gp_adagrad_elements(gp_update u, gp_adagrad_attr a)
{
    if (gp_update_skips(&u))
        return;
    const gp_real lr = (gp_real)(u.run->lr * a.lr_scale), decay = (gp_real)a.weight_decay;
    const gp_real eps = (gp_real)a.eps, scale = gp_update_scale(&u);
    for (GP_EACH(i, u.count)) {
        const gp_real g = gp_decayed(scale * u.g[i], decay, u.w[i]);
        const gp_real v = u.old[0][i] + g * g;
        u.state[0][i] = v;
        u.to[i] = u.w[i] - lr * g / (gp_sqrt(v) + eps);
    }
}

/* Chen et al. 2023: the sign of an interpolation of momentum and gradient. */
static __global__ void gp_lion_elements(gp_update u, gp_lion_attr a)
{
    if (gp_update_skips(&u))
        return;
    const double lr = u.run->lr * a.lr_scale;
    const gp_real rate = (gp_real)lr, shrink = (gp_real)(1 - lr * a.weight_decay);
    const gp_real b1 = (gp_real)a.beta1, b2 = (gp_real)a.beta2, scale = gp_update_scale(&u);
    const gp_real c1 = (gp_real)(1 - a.beta1), c2 = (gp_real)(1 - a.beta2);
    for (GP_EACH(i, u.count)) {
        const gp_real g = scale * u.g[i], mix = b1 * u.old[0][i] + c1 * g;
        const gp_real sign = mix > 0 ? (gp_real)1 : mix < 0 ? (gp_real)-1 : mix; /* a NaN stays */
        u.to[i] = shrink * u.w[i] - rate * sign;
        u.state[0][i] = b2 * u.old[0][i] + c2 * g;
    }
}

#define GP_UPDATE_LAUNCH(c, kernel, ...)                                                         \
    do {                                                                                         \
        const gp_update gp_u = gp_update_of(c);                                                  \
        const unsigned gp_size_of_block = gp_block_of(gp_u.count);                               \
        GP_LAUNCH(c, kernel, gp_blocks(gp_u.count, gp_size_of_block), gp_size_of_block, 0, gp_u, \
                  __VA_ARGS__);                                                                  \
    } while (0)

GP_KERNEL(sgd)
{
    GP_UPDATE_LAUNCH(c, gp_sgd_elements, *(const gp_sgd_attr *)c->attr);
    return GP_OK;
}

GP_UNUSED static int gp_adam_step(const gp_call *c, const gp_adam_attr *a, int decoupled)
{
    gp_device *const device = gp_device_of(c);
    if (!device->has_power || device->beta[0] != a->beta1 || device->beta[1] != a->beta2) {
        GP_LAUNCH(c, gp_adam_powers, 1, 1, 0, device->power, device->run, gp_update_of(c).step,
                  a->beta1, a->beta2);
        device->has_power = 1;
        device->beta[0] = a->beta1;
        device->beta[1] = a->beta2;
    }
    GP_UPDATE_LAUNCH(c, gp_adam_elements, *a, device->power, decoupled);
    return GP_OK;
}

GP_KERNEL(adam)
{
    return gp_adam_step(c, (const gp_adam_attr *)c->attr, 0);
}

GP_KERNEL(adamw)
{
    return gp_adam_step(c, (const gp_adamw_attr *)c->attr, 1);
}

GP_KERNEL(rmsprop)
{
    GP_UPDATE_LAUNCH(c, gp_rmsprop_elements, *(const gp_rmsprop_attr *)c->attr);
    return GP_OK;
}

GP_KERNEL(adagrad)
{
    GP_UPDATE_LAUNCH(c, gp_adagrad_elements, *(const gp_adagrad_attr *)c->attr);
    return GP_OK;
}

GP_KERNEL(lion)
{
    GP_UPDATE_LAUNCH(c, gp_lion_elements, *(const gp_lion_attr *)c->attr);
    return GP_OK;
}

#endif
