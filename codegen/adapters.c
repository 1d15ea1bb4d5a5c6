/* A tool of the build: prints a file with every kernel of a target behind runtime_kernel(), from
 * the rows. usage: adapters adapters.c | adapters.cpp | cuda_work.c | settings.h
 *
 * A kernel row gets an adapter from a list of settings to the kernel's own struct; an elementwise
 * row gets a loop over its expression. The files are compiled once as they are, for tests and for
 * the workspace of the C target, and once with GP_REAL as double, for gradient tests. CUDA's is C++
 * for nvcc or for tests/cuda_on_cpu. `work` is plain C: what CUDA's kernels want as workspace,
 * which gplan asks where no CUDA is. `settings` is the header with the structs of settings that all
 * kernels include.
 *
 * A row without a kernel stops the build by name, and so does one that does not say how the batch
 * passes through it, or whose flag OP_LOOKS_UP is not what its kernel does. */
#include "codegen/internal.h"

#include <string.h>

static enum { C, CUDA, WORK, SETTINGS } made;

static bool is_elementwise(const OpRow *op)
{
    return op->flags & OP_ELEMENTWISE;
}

/* What elementwise rows need beside their expression is the same on every target. */
static bool has_kernel(const OpRow *op)
{
    return op_has_kernel(op) && (made != CUDA || !(op->flags & OP_HOST));
}

static const char *file_of(const OpRow *op)
{
    static char path[256];
    const char *name = op->kernel ? op->kernel : op->name;
    bool shared = made == C || is_elementwise(op);
    snprintf(path, sizeof path, shared ? "c/%s.h" : "cuda/%s.cuh", name);
    return path;
}

/* Where a file of the runtime has `macro(name)` at the start of a line; or NULL. */
static const char *defines(const char *file, const OpRow *op, const char *macro)
{
    const char *text = runtime_text(file);
    char wanted[256];
    snprintf(wanted, sizeof wanted, "%s(%s)", macro, op->name);
    for (const char *at = text; at && (at = strstr(at, wanted)); at++)
        if (at == text || at[-1] == '\n')
            return at;
    return NULL;
}

static bool has_workspace(const OpRow *op)
{
    return has_kernel(op) && defines(made == C ? file_of(op) : "cuda/work.h", op, "GP_WORKSPACE");
}

/* Kernels of C are what rows speak of; those of CUDA say so themselves. */
static bool takes_half(const OpRow *op)
{
    char file[256];
    if (!(op->flags & OP_HALF) || made == C)
        return op->flags & OP_HALF;
    snprintf(file, sizeof file, "cuda/%s.cuh", op->kernel ? op->kernel : op->name);
    return defines(file, op, "GP_TAKES_HALF");
}

static int settings(const OpRow *op)
{
    int count = 0;
    for (int i = 0; i < MAX_ARGS && op->args[i].name; i++)
        count += arg_is_setting(&op->args[i]);
    return count;
}

/* Assignments, since C and C++ differ in how they name the fields of an initializer. */
static void print_field(const Arg *arg, int i)
{
    if (arg->kind == ARG_INTS)
        for (int k = 0; k < arg->count; k++)
            printf("    attr.%s[%d] = s[%d].list[%d];\n", arg->name, k, i, k);
    else if (arg->kind == ARG_FLOAT)
        printf("    attr.%s = s[%d].number;\n", arg->name, i);
    else
        printf("    attr.%s = (int64_t)s[%d].number;\n", arg->name, i);
}

static void print_attr(const OpRow *op)
{
    if (settings(op) == 0) {
        puts("    (void)s;");
        return;
    }
    printf("    gp_%s_attr attr;\n    memset(&attr, 0, sizeof attr);\n", op->name);
    for (int i = 0; i < MAX_ARGS && op->args[i].name; i++)
        if (arg_is_setting(&op->args[i]))
            print_field(&op->args[i], i);
    puts("    call->attr = &attr;");
}

/* `call` is a C format that takes the op's name. */
static void print_adapter(const OpRow *op, const char *result, const char *suffix, const char *call)
{
    printf("static %s %s%s(gp_call *call, const gp_setting *s)\n{\n", result, op->name, suffix);
    print_attr(op);
    printf("    %s result = ", result);
    printf(call, op->name);
    puts(";\n    call->attr = NULL;\n    return result;\n}\n");
}

static bool has_ways(const OpRow *op)
{
    return made == C && has_kernel(op) && defines(file_of(op), op, "GP_WAYS");
}

static void print_ways(const OpRow *op)
{
    printf("static void %s_ways(gp_call *call, const gp_setting *s, gp_ways *ways)\n{\n", op->name);
    print_attr(op);
    printf("    gp_%s_ways(call, ways);\n    call->attr = NULL;\n}\n\n", op->name);
}

static void print_kernel(const OpRow *op)
{
    if (has_ways(op))
        print_ways(op);
    if (made != WORK)
        print_adapter(op, "int", "_run",
                      made == C ? "gp_%s(call)" : "each_call_kernel(call, gp_%s)");
    if (has_workspace(op))
        print_adapter(op, "size_t", "_workspace", "gp_%s_workspace(call)");
}

static const char *setting_type(const Arg *arg)
{
    return arg->kind == ARG_FLOAT ? "gp_real" : "int64_t";
}

/* The loop computes in the type that C's own conversions would give the expression. */
static void print_loop(const OpRow *op)
{
    printf("static int %s_run(gp_call *call, const gp_setting *s)\n{\n", op->name);
    for (int i = 0; i < MAX_ARGS && op->args[i].name; i++)
        if (arg_is_setting(&op->args[i])) {
            const char *type = setting_type(&op->args[i]);
            printf("    const %s %s = (%s)s[%d].number;\n    (void)%s;\n", type, op->args[i].name,
                   type, i, op->args[i].name);
        }
    puts("    (void)s;");
    if (op->flags & OP_STORED)
        puts("    if (each_is_stored(call))\n        return each_cast_all(call);");
    if (!(op->flags & OP_FLOAT)) {
        printf("    if (each_type(call) == GP_I32)\n        EACH(int32_t, int, %s);\n", op->expr);
        printf("    if (each_type(call) == GP_I64)\n        EACH(int64_t, int, %s);\n", op->expr);
    }
    if (op->flags & OP_INTEGERS)
        puts("    return GP_OK;");
    else
        printf("    EACH(gp_real, real, %s);\n", op->expr);
    puts("}\n");
}

/* The same as a grid: a body that holds the settings. */
static void print_grid(const OpRow *op)
{
    printf("struct %s_body {\n", op->name);
    for (int i = 0; i < MAX_ARGS && op->args[i].name; i++)
        if (arg_is_setting(&op->args[i]))
            printf("    %s %s;\n", setting_type(&op->args[i]), op->args[i].name);
    printf(
        "    template <class T>\n    __device__ T operator()(T a, T b, T c, T d, T e, uint64_t "
        "key, "
        "const gp_run *run, int64_t i) const\n    {\n        (void)a, (void)b, (void)c, (void)d, "
        "(void)e, (void)key, (void)run, (void)i;\n        return (T)(%s);\n    }\n};\n\n",
        op->expr);
    printf("static int %s_run(gp_call *call, const gp_setting *s)\n{\n    (void)s;\n"
           "    %s_body body;\n",
           op->name, op->name);
    for (int i = 0; i < MAX_ARGS && op->args[i].name; i++)
        if (arg_is_setting(&op->args[i]))
            printf("    body.%s = (%s)s[%d].number;\n", op->args[i].name,
                   setting_type(&op->args[i]), i);
    printf("    return each_call_kernel(call, [&](const gp_call *c) { return each_launch<%s, "
           "%s, %s>(c, body); });\n}\n\n",
           op->flags & OP_FLOAT ? "false" : "true", op->flags & OP_INTEGERS ? "false" : "true",
           op->flags & OP_STORED ? "true" : "false");
}

/* A C kernel says itself that it met a bad index, not a function that it calls: so the row's flag
 * can be compared with its text. */
static bool check_lookup(const OpRow *op)
{
    const char *from = defines(file_of(op), op, "GP_KERNEL");
    const char *fails = strstr(from, "GP_EINDEX"), *end = strstr(from, "\n}");
    const bool can = fails && fails < end, says = op->flags & OP_LOOKS_UP;
    if (can && !says)
        fprintf(stderr, "op %s: its kernel returns GP_EINDEX: its row must have OP_LOOKS_UP\n",
                op->name);
    if (says && !can)
        fprintf(stderr, "op %s: its row has OP_LOOKS_UP, but its kernel never returns GP_EINDEX\n",
                op->name);
    return can == says;
}

static bool check_row(const OpRow *op)
{
    if (is_elementwise(op) && !op->expr) {
        fprintf(stderr, "op %s: elementwise, but it has no expression\n", op->name);
        return false;
    }
    if (!op->build && !op->batch) {
        fprintf(stderr, "op %s: its row must say how the batch passes through it: .batch\n",
                op->name);
        return false;
    }
    if (made < WORK && has_kernel(op) && !defines(file_of(op), op, "GP_KERNEL")) {
        fprintf(stderr, "op %s: no kernel: runtime/%s must define GP_KERNEL(%s)\n", op->name,
                file_of(op), op->name);
        return false;
    }
    return made != C || !has_kernel(op) || check_lookup(op);
}

static void print_includes(void)
{
    if (made == CUDA) /* says what a function is there, before anyone includes base.h */
        puts("#include \"runtime/each.cuh\"");
    puts("#include \"runtime/runtime.h\"\n");
    if (made == WORK) {
        puts("#include \"runtime/cuda/work.h\"\n");
        return;
    }
    /* The math of expressions and the numbers of random ones. */
    puts("#include \"runtime/c/math.h\"\n#include \"runtime/c/rng.h\"\n"
         "#include \"runtime/each.h\"");
    for (size_t i = 0; op_at(i); i++)
        if (has_kernel(op_at(i)) || (is_elementwise(op_at(i)) && op_at(i)->kernel))
            printf("#include \"runtime/%s\"\n", file_of(op_at(i)));
    puts("");
}

static void print_table(const char *find)
{
    puts("static const gp_kernel kernel[] = {");
    for (size_t i = 0; op_at(i); i++) {
        const OpRow *op = op_at(i);
        const bool workspace = has_workspace(op);
        const bool half = takes_half(op);
        if (op->build || (made == WORK && !workspace && !half) ||
            (op_has_kernel(op) && !has_kernel(op)))
            continue;
        printf("    {\"%s\", %s%s, %s%s, %s%s, %d},\n", op->name, made == WORK ? "NULL" : op->name,
               made == WORK ? "" : "_run", workspace ? op->name : "NULL",
               workspace ? "_workspace" : "", has_ways(op) ? op->name : "NULL",
               has_ways(op) ? "_ways" : "", half);
    }
    printf("    {NULL, NULL, NULL, NULL, 0},\n};\n\n"
           "const gp_kernel *%s(const char *op)\n"
           "{\n"
           "    for (size_t i = 0; kernel[i].op; i++)\n"
           "        if (strcmp(kernel[i].op, op) == 0)\n"
           "            return &kernel[i];\n"
           "    return NULL;\n"
           "}\n",
           find);
}

static void print_settings(void)
{
    Arena *arena = arena_new();
    Out o = out_new(arena);
    settings_write(&o, NULL, NULL);
    printf("#ifndef GP_SETTINGS_H\n#define GP_SETTINGS_H\n\n#include <stdint.h>\n\n%s#endif\n",
           o.at);
    arena_free(arena);
}

static void print_kernels(void)
{
    print_includes();
    for (size_t i = 0; op_at(i); i++)
        if (has_kernel(op_at(i)))
            print_kernel(op_at(i));
        else if (is_elementwise(op_at(i)) && made != WORK)
            (made == C ? print_loop : print_grid)(op_at(i));
    print_table(made == WORK ? "runtime_cuda_work" : "runtime_kernel");
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"adapters.c", "adapters.cpp", "cuda_work.c", "settings.h"};
    int which = 0;
    while (which <= SETTINGS && (argc != 2 || strcmp(argv[1], names[which]) != 0))
        which++;
    if (which > SETTINGS) {
        fprintf(stderr, "usage: adapters adapters.c | adapters.cpp | cuda_work.c | settings.h\n");
        return 2;
    }
    made = which;
    bool good = true;
    for (size_t i = 0; op_at(i); i++)
        good &= check_row(op_at(i));
    if (!good)
        return 1;
    puts("/* Made by codegen/adapters.c: do not edit. */");
    (made == SETTINGS ? print_settings : print_kernels)();
    return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
