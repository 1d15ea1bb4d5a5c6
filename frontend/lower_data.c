/* The data statement: where samples come from, which inputs they fill, and how.
 *
 *     data train = images("photos/train", flip = true) -> pictures, labels
 *
 * Requires: the inputs, declared above it. Leaves: a row of Graph.data with every setting at its
 * value, and the inputs marked as fed. A model that is not trained reads no data: its statements
 * are checked, and leave nothing.
 */
#include "frontend/lower.h"

#include <string.h>

/* What a statement of each format takes. */
static const struct {
    const char *name;
    int least, most; /* inputs */
    int paths;       /* 0: none; 1: one; MAX_FED: one for each input */
    const char *takes;
    const char *usage;
} formats[DATA_FORMATS] = {
    [DATA_IMAGES] = {"images", 1, 2, 1, "resize crop flip width progressive",
                     "images(\"FOLDER\") -> pictures, labels"},
    [DATA_IDX] = {"idx", 1, MAX_FED, MAX_FED, "flip shift",
                  "idx(\"images-idx3-ubyte\", \"labels-idx1-ubyte\") -> images, labels"},
    [DATA_NPY] = {"npy", 1, MAX_FED, MAX_FED, "flip shift", "npy(\"x.npy\", \"y.npy\") -> x, y"},
    [DATA_CSV] = {"csv", 1, MAX_FED, 1, "columns", "csv(\"table.csv\") -> x, y"},
    [DATA_RECORDS] = {"records", 1, MAX_FED, 1, "flip shift header",
                      "records(\"file.bin\") -> labels, images"},
    [DATA_TOKENS] = {"tokens", 1, 2, 1, "header stride", "tokens(\"text.bin\") -> tokens, next"},
    [DATA_SAFETENSORS] = {"safetensors", 1, MAX_FED, 1, "keys flip shift",
                          "safetensors(\"data.safetensors\") -> x, y"},
    [DATA_CALLBACK] = {"callback", 1, MAX_FED, 0, "", "callback() -> x, y"},
};

static const char common[] = "shuffle split split_seed repeat last corrupt classes";

/* Their values where nothing is given; shuffle and last are eval's. */
static const struct {
    Setting is;
    double otherwise;
} settings[DATA_SETTINGS] = {
    [DATA_SHUFFLE] = {{"shuffle", ARG_BOOL, 0, SETTING_ANY, NULL}, 0},
    [DATA_SPLIT] = {{"split", ARG_FLOAT, 0, 1, NULL}, 0},
    [DATA_SPLIT_SEED] = {{"split_seed", ARG_INT, 0, 0x1p53, NULL}, 0},
    [DATA_REPEAT] = {{"repeat", ARG_INT, 1, 0x1p31, NULL}, 0},
    [DATA_LAST] = {{"last", ARG_WORD, 0, 0, "drop pad"}, DATA_PAD},
    [DATA_CORRUPT] = {{"corrupt", ARG_WORD, 0, 0, "stop skip"}, DATA_STOP},
    [DATA_CLASSES] = {{"classes", ARG_INT, 1, 0x1p31, NULL}, 0},
    [DATA_RESIZE] = {{"resize", ARG_WORD, 0, 0, "cover stretch"}, DATA_COVER},
    [DATA_CROP] = {{"crop", ARG_FLOAT, 0, 1.0000001, NULL}, 0},
    [DATA_FLIP] = {{"flip", ARG_BOOL, 0, SETTING_ANY, NULL}, 0},
    [DATA_SHIFT] = {{"shift", ARG_INT, 0, 65536, NULL}, 0},
    [DATA_WIDTH] = {{"width", ARG_INT, 1, 65536, NULL}, 4096},
    [DATA_PROGRESSIVE] = {{"progressive", ARG_INT, 0, 0x1p31, NULL}, 0},
    [DATA_HEADER] = {{"header", ARG_INT, 0, 0x1p53, NULL}, 0},
    [DATA_STRIDE] = {{"stride", ARG_INT, 1, 0x1p53, NULL}, 0},
};

const char *data_format_name(DataFormat format)
{
    return formats[format].name;
}

const char *data_setting_name(DataSetting setting)
{
    return settings[setting].is.name;
}

const char *data_setting_words(DataSetting setting)
{
    return settings[setting].is.words;
}

const DataStmt *data_find(const Graph *g, const char *name)
{
    for (size_t i = 0; i < g->data.count; i++)
        if (strcmp(g->data.at[i].name, name) == 0)
            return &g->data.at[i];
    return NULL;
}

/* ---- Arguments ------------------------------------------------------------------------------ */

static bool find_format(Lower *l, Name name, uint8_t *format)
{
    const char *names = "";
    for (int i = 0; i < DATA_FORMATS; i++) {
        *format = (uint8_t)i;
        if (strcmp(formats[i].name, name.text) == 0)
            return true;
        names = arena_printf(l->arena, "%s%s%s", names, i ? " " : "", formats[i].name);
    }
    return setting_unknown(l, name, "unknown format", names);
}

static bool take_path(Lower *l, DataStmt *data, const Expr *expr)
{
    int most = formats[data->format].paths == MAX_FED ? data->inputs : formats[data->format].paths;
    if (expr->kind != EXPR_STRING)
        return diag_error(l->diag, expr->span, "a file is a string, all else has a name: %s",
                          formats[data->format].usage);
    if (data->paths == most) {
        diag_error(l->diag, expr->span, "%s takes %s", formats[data->format].name,
                   most == 0   ? "no file: the program gives it a function"
                   : most == 1 ? "one file or folder"
                               : arena_printf(l->arena, "%d files, one for each input", most));
        return false;
    }
    if (!*expr->text)
        return diag_error(l->diag, expr->span, "the name of a file is empty");
    data->path[data->paths++] = expr->text;
    return true;
}

/* columns = ["x", "y"], keys = ["images", "labels"]: one for each input. */
static bool take_keys(Lower *l, DataStmt *data, Name name, const Expr *expr)
{
    if (expr->kind != EXPR_LIST || expr->arg.count != data->inputs) {
        diag_error(l->diag, expr->span, "%s must be a list of %d strings, one for each input",
                   name.text, data->inputs);
        return false;
    }
    for (size_t i = 0; i < expr->arg.count; i++) {
        const Expr *item = expr->arg.at[i].value;
        if (item->kind != EXPR_STRING || !*item->text)
            return diag_error(l->diag, item->span, "%s must be strings", name.text);
        data->key[i] = item->text;
    }
    return true;
}

static bool take_setting(Lower *l, Frame *frame, DataStmt *data, Name name, const Expr *expr)
{
    const char *takes = arena_printf(l->arena, "%s %s", formats[data->format].takes, common);
    takes += strspn(takes, " ");
    if (word_place(takes, name.text) < 0)
        return setting_unknown(
            l, name, arena_printf(l->arena, "%s has no setting", formats[data->format].name),
            takes);
    if (strcmp(name.text, "columns") == 0 || strcmp(name.text, "keys") == 0)
        return take_keys(l, data, name, expr);
    int i = 0;
    while (strcmp(settings[i].is.name, name.text) != 0)
        i++; /* only names of the tables above come here */
    if (data->setting[i].given)
        return diag_error(l->diag, name.span, "%s is set twice", name.text);
    return setting_eval(l, frame, &settings[i].is, expr, &data->setting[i]);
}

static bool take_arguments(Lower *l, Frame *frame, const Stmt *stmt, DataStmt *data)
{
    bool good = true, train = strcmp(data->name, "train") == 0;
    for (size_t i = 0; i < stmt->arg.count; i++) {
        const Argument *arg = &stmt->arg.at[i];
        good &= arg->name.text ? take_setting(l, frame, data, arg->name, arg->value)
                               : take_path(l, data, arg->value);
    }
    for (int i = 0; i < DATA_SETTINGS; i++)
        if (!data->setting[i].given)
            data->setting[i].number = settings[i].otherwise;
    if (train && !data->setting[DATA_SHUFFLE].given)
        data->setting[DATA_SHUFFLE].number = 1;
    if (train && !data->setting[DATA_LAST].given)
        data->setting[DATA_LAST].number = DATA_DROP;
    int wanted =
        formats[data->format].paths == MAX_FED ? data->inputs : formats[data->format].paths;
    if (good && data->paths < wanted) {
        diag_error(l->diag, stmt->format.span, "%s needs %s", stmt->format.text,
                   wanted == 1 ? "a file or folder" : "a file for each input");
        diag_hint(l->diag, "%s", formats[data->format].usage);
        return false;
    }
    return good;
}

/* ---- Inputs --------------------------------------------------------------------------------- */

/* The input of that name, of this micro-batch where it is one. */
static Id find_input(Lower *l, Frame *frame, Name name)
{
    const Binding *binding = frame_find(frame, name.text);
    if (!binding) {
        unknown_name(l, frame, name.text, name.span);
        return NONE;
    }
    if (binding->val.kind == VAL_POISON)
        return NONE;
    if (binding->kind != BOUND_INPUT) {
        diag_error(l->diag, name.span, "%s is no input, so data cannot fill it", name.text);
        diag_note(l->diag, binding->span, "it is declared here");
        return NONE;
    }
    return graph_find(l->g, name.text);
}

/* The batch is the first axis of what data fills. */
static bool check_batch(Lower *l, Name name, const Value *value)
{
    const Dimension *batch = NULL;
    for (size_t i = 0; i < l->g->dimension.count; i++)
        if (l->g->dimension.at[i].batch)
            batch = &l->g->dimension.at[i];
    if (!batch) {
        diag_error(l->diag, name.span, "data fills batches, but the model has no batch dimension");
        diag_hint(l->diag, "mark it in the model line: model %s(batch B = 32)", l->g->name);
        return false;
    }
    if (value->rank >= 1 && (value->dim[0] == batch->value || value->fed))
        return true;
    diag_error(l->diag, name.span, "%s is %s: its first axis must be the batch, %s = %lld",
               name.text, shape_text(l->arena, (Dtype)value->dtype, value->rank, value->dim),
               batch->name, (long long)batch->value);
    diag_note(l->diag, value->span, "it is declared here");
    return false;
}

static bool wrong_input(Lower *l, Name name, const Value *value, const char *wanted)
{
    diag_error(l->diag, name.span, "%s is %s, but it is filled with %s", name.text,
               shape_text(l->arena, (Dtype)value->dtype, value->rank, value->dim), wanted);
    diag_note(l->diag, value->span, "it is declared here");
    return false;
}

static bool is_integer(const Value *value)
{
    return !dtype_is_float((Dtype)value->dtype) && value->dtype != BOOL;
}

/* What the format has for input i. */
static bool check_type(Lower *l, const DataStmt *data, int i, Name name, const Value *value)
{
    switch (data->format) {
    case DATA_IMAGES:
        if (i == 1)
            return (value->rank == 1 && is_integer(value)) ||
                   wrong_input(l, name, value, "a class: an integer for each sample, i32[B]");
        bool channels = value->rank == 3;
        for (int k = 1; k <= 3 && value->rank == 4; k += 2)
            channels |= value->dim[k] == 1 || value->dim[k] == 3;
        if (value->dtype != U8 || !channels) {
            wrong_input(l, name, value, "the bytes of images: u8[B, 3, H, W] or u8[B, H, W, 3]");
            diag_hint(l->diag, "%s / 255.0 is f32 from 0 to 1, computed where it is read",
                      name.text);
            return false;
        }
        return true;
    case DATA_TOKENS:
        return ((value->dtype == U16 || value->dtype == U32) && value->rank == 2) ||
               wrong_input(l, name, value,
                           "tokens as their file has them: u16[B, T] or u32[B, T]; cast them");
    default:
        return true;
    }
}

/* flip and shift move pixels. */
static bool check_pixels(Lower *l, const Stmt *stmt, const DataStmt *data)
{
    bool moves = data->format != DATA_IMAGES &&
                 (data->setting[DATA_FLIP].number != 0 || data->setting[DATA_SHIFT].number != 0);
    for (int i = 0; i < data->inputs && moves; i++)
        if (l->g->value.at[data->input[i]].rank >= 3)
            return true;
    if (moves)
        diag_error(l->diag, stmt->format.span,
                   "flip and shift are for images, and no input here is [B, H, W] or more");
    return !moves;
}

static bool take_inputs(Lower *l, Frame *frame, const Stmt *stmt, DataStmt *data)
{
    bool good = true;
    for (int i = 0; i < data->inputs; i++) {
        Name name = stmt->target.at[i];
        data->input[i] = find_input(l, frame, name);
        for (int k = 0; k < i && data->input[i] != NONE; k++)
            if (data->input[k] == data->input[i])
                good = diag_error(l->diag, name.span, "%s is filled twice", name.text);
        if (data->input[i] == NONE) {
            good = false;
            continue;
        }
        const Value *value = &l->g->value.at[data->input[i]];
        good &= check_batch(l, name, value) && check_type(l, data, i, name, value);
    }
    if (good && data->format == DATA_TOKENS && data->inputs == 2) {
        const Value *a = &l->g->value.at[data->input[0]], *b = &l->g->value.at[data->input[1]];
        if (a->dtype != b->dtype || a->dim[1] != b->dim[1])
            return diag_error(l->diag, stmt->target.at[1].span,
                              "%s and %s must be alike: one is the other, a token further on",
                              stmt->target.at[0].text, stmt->target.at[1].text);
    }
    return good && check_pixels(l, stmt, data);
}

/* ---- The statement --------------------------------------------------------------------------- */

static bool check_count(Lower *l, const Stmt *stmt, int format)
{
    int count = (int)stmt->target.count;
    if (count >= formats[format].least && count <= formats[format].most)
        return true;
    diag_error(l->diag, stmt->target.at[0].span, "%s fills %d to %d inputs, not %d",
               formats[format].name, formats[format].least, formats[format].most, count);
    diag_hint(l->diag, "%s", formats[format].usage);
    return false;
}

static void mark_fed(Lower *l, Frame *frame, const Stmt *stmt, const DataStmt *data)
{
    for (int i = 0; i < data->inputs; i++) {
        l->g->value.at[data->input[i]].fed = true;
        const Binding *binding = frame_find(frame, stmt->target.at[i].text);
        l->g->value.at[binding->val.use.value].fed = true; /* of a micro-batch */
    }
}

void lower_data(Lower *l, Frame *frame, const Stmt *stmt)
{
    DataStmt data = {.name = stmt->name.text, .span = stmt->span};
    if (strcmp(data.name, "train") != 0 && strcmp(data.name, "eval") != 0) {
        setting_unknown(l, stmt->name, "data is for train or eval, not", "train eval");
        return;
    }
    if (!find_format(l, stmt->format, &data.format) || !check_count(l, stmt, data.format))
        return;
    data.inputs = (uint8_t)stmt->target.count;
    bool good = take_inputs(l, frame, stmt, &data);
    good &= take_arguments(l, frame, stmt, &data);
    const DataStmt *other = data_find(l->g, data.name);
    if (other) {
        diag_error(l->diag, stmt->name.span, "data %s is stated twice", data.name);
        diag_note(l->diag, other->span, "first here");
        return;
    }
    if (!good)
        return;
    if (model_trains(l->from))
        mark_fed(l, frame, stmt, &data);
    ARRAY_PUSH(l->arena, &l->g->data, data);
}

/* Evaluation runs on the slots that training runs on. */
static void check_same(Lower *l, const DataStmt *train, const DataStmt *eval)
{
    bool same = train->inputs == eval->inputs;
    for (int i = 0; same && i < train->inputs; i++)
        same = train->input[i] == eval->input[i];
    if (same)
        return;
    diag_error(l->diag, eval->span, "data eval must fill the inputs of data train, in its order");
    diag_note(l->diag, train->span, "data train is here");
}

void check_data(Lower *l)
{
    Graph *g = l->g;
    const DataStmt *train = data_find(g, "train"), *eval = data_find(g, "eval");
    if (!g->data.count)
        return;
    if (!g->train.present && !diag_errors(l->diag))
        diag_error(l->diag, g->data.at[0].span,
                   "data needs a train statement: training and its evaluation read it");
    if (!train) {
        diag_error(l->diag, eval->span, "data eval needs data train beside it");
        diag_hint(l->diag, "data train = ...");
    } else if (eval) {
        check_same(l, train, eval);
        if (eval->setting[DATA_SPLIT].number != 0)
            diag_error(l->diag, eval->span,
                       "split is a setting of data train: without a data "
                       "eval, what it holds out is evaluated");
        if (train->setting[DATA_SPLIT].number != 0) {
            diag_error(l->diag, train->span,
                       "what split holds out is for evaluation, which has "
                       "data of its own");
            diag_note(l->diag, eval->span, "data eval is here");
        }
    }
    if (!model_trains(l->from))
        g->data.count = 0;
}
