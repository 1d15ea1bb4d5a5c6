/* Normalisation of rows (layernorm, normalize, rmsnorm) and of channels (batchnorm), and the
 * gradients. */
#include "runtime/c/batchnorm_ranks.h"
#include "runtime/c/layernorm.h"
#include "runtime/c/norm_grad.h"

#include "check.h"

typedef struct {
    int64_t rows, n;
    int centre, scale, bias;
} Rows;

/* Mean and inverse deviation of each row, of a float's precision: what is saved for a gradient. */
static void statistics(Rows r, const double *x, double eps, double *mean, double *inverse)
{
    for (int64_t i = 0; i < r.rows; i++) {
        double sum = 0, squares = 0;
        for (int64_t j = 0; j < r.n; j++)
            sum += x[i * r.n + j];
        mean[i] = r.centre ? sum / (double)r.n : 0;
        for (int64_t j = 0; j < r.n; j++)
            squares += (x[i * r.n + j] - mean[i]) * (x[i * r.n + j] - mean[i]);
        inverse[i] = 1 / sqrt(squares / (double)r.n + eps);
    }
}

static void note(int64_t rows, int64_t n)
{
    CROSS(GP_ROW_LANES, n);
    CROSS(GP_ROW_CHUNK, n);
    CROSS(GP_ROW_BLOCK, rows);
    CROSS(GP_NORM_CHUNKS, rows);
    CROSS(GP_NORM_ROWS, rows);
    CROSS_TOTAL(GP_STREAM_LEAST, rows * n);
    if (rows * n >= GP_STREAM_LEAST)
        CROSS(GP_STREAM_PIECE, n);
}

/* The gradient where what was made of x is there in its place, without scale and bias. */
static void rows_made(Rows r, Array unit, Array dy, Array inverse)
{
    const gp_norm_grad_attr a = {1, 1, 1};
    Array dx = zeros(DIMS(r.rows, r.n)), dscale = zeros(DIMS(r.n)), dbias = zeros(DIMS(r.n));
    for (int64_t i = 0; i < r.rows; i++) {
        double sum = 0, along = 0;
        for (int64_t j = i * r.n; j < (i + 1) * r.n; j++) {
            sum += dy.at[j] / (double)r.n;
            along += dy.at[j] * unit.at[j] / (double)r.n;
            dscale.at[j % r.n] += dy.at[j] * unit.at[j];
            dbias.at[j % r.n] += dy.at[j];
        }
        for (int64_t j = i * r.n; j < (i + 1) * r.n; j++)
            dx.at[j] = inverse.at[i] * (dy.at[j] - sum - unit.at[j] * along);
    }
    const Case back = {.kernel = gp_norm_grad,
                       .space = gp_norm_grad_workspace,
                       .attr = &a,
                       .ins = 5,
                       .outs = 3,
                       .in = {unit, dy, {0}, {0}, inverse},
                       .want = {dx, dscale, dbias},
                       .over = {1 + (int)(r.rows % 2)},
                       .half_in = 3,
                       .half_out = 1,
                       .slack = 300,
                       .terms = 4};
    try_more(&back, "norm_grad of %d x %d that are normalized", (int)r.rows, (int)r.n);
}

static void rows(Rows r)
{
    const gp_layernorm_attr a = {1, 1e-5};
    const gp_norm_grad_attr g = {1, r.centre, 0};
    Array x = reals(DIMS(r.rows, r.n)), y = zeros(DIMS(r.rows, r.n)), dy = reals(DIMS(r.rows, r.n));
    Array dx = zeros(DIMS(r.rows, r.n)), mean = zeros(DIMS(r.rows)), inverse = zeros(DIMS(r.rows));
    Array scale = {0}, bias = {0}, dscale = zeros(DIMS(r.n)), dbias = zeros(DIMS(r.n));
    if (r.scale)
        scale = reals(DIMS(r.n));
    if (r.bias)
        bias = reals(DIMS(r.n));
    statistics(r, x.at, a.eps, mean.at, inverse.at);
    for (int64_t i = 0; i < r.rows; i++) {
        double sum = 0, along = 0;
        for (int64_t j = 0, at = i * r.n; j < r.n; j++, at++) {
            const double unit = (x.at[at] - mean.at[i]) * inverse.at[i],
                         s = r.scale ? scale.at[j] : 1;
            y.at[at] = unit * s + (r.bias ? bias.at[j] : 0);
            dscale.at[j] += dy.at[at] * unit;
            dbias.at[j] += dy.at[at];
            sum += dy.at[at] * s / (double)r.n;
            along += dy.at[at] * s * unit / (double)r.n;
        }
        for (int64_t j = 0, at = i * r.n; j < r.n; j++, at++) {
            const double unit = (x.at[at] - mean.at[i]) * inverse.at[i];
            const double up = r.scale ? dy.at[at] * scale.at[j] : dy.at[at];
            dx.at[at] = inverse.at[i] * (up - (r.centre ? sum : 0) - unit * along);
        }
    }
    note(r.rows, r.n);
    Case t = {.kernel = r.centre ? r.scale ? gp_layernorm : gp_normalize : gp_rmsnorm,
              .space = gp_layernorm_workspace,
              .half_in = r.rows % 3 ? 1 : 7, /* scale and bias are mostly f32 */
              .half_out = 1,
              .attr = &a,
              .ins = r.bias ? 3 : 2,
              .outs = r.centre ? 3 : 2,
              .in = {x, scale, bias},
              .want = {y, mean, inverse},
              .over = {1},
              .slack = 100,
              .terms = 1};
    if (!r.centre)
        t.want[1] = inverse;
    const Case back = {.kernel = gp_norm_grad,
                       .space = gp_norm_grad_workspace,
                       .attr = &g,
                       .ins = 5,
                       .outs = 3,
                       .in = {x, dy, scale, r.centre ? mean : (Array){0}, inverse},
                       .want = {dx, dscale, dbias},
                       .over = {1 + (int)(r.rows % 2)},
                       .half_in = r.rows % 3 ? 3 : 7,
                       .half_out = 1,
                       .slack = 300,
                       .terms = 4};
    try_more(&t, "norm of %d x %d, centre %d, scale %d, bias %d", (int)r.rows, (int)r.n, r.centre,
             r.scale, r.bias);
    if (r.centre && !r.scale)
        rows_made(r, x, dy, inverse);
    try(&back, "norm_grad of %d x %d, centre %d, scale %d", (int)r.rows, (int)r.n, r.centre,
        r.scale);
}

/* Element `at` of channel k. */
#define EACH                              \
    for (int64_t n = 0; n < samples; n++) \
        for (int64_t at = (n * count + k) * width; at < (n * count + k + 1) * width; at++)

static void channels(int64_t samples, int64_t count, int64_t width)
{
    const gp_batchnorm_train_attr a = {1e-5};
    Array x = reals(DIMS(samples, count, width)), dy = reals(DIMS(samples, count, width));
    Array y = zeros(DIMS(samples, count, width)), dx = zeros(DIMS(samples, count, width));
    Array scale = reals(DIMS(count)), bias = reals(DIMS(count)), mean = zeros(DIMS(count));
    Array inverse = zeros(DIMS(count)), dscale = zeros(DIMS(count)), dbias = zeros(DIMS(count));
    const double all = (double)(samples * width);
    for (int64_t k = 0; k < count; k++) {
        double squares = 0;
        EACH mean.at[k] += x.at[at] / all;
        EACH squares += (x.at[at] - mean.at[k]) * (x.at[at] - mean.at[k]) / all;
        inverse.at[k] = 1 / sqrt(squares + a.eps);
        EACH
        {
            const double unit = (x.at[at] - mean.at[k]) * inverse.at[k];
            y.at[at] = unit * scale.at[k] + bias.at[k];
            dscale.at[k] += dy.at[at] * unit;
            dbias.at[k] += dy.at[at];
        }
        EACH dx.at[at] = inverse.at[k] * scale.at[k] *
                         (dy.at[at] - dbias.at[k] / all -
                          (x.at[at] - mean.at[k]) * inverse.at[k] * dscale.at[k] / all);
    }
    CROSS_TOTAL(GP_STREAM_LEAST, x.count);
    if (x.count >= GP_STREAM_LEAST)
        CROSS(GP_STREAM_PIECE, width);
    CROSS(GP_ROW_CHUNK, width);
    const Case t = {.kernel = gp_batchnorm_train,
                    .space = gp_batchnorm_train_workspace,
                    .half_in = count % 2 ? 1 : 7,
                    .half_out = 1,
                    .attr = &a,
                    .ins = 3,
                    .outs = 3,
                    .in = {x, scale, bias},
                    .want = {y, mean, inverse},
                    .over = {1},
                    .slack = 100,
                    .terms = 1};
    const Case back = {.kernel = gp_batchnorm_grad,
                       .space = gp_batchnorm_grad_workspace,
                       .half_in = count % 2 ? 3 : 7,
                       .half_out = 1,
                       .ins = 5,
                       .outs = 3,
                       .in = {x, dy, scale, mean, inverse},
                       .want = {dx, dscale, dbias},
                       .over = {1 + (int)(width % 2)},
                       .slack = 300,
                       .terms = 4};
    Case window = t, back_window = back; /* of x, and of dy */
    window.in_as[0] = back_window.in_as[width % 2] = APART;
    window.over[0] = 0;
    back_window.over[0] = 2 - (int)(width % 2); /* the one that lies dense */
    try_more(&window, "batchnorm of a window, %d x %d x %d", (int)samples, (int)count, (int)width);
    try_more(&back_window, "batchnorm_grad of a window, %d x %d x %d", (int)samples, (int)count,
             (int)width);
    try_more(&t, "batchnorm of %d x %d x %d", (int)samples, (int)count, (int)width);
    try(&back, "batchnorm_grad of %d x %d x %d", (int)samples, (int)count, (int)width);
}

/* A part of a batch that is normalized with what all parts say of it: the last of `ranks`. */
static void parts(int64_t samples, int64_t count, int64_t width, int64_t ranks)
{
    const gp_batchnorm_merge_attr a = {1e-5};
    Array x = reals(DIMS(samples, count, width)), dy = reals(DIMS(samples, count, width));
    Array y = zeros(DIMS(samples, count, width)), dx = zeros(DIMS(samples, count, width));
    Array scale = reals(DIMS(count)), bias = reals(DIMS(count)), mean = zeros(DIMS(count));
    Array inverse = zeros(DIMS(count)), dscale = zeros(DIMS(count)), dbias = zeros(DIMS(count));
    Array own = zeros(DIMS(2, count)), all = reals(DIMS(ranks, 2, count));
    Array sums = zeros(DIMS(2, count)), other = reals(DIMS(ranks, 2, count));
    const double part = (double)(samples * width), many = (double)ranks;
    for (int64_t k = 0; k < count; k++) {
        double *of = all.at + (ranks - 1) * 2 * count + k, squares = 0, sum = 0, along = 0;
        EACH own.at[k] += x.at[at] / part;
        EACH squares += (x.at[at] - own.at[k]) * (x.at[at] - own.at[k]) / part;
        own.at[count + k] = of[count] = sqrt(squares);
        of[0] = own.at[k];
        squares = 0; /* of the whole batch: E[x^2] - E[x]^2 */
        for (int64_t r = 0; r < ranks; r++) {
            const double *at = all.at + r * 2 * count + k;
            mean.at[k] += at[0] / many;
            squares += (at[count] * at[count] + at[0] * at[0]) / many;
        }
        inverse.at[k] = 1 / sqrt(squares - mean.at[k] * mean.at[k] + a.eps);
        EACH
        {
            const double unit = (x.at[at] - mean.at[k]) * inverse.at[k];
            y.at[at] = unit * scale.at[k] + bias.at[k];
            dscale.at[k] += dy.at[at] * unit;
            dbias.at[k] += dy.at[at];
        }
        sums.at[k] = dbias.at[k];
        sums.at[count + k] = dscale.at[k];
        for (int64_t r = 0; r < ranks; r++) {
            sum += other.at[r * 2 * count + k] / (many * part);
            along += other.at[(r * 2 + 1) * count + k] / (many * part);
        }
        EACH dx.at[at] = inverse.at[k] * scale.at[k] *
                         (dy.at[at] - sum - (x.at[at] - mean.at[k]) * inverse.at[k] * along);
    }
    const Case said = {.kernel = gp_batchnorm_part,
                       .space = gp_batchnorm_part_workspace,
                       .half_in = 1,
                       .ins = 1,
                       .outs = 1,
                       .in = {x},
                       .want = {own},
                       .slack = 100,
                       .terms = 1};
    const Case merge = {.kernel = gp_batchnorm_merge,
                        .attr = &a,
                        .ins = 1,
                        .outs = 2,
                        .in = {all},
                        .want = {mean, inverse},
                        .slack = 100,
                        .terms = 1};
    const Case given = {.kernel = gp_batchnorm_given,
                        .space = gp_batchnorm_given_workspace,
                        .half_in = count % 2 ? 1 : 7,
                        .half_out = 1,
                        .ins = 5,
                        .outs = 1,
                        .in = {x, scale, bias, mean, inverse},
                        .want = {y},
                        .over = {1},
                        .slack = 100,
                        .terms = 1};
    const Case summed = {.kernel = gp_batchnorm_sums,
                         .space = gp_batchnorm_sums_workspace,
                         .half_in = 3,
                         .ins = 4,
                         .outs = 3,
                         .in = {x, dy, mean, inverse},
                         .want = {sums, dscale, dbias},
                         .slack = 300,
                         .terms = 4};
    const Case back = {.kernel = gp_batchnorm_given_grad,
                       .space = gp_batchnorm_given_grad_workspace,
                       .half_in = count % 2 ? 3 : 7,
                       .half_out = 1,
                       .ins = 6,
                       .outs = 1,
                       .in = {x, dy, scale, mean, inverse, other},
                       .want = {dx},
                       .over = {1 + (int)(width % 2)},
                       .slack = 300,
                       .terms = 4};
    const Case *const list[] = {&said, &merge, &given, &summed, &back};
    for (int i = 0; i < 5; i++)
        try_more(list[i], "batchnorm over %d ranks, %d: %d x %d x %d", (int)ranks, i, (int)samples,
                 (int)count, (int)width);
    forget();
}

/* What is made of the statistics element by element has the bits that the kernel makes. */
static void each(void)
{
    enum { SAMPLES = 3, CHANNELS = 4, WIDTH = 70, COUNT = SAMPLES * CHANNELS * WIDTH };
    static gp_real x[COUNT], y[COUNT], scale[CHANNELS], bias[CHANNELS], mean[CHANNELS],
        by[CHANNELS];
    const gp_run run = {.threads = 1};
    const gp_batchnorm_train_attr a = {1e-5};
    const int64_t dim[] = {SAMPLES, CHANNELS, WIDTH};
    gp_tensor whole = {x, GP_F32, 3, {SAMPLES, CHANNELS, WIDTH}, {CHANNELS * WIDTH, WIDTH, 1}};
    gp_tensor row = {scale, GP_F32, 1, {CHANNELS}, {1}}, in[] = {whole, row, row};
    gp_tensor out[] = {whole, row, row};
    for (int64_t i = 0; i < COUNT; i++)
        x[i] = (gp_real)sin((double)i * 1.7) * 3;
    for (int k = 0; k < CHANNELS; k++) {
        scale[k] = (gp_real)(1.3 - 0.7 * k);
        bias[k] = (gp_real)(0.1 * k - 0.2);
    }
    in[2].data = bias;
    out[0].data = y;
    out[1].data = mean;
    out[2].data = by;
    gp_batchnorm_train(
        &(gp_call){.in = in, .ins = 3, .out = out, .outs = 3, .run = &run, .attr = &a});
    for (int64_t i = 0; i < COUNT; i++) {
        const int64_t k = i / dim[2] % dim[1];
        const gp_real factor = by[k] * scale[k], centred = x[i] - mean[k],
                      scaled = centred * factor;
        if (y[i] != scaled + bias[k]) {
            printf("batchnorm: element %d is not what its statistics make\n", (int)i);
            failures++;
            break;
        }
    }
}

static void running(void)
{
    const gp_running_stats_attr a = {0.1, 1e-5, 12};
    Array mean = reals(DIMS(5)), var = reals(DIMS(5)), batch = reals(DIMS(5));
    Array inverse = reals(DIMS(5)), new_mean = zeros(DIMS(5)), new_var = zeros(DIMS(5));
    for (int i = 0; i < 5; i++) {
        inverse.at[i] = 1 + inverse.at[i] / 2;
        const double own = (1 / (inverse.at[i] * inverse.at[i]) - a.eps) * 12 / 11;
        new_mean.at[i] = 0.9 * mean.at[i] + 0.1 * batch.at[i];
        new_var.at[i] = 0.9 * var.at[i] + 0.1 * own;
    }
    const Case t = {.kernel = gp_running_stats,
                    .attr = &a,
                    .ins = 4,
                    .outs = 2,
                    .in = {mean, var, batch, inverse},
                    .want = {new_mean, new_var},
                    .slack = 20,
                    .terms = 1};
    try(&t, "running_stats");
}

/* What a call does not ask for is not written, whatever lies after its outputs. */
static void one_output(void)
{
    float x[] = {1, 2, 4, -1, 0, 3}, y[6], behind[] = {7, 7};
    const gp_layernorm_attr a = {1, 1e-5};
    const gp_run run = {.threads = 1};
    const gp_tensor in[] = {{x, GP_F32, 2, {2, 3}, {3, 1}}, {0}, {0}};
    const gp_tensor out[] = {{y, GP_F32, 2, {2, 3}, {3, 1}},
                             {behind, GP_F32, 1, {2}, {1}},
                             {behind, GP_F32, 1, {2}, {1}}};
    int (*const kernel[])(const gp_call *) = {gp_layernorm, gp_normalize, gp_rmsnorm};
    for (int i = 0; i < 3; i++) {
        kernel[i](&(gp_call){.in = in, .ins = 3, .out = out, .outs = 1, .run = &run, .attr = &a});
        if (behind[0] != 7 || behind[1] != 7) {
            printf("norm %d writes an output that it was not given\n", i);
            failures++;
        }
    }
}

int main(void)
{
    const int64_t block[] = {GP_ROW_LANES, GP_ROW_CHUNK, 2 * GP_ROW_CHUNK, GP_STREAM_PIECE};
    for (int64_t off = -1; off <= 1; off++)
        for (int kind = 0; kind < 4; kind++) {
            const int centre = kind < 3, scale = kind != 1, bias = kind == 0;
            for (int i = 0; i < 4; i++)
                rows((Rows){5, block[i] + off, centre, scale, bias});
            rows((Rows){GP_ROW_BLOCK + off, 40, centre, scale, bias});
            rows((Rows){GP_NORM_CHUNKS + off, 33, centre, scale, bias});
            rows((Rows){GP_NORM_ROWS + off, 70, centre, scale, bias});
            rows((Rows){2 * GP_NORM_CHUNKS + off, 64, centre, scale, bias});
        }
    for (int64_t off = -1; off <= 1; off++) {
        const int64_t n = GP_STREAM_PIECE + off;
        rows((Rows){GP_STREAM_LEAST / n + 1, n, 1, 1, 1});
        channels(2, GP_STREAM_LEAST / n / 2 + 1, n);
        channels(3, 4, GP_ROW_CHUNK + off);
        channels(2, 3, GP_ROW_LANES + off);
    }
    rows((Rows){GP_STREAM_LEAST / 32, 32, 0, 1, 0}); /* as many as are streamed, exactly */
    channels(2, GP_STREAM_LEAST / 64, 32);
    channels(1, 3, 1);
    each();
    parts(2, 8, GP_ROW_CHUNK + 5, 1);
    parts(3, 5, 49, 3);
    parts(2, GP_STREAM_LEAST / 128, 64, 8);
    running();
    one_output();
    return finish();
}
