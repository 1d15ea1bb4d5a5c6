/* cuBLAS on the CPU: the products that the kernels use, as plain loops in the order of memory. */
#ifndef CUDA_ON_CPU_CUBLAS_H
#define CUDA_ON_CPU_CUBLAS_H

#include <cuda_runtime.h>

enum cublasStatus_t {
    CUBLAS_STATUS_SUCCESS = 0,
    CUBLAS_STATUS_NOT_INITIALIZED = 1,
    CUBLAS_STATUS_INVALID_VALUE = 7,
    CUBLAS_STATUS_ARCH_MISMATCH = 8,
    CUBLAS_STATUS_EXECUTION_FAILED = 13,
    CUBLAS_STATUS_NOT_SUPPORTED = 15
};
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T };
enum cublasMath_t {
    CUBLAS_DEFAULT_MATH = 0,
    CUBLAS_PEDANTIC_MATH = 2,
    CUBLAS_TF32_TENSOR_OP_MATH = 3,
    CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16
};
enum cudaDataType_t { CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_R_16F = 2, CUDA_R_16BF = 14 };
enum cublasComputeType_t { CUBLAS_COMPUTE_16F = 64, CUBLAS_COMPUTE_32F = 68 };
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT = -1 };
enum cublasPointerMode_t { CUBLAS_POINTER_MODE_HOST, CUBLAS_POINTER_MODE_DEVICE };
typedef struct cublasContext *cublasHandle_t;

cublasStatus_t cublasCreate(cublasHandle_t *handle);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *work, size_t bytes);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode);
const char *cublasGetStatusString(cublasStatus_t status);

#define CUDA_ON_CPU_GEMM(letter, real)                                                            \
    cublasStatus_t cublas##letter##gemm(cublasHandle_t handle, cublasOperation_t ta,              \
                                        cublasOperation_t tb, int m, int n, int k,                \
                                        const real *alpha, const real *a, int lda, const real *b, \
                                        int ldb, const real *beta, real *c, int ldc);             \
    cublasStatus_t cublas##letter##gemmStridedBatched(                                            \
        cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,   \
        const real *alpha, const real *a, int lda, long long stride_a, const real *b, int ldb,    \
        long long stride_b, const real *beta, real *c, int ldc, long long stride_c, int batches); \
    cublasStatus_t cublas##letter##gemm_64(                                                       \
        cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int64_t m, int64_t n,  \
        int64_t k, const real *alpha, const real *a, int64_t lda, const real *b, int64_t ldb,     \
        const real *beta, real *c, int64_t ldc);                                                  \
    cublasStatus_t cublas##letter##gemmStridedBatched_64(                                         \
        cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int64_t m, int64_t n,  \
        int64_t k, const real *alpha, const real *a, int64_t lda, long long stride_a,             \
        const real *b, int64_t ldb, long long stride_b, const real *beta, real *c, int64_t ldc,   \
        long long stride_c, int64_t batches);
CUDA_ON_CPU_GEMM(S, float)
CUDA_ON_CPU_GEMM(D, double)
#undef CUDA_ON_CPU_GEMM

/* Factors of one dtype, f16 or bf16, with sums in f32; the result is of theirs or f32. */
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb,
                            int m, int n, int k, const void *alpha, const void *a,
                            cudaDataType_t a_type, int lda, const void *b, cudaDataType_t b_type,
                            int ldb, const void *beta, void *c, cudaDataType_t c_type, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t algorithm);
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t ta,
                                          cublasOperation_t tb, int m, int n, int k,
                                          const void *alpha, const void *a, cudaDataType_t a_type,
                                          int lda, long long stride_a, const void *b,
                                          cudaDataType_t b_type, int ldb, long long stride_b,
                                          const void *beta, void *c, cudaDataType_t c_type, int ldc,
                                          long long stride_c, int batches,
                                          cublasComputeType_t compute, cublasGemmAlgo_t algorithm);

#endif
