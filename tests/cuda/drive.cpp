/* Runs an emitted model, whichever target it is of, and writes down what it computed, so that two
 * programs can be compared: compiled with -DMODEL=mlp -DARENA=MLP_ARENA_BYTES and the model's
 * header included first; -DTRAINS where it trains, -DFORWARD where it has outputs, -DON_DEVICE for
 * CUDA.
 *
 *     drive DUMP STEPS plain|silent|replay|created|saved|from [FILE]
 *
 * plain asks for the loss of each step; silent does not, and waits once at the end; replay captures
 * the step after the first one; created lets the model allocate its arena; saved saves, spoils and
 * loads the model in the middle; from does too, but loads a file that another program saved. What
 * is left is saved as DUMP.safetensors. */
#include "target.h"

static void write_tensor(FILE *file, const M(_tensor) & t)
{
    std::vector<unsigned char> bytes(t.bytes);
    take(t, bytes.data());
    for (size_t i = 0; i < t.bytes / (t.dtype == DTYPE_F32 ? 4 : t.bytes); i++) {
        float number = 0;
        if (t.dtype == DTYPE_F32)
            memcpy(&number, &bytes[4 * i], sizeof number);
        fprintf(file, "%s %.9g\n", t.name, (double)number);
    }
}

static void write_kind(FILE *file, int first, int last)
{
    for (const auto &t : tensors())
        if (t.kind >= first && t.kind <= last)
            write_tensor(file, t);
}

static void save(const std::string &path)
{
    expect_ok(M(_save)(&model, path.c_str()), "save");
}

#ifdef TRAINS
static void train(FILE *file, long steps, const std::string &how, const char *saved)
{
    float loss = 0;
    for (long i = 0; i < steps; i++) {
        if (saved && i == steps / 2) {
            if (how == "saved")
                save(saved);
            expect_ok(reset(99), "reset");
            expect_ok(M(_load)(&model, saved), "load");
        }
        draw_inputs(100 + (uint64_t)i);
        if (how == "silent")
            expect_ok(M(_step)(&model, NULL), "step");
#ifdef ON_DEVICE
        else if (how == "replay" && i > 0)
            expect_ok(M(_replay)(&model, &loss), "replay");
#endif
        else
            expect_ok(M(_step)(&model, &loss), "step");
        if (how != "silent")
            fprintf(file, "loss %.9g\n", (double)loss);
    }
    wait_for_all();
    expect_ok(M(_eval)(&model, &loss), "eval");
    fprintf(file, "eval %.9g\n", (double)loss);
    write_kind(file, KIND_PARAM, KIND_STATE);
}
#endif

int main(int argc, char **argv)
{
    const std::string how = argc > 3 ? argv[3] : "";
    expect(argc == (how == "from" ? 5 : 4), "usage: drive DUMP STEPS HOW [FILE]");
    FILE *file = fopen(argv[1], "w");
    expect(file != NULL, "a file to write");
    model_begin(how == "created");
    write_kind(file, KIND_PARAM, KIND_STATE);
#ifdef FORWARD
    draw_inputs(7);
    expect_ok(M(_forward)(&model), "forward");
    wait_for_all();
    write_kind(file, KIND_OUTPUT, KIND_OUTPUT);
#endif
#ifdef TRAINS
    const char *saved = how == "from" ? argv[4] : how == "saved" ? "middle.safetensors" : NULL;
    train(file, strtol(argv[2], NULL, 10), how, saved);
#endif
    save(std::string(argv[1]) + ".safetensors");
    model_end();
    return fclose(file) == 0 ? 0 : 1;
}
