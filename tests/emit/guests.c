/* guests.g: what stands between the ops of a layer runs there, and in that layer alone. */
#include "guests.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 2, WIDTH = 5, LAYERS = 6, GUEST = 2 };

/* softmax in place; returns the largest. */
static double softmax(double *x)
{
    double sum = 0, most = 0;
    for (int i = 0; i < WIDTH; i++)
        sum += x[i] = exp(x[i]);
    for (int i = 0; i < WIDTH; i++)
        most = fmax(most, x[i] /= sum);
    return most;
}

int main(void)
{
    guests m;
    void *arena = aligned_alloc(GUESTS_ARENA_ALIGN, GUESTS_ARENA_BYTES);
    if (!arena || guests_init(&m, arena, GUESTS_ARENA_BYTES) != GUESTS_OK)
        return 1;
    for (int i = 0; i < ROWS * WIDTH; i++)
        guests_x(&m)[i] = (float)(i * i % 7) / 4;
    double x[ROWS][WIDTH], last[ROWS] = {0}, off = 0;
    for (int row = 0; row < ROWS; row++)
        for (int i = 0; i < WIDTH; i++)
            x[row][i] = (double)guests_x(&m)[row * WIDTH + i];
    if (guests_forward(&m) != GUESTS_OK)
        return 1;
    for (int row = 0; row < ROWS; row++) {
        for (int layer = 0; layer < LAYERS; layer++) {
            const double most = softmax(x[row]);
            if (layer == GUEST)
                last[row] = most;
            for (int i = 1; i < WIDTH; i++)
                x[row][i] += x[row][i - 1];
        }
        off = fmax(off, fabs(last[row] - (double)guests_last(&m)[row]));
        for (int i = 0; i < WIDTH; i++)
            off = fmax(off, fabs(x[row][i] - (double)guests_y(&m)[row * WIDTH + i]));
    }
    free(arena);
    if (off < 1e-6)
        return 0;
    printf("off by %g\n", off);
    return 1;
}
