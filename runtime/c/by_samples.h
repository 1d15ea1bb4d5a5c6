/* Kernels of images on 16 bits: a few samples at a time are widened, computed with as f32, and what
 * they make is rounded, so that no whole tensor is ever wide.
 *
 * How many samples follows from the shape, so that it changes no bit. Operands that samples share,
 * weights, are rounded once. An epilogue sees results in f32, before they are rounded. */
#ifndef GP_BY_SAMPLES_H
#define GP_BY_SAMPLES_H

#include "line.h"

enum {
    GP_SAMPLES_REALS = GP_BLOCK(1 << 20, 200), /* of wide copies, where a sample is no larger */
    GP_SAMPLES_SMALL = 64,                     /* planes that are moved all at once */
    GP_SAMPLES_INS = 3,
    GP_SAMPLES_OUTS = 2
};

typedef struct {
    const gp_call *call;
    uint32_t sampled; /* operands whose axis 0 is that of samples: a bit each */
    int half;
    int64_t samples, group; /* of all; of a part */
    int64_t first, before; /* of the part: its first sample, and elements of the output before it */
    gp_tensor in[GP_SAMPLES_INS], out[GP_SAMPLES_OUTS];
    gp_call part;
} gp_samples;

GP_FUNCTION int gp_samples_widens(const gp_samples *s, int i)
{
    return gp_is_real(s->call->in[i].dtype) && gp_count(&s->call->in[i]) > 0;
}

GP_FUNCTION int gp_samples_rounds(const gp_samples *s, int i)
{
    return gp_is_real(s->call->out[i].dtype) && s->call->out[i].dtype != GP_F32;
}

GP_FUNCTION gp_samples gp_samples_of(const gp_call *c, uint32_t sampled)
{
    gp_samples s = {.call = c, .sampled = sampled, .half = gp_half_of(c)};
    int64_t each = 1;
    s.samples = c->out[0].dim[0];
    for (int i = 0; i < c->ins; i++)
        if (sampled >> i & 1 && gp_samples_widens(&s, i))
            each += gp_span(&c->in[i], 1, c->in[i].rank);
    for (int i = 0; i < c->outs; i++)
        if (gp_samples_rounds(&s, i))
            each += gp_span(&c->out[i], 1, c->out[i].rank);
    s.group = GP_SAMPLES_REALS / each;
    s.group = s.group < 1 ? 1 : s.group < s.samples ? s.group : s.samples;
    return s;
}

/* `count` of the first axis of t, contiguous, in f32 at `at`. Returns how many elements. */
GP_FUNCTION int64_t gp_samples_wide(gp_tensor *wide, const gp_tensor *t, int64_t count, void *at)
{
    int64_t size = 1;
    *wide = *t;
    wide->dtype = GP_F32;
    wide->data = t->data && at ? at : t->data;
    wide->dim[0] = count;
    for (int d = t->rank; d-- > 0; size *= wide->dim[d])
        wide->stride[d] = size;
    return (size + 15) / 16 * 16;
}

/* The epilogue of a part: elements are numbered through all of them. */
GP_FUNCTION void gp_samples_end(const void *args, gp_real *at, int64_t first, int64_t n)
{
    const gp_samples *s = (const gp_samples *)args;
    s->call->epilogue(s->call->epilogue_args, at, s->before + first, n);
}

/* The part of `count` samples from `first`. Returns how many reals its copies take. */
GP_FUNCTION int64_t gp_samples_at(gp_samples *s, int64_t first, int64_t count)
{
    const gp_call *c = s->call;
    gp_real *work = (gp_real *)c->work;
    int64_t used = 0;
    s->first = first;
    s->before = first * gp_span(&c->out[0], 1, c->out[0].rank);
    s->part = *c;
    for (int i = 0; i < c->ins; i++) {
        const gp_tensor *t = &c->in[i];
        const int sampled = s->sampled >> i & 1;
        s->in[i] = *t;
        if (gp_samples_widens(s, i)) {
            used += gp_samples_wide(&s->in[i], t, sampled ? s->group : t->dim[0],
                                    work ? work + used : NULL);
        } else if (sampled && t->data) {
            s->in[i].data = gp_element(t, first * t->stride[0]);
        }
        if (sampled)
            s->in[i].dim[0] = count;
    }
    for (int i = 0; i < c->outs; i++) {
        const gp_tensor *t = &c->out[i];
        s->out[i] = *t;
        if (gp_samples_rounds(s, i))
            used += gp_samples_wide(&s->out[i], t, s->group, work ? work + used : NULL);
        else if (t->data)
            s->out[i].data = gp_element(t, first * t->stride[0]);
        s->out[i].dim[0] = count;
    }
    s->part.half = s->half;
    s->part.in = s->in;
    s->part.out = s->out;
    s->part.work = work ? work + used : NULL;
    s->part.epilogue = c->epilogue ? gp_samples_end : NULL;
    s->part.epilogue_args = s;
    return used;
}

/* A plane of a tensor, from its line at `base`, to contiguous reals or from there. */
GP_FUNCTION void gp_samples_plane(const gp_tensor *t, const gp_line *line, int64_t base,
                                  gp_real *wide, int half, int loads)
{
    const int64_t size = gp_line_count(line), run = line->rank ? line->dim[line->rank - 1] : 1;
    const int64_t step = line->rank ? line->stride[line->rank - 1] : 1;
    for (int64_t i = 0; i < size; i += run) {
        void *at = gp_element(t, base + gp_line_at(line, i));
        if (!loads)
            gp_set_run(at, step, wide + i, run, t->dtype);
        else if (t->dtype != GP_F32)
            gp_get_run(wide + i, at, step, run, t->dtype);
        else
            gp_round_run(wide + i, at, step, run, half);
    }
}

/* Widens an operand of the part, or rounds an output. */
GP_FUNCTION void gp_samples_move(const gp_samples *s, const gp_tensor *t, const gp_tensor *wide,
                                 int64_t first, int loads)
{
    const int even = t->rank == 4 && gp_span(t, 2, 4) <= GP_SAMPLES_SMALL &&
                     t->stride[1] == gp_span(t, 2, 4) && t->stride[3] == 1 &&
                     t->stride[2] == t->dim[3]; /* planes side by side are moved at once */
    const int64_t across = t->rank > 1 && !even ? t->dim[1] : 1, planes = wide->dim[0] * across;
    gp_line line = {0};
    for (int d = even ? 1 : 2; d < t->rank; d++)
        gp_line_add(&line, t->dim[d], t->stride[d]);
    const int64_t size = gp_line_count(&line);
    GP_PARALLEL(s->call->run, planes * size > 32768)
    for (int64_t i = 0; i < planes; i++)
        gp_samples_plane(t, &line,
                         (first + i / across) * t->stride[0] +
                             (across > 1 ? i % across * t->stride[1] : 0),
                         (gp_real *)wide->data + i * size, s->half, loads);
}

GP_FUNCTION int gp_by_samples(const gp_call *c, uint32_t sampled, int (*kernel)(const gp_call *))
{
    gp_samples s = gp_samples_of(c, sampled);
    int code = GP_OK;
    for (int64_t first = 0; first < s.samples && code == GP_OK; first += s.group) {
        const int64_t left = s.samples - first;
        gp_samples_at(&s, first, left < s.group ? left : s.group);
        for (int i = 0; i < c->ins; i++)
            if (gp_samples_widens(&s, i) && c->in[i].data && (sampled >> i & 1 || first == 0))
                gp_samples_move(&s, &c->in[i], &s.in[i], sampled >> i & 1 ? first : 0, 1);
        code = kernel(&s.part);
        for (int i = 0; i < c->outs; i++)
            if (gp_samples_rounds(&s, i) && c->out[i].data)
                gp_samples_move(&s, &c->out[i], &s.out[i], first, 0);
    }
    return code;
}

/* Workspace of that; `space` is the kernel's own, or NULL. */
GP_FUNCTION size_t gp_samples_space(const gp_call *c, uint32_t sampled,
                                    size_t (*space)(const gp_call *))
{
    gp_samples s = gp_samples_of(c, sampled);
    const int64_t last = s.samples % s.group;
    size_t own = 0, most = 0;
    for (int k = 0; k < 2; k++) {
        if (k && last == 0)
            continue;
        own = (size_t)gp_samples_at(&s, 0, k ? last : s.group) * sizeof(gp_real);
        const size_t more = space ? space(&s.part) : 0;
        most = more > most ? more : most;
    }
    return own + most;
}

/* What the calls for parts take. */
GP_FUNCTION void gp_samples_ways(const gp_call *c, uint32_t sampled, gp_ways *ways,
                                 void (*say)(const gp_call *, gp_ways *))
{
    gp_samples s = gp_samples_of(c, sampled);
    gp_samples_at(&s, 0, s.group);
    say(&s.part, ways);
    gp_samples_at(&s, 0, s.samples % s.group ? s.samples % s.group : s.group);
    say(&s.part, ways);
}

#endif
