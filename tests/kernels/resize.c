/* Resizing along an axis and its gradient: linear, by whole and broken factors, with and without
 * antialiasing. */
#include "runtime/c/resize_axis.h"

#include "check.h"

/* The share of element i in element o: a tent over all places, of which the outer ones are clamped.
 */
static double share(int64_t i, int64_t o, int64_t in, int64_t out, double shrink)
{
    const double p = ((double)o + 0.5) * (double)in / (double)out - 0.5;
    double own = 0, all = 0;
    for (int64_t j = -2 * in; j < 3 * in; j++) {
        const double d = fabs((double)j - p) * shrink, w = d < 1 ? 1 - d : 0;
        own += i == (j < 0 ? 0 : j < in ? j : in - 1) ? w : 0;
        all += w;
    }
    return own / all;
}

static void resize(int64_t outers, int64_t in, int64_t inners, int64_t out, int antialias)
{
    const double shrink = antialias && out < in ? (double)out / (double)in : 1;
    const gp_resize_axis_attr a = {.axis = 1,
                                   .mode = GP_RESIZE_LINEAR,
                                   .antialias = antialias,
                                   .shift = 0.5,
                                   .mul = (double)in,
                                   .div = (double)out,
                                   .offset = -0.5,
                                   .shrink = shrink};
    Array x = integers(DIMS(outers, in, inners), -9, 9), y = zeros(DIMS(outers, out, inners));
    Array dy = integers(DIMS(outers, out, inners), -9, 9), dx = zeros(DIMS(outers, in, inners));
    for (int64_t k = 0; k < y.count * in; k++) {
        const int64_t i = k % in, at = k / in, o = at / inners % out;
        const int64_t from = (at / inners / out * in + i) * inners + at % inners;
        const double w = share(i, o, in, out, shrink);
        y.at[at] += w * x.at[from];
        dx.at[from] += w * dy.at[at];
    }
    CROSS(GP_RESIZE_LANES, inners);
    Case t = {.kernel = gp_resize_axis,
              .half_in = 1,
              .half_out = 1,
              .space = gp_resize_axis_workspace,
              .attr = &a,
              .ins = 1,
              .outs = 1,
              .in = {x},
              .want = {y},
              .slack = 8,
              .terms = 9};
    try_more(&t, "resize_axis %d x %d x %d to %d, antialias %d", (int)outers, (int)in, (int)inners,
             (int)out, antialias);
    t.kernel = gp_resize_axis_grad, t.space = gp_resize_axis_grad_workspace;
    t.in[0] = dy, t.want[0] = dx, t.terms = 9 * (double)(1 + out / in);
    try(&t, "resize_axis_grad %d x %d x %d to %d, antialias %d", (int)outers, (int)in, (int)inners,
        (int)out, antialias);
}

int main(void)
{
    for (int i = 0; i < 200; i++)
        resize(draw(1, 4), draw(1, 20), draw(1, 5), draw(1, 30), (int)draw(0, 1));
    resize(3, 40, 41, 97, 0);
    resize(60, 40, 1, 13, 1);
    for (int64_t off = -1; off <= 1; off++)
        resize(2, 7, GP_RESIZE_LANES + off, 5 + off, 1);
    return finish();
}
