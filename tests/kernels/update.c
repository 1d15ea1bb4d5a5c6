/* Optimizers, the factor that clips gradients, and sums over micro-batches. */
#include "runtime/c/update.h"
#include "runtime/c/unscale.h"

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

/* Gradients of a loss that was scaled by 8: what takes that away and clips, and whether all of them
 * are finite. */
static void unscale(int64_t n, double limit, double last)
{
    enum { SCALE = 8, SKIPPED = 5 };
    const gp_unscale_attr a = {limit};
    Array x = integers(DIMS(n), -3, 3), state = zeros(DIMS(3)), to = zeros(DIMS(3));
    double squares = 0;
    x.at[n - 1] = last;
    for (int64_t i = 0; i < n; i++)
        squares += x.at[i] * x.at[i];
    const double norm = sqrt(squares) / SCALE;
    state.at[0] = SCALE, state.at[1] = 7, state.at[2] = SKIPPED;
    to.at[0] = (limit > 0 && norm > limit ? limit / norm : 1) / SCALE;
    to.at[1] = isfinite(squares), to.at[2] = SKIPPED;
    const Case t = {.kernel = gp_unscale,
                    .space = gp_unscale_workspace,
                    .attr = &a,
                    .ins = 2,
                    .outs = 1,
                    .in = {state, x},
                    .want = {to},
                    .slack = 2};
    try(&t, "unscale of %d, the last %g", (int)n, last);
}

/* ---- State of 8 bits --------------------------------------------------------------------------
 */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The map as it is published: means of evenly spaced boundaries, decade by decade, sorted. */
static void published_map(double *map, int is_signed)
{
    int count = 0;
    for (int i = 0; i < 7; i++) {
        const int items = is_signed ? 1 << i : 2 << i;
        for (int j = 0; j < items; j++) {
            const double low = 0.1 + 0.9 * j / items, high = 0.1 + 0.9 * (j + 1) / items;
            map[count++] = pow(10, i - 6) * (low + high) / 2;
            if (is_signed)
                map[count++] = -pow(10, i - 6) * (low + high) / 2;
        }
    }
    map[count++] = 0;
    map[count++] = 1;
    if (count != 256)
        wrong("published map", "has %d codes", count);
    qsort(map, 256, sizeof *map, ascending);
}

/* Whether no code is nearer to x, but for rounding and the rule that a negative number keeps its
 * sign. */
static int is_nearest(const double *map, int code, double x)
{
    double best = 2;
    for (int i = 0; i < 256; i++)
        if ((x >= 0 || map[i] < 0) && fabs(map[i] - x) < best)
            best = fabs(map[i] - x);
    return (x >= 0 || map[code] < 0) && fabs(map[code] - x) <= best + 1e-6 * fabs(x);
}

static void codes(int is_signed)
{
    gp_codes codes;
    double map[256];
    gp_codes_fill(&codes, is_signed);
    published_map(map, is_signed);
    for (int i = 0; i < 256; i++)
        if (fabs((double)codes.value[i] - map[i]) > 1e-6 * fabs(map[i]))
            wrong("codes", "%d of %d is %.9g, not %.9g", i, is_signed, (double)codes.value[i],
                  map[i]);
    for (int i = 0; i < 200000; i++) { /* of every size, on and beside each code */
        const double size = pow(10, (double)draw(-8000, 0) / 1000);
        const double near = map[draw(0, 255)] * (1 + (double)draw(-3, 3) / 64);
        const double sign = is_signed && draw(0, 1) ? -1 : 1;
        const double x = (gp_real)(i % 2 ? size * sign : near < -1 ? -1 : near > 1 ? 1 : near);
        const int code = gp_code_of(&codes, (gp_real)x);
        if (!is_nearest(map, code, x))
            wrong("codes", "%.9g has code %d: %.9g", x, code, map[code]);
    }
}

/* A kernel on coded state is the kernel on f32 between decoding and encoding, with any number of
 * threads. */
static void coded(const char *name, int (*kernel)(const gp_call *), const void *attr, int states,
                  int squares, int64_t n)
{
    enum { MOST = 3000 };
    static gp_real w[3][MOST], g[MOST], state[2][MOST], absmax[3][2 * MOST / 256 + 2];
    static uint8_t code[3][2][MOST], want[2][MOST];
    const int64_t blocks = (n + 255) / 256;
    gp_codes maps[2];
    for (int i = 0; i < states; i++)
        gp_codes_fill(&maps[i], !(squares >> i & 1));
    for (int64_t i = 0; i < n; i++) {
        w[0][i] = w[1][i] = w[2][i] = (gp_real)draw(-4096, 4096) / 4096;
        g[i] = (gp_real)draw(-4096, 4096) / (gp_real)(i % 300 < 200 ? 4096 : 1e8);
        for (int s = 0; s < states; s++)
            code[0][s][i] = code[1][s][i] = code[2][s][i] = (uint8_t)draw(0, 255);
    }
    for (int64_t i = 0; i < blocks * states; i++) /* some blocks are 0 yet */
        absmax[0][i] = absmax[1][i] = absmax[2][i] = (gp_real)draw(0, 4) / 16;
    for (int s = 0; s < states; s++)
        for (int64_t i = 0; i < n; i++)
            state[s][i] = maps[s].value[code[0][s][i]] * absmax[0][s * blocks + i / 256];
    for (int run = 0; run < 3; run++) { /* f32, one thread, three threads */
        const gp_run r = {.step = STEP, .lr = LR, .threads = run == 2 ? 3 : 1};
        gp_tensor in[6] = {{w[run], GP_F32, 1, {n}, {1}}, {g, GP_F32, 1, {n}, {1}}}, out[4];
        out[0] = in[0];
        for (int s = 0; s < states; s++)
            out[1 + s] = in[3 + s] = run ? (gp_tensor){code[run][s], GP_U8, 1, {n}, {1}}
                                         : (gp_tensor){state[s], GP_F32, 1, {n}, {1}};
        out[1 + states] = in[3 + states] =
            (gp_tensor){absmax[run], GP_F32, 2, {states, blocks}, {blocks, 1}};
        const gp_call c = {.in = in,
                           .ins = 3 + states + (run > 0),
                           .out = out,
                           .outs = 1 + states + (run > 0),
                           .attr = attr,
                           .run = &r};
        if (kernel(&c) != GP_OK)
            wrong(name, "fails");
    }
    for (int s = 0; s < states; s++)
        for (int64_t b = 0; b < blocks; b++)
            absmax[0][s * blocks + b] = gp_encode(want[s] + b * 256, state[s] + b * 256, &maps[s],
                                                  b * 256 + 256 < n ? 256 : n - b * 256);
    for (int run = 1; run < 3; run++) {
        int good = memcmp(w[0], w[run], (size_t)n * sizeof **w) == 0 &&
                   memcmp(absmax[0], absmax[run], (size_t)(blocks * states) * sizeof **w) == 0;
        for (int s = 0; s < states; s++)
            good &= memcmp(want[s], code[run][s], (size_t)n) == 0;
        if (!good)
            wrong(name, "of %d in 8 bits is not what f32 makes, with %d threads", (int)n,
                  run == 1 ? 1 : 3);
    }
    cases++;
}

static void all_coded(int64_t n)
{
    const gp_sgd_attr s = {.momentum = 0.5, .weight_decay = 0.25, .lr_scale = 0.5};
    const gp_adam_attr a = {
        .beta1 = 0.875, .beta2 = 0.96875, .eps = 1e-3, .weight_decay = 0.25, .lr_scale = 0.5};
    const gp_rmsprop_attr r = {.alpha = 0.875, .eps = 1e-3, .momentum = 0.5, .lr_scale = 0.5};
    const gp_adagrad_attr d = {.eps = 1e-3, .weight_decay = 0.25, .lr_scale = 0.5};
    const gp_lion_attr l = {.beta1 = 0.875, .beta2 = 0.75, .weight_decay = 0.25, .lr_scale = 0.5};
    coded("sgd", gp_sgd, &s, 1, 0, n);
    coded("adam", gp_adam, &a, 2, 2, n);
    coded("adamw", gp_adamw, &a, 2, 2, n);
    coded("rmsprop", gp_rmsprop, &r, 2, 1, n);
    coded("adagrad", gp_adagrad, &d, 1, 1, n);
    coded("lion", gp_lion, &l, 1, 0, n);
}

/* What is no number does not become one by being stored. */
static void coded_nan(void)
{
    gp_codes codes;
    gp_real x[40] = {1, 2, 3}, back[40];
    uint8_t code[40];
    gp_codes_fill(&codes, 1);
    x[17] = (gp_real)NAN;
    const gp_real absmax = gp_encode(code, x, &codes, 40);
    gp_decode(back, code, absmax, &codes, 40);
    if (back[17] == back[17])
        wrong("codes", "a NaN became %g", (double)back[17]);
}

int main(void)
{
    for (int is_signed = 0; is_signed < 2; is_signed++)
        codes(is_signed);
    for (int64_t n = 255; n <= 257; n++)
        all_coded(n);
    all_coded(2500);
    coded_nan();
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
        for (int i = 0; i < 3; i++) {
            unscale(GP_CLIP_CHUNK + off, i, (double[]){1, INFINITY, NAN}[i]);
            unscale(GP_CLIP_LANES + off, 2, (double[]){1, -INFINITY, NAN}[i]);
        }
    }
    return finish();
}
