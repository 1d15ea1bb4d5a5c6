/* What can go wrong with the model lookup, each as a code and in words:
 *
 *     errors                 arenas that do not fit, indices outside their table, what others did,
 *                            another device
 *     errors broken          a kernel of somebody else's that fails in the middle of a step
 *     errors all             every function once; where CUDA_ON_CPU_FAIL makes a call fail, whoever
 *                            made it must say so. Prints what was said, or "all is well". */
#include "target.h"

static std::vector<int32_t> words(LOOKUP_WORDS_COUNT, 1), next_words(LOOKUP_NEXT_COUNT, 2);

static bool has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

static void small_arenas()
{
    expect(cudaMalloc(&arena, ARENA) == cudaSuccess, "device memory");
    expect(lookup_init(&model, arena, ARENA - 1, NULL) == LOOKUP_EARENA, "a byte is missing");
    expect(has(lookup_error(&model), "bytes"), "and it is said how many there must be");
    expect(lookup_init(&model, NULL, ARENA, NULL) == LOOKUP_EARENA, "no arena at all");
    expect(lookup_init(&model, (char *)arena + 64, ARENA, NULL) == LOOKUP_EARENA, "not aligned");
    expect(cudaFree(arena) == cudaSuccess, "the arena is the caller's");
}

static void bad_index(int32_t word, const char *what)
{
    float loss = 0;
    words[7] = word;
    expect_ok(lookup_set_words(&model, words.data()), "set");
    expect_ok(lookup_forward(&model), "a run that is only put on the stream");
    const int code = lookup_sync(&model);
    expect(LOOKUP_ERROR_KIND(code) == LOOKUP_EINDEX, what);
    expect(has(lookup_op_name(LOOKUP_ERROR_OP(code)), "lookup.g:8"), "the op's name");
    expect(has(lookup_strerror(code), "index out of range"), "in words");
    expect(has(lookup_error(&model), "index out of range: "), "of the last call");
    expect_ok(lookup_sync(&model), "it is said once");
    expect(lookup_error(&model)[0] == 0, "and forgotten");
    expect(LOOKUP_ERROR_KIND(lookup_step(&model, &loss)) == LOOKUP_EINDEX, "by a step too");
    words[7] = 1;
    expect_ok(lookup_set_words(&model, words.data()), "set");
    expect_ok(lookup_step(&model, &loss), "the next is as good as any");
}

static void bad_class()
{
    float loss = 0;
    next_words[3] = 11;
    expect_ok(lookup_set_next(&model, next_words.data()), "set");
    expect(LOOKUP_ERROR_KIND(lookup_eval(&model, &loss)) == LOOKUP_EINDEX, "a class that is none");
    next_words[3] = 2;
    expect_ok(lookup_set_next(&model, next_words.data()), "set");
}

static int see(void *user, uint64_t, int op, int ops)
{
    expect(op <= ops, "no more ops than there are");
    return ++*(int *)user == 3;
}

static void progress()
{
    int seen = 0;
    float loss;
    lookup_progress(&model, see, &seen);
    expect(lookup_step(&model, &loss) == LOOKUP_ECANCEL && seen == 3, "stopped at the third op");
    expect(has(lookup_error(&model), "stopped"), "in words");
    lookup_progress(&model, NULL, NULL);
}

/* An output is there after forward and eval, and after nothing else. */
static void outputs()
{
    float loss;
    std::vector<float> best(LOOKUP_BEST_COUNT), again(LOOKUP_BEST_COUNT);
    expect_ok(lookup_step(&model, &loss), "step");
    expect(!lookup_best(&model), "no output after a step");
    expect(lookup_get_best(&model, best.data()) == LOOKUP_EOUTPUT, "nothing to get after a step");
    expect(has(lookup_error(&model), "did not compute"), "in words");
    expect_ok(lookup_forward(&model), "forward");
    expect_ok(lookup_get_best(&model, best.data()), "get");
    expect_ok(lookup_eval(&model, &loss), "eval");
    expect_ok(lookup_get_best(&model, again.data()), "get");
    expect_ok(lookup_sync(&model), "sync");
    expect(best == again, "eval's outputs are forward's");
    const int32_t kept = words[0];
    words[0] = 11;
    expect_ok(lookup_set_words(&model, words.data()), "set");
    expect_ok(lookup_forward(&model), "forward");
    expect(lookup_sync(&model) != LOOKUP_OK && !lookup_best(&model), "no output of a failed run");
    words[0] = kept;
    expect_ok(lookup_set_words(&model, words.data()), "set");
    expect_ok(lookup_replay(&model, &loss), "replay");
    expect(!lookup_best(&model), "no output after a replay");
}

/* A failure has words, and what goes well has none. */
static void said(int code)
{
    expect((code != 0) == (lookup_error(&model)[0] != 0), "an error in words where there is one");
}

/* Linked with --wrap=pow. */
static int powers;
extern "C" double __real_pow(double x, double y);
extern "C" double __wrap_pow(double x, double y)
{
    powers++;
    return __real_pow(x, y);
}

/* Adam's two powers are the same for three parameters. */
static void powers_of_a_step()
{
    float loss;
    powers = 0;
    expect_ok(lookup_step(&model, &loss), "step");
    expect(powers == 2, "two powers in a step");
    expect_ok(lookup_replay(&model, &loss), "replay");
    expect_ok(lookup_replay(&model, &loss), "replay");
    expect(powers == 6, "and in each that is replayed");
}

/* What the caller did wrong before is neither the model's fault nor taken from the caller. */
static void others()
{
    expect(cudaSetDevice(99) != cudaSuccess, "there is no such device");
    expect_ok(lookup_forward(&model), "the model has nothing to do with it");
    expect_ok(lookup_sync(&model), "sync");
    expect(cudaGetLastError() == cudaErrorInvalidDevice, "it is still the caller's to see");
}

static __global__ void fails(int)
{
    if (threadIdx.x == 0)
        __syncthreads();
}

/* A device that is broken in the middle of a step is not the fault of the next op. */
static int fail_once(void *user, uint64_t, int, int)
{
    if (++*(int *)user == 2)
        expect(cuda_on_cpu_launch("fails", 1, 32, 0, stream, fails, 0) == cudaSuccess &&
                   cudaStreamSynchronize(stream) != cudaSuccess,
               "a kernel that fails");
    return 0;
}

static void broken()
{
    int ops = 0;
    float loss;
    expect_ok(lookup_set_words(&model, words.data()), "set");
    expect_ok(lookup_set_next(&model, next_words.data()), "set");
    lookup_progress(&model, fail_once, &ops);
    const int code = lookup_step(&model, &loss);
    expect(ops == 2, "the third op is not started");
    expect(LOOKUP_ERROR_KIND(code) == LOOKUP_EDEVICE, "the code of the device");
    expect(LOOKUP_ERROR_OP(code) == LOOKUP_OPS, "no op is blamed");
    expect(has(lookup_error(&model), "failed before"), "in words");
    expect(has(lookup_error(&model), "unspecified launch failure"), "in CUDA's words");
}

static void stay_on(int device)
{
    int current = -1;
    expect(cudaGetDevice(&current) == cudaSuccess && current == device, "the caller's device");
}

/* Every function of a model on a device, while another one is current where `moves`; the first code
 * that is not 0. `best` is what it computed. */
static int all(int device, cudaStream_t own, bool moves, std::vector<float> &best)
{
    float loss;
    best.assign(LOOKUP_BEST_COUNT, 0);
    expect(!moves || cudaSetDevice(device) == cudaSuccess, "a second device");
    int code = lookup_create(&model, own);
    said(code);
    expect(!moves || cudaSetDevice(1 - device) == cudaSuccess, "the other one");
#define DO(call)                  \
    if (code == 0) {              \
        code = (call);            \
        said(code);               \
    }                             \
    if (moves)                    \
        stay_on(1 - device);      \
    if (code != 0 && model.arena) \
    lookup_free(&model)
    DO(lookup_reset(&model, 1));
    DO(lookup_set_words(&model, words.data()));
    DO(lookup_set_next(&model, next_words.data()));
    DO(lookup_forward(&model));
    DO(lookup_get_best(&model, best.data()));
    DO(lookup_sync(&model));
    DO(lookup_eval(&model, &loss));
    DO(lookup_step(&model, &loss));
    DO(lookup_capture(&model));
    DO(lookup_replay(&model, NULL));
    DO(lookup_replay(&model, &loss));
    DO(lookup_save(&model, "all.safetensors"));
    DO(lookup_load(&model, "all.safetensors"));
    DO(lookup_forward(&model));
    DO(lookup_get_best(&model, best.data()));
    DO(lookup_sync(&model));
    if (code == 0)
        lookup_free(&model);
    return code;
}

/* A model stays where it was made, on a stream of its own or on its device's default stream. */
static void two_devices()
{
    std::vector<float> first, second;
    cudaStream_t own = NULL;
    expect_ok(all(0, NULL, false, first), "all");
    expect_ok(all(0, NULL, true, second), "from another device");
    expect(first == second, "the same results");
    expect_ok(all(1, NULL, true, second), "on another device");
    expect(first == second, "the same results there");
    expect(cudaSetDevice(1) == cudaSuccess &&
               cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking) == cudaSuccess,
           "a stream there");
    expect_ok(all(1, own, true, second), "on its stream");
    expect(first == second, "the same results on its stream");
    expect(cudaStreamDestroy(own) == cudaSuccess, "the stream is the caller's");
    expect(cudaSetDevice(1) == cudaSuccess && cudaMalloc(&arena, ARENA) == cudaSuccess &&
               cudaSetDevice(0) == cudaSuccess,
           "memory there");
    expect(lookup_init(&model, arena, ARENA, NULL) == LOOKUP_EARENA, "memory of another device");
    expect(has(lookup_error(&model), "is on device 1"), "in words");
    expect(cudaFree(arena) == cudaSuccess, "the arena is the caller's");
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "broken") == 0) {
        model_begin(false);
        broken();
        return 0;
    }
    if (argc > 1) {
        std::vector<float> best;
        const int code = all(0, NULL, false, best);
        const int kind = LOOKUP_ERROR_KIND(code);
        if (code != 0)
            expect(kind == LOOKUP_EDEVICE || kind == LOOKUP_EFILE, "the code of a refused call");
        printf("%s; %s\n", code ? lookup_strerror(code) : "all is well", lookup_error(&model));
        return 0;
    }
    small_arenas();
    two_devices();
    model_begin(false);
    expect_ok(lookup_set_words(&model, words.data()), "set");
    expect_ok(lookup_set_next(&model, next_words.data()), "set");
    outputs();
    bad_index(11, "an index beyond the table");
    bad_index(-12, "an index before it");
    bad_index(INT32_MIN, "the lowest of all");
    bad_class();
    progress();
    powers_of_a_step();
    others();
    model_end();
    return 0;
}
