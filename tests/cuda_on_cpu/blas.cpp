/* See cublas_v2.h. Matrices lie column by column. A product runs on the handle's stream, as late
 * as a kernel would. */
#include "cublas_v2.h"
#include "device.h"

struct cublasContext {
    cudaStream_t stream;
    int device;
};

/* A handle works on the device it was made on, and no other. */
static bool is_elsewhere(cublasHandle_t handle)
{
    return handle->device != device_current() || streams_device(handle->stream) != handle->device;
}

cublasStatus_t cublasCreate(cublasHandle_t *handle)
{
    if (cuda_on_cpu_refuses())
        return CUBLAS_STATUS_EXECUTION_FAILED;
    *handle = new cublasContext{0, device_current()};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle)
{
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream)
{
    if (streams_device(stream) != handle->device)
        return CUBLAS_STATUS_INVALID_VALUE;
    handle->stream = stream;
    return cuda_on_cpu_refuses() ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}

/* A GPU's library may write all of it at any time, so here it does: a planned workspace that
 * overlaps something else shows. */
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *work, size_t bytes)
{
    if (is_elsewhere(handle) || (bytes > 0 && (uintptr_t)work % 256 != 0))
        return CUBLAS_STATUS_INVALID_VALUE;
    cuda_on_cpu_enqueue(handle->stream, [=] {
        if (bytes > 0)
            memset(work, 0xff, bytes);
    });
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t)
{
    return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t)
{
    return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_SUCCESS           ? "success"
           : status == CUBLAS_STATUS_INVALID_VALUE   ? "an invalid value"
           : status == CUBLAS_STATUS_NOT_INITIALIZED ? "not initialised"
                                                     : "the product failed";
}

template <class Real> struct Product {
    bool ta, tb;
    int64_t m, n, k;
    Real alpha, beta;
    const Real *a, *b;
    Real *c;
    int64_t lda, ldb, ldc, stride_a, stride_b, stride_c, batches;
};

template <class Real> static void multiply(const Product<Real> &p)
{
    for (int64_t batch = 0; batch < p.batches; batch++) {
        const Real *a = p.a + batch * p.stride_a, *b = p.b + batch * p.stride_b;
        Real *c = p.c + batch * p.stride_c;
        for (int64_t j = 0; j < p.n; j++)
            for (int64_t i = 0; i < p.m; i++) {
                Real sum = 0;
                for (int64_t l = 0; l < p.k; l++)
                    sum += (p.ta ? a[l + i * p.lda] : a[i + l * p.lda]) *
                           (p.tb ? b[j + l * p.ldb] : b[l + j * p.ldb]);
                c[i + j * p.ldc] = p.alpha * sum + (p.beta == 0 ? 0 : p.beta * c[i + j * p.ldc]);
            }
    }
}

template <class Real> static cublasStatus_t start(cublasHandle_t handle, const Product<Real> &p)
{
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (is_elsewhere(handle))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    const bool fits = p.m >= 0 && p.n >= 0 && p.k >= 0 && p.batches >= 0 &&
                      p.lda >= (p.ta ? p.k : p.m) && p.ldb >= (p.tb ? p.n : p.k) && p.ldc >= p.m &&
                      p.lda > 0 && p.ldb > 0 && p.ldc > 0;
    if (!fits)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (cuda_on_cpu_refuses())
        return CUBLAS_STATUS_EXECUTION_FAILED;
    cuda_on_cpu_enqueue(handle->stream, [=] { multiply(p); });
    return CUBLAS_STATUS_SUCCESS;
}

#define GEMM(suffix, letter, real, whole)                                                         \
    cublasStatus_t cublas##letter##gemm##suffix(                                                  \
        cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, whole m, whole n,      \
        whole k, const real *alpha, const real *a, whole lda, const real *b, whole ldb,           \
        const real *beta, real *c, whole ldc)                                                     \
    {                                                                                             \
        return start(handle, Product<real>{ta != CUBLAS_OP_N, tb != CUBLAS_OP_N, m, n, k, *alpha, \
                                           *beta, a, b, c, lda, ldb, ldc, 0, 0, 0, 1});           \
    }                                                                                             \
    cublasStatus_t cublas##letter##gemmStridedBatched##suffix(                                    \
        cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, whole m, whole n,      \
        whole k, const real *alpha, const real *a, whole lda, long long stride_a, const real *b,  \
        whole ldb, long long stride_b, const real *beta, real *c, whole ldc, long long stride_c,  \
        whole batches)                                                                            \
    {                                                                                             \
        return start(handle, Product<real>{ta != CUBLAS_OP_N, tb != CUBLAS_OP_N, m, n, k, *alpha, \
                                           *beta, a, b, c, lda, ldb, ldc, stride_a, stride_b,     \
                                           stride_c, batches});                                   \
    }
GEMM(, S, float, int)
GEMM(, D, double, int)
GEMM(_64, S, float, int64_t)
GEMM(_64, D, double, int64_t)
