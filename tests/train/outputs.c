/* Prints the bits of every output, and the loss in a few digits: the same however the batch is cut.
 */
#include "emitted.h"

int main(void)
{
    size_t count;
    float loss;
    model_begin(5);
    const M(_tensor) *t = M(_tensors)(&count);
    for (uint64_t turn = 0; turn < 2; turn++) {
        draw_inputs(turn + 1, 4);
        expect_ok(M(_step)(&model, &loss), "step"); /* outputs and step share bytes */
        M(_reset)(&model, 5);
        expect_ok(M(_forward)(&model), "forward");
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; t[i].kind == KIND_OUTPUT && k < t[i].bytes / 4; k++)
                printf("%s[%zu] = %08x\n", t[i].name, k, ((const uint32_t *)data(&t[i]))[k]);
        expect_ok(M(_eval)(&model, &loss), "eval");
        printf("loss %.5f\n", (double)loss);
    }
    return 0;
}
