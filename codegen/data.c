/* Data statements as the runtime takes them: what they need in memory, and their text. */
#include "runtime/c/data.h"
#include "codegen/internal.h"

#include <string.h>

typedef struct {
    gp_data_set set;
    gp_data_field field[GP_DATA_FIELDS];
} DataSet;

_Static_assert((int)MAX_FED == GP_DATA_FIELDS, "the frontend and the runtime count fields alike");
_Static_assert((int)DATA_PAD == GP_DATA_PAD && (int)DATA_SKIP == GP_DATA_SKIP,
               "the frontend and the runtime number words alike");

/* The runtime's source of each format, and its file; and the seconds that a byte takes about. */
static const struct {
    const char *source;
    double seconds;
} rows[DATA_FORMATS] = {
    [DATA_IMAGES] = {"folder", 1.5e-8},
    [DATA_IDX] = {"idx", 2.5e-10},
    [DATA_NPY] = {"npy", 2.5e-10},
    [DATA_CSV] = {"csv", 1e-8},
    [DATA_RECORDS] = {"records", 2.5e-10},
    [DATA_TOKENS] = {"tokens", 2.5e-10},
    [DATA_SAFETENSORS] = {"safetensors", 2.5e-10},
    [DATA_CALLBACK] = {"callback", 1e-9},
};

/* ---- Fields ---------------------------------------------------------------------------------- */

/* Samples of a micro-batch: a slot. */
static int64_t slot_samples(const Graph *g)
{
    int64_t least = g->value.at[g->data.at[0].input[0]].dim[0];
    for (Id v = 0; v < g->value.count; v++)
        if (g->value.at[v].fed && g->value.at[v].dim[0] < least)
            least = g->value.at[v].dim[0];
    return least;
}

/* Classes that a label may be of: as many as the loss has, where it is read as its target. */
static int64_t classes_of(const Graph *g, Id input)
{
    for (Id n = 0; n < g->node.count; n++) {
        const Node *node = &g->node.at[n];
        for (Id i = 0; i < node->uses; i++) {
            Id value = node_use(g, node, i).value;
            if (value == NONE || (value != input && g->value.at[value].whole != input))
                continue;
            if (node->op->flags & OP_CONVERTS) {
                int64_t found = classes_of(g, node->value);
                if (found)
                    return found;
            }
            if (node->op->flags & OP_CLASSES && i == 1) {
                View logits = use_view(g, node_use(g, node, 0));
                return logits.rank ? logits.dim[logits.rank - 1] : 0;
            }
        }
    }
    return 0;
}

/* Where the channels of an image are. */
static int32_t layout_of(const gp_data_field *field)
{
    if (field->rank == 2)
        return GP_DATA_HW;
    if (field->rank != 3)
        return GP_DATA_PLAIN;
    bool last = field->dim[2] == 1 || field->dim[2] == 3 || field->dim[2] == 4;
    bool first = field->dim[0] == 1 || field->dim[0] == 3 || field->dim[0] == 4;
    return last && !first ? GP_DATA_HWC : GP_DATA_CHW;
}

/* "train-images" of "data/train-images", and that folder. */
static const char *file_name(const char *path)
{
    return strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
}

static const char *folder_name(Arena *arena, const char *path)
{
    size_t length = (size_t)(file_name(path) - path);
    return length == 0 ? "." : arena_copy(arena, path, length > 1 ? length - 1 : length);
}

static gp_data_field field_of(const Graph *g, const DataStmt *data, int i)
{
    const Value *value = &g->value.at[data->input[i]];
    gp_data_field field = {.name = value->name, .dtype = value->dtype, .key = data->key[i]};
    for (int k = 1; k < value->rank; k++)
        if (data->format != DATA_IDX || value->dim[k] != 1) /* which has no channels of its own */
            field.dim[field.rank++] = value->dim[k];
    bool moves = data->setting[DATA_FLIP].number != 0 || data->setting[DATA_SHIFT].number != 0;
    if ((data->format == DATA_IMAGES && i == 0) || (moves && field.rank >= 2))
        field.layout = layout_of(&field);
    if (data->paths > 1 || data->format == DATA_IDX || data->format == DATA_NPY)
        field.file = file_name(data->path[i]);
    if (data->format == DATA_SAFETENSORS && !field.key)
        field.key = value->name;
    if (!dtype_is_float((Dtype)value->dtype) && (field.rank == 0 || data->format == DATA_TOKENS))
        field.classes = data->setting[DATA_CLASSES].given
                            ? (int64_t)data->setting[DATA_CLASSES].number
                        : data->format == DATA_TOKENS ? 0
                                                      : classes_of(g, data->input[i]);
    return field;
}

/* ---- Sets ------------------------------------------------------------------------------------ */

static void set_files(const Graph *g, const DataStmt *data, DataSet *d)
{
    gp_data_set *set = &d->set;
    set->path = data->paths == 0   ? NULL
                : d->field[0].file ? folder_name(g->arena, data->path[0])
                                   : data->path[0];
    set->header = (int64_t)data->setting[DATA_HEADER].number;
    if (data->format == DATA_RECORDS)
        for (int i = 0; i < set->fields; i++) {
            d->field[i].at = set->record;
            set->record += (int64_t)gp_data_sample(&d->field[i]);
        }
    if (data->format == DATA_TOKENS) {
        set->window = d->field[0].dim[0] + 1;
        set->stride = (int64_t)data->setting[DATA_STRIDE].number;
        set->dtype = d->field[0].dtype;
        for (int i = 0; i < set->fields; i++)
            d->field[i].at = i;
    }
    if (data->format == DATA_IMAGES) {
        const gp_data_field *f = &d->field[0];
        int first = f->layout == GP_DATA_CHW; /* of its rows */
        set->decoder = (int64_t)gp_data_decoder(f->dim[first], f->dim[first + 1],
                                                (int64_t)data->setting[DATA_WIDTH].number,
                                                (int64_t)data->setting[DATA_PROGRESSIVE].number);
    }
}

/* The set of a source: 0 train, 1 eval, 2 predict. Evaluation is of its own statement or of what
 * train holds out; both see each sample as it is. */
static void make_set(const Graph *g, int which, Ring ring, DataSet *d)
{
    const DataStmt *train = data_find(g, "train"), *eval = data_find(g, "eval");
    const DataStmt *data = which && eval ? eval : train;
    *d = (DataSet){.set = {.name = which ? "eval" : "train", .fields = data->inputs}};
    gp_data_set *set = &d->set;
    for (int i = 0; i < data->inputs; i++)
        d->field[i] = field_of(g, data, i);
    set->field = d->field;
    const bool shared = g->ranks.state != NONE && which != 2; /* each rank predicts for itself */
    set->batch = g->value.at[data->input[0]].dim[0] * (shared ? g->ranks.count : 1);
    set->slot = slot_samples(g);
    set->depth = (int32_t)ring.depth;
    set->workers = (int32_t)ring.workers;
    set->corrupt = (int32_t)data->setting[DATA_CORRUPT].number;
    set->fit = data->setting[DATA_RESIZE].number == DATA_STRETCH ? GP_DATA_STRETCH : GP_DATA_COVER;
    set_files(g, data, d);
    if (which == 0 || data == eval) {
        set->shuffle = data->setting[DATA_SHUFFLE].number != 0;
        set->crop = data->setting[DATA_CROP].number;
        set->flip = data->setting[DATA_FLIP].number != 0;
        set->shift = (int32_t)data->setting[DATA_SHIFT].number;
        set->last = (int32_t)data->setting[DATA_LAST].number;
    } else {
        set->last = g->train.weighs ? GP_DATA_PAD : GP_DATA_DROP;
    }
    if (which == 0)
        set->epochs = (int64_t)data->setting[DATA_REPEAT].number;
    else
        set->epochs = 1;
    if (data->setting[DATA_SPLIT].number > 0) {
        set->part = which ? GP_DATA_HELD_OUT : GP_DATA_TRAIN;
        set->held_out = data->setting[DATA_SPLIT].number;
        set->split_seed = (uint64_t)data->setting[DATA_SPLIT_SEED].number;
    }
    if (which == 2)
        set->name = "predict", set->path = NULL, set->part = GP_DATA_ALL, set->shuffle = 0,
        set->last = GP_DATA_PAD;
}

/* On the host what fills slots is after them. */
static uint64_t host_work(uint64_t slot, Ring ring)
{
    return gp_data_round(slot * ring.depth, GP_DATA_PAGE);
}

uint64_t data_work_offset(const Plan *plan, RingBytes bytes)
{
    return plan->work == NONE ? host_work(bytes.slot, plan->ring) : plan->buffer[plan->work].offset;
}

RingBytes data_ring(const Target *target, const Graph *g, Ring ring)
{
    RingBytes bytes = {0};
    for (int which = 0; which < 3; which++) {
        DataSet d;
        make_set(g, which, ring, &d);
        gp_data_bytes need = gp_data_plan(&d.set);
        bytes.slot = need.slot;
        bytes.work = need.work > bytes.work ? need.work : bytes.work;
        for (int i = 0; i < d.set.fields && which == 0; i++)
            bytes.offset[i] = gp_data_offset(&d.set, i);
    }
    bytes.slots = ring.depth;
    if (target->stages) {
        bytes.host = host_work(bytes.slot, ring) + bytes.work;
        bytes.work = 0;
        bytes.slots = ring.depth > 1 ? 2 : 1;
    }
    DataSet d;
    make_set(g, 0, ring, &d);
    for (int i = 0; i < d.set.fields; i++)
        bytes.seconds += rows[g->data.at[0].format].seconds * (double)gp_data_sample(&d.field[i]) *
                         (double)d.set.batch;
    return bytes;
}

/* ---- Text ------------------------------------------------------------------------------------ */

typedef struct {
    Out *o;
    bool any; /* was written */
} Fields;

static void put_text(Fields *f, const char *name, const char *text)
{
    if (!text)
        return;
    out(f->o, "%s.%s = ", f->any ? ", " : "", name);
    out_string(f->o, text);
    f->any = true;
}

static void put_word(Fields *f, const char *name, const char *word)
{
    out(f->o, "%s.%s = %s", f->any ? ", " : "", name, word);
    f->any = true;
}

static void put_number(Fields *f, const char *name, double number)
{
    if (number == 0)
        return;
    out(f->o, "%s.%s = ", f->any ? ", " : "", name);
    out_number(f->o, number);
    f->any = true;
}

static void write_field(const gp_data_field *field, Arena *arena, Out *o)
{
    static const char *const layouts[] = {NULL, "GP_DATA_CHW", "GP_DATA_HWC", "GP_DATA_HW"};
    Fields f = {o, false};
    size_t line = o->length;
    out(o, "    {");
    put_text(&f, "name", field->name);
    put_text(&f, "file", field->file);
    put_text(&f, "key", field->key);
    put_word(&f, "dtype", arena_printf(arena, "GP_%s", dtype_row((Dtype)field->dtype)->id));
    if (layouts[field->layout])
        put_word(&f, "layout", layouts[field->layout]);
    put_number(&f, "rank", field->rank);
    if (field->rank) {
        out(o, ", .dim = {");
        for (int i = 0; i < field->rank; i++)
            out(o, "%s%lld", i ? ", " : "", (long long)field->dim[i]);
        out(o, "}");
    }
    put_number(&f, "classes", (double)field->classes);
    put_number(&f, "at", (double)field->at);
    out(o, "},");
    out_fold(o, line);
    out(o, "\n");
}

static void write_set(const gp_data_set *s, const char *source, Out *o)
{
    Fields f = {o, false};
    size_t line = o->length;
    out(o, "    {");
    put_text(&f, "name", s->name);
    out(o, ", .source = &gp_data_%s", source);
    put_text(&f, "path", s->path);
    out(o, ", .field = %s_field", s->name);
    put_number(&f, "fields", s->fields);
    put_number(&f, "batch", (double)s->batch);
    put_number(&f, "slot", (double)s->slot);
    put_number(&f, "depth", s->depth);
    put_number(&f, "workers", s->workers);
    put_number(&f, "shuffle", s->shuffle);
    if (s->last == GP_DATA_PAD)
        put_word(&f, "last", "GP_DATA_PAD");
    if (s->corrupt == GP_DATA_SKIP)
        put_word(&f, "corrupt", "GP_DATA_SKIP");
    put_number(&f, "epochs", (double)s->epochs);
    if (s->part)
        put_word(&f, "part", s->part == GP_DATA_TRAIN ? "GP_DATA_TRAIN" : "GP_DATA_HELD_OUT");
    put_number(&f, "held_out", s->held_out);
    put_number(&f, "split_seed", (double)s->split_seed);
    if (s->decoder)
        put_word(&f, "fit", s->fit == GP_DATA_COVER ? "GP_DATA_COVER" : "GP_DATA_STRETCH");
    put_number(&f, "crop", s->crop);
    put_number(&f, "flip", s->flip);
    put_number(&f, "shift", s->shift);
    put_number(&f, "decoder", (double)s->decoder);
    put_number(&f, "record", (double)s->record);
    put_number(&f, "header", (double)s->header);
    put_number(&f, "window", (double)s->window);
    put_number(&f, "stride", (double)s->stride);
    if (s->window)
        put_word(&f, "dtype", s->dtype == GP_U32 ? "GP_U32" : "GP_U16");
    out(o, "},");
    out_fold(o, line);
    out(o, "\n");
}

static void write_fields(const DataSet *d, Arena *arena, Out *o)
{
    out(o, "static const gp_data_field %s_field[] = {\n", d->set.name);
    for (int i = 0; i < d->set.fields; i++)
        write_field(&d->field[i], arena, o);
    out(o, "};\n");
}

/* The three sources; predict once more, with samples that a function makes; and where samples are
 * images, with files that the caller names. */
void data_write(Emission *e, Out *fields, Out *sets)
{
    const Graph *g = e->plan->graph;
    const DataStmt *eval = data_find(g, "eval"), *train = data_find(g, "train");
    for (int which = 0; which < 4 + data_reads_images(g); which++) {
        DataSet d;
        make_set(g, which < 2 ? which : 2, e->plan->ring, &d);
        int format = which == 3 ? DATA_CALLBACK : which && eval ? eval->format : train->format;
        if (which < 3)
            write_fields(&d, e->arena, fields);
        write_set(&d.set, which == 4 ? "files" : rows[format].source, sets);
        emission_need(e, arena_printf(e->arena, "c/data_%s.h", rows[format].source));
    }
}

bool data_reads_images(const Graph *g)
{
    const DataStmt *eval = data_find(g, "eval"), *train = data_find(g, "train");
    return train && (eval ? eval : train)->format == DATA_IMAGES;
}

const char *data_inputs(const Plan *plan)
{
    const Graph *g = plan->graph;
    const char *list = "";
    int count = g->data.count ? g->data.at[0].inputs : 0;
    for (int i = 0; i < count; i++)
        list = arena_printf(g->arena, "%s%s%s", list,
                            i == 0          ? ""
                            : i + 1 < count ? ", "
                                            : " and ",
                            g->value.at[g->data.at[0].input[i]].name);
    return list;
}
