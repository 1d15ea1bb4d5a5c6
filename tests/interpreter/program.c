/* An emitted program: loads it, writes what it reads, runs it. */
#include "tests/interpreter/compare.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static void must(const Subject *s, int code, const char *what)
{
    if (code)
        stop("%s: %s: %s", s->path, what, s->error(code));
}

double subject_element(const Subject *s, const SubjectTensor *t, int64_t i)
{
    const unsigned char *at = s->arena + t->offset;
    switch (t->dtype) {
    case F32:
        return ((const float *)(const void *)at)[i];
    case I32:
        return ((const int32_t *)(const void *)at)[i];
    case I64:
        return (double)((const int64_t *)(const void *)at)[i];
    default:
        return at[i];
    }
}

int64_t subject_count(const SubjectTensor *t)
{
    return (int64_t)(t->bytes / dtype_size((Dtype)t->dtype));
}

double *subject_read(const Subject *s, const SubjectTensor *t)
{
    double *to = need_doubles(subject_count(t));
    for (int64_t i = 0; i < subject_count(t); i++)
        to[i] = subject_element(s, t, i);
    return to;
}

static void subject_write(const Subject *s, const SubjectTensor *t, const double *from)
{
    unsigned char *at = s->arena + t->offset;
    for (int64_t i = 0; i < subject_count(t); i++)
        if (t->dtype == F32)
            ((float *)(void *)at)[i] = (float)from[i];
        else if (t->dtype == I32)
            ((int32_t *)(void *)at)[i] = (int32_t)from[i];
        else if (t->dtype == I64)
            ((int64_t *)(void *)at)[i] = (int64_t)from[i];
        else
            at[i] = (unsigned char)from[i];
}

bool subject_find(const Subject *s, const char *name, SubjectTensor *t, size_t *at)
{
    for (*at = 0; *at < s->tensors; ++*at) {
        s->tensor(*at, t);
        if (strcmp(t->name, name) == 0)
            return true;
    }
    return false;
}

SubjectTensor subject_tensor_named(const Subject *s, const char *name, size_t *at)
{
    SubjectTensor t;
    if (!subject_find(s, name, &t, at))
        stop("%s: there is no tensor %s", s->path, name);
    return t;
}

static void *symbol(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (!found)
        stop("%s", dlerror());
    return found;
}

Subject subject_load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        stop("%s", dlerror());
    Subject s = {.path = path};
    *(void **)&s.arena_bytes = symbol(library, "subject_arena");
    *(void **)&s.begin = symbol(library, "subject_begin");
    *(void **)&s.forward = symbol(library, "subject_forward");
    *(void **)&s.eval = symbol(library, "subject_eval");
    *(void **)&s.step = symbol(library, "subject_step");
    *(void **)&s.error = symbol(library, "subject_error");
    *(void **)&s.tensor = symbol(library, "subject_tensor");
    SubjectTensor t;
    s.tensors = s.tensor(SIZE_MAX, &t);
    s.before = need_memory(s.tensors * sizeof *s.before);
    s.output = need_memory(s.tensors * sizeof *s.output);
    size_t bytes = (s.arena_bytes() + 63) / 64 * 64;
    s.arena = aligned_alloc(64, bytes);
    if (!s.arena)
        stop("no memory for an arena of %zu bytes", bytes);
    memset(s.arena, 0xff, bytes); /* NaN: what nobody wrote shows */
    must(&s, s.begin(s.arena, bytes, SEED, 2), "begin");
    return s;
}

void subject_free(Subject *s)
{
    for (size_t i = 0; i < s->tensors; i++) {
        free(s->before[i]);
        free(s->output[i]);
    }
    free(s->before);
    free(s->output);
    free(s->arena);
}

void subject_infer(Subject *s, const Machine *m)
{
    for (size_t i = 0; i < s->tensors; i++) {
        SubjectTensor t;
        s->tensor(i, &t);
        Id value = t.kind == SUBJECT_OUTPUT ? NONE : graph_find(m->g, t.name);
        if (value != NONE)
            subject_write(s, &t, m->value[value]);
    }
    must(s, s->forward(), "forward");
    for (size_t i = 0; i < s->tensors; i++) {
        SubjectTensor t;
        s->tensor(i, &t);
        if (t.kind == SUBJECT_OUTPUT)
            s->output[i] = subject_read(s, &t);
    }
    must(s, s->eval(&s->eval_loss), "eval");
}

void subject_train(Subject *s)
{
    for (size_t i = 0; i < s->tensors; i++) {
        SubjectTensor t;
        s->tensor(i, &t);
        if (t.kind != SUBJECT_STATE && t.kind != SUBJECT_PARAM)
            continue;
        free(s->before[i]);
        s->before[i] = subject_read(s, &t);
    }
    must(s, s->step(&s->step_loss), "step");
}
