/* Samples from files to a model's inputs, in memory that was planned: what is read and how, and
 * how many bytes that takes. data_ring.h runs it.
 *
 * Sample number t of a run follows from the seed and t alone: which file it is (data_order.h) and
 * how it is cropped and flipped. A slot holds one micro-batch, as the files hold it; the ring has
 * `depth` slots, which workers fill ahead of the step. Nothing is allocated; files are read by
 * pread, since mapped pages would count as memory. This file knows no library and no threads:
 * gplan plans with it. */
#ifndef GP_DATA_H
#define GP_DATA_H

#include "base.h"

/* Statuses beside GP_OK: a file is missing, damaged, or not what the model reads; no more samples.
 */
enum { GP_EDATA = 11, GP_DATA_END = 12 };

/* The part of the samples that a set is. */
enum { GP_DATA_ALL, GP_DATA_TRAIN, GP_DATA_HELD_OUT };
/* A last batch that is not full: not read, or filled up with samples that do not count. */
enum { GP_DATA_DROP, GP_DATA_PAD };
/* A damaged sample: an error, or another sample stands in for it. */
enum { GP_DATA_STOP, GP_DATA_SKIP };
/* Images: the whole of each, or of the output's proportions around its middle. */
enum { GP_DATA_STRETCH, GP_DATA_COVER };
/* Where the channels of an image stand: none are (grey, or no image), [C, H, W], [H, W, C]. */
enum { GP_DATA_PLAIN, GP_DATA_CHW, GP_DATA_HWC, GP_DATA_HW };

/* Functions of the host whose speed matters: compilers take what is called by cold functions, or by
 * main alone, for cold. */
#if defined(__GNUC__)
#define GP_HOST_FAST static __attribute__((hot, unused))
#define GP_HOST_LOOP static __attribute__((hot, noinline, unused))
#else
#define GP_HOST_FAST static inline
#define GP_HOST_LOOP static
#endif

enum {
    GP_DATA_FIELDS = 8,
    GP_DATA_DEPTH = 64,
    GP_DATA_WORKERS = 64,
    GP_DATA_ALIGN = 64,
    GP_DATA_TEXT = 400,       /* bytes of an error message */
    GP_DATA_STATE = 8192,     /* room for a gp_data */
    GP_DATA_NOTE = 512,       /* room for what is known of one slot, or one worker */
    GP_DATA_STACK = 65536,    /* of a worker; callbacks want what they want */
    GP_DATA_PREPARE = 262144, /* while a set is opened: sorting names, unpacking, parsing */
    GP_DATA_PAGE = 4096
};

/* One input that samples fill. */
typedef struct {
    const char *name;         /* the model's input, for messages */
    const char *file;         /* arrays: its file, within the set's path; NULL: the path itself */
    const char *key;          /* safetensors: the tensor; CSV: the first of its columns */
    int32_t dtype;            /* as stored: GP_U8; of a class by folder: as asked for */
    int32_t layout;           /* GP_DATA_PLAIN, or that of an image, which can be flipped */
    int32_t rank;             /* of one sample, without the batch */
    int64_t dim[GP_MAX_RANK]; /* tokens: of as many as the window has, or fewer */
    int64_t classes;          /* not 0: each number is in [0, classes) */
    int64_t at;               /* records: byte within the record; tokens: within the window */
} gp_data_field;

struct gp_data_source;

/* A data statement of a model, a constant of the emitted program. A field that is 0 is off. */
typedef struct {
    const char *name;                    /* for messages */
    const struct gp_data_source *source; /* &gp_data_folder, &gp_data_npy ...: see data_ring.h */
    const char *path;                    /* a file or folder; NULL: must be given when it runs */
    const gp_data_field *field;
    int32_t fields;

    /* Order. A step's batch is `batch` samples; a slot holds one micro-batch of it. */
    int64_t batch, slot;
    int32_t depth;   /* slots of the ring: at least 1 */
    int32_t workers; /* threads that fill them; 0: the thread that asks for a slot does */
    int32_t shuffle; /* a full one, other for each epoch */
    int32_t last;    /* GP_DATA_DROP or GP_DATA_PAD */
    int32_t corrupt; /* GP_DATA_STOP or GP_DATA_SKIP */
    int64_t epochs;  /* after which there is no more; 0: without end */
    int32_t part;
    double held_out;     /* the share of samples that is held out, when part is not GP_DATA_ALL */
    uint64_t split_seed; /* which ones: not the run's seed, so that they stay held out */

    /* Images. */
    int32_t fit;        /* GP_DATA_STRETCH or GP_DATA_COVER */
    double crop;        /* the smallest share of its area that a random crop keeps; 0: none; 1: of
                           the output's proportions, anywhere */
    double crop_aspect; /* up to this ratio is a crop wider or taller; 0: by 4 / 3 */
    int32_t flip;       /* left to right, every other one */
    int32_t shift;      /* arrays: by up to so many pixels in both directions, zeros move in */
    int64_t decoder;    /* bytes of a worker for decoding: gp_data_decoder(); 0: no images */

    /* Files of one kind. */
    int64_t record, header; /* records: bytes of each, and in front of the first */
    int64_t window, stride; /* tokens: of a sample, and from one sample's first to the next's */
    int32_t dtype;          /* tokens: GP_U16 or GP_U32 */
    int64_t stack;          /* bytes of a worker's stack; 0: GP_DATA_STACK */
} gp_data_set;

/* ---- Bytes ---------------------------------------------------------------------------------- */

typedef struct {
    uint64_t slot;   /* of one slot: all fields of its samples */
    uint64_t ring;   /* of all slots */
    uint64_t worker; /* of one worker: stack and decoder */
    uint64_t work;   /* of the state, notes on slots and all workers */
} gp_data_bytes;

GP_FUNCTION uint64_t gp_data_round(uint64_t bytes, uint64_t to)
{
    return (bytes + to - 1) / to * to;
}

/* Bytes of one sample of a field. */
GP_FUNCTION uint64_t gp_data_sample(const gp_data_field *field)
{
    uint64_t bytes = gp_size(field->dtype);
    for (int i = 0; i < field->rank; i++)
        bytes *= (uint64_t)field->dim[i];
    return bytes;
}

/* Where field f begins in a slot; f = fields: where the slot ends. */
GP_FUNCTION uint64_t gp_data_offset(const gp_data_set *set, int f)
{
    uint64_t offset = 0;
    for (int i = 0; i < f; i++)
        offset +=
            gp_data_round(gp_data_sample(&set->field[i]) * (uint64_t)set->slot, GP_DATA_ALIGN);
    return offset;
}

/* Bytes for decoding images to [height, width], where none is wider or taller than `widest` pixels
 * (a JPEG may be taller). A progressive JPEG or an interlaced PNG is held as a whole: `whole` is
 * the number of pixels that such a one may have, 0 where all of them are an error. */
GP_FUNCTION uint64_t gp_data_decoder(int64_t height, int64_t width, int64_t widest, int64_t whole)
{
    const uint64_t w = (uint64_t)widest, out_w = (uint64_t)width, out_h = (uint64_t)height;
    const uint64_t library = 128 * 1024; /* a PNG's inflate and chunks; a JPEG's tables */
    const uint64_t lines = 48 * w;       /* a JPEG's MCU rows, or a PNG's two of 8 bytes a pixel */
    const uint64_t taps = 8 * w + 16 * (out_w + out_h);      /* weights of the resize */
    const uint64_t kept = 8 * out_w * (2 * (w / out_h) + 5); /* rows that it keeps */
    return gp_data_round(library + lines + taps + kept + 8 * (uint64_t)whole, GP_DATA_PAGE);
}

/* Bytes of a worker's stack. */
GP_FUNCTION uint64_t gp_data_stack(const gp_data_set *set)
{
    const uint64_t usual = GP_DATA_STACK;
    return set->stack ? (uint64_t)set->stack : usual;
}

/* All that a set needs: `ring` and `work` bytes from a multiple of GP_DATA_ALIGN on, of which the
 * stacks take whole pages. */
GP_FUNCTION gp_data_bytes gp_data_plan(const gp_data_set *set)
{
    gp_data_bytes bytes;
    const uint64_t stack = set->workers ? gp_data_stack(set) : 0;
    const uint64_t crews = set->workers ? set->workers : 1;
    const uint64_t notes = GP_DATA_STATE + ((uint64_t)set->depth + crews) * GP_DATA_NOTE;
    bytes.slot = gp_data_offset(set, set->fields);
    bytes.ring = bytes.slot * (uint64_t)set->depth;
    bytes.worker =
        gp_data_round(stack, GP_DATA_PAGE) + gp_data_round((uint64_t)set->decoder, GP_DATA_PAGE);
    bytes.work = notes + GP_DATA_PAGE + bytes.worker * crews;
    if (bytes.work < GP_DATA_STATE + GP_DATA_PREPARE)
        bytes.work = GP_DATA_STATE + GP_DATA_PREPARE; /* before there are slots and workers */
    return bytes;
}

/* ---- Running it: data_ring.h ---------------------------------------------------------------- */

/* A callback fills one sample: field[f] is the place of its field f. Workers call it concurrently.
 * Returns 0, or an error whose reason is in `why`. */
typedef int gp_data_fill(void *user, int64_t sample, void *const *field, char *why,
                         size_t why_size);

/* What is known when the program runs. */
typedef struct {
    const char *path;   /* instead of the set's; NULL: the set's */
    void *ring, *work;  /* as many bytes as gp_data_plan() says */
    uint64_t seed;      /* of order, crops and flips */
    int64_t step;       /* the first slot is that of this step: where a run is resumed */
    int32_t rank;       /* of `ranks`, each of which reads its share of a batch */
    int32_t ranks;      /* 0: one */
    int32_t as_ranks;   /* it reads the shares of so many: a micro-batch of each in turn; 0: one */
    gp_data_fill *fill; /* callback: and what it is given, and the number of samples */
    void *user;
    int64_t samples;
} gp_data_start;

/* A slot that is being read. Field f is at + gp_data_offset(set, f), its samples in a row. */
typedef struct {
    const unsigned char *at;
    int64_t number;      /* counts slots from the beginning of the run, on this rank */
    int64_t step, epoch; /* which step it belongs to, and which epoch, from 0 */
    int64_t valid;       /* so many samples count, from the first on; less than set->slot in the
                            last batch of an epoch with GP_DATA_PAD, and then maybe 0 */
    int32_t place;       /* which slot of the ring it is */
} gp_data_slot;

#endif
