/* What copies, picks and adds elements: gather, scatter_add, one_hot, concat, pad, collect,
 * add_window, rope, upsample, stage and commit. */
#include "runtime/c/add_window.h"
#include "runtime/c/collect.h"
#include "runtime/c/concat.h"
#include "runtime/c/flat_index.h"
#include "runtime/c/one_hot.h"
#include "runtime/c/pad.h"
#include "runtime/c/rope.h"
#include "runtime/c/scatter.h"
#include "runtime/c/scatter_add.h"
#include "runtime/c/stage.h"
#include "runtime/c/top_indices.h"
#include "runtime/c/upsample.h"

#include "check.h"

static void pick(int64_t outer, int64_t n, int64_t inner, int64_t picks, int32_t type)
{
    const gp_gather_attr a = {1};
    Array x = integers(DIMS(outer, n, inner), 0, 99), index = integers(DIMS(picks), 0, n - 1);
    Array y = zeros(DIMS(outer, picks, inner));
    for (int64_t i = 0; i < y.count; i++) {
        const int64_t at = (int64_t)index.at[i / inner % picks];
        y.at[i] = x.at[(i / inner / picks * n + at) * inner + i % inner];
    }
    Case t = {.kernel = gp_gather,
              .attr = &a,
              .ins = 2,
              .outs = 1,
              .in = {x, index},
              .want = {y},
              .in_type = {type, picks % 2 ? GP_I32 : GP_I64},
              .out_type = {type}};
    try(&t, "gather %d x %d x %d, %d, type %d", (int)outer, (int)n, (int)inner, (int)picks, type);
    const int64_t updates = picks;
    x = integers(DIMS(n, inner), -9, 9);
    index = integers(DIMS(updates), 0, n - 1);
    Array up = integers(DIMS(updates, inner), -9, 9), sum = zeros(DIMS(n, inner));
    memcpy(sum.at, x.at, (size_t)x.count * sizeof *x.at);
    for (int64_t i = 0; i < up.count; i++)
        sum.at[(int64_t)index.at[i / inner] * inner + i % inner] += up.at[i];
    CROSS(GP_SCATTER_LANES, inner);
    t = (Case){.kernel = gp_scatter_add,
               .half_in = 4,
               .ins = 3,
               .outs = 1,
               .in = {x, index, up},
               .want = {sum},
               .in_type = {0, picks % 2 ? GP_I32 : GP_I64},
               .over = {1}};
    try_more(&t, "scatter_add %d x %d, %d", (int)n, (int)inner, (int)updates);
    t.half_in = 5, t.over[0] = 0; /* the result is f32 */
    try_more(&t, "scatter_add to 16 bits %d x %d, %d", (int)n, (int)inner, (int)updates);
    t.half_in = 4, t.over[0] = 1;
    for (int k = 0; k < 4; k++) { /* the first micro-batch may begin the sum */
        const gp_scatter_accumulate_attr begins = {k / 2};
        Array own = zeros(DIMS(n, inner));
        for (int64_t i = 0; i < sum.count; i++)
            own.at[i] = k == 2 ? sum.at[i] - x.at[i] : sum.at[i];
        t.kernel = gp_scatter_accumulate;
        t.only_over = 1;
        t.attr = &begins;
        t.run = (gp_run){.micro = k % 2, .micros = 2};
        t.want[0] = own;
        try_more(&t, "scatter_accumulate %d x %d, %d, micro-batch %d", (int)n, (int)inner,
                 (int)updates, k % 2);
    }
    forget();
    index = integers(DIMS(picks), 0, n - 1);
    y = zeros(DIMS(picks, n));
    for (int64_t i = 0; i < picks; i++)
        y.at[i * n + (int64_t)index.at[i]] = 1;
    t = (Case){
        .kernel = gp_one_hot, .ins = 1, .outs = 1, .in = {index}, .want = {y}, .in_type = {GP_I32}};
    try(&t, "one_hot %d of %d", (int)picks, (int)n);
}

/* Along axis 1 of x, from a part of its other axes: gather_elements, or scatter with a reduction.
 */
static void pick_each(int64_t outer, int64_t n, int64_t inner, int64_t picks, int reduction)
{
    const gp_gather_elements_attr a = {1};
    const gp_scatter_attr s = {1, reduction};
    const int gather = reduction < 0;
    const int64_t all = inner + 2;
    Array x = integers(DIMS(outer + 1, n, all), -9, 9), to = zeros(DIMS(outer + 1, n, all));
    Array index = integers(DIMS(outer, picks, inner), -n, n - 1);
    Array y = zeros(DIMS(outer, picks, inner)), up = integers(DIMS(outer, picks, inner), -3, 3);
    memcpy(to.at, x.at, (size_t)x.count * sizeof *x.at);
    for (int64_t i = 0; i < y.count; i++) {
        const int64_t at = (int64_t)index.at[i] + (index.at[i] < 0 ? n : 0);
        const int64_t place = (i / inner / picks * n + at) * all + i % inner;
        const double old = to.at[place];
        y.at[i] = x.at[place];
        to.at[place] = reduction == GP_SCATTER_SET   ? up.at[i]
                       : reduction == GP_SCATTER_ADD ? old + up.at[i]
                       : reduction == GP_SCATTER_MUL ? old * up.at[i]
                       : reduction == GP_SCATTER_MAX ? fmax(old, up.at[i])
                                                     : fmin(old, up.at[i]);
    }
    CROSS(GP_PICK_LANES, inner);
    const int sums = reduction == GP_SCATTER_ADD || reduction == GP_SCATTER_MUL;
    Case t = {.kernel = gather ? gp_gather_elements : gp_scatter,
              .half_out = !sums,
              .attr = gather ? (const void *)&a : &s,
              .ins = gather ? 2 : 3,
              .outs = 1,
              .in = {x, index, up},
              .want = {gather ? y : to},
              .in_type = {GP_F32, picks % 2 ? GP_I32 : GP_I64},
              .in_as = {DENSE, picks % 3 ? DENSE : GAPS},
              .over = {gather ? 0 : 1},
              .slack = reduction == GP_SCATTER_MUL ? 20 : 0};
    for (int mixed = 0; mixed < 3 && !gather; mixed++) { /* or x alone has 16 bits, or both */
        t.half_in = mixed ? 1 + 4 * (mixed > 1) : 4;
        t.over[0] = 0;
        try_more(&t, "picks %d x %d x %d, %d, way %d, mixed %d", (int)outer, (int)n, (int)inner,
                 (int)picks, reduction, mixed);
    }
    t.half_in = gather ? 1 : sums ? 4 : 5, t.over[0] = !gather;
    try(&t, "picks %d x %d x %d, %d, way %d", (int)outer, (int)n, (int)inner, (int)picks,
        reduction);
}

/* Two indices as one, after a batch. */
static void flatten(int64_t batches, int64_t each)
{
    const gp_flat_index_attr a = {.size = {5, 7}, .batches = batches};
    Array index = integers(DIMS(batches, each, 2), -5, 4), y = zeros(DIMS(batches, each));
    for (int64_t i = 0; i < y.count; i++) {
        const double first = index.at[2 * i], second = index.at[2 * i + 1];
        y.at[i] = (double)(i / each) * 35 + (first + (first < 0 ? 5 : 0)) * 7 + second +
                  (second < 0 ? 7 : 0);
    }
    const Case t = {.kernel = gp_flat_index,
                    .attr = &a,
                    .ins = 1,
                    .outs = 1,
                    .in = {index},
                    .want = {y},
                    .in_type = {each % 2 ? GP_I32 : GP_I64},
                    .out_type = {GP_I64}};
    try(&t, "flat_index %d x %d", (int)batches, (int)each);
}

/* The first k of each line along axis 1, by looking for each of them among all. */
static void best(int64_t outer, int64_t n, int64_t inner, int64_t k, int largest)
{
    const gp_top_indices_attr a = {1, largest};
    Array x = integers(DIMS(outer, n, inner), 0, 9), y = zeros(DIMS(outer, k, inner));
    for (int64_t line = 0; line < outer * inner; line++) {
        const double *from = x.at + line / inner * n * inner + line % inner;
        for (int64_t i = 0; i < n; i++) {
            int64_t before = 0; /* how many come before i */
            for (int64_t j = 0; j < n; j++) {
                const double p = from[j * inner], q = from[i * inner];
                before += p == q ? j < i : (p > q) == largest;
            }
            if (before < k)
                y.at[(line / inner * k + before) * inner + line % inner] = (double)i;
        }
    }
    const Case t = {.kernel = gp_top_indices,
                    .half_in = k % 2,
                    .attr = &a,
                    .ins = 1,
                    .outs = 1,
                    .in = {x},
                    .want = {y},
                    .in_type = {k % 2 ? GP_F32 : GP_I32},
                    .out_type = {GP_I64}};
    try(&t, "top %d of %d x %d x %d", (int)k, (int)outer, (int)n, (int)inner);
}

/* An index outside is an error, and nothing is written. */
static void outside(double bad)
{
    const gp_gather_attr a = {0};
    gp_real x[4] = {1, 2, 3, 4}, y[2] = {7, 7}, up[2] = {5, 5};
    int32_t index[2] = {0, (int32_t)bad};
    const gp_run run = {.threads = 1};
    const gp_tensor in[] = {{x, GP_F32, 2, {4, 1}, {1, 1}},
                            {index, GP_I32, 1, {2}, {1}},
                            {up, GP_F32, 2, {2, 1}, {1, 1}}};
    const gp_tensor out = {y, GP_F32, 2, {2, 1}, {1, 1}}, all = {x, GP_F32, 2, {4, 1}, {1, 1}};
    const gp_call c = {.in = in, .ins = 2, .out = &out, .outs = 1, .attr = &a, .run = &run};
    const gp_call s = {.in = in, .ins = 3, .out = &all, .outs = 1, .run = &run};
    cases++;
    if (gp_gather(&c) != GP_EINDEX || y[0] != 7 || gp_scatter_add(&s) != GP_EINDEX || x[0] != 1)
        wrong("an index outside", "%g is taken", bad);
}

/* Along axis 1, beside each other; and a part of a batch in its place. */
static void join(int64_t outer, int64_t inner, Layout as, int32_t type)
{
    const gp_concat_attr a = {1};
    const gp_collect_attr batch = {0};
    Array x[3], y = zeros(DIMS(outer, 2 + 1 + 4, inner));
    for (int k = 0, first = 0; k < 3; first += (int)x[k++].dim[1]) {
        x[k] = integers(DIMS(outer, k == 0 ? 2 : k == 1 ? 1 : 4, inner), 0, 99);
        for (int64_t i = 0; i < x[k].count; i++)
            y.at[(i / inner / x[k].dim[1] * 7 + first + i / inner % x[k].dim[1]) * inner +
                 i % inner] = x[k].at[i];
    }
    const Case t = {.kernel = gp_concat,
                    .attr = &a,
                    .ins = 3,
                    .outs = 1,
                    .in = {x[0], x[1], x[2]},
                    .want = {y},
                    .in_as = {as, DENSE, as},
                    .in_type = {type, type, type},
                    .out_as = {as == SWAPPED ? GAPS : DENSE},
                    .out_type = {type}};
    try(&t, "concat %d, %d, laid %d, type %d", (int)outer, (int)inner, as, type);
    Array part = integers(DIMS(outer, 3, inner), 0, 99),
          all = integers(DIMS(3 * outer, 3, inner), 0, 99);
    Array to = zeros(DIMS(3 * outer, 3, inner));
    memcpy(to.at, all.at, (size_t)all.count * sizeof *all.at);
    memcpy(to.at + 2 * part.count, part.at, (size_t)part.count * sizeof *part.at);
    const Case c = {.kernel = gp_collect,
                    .attr = &batch,
                    .ins = 2,
                    .outs = 1,
                    .in = {all, part},
                    .want = {to},
                    .in_as = {DENSE, as},
                    .in_type = {type, type},
                    .out_type = {type},
                    .run = {.micro = 2, .micros = 3},
                    .over = {1},
                    .only_over = 1};
    try(&c, "collect %d, %d, laid %d, type %d", (int)outer, (int)inner, as, type);
}

static void margin(int64_t a, int64_t b, int64_t c, Layout as, int32_t type)
{
    const gp_pad_attr p = {3, {1, 0, 2}};
    Array x = integers(DIMS(a, b, c), 4, 99), y = zeros(DIMS(a + 1 + 2, b + 1, c + 2));
    for (int64_t i = 0; i < y.count; i++) {
        const int64_t k = i % y.dim[2] - 2, j = i / y.dim[2] % y.dim[1];
        const int64_t h = i / y.dim[2] / y.dim[1] - 1;
        const int inside = h >= 0 && h < a && j < b && k >= 0 && k < c;
        y.at[i] = inside ? x.at[(h * b + j) * c + k] : 3;
    }
    const Case t = {.kernel = gp_pad,
                    .half_in = type == GP_F32,
                    .half_out = type == GP_F32,
                    .attr = &p,
                    .ins = 1,
                    .outs = 1,
                    .in = {x},
                    .want = {y},
                    .in_as = {as},
                    .in_type = {type},
                    .out_type = {type}};
    try(&t, "pad %d x %d x %d, laid %d, type %d", (int)a, (int)b, (int)c, as, type);
}

static void window(int64_t a, int64_t b, Layout as)
{
    const gp_add_window_attr w = {.offset = b + 1, .stride = {2 * b, 1}};
    Array x = integers(DIMS(2 * a, b), -9, 9), dy = integers(DIMS(a, b - 1), -9, 9);
    Array y = zeros(DIMS(2 * a, b));
    memcpy(y.at, x.at, (size_t)x.count * sizeof *x.at);
    for (int64_t i = 0; i < dy.count; i++)
        y.at[(2 * (i / (b - 1)) + 1) * b + 1 + i % (b - 1)] += dy.at[i];
    CROSS(GP_WINDOW_LANES, b - 1);
    const Case t = {.kernel = gp_add_window,
                    .half_in = 3,
                    .half_out = 1,
                    .attr = &w,
                    .ins = 2,
                    .outs = 1,
                    .in = {x, dy},
                    .want = {y},
                    .in_as = {DENSE, as},
                    .over = {1}};
    try(&t, "add_window %d x %d, laid %d", (int)a, (int)b, as);
}

static void rotate(int64_t outer, int64_t length, int64_t half, int back, Layout as)
{
    const gp_rope_attr a = {100, 3, back};
    Array x = reals(DIMS(outer, length, 2 * half)), y = zeros(DIMS(outer, length, 2 * half));
    for (int64_t i = 0; i < outer * length; i++)
        for (int64_t j = 0; j < half; j++) {
            const double at = (double)(i % length + 3), sign = back ? -1 : 1;
            const double angle = sign * at / pow(a.base, (double)j / (double)half);
            const double p = x.at[2 * i * half + j], q = x.at[(2 * i + 1) * half + j];
            y.at[2 * i * half + j] = p * cos(angle) - q * sin(angle);
            y.at[(2 * i + 1) * half + j] = p * sin(angle) + q * cos(angle);
        }
    const Case t = {.kernel = gp_rope,
                    .space = gp_rope_workspace,
                    .half_in = 1,
                    .half_out = 1,
                    .attr = &a,
                    .ins = 1,
                    .outs = 1,
                    .in = {x},
                    .want = {y},
                    .in_as = {as},
                    .over = {as == DENSE},
                    .slack = 10};
    try(&t, "rope %d x %d x %d, back %d, laid %d", (int)outer, (int)length, (int)(2 * half), back,
        as);
}

/* Between which two elements output i of n lies, and how far. */
static double between(int64_t i, int64_t n, int64_t size, int corners, int64_t *low)
{
    double at = corners ? n > 1 ? (double)i * (double)(size - 1) / (double)(n - 1) : 0
                        : ((double)i + 0.5) * (double)size / (double)n - 0.5;
    at = at < 0 ? 0 : at > (double)(size - 1) ? (double)(size - 1) : at;
    *low = (int64_t)at < size - 1 ? (int64_t)at : size > 1 ? size - 2 : 0;
    return at - (double)*low;
}

static void resize(int64_t high, int64_t wide, int64_t to_high, int64_t to_wide, int mode,
                   int corners, Layout as)
{
    const gp_upsample_attr a = {mode, corners};
    Array x = reals(DIMS(2, 3, high, wide)), y = zeros(DIMS(2, 3, to_high, to_wide));
    Array dy = reals(DIMS(2, 3, to_high, to_wide)), dx = zeros(DIMS(2, 3, high, wide));
    for (int64_t i = 0; i < y.count; i++) {
        const int64_t row = i / to_wide % to_high, col = i % to_wide, plane = i / to_wide / to_high;
        int64_t top, left;
        double down = between(row, to_high, high, corners, &top);
        double right = between(col, to_wide, wide, corners, &left);
        if (mode == GP_NEAREST) {
            top = row * high / to_high, left = col * wide / to_wide;
            down = right = 0;
        }
        for (int64_t k = 0; k < 4; k++) {
            const double part = (k / 2 ? down : 1 - down) * (k % 2 ? right : 1 - right);
            const int64_t at = (plane * high + top + k / 2) * wide + left + k % 2;
            if (part == 0)
                continue;
            y.at[i] += part * x.at[at];
            dx.at[at] += part * dy.at[i];
        }
    }
    Case t = {.kernel = gp_upsample,
              .space = gp_upsample_workspace,
              .half_in = 1,
              .half_out = 1,
              .attr = &a,
              .ins = 1,
              .outs = 1,
              .in = {x},
              .want = {y},
              .in_as = {as},
              .out_as = {as == SWAPPED ? GAPS : DENSE},
              .slack = 30,
              .terms = 1};
    try_more(&t, "upsample %d x %d to %d x %d, mode %d %d", (int)high, (int)wide, (int)to_high,
             (int)to_wide, mode, corners);
    t.kernel = gp_upsample_grad, t.in[0] = dy, t.want[0] = dx, t.slack = 60;
    t.space = gp_upsample_grad_workspace;
    t.in_as[0] = t.out_as[0] = DENSE;
    try(&t, "upsample_grad %d x %d to %d x %d, mode %d %d", (int)high, (int)wide, (int)to_high,
        (int)to_wide, mode, corners);
}

/* The first micro-batch begins with the state, later ones with the copy; then the copy is taken. */
static void staged(int64_t n)
{
    Array copy = integers(DIMS(n), -99, 99), state = integers(DIMS(n), 100, 199);
    for (int32_t micro = 0; micro < 3; micro++) {
        Case t = {.kernel = gp_stage,
                  .ins = 2,
                  .outs = 1,
                  .in = {copy, state},
                  .want = {micro ? copy : state},
                  .over = {1},
                  .run = {.micro = micro, .micros = 3}};
        try_more(&t, "stage %d, micro-batch %d", (int)n, micro);
    }
    Case t = {
        .kernel = gp_commit, .ins = 2, .outs = 1, .in = {state, copy}, .want = {copy}, .over = {1}};
    try(&t, "commit %d", (int)n);
}

int main(void)
{
    NOT_HERE(GP_SAMPLES_REALS);
    staged(1);
    staged(77);
    const int32_t type[] = {GP_F32, GP_I32, GP_I64, GP_U8};
    for (int64_t off = -1; off <= 1; off++)
        pick(2, 9, GP_SCATTER_LANES + off, 20 + off, type[off + 1]);
    pick(1, 5, 2 * GP_SCATTER_LANES + 1, 50, GP_U8);
    pick(3, 1, 1, 1, GP_F32);
    for (int reduction = -1; reduction <= GP_SCATTER_MIN; reduction++) {
        for (int64_t off = -1; off <= 1; off++) {
            pick_each(2, 5, GP_PICK_LANES + off, 7 + off, reduction);
            pick_each(3, 4, 2 * GP_PICK_LANES + off, 9, reduction);
        }
        pick_each(1, 1, 1, 3, reduction);
    }
    flatten(1, 6);
    flatten(3, 7);
    for (int64_t k = 1; k <= 40; k += 3)
        best(2, 40, 3, k, k % 2);
    best(7, 1, 1, 1, 1);
    outside(-5);
    outside(4);
    for (int as = 0; as < 3; as++) {
        for (int i = 0; i < 4; i++) {
            join(3, 5, (Layout)as, type[i]);
            margin(2, 3, 5, (Layout)as, type[i]);
        }
        join(1, 1, (Layout)as, GP_F32);
        join(40, 70, (Layout)as, GP_F32);
        margin(30, 20, 40, (Layout)as, GP_F32);
        window(4, 6, (Layout)as);
        window(200, 101, (Layout)as);
        for (int64_t off = 0; off <= 2; off++)
            window(3, GP_WINDOW_LANES + off, (Layout)as);
        for (int back = 0; back <= 1; back++) {
            rotate(3, 7, 4, back, (Layout)as);
            rotate(2, 60, 8, back, (Layout)as);
        }
        for (int mode = 0; mode < 3; mode++) {
            resize(5, 7, 10, 14, mode > 0, mode > 1, (Layout)as);
            resize(4, 3, 9, 5, mode > 0, mode > 1, (Layout)as);
            resize(6, 8, 3, 1, mode > 0, mode > 1, (Layout)as);
            resize(1, 9, 2, 90, mode > 0, mode > 1, (Layout)as);
        }
    }
    return finish();
}
