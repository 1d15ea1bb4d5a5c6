/* Optimizers: update a parameter and its state in place, given its gradient.
 *
 * Operands: the parameter w, its gradient g, a factor for all gradients (or none), the state. Every
 * output shares the bytes of the operand it is the next version of. */
#ifndef GP_UPDATE_H
#define GP_UPDATE_H

#include "coded_block.h"
#include "math.h"
#include "scale.h"
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

/* What an optimizer does with elements [from, to). */
typedef void gp_update_rule(const gp_update *u, const void *rates, int64_t from, int64_t to);

#ifndef GP_NO_RANKS
/* The numbers of a rank's shard: as many as its state has, or its gradient. */
GP_FUNCTION int64_t gp_update_part(const gp_call *c)
{
    return gp_count(&c->in[c->ins > 3 && c->in[3].data ? 3 : 1]);
}

GP_FUNCTION int gp_update_sharded(const gp_call *c)
{
    return gp_update_part(c) < gp_count(&c->in[0]);
}

/* On several ranks each may have a shard of the state, and then updates that of the parameter. The
 * gradient is a shard already, or whole like the parameter. */
GP_FUNCTION void gp_update_shard(const gp_call *c, gp_update *u)
{
    const int64_t part = gp_update_part(c), begin = GP_PART(c->run) / c->run->micros * part;
    const int64_t at = begin < u->count ? begin : u->count, left = u->count - at;
    if (gp_count(&c->in[1]) == u->count)
        u->g += at;
    u->w += at;
    u->to += at;
    u->count = left < part ? left : part;
}
#endif

GP_FUNCTION gp_update gp_update_of(const gp_call *c)
{
    gp_update u = {.w = c->in[0].data, .g = c->in[1].data, .to = c->out[0].data, .scale = 1};
    u.count = gp_count(&c->in[0]);
#ifndef GP_NO_RANKS
    if (GP_WAY(update_sharded, gp_update_sharded(c)))
        gp_update_shard(c, &u);
#endif
    if (c->in[2].data)
        u.scale = *(const gp_real *)c->in[2].data;
    for (int i = 0; i < 2 && 3 + i < c->ins && 1 + i < c->outs && c->in[3 + i].data; i++) {
        u.old[i] = c->in[3 + i].data;
        u.state[i] = c->out[1 + i].data;
    }
    return u;
}

#ifndef GP_NO_LOSS_SCALE
/* What a step with a loss scale has decided, after the factor (scale.h): one that does not count
 * writes nothing. NULL: there is none. */
GP_FUNCTION const gp_real *gp_update_step(const gp_call *c)
{
    return c->in[2].data && c->in[2].rank > 0 ? c->in[2].data : NULL;
}
#endif

#ifndef GP_NO_CODED
/* Whether the state is codes. */
GP_FUNCTION int gp_update_coded(const gp_call *c)
{
    return c->ins > 3 && c->in[3].dtype == GP_U8;
}

/* A block of the parameter, its state decoded and encoded again: what is between, each optimizer's
 * own part, computes in f32. */
static GP_NOINLINE void gp_update_block(const gp_call *c, const gp_update *all,
                                        const gp_codes *codes, gp_update_rule *part,
                                        const void *rates, int64_t block)
{
    const int states = c->outs - 2; /* the last output is absmax */
    const int64_t from = block * GP_CODED_BLOCK, blocks = c->out[1 + states].dim[1];
    const int64_t n =
        from + GP_CODED_BLOCK < all->count ? (int64_t)GP_CODED_BLOCK : all->count - from;
    const gp_real *absmax = c->in[c->ins - 1].data;
    gp_real number[2][GP_CODED_BLOCK], *next = c->out[1 + states].data;
    gp_update u = {
        .w = all->w + from, .g = all->g + from, .to = all->to + from, .scale = all->scale};
    for (int i = 0; i < states; i++) {
        gp_decode(number[i], (const uint8_t *)c->in[3 + i].data + from, absmax[i * blocks + block],
                  &codes[i], n);
        u.old[i] = u.state[i] = number[i];
    }
    part(&u, rates, 0, n);
    for (int i = 0; i < states; i++)
        next[i * blocks + block] =
            gp_encode((uint8_t *)c->out[1 + i].data + from, number[i], &codes[i], n);
}
#endif

/* `squares`: bit i of the states that hold no negative numbers. */
GP_FUNCTION int gp_update_all(const gp_call *c, gp_update_rule *part, const void *rates,
                              int squares)
{
    const gp_update u = gp_update_of(c);
    (void)squares;
#ifndef GP_NO_LOSS_SCALE
    const gp_real *step = gp_update_step(c);
    if (step && step[GP_STEP_GOOD] == 0)
        return GP_OK;
#endif
#ifndef GP_NO_CODED
    if (GP_WAY(update_coded, gp_update_coded(c))) {
        gp_codes codes[2];
        for (int i = 0; i < c->outs - 2; i++)
            gp_codes_fill(&codes[i], !(squares >> i & 1));
        GP_PARALLEL(c->run, u.count > GP_UPDATE_LARGE)
        for (int64_t block = 0; block < (u.count + GP_CODED_BLOCK - 1) / GP_CODED_BLOCK; block++)
            gp_update_block(c, &u, codes, part, rates, block);
        return GP_OK;
    }
#endif
    GP_PARALLEL(c->run, u.count > GP_UPDATE_LARGE)
    for (int64_t from = 0; from < u.count; from += GP_UPDATE_CHUNK)
        part(&u, rates, from, from + GP_UPDATE_CHUNK < u.count ? from + GP_UPDATE_CHUNK : u.count);
    return GP_OK;
}

/* The gradient with weight decay; with a decay of 0, w does not matter even where it is
 * infinite. */
GP_FUNCTION gp_real gp_decayed(gp_real g, gp_real decay, gp_real w)
{
    return decay != 0 ? g + decay * w : g;
}

/* The settings of a step, as the elements want them. */
typedef struct {
    gp_real rate, shrink, decay, momentum, root, b1, b2, c1, c2, eps;
    int nesterov;
} gp_rates;

/* v = momentum v + g; w -= lr v, or lr (g + momentum v) with Nesterov momentum. */
GP_FUNCTION void gp_sgd_part(const gp_update *u, const void *rates, int64_t from, int64_t to)
{
    const gp_rates k = *(const gp_rates *)rates;
    const gp_real *w = u->w, *g = u->g, *old = u->old[0], scale = u->scale;
    gp_real *const v = u->state[0], *next = u->to;
    if (!v) {
        GP_IVDEP
        for (int64_t i = from; i < to; i++)
            next[i] = w[i] - k.rate * gp_decayed(scale * g[i], k.decay, w[i]);
        return;
    }
    GP_IVDEP
    for (int64_t i = from; i < to; i++) {
        const gp_real up = gp_decayed(scale * g[i], k.decay, w[i]);
        const gp_real mean = k.momentum * old[i] + up;
        v[i] = mean;
        next[i] = w[i] - k.rate * (k.nesterov ? up + k.momentum * mean : mean);
    }
}

GP_KERNEL(sgd)
{
    const gp_sgd_attr *a = c->attr;
    const gp_rates k = {.rate = (gp_real)(c->run->lr * a->lr_scale),
                        .decay = (gp_real)a->weight_decay,
                        .momentum = (gp_real)a->momentum,
                        .nesterov = a->nesterov != 0};
    return gp_update_all(c, gp_sgd_part, &k, 0);
}

GP_FUNCTION void gp_adam_part(const gp_update *u, const void *rates, int64_t from, int64_t to)
{
    const gp_rates k = *(const gp_rates *)rates;
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

/* Kingma and Ba 2015; decoupled: Loshchilov and Hutter 2019. Steps count from 1 in the formula, and
 * those that were skipped do not. */
GP_FUNCTION int gp_adam_step(const gp_call *c, const gp_adam_attr *a, int decoupled)
{
    const double lr = c->run->lr * a->lr_scale;
    double t = (double)c->run->step + 1;
#ifndef GP_NO_LOSS_SCALE
    const gp_real *step = gp_update_step(c);
    t -= step ? (double)step[GP_STEP_SKIPPED] : 0;
#endif
    const double first = 1 - pow(a->beta1, t), second = 1 - pow(a->beta2, t);
    const gp_rates k = {.rate = (gp_real)(lr / first),
                        .root = (gp_real)(1 / sqrt(second)),
                        .shrink = decoupled ? (gp_real)(1 - lr * a->weight_decay) : 1,
                        .decay = decoupled ? 0 : (gp_real)a->weight_decay,
                        .b1 = (gp_real)a->beta1,
                        .b2 = (gp_real)a->beta2,
                        .c1 = (gp_real)(1 - a->beta1),
                        .c2 = (gp_real)(1 - a->beta2),
                        .eps = (gp_real)a->eps};
    return gp_update_all(c, gp_adam_part, &k, 1 << 1);
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
GP_FUNCTION void gp_rmsprop_part(const gp_update *u, const void *rates, int64_t from, int64_t to)
{
    const gp_rates k = *(const gp_rates *)rates;
    gp_real *const v = u->state[0], *const b = u->state[1];
    GP_IVDEP
    for (int64_t i = from; i < to; i++) {
        const gp_real g = gp_decayed(u->scale * u->g[i], k.decay, u->w[i]);
        const gp_real square = k.b2 * u->old[0][i] + k.c2 * g * g;
        gp_real step = g / (gp_sqrt(square) + k.eps);
        v[i] = square;
        if (b)
            step = b[i] = k.momentum * u->old[1][i] + step;
        u->to[i] = u->w[i] - k.rate * step;
    }
}

GP_KERNEL(rmsprop)
{
    const gp_rmsprop_attr *a = c->attr;
    const gp_rates k = {.rate = (gp_real)(c->run->lr * a->lr_scale),
                        .decay = (gp_real)a->weight_decay,
                        .momentum = (gp_real)a->momentum,
                        .b2 = (gp_real)a->alpha,
                        .c2 = (gp_real)(1 - a->alpha),
                        .eps = (gp_real)a->eps};
    return gp_update_all(c, gp_rmsprop_part, &k, 1);
}

/* Duchi, Hazan and Singer 2011. */
GP_FUNCTION void gp_adagrad_part(const gp_update *u, const void *rates, int64_t from, int64_t to)
{
    const gp_rates k = *(const gp_rates *)rates;
    GP_IVDEP
    for (int64_t i = from; i < to; i++) {
        const gp_real g = gp_decayed(u->scale * u->g[i], k.decay, u->w[i]);
        const gp_real square = u->old[0][i] + g * g;
        u->state[0][i] = square;
        u->to[i] = u->w[i] - k.rate * g / (gp_sqrt(square) + k.eps);
    }
}

GP_KERNEL(adagrad)
{
    const gp_adagrad_attr *a = c->attr;
    const gp_rates k = {.rate = (gp_real)(c->run->lr * a->lr_scale),
                        .decay = (gp_real)a->weight_decay,
                        .eps = (gp_real)a->eps};
    return gp_update_all(c, gp_adagrad_part, &k, 1);
}

/* Chen et al. 2023: the sign of an interpolation of momentum and gradient. */
GP_FUNCTION void gp_lion_part(const gp_update *u, const void *rates, int64_t from, int64_t to)
{
    const gp_rates k = *(const gp_rates *)rates;
    GP_IVDEP
    for (int64_t i = from; i < to; i++) {
        const gp_real g = u->scale * u->g[i], old = u->old[0][i], mix = k.b1 * old + k.c1 * g;
        u->to[i] = k.shrink * u->w[i] - k.rate * (mix > 0   ? 1
                                                  : mix < 0 ? -1
                                                            : mix); /* a NaN stays */
        u->state[0][i] = k.b2 * old + k.c2 * g;
    }
}

GP_KERNEL(lion)
{
    const gp_lion_attr *a = c->attr;
    const double lr = c->run->lr * a->lr_scale;
    const gp_rates k = {.rate = (gp_real)lr,
                        .shrink = (gp_real)(1 - lr * a->weight_decay),
                        .b1 = (gp_real)a->beta1,
                        .b2 = (gp_real)a->beta2,
                        .c1 = (gp_real)(1 - a->beta1),
                        .c2 = (gp_real)(1 - a->beta2)};
    return gp_update_all(c, gp_lion_part, &k, 0);
}

GP_FUNCTION void gp_update_ways(const gp_call *c, gp_ways *ways)
{
    gp_way(ways, "update_coded", gp_update_coded(c));
    gp_way(ways, "update_sharded", gp_update_sharded(c));
}

GP_WAYS(sgd)
{
    gp_update_ways(c, ways);
}

GP_WAYS(adam)
{
    gp_update_ways(c, ways);
}

GP_WAYS(adamw)
{
    gp_update_ways(c, ways);
}

GP_WAYS(rmsprop)
{
    gp_update_ways(c, ways);
}

GP_WAYS(adagrad)
{
    gp_update_ways(c, ways);
}

GP_WAYS(lion)
{
    gp_update_ways(c, ways);
}

#endif
