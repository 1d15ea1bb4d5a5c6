/* gplan where something runs out. Linked with the whole of gplan, whose main is gplan_main.
 *
 *     scarce memory MOST ARGUMENTS...    no memory at an allocation: at it alone, and from it on
 *     scarce files MOST ARGUMENTS...     a call on the way to a file fails
 *
 * Runs gplan with ARGUMENTS in the folder it is called in, once as it is, then once for each
 * allocation (or call) on the way, or for MOST of them evenly spread. Each run ends well with the
 * same files and output, or with status 1, one message and the files of before. Prints what does
 * not, and how many runs there were. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int gplan_main(int argc, char **argv);

/* ---- What runs out ----------------------------------------------------------------------------
 */

static struct {
    bool armed, memory;
    bool from_on;         /* also all after the first */
    unsigned long at;     /* which one fails; 0: none */
    unsigned long *count; /* so far, where the parent sees it */
} fault;

static bool runs_out(bool memory)
{
    if (!fault.armed || fault.memory != memory)
        return false;
    unsigned long number = ++*fault.count;
    return fault.at && (number == fault.at || (fault.from_on && number > fault.at));
}

/* The address sanitizer's allocator where there is one, else the C library's. */
void *__interceptor_malloc(size_t) __attribute__((weak));
void *__interceptor_calloc(size_t, size_t) __attribute__((weak));
void *__interceptor_realloc(void *, size_t) __attribute__((weak));
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);

static void *none(void)
{
    errno = ENOMEM;
    return NULL;
}

void *malloc(size_t size)
{
    if (runs_out(true))
        return none();
    return __interceptor_malloc ? __interceptor_malloc(size) : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    if (runs_out(true))
        return none();
    return __interceptor_calloc ? __interceptor_calloc(count, size) : __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    if (runs_out(true))
        return none();
    return __interceptor_realloc ? __interceptor_realloc(memory, size)
                                 : __libc_realloc(memory, size);
}

#define FAULTY(name, parameters, arguments)                    \
    int __real_##name parameters;                              \
    int __wrap_##name parameters;                              \
    int __wrap_##name parameters                               \
    {                                                          \
        errno = EIO;                                           \
        return runs_out(false) ? -1 : __real_##name arguments; \
    }
FAULTY(fsync, (int file), (file))
FAULTY(fchmod, (int file, mode_t mode), (file, mode))
FAULTY(rename, (const char *from, const char *to), (from, to))
FAULTY(link, (const char *from, const char *to), (from, to))

int __real_close(int file);
int __wrap_close(int file);
int __wrap_close(int file) /* it is closed in any case */
{
    int closed = __real_close(file);
    errno = EIO;
    return runs_out(false) ? -1 : closed;
}

ssize_t __real_write(int file, const void *data, size_t bytes);
ssize_t __wrap_write(int file, const void *data, size_t bytes);
ssize_t __wrap_write(int file, const void *data, size_t bytes) /* never all at once */
{
    errno = ENOSPC;
    return runs_out(false) ? -1 : __real_write(file, data, bytes > 9000 ? 9000 : bytes);
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
    va_end(more);
    errno = EIO;
    return runs_out(false) ? -1 : __real_open(path, flags, mode);
}

/* The libraries' own memory is not what is tested. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

/* ---- The folder -------------------------------------------------------------------------------
 */

enum { MAX_FILES = 32 };

typedef struct {
    char name[256];
    char *bytes;
    size_t length;
    mode_t mode;
} File;

typedef struct {
    File file[MAX_FILES];
    int count;
} Folder;

static void stop(const char *what)
{
    perror(what);
    exit(2);
}

static char *read_all(int file, size_t *length)
{
    struct stat status;
    if (fstat(file, &status) != 0)
        stop("stat");
    *length = (size_t)status.st_size;
    char *bytes = calloc(1, *length + 1);
    if (!bytes || pread(file, bytes, *length, 0) != (ssize_t)*length)
        stop("read");
    return bytes;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const File *)a)->name, ((const File *)b)->name);
}

static Folder folder_read(void)
{
    Folder folder = {.count = 0};
    DIR *all = opendir(".");
    for (struct dirent *entry; (entry = readdir(all));) {
        if (entry->d_type != DT_REG)
            continue;
        File *file = &folder.file[folder.count++];
        if (folder.count == MAX_FILES)
            stop("too many files");
        snprintf(file->name, sizeof file->name, "%s", entry->d_name);
        int from = __real_open(file->name, O_RDONLY);
        struct stat status;
        if (from < 0 || fstat(from, &status) != 0)
            stop(file->name);
        file->bytes = read_all(from, &file->length);
        file->mode = status.st_mode;
        __real_close(from);
    }
    closedir(all);
    qsort(folder.file, (size_t)folder.count, sizeof *folder.file, by_name);
    return folder;
}

static void folder_free(Folder *folder)
{
    for (int i = 0; i < folder->count; i++)
        free(folder->file[i].bytes);
}

static bool folder_is(const Folder *a, const Folder *b)
{
    bool same = a->count == b->count;
    for (int i = 0; same && i < a->count; i++)
        same = !by_name(&a->file[i], &b->file[i]) && a->file[i].mode == b->file[i].mode &&
               a->file[i].length == b->file[i].length &&
               memcmp(a->file[i].bytes, b->file[i].bytes, a->file[i].length) == 0;
    return same;
}

/* As it was; what was not there goes. */
static void folder_restore(const Folder *old)
{
    Folder now = folder_read();
    if (!folder_is(&now, old)) {
        for (int i = 0; i < now.count; i++)
            unlink(now.file[i].name);
        for (int i = 0; i < old->count; i++) {
            int to = __real_open(old->file[i].name, O_WRONLY | O_CREAT, 0600);
            if (__real_write(to, old->file[i].bytes, old->file[i].length) < 0 ||
                __real_fchmod(to, old->file[i].mode & 0777) != 0)
                stop("restore");
            __real_close(to);
        }
    }
    folder_free(&now);
}

/* ---- Runs -------------------------------------------------------------------------------------
 */

typedef struct {
    int status; /* of the exit; 1000 + a signal */
    char *out, *err;
    size_t out_length, err_length;
    Folder folder;
} Run;

static int arguments;
static char **argument;
static int streams[2];

static Run run(unsigned long at, bool from_on)
{
    Run r = {.status = 0};
    for (int i = 0; i < 2; i++)
        if (ftruncate(streams[i], 0) != 0 || lseek(streams[i], 0, SEEK_SET) != 0)
            stop("streams");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        dup2(streams[0], STDOUT_FILENO);
        dup2(streams[1], STDERR_FILENO);
        fault.at = at;
        fault.from_on = from_on;
        fault.armed = true;
        exit(gplan_main(arguments, argument));
    }
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child)
        stop("fork");
    r.status = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    r.out = read_all(streams[0], &r.out_length);
    r.err = read_all(streams[1], &r.err_length);
    r.folder = folder_read();
    return r;
}

static void run_free(Run *r)
{
    free(r->out);
    free(r->err);
    folder_free(&r->folder);
}

/* It says why: of memory in one line, after what was said before. */
static bool explains(const Run *r)
{
    static const char *const words[] = {"cannot be written", "cannot write",
                                        "not a file that gplan wrote", "error: Input/output error",
                                        "error: No space left on device"};
    const char *line = r->err;
    for (const char *at = r->err; *at; at++)
        if (*at == '\n' && at[1])
            line = at + 1;
    bool found = fault.memory && strncmp(line, "gplan: out of memory", 20) == 0;
    for (size_t i = 0; i < sizeof words / sizeof *words && !fault.memory; i++)
        found |= strstr(r->err, words[i]) != NULL;
    return found;
}

/* What is wrong with a run, beside the one without faults; NULL: nothing. */
static const char *judge(const Run *r, const Run *good, const Folder *old)
{
    bool same = r->status == good->status && r->out_length == good->out_length &&
                memcmp(r->out, good->out, r->out_length) == 0 &&
                folder_is(&r->folder, &good->folder);
    if (same && (r->status == 0 || strcmp(r->err, good->err) == 0))
        return NULL; /* it did without */
    if (r->status == 0)
        return "status 0, but another result";
    if (r->status >= 1000)
        return "a signal";
    if (r->status != 1)
        return "another status than 1";
    if (!folder_is(&r->folder, old))
        return "it left something in the folder";
    return explains(r) ? NULL : "no message, or another";
}

static int failures;

static void once(unsigned long at, bool from_on, const Run *good, const Folder *old)
{
    Run r = run(at, from_on);
    const char *wrong = judge(&r, good, old);
    if (wrong && failures++ < 5)
        printf("%s %lu%s of gplan %s: %s (status %d)\n%.2000s\n",
               fault.memory ? "allocation" : "call", at, from_on ? " and all after" : "",
               argument[1], wrong, r.status, r.err);
    run_free(&r);
    folder_restore(old);
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    fault.memory = strcmp(argv[1], "memory") == 0;
    unsigned long most = strtoul(argv[2], NULL, 10), runs = 0;
    arguments = argc - 2;
    argument = argv + 2;
    argument[0] = (char *)(uintptr_t) "gplan";
    fault.count =
        mmap(NULL, sizeof *fault.count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 2; i++)
        streams[i] = memfd_create("stream", 0);
    Folder old = folder_read();
    Run good = run(0, false);
    folder_restore(&old);
    unsigned long count = *fault.count, near = most / 4;
    for (unsigned long at = 1; at <= count; runs++) {
        for (int from_on = 0; from_on < (fault.memory ? 2 : 1); from_on++) {
            *fault.count = 0;
            once(at, from_on, &good, &old);
        }
        /* all of them; or the first, the last, and some between */
        bool middle = count > most && at >= near && at + near < count;
        at += middle ? (count - 2 * near) / (most - 2 * near) + 1 : 1;
    }
    printf("%lu of %lu, status %d\n", runs, count, good.status);
    if (count == 0 || failures > 0)
        printf("%d failed\n", failures);
    return count == 0 || failures > 0;
}
