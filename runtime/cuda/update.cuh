/* Optimizers: update a parameter and its state in place, given its gradient.
 *
 * Operands: the parameter w, its gradient g, a factor for all gradients (or none), the state. Every
 * output shares the bytes of the operand it is the next version of. Step and learning rate are read
 * on the device. With a loss scale the factor has more after it (runtime/c/scale.h): a step that
 * does not count writes nothing.
 *
 * An optimizer is a rule for one element. A grid of threads applies it where the state is f32;
 * where it is codes of 8 bits, one block to each block of them, which it decodes and encodes. On
 * several ranks each may have a shard of the state, and then updates that of the parameter. */
#ifndef GP_UPDATE_CUH
#define GP_UPDATE_CUH

#include "base.cuh"

#include "../c/coded.h"
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

/* The numbers of a rank's shard are as many as its state has, or its gradient. That is a shard
 * already, or whole like the parameter. */
GP_HOST void gp_update_shard(const gp_call *c, gp_update *u)
{
    const int64_t part = gp_count(&c->in[c->ins > 3 && c->in[3].data ? 3 : 1]);
    const int64_t begin = gp_device_of(c)->rank * part;
    if (part == u->count)
        return;
    const int64_t at = begin < u->count ? begin : u->count, left = u->count - at;
    if (gp_count(&c->in[1]) == u->count)
        u->g += at;
    u->w += at;
    u->to += at;
    u->count = left < part ? left : part;
}

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
    for (int i = 0; i < 2 && 3 + i < c->ins && 1 + i < c->outs && c->in[3 + i].data; i++) {
        u.old[i] = (const gp_real *)c->in[3 + i].data;
        u.state[i] = (gp_real *)c->out[1 + i].data;
    }
    gp_update_shard(c, &u);
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

/* An element as a rule sees it; `g` is scaled. The rule leaves the next w and the next state. */
typedef struct {
    gp_real w, g, old[2], next[2];
} gp_updated;

template <class Rule> static __global__ void gp_update_elements(gp_update u, Rule rule)
{
    if (gp_update_skips(&u)) /* as all threads find */
        return;
    rule.begin(u);
    const gp_real scale = gp_update_scale(&u);
    for (GP_EACH(i, u.count)) {
        gp_updated e = {u.w[i],
                        scale * u.g[i],
                        {u.old[0] ? u.old[0][i] : 0, u.old[1] ? u.old[1][i] : 0},
                        {0, 0}};
        rule.step(e);
        if (u.state[0])
            u.state[0][i] = e.next[0];
        if (u.state[1])
            u.state[1][i] = e.next[1];
        u.to[i] = e.w;
    }
}

/* ---- State of 8 bits ------------------------------------------------------------------------- */

#ifndef GP_NO_CODED /* gplan knows a program without such state */
typedef struct {
    const uint8_t *old[2];
    uint8_t *next[2];
    const gp_real *absmax; /* [state][block] */
    gp_real *next_absmax;
    int64_t blocks;
    int states;
} gp_coded_state;

/* Of the map of each state: `squares` has a bit for those without negative numbers. */
GP_DEVICE void gp_codes_load(gp_codes *codes, int states, int squares)
{
    for (int k = 0; k < states; k++) {
        codes[k].value[threadIdx.x] = gp_code_value((int)threadIdx.x, !(squares >> k & 1));
        if (threadIdx.x == 0)
            gp_codes_bounds(&codes[k], !(squares >> k & 1));
    }
    __syncthreads(); /* the maps are complete */
}

/* The largest magnitude of a block; NaN where a number is NaN or infinite. */
GP_DEVICE gp_real gp_block_absmax(gp_real x)
{
    const gp_real size = x < 0 ? -x : x;
    const gp_real most = gp_block_join(size == size ? size : (gp_real)0, gp_larger());
    return most + gp_block_sum(size * 0);
}

template <class Rule>
static __global__ void gp_update_coded(gp_update u, gp_coded_state s, Rule rule)
{
    GP_SHARED(gp_codes, codes, [2]);
    if (gp_update_skips(&u)) /* as all threads find */
        return;
    rule.begin(u);
    gp_codes_load(codes, s.states, Rule::SQUARES);
    const gp_real scale = gp_update_scale(&u);
    for (GP_EACH_BLOCK(block, s.blocks)) {
        const int64_t i = block * GP_CODED_BLOCK + threadIdx.x;
        gp_updated e = {0, 0, {0, 0}, {0, 0}};
        if (i < u.count) {
            e.w = u.w[i];
            e.g = scale * u.g[i];
            for (int k = 0; k < s.states; k++)
                e.old[k] = codes[k].value[s.old[k][i]] * s.absmax[k * s.blocks + block];
            rule.step(e);
            u.to[i] = e.w;
        }
        for (int k = 0; k < s.states; k++) {
            const gp_real absmax = gp_block_absmax(i < u.count ? e.next[k] : (gp_real)0);
            if (i < u.count)
                s.next[k][i] = gp_code_of(&codes[k], e.next[k] / (absmax > 0 ? absmax : 1));
            if (threadIdx.x == 0) /* all have decoded: the joins wait for each other */
                s.next_absmax[k * s.blocks + block] = absmax;
        }
    }
}

enum { GP_CODED_GRID = 1024 }; /* blocks that load the maps, and go on to other blocks of codes */

template <class Rule> static int gp_update_codes(const gp_call *c, gp_update u, Rule rule)
{
    const int states = c->outs - 2; /* the last output is absmax */
    gp_coded_state s = {};
    s.states = states;
    s.absmax = (const gp_real *)c->in[c->ins - 1].data;
    s.next_absmax = (gp_real *)c->out[c->outs - 1].data;
    s.blocks = c->out[c->outs - 1].dim[1];
    for (int k = 0; k < states; k++) {
        s.old[k] = (const uint8_t *)c->in[3 + k].data;
        s.next[k] = (uint8_t *)c->out[1 + k].data;
    }
    const int64_t grid = s.blocks < GP_CODED_GRID ? s.blocks : (int64_t)GP_CODED_GRID;
    GP_LAUNCH(c, gp_update_coded<Rule>, gp_blocks(grid, 1), GP_CODED_BLOCK, 0, u, s, rule);
    return GP_OK;
}
#endif

/* How many tensors of state there are. */
GP_HOST int gp_update_states(const gp_call *c)
{
    const int coded = c->ins > 3 && c->in[3].dtype == GP_U8; /* the last output is absmax */
    return c->outs - 1 - coded;
}

template <class Rule> static int gp_update_all(const gp_call *c, Rule rule)
{
    const gp_update u = gp_update_of(c);
    const unsigned block = gp_block_of(u.count);
#ifndef GP_NO_CODED
    if (c->ins > 3 && c->in[3].dtype == GP_U8)
        return gp_update_codes(c, u, rule);
#endif
    GP_LAUNCH(c, gp_update_elements<Rule>, gp_blocks(u.count, block), block, 0, u, rule);
    return GP_OK;
}

/* ---- The rules ------------------------------------------------------------------------------- */

/* v = momentum v + g; w -= lr v, or lr (g + momentum v) with Nesterov momentum. */
struct gp_sgd_rule {
    enum { SQUARES = 0 };
    gp_sgd_attr a;
    int moves; /* it has momentum */
    gp_real lr;

    __device__ void begin(const gp_update &u)
    {
        lr = (gp_real)(u.run->lr * a.lr_scale);
    }
    __device__ void step(gp_updated &e) const
    {
        const gp_real g = gp_decayed(e.g, (gp_real)a.weight_decay, e.w);
        const gp_real momentum = (gp_real)a.momentum;
        const gp_real next = momentum * e.old[0] + g;
        e.next[0] = next;
        e.w -= lr * (!moves ? g : a.nesterov ? g + momentum * next : next);
    }
};

GP_KERNEL(sgd)
{
    gp_sgd_rule rule = {};
    rule.a = *(const gp_sgd_attr *)c->attr;
    rule.moves = gp_update_states(c) > 0;
    return gp_update_all(c, rule);
}

/* The factors of a step of Adam: the same for all elements. */
typedef struct {
    gp_real rate, root, shrink;
} gp_adam_factors;

/* Steps count from 1 in the formula, and those that were skipped do not.
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

/* Kingma and Ba 2015; decoupled: Loshchilov and Hutter 2019. */
struct gp_adam_rule {
    enum { SQUARES = 2 }; /* the second moment */
    gp_adam_attr a;
    const double *power;
    int decoupled;
    gp_adam_factors by;

    __device__ void begin(const gp_update &u)
    {
        GP_SHARED(gp_adam_factors, factor, [1]);
        if (threadIdx.x == 0) { /* a division in double is slow too */
            const double lr = u.run->lr * a.lr_scale;
            factor->rate = (gp_real)(lr / power[0]);
            factor->root = (gp_real)power[1];
            factor->shrink = decoupled ? (gp_real)(1 - lr * a.weight_decay) : 1;
        }
        __syncthreads();
        by = *factor;
    }
    __device__ void step(gp_updated &e) const
    {
        const gp_real b1 = (gp_real)a.beta1, b2 = (gp_real)a.beta2;
        const gp_real c1 = (gp_real)(1 - a.beta1), c2 = (gp_real)(1 - a.beta2);
        const gp_real g = gp_decayed(e.g, decoupled ? 0 : (gp_real)a.weight_decay, e.w);
        const gp_real m = b1 * e.old[0] + c1 * g, v = b2 * e.old[1] + c2 * g * g;
        e.next[0] = m;
        e.next[1] = v;
        e.w = by.shrink * e.w - by.rate * m / (gp_sqrt(v) * by.root + (gp_real)a.eps);
    }
};

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
    gp_adam_rule rule = {};
    rule.a = *a;
    rule.power = device->power;
    rule.decoupled = decoupled;
    return gp_update_all(c, rule);
}

GP_KERNEL(adam)
{
    return gp_adam_step(c, (const gp_adam_attr *)c->attr, 0);
}

GP_KERNEL(adamw)
{
    return gp_adam_step(c, (const gp_adamw_attr *)c->attr, 1);
}

/* Hinton 2012: v = alpha v + (1 - alpha) g g; momentum over the scaled gradient. */
struct gp_rmsprop_rule {
    enum { SQUARES = 1 };
    gp_rmsprop_attr a;
    int moves; /* it has momentum */
    gp_real lr;

    __device__ void begin(const gp_update &u)
    {
        lr = (gp_real)(u.run->lr * a.lr_scale);
    }
    __device__ void step(gp_updated &e) const
    {
        const gp_real alpha = (gp_real)a.alpha, rest = (gp_real)(1 - a.alpha);
        const gp_real g = gp_decayed(e.g, (gp_real)a.weight_decay, e.w);
        const gp_real v = alpha * e.old[0] + rest * g * g;
        gp_real step = g / (gp_sqrt(v) + (gp_real)a.eps);
        if (moves)
            step = (gp_real)a.momentum * e.old[1] + step;
        e.next[0] = v;
        e.next[1] = step;
        e.w -= lr * step;
    }
};

GP_KERNEL(rmsprop)
{
    gp_rmsprop_rule rule = {};
    rule.a = *(const gp_rmsprop_attr *)c->attr;
    rule.moves = gp_update_states(c) > 1;
    return gp_update_all(c, rule);
}

/* Duchi, Hazan and Singer 2011. */
struct gp_adagrad_rule {
    enum { SQUARES = 1 };
    gp_adagrad_attr a;
    gp_real lr;

    __device__ void begin(const gp_update &u)
    {
        lr = (gp_real)(u.run->lr * a.lr_scale);
    }
    __device__ void step(gp_updated &e) const
    {
        const gp_real g = gp_decayed(e.g, (gp_real)a.weight_decay, e.w);
        const gp_real v = e.old[0] + g * g;
        e.next[0] = v;
        e.w -= lr * g / (gp_sqrt(v) + (gp_real)a.eps);
    }
};

GP_KERNEL(adagrad)
{
    gp_adagrad_rule rule = {};
    rule.a = *(const gp_adagrad_attr *)c->attr;
    return gp_update_all(c, rule);
}

/* Chen et al. 2023: the sign of an interpolation of momentum and gradient. */
struct gp_lion_rule {
    enum { SQUARES = 0 };
    gp_lion_attr a;
    gp_real rate, shrink;

    __device__ void begin(const gp_update &u)
    {
        const double lr = u.run->lr * a.lr_scale;
        rate = (gp_real)lr;
        shrink = (gp_real)(1 - lr * a.weight_decay);
    }
    __device__ void step(gp_updated &e) const
    {
        const gp_real b1 = (gp_real)a.beta1, b2 = (gp_real)a.beta2;
        const gp_real c1 = (gp_real)(1 - a.beta1), c2 = (gp_real)(1 - a.beta2);
        const gp_real mix = b1 * e.old[0] + c1 * e.g;
        const gp_real sign = mix > 0 ? (gp_real)1 : mix < 0 ? (gp_real)-1 : mix; /* a NaN stays */
        e.next[0] = b2 * e.old[0] + c2 * e.g;
        e.w = shrink * e.w - rate * sign;
    }
};

GP_KERNEL(lion)
{
    gp_lion_rule rule = {};
    rule.a = *(const gp_lion_attr *)c->attr;
    return gp_update_all(c, rule);
}

#endif
