/* Two threads and two processes save to one path, each its own model, and a third loads what is
 * there: whatever it finds is whole, and of one of them.
 *
 *     savers PATH SAVES
 */
#include "emitted.h"

#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 1024 * 1024, SAVERS = 2 };

static const char *path;
static int saves;

static float *begin(MODEL *m)
{
    void *arena = aligned_alloc(64, (ARENA + 63) / 64 * 64);
    check(arena && M(_init)(m, arena, ARENA) == 0, "init");
    M(_reset)(m, 1);
    return (float *)(void *)((unsigned char *)arena + find("w")->offset);
}

/* Every number and the count of steps say whose save it is, and which. */
static void *save_often(void *first)
{
    MODEL own;
    float *w = begin(&own);
    own.step = *(const int *)first;
    for (int k = 0; k < saves; k++, own.step++) {
        for (int i = 0; i < COUNT; i++)
            w[i] = (float)own.step;
        check(M(_save)(&own, path) == 0 && !*M(_error)(&own), "save");
    }
    free(own.arena);
    return NULL;
}

static void load_one(float *w)
{
    const int code = M(_load)(&model, path);
    if (code)
        fprintf(stderr, "load: %s\n", M(_error)(&model));
    check(code == 0, "load");
    for (int i = 1; i < COUNT; i++)
        check(w[i] == w[0], "the file is of one save");
    check((float)model.step == w[0], "and so are its steps");
}

int main(int argc, char **argv)
{
    static int first[2 * SAVERS] = {1000, 2000, 3000, 4000};
    pthread_t thread[SAVERS];
    pid_t child[SAVERS];
    check(argc == 3, "usage: savers PATH SAVES");
    path = argv[1];
    saves = atoi(argv[2]);
    float *w = begin(&model);
    check(M(_save)(&model, path) == 0, "save");
    for (int i = 0; i < SAVERS; i++) {
        child[i] = fork();
        if (child[i] == 0) {
            save_often(&first[SAVERS + i]);
            _exit(0);
        }
    }
    for (int i = 0; i < SAVERS; i++)
        check(pthread_create(&thread[i], NULL, save_often, &first[i]) == 0, "thread");
    int loads = 0, status = 0;
    for (int left = SAVERS; left > 0; loads++) {
        load_one(w);
        const pid_t ended = waitpid(-1, &status, WNOHANG);
        check(ended == 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0), "a process saves");
        left -= ended != 0;
    }
    for (int i = 0; i < SAVERS; i++)
        pthread_join(thread[i], NULL);
    load_one(w);
    printf("%d loads\n", loads);
    return 0;
}
