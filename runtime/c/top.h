/* The first k elements of a line, largest or smallest first, by their places: a heap of the best so
 * far whose root is the last of them, then sorted. Of equals the one that stands first comes first;
 * a NaN counts as larger than every number. */
#ifndef GP_TOP_H
#define GP_TOP_H

#include "line.h"

typedef struct {
    const gp_tensor *x;
    int64_t base, stride; /* of the line in x */
    int64_t *at, step;    /* its places in the result */
    int64_t n, k;
    int largest;
} gp_top;

/* Whether element a of the line comes before element b. */
GP_FUNCTION int gp_top_before(const gp_top *t, int64_t a, int64_t b)
{
    const int64_t first = t->base + a * t->stride, second = t->base + b * t->stride;
    int larger, smaller;
    if (gp_is_real(t->x->dtype)) {
        const gp_real x = gp_get_real(t->x->data, first, t->x->dtype);
        const gp_real y = gp_get_real(t->x->data, second, t->x->dtype);
        larger = x > y || (x != x && y == y);
        smaller = x < y || (y != y && x == x);
    } else {
        const int64_t x = gp_load_int(t->x, first), y = gp_load_int(t->x, second);
        larger = x > y;
        smaller = x < y;
    }
    if (larger || smaller)
        return t->largest ? larger : smaller;
    return a < b;
}

GP_FUNCTION void gp_top_swap(const gp_top *t, int64_t i, int64_t k)
{
    const int64_t kept = t->at[i * t->step];
    t->at[i * t->step] = t->at[k * t->step];
    t->at[k * t->step] = kept;
}

/* Node i of a heap of `count` goes down until none below it comes later. */
GP_FUNCTION void gp_top_sift(const gp_top *t, int64_t i, int64_t count)
{
    for (int64_t child; (child = 2 * i + 1) < count; i = child) {
        if (child + 1 < count &&
            gp_top_before(t, t->at[child * t->step], t->at[(child + 1) * t->step]))
            child++;
        if (!gp_top_before(t, t->at[i * t->step], t->at[child * t->step]))
            break;
        gp_top_swap(t, i, child);
    }
}

GP_FUNCTION void gp_top_find(const gp_top *t)
{
    for (int64_t i = 0; i < t->k; i++)
        t->at[i * t->step] = i;
    for (int64_t i = t->k / 2; i-- > 0;)
        gp_top_sift(t, i, t->k);
    for (int64_t i = t->k; i < t->n; i++)
        if (gp_top_before(t, i, t->at[0])) {
            t->at[0] = i;
            gp_top_sift(t, 0, t->k);
        }
    for (int64_t end = t->k; end-- > 1;) {
        gp_top_swap(t, 0, end);
        gp_top_sift(t, 0, end);
    }
}

/* Line i of x along the axis. */
GP_FUNCTION gp_top gp_top_of(const gp_tensor *x, const gp_tensor *out, int axis, int largest,
                             int64_t i)
{
    const int64_t inner = gp_span(x, axis + 1, x->rank), n = x->dim[axis], k = out->dim[axis];
    gp_top t;
    t.x = x;
    t.base = i / inner * n * inner + i % inner;
    t.stride = inner;
    t.at = (int64_t *)out->data + i / inner * k * inner + i % inner;
    t.step = inner;
    t.n = n;
    t.k = k;
    t.largest = largest;
    return t;
}

#endif
