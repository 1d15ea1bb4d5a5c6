/* A tool of the build: prints a C file with every kernel behind runtime_kernel(), from the rows.
 *
 * A kernel row gets an adapter from a list of settings to the kernel's own struct; an elementwise
 * row gets a loop over its expression. The file is compiled once as it is, for tests and for the
 * workspace of the C target, and once with GP_REAL as double, for gradient tests.
 *
 * A row without a kernel stops the build by name. */
#include "frontend/frontend.h"
#include "runtime/runtime.h"

#include <string.h>

static bool is_elementwise(const OpRow *op)
{
    return op->flags & OP_ELEMENTWISE;
}

static bool has_kernel(const OpRow *op)
{
    return !op->build && !is_elementwise(op);
}

static const char *kernel_file(const OpRow *op)
{
    static char path[256];
    snprintf(path, sizeof path, "c/%s.h", op->kernel ? op->kernel : op->name);
    return path;
}

/* Whether the kernel's file has `macro(name)` at the start of a line. */
static bool defines(const OpRow *op, const char *macro)
{
    const char *text = runtime_text(kernel_file(op));
    char wanted[256];
    snprintf(wanted, sizeof wanted, "%s(%s)", macro, op->name);
    for (const char *at = text; at && (at = strstr(at, wanted)); at++)
        if (at == text || at[-1] == '\n')
            return true;
    return false;
}

static bool is_setting(const Arg *arg)
{
    return arg->kind != ARG_TENSOR && arg->kind != ARG_STRING && !(arg->flags & ARG_FRONT);
}

static int settings(const OpRow *op)
{
    int count = 0;
    for (int i = 0; i < MAX_ARGS && op->args[i].name; i++)
        count += is_setting(&op->args[i]);
    return count;
}

static void print_field(const Arg *arg, int i)
{
    printf(" .%s = ", arg->name);
    if (arg->kind == ARG_FLOAT) {
        printf("s[%d].number,", i);
    } else if (arg->kind == ARG_INTS) {
        for (int k = 0; k < arg->count; k++)
            printf("%ss[%d].list[%d]", k ? ", " : "{", i, k);
        printf("},");
    } else {
        printf("(int64_t)s[%d].number,", i);
    }
}

static void print_attr(const OpRow *op)
{
    if (settings(op) == 0) {
        puts("    (void)s;");
        return;
    }
    printf("    const gp_%s_attr attr = {", op->name);
    for (int i = 0; i < MAX_ARGS && op->args[i].name; i++)
        if (is_setting(&op->args[i]))
            print_field(&op->args[i], i);
    puts("};\n    call->attr = &attr;");
}

static void print_adapter(const OpRow *op, const char *result, const char *suffix)
{
    printf("static %s %s%s(gp_call *call, const gp_setting *s)\n{\n", result, op->name,
           *suffix ? suffix : "_run");
    print_attr(op);
    printf("    %s result = gp_%s%s(call);\n", result, op->name, suffix);
    puts("    call->attr = NULL;\n    return result;\n}\n");
}

static void print_kernel(const OpRow *op)
{
    print_adapter(op, "int", "");
    if (defines(op, "GP_WORKSPACE"))
        print_adapter(op, "size_t", "_workspace");
}

/* The loop computes in the type that C's own conversions would give the expression. */
static void print_elementwise(const OpRow *op)
{
    printf("static int %s_run(gp_call *call, const gp_setting *s)\n{\n", op->name);
    for (int i = 0; i < MAX_ARGS && op->args[i].name; i++)
        if (is_setting(&op->args[i])) {
            const char *type = op->args[i].kind == ARG_FLOAT ? "gp_real" : "int64_t";
            printf("    const %s %s = (%s)s[%d].number;\n    (void)%s;\n", type, op->args[i].name,
                   type, i, op->args[i].name);
        }
    puts("    (void)s;");
    if (!(op->flags & OP_FLOAT)) {
        printf("    if (each_type(call) == GP_I32)\n        EACH(int32_t, int, %s);\n", op->expr);
        printf("    if (each_type(call) == GP_I64)\n        EACH(int64_t, int, %s);\n", op->expr);
    }
    printf("    EACH(gp_real, real, %s);\n}\n\n", op->expr);
}

static bool check_row(const OpRow *op)
{
    if (is_elementwise(op) && !op->expr) {
        fprintf(stderr, "op %s: elementwise, but it has no expression\n", op->name);
        return false;
    }
    if (has_kernel(op) && !defines(op, "GP_KERNEL")) {
        fprintf(stderr, "op %s: no kernel: runtime/%s must define GP_KERNEL(%s)\n", op->name,
                kernel_file(op), op->name);
        return false;
    }
    return true;
}

int main(void)
{
    bool good = true;
    for (size_t i = 0; op_at(i); i++)
        good &= check_row(op_at(i));
    if (!good)
        return 1;
    puts("/* Made by codegen/adapters.c: do not edit. */\n#include \"runtime/runtime.h\"\n");
    /* The math of expressions and the numbers of random ones. */
    puts("#include \"runtime/c/math.h\"\n#include \"runtime/c/rng.h\"\n"
         "#include \"runtime/each.h\"");
    for (size_t i = 0; op_at(i); i++)
        if (has_kernel(op_at(i)) || (is_elementwise(op_at(i)) && op_at(i)->kernel))
            printf("#include \"runtime/%s\"\n", kernel_file(op_at(i)));
    puts("");
    for (size_t i = 0; op_at(i); i++)
        if (has_kernel(op_at(i)))
            print_kernel(op_at(i));
        else if (is_elementwise(op_at(i)))
            print_elementwise(op_at(i));
    puts("static const gp_kernel kernel[] = {");
    for (size_t i = 0; op_at(i); i++) {
        const OpRow *op = op_at(i);
        if (op->build)
            continue;
        bool workspace = has_kernel(op) && defines(op, "GP_WORKSPACE");
        printf("    {\"%s\", %s_run, %s%s},\n", op->name, op->name, workspace ? op->name : "NULL",
               workspace ? "_workspace" : "");
    }
    puts("    {0},\n};\n\n"
         "const gp_kernel *runtime_kernel(const char *op)\n"
         "{\n"
         "    for (size_t i = 0; kernel[i].op; i++)\n"
         "        if (strcmp(kernel[i].op, op) == 0)\n"
         "            return &kernel[i];\n"
         "    return NULL;\n"
         "}");
    return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
