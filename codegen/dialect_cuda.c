/* What CUDA has its own: launches instead of loops, runs that are put on a stream and checked when
 * somebody waits, a step that can be captured. The functions that run programs are in
 * runs_cuda.c. */
#include "codegen/loop.h"
#include "codegen/runs_cuda.h"

#include <assert.h>
#include <string.h>

/* ---- Functions of clusters ------------------------------------------------------------------ */

static void write_call(const Emission *e, const Occurrence *o, const Node *node,
                       const char *epilogue, Out *to)
{
    assert(!epilogue); /* its kernels run nothing behind them: see target.c */
    (void)epilogue;
    static const KernelSyntax settings = {.open = "    gp_%s_attr attr = {};\n",
                                          .before = "    attr.",
                                          .between = ";\n",
                                          .close = ";\n    call.attr = &attr;\n"};
    out(to, "    gp_call call = {};\n");
    if (node->uses)
        out(to, "    call.in = in;\n    call.ins = %u;\n", node->uses);
    out(to, "    call.out = out;\n    call.outs = %u;\n    call.run = run;\n", node->values);
    if (o->workspace != NONE)
        out(to, "    call.work = work;\n");
    if (node->op->flags & OP_RANDOM)
        out(to, "    call.key = key;\n");
    kernel_settings(e->plan->graph, node, &settings, to);
    out(to, "    return gp_%s(&call);\n", node->op->name);
}

/* ---- What the rest stands on ---------------------------------------------------------------- */

static void write_labels(const Emission *e, Out *o)
{
    out(o, "static const char *const op_failed[] = {\n");
    for (size_t i = 0; i < e->call.count; i++) {
        out(o, "    ");
        out_string(o, arena_printf(e->arena, "a call of CUDA failed in %s",
                                   emission_label(e, &e->call.at[i])));
        out(o, ",\n");
    }
    out(o, "};\n\n");
}

static const char *const checked =
    "/* A call of CUDA's outside of an op. Where it was refused: its words, and a code that has no "
    "op. */\n"
    "static int checked($ *m, int why)\n"
    "{\n"
    "    if (why == 0)\n"
    "        return @_OK;\n"
    "    snprintf(m->detail, sizeof m->detail, \"%s\", gp_why(why));\n"
    "    return @_EDEVICE | @_OPS << 4;\n"
    "}\n"
    "\n"
    "/* The same, and leaves the function. */\n"
    "#define CHECK(call)                                       \\\n"
    "    do {                                                  \\\n"
    "        if ((code = checked(m, (int)(call))) != @_OK)     \\\n"
    "            return code;                                  \\\n"
    "    } while (0)\n"
    "/* The model's device is the current one until the function ends. */\n"
    "#define HERE                            \\\n"
    "    const gp_on_device here(m->device); \\\n"
    "    CHECK(here.why)\n"
    "/* A launch of one thread. */\n"
    "#define START(kernel, ...) CHECK(GP_START(kernel, 1, 1, 0, STREAM, __VA_ARGS__))\n"
    "\n";

static void write_before(const Emission *e, Out *o)
{
    if (e->call.count)
        write_labels(e, o);
    out(o,
        "#define STREAM ((cudaStream_t)m->stream)\n"
        "/* What is kept of a run on the device. */\n"
        "#define STATE ((gp_state *)(void *)(m->arena + %llu))\n\n",
        (unsigned long long)e->plan->buffer[e->plan->state].offset);
    api_write(e->api, o, checked);
}

/* ---- Functions of the header ---------------------------------------------------------------- */

static const char *const create = "int $_create($ *m, void *stream)\n"
                                  "{\n"
                                  "    void *arena = NULL;\n"
                                  "    memset(m, 0, sizeof *m);\n"
                                  "    int code;\n"
                                  "    CHECK(cudaMalloc(&arena, @_ARENA_BYTES));\n"
                                  "    code = $_init(m, arena, @_ARENA_BYTES, stream);\n"
                                  "    if (code == @_OK)\n"
                                  "        m->owned = arena;\n"
                                  "    else\n"
                                  "        (void)cudaFree(arena);\n"
                                  "    return code;\n"
                                  "}\n"
                                  "\n"
                                  "void $_free($ *m)\n"
                                  "{\n"
                                  "    if (!m->arena)\n"
                                  "        return;\n"
                                  "    const gp_on_device here(m->device);\n"
                                  "    (void)cudaStreamSynchronize(STREAM);\n"
                                  "    if (m->graph)\n"
                                  "        (void)cudaGraphExecDestroy((cudaGraphExec_t)m->graph);\n"
                                  "    if (m->blas)\n"
                                  "        (void)cublasDestroy((cublasHandle_t)m->blas);\n"
                                  "    for (int i = 0; i < 2; i++)\n"
                                  "        if (m->mark[i])\n"
                                  "            (void)cudaEventDestroy((cudaEvent_t)m->mark[i]);\n"
                                  "    if (m->owned)\n"
                                  "        (void)cudaFree(m->owned);\n"
                                  "    m->arena = NULL;\n"
                                  "}\n\n";

static const char *const known_device =
    "    int code;\n"
    "    cudaPointerAttributes where;\n"
    "    CHECK(cudaGetDevice(&m->device));\n"
    "    CHECK(cudaPointerGetAttributes(&where, arena));\n"
    "    if (where.type == cudaMemoryTypeDevice && where.device != m->device) {\n"
    "        snprintf(m->detail, sizeof m->detail,\n"
    "                 \"the arena lies on device %d, but device %d is the current one\",\n"
    "                 where.device, m->device);\n"
    "        return @_EARENA;\n"
    "    }\n";

static void write_init(const Emission *e, Out *o)
{
    api_write(e->api, o,
              "int $_init($ *m, void *arena, size_t bytes, void *stream)\n"
              "{\n"
              "    memset(m, 0, sizeof *m);\n");
    api_write(e->api, o, frame_check_arena);
    api_write(e->api, o, known_device);
    out(o, "    m->stream = stream;\n");
    runs_init(e->api, o);
    if (inline_reaches(e->arena, e->file.at, e->file.count, "cuda/blas.cuh")) /* calls cuBLAS */
        api_write(e->api, o,
                  "    cublasHandle_t blas;\n"
                  "    CHECK(-(int)cublasCreate(&blas));\n"
                  "    m->blas = blas;\n"
                  "    code = checked(m, -(int)cublasSetStream(blas, STREAM));\n"
                  "    if (code != @_OK) {\n"
                  "        (void)cublasDestroy(blas);\n"
                  "        return code;\n"
                  "    }\n");
    api_write(e->api, o,
              "    m->arena = (unsigned char *)arena;\n"
              "    return @_OK;\n}\n\n");
    api_write(e->api, o, create);
}

static void write_copies(const Emission *e, Out *o)
{
    const Api *api = e->api;
    for (size_t i = 0; i < api->tensors; i++) {
        const ApiTensor *t = &api->tensor[i];
        Dtype dtype = (Dtype)e->plan->graph->value.at[t->value].dtype;
        const char *type = c_api_type(dtype);
        unsigned long long bytes = (uint64_t)view_count(&t->view) * dtype_size(dtype);
        unsigned long long offset = t->offset;
        if (!t->copy)
            continue;
        if (*t->kind == 'I')
            out(o,
                "int %s(%s *m, const %s *host)\n{\n"
                "    m->detail[0] = 0;\n"
                "    int code;\n"
                "    HERE;\n"
                "    return checked(m, cudaMemcpyAsync(m->arena + %llu, host, %llu,\n"
                "                                      cudaMemcpyHostToDevice, STREAM));\n}\n\n",
                t->copy, api->prefix, type, offset, bytes);
        else
            out(o,
                "int %s(%s *m, %s *host)\n{\n"
                "    m->detail[0] = 0;\n"
                "    int code;\n"
                "    HERE;\n"
                "    const %s *const at = %s(m);\n"
                "    if (!at)\n"
                "        return failed(m, %s_EOUTPUT);\n"
                "    return checked(m, cudaMemcpyAsync(host, at, %llu, cudaMemcpyDeviceToHost, "
                "STREAM));\n}\n\n",
                t->copy, api->prefix, type, type, t->accessor, api->capitals, bytes);
    }
}

/* ---- Texts ---------------------------------------------------------------------------------- */

static const char *const needs[] = {"cuda/model.cuh", NULL};
static const char *const words[] = {"create", "free", "sync", "capture", "replay", NULL};
static const char *const own[] = {
    "checked",   "tell",      "finish",   "stepped",    "put_forward", "put_eval",  "put_step",
    "state_of",  "device_of", "clock_op", "use_stream", "capture_on",  "op_failed", "place",
    "dim3",      "char2",     "char4",    "int2",       "int4",        "float2",    "float4",
    "threadIdx", "blockIdx",  "blockDim", "gridDim",    "warpSize",    "CHECK",     "START",
    "STATE",     "STREAM",    "HERE",     "here",       NULL};

const Dialect dialect_cuda = {
    .kernel = "cuda/%s.cuh",
    .needs = needs,
    .words = words,
    .own = own,
    .counts = true,
    .nest = loop_nest_cuda,
    .launch = loop_launch_cuda,
    .call = write_call,
    .compile =
        " * Compile with nvcc -O3 -arch=native, and link with -lcublas. -DGPLAN_PROFILE adds a "
        "time "
        "per\n * op, -DGPLAN_POISON fills what is dead with NaN, -DGPLAN_CHECK_NAN stops at the "
        "first op that\n * makes one; the first and the last wait for the device after each op.\n",
    .includes = "#ifndef _POSIX_C_SOURCE\n#define _POSIX_C_SOURCE 200809L\n#endif\n\n",
    .clocks = "/* A kernel that is here came with those of its kind. */\n"
              "#ifdef __NVCC__\n#pragma nv_diag_suppress 177\n#endif\n\n",
    .checks = "static_assert(sizeof(gp_real) == 4, \"the arena was planned for floats\");\n\n",
    .at =
        "/* Places in memory, as arguments of the functions above: pointers to whatever they take. "
        "*/\n"
        "struct place {\n"
        "    void *at;\n"
        "    template <class T> operator T *() const\n"
        "    {\n"
        "        return (T *)at;\n"
        "    }\n"
        "};\n"
        "#define AT(offset) (place{m->arena + (offset)})\n",
    .external = "#define EXTERNAL(slot, offset) \\\n"
                "    (place{(unsigned char *)m->external[slot] + (offset)})\n",
    .op_macro = "/* Runs an op; leaves the function where it failed. */\n"
                "#define OP(number, call)                                  \\\n"
                "    do {                                                  \\\n"
                "        ((gp_device *)run->device)->op = (number);        \\\n"
                "        if ((code = op_end(m, run, number, call)) != @_OK) \\\n"
                "            return code;                                  \\\n"
                "    } while (0)\n"
                "\n",
    .nan_check =
        "        const gp_real *at = RESULT(low);\n"
        "        const dim3 grid = gp_blocks(result[low].rows * result[low].count, GP_BLOCK);\n"
        "        if (GP_START(gp_find_nan, grid, GP_BLOCK, 0, STREAM, &STATE->nan, at,\n"
        "                     result[low].rows, result[low].count, result[low].stride) !=\n"
        "            cudaSuccess)\n"
        "            return -1;\n",
    .nan_found = "    int32_t found = 0;\n"
                 "    if (cudaMemcpyAsync(&found, &STATE->nan, sizeof found, "
                 "cudaMemcpyDeviceToHost,\n"
                 "                        STREAM) != cudaSuccess ||\n"
                 "        cudaMemsetAsync(&STATE->nan, 0, sizeof found, STREAM) != cudaSuccess ||\n"
                 "        cudaStreamSynchronize(STREAM) != cudaSuccess)\n"
                 "        return -1;\n"
                 "    return found;\n",
    .poison = "(void)cudaMemsetAsync(m->arena + death[low].offset, 0xff, death[low].bytes, STREAM)",
    .profile = "#ifdef GPLAN_PROFILE\n"
               "/* The time of an op on the device, between two events; op -1: from here on. */\n"
               "static int clock_op($ *m, int op)\n"
               "{\n"
               "    int code;\n"
               "    float took = 0;\n"
               "    for (int i = 0; i < 2 && !m->mark[i]; i++) {\n"
               "        cudaEvent_t event;\n"
               "        CHECK(cudaEventCreate(&event));\n"
               "        m->mark[i] = event;\n"
               "    }\n"
               "    void *const from = m->mark[0], *const to = m->mark[1];\n"
               "    CHECK(cudaEventRecord((cudaEvent_t)to, STREAM));\n"
               "    CHECK(cudaEventSynchronize((cudaEvent_t)to));\n"
               "    if (op >= 0)\n"
               "        CHECK(cudaEventElapsedTime(&took, (cudaEvent_t)from, (cudaEvent_t)to));\n"
               "    if (op >= 0 && m->seconds)\n"
               "        m->seconds[op] += 1e-3 * (double)took;\n"
               "    m->mark[0] = to;\n"
               "    m->mark[1] = from;\n"
               "    return @_OK;\n"
               "}\n"
               "#endif\n\n",
    .op_end = "/* After each op: what it returned, with its number; the checks that were compiled "
              "in. */\n"
              "static GP_NOINLINE int op_end($ *m, const gp_run *run, int op, int code)\n"
              "{\n"
              "    if (code == GP_EDEVICE) {\n"
              "        const char *const why = gp_why(((const gp_device *)run->device)->why);\n"
              "        if (gp_is_broken(STREAM)) {\n"
              "            snprintf(m->detail, sizeof m->detail,\n"
              "                     \"something that ran before %s failed on the device: %s\",\n"
              "                     $_op_name(op), why);\n"
              "            return @_EDEVICE | @_OPS << 4;\n"
              "        }\n"
              "        snprintf(m->detail, sizeof m->detail, \"%s: %s\", op_failed[op], why);\n"
              "    }\n"
              "    if (code != GP_OK)\n"
              "        return code == GP_EDEVICE ? code | op << 4 : failed(m, code | op << 4);\n"
              "#ifdef GPLAN_CHECK_NAN\n"
              "    const int found = makes_nan(m, op);\n"
              "    if (found)\n"
              "        return failed(m, (found < 0 ? @_EDEVICE : @_ENAN) | op << 4);\n"
              "#endif\n"
              "#ifdef GPLAN_POISON\n"
              "    poison(m, op);\n"
              "#endif\n"
              "#ifdef GPLAN_PROFILE\n"
              "    if ((code = clock_op(m, op)) != @_OK)\n"
              "        return code;\n"
              "#endif\n"
              "    if (m->progress && m->progress(m->user, m->step, ++m->done, m->ops) != 0)\n"
              "        return failed(m, @_ECANCEL);\n"
              "    return @_OK;\n"
              "}\n\n",
    .before = write_before,
    .init = write_init,
    .begin =
        "/* Tensors of a file from `first` on, as they are after a reset: made on the host, so "
        "that\n"
        " * they are those of the C program bit for bit, and copied in pieces. */\n"
        "static int begin($ *m, size_t first, uint64_t seed)\n"
        "{\n"
        "    int code;\n"
        "    HERE;\n"
        "    gp_run run = {};\n"
        "    run.seed = seed;\n"
        "    run.threads = 1;\n"
        "    for (size_t i = first; i < SAVED_COUNT; i++) {\n"
        "        const $_tensor *t = &tensor[SAVED + i];\n"
        "        unsigned char piece[GP_PIECE], *to = (unsigned char *)data(m, SAVED + i);\n"
        "        int64_t count = 1;\n"
        "        for (int d = 0; d < t->rank; d++)\n"
        "            count *= t->dim[d];\n"
        "        const int64_t size = (int64_t)t->bytes / count, most = GP_PIECE / size;\n"
        "        if (!to || init[i].kind == GP_INIT_FILE)\n"
        "            continue;\n"
        "        for (int64_t from = 0; from < count; from += most) {\n"
        "            const int64_t n = count - from < most ? count - from : most;\n"
        "            gp_initialize(&run, &init[i], t->name, piece, t->dtype, from, n);\n"
        "            CHECK(gp_copy(to + from * size, piece, (size_t)(n * size),\n"
        "                          cudaMemcpyHostToDevice, STREAM));\n"
        "        }\n"
        "    }\n"
        "    return @_OK;\n"
        "}\n"
        "\n",
    .begin_state =
        "        const int begun = begin(m, NEEDED_COUNT, m->seed); /* parameters alone */\n"
        "        if (begun != @_OK)\n"
        "            return begun;\n",
    .item_more = ", gp_self(model)->stream",
    .wait = "    const gp_on_device here(m->device);\n"
            "    const int waited = checked(m, here.why ? here.why\n"
            "                                             : (int)cudaStreamSynchronize(STREAM));\n"
            "    if (waited != @_OK)\n"
            "        return waited;\n",
    .reset_type = "int",
    .reset_saved = "    return begin(m, 0, seed);\n",
    .reset_nothing = "    return @_OK;\n",
    .copies = write_copies,
    .runs_begin = runs_cuda_begin,
    .forward = runs_cuda_forward,
    .eval = runs_cuda_eval,
    .step = runs_cuda_step,
    .error_texts = "        \"CUDA or cuBLAS refused a call\",\n"
                   "        \"an output that the last run did not compute\",\n",
    .errors = "    if (@_ERROR_KIND(code) == @_EDEVICE && (unsigned)@_ERROR_OP(code) < @_OPS)\n"
              "        return op_failed[@_ERROR_OP(code)];\n",
    .functions = "const char *$_op_name(int op)\n"
                 "{\n"
                 "    return op_failed[op] + sizeof \"a call of CUDA failed in\";\n"
                 "}\n"
                 "\n",
    .profile_op_name = "",
    .memory = " *\n * Everything it needs on the device lies in one arena of %s; it allocates "
              "nothing else\n * there. The CUDA context and cuBLAS have memory of their own. */\n",
    .codes =
        "    @_EDEVICE, /* CUDA or cuBLAS refused a call; the op's number is @_OPS where it was "
        "none */\n"
        "    @_EOUTPUT, /* the last run did not compute this output */\n",
    .fields =
        "    unsigned char *arena; /* on the device */\n"
        "    int device;           /* its number */\n"
        "    void *stream, *blas;  /* a cudaStream_t, a cublasHandle_t */\n"
        "    void *graph, *owned;  /* a cudaGraphExec_t; the arena of $_create */\n"
        "    uint64_t told, bound; /* what the device knows, what the graph holds: hashes */\n"
        "    uint64_t seed, step;\n",
    .clock_fields = "    double *seconds; /* of $_profile */\n"
                    "    void *mark[2];   /* two cudaEvent_t for it */\n",
    .accessors =
        "/* Inputs keep what was copied to them. Outputs stand until the next run; where the last "
        "is "
        "none\n"
        " * of those an output is said to be of, or failed: NULL, @_EOUTPUT. The copies are put\n"
        " * on the stream: host memory stays as it is, and results are there, after $_sync or a "
        "call\n"
        " * that returned the loss. The other functions are the places on the device. */\n",
    .declared_init =
        "/* Takes memory of the current device that everything lives in; it is neither read nor "
        "written\n"
        " * yet. All that is done is put on the stream, a cudaStream_t of this device; NULL: its "
        "default\n"
        " * stream. The model stays on this device: every function makes it the current one while "
        "it\n"
        " * runs, whichever is current for the caller. */\n"
        "int $_init($ *m, void *arena, size_t bytes, void *stream);\n"
        "/* The same in memory that it takes itself: the one cudaMalloc, of @_ARENA_BYTES. */\n"
        "int $_create($ *m, void *stream);\n"
        "/* Gives back what those two took. */\n"
        "void $_free($ *m);\n"
        "/* Waits for all that was put on the stream. 0, or what went wrong since the last wait. "
        "*/\n"
        "int $_sync($ *m);\n",
    .declared_forward =
        "/* Computes the outputs from the inputs. It returns before that is done: an index outside "
        "its\n"
        " * table is seen by $_sync. */\n"
        "int $_forward($ *m);\n",
    .declared_step =
        "/* The loss of the batch in the inputs and the outputs that are said to be of it, "
        "without\n"
        " * dropout; changes nothing that is saved. */\n"
        "int $_eval($ *m, float *loss);\n"
        "/* One step of training on the batch in the inputs; the loss is that before the update. "
        "For\n"
        " * both it may be NULL: then nobody waits for the device. An index outside its table is "
        "left\n"
        " * out of the step, which goes on; whoever waits next gets the error: load or reset then. "
        "*/\n"
        "int $_step($ *m, float *loss);\n"
        "/* The step as a CUDA graph: captured once (after a plain step, so that libraries are "
        "ready),\n"
        " * each replay is the next step, with the learning rate and the random numbers that it "
        "would\n"
        " * have. Replay captures where there is no graph yet. The progress function is not "
        "called. "
        "*/\n"
        "int $_capture($ *m);\n"
        "int $_replay($ *m, float *loss);\n",
    .declared_more = "const char *$_op_name(int op); /* for @_ERROR_OP(code) */\n",
    .declared_profile = "",
    .set = "%s_set_%s",
    .get = "%s_get_%s",
};
