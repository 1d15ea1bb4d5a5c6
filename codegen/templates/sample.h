/* A model called net, so that templates compile as they stand: -include sample.h. Each fact holds
 * unless it is defined otherwise. Not a template: gplan fills these in itself (source.c). */
#ifndef SAMPLE_H
#define SAMPLE_H

/* ---- Facts ---- */

#ifndef MODEL_CUDA
#define MODEL_CUDA 0
#endif
#ifndef MODEL_EMBEDS
#define MODEL_EMBEDS 0 /* then there are no other PARAMS, and nothing TRAINS */
#endif
#ifndef MODEL_TRAINS
#define MODEL_TRAINS 1
#endif
#ifndef MODEL_HAS_FORWARD
#define MODEL_HAS_FORWARD 1
#endif
#ifndef MODEL_HAS_PARAMS
#define MODEL_HAS_PARAMS 1
#endif
#ifndef MODEL_HAS_ARENA
#define MODEL_HAS_ARENA 1
#endif
#ifndef MODEL_PREPARES
#define MODEL_PREPARES MODEL_HAS_FORWARD
#endif
#ifndef MODEL_BINDS
#define MODEL_BINDS 1
#endif
#ifndef MODEL_IS_RENAMED
#define MODEL_IS_RENAMED 1
#endif
#ifndef MODEL_USES_BLAS
#define MODEL_USES_BLAS 1
#endif
#ifndef MODEL_FORWARD_IS_SPLIT
#define MODEL_FORWARD_IS_SPLIT 1
#endif
#ifndef MODEL_RANKS
#define MODEL_RANKS 0 /* with it, mpi.h is needed: tests/ranks */
#endif
#ifndef MODEL_SHARDS
#define MODEL_SHARDS 0 /* likewise */
#endif
#ifndef MODEL_RANKS_GATHER
#define MODEL_RANKS_GATHER MODEL_RANKS
#endif
#ifndef MODEL_AS_RANKS
#define MODEL_AS_RANKS 0
#endif
#ifndef MODEL_HAS_DATA
#define MODEL_HAS_DATA (!MODEL_EMBEDS)
#endif
#ifndef MODEL_READS_IMAGES
#define MODEL_READS_IMAGES MODEL_HAS_DATA
#endif
#ifndef MODEL_DATA_AHEAD
#define MODEL_DATA_AHEAD 1
#endif
#ifndef MODEL_HAS_MAIN
#define MODEL_HAS_MAIN 1
#endif
#ifndef MODEL_HAS_EVAL_DATA
#define MODEL_HAS_EVAL_DATA 1
#endif
/* These need others of them. */
#ifndef MODEL_BINDS_PARAMS
#define MODEL_BINDS_PARAMS (MODEL_BINDS && MODEL_HAS_PARAMS)
#endif
#ifndef MODEL_MAPS
#define MODEL_MAPS (MODEL_BINDS_PARAMS && !MODEL_CUDA)
#endif
#ifndef MODEL_HAS_CONSTANTS
#define MODEL_HAS_CONSTANTS MODEL_HAS_PARAMS
#endif
#ifndef MODEL_KEEPS_STATE
#define MODEL_KEEPS_STATE (MODEL_TRAINS && MODEL_HAS_PARAMS)
#endif
#ifndef MODEL_HAS_EVAL
#define MODEL_HAS_EVAL MODEL_TRAINS
#endif
#ifndef MODEL_WEIGHS_SAMPLES
#define MODEL_WEIGHS_SAMPLES MODEL_TRAINS
#endif
#ifndef MODEL_HAS_LOSS_SCALE
#define MODEL_HAS_LOSS_SCALE MODEL_KEEPS_STATE
#endif
#ifndef MODEL_PAIRS
#define MODEL_PAIRS MODEL_TRAINS
#endif
#ifndef MODEL_LOOPS_TENSORS
#define MODEL_LOOPS_TENSORS MODEL_TRAINS
#endif
#ifndef MODEL_HAS_SCHEDULE
#define MODEL_HAS_SCHEDULE MODEL_TRAINS
#endif
#ifndef MODEL_HAS_UPDATE
#define MODEL_HAS_UPDATE MODEL_TRAINS
#endif
#ifndef MODEL_EVAL_IS_SPLIT
#define MODEL_EVAL_IS_SPLIT MODEL_TRAINS
#endif
#ifndef MODEL_STEP_IS_SPLIT
#define MODEL_STEP_IS_SPLIT MODEL_TRAINS
#endif

/* ---- The header ---- */

#define MODEL_ARENA_BYTES 4096ull
#define MODEL_ARENA_ALIGN 64
#define MODEL_THREADS_MAX 1
#define MODEL_OPS 1
#define MODEL_BATCH 4
#define MODEL_SLOTS 1
#define MODEL_COUNTS enum { NET_X_COUNT = 4, NET_Y_COUNT = 4 };
#define MODEL_ACCESSORS_DECLARED \
    float *net_x(net *m);        \
    const float *net_y(const net *m);

/* ---- The source ---- */

#define MODEL_HEADER "net.h"
#define MODEL_INCLUDES
#define MODEL_TYPES
#define MODEL_KERNELS
#define MODEL_FUNCTIONS_DECLARED static int copy_0(const gp_run *run, const gp_real *x, gp_real *y);
#define MODEL_FUNCTIONS                                                \
    static int copy_0(const gp_run *run, const gp_real *x, gp_real *y) \
    {                                                                  \
        (void)run;                                                     \
        (void)x;                                                       \
        (void)y;                                                       \
        return GP_OK;                                                  \
    }
#define AT_x (m->arena)
#define AT_y (m->arena + 64)
#define SAMPLE_PROGRAM(name)                                    \
    static GP_UNUSED int name(net *m, const gp_run *run)        \
    {                                                           \
        int code;                                               \
        OP(0, copy_0(run, (gp_real *)AT(x), (gp_real *)AT(y))); \
        return NET_OK;                                          \
    }
#define MODEL_PROGRAM       \
    SAMPLE_PROGRAM(prepare) \
    SAMPLE_PROGRAM(forward) \
    SAMPLE_PROGRAM(eval)    \
    SAMPLE_PROGRAM(step)    \
    SAMPLE_PROGRAM(update)
#define MODEL_ACCESSORS                              \
    float *net_x(net *m)                             \
    {                                                \
        return (float *)(void *)m->arena;            \
    }                                                \
    const float *net_y(const net *m)                 \
    {                                                \
        switch (m->ran) {                            \
        case RAN_FORWARD:                            \
        case RAN_EVAL:                               \
        case RAN_STEP:                               \
            return (float *)(void *)(m->arena + 64); \
        default:                                     \
            return NULL;                             \
        }                                            \
    }
#define MODEL_METRICS {"y", net_y},
#define MODEL_STATE 1024
#define MODEL_EMBEDDED_ROWS 1
#define MODEL_LR 0.1
#define MODEL_SCHEDULE NET_COSINE, 10, 100, 0.1
#define MODEL_PREPARE_OPS 1
#define MODEL_FORWARD_OPS 1
#define MODEL_FORWARD_MICROS 2
#define MODEL_EVAL_OPS 1
#define MODEL_EVAL_MICROS 2
#define AT_MODEL_EVAL_LOSS AT_y
#define MODEL_STEP_OPS 1
#define MODEL_STEP_MICROS 2
#define AT_MODEL_STEP_LOSS AT_y

/* ---- Its ranks ---- */

#define MODEL_RANKS_COUNT 2
#define MODEL_RANKS_AT 0
#define MODEL_RANKS_BYTES 65536
#define MODEL_RANKS_SUMS 1
#define MODEL_LIBRARIES "-lcublas"
#define MODEL_SHARD_ROWS \
    {                    \
        1, 2,            \
        {                \
            3, 4         \
        }                \
    }
#define MODEL_RANKS_GATHER_AT 0
#define MODEL_PLAN_HASH 0x1

/* ---- Its data ---- */

#define MODEL_DATA_INPUTS "x"
#define MODEL_DATA_SLOTS 0
#define MODEL_DATA_WORK 4096
#define MODEL_DATA_SLOT 64
#define MODEL_HOST_BYTES 8192
#define MODEL_STEP_PARTS 2
#define MODEL_DATA_FIELDS                                                        \
    static const gp_data_field train_field[] = {{.name = "x", .dtype = GP_F32}}; \
    static const gp_data_source gp_data_none = {NULL, NULL};
#define MODEL_DATA_SETS {.name = "train", .source = &gp_data_none, .field = train_field},

/* ---- Its tables ---- */

#define MODEL_LOSS_SCALE 3
#define MODEL_SAVED 2
#if MODEL_HAS_PARAMS
#define MODEL_SAVED_COUNT 2
#else
#define MODEL_SAVED_COUNT 0
#endif
#define MODEL_NEEDED_COUNT 1
#define MODEL_PAIR_ONE ".m"
#define MODEL_PAIR_OTHER ".v"
#define MODEL_TENSORS                                                                          \
    T("x", INPUT, F32, 0, 1, 4), T("y", OUTPUT, F32, 64, 1, 4), T("w", PARAM, F32, 128, 1, 4), \
        T("w.v", STATE, F32, 192, 1, 4),
#define MODEL_TENSOR_SLOTS -1, -1, 0, -1
#define MODEL_INIT_LISTS static const double list_0[] = {0, 1, 2, 3};
#define MODEL_INITS {GP_INIT_LIST, 0, 0, list_0, 4}, INIT(CONST, 0, 0),
#define MODEL_OP_NAMES "copy y (net.g:3)",
#define MODEL_RESULTS {0, -1, 64, 0, 1, 4, 0}, {1, -1, 0, 0, 0, 0, 0},
#define MODEL_DEATHS {0, 0, 16}, {1, 0, 0},
#define MODEL_CONSTANTS 0

/* ---- link.c ---- */

#define MODEL_PROFILE "{\n  \"gplan_profile\": 1"

#endif
