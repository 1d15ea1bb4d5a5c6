/* Writes main.c, outputs.inc and in: what an emitted net.c is compiled and run with. */
#include "tests/random/models.h"

#include <stdlib.h>
#include <string.h>

/* Reads tensors as records (name, a zero byte, elements), calls, and writes what can be seen: when,
 * name, a zero byte after each, the number of bytes, the bytes. */
static const char main_text[] =
    "#include \"net.h\"\n"
    "#include <stdio.h>\n"
    "#include <stdlib.h>\n"
    "#include <string.h>\n"
    "static net m;\n"
    "static FILE *to;\n"
    "static void put(const char *when, const char *name, const void *data, uint64_t bytes)\n"
    "{\n"
    "    fprintf(to, \"%s%c%s%c\", when, 0, name, 0);\n"
    "    fwrite(&bytes, 8, 1, to);\n"
    "    fwrite(data, 1, bytes, to);\n"
    "}\n"
    "static const char *named(const char *call, int step)\n"
    "{\n"
    "    static char name[20];\n"
    "    sprintf(name, \"%s %d\", call, step);\n"
    "    return name;\n"
    "}\n"
    "static const void *find_output(const char *name)\n"
    "{\n"
    "#define OUTPUT(n) if (strcmp(name, #n) == 0) return net_##n(&m);\n"
    "#include \"outputs.inc\"\n"
    "    return NULL;\n"
    "}\n"
    "static void put_all(const char *when, int outputs)\n"
    "{\n"
    "    size_t count;\n"
    "    const net_tensor *t = net_tensors(&count);\n"
    "    for (size_t i = 0; i < count; i++) {\n"
    "        if (t[i].kind == NET_OUTPUT && outputs && find_output(t[i].name))\n"
    "            put(when, t[i].name, find_output(t[i].name), t[i].bytes);\n"
    "        if ((t[i].kind == NET_PARAM || t[i].kind == NET_STATE) && !outputs)\n"
    "            put(when, t[i].name, m.arena + t[i].offset, t[i].bytes);\n"
    "    }\n"
    "}\n"
    "static int load(void)\n"
    "{\n"
    "    size_t count;\n"
    "    const net_tensor *t = net_tensors(&count);\n"
    "    FILE *in = fopen(\"in\", \"rb\");\n"
    "    char name[512];\n"
    "    uint64_t bytes;\n"
    "    for (int c, n = 0; in && (c = getc(in)) != EOF;) {\n"
    "        name[n++] = (char)c;\n"
    "        if (c != 0)\n"
    "            continue;\n"
    "        n = 0;\n"
    "        if (fread(&bytes, 8, 1, in) != 1)\n"
    "            return 0;\n"
    "        void *data = malloc(bytes);\n"
    "        if (fread(data, 1, bytes, in) != bytes)\n"
    "            return 0;\n"
    "        for (size_t i = 0; i < count; i++)\n"
    "            if (strcmp(t[i].name, name) == 0 && t[i].kind != NET_OUTPUT && t[i].bytes == "
    "bytes)\n"
    "                memcpy(m.arena + t[i].offset, data, bytes);\n"
    "        free(data);\n"
    "    }\n"
    "    return in != NULL;\n"
    "}\n"
    "int main(int argc, char **argv)\n"
    "{\n"
    "    unsigned char *block = malloc(NET_ARENA_BYTES + 64);\n"
    "    unsigned char *arena = block + (64 - (uintptr_t)block % 64);\n"
    "    float loss;\n"
    "    memset(block, 0xff, NET_ARENA_BYTES + 64);\n"
    "    to = fopen(\"out\", \"wb\");\n"
    "    if (!to || net_init(&m, arena, NET_ARENA_BYTES) != NET_OK)\n"
    "        return 1;\n"
    "    net_reset(&m, 1);\n"
    "    net_schedule(&m, NET_CONSTANT, 0, 0, 0);\n"
    "    net_set_lr(&m, 0.01);\n"
    "    net_threads(&m, argc > 1 ? atoi(argv[1]) : 1);\n"
    "    if (!load())\n"
    "        return 1;\n"
    "    put_all(\"nothing\", 1);\n"
    "    for (int step = 0; step <= STEPS; step++) {\n"
    "#ifdef FORWARD\n"
    "        if (net_forward(&m) != NET_OK)\n"
    "            return 2;\n"
    "        put_all(named(\"forward\", step), 1);\n"
    "#endif\n"
    "        if (net_eval(&m, &loss) != NET_OK)\n"
    "            return 2;\n"
    "        put(named(\"eval\", step), \"loss\", &loss, 4);\n"
    "        put_all(named(\"eval\", step), 1);\n"
    "        if (step == STEPS)\n"
    "            break;\n"
    "        if (net_step(&m, &loss) != NET_OK)\n"
    "            return 2;\n"
    "        put(named(\"step\", step), \"loss\", &loss, 4);\n"
    "        put_all(named(\"step\", step), 0);\n"
    "        put_all(named(\"step\", step), 1);\n"
    "    }\n"
    "    return fclose(to) != 0;\n"
    "}\n";

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0) {
        perror(path);
        exit(2);
    }
}

void harness_write(Arena *arena, const Graph *g)
{
    char *outputs = arena_printf(arena, "%s", "");
    for (size_t i = 0; i < g->output.count; i++)
        if (!g->output.at[i].loss && model_makes(g, &g->output.at[i], PROGRAM_FORWARD))
            outputs = arena_printf(arena, "%sOUTPUT(%s)\n", outputs, g->output.at[i].name);
    write_text("outputs.inc", outputs);
    write_text("main.c",
               arena_printf(arena, "%s%s", *outputs ? "#define FORWARD\n" : "", main_text));
    FILE *file = fopen("in", "wb");
    for (Id v = 0; file && v < g->value.count; v++) {
        const Value *value = &g->value.at[v];
        if (!model_is_saved(value))
            continue;
        uint64_t bytes = value_bytes(value);
        void *data = arena_alloc(arena, bytes);
        model_fill(value, data);
        fprintf(file, "%s%c", value->name, 0);
        fwrite(&bytes, sizeof bytes, 1, file);
        fwrite(data, 1, bytes, file);
    }
    if (!file || fclose(file) != 0)
        exit(2);
}

Records harness_read(Arena *arena)
{
    Records records = {0};
    FILE *file = fopen("out", "rb");
    char name[2][512];
    int which = 0, length = 0;
    for (int c; file && (c = getc(file)) != EOF;) {
        name[which][length++] = (char)c;
        if (length == sizeof *name)
            break;
        if (c != 0)
            continue;
        length = 0;
        which = !which;
        if (which)
            continue;
        uint64_t bytes;
        if (fread(&bytes, sizeof bytes, 1, file) != 1 || bytes > 1 << 24)
            break;
        char *data = arena_alloc(arena, bytes);
        if (fread(data, 1, bytes, file) != bytes)
            break;
        records_add(arena, &records,
                    (Record){.when = arena_printf(arena, "%s", name[0]),
                             .name = arena_printf(arena, "%s", name[1]),
                             .count = bytes,
                             .data = data});
    }
    if (file)
        fclose(file);
    return records;
}
