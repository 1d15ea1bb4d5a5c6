/* The functions that a model has for training, beside step and eval; on resume.g in one piece. */
#include "emitted.h"

#include <math.h>

static int calls, last_op, last_ops, stop_at;

static int see(void *user, uint64_t step, int op, int ops)
{
    check(user == &calls && step == model.step, "progress knows whose it is");
    check(op == ++calls, "ops are counted from 1");
    last_op = op;
    last_ops = ops;
    return op == stop_at;
}

static void close_to(double got, double want, const char *what)
{
    check(fabs(got - want) <= 1e-12 * (1 + fabs(want)), what);
}

static void check_rates(void)
{
    close_to(resume_lr(&model), 0.01 / 4, "the schedule of the model warms up");
    resume_schedule(&model, RESUME_CONSTANT, 0, 0, 0);
    close_to(resume_lr(&model), 0.01, "constant");
    resume_set_lr(&model, 0.5);
    close_to(resume_lr(&model), 0.5, "set_lr");
    resume_schedule(&model, RESUME_LINEAR, 2, 10, 0.2);
    static const double linear[] = {0.25, 0.5,  0.5, 0.45, 0.4, 0.35,
                                    0.3,  0.25, 0.2, 0.15, 0.1, 0.1};
    for (model.step = 0; model.step < 12; model.step++)
        close_to(resume_lr(&model), linear[model.step], "linear with warmup");
    resume_schedule(&model, RESUME_COSINE, 0, 4, 0);
    static const double cosine[] = {0.5, 0.42677669529663687, 0.25, 0.07322330470336313, 0, 0};
    for (model.step = 0; model.step < 6; model.step++)
        close_to(resume_lr(&model), cosine[model.step], "cosine");
    resume_schedule(&model, RESUME_STEPS, 1, 2, 0.1);
    static const double steps[] = {0.5, 0.5, 0.5, 0.05, 0.05, 0.005};
    for (model.step = 0; model.step < 6; model.step++)
        close_to(resume_lr(&model), steps[model.step], "steps with warmup");
}

/* A copy of all that is saved. */
static unsigned char *snapshot(void)
{
    unsigned char *copy = malloc(ARENA);
    check(copy != NULL, "memory");
    memcpy(copy, model.arena, ARENA);
    return copy;
}

static int same_as(const unsigned char *copy)
{
    size_t count;
    const resume_tensor *t = resume_tensors(&count);
    int same = 1;
    for (size_t i = 0; i < count; i++)
        if (t[i].kind == KIND_PARAM || t[i].kind == KIND_STATE)
            same &= memcmp(copy + t[i].offset, model.arena + t[i].offset, t[i].bytes) == 0;
    return same;
}

static void check_files(const char *whole, const char *parameters)
{
    draw_inputs(1, 4);
    for (int i = 0; i < 3; i++)
        expect_ok(resume_step(&model, NULL), "step");
    resume_seed(&model, UINT64_MAX);
    unsigned char *copy = snapshot();
    check(resume_save(&model, "no/such/file") == RESUME_EFILE, "a folder that is not there");
    check(strstr(resume_error(&model), "no/such/file: ") != NULL, "save says which file");
    expect_ok(resume_save(&model, whole), "save");
    check(*resume_error(&model) == 0, "nothing is wrong");
    check(resume_load(&model, "no/such/file") == RESUME_EFILE, "load likewise");
    check(strstr(resume_error(&model), "no/such/file: ") != NULL, "says which file");
    resume_reset(&model, 1);
    check(!same_as(copy) && model.step == 0, "reset begins anew");
    expect_ok(resume_load(&model, whole), "load");
    check(*resume_error(&model) == 0, "and nothing is wrong");
    check(same_as(copy) && model.step == 3, "load brings all of it back");
    check(model.seed == UINT64_MAX, "and the seed");
    if (parameters) {
        expect_ok(resume_load(&model, parameters), "load parameters alone");
        check(model.step == 0, "then steps begin anew");
        const float *m = floats("dense.0.w.adamw.m");
        for (int i = 0; i < 120; i++)
            check(m[i] == 0, "as does the optimizer");
    }
    free(copy);
}

static void check_failures(void)
{
    draw_inputs(1, 4);
    unsigned char *copy = snapshot();
    resume_labels(&model)[3] = 4;
    uint64_t step = model.step;
    int code = resume_step(&model, NULL);
    check(RESUME_ERROR_KIND(code) == RESUME_EINDEX, "a class that is none");
    check(strstr(resume_error(&model), resume_strerror(code)) != NULL, "the error in words");
    check(strstr(resume_error(&model), "cross_entropy") != NULL, "the message names the op");
    float loss;
    resume_labels(&model)[3] = 0;
    expect_ok(resume_eval(&model, &loss), "eval");
    check(*resume_error(&model) == 0, "a call that goes well has no error");
    resume_labels(&model)[3] = 4;
    code = resume_eval(&model, &loss);
    check(RESUME_ERROR_KIND(code) == RESUME_EINDEX, "in eval too");
    check(strstr(resume_error(&model), resume_strerror(code)) != NULL, "with its words");
    expect_ok(resume_forward(&model), "forward");
    check(*resume_error(&model) == 0, "which the next call forgets");
    size_t count;
    const resume_tensor *t = resume_tensors(&count);
    for (size_t i = 0; i < count; i++)
        if (t[i].kind == KIND_PARAM)
            check(memcmp(copy + t[i].offset, model.arena + t[i].offset, t[i].bytes) == 0,
                  "no parameter has changed");
    check(model.step == step, "and no step was counted");
    free(copy);
}

static void check_valid(void)
{
    check(resume_valid(&model, 3) == RESUME_OK && model.valid == 3, "three samples count");
    static const int64_t wrong[] = {-3, -1, RESUME_BATCH + 1, 999, INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        int code = resume_valid(&model, wrong[i]);
        check(code == RESUME_ESAMPLES, "a number of samples that cannot be");
        check(strstr(resume_error(&model), "samples") != NULL, "is told");
        check(model.valid == 3, "and changes nothing");
    }
    check(resume_valid(&model, RESUME_BATCH) == RESUME_OK, "all of them count");
    check(*resume_error(&model) == 0, "which is forgotten");
    float all, zero;
    expect_ok(resume_eval(&model, &all), "eval");
    check(resume_valid(&model, 0) == RESUME_OK, "0 is all");
    expect_ok(resume_eval(&model, &zero), "eval");
    check(all == zero, "as is the whole batch");
}

static void check_progress(void)
{
    draw_inputs(1, 4);
    resume_progress(&model, see, &calls);
    calls = stop_at = 0;
    expect_ok(resume_step(&model, NULL), "step");
    check(last_op == last_ops, "progress sees the last op of a step");
    calls = 0;
    expect_ok(resume_forward(&model), "forward");
    check(last_op == last_ops, "and of forward");
    calls = 0;
    stop_at = 5;
    check(resume_step(&model, NULL) == RESUME_ECANCEL && calls == 5, "it can stop a step");
    check(strstr(resume_error(&model), "stopped") != NULL, "and the error says so");
    resume_progress(&model, NULL, NULL);
}

int main(int argc, char **argv)
{
    check(argc >= 2, "usage: api FILE [PARAMETERS]");
    model_begin(3);
    check_rates();
    resume_reset(&model, 3);
    resume_schedule(&model, RESUME_CONSTANT, 0, 0, 0);
    resume_set_lr(&model, 0.01);
    check_files(argv[1], argc > 2 ? argv[2] : NULL);
    check_failures();
    draw_inputs(1, 4);
    check_valid();
    check_progress();
    return 0;
}
