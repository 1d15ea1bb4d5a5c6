/* Samples at points of a grid and their gradients; some points are far outside. */
#include "runtime/c/grid_sample.h"

#include "check.h"

typedef struct {
    Array x, grid, y, dy, dx, dgrid;
} Samples;

/* Bilinear, outside is zero: an element counts by how near the point is on every axis. */
static void point(const Samples *s, int64_t n, int64_t p, int64_t points)
{
    const int64_t channels = s->x.dim[1], high = s->x.dim[2], wide = s->x.dim[3];
    const double *at = s->grid.at + (n * points + p) * 2;
    const double px = ((at[0] + 1) * (double)wide - 1) / 2;
    const double py = ((at[1] + 1) * (double)high - 1) / 2;
    for (int64_t i = 0; i < channels * high * wide; i++) {
        const int64_t k = i / high / wide, e = n * channels * high * wide + i;
        const double dx = px - (double)(i % wide), dy = py - (double)(i / wide % high);
        const double wx = fabs(dx) < 1 ? 1 - fabs(dx) : 0, wy = fabs(dy) < 1 ? 1 - fabs(dy) : 0;
        /* at a whole place, the step towards the next one counts */
        const double sx = dx >= 0 && dx < 1 ? -1 : dx < 0 && dx >= -1 ? 1 : 0;
        const double sy = dy >= 0 && dy < 1 ? -1 : dy < 0 && dy >= -1 ? 1 : 0;
        const int64_t to = (n * channels + k) * points + p;
        s->y.at[to] += wx * wy * s->x.at[e];
        s->dx.at[e] += wx * wy * s->dy.at[to];
        s->dgrid.at[(n * points + p) * 2] += sx * wy * s->x.at[e] * s->dy.at[to] * (double)wide / 2;
        s->dgrid.at[(n * points + p) * 2 + 1] +=
            sy * wx * s->x.at[e] * s->dy.at[to] * (double)high / 2;
    }
}

/* Points lie at multiples of 1/8, so that the sums are exact. */
static void sample(int64_t n, int64_t channels, int64_t high, int64_t wide, int64_t rows,
                   int64_t columns, Layout as)
{
    const gp_grid_sample_attr a = {.mode = GP_GRID_BILINEAR, .padding = GP_GRID_ZEROS};
    Samples s = {.x = integers(DIMS(n, channels, high, wide), -9, 9),
                 .grid = integers(DIMS(n, rows, columns, 2), -12, 12),
                 .y = zeros(DIMS(n, channels, rows, columns)),
                 .dy = integers(DIMS(n, channels, rows, columns), -9, 9),
                 .dx = zeros(DIMS(n, channels, high, wide)),
                 .dgrid = zeros(DIMS(n, rows, columns, 2))};
    for (int64_t i = 0; i < s.grid.count; i++)
        s.grid.at[i] = draw(0, 30) ? s.grid.at[i] / 8 : draw(0, 1) ? 1e30 : -1e30;
    for (int64_t i = 0; i < n * rows * columns; i++)
        point(&s, i / rows / columns, i % (rows * columns), rows * columns);
    Case t = {.kernel = gp_grid_sample,
              .half_in = 1,
              .half_out = 1,
              .attr = &a,
              .ins = 2,
              .outs = 1,
              .in = {s.x, s.grid},
              .want = {s.y},
              .in_as = {as},
              .slack = 4,
              .terms = 9};
    try_more(&t, "grid_sample of %d x %d x %d x %d at %d x %d", (int)n, (int)channels, (int)high,
             (int)wide, (int)rows, (int)columns);
    t.kernel = gp_grid_sample_grid_grad, t.ins = 3, t.in[2] = s.dy, t.want[0] = s.dgrid;
    t.half_in = 1 | 4, t.half_out = 0; /* the grid and its gradient are f32 */
    t.terms = 81 * (double)(high > wide ? high : wide);
    try_more(&t, "grid_sample_grid_grad of %d x %d x %d x %d at %d x %d", (int)n, (int)channels,
             (int)high, (int)wide, (int)rows, (int)columns);
    t.kernel = gp_grid_sample_grad, t.ins = 2, t.in[0] = s.grid, t.in[1] = s.dy, t.want[0] = s.dx;
    t.half_in = 2, t.half_out = 1, t.space = gp_grid_sample_grad_workspace;
    t.in_as[0] = DENSE, t.terms = 9 * (double)(rows * columns);
    try(&t, "grid_sample_grad of %d x %d x %d x %d at %d x %d", (int)n, (int)channels, (int)high,
        (int)wide, (int)rows, (int)columns);
}

int main(void)
{
    for (int i = 0; i < 100; i++)
        sample(draw(1, 3), draw(1, 5), draw(1, 9), draw(1, 9), draw(1, 7), draw(1, 7),
               (Layout)draw(0, 2));
    sample(2, 3, 40, 41, 39, 42, GAPS);
    return finish();
}
