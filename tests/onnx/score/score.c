/* ONNX's own tests, end to end: gplan in.onnx -> C -> tcc -> run, compared with what ONNX expects.
 *
 *   score GPLAN DATA WORK [-s SHARE] [NAME...]
 *
 * DATA has folders SUITE/TEST with model.onnx and test_data_set_N/{input,output}_K.pb. One line a
 * test: SUITE/TEST, a tab, a word, and why. -s 1/20 takes every 20th. The words:
 *
 *   pass      every output is as expected
 *   narrowed  the same, in a smaller dtype, as gplan says
 *   random    shapes and dtypes are; numbers are not, and it draws random ones
 *   refused   by gplan, with status 1 and one line
 *   beyond    its doubles are too large for f32, which gplan says that it computes in
 *   wrong, fail */
#include "frontend/onnx/proto.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_BINDS = 16, REASON = 400 };

typedef struct {
    char status[16], why[REASON];
} Outcome;

typedef struct {
    const char *gplan, *folder, *work;
    OnnxModel model;
    OnnxFiles *files;
    Arena *arena;
    char *bind[MAX_BINDS]; /* NAME=FILE */
    const char *bound[MAX_BINDS];
    int binds;
} Test;

static Outcome outcome(const char *status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static Outcome outcome(const char *status, const char *format, ...)
{
    Outcome o;
    va_list args;
    va_start(args, format);
    snprintf(o.status, sizeof o.status, "%s", status);
    vsnprintf(o.why, sizeof o.why, format, args);
    va_end(args);
    o.why[strcspn(o.why, "\n\t")] = 0;
    return o;
}

/* ---- Commands ------------------------------------------------------------------------------- */

/* Runs a command with its output in a file; the exit status, or 128 and its signal. */
static int run(char *const *argv, const char *log)
{
    pid_t child = fork();
    if (child == 0) {
        int to = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(to, 1);
        dup2(to, 2);
        alarm(60);
        execvp(argv[0], argv);
        _exit(127);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static char *slurp(Arena *arena, const char *path)
{
    char *text = arena_alloc(arena, 1 << 14);
    int from = open(path, O_RDONLY);
    ssize_t got = from < 0 ? 0 : read(from, text, (1 << 14) - 1);
    text[got > 0 ? got : 0] = 0;
    if (from >= 0)
        close(from);
    return text;
}

/* ---- Data ----------------------------------------------------------------------------------- */

static bool read_pb(Arena *arena, const char *path, OnnxTensor *tensor)
{
    Wire wire;
    const char *fault;
    OnnxRead read = {.arena = arena};
    return onnx_open(arena, path, &wire, &fault) && onnx_read_tensor(&read, wire, tensor);
}

typedef struct { /* as the emitted header has it */
    const char *name;
    int kind, dtype, rank;
    int64_t dim[8];
    size_t offset, bytes;
} Slot;

static double slot_number(const unsigned char *at, int dtype, int64_t i)
{
    static const int elem[DTYPES] = {
        [F32] = ELEM_FLOAT,  [F16] = ELEM_FLOAT16, [BF16] = ELEM_BFLOAT16, [I32] = ELEM_INT32,
        [I64] = ELEM_INT64,  [U8] = ELEM_UINT8,    [BOOL] = ELEM_BOOL,     [I8] = ELEM_INT8,
        [U16] = ELEM_UINT16, [U32] = ELEM_UINT32,  [F64] = ELEM_DOUBLE};
    OnnxTensor one = {.elem = elem[dtype], .data = at, .count = i + 1};
    return onnx_number(&one, i);
}

static void put_input(unsigned char *to, int dtype, const OnnxTensor *from)
{
    size_t size = dtype_size((Dtype)dtype);
    if (elem_stored(from->elem) == (Dtype)dtype && elem_size(from->elem) == size)
        memcpy(to, from->data, (size_t)from->count * size);
    else
        onnx_convert(from, (Dtype)dtype, 0, from->count, to);
}

/* From one bfloat16 to the next. What is held wider and rounded once at the end may differ by that
 * from what is rounded at every op, or cut, as older tests are: a thousandth is less than that. */
static double bfloat16_step(double number)
{
    int exponent;
    frexp(number, &exponent);
    return ldexp(1, exponent - 8);
}

static Outcome compare(const Slot *slot, const unsigned char *got, const OnnxTensor *want)
{
    const double relative = 1e-3, absolute = 1e-7; /* of ONNX's own runner */
    bool same = slot->rank == want->rank;
    for (int k = 0; same && k < slot->rank; k++)
        same = slot->dim[k] == want->dim[k];
    if (!same)
        return outcome("wrong", "%s has another shape", slot->name);
    if (elem_stored(want->elem) != (Dtype)slot->dtype)
        return outcome("wrong", "%s has another dtype than %s", slot->name, elem_name(want->elem));
    for (int64_t i = 0; i < want->count; i++) {
        double a = slot_number(got, slot->dtype, i), b = onnx_number(want, i);
        double most = want->elem == ELEM_BFLOAT16 ? bfloat16_step(b) : relative * fabs(b);
        bool near = a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= absolute + most;
        if (!near)
            return outcome("differs", "%s[%lld] is %g, not %g", slot->name, (long long)i, a, b);
    }
    return outcome("pass", "%s", "");
}

/* ---- One run -------------------------------------------------------------------------------- */

static const Slot *find_slot(const Slot *slot, size_t count, int kind, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (slot[i].kind == kind && strcmp(slot[i].name, name) == 0)
            return &slot[i];
    return NULL;
}

static bool is_bound(const Test *t, const char *name)
{
    for (int i = 0; i < t->binds; i++)
        if (strcmp(t->bound[i], name) == 0)
            return true;
    for (size_t i = 0; i < t->model.graph.initializer.count; i++)
        if (strcmp(t->model.graph.initializer.at[i].name, name) == 0)
            return true;
    return false;
}

/* Some op draws random numbers. */
static bool draws(const Test *t)
{
    static const char *const ops[] = {"RandomNormal",      "RandomUniform", "RandomNormalLike",
                                      "RandomUniformLike", "Bernoulli",     "Multinomial"};
    for (size_t i = 0; i < t->model.graph.node.count; i++) {
        const OnnxNode *node = &t->model.graph.node.at[i];
        for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
            if (strcmp(node->op, ops[k]) == 0)
                return true;
        if (strcmp(node->op, "Dropout") == 0 && node->input.count == 3) /* training_mode */
            return true;
    }
    return false;
}

/* No f32 is as large. */
static bool is_beyond(const OnnxTensor *tensor)
{
    for (int64_t i = 0; tensor->elem == ELEM_DOUBLE && i < tensor->count; i++)
        if (isfinite(onnx_number(tensor, i)) && !isfinite((float)onnx_number(tensor, i)))
            return true;
    return false;
}

static Outcome run_set(const Test *t, const char *set)
{
    void *library = dlopen(arena_printf(t->arena, "%s/m.so", t->work), RTLD_NOW);
    if (!library)
        return outcome("fail", "%s", dlerror());
    size_t (*arena_size)(void) = (size_t(*)(void))(uintptr_t)dlsym(library, "arena_size");
    size_t (*sizeof_m)(void) = (size_t(*)(void))(uintptr_t)dlsym(library, "m_sizeof");
    int (*init)(void *, void *, size_t) =
        (int (*)(void *, void *, size_t))(uintptr_t)dlsym(library, "m_init");
    void (*reset)(void *, uint64_t) =
        (void (*)(void *, uint64_t))(uintptr_t)dlsym(library, "m_reset");
    int (*load)(void *, const char *) =
        (int (*)(void *, const char *))(uintptr_t)dlsym(library, "m_load");
    int (*forward)(void *) = (int (*)(void *))(uintptr_t)dlsym(library, "m_forward");
    const Slot *(*tensors)(size_t *) =
        (const Slot *(*)(size_t *))(uintptr_t)dlsym(library, "m_tensors");
    size_t count, bytes = arena_size();
    const Slot *slot = tensors(&count);
    unsigned char *arena = aligned_alloc(64, (bytes + 127) / 64 * 64);
    void *m = calloc(1, sizeof_m());
    memset(arena, 0xa5, bytes);
    if (init(m, arena, bytes) != 0)
        return outcome("fail", "m_init refuses the arena");
    if (reset)
        reset(m, 1);
    const char *weights = arena_printf(t->arena, "%s/m.safetensors", t->work);
    if (load && access(weights, R_OK) == 0 && load(m, weights) != 0)
        return outcome("fail", "m_load refuses the weights");
    int file = 0;
    for (size_t i = 0; i < t->model.graph.input.count; i++) {
        const char *name = t->model.graph.input.at[i].name;
        const Slot *to = find_slot(slot, count, 0, name);
        OnnxTensor tensor;
        bool initializer = is_bound(t, name);
        for (int k = 0; k < t->binds; k++)
            if (strcmp(t->bound[k], name) == 0)
                file++;
        if (initializer)
            continue;
        const char *path = arena_printf(t->arena, "%s/input_%d.pb", set, file++);
        if (access(path, R_OK) != 0)
            continue;
        if (!read_pb(t->arena, path, &tensor))
            return outcome("fail", "%s cannot be read", path);
        if (!to)
            continue; /* nothing reads it */
        if (to->dtype == BF16 && tensor.elem == ELEM_UINT16)
            tensor.elem = ELEM_BFLOAT16; /* as bits, for want of a type in NumPy */
        if (to->bytes != (size_t)tensor.count * dtype_size((Dtype)to->dtype))
            return outcome("fail", "input %s has another size", name);
        put_input(arena + to->offset, to->dtype, &tensor);
    }
    int status = forward(m);
    if (status != 0)
        return outcome("fail", "m_forward returns %d", status);
    slot = tensors(&count);
    for (size_t i = 0; i < t->model.graph.output.count; i++) {
        OnnxTensor want;
        const char *path = arena_printf(t->arena, "%s/output_%zu.pb", set, i);
        if (access(path, R_OK) != 0)
            continue;
        const Slot *from = find_slot(slot, count, 1, t->model.graph.output.at[i].name);
        if (!read_pb(t->arena, path, &want) || !from)
            return outcome("fail", "output %s is not there", t->model.graph.output.at[i].name);
        if (from->dtype == BF16 && want.elem == ELEM_UINT16)
            want.elem = ELEM_BFLOAT16; /* as bits, for want of a type in NumPy */
        Outcome o = compare(from, arena + from->offset, &want);
        if (strcmp(o.status, "differs") == 0)
            return outcome(is_beyond(&want) ? "beyond"
                           : draws(t)       ? "random"
                                            : "wrong",
                           "%s", o.why);
        if (strcmp(o.status, "pass") != 0)
            return o;
    }
    return outcome("pass", "%s", "");
}

/* In a process of its own: what is wrong there is not ours. */
static Outcome guard(const Test *t, const char *set)
{
    int pipes[2];
    Outcome o;
    if (pipe(pipes) != 0)
        return outcome("fail", "no pipe");
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        o = run_set(t, set);
        _exit(write(pipes[1], &o, sizeof o) == (ssize_t)sizeof o ? 0 : 1);
    }
    close(pipes[1]);
    ssize_t got = read(pipes[0], &o, sizeof o);
    close(pipes[0]);
    int status;
    waitpid(child, &status, 0);
    return got == (ssize_t)sizeof o ? o : outcome("wrong", "the program crashes");
}

/* ---- One test ------------------------------------------------------------------------------- */

static int compile(Test *t, const char *log)
{
    char *argv[64] = {(char *)(uintptr_t)t->gplan,
                      arena_printf(t->arena, "%s/model.onnx", t->folder),
                      (char *)(uintptr_t) "--infer",
                      (char *)(uintptr_t) "--threads=1",
                      (char *)(uintptr_t) "--prefix=m",
                      (char *)(uintptr_t) "-o",
                      arena_printf(t->arena, "%s/m.c", t->work)};
    int count = 7;
    for (int i = 0; i < t->binds; i++) {
        argv[count++] = (char *)(uintptr_t) "--bind";
        argv[count++] = t->bind[i];
    }
    unlink(arena_printf(t->arena, "%s/m.safetensors", t->work));
    return run(argv, log);
}

/* gplan asks for an input that it must know: --bind "NAME"=FILE.pb. */
static bool add_bind(Test *t, const char *said, const char *set)
{
    const char *at = strstr(said, "hint: --bind \"");
    const char *end = at ? strstr(at + 14, "\"=FILE") : NULL;
    if (!end || t->binds == MAX_BINDS)
        return false;
    char *name = arena_copy(t->arena, at + 14, (size_t)(end - at - 14));
    if (is_bound(t, name))
        return false;
    int file = 0;
    for (size_t i = 0; i < t->model.graph.input.count; i++) {
        const char *input = t->model.graph.input.at[i].name;
        if (strcmp(input, name) == 0) {
            t->bound[t->binds] = name;
            t->bind[t->binds++] = arena_printf(t->arena, "%s=%s/input_%d.pb", name, set, file);
            return true;
        }
        bool constant = false;
        for (size_t k = 0; k < t->model.graph.initializer.count; k++)
            constant |= strcmp(t->model.graph.initializer.at[k].name, input) == 0;
        file += !constant;
    }
    return false;
}

static Outcome refusal(const Test *t, int status, const char *said)
{
    const char *error = strstr(said, "error: ");
    if (status != 1 || !error)
        return outcome("fail", "gplan ends with %d: %s", status, said);
    (void)t;
    return outcome("refused", "%s", error + 7);
}

static Outcome test_set(Test *t, const char *set, bool build)
{
    const char *log = arena_printf(t->arena, "%s/log", t->work);
    char *said = (char *)(uintptr_t) "";
    if (build) {
        int status = compile(t, log);
        said = slurp(t->arena, log);
        while (status == 1 && add_bind(t, said, set)) {
            status = compile(t, log);
            said = slurp(t->arena, log);
        }
        if (status != 0)
            return refusal(t, status, said);
        char *tcc[] = {(char *)(uintptr_t) "tcc",
                       (char *)(uintptr_t) "-shared",
                       (char *)(uintptr_t) "-o",
                       arena_printf(t->arena, "%s/m.so", t->work),
                       arena_printf(t->arena, "%s/driver.c", t->work),
                       (char *)(uintptr_t) "-lm",
                       NULL};
        if (run(tcc, log) != 0)
            return outcome("fail", "tcc: %s", slurp(t->arena, log));
    }
    Outcome o = guard(t, set);
    if (strcmp(o.status, "pass") == 0 && strstr(said, "note: "))
        return outcome("narrowed", "%s", strstr(said, "note: ") + 6);
    return o;
}

static Outcome test(const char *gplan, const char *folder, const char *work)
{
    Arena *arena = arena_new();
    Test t = {.gplan = gplan, .folder = folder, .work = work, .arena = arena};
    OnnxRead read = {.arena = arena};
    Wire wire;
    const char *fault;
    Outcome o = outcome("fail", "there is no test data");
    t.files = onnx_open(arena, arena_printf(arena, "%s/model.onnx", folder), &wire, &fault);
    if (!t.files || !onnx_read_model(&read, wire, &t.model))
        o = outcome("refused", "%s", read.fault ? read.fault : "it cannot be read");
    else
        for (int set = 0;; set++) {
            char *path = arena_printf(arena, "%s/test_data_set_%d", folder, set);
            if (access(path, R_OK) != 0)
                break;
            bool build = set == 0 || t.binds;
            t.binds = 0;
            Outcome this = test_set(&t, path, build);
            bool passed = strcmp(this.status, "pass") == 0;
            if (set == 0 || !passed)
                o = this;
            if (!passed && strcmp(this.status, "narrowed") != 0)
                break;
        }
    if (t.files)
        onnx_close(t.files);
    arena_free(arena);
    return o;
}

/* ---- All of them ---------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static size_t list_tests(Arena *arena, const char *data, char **name, size_t most)
{
    static const char *const suites[] = {"node", "pytorch-converted", "pytorch-operator", "simple"};
    size_t count = 0;
    for (size_t s = 0; s < sizeof suites / sizeof *suites; s++) {
        DIR *folder = opendir(arena_printf(arena, "%s/%s", data, suites[s]));
        size_t first = count;
        for (struct dirent *e; folder && (e = readdir(folder));)
            if (*e->d_name != '.' && count < most)
                name[count++] = arena_printf(arena, "%s/%s", suites[s], e->d_name);
        if (folder)
            closedir(folder);
        qsort(name + first, count - first, sizeof *name, by_name);
    }
    return count;
}

static bool is_asked(const char *name, char **asked, int count)
{
    for (int i = 0; i < count; i++)
        if (strstr(name, asked[i]))
            return true;
    return count == 0;
}

int main(int argc, char **argv)
{
    enum { MOST = 4096 };
    static char *name[MOST];
    int share = 1;
    if (argc < 4)
        return 2;
    char **asked = argv + 4;
    int words = argc - 4;
    if (words >= 2 && strcmp(asked[0], "-s") == 0) {
        share = atoi(asked[1] + (strncmp(asked[1], "1/", 2) == 0 ? 2 : 0));
        asked += 2;
        words -= 2;
    }
    Arena *arena = arena_new();
    size_t count = list_tests(arena, argv[2], name, MOST);
    mkdir(argv[3], 0700);
    FILE *driver = fopen(arena_printf(arena, "%s/driver.c", argv[3]), "w");
    if (!driver)
        return 1;
    fputs("#include \"m.c\"\nsize_t arena_size(void) { return M_ARENA_BYTES; }\n", driver);
    fclose(driver);
    for (size_t i = 0; i < count; i++) {
        if ((share > 1 && i % (size_t)share) || !is_asked(name[i], asked, words))
            continue;
        Outcome o = test(argv[1], arena_printf(arena, "%s/%s", argv[2], name[i]), argv[3]);
        printf("%s\t%s\t%s\n", name[i], o.status, o.why);
        fflush(stdout);
    }
    arena_free(arena);
    return 0;
}
