/* MODEL_HEADER_NAME: the model MODEL_NAME, compiled by gplan from MODEL_SOURCE. */
#ifndef NET_H
#define NET_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if MODEL_IS_RENAMED
/* C would refuse the name MODEL_NAME, so names begin with net_ instead. */

#endif
#if MODEL_CUDA
/* All that it needs on the device is one arena of MODEL_ARENA_SIZE. The CUDA context and cuBLAS
 * have memory of their own. */
#if MODEL_HAS_DATA
/* On the host it takes NET_HOST_BYTES of pinned memory when data is opened first. */
#define NET_HOST_BYTES MODEL_HOST_BYTES
#endif
#else
/* All that it needs is one arena of MODEL_ARENA_SIZE: it allocates nothing. */
#endif
#define NET_ARENA_BYTES MODEL_ARENA_BYTES
#define NET_ARENA_ALIGN MODEL_ARENA_ALIGN
#if !MODEL_CUDA
#define NET_THREADS_MAX MODEL_THREADS_MAX
#endif
#define NET_OPS MODEL_OPS
#if MODEL_WEIGHS_SAMPLES || MODEL_HAS_DATA
#if MODEL_RANKS
#define NET_BATCH MODEL_BATCH /* samples, on all ranks together */
#else
#define NET_BATCH MODEL_BATCH /* samples */
#endif
#endif
#if MODEL_RANKS
#define NET_RANKS MODEL_RANKS_COUNT /* that divide the batch: inputs and outputs are of a part */
#endif
MODEL_COUNTS

/* Return codes. Those of an op have its number above the lowest four bits. */
/* clang-format off */
enum {
    NET_OK,
    NET_EINDEX,   /* an index out of range, e.g. an invalid token id */
    NET_ENAN,     /* an op made a NaN (compiled with -DGPLAN_CHECK_NAN) */
    NET_EARENA,   /* the arena is too small or misaligned */
    NET_EFILE,    /* a file cannot be opened, read or written */
    NET_EFORMAT,  /* not a safetensors file, or truncated */
    NET_ETENSOR,  /* a tensor is missing in it, or has another shape or dtype */
    NET_ECANCEL,  /* the progress function asked to stop */
#if MODEL_BINDS
    NET_EBIND,    /* a tensor in the caller's memory is not bound yet */
#endif
#if MODEL_CUDA
    NET_EDEVICE = 9,   /* CUDA or cuBLAS refused a call; op NET_OPS: outside of one */
#endif
    NET_ESAMPLES = 10, /* a negative count of samples, or more than a batch has */
#if MODEL_HAS_DATA
    NET_EOUTPUT,  /* the last run did not compute this output */
    NET_EDATA,    /* data is missing, damaged, or not what the model reads */
#if MODEL_RANKS
    NET_EEND,     /* the data has no further batch */
#else
    NET_EEND      /* the data has no further batch */
#endif
#else
#if MODEL_RANKS
    NET_EOUTPUT,  /* the last run did not compute this output */
#else
    NET_EOUTPUT   /* the last run did not compute this output */
#endif
#endif
#if MODEL_RANKS
    NET_ERANK = 14 /* another rank failed, does not answer, or has another program */
#endif
};
/* clang-format on */
#define NET_ERROR_KIND(code) ((code)&15)
#define NET_ERROR_OP(code) ((code) >> 4)

enum { NET_INPUT, NET_OUTPUT, NET_PARAM, NET_STATE };
/* clang-format off */
enum { NET_F32, NET_F16, NET_BF16, NET_I32, NET_I64, NET_U8, NET_BOOL,
       NET_I8, NET_U16, NET_U32, NET_F64 };
/* clang-format on */
typedef struct {
    const char *name;
    int kind, dtype, rank;
    int64_t dim[8];
    size_t offset; /* in the arena, or NET_EXTERNAL; of an output: after its first run */
    size_t bytes;
} net_tensor;
#define NET_EXTERNAL ((size_t)-1) /* the caller's memory */

#if MODEL_HAS_DATA
/* Where samples come from: for step, eval and forward. */
enum { NET_TRAIN, NET_EVAL, NET_PREDICT };
/* Writes sample `sample` to field[0], field[1], ..., the inputs that data fills, in the order of
 * the data statement. Workers call it at the same time. Not 0: it failed, and `why` says so. */
typedef int net_fill(void *user, int64_t sample, void *const *field, char *why, size_t why_size);

#endif
/* A model. The caller owns it and its arena; several can run at once. */
typedef struct {
    unsigned char *arena;
#if MODEL_CUDA
    int device;
    void *stream, *blas;           /* a cudaStream_t, a cublasHandle_t */
    void *owned;                   /* the arena of net_create */
    void *graph[MODEL_STEP_PARTS]; /* cudaGraphExec_t of the step */
    uint64_t told, bound;          /* hashes of what the device knows, of what the graph holds */
#if MODEL_RANKS
    void *communicator, *link;      /* an ncclComm_t; the cudaStream_t that bytes move on */
    void *ready;                    /* a cudaEvent_t: one of the two waits for the other */
    void *summed[MODEL_RANKS_SUMS]; /* likewise: a sum is there */
    int rank;
    double timeout, beat; /* when others heard last of this rank, in seconds */
#endif
#else
    int threads;
#endif
    uint64_t seed, step;
    int done, ops; /* of the current run */
    int ran;       /* the last run; 0: none, or it failed */
#if MODEL_PREPARES
    int prepared; /* what is made of parameters alone is there */
#endif
    int (*progress)(void *user, uint64_t step, int op, int ops);
    void *user;
    double *seconds; /* of net_profile */
#if MODEL_CUDA
    void *mark[2]; /* two cudaEvent_t for it */
#else
    double clock;
#endif
#if MODEL_TRAINS
    double lr;
    int schedule; /* of net_schedule, as are the next three */
    uint64_t warmup, steps;
    double share;
#endif
#if MODEL_WEIGHS_SAMPLES
    int64_t valid; /* samples of the batch that count; 0: all */
#endif
#if MODEL_HAS_MAIN
    uint64_t note[3]; /* of the program around it: saved and loaded with the rest */
#endif
#if MODEL_BINDS
    void *external[MODEL_SLOTS]; /* the caller's memory */
#endif
#if MODEL_HAS_DATA
    int open;           /* 1 + the source whose samples are in the ring; 0: none */
    int64_t head, slot; /* the batch that the ring comes to next; the slot that is read, */
    size_t place;       /* and where it lies in the ring */
    int64_t taken;      /* of net_taken */
#if MODEL_CUDA
    unsigned char *ring; /* pinned: slots, and what fills them */
    void *copies;        /* the cudaStream_t that takes them to the device */
    void *event[2];      /* a cudaEvent_t each: the slot was read; the next one has arrived */
    int sent;            /* it is on its way, or there */
#endif
    struct { /* of net_data and net_feed, by source */
        const char *path;
        net_fill *fill;
        void *user;
        int64_t given, samples, batches, at;
    } source[3];
    char detail[400]; /* of net_error */
#else
    char detail[200]; /* of net_error */
#endif
} net;

#if MODEL_CUDA
#if MODEL_RANKS
/* Takes memory of the current device, which is neither read nor written yet. All work is put on
 * the stream, a cudaStream_t of this device; NULL: its default stream. The model stays on this
 * device: every function makes it the current one while it runs.
 *
 * The communicator is an ncclComm_t of NET_RANKS ranks, each with a device: this one is the
 * current device. It stays the caller's, and net_free comes before ncclCommDestroy. What fails on
 * one rank, or is not answered within so many seconds (300 unless net_timeout sets others), ends
 * all of them with NET_ERANK, and the communicator is aborted: net_is_connected says no, and it is
 * not to be destroyed. step, replay, eval and save are called by all ranks, in one order. */
int net_init(net *m, void *arena, size_t bytes, void *stream, void *communicator);
/* The same with one cudaMalloc of NET_ARENA_BYTES; net_free gives back what either took. */
int net_create(net *m, void *stream, void *communicator);
int net_rank(const net *m); /* this one, of NET_RANKS */
void net_timeout(net *m, double seconds);
int net_is_connected(const net *m);
#ifdef GPLAN_MPI
/* Compiled with -DGPLAN_MPI: makes a communicator for the current device over the ranks of an
 * MPI_Comm, of which it gets a pointer. Returns what NCCL does: 0, ncclSuccess. */
int net_connect(void **communicator, const void *world);
#endif
#else
/* Takes memory of the current device, which is neither read nor written yet. All work is put on
 * the stream, a cudaStream_t of this device; NULL: its default stream. The model stays on this
 * device: every function makes it the current one while it runs. */
int net_init(net *m, void *arena, size_t bytes, void *stream);
/* The same with one cudaMalloc of NET_ARENA_BYTES; net_free gives back what either took. */
int net_create(net *m, void *stream);
#endif
void net_free(net *m);
/* Waits for the stream; returns what went wrong since the last wait. */
int net_sync(net *m);
#else
#if MODEL_RANKS
/* Takes the arena, which is neither read nor written yet. After MPI_Init, with a pointer to a
 * communicator of NET_RANKS ranks, an MPI_Comm; all of them call it, and net_close before
 * MPI_Finalize. What fails on one rank, or is not answered within so many seconds (300 unless
 * net_timeout sets others), ends all of them with NET_ERANK: load the last file that was saved in
 * a new run. step, eval and save are called by all ranks, in one order. */
int net_init(net *m, void *arena, size_t bytes, void *communicator);
void net_close(net *m);
int net_rank(const net *m); /* this one, of NET_RANKS */
void net_timeout(net *m, double seconds);
/* The largest of the numbers that ranks give, on all of them: for what they must do alike, such as
 * to stop. All of them call it. */
int net_agree(net *m, int64_t *number);
/* Whether it is another rank that failed last, and tells why. */
int net_heard(const net *m);
#else
/* Takes the arena, which is neither read nor written yet. */
int net_init(net *m, void *arena, size_t bytes);
#endif
#endif
#if MODEL_EMBEDS
/* The seed of random ops. Parameters are constants of the C file. */
#else
#if MODEL_TRAINS
/* Initial parameters and optimizer state; step 0. */
#else
/* Initial parameters. */
#endif
#endif
#if MODEL_CUDA
int net_reset(net *m, uint64_t seed);
#else
void net_reset(net *m, uint64_t seed);
#endif
#if !MODEL_EMBEDS
#if MODEL_TRAINS
/* A safetensors file of parameters and optimizer state, with step and seed as metadata: a run that
 * is saved and loaded continues bit for bit. From a file of parameters alone the optimizer starts
 * at step 0. A file that does not fit changes nothing, but one that is truncated or written to
 * while it is read leaves a mixture. Saving replaces the file as a whole or not at all. */
#else
/* Parameters as a safetensors file. A file that does not fit changes nothing, but one that is
 * truncated or written to while it is read leaves a mixture. Saving replaces the file as a whole or
 * not at all. */
#endif
#if MODEL_RANKS
#if MODEL_SHARDS
/* The file is that of one rank alone, and loads with any number of them: on all ranks. Each writes
 * its part of it, so they need one file system, as net_check_files finds out. */
#else
/* The file is that of one rank alone, and loads with any number of them: on all ranks. Rank 0
 * writes it. */
#endif
#endif
int net_load(net *m, const char *path);
int net_save(const net *m, const char *path);
#if MODEL_RANKS
/* Before a run: whether all ranks see the folder of this file; NET_EFILE: one does not. */
int net_check_files(net *m, const char *path);
#endif
#endif
#if MODEL_HAS_CONSTANTS
/* Constants too long for the C text are in a file beside it, MODEL_CONSTANTS_NAME:
 *   MODEL_CONSTANT_NAMES
 * Load them after init (reset leaves them alone); what net_save wrote has them too. */
int net_load_constants(net *m, const char *path);
#endif
#if MODEL_BINDS_PARAMS
/* Parameters are the caller's memory: bind each by name before the first run. reset and load
 * write to it. */
int net_bind(net *m, const char *name, void *data);
#endif
#if MODEL_MAPS
/* Binds all of them to a safetensors file in memory (mmap), which must stay there; what the model
 * has in its arena is copied. Training and reset write to it: map it writable, MAP_PRIVATE. A file
 * that does not fit changes nothing. */
int net_map(net *m, const void *file, size_t bytes);
#endif

#if MODEL_HAS_DATA
/* Data. MODEL_DATA_INPUTS are filled by it: step takes the next batch of TRAIN, eval of
 * EVAL, forward of PREDICT, into slots that lie in the arena. TRAIN is the data train of the model,
 * EVAL its data eval or what data train holds out, PREDICT what a function fills (net_feed). The
 * batch of TRAIN is the step: a run that is loaded goes on with the samples that come next. After
 * its last batch eval and forward return NET_EEND, once, and begin again.
 *
#if MODEL_RANKS
 * Each rank reads its part of the batches of TRAIN and EVAL, and all of PREDICT, in batches of its
 * part: forward is called by any of them.
 *
#endif
 * Opens a source and checks its files. path: instead of the one in the model (the folder, where
 * it has several files); must stay there; NULL: the model's. */
int net_data(net *m, int which, const char *path);
/* The samples of a source are made by a function, so many of them. */
int net_feed(net *m, int which, net_fill *fill, void *user, int64_t samples);
#if MODEL_READS_IMAGES
/* PREDICT is these image files, which must stay there as long as it is read. */
int net_files(net *m, const char *const *file, int64_t count);
#endif
int64_t net_samples(const net *m, int which); /* of an epoch; 0: not opened yet */
int64_t net_batches(const net *m, int which); /* likewise */
#if MODEL_RANKS
int64_t net_taken(const net *m); /* samples that counted, on all ranks */
#else
int64_t net_taken(const net *m); /* samples that counted in the last run */
#endif
int64_t net_skipped(const net *m);              /* damaged ones so far: corrupt = skip */
int net_seek(net *m, int which, int64_t batch); /* EVAL and PREDICT go on with it */
#if !MODEL_RANKS
/* Ends the workers and closes files; the next run opens what it reads again. Before the arena or
 * the model is given back. */
void net_close(net *m);
#endif

#endif
MODEL_ACCESSORS_DECLARED

#if MODEL_PREPARES
/* What is made of parameters alone is made once and kept: now, or by the first forward after a
 * function of this header wrote them. To be called after they were written in any other way, or
 * forward computes with what they were. Saved is what was loaded: parameters stay as they are. */
int net_prepare(net *m);
#endif

#if MODEL_CUDA
#if MODEL_HAS_FORWARD
/* Computes the outputs. Returns before that is done: net_sync sees an index out of range. */
int net_forward(net *m);
#endif
#if MODEL_HAS_EVAL
/* The loss of the batch, without dropout; changes no parameters or state. */
int net_eval(net *m, float *loss);
#endif
#if MODEL_TRAINS
/* One training step on the batch; the loss is from before the update. For eval and step, loss may
 * be NULL: then nobody waits for the device. An index out of range is skipped, and whoever waits
 * next gets the error: load or reset then. */
int net_step(net *m, float *loss);
/* The step as a CUDA graph. Capture once, after a plain step; each replay is the next step, with
 * its learning rate and random numbers. Replay captures where there is no graph yet. The progress
 * function is not called. */
int net_capture(net *m);
int net_replay(net *m, float *loss);
#endif
#else
#if MODEL_HAS_FORWARD
/* Computes the outputs. */
int net_forward(net *m);
#endif
#if MODEL_HAS_EVAL
/* The loss of the batch, without dropout; changes no parameters or state. */
int net_eval(net *m, float *loss);
#endif
#if MODEL_TRAINS
/* One training step on the batch; the loss, which may be NULL, is from before the update. After
 * NET_EINDEX parameters and state are unchanged; after NET_ECANCEL some may not
 * be: load or reset then. */
int net_step(net *m, float *loss);
#endif
#endif
#if MODEL_TRAINS
/* The learning rate rises from lr / warmup to lr over the first `warmup` steps. Then it stays
 * (CONSTANT); falls linearly or as a cosine to share * lr at step `steps` (LINEAR, COSINE); or is
 * multiplied by `share` every `steps` steps (STEPS). Not saved: set again after a load. */
enum { NET_CONSTANT, NET_LINEAR, NET_COSINE, NET_STEPS };
void net_set_lr(net *m, double lr);
void net_schedule(net *m, int kind, uint64_t warmup, uint64_t steps, double share);
double net_lr(const net *m);          /* of the next step */
void net_seed(net *m, uint64_t seed); /* of dropout; reset and load set it too */
#endif
#if MODEL_HAS_LOSS_SCALE
/* What the loss is multiplied with for the gradients of f16, and how many steps overflowed. Such a
 * step changes nothing but these two: it halves the scale, which 2,000 good ones double. The
 * learning rate's schedule counts it, Adam does not. */
int net_loss_scale(net *m, double *scale, uint64_t *skipped);
#endif
#if MODEL_WEIGHS_SAMPLES && !MODEL_HAS_DATA
/* For a last batch that is not full: only its first samples count in the loss of eval and step,
 * until it is set again. 0: all of NET_BATCH. */
int net_valid(net *m, int64_t samples);
#endif
#if !MODEL_CUDA
void net_threads(net *m, int threads); /* 1 to NET_THREADS_MAX; no bit of a result depends on it */
#endif
/* `see` is called after each op of a run with the number of ops done; not 0 cancels the run. */
void net_progress(net *m, int (*see)(void *user, uint64_t step, int op, int ops), void *user);

const char *net_strerror(int code);
const char *net_error(const net *m); /* the last failure in detail: the file, the tensor, the op */
const char *net_op_name(int op);     /* e.g. of NET_ERROR_OP(code) */
const net_tensor *net_tensors(size_t *count); /* every input, output, parameter and state */
size_t net_sizeof(void);                      /* of a net, for other languages */
#ifdef GPLAN_PROFILE
/* Adds the seconds of each op to seconds[NET_OPS]; prints them, the longest first. */
void net_profile(net *m, double *seconds);
void net_profile_print(const net *m);
#endif

#ifdef __cplusplus
}
#endif

#endif
