/* Killed while it saves, a process leaves a file that is whole: the last one or the one before.
 *
 *     saver PATH KILLS
 */
#include "emitted.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static float *w;
enum { COUNT = 1024 * 1024 };

static void save_for_ever(const char *path)
{
    for (;;) {
        for (int i = 0; i < COUNT; i++)
            w[i] += 1;
        model.step++;
        expect_ok(M(_save)(&model, path), "save");
    }
}

/* Every number is that of the save, and so is the count of steps. */
static float check_file(const char *path)
{
    expect_ok(M(_load)(&model, path), "load");
    for (int i = 1; i < COUNT; i++)
        check(w[i] == w[0], "the file is of one save");
    check((float)model.step == w[0], "and so are its steps");
    return w[0];
}

int main(int argc, char **argv)
{
    check(argc == 3, "usage: saver PATH KILLS");
    uint64_t seed = 1;
    float last = 0;
    model_begin(1);
    w = data(find("w"));
    expect_ok(M(_save)(&model, argv[1]), "save");
    for (int kills = atoi(argv[2]); kills > 0; kills--) {
        pid_t child = fork();
        check(child >= 0, "fork");
        if (child == 0)
            save_for_ever(argv[1]);
        struct timespec pause = {.tv_nsec = (long)(drawn(&seed) * 60e6)};
        nanosleep(&pause, NULL);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        float now = check_file(argv[1]);
        check(now >= last, "no save is lost");
        last = now;
    }
    printf("%d saves survived\n", (int)last);
    check(last > 0, "something was saved");
    return 0;
}
