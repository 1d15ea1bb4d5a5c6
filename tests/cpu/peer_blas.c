#define _DEFAULT_SOURCE
#include "tests/cpu/peers.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef void Product(int order, int turn_a, int turn_b, int m, int n, int k, float alpha,
                     const float *a, int a_row, const float *b, int b_row, float beta, float *c,
                     int c_row);
typedef void Threads(int);

static Product *product;
static Threads *set_threads;

/* A function out of a library: C has no cast from an object pointer to it. */
static void find(void *library, const char *name, void *to)
{
    void *at = dlsym(library, name);
    memcpy(to, &at, sizeof at);
}

const char *blas_open(void)
{
    static const char *const mkl[] = {"libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so"};
    const char *given = getenv("MKL_LIBRARY");
    void *library = given && *given ? dlopen(given, RTLD_NOW) : NULL;
    for (int i = 0; i < 3 && !library; i++)
        library = dlopen(mkl[i], RTLD_NOW);
    if (library) {
        find(library, "cblas_sgemm", &product);
        find(library, "MKL_Set_Num_Threads", &set_threads);
        return product && set_threads ? "MKL" : NULL;
    }
    setenv("OPENBLAS_CORETYPE", "SkylakeX", 0); /* it does not know every CPU by itself */
    library = dlopen("libopenblas.so.0", RTLD_NOW);
    if (!library)
        return NULL;
    find(library, "cblas_sgemm", &product);
    find(library, "openblas_set_num_threads", &set_threads);
    return product && set_threads ? "OpenBLAS" : NULL;
}

void blas_threads(int threads)
{
    if (set_threads)
        set_threads(threads);
}

void blas_product(int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c)
{
    enum { BY_ROWS = 101, AS_IS = 111 };
    product(BY_ROWS, AS_IS, AS_IS, (int)m, (int)n, (int)k, 1, a, (int)k, b, (int)n, 0, c, (int)n);
}
