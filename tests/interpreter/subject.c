/* An emitted model under names that are the same for all, to be loaded as a shared library:
 * compiled with -DMODEL=mlp, its header included first. */
#include "tests/interpreter/subject.h"

#define JOIN(a, b) a##b
#define PASTE(a, b) JOIN(a, b)
#define M(name) PASTE(MODEL, name) /* M(_init): mlp_init */

static MODEL model;

size_t subject_arena(void)
{
    return ARENA;
}

int subject_begin(void *arena, size_t bytes, uint64_t seed, int threads)
{
    int code = M(_init)(&model, arena, bytes);
    if (code)
        return code;
    M(_threads)(&model, threads);
    M(_reset)(&model, seed);
    return 0;
}

int subject_forward(void)
{
    return M(_forward)(&model);
}

int subject_eval(float *loss)
{
    return M(_eval)(&model, loss);
}

int subject_step(float *loss)
{
    return M(_step)(&model, loss);
}

const char *subject_error(int code)
{
    return M(_strerror)(code);
}

size_t subject_tensor(size_t i, SubjectTensor *to)
{
    size_t count;
    const M(_tensor) *t = M(_tensors)(&count);
    if (i < count)
        *to = (SubjectTensor){t[i].name, t[i].kind, t[i].dtype, t[i].offset, t[i].bytes};
    return count;
}
