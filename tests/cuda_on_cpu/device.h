/* What the parts of the emulator ask of each other. */
#ifndef CUDA_ON_CPU_DEVICE_H
#define CUDA_ON_CPU_DEVICE_H

#include "cuda_runtime.h"

enum { CUDA_ON_CPU_DEVICES = 2 };

/* Something for a stream. A kernel reaches the memory of its own device alone. What waits for
 * another process has `poll`, which does what it can and says whether all is done. */
struct Work {
    std::function<void()> run;
    bool kernel = false;
    std::function<bool()> poll = nullptr;
};

/* ---- runtime.cpp ---------------------------------------------------------------------------- */

/* Whether the current device would start such a grid, and why not. */
cudaError_t device_starts(const void *kernel, dim3 grid, dim3 block, size_t shared,
                          cudaStream_t stream);
/* What a call returns that would return `error`; counts it among those that can fail, and then
 * returns `refused`. */
cudaError_t device_answer(cudaError_t error, cudaError_t refused = cudaErrorLaunchFailure);
int device_current();
void device_run(int device, const Work &work);

/* ---- streams.cpp ---------------------------------------------------------------------------- */

void streams_put(cudaStream_t stream, const Work &work); /* there is such a stream */
bool streams_spoil_captures();                           /* whether there are some */
void streams_finish(int device);
int streams_device(cudaStream_t stream); /* -1: there is no such stream */

#endif
