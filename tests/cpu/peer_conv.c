#include "tests/cpu/peers.h"

#include <stddef.h>

#if defined(HAVE_DNNL)
#include <dnnl.h>

enum { MEMORIES = 3, STEPS = 4 };

/* One convolution: its three tensors as the caller has them and as the library wants them, and
 * the steps that run: reorders of what is read, the convolution, a reorder of what is written. */
static struct {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_memory_t plain[MEMORIES], own[MEMORIES]; /* x, w, y */
    dnnl_primitive_t step[STEPS];
    dnnl_exec_arg_t arg[STEPS][MEMORIES];
    int args[STEPS], steps;
} conv;

const char *conv_open(void)
{
    static char name[64];
    if (dnnl_engine_create(&conv.engine, dnnl_cpu, 0) != dnnl_success ||
        dnnl_stream_create(&conv.stream, conv.engine, dnnl_stream_default_flags) != dnnl_success)
        return NULL;
    const char *set = dnnl_get_effective_cpu_isa() >= dnnl_cpu_isa_avx512_core ? "AVX-512" : "AVX2";
    const char *from = "oneDNN, ";
    size_t at = 0;
    for (; *from; from++)
        name[at++] = *from;
    for (; *set; set++)
        name[at++] = *set;
    return name;
}

static void add_step(dnnl_primitive_t step, int args, const dnnl_exec_arg_t *arg)
{
    conv.step[conv.steps] = step;
    for (int i = 0; i < args; i++)
        conv.arg[conv.steps][i] = arg[i];
    conv.args[conv.steps++] = args;
}

static void add_reorder(dnnl_memory_t from, dnnl_memory_t to)
{
    const dnnl_memory_desc_t *a, *b;
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t step;
    dnnl_memory_get_memory_desc(from, &a);
    dnnl_memory_get_memory_desc(to, &b);
    if (dnnl_memory_desc_equal(a, b))
        return;
    dnnl_reorder_primitive_desc_create(&pd, a, conv.engine, b, conv.engine, NULL);
    dnnl_primitive_create(&step, pd);
    dnnl_primitive_desc_destroy(pd);
    add_step(step, 2, (dnnl_exec_arg_t[]){{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

static dnnl_primitive_desc_t describe(ConvKind kind, const ConvShape *s,
                                      const dnnl_memory_desc_t *md)
{
    const dnnl_dims_t stride = {s->stride, s->stride}, pad = {s->pad, s->pad}, none = {0, 0};
    dnnl_convolution_desc_t forward, desc;
    dnnl_primitive_desc_t hint, pd = NULL;
    dnnl_dilated_convolution_forward_desc_init(&forward, dnnl_forward_training,
                                               dnnl_convolution_direct, &md[0], &md[1], NULL,
                                               &md[2], stride, none, pad, pad);
    if (dnnl_primitive_desc_create(&hint, &forward, NULL, conv.engine, NULL) != dnnl_success)
        return NULL;
    if (kind == CONV_FORWARD)
        return hint;
    if (kind == CONV_BY_INPUT)
        dnnl_dilated_convolution_backward_data_desc_init(&desc, dnnl_convolution_direct, &md[0],
                                                         &md[1], &md[2], stride, none, pad, pad);
    else
        dnnl_dilated_convolution_backward_weights_desc_init(
            &desc, dnnl_convolution_direct, &md[0], &md[1], NULL, &md[2], stride, none, pad, pad);
    if (dnnl_primitive_desc_create(&pd, &desc, NULL, conv.engine, hint) != dnnl_success)
        pd = NULL;
    dnnl_primitive_desc_destroy(hint);
    return pd;
}

bool conv_prepare(const ConvShape *s, ConvKind kind, bool half, void *x, void *w, void *y)
{
    const int64_t out = (s->size + 2 * s->pad - s->kernel) / s->stride + 1;
    const dnnl_dims_t dim[MEMORIES + 1] = {
        {s->n, s->c, s->size, s->size},
        {s->o, s->c, s->kernel, s->kernel},
        {s->n, s->o, out, out},
        {s->groups, s->o / s->groups, s->c / s->groups, s->kernel, s->kernel}};
    const bool grouped = s->groups > 1;
    static const dnnl_query_t query[3][MEMORIES] = {
        {dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md},
        {dnnl_query_diff_src_md, dnnl_query_weights_md, dnnl_query_diff_dst_md},
        {dnnl_query_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md}};
    static const int arg[3][MEMORIES] = {{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
                                         {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
                                         {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST}};
    const int written = kind == CONV_FORWARD ? 2 : kind == CONV_BY_INPUT ? 0 : 1;
    void *const data[MEMORIES] = {x, w, y};
    dnnl_memory_desc_t any[MEMORIES];
    for (int i = 0; i < MEMORIES; i++) {
        const bool five = grouped && i == 1, weights = i == 1;
        const dnnl_data_type_t type = half && !weights ? dnnl_bf16 : dnnl_f32;
        const bool rounds = half && !(weights && kind == CONV_BY_WEIGHTS);
        dnnl_memory_desc_t md;
        dnnl_memory_desc_init_by_tag(&md, five ? 5 : 4, dim[five ? 3 : i], type,
                                     five ? dnnl_abcde : dnnl_abcd);
        dnnl_memory_desc_init_by_tag(&any[i], five ? 5 : 4, dim[five ? 3 : i],
                                     rounds ? dnnl_bf16 : dnnl_f32, dnnl_format_tag_any);
        dnnl_memory_create(&conv.plain[i], &md, conv.engine, data[i]);
    }
    dnnl_primitive_desc_t pd = describe(kind, s, any);
    if (!pd)
        return false;
    dnnl_exec_arg_t use[MEMORIES];
    conv.steps = 0;
    for (int i = 0; i < MEMORIES; i++) {
        const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(pd, query[kind][i], 0);
        const dnnl_memory_desc_t *mine;
        dnnl_memory_get_memory_desc(conv.plain[i], &mine);
        conv.own[i] = conv.plain[i];
        if (!dnnl_memory_desc_equal(md, mine))
            dnnl_memory_create(&conv.own[i], md, conv.engine, DNNL_MEMORY_ALLOCATE);
        use[i] = (dnnl_exec_arg_t){arg[kind][i], conv.own[i]};
        if (i != written)
            add_reorder(conv.plain[i], conv.own[i]);
    }
    dnnl_primitive_t step;
    dnnl_primitive_create(&step, pd);
    dnnl_primitive_desc_destroy(pd);
    add_step(step, MEMORIES, use);
    add_reorder(conv.own[written], conv.plain[written]);
    return true;
}

void conv_run(void)
{
    for (int i = 0; i < conv.steps; i++)
        dnnl_primitive_execute(conv.step[i], conv.stream, conv.args[i], conv.arg[i]);
    dnnl_stream_wait(conv.stream);
}

void conv_end(void)
{
    for (int i = 0; i < conv.steps; i++)
        dnnl_primitive_destroy(conv.step[i]);
    for (int i = 0; i < MEMORIES; i++) {
        if (conv.own[i] != conv.plain[i])
            dnnl_memory_destroy(conv.own[i]);
        dnnl_memory_destroy(conv.plain[i]);
    }
}
#else
const char *conv_open(void)
{
    return NULL;
}

bool conv_prepare(const ConvShape *shape, ConvKind kind, bool half, void *x, void *w, void *y)
{
    (void)shape, (void)kind, (void)half, (void)x, (void)w, (void)y;
    return false;
}

void conv_run(void)
{
}

void conv_end(void)
{
}
#endif
