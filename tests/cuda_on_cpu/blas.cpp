/* See cublas_v2.h. Matrices lie column by column. A product runs on the handle's stream, as late
 * as a kernel would. */
#include "cublas_v2.h"
#include "device.h"

#include <math.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <vector>

struct cublasContext {
    cudaStream_t stream;
    int device;
    cublasMath_t mode;
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
    *handle = new cublasContext{0, device_current(), CUBLAS_DEFAULT_MATH};
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

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    handle->mode = mode;
    return CUBLAS_STATUS_SUCCESS;
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

/* Numbers as they lie, and as they are computed with: 16 bits by the definition of the format, in
 * double, and not as the kernels do it. */
template <int FRACTION, int BIAS> struct Half {
    uint16_t bits;

    static float value(int bits)
    {
        const int exponent = bits >> FRACTION & (2 * BIAS + 1), part = bits & ((1 << FRACTION) - 1);
        double size = ldexp(part, 1 - BIAS - FRACTION);
        if (exponent == 2 * BIAS + 1)
            size = part ? NAN : INFINITY;
        else if (exponent > 0)
            size = ldexp((1 << FRACTION) + part, exponent - BIAS - FRACTION);
        return (float)(bits >> 15 ? -size : size);
    }
    static std::vector<float> all()
    {
        std::vector<float> values(1 << 16);
        for (int i = 0; i < 1 << 16; i++)
            values[(size_t)i] = value(i);
        return values;
    }
    operator float() const
    {
        static const std::vector<float> values = all();
        return values[bits];
    }
    Half &operator=(float x)
    {
        int exponent = 0;
        const double size = fabs((double)x);
        frexp(size, &exponent); /* the last bit of numbers of this size is worth: */
        const double unit = ldexp(1, std::max(exponent - 1, 1 - BIAS) - FRACTION);
        const double rounded = nearbyint(size / unit) * unit; /* ties to even */
        const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
        const uint16_t infinite = (uint16_t)((2 * BIAS + 1) << FRACTION);
        if (std::isnan(x))
            bits = sign | infinite | 1u << (FRACTION - 1);
        else if (rounded >= ldexp(1, BIAS + 1))
            bits = sign | infinite;
        else if (rounded < ldexp(1, 1 - BIAS))
            bits = sign | (uint16_t)ldexp(rounded, BIAS - 1 + FRACTION);
        else {
            frexp(rounded, &exponent);
            const double fraction = ldexp(rounded, 1 - exponent) - 1;
            bits = (uint16_t)(sign | (exponent - 1 + BIAS) << FRACTION |
                              (int)ldexp(fraction, FRACTION));
        }
        return *this;
    }
};
typedef Half<10, 15> F16;
typedef Half<7, 127> BF16;

template <class From, class Real, class To> struct Product {
    bool ta, tb;
    int64_t m, n, k;
    Real alpha, beta;
    const From *a, *b;
    To *c;
    int64_t lda, ldb, ldc, stride_a, stride_b, stride_c, batches;
};

template <class From, class Real, class To> static void multiply(const Product<From, Real, To> &p)
{
    for (int64_t batch = 0; batch < p.batches; batch++) {
        const From *a = p.a + batch * p.stride_a, *b = p.b + batch * p.stride_b;
        To *c = p.c + batch * p.stride_c;
        for (int64_t j = 0; j < p.n; j++)
            for (int64_t i = 0; i < p.m; i++) {
                Real sum = 0;
                for (int64_t l = 0; l < p.k; l++)
                    sum += (Real)(p.ta ? a[l + i * p.lda] : a[i + l * p.lda]) *
                           (Real)(p.tb ? b[j + l * p.ldb] : b[l + j * p.ldb]);
                To &to = c[i + j * p.ldc];
                to = p.alpha * sum + (p.beta == 0 ? 0 : p.beta * (Real)to);
            }
    }
}

template <class From, class Real, class To>
static cublasStatus_t start(cublasHandle_t handle, const Product<From, Real, To> &p)
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

#define GEMM(suffix, letter, real, whole)                                                          \
    cublasStatus_t cublas##letter##gemm##suffix(                                                   \
        cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, whole m, whole n,       \
        whole k, const real *alpha, const real *a, whole lda, const real *b, whole ldb,            \
        const real *beta, real *c, whole ldc)                                                      \
    {                                                                                              \
        return start(handle, Product<real, real, real>{ta != CUBLAS_OP_N, tb != CUBLAS_OP_N, m, n, \
                                                       k, *alpha, *beta, a, b, c, lda, ldb, ldc,   \
                                                       0, 0, 0, 1});                               \
    }                                                                                              \
    cublasStatus_t cublas##letter##gemmStridedBatched##suffix(                                     \
        cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, whole m, whole n,       \
        whole k, const real *alpha, const real *a, whole lda, long long stride_a, const real *b,   \
        whole ldb, long long stride_b, const real *beta, real *c, whole ldc, long long stride_c,   \
        whole batches)                                                                             \
    {                                                                                              \
        return start(handle, Product<real, real, real>{ta != CUBLAS_OP_N, tb != CUBLAS_OP_N, m, n, \
                                                       k, *alpha, *beta, a, b, c, lda, ldb, ldc,   \
                                                       stride_a, stride_b, stride_c, batches});    \
    }
GEMM(, S, float, int)
GEMM(, D, double, int)
GEMM(_64, S, float, int64_t)
GEMM(_64, D, double, int64_t)

template <class From, class To>
static cublasStatus_t start_halves(cublasHandle_t handle, Product<From, float, To> p, const void *a,
                                   const void *b, void *c)
{
    p.a = (const From *)a;
    p.b = (const From *)b;
    p.c = (To *)c;
    return start(handle, p);
}

/* Sums of parts of the depth are f32 only where that was asked for. */
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t ta,
                                          cublasOperation_t tb, int m, int n, int k,
                                          const void *alpha, const void *a, cudaDataType_t a_type,
                                          int lda, long long stride_a, const void *b,
                                          cudaDataType_t b_type, int ldb, long long stride_b,
                                          const void *beta, void *c, cudaDataType_t c_type, int ldc,
                                          long long stride_c, int batches,
                                          cublasComputeType_t compute, cublasGemmAlgo_t)
{
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    const bool known = a_type == b_type && (a_type == CUDA_R_16F || a_type == CUDA_R_16BF) &&
                       (c_type == a_type || c_type == CUDA_R_32F);
    if (!known || compute != CUBLAS_COMPUTE_32F ||
        handle->mode != CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (a_type == CUDA_R_16BF && getenv("CUDA_ON_CPU_OLD")) /* as on a GPU that has no bf16 */
        return CUBLAS_STATUS_NOT_SUPPORTED;
#define START(from, to)                                                                          \
    start_halves(handle,                                                                         \
                 Product<from, float, to>{ta != CUBLAS_OP_N, tb != CUBLAS_OP_N, m, n, k,         \
                                          *(const float *)alpha, *(const float *)beta, 0, 0, 0,  \
                                          lda, ldb, ldc, stride_a, stride_b, stride_c, batches}, \
                 a, b, c)
    if (a_type == CUDA_R_16F)
        return c_type == CUDA_R_32F ? START(F16, float) : START(F16, F16);
    return c_type == CUDA_R_32F ? START(BF16, float) : START(BF16, BF16);
#undef START
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb,
                            int m, int n, int k, const void *alpha, const void *a,
                            cudaDataType_t a_type, int lda, const void *b, cudaDataType_t b_type,
                            int ldb, const void *beta, void *c, cudaDataType_t c_type, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t algorithm)
{
    return cublasGemmStridedBatchedEx(handle, ta, tb, m, n, k, alpha, a, a_type, lda, 0, b, b_type,
                                      ldb, 0, beta, c, c_type, ldc, 0, 1, compute, algorithm);
}
