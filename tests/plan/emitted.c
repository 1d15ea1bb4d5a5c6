#include "tests/plan/emitted.h"
#include "codegen/codegen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reads and writes tensors as records: name, a zero byte, elements. */
static const char *const program =
    "#include \"net.h\"\n"
    "#include <stdio.h>\n"
    "#include <stdlib.h>\n"
    "#include <string.h>\n"
    "int main(void)\n"
    "{\n"
    "    static net m;\n"
    "    size_t count;\n"
    "    const net_tensor *t = net_tensors(&count);\n"
    "    void *arena = aligned_alloc(64, (NET_ARENA_BYTES + 127) / 64 * 64);\n"
    "    FILE *in = fopen(\"in\", \"rb\"), *out = fopen(\"out\", \"wb\");\n"
    "    if (!in || !out || net_init(&m, arena, NET_ARENA_BYTES) != NET_OK)\n"
    "        return 1;\n"
    "    net_reset(&m, 1);\n"
    "    net_set_lr(&m, 0.01);\n"
    "    char name[256];\n"
    "    for (int c, n = 0; (c = getc(in)) != EOF;) {\n"
    "        name[n++] = (char)c;\n"
    "        for (size_t i = 0; c == 0 && i < count; i++)\n"
    "            if (strcmp(t[i].name, name) == 0 && t[i].kind != NET_OUTPUT &&\n"
    "                fread(m.arena + t[i].offset, 1, t[i].bytes, in) != t[i].bytes)\n"
    "                return 1;\n"
    "        n = c == 0 ? 0 : n;\n"
    "    }\n"
    "    for (int step = 0; step < STEPS; step++)\n"
    "        if (net_step(&m, NULL) != NET_OK)\n"
    "            return 2;\n"
    "    if (net_forward(&m) != NET_OK)\n"
    "        return 2;\n"
    "    for (size_t i = 0; i < count; i++) {\n"
    "        fprintf(out, \"%s%c\", t[i].name, 0);\n"
    "        fwrite(m.arena + t[i].offset, 1, t[i].bytes, out);\n"
    "    }\n"
    "    return fclose(out) != 0;\n"
    "}\n";

static FILE *open_in(Arena *arena, const char *folder, const char *name, const char *how)
{
    FILE *file = fopen(arena_printf(arena, "%s/%s", folder, name), how);
    if (!file)
        abort();
    return file;
}

static void write_text(Arena *arena, const char *folder, const char *name, Text text)
{
    FILE *file = open_in(arena, folder, name, "w");
    fwrite(text.text, 1, text.length, file);
    fclose(file);
}

/* Inputs, parameters, constants and state that the plan holds, each once. */
static Id find_buffer(const Plan *plan, Id value)
{
    for (Id i = 0; i < plan->buffers; i++)
        if (plan->buffer[i].value == value)
            return i;
    return NONE;
}

static bool is_saved(const Plan *plan, Id v)
{
    const Value *value = &plan->graph->value.at[v];
    bool kind = value->kind == VALUE_INPUT || value->kind == VALUE_PARAM ||
                value->kind == VALUE_CONST || value->kind == VALUE_STATE;
    return kind && value->whole == NONE && find_buffer(plan, v) != NONE;
}

static void write_numbers(Arena *arena, const char *folder, const Plan *plan, uint64_t seed)
{
    FILE *file = open_in(arena, folder, "in", "wb");
    for (Id v = 0; v < plan->graph->value.count; v++) {
        const Value *value = &plan->graph->value.at[v];
        if (!is_saved(plan, v))
            continue;
        void *bytes = arena_alloc(arena, value_bytes(value));
        plain_fill(plan->graph, v, seed, bytes);
        fprintf(file, "%s%c", value->name, 0);
        fwrite(bytes, 1, value_bytes(value), file);
    }
    fclose(file);
}

static Id find_value(const Plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->graph->output.count; i++)
        if (!plan->graph->output.at[i].loss && strcmp(plan->graph->output.at[i].name, name) == 0)
            return plan->graph->output.at[i].use.value;
    return graph_find(plan->graph, name);
}

static const char *compare(Arena *arena, const char *folder, const Plan *plan,
                           const PlainRun *plain)
{
    FILE *file = open_in(arena, folder, "out", "rb");
    const char *wrong = NULL;
    char name[256];
    size_t length = 0, seen = 0;
    for (int c; !wrong && (c = getc(file)) != EOF && length < sizeof name;) {
        name[length++] = (char)c;
        if (c != 0)
            continue;
        Id value = find_value(plan, name);
        size_t bytes = value == NONE ? 0 : value_bytes(&plan->graph->value.at[value]);
        void *got = arena_alloc(arena, bytes + 1);
        if (value == NONE || fread(got, 1, bytes, file) != bytes)
            wrong = arena_printf(arena, "%s is not all there", name);
        else if (!plain_same(plain, value, got))
            wrong = arena_printf(arena, "%s differs in the emitted program", name);
        length = 0;
        seen++;
    }
    fclose(file);
    return wrong ? wrong : seen ? NULL : "the emitted program has no tensors";
}

const char *emitted_differs(Arena *arena, const Plan *plan, const PlainRun *plain, uint64_t seed,
                            uint64_t steps)
{
    const char *base = getenv("TMPDIR");
    char *folder = arena_printf(arena, "%s/gplan.XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(folder))
        return "no temporary folder";
    Target target = target_make(target_find("c"), 1);
    EmitOptions how = {.header = "net.h", .prefix = "net", .target = &target};
    write_text(arena, folder, "net.c", emit_source(plan, &how));
    write_text(arena, folder, "net.h", emit_header(plan, &how));
    write_text(arena, folder, "main.c", (Text){program, strlen(program)});
    write_numbers(arena, folder, plan, seed);
    int status = system(arena_printf(arena,
                                     "cd %s && gcc -std=c11 -O1 -ffp-contract=off -w "
                                     "-DGPLAN_POISON -DSTEPS=%llu main.c net.c -lm -o net && ./net",
                                     folder, (unsigned long long)steps));
    const char *wrong = status == 0 ? compare(arena, folder, plan, plain)
                                    : "the emitted program does not compile or run";
    if (!wrong && system(arena_printf(arena, "rm -r %s", folder)) != 0)
        wrong = "the temporary folder cannot be removed";
    return wrong;
}
