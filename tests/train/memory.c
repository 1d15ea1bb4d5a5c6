/* How much resident memory training takes, against the arena: not more, but for what the process
 * itself needs. */
#include "emitted.h"

#include <sys/resource.h>

static long resident(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss * 1024;
}

int main(void)
{
    long before = resident();
    model_begin(1);
    draw_inputs(1, 10);
    float loss;
    for (int i = 0; i < 2; i++) {
        expect_ok(M(_step)(&model, &loss), "step");
        expect_ok(M(_eval)(&model, &loss), "eval");
        expect_ok(M(_forward)(&model), "forward");
    }
    long grown = resident() - before;
    printf("arena %.2f MiB, resident memory grew by %.2f MiB\n", (double)ARENA / (1 << 20),
           (double)grown / (1 << 20));
    check(grown <= (long)ARENA + (1 << 20), "no more than the arena and a MiB");
    return 0;
}
