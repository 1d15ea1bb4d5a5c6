/* Trains an emitted model on batches that follow from the count of steps:
 *
 *     trainer STEPS TO [FROM]     loads FROM where it is given, trains, saves TO, prints the loss
 */
#include "emitted.h"

#ifdef CALLERS_MEMORY
static void bind_io(void) /* of resume.g */
{
    resume_bind_x(&model, data(find("x")));
    float loss;
    check(resume_step(&model, &loss) == RESUME_EBIND, "what is not bound is missed");
    resume_bind_labels(&model, data(find("labels")));
    resume_bind_probs(&model, data(find("probs")));
}
#endif

int main(int argc, char **argv)
{
    check(argc >= 3, "usage: trainer STEPS TO [FROM]");
    float loss = 0, before = 0, after = 0;
    model_begin(3);
    if (argc > 3)
        expect_ok(M(_load)(&model, argv[3]), "load");
    for (long left = strtol(argv[1], NULL, 10); left > 0; left--) {
        draw_inputs(model.step + 1, 4);
        expect_ok(M(_eval)(&model, &before), "eval");
        expect_ok(M(_eval)(&model, &after), "eval");
        check(before == after, "eval changes nothing");
        expect_ok(M(_step)(&model, &loss), "step");
    }
    printf("step %llu, loss %.9g\n", (unsigned long long)model.step, (double)loss);
    expect_ok(M(_save)(&model, argv[2]), "save");
    return 0;
}
