/* A tool of the build: prints a C file that holds the text of the files it is given, so that
 * ./gplan carries the kernels it emits. The names of the files in the table begin after
 * "runtime/": c/softmax.h. */
#include <stdio.h>
#include <string.h>

/* As numbers, since C promises no more than 4095 characters in a string. */
static int print_file(const char *path, int number)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return 1;
    }
    printf("/* %s */\nstatic const char file_%d[] = {", path, number);
    int c, column = 0;
    while ((c = getc(file)) != EOF)
        printf("%s%d,", column++ % 24 == 0 ? "\n" : "", c);
    printf("0};\n\n");
    int failed = ferror(file);
    fclose(file);
    if (failed)
        fprintf(stderr, "%s: cannot be read\n", path);
    return failed;
}

static const char *key(const char *path)
{
    const char *start = strstr(path, "runtime/");
    return start ? start + strlen("runtime/") : path;
}

int main(int argc, char **argv)
{
    puts("/* Made by runtime/embed.c: do not edit. */\n"
         "#include \"runtime/runtime.h\"\n");
    for (int i = 1; i < argc; i++)
        if (print_file(argv[i], i))
            return 1;
    puts("static const struct {\n    const char *path, *text;\n} file[] = {");
    for (int i = 1; i < argc; i++)
        printf("    {\"%s\", file_%d},\n", key(argv[i]), i);
    puts("    {0},\n};\n\n"
         "const char *runtime_text(const char *path)\n"
         "{\n"
         "    for (size_t i = 0; file[i].path; i++)\n"
         "        if (strcmp(file[i].path, path) == 0)\n"
         "            return file[i].text;\n"
         "    return NULL;\n"
         "}");
    return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
