/* Runs a model as it was emitted, whatever it is: -DFORWARD, -DTRAIN: with those programs. A model
 * that refuses its indices has done its work too. */
#define _XOPEN_SOURCE 700
#include "net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { MOST_SECONDS = 60 }; /* of this process, so that others do not count */

int main(void)
{
    setrlimit(RLIMIT_CPU, &(struct rlimit){MOST_SECONDS, MOST_SECONDS});
    static net m;
    size_t bytes = (NET_ARENA_BYTES + NET_ARENA_ALIGN - 1) / NET_ARENA_ALIGN * NET_ARENA_ALIGN;
    void *arena = aligned_alloc(NET_ARENA_ALIGN, bytes ? bytes : NET_ARENA_ALIGN);
    if (!arena || net_init(&m, arena, NET_ARENA_BYTES) != NET_OK)
        return 1;
    net_reset(&m, 1);
    size_t count;
    const net_tensor *t = net_tensors(&count);
    for (size_t i = 0; i < count;
         i++) /* zeros are right as indices; other bytes are real numbers */
        if (t[i].kind == NET_INPUT && t[i].offset != NET_EXTERNAL)
            memset(m.arena + t[i].offset, t[i].dtype == NET_F32 ? 0x3e : 0, t[i].bytes);
    int status = NET_OK;
#ifdef FORWARD
    status = net_forward(&m);
#endif
#ifdef TRAIN
    float loss;
    if (status == NET_OK)
        status = net_step(&m, &loss);
    if (status == NET_OK)
        status = net_eval(&m, &loss);
#endif
    free(arena);
    if (status == NET_OK || NET_ERROR_KIND(status) == NET_EINDEX)
        return 0;
    fprintf(stderr, "%s\n", net_error(&m));
    return 1;
}
