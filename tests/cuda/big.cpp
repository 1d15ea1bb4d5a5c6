/* The model big in memory that is only promised, so that it costs the pages that are touched: a few
 * blocks of the grid are run, and must read and write the elements that are theirs. */
#include "target.h"

#include <sys/mman.h>

static float *at(size_t offset)
{
    return (float *)(void *)(model.arena + offset);
}

static void run_block(int64_t block)
{
    const int64_t first = block * 256, columns = (int64_t)1 << 30;
    size_t x = 0, y = 0, w = 0;
    for (const auto &t : tensors())
        (t.kind == KIND_INPUT ? x : t.kind == KIND_OUTPUT ? y : w) = t.offset;
    for (int64_t i = first; i < first + 256; i++) {
        at(x)[i] = (float)(i % 1000);
        at(w)[i % columns] = (float)(1 + i % 7);
    }
    cuda_on_cpu_only_blocks(block, block + 1);
    expect_ok(big_forward(&model), "forward");
    expect(cudaStreamSynchronize(NULL) == cudaSuccess, "no fault");
    for (int64_t i = first; i < first + 256; i++)
        expect(at(y)[i] == (float)(i % 1000) * (float)(1 + i % 7) + 1.5f, "its own value");
    for (int64_t i = first + 256; i < first + 512 && i < 3 * columns; i++)
        expect(at(y)[i] == 0, "nobody else's");
}

int main()
{
    arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                 -1, 0);
    if (arena == MAP_FAILED) {
        puts("this machine does not promise that much memory");
        return 0;
    }
    expect_ok(big_init(&model, arena, ARENA, NULL), "init");
    const int64_t blocks = (int64_t)3 << 22;
    run_block(0);
    run_block(((int64_t)1 << 31) / 256 - 1);
    run_block(((int64_t)1 << 31) / 256);
    run_block(blocks - 1);
    return 0;
}
