/* Links an emitted model and runs it where there is a GPU. Where there is none, the model must say
 * so: with the code of a refused call, and in words. */
#include <cuda_runtime.h>
#include <stdio.h>
#include <string.h>

#define JOIN(a, b) a##b
#define PASTE(a, b) JOIN(a, b)
#define M(name) PASTE(MODEL, name)
#define K(name) PASTE(CAPITALS, name)

static MODEL model;

int main()
{
    int devices = 0;
    const bool none = cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0;
    (void)cudaGetLastError();
#ifdef FOR_RANKS /* without a communicator they must say that */
    int code = M(_create)(&model, NULL, NULL);
    if (!none) {
        printf("%s\n", M(_error)(&model));
        return K(_ERROR_KIND)(code) == K(_ERANK) && strstr(M(_error)(&model), "NCCL") ? 0 : 1;
    }
#else
    int code = M(_create)(&model, NULL);
#endif
    if (none) {
        printf("%s: %s\n", M(_strerror)(code), M(_error)(&model));
        return K(_ERROR_KIND)(code) == K(_EDEVICE) && strlen(M(_error)(&model)) > 0 ? 0 : 1;
    }
    if (code == 0)
        code = M(_reset)(&model, 1);
    if (code == 0)
        code = M(_sync)(&model);
    printf("%s\n", code ? M(_error)(&model) : "runs on the GPU");
    M(_free)(&model);
    return code;
}
