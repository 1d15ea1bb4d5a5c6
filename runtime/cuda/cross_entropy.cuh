/* Losses of rows against class ids: cross_entropy_rows of logits (output 1: the maximum of each row
 * and the sum of exp(x - maximum), saved for the backward pass), nll_rows of log-probabilities.
 *
 * An id outside the row is an error, unless it is ignore_index: its loss is 0. One block per row of
 * logits. */
#ifndef GP_CROSS_ENTROPY_CUH
#define GP_CROSS_ENTROPY_CUH

#include "base.cuh"

#include "../c/math.h"

/* Class ids, and where an id out of range is reported. */
typedef struct {
    gp_tensor ids;
    int64_t rows, classes, ignore, ignored;
    int32_t *error, op;
} gp_classes;

GP_HOST gp_classes gp_classes_of(const gp_call *c, const gp_tensor *ids, int64_t classes,
                                 int64_t ignore, int64_t ignored)
{
    gp_classes s;
    s.ids = *ids;
    s.rows = gp_count(ids);
    s.classes = classes;
    s.ignore = ignore;
    s.ignored = ignored;
    s.error = gp_device_of(c)->error;
    s.op = gp_device_of(c)->op;
    return s;
}

/* The class of a row; -1: ignored. */
GP_DEVICE int64_t gp_class_of(const gp_classes *s, int64_t row)
{
    const int64_t id = gp_index(&s->ids, row);
    if (s->ignore && id == s->ignored)
        return -1;
    if (id >= 0 && id < s->classes)
        return id;
    gp_bad_index(s->error, s->op);
    return -1;
}

static __global__ void gp_cross_entropy_losses(gp_reals logits, gp_classes s, double smoothing,
                                               gp_real *loss, gp_real *saved)
{
    const int64_t n = s.classes;
    const gp_real smooth = (gp_real)smoothing;
    for (GP_EACH_BLOCK(row, s.rows)) {
        gp_real most = -(gp_real)INFINITY;
        double exps = 0, sum = 0;
        for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
            const gp_real x = logits[row * n + i];
            most = x > most ? x : most;
        }
        most = gp_block_join(most, gp_larger());
        for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
            const gp_real x = logits[row * n + i];
            exps += (double)gp_exp(x - most);
            sum += (double)(x - most);
        }
        const gp_real total = (gp_real)gp_block_sum(exps), rest = gp_log(total);
        if (smooth > 0) /* for the part that label smoothing gives to all classes */
            sum = gp_block_sum(sum);
        if (threadIdx.x > 0)
            continue;
        const int64_t id = gp_class_of(&s, row);
        gp_real one = 0;
        if (id >= 0)
            one = rest - (1 - smooth) * (logits[row * n + id] - most);
        if (id >= 0 && smooth > 0)
            one -= smooth * (gp_real)(sum / (double)n);
        if (loss)
            loss[row] = one;
        if (saved) {
            saved[2 * row] = most;
            saved[2 * row + 1] = total;
        }
    }
}

GP_KERNEL(cross_entropy_rows)
{
    const gp_cross_entropy_rows_attr *a = (const gp_cross_entropy_rows_attr *)c->attr;
    const gp_tensor *logits = &c->in[0];
    const int64_t n = logits->dim[logits->rank - 1];
    const gp_classes s = gp_classes_of(c, &c->in[1], n, a->ignore, a->ignored);
    GP_LAUNCH(c, gp_cross_entropy_losses, gp_blocks(s.rows, 1), gp_block_of(n), 0,
              gp_reals_of(logits), s, a->label_smoothing, (gp_real *)c->out[0].data,
              c->outs > 1 ? (gp_real *)c->out[1].data : NULL);
    return GP_OK;
}

/* dy * (softmax - target); may run in place. */
static __global__ void gp_cross_entropy_slopes(gp_reals logits, gp_classes s, double smoothing,
                                               const gp_real *saved, const gp_real *dy, gp_reals dx)
{
    const int64_t n = s.classes;
    const gp_real smooth = (gp_real)smoothing;
    for (GP_EACH_BLOCK(row, s.rows)) {
        const int64_t id = gp_class_of(&s, row);
        const gp_real up = id < 0 ? 0 : dy[row], most = saved[2 * row];
        const gp_real part = up / saved[2 * row + 1], each = up * (smooth / (gp_real)n);
        for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
            gp_real slope = part * gp_exp(logits[row * n + i] - most) - each;
            if (i == id && up != 0)
                slope -= up * (1 - smooth);
            dx.put(row * n + i, slope);
        }
    }
}

/* Operands: logits, ids, totals, dy of each row. May run in place of the logits. */
GP_KERNEL(cross_entropy_rows_grad)
{
    const gp_cross_entropy_rows_grad_attr *a = (const gp_cross_entropy_rows_grad_attr *)c->attr;
    const gp_tensor *logits = &c->in[0];
    const int64_t n = logits->dim[logits->rank - 1];
    const gp_classes s = gp_classes_of(c, &c->in[1], n, a->ignore, a->ignored);
    GP_LAUNCH(c, gp_cross_entropy_slopes, gp_blocks(s.rows, 1), gp_block_of(n), 0,
              gp_reals_of(logits), s, a->label_smoothing, (const gp_real *)c->in[2].data,
              (const gp_real *)c->in[3].data, gp_reals_of(&c->out[0]));
    return GP_OK;
}
GP_TAKES_HALF(cross_entropy_rows)
GP_TAKES_HALF(cross_entropy_rows_grad)

static __global__ void gp_nll_losses(gp_reals x, gp_classes s, gp_real *loss)
{
    for (GP_EACH(row, s.rows)) {
        const int64_t id = gp_class_of(&s, row);
        loss[row] = id < 0 ? 0 : -x[row * s.classes + id];
    }
}

GP_KERNEL(nll_rows)
{
    const gp_nll_rows_attr *a = (const gp_nll_rows_attr *)c->attr;
    const gp_tensor *x = &c->in[0];
    const gp_classes s = gp_classes_of(c, &c->in[1], x->dim[x->rank - 1], a->ignore, a->ignored);
    const unsigned block = gp_block_of(s.rows);
    GP_LAUNCH(c, gp_nll_losses, gp_blocks(s.rows, block), block, 0, gp_reals_of(x), s,
              (gp_real *)c->out[0].data);
    return GP_OK;
}

static __global__ void gp_nll_slopes(gp_classes s, const gp_real *dy, gp_reals dx)
{
    for (GP_EACH(i, s.rows * s.classes)) {
        const int64_t row = i / s.classes;
        dx.put(i, i % s.classes == gp_class_of(&s, row) ? -dy[row] : 0);
    }
}

/* -dy at the id of each row, 0 elsewhere. Operands: ids, dy of each row. */
GP_KERNEL(nll_rows_grad)
{
    const gp_nll_rows_grad_attr *a = (const gp_nll_rows_grad_attr *)c->attr;
    const gp_tensor *out = &c->out[0];
    const gp_classes s =
        gp_classes_of(c, &c->in[0], out->dim[out->rank - 1], a->ignore, a->ignored);
    const unsigned block = gp_block_of(s.rows * s.classes);
    GP_LAUNCH(c, gp_nll_slopes, gp_blocks(s.rows * s.classes, block), block, 0, s,
              (const gp_real *)c->in[1].data, gp_reals_of(out));
    return GP_OK;
}

GP_TAKES_HALF(nll_rows)
GP_TAKES_HALF(nll_rows_grad)

#endif
