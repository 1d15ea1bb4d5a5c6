/* Tells three spiral arms apart: trains on 300 points, tests on 300 others. */
#include "emitted.h"

#include <math.h>

enum { POINTS = 300, STEPS = 1000 };

static void draw_points(uint64_t seed)
{
    for (int i = 0; i < POINTS; i++) {
        int arm = i % 3;
        double way = drawn(&seed), noise = 0.1 * (drawn(&seed) - 0.5);
        double angle = 2 * M_PI * arm / 3 + 5 * way + noise;
        spirals_points(&model)[2 * i] = (float)(way * cos(angle));
        spirals_points(&model)[2 * i + 1] = (float)(way * sin(angle));
        spirals_arms(&model)[i] = arm;
    }
}

int main(void)
{
    float loss = 0, first = 0, test = 0;
    int right = 0;
    model_begin(1);
    draw_points(1);
    for (int step = 0; step < STEPS; step++) {
        expect_ok(spirals_step(&model, &loss), "step");
        first = step ? first : loss;
    }
    draw_points(2);
    expect_ok(spirals_eval(&model, &test), "eval");
    expect_ok(spirals_forward(&model), "forward");
    for (int i = 0; i < POINTS; i++) {
        const float *p = spirals_probs(&model) + 3 * i;
        int arm = p[1] > p[0] ? p[2] > p[1] ? 2 : 1 : p[2] > p[0] ? 2 : 0;
        right += arm == i % 3;
    }
    printf("spirals: loss %.3f -> %.4f in %d steps; others: loss %.3f, %d of %d right\n",
           (double)first, (double)loss, STEPS, (double)test, right, POINTS);
    check(loss < 0.05f, "the loss falls below 0.05");
    check(right >= 280, "and 280 of 300 others are right");
    return 0;
}
