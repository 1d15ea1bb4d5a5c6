/* Files that nobody should be able to hurt us with: cut, changed, absurd. The models are written
 * here, field by field. */
#define _DEFAULT_SOURCE /* mkstemps */
#include "frontend/onnx/onnx.h"
#include "frontend/onnx/proto.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    unsigned char at[1 << 16];
    size_t length;
} Bytes;

static void put_varint(Bytes *b, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        b->at[b->length++] = (unsigned char)(number | 0x80);
    b->at[b->length++] = (unsigned char)number;
}

static void put_int(Bytes *b, int field, int64_t number)
{
    put_varint(b, (uint64_t)field << 3);
    put_varint(b, (uint64_t)number);
}

static void put_bytes(Bytes *b, int field, const void *data, size_t length)
{
    put_varint(b, (uint64_t)field << 3 | 2);
    put_varint(b, length);
    memcpy(b->at + b->length, data, length);
    b->length += length;
}

static void put_text(Bytes *b, int field, const char *text)
{
    put_bytes(b, field, text, strlen(text));
}

static void put_message(Bytes *b, int field, const Bytes *message)
{
    put_bytes(b, field, message->at, message->length);
}

/* An input or an output: a float tensor of these dims. */
static void put_info(Bytes *graph, int field, const char *name, int rank, const int64_t *dim)
{
    Bytes shape = {.length = 0}, tensor = {.length = 0}, type = {.length = 0}, info = {.length = 0};
    for (int i = 0; i < rank; i++) {
        Bytes one = {.length = 0};
        put_int(&one, 1, dim[i]);
        put_message(&shape, 1, &one);
    }
    put_int(&tensor, 1, ELEM_FLOAT);
    put_message(&tensor, 2, &shape);
    put_message(&type, 1, &tensor);
    put_text(&info, 1, name);
    put_message(&info, 2, &type);
    put_message(graph, field, &info);
}

static void put_node(Bytes *graph, const char *op, const char *a, const char *b, const char *out)
{
    Bytes node = {.length = 0};
    put_text(&node, 1, a);
    if (b)
        put_text(&node, 1, b);
    put_text(&node, 2, out);
    put_text(&node, 3, "n");
    put_text(&node, 4, op);
    put_message(graph, 1, &node);
}

static void put_weight(Bytes *graph, const char *name, int64_t count, size_t bytes)
{
    Bytes tensor = {.length = 0};
    unsigned char data[256] = {0};
    put_int(&tensor, 1, count);
    put_int(&tensor, 2, ELEM_FLOAT);
    put_text(&tensor, 8, name);
    put_bytes(&tensor, 9, data, bytes);
    put_message(graph, 5, &tensor);
}

static void put_external(Bytes *graph, const char *location, const char *offset)
{
    Bytes tensor = {.length = 0}, place = {.length = 0}, start = {.length = 0};
    put_int(&tensor, 1, 4);
    put_int(&tensor, 2, ELEM_FLOAT);
    put_text(&tensor, 8, "w");
    put_text(&place, 1, "location");
    put_text(&place, 2, location);
    put_message(&tensor, 13, &place);
    put_text(&start, 1, "offset");
    put_text(&start, 2, offset);
    put_message(&tensor, 13, &start);
    put_int(&tensor, 14, 1);
    put_message(graph, 5, &tensor);
}

static Bytes model_of(const Bytes *graph)
{
    Bytes model = {.length = 0}, opset = {.length = 0};
    put_int(&model, 1, 8);
    put_message(&model, 7, graph);
    put_int(&opset, 2, 17);
    put_message(&model, 8, &opset);
    return model;
}

static const int64_t four[] = {4};

/* y = relu(x + w) */
static Bytes small_graph(void)
{
    Bytes graph = {.length = 0};
    put_node(&graph, "Add", "x", "w", "s");
    put_node(&graph, "Relu", "s", NULL, "y");
    put_weight(&graph, "w", 4, 16);
    put_info(&graph, 11, "x", 1, four);
    put_info(&graph, 12, "y", 1, four);
    return graph;
}

static char folder[] = "/tmp/onnx_reader_XXXXXX";

/* What gplan says of a file, or "" where it takes it. */
static const char *say(const unsigned char *data, size_t length)
{
    static char text[1 << 14];
    char path[64];
    if (strstr(folder, "XXXXXX"))
        cr_assert(mkdtemp(folder));
    mkdir(folder, 0700);
    snprintf(path, sizeof path, "%s/m.onnx", folder);
    FILE *file = fopen(path, "wb"), *log = tmpfile();
    cr_assert(file && log);
    cr_assert_eq(fwrite(data, 1, length, file), length);
    fclose(file);
    Arena *arena = arena_new();
    Diag *diag = diag_new(arena, log, false);
    OnnxImport *import = onnx_import(arena, diag, path, &(OnnxOptions){.quiet = true});
    cr_assert_eq(import == NULL, diag_errors(diag) > 0);
    if (import)
        onnx_end(import);
    rewind(log);
    text[fread(text, 1, sizeof text - 1, log)] = 0;
    fclose(log);
    arena_free(arena);
    unlink(path);
    rmdir(folder); /* where nothing else is in it */
    return text;
}

/* The text that a model becomes. */
static void becomes(const Bytes *graph, const char *words)
{
    Bytes model = model_of(graph);
    char path[] = "/tmp/onnx_layers_XXXXXX.onnx";
    int file = mkstemps(path, 5);
    cr_assert(file >= 0 && write(file, model.at, model.length) == (ssize_t)model.length);
    close(file);
    Arena *arena = arena_new();
    Diag *diag = diag_new(arena, stderr, false);
    OnnxImport *import = onnx_import(arena, diag, path, &(OnnxOptions){.quiet = true});
    unlink(path);
    cr_assert(import);
    cr_assert(strstr(import->source->text, words), "%s", import->source->text);
    const Ast *ast = parse(arena, diag, import->source);
    cr_assert(ast && lower(arena, diag, &(Model){.source = import->source, .ast = ast}));
    onnx_end(import);
    arena_free(arena);
}

static void put_layer(Bytes *graph, int layer, const char *from, const char *weight)
{
    char sum[16], out[16];
    snprintf(sum, sizeof sum, "s%d", layer);
    snprintf(out, sizeof out, "r%d", layer);
    put_node(graph, "Add", from, weight, sum);
    put_node(graph, "Relu", sum, NULL, out);
    put_weight(graph, weight, 4, 16);
}

static void refuses(const Bytes *graph, const char *words)
{
    Bytes model = model_of(graph);
    const char *said = say(model.at, model.length);
    cr_assert(strstr(said, words), "said \"%s\", which has no \"%s\"", said, words);
}

Test(onnx, takes_a_small_model)
{
    Bytes graph = small_graph(), model = model_of(&graph);
    cr_assert_str_eq(say(model.at, model.length), "");
}

Test(onnx, prints_equal_layers_as_a_repeat)
{
    Bytes graph = {.length = 0};
    for (int layer = 0; layer < 6; layer++) {
        char weight[16], from[16] = "x";
        snprintf(weight, sizeof weight, "h.%d.w", layer);
        if (layer)
            snprintf(from, sizeof from, "r%d", layer - 1);
        put_layer(&graph, layer, from, weight);
    }
    put_node(&graph, "Relu", "r5", NULL, "y");
    put_info(&graph, 11, "x", 1, four);
    put_info(&graph, 12, "y", 1, four);
    becomes(&graph, "repeat i in 0..6 {\n  param \"h.{i}.w\" : f32[4]\n");
}

Test(onnx, keeps_layers_apart_whose_names_do_not_grow_evenly)
{
    static const char *const weight[] = {"h.0.w", "h.1.w", "h.3.w", "h.4.w", "h.8.w", "h.9.w"};
    Bytes graph = {.length = 0};
    for (int layer = 0; layer < 6; layer++) {
        char from[16] = "x";
        if (layer)
            snprintf(from, sizeof from, "r%d", layer - 1);
        put_layer(&graph, layer, from, weight[layer]);
    }
    put_node(&graph, "Relu", "r5", NULL, "y");
    put_info(&graph, 11, "x", 1, four);
    put_info(&graph, 12, "y", 1, four);
    becomes(&graph, "\"h.8.w\" : f32[4]");
}

Test(onnx, keeps_names_that_are_no_identifiers)
{
    Bytes graph = {.length = 0};
    put_node(&graph, "Add", "x/\"{0}\\", "w:0", "a.b");
    put_node(&graph, "Relu", "a.b", NULL, "\xc3\xa9");
    put_weight(&graph, "w:0", 4, 16);
    put_info(&graph, 11, "x/\"{0}\\", 1, four);
    put_info(&graph, 12, "\xc3\xa9", 1, four);
    becomes(&graph, "input \"x/\\\"\\{0\\}\\\\\" : f32[4]");
}

Test(onnx, says_what_is_wrong_with_a_file_cut_at_any_byte)
{
    Bytes graph = small_graph(), model = model_of(&graph);
    size_t taken = 0;
    for (size_t length = 0; length < model.length; length++) {
        unsigned char *cut = malloc(length + 1); /* so that a byte too many is seen */
        memcpy(cut, model.at, length);
        const char *said = say(cut, length);
        taken += !*said;
        free(cut);
    }
    cr_assert_eq(taken, 0, "%zu of the cut files were taken", taken);
}

Test(onnx, survives_every_byte_being_another)
{
    Bytes graph = small_graph(), model = model_of(&graph);
    static const unsigned char others[] = {0x00, 0x7f, 0x80, 0xff};
    for (size_t i = 0; i < model.length; i++)
        for (size_t k = 0; k < sizeof others; k++) {
            unsigned char kept = model.at[i];
            model.at[i] = others[k];
            say(model.at, model.length);
            model.at[i] = kept;
        }
}

Test(onnx, refuses_a_cycle_and_a_name_that_is_missing_or_repeated)
{
    Bytes graph = {.length = 0};
    put_node(&graph, "Add", "x", "b", "a");
    put_node(&graph, "Relu", "a", NULL, "b");
    put_info(&graph, 11, "x", 1, four);
    put_info(&graph, 12, "b", 1, four);
    refuses(&graph, "reads \"b\", which nothing before it makes");

    graph.length = 0;
    put_node(&graph, "Relu", "x", NULL, "y");
    put_node(&graph, "Relu", "x", NULL, "y");
    put_info(&graph, 11, "x", 1, four);
    put_info(&graph, 12, "y", 1, four);
    refuses(&graph, "\"y\" is made twice");

    graph.length = 0;
    put_node(&graph, "Relu", "x", NULL, "y");
    put_info(&graph, 11, "x", 1, four);
    put_info(&graph, 12, "z", 1, four);
    refuses(&graph, "the output \"z\" is made by nothing");

    graph = small_graph();
    put_weight(&graph, "w", 4, 16);
    refuses(&graph, "the initializer \"w\" occurs twice");
}

Test(onnx, refuses_dims_that_cannot_be)
{
    static const int64_t wrong[] = {-7, 0, INT64_MAX, INT64_MIN};
    for (int i = 0; i < 4; i++) {
        Bytes graph = {.length = 0};
        put_node(&graph, "Relu", "x", NULL, "y");
        put_info(&graph, 11, "x", 1, &wrong[i]);
        put_info(&graph, 12, "y", 1, four);
        refuses(&graph, "error: ");
    }
    Bytes graph = small_graph();
    put_weight(&graph, "v", -1, 16);
    refuses(&graph, "a dimension is negative");
    graph = small_graph();
    put_weight(&graph, "v", INT64_MAX, 16);
    refuses(&graph, "\"v\" is too large");
    graph = small_graph();
    put_weight(&graph, "v", 5, 16);
    refuses(&graph, "its data are 4 numbers, its dims ask for 5");
}

Test(onnx, reads_external_data_from_the_models_own_folder_alone)
{
    char path[80];
    Bytes graph = {.length = 0};
    put_node(&graph, "Add", "x", "w", "y");
    put_info(&graph, 11, "x", 1, four);
    put_info(&graph, 12, "y", 1, four);
    const size_t plain = graph.length;
    static const char *const outside[] = {"/etc/passwd", "../up", "a/../../up", "", "a//b"};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        graph.length = plain;
        put_external(&graph, outside[i], "0");
        refuses(&graph, "it is outside the model's folder");
    }
    graph.length = plain;
    put_external(&graph, "none", "0");
    refuses(&graph, "the file \"none\": No such file");

    mkdir(folder, 0700);
    snprintf(path, sizeof path, "%s/link", folder);
    cr_assert_eq(symlink("/etc/passwd", path), 0);
    graph.length = plain;
    put_external(&graph, "link", "0");
    refuses(&graph, "the file \"link\": it is a link");
    unlink(path);

    mkdir(folder, 0700);
    snprintf(path, sizeof path, "%s/data", folder);
    FILE *file = fopen(path, "wb");
    cr_assert(file && fwrite((char[20]){0}, 1, 20, file) == 20 && fclose(file) == 0);
    graph.length = plain;
    put_external(&graph, "data", "4");
    Bytes model = model_of(&graph);
    cr_assert_str_eq(say(model.at, model.length), "");
    static const char *const beyond[] = {"5", "18446744073709551615", "-1", "x"};
    for (size_t i = 0; i < 4; i++) {
        graph.length = plain;
        put_external(&graph, "data", beyond[i]);
        refuses(&graph, i < 1 ? "does not hold its 16 bytes" : "error: ");
    }
    unlink(path);
    rmdir(folder);
}

Test(onnx, refuses_a_node_with_operands_without_end)
{
    Bytes graph = {.length = 0}, node = {.length = 0};
    for (int i = 0; i < 5000; i++)
        put_text(&node, 1, "x");
    put_text(&node, 2, "y");
    put_text(&node, 4, "Sum");
    put_message(&graph, 1, &node);
    put_info(&graph, 11, "x", 1, four);
    put_info(&graph, 12, "y", 1, four);
    refuses(&graph, "it has more than 4096 operands");
}

Test(onnx, refuses_graphs_that_are_nested_without_end)
{
    Bytes graph = {.length = 0};
    put_info(&graph, 11, "x", 1, four);
    for (int i = 0; i < 200; i++) {
        Bytes attribute = {.length = 0}, node = {.length = 0};
        put_text(&attribute, 1, "then_branch");
        put_message(&attribute, 6, &graph);
        put_text(&node, 1, "x");
        put_text(&node, 2, "y");
        put_text(&node, 4, "If");
        put_message(&node, 5, &attribute);
        graph.length = 0;
        put_message(&graph, 1, &node);
    }
    put_info(&graph, 11, "x", 1, four);
    put_info(&graph, 12, "y", 1, four);
    refuses(&graph, "error: ");
}

TestSuite(onnx, .timeout = 120);
