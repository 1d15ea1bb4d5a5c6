/* `gplan run`: plans, emits and compiles a model, and becomes the program that comes of it. The
 * process is then that program's: its exit status, signals and terminal pass through because nobody
 * stands in between. A program of several ranks is started by mpirun, which is waited for. */
#include "frontend/command/kinds.h"
#include "frontend/command/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

typedef ARRAY(const char *) Words;

typedef struct {
    Arena *arena;
    const Options *options;
    Options emit;        /* how the model is compiled to C */
    Learned learned;     /* from that */
    Words model, own;    /* inputs: what gplan reads, and C files of the user's */
    const char *folder;  /* what is written goes there */
    const char *name;    /* of the program: that of the model's file */
    const char *program; /* its path */
    Words flags;         /* that the compiler takes */
} Run;

static int fails(const char *what, const char *why)
{
    fprintf(stderr, "gplan run: %s: %s\n", what, why);
    return 1;
}

/* ---- What there is to do --------------------------------------------------------------------- */

static void split_inputs(Run *run)
{
    const Options *o = run->options;
    for (size_t i = 0; i < o->input.count; i++) {
        const char *kind = extension(o->input.at[i]);
        bool own = i > 0 && kind && strcmp(kind, "c") == 0;
        if (own)
            ARRAY_PUSH(run->arena, &run->own, o->input.at[i]);
        else
            ARRAY_PUSH(run->arena, &run->model, o->input.at[i]);
    }
}

/* dir/model.g -> model */
static const char *stem(Arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    if (strcmp(path, "-") == 0)
        return "model";
    return dot && dot > base ? arena_copy(arena, base, (size_t)(dot - base)) : base;
}

static bool same_file(const char *a, const char *b)
{
    struct stat one, other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

/* A file of the user's has the name of one that is to be written. */
static const char *find_clash(const Run *run)
{
    for (size_t i = 0; i < run->own.count; i++)
        if (same_file(run->own.at[i], run->emit.output))
            return run->own.at[i];
    return NULL;
}

static void settle(Run *run)
{
    run->name = stem(run->arena, run->model.at[0]);
    run->program = arena_printf(run->arena, "%s/%s", run->folder, run->name);
    run->emit = *run->options;
    run->emit.input.at = run->model.at;
    run->emit.input.count = run->model.count;
    run->emit.output = arena_printf(run->arena, "%s.c", run->program);
    run->emit.main = run->own.count == 0;
    run->emit.learned = &run->learned;
}

/* ---- The compiler ---------------------------------------------------------------------------- */

/* Words of a variable as a shell without quotes would take them. */
static void push_words(Arena *arena, Words *words, const char *text)
{
    for (text += strspn(text, " \t"); *text; text += strspn(text, " \t")) {
        size_t length = strcspn(text, " \t");
        ARRAY_PUSH(arena, words, arena_copy(arena, text, length));
        text += length;
    }
}

/* What a variable names, or else what is usual. */
static Words named(Arena *arena, const char *variable, const char *otherwise)
{
    Words words = {0};
    const char *text = getenv(variable);
    push_words(arena, &words, text ? text : "");
    if (!words.count)
        ARRAY_PUSH(arena, &words, otherwise);
    return words;
}

static Words compiler(const Run *run)
{
    return named(run->arena, "CC", run->options->ranks ? "mpicc" : "cc");
}

static void push_all(Arena *arena, Words *words, const Words *more)
{
    for (size_t i = 0; i < more->count; i++)
        ARRAY_PUSH(arena, words, more->at[i]);
}

/* Runs a command; `silent`: with no input, and nobody hears what it says. Its exit status; -1: it
 * did not run, and errno says why. */
static int spawn(Arena *arena, Words *command, bool silent)
{
    pid_t child;
    int status;
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    for (int i = 0; i <= STDERR_FILENO && silent; i++)
        posix_spawn_file_actions_addopen(&files, i, "/dev/null", i ? O_WRONLY : O_RDONLY, 0);
    ARRAY_PUSH(arena, command, NULL);
    int why = posix_spawnp(&child, command->at[0], &files, NULL, (char **)command->at, environ);
    posix_spawn_file_actions_destroy(&files);
    command->count--;
    if (why) {
        errno = why;
        return -1;
    }
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Whether the compiler makes a program of nothing with these flags. */
static int takes(const Run *run, const Words *flags)
{
    Words command = compiler(run);
    const char *empty = arena_printf(run->arena, "%s.probe.c", run->program);
    const char *made = arena_printf(run->arena, "%s.probe", run->program);
    FILE *file = fopen(empty, "w");
    if (!file || fputs("int main(void)\n{\n    return 0;\n}\n", file) < 0 || fclose(file) != 0)
        return -1;
    push_all(run->arena, &command, flags);
    ARRAY_PUSH(run->arena, &command, empty);
    ARRAY_PUSH(run->arena, &command, "-o");
    ARRAY_PUSH(run->arena, &command, made);
    int status = spawn(run->arena, &command, true), why = errno;
    unlink(empty);
    unlink(made);
    errno = why;
    return status;
}

/* Those of the flags that make a program fast which the compiler knows; false with a message. */
static bool find_flags(Run *run)
{
    static const char *const wanted[] = {"-O3", "-march=native", "-fopenmp", "-pthread"};
    enum { WANTED = sizeof wanted / sizeof *wanted };
    Words all = {0};
    for (size_t i = 0; i < WANTED; i++)
        ARRAY_PUSH(run->arena, &all, wanted[i]);
    int status = takes(run, &all);
    const char *cc = compiler(run).at[0];
    if (status < 0) {
        fails(cc,
              errno != ENOENT ? strerror(errno)
              : run->options->ranks
                  ? "there is no such compiler: install Open MPI or MPICH, or name the mpicc of "
                    "one in the variable CC"
                  : "there is no such compiler: install gcc or clang, or name one in the "
                    "variable CC");
        return false;
    }
    for (size_t i = 0; i < WANTED && status != 0; i++) {
        Words one = {0};
        ARRAY_PUSH(run->arena, &one, wanted[i]);
        if (takes(run, &one) == 0)
            ARRAY_PUSH(run->arena, &run->flags, wanted[i]);
        else if (!run->options->quiet)
            fprintf(stderr, "gplan run: note: %s does not take %s\n", cc, wanted[i]);
    }
    if (status == 0)
        run->flags = all;
    return true;
}

static void show(const Words *command)
{
    for (size_t i = 0; i < command->count; i++)
        fprintf(stderr, "%s%s", i ? " " : "gplan run: ", command->at[i]);
    fputc('\n', stderr);
}

/* The emitted files and the user's -> a program; false with a message. */
static bool build_program(Run *run)
{
    Arena *arena = run->arena;
    const char *flags = getenv("CFLAGS");
    Words command = compiler(run);
    if (!find_flags(run))
        return false;
    push_all(arena, &command, &run->flags);
    push_words(arena, &command, flags ? flags : "");
    ARRAY_PUSH(arena, &command, arena_printf(arena, "-I%s", run->folder));
    ARRAY_PUSH(arena, &command, run->emit.output);
    if (run->emit.main)
        ARRAY_PUSH(arena, &command, arena_printf(arena, "%s_main.c", run->program));
    push_all(arena, &command, &run->own);
    push_words(arena, &command, run->learned.libraries);
    ARRAY_PUSH(arena, &command, "-o");
    ARRAY_PUSH(arena, &command, run->program);
    if (run->options->verbose)
        show(&command);
    int status = spawn(arena, &command, false);
    if (status != 0)
        fails(command.at[0], status < 0 ? strerror(errno) : "could not compile the program");
    return status == 0;
}

/* ---- The program ----------------------------------------------------------------------------- */

/* Becomes the program, or returns the exit status. What was only for the compiler goes before, so
 * that the program can end in any way. */
static int become(Run *run, Scratch *scratch)
{
    bool gone = scratch->path;
    Words arguments = {0};
    ARRAY_PUSH(run->arena, &arguments, gone ? run->name : run->program);
    for (size_t i = 0; i < run->options->argument.count; i++)
        ARRAY_PUSH(run->arena, &arguments, run->options->argument.at[i]);
    ARRAY_PUSH(run->arena, &arguments, NULL);
    int file = open(run->program, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return fails(run->program, strerror(errno));
    scratch_remove(scratch);
    fflush(stdout);
    fexecve(file, (char **)arguments.at, environ);
    int status = fails(run->name, strerror(errno));
    if (errno == EACCES && gone)
        fprintf(stderr, "    hint: name a folder where programs may run in TMPDIR, or by -k\n");
    return status;
}

static pid_t started; /* mpirun */

static void pass_on(int signal)
{
    kill(started, signal);
}

/* Its exit status. A terminal sends ctrl-C to mpirun too; other signals are passed on. */
static int await(void)
{
    struct sigaction passed = {.sa_handler = pass_on}, ignored = {.sa_handler = SIG_IGN};
    int status;
    sigaction(SIGINT, &ignored, NULL);
    sigaction(SIGTERM, &passed, NULL);
    sigaction(SIGHUP, &passed, NULL);
    while (waitpid(started, &status, 0) < 0)
        if (errno != EINTR)
            return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Has mpirun start the program; the exit status. */
static int start_ranks(Run *run)
{
    Arena *arena = run->arena;
    Words command = named(arena, "MPIRUN", "mpirun");
    ARRAY_PUSH(arena, &command, "-n");
    ARRAY_PUSH(arena, &command, arena_printf(arena, "%u", run->options->ranks));
    ARRAY_PUSH(arena, &command, run->program);
    for (size_t i = 0; i < run->options->argument.count; i++)
        ARRAY_PUSH(arena, &command, run->options->argument.at[i]);
    if (run->options->verbose)
        show(&command);
    ARRAY_PUSH(arena, &command, NULL);
    fflush(stdout);
    int why = posix_spawnp(&started, command.at[0], NULL, NULL, (char **)command.at, environ);
    if (why)
        return fails(command.at[0],
                     why == ENOENT ? "there is no such program: install Open MPI or MPICH, or name "
                                     "what starts ranks in the variable MPIRUN"
                                   : strerror(why));
    return await();
}

static int run_in(Run *run, Scratch *scratch)
{
    settle(run);
    const char *clash = find_clash(run);
    if (clash)
        return fails(clash, "the model's own file would take its place: rename one of them");
    int status = compile_main(run->arena, &run->emit);
    if (status != 0)
        return status;
    const char *numbers = arena_printf(run->arena, "%s.safetensors", run->program);
    if (scratch->path && access(numbers, F_OK) == 0)
        return fails(run->name, "it has numbers in a file beside the C text: give -k DIR, where "
                                "the program finds it");
    if (!build_program(run))
        return 1;
    return run->options->ranks ? start_ranks(run) : become(run, scratch);
}

int run_main(Arena *arena, const Options *o)
{
    Run run = {.arena = arena, .options = o, .folder = o->keep};
    Scratch scratch = {0};
    split_inputs(&run);
    if (o->keep && mkdir(o->keep, 0777) != 0 && errno != EEXIST)
        return fails(o->keep, strerror(errno));
    if (!o->keep) {
        scratch = scratch_make(arena);
        if (!scratch.path)
            return fails("no temporary folder", strerror(errno));
        run.folder = scratch.path;
    }
    int status = run_in(&run, &scratch);
    scratch_remove(&scratch);
    return status;
}
