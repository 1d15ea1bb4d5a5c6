/* Runs on a device: what changes from step to step stands in the state that kernels read, so the
 * same launches serve every step. The host tells the device only what it does not know yet. */
#include "codegen/runs_cuda.h"

/* ---- What the host knows -------------------------------------------------------------------- */

static const char *const tell =
    "\n"
    "/* Tells the device what it does not know yet. */\n"
    "static int tell($ *m)\n"
    "{\n"
    "    int code;\n"
    "    m->detail[0] = 0;\n"
    "%s"
    "    const gp_state now = state_of(m);\n"
    "    const uint64_t told = gp_hash(&now, sizeof now);\n"
    "    if (told == m->told)\n"
    "        return @_OK;\n"
    "    START(gp_state_set, STATE, now, m->told == 0);\n"
    "    m->told = told;\n"
    "    return @_OK;\n"
    "}\n"
    "\n"
    "/* What kernels are called with on the host. */\n"
    "static gp_device device_of(const $ *m)\n"
    "{\n"
    "    gp_device device = {};\n"
    "    device.stream = STREAM;\n"
    "    device.blas = (cublasHandle_t)m->blas;\n"
    "    device.run = &STATE->run;\n"
    "    device.error = &STATE->error;\n"
    "    device.power = STATE->power;\n"
    "    return device;\n"
    "}\n"
    "\n"
    "/* Waits; the loss, where it is asked for and nothing went wrong. */\n"
    "static int finish($ *m, float *loss)\n"
    "{\n"
    "    int code;\n"
    "    gp_state now;\n"
    "    CHECK(cudaMemcpyAsync(&now, STATE, sizeof now, cudaMemcpyDeviceToHost, STREAM));\n"
    "    CHECK(cudaStreamSynchronize(STREAM));\n"
    "    if (now.error != 0) {\n"
    "        m->ran = 0;\n"
    "        CHECK(cudaMemsetAsync(&STATE->error, 0, sizeof now.error, STREAM));\n"
    "        return failed(m, @_EINDEX | (now.error - 1) << 4);\n"
    "    }\n"
    "    if (loss)\n"
    "        *loss = (float)now.sum;\n"
    "    return @_OK;\n"
    "}\n"
    "\n"
    "int $_sync($ *m)\n"
    "{\n"
    "    m->detail[0] = 0;\n"
    "    int code;\n"
    "    HERE;\n"
    "    return m->told ? finish(m, NULL) : checked(m, cudaStreamSynchronize(STREAM));\n"
    "}\n\n";

void runs_cuda_begin(const Emission *e, Out *o)
{
    const Api *api = e->api;
    api_write(api, o,
              "/* The state as the host would have it; bytes between the fields are 0. */\n"
              "static gp_state state_of(const $ *m)\n"
              "{\n"
              "    gp_state now;\n"
              "    memset(&now, 0, sizeof now);\n"
              "    now.run.seed = m->seed;\n"
              "    now.run.step = m->step;\n"
              "    now.run.threads = 1;\n");
    if (api->trains)
        out(o, "    now.lr = m->lr;\n"
               "    now.schedule = m->schedule;\n"
               "    now.warmup = m->warmup;\n"
               "    now.steps = m->steps;\n"
               "    now.share = m->share;\n");
    if (runs_valid(api))
        out(o, "    now.run.batch = %lld;\n    now.run.valid = m->valid;\n", (long long)api->batch);
    out(o, "    return now;\n}\n");
    api_write(api, o, arena_printf(e->arena, tell, api->slots ? frame_check_bound : ""));
}

/* ---- Programs ------------------------------------------------------------------------------- */

/* From a function's first line to the first op: of this program, and of one behind it. */
static void write_begin(const Emission *e, Out *o, ProgramKind program, size_t more)
{
    size_t ops = runs_calls(e, program) + more;
    uint32_t times = e->plan->program[program].times, micros = times > 1 ? times : 0;
    out(o,
        "    int code;\n"
        "    gp_device device = device_of(m);\n"
        "    gp_run run = {};\n"
        "    run.threads = 1;\n"
        "    run.micros = %u;\n"
        "    run.device = &device;\n"
        "    m->done = 0;\n"
        "    m->ops = %zu;\n",
        micros, ops);
    if (ops)
        api_write(e->api, o,
                  "#ifdef GPLAN_PROFILE\n"
                  "    if ((code = clock_op(m, -1)) != @_OK)\n"
                  "        return code;\n"
                  "#endif\n");
    out(o, "    START(gp_state_begin, STATE, %u);\n", micros);
}

/* Runs the program and leaves its loss in the state. */
static void write_sum(const Emission *e, Out *o, ProgramKind program)
{
    runs_times(e, o, program,
               arena_printf(e->arena, "START(gp_state_loss, STATE, (const gp_real *)AT(%llu));",
                            (unsigned long long)runs_loss(e, program)));
}

void runs_cuda_forward(const Emission *e, Out *o)
{
    bool cut = e->plan->program[PROGRAM_FORWARD].times > 1;
    api_write(e->api, o, "static int put_forward($ *m)\n{\n");
    write_begin(e, o, PROGRAM_FORWARD, 0);
    runs_times(e, o, PROGRAM_FORWARD, cut ? "START(gp_state_next, STATE);" : "");
    api_write(e->api, o,
              "    return @_OK;\n}\n\n"
              "int $_forward($ *m)\n{\n"
              "    int code;\n"
              "    HERE;\n"
              "    code = tell(m);\n"
              "    if (code == @_OK)\n"
              "        code = put_forward(m);\n"
              "    m->ran = code == @_OK ? RAN_FORWARD : 0;\n"
              "    return code;\n}\n\n");
}

void runs_cuda_eval(const Emission *e, Out *o)
{
    api_write(e->api, o, "static int put_eval($ *m)\n{\n");
    write_begin(e, o, PROGRAM_EVAL, 0);
    write_sum(e, o, PROGRAM_EVAL);
    api_write(e->api, o,
              "    return @_OK;\n}\n\n"
              "int $_eval($ *m, float *loss)\n{\n"
              "    int code;\n"
              "    HERE;\n"
              "    code = tell(m);\n"
              "    if (code == @_OK)\n"
              "        code = put_eval(m);\n"
              "    m->ran = code == @_OK ? RAN_EVAL : 0;\n"
              "    return code != @_OK || !loss ? code : finish(m, loss);\n}\n\n");
}

static const char *const steps =
    "/* The device counts its steps as the host does. */\n"
    "static int stepped($ *m, float *loss)\n"
    "{\n"
    "    m->step++;\n"
    "    m->ran = RAN_STEP;\n"
    "    const gp_state now = state_of(m);\n"
    "    m->told = gp_hash(&now, sizeof now);\n"
    "    return loss ? finish(m, loss) : @_OK;\n"
    "}\n"
    "\n"
    "int $_step($ *m, float *loss)\n"
    "{\n"
    "    int code;\n"
    "    HERE;\n"
    "    code = tell(m);\n"
    "    if (code == @_OK)\n"
    "        code = put_step(m);\n"
    "    if (code != @_OK)\n"
    "        m->ran = 0;\n"
    "    return code != @_OK ? code : stepped(m, loss);\n"
    "}\n"
    "\n"
    "#if defined(GPLAN_PROFILE) || defined(GPLAN_CHECK_NAN)\n"
    "/* Each op is watched, so there is no graph. */\n"
    "int $_capture($ *m)\n"
    "{\n"
    "    int code;\n"
    "    HERE;\n"
    "    return tell(m);\n"
    "}\n"
    "\n"
    "int $_replay($ *m, float *loss)\n"
    "{\n"
    "    return $_step(m, loss);\n"
    "}\n"
    "#else\n"
    "/* Puts the step on a stream that captures it, where it does not run. */\n"
    "static int capture_on($ *m, cudaStream_t stream, cudaGraph_t *graph)\n"
    "{\n"
    "    int code;\n"
    "    void *const kept = m->stream;\n"
    "    int (*const progress)(void *, uint64_t, int, int) = m->progress;\n"
    "    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));\n"
    "    m->stream = stream;\n"
    "    m->progress = NULL;\n"
    "    code = use_stream(m);\n"
    "    if (code == @_OK)\n"
    "        code = put_step(m);\n"
    "    m->stream = kept;\n"
    "    m->progress = progress;\n"
    "    const int ended = checked(m, cudaStreamEndCapture(stream, graph));\n"
    "    const int back = use_stream(m);\n"
    "    return code != @_OK ? code : ended != @_OK ? ended : back;\n"
    "}\n"
    "\n"
    "int $_capture($ *m)\n"
    "{\n"
    "    int code;\n"
    "    HERE;\n"
    "    code = tell(m);\n"
    "    if (code != @_OK)\n"
    "        return code;\n"
    "    cudaStream_t stream;\n"
    "    cudaGraph_t graph = NULL;\n"
    "    cudaGraphExec_t made;\n"
    "    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));\n"
    "    code = capture_on(m, stream, &graph);\n"
    "    if (code == @_OK)\n"
    "        code = checked(m, cudaGraphInstantiate(&made, graph, 0));\n"
    "    if (graph)\n"
    "        (void)cudaGraphDestroy(graph);\n"
    "    (void)cudaStreamDestroy(stream);\n"
    "    if (code != @_OK)\n"
    "        return code;\n"
    "    if (m->graph)\n"
    "        (void)cudaGraphExecDestroy((cudaGraphExec_t)m->graph);\n"
    "    m->graph = made;\n"
    "%s"
    "    return @_OK;\n"
    "}\n"
    "\n"
    "int $_replay($ *m, float *loss)\n"
    "{\n"
    "    int code;\n"
    "    HERE;\n"
    "    const int captured = m->graph%s;\n"
    "    code = captured ? tell(m) : $_capture(m);\n"
    "    if (code != @_OK)\n"
    "        return code;\n"
    "    CHECK(cudaGraphLaunch((cudaGraphExec_t)m->graph, STREAM));\n"
    "    return stepped(m, loss);\n"
    "}\n"
    "#endif\n\n";

void runs_cuda_step(const Emission *e, Out *o)
{
    api_write(e->api, o, "static int put_step($ *m)\n{\n");
    write_begin(e, o, PROGRAM_STEP, runs_calls(e, PROGRAM_UPDATE));
    write_sum(e, o, PROGRAM_STEP);
    if (e->program[PROGRAM_UPDATE].calls)
        runs_times(e, o, PROGRAM_UPDATE, "");
    api_write(e->api, o,
              "    START(gp_state_end, STATE);\n"
              "    return @_OK;\n}\n\n"
              "/* cuBLAS works where the model does. */\n"
              "GP_UNUSED static int use_stream($ *m)\n"
              "{\n"
              "    if (!m->blas)\n"
              "        return @_OK;\n"
              "    return checked(m, -(int)cublasSetStream((cublasHandle_t)m->blas, STREAM));\n"
              "}\n\n");
    /* The graph holds the pointers of its capture. */
    const char *bound = "gp_hash(m->external, sizeof m->external)";
    bool slots = e->api->slots > 0;
    api_write(
        e->api, o,
        arena_printf(e->arena, steps,
                     slots ? arena_printf(e->arena, "    m->bound = %s;\n", bound) : "",
                     slots ? arena_printf(e->arena, " && m->bound == %s", bound) : " != NULL"));
}
