/* How the functions of an emitted program describe tensors and call kernels. */
#ifndef GP_CALL_H
#define GP_CALL_H

#include "narrow.h"

#define GP_LIST(...) \
    {                \
        __VA_ARGS__  \
    }
/* GP_DENSE_2(x, GP_F32, 3, 4): a contiguous tensor of rank 2, as the initializer of a gp_tensor. */
#define GP_DENSE_0(x, type) GP_LIST((void *)(x), type, 0, GP_LIST(0), GP_LIST(0))
#define GP_DENSE_1(x, type, a) GP_LIST((void *)(x), type, 1, GP_LIST(a), GP_LIST(1))
#define GP_DENSE_2(x, type, a, b) GP_LIST((void *)(x), type, 2, GP_LIST(a, b), GP_LIST(b, 1))
#define GP_DENSE_3(x, type, a, b, c) \
    GP_LIST((void *)(x), type, 3, GP_LIST(a, b, c), GP_LIST((int64_t)(b) * (c), c, 1))
#define GP_DENSE_4(x, type, a, b, c, d)                \
    GP_LIST((void *)(x), type, 4, GP_LIST(a, b, c, d), \
            GP_LIST((int64_t)(b) * (c) * (d), (int64_t)(c) * (d), d, 1))

/* A tensor as a flat list of numbers, for kernels that do not read dims. */
GP_HOST gp_tensor gp_list(void *x, int64_t count)
{
    const gp_tensor list = GP_DENSE_1(x, GP_F32, count);
    return list;
}

#ifndef GP_CUDA
/* Calls a kernel with the arrays `in` and `out` declared before it: GP_CALL(gp_softmax, .run =
 * run). With GP_CALL_NO_IN there is no `in`; with GP_CALL_PART `out` is complete only later. */
#define GP_CALL(kernel, ...)              \
    GP_CHECK_OUT(kernel(&(const gp_call){ \
        .in = in, .ins = GP_LENGTH(in), .out = out, .outs = GP_LENGTH(out), __VA_ARGS__}))
#define GP_CALL_NO_IN(kernel, ...) \
    GP_CHECK_OUT(kernel(&(const gp_call){.out = out, .outs = GP_LENGTH(out), __VA_ARGS__}))
#define GP_CALL_PART(kernel, ...) \
    kernel(&(const gp_call){      \
        .in = in, .ins = GP_LENGTH(in), .out = out, .outs = GP_LENGTH(out), __VA_ARGS__})
#define GP_ATTR(settings, ...) \
    .attr = &(const settings)  \
    {                          \
        __VA_ARGS__            \
    }
#define GP_EPILOGUE(function, ...)                               \
    .epilogue = function, .epilogue_args = (const void *const[]) \
    {                                                            \
        __VA_ARGS__                                              \
    }
#define GP_LENGTH(array) (int32_t)(sizeof(array) / sizeof *(array))

/* -DGPLAN_CHECK_NAN: the status of an op, with the array of its outputs. */
#ifdef GPLAN_CHECK_NAN
GP_HOST int gp_has_nan(const gp_tensor *t)
{
    const int last = t->rank - 1;
    const int64_t width = t->rank ? t->dim[last] : 1, step = t->rank ? t->stride[last] : 0;
    for (int64_t row = 0; row < gp_span(t, 0, last); row++) {
        int64_t rest = row, at = 0;
        for (int d = last; d-- > 0; rest /= t->dim[d])
            at += rest % t->dim[d] * t->stride[d];
        for (int64_t i = 0; i < width; i++) {
            const gp_real x = gp_get_real(t->data, at + i * step, t->dtype);
            if (x != x)
                return 1;
        }
    }
    return 0;
}

GP_HOST int gp_check_out(int code, const gp_tensor *out, int outs)
{
    for (int i = 0; i < outs && code == GP_OK; i++)
        if (out[i].data && gp_is_real(out[i].dtype) && gp_has_nan(&out[i]))
            code = GP_ENAN;
    return code;
}
#define GP_CHECK_OUT(code) gp_check_out(code, out, GP_LENGTH(out))
/* The status of an elementwise loop, with its outputs. */
#define GP_MADE(...)                                      \
    gp_check_out(GP_OK, (const gp_tensor[]){__VA_ARGS__}, \
                 (int)(sizeof((const gp_tensor[]){__VA_ARGS__}) / sizeof(gp_tensor)))
#else
#define GP_CHECK_OUT(code) (code)
#define GP_MADE(...) GP_OK
#endif
#endif

#endif
